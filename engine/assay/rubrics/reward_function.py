"""Reward functions: what each wants of a rollout, found once, and what it says of one."""

import inspect
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from operator import itemgetter
from types import MethodType
from typing import Any

from assay.calls.limits import Settled
from assay.checks.base import BELOW_1, Outcome
from assay.values.arguments import ARGUMENTS, PLURALS

__all__ = [
    "RewardFunction",
    "falls_short",
    "key_of",
    "name_of",
    "reward_function",
    "same_objects",
    "shortfall",
    "verdict",
]

PENALTY = "the penalty is above 0"
"""Reason of a row on which a function with a negative weight gives something."""

_ANY = inspect.Parameter.VAR_KEYWORD
_IN_ORDER = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def name_of(func: Any) -> str:
    """The name of a reward function: its own, of a ``functools.partial`` that of the function it calls, else its class's."""
    while isinstance(func, partial):
        func = func.func
    return str(getattr(func, "__name__", None) or type(func).__name__)


@dataclass(frozen=True, eq=False)
class RewardFunction:
    """A reward function with what it wants.

    Attributes:
        name: Its name, unique among those it runs with.
        func: The function.
        objects: The rubric's own objects that it wants, by name.
        wants: Names of the arguments it wants of a rollout; of a group function, in the singular.
        required: Those of ``wants`` that it names and has no default for.
        optional: Those that it names and has a default for.
        spelled: The same names as it spells them.
        leading: Names of ``objects`` that its first parameters ask for.
        group: Whether it sees all rollouts of an example, and answers with a list.
        in_order: Whether its arguments can be given by position, which is quicker.
        is_async: Whether it is known to be asynchronous before it is called.
    """

    name: str
    func: Callable[..., Any]
    objects: Mapping[str, Any]
    wants: tuple[str, ...]
    required: tuple[str, ...]
    optional: tuple[str, ...]
    spelled: tuple[str, ...]
    leading: tuple[str, ...]
    group: bool
    in_order: bool
    is_async: bool

    def caller(self, names: Sequence[str], absent: Container[str] = ()) -> Callable[[Sequence[Any]], Any]:
        """The function as a function of one sequence, the values of ``names``.

        Args:
            names: Names of arguments.
            absent: Arguments that nobody knows; where the function has a default, it gets that.
        """
        kept = [at for at, name in enumerate(self.wants) if name not in absent or name not in self.optional]
        places = [names.index(self.wants[at]) for at in kept]
        spelled = tuple(self.spelled[at] for at in kept)
        in_order = self.in_order and kept == [*range(len(kept))]
        first = [self.objects[name] for name in self.leading]
        others = {name: value for name, value in self.objects.items() if name not in self.leading}
        func = partial(self.func, *first, **others) if self.objects else self.func
        if not places:
            return lambda _: func()
        if in_order:
            if len(places) == 1:
                return _on_one(func, places[0])
            pick = itemgetter(*places)
            return lambda values: func(*pick(values))
        if places == [*range(len(names))]:
            return lambda values: func(**dict(zip(spelled, values, strict=True)))
        named = tuple(zip(spelled, places, strict=True))
        return lambda values: func(**{name: values[at] for name, at in named})


def _on_one(func: Callable[..., Any], at: int) -> Callable[[Sequence[Any]], Any]:
    return lambda values: func(values[at])


def reward_function(
    func: Callable[..., Any], objects: Mapping[str, Any] | None = None, name: str = ""
) -> RewardFunction:
    """Find out what a function wants.

    Args:
        func: Takes the arguments that it names, or all of them when it has ``**kwargs``.
        objects: The rubric's own objects, given to those that name them.
        name: Its name, where it is not to be its own.

    Raises:
        TypeError: It cannot be called, or Python does not know its parameters.
    """
    if not callable(func):
        raise TypeError(f"a reward function is callable; this is {type(func).__name__}: {func!r}")
    name = name or name_of(func)
    try:
        parameters = list(inspect.signature(func).parameters.values())
    except ValueError:
        raise TypeError(f"{name}: Python does not know its parameters; wrap it in a function that names them") from None
    named = {one.name: one for one in parameters if one.kind not in (_ANY, inspect.Parameter.VAR_POSITIONAL)}
    takes_all = any(one.kind == _ANY for one in parameters)
    objects = objects or {}
    group = any(one in named and one not in objects for one in PLURALS)
    given = PLURALS if group else {one: one for one in ARGUMENTS}
    wanted = {
        spelled: own for spelled, own in given.items() if (takes_all or spelled in named) and spelled not in objects
    }
    by_place = [one.name for one in parameters if one.kind in _IN_ORDER]
    leading = tuple(takewhile(lambda one: one in objects, by_place))
    first = by_place[len(leading) :][: len(wanted)]
    in_order = sorted(first) == sorted(wanted)
    spelled = first if in_order else list(wanted)
    return RewardFunction(
        name,
        func,
        {one: value for one, value in objects.items() if takes_all or one in named},
        tuple(wanted[one] for one in spelled),
        tuple(wanted[one] for one in spelled if one in named and named[one].default is inspect.Parameter.empty),
        tuple(wanted[one] for one in spelled if one in named and named[one].default is not inspect.Parameter.empty),
        tuple(spelled),
        leading,
        group,
        in_order,
        inspect.iscoroutinefunction(func) or inspect.iscoroutinefunction(getattr(func, "__call__", None)),  # noqa: B004
    )


# ── what is made of a call ─────────────────────────────────────────────────────────────────────────────────────────────────


def verdict(one: Settled, weight: float) -> Outcome:
    """The outcome of a call, with what counts against the rollout."""
    reward, error = one
    return Outcome(reward, error or (shortfall(weight) if falls_short(reward, weight) else ""), error)


def shortfall(weight: float) -> str:
    """Reason of a row that falls short."""
    return PENALTY if weight < 0 else BELOW_1


def falls_short(reward: float, weight: float) -> bool:
    """Whether a rollout could have done better: below 1, of a penalty above 0; of a metric never."""
    return reward < 1 if weight > 0 else reward > 0 > weight


def key_of(func: Any) -> Any:
    """What a function is known by: a method is another object each time that it is asked for, and equal."""
    return func if isinstance(func, MethodType) else id(func)


def same_objects(known: Mapping[str, Any], objects: Mapping[str, Any]) -> bool:
    """Whether objects are the very ones that are known; two that are equal may go separate ways."""
    return known.keys() == objects.keys() and all(known[name] is value for name, value in objects.items())
