"""Minimums that a run has to reach; a run that does not still writes its result."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

_ROUNDING = 1e-9
"""Relative difference between a mean and a minimum that the order of additions may cause."""


@dataclass(frozen=True)
class Gate:
    """A minimum, and what a run reached."""

    option: str
    limit: float
    value: float | None
    met: bool
    words: str

    def as_json(self) -> dict[str, Any]:
        """Return JSON data."""
        return {name: getattr(self, name) for name in ("option", "limit", "value", "met")}


def pass_rate_gate(least: Fraction, passed: int, scored: int, unscored: int = 0) -> Gate:
    """Compare the share of the rows that passed with a minimum, without rounding."""
    rows = scored + unscored
    value = passed / rows if scored else None
    met = scored > 0 and Fraction(passed, rows) >= least
    others = f", {unscored:,} unscored" if unscored else ""
    reached = "no row is scored" if value is None else f"{passed:,} of {rows:,} rows passed ({_percent(value)}){others}"
    words = f"pass rate: {reached}; --min-pass-rate asks for {_percent(float(least))}"
    return Gate("--min-pass-rate", float(least), value, met, words)


def reward_gate(least: float, mean: float | None) -> Gate:
    """Compare the mean reward with a minimum; a difference in the last digits of a sum does not count."""
    met = mean is not None and (mean >= least or math.isclose(mean, least, rel_tol=_ROUNDING, abs_tol=1e-12))
    reached = "no row is scored" if mean is None else f"{mean:.6g}"
    return Gate("--min-reward", least, mean, met, f"mean reward: {reached}; --min-reward asks for {least:g}")


def _percent(share: float) -> str:
    return f"{100 * share:.6g}%"
