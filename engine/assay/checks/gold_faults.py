"""Why a row has no gold that its check can use, in words: which value, what is wrong with it, and which steps would read it."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from assay.errors import SHOWN, describe_error, quoted
from assay.steps.chain import Chain
from assay.steps.reader import read_steps
from assay.values.params import EXPECTED, UnfitValueError
from assay.values.references import Reference

READS_ANSWER = 'goldOn: [{after: "####"}] reads the answer behind the mark'
"""Hint for a gold that is a whole solution."""


def missing(references: Sequence[Reference], param: str) -> str:
    """Return that a row has no gold."""
    return f"gold is missing: {', '.join(map(str, references)) or param}"


def unusable(name: str, value: str, fault: str, hint: str = "") -> str:
    """Return that a row has a gold that the check cannot use."""
    return f"gold cannot be used: {name} is {_shown(value)}{fault}{hint and f'; {hint}'}"


def name_of(value: Any, param: str) -> str:
    """Return what messages call a gold: its path or template, or the name of the param for a literal."""
    if not isinstance(value, Reference):
        return param
    return str(value.outline()["template"]) if value.is_template else str(value)


def _shown(value: str) -> str:
    """Return a gold for messages: its end, where an answer stands; of JSON and fenced text, its beginning."""
    stripped = value.strip()
    if not stripped or stripped[0] in "{[`":
        return quoted(value)
    line = stripped.rpartition("\n")[2].strip()
    if line == stripped and len(line) <= SHOWN:
        return quoted(line)
    return quoted(f"…{line[1 - SHOWN :]}")


def is_solution(text: str) -> bool:
    """Return whether a gold is a solution that ends in its answer behind ``####``, as in GSM8K."""
    before, mark, after = text.rpartition("\n####")
    return bool(mark and before.strip() and after.strip())


def field_at_fault(error: Exception) -> str:
    """Return the name of the param that a type has refused; ``""`` if it does not say."""
    places = error.errors()[0]["loc"] if isinstance(error, ValidationError) else ()
    return str(places[0]) if places else ""


def fault_of(error: Exception) -> str:
    """Return why a type has refused a value, as the end of a sentence: ``, not a number``."""
    if not isinstance(error, ValidationError):
        return f": {describe_error(error)}"
    details = error.errors()[0]
    raised, kind = details.get("ctx", {}).get("error"), details["type"].removesuffix("_type")
    if isinstance(raised, UnfitValueError):
        return f", {raised.fault}"
    if kind in EXPECTED:
        return f", {'a text, ' * isinstance(details['input'], str)}not {EXPECTED[kind]}"
    message = str(raised or details["msg"])
    return f": {message[:1].lower()}{message[1:]}"


def reading_steps(text: str, steps: Sequence[Any], reads: Callable[[Any], bool]) -> str:
    """Return the first steps that make a gold of a text that can be used, as a hint; ``""`` if none do."""
    for step in steps:
        result = _chain(json.dumps(step)).row(text)
        if result is not None and reads(result):
            return f"goldOn: [{_written(step)}] reads one"
    return ""


@lru_cache
def _chain(step: str) -> Chain:
    return Chain(read_steps([json.loads(step)]))


def _written(step: str | Mapping[str, str]) -> str:
    """Return a step as YAML writes it on one line."""
    if isinstance(step, str):
        return step
    ((name, value),) = step.items()
    return f"{{{name}: {value if value.isidentifier() else json.dumps(value)}}}"
