"""Requests to a model through an OpenAI-compatible client: which are retried, after how long, and which are given up.

Only the client of the caller is used. The ``openai`` package is needed only for its own clients; any object
that has ``chat.completions.create`` (or ``completions.create``) as a coroutine function works.
"""

import asyncio
import contextlib
import email.utils
import importlib
import inspect
import json
import random
import sys
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from assay.errors import UsageError, did_you_mean, install, quoted
from assay.frozen import frozen

OVERLONG = "overlong-prompt"
"""``id`` of the placeholder response for a prompt that is too long for the model."""

_RETRIED_STATUSES = (408, 409, 425, 429)
_ACCESS_STATUSES = (401, 403, 404)
_TOO_LONG_PHRASES = (
    *("context length", "context_length", "context size", "context window", "maximum model length"),
    "prompt is too long",
)
_OF_SERVERS = frozenset(
    (
        *("top_k", "min_p", "repetition_penalty", "length_penalty", "min_tokens", "bad_words", "allowed_token_ids"),
        *("stop_token_ids", "ignore_eos", "include_stop_str_in_output", "skip_special_tokens"),
        *("spaces_between_special_tokens", "truncate_prompt_tokens", "prompt_logprobs", "use_beam_search"),
    )
)
"""Sampling arguments of vLLM that the client of openai takes only under ``extra_body``."""

_REPLACED_FIELDS = ("id", "index", "role", "type", "finish_reason", "stop_reason")
"""AttributeDict of a stream whose later values replace earlier ones instead of extending them."""

_EXCERPT = 200
"""Characters of a response body that a message shows."""


class NotACompletion(Exception):  # noqa: N818  (``error`` shows the name, and users know it)
    """The response is not a completion, or an incomplete one."""


class AttributeDict(dict[str, Any]):
    """A JSON object whose fields are also attributes, as in the openai package: ``response.choices[0].message.content``.

    States keep responses and tool calls in this form: they read like the objects of that package and equal their saved form.
    """

    def __getattr__(self, name: str) -> Any:
        try:
            value = self[name]
        except KeyError:
            raise AttributeError(name) from None
        if type(value) is dict:
            value = self[name] = AttributeDict(value)
        elif isinstance(value, list) and value and type(value[0]) is dict:
            value[:] = [AttributeDict(item) if type(item) is dict else item for item in value]
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """Return a copy as plain dicts and lists."""
        copied: dict[str, Any] = json.loads(json.dumps(self))
        return copied


@frozen
class Retries:
    """How often a request is retried, and after how long."""

    most: int = 5
    delay: float = 0.5  # seconds before the first retry; doubled for each further one
    longest: float = 60.0  # seconds of one wait at most, even if the server asks for more with ``Retry-After``

    def wait(self, attempt: int, error: Exception) -> float:
        """Return the seconds to wait after an attempt, counted from 0, that ended with an error."""
        headers = getattr(getattr(error, "response", None), "headers", None) or {}
        value = headers.get("retry-after") or ""
        after = 0.0
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            after = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        with contextlib.suppress(ValueError):
            after = float(value)
        # a random part is subtracted, so that requests that failed together are not repeated together
        backoff: float = self.delay * 2 ** min(attempt, 32) * random.uniform(0.5, 1.0)  # noqa: S311  (no secret)
        return min(max(backoff, after), self.longest)


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
    """Ask a model; retry where that may help. The ``id`` of the response is ``OVERLONG`` if the prompt is too long for it."""
    retries = retries or Retries()
    args = {name: value for name, value in (sampling_args or {}).items() if value is not None}
    if tools:
        args["tools"] = tools
    is_openai = _is_openai_client(client, "AsyncOpenAI")
    if is_openai and (names := _OF_SERVERS.intersection(args)):
        args["extra_body"] = {name: args.pop(name) for name in sorted(names)} | (args.get("extra_body") or {})
    if getattr(client, "max_retries", 0) and is_openai:
        client = client.with_options(max_retries=0)  # else the client would retry each of our attempts itself
    attempt = 0
    while True:
        try:
            return await _send(client, model, prompt, message_type, args)
        except Exception as error:
            # NOTE: the protocol has no sign of a prompt that is too long except a code that few servers send; else only the message tells
            is_refused = _status(error) == 400  # noqa: PLR2004  (as servers refuse a prompt)
            message = f"{getattr(error, 'code', '')} {error}".lower() if is_refused else ""
            if any(phrase in message for phrase in _TOO_LONG_PHRASES):
                empty = (
                    {"text": ""} if message_type == "completion" else {"message": {"role": "assistant", "content": ""}}
                )
                choices = [{"index": 0, "finish_reason": "length", **empty}]
                return _as_response({"id": OVERLONG, "created": 0, "model": "", "choices": choices}, message_type)
            if attempt >= retries.most or not _is_transient(error):
                raise
            seconds = retries.wait(attempt, error)
        attempt += 1
        await asyncio.sleep(seconds)


async def _send(client: Any, model: str, prompt: Any, message_type: str, args: Mapping[str, Any]) -> Any:
    if message_type == "completion":
        response = await client.completions.create(model=model, prompt=prompt, **args)
    else:
        response = await client.chat.completions.create(model=model, messages=prompt, **args)
    if args.get("stream"):
        response = await gather(response, message_type)
    choices = getattr(response, "choices", None)
    first = choices[0] if isinstance(choices, list) and choices else None
    if message_type == "completion":
        is_completion = isinstance(getattr(first, "text", None), str)
    else:
        message = getattr(first, "message", None)
        is_message = hasattr(message, "role") or hasattr(message, "content")
        is_completion = is_message and isinstance(getattr(message, "content", None), str | None)
    if not is_completion:
        body = response if isinstance(response, str) else getattr(response, "error", None) or response
        raise NotACompletion(f"the answer holds no completion: {quoted(str(body)[:_EXCERPT])}")
    return response


def _as_response(fields: Mapping[str, Any], message_type: str) -> Any:
    """Return the body of a response as an object of the openai package, or as ``AttributeDict`` if that package is not installed."""
    is_text = message_type == "completion"
    fields = {**fields, "object": "text_completion" if is_text else "chat.completion"}
    try:
        types = importlib.import_module("openai.types" if is_text else "openai.types.chat")
    except ImportError:
        return AttributeDict(fields)
    return (types.Completion if is_text else types.ChatCompletion).construct(**fields)


async def gather(stream: AsyncIterator[Any], message_type: str) -> Any:
    """Merge the chunks of a stream into one response and close the stream in any case; ``NotACompletion`` if it ends early."""
    merged: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    try:
        async for chunk in stream:
            piece = chunk.model_dump(exclude_unset=True, warnings=False)
            parts = piece.pop("choices", None) or ()
            try:
                for part in parts:
                    delta, index = part.pop("delta", None), int(part.get("index") or 0)
                    choice = choices.setdefault(index, {})
                    _merge(choice, part)
                    if delta is not None:
                        _merge(choice.setdefault("message", {"role": "assistant", "content": None}), delta)
            except (AttributeError, KeyError, TypeError, ValueError):  # a server may send anything
                raise NotACompletion(f"a piece of the stream is no piece of an answer: {quoted(str(parts))}") from None
            merged.update({name: value for name, value in piece.items() if value is not None})
    finally:
        close = getattr(stream, "close", None) or getattr(stream, "aclose", None)
        if close is not None:
            # the connection may be gone, and the error that ended the stream matters more
            with contextlib.suppress(Exception):
                await close()
    if not choices or not all(choice.get("finish_reason") for choice in choices.values()):
        detail = f": {quoted(str(merged['error']))}" if merged.get("error") else ""
        raise NotACompletion(f"the stream ended before the answer did{detail}")
    for choice in choices.values():
        calls = choice.get("message", {}).get("tool_calls") or ()
        if not (isinstance(calls, list | tuple) and all(isinstance(call, dict) for call in calls)):
            raise NotACompletion(f"the tool calls of the stream are none: {quoted(str(calls))}")
        for call in calls:
            call.pop("index", None)  # a field of chunks, not of calls
    return _as_response(merged | {"choices": [choices[index] for index in sorted(choices)]}, message_type)


def _merge(target: dict[str, Any], piece: Mapping[str, Any]) -> None:
    for name, value in piece.items():
        before = target.get(name)
        if before is None or name in _REPLACED_FIELDS:
            if value is not None or name not in target:
                target[name] = _extend([], value) if isinstance(value, list) else value
        elif isinstance(value, str):
            if not (name == "name" and value == before):  # some servers repeat a function's name in every chunk
                target[name] = before + value
        elif isinstance(value, Mapping):
            _merge(before, value)
        elif isinstance(value, list):
            _extend(before, value)
        elif value is not None:
            target[name] = value


def _extend(items: list[Any], pieces: list[Any]) -> list[Any]:
    for piece in pieces:
        # chunks with an index are of a tool call, others are log-probabilities
        index = piece.get("index") if isinstance(piece, Mapping) else None
        same = next((item for item in items if item.get("index") == index), None) if index is not None else None
        if same is None:
            items.append(piece)
        else:
            _merge(same, piece)
    return items


def _is_openai_client(client: Any, name: str) -> bool:
    openai: Any = sys.modules.get("openai")  # imported, if the client is one of its own
    return openai is not None and isinstance(client, getattr(openai, name))


def _status(error: BaseException) -> int | None:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def _is_transient(error: Exception) -> bool:
    status = _status(error)
    if status is None:
        by_package = (("openai", "APIError"), ("httpx", "RequestError"), ("httpx2", "RequestError"))
        types = [getattr(sys.modules.get(package), name, None) for package, name in by_package]
        imported = [kind for kind in types if isinstance(kind, type)]
        own = (NotACompletion, ConnectionError, TimeoutError, json.JSONDecodeError, UnicodeDecodeError)
        return isinstance(error, (*own, *imported))
    # below 400: the server answered, but the body could not be read
    return (status < 400 or status in _RETRIED_STATUSES or status >= 500) and not _is_quota_error(error)  # noqa: PLR2004  (the classes of HTTP)


def _is_quota_error(error: BaseException) -> bool:
    # a 429 that waiting does not help
    return getattr(error, "code", None) == "insufficient_quota"


def is_permanent(error: BaseException) -> bool:
    """Return whether a request was refused for good."""
    return isinstance(error, Exception) and _status(error) is not None and not _is_transient(error)


def is_access_denied(error: BaseException) -> bool:
    """Return whether the key, the address or the model name is refused, whatever the prompt."""
    return _status(error) in _ACCESS_STATUSES or _is_quota_error(error)


@contextlib.asynccontextmanager
async def open_client(client: Any, *, own_loop: bool = False) -> AsyncIterator[Any]:
    """Yield the caller's client, any object or None, as rollouts use it: asynchronous, without retries of its own.

    With ``own_loop``, the event loop differs from the one in which the client may hold connections.
    """
    created: Any = None
    if _is_openai_client(client, "OpenAI"):
        openai = sys.modules["openai"]
        if type(client) is not openai.OpenAI:
            name = type(client).__name__
            raise UsageError(f"{name} is synchronous; rollouts need an asynchronous client.", f"Pass an Async{name}.")
        options = {
            name: getattr(client, name) for name in ("api_key", "organization", "project", "base_url", "timeout")
        }
        options |= {f"default_{name}": getattr(client, f"_custom_{name}", None) for name in ("headers", "query")}
        created = client = openai.AsyncOpenAI(**options, max_retries=0)
    elif _is_openai_client(client, "AsyncOpenAI"):
        if own_loop and type(client._client).__name__ == "AsyncHttpxClientWrapper":  # noqa: SLF001  (no public API tells the default http client from a custom one)
            http = sys.modules["openai"].DefaultAsyncHttpxClient(base_url=client.base_url, timeout=client.timeout)
            created = client = client.copy(http_client=http, max_retries=0)
        else:
            client = client.with_options(max_retries=0)
    try:
        yield client
    finally:
        if created is not None:
            await created.close()


def check_arguments(client: Any, message_type: str, sampling_args: Mapping[str, Any]) -> None:
    """Raise a UsageError if there is no client, or it does not accept a sampling argument."""
    if client is None:
        hint = f"Pass client=openai.AsyncOpenAI(base_url=…); install it with: {install('generate')}."
        raise UsageError("There are rollouts to generate, but no client.", hint)
    try:
        endpoint = client.completions if message_type == "completion" else client.chat.completions
    except AttributeError as error:
        raise UsageError(f"{type(client).__name__} is not a client: {error}.", "Pass an openai.AsyncOpenAI.") from None
    if reserved := {"model", "prompt", "messages"}.intersection(sampling_args):
        raise UsageError(f"sampling_args: `{min(reserved)}` is not a sampling argument; the run sets it.")
    try:
        parameters = inspect.signature(endpoint.create).parameters
    except (TypeError, ValueError):  # the signature of a custom client may not be readable
        return
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    known = {*parameters, *(_OF_SERVERS if _is_openai_client(client, "AsyncOpenAI") else ())}
    if name := next((name for name in sampling_args if name not in known), None):
        hint = f'Pass arguments that only the server knows as {{"extra_body": {{"{name}": …}}}}.'
        guess = did_you_mean(name, sorted(known), cutoff=0.85)
        raise UsageError(f"sampling_args: the client does not accept `{name}`.", f"{guess} {hint}".strip())


def address(client: Any) -> str:
    """Return the base URL of a client, without user, password and query."""
    parts = urlsplit(str(getattr(client, "base_url", "") or ""))
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
