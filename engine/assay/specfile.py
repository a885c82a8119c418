"""Read a JSON, YAML or TOML file into plain data, with the line of every value, refusing what would be read silently wrong.

YAML is read as YAML 1.2 would be: only ``true``, ``false``, ``null`` and numbers are not strings, so ``no`` and ``1:30``
stay what they look like. Aliases, tags and duplicate keys are refused.
"""

import json
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from assay.errors import SpecError

__all__ = ["FORMATS", "Document", "Path_", "parse_text", "read_document"]

FORMATS = (".json", ".yaml", ".yml", ".toml")
MAX_BYTES = 4 * 2**20
"""A verifier is written by hand; a larger file is something else."""

Path_ = tuple[str | int, ...]
"""Place of a value in a document: ``("checks", 0, "params")``."""


@dataclass(frozen=True)
class Document:
    """What a file says.

    Attributes:
        data: Plain Python data.
        lines: Line (from 1) of each value by its place; empty where the format does not tell.
    """

    data: Any
    lines: dict[Path_, int] = field(default_factory=dict)


def read_document(path: Path) -> Document:
    """Read a file by its extension.

    Raises:
        SpecError: It cannot be read or parsed; the message names the file and the line.
    """
    if path.suffix.lower() not in FORMATS:
        raise SpecError(f"{path}: unknown kind of file.", f"A verifier file ends in {', '.join(FORMATS)}.")
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SpecError(
                f"{path}: larger than {MAX_BYTES >> 20} MiB.", "A verifier file is small; is this another file?"
            )
        content = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise SpecError(f"{path}: no such file.") from None
    except UnicodeDecodeError as wrong:
        raise SpecError(f"{path}: not UTF-8 (byte {wrong.start}).", "Save the file as UTF-8.") from None
    except OSError as wrong:
        raise SpecError(f"{path}: {wrong.strerror}.") from None
    return parse_text(content, path.suffix.lower(), str(path))


def parse_text(content: str, suffix: str, name: str) -> Document:
    """Parse the text of a file.

    Args:
        content: The text.
        suffix: One of ``FORMATS``.
        name: What messages call the file.

    Raises:
        SpecError: The text is not of that format.
    """
    try:
        if suffix == ".json":
            return Document(json.loads(content, object_pairs_hook=_no_duplicates), _lines_of(content))
        if suffix == ".toml":
            return Document(tomllib.loads(content))
        return _parse_yaml(content)
    except yaml.MarkedYAMLError as wrong:
        mark = wrong.problem_mark or wrong.context_mark
        place = f":{mark.line + 1}" if mark else ""
        raise SpecError(f"{name}{place}: {wrong.problem or wrong.context}.") from None
    except yaml.reader.ReaderError as wrong:
        raise SpecError(
            f"{name}: a character YAML does not allow: {wrong.reason} (position {wrong.position})."
        ) from None
    except json.JSONDecodeError as wrong:
        raise SpecError(f"{name}:{wrong.lineno}: not valid JSON: {wrong.msg} (column {wrong.colno}).") from None
    except tomllib.TOMLDecodeError as wrong:
        raise SpecError(f"{name}: not valid TOML: {wrong}.") from None
    except ValueError as wrong:
        raise SpecError(f"{name}: {wrong}.") from None
    except RecursionError:
        raise SpecError(f"{name}: nested too deeply.") from None


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen = dict(pairs)
    if len(seen) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {json.dumps(twice)} stands twice in one object")
    return seen


class _Loader(yaml.SafeLoader):
    """SafeLoader with the implicit types of YAML 1.2's core schema."""

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
    loader = _Loader(content)
    try:
        for event in yaml.parse(content, Loader=yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent):
                problem = f"the alias *{event.anchor} is not allowed; write the value out"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)  # type: ignore[arg-type]
        node = loader.get_single_node()
        lines: dict[Path_, int] = {}
        return Document(None if node is None else _construct(loader, node, (), lines), lines)
    finally:
        loader.dispose()


def _construct(loader: _Loader, node: yaml.Node, place: Path_, lines: dict[Path_, int]) -> Any:
    lines[place] = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
        return [_construct(loader, inner, (*place, at), lines) for at, inner in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
        mapping: dict[str, Any] = {}
        for key_node, inner in node.value:
            key = key_node.value
            if not isinstance(key_node, yaml.ScalarNode) or key in mapping:
                problem = f'the key "{key}" stands twice in one mapping' if key in mapping else "a key must be a string"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key_node.start_mark)
            mapping[key] = _construct(loader, inner, (*place, key), lines)
            lines[(*place, key)] = key_node.start_mark.line + 1
        return mapping
    known = {f"tag:yaml.org,2002:{name}" for name in ("str", "bool", "null", "int", "float")}
    if node.tag not in known:
        raise yaml.MarkedYAMLError(problem=f"the tag {node.tag} is not allowed", problem_mark=node.start_mark)
    return loader.construct_object(node)


def _lines_of(content: str) -> dict[Path_, int]:
    """Lines of the values of a JSON text; JSON is near enough to YAML for its reader to find them, mostly."""
    try:
        return _parse_yaml(content).lines
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
