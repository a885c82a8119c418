"""The delimiter of a CSV file, found in its header."""

import csv
import io
from itertools import islice

from assay.errors import shown_path

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
"""Delimiters, and their names."""

_ROWS = 3


def delimiter_of(head: bytes, name: str, *, whole: bool) -> str:
    """Return the delimiter of a file: the one that its header has most of, outside quotes, and its first row as many of."""
    usual = _usual(name)
    text = head.decode("utf-8-sig", errors="replace")
    widths = {delimiter: _widths(text, delimiter, whole=whole) for delimiter in (usual, *DELIMITERS)}
    there = [delimiter for delimiter, (header, *_) in widths.items() if header > 1]
    return max(there, key=lambda delimiter: (_may_fit(widths[delimiter]), widths[delimiter][0]), default=usual)


def delimiter_note(name: str, delimiter: str) -> tuple[str, ...]:
    """Return a note that names the delimiter, if it is not the usual one."""
    if delimiter == _usual(name.partition("?")[0]):
        return ()
    shown = "" if delimiter == "\t" else f" ({delimiter})"
    return (f"{shown_path(name)}: the delimiter in its header is the {DELIMITERS[delimiter]}{shown}",)


def is_delimited(head: bytes, *, whole: bool) -> bool:
    """Whether a file has a header of several names, and its first rows as many cells; the arguments are those of ``delimiter_of``."""
    text = head.decode("utf-8-sig", errors="replace")
    rows = (_widths(text, delimiter, whole=whole) for delimiter in DELIMITERS)
    return any(len(widths) > 1 and widths[0] > 1 and len(set(widths)) == 1 for widths in rows)


def _usual(name: str) -> str:
    return "\t" if name.lower().endswith(".tsv") else ","


def _may_fit(widths: list[int]) -> bool:
    return len(widths) == 1 or widths[0] == widths[1]


def _widths(text: str, delimiter: str, *, whole: bool) -> list[int]:
    """Return the number of names in a header, then the numbers of cells in the rows after it that are not cut off."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    widths: list[int] = []
    try:
        widths += islice((len(row) for row in reader if row), _ROWS)
    except csv.Error:  # a cell too long for it
        whole = False
    if not whole and 1 < len(widths) < _ROWS:
        widths.pop()
    return widths or [0]
