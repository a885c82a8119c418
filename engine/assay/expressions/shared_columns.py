"""Shared columns: hidden columns that several checks read, and helpers to run Python on the few rows that need it."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field, replace
from functools import cache, lru_cache, reduce
from operator import or_
from typing import Any

import polars as pl
import polars.selectors as cs

from assay.calls.limits import is_user_error
from assay.frozen import frozen
from assay.names import HIDDEN, TEXT
from assay.system.arrow import pa
from assay.thresholds import THRESHOLDS


def is_small(batch: pl.Series | pl.DataFrame) -> bool:
    """Return whether a batch is so small that the Python definition is faster than columns."""
    return len(batch) <= THRESHOLDS.small_batch


def not_hidden(names: Iterable[str]) -> list[str]:
    """Return the names of columns that are not hidden."""
    return [name for name in names if not name.startswith(HIDDEN)]


@lru_cache(256)  # a plan asks several times for each
def exactly(name: str) -> pl.Expr:
    """Return the column with exactly this name, from a user; ``pl.col`` would take ``*`` and ``^…$`` as patterns."""
    return cs.by_name(name).as_expr()


def field_of(values: pl.Expr, dtype: Any, name: str) -> pl.Expr:
    """Return the field with exactly this name, from data, of values of a type of structs."""
    if name != "*" and not name.startswith("^"):
        return values.struct.field(name)
    names = [field.name for field in dtype.fields]
    numbered = values.struct.rename_fields([str(at) for at in range(len(names))])
    return numbered.struct.field(str(names.index(name)))


def row_of(columns: Iterable[pl.Expr]) -> pl.Expr:
    """Return columns as a struct for Python."""
    # NOTE: a name of ours: a series' methods would take the name of a user's column for a pattern
    return pl.struct(*columns).alias("row")


_SUBJECT = ContextVar("subject", default=TEXT)


@contextmanager
def reading_column(subject: str) -> Iterator[None]:
    """Build expressions and lanes about another column than the completion's text: what ``on:`` makes of it."""
    token = _SUBJECT.set(subject)
    try:
        yield
    finally:
        _SUBJECT.reset(token)


def text() -> pl.Expr:
    """Return the text that a check is about: by default the completion's, null where the completion is null. See ``reading_column``."""
    return pl.col(_SUBJECT.get())


def reads_completion() -> bool:
    """Return whether ``text`` is the completion's."""
    return _SUBJECT.get() == TEXT


def plain_type(dtype: Any) -> Any:
    """Return the type as which a column is read: text as String and lists as List, however a file stores them."""
    if isinstance(dtype, pl.Categorical | pl.Enum):
        return pl.String()
    if isinstance(dtype, pl.List | pl.Array):
        return pl.List(plain_type(dtype.inner))
    if isinstance(dtype, pl.Struct):
        return pl.Struct({field.name: plain_type(field.dtype) for field in dtype.fields})
    return dtype


def plain(values: pl.Expr, dtype: Any) -> pl.Expr:
    """Cast values to their ``plain_type``, without loss."""
    target = plain_type(dtype)
    # NOTE: a strict cast checks for values that became null, and fails for fixed-size lists within a struct
    return values if target == dtype else values.cast(target, strict=False)


@frozen
class SharedColumn:
    """A shared intermediate column, so that what several checks need is computed once per row.

    Two lanes with the same name are the same lane.

    Attributes:
        name: Unique name; the column is named after it.
        build: Builds the expression, given the dtypes of the input columns.
        after: Lanes whose columns the expression reads.
        implies: Name of a Boolean lane that is true wherever this one, a Boolean without nulls, is true.
        build_known: Builds the expression if there are lanes that imply this one, given a column that is true where one of them is.
        basis: A lane from which this one could be built faster, if it is there anyway or enough lanes share its cost …
        build_from: … with this expression, which also reads the lanes that ``basis`` is after.
        build_few: Builds the expression for a few rows, by the definition; it reads no lanes.
    """

    name: str
    build: Callable[[pl.Schema], pl.Expr] = field(compare=False)
    after: tuple["SharedColumn", ...] = field(default=(), compare=False)
    implies: str = field(default="", compare=False)
    build_known: Callable[[pl.Expr], pl.Expr] | None = field(default=None, compare=False)
    basis: "SharedColumn | None" = field(default=None, compare=False)
    build_from: Callable[[pl.Schema], pl.Expr] | None = field(default=None, compare=False)
    build_few: Callable[[pl.Schema], pl.Expr] | None = field(default=None, compare=False)

    @property
    def column(self) -> str:
        """Name of the hidden column, escaped because a pattern may contain a lone surrogate and a column name may not."""
        subject = _SUBJECT.get()
        suffix = "" if subject == TEXT else f" of {subject.removeprefix(HIDDEN)}"
        return HIDDEN + self.name.encode("unicode_escape").decode() + suffix

    @property
    def col(self) -> pl.Expr:
        """The column, for a check's expression."""
        if (read := _READ.get()) is not None:
            read.append(self)
        return pl.col(self.column)


_READ: ContextVar[list[SharedColumn] | None] = ContextVar("read", default=None)


@contextmanager
def columns_read() -> Iterator[list[SharedColumn]]:
    """Collect the lanes whose columns are read by expressions that are built here."""
    outer, lanes = _READ.get(), list[SharedColumn]()
    token = _READ.set(lanes)
    try:
        yield lanes
    finally:
        _READ.reset(token)
        if outer is not None:
            outer += lanes


def layers(lanes: Iterable[SharedColumn], schema: pl.Schema, *, few: bool = False) -> list[list[pl.Expr]]:
    """Order lanes so that each is computed once, after the lanes that it reads."""
    by_name = _with_needs(_on_bases(_with_needs(map(_by_definition, lanes) if few else lanes)))
    implied_by = {name: [lane for lane in by_name.values() if lane.implies == name] for name in by_name}

    @cache
    def depth(name: str) -> int:
        return 1 + max((depth(lane.name) for lane in (*by_name[name].after, *implied_by[name])), default=-1)

    def build(name: str) -> pl.Expr:
        lane = by_name[name]
        if lane.build_known is None or not implied_by[name]:
            return lane.build(schema)
        return lane.build_known(reduce(or_, (other.col for other in implied_by[name])))

    result: list[list[pl.Expr]] = [[] for _ in range(1 + max(map(depth, by_name), default=-1))]
    for name in sorted(by_name):
        result[depth(name)].append(build(name).alias(by_name[name].column))
    return result


def _by_definition(lane: SharedColumn) -> SharedColumn:
    return lane if lane.build_few is None else replace(lane, build=lane.build_few, after=())


def _with_needs(lanes: Iterable[SharedColumn]) -> dict[str, SharedColumn]:
    by_name: dict[str, SharedColumn] = {}
    queue = [*lanes][::-1]  # of equal ones, the first
    while queue:
        lane = queue.pop()
        if lane.name not in by_name:
            by_name[lane.name] = lane
            queue.extend(lane.after)
    return by_name


def _on_bases(lanes: Mapping[str, SharedColumn]) -> list[SharedColumn]:
    """Build lanes from their bases, where these are there anyway or enough lanes share their cost."""
    wanted = Counter(lane.basis.name for lane in lanes.values() if lane.basis is not None)
    shared = {name for name, number in wanted.items() if name in lanes or number >= THRESHOLDS.sharers}
    return [
        replace(lane, build=lane.build_from, after=(*lane.after, lane.basis))
        if lane.basis is not None and lane.basis.name in shared and lane.build_from is not None
        else lane
        for lane in lanes.values()
    ]


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
    """Run a Python function on each non-null value; nulls stay null and cost nothing."""

    def answers(series: pl.Series) -> pl.Series:
        return pl.Series(each(function, series.to_list()), dtype=dtype)

    def run(series: pl.Series) -> pl.Series:
        if series.null_count() == len(series):
            return nulls(series, dtype)
        if is_small(series):
            inputs = series.to_list()
            results = iter(each(function, [value for value in inputs if value is not None]))
            return pl.Series(series.name, [None if value is None else next(results) for value in inputs], dtype=dtype)
        return in_rows_of(series, answers(series.drop_nulls()))

    return (
        once(values, answers, dtype) if distinct else values.map_batches(run, return_dtype=dtype, is_elementwise=True)
    )


def on_rows(
    values: pl.Expr,
    mask: pl.Expr,
    function: Callable[[pl.Series], pl.Series],
    dtype: pl.DataType | type[pl.DataType],
    otherwise: object,
) -> pl.Expr:
    """Run a function of columns on the values of some rows."""

    def run(columns: Sequence[pl.Series]) -> pl.Series:
        series, rows = columns
        results = pl.Series(series.name, [otherwise], dtype=dtype).new_from_index(0, len(series))
        return among(results, rows, series, function)

    return pl.map_batches([values, mask], run, return_dtype=dtype, is_elementwise=True)


def among(
    results: pl.Series, mask: pl.Series, values: pl.Series, function: Callable[[pl.Series], pl.Series]
) -> pl.Series:
    """Set the results of some rows to those of a function of columns."""
    # NOTE: Polars also computes what stands behind nulls, and gathers from several chunks slowly
    chosen = values.filter(mask)
    return results.scatter(mask.arg_true(), function(chosen)) if len(chosen) else results


def nulls(series: pl.Series, dtype: pl.DataType | type[pl.DataType]) -> pl.Series:
    """Return a series of nulls with the name and the length of another one."""
    return pl.Series(series.name, [None], dtype=dtype).new_from_index(0, len(series))


_PRESENT = pl.col("value").is_not_null()
_AMONG_PRESENT = pl.when(_PRESENT).then(_PRESENT.cast(pl.UInt32).cum_sum() - 1)


def in_rows_of(values: pl.Series, results: pl.Series) -> pl.Series:
    """Return results, each of the next value that is not null, in the rows of these values; null in the others."""
    if not values.null_count():
        return results.alias(values.name)
    # by index: a method of a series that is an expression, as ``gather`` is, is a query with its set-up
    return results[values.alias("value").to_frame().select_seq(_AMONG_PRESENT).to_series()].alias(values.name)


def positions(kept: pl.Series) -> pl.Series:
    """Return the index of each row among the kept rows (Boolean, no nulls); null for the others."""
    number = pl.col("kept").cast(pl.UInt32).cum_sum() - 1
    return kept.alias("kept").to_frame().select_seq(pl.when("kept").then(number)).to_series()


def in_place(rows: pl.DataFrame, size: int) -> pl.DataFrame:
    """Return a frame of ``size`` rows with the given rows at the indices in their column ``at``, and nulls elsewhere."""
    where = pl.Series([None], dtype=pl.UInt32).new_from_index(0, size)
    where = where.scatter(rows["at"], pl.int_range(rows.height, dtype=pl.UInt32, eager=True))
    return rows.select_seq(pl.exclude("at").gather(where))


def first_of_each(scores: pl.Series, sizes: pl.Series, *, lowest: bool) -> pl.Series:
    """Return the index of the best score of each run of rows, the first of equals."""
    runs = in_lists(scores, sizes).list
    return sizes.cum_sum() - sizes + (runs.arg_min() if lowest else runs.arg_max())


def in_lists(values: pl.Series, sizes: pl.Series) -> pl.Series:
    """Return a column of lists: each takes the next values."""
    offsets = pl.concat([pl.Series([0], dtype=pl.Int64), sizes.cum_sum().cast(pl.Int64)], rechunk=True)
    array = values.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    return pl.Series(pa.LargeListArray.from_arrays(offsets.to_arrow(), array))


def encoded(texts: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return the distinct texts of a String column, and the index of each row's text; null for a null row."""
    present = texts.drop_nulls()
    if present.n_unique() == len(present):  # half of what follows
        numbers = pl.int_range(len(present), dtype=pl.UInt32, eager=True)
        return present.rechunk(), in_rows_of(texts, numbers)
    rows = texts.alias("text").to_frame().with_row_index("at")
    groups = rows.group_by("text", maintain_order=True).agg("at").drop_nulls("text").with_row_index("number")
    each = groups.select_seq("number", "at").explode("at")
    # long texts take pyarrow's dictionary_encode five times as long, and its import 0.1 s
    return groups["text"], nulls(texts, pl.UInt32).scatter(each["at"], each["number"])


def once(
    values: pl.Expr, function: Callable[[pl.Series], pl.Series], dtype: pl.DataType | type[pl.DataType]
) -> pl.Expr:
    """Run a function of columns on the distinct non-null values of each batch; nulls stay null."""

    def run(series: pl.Series) -> pl.Series:
        if series.null_count() == len(series):
            return nulls(series, dtype)
        texts, which = encoded(series)
        results = function(texts)
        if len(results) == 1 and not series.null_count():
            return results.new_from_index(0, len(series)).alias(series.name)
        return results.gather(which).alias(series.name)

    return values.map_batches(run, return_dtype=dtype, is_elementwise=True)


OTHER_ROWS = "what it says of a row depends on other rows"
"""The problem of a user's expression that is not elementwise."""

_SAMPLE = ("b", "a", "a", "", "<think>c</think>")


def is_elementwise(expr: pl.Expr, names: Iterable[str], *, tried: bool) -> bool:
    """Return whether an expression's result for each row depends on that row alone."""
    try:
        # NOTE: Polars does not look into structs, and does not know that pl.fold may be elementwise
        if not tried and expr.meta.is_row_separable():
            return True
        texts = pl.DataFrame(dict.fromkeys(names, _SAMPLE))
        frames = (
            texts,
            texts.reverse(),
            *texts.iter_slices(1),
        )  # reversed, for sums and the like begin with the first row
        whole, turned, *alone = (frame.with_columns_seq(answer=expr)["answer"].to_list() for frame in frames)
    except BaseException as error:  # a user's function may raise anything
        if not is_user_error(error):
            raise
        return True
    return repr(whole) == repr(turned[::-1]) == repr([answer for (answer,) in alone])


def distinct_rows(rows: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return the distinct values of a column of structs, and the index of each row's."""
    if _is_beyond_json(rows.dtype):  # JSON has no NaN
        keys = pl.Series(map(repr, rows.to_list()), dtype=pl.String)
    elif set(rows.dtype.to_schema().values()) == {pl.String()} and not rows.null_count():  # type: ignore[attr-defined]
        keys = reduce(_paired, map(_numbered, rows.struct.unnest()))  # long texts take twice as long as JSON
    else:
        keys = rows.struct.json_encode()
    _, which = encoded(keys)
    return rows.gather(which.arg_unique().sort()), which


def _numbered(texts: pl.Series) -> pl.Series:
    """Return a number for each row of a column, the same for the same value, null included; they are as many as rows, at most."""
    values, which = encoded(texts.alias("text"))
    return which.cast(pl.Int64).fill_null(len(values))


def _paired(numbers: pl.Series, others: pl.Series) -> pl.Series:
    """Return a number for each pair of such numbers."""
    return _numbered(numbers * (len(numbers) + 1) + others)


def _is_beyond_json(dtype: Any) -> bool:
    """Whether a type has anything but text, whole numbers and flags, in lists and structs of these."""
    if isinstance(dtype, pl.Struct):
        return any(_is_beyond_json(field.dtype) for field in dtype.fields)
    if isinstance(dtype, pl.List):
        return _is_beyond_json(dtype.inner)
    return not (isinstance(dtype, pl.String | pl.Boolean | pl.Null) or dtype.is_integer())


def repeated(values: pl.Series, times: pl.Series) -> pl.Series:
    """Return each value as often as ``times`` says."""
    if not len(values):
        return values
    at = pl.int_range(len(values), dtype=pl.UInt32, eager=True)
    return values.gather(at.repeat_by(times).explode(empty_as_null=False))


def ranges(ends: pl.Series, sizes: pl.Series) -> pl.Series:
    """Return the positions in segments with these ends and sizes."""
    at = (
        pl.DataFrame()
        .select_seq(pl.int_ranges(ends - sizes, ends, dtype=pl.Int64).explode(empty_as_null=False))
        .to_series()
    )
    return at.cast(pl.UInt32)


def segment_sums(values: pl.Series, sizes: pl.Series) -> pl.Series:
    """Return the sum of each of the consecutive segments of ``values``."""
    running = pl.concat([pl.Series([0], dtype=pl.Int64), values.cast(pl.Int64).cum_sum()])
    ends = sizes.cast(pl.Int64).cum_sum()
    return running.gather(ends) - running.gather(ends - sizes.cast(pl.Int64))
