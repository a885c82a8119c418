"""Batches that trainers, evaluators and web requests hand over: plain rows as a frame, types fitted to a plan, mistakes told at once."""

import json
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from polars.exceptions import PanicException, PolarsError

from assay.aggregating.columns import hidden
from assay.aggregating.pipeline import missing_golds
from assay.compiling.columns import check_columns
from assay.errors import RAISED, AssayWarning, ColumnsError, InputError, describe_error, printable, top
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


class _MisfitError(ValueError):
    """Values do not exist in the target type; the message says more."""


def fitted(rollouts: pl.LazyFrame, schema: Mapping[str, Any], exact: Collection[str] = ()) -> pl.LazyFrame:
    """Convert the columns of rows to the types of a schema, without a change of meaning.

    Nulls take any type, and empty lists any list type. A struct gets missing fields as nulls and loses fields of type Null. Numbers
    widen if their values stay equal. Text and its dictionary-encoded types, and lists and arrays, convert to each other. An
    expected value that is a number becomes its text, because its ``str()`` is compared, and so in the columns that are ``exact``.
    """
    current, schema = rollouts.collect_schema(), pl.Schema(schema)
    if all(current.get(name) == dtype for name, dtype in schema.items()):
        return rollouts
    columns, problems = [], []
    for name, target in schema.items():
        source = current.get(name)
        wanted = f"The plan was compiled for `{printable(name)}` of type {target}; here it is"
        if source is None:
            problems.append(f"{wanted} missing.")
        elif source != target:
            conversion = _Conversion(name, name in exact)
            try:
                columns.append(conversion.of(exactly(name).alias("value"), source, target, name).alias(name))
            except _MisfitError as misfit:
                problems.append(f"{wanted} {source}{misfit}.")
                continue
            try:
                rollouts.select(columns[-1] if conversion.depends_on_values else ()).collect()
            except (_MisfitError, PolarsError, PanicException):
                problems.append(f"{wanted} {source}, with values that the plan's type cannot hold.")
    if problems:
        raise ColumnsError("\n".join(problems), "Compile a plan for this schema.")
    return rollouts.with_columns(columns)


@dataclass
class _Conversion:
    """The conversion of a column to another type; whether it is possible may depend on the values."""

    column: str
    is_exact: bool
    depends_on_values: bool = False

    def of(self, values: pl.Expr, source: Any, target: Any, place: str) -> pl.Expr:
        """Return values of one type as an expression of another type; raise if the values would change meaning."""
        if source == target:
            return values
        if source == pl.Null or (_is_text(source) and _is_text(target)):
            self.depends_on_values |= source != pl.Null and isinstance(target, pl.Enum)
            return values.cast(target)
        has_str = source in (TYPED, pl.Boolean) or source.is_integer() or source.is_float() or _is_text(source)
        if (self.is_exact or place in _GOLDS) and has_str and target in (pl.String, TYPED):
            if target == TYPED:
                values = values.cast(pl.String) if _is_text(source) else values
                return pl.struct(rowwise(values, json.dumps, pl.String).alias(JSON))
            if source != TYPED:
                return rowwise(values, str, pl.String)
            self.depends_on_values = True
            return rowwise(values.struct.field(JSON), _text_of_json, pl.String)
        return self._typed(values, source, target, place)

    def _typed(self, values: pl.Expr, source: Any, target: Any, place: str) -> pl.Expr:
        changes_kind = target.is_float() != source.is_float()
        if _is_larger(source, target) and not (changes_kind and (self.is_exact or place in _GOLDS)):
            self.depends_on_values |= changes_kind
            return values.map_batches(lambda numbers: _same(numbers, target), target, is_elementwise=True)
        if isinstance(source, pl.List | pl.Array) and isinstance(target, pl.List | pl.Array):
            self.depends_on_values |= isinstance(target, pl.Array)
            if isinstance(source, pl.Array):
                values = values.cast(pl.List(source.inner), strict=False)
            inner = self.of(pl.element(), source.inner, target.inner, f"{place}[]")
            return (values if source.inner == target.inner else values.list.eval(inner)).cast(target)
        is_struct = isinstance(source, pl.Struct) and isinstance(target, pl.Struct)
        if not is_struct or not target.fields or TYPED in (source, target):
            raise _MisfitError("" if place == self.column else f" (`{printable(place)}` is {source}, not {target})")
        source_fields, target_fields = source.to_schema(), target.to_schema()
        surplus = [name for name, dtype in source_fields.items() if name not in target_fields and dtype != pl.Null]
        if surplus:
            raise _MisfitError(f" (`{printable(place)}` has an extra field `{printable(surplus[0])}`)")
        fields = [
            self.of(field_of(values, source, name), source_fields[name], dtype, f"{place}.{name}")
            if name in source_fields
            else pl.lit(None, dtype=dtype)
            for name, dtype in target_fields.items()
        ]
        whole = pl.struct(field.alias(name) for name, field in zip(target_fields, fields, strict=True))
        return pl.when(values.is_not_null()).then(whole)


def _is_text(dtype: Any) -> bool:
    return dtype == pl.String or isinstance(dtype, pl.Categorical | pl.Enum)


def _text_of_json(text: str) -> str:
    value = json.loads(text)
    if isinstance(value, list | dict):
        raise _MisfitError("a list or an object is not text")
    return mended(str(value))


def _is_larger(source: Any, target: Any) -> bool:
    """Whether numbers of one type may be numbers of another; an integer that no float equals is rejected by its value."""
    if source.is_integer() and target.is_integer():
        ends = pl.select(source.min(), source.max().alias("b"), target.min().alias("c"), target.max().alias("d"))
        least, greatest, target_least, target_greatest = ends.row(0)
        return bool(target_least <= least and greatest <= target_greatest)
    return bool(target == pl.Float64 and (source.is_integer() or source.is_float()))


def _same(numbers: pl.Series, target: Any) -> pl.Series:
    larger = numbers.cast(target)
    if target.is_float() != numbers.dtype.is_float() and not (larger.cast(numbers.dtype) == numbers).all():
        raise _MisfitError("an integer that no float equals")
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
            try:
                self._of_values(name, [value])
            except RAISED as error:
                problem = (
                    f"`{printable(name)}` is {type(value).__name__}, which cannot be read: {describe_error(error)}"
                )
                problem = error.fact.removeprefix("Row 0: ") if isinstance(error, InputError) else problem
                readable[at] = None
                self._problems[at] = self._problems[at] or problem
        return self._of_values(name, readable)

    def _of_values(self, name: str, values: list[Any]) -> pl.Series:
        # NOTE: ``finish`` is left out, for it warns of messages without content: in a batch of a few rows they are no mistake
        learner = column(name, {}, self._exact)
        learner.see(values)
        return learner.series(values)

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
                    if value is None or dtype == pl.String:
                        converted.append(value if value is None else text_of(value, name))
                    else:
                        converted.append(pl.Series([value], dtype=dtype, strict=True)[0])
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


class Attention:
    """What a plan has seen and said of the batches so far."""

    def __init__(self, verifiers: Sequence[VerifierSpec], *, strict: bool) -> None:
        self._verifiers = verifiers
        self._awaits_columns = strict
        self._warned: set[str] = set()
        pairs = [(verifier, spec) for verifier in verifiers for spec in verifier.nodes]
        golds = [(f"{verifier.id}/{spec.id}", missing_golds(verifier, spec)) for verifier, spec in pairs]
        known = [(check, *exprs) for check, exprs in golds if exprs is not None]
        self._golds = {hidden(f"golds/{number}"): golds for number, golds in enumerate(known)}
        """Of each check with golds from the rows: its name; why a row that it runs on has none, String; whether it runs, None for always."""

    def look(self, given: Collection[str]) -> None:
        """Look at the columns of a batch, until all have been there."""
        if self._awaits_columns:
            check_given(self._verifiers, given)
            self._awaits_columns = False

    @property
    def watched(self) -> list[pl.Expr]:
        """Columns that ``warn`` reads beside the results."""
        exprs: list[pl.Expr] = []
        for name, (check, missing, runs) in self._golds.items():
            if check not in self._warned:
                exprs += [missing.alias(name), *([] if runs is None else [runs.alias(f"{name}/runs")])]
        return exprs

    def warn(self, scored: pl.DataFrame) -> None:
        """Warn of a batch in which a check can use no gold, once for the check; else of one in which no row is scored."""
        warned = len(self._warned)
        for name, (check, _, runs) in self._golds.items():
            if name not in scored.columns:
                continue
            whys = scored[name].drop_nulls()
            running = scored.height if runs is None else scored[f"{name}/runs"].sum()
            if 0 < running == len(whys):
                self._say(check, f"no row of a batch has a gold that {check} can use: {_commonest(whys)}")
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
