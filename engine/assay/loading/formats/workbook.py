"""An Excel workbook: the rows of its first sheet under the names in the sheet's first row.

Read by openpyxl, which keeps what the cells hold: whole numbers of any length, 7 apart from 7.0 and from the text 007.
"""

import datetime as dt
import io
import json
import re
import warnings
import zipfile
from array import array
from collections.abc import Iterator, Sequence
from typing import Any

from assay.errors import InputError, install, listed, shown_path
from assay.loading.formats.documents import RecordDocument, sure_kind

_MAGIC = b"PK\x03\x04"
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_MOST_ROWS = 1 << 20
_SHEETS = 3
_BROKEN = (
    zipfile.BadZipFile,
    ArithmeticError,
    AttributeError,
    LookupError,
    OSError,
    SyntaxError,
    TypeError,
    ValueError,
)
"""Errors of openpyxl for a damaged workbook; that of XML is a ``SyntaxError``."""


def read_workbook(data: bytearray, name: str, limit: int) -> RecordDocument:
    """Return the rows of the first sheet."""
    shown = shown_path(name)
    if not data.startswith(_MAGIC):
        raise sure_kind(bytes(data[:64]), name, "a workbook") or InputError(f"{shown}: not an Excel workbook.")
    try:
        import openpyxl  # noqa: F401
    except ImportError:
        raise InputError(f"{shown}: openpyxl, which reads workbooks, is not installed.", install("excel")) from None
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > limit:
            hint = "Raise --memory-limit or --max-ratio if you trust it, or save it as CSV."
            raise InputError(f"{shown}: {len(data):,} bytes expand to {size:,}; the limits allow {limit:,}.", hint)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on styles and validations, which are not read
            return _document(_sheets(data), shown)
    except _BROKEN as error:
        problem = str(error).strip().partition("\n")[0]
        raise InputError(f"{shown}: not a readable workbook: {problem}", "Open and save it again, or as CSV.") from None


def _sheets(data: bytearray) -> Sequence[Any]:
    from openpyxl.cell.text import Text
    from openpyxl.reader.excel import ExcelReader
    from openpyxl.xml.constants import SHARED_STRINGS, SHEET_MAIN_NS
    from openpyxl.xml.functions import iterparse

    class SheetReader(ExcelReader):  # type: ignore[misc]  # openpyxl has no annotations
        def read_strings(self) -> None:
            # NOTE: its own version drops every "x005F_" from the texts
            part = self.package.find(SHARED_STRINGS)
            if part is None:
                return
            with self.archive.open(part.PartName[1:]) as source:
                for _, node in iterparse(source):
                    if node.tag == f"{{{SHEET_MAIN_NS}}}si":
                        self.shared_strings.append(Text.from_tree(node).content)
                        node.clear()

    reader = SheetReader(io.BytesIO(data), read_only=True, data_only=True)
    reader.read()
    return list(reader.wb.worksheets)


def _document(sheets: Sequence[Any], shown: str) -> RecordDocument:
    if not sheets:
        raise InputError(f"{shown}: has no sheet with cells.")
    lines, places = bytearray(), array("q")
    names: list[str] = []
    blank: list[int] = []
    sheets[0].reset_dimensions()  # some writers state a wrong size
    for number, cells in enumerate(sheets[0].iter_rows(), 1):
        if number > _MOST_ROWS:
            raise InputError(f"{shown}: has more rows than a sheet can have.")
        values = [*map(_value, cells)]
        if all(value is None for value in values):
            blank += [number] if names else []
        elif not names:
            names = _names(values, number, shown)
        else:
            for column, value in enumerate(values):
                if value is not None and not any(names[column : column + 1]):
                    raise InputError(f"{shown}: row {number} has a value in column {column + 1}, which has no name.")
            given = dict(zip(names, values, strict=False))
            lines += json.dumps({name: given.get(name) for name in names if name}).encode() + b"\n"
            places.append(number)
    if not names:
        raise InputError(f"{shown}: the first sheet is empty.")
    if not places:
        raise InputError(f"{shown}: the sheet has no rows below its names.")
    return RecordDocument(
        lines, places, tuple(_notes(sheets, [number for number in blank if number < places[-1]], shown))
    )


def _notes(sheets: Sequence[Any], blank: Sequence[int], shown: str) -> Iterator[str]:
    if len(sheets) > 1:
        others = listed([f"`{sheet.title}`" for sheet in sheets[1 : _SHEETS + 1]])
        more = f" and {len(sheets) - 1 - _SHEETS:,} more" if len(sheets) - 1 > _SHEETS else ""
        yield f"{shown}: the rows are those of its first sheet, `{sheets[0].title}`; not read: {others}{more}"
    if blank:
        subject = "a row" if len(blank) == 1 else f"the first of {len(blank):,} rows"
        yield f"{shown}:{blank[0]}: {subject} blank and skipped"


def _names(values: Sequence[Any], number: int, shown: str) -> list[str]:
    names = ["" if value is None else str(value) for value in values]
    if not any(names):
        raise InputError(f"{shown}: the first sheet is empty.")
    twice = [name for at, name in enumerate(names) if name and name in names[:at]]
    if twice:
        raise InputError(f"{shown}: row {number} has the name `{twice[0]}` twice.", "Each column needs its own name.")
    return names


def _value(cell: Any) -> Any:
    value = cell.value
    if cell.data_type == "e":
        return None
    if isinstance(value, str):
        return _ESCAPED.sub(lambda code: chr(int(code[1], 16)), value)
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return str(value) if isinstance(value, dt.timedelta) else value
