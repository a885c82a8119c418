"""Options of graders: their kinds, defaults, and what is wrong with a value."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from assay.checks.graders.tools.lm_eval import FILTER_OPTIONS, FILTERS
from assay.checks.graders.tools.patterns import compiled
from assay.checks.json.schemas import compiled as compiled_schema
from assay.errors import did_you_mean, listed
from assay.frozen import frozen
from assay.values.references import as_list


@frozen
class Option:
    """An option of a grader.

    Attributes:
        kind: What a value is; see ``KINDS``.
        default: Its default; None if there is none.
        choices: The texts that it may be; none if any will do.
        row: Whether a row may bring it: ``{column: path}``.
        required: Whether it has to be given.
        libraries: Libraries that decide verdicts where it is given, each with the versions that have been tested.
    """

    kind: str
    default: Any = None
    choices: tuple[str, ...] = ()
    row: bool = False
    required: bool = False
    libraries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def has_patterns(self) -> bool:
        """Whether a value has patterns of users, which may take long on any text."""
        return self.kind in _WITH_PATTERNS

    def problem(self, value: Any) -> str:
        """Return what is wrong with a value, as the end of a sentence; ``""`` if it is right."""
        if value is None and self.default is None and not self.required:
            return ""
        if self.choices:
            guess = did_you_mean(value, self.choices) if isinstance(value, str) else ""
            return "" if value in self.choices else f"is not {listed(self.choices)}. {guess}".rstrip()
        expected, fits = KINDS[self.kind]
        if not fits(value):
            return f"is not {expected}"
        if self.kind in ("pattern", "patterns"):
            return next((fault for one in as_list(value) if (fault := _pattern_fault(one))), "")
        if self.kind == "schema":
            return _schema_fault(value)
        return _filters_fault(value) if self.kind == "filters" else ""


def _pattern_fault(pattern: str) -> str:
    try:
        compiled(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"is not a pattern: {pattern!r}: {error}"
    return ""


_DRAFT = "http://json-schema.org/draft-07/schema"


def _schema_fault(schema: Mapping[str, Any]) -> str:
    if str(schema.get("$schema", _DRAFT)).removesuffix("#") != _DRAFT:
        return "names another draft than 7, the only one that is read"
    problem = compiled_schema(json.dumps({"$schema": _DRAFT, **schema}), True).problem
    return f"is not a JSON Schema: {problem}" if problem else ""


def _filters_fault(filters: list[Any]) -> str:
    for step in filters:
        name = step.get("function") if isinstance(step, Mapping) else None
        if name not in FILTERS:
            guess = did_you_mean(str(name), FILTERS)
            return f"has the filter {name!r}, which is not one of {listed([*FILTERS])}. {guess}".rstrip()
        for option, value in step.items():
            if option != "function" and option not in FILTER_OPTIONS.get(name, ()):
                guess = did_you_mean(option, FILTER_OPTIONS.get(name, ()))
                return f"has the option `{option}`, which `{name}` does not take. {guess}".rstrip()
            if option in _OF_FILTERS:
                expected, fits = KINDS[_OF_FILTERS[option]]
                if not fits(value):
                    return f"has `{option}`, which is not {expected}"
            patterns = value if option == "regexes_to_ignore" else [value] if option == "regex_pattern" else []
            if fault := next((fault for pattern in patterns or () if (fault := _pattern_fault(pattern))), ""):
                return fault
    return ""


_OF_FILTERS = {
    "regex_pattern": "pattern",
    "group_select": "any whole",
    "fallback": "text",
    "ignore_case": "flag",
    "ignore_punctuation": "flag",
    "regexes_to_ignore": "patterns",
    "mapping_dict": "object",
}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "flag": ("true or false", lambda value: isinstance(value, bool)),
    "number": ("a number", _is_number),
    "penalty": ("a number up to 0", lambda value: _is_number(value) and value <= 0),
    "any whole": ("a whole number", _is_whole),
    "whole": ("a whole number from 0", lambda value: _is_whole(value) and value >= 0),
    "positive": ("a whole number from 1", lambda value: _is_whole(value) and value >= 1),
    "text": ("a text", lambda value: isinstance(value, str)),
    "mark": ("a text that is not empty", lambda value: isinstance(value, str) and value != ""),
    "texts": ("a list of texts", _is_texts),
    "pattern": ("a pattern", lambda value: isinstance(value, str)),
    "patterns": ("a list of patterns", _is_texts),
    "filters": ("a list of filters", lambda value: isinstance(value, list)),
    "object": ("an object", lambda value: isinstance(value, dict)),
    "schema": ("a JSON Schema", lambda value: isinstance(value, dict)),
    "tokens": (
        "a number of tokens, or their list",
        lambda value: isinstance(value, list) or (_is_whole(value) and value >= 0),
    ),
    "list": ("a list", lambda value: isinstance(value, list)),
    "choices": (
        "the number of choices, up to 99, or their list",
        lambda value: (
            0 < (len(value) if isinstance(value, list) else value if _is_whole(value) else 0) <= _MOST_CHOICES
        ),
    ),
}
"""What a value of each kind is, in words and as a test."""
_WITH_PATTERNS = ("pattern", "patterns", "filters", "schema")
_MOST_CHOICES = 99
