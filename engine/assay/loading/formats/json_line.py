"""One line of JSON as Python reads it, and what was odd about it: the definition of what any line of a file means."""

import json
import threading
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from assay.errors import InputError, shown_path
from assay.expressions.json import MAX_DEPTH, mended, too_deep
from assay.loading.formats.reading import Reading

__all__ = ["BOM", "Bad", "LineReader", "Oddities"]

BOM = b"\xef\xbb\xbf"
_SAID = {
    "bom": "{rows} with a byte order mark, which was skipped",
    "blank": "{rows} blank and skipped",
    "bytes": "{rows} with bytes that are not UTF-8, read as U+FFFD",
    "surrogate": "{rows} with lone surrogates, read as U+FFFD",
    "keys": "{rows} with a key that an object has twice; the last one holds",
    "numbers": "{rows} with NaN or Infinity, read as null",
}


@dataclass(frozen=True)
class Bad:
    """What is wrong with a line: a word for programs, and words for a person."""

    code: str
    reason: str


class Oddities:
    """How many lines of a file were odd in which way, and the first of them."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._first: dict[str, int] = {}

    def add(self, kind: str, line: int) -> None:
        """One line, by its number; once for each kind."""
        self._counts[kind] = self._counts.get(kind, 0) + 1
        self._first.setdefault(kind, line)

    def __len__(self) -> int:
        return sum(self._counts.values())

    def notes(self, name: str) -> tuple[str, ...]:
        """What to say of a file by its name."""
        return tuple(
            f"{shown_path(name)}:{self._first[kind]}: {self._said(kind)}" for kind in _SAID if kind in self._counts
        )

    def _said(self, kind: str) -> str:
        count = self._counts[kind]
        rows = "a line" if count == 1 else f"the first of {count:,} lines"
        return _SAID[kind].format(rows=rows)


class LineReader:
    """Reads lines of JSON objects.

    Args:
        reading: How.
        golds: Columns that are compared by their ``str()``; NaN stays there.
    """

    def __init__(self, reading: Reading, golds: Collection[str]) -> None:
        self.odd = Oddities()
        self._reading = reading
        self._golds = golds
        self._seen: set[str] = set()
        self._decoder = json.JSONDecoder(parse_constant=self._constant, object_pairs_hook=self._object)

    def read(self, raw: bytes, number: int) -> list[dict[str, Any]] | Bad:
        """The rows of a line, one unless the reading says otherwise.

        Args:
            raw: The line, with its end where it has one.
            number: Its number in the file, from 1.
        """
        self._seen.clear()
        found = self._rows(raw, number)
        for kind in self._seen:
            self.odd.add(kind, number)
        return found

    def _rows(self, raw: bytes, number: int) -> list[dict[str, Any]] | Bad:
        if len(raw) > self._reading.max_line:
            return too_long(self._reading.max_line)
        if number == 1 and raw.startswith(BOM):
            self._seen.add("bom")
            raw = raw[len(BOM) :]
        try:
            line = raw.decode()
        except UnicodeDecodeError as wrong:
            if self._reading.utf8 == "strict":
                return Bad("invalid_utf8", f"not UTF-8 (byte {wrong.start + 1} of the line).")
            self._seen.add("bytes")
            line = raw.decode(errors="replace")
        if not line.strip():
            self._seen.add("blank")
            return []
        found = self._value(line, raw)
        if isinstance(found, Bad) or self._reading.reshape is None:
            return found if isinstance(found, Bad) else [found]
        try:
            return self._reading.reshape(found)
        except InputError as wrong:
            return Bad("not_a_rollout", wrong.fact)

    def _value(self, line: str, raw: bytes) -> dict[str, Any] | Bad:
        if too_deep(line):
            return Bad("too_deep", f"nested deeper than {MAX_DEPTH} levels.")
        try:
            value = self._decoded(line)
        except json.JSONDecodeError as wrong:
            code = "malformed" if raw.endswith(b"\n") else "truncated_tail"
            column = min(wrong.pos, len(line.rstrip())) + 1  # what is missing, is missing at the end
            return Bad(code, f"not valid JSON: {wrong.msg} (column {column}).")
        except ValueError as wrong:
            return Bad("integer_too_long", f"not readable: {wrong}.")
        if not isinstance(value, dict):
            return Bad("not_an_object", f"a line must be a JSON object, not {type(value).__name__}.")
        if "numbers" in self._seen:
            value |= {name: given for name, given in json.loads(line).items() if name in self._golds}
        if ("\\ud" in line or "\\uD" in line) and _has_surrogate(value):
            self._seen.add("surrogate")
            if len({mended(name) for name in value}) < len(value):
                return Bad("same_key", "two keys that read the same once a lone surrogate is U+FFFD.")
        return value

    def _decoded(self, line: str) -> Any:
        try:
            return self._decoder.decode(line)
        except RecursionError:  # whoever called us is deep in its own stack, and a verdict must not depend on that
            found: list[Any] = []
            thread = threading.Thread(target=lambda: found.append(self._decoder.decode(line)))
            thread.start()
            thread.join()
            return found[0]

    def _constant(self, _: str) -> None:
        self._seen.add("numbers")

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            self._seen.add("keys")
        return found


def too_long(most: int) -> Bad:
    """A line of more bytes than are read."""
    return Bad("too_long", f"longer than {most:,} bytes.")


def _has_surrogate(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False
