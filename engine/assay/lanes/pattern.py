r"""``re.search`` as an expression: the linear engine where it provably agrees with Python, Python elsewhere.

Whether a match exists is a question about the pattern's language, so greed, laziness, capture and the order of alternatives
do not matter to it. The pattern is read by Python's own parser and written anew for the linear engine:

* every set of characters (classes, ``\w \d \s .``, anything under IGNORECASE) becomes the explicit set of code points that
  Python's own matcher accepts, found by asking it about all of them;
* ``^ $ \A \Z`` become anchors that mean the same; ``$`` without MULTILINE also matches before a final newline, which can be
  written only where nothing follows it;
* ``\b`` is exact on rows without a code point on which the two engines disagree about ``\w``; other rows go to Python;
* look-around, back-references, atomic groups, possessive repeats, ``\B``, flags ``a`` or ``u`` of a group, and repeats of
  something that may be empty go to Python, and so does a pattern too large for the linear engine.
"""

import contextlib
import re
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from re import _compiler as sre_compiler  # type: ignore[attr-defined]
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from assay.lanes.base import Lane, rowwise, text
from assay.lanes.words import SCALARS, as_class, beyond_ascii

__all__ = ["Route", "compile_pattern", "python_lane", "route", "search", "search_expr"]

_TYPE_FLAGS = sre.SRE_FLAG_ASCII | sre.SRE_FLAG_LOCALE | sre.SRE_FLAG_UNICODE
_SURROGATES = range(0xD800, 0xE000)


@dataclass(frozen=True)
class Route:
    """Which engine answers for a pattern, and why.

    Attributes:
        linear: The pattern rewritten for the linear engine, or None when every row goes to Python.
        why: One sentence for ``assay explain``.
        boundary: Whether rows with a code point of disputed word-ness go to Python.
    """

    linear: str | None
    why: str
    boundary: bool = False


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


def search(pattern: str, value: str) -> bool:
    """The definition: whether ``re.search`` finds the pattern, no flags but inline ones."""
    return compile_pattern(pattern).search(value) is not None


def python_lane(pattern: str) -> Lane | None:
    """What Python answers on the rows that need it: a struct of ``found`` and ``error``, null on all other rows.

    Returns:
        The lane, or None when no row ever needs Python.
    """
    way = route(pattern)
    if way.linear is not None and not way.boundary:
        return None
    compiled = compile_pattern(pattern)

    def answer(value: str) -> dict[str, object]:
        try:
            return {"found": compiled.search(value) is not None, "error": None}
        except Exception as wrong:  # noqa: BLE001  (re has bugs of its own: "span of capturing group is wrong")
            return {"found": False, "error": f"{type(wrong).__name__}: {wrong}"}

    def build(_: pl.Schema) -> pl.Expr:
        asked = text()
        if way.boundary:
            asked = pl.when(beyond_ascii(text()).str.contains(_disputed_words())).then(text())
        return rowwise(asked, answer, pl.Struct({"found": pl.Boolean, "error": pl.String}))

    return Lane(f"regex:{pattern}", build)


def search_expr(pattern: str) -> pl.Expr:
    """``search`` as an elementwise Boolean expression over the completion's text and the column of ``python_lane``."""
    way, lane = route(pattern), python_lane(pattern)
    asked = [] if lane is None else [lane.col.struct.field("found")]
    fast = [] if way.linear is None else [text().str.contains(way.linear)]
    return pl.coalesce(*asked, *fast)


@lru_cache(maxsize=4096)
def route(pattern: str, flags: int = 0) -> Route:
    """Decide, once a pattern, which engine answers for it.

    Raises:
        re.error: Python does not accept the pattern.
    """
    with _quiet():
        tree = sre_parser.parse(pattern, flags)
    writer = _Writer()
    try:
        linear = writer.sequence(list(tree), tree.state.flags, tail=True)
    except _NotLinearError as reason:
        return Route(None, f"Python's re: {reason}")
    except RecursionError:
        return Route(None, "Python's re: the pattern is nested too deeply for the linear engine")
    try:
        pl.Series([""], dtype=pl.String).str.contains(linear)
    except PolarsError:
        return Route(None, "Python's re: the pattern is too large for the linear engine")
    if writer.boundary:
        return Route(
            linear, "linear engine; Python's re for rows with characters of disputed word-ness (\\b)", boundary=True
        )
    return Route(linear, "linear engine: the same verdict on every text")


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
        if op in (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN):
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
    if op is sre.ANY:
        return r"[\x{0}-\x{10FFFF}]" if flags & sre.SRE_FLAG_DOTALL else r"[^\x{A}]"
    if op in (sre.LITERAL, sre.NOT_LITERAL):
        if value in _SURROGATES:
            raise _NotLinearError("a lone surrogate")
        if not flags & sre.SRE_FLAG_IGNORECASE:
            return ("" if op is sre.LITERAL else "^").join(("[", f"\\x{{{value:X}}}]"))
        if op is sre.LITERAL:
            return _folded_literal(value, flags)
    items = tuple(value) if op is sre.IN else value
    return _asked(op, items, flags & (sre.SRE_FLAG_IGNORECASE | sre.SRE_FLAG_ASCII | sre.SRE_FLAG_UNICODE))


def _matcher(op: Any, value: Any, flags: int) -> re.Pattern[str]:
    """Python's own matcher of runs of this one node."""
    state = sre_parser.State()
    state.flags = flags
    state.str = ""
    node = sre_parser.SubPattern(state, [(op, list(value) if op is sre.IN else value)])
    runs = sre_parser.SubPattern(state, [(sre.MAX_REPEAT, (1, sre.MAXREPEAT, node))])
    pattern: re.Pattern[str] = sre_compiler.compile(runs, flags)
    return pattern


@lru_cache(maxsize=1024)
def _asked(op: Any, value: Any, flags: int) -> str:
    """Ask Python's matcher about every code point."""
    scalars = SCALARS()
    runs = [match.span() for match in _matcher(op, value, flags).finditer(scalars)]
    if not runs:
        raise _NotLinearError("a class that no character is in")
    return "[" + "".join(f"\\x{{{ord(scalars[a]):X}}}-\\x{{{ord(scalars[b - 1]):X}}}" for a, b in runs) + "]"


@lru_cache(maxsize=4096)
def _folded_literal(value: int, flags: int) -> str:
    """The code points that a literal accepts under IGNORECASE; only code points that case at all need asking."""
    matcher = _matcher(sre.LITERAL, value, flags)
    return as_class("".join(code for code in {chr(value), *_cased()} if matcher.fullmatch(code)))


@lru_cache(maxsize=1)
def _cased() -> str:
    """Every code point that has another case, or is another's."""
    scalars = SCALARS()
    blocks = (scalars[at : at + 256] for at in range(0, len(scalars), 256))
    changing = [block for block in blocks if block.lower() != block or block.upper() != block]
    cased = {code for block in changing for code in block if code.lower() != code or code.upper() != code}
    return "".join(sorted(cased | set("".join(code.lower() + code.upper() for code in cased))))


@lru_cache(maxsize=1)
def _disputed_words() -> str:
    """A class of the code points that one engine calls a word character and the other does not."""
    scalars = SCALARS()
    theirs = "".join(pl.Series([scalars]).str.extract_all(r"\w").explode().to_list())
    ours = "".join(re.findall(r"\w+", scalars))
    return as_class("".join(set(theirs) ^ set(ours)))
