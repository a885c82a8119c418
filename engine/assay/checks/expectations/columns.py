"""The check for phrases that a task expects or forbids: ``rules.grade`` as an expression.

It flattens the entries of a whole batch, searches every phrase in its row's text with one column-to-column search, and sums the
results by row: one pass, whatever the number of distinct tasks.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import polars as pl

from assay.checks.base import Check, Columns, Example, Row, Traits
from assay.checks.expectations.rules import (
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
from assay.expressions.json_shapes import filled, shapes_of, text_without_shape
from assay.expressions.shared_columns import (
    SharedColumn,
    encoded,
    in_lists,
    is_small,
    plain,
    ranges,
    repeated,
    rowwise,
    segment_sums,
    text,
)
from assay.expressions.text import ASCII_ALIKE, contains_column, is_ascii, lower_rows
from assay.thresholds import THRESHOLDS

_GRADE = pl.Struct({"score": pl.Float64, "reason": pl.String, "error": pl.String, "remark": pl.String})
_LAYOUT = {"size": pl.Int64, "broken": pl.String, "slip": pl.String}
_LAYOUT_ENTRY = {"where": pl.String, "forbid": pl.Boolean, "message": pl.Int64, "count": pl.Int64}
_ENTRY = pl.Struct({"where": pl.String, "forbid": pl.Boolean, "phrases": pl.List(pl.String), "message": pl.String})


def _expectations_expr(schema: pl.Schema) -> pl.Expr:
    # a run rejects a missing metadata column earlier; only `explain` gets here without one
    metadata = pl.lit(None, dtype=pl.String)
    if METADATA in schema:
        metadata = plain(pl.col(METADATA), schema[METADATA])
    graded = pl.map_batches([text(), metadata], _grade_batch, return_dtype=_GRADE, is_elementwise=True)
    return pl.when(text().is_not_null()).then(graded)


EXPECTATIONS = SharedColumn("expectations", _expectations_expr)
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
    reason = by_row.join(entries.filter(fails).select_seq("row", text=_REASON))
    unusable = entries.filter(pl.col("phrases").list.len() == 0)
    problem = by_row.join(unusable.select_seq("row", text=pl.lit("ValueError: ") + _PROBLEM))
    error = pl.when("broken").then(pl.lit("ValueError: ") + pl.col("why"))
    unread = pl.lit(UNREAD) + pl.col("slip")
    silent = pl.concat_str(pl.lit(SILENT), unread, separator="; ", ignore_nulls=True)
    results = {"total": total, "failed": failed, "reason": reason, "problem": problem, "why": broken, "slip": slip}
    return (
        pl.DataFrame(results)
        .with_columns_seq(broken=pl.col("why").is_not_null())
        .select_seq(
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
    hits = _hits(texts, entries["phrases"].list.explode(empty_as_null=False), repeated(entries["row"], sizes))
    any_hit = segment_sums(hits, sizes) > 0
    return (any_hit == entries["forbid"]) | (sizes == 0)


def _hits(texts: pl.Series, phrases: pl.Series, row: pl.Series) -> pl.Series:
    """Return whether each phrase occurs in the text of its row, both in lower case.

    An ASCII phrase matches only ASCII letters, so lowering bytes suffices for it, unless the text has one of the few code points
    beyond ASCII whose lower case is ASCII.
    """
    at = row.rle_id()  # index among the texts with phrases: others are not lowered
    texts = texts.gather(row.rle().struct.field("value"))
    # a few texts at a time, as `in_slices` does with rows
    starts = range(0, len(texts), max(1, THRESHOLDS.slice))
    edges = [*at.search_sorted(pl.Series(starts, dtype=at.dtype)).to_list(), len(at)]
    hits = []
    for start, first, last in zip(starts, edges, edges[1:], strict=False):
        wanted = phrases.slice(first, last - first)
        other, which = ~is_ascii(wanted), at.slice(first, last - first) - start
        some = texts.slice(start, starts.step)
        exact = some.str.contains(ASCII_ALIKE)
        lowered = lower_rows(some, exact.scatter(which.filter(other).unique(), values=True) if other.any() else exact)
        hits.append(contains_column(lowered.gather(which), lower_rows(wanted, other)).fill_null(value=False))
    return pl.concat(hits)


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
        joined = in_lists(texts["text"], sizes).list.join(JOINT)
        return pl.DataFrame().select_seq(pl.when(sizes > 0).then(joined)).to_series()


def _entries_of_text(metadata: pl.Series) -> tuple[pl.DataFrame, pl.Series, pl.Series]:
    """Return the entries of JSON texts, the problem of each row, and its slip; Python parses each distinct shape once."""
    texts, which = encoded(metadata.cast(pl.String))
    shapes = shapes_of(texts)
    layout, which_layout = encoded(shapes.layout)
    layouts = _read_layouts(layout.to_list(), len(shapes.values))
    values = pl.concat([shapes.values, layouts.values])
    # the entries of each text, from those of its layout
    size = layouts.readings["size"].gather(which_layout)
    entries = layouts.entries[ranges(layouts.readings["end"].gather(which_layout), size)]
    base = repeated(shapes.start, size)
    phrases = layouts.phrases.gather(ranges(entries["end"], entries["count"])) + repeated(base, entries["count"])
    flat = entries.select_seq("where", "forbid", message=values.gather(entries["message"] + base)).insert_column(
        2, in_lists(values.gather(phrases), entries["count"]).alias("phrases")
    )
    # the entries of each row, from those of its text
    end, size = size.cum_sum().gather(which).fill_null(0), size.gather(which).fill_null(0)
    row = repeated(pl.int_range(len(which), dtype=pl.UInt32, eager=True), size)
    broken, slip = (layouts.readings[name].gather(which_layout).gather(which) for name in ("broken", "slip"))
    return flat[ranges(end, size)].insert_column(0, row.alias("row")), broken, slip


class _Layouts(NamedTuple):
    """What Python read.

    Attributes:
        readings: One row per layout: the ``size`` of its part of ``entries`` and where it ``end``s, the problem and the slip.
        entries: The entries; ``message`` and ``phrases`` are positions among the values of the text.
        phrases: The positions of all phrases: ``count`` for each entry, up to ``end``.
        values: Strings of texts that have no shape; they follow the values of all shapes.
    """

    readings: pl.DataFrame
    entries: pl.DataFrame
    phrases: pl.Series
    values: pl.Series


def _read_layouts(layouts: list[str], known: int) -> _Layouts:
    """Read layouts: shapes, and texts that have none, whose strings are new values after the ``known`` ones."""
    entries: list[tuple[str, bool, int | None, int]] = []
    readings: list[tuple[int, str | None, str | None]] = []
    phrases: list[int] = []
    values: list[str] = []

    def new(value: str) -> int:
        values.append(value)
        return known + len(values) - 1

    for layout in layouts:
        text = text_without_shape(layout)
        reading, place = (read(filled(layout)), int) if text is None else (read(text), new)
        readings.append((len(reading.entries), reading.problem, reading.slip))
        for entry in reading.entries:
            message = None if entry.message is None else place(entry.message)
            entries.append((entry.where, entry.forbid, message, len(entry.phrases)))
            phrases += map(place, entry.phrases)
    frame = pl.DataFrame(entries, schema=_LAYOUT_ENTRY, orient="row")
    table = pl.DataFrame(readings, schema=_LAYOUT, orient="row")
    return _Layouts(
        table.with_columns_seq(end=pl.col("size").cum_sum()),
        frame.with_columns_seq(end=pl.col("count").cum_sum()),
        pl.Series(phrases, dtype=pl.Int64),
        pl.Series(values, dtype=pl.String),
    )


def _flatten(lists: pl.Series, counts: pl.Series) -> tuple[pl.Series, pl.Series, pl.Series]:
    """Return row, value and position of every element of a list column, for the rows in ``counts``."""
    sizes = lists.list.len().fill_null(0)
    nonempty = (sizes > 0) & counts
    rows = pl.int_range(len(lists), dtype=pl.UInt32, eager=True).filter(nonempty)
    lengths = sizes.filter(nonempty)
    position = (
        pl.DataFrame().select_seq(pl.int_ranges(0, lengths, dtype=pl.UInt32).explode()).to_series()
        if len(lengths)
        else lengths.cast(pl.UInt32)
    )
    return repeated(rows, lengths), lists.filter(nonempty).explode(), position


def _fields(series: pl.Series, *names: str) -> list[pl.Series]:
    """Return the fields of a struct column with these names, except those of type Null."""
    fields = _all_fields(series)
    return [fields[name] for name in names if name in fields]


def _all_fields(series: pl.Series) -> dict[str, pl.Series]:
    """Return the fields of a struct column by their names, except those of type Null."""
    fields = series.struct.unnest() if isinstance(series.dtype, pl.Struct) else ()
    # NOTE: methods of a series named "^y$" take its name as a pattern
    return {field.name: field.alias("field") for field in fields if field.dtype != pl.Null}


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
                    broken = pl.DataFrame().select_seq(pl.coalesce(broken, problem)).to_series()
    entries = pl.concat(frames).sort("row", maintain_order=True)
    return entries.filter(broken.gather(entries["row"]).is_null()), broken, _slips(metadata)


def _slips(metadata: pl.Series) -> pl.Series:
    """Return the slip of each row of a struct column."""
    nothing = pl.repeat(None, len(metadata), dtype=pl.String, eager=True)
    expectations = next(iter(_fields(metadata, "expectations")), nothing)
    slips = [(field.is_not_null(), unread_side(name)) for name, field in _all_fields(expectations).items()]
    missing = expectations.is_null()
    slips += [(field.is_not_null() & missing, unread_field(name)) for name, field in _all_fields(metadata).items()]
    first = pl.coalesce(nothing, *(pl.when(rows).then(pl.lit(slip)) for rows, slip in slips if slip is not None))
    return pl.DataFrame().select_seq(first).to_series()


def _text_where(rows: pl.Series, message: str) -> pl.Series:
    return pl.DataFrame().select_seq(pl.when(rows).then(pl.lit(message))).to_series()


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
    entries = pl.DataFrame(columns).select_seq(
        pl.col("row").cast(pl.UInt32),
        where="position",
        forbid=pl.lit(forbid),
        phrases=usable if unusable is None else pl.when(unusable).then(nothing).otherwise(usable),
        message="message",
    )
    # only entries without a phrase need their path as text
    index = pl.when(pl.col("phrases").list.len() == 0).then("where")
    return entries.with_columns_seq(where=rowwise(index, lambda at: f"{name}[{at}]", pl.String))


class TaskExpectations(Check):
    """The share of the task's ``metadata.expectations`` that the output meets; 1.0 when there are none.

    ``mustMention`` entries fail when none of their phrases occurs, ``mustNotMention`` entries when any does
    (case-insensitive substrings). An entry without a usable phrase fails and fills ``error``.
    """

    type = "task_expectations"
    words = ("meets the task's expectations", "")
    graded = True
    traits = Traits(reads=(METADATA,), separator=JOINT)
    examples = (
        Example(
            "You get your Money Back.",
            1.0,
            metadata={"expectations": {"mustMention": [{"anyOf": ["refund", "money back"]}]}},
        ),
        Example(
            "Here is a gift card.",
            0.5,
            metadata={"expectations": {"mustMention": [{"text": "card"}], "mustNotMention": [{"text": "gift"}]}},
        ),
        Example("anything", 1.0),
        Example("anything", 0.0, metadata={"expectations": [{"anyOf": []}]}),
    )

    def row(self, row: Row) -> float:
        return grade(row[METADATA], row["completion"]).score

    def reason(self, row: Row) -> str:
        return grade(row[METADATA], row["completion"]).reason

    def error(self, row: Row) -> str | None:
        return grade(row[METADATA], row["completion"]).error

    def columns(self) -> Columns:
        grades = EXPECTATIONS.col
        return Columns.of(grades, remark=grades.struct.field("remark"))

    def explain(self) -> str:
        return "columns: one column-to-column search over all phrases of a batch; Python parses each layout of JSON text once"
