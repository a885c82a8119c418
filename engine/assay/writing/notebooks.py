"""Results in notebooks: the HTML of their documents, which runs nothing, and one line as text."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from assay.errors import printable
from assay.writing.documents import Document, Lines, Quote, Table, cut

_MOST = 100_000
"""Bytes that a notebook keeps of a result."""
_CELL, _QUOTED = 300, 2_000
"""Code points that are shown of a line or a cell, and of a text."""
_LINES = 50
"""Lines that are shown of a list."""

_MORE = "<p>… more: <code>document()</code></p>"
_STYLE = """<style>.assay table { border-collapse: collapse; margin: 0 0 1em; }
.assay th, .assay td { text-align: left; vertical-align: top; padding: .2em .8em .2em 0; white-space: pre-wrap; }
.assay .n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.assay h2, .assay h3 { font-size: 1em; } .assay pre { white-space: pre-wrap; overflow-wrap: anywhere; }
.assay mark { background: none; color: inherit; border-bottom: 2px solid; } .assay mark.matched { border-bottom-style: double; }
.assay mark.gold { border-bottom-style: dashed; } .assay mark.excess, .assay mark.offending { border-bottom-style: dotted; }
.assay svg { max-width: 100%; vertical-align: top; }</style>"""


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
        return f"<{type(self).__name__}: {cut(printable(self.headline), _CELL)}>"

    def _charts(self) -> Sequence[str]:
        """Return the SVG that a notebook shows above the first table."""
        return ()

    def _repr_html_(self) -> str:
        return notebook_html(self._document(), self._charts())


def notebook_html(document: Document, charts: Sequence[str] = ()) -> str:
    """Return a document, with charts above its first table, as a part of a page of at most 100 kB; where it ends early, it says so."""
    blocks = document.blocks
    first = next((at for at, block in enumerate(blocks) if isinstance(block, Table)), len(blocks))
    parts = ['<div class="assay">', _STYLE]
    left = _MOST - len(_STYLE) - 2 * len(_MORE)
    for part in (*blocks[:first], *charts, *blocks[first:]):
        html = part if isinstance(part, str) else _fitting(_shortened(part), left)
        size = len(html.encode()) + 1
        if not html or size > left:
            parts.append(_MORE)
            break
        parts.append(html)
        left -= size
    return "\n".join([*parts, "</div>"])


def _fitting(block: Lines | Table | Quote, most: int) -> str:
    """Return the HTML of a block, of a table as many rows as there is room for; ``""`` if there is no room."""
    rows = len(block.rows) if isinstance(block, Table) else 0
    while len((html := Document("", [block]).fragment(rows=rows)).encode()) >= most:
        if not rows:
            return ""
        rows //= 2
    return html


def _shortened(block: Lines | Table | Quote) -> Lines | Table | Quote:
    """Return a block with the beginnings of its texts."""
    if isinstance(block, Quote):
        return replace(block, text=cut(block.text, _QUOTED))
    if isinstance(block, Lines):
        more = len(block.lines) - _LINES
        lines = [cut(line, _CELL) for line in block.lines[:_LINES]]
        return replace(block, lines=lines + ([f"… {more:,} more"] if more > 0 else []))
    return replace(block, rows=[[cut(cell, _CELL) for cell in row] for row in block.rows])
