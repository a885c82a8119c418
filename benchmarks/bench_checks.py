"""Each check type, and all of them together: equal rewards first, then the time of the columns and of the row loop."""

import pytest

from assay import load_verifier
from contenders import columns, row_loop
from harness.generate import rollouts

ROWS = 5_000
CHECKS = {
    "contains": {"value": "refund"},
    "not_contains": {"value": "gift card", "caseSensitive": True},
    "regex": {"pattern": r"\b\d+(?:\.\d+)?\b"},
    "equals": {"value": "no"},
    "min_length": {"value": 100},
    "max_length": {"value": 1500},
    "json_valid": {},
    "json_keys": {"requiredKeys": ["answer", "score"]},
    "task_expectations": {},
}
VERIFIERS = {name: [{"type": name, "params": params}] for name, params in CHECKS.items()}
VERIFIERS["regex with look-ahead"] = [{"type": "regex", "pattern": r"refund(?! policy)"}]
VERIFIERS["all together"] = [{"type": name, "params": params} for name, params in CHECKS.items()]


@pytest.fixture(scope="module")
def frame():
    return rollouts(ROWS)


@pytest.mark.parametrize("contender", [columns, row_loop], ids=lambda module: module.__name__.rpartition(".")[2])
@pytest.mark.parametrize("name", VERIFIERS)
def test_check(benchmark, frame, name, contender):
    verifiers = [load_verifier({"checks": VERIFIERS[name]})]
    assert columns.run(columns.prepare(verifiers, frame), frame) == row_loop.run(
        row_loop.prepare(verifiers, frame), frame
    )
    prepared = contender.prepare(verifiers, frame)
    benchmark.extra_info |= {"contender": contender.__name__, "rows": ROWS}
    benchmark.group = f"{name}, {ROWS:,} rows"
    benchmark.pedantic(contender.run, args=(prepared, frame), rounds=3)
