"""Hide secrets in messages: keys of object stores, signatures of URLs."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote, quote_plus, unquote

_HIDDEN = "***"
_SHORTEST = 4
"""Fewest characters of a secret; hiding shorter values would hide every `1` in a message."""

# the patterns are compiled when a text has a URL or a run has storage options: few do
_PLAIN = r"(?i)(?:true|false|[\d.]+|[\d.]+m?s)\Z"
"""Option values that are not secrets."""

_SCHEME = r"\b[a-z][a-z0-9+.-]*"
_IN_SCHEME = r"(?i)[a-z0-9+.-]"
_MARK = "://"
_AFTER_SCHEME = r"://(?:(?P<user>[^\s/?#'\"]*)@)?(?P<path>[^\s?#'\"]*)(?P<query>[?#][^\s'\"]*)?"
_URL = rf"(?i)(?P<scheme>{_SCHEME}){_AFTER_SCHEME}"
"""A URL; in a long text, use ``_urls``, because every part of a word with dots may begin one."""

_VARIABLES = r"(?i)(?:AWS|GOOGLE|AZURE|HF|HUGGING).*(?:KEY|SECRET|TOKEN|PASSWORD|SAS)"
"""Variables of the environment whose values are secrets."""
_OPTION = "--storage-option"


def redacted(text: str, secrets: Mapping[str, str] | None = None) -> str:
    """Return a text without the given secrets and without the user and the query of every URL."""
    for secret in sorted(secrets or {}, key=len, reverse=True):
        text = text.replace(secret, (secrets or {})[secret])
    parts, end = [], 0
    for start, scheme, rest in _urls(text):
        parts += [text[end:start], _redacted_url(scheme, *rest.group("user", "path", "query"))]
        end = rest.end()
    return "".join([*parts, text[end:]])


def _urls(text: str) -> Iterator[tuple[int, str, re.Match[str]]]:
    end = 0
    at = text.find(_MARK)
    while at >= 0:
        first = at
        while first > end and re.compile(_IN_SCHEME).match(text, first - 1):
            first -= 1
        scheme = re.compile(_SCHEME, re.IGNORECASE).search(text, first, at)
        rest = re.compile(_AFTER_SCHEME).match(text, at)
        if scheme is not None and rest is not None:
            yield scheme.start(), scheme.group(), rest
            end = rest.end()
        at = text.find(_MARK, max(end, at + 1))


def _redacted_url(scheme: str, user: str | None, path: str, query: str | None) -> str:
    container = scheme.lower() in ("abfs", "abfss") and ":" not in (user or "")  # container@account is not a secret
    shown = "" if user is None else f"{user if container else _HIDDEN}@"
    query = query or ""
    if query and (scheme.lower() in ("http", "https") or "=" in query):  # else ``?`` is part of a glob
        query = query[0] + _HIDDEN
    return f"{scheme}://{shown}{path}{query}"


def secrets_of(urls: Iterable[str], options: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the secrets of URLs, storage options and the environment, with their replacements."""
    words = [value for name, value in os.environ.items() if re.match(_VARIABLES, name)]
    words += map(str, (options or {}).values())
    for url in urls:
        match = re.match(_URL, url)
        if match and _redacted_url(*match.group("scheme", "user", "path", "query")) != url:
            user, query = match.group("user") or "", (match.group("query") or "")[1:]
            parts = [part.partition("=")[2] or part for part in query.split("&")]
            words += [user, *user.split(":", 1), query, *parts]
    hidden = {word for word in words if len(word) >= _SHORTEST and not re.match(_PLAIN, word)}
    return {form: _HIDDEN for word in hidden for form in (word, quote(word, safe=""), quote_plus(word), unquote(word))}


def redacted_command(arguments: Iterable[str]) -> list[str]:
    """Return a command line without the values of storage options and the secrets of URLs."""
    shown: list[str] = []
    for argument in arguments:
        option, equals, value = argument.partition("=")
        if shown and shown[-1] == _OPTION:
            shown.append(f"{option}={_HIDDEN}" if equals else _HIDDEN)
        elif option == _OPTION and equals:
            shown.append(f"{option}={value.partition('=')[0]}={_HIDDEN}")
        else:
            shown.append(redacted(argument))
    return shown
