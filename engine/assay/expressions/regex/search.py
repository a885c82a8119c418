r"""``re.search`` as an expression, for every pattern that Python accepts.

Whether a match exists depends only on the pattern's language, not on greediness, captures or the order of alternatives. There are
four engines:

* *Columns*: Polars' linear engine, with the pattern parsed by Python's own parser and rewritten (``linear``). ASCII texts are searched
  with sets of characters that are cut to ASCII, which lets the engine skip to where a match may begin; where many words ignore case,
  in lower case. Texts beyond ASCII that this does not decide are searched with Python's own sets, which are written when a few dozen
  texts have needed them, and then decide all texts of a small batch at once. There, ``\b`` becomes a class for the neighbouring character; where it may stand between any characters, rows with a code
  point on which the engines disagree about ``\w`` use another engine. Look-aheads at the start of the text are patterns of their own
  (``conditions``). Negative look-ahead elsewhere becomes an automaton (``lookahead``); back-references to few texts, possessive repeats
  and atomic groups are replaced where that changes nothing (``substitutes``).
* *Rows*: ``re`` itself, if it cannot take long for this pattern and this size of text.
* *Rows*: ``re`` in separate processes with limits on time and memory (``guarded``). Patterns of the package ``regex`` always run there.
* *Rows*: sets of positions (``positions``), with a limit on steps: where such a process is late, unless the pattern has back-references
  and the like. They take a hundred times as long as ``re`` on other texts.

No pattern takes more memory or time than these limits. Where only ``re`` can decide, its limit of time may give a different result in
another run.
"""

import contextlib
import re
import threading
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial, reduce
from operator import and_, or_
from re import _constants as sre  # type: ignore[attr-defined]
from typing import Any

import polars as pl

from assay.calls.limits import Limits
from assay.errors import AssayWarning, describe_error, encodable
from assay.expressions.regex.compiled import (
    TooExpensiveError,
    compile_pattern,
    not_quiet,
    on_any_stack,
    parsed,
    quick_size,
)
from assay.expressions.regex.linear import Boundary, has_many_cases, linear, narrowed
from assay.expressions.regex.positions import NotPositionsError, Positions, TooManyStepsError
from assay.expressions.regex.questions import Answer, Question
from assay.expressions.regex.trees.charsets import BEYOND_LETTERS
from assay.expressions.regex.trees.nodes import NotLinearError
from assay.expressions.regex.trees.substitutes import has_substitutes, with_substitutes
from assay.expressions.shared_columns import SharedColumn, among, is_small, nulls, positions, text
from assay.expressions.text import (
    ASCII_ALIKE,
    ASCII_LOWER,
    BEYOND_ASCII,
    SCALARS,
    as_class,
    ascii_lower,
    beyond_ascii,
    is_ascii,
)
from assay.frozen import frozen
from assay.system.cache import cached_within
from assay.thresholds import THRESHOLDS

__all__ = [
    "BY_PACKAGE",
    "Question",
    "Route",
    "backtracking_lane",
    "check_pattern",
    "is_disputed",
    "linear_answers",
    "note_timeout",
    "route",
    "route_of_tree",
    "search",
    "search_all",
    "search_each",
    "search_expr",
    "search_here",
]


@frozen
class Beyond:
    r"""How the linear engine decides texts beyond ASCII, if it needs other patterns for them.

    The patterns with Python's own classes are written when the first such text needs them: they take Python's tables of Unicode.

    Attributes:
        pattern: The pattern; None if only its tree is known.
        flags: Its flags.
        boundary: How ``\b`` is written; ``NONE`` if there is none.
        needed: Narrowed patterns of which one matches wherever the pattern does; empty if unknown.
        enough: Narrowed patterns of which a match is enough; empty if those for ASCII texts are.
        tree: The parsed pattern, if that is not what Python's parser makes of the pattern.
    """

    pattern: str | None
    flags: int
    boundary: Boundary
    needed: tuple[str, ...] = ()
    enough: tuple[str, ...] = ()
    tree: Any = field(default=None, compare=False, repr=False)

    @property
    def patterns(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Patterns that are necessary for a match, fast and possibly none, and exact ones."""
        if self.pattern is None or self.tree is not None:
            return _patterns_of_tree(self.tree, self.boundary)
        return _patterns_beyond(self.pattern, self.flags, self.boundary)


@frozen
class Route:
    """The engine for a pattern, and the reason.

    Attributes:
        linear: The pattern rewritten for the linear engine, as alternative patterns, for ASCII texts; empty if every row needs another
            engine.
        why: A sentence for ``assay explain``; ``{limit}`` stands for the time limit of a match.
        beyond: How texts beyond ASCII are decided, if ``linear`` is not exact on them.
        disputed: Whether rows with a code point on whose word-ness the engines disagree need another engine.
        lowered: Whether ``linear`` searches the texts with their ASCII letters in lower case.
        conditions: In place of all that: patterns that must or must not match, each with its own route.
    """

    linear: tuple[str, ...]
    why: str
    beyond: Beyond | None = None
    disputed: bool = False
    lowered: bool = False
    conditions: tuple[tuple[bool, "Route"], ...] = ()

    @property
    def in_columns(self) -> bool:
        """Whether the linear engine decides texts, except disputed ones."""
        return bool(self.linear or self.conditions)


def search(pattern: str, value: str, limits: Limits | None = None, *, flags: int = 0, lists: str = "") -> bool:
    """Return whether ``re.search`` finds the pattern: the definition in Python."""
    (answer,) = search_all(pattern, [value], limits, flags=flags, lists=lists)
    if isinstance(answer, Exception):
        raise answer
    return answer


def search_all(
    pattern: str, values: Sequence[str], limits: Limits | None = None, *, flags: int = 0, lists: str = ""
) -> list[Answer]:
    """Return the result of ``search`` for each text, or the exception that it raises."""
    limits = limits or Limits()
    here = [None] * len(values) if lists else search_here(pattern, values, limits.stop, flags=flags)
    return _with_guarded([Question(pattern, value, flags, lists) for value in values], here, limits)


def search_each(questions: Sequence[Question], limits: Limits | None = None) -> list[Answer]:
    """Return the result of ``search`` for each text with its own pattern, or the exception that it raises."""
    limits = limits or Limits()
    here: list[Answer | None] = []
    for pattern, text_, flags, lists in questions:
        here += [None] if lists else search_here(pattern, [text_], limits.stop, flags=flags)
    return _with_guarded(questions, here, limits)


def _with_guarded(questions: Sequence[Question], here: Sequence[Answer | None], limits: Limits) -> list[Answer]:
    """Fill in the answers that need ``re`` in separate processes; equal questions are asked once."""
    if None not in here:
        return [answer for answer in here if answer is not None]
    from assay.expressions.regex.guarded import guarded_search  # few patterns need it

    undecided = Counter(question for question, answer in zip(questions, here, strict=True) if answer is None)
    others = _answers_by_positions([*undecided], limits)
    distinct = [question for question in undecided if question not in others]

    def late(question: Question) -> None:
        note_timeout(limits, undecided[question])

    answers = guarded_search(distinct, seconds=limits.regex_timeout, stop=limits.stop, late=late)
    others.update(zip(distinct, answers, strict=True))
    return [others[question] if answer is None else answer for question, answer in zip(questions, here, strict=True)]


_FIRST_TRY = 0.05
"""Seconds of processor time that ``re`` gets for a text where sets of positions can answer …"""
_TRIED_TOGETHER = 256
"""… and texts after which it gets less, if it was late, …"""
_LAST_TRY = 0.005
"""… but not less than this."""


def _answers_by_positions(questions: Sequence[Question], limits: Limits) -> dict[Question, Answer]:
    """Answer what sets of positions can answer: by ``re``, and by them where it is late."""
    from assay.expressions.regex.guarded import guarded_search  # as above

    patterns = {(question.pattern, question.flags) for question in questions if not question.lists}
    expressed = {pattern for pattern in patterns if _positions(*pattern)[0] is not None}
    able = [question for question in questions if not question.lists and question.compiled[:2] in expressed]
    answers: dict[Question, Answer] = {}
    late = 0
    for start in range(0, len(able), _TRIED_TOGETHER):
        tried, seconds = able[start : start + _TRIED_TOGETHER], max(_FIRST_TRY / (1 + late), _LAST_TRY)
        for question, answer in zip(tried, guarded_search(tried, seconds=seconds, stop=limits.stop), strict=True):
            verdict: Answer | None = answer
            if isinstance(answer, TimeoutError | MemoryError | RuntimeError) and not isinstance(answer, RecursionError):
                late += 1
                verdict = _answer_by_positions(question)
            if verdict is not None:
                answers[question] = verdict
    return answers


_FEW = 8
"""Texts of a pattern that are searched by sets of positions first: a query of the linear engine takes longer, and to write its pattern two milliseconds."""
_STEPS = 50_000
"""Steps for each of them, which take half a millisecond."""


def _answer_by_positions(question: Question, steps: int | None = None) -> bool | None:
    positions_, _ = _positions(question.pattern, question.flags)
    try:
        return None if positions_ is None else on_any_stack(lambda: positions_.search(question.text, steps))
    except (TooManyStepsError, RecursionError):
        return None


def note_timeout(limits: Limits, rows: int) -> None:
    """Count rows that timed out, and tell the user once."""
    if limits.timeouts is None or limits.regex_timeout is None:
        return
    note = limits.timeouts.add(limits.check, rows, limits.regex_timeout)
    if note is not None:
        with not_quiet():
            warnings.warn(note, AssayWarning, stacklevel=1)


def search_here(
    pattern: str, values: Sequence[str], stop: threading.Event | None = None, *, flags: int = 0
) -> list[Answer | None]:
    """Run ``search_all`` in this process, in bounded time; None for texts that need ``re`` in a separate process."""
    answers = _quick_answers(pattern, values, flags, stop)
    if None not in answers:
        return answers
    try:
        waiting = [at for at, answer in enumerate(answers) if answer is None]
        if len(waiting) <= _FEW:
            for at in waiting:
                answers[at] = _answer_by_positions(Question(pattern, values[at], flags), _STEPS)
            if None not in answers:
                return answers
        chosen = route(pattern, flags)
        if chosen.in_columns:
            waiting = [at for at, answer in enumerate(answers) if answer is None and _goes_into_a_column(values[at])]
            linear = linear_answers(pl.Series("text", [values[at] for at in waiting], dtype=pl.String), chosen)
            for at, answer in zip(waiting, linear.to_list(), strict=True):
                answers[at] = answer
    except RecursionError:  # a new process has an empty stack
        pass
    except Exception as error:  # noqa: BLE001  (what Python says of the pattern, and bugs of re)
        return [error if answer is None else answer for answer in answers]
    return answers


def _goes_into_a_column(text_: str) -> bool:
    return text_.isascii() or encodable(text_) == text_


def _quick_answers(
    pattern: str, values: Sequence[str], flags: int, stop: threading.Event | None = None
) -> list[Answer | None]:
    """Return the verdicts of ``re`` for those texts on which it cannot take long."""
    if stop is not None and stop.is_set():
        raise KeyboardInterrupt
    longest = quick_size(pattern, flags)
    if all(len(value) > longest for value in values):
        return [None] * len(values)
    try:
        find = compile_pattern(pattern, flags).search
    except RecursionError:  # a new process has an empty stack
        return [None] * len(values)
    except Exception as error:  # noqa: BLE001  (re has bugs of its own, too)
        return [error] * len(values)
    answers: list[Answer | None] = []
    for value in values:
        if stop is not None and stop.is_set():
            raise KeyboardInterrupt
        try:
            answers.append(find(value) is not None if len(value) <= longest else None)
        except RecursionError:  # a new process has an empty stack
            answers.append(None)
        except Exception as error:  # noqa: BLE001  (re has bugs of its own, too: "span of capturing group is wrong")
            answers.append(error)
    return answers


def linear_answers(values: pl.Series, chosen: Route) -> pl.Series:
    """Return the verdicts of the linear engine, null for texts that it cannot decide."""
    if chosen.conditions:
        return reduce(and_, (linear_answers(values, route) == wanted for wanted, route in chosen.conditions))
    if not chosen.linear:
        return nulls(values, pl.Boolean)
    folded = ascii_lower(values) if chosen.lowered else values
    if chosen.beyond is None:
        return _any_of(folded, chosen.linear)
    answers = _decided(chosen.linear, chosen.beyond, [folded, ~is_ascii(values), values])
    if chosen.disputed:
        disputed = values.to_frame().select_seq(is_disputed(pl.col(values.name))).to_series()
        return answers.set(disputed.fill_null(value=False), None)
    return answers


def backtracking_lane(pattern: str, limits: Limits | None = None, lists: str = "") -> SharedColumn | None:
    """Return a lane for the rows that the linear engine cannot decide; ``lists`` as for ``search``."""
    chosen = route(pattern, lists=lists)
    if chosen.in_columns and not chosen.disputed:
        return None

    def answers(texts: pl.Series) -> pl.Series:
        results = search_all(pattern, texts.drop_nulls().to_list(), limits, lists=lists)
        frame = pl.DataFrame(
            {
                "found": [answer is True for answer in results],
                "error": [describe_error(answer) if isinstance(answer, Exception) else None for answer in results],
            },
            schema=_ANSWER,
        )
        if texts.null_count():
            frame = frame.select_seq(pl.all().gather(positions(texts.is_not_null())))
        return frame.to_struct(texts.name)

    def build(_: pl.Schema) -> pl.Expr:
        values = text()
        if chosen.disputed:
            values = pl.when(is_disputed(values)).then(values)
        return values.map_batches(answers, return_dtype=pl.Struct(_ANSWER), is_elementwise=True)

    return SharedColumn(f"regex:{lists}:{pattern}", build)


_ANSWER = {"found": pl.Boolean, "error": pl.String}


def search_expr(pattern: str, lists: str = "", limits: Limits | None = None) -> pl.Expr:
    """Return ``search`` as an elementwise Boolean expression over the completion's text and columns of lanes."""
    chosen, lane = route(pattern, lists=lists), backtracking_lane(pattern, limits, lists)
    others = [] if lane is None else [lane.col.struct.field("found")]
    return pl.coalesce(*others, *([_linear_expr(chosen)] if chosen.in_columns else []))


def _linear_expr(chosen: Route) -> pl.Expr:
    if chosen.conditions:
        return reduce(and_, (_linear_expr(route) == wanted for wanted, route in chosen.conditions))
    folded = ASCII_LOWER.col if chosen.lowered else text()
    if chosen.beyond is None:
        return reduce(or_, (folded.str.contains(pattern) for pattern in chosen.linear))
    decide = partial(_decided, chosen.linear, chosen.beyond)
    columns = [folded, BEYOND_ASCII.col, text()]
    return pl.map_batches(columns, decide, return_dtype=pl.Boolean, is_elementwise=True)


def _decided(linear: Sequence[str], beyond: Beyond, columns: Sequence[pl.Series]) -> pl.Series:
    """Search ASCII texts with narrowed patterns, and those beyond ASCII that these do not decide with the others."""
    folded, is_beyond, values = columns
    if not is_beyond.any():
        return _any_of(folded, linear)
    if is_small(values) and _BEYOND.is_frequent and values.estimated_size() <= THRESHOLDS.small_texts:
        return _any_of(values, beyond.patterns[1])
    if beyond.boundary is Boundary.NONE:
        matches = _any_of(folded, linear)
        undecided = is_beyond & ~matches
        if beyond.needed:
            possible = among(matches, undecided, values, partial(_any_of, patterns=beyond.needed))
            undecided = undecided & possible
    else:
        matches = among(nulls(values, pl.Boolean), ~is_beyond, folded, partial(_any_of, patterns=linear))
        undecided = is_beyond
        if beyond.needed:
            matches = among(matches, undecided, folded, partial(_any_of, patterns=beyond.needed))
            undecided = undecided & matches
        if beyond.enough:
            matches = among(matches, undecided, folded, partial(_any_of, patterns=beyond.enough))
            undecided = undecided & ~matches
    return among(matches, undecided, values, partial(_exactly_found, beyond=beyond))


@dataclass
class _TextsBeyond:
    """How many texts beyond ASCII needed Python's own classes: Python searches a few, then the linear engine's classes are written."""

    searched: int = 0

    @property
    def is_frequent(self) -> bool:
        """Whether the linear engine searches all that come."""
        return self.searched >= THRESHOLDS.beyond_rows


_BEYOND = _TextsBeyond()


def _answers_here(texts: pl.Series, beyond: Beyond) -> pl.Series | None:
    if beyond.pattern is None:
        return None
    answers = _quick_answers(beyond.pattern, texts.to_list(), beyond.flags)
    return pl.Series(answers, dtype=pl.Boolean) if all(isinstance(answer, bool) for answer in answers) else None


def _exactly_found(texts: pl.Series, beyond: Beyond) -> pl.Series:
    _BEYOND.searched += len(texts)
    if _BEYOND.searched <= THRESHOLDS.beyond_rows and (answers := _answers_here(texts, beyond)) is not None:
        return answers
    needed, exact = beyond.patterns
    possible = _any_of(texts, needed) if needed else ~_none_of(texts)
    return among(_none_of(texts), possible, texts, partial(_any_of, patterns=exact))


def _any_of(values: pl.Series, patterns: Sequence[str]) -> pl.Series:
    """Return whether one of the patterns matches; each is searched for in the texts that the earlier ones do not match."""
    if is_small(values):  # one query costs less than its parts
        texts = pl.col(values.name)
        return values.to_frame().select_seq(reduce(or_, map(texts.str.contains, patterns))).to_series()
    first, *others = patterns
    matches = values.str.contains(first)
    return among(matches, ~matches, values, partial(_any_of, patterns=others)) if others else matches


def _none_of(values: pl.Series) -> pl.Series:
    return pl.Series([False]).new_from_index(0, len(values))


def route(pattern: str, flags: int = 0, lists: str = "") -> Route:
    """Choose the engine for a pattern; cached. ``lists`` are as for ``search``."""
    return Route((), BY_PACKAGE) if lists else _route(pattern, flags, THRESHOLDS.linear_bytes)


def _size_of_route(chosen: Route, pattern: str, *_: int) -> int:
    others = (*chosen.beyond.needed, *chosen.beyond.enough) if chosen.beyond else ()
    inner = sum(_size_of_route(route, "") for _, route in chosen.conditions)
    return 4 * len(pattern) + sum(map(len, (*chosen.linear, *others))) + inner


@cached_within(16_000_000, _size_of_route)
def _route(pattern: str, flags: int, linear_bytes: int) -> Route:
    del linear_bytes  # part of the cache key only
    try:
        return on_any_stack(lambda: _linear_route(pattern, flags))
    except (NotLinearError, TooExpensiveError) as error:
        why = str(error)
    except RecursionError:
        why = _TOO_DEEP
    positions_, reason = _positions(pattern, flags)
    if positions_ is not None:
        return Route((), f"{_BY_RE}, and sets of positions where it takes long: {why}")
    return Route((), f"{_BY_RE}, {{limit}}: {why if reason == why else f'{why}; {reason}'}")


def _linear_route(pattern: str, flags: int) -> Route:
    tree = parsed(pattern, flags)
    if conditions := conditions_of(pattern, tree):
        routes = [(wanted, _linear_route(inner, tree.state.flags)) for wanted, inner in conditions]
        return Route((), _CONDITIONS, conditions=tuple(routes), disputed=any(route.disputed for _, route in routes))
    if has_many_cases(tree):
        with contextlib.suppress(NotLinearError):
            return _chosen(pattern, flags, tree, lowered=True)
    try:
        return _chosen(pattern, flags, tree, lowered=False)
    except NotLinearError:
        for other in _other_trees(tree):
            with contextlib.suppress(NotLinearError):
                return _chosen(pattern, flags, other, lowered=False, rewritten=True)
        raise


def _other_trees(tree: Any) -> Iterator[Any]:
    """Yield trees that match in the same texts and that the linear engine may run."""
    from assay.expressions.regex.trees.lookahead import without_look_ahead  # few patterns need it

    with contextlib.suppress(NotLinearError, RecursionError):
        if has_substitutes(tree):
            tree = with_substitutes(tree)
            yield tree
        yield without_look_ahead(tree)


def route_of_tree(tree: Any) -> Route:
    """Return the route of a parsed pattern by the linear engine."""
    return _chosen(None, 0, tree, lowered=False, rewritten=True)


def _chosen(pattern: str | None, flags: int, tree: Any, *, lowered: bool, rewritten: bool = False) -> Route:
    texts_beyond = partial(Beyond, pattern, flags, tree=tree if rewritten else None)
    ascii_only = narrowed(tree, Boundary.ASCII, lowered=lowered)
    if ascii_only.size > THRESHOLDS.linear_bytes:  # perhaps
        linear(tree, Boundary.ASCII)
    if not ascii_only.boundary:
        if not (ascii_only.cut or ascii_only.alike):
            return Route(ascii_only.patterns, _SAME, lowered=lowered)
        needed: tuple[str, ...] = () if ascii_only.cut else (ASCII_ALIKE,)
        return Route(ascii_only.patterns, _SAME, texts_beyond(Boundary.NONE, needed), lowered=lowered)
    with contextlib.suppress(NotLinearError):
        edges = narrowed(tree, Boundary.EDGES, lowered=lowered)
        if edges.size > THRESHOLDS.linear_bytes:
            linear(tree, Boundary.EDGES)
        needed = () if edges.cut else narrowed(tree, Boundary.NONE, lowered=lowered).patterns
        needed += (ASCII_ALIKE,) if needed and edges.alike else ()
        beyond = texts_beyond(Boundary.EDGES, needed, edges.likely + edges.patterns)
        return Route(ascii_only.patterns, _EDGES, beyond, lowered=lowered)
    beyond = texts_beyond(Boundary.ENGINE)
    return Route(ascii_only.patterns, _DISPUTED, beyond, disputed=True, lowered=lowered)


@cached_within(16_000_000, lambda patterns, *_: sum(map(len, (*patterns[0], *patterns[1]))))
def _patterns_beyond(pattern: str, flags: int, boundary: Boundary) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the patterns that are necessary for a match, fast and possibly none, and the exact ones."""
    return _patterns_of_tree(parsed(pattern, flags), boundary)


@lru_cache(maxsize=64)
def _patterns_of_tree(tree: Any, boundary: Boundary) -> tuple[tuple[str, ...], tuple[str, ...]]:
    needed = () if boundary is Boundary.NONE else linear(tree, Boundary.NONE)
    return needed, on_any_stack(lambda: linear(tree, boundary))


_BY_RE = "Python's re in a separate process"
BY_PACKAGE = "the package regex in a separate process, {limit}"
"""The reason of a route for ``flavor: regex``."""
_SAME = "linear engine: the same verdict on every text"
_EDGES = "linear engine; beyond ASCII, \\b becomes a class of Python's \\w"
_CONDITIONS = "linear engine, for each of the conditions at the start of the text"
_DISPUTED = f"linear engine; {_BY_RE} for rows with characters that are \\w in only one engine (\\b)"
_TOO_DEEP = "a pattern nested too deeply"


def check_pattern(pattern: str, lists: str = "") -> None:
    """Check that Python accepts a pattern; or the package ``regex``, with lists."""
    with contextlib.suppress(TooExpensiveError, RecursionError):
        if not lists:
            parsed(pattern, 0)
            compile_pattern(pattern)
            return
    from assay.expressions.regex.guarded import guarded_search  # as above

    (answer,) = guarded_search([Question(pattern, "", lists=lists)], seconds=1.0)
    if isinstance(answer, Exception):
        raise answer


@cached_within(16_000_000, lambda _, pattern, __: 600 * len(pattern))
def _positions(pattern: str, flags: int) -> tuple[Positions | None, str]:
    try:
        return on_any_stack(lambda: Positions(parsed(pattern, flags))), ""
    except (NotPositionsError, TooExpensiveError, re.error, OverflowError) as reason:
        return None, str(reason)
    except RecursionError:
        return None, _TOO_DEEP


def is_disputed(values: pl.Expr) -> pl.Expr:
    """Return whether each text has a character that is a word character in only one of Python and Polars."""
    return beyond_ascii(values).str.contains(_disputed_words())


@lru_cache(maxsize=1)
def _disputed() -> frozenset[str]:
    """Return the code points that are word characters in only one of Python and Polars."""
    scalars = SCALARS(BEYOND_LETTERS)
    by_polars = pl.Series([scalars]).str.replace_all(r"\W+", "").item()  # half the time of extracting each character
    return frozenset(by_polars) ^ frozenset(re.sub(r"\W+", "", scalars))


@lru_cache(maxsize=1)
def _disputed_words() -> str:
    return as_class("".join(_disputed()))


_START = re.compile(r"(?:\(\?[aimsu]+\))?(?:\^|\\A)")
_STARTS = (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING)
_ANYTHING = (".*?", ".*", r"[\s\S]*?", r"[\s\S]*")
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:[^\]\\]|\\.)*\]|[()]", re.DOTALL)


def conditions_of(pattern: str, tree: Any) -> list[tuple[bool, str]]:
    """Split a pattern that begins with the start of the text and look-aheads."""
    items, flags = list(tree), tree.state.flags
    if len(items) < 2 or items[0][0] is not sre.AT or items[0][1] not in _STARTS:  # noqa: PLR2004  (the start and a look-ahead)
        return []
    if flags & (sre.SRE_FLAG_VERBOSE | sre.SRE_FLAG_MULTILINE) or (start := _START.match(pattern)) is None:
        return []
    conditions, at = [], start.end()
    for op, value in items[1:]:
        if op not in (sre.ASSERT, sre.ASSERT_NOT) or value[0] < 0:
            break
        end = _end_of_group(pattern, at)
        inner = pattern[at + 3 : end - 1]
        if not pattern.startswith(("(?=", "(?!"), at) or not _is(inner, flags, value[1]):
            return []
        conditions.append((op is sre.ASSERT, _anywhere(inner, flags, value[1]) or rf"\A(?:{inner})"))
        at = end
    rest = pattern[at:]
    if not conditions or not _is(rest, flags, items[1 + len(conditions) :]):
        return []
    return [*conditions, (True, rf"\A(?:{rest})")] if rest else conditions


def _anywhere(inner: str, flags: int, items: Any) -> str:
    """Return the part of a pattern after ``.*``, which may then stand anywhere in the text; ``""`` if there is none."""
    for anything in _ANYTHING if flags & sre.SRE_FLAG_DOTALL else _ANYTHING[2:]:
        rest = inner.removeprefix(anything)
        if rest and rest != inner and _is(anything, flags, items[:1]) and _is(rest, flags, items[1:]):
            return rest
    return ""


def _end_of_group(pattern: str, start: int) -> int:
    """Return the index after the bracket that closes the group at an index; the end of the pattern if none does."""
    depth = 0
    for token in _TOKEN.finditer(pattern, start):
        depth += {"(": 1, ")": -1}.get(token.group(), 0)
        if not depth:
            return token.end()
    return len(pattern)


def _is(text: str, flags: int, items: Any) -> bool:
    """Return whether a part of a pattern, by itself, is parsed as in the whole."""
    try:
        return repr(list(parsed(text, flags))) == repr(list(items))
    except re.error:
        return False
