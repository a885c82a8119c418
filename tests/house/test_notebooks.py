"""The notebooks of docs/ run, and show what is kept in them."""

import json

import pytest
from notebooks import NOTEBOOKS, run, written


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_keeps(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert written(path) == path.read_text("utf-8"), "run `make readme`"
    notebook = json.loads(path.read_text("utf-8"))
    assert notebook["nbformat"] == 4
    assert sum("text/html" in str(cell.get("outputs")) for cell in notebook["cells"]) >= 5


def test_a_cell_prints_and_shows_its_last_expression():
    cells = [{"cell_type": "code", "source": source} for source in (["a = 1\n", "print(a)"], "a + 1", "b = a")]
    stream, result = (
        {"output_type": "stream", "name": "stdout", "text": ["1\n"]},
        {"output_type": "execute_result", "data": {"text/plain": ["2"]}, "metadata": {}, "execution_count": 2},
    )
    assert run({"cells": [{"cell_type": "markdown", "source": "x"}, *cells]}, "name") == [[stream], [result], []]
    with pytest.raises(ZeroDivisionError):
        run({"cells": [{"cell_type": "code", "source": "1 / 0"}]}, "name")
