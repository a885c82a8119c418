"""JSON lines: both ways of reading them agree on every chunk, and a line that is no rollout costs itself only."""

import errno
import gzip
import io
import json
import os
import pickle
import resource
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from cases import sized, some
from hypothesis import example, given, settings
from hypothesis import strategies as st
from waiting import PATIENCE, until

import assay
from assay.expressions.mixed import JSON
from assay.loading.formats import json_forms
from assay.loading.formats.files import open_each
from assay.loading.formats.json_forms import Forms
from assay.loading.formats.jsonl import LineReader, LineSource, _Survey
from assay.loading.formats.reading import Reading
from assay.loading.rollouts import open_rollouts
from assay.names import BAD
from assay.scoring.in_memory import prepare
from assay.scoring.reference import score_rows
from assay.system.spool import spool
from assay.thresholds import THRESHOLDS
from assay.values.rows import LearnedColumns

SPEC = {"id": "v", "checks": [{"type": "contains", "value": "b"}]}
BROKEN = b'{"completion":'


def lines_of(rows):
    return [json.dumps(row).encode() for row in rows]


def written(folder, lines, name="rows.jsonl"):
    path = Path(folder, name)
    path.write_bytes(b"\n".join(lines) + b"\n" if isinstance(lines, list) else lines)
    return path


def looked_through(path, **options):
    (file,) = open_each([Path(path)], Reading(**options))
    return file


def collected(file):
    return file.scan().collect()


def by_engine(file):
    """How many chunks the engine reads."""
    return sum(chunk.columns is not None for chunk in file.chunks)


@pytest.fixture(name="chunks")
def _chunks(monkeypatch):
    """Sets the bytes of a chunk."""

    def size(number):
        monkeypatch.setattr(THRESHOLDS, "first_chunk", number)
        monkeypatch.setattr(THRESHOLDS, "chunk", number)

    return size


TEXT = st.text(st.sampled_from('ab"\\:,{}[] \n\t\x00\x1f\x7fé\u2028😀\ud83d\ude00n1'), max_size=6)
NUMBER = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 10**30, -0.0, 0.1, 1e300, 5e-324]),
    st.floats(allow_nan=True),
)
LEAF = st.one_of(TEXT, NUMBER, st.booleans(), st.none())
CHAT = st.lists(
    st.fixed_dictionaries({"role": TEXT, "content": TEXT}, optional={"name": st.one_of(TEXT, st.none())}), max_size=2
)
CALL = st.fixed_dictionaries({"name": TEXT, "arguments": st.fixed_dictionaries({"k": NUMBER})}, optional={"id": TEXT})
CALLS = st.lists(
    st.fixed_dictionaries({"role": TEXT, "content": TEXT | st.none()}, optional={"tool_calls": st.lists(CALL)}),
    max_size=2,
)
VALUE = st.one_of(LEAF, CHAT, st.lists(LEAF, max_size=3), st.dictionaries(st.sampled_from(["k", "a", ""]), LEAF))
KINDS = [TEXT, st.integers(-9, 9), st.integers(), st.floats(allow_nan=False), st.booleans(), CHAT, LEAF, VALUE]
KINDS += [st.lists(TEXT, max_size=2), st.lists(st.integers(-9, 9), max_size=3), st.fixed_dictionaries({"k": TEXT})]
KINDS += [
    st.fixed_dictionaries({"k": st.integers(-9, 9)}, optional={"answer": NUMBER, "l": st.lists(TEXT, max_size=2)})
] * 3
KINDS += [CALLS, st.lists(st.fixed_dictionaries({"k": st.floats(), "l": st.lists(st.integers())}), max_size=2)] * 2
KINDS.append(st.fixed_dictionaries({"i": st.sampled_from([1, 2**53 + 1]), "f": st.sampled_from([1, 0.5])}))
NAMES = ["a", "k", "", "é", "role", "answer", "metadata", "info", 'q"', "b\\", "prompt", "metadata", "^y$"]
HOSTILE = [
    *(b'{"a": 1, "a": 2}', b'{"a": "x", "a": null}', b'{"a": null, "a": "x"}', b'{"\\u0061": 1}', b'{"b\\\\": 1}'),
    *(b'{"x\\"a": 1}', b'{"a": "\\ud800"}', b'{"a": "\\\\ud83d\\ude00"}', b'{"a": "\\ud83d\\ude00"}', b'{"a": 1e400}'),
    *(b'{"a": NaN}', b'{"a": -Infinity}', b'{"a": -0}', b'{"a": -0.0}', b'{"a": 1E5}', b'{"a": 0.1000000000000000055}'),
    *(b'{"a": 9007199254740993}', b'{"a": "x\xff"}', b'{"a": [1, "x"]}', b'{"a": [1, 2.5]}', b'{"a": [null]}'),
    *(b'{"a": ": \\": "}', b'{"a": ":"}', b'{"a" : "x" , "k": {"a": 2}}', b' {"a":"x"}\r', b"", b" \t\r", b"\x1c"),
    *(b'{"a": {"k": "x", "k": "y"}}', b'{"a": {"k": null}}', b'{"a": {}}', b'{"a": [{"role": "x"}, null]}', b"{}"),
    *(b'{"a": "\\"a\\": 1"}', b'{"a": "\\\\\\\\", "k": "x"}', b'{"a": "x\\\\":1}', b'{"a": "1"}', b'{"a": true}'),
    *(b'{"a": ["x\xff"]}', b'{"a": {"k": "\xed\xa0\x80"}}', b'{"completion": [{"role": "x", "content": "\xff"}]}'),
    b'{"completion": [{"role": "x", "content": "y", "content": "z"}]}',
    b'{"completion": [{"role": "x", "content": "y"}], "prompt": [{"role": "x", "content": "y"}]}',
]
HOSTILE += [b'{"a":\rnull, "k": "%b"}' % (b"y" * 90), b'{"a": 1}\r{"a": 2}', b'{"a": "x"\r}\r', b'{"a": [\r1, -0\r]}']
BAD_LINES = [b'{"a": }', b"[1]", b"null", b"{'a': 1}", b'{"a": 1} {}', b'{"a": "\t"}', b'{"a": 01}', b'{"a": tru}']
BAD_LINES += [
    b'{"a": "x"} null',
    b'null{"a": "x"}',
    b'{"a": {"k": "x"}}null}',
    b'{"a": "x"}\r{"a": "x"}',
    b'{"a": ["x"]}}',
]
DEEP = b'{"a": ' + b"[" * 600 + b"]" * 600 + b"}"
LONG = b'{"a": ' + b"1" * 5000 + b"}"


@st.composite
def files_of_lines(draw):
    """Lines that are mostly alike, with some that are not."""
    columns = draw(st.dictionaries(st.sampled_from(NAMES), st.sampled_from(KINDS), max_size=4))
    row = st.fixed_dictionaries({}, optional=columns) if draw(st.booleans()) else st.fixed_dictionaries(columns)
    texts = st.fixed_dictionaries({"completion": draw(st.sampled_from([TEXT | st.none(), CHAT, CALLS]))})
    rows = draw(st.lists(st.tuples(row, texts), min_size=1, max_size=12))
    compact = {"separators": (",", ":")} if draw(st.booleans()) else {}
    lines = [json.dumps({**two, **one}, ensure_ascii=draw(st.booleans()), **compact) for one, two in rows]
    found = [line.encode("utf-8", "replace") for line in lines]
    for line in draw(st.lists(st.sampled_from([*HOSTILE, *BAD_LINES, DEEP, LONG]), max_size=2)):
        found.insert(draw(st.integers(0, len(found))), line)
    return found


def differently_read(path):
    """The frames of a file by each size of its chunks, and by Python alone, with what else was found."""
    patched = pytest.MonkeyPatch()
    content = path.read_bytes()
    found = []
    with patched.context() as patch:
        # those of more than the first are read ahead, with the forms of those before
        for first, size in ((1, 1), (70, 70), (20, 70), (1 << 20, 1 << 20)):
            patch.setattr(THRESHOLDS, "first_chunk", first)
            patch.setattr(THRESHOLDS, "chunk", size)
            patch.setattr(json_forms, "_BLOCK", size)
            file = looked_through(path)
            parts = [file.scan(at, at + 1) for at in range(len(file.units))]
            whole = collected(file)
            assert pl.concat(parts).collect().equals(whole)
            assert [unit.rows for unit in file.units] == [part.collect().height for part in parts]
            assert all(content[row.offset :].startswith(row.sample[:5].encode()) for row in file.bad if row.sample)
            found.append((repr(whole.schema), repr(whole.to_dicts()), file.bad, file.notes))
        patch.setattr(Forms, "read", lambda self, data: None)
        patch.setattr("assay.loading.formats.jsonl.plain_rows", lambda data: None)
        file = looked_through(path)
        assert not by_engine(file)
        found.append((repr(file.schema), repr(collected(file).to_dicts()), file.bad, file.notes))
    return found


@settings(max_examples=sized(40, 4), deadline=None)
@given(files_of_lines())
@example([b'{"completion": "b"}'] * 3 + HOSTILE)
@example([b"[1]", b'{"completion": []}'])
@example([b'{"a": 1, "completion": "x"}'] * 3 + [b'{"a": 9007199254740993, "completion": "x"}', b'{"a": 0.5}'])
@example([b'{"a": [1.5]}'] * 3 + [b'{"a": [9223372036854775807]}'] * 3)
@example([b'{"a": [1]}'] * 3 + [b'{"a": [9007199254740993]}'] * 3 + [b'{"a": [0.5]}'] * 3)
@example([b'{"a": [true]}', b'{"a": [1.5]}'])
@example([b'{"a": {"k": [{"m": 0.5}]}}', b'{"a": {"k": [{"m": true}]}}', b'{"a": null}'])
@example([b'{"answer": 1.5}'] * 3 + [b'{"answer": 2}'])
@example([b'{"answer": 1.5}'] * 3 + [b'{"answer": "x"}'] * 3)
@example([b'{"answer": 1}', b'{"answer": "x"}'] + [b'{"answer": null}'] * 3 + [b'{"answer": {"__assay/json": "x"}}'])
@example([b'{"k": "x", "a": {"k": "x"}}'] * 3 + [b'{"k": "x", "k": "y", "a": {}}'] * 3)
@example([b'{"a": "x"}'] * 3 + [b'{"a": "x", "k": null}', b'{"a": null, "a": "x"}', b'{"a": "x"}', b'{"k": null}'])
@example(
    [b'{"metadata": {"k": 1}}', b'{"metadata": {"k": NaN}}', b'{"metadata": {"k": 1, "k": 2}}', b'{"metadata": "x"}']
)
@example([b'{"a": -0}', b'{"a": 1e400}', b'{"a": [-0]}', b'{"a": -0.0}'])
@example([b'{"a": []}', b'{"a": [{}]}'])
@example([b'{"a": {"i": 9007199254740993, "f": 0.5}}', b'{"a": {"f": 1}}'])
@example([b'{"a": {"i": 9007199254740993, "f": 1}}', b'{"a": {"i": 1, "f": 0.5}}'])
@example([b'{"a": [{"i": 9007199254740993}]}', b'{"a": [{"i": 0.5}]}'])
@example([b'{"a": {"k": null}}', b'{"a": {"k": null}}', b'{"a": {"k": {}}}'])
@example([b'{"^y$": "a"}', b'{"^y$": "b"}', b'{"^y$": [1]}'])
@example([b'{"a": -0}', b'{"a": 1e400}', b'{"completion": null}'])
@example([b'{"a": "x"}'] * 3 + [b'{"\xff": 1}', b'{"a": "x", "\xff": {}}'])
@example([b'{"metadata": {"answer": 1.5}, "answer": 1.5}'] * 3 + [b'{"metadata": {"answer": 1.5}, "answer": 1}'] * 3)
@example(
    [b'{"metadata": {}, "a": "x"}', b'{"metadata": %b1%b}' % (b"[" * 499, b"]" * 499), b'{"metadata": [], "k": 1}']
)
@example([b'{"metadata": [1]}', b'{"metadata": %b1%b}' % (b"[" * 500, b"]" * 500), b'{"metadata": [[1]]}'])
@example([b'{"completion": null}', b'{"completion": [{"role": "x", "content": "\xff"}]}', b'{"completion": ""}'])
@example(
    [b'{"completion": [{"content": "x", "exact": {"k": 1}}]}'] * 3 + [b'{"completion": [{"exact": {"k": 1, "k": 2}}]}']
)
@example([b'{"completion": [{"role": "x", "content": "y", "exact": "[]"}]}'] * 3)
@example(
    [b'{"metadata": {"k": [{"l": %b}]}}' % value for value in (b"0.5", b"1", b"1e400", b"NaN", b'"x"', b"{}", b"1")]
)
@example(
    [b'{"metadata": %b}' % value for value in (b"{}", b'{"k": {}}', b'"x"', b'{"k": {"l": 1}}', b'{"k": 1}', b"[]")]
)
@example([b'{"answer": {"__assay/json": "x"}}'] * 3 + [b'{"answer": {"__assay/json": "x", "__assay/json": "y"}}'])
@example(
    [b'{"a": {"k": 1}}', b'{"a": "x"}'] + [b'{"a": {"k": 1}}'] * 3 + [b'{"a": {"l": 1}}', b'{"a": {"k": 1, "k": 1}}']
)
def test_a_line_means_the_same_whoever_reads_it_and_wherever_the_file_is_cut(lines):
    with tempfile.TemporaryDirectory() as folder:
        found = differently_read(written(folder, b"\n".join(lines)))
        assert all(one == found[-1] for one in found)


@pytest.mark.parametrize("plain", some([b'{"a": "x"}', b'{"a": 1}', b'{"a": {"k": "x"}}', b'{"a": ["x"]}']))
def test_a_hostile_line_among_plain_ones_is_read_as_python_reads_it(tmp_path, chunks, plain):
    chunks(len(plain) + 1)
    for hostile in (*HOSTILE, *BAD_LINES, DEEP, LONG):
        path = written(tmp_path, [plain] * 3 + [hostile] + [plain] * 2)
        exact = looked_through(path, reshape=lambda row: [row])
        assert not by_engine(exact)
        file = looked_through(path)
        assert collected(file).equals(collected(exact)), hostile
        assert (file.bad, file.notes) == (exact.bad, exact.notes)


PLAIN = {
    "completion": 'say "a": {b}\n',
    "n": 1,
    "x": 0.5,
    "ok": True,
    "none": None,
    "answer": "7",
    "l": [1],
    "t": ["s"],
}
ENGINES = {
    "plain": [PLAIN] * 40,
    "messages": [{"completion": [{"role": "assistant", "content": "b"}], "usage": {"in": 1, "out": {"a": 0.5}}}] * 40,
    "a late column": [*[PLAIN] * 20, *[PLAIN | {"late": "x"}] * 20],
    "numbers that widen": [*[{"completion": "b", "n": 1}] * 20, *[{"completion": "b", "n": 0.5}] * 20],
    "surrogate pairs": [{"completion": "b", "face": "😀\n"}] * 40,
    "golds with fractions": [{"completion": "b", "answer": 1.0, "expected": [0.5, 2.0]}] * 40,
    "fields that are not there": [{"completion": "b", "usage": usage} for usage in ({"in": 1}, {"in": None}, None)]
    * 14,
    "text that ends like a line": [{"completion": "b", "code": "{}\n{x} next, {} is nullable"}] * 40,
    "text as structure": [{"completion": "b", "metadata": '{"a": 1}'}] * 40,
}


@pytest.mark.parametrize("rows", ENGINES.values(), ids=ENGINES)
def test_plain_lines_are_read_by_the_engine(tmp_path, chunks, rows):
    chunks(500)
    file = looked_through(written(tmp_path, lines_of(rows)))
    assert by_engine(file) == len(file.chunks) > 2
    names = [name for name in rows[-1] if name != "completion"]
    assert collected(file).select(names).to_dicts() == [{name: row.get(name) for name in names} for row in rows]


CALLED = {"role": "assistant", "content": None, "tool_calls": [{"name": "f", "arguments": {"x": 0.5}}]}
STRUCTURES = {
    "metadata": [{"completion": "b", "metadata": {"n": at, "l": [{"m": "x"}]}} for at in range(40)],
    "fields that come and go": [
        {"completion": "b", "metadata": [{"n": 1}, {"n": 0.5, "m": None}][at % 2]} for at in range(40)
    ],
    "golds": [{"completion": "b", "answer": {"n": at}, "expected": [{"m": "x"}]} for at in range(40)],
    "tool calls": [{"completion": [{"role": "user", "content": "b"}, CALLED]}] * 40,
    "columns of several types": [{"completion": "b", "info": {"n": 1}, "x": [1, {"n": 1}][not at]} for at in range(40)],
}


@pytest.mark.parametrize("rows", STRUCTURES.values(), ids=STRUCTURES)
def test_lines_with_structures_are_searched_for_oddities_by_the_engine(tmp_path, chunks, rows, monkeypatch):
    """Python reads their values, once; that the first lines are read twice gives their types."""
    chunks(500)
    searched, read = [], LineReader.lines
    monkeypatch.setattr(
        LineReader, "lines", lambda reader, data, line: searched.append(line) or read(reader, data, line)
    )
    file = looked_through(written(tmp_path, lines_of(rows)))
    whole = collected(file)
    is_mixed = rows is STRUCTURES["columns of several types"]
    assert (len(searched) == 1) != is_mixed
    assert len(file.chunks) > 3
    monkeypatch.setattr(Forms, "read", lambda *_: None)
    monkeypatch.setattr("assay.loading.formats.jsonl.plain_rows", lambda _: None)
    assert collected(looked_through(file.path)).equals(whole)


def test_structures_of_very_many_fields_are_not_handed_to_the_engine(tmp_path, chunks):
    """For each row would store all of them."""
    chunks(2_000)
    rows = [{"completion": "b", "metadata": {f"k{at}": at}} for at in range(1_000)]
    path = written(tmp_path, lines_of(rows))
    survey = _Survey(LineSource.of(path, "rows", Reading()), Reading(), LearnedColumns({}), Forms({}), 0)
    with ThreadPoolExecutor(1) as pool:
        assert sum(1 for _ in survey.run(pool, 1)) > 10
    assert survey.forms.all_types["metadata"] == pl.Object()
    assert collected(looked_through(path))["metadata"].to_list() == [json.dumps(row["metadata"]) for row in rows]


@pytest.mark.parametrize(("name", "other"), [("b\\", 'b":1.5,'), ("a\\b", "a\b"), ("answer", 'x"answer')])
def test_no_name_hides_that_a_gold_is_a_whole_number(tmp_path, chunks, name, other):
    chunks(1)
    rows = [{"completion": "b", name: 1.5, other: 2.5}, {"completion": "b", name: 2, other: 1.5}]
    file = looked_through(written(tmp_path, lines_of(rows)), mapping={"answer": name})
    assert collected(file)[name].struct.field(JSON).to_list() == ["1.5", "2"]


def test_no_block_begins_at_a_null(tmp_path, chunks, monkeypatch):
    """Arrow would end the process, mostly: it takes a carriage return for the end of a line."""
    monkeypatch.setattr(json_forms, "_BLOCK", 1 << 12)
    line = b'{"completion":\rnull,"b":"' + b"y" * 5000 + b'"}'
    file = looked_through(written(tmp_path, [line] * 500))
    assert collected(file)["completion"].null_count() == 500
    assert not by_engine(file)


def test_only_chunks_that_need_it_are_read_by_python(tmp_path, chunks):
    chunks(1000)
    lines = lines_of([PLAIN] * 100)
    lines[50] = lines[50].replace(b"0.5", b"NaN")
    file = looked_through(written(tmp_path, lines))
    assert by_engine(file) == len(file.chunks) - 1 > 5
    assert collected(file)["x"].to_list() == [0.5] * 50 + [None] + [0.5] * 49
    assert file.notes == (f"{file.path}:51: a line with NaN or Infinity, read as null",)


def test_a_content_that_is_read_by_the_engine_is_a_content(tmp_path, chunks):
    """None of the messages that Python reads has one, of which the user would be told."""
    chunks(100)
    rows = [[{"role": "user"}]] * 9 + [[{"role": "assistant", "content": "b" * 60}]] * 20
    file = looked_through(written(tmp_path, lines_of([{"completion": row} for row in rows])))
    assert by_engine(file) > 10


def test_a_run_reads_some_rows_and_some_columns(tmp_path, chunks):
    chunks(300)
    path = written(tmp_path, lines_of([{"id": at, "completion": "b", "x": [at / 2, "s"][at > 40]} for at in range(50)]))
    frame = assay.scan(path)
    whole = frame.collect()
    assert whole["x"].to_list() == [str(at / 2) if at <= 40 else "s" for at in range(50)]
    assert frame.select("id").collect().equals(whole.select("id"))
    assert frame.head(13).collect().equals(whole.head(13))
    assert frame.filter(pl.col("id") % 7 == 0).select("x").collect().equals(whole.filter(pl.col("id") % 7 == 0)[["x"]])
    assert frame.select(pl.len()).collect().item() == 50


def test_any_process_reads_any_part_of_a_file(tmp_path, chunks):
    chunks(1000)
    path = written(tmp_path, lines_of([PLAIN | {"n": at} for at in range(3000)]))
    carried = pickle.dumps(looked_through(path))
    assert len(carried) < 60_000 < path.stat().st_size / 5
    file = pickle.loads(carried)  # noqa: S301
    first = sum(unit.rows for unit in file.units[:100])
    some = sum(unit.rows for unit in file.units[100:105])
    assert file.scan(100, 105).collect()["n"].to_list() == list(range(first, first + some))
    assert file.scan(3, 3).collect().height == 0


WRONG = {
    "malformed": (b'{"completion": }', "not valid JSON: Expecting value (column 16)."),
    "not_an_object": (b'["b"]', "a line must be a JSON object, not list."),
    "too_deep": (DEEP, "nested deeper than 500 levels."),
    "integer_too_long": (LONG, "not readable: Exceeds the limit"),
    "too_long": (b'{"completion": "' + b"b" * 3000 + b'"}', "longer than 2,000 bytes."),
    "invalid_utf8": (b'{"completion": "\xff"}', "not UTF-8 (byte 17 of the line)."),
    "same_key": (rb'{"\ud800": 1, "\udfff": 2}', "two keys that read the same once"),
}
GOOD = lines_of([{"completion": "b", "id": at, "m": {"k": at}} for at in range(4)])


@pytest.mark.parametrize("size", [1, 60, 1 << 20])
@pytest.mark.parametrize("code", WRONG)
def test_a_bad_line_keeps_its_place_and_costs_itself_only(tmp_path, chunks, code, size):
    chunks(size)
    line, reason = WRONG[code]
    path = written(tmp_path, [*GOOD[:2], b"", line, *GOOD[2:]])
    file = looked_through(path, utf8="strict", max_line=2000 if code == "too_long" else 1 << 28)
    (bad,) = file.bad
    assert (bad.file, bad.row, bad.line, bad.offset, bad.code) == (str(path), 2, 4, path.read_bytes().find(line), code)
    assert bad.reason.startswith(reason)
    assert bad.sample == (line.hex() if code == "invalid_utf8" else line[:200].decode())
    frame = collected(file)
    assert frame["id"].to_list() == [0, 1, None, 2, 3]
    assert frame[BAD].to_list() == [None, None, bad.reason, None, None]
    assert frame.row(2) == (None,) * (frame.width - 1) + (bad.reason,)


def test_a_last_line_that_was_cut_off_is_told_from_a_broken_one(tmp_path):
    for end, code in [(b"", "truncated_tail"), (b"\n", "malformed")]:
        path = written(tmp_path, b"\n".join([*GOOD, BROKEN]) + end)
        assert [bad.code for bad in looked_through(path).bad] == [code]
        whole = written(tmp_path, b"\n".join(GOOD))
        assert looked_through(whole).bad == ()


def test_bad_rows_are_refused_unless_they_are_allowed(tmp_path):
    path = written(tmp_path, [*GOOD, *[BROKEN] * 6])
    out = tmp_path / "out.parquet"
    with pytest.raises(assay.BadRowsError) as refused:
        assay.score_file(path, SPEC, out)
    where = "".join(f"\n  {path}:{line}: not valid JSON: Expecting value (column 15)." for line in range(5, 10))
    assert refused.value.text == (
        f"6 malformed lines (limit 0; see --max-bad-rows).{where}\n  … 1 more\n\n"
        "Nothing was written. Fix the lines, or leave them unscored with --max-bad-rows 6 or 60.1%."
    )
    assert refused.value.exit_code == 3
    assert [one.name for one in tmp_path.iterdir()] == ["rows.jsonl"]
    for allowed in (5, "59%", "0"):
        with pytest.raises(assay.BadRowsError, match=rf"limit {allowed}; see `max_bad_rows`"):
            assay.score(path, SPEC, max_bad_rows=allowed)
    for allowed in (6, "60%"):
        assert assay.score(path, SPEC, max_bad_rows=allowed).height == 10
    with pytest.raises(assay.UsageError, match='max_bad_rows="few": expected a number of rows or a percentage'):
        assay.score(path, SPEC, max_bad_rows="few")
    assert assay.scan(path, max_bad_rows="60%").collect().rows()[4:] == [(None, None, None)] * 6


def test_bad_rows_are_unscored_and_listed(tmp_path):
    path = written(tmp_path, [*GOOD, BROKEN], "a.jsonl")
    other = written(tmp_path, [b'{"completion": "\xff"}', *GOOD], "b.jsonl")
    out, listed = tmp_path / "out.parquet", tmp_path / "out.parquet.bad_rows.parquet"
    tasks = [{"task_id": "t", "level": 1}]
    summary = assay.score_file(
        [path, other], SPEC, out, max_bad_rows=2, utf8="strict", tasks=tasks, mapping={"task_id": "id"}
    )
    assert (summary.rows, summary.bad_rows, summary.as_json()["bad_rows"]) == (10, 2, 2)
    assert f"2 bad rows are unscored, and listed in {listed}" in summary.notes
    scored = pl.read_parquet(out)
    assert scored.columns[:2] == ["m", "task_id"]
    assert scored["reward"].to_list() == [None] * 10
    errors = scored["error"].to_list()
    assert errors[4:6] == ["not valid JSON: Expecting value (column 15).", "not UTF-8 (byte 17 of the line)."]
    assert errors[:2] == [f"task_id {at} is not in the task table" for at in range(2)]
    assert pl.read_parquet(listed).rows() == [
        (str(path), 4, 5, sum(map(len, GOOD)) + 4, "malformed", errors[4], BROKEN.decode()),
        (str(other), 0, 1, 0, "invalid_utf8", errors[5], b'{"completion": "\xff"}'.hex()),
    ]
    with pytest.raises(assay.UsageError, match="already exists"):
        assay.score_file([path, other], SPEC, tmp_path / "out.parquet", max_bad_rows=2, utf8="strict")
    out.unlink()
    with pytest.raises(assay.UsageError, match=r"bad_rows\.parquet: already exists"):
        assay.score_file([path, other], SPEC, out, max_bad_rows=2, utf8="strict")
    assert assay.score_file(other, SPEC, out).bad_rows == 0
    assert not listed.exists()


def test_a_bad_row_is_unscored_by_the_definition_too(tmp_path):
    path = written(tmp_path, [*GOOD, BROKEN])
    opened = open_rollouts(path, Reading(max_bad_rows=1))
    verifier = assay.load_verifier(SPEC)
    found = score_rows(opened.frame.collect().to_dicts(), [verifier])
    scored = assay.score(path, SPEC, max_bad_rows=1, keep=[])
    assert [list(row.values()) for row in found] == [list(row) for row in scored.rows()]


def test_a_bad_row_is_not_asked_which_function_verifies_it(tmp_path):
    row = {"completion": "b", "fn_name": "contains", "expected": "b"}
    path = written(tmp_path, [*lines_of([row] * 2), BROKEN])
    assert assay.score(path, max_bad_rows=1)["reward"].to_list() == [1.0, 1.0, None]


def test_a_file_of_anything_else_ends_early(tmp_path, monkeypatch):
    monkeypatch.setattr("assay.loading.formats.jsonl.MOST_BAD", 3)
    path = written(tmp_path, [b"2026-01-01 INFO started"] * 5)
    with pytest.raises(assay.InputError, match=r"rows\.jsonl: more than 3 lines are not JSON objects\.") as refused:
        assay.scan(path, max_bad_rows=100)
    assert refused.value.hint == "The first is line 1: not valid JSON: Extra data (column 5)."


ODD = {
    "byte order mark, which was skipped": b'\xef\xbb\xbf{"completion": "b"}',
    "blank and skipped": b" \t",
    "bytes that are not UTF-8, read as U+FFFD": b'{"completion": "b\xff"}',
    "lone surrogates, read as U+FFFD": rb'{"completion": "b\ud800"}',
    "a duplicate key in an object; the last one is used": b'{"completion": "b", "info": {"k": 1, "k": 2}}',
    "NaN or Infinity, read as null": b'{"completion": "b", "n": NaN}',
}


@pytest.mark.parametrize("said", ODD)
def test_what_is_odd_is_counted_with_its_first_place(tmp_path, chunks, said):
    chunks(40)
    first = said.startswith("byte")
    path = written(tmp_path, [*GOOD[: 0 if first else 2], ODD[said], *GOOD, *[ODD[said]] * (not first), *GOOD])
    summary = assay.score_file(path, SPEC)
    (note,) = [note for note in summary.notes if note.startswith(f"{path}:")]
    assert note.startswith(f"{path}:1: a line with " if first else f"{path}:3: the first of 2 lines ")
    assert note.endswith(said)
    assert summary.scored == summary.rows == summary.passed


def test_files_settle_the_types_of_their_columns_together(tmp_path, chunks):
    chunks(30)
    golds = [1, "1", [1], 1.0, None]
    for at, gold in enumerate(golds):
        written(tmp_path, lines_of([{"completion": "b", "answer": gold, "n": gold}] * 3), f"{at}.jsonl")
    together = [{"completion": "b", "answer": gold, "n": gold} for gold in golds for _ in range(3)]
    one = written(tmp_path, lines_of(together), "all.ndjson")
    found = assay.scan(tmp_path / "*.jsonl").collect()
    assert found.equals(assay.scan(one).collect())
    assert found.equals(assay.scan(together).collect())
    assert found["n"].to_list() == [text for text in ("1", "1", "[1]", "1.0", None) for _ in range(3)]


def test_types_that_drift_between_formats_are_refused_with_both_files(tmp_path):
    written(tmp_path, lines_of([{"completion": "b", "n": [1]}]), "a.jsonl")
    pl.DataFrame({"completion": ["b"], "n": [1]}).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(assay.InputError, match=r"`n` is List\(Int64\) in .*a\.jsonl and Int64 in .*b\.parquet\."):
        assay.scan([tmp_path / "a.jsonl", tmp_path / "b.parquet"])


def test_one_line_may_be_several_rows(tmp_path, chunks):
    chunks(50)
    rows = [{"id": at, "choices": ["b", "x"][: at % 3]} for at in range(9)]
    path = written(tmp_path, [*lines_of(rows), BROKEN])
    file = looked_through(path, reshape=choices)
    frame = collected(file)
    expected = [(row["id"], text) for row in rows for text in row["choices"]]
    assert frame.select("id", "completion").rows() == [*expected, (None, None)]
    assert sum(unit.rows for unit in file.units) == len(expected) + 1 == file.bad[0].row + 1
    assert pl.concat([file.scan(at, at + 1) for at in range(len(file.units))]).collect().equals(frame)


def choices(line):
    return [{"id": line["id"], "completion": text} for text in line["choices"]]


PACKED = {"gzip": gzip.compress, "zstd": lambda data: pa.compress(data, "zstd", asbytes=True)}


@pytest.mark.parametrize("name", ["rows.jsonl.gz", "rows.ndjson.zst", "rows.gz", "rows.jsonl"])
@pytest.mark.parametrize("pack", PACKED.values(), ids=PACKED)
def test_compressed_lines_are_read_as_plain_ones(tmp_path, chunks, pack, name):
    chunks(600)
    lines = [*lines_of([PLAIN | {"n": at} for at in range(50)]), BROKEN, *GOOD]
    plain = looked_through(written(tmp_path, lines, "plain.jsonl"))
    # members of their own, one of them cut within a line
    content = (tmp_path / "plain.jsonl").read_bytes()
    path = written(tmp_path, pack(content[:1001]) + pack(content[1001:]) + pack(b""), name)
    file = looked_through(path)
    assert collected(file).equals(collected(plain))
    assert [(bad.row, bad.line, bad.offset) for bad in file.bad] == [
        (bad.row, bad.line, bad.offset) for bad in plain.bad
    ]
    assert len(file.units) == 1
    assert file.scan(1, 1).collect().height == 0
    assert file.scan(0, 1).head(7).collect().equals(collected(plain).head(7))


def test_compressed_files_of_a_folder_are_found(tmp_path):
    written(tmp_path, gzip.compress(GOOD[0]), "a.jsonl.gz")
    written(tmp_path, GOOD[1], "b.jsonl")
    written(tmp_path, gzip.compress(b"x"), "c.csv.gz")
    assert assay.scan(tmp_path).collect()["id"].to_list() == [0, 1]


def test_an_archive_cut_short_is_named(tmp_path):
    for kind, pack in PACKED.items():
        for keep in [-1, -9, 40]:
            path = written(tmp_path, pack(b"".join(os.urandom(99).hex().encode() for _ in range(99)))[:keep], "a.jsonl")
            with pytest.raises(assay.InputError) as refused:
                assay.scan(path)
            assert refused.value.text == f"{path}: its {kind} bytes are cut short."


def test_decompression_is_bounded(tmp_path):
    for pack in PACKED.values():
        line = json.dumps({"completion": "b" * 10_000}).encode() + b"\n"
        bomb = written(tmp_path, pack(line * 300), "bomb.jsonl.gz")
        small = written(tmp_path, pack(line * 90), "small.jsonl.gz")
        with pytest.raises(
            assay.InputError, match=r"bomb\.jsonl\.gz: its first [\d,]+ bytes expand to .*`max_ratio` allows 200"
        ):
            assay.score(bomb, SPEC)
        assert assay.score(bomb, SPEC, max_ratio=1e6).height == 300
        assert assay.score(small, SPEC).height == 90
        with pytest.raises(assay.InputError, match=r"small.*expand to .*`max_uncompressed` allows 100,000\."):
            assay.score(small, SPEC, max_uncompressed=100_000)
        for wrong in ({"max_ratio": 0.5}, {"max_uncompressed": 0}, {"utf8": "ascii"}):
            with pytest.raises(assay.UsageError, match=f"{next(iter(wrong))}="):
                assay.score(small, SPEC, **wrong)


def test_a_file_that_changes_after_it_was_looked_through_is_refused(tmp_path):
    for change in ["append", "replace", "remove"]:
        path = written(tmp_path, GOOD)
        file = looked_through(path)
        if change == "append":
            path.write_bytes(path.read_bytes() + GOOD[0])
        elif change == "replace":
            path.write_bytes(path.read_bytes().replace(b"0", b"7"))
            os.utime(path, ns=(0, 0))
        else:
            path.unlink()
        with pytest.raises(
            (assay.InputError, pl.exceptions.ComputeError), match=r"rows\.jsonl: changed while it was read"
        ):
            collected(file)


def test_a_run_whose_input_changes_ends_with_its_name(tmp_path, monkeypatch):
    path = written(tmp_path, GOOD)

    def touched(*args, **options):
        os.utime(path, ns=(0, 0))
        return prepare(*args, **options)

    monkeypatch.setattr("assay.runs.score_file.prepare", touched)
    with pytest.raises(assay.InputError, match=r"rows\.jsonl: changed while it was read"):
        assay.score_file(path, SPEC, tmp_path / "out.parquet")
    assert [one.name for one in tmp_path.iterdir()] == ["rows.jsonl"]


def child(folder, *args, **options):
    command = [sys.executable, "-m", "assay", "score", "-", "--spec", "v.json", *args]
    (folder / "v.json").write_text(json.dumps(SPEC))
    (folder / "tmp").mkdir()
    path = os.pathsep.join([str(Path(assay.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "PYTHONPATH": path, "TMPDIR": str(folder / "tmp")}
    return subprocess.Popen(command, cwd=folder, env=env, stdin=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def test_lines_from_a_pipe_leave_nothing_behind(tmp_path):
    run = child(tmp_path, "--out", "out.parquet", "--max-bad-rows", "1")
    _, said = run.communicate(b"\n".join([*GOOD, BROKEN]))
    assert run.returncode == 0, said
    assert assay.read_provenance(tmp_path / "out.parquet")["inputs"][0]["name"] == "-"
    bad = pl.read_parquet(tmp_path / "out.parquet.bad_rows.parquet")
    assert bad.select("file", "line", "code").rows() == [("standard input", 5, "truncated_tail")]
    assert [one.name for one in (tmp_path / "tmp").iterdir()] == []


@pytest.fixture
def small_files():
    """Files end at 4,096 bytes, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_pipe_that_the_temporary_folder_cannot_take_is_refused_and_leaves_nothing(tmp_path, monkeypatch, small_files):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(assay.InputError) as caught:
        spool(io.BytesIO(b"x" * 10_000), "standard input")
    assert caught.value.fact == f"standard input: cannot be copied to {tmp_path}: File too large."
    assert not list(tmp_path.iterdir())


class Broken(io.RawIOBase):
    def read(self, _=-1):
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_that_there_is_no_temporary_folder_is_said_of_what_needs_it(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(assay.InputError, match=r"^standard input: cannot be copied to a temporary file: No such file"):
        spool(io.BytesIO(), "standard input")


def test_a_stream_that_cannot_be_read_is_not_blamed_on_the_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(assay.InputError, match=r"^standard input: Input/output error\.$"):
        spool(Broken(), "standard input")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_a_run_that_is_stopped_while_it_reads_a_pipe_leaves_nothing_behind(tmp_path, number):
    run = child(tmp_path)
    run.stdin.write(GOOD[0] * 100_000)
    run.stdin.flush()
    until(lambda: run.poll() is not None or any((tmp_path / "tmp").iterdir()))
    run.send_signal(number)
    # whoever writes to the pipe keeps it open, and writes nothing
    assert run.wait(PATIENCE) == {signal.SIGTERM: 143, signal.SIGINT: 130}[number]
    run.stdin.close()
    run.stderr.close()
    assert [one.name for one in (tmp_path / "tmp").iterdir()] == []


def test_a_plain_file_that_is_larger_than_allowed_is_refused(tmp_path):
    path = tmp_path / "large.jsonl"
    path.write_bytes((GOOD[0].strip() + b"\n") * 10)
    with pytest.raises(
        assay.InputError, match=rf"large\.jsonl: {path.stat().st_size} bytes; `max_uncompressed` allows 20"
    ):
        assay.scan(path, max_uncompressed=20)
    assert assay.scan(path, max_uncompressed="1MB").collect().height
