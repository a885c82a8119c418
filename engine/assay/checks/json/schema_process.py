"""A process that evaluates JSON Schemas which may take too long, or more stack than there is.

``jsonschema_rs`` cannot be interrupted, and an overflow of the stack ends its process. The kernel ends this one at a limit of
processor time. It starts in some 50 ms, handles one request after the other, and ends with the process that started it.
"""

import atexit
import contextlib
import json
import marshal
import os
import signal
import struct
import subprocess
import sys
import threading
from typing import Any, Literal

from assay.system.processes import forget_in_children

SECONDS = 5.0
"""Limit on the processor time for compiling a schema and evaluating a text, in seconds."""
_REASON_SECONDS = 1.0
"""Limit on the processor time for finding a reason."""
_MEMORY = 2 << 30
_STACK = 256 << 20
_SIZE = struct.Struct("!Q")

Task = Literal["compile", "valid", "reason"]
"""What to do with a schema and a value."""

_PROGRAM = r"""
import json, marshal, resource, signal, struct, sys
seconds, reason_seconds, memory, stack = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
size = struct.Struct(sys.argv[5])
sys.path.append(sys.argv[6])
import jsonschema_rs
sys.setrecursionlimit(20_000)
for limit, value in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_STACK, stack), (resource.RLIMIT_CORE, 0)):
    hard = resource.getrlimit(limit)[1]
    resource.setrlimit(limit, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGPROF, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF})
source, sink = sys.stdin.buffer, sys.stdout.buffer
# a limit on time, not on backtracking, which `not` would turn into a verdict
patterns = jsonschema_rs.FancyRegexOptions(backtrack_limit=10**15)
latest = compiled = None

def reply(task, schema, options, value):
    global latest, compiled
    try:
        if latest != (schema, options):
            latest = None
            compiled = jsonschema_rs.validator_for(
                json.loads(schema), offline=True, validate_formats=options[0], mask=options[1], pattern_options=patterns
            )
            latest = schema, options
    except Exception as error:
        return ["schema", getattr(error, "message", None) or str(error), list(getattr(error, "instance_path", ()))]
    try:
        if task == "valid":
            return ["valid" if compiled.is_valid(value) else "invalid"]
        if task == "reason":
            signal.setitimer(signal.ITIMER_PROF, reason_seconds)
            compiled.validate(value)
        return ["valid"]
    except jsonschema_rs.ValidationError as error:
        return ["violation", error.message, list(error.instance_path)]
    except Exception as error:
        return ["raised", str(error)]

while head := source.read(size.size):
    request = marshal.loads(source.read(size.unpack(head)[0]))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    answer = json.dumps(reply(*request)).encode()
    signal.setitimer(signal.ITIMER_PROF, 0.0)
    sink.write(size.pack(len(answer)) + answer)
    sink.flush()
    del request
"""


class _SchemaProcess:
    """The process, for one thread at a time."""

    def __init__(self) -> None:
        import jsonschema_rs

        package = os.path.dirname(os.path.dirname(jsonschema_rs.__file__))  # noqa: PTH120  (as ``sys.path`` has it)
        sizes = [str(SECONDS), str(_REASON_SECONDS), str(_MEMORY), str(_STACK), _SIZE.format]
        self.process = subprocess.Popen(  # noqa: S603  (this interpreter, with the program above)
            [sys.executable, "-I", "-S", "-c", _PROGRAM, *sizes, package],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def ask(self, request: bytes) -> Any:
        """Return the reply to a request.

        Raises:
            OSError, EOFError: The process has ended.
        """
        assert self.process.stdin is not None  # noqa: S101  (both are pipes)
        assert self.process.stdout is not None  # noqa: S101
        self.process.stdin.write(_SIZE.pack(len(request)) + request)
        self.process.stdin.flush()
        head = self.process.stdout.read(_SIZE.size)
        if len(head) < _SIZE.size:
            raise EOFError
        return json.loads(self.process.stdout.read(_SIZE.unpack(head)[0]))

    def close(self) -> int:
        """End the process; return the signal that ended it before, or the one that ends it now."""
        self.process.kill()
        code = self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):  # unsent data
                if pipe is not None:
                    pipe.close()
        return -code


_LOCK = threading.Lock()
_PROCESSES: list[_SchemaProcess] = []


def evaluated(task: Task, schema: str, options: tuple[bool, str], value: Any = None) -> list[Any]:
    """Compile a schema and evaluate a value in another process.

    Args:
        task: Whether to compile the schema only, to tell whether the value is valid, or to find the first violation.
        schema: JSON text.
        options: Whether formats count, and the mask for values in messages.
        value: The JSON value.

    Returns:
        ``["valid"]``, also if it compiles; ``["invalid"]``; ``["violation", message, path]``; ``["schema", message, path]`` for a schema
        that is not valid; or ``["raised", message]``.

    Raises:
        TimeoutError: It takes too long.
        MemoryError: It needs more memory or stack than there is.
    """
    request = marshal.dumps((task, schema, options, value))
    with _LOCK:
        if not _PROCESSES:
            _PROCESSES.append(_SchemaProcess())
        try:
            answer: list[Any] = _PROCESSES[0].ask(request)
        except (OSError, EOFError):
            ended_by = _PROCESSES.pop().close()
        except BaseException:  # an interrupt: the reply would be taken for that to the next request
            _PROCESSES.pop().close()
            raise
        else:
            return answer
    if ended_by == signal.SIGPROF:
        raise TimeoutError(f"the schema takes more than {SECONDS:g} seconds on this output")
    raise MemoryError("the schema takes more memory or stack than there is on this output")


def _forget() -> None:
    """Leave the process to the one that has started it."""
    global _LOCK  # noqa: PLW0603  (another thread of the parent may hold it)
    _LOCK = threading.Lock()
    for owned in _PROCESSES:
        owned.process.returncode = 0  # or Python would warn that it runs
    _PROCESSES.clear()


def _close() -> None:
    while _PROCESSES:
        _PROCESSES.pop().close()


atexit.register(_close)
forget_in_children(_forget)
