"""The stack of a thread, which a caller may have used up."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["on_any_stack"]

Value = TypeVar("Value")


def on_any_stack(function: Callable[[], Value]) -> Value:
    """Call a function that is recursive: where the stack does not suffice, once more on an empty one.

    What comes of it thus does not depend on how deep the caller is.

    Raises:
        RecursionError: No stack suffices.
    """
    try:
        return function()
    except RecursionError:
        pass
    with ThreadPoolExecutor(1, "assay-stack") as thread:
        return thread.submit(function).result()
