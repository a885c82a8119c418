"""Rows of plain Python values as a frame for a plan: what trainers, evaluators and web requests hand over.

Values that the columns of a plan cannot hold are no errors here: a type is found that holds them, or the row is unscored.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import polars as pl

from assay.errors import RAISED, InputError, printable, said_by
from assay.names import BAD, COMPLETION
from assay.values.column import column, text_of
from assay.values.plain import LEAVES, plain
from assay.values.rows import transposed


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
