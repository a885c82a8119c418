"""A run of ``generate``: rollouts are generated and scored, up to a limit at a time, each failure kept to its rollout, and saved."""

import asyncio
import contextlib
import copy
import datetime as dt
import inspect
import logging
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.calls.coroutines import maybe_await, work_off
from assay.calls.limits import is_user_error
from assay.environments.client import address, check_arguments, is_access_denied, is_permanent, open_client
from assay.environments.journal import RESULTS, Journal, digest, functions_digest, lock_folder
from assay.environments.rollouts import Rollout, is_text_or_messages
from assay.errors import AssayError, UsageError, describe_error, did_you_mean, printable
from assay.system.atomic_file import new_file
from assay.types import GenerateMetadata, GenerateOutputs, Messages, SamplingArgs
from assay.values.saved_outputs import save
from assay.writing.progress import progress

UNLIMITED = 1_000
"""Rollouts at a time if the caller sets no limit: as many as the openai client opens connections."""

_FIRST_ROLLOUTS = 8
"""A run ends if this many first rollouts are all refused for good, for the same reason."""

_CAUSES = 3
"""Most reasons for failures that a run logs."""

_ERROR_LENGTH = 500
"""Characters of an error that are kept: a web server may send a whole page."""

_METADATA = "metadata.json"
_SECRET_FIELDS = ("extra_headers", "extra_query")
"""Sampling arguments that may hold credentials; only the names in them are saved."""

_ARGS = '{"temperature": 0.7, "extra_body": {"top_k": 50}}'

_LOG = logging.getLogger("assay")


def check_options(further: Mapping[str, Any], method: Callable[..., Any]) -> None:
    """Refuse further arguments that look like misspelt arguments of the method, as nothing else would notice them."""
    options = [name for name in inspect.signature(method).parameters if name not in ("self", "kwargs")]
    for name in further:
        if suggestion := did_you_mean(name, options, cutoff=0.85):
            raise UsageError(f"`{name}` is not an argument of {method.__name__}.", suggestion)


def merge_sampling_args(first: Mapping[str, Any], second: Mapping[str, Any] | None) -> SamplingArgs:
    """Merge sampling arguments; the second ones win, ``extra_body`` key by key, and None values are left out."""
    for args in (first, second or {}):
        body = isinstance(args, Mapping) and args.get("extra_body")
        for name, value in (("sampling_args", args), ("extra_body", body)):
            if value and not (isinstance(value, Mapping) and all(isinstance(key, str) for key in value)):
                raise UsageError(f"{name}: expected a dict with names as keys, got {type(value).__name__}.", _ARGS)
    second = second or {}
    merged = {**first, **second}
    kept = {name: value for name, value in (first.get("extra_body") or {}).items() if name not in second}
    merged["extra_body"] = {**kept, **(second.get("extra_body") or {})} or None
    return {name: value for name, value in merged.items() if value is not None}


@dataclass
class Run:
    """Generates and scores rollouts; the options are those of ``Environment.generate``, ``further`` ones for environment and rubric."""

    env: Any
    rollouts: list[Rollout]
    client: Any
    model: str
    sampling_args: SamplingArgs
    num_examples: int | None
    rollouts_per_example: int | None
    score: bool
    interleave: bool
    generating: int
    scoring: int
    folder: Path | None
    state_columns: list[str]
    bar: bool
    further: dict[str, Any]
    _journal: Journal | None = field(default=None, init=False)
    _refused: Counter[str] = field(default_factory=Counter, init=False)

    async def go(self) -> GenerateOutputs:
        """Run the rollouts and save them if there is a folder."""
        began = time.perf_counter()
        if not isinstance(self.model, str):
            raise UsageError(f"model: expected the name of a model, got {type(self.model).__name__}.")
        metadata = self._metadata()
        with contextlib.ExitStack() as stack:
            if self.folder is not None:
                stack.enter_context(lock_folder(self.folder))
                stack.enter_context(self._resumed(self.folder, metadata))
            if any(rollout.to_generate for rollout in self.rollouts):
                check_arguments(self.client, self.env.message_type, self.sampling_args)
            if not self.score:
                for rollout in self.rollouts:
                    rollout.reward = rollout.metrics = None
            async with open_client(self.client) as self.client:
                await self._run()
            self._log_failures()
            outputs = self._outputs(metadata, began)
            if self.folder is not None:
                # NOTE: values saved with losses are logged, not warned: where warnings are errors, the caller would lose the rollouts
                if losses := save(outputs, self.folder / RESULTS, overwrite=True):
                    _LOG.warning("%s: %s", self.folder / RESULTS, losses)
                with new_file(self.folder / _METADATA) as (file, naming_errors), naming_errors():
                    file.write(metadata.model_dump_json(indent=2).encode() + b"\n")
        return outputs

    def _metadata(self) -> GenerateMetadata:
        examples = self.num_examples or len({rollout.example_id for rollout in self.rollouts})
        shown_args = {
            name: dict.fromkeys(value, "…") if name in _SECRET_FIELDS and isinstance(value, Mapping) else value
            for name, value in self.sampling_args.items()
        }
        return GenerateMetadata(
            env_id=self.env.env_id,
            env_args=self.env.env_args,
            model=self.model,
            base_url=address(self.client),
            num_examples=examples,
            rollouts_per_example=self.rollouts_per_example or max(len(self.rollouts) // max(examples, 1), 1),
            sampling_args=shown_args,
            date=dt.datetime.now().astimezone().isoformat(timespec="seconds"),
            state_columns=self.state_columns,
            path_to_save=self.folder or Path(),
        )

    @contextlib.contextmanager
    def _resumed(self, folder: Path, metadata: GenerateMetadata) -> Iterator[None]:
        rubric = self.env.rubric
        settings = {
            "env_id": metadata.env_id,
            "env_args": metadata.env_args,
            "message_type": self.env.message_type,
            "max_turns": getattr(self.env, "max_turns", None),
            "oai_tools": getattr(self.env, "oai_tools", None),
            "model": metadata.model,
            "sampling_args": metadata.sampling_args,
            "rubric": [
                list(pair) for pair in zip(rubric.get_reward_func_names(), rubric.get_reward_weights(), strict=False)
            ],
            "functions": functions_digest(rubric.get_reward_funcs()),
            "rollouts": len(self.rollouts),
            "inputs": digest(self.rollouts),
            "date": metadata.date,
        }
        with contextlib.closing(Journal(folder, settings)) as journal:
            self._journal = journal
            metadata.date = journal.settings["date"]
            if restored := journal.restore(self.rollouts, to_score=self.score):
                _LOG.info("%s: %s of %s rollouts are already finished", journal.path, restored, len(self.rollouts))
            if journal.stale and any(rollout.reward is not None for rollout in self.rollouts):
                message = "reward functions have changed; rollouts already scored keep their rewards"
                _LOG.warning("%s: %s. To score them again: assay.score(%r, rubric)", journal.path, message, RESULTS)
            try:
                yield
            except (KeyboardInterrupt, asyncio.CancelledError):
                _LOG.warning(
                    "stopped; %s of %s rollouts are kept in %s: to resume, repeat the call with the same results_path",
                    f"{journal.finished:,}",
                    f"{len(self.rollouts):,}",
                    journal.path,
                )
                raise

    async def _run(self) -> None:
        pending = [(number, rollout) for number, rollout in enumerate(self.rollouts) if rollout.to_generate]
        generation_slots, scoring_slots = asyncio.Semaphore(self.generating), asyncio.Semaphore(self.scoring)
        interleaved = self.score and self.interleave and not getattr(self.env.rubric, "has_group_funcs", False)
        workers = min(len(pending), self.generating + (self.scoring if interleaved else 0))
        counts = Counter[str]()
        with progress("generating", show=self.bar and bool(pending)) as report:

            async def run_one(item: tuple[int, Rollout]) -> None:
                number, rollout = item
                prompt, info = rollout.prompt, rollout.info
                async with generation_slots:
                    if (error := await self._generate(rollout)) is not None:
                        self._stop_if_refused(error, counts["generated"] + 1, len(pending))
                    counts["generated"] += 1
                if interleaved and not rollout.failed:
                    async with scoring_slots:
                        scored = await _tried(self.env.rubric.score_rollout, **rollout.fields, **self.further)
                        if isinstance(scored, str):
                            rollout.fail(scored, in_generation=False)
                        else:
                            rollout.reward, rollout.metrics = float(scored.reward), dict(scored.metrics)
                if self._journal is not None:
                    self._journal.append(number, rollout, prompt, info)
                counts["done"] += 1
                if report is not None:
                    report(counts["done"], len(pending))

            await work_off(pending, run_one, workers)
        for rollout in self.rollouts:
            if rollout.given and rollout.state is None:
                await self._prepare_given(rollout)
        if self.score:
            await self._score_rest([rollout for rollout in self.rollouts if rollout.to_score])

    async def _generate(self, rollout: Rollout) -> BaseException | None:
        """Generate a rollout; return the error of one that fails."""
        # changes of a rollout to its prompt and info must not affect other rollouts of its example
        rollout.prompt, rollout.info = copy.deepcopy(rollout.prompt), copy.deepcopy(rollout.info)
        rollout.error, rollout.failed, rollout.state = "", False, None
        try:
            rollout.state = await self._begin(rollout, await maybe_await(self.env.init_completion()))
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
                **self.further,
            )
            if not is_text_or_messages(completion):
                kind = type(completion).__name__
                raise TypeError(f"a completion is text or a list of messages, each a dict; this one is {kind}")  # noqa: TRY301  (a failure of the environment, as those that it raises)
            rollout.completion, rollout.state = completion, rollout.begin(state, completion)
        except BaseException as error:
            if not is_user_error(error):
                raise
            empty: Messages = [] if self.env.message_type == "chat" else ""
            rollout.state = rollout.begin(rollout.state if isinstance(rollout.state, dict) else {}, empty)
            completion = rollout.state["completion"]
            rollout.completion = completion if is_text_or_messages(completion) else empty
            rollout.fail(_error_text(error), in_generation=True)
            _LOG.debug("a rollout of example %s failed: %s", rollout.example_id, printable(rollout.error))
            return error
        return None

    async def _begin(self, rollout: Rollout, completion: Messages) -> dict[str, Any]:
        fields = rollout.fields | {"completion": completion}
        del fields["state"]
        return rollout.begin(await maybe_await(self.env.init_state(**fields)), completion)

    async def _prepare_given(self, rollout: Rollout) -> None:
        completion = "" if rollout.completion is None else rollout.completion
        try:
            rollout.state = await self._begin(rollout, completion)
        except BaseException as error:
            if not is_user_error(error):
                raise
            rollout.state = rollout.begin({}, completion or "")
            rollout.fail(_error_text(error), in_generation=True)
        if rollout.failed:
            rollout.fail(rollout.error, in_generation=True)

    def _stop_if_refused(self, error: BaseException, count: int, total: int) -> None:
        """End a run whose first rollouts are all refused for good, for the same reason, as the others would be, too."""
        if count > _FIRST_ROLLOUTS or not is_permanent(error):
            return
        access = is_access_denied(error)
        self._refused[f"{type(error).__name__}" if access else _error_text(error)] += 1
        enough = count >= (min(_FIRST_ROLLOUTS, total) if access else _FIRST_ROLLOUTS)
        if enough and self._refused.total() == count and len(self._refused) == 1:
            hint = "Check api_key and base_url of the client, and the name of the model." if access else ""
            first = "The first rollout was" if count == 1 else f"The first {count} rollouts were all"
            raise UsageError(f"{first} refused: {printable(_error_text(error))}", hint) from error

    async def _score_rest(self, rollouts: Sequence[Rollout]) -> None:
        """Score rollouts together: those with a given completion, and those not scored one by one."""
        if not rollouts:
            return
        fields = [rollout.fields for rollout in rollouts]
        lists: dict[str, Any] = {f"{name}s": [each[name] for each in fields] for name in fields[0]}
        options = {"max_concurrent": self.scoring, "use_tqdm": self.bar, **self.further}
        scored = await _tried(self.env.rubric.score_rollouts, **lists, **options)
        for number, rollout in enumerate(rollouts):
            if isinstance(scored, str):
                rollout.fail(scored, in_generation=False)
            else:
                rollout.reward = scored.reward[number]
                rollout.metrics = {name: values[number] for name, values in scored.metrics.items()}

    def _log_failures(self) -> None:
        # NOTE: logged, not warned: where warnings are errors, a warning here would lose all rollouts of the run
        reasons = Counter(rollout.error for rollout in self.rollouts if rollout.error)
        if reasons:
            top = [f"{count:,} × {printable(error)}" for error, count in reasons.most_common(_CAUSES)]
            summary = "; ".join((*top, *(["…"] if len(reasons) > _CAUSES else ())))
            counts = f"{reasons.total():,}", f"{len(self.rollouts):,}"
            _LOG.warning("%s of %s rollouts failed and are unscored: %s", *counts, summary)

    def _outputs(self, metadata: GenerateMetadata, began: float) -> GenerateOutputs:
        rollouts = self.rollouts
        own = self.env.rubric.get_reward_func_names() if self.score else ()
        names = dict.fromkeys([*own, *(name for rollout in rollouts for name in rollout.metrics or ())])
        metrics = {name: [(rollout.metrics or {}).get(name) for rollout in rollouts] for name in names}
        metadata.avg_reward = _mean([rollout.reward for rollout in rollouts])
        metadata.avg_metrics = {name: _mean(values) for name, values in metrics.items()}
        metadata.time_ms = (time.perf_counter() - began) * 1000
        # without validation: each value has been checked, and another check would cost as much as scoring
        return GenerateOutputs.model_construct(
            prompt=[rollout.prompt for rollout in rollouts],
            completion=["" if rollout.completion is None else rollout.completion for rollout in rollouts],
            answer=[rollout.answer for rollout in rollouts],
            state=[rollout.state or {} for rollout in rollouts],
            info=[rollout.info for rollout in rollouts],
            task=[rollout.task for rollout in rollouts],
            id=[rollout.example_id for rollout in rollouts],
            reward=[rollout.reward for rollout in rollouts],
            metrics=metrics,
            metadata=metadata,
        )


async def _tried(score: Callable[..., Awaitable[Any]], /, **arguments: Any) -> Any:
    """Return the result of a rubric, or its error as text unless that ends the run."""
    try:
        return await score(**arguments)
    except AssayError:
        raise
    except BaseException as error:
        if not is_user_error(error):
            raise
        return _error_text(error)


def _error_text(error: BaseException) -> str:
    message = describe_error(error)
    return message if len(message) <= _ERROR_LENGTH else f"{message[:_ERROR_LENGTH]}…"


def _mean(values: Sequence[float | None]) -> float:
    present = [value for value in values if value is not None]
    return statistics.fmean(present) if present else 0.0
