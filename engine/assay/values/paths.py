"""Paths to values in a record, such as ``response.body.choices[0].text``, for Python values and for typed columns.

A path is the name of a column, then any of ``.field``, ``[0]``, ``[-1]`` (from the end) and ``["field with a dot"]``; ``[]``, once,
stands for every element of a list. It may begin with ``$.``. A missing value is null.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import polars as pl

from assay.errors import ColumnsError, did_you_mean, listed
from assay.expressions.shared_columns import exactly, field_of, not_hidden
from assay.frozen import frozen

ABSENT = object()
"""Returned by ``find`` if there is no value at the path."""

_EACH = None
_STEP = re.compile(r'\.?(?P<name>[^.\[\]"$]+)|\[(?P<at>-?\d+)\]|\[(?P<quoted>"(?:[^"\\]|\\.)*")\]|(?P<each>\[\])')
_ELEMENTS = 16
"""Elements of a list that an outline looks at."""
_DEPTH = 16
"""Levels that an outline looks at."""


@frozen
class Path:
    """A parsed path."""

    steps: tuple[str | int | None, ...]

    def __str__(self) -> str:
        text = "".join(map(_step_text, self.steps))
        return text.removeprefix(".")

    @property
    def column(self) -> str:
        """The column that the path begins with."""
        return str(self.steps[0])

    @property
    def is_column(self) -> bool:
        """Whether the path is a whole column."""
        return len(self.steps) == 1

    @property
    def exploded(self) -> "Path | None":
        """The path of the list whose elements it reads; None if there is no ``[]``."""
        return Path(self.steps[: self.steps.index(_EACH)]) if _EACH in self.steps else None

    @property
    def below(self) -> "Path":
        """The path from an element of that list on; the whole path if there is no ``[]``."""
        return Path(self.steps[self.steps.index(_EACH) + 1 :]) if _EACH in self.steps else self


def _step_text(step: str | int | None) -> str:
    if step is _EACH:
        return "[]"
    if isinstance(step, int):
        return f"[{step}]"
    # the characters in brackets are escaped, so that a path is one line and nothing in it moves a terminal's cursor
    match = _STEP.fullmatch(step)
    is_bare = match and match["name"] == step and step.isprintable() and step == step.strip()
    return f".{step}" if is_bare else f"[{json.dumps(step)}]"


def is_path(text: str) -> bool:
    """Whether an option is a path rather than the name of a column: it begins with ``$.`` or ``$[``."""
    return text.startswith(("$.", "$["))


@lru_cache(1024)  # every file is compared with every preset
def parse(text: str) -> Path:
    """Parse a path."""
    steps = _steps(text)
    if not steps or not isinstance(steps[0], str):
        raise ValueError(f"`{text}` is not a valid path: a path begins with the name of a column")
    return Path(steps)


@lru_cache(1024)
def parse_within(text: str) -> Path:
    """Parse a path that begins at a value, not at a column: it may begin with an index, and has no ``[]``."""
    steps = _steps(text)
    if not steps or _EACH in steps:
        raise ValueError(f'`{text}` is not the path of one value; write a.b, a[0], [0].a, a[-1] or a["b.c"]')
    return Path(steps)


@lru_cache(1024)
def parse_many(text: str) -> Path:
    """Parse a path that begins at a value, not at a column, and may have a ``[]``."""
    steps = _steps(text)
    if not steps:
        raise ValueError(f'`{text}` is not a path within a value; write a.b, a[0], a[-1], a[].b or a["b.c"]')
    return Path(steps)


def _steps(text: str) -> tuple[str | int | None, ...]:
    at = 2 if text.startswith("$.") else int(text.startswith("$["))
    steps = list[str | int | None]()
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None or (steps and match["name"] and text[at] != ".") or (not steps and text[at] == "."):
            raise ValueError(
                f'`{text}` is not a valid path, from `{text[at:]}` on; write a.b, a[0], a[-1], a[] or a["b.c"]'
            )
        if match["each"] and _EACH in steps:
            raise ValueError(f"`{text}` has [] twice; only one list can be split into rows")
        name = match["name"] or (json.loads(match["quoted"]) if match["quoted"] else None)
        steps.append(int(match["at"]) if match["at"] else name)
        at = match.end()
    return tuple(steps)


def find(value: Any, path: Path) -> Any:
    """Return the value at a path; this is the definition."""
    for step in path.steps:
        if isinstance(step, str):
            value = value.get(step, ABSENT) if isinstance(value, Mapping) else ABSENT
        elif isinstance(value, list | tuple) and isinstance(step, int) and -len(value) <= step < len(value):
            value = value[step]
        else:
            value = ABSENT
        if value is ABSENT or value is None:
            return value
    return value


def find_expr(schema: pl.Schema, path: Path, element: tuple[pl.Expr, Any] | None = None) -> tuple[pl.Expr, Any] | None:
    """``find`` as an expression."""
    steps = path.steps
    if element is None:
        if path.column not in schema:
            return None
        # NOTE: as a series, it would take a name such as "^a$" for a pattern
        element, steps = (exactly(path.column).alias("value"), schema[path.column]), steps[1:]
    values, dtype = element
    for step in steps:
        if isinstance(step, str):
            fields = dict(dtype.to_schema()) if isinstance(dtype, pl.Struct) else {}
            if step not in fields:
                return None
            values, dtype = field_of(values, dtype, step), fields[step]
            continue
        if isinstance(dtype, pl.Array):
            dtype = pl.List(dtype.inner)
            values = values.cast(dtype)
        if not isinstance(dtype, pl.List) or not isinstance(step, int):
            return None
        values, dtype = values.list.get(step, null_on_oob=True), dtype.inner
    return values, dtype


def outline(value: Any, depth: int = _DEPTH) -> Any:
    """Return the structure of a value: a mapping of fields, a list with the merged outline of its elements, a word, or None for null."""
    if isinstance(value, Mapping):
        return {str(name): outline(inner, depth - 1) for name, inner in value.items()} if depth else {}
    if isinstance(value, list | tuple):
        return [merged([outline(inner, depth - 1) for inner in value[:_ELEMENTS]]) if depth else None]
    if value is None:
        return None
    return "boolean" if isinstance(value, bool) else "number" if isinstance(value, int | float) else "text"


def outline_of(dtype: Any) -> Any:
    """Return the outline of a column's values, from its type."""
    if isinstance(dtype, pl.Struct):
        return {field.name: outline_of(field.dtype) for field in dtype.fields}
    if isinstance(dtype, pl.List | pl.Array):
        return [outline_of(dtype.inner)]
    if dtype == pl.Null:
        return None
    return "boolean" if dtype == pl.Boolean else "number" if dtype.is_numeric() else "text"


def merged(outlines: Sequence[Any]) -> Any:
    """Merge the outlines of several values: the fields of all of them."""
    present = [item for item in outlines if item is not None]
    if not present:
        return None
    if all(isinstance(item, dict) for item in present):
        names = dict.fromkeys(name for item in present for name in item)
        return {name: merged([item.get(name) for item in present]) for name in names}
    if all(isinstance(item, list) for item in present):
        return [merged([item[0] for item in present])]
    return present[0]


def kind_of(outlined: Any, path: Path) -> str | None:
    """Return ``object``, ``list``, ``text``, ``number``, ``boolean`` or ``null`` for a path of an outline; None if there is no value."""
    for step in path.steps:
        if isinstance(step, str):
            if not isinstance(outlined, dict) or step not in outlined:
                return None
            outlined = outlined[step]
        elif isinstance(outlined, list):
            outlined = outlined[0]
        else:
            return None
    if isinstance(outlined, dict | list):
        return "object" if isinstance(outlined, dict) else "list"
    return outlined or "null"


def missing(path: Path, outlined: Any, where: str) -> ColumnsError:
    """Return the error for a path that no record has: how far it leads, and what is there."""
    ends = (at for at in range(1, len(path.steps) + 1) if kind_of(outlined, Path(path.steps[:at])) is None)
    at = next(ends, len(path.steps))
    prefix, step = Path(path.steps[: at - 1]), path.steps[at - 1]
    owner = f"`{prefix}`" if prefix.steps else where
    inside = outlined
    for inner_step in prefix.steps:
        inside = inside[inner_step] if isinstance(inner_step, str) else inside[0]
    if isinstance(step, str) and isinstance(inside, dict) and step not in inside:
        hint = did_you_mean(step, inside) or f"Columns: {listed(not_hidden(inside))}."
        return ColumnsError(f"{owner} has no `{Path((step,))}` (in the path `{path}`).", hint)
    kind = kind_of(outlined, prefix)
    if kind == ("object" if isinstance(step, str) else "list"):
        return ColumnsError(f"No record has a value at `{path}`.")
    return ColumnsError(
        f"{owner} has no {'fields' if isinstance(step, str) else 'elements'}: it is {kind} (in the path `{path}`)."
    )
