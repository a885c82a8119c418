"""Each check type, and all of them together, on 5,000 texts: equal verdicts first, then the first call of the plan and of the row loop."""

import json

import polars as pl
import pytest

from harness.comparing import written
from harness.draws import SpecDraw
from harness.generate import CACHE, ROWS, drawn_file
from harness.process import Race, contender
from harness.table import line, per_row

HERE = min(ROWS, 5_000)
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
SPECS = {name: [{"type": name, **params}] for name, params in CHECKS.items()}
SPECS["regex with look-ahead"] = [{"type": "regex", "pattern": r"refund(?! policy)"}]
SPECS["all together"] = [{"type": name, **params} for name, params in CHECKS.items()]


@pytest.mark.parametrize("name", SPECS)
def test_check(name, table):
    spec = CACHE / "check.json"
    rollouts = drawn_file(SpecDraw(0, "json", (*SPECS["task_expectations"],)))
    spec.write_text(json.dumps({"checks": SPECS[name]}), "utf-8")
    race = Race(
        {module: contender(module, rollouts, HERE, 1, spec=spec) for module in ("columns", "row_loop")}, turns=1
    )
    ours, looped = (pl.read_parquet(written(module)) for module in race.commands)
    assert ours.select(looped.columns).equals(looped)
    mine = race.call("columns")
    for module, shown in (("columns", "assay"), ("row_loop", "our definition, the loop over row()")):
        call, what = race.call(module), f"{name}, {HERE:,} rows"
        cold = {"ratio": (call.seconds / mine.seconds, "assay"), "cpu_ratio": (call.cpu / mine.cpu, "assay")}
        table.append(line(what, shown, per_row(call.seconds, HERE), per_row(call.cpu, HERE), **cold))
        table.append(line(what, shown, per_row(call.warm, HERE), state="warm", ratio=(call.warm / mine.warm, "assay")))
