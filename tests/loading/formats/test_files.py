"""Files: which ones a path means, what is read from them, and what is said about those that cannot be read."""

import json

import polars as pl
import pytest
from cases import sized
from growth import is_linear

import assay
from assay.expressions.completion import completion_text
from assay.thresholds import THRESHOLDS

SPEC = {"id": "v", "checks": [{"type": "contains", "value": "b"}]}
WRITERS = {
    "rows.parquet": pl.DataFrame.write_parquet,
    "rows.arrow": pl.DataFrame.write_ipc,
    "stream.arrow": pl.DataFrame.write_ipc_stream,
    "rows.csv": pl.DataFrame.write_csv,
    "rows.jsonl": pl.DataFrame.write_ndjson,
}


def written(folder, content, name="rows.jsonl"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    return path


def texts(source):
    """The completions as a check reads them."""
    return [completion_text(row["completion"]) for row in assay.scan(source).collect().to_dicts()]


def said(source):
    with pytest.raises((assay.InputError, assay.BadRowsError)) as refused:
        assay.score(source, SPEC)
    return refused.value.text


def test_a_name_that_is_not_utf_8_is_refused_and_may_be_written_to(tmp_path):
    frame = pl.DataFrame({"completion": ["b"]})
    for name, write in WRITERS.items():
        write(frame, tmp_path / name)
        odd = tmp_path / f"\udcff{name}"
        (tmp_path / name).rename(odd)
        shown = str(odd).replace("\udcff", "\\xff")
        assert (
            said(odd)
            == f"{shown}: Polars cannot open a file whose name is not UTF-8.\n\nRename it, or open it through a link."
        )
        (tmp_path / "link").unlink(missing_ok=True)
        (tmp_path / f"link-{name}").symlink_to(odd)
        assert texts(tmp_path / f"link-{name}") == ["b"]
    assay.score_file(frame, SPEC, tmp_path / "\udcff.parquet")
    assert assay.read_provenance(tmp_path / "\udcff.parquet")["rows"] == 1


def test_hidden_and_unfinished_files_are_left_out_of_folders_and_globs(tmp_path):
    for pattern in ["", "*", "*.jsonl*", "**/*"]:
        for name in ("b.jsonl", "a.jsonl", "_c.jsonl", ".d.jsonl", "e.jsonl.tmp", "f.tmp"):
            written(tmp_path, f'{{"completion": "{name}"}}\n', name)
        assert texts(tmp_path / pattern) == ["a.jsonl", "b.jsonl"]
        assert texts(tmp_path / "_c.jsonl") == ["_c.jsonl"]


def test_a_folder_of_two_formats_is_refused(tmp_path):
    written(tmp_path, "completion\nb\n", "a.csv")
    written(tmp_path, '{"completion": "b"}\n', "b.jsonl")
    assert said(tmp_path) == f"{tmp_path}: the folder holds csv and jsonl files.\n\nName one kind: FOLDER/*.jsonl"
    assert texts(tmp_path / "*.csv") == texts([tmp_path / "b.jsonl"]) == ["b"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rolouts.jsonl", ": no such file or folder.\n\nDid you mean `rollouts.jsonl`?"),
        ("zzz.csv", ": no such file or folder."),
        ("zzz", ': no such file or folder.\n\nTexts that are to be scored stand in rows: [{{"completion": "a text"}}]'),
        ("no/such/rollouts.jsonl", ": no such file or folder."),
        ("empty", ": no rollout files found.\n\nKnown suffixes: {}"),
        ("*.parquet", ": no rollout files found.\n\nKnown suffixes: {}"),
        ("notes.txt", ": unknown file format.\n\nKnown suffixes: {}"),
    ],
)
def test_a_path_that_means_no_rollouts_is_refused(tmp_path, name, message):
    written(tmp_path, '{"completion": "b"}\n', "rollouts.jsonl")
    written(tmp_path, "completion: b\n", "notes.txt")
    (tmp_path / "empty").mkdir()
    endings = ".parquet, .pq, .jsonl, .ndjson, .jsonl.gz, .jsonl.zst, .ndjson.gz, .ndjson.zst, .json, .json.gz, .json.zst, .xlsx, .eval, .arrow, .ipc, .feather, .csv, .tsv"
    assert said(tmp_path / name) == f"{tmp_path / name}{message.format(endings)}"


@pytest.mark.parametrize(("name", "write"), WRITERS.items(), ids=WRITERS)
def test_names_with_the_signs_of_a_glob_are_names(tmp_path, name, write):
    folder = tmp_path / "step [1] *?"
    folder.mkdir()
    write(pl.DataFrame({"completion": ["b"]}), folder / f"[1]{name}")
    assert texts(folder / f"[1]{name}") == texts(folder) == ["b"]


def test_an_unknown_ending_is_no_matter_where_the_first_bytes_tell(tmp_path):
    for name in ["rollouts", "rollouts.dat"]:
        for write in [pl.DataFrame.write_parquet, pl.DataFrame.write_ipc]:
            write(pl.DataFrame({"completion": ["b", None]}), tmp_path / name)
            assert texts(tmp_path / name) == ["b", None]


@pytest.mark.parametrize(("name", "write"), WRITERS.items(), ids=WRITERS)
def test_a_column_that_a_file_lacks_is_null_there(tmp_path, name, write):
    write(pl.DataFrame({"completion": ["a"], "id": [1]}), tmp_path / f"1-{name}")
    write(pl.DataFrame({"extra": [0.5], "completion": ["b"]}), tmp_path / f"2-{name}")
    a_number, half = ("1", "0.5") if name == "rows.csv" else (1, 0.5)
    assert assay.scan(tmp_path).select("completion", "id", "extra").collect().rows() == [
        ("a", a_number, None),
        ("b", None, half),
    ]


CHAT = [{"role": "assistant", "content": "b"}]
DRIFT = {
    "text and messages": ("completion", "b", CHAT),
    "text and parts": ("completion", CHAT, [{"role": "assistant", "content": [{"type": "text", "text": "b"}]}]),
    "text and list": ("info", "b", ["b"]),
    "number and list": ("info", 1, [1]),
    "text and struct": ("info", "{}", {"k": 1}),
    "number and struct": ("info", 1, {"k": 1}),
    "list and struct": ("info", [1], {"k": 1}),
}


@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow"])
@pytest.mark.parametrize(("column", "one", "other"), DRIFT.values(), ids=DRIFT)
def test_types_that_cannot_be_reconciled_are_refused_with_both_files(tmp_path, name, column, one, other):
    for number, value in enumerate((one, one, other)):
        frame = pl.DataFrame({"completion": ["b"]}).with_columns(pl.Series(column, [value]))
        WRITERS[name](frame, tmp_path / f"{number}-{name}")
    with pytest.raises(assay.InputError) as refused:
        assay.scan(tmp_path)
    assert refused.value.text.startswith(f"`{column}` is ")
    assert f" in {tmp_path}/0-{name} and " in refused.value.text
    assert f" in {tmp_path}/2-{name}." in refused.value.text


def test_a_file_without_rows_gives_an_empty_frame_with_every_column(tmp_path):
    for name in [name for name in WRITERS if name != "rows.jsonl"]:
        WRITERS[name](pl.DataFrame(schema={"id": pl.String, "completion": pl.String}), tmp_path / name)
        assert assay.score(tmp_path / name, SPEC).schema == {
            "id": pl.String,
            "reward": pl.Float64,
            "passed": pl.Boolean,
            "feedback": pl.String,
            "error": pl.String,
            "score/v": pl.Float64,
            "check/v/contains": pl.Float64,
        }


def test_a_file_cut_short_is_named(tmp_path):
    for name in ["rows.parquet", "rows.arrow", "stream.arrow"]:
        for keep in [0, 4, 20, -9, -1]:
            WRITERS[name](pl.DataFrame({"completion": ["b"] * 50}), tmp_path / name)
            whole = (tmp_path / name).read_bytes()
            assert said(written(tmp_path, whole[:keep], name)).startswith(f"{tmp_path / name}: ")


def test_a_web_page_in_place_of_a_file_is_named(tmp_path):
    for name in ["rows.parquet", "rows.arrow", "rows.jsonl"]:
        path = written(tmp_path, "<!doctype html><html><body>502 Bad Gateway</body></html>\n", name)
        assert f"{path}" in said(path).splitlines()[0]


def test_a_csv_that_breaks_its_rules_is_named(tmp_path):
    for content in [b"", b"completion,id\nb,1,2\n", b"completion\nb\xff\n"]:
        path = written(tmp_path, content, "rows.csv")
        assert str(path) in said(path)


def test_text_in_a_csv_stays_what_it_is(tmp_path):
    for mapping in [{}, {"completion": "response"}]:
        name = mapping.get("completion", "completion")
        path = written(tmp_path, f'\ufeffid,{name}\r\n1,007\r\n2,1e3\r\n3,"a\nb, ""c"""\r\n4,\r\n5,""\r\n', "rows.csv")
        numbers = written(tmp_path, f"id,{name}\n1,007\n2,1e3\n", "numbers.csv")
        found = assay.scan(path, mapping=mapping).select("id", "completion").collect().rows()
        assert found == [("1", "007"), ("2", "1e3"), ("3", 'a\nb, "c"'), ("4", None), ("5", "")]
        assert assay.scan(numbers, mapping=mapping).select("completion").collect().rows() == [("007",), ("1e3",)]


def test_an_id_in_a_csv_is_not_retyped(tmp_path):
    path = written(tmp_path, "id,n,completion\n001,1.50,b\n1e5,2,b\n", "rows.csv")
    assert assay.score(path, SPEC).select("id", "n").rows() == [("001", "1.50"), ("1e5", "2")]


BOT = '[{"role": "assistant", "content": "b"}]'
TYPED = ("true", "1", "0.5", "[1]", '"x"', '{"k": []}', "null")
HUGE = ("NaN", "-Infinity", "1e400", "1" * 50)
LINES = {
    "escapes": ([r'"\ud83d\ude00\u0000\b\f\/\"\\\u2028"'], ['😀\x00\b\f/"\\\u2028']),
    "raw characters": (['"\x7f\x85\u2028\ufeff😀"'], ["\x7f\x85\u2028\ufeff😀"]),
    "lone surrogates": ([r'"a\ud800b"', r'"\udc00\ud83d"'], ["a\ufffdb", "\ufffd\ufffd"]),
    "null and empty": (["null", '""', '"a"'], [None, "", "a"]),
    "one key twice": (['"a", "completion": "b"'], ["b"]),
    "text like messages": ([json.dumps(BOT), r'"\"completion\": [1]"'], [BOT, '"completion": [1]']),
    "text and messages": (['"a"', BOT, "[]", "null"], ["a", "b", None, None]),
    "messages and text": ([BOT, '"a", "id": 7'], ["b", "a"]),
    "a carriage return is a space": (["\r" + BOT, '"a"\r'], ["b", "a"]),
    "content as text and as parts": (
        [
            BOT,
            '[{"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}]}]',
            '[{"role": "assistant", "content": null, "calls": 1}]',
        ],
        ["b", "a", ""],
    ),
    "null messages": (["[null]", '[{"content": "a"}, null]', f"{BOT[:-1]}, null]"], [None, None, "b"]),
    "null messages beside parts": (["[null]", '[{"role": "assistant", "content": [{"text": "b"}]}]'], [None, "b"]),
    "numbers that no column of numbers holds": ([f'"a", "n": {n}' for n in HUGE], ["a"] * 4),
    "values of several types": ([f'"a", "n": {n}' for n in TYPED], ["a"] * 7),
}
"""What stands after `"completion":` in each line, and the text of it."""


def test_a_line_of_jsonl_means_what_json_says_alone_and_among_others(tmp_path):
    for values, expected in LINES.values():
        lines = [f' {{"completion" :{value}}}\t\n' for value in values]
        assert texts(written(tmp_path, "".join(lines))) == expected
        assert [texts(written(tmp_path, line))[0] for line in lines] == expected


def test_what_editors_and_broken_pipes_leave_in_jsonl_does_no_harm(tmp_path):
    for content, expected in [
        (b'\xef\xbb\xbf{"completion": "a"}\n', ["a"]),
        (b'\r\n{"completion": "a\\r\\n"}\r\n\n \t\n{"completion": "b"}', ["a\r\n", "b"]),
        (b'{"completion": "\xffa"}\n{"completion": "\xf0\x9f\x98"}\n', ["\ufffda", "\ufffd"]),
    ]:
        assert texts(written(tmp_path, content)) == expected


def test_values_of_jsonl_are_those_of_python_s_json(tmp_path):
    lines = [
        '{"completion": "a", "f": 0.30000000000000004, "i": -9223372036854775808, "": {"a.b": [null, true]}, "s": []}',
        '{"f": 5e-324, "completion": "b", "i": 9007199254740993, "": {"a.b": []}, "s": [["\\u00e9", null]]}',
        '{"completion": "2024-01-01", "f": -1.7976931348623157e308, "i": null, "": {"a.b": null}, "s": [[]]}',
        '{"completion": "c", "f": -0.0, "": null}',
    ] * 500
    path = written(tmp_path, "\n".join([*lines, '{"completion": "z", "late": "007"}']))
    *found, last = assay.scan(path).select("completion", "f", "i", "", "s", "late").collect().to_dicts()
    assert repr(found) == repr([{key: json.loads(line).get(key) for key in last} for line in lines])
    assert last == {"completion": "z", "f": None, "i": None, "": None, "s": None, "late": "007"}


def test_a_line_that_is_no_json_object_is_named(tmp_path):
    for first in ['{"completion": "a"}', f'{{"completion": {BOT}, "info": ""}}']:
        for last, line in [
            ('{"completion": }', 3001),
            ('{"completion": "b', 3001),
            ("{'completion': 'b'}", 3001),
            ('{"completion": "b"}\n\n{"completion": "b"} {}\n', 3003),
            ('["completion"]', 3001),
            ("null", 3001),
            (f'{{"completion": "b", "x": {"[" * 100_000}{"]" * 100_000}}}', 3001),
        ]:
            path = written(tmp_path, f"{first}\n" * 3000 + last)
            assert said(path).startswith(f"1 malformed line (limit 0; see --max-bad-rows).\n  {path}:{line}: ")


def test_jsonl_of_nothing_is_refused(tmp_path):
    assert said(written(tmp_path, "")) == f"{tmp_path}/rows.jsonl: the file is empty."


@pytest.mark.parametrize("other", ["*.jsonl", "x/../a.jsonl", "link.jsonl"])
def test_a_file_named_twice_is_refused(tmp_path, other):
    (tmp_path / "a.jsonl").write_text('{"completion": "x"}\n')
    (tmp_path / "x").mkdir()
    if other == "link.jsonl":
        (tmp_path / other).symlink_to("a.jsonl")
    with pytest.raises(assay.InputError, match=r"\.jsonl is listed twice"):
        assay.scan([tmp_path / "a.jsonl", tmp_path / other])


def test_a_column_whose_values_differ_deep_inside_does_not_stop_a_run(tmp_path):
    for lines in [
        ['{"completion": "a", "info": {"b": [{"c": 1}]}}', '{"completion": "b", "info": {"b": {"c": 1}}}'],
        ['{"completion": "a", "info": [{"a": "1"}, [], [["x"]]]}', '{"completion": "b", "info": [{"a": 2}]}'],
        ['{"completion": "a", "info": [["x"]]}', '{"completion": "b", "info": [{"x": 1}]}'],
        ['{"completion": "a", "info": {"k": true}}', '{"completion": "b", "info": {"k": 1}}'],
    ]:
        (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
        out = assay.score(tmp_path / "a.jsonl", {"checks": [{"type": "contains", "value": "b"}]})
        assert out["reward"].to_list() == [0.0, 1.0]


def test_a_null_key_of_a_schema_counts_wherever_it_stands(tmp_path):
    schema = '"expected_output_schema": {"d": {"t": 1}, "c": null}'
    (tmp_path / "a.jsonl").write_text(f'{{"completion": "{{\\"d\\": 1}}", {schema}}}\n')
    out = assay.score(tmp_path / "a.jsonl", {"checks": [{"type": "expected_output_schema"}]})
    assert out["feedback"].to_list() == ["expected_output_schema: missing keys: c"]


EXPECTING = {"id": "v", "checks": [{"type": "task_expectations"}, {"type": "expected_output_schema"}]}
STRUCTURED = {
    "objects": [{"expectations": [{"text": "b"}]}, {"expectations": [{"anyOf": ["x"], "message": "no x"}]}],
    "strings and objects in one list": [{"expectations": ["b", {"text": "b"}]}, {"expectations": [{"text": "x"}]}],
    "an object and its text": [{"expectations": [{"text": "b"}]}, '{"expectations": ["b"]}', None],
    "text only": ['{"expectations": [{"text": "b"}]}', None],
    "null": [None, None],
    "lists and numbers": [[1], 5, {"expectations": 5}, {"expectations": None}],
}


def test_structure_in_jsonl_is_json_text_the_same_alone_and_among_others(tmp_path):
    for values in STRUCTURED.values():
        schemas = [{"required": ["z"]}, {"properties": {"b": {}, "a": {}}}, {"a": None, "c": 1}, "{}"]
        rows = [
            {"completion": "b", "metadata": one, "expected_output_schema": two} for one in values for two in schemas
        ]
        lines = [json.dumps(row) + "\n" for row in rows]
        path = written(tmp_path, "".join(lines))
        frame = assay.scan(path).collect()
        assert frame.select("metadata", "expected_output_schema").rows() == [
            tuple(
                value if isinstance(value, str | None) else json.dumps(value)
                for value in (row["metadata"], row["expected_output_schema"])
            )
            for row in rows
        ]
        assert {frame.schema[name] for name in ("metadata", "expected_output_schema")} == {pl.String}
        scored, some = assay.score(path, EXPECTING).rows(), slice(None, None, sized(1, 3))
        assert scored == assay.score(rows, EXPECTING).rows()
        assert scored[some] == [
            assay.score(written(tmp_path, line, "one.jsonl"), EXPECTING).row(0) for line in lines[some]
        ]


def test_a_column_that_is_read_as_structure_or_gives_way_to_one_is_treated_by_what_it_becomes(tmp_path):
    for name in ["info", "metadata"]:
        rows = [{"completion": "b", name: {"expectations": ["b", {"text": "b"}]}}, {"completion": "b", name: {"k": 1}}]
        path = written(tmp_path, "".join(json.dumps(row) + "\n" for row in rows))
        for source in (path, rows):
            frame = assay.scan(source, mapping={"metadata": name}).collect()
            assert frame["metadata"].to_list() == [json.dumps(row[name]) for row in rows]


def test_shards_whose_structure_drifts_are_one_dataset(tmp_path):
    for number, metadata in enumerate([{"a": 1}, {"a": {"b": 2}}, '{"a": 1}', None, {"a": "\ud800"}]):
        written(tmp_path, json.dumps({"completion": "b", "metadata": metadata}) + "\n", f"{number}.jsonl")
    assert assay.scan(tmp_path).collect()["metadata"].to_list() == [
        *('{"a": 1}', '{"a": {"b": 2}}', '{"a": 1}', None, '{"a": "\\ud800"}')
    ]


@pytest.mark.parametrize("where", ["info", "metadata", "prompt"])
def test_very_many_fields_become_json_text_in_time_that_grows_with_the_file(tmp_path, where):
    def read(count):
        infos = [{f"field {n * 20 + m}": m for m in range(20)} for n in range(count)]
        rows = [{"completion": "b", where: [info] if where == "prompt" else info} for info in infos]
        path = written(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), f"{count}.jsonl")

        def check():
            assert assay.scan(path).collect()[where].to_list() == [json.dumps(row[where]) for row in rows]
            assert assay.scan(rows).collect()[where].to_list() == [json.dumps(row[where]) for row in rows]

        return check

    assert is_linear(read, 600)


def test_a_file_read_by_python_streams_with_one_schema(tmp_path, monkeypatch):
    monkeypatch.setattr(THRESHOLDS, "first_chunk", 100)
    monkeypatch.setattr(THRESHOLDS, "chunk", 100)
    values = [None, 1, 2.5, 3, None, 2**53]
    kinds = [[], [None], [1], [0.5], None, [2]]
    rows = [
        {"completion": "b", "metadata": {}, "n": n, "l": {"x": inner}, f"c{at}": at, "m": [n, "x"][at == 5]}
        for at, (n, inner) in enumerate(zip(values, kinds, strict=True))
    ]
    path = written(tmp_path, "\n\n".join(json.dumps(row) for row in rows))
    frame = assay.scan(path)
    found = frame.collect()
    assert found["n"].to_list() == [None, 1.0, 2.5, 3.0, None, 2.0**53]
    assert found["l"].to_list() == [{"x": inner} for inner in kinds]
    assert found["m"].to_list() == [None, "1", "2.5", "3", None, "x"]
    assert [found[f"c{at}"][at] for at in range(6)] == list(range(6))
    assert found.equals(pl.concat(frame.collect_batches(engine="streaming")))
    assert found.equals(assay.scan(rows).collect())
    assert frame.head(3).collect().equals(found[:3])
    assert frame.select(pl.len()).collect().item() == 6
    assert frame.filter(pl.col("n") > 2).select("completion", "n").collect().rows() == [
        ("b", 2.5),
        ("b", 3),
        ("b", 2**53),
    ]


@pytest.mark.parametrize("batch", [1, 1000])
@pytest.mark.parametrize("other", ["", '"metadata": {}, '], ids=["fast", "exact"])
@pytest.mark.parametrize(("before", "after"), [("", ""), ("[", "]"), ('{"k": ', "}")], ids=["number", "list", "struct"])
def test_an_integer_that_no_float_holds_is_kept_beside_floats(tmp_path, monkeypatch, batch, other, before, after):
    monkeypatch.setattr(THRESHOLDS, "first_chunk", batch)
    monkeypatch.setattr(THRESHOLDS, "chunk", batch)
    big, small = (f"{before}{n}{after}" for n in ("-9007199254740993", "0.5"))
    path = written(tmp_path, f'{{{other}"n": {big}}}\n{{"n": {small}}}\n')
    assert assay.scan(path).collect()["n"].to_list() == [big, small]


def nested(depth):
    return '{"a":' * (depth // 2) + "[" * (depth - depth // 2) + "]" * (depth - depth // 2) + "}" * (depth // 2)


def test_deep_nesting_becomes_json_text(tmp_path):
    for depth, is_text in [(20, False), (49, False), (51, True), (120, True), (480, True)]:
        for column in ["extra", "metadata", "prompt"]:
            path = written(tmp_path, f'{{"completion": "b", "{column}": {nested(depth)}}}\n{{"completion": "b"}}\n')
            for source in (path, [json.loads(line) for line in path.read_text().splitlines()]):
                out = tmp_path / "out.parquet"
                assay.score_file(source, SPEC, out, overwrite=True, keep=[column])
                value = pl.read_parquet(out)[column][0]
                assert isinstance(value, str) == (is_text or column == "metadata")
                assert value == json.loads(nested(depth)) or json.loads(value) == json.loads(nested(depth))


def test_a_line_nested_beyond_reading_is_named(tmp_path):
    for column in ["info", "metadata", "completion"]:
        for depth in [501, 2000, 100_000]:
            path = written(tmp_path, f'{{"completion": "b"}}\n{{"{column}": {nested(depth)}}}\n')
            assert f"\n  {path}:2: nested deeper than 500 levels.\n" in said(path)
