"""JSON that a file of ours holds and anybody may have edited: parsed within limits, and checked against a model before it is read."""

import json
import math
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from assay.errors import SpecError, printable
from assay.system.documents import Place, check_depth, named

_LEAST, _MOST = -(2**63), 2**63 - 1

Whole = Annotated[int, Field(ge=_LEAST, le=_MOST)]
"""A whole number of 64 bits."""

Count = Annotated[int, Field(ge=0, le=_MOST)]
"""A number of things."""


class StoredObject(BaseModel):
    """An object of which other versions may write more: entries that a model does not name are kept as they are."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False, defer_build=True)  # most runs read none


class StoredError(ValueError):
    """A value is not what is written there; the message has its place."""


def parse_stored(text: str | bytes, model: type[StoredObject], *, free: bool = False) -> dict[str, Any]:
    """Return a stored object whose entries have the types that are written."""
    try:
        data = json.loads(text)
        check_depth(data, "JSON")
    except (ValueError, RecursionError, SpecError):
        raise StoredError("not JSON, or nested too deeply") from None
    conforms(data, model)
    for place, value in () if free else _leaves(data):
        problem = ""
        if isinstance(value, str) and not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
            problem = "a lone surrogate, which no text has"
        elif isinstance(value, float) and not math.isfinite(value):
            problem = "a number that is not finite"
        elif isinstance(value, int) and not _LEAST <= value <= _MOST:
            problem = "a number of more than 64 bits"
        if problem:
            raise StoredError(f"{_written(place)}: {problem}")
    return dict(data)


_validator = cache(TypeAdapter)  # takes milliseconds to make, which is longer than most files take to check


def conforms(data: Any, kind: Any) -> None:
    """Check that data has a type."""
    try:
        _validator(kind).validate_python(data, strict=True)
    except ValidationError as errors:
        error = errors.errors(include_url=False, include_context=False)[0]
        fact = "is missing" if error["type"] == "missing" else f"{error['msg']}, and is {named(error['input'])}"
        raise StoredError(f"{_written(error['loc'])}: {printable(fact[0].lower() + fact[1:])}") from None


def _leaves(data: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    if isinstance(data, dict):
        for key, value in data.items():
            yield place, key
            yield from _leaves(value, (*place, key))
    elif isinstance(data, list):
        for at, value in enumerate(data):
            yield from _leaves(value, (*place, at))
    else:
        yield place, data


def _written(place: Place) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return printable("".join(steps).removeprefix(".")) or "the whole"
