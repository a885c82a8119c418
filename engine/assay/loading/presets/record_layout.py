"""How records become rollouts: which value is which column, and which list has a rollout in each element.

``rows`` takes one record to its rollouts and is the definition; ``frame`` does the same with typed columns. Columns that a
layout does not name pass through; a column that is read as a whole moves.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl

from assay.errors import SHOWN, ColumnsError, InputError
from assay.expressions.lane import exactly, rowwise
from assay.loading.presets.extractors import EXTRACTORS
from assay.loading.presets.json_paths import ABSENT, Path, find, find_expr, missing, outline_of
from assay.names import BAD, HIDDEN

__all__ = ["SAMPLE_IDX", "Failure", "Field", "Layout", "Source"]

SAMPLE_IDX = "sample_idx"
"""Where an element stood in its list; null for a record whose list has none."""

_COMPLETION = "completion"
_ITEM = HIDDEN + "item"


@dataclass(frozen=True)
class Source:
    """Where a value comes from.

    Attributes:
        path: Where it stands.
        by: Name of the extractor it goes through; ``""`` for none.
    """

    path: Path
    by: str = ""

    def __str__(self) -> str:
        return f"{self.path} ({self.by})" if self.by else str(self.path)


@dataclass(frozen=True)
class Field:
    """A column of the rollouts.

    Attributes:
        name: Its name.
        sources: Where it comes from: the first of them that has a value.
        asked: Whether a user named it, so that it must be there.
    """

    name: str
    sources: tuple[Source, ...]
    asked: bool = False

    @property
    def stays(self) -> bool:
        """Whether it has its name already."""
        return self.sources == (Source(Path((self.name,))),)

    def __str__(self) -> str:
        return f"{self.name}={' or '.join(map(str, self.sources))}"


@dataclass(frozen=True)
class Failure:
    """A value that tells of a rollout that there is none, and so leaves the row unscored.

    Attributes:
        path: Where it stands.
        fine: Values that tell of nothing, besides null.
        says: The reason; the value follows.
        by: Name of the extractor the value goes through; ``""`` for none.
    """

    path: Path
    fine: tuple[str | int | bool, ...]
    says: str
    by: str = ""

    def why(self, value: Any) -> str | None:
        """The reason for a value."""
        if value is not ABSENT and value is not None and self.by:
            value = EXTRACTORS[self.by].function(value)
        if value is ABSENT or value is None or value in ("", [], {}) or value in self.fine:
            return None
        said = value if isinstance(value, str) else json.dumps(_without_nulls(value), ensure_ascii=False, default=str)
        return f"{self.says} {said[: 4 * SHOWN]}"


@dataclass(frozen=True)
class Layout:
    """How records become rollouts.

    Attributes:
        fields: The columns that a record gives.
        constants: Columns that are the same everywhere.
        drop: Columns that do not pass through.
        failures: What leaves a row unscored; the first that holds.
        only: A column, and its values in the records that are read; others repeat them. None for all.
        sole: Whether a record with a completion of its own is refused: nobody said that it gives way.
    """

    fields: tuple[Field, ...]
    constants: tuple[tuple[str, str | int | float | bool], ...] = ()
    drop: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    only: tuple[str, tuple[Any, ...]] | None = field(default=None)
    sole: bool = False

    def __post_init__(self) -> None:
        lists = {str(path.exploded) for path in self._paths if path.exploded}
        if len(lists) > 1:
            raise InputError(
                f"The lists {' and '.join(f'`{one}[]`' for one in sorted(lists))} cannot both be taken apart."
            )

    @property
    def _paths(self) -> list[Path]:
        return [*(one.path for each in self.fields for one in each.sources), *(one.path for one in self.failures)]

    @cached_property
    def each(self) -> Path | None:
        """The list whose elements are rollouts; None where every record is one."""
        return next((path.exploded for path in self._paths if path.exploded), None)

    @property
    def is_nothing(self) -> bool:
        """Whether the rollouts are the records as they are."""
        return all(one.stays for one in self.fields) and not (self.constants or self.drop or self.failures or self.only)

    @property
    def keeps_rows(self) -> bool:
        """Whether there are as many rollouts as records."""
        return self.each is None and self.only is None

    @property
    def is_flat(self) -> bool:
        """Whether columns are all it reads, so that files may be read before it is applied."""
        return self.keeps_rows and not self.failures and all(path.is_column for path in self._paths)

    @property
    def renamed(self) -> dict[str, str]:
        """The columns that only get another name: that, and the one in the file."""
        plain = {one.name: one.sources[0] for one in self.fields if not one.sources[0].by}
        return {name: source.path.column for name, source in plain.items() if source.path.is_column}

    @cached_property
    def _gone(self) -> frozenset[str]:
        """Columns that do not pass through: they move, are dropped, or give way to one that gets their name."""
        moved = {path.column for path in self._paths if path.is_column}
        taken = {one.name for one in self.fields} | {name for name, _ in self.constants}
        taken |= {SAMPLE_IDX} if self.each else set()
        lists = {self.each.column} if self.each and self.each.is_column else set()
        return frozenset((moved | taken | lists | set(self.drop)) - self._staying)

    @cached_property
    def _staying(self) -> frozenset[str]:
        return frozenset(one.name for one in self.fields if one.stays)

    # ── row by row: the definition ──────────────────────────────────────────────────────────────────────────────────

    def rows(self, record: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The rollouts of a record; one for each element of the list, if it reads one, and at least one."""
        self._refuse_another(record)
        if self.only is not None and record.get(self.only[0]) not in (None, *self.only[1]):
            return []
        passed = {name: value for name, value in record.items() if name not in self._gone} | dict(self.constants)
        if self.each is None:
            return [passed | self._read(record, ABSENT)]
        items = find(record, self.each)
        if not isinstance(items, list | tuple) or not items:
            none = {SAMPLE_IDX: None, BAD: self._why(record, ABSENT) or self._nothing}
            return [passed | self._read(record, ABSENT) | none]
        return [passed | {SAMPLE_IDX: at} | self._read(record, item) for at, item in enumerate(items)]

    @property
    def _nothing(self) -> str:
        return f"`{self.each}` has no elements"

    def _read(self, record: Mapping[str, Any], item: Any) -> dict[str, Any]:
        found = {one.name: self._value(one, record, item) for one in self.fields if not one.stays}
        if self.each is not None or self.failures:
            found[BAD] = self._why(record, item)
        return {name: value for name, value in found.items() if value is not ABSENT}

    @staticmethod
    def _value(wanted: Field, record: Mapping[str, Any], item: Any) -> Any:
        best = ABSENT
        for source in wanted.sources:
            value = _at(source.path, record, item)
            if value is not ABSENT and value is not None and source.by:
                value = EXTRACTORS[source.by].function(value)
            if value is not ABSENT and value is not None:
                return value
            best = best if value is ABSENT else None
        return best

    def _why(self, record: Mapping[str, Any], item: Any) -> str | None:
        said = (one.why(_at(one.path, record, item)) for one in self.failures)
        return next((why for why in said if why is not None), None)

    # ── the same as columns ─────────────────────────────────────────────────────────────────────────────────────────

    def frame(self, records: pl.LazyFrame) -> pl.LazyFrame:
        """The rollouts of a frame of records, in order.

        Raises:
            ColumnsError: A path that a user named leads nowhere, or two sources of a column have several types.
        """
        if self.only is not None:
            column, values = self.only
            records = records.filter(exactly(column).is_null() | exactly(column).is_in(list(values)))
        schema = records.collect_schema()
        self._refuse_another(schema)
        item = None
        if self.each is not None:
            elements, dtype = self._elements(schema)
            count = elements.list.len().fill_null(0)
            indices = pl.int_ranges(0, count, dtype=pl.Int64)
            # NOTE: an empty list would explode into no row at all
            records = records.with_columns(
                pl.when(count > 0).then(elements).alias(_ITEM), pl.when(count > 0).then(indices).alias(SAMPLE_IDX)
            )
            records = records.explode(_ITEM, SAMPLE_IDX)
            item = (pl.col(_ITEM), dtype.inner)
        kept = [exactly(name) for name in schema if name not in self._gone]
        made = [self._expr(one, schema, item) for one in self.fields if not one.stays]
        made += [pl.lit(value).alias(name) for name, value in self.constants]
        if self.each is not None or self.failures:
            why = [self._why_expr(one, schema, item) for one in self.failures]
            empty = [] if self.each is None else [pl.when(pl.col(SAMPLE_IDX).is_null()).then(pl.lit(self._nothing))]
            made.append(
                pl.coalesce(*(one for one in why if one is not None), *empty, pl.lit(None, pl.String)).alias(BAD)
            )
        made += [] if self.each is None else [pl.col(SAMPLE_IDX)]
        found = records.select(*kept, *(one for one in made if one is not None))
        self.check(found.collect_schema(), outline_of(pl.Struct(schema)))
        return self.completed(found)

    def _elements(self, schema: pl.Schema) -> tuple[pl.Expr, Any]:
        found = None if self.each is None else find_expr(schema, self.each)
        if found is None or self.each is None:
            raise missing(self.each or Path(()), outline_of(pl.Struct(schema)), "a record")
        values, dtype = found
        if isinstance(dtype, pl.Array):
            dtype = pl.List(dtype.inner)
            values = values.cast(dtype)
        if dtype == pl.Null:
            dtype = pl.List(pl.Null())
            values = values.cast(dtype)
        if not isinstance(dtype, pl.List):
            raise InputError(f"`{self.each}` is {dtype}, not a list that can be taken apart.")
        return values, dtype

    def _expr(self, wanted: Field, schema: pl.Schema, item: tuple[pl.Expr, Any] | None) -> pl.Expr | None:
        asked = ((one, _typed(one, schema, item)) for one in wanted.sources)
        found = [(source, *typed) for source, typed in asked if typed is not None]
        if not found:
            return None
        some = [one for one in found if one[2] != pl.Null] or found[:1]
        if len({dtype for _, _, dtype in some}) > 1:
            said = " and ".join(f"`{source.path}` ({dtype})" for source, _, dtype in some)
            raise ColumnsError(
                f"`{wanted.name}` comes from {said}, which have several types.",
                f"Name one of them: --map '{wanted.name}=$.{some[0][0].path}'",
            )
        return pl.coalesce(*(values for _, values, _ in some)).alias(wanted.name)

    @staticmethod
    def _why_expr(failure: Failure, schema: pl.Schema, item: tuple[pl.Expr, Any] | None) -> pl.Expr | None:
        found = _typed(Source(failure.path), schema, item)
        if found is None or found[1] == pl.Null:
            return None
        return rowwise(found[0], failure.why, pl.String)

    def _refuse_another(self, record: Mapping[str, Any]) -> None:
        if self.sole and _COMPLETION in record:
            raise InputError(
                "A record has a `completion` of its own, and those before it have none.",
                "Say which is meant: --preset NAME, or --preset none for their own.",
            )

    # ── what must hold of the result ────────────────────────────────────────────────────────────────────────────────

    def check(self, columns: pl.Schema, outlined: Any) -> None:
        """Find a path that leads nowhere.

        Args:
            columns: The columns of the rollouts.
            outlined: The outline of the records, for the message.

        Raises:
            ColumnsError: A user named it.
        """
        for one in self.fields:
            if one.asked and one.name not in columns:
                wrong = missing(one.sources[0].path, outlined, "a record")
                raise ColumnsError(f"{one}: {wrong.fact}", wrong.hint)

    def completed(self, rollouts: pl.LazyFrame) -> pl.LazyFrame:
        """Rollouts, made by either face, with the columns and types that a plan relies on."""
        schema = rollouts.collect_schema()
        wanted = {BAD: pl.String(), SAMPLE_IDX: pl.Int64()} if self.each is not None else {BAD: pl.String()}
        made = [pl.col(name).cast(dtype) for name, dtype in wanted.items() if schema.get(name, dtype) != dtype]
        if _COMPLETION not in schema and any(one.name == _COMPLETION for one in self.fields):
            made.append(pl.lit(None, pl.String).alias(_COMPLETION))
        return rollouts.with_columns(made) if made else rollouts


def _at(path: Path, record: Mapping[str, Any], item: Any) -> Any:
    return find(item, path.below) if path.exploded else find(record, path)


def _typed(source: Source, schema: pl.Schema, item: tuple[pl.Expr, Any] | None) -> tuple[pl.Expr, Any] | None:
    found = find_expr(schema, source.path.below, item if source.path.exploded else None)
    return found if found is None or not source.by else EXTRACTORS[source.by].expr(*found)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list | tuple) else value
