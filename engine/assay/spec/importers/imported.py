"""What an importer makes of a file, and what it had to leave out; templates."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.errors import SpecError
from assay.frozen import frozen
from assay.spec.fields import problem_at
from assay.spec.verifier import load_verifier
from assay.system.documents import Place, SpecDocument


class NoCounterpartError(Exception):
    """A part of a file that no spec can express; the message says why."""


@dataclass
class Notes:
    """Remarks on parts of a file, each with its place."""

    document: SpecDocument
    left_out: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)

    def leave_out(self, path: Place, reason: str) -> None:
        """Record a part that has no counterpart."""
        self.left_out.append(problem_at(self.document, path, reason))

    def differ(self, path: Place, reason: str) -> None:
        """Record a part whose counterpart is not the same in every case."""
        self.differences.append(problem_at(self.document, path, reason))


@frozen
class Imported:
    """A spec from another tool's file."""

    spec: Mapping[str, Any]
    tasks: Sequence[Mapping[str, Any]]
    left_out: Sequence[str]
    differences: Sequence[str]


def check_problem(check: Mapping[str, Any], *, summed: bool = False) -> str:
    """Return why a spec with this check would be refused, or ``""``."""
    top = {"combine": "sum", "range": None} if summed else {}
    alone = dict(check) if check.get("weight", 1) else {**check, "weight": 1}
    try:
        load_verifier({"checks": [alone], **top}, strict=True)
    except SpecError as error:
        return "; ".join(problem.partition(": ")[2] for problem in error.problems)
    return ""


def named_check(name: Any, check: Mapping[str, Any]) -> dict[str, Any]:
    """Return a check with an id made of a name, if there is one."""
    if not isinstance(name, str):
        return dict(check)
    ident = "".join(char if char.isprintable() and char != "/" else "-" for char in name).strip()
    return {"id": ident, **check} if ident else dict(check)


def numbered_ids(checks: Sequence[dict[str, Any]], taken: set[str] | None = None) -> None:
    """Number the ids that stand in a list more than once."""
    taken = set() if taken is None else taken
    for check in checks:
        if "id" in check:
            names = (check["id"] if n == 1 else f"{check['id']}-{n}" for n in range(1, len(checks) + 2))
            check["id"] = next(name for name in names if name not in taken)
            taken.add(check["id"])
        numbered_ids(check.get("checks", ()))


def check_threshold(value: float, field: str = "threshold") -> None:
    """Check that a threshold can be one of scores between 0 and 1."""
    if not 0 < value <= 1:
        raise NoCounterpartError(f"`{field}` is {value:g}, and a threshold is above 0 and at most 1")


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


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


def reference_to(text: str, column_of: Callable[[str], str]) -> Any:
    """Return a text without templates as it is, one that is a template as ``{column: …}``, and another as ``{template: …}``."""
    pieces = pieces_of(text)
    if len(pieces) == 1:
        return text
    columns = [column_of(path) for path in pieces[1::2]]
    if len(columns) == 1 and not any(pieces[::2]):
        return {"column": columns[0]}
    literals = [literal.replace("{", "{{").replace("}", "}}") for literal in pieces[::2]]
    braced = [f"{{{column}}}" for column in columns]
    return {"template": "".join(part for pair in zip(literals, [*braced, ""], strict=True) for part in pair)}
