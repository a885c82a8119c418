"""Columns of a result in memory, of which reports and findings are made.

Sums of squares take two passes, means first; what has one value only is found by its extremes, not by a deviation of 0.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from assay.expressions.shared_columns import exactly
from assay.insight.results import Result, ScoreColumn
from assay.insight.stats import finite
from assay.names import HIDDEN
from assay.thresholds import THRESHOLDS


@dataclass(frozen=True, eq=False)
class Keys:
    """Values of some columns, numbered."""

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
class ResultColumns:
    """Columns of a result in memory."""

    result: Result
    reward: pl.Series
    passed: pl.Series | None
    failed: pl.Series | None
    length: pl.Series | None
    task: Keys | None
    group: Keys | None
    known: dict[str, Keys]

    def keys(self, name: str) -> Keys:
        """Return the values of a column, numbered; read once."""
        if name not in self.known:
            self.known[name] = numbered(self.result, [name])
        return self.known[name]

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
    def reward_deviations(self) -> tuple[pl.Series | None, float]:
        """Rewards less their mean, and the sum of the squares."""
        own = deviations(self.reward.drop_nulls())
        return own, product(own, own)

    @cached_property
    def in_groups(self) -> "Grouped | None":
        """The rows that are in groups, in order of the group."""
        if self.group is None:
            return None
        codes = self.group.codes
        inside = self.rows - codes.null_count()
        if inside == self.rows and codes.is_sorted():
            return Grouped(None, codes.set_sorted(), self.reward)
        order = self.group.order.head(inside)
        return Grouped(order, codes.gather(order).set_sorted(), self.reward.gather(order))


@dataclass(frozen=True, eq=False)
class Grouped:
    """The rows that are in groups, in order of the group."""

    order: pl.Series | None
    group: pl.Series
    reward: pl.Series

    def of(self, values: pl.Series) -> pl.Series:
        """Return the values of these rows."""
        return values if self.order is None else values.gather(self.order)

    @cached_property
    def position(self) -> pl.Series:
        """The place of each row's group."""
        return self.group.rle_id()

    @cached_property
    def centred_reward(self) -> pl.Series | None:
        """Rewards less the mean of their group; None if one is missing."""
        return None if self.reward.null_count() else centred(self.group, self.reward, self.position)[0]

    @cached_property
    def reward_squares(self) -> float:
        """The sum of the squares of ``centred_reward``."""
        return product(self.centred_reward, self.centred_reward)


def mean_of(values: pl.Series) -> float | None:
    """Return the mean of values, none null; where all are equal it is that value."""
    if not len(values):
        return None
    least, greatest = values.min(), values.max()
    return finite(float(least if least == greatest else values.sum() / len(values)))  # type: ignore[arg-type]


def deviations(values: pl.Series) -> pl.Series | None:
    """Return values, none null, less their mean; None if all are equal."""
    return None if values.min() == values.max() else values - mean_of(values)


def product(x: pl.Series | None, y: pl.Series | None) -> float:
    """Return the sum of the products of deviations; exactly 0 where a side has one value only."""
    return 0.0 if x is None or y is None else float((x * y).sum())


def centred(group: pl.Series, values: pl.Series, position: pl.Series) -> tuple[pl.Series, int, int]:
    """Return values less the mean of their group; and how many groups have two rows, and how many of these two values."""
    value = pl.col("v")
    of_group = (
        pl.DataFrame({"g": group, "v": values})
        .group_by("g", maintain_order=True)
        .agg(pl.len().alias("n"), value.sum().alias("sum"), value.min().alias("min"), value.max().alias("max"))
    )
    flat = pl.col("min") == pl.col("max")
    mean = of_group.select(pl.when(flat).then("min").otherwise(pl.col("sum") / pl.col("n"))).to_series()
    several, differing = of_group.select((pl.col("n") > 1).sum(), flat.not_().sum().alias("differing")).row(0)
    return values - mean.gather(position), several, differing


def columns_of(result: Result, tasks: Sequence[str], groups: Sequence[str]) -> ResultColumns:
    """Read the columns that all parts of a report need."""
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
    passed, error, lengths = optional.values()
    return ResultColumns(result, table["reward"], passed, error, lengths, task, group, by_name)


def numbered(result: Result, names: Sequence[str]) -> Keys:
    """Number the values of columns, in their order."""
    return _joined([_of_column(result, name) for name in names])


def _of_column(result: Result, name: str) -> Keys:
    key = HIDDEN + "value"
    column = result.frame.select(key_expr(name, result.schema[name]).alias(key))
    values = result.collect(column.unique()).to_series().sort(nulls_last=True)
    numbers = pl.LazyFrame({key: values, "code": pl.int_range(len(values), dtype=pl.UInt32, eager=True)})
    # streamed twice, so that names are never in memory for all rows
    coded = column.join(numbers, on=key, how="left", nulls_equal=True, maintain_order="left").select("code")
    return Keys((name,), values.alias(name).to_frame(), result.collect(coded).to_series().rechunk())


def key_expr(name: str, dtype: Any) -> pl.Expr:
    """Return a column by whose values rows are told apart: as text where Polars could not sort them."""
    value = exactly(name)
    if dtype.is_nested() or dtype == pl.Binary:
        return value.map_batches(_as_text, pl.String)
    return value.cast(pl.String) if isinstance(dtype, pl.Categorical | pl.Enum) else value


def _as_text(values: pl.Series) -> pl.Series:
    return pl.Series([None if value is None else str(value) for value in values.to_list()], dtype=pl.String)


def _present(by_name: dict[str, Keys], names: Sequence[str]) -> pl.Series | None:
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
    if len(keys) == 1:
        return Keys(keys[0].names, keys[0].values, _only(keys[0].codes, where))
    packed = keys[0].codes.cast(pl.UInt64)
    for key in keys[1:]:
        packed = packed * key.values.height + key.codes
    distinct = (packed if where is None else packed.filter(where)).unique().sort()
    numbers = pl.DataFrame({"packed": distinct, "code": pl.int_range(len(distinct), dtype=pl.UInt32, eager=True)})
    codes = pl.DataFrame({"packed": packed}).join(numbers, on="packed", how="left", maintain_order="left")["code"]
    values = []
    for key in reversed(keys):
        values.append(key.values.to_series().gather(distinct % key.values.height))
        distinct //= key.values.height
    names = tuple(name for key in keys for name in key.names)
    return Keys(names, pl.DataFrame(values[::-1]), _only(codes.rechunk(), where))


def score_columns(result: Result, checks: Sequence[ScoreColumn]) -> Iterator[tuple[ScoreColumn, pl.Series]]:
    """Yield the scores of checks, null unless finite; as many are read at once as fit into memory."""
    at_once = max(1, THRESHOLDS.grouped_rows // max(1, result.rows))
    for at in range(0, len(checks), at_once):
        part = checks[at : at + at_once]
        numbers = [exactly(check.column).cast(pl.Float64) for check in part]
        finite = [pl.when(number.is_finite()).then(number).alias(str(place)) for place, number in enumerate(numbers)]
        scores = result.collect(result.frame.select(finite)).get_columns()[::-1]
        for check in part:
            yield check, scores.pop().rechunk()
