"""Whose patterns they are: Python's ``re``, or the package ``regex``, which matches fuzzily and knows scripts and named lists."""

import json
from collections.abc import Mapping
from typing import Any

PACKAGE = "regex"
FLAVORS = ("re", PACKAGE)
_OWN_NAMES = ("flags", "ignore_unused", "cache_pattern", "pattern")
"""Names of the arguments of ``regex.compile``, which takes the lists as others."""
FLAVOR = (
    r"`regex` for patterns of that package: fuzzy `(?:refund){e<=1}`, `\p{Script=Cyrillic}`, `\X`; else those of `re`."
)
LISTS = r"With `flavor: regex`, the texts that `\L<name>` stands for, by name."


def named_lists(flavor: Any = "re", lists: Any = None) -> str:
    r"""Return the lists of a pattern as ``regex.guarded.Question`` has them."""
    if flavor not in FLAVORS:
        raise ValueError(f"`flavor` is {' or '.join(FLAVORS)}, not {flavor!r}")
    if lists is not None and not _is_lists(lists):
        raise ValueError("`lists` has a list of texts for each name: {names: [Ann, Bob]}")
    if flavor != PACKAGE:
        if lists:
            raise ValueError("`lists` needs `flavor: regex`")
        return ""
    for name in lists or ():
        if not name.isidentifier() or name in _OWN_NAMES:
            raise ValueError(f"`{name}` cannot be the name of a list; it is a word as in \\L<names>")
    return json.dumps(lists or {}, sort_keys=True)


def _is_lists(lists: Any) -> bool:
    return isinstance(lists, Mapping) and all(
        isinstance(name, str) and isinstance(texts, list) and all(isinstance(text, str) for text in texts)
        for name, texts in lists.items()
    )


def pattern_schemas() -> dict[str, Any]:
    """Return the JSON Schemas of what stands beside a pattern."""
    texts = {"type": "array", "items": {"type": "string"}}
    return {
        "flavor": {"enum": [*FLAVORS], "default": "re", "description": FLAVOR},
        "lists": {"type": "object", "additionalProperties": texts, "description": LISTS},
    }
