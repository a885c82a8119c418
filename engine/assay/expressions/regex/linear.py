r"""Translate Python's patterns to the syntax of the linear engine, if it can express them exactly.

* Every set of characters (classes, ``\w \d \s .``, anything under IGNORECASE) becomes the explicit set of code points that
  Python's own matcher accepts (``charsets``).
* ``^ $ \A \Z`` become equivalent anchors; ``$`` without MULTILINE also matches before a final newline, which can be expressed only at
  the end of the pattern.
* ``^`` under MULTILINE at the start of a pattern becomes two patterns, one for the start of the text, and one that begins with a line
  break, which the engine finds much faster.
* ``\b`` is translated in one of four ways, because the engines disagree about ``\w``.
* A pattern may be narrowed: every set of characters is cut to ASCII. It is exact on ASCII texts, needs none of Python's tables, and is
  several times faster, for the engine can then skip to the characters with which a match may begin.
* Look-around at the edge of a pattern reads what it asks for: ``a(?=b)`` matches where ``ab`` does. What must not be there, if it is a
  sequence of single characters, becomes the texts that differ from it.
* Not supported: other look-around (see ``lookahead``), back-references, atomic groups, possessive repeats, ``\B``, flags ``a`` or ``u`` of a group, repeats of
  something that may be empty, and patterns that are too large or too deep.
"""

from collections.abc import Callable
from enum import Enum
from functools import reduce
from operator import or_
from re import _constants as sre  # type: ignore[attr-defined]
from typing import Any, NamedTuple

import polars as pl
from polars.exceptions import PolarsError

from assay.expressions.regex.trees.charsets import (
    ASCII_WORDS,
    CHARACTERS,
    MOST_WORDS,
    Ranges,
    accepted,
    accepted_ascii,
    all_but,
    cut_to_ascii,
    in_both,
    most_ranges,
    reaches_beyond_ascii,
    word_characters,
)
from assay.expressions.regex.trees.nodes import TYPE_FLAGS, Items, NotLinearError, all_nodes, word_at
from assay.frozen import frozen
from assay.thresholds import THRESHOLDS

_RANGE = 60
"""Bytes per range of a class in the engine: each ``\\w``, with 760 ranges, takes 45 kB."""
_UNSURE = "a boundary whose neighbours may be any characters"
_TOO_LARGE = "a pattern too large for the linear engine"


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


def linear(tree: Any, boundary: Boundary) -> tuple[str, ...]:
    r"""Translate a parsed pattern to alternative patterns that together match in the same texts."""
    return _Writer(boundary).patterns(tree)


@frozen
class Narrowed:
    r"""A pattern cut to ASCII.

    Attributes:
        patterns: Alternative patterns that together match in the same ASCII texts. Without boundaries, a text beyond ASCII in which
            they match is matched by the whole pattern, too.
        boundary: Whether there is a ``\b`` in the pattern.
        cut: Whether a set of characters was cut …
        alike: … or only letters beyond ASCII were that IGNORECASE accepts for ASCII letters.
        likely: Patterns that match only where the others do, but are faster: with a space before the first word. Possibly none.
        size: Maximum estimated bytes of the whole pattern in the engine.
    """

    patterns: tuple[str, ...]
    boundary: bool
    cut: bool
    alike: bool
    likely: tuple[str, ...]
    size: int


def narrowed(tree: Any, boundary: Boundary, *, lowered: bool = False) -> Narrowed:
    r"""Translate a parsed pattern with every set of characters cut to ASCII."""
    writer = _NarrowWriter(boundary, lowered=lowered)
    patterns = writer.patterns(tree)
    likely = _NarrowWriter(boundary, after_space=True).patterns(tree) if _is_word_of_few(tree) else ()
    return Narrowed(patterns, writer.boundary, writer.cut, writer.alike, likely, writer.size)


_FEW = 16
"""Characters that the engine searches for together with the space before them."""


class _Run(NamedTuple):
    """A run of characters of a set: from ``low`` to ``high``, each once for a single character."""

    op: Any
    value: Any
    low: int
    high: int


def _run_of(item: tuple[Any, Any]) -> _Run | None:
    """Return a character, or a repeat of a single one, as a run; None for any other item."""
    op, value = item
    if op in CHARACTERS:
        return _Run(op, value, 1, 1)
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
        low, high, inner = value
        if len(inner) == 1 and inner[0][0] in CHARACTERS:
            ((op, value),) = inner
            return _Run(op, value, low, high)
    return None


def _mixed_run(item: tuple[Any, Any], flags: int) -> _Run | None:
    """Return an item as a run that is not empty and whose ends may be word characters or not; None if it is none."""
    run = _run_of(item)
    return run if run and run.low and word_at([item], flags, end=False) is None else None


def _run_from_start(items: Items) -> tuple[Any, Any] | None:
    """Return the set of characters if a sequence is the start of the text and a run of such characters, of any length."""
    if len(items) < 2 or any(item not in _STARTS for item in items[:-1]):  # noqa: PLR2004  (the start and the run)
        return None
    run = _run_of(items[-1])
    return (run.op, run.value) if run and (run.low, run.high) == (0, sre.MAXREPEAT) else None


_STARTS = ((sre.AT, sre.AT_BEGINNING), (sre.AT, sre.AT_BEGINNING_STRING))


def _is_word_of_few(tree: Any) -> bool:
    r"""Return whether a pattern begins with ``\b`` and then one of a few characters."""
    items, flags = list(tree), tree.state.flags
    if len(items) < 2 or items[0] != (sre.AT, sre.AT_BOUNDARY):  # noqa: PLR2004  (a boundary and a character)
        return False
    op, value = items[1]
    while op in (sre.MAX_REPEAT, sre.MIN_REPEAT) and value[0]:
        op, value = value[2][0]
    return op in CHARACTERS and sum(last + 1 - first for first, last in accepted_ascii(op, value, flags)) <= _FEW


def _begins_with_text(items: Items, flags: int) -> bool:
    """Return whether a pattern begins with a few characters that the engine finds as a text."""
    return not flags & sre.SRE_FLAG_IGNORECASE and [op for op, _ in items[:3]] == [sre.LITERAL] * 3


class _Writer:
    """Writes a parsed pattern in the linear engine's syntax, or raises ``NotLinearError``."""

    def __init__(self, boundary: Boundary) -> None:
        self._boundary = boundary
        self.boundary = False
        self.size = 0  # estimated bytes of the written pattern

    def patterns(self, tree: Any) -> tuple[str, ...]:
        """Write a whole pattern as alternative patterns, and let the engine compile them."""
        items, flags = list(tree), tree.state.flags
        starts: tuple[str, ...] = ("",)
        if items[:1] == [(sre.AT, sre.AT_BEGINNING)] and flags & sre.SRE_FLAG_MULTILINE:
            del items[0]
            starts = (r"\A", r"\n")
        try:
            body = self.sequence(items, flags, head=len(starts) == 1, tail=True)
            self.check_size()
            if body.count(_END) > 1 and _begins_with_text(items, flags):
                body = body.replace(_END, _END_FORWARDS)
            written = (_NEVER,) if body == _NOTHING else tuple(start + body for start in starts)
            for pattern in written:
                pl.Series([""], dtype=pl.String).str.contains(pattern)
        except PolarsError:
            raise NotLinearError(_TOO_LARGE) from None
        return written

    def check_size(self) -> None:
        """Refuse a pattern that is too large."""
        if self.size > THRESHOLDS.linear_bytes:
            raise NotLinearError(_TOO_LARGE)

    def sequence(self, items: Items, flags: int, *, head: bool, tail: bool) -> str:
        """Write a concatenation; ``head`` and ``tail`` tell whether it is at the start or the end of the whole pattern."""
        last, split = len(items) - 1, -1
        written: list[str] = []
        for at, (op, value) in enumerate(items):
            first, final = head and at == 0, tail and at == last
            if (op, value) != (sre.AT, sre.AT_BOUNDARY) or flags & sre.SRE_FLAG_ASCII:
                if at != split:
                    written.append(self.item(op, value, flags, head=first, tail=final))
                continue
            self.boundary = True
            before, after = items[:at], items[at + 1 :]
            if self._boundary is not Boundary.EDGES:
                written.append(str(self._boundary.value))
            elif head and (run := _run_from_start(before)):
                written[-1] = self.up_to_word(written[-1], run, after, flags)
            elif first and after and (mixed := _mixed_run(after[0], flags)):
                one, more = self.one_and_more(mixed, flags)
                written.append(f"(?:{self.no_word(flags, head=True)}{one(True)}|{self.words(flags)}{one(False)}){more}")
                split = at + 1
            elif final and before and at - 1 != split and (mixed := _mixed_run(before[-1], flags)):
                one, more = self.one_and_more(mixed, flags)
                written[-1] = f"{more}(?:{one(True)}{self.no_word(flags, head=False)}|{one(False)}{self.words(flags)})"
            else:
                written.append(self.between(before, after, flags, head=first, tail=final))
        return _NOTHING if _NOTHING in written else "".join(written)

    def one_and_more(self, run: _Run, flags: int) -> tuple[Callable[[bool], str], str]:
        """Write the outermost character of a run: a function for its word characters or the others, and the rest of the run."""
        op, value, low, high = run
        more = ""
        if high > 1:
            counts = f"{{{low - 1},{'' if high is sre.MAXREPEAT else high - 1}}}"
            more = f"(?:{self.characters(op, value, flags)}){counts}"
        return lambda words: self.part(op, value, flags, words=words), more

    def up_to_word(self, run: str, node: tuple[Any, Any], after: Items, flags: int) -> str:
        r"""Write a run of any length from the start of the text to a boundary, as in ``^.*\bfoo``."""
        starts_word = word_at(after, flags, end=False)
        if starts_word is None:
            raise NotLinearError(_UNSURE)
        if starts_word:
            return f"(?:{run}{self.part(*node, flags, words=False)}){{0,1}}"
        return run + self.part(*node, flags, words=True)

    def part(self, op: Any, value: Any, flags: int, *, words: bool) -> str:
        """Write the word characters of a set, or its other characters."""
        own = word_characters(flags)
        return self.ranges(in_both(accepted(op, value, flags), own if words else all_but(own)))

    def between(self, before: Items, after: Items, flags: int, *, head: bool, tail: bool) -> str:
        """Write a word boundary."""
        left, right = word_at(before, flags, end=True), word_at(after, flags, end=False)
        if left is not None and right is not None and left != right:
            return ""
        inner = right if head else left if tail else None
        if inner is None:
            raise NotLinearError(_UNSURE)
        return self.no_word(flags, head=head) if inner else self.words(flags)

    def item(self, op: Any, value: Any, flags: int, *, head: bool, tail: bool) -> str:
        """Write a node of the tree."""
        if op in CHARACTERS:
            return self.characters(op, value, flags)
        if op is sre.AT:
            return self.anchor(value, flags, tail=tail)
        if op is sre.BRANCH:
            ways = [self.sequence(list(way), flags, head=head, tail=tail) for way in value[1]]
            possible = [way for way in ways if way != _NOTHING]
            return f"(?:{'|'.join(possible)})" if possible else _NOTHING
        if op is sre.SUBPATTERN:
            _, add, remove, inner = value
            if add & TYPE_FLAGS:  # CPython's search uses the outer flags for its prefix, so it differs from the tree
                raise NotLinearError("scoped a/u flags")
            body = self.sequence(list(inner), (flags | add) & ~remove, head=head, tail=tail)
            return body if body == _NOTHING else f"(?:{body})"
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            return self.repeat(value, flags, head=head, tail=tail)
        if op in (sre.ASSERT, sre.ASSERT_NOT) and (tail if value[0] > 0 else head):
            return self.look_around(op, value, flags, head=head, tail=tail)
        raise NotLinearError(_NAMES.get(str(op), str(op).lower().replace("_", " ")))

    def repeat(self, value: Any, flags: int, *, head: bool, tail: bool) -> str:
        """Write a greedy or lazy repeat, which accept the same texts."""
        low, high, inner = value
        if high != 1 and inner.getwidth()[0] == 0:
            raise NotLinearError("a repeat of something that may be empty")
        once, before = high == 1, self.size
        body = self.sequence(list(inner), flags, head=head and once, tail=tail and once)
        if body == _NOTHING:
            return _NOTHING if low else ""
        copies = max(low, 1) if high is sre.MAXREPEAT else max(high, 1)
        self.size = before + (self.size - before) * copies
        return f"(?:{body}){{{low},{'' if high is sre.MAXREPEAT else high}}}"

    def look_around(self, op: Any, value: Any, flags: int, *, head: bool, tail: bool) -> str:
        """Write what may stand behind the end of a match, or before its start."""
        ahead, items = value[0] > 0, list(value[1])
        if op is sre.ASSERT:
            return "(?:" + self.sequence(items, flags, head=head and not ahead, tail=tail and ahead) + ")"
        if not 0 < len(items) <= _LONGEST_REFUSED or any(kind not in CHARACTERS for kind, _ in items):
            raise NotLinearError(_NAMES["ASSERT"])
        edge, written = _EDGES[not ahead], ""
        for kind, characters in reversed(items) if ahead else items:
            other, same = self.other_characters(kind, characters, flags), self.characters(kind, characters, flags)
            further = f"|{same}{written}" if ahead else f"|{written}{same}"
            written = f"(?:{edge}|{other}{further if written else ''})"
        return written

    def other_characters(self, op: Any, value: Any, flags: int) -> str:
        """Write all characters except those of a set."""
        return self.ranges(all_but(accepted(op, value, flags)))

    def characters(self, op: Any, value: Any, flags: int) -> str:
        """Write a set of characters."""
        return self.ranges(accepted(op, value, flags))

    def words(self, flags: int) -> str:
        """Write the class of word characters."""
        return self.ranges(word_characters(flags))

    def no_word(self, flags: int, *, head: bool) -> str:
        """Write the start or the end of the text, or any other character."""
        return rf"(?:{_EDGES[head]}|[^{self.words(flags)[1:]})"

    def ranges(self, ranges: Ranges) -> str:
        """Write ranges of code points."""
        self.size += _RANGE * len(ranges)
        self.check_size()
        return class_of(ranges)

    def anchor(self, where: Any, flags: int, *, tail: bool) -> str:
        """Write an anchor."""
        multiline = bool(flags & sre.SRE_FLAG_MULTILINE)
        if where is sre.AT_END and not (multiline or tail):
            raise NotLinearError("$ with something after it")
        if where not in _ANCHORS:
            raise NotLinearError(r"\B")
        return _ANCHORS[where][multiline]


class _NarrowWriter(_Writer):
    """Writes a pattern with every set of characters cut to ASCII; its size is that of the whole pattern."""

    def __init__(self, boundary: Boundary, *, after_space: bool = False, lowered: bool = False) -> None:
        super().__init__(boundary)
        self._after_space, self._lowered = after_space, lowered
        self.cut = self.alike = False

    def count_cut(self, op: Any, value: Any, flags: int) -> None:
        """Note whether cutting a set to ASCII changes it."""
        self.cut |= reaches_beyond_ascii(op, value, flags & ~sre.SRE_FLAG_IGNORECASE)
        self.alike |= reaches_beyond_ascii(op, value, flags)

    def characters(self, op: Any, value: Any, flags: int) -> str:
        self.count_cut(op, value, flags)
        self.size += _RANGE * most_ranges(op, value, flags)
        ranges = accepted_ascii(op, value, flags)
        return class_of(_in_lower_case(ranges) if self._lowered else ranges)

    def other_characters(self, op: Any, value: Any, flags: int) -> str:
        self.cut = True
        self.size += _RANGE * (1 + most_ranges(op, value, flags))
        others = cut_to_ascii(all_but(accepted_ascii(op, value, flags)))
        return class_of(_in_lower_case(others) if self._lowered else others)

    def part(self, op: Any, value: Any, flags: int, *, words: bool) -> str:
        self.count_cut(op, value, flags)
        self.size += _RANGE * (MOST_WORDS + most_ranges(op, value, flags))
        own = ASCII_WORDS if words else all_but(ASCII_WORDS)
        ranges = in_both(accepted_ascii(op, value, flags), own)
        return class_of(_in_lower_case(ranges) if self._lowered else ranges)

    def words(self, flags: int) -> str:
        del flags
        self.size += _RANGE * MOST_WORDS
        return class_of(ASCII_WORDS)

    def no_word(self, flags: int, *, head: bool) -> str:
        del flags
        if head and self._after_space:
            return r"[\x{A}\x{20}]"
        self.size += _RANGE * MOST_WORDS
        return rf"(?:{_EDGES[head]}|{class_of(cut_to_ascii(all_but(ASCII_WORDS)))})"

    def check_size(self) -> None:
        """Accept any size: the whole pattern is checked when it is known to be too large, or needed."""


def _in_lower_case(ranges: Ranges) -> Ranges:
    codes = {code for first, last in ranges for code in range(first, last + 1)}
    if codes != {ord(chr(code).swapcase()) for code in codes}:
        raise NotLinearError("a set that tells capitals from small letters")
    return tuple((code, code) for code in sorted(codes) if not chr(code).isupper())


def has_many_cases(tree: Any) -> bool:
    """Return whether a pattern ignores case and has alternatives: more beginnings than the engine can search for together."""
    nodes = [*all_nodes(tree)]
    folds = tree.state.flags | reduce(or_, (value[1] for op, value in nodes if op is sre.SUBPATTERN), 0)
    alternatives = sum(len(value[1]) for op, value in nodes if op is sre.BRANCH)
    return bool(folds & sre.SRE_FLAG_IGNORECASE) and alternatives > _FEW_ALTERNATIVES


_FEW_ALTERNATIVES = 2

_LONGEST_REFUSED = 20
"""Maximum characters of what must not stand beside a match."""

_EDGES = {True: r"\A", False: r"\z"}
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
}


def class_of(ranges: Ranges) -> str:
    """Return a character class for ranges of code points."""
    if not ranges:
        return _NOTHING
    # the engine rejects ranges that begin or end at a surrogate
    ends = ((_AFTER.get(first, first), _BEFORE.get(last, last)) for first, last in ranges)
    return "[" + "".join(f"\\x{{{first:X}}}-\\x{{{last:X}}}" for first, last in ends) + "]"


_NOTHING = "[a&&b]"
"""A character that does not exist."""

_END = r"\z"
_END_FORWARDS = rf"(?:\z|{_NOTHING})"
r"""The end of the text, for a pattern that the engine is to search forwards.

It searches backwards what can match only at the end, which reads the whole text where a way to there repeats any character, as without
look-ahead in ``<a>(?!.*<a>)``. Where such a pattern begins with a text, a search for that text is ten times as fast.
"""

_NEVER = rf"\A{_NOTHING}"
"""A pattern that never matches, which the engine knows at the start of a text."""

_AFTER = dict.fromkeys(range(0xD800, 0xE000), 0xE000)
_BEFORE = dict.fromkeys(range(0xD800, 0xE000), 0xD7FF)
