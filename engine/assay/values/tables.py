"""Convert tables of other libraries, and Python rows and columns, to a frame."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import polars as pl
import pyarrow as pa
from pydantic import BaseModel

from assay.errors import InputError
from assay.values.arrow import from_arrow
from assay.values.rows import from_columns, from_rows


def _columns_of(model: Any) -> Any:
    if hasattr(model, "to_arrow"):
        return model.to_arrow()
    return {name: values for name, values in model if values is not None}


def library_of(source: Any) -> str:
    """Return an object's type for the provenance: ``polars.DataFrame``."""
    return f"{type(source).__module__.split('.')[0]}.{type(source).__name__}"


def table_of(source: Any, mapping: Mapping[str, str], exact: Collection[str] = ()) -> pl.DataFrame:
    """Convert data in memory to a frame."""
    if isinstance(source, BaseModel):
        source = _columns_of(source)
    if isinstance(source, pl.DataFrame):
        return source
    if library_of(source).startswith("datasets."):
        return _of_datasets(source, mapping, exact)
    if library_of(source) == "pandas.DataFrame":
        return _of_pandas(source, mapping, exact)
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "read_next_batch"):
        return from_arrow(source)
    if isinstance(source, Mapping):
        return from_columns(source, mapping, exact)
    if isinstance(source, Sequence) and not isinstance(source, bytes):
        return from_rows(source, mapping, exact)  # a sequence of rows other than a list
    raise InputError(
        f"Rollouts of type {type(source).__name__} cannot be read.",
        "Give a path, a Polars or Arrow table, a Hugging Face Dataset, or a list of mappings.",
    )


def _of_datasets(source: Any, mapping: Mapping[str, str], exact: Collection[str]) -> pl.DataFrame:
    if isinstance(source, dict):
        raise InputError("A DatasetDict holds several splits.", f"Pick one: {', '.join(map(repr, source))}.")
    if isinstance(source, Mapping):
        return from_columns({name: source[name] for name in source}, mapping, exact)
    if not hasattr(source, "num_rows"):
        raise InputError(f"{library_of(source)} cannot be read.", "Give a datasets.Dataset, loaded in full.")
    return from_arrow(source.with_format("arrow")[:])


def _of_pandas(frame: Any, mapping: Mapping[str, str], exact: Collection[str]) -> pl.DataFrame:
    try:
        return from_arrow(pa.Table.from_pandas(frame, preserve_index=False))
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return from_columns({str(name): frame[name].tolist() for name in frame.columns}, mapping, exact)
