r"""``re.search`` as an expression: the linear engine where it provably agrees with Python, an engine that backtracks elsewhere.

Whether a match exists is a question about the pattern's language, so greed, laziness, capture and the order of alternatives
do not matter to it. The pattern is read by Python's own parser and written anew for the linear engine:

* every set of characters (classes, ``\w \d \s .``, anything under IGNORECASE) becomes the explicit set of code points that
  Python's own matcher accepts, found by asking it about all of them;
* ``^ $ \A \Z`` become anchors that mean the same; ``$`` without MULTILINE also matches before a final newline, which can be
  written only where nothing follows it;
* ``\b`` is exact on rows without a code point on which the two engines disagree about ``\w``; other rows backtrack;
* look-around, back-references, atomic groups, possessive repeats, ``\B``, flags ``a`` or ``u`` of a group, and repeats of
  something that may be empty backtrack, and so does a pattern too large for the linear engine.

What backtracks has a time limit for each match (``backtrack``), but for the few patterns that only Python's ``re`` can answer.
"""

import contextlib
import re
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from assay.errors import said_by
from assay.lanes.backtrack import NotSameError, found_within, rewritten
from assay.lanes.base import Lane, rowwise, text
from assay.lanes.charsets import CHARACTERS, accepted
from assay.lanes.words import SCALARS, as_class, beyond_ascii
from assay.limits import Limits

__all__ = [
    "Route",
    "backtracking_lane",
    "compile_pattern",
    "linear_answers",
    "quick",
    "route",
    "search",
    "search_expr",
]

_TYPE_FLAGS = sre.SRE_FLAG_ASCII | sre.SRE_FLAG_LOCALE | sre.SRE_FLAG_UNICODE


@dataclass(frozen=True)
class Route:
    """Which engine answers for a pattern, and why.

    Attributes:
        linear: The pattern rewritten for the linear engine, or None when every row backtracks.
        why: One sentence for ``assay explain``; ``{limit}`` stands for how long a match may take.
        boundary: Whether rows with a code point of disputed word-ness backtrack.
    """

    linear: str | None
    why: str
    boundary: bool = False

    def backtracks(self, value: str) -> bool:
        """Whether a text is one that the linear engine does not answer for."""
        disputed = self.boundary and not value.isascii() and not _disputed().isdisjoint(value)
        return self.linear is None or disputed


class _NotLinearError(Exception):
    """A construct that the linear engine cannot express exactly; the message names it."""


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


def quick(pattern: str, size: int) -> bool:
    """Whether ``re`` itself cannot take long: the pattern is a sequence of single characters, few of them repeated.

    Each repeat may try every length at every place, and no more, for there is nothing that nests.

    Args:
        pattern: A regular expression.
        size: Code points of the text.
    """
    repeats = len(_REPEAT.findall(pattern)) if _FLAT.fullmatch(pattern) else None
    return repeats is not None and size ** (repeats + 1) <= _STEPS


_FLAT = re.compile(r"(?:\(\?i\))?(?:[^(|\\]|\\.)*", re.DOTALL)
_REPEAT = re.compile(r"(?<!\\)(?:\\\\)*[*+?{]")
_STEPS = 10_000_000


def search(pattern: str, value: str, limits: Limits | None = None, *, flags: int = 0) -> bool:
    """The definition: whether ``re.search`` finds the pattern, no flags but inline ones.

    Raises:
        TimeoutError: It needs backtracking, and takes longer than the limits allow.
    """
    if quick(pattern, len(value)):
        return compile_pattern(pattern, flags).search(value) is not None
    way = route(pattern, flags)
    if way.backtracks(value) and (written := _rewritten(pattern, flags)[0]) is not None:
        return found_within(written, value, (limits or Limits()).regex_timeout)
    return compile_pattern(pattern, flags).search(value) is not None


def linear_answers(values: pl.Series, way: Route) -> pl.Series:
    """What the linear engine answers, null for the texts that it does not answer for."""
    if way.linear is None:
        return pl.repeat(None, len(values), dtype=pl.Boolean, eager=True)
    found = pl.col(values.name).str.contains(way.linear)
    if way.boundary:
        found = pl.when(_is_disputed(pl.col(values.name)).not_()).then(found)
    return values.to_frame().select(found).to_series()


def backtracking_lane(pattern: str, limits: Limits | None = None) -> Lane | None:
    """What an engine that backtracks answers on the rows that need it: a struct of ``found`` and ``error``, null on all others.

    Returns:
        The lane, or None when no row ever needs it.
    """
    way = route(pattern)
    if way.linear is not None and not way.boundary:
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
        if way.boundary:
            asked = pl.when(_is_disputed(text())).then(text())
        return rowwise(asked, answer, pl.Struct({"found": pl.Boolean, "error": pl.String}))

    return Lane(f"regex:{pattern}", build)


def search_expr(pattern: str) -> pl.Expr:
    """``search`` as an elementwise Boolean expression over the completion's text and the column of ``backtracking_lane``."""
    way, lane = route(pattern), backtracking_lane(pattern)
    asked = [] if lane is None else [lane.col.struct.field("found")]
    fast = [] if way.linear is None else [text().str.contains(way.linear)]
    return pl.coalesce(*asked, *fast)


@lru_cache(maxsize=4096)
def route(pattern: str, flags: int = 0) -> Route:
    """Decide, once a pattern, which engine answers for it.

    Raises:
        re.error: Python does not accept the pattern.
    """
    tree = _parsed(pattern, flags)
    writer = _Writer()
    try:
        linear = writer.sequence(list(tree), tree.state.flags, tail=True)
        pl.Series([""], dtype=pl.String).str.contains(linear)
    except _NotLinearError as wrong:
        why = str(wrong)
    except RecursionError:
        why = "a pattern nested too deeply for the linear engine"
    except PolarsError:
        why = "a pattern too large for the linear engine"
    else:
        if not writer.boundary:
            return Route(linear, "linear engine: the same verdict on every text")
        return Route(
            linear, f"linear engine; {_BACKTRACKING} for rows with characters of disputed word-ness (\\b)", True
        )
    written, reason = _rewritten(pattern, flags)
    if written is not None:
        return Route(None, f"{_BACKTRACKING}: {why}")
    return Route(None, f"Python's re, no time limit: {why if reason == why else f'{why}; {reason}'}")


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


class _Writer:
    """Writes a parsed pattern in the linear engine's syntax, or raises ``_NotLinearError``."""

    def __init__(self) -> None:
        self.boundary = False

    def sequence(self, items: list[tuple[Any, Any]], flags: int, *, tail: bool) -> str:
        """A concatenation; ``tail`` says that nothing follows it in the whole pattern."""
        last = len(items) - 1
        return "".join(self.item(op, value, flags, tail=tail and at == last) for at, (op, value) in enumerate(items))

    def item(self, op: Any, value: Any, flags: int, *, tail: bool) -> str:
        """One node of the tree."""
        if op in CHARACTERS:
            return _char_set(op, value, flags)
        if op is sre.AT:
            return self.anchor(value, flags, tail=tail)
        if op is sre.BRANCH:
            return "(?:" + "|".join(self.sequence(list(way), flags, tail=tail) for way in value[1]) + ")"
        if op is sre.SUBPATTERN:
            _, add, remove, inner = value
            if add & _TYPE_FLAGS:  # CPython searches ahead with the flags outside: its verdict is not the tree's
                raise _NotLinearError("scoped a/u flags")
            return "(?:" + self.sequence(list(inner), (flags | add) & ~remove, tail=tail) + ")"
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            return self.repeat(value, flags, tail=tail)
        raise _NotLinearError(_NAMES.get(str(op), str(op).lower().replace("_", " ")))

    def repeat(self, value: Any, flags: int, *, tail: bool) -> str:
        """A greedy or lazy repeat: the same language."""
        low, high, inner = value
        if high != 1 and inner.getwidth()[0] == 0:
            raise _NotLinearError("a repeat of something that may be empty")
        body = self.sequence(list(inner), flags, tail=tail and high == 1)
        return f"(?:{body}){{{low},{'' if high is sre.MAXREPEAT else high}}}"

    def anchor(self, where: Any, flags: int, *, tail: bool) -> str:
        """A position."""
        multiline = bool(flags & sre.SRE_FLAG_MULTILINE)
        if where is sre.AT_BOUNDARY and not flags & sre.SRE_FLAG_ASCII:
            self.boundary = True
            return r"\b"
        if where is sre.AT_END and not (multiline or tail):
            raise _NotLinearError("$ with something after it")
        if where not in _ANCHORS:
            raise _NotLinearError(r"\B")
        return _ANCHORS[where][multiline]


_ANCHORS = {  # without and with MULTILINE
    sre.AT_BEGINNING_STRING: (r"\A", r"\A"),
    sre.AT_BEGINNING: (r"\A", "(?m:^)"),
    sre.AT_END_STRING: (r"\z", r"\z"),
    sre.AT_END: (r"(?:\x{A}?\z)", "(?m:$)"),
    sre.AT_BOUNDARY: (r"(?-u:\b)", r"(?-u:\b)"),
}
_NAMES = {
    "ASSERT": "look-around",
    "ASSERT_NOT": "look-around",
    "GROUPREF": "a back-reference",
    "GROUPREF_EXISTS": "a conditional group",
    "ATOMIC_GROUP": "an atomic group",
    "POSSESSIVE_REPEAT": "a possessive repeat",
    "FAILURE": "a pattern that can never match",
}


def _char_set(op: Any, value: Any, flags: int) -> str:
    """The code points a single-character node accepts, as the linear engine writes them."""
    ranges = accepted(op, value, flags)
    if not ranges:
        raise _NotLinearError("a class that no character is in")
    return "[" + "".join(f"\\x{{{first:X}}}-\\x{{{last:X}}}" for first, last in ranges) + "]"


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
