"""A server of rewards over HTTP, for trainers that run elsewhere: OpenRLHF's remote URL, or any client that posts JSON.

Requests that come at the same time are scored in one batch. Every request gets an answer: its results, or a status that says why not.
"""

import asyncio
import hmac
import ipaddress
import json
import math
import socket
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.adapters.openrlhf_rewards import reward_info, rows_of
from assay.adapters.packages import package
from assay.adapters.verdicts import score_names
from assay.errors import UsageError, said_by
from assay.scoring.batching import Batcher, Outcome, Verifiers

__all__ = ["ServerLimits", "reward_app", "serve"]

_WINDOW = 0.005
"""Seconds that a request waits for others: a batch of thirty rows costs what a row costs."""

_CONNECTIONS = 1024
"""Connections at a time; more get 503."""

_IDLE = 600
"""Seconds that a connection may be idle: a trainer's step takes minutes, and its client may not expect the end of a connection."""

_SHAPE = 'Send {"query": […], "prompts": […], "labels": […]}.'
"""What OpenRLHF sends."""


@dataclass(frozen=True)
class ServerLimits:
    """What a server accepts.

    Attributes:
        body: Maximum size of a request's body, in bytes.
        rows: Maximum rows that wait to be scored; a request beyond gets 503.
        seconds: Time that a client has to send its body; afterwards it gets 408.
    """

    body: int = 32_000_000
    rows: int = 20_000
    seconds: float = 30.0


class _Refused(Exception):  # noqa: N818  (an answer, not an error of ours)
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def reward_app(
    spec: Verifiers, *, token: str | None = None, unscored: float = 0.0, limits: ServerLimits | None = None
) -> Any:
    """Return an ASGI application of Starlette with ``/reward``, ``/get_reward``, ``/health`` and ``/metrics``.

    Args:
        spec: Verifiers, a rubric, or a plan.
        token: What requests must bring, ``Authorization: Bearer …``; ``/health`` needs none.
        unscored: The reward of an unscored query in ``/get_reward``, which takes numbers only.
        limits: What it accepts.

    Raises:
        SpecError: A verifier cannot be used.
        UsageError: Starlette is not installed, or ``unscored`` is not finite, which JSON does not have.
    """
    if not math.isfinite(unscored):
        raise UsageError(f"unscored={unscored}: expected a finite number.")
    with package("Starlette", "serve"):
        from starlette.applications import Starlette
        from starlette.routing import Route
    batcher = Batcher(spec, window=_WINDOW, eager=False)
    server = _Server(batcher, token, unscored, limits or ServerLimits())
    posts = {"/reward": server.reward, "/get_reward": server.get_reward}
    routes = [Route(path, server.posted(path, answer), methods=["POST"]) for path, answer in posts.items()]
    return Starlette(routes=[*routes, Route("/health", server.health), Route("/metrics", server.metrics)])


class _Server:
    def __init__(self, batcher: Batcher, token: str | None, unscored: float, limits: ServerLimits) -> None:
        self._batcher = batcher
        self._token = None if token is None else f"Bearer {token}".encode()
        self._unscored = unscored
        self._limits = limits
        self._checks = score_names(batcher.plan.results)
        self._waiting = 0
        self._requests: Counter[tuple[str, int]] = Counter()
        self._rows: Counter[str] = Counter()

    # ── requests ────────────────────────────────────────────────────────────────────────────────────────────────────

    def posted(self, path: str, answer: Any) -> Any:
        """Return the endpoint for a path: it reads JSON, and answers with JSON whatever happens."""
        from starlette.requests import ClientDisconnect
        from starlette.responses import JSONResponse, Response

        async def endpoint(request: Any) -> Any:
            try:
                self._admit(request)
                content, status = await answer(_parsed(await self._body(request))), 200
            except _Refused as refused:
                content, status = {"error": str(refused)}, refused.status
            except ClientDisconnect:  # nobody waits for the answer
                self._requests[path, 499] += 1
                return Response(status_code=499)
            self._requests[path, status] += 1
            return JSONResponse(content, status, {"connection": "close"} if status in (408, 413) else None)

        return endpoint

    def _admit(self, request: Any) -> None:
        given = request.headers.get("authorization", "").encode()
        if self._token is not None and not hmac.compare_digest(given, self._token):
            raise _Refused(401, "The token is missing or wrong: Authorization: Bearer TOKEN.")

    async def _body(self, request: Any) -> bytes:
        limit, size, chunks = self._limits.body, 0, []
        refused = _Refused(413, f"The body is larger than {limit:,} bytes.")
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > limit:
            raise refused
        try:
            async with asyncio.timeout(self._limits.seconds):
                async for chunk in request.stream():
                    chunks.append(chunk)
                    size += len(chunk)
                    if size > limit:
                        raise refused
        except TimeoutError:
            raise _Refused(408, f"The body did not arrive within {self._limits.seconds:g} seconds.") from None
        return b"".join(chunks)

    async def _outcomes(self, rows: Sequence[Mapping[str, Any]]) -> list[Outcome]:
        if self._waiting + len(rows) > self._limits.rows:
            raise _Refused(503, f"{self._waiting:,} rows wait to be scored; try again later.")
        self._waiting += len(rows)
        try:
            outcomes = await asyncio.gather(*map(self._batcher.score, rows), return_exceptions=True)
        finally:
            self._waiting -= len(rows)
        self._rows["scored"] += len(rows)
        self._rows["unscored"] += sum(_reward(outcome) is None for outcome in outcomes)
        return list(outcomes)

    # ── answers ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def reward(self, body: Any) -> Any:
        """Return the results of a row, or of ``rows``."""
        is_single = not (isinstance(body, dict) and isinstance(body.get("rows"), list))
        rows = [body] if is_single else body["rows"]
        if not all(isinstance(row, dict) for row in rows):
            raise _Refused(400, 'Send a row, {"completion": …, "answer": …}, or {"rows": […]}.')
        results = [self._shown(outcome) for outcome in await self._outcomes(rows)]
        return results[0] if is_single else {"results": results}

    def _shown(self, outcome: Outcome) -> dict[str, Any]:
        if isinstance(outcome, BaseException):
            return dict.fromkeys(self._batcher.plan.results) | {"error": said_by(outcome)}
        return outcome

    async def get_reward(self, body: Any) -> Any:
        """Return the rewards of OpenRLHF's queries."""
        queries = _list_of(body, "query")
        prompts = _list_of(body, "prompts", [""] * len(queries))
        labels = _list_of(body, "labels", [None] * len(queries))
        if not all(isinstance(query, str) for query in queries):
            raise _Refused(400, _SHAPE)
        if not len(queries) == len(prompts) == len(labels):
            raise _Refused(400, "query, prompts and labels have different lengths.")
        outcomes = await self._outcomes(rows_of(queries, prompts, labels))
        return reward_info(outcomes, self._unscored, self._checks)

    async def health(self, request: Any) -> Any:
        """Answer that the server runs."""
        from starlette.responses import JSONResponse

        del request
        return JSONResponse({"status": "ok"})

    async def metrics(self, request: Any) -> Any:
        """Return counts in the text format of Prometheus."""
        from starlette.responses import JSONResponse, PlainTextResponse

        try:
            self._admit(request)
        except _Refused as refused:
            return JSONResponse({"error": str(refused)}, refused.status)
        lines = ["# TYPE assay_requests_total counter"]
        counts = sorted(self._requests.items())
        lines += [
            f'assay_requests_total{{path="{path}",status="{status}"}} {count}' for (path, status), count in counts
        ]
        for name in ("scored", "unscored"):
            lines += [f"# TYPE assay_rows_{name}_total counter", f"assay_rows_{name}_total {self._rows[name]}"]
        lines += ["# TYPE assay_rows_waiting gauge", f"assay_rows_waiting {self._waiting}"]
        return PlainTextResponse("\n".join(lines) + "\n")


def _list_of(body: Any, name: str, default: list[Any] | None = None) -> list[Any]:
    """Return a list that a client has sent, or the default where it has sent none, or an empty list."""
    values = body.get(name) if isinstance(body, dict) else None
    values = default if default is not None and values in (None, []) else values
    if not isinstance(values, list):
        raise _Refused(400, _SHAPE)
    return values


def _reward(outcome: Outcome) -> Any:
    return None if isinstance(outcome, BaseException) else outcome["reward"]


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _Refused(400, f"The body is not JSON: {said_by(error)}") from None


def serve(app: Any, *, host: str, port: int, token: str | None, tell: Callable[[str], None]) -> None:
    """Serve an application until the process is told to stop.

    Args:
        app: What ``reward_app`` returned.
        host: The address to listen on.
        port: The port; 0 for a free one.
        token: The token that requests must bring.
        tell: Takes the address when the server listens.

    Raises:
        UsageError: Uvicorn is not installed, the port is taken, or other machines could use the server without a token.
    """
    with package("Uvicorn", "serve"):
        import uvicorn
    if token is None and not _is_loopback(host):
        hint = "Give it a token: ASSAY_TOKEN=… or --token-file FILE; or listen on 127.0.0.1."
        raise UsageError(f"--host {host}: other machines could use this server without a token.", hint)
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=_CONNECTIONS)
        # NOTE: asyncio does this only for sockets that it makes; without it an answer waits 40 ms for the client's acknowledgement
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"{host}:{port}: {getattr(error, 'strerror', None) or error}.", "Choose another --port."
        ) from None
    options: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False}
    options |= {"limit_concurrency": _CONNECTIONS, "timeout_keep_alive": _IDLE, "timeout_graceful_shutdown": 10}
    config = uvicorn.Config(app, **options)
    with listener:
        name = f"[{host}]" if ":" in host else host
        tell(f"http://{name}:{listener.getsockname()[1]}")
        uvicorn.Server(config).run(sockets=[listener])


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
