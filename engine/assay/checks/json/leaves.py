"""JSON values compared leaf by leaf: scalars and empty containers, each with the path that leads to it.

Both values are walked together, so that no path is written out, whatever the depth. In unordered lists all elements have the same
path; leaves with the same path are matched one to one.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from typing import Any, NamedTuple

from assay.values.paths import Path

Steps = tuple[Any, ...] | None
"""The steps of a path from its end: the last step and the ``Steps`` before it; None at the top."""

_ABSENT = object()
"""Stands for what one of two values does not have."""
_SCALARS = frozenset({str, int, float, bool, type(None)})
_NUMBER = "number"
_OTHER = ("", None)
_REMOVED = object()
"""Stands for an element that is not compared: the others keep their places."""


@dataclass(frozen=True)
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


class Difference(NamedTuple):
    """A leaf without a match.

    Attributes:
        path: The path of the leaf.
        golds: The gold, if there is one.
        values: The value, if there is one.
    """

    path: Path
    golds: tuple[Any, ...]
    values: tuple[Any, ...]


@dataclass
class Comparison:
    """The result of comparing a value with a gold.

    Attributes:
        matches: Leaves that match.
        golds: Leaves of the gold.
        values: Leaves of the value.
        differences: The first leaves without a match.
    """

    matches: int = 0
    golds: int = 0
    values: int = 0
    differences: list[Difference] = field(default_factory=list)


def compared(value: Any, gold: Any, rules: Rules, *, shown: int, extra: bool = True) -> Comparison:
    """Compare a value with a gold."""
    result = Comparison()
    differences = _ordered(value, gold, rules, result) if rules.ordered else _unordered(value, gold, rules, result)
    for difference in differences:  # the result is complete when they are read
        if len(result.differences) < shown and (extra or difference.golds):
            path = _path(difference.steps)
            result.differences.append(Difference(path, difference.golds, difference.values))
    return result


class _Place(NamedTuple):
    """A ``Difference`` whose path is not written out."""

    steps: Steps
    golds: tuple[Any, ...]
    values: tuple[Any, ...]


def _is_leaf(value: Any) -> bool:
    return value is not _ABSENT and not (isinstance(value, dict | list) and value)


def _ordered(value: Any, gold: Any, rules: Rules, result: Comparison) -> Iterator[_Place]:
    pending: list[tuple[Steps, Any, Any]] = [(None, gold, value)]
    while pending:
        steps, gold, value = pending.pop()
        gold_leaf, value_leaf = _is_leaf(gold), _is_leaf(value)
        result.golds += gold_leaf
        result.values += value_leaf
        if gold_leaf and value_leaf and _is_match(value, gold, rules):
            result.matches += 1
        elif gold_leaf:
            yield _Place(steps, (gold,), () if value is _ABSENT else (value,))
        elif value_leaf:
            yield _Place(steps, () if gold is _ABSENT else (gold,), (value,))
        if not (gold_leaf and value_leaf):
            pending += reversed([*_uneven(steps, gold, value, result)])


def _uneven(steps: Steps, gold: Any, value: Any, result: Comparison) -> Iterator[tuple[Steps, Any, Any]]:
    same = 0
    for step, inner_gold, inner_value in _pairs(gold, value):
        if (
            inner_gold.__class__ in _SCALARS
            and inner_gold.__class__ is inner_value.__class__
            and inner_gold == inner_value
        ):
            same += 1
        else:
            yield (step, steps), inner_gold, inner_value
    result.golds += same
    result.values += same
    result.matches += same


def _pairs(gold: Any, value: Any) -> Iterator[tuple[Any, Any, Any]]:
    if isinstance(gold, list) and isinstance(value, list):
        for at, (inner_gold, inner_value) in enumerate(zip_longest(gold, value, fillvalue=_ABSENT)):
            if inner_gold is not _REMOVED and inner_value is not _REMOVED:
                yield at, inner_gold, inner_value
            else:
                yield from _alone(at, inner_gold, inner_value)
    elif isinstance(gold, dict) and isinstance(value, dict):
        for key, inner in gold.items():
            yield key, inner, value.get(key, _ABSENT)
        for key, inner in value.items():
            if key not in gold:
                yield key, _ABSENT, inner
    else:
        for step, inner in _within(gold):
            yield step, inner, _ABSENT
        for step, inner in _within(value):
            yield step, _ABSENT, inner


def _alone(at: int, gold: Any, value: Any) -> Iterator[tuple[Any, Any, Any]]:
    gold, value = (_ABSENT if item is _REMOVED else item for item in (gold, value))
    if not (gold is _ABSENT and value is _ABSENT):
        yield at, gold, value


def _within(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict):
        return _members(value)
    return _elements(value, ordered=True) if isinstance(value, list) else iter(())


def _is_match(value: Any, gold: Any, rules: Rules) -> bool:
    key, gold_key = _key(value, rules), _key(gold, rules)
    if key == gold_key or rules.is_exact:
        return key == gold_key
    return key[0] == gold_key[0] == _NUMBER and _is_close(key[1], gold_key[1], rules)


def _unordered(value: Any, gold: Any, rules: Rules, result: Comparison) -> Iterator[_Place]:
    pending: list[tuple[Steps, list[Any], list[Any]]] = [(None, [gold], [value])]
    while pending:
        steps, golds, values = pending.pop()
        gold_leaves, value_leaves = ([item for item in items if _is_leaf(item)] for items in (golds, values))
        rest, value_rest = _unmatched(gold_leaves, value_leaves, rules)
        result.golds += len(gold_leaves)
        result.values += len(value_leaves)
        result.matches += len(gold_leaves) - len(rest)
        for pair in zip_longest(rest, value_rest, fillvalue=_ABSENT):
            yield _Place(steps, *(() if item is _ABSENT else (item,) for item in pair))
        if len(gold_leaves) < len(golds) or len(value_leaves) < len(values):
            pending += reversed([*_inside(steps, golds, values)])


def _inside(steps: Steps, golds: Sequence[Any], values: Sequence[Any]) -> Iterator[tuple[Steps, list[Any], list[Any]]]:
    for kind, children in ((dict, _members), (list, partial(_elements, ordered=False))):
        groups: dict[Any, tuple[list[Any], list[Any]]] = {}
        for at, containers in enumerate((golds, values)):
            for container in containers:
                if isinstance(container, kind):
                    for step, child in children(container):
                        groups.setdefault(step, ([], []))[at].append(child)
        for step, (inner_golds, inner_values) in groups.items():
            yield (step, steps), inner_golds, inner_values


def _members(value: Any) -> Iterator[tuple[Any, Any]]:
    return iter(value.items())


def _elements(value: Any, *, ordered: bool) -> Iterator[tuple[Any, Any]]:
    return ((at if ordered else None, item) for at, item in enumerate(value) if item is not _REMOVED)


def _unmatched(golds: list[Any], values: list[Any], rules: Rules) -> tuple[list[Any], list[Any]]:
    gold_keys, value_keys = ([_key(item, rules) for item in items] for items in (golds, values))
    if rules.is_exact:
        common = Counter(gold_keys) & Counter(value_keys)
    else:
        common = Counter(map(_of_others, gold_keys)) & Counter(map(_of_others, value_keys))
        common.pop(_OTHER, None)
    golds, gold_keys = _rest(golds, gold_keys, common)
    values, value_keys = _rest(values, value_keys, common)
    if rules.is_exact:
        return golds, values
    taken_golds, taken_values = _close(_numbers(gold_keys), _numbers(value_keys), rules)
    return (
        [item for at, item in enumerate(golds) if at not in taken_golds],
        [item for at, item in enumerate(values) if at not in taken_values],
    )


def _of_others(key: tuple[str, Any]) -> tuple[str, Any]:
    return _OTHER if key[0] == _NUMBER else key


def _key(value: Any, rules: Rules) -> tuple[str, Any]:
    if isinstance(value, str):
        return "text", value if rules.normalize is None else rules.normalize(value)
    if value is None or isinstance(value, bool):
        return "word", value
    if isinstance(value, int | float):
        return ("word", "NaN") if value != value else (_NUMBER, value)  # noqa: PLR0124  (NaN is not itself)
    return "empty", "object" if isinstance(value, dict) else "list"


def _rest(items: list[Any], keys: list[Any], taken: Mapping[Any, int]) -> tuple[list[Any], list[Any]]:
    left = Counter(taken)
    kept: list[int] = []
    for at, key in enumerate(keys):
        if left[key]:
            left[key] -= 1
        else:
            kept.append(at)
    return [items[at] for at in kept], [keys[at] for at in kept]


def _numbers(keys: Sequence[tuple[str, Any]]) -> list[tuple[float, int]]:
    return sorted((value, at) for at, (kind, value) in enumerate(keys) if kind == _NUMBER)


def _close(
    golds: Sequence[tuple[float, int]], values: Sequence[tuple[float, int]], rules: Rules
) -> tuple[set[int], set[int]]:
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


def _is_close(value: float, gold: float, rules: Rules) -> bool:
    try:
        return value == gold or math.isclose(value, gold, rel_tol=rules.rel_tol, abs_tol=rules.abs_tol)
    except OverflowError:  # an integer beyond floats
        return False


def _path(steps: Steps) -> Path:
    path = []
    while steps is not None:
        step, steps = steps
        path.append(step)
    return Path(tuple(reversed(path)))


def without(value: Any, paths: Sequence[Path]) -> Any:
    """Return a JSON value without what stands at some paths; it may be changed. The other elements of a list keep their places."""
    for path in paths:
        containers = [value]
        for step in path.steps[:-1]:
            containers = [child for item in containers for child in _children(item, step)]
        for item in containers:
            _remove(item, path.steps[-1])
    return _emptied(value) if paths else value


def _children(value: Any, step: str | int | None) -> list[Any]:
    if isinstance(step, str):
        return [value[step]] if isinstance(value, dict) and step in value else []
    if not isinstance(value, list):
        return []
    if step is None:
        return value
    return [value[step]] if -len(value) <= step < len(value) else []


def _remove(value: Any, step: str | int | None) -> None:
    if isinstance(step, str) and isinstance(value, dict):
        value.pop(step, None)
    elif step is None and isinstance(value, list):
        value[:] = [_REMOVED] * len(value)
    elif isinstance(step, int) and isinstance(value, list) and -len(value) <= step < len(value):
        value[step] = _REMOVED


def _emptied(value: Any) -> Any:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, list) and all(child is _REMOVED for child in item):
            item.clear()
        elif isinstance(item, dict | list):
            pending += item.values() if isinstance(item, dict) else item
    return value
