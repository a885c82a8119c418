"""The texts that were scored, of a few rows: from the result where it keeps them, else from the inputs that its provenance names."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from assay.errors import AssayError, counted, shown_path
from assay.expressions.completion import completion_text_expr
from assay.expressions.lane import exactly
from assay.insight.results import ROW, Result
from assay.loading.formats.reading import Reading
from assay.loading.rollouts import open_rollouts
from assay.names import COMPLETION

__all__ = ["texts_of"]

_HOW = "--rollouts names the files to take them from"


def texts_of(result: Result, rows: Sequence[int], rollouts: Any = None) -> tuple[dict[int, str | None], str]:
    """Return the scored texts of some rows.

    Args:
        result: The result.
        rows: Numbers of rows.
        rollouts: The rollouts that were scored; by default those that the provenance names, if they have not changed.

    Returns:
        The texts by row, none if they cannot be had, and a note why.

    Raises:
        AssayError: ``rollouts`` is given, and cannot be read or holds other rollouts.
    """
    if not rows:
        return {}, ""
    if rollouts is not None:
        return _of_rollouts(result, rows, rollouts, {}), ""
    try:
        if COMPLETION in result.schema:
            return _picked(result.frame, result, rows)[0], ""
        return _of_inputs(result, rows)
    except AssayError as error:
        return {}, f"no texts: {error.fact}"


def _of_inputs(result: Result, rows: Sequence[int]) -> tuple[dict[int, str | None], str]:
    sources = [source for source in result.provenance.get("inputs") or () if isinstance(source, Mapping)]
    sources = [source for source in sources if not source.get("skipped")]
    if not sources:
        return {}, f"no texts: the result does not keep them, and does not say what it was made of; {_HOW}"
    for source in sources:
        if reason := _changed(source):
            return {}, f"no texts: {reason}; {_HOW}"
    return _of_rollouts(result, rows, [str(source["name"]) for source in sources], sources[0]), ""


def _changed(source: Mapping[str, Any]) -> str:
    """Return why an input is not the file that was scored; ``""`` if it is, by its size and time."""
    name, modified = str(source.get("name")), source.get("modified")
    if modified is None:
        return f"{shown_path(name)} is no local file"
    try:
        status = Path(name).stat()
    except (OSError, ValueError):
        return f"{shown_path(name)} is gone"
    same = (status.st_size, status.st_mtime_ns) == (source.get("size"), modified)
    return "" if same else f"{shown_path(name)} has changed"


def _of_rollouts(
    result: Result, rows: Sequence[int], rollouts: Any, source: Mapping[str, Any]
) -> dict[int, str | None]:
    opened = open_rollouts(rollouts, Reading())
    name = "the rollouts"
    if source and opened.inputs and opened.inputs[0].read_as != source.get("read_as"):
        raise _Other(f"{name} were read in another way then: {source.get('read_as') or 'as they are'}")
    schema = opened.frame.collect_schema()
    if COMPLETION not in schema:
        raise _Other(f"{name} have no column `completion`")
    texts, kept, theirs = _picked(opened.frame, result, rows)
    for column in (column for column in result.passed_through if column in schema and column != COMPLETION):
        for row, here, there in zip(kept[ROW], kept[column], theirs[column], strict=True):
            if here != there:
                raise _Other(f"row {row:,}: {column} is {here} in the result, {there} in {name}")
    number = int(result.collect(opened.frame.select(pl.len())).item())
    if number < result.rows:
        raise _Other(f"{name} have {counted(number, 'row')}, the result has {result.rows:,}")
    return texts


class _Other(AssayError):  # noqa: N818  (what the rollouts are)
    """The rollouts are others."""

    exit_code = 2


def _picked(
    frame: pl.LazyFrame, result: Result, rows: Sequence[int]
) -> tuple[dict[int, str | None], pl.DataFrame, pl.DataFrame]:
    """Return the texts of some rows of a frame, and the columns of these rows that the result passed through, there and here."""
    schema = frame.collect_schema()
    names = [name for name in result.passed_through if name in schema and name != COMPLETION]
    wanted = pl.Series(sorted(set(rows)), dtype=pl.UInt32).implode()

    def picked(source: pl.LazyFrame, *more: pl.Expr) -> pl.DataFrame:
        columns = [_comparable(name, source.collect_schema()[name]) for name in names]
        numbered = source.with_row_index(ROW).filter(pl.col(ROW).is_in(wanted))
        return result.collect(numbered.select(ROW, *columns, *more)).sort(ROW)

    text = completion_text_expr(COMPLETION, schema[COMPLETION])
    theirs = picked(frame, text.alias("<text>"))
    kept = theirs if frame is result.frame else picked(result.frame)
    if kept.height != theirs.height:
        raise _Other(f"the rollouts have fewer rows than the result, {result.rows:,}")
    return dict(zip(theirs[ROW], theirs["<text>"], strict=True)), kept, theirs


def _comparable(name: str, dtype: pl.DataType) -> pl.Expr:
    column = exactly(name)
    return column if dtype.is_nested() or dtype == pl.Binary else column.cast(pl.String, strict=False)
