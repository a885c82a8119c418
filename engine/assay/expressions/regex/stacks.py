"""Run recursive functions when the caller has used up most of the stack."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Value = TypeVar("Value")


def on_any_stack(function: Callable[[], Value]) -> Value:
    """Call a recursive function; if the stack overflows, call it again on a new one."""
    try:
        return function()
    except RecursionError:
        pass
    with ThreadPoolExecutor(1, "assay-stack") as thread:
        return thread.submit(function).result()
