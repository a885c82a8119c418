"""Columns as checks read them: bytes as text, values that Python has, names that are names."""

import datetime as dt
import decimal
import json

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import crossed

import assay
from assay.compiling.sides import beside
from assay.scoring.reference import score_rows
from assay.thresholds import set_to

GOLD = {"id": "v", "checks": [{"type": "equals", "value": {"column": "x"}}]}
INVALID = "`x` holds bytes that are not UTF-8 text"


def check(**fields):
    return {"id": "v", "checks": [fields]}


def scored(frame, spec):
    """The rewards and errors of a frame, which those of its rows are, too."""
    result = assay.score(frame, spec).select("reward", "error").rows()
    loaded = assay.load_verifier(spec)
    assert result == [(row["reward"], row["error"]) for row in score_rows(frame.to_dicts(), [loaded])]
    return result


X = {"column": "x"}
READERS = {
    "gold": check(type="equals", value=X),
    "golds": check(type="contains_any", values=[X]),
    "number": check(type="number", value=X),
    "pattern": check(type="regex", pattern=X),
    "gold's steps": check(type="equals", value=X, goldOn=["strip"]),
    "template": check(type="equals", value={"template": "{x}"}),
    "on": check(type="contains", value="42", on=X),
    "when": check(type="contains", value="42", when={**X, "equals": "42"}),
    "JSON": check(type="json_match", value=X),
}


@pytest.mark.parametrize(("spec", "times"), crossed(READERS.values(), [1, 150]))
def test_bytes_are_the_text_that_they_encode(spec, times):
    frame = pl.DataFrame({"completion": ["42", "42"], "x": [b"42", b"\xff"]})
    text = pl.DataFrame({"completion": ["42"], "x": ["42"]})
    expected = scored(text, spec)[0]
    assert expected[0] == 1.0
    assert scored(pl.concat([frame] * times, rechunk=True), spec) == [expected, (None, INVALID)] * times


def test_a_completion_and_messages_of_bytes_are_read_as_text():
    spec = check(type="contains", value="é")
    text = pl.DataFrame({"completion": ["é".encode(), b"\xff", None]})
    assert scored(text, spec) == [
        (1.0, None),
        (None, "`completion` holds bytes that are not UTF-8 text"),
        (None, "the completion is null"),
    ]
    chat = [[{"role": b"assistant", "content": "é".encode()}], [{"role": b"assistant", "content": b"e"}]]
    assert scored(pl.DataFrame({"completion": chat}), spec) == [(1.0, None), (0.0, None)]


def test_lists_and_fields_of_bytes_are_texts_too():
    frame = pl.DataFrame({"completion": ["42", "7"], "x": [{"a": [b"1", b"42"]}, {"a": [b"1", b"\xff"]}]})
    result = scored(frame, check(type="equals", value={"column": "x.a"}))
    assert result == [(1.0, None), (None, "`x.a[1]` holds bytes that are not UTF-8 text")]


NESTED = {
    "x[0]": lambda value: [value],
    "x[-1]": lambda value: [b"1", value],
    "x.a": lambda value: {"a": value, "image": b"\xff"},
    "x.a.b[0]": lambda value: {"a": {"b": [value]}, "image": [b"\xff"]},
    "x[0].a": lambda value: [{"a": value, "image": b"\xff"}],
    "x": lambda value: [b"42", value],
}
"""Paths to bytes, and the values in which they lead there: beside the bytes there may be others that nobody reads."""


def sources(frame, folder):
    """The frame in all forms that hold bytes."""
    frame.write_parquet(folder / "x.parquet")
    table = frame.to_arrow()
    return [frame, table, folder / "x.parquet", pa.concat_tables([table[:1], table[1:]]), frame.to_dicts()]


@pytest.mark.parametrize(("place", "path"), crossed(READERS, NESTED))
def test_nested_bytes_that_are_no_text_leave_their_row_unscored(place, path, tmp_path):
    spec = json.loads(
        json.dumps(READERS[place]).replace('"column": "x"', f'"column": "{path}"').replace("{x}", f"{{{path}}}")
    )
    frame = pl.DataFrame({"completion": ["42"] * 3, "x": [NESTED[path](value) for value in (b"42", b"\xff", None)]})
    expected = scored(frame, spec)
    assert expected[0][0] is not None or expected[0][1].startswith("no check applies")
    assert expected[1] == (None, f"`{'x[1]' if path == 'x' else path}` holds bytes that are not UTF-8 text")
    assert "bytes" not in str(expected[2])
    texts = pl.DataFrame({"completion": ["42"], "x": [NESTED[path]("42")]}, strict=False)
    assert expected[0] == assay.score(texts, spec).select("reward", "error").row(0)
    for source in sources(frame, tmp_path):
        assert assay.score(source, spec).select("reward", "error").rows() == expected
    rows = frame.to_dicts()
    for schema in (frame.schema, {"completion": pl.String, "x": pl.String}):
        plan = assay.compile(spec, schema)
        assert plan.score_rows(rows)["error"].to_list() == [error for _, error in expected]
    assert plan.score_rows(rows[:1])["reward"][0] == expected[0][0]


def test_keys_and_json_of_bytes_are_looked_into():
    mapping = pa.array(
        [[(b"a", b"42")], [(b"a", b"\xff")], [(b"a", b"42"), (b"\xff", b"1")]], pa.map_(pa.binary(), pa.binary())
    )
    frame = assay.scan(pa.table({"completion": ["42"] * 3, "x": mapping})).collect()
    lost = (None, "`x.a` holds bytes that are not UTF-8 text")
    assert scored(frame, check(type="equals", value={"column": "x.a"})) == [(1.0, None), lost, (1.0, None)]
    whole = scored(frame, check(type="contains", value="42", on={"column": "x"}))
    assert whole == [(1.0, None), lost, (None, INVALID)]
    frame = pl.DataFrame({"completion": ["42"] * 2, "x": [{"a": b'{"b": "42"}'}, {"a": b"\xff"}]})
    assert scored(frame, check(type="equals", value={"column": "x.a.b"})) == [(1.0, None), lost]


def message(content, role=b"assistant"):
    return {"role": role, "content": content}


CHATS = [
    ([message(b"42")], True),
    ([message(b"\xff")], False),
    ([message(b"\xff", b"user"), message(b"42")], True),
    ([message(b"\xff"), message(b"42")], True),
]


@pytest.mark.parametrize(("chat", "is_text"), CHATS)
def test_the_text_of_messages_may_not_lack_bytes(chat, is_text):
    expected = (1.0, None) if is_text else (None, "`completion` holds bytes that are not UTF-8 text")
    assert scored(pl.DataFrame({"completion": [chat]}), check(type="contains", value="42")) == [expected]


def test_parts_of_messages_that_are_no_text_may_be_any_bytes():
    spec = check(type="contains", value="42")
    for text, reward in ((b"42", 1.0), (b"\xff", None)):
        parts = [{"type": "text", "text": text, "image": None}, {"type": "image", "text": None, "image": b"\xff"}]
        frame = pl.DataFrame({"completion": [[message(parts)]], "prompt": [[message(parts, b"user")]]})
        assert scored(frame, spec)[0][0] == reward
        frame = frame.with_columns(completion=pl.lit("42"))
        (asked,) = scored(frame, check(type="contains", value="42", on="prompt"))
        assert asked[0] == reward
        assert reward or asked[1] == "`prompt[0].content[0].text` holds bytes that are not UTF-8 text"


def test_messages_of_plain_values_may_be_bytes():
    spec = check(type="contains", value="42")
    assert assay.score([{"completion": [message(b"42", "assistant")]}], spec)["reward"].to_list() == [1.0]
    rows = [{"completion": [message(b"\xff", "tool"), message("42", "assistant")]}]
    assert assay.score(rows, spec)["reward"].to_list() == [1.0]
    rows = [{"completion": [message(b"42", "assistant")]}, {"completion": [message([{"text": b"1\xff"}], "assistant")]}]
    with pytest.raises(assay.InputError, match=r"Row 1: `completion` has bytes that are not UTF-8 \(byte 2\)"):
        assay.score(rows, spec)
    assert assay.compile(spec).score_rows(rows)["reward"].to_list() == [1.0, None]


def test_a_function_gets_the_bytes_within_a_value():
    @assay.reward(batched=True)
    def is_image(completions, images):
        return [float(images == [{"bytes": b"\xff"}]) for images in images]

    rows = [{"completion": "", "images": [{"bytes": b"\xff"}]}] * 2
    assert assay.score(rows, assay.Rubric([is_image]))["reward"].to_list() == [1.0, 1.0]


def test_plans_side_by_side_leave_rows_unscored_by_what_they_read():
    frame = pl.DataFrame({"completion": ["42"], "x": [{"a": b"42", "b": b"\xff"}]})
    same = {"type": "contains", "value": "42"}
    specs = [{"checks": [same, {"type": "equals", "value": {"column": path}}]} for path in ("x.b", "x.a")]
    plans = [assay.compile(spec, frame.schema) for spec in specs]
    together = beside(plans, frame.lazy(), ["b.", "a."]).collect()
    assert together.select("b.reward", "a.reward").row(0) == (None, 1.0)


def test_the_verifier_on_the_row_may_be_of_bytes():
    frame = pl.DataFrame({"completion": ["42", "7"], "fn_name": [b"exact_match"] * 2, "expected": [b"42", b"42"]})
    assert assay.score(frame)["reward"].to_list() == [1.0, 0.0]


def test_what_checks_read_passes_through_as_it_was_given():
    frame = pl.DataFrame({"completion": ["42"], "x": [b"\xff"]})
    assert assay.score(frame, GOLD)["x"].to_list() == [b"\xff"]


def test_functions_get_the_bytes_of_columns_that_only_they_name():
    def size(image, answer):
        return float(image == b"\xff\xd8" and answer == "42")

    frame = pl.DataFrame({"completion": ["a"], "image": [b"\xff\xd8"], "answer": [b"42"]})
    assert assay.score(frame, assay.Rubric([size]))["reward"].to_list() == [1.0]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([18_000, 10**7, -(10**7)], pl.Date),
        ([0, 2**62, -(2**62)], pl.Datetime("us")),
        ([0, 2**62, -(2**62)], pl.Datetime("ms", "Asia/Tokyo")),
        ([0, 2**62, -(2**62)], pl.Duration("ms")),
    ],
)
def test_times_beyond_those_of_python_are_no_values(values, dtype):
    times = pl.Series(values).cast(pl.Int32 if dtype == pl.Date else pl.Int64).cast(dtype)
    frame = pl.DataFrame({"completion": ["a"] * 3, "x": times, "y": pl.Series([[1]] * 3)})
    result = assay.score(frame, check(type="contains", value="-", on=X))
    assert result["error"].to_list() == [None] * 3
    gold = assay.score(frame, GOLD)
    assert gold["error"].to_list() == [None, *["gold is missing: x"] * 2]
    assert gold["x"].to_physical().to_list() == values


def test_objects_are_refused_by_name_where_a_check_reads_them():
    frame = pl.DataFrame({"completion": ["a"], "x": pl.Series([object()], dtype=pl.Object)})
    with pytest.raises(assay.ColumnsError, match="`x` has type Object"):
        assay.score(frame, GOLD)
    assert assay.score(frame, check(type="contains", value="a"))["reward"].to_list() == [1.0]


def test_decimals_days_and_flags_are_golds_as_python_writes_them():
    for value, text in ((decimal.Decimal("1.50"), "1.50"), (dt.date(2026, 1, 2), "2026-01-02"), (True, "True")):
        assert scored(pl.DataFrame({"completion": [text], "x": [value]}), GOLD) == [(1.0, None)]


def test_decimals_within_json_are_numbers():
    gold = {"price": decimal.Decimal("1.50"), "count": decimal.Decimal("2.00")}
    frame = pl.DataFrame({"completion": ['{"price": 1.5, "count": 2}'], "x": [gold]})
    assert scored(frame, check(type="json_match", value=X)) == [(1.0, None)]
    assert scored(frame, check(type="contains", value='"price": 1.5, "count": 2}', on=X)) == [(1.0, None)]


def test_a_mapping_is_an_object():
    table = pa.table({"completion": ["42"], "x": pa.array([[("a", 42)]], pa.map_(pa.string(), pa.int64()))})
    assert assay.score(table, check(type="equals", value={"column": "x.a"}))["reward"].to_list() == [1.0]
    by_number = pa.table({"completion": ["42"], "x": pa.array([[(1, 42)]], pa.map_(pa.int64(), pa.int64()))})
    assert assay.score(by_number, check(type="equals", value={"column": "x.1"}))["reward"].to_list() == [1.0]


def test_a_prompt_that_is_a_list_of_texts_is_read_as_json():
    frame = pl.DataFrame({"completion": ["a", "a"], "prompt": [["x", "y"], None]})
    assert scored(frame, check(type="contains", value='["x", "y"]', on="prompt")) == [(1.0, None), (0.0, None)]


NAMES = ("^a.*$", "*", "^completion$", "^.*$", "", "x.y", "[0]")
VALUES = {
    "numbers": [1.5, 2.0],
    "lists": [[1.5], [2.0]],
    "texts": ["1.5", "x"],
    "JSON": ['{"x": "1.5"}', '["1.5"]'],
    "objects": [{"x": 1.5, "*": 1, "^a$": [1]}, {"x": 1.5, "*": 2, "^a$": []}],
    "bytes": [b"1.5", b"x"],
}


# each name with two of the values, few rows and many
CASES = [(NAMES[at % 7], [*VALUES.values()][at % 6], 1 + 149 * (at % 2)) for at in range(14)]


@pytest.mark.parametrize(("name", "values", "times"), CASES)
def test_a_name_is_a_name_whatever_patterns_look_like(name, values, times):
    plain = pl.DataFrame({"completion": ["1.5", "x"], "plain": values})
    named = plain.rename({"plain": name})
    for spec in specs('"plain"'):
        other = specs(f'"{name}"')[specs('"plain"').index(spec)]
        expected = assay.score(pl.concat([plain] * times, rechunk=True), spec).select("reward", "error").rows()
        result = assay.score(pl.concat([named] * times, rechunk=True), other).select("reward", "error").rows()
        assert [(reward, error and "…") for reward, error in result] == [
            (reward, error and "…") for reward, error in expected
        ]


def specs(name):
    column = {"column": f"[{name}]"}
    return [
        check(type="equals", value=column),
        check(type="contains", value="1", on=column),
        check(type="contains", value="1", when={**column, "exists": True}),
        check(type="equals", value={"template": f"{{[{name}]}}"}),
        check(type="list_equals", value=column),
    ]


@pytest.mark.parametrize("name", NAMES[:5])
def test_fields_may_have_such_names_too(name):
    frame = pl.DataFrame({"completion": ["1.5", "x"], "x": [{name: 1.5, "b": 1}, {name: 2.0, "b": 1}]})
    spec = check(type="equals", value={"column": f'x["{name}"]'})
    assert scored(frame, spec) == [(1.0, None), (0.0, None)]
    slips = pl.DataFrame({"completion": ["x"], "metadata": [{name: 1, "expectations": ["x"]}]})
    assert assay.score(slips, check(type="task_expectations"))["error"].null_count() in (0, 1)


def test_parquet_without_the_mark_of_text_is_read(tmp_path):
    table = pa.table({"completion": [b"42", b"7"], "x": [b"42", b"42"]})
    pq.write_table(table, tmp_path / "a.parquet")
    assert assay.score(tmp_path / "a.parquet", GOLD)["reward"].to_list() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("name", "spec", "text"),
    [
        ("metadata", check(type="task_expectations"), '{"expectations": [{"text": "42"}]}'),
        ("expected_output_schema", check(type="expected_output_schema"), '{"required": ["42"]}'),
        ("verifier", None, '{"fn_name": "exact_match", "expected": "{\\"42\\": 1}"}'),
    ],
)
@pytest.mark.parametrize("small", [0, 256])
def test_json_text_that_a_file_stores_once_for_many_rows_is_json_text(name, spec, text, small, tmp_path):
    table = pa.table({"completion": ['{"42": 1}', ""], name: [text, text], "id": ["a", "b"]})
    encoded = table.set_column(1, name, table[name].dictionary_encode())
    frames = [encoded, pl.from_arrow(table).with_columns(pl.col(name).cast(pl.Enum([text]))), tmp_path / "a.arrow"]
    with pa.ipc.new_file(frames[-1], encoded.schema) as writer:
        writer.write_table(encoded)
    with set_to(small_batch=small):
        expected = assay.score(table, spec, keep=("id",), lenient=True)
        assert expected["reward"].to_list() == [1.0, 0.0]
        for frame in frames:
            assert assay.score(frame, spec, keep=("id",), lenient=True).equals(expected)
