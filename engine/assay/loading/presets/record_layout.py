"""How records become rollouts."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cached_property
from typing import Any

import polars as pl

from assay.errors import SHOWN, ColumnsError, InputError
from assay.expressions.mixed import without_nulls
from assay.expressions.shared_columns import exactly, rowwise
from assay.frozen import frozen
from assay.names import BAD, COMPLETION, HIDDEN
from assay.values.paths import ABSENT, Path, find, find_expr, missing, outline_of

_HUGE = 1e150
"""Limit for scores and weights, so that no product overflows."""


@frozen
class Extractor:
    """A named function.

    Attributes:
        dtype: Maps the type of the values to the type of the results; None if such values have no result.
    """

    function: Callable[[Any], Any]
    dtype: Callable[[Any], Any]
    summary: str

    def expr(self, values: pl.Expr, dtype: Any) -> tuple[pl.Expr, Any]:
        """Return the function as an expression, and the type of its results."""
        result = self.dtype(dtype)
        if result is None:
            return pl.lit(None), pl.Null()
        return rowwise(values, self.function, result), result


_ROLES = {"human": "user", "gpt": "assistant", "function_call": "assistant", "observation": "tool"}
"""Roles by the names that ShareGPT has for them; others have the same name."""


def _turns(turns: Any) -> Any:
    if not isinstance(turns, list | tuple) or not all(isinstance(turn, Mapping) for turn in turns):
        return None
    return [
        {
            "role": _ROLES.get(name, name) if isinstance(name := turn.get("from"), str) else None,
            "content": value if isinstance(value := turn.get("value"), str) else None,
        }
        for turn in turns
    ]


def _generated(nodes: Any) -> Any:
    branch: list[
        Mapping[str, Any]
    ] = []  # from the node that was written last to the root; a parent precedes its children
    at: Any = len(nodes) - 1 if isinstance(nodes, list | tuple) else -1
    while type(at) is int and 0 <= at < len(nodes) and isinstance(nodes[at], Mapping):
        branch.insert(0, nodes[at])
        parent = nodes[at].get("parent")
        at = parent if type(parent) is int and parent < at else -1
    sampled = [at for at, node in enumerate(branch) if node.get("sampled") and isinstance(node.get("message"), Mapping)]
    ends = [at for at in sampled if branch[at]["message"].get("role") == "assistant"]
    if not ends:
        return None
    return [node["message"] for node in branch[sampled[0] : ends[-1] + 1] if isinstance(node.get("message"), Mapping)]


def _generated_type(dtype: Any) -> Any:
    node = dtype.inner if isinstance(dtype, pl.List) else None
    message = dict(node.to_schema()).get("message") if isinstance(node, pl.Struct) else None
    return pl.List(message) if isinstance(message, pl.Struct) else None


def _broken_off(trace: Any) -> str | None:
    errors = trace.get("errors") if isinstance(trace, Mapping) and trace.get("is_completed") is not True else None
    if not isinstance(errors, list | tuple):
        return None
    messages = []
    for error in filter(None, errors):
        parts = [error.get("type"), error.get("message")] if isinstance(error, Mapping) else [str(error)]
        messages.append(": ".join(part for part in parts if isinstance(part, str)))
    return "; ".join(filter(None, messages)) or None


def _weighted_sum(rewards: Any) -> float | None:
    terms = []
    for entry in rewards.values() if isinstance(rewards, Mapping) else ():
        if isinstance(entry, Mapping) and _is_number(entry.get("score")):
            weight = entry.get("weight")
            terms.append(float(entry["score"]) * (float(weight) if weight is not None and _is_number(weight) else 1.0))
    return math.fsum(terms) if terms else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) < _HUGE


_CONVERSATION = pl.List(pl.Struct({"role": pl.String, "content": pl.String}))

EXTRACTORS = {
    "one_message": Extractor(
        lambda message: [message] if isinstance(message, Mapping) else None,
        lambda dtype: pl.List(dtype) if isinstance(dtype, pl.Struct) else None,
        "a chat message as a conversation of one",
    ),
    "turns": Extractor(
        _turns,
        lambda dtype: _CONVERSATION if isinstance(dtype, pl.List) and isinstance(dtype.inner, pl.Struct) else None,
        "turns with `from` and `value` as chat messages",
    ),
    "generated": Extractor(
        _generated,
        _generated_type,
        "the last branch of a tree of messages, from the first sampled one to the last sampled one of the assistant",
    ),
    "broken_off": Extractor(
        _broken_off,
        lambda dtype: pl.String() if isinstance(dtype, pl.Struct) else None,
        "the errors of a trace that was not completed",
    ),
    "weighted_sum": Extractor(
        _weighted_sum,
        lambda dtype: pl.Float64() if isinstance(dtype, pl.Struct) else None,
        "Σ score·weight over {name: {score, weight}}",
    ),
    "text_or_json": Extractor(
        lambda value: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str),
        lambda _: pl.String(),
        "text as it is, other values as JSON",
    ),
    "sample_of_uid": Extractor(
        lambda uid: uid.rsplit("_", 2)[0] if isinstance(uid, str) else None,
        lambda dtype: pl.String() if dtype == pl.String else None,
        "SAMPLE of SAMPLE_ROLLOUT_OUTPUT",
    ),
}
"""All extractors by name."""

SAMPLE_IDX = "sample_idx"
"""Column with the index of an element in its list; null for a record whose list is empty."""

_ITEM = HIDDEN + "item"


@frozen
class ValueSource:
    """The source of a value.

    Attributes:
        by: Name of the extractor that converts it; ``""`` for none.
    """

    path: Path
    by: str = ""

    def __str__(self) -> str:
        return f"{self.path} ({self.by})" if self.by else str(self.path)


@frozen
class Field:
    """A column of the rollouts."""

    name: str
    sources: tuple[ValueSource, ...]
    required: bool = False

    @property
    def stays(self) -> bool:
        """Whether the column keeps its name."""
        return self.sources == (ValueSource(Path((self.name,))),)

    def __str__(self) -> str:
        return f"{self.name}={' or '.join(map(str, self.sources))}"


@frozen
class Failure:
    """A value that marks a failed rollout, whose row is unscored.

    Attributes:
        fine: Values that do not mark a failure, besides null.
        by: Name of the extractor that converts the value; ``""`` for none.
    """

    path: Path
    fine: tuple[str | int | bool, ...]
    says: str
    by: str = ""

    def reason(self, value: Any) -> str | None:
        """Return the reason for a value, or None."""
        if value is not ABSENT and value is not None and self.by:
            value = EXTRACTORS[self.by].function(value)
        if value is ABSENT or value is None or value in ("", [], {}) or value in self.fine:
            return None
        text = value if isinstance(value, str) else json.dumps(without_nulls(value), ensure_ascii=False, default=str)
        return f"{self.says} {text[: 4 * SHOWN]}"


@frozen
class Layout:
    """How records become rollouts.

    Attributes:
        only: A column, and its values in the records to read, because others repeat them. None for all records.
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
                f"The lists {' and '.join(f'`{name}[]`' for name in sorted(lists))} cannot both be split into rows."
            )

    @property
    def _paths(self) -> list[Path]:
        sources = (source for field in self.fields for source in field.sources)
        return [*(source.path for source in sources), *(failure.path for failure in self.failures)]

    @cached_property
    def each(self) -> Path | None:
        """The list whose elements are rollouts; None if every record is one rollout."""
        return next((path.exploded for path in self._paths if path.exploded), None)

    @property
    def is_nothing(self) -> bool:
        """Whether the layout changes nothing."""
        moves = not all(field.stays for field in self.fields)
        return not (moves or self.constants or self.drop or self.failures or self.only)

    @property
    def keeps_rows(self) -> bool:
        """Whether there are as many rollouts as records."""
        return self.each is None and self.only is None

    @property
    def is_flat(self) -> bool:
        """Whether it reads only whole columns, so that it can be applied after files are read."""
        return self.keeps_rows and not self.failures and all(path.is_column for path in self._paths)

    @property
    def renamed(self) -> dict[str, str]:
        """Columns that are only renamed: new name, and name in the file."""
        plain = {column.name: column.sources[0] for column in self.fields if not column.sources[0].by}
        return {name: source.path.column for name, source in plain.items() if source.path.is_column}

    @cached_property
    def _removed(self) -> frozenset[str]:
        removed = {path.column for path in self._paths if path.is_column} | set(self.drop)
        removed |= {column.name for column in self.fields} | {name for name, _ in self.constants}
        if self.each:
            removed |= {SAMPLE_IDX, *([self.each.column] if self.each.is_column else [])}
        return frozenset(removed - {column.name for column in self.fields if column.stays})

    def rows(self, record: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the rollouts of a record: one for each element of the list if there is one, and at least one."""
        self._refuse_own_completion(record)
        if self.only is not None and record.get(self.only[0]) not in (None, *self.only[1]):
            return []
        passed = {name: value for name, value in record.items() if name not in self._removed} | dict(self.constants)
        if self.each is None:
            return [passed | self._read(record, ABSENT)]
        items = find(record, self.each)
        if not isinstance(items, list | tuple) or not items:
            unscored = {SAMPLE_IDX: None, BAD: self._reason(record, ABSENT) or self._empty_reason}
            return [passed | self._read(record, ABSENT) | unscored]
        return [passed | {SAMPLE_IDX: at} | self._read(record, item) for at, item in enumerate(items)]

    @property
    def _empty_reason(self) -> str:
        return f"`{self.each}` has no elements"

    def _read(self, record: Mapping[str, Any], item: Any) -> dict[str, Any]:
        values = {column.name: self._value(column, record, item) for column in self.fields if not column.stays}
        if self.each is not None or self.failures:
            values[BAD] = self._reason(record, item)
        return {name: value for name, value in values.items() if value is not ABSENT}

    @staticmethod
    def _value(column: Field, record: Mapping[str, Any], item: Any) -> Any:
        best = ABSENT
        for source in column.sources:
            value = _at(source.path, record, item)
            if value is not ABSENT and value is not None and source.by:
                value = EXTRACTORS[source.by].function(value)
            if value is not ABSENT and value is not None:
                return value
            best = best if value is ABSENT else None
        return best

    def _reason(self, record: Mapping[str, Any], item: Any) -> str | None:
        reasons = (failure.reason(_at(failure.path, record, item)) for failure in self.failures)
        return next((reason for reason in reasons if reason is not None), None)

    def frame(self, records: pl.LazyFrame) -> pl.LazyFrame:
        """Return the rollouts of a frame of records, in order."""
        if self.only is not None:
            column, values = self.only
            records = records.filter(exactly(column).is_null() | exactly(column).is_in(list(values)))
        schema = records.collect_schema()
        self._refuse_own_completion(schema)
        item = None
        if self.each is not None:
            elements, dtype = self._elements(schema)
            count = elements.list.len().fill_null(0)
            indices = pl.int_ranges(0, count, dtype=pl.Int64)
            # NOTE: exploding an empty list would drop the record
            records = records.with_columns(
                pl.when(count > 0).then(elements).alias(_ITEM), pl.when(count > 0).then(indices).alias(SAMPLE_IDX)
            )
            records = records.explode(_ITEM, SAMPLE_IDX)
            item = (pl.col(_ITEM), dtype.inner)
        kept = [exactly(name) for name in schema if name not in self._removed]
        exprs = [self._expr(column, schema, item) for column in self.fields if not column.stays]
        exprs += [pl.lit(value).alias(name) for name, value in self.constants]
        if self.each is not None or self.failures:
            reasons = [self._why_expr(failure, schema, item) for failure in self.failures]
            empty = (
                [] if self.each is None else [pl.when(pl.col(SAMPLE_IDX).is_null()).then(pl.lit(self._empty_reason))]
            )
            exprs.append(
                pl.coalesce(
                    *(reason for reason in reasons if reason is not None), *empty, pl.lit(None, pl.String)
                ).alias(BAD)
            )
        exprs += [] if self.each is None else [pl.col(SAMPLE_IDX)]
        rollouts = records.select(*kept, *(expr for expr in exprs if expr is not None))
        self.check(rollouts.collect_schema(), outline_of(pl.Struct(schema)))
        return self.completed(rollouts)

    def _elements(self, schema: pl.Schema) -> tuple[pl.Expr, Any]:
        match = None if self.each is None else find_expr(schema, self.each)
        if match is None or self.each is None:
            raise missing(self.each or Path(()), outline_of(pl.Struct(schema)), "a record")
        values, dtype = match
        if isinstance(dtype, pl.Array):
            dtype = pl.List(dtype.inner)
            values = values.cast(dtype)
        if dtype == pl.Null:
            dtype = pl.List(pl.Null())
            values = values.cast(dtype)
        if not isinstance(dtype, pl.List):
            raise InputError(f"`{self.each}` is {dtype}, not a list that can be split into rows.")
        return values, dtype

    def _expr(self, column: Field, schema: pl.Schema, item: tuple[pl.Expr, Any] | None) -> pl.Expr | None:
        typed_sources = ((candidate, _typed(candidate, schema, item)) for candidate in column.sources)
        available = [(source, *typed) for source, typed in typed_sources if typed is not None]
        if not available:
            return None
        usable = [candidate for candidate in available if candidate[2] != pl.Null] or available[:1]
        if len({dtype for _, _, dtype in usable}) > 1:
            names = " and ".join(f"`{source.path}` ({dtype})" for source, _, dtype in usable)
            raise ColumnsError(
                f"The sources of `{column.name}` have different types: {names}.",
                f"Name one of them: --map '{column.name}=$.{usable[0][0].path}'",
            )
        return pl.coalesce(*(values for _, values, _ in usable)).alias(column.name)

    @staticmethod
    def _why_expr(failure: Failure, schema: pl.Schema, item: tuple[pl.Expr, Any] | None) -> pl.Expr | None:
        value = _typed(ValueSource(failure.path), schema, item)
        if value is None or value[1] == pl.Null:
            return None
        return rowwise(value[0], failure.reason, pl.String)

    def _refuse_own_completion(self, record: Mapping[str, Any]) -> None:
        if self.sole and COMPLETION in record:
            raise InputError(
                "A record has a `completion` of its own, and those before it have none.",
                "Choose one: --preset NAME, or --preset none to use their own.",
            )

    def check(self, columns: pl.Schema, outlined: Any) -> None:
        """Reject a path that a user named but no record has."""
        for column in self.fields:
            if column.required and column.name not in columns:
                error = missing(column.sources[0].path, outlined, "a record")
                raise ColumnsError(f"{column}: {error.fact}", error.hint)

    def completed(self, rollouts: pl.LazyFrame) -> pl.LazyFrame:
        """Add the columns and types that a plan relies on to rollouts of ``rows`` or ``frame``."""
        schema = rollouts.collect_schema()
        expected = {BAD: pl.String(), SAMPLE_IDX: pl.Int64()} if self.each is not None else {BAD: pl.String()}
        exprs = [pl.col(name).cast(dtype) for name, dtype in expected.items() if schema.get(name, dtype) != dtype]
        if COMPLETION not in schema and any(column.name == COMPLETION for column in self.fields):
            exprs.append(pl.lit(None, pl.String).alias(COMPLETION))
        return rollouts.with_columns(exprs) if exprs else rollouts


def _at(path: Path, record: Mapping[str, Any], item: Any) -> Any:
    return find(item, path.below) if path.exploded else find(record, path)


def _typed(source: ValueSource, schema: pl.Schema, item: tuple[pl.Expr, Any] | None) -> tuple[pl.Expr, Any] | None:
    match = find_expr(schema, source.path.below, item if source.path.exploded else None)
    return match if match is None or not source.by else EXTRACTORS[source.by].expr(*match)
