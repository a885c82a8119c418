"""Write the generated parts of README.md anew: ``make readme``; what ``make bench`` measured, where it has."""

from pathlib import Path

from assay.loading.presets.preset import as_markdown as presets_as_markdown
from assay.loading.presets.preset import presets
from assay.spec.listing import as_markdown

README = Path(__file__).resolve().parents[2] / "README.md"
RESULTS = README.parent / "benchmarks" / "results.md"


def generated(text: str) -> str:
    """The README with the tables of checks and presets as the code has them."""
    return replaced(replaced(text, "checks", as_markdown()), "presets", presets_as_markdown(presets()))


def measured(text: str, results: str) -> str:
    """The README with the table of the benchmarks."""
    return replaced(text, "bench", results)


def replaced(text: str, part: str, table: str) -> str:
    """A text with another table between the marks of a part."""
    begin, end = f"<!-- {part}:begin -->\n", f"<!-- {part}:end -->"
    before, _, rest = text.partition(begin)
    return before + begin + table + end + rest.partition(end)[2]


if __name__ == "__main__":
    written = generated(README.read_text("utf-8"))
    if RESULTS.exists():
        written = measured(written, RESULTS.read_text("utf-8"))
    README.write_text(written, "utf-8")
