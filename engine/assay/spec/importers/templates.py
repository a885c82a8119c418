"""Templates with ``{{ name }}`` to references."""

import re
from collections.abc import Callable
from typing import Any

from assay.spec.importers.imported import NoCounterpartError

_TAG = re.compile(r"\{\{(.*?)\}\}|(\{[%#].*?[%#]\})", re.DOTALL)
_OPEN = ("{{", "{%", "{#")
_PATH = re.compile(r"[A-Za-z_]\w*(?:\.\w+|\[\d+\])*", re.ASCII)


def pieces_of(text: str) -> list[str]:
    """Split a text at its templates: literal text and paths by turns, beginning with literal text."""
    pieces, end = [], 0
    for match in _TAG.finditer(text):
        inside = (match[1] or "").strip().strip("-").strip()
        if not _PATH.fullmatch(inside):
            raise NoCounterpartError(f"the template {match[0][:60]!r} is more than the name of a value")
        pieces += [text[end : match.start()], inside]
        end = match.end()
    rest = text[end:]
    if any(mark in rest for mark in _OPEN):
        raise NoCounterpartError("it has an unfinished template")
    return [*pieces, rest]


def reference_to(text: str, column_of: Callable[[str], str], change: Callable[[str], str] = str) -> Any:
    """Return a text without templates as it is, one that is a template as ``{column: …}``, and another as ``{template: …}``."""
    pieces = pieces_of(text)
    if len(pieces) == 1:
        return change(text)
    columns = [column_of(path) for path in pieces[1::2]]
    if len(columns) == 1 and not any(pieces[::2]):
        return {"column": columns[0]}
    literals = [change(literal).replace("{", "{{").replace("}", "}}") for literal in pieces[::2]]
    braced = [f"{{{column}}}" for column in columns]
    return {"template": "".join(part for pair in zip(literals, [*braced, ""], strict=True) for part in pair)}
