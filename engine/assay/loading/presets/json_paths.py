"""Where a value stands in a record: ``response.body.choices[0].text``, for Python's values and for typed columns.

A path is the name of a column, then any of ``.field``, ``[0]``, ``[-1]`` (from the end) and ``["field with a dot"]``; ``[]``, once,
stands for every element of a list. It may begin with ``$.``. What is not there is null.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import polars as pl

from assay.errors import ColumnsError, did_you_mean, listed
from assay.expressions.lane import exactly, not_hidden

__all__ = [
    "ABSENT",
    "Path",
    "find",
    "find_expr",
    "is_path",
    "kind_of",
    "merged",
    "missing",
    "outline",
    "outline_of",
    "parse",
]

ABSENT = object()
"""What ``find`` returns where a path leads nowhere."""

_EACH = None
_STEP = re.compile(r'\.?(?P<name>[^.\[\]"$]+)|\[(?P<at>-?\d+)\]|\[(?P<quoted>"(?:[^"\\]|\\.)*")\]|(?P<each>\[\])')
_ELEMENTS = 16
"""Elements of a list that an outline looks at."""
_DEPTH = 16
"""Levels that an outline looks at."""


@dataclass(frozen=True)
class Path:
    """A path, read.

    Attributes:
        steps: Names of fields, places in lists, and None for every element.
    """

    steps: tuple[str | int | None, ...]

    def __str__(self) -> str:
        written = "".join(map(_written, self.steps))
        return written.removeprefix(".")

    @property
    def column(self) -> str:
        """The column that it begins with."""
        return str(self.steps[0])

    @property
    def is_column(self) -> bool:
        """Whether it is a column as a whole."""
        return len(self.steps) == 1

    @property
    def exploded(self) -> "Path | None":
        """The list of which it reads every element; None where it reads no such list."""
        return Path(self.steps[: self.steps.index(_EACH)]) if _EACH in self.steps else None

    @property
    def below(self) -> "Path":
        """The rest of it, from an element on; the whole of it where it reads no list."""
        return Path(self.steps[self.steps.index(_EACH) + 1 :]) if _EACH in self.steps else self


def _written(step: str | int | None) -> str:
    if step is _EACH:
        return "[]"
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _STEP.fullmatch(step) and step[0] != "." else f"[{json.dumps(step)}]"


def is_path(given: str) -> bool:
    """Whether an option means a path, not the name of a column: it begins with ``$.`` or ``$[``."""
    return given.startswith(("$.", "$["))


@lru_cache(1024)  # every file is compared with every preset
def parse(written: str) -> Path:
    """A path from how it is written.

    Raises:
        ValueError: It is no path; the message says from where on.
    """
    at = 2 if written.startswith("$.") else int(written.startswith("$["))
    start, steps = at, list[str | int | None]()
    while at < len(written):
        match = _STEP.match(written, at)
        if match is None or (steps and match["name"] and written[at] != ".") or (not steps and written[at] == "."):
            raise ValueError(
                f'`{written}` is no path from `{written[at:]}` on; write a.b, a[0], a[-1], a[] or a["b.c"]'
            )
        if match["each"] and _EACH in steps:
            raise ValueError(f"`{written}` has [] twice; one list is taken apart, not lists of lists")
        name = match["name"] or (json.loads(match["quoted"]) if match["quoted"] else None)
        steps.append(int(match["at"]) if match["at"] else name)
        at = match.end()
    if start == at or not isinstance(steps[0], str):
        raise ValueError(f"`{written}` is no path: it begins with the name of a column")
    return Path(tuple(steps))


def find(value: Any, path: Path) -> Any:
    """The definition.

    Args:
        value: A record, or an element of a list.
        path: A path without ``[]``.

    Returns:
        What stands there, or ``ABSENT``.
    """
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
    """The same as an expression.

    Args:
        schema: The columns.
        path: A path without ``[]``.
        element: Where to begin instead, an expression and its type.

    Returns:
        The values and their type; None where no row can have any.
    """
    steps = path.steps
    if element is None:
        if path.column not in schema:
            return None
        element, steps = (exactly(path.column), schema[path.column]), steps[1:]
    values, dtype = element
    for step in steps:
        if isinstance(step, str):
            fields = dict(dtype.to_schema()) if isinstance(dtype, pl.Struct) else {}
            if step not in fields:
                return None
            values, dtype = values.struct.field(step), fields[step]
            continue
        if isinstance(dtype, pl.Array):
            dtype = pl.List(dtype.inner)
            values = values.cast(dtype)
        if not isinstance(dtype, pl.List) or not isinstance(step, int):
            return None
        values, dtype = values.list.get(step, null_on_oob=True), dtype.inner
    return values, dtype


def outline(value: Any, depth: int = _DEPTH) -> Any:
    """What a value is made of: a mapping of fields, a list with what its elements have in common, a word, or None for null.

    Args:
        value: The value.
        depth: Levels to look at.
    """
    if isinstance(value, Mapping):
        return {str(name): outline(inner, depth - 1) for name, inner in value.items()} if depth else {}
    if isinstance(value, list | tuple):
        return [merged([outline(inner, depth - 1) for inner in value[:_ELEMENTS]]) if depth else None]
    if value is None:
        return None
    return "boolean" if isinstance(value, bool) else "number" if isinstance(value, int | float) else "text"


def outline_of(dtype: Any) -> Any:
    """The outline of a column's values by its type."""
    if isinstance(dtype, pl.Struct):
        return {field.name: outline_of(field.dtype) for field in dtype.fields}
    if isinstance(dtype, pl.List | pl.Array):
        return [outline_of(dtype.inner)]
    if dtype == pl.Null:
        return None
    return "boolean" if dtype == pl.Boolean else "number" if dtype.is_numeric() else "text"


def merged(outlines: Sequence[Any]) -> Any:
    """One outline of several values: the fields of all of them."""
    there = [one for one in outlines if one is not None]
    if not there:
        return None
    if all(isinstance(one, dict) for one in there):
        names = dict.fromkeys(name for one in there for name in one)
        return {name: merged([one.get(name) for one in there]) for name in names}
    if all(isinstance(one, list) for one in there):
        return [merged([one[0] for one in there])]
    return there[0]


def kind_of(outlined: Any, path: Path) -> str | None:
    """``object``, ``list``, ``text``, ``number``, ``boolean`` or ``null``, what stands at a path of an outline; None for nothing."""
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
    """What to say of a path that no record has: up to where it leads, and what there is."""
    ends = (at for at in range(1, len(path.steps) + 1) if kind_of(outlined, Path(path.steps[:at])) is None)
    at = next(ends, len(path.steps))
    before, step = Path(path.steps[: at - 1]), path.steps[at - 1]
    owner = f"`{before}`" if before.steps else where
    inside = outlined
    for one in before.steps:
        inside = inside[one] if isinstance(one, str) else inside[0]
    if isinstance(step, str) and isinstance(inside, dict) and step not in inside:
        hint = did_you_mean(step, inside) or f"There are: {listed(not_hidden(inside))}."
        return ColumnsError(f"{owner} has no `{step}` (in the path `{path}`).", hint)
    kind = kind_of(outlined, before)
    if kind == ("object" if isinstance(step, str) else "list"):
        return ColumnsError(f"No record has a value at `{path}`.")
    return ColumnsError(
        f"{owner} has no {'fields' if isinstance(step, str) else 'elements'}: it is {kind} (in the path `{path}`)."
    )
