"""Rubrics: reward functions and verifiers whose weighted sum is the reward.

    def correct(completion, answer, parser):
        return 1.0 if parser.parse_answer(completion) == answer else 0.0

    rubric = assay.Rubric(funcs=[correct, assay.load_verifier("format.json")], weights=[1.0, 0.2], parser=parser)
    rewards = assay.score("rollouts.parquet", rubric)

The class has the shape of PrimeIntellect's ``verifiers`` 0.1.6: a file written for that needs another import, and no more.
"""

import asyncio
import contextlib
import inspect
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

from assay.calls.limits import Limits, Settled, failed, only, own_failure, settled
from assay.calls.runner import run_in_loop, within
from assay.errors import SpecError, UsageError, printable
from assay.rubrics.members import (
    Entry,
    check_weight,
    functions_of,
    is_function,
    member_name,
    packed,
    paired,
    specs_of,
    unpacked,
)
from assay.rubrics.panel import Rewards, examples
from assay.rubrics.parsers import Parser
from assay.rubrics.reward_function import RewardFunction, key_of, reward_function, same_objects
from assay.rubrics.rewarded import by_columns, by_verifier, note, timed, weighted_sums
from assay.spec.verifier import VerifierSpec
from assay.system.progress import Ticks, progress
from assay.types import Info, Messages, RewardFunc, RolloutScore, RolloutScores, State
from assay.values.arguments import ARGUMENTS

__all__ = ["Rubric"]

_METHODS = ("call_reward_func", "score_rollout", "run_score_rollout", "score_group", "score_rollouts")
"""What a subclass may put its own scoring into."""


def _is_ours(method: Any) -> bool:
    """Whether a method is one of this room, whose scoring by columns is the same."""
    return str(method.__module__).rpartition(".")[0] == __package__


class Rubric:
    """Reward functions with weights: the reward is the weighted sum, in the order of the functions.

    A reward function gets the arguments that it names, or all of them when it has ``**kwargs``: ``prompt``,
    ``completion``, ``answer``, ``state``, ``task``, ``info``, ``example_id``, ``parser``, and the other objects of
    ``class_objects``. It returns a finite number, of any type but text, and may be asynchronous; beside one that is, all
    run in one event loop, where ``asyncio.run`` does not work. One that names ``completions`` or another plural gets
    lists: all rollouts of an example (those with one ``example_id``, else with one prompt), and returns a list. A function
    that raises scores 0.0; that is logged, and told in the column ``error``, or in ``state["error"]`` where a state is there.

    Loaded verifiers, functions of ``assay.fns`` and instances of verifier classes can be members beside the functions.

    Args:
        funcs: The members.
        weights: Their weights, by default 1.0 each; 0 makes a member a metric, below 0 a penalty.
        parser: Given to functions that name it, by default ``Parser()``.
        parallelize_scoring: Whether asynchronous functions of one rollout run side by side.
        kwargs: Set as attributes.

    Attributes:
        reward_funcs: The members.
        reward_weights: Their weights.
        origin: ``module:attribute`` under which a worker process finds the rubric, where its functions cannot be pickled.
        class_objects: What functions can name besides the arguments of a rollout: ``{"parser": parser}``, and yours.

    Raises:
        ValueError: There are more or fewer weights than members, or a weight is not a finite number.
        TypeError: A member is neither a function nor a loaded verifier.
    """

    def __init__(
        self,
        funcs: Sequence[RewardFunc | VerifierSpec] | None = None,
        weights: Sequence[float] | None = None,
        parser: Parser | None = None,
        parallelize_scoring: bool = True,
        **kwargs: Any,
    ) -> None:
        self.logger = logging.getLogger(f"assay.rubrics.{type(self).__name__}")
        self.reward_funcs: list[Any] = list(funcs or ())
        self.reward_weights: list[float] = list(weights or ()) or [1.0] * len(self.reward_funcs)
        self.parser = parser or Parser()
        self.parallelize_scoring = parallelize_scoring
        self.origin = ""
        for name, value in kwargs.items():
            setattr(self, name, value)
        self.class_objects: dict[str, Any] = {"parser": self.parser}
        for func in self.reward_funcs:
            is_function(func)
        paired(self.reward_funcs, self.reward_weights)
        self._known: dict[Any, tuple[Any, Mapping[str, Any], RewardFunction]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_known": {}, "reward_funcs": [packed(func) for func in self.reward_funcs]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.reward_funcs = [unpacked(func) for func in self.reward_funcs]

    # ── what it is made of ──────────────────────────────────────────────────────────────────────────────────────────

    def get_reward_func_names(self) -> list[str]:
        """Names of the members; of a verifier its id."""
        return [member_name(func) for func in self.get_reward_funcs()]

    def get_reward_funcs(self) -> list[Any]:
        """The members."""
        return self.reward_funcs

    def get_reward_weights(self) -> list[float]:
        """Their weights."""
        return self.reward_weights

    def add_reward_func(self, func: RewardFunc | VerifierSpec, weight: float = 1.0) -> None:
        """Add a member."""
        is_function(func)
        check_weight(weight, member_name(func))
        self.reward_funcs.append(func)
        self.reward_weights.append(weight)

    @property
    def has_group_funcs(self) -> bool:
        """Whether a function sees all rollouts of an example, so that they are scored together."""
        return any(
            self._inspected(func, self.class_objects).group for func in self.get_reward_funcs() if is_function(func)
        )

    def entries(self, path: tuple[int, ...] = ()) -> list[Entry]:
        """The members with what goes with them.

        Raises:
            SpecError: There are more or fewer weights than members, or a weight is not a finite number.
            UsageError: A subclass scores in its own way, which no plan can.
        """
        self._check_plain()
        try:
            pairs = self._pairs()
        except ValueError as wrong:
            raise SpecError(f"The rubric cannot be used: {wrong}.") from None
        return [Entry(func, weight, self.class_objects, path) for func, weight in pairs]

    def members(self, limits: Limits, pass_threshold: float = 1.0) -> tuple[VerifierSpec, ...]:
        """The members as verifiers of one plan: what ``assay.score`` compiles."""
        side_by_side, origin = self._side_by_side, self.origin
        return specs_of(self.entries(), limits, pass_threshold, side_by_side=side_by_side, origin=origin)

    def functions(self) -> list[RewardFunction]:
        """The reward functions among the members: what a worker process runs."""
        return [*functions_of(self.entries()).values()]

    @property
    def _side_by_side(self) -> bool:
        return self.parallelize_scoring

    def _pairs(self) -> list[tuple[Any, float]]:
        return paired(self.get_reward_funcs(), self.get_reward_weights())

    def _check_plain(self) -> None:
        own = [name for name in _METHODS if not _is_ours(getattr(type(self), name))]
        if own:
            raise UsageError(
                f"{type(self).__name__} has its own {', '.join(own)}, so it cannot be scored as columns.",
                "Await its score_rollouts, or put the scoring into reward functions.",
            )

    def _is_plain(self) -> bool:
        return all(_is_ours(getattr(type(self), name)) for name in _METHODS[:3])

    # ── one rollout ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def call_reward_func(
        self,
        func: RewardFunc | VerifierSpec,
        prompt: Messages,
        completion: Messages,
        answer: str,
        state: State,
        task: str = "default",
        info: Info | None = None,
        example_id: int | None = None,
        **kwargs: Any,
    ) -> float:
        """What one member gives one rollout; ``kwargs`` are objects that functions can name."""
        info = {} if info is None else info
        given = dict(zip(ARGUMENTS, (prompt, completion, answer, state, task, info, example_id), strict=True))
        score, error = await self._call(func, given, self.class_objects | kwargs)
        if error is not None:
            name = member_name(func)
            self.logger.error("%s: %s", name, printable(error))
            note(state, f"{name}: {error}")
        return score

    async def score_rollout(
        self,
        prompt: Messages,
        completion: Messages,
        answer: str,
        state: State,
        task: str = "default",
        info: Info | None = None,
        example_id: int | None = None,
        **kwargs: Any,
    ) -> RolloutScore:
        """Score one rollout; ``state["timing"]`` is told how long it took."""
        started = time.perf_counter()
        funcs = self.get_reward_funcs()
        calls = [
            self.call_reward_func(func, prompt, completion, answer, state, task, info, example_id, **kwargs)
            for func in funcs
        ]
        scores = await asyncio.gather(*calls) if self.parallelize_scoring else [await call for call in calls]
        timed(state, time.perf_counter() - started)
        metrics = {member_name(func): score for func, score in zip(funcs, scores, strict=True)}
        return RolloutScore(
            reward=weighted_sums([[one] for one in scores], self.get_reward_weights(), 1)[0], metrics=metrics
        )

    async def run_score_rollout(
        self, sem: contextlib.AbstractAsyncContextManager[Any], *args: Any, **kwargs: Any
    ) -> RolloutScore:
        """``score_rollout`` within a semaphore."""
        async with sem:
            return await self.score_rollout(*args, **kwargs)

    def _inspected(self, func: Any, objects: Mapping[str, Any]) -> RewardFunction:
        """What a function wants, found once."""
        known = self._known.get(key_of(func))
        if known is None or known[0] != func or not same_objects(known[1], objects):
            known = self._known[key_of(func)] = (func, dict(objects), reward_function(func, objects))
        return known[2]

    async def _call(self, func: Any, given: Mapping[str, Any], objects: Mapping[str, Any]) -> Settled:
        if not is_function(func):
            return by_verifier(func, given)
        try:
            one = self._inspected(func, objects)
            values = [[given[name]] if one.group else given[name] for name in ARGUMENTS]
            found = one.caller(ARGUMENTS)(values)
            found = await within(found) if inspect.isawaitable(found) else found
            return settled(only(found) if one.group else found)
        except BaseException as wrong:  # one broken function never ends a run
            if not own_failure(wrong):
                raise
            return failed(wrong)

    # ── many rollouts ───────────────────────────────────────────────────────────────────────────────────────────────

    async def score_group(self, states: list[State], **kwargs: Any) -> None:
        """Called with all rollouts before they are scored; a place for comparisons of your own, to be left in the states."""

    async def score_rollouts(
        self,
        prompts: list[Messages],
        completions: list[Messages],
        answers: list[str],
        states: list[State],
        tasks: list[str],
        infos: list[Info],
        example_ids: list[int] | None = None,
        max_concurrent: int = -1,
        use_tqdm: bool = True,
        **kwargs: Any,
    ) -> RolloutScores:
        """Score rollouts: Python functions in one loop, verifiers in one pass over columns.

        Args:
            prompts: One for each rollout, as are all lists.
            completions: Text or messages.
            answers: Golds.
            states: What each rollout knows of itself; not looked at where there are no rollouts.
            tasks: Kinds of task.
            infos: What else is known of each example.
            example_ids: The example of each; by default every prompt is an example.
            max_concurrent: Rollouts that asynchronous functions work on at once; at most 0 for all.
            use_tqdm: Show a progress bar, where standard error is a terminal.
            kwargs: Objects that functions can name.

        Raises:
            ValueError: The lists have several lengths.
        """
        rollouts: dict[str, Sequence[Any]] = {
            "prompt": prompts,
            "completion": completions,
            "answer": answers,
            "state": states,
            "task": tasks,
            "info": [{} if info is None else info for info in infos],
            "example_id": list(example_ids or range(len(prompts))),
        }
        # where there is no rollout, states are of none: callers of the releases of verifiers leave one there
        lengths = {len(values) for name, values in rollouts.items() if name != "state" or len(prompts)}
        if len(lengths) > 1:
            said = ", ".join(f"{len(values)} of {name}" for name, values in rollouts.items())
            raise ValueError(f"a rollout has one value in every list; here are {said}")
        lists = {f"{name}s": values for name, values in rollouts.items() if name != "state"}
        await self.score_group(states, **lists, **kwargs)
        rows, names = len(prompts), self.get_reward_func_names()
        if not rows:
            return RolloutScores(reward=[], metrics={name: [] for name in names})
        if not self._is_plain():
            return await self._one_by_one(rollouts, rows, max_concurrent, kwargs)
        with progress("scoring", show=use_tqdm) as tell:
            limits = Limits(max_concurrent=max_concurrent, tick=Ticks(tell, rows).add if tell else None)
            scores = await self._scored(rollouts, rows, limits, self.class_objects | kwargs, bool(example_ids))
        rewards = weighted_sums(scores, self.get_reward_weights(), rows)
        return RolloutScores(reward=rewards, metrics={name: list(one) for name, one in zip(names, scores, strict=True)})

    async def _one_by_one(
        self, rollouts: Mapping[str, Sequence[Any]], rows: int, max_concurrent: int, kwargs: Mapping[str, Any]
    ) -> RolloutScores:
        """Through the methods of a subclass that scores in its own way."""
        sem: Any = asyncio.Semaphore(max_concurrent) if max_concurrent > 0 else contextlib.nullcontext()
        each = zip(*rollouts.values(), strict=True)
        found = await asyncio.gather(*(self.run_score_rollout(sem, *one, **kwargs) for one in each))
        metrics = {name: [one.metrics[name] for one in found] for name in found[0].metrics} if rows else {}
        return RolloutScores(reward=[one.reward for one in found], metrics=metrics)

    async def _scored(
        self,
        rollouts: Mapping[str, Sequence[Any]],
        rows: int,
        limits: Limits,
        objects: Mapping[str, Any],
        has_ids: bool,
    ) -> list[Sequence[float]]:
        """What each member gives each rollout."""
        funcs = [func for func, _ in self._pairs()]
        places = [at for at, func in enumerate(funcs) if is_function(func)]
        wanted = [self._inspected(funcs[at], objects) for at in places]
        together = Rewards(wanted, limits, side_by_side=self.parallelize_scoring)
        given = {name: rollouts[name] for name in together.wanted}
        by = "example_id" if has_ids else "prompt"
        keys = examples({by: rollouts[by]}, rows) if together.grouped else []
        seconds = [0.0] * rows
        steps = together.steps(given, keys, rows, seconds)
        while True:
            try:
                work = next(steps)
            except StopIteration as done:
                found, errors = done.value
                break
            await run_in_loop(work, limits)
        scores: list[Sequence[float]] = [[] for _ in funcs]
        for number, at in enumerate(places):
            scores[at], name = found[number], member_name(funcs[at])
            for row, said in errors[number].items():
                note(rollouts["state"][row], f"{name}: {said}")
        for state, took in zip(rollouts["state"], seconds, strict=True):
            timed(state, took)
        others = [at for at in range(len(funcs)) if at not in places]
        if others:
            for at, column in zip(others, by_columns([funcs[at] for at in others], rollouts), strict=True):
                scores[at] = column
        return scores
