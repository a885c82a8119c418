"""Report on a result: its rewards, what each check is worth, which checks say the same, and rows worth reading."""

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import polars as pl

from assay.aggregating.templates import template_expr
from assay.checks.registry import CHECKS
from assay.errors import AssayError, counted
from assay.expressions.shared_columns import exactly
from assay.insight.charts.chart import Chart
from assay.insight.findings.columns import Keys, ResultColumns, columns_of, score_columns
from assay.insight.findings.facts import Facts, Tally
from assay.insight.findings.find import KINDS, facts_of, tally_of
from assay.insight.findings.found import found_in
from assay.insight.originals import HOW
from assay.insight.reports.charts import ChartKind, chart_of
from assay.insight.reports.document import brief_document, report_document
from assay.insight.reports.frames import FrameKind, frame_of
from assay.insight.reports.index import Index, heat_of
from assay.insight.reports.numbers import (
    MOST_PAIRED,
    MOST_PAIRS,
    Failures,
    add_to_steps,
    by_keys,
    failures_of,
    histogram_of,
    numbers_of,
    outcomes_of,
    pairs_of,
    status_of,
    summary_of,
)
from assay.insight.results import ROW, Result, names_of, open_result
from assay.insight.whatifs import losses
from assay.options import PAGE_BYTES, PageOptions, ReportOptions, documented
from assay.scoring.score_columns import ScoreColumn
from assay.spec.canonical import forms_of
from assay.values.plain import json_data
from assay.writing.documents import Document
from assay.writing.notebooks import Displayed, notebook_html
from assay.writing.numbers import interval, number, percent

_BITS = 32


def worst_rows(columns: ResultColumns, failing: Sequence[pl.Series], most: int) -> list[tuple[int, int]]:
    """Return rows and how many rows fail the same checks: for each set, commonest first, the row of the least reward."""
    keys = {f"k{at}": _packed(failing[at : at + _BITS]) for at in range(0, len(failing), _BITS)}
    frame = pl.DataFrame(
        {"row": pl.int_range(columns.rows, dtype=pl.UInt32, eager=True), "reward": columns.reward} | keys
    )
    frame = frame.filter(pl.col("reward").is_not_null())
    if not keys:  # without checks, rows that do not pass
        frame = frame if columns.passed is None else frame.filter(columns.passed.drop_nulls().not_())
        return [(row, 1) for row in frame.sort("reward", "row")["row"].head(most)]
    frame = frame.filter(pl.any_horizontal(pl.col(name) != 0 for name in keys))
    sets = frame.group_by(list(keys)).agg(pl.len().alias("rows"), pl.col("row").min().alias("first"))
    sets = sets.sort("rows", "first", descending=[True, False]).head(most)
    found = frame.join(sets, on=list(keys)).sort("reward", "row").unique(list(keys), keep="first", maintain_order=True)
    return [(row["row"], row["rows"]) for row in found.sort("rows", "first", descending=[True, False]).to_dicts()]


def _packed(failing: Sequence[pl.Series]) -> pl.Series:
    bits = failing[0].cast(pl.UInt32)
    for at, fails in enumerate(failing[1:], 1):
        bits |= fails.cast(pl.UInt32) * (1 << at)
    return bits


def best_rows(columns: ResultColumns, most: int) -> list[int]:
    """Return the rows of the greatest rewards, of different tasks as far as there are tasks."""
    task = {} if columns.task is None else {"task": columns.task.codes}
    rows = pl.int_range(columns.rows, dtype=pl.UInt32, eager=True)
    frame = pl.DataFrame({"row": rows, "reward": columns.reward} | task).drop_nulls()
    if task:
        at_best = frame.filter(pl.col("reward") == pl.col("reward").max().over("task"))
        frame = at_best.group_by("task").agg(pl.col("reward").first(), pl.col("row").min())
    return frame.sort("reward", "row", descending=[True, False])["row"].head(most).to_list()


def details_of(
    result: Result, rows: Sequence[int], keys: Sequence[str], checks: Sequence[ScoreColumn]
) -> dict[int, dict[str, Any]]:
    """Return key columns, reward, passed, scores, feedback and error of some rows."""
    wanted = pl.Series(sorted(set(rows)), dtype=pl.UInt32).implode()
    texts = [name for name in ("feedback", "error") if name in result.schema]
    passed = ["passed"] if "passed" in result.schema else []
    scores = [exactly(check.column).cast(pl.Float64).alias(f"s{at}") for at, check in enumerate(checks)]
    named = [exactly(name).alias(f"k{at}") for at, name in enumerate(keys)]
    columns = [pl.col(ROW), pl.col("reward"), *map(pl.col, passed), *(pl.col(name).cast(pl.String) for name in texts)]
    table = result.collect(result.numbered.filter(pl.col(ROW).is_in(wanted)).select(*columns, *named, *scores))
    found = {}
    for row in table.iter_rows(named=True):
        found[row[ROW]] = {
            "row": row[ROW],
            "key": {name: row[f"k{at}"] for at, name in enumerate(keys)},
            "reward": row["reward"],
            "passed": row.get("passed"),
            "checks": {check.name: row[f"s{at}"] for at, check in enumerate(checks)},
            "feedback": row.get("feedback"),
            "error": row.get("error"),
        }
    return found


_REASONS, _READINGS = 10, 3
_JOINTS = {check.type: check.traits.separator for check in CHECKS if check.traits.separator}


@dataclass(frozen=True, eq=False, repr=False)
class Report(Displayed):
    """A report on a result. All of it is JSON data; what is undefined is None.

    Attributes:
        summary: Rows, mean reward and pass rate with 95 % intervals clustered by task, rows without a reward and with errors, and
            the share of groups whose rewards are all equal.
        histogram: Rewards in 20 ``bins`` of ``range``, and how many are exactly 0 and 1.
        findings: What needs a look, the weightiest first.
        checks: Of each check, over the rows it has a score for: numbers, ``status``, and the most frequent ``reasons``.
        pairs: The 20 pairs of checks whose failures hang together most.
        by: Rewards by model, task and step.
        outcomes: Rows of each model by outcome; None for a result without the column.
        examples: Rows worth reading: ``worst``, ``best``, ``errors``.
        provenance: What made the result.
        notes: What the user should know.
        source: The result, of which a page shows rows.
        texts: How a page has their texts: ``rollouts``, and whether there are any, ``text``.
        shown: Findings that people see; the data has up to 50.
    """

    summary: Mapping[str, Any]
    histogram: Mapping[str, Any]
    findings: Sequence[Mapping[str, Any]]
    checks: Sequence[Mapping[str, Any]]
    pairs: Sequence[Mapping[str, Any]]
    by: Mapping[str, Any]
    examples: Mapping[str, Any]
    provenance: Mapping[str, Any]
    notes: tuple[str, ...]
    source: Result = field(repr=False)
    texts: Mapping[str, Any] = field(repr=False)
    shown: int = 8
    outcomes: Mapping[str, Any] | None = None

    @cached_property
    def heat(self) -> Mapping[str, Any]:
        """How many rows of each model a check has scored, and how many pass it; it is read from the result."""
        return heat_of(self.source, Index(self.source).columns)

    @property
    def headline(self) -> str:
        """Rows, mean reward and pass rate."""
        mean = f"mean reward {number(self.summary['mean'])} {interval(self.summary['ci95'])}".rstrip()
        return f"{counted(self.summary['rows'], 'row')} · {mean} · pass rate {percent(self.summary['pass_rate'])}"

    def _document(self) -> Document:
        return report_document(self.as_json(), self.shown)

    def _repr_html_(self) -> str:
        kinds: tuple[ChartKind, ...] = ("heat", "rewards", "steps") if "step" in self.by else ("heat", "rewards")
        charts = []
        for kind in kinds:
            with contextlib.suppress(AssayError):  # the file may be gone since
                charts.append(self.chart(kind).svg)
        return notebook_html(brief_document(self.as_json(), self.shown, in_notebook=True), charts)

    def chart(self, kind: ChartKind) -> Chart:
        """Return a chart, which notebooks show and ``save`` writes.

        Args:
            kind: ``rewards``, a histogram; ``heat``, the pass rates of checks by model; ``steps``, reward, pass rates and length over
                the steps.

        Raises:
            UsageError: There is no such chart.
        """
        return chart_of(kind, self._with_heat(kind))

    def frame(self, kind: FrameKind) -> pl.DataFrame:
        """Return a table: a row for each check, finding, model and check, or step.

        Args:
            kind: ``checks``, ``findings``, ``heat`` or ``steps``.

        Raises:
            UsageError: There is no such table.
        """
        return frame_of(kind, self._with_heat(kind))

    def _with_heat(self, kind: str) -> dict[str, Any]:
        return {**self.as_json(), "heat": self.heat} if kind == "heat" else self.as_json()

    def as_json(self) -> dict[str, Any]:
        """Return JSON data."""
        parts = {name: json_data(getattr(self, name)) for name in _PARTS}
        return {"insight": 1, **{name: part for name, part in parts.items() if part is not None}}

    def markdown(self) -> str:
        """Return the report as Markdown, with tables as GitHub has them."""
        return self.document().markdown()

    @documented(PageOptions)
    def html(self, *, max_size: int | str = PAGE_BYTES) -> str:
        """Return the report as a page: one file that loads nothing, with as many rows as fit.

        Args:
            options: Those of ``assay.options.PageOptions``, as the signature lists them.
        """
        from assay.insight.reports.offline import page_in_file

        size = int(max_size)  # a text is parsed before
        return page_in_file(self.source, self.as_json(), max_size=size, findings=self.shown, **self.texts)


_PARTS = ("summary", "findings", "histogram", "checks", "pairs", "by", "outcomes", "examples", "provenance", "notes")


@documented(ReportOptions)
def report(
    result: Any,
    *,
    rollouts: Any = None,
    by: Sequence[str] | str | None = None,
    examples: int = 10,
    findings: int = 8,
    text: bool = True,
    length: str | None = None,
    task: Sequence[str] | str = (),
    group: Sequence[str] | str = (),
) -> Report:
    """Report on a result: its rewards, what each check is worth, which checks say the same, and rows worth reading.

    Args:
        result: A parquet file of ``assay score``, a folder of parts, or a Polars frame with ``reward`` and ``passed``.
        options: Those of ``assay.options.ReportOptions``, as the signature lists them.

    Returns:
        The report, with ``html()``, ``markdown()`` and ``as_json()``.

    Raises:
        InputError: The result cannot be read, or has no ``reward``.
        UsageError: A column that an option names does not exist.

    Example:
        >>> import assay, polars as pl
        >>> rewards = pl.DataFrame({"task_id": ["a", "a", "b"], "reward": [1.0, 0.0, 0.5]})
        >>> rewards = rewards.with_columns(passed=pl.col("reward") == 1)
        >>> assay.report(rewards).summary["pass_rate"]
        0.3333333333333333
    """
    opened = open_result(result).with_length(length)
    tasks = opened.tasks(names_of(task))
    groups = opened.groups(tasks, names_of(group)) if tasks else ()
    columns = columns_of(opened, tasks, groups)
    notes = list(opened.notes)
    feedback = opened.lines("feedback")
    entries, failures, tallies = _checks(columns, feedback)
    columns = replace(columns)  # without what is remembered for the checks, as large as the columns
    values, steps = _by(columns, tasks, None if by is None else names_of(by))
    if steps is not None and "step" in values:
        add_to_steps(values["step"]["entries"], steps, columns, tallies)
    chosen = _examples(columns, [tally.failing for tally in tallies if tally.failing is not None], tasks, examples)
    pairs = pairs_of(failures, columns.rows)
    shown = sorted({example["row"] for kind in chosen.values() for example in kind})
    facts, texts = facts_of(columns, tallies, feedback, pairs, steps, rollouts, text=text, shown=shown)
    for example in (example for kind in chosen.values() if text for example in kind):
        example["text"] = texts.shown.get(example["row"])
    notes += [f"no texts: {texts.note}; {HOW}"] if texts.note else [texts.less] if texts.less else []
    _add_readings(entries, facts, opened)
    summary = summary_of(columns)
    _note(columns, summary, notes)
    return Report(
        summary=summary,
        histogram=histogram_of(columns.reward),
        checks=entries,
        findings=[finding.as_json() for finding in found_in(facts, KINDS)],
        pairs=pairs[:MOST_PAIRS],
        by=values,
        examples=chosen,
        provenance=provenance_of(opened),
        notes=tuple(notes),
        source=opened,
        texts={"rollouts": rollouts, "text": text},
        shown=findings,
        outcomes=outcomes_of(opened),
    )


def _note(columns: ResultColumns, summary: Mapping[str, Any], notes: list[str]) -> None:
    if not summary["scored"]:
        notes.append("no row has a reward" if summary["rows"] else "there are no rows")
    elif summary["unscored"]:
        notes.append(f"{counted(summary['unscored'], 'row')} without a reward: left out of means and rates")
    if columns.task is None:
        notes.append(
            "no column names the task of a row: intervals take rows as independent, and nothing is told of groups"
        )
    elif summary["without_task"]:
        notes.append(f"{counted(summary['without_task'], 'row')} without a task: left out of intervals and groups")
    if summary["few"]:
        noun = "row" if columns.task is None else "task"
        notes.append(f"few: an interval over {counted(summary['clusters'], noun)} is only roughly one of 95 %")
    if len(columns.result.checks) > MOST_PAIRED:
        notes.append(f"{len(columns.result.checks):,} checks: the {MOST_PAIRED} that fail most are compared in pairs")
    unknown = [check.name for check in columns.result.checks if check.coefficient is None]
    if unknown and columns.result.provenance:
        fact = "the reward is no weighted mean of checks, for example because of gates"
        notes.append(f"{fact}: shares of its variance and correlations with the rest are left out")


def _checks(columns: ResultColumns, feedback: pl.DataFrame) -> tuple[list[dict[str, Any]], list[Failures], list[Tally]]:
    result = columns.result
    reasons, errors, lost = _reasons(result, feedback), _errors(result), _losses(result)
    entries, failures, tallies = [], [], []
    for place, (check, scores) in enumerate(score_columns(result, result.checks)):
        numbers = numbers_of(scores, check.coefficient, columns)
        failed = errors.get(check.name, 0)
        rate = failed / columns.rows if columns.rows else None
        entries.append(
            described(check)
            | numbers
            | {"loss": lost.get(check.name, _loss(check, numbers, columns.scored))}
            | {"errors": failed, "error_rate": rate, "status": status_of(numbers)}
            | {"reasons": reasons.get(check.name, [])}
        )
        failures.append(failures_of(check.name, scores))
        tallies.append(tally_of(place, check, scores, columns))
    return entries, failures, tallies


def _losses(result: Result) -> dict[str, float]:
    """Return ``losses`` where a check's is not plain from its mean."""
    is_linear = all(check.coefficient is not None and not check.group for check in result.checks)
    return {} if is_linear else losses(result)


def _loss(check: ScoreColumn, numbers: Mapping[str, Any], scored: int) -> float | None:
    if check.coefficient is None or check.group or numbers["mean"] is None or not scored:
        return None
    return float(check.coefficient * (1 - numbers["mean"]) * numbers["rows"] / scored)


def described(check: ScoreColumn) -> dict[str, Any]:
    """Return what a check is, as far as the provenance says."""
    names = ("name", "verifier", "id", "type", "role", "weight", "required", "coefficient", "effect", "group", "title")
    fields = {name: getattr(check, name) for name in names}
    points = {"weight": None, "penalty": check.weight if check.role == "penalty" else None}
    return fields | (points if check.role in ("gate", "penalty") else {"penalty": None})


def _reasons(result: Result, feedback: pl.DataFrame) -> dict[str, list[dict[str, Any]]]:
    lines = feedback.filter(pl.col("check").is_not_null()).with_row_index("line")
    joints = {check.name: _JOINTS[check.type] for check in result.checks if check.type in _JOINTS}
    parts = [lines.filter(pl.col("check").is_in(list(joints)).not_())]
    for name, joint in joints.items():
        parts.append(lines.filter(check=name).with_columns(pl.col("text").str.split(joint)).explode("text"))
    templates = pl.concat(parts).with_columns(template_expr(pl.col("text")).alias("template"))
    templates = templates.unique(["line", "template"])
    together = templates.group_by("check", "template").agg(pl.col("rows").sum(), pl.col("row").min())
    together = together.sort("rows", "row", "template", descending=[True, False, False])
    found: dict[str, list[dict[str, Any]]] = {}
    for check, words, rows, row in together.group_by("check", maintain_order=True).head(_REASONS).iter_rows():
        found.setdefault(check, []).append({"template": words, "rows": rows, "row": row, "examples": []})
    return found


def _add_readings(entries: Sequence[Mapping[str, Any]], facts: Facts, result: Result) -> None:
    """Add to each reason the commonest that its check read and expected on its rows."""
    if facts.readings is None or facts.readings.is_empty():
        return
    names = {tally.place: tally.check.name for tally in facts.tallies}
    read = facts.readings.drop_nulls("read").with_columns(pl.col("check").replace_strict(names, return_dtype=pl.String))
    lines = result.lines_of("feedback", read["row"].unique())
    template = template_expr(pl.col("text")).alias("template")
    found = read.join(lines.select("check", "row", template), on=["check", "row"])
    keys = ["check", "template", "read", "expected", "near"]
    found = found.group_by(keys).agg(pl.col("weight").sum().round().cast(pl.Int64).alias("rows"), pl.col("row").min())
    most = found.sort("rows", "row", descending=[True, False]).group_by(keys[:2], maintain_order=True).head(_READINGS)
    examples: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for check, words, *values in most.select(*keys, "rows").iter_rows():
        examples.setdefault((check, words), []).append(dict(zip((*keys[2:], "rows"), values, strict=True)))
    for entry in entries:
        for reason in entry["reasons"]:
            reason["examples"] = examples.get((entry["name"], reason["template"]), [])


def _errors(result: Result) -> dict[str, int]:
    if "error" not in result.schema:
        return {}
    text = exactly("error").cast(pl.String).alias("text")
    texts = result.collect(result.frame.select(text).filter(pl.col("text").fill_null("") != "").group_by("text").len())
    counts: Counter[str] = Counter()
    for value, rows in texts.iter_rows():
        found = {result.label(line) for line in value.split("\n")}
        for label in found - {None}:
            counts[result.labels[label]] += rows  # type: ignore[index]
    return dict(counts)


def _by(
    columns: ResultColumns, tasks: Sequence[str], names: Sequence[str] | None
) -> tuple[dict[str, Any], Keys | None]:
    result = columns.result
    if names is None:
        names = [name for name in ("model", *tasks, "step") if name in result.schema]
    names = result.keys(names, "--by")
    found: dict[str, Any] = {}
    steps = columns.keys("step") if "step" in result.schema and result.schema["step"].is_numeric() else None
    joined = set(tasks) <= {*names}
    for name in names:
        if name in tasks and joined:
            if columns.task is not None:
                found.setdefault("task", by_keys(columns, columns.task, "task"))
        elif name == "step" and steps is not None:
            found["step"] = by_keys(columns, steps, "step")
        else:
            found[name] = by_keys(columns, columns.keys(name), "other")
    return found, steps


def _examples(
    columns: ResultColumns, failing: Sequence[pl.Series], tasks: Sequence[str], most: int
) -> dict[str, list[dict[str, Any]]]:
    result = columns.result
    worst = [(row, {"rows": rows}) for row, rows in worst_rows(columns, failing, most)]
    best: list[tuple[int, dict[str, Any]]] = [(row, {}) for row in best_rows(columns, most)]
    lines = result.lines("error").sort("rows", "row", descending=[True, False]).head(most)
    errors = [
        (line["row"], {"rows": line["rows"], "check": line["check"], "line": line["text"]})
        for line in lines.iter_rows(named=True)
    ]
    keys = [name for name in dict.fromkeys((*tasks, "model", "step")) if name in result.schema]
    kinds: dict[str, list[tuple[int, dict[str, Any]]]] = {"worst": worst, "best": best, "errors": errors}
    rows = [row for kind in kinds.values() for row, _ in kind]
    details = details_of(result, rows, keys, result.checks) if rows else {}
    return {kind: [details[row] | more for row, more in found] for kind, found in kinds.items()}


def provenance_of(result: Result) -> dict[str, Any]:
    """Return what made a result."""
    known = result.provenance
    content = known.get("content") or {}
    inputs = list(known.get("inputs") or ())
    sealed = bool(inputs) and all(isinstance(source.get("sha256"), str) for source in inputs)
    verifiers = [
        {name: verifier.get(name) for name in ("id", "source", "kind", "sha256")} | {"version": form.get("version")}
        for verifier, form in zip(
            result.verifiers, forms_of(known, result.name) if result.verifiers else (), strict=True
        )
    ]
    return {
        "name": result.name,
        "assay_version": known.get("assay_version"),
        "polars_version": known.get("polars_version"),
        "command": known.get("command"),
        "inputs": inputs,
        "tasks": list(known.get("tasks") or ()),
        "verifiers": verifiers,
        "root": content.get("root"),
        "sealed": sealed,
    }
