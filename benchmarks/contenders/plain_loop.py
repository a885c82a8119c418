"""A plain loop over the texts, as one writes it by hand: patterns are compiled, a text is lowered once and parsed once; scores without reasons."""

import re

from contenders.spec import checks_of, parsed, refuse

TEXT, LOW, VALUE = range(3)
"""What a check reads: the text, the lowered text, or the value of JSON text, ``...`` if it is none."""


def _phrase(check):
    if check.get("caseSensitive", False):
        phrase = check["value"]
        return TEXT, lambda text: phrase in text
    lower = check["value"].lower()
    return LOW, lambda low: lower in low


def _not_phrase(check):
    read, occurs = _phrase(check)
    return read, lambda text: not occurs(text)


def _regex(check):
    search = re.compile(check["pattern"]).search
    return TEXT, lambda text: search(text) is not None


def _equals(check):
    phrase = check["value"].strip()
    if check.get("caseSensitive", False):
        return TEXT, lambda text: text.strip() == phrase
    lower = phrase.lower()
    return LOW, lambda low: low.strip() == lower


def _min_length(check):
    least = check["value"]
    return TEXT, lambda text: len(text) >= least


def _max_length(check):
    most = check["value"]
    return TEXT, lambda text: len(text) <= most


def _json_keys(check):
    keys = set(check["requiredKeys"])
    return VALUE, lambda value: isinstance(value, dict) and value.keys() >= keys


_CHECKS = {
    "contains": _phrase,
    "not_contains": _not_phrase,
    "regex": _regex,
    "equals": _equals,
    "min_length": _min_length,
    "max_length": _max_length,
    "json_valid": lambda _: (VALUE, lambda value: value is not ...),
    "json_keys": _json_keys,
    "task_expectations": refuse,
}


def prepare(spec, frame):
    checks = checks_of(spec)
    tests = [_CHECKS[check["type"]](check) for check in checks]
    parse = parsed if any(read == VALUE for read, _ in tests) else lambda _: ...
    return [check["id"] for check in checks], tests, parse, frame["completion"].to_list()


def run(prepared, frame):
    del frame
    names, tests, parse, texts = prepared
    scores, rewards = [], []
    for text in texts:
        forms = text, text.lower(), parse(text)
        row = [float(test(forms[read])) for read, test in tests]
        scores.append(row)
        rewards.append(sum(row) / len(row))
    return {"reward": rewards, **dict(zip(names, map(list, zip(*scores, strict=True)), strict=True))}
