"""Which rows a condition holds for, found in the background: answers use what has been looked at."""

import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import polars as pl

from assay.errors import AssayError, InputError
from assay.insight.results import Result
from assay.loading.formats.files import ENGINE_ERRORS, first_line
from assay.loading.formats.reading import batches
from assay.scoring.in_memory import engine_errors

_T = TypeVar("_T")

_PART = 1 << 17


class Matches:
    """The rows of a result for which a condition holds, as far as they have been looked at.

    Args:
        result: The result.
        frame: One Boolean column, a value for each of its rows.
        idle: Not set while an answer reads rows.
        in_parts: Whether a part of the rows can be looked at by itself: others are streamed, and an answer then waits for the engine,
            which reads ahead.
    """

    def __init__(self, result: Result, frame: pl.LazyFrame, idle: threading.Event, *, in_parts: bool) -> None:
        self._result, self._frame, self._idle, self._in_parts = result, frame, idle, in_parts
        self._parts: list[pl.Series] = []
        self._error: AssayError | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        try:
            with engine_errors(self._result.files):
                for batch in self._batches():
                    self._parts.append(batch.to_series().fill_null(value=False))
                    self._idle.wait()
                    if self._stopped.is_set():
                        return
        except AssayError as error:
            self._error = error
        except ENGINE_ERRORS as error:
            self._error = InputError(first_line(error))

    def _batches(self) -> Iterator[pl.DataFrame]:
        if not self._in_parts:
            yield from batches(self._frame)
            return
        for at in range(0, self._result.rows, _PART):
            yield self._frame.slice(at, _PART).collect(engine="streaming")

    def stop(self) -> None:
        """Look at no more rows."""
        self._stopped.set()

    def so_far(self, seconds: float) -> pl.Series:
        """Return whether the condition holds, for the rows that have been looked at after at most some seconds."""
        self._thread.join(seconds)
        if self._error is not None:
            raise self._error
        return pl.concat([pl.Series([], dtype=pl.Boolean), *self._parts])


class Recent(Generic[_T]):
    """Remembers what was made last, by a key, and disposes of what was asked for longest ago."""

    def __init__(self, most: int, dispose: Callable[[_T], object] = lambda _: None) -> None:
        self._most, self._dispose = most, dispose
        self._made: dict[object, _T] = {}
        self._lock = threading.Lock()

    def get(self, key: object, make: Callable[[], _T]) -> _T:
        """Return what is remembered for a key, else make it."""
        with self._lock:
            made = self._made.pop(key) if key in self._made else make()
            self._made[key] = made
            if len(self._made) > self._most:
                self._dispose(self._made.pop(next(iter(self._made))))
            return made
