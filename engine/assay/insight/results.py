"""Results to look at: a parquet file of ``assay score``, a folder of parts, or a Polars frame; lazily, with what made them.

A row is scored if its ``reward`` is not null. A check passes where its score is 1.0. A row of feedback begins with a label,
``<check>: `` or ``<verifier>/<check>: ``. Without a provenance, what checks there are is read from the names of the columns.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from assay.aggregating.aggregate import RESULTS
from assay.errors import ColumnsError, InputError, UsageError, did_you_mean, listed, shown_path
from assay.expressions.completion import completion_text_expr
from assay.expressions.lane import exactly
from assay.expressions.readable import has_type, readable
from assay.loading.formats.files import ENGINE_ERRORS, combined
from assay.loading.formats.format import open_each
from assay.loading.formats.parquet import ParquetFile
from assay.loading.formats.reading import File, Reading
from assay.names import COMPLETION, FUNCTION, HIDDEN, NATIVE, TASK_ID
from assay.scoring.in_memory import engine_error
from assay.spec.canonical import forms_of
from assay.spec.check import titled
from assay.system.signals import interruptible
from assay.writing.files import result_files, scan_files
from assay.writing.writers import provenance_in

ROW = HIDDEN + "row"
"""Number of a row, from 0, in frames of ``Result.numbered``."""

STATES = ("pass", "fail", "unscored")
"""What can become of a row, as ``Result.state`` names it."""

_CHECK, _SCORE = "check/", "score/"
_TASKS = (TASK_ID, "example_id")
_GROUPS = ("model", "step")
_TIMES = (pl.Date, pl.Datetime, pl.Time, pl.Duration)
_NO_KEYS = (pl.Object, pl.BaseExtension, pl.Map)
"""Types whose values Polars cannot group or sort."""
_NO_LINES = pl.DataFrame(schema={"check": pl.String, "text": pl.String, "rows": pl.UInt32, "row": pl.UInt32})
_TEXTS_AT_ONCE = 1 << 16
_NOT_LINEAR = ("gate", "penalty", "when", "checks")


@dataclass(frozen=True)
class ScoreColumn:
    """A check of a result: the column of a check, or that of a rubric's member or a verifier class, which have no checks.

    Attributes:
        name: What people call it, and what its lines of feedback begin with: ``<check>``, or ``<verifier>/<check>``.
        column: Its column.
        verifier: Id of its verifier.
        id: Its id; that of the verifier where it has no checks.
        type: Type of the check; ``""`` if unknown.
        weight: Its weight in the spec, or that of a rubric's member; None if unknown.
        required: Whether a row can only pass if the check does.
        coefficient: What one point of its score adds to the reward; 0.0 inside a group, None where unknown or not linear.
        group: Id of the group it is in, or ``""``.
        title: What its spec calls it for people, or ``""``.
    """

    name: str
    column: str
    verifier: str
    id: str
    type: str = ""
    weight: float | None = None
    required: bool = False
    coefficient: float | None = None
    group: str = ""
    title: str = ""


@dataclass(frozen=True, eq=False)
class Result:
    """A result, lazily scanned.

    Attributes:
        name: Its path for messages; ``the frame`` for one in memory.
        frame: Its rows: ``reward`` as Float64, null unless finite; ``passed`` as Boolean, null where there is no reward.
        schema: Its columns.
        provenance: What made it; empty if unknown.
        checks: Its checks, in spec order.
        labels: What lines of feedback begin with, and the name of the check that each stands for.
        files: The files it is read from.
        notes: What the user should know.
        length_column: The column of lengths that the user names, such as numbers of tokens.
        damage: Why the provenance that is there cannot be read; None if it can, or if there is none.
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

    @property
    def verifiers(self) -> tuple[Mapping[str, Any], ...]:
        """What the provenance says of each verifier."""
        return tuple(self.provenance.get("verifiers", ()))

    @property
    def forms(self) -> list[dict[str, Any]]:
        """The canonical forms of the verifiers that made it.

        Raises:
            InputError: It does not say, or not in a form that can be read.
        """
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
        own = {*RESULTS, "verifier_fn"}
        return tuple(name for name in self.schema if name not in own and not name.startswith((_CHECK, _SCORE, "info/")))

    @property
    def numbered(self) -> pl.LazyFrame:
        """The rows with their numbers, ``ROW``."""
        return self.frame.with_row_index(ROW)

    @property
    def state(self) -> pl.Expr:
        """``pass``, ``fail`` or ``unscored``."""
        words = pl.when(pl.col("reward").is_null()).then(pl.lit("unscored"))
        return words.when("passed").then(pl.lit("pass")).otherwise(pl.lit("fail")).cast(pl.Enum(STATES))

    @property
    def length(self) -> pl.Expr | None:
        """What ``with_length`` named; else code points of the scored text: the column ``length``, or those of a kept ``completion``."""
        if self.length_column is not None:
            return exactly(self.length_column).cast(pl.Int64, strict=False)
        if self.schema.get("length", pl.Null()).is_integer():
            return pl.col("length").cast(pl.Int64)
        dtype = self.schema.get(COMPLETION)
        try:
            return None if dtype is None else completion_text_expr(COMPLETION, dtype).str.len_chars().cast(pl.Int64)
        except ColumnsError:
            return None

    @cached_property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.collect(self.frame.select(pl.len())).item())

    def with_length(self, column: str | None) -> "Result":
        """Return the result with lengths from a column, such as numbers of tokens; None for those of the texts.

        Raises:
            UsageError: There is no such column, or it has no whole numbers.
        """
        if column is None:
            return self
        self.columns([column], "--length")
        if not self.schema[column].is_integer():
            raise UsageError(f"--length {column}: expected whole numbers, not {self.schema[column]}.")
        return replace(self, length_column=column)

    def check(self, name: str) -> ScoreColumn:
        """Return a check by its name, or by its id if no other has it.

        Raises:
            UsageError: There is none, or there are several.
        """
        matches = [check for check in self.checks if check.name == name] or [
            check for check in self.checks if check.id == name
        ]
        if len(matches) == 1:
            return matches[0]
        names = [check.name for check in matches or self.checks]
        fact = f"{self.name}: {'several checks are' if matches else 'no check is'} called `{name}`."
        raise UsageError(fact, did_you_mean(name, names) if not matches and names else f"Checks: {listed(names)}")

    def columns(self, names: Sequence[str], option: str) -> tuple[str, ...]:
        """Return columns that an option names.

        Raises:
            UsageError: One does not exist; the message names the option.
        """
        for name in names:
            if name not in self.schema:
                others = list(self.passed_through)
                hint = did_you_mean(name, others) or f"Columns: {listed(others)}"
                raise UsageError(f"{option} {name}: {self.name} has no such column.", hint)
        return tuple(dict.fromkeys(names))

    def keys(self, names: Sequence[str], option: str) -> tuple[str, ...]:
        """Return columns that an option names, by whose values rows are told apart.

        Raises:
            UsageError: One does not exist, or its values cannot be told apart; the message names the option.
        """
        keys = self.columns(names, option)
        for name in keys:
            if not self._is_key(name):
                fact = (
                    f"{option} {name}: {self.name} has values of type {self.schema[name]} there that no group can have."
                )
                raise UsageError(fact, "Convert it to text before, or name another column.")
        return keys

    def _is_key(self, name: str) -> bool:
        """Return whether rows can be told apart by a column's values, in Polars and in Python."""
        dtype = self.schema[name]
        if has_type(dtype, _NO_KEYS):
            return False
        values, _ = readable(exactly(name), dtype, as_text=False)
        lost = values.is_null() & exactly(name).is_not_null()
        return not has_type(dtype, _TIMES) or not (
            dtype.is_nested() or self.collect(self.frame.select(lost.any())).item()
        )

    def tasks(self, names: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the columns that name a row's task: ``names``, else ``task_id`` or ``example_id``; none if there are none."""
        return self.keys(names, "--task") or self.present(_TASKS)[:1]

    def groups(self, tasks: Sequence[str], names: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the columns that name a row's group: ``names``, else the task's and ``model`` and ``step`` as far as they exist."""
        found = (*tasks, *self.present(_GROUPS))
        return self.keys(names, "--group") or tuple(dict.fromkeys(found))

    def present(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the columns of these names by whose values rows can be told apart."""
        return tuple(name for name in names if name in self.schema and self._is_key(name))

    def collect(self, frame: pl.LazyFrame) -> pl.DataFrame:
        """Run a query over the rows, streaming.

        Raises:
            InputError: A file cannot be read to its end.
        """
        try:
            with interruptible():
                return frame.collect(engine="streaming")
        except ENGINE_ERRORS as error:
            raise engine_error(error, self.files) from error

    def label(self, line: str) -> str | None:
        """Return the longest label that a line of feedback or errors begins with; None for a line without."""
        return _label(line, self.labels)

    def lines(self, column: str) -> pl.DataFrame:
        """Count the distinct lines of ``feedback`` or ``error``, by check.

        Returns:
            ``check`` (null for lines without a label), ``text`` without the label, ``rows`` and ``row``, the first one; in order of
            the first row. Lines that follow a labelled one without a label of their own are part of it.
        """
        if column not in self.schema:
            return _NO_LINES
        text, counts = (
            exactly(column).cast(pl.String).alias("text"),
            (pl.len().alias("rows"), pl.col(ROW).min().alias("row")),
        )
        texts = self.numbered.select(text, ROW).filter(pl.col("text").fill_null("") != "")
        return _lines(self.collect(texts.group_by("text").agg(counts)), self.labels)


# ── opening ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def open_result(source: Any) -> Result:
    """Open a result.

    Args:
        source: Path of a parquet file or of a folder of parts, a Polars frame, or an opened result.

    Raises:
        InputError: It cannot be read, has no ``reward``, or is a folder of a run that is not finished.
        UsageError: It is something else.
    """
    if isinstance(source, Result):
        return source
    if isinstance(source, pl.DataFrame | pl.LazyFrame):
        return _result("the frame", source.lazy(), {})
    if not isinstance(source, str | Path):
        fact = f"A result is a path or a Polars frame, not {type(source).__name__}."
        raise UsageError(fact, "Make a frame of an Arrow table with pl.from_arrow(table).")
    paths, name = result_files(Path(source)), shown_path(source)
    opened = combined(open_each(paths, Reading()))
    # Polars' own scan reads the needed columns only, in parallel; what may be a bomb is read with limits
    plain = not any(isinstance(file, ParquetFile) and file.dense for file in opened.files)
    same = len({tuple(file.schema.items()) for file in opened.files}) == 1
    quick = scan_files(paths)
    frame, provenance, damage = quick if plain and same else opened.scan(), {}, None
    try:
        provenance = _provenance(source, name)
    except InputError as error:
        damage = error
    return _result(name, frame, provenance, opened.files, damage)


def result_of(name: str, frame: pl.LazyFrame, provenance: Mapping[str, Any]) -> Result:
    """Return a frame as a result.

    Args:
        name: What messages call it.
        frame: Its rows.
        provenance: What made it.

    Raises:
        InputError: It has no ``reward``.
    """
    return _result(name, frame, provenance)


def _provenance(path: str | Path, name: str) -> dict[str, Any]:
    """Return the provenance of a result, nothing if there is none.

    Raises:
        InputError: It cannot be read.
    """
    provenance = provenance_in(path) or {}
    if provenance.get("verifiers"):
        forms_of(provenance, name)
    return provenance


def _result(
    name: str,
    frame: pl.LazyFrame,
    provenance: Mapping[str, Any],
    files: tuple[File, ...] = (),
    damage: InputError | None = None,
) -> Result:
    try:
        schema = frame.collect_schema()
    except ENGINE_ERRORS as error:
        raise engine_error(error, files) from error
    for column, needed in (("reward", True), ("passed", False)):
        dtype = schema.get(column)
        if dtype is None and needed:
            hint = "Name a file that assay score wrote, or a frame that assay.score returned."
            raise InputError(f"{name}: no column `reward`.", f"Columns: {listed(list(schema))}\n{hint}")
        if dtype is not None and not (dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)):
            raise InputError(f"{name}: `{column}` has type {dtype}; expected numbers.")
    lack = "it has no provenance" if damage is None else f"it has no provenance that can be read ({damage.fact})"
    notes = () if provenance else (f"{lack}: weights and types of checks are unknown",)
    reward = pl.col("reward").cast(pl.Float64)
    frame = frame.with_columns(pl.when(reward.is_finite()).then(reward).alias("reward"))
    if "passed" in schema:
        passed = pl.col("passed").cast(pl.Boolean).fill_null(value=False)
        frame = frame.with_columns(pl.when(pl.col("reward").is_not_null()).then(passed).alias("passed"))
    else:
        notes = (*notes, "it has no column `passed`: what counts passing rows is left out")
    verifiers = provenance.get("verifiers", ())
    checks, labels = _checks(schema, verifiers, forms_of(provenance, name) if verifiers else ())
    if not checks:
        notes = (*notes, "it has no columns of checks, as without --no-details: what is told of each check is left out")
    return Result(name, frame, schema, provenance, checks, labels, files, notes, damage=damage)


# ── checks ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _checks(
    schema: pl.Schema, verifiers: Sequence[Mapping[str, Any]], forms: Sequence[Mapping[str, Any]]
) -> tuple[tuple[ScoreColumn, ...], dict[str, str]]:
    """Return the checks of a result, and its labels, each with the name of its check."""
    several, found = len(verifiers) > 1, list[ScoreColumn]()
    for verifier, form in zip(verifiers, forms, strict=True):
        found += _of_verifier(verifier, form, 1 / len(verifiers), several=several)
    found = found or list(_of_columns(schema))
    labels = {f"{check.name}: ": check.name for check in found if check.name}
    for verifier in verifiers:  # rows that name functions: no column, but lines
        owner = f"{verifier['id']}/" if several else ""
        names = [f"{owner}{code['name']}" for code in verifier.get("code", ()) if code.get("name")]
        labels |= {f"{name}: ": name for name in names if f"{name}: " not in labels}
    numbers = {name for name, dtype in schema.items() if dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)}
    return tuple(check for check in found if check.column in numbers), labels


def _of_verifier(
    verifier: Mapping[str, Any], form: Mapping[str, Any], share: float, *, several: bool
) -> Iterator[ScoreColumn]:
    """Yield what the provenance says of a verifier: its checks, a group before its own; else the verifier itself."""
    ident, kind, weight = verifier["id"], verifier["kind"], verifier.get("weight")
    share = share if weight is None else weight
    listed_checks = {check["id"]: check for check in verifier.get("checks", ())}
    if kind != NATIVE:
        own = next(iter(listed_checks), "")
        name = own if kind == FUNCTION or not several else f"{ident}/{own}" if own else ident
        yield ScoreColumn(
            name or ident,
            _SCORE + ident,
            ident,
            ident,
            kind,
            weight=1.0 if weight is None else weight,
            coefficient=share,
        )
        return
    weights = {name: float(check["weight"]) for name, check in listed_checks.items()}
    is_plain = not any(name in check for check in form.get("checks", ()) for name in _NOT_LINEAR)
    linear = is_plain and not {"combine", "range"} & {*form}
    total = sum(weights.values())
    for check, group in _walk(form.get("checks", ())):
        own = check["id"]
        own_weight = weights.get(own, float(check.get("weight", 0.0)))
        coefficient = share * own_weight / total if linear and total else None
        yield ScoreColumn(
            f"{ident}/{own}" if several else own,
            f"{_CHECK}{ident}/{own}",
            ident,
            own,
            check["type"],
            own_weight,
            required=check.get("required", False),
            coefficient=0.0 if group else coefficient,
            group=group,
            title=titled(str(check.get("name", "")), str(check.get("description", ""))),
        )


def _walk(checks: Sequence[Mapping[str, Any]], group: str = "") -> Iterator[tuple[Mapping[str, Any], str]]:
    for check in checks:
        yield check, group
        yield from _walk(check.get("checks", ()), check["id"])


def _of_columns(schema: pl.Schema) -> Iterator[ScoreColumn]:
    """Yield the checks that the names of columns tell; of ``check/a/b/c``, the verifier is the longest that has a score."""
    scores = [name.removeprefix(_SCORE) for name in schema if name.startswith(_SCORE)]
    owners: dict[str, tuple[str, str]] = {}
    for column in (name for name in schema if name.startswith(_CHECK)):
        rest = column.removeprefix(_CHECK)
        known = [score for score in scores if rest.startswith(f"{score}/")]
        verifier = max(known, key=len) if known else rest.partition("/")[0]
        owners[column] = verifier, rest[len(verifier) + 1 :]
    verifiers = dict.fromkeys([*scores, *(verifier for verifier, _ in owners.values())])
    for verifier in verifiers:
        own = [(column, check) for column, (owner, check) in owners.items() if owner == verifier]
        for column, check in own:
            name = f"{verifier}/{check}" if len(verifiers) > 1 else check
            yield ScoreColumn(name, column, verifier, check)
        if not own:
            yield ScoreColumn(verifier, _SCORE + verifier, verifier, verifier)


# ── feedback ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _lines(texts: pl.DataFrame, labels: Mapping[str, str]) -> pl.DataFrame:
    """Split texts into lines, and count the lines of each check."""
    parts = [_labelled(part, labels) for part in texts.sort("row").iter_slices(_TEXTS_AT_ONCE)]
    lines = pl.concat([*parts, _NO_LINES]).group_by("check", "text").agg(pl.col("rows").sum(), pl.col("row").min())
    return lines.sort("row", "check", "text")


def _labelled(texts: pl.DataFrame, labels: Mapping[str, str]) -> pl.DataFrame:
    """Split texts into lines, and give each line to the check whose label it begins with; one without is part of the one before."""
    lines = texts.with_row_index("at").with_columns(line=pl.col("text").str.split("\n")).drop("text").explode("line")
    distinct = lines["line"].unique().to_list()
    found = [_label(line, labels) for line in distinct]
    known = pl.DataFrame(
        {
            "line": distinct,
            "check": [None if label is None else labels[label] for label in found],
            "text": [
                line if label is None else line[len(label) :] for line, label in zip(distinct, found, strict=True)
            ],
        },
        schema={"line": pl.String, "check": pl.String, "text": pl.String},
    )
    lines = lines.join(known, on="line", how="left", maintain_order="left").drop("line")
    begins = lines["check"].is_not_null() | (lines["at"] != lines["at"].shift(1)).fill_null(value=True)
    if not begins.all():
        together = lines.with_columns(entry=begins.cum_sum()).group_by("entry", maintain_order=True)
        firsts = (pl.col(name).first() for name in ("check", "rows", "row"))
        lines = together.agg(pl.col("text").str.join("\n"), *firsts)
    return lines.select(_NO_LINES.columns)


def labelled_lines(text: str | None, labels: Mapping[str, str]) -> list[tuple[str | None, str]]:
    """Split one row's feedback or error into lines, each with its check; one without a label is part of the one before."""
    lines: list[tuple[str | None, str]] = []
    for line in text.split("\n") if text else ():
        label = _label(line, labels)
        if label is None and lines:
            lines[-1] = lines[-1][0], f"{lines[-1][1]}\n{line}"
        else:
            lines.append((None, line) if label is None else (labels[label], line[len(label) :]))
    return lines


def _label(line: str, labels: Mapping[str, str]) -> str | None:
    """Return the longest label that a line begins with: an id may hold ``: `` itself."""
    at, label = line.find(": "), None
    while at >= 0:
        label = line[: at + 2] if line[: at + 2] in labels else label
        at = line.find(": ", at + 1)
    return label


# ── what functions about results take and return ───────────────────────────────────────────────────────────────────────────


def names_of(value: Sequence[str] | str | None) -> tuple[str, ...]:
    """Return one name, several or none as names, each once."""
    return () if value is None else (value,) if isinstance(value, str) else tuple(dict.fromkeys(value))


def sort_key(values: pl.Expr, dtype: Any) -> pl.Expr:
    """Return values by which groups are sorted: names in UTF-8 order, also if they are numbers; what has no text, as it is."""
    has_text = not (dtype.is_nested() or dtype == pl.Binary or isinstance(dtype, pl.Duration))
    return values.cast(pl.String) if has_text else values


def as_data(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields as JSON data; what JSON has no form for is its text.

    Raises:
        ValueError: A number is not finite.
    """
    return dict(json.loads(json.dumps({"insight": 1, **fields}, default=str, allow_nan=False)))
