r"""The engine's reader for chunks of JSON lines that it provably reads as Python does.

Given the types of the columns, the engine refuses all that Python refuses, and most of what would not be of these types. What it
does not refuse, it must be kept from: it ignores keys that it was not told of, keeps the first of duplicate keys, takes a number
for text where text is due, and a lone surrogate for NUL.

So every key of a chunk is accounted for. A key with a value of its type's form, ``"step": 17``, is found by a pattern; so is one
with null. In no string can a quote stand that is not escaped; so a quote followed by a colon, but not part of a string, ends a key.
When the keys are as many as the found ones, all values have their form. The engine cannot read more values than there are; when
it has read as many as were found, it has overlooked none, at no depth. With nulls, that a key occurs once a line is looked for.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

__all__ = ["Forms", "fits", "parse"]

_GAP = r"[ \t\r\n]*"
_STRING = r'"(?:[^"\\]|\\.)*"'
_WHOLE = r"-?[0-9]{1,15}"  # a float holds each of them
_BROKEN = r"-?[0-9]+[.eE][0-9.eE+-]*"
_FORMS: dict[pl.DataType, str] = {
    pl.String(): '"',
    pl.Boolean(): "[tf]",
    pl.Int64(): rf"-?[0-9]{{1,19}}{_GAP}[,}}]",
    pl.Float64(): rf"(?:{_BROKEN}|{_WHOLE}{_GAP}[,}}])",
}
_NESTED = _FORMS | {pl.Int64(): rf"{_WHOLE}{_GAP}[,}}]"}
_ELEMENTS: dict[Any, str] = {
    pl.String(): _STRING,
    pl.Boolean(): "(?:true|false)",
    pl.Int64(): _WHOLE,
    pl.Float64(): f"(?:{_BROKEN}|{_WHOLE})",
}
_KEY_ENDS = rf'"{_GAP}:'
_TEXT_LIKE_KEY_ENDS = rf'\\"{_GAP}:'
_BACKSLASHED = (
    rf'\\\\"{_GAP}:',
    rf'[^\\](?:\\\\)+"{_GAP}:',
)  # the first finds where it is worth to look for the second
_ESCAPED = r"\\u[dD][89a-fA-F]"
_HIGH, _LOW = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"


class _NoForm(Exception):  # noqa: N818  (never leaves this module)
    """Values of a type have no form that a pattern can find."""


class Forms:
    """What the values of columns look like in the lines.

    Attributes:
        given: Columns and their types.
        schema: Those that have a form.

    Args:
        schema: Columns and their types. Columns of types without a form are left out; a chunk that has them is not read.
        golds: Columns in which an integer is no float.
    """

    def __init__(self, schema: Mapping[str, pl.DataType], golds: Collection[str] = ()) -> None:
        self.given = dict(schema)
        self.schema: dict[str, pl.DataType] = {}
        self._forms: dict[str, str] = {}
        for name, dtype in schema.items():
            try:
                found = dict(_forms(name, dtype, _FORMS | ({pl.Float64(): _BROKEN} if name in golds else {})))
            except _NoForm:
                continue
            if any(self._forms.get(key, form) != form for key, form in found.items()):
                continue  # one key, two forms: only one of them can be told
            self._forms |= found
            self.schema[name] = dtype
        values = "|".join(f'{key}"{_GAP}:{_GAP}{form}' for key, form in self._forms.items() if form)
        self._values = f'"(?:{values})' if values else r"[^\s\S]"
        self._nulls = f'"(?:{"|".join(self._forms)})"{_GAP}:{_GAP}null'

    def read(self, data: bytes) -> pl.DataFrame | None:
        """A chunk, if the engine reads it as Python does, all its columns being of these types; else None."""
        if not self.schema:
            return None
        try:
            text = pl.DataFrame({"text": pl.Series([data], dtype=pl.Binary)}).select(pl.col("text").cast(pl.String))
            found = self._found(text)
            if found is None:
                return None
            frame = parse(data, self.schema)
        except PolarsError:  # not UTF-8, not JSON, or not of these types
            return None
        lines = data.count(b"\n") + (not data.endswith(b"\n"))
        return frame if frame.height == lines and _present(frame) == found else None

    def _found(self, text: pl.DataFrame) -> int | None:
        """How many values other than null the chunk has; None where a key has something else, or may stand twice."""
        line = pl.col("text").str
        keys, inside, found, backslashed, escaped = text.select(
            line.count_matches(_KEY_ENDS).alias("keys"),
            line.count_matches(_TEXT_LIKE_KEY_ENDS).alias("inside"),
            line.count_matches(self._values).alias("values"),
            line.contains(_BACKSLASHED[0]).alias("backslashed"),
            line.contains(_ESCAPED).alias("escaped"),
        ).row(0)
        if (backslashed and _holds(text, [_BACKSLASHED[1]])) or (escaped and not _in_pairs(text)):
            return None
        if keys - inside > found:
            nulls = text.select(line.count_matches(self._nulls)).item()
            if keys - inside != found + nulls or self._may_be_twice(text):
                return None
        return found if keys - inside >= found else None

    def _may_be_twice(self, text: pl.DataFrame) -> bool:
        """Whether a key that is null somewhere may stand twice in an object."""
        asked = [pl.col("text").str.contains(f'"{key}"{_GAP}:{_GAP}null').alias(str(at)) for at, key in self._numbered]
        null = [key for (_, key), is_null in zip(self._numbered, text.select(asked).row(0), strict=True) if is_null]
        top = {_pattern(name) for name in self.schema}
        return not top.issuperset(null) or _holds(text, [rf'"{key}"{_GAP}:[^\n]*"{key}"{_GAP}:' for key in null])

    @property
    def _numbered(self) -> list[tuple[int, str]]:
        return list(enumerate(self._forms))


def parse(data: bytes, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """The engine's reader, of columns whose types are known.

    Raises:
        PolarsError: It cannot read them.
    """
    return pl.read_ndjson(data, schema=dict(schema))


def fits(one: Any, other: Any) -> bool:
    """Whether values of a type that a chunk was proved to have are read the same as values of another."""
    if isinstance(one, pl.List) and isinstance(other, pl.List):
        return fits(one.inner, other.inner)
    if isinstance(one, pl.Struct) and isinstance(other, pl.Struct):
        theirs = dict(other.to_schema())
        return all(name in theirs and fits(dtype, theirs[name]) for name, dtype in one.to_schema().items())
    return one in (other, pl.Null) or (one == pl.Int64 and other == pl.Float64)


def _forms(name: str, dtype: Any, leaves: Mapping[pl.DataType, str]) -> Iterator[tuple[str, str]]:
    """The keys that a column has, as patterns, each with the pattern of its values; ``""`` where all are null."""
    key = _pattern(name)
    if dtype == pl.Null:
        yield key, ""
    elif dtype in leaves:
        yield key, leaves[dtype]
    elif isinstance(dtype, pl.Struct) and dtype.fields:
        yield key, r"\{"
        for field, inner in dtype.to_schema().items():
            yield from _distinct(_forms(field, inner, _NESTED), key)
    elif isinstance(dtype, pl.List) and isinstance(dtype.inner, pl.Struct) and dtype.inner.fields:
        yield key, r"\["
        for field, leaf in dtype.inner.to_schema().items():
            if leaf not in _NESTED:
                raise _NoForm
            yield from _distinct(_forms(field, leaf, _NESTED), key)
    elif isinstance(dtype, pl.List) and dtype.inner in _ELEMENTS:
        element = rf"{_GAP}{_ELEMENTS[dtype.inner]}{_GAP}"
        yield key, rf"\[(?:{element}(?:,{element})*|{_GAP})\]"  # with commas between, else long numbers pass as two
    else:
        raise _NoForm


def _distinct(forms: Iterable[tuple[str, str]], outer: str) -> Iterator[tuple[str, str]]:
    for key, form in forms:
        if key == outer:
            raise _NoForm
        yield key, form


def _pattern(name: str) -> str:
    """A name as a pattern for the key that it is, written without escapes."""
    if json.dumps(name, ensure_ascii=False)[1:-1] != name:
        raise _NoForm
    return "".join(code if code.isalnum() or code == "_" else f"\\x{{{ord(code):X}}}" for code in name)


def _holds(text: pl.DataFrame, patterns: Iterable[str]) -> bool:
    tests = [pl.col("text").str.contains(pattern).alias(str(at)) for at, pattern in enumerate(patterns)]
    return any(text.select(tests).row(0))


def _in_pairs(text: pl.DataFrame) -> bool:
    """Whether each escape of a surrogate is half of a pair, for certain."""
    line = pl.col("text").str
    high, low, pairs, unsure = text.select(
        line.count_matches(_HIGH).alias("high"),
        line.count_matches(_LOW).alias("low"),
        line.count_matches(_HIGH + _LOW).alias("pairs"),
        line.contains(rf"\\{_ESCAPED}").alias("unsure"),
    ).row(0)
    return bool(high == low == pairs and not unsure)


def _present(frame: pl.DataFrame) -> int:
    """How many values other than null a frame has, at any depth; -1 where a list has structs with a null."""
    counts = [_counted(series) for series in frame]
    return -1 if None in counts else sum(count or 0 for count in counts)


def _counted(series: pl.Series) -> int | None:
    there = len(series) - series.null_count()
    if isinstance(series.dtype, pl.Struct):
        counts = [_counted(one) for one in series.struct.unnest()]
        return None if None in counts else there + sum(count or 0 for count in counts)
    if isinstance(series.dtype, pl.List) and isinstance(series.dtype.inner, pl.Struct):
        elements = series.filter((series.list.len() > 0).fill_null(value=False)).explode().struct.unnest()
        if any(one.null_count() for one in elements):
            return None
        return there + elements.height * elements.width
    return there
