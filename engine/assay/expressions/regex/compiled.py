"""Parse and compile patterns by Python's rules, and bound the time that ``re`` may take.

Patterns come from specs and rows, and may be malicious. A pattern that is too long, or whose classes take long to compile, is not
parsed in this process; one with nested repeats, or too many repeats, is not run by ``re`` in this process.
"""

import contextlib
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from re import _compiler as sre_compiler  # type: ignore[attr-defined]
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any, TypeVar

from assay.expressions.regex.trees.charsets import CHARACTERS
from assay.system.cache import cached_within
from assay.thresholds import THRESHOLDS

Value = TypeVar("Value")


def on_any_stack(function: Callable[[], Value]) -> Value:
    """Call a recursive function; if the stack overflows, call it again on a new one."""
    try:
        return function()
    except RecursionError:
        pass
    with ThreadPoolExecutor(1, "assay-stack") as thread:
        return thread.submit(function).result()


_FLAT = re.compile(r"(?:\(\?i\))?(?:[^(|\[\\]|\\.)*", re.DOTALL)
_FLAT_LENGTH = 1_000
_REPEAT = re.compile(r"(?<!\\)(?:\\\\)*[*+?{]")
_CHARACTERS = 100
"""Maximum characters compared per step of ``re`` in this process."""
_LONGEST = 100_000
"""Maximum code points of a pattern that is parsed in this process, which takes half a second."""
_CLASS, _POINT = 0.3, 0.0003
"""Milliseconds to compile a class, and to compile each code point of its ranges, which ``re`` visits one by one."""
_MAX_MILLISECONDS = 1_000
"""Maximum milliseconds to compile all classes of a pattern in this process."""
_LAST_POINT = 0xFFFF
"""The last code point that ``re`` visits one by one."""
_FEW_RANGES = 50
"""Maximum ranges and classes that always compile within a second."""
_BOUNDED = 1_000
"""A repeat up to this count multiplies the ways to match by its count; a larger one counts as unbounded."""


class TooExpensiveError(Exception):
    """A pattern may take too much time or memory for this process."""


_QUIET = threading.Lock()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress warnings. NOTE: the filters belong to the process; without the lock, threads would restore them in the wrong order."""
    with _QUIET, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def not_quiet() -> Iterator[None]:
    """Let a warning through, whatever another thread compiles."""
    with _QUIET:
        yield


@cached_within(16_000_000, lambda _, pattern, __=0: 500 + 50 * len(pattern) + 4_000 * pattern.count("["))
def compile_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Compile a pattern, without FutureWarnings about set syntax, which are of no use to authors of specs."""
    with _quiet():
        compiled: re.Pattern[str] = sre_compiler.compile(pattern, flags)  # re.compile would cache 512 of any size
    return compiled


def parsed(pattern: str, flags: int) -> Any:
    """Return the parse tree of a pattern."""
    if len(pattern) > _LONGEST:
        raise TooExpensiveError(f"a pattern of more than {_LONGEST:,} characters")
    with _quiet():
        tree = sre_parser.parse(pattern, flags)
    _restore_empty_look_ahead(tree)
    if pattern.count("[") + pattern.count("-") > _FEW_RANGES and _milliseconds(tree) > _MAX_MILLISECONDS:
        raise TooExpensiveError("a pattern whose classes take long to compile")
    return tree


def _restore_empty_look_ahead(node: Any) -> None:
    """Write ``(?!)`` as Python 3.11 parses it: a later one makes a node of its own of it."""
    if isinstance(node, sre_parser.SubPattern):
        for at, (op, _) in enumerate(node.data):
            if op is sre.FAILURE:
                node.data[at] = (sre.ASSERT_NOT, (1, sre_parser.SubPattern(node.state)))
    if isinstance(node, sre_parser.SubPattern | list | tuple):
        for inner in node:
            _restore_empty_look_ahead(inner)


def _milliseconds(node: Any) -> float:
    if not isinstance(node, sre_parser.SubPattern | list | tuple):
        return 0
    if isinstance(node, tuple) and node and node[0] is sre.IN:
        ranges: list[tuple[int, int]] = [value for op, value in node[1] if op is sre.RANGE]
        return _CLASS + _POINT * sum(max(min(last, _LAST_POINT) - first + 1, 0) for first, last in ranges)
    return sum(map(_milliseconds, node))


def quick(pattern: str, size: int, flags: int = 0) -> bool:
    """Return whether ``re`` is certainly fast on a text of that many code points."""
    return size <= quick_size(pattern, flags)


def quick_size(pattern: str, flags: int = 0) -> int:
    """Return the code points of the longest text on which ``re`` is certainly fast; -1 if it may not be on any."""
    effort: tuple[int, int] | None
    if len(pattern) <= _FLAT_LENGTH and _FLAT.fullmatch(pattern):
        # without parsing, because rows may bring hundreds of thousands of patterns
        effort = len(_REPEAT.findall(pattern)), 1
    else:
        effort = _effort_of(pattern, flags)
    if effort is None:
        return -1
    repeats, ways = effort
    allowed = min(THRESHOLDS.pattern_steps, _CHARACTERS * THRESHOLDS.pattern_steps // max(len(pattern), 1)) // ways
    return _root(allowed, repeats + 1)


def _root(value: int, degree: int) -> int:
    root = value if degree == 1 else int(value ** (1 / degree)) + 1
    while root**degree > value:
        root -= 1
    return root


@cached_within(8_000_000, lambda _, pattern, __: 4 * len(pattern))
def _effort_of(pattern: str, flags: int) -> tuple[int, int] | None:
    try:
        return on_any_stack(lambda: _effort(parsed(pattern, flags)))
    except (re.error, OverflowError, RecursionError, TooExpensiveError):  # reported when the pattern is compiled
        return None


def _effort(items: Any) -> tuple[int, int] | None:
    """Return the number of repeats of a sequence, and of ways to choose; None if repeats nest."""
    repeats, ways = 0, 1
    for op, value in items:
        if op in CHARACTERS or op in (sre.AT, sre.FAILURE):
            continue
        alternatives = _efforts(op, value)
        counts = [count for count in alternatives if count is not None]
        if len(counts) < len(alternatives):
            return None
        repeats += max(count for count, _ in counts)
        ways *= sum(count for _, count in counts)
    return repeats, ways


def _efforts(op: Any, value: Any) -> list[tuple[int, int] | None]:
    """Return ``_effort`` of each alternative of a node."""
    if op in _WAYS:
        return [_effort(way or ()) for way in _WAYS[op](value)]
    if op is sre.GROUPREF:  # it compares as many characters as a repeat
        return [(1, 1)]
    _, high, inner = value
    if len(inner) == 1 and inner[0][0] in CHARACTERS:
        return [(0, max(high, 1)) if high is not sre.MAXREPEAT and high <= _BOUNDED else (1, 1)]
    return [(0, 1), _effort(inner)] if high == 1 else [None]


_WAYS: dict[Any, Callable[[Any], Sequence[Any]]] = {
    sre.BRANCH: lambda value: value[1],
    sre.SUBPATTERN: lambda value: [value[3]],
    sre.ASSERT: lambda value: [value[1]],
    sre.ASSERT_NOT: lambda value: [value[1]],
    sre.ATOMIC_GROUP: lambda value: [value],
    sre.GROUPREF_EXISTS: lambda value: value[1:],
}
"""The alternative sequences of a node that is neither a character nor a repeat."""
