"""pyarrow, imported when something first reads an attribute of it, and what most runs would need it for, without it.

Its import takes longer than the rest of a small run.
"""

import ctypes
import importlib
import re
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from assay.system.processes import sleeping_threads

__all__ = ["buffers", "file_errors", "pa", "pc", "pj", "pq"]


class _Lazy(ModuleType):
    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(sys.modules[self.__name__], name)
        except (KeyError, AttributeError):  # not imported, or another thread is about to
            with sleeping_threads():
                return getattr(importlib.import_module(self.__name__), name)


if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.json as pj
    import pyarrow.parquet as pq
else:
    pa, pc, pj, pq = map(_Lazy, ("pyarrow", "pyarrow.compute", "pyarrow.json", "pyarrow.parquet"))


def file_errors(*others: type[Exception]) -> tuple[type[Exception], ...]:
    """Return the errors of the system, those of pyarrow, which nothing raises where it is not imported, and others."""
    arrow = sys.modules.get("pyarrow")
    return (OSError, *others) if arrow is None else (OSError, arrow.ArrowException, *others)


_WIDTHS = {"Date": 4, "Datetime": 8, "Duration": 8, "Time": 8, "Decimal": 16}
"""Bytes of values whose types do not have their bits in their names."""


class _Array(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
        ("buffers", ctypes.POINTER(ctypes.c_void_p)),
        *((name, ctypes.c_void_p) for name in ("children", "dictionary")),
        ("release", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("private_data", ctypes.c_void_p),
    )


class _Stream(ctypes.Structure):
    _fields_ = (
        ("get_schema", ctypes.c_void_p),
        ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
        *((name, ctypes.c_void_p) for name in ("get_last_error", "release", "private_data")),
    )


_address = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def buffers(values: "pl.Series") -> Iterator[memoryview]:
    """Yield the bytes of values of a fixed width without nulls, chunk by chunk, through Arrow's C interface.

    NOTE: each is valid until the next is asked for, and no longer.
    """
    name = str(values.dtype).split("(")[0]
    width = _WIDTHS.get(name) or int(re.sub(r"\D", "", name)) // 8
    capsule = values.__arrow_c_stream__()  # releases the stream when it is freed
    stream, array = _Stream.from_address(_address(capsule, b"arrow_array_stream")), _Array()
    while True:
        if code := stream.get_next(ctypes.addressof(stream), ctypes.addressof(array)):
            raise OSError(code, "Polars cannot export a column")
        if not array.release:
            return
        try:
            if array.length:
                start = array.buffers[1] + array.offset * width
                yield memoryview((ctypes.c_char * (array.length * width)).from_address(start))
        finally:
            array.release(ctypes.addressof(array))
