"""From rollouts that are still to run to the outputs of ``generate``: metadata, the folder of a run, results on the disk."""

import asyncio
import contextlib
import datetime as dt
import inspect
import logging
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.environments.client import address, check_arguments, opened
from assay.environments.generation import UNLIMITED, Run
from assay.environments.inputs import Rollout
from assay.environments.journal import RESULTS, Journal, digest, functions_digest, locked
from assay.errors import UsageError, did_you_mean
from assay.system.atomic_file import new_file
from assay.types import GenerateMetadata, GenerateOutputs, SamplingArgs
from assay.values.saved_outputs import save

__all__ = ["RunOptions", "check_options", "generated", "merged"]

_METADATA = "metadata.json"
_SECRET = ("extra_headers", "extra_query")
"""Sampling arguments that may hold credentials: only their names are kept."""

_ARGS = '{"temperature": 0.7, "extra_body": {"top_k": 50}}'

_LOG = logging.getLogger("assay")


@dataclass(frozen=True)
class RunOptions:
    """How a run is done; the meaning of each is that of ``Environment.generate``."""

    num_examples: int | None = None
    rollouts_per_example: int | None = None
    score: bool = True
    interleave: bool = True
    generating: int = -1
    scoring: int = -1
    folder: Path | None = None
    state_columns: list[str] = field(default_factory=list)
    bar: bool = True
    further: dict[str, Any] = field(default_factory=dict)


def check_options(further: Mapping[str, Any], method: Callable[..., Any]) -> None:
    """Refuse further arguments that are arguments of the method misspelt: nobody else would.

    Raises:
        UsageError: There is one.
    """
    known = [name for name in inspect.signature(method).parameters if name not in ("self", "kwargs")]
    for name in further:
        if near := did_you_mean(name, known, cutoff=0.85):
            raise UsageError(f"`{name}` is no argument of {method.__name__}.", near)


def merged(first: Mapping[str, Any], second: Mapping[str, Any] | None) -> SamplingArgs:
    """Sampling arguments of which the second go before, ``extra_body`` key by key; what is None is left out.

    Raises:
        UsageError: They, or their ``extra_body``, are no mapping.
    """
    for args in (first, second or {}):
        for name, value in (
            ("sampling_args", args),
            ("extra_body", isinstance(args, Mapping) and args.get("extra_body")),
        ):
            if value and not (isinstance(value, Mapping) and all(isinstance(key, str) for key in value)):
                raise UsageError(f"{name}: {type(value).__name__} where a dict with names as keys belongs.", _ARGS)
    found = {**first, **(second or {})}
    bodies = [args.get("extra_body") or {} for args in (first, second or {})]
    found["extra_body"] = {**bodies[0], **bodies[1]} or None
    return {name: value for name, value in found.items() if value is not None}


async def generated(
    env: Any, rollouts: list[Rollout], client: Any, model: str, sampling_args: SamplingArgs, options: RunOptions
) -> GenerateOutputs:
    """Run rollouts, in a folder where there is one.

    Raises:
        UsageError: There is no client, it does not take an argument, the server refuses everything, or the folder holds
            another run.
        OutputError: The folder cannot be written.
    """
    began = time.perf_counter()
    if not isinstance(model, str):
        raise UsageError(f"model: {type(model).__name__} where the name of a model belongs.")
    metadata = _metadata(env, rollouts, client, model, sampling_args, options)
    with contextlib.ExitStack() as held:
        journal = None
        if options.folder is not None:
            held.enter_context(locked(options.folder))
            journal = held.enter_context(Journal(options.folder, _settings(env, rollouts, metadata)))
            metadata.date = journal.settings["date"]
            there = journal.restore(rollouts, to_score=options.score)
            if there:
                _LOG.info("%s: %s of %s rollouts are there already", journal.path, there, len(rollouts))
            if journal.stale and any(one.reward is not None for one in rollouts):
                said = "reward functions have changed since; rollouts that were scored keep their rewards"
                _LOG.warning("%s: %s. assay.score(%r, rubric) scores them anew", journal.path, said, RESULTS)
            held.enter_context(_tell_how_to_resume(journal, rollouts))
        if any(one.to_generate for one in rollouts):
            check_arguments(client, env.message_type, sampling_args)
        if not options.score:
            for one in rollouts:
                one.reward = one.metrics = None
        async with opened(client) as ready:
            run = Run(
                env,
                ready,
                model,
                sampling_args,
                score=options.score,
                interleave=options.interleave,
                generating=options.generating if options.generating > 0 else UNLIMITED,
                scoring=options.scoring if options.scoring > 0 else UNLIMITED,
                bar=options.bar,
                journal=journal,
                options=options.further,
            )
            await run.go(rollouts)
        outputs = _outputs(env, rollouts, metadata, began, scored=options.score)
        if options.folder is not None:
            _save(outputs, options.folder)
    return outputs


def _save(outputs: GenerateOutputs, folder: Path) -> None:
    # NOTE: what cannot be saved as it is is logged: a warning may be an error, and would cost the caller the rollouts
    if changed := save(outputs, folder / RESULTS, overwrite=True):
        _LOG.warning("%s: %s", folder / RESULTS, changed)
    with new_file(folder / _METADATA) as (file, told), told():
        file.write(outputs.metadata.model_dump_json(indent=2).encode() + b"\n")


def _metadata(
    env: Any, rollouts: Sequence[Rollout], client: Any, model: str, sampling_args: SamplingArgs, options: RunOptions
) -> GenerateMetadata:
    examples = options.num_examples or len({one.example_id for one in rollouts})
    kept = {
        name: dict.fromkeys(value, "…") if name in _SECRET and isinstance(value, Mapping) else value
        for name, value in sampling_args.items()
    }
    return GenerateMetadata(
        env_id=env.env_id,
        env_args=env.env_args,
        model=model,
        base_url=address(client),
        num_examples=examples,
        rollouts_per_example=options.rollouts_per_example or max(len(rollouts) // max(examples, 1), 1),
        sampling_args=kept,
        date=dt.datetime.now().astimezone().isoformat(timespec="seconds"),
        state_columns=options.state_columns,
        path_to_save=options.folder or Path(),
    )


def _settings(env: Any, rollouts: Sequence[Rollout], metadata: GenerateMetadata) -> dict[str, Any]:
    """What makes a run the same run."""
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
def _tell_how_to_resume(journal: Journal, rollouts: Sequence[Rollout]) -> Iterator[None]:
    """Say, to whom a run is stopped by, what is kept and how to go on."""
    try:
        yield
    except (KeyboardInterrupt, asyncio.CancelledError):
        _LOG.warning(
            "stopped; %s rollouts of %s are kept in %s: the same call with the same results_path goes on from there",
            f"{journal.finished:,}",
            f"{len(rollouts):,}",
            journal.path,
        )
        raise


def _outputs(
    env: Any, rollouts: Sequence[Rollout], metadata: GenerateMetadata, began: float, *, scored: bool
) -> GenerateOutputs:
    names = list(env.rubric.get_reward_func_names()) if scored else []
    names += [
        name for name in dict.fromkeys(name for one in rollouts for name in one.metrics or ()) if name not in names
    ]
    metrics = {name: [(one.metrics or {}).get(name) for one in rollouts] for name in names}
    metadata.avg_reward = _mean([one.reward for one in rollouts])
    metadata.avg_metrics = {name: _mean(values) for name, values in metrics.items()}
    metadata.time_ms = (time.perf_counter() - began) * 1000
    # each value has been looked at; to look at all of them again costs as much as the rest of scoring what is there
    return GenerateOutputs.model_construct(
        prompt=[one.prompt for one in rollouts],
        completion=["" if one.completion is None else one.completion for one in rollouts],
        answer=[one.answer for one in rollouts],
        state=[one.state or {} for one in rollouts],
        info=[one.info for one in rollouts],
        task=[one.task for one in rollouts],
        id=[one.example_id for one in rollouts],
        reward=[one.reward for one in rollouts],
        metrics=metrics,
        metadata=metadata,
    )


def _mean(values: Sequence[float | None]) -> float:
    """Mean of the values that are there, 0 where none is."""
    there = [value for value in values if value is not None]
    return statistics.fmean(there) if there else 0.0
