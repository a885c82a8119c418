import io

import pytest
from rich.console import Console

from assay.cli.terminal import print_table

ROWS = [["Infinity-Instruct-3M-0613-Llama3-70B", "1,234,567", "167:33:605"], ["elm\x1b[31m", "–", "0:0:1"]]


@pytest.mark.parametrize("width", [1, 20, 40, 80, 200])
def test_numbers_are_never_cut_and_names_are_folded(width):
    text = io.StringIO()
    print_table(Console(file=text, width=width), {"model": False, "rows": True, "won:tied:lost": True}, ROWS)
    shown = text.getvalue()
    assert all(cell in shown for row in ROWS for cell in row[1:])
    assert "won:tied:lost" in shown
    names = "".join(line[:16].rstrip() for line in shown.splitlines()) if width < 60 else shown
    assert ROWS[0][0] in names
    assert "\x1b" not in shown
    assert r"elm\x1b[31m" in names


def test_a_table_without_rows_has_its_headings():
    text = io.StringIO()
    print_table(Console(file=text, width=80), {"model": False, "rows": True}, [])
    assert text.getvalue().split() == ["model", "rows"]
