"""Rows of results as what rules compare: numbers and flags of each row, never its texts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import reduce
from typing import Any

import polars as pl

from assay.aggregating.outcomes import SIGNS
from assay.errors import InputError, UsageError, did_you_mean, listed
from assay.expressions.shared_columns import exactly
from assay.frozen import frozen
from assay.insight.exporting.prompts import Prompts, messages_of
from assay.insight.exporting.settings import Settings
from assay.insight.exporting.targets import MORE_THAN_TEXT, NOT_ONE_TEXT, forms_of_target
from assay.insight.integrity.prompts import PROMPTS, Codes, compact, gold_texts, readable_values
from assay.insight.originals import HOW, WholeRows, whole_rows
from assay.insight.probes import GOLDS
from assay.insight.reports.showing import condition
from assay.insight.results import ROW, Result
from assay.names import COMPLETION, HIDDEN
from assay.writing.provenance import files_of

_REASONING = ("reasoning", "reasoning_content")
_OF_TASKS = ("data_source", "datasource", "ability")
_WHERE = HIDDEN + "where"
_RENDERED_BY = "verl-dump"

ROWS = {
    "reward": pl.Float64,
    "passed": pl.Boolean,
    "where": pl.Boolean,
    "error": pl.UInt32,
    "task": pl.UInt32,
    "group": pl.UInt32,
    "prompt": pl.UInt32,
    "gold": pl.UInt32,
    "answer": pl.UInt32,
    "form": pl.UInt8,
    "truncated": pl.Boolean,
    "text": pl.UInt64,
    "length": pl.UInt32,
}
"""Columns of ``Rows.frame``: numbers stand for what is equal. ``text`` is null where it is blank, ``length`` where it is unknown.

NOTE: each byte of a row is ten megabytes of ten million rows; the place of a row says which one it is.
"""


@frozen
class Asking:
    """What an export is asked for, beside its settings."""

    where: Sequence[str] = ()
    task: Sequence[str] = ()
    group: Sequence[str] = ()
    length: str | None = None
    rollouts: Any = None
    tasks: Any = None
    prompt: str | None = None
    keep: Sequence[str] = ()


@frozen
class Rows:
    """The rows of results.

    Attributes:
        frame: One row for each, in order of the results and of their rows, with those columns of ``ROWS`` that are read.
        starts: Of each result, the place of its first row.
        tasks, errors: The texts that numbers in these columns stand for.
        units: The number of a prompt whose white space is joined, where that makes it another one.
        policies: The values of ``model`` and of ``step`` in the rows that ``where`` keeps.
    """

    sources: "list[Source]"
    frame: pl.DataFrame
    starts: pl.Series
    tasks: pl.Series
    errors: pl.Series
    units: Mapping[int, int]
    policies: Mapping[str, set[str]]

    def place(self, at: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
        """Return the result of rows and their place in it, both from 0."""
        result = pl.lit(self.starts).search_sorted(at, side="right") - 1
        return result, at - pl.lit(self.starts).gather(result)


@frozen
class _Numbers:
    """What the numbers of rows stand for, while results are read."""

    prompts: Prompts
    tasks: Codes = field(default_factory=lambda: Codes(str))
    errors: Codes = field(default_factory=lambda: Codes(str))
    groups: Codes = field(default_factory=Codes)
    golds: Codes = field(default_factory=Codes)
    answers: Codes = field(default_factory=Codes)
    policies: dict[str, set[str]] = field(default_factory=lambda: {"model": set(), "step": set()})


def read(results: Sequence[Result], settings: Settings, asking: Asking, notes: list[str]) -> Rows:
    """Read results once."""
    sources = [Source(result, settings, asking, notes) for result in results]
    numbers = _Numbers(Prompts(forms_of_target(settings)))
    parts, starts = list[pl.DataFrame](), list[int]()
    for at, source in enumerate(sources):
        starts.append(sum(part.height for part in parts))
        parts += [_numbered(numbers, source, batch, at) for batch in source.batches()]
    return Rows(
        sources,
        pl.concat(parts),
        pl.Series(starts, dtype=pl.UInt32),
        numbers.tasks.texts,
        numbers.errors.texts,
        numbers.prompts.units,
        numbers.policies,
    )


class Source:
    """A result with what a row is made of: the columns of its texts, prompts, golds, tasks and groups."""

    def __init__(self, result: Result, settings: Settings, asking: Asking, notes: list[str]) -> None:
        self.result, self.settings, self.asking = result, settings, asking
        self.reads_text = settings["recipe"] != "prompts"
        if "passed" not in result.schema:
            raise InputError(f"{result.name}: no column `passed`, which says which rows pass.")
        condition_of = [condition(result, text, notes) for text in asking.where]
        where = reduce(pl.Expr.and_, condition_of, pl.lit(value=True)).fill_null(value=False)
        # over all rows at once, because it may compare a row with others
        rows = result.frame.with_columns(where.alias(_WHERE)).select(_WHERE)
        self.where = result.collect(rows)[_WHERE] if condition_of else None
        self.whole = self._whole()
        schema = self.whole.schema
        named = [asking.prompt] if asking.prompt else [name for name in PROMPTS if name in schema]
        self.prompts = [name for name in named if name in schema]
        if not self.prompts:
            raise InputError(f"{result.name}: has no prompts{self._why}.", f"Name a column with --prompt, or {HOW}.")
        self.golds = [name for name in GOLDS if name in schema]
        self.tasks = result.tasks(asking.task)
        if not self.tasks:
            notes.append(f"{result.name}: no column names the task of a row: its prompt does; --task COLUMN names one")
        self.group = result.keys(asking.group, "--group")
        self.writers = result.present(("model", "step")) if settings["recipe"] == "dpo" and not self.group else ()
        self._refuse_rendered()

    def _whole(self) -> WholeRows:
        asking, answer = self.asking, self.settings.get("answer")
        wanted = [*((asking.prompt,) if asking.prompt else self._lacking_prompts()), *GOLDS, *asking.keep]
        wanted += [COMPLETION, *SIGNS] if self.reads_text else []
        wanted += [name for name in (answer, asking.length) if name]
        wanted += _OF_TASKS if self.settings["recipe"] == "prompts" else ()
        first = () if asking.prompt else ("prompt",)
        whole, why = whole_rows(self.result, [*dict.fromkeys(wanted)], asking.rollouts, asking.tasks, first)
        self._why = f": {why}" if why else ""
        options = [
            ("--prompt", [asking.prompt]),
            ("answer", [answer]),
            ("--length", [asking.length]),
            ("--keep", asking.keep),
        ]
        for option, names in options:
            for name in names:
                if name and name not in whole.schema:
                    columns = [column for column in whole.schema if not column.startswith(HIDDEN)]
                    hint = did_you_mean(name, columns) or f"Columns: {listed(columns)}"
                    raise UsageError(f"{option} {name}: {self.result.name} has no such column.", hint)
        if self.reads_text and COMPLETION not in whole.schema:
            raise InputError(f"{self.result.name}: its texts cannot be had{self._why}.", f"{HOW.capitalize()}.")
        if asking.length and not whole.schema[asking.length].is_integer():
            dtype = whole.schema[asking.length]
            raise UsageError(f"--length {asking.length}: expected whole numbers, not {dtype}.")
        return whole

    def _lacking_prompts(self) -> Sequence[str]:
        return () if {*PROMPTS} & {*self.result.schema} else PROMPTS

    def _refuse_rendered(self) -> None:
        """Refuse prompts that a trainer has rendered and stripped of the marks of its template."""
        read_as = [str(entry.get("read_as") or "") for entry in files_of(self.result.provenance)]
        is_rendered = any(text.removeprefix("read as ").startswith(_RENDERED_BY) for text in read_as)
        if is_rendered and self.settings["format"] != "text" and not (self.asking.tasks or self.asking.prompt):
            fact = (
                f"{self.result.name}: its prompts are rendered templates of verl, without the marks of their messages."
            )
            raise InputError(
                fact, "Name a table with the prompts (--tasks), a column (--prompt), or the setting format: text."
            )

    @property
    def text(self) -> pl.Expr:
        """The scored text."""
        return self.result.text_of(self.whole.schema[COMPLETION])

    def batches(self) -> Iterator[pl.DataFrame]:
        """Yield what is numbered."""
        schema, asking = self.whole.schema, self.asking
        error = exactly("error").cast(pl.String) if "error" in schema else pl.lit(None, pl.String)
        names = dict.fromkeys((*self.prompts, *self.golds, *self.tasks, *self.group, *self.writers, *self._policies))
        names |= dict.fromkeys([self.settings["answer"]] if self.settings.get("answer") else [])
        columns = {"reward": pl.col("reward"), "passed": pl.col("passed"), "error": error}
        if self.reads_text:
            is_blank = self.text.str.contains(r"[^\s\x1c-\x1f]").not_()
            ended = self.result.cut_off(schema)
            columns |= {
                "truncated": pl.lit(value=False) if ended is None else ended.fill_null(value=False),
                "blank": is_blank.fill_null(value=True),
                "text": self.text.hash(),
                "length": exactly(asking.length) if asking.length else self.text.str.len_chars(),
                "form": _form_of_completion(schema[COMPLETION], drops=self.settings["reasoning"] == "drop"),
            }
        own = [expr.alias(HIDDEN + name) for name, expr in columns.items()]
        yield from self.whole.batches(pl.col(ROW), *own, *map(exactly, names), check=True)

    @property
    def _policies(self) -> tuple[str, ...]:
        return self.result.present(("model", "step")) if self.settings["recipe"] == "prompts" else ()


def _numbered(numbers: _Numbers, source: Source, batch: pl.DataFrame, at: int) -> pl.DataFrame:
    """Return a batch with columns of ``ROWS``."""
    own = {name.removeprefix(HIDDEN): batch[name] for name in batch.columns if name.startswith(HIDDEN)}
    where = None if source.where is None else source.where.gather(own["row"])
    prompts = prompts_of(numbers.prompts, batch, source.prompts)
    keys = _keys(batch, source.tasks) if source.tasks else _keys(prompts, ("name",))
    task = numbers.tasks.of(keys)
    group = task
    if source.group:
        result = [at] if source.settings["recipe"] == "dpo" else []
        group = numbers.groups.of(_keys(batch, source.group, result, nulls=True))
    elif source.settings["recipe"] == "dpo":
        writers = _keys(batch, source.writers, nulls=True) if source.writers else pl.lit("[]")
        names = pl.concat_str(pl.lit(f"[{at},"), keys, pl.lit(","), writers, pl.lit("]"))
        group = numbers.groups.of(pl.select(names).to_series())
    golds = [gold_texts(batch[name]) for name in source.golds]
    gold = (
        pl.select(pl.coalesce(golds)).to_series()
        if golds
        else pl.repeat(None, batch.height, dtype=pl.String, eager=True)
    )
    answer = source.settings.get("answer")
    for name in source._policies:  # noqa: SLF001
        values = (batch[name] if where is None else batch[name].filter(where)).drop_nulls().unique()
        numbers.policies[name] |= {compact(value) for value in values.to_list()}
    columns = {
        "reward": own["reward"],
        "passed": own["passed"],
        "where": True if where is None else where,
        "error": numbers.errors.of(own["error"]),
        "task": task,
        "group": group,
        "prompt": prompts["prompt"],
        "gold": numbers.golds.of(gold),
        "form": prompts["form"],
    }
    if answer:
        columns["answer"] = numbers.answers.of(readable_values(batch[answer])[0])
    if source.reads_text:
        columns["form"] = prompts["form"].zip_with(prompts["form"] != 0, own["form"])
        columns["text"] = own["text"].set(own["blank"], None)
        columns |= {name: own[name] for name in ("truncated", "length")}
    types = ROWS | ({"length": pl.Int64} if source.asking.length else {})
    return pl.DataFrame(columns).cast({name: types[name] for name in columns})


def prompts_of(prompts: Prompts, batch: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return the prompts of rows: of each, the first column that is not null."""
    first, *others = names
    known = prompts.of(batch[first])
    for name in others:
        is_there, other = batch[first].is_not_null(), prompts.of(batch[name])
        known = known.with_columns(known[column].zip_with(is_there, other[column]) for column in known.columns)
    return known


def asked_messages(batch: pl.DataFrame, names: Sequence[str]) -> pl.Series:
    """Return the prompts of rows as messages."""
    return pl.select(pl.coalesce([messages_of(batch[name]) for name in names])).to_series()


def _keys(batch: pl.DataFrame, names: Sequence[str], before: Sequence[Any] = (), *, nulls: bool = False) -> pl.Series:
    """Return the values of columns as compact JSON, a list; null where one of them is null, unless ``nulls`` counts as a value."""
    columns = batch.select(map(exactly, names))
    distinct = columns.unique(maintain_order=True)
    if not nulls:
        distinct = distinct.drop_nulls()
    keys = [compact([*before, *row]) for row in distinct.iter_rows()]
    table = distinct.with_columns(pl.Series(HIDDEN + "key", keys, dtype=pl.String))
    return columns.join(table, on=list(columns.columns), how="left", nulls_equal=True, maintain_order="left")[
        HIDDEN + "key"
    ]


def _form_of_completion(dtype: Any, *, drops: bool) -> pl.Expr:
    """Return what form a completion lacks, as a number of ``FORMS``."""
    inner = dtype.inner if isinstance(dtype, pl.List) else None
    if not isinstance(inner, pl.Struct):
        return pl.lit(0, pl.UInt8)
    fields, values = dict(inner.to_schema()), exactly(COMPLETION)
    last = values.list.last()
    role, content = (_text_field(last, name, fields.get(name)) for name in ("role", "content"))
    is_text = [values.list.len() == 1, role == "assistant", content.is_not_null()]
    known = {"role", "content", *(_REASONING if drops else ())}
    more = [_is_filled(last.struct.field(name), own) for name, own in fields.items() if name not in known]
    has_more = pl.any_horizontal(more).fill_null(value=False) if more else pl.lit(value=False)
    is_one = pl.all_horizontal(is_text).fill_null(value=False)
    form = (
        pl.when(is_one.not_())
        .then(pl.lit(NOT_ONE_TEXT))
        .when(has_more)
        .then(pl.lit(MORE_THAN_TEXT))
        .otherwise(pl.lit(0))
    )
    return form.cast(pl.UInt8)


def _text_field(message: pl.Expr, name: str, dtype: Any) -> pl.Expr:
    is_text = dtype == pl.String or isinstance(dtype, pl.Categorical | pl.Enum)
    return message.struct.field(name).cast(pl.String) if is_text else pl.lit(None, pl.String)


def _is_filled(value: pl.Expr, dtype: Any) -> pl.Expr:
    """Return whether a field of a message says something: it is not null, ``""``, ``[]`` or ``{}``."""
    if dtype == pl.String:
        return value != ""
    if isinstance(dtype, pl.List):
        return value.list.len() > 0
    return _is_there(value, dtype)


def _is_there(value: pl.Expr, dtype: Any) -> pl.Expr:
    if isinstance(dtype, pl.Struct):
        own = [_is_there(value.struct.field(name), inner) for name, inner in dtype.to_schema().items()]
        return pl.any_horizontal(own) if own else pl.lit(value=False)
    return value.is_not_null()
