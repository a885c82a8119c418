"""A pattern as Python takes it: parsed, compiled, and how long ``re`` may take with it.

Patterns come with specs and rows, and may be made to be dear. What is not looked at in this process is too long, or has classes
that take long to compile; what ``re`` is not asked in this process has repeats of more than single characters, or too many.
"""

import contextlib
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from re import _compiler as sre_compiler  # type: ignore[attr-defined]
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any

from assay.expressions.regex.charsets import CHARACTERS
from assay.system.cache import cached_within
from assay.system.stacks import on_any_stack
from assay.thresholds import THRESHOLDS

__all__ = ["DearError", "compile_pattern", "parsed", "quick"]

_FLAT = re.compile(r"(?:\(\?i\))?(?:[^(|\[\\]|\\.)*", re.DOTALL)
_FLAT_LENGTH = 1_000
_REPEAT = re.compile(r"(?<!\\)(?:\\\\)*[*+?{]")
_CHARACTERS = 100
"""Characters that may be compared for each of the steps that ``re`` may take here."""
_LONGEST = 100_000
"""Code points of a pattern that is looked at in this process: parsing it takes half a second."""
_CLASS, _POINT = 0.3, 0.0003
"""Milliseconds that a class may take to compile, and each code point of its ranges, which are gone through point by point."""
_DEAREST = 1_000
"""Milliseconds that all classes of such a pattern may take."""
_LAST_POINT = 0xFFFF
"""Code points beyond it are not gone through."""
_FEW_RANGES = 50
"""So many ranges and classes take no second, whatever they are."""
_BOUNDED = 1_000
"""A repeat with no more than so many is that many ways to try; one with more is as many as there are characters."""


class DearError(Exception):
    """A pattern that may take too long or too much to be looked at in this process."""


_QUIET = threading.Lock()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No warnings. NOTE: what they are set to is the whole process's, and two threads would restore it in the wrong order."""
    with _QUIET, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@cached_within(16_000_000, lambda _, pattern, __=0: 500 + 50 * len(pattern) + 4_000 * pattern.count("["))
def compile_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Python's compiled pattern; its FutureWarnings about set syntax are for authors of Python code, not of specs."""
    with _quiet():
        compiled: re.Pattern[str] = sre_compiler.compile(pattern, flags)  # re.compile keeps 512 of any size
    return compiled


def parsed(pattern: str, flags: int) -> Any:
    """The parse tree.

    Raises:
        re.error: Python does not accept the pattern.
        DearError: It is too long, or takes too long to compile.
    """
    if len(pattern) > _LONGEST:
        raise DearError(f"a pattern of more than {_LONGEST:,} characters")
    with _quiet():
        tree = sre_parser.parse(pattern, flags)
    if pattern.count("[") + pattern.count("-") > _FEW_RANGES and _milliseconds(tree) > _DEAREST:
        raise DearError("a pattern whose classes take long to compile")
    return tree


def _milliseconds(node: Any) -> float:
    """How long the classes of a tree may take to compile."""
    if not isinstance(node, sre_parser.SubPattern | list | tuple):
        return 0
    if isinstance(node, tuple) and node and node[0] is sre.IN:
        ranges: list[tuple[int, int]] = [value for op, value in node[1] if op is sre.RANGE]
        return _CLASS + _POINT * sum(max(min(last, _LAST_POINT) - first + 1, 0) for first, last in ranges)
    return sum(map(_milliseconds, node))


def quick(pattern: str, size: int, flags: int = 0) -> bool:
    """Whether ``re`` itself cannot take long: what repeats is single characters, and few of them.

    Each repeat may try every length at every place, and each choice every way, but nothing nests.

    Args:
        pattern: A regular expression.
        size: Code points of the text.
        flags: Its flags.
    """
    tried: tuple[int, int] | None
    if len(pattern) <= _FLAT_LENGTH and _FLAT.fullmatch(pattern):
        tried = len(_REPEAT.findall(pattern)), 1  # told without parsing it, for rows bring hundreds of thousands
    else:
        tried = _tried_of(pattern, flags)
    if tried is None:
        return False
    repeats, ways = tried
    steps = ways * size ** (repeats + 1)
    allowed = THRESHOLDS.pattern_steps
    return bool(steps <= allowed and steps * len(pattern) <= _CHARACTERS * allowed)


@cached_within(8_000_000, lambda _, pattern, __: 4 * len(pattern))
def _tried_of(pattern: str, flags: int) -> tuple[int, int] | None:
    try:
        return on_any_stack(lambda: _tried(parsed(pattern, flags)))
    except (re.error, OverflowError, RecursionError, DearError):  # whoever compiles it will say so
        return None


def _tried(items: Any) -> tuple[int, int] | None:
    """How many repeats a sequence has, and ways to choose; None where something nests."""
    repeats, ways = 0, 1
    for op, value in items:
        if op in CHARACTERS or op in (sre.AT, sre.FAILURE):
            continue
        by_way = _tried_by(op, value)
        known = [each for each in by_way if each is not None]
        if len(known) < len(by_way):
            return None
        repeats += max(more for more, _ in known)
        ways *= sum(more for _, more in known)
    return repeats, ways


def _tried_by(op: Any, value: Any) -> list[tuple[int, int] | None]:
    """``_tried`` of each way through a node."""
    if op in _WAYS:
        return [_tried(way or ()) for way in _WAYS[op](value)]
    if op is sre.GROUPREF:  # it compares as many characters as a repeat may take
        return [(1, 1)]
    _, high, inner = value
    if len(inner) == 1 and inner[0][0] in CHARACTERS:
        return [(0, max(high, 1)) if high is not sre.MAXREPEAT and high <= _BOUNDED else (1, 1)]
    return [(0, 1), _tried(inner)] if high == 1 else [None]


_WAYS: dict[Any, Callable[[Any], Sequence[Any]]] = {
    sre.BRANCH: lambda value: value[1],
    sre.SUBPATTERN: lambda value: [value[3]],
    sre.ASSERT: lambda value: [value[1]],
    sre.ASSERT_NOT: lambda value: [value[1]],
    sre.ATOMIC_GROUP: lambda value: [value],
    sre.GROUPREF_EXISTS: lambda value: value[1:],
}
"""What stands in a node that is neither a character nor a repeat: sequences, one of which is gone through."""
