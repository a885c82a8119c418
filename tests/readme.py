"""Write the generated parts of README.md anew: ``make readme``; what ``make bench`` measured, where it has."""

import re
from pathlib import Path

from assay.listing import as_markdown

README = Path(__file__).resolve().parents[1] / "README.md"
RESULTS = README.parent / "benchmarks" / "results.md"
_PART = re.compile(r"(<!-- checks:begin -->\n).*?(<!-- checks:end -->)", re.DOTALL)


def generated(text: str) -> str:
    """The README with the table of checks as the classes have it."""
    return _PART.sub(lambda match: match.group(1) + as_markdown() + match.group(2), text)


def measured(text: str, results: str) -> str:
    """The README with the table of the benchmarks."""
    begin, end = "<!-- bench:begin -->\n", "<!-- bench:end -->"
    before, _, rest = text.partition(begin)
    return before + begin + results + end + rest.partition(end)[2]


if __name__ == "__main__":
    written = generated(README.read_text("utf-8"))
    if RESULTS.exists():
        written = measured(written, RESULTS.read_text("utf-8"))
    README.write_text(written, "utf-8")
