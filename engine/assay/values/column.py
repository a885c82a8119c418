"""A column of plain Python values: it learns a type from batches, then converts each batch to a series of that type.

Arrow infers the type from all values of a column. Columns that Arrow rejects (several types) or that would be expensive (structs of
very many fields, deep nesting) become JSON text.
"""

import json
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import polars as pl

from assay.errors import AssayWarning, InputError, printable
from assay.expressions.completion import MESSAGE_HINT, completion_text, completions_hint
from assay.expressions.json import mended
from assay.expressions.mixed import BYTES, TYPED, typed
from assay.expressions.shared_columns import in_lists
from assay.names import GOLD_COLUMNS, OUTPUT_SCHEMA, OUTPUT_SCHEMA_CAMEL, VERIFIER
from assay.system.arrow import pa
from assay.thresholds import THRESHOLDS
from assay.values import tagged_json as exact
from assay.values.chats import EXACT, plain_text
from assay.values.plain import LEAVES, NESTS, Shape, plain

STRUCTURED = ("metadata", OUTPUT_SCHEMA, OUTPUT_SCHEMA_CAMEL, VERIFIER)
"""Structured columns; they become JSON text, because rows may differ in every field."""

OPEN = ("params", "info", "state")
"""Columns that may be structured; then they become JSON text, too."""

_COMPATIBLE = ({int, float}, {list, tuple})
"""Types that can share a column."""

DTYPES: dict[type, Any] = {str: pl.String, int: pl.Int64, float: pl.Float64, bool: pl.Boolean}
"""NOTE: Polars builds columns of plain values and messages, because Arrow imports pandas at its first Python value, which takes 0.3 s."""

Place = tuple[str | None, ...]
"""Fields that lead to a value; None stands for every element of a list."""

FLOATABLE = 2**53
"""Floats represent all integers up to here."""

_FIELDS = ("role", "content")


@cache
def _arrow_types() -> dict[type, Any]:
    return {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}


def _kind_of(dtype: Any) -> type | None:
    return next((kind for kind, arrow in _arrow_types().items() if arrow == dtype), None)


def _fields_of_texts(values: Sequence[Any]) -> dict[str, None] | None:
    """Return the names in mappings to texts, as of messages, if values are lists of those; None if any is something else."""
    fields: dict[str, None] = {}
    for value in values:
        if value is None:
            continue
        if type(value) is not list:
            return None
        for row in value:
            if type(row) is not dict or not {str}.issuperset(map(type, (*row, *row.values()))):
                return None
            fields.update(dict.fromkeys(row))
    return fields


def _lists_of_texts(lists: Sequence[Sequence[Mapping[str, str | None]] | None], fields: Iterable[str]) -> pl.Series:
    """Return lists of mappings to texts as a column, without ``pa.array``, which imports pandas."""
    rows = [row for each in lists for row in each or ()]
    texts = {name: pl.Series([row.get(name) for row in rows], dtype=pl.String) for name in fields}
    column = in_lists(pl.DataFrame(texts).to_struct(), pl.Series([len(each or ()) for each in lists], dtype=pl.Int64))
    return column.set(pl.Series([each is None for each in lists], dtype=pl.Boolean), None)


def column(name: str, mapping: Mapping[str, str], exact: Collection[str] = ()) -> "Column":
    """Return an empty column of the kind for its name."""
    renamed = next((target for target, source in mapping.items() if source == name), None)
    # another column may be read under its name
    target = renamed or ("" if name in mapping else name)
    if target == "completion":
        return _Completions(name)
    if target in STRUCTURED:
        return _JsonColumn(name)
    if target in exact or target in GOLD_COLUMNS:
        return _Exact(name)
    return (_Open if target in OPEN else Column)(name)


class Column:
    """A column typed by Arrow's rules for numbers, text, lists and structs, else JSON text; lone surrogates become U+FFFD."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._type: Any = pa.null()
        self._kinds: set[type] = set()
        self._shape = Shape()
        self._wide = set[Place]()  # where integers are that no float represents
        self._as_text = False
        self._mends = False

    def see(self, values: Sequence[Any], first: int = 0) -> None:
        """Learn from a batch whose first row has a number, for messages."""
        self._measure(values, first)
        if self._as_text:
            return
        try:
            try:
                self._learn(values)
            except UnicodeEncodeError:
                self._mends = True
                self._learn(_mended([*values]))
        except (TypeError, ValueError, OverflowError, pa.ArrowException, pl.exceptions.PolarsError):
            self._as_text = True

    def finish(self) -> None:
        """End learning; warn about likely mistakes."""

    @property
    def dtype(self) -> pl.DataType:
        """Type of the series, after all batches."""
        return self.series([]).dtype

    @property
    def is_settled(self) -> bool:
        """Whether it gives JSON text, or messages with their JSON, whatever else comes of JSON values with types as before."""
        return self._as_text

    def series(self, values: Sequence[Any]) -> pl.Series:
        """Return values of a known batch as a series."""
        if self._as_text:
            return pl.Series(self.name, [text_of(value, self.name) for value in values], dtype=pl.String)
        values = _mended([*values]) if self._mends else values
        if not self._kinds:
            return pl.Series(self.name, values, dtype=pl.Null)
        if self._kinds <= LEAVES and (kind := _kind_of(self._type)) is not None:
            return pl.Series(self.name, values, dtype=DTYPES[kind])
        if (fields := _fields_in(self._type)) and _fields_of_texts(values) is not None:
            return _lists_of_texts(values, fields).alias(self.name)
        return pl.Series(self.name, pa.array(values, type=self._type) if values else pa.nulls(0, self._type))

    def _measure(self, values: Sequence[Any], first: int) -> None:
        for row, value in enumerate(values, first):
            if type(value) in LEAVES:
                continue
            depth = self._depth(value, row)
            if depth > THRESHOLDS.struct_depth or self._shape.fields > THRESHOLDS.struct_fields:
                self._as_text = True

    def _depth(self, value: Any, row: int) -> int:
        try:
            return self._shape.add(value)
        except ValueError as error:
            raise InputError(f"Row {row}: `{printable(self.name)}` {error}.") from None

    def _learn(self, values: Sequence[Any]) -> None:
        kinds = {type(value) for value in values if value is not None}
        self._kinds |= kinds
        if len(self._kinds) > 1 and not any(self._kinds <= alike for alike in _COMPATIBLE):
            raise TypeError("several types")  # Arrow would read 1 as a date beside a date
        if self._kinds & {set, frozenset}:
            raise TypeError("a set has no order")
        if not kinds:
            return
        if len(kinds) == 1 and kinds <= LEAVES:
            (kind,) = kinds
            if object in _kinds_of(values):
                raise OverflowError("an integer of more than 64 bits")
            series = pl.Series(values, dtype=DTYPES[kind])
            if kind is int and not series.is_between(-FLOATABLE, FLOATABLE).all():
                self._wide.add(())
            learned = _arrow_types()[kind]
        elif fields := _fields_of_texts(values):
            _lists_of_texts(values, fields)  # raises for a lone surrogate
            learned = _type_of_lists(fields)
        else:
            learned = self._inferred(values)
        self._type = _merged(self._type, learned, self._wide)

    def _inferred(self, values: Sequence[Any]) -> Any:
        array = pa.array(values)
        if _floats_in(array.type) and any(_has_flag(value, array.type) for value in values):
            raise TypeError("several types")  # Arrow would read true as 1.0 beside a float
        self._wide.update(_wide_integers(array))
        pl.Series(array)  # raises for the Arrow types that Polars does not support
        return array.type


def _floats_in(dtype: Any) -> bool:
    """Return whether a type is nested and has floats within."""
    inner = [dtype.field(at).type for at in range(dtype.num_fields)]
    return any(pa.types.is_floating(each) or _floats_in(each) for each in inner)


def _has_flag(value: Any, dtype: Any) -> bool:
    """Return whether a value has a Boolean where its type has a float."""
    if value is None:
        return False
    if pa.types.is_struct(dtype):
        return any(_has_flag(value.get(field.name), field.type) for field in dtype)
    if not pa.types.is_list(dtype):
        return pa.types.is_floating(dtype) and isinstance(value, bool)
    if pa.types.is_nested(dtype.value_type):
        return any(_has_flag(inner, dtype.value_type) for inner in value)
    return pa.types.is_floating(dtype.value_type) and bool in set(map(type, value))


def _type_of_lists(fields: Iterable[str]) -> Any:
    return pa.list_(pa.struct([(name, pa.string()) for name in fields]))


def _fields_in(kind: Any) -> list[str]:
    """Return the names in ``_type_of_lists``; none of another type."""
    is_nested = pa.types.is_list(kind) and pa.types.is_struct(kind.value_type)
    names = [field.name for field in kind.value_type] if is_nested else []
    return names if kind == _type_of_lists(names) else []


def _wide_integers(array: Any, place: Place = ()) -> Iterator[Place]:
    """Yield where an array has integers that no float represents."""
    if pa.types.is_struct(array.type):
        for field in array.type:
            yield from _wide_integers(array.field(field.name), (*place, field.name))
    elif pa.types.is_list(array.type):
        yield from _wide_integers(array.flatten(), (*place, None))
    elif pa.types.is_integer(array.type):
        try:
            array.cast(pa.float64())
        except pa.ArrowException:
            yield place


def _merged(left: Any, right: Any, wide: Collection[Place], place: Place = ()) -> Any:
    """Return the common type of two types; integers at places that are ``wide`` are no floats.

    Raises:
        TypeError: There is none.
    """
    if left == right or pa.types.is_null(right):
        return left
    if pa.types.is_null(left):
        return right
    if pa.types.is_list(left) and pa.types.is_list(right):
        return pa.list_(_merged(left.value_type, right.value_type, wide, (*place, None)))
    if pa.types.is_struct(left) and pa.types.is_struct(right):
        fields = {field.name: field.type for field in left}
        for field in right:
            fields[field.name] = _merged(fields.get(field.name, pa.null()), field.type, wide, (*place, field.name))
        return pa.struct(list(fields.items()))
    if place not in wide and {left, right} == {pa.int64(), pa.float64()}:
        return pa.float64()
    raise TypeError("several types")


class _JsonColumn(Column):
    """Always JSON text, so that a row gives the same text whatever the other rows are."""

    def see(self, values: Sequence[Any], first: int = 0) -> None:
        self._as_text = True
        self._measure(values, first)


class _Open(Column):
    """A column that becomes JSON text if it is structured, so that a row's meaning does not depend on other rows."""

    def see(self, values: Sequence[Any], first: int = 0) -> None:
        super().see(values, first)
        self._as_text = self._as_text or any(isinstance(value, NESTS) for value in values)


class _Exact(Column):
    """A column in which each row keeps its own JSON value, whatever the other rows have.

    Values of one plain type have that type, and lists of them are lists of it; all others are JSON text in a marker struct.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._elements: set[type] = set()

    def see(self, values: Sequence[Any], first: int = 0) -> None:
        values = self._plain(values, first)
        self._measure(values, first)
        self._kinds |= _kinds_of(values)
        if list in self._kinds:
            self._elements.update(*(_kinds_of(value) for value in values if type(value) is list))

    @property
    def is_settled(self) -> bool:
        return self.dtype == TYPED

    def series(self, values: Sequence[Any]) -> pl.Series:
        values = self._plain(values)
        kinds, elements = self._kinds - {type(None)}, self._elements - {type(None)}
        dtype: Any = None
        if len(kinds) <= 1 and len(elements) <= 1:
            dtype = DTYPES.get(*kinds) if kinds else pl.Null
            if kinds == {list}:
                inner = DTYPES.get(*elements) if elements else pl.Null
                dtype = inner and pl.List(inner)
        if dtype is None:
            return typed(self.name, [self._json(value) for value in values])
        try:
            return pl.Series(self.name, values, dtype=dtype)
        except UnicodeEncodeError:
            return pl.Series(self.name, _mended([*values]), dtype=dtype)

    def _plain(self, values: Sequence[Any], first: int = 0) -> Sequence[Any]:
        if LEAVES.issuperset(map(type, values)):
            return values
        result = []
        for row, value in enumerate(values, first):
            try:
                result.append(value.decode() if isinstance(value, bytes | bytearray) else plain(value))
            except UnicodeDecodeError as error:
                raise _not_utf8(self.name, row, error) from None
        return result

    def _json(self, value: Any) -> str | None:
        text = _json(value, self.name, _ENCODE_MARKED)
        return _json(_mended(value), self.name, _ENCODE_MARKED) if text is not None and "\\ud" in text else text


def _kinds_of(values: Sequence[Any]) -> set[type]:
    """Return the types of values; ``object`` for an integer that no column of integers holds."""
    kinds = {*map(type, values)}
    if int in kinds and not all(-(2**63) <= value < 2**63 for value in values if type(value) is int):
        kinds.add(object)
    return kinds


class _Completions(Column):
    """Strings, or messages as role and text plus ``exact`` if they have more; beside messages, a string is one of the assistant.

    NOTE: messages as text could not tell a conversation without an assistant message from others.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._chats = False
        self._exact = False
        self._readable = False
        self._keys: dict[str, None] = {}

    def see(self, values: Sequence[Any], first: int = 0) -> None:
        for row, value in enumerate(values, first):
            if isinstance(value, list | tuple):
                self._chats = True
                for message in value:
                    self._look(message, row)
            elif isinstance(value, str):
                self._as_text = True
            elif value is not None:
                problem = f"Row {row}: a completion is a string or a list of chat messages, not {type(value).__name__}."
                raise InputError(problem)

    def _look(self, message: Any, row: int) -> None:
        if message is None:
            return
        if not isinstance(message, Mapping):
            is_several = isinstance(message, str | list | tuple)
            fact = f"Row {row}: a chat message is {type(message).__name__}, not a mapping with `role` and `content`."
            raise InputError(fact, completions_hint(self.name, pl.List(pl.String)) if is_several else "")
        content = message.get("content")
        if len(message) != len(_FIELDS) or not all(isinstance(message.get(name), str) for name in _FIELDS):
            self._exact = True
            self._depth(message, row)
            try:
                _content_in_text(content if message.get("role") in ("assistant", b"assistant") else None, "strict")
            except UnicodeDecodeError as error:
                raise _not_utf8(self.name, row, error) from None
        if not self._readable:
            self._readable = "content" in message and isinstance(content, str | bytes | list | tuple | None)
            self._keys.update(dict.fromkeys(map(str, message)))

    def finish(self) -> None:
        if self._keys and not self._readable:
            keys = ", ".join(list(self._keys)[:10])
            fact = f"No message of `{printable(self.name)}` has a readable `content`, so their text is empty; their fields: {keys}."
            # a warning, not an error: a row must not be read differently because of other rows
            warnings.warn(f"{fact} {MESSAGE_HINT}", AssayWarning, stacklevel=2)

    @property
    def is_settled(self) -> bool:
        return self._exact and self._readable

    def series(self, values: Sequence[Any]) -> pl.Series:
        if not self._chats:
            texts = [None if value is None else mended(value) for value in values]
            return pl.Series(self.name, texts, dtype=pl.String)
        is_exact = self._exact or self._as_text
        convert, fields = (_exactly, (*_FIELDS, EXACT)) if is_exact else (_message, _FIELDS)
        chats = [
            plain_text(mended(value)) if isinstance(value, str) else value and [convert(message) for message in value]
            for value in values
        ]
        return _lists_of_texts(chats, fields).alias(self.name)


def _exactly(message: Mapping[str, Any] | None) -> dict[str, str | None]:
    """Return a message with what role and text cannot represent (see ``values.chats``)."""
    shown: dict[str, str | None] = _message(message)
    rest = {name: value for name, value in (message or {}).items() if name not in _FIELDS or not isinstance(value, str)}
    if message is not None:
        shown |= {name: None for name in _FIELDS if name not in message}
    shown[EXACT] = exact.write(rest, "completion", exact.Losses()) if rest else None
    return shown


def _message(message: Mapping[str, Any] | None) -> dict[str, str | None]:
    role, content = ((message or {}).get(name) for name in _FIELDS)
    role = role.decode(errors="replace") if isinstance(role, bytes) else role
    is_text = isinstance(content, str)  # as most are
    text = content if is_text else completion_text([{"content": _content_in_text(content)}], any_role=True)
    return {"role": mended(role) if isinstance(role, str) else None, "content": mended(text or "")}


def _content_in_text(content: Any, errors: str = "replace") -> Any:
    """Return the content of a message with bytes as text, as in columns; bytes of parts that are no text stay."""
    if isinstance(content, bytes):
        return content.decode(errors=errors)
    if isinstance(content, list | tuple):
        return [_content_in_text(part.get("text") if isinstance(part, dict) else part, errors) for part in content]
    return content


def _not_utf8(name: str, row: int, error: UnicodeDecodeError) -> InputError:
    return InputError(f"Row {row}: `{printable(name)}` has bytes that are not UTF-8 (byte {error.start + 1}).")


def text_of(value: Any, name: str) -> str | None:
    """Return a value as text, of a structured one its JSON; ``name`` is that of the column, for messages."""
    return mended(value) if isinstance(value, str) else _json(value, name, _ENCODE)


def _json(value: Any, name: str, encode: Callable[[Any], str]) -> str | None:
    try:
        return None if value is None else encode(value)
    except ValueError as error:  # an integer past the interpreter's limit
        raise InputError(f"A value of `{printable(name)}` cannot be written as JSON: {error}.") from None


def _in_json(value: Any) -> Any:
    """Return what JSON has for a value of another type; null for bytes that are not UTF-8."""
    if isinstance(value, bytes | bytearray):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return None
    return dict(value) if isinstance(value, Mapping) else str(value)


def _marked(value: Any) -> Any:
    """Return ``_in_json``, but for bytes that are not UTF-8 a mark, by which a check that reads them is told."""
    converted = _in_json(value)
    return {BYTES: value.hex()} if converted is None else converted


# made once: ``json.dumps`` makes an encoder for each value
_ENCODE, _ENCODE_MARKED = (json.JSONEncoder(default=default).encode for default in (_in_json, _marked))


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return mended(value)
    if isinstance(value, list | tuple):
        return [_mended(inner) for inner in value]
    if isinstance(value, Mapping):
        return {_mended(key): _mended(inner) for key, inner in value.items()}
    return value
