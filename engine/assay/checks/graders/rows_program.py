"""Scores texts by functions that may take long: patterns of users, and long texts."""

import json
import sys
from collections.abc import Callable
from typing import Any

_DEEPEST = 20_000


def prepare(context: str, _cell: Any) -> Callable[[tuple[str, bytes, str, str]], tuple[Any, ...]]:
    """Return what scores a text by a function, whose module and name are the context."""
    import importlib
    import resource

    module, _, name = context.partition(":")
    function = getattr(importlib.import_module(f"assay.checks.graders.tools.{module}"), name)
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    stack = 256 << 20
    resource.setrlimit(resource.RLIMIT_STACK, (stack if hard == resource.RLIM_INFINITY else min(stack, hard), hard))
    sys.setrecursionlimit(_DEEPEST)

    def score(item: tuple[str, bytes, str, str]) -> tuple[Any, ...]:
        how, data, golds, options = (
            item[0],
            item[1].decode("utf-8", "surrogatepass"),
            json.loads(item[2]),
            json.loads(item[3]),
        )
        try:
            if how == "none":
                return ("scored", *function(data, options), -1)
            if how in ("all", "spans"):
                return ("scored", *function(data, golds, options), -1)
            results = [(*function(data, gold, options), at) for at, gold in enumerate(golds)]
            return ("scored", *max(results, key=lambda result: result[0]))
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001  (what it raises is the result)
            return (f"{type(error).__name__}: {error}"[:300],)

    return score
