"""Where the values of a JSON text stand, and where a text stops being JSON, by the rules of ``json.loads`` and our limits."""

import json
import re
from dataclasses import dataclass
from typing import ClassVar

from assay.expressions.json import MAX_DEPTH, MAX_DIGITS

_SPACE = re.compile(r"[ \t\n\r]*+")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')
_BEGUN_ESCAPE = re.compile(r"(?:\\(?:u[0-9a-fA-F]{0,3})?)?")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)((?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)")
_BEGUN_NUMBER = re.compile(r"-?(?:(?:0|[1-9][0-9]*+)(?:\.(?:[0-9]++(?:[eE][+-]?[0-9]*+)?)?|[eE][+-]?[0-9]*+)?)?")
_WORDS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")


class JsonStop(ValueError):  # noqa: N818  (a text may only be unfinished)
    """No JSON text goes on with the code point at ``at``; that is the length of a text which only ends too early."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


@dataclass(slots=True)
class PlacedScalar:
    """A string, a number, ``true``, ``false`` or ``null``: where it begins and ends, a string with its quotes."""

    start: int
    end: int


class PlacedObject(dict[str, "PlacedValue"]):
    """The values of an object by key, of equal keys the last."""

    closer: ClassVar = "}"
    start: int
    end: int

    def put(self, key: str, value: "PlacedValue") -> None:
        """Add a value."""
        self[key] = value


class PlacedArray(list["PlacedValue"]):
    """The values of an array."""

    closer: ClassVar = "]"
    start: int
    end: int

    def put(self, _: str, value: "PlacedValue") -> None:
        """Add a value."""
        self.append(value)


PlacedValue = PlacedScalar | PlacedObject | PlacedArray
_CONTAINERS: dict[str, type[PlacedObject | PlacedArray]] = {"{": PlacedObject, "[": PlacedArray}


def json_stop(text: str) -> int | None:
    """Return the first code point with which no JSON text goes on; None if the text is JSON, or only ends too early."""
    try:
        at = _blank(text, placed_json(text).end)
    except JsonStop as stop:
        at = stop.at
    return at if at < len(text) else None


def placed_json(text: str, at: int = 0) -> PlacedValue:
    """Return the JSON value that begins at a place, with the places of all values in it; ``JsonStop`` where there is none."""
    at = _blank(text, at)
    around: list[PlacedObject | PlacedArray] = []
    while True:
        key, at = _key(text, at) if around and around[-1].closer == "}" else ("", at)
        value, is_open = _begun(text, at)
        if around:
            around[-1].put(key, value)
        at = value.end
        if is_open and not isinstance(value, PlacedScalar):
            if len(around) == MAX_DEPTH:
                raise JsonStop(value.start)
            around.append(value)
            continue
        while around:
            at = _blank(text, at)
            if text[at : at + 1] == ",":
                at = _blank(text, at + 1)
                break
            if text[at : at + 1] != around[-1].closer:
                raise JsonStop(at)
            at += 1
            value = around.pop()
            value.end = at
        else:
            return value


def _begun(text: str, at: int) -> "tuple[PlacedValue, bool]":
    """Return the value that begins at a place, and whether there is more of it: then it ends where its first item begins."""
    container = _CONTAINERS.get(text[at : at + 1])
    if container is None:
        return PlacedScalar(at, _scalar_end(text, at)), False
    value = container()
    inside = _blank(text, at + 1)
    is_open = text[inside : inside + 1] != value.closer
    value.start, value.end = at, inside + (not is_open)
    return value, is_open


def _blank(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _key(text: str, at: int) -> tuple[str, int]:
    """Return a key, and where its value begins."""
    if text[at : at + 1] != '"':
        raise JsonStop(at)
    end = _string_end(text, at)
    colon = _blank(text, end)
    if text[colon : colon + 1] != ":":
        raise JsonStop(colon)
    return json.loads(text[at:end]), _blank(text, colon + 1)


def _string_end(text: str, at: int) -> int:
    match = _STRING.match(text, at)
    end = match.end() if match else at
    if text[end : end + 1] == '"':
        return end + 1
    begun = _BEGUN_ESCAPE.match(text, end)
    raise JsonStop(begun.end() if begun else end)


def _scalar_end(text: str, at: int) -> int:
    if text[at : at + 1] == '"':
        return _string_end(text, at)
    for word in _WORDS:
        if text.startswith(word, at):
            return at + len(word)
    number, begun = _NUMBER.match(text, at), _BEGUN_NUMBER.match(text, at)
    begins = [at + _common(text[at : at + len(word)], word) for word in _WORDS]
    viable = max(begun.end() if begun else at, *begins)
    if number is None or number.end() < viable:
        raise JsonStop(viable)
    if not number[1] and len(number[0].lstrip("-")) > MAX_DIGITS:
        raise JsonStop(number.end())
    return number.end()


def _common(text: str, word: str) -> int:
    """Return how many code points two texts have in common at their beginning."""
    pairs = enumerate(zip(text, word, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(text), len(word)))
