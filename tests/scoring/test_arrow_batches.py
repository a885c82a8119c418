"""A batch in Arrow: one row for each, always the same columns, whoever calls."""

import json

import polars as pl
import pyarrow as pa
import pytest
from cases import each

import assay
from assay.scoring import arrow_batches as batch

SPEC = {"id": "v", "checks": [{"type": "contains", "value": "refund"}, {"type": "max_length", "value": 8}]}
ROWS = {
    "completion": ["a refund", "no", None], "n": [1, 2, 3], "kind": pa.array(["a", "b", "a"]).dictionary_encode(),
    "parts": pa.array([["x"], [], None], pa.large_list(pa.large_string())),
    "view": pa.array(["x", None, "y"], pa.string_view()),
    "pair": pa.array([[1.0, 2.0]] * 3, pa.list_(pa.float64(), 2)), "meta": [{"a": "x", "b": [b"y"]}] * 3,
    "none": pa.nulls(3),
}  # fmt: skip
TABLE = pa.table(ROWS)
PLAIN = {
    "n": pa.int64(), "kind": pa.string(), "parts": pa.list_(pa.string()), "view": pa.string(),
    "pair": pa.list_(pa.float64(), 2), "meta": pa.struct({"a": pa.string(), "b": pa.list_(pa.binary())}),
    "none": pa.null(),
}  # fmt: skip
RESULTS = {
    "reward": pa.float64(), "passed": pa.bool_(), "feedback": pa.string(), "error": pa.string(),
    "score/v": pa.float64(), "check/v/contains": pa.float64(), "check/v/max_length": pa.float64(),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _no_plans():
    batch._PLANS.clear()


def test_rows_and_order_are_kept_and_rewards_are_those_of_score():
    for given in (TABLE, TABLE.to_batches()[0], pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)])):
        scored = assay.score_batch(given, SPEC)
        assert scored["n"].to_pylist() == [1, 2, 3]
        assert scored.to_pylist() == assay.score(TABLE, SPEC).to_dicts()


@each(
    "rows",
    [
        TABLE,
        TABLE.slice(0, 0),
        TABLE.slice(2),
        pa.table({name: pa.nulls(2, of) for name, of in zip(TABLE.schema.names, TABLE.schema.types, strict=True)}),
    ],
    ids=["rows", "empty", "null completion", "all null"],
)
def test_every_batch_has_the_schema_that_was_told(rows):
    told = assay.batch_schema(TABLE.schema, SPEC)
    assert dict(zip(told.names, told.types, strict=True)) == PLAIN | RESULTS
    scored = assay.score_batch(rows, SPEC)
    assert scored.schema.equals(told, check_metadata=True)
    assert scored.num_rows == rows.num_rows
    scored.validate(full=True)


@each("dtype", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_results_do_not_depend_on_the_layout_of_text(dtype):
    schema = pa.schema({"completion": dtype})
    assert assay.batch_schema(schema, SPEC) == pa.schema(RESULTS)
    assert assay.score_batch(TABLE.select(["completion"]).cast(schema), SPEC)["reward"].to_pylist() == [1.0, 0.5, None]


def test_rows_that_carry_their_own_verifier_have_their_columns():
    rows = pa.table({"completion": ["4", "5"], "fn_name": ["exact_match"] * 2, "expected": ["4", "4"]})
    scored = assay.score_batch(rows)
    assert scored.to_pylist() == assay.score(rows).to_dicts()
    assert scored.schema == assay.batch_schema(rows.schema)


def test_columns_are_chosen_as_in_score():
    assert assay.score_batch(TABLE, SPEC, keep=["n"], details=False).column_names == ["n", *list(RESULTS)[:4]]
    assert assay.score_batch(TABLE, SPEC, keep="n").column_names == ["n", *RESULTS]
    assert assay.score_batch(TABLE, SPEC, keep=[]).column_names == list(RESULTS)


def test_a_plan_is_compiled_once_for_a_verifier_and_a_schema(monkeypatch, tmp_path):
    compiled = []
    monkeypatch.setattr(batch, "compile", lambda *a, **k: compiled.append(a) or assay.compile(*a, **k))
    path = tmp_path / "v.json"
    path.write_text(json.dumps(SPEC))
    for number, verifier in enumerate((SPEC, [SPEC], assay.load_verifier(SPEC), str(path), path), 1):
        for rows in (TABLE, TABLE.slice(1), TABLE.slice(0, 0)):
            assay.score_batch(rows, verifier)
        assert len(compiled) == min(number, 4)  # a path is its text
    assay.score_batch(TABLE.select(["completion"]), SPEC)
    assert len(compiled) == 5
    path.write_text(json.dumps(SPEC | {"checks": [{"type": "contains", "value": "another"}]}))
    assert assay.score_batch(TABLE, path)["reward"].to_pylist() == [0.0, 0.0, None]


def test_few_plans_are_kept(monkeypatch):
    monkeypatch.setattr(batch, "_MAX_PLANS", 2)
    for value in "abcab":
        assay.score_batch(TABLE, {"id": "v", "checks": [{"type": "contains", "value": value}]})
        assert len(batch._PLANS) <= 2


def test_a_plan_is_taken_as_it_was_compiled():
    plan = assay.compile(SPEC, pl.from_arrow(TABLE.select(["completion"])))
    assert assay.score_batch(TABLE.select(["completion"]), plan).schema == pa.schema(RESULTS)
    with pytest.raises(assay.UsageError, match="as it was compiled"):
        assay.score_batch(TABLE, plan, keep=["n"])
    with pytest.raises(assay.ColumnsError, match="Compile a plan for this schema"):
        assay.score_batch(TABLE.select(["n"]), plan)


@each(
    ("table", "error", "said"),
    [
        ([{"completion": "x"}], assay.InputError, "A batch of type list cannot be scored."),
        (pl.DataFrame({"completion": ["x"]}), assay.InputError, "A batch of type DataFrame cannot be scored."),
        (TABLE.select(["n"]), assay.ColumnsError, "completion"),
        (
            pa.table(
                {
                    "completion": pa.Array.from_buffers(
                        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")]
                    )
                }
            ),
            assay.InputError,
            "The Arrow data is not valid",
        ),
    ],
    ids=["rows", "polars", "no completion", "not UTF-8"],
)
def test_what_is_no_batch_is_refused(table, error, said):
    with pytest.raises(error, match=said):
        assay.score_batch(table, SPEC)


def test_what_is_no_schema_is_refused():
    with pytest.raises(assay.InputError, match=r"Give a pyarrow\.Schema"):
        assay.batch_schema(TABLE, SPEC)


def test_a_batch_that_no_plain_type_holds_is_refused(monkeypatch):
    def large(*_):
        raise pa.ArrowInvalid("Failed casting from large_string to string")

    monkeypatch.setattr(batch, "in_schema", large)
    batch._PLANS[assay.compile(SPEC, pl.from_arrow(TABLE))] = (plan := assay.compile(SPEC, pl.from_arrow(TABLE)), None)
    with pytest.raises(assay.InputError, match="Use smaller batches"):
        assay.score_batch(TABLE, plan)
