"""Read a JSON, YAML or TOML file into plain data with the line of every value; reject ambiguous content.

YAML follows YAML 1.2: only ``true``, ``false``, ``null`` and decimal numbers are not strings, so ``no`` and ``1:30`` are
strings. Aliases, tags (except ``!!str``) and duplicate keys are rejected.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from assay.errors import SpecError, printable, shown_path
from assay.system.special_files import open_input

__all__ = ["FORMATS", "Document", "Place", "check_depth", "named", "parse_text", "read_document"]

FORMATS = (".json", ".yaml", ".yml", ".toml")
MAX_BYTES = 4 * 2**20
"""Verifiers are written by hand; a larger file is something else."""

MAX_DEPTH = 100

Place = tuple[str | int, ...]
"""Path of a value in a document: ``("checks", 0, "params")``."""


@dataclass(frozen=True)
class Document:
    """The content of a file.

    Attributes:
        data: Plain Python data.
        lines: Line (from 1) of each value by its place; empty where the parser does not report lines.
    """

    data: Any
    lines: dict[Place, int] = field(default_factory=dict)


def read_document(path: Path) -> Document:
    """Read a file in the format of its extension.

    Raises:
        SpecError: The file cannot be read or parsed; the message gives the file and the line.
    """
    name = shown_path(path)
    if path.suffix.lower() not in FORMATS:
        hint = f"A verifier file ends in {', '.join(FORMATS)}; pass a verifier written in Python as a dict."
        raise SpecError(f"{name}: unknown file format.", hint)
    try:
        with open_input(path) as file:
            raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise SpecError(
                f"{name}: larger than {MAX_BYTES >> 20} MiB.", "A verifier file is small; is this another file?"
            )
        content = raw.decode("utf-8-sig")
    except FileNotFoundError:
        raise SpecError(f"{name}: no such file.") from None
    except UnicodeDecodeError as error:
        raise SpecError(f"{name}: not UTF-8 (byte {error.start}).", "Save the file as UTF-8.") from None
    except (OSError, ValueError) as error:  # ValueError: NUL in the path
        raise SpecError(f"{name}: {getattr(error, 'strerror', None) or error}.") from None
    return parse_text(content, path.suffix.lower(), name)


def parse_text(content: str, suffix: str, name: str) -> Document:
    """Parse the text of a file.

    Args:
        content: The text.
        suffix: One of ``FORMATS``.
        name: The file's name in messages.

    Raises:
        SpecError: The text is not valid in this format.
    """
    try:
        document = _parse(content, suffix)
        check_depth(document.data, name)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f":{mark.line + 1}" if mark else ""
        raise SpecError(f"{name}{place}: {printable(str(error.problem or error.context))}.") from None
    except yaml.reader.ReaderError as error:
        line = content.count("\n", 0, error.position) + 1
        raise SpecError(f"{name}:{line}: a character that YAML does not allow: U+{error.character:04X}.") from None
    except json.JSONDecodeError as error:
        raise SpecError(f"{name}:{error.lineno}: not valid JSON: {error.msg} (column {error.colno}).") from None
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{name}: not valid TOML: {printable(str(error))}.") from None
    except RecursionError:
        raise SpecError(f"{name}: nested too deeply.") from None
    except _DuplicateKeyError as error:
        raise SpecError(f"{name}: {printable(str(error))}.") from None
    except ValueError:  # Python's own message is about its settings
        raise SpecError(f"{name}: a number with too many digits.") from None
    return document


def _parse(content: str, suffix: str) -> Document:
    if suffix == ".toml":
        return Document(tomllib.loads(content))
    if suffix == ".json":
        try:
            return Document(json.loads(content, object_pairs_hook=_no_duplicates), _lines_of(content))
        except _DuplicateKeyError:
            _parse_yaml(_flat(content))  # raises the same error with the line
            raise
    return _parse_yaml(content)


def check_depth(data: Any, name: str) -> None:
    """Check that data is nested up to 100 levels and does not contain itself.

    Raises:
        SpecError: It is nested more deeply.
    """
    queue = [(data, 0)]
    while queue:
        value, depth = queue.pop()
        if depth > MAX_DEPTH:
            raise SpecError(f"{name}: nested too deeply (past {MAX_DEPTH} levels).")
        if isinstance(value, Mapping):
            queue += [(inner, depth + 1) for inner in value.values()]
        elif isinstance(value, list | tuple):
            queue += [(inner, depth + 1) for inner in value]


def named(value: object) -> str:
    """Name a value's type in the terms of a spec, with the value if it is short."""
    kinds = {str: "a string", bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "an object"}
    if value is None:
        return "null"
    shown = repr(value)
    kind = kinds.get(type(value), type(value).__name__)
    return f"{kind} ({shown})" if len(shown) <= 40 and not isinstance(value, list | dict) else kind  # noqa: PLR2004  (fits a line)


class _DuplicateKeyError(ValueError):
    """A key appears twice in one object."""


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = [key for key, _ in pairs]
        duplicate = next(key for key in keys if keys.count(key) > 1)
        raise _DuplicateKeyError(f"the key {json.dumps(duplicate)} appears twice in one object")
    return values


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


def _parse_yaml(content: str) -> Document:
    _check_events(content)
    loader = _Loader(content)
    try:
        node = loader.get_single_node()
        lines: dict[Place, int] = {}
        return Document(None if node is None else _construct(loader, node, (), lines), lines)
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


def _construct(loader: _Loader, node: yaml.Node, place: Place, lines: dict[Place, int]) -> Any:
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


def _flat(content: str) -> str:
    """Blank the characters of a JSON text that YAML's reader rejects or counts as line breaks."""
    return _NOT_YAML.sub(" ", content)


_NOT_YAML = re.compile("[^\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


def _lines_of(content: str) -> dict[Place, int]:
    """Return the lines of the values of a JSON text, found by the YAML parser: most JSON is valid YAML."""
    try:
        return _parse_yaml(_flat(content)).lines
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
