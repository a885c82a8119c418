"""Rows brought to the columns that a plan was compiled for, where that loses nothing.

Of a batch alone nobody can tell what its columns are: golds that happen to be all null or all integers, and lists that are all
empty, have another type than they have beside others. Here they get the type that they have there, and mean what they mean there.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

import polars as pl
from polars.exceptions import PanicException, PolarsError

from assay.errors import ColumnsError
from assay.expressions.lane import exactly, rowwise
from assay.expressions.mixed import JSON, TYPED
from assay.names import EXPECTED, VERIFIER

__all__ = ["fitted"]

_GOLDS = (EXPECTED, "answer", f"{VERIFIER}.{EXPECTED}")
"""Places where a value is compared by its ``str()``, so that a number is also its text, and 42 is not 42.0."""

_HINT = "Compile a plan for this schema."


class _NoSuchValueError(ValueError):
    """The wanted type does not have a value."""


def fitted(rollouts: pl.LazyFrame, schema: Mapping[str, Any]) -> pl.LazyFrame:
    """Rows whose columns have the types of a schema.

    Nulls become nulls of any type, empty lists those of any list; a struct gets the fields that it lacks, null, and loses those
    whose type is null; numbers become larger ones of which some equals each; text and its dictionary-encoded kinds, and lists and
    those of a fixed length, become each other; and a gold that is a number becomes its text, as its ``str()`` is what is compared.

    Args:
        rollouts: The rows.
        schema: Names and types.

    Returns:
        The same rows; the same frame where nothing is to be done.

    Raises:
        ColumnsError: Columns are missing, or have a type or values that would mean something else; all of them are named.
    """
    there, schema = rollouts.collect_schema(), pl.Schema(schema)
    if all(there.get(name) == dtype for name, dtype in schema.items()):
        return rollouts
    columns, problems = [], []
    for name, wanted in schema.items():
        found = there.get(name)
        if found is None:
            problems.append(f"The plan was compiled for `{name}` of type {wanted}; here it is missing.")
        elif found != wanted:
            change = _Change(name)
            expr = change.of(exactly(name), found, wanted, name).alias(name)
            unfit = _unfit_values(rollouts, expr) if change.unsure and change.unfit is None else change.unfit
            if unfit is not None:
                problems.append(f"The plan was compiled for `{name}` of type {wanted}; here it is {found}{unfit}.")
            columns.append(expr)
    if problems:
        raise ColumnsError("\n".join(problems), _HINT)
    return rollouts.with_columns(columns)


def _unfit_values(rollouts: pl.LazyFrame, expr: pl.Expr) -> str | None:
    """What to say of values that the wanted type does not have; None where it has them all."""
    try:
        rollouts.select(expr).collect()
    except (_NoSuchValueError, PolarsError, PanicException):
        return ", with values that the other type does not have"
    return None


class _Change:
    """How a column gets another type.

    Attributes:
        unfit: What to say where it cannot: the part that is to blame, after the types of the whole; None where it can.
        unsure: Whether that depends on the values.
    """

    def __init__(self, column: str) -> None:
        self.unfit: str | None = None
        self.unsure = False
        self._column = column

    def of(self, values: pl.Expr, found: Any, wanted: Any, place: str) -> pl.Expr:
        """Values of one type as those of another."""
        if found == wanted:
            return values
        if found == pl.Null or (_is_text(found) and _is_text(wanted)):
            self.unsure = self.unsure or (found != pl.Null and isinstance(wanted, pl.Enum))
            return values.cast(wanted)
        if (way := self._way(found, wanted, place)) is not None:
            return way(values, found, wanted, place)
        if self.unfit is None:
            self.unfit = "" if place == self._column else f" (`{place}` is {found}, not {wanted})"
        return pl.lit(None, dtype=wanted)

    def _way(self, found: Any, wanted: Any, place: str) -> Callable[[pl.Expr, Any, Any, str], pl.Expr] | None:
        """How values of one type become those of another; None where they mean something else."""
        is_gold = place in _GOLDS
        if is_gold and _is_gold(found) and wanted in (pl.String, TYPED):
            return self._gold
        if (
            isinstance(found, pl.Struct)
            and isinstance(wanted, pl.Struct)
            and wanted.fields
            and wanted != TYPED != found
        ):
            return self._struct
        if isinstance(found, pl.List | pl.Array) and isinstance(wanted, pl.List | pl.Array):
            return self._list
        if _is_larger(found, wanted) and not (is_gold and wanted.is_float() != found.is_float()):
            return self._number
        return None

    def _number(self, values: pl.Expr, found: Any, wanted: Any, place: str) -> pl.Expr:
        del place
        self.unsure = self.unsure or wanted.is_float() != found.is_float()
        return values.map_batches(lambda numbers: _same(numbers, wanted), wanted, is_elementwise=True)

    def _gold(self, values: pl.Expr, found: Any, wanted: Any, place: str) -> pl.Expr:
        del place
        if wanted == TYPED:
            values = values.cast(pl.String) if _is_text(found) else values
            return pl.struct(rowwise(values, json.dumps, pl.String).alias(JSON))
        if found == TYPED:
            self.unsure = True
            return rowwise(values.struct.field(JSON), _text_of_json, pl.String)
        return rowwise(values, str, pl.String)

    def _struct(self, values: pl.Expr, found: pl.Struct, wanted: pl.Struct, place: str) -> pl.Expr:
        there, asked = found.to_schema(), wanted.to_schema()
        extra = [name for name, dtype in there.items() if name not in asked and dtype != pl.Null]
        if extra and self.unfit is None:
            self.unfit = f" (`{place}` has `{extra[0]}`, which the other has not)"
        fields = [
            self.of(values.struct.field(name), there[name], dtype, f"{place}.{name}")
            if name in there
            else pl.lit(None, dtype=dtype)
            for name, dtype in asked.items()
        ]
        whole = pl.struct(field.alias(name) for name, field in zip(asked, fields, strict=True))
        return pl.when(values.is_not_null()).then(whole)

    def _list(self, values: pl.Expr, found: Any, wanted: Any, place: str) -> pl.Expr:
        self.unsure = self.unsure or isinstance(wanted, pl.Array)
        if isinstance(found, pl.Array):
            values = values.cast(pl.List(found.inner), strict=False)
        inner = self.of(pl.element(), found.inner, wanted.inner, f"{place}[]")
        return (values if found.inner == wanted.inner else values.list.eval(inner)).cast(wanted)


def _is_text(dtype: Any) -> bool:
    return dtype == pl.String or isinstance(dtype, pl.Categorical | pl.Enum)


def _is_gold(dtype: Any) -> bool:
    """Whether values have a JSON text and a ``str()`` that columns of golds are compared by."""
    return dtype in (TYPED, pl.Boolean) or dtype.is_integer() or dtype.is_float() or _is_text(dtype)


def _text_of_json(text: str) -> str:
    value = json.loads(text)
    if isinstance(value, list | dict):
        raise _NoSuchValueError("a list or an object is no text")
    return str(value)


def _is_larger(found: Any, wanted: Any) -> bool:
    """Whether numbers of one type may be numbers of another; an integer that no float equals is found by its value."""
    if found.is_integer() and wanted.is_integer():
        (least, greatest), (low, high) = _range(found), _range(wanted)
        return low <= least and greatest <= high
    return bool(wanted == pl.Float64 and (found.is_integer() or found.is_float()))


def _range(dtype: Any) -> tuple[int, int]:
    """The least and the greatest integer of a type."""
    least, greatest = pl.select(dtype.min(), dtype.max().alias("greatest")).row(0)
    return least, greatest


def _same(numbers: pl.Series, wanted: Any) -> pl.Series:
    larger = numbers.cast(wanted)
    if wanted.is_float() != numbers.dtype.is_float() and not (larger.cast(numbers.dtype) == numbers).all():
        raise _NoSuchValueError("an integer that no float equals")
    return larger
