"""The verifier that a row carries: which function scores it, against what, with which params.

It stands in a column ``verifier``, a struct or JSON text ``{kind, fn_name, expected, params}``, or, where there is none, in the
columns ``fn_name``, ``expected`` and ``params``. In a struct a null field counts as absent. This is the definition, one row at
a time; ``request_columns`` is the same for columns.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assay.errors import did_you_mean, encodable, quoted
from assay.expressions.json import loads, mended
from assay.expressions.mixed import JSON, untyped
from assay.names import EXPECTED, FN_NAME, IN_PROCESS, PARAMS, VERIFIER, VERIFIER_COLUMNS
from assay.system.cache import cached_within

__all__ = [
    "FIELDS",
    "Asked",
    "read_verifier",
    "unread",
    "verifier_of",
]

FIELDS = ("kind", FN_NAME, EXPECTED, PARAMS)
NOT_OBJECT = "verifier is not a JSON object"
_BAD_PARAMS = "verifier.params is not an object"
_NO_NAME = "verifier.fn_name is not a string"


@dataclass(frozen=True)
class Asked:
    """What a row asks for.

    Attributes:
        fn: Name of the function; ``""`` when neither the row nor the run names one.
        expected: The gold, a JSON value; None when absent.
        params: Options of the function.
        problem: Why the row cannot be scored; ``""`` when it can.
        refused: Whether the problem is one that a run refuses before it scores anything.
        doubt: What its author may not have meant, though it can be scored: fields that nothing reads.
    """

    fn: str = ""
    expected: Any = None
    params: Mapping[str, Any] | None = None
    problem: str = ""
    refused: bool = False
    doubt: str = ""


def verifier_of(row: Mapping[str, Any], default: str = "") -> Asked:
    """The definition.

    Args:
        row: The rollout's columns.
        default: The function of rows that name none.
    """
    if VERIFIER in row:
        return read_verifier(row[VERIFIER], default)
    return read_verifier({name: row[name] for name in VERIFIER_COLUMNS if name in row and name != VERIFIER}, default)


def read_verifier(verifier: Any, default: str = "") -> Asked:
    """What one ``verifier`` asks for: a mapping, its JSON text, or None."""
    verifier = loads(verifier) if isinstance(verifier, str) else _plain(verifier)
    if not isinstance(verifier, dict | None):
        return Asked(problem=f"ValueError: {NOT_OBJECT}")
    verifier = verifier or {}
    if (kind := verifier.get("kind")) not in (None, "", IN_PROCESS):
        return Asked(problem=f"verifier kind {quoted(str(kind))} is not {IN_PROCESS}", refused=True)
    fn = verifier.get(FN_NAME)
    if not isinstance(fn, str | None):
        return Asked(problem=f"ValueError: {_NO_NAME}")
    fn = mended(fn) if fn and fn.strip() else default
    params = verifier.get(PARAMS)
    if isinstance(params, str):
        params = loads(params)
    if not isinstance(params, dict | None):
        return Asked(fn, problem=f"ValueError: {_BAD_PARAMS}")
    expected = verifier.get(EXPECTED)
    doubt = "; ".join(unread(name) for name in verifier if name not in FIELDS)
    return Asked(fn, mended(expected) if isinstance(expected, str) else expected, params or {}, doubt=doubt)


@cached_within(500_000, lambda _, name: 8 * len(name))
def unread(name: str) -> str:
    """What to say of a field of a verifier that nothing reads."""
    guess = did_you_mean(name, FIELDS)
    return encodable(f"verifier.{name} is read by nothing{f'. {guess}' if guess else ''}")


def _plain(value: Any) -> Any:
    """A value of a column as JSON has it; fields that are null in a struct were absent before rows were made alike."""
    if isinstance(value, Mapping):
        if [*value] == [JSON]:
            return untyped(value)
        return {str(key): _plain(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value if isinstance(value, str | int | float | None) else str(value)
