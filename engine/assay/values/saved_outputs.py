"""Convert rollouts with their rewards to a table or a parquet file, and back without loss.

A table has one row per rollout and the usual columns of datasets: ``example_id``, ``prompt``, ``completion``, ``task``, ``answer``,
``info`` and ``state`` as JSON text, ``reward``, and one column per metric. Times and ``error`` are copied out of the state for
readers of the table, and so is ``generation_error`` if a generation failed. The column ``exact``, and in messages the field of that
name, holds what the other columns cannot represent, as JSON (see ``tagged_json``); it is absent if it is not needed. Data that does
not belong to a row is in the metadata of the schema.
"""

import errno
import operator
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from assay.errors import (
    RAISED,
    AssayWarning,
    InputError,
    UsageError,
    describe_error,
    did_you_mean,
    encodable,
    shown_path,
)
from assay.expressions.json import mended
from assay.system.arrow import file_errors, pa, pq
from assay.system.atomic_file import check_target, new_file
from assay.values import tagged_json as exact
from assay.values.chats import EXACT, Structs, chat_of, chat_structs, chat_type, text_type, value_of
from assay.values.failures import GENERATION_ERROR, TIMES

METADATA_KEY = "assay.outputs"
"""Key of the run's metadata in the schema's metadata, as JSON."""

KEPT = ("example_id", "prompt", "completion", "task", "answer", "info", "state", "reward")
"""The columns that are read back; times and ``error`` are part of the state."""

_FIXED = {*KEPT, *TIMES, "error", GENERATION_ERROR, EXACT}
_PREFIX = "metric/"
_VERSION: Literal[1] = 1
_GROUP = 10_000
"""Rows per row group: states are large, and readers of parquet hold one group at a time."""


def table_of(outputs: Any) -> tuple[Any, str]:
    """Convert ``GenerateOutputs`` to a table, and say in a sentence which values cannot be restored exactly; ``""`` if all can."""
    values = {name: getattr(outputs, "id" if name == "example_id" else name) for name in KEPT}
    metrics: dict[str, str] = {}
    for name in outputs.metrics:
        column = mended(str(name)).replace("\0", "\ufffd")  # Arrow's interface between libraries ends names there
        while (
            column in _FIXED
            or column in metrics
            or column.startswith("__assay/")
            or (column != name and column in outputs.metrics)
        ):
            column = _PREFIX + column
        metrics[column] = name
    values |= {column: outputs.metrics[name] for column, name in metrics.items()}
    rows = max(map(len, values.values()))
    saving = _Saving(rows)
    kinds = dict.fromkeys(("prompt", "completion"), saving.messages) | dict.fromkeys(("info", "state"), saving.json)
    columns = {name: kinds.get(name, saving.scalars)(name, values[name]) for name in KEPT}
    columns |= saving.columns_of_states(values["state"])
    columns |= {column: saving.scalars(column, values[column]) for column in metrics}
    if any(saving.exact):
        columns[EXACT] = saving.json("", [row or None for row in saving.exact])
    run = {
        "version": _VERSION,
        "rows": rows,
        "lengths": {name: len(column) for name, column in values.items() if len(column) != rows},
        "metrics": metrics,
        "metadata": dict(outputs.metadata) if isinstance(outputs.metadata, BaseModel) else {},
        "fields": {name: value for name, value in outputs if name not in (*KEPT, "id", "metrics", "metadata")},
    }
    metadata = exact.write(run, "run", saving.losses)
    return pa.table(columns).replace_schema_metadata({METADATA_KEY: metadata}), str(saving.losses)


class _Saving:
    """Builds the columns of a table, and collects what they cannot represent."""

    def __init__(self, rows: int) -> None:
        self.losses = exact.Losses()
        self.exact: list[dict[str, Any]] = [{} for _ in range(rows)]

    def _array(self, cells: Sequence[Any], kind: Any) -> Any:
        return pa.array([*cells, *[None] * (len(self.exact) - len(cells))], type=kind)

    def scalars(self, name: str, values: Sequence[Any]) -> Any:
        """Return a column of numbers or texts."""
        shown, kind = _SCALARS.get(name, (_number, pa.float64()))
        cells = [None if value is None else shown(value) for value in values]
        for at, (cell, value) in enumerate(zip(cells, values, strict=True)):
            if value is not None and not _same(cell, value):
                self.exact[at][name] = value
        return self._array(cells, kind)

    def json(self, name: str, values: Sequence[Any]) -> Any:
        """Return a column of JSON texts."""
        places = (f"row {at}.{name}" if name else f"row {at}" for at in range(len(values)))
        cells = (
            None if value is None else exact.write(value, place, self.losses)
            for place, value in zip(places, values, strict=True)
        )
        return self._array([*cells], text_type())

    def messages(self, name: str, values: Sequence[Any]) -> Any:
        """Return a column of messages, or of texts if there are none."""
        if all(value is None or isinstance(value, str) for value in values):
            return self.scalars(name, values)
        chats = []
        for at, value in enumerate(values):
            structs: Structs | None
            if isinstance(value, str):
                # a text completion was written by the model, as a message of the assistant is
                author = {"role": "assistant"} if name == "completion" else {}
                structs = [{**author, "content": mended(value)}]
            else:
                losses = self.losses if isinstance(value, list) else exact.Losses()
                structs = chat_structs(value, f"row {at}.{name}", losses)
            if value is not None and not (isinstance(value, list) and structs is not None):
                self.exact[at][name] = value
            chats.append(structs)
        return self._array(chats, chat_type(chats))

    def columns_of_states(self, states: Sequence[Any]) -> dict[str, Any]:
        """Return the times and errors of the states as columns, for readers of the table."""
        mappings = [state if isinstance(state, Mapping) else {} for state in states]
        timings = [state.get("timing") for state in mappings]
        columns = {}
        for name in TIMES:
            times = [timing.get(name) if isinstance(timing, Mapping) else None for timing in timings]
            columns[name] = self._array([_number(time) for time in times], pa.float64())
        for name in ("error", GENERATION_ERROR):
            errors = [_error(state.get(name)) for state in mappings]
            if name == "error" or any(error is not None for error in errors):
                columns[name] = self._array(errors, text_type())
        return columns


def _same(shown: Any, value: Any) -> bool:
    try:
        return bool(shown == value or (shown != shown and value != value))  # noqa: PLR0124  (NaN)
    except RAISED:
        return False


def _integer(value: Any) -> int | None:
    try:
        whole = operator.index(value)
    except RAISED:
        return None
    return whole if -(1 << 63) <= whole < 1 << 63 else None


def _number(value: Any) -> float | None:
    try:
        return None if value is None or isinstance(value, str) else float(value)
    except RAISED:
        return None


_SCALARS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "example_id": (_integer, pa.int64()),
    **dict.fromkeys(
        ("prompt", "completion", "task", "answer"),
        (lambda value: mended(value) if isinstance(value, str) else None, text_type()),
    ),
}
"""What stands in a column for a value, and the type of the column; all others have numbers."""


def _error(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, BaseException):
        return describe_error(value)
    return mended(value) if isinstance(value, str) else encodable(exact.write(value, "", exact.Losses()))


def save(outputs: Any, path: str | Path, *, overwrite: bool) -> str:
    """Write a run to a parquet file, completely or not at all."""
    target = Path(path)
    if target.suffix.lower() != ".parquet":
        raise UsageError(f"{shown_path(path)}: outputs are saved as parquet.", "Name a file that ends in .parquet.")
    check_target(target, overwrite=overwrite, how="overwrite=True")
    table, losses = table_of(outputs)
    with new_file(target) as (file, reported), reported():
        pq.write_table(table, file, compression="zstd", row_group_size=_GROUP)
    return losses


def read_file(path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a run from a parquet file that ``save`` wrote."""
    try:
        with pq.ParquetFile(path) as file:
            if METADATA_KEY.encode() not in (file.metadata.metadata or {}):
                raise InputError(
                    f"{shown_path(path)}: not saved by GenerateOutputs.to_parquet; its footer has no `{METADATA_KEY}`.",
                    "If another program has rewritten the table, load it there and pass it to GenerateOutputs.from_arrow.",
                )
            table = file.read()
    except FileNotFoundError:
        raise InputError(f"{shown_path(path)}: no such file.") from None
    except PermissionError:
        raise InputError(f"{shown_path(path)}: {os.strerror(errno.EACCES)}.") from None
    except file_errors() as error:
        raise InputError(f"{shown_path(path)}: not a readable parquet file: {error}") from None
    try:
        return read_table(table)
    except InputError as error:
        raise InputError(f"{shown_path(path)}: {error.fact}", error.hint) from None


def _float_columns(table: Any) -> dict[str, str]:
    """Return the metrics of a table whose schema has lost their list: all other columns of floats."""
    floats = [field.name for field in table.schema if pa.types.is_floating(field.type) and field.name not in _FIXED]
    bare = {name: name.removeprefix(_PREFIX) for name in floats}
    return {column: name if name in _FIXED else column for column, name in bare.items()}


def read_table(source: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a run from a table that ``table_of`` returned."""
    try:
        table = source if isinstance(source, pa.Table) else pa.table(source)
        table.validate(full=True)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise InputError(f"Not a table of outputs: {error}.") from None
    names = table.column_names
    if missing := [name for name in KEPT if names.count(name) != 1]:
        listed = ", ".join(f"`{name}`" for name in missing)
        hint = next(filter(None, (did_you_mean(name, {*names} - _FIXED) for name in missing)), "")
        raise InputError(f"A table of outputs has each of {', '.join(KEPT)} once; missing or repeated: {listed}.", hint)
    metadata = (table.schema.metadata or {}).get(METADATA_KEY.encode())
    run = {} if metadata is None else value_of(metadata.decode("utf-8", "replace"), f"`{METADATA_KEY}` of the schema")
    try:
        _SavedRun.model_validate(run)
    except ValidationError:
        raise InputError(f"`{METADATA_KEY}` of the schema was not written by this version of Assay.") from None
    metrics = _float_columns(table) if metadata is None else run.get("metrics", {})
    metrics = {column: name for column, name in metrics.items() if column in names}
    read = {name: table[name].to_pylist() for name in [*KEPT, *metrics]}
    for name, decode in {"prompt": chat_of, "completion": chat_of, "info": value_of, "state": value_of}.items():
        read[name] = [decode(cell, f"row {at}.{name}") for at, cell in enumerate(read[name])]
    if EXACT in names:
        for at, cell in enumerate(table[EXACT].to_pylist()):
            row = value_of(cell, f"row {at}.{EXACT}") or {}
            if not isinstance(row, dict):
                raise InputError(f"row {at}.{EXACT}: expected an object, got {type(row).__name__}.")
            for name in row.keys() & read.keys():
                read[name][at] = row[name]
    if run.get("rows") == table.num_rows:
        lengths = run.get("lengths", {})
        read = {name: cells[: lengths.get(name)] for name, cells in read.items()}
    fields: dict[str, Any] = {"id" if name == "example_id" else name: read[name] for name in KEPT}
    fields["metrics"] = {name: read[column] for column, name in metrics.items()}
    others = {name: value for name, value in run.get("fields", {}).items() if name != "metadata"}
    return others | fields, run.get("metadata", {})


class _SavedRun(BaseModel):
    """What the schema says of a run: anybody may have edited it."""

    model_config = ConfigDict(strict=True, defer_build=True)

    version: Literal[1] = _VERSION
    rows: int | None = None
    metrics: dict[str, str] = Field(default_factory=dict)
    lengths: dict[str, int] = Field(default_factory=dict)
    metadata: dict[str, Any] = Field(default_factory=dict)
    fields_: dict[str, Any] = Field(default_factory=dict, alias="fields")


def warn(losses: str) -> None:
    """Warn the caller's caller about values that cannot be restored exactly."""
    if losses:
        warnings.warn(losses, AssayWarning, stacklevel=3)
