"""Columns of a result in memory, of which reports and findings are made.

Sums of squares take two passes, means first; what has one value only is found by its extremes, not by a deviation of 0.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import polars as pl

from assay.expressions.shared_columns import exactly
from assay.frozen import frozen
from assay.insight.results import Result
from assay.insight.stats import finite
from assay.names import HIDDEN
from assay.scoring.score_columns import ScoreColumn
from assay.thresholds import THRESHOLDS

_AT_ONCE = 1 << 20
"""Rows whose deviations are in memory at once, about. No threshold: the last bit of a sum depends on it."""


@frozen(eq=False)
class Keys:
    """Values of some columns, numbered."""

    names: tuple[str, ...]
    values: pl.DataFrame
    codes: pl.Series

    def shown(self, code: int) -> str:
        """Return the values of a number as text."""
        return ", ".join("–" if value is None else str(value) for value in self.values.row(code))


@frozen(eq=False)
class Grouped:
    """The rows that have a number, such as that of their group, in order of it: ``order``, None if they are; ``codes`` in this order."""

    order: pl.Series | None
    codes: pl.Series

    @classmethod
    def by(cls, codes: pl.Series) -> "Grouped":
        """Return rows in order of their numbers, and of the rows; those without one are left out."""
        if not codes.null_count() and codes.is_sorted():
            return cls(None, codes.set_sorted())
        order = codes.arg_sort(nulls_last=True).head(len(codes) - codes.null_count())
        return cls(order, codes.gather(order).set_sorted())

    def of(self, values: pl.Series) -> pl.Series:
        """Return the values of these rows."""
        return values if self.order is None else values.gather(self.order)

    def parts(self, **values: pl.Series) -> Iterator[pl.DataFrame]:
        """Yield values of the rows beside their numbers, ``g``, in parts of whole groups; of no rows, an empty one."""
        start, rows = 0, len(self.codes)
        while True:
            end = min(start + _AT_ONCE, rows)
            if end < rows:
                first, after = (self.codes.search_sorted(self.codes[end], side) for side in ("left", "right"))
                end = first if first > start else after
            order = None if self.order is None else self.order.slice(start, end - start)
            own = {
                name: column.slice(start, end - start) if order is None else column.gather(order)
                for name, column in values.items()
            }
            yield pl.DataFrame({"g": self.codes.slice(start, end - start), **own})
            if end == rows:
                return
            start = end


@frozen(eq=False)
class ResultColumns:
    """Columns of a result in memory; of groups their numbers, for nobody asks for their values, and the names of their columns."""

    result: Result
    reward: pl.Series
    passed: pl.Series | None
    failed: pl.Series | None
    length: pl.Series | None
    task: Keys | None
    group: pl.Series | None
    group_names: tuple[str, ...]
    known: dict[str, Keys]

    def keys(self, name: str) -> Keys:
        """Return the values of a column, numbered; read once."""
        if name not in self.known:
            self.known[name] = numbered(self.result, [name])
        return self.known[name]

    def numbers(self, names: Sequence[str]) -> pl.Series:
        """Return a number for each row, equal where some columns are; 0 without columns."""
        return _packed([self.keys(name) for name in names]) if names else pl.repeat(0, self.rows, eager=True)

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
    def reward_squares(self) -> float:
        """The sum of the squares of the rewards less their mean."""
        return squares(self.reward.drop_nulls())

    @cached_property
    def in_groups(self) -> Grouped | None:
        """The rows that are in groups, in order of the group."""
        return None if self.group is None else Grouped.by(self.group)

    def compared_groups(self) -> Iterator[pl.DataFrame]:
        """Yield the groups of two rewards or more: ``g``, rewards ``n``, ``min`` and ``max``; in parts."""
        value = pl.col("r")
        ends = (pl.len().alias("n"), value.min().alias("min"), value.max().alias("max"))
        for part in () if self.in_groups is None else self.in_groups.parts(r=self.reward):
            yield part.drop_nulls().group_by("g", maintain_order=True).agg(ends).filter(pl.col("n") > 1)


def mean_of(values: pl.Series) -> float | None:
    """Return the mean of values, none null; where all are equal it is that value."""
    if not len(values):
        return None
    least, greatest = values.min(), values.max()
    return finite(float(least if least == greatest else values.sum() / len(values)))  # type: ignore[arg-type]


class Sums(NamedTuple):
    """Sums of products of deviations of two columns over ``n`` rows."""

    n: int
    xx: float
    xy: float
    yy: float

    @classmethod
    def of(cls, n: int, x: pl.Series | None, y: pl.Series | None) -> "Sums":
        """Return those of deviations; exactly 0 where a side has one value only, which is None."""
        pairs = ((x, x), (x, y), (y, y))
        return cls(n, *(0.0 if a is None or b is None else float((a * b).sum()) for a, b in pairs))

    @classmethod
    def total(cls, parts: Iterable["Sums"]) -> "Sums":
        """Return the sums over the rows of all parts."""
        return cls(*(sum(values) for values in zip(cls(0, 0.0, 0.0, 0.0), *parts, strict=True)))


def sums_of(x: pl.Series, y: pl.Series) -> Sums:
    """Return the sums of two columns, none null, less their means."""
    means = [None if values.min() == values.max() else mean_of(values) for values in (x, y)]
    parts = list[Sums]()
    for at in range(0, len(x), _AT_ONCE):
        sides = [values.slice(at, _AT_ONCE) for values in (x, y)]
        own, other = (None if mean is None else side - mean for side, mean in zip(sides, means, strict=True))
        parts.append(Sums.of(len(sides[0]), own, other))
    return Sums.total(parts)


def squares(values: pl.Series) -> float:
    """Return the sum of the squares of values, none null, less their mean."""
    return sums_of(values, values).xx


class Centred(NamedTuple):
    """Values less the mean of their group; how many groups have two rows, and in how many the first of the columns differs."""

    values: list[pl.Series]
    several: int
    differing: int


def centred(part: pl.DataFrame, *names: str) -> Centred:
    """Return columns of a part of ``Grouped``, none null, less the means of their groups."""
    ends = [
        end.alias(f"{name}/{kind}")
        for name in names
        for kind, end in (("sum", pl.col(name).sum()), ("min", pl.col(name).min()), ("max", pl.col(name).max()))
    ]
    of_group = part.group_by("g", maintain_order=True).agg(pl.len().alias("n"), *ends)
    position, flat = part["g"].rle_id(), [pl.col(f"{name}/min") == pl.col(f"{name}/max") for name in names]
    means = of_group.select(
        pl.when(is_flat).then(f"{name}/min").otherwise(pl.col(f"{name}/sum") / pl.col("n"))
        for name, is_flat in zip(names, flat, strict=True)
    )
    several, differing = of_group.select((pl.col("n") > 1).sum(), flat[0].not_().sum().alias("differing")).row(0)
    return Centred(
        [part[name] - mean.gather(position) for name, mean in zip(names, means.get_columns(), strict=True)],
        several,
        differing,
    )


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
        task = Keys(task.names, task.values, _only(task.codes, present))
        is_task = tuple(groups) == tuple(tasks)
        group = task.codes if is_task else _dense(_only(_packed([by_name[name] for name in groups]), present))
    passed, error, lengths = optional.values()
    return ResultColumns(result, table["reward"], passed, error, lengths, task, group, tuple(groups), by_name)


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


def _joined(keys: Sequence[Keys]) -> Keys:
    if len(keys) == 1:
        return keys[0]
    packed = _packed(keys)
    distinct, values = packed.unique().sort(), []
    for key in reversed(keys):
        values.append(key.values.to_series().gather(distinct % key.values.height))
        distinct //= key.values.height
    names = tuple(name for key in keys for name in key.names)
    return Keys(names, pl.DataFrame(values[::-1]), _dense(packed))


def _packed(keys: Sequence[Keys]) -> pl.Series:
    """Return the combination of keys in each row as one number."""
    packed = keys[0].codes.cast(pl.UInt64)
    for key in keys[1:]:
        packed = packed * key.values.height + key.codes
    return packed


def _dense(numbers: pl.Series) -> pl.Series:
    """Return the place of each number among those that there are."""
    return (numbers.rank("dense") - 1).cast(pl.UInt32)


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
