r"""What ``re.finditer`` finds of a pattern, how often, and what ``re.sub`` leaves without it: in the linear engine where that provably agrees.

The linear engine prefers the same match as Python, the first by the order of alternatives and by greediness, for a pattern of sets of
characters, concatenations, alternatives, repeats, groups and anchors that is written as it is. It is not used for look-around, groups
within repeats and repeats of what may be empty; and to find several matches of a pattern that may be empty, or that ends with ``$``,
because Python goes on in another way after an empty match, and before a final line break.

Other patterns are run by ``re``: in this process if it cannot take long for this size of text, else in a process with limits. Those of
the package ``regex``, which have ``lists``, run in such a process by the package's methods of the same names.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from re import _constants as sre  # type: ignore[attr-defined]
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from assay.calls.limits import Limits
from assay.errors import describe_error, encodable
from assay.expressions.regex.compiled import TooExpensiveError, compile_pattern, on_any_stack, parsed, quick
from assay.expressions.regex.guarded import guarded_search
from assay.expressions.regex.linear import class_of
from assay.expressions.regex.match_program import TASKS
from assay.expressions.regex.questions import Question
from assay.expressions.regex.search import BY_PACKAGE, is_disputed, note_timeout
from assay.expressions.regex.trees.charsets import (
    CHARACTERS,
    accepted,
    accepted_ascii,
    most_ranges,
    reaches_beyond_ascii,
)
from assay.expressions.regex.trees.nodes import Items, NotLinearError
from assay.expressions.shared_columns import is_small
from assay.expressions.text import is_ascii
from assay.frozen import frozen
from assay.system.cache import cached_within
from assay.thresholds import THRESHOLDS

ANY = "any"
"""In place of a group: the first group of a match that is not empty; the match if the pattern has no groups."""

Result = Any
"""A text, or None; places of those that ask for them; or an exception."""


@dataclass
class _SpanWriter:
    r"""Writes a pattern so that the linear engine prefers the same matches, and numbers the same groups.

    Attributes:
        ascii: Whether to cut every set of characters to ASCII.
        cut: Whether that changes one of them.
        boundary: Whether there is a ``\b``.
        ends: Whether the pattern consumes a final line break for its ``$``; then what stands before that is its first group.
        anchors: Number of anchors.
        size: Estimated bytes of the written pattern.
    """

    ascii: bool
    cut: bool = False
    boundary: bool = False
    ends: bool = False
    anchors: int = 0
    size: int = 0

    def pattern(self, items: Items, flags: int) -> str:
        """Write a whole pattern."""
        if items[-1:] == [(sre.AT, sre.AT_END)] and not flags & sre.SRE_FLAG_MULTILINE:
            self.ends, self.anchors = True, 1
            return rf"({self.sequence(items[:-1], flags)})(?:\x{{A}}?\z)"
        return self.sequence(items, flags)

    def sequence(self, items: Items, flags: int) -> str:
        return "".join(self.item(op, value, flags) for op, value in items)

    def item(self, op: Any, value: Any, flags: int) -> str:
        if op in CHARACTERS:
            return self.characters(op, value, flags)
        if op is sre.AT:
            return self.anchor(value, flags)
        if op is sre.BRANCH:
            return f"(?:{'|'.join(self.sequence(list(way), flags) for way in value[1])})"
        if op is sre.SUBPATTERN:
            group, add, remove, inner = value
            if add & _TYPE_FLAGS:
                raise NotLinearError("scoped a/u flags")
            return f"({'?:' if group is None else ''}{self.sequence(list(inner), (flags | add) & ~remove)})"
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            return self.repeat(value, flags) + ("?" if op is sre.MIN_REPEAT else "")
        raise NotLinearError(_NAMES.get(str(op), str(op).lower().replace("_", " ")))

    def characters(self, op: Any, value: Any, flags: int) -> str:
        self.cut |= reaches_beyond_ascii(op, value, flags)
        ranges = accepted_ascii(op, value, flags) if self.ascii else accepted(op, value, flags)
        if not ranges:
            raise NotLinearError("a character that cannot be there")
        self.size += _RANGE * (most_ranges(op, value, flags) if self.ascii else len(ranges))
        return class_of(ranges)

    def anchor(self, where: Any, flags: int) -> str:
        multiline = bool(flags & sre.SRE_FLAG_MULTILINE)
        self.anchors += 1
        if where is sre.AT_BOUNDARY:
            self.boundary |= not flags & sre.SRE_FLAG_ASCII
            return r"\b" if self.boundary and not self.ascii else r"(?-u:\b)"
        if where is sre.AT_END and not multiline:
            raise NotLinearError("$ that is not the end of the pattern")
        if where not in _ANCHORS:
            raise NotLinearError(r"\B")
        return _ANCHORS[where][multiline]

    def repeat(self, value: Any, flags: int) -> str:
        low, high, inner = value
        if inner.getwidth()[0] == 0:
            raise NotLinearError("a repeat of something that may be empty")
        if high != 1 and _has_groups(inner):
            raise NotLinearError("a group within a repeat")
        before = self.size
        body = self.sequence(list(inner), flags)
        copies = max(low, 1) if high is sre.MAXREPEAT else max(high, 1)
        self.size = before + (self.size - before) * copies
        return f"(?:{body}){{{low},{'' if high is sre.MAXREPEAT else high}}}"


def _has_groups(items: Any) -> bool:
    for op, value in items:
        if op is sre.SUBPATTERN and (value[0] is not None or _has_groups(value[3])):
            return True
        if op is sre.BRANCH and any(map(_has_groups, value[1])):
            return True
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT) and _has_groups(value[2]):
            return True
    return False


_RANGE = 60
"""Bytes per range of a class in the engine."""
_TYPE_FLAGS = sre.SRE_FLAG_ASCII | sre.SRE_FLAG_LOCALE | sre.SRE_FLAG_UNICODE
_ANCHORS = {  # without and with MULTILINE
    sre.AT_BEGINNING_STRING: (r"\A", r"\A"),
    sre.AT_BEGINNING: (r"\A", "(?m:^)"),
    sre.AT_END_STRING: (r"\z", r"\z"),
    sre.AT_END: ("", "(?m:$)"),
}
_NAMES = {"ASSERT": "look-around", "ASSERT_NOT": "look-around", "GROUPREF": "a back-reference"}


@frozen
class SpanRoute:
    r"""A pattern in the linear engine.

    Attributes:
        ascii: The pattern for ASCII texts; None if the engine cannot run it.
        why: A sentence for ``assay explain``.
        cut: Whether other texts need another pattern.
        boundary: Whether it has a ``\b``, on which the engines disagree for some characters.
        ends: Whether a match includes the final line break that ``$`` may stand before, and its first group is what stands before it.
        anchored: Whether a match depends on what stands beside it.
        empty: Whether a match may be empty.
    """

    ascii: str | None
    why: str
    cut: bool = False
    boundary: bool = False
    ends: bool = False
    anchored: bool = False
    empty: bool = False


def route_of(pattern: str, lists: str = "") -> SpanRoute:
    """Return how the linear engine runs a pattern; cached."""
    return SpanRoute(None, BY_PACKAGE) if lists else _route(pattern, THRESHOLDS.linear_bytes)


@cached_within(8_000_000, lambda route, pattern, *_: 4 * len(pattern) + len(route.ascii or ""))
def _route(pattern: str, linear_bytes: int) -> SpanRoute:
    try:
        writer, written, tree = on_any_stack(lambda: _written(pattern, linear_bytes, ascii=True))
    except (NotLinearError, TooExpensiveError) as error:
        return SpanRoute(None, f"{_BY_RE}: {error}")
    except RecursionError:
        return SpanRoute(None, f"{_BY_RE}: a pattern nested too deeply")
    first = next(iter(tree), None)
    leads = first == (sre.AT, sre.AT_BEGINNING) and bool(tree.state.flags & sre.SRE_FLAG_MULTILINE)
    return SpanRoute(
        written,
        _LINEAR,
        writer.cut,
        writer.boundary,
        writer.ends,
        anchored=writer.anchors > leads,
        empty=tree.getwidth()[0] == 0,
    )


_LINEAR = "linear engine: the same match on every text"
_BY_RE = "Python's re, in a separate process if it may take long, {limit}"


@cached_within(16_000_000, lambda written, pattern, *_: 4 * len(pattern) + len(written or ""))
def _beyond_ascii(pattern: str, linear_bytes: int) -> str | None:
    """Return the pattern for texts beyond ASCII; None if the engine cannot run it."""
    try:
        return on_any_stack(lambda: _written(pattern, linear_bytes, ascii=False)[1])
    except (NotLinearError, RecursionError):
        return None


def _written(pattern: str, linear_bytes: int, *, ascii: bool) -> tuple[_SpanWriter, str, Any]:  # noqa: A002
    tree = parsed(pattern, 0)
    writer = _SpanWriter(ascii)
    written = writer.pattern(list(tree), tree.state.flags)
    if writer.size > linear_bytes:
        raise NotLinearError("a pattern too large for the linear engine")
    try:
        pl.Series([""], dtype=pl.String).str.extract(written, 0)
    except PolarsError:
        raise NotLinearError("a pattern too large for the linear engine") from None
    return writer, written, tree


@cached_within(4_000_000, lambda _, pattern, lists="": 4 * (len(pattern) + len(lists)))
def groups_of(pattern: str, lists: str = "") -> tuple[int, dict[str, int]]:
    """Return the number of groups of a pattern, and the numbers of those with names."""
    if lists:
        (numbers,) = guarded_search([Question(pattern, "", lists=lists)], seconds=1.0, task="groups")
        if isinstance(numbers, Exception):
            raise numbers
        return numbers.pop(""), numbers
    try:
        state = on_any_stack(lambda: parsed(pattern, 0)).state
    except (TooExpensiveError, RecursionError) as error:
        raise ValueError(f"the pattern is too large to extract a group: {error}") from None
    return state.groups - 1, dict(state.groupdict)


@frozen
class Operation(ABC):
    """Something done with a valid pattern and a text; ``lists`` as in ``Question``."""

    pattern: str
    lists: str = field(default="", kw_only=True)

    @property
    @abstractmethod
    def task(self) -> str:
        """What of ``match_program`` it is: the definition."""

    def is_exact(self, route: SpanRoute) -> bool:
        """Return whether the linear engine does it as Python does."""
        return not route.empty and not route.ends

    @abstractmethod
    def by_columns(self, texts: pl.Series, written: str) -> pl.Series:
        """Do it with the linear engine."""

    def read(self, text: str, reply: Any) -> Any:
        """Return the result from that of the task."""
        del text
        return str(reply)


@frozen
class Extraction(Operation):
    """A group of the first or the last match: its number, 0 for the whole match, or ``ANY``."""

    group: int | str = 0
    last: bool = False

    @property
    def task(self) -> str:
        return "last" if self.last else "first"

    @property
    def _is_whole(self) -> bool:
        return self.group == 0 or (self.group == ANY and groups_of(self.pattern)[0] == 0)

    def is_exact(self, route: SpanRoute) -> bool:
        return not self.last or not (route.empty or route.ends or (route.anchored and not self._is_whole))

    def by_columns(self, texts: pl.Series, written: str) -> pl.Series:
        if self.last:  # what stands beside the last match does not matter: see is_exact
            texts = texts.str.extract_all(written).list.last()
            if self.group == 0:
                return texts
        skipped = int(route_of(self.pattern).ends)
        if isinstance(self.group, int):
            return texts.str.extract(written, self.group + skipped)
        if self._is_whole:
            matches = texts if self.last else texts.str.extract(written, skipped)
            return matches.set(matches == "", None)
        groups = (
            texts.to_frame("text").select_seq(pl.col("text").str.extract_groups(written)).to_series().struct.unnest()
        )
        return groups.select_seq(
            pl.coalesce(pl.when(group != "").then(group) for group in map(pl.col, groups.columns[skipped:]))
        ).to_series()

    def read(self, text: str, reply: Any) -> Any:
        place = self.place(reply)
        return None if place is None else text[slice(*place)]

    def place(self, reply: Any) -> tuple[int, int] | None:
        """Return where the group is, from the result of the task."""
        if reply is None:
            return None
        if isinstance(self.group, int):
            start, end = reply[self.group]
            return None if start < 0 else (start, end)
        return next(((start, end) for start, end in reply[len(reply) > 1 :] if start < end), None)


class ExtractionPlace(Extraction):
    """Where that group is; no engine but ``re`` tells."""

    def is_exact(self, route: SpanRoute) -> bool:
        del route
        return False

    def read(self, text: str, reply: Any) -> tuple[int, int] | None:
        del text
        return self.place(reply)


class Removal(Operation):
    """The text without the matches of a pattern: ``re.sub(pattern, "", text)``."""

    task = "removed"

    def by_columns(self, texts: pl.Series, written: str) -> pl.Series:
        return texts.str.replace_all(written, "")


class Matches(Operation):
    """The number of matches, in digits: ``len(re.findall(pattern, text))``."""

    task = "counted"

    def by_columns(self, texts: pl.Series, written: str) -> pl.Series:
        return texts.str.count_matches(written).cast(pl.String)


class MatchPlaces(Matches):
    """Where they are: ``re.finditer``; no engine but ``re`` tells."""

    task = "spans"

    def is_exact(self, route: SpanRoute) -> bool:
        del route
        return False

    def read(self, text: str, reply: Any) -> list[tuple[int, int]]:
        del text
        return [*map(tuple, reply)]


def results(operation: Operation, texts: Sequence[str], limits: Limits | None = None) -> list[Result]:
    """Return the result for each text, None where nothing is found; or the exception: a limit was exceeded."""
    limits = limits or Limits()
    answers: list[Any] = [_here(operation, text, limits) for text in texts]
    waiting = Counter(text for text, answer in zip(texts, answers, strict=True) if answer is _ELSEWHERE)
    replies = guarded_search(
        [Question(operation.pattern, text, lists=operation.lists) for text in waiting],  # equal ones once
        seconds=limits.regex_timeout,
        task=operation.task,
        stop=limits.stop,
        late=lambda question: note_timeout(limits, waiting[question.text]),
    )
    others = {
        text: reply if isinstance(reply, Exception) else operation.read(text, reply)
        for text, reply in zip(waiting, replies, strict=True)
    }
    return [others[text] if answer is _ELSEWHERE else answer for text, answer in zip(texts, answers, strict=True)]


_ELSEWHERE = object()
"""In place of the result for a text that needs a separate process."""


def _here(operation: Operation, text: str, limits: Limits) -> Any:
    if limits.stop is not None and limits.stop.is_set():
        raise KeyboardInterrupt
    answer: Any = _ELSEWHERE
    if operation.lists:
        return answer
    if quick(operation.pattern, len(text)):
        try:
            return operation.read(text, TASKS[operation.task](compile_pattern(operation.pattern), text))
        except Exception as error:  # noqa: BLE001  (re has bugs of its own, too: "span of capturing group is wrong")
            answer = error
    if encodable(text) != text:  # a lone surrogate, which no column has
        return answer
    column = pl.Series("text", [text], dtype=pl.String)
    written = _engine_pattern(operation, column, is_beyond=not text.isascii())
    return answer if written is None else operation.by_columns(column, written).item()


def _engine_pattern(operation: Operation, texts: pl.Series, *, is_beyond: bool) -> str | None:
    """Return the pattern in the linear engine for texts that are all ASCII, or all not; None if it cannot run it."""
    route = route_of(operation.pattern)
    if route.ascii is None or not operation.is_exact(route):
        return None
    if not is_beyond or not (route.cut or route.boundary):
        return route.ascii
    if route.boundary and _disputed(texts).any():
        return None
    return _beyond_ascii(operation.pattern, THRESHOLDS.linear_bytes)


def _disputed(texts: pl.Series) -> pl.Series:
    return texts.to_frame("text").select_seq(is_disputed(pl.col("text"))).to_series()


def results_column(operation: Operation, texts: pl.Series, limits: Limits | None = None) -> tuple[pl.Series, pl.Series]:
    """Return ``results`` for a String column without nulls, as a column of results and one of errors."""
    texts = texts.alias("text")
    if is_small(texts) or operation.lists:
        return _by_rows(operation, texts, limits)
    beyond = ~is_ascii(texts)
    disputed = _disputed(texts) if route_of(operation.pattern).boundary and beyond.any() else beyond & ~beyond
    values, errors = (pl.Series("text", [None], dtype=pl.String).new_from_index(0, len(texts)) for _ in range(2))
    for mask, is_beyond in ((~beyond, False), (beyond & ~disputed, True), (disputed, None)):
        chosen = texts.filter(mask)
        if not len(chosen):
            continue
        spans, failed = _by_engine(operation, chosen, limits, is_beyond=is_beyond)
        if len(chosen) == len(texts):
            return spans, failed
        values = values.scatter(mask.arg_true(), spans)
        errors = errors.scatter(mask.arg_true(), failed) if failed.null_count() < len(failed) else errors
    return values, errors


def _by_engine(
    operation: Operation, texts: pl.Series, limits: Limits | None, *, is_beyond: bool | None
) -> tuple[pl.Series, pl.Series]:
    """Run the linear engine if it can, else ``re``; ``is_beyond`` is None for texts on which the engines disagree."""
    few = len(texts) <= THRESHOLDS.beyond_rows and bool(is_beyond)  # the engine would need Python's tables of Unicode
    if is_beyond is None or (few and quick(operation.pattern, texts.str.len_chars().max() or 0)):  # type: ignore[arg-type]
        return _by_rows(operation, texts, limits)
    written = _engine_pattern(operation, texts.clear(), is_beyond=is_beyond)
    if written is None:
        return _by_rows(operation, texts, limits)
    return operation.by_columns(texts, written), texts.clear(len(texts))


def _by_rows(operation: Operation, texts: pl.Series, limits: Limits | None) -> tuple[pl.Series, pl.Series]:
    answers = results(operation, texts.to_list(), limits)
    values = [None if isinstance(answer, Exception) else answer for answer in answers]
    errors = [describe_error(answer) if isinstance(answer, Exception) else None for answer in answers]
    return pl.Series("text", values, dtype=pl.String), pl.Series("text", errors, dtype=pl.String)
