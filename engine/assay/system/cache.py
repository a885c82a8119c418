"""A cache that is bounded by bytes: what is kept may be small for one key and large for the next."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, Protocol, TypeVar, cast

__all__ = ["Cached", "cached_within"]

Value_co = TypeVar("Value_co", covariant=True)
_ENTRY = 200
"""Bytes that an entry takes besides its key and its value."""


class Cached(Protocol[Value_co]):
    """A function whose results are kept."""

    def __call__(self, *key: Any) -> Value_co:
        """The result, kept or computed."""
        ...

    def cache_bytes(self) -> int:
        """Bytes that are kept now, as estimated."""
        ...

    def cache_clear(self) -> None:
        """Forget all results."""
        ...


def cached_within(limit: int, size: Callable[..., int]) -> Callable[[Callable[..., Value_co]], Cached[Value_co]]:
    """Keep the results of a function, the least recently used ones given up first, within a number of bytes.

    A result that alone is larger than the limit is not kept. Exceptions are not kept.

    Args:
        limit: Bytes.
        size: Estimates the bytes of an entry: takes the result and then the arguments.
    """

    def decorate(function: Callable[..., Value_co]) -> Cached[Value_co]:
        kept: OrderedDict[Hashable, tuple[Value_co, int]] = OrderedDict()
        lock = threading.Lock()
        total = 0

        @wraps(function)
        def ask(*key: Any) -> Value_co:
            nonlocal total
            if (entry := kept.get(key)) is not None:
                try:  # noqa: SIM105  (half a microsecond, for each row of a file)
                    kept.move_to_end(key)
                except KeyError:  # another thread gave it up just now
                    pass
                return entry[0]
            value = function(*key)
            bytes_ = size(value, *key) + _ENTRY
            with lock:
                if key not in kept and bytes_ <= limit:
                    kept[key] = value, bytes_
                    total += bytes_
                while total > limit:
                    total -= kept.popitem(last=False)[1][1]
            return value

        def clear() -> None:
            nonlocal total
            with lock:
                kept.clear()
                total = 0

        ask.cache_bytes = lambda: total  # type: ignore[attr-defined]
        ask.cache_clear = clear  # type: ignore[attr-defined]
        return cast("Cached[Value_co]", ask)

    return decorate
