"""Arrow data from elsewhere, checked before it is trusted.

An array with bad offsets or invalid UTF-8 does not raise when Polars takes it: it ends the process later. So everything that
did not come through a reader of our own is validated in full first.
"""

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from assay.errors import InputError

__all__ = ["from_arrow", "read_stream"]


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


def read_stream(path: Path) -> pl.DataFrame:
    """An Arrow IPC stream file, as Hugging Face's ``save_to_disk`` writes them.

    Raises:
        InputError: The file is not an Arrow stream or breaks Arrow's rules.
    """
    try:
        with pa.memory_map(str(path)) as source, pa.ipc.open_stream(source) as reader:
            return from_arrow(reader)
    except pa.ArrowInvalid as wrong:
        raise InputError(f"{path}: neither an Arrow file nor an Arrow stream: {wrong}") from None
    except InputError as wrong:
        raise InputError(f"{path}: {wrong.fact}", wrong.hint) from None
