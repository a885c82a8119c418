"""Where in a text the phrases, patterns and golds of a result's checks are, for people who look at it.

What a verifier looks for is read from the canonical form in the provenance as plain data: nothing is loaded or run. The places are for
the eye, in the whole text; scores say what counted.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from assay.errors import AssayError
from assay.expressions.json import loads
from assay.insight.results import Result
from assay.values.references import Reference, gold_text, is_reference, read_reference

_PHRASES = ("value", "values", "text")
_PLAIN_GOLDS = ("answer", "target", "expected")
_TYPES = ("contains", "not_contains", "contains_any", "contains_all", "starts_with", "ends_with", "equals")
_MOST_TEXT = 200_000
"""Code points of a text that are searched."""

_MOST_MATCHES = 1_000


@dataclass(frozen=True)
class Sought:
    """What the checks of a result look for."""

    phrases: tuple[tuple[str, str], ...] = ()
    patterns: tuple[tuple[str, str], ...] = ()
    golds: tuple[tuple[Reference, str], ...] = ()
    expectations: tuple[str, ...] = ()
    columns: tuple[str, ...] = field(default=_PLAIN_GOLDS)

    def golds_of(self, row: Mapping[str, Any]) -> dict[str, str]:
        """Return the golds of a row, by what brings them."""
        golds: dict[str, Any] = {name: row.get(name) for name in _PLAIN_GOLDS}
        for reference, _ in self.golds:
            try:
                golds[str(reference)] = reference.row(row)
            except (ValueError, TypeError, RecursionError):
                continue
        if self.expectations:
            golds["expectations"] = _expectations(row)
        return {name: _shown(value) for name, value in golds.items() if value not in (None, {}, [])}

    def phrases_of(self, row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield the phrases to look for in a row's text, each with its check or with what brings it."""
        yield from self.phrases
        for name in _PLAIN_GOLDS if not self.golds else ():
            if isinstance(row.get(name), str):
                yield row[name], name
        for reference, check in self.golds:
            try:
                value = reference.row(row)
            except (ValueError, TypeError, RecursionError):
                continue
            yield from (
                (item, check) for item in (value if isinstance(value, list) else [value]) if isinstance(item, str)
            )
        for check in self.expectations:
            yield from ((phrase, check) for phrase in _strings(_expectations(row)))


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, Mapping | list) else gold_text(value)


def _expectations(row: Mapping[str, Any]) -> Any:
    try:
        metadata = row.get("metadata")
        metadata = loads(metadata) if isinstance(metadata, str) else metadata
    except (ValueError, RecursionError):
        return None
    return metadata.get("expectations") if isinstance(metadata, Mapping) else None


def _strings(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth < 8 and isinstance(value, Mapping | list):  # noqa: PLR2004  (deeper ones are no expectations)
        inside = [value[key] for key in value if key != "message"] if isinstance(value, Mapping) else value
        for inner in inside:
            yield from _strings(inner, depth + 1)


def sought(result: Result) -> Sought:
    """Return what the checks of a result look for, as far as its provenance says."""
    phrases: list[tuple[str, str]] = []
    patterns: list[tuple[str, str]] = []
    golds: list[tuple[Reference, str]] = []
    expectations: list[str] = []
    for name, kind, params in _params(result):
        if kind == "task_expectations":
            expectations.append(name)
        if kind == "regex" and isinstance(params.get("pattern"), str):
            patterns.append((params["pattern"], name))
        for value in params.values():
            if is_reference(value):
                try:
                    golds.append((read_reference(value), name))
                except (ValueError, AssayError, TypeError):
                    continue
        values = [params.get(key) for key in _PHRASES] if kind in _TYPES else []
        items = [item for value in values for item in (value if isinstance(value, list) else [value])]
        phrases += [(item, name) for item in items if isinstance(item, str)]
    columns = dict.fromkeys(name for reference, _ in golds for name in reference.columns)
    columns |= dict.fromkeys([*_PLAIN_GOLDS, *(["metadata"] if expectations else [])])
    return Sought(tuple(phrases), tuple(patterns), tuple(golds), tuple(expectations), tuple(columns))


def _params(result: Result) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    names = {(check.verifier, check.id): check.name for check in result.checks}
    for verifier in result.forms if result.verifiers else ():
        stack = [*reversed(verifier.get("checks", ()))]
        while stack:
            check = stack.pop()
            stack += reversed(check.get("checks", ()))
            yield names.get((verifier["id"], check["id"]), check["id"]), check["type"], check.get("params", {})


def matches(text: str, row: Mapping[str, Any], looked_for: Sought) -> list[tuple[int, int, str]]:
    """Return where what the checks look for is in a text: start, end and check; in order, none overlapping another."""
    searched = text[:_MOST_TEXT]
    places = [place for phrase, check in looked_for.phrases_of(row) for place in _phrase(searched, phrase, check)]
    places += [place for pattern, check in looked_for.patterns for place in _pattern(searched, pattern, check)]
    kept: list[tuple[int, int, str]] = []
    for start, end, check in sorted(places, key=lambda place: (place[0], -place[1], place[2])):
        if start >= (kept[-1][1] if kept else 0):
            kept.append((start, end, check))
    return kept[:_MOST_MATCHES]


def _phrase(text: str, phrase: str, check: str) -> Sequence[tuple[int, int, str]]:
    phrase = phrase.strip()
    if not phrase:
        return []
    found = re.finditer(re.escape(phrase), text, re.IGNORECASE)
    return [(*match.span(), check) for match, _ in zip(found, range(_MOST_MATCHES), strict=False)]


def _pattern(text: str, pattern: str, check: str) -> list[tuple[int, int, str]]:
    try:
        parts = pl.Series([text]).str.extract_all(pattern)[0].to_list()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return []
    places, at = [], 0
    for part in filter(None, parts[:_MOST_MATCHES]):
        at = text.find(part, at)
        if at < 0:
            break
        places.append((at, at := at + len(part), check))
    return places
