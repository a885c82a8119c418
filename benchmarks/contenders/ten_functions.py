"""The ten checks as functions of Python, for the peers that take such."""

import json
import re

_NUMBER = re.compile(r"\b\d+(?:\.\d+)?\b")
_BULLETS = re.compile(r"(?m)^\s*(?:[-*]|\d+\.)\s")


def _parsed(text):
    try:
        return json.loads(text)
    except ValueError:
        return ...


FUNCTIONS = {
    "contains": lambda text: "the" in text.lower(),
    "however": lambda text: "however" in text.lower(),
    "not_contains": lambda text: "as an ai" not in text.lower(),
    "no-sorry": lambda text: "I'm sorry" not in text,
    "number": lambda text: _NUMBER.search(text) is not None,
    "bullets": lambda text: _BULLETS.search(text) is not None,
    "min_length": lambda text: len(text) >= 200,
    "max_length": lambda text: len(text) <= 4000,
    "json_valid": lambda text: _parsed(text) is not ...,
    "json_keys": lambda text: isinstance(value := _parsed(text), dict) and value.keys() >= {"answer", "score"},
}
