"""Batches that trainers, evaluators and web requests hand over: plain rows as a frame, types fitted to a plan, mistakes told at once."""

import json
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from polars.exceptions import PanicException, PolarsError

from assay.aggregating.columns import hidden
from assay.aggregating.pipeline import missing_golds
from assay.compiling.columns import check_columns
from assay.errors import RAISED, AssayWarning, ColumnsError, InputError, printable, said_by, top
from assay.expressions.json import mended
from assay.expressions.mixed import JSON, TYPED
from assay.expressions.shared_columns import exactly, field_of, rowwise
from assay.names import BAD, COMPLETION, EXPECTED, GOLD_COLUMNS, VERIFIER
from assay.spec.verifier import VerifierSpec
from assay.values.column import column, text_of
from assay.values.plain import LEAVES, plain
from assay.values.rows import transposed

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


class PlainRows:
    """The columns of plain rows that a plan reads."""

    def __init__(self, rows: Any, names: Iterable[str], exact: Collection[str] = ()) -> None:
        self._exact = exact
        if isinstance(rows, Mapping):
            given, self.height = rows, len(next(iter(rows.values()), ()))
        else:
            rows = [*rows]
            given, self.height = transposed(rows), len(rows)
        self.given = tuple(map(str, given))
        self._columns = {name: _values(name, given[name]) for name in names if name in given}
        lengths = {len(values) for values in self._columns.values()}
        if lengths - {self.height}:
            shown = ", ".join(f"`{printable(name)}` {len(values)}" for name, values in self._columns.items())
            raise InputError(f"The columns have different lengths: {shown}.")
        self._columns.setdefault(COMPLETION, [None] * self.height)
        self._problems: list[str | None] = [None] * self.height
        self._series = {name: self._read(name, values) for name, values in self._columns.items()}

    def _read(self, name: str, values: list[Any]) -> pl.Series:
        try:
            return self._of_values(name, values)
        except RAISED:
            readable = self._columns[name] = [*values]
        for at, value in enumerate(values):
            if (problem := self._problem_of(name, value)) is not None:
                readable[at] = None
                self._problems[at] = self._problems[at] or problem
        return self._of_values(name, readable)

    def _of_values(self, name: str, values: list[Any]) -> pl.Series:
        # NOTE: ``settle`` is left out, for it warns of messages without content: in a batch of a few rows they are no mistake
        learner = column(name, {}, self._exact)
        learner.see(values)
        return learner.series(values)

    def _problem_of(self, name: str, value: Any) -> str | None:
        try:
            self._of_values(name, [value])
        except InputError as error:
            return error.fact.removeprefix("Row 0: ")
        except RAISED as error:
            return f"`{printable(name)}` is {type(value).__name__}, which cannot be read: {said_by(error)}"
        return None

    def natural(self, schema: Mapping[str, Any]) -> pl.DataFrame:
        """Return the rows with the types that hold their values; what is missing or null has the type of the schema."""
        missing = [pl.Series(name, [None] * self.height) for name in schema if name not in self._series]
        columns = [
            series.cast(schema[series.name]) if series.dtype == pl.Null and series.name in schema else series
            for series in (*self._series.values(), *missing)
        ]
        return pl.DataFrame([*columns, *self._bad(self._problems)])

    def forced(self, schema: Mapping[str, Any], kept: Collection[str]) -> pl.DataFrame:
        """Return the rows with the types of a schema; a hidden column says of which rows these cannot hold a value."""
        problems = [*self._problems]
        series = {name: self._series[name] for name in (COMPLETION, *kept) if name in self._series}
        for name, dtype in schema.items():
            if name in series or name == BAD:
                continue
            converted = []
            for at, value in enumerate(self._columns.get(name, [None] * self.height)):
                try:
                    converted.append(_converted(value, name, dtype))
                except RAISED:
                    converted.append(None)
                    problems[at] = (
                        problems[at] or f"`{printable(name)}` is {type(value).__name__}; the plan reads {dtype}"
                    )
            series[name] = pl.Series(name, converted, dtype=dtype)
        return pl.DataFrame([*series.values(), *self._bad(problems)])

    @staticmethod
    def _bad(problems: list[str | None]) -> list[pl.Series]:
        return [pl.Series(BAD, problems, dtype=pl.String)] if any(problems) else []


def _values(name: str, values: Any) -> list[Any]:
    converted = values if type(values) is list and LEAVES.issuperset(map(type, values)) else plain(values)
    if not isinstance(converted, list):
        raise InputError(f"The column `{printable(name)}` is {type(values).__name__}, not a list of values.")
    return converted


def _converted(value: Any, name: str, dtype: Any) -> Any:
    if value is None:
        return None
    return text_of(value, name) if dtype == pl.String else pl.Series([value], dtype=dtype, strict=True)[0]


_MOST = 5
"""Reasons of unscored batches that are warned of; what else is wrong with a run is in its results."""

_STACK = 4
"""Frames between a warning and the call of ``Plan.score_rows``."""


def check_given(verifiers: Sequence[VerifierSpec], given: Collection[str]) -> None:
    """Check that rows have the columns that checks read, whatever their types."""
    try:
        check_columns(verifiers, pl.Schema(dict.fromkeys(given, pl.String)), ())
    except ColumnsError as error:
        hints = [line for line in error.hint.splitlines() if "--map" not in line]  # which a loop does not have
        hints.append("If only some batches have the column, give strict=False: where it is missing, it is null.")
        raise ColumnsError(error.fact, "\n".join(hints)) from None


@dataclass(frozen=True)
class Golds:
    """The golds of a check, in a plan's hidden columns."""

    check: str
    missing: pl.Expr
    runs: pl.Expr | None

    @classmethod
    def of(cls, verifiers: Sequence[VerifierSpec]) -> "list[Golds]":
        """Return the golds of all checks that have them from the rows."""
        pairs = [(verifier, spec) for verifier in verifiers for spec in verifier.nodes]
        read = [(verifier, spec, missing_golds(verifier, spec)) for verifier, spec in pairs]
        return [cls(f"{verifier.id}/{spec.id}", *golds) for verifier, spec, golds in read if golds is not None]


class Attention:
    """What a plan has seen and said of the batches so far."""

    def __init__(self, verifiers: Sequence[VerifierSpec], *, strict: bool) -> None:
        self._verifiers = verifiers
        self._awaits_columns = strict
        self._warned: set[str] = set()
        self.golds = {hidden(f"golds/{number}"): golds for number, golds in enumerate(Golds.of(verifiers))}

    def look(self, given: Collection[str]) -> None:
        """Look at the columns of a batch, until all have been there."""
        if self._awaits_columns:
            check_given(self._verifiers, given)
            self._awaits_columns = False

    @property
    def watched(self) -> list[pl.Expr]:
        """Columns that ``warn`` reads beside the results."""
        exprs: list[pl.Expr] = []
        for name, golds in self.golds.items():
            if golds.check not in self._warned:
                exprs.append(golds.missing.alias(name))
                exprs += [] if golds.runs is None else [golds.runs.alias(f"{name}/runs")]
        return exprs

    def warn(self, scored: pl.DataFrame) -> None:
        """Warn of a batch in which a check can use no gold, once for the check; else of one in which no row is scored."""
        warned = len(self._warned)
        for name, golds in self.golds.items():
            if name not in scored.columns:
                continue
            whys = scored[name].drop_nulls()
            runs = scored.height if golds.runs is None else scored[f"{name}/runs"].sum()
            if 0 < runs == len(whys):
                self._say(golds.check, f"no row of a batch has a gold that {golds.check} can use: {_commonest(whys)}")
        errors = scored["error"].drop_nulls()
        if 0 < scored.height == scored["reward"].null_count() and len(errors) and len(self._warned) == warned < _MOST:
            reason = _commonest(errors)
            self._say(reason, f"every row of a batch is unscored: {reason}")

    def _say(self, key: str, message: str) -> None:
        if key not in self._warned:
            self._warned.add(key)
            warnings.warn(message, AssayWarning, stacklevel=_STACK)


def _commonest(reasons: pl.Series) -> str:
    ((reason, _),) = top(Counter(reasons), 1)
    return reason
