"""An index of a result in memory: what rows are filtered, sorted and counted by, read in one streaming scan."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import polars as pl

from assay.errors import UsageError, did_you_mean, listed
from assay.expressions.shared_columns import exactly
from assay.frozen import frozen
from assay.insight.findings.columns import key_expr
from assay.insight.reports.numbers import bins_of
from assay.insight.results import STATES, Result
from assay.insight.stats import splitmix64
from assay.loading.formats.reading import batches
from assay.scoring.in_memory import engine_errors

MODEL, STEP, TASK = "model", "step", "task"

_NULL = "null"
_MOST_MODELS = 50
_BATCH = 200_000


@frozen
class RowFilters:
    """Which rows to keep, by what an index holds; within a field of values, a row has one of them.

    Attributes:
        failed: Checks: all of these fail.
        passed: Checks: all of these pass.
        model: Models, as text; ``null`` where there is none.
        step: Steps, likewise.
        task: Tasks, likewise.
        state: States.
        bin: Bins of the histogram of rewards, from 0.
        rows: Numbers of rows.
    """

    failed: Sequence[str] = ()
    passed: Sequence[str] = ()
    model: Sequence[str] = ()
    step: Sequence[str] = ()
    task: Sequence[str] = ()
    state: Sequence[str] = ()
    bin: Sequence[int] = ()
    rows: Sequence[int] = ()


class Index:
    """Columns of a result in memory, as far as they have been read: ``reward``, ``state``, keys, and whether each check passes.

    Attributes:
        result: The result.
        task: The column that names a row's task; None if there is none.
        keys: The columns of the result behind ``model``, ``step`` and ``task``, as far as they exist.
        columns: What is read, as a lazy frame.
        is_whole: Whether all rows have been read.
    """

    def __init__(self, result: Result) -> None:
        self.result = result
        self.task = next(iter(result.tasks()), None)
        self.keys = {name: name for name in result.present((MODEL, STEP))} | ({TASK: self.task} if self.task else {})
        self.is_whole = False
        passes = [exactly(check.column).cast(pl.Float64) == 1.0 for check in result.checks]
        self.columns = result.frame.select(
            pl.col("reward"),
            result.state.alias("state"),
            *(_compact(column, result.schema[column]).alias(name) for name, column in self.keys.items()),
            *(passed.alias(name) for name, passed in zip(self._passes(), passes, strict=True)),
        )
        self._batches = [pl.DataFrame(schema=self.columns.collect_schema())]

    def scan(self, tell: Callable[[int], object] = lambda _: None) -> "Index":
        """Read the result, and tell how many rows have been read after each batch."""
        with engine_errors(self.result.files):
            for batch in batches(self.columns, _BATCH):
                self._batches.append(batch)
                tell(sum(part.height for part in self._batches))
        self._batches = [pl.concat(self._batches, rechunk=True)]
        self.is_whole = True
        return self

    @property
    def frame(self) -> pl.DataFrame:
        """The rows that have been read."""
        return pl.concat(self._batches)

    def _passes(self) -> list[str]:
        return [f"check/{at}" for at in range(len(self.result.checks))]

    def passes(self, name: str) -> pl.Expr:
        """Return whether a check passes, null where it has no score."""
        return pl.col(f"check/{self.result.checks.index(self.result.check(name))}")

    def mask(self, kept: RowFilters) -> pl.Series:
        """Return which of the rows that have been read the filters keep."""
        frame = self.frame
        rows = pl.int_range(pl.len(), dtype=pl.UInt32)
        conditions = [self.passes(name).not_() for name in kept.failed] + [self.passes(name) for name in kept.passed]
        conditions += [self._has(name, getattr(kept, name)) for name in (MODEL, STEP, TASK) if getattr(kept, name)]
        if kept.state:
            conditions.append(pl.any_horizontal(pl.col("state") == _state(name) for name in kept.state))
        if kept.bin:
            conditions.append(pl.lit(bins_of(frame["reward"])[0].is_in(list(kept.bin))))
        if kept.rows:
            conditions.append(rows.is_in(pl.Series(sorted({*kept.rows})).implode()))
        every = pl.all_horizontal(pl.lit(value=True), *conditions)
        return frame.select(pl.when(rows.is_not_null()).then(every.fill_null(value=False))).to_series()

    def _has(self, key: str, texts: Sequence[str]) -> pl.Expr:
        if key not in self.keys:
            raise UsageError(f"{key}: {self.result.name} has no such column.")
        column, dtype = pl.col(key), self.columns.collect_schema()[key]
        values = [_number(key, text) for text in texts if text != _NULL] if dtype.is_numeric() else texts
        null = [column.is_null()] if _NULL in texts else []
        return pl.any_horizontal(*(column == value for value in values), *null)

    def order(self, sort: Sequence[str], among: pl.Series | None = None) -> pl.Series:
        """Return row numbers in order of columns or checks; ``-NAME`` for the largest first, nulls last, ties in order of the rows.

        Args:
            sort: Names; ``row`` is the row's number.
            among: Numbers of the rows; all that have been read if None.
        """
        frame = self.frame
        rows = pl.int_range(frame.height, dtype=pl.UInt32, eager=True)
        keys = {str(at): self._sorted_by(frame, name) for at, name in enumerate(sort)}
        table = pl.DataFrame({"row": rows, **{name: values for name, (values, _) in keys.items()}})
        table = table if among is None else table[among]
        largest = [largest for _, largest in keys.values()]
        return table.sort(list(keys), descending=largest, nulls_last=True, maintain_order=True)["row"]

    def _sorted_by(self, frame: pl.DataFrame, name: str) -> tuple[pl.Series, bool]:
        known = {"reward": "reward", "row": "row"} | {column: key for key, column in self.keys.items()}
        known |= dict(zip((check.name for check in self.result.checks), self._passes(), strict=True))
        is_known = name in known or name in self.result.schema
        plain = name if is_known else name.removeprefix("-")
        if plain == "row":
            return pl.int_range(frame.height, dtype=pl.UInt32, eager=True), not is_known
        if plain in known:
            return _ranked(frame[known[plain]]), not is_known
        if plain not in self.result.schema:
            names = list(dict.fromkeys([*known, *self.result.schema]))
            hint = did_you_mean(plain, names) or f"Columns: {listed(names)}"
            raise UsageError(f"sort {name}: {self.result.name} has no such column.", hint)
        values = self.result.keys([plain], "sort") and key_expr(plain, self.result.schema[plain])
        return self.result.collect(self.result.frame.select(values).head(frame.height)).to_series(), not is_known

    def same_tasks(self, rows: Sequence[int], most: int) -> dict[int, list[dict[str, Any]]]:
        """Return the other rows of each row's task, the nearest if there are more than ``most``, with their keys."""
        frame = self.frame
        if self.task is None or any(row >= frame.height for row in rows):  # not read yet
            return {row: [] for row in rows}
        keys = [key for key in (MODEL, STEP) if key in self.keys]
        task, row = pl.col(TASK).to_physical().alias(TASK), pl.col("row")
        numbered = frame.with_row_index("row")
        own = numbered.select(row.alias("of"), task).gather(rows).unique()
        others = numbered.filter(task.is_in(own[TASK].drop_nulls().implode()))
        others = others.select("row", task, "reward", pl.col("state").cast(pl.String), *keys)
        distance = (row.cast(pl.Int64) - pl.col("of")).abs()
        near = own.join(others, on=TASK).filter(row != pl.col("of")).sort(distance, "row")
        near = near.group_by("of", maintain_order=True).head(most).sort("row")
        of_row: dict[int, list[dict[str, Any]]] = {number: [] for number in rows}
        for other in near.iter_rows(named=True):
            key = {"key": {key: other[key] for key in keys}}
            of_row[other["of"]].append(
                {"row": other["row"]} | key | {name: other[name] for name in ("reward", "state")}
            )
        return of_row

    def heat(self) -> dict[str, Any]:
        """Return ``heat_of`` the rows that have been read."""
        return heat_of(self.result, self.frame.lazy())

    def drawn(self, most: int) -> list[int]:
        """Return rows for people to look at: of each model and set of failing checks in turn.

        Sets with failures come first, then those that most rows have, and of their rows those with the least SplitMix64(0, row).
        """
        kinds = [MODEL] * (MODEL in self.keys) + ["state", *self._passes()]
        fails = pl.any_horizontal(pl.col("state") == "fail", *(pl.col(name).not_() for name in self._passes()))
        draws = splitmix64(0, 0, self.frame.height).alias("draw")
        rows = self.frame.select(kinds).with_row_index("row").with_columns(draws).group_by(kinds)
        sets = rows.agg(pl.len().alias("size"), pl.col("row", "draw").bottom_k_by("draw", most)).with_row_index("set")
        drawn = sets.select("set", "size", "row", "draw", fails.fill_null(value=False).alias("fails"))
        drawn = drawn.explode("row", "draw").sort("draw")
        turn = pl.int_range(pl.len(), dtype=pl.UInt32).over("set")
        return (
            drawn.sort(turn, "fails", "size", "draw", descending=[False, True, True, False])["row"].head(most).to_list()
        )


def _compact(name: str, dtype: Any) -> pl.Expr:
    key = key_expr(name, dtype)
    return key if dtype.is_numeric() else key.cast(pl.String).cast(pl.Categorical(pl.Categories.random()))


def _ranked(values: pl.Series) -> pl.Series:
    """Return codes of texts in order of the texts, which are much faster to sort; other values as they are."""
    if not isinstance(values.dtype, pl.Categorical):
        return values
    texts = pl.DataFrame({"text": values.unique()}).drop_nulls().sort(pl.col("text").cast(pl.String))
    ranks = texts.with_row_index("rank")
    return pl.DataFrame({"text": values}).join(ranks, on="text", how="left", maintain_order="left")["rank"]


def _state(name: str) -> str:
    if name not in (*STATES, "scored"):
        raise UsageError(f"state {name}: unknown.", did_you_mean(name, STATES) or f"States: {listed(STATES)}")
    return name


def _number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{key} {text}: expected a number.") from None


FILTERS = tuple(field.name for field in fields(RowFilters))
"""The names of what an index filters by."""


def heat_of(result: Result, columns: pl.LazyFrame) -> dict[str, Any]:
    """Return how many rows of each model a check has scored, and how many pass it; of the models with most rows.

    Args:
        result: The result.
        columns: ``Index.columns``, or rows of them.
    """
    names = [f"check/{at}" for at in range(len(result.checks))]
    counts = [pl.col(name).count().alias(f"rows/{name}") for name in names]
    sums = [pl.len().alias("rows"), pl.col("reward").mean(), *counts, *(pl.col(name).sum() for name in names)]
    model = pl.col(MODEL) if MODEL in result.schema else pl.lit(None, pl.String)
    table = result.collect(columns.group_by(model.cast(pl.String).alias(MODEL)).agg(sums))
    table = table.sort("rows", MODEL, descending=[True, False], nulls_last=True).head(_MOST_MODELS)
    table = table.sort(MODEL, nulls_last=True)
    cells = [
        [{"rows": row[f"rows/{name}"], "passes": row[name]} if row[f"rows/{name}"] else None for name in names]
        for row in table.to_dicts()
    ]
    numbers = {"models": table[MODEL], "reward": table["reward"], "rows": table["rows"]}
    checks = [check.name for check in result.checks]
    return {"checks": checks, "cells": cells, **{name: values.to_list() for name, values in numbers.items()}}
