"""How much may go wrong in a run."""

import re

from assay.errors import TooManyErrors, UsageError
from assay.summary import Summary

__all__ = ["Allowed"]


class Allowed:
    """How many rows may have a scoring error: a number, or a share of all rows."""

    _FORM = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*")

    def __init__(self, given: int | str | None, *, in_parts: bool = False) -> None:
        match = None if given is None else self._FORM.fullmatch(str(given))
        if given is not None and (match is None or (not match.group(2) and "." in match.group(1))):
            raise UsageError(
                f"--max-errors {given}: expected a number of rows or a share.",
                "Write --max-errors 100 or --max-errors 5%.",
            )
        self.share = float(match.group(1)) / 100 if match and match.group(2) else None
        self.rows = int(match.group(1)) if match and not match.group(2) else None
        self.given = given
        self.in_parts = in_parts

    def check(self, summary: Summary, *, final: bool = False) -> None:
        """Stop the run when there are more; a share is only known at the end."""
        over = self.rows is not None and summary.errors > self.rows
        if final and self.share is not None and summary.errors > self.share * summary.rows:
            over = True
        if not over:
            return
        worst = sorted((check for check in summary.checks if check.errors), key=lambda check: -check.errors)
        causes = [f"  {check.id}: {check.errors:,} rows" for check in worst[:5]]
        causes += [f"  unscored: {why}: {rows:,} rows" for why, rows in summary.unscored.most_common(3)]
        raise TooManyErrors(
            f"{summary.errors:,} of {summary.rows:,} rows have a scoring error; --max-errors allows {self.given}.\n"
            + "\n".join(causes),
            f"{'The parts that are done stay' if self.in_parts else 'Nothing was written'}. "
            "Mend the verifier or the rows, or allow more.",
        )
