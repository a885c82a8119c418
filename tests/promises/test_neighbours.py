"""A row's result depends on that row alone: its values keep their own types beside any others, however the rows are given."""

from datetime import date
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from cases import each, sized

import assay


@each(
    ("value", "text"),
    [
        (np.int64(42), "42"),
        (np.float64(1.5), "1.5"),
        (np.bool_(1), "True"),
        (np.array([41, 42]), "42"),
        (np.str_("é"), "é"),
        (Decimal("1.50"), "1.50"),
        (date(2026, 1, 2), "2026-01-02"),
        (b"42", "42"),
        (("41", 42), "42"),
        (2**64, str(2**64)),
        ("\ud800", "\ufffd"),
    ],
    ids=repr,
)
@each("neighbour", [None, 1, 1.5, True, "x", [1], {"a": None}, Decimal(1)][:: sized(1, 3)], ids=repr)
def test_values_of_python_and_numpy_are_golds_beside_any_others(value, text, neighbour):
    spec = {"checks": [{"type": "equals", "value": {"column": "gold"}}]}
    rows = [{"completion": text, "gold": value}, {"completion": "", "gold": neighbour}]
    assert assay.score(rows, spec, lenient=True)["reward"][0] == 1.0
    plan = assay.compile(spec, {"completion": pl.String, "gold": pl.String})
    assert plan.score_rows(rows)["reward"][0] == 1.0
    # for a single row the definition answers
    assert assay.score(rows[:1], spec)["reward"][0] == 1.0


def test_bytes_that_are_no_text_are_refused_with_their_row():
    rows = [{"completion": "a", "gold": b"a"}, {"completion": "a", "gold": b"\xff"}]
    with pytest.raises(assay.InputError, match=r"Row 1: `gold` has bytes that are not UTF-8 \(byte 1\)"):
        assay.score(rows, {"checks": [{"type": "equals", "value": {"column": "gold"}}]})


def test_a_task_without_a_value_takes_that_of_the_rollout_whatever_their_types():
    spec = {"checks": [{"type": "equals", "value": {"column": "gold"}}]}
    rollouts = [{"task_id": task, "completion": "42", "gold": 42} for task in ("a", "b", "c")]
    tasks = [{"task_id": "a", "gold": None}, {"task_id": "b", "gold": "42"}, {"task_id": "c", "gold": [1.5, 42]}]
    assert assay.score(rollouts, spec, tasks=tasks)["reward"].to_list() == [1.0, 1.0, 1.0]
    assert assay.score(rollouts[:1], spec, tasks=tasks[:1])["reward"].to_list() == [1.0]


def test_a_function_gets_the_rows_own_value():
    @assay.reward(batched=True)
    def is_repr(completions, solution):
        return [float(text == repr(value)) for text, value in zip(completions, solution, strict=True)]

    values = [42, 1.5, True, "x", {"a": None}, [1, 2.5]]
    rows = [{"completion": repr(value), "solution": value} for value in values]
    assert assay.score(rows, assay.Rubric([is_repr]))["reward"].to_list() == [1.0] * len(rows)
    assert assay.score(rows[:1], assay.Rubric([is_repr]))["reward"].to_list() == [1.0]


@pytest.mark.parametrize(
    ("frames", "rewards"),
    [
        ([{"gold": [42]}, {"gold": [1.5]}], [1.0, 0.0]),
        ([{"gold": [42.0]}, {"gold": [42]}], [0.0, 1.0]),
        ([{"gold": ["42"]}, {"gold": [42]}, {"gold": [["41", "42"]]}], [1.0, 1.0, 1.0]),
        ([{"gold": [None]}, {"gold": [42]}, {"gold": [{"a": 42}]}], [None, 1.0, 0.0]),
    ],
)
def test_files_of_several_types_keep_their_own(tmp_path, frames, rewards):
    for number, columns in enumerate(frames):
        pl.DataFrame({"completion": ["42"], **columns}).write_parquet(tmp_path / f"{number}.parquet")
    spec = {"checks": [{"type": "equals", "value": {"column": "gold"}}]}
    assert assay.score(tmp_path, spec, lenient=True)["reward"].to_list() == rewards
    assay.score_file(tmp_path, spec, f"{tmp_path}/out/", part_bytes=1, isolate=False, lenient=True)
    assert pl.read_parquet(f"{tmp_path}/out/*.parquet")["reward"].to_list() == rewards
