"""Charts that stand alone, for notebooks and files: SVG with its own style, which runs nothing and loads nothing."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from assay.errors import UsageError, likely_ending, printable, shown_path
from assay.frozen import frozen
from assay.system.atomic_file import check_target, new_file
from assay.writing.documents import cut

_TITLE = 24
"""The height of a title."""

_STYLE = """<style>.assay-chart{background:#fff;font:11px system-ui,sans-serif}.assay-chart text{fill:#333}
.assay-chart .grid{stroke:#ddd;fill:none}.assay-chart .line{stroke:#1d4ed8;fill:none;stroke-width:1.5}
.assay-chart .bar,.assay-chart circle{fill:#1d4ed8}.assay-chart .hit{fill:none}.assay-chart .heat{fill:#1d4ed8}
@media (prefers-color-scheme:dark){.assay-chart{background:#181818}.assay-chart text{fill:#ddd}
.assay-chart .grid{stroke:#444}.assay-chart .line{stroke:#8ab4ff}.assay-chart .bar,.assay-chart circle{fill:#8ab4ff}}</style>"""


@frozen(repr=False)
class Chart:
    """A chart, which notebooks show.

    Attributes:
        title: What it shows.
        svg: The SVG.
    """

    title: str
    svg: str

    def __repr__(self) -> str:
        return f"<Chart: {printable(self.title)}>"

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> None:
        """Write the chart to a file that ends in ``.svg``, whole or not at all; a file that is there is replaced.

        Raises:
            UsageError: The name has another ending, or there is no such folder.
            OutputError: The file cannot be written.
        """
        target = Path(path)
        if target.suffix.lower() != ".svg":
            fact = f"{shown_path(target)}: a chart is SVG; expected a name that ends in .svg."
            raise UsageError(fact, likely_ending(target, [".svg"]))
        check_target(target, overwrite=True, how="")
        with new_file(target) as (file, reported_errors), reported_errors():
            file.write(self.svg.encode("utf-8", "backslashreplace"))


def text_at(x: float, y: float, text: str, anchor: str = "start", whole: Any = None) -> str:
    """Return a text at a place, with all of it as its title if that is given."""
    title = f"<title>{escape(printable(cut(str(whole), 300)))}</title>" if whole is not None else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(printable(text))}{title}</text>'


def drawn_alone(title: str, width: float, height: float, parts: Sequence[str]) -> Chart:
    """Return a chart of SVG that brings its namespace and its style, with a title above."""
    height += _TITLE
    size = f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}"'
    inside = f'<svg y="{_TITLE}" width="{width:g}" height="{height - _TITLE:g}">{"".join(parts)}</svg>'
    label = f'role="img" aria-label="{escape(title)}"'
    whole = f'<svg xmlns="http://www.w3.org/2000/svg" class="assay-chart" {label} {size}>{_STYLE}{text_at(8, 16, title)}{inside}</svg>'
    return Chart(title, whole)
