"""What a check is about: a source and the steps that follow, row by row and as lanes that checks share."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from assay.calls.limits import Limits, is_user_error
from assay.errors import describe_error
from assay.expressions.shared_columns import SharedColumn, reading_column
from assay.frozen import frozen
from assay.names import COMPLETION, TEXT
from assay.steps.base import Step
from assay.steps.chain import Chain
from assay.steps.sources import Source

NOTHING = "found nothing: "
"""How the reason of a check begins that has nothing to read; the name of the step follows, or of the source."""
_NO_STEPS = Chain()


@frozen
class SubjectText:
    """What a check reads on one row: a text or a list of texts, or why there is nothing to read, or why a step failed."""

    value: Any
    nothing: str = ""
    error: str | None = None


@frozen
class Subject:
    """A source, None for the completion's text, and the steps that follow."""

    source: Source | None = None
    chain: Chain = _NO_STEPS

    def within(self, limits: Limits) -> "Subject":
        """Return a copy whose steps have the limits of a run."""
        return replace(self, chain=self.chain.within(limits))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads besides the completion."""
        return () if self.source is None else tuple(name for name in self.source.columns if name != COMPLETION)

    def then(self, steps: tuple[Step, ...]) -> "Subject":
        """Return the subject with further steps."""
        return replace(self, chain=Chain((*self.chain.steps, *steps)))

    def row(self, row: Mapping[str, Any]) -> SubjectText:
        """Return what the steps make of a row with a completion."""
        text = row[COMPLETION] if self.source is None else self.source.row(row)
        if text is None:
            return SubjectText(None, f"{NOTHING}{self.source}")
        try:
            value, missing = self.chain.run(text)
        except BaseException as exception:  # a pattern's limit
            if not is_user_error(exception):
                raise
            return SubjectText(None, error=describe_error(exception))
        return SubjectText(value) if missing is None else SubjectText(None, NOTHING + missing)

    @property
    def column(self) -> str:
        """Name of the column with the result: null where there is nothing to read, or a step fails."""
        with reading_column(TEXT):
            lane = self.chain.lane(self._source_lane)
            return TEXT if lane is None else lane.column

    def lanes(self) -> tuple[SharedColumn, ...]:
        """Return the lanes of the source and of each step; they are about the completion."""
        source = self._source_lane
        return (*(() if source is None else (source,)), *self.chain.lanes(source))

    def nothing_expr(self) -> pl.Expr:
        """Return why there is nothing to read as a String expression; null where there is something, or a step fails."""
        source = self._source_lane
        missing = self.chain.missing_expr(source, NOTHING)
        if source is None:
            return missing
        return pl.when(source.col.is_null()).then(pl.lit(f"{NOTHING}{self.source}")).otherwise(missing)

    def error_expr(self) -> pl.Expr | None:
        """Return why a step failed as a String expression; None if no step can fail."""
        return self.chain.error_expr(self._source_lane)

    @property
    def _source_lane(self) -> SharedColumn | None:
        return None if self.source is None else SharedColumn(f"source {self.source!r}", self.source.expr)
