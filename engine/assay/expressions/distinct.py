"""The distinct values of a column of structs, so that Python looks at each of them once."""

from typing import Any

import polars as pl

from assay.expressions.lane import encoded


def distinct_rows(rows: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return the distinct values of a column of structs, and the index of each row's."""
    if _is_beyond_json(rows.dtype):  # JSON has no NaN
        keys = pl.Series(map(repr, rows.to_list()), dtype=pl.String)
    else:
        keys = rows.struct.json_encode()
    _, which = encoded(keys)
    return rows.gather(which.arg_unique().sort()), which


def _is_beyond_json(dtype: Any) -> bool:
    """Whether a type has anything but text, whole numbers and flags, in lists and structs of these."""
    if isinstance(dtype, pl.Struct):
        return any(_is_beyond_json(field.dtype) for field in dtype.fields)
    if isinstance(dtype, pl.List):
        return _is_beyond_json(dtype.inner)
    return not (isinstance(dtype, pl.String | pl.Boolean | pl.Null) or dtype.is_integer())
