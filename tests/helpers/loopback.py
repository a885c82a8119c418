"""A server on loopback that speaks the chat-completions protocol, and misbehaves where it is told to.

    with Loopback(lambda request: say("4")) as server:
        outputs = env.evaluate_sync(client_of(server), "m")

A script is a function from a request to a reply, or a list of replies for the first requests; after the list the server echoes.
"""

import contextlib
import functools
import json
import socket
import threading
import time
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Request:
    """What came in.

    Attributes:
        number: From 0, in order of arrival.
        path: Of the URL.
        body: The JSON of it.
        headers: By lower-case name.
    """

    number: int
    path: str
    body: dict[str, Any]
    headers: dict[str, str]

    @property
    def last(self) -> str:
        """The last thing said."""
        return self.body["messages"][-1]["content"] if "messages" in self.body else self.body["prompt"]


@dataclass(frozen=True)
class Reply:
    """What goes out.

    Attributes:
        text: What the model says.
        status: Of HTTP.
        body: Instead of a completion: JSON, or the bytes themselves.
        headers: Further headers.
        after: Seconds before it.
        ending: How it ends: ``whole``; ``dropped`` before the first byte; ``cut`` in the middle of the body; a stream also
            by an ``error`` event, or ``early``, orderly but without its last piece.
        fields: Further fields of the message: ``tool_calls``.
        choice: Further fields of the choice: ``finish_reason``, ``logprobs``.
    """

    text: str = ""
    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    after: float = 0.0
    ending: str = "whole"
    fields: dict[str, Any] = field(default_factory=dict)
    choice: dict[str, Any] = field(default_factory=dict)


def say(text, **options):
    return Reply(text=text, **options)


def refuse(status, message="no", code=None, **headers):
    error = {"message": message, "type": "error", "code": code}
    return Reply(
        status=status, body={"error": error}, headers={name.replace("_", "-"): one for name, one in headers.items()}
    )


def drop():
    return Reply(ending="dropped")


def garbage(body, **options):
    return Reply(body=body, **options)


def echo(request):
    return say(request.last)


class Loopback:
    """The server; ``requests`` has what came in, ``peak`` the most that were answered at one time."""

    def __init__(self, script=echo):
        self._script, self._lock = script, threading.Lock()
        self._open, self._live = set(), 0
        self.requests, self.peak = [], 0
        loopback = self

        class Handler(_Handler):
            server_side = loopback

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self):
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        with self._lock:
            for connection in self._open:
                _hang_up(connection)
        self._server.server_close()  # waits for the threads of the connections

    def answer(self, path, body, headers):
        with self._lock:
            request = Request(len(self.requests), path, body, headers)
            self.requests.append(request)
            self._live += 1
            self.peak = max(self.peak, self._live)
        try:
            if callable(self._script):
                reply = self._script(request)
            else:
                reply = self._script[request.number] if request.number < len(self._script) else echo(request)
            time.sleep(reply.after)
        finally:
            with self._lock:
                self._live -= 1
        return request, reply


def client_of(server, **options):
    """A client of the server; they share what takes long to make and is never opened: in a loop of its own, a run has a copy."""
    return _client().copy(base_url=server.url, **options)


def own_client_of(server):
    """A client that may be closed: it shares nothing with those of `client_of`."""
    import openai

    return openai.AsyncOpenAI(base_url=server.url, api_key="none")


@functools.cache
def _client():
    import openai

    return openai.AsyncOpenAI(base_url="http://127.0.0.1:9/v1", api_key="none")


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 1024

    def handle_error(self, request, client_address):
        """A client that hung up is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self):
        super().setup()
        with self.server_side._lock:
            self.server_side._open.add(self.connection)

    def finish(self):
        with self.server_side._lock:
            self.server_side._open.discard(self.connection)
        super().finish()

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request, reply = self.server_side.answer(self.path.partition("?")[0], body, headers)
        if reply.ending == "dropped":
            self._close()
        elif body.get("stream") and reply.status == 200 and reply.body is None:
            self._stream(request, reply)
        else:
            self._send(request, reply)

    def _send(self, request, reply):
        content = reply.body if reply.body is not None else completion(request, reply)
        kind = "application/json"
        if isinstance(content, bytes):
            kind = reply.headers.get("content-type", kind)
        else:
            content = json.dumps(content).encode()
        head = {"content-type": kind, "content-length": str(len(content)), **reply.headers}
        if reply.ending == "cut":
            content = content[: len(content) // 2]
        self.wfile.write(_head(reply.status, head) + content)
        if reply.ending == "cut":
            self._close()

    def _stream(self, request, reply):
        head = {"content-type": "text/event-stream", "connection": "close", **reply.headers}
        chunked = reply.ending != "early"
        if chunked:
            head["transfer-encoding"] = "chunked"
        self.wfile.write(_head(200, head))
        for number, piece in enumerate(pieces(request, reply)):
            if reply.ending in ("cut", "error", "early") and number == 2:
                break
            self._event(json.dumps(piece), chunked=chunked)
        if reply.ending == "error":
            self._event(json.dumps({"error": {"message": "the engine died", "type": "server_error"}}), chunked=chunked)
        if reply.ending in ("whole", "error"):
            self._event("[DONE]", chunked=chunked)
            self.wfile.write(b"0\r\n\r\n")
        self._close()

    def _event(self, text, *, chunked):
        content = f"data: {text}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content) if chunked else content)

    def _close(self):
        self.close_connection = True
        _hang_up(self.connection)


def _hang_up(connection):
    with contextlib.suppress(OSError):  # the other side was quicker
        connection.shutdown(socket.SHUT_RDWR)


def _head(status, headers):
    lines = [
        f"HTTP/1.1 {status} {'OK' if status == 200 else 'No'}",
        *(f"{name}: {one}" for name, one in headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def completion(request, reply):
    """A reply as the whole body of an answer."""
    prompt = sum(len(str(one)) for one in request.body.get("messages", [request.body.get("prompt", "")]))
    usage = {"prompt_tokens": prompt, "completion_tokens": len(reply.text), "total_tokens": prompt + len(reply.text)}
    top = {"id": f"answer-{request.number}", "created": 1_700_000_000, "model": request.body["model"], "usage": usage}
    if request.path.endswith("/chat/completions"):
        message = {"role": "assistant", "content": reply.text, **reply.fields}
        choice = {"index": 0, "finish_reason": "stop", "message": message, **reply.choice}
        return {"object": "chat.completion", "choices": [choice], **top}
    choice = {"index": 0, "finish_reason": "stop", "text": reply.text, "logprobs": None, **reply.choice}
    return {"object": "text_completion", "choices": [choice], **top}


def pieces(request, reply):
    """A reply as the pieces of a stream: two characters at a time."""
    whole = completion(request, replace(reply, fields={}))
    chat = whole["object"] == "chat.completion"
    top = {name: whole[name] for name in ("id", "created", "model")}
    top["object"] = "chat.completion.chunk" if chat else "text_completion"

    def piece(delta, finish=None):
        said = {"delta": delta} if chat else {"text": delta.get("content", "")}
        return {**top, "choices": [{"index": 0, "finish_reason": finish, **said}]}

    if chat:
        yield piece({"role": "assistant", "content": ""})
    for start in range(0, len(reply.text), 2):
        yield piece({"content": reply.text[start : start + 2]})
    for number, call in enumerate(reply.fields.get("tool_calls", ())):
        function = call["function"]
        yield piece(
            {"tool_calls": [{**call, "index": number, "function": {"name": function["name"], "arguments": ""}}]}
        )
        for letter in function["arguments"]:
            yield piece({"tool_calls": [{"index": number, "function": {"arguments": letter}}]})
    yield piece({}, reply.choice.get("finish_reason", "stop"))
    yield {**top, "choices": [], "usage": whole["usage"]}
