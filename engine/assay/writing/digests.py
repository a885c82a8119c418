r"""Digests of what a result holds: a SHA-256 for each column and one for all of them, whatever the batches and row groups.

The digest of a column is that of ``"assay column 1\0"``, its name, ``\0``, its type, ``\0``, its number of rows, and three digests
of its own: which rows are not null, a byte each; of the other rows, the sizes of texts, binaries and lists; and their values in
little-endian order, a byte for a Boolean, UTF-8 for text. Items of lists and fields of structs follow as columns without a name.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import polars as pl

from assay.system.arrow import buffers
from assay.system.memory import written_out

_MARK = b"assay column 1"
_PENDING = 2  # batches that wait to be hashed


def root_of(columns: Iterable[Iterable[str]], rows: int) -> str:
    """Return the digest of all columns, given name, type and digest of each, in order: 64 hexadecimal digits."""
    form = {"columns": [[*column] for column in columns], "rows": rows}
    return hashlib.sha256(json.dumps(form, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


class ContentDigest:
    """Hashes batches in a thread while others are written; ``schema`` has the columns of the result."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._columns = [_ColumnDigest(name, dtype) for name, dtype in schema.items()]
        self._thread = ThreadPoolExecutor(1, "assay-digest")
        self._pending: list[Future[None]] = []

    def add(self, batch: pl.DataFrame) -> None:
        """Hash rows."""
        while len(self._pending) >= _PENDING:
            self._pending.pop(0).result()

        def update() -> None:
            for column in self._columns:
                column.update(batch.get_column(column.name))

        self._pending.append(self._thread.submit(update))

    def content(self) -> dict[str, Any]:
        """Return ``rows``, ``columns`` with name, type and digest, and ``root``; and end the thread."""
        for pending in self._pending:
            pending.result()
        self.close()
        columns = [[column.name, str(column.dtype), column.digest().hex()] for column in self._columns]
        rows = self._columns[0].rows if columns else 0
        return {"rows": rows, "columns": columns, "root": root_of(columns, rows)}

    def close(self) -> None:
        """End the thread."""
        self._pending.clear()
        self._thread.shutdown(cancel_futures=True)


class _ColumnDigest:
    """The running digest of a column."""

    def __init__(self, name: str, dtype: Any) -> None:
        self.name, self.dtype, self.rows = name, _stored(dtype), 0
        self._valid, self._sizes, self._data = hashlib.sha256(), hashlib.sha256(), hashlib.sha256()
        inner = [self.dtype.inner] if isinstance(self.dtype, pl.List | pl.Array) else []
        inner = [field.dtype for field in self.dtype.fields] if isinstance(self.dtype, pl.Struct) else inner
        self._children = [_ColumnDigest("", dtype) for dtype in inner]

    def digest(self) -> bytes:
        whole = hashlib.sha256(b"\0".join((_MARK, self.name.encode(), str(self.dtype).encode(), b"")))
        whole.update(self.rows.to_bytes(8, "little"))
        for part in (self._valid, self._sizes, self._data):
            whole.update(part.digest())
        for child in self._children:
            whole.update(child.digest())
        return whole.digest()

    def update(self, values: pl.Series) -> None:
        """Add rows."""
        values = values.alias("values")  # NOTE: methods of a series named "^y$" take its name as a pattern
        if isinstance(values.dtype, pl.BaseExtension):
            values = values.ext.storage()
        if isinstance(values.dtype, pl.Map):
            values = values.cast(self.dtype)
        self.rows += len(values)
        present, nulls = values, values.null_count()
        if nulls == len(values):
            self._valid.update(bytes(nulls))
            present = values.clear()
        elif nulls:
            _add(self._valid, values.is_not_null().cast(pl.UInt8))
            present = values.drop_nulls()
        else:  # in a run of small batches, the calls that this saves cost more than the hashes
            self._valid.update(b"\1" * len(values))
        if self.dtype in (pl.String, pl.Binary):
            self._update_texts(present.cast(self.dtype))
        elif isinstance(self.dtype, pl.List | pl.Array):
            sizes = present.list.len() if isinstance(self.dtype, pl.List) else present.arr.len()
            _add(self._sizes, sizes.cast(pl.UInt64))
            self._children[0].update(present.filter(sizes > 0).explode())
        elif isinstance(self.dtype, pl.Struct):
            for field, child in zip(self.dtype.fields, self._children, strict=True):
                child.update(present.struct.unnest().get_column(field.name))
        elif self.dtype != pl.Null:
            _add(self._data, present.cast(pl.UInt8) if self.dtype == pl.Boolean else present)

    def _update_texts(self, values: pl.Series) -> None:
        for piece in written_out(values.to_frame()):
            texts = piece.to_series().cast(pl.Binary).cast(pl.List(pl.UInt8))  # one behind the other
            _add(self._sizes, texts.list.len().cast(pl.UInt64))
            _add(self._data, texts.explode(empty_as_null=False))


def _stored(dtype: Any) -> Any:
    """Return the type of the values that parquet stores for a type: texts for an enumeration, pairs for a mapping."""
    if isinstance(dtype, pl.Categorical | pl.Enum):
        return pl.String()
    if isinstance(dtype, pl.BaseExtension):
        return _stored(dtype.ext_storage())
    return pl.List(pl.Struct({"key": dtype.key, "value": dtype.value})) if isinstance(dtype, pl.Map) else dtype


def _add(digest: Any, values: pl.Series) -> None:
    """Add the bytes of values of a fixed width, without nulls."""
    for buffer in buffers(values):
        digest.update(buffer)
