r"""Digests of what a result holds: a SHA-256 for each column and one for all of them, whatever the batches and row groups.

The digest of a column is that of ``"assay column 1\0"``, its name, ``\0``, its type, ``\0``, its number of rows, and three digests
of its own: which rows are not null, a byte each; of the other rows, the sizes of texts, binaries and lists; and their values in
little-endian order, a byte for a Boolean, UTF-8 for text. Items of lists and fields of structs follow as columns without a name.
"""

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from assay.errors import InputError, shown_path
from assay.loading.formats.files import ENGINE_ERRORS, first_line, open_each
from assay.loading.formats.reading import Reading, batches
from assay.thresholds import THRESHOLDS
from assay.writing.footers import read_provenance, scan_files

_MARK = b"assay column 1"
_PENDING = 2  # batches that wait to be hashed
_TEXTS = (pa.large_string(), pa.large_binary())


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

    def add(self, batch: pl.DataFrame, table: Any = None) -> None:
        """Hash rows; ``table`` is the same as an Arrow table in the oldest layout, whose texts need not be laid out again."""
        while len(self._pending) >= _PENDING:
            self._pending.pop(0).result()

        def update() -> None:
            for index, column in enumerate(self._columns):
                column.update(batch.get_column(column.name), None if table is None else table.column(index))

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

    def update(self, values: pl.Series, arrow: Any = None) -> None:
        """Add rows; ``arrow`` is the same as an Arrow column, if there is one."""
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
            self._valid.update(_buffer(values.is_not_null().cast(pl.UInt8)))
            present = values.drop_nulls()
        else:  # in a run of small batches, the calls that this saves cost more than the hashes
            self._valid.update(b"\1" * len(values))
        if self.dtype in (pl.String, pl.Binary):
            is_laid_out = arrow is not None and not nulls and arrow.num_chunks == 1 and arrow.type in _TEXTS
            present = present.cast(self.dtype)
            sizes = present.str.len_bytes() if self.dtype == pl.String else present.bin.size()
            self._sizes.update(_buffer(sizes.cast(pl.UInt64)))
            self._data.update(_text_buffer(arrow.chunk(0) if is_laid_out else _laid_out(present)))
        elif isinstance(self.dtype, pl.List | pl.Array):
            sizes = present.list.len() if isinstance(self.dtype, pl.List) else present.arr.len()
            self._sizes.update(_buffer(sizes.cast(pl.UInt64)))
            self._children[0].update(present.filter(sizes > 0).explode())
        elif isinstance(self.dtype, pl.Struct):
            for field, child in zip(self.dtype.fields, self._children, strict=True):
                child.update(present.struct.unnest().get_column(field.name))
        elif self.dtype != pl.Null:
            self._data.update(_buffer(present.cast(pl.UInt8) if self.dtype == pl.Boolean else present))


def _stored(dtype: Any) -> Any:
    """Return the type of the values that parquet stores for a type: texts for an enumeration, pairs for a mapping."""
    if isinstance(dtype, pl.Categorical | pl.Enum):
        return pl.String()
    if isinstance(dtype, pl.BaseExtension):
        return _stored(dtype.ext_storage())
    return pl.List(pl.Struct({"key": dtype.key, "value": dtype.value})) if isinstance(dtype, pl.Map) else dtype


def _buffer(values: pl.Series) -> memoryview:
    """Return the bytes of values of a fixed width, without nulls."""
    array = _laid_out(values)
    width = array.type.bit_width // 8
    buffer = array.buffers()[1]
    return memoryview(buffer or b"")[array.offset * width : (array.offset + len(array)) * width]


def _laid_out(values: pl.Series) -> Any:
    return values.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())


def _text_buffer(array: Any) -> memoryview:
    """Return the bytes of texts or binaries, without nulls, one behind the other."""
    _, offsets, data = array.buffers()
    if data is None or not len(array):
        return memoryview(b"")
    ends = memoryview(offsets).cast("q")
    return memoryview(data)[ends[array.offset] : ends[array.offset + len(array)]]


@dataclass(frozen=True)
class Seal:
    """What a result holds, of a folder all parts together; and what differs from its footer, or contradicts itself there."""

    root: str
    rows: int
    differ: tuple[str, ...]


def seal_of(path: str | Path, files: Sequence[Path]) -> Seal:
    """Compute the digests of a result anew, and compare them with those in its footers."""
    open_each(files, Reading())  # refuses what is damaged, or grows without bound
    differ: list[str] = []
    rows, root, is_folder = 0, "", Path(path).is_dir()
    with contextlib.ExitStack() as stack:
        whole: list[ContentDigest] = []
        for file in files:
            provenance, frame = read_provenance(file), scan_files([file])
            try:
                schema = frame.collect_schema()
                if is_folder and not whole:
                    whole.append(stack.enter_context(contextlib.closing(ContentDigest(schema))))
                with contextlib.closing(ContentDigest(schema)) as digest:
                    for batch in batches(frame, THRESHOLDS.batch):
                        for each in (digest, *whole):
                            each.add(batch)
                    content = digest.content()
            except ENGINE_ERRORS as error:
                raise InputError(f"{shown_path(file)}: cannot be read: {first_line(error)}") from None
            name = f"{shown_path(file.name)}: " if is_folder else ""
            differ += [f"{name}{problem}" for problem in _differences(file, provenance, content)]
            rows, root = rows + content["rows"], content["root"]
        root = whole[0].content()["root"] if whole else root
    return Seal(root, rows, tuple(differ))


def _differences(file: Path, provenance: Mapping[str, Any], content: Mapping[str, Any]) -> Iterator[str]:
    stored = provenance.get("content")
    if stored is None:
        hint = "Files of before Assay wrote digests cannot be checked: score the rollouts again."
        raise InputError(f"{shown_path(file)}: its footer has no digests of its content.", hint)
    columns, rows, root = [tuple(column) for column in stored["columns"]], stored["rows"], stored["root"]
    before = {name: (dtype, digest) for name, dtype, digest in columns}
    now = {name: (dtype, digest) for name, dtype, digest in content["columns"]}
    yield from (name for name in {**before, **now} if before.get(name) != now.get(name))
    if list(before) != list(now) and {*before} == {*now}:
        yield "the order of the columns"
    if rows != content["rows"] or provenance.get("rows") != content["rows"]:
        yield "the number of rows"
    if root_of(columns, rows) != root:
        yield "the root in the footer"
