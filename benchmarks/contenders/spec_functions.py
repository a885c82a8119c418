"""The checks of a spec as functions of Python, for the peers that take such."""

import re

from contenders.spec import checks_of, parsed, refuse


def _contains(check):
    phrase = check["value"]
    if check.get("caseSensitive", False):
        return lambda text: phrase in text
    lower = phrase.lower()
    return lambda text: lower in text.lower()


def _not_contains(check):
    occurs = _contains(check)
    return lambda text: not occurs(text)


def _regex(check):
    pattern = re.compile(check["pattern"])
    return lambda text: pattern.search(text) is not None


def _equals(check):
    phrase = check["value"].strip()
    if check.get("caseSensitive", False):
        return lambda text: text.strip() == phrase
    return lambda text: text.strip().lower() == phrase.lower()


def _json_keys(check):
    keys = set(check["requiredKeys"])
    return lambda text: isinstance(value := parsed(text), dict) and value.keys() >= keys


_CHECKS = {
    "contains": _contains,
    "not_contains": _not_contains,
    "regex": _regex,
    "equals": _equals,
    "min_length": lambda check: lambda text: len(text) >= check["value"],
    "max_length": lambda check: lambda text: len(text) <= check["value"],
    "json_valid": lambda _: lambda text: parsed(text) is not ...,
    "json_keys": _json_keys,
    "task_expectations": refuse,
}


def functions_of(spec):
    """Return a function of the text for each check, by its id."""
    return {check["id"]: _CHECKS[check["type"]](check) for check in checks_of(spec)}
