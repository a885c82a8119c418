r"""``re.search`` as an expression: the linear engine where it provably agrees with Python, an engine that backtracks elsewhere.

Whether a match exists is a question about the pattern's language, so greed, laziness, capture and the order of alternatives
do not matter to it. The pattern is read by Python's own parser and written anew for the linear engine (``linear``). ``\b`` is an
ASCII boundary on ASCII texts. On others it becomes the neighbour it asks for, where it is certain what stands on one side of it;
where it is not, rows with a code point on which the two engines disagree about ``\w`` backtrack.

What backtracks has a time limit for each match (``backtrack``), but for the few patterns that only Python's ``re`` can answer.
"""

import contextlib
import re
import threading
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial, reduce
from operator import or_
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any

import polars as pl

from assay.errors import said_by
from assay.lanes.backtrack import NotSameError, found_within, rewritten
from assay.lanes.base import Lane, nothing, rowwise, text
from assay.lanes.charsets import CHARACTERS
from assay.lanes.linear import Boundary, NotLinearError, linear
from assay.lanes.words import BEYOND_ASCII, SCALARS, Texts, as_class, beyond_ascii, is_ascii
from assay.limits import REGEX_TIMEOUT, Limits
from assay.thresholds import THRESHOLDS

__all__ = [
    "Route",
    "backtracking_lane",
    "compile_pattern",
    "lanes",
    "linear_answers",
    "quick",
    "route",
    "search",
    "search_expr",
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


_QUIET = threading.Lock()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No warnings. NOTE: what they are set to is the whole process's, and two threads would restore it in the wrong order."""
    with _QUIET, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def compile_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Python's compiled pattern; its FutureWarnings about set syntax are for authors of Python code, not of specs."""
    with _quiet():
        return re.compile(pattern, flags)


def quick(pattern: str, size: int, flags: int = 0) -> bool:
    """Whether ``re`` itself cannot take long: what repeats is single characters, and few of them.

    Each repeat may try every length at every place, and each choice every way, but nothing nests.

    Args:
        pattern: A regular expression.
        size: Code points of the text.
        flags: Its flags.
    """
    if _FLAT.fullmatch(pattern):  # told without parsing it, for rows bring hundreds of thousands
        return bool(size ** (len(_REPEAT.findall(pattern)) + 1) <= THRESHOLDS.pattern_steps)
    tried = _tried_of(pattern, flags)
    return tried is not None and bool(tried[1] * size ** (tried[0] + 1) <= THRESHOLDS.pattern_steps)


_FLAT = re.compile(r"(?:\(\?i\))?(?:[^(|\\]|\\.)*", re.DOTALL)
_REPEAT = re.compile(r"(?<!\\)(?:\\\\)*[*+?{]")


@lru_cache(maxsize=4096)
def _tried_of(pattern: str, flags: int) -> tuple[int, int] | None:
    try:
        return _tried(_parsed(pattern, flags))
    except (re.error, OverflowError, RecursionError):  # whoever compiles it will say so
        return None


def _tried(items: Any) -> tuple[int, int] | None:
    """How many repeats a sequence has, and ways to choose; None where something nests, or needs backtracking in any case."""
    repeats, ways = 0, 1
    for op, value in items:
        if op in CHARACTERS or op is sre.AT:
            continue
        if op is sre.BRANCH:
            found = [_tried(way) for way in value[1]]
        elif op is sre.SUBPATTERN:
            found = [_tried(value[3])]
        elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT) and value[1] == 1:
            found = [(0, 1), _tried(value[2])]
        elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT) and len(value[2]) == 1 and value[2][0][0] in CHARACTERS:
            found = [(1, 1)]
        else:
            return None
        known = [one for one in found if one is not None]
        if len(known) < len(found):
            return None
        repeats, ways = repeats + max(one for one, _ in known), ways * sum(one for _, one in known)
    return repeats, ways


def search(pattern: str, value: str, limits: Limits | None = None, *, flags: int = 0) -> bool:
    """The definition: whether ``re.search`` finds the pattern, no flags but inline ones.

    ``re`` is asked where it cannot take long; else the engine that backtracks, whose matches can be given up. Where it does not
    come to an end, and the linear engine has an answer, that is it: a match never hangs, but for patterns that only ``re`` can do.

    Raises:
        TimeoutError: It needs backtracking, and takes longer than the limits allow.
    """
    if quick(pattern, len(value), flags):
        return compile_pattern(pattern, flags).search(value) is not None
    way, written = route(pattern, flags), _rewritten(pattern, flags)[0]
    if way.backtracks(value):
        if written is not None:
            return found_within(written, value, (limits or Limits()).regex_timeout)
        return compile_pattern(pattern, flags).search(value) is not None
    if written is not None:
        with contextlib.suppress(TimeoutError):
            return found_within(written, value, REGEX_TIMEOUT)
    return bool(linear_answers(pl.Series("text", [value]), way).item())


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
    """What an engine that backtracks answers on the rows that need it: a struct of ``found`` and ``error``, null on all others.

    Returns:
        The lane, or None when no row ever needs it.
    """
    way = route(pattern)
    if way.linear and not way.disputed:
        return None
    stop = None if limits is None else limits.stop

    def answer(value: str) -> dict[str, object]:
        if stop is not None and stop.is_set():
            raise KeyboardInterrupt
        try:
            return {"found": search(pattern, value, limits), "error": None}
        except Exception as wrong:  # noqa: BLE001  (too late; re has bugs of its own, too: "span of capturing group is wrong")
            return {"found": False, "error": said_by(wrong)}

    def build(_: pl.Schema) -> pl.Expr:
        asked = text()
        if way.disputed:
            asked = pl.when(_is_disputed(text())).then(text())
        return rowwise(asked, answer, pl.Struct({"found": pl.Boolean, "error": pl.String}))

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


@lru_cache(maxsize=4096)
def route(pattern: str, flags: int = 0) -> Route:
    """Decide, once a pattern, which engine answers for it.

    Raises:
        re.error: Python does not accept the pattern.
    """
    tree = _parsed(pattern, flags)
    try:
        patterns, boundary = linear(tree, Boundary.ASCII)
        if not boundary:
            return Route(patterns, "linear engine: the same verdict on every text")
        with contextlib.suppress(NotLinearError):
            beyond = linear(tree, Boundary.NONE)[0], linear(tree, Boundary.EDGES)[0]
            return Route(patterns, "linear engine; beyond ASCII, \\b asks for a neighbour in Python's \\w", beyond)
        patterns = linear(tree, Boundary.ENGINE)[0]
    except NotLinearError as wrong:
        why = str(wrong)
    else:
        said = f"linear engine; {_BACKTRACKING} for rows with characters of disputed word-ness (\\b)"
        return Route(patterns, said, disputed=True)
    written, reason = _rewritten(pattern, flags)
    if written is not None:
        return Route((), f"{_BACKTRACKING}: {why}")
    return Route((), f"Python's re, no time limit: {why if reason == why else f'{why}; {reason}'}")


_BACKTRACKING = "backtracking (`regex`, {limit})"


def _parsed(pattern: str, flags: int) -> Any:
    with _quiet():
        return sre_parser.parse(pattern, flags)


@lru_cache(maxsize=4096)
def _rewritten(pattern: str, flags: int) -> tuple[str | None, str]:
    """The pattern for the engine that backtracks; where there is none, why not."""
    try:
        return rewritten(_parsed(pattern, flags)), ""
    except NotSameError as reason:
        return None, str(reason)


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
