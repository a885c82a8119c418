"""The column ``length``: code points of what was scored, the same from every entry."""

import pickle

import polars as pl
import pytest

import assay
from assay.scoring.reference import score_rows

SPEC = {"id": "v", "checks": [{"type": "min_length", "value": 3}]}
CHAT = [{"role": "user", "content": "question"}, {"role": "assistant", "content": "né😀"}]
TEXTS = ["", "abc", "né😀", "a\u0301", None]
LENGTHS = [0, 3, 3, 2, None]


def test_lengths_are_counted_in_code_points_and_only_if_asked_for(tmp_path):
    frame = assay.score({"completion": TEXTS}, SPEC, lengths=True)
    assert frame.columns == ["reward", "passed", "feedback", "error", "length", "score/v", "check/v/min_length"]
    assert frame["length"].dtype == pl.UInt32
    assert frame["length"].to_list() == LENGTHS
    assert frame.drop("length").equals(assay.score({"completion": TEXTS}, SPEC))
    pl.DataFrame({"completion": TEXTS}).write_parquet(tmp_path / "in.parquet")
    for out, read in (("out.parquet", "out.parquet"), ("out/", "out/part-*.parquet")):
        assay.score_file(tmp_path / "in.parquet", SPEC, f"{tmp_path}/{out}", lengths=True, isolate=False)
        assert pl.read_parquet(f"{tmp_path}/{read}").equals(frame)


def test_the_row_loop_a_pickled_plan_and_batches_of_arrow_agree():
    frame = pl.DataFrame({"completion": TEXTS})
    plan = pickle.loads(pickle.dumps(assay.compile(SPEC, frame, lengths=True)))  # noqa: S301  (our own)
    assert plan.score(frame)["length"].to_list() == LENGTHS
    rows = score_rows(frame.to_dicts(), [assay.load_verifier(SPEC)], lengths=True)
    assert [row["length"] for row in rows] == LENGTHS
    batch = frame.to_arrow().to_batches()[0]
    assert assay.score_batch(batch, SPEC, lengths=True).column("length").to_pylist() == LENGTHS
    assert "length" not in assay.score_batch(batch, SPEC).schema.names
    with pytest.raises(assay.UsageError, match="lengths"):
        assay.score_batch(batch, plan, lengths=True)


def test_the_length_is_that_of_the_text_and_a_column_of_that_name_is_kept():
    frame = assay.score([{"completion": CHAT, "length": 7}], SPEC, lengths=True)
    assert frame.select("length", "prior_length").row(0) == (3, 7)
    assert assay.show(frame).cards[0].reward == 1.0
    assert assay.score([{"completion": "abc", "length": 7}], SPEC)["length"].to_list() == [7]
