"""The verifier that a row carries: the function that scores it, the expected value and the params.

It is in the column ``verifier``, a struct or JSON text ``{kind, fn_name, expected, params}``; without that column, it is in the
columns ``fn_name``, ``expected`` (else ``answer``, else ``target``) and ``params``. In a struct, a null field counts as absent. This is the definition, row by row;
``request_columns`` does the same with columns.

A list or an array of expected values is a list of golds, of which the best counts; a nested one is flattened, and nulls are left out.
A function of yours gets the list as it is.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

from assay.errors import did_you_mean, encodable, quoted
from assay.expressions.json import loads, mended
from assay.expressions.mixed import JSON, untyped
from assay.names import EXPECTED, FN_NAME, GOLD_COLUMNS, IN_PROCESS, PARAMS, VERIFIER, VERIFIER_COLUMNS
from assay.system.cache import cached_within

FIELDS = ("kind", FN_NAME, EXPECTED, PARAMS)
NOT_OBJECT = "verifier is not a JSON object"
_BAD_PARAMS = "verifier.params is not an object"
_NO_NAME = "verifier.fn_name is not a string"


@dataclass(frozen=True)
class RowVerifier:
    """The verifier that a row carries."""

    fn: str = ""
    expected: Any = None
    params: Mapping[str, Any] | None = None
    problem: str = ""
    refused: bool = False
    doubt: str = ""


def verifier_of(row: Mapping[str, Any], default: str = "") -> RowVerifier:
    """Return the verifier that a row carries, with a default function; this is the definition."""
    if VERIFIER in row:
        return read_verifier(row[VERIFIER], default)
    parts = {name: row[name] for name in VERIFIER_COLUMNS if name in row and name != VERIFIER}
    if EXPECTED not in row and (gold := gold_column(row)) is not None:
        parts[EXPECTED] = row[gold]
    return read_verifier(parts, default)


def read_verifier(verifier: Any, default: str = "") -> RowVerifier:
    """Read a ``verifier``: a mapping, its JSON text, or None."""
    verifier = loads(verifier) if isinstance(verifier, str) else _plain(verifier)
    if not isinstance(verifier, dict | None):
        return RowVerifier(problem=f"ValueError: {NOT_OBJECT}")
    verifier = verifier or {}
    if (kind := verifier.get("kind")) not in (None, "", IN_PROCESS):
        return RowVerifier(problem=f"verifier kind {quoted(str(kind))} is not {IN_PROCESS}", refused=True)
    fn = verifier.get(FN_NAME)
    if not isinstance(fn, str | None):
        return RowVerifier(problem=f"ValueError: {_NO_NAME}")
    fn = mended(fn) if fn and fn.strip() else default
    params = verifier.get(PARAMS)
    if isinstance(params, str):
        params = loads(params)
    if not isinstance(params, dict | None):
        return RowVerifier(fn, problem=f"ValueError: {_BAD_PARAMS}")
    expected = verifier.get(EXPECTED)
    doubt = "; ".join(unread(name) for name in verifier if name not in FIELDS)
    return RowVerifier(fn, mended(expected) if isinstance(expected, str) else expected, params or {}, doubt=doubt)


@cached_within(500_000, lambda _, name: 8 * len(name))
def unread(name: str) -> str:
    """Return the remark on a verifier's field that nothing reads."""
    guess = did_you_mean(name, FIELDS)
    return encodable(f"verifier.{name} is read by nothing{f'. {guess}' if guess else ''}")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        if [*value] == [JSON]:
            return untyped(value)
        return {str(key): _plain(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value if isinstance(value, str | int | float | None) else str(value)


def gold_column(columns: Container[str]) -> str | None:
    """Return the column of expected values; None if there is none."""
    return next((name for name in GOLD_COLUMNS if name in columns), None)


def gold_note(columns: Container[str]) -> list[str]:
    """Return the note that says which column is used, if it is not ``expected``."""
    name = gold_column(columns)
    return [] if name in (None, EXPECTED) else [f"the expected values are in `{name}`: there is no column `{EXPECTED}`"]


def is_listed(expected: Any) -> bool:
    """Return whether an expected value is a list of golds."""
    if isinstance(expected, str | dict | None):  # most are
        return False
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
