"""Golds that are whole solutions are told before anybody wonders at rewards of 0."""

import json

import polars as pl
import pytest

import assay

ROWS = [{"completion": "18", "answer": "She sells 9 for 2.\n#### 18"}, {"completion": "3", "answer": "3"}]
HINT = 'goldOn: [{after: "####"}] reads the answer behind the mark'


def spec(kind, **more):
    return {"id": "v", "checks": [{"id": "gold", "type": kind, "value": {"column": "answer"}, **more}]}


def notes(tmp_path, rows, verifier, suffix=".jsonl"):
    path = tmp_path / f"rows{suffix}"
    if suffix == ".parquet":
        pl.DataFrame(rows).write_parquet(path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return assay.score_file(path, verifier, None, lenient=True).notes


@pytest.mark.parametrize("kind", ["equals", "contains", "starts_with"])
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_a_gold_that_is_a_solution_is_told_with_the_step_that_reads_it(tmp_path, kind, suffix):
    [note] = notes(tmp_path, ROWS, spec(kind), suffix)
    assert note == f"v/gold: the gold is a whole solution; {HINT}"
    mended = spec(kind, goldOn=[{"after": "####"}])
    assert notes(tmp_path, ROWS[:1], mended, suffix) == []
    assert assay.score(ROWS[:1], mended)["reward"].to_list() == [1.0]


@pytest.mark.parametrize("answer", ["18", "#### 18", "a\n####", "# a\n## b", None])
def test_other_golds_are_not(tmp_path, answer):
    assert notes(tmp_path, [{"completion": "18", "answer": answer}, ROWS[1]], spec("equals")) == []


def test_where_the_row_says_it_no_note_does(tmp_path):
    assert notes(tmp_path, ROWS, spec("number")) == []
    assert "reads one" in assay.score(ROWS, spec("number"))["error"][0]
