"""Convert rows to the column types that a plan was compiled for, if that loses nothing.

The types of a single batch may differ from those of the whole data: expected values that happen to be all null or all integers,
lists that are all empty. They get the types of the whole data here, without a change of meaning.
"""

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

import polars as pl
from polars.exceptions import PanicException, PolarsError

from assay.errors import ColumnsError, printable
from assay.expressions.json import mended
from assay.expressions.lane import exactly, field_of, rowwise
from assay.expressions.mixed import JSON, TYPED
from assay.names import EXPECTED, GOLD_COLUMNS, VERIFIER

_GOLDS = (*GOLD_COLUMNS, f"{VERIFIER}.{EXPECTED}")
"""Columns whose values are compared by their ``str()``, so that a number equals its text, and 42 differs from 42.0."""

_HINT = "Compile a plan for this schema."


class _NoSuchValueError(ValueError):
    """A value does not exist in the target type."""


def fitted(rollouts: pl.LazyFrame, schema: Mapping[str, Any], exact: Collection[str] = ()) -> pl.LazyFrame:
    """Convert the columns of rows to the types of a schema."""
    current, schema = rollouts.collect_schema(), pl.Schema(schema)
    if all(current.get(name) == dtype for name, dtype in schema.items()):
        return rollouts
    columns, problems = [], []
    for name, target in schema.items():
        source = current.get(name)
        if source is None:
            problems.append(f"The plan was compiled for `{printable(name)}` of type {target}; here it is missing.")
        elif source != target:
            conversion = _Conversion(name, is_exact=name in exact)
            expr = conversion.of(exactly(name).alias("value"), source, target, name).alias(name)
            misfit = conversion.misfit
            if misfit is None and conversion.depends_on_values:
                misfit = _value_misfit(rollouts, expr)
            if misfit is not None:
                problems.append(
                    f"The plan was compiled for `{printable(name)}` of type {target}; here it is {source}{misfit}."
                )
            columns.append(expr)
    if problems:
        raise ColumnsError("\n".join(problems), _HINT)
    return rollouts.with_columns(columns)


def _value_misfit(rollouts: pl.LazyFrame, expr: pl.Expr) -> str | None:
    try:
        rollouts.select(expr).collect()
    except (_NoSuchValueError, PolarsError, PanicException):
        return ", with values that the plan's type cannot hold"
    return None


class _Conversion:
    """The conversion of a column to another type."""

    def __init__(self, column: str, *, is_exact: bool) -> None:
        self.misfit: str | None = None
        self.depends_on_values = False
        self._column, self._is_exact = column, is_exact

    def of(self, values: pl.Expr, source: Any, target: Any, place: str) -> pl.Expr:
        """Return values of one type as an expression of another type."""
        if source == target:
            return values
        if source == pl.Null or (_is_text(source) and _is_text(target)):
            self.depends_on_values = self.depends_on_values or (source != pl.Null and isinstance(target, pl.Enum))
            return values.cast(target)
        if (convert := self._converter(source, target, place)) is not None:
            return convert(values, source, target, place)
        if self.misfit is None:
            self.misfit = "" if place == self._column else f" (`{printable(place)}` is {source}, not {target})"
        return pl.lit(None, dtype=target)

    def _converter(self, source: Any, target: Any, place: str) -> Callable[[pl.Expr, Any, Any, str], pl.Expr] | None:
        is_gold = self._is_exact or place in _GOLDS
        if is_gold and _is_gold(source) and target in (pl.String, TYPED):
            return self._gold
        if (
            isinstance(source, pl.Struct)
            and isinstance(target, pl.Struct)
            and target.fields
            and target != TYPED != source
        ):
            return self._struct
        if isinstance(source, pl.List | pl.Array) and isinstance(target, pl.List | pl.Array):
            return self._list
        if _is_larger(source, target) and not (is_gold and target.is_float() != source.is_float()):
            return self._number
        return None

    def _number(self, values: pl.Expr, source: Any, target: Any, place: str) -> pl.Expr:
        del place
        self.depends_on_values = self.depends_on_values or target.is_float() != source.is_float()
        return values.map_batches(lambda numbers: _same(numbers, target), target, is_elementwise=True)

    def _gold(self, values: pl.Expr, source: Any, target: Any, place: str) -> pl.Expr:
        del place
        if target == TYPED:
            values = values.cast(pl.String) if _is_text(source) else values
            return pl.struct(rowwise(values, json.dumps, pl.String).alias(JSON))
        if source == TYPED:
            self.depends_on_values = True
            return rowwise(values.struct.field(JSON), _text_of_json, pl.String)
        return rowwise(values, str, pl.String)

    def _struct(self, values: pl.Expr, source: pl.Struct, target: pl.Struct, place: str) -> pl.Expr:
        source_fields, target_fields = source.to_schema(), target.to_schema()
        surplus = [name for name, dtype in source_fields.items() if name not in target_fields and dtype != pl.Null]
        if surplus and self.misfit is None:
            self.misfit = f" (`{printable(place)}` has an extra field `{printable(surplus[0])}`)"
        fields = [
            self.of(field_of(values, source, name), source_fields[name], dtype, f"{place}.{name}")
            if name in source_fields
            else pl.lit(None, dtype=dtype)
            for name, dtype in target_fields.items()
        ]
        whole = pl.struct(field.alias(name) for name, field in zip(target_fields, fields, strict=True))
        return pl.when(values.is_not_null()).then(whole)

    def _list(self, values: pl.Expr, source: Any, target: Any, place: str) -> pl.Expr:
        self.depends_on_values = self.depends_on_values or isinstance(target, pl.Array)
        if isinstance(source, pl.Array):
            values = values.cast(pl.List(source.inner), strict=False)
        inner = self.of(pl.element(), source.inner, target.inner, f"{place}[]")
        return (values if source.inner == target.inner else values.list.eval(inner)).cast(target)


def _is_text(dtype: Any) -> bool:
    return dtype == pl.String or isinstance(dtype, pl.Categorical | pl.Enum)


def _is_gold(dtype: Any) -> bool:
    return dtype in (TYPED, pl.Boolean) or dtype.is_integer() or dtype.is_float() or _is_text(dtype)


def _text_of_json(text: str) -> str:
    value = json.loads(text)
    if isinstance(value, list | dict):
        raise _NoSuchValueError("a list or an object is not text")
    return mended(str(value))


def _is_larger(source: Any, target: Any) -> bool:
    if source.is_integer() and target.is_integer():
        (source_min, source_max), (target_min, target_max) = _range(source), _range(target)
        return target_min <= source_min and source_max <= target_max
    return bool(target == pl.Float64 and (source.is_integer() or source.is_float()))


def _range(dtype: Any) -> tuple[int, int]:
    least, greatest = pl.select(dtype.min(), dtype.max().alias("greatest")).row(0)
    return least, greatest


def _same(numbers: pl.Series, target: Any) -> pl.Series:
    larger = numbers.cast(target)
    if target.is_float() != numbers.dtype.is_float() and not (larger.cast(numbers.dtype) == numbers).all():
        raise _NoSuchValueError("an integer that no float equals")
    return larger
