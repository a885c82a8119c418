"""What code a result was made by: the hash of a function's or a class's source."""

import hashlib
import inspect
import re
from functools import partial
from types import CodeType
from typing import Any

from assay.errors import RAISED

__all__ = ["described"]

_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def described(thing: Any) -> dict[str, Any]:
    """Where a function or a class comes from, for the provenance.

    Args:
        thing: A function, a class, or any callable; of a ``functools.partial`` the function it calls.

    Returns:
        ``module``, ``qualname``, and ``sha256`` of its source text, with the arguments where a partial gives some; of its
        bytecode, and then ``hash_of`` says so, where the source cannot be had (a prompt, ``exec``); null where neither can.
    """
    given = ""
    while isinstance(thing, partial):
        given += _stable((thing.args, thing.keywords))
        thing = thing.func
    owner = thing if hasattr(thing, "__qualname__") else type(thing)
    place = {"module": str(getattr(owner, "__module__", "")), "qualname": owner.__qualname__}
    try:
        return place | {"sha256": _sha256(inspect.getsource(owner) + given), "hash_of": "source"}
    except (OSError, TypeError):
        code = getattr(thing, "__code__", None)
    if code is None:
        return place | {"sha256": None, "hash_of": None}
    return place | {"sha256": _sha256(_stable(code) + given), "hash_of": "bytecode"}


def _stable(value: Any) -> str:
    """A value in words that the next run says again: sets in order, code without its place, objects without their address."""
    if isinstance(value, CodeType):
        return f"code({_stable((value.co_code, value.co_consts, value.co_names))})"
    if isinstance(value, tuple | list | set | frozenset):
        said = [_stable(one) for one in value]
        return f"{type(value).__name__}({', '.join(said if isinstance(value, tuple | list) else sorted(said))})"
    if isinstance(value, dict):
        return f"dict({', '.join(sorted(f'{_stable(key)}: {_stable(one)}' for key, one in value.items()))})"
    if callable(value):
        return _stable(described(value))
    try:
        return _ADDRESS.sub("", repr(value))
    except RAISED:  # its own words may raise
        return type(value).__qualname__


def _sha256(said: str) -> str:
    return hashlib.sha256(said.encode("utf-8", "backslashreplace")).hexdigest()
