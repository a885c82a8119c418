"""The notebooks of docs/: their cells run here in order, without Jupyter, and what they show is kept in the file."""

import ast
import contextlib
import io
import json
from pathlib import Path
from typing import Any

from pages import DOCS

__all__ = ["NOTEBOOKS", "run", "written"]

NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))


def run(notebook: dict[str, Any], name: str) -> list[list[dict[str, Any]]]:
    """Run the code cells of a notebook in the current folder.

    Returns:
        What each of them prints, and what its last expression shows, as notebooks keep it.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [_outputs("".join(cell["source"]), namespace, f"{name}[{at}]", at) for at, cell in enumerate(cells, 1)]


def _outputs(source: str, namespace: dict[str, Any], name: str, number: int) -> list[dict[str, Any]]:
    program = ast.parse(source, name)
    last = program.body.pop() if isinstance(program.body[-1], ast.Expr) else None
    printed, shown = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(program, name, "exec"), namespace)  # noqa: S102  (our own notebook)
        if last is not None:
            shown = eval(compile(ast.Expression(last.value), name, "eval"), namespace)  # noqa: S307
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())})
    if shown is not None:
        data = {"text/plain": _lines(repr(shown))}
        if hasattr(shown, "_repr_html_"):
            data["text/html"] = _lines(shown._repr_html_())
        outputs.append({"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": number})
    return outputs


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def written(path: Path) -> str:
    """A notebook with what its cells show, run in the current folder."""
    notebook = json.loads(path.read_text("utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for at, (cell, outputs) in enumerate(zip(cells, run(notebook, path.name), strict=True), 1):
        cell["outputs"], cell["execution_count"] = outputs, at
    return json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
