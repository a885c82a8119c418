"""Results to look at: a parquet file of ``assay score``, a folder of parts, or a Polars frame; lazily, with what made them.

A row is scored if its ``reward`` is not null. A check passes where its score is 1.0. A row of feedback begins with a label,
``<check>: `` or ``<verifier>/<check>: ``. Without a provenance, what checks there are is read from the names of the columns.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs

from assay.aggregating.aggregate import RESULTS, longest_label
from assay.aggregating.outcomes import cut_off_expr, cut_off_sql, outcome_of_row_expr
from assay.errors import ColumnsError, InputError, UsageError, did_you_mean, listed, shown_path
from assay.expressions.completion import completion_text_expr
from assay.expressions.readable import has_type, readable
from assay.expressions.shared_columns import exactly
from assay.frozen import frozen
from assay.loading.formats.files import combined, open_each
from assay.loading.formats.parquet import ParquetFile
from assay.loading.formats.reading import File, Reading
from assay.names import COMPLETION, CUT_OFF, HIDDEN, OUTCOME, TASK_ID, TEXT
from assay.scoring.in_memory import engine_errors
from assay.scoring.score_columns import CHECK, SCORE, ScoreColumn, recorded_columns
from assay.spec.canonical import forms_of
from assay.system.signals import interruptible
from assay.writing.footers import provenance_in, result_files, scan_files

ROW = HIDDEN + "row"
"""Number of a row, from 0, in frames of ``Result.numbered``."""

STATES = ("pass", "fail", "unscored")

_TIMES = (pl.Date, pl.Datetime, pl.Time, pl.Duration)
_NO_KEYS = (pl.Object, pl.BaseExtension, pl.Map)  # types whose values Polars cannot group or sort
_NO_TEXTS = (pl.Object, pl.BaseExtension, pl.Map, pl.List, pl.Array, pl.Struct, pl.Binary)
_NO_LINES = pl.DataFrame(schema={"check": pl.String, "text": pl.String, "rows": pl.UInt32, "row": pl.UInt32})
_TEXTS_AT_ONCE = 1 << 16


@frozen(eq=False)
class Result:
    """A result, lazily scanned.

    Attributes:
        name: Its path for messages; ``the frame`` for one in memory.
        frame: Its rows: ``reward`` as Float64, null unless finite; ``passed`` as Boolean, null where there is no reward.
        labels: What lines of feedback begin with, and the name of the check that each stands for.
        length_column: The column of lengths that the user names, such as numbers of tokens.
        damage: Why the provenance that is there cannot be read; None if it can, or if there is none.
        has_cheap_slices: Whether a few rows can be read without those before them.
    """

    name: str
    frame: pl.LazyFrame
    schema: pl.Schema
    provenance: Mapping[str, Any]
    checks: tuple[ScoreColumn, ...]
    labels: Mapping[str, str]
    files: tuple[File, ...] = ()
    notes: tuple[str, ...] = ()
    length_column: str | None = None
    damage: InputError | None = None
    has_cheap_slices: bool = True

    @property
    def verifiers(self) -> tuple[Mapping[str, Any], ...]:
        """What the provenance says of each verifier."""
        return tuple(self.provenance.get("verifiers", ()))

    @property
    def forms(self) -> list[dict[str, Any]]:
        """The canonical forms of the verifiers that made it; an ``InputError`` where it does not say."""
        if self.damage is not None:
            raise self.damage
        return forms_of(self.provenance, self.name)

    @property
    def folder(self) -> Path | None:
        """The folder that its files are in; None for a frame."""
        return self.files[0].path.parent if self.files else None

    @property
    def passed_through(self) -> tuple[str, ...]:
        """The columns that the rollouts brought."""
        own = {*RESULTS, "verifier_fn", *((CUT_OFF, OUTCOME) if self.has_outcome else ())}
        return tuple(name for name in self.schema if name not in own and not name.startswith((CHECK, SCORE, "info/")))

    @property
    def numbered(self) -> pl.LazyFrame:
        """The rows with their numbers, ``ROW``."""
        return self.frame.with_row_index(ROW)

    @property
    def state(self) -> pl.Expr:
        """One of ``STATES``; ``scored`` in place of the first two where there is no column ``passed``."""
        scored = pl.lit("scored")
        if "passed" in self.schema:
            scored = pl.when("passed").then(pl.lit("pass")).otherwise(pl.lit("fail"))
        words = pl.when(pl.col("reward").is_null()).then(pl.lit("unscored")).otherwise(scored)
        return words.cast(pl.Enum((*STATES, "scored")))

    @property
    def length(self) -> pl.Expr | None:
        """What ``with_length`` named; else code points of the scored text: the column ``length``, or those of a kept ``completion``."""
        if self.length_column is not None:
            return exactly(self.length_column).cast(pl.Int64, strict=False)
        if self.schema.get("length", pl.Null()).is_integer():
            return pl.col("length").cast(pl.Int64)
        text = self.text
        return None if text is None else text.str.len_chars().cast(pl.Int64)

    @property
    def text(self) -> pl.Expr | None:
        """The scored text, if the result keeps it."""
        dtype = self.schema.get(COMPLETION)
        try:
            return None if dtype is None else self.text_of(dtype)
        except ColumnsError:
            return None

    def text_of(self, dtype: pl.DataType) -> pl.Expr:
        """Return the scored text, ``TEXT``, of a column ``completion`` of a type."""
        any_role = (self.provenance.get("settings") or {}).get("any_role") is True
        return completion_text_expr(COMPLETION, dtype, any_role=any_role).alias(TEXT)

    @property
    def has_outcome(self) -> bool:
        """Whether it has the columns ``cut_off`` and ``outcome`` of the run, and not some of these names that its rollouts brought."""
        return self._has_cut_off and self.schema.get(OUTCOME) == pl.String

    @property
    def _has_cut_off(self) -> bool:
        may_be_own = not self.provenance or bool((self.provenance.get("settings") or {}).get(OUTCOME))
        return may_be_own and self.schema.get(CUT_OFF) == pl.Boolean

    def cut_off(self, schema: pl.Schema | None = None) -> pl.Expr | None:
        """Return whether a rollout ended at a limit, null where that is unknown; None if no column says so.

        The column of the run wins, then those of the rollouts; ``schema`` has more of them.
        """
        return pl.col(CUT_OFF) if self._has_cut_off else cut_off_expr(schema or self.schema)

    @property
    def cut_off_sql(self) -> str:
        """The condition in SQL that a rollout ended at a limit."""
        return CUT_OFF if self._has_cut_off else cut_off_sql(self.schema)

    @property
    def outcome(self) -> pl.Expr:
        """One of ``OUTCOMES``: the column of the run, else made of the results."""
        if self.has_outcome:
            return pl.col(OUTCOME)
        if "passed" not in self.schema:
            hint = "Score the rollouts with Assay, or add a column: which rows pass."
            raise InputError(f"{self.name}: no column `passed`, without which a row has no outcome.", hint)
        columns = {name: pl.col(name) for name in RESULTS if name in self.schema}
        columns |= {} if (ended := self.cut_off()) is None else {CUT_OFF: ended}
        return outcome_of_row_expr(columns, self.labels)

    @cached_property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.collect(self.frame.select(pl.len())).item())

    def with_length(self, column: str | None) -> "Result":
        """Return the result with lengths from a column, such as numbers of tokens; None for those of the texts."""
        if column is None:
            return self
        self.columns([column], "--length")
        if not self.schema[column].is_integer():
            raise UsageError(f"--length {column}: expected whole numbers, not {self.schema[column]}.")
        return replace(self, length_column=column)

    def check(self, name: str) -> ScoreColumn:
        """Return a check by its name, or by its id if no other has it."""
        by_name = [check for check in self.checks if check.name == name]
        matches = by_name or [check for check in self.checks if check.id == name]
        if len(matches) == 1:
            return matches[0]
        names = [check.name for check in matches or self.checks]
        fact = f"{self.name}: {'several checks are' if matches else 'no check is'} called `{name}`."
        raise UsageError(fact, did_you_mean(name, names) if not matches and names else f"Checks: {listed(names)}")

    def columns(self, names: Sequence[str], option: str) -> tuple[str, ...]:
        """Return columns that an option names, each once; the error for one that does not exist names the option."""
        for name in names:
            if name not in self.schema:
                others = list(self.passed_through)
                hint = did_you_mean(name, others) or f"Columns: {listed(others)}"
                raise UsageError(f"{option} {name}: {self.name} has no such column.", hint)
        return tuple(dict.fromkeys(names))

    def keys(self, names: Sequence[str], option: str) -> tuple[str, ...]:
        """Return columns that an option names, by whose values rows are told apart."""
        keys = self.columns(names, option)
        for name in keys:
            if not self._is_key(name):
                dtype = self.schema[name]
                fact = f"{option} {name}: {self.name} has values of type {dtype} there that no group can have."
                raise UsageError(fact, "Convert it to text before, or name another column.")
        return keys

    def _is_key(self, name: str) -> bool:
        """Return whether rows can be told apart by a column's values, in Polars and in Python."""
        dtype = self.schema[name]
        if has_type(dtype, _NO_KEYS) or not has_type(dtype, _TIMES):
            return not has_type(dtype, _NO_KEYS)
        lost = readable(exactly(name), dtype, as_text=False)[0].is_null() & exactly(name).is_not_null()
        return not (dtype.is_nested() or self.collect(self.frame.select(lost.any())).item())

    def tasks(self, names: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the columns that name a row's task: ``names``, else ``task_id`` or ``example_id``; none if there are none."""
        return self.keys(names, "--task") or self.present((TASK_ID, "example_id"))[:1]

    def groups(self, tasks: Sequence[str], names: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the columns that name a row's group: ``names``, else the task's and ``model`` and ``step`` as far as they exist."""
        return self.keys(names, "--group") or tuple(dict.fromkeys((*tasks, *self.present(("model", "step")))))

    def present(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the columns of these names by whose values rows can be told apart."""
        return tuple(name for name in names if name in self.schema and self._is_key(name))

    def collect(self, frame: pl.LazyFrame, optimizations: pl.QueryOptFlags | None = None) -> pl.DataFrame:
        """Run a query over the rows, streaming; an ``InputError`` names the file that cannot be read to its end."""
        with engine_errors(self.files), interruptible():
            return frame.collect(engine="streaming", optimizations=optimizations or pl.QueryOptFlags())

    def label(self, line: str) -> str | None:
        """Return the longest label that a line of feedback or errors begins with; None for a line without."""
        return longest_label(line, self.labels)

    def lines(self, column: str, where: pl.Expr | None = None) -> pl.DataFrame:
        """Count the distinct lines of ``feedback`` or ``error``, by check, on the rows for which a condition holds.

        Returns:
            ``check`` (null for lines without a label), ``text`` without the label, ``rows`` and ``row``, the first one; in order of
            the first row. Lines that follow a labelled one without a label of their own are part of it.
        """
        if column not in self.schema:
            return _NO_LINES
        text = exactly(column).cast(pl.String).alias("text")
        frame = self.numbered if where is None else self.numbered.filter(where)
        texts = frame.select(text, ROW).filter(pl.col("text").fill_null("") != "")
        texts = texts.group_by("text").agg(pl.len().alias("rows"), pl.col(ROW).min().alias("row"))
        slices = self.collect(texts).sort("row").iter_slices(_TEXTS_AT_ONCE)
        lines = pl.concat([_NO_LINES, *(_labelled(part, self.labels) for part in slices)])
        lines = lines.group_by("check", "text").agg(pl.col("rows").sum(), pl.col("row").min())
        return lines.sort("row", "check", "text")

    def lines_of(self, column: str, rows: pl.Series) -> pl.DataFrame:
        """Return the lines of ``feedback`` or ``error`` of some rows, as ``lines``, each row's own."""
        if column not in self.schema:
            return _NO_LINES
        text = exactly(column).cast(pl.String).alias("text")
        texts = self.numbered.filter(pl.col(ROW).is_in(rows.implode())).select(
            text, pl.lit(1).alias("rows"), pl.col(ROW).alias("row")
        )
        found = self.collect(compact(texts.filter(pl.col("text") != ""))).cast({"rows": pl.UInt32})
        return pl.concat([_NO_LINES, *(_labelled(part, self.labels) for part in found.iter_slices(_TEXTS_AT_ONCE))])


def compact(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return few rows of many without the others' texts, which Polars would keep in memory as long as these."""
    return rows.with_columns(cs.string() + pl.lit(""))  # makes texts anew


def open_result(source: Any) -> Result:
    """Open a result: the path of a parquet file or of a folder of parts, a Polars frame, or an opened result."""
    if isinstance(source, Result):
        return source
    if isinstance(source, pl.DataFrame | pl.LazyFrame):
        return result_of("the frame", source.lazy(), {})
    if not isinstance(source, str | Path):
        fact = f"A result is a path or a Polars frame, not {type(source).__name__}."
        raise UsageError(fact, "Make a frame of an Arrow table with pl.from_arrow(table).")
    paths, name = result_files(Path(source)), shown_path(source)
    opened = combined(open_each(paths, Reading()))
    # Polars' own scan reads the needed columns only, in parallel; what may be a bomb is read with limits
    is_plain = not any(isinstance(file, ParquetFile) and file.dense for file in opened.files)
    is_plain = is_plain and len({tuple(file.schema.items()) for file in opened.files}) == 1
    provenance: dict[str, Any] = {}
    damage = None
    try:
        provenance = provenance_in(source) or {}
        if provenance.get("verifiers"):
            forms_of(provenance, name)
    except InputError as error:
        provenance, damage = {}, error
    frame = scan_files(paths) if is_plain else opened.scan()
    return replace(result_of(name, frame, provenance, opened.files, damage), has_cheap_slices=is_plain)


def result_of(
    name: str,
    frame: pl.LazyFrame,
    provenance: Mapping[str, Any],
    files: tuple[File, ...] = (),
    damage: InputError | None = None,
) -> Result:
    """Return rows and what made them as a result; an ``InputError`` if they have no ``reward``."""
    with engine_errors(files):
        schema = frame.collect_schema()
    if "reward" not in schema:
        hint = "Name a file that assay score wrote, or a frame that assay.score returned."
        raise InputError(f"{name}: no column `reward`.", f"Columns: {listed(list(schema))}\n{hint}")
    for column in ("reward", "passed"):
        dtype = schema.get(column, pl.Null())
        if not (dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)):
            raise InputError(f"{name}: `{column}` has type {dtype}; expected numbers.")
    for column in {"feedback", "error"} & {*schema}:  # of another program, maybe; lists of texts are no lines
        is_text = not has_type(schema[column], _NO_TEXTS)
        text = exactly(column).cast(pl.String) if is_text else pl.lit(None, pl.String)
        frame = frame.with_columns(text.alias(column))
        schema = pl.Schema({**schema, column: pl.String()})
    lack = "it has no provenance" if damage is None else f"it has no provenance that can be read ({damage.fact})"
    notes = () if provenance else (f"{lack}: weights and types of checks are unknown",)
    reward = pl.col("reward").cast(pl.Float64)
    frame = frame.with_columns(pl.when(reward.is_finite()).then(reward).alias("reward"))
    if "passed" in schema:
        passed = pl.col("passed").cast(pl.Boolean).fill_null(value=False)
        frame = frame.with_columns(pl.when(pl.col("reward").is_not_null()).then(passed).alias("passed"))
    else:
        notes = (*notes, "it has no column `passed`: what counts passing rows is left out")
    checks, labels = _checks(schema, provenance, name)
    if not checks:
        notes = (*notes, "it has no columns of checks, as without --no-details: what is told of each check is left out")
    return Result(name, frame, schema, provenance, checks, labels, files, notes, damage=damage)


def _checks(
    schema: pl.Schema, provenance: Mapping[str, Any], name: str
) -> tuple[tuple[ScoreColumn, ...], dict[str, str]]:
    """Return the checks of a result, and its labels, each with the name of its check."""
    verifiers = provenance.get("verifiers", ())
    several = len(verifiers) > 1
    checks = recorded_columns(verifiers, forms_of(provenance, name) if verifiers else ())
    if not checks:
        found = list(_checks_by_columns(schema))
        checks = [replace(check, effect=1 / len(found)) for check in found]
    labels = {f"{check.name}: ": check.name for check in checks if check.name}
    for verifier in verifiers:  # rows that name functions: no column, but lines
        owner = f"{verifier['id']}/" if several else ""
        names = [f"{owner}{code['name']}" for code in verifier.get("code", ()) if code.get("name")]
        labels |= {f"{name}: ": name for name in names if f"{name}: " not in labels}
    numbers = {name for name, dtype in schema.items() if dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)}
    return tuple(check for check in checks if check.column in numbers), labels


def _checks_by_columns(schema: pl.Schema) -> Iterator[ScoreColumn]:
    """Yield the checks that the names of columns tell; of ``check/a/b/c``, the verifier is the longest that has a score."""
    checks: dict[str, list[str]] = {name.removeprefix(SCORE): [] for name in schema if name.startswith(SCORE)}
    scores = list(checks)
    for rest in (name.removeprefix(CHECK) for name in schema if name.startswith(CHECK)):
        known = [score for score in scores if rest.startswith(f"{score}/")]
        verifier = max(known, key=len) if known else rest.partition("/")[0]
        checks.setdefault(verifier, []).append(rest)
    for verifier, own in checks.items():
        for rest in own:
            check = rest[len(verifier) + 1 :]
            name = f"{verifier}/{check}" if len(checks) > 1 else check
            yield ScoreColumn(name, CHECK + rest, verifier, check)
        if not own:
            yield ScoreColumn(verifier, SCORE + verifier, verifier, verifier)


def _labelled(texts: pl.DataFrame, labels: Mapping[str, str]) -> pl.DataFrame:
    """Split texts into lines, and give each line to the check whose label it begins with; one without is part of the one before."""
    lines = texts.with_row_index("at").with_columns(line=pl.col("text").str.split("\n")).drop("text").explode("line")
    known = []
    for line in lines["line"].unique():
        label = longest_label(line, labels)
        known.append((line, None, line) if label is None else (line, labels[label], line[len(label) :]))
    table = pl.DataFrame(known, schema=dict.fromkeys(("line", "check", "text"), pl.String), orient="row")
    lines = lines.join(table, on="line", how="left", maintain_order="left").drop("line")
    begins = lines["check"].is_not_null() | (lines["at"] != lines["at"].shift(1)).fill_null(value=True)
    if not begins.all():
        entries = lines.with_columns(entry=begins.cum_sum()).group_by("entry", maintain_order=True)
        lines = entries.agg(pl.col("text").str.join("\n"), pl.col("check", "rows", "row").first())
    return lines.select(_NO_LINES.columns)


def labelled_lines(text: str | None, labels: Mapping[str, str]) -> list[tuple[str | None, str]]:
    """Split one row's feedback or error into lines, each with its check; one without a label is part of the one before."""
    lines: list[tuple[str | None, str]] = []
    for line in text.split("\n") if text else ():
        label = longest_label(line, labels)
        if label is None and lines:
            lines[-1] = lines[-1][0], f"{lines[-1][1]}\n{line}"
        else:
            lines.append((None, line) if label is None else (labels[label], line[len(label) :]))
    return lines


def names_of(value: Sequence[str] | str | None) -> tuple[str, ...]:
    """Return one name, several or none as names, each once."""
    return () if value is None else (value,) if isinstance(value, str) else tuple(dict.fromkeys(value))


def sort_key(values: pl.Expr, dtype: Any) -> pl.Expr:
    """Return values by which groups are sorted: names in UTF-8 order, also if they are numbers; what has no text, as it is."""
    has_text = not (dtype.is_nested() or dtype == pl.Binary or isinstance(dtype, pl.Duration))
    return values.cast(pl.String) if has_text else values


def as_data(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields as JSON data; what JSON has no form for is its text. A number that is not finite is a ``ValueError``."""
    return dict(json.loads(json.dumps({"insight": 1, **fields}, default=str, allow_nan=False)))
