"""What a rubric is made of, as verifiers with their shares: reward functions, and what runs as columns."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any

from assay.calls.in_thread import run
from assay.calls.limits import Limits
from assay.checks.base import Check
from assay.classes.check import ByClass
from assay.errors import SpecError, printable
from assay.functions.named import Named
from assay.functions.registry import Reference, function, registered_as
from assay.names import FUNCTION
from assay.rubrics.panel import Host, Reward, Rewards
from assay.rubrics.reward_function import RewardFunction, name_of, reward_function
from assay.rubrics.worker_processes import Workers
from assay.spec.verifier import CheckSpec, Share, VerifierSpec

__all__ = [
    "Entry",
    "check_weight",
    "functions_of",
    "is_function",
    "member_name",
    "packed",
    "paired",
    "specs_of",
    "unpacked",
]


@dataclass(frozen=True)
class Entry:
    """One member of a rubric.

    Attributes:
        member: A reward function, a loaded verifier, a registered function, or an instance of a verifier class.
        weight: Its weight.
        objects: The rubric's own objects, for functions that name them.
        path: Which rubric of a group it is in.
    """

    member: Any
    weight: float
    objects: Mapping[str, Any]
    path: tuple[int, ...] = ()


def member_name(member: Any) -> str:
    """What a member is called."""
    if isinstance(member, VerifierSpec):
        return member.id
    name = _registered(member)[0]
    return name or (str(getattr(member, "name", "")) if _is_class(member) else "") or name_of(member)


def is_function(member: Any) -> bool:
    """Whether a member is a reward function, which Python runs; all others run as columns.

    Raises:
        TypeError: It can be no member at all.
    """
    if isinstance(member, VerifierSpec) or _is_class(member) or _registered(member)[0]:
        return False
    if isinstance(member, str | Mapping) or hasattr(member, "__fspath__"):
        raise TypeError(f"a verifier is loaded before it joins a rubric: assay.load_verifier({member!r})")
    if not callable(member) or isinstance(member, type):
        raise TypeError(f"a member of a rubric is a reward function or a verifier; this is {member!r}")
    return True


def check_weight(weight: Any, name: str) -> None:
    """Find a weight that no sum can have.

    Raises:
        ValueError: It is not a finite number.
    """
    try:
        finite = isinstance(weight, Real) and math.isfinite(weight)
    except OverflowError:  # an integer that no float holds
        finite = False
    if not finite:
        raise ValueError(f"the weight of {name} is {weight!r:.50}; expected a finite number")


def paired(funcs: Sequence[Any], weights: Sequence[float]) -> list[tuple[Any, float]]:
    """Members with their weights.

    Raises:
        ValueError: There are more or fewer weights than members, or a weight is not a finite number.
    """
    if len(funcs) != len(weights):
        raise ValueError(f"{len(funcs)} reward functions have {len(weights)} weights; give each one, or give none")
    for func, weight in zip(funcs, weights, strict=True):
        check_weight(weight, member_name(func))
    return list(zip(funcs, weights, strict=True))


def _is_class(member: Any) -> bool:
    return callable(getattr(member, "verify", None)) and not isinstance(member, type)


def _registered(member: Any) -> tuple[str, dict[str, Any]]:
    """The name of a registered function and its params; the name is ``""`` for any other."""
    params: dict[str, Any] = {}
    if isinstance(member, partial) and not member.args and [*member.keywords] == ["params"]:
        params = member.keywords["params"]
        member = member.func
    return registered_as(member), params


@dataclass(frozen=True)
class _Packed:
    """A registered function with its params, on its way to another process, where it would be a reward function otherwise."""

    reference: Reference
    member: Any


def packed(member: Any) -> Any:
    """A member as it travels."""
    name = _registered(member)[0]
    known = function(name)
    return member if known is None or known.builtin else _Packed(Reference.of(name, travels=True), member)


def unpacked(member: Any) -> Any:
    """A member that has travelled.

    Raises:
        UsageError: It is a registered function, and its name is that of another one here.
    """
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
    """The members of a rubric as verifiers of one plan.

    Args:
        entries: The members, in order.
        limits: What the run allows reward functions.
        pass_threshold: The reward from which on a row passes.
        side_by_side: Whether asynchronous functions of one rollout run together.
        origin: ``module:attribute`` that a worker process finds the rubric under, or ``""``.

    Raises:
        SpecError: There is no member, one cannot be used, or two verifiers have one id.
        UsageError: The functions cannot travel to worker processes.
    """
    if not entries:
        raise SpecError("The rubric has no reward functions.", "Add one: rubric.add_reward_func(func, weight=1.0)")
    names, functions = _names(entries), functions_of(entries)
    host: Host = Workers([*functions.values()], limits.workers, origin) if limits.workers and functions else run
    rubrics = [entries[at].path for at in functions]
    together = Rewards([*functions.values()], limits, side_by_side=side_by_side, host=host, rubrics=rubrics)
    places = {at: place for place, at in enumerate(functions)}
    found = []
    for at, one in enumerate(entries):
        share = Share(float(one.weight), one.path, pass_threshold)
        if isinstance(one.member, VerifierSpec):
            found.append(replace(one.member, share=share))
            continue
        check = Reward(together, places[at], one.weight) if at in places else _columnar(one.member)
        params = {"params": check.fn_params} if isinstance(check, Named) else {}
        spec = CheckSpec(names[at], check.type, 1.0, required=False, negate=False, params=params, check=check)
        kind = check.type if isinstance(check, ByClass) else FUNCTION
        found.append(VerifierSpec(names[at], names[at], 1.0, (spec,), kind=kind, share=share))
    return tuple(found)


def functions_of(entries: Sequence[Entry]) -> dict[int, RewardFunction]:
    """The reward functions among the members, by their places.

    Raises:
        SpecError: A member or its weight cannot be used.
    """
    names = _names(entries)
    try:
        for name, one in zip(names, entries, strict=True):
            check_weight(one.weight, name)
        return {
            at: reward_function(one.member, one.objects, names[at])
            for at, one in enumerate(entries)
            if is_function(one.member)
        }
    except (TypeError, ValueError) as wrong:
        raise SpecError(f"The rubric cannot be used: {wrong}.") from None


def _columnar(member: Any) -> Check:
    if _is_class(member):
        return ByClass(member_name(member), member)
    return Named(*_registered(member))


def _names(entries: Sequence[Entry]) -> list[str]:
    """A unique name for every member: the second ``correct`` is ``correct-2``. Verifiers keep their ids.

    Raises:
        SpecError: Two verifiers have one id, or a name cannot be one of a column.
    """
    ids = [one.member.id for one in entries if isinstance(one.member, VerifierSpec)]
    if twice := next((one for one in ids if ids.count(one) > 1), None):
        raise SpecError(f'Two verifiers of the rubric have the id "{twice}".', "Give one of them another `id`.")
    taken, names = set(ids), []
    for one in entries:
        name = base = printable(member_name(one.member))
        if not isinstance(one.member, VerifierSpec):
            number = 1
            while name in taken:
                number += 1
                name = f"{base}-{number}"
            taken.add(name)
        names.append(name)
    return names
