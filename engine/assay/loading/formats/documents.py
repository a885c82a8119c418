"""Files that are read whole, their records as JSON lines; and what a file seems to be by its first bytes."""

import contextlib
import csv
import io
import itertools
import json
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple, NoReturn

from assay.errors import InputError, quoted, shown_path
from assay.frozen import frozen

DOCUMENTS = (".json", ".xlsx", ".eval")
"""Suffixes of documents."""


@frozen
class RecordDocument:
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
    if suffixes[-1:] == [".json"] and path.is_file():
        with contextlib.suppress(OSError), path.open("rb") as file:
            if _JSON_LOG.match(file.read(512)):
                return ".eval"
    if suffixes[-1:] in ([".gz"], [".zst"]):
        suffixes.pop()
    return suffixes[-1] if suffixes and suffixes[-1] in DOCUMENTS else ""


DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
"""Delimiters, and their names."""

_ROWS = 3


def delimiter_of(head: bytes, name: str, *, whole: bool) -> str:
    """Return the delimiter of a file: the one that its header has most of, outside quotes, and its first row as many of."""
    text = head.decode("utf-8-sig", errors="replace")
    usual = _usual(name)
    widths = {delimiter: _widths(text, delimiter, whole=whole) for delimiter in (usual, *DELIMITERS)}
    fits = {delimiter: len(width) == 1 or width[0] == width[1] for delimiter, width in widths.items()}
    there = [delimiter for delimiter, (header, *_) in widths.items() if header > 1]
    return max(there, key=lambda delimiter: (fits[delimiter], widths[delimiter][0]), default=usual)


def delimiter_note(name: str, delimiter: str) -> tuple[str, ...]:
    """Return a note that names the delimiter, if it is not the usual one."""
    if delimiter == _usual(name.partition("?")[0]):
        return ()
    shown = "" if delimiter == "\t" else f" ({delimiter})"
    return (f"{shown_path(name)}: the delimiter in its header is the {DELIMITERS[delimiter]}{shown}",)


def _usual(name: str) -> str:
    return "\t" if name.lower().endswith(".tsv") else ","


def _widths(text: str, delimiter: str, *, whole: bool) -> list[int]:
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
    kinds = ((kind, hint) for magic, (kind, hint) in MAGIC.items() if head.startswith(magic))
    return next((_not_wanted(name, kind, wanted, hint) for kind, hint in kinds), None)


def _not_wanted(name: str, kind: str, wanted: str, hint: str) -> InputError:
    return InputError(f"{shown_path(name)}: is {kind}, not {wanted}.", hint)


def other_kind(head: bytes, name: str, wanted: str, *, whole: bool, texts: bool = True) -> InputError | None:
    """Return the error of a file whose first line is not a JSON object; None if it seems to be JSON lines that are malformed."""
    if (error := sure_kind(head, name, wanted)) is not None:
        return error
    text = head.removeprefix(_BOM).lstrip()
    first, _, rest = text.partition(b"\n")
    kind, hint = "", ""
    if text.startswith(b"["):
        if not (rest.strip() and _is_json(first)):
            kind, hint = "a JSON array", "Name it .json, or write a line for each object: jq -c '.[]' OLD > NEW.jsonl"
    elif text.startswith(b"{"):
        if rest.strip() and first.rstrip().endswith((b"{", b"[", b",")):
            hint = "Name it .json if it is one document, or write each object on one line: jq -c . OLD > NEW.jsonl"
            kind = "JSON that goes over several lines"
    elif text.startswith(b"<"):
        kind, hint = "an HTML or XML page", "Fetch it again; the server may have asked for a login."
    elif texts:
        kind, hint = _text_kind(text[:_HEAD], whole=whole and len(text) <= _HEAD)
    return _not_wanted(name, kind, wanted, hint) if kind else None


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
    decoded = head.decode("utf-8-sig", errors="replace")
    tables = (_widths(decoded, delimiter, whole=whole) for delimiter in DELIMITERS)
    if any(len(widths) > 1 and widths[0] > 1 and len(set(widths)) == 1 for widths in tables):
        return "a table with a delimiter", "Name it .csv or .tsv."
    line = text.partition("\n")[0].strip()
    return f"text that begins with {quoted(line)}", 'Each line must be a JSON object: {"completion": "…"}'


_BOM = b"\xef\xbb\xbf"
_STRING = rb'"[^"\\\r\n]*+(?:\\.[^"\\\r\n]*+)*+"'
_TOKEN = re.compile(_STRING + rb'|["\[\]{}]')
_VALUE = re.compile(rb"[\[{]|" + _STRING + rb'|[^\s,:"\[\]{}]++')
_GAP = re.compile(rb"[ \t\r\n]*+")
_BLANK = bytes.maketrans(b"\r\n", b"  ")
_AS_RECORDS = "Write an array of objects; with pandas: df.to_json(PATH, orient='records')."


class _Malformed(Exception):  # noqa: N818  (never leaves this module)
    """The structure is not that of JSON."""


class _Span(NamedTuple):
    """The place of a value: of its first byte, and of the byte after its last."""

    start: int
    end: int


def read_json(data: bytearray, name: str) -> RecordDocument:
    """Return the records of a JSON document: an array of records, an object with one list of them, or a single record.

    Only its outermost brackets and commas are looked at. Each is replaced where it stands, so that a record keeps its place and its
    bytes, and ``LineReader`` decides what they mean, as in a file of JSON lines.
    """
    start = len(_BOM) if data.startswith(_BOM) else 0
    try:
        records, notes = _JsonStructure(data, shown_path(name)).records(start)
    except _Malformed:
        refuse(data, name)
    lines = data.translate(_BLANK)
    lines[start : records[0].start] = b" " * (records[0].start - start)
    for before, record in itertools.pairwise(records):
        lines[before.end : record.start] = b"\n".ljust(record.start - before.end)
    lines[records[-1].end :] = b"\n"
    numbers, line, position = array("q"), 1, 0
    for record in records:
        line += data.count(b"\n", position, record.start)
        position = record.start
        numbers.append(line)
    return RecordDocument(lines, numbers, notes)


class _JsonStructure:
    """Finds the places of values in a JSON document."""

    def __init__(self, data: bytearray, shown: str) -> None:
        self._data, self._shown = data, shown

    def records(self, start: int) -> tuple[list[_Span], tuple[str, ...]]:
        start = self._after_gap(start)
        place = _Span(start, self._end_of(start))
        if self._after_gap(place.end) != len(self._data):
            raise _Malformed
        if self._opens(place, b"["):
            return self._checked(self._elements(place), "the array"), ()
        if not self._opens(place, b"{"):
            raise _Malformed
        members = self._members(place)
        if not members:
            raise InputError(f"{self._shown}: the object is empty.", _AS_RECORDS)
        is_record = b'"completion"' in members
        if b'"checks"' in members and not is_record:
            raise InputError(f"{self._shown}: is a verifier's spec, not rollouts.", "Give it with --spec.")
        # its one list of objects, which are not messages
        arrays = {
            key: self._elements(value) for key, value in members.items() if self._opens(value, b"[") and not is_record
        }
        lists = {
            str(json.loads(key.decode(errors="replace"), strict=False)): elements
            for key, elements in arrays.items()
            if elements and self._opens(elements[0], b"{") and not self._are_messages(elements)
        }
        if len(lists) > 1:
            key = next(iter(lists))
            hint = f"Keep one: jq '.{key}' {self._shown} > {key}.json"
            raise InputError(f"{self._shown}: has several lists of objects: {', '.join(lists)}.", hint)
        for key, elements in lists.items():
            note = f"{self._shown}: the rows are the elements of its list `{key}`"
            return self._checked(elements, f"`{key}`"), (note,)
        if self._are_columns([*members.values()]):
            raise InputError(f"{self._shown}: the object holds columns, not records.", _AS_RECORDS)
        return [place], ()

    def _checked(self, elements: list[_Span], where: str) -> list[_Span]:
        if not elements:
            raise InputError(f"{self._shown}: {where} is empty.")
        if not any(self._opens(element, b"{") for element in elements):
            raise InputError(f"{self._shown}: {where} holds no objects.", _AS_RECORDS)
        return elements

    def _opens(self, place: _Span, bracket: bytes) -> bool:
        return self._data[place.start : place.start + 1] == bracket

    def _are_messages(self, elements: list[_Span]) -> bool:
        return bool(elements) and self._opens(elements[0], b"{") and b'"role"' in self._members(elements[0])

    def _are_columns(self, values: list[_Span]) -> bool:
        if all(self._opens(value, b"[") for value in values):
            lists = [self._elements(value) for value in values]
            return len(set(map(len, lists))) == 1 and not any(map(self._are_messages, lists))
        if not all(self._opens(value, b"{") for value in values):
            return False
        keys = [list(self._members(value)) for value in values]
        return b'"0"' in keys[0] and all(other == keys[0] for other in keys)

    def _after_gap(self, position: int) -> int:
        gap = _GAP.match(self._data, position)
        return gap.end() if gap else position

    def _end_of(self, start: int) -> int:
        value = _VALUE.match(self._data, start)
        if value is None:
            raise _Malformed
        if self._data[start] not in b"[{":
            return value.end()
        depth = 0
        for token in _TOKEN.finditer(self._data, start):
            first = self._data[token.start()]
            if first in b"[{":
                depth += 1
            elif first in b"]}":
                depth -= 1
                if not depth:
                    return token.end()
            elif token.end() == token.start() + 1:  # a quote that nothing closes in its line
                break
        raise _Malformed

    def _elements(self, place: _Span) -> list[_Span]:
        return list(self._separated(place, b"]"))

    def _members(self, place: _Span) -> dict[bytes, _Span]:
        members = {}
        keys = self._separated(place, b"}", b":")
        for key, value in zip(keys, keys, strict=True):
            if self._data[key.start] not in b'"':
                raise _Malformed
            members[bytes(self._data[key.start : key.end])] = value
        return members

    def _separated(self, place: _Span, closing: bytes, first: bytes = b",") -> Iterator[_Span]:
        position = self._after_gap(place.start + 1)
        if self._data[position : position + 1] == closing:
            return
        for expected in itertools.cycle((first, b",")):
            end = self._end_of(position)
            yield _Span(position, end)
            at = self._after_gap(end)
            separator = self._data[at : at + 1]
            if separator == closing and at == place.end - 1 and expected == b",":
                return
            if separator != expected:
                raise _Malformed
            position = self._after_gap(at + 1)


def refuse(data: bytearray, name: str) -> NoReturn:
    """Refuse a document that is not JSON, with the place in the words of Python."""
    if (other := sure_kind(bytes(data[:_HEAD]), name, "JSON")) is not None:
        raise other
    text, shown = data.decode("utf-8-sig", errors="replace"), shown_path(name)
    begins = text.lstrip()[:1]
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        if not begins:
            raise InputError(f"{shown}: the file is blank.") from None
        if begins not in "[{" and (other := other_kind(bytes(data[:_HEAD]), name, "JSON", whole=len(data) <= _HEAD)):
            raise other from None
        if error.msg == "Extra data" and begins == "{" and text[error.pos :].startswith("{"):
            hint = "Name it .jsonl if each stands on a line of its own, or gather them: jq -s . OLD > NEW.json"
            raise InputError(f"{shown}: holds JSON objects one after another, not one array of them.", hint) from None
        fact = f"{shown}:{error.lineno}: not valid JSON: {error.msg} (column {error.colno})."
        is_cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
        raise InputError(fact, "The file may be cut off." if is_cut else "") from None
    except (ValueError, RecursionError):
        pass
    raise InputError(f"{shown}: a JSON document must be an array or an object.", _AS_RECORDS)
