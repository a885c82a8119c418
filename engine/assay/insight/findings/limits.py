"""The kinds of findings in their order, and from when on a fact is one."""

from collections.abc import Mapping

from assay.scoring.summary import Summary

LEVELS: Mapping[str, int] = {
    **dict.fromkeys(("errors", "unscored", "outlier", "near_miss", "not_found", "dead"), 1),
    **dict.fromkeys(("truncated", "flat", "duplicates", "mixed", "shared_prompt", "odd_size", "length", "drift"), 2),
    **dict.fromkeys(("saturated", "redundant"), 3),
}
"""Each kind with its level: rewards are likely wrong, rollouts need a look, a check teaches little."""

LIMITS: Mapping[str, Mapping[str, float]] = {
    "outlier": {"odds": 2.5, "p": 0.01, "tasks": 10},
    "near_miss": {"rows": 5, "share": 0.05, "why": 0.2},
    "not_found": {"rows": 10, "share": 0.05, "most": 0.5, "elsewhere": 0.2, "p": 0.001, "why": 0.5},
    "dead": {"share": 0.01, "expected": 0.05, "p": 0.01},
    "truncated": {"rows": 10, "share": 0.02},
    "flat": {"share": 0.8, "groups": 8},
    "duplicates": {"rows": 10, "share": 0.02, "copies": 0.2, "length": 50, "tasks": 3},
    "mixed": {"share": 0.0, "groups": 1},
    "shared_prompt": {"share": 0.0, "groups": 1},
    "odd_size": {"share": 0.05, "groups": 20},
    "length": {"correlation": 0.5, "rows": 64, "groups": 8},
    "drift": {"steps": 6, "reward": 0.05, "pass_rate": 0.1, "p": 0.001},
    "saturated": {"share": 0.01, "expected": 0.05, "p": 0.01},
}
"""``share`` is of all rows, groups or failures, ``p`` the greatest of a test; ``why``: the share of failures that a kind explains."""

FEW_ROWS = 20
"""Scored rows below which rates say nothing: of the result, and of a model."""

OF_ONE_MODEL = 0.9
"""Share of the rows from which on a finding is one model's."""

MOST_FINDINGS, MOST_ROWS = 50, 50


def may_tell(summary: Summary) -> bool:
    """Return whether the counts of a run may have findings: most have none, and then need not import what makes them."""
    always, never = LIMITS["saturated"]["share"], 1 - LIMITS["dead"]["share"]
    failing = (check.failures / check.rows for check in summary.checks if check.rows >= FEW_ROWS)
    return bool(summary.errors) or any(not always < share < never for share in failing)
