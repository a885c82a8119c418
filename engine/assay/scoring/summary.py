"""The numbers of a run, added up batch by batch."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

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
from assay.aggregating.pipeline import may_err, one_reason, short_expr
from assay.checks.base import Check
from assay.compiling.plan import Plan, no_task_expr
from assay.errors import counted, top
from assay.names import FUNCTION, NATIVE
from assay.scoring.gates import Gate
from assay.scoring.views import as_html, as_text
from assay.spec.verifier import CheckSpec, VerifierSpec

_REASONS_SHOWN, _UNSCORED_SHOWN = 5, 20
_REASONS_KEPT = 10_000
"""Maximum number of distinct reasons per check: a task table may hold any number of messages."""


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

    def count(
        self, counts: Mapping[str, Any], batch: pl.DataFrame, verifier: VerifierSpec, spec: CheckSpec, joint: str
    ) -> None:
        """Add the numbers of a batch."""
        self.rows += counts["rows"]
        self.total = self.total + counts["total"]
        self.failures += counts["failures"]
        self.errors += counts["errors"]
        if (remark := remark_column(verifier, spec)) in batch.columns:
            _count(self.remarks, batch[remark])
        if (reason := one_reason(spec)) is not None:
            self.reasons.update({reason: counts["failures"]} if counts["failures"] else {})
            return
        reasons = batch[reason_column(verifier, spec)].drop_nulls()
        _count(self.reasons, reasons.str.split(joint).explode() if joint and len(reasons) else reasons)

    def merge(self, other: "CheckSummary") -> None:
        """Add the numbers of the same check on other rows."""
        self.rows += other.rows
        self.failures += other.failures
        self.errors += other.errors
        self.total = self.total + other.total
        _add(self.reasons, other.reasons)
        _add(self.remarks, other.remarks)

    def as_json(self) -> dict[str, Any]:
        """Return JSON data, with the five most frequent reasons."""
        reasons = [{"reason": reason, "rows": rows} for reason, rows in top(self.reasons, _REASONS_SHOWN)]
        numbers = {name: getattr(self, name) for name in ("id", "type", "weight", "mean", "failures", "errors")}
        more = len(self.reasons) - len(reasons)
        return numbers | {"reasons": reasons} | ({"more_reasons": more} if more else {})


@dataclass(repr=False)
class Summary:
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
        skipped: Checks that did not run because their type is unknown, each with the reason.
        errors_allowed: Whether the caller has set a limit on the rows with an error, and the run kept to it.
        gates: The minimums that the caller asked for, each with whether the run reached it.
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
    skipped: list[str] = field(default_factory=list)
    errors_allowed: bool = False
    gates: list[Gate] = field(default_factory=list)
    by: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    _COUNTED: ClassVar[tuple[str, ...]] = ("rows", "scored", "passed", "errors", "total")

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)

    @classmethod
    def of(cls, plan: Plan) -> "Summary":
        """Return an empty summary of a plan."""
        checks = [
            CheckSummary(_ident(plan, verifier, spec), spec.type, _weight(verifier, spec), broken=spec.broken)
            for verifier, spec, _ in plan.checks
            if spec.id
        ]
        noted = [
            (f"{verifier.id}/{spec.id}: {spec.note}", spec.check is None)
            for verifier in plan.verifiers
            for top in verifier.checks
            for spec in top.nodes()
            if spec.note
        ]
        notes = [note for note, _ in noted]
        skipped = [note for note, is_skipped in noted if is_skipped]
        broken = [
            f"{verifier.id}/{spec.id}: broken: {spec.broken}"
            for verifier in plan.verifiers
            for spec in verifier.nodes
            if spec.broken
        ]
        for shown, name in plan.passed_through.items():
            if shown != name:
                notes.append(f"the input's column `{name}` is kept as `{shown}`")
        return cls(checks, notes, broken, skipped=skipped)

    @property
    def problems(self) -> list[str]:
        """Why the rewards are not what the verifiers mean: checks that did not run or broke on every row, errors on every row."""
        skipped = [f"did not run: {reason}" for reason in self.skipped if self.rows]
        return [*skipped, *(problem for problem, _ in self._failures())]

    @property
    def doubts(self) -> list[str]:
        """What to warn of after a run whose rewards stand: many rows have none."""
        return many_unscored(self.rows, self.rows - self.scored, self.unscored)

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
        no_task = f"no rollout finds its task: {self._example}" if self.no_task == self.rows else ""
        return [*problems, (no_task or "every row has an error", is_known)]

    @property
    def _example(self) -> str:
        reason, rows = top(self.unscored, 1)[0]
        more = self.rows - rows
        return f"{reason} ({counted(rows, 'row')}{f', and {more:,} like it' if more else ''})"

    @property
    def unmet(self) -> list[str]:
        """The minimums that the run did not reach, each with what it reached."""
        return [gate.words for gate in self.gates if not gate.met]

    @property
    def headline(self) -> str:
        """The numbers of all rows in one line; how many are scored comes first where some are not."""
        rows = counted(self.rows, "row")
        rows = rows if self.scored == self.rows else f"{self.scored:,} of {rows} scored"
        mean, rate = self.mean_reward, self.pass_rate
        mean_and_rate = ("–" if mean is None else f"{mean:.4f}", "–" if rate is None else f"{rate:.1%}")
        return "{} · mean reward {} · pass rate {}".format(rows, *mean_and_rate)

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
        self.no_task += _without_task(batch[UNSCORED])
        entries = {check.id: check for check in self.checks}
        for named, part in _named_parts(plan, batch):
            counts = part.select(
                _counts(verifier, spec, check).alias(ident) for ident, (verifier, spec, check) in named
            )
            for ident, (verifier, spec, check) in named:
                if ident not in entries:  # the first row that names this function
                    entries[ident] = CheckSummary(ident, spec.type, spec.weight)
                    self.checks.append(entries[ident])
                entries[ident].count(counts[ident][0], part, verifier, spec, check.joint)

    def merge(self, other: "Summary") -> None:
        """Add the numbers of the same run on other rows; ``told`` stays as it is."""
        self.rows += other.rows
        self.scored += other.scored
        self.passed += other.passed
        self.errors += other.errors
        self.no_task += other.no_task
        self.total = self.total + other.total
        _add(self.unscored, other.unscored)
        entries = {check.id: check for check in self.checks}
        for check in other.checks:
            if check.id not in entries:  # the first rows that name this function
                entries[check.id] = CheckSummary(check.id, check.type, check.weight)
                self.checks.append(entries[check.id])
            entries[check.id].merge(check)

    def dump(self) -> dict[str, Any]:
        """Return the counts as JSON data, for ``load``."""
        numbers = {name: getattr(self, name) for name in self._COUNTED}
        numbers["no_task"] = self.no_task
        return numbers | {"unscored": self.unscored, "checks": [vars(check) for check in self.checks]}

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
        summary = cls(checks, [])
        for name in cls._COUNTED:
            setattr(summary, name, dumped[name])
        summary.unscored, summary.no_task = Counter(dumped["unscored"]), dumped.get("no_task", 0)
        return summary

    def as_json(self) -> dict[str, Any]:
        """Return JSON data."""
        names: Sequence[str] = (
            "rows",
            "scored",
            "problems",
            "mean_reward",
            "pass_rate",
            "errors",
            "bad_rows",
            "seconds",
            "rows_per_second",
            "out",
            "root",
        )
        numbers = {name: getattr(self, name) for name in names}
        unscored = [{"reason": reason, "rows": rows} for reason, rows in top(self.unscored, _UNSCORED_SHOWN)]
        more = len(self.unscored) - len(unscored)
        numbers |= {"gates": [gate.as_json() for gate in self.gates]} if self.gates else {}
        numbers |= {"warnings": self.doubts} if self.doubts else {}
        numbers |= {"more_unscored_reasons": more} if more else {}
        numbers |= {"by": self.by} if self.by else {}
        return numbers | {
            "unscored": unscored,
            "notes": self.notes,
            "broken": self.broken,
            "checks": [check.as_json() for check in self.checks],
        }


def faults_of(plan: Plan, scored: pl.DataFrame) -> list[str]:
    """Return ``Summary.failures`` of ``plan.score(…, watched=plan.faults)``."""
    summary = Summary.of(plan)
    summary.rows, summary.errors = scored.height, scored.height - scored["error"].null_count()
    if 0 < summary.rows == summary.errors:  # of a row that has no task, the error is why it is unscored
        summary.no_task = _without_task(scored["error"])
        _count(summary.unscored, scored["error"])
    for named, part in _named_parts(plan, scored):
        for ident, (verifier, spec, _) in named:
            if not may_err(spec):
                continue
            entry = next((entry for entry in summary.checks if entry.id == ident), None)
            if entry is None:
                entry = CheckSummary(ident, spec.type, spec.weight)
                summary.checks.append(entry)
            score, error = part[hidden(check_column(verifier, spec))], part[error_column(verifier, spec)]
            entry.rows += len(score) - score.null_count()
            entry.errors += len(error) - error.null_count()
    return summary.failures


def many_unscored(rows: int, unscored: int, reasons: Counter[str]) -> list[str]:
    """Return a warning if more than a tenth of the rows are unscored; not if all are, which is a problem of the run."""
    if not rows > unscored > rows / 10:
        return []
    often = "".join(f"; most often: {reason} ({counted(number, 'row')})" for reason, number in top(reasons, 1))
    return [f"unscored: {unscored:,} of {counted(rows, 'row')} ({unscored / rows:.0%}){often}"]


def doubts_of(scored: pl.DataFrame) -> list[str]:
    """Return ``Summary.doubts`` of the result of ``plan.score``."""
    unscored, reasons = scored.filter(pl.col("reward").is_null()), Counter[str]()
    _count(reasons, unscored["error"])
    return many_unscored(scored.height, unscored.height, reasons)


def _without_task(reasons: pl.Series) -> int:
    reasons = reasons.drop_nulls()
    return int(reasons.to_frame("why").select(no_task_expr("why").sum()).item()) if len(reasons) else 0


def _add(counts: Counter[str], more: Counter[str]) -> None:
    for reason, rows in more.items():
        if reason in counts or len(counts) < _REASONS_KEPT:
            counts[reason] += rows


def _ident(plan: Plan, verifier: VerifierSpec, spec: CheckSpec) -> str:
    several = len(plan.verifiers) > 1 and verifier.kind != FUNCTION
    return f"{verifier.id}/{spec.id}" if spec.id and several else spec.id


def _weight(verifier: VerifierSpec, spec: CheckSpec) -> float:
    return spec.weight if verifier.share is None or verifier.kind == NATIVE else verifier.share.weight


_Checked = tuple[VerifierSpec, CheckSpec, Check]


def _named_parts(plan: Plan, batch: pl.DataFrame) -> list[tuple[list[tuple[str, _Checked]], pl.DataFrame]]:
    fixed: list[tuple[str, _Checked]] = []
    parts = [(fixed, batch)]
    for verifier, spec, check in plan.checks:
        if ident := _ident(plan, verifier, spec):
            fixed.append((ident, (verifier, spec, check)))
            continue
        extra = hidden(extra_column(verifier, spec))
        named = batch.filter(pl.col(extra).is_not_null())
        by_name = ((part[extra][0], part) for part in named.partition_by(extra)) if named.height else ()
        parts += [([(name, (verifier, spec, check))], part) for name, part in sorted(by_name, key=lambda pair: pair[0])]
    return parts


def _counts(verifier: VerifierSpec, spec: CheckSpec, check: Check) -> pl.Expr:
    score = pl.col(hidden(check_column(verifier, spec)))
    error = pl.col(error_column(verifier, spec)) if may_err(spec) else pl.lit(None)
    return pl.struct(
        rows=score.count(), total=score.sum(), failures=short_expr(verifier, spec, check).sum(), errors=error.count()
    )


def _count(counts: Counter[str], reasons: pl.Series) -> None:
    reasons = reasons.drop_nulls()
    if len(reasons):
        _add(counts, Counter(dict(reasons.value_counts(name="rows").iter_rows())))
