r"""Convert Python values to JSON text and back, exactly.

Values that JSON represents exactly are written as they are. Others become an object with two fields, ``$assay`` and ``value``, which
``read`` converts back:

    {"$assay": "tuple", "value": [1, 2]}                  also set, frozenset
    {"$assay": "dict", "value": [[key, value], …]}        with keys that are not strings, or a key ``$assay``
    {"$assay": "int", "value": "0x…"}                     with more digits than an interpreter reads
    {"$assay": "text", "value": ["\ud83d", "\ude00"]}       two lone surrogates, which JSON would read as one character
    {"$assay": "datetime", "value": "2026-01-31T12:00:00"}    also bytes, complex, date, time, timedelta, decimal, uuid, path

Pydantic models are written as ``model_dump(mode="json")`` and come back as dicts. Of other types, arrays become lists, dataclasses
dicts, and the rest text; ``Losses`` records where.
"""

import base64
import dataclasses
import json
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from assay.errors import RAISED, counted, describe_error, printable
from assay.expressions.json import loads

TAG = "$assay"

_QUOTED_TAG = json.dumps(TAG)
_PAIR = re.compile("(?<=[\ud800-\udbff])(?=[\udc00-\udfff])")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")

_DIGITS = 4300
"""Longer integers are tagged, because an interpreter with default settings does not parse them."""

_BITS = 14_000
"""Integers with up to this many bits have fewer digits."""

_LONG = re.compile(rf"[0-9]{{{_DIGITS}}}")

LONGEST = 200
"""Maximum length of a path in messages, in characters."""

_DEPTH = 100
"""Maximum nesting of values with tags: each level can cost four levels of JSON, and a stack has 1,000 calls."""
_SCALARS: tuple[tuple[Any, str, Callable[[Any], Any], Callable[[Any], Any]], ...] = (
    (bytes | bytearray, "bytes", lambda value: base64.b64encode(value).decode(), base64.b64decode),
    (complex, "complex", repr, complex),
    (datetime, "datetime", lambda value: value.isoformat(), datetime.fromisoformat),
    (date, "date", lambda value: value.isoformat(), date.fromisoformat),
    (time, "time", lambda value: value.isoformat(), time.fromisoformat),
    (
        timedelta,
        "timedelta",
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda parts: timedelta(*parts),
    ),
    (Decimal, "decimal", str, Decimal),
    (UUID, "uuid", str, UUID),
    (Path, "path", str, Path),
)
"""Types with their tag, encoder and decoder; datetime before date, because a datetime is a date, too."""
_DECODERS: dict[str, Callable[[Any], Any]] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "dict": dict,
    "int": lambda digits: int(digits, 16),
    "text": "".join,
    **{tag: decode for _, tag, _, decode in _SCALARS},
}


class Losses:
    """The paths of values that cannot be restored exactly."""

    SHOWN = 5

    def __init__(self) -> None:
        self.places: list[str] = []

    def add(self, place: str, value: Any) -> None:
        """Record a value."""
        self.places.append(printable(f"{place[:LONGEST]} ({type(value).__name__})"))

    def __str__(self) -> str:
        """Return the paths as a sentence, ``""`` if there are none."""
        if not self.places:
            return ""
        shown = "; ".join(self.places[: self.SHOWN])
        more = f"; and {len(self.places) - self.SHOWN:,} more" if len(self.places) > self.SHOWN else ""
        single = len(self.places) == 1
        verbs = ("is", "comes") if single else ("are", "come")
        subject = f"{counted(len(self.places), 'value')} {verbs[0]} saved as text, a list or a dict"
        return f"{subject}, and {verbs[1]} back as such: {shown}{more}."


def write(value: Any, place: str, losses: Losses) -> str:
    """Convert a value to JSON text; never raise."""
    with suppress(*RAISED):  # it is faster to encode, decode and compare than to inspect every value
        text = _dumps(value)
        is_short = 0 < sys.get_int_max_str_digits() <= _DIGITS or not _LONG.search(text)
        if _QUOTED_TAG not in text and is_short and loads(text) == value:
            return text
    try:
        return _dumps(_Packing(losses).pack(value, place))
    except RAISED:  # a stack that was nearly full, or an object whose methods raise
        losses.add(place, value)
        return _dumps(_text(value))


def read(text: str) -> Any:
    """Decode a text from ``write``, or any other JSON."""
    return json.loads(text, object_hook=_untagged if _QUOTED_TAG in text else None)


def _untagged(fields: dict[str, Any]) -> Any:
    decode = _DECODERS.get(fields[TAG]) if fields.keys() == {TAG, "value"} and isinstance(fields[TAG], str) else None
    try:
        return fields if decode is None else decode(fields["value"])
    except (TypeError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"{fields['value']!r} is not a {fields[TAG]}") from error


_encode = json.JSONEncoder(ensure_ascii=False).encode


def _dumps(value: Any) -> str:
    text = _encode(value)
    try:
        text.encode()
    except UnicodeEncodeError:  # lone surrogates
        return json.dumps(value)
    return text


def _tagged(kind: str, value: Any) -> dict[str, Any]:
    return {TAG: kind, "value": value}


class _Packing:
    """Converts one value to JSON with tags."""

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self._containers: set[int] = set()  # the containers of the current value

    def pack(self, value: Any, place: str) -> Any:
        """Return the value with tags."""
        if value is None or isinstance(value, bool | float):
            return value
        if isinstance(value, str):
            return _tagged("text", _PAIR.split(value)) if _PAIR.search(value) else value
        if isinstance(value, int):
            return _tagged("int", hex(value)) if value.bit_length() > _BITS else value
        if id(value) in self._containers or len(self._containers) > _DEPTH:
            return self._lost(value, place)
        self._containers.add(id(value))
        try:
            return self._mapping(value, place) if isinstance(value, Mapping) else self._within(value, place)
        except RAISED:  # the methods of an object may raise anything
            return self._lost(value, place)
        finally:
            self._containers.discard(id(value))

    def _within(self, value: Any, place: str) -> Any:
        if isinstance(value, list | tuple):
            items = [self.pack(item, f"{place}[{at}]") for at, item in enumerate(value)]
            return items if isinstance(value, list) else _tagged("tuple", items)
        if isinstance(value, set | frozenset):
            # sorted, because the order of a set changes from process to process
            members = sorted((self._hashable(item, f"{place}{{…}}") for item in value), key=_dumps)
            return _tagged("set" if isinstance(value, set) else "frozenset", members)
        if isinstance(value, BaseModel):
            return self.pack(value.model_dump(mode="json", warnings=False), place)
        return self._object(value, place)

    def _mapping(self, value: Mapping[Any, Any], place: str) -> dict[str, Any]:
        fields = {key: self.pack(inner, f"{place}.{key}") for key, inner in value.items()}
        if TAG not in fields and all(isinstance(key, str) and not _PAIR.search(key) for key in fields):
            return fields
        return _tagged("dict", [[self._hashable(key, f"{place}.{key}"), inner] for key, inner in fields.items()])

    def _hashable(self, value: Any, place: str) -> Any:
        packed = self.pack(value, place)
        if isinstance(packed, dict | list):
            try:
                hash(read(_dumps(packed)))
            except TypeError:
                return self._lost(value, place)
        return packed

    def _object(self, value: Any, place: str) -> Any:
        for kind, tag, encode, decode in _SCALARS:
            if isinstance(value, kind):
                encoded = encode(value)
                decoded = decode(encoded)
                if repr(decoded) == repr(value) or decoded == value:  # not a subclass with more state
                    return _tagged(tag, encoded)
        if hasattr(value, "tolist"):  # numpy and similar; for a scalar, tolist loses nothing
            plain = value.tolist()
            if isinstance(plain, list):
                self._losses.add(place, value)
            return self.pack(plain, place)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            self._losses.add(place, value)
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return self._mapping(fields, place)
        if isinstance(value, Enum):
            self._losses.add(place, value)
            return self.pack(value.value, place)
        return self._lost(value, place)

    def _lost(self, value: Any, place: str) -> str:
        self._losses.add(place, value)
        return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, BaseException):
        return describe_error(value)
    try:
        text = _ADDRESS.sub("", repr(value))
    except RAISED:
        text = f"<{type(value).__name__}>"
    return text.encode("utf-8", "backslashreplace").decode()
