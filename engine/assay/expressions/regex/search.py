r"""``re.search`` as an expression, for every pattern that Python accepts.

Whether a match exists is a question about the pattern's language, so greed, laziness, capture and the order of alternatives
do not matter to it. Four engines answer:

* *Columns*: the linear engine, with the pattern read by Python's own parser and written anew (``linear``). ``\b`` is an ASCII
  boundary on ASCII texts. On others it becomes the neighbour it asks for, where it is certain what stands on one side of it;
  where it is not, rows with a code point on which the two engines disagree about ``\w`` go elsewhere.
* *Rows*: ``re`` itself, where the pattern and the size of the text say that it cannot take long.
* *Rows*: sets of positions (``positions``), whose steps are counted.
* *Rows*: ``re`` in a process of its own, with limits of time and memory (``guarded``): for back-references and their like, and
  for what is too large for the others.

No pattern takes more memory or time than these limits, and only the last limit, of time, may end differently the next time.
"""

import contextlib
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial, reduce
from operator import or_

import polars as pl

from assay.calls.limits import Limits
from assay.errors import said_by
from assay.expressions.lane import Lane, nothing, rowwise, text
from assay.expressions.regex.compiled import DearError, compile_pattern, parsed, quick
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
    "search",
    "search_all",
    "search_expr",
    "search_here",
]


@dataclass(frozen=True)
class Route:
    """Which engine answers for a pattern, and why.

    Attributes:
        linear: The pattern rewritten for the linear engine, as patterns of which one is found; none when every row backtracks.
        why: One sentence for ``assay explain``; ``{limit}`` stands for how long a match may take.
        beyond: For texts beyond ASCII, where those need other patterns: first what is in all that match, found quickly, then
            the exact ones.
        disputed: Whether rows with a code point of disputed word-ness backtrack.
    """

    linear: tuple[str, ...]
    why: str
    beyond: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    disputed: bool = False

    def backtracks(self, value: str) -> bool:
        """Whether a text is one that the linear engine does not answer for."""
        disputed = self.disputed and not value.isascii() and not _disputed().isdisjoint(value)
        return not self.linear or disputed


def search(pattern: str, value: str, limits: Limits | None = None, *, flags: int = 0) -> bool:
    """The definition: whether ``re.search`` finds the pattern, no flags but inline ones.

    Raises:
        re.error: Python does not accept the pattern.
        TimeoutError: Only ``re`` can tell, and it takes longer than the limits allow.
        MemoryError: Or more memory.
    """
    (answer,) = search_all(pattern, [value], limits, flags=flags)
    if isinstance(answer, Exception):
        raise answer
    return answer


def search_all(pattern: str, values: Sequence[str], limits: Limits | None = None, *, flags: int = 0) -> list[Answer]:
    """``search`` in each text, with what it raises as its answer.

    Raises:
        KeyboardInterrupt: The run is to stop.
    """
    limits = limits or Limits()
    here = search_here(pattern, values, limits.stop, flags=flags)
    asked = [value for value, answer in zip(values, here, strict=True) if answer is None]
    guarded = guarded_search(pattern, asked, flags=flags, seconds=limits.regex_timeout, stop=limits.stop)
    others = iter(guarded)
    return [next(others) if answer is None else answer for answer in here]


def search_here(
    pattern: str, values: Sequence[str], stop: threading.Event | None = None, *, flags: int = 0
) -> list[Answer | None]:
    """``search_all`` in this process, which takes no text and no pattern long; None where only ``re`` can tell, in another.

    ``re`` is asked where it cannot take long; else sets of positions are, whose steps are counted; where they do not come to an
    end, the linear engine, if it has an answer.

    Raises:
        KeyboardInterrupt: The run is to stop.
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
        way = route(pattern, flags)
        return None if way.backtracks(value) else bool(linear_answers(pl.Series("text", [value]), way).item())
    except (DearError, RecursionError):  # a new process has the whole stack
        return None
    except Exception as error:  # noqa: BLE001  (re has bugs of its own, too: "span of capturing group is wrong")
        return error


def linear_answers(values: pl.Series, way: Route) -> pl.Series:
    """What the linear engine answers, null for the texts that it does not answer for."""
    if not way.linear:
        return nothing(values, pl.Boolean)
    texts = pl.col(values.name)
    found = _linear_expr(way, texts, is_ascii(texts).not_())
    if way.disputed:
        found = pl.when(_is_disputed(texts).not_()).then(found)
    return values.to_frame().select(found).to_series()


def backtracking_lane(pattern: str, limits: Limits | None = None) -> Lane | None:
    """What ``search_all`` answers on the rows that the linear engine does not: a struct of ``found`` and ``error``, null on others.

    Returns:
        The lane, or None when no row ever needs it.
    """
    way = route(pattern)
    if way.linear and not way.disputed:
        return None

    def answer(_: object, values: list[str]) -> list[dict[str, object]]:
        return [
            {"found": answer is True, "error": said_by(answer) if isinstance(answer, Exception) else None}
            for answer in search_all(pattern, values, limits)
        ]

    def build(_: pl.Schema) -> pl.Expr:
        asked = text()
        if way.disputed:
            asked = pl.when(_is_disputed(text())).then(text())
        return rowwise(asked, bool, pl.Struct({"found": pl.Boolean, "error": pl.String}), each=answer)

    return Lane(f"regex:{pattern}", build)


def lanes(pattern: str, limits: Limits | None = None) -> tuple[Lane, ...]:
    """The lanes that ``search_expr`` reads."""
    lane = backtracking_lane(pattern, limits)
    return (*(() if lane is None else (lane,)), *((BEYOND_ASCII,) if route(pattern).beyond else ()))


def search_expr(pattern: str) -> pl.Expr:
    """``search`` as an elementwise Boolean expression over the completion's text and the columns of ``lanes``."""
    way, lane = route(pattern), backtracking_lane(pattern)
    asked = [] if lane is None else [lane.col.struct.field("found")]
    return pl.coalesce(*asked, *([_linear_expr(way, text(), BEYOND_ASCII.col)] if way.linear else []))


def _linear_expr(way: Route, values: pl.Expr, beyond: pl.Expr) -> pl.Expr:
    """What the linear engine says of texts, given which of them hold a code point beyond ASCII."""
    found = _any_of(values, way.linear)
    if way.beyond is None:
        return found
    exact = partial(_search_beyond, *way.beyond)
    return pl.coalesce(pl.map_batches([values, beyond], exact, return_dtype=pl.Boolean, is_elementwise=True), found)


def _search_beyond(needed: Sequence[str], exact: Sequence[str], columns: Sequence[pl.Series]) -> pl.Series:
    """What the exact patterns find in the texts beyond ASCII, null for the others.

    NOTE: texts are filtered, not masked, for the engine searches what stands behind a null too.
    """
    values, beyond = columns
    at, texts = beyond.arg_true(), values.filter(beyond)
    possible = _any_of(texts, needed)
    hits = at.filter(possible).filter(_any_of(texts.filter(possible), exact))
    return nothing(values, pl.Boolean).scatter(at, values=False).scatter(hits, values=True)


def _any_of(values: Texts, patterns: Sequence[str]) -> Texts:
    return reduce(or_, (values.str.contains(pattern) for pattern in patterns))


def route(pattern: str, flags: int = 0) -> Route:
    """Decide, once a pattern, which engine answers for it.

    Raises:
        re.error: Python does not accept the pattern.
    """
    return _route(pattern, flags, THRESHOLDS.linear_bytes)


def _size_of_route(way: Route, pattern: str, *_: int) -> int:
    needed, exact = way.beyond or ((), ())
    return 4 * len(pattern) + sum(map(len, (*way.linear, *needed, *exact)))


@cached_within(16_000_000, _size_of_route)
def _route(pattern: str, flags: int, linear_bytes: int) -> Route:
    del linear_bytes  # it decides, too
    try:
        return on_any_stack(lambda: _linear_route(pattern, flags))
    except (NotLinearError, DearError) as error:
        why = str(error)
    except RecursionError:
        why = _TOO_DEEP
    positions, reason = _positions(pattern, flags)
    if positions is not None:
        return Route((), f"{_POSITIONS}: {why}")
    return Route((), f"Python's re in a process of its own, {{limit}}: {why if reason == why else f'{why}; {reason}'}")


def _linear_route(pattern: str, flags: int) -> Route:
    """The route by the linear engine, as far as it goes.

    Raises:
        NotLinearError: It does not take the pattern.
        DearError: The pattern is not to be looked at.
        RecursionError: The stack does not suffice.
    """
    tree = parsed(pattern, flags)
    patterns, boundary = linear(tree, Boundary.ASCII)
    if not boundary:
        return Route(patterns, "linear engine: the same verdict on every text")
    with contextlib.suppress(NotLinearError):
        beyond = linear(tree, Boundary.NONE)[0], linear(tree, Boundary.EDGES)[0]
        return Route(patterns, "linear engine; beyond ASCII, \\b asks for a neighbour in Python's \\w", beyond)
    patterns = linear(tree, Boundary.ENGINE)[0]
    said = f"linear engine; {_POSITIONS} for rows with characters of disputed word-ness (\\b)"
    return Route(patterns, said, disputed=True)


_POSITIONS = "sets of positions, with a limit of steps"
_TOO_DEEP = "a pattern nested too deeply"


def check_pattern(pattern: str) -> None:
    """Whether Python accepts a pattern.

    Raises:
        re.error: It does not; or whatever else ``re.compile`` raises.
        TimeoutError: It takes too long to tell.
    """
    try:
        parsed(pattern, 0)
        compile_pattern(pattern)
    except (DearError, RecursionError):
        (answer,) = guarded_search(pattern, [""], seconds=1.0)
        if isinstance(answer, Exception):
            raise answer from None


@cached_within(16_000_000, lambda _, pattern, __: 600 * len(pattern))
def _positions(pattern: str, flags: int) -> tuple[Positions | None, str]:
    """The pattern as sets of positions; where there is none, why not."""
    try:
        return on_any_stack(lambda: Positions(parsed(pattern, flags))), ""
    except (NotPositionsError, DearError) as reason:
        return None, str(reason)
    except RecursionError:
        return None, _TOO_DEEP


def _is_disputed(values: pl.Expr) -> pl.Expr:
    return beyond_ascii(values).str.contains(_disputed_words())


@lru_cache(maxsize=1)
def _disputed() -> frozenset[str]:
    """The code points that one engine calls a word character and the other does not."""
    scalars = SCALARS()
    theirs = "".join(pl.Series([scalars]).str.extract_all(r"\w").explode().to_list())
    ours = "".join(re.findall(r"\w+", scalars))
    return frozenset(theirs) ^ frozenset(ours)


@lru_cache(maxsize=1)
def _disputed_words() -> str:
    """A class of them."""
    return as_class("".join(_disputed()))
