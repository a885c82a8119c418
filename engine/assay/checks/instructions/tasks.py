"""The instructions of a row: its columns, read as structs, lists or JSON text, to what a text has to follow."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assay.calls.limits import Limits
from assay.checks.instructions.extras import check_language
from assay.checks.instructions.instructions import INSTRUCTIONS, LANGUAGE, PATTERN, PATTERNS, Instruction, Kind
from assay.checks.instructions.patterns import Pattern
from assay.errors import did_you_mean, quoted
from assay.expressions.json import NOT_JSON, loads
from assay.expressions.mixed import untyped
from assay.values.references import source_text

IDS, KWARGS, PROMPT = "instruction_id_list", "kwargs", "prompt"
_MOST = 1_000
"""Maximum instructions of a row."""
_REPEATED = "prompt_to_repeat"


@dataclass(frozen=True)
class Task:
    """What a text has to follow: the id, the instruction and the arguments of each."""

    instructions: tuple[tuple[str, Instruction, Mapping[str, Any]], ...]

    def shortfalls(self, text: str, *, loose: bool) -> list[str]:
        """Return what a text lacks of each instruction, ``""`` for one that it follows."""
        if not text.strip():
            return [_BLANK] * len(self.instructions)
        shortfalls = [self._shortfall(number, text) for number in range(len(self.instructions))]
        if loose and any(shortfalls):
            others = _loosened(text)
            for number, shortfall in enumerate(shortfalls):
                if shortfall and any(not self._shortfall(number, other) for other in others):
                    shortfalls[number] = ""
        return shortfalls

    def _shortfall(self, number: int, text: str) -> str:
        ident, instruction, arguments = self.instructions[number]
        try:
            shortfall = instruction.shortfall(text, **arguments)
        except (ValueError, TimeoutError, MemoryError) as error:  # of a pattern
            raise type(error)(f"{ident}: {error}") from None
        return shortfall and f"{ident.partition(':')[2]}: {shortfall}"


_BLANK = "the output is blank"


def _loosened(text: str) -> list[str]:
    first, last = text.find("\n"), text.rfind("\n")
    parts = (
        [text, text[first + 1 :].strip(), text[:last].strip(), text[first + 1 : last].strip()] if first >= 0 else [text]
    )
    texts = [*parts, *(part.replace("*", "") for part in parts)]
    return [other for other in dict.fromkeys(texts) if other != text and other.strip()]


def read_task(row: Mapping[str, Any], limits: Limits | None = None) -> Task:
    """Read the columns of a row."""
    idents = _items(row.get(IDS), IDS)
    if not 0 < len(idents) <= _MOST:
        raise ValueError(f"{IDS} has {len(idents):,} instructions" if idents else f"no {IDS} on this row")
    given = _items(row.get(KWARGS), KWARGS) or [None] * len(idents)
    if len(given) != len(idents):
        raise ValueError(f"{KWARGS} has {len(given):,} items for {len(idents):,} instructions")
    prompt = untyped(row.get(PROMPT))
    named = zip(idents, given, strict=True)
    return Task(tuple(_instruction(ident, values, prompt, limits) for ident, values in named))


def _items(value: Any, column: str) -> list[Any]:
    given = value = untyped(value)
    if isinstance(value, str):
        value = loads(value)
    if value is None:
        return []
    if value is NOT_JSON or not isinstance(value, list | tuple):
        raise ValueError(f"{column} is {quoted(source_text(given))}, not a list, or the JSON text of a list")
    return [untyped(item) for item in value]


def _instruction(
    ident: Any, values: Any, prompt: Any, limits: Limits | None
) -> tuple[str, Instruction, Mapping[str, Any]]:
    if not isinstance(ident, str):
        raise ValueError(f"{IDS} has {ident!r:.60} where an id is expected")
    instruction = INSTRUCTIONS.get(ident)
    if instruction is None:
        raise ValueError(f"unknown instruction {quoted(ident)}. {did_you_mean(ident, INSTRUCTIONS)}".rstrip())
    values = loads(values) if isinstance(values, str) else values
    if not isinstance(values, Mapping | None):
        raise ValueError(f"{KWARGS} of {ident} are no object")
    arguments = {}
    for name, kind in instruction.arguments.items():  # a column of structs has fields for those of all instructions
        value = untyped(None if values is None else values.get(name))
        value = prompt if value is None and name == _REPEATED and isinstance(prompt, str) else value
        arguments[name] = _argument(value, kind, f"{ident}: {KWARGS}.{name}", limits)
    return ident, instruction, arguments


def _argument(value: Any, kind: Kind, name: str, limits: Limits | None) -> Any:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        raise ValueError(f"{name} is missing")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not kind.fits(value):
        raise ValueError(f"{name} is not {kind.meaning}: {value!r:.60}")
    if kind is PATTERN:
        return Pattern(value, limits)
    if kind is PATTERNS:
        return tuple(Pattern(item, limits) for item in value)
    if kind is LANGUAGE:
        try:
            return check_language(value)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return value
