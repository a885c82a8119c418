"""Workbooks: what the cells hold is read as the same rows in JSON lines are; what is no table is named."""

import datetime as dt
import io
import json
import sys
import zipfile

import polars as pl
import pytest
from web import Web

import assay
from assay.loading.formats import workbook as workbook_module
from assay.loading.formats.reading import Reading
from assay.loading.rollouts import open_rollouts

openpyxl = pytest.importorskip("openpyxl", reason="pip install 'assay-rollouts[excel]'")

SPEC = {"id": "v", "checks": [{"type": "contains", "value": "b"}]}
ROWS = [
    {"completion": "a b", "id": 1, "gold": 123456789, "mixed": "007", "flag": True},
    {"completion": " two\nlines ", "id": 2, "gold": 7, "mixed": 7, "flag": None},
    {"completion": "=no", "id": None, "gold": 10**15, "mixed": 7.5, "flag": False},
    {"completion": None, "id": 4, "gold": None, "mixed": True, "flag": None},
    {"completion": 'é😀"', "id": 5, "gold": -1, "mixed": None, "flag": True},
]
SPREADSHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def workbook(path, *sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for number, rows in enumerate(sheets, 1):
        sheet = book.create_sheet(f"S{number}")
        for row in rows:
            sheet.append(row)
        for cells in sheet.iter_rows():
            for cell in cells:
                if cell.data_type == "f":  # a text that begins with =
                    cell.data_type = "s"
    book.save(path)
    return path


def table(path, rows=ROWS):
    return workbook(path, [list(rows[0]), *(list(row.values()) for row in rows)])


def lines(path, rows=ROWS):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def cells(path, sheet, *, strings=""):
    """A workbook with the XML of the rows of a sheet, and of its shared strings."""
    workbook(path, [["x"]])
    content = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "xl/worksheets/sheet1.xml":
                data = (
                    f'<worksheet xmlns="{SPREADSHEET}"><dimension ref="A1"/><sheetData>{sheet}</sheetData></worksheet>'
                )
            elif name == "[Content_Types].xml":
                part = '<Override PartName="/xl/sharedStrings.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"/>'
                data = data.decode().replace("</Types>", f"{part}</Types>")
            new.writestr(name, data)
        new.writestr("xl/sharedStrings.xml", f'<sst xmlns="{SPREADSHEET}">{strings}</sst>')
    path.write_bytes(content.getvalue())
    return path


def said(path, **options):
    with pytest.raises(assay.InputError) as refused:
        assay.score(path, SPEC, **options)
    return str(refused.value)


def test_a_workbook_is_read_as_the_same_rows_in_json_lines_are(tmp_path):
    book, text = table(tmp_path / "rows.xlsx"), lines(tmp_path / "rows.jsonl")
    assert assay.scan(book).collect().equals(assay.scan(text).collect())
    expected = assay.score(text, SPEC, keep="*")
    assert assay.score(book, SPEC, keep="*").equals(expected)
    for _ in range(2):
        assay.score_file([book, text], SPEC, f"{tmp_path}/parts/", keep="*", part_bytes=100)
    assert pl.read_parquet(tmp_path / "parts" / "*.parquet").equals(pl.concat([expected, expected]))
    checks = {"checks": [{"type": "equals", "value": "7"}]}
    frame = [{**row, "completion": str(row["gold"])} for row in ROWS]
    assert assay.score(table(tmp_path / "b.xlsx", frame), checks)["reward"].to_list() == [0.0, 1.0, 0.0, 0.0, 0.0]


def test_texts_and_numbers_are_what_excel_shows(tmp_path):
    sheet = (
        '<row r="2"><c r="A2" t="s"><v>0</v></c><c r="B2" t="inlineStr"><is><t>n</t></is></c></row>'
        '<row r="4"><c r="A4" t="s"><v>1</v></c><c r="B4"><v>12345678901234567</v></c></row>'
        '<row r="5"/>'
        '<row r="7"><c r="A7" t="str"><f>"b"</f><v>b</v></c><c r="B7" t="e"><v>#N/A</v></c></row>'
        '<row r="8"><c r="A8" t="s"><v>2</v></c><c r="B8"><v>7.0</v></c></row>'
        '<row r="9"><c r="A9" t="inlineStr"><is><t xml:space="preserve"> _x005F_x000D_ </t></is></c></row><row r="10"/>'
    )
    strings = '<si><t>completion</t></si><si><r><t xml:space="preserve">a </t></r><r><t>b_x000D_\n_xD800_x005F_</t></r></si><si><t> x005F_y_x005F_x000D_</t></si>'
    path = cells(tmp_path / "rows.xlsx", sheet, strings=strings)
    opened = open_rollouts(path, Reading())
    assert opened.frame.collect().rows() == [
        ("a b\r\n\ufffdx005F_", "12345678901234567"),
        ("b", None),
        (" x005F_y_x000D_", "7.0"),
        (" _x000D_ ", None),
    ]
    assert list(opened.notes) == [
        f"{path}:3: the first of 3 rows blank and skipped",
        f"{path}:4: a line with lone surrogates, read as U+FFFD",
    ]


def test_dates_and_times_are_texts(tmp_path):
    moments = [dt.datetime(2026, 1, 2, 3, 4, 5), dt.date(2026, 1, 2), dt.time(3, 4, 5), dt.timedelta(hours=30)]  # noqa: DTZ001
    path = workbook(tmp_path / "rows.xlsx", [["completion", "at"], *(["b", moment] for moment in moments)])
    shown = ["2026-01-02T03:04:05", "2026-01-02T00:00:00", "03:04:05", "1 day, 6:00:00"]
    assert assay.scan(path).collect()["at"].to_list() == shown


def test_the_first_sheet_is_read_and_the_others_are_named(tmp_path):
    path = workbook(tmp_path / "rows.xlsx", [["completion"], ["b"]], *([["x"]] for _ in range(5)))
    opened = open_rollouts(path, Reading())
    assert opened.frame.collect().rows() == [("b",)]
    assert list(opened.notes) == [
        f"{path}: the rows are those of its first sheet, `S1`; not read: `S2`, `S3`, `S4` and 2 more"
    ]


def test_columns_without_names_and_cells_are_left_out(tmp_path):
    path = workbook(tmp_path / "rows.xlsx", [[], ["completion", None, 3], ["b", None, 1, None], ["c"]])
    assert assay.scan(path).collect().to_dicts() == [{"completion": "b", "3": 1}, {"completion": "c", "3": None}]


def test_a_sheet_that_is_no_table_is_refused_with_the_place(tmp_path):
    for rows, message in [
        ([], ": the first sheet is empty."),
        ([["completion"]], ": the sheet has no rows below its names."),
        ([["completion"], [], [None]], ": the sheet has no rows below its names."),
        ([["completion", "completion"], ["b", "b"]], ": row 1 has the name `completion` twice.\n\nEach column needs"),
        ([["completion", None], ["b", "b"]], ": row 2 has a value in column 2, which has no name."),
        ([["completion"], ["b", "b"]], ": row 2 has a value in column 2, which has no name."),
    ]:
        path = workbook(tmp_path / "rows.xlsx", rows)
        assert said(path).startswith(f"{path}{message}")


def test_what_is_no_workbook_is_refused(tmp_path):
    for content, message in [
        (b"", ": the file is empty."),
        (b"completion\nb\n", ": not an Excel workbook."),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", ": is an old or encrypted workbook, not a workbook.\n\nSave it as .xlsx,"),
        (b"PK\x03\x04", ": not a readable workbook: File is not a zip file"),
    ]:
        path = tmp_path / "rows.xlsx"
        path.write_bytes(content)
        assert said(path).startswith(f"{path}{message}")


def test_a_damaged_workbook_is_refused_wherever_the_damage_is(tmp_path):
    whole = table(tmp_path / "rows.xlsx").read_bytes()
    path = tmp_path / "cut.xlsx"
    for end in range(10, len(whole) - 1, 211):
        path.write_bytes(whole[:end])
        assert said(path).startswith(f"{path}: not a readable workbook: ")
    for broken in ("<row", '<row r="1"><c t="s"><v>99</v></c></row>', '<row r="1"><c r="A1"><v>x</v></c></row>', "&x;"):
        assert said(cells(path, broken)).startswith(f"{path}: ")


def test_a_bomb_is_refused(tmp_path, monkeypatch):
    path = cells(tmp_path / "rows.xlsx", f'<row r="1"><c r="A1" t="str"><v>{"b" * (1 << 23)}</v></c></row>')
    assert "; the limits allow 1,0" in said(path, max_ratio=2)
    entity = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "b" * 10}">' for n in range(9))
    cells(path, "")
    content = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(content, "w") as new:
        for name in old.namelist():
            sheet = f'<!DOCTYPE x [{entity}]><worksheet xmlns="{SPREADSHEET}"><sheetData><row r="1"><c t="str"><v>&e8;</v></c></row></sheetData></worksheet>'
            new.writestr(name, sheet if name == "xl/worksheets/sheet1.xml" else old.read(name))
    path.write_bytes(content.getvalue())
    assert said(path).startswith(f"{path}: not a readable workbook: ")
    cells(path, '<row r="1"><c t="str"><v>completion</v></c></row><row r="99999999999"><c t="str"><v>b</v></c></row>')
    monkeypatch.setattr(workbook_module, "_MOST_ROWS", 1000)
    assert said(path) == f"{path}: has more rows than a sheet can have."


def test_without_openpyxl_the_command_that_installs_it_is_told(tmp_path, monkeypatch):
    path = table(tmp_path / "rows.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    assert (
        said(path)
        == f"{path}: openpyxl, which reads workbooks, is not installed.\n\npip install 'assay-rollouts[excel]'"
    )


def test_a_workbook_at_a_url_is_refused_with_a_way_out(tmp_path):
    with Web({"/rows.xlsx": table(tmp_path / "rows.xlsx").read_bytes()}) as web:
        message = said(f"{web.url}/rows.xlsx")
    assert message.endswith("/rows.xlsx: a workbook at a URL cannot be read.\n\nDownload it, and score the file.")
