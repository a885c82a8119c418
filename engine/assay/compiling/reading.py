"""The columns that checks read, in types that Python can read and with bytes as text; the columns as given pass through."""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from assay.checks.base import is_builtin
from assay.compiling.lost_bytes import lost_exprs, lost_in, not_text
from assay.compiling.requirements import read_columns, referred_columns
from assay.expressions.lane import exactly, not_hidden, plain, plain_type
from assay.expressions.readable import has_type, readable, readable_value
from assay.names import COMPLETION, HIDDEN, TASK_ID, VERIFIER_COLUMNS
from assay.spec.verifier import VerifierSpec
from assay.values.arguments import ARGUMENTS
from assay.values.column import OPEN, STRUCTURED
from assay.values.failures import failure_columns
from assay.values.paths import Path

_GIVEN = HIDDEN + "given/"
"""Prefix of a converted column as it was."""
_OURS = {COMPLETION, TASK_ID, "id", *ARGUMENTS, *VERIFIER_COLUMNS, *STRUCTURED, *OPEN}
"""Columns that Assay reads by their names."""

Conversions = Mapping[str, tuple[pl.Expr, Any]]
"""The columns to convert: their values, and the types of these."""


def conversions(verifiers: Sequence[VerifierSpec], schema: pl.Schema) -> Conversions:
    """Return the columns that are to be converted before checks read them."""
    converted = {}
    for name, as_text in _read(verifiers, schema.names()).items():
        values = exactly(name).alias("value")
        if name in STRUCTURED and isinstance(schema[name], pl.Categorical | pl.Enum):  # JSON text that repeats
            pair = plain(values, schema[name]), plain_type(schema[name])
        else:
            pair = readable(values, schema[name], as_text=as_text)
        if pair[0] is not values:
            converted[name] = pair
    return converted


def _read(verifiers: Sequence[VerifierSpec], names: Iterable[str]) -> dict[str, bool]:
    names = [*names]
    checks = [spec.check for verifier in verifiers for spec in verifier.nodes if spec.check is not None]
    ours = (name for check in checks if is_builtin(check) for name in (*check.traits.reads, *check.traits.may_read))
    failures = failure_columns({*names})
    texts = {*_OURS, *failures, *ours, *referred_columns(verifiers)}
    if any(check.traits.reads_all for check in checks):
        read = {*not_hidden(names)}
    else:
        read = {*read_columns(verifiers), *failures, TASK_ID}
    return {name: name in texts for name in names if name in read}


def merged(several: Iterable[Conversions]) -> Conversions:
    """Return the conversions for several plans on the same rows: bytes that one of them reads as text are text."""
    together: dict[str, tuple[pl.Expr, Any]] = {}
    for converted in several:
        for name, pair in converted.items():
            if name not in together or has_type(together[name][1], pl.Binary):
                together[name] = pair
    return together


def opened(frame: pl.LazyFrame, converted: Conversions) -> pl.LazyFrame:
    """Convert columns, and keep them as given in hidden ones."""
    if not converted:
        return frame
    kept = (exactly(name).alias(_GIVEN + name) for name in converted)
    return frame.with_columns(*kept, *(values.alias(name) for name, (values, _) in converted.items()))


def as_given(name: str, converted: Conversions) -> pl.Expr:
    """Return a column of an opened frame as it was."""
    return pl.col(_GIVEN + name).alias(name) if name in converted else exactly(name)


def unreadable_exprs(
    converted: Conversions, schema: pl.Schema, paths: Sequence[Path], *, any_role: bool
) -> list[pl.Expr]:
    """Return why rows of an opened frame cannot be scored, as String expressions."""
    columns = [
        pl.when(pl.col(_GIVEN + name).is_not_null() & exactly(name).is_null()).then(pl.lit(not_text(Path((name,)))))
        for name, (_, dtype) in converted.items()
        if dtype == pl.String
    ]
    given = {name: _GIVEN + name for name in converted}
    return [*columns, *lost_exprs(paths, schema, given, any_role=any_role)]


def text_columns(verifiers: Sequence[VerifierSpec], names: Iterable[str]) -> set[str]:
    """Return the columns that checks read in which bytes are text, of those that there are."""
    return {name for name, as_text in _read(verifiers, names).items() if as_text}


def readable_row(
    row: Mapping[str, Any], texts: Container[str], paths: Sequence[Path], *, any_role: bool
) -> tuple[dict[str, Any], str | None]:
    """Return a row as checks read it, and why it cannot be scored."""
    converted = {name: readable_value(value) if name in texts else value for name, value in row.items()}
    lost = (Path((name,)) for name, value in row.items() if isinstance(value, bytes) and converted[name] is None)
    return converted, next(map(not_text, lost), None) or lost_in(row, paths, any_role=any_role)
