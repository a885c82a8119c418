r"""Read chunks of JSON lines with Polars where it provably reads them as Python does.

Given the types of the columns, Polars rejects everything that Python rejects, and most values of other types. The rest has to be
excluded here: Polars ignores unknown keys, keeps the first of duplicate keys, accepts a number where text is expected, and reads a
lone surrogate as NUL.

So every key of a chunk is counted. A pattern matches a key whose value has the form of its type, ``"step": 17``; another matches a
key with null. A string contains no unescaped quote, so a quote followed by a colon, unless it is inside a string, ends a key. If
there are as many keys as matches, all values have their form. Polars cannot read more values than there are; if it has read as many
as were matched, it has missed none, at any depth. If there are nulls, patterns also check that a key occurs once per line.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

_GAP = r"[ \t\r\n]*"
_STRING = r'"(?:[^"\\]|\\.)*"'
_WHOLE = r"-?[0-9]{1,15}"  # a float represents each of them exactly
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
_BACKSLASHED = rf'\\{{2,}}"{_GAP}:'
"""Of an even number of them, none escapes the quote: what looks like a key within a string may be one."""
_ESCAPED = r"\\u[dD][89a-fA-F]"
_HIGH, _LOW = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"


class _NoForm(Exception):  # noqa: N818  (never leaves this module)
    """The values of a type have no form that a pattern can match."""


class Forms:
    """The textual forms of the values of columns in JSON lines."""

    def __init__(self, schema: Mapping[str, pl.DataType], exact: Collection[str] = ()) -> None:
        self.all_types = dict(schema)
        self.schema: dict[str, pl.DataType] = {}
        self._forms: dict[str, str] = {}
        for name, dtype in schema.items():
            try:
                fractions = {pl.Float64(): _BROKEN} if name in exact else {}
                forms = dict(_forms(name, dtype, _FORMS | fractions, _ELEMENTS | fractions))
            except _NoForm:
                continue
            if any(self._forms.get(key, form) != form for key, form in forms.items()):
                continue  # one key with two forms: a pattern cannot distinguish them
            self._forms |= forms
            self.schema[name] = dtype
        values = "|".join(f'{key}"{_GAP}:{_GAP}{form}' for key, form in self._forms.items() if form)
        self._values = f'"(?:{values})' if values else r"[^\s\S]"
        self._nulls = f'"(?:{"|".join(self._forms)})"{_GAP}:{_GAP}null'

    def read(self, data: bytes) -> pl.DataFrame | None:
        """Read a chunk if Polars reads it as Python does and its columns have these types; else return None."""
        if not self.schema:
            return None
        try:
            text = pl.DataFrame({"text": pl.Series([data], dtype=pl.Binary)}).select(pl.col("text").cast(pl.String))
            counts = self._count_values(text)
            if counts is None:
                return None
            frame = parse(data, self.schema)
        except PolarsError:  # not UTF-8, not JSON, or not of these types
            return None
        lines, values = counts
        lines += not data.endswith(b"\n")
        return frame if frame.height == lines and _present(frame) == values else None

    def _count_values(self, text: pl.DataFrame) -> tuple[int, int] | None:
        """Return how many line breaks and values there are; None if the patterns cannot tell."""
        line = pl.col("text").str
        breaks, keys, in_strings, values, backslashed, escaped = text.select(
            line.count_matches("\n", literal=True).alias("breaks"),
            line.count_matches(_KEY_ENDS).alias("keys"),
            line.count_matches(_TEXT_LIKE_KEY_ENDS).alias("inside"),
            line.count_matches(self._values).alias("values"),
            line.extract_all(_BACKSLASHED).alias("backslashed"),
            line.contains(_ESCAPED).alias("escaped"),
        ).row(0)
        if any(run.count("\\") % 2 == 0 for run in backslashed) or (escaped and not _in_pairs(text)):
            return None
        if keys - in_strings > values:
            nulls = text.select(line.count_matches(self._nulls)).item()
            if keys - in_strings != values + nulls or self._may_repeat(text):
                return None
        return (breaks, values) if keys - in_strings >= values else None

    def _may_repeat(self, text: pl.DataFrame) -> bool:
        tests = [pl.col("text").str.contains(f'"{key}"{_GAP}:{_GAP}null').alias(str(at)) for at, key in self._numbered]
        null = [key for (_, key), is_null in zip(self._numbered, text.select(tests).row(0), strict=True) if is_null]
        top = {_pattern(name) for name in self.schema}
        return not top.issuperset(null) or _holds(text, [rf'"{key}"{_GAP}:[^\n]*"{key}"{_GAP}:' for key in null])

    @property
    def _numbered(self) -> list[tuple[int, str]]:
        return list(enumerate(self._forms))


def parse(data: bytes, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Parse JSON lines with Polars, given the types of the columns."""
    return pl.read_ndjson(data, schema=dict(schema))


def fits(proven: Any, target: Any) -> bool:
    """Whether a chunk that provably has values of one type is read the same with another type."""
    if isinstance(proven, pl.List) and isinstance(target, pl.List):
        return fits(proven.inner, target.inner)
    if isinstance(proven, pl.Struct) and isinstance(target, pl.Struct):
        target_fields = dict(target.to_schema())
        return all(
            name in target_fields and fits(dtype, target_fields[name]) for name, dtype in proven.to_schema().items()
        )
    return proven in (target, pl.Null) or (proven == pl.Int64 and target == pl.Float64)


def _forms(
    name: str, dtype: Any, leaves: Mapping[pl.DataType, str], elements: Mapping[Any, str] = _ELEMENTS
) -> Iterator[tuple[str, str]]:
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
    elif isinstance(dtype, pl.List) and dtype.inner in elements:
        element = rf"{_GAP}{elements[dtype.inner]}{_GAP}"
        yield (
            key,
            rf"\[(?:{element}(?:,{element})*|{_GAP})\]",
        )  # commas required, else one long number would match as two
    else:
        raise _NoForm


def _distinct(forms: Iterable[tuple[str, str]], outer: str) -> Iterator[tuple[str, str]]:
    for key, form in forms:
        if key == outer:
            raise _NoForm
        yield key, form


def _pattern(name: str) -> str:
    if json.dumps(name, ensure_ascii=False)[1:-1] != name:
        raise _NoForm
    return "".join(code if code.isalnum() or code == "_" else f"\\x{{{ord(code):X}}}" for code in name)


def _holds(text: pl.DataFrame, patterns: Iterable[str]) -> bool:
    tests = [pl.col("text").str.contains(pattern).alias(str(at)) for at, pattern in enumerate(patterns)]
    return any(text.select(tests).row(0))


def _in_pairs(text: pl.DataFrame) -> bool:
    line = pl.col("text").str
    high, low, pairs, unsure = text.select(
        line.count_matches(_HIGH).alias("high"),
        line.count_matches(_LOW).alias("low"),
        line.count_matches(_HIGH + _LOW).alias("pairs"),
        line.contains(rf"\\{_ESCAPED}").alias("unsure"),
    ).row(0)
    return bool(high == low == pairs and not unsure)


def _present(frame: pl.DataFrame) -> int:
    counts = [_count_present(series) for series in frame]
    return -1 if None in counts else sum(count or 0 for count in counts)


def _count_present(series: pl.Series) -> int | None:
    series = series.alias("values")  # NOTE: methods of a series named "^y$" take its name as a pattern
    present = len(series) - series.null_count()
    if isinstance(series.dtype, pl.Struct):
        counts = [_count_present(field) for field in series.struct.unnest()]
        return None if None in counts else present + sum(count or 0 for count in counts)
    if isinstance(series.dtype, pl.List) and isinstance(series.dtype.inner, pl.Struct):
        elements = series.filter((series.list.len() > 0).fill_null(value=False)).explode().struct.unnest()
        if any(field.null_count() for field in elements):
            return None
        return present + elements.height * elements.width
    return present
