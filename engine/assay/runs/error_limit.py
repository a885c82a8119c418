"""How much may go wrong in a run."""

from assay.errors import TooManyErrors
from assay.scoring.summary import Summary
from assay.system.quantities import RowLimit

__all__ = ["ErrorLimit"]


class ErrorLimit:
    """How many rows may have a scoring error: a number, or a share of all rows."""

    def __init__(self, given: int | str | None, *, in_parts: bool = False) -> None:
        self.most = RowLimit("--max-errors", given)
        self.in_parts = in_parts

    def check(self, summary: Summary, *, final: bool = False) -> None:
        """Stop the run when there are more; a share is only known at the end."""
        if not self.most.exceeded(summary.errors, summary.rows, final=final):
            return
        worst = sorted((check for check in summary.checks if check.errors), key=lambda check: -check.errors)
        causes = [f"  {check.id}: {check.errors:,} rows" for check in worst[:5]]
        causes += [f"  unscored: {why}: {rows:,} rows" for why, rows in summary.unscored.most_common(3)]
        raise TooManyErrors(
            f"{summary.errors:,} of {summary.rows:,} rows have a scoring error; --max-errors allows {self.most.given}.\n"
            + "\n".join(causes),
            f"{'The parts that are done stay' if self.in_parts else 'Nothing was written'}. "
            "Mend the verifier or the rows, or allow more.",
        )
