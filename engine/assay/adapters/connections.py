"""Connections of clients: who keeps one, and for how long.

A trainer's connection may be idle for minutes between two steps. One that has not sent a request, or only what was refused, has no
reason to stay.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

_MOST = 1024
"""Connections at a time; more get 503."""

_OTHER_FILES = 64
"""Files and pipes that a server has open beside its connections, about; the others of what the system allows are connections."""

_HEAD = 65_536
"""Maximum bytes of a request's head."""

_MARK = "assay.admitted"

Application = Callable[[Any, Any, Any], Awaitable[None]]


class Admitted:
    """Middleware of ASGI: only a client whose request was admitted keeps its connection."""

    def __init__(self, app: Application) -> None:
        self._app = app

    @staticmethod
    def mark(scope: dict[str, Any]) -> None:
        """Let the client of a request keep its connection."""
        scope[_MARK] = True

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Callable[[Any], Awaitable[None]]) -> None:
        """Answer a request, and end its connection if nothing has admitted it."""

        async def closing(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start" and _MARK not in scope:
                message = message | {"headers": [*message.get("headers", ()), (b"connection", b"close")]}
            await send(message)

        await self._app(scope, receive, closing)


class Connection(asyncio.Protocol):
    """Ends a connection whose client does not send a request's head, or does not take an answer; mixed into a protocol of Uvicorn."""

    head_seconds: ClassVar[float]
    answer_seconds: ClassVar[float]
    without_head: ClassVar[dict["Connection", asyncio.TimerHandle]]

    transport: asyncio.Transport
    connections: set[Any]
    limit_concurrency: int
    cycle: Any

    _head = 0
    _taking: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for the first head; if there are too many connections, end the oldest that still waits for its own."""
        super().connection_made(transport)
        if len(self.connections) >= self.limit_concurrency and self.without_head:
            oldest = next(iter(self.without_head))
            oldest._end_wait()  # noqa: SLF001  (of this class)
            oldest.transport.abort()
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Take bytes, and end a connection whose head is too large."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._end_wait()
            return
        self._head += len(data)
        if self._head > _HEAD:
            self.transport.abort()
        elif self not in self.without_head:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._end_wait()
        self._stop_taking()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Begin to wait for the client to take an answer."""
        super().pause_writing()
        self._taking = asyncio.get_running_loop().call_later(self.answer_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Note that the client has taken what was sent."""
        super().resume_writing()
        self._stop_taking()

    def _await_head(self) -> None:
        timer = asyncio.get_running_loop().call_later(self.head_seconds, self.transport.abort)
        self.without_head[self] = timer

    def _end_wait(self) -> None:
        self._head = 0
        if timer := self.without_head.pop(self, None):
            timer.cancel()

    def _stop_taking(self) -> None:
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None


def connection_class(head_seconds: float, answer_seconds: float) -> type[asyncio.Protocol]:
    """Return the protocol of a server's connections; see ``Connection``."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    fields = {"head_seconds": head_seconds, "answer_seconds": answer_seconds, "without_head": {}}
    return type("ServedConnection", (Connection, AutoHTTPProtocol), fields)


def most_connections() -> int:
    """Return how many connections a server takes, after raising the number of files that it may open if it can."""
    try:
        import resource
    except ImportError:  # Windows
        return _MOST
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _MOST
    wanted = _MOST + _OTHER_FILES
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(1, min(_MOST, soft - _OTHER_FILES))
