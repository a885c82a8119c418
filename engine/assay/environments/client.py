"""Requests to a model by an OpenAI-compatible client: which of them are sent again, how long after, and which are given up.

Only the client that the caller gives is talked to. The ``openai`` package is imported where its client is used; any object
that has ``chat.completions.create`` (or ``completions.create``) as a coroutine will do.
"""

import asyncio
import contextlib
import email.utils
import inspect
import json
import random
import sys
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from assay.environments.streams import NotACompletion, as_response, gathered
from assay.errors import UsageError, did_you_mean, quoted

__all__ = ["OVERLONG", "Retries", "address", "ask", "check_arguments", "denied", "opened", "permanent"]

OVERLONG = "overlong-prompt"
"""``id`` of the answer that stands for a prompt too long for the model."""

_AGAIN = (408, 409, 425, 429)
_DENIED = (401, 403, 404)
_TOO_LONG = (
    *("context length", "context_length", "context size", "context window", "maximum model length"),
    *("prompt is too long",),
)
_EXCERPT = 200
"""Characters of a body that a message shows."""


@dataclass(frozen=True)
class Retries:
    """How often a request is sent again, and how long after.

    Attributes:
        most: Times that one request is sent again.
        delay: Seconds before the first of them; each further one waits twice as long, less up to a half by chance, so
            that requests which failed together do not return together.
        longest: Seconds that no wait exceeds, nor one that the server asks for by ``Retry-After``.
    """

    most: int = 5
    delay: float = 0.5
    longest: float = 60.0

    def wait(self, tried: int, wrong: Exception) -> float:
        """Seconds to wait after the try of that number, from 0, ended so."""
        backoff: float = self.delay * 2 ** min(tried, 32) * random.uniform(0.5, 1.0)  # noqa: S311  (no secret)
        return min(max(backoff, _asked(wrong)), self.longest)


def _asked(wrong: Exception) -> float:
    """Seconds that a server asks to wait."""
    headers = getattr(getattr(wrong, "response", None), "headers", None) or {}
    said = headers.get("retry-after") or ""
    with contextlib.suppress(ValueError):
        return max(float(said), 0.0)
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        return max(email.utils.parsedate_to_datetime(said).timestamp() - time.time(), 0.0)
    return 0.0


async def ask(
    client: Any,
    model: str,
    prompt: Any,
    *,
    message_type: str = "chat",
    tools: Any = None,
    sampling_args: Mapping[str, Any] | None = None,
    retries: Retries | None = None,
) -> Any:
    """Ask a model, as often as it takes.

    Asked again: 408, 409, 425, 429 and 5xx, connections that fail or break, timeouts, bodies that are no completion, streams
    that end early. What is permanent is raised as it came.

    Args:
        client: An ``openai.AsyncOpenAI`` or what acts like one.
        model: Name of the model.
        prompt: Messages for ``chat``, text for ``completion``.
        message_type: Which of the two.
        tools: Tools that the model may call.
        sampling_args: Further arguments, passed as they are, those that are None left out. A stream is gathered.
        retries: How often and how long after.

    Returns:
        The answer; for a prompt too long for the model, one with the ``id`` of ``OVERLONG``.
    """
    retries = retries or Retries()
    args = {name: value for name, value in (sampling_args or {}).items() if value is not None}
    if tools:
        args["tools"] = tools
    if getattr(client, "max_retries", 0) and _is_a(client, "AsyncOpenAI"):
        client = client.with_options(max_retries=0)  # or every one of our tries would be several of its own
    tried = 0
    while True:
        try:
            return await _answer(client, model, prompt, message_type, args)
        except Exception as wrong:
            if _is_too_long(wrong):
                return _overlong(message_type)
            if tried >= retries.most or not _may_pass(wrong):
                raise
            wait = retries.wait(tried, wrong)
        tried += 1
        await asyncio.sleep(wait)


async def _answer(client: Any, model: str, prompt: Any, message_type: str, args: Mapping[str, Any]) -> Any:
    if message_type == "completion":
        response = await client.completions.create(model=model, prompt=prompt, **args)
    else:
        response = await client.chat.completions.create(model=model, messages=prompt, **args)
    if args.get("stream"):
        response = await gathered(response, message_type)
    choices = getattr(response, "choices", None)
    first = choices[0] if isinstance(choices, list) and choices else None
    if message_type == "completion":
        answered = isinstance(getattr(first, "text", None), str)
    else:
        message = getattr(first, "message", None)
        is_message = hasattr(message, "role") or hasattr(message, "content")
        answered = is_message and isinstance(getattr(message, "content", None), str | None)
    if not answered:
        body = response if isinstance(response, str) else getattr(response, "error", None) or response
        raise NotACompletion(f"the answer holds no completion: {quoted(str(body)[:_EXCERPT])}")
    return response


def _is_a(client: Any, name: str) -> bool:
    """Whether it is a client of the openai package, which then has been imported."""
    openai: Any = sys.modules.get("openai")
    return openai is not None and isinstance(client, getattr(openai, name))


def _passing() -> tuple[type, ...]:
    """What is raised without a status and may not be raised again."""
    by_package = (("openai", "APIError"), ("httpx", "RequestError"), ("httpx2", "RequestError"))
    there = [getattr(sys.modules.get(package), name, None) for package, name in by_package]
    found = [one for one in there if isinstance(one, type)]
    return (NotACompletion, ConnectionError, TimeoutError, json.JSONDecodeError, UnicodeDecodeError, *found)


def _status(wrong: BaseException) -> int | None:
    status = getattr(wrong, "status_code", None)
    return status if isinstance(status, int) else None


def _may_pass(wrong: Exception) -> bool:
    """Whether the same request may be answered another time."""
    status = _status(wrong)
    if status is None:
        return isinstance(wrong, _passing())
    # below 400: the server meant to answer, and its body could not be read
    return (status < 400 or status in _AGAIN or status >= 500) and not _is_spent(wrong)  # noqa: PLR2004  (the classes of HTTP)


def _is_spent(wrong: BaseException) -> bool:
    """Whether it is a 429 that says the account is empty, which waiting does not fill."""
    return getattr(wrong, "code", None) == "insufficient_quota"


def permanent(wrong: BaseException) -> bool:
    """Whether a request was refused for good."""
    return isinstance(wrong, Exception) and _status(wrong) is not None and not _may_pass(wrong)


def denied(wrong: BaseException) -> bool:
    """Whether the key, the address or the name of the model is refused, whatever the prompt."""
    return _status(wrong) in _DENIED or _is_spent(wrong)


def _is_too_long(wrong: Exception) -> bool:
    if _status(wrong) != 400:  # noqa: PLR2004  (as servers refuse a prompt)
        return False
    # NOTE: the protocol has no other sign of this than a code that few servers send, and the words of the rest
    said = f"{getattr(wrong, 'code', '')} {wrong}".lower()
    return any(words in said for words in _TOO_LONG)


def _overlong(message_type: str) -> Any:
    said = {"text": ""} if message_type == "completion" else {"message": {"role": "assistant", "content": ""}}
    kind = "text_completion" if message_type == "completion" else "chat.completion"
    choices = [{"index": 0, "finish_reason": "length", **said}]
    fields = {"id": OVERLONG, "created": 0, "model": "", "object": kind, "choices": choices}
    return as_response(fields, message_type)


@contextlib.asynccontextmanager
async def opened(client: Any, *, own_loop: bool = False) -> AsyncIterator[Any]:
    """A client as rollouts use it: asynchronous, and without retries of its own.

    Args:
        client: What the caller gave; None, an ``openai.OpenAI`` and what is no client of that package included.
        own_loop: The event loop is not the one that the client may have connections in.

    Raises:
        UsageError: It is a synchronous client that has no asynchronous twin here.
    """
    made: Any = None
    if _is_a(client, "OpenAI"):
        made = client = _twin(client)
    elif _is_a(client, "AsyncOpenAI"):
        if own_loop and type(client._client).__name__ == "AsyncHttpxClientWrapper":  # noqa: SLF001  (nothing public tells it from the caller's own)
            http = sys.modules["openai"].DefaultAsyncHttpxClient(base_url=client.base_url, timeout=client.timeout)
            made = client = client.copy(http_client=http, max_retries=0)
        else:
            client = client.with_options(max_retries=0)
    try:
        yield client
    finally:
        if made is not None:
            await made.close()


def _twin(client: Any) -> Any:
    """The asynchronous client of the same server and key."""
    openai = sys.modules["openai"]
    if type(client) is not openai.OpenAI:
        name = type(client).__name__
        raise UsageError(f"{name} is synchronous; rollouts need its asynchronous twin.", f"Give an Async{name}.")
    return openai.AsyncOpenAI(
        api_key=client.api_key,
        organization=client.organization,
        project=client.project,
        base_url=client.base_url,
        timeout=client.timeout,
        max_retries=0,
        default_headers=getattr(client, "_custom_headers", None),
        default_query=getattr(client, "_custom_query", None),
    )


def check_arguments(client: Any, message_type: str, sampling_args: Mapping[str, Any]) -> None:
    """Refuse, before the first request, what no request could be sent with.

    Raises:
        UsageError: There is no client, or it takes no such argument.
    """
    if client is None:
        hint = "Give client=openai.AsyncOpenAI(base_url=…); pip install 'assay[generate]' installs it."
        raise UsageError("There are rollouts to generate and no client to generate them with.", hint)
    try:
        endpoint = client.completions if message_type == "completion" else client.chat.completions
    except AttributeError as wrong:
        raise UsageError(f"{type(client).__name__} is no client: {wrong}.", "Give an openai.AsyncOpenAI.") from None
    if taken_already := {"model", "prompt", "messages"}.intersection(sampling_args):
        raise UsageError(f"sampling_args: `{min(taken_already)}` is no argument of sampling; the run gives it.")
    try:
        taken = inspect.signature(endpoint.create).parameters
    except (TypeError, ValueError):  # what stands in for a client need not say what it takes
        return
    if any(one.kind is one.VAR_KEYWORD for one in taken.values()):
        return
    for name in sampling_args:
        if name not in taken:
            near = did_you_mean(name, taken, cutoff=0.85)
            hint = f'{near} What only the server knows: {{"extra_body": {{"{name}": …}}}}'.strip()
            raise UsageError(f"sampling_args: the client takes no `{name}`.", hint)


def address(client: Any) -> str:
    """Where a client asks, without user, password and query."""
    parts = urlsplit(str(getattr(client, "base_url", "") or ""))
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
