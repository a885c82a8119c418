"""Expected values of the rows' functions: the column that has them, and lists of golds.

A list or an array is a list of golds, of which the best counts; a nested one is flattened, and nulls are left out. A function of
yours gets the list as it is.
"""

from collections.abc import Container
from typing import Any

from assay.expressions.json import mended
from assay.names import EXPECTED, GOLD_COLUMNS

__all__ = ["GOLD_COLUMNS", "gold_column", "gold_note", "golds_of", "is_absent", "is_listed"]


def gold_column(columns: Container[str]) -> str | None:
    """Return the column of expected values; None if there is none."""
    return next((name for name in GOLD_COLUMNS if name in columns), None)


def gold_note(columns: Container[str]) -> list[str]:
    """Return the note that says which column is used, if it is not ``expected``."""
    name = gold_column(columns)
    return [] if name in (None, EXPECTED) else [f"the expected values are in `{name}`: there is no column `{EXPECTED}`"]


def is_listed(expected: Any) -> bool:
    """Return whether an expected value is a list of golds."""
    return isinstance(expected, list | tuple) or (
        bool(getattr(expected, "ndim", 0)) and callable(getattr(expected, "tolist", None))
    )


def golds_of(expected: Any) -> list[Any]:
    """Return the golds of an expected value, in order; none of them is null or a list."""
    golds: list[Any] = []
    rest = [expected]
    while rest:
        value = rest.pop()
        if is_listed(value):
            rest.extend(reversed(value if isinstance(value, list | tuple) else value.tolist()))
        elif value is not None:
            golds.append(mended(value) if isinstance(value, str) else value)
    return golds


def is_absent(expected: Any) -> bool:
    """Return whether there is nothing to compare with: null, an empty list, or a list of nulls."""
    return expected is None or (is_listed(expected) and not golds_of(expected))
