"""The numbers of a run, added up batch by batch, and as a document."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from assay.aggregating.columns import (
    UNSCORED,
    check_column,
    error_column,
    extra_column,
    hidden,
    reason_column,
    remark_column,
)
from assay.aggregating.outcomes import OUTCOMES
from assay.aggregating.pipeline import may_err
from assay.aggregating.templates import template_expr, templates
from assay.checks.base import Check
from assay.compiling.plan import Plan, no_task_expr
from assay.errors import clipped, counted, top
from assay.frozen import frozen
from assay.names import FUNCTION, NATIVE, OUTCOME
from assay.spec.verifier import CheckSpec, VerifierSpec
from assay.system.quantities import RowLimit
from assay.thresholds import THRESHOLDS
from assay.writing.documents import Document, Lines, Table, with_names
from assay.writing.notebooks import Displayed
from assay.writing.numbers import count, interval, number, percent, speed

if TYPE_CHECKING:
    from fractions import Fraction

_REASONS_SHOWN, _UNSCORED_SHOWN = 5, 20
_TEMPLATES, _EXAMPLES, _REASON_WIDTH = 3, 3, 70
_NOTES_SHOWN, _VALUES = 20, 20
_ROOT = 16
"""Digits of the root that are shown."""
_ROWS_TIMED = 1_000
"""Rows from which on the summary has a speed: of fewer, it is that of the start."""
_REASONS_KEPT = 10_000
"""Maximum number of distinct reasons per check: a task table may hold any number of messages. Others count as their template."""

_ROUNDING = 1e-9
"""Relative difference between a mean and a minimum that the order of additions may cause."""


@frozen
class Gate:
    """A minimum or a maximum that a run has to keep to, and what it reached; a run that does not still writes its result.

    Attributes:
        option: The option that asks for it.
        limit: The minimum or the maximum, as it is given if it is one of rows.
        value: What the run reached: a share, a mean, or of a maximum rows; None if no row is scored.
        met: Whether the run keeps to it.
        words: What the run did not keep to, in words.
    """

    option: str
    limit: float | str
    value: float | None
    met: bool
    words: str

    @property
    def told(self) -> str:
        """What the run did not keep to, as a line."""
        return f"{'exceeded' if self.option.startswith('--max') else 'not reached'}: {self.words}"

    def as_json(self) -> dict[str, Any]:
        """Return JSON data."""
        return {name: getattr(self, name) for name in ("option", "limit", "value", "met")}


def pass_rate_gate(least: "Fraction", passed: int, scored: int, unscored: int = 0) -> Gate:
    """Compare the share of the rows that passed with a minimum, without rounding; ``unscored`` rows count as not passing."""
    rows = scored + unscored
    value = passed / rows if scored else None
    met = scored > 0 and passed >= least * rows
    others = f", {unscored:,} unscored" if unscored else ""
    reached = (
        "no row is scored" if value is None else f"{passed:,} of {rows:,} rows passed ({100 * value:.6g}%){others}"
    )
    words = f"pass rate: {reached}; --min-pass-rate asks for {100 * float(least):.6g}%"
    return Gate("--min-pass-rate", float(least), value, met, words)


def reward_gate(least: float, mean: float | None) -> Gate:
    """Compare the mean reward with a minimum; a difference in the last digits of a sum does not count."""
    met = mean is not None and (mean >= least or math.isclose(mean, least, rel_tol=_ROUNDING, abs_tol=1e-12))
    reached = "no row is scored" if mean is None else f"{mean:.6g}"
    return Gate("--min-reward", least, mean, met, f"mean reward: {reached}; --min-reward asks for {least:g}")


def outcome_gate(outcome: str, most: int | str, rows: int, scored: int) -> Gate:
    """Compare how many of the scored rows have an outcome with the most that may: a number, or a share such as ``"5%"``."""
    option = f"--max-{outcome.replace('_', '-')}"
    exceeded = RowLimit(option, most).exceeded(rows, scored)
    value = rows / scored if scored else None
    share = "" if value is None else f" ({100 * value:.6g}%)"
    words = f"outcome {outcome}: {rows:,} of {counted(scored, 'scored row')}{share}; {option} allows {most}"
    return Gate(option, most, rows, not exceeded, words)


@dataclass
class CheckSummary:
    """The numbers of one check."""

    id: str
    type: str
    weight: float | None
    rows: int = 0
    failures: int = 0
    errors: int = 0
    total: float = 0.0
    reasons: Counter[str] = field(default_factory=Counter)
    remarks: Counter[str] = field(default_factory=Counter)
    broken: str = ""

    @property
    def notes(self) -> list[str]:
        """The most frequent remarks, each with its number of rows."""
        return [
            f"{self.id}: {rows:,} of {counted(self.rows, 'row')}: {remark}" for remark, rows in top(self.remarks, 3)
        ]

    @property
    def mean(self) -> float | None:
        """Mean score of the scored rows; None if there are none, or if their sum overflows."""
        return self.total / self.rows if self.rows and math.isfinite(self.total) else None

    def merge(self, other: "CheckSummary") -> None:
        """Add the numbers of the same check on other rows."""
        for name in ("rows", "failures", "errors", "total"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        _add(self.reasons, other.reasons)
        _add(self.remarks, other.remarks)

    @property
    def by_template(self) -> list[dict[str, Any]]:
        """The reasons by template, the most frequent first, each with its most frequent reasons."""
        examples: dict[str, Counter[str]] = {}
        for words, (reason, rows) in zip(templates(self.reasons), self.reasons.items(), strict=True):
            examples.setdefault(words, Counter())[reason] += rows
        counts = Counter({words: reasons.total() for words, reasons in examples.items()})
        return [
            {
                "template": words,
                "rows": rows,
                "examples": [
                    {"reason": reason, "rows": often}
                    for reason, often in top(examples[words], _EXAMPLES + 1)
                    if reason != words
                ][:_EXAMPLES],
            }
            for words, rows in top(counts, len(counts))
        ]

    @property
    def words(self) -> str:
        """The most frequent reasons, a line each; examples of the first are indented."""
        if self.broken:  # the problems have it
            return "it cannot run"
        shown, lines = self.by_template, list[str]()
        for reason in shown[:_TEMPLATES]:
            examples = reason["examples"]
            is_alone = len(examples) == 1 and examples[0]["rows"] == reason["rows"]
            lines.append(_times(reason["rows"], examples[0]["reason"] if is_alone else reason["template"]))
            if len(lines) == 1 and not is_alone:
                often = [*examples[:1], *(example for example in examples[1:] if example["rows"] > 1)]
                lines += [f"  {_times(example['rows'], example['reason'])}" for example in often]
        return "\n".join([*lines, *([f"… {more:,} more"] if (more := len(shown) - _TEMPLATES) > 0 else [])])

    def as_json(self) -> dict[str, Any]:
        """Return JSON data, with the five most frequent templates of reasons."""
        reasons = self.by_template
        numbers = {name: getattr(self, name) for name in ("id", "type", "weight", "mean", "failures", "errors")}
        more = len(reasons) - _REASONS_SHOWN
        return numbers | {"reasons": reasons[:_REASONS_SHOWN]} | ({"more_reasons": more} if more > 0 else {})


@dataclass(repr=False)
class Summary(Displayed):
    """The numbers of a run.

    Attributes:
        rows: Input rows, and also output rows.
        scored: Rows with a reward.
        passed: Rows that passed.
        errors: Rows with a non-null ``error``.
        unscored: Counts of the reasons why rows have no reward.
        checks: One entry for each check that ran, or for each function that rows named.
        told: Notes made before a row is read: skipped checks, likely mistakes, renamed columns, columns taken from the tasks.
        no_task: Rows whose task is not in the task table.
        bad_rows: Malformed rows, which are unscored.
        broken: Checks that could not run, each with the reason.
        seconds: Wall time from the first row to the last.
        earlier: Rows that an earlier run had scored; ``rows`` includes them.
        out: Path of the rewards, or None.
        root: Digest of the content of the rewards, 64 hexadecimal digits; ``""`` if they are not one parquet file.
        verifiers: What the footer of this file says of the verifiers.
        columns: Names of the columns of this file.
        skipped: Checks that did not run because their type is unknown, each with the reason.
        errors_allowed: Whether the caller has set a limit on the rows with an error, and the run kept to it.
        gates: The minimums and maximums that the caller asked for, each with whether the run kept to it.
        outcomes: Rows by outcome; empty where outcomes were not asked for.
        by: For a column, the means and pass rates of its values, with intervals: ``assay.insight.summarizing.by_group``.
    """

    checks: list[CheckSummary]
    told: list[str]
    broken: list[str] = field(default_factory=list)
    rows: int = 0
    scored: int = 0
    passed: int = 0
    errors: int = 0
    no_task: int = 0
    bad_rows: int = 0
    unscored: Counter[str] = field(default_factory=Counter)
    total: float = 0.0
    seconds: float = 0.0
    earlier: int = 0
    out: str | None = None
    root: str = ""
    verifiers: Sequence[Mapping[str, Any]] = ()
    columns: Sequence[str] = ()
    skipped: list[str] = field(default_factory=list)
    errors_allowed: bool = False
    gates: list[Gate] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    by: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def _document(self) -> Document:
        checks = [[check.id, number(check.mean), count(check.failures), check.words] for check in self.checks]
        columns = {"check": False, "mean": True, "failures": True, "most frequent reasons": False}
        where = {None: "not written; name a file with --out", "-": "standard output"}.get(self.out, self.out or "")
        notes = [f"note: {note}" for note in self.notes[:_NOTES_SHOWN]]
        notes += [f"… {counted(more, 'more note')}"] if (more := len(self.notes) - _NOTES_SHOWN) > 0 else []
        timed = self.seconds and self.rows >= _ROWS_TIMED
        head = f"{self.headline} · {speed(self.rows_per_second)}" if timed else self.headline
        blocks = [
            Lines(
                [
                    *self.troubles,
                    *(f"warning: {doubt}" for doubt in self.doubts),
                    head,
                    *filter(None, [self.outcome_line]),
                ]
            ),
            *([Table(columns, checks)] if checks else []),
            *([Lines(self._error_lines())] if self.errors else []),
            *(block for name, values in self.by.items() for block in _by_document(name, values)),
            Lines([*notes, f"rewards: {where}{f' (root {self.root[:_ROOT]})' if self.root else ''}"]),
        ]
        return Document("assay score", blocks)

    @property
    def troubles(self) -> list[str]:
        """The problems, the minimums that were not reached and the maximums that were exceeded, as lines; why a check is broken is known from a warning."""
        known = tuple(f": {check.broken}" for check in self.checks if check.broken)
        problems = (
            next((problem.removesuffix(end) for end in known if problem.endswith(end)), problem)
            for problem in self.problems
        )
        return [*(f"problem: {problem}" for problem in problems), *(gate.told for gate in self.gates if not gate.met)]

    @property
    def outcome_line(self) -> str:
        """Rows by outcome in one line; ``""`` where outcomes were not asked for."""
        shown = (f"{name} {count(self.outcomes[name])}" for name in OUTCOMES)
        return f"outcomes: {' · '.join(shown)}" if self.outcomes else ""

    def _error_lines(self) -> list[str]:
        have, shown = "has" if self.errors == 1 else "have", top(self.unscored, _REASONS_SHOWN)
        lines = [f"{counted(self.errors, 'row')} {have} an error:"]
        lines += [f"  {check.id}: {count(check.errors)}" for check in self.checks if check.errors]
        lines += [f"  unscored, {reason}: {count(rows)}" for reason, rows in shown]
        if (more := len(self.unscored) - len(shown)) > 0:
            rows = self.rows - self.scored - sum(rows for _, rows in shown)
            lines.append(f"  unscored, {counted(more, 'other reason')}: {count(rows)}")
        return lines

    @classmethod
    def of(cls, plan: Plan) -> "Summary":
        """Return an empty summary of a plan."""
        checks = [
            # for the only check of a rubric's member, its weight is the member's
            CheckSummary(
                _ident(plan, verifier, spec),
                spec.type,
                spec.weight if verifier.share is None or verifier.kind == NATIVE else verifier.share.weight,
                broken=spec.broken,
            )
            for verifier, spec, _ in plan.checks
            if spec.id
        ]
        noted = [
            (f"{verifier.id}/{spec.id}: {spec.note}", spec.check is None)
            for verifier in plan.verifiers
            for check in verifier.checks
            for spec in check.nodes()
            if spec.note
        ]
        broken = [
            f"{verifier.id}/{spec.id}: broken: {spec.broken}"
            for verifier in plan.verifiers
            for spec in verifier.nodes
            if spec.broken
        ]
        renamed = [(name, shown) for shown, name in plan.passed_through.items() if shown != name]
        outcomes = Counter[str](dict.fromkeys(OUTCOMES, 0) if plan.finds_outcomes else ())
        notes = [note for note, _ in noted]
        notes += [f"the input's column `{name}` is kept as `{shown}`" for name, shown in renamed]
        skipped = [note for note, is_skipped in noted if is_skipped]
        return cls(checks, notes, broken, skipped=skipped, outcomes=outcomes)

    @classmethod
    def of_scored(cls, plan: Plan, scored: pl.DataFrame) -> "Summary":
        """Return what ``failures`` and ``doubts`` need of ``plan.score(…, watched=plan.faults)``."""
        summary = cls.of(plan)
        reasons = scored.filter(pl.col("reward").is_null())["error"]
        summary.rows, summary.scored = scored.height, scored.height - len(reasons)
        summary.errors = scored.height - scored["error"].null_count()
        _count(summary.unscored, reasons)
        summary.no_task = _without_task(reasons)
        for named, part in _named_parts(plan, scored):
            for ident, ((verifier, spec, _), _) in named:
                if may_err(spec):
                    score, error = part[hidden(check_column(verifier, spec))], part[error_column(verifier, spec)]
                    entry = summary.entry(ident, spec.type, spec.weight)
                    entry.rows += len(score) - score.null_count()
                    entry.errors += len(error) - error.null_count()
        return summary

    def entry(self, ident: str, type_: str, weight: float | None) -> CheckSummary:
        """Return the numbers of a check, or of a function that a row names for the first time."""
        entry = next((entry for entry in self.checks if entry.id == ident), None)
        if entry is None:
            entry = CheckSummary(ident, type_, weight)
            self.checks.append(entry)
        return entry

    @property
    def problems(self) -> list[str]:
        """Why the rewards are not what the verifiers mean: checks that did not run or broke on every row, errors on every row."""
        skipped = [f"did not run: {reason}" for reason in self.skipped if self.rows]
        return [*skipped, *(problem for problem, _ in self._failures())]

    @property
    def doubts(self) -> list[str]:
        """What to warn of after a run whose rewards stand: many rows have none."""
        unscored = self.rows - self.scored
        if not self.rows > unscored > self.rows / 10:  # that all are is a problem of the run
            return []
        often = "".join(f"; most often: {reason} ({counted(rows, 'row')})" for reason, rows in top(self.unscored, 1))
        return [f"unscored: {unscored:,} of {counted(self.rows, 'row')} ({percent(unscored / self.rows)}){often}"]

    @property
    def failures(self) -> list[str]:
        """The problems that no warning before the run has named."""
        return [problem for problem, is_known in self._failures() if not is_known]

    def _failures(self) -> list[tuple[str, bool]]:
        broken = [check for check in self.checks if 0 < check.rows == check.errors]
        problems = [
            (f"broke on every row: {check.id}: {check.broken or counted(check.rows, 'error')}", bool(check.broken))
            for check in broken
        ]
        if self.errors_allowed or not 0 < self.rows == self.errors:
            return problems
        is_known = any(check.broken for check in broken)
        if self.no_task != self.rows:
            return [*problems, ("every row has an error", is_known)]
        reason, rows = top(self.unscored, 1)[0]
        more = f", and {self.rows - rows:,} like it" if rows < self.rows else ""
        return [*problems, (f"no rollout finds its task: {reason} ({counted(rows, 'row')}{more})", is_known)]

    @property
    def unmet(self) -> list[str]:
        """The minimums that the run did not reach and the maximums that it exceeded, each with what it reached."""
        return [gate.words for gate in self.gates if not gate.met]

    @property
    def headline(self) -> str:
        """The numbers of all rows in one line; how many are scored comes first where some are not."""
        rows = counted(self.rows, "row")
        rows = rows if self.scored == self.rows else f"{self.scored:,} of {rows} scored"
        return f"{rows} · mean reward {number(self.mean_reward)} · pass rate {percent(self.pass_rate)}"

    @property
    def notes(self) -> list[str]:
        """What the user should know: the notes made before the run, then the checks' remarks on rows."""
        return [*self.told, *(note for check in self.checks for note in check.notes)]

    @property
    def mean_reward(self) -> float | None:
        """Mean reward of the scored rows; None if there are none, or if their sum overflows."""
        return self.total / self.scored if self.scored and math.isfinite(self.total) else None

    @property
    def pass_rate(self) -> float | None:
        """Share of the scored rows that passed; None if there are none."""
        return self.passed / self.scored if self.scored else None

    @property
    def rows_per_second(self) -> float | None:
        """Rows per second of wall time."""
        return (self.rows - self.earlier) / self.seconds if self.seconds else None

    def add(self, plan: Plan, batch: pl.DataFrame) -> None:
        """Add a batch of ``plan.lazy(…, watched=True)``."""
        reward = batch[hidden("reward")]
        self.rows += batch.height
        self.scored += reward.len() - reward.null_count()
        self.total = self.total + float(reward.sum())
        self.passed += int(batch[hidden("passed")].sum())
        self.errors += batch.height - batch[hidden("error")].null_count()
        _count(self.unscored, batch[UNSCORED])
        if plan.finds_outcomes:
            self.count_outcomes(batch[hidden(OUTCOME)])
        self.no_task += _without_task(batch[UNSCORED])
        for named, part in _named_parts(plan, batch):
            # one query counts all checks
            counts = part.select_seq(count.alias(ident) for ident, (_, (count, _)) in named)
            for ident, ((verifier, spec, check), (_, always)) in named:
                entry, numbers = self.entry(ident, spec.type, spec.weight), counts[ident][0]
                entry.merge(CheckSummary(ident, spec.type, spec.weight, **numbers))
                if (remark := remark_column(verifier, spec)) in part.columns:
                    _count(entry.remarks, part[remark])
                if always is not None:
                    entry.reasons.update({always: numbers["failures"]} if numbers["failures"] else {})
                    continue
                reasons = part[reason_column(verifier, spec)].drop_nulls()
                several = check.traits.separator and len(reasons)
                _count(entry.reasons, reasons.str.split(check.traits.separator).explode() if several else reasons)

    def count_outcomes(self, outcomes: pl.Series) -> None:
        """Add the outcomes of rows."""
        self.outcomes.update(dict.fromkeys(OUTCOMES, 0))
        self.outcomes.update(dict(outcomes.value_counts(name="rows").iter_rows()))

    def merge(self, other: "Summary") -> None:
        """Add the numbers of the same run on other rows; ``told`` stays as it is."""
        for name in _COUNTED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        _add(self.unscored, other.unscored)
        self.outcomes.update(other.outcomes)
        for check in other.checks:
            self.entry(check.id, check.type, check.weight).merge(check)

    def dump(self) -> dict[str, Any]:
        """Return the counts as JSON data, for ``load``."""
        numbers = {name: getattr(self, name) for name in _COUNTED}
        outcomes = {"outcomes": self.outcomes} if self.outcomes else {}
        return numbers | outcomes | {"unscored": self.unscored, "checks": [vars(check) for check in self.checks]}

    @classmethod
    def load(cls, dumped: Mapping[str, Any]) -> "Summary":
        """Return a summary with the counts that ``dump`` returned.

        Raises:
            KeyError: An entry is missing.
        """
        checks = [
            CheckSummary(**{**check, "reasons": Counter(check["reasons"]), "remarks": Counter(check["remarks"])})
            for check in dumped["checks"]
        ]
        numbers = {name: dumped[name] for name in _COUNTED if name != "no_task"}
        unscored, outcomes = (Counter[str](dumped.get(name, {})) for name in ("unscored", "outcomes"))
        no_task = dumped.get("no_task", 0)
        return cls(checks, [], unscored=unscored, outcomes=outcomes, no_task=no_task, **numbers)

    def as_json(self) -> dict[str, Any]:
        """Return JSON data."""
        names = ("rows", "scored", "problems", "mean_reward", "pass_rate", "errors", "bad_rows", "seconds")
        numbers = {name: getattr(self, name) for name in (*names, "rows_per_second", "out", "root")}
        unscored = [{"reason": reason, "rows": rows} for reason, rows in top(self.unscored, _UNSCORED_SHOWN)]
        optional = {
            "gates": [gate.as_json() for gate in self.gates],
            "warnings": self.doubts,
            "more_unscored_reasons": len(self.unscored) - len(unscored),
            "by": self.by,
            "outcomes": {name: self.outcomes[name] for name in OUTCOMES if self.outcomes},
        }
        return {
            **numbers,
            **{name: value for name, value in optional.items() if value},
            "unscored": unscored,
            "notes": self.notes,
            "broken": self.broken,
            "checks": [check.as_json() for check in self.checks],
        }


_COUNTED = ("rows", "scored", "passed", "errors", "no_task", "total")


def _without_task(reasons: pl.Series) -> int:
    reasons = reasons.drop_nulls()
    return int(reasons.to_frame("why").select(no_task_expr("why").sum()).item()) if len(reasons) else 0


def _add(counts: Counter[str], more: Mapping[str, int]) -> None:
    rest: Counter[str] = Counter()
    for reason, rows in more.items():
        (counts if reason in counts or len(counts) < _REASONS_KEPT else rest)[reason] += rows
    for words, rows in zip(templates(rest), rest.values(), strict=True) if rest else ():
        if words in counts or len(counts) < 2 * _REASONS_KEPT:
            counts[words] += rows


def _add_many(counts: Counter[str], found: pl.DataFrame) -> None:
    """``_add`` of many reasons at once, each with its number of rows: in columns, for less than half the time."""
    reason = pl.col("reason")

    def rest(found: pl.DataFrame, most: int) -> pl.DataFrame:
        """Add the known reasons, and new ones up to a number of all; return the others."""
        is_known = found.select(reason.is_in(pl.Series([*counts], dtype=pl.String).implode())).to_series()
        new, room = found.filter(~is_known), max(0, most - len(counts))
        counts.update(dict(pl.concat([found.filter(is_known), new.head(room)]).iter_rows()))
        return new.slice(room)

    others = rest(found, _REASONS_KEPT)
    kinds = others.group_by(template_expr(reason), maintain_order=True).agg(pl.col("rows").sum())
    rest(kinds, 2 * _REASONS_KEPT)


def _times(rows: int, reason: str) -> str:
    return f"{count(rows)}× {clipped(reason, _REASON_WIDTH)}"


def _by_document(name: str, values: Sequence[Mapping[str, Any]]) -> list[Lines | Table]:
    worst = sorted(values, key=lambda value: (value["mean_reward"] is None, value["mean_reward"] or 0.0))
    shown = values if len(values) <= _VALUES else worst[:_VALUES]
    rows = [
        [
            "–" if value["value"] is None else str(value["value"]),
            *(count(value["rows"]), count(value["tasks"])),
            f"{number(value['mean_reward'])} {interval(value['mean_reward_ci95'])}".rstrip(),
            f"{percent(value['pass_rate'])} {interval(value['pass_rate_ci95'], of_shares=True)}".rstrip(),
        ]
        for value in shown
    ]
    numbers = dict.fromkeys(("rows", "tasks", "mean reward, 95 %", "pass rate, 95 %"), True)
    lines = [f"… the {len(shown)} least of {len(values):,}; all with --json"] if len(shown) < len(values) else []
    if any(value["groups"] < value["scored"] for value in values):
        lines.append("note: means over groups of a task, a model and a step; a group's rows count once together")
    if few := [value["tasks"] for value in shown if value["few"] and value["tasks"] > 1]:
        lines.append(f"few tasks ({min(few)}): an interval over fewer than 30 is only roughly one of 95 %")
    return [Table(with_names([name], numbers), rows, spare=("tasks", "rows")), *([Lines(lines)] if lines else [])]


def _ident(plan: Plan, verifier: VerifierSpec, spec: CheckSpec) -> str:
    several = len(plan.verifiers) > 1 and verifier.kind != FUNCTION
    return f"{verifier.id}/{spec.id}" if spec.id and several else spec.id


_Checked = tuple[tuple[VerifierSpec, CheckSpec, Check], tuple[pl.Expr, str | None]]
"""A check of a plan, with its entry in the plan's ``counts``."""


def _named_parts(plan: Plan, batch: pl.DataFrame) -> list[tuple[list[tuple[str, _Checked]], pl.DataFrame]]:
    fixed: list[tuple[str, _Checked]] = []
    parts = [(fixed, batch)]
    for checked in zip(plan.checks, plan.counts, strict=True):
        (verifier, spec, _), _ = checked
        if ident := _ident(plan, verifier, spec):
            fixed.append((ident, checked))
            continue
        extra = hidden(extra_column(verifier, spec))
        named = batch.filter(pl.col(extra).is_not_null())
        by_name = ((part[extra][0], part) for part in named.partition_by(extra)) if named.height else ()
        parts += [([(name, checked)], part) for name, part in sorted(by_name, key=lambda pair: pair[0])]
    return parts


def _count(counts: Counter[str], reasons: pl.Series) -> None:
    reasons = reasons.drop_nulls().alias("reason")
    if not len(reasons):
        return
    few = THRESHOLDS.counted_reasons
    # in a quarter of the time of a query
    if len(counts) < few and (kinds := reasons.value_counts(name="rows")).height < few:
        rows = dict(kinds.iter_rows())
        ordered = reasons.unique(maintain_order=True) if len(rows) > 1 else rows
        _add(counts, {reason: rows[reason] for reason in ordered})
        return
    # in order, so that the same reasons of too many are kept in all runs
    found = reasons.to_frame().group_by("reason", maintain_order=True).len(name="rows")
    if found.height < few:
        _add(counts, dict(found.iter_rows()))
    else:
        _add_many(counts, found)
