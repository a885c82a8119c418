r"""Patterns that ask several things of the whole text: ``^(?=.*\d)(?!.*sorry).+$``.

Look-aheads at the start of the text do not depend on each other, so each is a pattern of its own, and the text has to meet all.
"""

import re
from re import _constants as sre  # type: ignore[attr-defined]
from typing import Any

from assay.expressions.regex.compiled import parsed

_START = re.compile(r"(?:\(\?[aimsu]+\))?(?:\^|\\A)")
_STARTS = (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING)
_ANYTHING = (".*?", ".*", r"[\s\S]*?", r"[\s\S]*")
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:[^\]\\]|\\.)*\]|[()]", re.DOTALL)


def conditions_of(pattern: str, tree: Any) -> list[tuple[bool, str]]:
    """Split a pattern that begins with the start of the text and look-aheads."""
    items, flags = list(tree), tree.state.flags
    if len(items) < 2 or items[0][0] is not sre.AT or items[0][1] not in _STARTS:  # noqa: PLR2004  (the start and a look-ahead)
        return []
    if flags & (sre.SRE_FLAG_VERBOSE | sre.SRE_FLAG_MULTILINE) or (start := _START.match(pattern)) is None:
        return []
    conditions, at = [], start.end()
    for op, value in items[1:]:
        if op not in (sre.ASSERT, sre.ASSERT_NOT) or value[0] < 0:
            break
        end = _end_of_group(pattern, at)
        inner = pattern[at + 3 : end - 1]
        if not pattern.startswith(("(?=", "(?!"), at) or not _is(inner, flags, value[1]):
            return []
        conditions.append((op is sre.ASSERT, _anywhere(inner, flags, value[1]) or rf"\A(?:{inner})"))
        at = end
    rest = pattern[at:]
    if not conditions or not _is(rest, flags, items[1 + len(conditions) :]):
        return []
    return [*conditions, (True, rf"\A(?:{rest})")] if rest else conditions


def _anywhere(inner: str, flags: int, items: Any) -> str:
    """Return the part of a pattern after ``.*``, which may then stand anywhere in the text; ``""`` if there is none."""
    for anything in _ANYTHING if flags & sre.SRE_FLAG_DOTALL else _ANYTHING[2:]:
        rest = inner.removeprefix(anything)
        if rest and rest != inner and _is(anything, flags, items[:1]) and _is(rest, flags, items[1:]):
            return rest
    return ""


def _end_of_group(pattern: str, start: int) -> int:
    """Return the index after the bracket that closes the group at an index; the end of the pattern if none does."""
    depth = 0
    for token in _TOKEN.finditer(pattern, start):
        depth += {"(": 1, ")": -1}.get(token.group(), 0)
        if not depth:
            return token.end()
    return len(pattern)


def _is(text: str, flags: int, items: Any) -> bool:
    """Return whether a part of a pattern, by itself, is parsed as in the whole."""
    try:
        return repr(list(parsed(text, flags))) == repr(list(items))
    except re.error:
        return False
