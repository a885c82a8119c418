"""Small changes of a pattern, each of which a test should notice."""

import re
from collections.abc import Iterator

_FLAGS = re.compile(r"\(\?[aiLmsux]+\)")
_ANCHORS = frozenset({r"\A", r"\Z", r"\b"})


def changed_patterns(pattern: str) -> Iterator[str]:
    """Yield patterns that differ from a pattern in one place; some may not compile.

    Without an anchor, anchored at both ends, in either case, with any character for a full stop, with ``*`` for ``+`` and ``+`` for
    ``*``, without a ``?``. Flags at the front stay there, and what is in square brackets stays as it is.
    """
    match = _FLAGS.match(pattern)
    flags, body = (match.group(), pattern[match.end() :]) if match else ("", pattern)
    tokens = [*_tokens(body)]
    for at, token in enumerate(tokens):
        if token in _ANCHORS or token in ("^", "$"):
            yield flags + "".join([*tokens[:at], *tokens[at + 1 :]])
    yield f"{flags}\\A(?:{body})\\Z"
    if any(_has_letter(token) for token in tokens):
        names = flags[2:-1]
        without = f"(?{names.replace('i', '')})" if names != "i" else ""
        yield (without if "i" in names else f"(?i{names})") + body
    others = {r"\.": ".", "+": "*", "*": "+", "?": ""}
    for kind in (r"\.", "+", "*", "?"):
        for at, token in enumerate(tokens):
            if token == kind:
                yield flags + "".join([*tokens[:at], others[kind], *tokens[at + 1 :]])


def _tokens(pattern: str) -> Iterator[str]:
    """Yield escapes, sets, the beginnings of groups, and single characters."""
    at = 0
    while at < len(pattern):
        end = at + 1
        if pattern[at] == "\\":
            end = at + 2
        elif pattern[at] == "[":
            end = _end_of_set(pattern, at)
        elif pattern.startswith("(?", at):  # no question mark of its own
            name = re.match(r"\(\?(?:P?<\w+>|P=\w+\)|<?[=!]|[:>#|]|[\w-]*[:)])", pattern[at:])
            end = at + (name.end() if name else 2)
        elif pattern[at] == "{":
            repeat = re.match(r"\{[\d,]*\}", pattern[at:])
            end = at + (repeat.end() if repeat else 1)
        yield pattern[at:end]
        at = end


def _end_of_set(pattern: str, start: int) -> int:
    at = start + 1 + pattern.startswith("^", start + 1)
    at += pattern.startswith("]", at)
    while at < len(pattern) and pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at + 1


def _has_letter(token: str) -> bool:
    """Return whether a token matches letters as they are written; an escape matches what it stands for."""
    if token.startswith("["):
        token = re.sub(r"\\.", "", token)
    return not token.startswith(("\\", "(?")) and any(character.isalpha() for character in token)
