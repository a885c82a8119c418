"""What adapters share: the column of golds by the name that the trainer's data gives it, and rewards that must be numbers."""

from collections.abc import Mapping
from typing import Any

from assay.errors import FailedRunError, UsageError, listed
from assay.names import EXPECTED

_ANSWER = "answer"

Unscored = str | float
"""What a trainer that takes numbers only gets for an unscored rollout: a number, or ``raise``."""


def with_gold(columns: Mapping[str, Any], gold: str) -> dict[str, Any]:
    """Return columns, or a row, with the golds under the name that checks and functions read."""
    if gold in (_ANSWER, EXPECTED):
        return dict(columns)
    if gold not in columns:
        raise UsageError(f"gold={gold!r}: there is no such column.", f"Columns: {listed([*columns])}.")
    return {name: value for name, value in columns.items() if name != EXPECTED} | {_ANSWER: columns[gold]}


def check_unscored(unscored: Unscored) -> None:
    """Check that an option is a number or ``raise``."""
    if not isinstance(unscored, int | float) and unscored != "raise":
        raise UsageError(f"unscored={unscored!r}: expected a number, or 'raise'.")


def number_of(result: Mapping[str, Any], unscored: Unscored) -> float:
    """Return the reward of a result as a number."""
    check_unscored(unscored)  # at the first rollout, not at the first unscored one
    if (reward := result["reward"]) is not None:
        return float(reward)
    if unscored != "raise":
        return float(unscored)
    raise FailedRunError(
        f"A rollout cannot be scored: {result['error']}", "With unscored=0.0 such a rollout gets that reward."
    )
