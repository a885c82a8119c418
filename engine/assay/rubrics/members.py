"""The members of a rubric: reward functions, and what runs as column expressions; as verifiers of one plan, and on rollouts in memory."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, count
from numbers import Real
from typing import Any

from assay.aggregating.pipeline import one_line
from assay.calls.in_thread import run
from assay.calls.limits import CallResult, Limits
from assay.checks.base import Check
from assay.classes.check import ByClass
from assay.compiling.columns import needed_columns, read_columns
from assay.compiling.plan import Plan
from assay.errors import SpecError, printable
from assay.frozen import frozen
from assay.functions.check import Named
from assay.functions.registry import FunctionReference, function, registered_as
from assay.names import FUNCTION
from assay.rewards.check import Metric, Reward
from assay.rewards.panel import Host, RewardBatch
from assay.rewards.reward_function import RewardFunction, name_of, reward_function
from assay.rubrics.worker_processes import Workers
from assay.scoring.reference import score_row
from assay.spec.verifier import CheckSpec, Share, VerifierSpec
from assay.system.processes import prepare_process
from assay.values.rows import from_columns


@frozen
class MemberEntry:
    """A member of a rubric, its weight, the rubric's own objects for functions that name them, and the place of its rubric in nested groups."""

    member: Any
    weight: float = 1.0
    objects: Mapping[str, Any] | None = None
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


def _is_class(member: Any) -> bool:
    return callable(getattr(member, "verify", None)) and not isinstance(member, type)


def _registration(member: Any) -> tuple[str, dict[str, Any]]:
    """Return the name of a registered function, ``""`` if it is none, and its params."""
    params: dict[str, Any] = {}
    if isinstance(member, partial) and not member.args and [*member.keywords] == ["params"]:
        member, params = member.func, member.keywords["params"]
    return registered_as(member), params


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


@frozen
class _Packed:
    # a plain pickle of a registered function would become a reward function when loaded
    reference: FunctionReference
    params: dict[str, Any]


def pack(member: Any) -> Any:
    """Return a member in the form in which it is pickled."""
    name, params = _registration(member)
    registered = function(name)
    return (
        member
        if registered is None or registered.builtin
        else _Packed(FunctionReference.of(name, travels=True), params)
    )


def unpack(member: Any) -> Any:
    """Return a member from the form in which it was pickled; a UsageError if its name is that of another function here."""
    if not isinstance(member, _Packed):
        return member
    fn: Any = member.reference.resolve()
    return partial(fn, params=member.params) if member.params else fn


def specs_of(
    entries: Sequence[MemberEntry],
    limits: Limits,
    pass_threshold: float = 1.0,
    *,
    side_by_side: bool = True,
    origin: str = "",
) -> tuple[VerifierSpec, ...]:
    """Return the members of a rubric as verifiers of one plan; worker processes import it by ``origin``, ``module:attribute``."""
    if not entries:
        raise SpecError("The rubric has no reward functions.", "Add one: rubric.add_reward_func(func, weight=1.0)")
    names = _unique_names(entries)
    functions = _functions_of(entries, names)
    host: Host = Workers([*functions.values()], limits.workers, origin) if limits.workers and functions else run
    paths = [entries[index].path for index in functions]
    alone = len(functions) == len(entries)
    rewards = RewardBatch(
        [*functions.values()], limits, side_by_side=side_by_side, host=host, rubrics=paths, alone=alone
    )
    numbers = {index: number for number, index in enumerate(functions)}
    specs = []
    for index, (name, entry) in enumerate(zip(names, entries, strict=True)):
        share = Share(float(entry.weight), entry.path, pass_threshold)
        if isinstance(entry.member, VerifierSpec):
            specs.append(replace(entry.member, share=share))
        elif index in functions:
            specs.append(_member(name, Reward(rewards, numbers[index], entry.weight), share))
            share = replace(share, weight=0.0)
            specs += [
                _member(f"{name}/{metric}", Metric(rewards, numbers[index], metric), share)
                for metric in functions[index].metrics
            ]
        elif _is_class(entry.member):
            by_class = ByClass(member_name(entry.member), entry.member)
            specs.append(_member(name, by_class, share, kind=by_class.type))
        else:
            fn, params = _registration(entry.member)
            specs.append(_member(name, Named(fn, params), share, params))
    return tuple(specs)


def _member(
    name: str, check: Check, share: Share, params: Mapping[str, Any] | None = None, kind: str = FUNCTION
) -> VerifierSpec:
    spec = CheckSpec(name, check.type, 1.0, required=False, negate=False, params=dict(params or {}), check=check)
    return VerifierSpec(name, name, 1.0, (spec,), kind=kind, share=share)


def functions_of(entries: Sequence[MemberEntry]) -> list[RewardFunction]:
    """Return the reward functions among the members."""
    return [*_functions_of(entries, _unique_names(entries)).values()]


def _functions_of(entries: Sequence[MemberEntry], names: Sequence[str]) -> dict[int, RewardFunction]:
    try:
        for name, entry in zip(names, entries, strict=True):
            check_weight(entry.weight, name)
        return {
            index: reward_function(entry.member, entry.objects, names[index])
            for index, entry in enumerate(entries)
            if is_function(entry.member)
        }
    except (TypeError, ValueError) as error:
        raise SpecError(f"The rubric cannot be used: {error}.") from None


def _unique_names(entries: Sequence[MemberEntry]) -> list[str]:
    ids = [entry.member.id for entry in entries if isinstance(entry.member, VerifierSpec)]
    if duplicate := next((verifier_id for verifier_id in ids if ids.count(verifier_id) > 1), None):
        raise SpecError(f'Two verifiers of the rubric have the id "{duplicate}".', "Change one of the ids.")
    used, names = set(ids), []
    for entry in entries:
        base = printable(member_name(entry.member))
        if isinstance(entry.member, VerifierSpec):
            names.append(base)
            continue
        # the second ``correct`` becomes ``correct-2``
        candidates = chain([base], (f"{base}-{number}" for number in count(2)))
        names.append(next(name for name in candidates if name not in used))
        used.add(names[-1])
    return names


def weighted_sums(scores: Sequence[Sequence[float]], weights: Sequence[float], rows: int) -> list[float]:
    """Return the weighted sum of each row, added from left to right: ``aggregate.reward``, a column at a time."""
    total = [0.0] * rows
    for column, weight in zip(scores, weights, strict=True):
        factor = float(weight)
        total = [so_far + factor * score for so_far, score in zip(total, column, strict=True)]
    return total


def add_scoring_time(state: Any, seconds: float) -> None:
    """Add the time that scoring took to a state."""
    if isinstance(state, dict):
        timing = state.setdefault("timing", {})
        timing["scoring_ms"] = seconds * 1000
        timing["total_ms"] = timing.get("total_ms", 0.0) + seconds * 1000


def add_error(state: Any, message: str) -> None:
    """Add an error to a state, unless it is there already."""
    if isinstance(state, dict):
        lines = str(state.get("error") or "").split("\n")
        state["error"] = "\n".join(filter(None, dict.fromkeys([*lines, one_line(message)])))


def by_columns(member: Any, rollouts: Mapping[str, Sequence[Any]]) -> list[float]:
    """Score rollouts with a member that is no reward function; on an error, the score is 0.0 and the state records it."""
    prepare_process()
    specs = specs_of([MemberEntry(member)], Limits())
    frame = from_columns(_columns(specs, rollouts))
    scored = Plan(specs, tuple(frame.schema.items())).score(frame)
    for state, error in zip(rollouts["state"], scored["error"], strict=True):
        if error is not None:
            prefix = f"{specs[0].id}: "
            add_error(state, prefix + error.removeprefix(prefix))
    scores: list[float] = scored[f"score/{specs[0].id}"].fill_null(0.0).to_list()
    return scores


def by_verifier(member: Any, rollout: Mapping[str, Any]) -> CallResult:
    """Score one rollout with one such member, by its row implementation."""
    specs = specs_of([MemberEntry(member)], Limits())
    columns = _columns(specs, {name: [value] for name, value in rollout.items()})
    scored = score_row({name: values[0] for name, values in columns.items()}, specs)
    score = scored[f"score/{specs[0].id}"]
    return (0.0 if score is None else score), scored["error"]


def _columns(specs: Sequence[VerifierSpec], rollouts: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    columns: dict[str, Sequence[Any]] = {}
    infos = rollouts["info"]
    for name in read_columns(specs):
        if name in rollouts:
            columns[name] = rollouts[name]
        elif name == "metadata":
            columns[name] = [info.get(name, info) for info in infos]
        elif name in needed_columns(specs) or any(name in info for info in infos):
            columns[name] = [info.get(name) for info in infos]
    return columns
