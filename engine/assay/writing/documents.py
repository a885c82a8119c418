"""Small documents of tables and texts, as Markdown and as one HTML file that runs nothing and loads nothing."""

import html
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from assay.errors import printable

_MARKUP = re.compile(r"[\\`*_{}\[\]<>#|~&!@$]")


@dataclass(frozen=True)
class Lines:
    """Lines of text, under a heading if there is one."""

    lines: Sequence[str]
    heading: str = ""


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        columns: The headings, each with whether its cells are numbers.
        rows: The cells.
        heading: What it is about.
    """

    columns: Mapping[str, bool]
    rows: Sequence[Sequence[str]]
    heading: str = ""


@dataclass(frozen=True)
class Quote:
    """Text from data, as it stands, line breaks and all."""

    text: str
    heading: str = ""


@dataclass(frozen=True)
class Document:
    """Blocks under a title.

    Attributes:
        title: The title.
        blocks: The blocks, in order.
    """

    title: str
    blocks: Sequence[Lines | Table | Quote] = field(default_factory=tuple)

    def markdown(self) -> str:
        """Return the document as Markdown (GFM)."""
        parts = [f"# {escaped(self.title)}", *map(_as_markdown, self.blocks)]
        return "\n\n".join(part for part in parts if part) + "\n"

    def html(self) -> str:
        """Return the document as one HTML file."""
        body = "\n".join([f"<h1>{_safe(self.title)}</h1>", *map(_as_html, self.blocks)])
        return _PAGE.format(title=_safe(self.title), style=_STYLE, body=body)


class Displayed(ABC):
    """What notebooks show as the HTML of its document, and ``repr`` as its headline."""

    @property
    @abstractmethod
    def headline(self) -> str:
        """The answer in one line."""

    @abstractmethod
    def _document(self) -> Document: ...

    def document(self) -> Document:
        """Return what people read, with ``markdown()`` and ``html()``."""
        return self._document()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {printable(self.headline)}>"


def escaped(text: str) -> str:
    """Return text on one line with nothing in it that Markdown reads as more than text."""
    return _MARKUP.sub(r"\\\g<0>", printable(text))


def fenced(text: str) -> str:
    """Return a Markdown block of text, with a fence longer than any inside."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}text\n{text}\n{fence}"


def _as_markdown(block: Lines | Table | Quote) -> str:
    heading = [f"## {escaped(block.heading)}"] if block.heading else []
    if isinstance(block, Lines):
        return "\n\n".join([*heading, "\n".join(f"- {escaped(line)}" for line in block.lines)])
    if isinstance(block, Quote):
        return "\n\n".join([*heading, fenced(printable(block.text, lines=True))])
    rule = ["---:" if is_number else "---" for is_number in block.columns.values()]
    cells = ([escaped(cell.replace("\n", " · ")) for cell in row] for row in block.rows)
    rows = [[escaped(name) for name in block.columns], rule, *cells]
    return "\n\n".join([*heading, "\n".join(f"| {' | '.join(row)} |" for row in rows)])


def _safe(text: str, *, lines: bool = False) -> str:
    return html.escape(printable(text, lines=lines))


def _as_html(block: Lines | Table | Quote) -> str:
    heading = f"<h2>{_safe(block.heading)}</h2>\n" if block.heading else ""
    if isinstance(block, Lines):
        return heading + "<ul>" + "".join(f"<li>{_safe(line)}</li>" for line in block.lines) + "</ul>"
    if isinstance(block, Quote):
        return f"{heading}<pre>{_safe(block.text, lines=True)}</pre>"
    marks = [' class="n"' if is_number else "" for is_number in block.columns.values()]
    head = "".join(f'<th scope="col"{mark}>{_safe(name)}</th>' for name, mark in zip(block.columns, marks, strict=True))
    rows = [
        "<tr>"
        + "".join(f"<td{mark}>{_safe(cell, lines=True)}</td>" for cell, mark in zip(row, marks, strict=True))
        + "</tr>"
        for row in block.rows
    ]
    return f"{heading}<table><thead><tr>{head}</tr></thead><tbody>\n" + "\n".join(rows) + "</tbody></table>"


_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem;
  color: CanvasText; background: Canvas; }
table { border-collapse: collapse; margin: 0 0 1rem; }
th, td { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid GrayText;
  white-space: pre-wrap; overflow-wrap: anywhere; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; border-left: 3px solid GrayText; padding-left: .8rem; }
@media print { @page { size: A4; } tr { break-inside: avoid; } thead { display: table-header-group; } }
"""

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width"><title>{title}</title><style>{style}</style></head>
<body>
{body}
</body></html>
"""
