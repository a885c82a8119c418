"""Bytes that are not UTF-8 within lists, structs, mappings and messages, where checks read: such a row cannot be scored.

Only what the path of a reference leads to counts, and the text of messages, so that an image beside a text costs no row its reward.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from assay.compiling.requirements import referred_paths, unreferred_paths
from assay.expressions.completion import completion_text
from assay.expressions.lane import exactly, nulls
from assay.expressions.mixed import BYTES, JSON, TYPED, is_typed, untyped
from assay.expressions.readable import LOST, has_type, is_all_text, readable, readable_value
from assay.names import COMPLETION
from assay.spec.verifier import VerifierSpec
from assay.values.paths import Path, find_expr
from assay.values.references import value_at

_TEXT = Path((COMPLETION,))
_PROMPT = "prompt"
_SPOKEN = ("role", "reasoning_content", "reasoning", "tool_calls")
"""Fields of messages that checks read besides the content."""


def read_paths(verifiers: Sequence[VerifierSpec]) -> tuple[Path, ...]:
    """Return the paths of the values that checks of Assay read; of the completion, if they read more than its text."""
    return tuple(dict.fromkeys([*referred_paths(verifiers), *unreferred_paths(verifiers)]))


def not_text(place: Path) -> str:
    """Return why a row with such bytes cannot be scored."""
    return f"`{place}` holds bytes that are not UTF-8 text"


def lost_in(row: Mapping[str, Any], paths: Sequence[Path], *, any_role: bool = False) -> str | None:
    """Return why a row cannot be scored, by its values as given: the first bytes that checks read and cannot."""
    places = (_place(row[path.column], path) for path in paths if _has_bytes(row.get(path.column)))
    if (place := next(filter(None, places), None)) is not None:
        return not_text(place)
    return not_text(_TEXT) if _lacks_text(row.get(COMPLETION), any_role=any_role) else None


def _has_bytes(value: Any) -> bool:
    if isinstance(value, str | int | float | None):
        return False
    if isinstance(value, Mapping):
        return BYTES in (value[JSON] or "") if is_typed(value) else any(map(_has_bytes, (*value, *value.values())))
    return any(map(_has_bytes, value)) if isinstance(value, list | tuple) else isinstance(value, bytes)


def _lacks_text(completion: Any, *, any_role: bool) -> bool:
    if not isinstance(completion, list | tuple) or not _has_bytes(completion):
        return False
    texts = (completion_text(readable_value(completion, lost), any_role=any_role) for lost in (None, "\ufffd"))
    return len({*texts}) > 1


def _place(value: Any, path: Path, size: int = 1) -> Path | None:
    value = readable_value(untyped(value, with_bytes=True), LOST)
    for at, step in enumerate(path.steps[size:], size):
        if value is LOST:
            return Path(path.steps[:at])
        value = value_at({path.column: value}, Path((path.column, step)))
    is_chat = path.is_column and path.column in (COMPLETION, _PROMPT) and isinstance(value, list)
    steps = next(_lost_in_chat(value, path.column) if is_chat else _lost_steps(value), None)
    return None if steps is None else Path((*path.steps, *steps))


def _lost_steps(value: Any) -> Iterator[tuple[str | int, ...]]:
    if value is LOST:
        yield ()
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from [()] if name is LOST else ((name, *steps) for steps in _lost_steps(inner))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from ((index, *steps) for steps in _lost_steps(inner))


def _lost_in_chat(messages: Sequence[Any], column: str) -> Iterator[tuple[str | int, ...]]:
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping) or (column == COMPLETION and message.get("role") != "assistant"):
            continue
        said = {name: message.get(name) for name in _SPOKEN}
        content = message.get("content")
        if isinstance(content, list):
            content = [{"text": part.get("text")} if isinstance(part, Mapping) else part for part in content]
        yield from ((index, *steps) for steps in _lost_steps(said | {"content": content}))


def lost_exprs(
    paths: Sequence[Path], schema: pl.Schema, given: Mapping[str, str], *, any_role: bool
) -> Iterator[pl.Expr]:
    """Yield String expressions that say why rows cannot be scored; none for columns that hold no bytes."""
    for path in paths:
        if path.column in schema:
            values = exactly(given.get(path.column, path.column)).alias("value")
            yield from _at_path(path, values, schema[path.column])
    dtype = schema.get(COMPLETION)
    if isinstance(dtype, pl.List | pl.Array) and has_type(dtype, pl.Binary):
        values = exactly(given.get(COMPLETION, COMPLETION))
        yield _reasons(values, is_all_text, lambda value: _TEXT if _lacks_text(value, any_role=any_role) else None)


def _at_path(path: Path, values: pl.Expr, dtype: Any) -> Iterator[pl.Expr]:
    """Yield the expression for a path.

    NOTE: it looks at as little as possible, for what lies beside the path may be large.
    """
    if dtype == TYPED:
        yield _reasons(values, _is_all_json, lambda value: _place(value, path))
        return
    size = len(path.steps)
    while (match := find_expr(pl.Schema(), Path(path.steps[1:size]), (values, dtype))) is None:
        size -= 1
    values, dtype = readable(*match, as_text=False)
    leads_on = size == len(path.steps) or not isinstance(dtype, pl.Struct | pl.List)
    if leads_on and has_type(dtype, pl.Binary):
        yield _reasons(values, is_all_text, lambda value: _place(value, path, size))


def _reasons(values: pl.Expr, is_whole: Callable[[pl.Series], bool], place: Callable[[Any], Path | None]) -> pl.Expr:
    def reasons(series: pl.Series) -> pl.Series:
        if is_whole(series):
            return nulls(series, pl.String)
        places = map(place, series.to_list())
        return pl.Series(series.name, [found and not_text(found) for found in places], dtype=pl.String)

    return values.map_batches(reasons, return_dtype=pl.String, is_elementwise=True)


def _is_all_json(values: pl.Series) -> bool:
    return not values.struct.field(JSON).str.contains(BYTES, literal=True).any()
