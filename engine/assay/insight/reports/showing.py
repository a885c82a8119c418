"""Rows of a result for a person to look at: chosen, sorted, and each with what its checks say about its text.

What checks read is found anew from their canonical forms in the provenance, for Assay's own types only: nothing is imported, and nothing
is scored again.
"""

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
from polars.exceptions import ColumnNotFoundError, PanicException, PolarsError

from assay.checks.expectations import METADATA
from assay.errors import UsageError, counted, did_you_mean, listed
from assay.expressions.json import loads
from assay.expressions.mixed import untyped
from assay.expressions.readable import readable
from assay.expressions.shared_columns import exactly
from assay.frozen import frozen
from assay.insight import stats
from assay.insight.evidence.evidence import CheckEvidence, evidence_of, source_of
from assay.insight.evidence.reader import CheckReader, readers_of
from assay.insight.originals import HOW, originals, some_rows
from assay.insight.probes import GOLDS
from assay.insight.reports.document import cards_document
from assay.insight.results import ROW, Result, labelled_lines, open_result
from assay.loading.formats.files import first_line
from assay.names import COMPLETION, HIDDEN, TEXT
from assay.options import ShowOptions, documented
from assay.values.arguments import RAW
from assay.values.references import gold_text
from assay.writing.documents import Document
from assay.writing.notebooks import Displayed

_KEYS = ("rollout_id", "sample_idx", "id")
_VERDICTS = ("reward", "passed", "feedback", "error")
_LONGEST_WHERE = 2_000


@frozen
class Verdict:
    """What became of one check on a row.

    Attributes:
        check: Name of the check.
        score: Its score; None where it did not run.
        passes: Whether the score is 1.0; None where it did not run.
        feedback: Its line of feedback, or ``""``.
        error: Its line of errors, or ``""``.
        title: What its spec calls it for people, or ``""``.
        evidence: What it reads, and where; None for groups, for types that are not Assay's, and where the text cannot be had.
    """

    check: str
    score: float | None
    passes: bool | None
    feedback: str = ""
    error: str = ""
    title: str = ""
    evidence: CheckEvidence | None = None

    def as_json(self) -> dict[str, Any]:
        """Return JSON data."""
        evidence = None if self.evidence is None else self.evidence.as_json()
        known = evidence and {
            name: value for name, value in evidence.items() if name not in ("check", "score", "passes")
        }
        return {**vars(self), "evidence": known}


@dataclass(frozen=True)
class Card:
    """One row.

    Attributes:
        row: Its number, from 0.
        key: Columns that tell which row it is.
        state: ``pass``, ``fail`` or ``unscored``; ``scored`` where the result has no column ``passed``.
        reward: Its reward.
        checks: What became of each check.
        feedback: Lines of feedback of no known check.
        error: Lines of errors of no known check.
        gold: What the row's answer is compared with, by where it comes from.
        text: The scored text; None if it is null, or cannot be had.
        sources: The other texts that checks read, by their names.
    """

    row: int
    key: dict[str, Any]
    state: str
    reward: float | None
    checks: tuple[Verdict, ...]
    feedback: tuple[str, ...]
    error: tuple[str, ...]
    gold: dict[str, str]
    text: str | None
    sources: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        """Return JSON data."""
        data = {name: getattr(self, name) for name in ("row", "key", "state", "reward")}
        data |= {"checks": [verdict.as_json() for verdict in self.checks]}
        data |= {name: list(getattr(self, name)) for name in ("feedback", "error")}
        return data | {"gold": self.gold, "text": self.text, "sources": dict(self.sources)}


@dataclass(frozen=True, repr=False)
class Cards(Displayed):
    """Rows of a result.

    Attributes:
        name: The result.
        rows: Rows of the result.
        matching: Rows that the filters keep.
        cards: The rows to look at.
        notes: What the user should know.
    """

    name: str
    rows: int
    matching: int
    cards: tuple[Card, ...]
    notes: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """How many rows there are to look at, of how many."""
        of = f" of {self.matching:,} that match" if self.matching != self.rows else ""
        return f"{counted(len(self.cards), 'row')}{of}; {self.name} has {self.rows:,}"

    def _document(self) -> Document:
        return cards_document(self.headline, self.as_json())

    def as_json(self) -> dict[str, Any]:
        """Return JSON data."""
        cards = [card.as_json() for card in self.cards]
        return {"insight": 1, "rows": self.rows, "matching": self.matching, "cards": cards, "notes": list(self.notes)}


@documented(ShowOptions)
def show(
    result: Any,
    *,
    failed: Sequence[str] = (),
    passed: Sequence[str] = (),
    where: Sequence[str] = (),
    sort: Sequence[str] = (),
    limit: int = 10,
    random: int | None = None,
    row: Sequence[int] = (),
    columns: Sequence[str] = (),
    rollouts: Any = None,
) -> Cards:
    """Return rows of a result to look at, each with its checks, feedback, gold, and the text with what the checks look for.

    Args:
        result: A parquet file of ``assay score``, a folder of parts, or a Polars frame with ``reward``.
        options: Those of ``assay.options.ShowOptions``, as the signature lists them.

    Raises:
        InputError: The result cannot be read, or the rollouts are others.
        UsageError: An option cannot be used.

    Example:
        >>> import assay
        >>> frame = assay.score([{"completion": "no"}], {"checks": [{"type": "contains", "value": "refund"}]})
        >>> assay.show(frame, failed=["contains"]).cards[0].checks[0].feedback
        'does not contain "refund"'
    """
    opened = open_result(result)
    notes = list(opened.notes)
    filters: dict[str, Sequence[Any]] = {"failed": failed, "passed": passed, "where": where, "row": row}
    matching, chosen = chosen_rows(opened, notes, sort=sort, limit=limit, random=random, **filters)
    cards, note, _ = cards_of(opened, chosen, columns, rollouts)
    return Cards(opened.name, opened.rows, matching, tuple(cards), (*notes, *([note] if note else [])))


def chosen_rows(
    result: Result,
    notes: list[str],
    *,
    failed: Sequence[str] = (),
    passed: Sequence[str] = (),
    where: Sequence[str] = (),
    row: Sequence[int] = (),
    sort: Sequence[str] = (),
    limit: int = 10,
    random: int | None = None,
) -> tuple[int, list[int]]:
    """Return how many rows the arguments of ``show`` keep, and the numbers of those to look at; ``notes`` gets what the user should know."""
    kept = _filters(result, failed, passed, where, row, notes)
    frame = result.numbered.filter(*kept) if kept else result.numbered
    if random is None:
        matching = int(result.collect(frame.select(pl.len())).item()) if kept else result.rows
        return matching, _sorted(result, frame, sort, limit)
    rows = result.collect(frame.select(ROW))
    draws = stats.splitmix64(random, 0, result.rows).gather(rows[ROW])
    drawn = rows.with_columns(draws.alias("draw")).sort("draw", ROW)[ROW].head(limit).sort()
    frame = result.numbered.filter(pl.col(ROW).is_in(drawn.implode()))
    return rows.height, _sorted(result, frame, sort, limit) if sort else drawn.to_list()


def _filters(
    result: Result,
    failed: Sequence[str],
    passed: Sequence[str],
    where: Sequence[str],
    rows: Sequence[int],
    notes: list[str],
) -> list[pl.Expr]:
    if beyond := [row for row in rows if not 0 <= row < result.rows]:
        raise UsageError(f"--row {beyond[0]}: {result.name} has the rows 0 to {result.rows - 1:,}.")
    scores = [
        (exactly(result.check(name).column).cast(pl.Float64), is_pass)
        for names, is_pass in ((failed, False), (passed, True))
        for name in names
    ]
    kept = [score == 1.0 if is_pass else score != 1.0 for score, is_pass in scores]
    kept += [pl.col(ROW).is_in(pl.Series(sorted({*rows}), dtype=pl.UInt32).implode())] if rows else []
    return kept + [condition(result, text, notes) for text in where]


_TOKENS = re.compile(
    r"""(?P<comment>--|/\*)|(?P<text>'(?:[^']|'')*')|(?P<name>"(?:[^"]|"")*")|`[^`]*`|(?P<word>[^\W\d]\w*)"""
)
_QUERIES = ("select", "with", "table", "values")


def condition(result: Result, text: str, notes: list[str]) -> pl.Expr:
    """Return an SQL expression over the columns as a condition, and note what is taken otherwise than it is written."""

    def refused(why: str, hint: str = "") -> UsageError:
        shown = text if len(text) <= 200 else f"{text[:200]}…"  # noqa: PLR2004
        columns = f"Columns: {listed(list(result.schema))}"
        return UsageError(f"--where {shown}: {why}.", f"{hint}\n{columns}" if hint else columns)

    def token(match: re.Match[str]) -> str:
        if match["comment"] or (match["word"] or "").lower() in _QUERIES:
            raise refused(f"`{match.group()}` is not part of an expression over the columns")
        name = match["name"]
        own = name and name[1:-1].replace('""', '"')
        if not name or own in result.schema:
            return match.group()
        notes.append(f"--where: {name} is taken as a text, for no column is called so")
        return "'" + str(own).replace("'", "''") + "'"

    if len(text) > _LONGEST_WHERE:
        raise refused("is too long")
    if re.search(r"\(\s*from\b", re.sub("'[^']*'", "", text), re.IGNORECASE):
        raise refused("queries are not part of an expression over the columns")
    try:
        kept = pl.sql_expr(_TOKENS.sub(token, text))
        names = [name for name in kept.meta.root_names() if name not in result.schema]
        if names:
            as_text = f"A text stands in quotes: '{names[0]}'"
            raise refused(f"no column is called `{names[0]}`", did_you_mean(names[0], result.schema) or as_text)
        dtype = pl.LazyFrame(schema=result.schema).select(kept.alias("kept")).collect().schema["kept"]
    except (PolarsError, PanicException, ColumnNotFoundError) as error:
        raise refused(first_line(error), _mended(text, result.schema)) from None
    if dtype not in (pl.Boolean, pl.Null):
        raise refused(f"is {dtype}, not a condition")
    return kept


_COMPARED = re.compile(
    r"""(?P<name>"[^"]+"|[^\W\d]\w*)\s*(?P<operator>=|==|!=|<>|<=?|>=?)\s*(?P<value>-?\d+(?:\.\d+)?|'[^']*'|"[^"]*")"""
)
_OPERATORS = {"&&": "and", "||": "or", "=>": ">=", "=<": "<=", "===": "="}


def _mended(text: str, schema: pl.Schema) -> str:
    for compared in _COMPARED.finditer(text):
        name, operator, value = compared["name"].strip('"'), compared["operator"], compared["value"]
        is_number, dtype = value[0] not in "'\"", schema.get(name)
        if dtype == pl.String and is_number:
            as_number = f"cast({compared['name']} as double) {operator} {value}"
            return f"`{name}` is a text: write {compared['name']} {operator} '{value}', or {as_number} for numbers"
        if dtype is not None and dtype.is_numeric() and not is_number:
            return f"`{name}` is a number: write {compared['name']} {operator} {value[1:-1]}"
    used = next((operator for operator in _OPERATORS if operator in text), None)
    return "" if used is None else f"Write {_OPERATORS[used]} in place of {used}"


def _sorted(result: Result, frame: pl.LazyFrame, sort: Sequence[str], limit: int) -> list[int]:
    by = [name.removeprefix("-") if name not in result.schema else name for name in sort]
    for name in by:
        if name not in result.schema:
            hint = did_you_mean(name, result.schema) or f"Columns: {listed(list(result.schema))}"
            raise UsageError(f"--sort {name}: {result.name} has no such column.", hint)
    if by:
        largest = [name not in result.schema for name in sort]
        keys = [*map(exactly, by), pl.col(ROW)]
        frame = frame.select(pl.col(ROW), *(exactly(name) for name in dict.fromkeys(by)))
        frame = frame.sort(keys, descending=[*largest, False], nulls_last=True)
    return list(result.collect(frame.select(ROW).head(limit))[ROW])


def cards_of(
    result: Result,
    rows: Sequence[int],
    columns: Sequence[str] = (),
    rollouts: Any = None,
    also: Sequence[str] = (),
    *,
    text: bool = True,
) -> tuple[Iterator[Card], str, Mapping[int, Mapping[str, Any]]]:
    """Return rows as cards, in the order of their numbers given; a note if there are no texts, or ``""``; and their rollouts.

    All is read at once, but each card is made when it is asked for: what its checks read is most of the work.
    Of a rollout that is what cards need, and the columns ``also``, as far as they are where the texts are. Without ``text``, cards have
    neither texts nor evidence, which is found in them.
    """
    keys = result.columns(columns, "--columns") or keys_of(result)
    readers = readers_of(result.forms if result.verifiers else ())
    read = [name for reader in readers.values() for name in reader.columns]
    wanted = tuple(dict.fromkeys((*GOLDS, *read, *also)))
    texts, why = originals(result, rows, wanted, rollouts)
    if rollouts is None and COMPLETION in result.schema and any(name not in result.schema for name in read):
        others, lack = originals(result, rows, wanted, kept=False)
        texts = texts if lack else others
    names = dict.fromkeys((*_VERDICTS, *keys, *GOLDS, *(check.column for check in result.checks)))
    frame = _fetched(result, rows, [name for name in names if name in result.schema])
    texts = texts if text else texts.drop(TEXT, COMPLETION, strict=False)
    rollouts_of = {row[ROW]: row for row in texts.iter_rows(named=True)}
    verdicts_of = {row[ROW]: row for row in frame.iter_rows(named=True)}
    cards = (_card(result, verdicts_of[number], rollouts_of.get(number, {}), keys, readers) for number in rows)
    return cards, f"no texts: {why}; {HOW}" if why else "", rollouts_of


def keys_of(result: Result) -> tuple[str, ...]:
    """Return the columns that tell people which row it is."""
    names = (*result.groups(result.tasks()), *(name for name in _KEYS if name in result.schema))
    return tuple(dict.fromkeys(names))


def _fetched(result: Result, rows: Sequence[int], names: Sequence[str]) -> pl.DataFrame:
    values = (readable(exactly(name), result.schema[name], as_text=True)[0].alias(name) for name in names)
    return some_rows(result, rows, [*values, result.state.alias(HIDDEN + "state")])


def _card(
    result: Result,
    values: dict[str, Any],
    rollout: Mapping[str, Any],
    keys: Sequence[str],
    readers: Mapping[tuple[str, str], CheckReader],
) -> Card:
    text = rollout.get(TEXT)
    row = {**rollout, RAW: rollout.get(COMPLETION, text), COMPLETION: text}
    lines = {name: labelled_lines(values.get(name), result.labels) for name in ("feedback", "error")}
    checks = []
    for check in result.checks:
        feedback, error = (
            "\n".join(line for name, line in lines[column] if name == check.name) for column in ("feedback", "error")
        )
        score = None if values[check.column] is None else float(values[check.column])
        reader = None if text is None else readers.get((check.verifier, check.id))
        seen = None if reader is None else _evidence(check.name, reader, row, score, error)
        passes = None if score is None else score == 1.0
        checks.append(Verdict(check.name, score, passes, feedback, error, check.title, seen))
    known = {check.name for check in result.checks}
    rest = {
        column: tuple(line if name is None else f"{name}: {line}" for name, line in found if name not in known)
        for column, found in lines.items()
    }
    return Card(
        row=values[ROW],
        key={name: values[name] for name in keys if name != COMPLETION},
        state=values[HIDDEN + "state"],
        reward=values["reward"],
        checks=tuple(checks),
        feedback=rest["feedback"],
        error=rest["error"],
        gold=_golds({**{name: values.get(name) for name in GOLDS}, **row}, readers.values()),
        text=text,
        sources={}
        if text is None
        else {name: text for reader in readers.values() for name, text in _source(reader, row)},
    )


def _evidence(
    name: str, reader: CheckReader, row: Mapping[str, Any], score: float | None, error: str
) -> CheckEvidence | None:
    try:
        return replace(evidence_of(reader, row, score, has_error=bool(error)), check=name)
    except Exception:  # noqa: BLE001  (what a footer says, and these rows may be others than it was made for)
        return None


def _source(reader: CheckReader, row: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    try:
        return source_of(reader, row).items()
    except Exception:  # noqa: BLE001  (as above)
        return ()


def _golds(row: Mapping[str, Any], readers: Iterable[CheckReader]) -> dict[str, str]:
    """Return what the checks of a row compare with, by what brings it."""
    golds: dict[str, Any] = {name: row.get(name) for name in GOLDS}
    for reader in readers:
        for _, reference in reader.check.traits.references:
            with contextlib.suppress(ValueError, TypeError, RecursionError):
                golds[str(reference)] = reference.row(row)
        if reader.type == "task_expectations":
            with contextlib.suppress(ValueError, RecursionError):
                metadata = untyped(row.get(METADATA))
                metadata = loads(metadata) if isinstance(metadata, str) else metadata
                golds["expectations"] = metadata.get("expectations") if isinstance(metadata, Mapping) else None
    return {name: _shown(value) for name, value in golds.items() if value not in (None, {}, [])}


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, Mapping | list) else gold_text(value)
