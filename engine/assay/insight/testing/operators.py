"""The changes of a verifier that its tests should notice, one at a time, in the terms of its canonical form."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from assay.checks.groups import GROUPS
from assay.checks.registry import BUILTIN
from assay.frozen import frozen
from assay.insight.testing.assignments import attainable_rewards, effective_params
from assay.insight.testing.expectations import plain_number
from assay.insight.testing.patterns import changed_patterns
from assay.spec.fields import is_number
from assay.spec.pipeline import SOURCE_NAMES
from assay.spec.verifier import VerifierSpec
from assay.steps.registry import STEPS
from assay.values.references import as_list, is_reference

Form = dict[str, Any]
"""A verifier or a check in canonical form."""

_TENTH = 0.1
_FEW = 2
"""Fewest characters of a phrase, and items of a list, of which one can be left out."""


@frozen
class Change:
    """One change of a verifier.

    Attributes:
        check: The id of the check; ``""`` for the verifier.
        operator: What kind of change it is.
        change: What exactly, where the operator does not say it.
        edited: Makes the changed verifier.
        is_structural: Whether it leaves params and steps as they are, so that it differs only if the scores of leaves are put together
            otherwise.
    """

    check: str
    operator: str
    change: str
    edited: Callable[[], Form]
    is_structural: bool = False


_TYPES = {
    "all_of": "any_of",
    "any_of": "all_of",
    "none_of": "any_of",
    "min": "max",
    "max": "min",
    "mean": "min",
    "product": "min",
    "contains_any": "contains_all",
    "contains_all": "contains_any",
}
_MODES: dict[str, dict[Any, Any]] = {
    "arguments": {"exact": "subset", "subset": "exact"},
    "order": {"any": "same", "same": "any"},
    "lists": {"ordered": "unordered", "unordered": "ordered"},
    "score": {"all": "share", "share": "all"},
    "as": {"list": "multiset", "multiset": "list", "set": "multiset"},
}
_ENDS = {"last": "first", "first": "last"}
_STRIPPING = frozenset({"afterThink", "think", "tag", "after", "line", "strip", "trim", "whitespace", "split"})
"""Steps whose results have no white space around them."""
_LENGTHS = ("min_length", "max_length")
_BOUNDS = ("min", "max", "exactly")


def changes_of(verifier: VerifierSpec, form: Form) -> Iterator[Change]:
    """Yield the changes of a verifier, given as a spec in canonical form; those that no verifier can have are among them."""
    threshold = form["passThreshold"]
    for other in _pass_thresholds(verifier, threshold):
        written = f"{plain_number(threshold)} -> {plain_number(other)}"
        yield Change("", "passThreshold", written, partial(dict, form, passThreshold=other), is_structural=True)
    for place, ident, siblings, parent in _places(form["checks"], (), "", None):
        make = partial(_changed, form, place, ident)
        yield from _of_role(make, _at(form, place), siblings, parent)
        yield from _of_structure(make, _at(form, place))
        yield from _of_steps(make, _at(form, place))
        yield from _of_params(make, _at(form, place))


_Make = Callable[..., Change]


def _places(
    checks: Sequence[Form], above: tuple[int, ...], prefix: str, parent: str | None
) -> Iterator[tuple[tuple[int, ...], str, int, str | None]]:
    """Yield the place of each check, its id, how many checks its list has, and the type of its group: a group before its checks."""
    for at, check in enumerate(checks):
        ident = prefix + check["id"]
        yield (*above, at), ident, len(checks), parent
        yield from _places(check.get("checks", ()), (*above, at), f"{ident}.", check["type"])


def _at(form: Form, place: Sequence[int]) -> Form:
    for at in place:
        form = form["checks"][at]
    return form


def _changed(
    form: Form,
    place: Sequence[int],
    ident: str,
    operator: str,
    change: str,
    edit: Mapping[str, Any] | None,
    *,
    params: Mapping[str, Any] | None = None,
    structural: bool = False,
) -> Change:
    """Return a change of one check: fields to set, or to remove where they are None; without fields, the check is left out."""
    return Change(ident, operator, change, partial(_edited, form, place, edit, params), structural)


def _edited(form: Form, place: Sequence[int], edit: Mapping[str, Any] | None, params: Mapping[str, Any] | None) -> Form:
    at, *within = place
    before, check, after = form["checks"][:at], form["checks"][at], form["checks"][at + 1 :]
    if within:
        changed = [_edited(check, within, edit, params)]
    elif edit is None:
        changed = []
    else:
        fields = {**check, **edit, **({} if params is None else {"params": {**check.get("params", {}), **params}})}
        changed = [{name: value for name, value in fields.items() if name not in edit or value is not None}]
    return {**form, "checks": [*before, *changed, *after]}


def _pass_thresholds(verifier: VerifierSpec, threshold: float) -> list[float]:
    rewards = attainable_rewards(verifier)
    if rewards is None:
        return _near(threshold)
    return [*[reward for reward in rewards if reward < threshold][-1:], *[r for r in rewards if r >= threshold][1:2]]


def _near(threshold: float) -> list[float]:
    both = (round(threshold - _TENTH, 10), round(threshold + _TENTH, 10))
    return [other for other in both if 0 < other <= 1]


def _arrow(before: Any, after: Any) -> str:
    texts = (plain_number(value) if is_number(value) else str(value) for value in (before, after))
    return " -> ".join(texts)


def _of_role(make: _Make, check: Form, siblings: int, parent: str | None) -> Iterator[Change]:
    """What the score of the check does."""
    make = partial(make, structural=True)
    if siblings > 1:
        yield make("drop", "", None)
    yield make("negate", "", {"negate": not check.get("negate", False)})
    if check.get("required"):
        yield make("required", "", {"required": False})
    weight, penalty = check.get("weight", 1.0), check.get("penalty")
    has_weight = not check.get("gate") and not penalty
    if has_weight and weight and parent in (None, "mean"):
        for other in (weight * 2, weight / 2):
            yield make("weight", _arrow(weight, other), {"weight": other})
    if parent is None and has_weight:
        yield make("role", "weight -> gate", {"weight": None, "gate": True})
    elif parent is None and penalty:
        yield make("role", f"penalty -> {plain_number(penalty / 2)}", {"penalty": penalty / 2})
    elif parent is None:
        yield make("role", "gate -> weight 1", {"gate": None, "weight": 1.0})


def _of_structure(make: _Make, check: Form) -> Iterator[Change]:
    """How the check, or a group, comes to its score."""
    is_group = check["type"] in {group.type for group in GROUPS}
    threshold: Any = check.get("threshold")
    if is_number(threshold):
        for other in _near(threshold):
            yield make("threshold", _arrow(threshold, other), {"threshold": other})
    if (kind := _TYPES.get(check["type"])) is not None:
        edit: Form = {"type": kind}
        if not is_group:
            known = {field.alias or name for name, field in BUILTIN[kind].Params.model_fields.items()}
            edit["params"] = {name: value for name, value in check["params"].items() if name in known}
        yield make("type", _arrow(check["type"], kind), edit, structural=is_group)
    if check["type"] == "at_least":
        k = check["params"]["k"]
        for other in (k - 1, k + 1):
            yield make("type", _arrow(k, other), {}, params={"k": other}, structural=True)


def _of_steps(make: _Make, check: Form) -> Iterator[Change]:
    """What the check reads."""
    subject = check.get("on", [])
    first = int(
        bool(subject) and (is_reference(subject[0]) or (isinstance(subject[0], str) and subject[0] in SOURCE_NAMES))
    )
    steps = [(at, item, _name_of(item)) for at, item in enumerate(subject) if at >= first]
    for at, _, name in steps:
        rest = [*subject[:at], *subject[at + 1 :]]
        yield make("step", f"without {name}", {"on": rest or None})
    for at, item, name in steps:
        kind = STEPS[name]
        fields: Form = {name: None} if isinstance(item, str) else {**item}
        if isinstance(fields[name], Mapping) and not kind.takes_mapping:
            fields |= {**fields[name], name: None}
        by_value = kind.shorthand == "at"
        known = kind.Params.model_fields
        end = fields.get(name if by_value else "at") or (known["at"].default if "at" in known else None)
        if other := _ENDS.get(str(end)):
            fields[name if by_value else "at"] = other
            yield make("at", f"{name}: {_arrow(end, other)}", {"on": [*subject[:at], fields, *subject[at + 1 :]]})
    if steps:
        now = check.get("notFound", "fail")
        other = "pass" if now == "fail" else "fail"
        yield make("notFound", _arrow(now, other), {"notFound": other})


def _name_of(step: Any) -> str:
    return step if isinstance(step, str) else next(name for name in step if name in STEPS)


def _of_params(make: _Make, check: Form) -> Iterator[Change]:
    """The params of the check type."""
    params: dict[str, Any] = effective_params(BUILTIN.get(check["type"]), check.get("params"))
    names = [*map(_name_of_any, check.get("on", []))]
    if check["type"] == "number" and "number" not in names and (end := params.get("at")) in _ENDS:
        yield make("at", _arrow(end, _ENDS[end]), {}, params={"at": _ENDS[end]})
    yield from _of_comparison(make, check, params, names)
    yield from _of_phrases(make, params)
    yield from _of_numbers_and_modes(make, check, params)
    if params.get("normalize") is not None:
        yield make("unset", "normalize", {}, params={"normalize": None})
    for name in ("goldOn", "when"):
        if check.get(name) is not None:
            yield make("unset", name, {name: None})
    if isinstance(pattern := params.get("pattern"), str):
        for other in changed_patterns(pattern):
            yield make("pattern", other, {}, params={"pattern": other})


def _of_numbers_and_modes(make: _Make, check: Form, params: Form) -> Iterator[Change]:
    for name in (*_BOUNDS, *(("value",) if check["type"] in _LENGTHS else ())):
        bound: Any = params.get(name)
        if is_number(bound):
            others = (bound - 1, bound + 1) if isinstance(bound, int) else (bound * 0.99, bound * 1.01)
            for other in others if bound or isinstance(bound, int) else ():
                yield make("bound", _arrow(bound, other), {}, params={name: other})
    for name, modes in _MODES.items():
        if isinstance(mode := params.get(name), str) and mode in modes:
            yield make("mode", f"{name} {_arrow(mode, modes[mode])}", {}, params={name: modes[mode]})


def _of_comparison(make: _Make, check: Form, params: Form, steps: Sequence[str]) -> Iterator[Change]:
    for name, other in (("relTol", 0.01), ("absTol", 0)):
        value = params.get(name)
        if is_number(value) and (value or other):
            yield make(
                "tolerance", f"{name} {_arrow(value, 0 if value else other)}", {}, params={name: 0 if value else other}
            )
    if isinstance(case := params.get("caseSensitive"), bool) and not _is_caseless(params):
        yield make("case", "caseSensitive", {}, params={"caseSensitive": not case})
    if isinstance(word := check.get("params", {}).get("word"), bool):
        yield make("word", "", {}, params={"word": not word})
    if (
        check["type"] == "equals"
        and isinstance(strip := params.get("strip"), bool)
        and not _STRIPPING.intersection(steps)
    ):
        yield make("strip", "", {}, params={"strip": not strip})


def _of_phrases(make: _Make, params: Form) -> Iterator[Change]:
    if isinstance(value := params.get("value"), str) and len(value) >= _FEW:
        yield make("phrase", "last character off", {}, params={"value": value[:-1]})
    for name in ("value", "values"):
        if isinstance(items := params.get(name), list) and len(items) >= _FEW:
            for at in range(len(items)):
                yield make("phrase", f"without item {at + 1}", {}, params={name: [*items[:at], *items[at + 1 :]]})


def _is_caseless(params: Form) -> bool:
    """Return whether all that the check looks for is text of ASCII without letters."""
    given = [params[name] for name in ("value", "values") if name in params]
    texts = [text for value in given for text in as_list(value)]
    return bool(texts) and all(isinstance(text, str) and re.fullmatch(r"[\x00-@\[-`{-\x7f]*", text) for text in texts)


def _name_of_any(item: Any) -> str:
    return item if isinstance(item, str) else next(iter(item), "")
