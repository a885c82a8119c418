"""Params of patterns: of Python's ``re``, or of the package ``regex``, which matches fuzzily and knows scripts and named lists."""

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator

from assay.expressions.regex.search import check_pattern
from assay.values.params import Params

__all__ = ["FLAVORS", "PACKAGE", "PatternParams", "check_by", "named_lists", "pattern_schemas"]

PACKAGE = "regex"
FLAVORS = ("re", PACKAGE)
_OWN_NAMES = ("flags", "ignore_unused", "cache_pattern", "pattern")
"""Names of the arguments of ``regex.compile``, which takes the lists as others."""
_FLAVOR = (
    r"`regex` for patterns of that package: fuzzy `(?:refund){e<=1}`, `\p{Script=Cyrillic}`, `\X`; else those of `re`."
)
_LISTS = r"With `flavor: regex`, the texts that `\L<name>` stands for, by name."


def named_lists(flavor: Any = "re", lists: Any = None) -> str:
    r"""Return the lists of a pattern as ``regex.guarded.Question`` has them.

    Args:
        flavor: ``regex`` or ``re``.
        lists: Texts by name, for ``\L<name>``.

    Raises:
        ValueError: There is no such flavor, or a list cannot be used.
    """
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


def check_by(pattern: str, info: ValidationInfo) -> None:
    """Check a pattern of ``PatternParams`` by its flavor; one that cannot be used is a problem of its own.

    Raises:
        re.error: It does not compile; other exceptions of ``compile`` are raised, too.
    """
    if {"flavor", "lists"} <= info.data.keys():
        check_pattern(pattern, named_lists(info.data["flavor"], info.data["lists"]))


class PatternParams(Params):
    """Whose patterns they are; the fields stand before the patterns, which are checked by them."""

    flavor: Literal["re", "regex"] = Field(default="re", description=_FLAVOR)
    lists: dict[str, list[str]] = Field(default={}, description=_LISTS)

    later: ClassVar[frozenset[str]] = frozenset({"flavor", "lists"})

    @field_validator("lists")
    @classmethod
    def _usable(cls, lists: dict[str, list[str]], info: ValidationInfo) -> dict[str, list[str]]:
        named_lists(info.data.get("flavor", PACKAGE), lists)
        return lists

    @property
    def named_lists(self) -> str:
        """See the function of this name."""
        return named_lists(self.flavor, self.lists)

    @property
    def libraries(self) -> dict[str, tuple[str, ...]]:
        """As ``Check.libraries``."""
        return {PACKAGE: ()} if self.flavor == PACKAGE else {}


def pattern_schemas() -> dict[str, Any]:
    """Return the JSON Schemas of what stands beside a pattern."""
    texts = {"type": "array", "items": {"type": "string"}}
    return {
        "flavor": {"enum": [*FLAVORS], "default": "re", "description": _FLAVOR},
        "lists": {"type": "object", "additionalProperties": texts, "description": _LISTS},
    }
