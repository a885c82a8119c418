"""What a worker process does for a run in parts: it scores shards.

NOTE: nothing of Assay is imported before ``prepare``, so that a worker has threads of its own, and the client's import paths.
"""

import contextlib
import pickle
import sys
import warnings
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any


def prepare(context: tuple[tuple[str, ...], bytes], cell: Any) -> Callable[[tuple[bytes, bool]], bytes]:
    """Load the job; return what scores a shard, or only tries to."""
    sys.path[:], data = context
    sys.modules["__main__"] = ModuleType("__main__")  # which is no module of the run's
    from assay.system.processes import prepare_process

    prepare_process()  # before Polars is imported: its threads are this process's own

    from assay.calls.limits import is_user_error
    from assay.errors import UsageError, describe_error
    from assay.runs.shards import Job, result_of, score_shard, try_shard

    try:
        job: Job = pickle.loads(data)  # noqa: S301  (made by the client)
        job.set_up()
    except BaseException as error:  # a module may raise anything
        if not is_user_error(error):
            raise
        refusal = pickle.dumps(
            UsageError(f"The process that scores parts could not start: {describe_error(error)}", USE_MODULE)
        )
        return lambda _: refusal
    warnings.showwarning = lambda message, *_, **__: cell.tell(pickle.dumps(message))
    score = partial(score_shard, tell=cell.tell)

    def answer(request: tuple[bytes, bool]) -> bytes:
        shard, is_trial = request
        return pickle.dumps(result_of(try_shard if is_trial else score, job, pickle.loads(shard)))  # noqa: S301

    return answer


USE_MODULE = "Define what the checks call in a module and import it, or score with --no-isolate."


def leave() -> None:
    """Remove the temporary files, without a word."""
    from assay.system.processes import silence
    from assay.system.signals import CLEANUPS

    silence((1, 2))
    for remove in CLEANUPS:
        with contextlib.suppress(Exception):
            remove()
