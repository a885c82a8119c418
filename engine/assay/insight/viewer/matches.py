"""Which rows a condition holds for, found in the background: answers use what has been looked at."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

import polars as pl

from assay.errors import AssayError, InputError
from assay.insight.results import Result
from assay.loading.formats.files import ENGINE_ERRORS, first_line
from assay.loading.formats.reading import batches
from assay.scoring.in_memory import engine_errors

_T = TypeVar("_T")


class Matches:
    """The rows of a result for which a condition holds, as far as they have been looked at.

    Args:
        result: The result.
        frame: One Boolean column, a value for each of its rows.
    """

    def __init__(self, result: Result, frame: pl.LazyFrame) -> None:
        self._result, self._frame = result, frame
        self._parts: list[pl.Series] = []
        self._error: AssayError | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        try:
            with engine_errors(self._result.files):
                for batch in batches(self._frame):
                    self._parts.append(batch.to_series().fill_null(value=False))
                    if self._stopped.is_set():
                        return
        except AssayError as error:
            self._error = error
        except ENGINE_ERRORS as error:
            self._error = InputError(first_line(error))

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
