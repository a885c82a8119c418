"""What the checks of a spec ask for in words: phrases that a text has to have or must not have, keys, tags and lengths."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from assay.checks.groups import Group
from assay.spec.verifier import CheckSpec, VerifierSpec

_PHRASES = {
    "contains": "value",
    "contains_any": "values",
    "contains_all": "values",
    "starts_with": "value",
    "ends_with": "value",
    "equals": "value",
    "not_contains": "value",
}
"""Types of checks that look for phrases, and the param with the phrases."""
_KEYS = "json_keys"
_EXPECTATIONS = "task_expectations"
_OF_SCHEMA = "expected_output_schema"


@dataclass(frozen=True)
class Phrases:
    """What the checks of a run ask for in words."""

    wanted: tuple[str, ...]
    forbidden: tuple[tuple[str, tuple[str, ...]], ...]
    by_task: tuple[str, ...]
    keys: tuple[str, ...]
    json: bool
    answer_tag: bool
    min_length: int


def checks_named(verifiers: Sequence[VerifierSpec]) -> list[tuple[str, VerifierSpec, CheckSpec]]:
    """Return all checks that run, a group before its own, each with the name that people see: the id, or ``<verifier>/<check>``."""
    several = len(verifiers) > 1
    return [
        (f"{verifier.id}/{spec.id}" if several and spec.id else spec.id or verifier.id, verifier, spec)
        for verifier in verifiers
        for spec in verifier.nodes
    ]


def phrases_of(verifiers: Sequence[VerifierSpec]) -> Phrases:
    """Return what the checks of verifiers ask for in words."""
    wanted: list[str] = []
    keys: list[str] = []
    forbidden: list[tuple[str, tuple[str, ...]]] = []
    names = {id(spec): name for name, _, spec in checks_named(verifiers)}
    nodes = [(spec, asks) for verifier in verifiers for check in verifier.checks for spec, asks in _signed(check, True)]
    positive = [spec for spec, asks in nodes if asks]
    for spec, asks in nodes:
        kind = _type(spec)
        if kind == _KEYS and asks:
            keys += _texts(_param(spec, "requiredKeys"))
            wanted += _texts(_param(spec, "requiredKeys"))
        elif kind in _PHRASES and (phrases := tuple(_texts(_param(spec, _PHRASES[kind])))):
            if asks == (kind != "not_contains"):
                wanted += phrases
            else:
                forbidden.append((names[id(spec)], phrases))
    patterns = [str(_param(spec, "pattern")) for spec in positive if _type(spec) == "regex"]
    lengths = [_param(spec, "value") for spec in positive if _type(spec) == "min_length"]
    return Phrases(
        tuple(dict.fromkeys(wanted)),
        tuple(forbidden),
        tuple(names[id(spec)] for spec in positive if _type(spec) == _EXPECTATIONS),
        tuple(dict.fromkeys(keys)),
        any(_type(spec).startswith("json_") or _type(spec) == _OF_SCHEMA for spec in positive),
        any("<answer>" in pattern for pattern in patterns),
        max((math.ceil(length) for length in lengths if isinstance(length, int | float)), default=0),
    )


def _signed(spec: CheckSpec, asks: bool) -> Iterator[tuple[CheckSpec, bool]]:
    if spec.check is None:
        return
    asks = asks is not spec.negate
    yield spec, asks
    inner = asks is not (isinstance(spec.check, Group) and spec.check.inverse)
    for part in spec.parts:
        yield from _signed(part, inner)


def _type(spec: CheckSpec) -> str:
    return spec.check.type if spec.check is not None else ""


def _param(spec: CheckSpec, name: str) -> Any:
    return spec.params.get(name) if isinstance(spec.params, dict) else None


def _texts(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [text for text in values if isinstance(text, str) and text]
