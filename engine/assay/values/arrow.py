"""Arrow data from elsewhere, checked before it is trusted.

An array with bad offsets or invalid UTF-8 does not raise when Polars takes it: it ends the process later. So everything that
did not come through a reader of our own is validated in full first.
"""

from collections.abc import Iterable
from typing import Any

import polars as pl
import pyarrow as pa

from assay.errors import InputError

__all__ = ["check_names", "from_arrow"]


def from_arrow(data: Any) -> pl.DataFrame:
    """A validated frame from a pyarrow Table, RecordBatch, RecordBatchReader, or any Arrow stream capsule.

    Raises:
        InputError: The data breaks Arrow's rules.
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
        twice = [name for at, name in enumerate(table.column_names) if name in table.column_names[:at]]
        if twice:
            raise InputError(f"The Arrow data has two columns named `{twice[0]}`.", "Rename one of them.")
    except (pa.ArrowException, OSError) as wrong:
        raise InputError(
            f"The Arrow data is not valid: {wrong}", "It would crash the engine; write it anew from its source."
        ) from None
    frame = pl.from_arrow(table)
    return frame if isinstance(frame, pl.DataFrame) else frame.to_frame()


def check_names(fields: Iterable[pa.Field]) -> None:
    """Refuse names, of fields inside columns too, that the engine cannot be given.

    Raises:
        InputError: There is one.
    """
    for field in fields:
        try:
            usable = "\0" not in field.name
        except UnicodeDecodeError:
            usable = False
        if not usable:
            raise InputError("The Arrow data has a name that holds NUL or is not UTF-8.", "Rename the column or field.")
        check_names(field.type.field(at) for at in range(field.type.num_fields))
