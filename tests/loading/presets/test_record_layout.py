"""Layouts: what becomes of a record by rows is what becomes of it by columns."""

import json

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import BRANCHED, ONE_TRACE, UNSAMPLED

from assay.errors import ColumnsError, InputError
from assay.loading.presets.record_layout import EXTRACTORS, SAMPLE_IDX, Failure, Field, Layout, ValueSource
from assay.names import BAD
from assay.values.paths import parse


def field(name, *paths, by="", required=False):
    return Field(name, tuple(ValueSource(parse(path), by) for path in paths), required)


CHOICES = Layout(
    (
        field("completion", "response.choices[].text", "response.text"),
        field("model", "response.model", "model"),
        field("id", "id"),
        field("task_id", "id"),
    ),
    constants=(("kind", "batch"),),
    drop=("response",),
    failures=(Failure(parse("error"), (), "failed:"), Failure(parse("status"), (200,), "status")),
    only=("filter", ("a",)),
)


def test_a_record_by_hand():
    record = {
        "id": 7,
        "response": {"choices": [{"text": "x"}, {}], "text": "whole", "model": None},
        "model": "own",
        "more": 1,
    }
    same = {"id": 7, "more": 1, "kind": "batch", "model": "own", "task_id": 7, BAD: None}
    assert CHOICES.rows(record) == [
        same | {SAMPLE_IDX: 0, "completion": "x"},
        same | {SAMPLE_IDX: 1, "completion": "whole"},
    ]
    assert CHOICES.rows(record | {"filter": "b"}) == []
    assert CHOICES.rows({"filter": "a"}) == [
        {"filter": "a", "kind": "batch", SAMPLE_IDX: None, BAD: "`response.choices` has no elements"}
    ]
    assert CHOICES.rows({"status": 200, "error": {"code": 1, "x": None}})[0][BAD] == 'failed: {"code": 1}'
    assert CHOICES.rows({"status": 404})[0][BAD] == "status 404"


_TEXT = st.one_of(st.none(), st.text(max_size=3))
_CHOICES = st.lists(st.one_of(st.none(), st.fixed_dictionaries({}, optional={"text": _TEXT})), max_size=3)
_RESPONSE = st.fixed_dictionaries(
    {}, optional={"choices": st.one_of(st.none(), _CHOICES), "text": _TEXT, "model": _TEXT}
)
RECORDS = st.fixed_dictionaries(
    {},
    optional={
        "id": st.one_of(st.none(), st.integers(0, 99)),
        "filter": st.sampled_from([None, "a", "b"]),
        "response": st.one_of(st.none(), _RESPONSE),
        "model": _TEXT,
        "status": st.sampled_from([None, 200, 500]),
        "error": st.one_of(st.none(), st.text(min_size=1, max_size=3)),
        "more": st.booleans(),
    },
)
_CHOICE = pa.struct([("text", pa.string())])
TYPES = {
    "id": pa.int64(),
    "filter": pa.string(),
    "response": pa.struct([("choices", pa.list_(_CHOICE)), ("text", pa.string()), ("model", pa.string())]),
    "model": pa.string(),
    "status": pa.int64(),
    "error": pa.string(),
    "more": pa.bool_(),
}


@settings(max_examples=50, deadline=None)
@given(st.lists(RECORDS, min_size=1, max_size=6))
def test_columns_give_what_rows_give(records):
    typed = pa.table({name: pa.array([one.get(name) for one in records], type=dtype) for name, dtype in TYPES.items()})
    for engine in ("in-memory", "streaming"):
        by_columns = CHOICES.frame(pl.from_arrow(typed).lazy()).collect(engine=engine)
        by_rows = [row for one in records for row in CHOICES.rows(one)]
        assert by_columns.to_dicts() == [dict.fromkeys(by_columns.columns) | row for row in by_rows]


def test_a_column_that_moves_leaves_its_place():
    layout = Layout((field("completion", "output"), field("output", "other")))
    assert layout.rows({"output": 1, "other": 2, "completion": 3}) == [{"completion": 1, "output": 2}]
    assert layout.frame(pl.LazyFrame({"output": [1], "other": [2], "completion": [3]})).collect().to_dicts() == [
        {"completion": 1, "output": 2}
    ]


def test_what_needs_a_look_inside():
    for layout, flat, nothing in [
        (Layout((field("completion", "completion"),)), True, True),
        (Layout((field("completion", "output"),)), True, False),
        (Layout((field("group", "uid", by="sample_of_uid"),)), True, False),
        (Layout((field("completion", "output.text"),)), False, False),
        (Layout((field("completion", "outputs[]"),)), False, False),
        (Layout((), failures=(Failure(parse("error"), (), ""),)), False, False),
        (Layout((), only=("filter", ())), False, False),
    ]:
        assert (layout.is_flat, layout.is_nothing) == (flat, nothing)


def test_two_lists_are_refused():
    with pytest.raises(InputError, match=r"`x\[\]` and `y\[\]` cannot both be split into rows"):
        Layout((field("a", "x[].b"), field("b", "y[]")))


def test_sources_of_several_types_are_refused():
    layout = Layout((field("answer", "a", "b"),))
    with pytest.raises(
        ColumnsError, match=r"The sources of `answer` have different types: `a` \(String\) and `b` \(Int64\)"
    ) as caught:
        layout.frame(pl.LazyFrame({"a": ["4"], "b": [4]}))
    assert "--map 'answer=$.a'" in caught.value.hint


def test_what_is_no_list_is_not_taken_apart():
    layout = Layout((field("completion", "a[]"),))
    with pytest.raises(InputError, match="`a` is String, not a list"):
        layout.frame(pl.LazyFrame({"a": ["4"]}))
    assert layout.rows({"a": "4"}) == [{SAMPLE_IDX: None, BAD: "`a` has no elements"}]


def test_a_list_without_an_element_leaves_a_row():
    for dtype in [pl.Null, pl.List(pl.Null), pl.List(pl.String), pl.Array(pl.String, 0)]:
        layout = Layout((field("completion", "a[]"),))
        frame = pl.LazyFrame({"a": pl.Series([None, None], dtype=dtype)})
        assert layout.frame(frame).collect()[BAD].to_list() == ["`a` has no elements"] * 2


def texts(nodes):
    found = EXTRACTORS["generated"].function(nodes)
    return found if found is None else [one["content"] for one in found]


def test_what_was_generated():
    for nodes, said in [
        (ONE_TRACE, ["It is 4."]),
        (BRANCHED, ["Let me add.", "4", "So 4."]),
        (BRANCHED[:2], ["It is 5."]),
        (UNSAMPLED, None),
        ([], None),
        ("no nodes", None),
        ([1, None], None),
        ([{"parent": 0, "sampled": True, "message": {"role": "assistant", "content": "itself"}}], ["itself"]),
        ([{"sampled": True, "message": {"role": "user", "content": "?"}}], None),
        ([{"sampled": True, "message": None}], None),
    ]:
        assert texts(nodes) == said


def test_the_weighted_sum_of_rewards():
    for rewards, total in [
        ({"a": {"score": 1.0, "weight": 0.5}, "b": {"score": 0.25, "weight": 2}}, 1.0),
        ({"a": {"score": 1}, "b": None}, 1.0),
        ({"a": {"score": float("nan"), "weight": 1.0}}, None),
        ({"a": {"score": 10**400}}, None),
        ({"a": {"score": "1"}, "b": 3}, None),
        ({}, None),
        ([1], None),
    ]:
        assert EXTRACTORS["weighted_sum"].function(rewards) == total


def test_the_sample_of_a_uid():
    for uid, sample in [("a_b_0_1", "a_b"), ("a-b_0_1", "a-b"), ("a", "a"), ("", ""), (7, None), ("a_1", "a")]:
        assert EXTRACTORS["sample_of_uid"].function(uid) == sample


def test_every_extractor_answers_values_of_any_kind():
    values = [
        1,
        1.5,
        "x",
        True,
        [],
        [1],
        [{}],
        {},
        {"a": 1},
        {"message": 1},
        [{"message": {}, "sampled": 1}],
        json.loads("1e999"),
    ]
    for one in EXTRACTORS.values():
        for value in values:
            one.function(value)
        series = pl.Series("x", [1, None])
        found, dtype = one.expr(pl.col("x"), series.dtype)
        assert series.to_frame().select(found.alias("x")).to_series().dtype == dtype
