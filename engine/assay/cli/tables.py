"""Print tables and notes; control characters from data are escaped."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from assay.errors import printable

_LEAST_WIDTH = 16
"""Columns of the terminal that names and texts may have at least."""
_GAP = 2


def print_table(console: Console, columns: Mapping[str, bool], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; one that needs more room than the terminal has is folded by the terminal, for a number is never cut.

    Args:
        console: Where.
        columns: The headings, each with whether its cells are numbers, which are aligned right and not folded.
        rows: The cells, which may come from data; line breaks stay.
    """
    cells = [[printable(cell, lines=True) for cell in row] for row in rows]
    table = Table(box=None, pad_edge=False, header_style="bold")
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


def print_notes(console: Console, notes: Iterable[str]) -> None:
    """Print notes, a line each."""
    for note in notes:
        console.print(Text.assemble(("note: ", "yellow"), printable(note)), soft_wrap=True)
