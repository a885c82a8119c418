"""Count the matches of a run that time out, and say so once for each check: such a run may take hours."""

import threading
from collections import Counter

_NOTED = 100
"""Rows of a check that time out before the user is told."""


class TimeoutCounts:
    """The rows of a run whose match timed out, by check."""

    def __init__(self) -> None:
        self._rows: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[object, ...]:
        return TimeoutCounts, ()  # another process counts its own rows

    def add(self, check: str, rows: int, seconds: float) -> str | None:
        """Count rows.

        Args:
            check: Name of the check.
            rows: Rows with a text whose match has timed out.
            seconds: The time limit.

        Returns:
            A note for the user if these rows complete the first hundred of this check.
        """
        with self._lock:
            before = self._rows[check]
            self._rows[check] += rows
        if not before < _NOTED <= before + rows:
            return None
        return (
            f"{check}: the matches of {before + rows:,} rows have timed out so far, after {seconds:g} s of processor time each "
            "(--regex-timeout). Lower that limit, stop such runs with --max-errors, or rewrite the pattern: `assay explain` says "
            "why it needs backtracking."
        )
