"""Arrow data from elsewhere, checked before it is trusted.

An array with bad offsets or invalid UTF-8 does not raise when Polars takes it: it ends the process later. So everything that
did not come through a reader of our own is validated in full first.
"""

from typing import Any

import polars as pl
import pyarrow as pa

from assay.errors import InputError, printable

__all__ = ["from_arrow"]


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
        _check_names(table.schema)
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


def _check_names(schema: pa.Schema) -> None:
    """Refuse names, of fields inside columns too, that the engine cannot be given."""
    hint = "Rename the column, or the field inside one."
    try:
        said = schema.to_string(show_field_metadata=False, show_schema_metadata=False)
    except UnicodeDecodeError as wrong:
        raise InputError(
            f"The Arrow data has a name that is not UTF-8: {printable(repr(wrong.object))}.", hint
        ) from None
    if "\0" in said:
        raise InputError("The Arrow data has a name that holds NUL.", hint)
