"""Files that are read whole, their records as JSON lines; and what a file seems to be by its first bytes."""

import contextlib
import csv
import io
import json
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple, NoReturn

from assay.errors import InputError, quoted, shown_path

DOCUMENTS = (".json", ".xlsx", ".eval")
"""Suffixes of documents."""


@dataclass(frozen=True)
class Document:
    """A document in memory."""

    data: bytes | bytearray
    places: Sequence[int]
    notes: tuple[str, ...] = ()


def reader(data: bytes | bytearray) -> Callable[[int], bytes]:
    """Return a function that returns the given number of the next bytes, fewer at the end."""
    position, view = 0, memoryview(data)

    def read(size: int) -> bytes:
        nonlocal position
        position += size
        return bytes(view[position - size : position])

    return read


_JSON_LOG = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:\s*"\w+"\s*,\s*"eval"\s*:\s*\{')
"""The beginning of a log of Inspect that is JSON."""


def form_of(path: Path) -> str:
    """Return the suffix of a document that is read whole, without that of its compression; ``""`` for a file of lines.

    A log of Inspect is ``.eval``, in JSON too.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".json"] and _JSON_LOG.match(_beginning(path)):
        return ".eval"
    if suffixes[-1:] in ([".gz"], [".zst"]):
        suffixes.pop()
    return suffixes[-1] if suffixes and suffixes[-1] in DOCUMENTS else ""


def _beginning(path: Path) -> bytes:
    """Return the first bytes of a file; none of what is not there, or not a file."""
    if not path.is_file():
        return b""
    with contextlib.suppress(OSError), path.open("rb") as file:
        return file.read(512)
    return b""


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


_HEAD = 1 << 16
_LINE = "\n"
_OBJECT = 'Each line must be a JSON object: {"completion": "…"}'

MAGIC = {
    b"\xff\xfe": ("UTF-16 text", "Save it as UTF-8."),
    b"\xfe\xff": ("UTF-16 text", "Save it as UTF-8."),
    b"PAR1": ("a parquet file", "Name it .parquet."),
    b"ARROW1": ("an Arrow file", "Name it .arrow."),
    b"PK\x03\x04": ("a workbook or another zip archive", "Name it .xlsx if it is a workbook."),
    b"\xd0\xcf\x11\xe0": ("an old or encrypted workbook", "Save it as .xlsx, without a password."),
    b"\x1f\x8b": ("gzip", "Name it with .gz at the end."),
    b"%PDF": ("a PDF", ""),
    b"version https://git-lfs": ("a Git LFS pointer", "Fetch the file itself: git lfs pull"),
}
"""What begins with some bytes, and a hint."""


def sure_kind(head: bytes, name: str, wanted: str) -> InputError | None:
    """Return the error of a file whose first bytes are those of another kind, whatever comes after them; None if they are not."""
    for magic, (kind, hint) in MAGIC.items():
        if head.startswith(magic):
            return _error(name, kind, wanted, hint)
    return None


def other_kind(head: bytes, name: str, wanted: str, *, whole: bool, texts: bool = True) -> InputError | None:
    """Return the error of a file whose first line is not a JSON object; None if it seems to be JSON lines that are malformed."""
    if (error := sure_kind(head, name, wanted)) is not None:
        return error
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith((b"[", b"{")):
        kind, hint = _json_kind(text)
    elif text.startswith(b"<"):
        kind, hint = "an HTML or XML page", "Fetch it again; the server may have asked for a login."
    else:
        kind, hint = _text_kind(text[:_HEAD], whole=whole and len(text) <= _HEAD) if texts else ("", "")
    return _error(name, kind, wanted, hint) if kind else None


def _error(name: str, kind: str, wanted: str, hint: str) -> InputError:
    return InputError(f"{shown_path(name)}: is {kind}, not {wanted}.", hint)


def _json_kind(text: bytes) -> tuple[str, str]:
    first, _, rest = text.partition(b"\n")
    is_array = text.startswith(b"[")
    if is_array and not (rest.strip() and _is_json(first)):
        return "a JSON array", "Name it .json, or write a line for each object: jq -c '.[]' OLD > NEW.jsonl"
    if not is_array and rest.strip() and first.rstrip().endswith((b"{", b"[", b",")):
        hint = "Name it .json if it is one document, or write each object on one line: jq -c . OLD > NEW.jsonl"
        return "JSON that goes over several lines", hint
    return "", ""


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _text_kind(head: bytes, *, whole: bool) -> tuple[str, str]:
    text = head.decode(errors="replace")
    if _is_json(head.partition(b"\n")[0]):
        return "", ""  # a line of JSON, but not an object
    if "\0" in text:
        return "binary data", ""
    if is_delimited(head, whole=whole):
        return "a table with a delimiter", "Name it .csv or .tsv."
    return f"text that begins with {quoted(text.partition(_LINE)[0].strip())}", _OBJECT


_BOM = b"\xef\xbb\xbf"
_STRING = rb'"[^"\\\r\n]*+(?:\\.[^"\\\r\n]*+)*+"'
_TOKEN = re.compile(_STRING + rb'|["\[\]{}]')
_VALUE = re.compile(rb"[\[{]|" + _STRING + rb'|[^\s,:"\[\]{}]++')
_GAP = re.compile(rb"[ \t\r\n]*+")
_BLANK = bytes.maketrans(b"\r\n", b"  ")
_COMPLETION, _ROLE, _CHECKS = b'"completion"', b'"role"', b'"checks"'
_AS_RECORDS = "Write an array of objects; with pandas: df.to_json(PATH, orient='records')."


class _Malformed(Exception):  # noqa: N818  (never leaves this module)
    """The structure is not that of JSON."""


class _Span(NamedTuple):
    """The place of a value: of its first byte, and of the byte after its last."""

    start: int
    end: int


def read_json(data: bytearray, name: str) -> Document:
    """Return the records of a document."""
    try:
        rows = _rows(data, _place_of_all(data), name)
    except _Malformed:
        refuse(data, name)
    return _document(data, rows)


def _document(data: bytearray, rows: "_Rows") -> Document:
    lines = data.translate(_BLANK)
    first, last = rows.elements[0], rows.elements[-1]
    start = len(_BOM) if data.startswith(_BOM) else 0
    lines[start : first.start] = b" " * (first.start - start)
    for before, element in zip(rows.elements, rows.elements[1:], strict=False):
        lines[before.end : element.start] = b"\n".ljust(element.start - before.end)
    lines[last.end :] = b"\n"
    return Document(lines, _line_numbers(data, rows.elements), rows.notes)


def _line_numbers(data: bytearray, elements: list[_Span]) -> Sequence[int]:
    numbers, line, position = array("q"), 1, 0
    for element in elements:
        line += data.count(b"\n", position, element.start)
        position = element.start
        numbers.append(line)
    return numbers


class _Rows(NamedTuple):
    """The places of the records, and notes for the user."""

    elements: list[_Span]
    notes: tuple[str, ...] = ()


def _rows(data: bytearray, place: _Span, name: str) -> _Rows:
    opening = data[place.start : place.start + 1]
    if opening == b"[":
        return _Rows(_records(data, _elements(data, place), name, "the array"))
    if opening == b"{":
        return _rows_of_object(data, place, name)
    raise _Malformed


def _rows_of_object(data: bytearray, place: _Span, name: str) -> _Rows:
    """Return the object itself, or the elements of its one list of objects: not of messages, and not beside a completion."""
    members = _members(data, place)
    if not members:
        raise InputError(f"{shown_path(name)}: the object is empty.", _AS_RECORDS)
    is_record = _COMPLETION in members
    if _CHECKS in members and not is_record:
        raise InputError(f"{shown_path(name)}: is a verifier's spec, not rollouts.", "Give it with --spec.")
    lists = {key: array for key, value in members.items() if (array := _list_of_objects(data, value)) and not is_record}
    if len(lists) > 1:
        keys = [_key(key) for key in lists]
        hint = f"Keep one: jq '.{keys[0]}' {shown_path(name)} > {keys[0]}.json"
        raise InputError(f"{shown_path(name)}: has several lists of objects: {', '.join(keys)}.", hint)
    for key, elements in lists.items():
        note = f"{shown_path(name)}: the rows are the elements of its list `{_key(key)}`"
        return _Rows(_records(data, elements, name, f"`{_key(key)}`"), (note,))
    if _are_columns(data, list(members.values())):
        raise InputError(f"{shown_path(name)}: the object holds columns, not records.", _AS_RECORDS)
    return _Rows([place])


def _list_of_objects(data: bytearray, value: _Span) -> list[_Span]:
    """Return the elements of a list whose first element is an object, and not a message; else none."""
    if data[value.start : value.start + 1] != b"[":
        return []
    elements = _elements(data, value)
    return elements if elements and _is_object(data, elements[0]) and not _are_messages(data, elements) else []


def _are_messages(data: bytearray, elements: list[_Span]) -> bool:
    return bool(elements) and _is_object(data, elements[0]) and _ROLE in _members(data, elements[0])


def _are_columns(data: bytearray, values: list[_Span]) -> bool:
    """Whether values are lists of one length, and none of messages, or objects with the same keys, of which one is ``"0"``."""
    openings = {bytes(data[value.start : value.start + 1]) for value in values}
    if openings == {b"["}:
        lists = [_elements(data, value) for value in values]
        return len(set(map(len, lists))) == 1 and not any(_are_messages(data, elements) for elements in lists)
    if openings != {b"{"}:
        return False
    keys = [list(_members(data, value)) for value in values]
    return b'"0"' in keys[0] and all(other == keys[0] for other in keys)


def _records(data: bytearray, elements: list[_Span], name: str, where: str) -> list[_Span]:
    if not elements:
        raise InputError(f"{shown_path(name)}: {where} is empty.")
    if not any(_is_object(data, element) for element in elements):
        raise InputError(f"{shown_path(name)}: {where} holds no objects.", _AS_RECORDS)
    return elements


def _is_object(data: bytearray, place: _Span) -> bool:
    return data[place.start : place.start + 1] == b"{"


def _key(key: bytes) -> str:
    return str(json.loads(key.decode(errors="replace"), strict=False))


def _place_of_all(data: bytearray) -> _Span:
    start = _after_gap(data, len(_BOM) if data.startswith(_BOM) else 0)
    end = _end_of(data, start)
    if _after_gap(data, end) != len(data):
        raise _Malformed
    return _Span(start, end)


def _after_gap(data: bytearray, position: int) -> int:
    gap = _GAP.match(data, position)
    return gap.end() if gap else position


def _end_of(data: bytearray, start: int) -> int:
    value = _VALUE.match(data, start)
    if value is None:
        raise _Malformed
    if data[start] not in b"[{":
        return value.end()
    depth = 0
    for token in _TOKEN.finditer(data, start):
        first = data[token.start()]
        if first in b"[{":
            depth += 1
        elif first in b"]}":
            depth -= 1
            if not depth:
                return token.end()
        elif token.end() == token.start() + 1:  # a quote that nothing closes in its line
            break
    raise _Malformed


def _elements(data: bytearray, place: _Span) -> list[_Span]:
    return list(_separated(data, place, b"]"))


def _members(data: bytearray, place: _Span) -> dict[bytes, _Span]:
    members = {}
    keys = _separated(data, place, b"}", b":")
    for key, value in zip(keys, keys, strict=True):
        if data[key.start] not in b'"':
            raise _Malformed
        members[bytes(data[key.start : key.end])] = value
    return members


def _separated(data: bytearray, place: _Span, closing: bytes, first: bytes = b",") -> Iterator[_Span]:
    """Yield the places of values in brackets, between which ``first`` and a comma take turns."""
    position = _after_gap(data, place.start + 1)
    if data[position : position + 1] == closing:
        return
    separators = (first, b",")
    at = 0
    while True:
        end = _end_of(data, position)
        yield _Span(position, end)
        separator = _after_gap(data, end)
        found = data[separator : separator + 1]
        if found == closing and separator == place.end - 1 and separators[at] == b",":
            return
        if found != separators[at]:
            raise _Malformed
        at = 1 - at
        position = _after_gap(data, separator + 1)


def refuse(data: bytearray, name: str) -> NoReturn:
    """Refuse a document that is not JSON."""
    if (other := sure_kind(bytes(data[:_HEAD]), name, "JSON")) is not None:
        raise other
    text, shown = data.decode("utf-8-sig", errors="replace"), shown_path(name)
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        raise _refusal(error, text, data, name) from None
    except (ValueError, RecursionError):
        pass
    raise InputError(f"{shown}: a JSON document must be an array or an object.", _AS_RECORDS)


def _refusal(error: json.JSONDecodeError, text: str, data: bytearray, name: str) -> InputError:
    shown, begins = shown_path(name), text.lstrip()[:1]
    if not begins:
        return InputError(f"{shown}: the file is blank.")
    if begins not in "[{" and (other := other_kind(bytes(data[:_HEAD]), name, "JSON", whole=len(data) <= _HEAD)):
        return other
    if error.msg == "Extra data" and begins == "{" and text[error.pos :].startswith("{"):
        hint = "Name it .jsonl if each stands on a line of its own, or gather them: jq -s . OLD > NEW.json"
        return InputError(f"{shown}: holds JSON objects one after another, not one array of them.", hint)
    fact = f"{shown}:{error.lineno}: not valid JSON: {error.msg} (column {error.colno})."
    is_cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
    return InputError(fact, "The file may be cut off." if is_cut else "")
