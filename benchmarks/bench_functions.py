"""Verdicts on the row: 200,000 real texts, 25,000 distinct golds; the plan against the plain loop over ``assay.fns``."""

import pytest

from assay.judges import on_row
from contenders import columns, fn_loop
from generate import rows_with_verifiers

ROWS, GOLDS = 200_000, 25_000
CASES = {
    "exact_match": {},
    "exact_match, ignore_case": {"ignore_case": True},
    "contains": {},
    "contains, ignore_case": {"ignore_case": True},
    "regex_match": {},
    "regex_match, ignore_case": {"ignore_case": True},
    "tool_calls_match": {},
}


@pytest.mark.parametrize("contender", [columns, fn_loop], ids=lambda module: module.__name__.rpartition(".")[2])
@pytest.mark.parametrize("name", CASES)
def test_function(benchmark, name, contender):
    frame = rows_with_verifiers(name.partition(",")[0], CASES[name], ROWS, GOLDS)
    if frame is None:
        pytest.skip("the real texts are not here: ../shared/data/alpaca_rollouts.parquet")
    verifiers = [on_row()]
    if contender is columns:
        assert columns.run(columns.prepare(verifiers, frame), frame) == fn_loop.run(None, frame)
    prepared = contender.prepare(verifiers, frame)
    benchmark.group = f"{name}, {ROWS:,} rows"
    benchmark.pedantic(contender.run, args=(prepared, frame), rounds=3, warmup_rounds=1)
