"""``expectation_rules.grade`` as an expression.

It flattens the entries of a whole batch, searches every phrase in its row's text with one column-to-column search, and sums the
results by row: one pass, whatever the number of distinct tasks.
"""

from collections.abc import Iterable, Iterator, Sequence

import polars as pl
import pyarrow as pa

from assay.checks.expectation_rules import (
    ANY_OF,
    FORBID,
    JOINT,
    MENTION,
    METADATA,
    NO_EXPECTATIONS,
    NO_PHRASE,
    SIDES,
    SILENT,
    UNREAD,
    grade,
    read,
    unread_field,
    unread_side,
)
from assay.expressions.lane import Lane, is_small, plain, rowwise, text
from assay.expressions.text import ASCII_ALIKE, contains_column, is_ascii, lower_rows

__all__ = ["EXPECTATIONS"]

_GRADE = pl.Struct({"score": pl.Float64, "reason": pl.String, "error": pl.String, "remark": pl.String})
_DISTINCT = {"metadata": pl.String, "end": pl.Int64, "size": pl.Int64, "broken": pl.String, "slip": pl.String}
_ENTRY = pl.Struct({"where": pl.String, "forbid": pl.Boolean, "phrases": pl.List(pl.String), "message": pl.String})
_ENTRY_NAMES = ("where", "forbid", "phrases", "message")


def _expectations_expr(schema: pl.Schema) -> pl.Expr:
    # a run rejects a missing metadata column earlier; only `explain` gets here without one
    metadata = pl.lit(None, dtype=pl.String)
    if METADATA in schema:
        metadata = plain(pl.col(METADATA), schema[METADATA])
    graded = pl.map_batches([text(), metadata], _grade_batch, return_dtype=_GRADE, is_elementwise=True)
    return pl.when(text().is_not_null()).then(graded)


EXPECTATIONS = Lane("expectations", _expectations_expr)
"""The grade of every row, a struct with the fields of ``Grade``."""


def _grade_batch(columns: Sequence[pl.Series]) -> pl.Series:
    texts, metadata = columns
    height = len(texts)
    if len(metadata) != height:  # a literal arrives as a single value
        metadata = metadata.new_from_index(0, height)
    if is_small(texts):
        pairs = zip(metadata.to_list(), texts.to_list(), strict=True)
        grades = [None if text is None else vars(grade(value, text)) for value, text in pairs]
        return pl.Series(texts.name, grades, dtype=_GRADE)
    flatten = _entries_of_struct if metadata.dtype == pl.Struct else _entries_of_text
    entries, broken, slip = flatten(metadata)
    fails = _failures(entries, texts)
    by_row = _Rows(entries["row"], height)
    total, failed = by_row.count(None), by_row.count(fails)
    reason = by_row.join(entries.filter(fails).select("row", text=_REASON))
    unusable = entries.filter(pl.col("phrases").list.len() == 0)
    problem = by_row.join(unusable.select("row", text=pl.lit("ValueError: ") + _PROBLEM))
    error = pl.when("broken").then(pl.lit("ValueError: ") + pl.col("why"))
    unread = pl.lit(UNREAD) + pl.col("slip")
    silent = pl.concat_str(pl.lit(SILENT), unread, separator="; ", ignore_nulls=True)
    results = {"total": total, "failed": failed, "reason": reason, "problem": problem, "why": broken, "slip": slip}
    return (
        pl.DataFrame(results)
        .with_columns(broken=pl.col("why").is_not_null())
        .select(
            pl.struct(
                # divide by a column: dividing by a literal rounds differently
                score=pl.when("broken").then(0.0).when(total == 0).then(1.0).otherwise((total - failed) / total),
                reason=pl.coalesce(error, "reason").fill_null(""),
                error=pl.coalesce(error, "problem"),
                remark=pl.when(pl.col("broken").not_()).then(pl.when(total == 0).then(silent).otherwise(unread)),
            ).cast(_GRADE)
        )
        .to_series()
        .alias(texts.name)
    )


_PROBLEM = pl.col("where") + NO_PHRASE
_REASON = pl.coalesce(
    pl.when(pl.col("message") != "").then("message"),
    pl.when(pl.col("phrases").list.len() == 0).then(_PROBLEM),
    pl.when("forbid").then(pl.lit(FORBID)).otherwise(pl.lit(MENTION)) + pl.col("phrases").list.join(", "),
)
"""``Entry.reason`` as an expression; ``_PROBLEM`` is ``Entry.problem``."""


def _failures(entries: pl.DataFrame, texts: pl.Series) -> pl.Series:
    """Return for each entry whether it fails."""
    sizes = entries["phrases"].list.len()
    if not sizes.sum():
        return pl.repeat(value=True, n=len(entries), eager=True)
    hits = _hits(texts, entries["phrases"].list.explode(empty_as_null=False), _repeat(entries["row"], sizes))
    any_hit = _segment_sums(hits, sizes) > 0
    return (any_hit == entries["forbid"]) | (sizes == 0)


def _hits(texts: pl.Series, phrases: pl.Series, row: pl.Series) -> pl.Series:
    """Return whether each phrase occurs in the text of its row, both in lower case.

    An ASCII phrase matches only ASCII letters, so lowering bytes suffices for it, unless the text has one of the few code points
    beyond ASCII whose lower case is ASCII.
    """
    at = row.rle_id()  # index among the texts with phrases: others are not lowered
    texts = texts.gather(row.rle().struct.field("value"))
    other = ~is_ascii(phrases)
    exact = texts.str.contains(ASCII_ALIKE)
    lowered = lower_rows(texts, exact.scatter(at.filter(other).unique(), values=True) if other.any() else exact)
    return contains_column(lowered.gather(at), lower_rows(phrases, other)).fill_null(value=False)


def _repeat(values: pl.Series, times: pl.Series) -> pl.Series:
    return (
        values.gather(pl.int_range(len(values), dtype=pl.UInt32, eager=True).repeat_by(times).explode())
        if len(values)
        else values
    )


def _segment_sums(values: pl.Series, sizes: pl.Series) -> pl.Series:
    """Return the sum of each of the consecutive segments of ``values``."""
    running = pl.concat([pl.Series([0], dtype=pl.Int64), values.cast(pl.Int64).cum_sum()])
    ends = sizes.cast(pl.Int64).cum_sum()
    return running.gather(ends) - running.gather(ends - sizes.cast(pl.Int64))


def _lists(sizes: pl.Series, values: pl.Series) -> pl.Series:
    """Return consecutive segments of strings as lists, a hundred times faster than from Python lists."""
    ends = pl.concat([pl.Series([0], dtype=pl.Int64), sizes.cast(pl.Int64).cum_sum()])
    return pl.Series(pa.LargeListArray.from_arrays(ends.to_arrow(), values.to_arrow()), dtype=pl.List(pl.String))


class _Rows:
    """Aggregates flat values by row; flat values are in row order."""

    def __init__(self, row: pl.Series, height: int) -> None:
        self.row = row
        self.height = height

    def count(self, where: pl.Series | None) -> pl.Series:
        """Return the number of flat values per row, or of those where ``where`` holds."""
        return self._sizes(self.row if where is None else self.row.filter(where))

    def _sizes(self, row: pl.Series) -> pl.Series:
        # positions of the row starts in the sorted flat rows, by binary search
        edges = row.search_sorted(pl.int_range(self.height + 1, dtype=pl.UInt32, eager=True), side="left").cast(
            pl.Int64
        )
        return edges.slice(1) - edges.slice(0, self.height)

    def join(self, texts: pl.DataFrame) -> pl.Series:
        """Join the texts of each row by ``"; "``; null for rows without any."""
        sizes = self._sizes(texts["row"])
        lists = _lists(sizes, texts["text"])
        return pl.select(pl.when(sizes > 0).then(pl.lit(lists).list.join(JOINT))).to_series()


def _entries_of_text(metadata: pl.Series) -> tuple[pl.DataFrame, pl.Series, pl.Series]:
    """Return the entries of JSON texts, the problem of each row, and its slip; parse each distinct text once."""
    texts = metadata.cast(pl.String)
    distinct = texts.unique(maintain_order=True)
    where: list[str] = []
    forbid: list[bool] = []
    message: list[str | None] = []
    phrases: list[str] = []
    counts: list[int] = []
    sizes: list[int] = []
    broken: list[str | None] = []
    slips: list[str | None] = []
    for entries, problem, slip in map(read, distinct.to_list()):
        sizes.append(len(entries))
        broken.append(problem)
        slips.append(slip)
        for entry in entries:
            where.append(entry.where)
            forbid.append(entry.forbid)
            message.append(entry.message)
            counts.append(len(entry.phrases))
            phrases += entry.phrases
    lists = _lists(pl.Series(counts, dtype=pl.Int64), pl.Series(phrases, dtype=pl.String))
    columns = {"where": where, "forbid": forbid, "phrases": lists, "message": message}
    flat = pl.DataFrame(columns, schema=_ENTRY.to_schema())
    ends = pl.Series(sizes, dtype=pl.Int64).cum_sum()
    readings = {"metadata": distinct, "end": ends, "size": sizes, "broken": broken, "slip": slips}
    table = pl.DataFrame(readings, schema=_DISTINCT)
    rows = texts.to_frame("metadata").join(table, on="metadata", how="left", nulls_equal=True, maintain_order="left")
    nonempty = rows.with_row_index("row").filter(pl.col("size") > 0)
    at = nonempty.select(pl.int_ranges(pl.col("end") - pl.col("size"), "end", dtype=pl.UInt32).explode()).to_series()
    row = _repeat(nonempty["row"], nonempty["size"]).cast(pl.UInt32)
    return flat.select(*_ENTRY_NAMES)[at.drop_nulls()].insert_column(0, row.alias("row")), rows["broken"], rows["slip"]


def _flatten(lists: pl.Series, counts: pl.Series) -> tuple[pl.Series, pl.Series, pl.Series]:
    """Return row, value and position of every element of a list column, for the rows in ``counts``."""
    sizes = lists.list.len().fill_null(0)
    nonempty = (sizes > 0) & counts
    rows = pl.int_range(len(lists), dtype=pl.UInt32, eager=True).filter(nonempty)
    lengths = sizes.filter(nonempty)
    position = (
        pl.select(pl.int_ranges(0, lengths, dtype=pl.UInt32).explode()).to_series()
        if len(lengths)
        else lengths.cast(pl.UInt32)
    )
    return _repeat(rows, lengths), lists.filter(nonempty).explode(), position


def _fields(series: pl.Series, *names: str) -> list[pl.Series]:
    """Return the fields of a struct column with these names, or all fields, except those of type Null."""
    present = [field.name for field in series.dtype.fields] if isinstance(series.dtype, pl.Struct) else []
    fields = [series.struct.field(name) for name in names or present if name in present]
    return [field for field in fields if field.dtype != pl.Null]


def _choices(fields: Iterable[pl.Series]) -> Iterator[tuple[pl.Series, pl.Series]]:
    """Yield alternative fields, each with the rows where it counts: the rows in which it is the first with a value."""
    taken: pl.Series | None = None
    for field in fields:
        present = field.is_not_null()
        yield field, present if taken is None else present & ~taken
        taken = present if taken is None else present | taken


def _entries_of_struct(metadata: pl.Series) -> tuple[pl.DataFrame, pl.Series, pl.Series]:
    """Do the same for a struct column, by its type; no value is read in Python."""
    height = len(metadata)
    frames = [pl.DataFrame(schema={"row": pl.UInt32, **_ENTRY.to_schema()})]
    broken = pl.repeat(None, height, dtype=pl.String, eager=True)
    for expectations in _fields(metadata, "expectations"):
        if isinstance(expectations.dtype, pl.List):
            sides = [("mustMention", False, [expectations])]
        elif isinstance(expectations.dtype, pl.Struct):
            sides = [(name, forbid, _fields(expectations, name, snake)) for name, snake, forbid in SIDES]
        else:
            return frames[0], _text_where(expectations.is_not_null(), NO_EXPECTATIONS), _slips(metadata)
        for name, forbid, fields in sides:
            for field, counts in _choices(fields):
                if isinstance(field.dtype, pl.List):
                    frames.append(_side(field, counts, name, forbid=forbid))
                else:
                    problem = _text_where(counts, f"metadata.expectations.{name} is not a list")
                    broken = pl.select(pl.coalesce(broken, problem)).to_series()
    entries = pl.concat(frames).sort("row", maintain_order=True)
    return entries.filter(broken.gather(entries["row"]).is_null()), broken, _slips(metadata)


def _slips(metadata: pl.Series) -> pl.Series:
    """Return the slip of each row of a struct column."""
    nothing = pl.repeat(None, len(metadata), dtype=pl.String, eager=True)
    expectations = next(iter(_fields(metadata, "expectations")), nothing)
    slips = [(field.is_not_null(), unread_side(field.name)) for field in _fields(expectations)]
    missing = expectations.is_null()
    slips += [(field.is_not_null() & missing, unread_field(field.name)) for field in _fields(metadata)]
    first = pl.coalesce(nothing, *(pl.when(rows).then(pl.lit(slip)) for rows, slip in slips if slip is not None))
    return pl.select(first).to_series()


def _text_where(rows: pl.Series, message: str) -> pl.Series:
    return pl.select(pl.when(rows).then(pl.lit(message))).to_series()


def _without_nulls(lists: pl.Series, column: str) -> pl.Expr:
    """Drop the nulls in a column of lists, if there are any: ``drop_nulls`` is slow even if there are none."""
    any_null = lists.list.explode(empty_as_null=False, keep_nulls=False).has_nulls()
    return pl.col(column).list.drop_nulls() if any_null else pl.col(column)


def _side(lists: pl.Series, counts: pl.Series, name: str, *, forbid: bool) -> pl.DataFrame:
    """Return the entries of one list column, for the rows where it counts."""
    row, entry, position = _flatten(lists, counts)
    phrases = pl.lit(None, dtype=pl.List(pl.String))
    unusable: pl.Expr | None = None
    columns: dict[str, pl.Series] = {"row": row, "position": position}
    for at, (any_of, chosen) in enumerate(_choices(_fields(entry, *ANY_OF))):
        column, counts_here = f"any_of_{at}", pl.col(f"counts_{at}")
        columns |= {column: any_of, f"counts_{at}": chosen}
        values = _without_nulls(any_of, column) if isinstance(any_of.dtype, pl.List) else None
        if values is not None and any_of.dtype == pl.List(pl.String):
            phrases = pl.when(counts_here).then(values).otherwise(phrases) if at else values
        else:
            invalid = counts_here if values is None else counts_here & (values.list.len() > 0)
            unusable = invalid if unusable is None else unusable | invalid
    for field in _fields(entry, "text"):
        if field.dtype == pl.String:
            columns["text"] = field
            alone = pl.when(pl.col("text").is_not_null()).then(pl.concat_list("text"))
            phrases = pl.when(phrases.list.len() > 0).then(phrases).otherwise(alone)
    message = next((field for field in _fields(entry, "message") if field.dtype == pl.String), None)
    columns["message"] = message if message is not None else pl.repeat(None, len(row), dtype=pl.String, eager=True)
    nothing = pl.lit([], dtype=pl.List(pl.String))
    usable = phrases.fill_null(nothing)
    entries = pl.DataFrame(columns).select(
        pl.col("row").cast(pl.UInt32),
        where="position",
        forbid=pl.lit(forbid),
        phrases=usable if unusable is None else pl.when(unusable).then(nothing).otherwise(usable),
        message="message",
    )
    # only entries without a phrase need their path as text
    index = pl.when(pl.col("phrases").list.len() == 0).then("where")
    return entries.with_columns(where=rowwise(index, lambda at: f"{name}[{at}]", pl.String))
