"""Tool calls written as Python: ``[f(a=1), g.h(b="x")]``, read by ``ast``; nothing is run.

Python's parser takes memory, and stack, for what a few characters nest. So it sees only texts of limited length, in which nothing
nests but brackets: names with dots, calls, lists, dicts, tuples and literals, each behind a comma, a colon, an equals sign or a
bracket.
"""

import ast
import json
import keyword
import re
from typing import Any

from assay.steps.tool_calls.calls import Call

MAX_CHARS = 100_000
"""Maximum length of a text that is read as Python: its syntax tree takes 500 times as much memory."""
_MAX_DEPTH = 50
_LONG, _SHORT = r"{0}{0}{0}(?:[^{0}\\]|\\.|{0}(?!{0}{0}))*{0}{0}{0}", r"{0}(?:[^{0}\\\n]|\\.)*{0}"
_STRING = "[rRuU]?(?:" + "|".join(form.format(mark) for form in (_LONG, _SHORT) for mark in "\"'") + ")"
_NUMBER = (
    r"(?:0[xX][0-9a-fA-F_]++|(?:[0-9][0-9_]*+(?:\.[0-9_]*+)?+|\.[0-9][0-9_]*+)(?:[eE][+-]?[0-9][0-9_]*+)?+)(?![\w.])"
)
_NAME = r"[^\W\d]\w*+(?:\.[^\W\d]\w*+){0,20}+(?![\w.])"
_TOKEN = re.compile(
    rf"(?P<string>{_STRING})|(?P<number>{_NUMBER})|(?P<name>{_NAME})|(?P<open>[\[({{])|(?P<close>[\])}}])"
    r"|(?P<sign>-)|(?P<between>[,:=])|(?P<space>[ \t\r\n]+)",
    re.DOTALL,
)
_AFTER = {
    "value": frozenset(("open", "between", "sign", "")),
    "open": frozenset(("open", "between", "name", "")),
    "sign": frozenset(("open", "between")),
}
"""What may stand before a value, a bracket that opens and a sign; anything else could nest without a bracket."""
_CONSTANTS = ("True", "False", "None")
_ESCAPE = re.compile(r"\\([4-7][0-7]{2}|.)", re.DOTALL)
_KNOWN_ESCAPES = "\n\\'\"abfnrtv01234567NuUx"
_BEYOND_BYTE = 3
"""Octal digits of which Python warns, as the number is no byte."""
_NO_LITERALS = "no literals by name"


def calls_in_python(text: str) -> list[Call]:
    """Return the calls of a list of calls; none if the text is anything else.

    The arguments of a call are an object if all of them have names and are literals that JSON has, too (a tuple is a list); else
    they are a text.
    """
    source = text.strip()
    if not (source.startswith("[") and source.endswith("]") and "(" in source and len(source) <= MAX_CHARS):
        return []
    prepared = _prepared(source)
    try:
        tree = None if prepared is None else ast.parse(prepared, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    if not isinstance(tree, ast.List):
        return []
    names = [_dotted(item.func) if isinstance(item, ast.Call) else "" for item in tree.elts]
    if not all(names):
        return []
    calls = zip(names, tree.elts, strict=True)
    return [{"name": name, "arguments": _arguments(item)} for name, item in calls if isinstance(item, ast.Call)]


def _prepared(source: str) -> str | None:
    """Return the text for Python's parser, without escapes that it warns of; None if it should not see it."""
    pieces: list[str] = []
    at, depth, before = 0, 0, ""
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            return None
        kind, piece, at = match.lastgroup or "", match[0], match.end()
        role = "value" if kind in ("string", "number", "name") else kind
        joined = kind == before == "string"  # Python joins them
        if not joined and role in _AFTER and before not in _AFTER[role]:
            return None
        depth += (kind == "open") - (kind == "close")
        if depth > _MAX_DEPTH or (kind == "name" and keyword.iskeyword(piece) and piece not in _CONSTANTS):
            return None
        pieces.append(_without_warnings(piece) if kind == "string" else piece)
        before = before if kind == "space" else kind
    return "".join(pieces)


def _without_warnings(string: str) -> str:
    """Return a string of the same value whose escapes Python does not warn of."""
    return string if "\\" not in string or string[0] in "rR" else _ESCAPE.sub(_plain_escape, string)


def _plain_escape(match: re.Match[str]) -> str:
    if len(match[1]) == _BEYOND_BYTE:
        return f"\\u{int(match[1], 8):04x}"
    return match[0] if match[1] in _KNOWN_ESCAPES else "\\" + match[0]


def _dotted(function: ast.expr) -> str:
    names: list[str] = []
    while isinstance(function, ast.Attribute):
        names.append(function.attr)
        function = function.value
    return ".".join([*names, function.id][::-1]) if isinstance(function, ast.Name) else ""


def _arguments(call: ast.Call) -> Any:
    names = [keyword.arg for keyword in call.keywords]
    if call.args or None in names:
        return _NO_LITERALS
    try:
        values = [ast.literal_eval(keyword.value) for keyword in call.keywords]
        arguments = dict(zip(names, values, strict=True))
        return json.loads(json.dumps(arguments))
    except (TypeError, ValueError, RecursionError, MemoryError):
        return _NO_LITERALS
