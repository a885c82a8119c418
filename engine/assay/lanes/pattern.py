r"""``re.search`` as an expression: the linear engine where it provably agrees with Python, Python elsewhere.

Whether a match exists is a question about the pattern's language, so greed, laziness, capture and the order of alternatives
do not matter to it. The pattern is read by Python's own parser and written anew for the linear engine:

* every set of characters (classes, ``\w \d \s .``, anything under IGNORECASE) becomes the explicit set of code points that
  Python's own matcher accepts, found by asking it about all of them;
* ``^ $ \A \Z`` become anchors that mean the same; ``$`` without MULTILINE also matches before a final newline, which can be
  written only where nothing follows it;
* ``^`` under MULTILINE at the head of a pattern becomes two patterns, one that begins the text and one that begins with a line
  break, which the engine finds much faster;
* ``\b`` is an ASCII boundary on ASCII texts. On others, where it is certain what stands on one side of it (``edges``), it
  becomes the neighbour it asks for: nothing, or one of the code points that Python calls (no) word character. Where it is not,
  rows with a code point on which the two engines disagree about ``\w`` go to Python;
* look-around, back-references, atomic groups, possessive repeats, ``\B``, flags ``a`` or ``u`` of a group, and repeats of
  something that may be empty go to Python, and so does a pattern too large for the linear engine.
"""

import contextlib
import re
import threading
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache, partial, reduce
from operator import or_
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any, TypeVar

import polars as pl
from polars.exceptions import PolarsError

from assay.lanes.base import Lane, nothing, rowwise, text
from assay.lanes.charsets import NotLinearError, char_set
from assay.lanes.edges import Items, neighbour, word_at
from assay.lanes.words import BEYOND_ASCII, SCALARS, as_class, beyond_ascii

__all__ = ["Route", "compile_pattern", "lanes", "linear_expr", "python_lane", "route", "search", "search_expr"]

_TYPE_FLAGS = sre.SRE_FLAG_ASCII | sre.SRE_FLAG_LOCALE | sre.SRE_FLAG_UNICODE


@dataclass(frozen=True)
class Route:
    """Which engine answers for a pattern, and why.

    Attributes:
        linear: The pattern rewritten for the linear engine, as patterns of which one is found; none when every row goes to Python.
        why: One sentence for ``assay explain``.
        beyond: For texts beyond ASCII, where those need other patterns: first what is in all that match, found quickly, then the exact ones.
        disputed: Whether rows with a code point of disputed word-ness go to Python.
    """

    linear: tuple[str, ...]
    why: str
    beyond: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    disputed: bool = False


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


def search(pattern: str, value: str) -> bool:
    """The definition: whether ``re.search`` finds the pattern, no flags but inline ones."""
    return compile_pattern(pattern).search(value) is not None


def python_lane(pattern: str) -> Lane | None:
    """What Python answers on the rows that need it: a struct of ``found`` and ``error``, null on all other rows.

    Returns:
        The lane, or None when no row ever needs Python.
    """
    way = route(pattern)
    if way.linear and not way.disputed:
        return None
    compiled = compile_pattern(pattern)

    def answer(value: str) -> dict[str, object]:
        try:
            return {"found": compiled.search(value) is not None, "error": None}
        except Exception as wrong:  # noqa: BLE001  (re has bugs of its own: "span of capturing group is wrong")
            return {"found": False, "error": f"{type(wrong).__name__}: {wrong}"}

    def build(_: pl.Schema) -> pl.Expr:
        asked = text()
        if way.disputed:
            asked = pl.when(beyond_ascii(text()).str.contains(_disputed_words())).then(text())
        return rowwise(asked, answer, pl.Struct({"found": pl.Boolean, "error": pl.String}))

    return Lane(f"regex:{pattern}", build)


def lanes(pattern: str) -> tuple[Lane, ...]:
    """The lanes that ``search_expr`` reads."""
    lane = python_lane(pattern)
    return (*(() if lane is None else (lane,)), *((BEYOND_ASCII,) if route(pattern).beyond else ()))


def search_expr(pattern: str) -> pl.Expr:
    """``search`` as an elementwise Boolean expression over the completion's text and the columns of ``lanes``."""
    way, lane = route(pattern), python_lane(pattern)
    asked = [] if lane is None else [lane.col.struct.field("found")]
    return pl.coalesce(*asked, *([linear_expr(way, text(), BEYOND_ASCII.col)] if way.linear else []))


def linear_expr(way: Route, values: pl.Expr, beyond: pl.Expr) -> pl.Expr:
    """What the linear engine says.

    Args:
        way: Of a pattern that has one for it.
        values: The texts.
        beyond: Which of them hold a code point beyond ASCII; not read where the same patterns serve them.
    """
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


_Texts = TypeVar("_Texts", pl.Expr, pl.Series)


def _any_of(values: _Texts, patterns: Sequence[str]) -> _Texts:
    return reduce(or_, (values.str.contains(pattern) for pattern in patterns))


@lru_cache(maxsize=4096)
def route(pattern: str, flags: int = 0) -> Route:
    """Decide, once a pattern, which engine answers for it.

    Raises:
        re.error: Python does not accept the pattern.
    """
    with _quiet():
        tree = sre_parser.parse(pattern, flags)
    try:
        linear, boundary = _written(tree, _Boundary.ASCII)
        if not boundary:
            return Route(linear, "linear engine: the same verdict on every text")
        with contextlib.suppress(NotLinearError):
            beyond = (_written(tree, _Boundary.NONE)[0], _written(tree, _Boundary.EDGES)[0])
            return Route(linear, "linear engine; for texts beyond ASCII with \\b as Python's word characters", beyond)
        linear = _written(tree, _Boundary.ENGINE)[0]
    except NotLinearError as reason:
        return Route((), f"Python's re: {reason}")
    except RecursionError:
        return Route((), "Python's re: the pattern is nested too deeply for the linear engine")
    why = "linear engine; Python's re for rows with characters of disputed word-ness (\\b)"
    return Route(linear, why, disputed=True)


class _Boundary(Enum):
    r"""What is written for ``\b``."""

    ASCII = r"(?-u:\b)"
    ENGINE = r"\b"
    NONE = ""
    EDGES = "what stands beside it"


def _written(tree: Any, boundary: _Boundary) -> tuple[tuple[str, ...], bool]:
    """The pattern in the linear engine's syntax, and whether there is a boundary in it.

    Raises:
        NotLinearError: It cannot be written so.
    """
    writer = _Writer(boundary)
    items, flags = list(tree), tree.state.flags
    starts: tuple[str, ...] = ("",)
    if items[:1] == [(sre.AT, sre.AT_BEGINNING)] and flags & sre.SRE_FLAG_MULTILINE:
        del items[0]
        starts = (r"\A", r"\n")
    body = writer.sequence(items, flags, head=len(starts) == 1, tail=True)
    patterns = tuple(start + body for start in starts)
    try:
        for one in patterns:
            pl.Series([""], dtype=pl.String).str.contains(one)
    except PolarsError:
        raise NotLinearError("the pattern is too large for the linear engine") from None
    return patterns, writer.boundary


class _Writer:
    """Writes a parsed pattern in the linear engine's syntax, or raises ``NotLinearError``."""

    def __init__(self, boundary: _Boundary) -> None:
        self._boundary = boundary
        self.boundary = False

    def sequence(self, items: list[tuple[Any, Any]], flags: int, *, head: bool, tail: bool) -> str:
        """A concatenation; ``head`` and ``tail`` say that nothing stands before or after it in the whole pattern."""
        last = len(items) - 1
        written = []
        for at, (op, value) in enumerate(items):
            first, final = head and at == 0, tail and at == last
            if (op, value) == (sre.AT, sre.AT_BOUNDARY) and not flags & sre.SRE_FLAG_ASCII:
                self.boundary = True
                written.append(self.between(items[:at], items[at + 1 :], flags, head=first, tail=final))
            else:
                written.append(self.item(op, value, flags, head=first, tail=final))
        return "".join(written)

    def between(self, before: Items, after: Items, flags: int, *, head: bool, tail: bool) -> str:
        """A boundary of words."""
        if self._boundary is not _Boundary.EDGES:
            return str(self._boundary.value)
        left, right = word_at(before, flags, end=True), word_at(after, flags, end=False)
        if left is not None and right is not None and left != right:
            return ""
        inner = right if head else left if tail else None
        if inner is None:
            raise NotLinearError("a boundary between what may be any character")
        return neighbour(word=not inner, edge=(r"\A" if head else r"\z") if inner else "")

    def item(self, op: Any, value: Any, flags: int, *, head: bool, tail: bool) -> str:
        """One node of the tree."""
        if op in (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN):
            return char_set(op, value, flags)
        if op is sre.AT:
            return self.anchor(value, flags, tail=tail)
        if op is sre.BRANCH:
            return "(?:" + "|".join(self.sequence(list(way), flags, head=head, tail=tail) for way in value[1]) + ")"
        if op is sre.SUBPATTERN:
            _, add, remove, inner = value
            if add & _TYPE_FLAGS:  # CPython searches ahead with the flags outside: its verdict is not the tree's
                raise NotLinearError("scoped a/u flags")
            return "(?:" + self.sequence(list(inner), (flags | add) & ~remove, head=head, tail=tail) + ")"
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            return self.repeat(value, flags, head=head, tail=tail)
        raise NotLinearError(_NAMES.get(str(op), str(op).lower().replace("_", " ")))

    def repeat(self, value: Any, flags: int, *, head: bool, tail: bool) -> str:
        """A greedy or lazy repeat: the same language."""
        low, high, inner = value
        if high != 1 and inner.getwidth()[0] == 0:
            raise NotLinearError("a repeat of something that may be empty")
        body = self.sequence(list(inner), flags, head=head and high == 1, tail=tail and high == 1)
        return f"(?:{body}){{{low},{'' if high is sre.MAXREPEAT else high}}}"

    def anchor(self, where: Any, flags: int, *, tail: bool) -> str:
        """A position."""
        multiline = bool(flags & sre.SRE_FLAG_MULTILINE)
        if where is sre.AT_END and not (multiline or tail):
            raise NotLinearError("$ with something after it")
        if where not in _ANCHORS:
            raise NotLinearError(r"\B")
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


@lru_cache(maxsize=1)
def _disputed_words() -> str:
    """A class of the code points that one engine calls a word character and the other does not."""
    scalars = SCALARS()
    theirs = "".join(pl.Series([scalars]).str.extract_all(r"\w").explode().to_list())
    ours = "".join(re.findall(r"\w+", scalars))
    return as_class("".join(set(theirs) ^ set(ours)))
