"""The columns of a result that a report needs in memory: rewards, and small numbers in place of what names tasks and groups."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from assay.expressions.lane import exactly
from assay.insight.results import Result, ScoreColumn
from assay.names import HIDDEN
from assay.thresholds import THRESHOLDS

__all__ = ["Columns", "Keys", "columns_of", "score_columns"]


@dataclass(frozen=True, eq=False)
class Keys:
    """Values of some columns, numbered.

    Attributes:
        names: The columns.
        values: The distinct values, sorted: a row for each number.
        codes: The number of each row's values, UInt32; null for a row that is left out.
    """

    names: tuple[str, ...]
    values: pl.DataFrame
    codes: pl.Series

    @property
    def order(self) -> pl.Series:
        """The rows in order of their numbers, those that are left out last."""
        return self.codes.arg_sort(nulls_last=True)

    def shown(self, code: int) -> str:
        """Return the values of a number as text."""
        return ", ".join("–" if value is None else str(value) for value in self.values.row(code))


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of a result in memory.

    Attributes:
        result: The result.
        reward: Rewards, null where unscored.
        passed: Whether a row passes, null where unscored; None if unknown.
        failed: Whether a row has an error; None if there is no such column.
        length: Lengths of the scored texts; None if unknown.
        task: The tasks; None if there are none.
        group: The groups, without rows that have no task; None if there are no tasks.
    """

    result: Result
    reward: pl.Series
    passed: pl.Series | None
    failed: pl.Series | None
    length: pl.Series | None
    task: Keys | None
    group: Keys | None

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.reward)

    @property
    def scored(self) -> int:
        """The number of rows with a reward."""
        return self.rows - self.reward.null_count()

    @property
    def clusters(self) -> pl.Series:
        """The task of each row; without tasks, each row is one."""
        return pl.int_range(self.rows, dtype=pl.UInt32, eager=True) if self.task is None else self.task.codes

    @cached_property
    def in_groups(self) -> tuple[pl.Series, pl.Series] | None:
        """The rows that are in groups, in order of the group, and their groups."""
        if self.group is None:
            return None
        inside = self.rows - self.group.codes.null_count()
        order = self.group.order.head(inside)
        return order, self.group.codes.gather(order)


def columns_of(result: Result, tasks: Sequence[str], groups: Sequence[str]) -> Columns:
    """Read the columns that all parts of a report need.

    Args:
        result: The result.
        tasks: The columns that name a task.
        groups: The columns that name a group.
    """
    expressions = [pl.col("reward")]
    if "passed" in result.schema:
        expressions.append(pl.col("passed"))
    if "error" in result.schema:
        expressions.append((pl.col("error").cast(pl.String).fill_null("") != "").alias("error"))
    if (length := result.length) is not None:
        expressions.append(length.cast(pl.Int64).alias("length"))
    table = result.collect(result.frame.select(expressions)).rechunk()
    optional = {name: table[name] if name in table.columns else None for name in ("passed", "error", "length")}
    by_name: dict[str, Keys] = {}
    for name in dict.fromkeys((*tasks, *(groups if tasks else ()))):
        by_name[name] = numbered(result, [name])
    task = _joined([by_name[name] for name in tasks]) if tasks else None
    group = None
    if task is not None:
        present = _present(by_name, tasks)
        group = _joined([by_name[name] for name in groups], where=present)
        task = Keys(task.names, task.values, _only(task.codes, present))
    return Columns(result, table["reward"], optional["passed"], optional["error"], optional["length"], task, group)


def numbered(result: Result, names: Sequence[str]) -> Keys:
    """Number the values of columns, in their order."""
    return _joined([_of_column(result, name) for name in names])


def _of_column(result: Result, name: str) -> Keys:
    key = HIDDEN + "value"
    dtype = result.schema[name]
    value = exactly(name)
    if dtype.is_nested() or dtype == pl.Binary:
        value = value.map_batches(_as_text, pl.String)
    elif isinstance(dtype, pl.Categorical | pl.Enum):
        value = value.cast(pl.String)
    column = result.collect(result.frame.select(value.alias(key))).to_series().rechunk()
    values = column.unique().sort(nulls_last=True)
    numbers = pl.DataFrame({key: values, "code": pl.int_range(len(values), dtype=pl.UInt32, eager=True)})
    codes = column.to_frame().join(numbers, on=key, how="left", nulls_equal=True, maintain_order="left")["code"]
    return Keys((name,), values.alias(name).to_frame(), codes.rechunk())


def _as_text(values: pl.Series) -> pl.Series:
    return pl.Series([None if value is None else str(value) for value in values.to_list()], dtype=pl.String)


def _present(by_name: dict[str, Keys], names: Sequence[str]) -> pl.Series | None:
    """Return whether rows have a task: none of what names it is null; None if all have."""
    present = None
    for name in names:
        keys = by_name[name]
        last = keys.values.to_series()
        if len(last) and last[-1] is None:
            is_here = keys.codes != len(last) - 1
            present = is_here if present is None else present & is_here
    return present


def _only(codes: pl.Series, where: pl.Series | None) -> pl.Series:
    if where is None:
        return codes
    frame = pl.DataFrame({"code": codes, "where": where})
    return frame.select(pl.when("where").then("code")).to_series()


def _joined(keys: Sequence[Keys], where: pl.Series | None = None) -> Keys:
    """Number the combinations of values that there are, in order of the values; null for the rows that are left out."""
    if len(keys) == 1:
        return Keys(keys[0].names, keys[0].values, _only(keys[0].codes, where))
    combined = pl.DataFrame({str(at): key.codes for at, key in enumerate(keys)})
    distinct = combined if where is None else combined.filter(where)
    distinct = distinct.unique().sort(combined.columns).with_row_index("code")
    codes = combined.join(distinct, on=combined.columns, how="left", maintain_order="left")["code"].rechunk()
    values = [key.values.to_series().gather(distinct[str(at)]) for at, key in enumerate(keys)]
    return Keys(tuple(name for key in keys for name in key.names), pl.DataFrame(values), _only(codes, where))


def score_columns(result: Result, checks: Sequence[ScoreColumn]) -> Iterator[tuple[ScoreColumn, pl.Series]]:
    """Yield the scores of checks, null unless finite; as many are read at once as fit into memory."""
    at_once = max(1, THRESHOLDS.grouped_rows * 2 // max(1, result.rows))
    for at in range(0, len(checks), at_once):
        part = checks[at : at + at_once]
        numbers = [exactly(check.column).cast(pl.Float64) for check in part]
        finite = [pl.when(number.is_finite()).then(number).alias(str(place)) for place, number in enumerate(numbers)]
        table = result.collect(result.frame.select(finite))
        for place, check in enumerate(part):
            yield check, table[str(place)].rechunk()
