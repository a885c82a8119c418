"""Small documents of tables and texts, as Markdown and as one HTML file that runs nothing and loads nothing."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from itertools import pairwise
from typing import Any

from assay.errors import counted, printable
from assay.frozen import frozen

LABEL = 80
"""Code points of a name that are shown."""

_MARKUP = re.compile(r"[\\`*_{}\[\]<>#|~&!@$]")


@frozen
class Lines:
    """Lines of text, under a heading if there is one."""

    lines: Sequence[str]
    heading: str = ""


@frozen
class Table:
    """A table.

    Attributes:
        columns: The headings, each with whether its cells are numbers.
        rows: The cells.
        heading: What it is about.
        spare: Columns that a narrow terminal leaves out, in that order.
    """

    columns: Mapping[str, bool]
    rows: Sequence[Sequence[str]]
    heading: str = ""
    spare: Sequence[str] = ()

    def filled(self) -> "Table":
        """Return the table without columns in which nothing is known."""
        kept = [at for at in range(len(self.columns)) if any(row[at] not in ("–", "") for row in self.rows)]
        names = [*self.columns.items()]
        return replace(
            self, columns=dict(names[at] for at in kept), rows=[[row[at] for at in kept] for row in self.rows]
        )


@frozen
class Quote:
    """Text from data, or a command, as it stands, line breaks and all; its heading is a line above.

    Attributes:
        text: The text.
        heading: What it is.
        spans: Places in it that HTML marks, which may overlap: start, end, and what is there, in a word.
    """

    text: str
    heading: str = ""
    spans: Sequence[tuple[int, int, str]] = ()


@frozen
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
        body = f"<h1>{_safe(self.title)}</h1>\n{self.fragment()}"
        return _PAGE.format(title=_safe(self.title), style=_STYLE, body=body)

    def fragment(self, *, rows: int | None = None) -> str:
        """Return the blocks as HTML, for a page or a notebook; of a table at most so many rows."""
        return "\n".join(_as_html(block, rows) for block in self.blocks)


def cut(text: str, most: int) -> str:
    """Return the beginning of a text, and how many code points are left out."""
    return text if len(text) <= most else f"{text[:most]}… {len(text) - most:,} more"


def label(value: Any) -> str:
    """Return a name or another value from data on one line, cut, with what cannot be seen as escapes."""
    if value is None:
        return "–"
    text = value if isinstance(value, str) else f"{value:,}" if type(value) is float else str(value)
    return printable(cut(text, LABEL))


def with_names(names: Sequence[str], columns: Mapping[str, bool], *, are_numbers: bool = False) -> dict[str, bool]:
    """Return the columns of a table behind those with names from data, each of which has a heading of its own."""
    headings: dict[str, bool] = {}
    for name in names:
        while name in columns or name in headings:
            name = f"`{name}`"  # noqa: PLW2901  (until no other column is called so)
        headings[name] = are_numbers
    return {**headings, **columns}


def escaped(text: str) -> str:
    """Return text on one line with nothing in it that Markdown reads as more than text."""
    return _MARKUP.sub(r"\\\g<0>", printable(text))


def fenced(text: str) -> str:
    """Return a Markdown block of text, with a fence longer than any inside."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}text\n{text}\n{fence}"


def _as_markdown(block: Lines | Table | Quote) -> str:
    if isinstance(block, Quote):
        heading = [f"{escaped(block.heading)}:"] if block.heading else []
        return "\n\n".join([*heading, fenced(printable(block.text, lines=True))])
    heading = [f"## {escaped(block.heading)}"] if block.heading else []
    if isinstance(block, Lines):
        lines = "\n".join(f"- {escaped(line)}" for line in block.lines)
        return "\n\n".join([*heading, *([lines] if lines else [])])
    rule = ["---:" if is_number else "---" for is_number in block.columns.values()]
    cells = ([escaped(cell.replace("\n", " · ")) for cell in row] for row in block.rows)
    rows = [[escaped(name) for name in block.columns], rule, *cells]
    return "\n\n".join([*heading, "\n".join(f"| {' | '.join(row)} |" for row in rows)])


def _safe(text: str, *, lines: bool = False) -> str:
    from html import escape  # with all entities; a terminal needs none

    return escape(printable(text, lines=lines))


def _as_html(block: Lines | Table | Quote, most: int | None) -> str:
    level = "h3" if isinstance(block, Quote) else "h2"
    heading = f"<{level}>{_safe(block.heading)}</{level}>\n" if block.heading else ""
    if isinstance(block, Lines):
        return heading + "<ul>" + "".join(f"<li>{_safe(line)}</li>" for line in block.lines) + "</ul>"
    if isinstance(block, Quote):
        return f"{heading}<pre>{_marked(block.text, block.spans)}</pre>"
    marks = [' class="n"' if is_number else "" for is_number in block.columns.values()]
    head = "".join(f'<th scope="col"{mark}>{_safe(name)}</th>' for name, mark in zip(block.columns, marks, strict=True))
    rows = [
        "<tr>"
        + "".join(f"<td{mark}>{_safe(cell, lines=True)}</td>" for cell, mark in zip(row, marks, strict=True))
        + "</tr>"
        for row in block.rows[:most]
    ]
    if (more := len(block.rows) - len(rows)) > 0:
        rows.append(f'<tr><td colspan="{len(marks)}">… {counted(more, "row")} more</td></tr>')
    return f"{heading}<table><thead><tr>{head}</tr></thead><tbody>\n" + "\n".join(rows) + "</tbody></table>"


def _marked(text: str, spans: Sequence[tuple[int, int, str]]) -> str:
    ends = sorted({0, len(text), *(min(end, len(text)) for span in spans for end in span[:2])})
    parts = []
    for start, end in pairwise(ends):
        kinds = " ".join(dict.fromkeys(kind for first, last, kind in spans if first <= start and end <= last))
        part = _safe(text[start:end], lines=True)
        parts.append(f'<mark class="{_safe(kinds)}" title="{_safe(kinds)}">{part}</mark>' if kinds else part)
    return "".join(parts)


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
