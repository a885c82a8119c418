"""Texts from which the steps of a check read an answer."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from assay.insight.forging.made import Wrap
from assay.steps.base import Step
from assay.values.paths import parse_within

_NOTHING = frozenset(("number", "choice", "line", "strip", "lower", "upper", "calls", "split"))
"""Steps that read an answer as it stands."""


def carrier(steps: Sequence[Step]) -> Wrap | None:
    """Return what puts an answer where steps read it; None if one of them has no such text."""
    wraps = []
    for step in reversed(steps):
        if step.name in _NOTHING:
            continue
        if step.name == "firstOf":
            chain: Any = step.params
            wrap = carrier(chain.chains[0].steps)
        else:
            wrap = _CARRIERS[step.name](step.params) if step.name in _CARRIERS else None
        if wrap is None:
            return None
        wraps.append(wrap)

    def all_of(text: str) -> str:
        for wrap in wraps:
            text = wrap(text)
        return text

    return all_of


def _json(params: Any) -> Wrap | None:
    if params.path is None:
        return lambda text: text
    places = parse_within(params.path).steps
    if not all(place == 0 or isinstance(place, str) for place in places):
        return None

    def within(text: str) -> str:
        value: Any = text
        for place in reversed(places):
            value = [value] if place == 0 else {place: value}
        return json.dumps(value, ensure_ascii=False)

    return within


_CARRIERS: dict[str, Callable[[Any], Wrap | None]] = {
    "boxed": lambda _: r"\boxed{{{}}}".format,
    "tag": lambda params: f"<{params.name}>{{}}</{params.name}>".format,
    "after": lambda params: lambda text: f"{params.mark} {text}",
    "afterThink": lambda _: "<think>ok</think>\n{}".format,
    "fence": lambda params: f"```{params.lang or ''}\n{{}}\n```".format,
    "json": _json,
}


def in_place_of(gold: str, rollouts: Sequence[str]) -> Wrap | None:
    """Return what puts an answer in place of a gold in the shortest of some texts in which it stands once; None if there is none."""
    fitting = [text for text in rollouts if text.count(gold) == 1]
    if not gold or not fitting:
        return None
    before, _, after = min(fitting, key=len).partition(gold)
    return lambda text: f"{before}{text}{after}"
