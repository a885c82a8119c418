"""What a task brings for probes: its prompt, golds, phrases and keys."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assay.checks.expectations.rules import METADATA, read
from assay.checks.json.expected_schema import output_schema, schema_keys
from assay.errors import encodable
from assay.expressions.completion import completion_text
from assay.expressions.mixed import untyped, without_nulls
from assay.functions.request import verifier_of
from assay.names import COMPLETION, EXPECTED, FN_NAME, VERIFIER
from assay.values.references import gold_text

PROMPTS = ("prompt", "instruction", "messages")
"""Columns of prompts; the first that has a text is used."""
GOLDS = ("answer", "target", EXPECTED)
"""Columns of golds; the first that has a value is used, else the gold of the row's verifier."""


@dataclass(frozen=True)
class Task:
    """What a task brings for probes; what it lacks is None or empty."""

    prompt: str | None = None
    gold: str | None = None
    phrases: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    best: str | None = None


def task_of(row: Mapping[str, Any], best: Any = None) -> Task:
    """Read a task from its first rollout."""
    entries = read(row.get(METADATA)).entries
    return Task(
        _prompt(row),
        _gold(row),
        tuple(dict.fromkeys(entry.phrases[0] for entry in entries if entry.phrases and not entry.forbid)),
        tuple(dict.fromkeys(phrase for entry in entries if entry.forbid for phrase in entry.phrases if phrase)),
        _keys(output_schema(row)),
        completion_text(best, any_role=True),
    )


def _prompt(row: Mapping[str, Any]) -> str | None:
    prompts = (untyped(row.get(name)) for name in PROMPTS)
    texts = [prompt if isinstance(prompt, str) else _asked(prompt) for prompt in prompts]
    return next((encodable(text) for text in (*texts, _asked(row.get(COMPLETION))) if text), None)


def _asked(messages: Any) -> str | None:
    messages = messages if isinstance(messages, list) else []
    asked = [message for message in messages if isinstance(message, Mapping) and message.get("role") == "user"]
    return completion_text(asked[-1:], any_role=True) if asked else None


def _gold(row: Mapping[str, Any]) -> str | None:
    golds = [untyped(row.get(name)) for name in GOLDS]
    if VERIFIER in row or FN_NAME in row:
        golds.append(verifier_of(row).expected)
    return next((text for gold in golds if (text := _as_text(gold)) is not None), None)


def _as_text(gold: Any) -> str | None:
    if isinstance(gold, list | tuple) and all(isinstance(item, str | int | float | None) for item in gold):
        gold = next((item for item in gold if item is not None), None)
    if gold is None:
        return None
    if isinstance(gold, str | int | float):
        return encodable(gold_text(gold))
    return encodable(json.dumps(without_nulls(gold), ensure_ascii=False, default=str))


def _keys(schema: Any) -> tuple[str, ...]:
    try:
        return tuple(schema_keys(schema))
    except ValueError:
        return ()
