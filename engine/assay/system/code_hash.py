"""Identify the code behind a result: the hash of a function's or a class's source."""

import hashlib
import inspect
import re
from functools import partial
from types import CodeType
from typing import Any

from assay.errors import RAISED

_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def described(thing: Any) -> dict[str, Any]:
    """Describe where a function or a class comes from, for the provenance."""
    arguments = ""
    while isinstance(thing, partial):
        arguments += stable_text((thing.args, thing.keywords))
        thing = thing.func
    owner = thing if hasattr(thing, "__qualname__") else type(thing)
    place = {"module": str(getattr(owner, "__module__", "")), "qualname": owner.__qualname__}
    try:
        return place | {"sha256": _sha256(inspect.getsource(owner) + arguments), "hash_of": "source"}
    except (OSError, TypeError):
        code = getattr(thing, "__code__", None)
    if code is None:
        return place | {"sha256": None, "hash_of": None}
    return place | {"sha256": _sha256(stable_text(code) + arguments), "hash_of": "bytecode"}


def stable_text(value: Any) -> str:
    """Return a text that is the same in every run: sets are sorted, code has no line numbers, objects no addresses."""
    if isinstance(value, CodeType):
        return f"code({stable_text((value.co_code, value.co_consts, value.co_names))})"
    if isinstance(value, tuple | list | set | frozenset):
        items = [stable_text(item) for item in value]
        return f"{type(value).__name__}({', '.join(items if isinstance(value, tuple | list) else sorted(items))})"
    if isinstance(value, dict):
        return f"dict({', '.join(sorted(f'{stable_text(key)}: {stable_text(item)}' for key, item in value.items()))})"
    if callable(value):
        return stable_text(described(value))
    try:
        return _ADDRESS.sub("", repr(value))
    except RAISED:  # a user's __repr__ may raise anything
        return type(value).__qualname__


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
