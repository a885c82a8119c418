"""Rows of a result for a person to look at: chosen, sorted, and each with what its checks say about its text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from polars.exceptions import ColumnNotFoundError, PanicException, PolarsError

from assay.errors import UsageError, did_you_mean, listed
from assay.expressions.lane import exactly
from assay.expressions.readable import readable
from assay.insight import stats
from assay.insight.originals import HOW, originals
from assay.insight.results import ROW, Result, labelled_lines, open_result
from assay.insight.rows.matching import matches, sought
from assay.loading.formats.files import first_line
from assay.names import COMPLETION, HIDDEN, TEXT

_KEYS = ("rollout_id", "sample_idx", "id")
_VERDICTS = ("reward", "passed", "feedback", "error")
_MOST_SLICES = 64
"""Rows that are fetched one by one, which reads a part of a large file only."""

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


@dataclass(frozen=True)
class Cards:
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

    def as_json(self) -> dict[str, Any]:
        """Return JSON data."""
        cards = [card.as_json() for card in self.cards]
        return {"insight": 1, "rows": self.rows, "matching": self.matching, "cards": cards, "notes": list(self.notes)}


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
        failed: Names of checks: rows on which all of these fail.
        passed: Names of checks: rows on which all of these pass.
        where: SQL expressions of Polars over the columns: rows for which all hold.
        sort: Columns to sort by; ``-NAME`` for the largest first. Nulls come last, ties in order of the rows.
        limit: How many rows at most.
        random: Seed: a random choice of the rows, the same each time.
        row: Numbers of rows, from 0: these only.
        columns: Columns that tell which row it is, instead of the task's, ``model`` and ``step``.
        rollouts: The rollouts that were scored, for the texts; by default the result's own column, else the inputs that its
            provenance names.

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
    if limit < 1:
        raise UsageError(f"--limit {limit}: expected a number of rows, at least 1.")
    notes = list(opened.notes)
    kept = _filters(opened, failed, passed, where, row, notes)
    matching = opened.rows if not kept else int(opened.collect(opened.numbered.filter(*kept).select(pl.len())).item())
    chosen = _chosen(opened, kept, sort, limit, random) if matching else []
    cards, note = _cards(opened, chosen, columns, rollouts)
    return Cards(opened.name, opened.rows, matching, cards, (*notes, *([note] if note else [])))


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
    return kept + [_condition(result, text, notes) for text in where]


_TOKENS = re.compile(
    r"""(?P<comment>--|/\*)|(?P<text>'(?:[^']|'')*')|(?P<name>"(?:[^"]|"")*")|`[^`]*`|(?P<word>[^\W\d]\w*)"""
)
_QUERIES = ("select", "with", "table", "values")


def _condition(result: Result, text: str, notes: list[str]) -> pl.Expr:
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
        condition = pl.sql_expr(_TOKENS.sub(token, text))
        names = [name for name in condition.meta.root_names() if name not in result.schema]
        if names:
            as_text = f"A text stands in quotes: '{names[0]}'"
            raise refused(f"no column is called `{names[0]}`", did_you_mean(names[0], result.schema) or as_text)
        dtype = pl.LazyFrame(schema=result.schema).select(condition.alias("kept")).collect().schema["kept"]
    except (PolarsError, PanicException, ColumnNotFoundError) as error:
        raise refused(first_line(error), _mended(text, result.schema)) from None
    if dtype not in (pl.Boolean, pl.Null):
        raise refused(f"is {dtype}, not a condition")
    return condition


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


def _cards(result: Result, rows: Sequence[int], columns: Sequence[str], rollouts: Any) -> tuple[tuple[Card, ...], str]:
    keys = result.columns(columns, "--columns") or _keys(result)
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


def _keys(result: Result) -> tuple[str, ...]:
    names = (*result.groups(result.tasks()), *(name for name in _KEYS if name in result.schema))
    return tuple(dict.fromkeys(names))


def _fetched(result: Result, rows: Sequence[int], names: Sequence[str]) -> pl.DataFrame:
    scored = pl.when(pl.col("reward").is_null()).then(pl.lit("unscored")).otherwise(pl.lit("scored"))
    state = result.state if "passed" in result.schema else scored
    values = (readable(exactly(name), result.schema[name], as_text=True)[0].alias(name) for name in names)
    columns = result.numbered.select(ROW, *values, state.alias(HIDDEN + "state"))
    if len(rows) <= _MOST_SLICES:
        parts = [columns.slice(row, 1) for row in rows]
        return result.collect(pl.concat(parts) if parts else columns.head(0))
    return result.collect(columns.filter(pl.col(ROW).is_in(pl.Series(sorted(rows), dtype=pl.UInt32).implode())))


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
