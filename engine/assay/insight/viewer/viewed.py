"""A result that somebody looks at: answers within a second, from an index and from the rows that are shown."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from assay.aggregating.templates import template_expr
from assay.errors import AssayError, UsageError, did_you_mean, listed
from assay.expressions.shared_columns import exactly
from assay.frozen import frozen
from assay.insight.findings.columns import key_expr
from assay.insight.originals import all_texts
from assay.insight.reports.index import FILTERS, Index, RowFilters
from assay.insight.reports.reporting import report
from assay.insight.reports.rows import Data, cards_data, line_of
from assay.insight.reports.showing import condition
from assay.insight.results import Result
from assay.insight.viewer.matches import Matches, Recent
from assay.insight.viewer.overview import first_overview
from assay.names import COMPLETION, HIDDEN, TEXT

MOST_ROWS = 200

_SECONDS = 0.8
"""Seconds that an answer waits for conditions that are looked for in the files."""

_FEW = 200_000
"""Rows that are sorted by themselves; an order of all rows is kept."""

_HOLDS = HIDDEN + "holds"
_KEPT_ORDERS, _KEPT_MATCHES = 4, 8
_LONGEST = 1_000
_WHOLE = ("bin", "rows")
_IN_FILES = ("where", "text", "reason")
QUERY = ("result", *FILTERS, *_IN_FILES, "sort", "offset", "limit", "check")
"""The names that a query of rows may have."""


@frozen
class RowQuery:
    """Which rows to list, in which order; ``in_files`` are conditions that the index does not have, by their kind."""

    kept: RowFilters
    in_files: tuple[tuple[str, str], ...]
    sort: tuple[str, ...]
    offset: int
    limit: int
    check: str | None

    @classmethod
    def of(cls, given: Mapping[str, Sequence[str]]) -> "RowQuery":
        """Read a query; an ``UsageError`` says what is wrong with it."""
        for name in given:
            if name not in QUERY:
                raise UsageError(f"{name}: unknown.", did_you_mean(name, QUERY) or f"Names: {listed(QUERY)}")
        filters: dict[str, Any] = {name: tuple(given.get(name, ())) for name in FILTERS}
        for name in _WHOLE:
            texts = (text for value in filters[name] for text in value.split(","))
            filters[name] = tuple(whole_number(name, text) for text in texts)
        in_files = [(name, text) for name in _IN_FILES for text in given.get(name, ()) if text]
        for name, text in in_files:
            if len(text) > _LONGEST:
                raise UsageError(f"{name}: is too long.", f"At most {_LONGEST:,} characters.")
        sort = tuple(name for value in given.get("sort", ()) for name in value.split(",") if name)
        offset, limit = (
            whole_number(name, given.get(name, (default,))[-1]) for name, default in (("offset", "0"), ("limit", "50"))
        )
        if limit > MOST_ROWS:
            raise UsageError(f"limit {limit}: at most {MOST_ROWS} rows.")
        check = next(iter(given.get("check") or given.get("failed") or given.get("passed") or ()), None)
        return cls(RowFilters(**filters), tuple(in_files), sort, offset, limit, check)


def whole_number(name: str, text: str) -> int:
    """Read a number that is not negative, as people write them."""
    if not (text.isascii() and text.isdigit() and len(text) <= 10):  # noqa: PLR2004  (rows are UInt32)
        raise UsageError(f"{name} {text[:50]}: expected a number from 0.")
    return int(text)


class Viewed:
    """A result that somebody looks at.

    Args:
        result: The result.
        rollouts: The rollouts that were scored, if they are not where the result says.
    """

    def __init__(self, result: Result, rollouts: Any = None) -> None:
        self.result, self.rollouts = result, rollouts
        self.index = Index(result)
        self.error: AssayError | None = None
        self._overview: Data | None = None
        self._begun, self._idle = threading.Event(), threading.Event()
        self._idle.set()
        self._first: Recent[Data] = Recent(1)
        self._orders: Recent[pl.Series] = Recent(_KEPT_ORDERS)
        self._matches: Recent[Matches] = Recent(_KEPT_MATCHES, Matches.stop)

    def read(self, tell: Callable[[int], object] = lambda _: None) -> None:
        """Read the index."""

        def reached(rows: int) -> None:
            self._begun.set()
            tell(rows)

        try:
            self.index.scan(reached)
        except AssayError as error:
            self.error = error
        finally:
            self._begun.set()

    def report(self) -> None:
        """Make the overview of all rows, which takes its time."""
        try:
            overview = report(self.result, rollouts=self.rollouts, examples=0).as_json()
            self._overview = overview | {"heat": self.index.heat(), "complete": True, "scanned": self.result.rows}
        except AssayError as error:
            overview = first_overview(self.index)
            self._overview = overview | {"complete": True, "notes": [*overview["notes"], error.fact]}

    def overview(self) -> Data:
        """Return the overview; while it is made, what the index knows, with ``complete`` false and how many rows were ``scanned``."""
        return self._overview or self._first.get(self.index.frame.height, lambda: first_overview(self.index))

    def rows(self, query: RowQuery) -> Data:
        """Return a page of the rows that a query keeps, and how many there are among those looked at so far."""
        end = time.monotonic() + _SECONDS
        self._begun.wait(_SECONDS)
        kept = self.index.mask(query.kept)
        for kind, text in query.in_files:
            matches = self._matches.get((kind, text), lambda kind=kind, text=text: self._looking(kind, text))  # type: ignore[misc]
            there = matches.so_far(max(0.0, end - time.monotonic()))
            kept = kept.head(len(there)) & there.head(len(kept))
        chosen = kept.arg_true()
        rows = self._sorted(chosen, kept, query.sort).slice(query.offset, query.limit).to_list()
        self._idle.clear()
        try:
            cards, note = cards_data(self.result, rows, self.rollouts) if rows else (iter(()), "")
            lines = [line_of(card, query.check) for card in cards]
        finally:
            self._idle.set()
        answer = {"matching": len(chosen), "scanned": len(kept), "total": self.result.rows}
        return answer | {"rows": lines, "notes": [note] if note else []}

    def row(self, number: int) -> Data:
        """Return the card of a row."""
        if number >= self.result.rows:
            raise UsageError(f"row {number}: {self.result.name} has the rows 0 to {self.result.rows - 1:,}.")
        cards, _ = cards_data(self.result, [number], self.rollouts, self.index)
        return next(cards)

    def _sorted(self, chosen: pl.Series, kept: pl.Series, sort: tuple[str, ...]) -> pl.Series:
        if not sort or sort == ("row",):
            return chosen
        if len(chosen) <= _FEW or not self.index.is_whole:
            return self.index.order(sort, chosen)
        order = self._orders.get(sort, lambda: self.index.order(sort))
        return order.filter(kept.extend_constant(False, len(order) - len(kept)).gather(order))

    def _looking(self, kind: str, text: str) -> Matches:
        make = {"where": self._where, "text": self._text, "reason": self._reason}[kind]
        is_kept = kind == "reason" or (kind == "text" and self.rollouts is None and COMPLETION in self.result.schema)
        return Matches(self.result, make(text), self._idle, in_parts=is_kept and self.result.has_cheap_slices)

    def _where(self, text: str) -> pl.LazyFrame:
        return self._holding(condition(self.result, text, []).cast(pl.Boolean))

    def _holding(self, holds: pl.Expr) -> pl.LazyFrame:
        # a constant is a value for each row only beside the columns
        return self.result.frame.with_columns(holds.alias(_HOLDS)).select(_HOLDS)

    def _text(self, text: str) -> pl.LazyFrame:
        """Search the scored texts and the names of tasks and models, without case."""
        pattern = f"(?i){pl.escape_regex(text)}"
        names = self.index.keys.values()
        keys = [key_expr(name, self.result.schema[name]).cast(pl.String).str.contains(pattern) for name in names]
        if self.rollouts is None and COMPLETION in self.result.schema:
            scored = self.result.text_of(self.result.schema[COMPLETION])
            return self._holding(pl.any_horizontal(*keys, scored.str.contains(pattern)).fill_null(value=False))
        in_keys = self._holding(pl.any_horizontal(pl.lit(value=False), *keys).fill_null(value=False))
        try:
            texts = all_texts(self.result, self.rollouts).select(pl.col(TEXT).str.contains(pattern))
        except AssayError:  # there are no texts: rows say so
            return in_keys
        together = pl.concat([in_keys, texts.head(self.result.rows)], how="horizontal")
        return together.select(pl.any_horizontal(pl.all().fill_null(value=False)))

    def _reason(self, template: str) -> pl.LazyFrame:
        """Search lines of feedback and errors that have a template."""
        columns = [name for name in ("feedback", "error") if name in self.result.schema]
        lines = [template_expr(exactly(name).cast(pl.String)).str.contains(template, literal=True) for name in columns]
        return self._holding(pl.any_horizontal(pl.lit(value=False), *lines))
