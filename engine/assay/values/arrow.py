"""Validate Arrow data from other sources before use, and give it types that Polars can hold.

An array with bad offsets or invalid UTF-8 does not raise when Polars imports it, but crashes the process later. So all data that
does not come from Assay's own readers is validated in full first. Of types that Polars lacks, some panic, and some give other values
within lists and structs; they are converted, where no value changes, or refused.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import accumulate
from typing import Any

import polars as pl

from assay.errors import InputError, printable
from assay.system.arrow import file_errors, pa, pc

_DIGITS = 38
"""Digits of a decimal in Polars."""
_EXTENSION = b"ARROW:extension:name"
_HINT = "Convert it to another type, for example to text, or leave it out: table.drop_columns([…]) in pyarrow."


class _NotHeldError(Exception):
    """Polars has no type for the values of an Arrow type; the message names the type."""


def from_arrow(data: Any) -> pl.DataFrame:
    """Return a validated frame from a pyarrow Table, RecordBatch, RecordBatchReader, or any Arrow stream capsule."""
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
            raise InputError(
                f"The Arrow data has two columns named `{printable(duplicates[0])}`.", "Rename one of them."
            )
    except file_errors() as error:
        raise InputError(
            f"The Arrow data is not valid: {error}", "It would crash Polars; write it again from its source."
        ) from None
    return frame_of(held(table)).rechunk()


def frame_of(table: "pa.Table") -> pl.DataFrame:
    """Return a table of types that Polars holds as a frame."""
    # NOTE: Polars would call a column without a name "column_0"
    numbered = table.rename_columns([str(at) for at in range(table.num_columns)])
    if any(pa.types.is_fixed_size_list(inner) for dtype in numbered.schema.types for inner in _types_in(dtype)):
        # NOTE: Polars refuses parts of fixed-size lists with nulls; what is written and read begins at its first value
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, numbered.schema) as writer:
            writer.write_table(numbered)
        numbered = pa.ipc.open_stream(stream.getvalue()).read_all()
    frame = pl.DataFrame(pl.from_arrow(numbered, rechunk=False))
    return frame.rename(dict(zip(frame.columns, table.column_names, strict=True)))


def _types_in(dtype: Any) -> Iterator[Any]:
    if isinstance(dtype, pa.BaseExtensionType):
        dtype = dtype.storage_type
    yield dtype
    for at in range(dtype.num_fields):
        yield from _types_in(dtype.field(at).type)


def check_names(fields: "Iterable[pa.Field]") -> None:
    """Check that Polars accepts the names of all columns and nested fields."""
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


def held_schema(schema: "pa.Schema") -> "pa.Schema":
    """Return an Arrow schema with types that Polars holds as they are."""
    types: list[Any] = []
    problems: list[str] = []
    for field in schema:
        try:
            target = _held_type(field.type)
        except _NotHeldError as error:
            problems.append(_problem(field, error))
            continue
        # NOTE: to cast a mapping with keys that may be null ends the process
        keys = [inner.key_type for inner in _types_in(field.type) if pa.types.is_map(inner)]
        has_open_keys = any(pa.types.is_null(key) or pa.types.is_dictionary(key) for key in keys)
        if has_open_keys and not target.equals(field.type, check_metadata=True):
            problems.append(_problem(field, field.type))
        types.append(target)
    if problems:
        raise InputError("\n".join(problems), _HINT)
    return pa.schema([field.with_type(dtype) for field, dtype in zip(schema, types, strict=True)], schema.metadata)


def held(table: "pa.Table") -> "pa.Table":
    """Return a table with the types of ``held_schema``; the same table if it has them."""
    schema = held_schema(table.schema)
    for at, field in enumerate(schema):
        if field.equals(table.schema.field(at), check_metadata=True):
            continue
        try:
            column = _converted(table.column(at), field.type)
        except pa.ArrowException as error:
            raise InputError(_problem(table.schema.field(at), error), _HINT) from None
        table = table.set_column(at, field, column)
    return table


def _problem(field: "pa.Field", error: object) -> str:
    inner = "" if str(error) == str(field.type) else f": {error}"
    return f"Polars cannot hold the column `{printable(field.name)}` of type {field.type}{inner}."


def _converted(column: "pa.ChunkedArray", target: Any) -> "pa.ChunkedArray":
    if pa.types.is_run_end_encoded(column.type):
        column = pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks], column.type.value_type)
    if isinstance(column.type, pa.BaseExtensionType) and not isinstance(column.type, pa.Bool8Type):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    if _is_view(column.type):
        column = pa.chunked_array(map(_listed, column.chunks), pa.large_list(column.type.value_field))
    return column if column.type.equals(target, check_metadata=True) else column.cast(target)


def _is_view(dtype: Any) -> bool:
    return bool(pa.types.is_list_view(dtype) or pa.types.is_large_list_view(dtype))


def _listed(views: Any) -> Any:
    """Return list views as lists. NOTE: pyarrow's cast reads other elements in part of an array."""
    sizes = [size or 0 for size in views.value_lengths().to_pylist()]
    offsets = pa.array(accumulate(sizes, initial=0), pa.int64())
    lists = pa.large_list(views.type.value_field)
    return pa.LargeListArray.from_arrays(offsets, views.flatten(), type=lists, mask=views.is_null())


def _held_type(dtype: Any) -> Any:
    types = pa.types
    if isinstance(dtype, pa.BaseExtensionType):
        storage = _held_type(dtype.storage_type)
        return pa.bool_() if isinstance(dtype, pa.Bool8Type) else dtype if storage == dtype.storage_type else storage
    if types.is_decimal(dtype):
        precision, scale = (dtype.precision, dtype.scale) if dtype.scale >= 0 else (dtype.precision - dtype.scale, 0)
        if scale > _DIGITS:
            raise _NotHeldError(str(dtype))
        # NOTE: within lists and structs, Polars reads the narrow types as if they had 128 bits
        return pa.decimal128(min(precision, _DIGITS), scale)
    if types.is_timestamp(dtype) and dtype.tz is not None:
        # the same instants
        return dtype if _is_known(dtype.tz) else pa.timestamp(dtype.unit, "UTC")
    if types.is_run_end_encoded(dtype) or types.is_dictionary(dtype):
        values = _held_type(dtype.value_type)
        return dtype if types.is_dictionary(dtype) and values == dtype.value_type else values
    if types.is_union(dtype) or types.is_interval(dtype):
        raise _NotHeldError(str(dtype))
    if types.is_nested(dtype):
        return _held_nested(dtype)
    # Polars would read a time of day
    others = {pa.date64(): pa.date32(), pa.binary(0): pa.binary()}
    return others.get(dtype, dtype)


def _held_nested(dtype: Any) -> Any:
    types = pa.types
    if types.is_struct(dtype):
        names = [field.name for field in dtype]
        if len({*names}) < len(names):
            raise _NotHeldError("two of its fields have the same name")
        return pa.struct([_held_field(field) for field in dtype])
    if types.is_map(dtype):
        return pa.map_(_held_field(dtype.key_field), _held_field(dtype.item_field), dtype.keys_sorted)
    inner = _held_field(dtype.value_field)
    if types.is_fixed_size_list(dtype) and dtype.list_size:
        return pa.list_(inner, dtype.list_size)
    return pa.list_(inner) if types.is_list(dtype) or types.is_fixed_size_list(dtype) else pa.large_list(inner)


def _held_field(field: "pa.Field") -> "pa.Field":
    if pa.types.is_run_end_encoded(field.type) or _is_view(field.type):  # pyarrow decodes whole columns only
        raise _NotHeldError(str(field.type))
    dtype = _held_type(field.type)
    # NOTE: Polars cannot write extension types within lists and structs
    if isinstance(dtype, pa.BaseExtensionType):
        return field.with_type(dtype.storage_type)
    if _EXTENSION in (field.metadata or {}):  # of a type that pyarrow does not know
        return pa.field(field.name, dtype, field.nullable)
    return field.with_type(dtype)


@cache
def _is_known(zone: str) -> bool:
    try:
        pl.Series([], dtype=pl.Datetime("us", zone))
    except pl.exceptions.PolarsError:
        return False
    return True
