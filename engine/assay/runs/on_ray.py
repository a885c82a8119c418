"""Score shards as Ray tasks, on one machine or many.

The driver submits a few tasks at a time and receives counts; the tasks write the parts to the folder, which all nodes must see.
Ray retries a task whose process or node dies; if a shard keeps failing, the others continue and the run reports it at the end.
"""

import contextlib
import functools
import os
import pickle
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import polars as pl

from assay._version import __version__
from assay.checks.libraries import versions
from assay.errors import AssayError, UsageError, describe_error, install
from assay.loading.formats.remote import RemoteFile
from assay.names import MANIFEST
from assay.runs.shards import Engine, Job, Shard, culprit, result_of, score_shard, try_shard
from assay.scoring.summary import Summary

_RETRIES = 3
"""Number of times that a shard is retried after its process or node died."""
_AHEAD = 2
"""Tasks submitted per CPU: one runs, one waits."""
_POLL = 2.0
"""Seconds between two queries for the size of the cluster."""
_PATIENCE = 3.0
"""Seconds that tasks have to end when they are cancelled."""
_CONNECT_TIMEOUT = 5.0
"""Seconds that an address has to answer."""
_SHARED = "All nodes need access to the files, at the same paths."


@contextlib.contextmanager
def on_ray(address: str | None = None) -> Iterator[Engine]:
    """Connect to a Ray cluster and yield an ``Engine`` that scores shards there."""
    try:
        import ray
    except ImportError:
        raise UsageError("--engine ray: Ray is not installed.", install("ray")) from None
    with _connected(ray, address):
        tasks = _Tasks(ray)
        try:
            yield tasks.score
        finally:
            tasks.cancel()


@contextlib.contextmanager
def _connected(ray: Any, address: str | None) -> Iterator[None]:
    if ray.is_initialized():
        yield
        return
    where = address or os.environ.get("RAY_ADDRESS") or "local"
    _probe(where)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    quiet = {"log_to_driver": False, "logging_level": "CRITICAL"}
    local = {"include_dashboard": False} if where == "local" else {}
    try:
        with _signals_restored():
            ray.init(address=where, **quiet, **local)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise UsageError(f"Ray at {where}: {describe_error(error)}", _ADDRESS) from None
    try:
        yield
    finally:
        ray.shutdown()


_ADDRESS = "Name a running cluster, --ray-address HOST:6379, or omit the option for a local Ray."


def _probe(where: str) -> None:
    url = urlsplit(where if "://" in where else f"//{where}")
    try:
        host, port = url.hostname, url.port
    except ValueError:
        host, port = None, None
    if where in ("local", "auto"):
        return
    if host is None or port is None or url.scheme not in ("", "ray"):
        raise UsageError(f"Ray at {where}: expected HOST:PORT.", _ADDRESS)
    try:
        with socket.create_connection((host, port), _CONNECT_TIMEOUT) as connection:
            if os.environ.get("RAY_USE_TLS", "0") != "0":
                return
            # the HTTP/2 preface and an empty SETTINGS frame, with which gRPC starts
            connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)))
            answer = connection.recv(9)
    except OSError as error:
        raise UsageError(f"Ray at {where}: no answer: {error.strerror or error}.", _ADDRESS) from None
    if answer[3:4] != b"\x04":  # a gRPC server sends its SETTINGS frame first
        raise UsageError(f"Ray at {where}: the server at this address is not Ray.", _ADDRESS)


@contextlib.contextmanager
def _signals_restored() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before, ended = signal.getsignal(signal.SIGTERM), False
    try:
        yield
    except SystemExit:  # from Ray's handler, while it started
        ended = True
    finally:
        signal.signal(signal.SIGTERM, before)
    if ended:
        signal.raise_signal(signal.SIGTERM)


_VERSIONS = (("assay", __version__), ("polars", pl.__version__))


def _versions(libraries: Iterable[str]) -> tuple[tuple[str, str | None], ...]:
    return (*_VERSIONS, *versions(libraries).items())


def _listed(numbers: Iterable[tuple[str, str | None]]) -> str:
    return " and ".join(f"{name} {number}" if number else f"no {name}" for name, number in numbers)


class _TaskDiedError(Exception):
    """The process of a task died at every try; the message says how."""


class _Tasks:
    """The submitted tasks of a run."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._running: dict[Any, Shard] = {}
        self._warned: set[str] = set()
        self._cpus, self._polled = 0, 0.0

    def score(
        self, job: Job, shards: Sequence[Shard], tell: Callable[[int], None]
    ) -> Iterator[tuple[Shard, Summary | str]]:
        del tell
        submit = self._submitter(job)
        waiting, dead = iter(shards), []
        while True:
            if time.monotonic() - self._polled > _POLL:
                self._cpus, self._polled = int(self._ray.cluster_resources().get("CPU", 0)), time.monotonic()
            room = max(0, _AHEAD * max(self._cpus, 1) - len(self._running))
            for shard in islice(waiting, room):
                self._running[submit(score_shard, shard)] = shard
            if not self._running:
                break
            finished, _ = self._ray.wait(list(self._running), timeout=_POLL)
            for task in finished:
                shard = self._running.pop(task)
                try:
                    summary = self._result(task)
                except _TaskDiedError as error:
                    dead.append((shard, str(error)))
                    continue
                yield shard, summary

        def dies(part: Shard) -> bool:
            task = submit(try_shard, part)
            self._running[task] = part
            try:
                self._result(task)
            except _TaskDiedError:
                return True
            finally:
                self._running.pop(task, None)
            return False

        for shard, reason in dead:
            yield shard, f"{reason}{culprit(job, shard, dies)}"

    def cancel(self) -> None:
        tasks, self._running = list(self._running), {}
        with contextlib.suppress(self._ray.exceptions.RayError):
            for task in tasks:
                self._ray.cancel(task)
            _, remaining = self._ray.wait(tasks, num_returns=len(tasks), timeout=_PATIENCE) if tasks else ([], [])
            for task in remaining:
                self._ray.cancel(task, force=True)

    def _submitter(self, job: Job) -> Callable[[Callable[..., Any], Shard], Any]:
        try:
            pickled = self._ray.cloudpickle.dumps(job)
        except Exception as error:  # noqa: BLE001  (a user's object may raise anything)
            raise UsageError(
                f"The checks cannot be sent to Ray: {describe_error(error)}", "Define them in a module and import it."
            ) from None
        libraries = dict.fromkeys(name for verifier in job.plan.verifiers for name in verifier.libraries)
        setup = self._ray.put((str(Path.cwd()), tuple(sys.path), _versions(libraries), pickled))
        options: dict[str, Any] = {"num_cpus": 1, "scheduling_strategy": "SPREAD", "max_retries": _RETRIES}
        # one thread per CPU; set in the environment, because Polars reads it when imported
        options["runtime_env"] = {"env_vars": {"POLARS_MAX_THREADS": "1"}}

        task = self._ray.remote(**options)(run_on_node)
        # in a list, so that Ray does not fetch the job in processes that have it already
        return lambda work, shard: task.remote([setup], work, shard)

    def _result(self, task: Any) -> Any:
        errors = self._ray.exceptions
        try:
            result, warned = self._ray.get(task)
        except errors.TaskCancelledError:
            raise KeyboardInterrupt from None
        except errors.RayTaskError as error:  # tasks return their errors, so the process could not start
            raise UsageError(
                f"A process of the Ray cluster could not start: {describe_error(error.cause or error)}",
                "Every node needs this version of Python, with the same packages.",
            ) from None
        except errors.RuntimeEnvSetupError as error:
            raise UsageError(f"A process of the Ray cluster could not start: {describe_error(error)}") from None
        except errors.OutOfMemoryError:
            raise _TaskDiedError(f"its process was ended for lack of memory on its node{_tried()}") from None
        except errors.NodeDiedError:
            raise _TaskDiedError(f"its node died{_tried()}") from None
        except errors.RayError:
            raise _TaskDiedError(f"its process died{_tried()}") from None
        for warning in warned:
            if str(warning) not in self._warned:
                self._warned.add(str(warning))
                warnings.warn(warning, stacklevel=2)
        if isinstance(result, AssayError):
            raise result
        return result


def _tried() -> str:
    return f", tried {_RETRIES + 1} times"


def run_on_node(
    setup: Sequence[Any], work: Callable[[Job, Shard], Any], shard: Shard
) -> tuple[Any, list[Warning | str]]:
    """Return the result of a task, or its error as a value, so that Ray does not wrap it; and its warnings; a Ray task."""
    with warnings.catch_warnings(record=True) as warned:
        try:
            job = _prepared(setup[0])
            _refuse_missing_files(job, shard)
        except AssayError as error:
            result: Any = error
        else:
            result = result_of(work, job, shard)
    return result, [warning.message for warning in warned]


@functools.lru_cache(maxsize=1)
def _prepared(setup: Any) -> Job:
    import ray

    cwd, paths, there, pickled = ray.get(setup)
    with contextlib.suppress(OSError):  # paths may be absolute
        os.chdir(cwd)
    sys.path[:0] = [path for path in paths if path not in sys.path]
    here = _versions(name for name, _ in there[len(_VERSIONS) :])
    if there != here:
        raise UsageError(
            f"Node {socket.gethostname()} has {_listed(here)}; the driver has {_listed(there)}.",
            "Install the same versions on every node.",
        )
    try:
        job: Job = pickle.loads(pickled)  # noqa: S301  (from the driver)
        job.set_up()
    except Exception as error:  # noqa: BLE001  (a module may raise anything)
        raise UsageError(
            f"A process of node {socket.gethostname()} could not start: {describe_error(error)}",
            "Every node imports the modules that score: install them there, or list them in the runtime_env of ray.init.",
        ) from None
    return job


def _refuse_missing_files(job: Job, shard: Shard) -> None:
    files = [job.files.files[number] for number in shard.cut.files]
    paths = [file.path for file in files if not isinstance(file, RemoteFile) or file.copy is not None]
    for path in (job.folder / MANIFEST, *paths):
        if not path.exists():
            raise UsageError(f"Node {socket.gethostname()} does not see {path.absolute()}.", _SHARED)
