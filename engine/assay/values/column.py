"""One column of plain Python values: batches of them teach it a type, then each batch becomes a series of that type.

Arrow types a column by all of its values. What it refuses (several types in one column) or would pay for dearly (structs of
very many fields, deep nesting) becomes JSON text.
"""

import json
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from assay.errors import AssayWarning, InputError
from assay.expressions.completion import HOW_TO_SAY, completion_text
from assay.expressions.json import mended
from assay.expressions.mixed import typed
from assay.names import EXPECTED
from assay.thresholds import THRESHOLDS
from assay.values import tagged_json as exact
from assay.values.chats import EXACT
from assay.values.shape import LEAVES, NESTS, Shape

__all__ = ["OPEN", "STRUCTURED", "Column", "column"]

STRUCTURED = ("metadata", "expected_output_schema", "verifier")
"""Columns with structure; they travel as JSON text, for rows may differ in every field."""

OPEN = ("params", "target", "info", "state")
"""Columns that may have structure; then they travel as JSON text, too."""

_ALIKE = ({int, float}, {list, tuple})
"""Types that make one column together."""


def _read_as(name: str, mapping: Mapping[str, str]) -> str:
    """The name under which Assay reads a column of the input; ``""`` for one that gives way to another."""
    renamed = next((known for known, given in mapping.items() if given == name), None)
    return renamed or ("" if name in mapping else name)


def column(name: str, mapping: Mapping[str, str]) -> "Column":
    """A column that has seen nothing yet, of the kind that its name asks for."""
    known = _read_as(name, mapping)
    if known in STRUCTURED:
        return _Structure(name)
    kinds = {"completion": _Completions, EXPECTED: _Golds, "answer": _Golds, **dict.fromkeys(OPEN, _Open)}
    return kinds.get(known, Column)(name)


class Column:
    """Numbers, text, lists and structs as Arrow types them, JSON text for the rest; a lone surrogate becomes U+FFFD."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._type: Any = pa.null()
        self._kinds: set[type] = set()
        self._shape = Shape()
        self._floatable = True  # whether every integer so far is a float, too
        self._as_text = False
        self._mends = False

    def see(self, values: Sequence[Any], first: int = 0) -> None:
        """Learn from values.

        Args:
            values: A batch.
            first: Number of its first row, for messages.

        Raises:
            InputError: A value cannot be put into any column.
        """
        self._measure(values, first)
        if self._as_text:
            return
        try:
            try:
                self._learn(values)
            except UnicodeEncodeError:
                self._mends = True
                self._learn([_mended(value) for value in values])
        except _REFUSED:
            self._as_text = True

    def settle(self) -> None:
        """All is seen: tell the caller what may not be what its author meant."""

    @property
    def dtype(self) -> pl.DataType:
        """Type of the series, once all is seen."""
        return self.series([]).dtype

    def series(self, values: Sequence[Any]) -> pl.Series:
        """Values that were seen before as a series."""
        if self._as_text:
            return pl.Series(self.name, [_text(value, self.name) for value in values], dtype=pl.String)
        values = [_mended(value) for value in values] if self._mends else values
        if self._kinds <= LEAVES and self._type in _LEAF_TYPES:
            return pl.Series(self.name, values, dtype=_LEAF_TYPES[self._type])
        return pl.Series(self.name, pa.array(values, type=self._type))

    def _measure(self, values: Sequence[Any], first: int) -> None:
        for at, value in enumerate(values, first):
            if type(value) in LEAVES:
                continue
            depth = self._shape_of(value, at)
            if depth > THRESHOLDS.struct_depth or self._shape.fields > THRESHOLDS.struct_fields:
                self._as_text = True

    def _shape_of(self, value: Any, at: int) -> int:
        try:
            return self._shape.add(value)
        except ValueError as wrong:
            raise InputError(f"Row {at}: `{self.name}` {wrong}.") from None

    def _learn(self, values: Sequence[Any]) -> None:
        kinds = {type(value) for value in values if value is not None}
        self._kinds |= kinds
        if len(self._kinds) > 1 and not any(self._kinds <= alike for alike in _ALIKE):
            raise TypeError("several types")  # Arrow would take 1 for a date beside a date
        if self._kinds & {set, frozenset}:
            raise TypeError("a set has no order")
        found = _leaves(values, *kinds) if len(kinds) == 1 and kinds <= LEAVES else pa.array(values)
        if pa.types.is_nested(found.type) and any(_has_flag(value, found.type) for value in values):
            raise TypeError("several types")  # Arrow would take true for 1.0 beside a float
        self._floatable = self._floatable and _floatable(found)
        merged = _merged(self._type, found.type, floatable=self._floatable)
        pl.Series(found)  # the engine has no place for some of Arrow's types
        self._type = merged


_LEAF_TYPES = {pa.string(): pl.String, pa.int64(): pl.Int64, pa.float64(): pl.Float64, pa.bool_(): pl.Boolean}
"""NOTE: Polars makes columns of plain values: to look at its first Python value, Arrow imports pandas, which takes 0.3 s."""


def _leaves(values: Sequence[Any], kind: type) -> Any:
    """What there is to learn from values of one plain type, as an Arrow array: their type, and the integers themselves.

    Raises:
        UnicodeEncodeError: A string has a lone surrogate.
        OverflowError: An integer needs more than 64 bits.
    """
    if kind is int and not all(value is None or -(2**63) <= value < 2**63 for value in values):
        raise OverflowError("an integer of more than 64 bits")
    arrow = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}[kind]
    series = pl.Series(values, dtype=_LEAF_TYPES[arrow])
    return series.to_arrow() if kind is int else pa.nulls(0, arrow)


_REFUSED = (TypeError, ValueError, OverflowError, pa.ArrowException, pl.exceptions.PolarsError)


class _Structure(Column):
    """Always JSON text: the same row gives the same text, whatever the rows beside it."""

    def see(self, values: Sequence[Any], first: int = 0) -> None:
        self._as_text = True
        self._measure(values, first)


class _Open(Column):
    """A column whose structure is JSON text, for what a row asks for must not depend on the rows beside it."""

    def see(self, values: Sequence[Any], first: int = 0) -> None:
        super().see(values, first)
        self._as_text = self._as_text or any(isinstance(value, NESTS) for value in values)


class _Golds(Column):
    """A column that keeps the type of each value where they differ, for a gold is compared by its ``str()``."""

    def see(self, values: Sequence[Any], first: int = 0) -> None:
        super().see(values, first)
        # NOTE: an integer beside a float would become one
        self._as_text = self._as_text or len(self._kinds) > 1 or not self._kinds <= LEAVES

    def series(self, values: Sequence[Any]) -> pl.Series:
        if not self._as_text:
            return super().series(values)
        return typed(self.name, [_json(value, self.name) for value in values])


class _Completions(Column):
    """Strings as they are, messages as role and text, with the whole beside where that is not all; beside strings, their text."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._chats = False
        self._exact = False
        self._readable = False
        self._keys: dict[str, None] = {}

    def see(self, values: Sequence[Any], first: int = 0) -> None:
        for at, value in enumerate(values, first):
            if isinstance(value, list | tuple):
                self._chats = True
                for message in value:
                    self._look(message, at)
            elif isinstance(value, str):
                self._as_text = True
            elif value is not None:
                said = f"Row {at}: a completion is a string or a list of chat messages, not {type(value).__name__}."
                raise InputError(said)

    def _look(self, message: Any, at: int) -> None:
        if not isinstance(message, Mapping | None):
            raise InputError(
                f"Row {at}: a chat message is {type(message).__name__}, not a mapping with `role` and `content`."
            )
        if message is not None and not _is_plain(message):
            self._exact = True
            self._shape_of(message, at)
        if message is None or self._readable:
            return
        self._readable = "content" in message and isinstance(message["content"], str | list | tuple | None)
        self._keys.update(dict.fromkeys(map(str, message)))

    def settle(self) -> None:
        if self._keys and not self._readable:
            have = ", ".join(list(self._keys)[:10])
            fact = f"No message of `{self.name}` has a `content` to read, so their text is empty; they have: {have}."
            # the value of a row must not depend on the rows beside it, so these are read as they would be beside others
            warnings.warn(f"{fact} {HOW_TO_SAY}", AssayWarning, stacklevel=2)

    def series(self, values: Sequence[Any]) -> pl.Series:
        if self._as_text or not self._chats:
            texts = [None if value is None else mended(completion_text(value) or "") for value in values]
            return pl.Series(self.name, texts, dtype=pl.String)
        message, dtype = (_exactly, _EXACT_CHAT) if self._exact else (_message, _CHAT)
        chats = [value if value is None else [message(one) for one in value] for value in values]
        return pl.Series(self.name, pa.array(chats, type=dtype))


_FIELDS = {"role": pa.string(), "content": pa.string()}
_CHAT = pa.large_list(pa.struct(_FIELDS))
_EXACT_CHAT = pa.large_list(pa.struct({**_FIELDS, EXACT: pa.string()}))


def _is_plain(message: Mapping[str, Any] | None) -> bool:
    """Whether role and text are all that a message says."""
    return (
        message is not None
        and len(message) == len(_FIELDS)
        and all(isinstance(message.get(name), str) for name in _FIELDS)
    )


def _exactly(message: Mapping[str, Any] | None) -> dict[str, str | None]:
    """A message with what role and text do not say of it (see ``assay.chats``)."""
    said = _message(message)
    if message is None:
        return said | {EXACT: None}
    unsaid = {
        name: value for name, value in message.items() if not isinstance(value, str) or said.get(name) != mended(value)
    }
    known = {name: said[name] if name in message else None for name in said}
    return known | {EXACT: exact.write(unsaid, "completion", exact.Losses()) if unsaid else None}


def _message(message: Mapping[str, Any] | None) -> dict[str, str | None]:
    role = (message or {}).get("role")
    text = completion_text([{"content": (message or {}).get("content")}])
    return {"role": mended(role) if isinstance(role, str) else None, "content": mended(text or "")}


def _has_flag(value: Any, dtype: Any) -> bool:
    """Whether a boolean stands where values of a type have numbers with a fraction."""
    if value is None:
        return False
    if pa.types.is_struct(dtype):
        return any(_has_flag(value.get(field.name), field.type) for field in dtype)
    if not pa.types.is_list(dtype):
        return pa.types.is_floating(dtype) and isinstance(value, bool)
    if pa.types.is_nested(dtype.value_type):
        return any(_has_flag(inner, dtype.value_type) for inner in value)
    return pa.types.is_floating(dtype.value_type) and bool in set(map(type, value))


def _floatable(values: Any) -> bool:
    try:
        values.cast(_floated(values.type))
    except pa.ArrowException:
        return False
    return True


def _floated(kind: Any) -> Any:
    if pa.types.is_integer(kind):
        return pa.float64()
    if pa.types.is_list(kind):
        return pa.list_(_floated(kind.value_type))
    return pa.struct([(field.name, _floated(field.type)) for field in kind]) if pa.types.is_struct(kind) else kind


def _merged(one: Any, other: Any, *, floatable: bool) -> Any:
    """The type that values of both types have together.

    Raises:
        TypeError: There is none.
    """
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(_merged(one.value_type, other.value_type, floatable=floatable))
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        fields = {field.name: field.type for field in one}
        for field in other:
            fields[field.name] = _merged(fields.get(field.name, pa.null()), field.type, floatable=floatable)
        return pa.struct(list(fields.items()))
    if floatable and {one, other} == {pa.int64(), pa.float64()}:
        return pa.float64()
    raise TypeError("several types")


def _text(value: Any, name: str) -> str | None:
    return mended(value) if isinstance(value, str) else _json(value, name)


def _json(value: Any, name: str) -> str | None:
    try:
        return None if value is None else json.dumps(value, default=_plain)
    except ValueError as wrong:  # an integer past the interpreter's limit
        raise InputError(f"A value of `{name}` cannot be written as JSON: {wrong}.") from None


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return mended(value)
    if isinstance(value, list | tuple):
        return [_mended(inner) for inner in value]
    if isinstance(value, Mapping):
        return {_mended(key): _mended(inner) for key, inner in value.items()}
    return value
