"""YAML 1.2's core schema as plain data with the line of every value; what is ambiguous is rejected.

Only ``true``, ``false``, ``null`` and decimal numbers are not strings, so ``no`` and ``1:30`` are strings. Aliases, tags (except
``!!str``) and duplicate keys are rejected.

NOTE: this module is apart from ``documents`` because PyYAML is slow to import, and valid JSON and TOML do not need it.
"""

import re
from typing import Any

import yaml

__all__ = ["MAX_DEPTH", "Lines", "YamlError", "json_as_yaml", "parse_yaml"]

MAX_DEPTH = 100

Lines = dict[tuple[str | int, ...], int]
"""Line (from 1) of each value by its place, ``("checks", 0, "params")``."""


class YamlError(Exception):
    """A text that is not valid YAML, or that is ambiguous.

    Attributes:
        line: The line, from 1; 0 if it is not known.
    """

    def __init__(self, problem: str, line: int) -> None:
        super().__init__(problem)
        self.line = line


def parse_yaml(content: str) -> tuple[Any, Lines]:
    """Parse a text to plain data, and the line of every value.

    Raises:
        YamlError: The text is rejected.
        ValueError: A number has too many digits.
        RecursionError: The text is nested too deeply.
    """
    try:
        return _parse(content)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError(str(error.problem or error.context), mark.line + 1 if mark else 0) from None
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


def _int(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    return int(loader.construct_scalar(node))


def _float(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> float:
    return float(loader.construct_scalar(node))


_Loader.add_constructor("tag:yaml.org,2002:int", _int)  # PyYAML's own reads 010 as octal 8
_Loader.add_constructor("tag:yaml.org,2002:float", _float)


def _parse(content: str) -> tuple[Any, Lines]:
    _check_events(content)
    loader = _Loader(content)
    try:
        node = loader.get_single_node()
        lines: Lines = {}
        return None if node is None else _construct(loader, node, (), lines), lines
    finally:
        loader.dispose()


def _check_events(content: str) -> None:
    """Reject unsupported YAML before any value is built."""
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
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)


def _construct(loader: _Loader, node: yaml.Node, place: tuple[str | int, ...], lines: Lines) -> Any:
    lines[place] = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        return [_construct(loader, inner, (*place, at), lines) for at, inner in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        mapping: dict[str, Any] = {}
        for key_node, inner in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key must be a string", problem_mark=key_node.start_mark)
            key = key_node.value
            if key in mapping:
                problem = f'the key "{key}" appears twice in one mapping'
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key_node.start_mark)
            mapping[key] = _construct(loader, inner, (*place, key), lines)
            lines[(*place, key)] = key_node.start_mark.line + 1
        return mapping
    try:
        return loader.construct_object(node)
    except ValueError:
        problem = "a number with too many digits"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from None


def json_as_yaml(content: str) -> str:
    """Blank the characters of a JSON text that YAML's reader rejects or counts as line breaks."""
    return _NOT_YAML.sub(" ", content)


_NOT_YAML = re.compile("[^\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
