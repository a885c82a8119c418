"""Print on a terminal: messages, tables and documents. Control characters from data are escaped."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from assay.errors import AssayError, printable
from assay.writing.documents import Document, Lines, Quote, Table

_LEAST_WIDTH = 16
"""Columns of the terminal that names and texts may have at least."""
_GAP = 2
_QUOTED = 400
"""Characters of a quoted text that are shown."""


def print_line(console: Console, *parts: str | tuple[str, str]) -> None:
    """Print texts, each with a style if it is a pair, as a line, which the terminal may fold."""
    console.print(Text.assemble(*parts), soft_wrap=True)


def print_error(console: Console, error: AssayError) -> None:
    """Print an error: the fact, a blank line, the hint."""
    print_line(console, ("error: ", "bold red"), printable(error.text, lines=True))


def print_warning(console: Console, message: str) -> None:
    """Print a warning."""
    print_line(console, ("warning: ", "yellow"), printable(message))


def print_notes(console: Console, notes: Iterable[str]) -> None:
    """Print notes, a line each."""
    for note in notes:
        print_line(console, ("note: ", "yellow"), printable(note))


def print_table(console: Console, columns: Mapping[str, bool], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; one that needs more room than the terminal has is folded by the terminal, for a number is never cut."""
    cells = [[printable(cell, lines=True) for cell in row] for row in rows]
    table = Grid(box=None, pad_edge=False, header_style="bold")
    widths = []
    for name, is_number, *column in zip(map(printable, columns), columns.values(), *cells, strict=True):
        widest = max(cell_len(line) for cell in (name, *column) for line in cell.split("\n"))
        widths.append(widest if is_number else min(_LEAST_WIDTH, widest))
        justify: Any = "right" if is_number else "left"
        table.add_column(Text(name), justify=justify, no_wrap=is_number, overflow="fold", min_width=widths[-1])
    for row in cells:
        table.add_row(*map(Text, row))
    if (needed := sum(widths) + _GAP * (len(widths) - 1)) > console.width:
        table.width = needed
    console.print(table, crop=False, soft_wrap=table.width is not None)


def print_document(console: Console, document: Document) -> None:
    """Print a document without its title, a blank line around each table and quotation."""
    for at, block in enumerate(document.blocks):
        if at and (block.heading or isinstance(block, Table) or isinstance(document.blocks[at - 1], Table | Quote)):
            console.print()
        if block.heading:
            print_line(console, (printable(block.heading), "bold"))
        if isinstance(block, Lines):
            for line in block.lines:
                print_line(console, printable(line))
        elif isinstance(block, Quote):
            text = block.text if len(block.text) <= _QUOTED else f"{block.text[:_QUOTED]}…"
            print_line(console, "\n".join(f"  {line}" for line in printable(text, lines=True).split("\n")))
        else:
            print_table(console, block.columns, block.rows)
