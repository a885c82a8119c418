"""Read one line of JSON in Python, and note its oddities: the definition of the meaning of every line."""

import json
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from assay.errors import InputError, shown_path
from assay.expressions.json import MAX_DEPTH, mended, too_deep
from assay.loading.formats.reading import Reading

BOM = b"\xef\xbb\xbf"
_NOTES = {
    "bom": "{rows} with a byte order mark, which was skipped",
    "blank": "{rows} blank and skipped",
    "bytes": "{rows} with bytes that are not UTF-8, read as U+FFFD",
    "surrogate": "{rows} with lone surrogates, read as U+FFFD",
    "keys": "{rows} with a duplicate key in an object; the last one is used",
    "numbers": "{rows} with NaN or Infinity, read as null",
}


@dataclass(frozen=True)
class Bad:
    """The error of a line: a code for programs, and a reason for people."""

    code: str
    reason: str


class Oddities:
    """Counts of the odd lines of a file, by kind, and the first of each."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._first: dict[str, int] = {}

    def add(self, kind: str, line: int) -> None:
        """Count a line, given by its number; once for each kind."""
        self._counts[kind] = self._counts.get(kind, 0) + 1
        self._first.setdefault(kind, line)

    def __len__(self) -> int:
        return sum(self._counts.values())

    def notes(self, name: str, places: Sequence[int] = ()) -> tuple[str, ...]:
        """Return the notes on a file."""
        first = {kind: places[line - 1] if places else line for kind, line in self._first.items()}
        return tuple(f"{shown_path(name)}:{first[kind]}: {self._note(kind)}" for kind in _NOTES if kind in first)

    def _note(self, kind: str) -> str:
        count = self._counts[kind]
        rows = "a line" if count == 1 else f"the first of {count:,} lines"
        return _NOTES[kind].format(rows=rows)


class LineReader:
    """Reads lines of JSON objects."""

    def __init__(self, reading: Reading, golds: Collection[str]) -> None:
        self.odd = Oddities()
        self._reading = reading
        self._golds = golds
        self._kinds: set[str] = set()
        self._decoder = json.JSONDecoder(parse_constant=self._constant, object_pairs_hook=self._object)

    def read(self, raw: bytes, number: int) -> list[dict[str, Any]] | Bad:
        """Return the rows of a line, one unless ``reshape`` gives more."""
        self._kinds.clear()
        result = self._rows(raw, number)
        for kind in self._kinds:
            self.odd.add(kind, number)
        return result

    def _rows(self, raw: bytes, number: int) -> list[dict[str, Any]] | Bad:
        if len(raw) > self._reading.max_line:
            return too_long(self._reading.max_line)
        if number == 1 and raw.startswith(BOM):
            self._kinds.add("bom")
            raw = raw[len(BOM) :]
        try:
            line = raw.decode()
        except UnicodeDecodeError as error:
            if self._reading.utf8 == "strict":
                return Bad("invalid_utf8", f"not UTF-8 (byte {error.start + 1} of the line).")
            self._kinds.add("bytes")
            line = raw.decode(errors="replace")
        if not line.strip():
            self._kinds.add("blank")
            return []
        value = self._value(line, raw)
        if isinstance(value, Bad) or self._reading.reshape is None:
            return value if isinstance(value, Bad) else [value]
        try:
            return self._reading.reshape(value)
        except InputError as error:
            return Bad("not_a_rollout", error.fact)

    def _value(self, line: str, raw: bytes) -> dict[str, Any] | Bad:
        if too_deep(line):
            return Bad("too_deep", f"nested deeper than {MAX_DEPTH} levels.")
        try:
            value = self._decoded(line)
        except json.JSONDecodeError as error:
            code = "malformed" if raw.endswith(b"\n") else "truncated_tail"
            column = min(error.pos, len(line.rstrip())) + 1  # a missing part is missing at the end of the text
            return Bad(code, f"not valid JSON: {error.msg} (column {column}).")
        except ValueError as error:
            return Bad("integer_too_long", f"not readable: {error}.")
        if not isinstance(value, dict):
            return Bad("not_an_object", f"a line must be a JSON object, not {type(value).__name__}.")
        if "numbers" in self._kinds:
            value |= {name: constant for name, constant in json.loads(line).items() if name in self._golds}
        if ("\\ud" in line or "\\uD" in line) and _has_surrogate(value):
            self._kinds.add("surrogate")
            if len({mended(name) for name in value}) < len(value):
                return Bad("same_key", "two keys that read the same once a lone surrogate is U+FFFD.")
        return value

    def _decoded(self, line: str) -> Any:
        try:
            return self._decoder.decode(line)
        except RecursionError:  # the caller's stack is deep, and a result must not depend on that
            results: list[Any] = []
            thread = threading.Thread(target=lambda: results.append(self._decoder.decode(line)))
            thread.start()
            thread.join()
            return results[0]

    def _constant(self, _: str) -> None:
        self._kinds.add("numbers")

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            self._kinds.add("keys")
        return members


def too_long(limit: int) -> Bad:
    """Return the error of a line that is too long."""
    return Bad("too_long", f"longer than {limit:,} bytes.")


def _has_surrogate(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False
