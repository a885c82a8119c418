"""Rows of a result for a person to look at: chosen, sorted, and each with what its checks say about its text.

What a verifier looks for is read from the canonical form in the provenance as plain data: nothing is loaded or run. The places are for
the eye, in the whole text; scores say what counted.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl
from polars.exceptions import ColumnNotFoundError, PanicException, PolarsError

from assay.errors import AssayError, UsageError, counted, did_you_mean, listed
from assay.expressions.json import loads
from assay.expressions.readable import readable
from assay.expressions.shared_columns import exactly
from assay.insight import stats
from assay.insight.originals import HOW, originals, some_rows
from assay.insight.reports.documents import cards_document
from assay.insight.results import ROW, Result, labelled_lines, open_result
from assay.loading.formats.files import first_line
from assay.names import COMPLETION, HIDDEN, TEXT
from assay.options import ShowOptions, documented
from assay.values.references import Reference, gold_text, is_reference, read_reference
from assay.writing.documents import Document
from assay.writing.notebooks import Displayed

_PHRASES = ("value", "values", "text")
_PLAIN_GOLDS = ("answer", "target", "expected")
_TYPES = ("contains", "not_contains", "contains_any", "contains_all", "starts_with", "ends_with", "equals")
_MOST_TEXT = 200_000
"""Code points of a text that are searched."""

_MOST_MATCHES = 1_000


@dataclass(frozen=True)
class Sought:
    """What the checks of a result look for."""

    phrases: tuple[tuple[str, str], ...] = ()
    patterns: tuple[tuple[str, str], ...] = ()
    golds: tuple[tuple[Reference, str], ...] = ()
    expectations: tuple[str, ...] = ()
    columns: tuple[str, ...] = field(default=_PLAIN_GOLDS)

    def golds_of(self, row: Mapping[str, Any]) -> dict[str, str]:
        """Return the golds of a row, by what brings them."""
        golds: dict[str, Any] = {name: row.get(name) for name in _PLAIN_GOLDS}
        for reference, _ in self.golds:
            try:
                golds[str(reference)] = reference.row(row)
            except (ValueError, TypeError, RecursionError):
                continue
        if self.expectations:
            golds["expectations"] = _expectations(row)
        return {name: _shown(value) for name, value in golds.items() if value not in (None, {}, [])}

    def phrases_of(self, row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield the phrases to look for in a row's text, each with its check or with what brings it."""
        yield from self.phrases
        for name in _PLAIN_GOLDS if not self.golds else ():
            if isinstance(row.get(name), str):
                yield row[name], name
        for reference, check in self.golds:
            try:
                value = reference.row(row)
            except (ValueError, TypeError, RecursionError):
                continue
            yield from (
                (item, check) for item in (value if isinstance(value, list) else [value]) if isinstance(item, str)
            )
        for check in self.expectations:
            yield from ((phrase, check) for phrase in _strings(_expectations(row)))


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, Mapping | list) else gold_text(value)


def _expectations(row: Mapping[str, Any]) -> Any:
    try:
        metadata = row.get("metadata")
        metadata = loads(metadata) if isinstance(metadata, str) else metadata
    except (ValueError, RecursionError):
        return None
    return metadata.get("expectations") if isinstance(metadata, Mapping) else None


def _strings(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth < 8 and isinstance(value, Mapping | list):  # noqa: PLR2004  (deeper ones are no expectations)
        inside = [value[key] for key in value if key != "message"] if isinstance(value, Mapping) else value
        for inner in inside:
            yield from _strings(inner, depth + 1)


def sought(result: Result) -> Sought:
    """Return what the checks of a result look for, as far as its provenance says."""
    phrases: list[tuple[str, str]] = []
    patterns: list[tuple[str, str]] = []
    golds: list[tuple[Reference, str]] = []
    expectations: list[str] = []
    for name, kind, params in _params(result):
        if kind == "task_expectations":
            expectations.append(name)
        if kind == "regex" and isinstance(params.get("pattern"), str):
            patterns.append((params["pattern"], name))
        for value in params.values():
            if is_reference(value):
                try:
                    golds.append((read_reference(value), name))
                except (ValueError, AssayError, TypeError):
                    continue
        values = [params.get(key) for key in _PHRASES] if kind in _TYPES else []
        items = [item for value in values for item in (value if isinstance(value, list) else [value])]
        phrases += [(item, name) for item in items if isinstance(item, str)]
    columns = dict.fromkeys(name for reference, _ in golds for name in reference.columns)
    columns |= dict.fromkeys([*_PLAIN_GOLDS, *(["metadata"] if expectations else [])])
    return Sought(tuple(phrases), tuple(patterns), tuple(golds), tuple(expectations), tuple(columns))


def _params(result: Result) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    names = {(check.verifier, check.id): check.name for check in result.checks}
    for verifier in result.forms if result.verifiers else ():
        stack = [*reversed(verifier.get("checks", ()))]
        while stack:
            check = stack.pop()
            stack += reversed(check.get("checks", ()))
            yield names.get((verifier["id"], check["id"]), check["id"]), check["type"], check.get("params", {})


def matches(text: str, row: Mapping[str, Any], looked_for: Sought) -> list[tuple[int, int, str]]:
    """Return where what the checks look for is in a text: start, end and check; in order, none overlapping another."""
    searched = text[:_MOST_TEXT]
    places = [place for phrase, check in looked_for.phrases_of(row) for place in _phrase(searched, phrase, check)]
    places += [place for pattern, check in looked_for.patterns for place in _pattern(searched, pattern, check)]
    kept: list[tuple[int, int, str]] = []
    for start, end, check in sorted(places, key=lambda place: (place[0], -place[1], place[2])):
        if start >= (kept[-1][1] if kept else 0):
            kept.append((start, end, check))
    return kept[:_MOST_MATCHES]


def _phrase(text: str, phrase: str, check: str) -> Sequence[tuple[int, int, str]]:
    phrase = phrase.strip()
    if not phrase:
        return []
    found = re.finditer(re.escape(phrase), text, re.IGNORECASE)
    return [(*match.span(), check) for match, _ in zip(found, range(_MOST_MATCHES), strict=False)]


def _pattern(text: str, pattern: str, check: str) -> list[tuple[int, int, str]]:
    try:
        parts = pl.Series([text]).str.extract_all(pattern)[0].to_list()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return []
    places, at = [], 0
    for part in filter(None, parts[:_MOST_MATCHES]):
        at = text.find(part, at)
        if at < 0:
            break
        places.append((at, at := at + len(part), check))
    return places


_KEYS = ("rollout_id", "sample_idx", "id")
_VERDICTS = ("reward", "passed", "feedback", "error")
_LONGEST_WHERE = 2_000


@dataclass(frozen=True)
class Verdict:
    """What became of one check on a row.

    Attributes:
        check: Name of the check.
        score: Its score; None where it did not run.
        passes: Whether the score is 1.0; None where it did not run.
        feedback: Its line of feedback, or ``""``.
        error: Its line of errors, or ``""``.
        title: What its spec calls it for people, or ``""``.
    """

    check: str
    score: float | None
    passes: bool | None
    feedback: str = ""
    error: str = ""
    title: str = ""


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
        matches: Where in the text what the checks look for is: start, end, check.
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
    matches: tuple[tuple[int, int, str], ...]

    def as_json(self) -> dict[str, Any]:
        """Return JSON data."""
        data = {name: getattr(self, name) for name in ("row", "key", "state", "reward")}
        data |= {"checks": [vars(verdict) for verdict in self.checks]}
        data |= {name: list(getattr(self, name)) for name in ("feedback", "error")}
        places = [{"start": start, "end": end, "check": check} for start, end, check in self.matches]
        return data | {"gold": self.gold, "text": self.text, "matches": places}


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
    cards, note = cards_of(opened, chosen, columns, rollouts)
    return Cards(opened.name, opened.rows, matching, cards, (*notes, *([note] if note else [])))


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
    matching = result.rows if not kept else int(result.collect(result.numbered.filter(*kept).select(pl.len())).item())
    return matching, _chosen(result, kept, sort, limit, random) if matching else []


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
    if re.search(r"\(\s*from\b", text, re.IGNORECASE):
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


def _chosen(result: Result, kept: Sequence[pl.Expr], sort: Sequence[str], limit: int, seed: int | None) -> list[int]:
    frame = result.numbered.filter(*kept) if kept else result.numbered
    by = [name.removeprefix("-") if name not in result.schema else name for name in sort]
    for name in by:
        if name not in result.schema:
            hint = did_you_mean(name, result.schema) or f"Columns: {listed(list(result.schema))}"
            raise UsageError(f"--sort {name}: {result.name} has no such column.", hint)
    if seed is not None:
        rows = result.collect(frame.select(ROW))
        draws = stats.splitmix64(seed, 0, result.rows).gather(rows[ROW])
        rows = rows.with_columns(draws.alias("draw")).sort("draw", ROW).head(limit).sort(ROW)
        frame = result.numbered.filter(pl.col(ROW).is_in(rows[ROW].implode()))
    if by:
        largest = [name not in result.schema for name in sort]
        keys = [*map(exactly, by), pl.col(ROW)]
        frame = frame.select(pl.col(ROW), *(exactly(name) for name in dict.fromkeys(by)))
        frame = frame.sort(keys, descending=[*largest, False], nulls_last=True)
    return list(result.collect(frame.select(ROW).head(limit))[ROW])


def cards_of(
    result: Result, rows: Sequence[int], columns: Sequence[str] = (), rollouts: Any = None
) -> tuple[tuple[Card, ...], str]:
    """Return rows as cards, in the order of their numbers given; and a note if there are no texts, or ``""``."""
    keys = result.columns(columns, "--columns") or keys_of(result)
    looked_for = sought(result)
    texts, why = originals(result, rows, looked_for.columns, rollouts)
    names = [name for name in (*_VERDICTS, *keys, *looked_for.columns) if name in result.schema]
    names += [check.column for check in result.checks]
    frame = _fetched(result, rows, list(dict.fromkeys(names)))
    others = [name for name in texts.columns if name not in frame.columns]
    frame = frame.join(texts.select(ROW, *others), on=ROW, how="left", maintain_order="left") if others else frame
    found = {values[ROW]: values for values in frame.iter_rows(named=True)}
    return tuple(
        _card(result, found[number], keys, looked_for) for number in rows
    ), f"no texts: {why}; {HOW}" if why else ""


def keys_of(result: Result) -> tuple[str, ...]:
    """Return the columns that tell people which row it is."""
    names = (*result.groups(result.tasks()), *(name for name in _KEYS if name in result.schema))
    return tuple(dict.fromkeys(names))


def _fetched(result: Result, rows: Sequence[int], names: Sequence[str]) -> pl.DataFrame:
    values = (readable(exactly(name), result.schema[name], as_text=True)[0].alias(name) for name in names)
    return result.collect(some_rows(result.numbered.select(ROW, *values, result.state.alias(HIDDEN + "state")), rows))


def _card(result: Result, values: dict[str, Any], keys: Sequence[str], looked_for: Any) -> Card:
    text = values.get(TEXT)
    lines = {name: labelled_lines(values.get(name), result.labels) for name in ("feedback", "error")}
    checks = tuple(
        Verdict(
            check.name,
            None if values[check.column] is None else float(values[check.column]),
            None if values[check.column] is None else values[check.column] == 1.0,
            "\n".join(line for name, line in lines["feedback"] if name == check.name),
            "\n".join(line for name, line in lines["error"] if name == check.name),
            check.title,
        )
        for check in result.checks
    )
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
        checks=checks,
        feedback=rest["feedback"],
        error=rest["error"],
        gold=looked_for.golds_of(values),
        text=text,
        matches=tuple(matches(text, values, looked_for)) if text else (),
    )
