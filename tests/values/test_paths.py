"""Paths: how they are written, and that rows and columns find the same."""

import json

import polars as pl
import pyarrow as pa
import pytest
from cases import sized
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import assay
from assay.cli.main import app
from assay.values.paths import (
    ABSENT,
    Path,
    find,
    find_expr,
    is_path,
    kind_of,
    merged,
    missing,
    outline,
    outline_of,
    parse,
)
from assay.values.references import read_reference

WRITTEN = {
    "output": ("output",),
    "$.output": ("output",),
    "a.b": ("a", "b"),
    "a[0].b": ("a", 0, "b"),
    "a[-1]": ("a", -1),
    "a[0][1]": ("a", 0, 1),
    "a[].b": ("a", None, "b"),
    '$["a.b"]': ("a.b",),
    'a["x]y"].z': ("a", "x]y", "z"),
    'a["\\u00e9\\""]': ("a", 'é"'),
    "with space/and-dash.b": ("with space/and-dash", "b"),
}
NO_PATHS = ("$..a", "$", "$.", "", "[0]", "[]", "a.", "a..b", ".a", "a[", "a[x]", "a[*]", "a[0]b", "a[].b[]")


def test_how_a_path_is_written():
    assert {written: parse(written).steps for written in WRITTEN} == WRITTEN
    assert [parse(str(parse(written))) for written in WRITTEN] == [*map(parse, WRITTEN)]
    for written in NO_PATHS:
        with pytest.raises(ValueError, match=r"is not a valid path|has \[\] twice"):
            parse(written)


def test_what_of_an_option_is_a_path():
    assert [is_path(one) for one in ("$.a", '$["a"]', "a.b", "$a", "a[0]")] == [True, True, False, False, False]


def test_a_list_is_taken_apart():
    path = parse("a.b[].c[0]")
    assert (str(path.exploded), str(path.below), path.column) == ("a.b", "c[0]", "a")
    assert parse("a.b").exploded is None


RECORD = {"a": {"b": [{"c": 1}, {"c": None}, None], "n": None}, "t": "text"}


def test_what_a_path_finds():
    for path, found in [
        ("a.b[0].c", 1),
        ("a.b[1].c", None),
        ("a.b[2].c", None),
        ("a.b[-1]", None),
        ("a.b[3]", ABSENT),
        ("a.b[-4]", ABSENT),
        ("a.n.x", None),
        ("a.x", ABSENT),
        ("a[0]", ABSENT),
        ("t.x", ABSENT),
        ("t[0]", ABSENT),
        ("x", ABSENT),
    ]:
        assert find(RECORD, parse(path)) is found or find(RECORD, parse(path)) == found


PATHS = [
    parse(one)
    for one in (
        "a",
        "a.b",
        "a.b[0]",
        "a.b[0].c",
        "a.b[-1].c",
        "a.b[2].c",
        "l[0]",
        "l[-2]",
        "l[1][0]",
        "x",
        "a.x",
        "l.x",
    )
]
_C = st.one_of(st.none(), st.fixed_dictionaries({}, optional={"c": st.one_of(st.none(), st.integers(0, 9))}))
_B = st.one_of(st.none(), st.fixed_dictionaries({}, optional={"b": st.one_of(st.none(), st.lists(_C, max_size=3))}))
_L = st.one_of(st.none(), st.lists(st.one_of(st.none(), st.lists(st.text(max_size=2), max_size=2)), max_size=3))
RECORDS = st.lists(st.fixed_dictionaries({}, optional={"a": _B, "l": _L}), min_size=1, max_size=5)
TYPES = {"a": pa.struct([("b", pa.list_(pa.struct([("c", pa.int64())])))]), "l": pa.list_(pa.list_(pa.string()))}


@settings(max_examples=sized(60, 20), deadline=None)
@given(RECORDS)
def test_columns_find_what_rows_find(records):
    columns = {name: pa.array([one.get(name) for one in records], type=dtype) for name, dtype in TYPES.items()}
    frame = pl.from_arrow(pa.table(columns))
    for path in PATHS:
        by_rows = [None if (value := find(one, path)) is ABSENT else value for one in records]
        found = find_expr(frame.schema, path)
        by_columns = [None] * len(records) if found is None else frame.select(found[0]).to_series().to_list()
        assert plain(by_columns) == plain(by_rows), path
        assert found is None or frame.select(found[0]).to_series().dtype == found[1]


def plain(value):
    """Without what is null in a struct: there it cannot be absent."""
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items() if inner is not None}
    return [plain(one) for one in value] if isinstance(value, list) else value


def test_arrays_are_lists():
    frame = pl.DataFrame({"a": pl.Series([[1, 2]], dtype=pl.Array(pl.Int64, 2))})
    values, dtype = find_expr(frame.schema, parse("a[-1]"))
    assert frame.select(values).item() == 2
    assert dtype == pl.Int64


def test_outlines_of_values_and_of_types_are_the_same():
    records = [{"a": {"b": [{"c": 1}], "t": "x"}, "n": None, "y": True, "l": [[]]}, {"a": {"d": 1.5}}]
    typed = pl.DataFrame(records, strict=False)
    assert merged([outline(one) for one in records]) == outline_of(pl.Struct(typed.schema))


def test_kinds():
    for path, kind in [
        ("a", "object"),
        ("a.b", "list"),
        ("a.b[0].c", "number"),
        ("a.b[].c", "number"),
        ("n", "null"),
        ("t", "text"),
        ("a.t", None),
    ]:
        assert kind_of(outline({"a": {"b": [{"c": 1}]}, "n": None, "t": "x"}), parse(path)) == kind


def test_an_outline_of_deep_values_ends():
    value = []
    for _ in range(100_000):
        value = [value]
    assert kind_of(outline({"a": value}), parse("a[0][0]")) == "list"


def test_what_is_said_of_a_path_that_only_lists_are_too_short_for():
    assert missing(parse("a[5]"), outline({"a": [1]}), "a record").fact == "No record has a value at `a[5]`."


MARKS = ("\n", "\r", "\t", "\x1b[31m", "\x7f", "\x9b", "\x85", "\u00a0", "\u200b", "\u2028", "\u202e")


def test_a_path_of_any_name_is_one_printable_line_and_reads_as_the_same_path():
    for mark in [*MARKS, "", ".", "[0]", '"', "$", " ", "é", "'"]:
        for form in ["{}", "a{}b", "{}b", "a{}"]:
            for steps in ((form.format(mark),), ("a", form.format(mark)), ("a", 0, form.format(mark), -1)):
                text = str(Path(steps))
                assert text.isprintable()
                assert parse(text) == Path(steps)
                assert read_reference({"column": text}).paths == (Path(steps),)


SPECS = {
    "gold": lambda path: {"type": "equals", "value": path},
    "on": lambda path: {"type": "contains", "value": "z", "on": path},
    "when": lambda path: {"type": "contains", "value": "z", "when": {**path, "equals": "42"}},
    "template": lambda path: {"type": "equals", "value": {"template": f"{{{path['column']}}}"}},
    "bound": lambda path: {"type": "number_range", "min": path},
}


@pytest.mark.parametrize("place", SPECS)
def test_no_name_of_data_stands_raw_in_a_message(place, tmp_path):
    name = f"a{'b'.join(MARKS)}b"
    raw = {name, *MARKS} - {"\n"}  # between the lines of a message
    values = [None, "(", [["("]], [b"\xff"], b"\xff", {name: 1}]
    rows = [{"completion": "a"}, *({"completion": "a", name: value, "gold": {name: value}} for value in values)]
    for path in (Path((name,)), Path(("gold", name)), Path(("gold", name, name))):
        spec = {"checks": [SPECS[place]({"column": str(path)})]}
        messages = [
            message
            for row in rows
            for message in messages_of([row, row], spec) + messages_of(pl.DataFrame([row]), spec)
        ]
        assert messages
        assert [message for message in messages if any(part in message for part in raw)] == []
    (tmp_path / "v.json").write_text(json.dumps({"checks": [SPECS[place]({"column": str(Path((name,)))})]}))
    (tmp_path / "in.jsonl").write_text(json.dumps({"completion": "a", f"x{name}": "("}) + "\n")
    spec, rollouts = f"{tmp_path}/v.json", f"{tmp_path}/in.jsonl"
    scored = ["score", rollouts, "--spec", spec, "--out", f"{tmp_path}/out.parquet"]
    others = (["check", spec], ["check", spec, "--rollouts", rollouts], ["explain", spec], ["explain", spec, rollouts])
    for command in (scored, [*scored, "--keep", name], *others):
        shown = CliRunner().invoke(app, command).output
        assert shown.replace("\n", "").isprintable()
        assert name not in shown


def messages_of(source, spec):
    """The error, the feedback, or the exception of a run."""
    try:
        result = assay.score(source, spec, lenient=True)
    except assay.AssayError as error:
        return [str(error)]
    return [text for text in (*result["error"], *result["feedback"]) if text]
