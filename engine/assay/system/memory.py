"""How much of the machine's memory a run may take, and what that leaves for the rows in it."""

import polars as pl

from assay.errors import UsageError

__all__ = ["at_once", "default_limit", "room", "share"]

_OWN = 384 << 20
"""Bytes that a process holds besides rows: interpreter, engine, plan, a batch of the result."""

_LEAST = 512 << 20


def default_limit() -> int:
    """Bytes that a run may take unless it says otherwise: 640 MiB, and 128 MiB for each core that has rows in hand."""
    return (640 << 20) + (pl.thread_pool_size() << 27)


def room(limit: int | None) -> int:
    """Bytes of rows that may be in memory at once.

    Args:
        limit: Bytes that the process may take; None for the default.

    Raises:
        UsageError: That is too little to work in.
    """
    if limit is not None and limit < _LEAST:
        raise UsageError(
            f"--memory-limit {limit:,}: at least {_LEAST:,} bytes (512MiB) are needed.", "Leave it out for the default."
        )
    return (default_limit() if limit is None else limit) - _OWN


def share(limit: int | None) -> int:
    """Bytes of rows that may be together in one piece: the reader, each core and what lies between them have a few each.

    NOTE: for the default limit it is 32 MiB, however many cores there are: how rows are gathered shows in the bytes of a result.
    """
    return room(limit) // (4 * (pl.thread_pool_size() + 2))


def at_once(rows: int, size: int, limit: int | None) -> int:
    """So many rows, or fewer where they are long.

    Args:
        rows: How many at most.
        size: Bytes of a row, about; 0 where that is not known.
        limit: Bytes that the process may take; None for the default.
    """
    return max(1, min(rows, share(limit) // max(1, size)))
