"""Runs of ``generate``: from rollouts to outputs, with metadata, the folder of a run, and results on disk."""

import asyncio
import contextlib
import datetime as dt
import inspect
import logging
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.environments.client import address, check_arguments, open_client
from assay.environments.generation import Run, RunOptions
from assay.environments.inputs import Rollout
from assay.environments.journal import RESULTS, Journal, digest, functions_digest, lock_folder
from assay.errors import UsageError, did_you_mean
from assay.system.atomic_file import new_file
from assay.types import GenerateMetadata, GenerateOutputs, SamplingArgs
from assay.values.saved_outputs import save

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
        for name, value in (
            ("sampling_args", args),
            ("extra_body", isinstance(args, Mapping) and args.get("extra_body")),
        ):
            if value and not (isinstance(value, Mapping) and all(isinstance(key, str) for key in value)):
                raise UsageError(f"{name}: expected a dict with names as keys, got {type(value).__name__}.", _ARGS)
    second = second or {}
    merged = {**first, **second}
    kept = {name: value for name, value in (first.get("extra_body") or {}).items() if name not in second}
    merged["extra_body"] = {**kept, **(second.get("extra_body") or {})} or None
    return {name: value for name, value in merged.items() if value is not None}


async def run_rollouts(
    env: Any, rollouts: list[Rollout], client: Any, model: str, sampling_args: SamplingArgs, options: RunOptions
) -> GenerateOutputs:
    """Run rollouts and save them if there is a folder."""
    began = time.perf_counter()
    if not isinstance(model, str):
        raise UsageError(f"model: expected the name of a model, got {type(model).__name__}.")
    metadata = _metadata(env, rollouts, client, model, sampling_args, options)
    with contextlib.ExitStack() as stack:
        journal = None
        if options.folder is not None:
            stack.enter_context(lock_folder(options.folder))
            journal = stack.enter_context(Journal(options.folder, _settings(env, rollouts, metadata)))
            metadata.date = journal.settings["date"]
            restored = journal.restore(rollouts, to_score=options.score)
            if restored:
                _LOG.info("%s: %s of %s rollouts are already finished", journal.path, restored, len(rollouts))
            if journal.stale and any(rollout.reward is not None for rollout in rollouts):
                message = "reward functions have changed; rollouts already scored keep their rewards"
                _LOG.warning("%s: %s. To score them again: assay.score(%r, rubric)", journal.path, message, RESULTS)
            stack.enter_context(_log_how_to_resume(journal, rollouts))
        if any(rollout.to_generate for rollout in rollouts):
            check_arguments(client, env.message_type, sampling_args)
        if not options.score:
            for rollout in rollouts:
                rollout.reward = rollout.metrics = None
        async with open_client(client) as ready:
            await Run(env, ready, model, sampling_args, options, journal).go(rollouts)
        outputs = _outputs(env, rollouts, metadata, began, scored=options.score)
        if options.folder is not None:
            # NOTE: values saved with losses are logged, not warned: where warnings are errors, the caller would lose the rollouts
            if losses := save(outputs, options.folder / RESULTS, overwrite=True):
                _LOG.warning("%s: %s", options.folder / RESULTS, losses)
            with new_file(options.folder / _METADATA) as (file, naming_errors), naming_errors():
                file.write(metadata.model_dump_json(indent=2).encode() + b"\n")
    return outputs


def _metadata(
    env: Any, rollouts: Sequence[Rollout], client: Any, model: str, sampling_args: SamplingArgs, options: RunOptions
) -> GenerateMetadata:
    examples = options.num_examples or len({rollout.example_id for rollout in rollouts})
    shown_args = {
        name: dict.fromkeys(value, "…") if name in _SECRET_FIELDS and isinstance(value, Mapping) else value
        for name, value in sampling_args.items()
    }
    return GenerateMetadata(
        env_id=env.env_id,
        env_args=env.env_args,
        model=model,
        base_url=address(client),
        num_examples=examples,
        rollouts_per_example=options.rollouts_per_example or max(len(rollouts) // max(examples, 1), 1),
        sampling_args=shown_args,
        date=dt.datetime.now().astimezone().isoformat(timespec="seconds"),
        state_columns=options.state_columns,
        path_to_save=options.folder or Path(),
    )


def _settings(env: Any, rollouts: Sequence[Rollout], metadata: GenerateMetadata) -> dict[str, Any]:
    names, weights = env.rubric.get_reward_func_names(), env.rubric.get_reward_weights()
    return {
        "env_id": metadata.env_id,
        "env_args": metadata.env_args,
        "message_type": env.message_type,
        "max_turns": getattr(env, "max_turns", None),
        "oai_tools": getattr(env, "oai_tools", None),
        "model": metadata.model,
        "sampling_args": metadata.sampling_args,
        "rubric": [list(pair) for pair in zip(names, weights, strict=False)],
        "functions": functions_digest(env.rubric.get_reward_funcs()),
        "rollouts": len(rollouts),
        "inputs": digest(rollouts),
        "date": metadata.date,
    }


@contextlib.contextmanager
def _log_how_to_resume(journal: Journal, rollouts: Sequence[Rollout]) -> Iterator[None]:
    try:
        yield
    except (KeyboardInterrupt, asyncio.CancelledError):
        _LOG.warning(
            "stopped; %s of %s rollouts are kept in %s: to resume, repeat the call with the same results_path",
            f"{journal.finished:,}",
            f"{len(rollouts):,}",
            journal.path,
        )
        raise


def _outputs(
    env: Any, rollouts: Sequence[Rollout], metadata: GenerateMetadata, began: float, *, scored: bool
) -> GenerateOutputs:
    own = env.rubric.get_reward_func_names() if scored else ()
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


def _mean(values: Sequence[float | None]) -> float:
    present = [value for value in values if value is not None]
    return statistics.fmean(present) if present else 0.0
