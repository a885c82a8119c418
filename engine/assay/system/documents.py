"""Read a JSON, YAML or TOML file into plain data with the line of every value; reject ambiguous content.

YAML follows YAML 1.2, see ``core_yaml``. Each parser is imported when a document needs it: a command that reads JSON does not wait
for the others.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from assay.errors import SpecError, closest, printable, shown_path
from assay.frozen import frozen
from assay.system.special_files import likely_file, open_input, refuse_url

FORMATS = (".json", ".yaml", ".yml", ".toml")
_OF_ROLLOUTS = (
    ".parquet",
    ".pq",
    ".jsonl",
    ".ndjson",
    ".gz",
    ".zst",
    ".xlsx",
    ".arrow",
    ".ipc",
    ".feather",
    ".csv",
    ".tsv",
)
MAX_BYTES = 4 * 2**20
"""Verifiers are written by hand; a larger file is something else."""

MAX_DEPTH = 100
"""Levels of nesting, in all formats."""

Place = tuple[str | int, ...]
"""Path of a value in a document: ``("checks", 0, "params")``."""


@frozen
class SpecDocument:
    """The content of a file."""

    data: Any
    find_lines: Callable[[], dict[Place, int]] = dict

    @cached_property
    def lines(self) -> dict[Place, int]:
        """The line of each value by its place; only messages about problems need them."""
        return self.find_lines()


def read_document(path: Path) -> SpecDocument:
    """Read a file in the format of its extension."""
    name = shown_path(path)
    refuse_url(path, SpecError)
    if path.suffix.lower() in _OF_ROLLOUTS:
        hint = "The rollouts come first, and the verifier is given with --spec."
        raise SpecError(f"{name}: holds rollouts, by its name, not a verifier.", hint)
    # NOTE: that of os.path takes a text that is too long for a path, such as a spec, for a name of nothing
    if path.suffix.lower() not in FORMATS and (path.suffix or os.path.exists(path)):  # noqa: PTH110
        ending = closest(path.suffix, FORMATS)
        guess = f"Rename it: {shown_path(path.with_suffix(ending))}\n" if ending else ""
        hint = f"{guess}A verifier file ends in {', '.join(FORMATS)}; pass a verifier written in Python as a dict."
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
        raise SpecError(f"{name}: no such file.", likely_file(path)) from None
    except UnicodeDecodeError as error:
        raise SpecError(f"{name}: not UTF-8 (byte {error.start}).", "Save the file as UTF-8.") from None
    except (OSError, ValueError) as error:  # ValueError: NUL in the path
        raise SpecError(f"{name}: {getattr(error, 'strerror', None) or error}.") from None
    return parse_text(content, path.suffix.lower(), name)


def parse_text(content: str, suffix: str, name: str) -> SpecDocument:
    """Parse the text of a file."""
    try:
        document = _PARSERS.get(suffix, _parse_yaml)(content, name)
        check_depth(document.data, name)
    except RecursionError:
        raise SpecError(f"{name}: nested too deeply.") from None
    except ValueError:  # Python's own message is about its settings
        raise SpecError(f"{name}: a number with too many digits.") from None
    return document


class _DuplicateKeyError(ValueError):
    """A key appears twice in one object."""


def _parse_json(content: str, name: str) -> SpecDocument:
    def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) < len(pairs):
            keys = [key for key, _ in pairs]
            duplicate = next(key for key in keys if keys.count(key) > 1)
            raise _DuplicateKeyError(f"the key {json.dumps(duplicate)} appears twice in one object")
        return values

    def lines() -> dict[Place, int]:  # if the text is valid YAML, too, as most JSON is
        from assay.system.core_yaml import YamlError, json_as_yaml, parse_yaml

        try:
            return parse_yaml(json_as_yaml(content))[1]
        except (YamlError, ValueError, RecursionError):
            return {}

    try:
        data = json.loads(content, object_pairs_hook=without_duplicates)
    except json.JSONDecodeError as error:
        fact = f"{name}:{error.lineno}: not valid JSON: {error.msg} (column {error.colno})."
        raise SpecError(fact, _json_hint(error)) from None
    except _DuplicateKeyError as error:
        from assay.system.core_yaml import json_as_yaml

        _parse_yaml(json_as_yaml(content), name)  # raises the same error with the line
        raise SpecError(f"{name}: {printable(str(error))}.") from None
    return SpecDocument(data, lines)


def _json_hint(error: json.JSONDecodeError) -> str:
    before, at = error.doc[: error.pos].rstrip(), error.doc[error.pos : error.pos + 2]
    if "escape" in error.msg:
        return f"Write the backslash twice: \\{at}"
    if (before.endswith(",") and at[:1] in ("]", "}", "")) or at[:1] == ",":
        return "Remove the comma behind the last item."
    if at[:1] == "'":
        return "JSON takes double quotes. YAML takes both: name the file .yaml"
    if at[:1] in ("#", "/"):
        return "JSON has no comments. YAML has, after #: name the file .yaml"
    if "delimiter" in error.msg:
        return 'A comma or a colon is missing, or a quote within a text that is not written \\".'
    return ""


def _parse_toml(content: str, name: str) -> SpecDocument:
    import tomllib

    try:
        return SpecDocument(tomllib.loads(content))
    except tomllib.TOMLDecodeError as error:
        message, line = printable(str(error)), ""
        if place := re.search(r"at line (\d+), (?=column \d+\)\Z)", message):
            message, line = message.replace(place[0], ""), f":{place[1]}"
        raise SpecError(f"{name}{line}: not valid TOML: {message}.") from None


def _parse_yaml(content: str, name: str) -> SpecDocument:
    from assay.system.core_yaml import YamlError, parse_yaml

    try:
        data, lines = parse_yaml(content)
    except YamlError as error:
        place = f":{error.line}" if error.line else ""
        raise SpecError(f"{name}{place}: {printable(str(error))}.") from None
    return SpecDocument(data, lambda: lines)


_PARSERS = {".json": _parse_json, ".toml": _parse_toml}
"""By file name extension; the others are YAML."""


def check_depth(data: Any, name: str) -> None:
    """Check that data is nested up to 100 levels and does not contain itself."""
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
