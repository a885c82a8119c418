"""Write the generated part of README.md anew: ``make readme``."""

import re
from pathlib import Path

from assay.listing import as_markdown

README = Path(__file__).resolve().parents[1] / "README.md"
_PART = re.compile(r"(<!-- checks:begin -->\n).*?(<!-- checks:end -->)", re.DOTALL)


def generated(text: str) -> str:
    """The README with the table of checks as the classes have it."""
    return _PART.sub(lambda match: match.group(1) + as_markdown() + match.group(2), text)


if __name__ == "__main__":
    README.write_text(generated(README.read_text("utf-8")), "utf-8")
