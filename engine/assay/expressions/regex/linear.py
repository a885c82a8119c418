r"""Translate Python's patterns to the syntax of the linear engine, if it can express them exactly.

* Every set of characters (classes, ``\w \d \s .``, anything under IGNORECASE) becomes the explicit set of code points that
  Python's own matcher accepts (``charsets``).
* ``^ $ \A \Z`` become equivalent anchors; ``$`` without MULTILINE also matches before a final newline, which can be expressed only at
  the end of the pattern.
* ``^`` under MULTILINE at the start of a pattern becomes two patterns, one for the start of the text and one that begins with a line
  break, which the engine finds much faster.
* ``\b`` is translated in one of four ways, because the engines disagree about ``\w``.
* Not supported: look-around, back-references, atomic groups, possessive repeats, ``\B``, flags ``a`` or ``u`` of a group, repeats of
  something that may be empty, and patterns that are too large or too deep.
"""

from enum import Enum
from re import _constants as sre  # type: ignore[attr-defined]
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from assay.expressions.regex.boundaries import Items, word_at
from assay.expressions.regex.charsets import CHARACTERS, Ranges, accepted, word_characters
from assay.thresholds import THRESHOLDS

__all__ = ["Boundary", "NotLinearError", "linear"]

_RANGE = 60
"""Bytes per range of a class in the engine: each ``\\w``, with 760 ranges, takes 45 kB."""
_TOO_LARGE = "a pattern too large for the linear engine"
_TYPE_FLAGS = sre.SRE_FLAG_ASCII | sre.SRE_FLAG_LOCALE | sre.SRE_FLAG_UNICODE


class NotLinearError(Exception):
    """The linear engine cannot express a construct exactly; the message names it."""


class Boundary(Enum):
    r"""The translation of ``\b``."""

    ASCII = r"(?-u:\b)"
    """Exact on ASCII texts."""
    ENGINE = r"\b"
    """Exact on texts without characters that are word characters in only one engine."""
    NONE = ""
    """Nothing: the pattern then matches in at least the same texts."""
    EDGES = "the neighbouring character"
    """Exact on every text, if it is certain which kind of character is beside it."""


def linear(tree: Any, boundary: Boundary) -> tuple[tuple[str, ...], bool]:
    r"""Translate a parsed pattern to alternative patterns that together match in the same texts.

    Returns:
        The patterns, and whether there is a ``\b`` in them.

    Raises:
        NotLinearError: The engine cannot express the pattern.
        RecursionError: The stack overflows.
    """
    writer = _Writer(boundary)
    items, flags = list(tree), tree.state.flags
    starts: tuple[str, ...] = ("",)
    if items[:1] == [(sre.AT, sre.AT_BEGINNING)] and flags & sre.SRE_FLAG_MULTILINE:
        del items[0]
        starts = (r"\A", r"\n")
    try:
        body = writer.sequence(items, flags, head=len(starts) == 1, tail=True)
        if writer.size > THRESHOLDS.linear_bytes:
            raise NotLinearError(_TOO_LARGE)
        patterns = tuple(start + body for start in starts)
        for pattern in patterns:
            pl.Series([""], dtype=pl.String).str.contains(pattern)
    except PolarsError:
        raise NotLinearError(_TOO_LARGE) from None
    return patterns, writer.boundary


class _Writer:
    """Writes a parsed pattern in the linear engine's syntax, or raises ``NotLinearError``."""

    def __init__(self, boundary: Boundary) -> None:
        self._boundary = boundary
        self.boundary = False
        self.size = 0  # estimated bytes of the written pattern

    def sequence(self, items: Items, flags: int, *, head: bool, tail: bool) -> str:
        """Write a concatenation; ``head`` and ``tail`` tell whether it is at the start or the end of the whole pattern."""
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
        """Write a word boundary."""
        if self._boundary is not Boundary.EDGES:
            return str(self._boundary.value)
        left, right = word_at(before, flags, end=True), word_at(after, flags, end=False)
        if left is not None and right is not None and left != right:
            return ""
        inner = right if head else left if tail else None
        if inner is None:
            raise NotLinearError("a boundary whose neighbours may be any characters")
        words = self.characters(word_characters(flags))
        edge = r"\A" if head else r"\z"
        return f"(?:{edge}|[^{words[1:]})" if inner else words

    def item(self, op: Any, value: Any, flags: int, *, head: bool, tail: bool) -> str:
        """Write a node of the tree."""
        if op in CHARACTERS:
            return self.characters(accepted(op, value, flags))
        if op is sre.AT:
            return self.anchor(value, flags, tail=tail)
        if op is sre.BRANCH:
            return "(?:" + "|".join(self.sequence(list(way), flags, head=head, tail=tail) for way in value[1]) + ")"
        if op is sre.SUBPATTERN:
            _, add, remove, inner = value
            if add & _TYPE_FLAGS:  # CPython's search uses the outer flags for its prefix, so it differs from the tree
                raise NotLinearError("scoped a/u flags")
            return "(?:" + self.sequence(list(inner), (flags | add) & ~remove, head=head, tail=tail) + ")"
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            return self.repeat(value, flags, head=head, tail=tail)
        raise NotLinearError(_NAMES.get(str(op), str(op).lower().replace("_", " ")))

    def repeat(self, value: Any, flags: int, *, head: bool, tail: bool) -> str:
        """Write a greedy or lazy repeat, which accept the same texts."""
        low, high, inner = value
        if high != 1 and inner.getwidth()[0] == 0:
            raise NotLinearError("a repeat of something that may be empty")
        once, before = high == 1, self.size
        body = self.sequence(list(inner), flags, head=head and once, tail=tail and once)
        copies = max(low, 1) if high is sre.MAXREPEAT else max(high, 1)
        self.size = before + (self.size - before) * copies
        return f"(?:{body}){{{low},{'' if high is sre.MAXREPEAT else high}}}"

    def characters(self, ranges: Ranges) -> str:
        """Write a set of code points."""
        self.size += _RANGE * len(ranges)
        if self.size > THRESHOLDS.linear_bytes:
            raise NotLinearError(_TOO_LARGE)
        return _class(ranges)

    def anchor(self, where: Any, flags: int, *, tail: bool) -> str:
        """Write an anchor."""
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


def _class(ranges: Ranges) -> str:
    """Return a character class for ranges of code points."""
    if not ranges:
        raise NotLinearError("an empty character class")
    # the engine rejects ranges that begin or end at a surrogate
    ends = ((_AFTER.get(first, first), _BEFORE.get(last, last)) for first, last in ranges)
    return "[" + "".join(f"\\x{{{first:X}}}-\\x{{{last:X}}}" for first, last in ends) + "]"


_AFTER = dict.fromkeys(range(0xD800, 0xE000), 0xE000)
_BEFORE = dict.fromkeys(range(0xD800, 0xE000), 0xD7FF)
