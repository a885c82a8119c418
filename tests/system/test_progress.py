"""The progress bar counts rows in words that agree with their number."""

import io

import pytest
from rich.console import Console

from assay.system import progress as module


@pytest.mark.parametrize(("rows", "text"), [(1, "1 row "), (2, "2 rows "), (1_234, "1,234 rows ")])
def test_the_rows_of_a_progress_bar_agree_with_their_number(monkeypatch, rows, text):
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    monkeypatch.setattr(module, "open_console", lambda **_: console)
    with module.progress("scoring") as report:
        report(rows, None)
    assert text in console.file.getvalue()
