"""What a plan looks for in the batches that a trainer hands it, so that no mistake becomes a gradient in silence.

A file shows its columns before a row is read; a loop shows them with its first batch. What is missing there is missing in all.
"""

import warnings
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import polars as pl

from assay.aggregating.columns import hidden
from assay.aggregating.pipeline import missing_golds
from assay.compiling.requirements import check_columns
from assay.errors import AssayWarning, ColumnsError, top
from assay.spec.verifier import VerifierSpec

_MOST = 5
"""Reasons of unscored batches that are warned of; what else is wrong with a run is in its results."""

_STACK = 4
"""Frames between a warning and the call of ``Plan.score_rows``."""


def check_given(verifiers: Sequence[VerifierSpec], given: Collection[str]) -> None:
    """Check that rows have the columns that checks read, whatever their types."""
    try:
        check_columns(verifiers, pl.Schema(dict.fromkeys(given, pl.String)), ())
    except ColumnsError as error:
        hints = [line for line in error.hint.splitlines() if "--map" not in line]  # which a loop does not have
        hints.append("If only some batches have the column, give strict=False: where it is missing, it is null.")
        raise ColumnsError(error.fact, "\n".join(hints)) from None


@dataclass(frozen=True)
class Golds:
    """The golds of a check, in a plan's hidden columns."""

    check: str
    missing: pl.Expr
    runs: pl.Expr | None

    @classmethod
    def of(cls, verifiers: Sequence[VerifierSpec]) -> "list[Golds]":
        """Return the golds of all checks that have them from the rows."""
        pairs = [(verifier, spec) for verifier in verifiers for spec in verifier.nodes]
        read = [(verifier, spec, missing_golds(verifier, spec)) for verifier, spec in pairs]
        return [cls(f"{verifier.id}/{spec.id}", *golds) for verifier, spec, golds in read if golds is not None]


class Attention:
    """What a plan has seen and said of the batches so far."""

    def __init__(self, verifiers: Sequence[VerifierSpec], *, strict: bool) -> None:
        self._verifiers = verifiers
        self._awaits_columns = strict
        self._warned: set[str] = set()
        self.golds = {hidden(f"golds/{number}"): golds for number, golds in enumerate(Golds.of(verifiers))}

    def look(self, given: Collection[str]) -> None:
        """Look at the columns of a batch, until all have been there."""
        if self._awaits_columns:
            check_given(self._verifiers, given)
            self._awaits_columns = False

    @property
    def watched(self) -> list[pl.Expr]:
        """Columns that ``warn`` reads beside the results."""
        exprs: list[pl.Expr] = []
        for name, golds in self.golds.items():
            if golds.check not in self._warned:
                exprs.append(golds.missing.alias(name))
                exprs += [] if golds.runs is None else [golds.runs.alias(f"{name}/runs")]
        return exprs

    def warn(self, scored: pl.DataFrame) -> None:
        """Warn of a batch in which a check can use no gold, once for the check; else of one in which no row is scored."""
        warned = len(self._warned)
        for name, golds in self.golds.items():
            if name not in scored.columns:
                continue
            whys = scored[name].drop_nulls()
            runs = scored.height if golds.runs is None else scored[f"{name}/runs"].sum()
            if 0 < runs == len(whys):
                self._say(golds.check, f"no row of a batch has a gold that {golds.check} can use: {_commonest(whys)}")
        errors = scored["error"].drop_nulls()
        if 0 < scored.height == scored["reward"].null_count() and len(errors) and len(self._warned) == warned < _MOST:
            reason = _commonest(errors)
            self._say(reason, f"every row of a batch is unscored: {reason}")

    def _say(self, key: str, message: str) -> None:
        if key not in self._warned:
            self._warned.add(key)
            warnings.warn(message, AssayWarning, stacklevel=_STACK)


def _commonest(reasons: pl.Series) -> str:
    ((reason, _),) = top(Counter(reasons), 1)
    return reason
