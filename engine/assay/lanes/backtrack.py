r"""Patterns that need backtracking, on an engine whose matches can be given up: the ``regex`` module.

``re`` cannot be interrupted, and ``regex`` is not ``re``: its tables, its folding and much of its syntax differ. So it never
sees what a user wrote. The pattern, read by Python's own parser, is written anew with nothing but what means the same to both:
explicit code points, explicit positions, and groups that are numbered by us. Three things stay with ``re``, for nobody can show
that the two agree:

* what CPython's versions do differently, or wrong: possessive repeats of more than one character, captures that are referred
  to out of a negative look-around, an atomic group or a look-behind;
* back-references under IGNORECASE, which fold by tables of their own, and references where something longer than one character
  repeats: ``regex`` remembers at which places a repeat failed, and forgets that with another capture it might not;
* repeats of something that may be empty, where they cannot be written as repeats of something that may not: ``regex`` may then
  never come back, time limit or not.
"""

import contextlib
import time
from collections.abc import Iterator
from functools import lru_cache
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any

from assay.lanes.charsets import CHARACTERS, Ranges, accepted, boundary_in_nothing, word_characters
from assay.limits import too_late

__all__ = ["NotSameError", "found_within", "rewritten"]

_REPEATS = {sre.MAX_REPEAT: "", sre.MIN_REPEAT: "?", sre.POSSESSIVE_REPEAT: "+"}
_TYPE_FLAGS = sre.SRE_FLAG_ASCII | sre.SRE_FLAG_LOCALE | sre.SRE_FLAG_UNICODE
_MAY_BE_EMPTY = "a repeat of something that may be empty"
_FEW = 16
"""Ranges that are looked through one by one; of more, the engine is first told where to look."""


class NotSameError(Exception):
    """A construct on which ``regex`` may differ from ``re``; the message names it."""


def rewritten(tree: Any) -> str:
    """A parsed pattern in the syntax of ``regex``.

    Raises:
        NotSameError: The two engines may differ.
    """
    try:
        written = _Writer(tree).sequence(tree, tree.state.flags)
        _compiled(written)
    except (RecursionError, OverflowError):
        raise NotSameError("a pattern nested too deeply") from None
    except _error() as wrong:
        raise NotSameError(f"a pattern that the backtracking engine refuses ({wrong})") from None
    return written


def found_within(written: str, value: str, seconds: float | None) -> bool:
    """Whether a pattern that was written anew is found.

    Raises:
        TimeoutError: It took longer than that.
    """
    compiled = _compiled(written)
    if seconds is None:
        return compiled.search(value) is not None
    started, allowed = time.thread_time(), seconds
    while True:
        try:
            return compiled.search(value, timeout=allowed) is not None
        except TimeoutError:
            # NOTE: its clock is the processor time of the whole process, all threads together; ours is this thread's
            if time.thread_time() - started >= seconds:
                raise too_late(seconds) from None
            allowed *= 2


def _error() -> type[Exception]:
    import regex

    error: type[Exception] = regex.error
    return error


@lru_cache(maxsize=4096)
def _compiled(written: str) -> Any:
    import regex

    return regex.compile(written, regex.V1)  # in this version sets nest


class _Writer:
    """Writes a parsed pattern in the syntax of ``regex``, or raises ``NotSameError``."""

    def __init__(self, tree: Any) -> None:
        self._wanted = {value if op is sre.GROUPREF else value[0] for op, value in _references(tree)}
        self._closed: set[int] = set()
        self._no_capture = ""  # why no group that is referred to may stand here
        self._in_order = False  # whether it matters which of several ways to match is tried first
        self._behind = False

    def sequence(self, items: Any, flags: int) -> str:
        """A concatenation."""
        return "".join(self.item(op, value, flags) for op, value in items)

    def item(self, op: Any, value: Any, flags: int) -> str:  # noqa: PLR0911  (one way out for each kind of node)
        """One node of the tree."""
        if op in CHARACTERS:
            return _one_of(accepted(op, value, flags))
        if op is sre.AT:
            return _position(value, flags)
        if op is sre.BRANCH:
            return "(?:" + "|".join(self.sequence(way, flags) for way in value[1]) + ")"
        if op is sre.SUBPATTERN:
            return self.group(value, flags)
        if op in _REPEATS:
            return self.repeat(op, value, flags)
        if op is sre.ATOMIC_GROUP and not self._behind:
            with self._within("an atomic group", in_order=True):
                return f"(?>{self.sequence(value, flags)})"
        if op in (sre.ASSERT, sre.ASSERT_NOT):
            return self.look(op, value, flags)
        if op is sre.FAILURE:
            return "(?!)"
        if op in (sre.GROUPREF, sre.GROUPREF_EXISTS):
            return self.reference(op, value, flags)
        raise NotSameError("an atomic group in a look-behind" if op is sre.ATOMIC_GROUP else str(op).lower())

    def group(self, value: Any, flags: int) -> str:
        """A group; it captures where something refers to it."""
        number, add, remove, inner = value
        if add & _TYPE_FLAGS:  # CPython searches ahead with the flags outside: its verdict is not the tree's
            raise NotSameError("scoped a/u flags")
        body = self.sequence(inner, (flags | add) & ~remove)
        if number not in self._wanted:
            return f"(?:{body})"
        if self._no_capture:
            raise NotSameError(f"a reference to a group in {self._no_capture}")
        self._closed.add(number)
        return f"(?P<g{number}>{body})"

    def reference(self, op: Any, value: Any, flags: int) -> str:
        """A back-reference, or a choice by whether a group has matched."""
        number, yes, no = (value, None, None) if op is sre.GROUPREF else value
        if number not in self._closed:
            raise NotSameError("a reference to a group that is not closed")
        if self._behind:
            raise NotSameError("a reference in a look-behind")
        if op is sre.GROUPREF and flags & sre.SRE_FLAG_IGNORECASE:
            raise NotSameError("a back-reference that ignores case")
        if op is sre.GROUPREF:
            return f"(?P=g{number})"
        return f"(?(g{number}){self.sequence(yes, flags)}|{self.sequence(no or (), flags)})"

    def look(self, op: Any, value: Any, flags: int) -> str:
        """Look-ahead and look-behind."""
        direction, inner = value
        behind, negative = direction < 0, op is sre.ASSERT_NOT
        here = "a look-behind" if behind else "a negative look-ahead" if negative else self._no_capture
        with self._within(here, in_order=bool(self._wanted), behind=behind):
            body = self.sequence(inner, flags)
        return f"(?{'<' if behind else ''}{'!' if negative else '='}{body})"

    def repeat(self, op: Any, value: Any, flags: int) -> str:
        """A greedy, lazy or possessive repeat."""
        low, high, inner = value
        if len(inner) == 1 and inner[0][0] in CHARACTERS:
            return self.times(self.sequence(inner, flags), low, high, _REPEATS[op])
        if op is sre.POSSESSIVE_REPEAT:
            raise NotSameError("a possessive repeat of more than one character")
        if (low, high) == (0, 1):
            body = self.sequence(inner, flags)
            return f"(?:{body}|)" if op is sre.MAX_REPEAT else f"(?:|{body})"
        if self._wanted:  # it may take a failure with one capture for a failure with any
            raise NotSameError("a reference, and a repeat of more than one character")
        ways = [inner]
        if high != 1 and inner.getwidth()[0] == 0:
            if high is not sre.MAXREPEAT or self._in_order:
                raise NotSameError(_MAY_BE_EMPTY)
            low, ways = 0, [*self._filling(inner)]
        body = "|".join(self.sequence(way, flags) for way in ways) if ways else "(?!)"
        return self.times(f"(?:{body})", low, high, _REPEATS[op])

    def times(self, body: str, low: int, high: Any, kind: str) -> str:
        """A repeat, written."""
        return f"{body}{{{low},{'' if high is sre.MAXREPEAT else high}}}{kind}"

    def _filling(self, items: Any) -> Iterator[Any]:
        """Sequences that are never empty, and make with any number of them what any number of ``items`` makes.

        Raises:
            NotSameError: There are none, for ``items`` holds a condition.
        """
        if items.getwidth()[0]:
            yield items
            return
        for op, value in items:  # each may be empty, so each alone is one of the things that all of them make
            if op is sre.BRANCH:
                for way in value[1]:
                    yield from self._filling(way)
            elif op is sre.SUBPATTERN and not (value[1] or value[2] or value[0] in self._wanted):
                yield from self._filling(value[3])
            elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT) and value[1]:
                yield from self._filling(value[2])
            else:
                raise NotSameError(_MAY_BE_EMPTY)

    @contextlib.contextmanager
    def _within(self, here: str, *, in_order: bool = False, behind: bool = False) -> Iterator[None]:
        before = self._no_capture, self._in_order, self._behind
        self._no_capture = self._no_capture or here
        self._in_order, self._behind = self._in_order or in_order, self._behind or behind
        yield
        self._no_capture, self._in_order, self._behind = before


def _references(node: Any) -> Iterator[tuple[Any, Any]]:
    """The nodes of a tree that refer to a group."""
    # NOTE: by identity, for the names of nodes equal plain numbers
    if isinstance(node, tuple) and node and (node[0] is sre.GROUPREF or node[0] is sre.GROUPREF_EXISTS):
        yield node[0], node[1]
    if isinstance(node, tuple | list | sre_parser.SubPattern):
        for one in node:
            yield from _references(one)


def _position(where: Any, flags: int) -> str:
    multiline = bool(flags & sre.SRE_FLAG_MULTILINE)
    if where in _POSITIONS:
        return _POSITIONS[where][multiline]
    word = _one_of(word_characters(flags))
    if where is sre.AT_BOUNDARY:
        return f"(?:(?<={word})(?!{word})|(?<!{word})(?={word}))"
    inside = f"(?:(?<={word})(?={word})|(?<!{word})(?!{word}))"
    return inside if boundary_in_nothing() else rf"(?!\A\Z){inside}"


_POSITIONS = {  # without and with MULTILINE
    sre.AT_BEGINNING_STRING: (r"\A", r"\A"),
    sre.AT_BEGINNING: (r"\A", "(?m:^)"),
    sre.AT_END_STRING: (r"\Z", r"\Z"),
    sre.AT_END: (r"(?=\n?\Z)", "(?m:$)"),
}


def _one_of(ranges: Ranges) -> str:
    """A character of a set, as the engine finds it quickest: it tries the members of a set in turn, and most text is ASCII."""
    if not ranges:
        return r"[^\0-\U0010FFFF]"
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _written(ranges)
    ascii_ = [one for one in ranges if one[1] < 128]  # noqa: PLR2004  (where ASCII ends)
    rest = ranges[len(ascii_) :]
    if len(ranges) <= _FEW:
        return f"[{_written(ranges)}]"
    return f"[{_written(ascii_)}{_bin(rest)}]"


def _bin(ranges: Ranges) -> str:
    """Members of a set: nothing is looked for among many ranges outside of their span."""
    size = _FEW ** max((len(ranges) - 1).bit_length() - 1 >> 2, 0)
    if len(ranges) <= _FEW:
        inside = _written(ranges)
    else:
        inside = "".join(_bin(ranges[at : at + size]) for at in range(0, len(ranges), size))
    return f"[[{_written(((ranges[0][0], ranges[-1][1]),))}]&&[{inside}]]"


def _written(ranges: Any) -> str:
    return "".join(f"\\U{first:08X}" + (f"-\\U{last:08X}" if last > first else "") for first, last in ranges)
