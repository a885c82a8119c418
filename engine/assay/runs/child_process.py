"""Score shards in a separate process, so that a crash of the engine or a lack of memory costs one shard only.

A shard whose process dies is tried once more; then its units are tried alone, to find the one that ends the process.
"""

import pickle
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from assay.calls.limits import is_user_error
from assay.errors import AssayError, UsageError, describe_error
from assay.functions.registry import Function, FunctionReference
from assay.guard.pool import Died, Pool, PoolError, Reply, Request
from assay.runs.shard_program import USE_MODULE
from assay.runs.shards import Job, Shard, culprit
from assay.scoring.summary import Summary

_PROGRAM = str(Path(__file__).with_name("shard_program.py"))
_TRIES = 2
_PATIENCE = 1.0
"""Seconds that a process at work has to remove its temporary files."""


def in_child_process(
    job: Job, shards: Sequence[Shard], tell: Callable[[int], None]
) -> Iterator[tuple[Shard, Summary | str]]:
    """Score shards in one separate process; an ``Engine``."""
    context = tuple(sys.path), _pickled(job)

    def hear(note: int | bytes) -> None:
        if isinstance(note, int):
            tell(note)
        else:
            warnings.warn(pickle.loads(note), stacklevel=2)  # noqa: S301  (from our own process)

    def ask(shard: Shard, *, is_trial: bool = False) -> Summary | str | None:
        """Return the result, or how the process ended."""
        request = Request(context, (pickle.dumps(shard), is_trial))
        try:
            (answer,) = pool.ask([request], None, heard=None if is_trial else hear)
        except PoolError as error:
            raise UsageError(
                f"The process that scores parts could not start: {error}", "Score with --no-isolate."
            ) from None
        if isinstance(answer, Died):
            return _reason(answer)
        assert isinstance(answer, Reply)  # noqa: S101  (the program raises nothing, and no time is up)
        result: Summary | AssayError | None = pickle.loads(answer.value)  # noqa: S301
        if isinstance(result, AssayError):
            raise result
        return result

    with closing(Pool(_PROGRAM, most=lambda: 1, isolated=False, patience=_PATIENCE)) as pool:
        for shard in shards:
            for _ in range(_TRIES):
                result = ask(shard)
                if isinstance(result, Summary):
                    break
            else:
                result = f"{result}{culprit(job, shard, lambda part: ask(part, is_trial=True) is not None)}"
            yield shard, result


def _pickled(job: Job) -> bytes:
    by_module = [fn for fn in job.functions if _module_of(fn) not in ("", "__main__") and not _pickles(fn)]
    job = replace(
        job,
        functions=tuple(fn for fn in job.functions if fn not in by_module),
        references=tuple(FunctionReference.of(fn.name) for fn in by_module),
        modules=(*job.modules, *dict.fromkeys(map(_module_of, by_module))),
    )
    try:
        return pickle.dumps(job)
    except BaseException as error:  # a user's object may raise anything
        if not is_user_error(error):
            raise
        raise UsageError(
            f"The checks cannot be sent to a separate process: {describe_error(error)}", USE_MODULE
        ) from None


def _module_of(fn: Function) -> str:
    return str(getattr(fn.fn, "__module__", None) or "")


def _pickles(fn: Function) -> bool:
    try:
        pickle.dumps(fn)
    except BaseException as error:
        if not is_user_error(error):
            raise
        return False
    return True


def _reason(death: Died) -> str:
    name = "" if death.code >= 0 else signal.Signals(-death.code).name
    how = f"was ended by {name}" if name else f"ended with exit code {death.code}"
    if not death.begun:
        raise UsageError(f"The process that scores parts {how} while it started.", "Score with --no-isolate.")
    return f"its process {how}{', perhaps for lack of memory' if name == 'SIGKILL' else ''}"
