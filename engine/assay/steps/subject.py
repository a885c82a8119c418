"""What a check is about: a source and the steps that follow, as lanes that checks share."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from assay.calls.limits import Limits, own_failure
from assay.errors import said_by
from assay.expressions.lane import Lane, about, text
from assay.names import COMPLETION, TEXT
from assay.steps.base import Step
from assay.steps.sources import Source

__all__ = ["Found", "Subject"]


@dataclass(frozen=True)
class Found:
    """What the steps make of a row.

    Attributes:
        value: The text or the list of texts; None if they find nothing.
        nothing: Why they find nothing, or ``""``.
        error: Why a step failed; None if none did.
    """

    value: Any
    nothing: str = ""
    error: str | None = None


@dataclass(frozen=True)
class Subject:
    """A source and the steps that follow.

    Attributes:
        source: The source; None for the completion's text.
        steps: The steps, in order.
    """

    source: Source | None
    steps: tuple[Step, ...] = ()

    def within(self, limits: Limits) -> "Subject":
        """Return a copy whose steps have the limits of a run."""
        return replace(self, steps=tuple(step.within(limits) for step in self.steps))

    @property
    def gives_list(self) -> bool:
        """Whether the result is a list of texts."""
        return bool(self.steps) and self.steps[-1].gives_list

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads besides the completion."""
        return () if self.source is None else tuple(name for name in self.source.columns if name != COMPLETION)

    def then(self, steps: tuple[Step, ...]) -> "Subject":
        """Return the subject with further steps."""
        return replace(self, steps=(*self.steps, *steps))

    # ── the definition ──────────────────────────────────────────────────────────────────────────────────────────────

    def row(self, row: Mapping[str, Any]) -> Found:
        """Return what the steps make of a row with a completion."""
        value: Any = row[COMPLETION] if self.source is None else self.source.row(row)
        if value is None:
            return Found(None, f"found nothing: {self.source}")
        for step in self.steps:
            try:
                result = step.row(value)
            except BaseException as exception:  # a pattern's limit, or a user's step
                if not own_failure(exception):
                    raise
                return Found(None, error=said_by(exception))
            if result is None and not step.keeps:
                return Found(None, f"found nothing: {step.name}")
            value = value if result is None else result
        return Found(value)

    # ── columns ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def column(self) -> str:
        """Name of the column with the result: null where the steps find nothing or fail."""
        lanes = self._lanes()
        with about(TEXT):
            return lanes[-1][0].column if lanes else TEXT

    def lanes(self) -> tuple[Lane, ...]:
        """Return the lanes of the source and of each step; they are about the completion."""
        return tuple(lane for lanes in self._lanes() for lane in lanes if lane is not None)

    def nothing_expr(self) -> pl.Expr:
        """Return why the steps find nothing as a String expression; null where they find something or fail."""
        names = [] if self.source is None else [str(self.source)]
        values = [pl.col(lane.column) for lane, _ in self._lanes()]
        nothing = [
            pl.when(value.is_null()).then(pl.lit(f"found nothing: {name}"))
            for name, value in zip([*names, *(step.name for step in self.steps)], values, strict=True)
        ]
        reason = pl.coalesce(nothing) if nothing else pl.lit(None, dtype=pl.String)
        error = self.error_expr()
        return reason if error is None else pl.when(error.is_null()).then(reason)

    def error_expr(self) -> pl.Expr | None:
        """Return why a step failed as a String expression; None if no step can fail."""
        errors = [lane.col.struct.field("error") for _, lane in self._lanes() if lane is not None]
        return pl.coalesce(errors) if errors else None

    def _lanes(self) -> list[tuple[Lane, Lane | None]]:
        """Return the lane of the source and of each step: its value, and what it is taken from if the step can fail."""
        lanes: list[tuple[Lane, Lane | None]] = []
        if self.source is not None:
            lanes.append((Lane(f"on:{self.source!r}", self.source.expr), None))
        for step in self.steps:
            lanes.append(_step_lanes(lanes[-1][0] if lanes else None, step))
        return lanes

    def explain(self) -> list[str]:
        """Return a line for each step: which engine runs it."""
        return [f"{step.name}: {step.explain()}" for step in self.steps]


def _step_lanes(before: Lane | None, step: Step) -> tuple[Lane, Lane | None]:
    name, after = f"{before.name if before else 'on:'}>{step.key}", (before,) if before else ()

    def given() -> pl.Expr:
        return before.col if before else text()

    if not step.errors:
        return Lane(name, lambda _: _kept(step, step.expr(given()), given()), after), None
    answer = Lane(f"{name}?", lambda _: step.expr(given()), after)

    def value(_: pl.Schema) -> pl.Expr:
        result, error = answer.col.struct.field("value"), answer.col.struct.field("error")
        return pl.when(error.is_null()).then(_kept(step, result, given()))

    return Lane(name, value, (*after, answer)), answer


def _kept(step: Step, result: pl.Expr, given: pl.Expr) -> pl.Expr:
    return pl.coalesce(result, given) if step.keeps else result
