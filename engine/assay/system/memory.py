"""Memory: the limit of a run with its shares, and work during which no garbage is collected."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import polars as pl

from assay.errors import UsageError

_OVERHEAD = 384 << 20
"""Bytes that a process needs in addition to rows: interpreter, Polars, plan, a batch of the result."""

_MINIMUM = 512 << 20

WRITTEN_OUT = 1 << 25
"""Bytes of a result that are in memory to be written, or of its texts to be hashed."""


def default_limit() -> int:
    """Return the default memory limit in bytes: 640 MiB plus 128 MiB for each thread of Polars."""
    return (640 << 20) + (pl.thread_pool_size() << 27)


def room(limit: int | None) -> int:
    """Return how many bytes of rows may be in memory at once."""
    if limit is not None and limit < _MINIMUM:
        raise UsageError(
            f"--memory-limit {limit:,}: below the minimum of {_MINIMUM:,} bytes (512MiB).",
            "Leave it out for the default.",
        )
    return (default_limit() if limit is None else limit) - _OVERHEAD


def share(limit: int | None) -> int:
    """Return how many bytes of rows one batch may hold: the reader, each thread and the queues between them hold a few each.

    NOTE: with the default limit it is 32 MiB for any number of cores, because the batches determine the bytes of a result file.
    """
    return room(limit) // (4 * (pl.thread_pool_size() + 2))


def at_once(rows: int, size: int, limit: int | None, shares: int = 1) -> int:
    """Return the number of rows for one batch: fewer if the rows are long."""
    return max(1, min(rows, shares * share(limit) // max(1, size)))


def bytes_of_texts(frame: pl.DataFrame) -> int:
    """Return the bytes of all texts in the columns of a frame, also of those that are stored once for many rows."""
    sizes = frame.select(pl.col(pl.String).str.len_bytes().cast(pl.UInt64).sum())
    return sum(sizes.row(0)) if sizes.width else 0


def written_out(batch: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield a batch in pieces, if texts that are stored once for many rows take too much memory where each row has its own."""
    if batch.height < 2 or bytes_of_texts(batch) <= WRITTEN_OUT:  # noqa: PLR2004
        yield batch
    else:
        middle = batch.height // 2
        yield from written_out(batch.head(middle))
        yield from written_out(batch.slice(middle))


@contextmanager
def uncollected() -> Iterator[None]:
    """Look for no garbage: among values that go when nothing names them, that takes longer than to make them.

    Threads may overlap: the collection is on again when the first of them ends, and stays off if it was.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
