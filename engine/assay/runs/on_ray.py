"""Shards scored as tasks of Ray, on this machine or on many.

The driver asks for few tasks at a time and is given numbers back; the parts go straight to the folder, which all nodes must see.
A task whose process or node dies is tried again by Ray; a shard that goes on dying is told of, and the others go on.
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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import polars as pl
from polars.exceptions import PanicException

from assay._version import __version__
from assay.errors import AssayError, UsageError, said_by
from assay.loading.formats.remote import RemoteFile
from assay.runs.folder import Engine, Failed
from assay.runs.shards import Job, Shard, culprit, score_shard, try_shard
from assay.scoring.summary import Summary
from assay.system.signals import LEFTOVERS
from assay.writing.writers import MANIFEST

__all__ = ["on_ray"]

_RETRIES = 3
"""How often a shard is tried again whose process or node died."""
_AHEAD = 2
"""Tasks asked for, for each CPU: one runs, one waits for it."""
_LOOK = 2.0
"""Seconds after which the cluster is asked for its size again."""
_PATIENCE = 3.0
"""Seconds that tasks have to end when they are told to."""
_KNOCK = 5.0
"""Seconds that an address has to answer."""
_SHARED = "Shards need a file system that all nodes see, under the same path."


@contextlib.contextmanager
def on_ray(address: str | None = None) -> Iterator[Engine]:
    """The engine that is a Ray cluster.

    Args:
        address: That of a cluster, by default that of ``RAY_ADDRESS``; where there is none, a Ray of this machine is begun, and
            ended afterwards. A Ray to which this process is connected already is used, and left as it is.

    Yields:
        The engine; its tasks end with the block.

    Raises:
        UsageError: Ray is not installed, or there is no cluster.
    """
    try:
        import ray
    except ImportError:
        raise UsageError("--engine ray: Ray is not installed.", "pip install 'assay[ray]'") from None
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
    _knock(where)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    quiet = {"log_to_driver": False, "logging_level": "CRITICAL"}
    own = {"include_dashboard": False} if where == "local" else {}
    try:
        with _own_signals():
            ray.init(address=where, **quiet, **own)
    except (ConnectionError, RuntimeError, ValueError, OSError) as wrong:
        raise UsageError(f"Ray at {where}: {said_by(wrong)}", _ADDRESS) from None
    try:
        yield
    finally:
        ray.shutdown()


_ADDRESS = "Name a running cluster, --ray-address HOST:6379, or none for a Ray of this machine."


def _knock(where: str) -> None:
    """Find out whether anybody is at an address; Ray itself would try for minutes, and end the process."""
    place = urlsplit(where if "://" in where else f"//{where}")
    try:
        host, port = place.hostname, place.port
    except ValueError:
        host, port = None, None
    if where in ("local", "auto"):
        return
    if host is None or port is None or place.scheme not in ("", "ray"):
        raise UsageError(f"Ray at {where}: expected HOST:PORT.", _ADDRESS)
    try:
        with socket.create_connection((host, port), _KNOCK) as door:
            if os.environ.get("RAY_USE_TLS", "0") != "0":
                return
            door.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)))  # as gRPC begins
            said = door.recv(9)
    except OSError as wrong:
        raise UsageError(f"Ray at {where}: nobody answers: {wrong.strerror or wrong}.", _ADDRESS) from None
    if said[3:4] != b"\x04":  # its settings, which such a server says first
        raise UsageError(f"Ray at {where}: who answers there is no Ray.", _ADDRESS)


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Ray would have SIGTERM for itself."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before, ended = signal.getsignal(signal.SIGTERM), False
    try:
        yield
    except SystemExit:  # by Ray's handler, while it began
        ended = True
    finally:
        signal.signal(signal.SIGTERM, before)
    if ended:
        signal.raise_signal(signal.SIGTERM)


@dataclass(frozen=True)
class _Luggage:
    """What a process of the cluster needs to be like the one that began the run.

    Attributes:
        cwd: Where it stands.
        paths: Where it imports from.
        versions: Of what it runs.
        job: What all shards share, pickled.
    """

    cwd: str
    paths: tuple[str, ...]
    versions: tuple[tuple[str, str], ...]
    job: bytes


_VERSIONS = (("assay", __version__), ("polars", pl.__version__))


class _DeadError(Exception):
    """A task's process died, however often it was tried; the words say how."""


class _Tasks:
    """The tasks of a run that are asked for."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._going: dict[Any, Shard] = {}
        self._said: set[str] = set()
        self._cpus, self._looked = 0, 0.0

    def score(
        self, job: Job, shards: Sequence[Shard], tell: Callable[[int], None]
    ) -> Iterator[tuple[Shard, Summary | Failed]]:
        """The engine: rows are told of when their shard is done, and not before.

        Raises:
            UsageError: The checks cannot be sent there.
        """
        del tell
        ask = self._asking(job)
        todo, dead = iter(shards), []
        while True:
            for shard in islice(todo, self._room()):
                self._going[ask(score_on_node, shard)] = shard
            if not self._going:
                break
            done, _ = self._ray.wait(list(self._going), timeout=_LOOK)
            for task in done:
                shard = self._going.pop(task)
                try:
                    found = self._answer(task)
                except _DeadError as wrong:
                    dead.append((shard, str(wrong)))
                    continue
                yield shard, found
        for shard, how in dead:
            yield shard, Failed(f"{how}{culprit(job, shard, lambda part: self._dies(ask, part))}")

    def cancel(self) -> None:
        """Have no task go on: each may leave its part as if it had not begun, and is ended if it takes long."""
        tasks, self._going = list(self._going), {}
        with contextlib.suppress(self._ray.exceptions.RayError):
            for task in tasks:
                self._ray.cancel(task)
            _, left = self._ray.wait(tasks, num_returns=len(tasks), timeout=_PATIENCE) if tasks else ([], [])
            for task in left:
                self._ray.cancel(task, force=True)

    def _asking(self, job: Job) -> Callable[[Callable[..., Any], Shard], Any]:
        """What asks for a task; the job goes to the cluster once."""
        try:
            pickled = self._ray.cloudpickle.dumps(job)
        except Exception as wrong:  # noqa: BLE001  (whatever a user's object raises)
            raise UsageError(
                f"The checks cannot be sent to Ray: {said_by(wrong)}", "Define them in a module and import it."
            ) from None
        luggage = self._ray.put(_Luggage(str(Path.cwd()), tuple(sys.path), _VERSIONS, pickled))
        options: dict[str, Any] = {"num_cpus": 1, "scheduling_strategy": "SPREAD", "max_retries": _RETRIES}
        # one thread for one CPU, and known before the engine is imported there
        options["runtime_env"] = {"env_vars": {"POLARS_MAX_THREADS": "1"}}

        @functools.cache
        def remote(what: Callable[..., Any]) -> Any:
            return self._ray.remote(**options)(what)

        # in a list: a task that runs where the job is known does not fetch it
        return lambda what, shard: remote(what).remote([luggage], shard)

    def _room(self) -> int:
        """How many more tasks to ask for."""
        if time.monotonic() - self._looked > _LOOK:
            self._cpus, self._looked = int(self._ray.cluster_resources().get("CPU", 0)), time.monotonic()
        return max(0, _AHEAD * max(self._cpus, 1) - len(self._going))

    def _dies(self, ask: Callable[..., Any], part: Shard) -> bool:
        task = ask(try_on_node, part)
        self._going[task] = part
        try:
            self._answer(task)
        except _DeadError:
            return True
        finally:
            self._going.pop(task, None)
        return False

    def _answer(self, task: Any) -> Any:
        """What a task gives.

        Raises:
            _DeadError: Its process died, and those of its retries.
            AssayError: What it raised.
        """
        wrong = self._ray.exceptions
        try:
            answer, warned = self._ray.get(task)
        except wrong.TaskCancelledError:
            raise KeyboardInterrupt from None
        except wrong.RayTaskError as raised:  # not by our own doing: the process could not even begin
            raise UsageError(
                f"A process of the Ray cluster could not begin: {said_by(raised.cause or raised)}",
                "Every node needs this Python, with the same packages.",
            ) from None
        except wrong.RuntimeEnvSetupError as raised:
            raise UsageError(f"A process of the Ray cluster could not begin: {said_by(raised)}") from None
        except wrong.OutOfMemoryError:
            raise _DeadError(f"its process was ended for want of memory on its node{_tried()}") from None
        except wrong.NodeDiedError:
            raise _DeadError(f"its node died{_tried()}") from None
        except wrong.RayError:
            raise _DeadError(f"its process died{_tried()}") from None
        for said in warned:
            if str(said) not in self._said:
                self._said.add(str(said))
                warnings.warn(said, stacklevel=2)
        if isinstance(answer, AssayError):
            raise answer
        return answer


def _tried() -> str:
    return f", tried {_RETRIES + 1} times"


# ── in a process of the cluster ─────────────────────────────────────────────────────────────────────────────────────────


def score_on_node(luggage: Sequence[Any], shard: Shard) -> tuple[Summary | AssayError, list[Warning | str]]:
    """The task: one shard becomes one part."""
    return _done(lambda job: score_shard(job, shard), luggage[0], shard)


def try_on_node(luggage: Sequence[Any], shard: Shard) -> tuple[AssayError | None, list[Warning | str]]:
    """The task that writes nothing: to find what ends a process."""
    return _done(lambda job: try_shard(job, shard), luggage[0], shard)


def _done(work: Callable[[Job], Any], luggage: Any, shard: Shard) -> tuple[Any, list[Warning | str]]:
    """What some work gives, or the error it raises as a value, so that Ray does not wrap it."""
    with warnings.catch_warnings(record=True) as warned:
        try:
            job = _settled(luggage)
            _refuse_blind(job, shard)
            found = work(job)
        except AssayError as wrong:
            found = wrong
        except PanicException:  # its process is of doubtful health: it ends, as by a crash
            for leave in LEFTOVERS:
                leave()
            os._exit(1)
        except Exception as wrong:  # noqa: BLE001  (whatever it is, the driver should know)
            found = AssayError(f"{shard.name}: {said_by(wrong)}")
    return found, [one.message for one in warned]


@functools.lru_cache(maxsize=1)
def _settled(luggage: Any) -> Job:
    """The job, in a process that knows what the driver knows; once for all tasks of a run."""
    import ray

    packed: _Luggage = ray.get(luggage)
    if packed.versions != _VERSIONS:
        theirs, ours = (" and ".join(" ".join(one) for one in many) for many in (packed.versions, _VERSIONS))
        raise UsageError(
            f"Node {socket.gethostname()} has {ours}; the run is of {theirs}.", "Install the same on every node."
        )
    with contextlib.suppress(OSError):  # paths may be absolute
        os.chdir(packed.cwd)
    sys.path[:0] = [path for path in packed.paths if path not in sys.path]
    try:
        job: Job = pickle.loads(packed.job)  # noqa: S301  (from our own driver)
        job.settle_in()
    except Exception as error:  # noqa: BLE001  (a module may raise anything)
        raise UsageError(
            f"A process of node {socket.gethostname()} could not begin: {said_by(error)}",
            "What is scored with is imported on every node: install it there, or name it in the runtime_env of ray.init.",
        ) from None
    return job


def _refuse_blind(job: Job, shard: Shard) -> None:
    """Find out whether this node sees what it is to read, and where it is to write.

    Raises:
        UsageError: It does not.
    """
    files = [job.files.files[number] for number in shard.cut.files]
    read = [file.path for file in files if not isinstance(file, RemoteFile) or file.copy is not None]
    for path in (job.folder / MANIFEST, *read):
        if not path.exists():
            raise UsageError(f"Node {socket.gethostname()} does not see {path.absolute()}.", _SHARED)
