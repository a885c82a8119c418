r"""Patterns of JavaScript as patterns of Python.

``\d``, ``\w`` and ``\b`` are about ASCII there, ``$`` is the very end, ``.`` stops at four line terminators, and a letter without a
meaning may be escaped.
"""

import re


class NoPatternError(ValueError):
    """A pattern of JavaScript that has no counterpart in Python; the message says why."""


SPACES = r"\t\n\x0b\x0c\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
"""White space of JavaScript, within a class."""
_SETS = {"d": "0-9", "w": "A-Za-z0-9_", "s": SPACES}
_MEANS_THE_SAME = frozenset("fnrtv")
_ESCAPE = (
    r"\\c(?P<control>[A-Za-z])|(?P<pair>\\u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2})"
    r"|(?P<code>\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2})|\\(?P<digits>[1-9]\d?)|\\(?P<escaped>.)"
)
_TOKEN = re.compile(
    r"(?P<foreign>\(\?[aiLmsux-]+\)|\(\?P)|\\k<(?P<back>\w+)>|\(\?<(?P<group>[A-Za-z_]\w*)>|(?P<braces>\{,\d*\})"
    rf"|(?P<opening>\[\]|\[\^\]|\[\^?)|{_ESCAPE}|(?P<plain>.)",
    re.DOTALL | re.ASCII,
)
_CLASS_TOKEN = re.compile(rf"(?P<closing>\])|{_ESCAPE}|(?P<plain>.)", re.DOTALL | re.ASCII)
_WHOLE = {"[]": "(?!)", "[^]": r"[\s\S]", ".": r"[^\n\r\u2028\u2029]", "$": r"\Z", r"\b": r"(?a:\b)", r"\B": r"(?a:\B)"}


def python_pattern(pattern: str) -> str:
    """Return a pattern with which ``re.search`` finds what JavaScript's ``RegExp.test`` does."""
    translated, end, in_class = "", 0, False
    while match := (_CLASS_TOKEN if in_class else _TOKEN).match(pattern, end):
        translated += (_in_class if in_class else _outside)(match)
        in_class = match.lastgroup != "closing" if in_class else match[0] in ("[", "[^")
        end = match.end()
    try:
        re.compile(translated)
    except (re.error, OverflowError, RecursionError) as error:
        raise NoPatternError(f"Python has no such pattern: {error}") from None
    return translated


def _in_class(match: re.Match[str]) -> str:
    kind, escaped = match.lastgroup, match["escaped"]
    if kind in ("closing", "plain"):
        return re.escape(match[0]) if match[0] in "[&|~" else match[0]
    if kind == "digits":
        raise NoPatternError(f"{match[0]} in a class is an octal number")
    if escaped in _SETS:
        return _SETS[escaped]
    return {"b": r"\x08"}.get(escaped or "", match[0] if escaped in ("D", "W", "S") else _character(match))


def _outside(match: re.Match[str]) -> str:
    kind, escaped = str(match.lastgroup), match["escaped"] or ""
    if kind == "foreign":
        raise NoPatternError(f"{match[0]} is not of JavaScript's patterns, where the assertion always fails")
    if escaped.lower() in _SETS:
        return f"[{'^' * escaped.isupper()}{_SETS[escaped.lower()]}]"
    if match[0] in _WHOLE:
        return _WHOLE[match[0]]
    forms = {"group": f"(?P<{match['group']}>", "back": f"(?P={match['back']})", "digits": f"(?:{match[0]})"}
    forms |= {"braces": re.escape(match[0]), "plain": match[0], "opening": match[0]}
    return forms[kind] if kind in forms else _character(match)


def _character(match: re.Match[str]) -> str:
    if match["control"]:
        return re.escape(chr(ord(match["control"]) % 32))
    if match["pair"]:
        return match[0].encode("ascii").decode("unicode_escape").encode("utf-16", "surrogatepass").decode("utf-16")
    escaped = match["escaped"]
    if escaped is None or escaped in _MEANS_THE_SAME:
        return match[0]
    return r"\x00" if escaped == "0" else re.escape(escaped)
