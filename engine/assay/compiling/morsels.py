"""How many rows the engine takes at a time."""

import contextlib
import os
import threading
from collections.abc import Iterator

import polars as pl

__all__ = ["in_pieces"]

_SETTING = "POLARS_IDEAL_MORSEL_SIZE"
_LOCK = threading.Lock()
_RUNS: set[object] = set()
"""Those for which the setting is ours."""


@contextlib.contextmanager
def in_pieces(rows: int) -> Iterator[None]:
    """Have the engine work on so many rows at a time.

    It would pass on whole row groups: few pieces to share among the cores, and all of them in memory. The setting is the whole
    process's, so of runs side by side the first decides, and the last puts things back; a setting of the user's stays.
    """
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
