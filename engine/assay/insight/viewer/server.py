"""A server of the viewer for the person who started it: on this machine only, for those who know its address, and for reading only.

What it opens is decided before it listens: the results, and the unchanged inputs that their footers name or the rollouts that the user
names. A request has no paths.
"""

import hmac
import secrets
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import lru_cache
from typing import Any

from assay.adapters.reward_server import serve
from assay.errors import Abandoned, AssayError, UsageError
from assay.insight.diffing import diff
from assay.insight.reports.offline import page_data
from assay.insight.reports.page import as_page, policy
from assay.insight.results import open_result
from assay.insight.viewer.viewed import RowQuery, Viewed, whole_number
from assay.loading.formats.files import ENGINE_ERRORS, first_line
from assay.writing.progress import Progress

_HOST = "127.0.0.1"
_TOKEN_BYTES = 16
_PATIENCE = 2.0
"""Seconds that the reading of a result has to end."""

_SAME = ("same-origin", "none", "")

Reporting = Callable[[], AbstractContextManager[Progress | None]]
Headers = list[tuple[bytes, bytes]]
Query = Mapping[str, Sequence[str]]


class Gate:
    """Middleware of ASGI: lets in what asks for a path under the token, from this machine and from the page itself, to read.

    Attributes:
        port: The port that the server listens on.
    """

    port = 0

    def __init__(self, app: Any, token: str) -> None:
        self._app, self._token = app, token.encode()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Callable[[Any], Awaitable[None]]) -> None:
        """Answer a request, or refuse it with an empty answer."""
        if scope["type"] != "http":
            return

        async def guarded(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message = message | {"headers": [*message.get("headers", ()), *_guards()]}
            await send(message)

        if not (status := self._refusal(scope)):
            await self._app(scope | {"path": scope["path"].removeprefix(f"/{self._token.decode()}")}, receive, guarded)
            return
        headers = [(b"content-length", b"0"), *([(b"allow", b"GET, HEAD")] if status == 405 else [])]  # noqa: PLR2004
        await guarded({"type": "http.response.start", "status": status, "headers": headers})
        await guarded({"type": "http.response.body"})

    def _refusal(self, scope: Mapping[str, Any]) -> int:
        headers = scope["headers"]
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1 or hosts[0].lower() not in {f"{name}:{self.port}".encode() for name in (_HOST, "localhost")}:
            return 403
        token, _, rest = scope["path"].encode().removeprefix(b"/").partition(b"/")
        if not hmac.compare_digest(token, self._token):
            return 404
        sites = [value.decode("latin-1") for name, value in headers if name == b"sec-fetch-site"]
        if rest and any(site not in _SAME for site in sites):
            return 403
        return 0 if scope["method"] in ("GET", "HEAD") else 405


@lru_cache
def _guards() -> Headers:
    rules = {
        "content-security-policy": f"{policy('server')}; frame-ancestors 'none'",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
    }
    return [(name.encode(), value.encode()) for name, value in rules.items()]


class Viewer:
    """Results that are looked at together, and what is asked of them.

    Args:
        sources: Results; the first is compared with each of the others.
        rollouts: The rollouts that were scored, if they are not where the results say.

    Attributes:
        has_ended: Set it to read no further.
    """

    def __init__(self, sources: Sequence[Any], rollouts: Any = None) -> None:
        self.results = [open_result(source) for source in sources]
        self._viewed = [Viewed(result, rollouts) for result in self.results]
        self._comparing = threading.Lock()
        self._differences: dict[tuple[int, int], dict[str, Any]] = {}
        self._notes: list[str] = []
        self.has_ended = threading.Event()

    def read(self, progress: Reporting = nullcontext) -> None:
        """Read the results, and report the rows that have been read of those there are; then compare them, and report on each."""
        with suppress(Abandoned), progress() as tell:
            self._read_indexes(tell or (lambda *_: None))
        if self.has_ended.is_set():
            return
        for after in range(1, len(self.results)):
            try:
                self._between(0, after)
            except AssayError as error:
                self._notes.append(error.fact)
        for viewed in self._viewed:
            viewed.report()

    def _read_indexes(self, tell: Progress) -> None:
        rows, before = sum(result.rows for result in self.results), 0

        def reached(done: int) -> None:
            if self.has_ended.is_set():
                raise Abandoned
            tell(before + done, rows)

        for viewed in self._viewed:
            viewed.read(reached)
            before += viewed.result.rows

    def page(self, query: Query) -> str:
        """Return the page of ``?result``: what is known by now."""
        result = self._place(query, "result", "0")
        overviews = [viewed.overview() for viewed in self._viewed]
        names = [each.name for each in self.results]
        compare = self._differences.get((0, result or 1))
        data = page_data("server", names, overviews[result], compare, result=result)
        data |= {"side_by_side": [*map(self._numbers, range(len(names)), overviews)] if len(names) > 1 else []}
        errors = [viewed.error.fact for viewed in self._viewed if viewed.error is not None]
        checks = [overview["checks"] for overview in overviews]
        return as_page(data | {"checks": checks, "notes": [*self._notes, *errors]})

    def _numbers(self, place: int, overview: Mapping[str, Any]) -> dict[str, Any]:
        """Return the numbers of a result, and how it differs from the first, as far as that is known."""
        summary = overview["summary"]
        found = self._differences.get((0, place)) or {"changed": None, "flips": None, "delta": {"mean": None}}
        numbers = {name: summary[name] for name in ("rows", "mean", "pass_rate")}
        numbers |= {name: found[name] for name in ("changed", "flips")}
        return {"name": self.results[place].name, **numbers, "mean_delta": found["delta"]["mean"]}

    def overview(self, query: Query) -> dict[str, Any]:
        """Answer ``overview?result``."""
        return self._chosen(query).overview()

    def rows(self, query: Query) -> dict[str, Any]:
        """Answer ``rows?result&…``."""
        return self._chosen(query).rows(RowQuery.of(query))

    def row(self, query: Query) -> dict[str, Any]:
        """Answer ``row?result&row``."""
        return self._chosen(query).row(whole_number("row", _last(query, "row", "")))

    def compare(self, query: Query) -> dict[str, Any]:
        """Answer ``compare?before&after``."""
        return self._between(
            *(self._place(query, name, default) for name, default in (("before", "0"), ("after", "1")))
        )

    def _between(self, before: int, after: int) -> dict[str, Any]:
        with self._comparing:
            if (before, after) not in self._differences:
                self._differences[before, after] = diff(self.results[before], self.results[after]).as_json()
            return self._differences[before, after]

    def _chosen(self, query: Query) -> Viewed:
        viewed = self._viewed[self._place(query, "result", "0")]
        if viewed.error is not None:
            raise viewed.error
        return viewed

    def _place(self, query: Query, name: str, default: str) -> int:
        place = whole_number(name, _last(query, name, default))
        if place >= len(self.results):
            raise UsageError(f"{name} {place}: there are the results 0 to {len(self.results) - 1}.")
        return place


def _last(query: Query, name: str, default: str) -> str:
    return (query.get(name) or (default,))[-1]


def viewer_app(viewer: Viewer, token: str) -> Gate:
    """Return an ASGI application with the page of a viewer and its answers."""
    from starlette.responses import HTMLResponse, JSONResponse
    from starlette.routing import Route, Router

    def route(path: str, answer: Callable[[Query], Any], response: Any = JSONResponse) -> Any:
        def endpoint(request: Any) -> Any:
            try:
                return response(answer({key: request.query_params.getlist(key) for key in request.query_params}))
            except AssayError as error:
                return JSONResponse({"error": error.fact, "hint": error.hint}, 400)
            except ENGINE_ERRORS as error:  # values that cannot be compared or sorted
                return JSONResponse({"error": first_line(error), "hint": ""}, 400)

        return Route(path, endpoint)

    answers = {"overview": viewer.overview, "rows": viewer.rows, "row": viewer.row, "compare": viewer.compare}
    routes = [route("/", viewer.page, HTMLResponse)]
    routes += [route(f"/api/{name}", answer) for name, answer in answers.items()]
    return Gate(Router(routes, redirect_slashes=False), token)


def view(
    sources: Sequence[Any],
    *,
    rollouts: Any = None,
    port: int = 0,
    tell: Callable[[str], object],
    progress: Reporting = nullcontext,
) -> None:
    """Serve the viewer on this machine until the process is told to stop.

    Args:
        sources: Results; the first is compared with each of the others.
        rollouts: The rollouts that were scored, if they are not where the results say.
        port: The port; 0 for a free one.
        tell: Takes the address when the server listens.
        progress: Opens what takes the rows that have been read, and those there are.

    Raises:
        InputError: A result cannot be read.
        UsageError: The port is taken.
    """
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    viewer = Viewer(sources, rollouts)
    app = viewer_app(viewer, token)

    reading = threading.Thread(target=viewer.read, args=(progress,), daemon=True)

    def listening(address: str) -> None:
        app.port = int(address.rpartition(":")[2])
        reading.start()
        tell(f"{address}/{token}/")

    try:
        serve(app, host=_HOST, port=port, token=token, tell=listening)
    finally:
        viewer.has_ended.set()
        if reading.ident is not None:  # a terminal gets back what a progress bar has changed
            reading.join(_PATIENCE)
