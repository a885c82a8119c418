r"""``re.search`` as an expression, for every pattern that Python accepts.

Whether a match exists depends only on the pattern's language, not on greediness, captures or the order of alternatives. There are
four engines:

* *Columns*: Polars' linear engine, with the pattern parsed by Python's own parser and rewritten (``linear``). ``\b`` is an ASCII
  boundary on ASCII texts. On other texts it becomes a class for the neighbouring character if the character on one side is certainly
  (not) a word character; if not, rows with a code point on which the engines disagree about ``\w`` use another engine.
* *Rows*: ``re`` itself, if it cannot take long for this pattern and this size of text.
* *Rows*: sets of positions (``positions``), with a limit on steps.
* *Rows*: ``re`` in a separate process with limits on time and memory (``guarded``), for back-references and the like, and for
  patterns that are too large for the other engines.

No pattern takes more memory or time than these limits; only the last one, on time, may give a different result in another run.
"""

import contextlib
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial, reduce
from operator import or_
from typing import Any

import polars as pl

from assay.calls.limits import Limits
from assay.errors import said_by
from assay.expressions.lane import Lane, nulls, rowwise, text
from assay.expressions.regex.compiled import TooExpensiveError, compile_pattern, parsed, quick
from assay.expressions.regex.guarded import Answer, guarded_search
from assay.expressions.regex.linear import Boundary, NotLinearError, linear
from assay.expressions.regex.positions import NotPositionsError, Positions, TooManyStepsError
from assay.expressions.text import BEYOND_ASCII, SCALARS, Texts, as_class, beyond_ascii, is_ascii
from assay.system.cache import cached_within
from assay.system.stacks import on_any_stack
from assay.thresholds import THRESHOLDS

__all__ = [
    "Route",
    "backtracking_lane",
    "check_pattern",
    "lanes",
    "linear_answers",
    "route",
    "route_of_tree",
    "search",
    "search_all",
    "search_expr",
    "search_here",
]


@dataclass(frozen=True)
class Route:
    """The engine for a pattern, and the reason.

    Attributes:
        linear: The pattern rewritten for the linear engine, as alternative patterns; empty if every row needs another engine.
        why: A sentence for ``assay explain``; ``{limit}`` stands for the time limit of a match.
        beyond: Patterns for texts beyond ASCII, if they differ: fast ones that are necessary for a match, then the exact ones.
        disputed: Whether rows with a code point on whose word-ness the engines disagree need another engine.
    """

    linear: tuple[str, ...]
    why: str
    beyond: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    disputed: bool = False

    def needs_other_engine(self, value: str) -> bool:
        """Return whether the linear engine cannot decide a text."""
        disputed = self.disputed and not value.isascii() and not _disputed().isdisjoint(value)
        return not self.linear or disputed


def search(pattern: str, value: str, limits: Limits | None = None, *, flags: int = 0) -> bool:
    """Return whether ``re.search`` finds the pattern: the definition in Python.

    Raises:
        re.error: Python does not accept the pattern.
        TimeoutError: The match needs ``re``, and takes longer than the limit.
        MemoryError: The match needs ``re``, and takes more memory than the limit.
    """
    (answer,) = search_all(pattern, [value], limits, flags=flags)
    if isinstance(answer, Exception):
        raise answer
    return answer


def search_all(pattern: str, values: Sequence[str], limits: Limits | None = None, *, flags: int = 0) -> list[Answer]:
    """Return the result of ``search`` for each text, or the exception that it raises.

    Raises:
        KeyboardInterrupt: The run has to stop.
    """
    limits = limits or Limits()
    here = search_here(pattern, values, limits.stop, flags=flags)
    undecided = [value for value, answer in zip(values, here, strict=True) if answer is None]
    guarded = guarded_search(pattern, undecided, flags=flags, seconds=limits.regex_timeout, stop=limits.stop)
    others = iter(guarded)
    return [next(others) if answer is None else answer for answer in here]


def search_here(
    pattern: str, values: Sequence[str], stop: threading.Event | None = None, *, flags: int = 0
) -> list[Answer | None]:
    """Run ``search_all`` in this process, in bounded time; None for texts that need ``re`` in a separate process.

    It uses ``re`` if that cannot take long, else sets of positions; if they exceed their limit of steps, the linear engine, if it can
    decide the text.

    Raises:
        KeyboardInterrupt: The run has to stop.
    """
    answers = []
    for value in values:
        if stop is not None and stop.is_set():
            raise KeyboardInterrupt
        answers.append(_search_here(pattern, value, flags))
    return answers


def _search_here(pattern: str, value: str, flags: int) -> Answer | None:
    try:
        if quick(pattern, len(value), flags):
            return compile_pattern(pattern, flags).search(value) is not None
        positions, _ = _positions(pattern, flags)
        if positions is None:
            return None
        with contextlib.suppress(TooManyStepsError, RecursionError):
            return on_any_stack(lambda: positions.search(value))
        chosen = route(pattern, flags)
        return (
            None
            if chosen.needs_other_engine(value)
            else bool(linear_answers(pl.Series("text", [value]), chosen).item())
        )
    except (TooExpensiveError, RecursionError):  # a new process has an empty stack
        return None
    except Exception as error:  # noqa: BLE001  (re has bugs of its own, too: "span of capturing group is wrong")
        return error


def linear_answers(values: pl.Series, chosen: Route) -> pl.Series:
    """Return the verdicts of the linear engine, null for texts that it cannot decide."""
    if not chosen.linear:
        return nulls(values, pl.Boolean)
    texts = pl.col(values.name)
    answers = _linear_expr(chosen, texts, is_ascii(texts).not_())
    if chosen.disputed:
        answers = pl.when(_is_disputed(texts).not_()).then(answers)
    return values.to_frame().select(answers).to_series()


def backtracking_lane(pattern: str, limits: Limits | None = None) -> Lane | None:
    """Return a lane for the rows that the linear engine cannot decide.

    Returns:
        A lane with a struct of ``found`` and ``error`` from ``search_all``, null on the other rows; None if no row ever needs it.
    """
    chosen = route(pattern)
    if chosen.linear and not chosen.disputed:
        return None

    def answer(_: object, values: list[str]) -> list[dict[str, object]]:
        return [
            {"found": answer is True, "error": said_by(answer) if isinstance(answer, Exception) else None}
            for answer in search_all(pattern, values, limits)
        ]

    def build(_: pl.Schema) -> pl.Expr:
        values = text()
        if chosen.disputed:
            values = pl.when(_is_disputed(values)).then(values)
        return rowwise(values, bool, pl.Struct({"found": pl.Boolean, "error": pl.String}), each=answer)

    return Lane(f"regex:{pattern}", build)


def lanes(pattern: str, limits: Limits | None = None) -> tuple[Lane, ...]:
    """Return the lanes that ``search_expr`` reads."""
    lane = backtracking_lane(pattern, limits)
    return (*(() if lane is None else (lane,)), *((BEYOND_ASCII,) if route(pattern).beyond else ()))


def search_expr(pattern: str) -> pl.Expr:
    """Return ``search`` as an elementwise Boolean expression over the completion's text and the columns of ``lanes``."""
    chosen, lane = route(pattern), backtracking_lane(pattern)
    others = [] if lane is None else [lane.col.struct.field("found")]
    return pl.coalesce(*others, *([_linear_expr(chosen, text(), BEYOND_ASCII.col)] if chosen.linear else []))


def _linear_expr(chosen: Route, values: pl.Expr, beyond: pl.Expr) -> pl.Expr:
    """Return the linear engine's verdicts, given which texts contain a code point beyond ASCII."""
    answers = _any_of(values, chosen.linear)
    if chosen.beyond is None:
        return answers
    exact = partial(_search_beyond, *chosen.beyond)
    return pl.coalesce(pl.map_batches([values, beyond], exact, return_dtype=pl.Boolean, is_elementwise=True), answers)


def _search_beyond(needed: Sequence[str], exact: Sequence[str], columns: Sequence[pl.Series]) -> pl.Series:
    """Return whether the exact patterns match the texts beyond ASCII, null for the others.

    NOTE: texts are filtered, not masked, because Polars also searches the values behind nulls.
    """
    values, beyond = columns
    at, texts = beyond.arg_true(), values.filter(beyond)
    possible = _any_of(texts, needed)
    hits = at.filter(possible).filter(_any_of(texts.filter(possible), exact))
    return nulls(values, pl.Boolean).scatter(at, values=False).scatter(hits, values=True)


def _any_of(values: Texts, patterns: Sequence[str]) -> Texts:
    return reduce(or_, (values.str.contains(pattern) for pattern in patterns))


def route(pattern: str, flags: int = 0) -> Route:
    """Choose the engine for a pattern; cached.

    Raises:
        re.error: Python does not accept the pattern.
    """
    return _route(pattern, flags, THRESHOLDS.linear_bytes)


def _size_of_route(chosen: Route, pattern: str, *_: int) -> int:
    needed, exact = chosen.beyond or ((), ())
    return 4 * len(pattern) + sum(map(len, (*chosen.linear, *needed, *exact)))


@cached_within(16_000_000, _size_of_route)
def _route(pattern: str, flags: int, linear_bytes: int) -> Route:
    del linear_bytes  # part of the cache key only
    try:
        return on_any_stack(lambda: _linear_route(pattern, flags))
    except (NotLinearError, TooExpensiveError) as error:
        why = str(error)
    except RecursionError:
        why = _TOO_DEEP
    positions, reason = _positions(pattern, flags)
    if positions is not None:
        return Route((), f"{_POSITIONS}: {why}")
    return Route((), f"Python's re in a separate process, {{limit}}: {why if reason == why else f'{why}; {reason}'}")


def _linear_route(pattern: str, flags: int) -> Route:
    """Return the route by the linear engine.

    Raises:
        NotLinearError: The linear engine cannot express the pattern.
        TooExpensiveError: The pattern is too expensive for this process.
        RecursionError: The stack overflows.
    """
    return route_of_tree(parsed(pattern, flags))


def route_of_tree(tree: Any) -> Route:
    """Return the route of a parsed pattern by the linear engine.

    Raises:
        NotLinearError: The linear engine cannot express the pattern.
        RecursionError: The stack overflows.
    """
    patterns, boundary = linear(tree, Boundary.ASCII)
    if not boundary:
        return Route(patterns, "linear engine: the same verdict on every text")
    with contextlib.suppress(NotLinearError):
        beyond = linear(tree, Boundary.NONE)[0], linear(tree, Boundary.EDGES)[0]
        return Route(patterns, "linear engine; beyond ASCII, \\b becomes a class of Python's \\w", beyond)
    patterns = linear(tree, Boundary.ENGINE)[0]
    why = f"linear engine; {_POSITIONS} for rows with characters that are \\w in only one engine (\\b)"
    return Route(patterns, why, disputed=True)


_POSITIONS = "sets of positions, with a limit of steps"
_TOO_DEEP = "a pattern nested too deeply"


def check_pattern(pattern: str) -> None:
    """Check that Python accepts a pattern.

    Raises:
        re.error: It does not; other exceptions of ``re.compile`` are raised, too.
        TimeoutError: The check takes too long.
    """
    try:
        parsed(pattern, 0)
        compile_pattern(pattern)
    except (TooExpensiveError, RecursionError):
        (answer,) = guarded_search(pattern, [""], seconds=1.0)
        if isinstance(answer, Exception):
            raise answer from None


@cached_within(16_000_000, lambda _, pattern, __: 600 * len(pattern))
def _positions(pattern: str, flags: int) -> tuple[Positions | None, str]:
    """Return the pattern as sets of positions; or None, and the reason."""
    try:
        return on_any_stack(lambda: Positions(parsed(pattern, flags))), ""
    except (NotPositionsError, TooExpensiveError) as reason:
        return None, str(reason)
    except RecursionError:
        return None, _TOO_DEEP


def _is_disputed(values: pl.Expr) -> pl.Expr:
    return beyond_ascii(values).str.contains(_disputed_words())


@lru_cache(maxsize=1)
def _disputed() -> frozenset[str]:
    """Return the code points that are word characters in only one of Python and Polars."""
    scalars = SCALARS()
    # half the time of extracting each character
    by_polars = pl.Series([scalars]).str.replace_all(r"\W+", "").item()
    return frozenset(by_polars) ^ frozenset(re.sub(r"\W+", "", scalars))


@lru_cache(maxsize=1)
def _disputed_words() -> str:
    """Return a character class of them."""
    return as_class("".join(_disputed()))
