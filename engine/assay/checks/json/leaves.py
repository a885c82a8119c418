"""JSON values compared leaf by leaf: scalars and empty containers, each with the path that leads to it.

Both values are walked together, so that only the paths of differences and containers are written out. In unordered lists all elements have the same
path; leaves with the same path are matched one to one.
"""

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from typing import Any

from assay.frozen import frozen
from assay.values.paths import ABSENT, Path

Steps = tuple[Any, ...]
"""The steps of a path, from the top; None stands for every element of a list."""

Difference = tuple[Steps, Any, Any]
"""A leaf without a match: where it is, and what the gold and the value have there."""

_REMOVED = object()
"""Stands for an element that is not compared: the others keep their places."""
_CONTAINERS = frozenset({dict, list})
_SCALARS = frozenset({str, int, float, bool, type(None)})
_SEVERAL = frozenset({dict, list, bool, int, float})
"""Types whose values may equal values of another type, or hold such values."""
_NUMBER = "number"
_NOTHING: Mapping[Any, Any] = {}


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


@dataclass
class Comparison:
    """How many leaves match, how many both sides have, and the first leaves without a match."""

    matches: int = 0
    golds: int = 0
    values: int = 0
    differences: list[Difference] = field(default_factory=list)


def compared(value: Any, gold: Any, rules: Rules, *, shown: int, extra: bool = True, counts: bool = True) -> Comparison:
    """Compare a JSON value with a gold; without ``counts``, up to the last difference that is shown."""
    result = Comparison()
    walk = (_ordered if rules.ordered else _unordered)(value, gold, rules, result)
    if not extra:
        walk = (difference for difference in walk if difference[1] is not ABSENT)
    result.differences += islice(walk, shown)
    if counts:  # they are complete at the end of the walk
        deque(walk, maxlen=0)
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


def _ordered(value: Any, gold: Any, rules: Rules, result: Comparison) -> Iterator[Difference]:
    """Count the leaves of values whose paths are all different, and yield those without a match, as they are asked for."""
    matches = golds = values = 0
    top = {None: gold}
    pending: list[tuple[Any, Mapping[Any, Any], Mapping[Any, Any], Iterator[Any]]] = [
        (None, top, {None: value}, iter(top))
    ]
    while pending:
        above, wanted_items, own_items, left = pending[-1]
        for step in left:
            wanted, own = wanted_items.get(step, ABSENT), own_items.get(step, ABSENT)
            kind, own_kind = wanted.__class__, own.__class__
            if kind is own_kind and kind in _SCALARS and wanted == own:  # most are
                matches += 1
                continue
            steps = () if above is None else (*above, step)
            wanted_inside = _by_step(wanted) if kind in _CONTAINERS else _NOTHING
            own_inside = _by_step(own) if own_kind in _CONTAINERS else _NOTHING
            is_wanted = not wanted_inside and wanted is not ABSENT
            is_own = not own_inside and own is not ABSENT
            if is_wanted and is_own and _is_match(own, wanted, rules):
                matches += 1
            elif is_wanted or is_own:
                golds += is_wanted
                values += is_own
                yield steps, wanted, own
            if wanted_inside or own_inside:
                pending.append((steps, wanted_inside, own_inside, iter({**wanted_inside, **own_inside})))
                break
        else:
            pending.pop()
    result.matches, result.golds, result.values = matches, matches + golds, matches + values


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


def _by_step(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, dict) else {at: item for at, item in enumerate(value) if item is not _REMOVED}


def _unordered(value: Any, gold: Any, rules: Rules, result: Comparison) -> Iterator[Difference]:
    """Count the leaves of values in which elements of a list have the same path, and yield those without a match."""
    pending: list[tuple[Any, Any, list[Any], list[Any]]] = [(None, None, [gold], [value])]
    while pending:
        above, last, *sides = pending.pop()
        steps = () if above is None else (*above, last)
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
        pending += reversed([(steps, step, *inner) for step, inner in groups.items()])


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
