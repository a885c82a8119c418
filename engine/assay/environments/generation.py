"""Run rollouts: up to a limit at a time, each failure kept to its rollout, finished ones saved, all of them scored."""

import asyncio
import copy
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.calls.coroutines import maybe_await, work_off
from assay.calls.limits import own_failure
from assay.environments.client import is_access_denied, is_permanent
from assay.environments.inputs import Rollout, is_text_or_messages
from assay.environments.journal import Journal
from assay.errors import AssayError, UsageError, printable, said_by
from assay.system.progress import progress
from assay.types import Messages
from assay.values.failures import GENERATION_ERROR

UNLIMITED = 1_000
"""Rollouts at a time if the caller sets no limit: as many as the openai client opens connections."""

_FIRST_ROLLOUTS = 8
"""A run ends if this many first rollouts are all refused for good, for the same reason."""

_CAUSES = 3
"""Most reasons for failures that a run logs."""

_ERROR_LENGTH = 500
"""Characters of an error that are kept: a web server may send a whole page."""

_LOG = logging.getLogger("assay")


def standard_state(rollout: Rollout, completion: Messages) -> dict[str, Any]:
    """Return the fields that the state of every rollout has at the start."""
    timing = {"generation_ms": 0.0, "scoring_ms": 0.0, "total_ms": 0.0}
    state = rollout.fields | {"completion": completion, "responses": [], "turn": 0, "timing": timing}
    del state["state"]
    return state


def fill_state(state: Any, standard: Mapping[str, Any]) -> dict[str, Any]:
    """Add missing standard fields to the state of an environment, which is a dict."""
    if not isinstance(state, dict):
        raise TypeError(f"the state of a rollout is a dict, not {type(state).__name__}")
    for name, value in standard.items():
        state.setdefault(name, value)
    if isinstance(state["timing"], dict):
        for name, value in standard["timing"].items():
            state["timing"].setdefault(name, value)
    return state


@dataclass(frozen=True)
class RunOptions:
    """Options of a run, as in ``Environment.generate``; ``further`` ones are for the environment and the rubric."""

    num_examples: int | None = None
    rollouts_per_example: int | None = None
    score: bool = True
    interleave: bool = True
    generating: int = UNLIMITED
    scoring: int = UNLIMITED
    folder: Path | None = None
    state_columns: list[str] = field(default_factory=list)
    bar: bool = True
    further: dict[str, Any] = field(default_factory=dict)


@dataclass
class Run:
    """Generates and scores rollouts; the journal receives those that are finished."""

    env: Any
    client: Any
    model: str
    sampling_args: dict[str, Any]
    options: RunOptions
    journal: Journal | None = None
    _finished: int = 0
    _done: int = 0
    _refused: Counter[str] = field(default_factory=Counter)

    async def go(self, rollouts: Sequence[Rollout]) -> None:
        """Generate the rollouts without a completion, and score those without a reward."""
        pending = [(number, rollout) for number, rollout in enumerate(rollouts) if rollout.to_generate]
        generation_slots, scoring_slots = (
            asyncio.Semaphore(self.options.generating),
            asyncio.Semaphore(self.options.scoring),
        )
        interleaved = (
            self.options.score and self.options.interleave and not getattr(self.env.rubric, "has_group_funcs", False)
        )
        workers = min(len(pending), self.options.generating + (self.options.scoring if interleaved else 0))
        with progress("generating", show=self.options.bar and bool(pending)) as report:

            async def run_one(item: tuple[int, Rollout]) -> None:
                number, rollout = item
                prompt, info = rollout.prompt, rollout.info
                async with generation_slots:
                    await self._generate(rollout, len(pending))
                if interleaved and not rollout.failed:
                    async with scoring_slots:
                        await self._score(rollout)
                if self.journal is not None:
                    self.journal.append(number, rollout, prompt, info)
                self._done += 1
                if report is not None:
                    report(self._done, len(pending))

            await work_off(pending, run_one, workers)
        for rollout in rollouts:
            if rollout.given and rollout.state is None:
                await self._prepare_given(rollout)
        if self.options.score:
            await self._score_rest([rollout for rollout in rollouts if rollout.to_score])
        _log_failures(rollouts)

    async def _begin_state(self, rollout: Rollout) -> dict[str, Any]:
        completion = rollout.completion
        if not rollout.given or completion is None:
            completion = await maybe_await(self.env.init_completion())
        fields = rollout.fields | {"completion": completion}
        del fields["state"]
        state = await maybe_await(self.env.init_state(**fields))
        return fill_state(state, standard_state(rollout, completion))

    async def _prepare_given(self, rollout: Rollout) -> None:
        try:
            rollout.state = await self._begin_state(rollout)
        except BaseException as error:
            if not own_failure(error):
                raise
            rollout.failed, rollout.error = True, _error_text(error)
            rollout.state = standard_state(rollout, rollout.completion or "")
        if rollout.failed:
            _record_error(rollout, is_failure=True)

    async def _generate(self, rollout: Rollout, total: int) -> None:
        # changes of a rollout to its prompt and info must not affect other rollouts of its example
        rollout.prompt, rollout.info = copy.deepcopy(rollout.prompt), copy.deepcopy(rollout.info)
        rollout.error, rollout.failed, rollout.state = "", False, None
        try:
            rollout.state = await self._begin_state(rollout)
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
                **self.options.further,
            )
            if not is_text_or_messages(completion):
                kind = type(completion).__name__
                raise TypeError(f"a completion is text or a list of messages, each a dict; this one is {kind}")  # noqa: TRY301  (a failure of the environment, as those that it raises)
            rollout.completion, rollout.state = completion, fill_state(state, standard_state(rollout, completion))
        except BaseException as error:
            if not own_failure(error):
                raise
            self._fail(rollout, error)
            self._stop_if_refused(error, total)
        self._finished += 1

    def _fail(self, rollout: Rollout, error: BaseException) -> None:
        rollout.failed, rollout.error = True, _error_text(error)
        empty: Messages = [] if self.env.message_type == "chat" else ""
        state = rollout.state if isinstance(rollout.state, dict) else {}
        rollout.state = fill_state(state, standard_state(rollout, empty))
        completion = rollout.state["completion"]
        rollout.completion = completion if is_text_or_messages(completion) else empty
        _record_error(rollout, is_failure=True)
        _LOG.debug("a rollout of example %s failed: %s", rollout.example_id, printable(rollout.error))

    def _stop_if_refused(self, error: BaseException, total: int) -> None:
        if self._finished >= _FIRST_ROLLOUTS or not is_permanent(error):
            return
        access = is_access_denied(error)
        self._refused[f"{type(error).__name__}" if access else _error_text(error)] += 1
        count = self._finished + 1
        enough = count >= (min(_FIRST_ROLLOUTS, total) if access else _FIRST_ROLLOUTS)
        if enough and self._refused.total() == count and len(self._refused) == 1:
            hint = "Check api_key and base_url of the client, and the name of the model." if access else ""
            first = "The first rollout was" if count == 1 else f"The first {count} rollouts were all"
            raise UsageError(f"{first} refused: {printable(_error_text(error))}", hint) from error

    async def _score(self, rollout: Rollout) -> None:
        rubric = self.env.rubric
        score, rollout.error = await _try_score(rubric.score_rollout, **rollout.fields, **self.options.further)
        if rollout.error:
            _record_error(rollout)
        else:
            rollout.reward, rollout.metrics = float(score.reward), dict(score.metrics)

    async def _score_rest(self, rollouts: Sequence[Rollout]) -> None:
        if not rollouts:
            return
        fields = [rollout.fields for rollout in rollouts]
        lists: dict[str, Any] = {f"{name}s": [each[name] for each in fields] for name in fields[0]}
        scores, error = await _try_score(
            self.env.rubric.score_rollouts,
            **lists,
            max_concurrent=self.options.scoring,
            use_tqdm=self.options.bar,
            **self.options.further,
        )
        for number, rollout in enumerate(rollouts):
            if error:
                rollout.error = error
                _record_error(rollout)
            else:
                rollout.reward = scores.reward[number]
                rollout.metrics = {name: values[number] for name, values in scores.metrics.items()}


def _record_error(rollout: Rollout, *, is_failure: bool = False) -> None:
    if rollout.state is not None:
        rollout.state["error"] = rollout.error
        if is_failure:
            rollout.state[GENERATION_ERROR] = rollout.error


async def _try_score(score: Callable[..., Awaitable[Any]], /, **arguments: Any) -> tuple[Any, str]:
    try:
        return await score(**arguments), ""
    except AssayError:
        raise
    except BaseException as error:
        if not own_failure(error):
            raise
        return None, _error_text(error)


def _error_text(error: BaseException) -> str:
    message = said_by(error)
    return message if len(message) <= _ERROR_LENGTH else f"{message[:_ERROR_LENGTH]}…"


def _log_failures(rollouts: Sequence[Rollout]) -> None:
    # NOTE: logged, not warned: where warnings are errors, a warning here would lose all rollouts of the run
    reasons = Counter(rollout.error for rollout in rollouts if rollout.error)
    if reasons:
        top = [f"{count:,} × {printable(error)}" for error, count in reasons.most_common(_CAUSES)]
        more = ["…"] if len(reasons) > _CAUSES else []
        summary = "; ".join((*top, *more))
        _LOG.warning(
            "%s of %s rollouts failed and are unscored: %s", f"{reasons.total():,}", f"{len(rollouts):,}", summary
        )
