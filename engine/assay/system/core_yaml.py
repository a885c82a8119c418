"""YAML 1.2's core schema as plain data with the line of every value; what is ambiguous is rejected.

Only ``true``, ``false``, ``null`` and decimal numbers are not strings, so ``no`` and ``1:30`` are strings. Aliases, tags (except
``!!str``) and duplicate keys are rejected.

NOTE: this module is apart from ``documents`` because PyYAML is slow to import, and valid JSON and TOML do not need it.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import yaml

from assay.errors import clipped

MAX_DEPTH = 100

Lines = dict[tuple[str | int, ...], int]
"""Line (from 1) of each value by its place, ``("checks", 0, "params")``."""


class YamlError(Exception):
    """A text that is not valid YAML, or that is ambiguous."""

    def __init__(self, problem: str, line: int) -> None:
        super().__init__(problem)
        self.line = line


def parse_yaml(content: str) -> tuple[Any, Lines]:
    """Parse a text to plain data, and the line of every value."""
    lines: Lines = {}
    try:
        _check_events(content)
        loader = _Loader(content)
        try:
            node = loader.get_single_node()
            return None if node is None else _construct(loader, node, (), lines), lines
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise _in_words(error, content) from None
    except yaml.reader.ReaderError as error:
        line = content.count("\n", 0, error.position) + 1
        raise YamlError(f"a character that YAML does not allow: U+{error.character:04X}", line) from None


class _Loader(yaml.SafeLoader):
    """SafeLoader with the implicit types of YAML 1.2's core schema; octal, hexadecimal, infinity and NaN stay text."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  (PyYAML's own name)


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+0123456789."),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), list(_first))


_NUMBERS: dict[str, Callable[[str], float]] = {"tag:yaml.org,2002:int": int, "tag:yaml.org,2002:float": float}
"""PyYAML's own reads 010 as octal 8."""


def _check_events(content: str) -> None:
    depth = documents = 0
    event: Any  # PyYAML's events carry their fields by class
    for event in yaml.parse(content, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        documents += isinstance(event, yaml.DocumentStartEvent)
        problem = ""
        if isinstance(event, yaml.AliasEvent):
            problem = f"the alias *{event.anchor} is not allowed; write the value out"
        elif getattr(event, "tag", None) not in (None, "tag:yaml.org,2002:str"):
            problem = f"the tag {event.tag} is not allowed"
        elif depth > MAX_DEPTH:
            problem = f"nested too deeply (past {MAX_DEPTH} levels)"
        elif documents > 1:
            problem = "a second document begins here; the file must hold one document"
        if problem:
            raise YamlError(problem, event.start_mark.line + 1)


def _construct(loader: _Loader, node: yaml.Node, place: tuple[str | int, ...], lines: Lines) -> Any:
    lines[place] = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        return [_construct(loader, inner, (*place, at), lines) for at, inner in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        mapping: dict[str, Any] = {}
        for key_node, inner in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise YamlError(
                    "a key must be a string; put a text with braces in quotes", key_node.start_mark.line + 1
                )
            key = key_node.value
            if key in mapping:
                problem = f'the key "{key}" appears twice in one mapping'
                raise YamlError(problem, key_node.start_mark.line + 1)
            mapping[key] = _construct(loader, inner, (*place, key), lines)
            lines[(*place, key)] = key_node.start_mark.line + 1
        return mapping
    try:
        number = _NUMBERS.get(node.tag)
        return loader.construct_object(node) if number is None else number(node.value)
    except ValueError:
        raise YamlError("a number with too many digits", node.start_mark.line + 1) from None


def json_as_yaml(content: str) -> str:
    """Blank the characters of a JSON text that YAML's reader rejects or counts as line breaks."""
    return _NOT_YAML.sub(" ", content)


# the characters themselves: to compile their complement takes 5 ms
_NOT_YAML = re.compile("[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


class _Fault(NamedTuple):
    """What the parser refuses: its words, where it stopped, and where what it was reading begins."""

    problem: str
    content: str
    lines: list[str]
    end: Any
    start: Any


_Words = tuple[str, int]
"""What to tell whoever wrote the text, and the line to mend, from 0."""

_KEY = r"(?P<key>(?:- +)*[\w.$-]+)"
_INDICATORS = frozenset("!%&*@`|>,[]{}?-:#")
"""Characters with which a text without quotes cannot begin."""


def _in_words(error: yaml.MarkedYAMLError, content: str) -> YamlError:
    end = error.problem_mark or error.context_mark
    problem = f"{error.context or ''} {error.problem or ''}".strip()
    if end is None:
        return YamlError(problem, 0)
    lines = re.split("\r\n|[\n\r\x85\u2028\u2029]", content)
    # NUL: what a mark at the end points to
    fault = _Fault(problem, f"{content}\0", lines, end, error.context_mark or end)
    words, line = next((words for part, words in _IN_WORDS.items() if part in problem), _indicator)(fault)
    return YamlError(words, line + 1)


def _shown(text: str) -> str:
    return f"`{clipped(text.strip())}`"


def _escape(fault: _Fault) -> _Words:
    start = fault.content.rindex("\\", 0, fault.end.index + 1)
    escape = fault.content[start : start + 2]
    problem = f'"{escape}" in double quotes is an escape that YAML cannot read'
    return f"{problem}: write the text in single quotes, '…{escape}…'", fault.end.line


def _open_bracket(fault: _Fault) -> _Words:
    words = f"the {fault.content[fault.start.index]} that opens here is not closed, or a comma is missing"
    return f"{words}: put a text with brackets, commas or colons in quotes", fault.start.line


def _indicator(fault: _Fault) -> _Words:
    first = fault.content[(fault.start if "scanning a" in fault.problem else fault.end).index]
    if first in _INDICATORS:
        return f"a text that begins with {first} has to stand in quotes", fault.end.line
    return f"not valid YAML: {fault.problem}", fault.end.line


def _without_colon(line: str) -> str:
    text = line.strip()
    if glued := re.fullmatch(rf"{_KEY}:(?P<value>\S.*)", text):
        return f"{_shown(text)} lacks a space after the colon: write {_shown(glued['key'] + ': ' + glued['value'])}"
    if bullet := re.match(r"-(?P<rest>[^\s-].*)", text):
        return f"{_shown(text)} lacks a space after the dash: write {_shown('- ' + bullet['rest'])}"
    if spaced := re.fullmatch(rf"{_KEY} +(?P<value>.+)", text):
        return f"{_shown(text)} lacks its colon: write {_shown(spaced['key'] + ': ' + spaced['value'])}"
    return f"{_shown(text)} lacks its colon: write {_shown(text + ':')}, or indent it if it belongs to the text above"


def _second_colon(fault: _Fault) -> _Words:
    at, line = fault.end.line, fault.lines[fault.end.line]
    text = re.match(rf"\s*{_KEY}: +(?P<value>.*)", line)
    if text and text.start("value") <= fault.end.column:
        value = text["value"].strip().replace("'", "''")
        mended = f"{text['key'].lstrip('- ')}: '{value}'"
        return f"a text with a colon has to stand in quotes: {_shown(mended)}", at
    above = next((number for number in range(at - 1, -1, -1) if fault.lines[number].strip(" -")), at)
    if re.match(r"\s*-[^\s-]", fault.lines[above]) or not re.match(rf"\s*{_KEY}\s*:(\s|$)", fault.lines[above]):
        return _without_colon(fault.lines[above]), above
    return _in_column(fault)


def _no_end(fault: _Fault) -> _Words:
    before, rest = fault.lines[fault.end.line][: fault.end.column], fault.lines[fault.end.line][fault.end.column :]
    if not before.strip(" -"):
        return _in_column(fault)
    words = f"{_shown(rest)} follows a value that has ended: put the whole text in quotes"
    return f"{words}; between single quotes, '' stands for '", fault.end.line


def _in_column(fault: _Fault) -> _Words:
    lines, at = fault.lines, fault.end.line
    is_item = lines[at].lstrip().startswith("-")
    above = [
        number
        for number in range(at)
        if lines[number].strip() and lines[number].lstrip()[0] in ("-" if is_item else lines[number])
    ]
    other = above[-1] if above else at
    column, column_above = (
        len(line) - len(line.lstrip(" " if is_item else " -")) + 1 for line in (lines[at], lines[other])
    )
    together = "items of one list" if is_item else "names that belong together"
    words = f"{_shown(lines[at])} begins in column {column}, and line {other + 1} above it in column {column_above}"
    return f"{words}: {together} begin in the same column", at


_IN_WORDS: dict[str, Callable[[_Fault], _Words]] = {
    "double-quoted": _escape,
    "quoted scalar": lambda fault: (
        f"the quote {fault.content[fault.start.index]} that opens here is never closed",
        fault.start.line,
    ),
    "could not find expected ':'": lambda fault: (_without_colon(fault.lines[fault.start.line]), fault.start.line),
    "flow sequence": _open_bracket,
    "flow mapping": _open_bracket,
    r"character '\t'": lambda fault: ("a tab: indent with spaces", fault.end.line),
    "mapping values are not allowed": _second_colon,
    "sequence entries are not allowed": lambda fault: (
        "a list begins on a line of its own; or write it in brackets, [a, b]",
        fault.end.line,
    ),
    "<block end>": _no_end,
    "document start": _in_column,
}
"""By a part of what the parser says."""
