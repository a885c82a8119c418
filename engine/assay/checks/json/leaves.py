"""JSON values compared leaf by leaf: scalars and empty containers, each with the path that leads to it.

Both values are walked together, so that no path is written out, whatever the depth. In unordered lists all elements have the same
path; leaves with the same path are matched one to one.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, NamedTuple

from assay.frozen import frozen
from assay.values.paths import ABSENT, Path

Steps = tuple[Any, ...] | None
"""The steps of a path from its end: the last step and the ``Steps`` before it; None at the top."""

_REMOVED = object()
"""Stands for an element that is not compared: the others keep their places."""
_CONTAINERS = frozenset({dict, list})
_SCALARS = frozenset({str, int, float, bool, type(None)})
_SEVERAL = frozenset({dict, list, bool, int, float})
"""Types whose values may equal values of another type, or hold such values."""
_NUMBER = "number"


@frozen
class Rules:
    """How leaves are compared.

    Attributes:
        ordered: Whether the places of a list's elements count.
        normalize: What both strings become first.
        rel_tol: Greatest difference of numbers as a share of the larger one, at most 1.
        abs_tol: Greatest difference of numbers.
    """

    ordered: bool = True
    normalize: Callable[[str], str] | None = None
    rel_tol: float = 0
    abs_tol: float = 0

    @property
    def is_exact(self) -> bool:
        """Whether numbers have to be equal."""
        return not (self.rel_tol or self.abs_tol)


class LeafDifference(NamedTuple):
    """A leaf without a match: where it is, and on both sides what is there."""

    steps: Steps
    gold: Any
    value: Any

    @property
    def path(self) -> tuple[Any, ...]:
        """The steps from the top."""
        path: list[Any] = []
        left = self.steps
        while left is not None:
            step, left = left
            path.append(step)
        return tuple(path[::-1])


@dataclass
class Comparison:
    """How many leaves match, how many both sides have, and the first leaves without a match."""

    matches: int = 0
    golds: int = 0
    values: int = 0
    differences: list[LeafDifference] = field(default_factory=list)


def compared(value: Any, gold: Any, rules: Rules, *, shown: int, extra: bool = True, counts: bool = True) -> Comparison:
    """Compare a JSON value with a gold; without ``counts``, up to the last difference that is shown."""
    result = Comparison()
    walk = _ordered if rules.ordered else _unordered
    for difference in walk(value, gold, rules, result):  # the result is complete when they are read
        if len(result.differences) < shown and (extra or difference[1] is not ABSENT):
            result.differences.append(LeafDifference._make(difference))
        if not counts and len(result.differences) >= shown:
            break
    return result


def _is_leaf(value: Any) -> bool:
    return value is not ABSENT and not (value and value.__class__ in _CONTAINERS)


def is_same(value: Any, gold: Any) -> bool:
    """Return whether values certainly match, as most right answers do: they are equal, and numbers and flags are of the same type."""
    try:
        if value != gold:
            return False
    except RecursionError:  # it depends on the depth of the stack
        return False
    pending = [(value, gold)]
    for own, wanted in pending:
        kind = own.__class__
        if kind is not wanted.__class__:  # to Python true is 1
            return False
        if kind in _CONTAINERS:
            for step in own if kind is dict else range(len(own)):
                if own[step].__class__ in _SEVERAL:
                    pending.append((own[step], wanted[step]))  # noqa: PERF401  (a comprehension is a call)
    return True


def _ordered(value: Any, gold: Any, rules: Rules, result: Comparison) -> Iterator[tuple[Steps, Any, Any]]:
    """Count the leaves of values whose paths are all different, and yield those without a match, as they are asked for."""
    pending: list[Iterator[tuple[Steps, Any, Any]]] = [iter([(None, gold, value)])]
    while pending:
        for place in pending[-1]:
            steps, wanted, own = place
            wanted_inner = wanted.__class__ in _CONTAINERS and bool(wanted)
            own_inner = own.__class__ in _CONTAINERS and bool(own)
            is_wanted = not wanted_inner and wanted is not ABSENT
            is_own = not own_inner and own is not ABSENT
            result.golds += is_wanted
            result.values += is_own
            if is_wanted and is_own and _is_match(own, wanted, rules):
                result.matches += 1
            elif is_wanted or is_own:
                yield place
            if wanted_inner or own_inner:
                pending.append(_within(steps, wanted, own, result))
                break
        else:
            pending.pop()


def _is_match(value: Any, gold: Any, rules: Rules) -> bool:
    (kind, wanted), (value_kind, own) = _key(gold, rules), _key(value, rules)
    return kind == value_kind and (_is_close(own, wanted, rules) if kind == _NUMBER else bool(own == wanted))


def _is_close(value: float, gold: float, rules: Rules) -> bool:
    if value == gold or rules.is_exact:
        return value == gold
    try:
        return math.isclose(value, gold, rel_tol=rules.rel_tol, abs_tol=rules.abs_tol)
    except OverflowError:  # an integer beyond floats
        return False


def _within(steps: Steps, gold: Any, value: Any, result: Comparison) -> Iterator[tuple[Steps, Any, Any]]:
    """Yield what stands inside two values, except scalars that are the same, which are counted: most are."""
    golds, values = _by_step(gold), _by_step(value)
    same = 0
    for mine, other in [(golds, values)] if type(gold) is type(value) else [(golds, {}), ({}, values)]:
        for step, inner in mine.items():
            inner_value = other.get(step, ABSENT)
            if inner.__class__ in _SCALARS and inner.__class__ is inner_value.__class__ and inner == inner_value:
                same += 1
            else:
                yield (step, steps), inner, inner_value
        for step, inner_value in other.items():
            if step not in mine:
                yield (step, steps), ABSENT, inner_value
    result.golds += same
    result.values += same
    result.matches += same


def _by_step(value: Any) -> Mapping[Any, Any]:
    if isinstance(value, list):
        return {at: item for at, item in enumerate(value) if item is not _REMOVED}
    return value if isinstance(value, dict) else {}


def _unordered(value: Any, gold: Any, rules: Rules, result: Comparison) -> Iterator[tuple[Steps, Any, Any]]:
    """Count the leaves of values in which elements of a list have the same path, and yield those without a match."""
    pending: list[tuple[Steps, list[Any], list[Any]]] = [(None, [gold], [value])]
    while pending:
        steps, *sides = pending.pop()
        golds, values = ([item for item in side if _is_leaf(item)] for side in sides)
        rest, value_rest = _unmatched(golds, values, rules)
        result.golds += len(golds)
        result.values += len(values)
        result.matches += len(golds) - len(rest)
        for pair in zip_longest(rest, value_rest, fillvalue=ABSENT):
            yield steps, *pair
        groups: dict[Any, tuple[list[Any], list[Any]]] = {}
        for kind in (dict, list):  # the gold's in their order, then the others
            for number, side in enumerate(sides):
                for container in side:
                    if isinstance(container, kind):
                        for step, child in _by_step(container).items():
                            place = step if kind is dict else None
                            groups.setdefault(place, ([], []))[number].append(child)
        pending += reversed([((step, steps), *inner) for step, inner in groups.items()])


def _unmatched(golds: list[Any], values: list[Any], rules: Rules) -> tuple[list[Any], list[Any]]:
    """Return the leaves at a path without a match, each in order."""
    if not (golds and values):
        return golds, values
    sides = [[(_key(item, rules), item) for item in items] for items in (golds, values)]
    counts = Counter(key for key, _ in sides[0]) & Counter(key for key, _ in sides[1])
    common = {key: count for key, count in counts.items() if rules.is_exact or key[0] != _NUMBER}
    left = [_without_first(side, common) for side in sides]
    if not rules.is_exact:
        numbers = [sorted((key[1], at) for at, (key, _) in enumerate(side) if key[0] == _NUMBER) for side in left]
        taken = _close(numbers[0], numbers[1], rules)
        left = [
            [pair for at, pair in enumerate(side) if at not in used] for side, used in zip(left, taken, strict=True)
        ]
    rest, value_rest = ([item for _, item in side] for side in left)
    return rest, value_rest


def _key(value: Any, rules: Rules) -> tuple[str, Any]:
    """Return what is equal for equal leaves."""
    if isinstance(value, str):
        return "text", value if rules.normalize is None else rules.normalize(value)
    if value is None or isinstance(value, bool):
        return "word", value
    if isinstance(value, int | float):
        return ("word", "NaN") if value != value else (_NUMBER, value)  # noqa: PLR0124  (NaN is not itself)
    return "empty", "object" if isinstance(value, dict) else "list"


def _without_first(side: list[tuple[Any, Any]], common: Mapping[Any, int]) -> list[tuple[Any, Any]]:
    """Return keys and items without the first of each key, as many as are common."""
    left = Counter(common)
    kept = []
    for pair in side:
        if left[pair[0]]:
            left[pair[0]] -= 1
        else:
            kept.append(pair)
    return kept


def _close(
    golds: Sequence[tuple[float, int]], values: Sequence[tuple[float, int]], rules: Rules
) -> tuple[set[int], set[int]]:
    """Return the places of golds and values that are matched: as many as possible, of both in order of size.

    The values that are close to a gold are an interval whose ends grow with the gold, so the smallest of both match, or one of them
    matches nothing.
    """
    taken_golds, taken_values = set[int](), set[int]()
    gold_at = value_at = 0
    while gold_at < len(golds) and value_at < len(values):
        gold, value = golds[gold_at], values[value_at]
        if _is_close(value[0], gold[0], rules):
            taken_golds.add(gold[1])
            taken_values.add(value[1])
            gold_at, value_at = gold_at + 1, value_at + 1
        elif value[0] < gold[0]:
            value_at += 1
        else:
            gold_at += 1
    return taken_golds, taken_values


def without(value: Any, paths: Sequence[Path]) -> Any:
    """Return a JSON value without what stands at some paths; it may be changed. The other elements of a list keep their places."""
    if not paths:
        return value
    for path in paths:
        containers = [value]
        for step in path.steps[:-1]:
            containers = [item[place] for item in containers for place in _places(item, step)]
        for item in containers:
            for place in _places(item, path.steps[-1]):
                if isinstance(item, dict):
                    del item[place]
                else:
                    item[place] = _REMOVED
    pending = [value]
    while pending:  # a list whose elements are all removed is empty
        item = pending.pop()
        if isinstance(item, list) and all(child is _REMOVED for child in item):
            item.clear()
        elif isinstance(item, dict | list):
            pending += item.values() if isinstance(item, dict) else item
    return value


def _places(value: Any, step: str | int | None) -> Iterable[Any]:
    if isinstance(value, dict):
        return [step] if isinstance(step, str) and step in value else []
    if not isinstance(value, list) or isinstance(step, str):
        return []
    if step is None:
        return range(len(value))
    return [step] if -len(value) <= step < len(value) else []
