"""Labels of rows of a result: whether the answer is right, for the whole verdict or for a check."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from assay.errors import InputError, UsageError, counted, did_you_mean, listed, printable, quoted, shown_path
from assay.expressions.shared_columns import exactly
from assay.insight.results import ROW, Result
from assay.loading.formats.files import combined, open_each
from assay.loading.formats.reading import Reading
from assay.names import HIDDEN
from assay.scoring.in_memory import engine_errors

LABEL = "label"

_OF_A_CHECK = "label/"
_ROW = "row"
_WORDS = {
    **dict.fromkeys(("true", "1", "1.0", "yes", "pass"), True),
    **dict.fromkeys(("false", "0", "0.0", "no", "fail"), False),
}


def read_labels(source: Any, result: Result, on: Sequence[str]) -> pl.DataFrame:
    """Return the rows with labels: ``ROW``, and Booleans as ``label`` or ``label/<check>``, those that there are.

    Raises:
        InputError: The file cannot be read, a label has no meaning, or a row is unknown or there twice.
        UsageError: There are no labels, no column tells the rows, or no check has the name that a label names.
    """
    name = "labels"
    if isinstance(source, str | Path):
        name = f"--labels {shown_path(source)}"
    table = _table(source)
    if not (isinstance(source, str | Path) or table.height):
        return pl.DataFrame(schema={ROW: pl.UInt32})
    columns = [column for column in table.columns if column == LABEL or column.startswith(_OF_A_CHECK)]
    if not columns:
        hint = did_you_mean(LABEL, table.columns) or f"Columns: {listed(table.columns)}"
        raise UsageError(f"{name}: no column `{LABEL}`.", hint)
    for column in columns:
        if column != LABEL:
            result.check(column.removeprefix(_OF_A_CHECK))
    keys = _keys(table, columns, result, on, name)
    labels = [_truths(table, column, name) for column in columns]
    texts = [exactly(key).cast(pl.String).str.strip_chars().alias(HIDDEN + key) for key in keys]
    rows = table.select(*texts, *labels).filter(pl.any_horizontal(pl.col(columns).is_not_null()))
    found = _of_rows(rows, result, name) if keys == (_ROW,) and not on else _of_keys(rows, result, keys, name)
    if found[ROW].is_duplicated().any():
        row = found.filter(found[ROW].is_duplicated())[ROW].sort()[0]
        raise InputError(f"{name}: row {row} has two labels.", "Leave one of them.")
    return found.select(ROW, *columns).sort(ROW)


def _keys(table: pl.DataFrame, columns: Sequence[str], result: Result, on: Sequence[str], name: str) -> tuple[str, ...]:
    """Return the columns that identify a row; these and the labels are of types whose values have a text."""
    keys = result.keys(on, "--on") or (_ROW,)
    if missing := [key for key in keys if key not in table.columns]:
        common = [column for column in table.columns if column in result.schema]
        hint = f"Name columns that identify a row: --on {','.join(common)}" if common and not on else ""
        raise UsageError(f"{name}: no column `{missing[0]}`.", hint or f"Columns: {listed(table.columns)}")
    for owner, schema, read in ((name, table.schema, (*columns, *keys)), (result.name, result.schema, on)):
        for column in read:
            if (dtype := schema[column]).is_nested() or dtype in (pl.Binary, pl.Object):
                raise InputError(f"{owner}: `{printable(column)}` is {dtype}; expected texts, numbers or Booleans.")
    return keys


def _table(source: Any) -> pl.DataFrame:
    if isinstance(source, str | Path):
        files = open_each([Path(source)], Reading())
        with engine_errors(tuple(files)):
            return combined(files).scan().collect()
    if isinstance(source, pl.LazyFrame):
        return source.collect()
    if isinstance(source, pl.DataFrame):
        return source
    if not isinstance(source, Sequence):
        fact = f"Labels are a path, a Polars frame or a list of mappings, not {type(source).__name__}."
        raise UsageError(fact, 'For example [{"row": 0, "label": True}]')
    return pl.DataFrame(source, infer_schema_length=None)


def _truths(table: pl.DataFrame, column: str, name: str) -> pl.Series:
    """Return a column of labels as Booleans, null where there is none."""
    words = table[column].cast(pl.String).str.strip_chars().str.to_lowercase().replace("", None)
    truths = words.replace_strict(_WORDS, default=None, return_dtype=pl.Boolean)
    odd = words.filter(truths.is_null() & words.is_not_null())
    if len(odd):
        fact = f"{name}: {counted(len(odd), 'value')} of `{printable(column)}` say neither, such as {quoted(odd[0])}."
        raise InputError(fact, "Expected true or false, 1 or 0, yes or no, pass or fail, or nothing.")
    return truths.alias(column)


def _of_rows(rows: pl.DataFrame, result: Result, name: str) -> pl.DataFrame:
    texts = rows[HIDDEN + _ROW]
    numbers = texts.str.strip_suffix(".0").cast(pl.Int64, strict=False)
    unknown = texts.filter(numbers.is_null() | ~numbers.is_between(0, result.rows - 1))
    if len(unknown):
        first = "null" if unknown[0] is None else quoted(unknown[0])
        fact = f"{name}: {result.name} has no row {first}; its rows are 0 to {result.rows - 1}."
        raise InputError(fact, "`row` is the number that assay show --row takes.")
    return rows.with_columns(numbers.cast(pl.UInt32).alias(ROW))


def _of_keys(rows: pl.DataFrame, result: Result, keys: Sequence[str], name: str) -> pl.DataFrame:
    option = f"--on {','.join(keys)}"
    hidden = [HIDDEN + key for key in keys]
    texts = [exactly(key).cast(pl.String).str.strip_chars().alias(HIDDEN + key) for key in keys]
    matching = result.numbered.select(pl.col(ROW), *texts).join(rows.lazy().select(hidden).unique(), on=hidden)
    found = rows.join(result.collect(matching), on=hidden, how="left", maintain_order="left")
    for unknown in found.filter(pl.col(ROW).is_null()).select(hidden).head(1).rows():
        fact = f"{name}: {option}: no row of {result.name} has {_shown(keys, unknown)}."
        raise InputError(fact, "Name columns that the labels and the result have alike.")
    counts = found.group_by(hidden, maintain_order=True).agg(pl.col(ROW).n_unique().alias("rows"))
    for *twice, number in counts.filter(pl.col("rows") > 1).head(1).rows():
        fact = f"{name}: {option}: {counted(number, 'row')} of {result.name} have {_shown(keys, twice)}."
        raise InputError(fact, "Name columns that together identify a row.")
    return found


def _shown(keys: Sequence[str], values: Sequence[str | None]) -> str:
    pairs = zip(keys, values, strict=True)
    return ", ".join(f"{printable(key)} {'null' if value is None else quoted(value)}" for key, value in pairs)
