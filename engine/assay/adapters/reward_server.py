"""A server of rewards over HTTP, for trainers that run elsewhere: OpenRLHF's remote URL, or any client that posts JSON.

Requests that come at the same time are scored in one batch. Every request gets an answer: its results, or a status that says why not.
"""

import asyncio
import hmac
import ipaddress
import math
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from assay.adapters.bodies import Bodies, Body, Refused, ServerLimits, row_problem
from assay.adapters.connections import Admitted, connection_class, most_connections
from assay.adapters.openrlhf_rewards import Reasons, reward_info, rows_of
from assay.adapters.verdicts import score_names
from assay.compiling.batches import check_given
from assay.compiling.columns import read_columns
from assay.compiling.plan import Plan
from assay.errors import ColumnsError, InputError, UsageError, describe_error
from assay.frozen import frozen
from assay.scoring.batching import Batcher, Outcome, Verifiers, plan_of

__all__ = ["ServerLimits", "reward_app", "serve"]

_WINDOW = 0.005
"""Seconds that a request waits for others: a batch of thirty rows costs what a row costs."""

_LARGE = 262_144
"""Bytes of a body that is parsed and scored beside the others …"""

_MANY = 10_000
"""… and its JSON values: parsing them takes milliseconds, in which nobody else is answered."""

_IDLE = 600
"""Seconds that a connection may be idle: a trainer's step takes minutes, and its client may not expect the end of a connection."""

_HEAD, _TAKING = 10.0, 60.0
"""Seconds that a client has to send the head of a request, and to take an answer."""

_STRANGER = 2.0
"""Seconds for which the rest of a body is awaited from a client without the token, before it is told so."""

_SHAPE = 'Send {"query": […], "prompts": […], "labels": […]}.'
"""What OpenRLHF sends."""

_PIECE, _PIECES = 1_000_000, 8
"""Bytes of a large body that are scored together, about, and the most pieces of a body."""

Row = Mapping[str, Any]


@frozen
class _RequestRows:
    rows: Sequence[Row]
    errors: Mapping[int, InputError]
    show: Callable[[Sequence[Outcome]], Any]


def reward_app(
    spec: Verifiers,
    *,
    token: str | None = None,
    unscored: float = 0.0,
    limits: ServerLimits | None = None,
    strict: bool = True,
) -> Any:
    """Return an ASGI application of Starlette with ``/reward``, ``/get_reward``, ``/health`` and ``/metrics``.

    Args:
        spec: Verifiers, a rubric, a plan, or the name of a grader.
        token: What requests must bring, ``Authorization: Bearer …``; ``/health`` needs none.
        unscored: The reward of an unscored query in ``/get_reward``, which takes numbers only.
        limits: What it accepts.
        strict: As of ``assay.compile``; requests are refused in which no row has a column that a check reads.

    Raises:
        SpecError: A verifier cannot be used.
        UsageError: ``unscored`` is not finite, which JSON does not have.
    """
    if not math.isfinite(unscored):
        raise UsageError(f"unscored={unscored}: expected a finite number.")
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.routing import Route

    pa.array([[""]])  # Arrow imports pandas now, and not while the first client waits
    server = _Server(plan_of(spec, strict=strict), token, unscored, limits or ServerLimits())
    posts = {"/reward": server.rows, "/get_reward": server.queries}
    routes = [Route(path, server.posted(path, read), methods=["POST"]) for path, read in posts.items()]
    routes += [Route("/health", server.health), Route("/metrics", server.metrics)]
    return Starlette(routes=routes, middleware=[Middleware(Admitted)])


class _Server:
    def __init__(self, plan: Plan, token: str | None, unscored: float, limits: ServerLimits) -> None:
        # each request is looked at by itself, because a batch may have rows of several
        self._plan = replace(plan, strict=False)
        self._is_strict = plan.strict
        self._accepted: set[frozenset[str]] = set()
        self._batcher = Batcher(self._plan, window=_WINDOW, eager=False)
        self._beside = Batcher(self._plan)
        self._turn = asyncio.Lock()
        self._token = None if token is None else f"Bearer {token}".encode()
        self._unscored = unscored
        self._reasons = Reasons()
        self._limits = limits
        self._bodies = Bodies(limits)
        self._columns = {*dict(self._plan.schema), *read_columns(self._plan.verifiers)}
        self._checks = score_names(self._plan.results)
        self._waiting: Counter[str] = Counter()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._rows: Counter[str] = Counter()

    def posted(self, path: str, read: Callable[[Any], _RequestRows]) -> Any:
        from starlette.requests import ClientDisconnect
        from starlette.responses import JSONResponse, Response

        async def endpoint(request: Any) -> Any:
            try:
                self._admit(request)
                async with self._bodies.of(request) as body:
                    response = await self._answer(body, read, JSONResponse)
            except Refused as refused:
                is_complete = await _takes_rest(request, refused.patience)
                headers = None if is_complete else {"connection": "close"}
                response = JSONResponse({"error": str(refused)}, refused.status, headers)
            except ClientDisconnect:  # nobody waits for the answer
                response = Response(status_code=499)
            self._requests[path, response.status_code] += 1
            return response

        return endpoint

    def _admit(self, request: Any) -> None:
        given = request.headers.get("authorization", "").encode()
        if self._token is not None and not hmac.compare_digest(given, self._token):
            raise Refused(401, "The token is missing or wrong: Authorization: Bearer TOKEN.", _STRANGER)
        Admitted.mark(request.scope)

    async def _answer(self, body: Body, read: Callable[[Any], _RequestRows], respond: Callable[[Any], Any]) -> Any:
        size = len(body.content)
        if size <= _LARGE and body.values <= _MANY:
            rows = read(body.parsed())
            return respond(rows.show(await self._outcomes(rows, "together", self._batcher.outcomes)))
        async with self._turn:
            rows = await asyncio.to_thread(lambda: read(body.parsed()))
            outcomes = await self._outcomes(rows, "in turn", partial(self._in_pieces, size=size))
            return await asyncio.to_thread(lambda: respond(rows.show(outcomes)))

    async def _outcomes(
        self, rows: _RequestRows, queue: str, score: Callable[[list[Row]], Awaitable[list[Outcome]]]
    ) -> list[Outcome]:
        number, most = len(rows.rows), self._limits.rows
        if number > most:
            raise Refused(413, f"The body has {number:,} rows; at most {most:,} may wait to be scored (--max-waiting).")
        if self._waiting[queue] + number > most:
            raise Refused(503, f"{self._waiting[queue]:,} rows wait to be scored; try again later.")
        self._look_for_columns([row for place, row in enumerate(rows.rows) if place not in rows.errors])
        self._waiting[queue] += number
        try:
            outcomes = await score([{} if place in rows.errors else row for place, row in enumerate(rows.rows)])
        finally:
            self._waiting[queue] -= number
        self._rows["scored"] += number
        rewards = (None if isinstance(outcome, BaseException) else outcome["reward"] for outcome in outcomes)
        self._rows["unscored"] += sum(reward is None for reward in rewards)
        return [rows.errors.get(place, outcome) for place, outcome in enumerate(outcomes)]

    def _look_for_columns(self, rows: Sequence[Row]) -> None:
        if not self._is_strict or not rows:
            return
        given = {name for row in rows for name in row}
        known = frozenset(self._columns & given)
        if known in self._accepted:
            return
        try:
            check_given(self._plan.verifiers, given)
        except ColumnsError as error:
            raise Refused(422, str(error)) from None
        self._accepted.add(known)

    async def _in_pieces(self, rows: list[Row], size: int) -> list[Outcome]:
        outcomes: list[Outcome] = []
        step = -(-len(rows) // max(1, min(_PIECES, size // _PIECE))) or 1
        for first in range(0, len(rows), step):
            piece = rows[first : first + step]
            # NOTE: of a single row, Polars makes scalars, and copies a long text up to four times at every step
            spare: list[Row] = [{}] if len(piece) == 1 else []
            outcomes += (await self._beside.outcomes([*piece, *spare]))[: len(piece)]
        return outcomes

    def rows(self, content: Any) -> _RequestRows:
        is_single = not (isinstance(content, dict) and isinstance(content.get("rows"), list))
        rows = [content] if is_single else content["rows"]
        if not all(isinstance(row, dict) for row in rows):
            raise Refused(400, 'Send a row, {"completion": …, "answer": …}, or {"rows": […]}.')
        errors = self._errors([row[name] for name in self._columns & row.keys()] for row in rows)

        def show(outcomes: Sequence[Outcome]) -> Any:
            nothing = dict.fromkeys(self._plan.results)
            results = [
                nothing | {"error": describe_error(outcome)} if isinstance(outcome, BaseException) else outcome
                for outcome in outcomes
            ]
            return results[0] if is_single else {"results": results}

        return _RequestRows(rows, errors, show)

    def queries(self, content: Any) -> _RequestRows:
        queries = _list_of(content, "query")
        prompts = _list_of(content, "prompts", [""] * len(queries))
        labels = _list_of(content, "labels", [None] * len(queries))
        if not all(isinstance(query, str) for query in queries):
            raise Refused(400, _SHAPE)
        if not len(queries) == len(prompts) == len(labels):
            raise Refused(400, "query, prompts and labels have different lengths.")
        errors = self._errors(zip(queries, prompts, labels, strict=True))
        texts = [None if place in errors else query for place, query in enumerate(queries)]

        def show(outcomes: Sequence[Outcome]) -> Any:
            return reward_info(outcomes, self._unscored, self._checks, self._reasons)

        return _RequestRows(rows_of(texts, prompts, labels), errors, show)

    def _errors(self, rows: Iterable[Iterable[Any]]) -> dict[int, InputError]:
        problems = ((place, row_problem(row, self._limits)) for place, row in enumerate(rows))
        return {place: InputError(problem) for place, problem in problems if problem}

    async def health(self, request: Any) -> Any:
        from starlette.responses import JSONResponse

        del request
        return JSONResponse({"status": "ok"})

    async def metrics(self, request: Any) -> Any:
        from starlette.responses import JSONResponse, PlainTextResponse

        try:
            self._admit(request)
        except Refused as refused:
            return JSONResponse({"error": str(refused)}, refused.status)
        lines = ["# TYPE assay_requests_total counter"]
        counts = sorted(self._requests.items())
        lines += [
            f'assay_requests_total{{path="{path}",status="{status}"}} {count}' for (path, status), count in counts
        ]
        for name in ("scored", "unscored"):
            lines += [f"# TYPE assay_rows_{name}_total counter", f"assay_rows_{name}_total {self._rows[name]}"]
        lines += ["# TYPE assay_rows_waiting gauge", f"assay_rows_waiting {self._waiting.total()}"]
        return PlainTextResponse("\n".join(lines) + "\n")


def _list_of(content: Any, name: str, default: list[Any] | None = None) -> list[Any]:
    values = content.get(name) if isinstance(content, dict) else None
    values = default if default is not None and values in (None, []) else values
    if not isinstance(values, list):
        raise Refused(400, _SHAPE)
    return values


async def _takes_rest(request: Any, seconds: float) -> bool:
    from starlette.requests import ClientDisconnect

    try:
        async with asyncio.timeout(seconds):
            async for _ in request.stream():
                pass
    except (TimeoutError, ClientDisconnect):
        return False
    except RuntimeError:  # all of it was read before
        return True
    return True


def serve(app: Any, *, host: str, port: int, token: str | None, tell: Callable[[str], None]) -> None:
    """Serve an application until the process is told to stop.

    Args:
        app: What ``reward_app`` returned.
        host: The address to listen on.
        port: The port; 0 for a free one.
        token: The token that requests must bring.
        tell: Takes the address when the server listens.

    Raises:
        UsageError: The port is taken, or other machines could use the server without a token.
    """
    import uvicorn

    if token is None and not _is_loopback(host):
        hint = "Give it a token: ASSAY_TOKEN=… or --token-file FILE; or listen on 127.0.0.1."
        raise UsageError(f"--host {host}: other machines could use this server without a token.", hint)
    connections = most_connections()
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=connections)
        # NOTE: asyncio does this only for sockets that it makes; without it an answer waits 40 ms for the client's acknowledgement
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"{host}:{port}: {getattr(error, 'strerror', None) or error}.", "Choose another --port."
        ) from None
    options: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False}
    options |= {"limit_concurrency": connections, "timeout_keep_alive": _IDLE, "timeout_graceful_shutdown": 10}
    config = uvicorn.Config(app, http=connection_class(_HEAD, _TAKING), ws="none", **options)
    with listener:
        name = f"[{host}]" if ":" in host else host
        tell(f"http://{name}:{listener.getsockname()[1]}")
        uvicorn.Server(config).run(sockets=[listener])


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
