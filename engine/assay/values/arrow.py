"""Validate Arrow data from other sources before use.

An array with bad offsets or invalid UTF-8 does not raise when Polars imports it, but crashes the process later. So all data that
does not come from Assay's own readers is validated in full first.
"""

from collections.abc import Iterable
from typing import Any

import polars as pl
import pyarrow as pa

from assay.errors import InputError

__all__ = ["check_names", "from_arrow"]


def from_arrow(data: Any) -> pl.DataFrame:
    """Return a validated frame from a pyarrow Table, RecordBatch, RecordBatchReader, or any Arrow stream capsule.

    Raises:
        InputError: The data violates Arrow's format.
    """
    try:
        if isinstance(data, pa.RecordBatchReader):
            table = data.read_all()
        elif isinstance(data, pa.RecordBatch):
            table = pa.Table.from_batches([data])
        elif isinstance(data, pa.Table):
            table = data
        else:
            table = pa.RecordBatchReader.from_stream(data).read_all()
        check_names(table.schema)
        table.validate(full=True)
        duplicates = [name for at, name in enumerate(table.column_names) if name in table.column_names[:at]]
        if duplicates:
            raise InputError(f"The Arrow data has two columns named `{duplicates[0]}`.", "Rename one of them.")
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"The Arrow data is not valid: {error}", "It would crash Polars; write it again from its source."
        ) from None
    frame = pl.from_arrow(table)
    return frame if isinstance(frame, pl.DataFrame) else frame.to_frame()


def check_names(fields: Iterable[pa.Field]) -> None:
    """Check that Polars accepts the names of all columns and nested fields.

    Raises:
        InputError: A name contains NUL or is not UTF-8.
    """
    for field in fields:
        try:
            usable = "\0" not in field.name
        except UnicodeDecodeError:
            usable = False
        if not usable:
            raise InputError(
                "The Arrow data has a name that contains NUL or is not UTF-8.", "Rename the column or field."
            )
        check_names(field.type.field(at) for at in range(field.type.num_fields))
