"""JSON documents: their records are read as the same records in JSON lines are, and what is no document of records is named."""

import gzip
import io
import json
import os
import re
import sys
import threading
from pathlib import Path

import polars as pl
import pytest
from cases import crossed, sized
from hypothesis import given, settings
from hypothesis import strategies as st
from web import Web

import assay
from assay.loading.formats import jsonl
from assay.loading.formats.documents import read_json
from assay.loading.formats.files import open_each
from assay.loading.formats.reading import Reading
from assay.loading.rollouts import open_rollouts

SPEC = {"id": "v", "checks": [{"type": "contains", "value": "b"}]}
ROWS = [{"completion": "a b", "id": 1, "x": {"k": [1, "]"]}}, {"completion": 'q"[{', "id": "2"}, {"completion": None}]

TEXT = st.text(st.sampled_from('ab"\\:,{}[] \n\t\x00\x1f\x7fé\u2028😀\ud83d\ude00n1'), max_size=6)
LEAF = st.one_of(TEXT, st.integers(), st.floats(), st.booleans(), st.none(), st.sampled_from([2**63, 10**30, -0.0]))
CHAT = st.lists(st.fixed_dictionaries({"role": TEXT, "content": TEXT}), max_size=2)
VALUE = st.one_of(LEAF, CHAT, st.lists(LEAF, max_size=3), st.dictionaries(st.sampled_from(["k", "a", ""]), LEAF))
ROW = st.dictionaries(st.sampled_from(["completion", "a", "k", "", "é", "answer", "metadata", 'q"', "b\\"]), VALUE)
HOSTILE = [
    *(b'{"a": 1, "a": 2}', b'{"a": "x", "a": null}', b'{"\\u0061": 1}', b'{"b\\\\": 1}', b'{"x\\"a": 1}'),
    *(b'{"a": "\\ud800"}', b'{"a": "\\\\ud83d\\ude00"}', b'{"a": 1e400}', b'{"a": NaN}', b'{"a": -Infinity}'),
    *(b'{"a": -0}', b'{"a": 9007199254740993}', b'{"a": "x\xff"}', b'{"a": [1, "x"]}', b'{"a": ": \\": "}', b"{}"),
    *(
        b'{"a": "\\"a\\": 1"}',
        b'{"a": "\\\\\\\\", "k": "x"}',
        b'{"answer": NaN}',
        b'{"answer": 1.0}',
        b'{"a":{"k":{}}}',
    ),
    *(
        b'{"a": ' + b"[" * 600 + b"]" * 600 + b"}",
        b'{"a": ' + b"1" * 5000 + b"}",
        b'{"a": "]}"}',
        b"[1]",
        b"null",
        b'"x"',
    ),
    rb'{"\ud800": 1, "\udfff": 2}',
]
GAP = st.sampled_from([b"", b" ", b"\n", b"\r\n\t", b"  \n\n"])


def said(path, **options):
    with pytest.raises((assay.InputError, assay.BadRowsError)) as refused:
        assay.score(path, SPEC, **options)
    return refused.value.text


def written(folder, content, name="rows.json"):
    path = Path(folder, name)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def seen(path):
    """What a file holds, but for the places of lines."""
    try:
        (file,) = open_each([path], Reading())
    except assay.InputError as error:
        return str(error).replace(str(path), ""), [], [], []
    frame = file.scan().collect()
    bad = [(row.row, row.code, row.reason, row.sample.strip()) for row in file.bad]
    return repr(frame.schema), repr(frame.to_dicts()), bad, [re.sub(r"\A\S+?: ", "", note) for note in file.notes]


@settings(max_examples=sized(600, 20), deadline=None)
@given(
    st.lists(ROW.map(lambda row: json.dumps(row).encode()) | st.sampled_from(HOSTILE), min_size=1, max_size=8),
    st.lists(GAP, min_size=4, max_size=4),
    st.booleans(),
)
def test_an_array_is_read_as_the_same_lines_are(tmp_path_factory, records, gaps, bom):
    records = [b'{"completion": "first"}', *records]
    folder = tmp_path_factory.mktemp("json")
    before, after, inner, end = gaps
    start = b"\xef\xbb\xbf" if bom else b""
    # gaps in the brackets of a record, too
    spread = [b"{" + inner + record[1:-1] + inner + b"}" if record[:1] == b"{" else record for record in records]
    array = b"[" + before + (before + b"," + after).join(spread) + after + b"]" + end
    expected = seen(written(folder, start + b"\n".join(records) + b"\n", "rows.jsonl"))
    samples = [sample for *_, sample in expected[2]]
    for content in (start + before + array, start + b'{"n": 1,' + after + b' "rows":' + array + b', "x": {}}'):
        schema, rows, bad, notes = seen(written(folder, content))
        assert (schema, rows) == expected[:2]
        assert [row[:3] for row in bad] == [row[:3] for row in expected[2]]
        assert [sample[1:].lstrip()[:3] for *_, sample in bad] == [sample[1:4] for sample in samples]
        assert [note for note in notes if not note.startswith("the rows are")] == expected[3]


@pytest.mark.parametrize(
    ("indent", "end", "ending"),
    crossed(
        [(None, ""), (2, ""), (2, "\n"), (None, "\n"), (None, "\r\n\r\n"), (2, "\r\n\r\n")], ["json", "json.gz", "JSON"]
    ),
)
def test_documents_are_read_in_memory_to_files_and_in_parts(tmp_path, indent, end, ending):
    text = json.dumps(ROWS, indent=indent).replace("\n", "\r\n" if "\r" in end else "\n") + end
    path = written(tmp_path, gzip.compress(text.encode()) if ending == "json.gz" else text, f"rows.{ending}")
    lines = written(tmp_path, "\n".join(map(json.dumps, ROWS)), "rows.jsonl")
    expected = assay.score(lines, SPEC, keep="*")
    assert assay.score(path, SPEC, keep="*").equals(expected)
    assert assay.score([path, lines], SPEC, keep="*").equals(pl.concat([expected, expected]))
    assay.score_file(path, SPEC, tmp_path / "out.parquet", keep="*")
    assert pl.read_parquet(tmp_path / "out.parquet").equals(expected)
    for _ in range(2):  # the second time it is resumed
        assay.score_file([path, lines], SPEC, f"{tmp_path}/parts/", keep="*", part_bytes=100)
    assert pl.read_parquet(tmp_path / "parts" / "*.parquet").equals(pl.concat([expected, expected]))


def test_an_object_is_a_record_or_holds_one_list_of_records(tmp_path):
    for content, rows, note in [
        ('{"completion": "b", "n": 1}', 1, ""),
        ('{"completion": [{"role": "assistant", "content": "b"}], "answer": ["x"]}', 1, ""),
        ('{"answer": ["x"], "completion": [{"role": "assistant", "content": "b"}]}', 1, ""),
        ('{"completion": "b", "sources": [{"u": 1}, {"u": 2}]}', 1, ""),
        ('{"data": [{"completion": "b"}, {"completion": "b"}]}', 2, "data"),
        ('{"schema": {"fields": [{"n": 1}]}, "da\\"ta": [{"completion": "b"}], "tags": ["x"]}', 1, 'da"ta'),
        ('{"x": [], "data": [{"completion": "b"}], "messages": [{"role": "user"}]}', 1, "data"),
    ]:
        path = written(tmp_path, content)
        opened = open_rollouts(path, Reading())
        assert assay.score(path, SPEC)["reward"].to_list() == [1.0] * rows
        told = [f"{path}: the rows are the elements of its list `{note}`"] if note else []
        assert [one for one in opened.notes if "the rows are" in one] == told


COLUMNS = "the object holds columns, not records.\n\nWrite an array of objects; with pandas: df.to_json(PATH, orient='records')."


def test_what_is_no_document_of_records_is_refused_with_its_place_and_a_way_out(tmp_path):
    trailing_comma = (  # in the words of Python's own reader
        "Illegal trailing comma before end of array (column 21)"
        if sys.version_info >= (3, 13)
        else "Expecting value (column 22)"
    )
    for content, message in [
        ("", ": the file is empty."),
        ("\ufeff \n", ": the file is blank."),
        ("[]", ": the array is empty."),
        ('{"rows": []}', f": {COLUMNS}"),
        ("{}", ": the object is empty."),
        (
            '{"id": "v", "checks": [{"type": "json_valid"}]}',
            ": is a verifier's spec, not rollouts.\n\nGive it with --spec.",
        ),
        ("3", ": a JSON document must be an array or an object."),
        ('["b", 1]', ": the array holds no objects."),
        ('{"completion": {"0": "a", "1": "b"}, "n": {"0": 1, "1": 2}}', f": {COLUMNS}"),
        ('{"completion": ["a", "b"], "n": [1, 2]}', f": {COLUMNS}"),
        ('{"columns": ["completion"], "index": [0], "data": [["a"]]}', f": {COLUMNS}"),
        ('{"a": [{"n": 1}], "b": [{"n": 1}]}', ": has several lists of objects: a, b.\n\nKeep one: jq '.a' "),
        ('{"completion": "b"}\n{"completion": "b"}', ": holds JSON objects one after another, not one array"),
        ('[{"completion": "b"},\n {"completion": }]', ":2: not valid JSON: Expecting value (column 17)."),
        ('[\n{"completion": "b",\n"x": tru}, {"n": 1}]', ":3: not valid JSON: Expecting value (column 6)."),
        ('[{"completion": "b"},]', f":1: not valid JSON: {trailing_comma}."),
        ('[{"completion": "b"} {"n": 1}]', ":1: not valid JSON: Expecting ',' delimiter (column 22)."),
        ('[{"completion": "b"}] x', ":1: not valid JSON: Extra data (column 23)."),
        ('{"completion" "b"}', ":1: not valid JSON: Expecting ':' delimiter (column 15)."),
        ('{"completion": "b\nc"}', ":1: not valid JSON: Invalid control character at (column 18)."),
        ("{3: 4}", ":1: not valid JSON: Expecting property name enclosed in double quotes (column 2)."),
        ('[{"completion": "b"}}', ":1: not valid JSON: Expecting ',' delimiter (column 21)."),
        ("completion,n\nb,1\n", ": is a table with a delimiter, not JSON.\n\nName it .csv or .tsv."),
        ("<!doctype html>", ": is an HTML or XML page, not JSON."),
        ("hello", ': is text that begins with "hello", not JSON.'),
        (b"PAR1\x15\x04", ": is a parquet file, not JSON.\n\nName it .parquet."),
        ('[{"completion": "b"}]'.encode("utf-16"), ": is UTF-16 text, not JSON.\n\nSave it as UTF-8."),
    ]:
        path = written(tmp_path, content)
        assert said(path).startswith(f"{path}{message}")


def test_a_document_cut_off_anywhere_is_refused(tmp_path):
    whole = json.dumps(ROWS, indent=1).encode()
    for end in range(1, len(whole)):
        message = said(written(tmp_path, whole[:end]))
        assert re.match(r"\S+/rows.json:\d+: not valid JSON: ", message), message
    assert said(written(tmp_path, whole[:-1])).endswith("\n\nThe file may be cut off.")


def test_a_record_that_is_no_object_is_a_bad_row_with_the_line_of_the_document(tmp_path):
    path = written(tmp_path, '[\n\n{"completion": "b"},\n\n3,\n{"completion":\n NaN, "x": 1, "x": 2}]')
    assert f"\n  {path}:5: a line must be a JSON object, not int.\n" in said(path)
    opened = open_rollouts(path, Reading(max_bad_rows=1))
    (bad,) = opened.bad
    assert (bad.row, bad.line) == (1, 5)
    assert path.read_bytes()[bad.offset :].strip().startswith(b"3")
    assert [note.partition(": ")[0] for note in opened.notes] == [f"{path}:6", f"{path}:6"]
    assert assay.score(path, SPEC, max_bad_rows=1)["reward"].to_list() == [1.0, None, None]


def test_a_document_larger_than_the_memory_is_refused_with_both_ways_out(tmp_path):
    path = tmp_path / "rows.json"
    with path.open("wb") as file:
        file.truncate(1 << 28)
    message = said(path, memory_limit="600MB")
    assert message.startswith(f"{path}: 268,435,456 bytes; a document is read whole, and the memory limit allows ")
    assert message.endswith(f"--memory-limit, or make JSON lines of it: jq -c '.[]' {path} > NAME.jsonl")
    assert "a bomb" in f"{said(written(tmp_path, gzip.compress(bytes(1 << 24)), 'a.json.gz'))} a bomb"


def test_files_of_other_tools_are_recognised_in_documents(tmp_path):
    rows = [{"input": "q", "output": "b", "gts": "b", "score": 1.0, "step": 1}]
    path = written(tmp_path, json.dumps(rows))
    assert assay.score(path, {"checks": [{"type": "equals", "value": "b"}]})["reward"].to_list() == [1.0]
    with Web({"/rows.json": path.read_bytes()}) as web:
        opened = open_rollouts(f"{web.url}/rows.json?sig=x", Reading())
        assert any(note.startswith("read as verl-dump (detected)") for note in opened.notes)
        assert opened.frame.collect()["completion"].to_list() == ["b"]


def test_in_a_folder_a_document_beside_rollouts_is_about_them(tmp_path):
    written(tmp_path, '{"completion": "b"}\n', "results.jsonl")
    written(tmp_path, '{"env_id": "x"}', "metadata.json")
    assert assay.score(tmp_path, SPEC).height == 1
    (tmp_path / "results.jsonl").unlink()
    written(tmp_path, json.dumps(ROWS), "metadata.json")
    assert assay.score(tmp_path, SPEC).height == 3


def test_a_broken_document_is_skipped_on_demand(tmp_path):
    written(tmp_path, json.dumps(ROWS), "a.json")
    written(tmp_path, "[", "b.json")
    summary = assay.score_file(tmp_path, SPEC, tmp_path / "out.parquet", skip_bad_files=True)
    assert summary.rows == 3
    assert any(note.startswith("skipped: ") and "b.json:1: not valid JSON" in note for note in summary.notes)


def test_a_pipe_with_the_name_of_a_document_is_one(tmp_path):
    pipe = tmp_path / "rows.json"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(json.dumps(ROWS, indent=1).encode()))
    writer.start()
    assert assay.score(pipe, SPEC)["reward"].to_list() == [1.0, 0.0, None]
    writer.join()


def test_tasks_may_be_a_document(tmp_path):
    tasks = written(tmp_path, '{"tasks": [{"task_id": 1, "answer": "b"}]}', "tasks.json")
    scored = assay.score([{"completion": "b", "task_id": "1"}], SPEC, tasks=tasks, keep=["answer"])
    assert scored["answer"].to_list() == ["b"]


def test_the_bytes_of_records_stay_where_they_are():
    data = bytearray(b'\xef\xbb\xbf{"n": 1, "rows" : [ {"a":\n"]"} ,\r\n{"b": [\n1]}\n] , "x": 2}\n')
    document = read_json(data, "x")
    assert len(document.data) < len(data)
    records = [(line.strip(b" \xef\xbb\xbf"), document.data.find(line)) for line in document.data.splitlines()]
    assert [record for record, _ in records] == [b'{"a": "]"}', b'{"b": [ 1]}']
    assert list(document.places) == [1, 3]
    assert document.data.find(b'"b"') == data.find(b'"b"')


ARRAY = (
    "is a JSON array, not JSON lines.\n\nName it .json, or write a line for each object: jq -c '.[]' OLD > NEW.jsonl"
)


def test_a_file_of_another_kind_named_jsonl_is_told_as_what_it_is(tmp_path):
    for content, message in [
        (json.dumps(ROWS), ARRAY),
        (json.dumps(ROWS, indent=2), ARRAY),
        ("\ufeff\n[\n" + ",\n".join(map(json.dumps, ROWS)) + "\n]\n", ARRAY),
        ('[{"completion": "b"},\n{"completion": "b"}]', ARRAY),
        (json.dumps(ROWS[0], indent=2), "is JSON that goes over several lines, not JSON lines.\n\nName it .json if"),
        (
            "Dear all,\nhere are the results.\n",
            'is text that begins with "Dear all,", not JSON lines.\n\nEach line must',
        ),
        ("completion,n\nb,1\nc,2\n", "is a table with a delimiter, not JSON lines.\n\nName it .csv or .tsv."),
        ("completion;n\nb;1\n", "is a table with a delimiter, not JSON lines."),
        ("  <html>", "is an HTML or XML page, not JSON lines."),
        ('{"completion": "b"}\n'.encode("utf-16"), "is UTF-16 text, not JSON lines."),
        (b"PK\x03\x04\x14\x00", "is a workbook or another zip archive, not JSON lines."),
        (b"\x00\x01\x02\n\x00", "is binary data, not JSON lines."),
        ("version https://git-lfs.github.com/spec/v1\noid x\n", "is a Git LFS pointer, not JSON lines."),
    ]:
        path = written(tmp_path, content, "rows.jsonl")
        assert said(path).startswith(f"{path}: {message}")
        packed = written(tmp_path, gzip.compress(path.read_bytes()), "rows.jsonl.gz")
        assert said(packed).startswith(f"{packed}: {message}")
        good = written(tmp_path, '{"completion": "b"}\n', "a.jsonl")
        assert assay.score([good, path], SPEC, skip_bad_files=True)["reward"].to_list() == [1.0]


def test_json_lines_that_are_malformed_are_told_by_their_lines(tmp_path):
    for content in [
        '{"completion": "b"',
        '{"completion": "b"\n{"completion": }\n',
        '[1, 2]\n{"completion": "b"}\n',
        'hello\n{"completion": "b"}\n',
        '"b"\n"c"\n',
        '{"completion": "b"}\n[\n',
    ]:
        path = written(tmp_path, content, "rows.jsonl")
        assert "malformed line" in said(path)
        assert str(path) in said(path).splitlines()[1]


def test_text_keeps_its_place_among_files_where_bad_rows_are_allowed(tmp_path):
    path = written(tmp_path, "hello\n", "a.jsonl")
    good = written(tmp_path, '{"completion": "b"}\n', "b.jsonl")
    assert assay.score([path, good], SPEC, max_bad_rows=1)["reward"].to_list() == [None, 1.0]


def test_a_large_array_named_jsonl_is_told_before_it_is_read_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(jsonl, "MOST_BAD", 100)
    rows = [{"completion": "b", "n": at} for at in range(1000)]
    path = written(tmp_path, json.dumps(rows, indent=1), "rows.jsonl")
    assert said(path) == f"{path}: {ARRAY}"


def test_an_array_on_standard_input_is_told(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(ROWS).encode())))
    assert said("-").startswith("standard input: is a JSON array, not JSON lines.")
