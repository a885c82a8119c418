"""References: values that each row brings, ``{column: path}`` and ``{template: text}``, in Python and as expressions.

A path leads from a column through structs, lists and JSON text. A null, and a path that a row does not have, give no value.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

import polars as pl

from assay.expressions.json import loads, mended
from assay.expressions.mixed import TYPED, is_typed, untyped, without_nulls
from assay.expressions.shared_columns import exactly, not_hidden, plain, plain_type, row_of, rowwise
from assay.frozen import frozen
from assay.values.paths import ABSENT, Path, find, find_expr, kind_of, missing, outline_of, parse

_PLAIN_LISTS = tuple(map(pl.List, (pl.String, pl.Int8, pl.Int16, pl.Int32, pl.Int64)))
"""Types of lists whose values have the same text in Polars as in Python."""
OF_ROW = "of a row"
"""Context in which ``Params`` reads params that a row brings."""
_HOLE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


def gold_text(value: Any) -> str:
    """Return the text of a gold: a string as it is, else ``str(value)``."""
    return mended(value if isinstance(value, str) else str(value))


def json_text(value: Any) -> str:
    """Return the JSON text of a gold that is JSON: a string as it is, anything else as JSON."""
    return mended(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=_in_json))


def _in_json(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return str(value)


def source_text(value: Any) -> str:
    """Return the text of a value to read: a string as it is, a list or an object as JSON, else ``str(value)``."""
    if isinstance(value, Mapping | list | tuple):
        return mended(json.dumps(value, ensure_ascii=False, default=_in_json))
    return gold_text(value)


@frozen
class Reference:
    """A value that each row brings."""

    parts: tuple[str | Path, ...]
    is_template: bool = False
    is_list: bool = False

    @property
    def paths(self) -> tuple[Path, ...]:
        """The paths, in order."""
        return tuple(part for part in self.parts if isinstance(part, Path))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the paths begin with."""
        return tuple(dict.fromkeys(path.column for path in self.paths))

    def __str__(self) -> str:
        return ", ".join(map(str, self.paths))

    def outline(self) -> dict[str, Any]:
        """Return the reference as it stands in a spec."""
        if not self.is_template:
            return {"column": str(self.parts[0])} | ({"list": True} if self.is_list else {})
        braced = (
            f"{{{part}}}" if isinstance(part, Path) else part.replace("{", "{{").replace("}", "}}")
            for part in self.parts
        )
        return {"template": "".join(braced)}

    def explain(self) -> str:
        """Return which engine reads the value, and why."""
        if self.is_list:
            return "Python, row by row: a list within text"
        if all(path.is_column for path in self.paths):
            return "columns; lists and objects in Python"
        return "columns; where the path leads through text, Python, row by row"

    def row(self, row: Mapping[str, Any]) -> Any:
        """Return the value of a row, None if it has none; of a template, its text: the definition."""
        if self.is_template:
            values = [value_at(row, part) if isinstance(part, Path) else part for part in self.parts]
            return None if None in values else "".join(map(source_text, values))
        value = value_at(row, self.paths[0])
        items = loads(value) if self.is_list and isinstance(value, str) else None
        return items if isinstance(items, list) else value

    def text_expr(self, schema: pl.Schema) -> pl.Expr:
        """Return ``source_text`` of each row's value as a String expression; null where there is none."""
        texts: list[pl.Expr] = []
        for part in self.parts:
            if isinstance(part, str):
                texts.append(pl.lit(part))
            else:
                text = _plain_text(schema, part)
                texts.append(_text_by_row(schema, part) if text is None else text)
        return texts[0] if len(texts) == 1 else pl.concat_str(texts)

    def gold_expr(self, schema: pl.Schema) -> pl.Expr | None:
        """Return ``gold_text`` of each row's value as a String expression, null where there is none; None if it may be a list."""
        if self.is_template:
            return self.text_expr(schema)
        return None if self.is_list else _plain_text(schema, self.paths[0])

    def _values(self, schema: pl.Schema) -> tuple[pl.Expr, Any] | None:
        match = None if self.is_template else find_expr(schema, self.paths[0])
        return None if match is None else (plain(*match), plain_type(match[1]))

    def is_text(self, schema: pl.Schema) -> bool:
        """Return whether each row's value is a text, whatever the row."""
        match = self._values(schema)
        return self.is_template or (match is not None and not self.is_list and isinstance(match[1], pl.String))

    def number_expr(self, schema: pl.Schema) -> pl.Expr | None:
        """Return each row's value as a Float64 expression; None if the values are no numbers in columns."""
        match = self._values(schema)
        is_number = match is not None and not self.is_list and (match[1].is_integer() or match[1].is_float())
        return match[0].cast(pl.Float64) if match is not None and is_number else None

    def number_text_expr(self, schema: pl.Schema, written: Callable[[float], str], where: pl.Expr) -> pl.Expr:
        """Return each row's value of ``number_expr`` as a String expression on some rows; those of a type with fractions are ``written``."""
        match = self._values(schema)
        assert match is not None  # noqa: S101  (they are numbers)
        values = pl.when(where).then(match[0])
        return values.cast(pl.String) if match[1].is_integer() else rowwise(values, written, pl.String)

    def gold_lists_expr(self, schema: pl.Schema) -> pl.Expr | None:
        """Return ``gold_text`` of the values of each row's list as a List(String) expression; None if it takes Python to read them."""
        match = self._values(schema)
        return match[0].cast(pl.List(pl.String)) if match is not None and match[1] in _PLAIN_LISTS else None

    def sizes_expr(self, schema: pl.Schema) -> pl.Expr | None:
        """Return how many items each row's list has, null for null, as an expression; None if the values are no lists in columns."""
        match = self._values(schema)
        return match[0].list.len() if match is not None and isinstance(match[1], pl.List) else None

    def problem(self, schema: pl.Schema) -> tuple[str, str] | None:
        """Return why no row can have a value, with a hint; None if one can."""
        known = pl.Schema({name: schema[name] for name in not_hidden(schema)})
        outlined = outline_of(pl.Struct(dict(known)))
        for path in self.paths:
            on_the_way = [find_expr(known, Path(path.steps[:size])) for size in range(1, len(path.steps))]
            # JSON text or a mapping on the way may have fields that the type does not name
            is_open = any(
                match is not None
                and (_is_text(match[1]) or isinstance(match[1], pl.Map) or match[1] in (TYPED, pl.Null))
                for match in on_the_way
            )
            if kind_of(outlined, path) is None and not is_open:
                error = missing(path, outlined, "The table of rollouts")
                return error.fact, error.hint
        return None


def as_list(value: Any) -> list[Any]:
    """Return the items of a list; any other value as the only item."""
    return value if isinstance(value, list) else [value]


def resolved(value: Any, row: Mapping[str, Any]) -> Any:
    """Return the value of a row that a reference stands for; a literal as it is."""
    return value.row(row) if isinstance(value, Reference) else value


def columns_of(references: Iterable[Reference]) -> tuple[str, ...]:
    """Return the columns that references begin with, each once, in order."""
    return tuple(dict.fromkeys(name for reference in references for name in reference.columns))


def is_reference(value: Any) -> bool:
    """Return whether a param's value refers to the row."""
    return isinstance(value, Mapping) and ({*value} in ({"column"}, {"column", "list"}, {"template"}))


def read_reference(value: Mapping[str, Any]) -> Reference:
    """Read a reference."""
    if "template" in value:
        return _template(value["template"])
    path, is_list = value["column"], value.get("list", False)
    if not isinstance(path, str):
        raise ValueError(f"`column` is the path of a value, a string, not {path!r}")
    if not isinstance(is_list, bool):
        raise ValueError(f"`list` is true or false, not {is_list!r}")
    return Reference((_path(path),), is_list=is_list)


def _template(text: Any) -> Reference:
    if not isinstance(text, str):
        raise ValueError(f"`template` is a text with paths in braces, not {text!r}")
    parts: list[str | Path] = []
    literal, end = "", 0
    for match in _HOLE.finditer(text):
        literal += text[end : match.start()]
        end = match.end()
        if match[0] in ("{{", "}}"):
            literal += match[0][0]
        elif match[1] is None:
            other = "}" if match[0] == "{" else "{"
            raise ValueError(
                f"`{text}` has a `{match[0]}` without its `{other}`: a path stands in braces, as in {{answer}}; "
                f"write `{match[0] * 2}` for the character"
            )
        else:
            parts += [literal, _path(match[1])]
            literal = ""
    parts.append(literal + text[end:])
    return Reference(tuple(part for part in parts if part != ""), is_template=True)


def _path(text: str) -> Path:
    path = parse(text.strip())
    if path.exploded is not None:
        raise ValueError(f"`{text}` has [], which stands for many rows; name one value")
    return path


def value_at(row: Mapping[str, Any], path: Path) -> Any:
    """Return the value at a path of a row, through JSON text; None if there is none."""
    value: Any = row.get(path.column)
    is_json = is_typed(value)
    for step in path.steps[1:]:
        value = untyped(value)
        if isinstance(value, str):
            value, is_json = loads(value), True
        value = find(value, Path((step,)))
        if value is ABSENT:
            return None
    return untyped(value) if is_json or is_typed(value) else without_nulls(value)


def _is_text(dtype: Any) -> bool:
    return isinstance(plain_type(dtype), pl.String)


def _plain_text(schema: pl.Schema, path: Path) -> pl.Expr | None:
    """Return the text at a path; None if it takes Python to read the path, or the value may be a list."""
    match = find_expr(schema, path)
    if match is None:
        return None
    values, dtype = match
    if _is_text(dtype):
        return plain(values, dtype)
    if dtype.is_integer():
        return values.cast(pl.String)
    if dtype == pl.Boolean:
        return pl.when(values).then(pl.lit("True")).when(values.not_()).then(pl.lit("False"))
    return rowwise(values, str, pl.String) if dtype.is_float() else None


def _text_by_row(schema: pl.Schema, path: Path) -> pl.Expr:
    name = path.column
    if name not in schema:
        return pl.lit(None, dtype=pl.String)

    def text_at(row: dict[str, Any]) -> str | None:
        value = value_at(row, path)
        return None if value is None else source_text(value)

    if _is_text(schema[name]):
        texts = plain(exactly(name).alias("value"), schema[name])
        return rowwise(texts, lambda text: text_at({name: text}), pl.String, distinct=True)
    return rowwise(row_of([exactly(name)]), text_at, pl.String)
