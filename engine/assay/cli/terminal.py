"""Print on a terminal: messages, tables and documents. Control characters from data are escaped."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.text import Text

from assay.errors import AssayError, counted, printable
from assay.writing.documents import Document, Lines, Quote, Table, cut

_STYLES = {
    "error": "bold red",
    "problem": "bold red",
    "not reached": "bold red",
    "exceeded": "bold red",
    "warning": "yellow",
    "note": "yellow",
}
"""Styles of the words that a line begins with, before a colon."""

_WITH_UNIT = r"\S*\d\]? (?:%|M|[kMG]?B|ms|s|min)(?!\w)\S*"
_WORD = re.compile(rf"{_WITH_UNIT}\s*|\S*?[^\s\d][-/_](?<![0-9][eE]-)(?=\w)|\S+\s*")
"""What a cell may be folded behind: a word with its blanks, or a part of it up to a hyphen that is not of a number."""
_OF_LINE = re.compile(rf"{_WITH_UNIT}|\S+")
"""What a line may be folded before: a word, or a number with its unit."""
_GAP = "  "
_NARROW = 80
"""Columns of a terminal in which a table that is too wide is a list."""
_LEAST_WIDTH = 16
"""Columns of the terminal that names and texts may have at least."""
_CELL, _LINE, _QUOTED = 300, 2_000, 400
"""Characters of a cell, a line and a quoted text that are shown."""
_ROWS, _STACKED = 60, 30
"""Rows of a table that are shown, and of one that is a list of names and values."""


def print_line(console: Console, *parts: str | tuple[str, str]) -> None:
    """Print texts, each with a style if it is a pair, as a line, which the terminal may fold."""
    console.print(Text.assemble(*parts), soft_wrap=True)


def print_folded(console: Console, *parts: str | tuple[str, str]) -> None:
    """Print texts as a line that is folded at blanks on a terminal, so that no number is split."""
    text = Text.assemble(*parts)
    folds, begin = list[int](), 0
    for word in _OF_LINE.finditer(text.plain) if console.is_terminal else ():
        if word.start() > begin and cell_len(text.plain[begin : word.end()]) > console.width:
            begin = word.start()
            folds.append(begin)
    for line in text.divide(folds):
        line.rstrip()
        console.print(line, soft_wrap=True)


def print_error(console: Console, error: AssayError) -> None:
    """Print an error: the fact, a blank line, the hint."""
    print_line(console, *_styled("error", printable(error.text, lines=True)))


def print_warning(console: Console, message: str) -> None:
    """Print a warning."""
    print_line(console, *_styled("warning", printable(message)))


def print_notes(console: Console, notes: Iterable[str]) -> None:
    """Print notes, a line each."""
    for note in notes:
        print_folded(console, *_styled("note", printable(note)))


def print_document(console: Console, document: Document, *, rows: int | None = _ROWS) -> None:
    """Print a document without its title, a blank line around each table and quotation; tables have at most so many rows."""
    for at, block in enumerate(document.blocks):
        if at and (block.heading or isinstance(block, Table) or isinstance(document.blocks[at - 1], Table | Quote)):
            console.print()
        if block.heading:
            _print_sentence(console, block.heading, "bold")
        if isinstance(block, Lines):
            for line in block.lines:
                _print_sentence(console, line)
        elif isinstance(block, Quote):
            text = printable(cut(block.text, _QUOTED), lines=True)
            print_line(console, "\n".join(f"  {line}" for line in text.split("\n")))
        else:
            print_table(console, block, rows=rows)


def _print_sentence(console: Console, line: str, style: str = "") -> None:
    head, colon, rest = printable(cut(line, _LINE)).partition(": ")
    is_marked = colon and head in _STYLES
    print_folded(console, *(_styled(head, rest) if is_marked else [(f"{head}{colon}{rest}", style)]))


def _styled(word: str, rest: str) -> tuple[tuple[str, str], str]:
    return (f"{word}: ", _STYLES[word]), rest


def print_table(console: Console, table: Table, *, rows: int | None = _ROWS) -> None:
    """Print a table in which no number is split.

    One that is too wide has its texts folded; then spare columns are left out; if that does not help, or the terminal is narrow, it is
    a list of names and values.
    """
    shown = [[printable(cut(cell, _CELL), lines=True) for cell in row] for row in table.rows[:rows]]
    columns = {name: [printable(name), *(row[at] for row in shown)] for at, name in enumerate(table.columns)}
    spare = [name for name in table.spare if name in columns] if console.width >= _NARROW else []
    left_out = []
    while (widths := _widths(table, columns, console.width)) is None and spare:
        left_out.append(spare.pop(0))
        del columns[left_out[-1]]
    if widths is None:
        left_out, shown = [], shown if rows is None else shown[:_STACKED]
        _print_stacked(console, table, shown)
    else:
        for at, row in enumerate(zip(*columns.values(), strict=True)):
            cells = zip(row, widths, (table.columns[name] for name in columns), strict=True)
            _print_row(console, list(cells), "" if at else "bold")
    if (more := len(table.rows) - len(shown)) > 0:
        left_out.append(counted(more, "row"))
    if left_out:
        print_folded(console, (f"… {', '.join(map(printable, left_out))}: --json", "dim"))


def _widths(table: Table, columns: Mapping[str, Sequence[str]], room: int) -> list[int] | None:
    """Return the widths of columns, of folded texts the largest that there is room for; None if that is too little."""
    widest = [max(cell_len(line) for cell in column for line in cell.split("\n")) for column in columns.values()]
    room -= len(_GAP) * (len(columns) - 1)
    for most in range(max(_LEAST_WIDTH, min(room, max(widest))), _LEAST_WIDTH - 1, -1):
        pairs = zip(columns, widest, strict=True)
        widths = [width if table.columns[name] else min(width, most) for name, width in pairs]
        if sum(widths) <= room:
            return widths
    return None


def _print_stacked(console: Console, table: Table, rows: Sequence[Sequence[str]]) -> None:
    names = list(map(printable, table.columns))
    width = max(map(cell_len, names))
    room = max(console.width - width - len(_GAP), _LEAST_WIDTH)
    for at, row in enumerate(rows):
        if at:
            console.print()
        for name, cell, is_number in zip(names, row, table.columns.values(), strict=True):
            if cell:
                _print_row(console, [(name, width, False), (cell, 0 if is_number else room, is_number)])


def _folded(text: str, width: int) -> list[str]:
    """Return text in lines of a width, folded at blanks, else at hyphens, else anywhere, and indented as its lines are."""
    lines = []
    for whole in text.split("\n"):
        line = indent = whole[: min(len(whole) - len(whole.lstrip()), width // 2)]
        for word in _WORD.findall(whole[len(indent) :]):
            stem = word.rstrip()
            if cell_len(line + stem) > width and line.strip():
                lines.append(line.rstrip())
                line = indent
            *full, rest = chop_cells(stem, width - len(indent)) or [""]
            lines += [indent + part for part in full]
            line += rest + word[len(stem) :]
        lines.append(line.rstrip())
    return lines


def _print_row(console: Console, cells: Sequence[tuple[str, int, bool]], style: str = "") -> None:
    """Print cells side by side, each with its width and whether it is a number, which is not folded."""
    folded = [cell.split("\n") if is_number else _folded(cell, width) for cell, width, is_number in cells]
    for lines in zip_longest(*folded, fillvalue=""):
        padded = []
        for text, (_, width, is_number) in zip(lines, cells, strict=True):
            blanks = " " * (width - cell_len(text))
            padded.append(blanks + text if is_number else text + blanks)
        print_line(console, (_GAP.join(padded).rstrip(), style))
