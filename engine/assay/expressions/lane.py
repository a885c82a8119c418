"""What every lane is made of: a named hidden column, and a way to run Python on the few rows that need it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, reduce
from operator import or_
from typing import Any

import polars as pl
import polars.selectors as cs

from assay.calls.limits import own_failure
from assay.names import HIDDEN, TEXT
from assay.thresholds import THRESHOLDS

__all__ = [
    "OTHER_ROWS",
    "Lane",
    "encoded",
    "exactly",
    "in_place",
    "is_elementwise",
    "is_small",
    "layers",
    "not_hidden",
    "nothing",
    "once",
    "plain",
    "plain_type",
    "positions",
    "rowwise",
    "text",
]


def is_small(batch: pl.Series | pl.DataFrame) -> bool:
    """Whether a batch has so few rows that the definition is done before columns are set up."""
    return len(batch) <= THRESHOLDS.small_batch


def not_hidden(names: Iterable[str]) -> list[str]:
    """The columns that users know of."""
    return [name for name in names if not name.startswith(HIDDEN)]


def exactly(name: str) -> pl.Expr:
    """The column of a name that a user gave; ``pl.col`` would take ``*`` and ``^…$`` for patterns."""
    return cs.by_name(name).as_expr()


def text() -> pl.Expr:
    """The completion's text: String, null where the completion is null."""
    return pl.col(TEXT)


def plain_type(dtype: Any) -> Any:
    """The type that a column of structure is read as: text is String and lists are List, however a file stores them."""
    if isinstance(dtype, pl.Categorical | pl.Enum):
        return pl.String()
    if isinstance(dtype, pl.List | pl.Array):
        return pl.List(plain_type(dtype.inner))
    if isinstance(dtype, pl.Struct):
        return pl.Struct({field.name: plain_type(field.dtype) for field in dtype.fields})
    return dtype


def plain(values: pl.Expr, dtype: Any) -> pl.Expr:
    """Values of a type as those of its ``plain_type``, which has them all.

    NOTE: a strict cast looks for values that became null, and fails at lists of a fixed length within a struct.
    """
    wanted = plain_type(dtype)
    return values if wanted == dtype else values.cast(wanted, strict=False)


@dataclass(frozen=True)
class Lane:
    """One shared intermediate column: whatever several checks need is computed once a row.

    Two lanes of one name are the same lane.

    Attributes:
        name: Unique name; it names the column.
        build: Makes the expression, given the dtypes of the input columns.
        after: Lanes whose columns the expression reads.
        spares: Name of a lane that has nothing to do where this one, a Boolean without nulls, holds.
        spared: Makes the expression where there are such lanes, given a column that says where one of them holds.
    """

    name: str
    build: Callable[[pl.Schema], pl.Expr] = field(compare=False)
    after: tuple["Lane", ...] = field(default=(), compare=False)
    spares: str = field(default="", compare=False)
    spared: Callable[[pl.Expr], pl.Expr] | None = field(default=None, compare=False)

    @property
    def column(self) -> str:
        """Name of the hidden column, escaped: a pattern may hold a lone surrogate, which no column name can."""
        return HIDDEN + self.name.encode("unicode_escape").decode()

    @property
    def col(self) -> pl.Expr:
        """The column, to be read by a check's expression."""
        return pl.col(self.column)


def layers(lanes: Iterable[Lane], schema: pl.Schema) -> list[list[pl.Expr]]:
    """Order lanes so that each is computed once, after what it reads.

    Args:
        lanes: The lanes that the checks ask for; those they depend on are found here.
        schema: Input columns and their dtypes.

    Returns:
        One list of named expressions a layer, for one ``with_columns`` each.
    """
    known: dict[str, Lane] = {}
    queue = list(lanes)
    while queue:
        lane = queue.pop()
        known.setdefault(lane.name, lane)
        queue.extend(lane.after)
    spared = {name: [one for one in known.values() if one.spares == name] for name in known}

    @cache
    def depth(name: str) -> int:
        return 1 + max((depth(one.name) for one in (*known[name].after, *spared[name])), default=-1)

    def made(name: str) -> pl.Expr:
        lane = known[name]
        if lane.spared is None or not spared[name]:
            return lane.build(schema)
        return lane.spared(reduce(or_, (one.col for one in spared[name])))

    found: list[list[pl.Expr]] = [[] for _ in range(1 + max(map(depth, known), default=-1))]
    for name in sorted(known):
        found[depth(name)].append(made(name).alias(known[name].column))
    return found


def rowwise(
    values: pl.Expr,
    function: Callable[[Any], object],
    dtype: pl.DataType | type[pl.DataType],
    *,
    distinct: bool = False,
    each: Callable[[Callable[[Any], object], list[Any]], list[Any]] = lambda function, values: list(
        map(function, values)
    ),
) -> pl.Expr:
    """Run a Python function on each non-null value; nulls stay null and cost nothing.

    Args:
        values: The column; mask to null the rows that need no Python.
        function: From one value to one value of ``dtype``; it must not raise.
        dtype: Type of the result.
        distinct: Run once for each distinct value of a batch; worth it where values repeat.
        each: Calls the function on each value; for functions that must be bounded.

    Returns:
        An elementwise expression of ``dtype``.
    """

    def answers(asked: pl.Series) -> pl.Series:
        return pl.Series(each(function, asked.to_list()), dtype=dtype)

    def run(series: pl.Series) -> pl.Series:
        if series.null_count() == len(series):
            return nothing(series, dtype)
        return answers(series.drop_nulls()).gather(positions(series.is_not_null())).alias(series.name)

    return (
        once(values, answers, dtype) if distinct else values.map_batches(run, return_dtype=dtype, is_elementwise=True)
    )


def nothing(series: pl.Series, dtype: pl.DataType | type[pl.DataType]) -> pl.Series:
    """Nulls of a type, as many as a column has rows and under its name."""
    return pl.Series(series.name, [None], dtype=dtype).new_from_index(0, len(series))


def positions(kept: pl.Series) -> pl.Series:
    """Where each row stands among those that are kept (Boolean, no nulls); null for the others."""
    return pl.select(pl.when(kept).then(kept.cast(pl.UInt32).cum_sum() - 1)).to_series()


def in_place(found: pl.DataFrame, size: int) -> pl.DataFrame:
    """Rows where their column ``at`` says, in a frame of so many rows; nulls elsewhere."""
    where = pl.Series([None], dtype=pl.UInt32).new_from_index(0, size)
    where = where.scatter(found["at"], pl.int_range(found.height, dtype=pl.UInt32, eager=True))
    return found.select(pl.exclude("at").gather(where))


def encoded(texts: pl.Series) -> tuple[pl.Series, pl.Series]:
    """The distinct texts of a String column, and which of them each row holds; null where it holds none."""
    # half the time of finding the distinct values and joining them back
    coded = texts.to_arrow(compat_level=pl.CompatLevel.oldest()).dictionary_encode()
    return pl.Series(coded.dictionary, dtype=pl.String), pl.Series(coded.indices)


def once(
    values: pl.Expr, function: Callable[[pl.Series], pl.Series], dtype: pl.DataType | type[pl.DataType]
) -> pl.Expr:
    """Run a function of columns on the distinct non-null values of each batch; nulls stay null.

    Args:
        values: The column, String.
        function: From a column of distinct values to one of ``dtype``, row for row.
        dtype: Type of the result.

    Returns:
        An elementwise expression of ``dtype``.
    """

    def run(series: pl.Series) -> pl.Series:
        if series.null_count() == len(series):
            return nothing(series, dtype)
        texts, which = encoded(series)
        found = function(texts)
        if len(found) == 1 and not series.null_count():
            return found.new_from_index(0, len(series)).alias(series.name)
        return found.gather(which).alias(series.name)

    return values.map_batches(run, return_dtype=dtype, is_elementwise=True)


OTHER_ROWS = "what it says of a row depends on other rows"
"""What is wrong with an expression of a user's that is not elementwise."""

_SAMPLE = ("b", "a", "a", "", "<think>c</think>")


def is_elementwise(expr: pl.Expr, names: Iterable[str], *, tried: bool) -> bool:
    """Whether an expression says of each row what it says of that row alone.

    Args:
        expr: An expression of a user's.
        names: The columns of text that it may read.
        tried: Try it on a few texts, together and one by one, also where the engine takes it for elementwise.

    Returns:
        False where that is certain. Python functions in an expression may do anything, and what fails here may not in a run.
    """
    try:
        # NOTE: the engine does not look into structs, and pl.fold may be elementwise though it does not know
        if not tried and expr.meta.is_row_separable():
            return True
        texts = pl.DataFrame(dict.fromkeys(names, _SAMPLE))
        frames = (
            texts,
            texts.reverse(),
            *texts.iter_slices(1),
        )  # reversed, for sums and the like begin with the first row
        whole, turned, *alone = (frame.with_columns(answer=expr)["answer"].to_list() for frame in frames)
    except BaseException as wrong:  # it may be anybody's
        if not own_failure(wrong):
            raise
        return True
    return repr(whole) == repr(turned[::-1]) == repr([answer for (answer,) in alone])
