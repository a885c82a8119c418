"""Reward functions: the arguments that each takes, inspected once, and the outcome of a call."""

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
"""Reason for a row on which a function with a negative weight returns more than 0."""

_ANY = inspect.Parameter.VAR_KEYWORD
_IN_ORDER = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def name_of(func: Any) -> str:
    """Return the name of a reward function: its ``__name__``, for a ``functools.partial`` that of its function, else its class's."""
    while isinstance(func, partial):
        func = func.func
    return str(getattr(func, "__name__", None) or type(func).__name__)


@dataclass(frozen=True, eq=False)
class RewardFunction:
    """A reward function with the arguments it takes.

    Attributes:
        name: Its name, unique among the functions it runs with.
        func: The function.
        objects: The rubric's own objects that it takes, by name.
        arguments: Names of the arguments of a rollout that it takes; for a group function, in the singular.
        required: Those of ``arguments`` that it names and has no default for.
        optional: Those that it names and has a default for.
        keywords: The same names as its signature has them.
        leading: Names of ``objects`` that its first parameters take.
        group: Whether it takes all rollouts of an example and returns a list.
        in_order: Whether its arguments can be passed by position, which is faster.
        is_async: Whether it is known to be asynchronous before it is called.
    """

    name: str
    func: Callable[..., Any]
    objects: Mapping[str, Any]
    arguments: tuple[str, ...]
    required: tuple[str, ...]
    optional: tuple[str, ...]
    keywords: tuple[str, ...]
    leading: tuple[str, ...]
    group: bool
    in_order: bool
    is_async: bool

    def caller(self, names: Sequence[str], absent: Container[str] = ()) -> Callable[[Sequence[Any]], Any]:
        """Return the function as a function of one sequence, the values of ``names``.

        Args:
            names: Names of arguments.
            absent: Arguments without a value; the function uses its default if it has one.
        """
        kept = [at for at, name in enumerate(self.arguments) if name not in absent or name not in self.optional]
        places = [names.index(self.arguments[at]) for at in kept]
        keywords = tuple(self.keywords[at] for at in kept)
        in_order = self.in_order and kept == [*range(len(kept))]
        leading = [self.objects[name] for name in self.leading]
        others = {name: value for name, value in self.objects.items() if name not in self.leading}
        func = partial(self.func, *leading, **others) if self.objects else self.func
        if not places:
            return lambda _: func()
        if in_order:
            if len(places) == 1:
                return _on_one(func, places[0])
            pick = itemgetter(*places)
            return lambda values: func(*pick(values))
        if places == [*range(len(names))]:
            return lambda values: func(**dict(zip(keywords, values, strict=True)))
        named = tuple(zip(keywords, places, strict=True))
        return lambda values: func(**{name: values[at] for name, at in named})


def _on_one(func: Callable[..., Any], at: int) -> Callable[[Sequence[Any]], Any]:
    return lambda values: func(values[at])


def reward_function(
    func: Callable[..., Any], objects: Mapping[str, Any] | None = None, name: str = ""
) -> RewardFunction:
    """Inspect which arguments a function takes.

    Args:
        func: Takes the arguments that it names, or all of them if it has ``**kwargs``.
        objects: The rubric's own objects, passed to functions that name them.
        name: A name to use instead of its own.

    Raises:
        TypeError: It is not callable, or its parameters cannot be inspected.
    """
    if not callable(func):
        raise TypeError(f"a reward function must be callable, got {type(func).__name__}: {func!r}")
    name = name or name_of(func)
    try:
        parameters = list(inspect.signature(func).parameters.values())
    except ValueError:
        raise TypeError(f"{name}: Python does not know its parameters; wrap it in a function that names them") from None
    named = {param.name: param for param in parameters if param.kind not in (_ANY, inspect.Parameter.VAR_POSITIONAL)}
    takes_all = any(param.kind == _ANY for param in parameters)
    objects = objects or {}
    group = any(plural in named and plural not in objects for plural in PLURALS)
    singular = {
        keyword: argument
        for keyword, argument in (PLURALS if group else dict(zip(ARGUMENTS, ARGUMENTS, strict=True))).items()
        if (takes_all or keyword in named) and keyword not in objects
    }
    positional = [param.name for param in parameters if param.kind in _IN_ORDER]
    leading = tuple(takewhile(objects.__contains__, positional))
    first = positional[len(leading) :][: len(singular)]
    in_order = sorted(first) == sorted(singular)
    keywords = first if in_order else list(singular)
    required = [key for key in keywords if key in named and named[key].default is inspect.Parameter.empty]
    optional = [key for key in keywords if key in named and key not in required]
    return RewardFunction(
        name,
        func,
        {key: value for key, value in objects.items() if takes_all or key in named},
        tuple(singular[key] for key in keywords),
        tuple(singular[key] for key in required),
        tuple(singular[key] for key in optional),
        tuple(keywords),
        leading,
        group,
        in_order,
        inspect.iscoroutinefunction(func) or inspect.iscoroutinefunction(getattr(func, "__call__", None)),  # noqa: B004
    )


# ── the outcome of a call ─────────────────────────────────────────────────────────────────────────────────────────────────


def verdict(settled: Settled, weight: float) -> Outcome:
    """Return the outcome of a call, with the reason if the rollout falls short."""
    reward, error = settled
    return Outcome(reward, error or (shortfall(weight) if falls_short(reward, weight) else ""), error)


def shortfall(weight: float) -> str:
    """Return the reason for a row that falls short."""
    return PENALTY if weight < 0 else BELOW_1


def falls_short(reward: float, weight: float) -> bool:
    """Return whether a reward is not the best possible: below 1, or above 0 for a penalty; never for a metric."""
    return reward < 1 if weight > 0 else reward > 0 > weight


def key_of(func: Any) -> Any:
    """Return a cache key for a function; bound methods are new but equal objects at each access."""
    return func if isinstance(func, MethodType) else id(func)


def same_objects(cached: Mapping[str, Any], objects: Mapping[str, Any]) -> bool:
    """Return whether two mappings hold the identical objects; equal ones may diverge later."""
    return cached.keys() == objects.keys() and all(cached[name] is value for name, value in objects.items())
