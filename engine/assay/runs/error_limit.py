"""The limit on scoring errors of a run."""

from assay.errors import TooManyErrors, counted
from assay.scoring.summary import Summary
from assay.system.quantities import RowLimit


class ErrorLimit:
    """The maximum number, or share, of rows with a scoring error."""

    def __init__(self, limit: int | str | None, *, in_parts: bool = False) -> None:
        self.most = RowLimit("--max-errors", limit)
        self.in_parts = in_parts

    def check(self, summary: Summary, *, final: bool = False) -> None:
        """Check a run against the limit; a share is only known at the end."""
        if not self.most.exceeded(summary.errors, summary.rows, final=final):
            return
        worst = sorted((check for check in summary.checks if check.errors), key=lambda check: -check.errors)
        causes = [f"  {check.id}: {counted(check.errors, 'row')}" for check in worst[:5]]
        causes += [f"  unscored: {reason}: {counted(rows, 'row')}" for reason, rows in summary.unscored.most_common(3)]
        have = "has" if summary.errors == 1 else "have"
        raise TooManyErrors(
            f"{summary.errors:,} of {counted(summary.rows, 'row')} {have} a scoring error; --max-errors allows {self.most.given}.\n"
            + "\n".join(causes),
            f"{'Finished parts are kept' if self.in_parts else 'Nothing was written'}. "
            "Fix the verifier or the rows, or allow more errors.",
        )
