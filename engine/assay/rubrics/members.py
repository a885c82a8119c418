"""The members of a rubric, as verifiers of one plan: reward functions, and members that run as column expressions."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, count
from numbers import Real
from typing import Any

from assay.calls.in_thread import run
from assay.calls.limits import Limits
from assay.checks.base import Check
from assay.classes.check import ByClass
from assay.errors import SpecError, printable
from assay.functions.check import Named
from assay.functions.registry import Reference, function, registered_as
from assay.names import FUNCTION
from assay.rewards.check import Metric, Reward
from assay.rewards.panel import Host, Rewards
from assay.rewards.reward_function import RewardFunction, name_of, reward_function
from assay.rubrics.worker_processes import Workers
from assay.spec.verifier import CheckSpec, Share, VerifierSpec


@dataclass(frozen=True)
class Entry:
    """A member of a rubric, its weight, the rubric's own objects for functions that name them, and the place of its rubric in nested groups."""

    member: Any
    weight: float
    objects: Mapping[str, Any]
    path: tuple[int, ...] = ()


def member_name(member: Any) -> str:
    """Return the name of a member."""
    if isinstance(member, VerifierSpec):
        return member.id
    name = _registration(member)[0]
    return name or (str(getattr(member, "name", "")) if _is_class(member) else "") or name_of(member)


def is_function(member: Any) -> bool:
    """Return whether a member is a reward function, called row by row; all others run as column expressions. A TypeError for what is neither."""
    if isinstance(member, VerifierSpec) or _is_class(member) or _registration(member)[0]:
        return False
    if isinstance(member, str | Mapping) or hasattr(member, "__fspath__"):
        raise TypeError(f"load a verifier before you add it to a rubric: assay.load_verifier({member!r})")
    if not callable(member) or isinstance(member, type):
        raise TypeError(f"expected a reward function or a verifier, got {member!r}")
    return True


def check_weight(weight: Any, name: str) -> None:
    """Raise a ValueError if a weight is not a finite number."""
    try:
        finite = isinstance(weight, Real) and math.isfinite(weight)
    except OverflowError:  # an integer too large for a float
        finite = False
    if not finite:
        raise ValueError(f"the weight of {name} is {weight!r:.50}; expected a finite number")


def pair_weights(funcs: Sequence[Any], weights: Sequence[float]) -> list[tuple[Any, float]]:
    """Pair members with their weights, or raise a ValueError."""
    if len(funcs) != len(weights):
        raise ValueError(f"reward functions: {len(funcs)}, weights: {len(weights)}; give one weight for each, or none")
    for func, weight in zip(funcs, weights, strict=True):
        check_weight(weight, member_name(func))
    return list(zip(funcs, weights, strict=True))


def _is_class(member: Any) -> bool:
    return callable(getattr(member, "verify", None)) and not isinstance(member, type)


def _registration(member: Any) -> tuple[str, dict[str, Any]]:
    params: dict[str, Any] = {}
    if isinstance(member, partial) and not member.args and [*member.keywords] == ["params"]:
        params = member.keywords["params"]
        member = member.func
    return registered_as(member), params


@dataclass(frozen=True)
class _Packed:
    reference: Reference
    member: Any


def pack(member: Any) -> Any:
    """Return a member in the form in which it is pickled."""
    name = _registration(member)[0]
    registered = function(name)
    return member if registered is None or registered.builtin else _Packed(Reference.of(name, travels=True), member)


def unpack(member: Any) -> Any:
    """Return a member from the form in which it was pickled; a UsageError if its name is that of another function here."""
    if not isinstance(member, _Packed):
        return member
    fn = member.reference.resolve()
    return partial(fn, **member.member.keywords) if isinstance(member.member, partial) else fn


def specs_of(
    entries: Sequence[Entry],
    limits: Limits,
    pass_threshold: float = 1.0,
    *,
    side_by_side: bool = True,
    origin: str = "",
) -> tuple[VerifierSpec, ...]:
    """Return the members of a rubric as verifiers of one plan."""
    if not entries:
        raise SpecError("The rubric has no reward functions.", "Add one: rubric.add_reward_func(func, weight=1.0)")
    names, functions = _unique_names(entries), functions_of(entries)
    host: Host = Workers([*functions.values()], limits.workers, origin) if limits.workers and functions else run
    paths = [entries[at].path for at in functions]
    alone = len(functions) == len(entries)
    rewards = Rewards([*functions.values()], limits, side_by_side=side_by_side, host=host, rubrics=paths, alone=alone)
    positions = {at: position for position, at in enumerate(functions)}
    specs = []
    for at, entry in enumerate(entries):
        share = Share(float(entry.weight), entry.path, pass_threshold)
        if isinstance(entry.member, VerifierSpec):
            specs.append(replace(entry.member, share=share))
            continue
        if at in positions:
            specs.append(_member(names[at], Reward(rewards, positions[at], entry.weight), share))
            share = replace(share, weight=0.0)
            specs += [
                _member(f"{names[at]}/{metric}", Metric(rewards, positions[at], metric), share)
                for metric in functions[at].metrics
            ]
        elif _is_class(entry.member):
            by_class = ByClass(member_name(entry.member), entry.member)
            specs.append(_member(names[at], by_class, share, kind=by_class.type))
        else:
            fn, params = _registration(entry.member)
            specs.append(_member(names[at], Named(fn, params), share, {"params": params}))
    return tuple(specs)


def _member(
    name: str, check: Check, share: Share, params: Mapping[str, Any] | None = None, kind: str = FUNCTION
) -> VerifierSpec:
    spec = CheckSpec(name, check.type, 1.0, required=False, negate=False, params=dict(params or {}), check=check)
    return VerifierSpec(name, name, 1.0, (spec,), kind=kind, share=share)


def functions_of(entries: Sequence[Entry]) -> dict[int, RewardFunction]:
    """Return the reward functions among the members, by position."""
    names = _unique_names(entries)
    try:
        for name, entry in zip(names, entries, strict=True):
            check_weight(entry.weight, name)
        return {
            at: reward_function(entry.member, entry.objects, names[at])
            for at, entry in enumerate(entries)
            if is_function(entry.member)
        }
    except (TypeError, ValueError) as error:
        raise SpecError(f"The rubric cannot be used: {error}.") from None


def _unique_names(entries: Sequence[Entry]) -> list[str]:
    ids = [entry.member.id for entry in entries if isinstance(entry.member, VerifierSpec)]
    if duplicate := next((verifier_id for verifier_id in ids if ids.count(verifier_id) > 1), None):
        raise SpecError(f'Two verifiers of the rubric have the id "{duplicate}".', "Change one of the ids.")
    used, names = set(ids), []
    for entry in entries:
        base = printable(member_name(entry.member))
        if isinstance(entry.member, VerifierSpec):
            names.append(base)
            continue
        candidates = chain([base], (f"{base}-{number}" for number in count(2)))
        names.append(next(name for name in candidates if name not in used))
        used.add(names[-1])
    return names
