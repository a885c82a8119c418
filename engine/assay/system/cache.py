"""A cache bounded by bytes, for results of very different sizes."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, Protocol, TypeVar, cast

Value_co = TypeVar("Value_co", covariant=True)
_ENTRY = 200
"""Bytes of overhead per entry, in addition to its key and value."""


class Cached(Protocol[Value_co]):
    """A function with cached results."""

    def __call__(self, *key: Any) -> Value_co:
        """Return the cached or computed result."""
        ...

    def cache_bytes(self) -> int:
        """Return the estimated size of the cached results in bytes."""
        ...

    def cache_clear(self) -> None:
        """Drop all results."""
        ...


def cached_within(limit: int, size: Callable[..., int]) -> Callable[[Callable[..., Value_co]], Cached[Value_co]]:
    """Cache the results of a function up to a number of bytes; drop the least recently used first."""

    def decorate(function: Callable[..., Value_co]) -> Cached[Value_co]:
        entries: OrderedDict[Hashable, tuple[Value_co, int]] = OrderedDict()
        lock = threading.Lock()
        total = 0

        @wraps(function)
        def cached(*key: Any) -> Value_co:
            nonlocal total
            if (entry := entries.get(key)) is not None:
                try:  # noqa: SIM105  (half a microsecond, for each row of a file)
                    entries.move_to_end(key)
                except KeyError:  # another thread has just dropped it
                    pass
                return entry[0]
            value = function(*key)
            bytes_ = size(value, *key) + _ENTRY
            # where each result is new, threads that wait for each other here take twice the time; what is not kept is found again
            if lock.acquire(blocking=False):
                try:
                    if key not in entries and bytes_ <= limit:
                        entries[key] = value, bytes_
                        total += bytes_
                    while total > limit:
                        total -= entries.popitem(last=False)[1][1]
                finally:
                    lock.release()
            return value

        def clear() -> None:
            nonlocal total
            with lock:
                entries.clear()
                total = 0

        cached.cache_bytes = lambda: total  # type: ignore[attr-defined]
        cached.cache_clear = clear  # type: ignore[attr-defined]
        return cast("Cached[Value_co]", cached)

    return decorate
