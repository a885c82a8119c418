r"""Python values as JSON text and back, exactly.

A value that JSON says exactly is written as it is. What else is in it becomes an object with two fields, ``$assay`` and
``value``, which ``read`` turns back:

    {"$assay": "tuple", "value": [1, 2]}                  also set, frozenset
    {"$assay": "dict", "value": [[key, value], …]}        with keys that are no strings, or one that is ``$assay``
    {"$assay": "int", "value": "0x…"}                     with more digits than an interpreter reads
    {"$assay": "text", "value": ["\ud83d", "\ude00"]}       two lone surrogates, which JSON would take for one character
    {"$assay": "datetime", "value": "2026-01-31T12:00:00"}    also bytes, complex, date, time, timedelta, decimal, uuid, path

Pydantic models are written as their ``model_dump(mode="json")`` and come back as dicts. Of what is none of this, an array
becomes a list, a dataclass a dict, the rest its text, and ``Losses`` knows where.
"""

import base64
import dataclasses
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from assay.errors import RAISED, printable, said_by

__all__ = ["Losses", "read", "write"]

TAG = "$assay"

_QUOTED_TAG = json.dumps(TAG)
_PAIR = re.compile("(?<=[\ud800-\udbff])(?=[\udc00-\udfff])")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")

_DIGITS = 4300
"""Longer integers are tagged: without being told to, an interpreter reads no longer ones."""

_BITS = 14_000
"""All integers up to this have fewer digits."""

_LONG = re.compile(rf"[0-9]{{{_DIGITS}}}")

LONGEST = 200
"""Characters of a place that are shown."""

_DEPTH = 100
"""Values with tags in them are kept to this depth; each level can cost four of JSON's, and a stack is 1,000 calls."""


class Losses:
    """The places of values that will not come back as they were."""

    SHOWN = 5

    def __init__(self) -> None:
        self.places: list[str] = []

    def add(self, place: str, value: Any) -> None:
        """Note a value."""
        self.places.append(printable(f"{place[:LONGEST]} ({type(value).__name__})"))

    def __str__(self) -> str:
        """The places in words, ``""`` when there is none."""
        if not self.places:
            return ""
        shown = "; ".join(self.places[: self.SHOWN])
        more = f"; and {len(self.places) - self.SHOWN:,} more" if len(self.places) > self.SHOWN else ""
        one = len(self.places) == 1
        many = "1 value is" if one else f"{len(self.places):,} values are"
        return f"{many} saved as text, a list or a dict, and {'comes' if one else 'come'} back so: {shown}{more}."


def write(value: Any, place: str, losses: Losses) -> str:
    """A value as JSON text. Never raises.

    Args:
        value: Anything.
        place: Where it stands, to tell where a loss is.
        losses: Takes note of what ``read`` will not give back.
    """
    plain = _plain(value)
    if plain is not None:
        return plain
    packing = _Packing(losses)
    try:
        return _dumps(packing.pack(value, place))
    except RAISED:  # a stack that was nearly full, an object that raises at every touch
        losses.add(place, value)
        return _dumps(_text(value))


def read(text: str) -> Any:
    """The value of a text that ``write`` gave, or of any other JSON.

    Raises:
        ValueError: It is not JSON, or a tagged value is none of its kind.
        RecursionError: It is nested too deep for the stack.
    """
    return json.loads(text, object_hook=_untagged if _QUOTED_TAG in text else None)


def _plain(value: Any) -> str | None:
    """JSON text that gives the value back without tags, None when there is none.

    It is quicker to ask the encoder and compare than to look at every value.
    """
    try:
        text = _dumps(value)
        if _QUOTED_TAG in text or (not 0 < sys.get_int_max_str_digits() <= _DIGITS and _LONG.search(text)):
            return None
        return text if json.loads(text) == value else None
    except RAISED:
        return None


def _dumps(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # lone surrogates
        return json.dumps(value)
    return text


def _tagged(kind: str, value: Any) -> dict[str, Any]:
    return {TAG: kind, "value": value}


def _untagged(found: dict[str, Any]) -> Any:
    back = _BACK.get(found[TAG]) if found.keys() == {TAG, "value"} and isinstance(found[TAG], str) else None
    if back is None:
        return found
    try:
        return back(found["value"])
    except (TypeError, AttributeError, ArithmeticError) as wrong:
        raise ValueError(f"{found['value']!r} is no {found[TAG]}") from wrong


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
"""Types with their tag, to JSON and back; a datetime is a date, too, so it stands before it."""

_BACK: dict[str, Callable[[Any], Any]] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "dict": dict,
    "int": lambda digits: int(digits, 16),
    "text": "".join,
    **{tag: back for _, tag, _, back in _SCALARS},
}


class _Packing:
    """One value on its way to JSON."""

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self._around: set[int] = set()  # the values that the one at hand is in

    def pack(self, value: Any, place: str) -> Any:
        """The value with its tags."""
        if value is None or isinstance(value, bool | float):
            return value
        if isinstance(value, str):
            return _tagged("text", _PAIR.split(value)) if _PAIR.search(value) else value
        if isinstance(value, int):
            return _tagged("int", hex(value)) if value.bit_length() > _BITS else value
        if id(value) in self._around or len(self._around) > _DEPTH:
            return self._lost(value, place)
        self._around.add(id(value))
        try:
            return self._within(value, place)
        except RAISED:  # whatever the methods of an object raise
            return self._lost(value, place)
        finally:
            self._around.discard(id(value))

    def _within(self, value: Any, place: str) -> Any:
        if isinstance(value, Mapping):
            return self._mapping(value, place)
        if isinstance(value, list):
            return self._list(value, place)
        if isinstance(value, tuple):
            return _tagged("tuple", self._list(value, place))
        if isinstance(value, set | frozenset):
            # in an order of their own, for that of a set changes from process to process
            members = sorted((self._hashable(one, f"{place}{{…}}") for one in value), key=_dumps)
            return _tagged("set" if isinstance(value, set) else "frozenset", members)
        if isinstance(value, BaseModel):
            return self.pack(value.model_dump(mode="json", warnings=False), place)
        return self._object(value, place)

    def _list(self, values: Iterable[Any], place: str) -> list[Any]:
        return [self.pack(one, f"{place}[{at}]") for at, one in enumerate(values)]

    def _mapping(self, value: Mapping[Any, Any], place: str) -> dict[str, Any]:
        fields = {key: self.pack(inner, f"{place}.{key}") for key, inner in value.items()}
        if TAG not in fields and all(isinstance(key, str) and not _PAIR.search(key) for key in fields):
            return fields
        return _tagged("dict", [[self._hashable(key, f"{place}.{key}"), inner] for key, inner in fields.items()])

    def _hashable(self, value: Any, place: str) -> Any:
        """A key or a member, which must be one when it comes back."""
        packed = self.pack(value, place)
        if isinstance(packed, dict | list):
            try:
                hash(read(_dumps(packed)))
            except TypeError:
                return self._lost(value, place)
        return packed

    def _object(self, value: Any, place: str) -> Any:
        for kind, tag, there, back in _SCALARS:
            if isinstance(value, kind):
                said = there(value)
                again = back(said)
                if repr(again) == repr(value) or again == value:  # a subclass may know more
                    return _tagged(tag, said)
        if hasattr(value, "tolist"):  # of numpy and its kin; a number on its own is equal to the number
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
    """An object in words, the same ones in every process."""
    if isinstance(value, BaseException):
        return said_by(value)
    try:
        text = _ADDRESS.sub("", repr(value))
    except RAISED:
        text = f"<{type(value).__name__}>"
    return text.encode("utf-8", "backslashreplace").decode()
