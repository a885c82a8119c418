"""Verdicts on the row: 200,000 real texts, 25,000 distinct golds or tasks; the plan against the plain loop."""

from functools import lru_cache

import pytest

from assay import load_verifier
from assay.compiling.verifiers import on_row
from contenders import columns, expectation_loop, fn_loop
from harness.generate import ABSENT, rows_with_expectations, rows_with_verifiers

ROWS, GOLDS = 200_000, 25_000
LOOPED = 20_000
"""Rows for the loop: with a pattern each it takes a second for every 5,000."""
FUNCTIONS = {
    "exact_match": {},
    "exact_match, ignore_case": {"ignore_case": True},
    "contains": {},
    "contains, ignore_case": {"ignore_case": True},
    "regex_match": {},
    "regex_match, ignore_case": {"ignore_case": True},
    "tool_calls_match": {},
}
EXPECTATIONS = {"task_expectations, JSON text": True, "task_expectations, structs": False}


@lru_cache(maxsize=1)
def _frame(name):
    if name in EXPECTATIONS:
        return rows_with_expectations(ROWS, GOLDS, as_text=EXPECTATIONS[name])
    return rows_with_verifiers(name.partition(",")[0], FUNCTIONS[name], ROWS, GOLDS)


@pytest.mark.parametrize("assays", [True, False], ids=["assay", "loop"])
@pytest.mark.parametrize("name", [*FUNCTIONS, *EXPECTATIONS])
def test_function(benchmark, name, assays):
    frame = _frame(name)
    if frame is None:
        pytest.skip(ABSENT)
    loop = expectation_loop if name in EXPECTATIONS else fn_loop
    verifiers = [load_verifier({"checks": [{"type": "task_expectations"}]}) if name in EXPECTATIONS else on_row()]
    contender, rows = (columns, frame) if assays else (loop, frame[:LOOPED])
    prepared = contender.prepare(verifiers, rows)
    if assays:
        looped = loop.run(None, frame[:LOOPED])["reward"]
        assert columns.run(prepared, frame)["reward"][:LOOPED] == looped
    benchmark.group = f"{name}, {GOLDS:,} golds"
    benchmark.extra_info |= {"contender": contender.__name__, "rows": len(rows)}
    benchmark.extra_info |= {"at_most": 5} if assays else {"at_least": 4}
    benchmark.pedantic(contender.run, args=(prepared, rows), rounds=3)
