"""The check for phrases that a task expects or forbids: they are read from ``metadata``, and graded.

``grade`` is the definition. In columns, one column-to-column search looks for all phrases of a batch, whatever the number of tasks.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import polars as pl

from assay.checks.base import Check, Columns, Example, Row, Traits
from assay.checks.plain_expectations import is_usual, usual_entries
from assay.errors import closest, did_you_mean, encodable
from assay.expressions.json import NOT_JSON, loads, mended
from assay.expressions.shared_columns import (
    SharedColumn,
    encoded,
    in_lists,
    is_small,
    nulls,
    plain,
    ranges,
    repeated,
    segment_sums,
    text,
)
from assay.expressions.text import ASCII_ALIKE, contains_column, is_ascii, lower, lower_rows
from assay.frozen import frozen
from assay.system.cache import cached_within
from assay.system.memory import uncollected
from assay.thresholds import THRESHOLDS

METADATA = "metadata"
_SEPARATOR = "; "
"""Separator of the reasons of one row."""
SIDES = (("mustMention", "must_mention", False), ("mustNotMention", "must_not_mention", True))
_SPELLINGS = dict.fromkeys(spelling for side in SIDES for spelling in side[:2]).keys()
_ANY_OF = ("anyOf", "any_of")
_FIELD = "expectations"
_SHOWN = 60
_NAMES_BYTES = 500_000
"""Size of the cache of remarks on field names, in bytes."""
_READINGS_BYTES = 64_000_000
"""Size of the cache of parsed JSON texts in bytes: some 40,000 texts."""


class Entry(NamedTuple):
    """One expectation.

    Attributes:
        where: The entry's path, such as ``mustMention[0]``.
        forbid: Whether the phrases must not occur.
        phrases: Alternatives; empty if the entry has no usable phrase.
        message: The author's text for the failure reason, if any.
    """

    where: str
    forbid: bool
    phrases: tuple[str, ...]
    message: str | None

    @property
    def problem(self) -> str:
        """Why the entry cannot be graded, or ``""``."""
        return "" if self.phrases else f"{self.where}{_NO_PHRASE}"

    @property
    def reason(self) -> str:
        """The reason for the feedback if the entry fails."""
        default = (_FORBID if self.forbid else _MENTION) + ", ".join(self.phrases)
        return self.message or self.problem or default

    @property
    def error(self) -> str | None:
        return f"ValueError: {self.problem}" if self.problem else None

    def fails(self, lowered: str) -> bool:
        """Return whether a lower-cased text fails the entry."""
        return not self.phrases or any(lower(phrase) in lowered for phrase in self.phrases) == self.forbid


_NO_PHRASE = " has no usable phrase: give anyOf (a list of strings) or text"
_MENTION = "must mention one of: "
_FORBID = "must not mention: "
_NO_METADATA = "metadata is not a JSON object"
_NO_EXPECTATIONS = "metadata.expectations is neither an object nor a list"
_SILENT = "no expectations, so the score is 1.0"
_UNREAD = "unknown key "


@frozen
class Grade:
    """The grade of one row.

    Attributes:
        score: Share of the entries that are met, in [0, 1].
        reason: Reasons of the failed entries, joined by ``"; "``.
        error: What could not be graded; None if everything could.
        remark: A note for the author of the task: there are no expectations, or a key is probably misspelt.
    """

    score: float
    reason: str
    error: str | None
    remark: str | None = None


def _first(mapping: dict[str, Any], name: str, other: str) -> Any:
    value = mapping.get(name)
    return mapping.get(other) if value is None else value


def _read_entry(value: Any, where: str, *, forbid: bool) -> Entry:
    fields = value if isinstance(value, dict) else {}
    any_of, message = _first(fields, *_ANY_OF), fields.get("message")
    phrases = [phrase for phrase in any_of if phrase is not None] if isinstance(any_of, list) else []
    if not phrases and isinstance(any_of, list | None):
        phrases = [fields.get("text")]
    return Entry(where, forbid, _usable(phrases), mended(message) if isinstance(message, str) else None)


def _usable(phrases: list[Any]) -> tuple[str, ...]:
    try:
        plain = "".join(phrases).isascii()
    except TypeError:  # not all items are strings
        return ()
    return tuple(phrases if plain else map(mended, phrases))


def _entries_of(metadata: Any) -> list[Entry]:
    """Return the entries of parsed metadata, mustMention before mustNotMention; a null field counts as absent."""
    if metadata is NOT_JSON or not isinstance(metadata, dict | None):
        raise ValueError(_NO_METADATA)
    expectations = (metadata or {}).get(_FIELD)
    if isinstance(expectations, list):
        expectations = {"mustMention": expectations}
    if not isinstance(expectations, dict | None):
        raise ValueError(_NO_EXPECTATIONS)
    entries: list[Entry] = []
    for name, snake, forbid in SIDES:
        listed = _first(expectations or {}, name, snake)
        if not isinstance(listed, list | None):
            raise ValueError(f"metadata.expectations.{name} is not a list")
        entries += [_read_entry(value, f"{name}[{at}]", forbid=forbid) for at, value in enumerate(listed or [])]
    return entries


@cached_within(_NAMES_BYTES, lambda _, name: 8 * len(name))
def unread_field(name: str) -> str | None:
    """Return a remark on a metadata field of a row without expectations, if it looks like a misspelling; else None."""
    if name == _FIELD or not closest(name, [_FIELD]):
        return None
    return encodable(f"`{METADATA}.{name}`. {did_you_mean(name, [_FIELD])}")


@cached_within(_NAMES_BYTES, lambda _, name: 8 * len(name))
def unread_side(name: str) -> str | None:
    """Return a remark on an unknown field of the expectations; None if the field is known."""
    if name in _SPELLINGS:
        return None
    return encodable(f"`{METADATA}.{_FIELD}.{name[:_SHOWN]}`. {did_you_mean(name, _SPELLINGS)}".rstrip())


def _slip_of(metadata: Any) -> str | None:
    """Return a remark on the first key of a row's metadata that is probably misspelt."""
    fields = metadata if isinstance(metadata, dict) else {}
    expectations = fields.get(_FIELD)
    remarks: Iterable[str | None] = ()
    if isinstance(expectations, dict):
        if expectations.keys() <= _SPELLINGS:
            return None
        remarks = (unread_side(name) for name, value in expectations.items() if value is not None)
    elif expectations is None:
        remarks = (unread_field(name) for name, value in fields.items() if value is not None)
    return next(filter(None, remarks), None)


class ParsedExpectations(NamedTuple):
    """The parsed expectations of a row.

    Attributes:
        entries: mustMention before mustNotMention; empty if there are none, or a problem.
        problem: Why the metadata cannot be parsed; None if it can.
        slip: A remark on the first key that is probably misspelt.
    """

    entries: tuple[Entry, ...]
    problem: str | None
    slip: str | None


def read(metadata: Any) -> ParsedExpectations:
    """Parse a row's metadata: a mapping, its JSON text, or None."""
    if isinstance(metadata, str):
        return _read_cached(metadata) if len(metadata) <= THRESHOLDS.known_metadata else _read(loads(metadata))
    return _read(metadata)


# every batch, in every thread, repeats the same tasks
@cached_within(
    _READINGS_BYTES,
    # some 400 bytes per entry, and 60 plus its characters per phrase
    lambda reading, text: 400 + sum(400 + 60 * len(entry.phrases) for entry in reading.entries) + 8 * len(text),
)
def _read_cached(text: str) -> ParsedExpectations:
    return _read(loads(text))


def _read(metadata: Any) -> ParsedExpectations:
    slip = _slip_of(metadata)
    try:
        return ParsedExpectations(tuple(_entries_of(metadata)), None, slip)
    except ValueError as error:
        return ParsedExpectations((), str(error), slip)


def grade(metadata: Any, completion: str) -> Grade:
    """Grade a completion: ``(total - failures) / total`` over all entries, 1.0 if there are none."""
    entries, problem, slip = read(metadata)
    if problem is not None:
        error = f"ValueError: {problem}"
        return Grade(0.0, error, error)
    lowered = lower(completion)
    failed = [entry for entry in entries if entry.fails(lowered)]
    problems = [entry.error for entry in entries if entry.error]
    score = (len(entries) - len(failed)) / len(entries) if entries else 1.0
    remarks = ([] if entries else [_SILENT]) + ([] if slip is None else [_UNREAD + slip])
    remark = "; ".join(remarks) or None
    return Grade(score, _SEPARATOR.join(entry.reason for entry in failed), _SEPARATOR.join(problems) or None, remark)


_GRADE = pl.Struct({"score": pl.Float64, "reason": pl.String, "error": pl.String, "remark": pl.String})


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
    with uncollected():
        entries, faults = _read_all(metadata)
    fails = _failures(entries, texts)
    failures = entries.filter(fails).with_columns_seq(reason=_REASON)
    total, failed = _counts(entries["row"], height), _counts(failures["row"], height)
    reason = _joined(failures, "reason", height)
    problem = _joined(entries.filter(pl.col("error").is_not_null()), "error", height)
    broken = pl.col("why").is_not_null()
    error = pl.when(broken).then(pl.lit("ValueError: ") + pl.col("why"))
    unread = pl.lit(_UNREAD) + pl.col("slip")
    silent = pl.concat_str(pl.lit(_SILENT), unread, separator="; ", ignore_nulls=True)
    results = faults.with_columns_seq(total=total, failed=failed, reason=reason, problem=problem).select_seq(
        # divide by a column: dividing by a literal rounds differently
        score=pl.when(broken).then(0.0).when(total == 0).then(1.0).otherwise((total - failed) / total),
        reason=pl.coalesce(error, "reason").fill_null(""),
        error=pl.coalesce(error, "problem"),
        remark=pl.when(~broken).then(pl.when(total == 0).then(silent).otherwise(unread)),
    )
    return results.to_struct(texts.name).cast(_GRADE)


_REASON = pl.coalesce(
    "note",
    pl.when("forbid").then(pl.lit(_FORBID)).otherwise(pl.lit(_MENTION)) + pl.col("phrases").list.join(", "),
)
"""``Entry.reason`` as an expression; the note is the author's message, or else the problem."""


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


def _counts(row: pl.Series, height: int) -> pl.Series:
    """Return how many flat values each row has; they are in row order."""
    # positions of the row starts in the sorted flat rows, by binary search
    edges = row.search_sorted(pl.int_range(height + 1, dtype=pl.UInt32, eager=True), side="left").cast(pl.Int64)
    return edges.slice(1) - edges.slice(0, height)


def _joined(entries: pl.DataFrame, column: str, height: int) -> pl.Series:
    """Join the texts of each row; null for rows without any."""
    sizes = _counts(entries["row"], height)
    joined = in_lists(entries[column], sizes).list.join(_SEPARATOR)
    return pl.DataFrame().select_seq(pl.when(sizes > 0).then(joined)).to_series()


def _read_all(metadata: pl.Series) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the entries of each row, and its problem and its slip; each distinct text is read once."""
    texts = metadata.cast(pl.String) if metadata.dtype != pl.Struct else _as_text(metadata)
    if texts is None:
        values, which = metadata, pl.int_range(len(metadata), dtype=pl.UInt32, eager=True)
        usual = pl.repeat(value=False, n=len(metadata), eager=True)
    else:
        values, which = encoded(texts)
        usual = is_usual(values)
    others = (~usual).arg_true()
    readings = [*map(read, values.gather(others).to_list())]
    entries = _entries_of_readings(readings, others)
    if usual.any():
        in_columns = usual_entries(values.filter(usual))
        in_columns = in_columns.with_columns_seq(usual.arg_true().gather(in_columns["at"]).alias("at"))
        entries = pl.concat([in_columns, entries], how="diagonal")
        entries = entries.sort("at", maintain_order=True) if len(others) else entries
    why, slip = (
        nulls(values, pl.String).scatter(others, pl.Series([reading[at] for reading in readings], dtype=pl.String))
        for at in (1, 2)
    )
    faults = pl.DataFrame({"why": why.gather(which), "slip": slip.gather(which)})
    if len(values) == len(which):  # in the order of the rows
        return entries.rename({"at": "row"}), faults
    sizes = _counts(entries["at"], len(values))
    ends, sizes = sizes.cum_sum().gather(which).fill_null(0), sizes.gather(which).fill_null(0)
    row = repeated(pl.int_range(len(which), dtype=pl.UInt32, eager=True), sizes)
    return entries.drop("at")[ranges(ends, sizes)].with_columns_seq(row.alias("row")), faults


def _entries_of_readings(readings: Sequence[ParsedExpectations], at: pl.Series) -> pl.DataFrame:
    """Return the entries that Python read, of the texts at some positions."""
    found = [entry for reading in readings for entry in reading.entries]
    return pl.DataFrame(  # by columns, which takes a third of the time of rows
        {
            "at": repeated(at, pl.Series([len(reading.entries) for reading in readings], dtype=pl.Int64)),
            "forbid": pl.Series([entry.forbid for entry in found], dtype=pl.Boolean),
            "phrases": in_lists(
                pl.Series([phrase for entry in found for phrase in entry.phrases], dtype=pl.String),
                pl.Series([len(entry.phrases) for entry in found], dtype=pl.Int64),
            ),
            "note": pl.Series([entry.message or entry.problem or None for entry in found], dtype=pl.String),
            "error": pl.Series([entry.error for entry in found], dtype=pl.String),
        }
    )


def _as_text(metadata: pl.Series) -> pl.Series | None:
    """Return structs as JSON text with what is read of them; None if it would change a value."""
    # NOTE: methods of a series named "^y$" take its name as a pattern
    fields = {field.name: field.alias("field") for field in metadata.struct.unnest()}
    if "expectations" in fields and not _is_plain(fields["expectations"].dtype):
        return None
    for name in fields.keys() - {"expectations"}:
        present = fields[name].is_not_null()
        fields[name] = present.set(~present, None)
    if not fields:
        return pl.repeat(None, len(metadata), dtype=pl.String, eager=True)
    return pl.DataFrame(fields).to_struct().struct.json_encode()


def _is_plain(dtype: Any) -> bool:
    """Whether JSON has the values of a type as they are: NaN would be null, and a date a text."""
    if isinstance(dtype, pl.Struct):
        return all(_is_plain(field.dtype) for field in dtype.fields)
    if isinstance(dtype, pl.List):
        return _is_plain(dtype.inner)
    return dtype in (pl.String, pl.Boolean, pl.Null) or (dtype.is_integer() and dtype not in (pl.Int128, pl.UInt128))


class TaskExpectations(Check):
    """The share of the task's ``metadata.expectations`` that the output meets; 1.0 when there are none.

    ``mustMention`` entries fail when none of their phrases occurs, ``mustNotMention`` entries when any does
    (case-insensitive substrings). An entry without a usable phrase fails and fills ``error``.
    """

    type = "task_expectations"
    words = ("meets the task's expectations", "")
    graded = True
    traits = Traits(reads=(METADATA,), separator=_SEPARATOR)
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
        return (
            "columns: one column-to-column search over all phrases of a batch; metadata of the usual form is read in columns, "
            "Python reads each distinct other one once"
        )
