"""The number of rows that Polars processes at a time."""

import contextlib
import os
import threading
from collections.abc import Iterator

import polars as pl

_SETTING = "POLARS_IDEAL_MORSEL_SIZE"
_LOCK = threading.Lock()
_RUNS: set[object] = set()
"""Runs for which this module changed the setting."""


@contextlib.contextmanager
def in_pieces(rows: int) -> Iterator[None]:
    """Make Polars process about ``rows`` rows at a time."""
    run = object()
    with _LOCK:
        if _RUNS or _SETTING not in os.environ:
            pl.Config.set_streaming_chunk_size(int(os.environ.get(_SETTING, rows)))
            _RUNS.add(run)
    try:
        yield
    finally:
        with _LOCK:
            if run in _RUNS:
                _RUNS.remove(run)
                if not _RUNS:
                    pl.Config.set_streaming_chunk_size(None)
