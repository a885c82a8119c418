"""Rows of plain Python values as a frame for a plan: what trainers, evaluators and web requests hand over.

Values that the columns of a plan cannot hold are no errors here: a type is found that holds them, or the row is unscored.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from assay.errors import RAISED, InputError
from assay.names import BAD, COMPLETION
from assay.values.column import column, text_of
from assay.values.plain import plain
from assay.values.rows import transposed
from assay.values.shape import LEAVES

__all__ = ["PlainRows"]


class PlainRows:
    """The columns of plain rows that a plan reads.

    Args:
        rows: Mappings of columns to values, or one mapping of columns to sequences of values.
        names: Columns to read; others are not looked at.

    Attributes:
        height: Number of rows.

    Raises:
        InputError: A row is not a mapping, a column is a single value, or columns have different lengths.
    """

    def __init__(self, rows: Any, names: Iterable[str]) -> None:
        given = rows if isinstance(rows, Mapping) else transposed(rows)
        self.height = len(next(iter(given.values()), ())) if given else 0
        self._columns = {name: _values(name, given[name]) for name in names if name in given}
        lengths = {len(values) for values in self._columns.values()}
        if lengths - {self.height}:
            shown = ", ".join(f"`{name}` {len(values)}" for name, values in self._columns.items())
            raise InputError(f"The columns have different lengths: {shown}.")
        completions = self._columns.setdefault(COMPLETION, [None] * self.height)
        if _problem_of(completions) is not None:
            problems = [_problem_of([completion]) for completion in completions]
            self._columns[COMPLETION] = [
                None if problem else completion for completion, problem in zip(completions, problems, strict=True)
            ]
            self._columns[BAD] = problems

    def natural(self, schema: Mapping[str, Any]) -> pl.DataFrame:
        """Return the rows with the types that hold their values; what is missing or null has the type of the schema.

        Raises:
            InputError: Values are nested too deeply, or have keys that no column can have.
        """
        read = [_series(name, values) for name, values in self._columns.items()]
        missing = [pl.Series(name, [None] * self.height) for name in schema if name not in self._columns]
        return pl.DataFrame(
            [
                series.cast(schema[series.name]) if series.dtype == pl.Null and series.name in schema else series
                for series in (*read, *missing)
            ]
        )

    def forced(self, schema: Mapping[str, Any]) -> pl.DataFrame:
        """Return the rows with the types of a schema; a hidden column says of which rows these cannot hold a value."""
        problems: list[str | None] = [*self._columns.get(BAD, [None] * self.height)]
        series = {COMPLETION: _series(COMPLETION, self._columns[COMPLETION])}
        for name, dtype in schema.items():
            if name in (COMPLETION, BAD):
                continue
            converted = []
            for at, value in enumerate(self._columns.get(name, [None] * self.height)):
                try:
                    converted.append(_converted(value, name, dtype))
                except RAISED:
                    converted.append(None)
                    problems[at] = problems[at] or f"`{name}` is {type(value).__name__}; the plan reads {dtype}"
            series[name] = pl.Series(name, converted, dtype=dtype)
        return pl.DataFrame(series | {BAD: pl.Series(problems, dtype=pl.String)})


def _values(name: str, values: Any) -> list[Any]:
    converted = values if type(values) is list and LEAVES.issuperset(map(type, values)) else plain(values)
    if not isinstance(converted, list):
        raise InputError(f"The column `{name}` is {type(values).__name__}, not a list of values.")
    return converted


def _problem_of(completions: Sequence[Any]) -> str | None:
    """Return why one of some values is not a completion, in the words of its column; None if all are."""
    try:
        column(COMPLETION, {}).see(completions)
    except InputError as error:
        return error.fact.removeprefix("Row 0: ")
    return None


def _series(name: str, values: list[Any]) -> pl.Series:
    # NOTE: ``settle`` is left out, for it warns of messages without content: in a batch of a few rows they are no mistake
    learner = column(name, {})
    learner.see(values)
    return learner.series(values)


def _converted(value: Any, name: str, dtype: Any) -> Any:
    """Return a value as one of a type.

    Raises:
        Exception: The type cannot hold it.
    """
    if value is None:
        return None
    return text_of(value, name) if dtype == pl.String else pl.Series([value], dtype=dtype, strict=True)[0]
