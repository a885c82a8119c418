"""Scores texts by functions that may take long: patterns of users, and long texts."""

import json
import sys
from collections.abc import Callable
from typing import Any

_DEEPEST = 20_000


def prepare(context: str, _cell: Any) -> Callable[[tuple[str, bytes, str, str]], tuple[Any, ...]]:
    """Return what scores a text by a function, whose module and name are the context."""
    import resource

    from assay.checks.graders.calling import call

    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    stack = 256 << 20
    resource.setrlimit(resource.RLIMIT_STACK, (stack if hard == resource.RLIM_INFINITY else min(stack, hard), hard))
    sys.setrecursionlimit(_DEEPEST)

    def score(item: tuple[str, bytes, str, str]) -> tuple[Any, ...]:
        how, data, golds, options = item
        text = data.decode("utf-8", "surrogatepass")
        try:
            return ("scored", *call(context, how, text, json.loads(golds), json.loads(options)))
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001  (what it raises is the result)
            return (f"{type(error).__name__}: {error}"[:300],)

    return score
