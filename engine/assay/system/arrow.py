"""pyarrow, imported when something first reads an attribute of it: that takes longer than the rest of a small run."""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["file_errors", "pa", "pq"]


class _Lazy(ModuleType):
    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
else:
    pa, pq = _Lazy("pyarrow"), _Lazy("pyarrow.parquet")


def file_errors(*others: type[Exception]) -> tuple[type[Exception], ...]:
    """Return the errors of the system, those of pyarrow, which nothing raises where it is not imported, and others."""
    arrow = sys.modules.get("pyarrow")
    return (OSError, *others) if arrow is None else (OSError, arrow.ArrowException, *others)
