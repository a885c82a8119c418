"""An overview of what has been read of a result, until its report is there."""

from typing import Any

from assay.errors import counted
from assay.insight.reports.index import Index
from assay.insight.reports.numbers import histogram_of, status_of
from assay.insight.reports.reporting import described, provenance_of


def first_overview(index: Index) -> dict[str, Any]:
    """Return a report as JSON data with the numbers that an index has: ``complete`` is false."""
    result, frame = index.result, index.frame
    rewards = frame["reward"].drop_nulls()
    passed = int((frame["state"] == "pass").sum()) if "passed" in result.schema else None
    summary = {
        "rows": result.rows,
        "scored": len(rewards),
        "unscored": frame.height - len(rewards),
        "mean": rewards.mean(),
        "passed": passed,
        "pass_rate": passed / len(rewards) if passed is not None and len(rewards) else None,
    }
    note = f"{frame.height:,} of {counted(result.rows, 'row')} have been read"
    return {
        "insight": 1,
        "complete": False,
        "scanned": frame.height,
        "summary": summary,
        "histogram": histogram_of(frame["reward"]),
        "checks": [_check(index, at) for at in range(len(result.checks))],
        "pairs": [],
        "by": {},
        "examples": {},
        "findings": [],
        "heat": index.heat(),
        "provenance": provenance_of(result),
        "notes": [*result.notes, note],
    }


def _check(index: Index, at: int) -> dict[str, Any]:
    check = index.result.checks[at]
    passes = index.frame[f"check/{at}"].drop_nulls()
    numbers: dict[str, Any] = {"rows": len(passes), "failures": int(passes.not_().sum()), "pass_rate": passes.mean()}
    numbers |= {"separates": None, "rest_correlation": None}
    return described(check) | numbers | {"status": status_of(numbers), "reasons": []}
