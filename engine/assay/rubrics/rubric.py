"""Rubrics: reward functions and verifiers whose weighted sum is the reward.

    def correct(completion, answer, parser):
        return 1.0 if parser.parse_answer(completion) == answer else 0.0

    rubric = assay.Rubric(funcs=[correct, assay.load_verifier("format.json")], weights=[1.0, 0.2], parser=parser)
    rewards = assay.score("rollouts.parquet", rubric)

The class has the interface of PrimeIntellect's ``verifiers`` 0.1.6: a file written for that release only changes its import.
"""

import asyncio
import contextlib
import inspect
import logging
import time
from collections.abc import Mapping, Sequence
from types import MethodType
from typing import Any

from assay.calls.async_runner import run_in_loop, within
from assay.calls.limits import CallResult, Graded, Limits, failed, graded, is_user_error, only
from assay.errors import SpecError, UsageError, printable
from assay.rewards.panel import RewardBatch, examples
from assay.rewards.reward_function import RewardFunction, reward_function
from assay.rubrics.members import (
    MemberEntry,
    add_error,
    add_scoring_time,
    by_columns,
    by_verifier,
    check_weight,
    functions_of,
    is_function,
    member_name,
    pack,
    pair_weights,
    specs_of,
    unpack,
    weighted_sums,
)
from assay.rubrics.parsers import Parser
from assay.spec.verifier import VerifierSpec
from assay.types import Info, Messages, RewardFunc, RolloutScore, RolloutScores, State
from assay.values.arguments import ARGUMENTS
from assay.writing.progress import Ticks, progress

_METHODS = ("call_reward_func", "score_rollout", "run_score_rollout", "score_group", "score_rollouts")
"""Methods that a subclass may override to score in its own way."""


class Rubric:
    """Reward functions with weights: the reward is the weighted sum, in the order of the functions.

    A reward function gets the arguments that it names, or all of them if it has ``**kwargs``: ``prompt``,
    ``completion``, ``answer``, ``state``, ``task``, ``info``, ``example_id``, ``parser``, the other objects of
    ``class_objects``, and every column of the rollouts by its name. It returns a finite number, of any type except text;
    ``(number, reason)``; or a mapping with ``score``, optionally ``reason``, and the metrics that ``@assay.reward`` declares. It may
    be asynchronous; if one is, all run in one event loop, where ``asyncio.run`` does not work. A function that raises scores 0.0; the
    error is logged and written to the column ``error``, or to ``state["error"]`` of a rollout.

    One that names ``completions`` or another plural gets lists: all rollouts of an example (those with one ``example_id``, else with
    one prompt), and returns a list. One that also requires columns by their own names (``completions, answer``), as TRL's functions do,
    or is declared by ``@assay.reward(batched=True)``, gets lists of any rollouts, whose rewards must not depend on each other. Where it
    returns None, it does not apply, and adds nothing; so may a function over all rollouts of an example that has ``**kwargs``.

    Loaded verifiers, functions of ``assay.fns`` and instances of verifier classes can be members, too.

    Args:
        funcs: The members.
        weights: Their weights, by default 1.0 each; 0 makes a member a metric, a negative weight a penalty.
        parser: Passed to functions that name it, by default ``Parser()``.
        parallelize_scoring: Run the asynchronous functions of one rollout concurrently.
        kwargs: Set as attributes.

    Attributes:
        reward_funcs: The members.
        reward_weights: Their weights.
        origin: ``module:attribute`` from which worker processes import the rubric if its functions cannot be pickled.
        class_objects: Objects that functions can name besides the arguments of a rollout: ``{"parser": parser}``, and your own.

    Raises:
        ValueError: The numbers of members and weights differ, or a weight is not a finite number.
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
        if callable(funcs):
            raise TypeError(f"funcs is a list of functions: assay.Rubric([{member_name(funcs)}])")
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
        pair_weights(self.reward_funcs, self.reward_weights)
        self._inspections: dict[Any, tuple[Any, Mapping[str, Any], RewardFunction]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_inspections": {}, "reward_funcs": [pack(func) for func in self.reward_funcs]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.reward_funcs = [unpack(func) for func in self.reward_funcs]

    def get_reward_func_names(self) -> list[str]:
        """Return the names of the members; for a verifier, its id."""
        return [member_name(func) for func in self.get_reward_funcs()]

    def get_reward_funcs(self) -> list[Any]:
        """Return the members."""
        return self.reward_funcs

    def get_reward_weights(self) -> list[float]:
        """Return the weights of the members."""
        return self.reward_weights

    def add_reward_func(self, func: RewardFunc | VerifierSpec, weight: float = 1.0) -> None:
        """Add a member."""
        is_function(func)
        check_weight(weight, member_name(func))
        self.reward_funcs.append(func)
        self.reward_weights.append(weight)

    @property
    def has_group_funcs(self) -> bool:
        """Return whether a function takes all rollouts of an example, so that they are scored together."""
        funcs = filter(is_function, self.get_reward_funcs())
        return any(self._inspect(func, self.class_objects).group for func in funcs)

    def entries(self, path: tuple[int, ...] = ()) -> list[MemberEntry]:
        """Return the members with their weights and objects.

        Raises:
            SpecError: The numbers of members and weights differ, or a weight is not a finite number.
            UsageError: A subclass overrides a scoring method, so the rubric cannot be compiled to a plan.
        """
        self._check_default_scoring()
        try:
            pairs = pair_weights(self.get_reward_funcs(), self.get_reward_weights())
        except ValueError as error:
            raise SpecError(f"The rubric cannot be used: {error}.") from None
        return [MemberEntry(func, weight, self.class_objects, path) for func, weight in pairs]

    def members(self, limits: Limits, pass_threshold: float = 1.0) -> tuple[VerifierSpec, ...]:
        """Return the members as verifiers of one plan, as ``assay.score`` compiles them."""
        return specs_of(self.entries(), limits, pass_threshold, side_by_side=self._side_by_side, origin=self.origin)

    def functions(self) -> list[RewardFunction]:
        """Return the reward functions among the members, which worker processes run."""
        return functions_of(self.entries())

    @property
    def _side_by_side(self) -> bool:
        return self.parallelize_scoring

    def _check_default_scoring(self) -> None:
        if overridden := self._overridden(_METHODS):
            raise UsageError(
                f"{type(self).__name__} overrides {', '.join(overridden)}, so it cannot be scored as columns.",
                "Await its score_rollouts, or move the scoring into reward functions.",
            )

    def _overridden(self, methods: Sequence[str]) -> list[str]:
        # a method of this package gives the same result as scoring by columns
        modules = {name: str(getattr(type(self), name).__module__) for name in methods}
        return [name for name, module in modules.items() if module.rpartition(".")[0] != __package__]

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
        """Return the score of one member for one rollout; ``kwargs`` are objects that functions can name."""
        info = {} if info is None else info
        rollout = dict(zip(ARGUMENTS, (prompt, completion, answer, state, task, info, example_id), strict=True))
        score, error = await self._call(func, rollout, self.class_objects | kwargs)
        if error is not None:
            name = member_name(func)
            self.logger.error("%s: %s", name, printable(error))
            add_error(state, f"{name}: {error}")
        return score

    async def score_rollout(
        self,
        prompt: Messages,
        completion: Messages,
        answer: str = "",
        state: State | None = None,
        task: str = "default",
        info: Info | None = None,
        example_id: int | None = None,
        **kwargs: Any,
    ) -> RolloutScore:
        """Score one rollout; ``state["timing"]`` gets the time it took."""
        started = time.perf_counter()
        state = {} if state is None else state
        funcs = self.get_reward_funcs()
        calls = [
            self.call_reward_func(func, prompt, completion, answer, state, task, info, example_id, **kwargs)
            for func in funcs
        ]
        scores = await asyncio.gather(*calls) if self.parallelize_scoring else [await call for call in calls]
        add_scoring_time(state, time.perf_counter() - started)
        metrics = {member_name(func): score for func, score in zip(funcs, scores, strict=True)}
        return RolloutScore(
            reward=weighted_sums([[score] for score in scores], self.get_reward_weights(), 1)[0], metrics=metrics
        )

    async def run_score_rollout(
        self, sem: contextlib.AbstractAsyncContextManager[Any], *args: Any, **kwargs: Any
    ) -> RolloutScore:
        """Call ``score_rollout`` inside a semaphore."""
        async with sem:
            return await self.score_rollout(*args, **kwargs)

    def _inspect(self, func: Any, objects: Mapping[str, Any]) -> RewardFunction:
        # bound methods are new but equal objects at each access
        key = func if isinstance(func, MethodType) else id(func)
        known, before, inspected = self._inspections.get(key, (None, {}, None))
        # equal objects may diverge later
        is_same = before.keys() == objects.keys() and all(before[name] is value for name, value in objects.items())
        if inspected is None or known != func or not is_same:
            inspected = reward_function(func, objects)
            self._inspections[key] = (func, dict(objects), inspected)
        return inspected

    async def _call(self, func: Any, rollout: Mapping[str, Any], objects: Mapping[str, Any]) -> CallResult:
        if not is_function(func):
            return by_verifier(func, rollout)
        try:
            function = self._inspect(func, objects)
            values = [[rollout[name]] if function.takes_lists else rollout[name] for name in ARGUMENTS]
            result = function.caller(ARGUMENTS)(values)
            result = await within(result) if inspect.isawaitable(result) else result
            reward = only(result) if function.takes_lists else result
            if reward is None and function.skips:  # it does not apply
                return 0.0, None
            score, error = graded(reward)
            return (score.score if isinstance(score, Graded) else score), error
        except BaseException as error:  # a function that raises must not end the run
            if not is_user_error(error):
                raise
            return failed(error)

    async def score_group(self, states: list[State], **kwargs: Any) -> None:
        """Prepare scoring, with all rollouts; override it to compare rollouts and store the results in their states."""

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
            prompts: One for each rollout, as in all lists.
            completions: Text or messages.
            answers: Golds.
            states: The state of each rollout; ignored if there are no rollouts.
            tasks: Kinds of task.
            infos: Further data of each example.
            example_ids: The example of each rollout; by default, rollouts with the same prompt share one.
            max_concurrent: Rollouts that asynchronous functions work on at once; 0 or less means all.
            use_tqdm: Show a progress bar if standard error is a terminal.
            kwargs: Objects that functions can name.

        Raises:
            ValueError: The lists have different lengths.
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
        # callers written for verifiers may pass a state with no rollouts
        lengths = {len(values) for name, values in rollouts.items() if name != "state" or len(prompts)}
        if len(lengths) > 1:
            lengths_text = ", ".join(f"{name} {len(values)}" for name, values in rollouts.items())
            raise ValueError(f"the lists have different lengths: {lengths_text}")
        lists = {f"{name}s": values for name, values in rollouts.items() if name != "state"}
        await self.score_group(states, **lists, **kwargs)
        rows, names = len(prompts), self.get_reward_func_names()
        if not rows:
            return RolloutScores(reward=[], metrics={name: [] for name in names})
        if self._overridden(_METHODS[:3]):
            sem: Any = asyncio.Semaphore(max_concurrent) if max_concurrent > 0 else contextlib.nullcontext()
            each = zip(*rollouts.values(), strict=True)
            scored = await asyncio.gather(*(self.run_score_rollout(sem, *values, **kwargs) for values in each))
            metrics = {name: [score.metrics[name] for score in scored] for name in scored[0].metrics}
            return RolloutScores(reward=[score.reward for score in scored], metrics=metrics)
        by = "example_id" if example_ids else "prompt"
        with progress("scoring", show=use_tqdm) as report:
            limits = Limits(max_concurrent=max_concurrent, tick=Ticks(report, rows).add if report else None)
            scores, declared = await self._score_members(rollouts, rows, limits, self.class_objects | kwargs, by)
        rewards = weighted_sums(scores, self.get_reward_weights(), rows)
        return RolloutScores(reward=rewards, metrics=declared | dict(zip(names, scores, strict=True)))

    async def _score_members(
        self, rollouts: Mapping[str, Sequence[Any]], rows: int, limits: Limits, objects: Mapping[str, Any], by: str
    ) -> tuple[list[list[float]], dict[str, list[float]]]:
        """Return the scores of each member for each rollout, and the metrics that functions declare; 0.0 where there is none."""
        funcs = [func for func, _ in pair_weights(self.get_reward_funcs(), self.get_reward_weights())]
        functions = {number: self._inspect(func, objects) for number, func in enumerate(funcs) if is_function(func)}
        runner = RewardBatch([*functions.values()], limits, side_by_side=self.parallelize_scoring)
        keys = examples({by: rollouts[by]}, rows) if runner.grouped else []
        seconds = [0.0] * rows
        steps = runner.steps({name: rollouts[name] for name in runner.arguments}, keys, rows, seconds)
        while True:
            try:
                work = next(steps)
            except StopIteration as end:
                results = end.value
                break
            await run_in_loop(work, limits)
        scores: dict[int, list[float]] = {}
        metrics: dict[str, list[float]] = {}
        for (number, function), rewards, errors, remarks in zip(functions.items(), *results, strict=True):
            scores[number] = [0.0 if reward is None else reward for reward in rewards]
            for row, error in errors.items():
                add_error(rollouts["state"][row], f"{member_name(funcs[number])}: {error}")
            for metric in function.metrics:
                values = (remarks[row].metrics.get(metric) if row in remarks else None for row in range(rows))
                metrics[f"{function.name}/{metric}"] = [value or 0.0 for value in values]
        for state, took in zip(rollouts["state"], seconds, strict=True):
            add_scoring_time(state, took)
        for number, func in enumerate(funcs):
            if number not in functions:
                scores[number] = by_columns(func, rollouts)
        return [scores[number] for number in range(len(funcs))], metrics


class _NoRubricError(AssertionError, ValueError):
    def __init__(self) -> None:
        super().__init__("RubricGroup must have at least one rubric")


class RubricGroup(Rubric):
    """Rubrics whose rewards are added; metrics of functions with the same name are added, too.

    Args:
        rubrics: At least one.
        kwargs: As for ``Rubric``.

    Raises:
        AssertionError: ``rubrics`` is empty; the exception is also a ValueError.
    """

    def __init__(self, rubrics: Sequence[Rubric], **kwargs: Any) -> None:
        if not rubrics:
            raise _NoRubricError
        self.rubrics = list(rubrics)
        super().__init__(**kwargs)

    def get_reward_func_names(self) -> list[str]:
        """Return the names of the members of all rubrics."""
        return [name for rubric in self.rubrics for name in rubric.get_reward_func_names()]

    def get_reward_funcs(self) -> list[Any]:
        """Return the members of all rubrics."""
        return [func for rubric in self.rubrics for func in rubric.get_reward_funcs()]

    def get_reward_weights(self) -> list[float]:
        """Return the weights of all rubrics."""
        return [weight for rubric in self.rubrics for weight in rubric.get_reward_weights()]

    def add_reward_func(self, func: RewardFunc | VerifierSpec, weight: float = 1.0) -> None:
        """Add a member to the first rubric.

        Raises:
            AssertionError: The group has no rubric; the exception is also a ValueError.
        """
        if not self.rubrics:
            raise _NoRubricError
        self.logger.warning("Adding the reward function to the first rubric of the group.")
        self.rubrics[0].add_reward_func(func, weight)

    def entries(self, path: tuple[int, ...] = ()) -> list[MemberEntry]:
        """Return the members of all rubrics with their weights and objects."""
        self._check_default_scoring()
        return [entry for place, rubric in enumerate(self.rubrics) for entry in rubric.entries((*path, place))]

    @property
    def _side_by_side(self) -> bool:
        return all(rubric._side_by_side for rubric in self.rubrics)  # noqa: SLF001  (of the same class)

    async def score_rollout(self, *args: Any, **kwargs: Any) -> RolloutScore:
        """Score one rollout with each rubric in turn."""
        total = RolloutScore(reward=0.0)
        for rubric in self.rubrics:
            score = await rubric.score_rollout(*args, **kwargs)
            total.reward += score.reward
            for name, value in score.metrics.items():
                total.metrics[name] = total.metrics[name] + value if name in total.metrics else value
        return total

    async def score_rollouts(self, *args: Any, **kwargs: Any) -> RolloutScores:
        """Score rollouts with each rubric in turn."""
        scores = [await rubric.score_rollouts(*args, **kwargs) for rubric in self.rubrics]
        total = scores[0]
        for scored in scores[1:]:
            total.reward = _sum_columns(total.reward, scored.reward)
            for name, values in scored.metrics.items():
                total.metrics[name] = _sum_columns(total.metrics[name], values) if name in total.metrics else values
        return total


def _sum_columns(left: Sequence[float], right: Sequence[float]) -> list[float]:
    return [a + b for a, b in zip(left, right, strict=True)]
