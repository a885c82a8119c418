"""What code a result was made by: the hash of a function's or a class's source."""

import hashlib
import inspect
from typing import Any

__all__ = ["described"]


def described(thing: Any) -> dict[str, Any]:
    """Where a function or a class comes from, for the provenance.

    Args:
        thing: A function, a class, or any callable.

    Returns:
        ``module``, ``qualname``, and ``sha256`` of its source text; of its bytecode, and then ``hash_of`` says so, where the
        source cannot be had (a prompt, ``exec``); null where neither can.
    """
    owner = thing if hasattr(thing, "__qualname__") else type(thing)
    place = {"module": str(getattr(owner, "__module__", "")), "qualname": owner.__qualname__}
    try:
        return place | {"sha256": _sha256(inspect.getsource(owner)), "hash_of": "source"}
    except (OSError, TypeError):
        code = getattr(thing, "__code__", None)
    if code is None:
        return place | {"sha256": None, "hash_of": None}
    return place | {"sha256": _sha256(repr((code.co_code, code.co_consts, code.co_names))), "hash_of": "bytecode"}


def _sha256(said: str) -> str:
    return hashlib.sha256(said.encode("utf-8", "backslashreplace")).hexdigest()
