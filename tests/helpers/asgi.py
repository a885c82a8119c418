"""A client of an ASGI application, without sockets: what it answers to a request, with its headers."""

import asyncio
import json
from typing import Any, NamedTuple

__all__ = ["Answer", "ask"]


class Answer(NamedTuple):
    """What an application answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


def ask(app, path, query="", method="GET", **headers):
    """Ask an application; ``_`` in the name of a header is ``-``, and one with several values is sent several times."""
    values = [
        (name, value) for name, given in headers.items() for value in ([given] if isinstance(given, str) else given)
    ]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in values],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
    }
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    answered = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    assert len(answered) == len(sent[0]["headers"])
    return Answer(sent[0]["status"], answered, b"".join(message.get("body", b"") for message in sent[1:]))
