"""What a run amounts to, added up batch by batch."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import polars as pl

from assay.aggregating.aggregate import (
    UNSCORED,
    check_column,
    error_column,
    extra_column,
    hidden,
    may_err,
    one_reason,
    reason_column,
    remark_column,
    short_expr,
)
from assay.compiling.plan import Plan
from assay.names import FUNCTION, NATIVE
from assay.spec.verifier import CheckSpec, VerifierSpec

__all__ = ["CheckSummary", "Summary"]

_REASONS_KEPT = 10_000
"""Distinct reasons counted for each check; a task table can hold any number of messages."""


@dataclass
class CheckSummary:
    """One check over a run.

    Attributes:
        id: ``<check>``, or ``<verifier>/<check>`` when several verifiers ran.
        type: Its type.
        weight: Its weight.
        rows: Rows scored.
        failures: Rows scored below 1.
        errors: Rows on which scoring went wrong.
        mean: Mean score; None when no row was scored.
        reasons: Counts of the reasons.
        remarks: Counts of what its owner should know of rows that are not wrong.
    """

    id: str
    type: str
    weight: float
    rows: int = 0
    failures: int = 0
    errors: int = 0
    total: float = 0.0
    reasons: Counter[str] = field(default_factory=Counter)
    remarks: Counter[str] = field(default_factory=Counter)

    @property
    def notes(self) -> list[str]:
        """The most frequent remarks, each with its rows."""
        return [f"{self.id}: {rows:,} of {self.rows:,} rows {said}" for said, rows in top(self.remarks, 3)]

    @property
    def mean(self) -> float | None:
        """Mean score over the scored rows; None when there are none, or when no float holds their sum."""
        return self.total / self.rows if self.rows and math.isfinite(self.total) else None

    def merge(self, other: "CheckSummary") -> None:
        """Add the same check over other rows."""
        self.rows += other.rows
        self.failures += other.failures
        self.errors += other.errors
        self.total = self.total + other.total
        _add(self.reasons, other.reasons)
        _add(self.remarks, other.remarks)

    def as_json(self) -> dict[str, Any]:
        """Plain data; the five most frequent reasons."""
        reasons = [{"reason": reason, "rows": rows} for reason, rows in top(self.reasons, 5)]
        plain = {name: getattr(self, name) for name in ("id", "type", "weight", "mean", "failures", "errors")}
        return plain | {"reasons": reasons}


def top(counts: Counter[str], most: int) -> list[tuple[str, int]]:
    """The most frequent ones; among equals in order of the alphabet, so that runs agree."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:most]


@dataclass
class Summary:
    """A run in numbers.

    Attributes:
        rows: Rows in, which is rows out.
        scored: Rows with a reward.
        passed: Rows that passed.
        errors: Rows with a non-null ``error``.
        unscored: Counts of the reasons why rows have no reward.
        checks: One entry for each check that ran, or for each function that rows named.
        told: What is known before a row is read: skipped checks, renamed columns, columns taken from the tasks.
        bad_rows: Rows that are no rollouts, unscored.
        broken: Checks that could not run, each with why.
        seconds: Wall time from the first row to the last.
        earlier: Rows among these that an earlier run had scored.
        out: Where the rewards are, or None.
    """

    checks: list[CheckSummary]
    told: list[str]
    broken: list[str] = field(default_factory=list)
    rows: int = 0
    scored: int = 0
    passed: int = 0
    errors: int = 0
    bad_rows: int = 0
    unscored: Counter[str] = field(default_factory=Counter)
    total: float = 0.0
    seconds: float = 0.0
    earlier: int = 0
    out: str | None = None

    _COUNTED: ClassVar[tuple[str, ...]] = ("rows", "scored", "passed", "errors", "total")

    @classmethod
    def of(cls, plan: Plan) -> "Summary":
        """An empty summary of a plan."""
        checks = [
            CheckSummary(_ident(plan, verifier, spec), spec.type, _weight(verifier, spec))
            for verifier, spec, _ in plan.checks
            if spec.id
        ]
        notes = [
            f"{verifier.id}/{one.id}: {one.note}" for verifier in plan.verifiers for one in verifier.checks if one.note
        ]
        warned = [f"{v.id}/{one.id}: broken: {one.broken}" for v in plan.verifiers for one in v.checks if one.broken]
        for shown, name in plan.passed_through.items():
            if shown != name:
                notes.append(f"the input's column `{name}` is kept as `{shown}`")
        return cls(checks, notes, warned)

    @property
    def notes(self) -> list[str]:
        """What the run's owner should know: what is known before, then what the checks remark of rows."""
        return [*self.told, *(note for check in self.checks for note in check.notes)]

    @property
    def mean_reward(self) -> float | None:
        """Mean reward over the scored rows; None when there are none, or when no float holds their sum."""
        return self.total / self.scored if self.scored and math.isfinite(self.total) else None

    @property
    def pass_rate(self) -> float | None:
        """Share of the scored rows that passed; None when there are none."""
        return self.passed / self.scored if self.scored else None

    @property
    def rows_per_second(self) -> float | None:
        """Rows a second of wall time."""
        return (self.rows - self.earlier) / self.seconds if self.seconds else None

    def add(self, plan: Plan, batch: pl.DataFrame) -> None:
        """Count a batch of ``plan.lazy(…, watched=True)``."""
        reward = batch[hidden("reward")]
        self.rows += batch.height
        self.scored += reward.len() - reward.null_count()
        self.total = self.total + float(reward.sum())
        self.passed += int(batch[hidden("passed")].sum())
        self.errors += batch.height - batch[hidden("error")].null_count()
        _count(self.unscored, batch[UNSCORED])
        entries = {one.id: one for one in self.checks}
        for verifier, spec, check in plan.checks:
            for ident, part in _named_parts(batch, _ident(plan, verifier, spec), extra_column(verifier, spec)):
                if ident not in entries:  # a function that rows name is met
                    entries[ident] = CheckSummary(ident, spec.type, spec.weight)
                    self.checks.append(entries[ident])
                summary = entries[ident]
                short = short_expr(verifier, spec, check)
                score = pl.col(hidden(check_column(verifier, spec)))
                error = pl.col(error_column(verifier, spec)) if may_err(check) else pl.lit(None)
                counted = part.select(rows=score.count(), total=score.sum(), failures=short.sum(), errors=error.count())
                rows, total, failures, errors = counted.row(0)
                summary.rows += rows
                summary.total = summary.total + total
                summary.failures += failures
                summary.errors += errors
                if (remark := remark_column(verifier, spec)) in part.columns:
                    _count(summary.remarks, part[remark])
                if (reason := one_reason(spec)) is not None:
                    summary.reasons.update({reason: failures} if failures else {})
                    continue
                said = part[reason_column(verifier, spec)].drop_nulls()
                _count(summary.reasons, said.str.split(check.joint).explode() if check.joint and len(said) else said)

    def merge(self, other: "Summary") -> None:
        """Add the same run over other rows; what is known before a row is read stays as it is."""
        self.rows += other.rows
        self.scored += other.scored
        self.passed += other.passed
        self.errors += other.errors
        self.total = self.total + other.total
        _add(self.unscored, other.unscored)
        entries = {one.id: one for one in self.checks}
        for one in other.checks:
            if one.id not in entries:  # a function that rows name is met
                entries[one.id] = CheckSummary(one.id, one.type, one.weight)
                self.checks.append(entries[one.id])
            entries[one.id].merge(one)

    def dump(self) -> dict[str, Any]:
        """What is counted, as plain data that ``load`` reads."""
        plain = {name: getattr(self, name) for name in self._COUNTED}
        return plain | {"unscored": self.unscored, "checks": [vars(one) for one in self.checks]}

    @classmethod
    def load(cls, dumped: Mapping[str, Any]) -> "Summary":
        """What ``dump`` gave.

        Raises:
            KeyError: It is something else.
        """
        checks = [
            CheckSummary(**{**one, "reasons": Counter(one["reasons"]), "remarks": Counter(one["remarks"])})
            for one in dumped["checks"]
        ]
        summary = cls(checks, [])
        for name in cls._COUNTED:
            setattr(summary, name, dumped[name])
        summary.unscored = Counter(dumped["unscored"])
        return summary

    def as_json(self) -> dict[str, Any]:
        """Plain data for machines."""
        names: Sequence[str] = (
            "rows",
            "scored",
            "mean_reward",
            "pass_rate",
            "errors",
            "bad_rows",
            "seconds",
            "rows_per_second",
            "out",
        )
        plain = {name: getattr(self, name) for name in names}
        unscored = [{"reason": reason, "rows": rows} for reason, rows in top(self.unscored, 20)]
        return plain | {
            "unscored": unscored,
            "notes": self.notes,
            "broken": self.broken,
            "checks": [check.as_json() for check in self.checks],
        }


def _add(counts: Counter[str], more: Counter[str]) -> None:
    for words, rows in more.items():
        if words in counts or len(counts) < _REASONS_KEPT:
            counts[words] += rows


def _ident(plan: Plan, verifier: VerifierSpec, spec: CheckSpec) -> str:
    """A check's name in the summary; ``""`` for one that each row names."""
    several = len(plan.verifiers) > 1 and verifier.kind != FUNCTION
    return f"{verifier.id}/{spec.id}" if spec.id and several else spec.id


def _weight(verifier: VerifierSpec, spec: CheckSpec) -> float:
    """A check's weight; where it is all there is to a member of a rubric, that of the member."""
    return spec.weight if verifier.share is None or verifier.kind == NATIVE else verifier.share.weight


def _named_parts(batch: pl.DataFrame, ident: str, extra: str) -> list[tuple[str, pl.DataFrame]]:
    """A batch under a check's name, or in parts under the names that its rows give."""
    if ident:
        return [(ident, batch)]
    named = batch.filter(pl.col(hidden(extra)).is_not_null())
    parts = named.partition_by(hidden(extra), maintain_order=True) if named.height else []
    return sorted(((part[hidden(extra)][0], part) for part in parts), key=lambda part: part[0])


def _count(counts: Counter[str], said: pl.Series) -> None:
    found = said.drop_nulls()
    if not len(found):
        return
    _add(counts, Counter(dict(found.value_counts(name="rows").iter_rows())))
