"""Call the function of a grader on a text and its golds: in this process, or in one with limits."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any


@cache
def _function_of(place: str) -> Callable[..., tuple[float, str]]:
    module, _, name = place.partition(":")
    function: Callable[..., tuple[float, str]] = getattr(importlib.import_module(f"{__package__}.tools.{module}"), name)
    return function


def call(place: str, how: str, text: str, golds: Sequence[Any], options: Mapping[str, Any]) -> tuple[float, str, int]:
    """Score a text: the definition.

    Args:
        place: Module and name of the function.
        how: How it takes golds: ``each``, of which the best counts, the first of equals; together; or ``none``.
        text: The text.
        golds: Its golds.
        options: All options.

    Returns:
        The score, what the function read of the text, and the number of the gold that gave the score; -1 for all.
    """
    function = _function_of(place)
    if how == "none":
        return (*function(text, options), -1)
    if how in ("all", "spans"):
        return (*function(text, golds, options), -1)
    results = [(*function(text, gold, options), at) for at, gold in enumerate(golds)]
    return max(results, key=lambda result: result[0])
