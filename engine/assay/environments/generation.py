"""A run of rollouts: so many at a time, each failure its own, every finished one kept, and all of them scored."""

import asyncio
import copy
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.calls.coroutines import maybe_await, work_off
from assay.calls.limits import own_failure
from assay.environments.client import denied, permanent
from assay.environments.inputs import Rollout
from assay.environments.journal import Journal
from assay.errors import AssayError, UsageError, printable, said_by
from assay.system.progress import progress
from assay.types import Messages
from assay.values.failures import GENERATION_ERROR

__all__ = ["UNLIMITED", "Run", "filled", "standard_state"]

UNLIMITED = 1_000
"""Rollouts at a time where the caller sets no limit: as many as the openai client opens connections."""

_FIRST = 8
"""So many first rollouts that all are refused for good, and for the same reason, end a run."""

_CAUSES = 3
"""Reasons of failures that a run names."""

_WORDS = 500
"""Characters of an error that are kept."""

_LOG = logging.getLogger("assay")


def standard_state(rollout: Rollout, completion: Messages) -> dict[str, Any]:
    """What every rollout knows of itself before it begins."""
    return {
        "prompt": rollout.prompt,
        "completion": completion,
        "answer": rollout.answer,
        "task": rollout.task,
        "info": rollout.info,
        "example_id": rollout.example_id,
        "responses": [],
        "turn": 0,
        "timing": {"generation_ms": 0.0, "scoring_ms": 0.0, "total_ms": 0.0},
    }


def filled(state: Any, standard: Mapping[str, Any]) -> dict[str, Any]:
    """A state of somebody's own with the standard fields that it lacks.

    Raises:
        TypeError: It is no dict.
    """
    if not isinstance(state, dict):
        raise TypeError(f"the state of a rollout is a dict, not {type(state).__name__}")
    for name, value in standard.items():
        state.setdefault(name, value)
    if isinstance(state["timing"], dict):
        for name, value in standard["timing"].items():
            state["timing"].setdefault(name, value)
    return state


@dataclass
class Run:
    """Rollouts on their way.

    Attributes:
        env: The environment.
        client: What its requests go by.
        model: Name of the model.
        sampling_args: Arguments of the requests.
        score: Score what was generated.
        interleave: Score each rollout as soon as it is generated, else all of them at the end.
        generating: Rollouts generated at a time.
        scoring: Rollouts scored at a time.
        bar: Show how far it is, where standard error is a terminal.
        journal: Where finished rollouts are written.
        options: What else the functions of environment and rubric get.
    """

    env: Any
    client: Any
    model: str
    sampling_args: dict[str, Any]
    score: bool = True
    interleave: bool = True
    generating: int = UNLIMITED
    scoring: int = UNLIMITED
    bar: bool = True
    journal: Journal | None = None
    options: dict[str, Any] = field(default_factory=dict)
    _finished: int = 0
    _done: int = 0
    _refused: Counter[str] = field(default_factory=Counter)

    async def go(self, rollouts: Sequence[Rollout]) -> None:
        """Generate and score what is to be generated and scored.

        Raises:
            UsageError: The first rollouts were all refused for good, and for the same reason.
        """
        todo = [(number, one) for number, one in enumerate(rollouts) if one.to_generate]
        may_generate, may_score = asyncio.Semaphore(self.generating), asyncio.Semaphore(self.scoring)
        by_one = self.score and self.interleave and not getattr(self.env.rubric, "has_group_funcs", False)
        workers = min(len(todo), self.generating + (self.scoring if by_one else 0))
        with progress("generating", show=self.bar and bool(todo)) as tell:

            async def run_one(item: tuple[int, Rollout]) -> None:
                number, rollout = item
                prompt, info = rollout.prompt, rollout.info
                async with may_generate:
                    await self._generate(rollout, len(todo))
                if by_one and not rollout.failed:
                    async with may_score:
                        await self._score(rollout)
                if self.journal is not None:
                    self.journal.append(number, rollout, prompt, info)
                self._done += 1
                if tell is not None:
                    tell(self._done, len(todo))

            await work_off(todo, run_one, workers)
        for one in rollouts:
            if one.given and one.state is None:
                await self._begin_given(one)
        if self.score:
            await self._score_rest([one for one in rollouts if one.to_score])
        _tell_failures(rollouts)

    async def _begun(self, rollout: Rollout) -> dict[str, Any]:
        """The state of a rollout before it begins, or of one that came with its completion."""
        completion = rollout.completion
        if not rollout.given or completion is None:
            completion = await maybe_await(self.env.init_completion())
        state = await maybe_await(
            self.env.init_state(
                prompt=rollout.prompt,
                completion=completion,
                answer=rollout.answer,
                task=rollout.task,
                info=rollout.info,
                example_id=rollout.example_id,
            )
        )
        return filled(state, standard_state(rollout, completion))

    async def _begin_given(self, rollout: Rollout) -> None:
        """The state of a rollout that came with its completion, which it keeps if it has none."""
        try:
            rollout.state = await self._begun(rollout)
        except BaseException as wrong:
            if not own_failure(wrong):
                raise
            rollout.failed, rollout.error = True, _said(wrong)
            rollout.state = standard_state(rollout, rollout.completion or "")
        if rollout.failed:
            _tell(rollout)

    async def _generate(self, rollout: Rollout, total: int) -> None:
        # what a rollout does to its prompt and info must not reach the other rollouts of its example
        rollout.prompt, rollout.info = copy.deepcopy(rollout.prompt), copy.deepcopy(rollout.info)
        rollout.error, rollout.failed, rollout.state = "", False, None
        try:
            rollout.state = await self._begun(rollout)
            completion, state = await self.env.rollout(
                self.client,
                self.model,
                rollout.prompt,
                rollout.state["completion"],
                rollout.answer,
                rollout.state,
                rollout.task,
                rollout.info,
                rollout.example_id,
                copy.deepcopy(self.sampling_args),
                **self.options,
            )
            rollout.completion, rollout.state = _checked(completion), filled(state, standard_state(rollout, completion))
        except BaseException as wrong:
            if not own_failure(wrong):
                raise
            self._failed(rollout, wrong)
            self._refuse_denied(wrong, total)
        self._finished += 1

    def _failed(self, rollout: Rollout, wrong: BaseException) -> None:
        rollout.failed, rollout.error = True, _said(wrong)
        nothing: Messages = [] if self.env.message_type == "chat" else ""
        state = rollout.state if isinstance(rollout.state, dict) else {}
        rollout.state = filled(state, standard_state(rollout, nothing))
        try:
            rollout.completion = _checked(rollout.state["completion"])
        except TypeError:
            rollout.completion = nothing
        _tell(rollout)
        _LOG.debug("a rollout of example %s failed: %s", rollout.example_id, printable(rollout.error))

    def _refuse_denied(self, wrong: BaseException, total: int) -> None:
        """End a run whose first rollouts are all refused for good, and for the same reason: the others would be, too."""
        if self._finished >= _FIRST or not permanent(wrong):
            return
        by_key = denied(wrong)
        self._refused[f"{type(wrong).__name__}" if by_key else _said(wrong)] += 1
        number = self._finished + 1
        enough = number >= (min(_FIRST, total) if by_key else _FIRST)
        if enough and self._refused.total() == number and len(self._refused) == 1:
            hint = "Look at the client's api_key and base_url, and at the name of the model." if by_key else ""
            first = "The first rollout was" if number == 1 else f"The first {number} rollouts were all"
            raise UsageError(f"{first} refused: {printable(_said(wrong))}", hint) from wrong

    async def _score(self, rollout: Rollout) -> None:
        found, wrong = await _tried(
            self.env.rubric.score_rollout,
            prompt=rollout.prompt,
            completion=rollout.completion,
            answer=rollout.answer,
            state=rollout.state,
            task=rollout.task,
            info=rollout.info,
            example_id=rollout.example_id,
            **self.options,
        )
        if wrong is not None:
            _unscored(rollout, wrong)
        else:
            rollout.reward, rollout.metrics = float(found.reward), dict(found.metrics)

    async def _score_rest(self, rollouts: Sequence[Rollout]) -> None:
        """Score rollouts together: those that came with their completion, and those not scored one by one."""
        if not rollouts:
            return
        found, wrong = await _tried(
            self.env.rubric.score_rollouts,
            prompts=[one.prompt for one in rollouts],
            completions=[one.completion for one in rollouts],
            answers=[one.answer for one in rollouts],
            states=[one.state for one in rollouts],
            tasks=[one.task for one in rollouts],
            infos=[one.info for one in rollouts],
            example_ids=[one.example_id for one in rollouts],
            max_concurrent=self.scoring,
            use_tqdm=self.bar,
            **self.options,
        )
        for number, one in enumerate(rollouts):
            if wrong is not None:
                _unscored(one, wrong)
            else:
                one.reward = found.reward[number]
                one.metrics = {name: values[number] for name, values in found.metrics.items()}


def _tell(rollout: Rollout) -> None:
    """Tell the state of a rollout that its generation failed, so that nobody who has it scores it."""
    if rollout.state is not None:
        rollout.state["error"] = rollout.state[GENERATION_ERROR] = rollout.error


async def _tried(score: Callable[..., Awaitable[Any]], /, **given: Any) -> tuple[Any, BaseException | None]:
    """What a rubric gives, or what it raised, where that is its own failure and not the end of the run."""
    try:
        return await score(**given), None
    except AssayError:
        raise
    except BaseException as wrong:
        if not own_failure(wrong):
            raise
        return None, wrong


def _checked(completion: Any) -> Messages:
    """What a rollout returned as its completion.

    Raises:
        TypeError: It is neither text nor messages.
    """
    if isinstance(completion, str) or (
        isinstance(completion, list) and all(isinstance(one, dict) for one in completion)
    ):
        return completion
    raise TypeError(f"a completion is text or a list of messages, each a dict; this one is {type(completion).__name__}")


def _unscored(rollout: Rollout, wrong: BaseException) -> None:
    rollout.error = _said(wrong)
    if rollout.state is not None:
        rollout.state["error"] = rollout.error


def _said(wrong: BaseException) -> str:
    """An exception by name and words; the words of a web server may be a page."""
    said = said_by(wrong)
    return said if len(said) <= _WORDS else f"{said[:_WORDS]}…"


def _tell_failures(rollouts: Sequence[Rollout]) -> None:
    # NOTE: not as a warning: where warnings are errors, one at the end of a run would cost all of its rollouts
    reasons = Counter(one.error for one in rollouts if one.error)
    if reasons:
        top = [f"{count:,} × {printable(error)}" for error, count in reasons.most_common(_CAUSES)]
        more = ["…"] if len(reasons) > _CAUSES else []
        said = "; ".join((*top, *more))
        _LOG.warning(
            "%s of %s rollouts failed and are unscored: %s", f"{reasons.total():,}", f"{len(rollouts):,}", said
        )
