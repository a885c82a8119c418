"""Reward functions: the arguments that each takes, inspected once, and the outcome of a call."""

import inspect
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from itertools import takewhile
from operator import itemgetter
from typing import Any

from assay.checks.base import BELOW_1, Outcome
from assay.frozen import frozen
from assay.rewards.declared import declared, innermost
from assay.values.arguments import ARGUMENTS, COLUMN, PLURALS

PENALTY = "the penalty is above 0"
"""Reason for a row on which a function with a negative weight returns more than 0."""

_ANY = inspect.Parameter.VAR_KEYWORD
_IN_ORDER = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def name_of(func: Any) -> str:
    """Return the name of a reward function: its ``__name__``, for a ``functools.partial`` that of its function, else its class's."""
    func = innermost(func)
    return str(getattr(func, "__name__", None) or type(func).__name__)


@frozen(eq=False)
class RewardFunction:
    """A reward function with the arguments it takes; those of a function over several rollouts are in the singular."""

    name: str  # unique among the functions it runs with
    func: Callable[..., Any]
    objects: Mapping[str, Any]  # the rubric's own objects that it takes, by name
    arguments: tuple[str, ...]
    required: tuple[str, ...]  # arguments that it names and has no default for
    optional: tuple[str, ...]  # those that it names and has a default for
    keywords: tuple[str, ...]  # the arguments under the names in its signature
    leading: tuple[str, ...]  # names of ``objects`` that its first parameters take
    group: bool  # takes all rollouts of an example and returns a list
    batched: bool  # takes any rollouts at once and returns a list, as TRL's functions do
    takes_all: bool  # takes all columns of the rollouts
    metrics: tuple[str, ...]
    positional: int  # first arguments that are passed by position, which is faster, and necessary for some
    is_async: bool  # known to be asynchronous before it is called

    @property
    def takes_lists(self) -> bool:
        """Whether it takes lists of values and returns a list of rewards."""
        return self.group or self.batched

    @property
    def skips(self) -> bool:
        """Whether it may return None for a rollout that it does not apply to, as TRL's functions may."""
        return self.batched or (self.group and self.takes_all)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the rollouts that it names, besides ``ARGUMENTS``."""
        return tuple(name.removeprefix(COLUMN) for name in self.arguments if name.startswith(COLUMN))

    def caller(self, names: Sequence[str], absent: Container[str] = ()) -> Callable[[Sequence[Any]], Any]:
        """Return the function as a function of one sequence, the values of ``names``; for ``absent`` ones it uses its default if it has one."""
        taken = [
            (argument, keyword)
            for argument, keyword in zip(self.arguments, self.keywords, strict=True)
            if argument in names and (argument not in absent or argument not in self.optional)
        ]
        in_order = self.keywords[: self.positional]
        first = [*takewhile(lambda pair: pair[0][1] == pair[1], zip(taken, in_order, strict=False))]
        places = [names.index(argument) for argument, _ in taken]
        named = {keyword: place for (_, keyword), place in zip(taken[len(first) :], places[len(first) :], strict=True)}
        if self.takes_all:  # columns that only ``**kwargs`` takes
            own = {*self.keywords, *self.objects, *(("prompt", "completion") if self.takes_lists else ARGUMENTS)}
            columns = {name.removeprefix(COLUMN): place for place, name in enumerate(names) if name.startswith(COLUMN)}
            named |= {name: place for name, place in columns.items() if name not in own}
        leading = [self.objects[name] for name in self.leading]
        others = {name: value for name, value in self.objects.items() if name not in self.leading}
        func = partial(self.func, *leading, **others) if self.objects else self.func
        positions = places[: len(first)]
        # as little work for a call as its arguments need
        if named:
            keywords = tuple(named.items())
            return lambda values: func(*[values[at] for at in positions], **{name: values[at] for name, at in keywords})
        if not positions:
            return lambda _: func()
        if len(positions) == 1:
            (only,) = positions
            return lambda values: func(values[only])
        pick = itemgetter(*positions)
        return lambda values: func(*pick(values))


def reward_function(
    func: Callable[..., Any], objects: Mapping[str, Any] | None = None, name: str = ""
) -> RewardFunction:
    """Inspect which arguments a function takes."""
    if not callable(func):
        raise TypeError(f"a reward function must be callable, got {type(func).__name__}: {func!r}")
    name = name or name_of(func)
    try:
        parameters = list(inspect.signature(func).parameters.values())
    except ValueError:
        raise TypeError(f"{name}: Python does not know its parameters; wrap it in a function that names them") from None
    named = {param.name: param for param in parameters if param.kind not in (_ANY, inspect.Parameter.VAR_POSITIONAL)}
    takes_all = any(param.kind == _ANY for param in parameters)
    objects, what = objects or {}, declared(func)
    plurals = [plural for plural in PLURALS if plural in named and plural not in objects]
    without_default = [key for key, param in named.items() if param.default is inspect.Parameter.empty]
    alone = [key for key in without_default if key not in PLURALS and key not in objects]
    # NOTE: a function over all rollouts of an example names plurals only; with columns by their own names, it is one of TRL's shape
    batched = what.batched or bool(plurals and alone)
    group = bool(plurals) and not batched
    own = [key for key in named if key not in objects]
    taken = _arguments_of(own, takes_all=takes_all, batched=batched, group=group)
    singular = {keyword: argument for keyword, argument in taken.items() if keyword not in objects}
    positional = [param.name for param in parameters if param.kind in _IN_ORDER]
    leading = tuple(takewhile(objects.__contains__, positional))
    first = [*takewhile(singular.__contains__, positional[len(leading) :])]
    keywords = (*first, *(keyword for keyword in singular if keyword not in first))
    return RewardFunction(
        name,
        func,
        {key: value for key, value in objects.items() if takes_all or key in named},
        tuple(singular[key] for key in keywords),
        tuple(singular[key] for key in keywords if key in without_default),
        tuple(singular[key] for key in keywords if key in named and key not in without_default),
        keywords,
        leading,
        group,
        batched,
        takes_all,
        what.metrics,
        len(first),
        inspect.iscoroutinefunction(func) or inspect.iscoroutinefunction(getattr(func, "__call__", None)),  # noqa: B004
    )


def _arguments_of(named: Sequence[str], *, takes_all: bool, batched: bool, group: bool) -> dict[str, str]:
    plurals = {plural: argument for plural, argument in PLURALS.items() if plural in named}
    singulars = {argument: argument for argument in ARGUMENTS if argument in named}
    columns = {name: COLUMN + name for name in named if name not in PLURALS and name not in ARGUMENTS}
    if group:
        return (PLURALS if takes_all else plurals) | columns
    if batched:
        return ({"prompts": "prompt", "completions": "completion"} if takes_all else {}) | plurals | singulars | columns
    return (dict(zip(ARGUMENTS, ARGUMENTS, strict=True)) if takes_all else singulars) | columns


def verdict(reward: float | None, error: str | None, reason: str, weight: float) -> Outcome:
    """Return the outcome of a call, with the reason if the rollout falls short; the reward is None if the function does not apply."""
    if reward is None:
        return Outcome(None, "")  # type: ignore[arg-type] # only checks that are nullable have such scores
    return Outcome(reward, error or ((reason or shortfall(weight)) if falls_short(reward, weight) else ""), error)


def shortfall(weight: float) -> str:
    """Return the reason for a row that falls short."""
    return PENALTY if weight < 0 else BELOW_1


def falls_short(reward: float, weight: float) -> bool:
    """Return whether a reward is not the best possible: below 1, or above 0 for a penalty; never for a metric."""
    return reward < 1 if weight > 0 else reward > 0 > weight
