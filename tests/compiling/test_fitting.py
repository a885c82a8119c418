"""Batches whose columns have another type than beside others: a plan takes them where they mean the same, and says so where not."""

import json

import polars as pl
import pytest

import assay
from assay.calls.limits import Limits
from assay.compiling.batches import fitted
from assay.compiling.plan import Plan
from assay.compiling.verifiers import on_row
from assay.expressions.mixed import TYPED
from assay.scoring.reference import score_rows

WORD = pl.Enum(["a", "b"])
NESTED = pl.List(pl.Struct({"b": pl.List(pl.String), "a": pl.Float64}))


def struct(**fields):
    return pl.Struct(fields)


def golds(*values):
    return [{"__assay/json": None if value is None else json.dumps(value)} for value in values]


FITS = {
    "nulls to text": ("x", pl.Null, [None], pl.String, [None]),
    "nulls to structs": ("x", pl.Null, [None], struct(a=pl.String), [None]),
    "nulls to lists": ("x", pl.Null, [None], NESTED, [None]),
    "nulls to golds": ("answer", pl.Null, [None], TYPED, [None]),
    "integers to the text of golds": ("answer", pl.Int64, [42, None], pl.String, ["42", None]),
    "floats to the text of golds": ("expected", pl.Float64, [1.5, 1e16, None], pl.String, ["1.5", "1e+16", None]),
    "flags to the text of golds": ("answer", pl.Boolean, [True, None], pl.String, ["True", None]),
    "integers to golds": ("answer", pl.Int64, [42, None], TYPED, golds(42, None)),
    "flags to golds": ("answer", pl.Boolean, [True], TYPED, golds(True)),
    "text to golds": ("answer", pl.String, ['a"', None], TYPED, golds('a"', None)),
    "words to golds": ("answer", WORD, ["a"], TYPED, golds("a")),
    "golds to text": ("answer", TYPED, golds("a", 42, True, None), pl.String, ["a", "42", "True", None]),
    "empty lists": ("x", pl.List(pl.Null), [[], None], NESTED, [[], None]),
    "lists of nulls": ("x", pl.List(pl.Null), [[None], []], NESTED, [[None], []]),
    "fields that are null": ("x", struct(a=pl.Null), [{"a": None}, None], struct(a=NESTED), [{"a": None}, None]),
    "fields of which nothing is known": ("x", struct(c=pl.Null), [{"c": None}], struct(a=pl.String), [{"a": None}]),
    "no fields": ("x", struct(), [{}, None], struct(a=pl.String), [{"a": None}, None]),
    "a field that is missing, another order, integers": (
        *("x", pl.List(struct(a=pl.Int64)), [[{"a": 1}], None, [], [None]]),
        *(NESTED, [[{"b": None, "a": 1.0}], None, [], [None]]),
    ),
    "messages that are text beside others": (
        *("completion", pl.List(struct(content=pl.String, role=WORD)), [[{"content": "b", "role": "a"}]]),
        *(
            pl.List(struct(role=pl.String, content=pl.String, exact=pl.String)),
            [[{"role": "a", "content": "b", "exact": None}]],
        ),
    ),
    "the gold of a verifier": (
        *("verifier", struct(expected=pl.Int64), [{"expected": 3}]),
        *(struct(fn_name=pl.String, expected=pl.String), [{"fn_name": None, "expected": "3"}]),
    ),
    "integers to larger ones": ("x", pl.UInt8, [255], pl.Int16, [255]),
    "integers to floats": ("x", pl.Int64, [2**53, None], pl.Float64, [2.0**53, None]),
    "floats to larger ones": ("x", pl.Float32, [0.5], pl.Float64, [0.5]),
    "words to text": ("x", pl.List(WORD), [["a"]], pl.List(pl.String), [["a"]]),
    "text to words": ("x", pl.String, ["a"], WORD, ["a"]),
    "text to categories": ("x", pl.String, ["a"], pl.Categorical(), ["a"]),
    "lists of a fixed length": ("x", pl.Array(WORD, 1), [["a"]], pl.List(pl.String), [["a"]]),
    "lists to those of a fixed length": ("x", pl.List(pl.String), [["a"]], pl.Array(WORD, 1), [["a"]]),
}


@pytest.mark.parametrize(("name", "found", "values", "wanted", "expected"), FITS.values(), ids=FITS)
def test_what_a_batch_has_becomes_what_it_is_beside_others(name, found, values, wanted, expected):
    frame = pl.DataFrame({name: pl.Series(values, dtype=found), "other": 1})
    for rows, kept in ((frame, expected), (frame[:0], []), (frame[:1], expected[:1])):
        for engine in ("in-memory", "streaming"):
            made = fitted(rows.lazy(), {name: wanted}).collect(engine=engine)[name]
            assert (made.dtype, made.to_list()) == (wanted, kept)


def test_a_frame_of_the_same_types_stays_what_it_is():
    frame = pl.LazyFrame({"x": [1], "y": ["a"]})
    assert fitted(frame, {"y": pl.String}) is frame


DIFFERS = {
    "text is no number": ("answer", pl.String, ["1"], pl.Int64, ""),
    "integers are no text but where they are golds": ("x", pl.Int64, [1], pl.String, ""),
    "a completion is no number": ("completion", pl.Int64, [1], pl.String, ""),
    "text is no conversation": ("completion", pl.String, ["a"], pl.List(struct(role=pl.String)), ""),
    "something is not nothing": ("x", pl.String, ["a"], pl.Null, ""),
    "42 is not 42.0 where it is a gold": ("answer", pl.Int64, [42], pl.Float64, ""),
    "an integer that no float equals": (
        *("x", pl.Int64, [2**53 + 1], pl.Float64),
        ", with values that the plan's type cannot hold",
    ),
    "the largest integer": ("x", pl.Int64, [2**63 - 1], pl.Float64, ", with values that the plan's type cannot hold"),
    "a large integer among smaller ones": ("x", pl.Int64, [1], pl.Int32, ""),
    "an integer without a sign": ("x", pl.UInt64, [1], pl.Int64, ""),
    "an object is no text": (
        *("answer", TYPED, golds({"a": 1}), pl.String),
        ", with values that the plan's type cannot hold",
    ),
    "an unknown word": ("x", pl.String, ["c"], WORD, ", with values that the plan's type cannot hold"),
    "another length": (
        *("x", pl.List(pl.String), [["a", "b"]], pl.Array(pl.String, 1)),
        ", with values that the plan's type cannot hold",
    ),
    "a field that would be lost": (
        *("x", struct(a=pl.Int64, c=pl.Int64), [{"a": 1, "c": 2}], struct(a=pl.Int64)),
        " (`x` has an extra field `c`)",
    ),
    "a field of another type, deep down": (
        *("x", pl.List(struct(a=struct(b=pl.Int64))), [[]], pl.List(struct(a=struct(b=pl.String)))),
        " (`x[].a.b` is Int64, not String)",
    ),
}


@pytest.mark.parametrize(("name", "found", "values", "wanted", "why"), DIFFERS.values(), ids=DIFFERS)
def test_what_would_mean_something_else_is_refused_with_the_place(name, found, values, wanted, why):
    frame = pl.LazyFrame({name: pl.Series(values, dtype=found)})
    with pytest.raises(assay.ColumnsError) as refused:
        fitted(frame, {name: wanted, "y": pl.String})
    kind = pl.Series(dtype=found).dtype, pl.Series(dtype=wanted).dtype
    assert str(refused.value) == (
        f"The plan was compiled for `{name}` of type {kind[1]}; here it is {kind[0]}{why}.\n"
        "The plan was compiled for `y` of type String; here it is missing.\n\n"
        "Compile a plan for this schema."
    )


def reward(completion, answer):
    return float(answer is not None and str(answer) in completion)


@pytest.mark.parametrize("batch", [[None, None], [42, 4], [1.5, 42], ["42", None], [True], ["a", 42]], ids=str)
@pytest.mark.parametrize("first", [["42", "a"], ["a", 42, None]], ids=["text", "of all types"])
def test_a_plan_takes_batches_whose_golds_happen_to_be_of_one_type(first, batch):
    rubric = assay.Rubric([reward])

    def rows(answers):
        return [{"completion": f"{answer} b", "answer": answer, "expected": answer} for answer in answers]

    schema = tuple(assay.scan(rows(first)).collect_schema().items())
    for verifiers in (rubric.members(Limits(), 1.0), (on_row("contains"),)):
        found = assay.score(rows(batch), Plan(verifiers, schema))
        expected = score_rows(rows(batch), verifiers)
        for name in ("reward", "error"):
            assert found[name].to_list() == [row[name] for row in expected]


def test_a_plan_takes_batches_of_empty_lists_and_structs_of_nulls():
    spec = {"id": "v", "checks": [{"type": "task_expectations"}]}
    entry = pl.List(pl.Struct({"anyOf": pl.List(pl.String), "message": pl.String}))
    plan = assay.compile(
        spec, {"completion": pl.String, "metadata": struct(expectations=struct(mustMention=entry, must_mention=entry))}
    )
    for sides in ({"mustMention": []}, {"mustMention": [{"anyOf": []}]}, {"must_mention": None}, None):
        frame = pl.DataFrame({"completion": ["a"], "metadata": [{"expectations": sides}]})
        columns = ["reward", "passed", "feedback", "error"]
        assert assay.score(frame, plan).select(columns).equals(assay.score(frame, spec).select(columns))
