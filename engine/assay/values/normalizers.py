r"""Normalizers: what ``normalize:`` does to a text and its gold before they are compared.

They run in Python, once per distinct text: a chain of Polars' replacements takes as long and is not exact.
"""

import inspect
import json
import math
import re
import string
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import polars as pl

from assay.errors import did_you_mean
from assay.expressions.lane import Lane, rowwise, text
from assay.expressions.regex.compiled import compile_pattern, quick
from assay.expressions.regex.search import search
from assay.values.params import both_cases, snake_case

__all__ = [
    "NORMALIZERS",
    "checked_normalizer",
    "golds_with_words",
    "list_normalizers",
    "normalized_expr",
    "normalized_lane",
    "normalizer",
    "normalizer_schemas",
]

Normalizer = Callable[[str], str]

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_NO_DIGITS = str.maketrans("", "", string.digits)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_DIGIT = re.compile(r"\d")
_ENDS = string.whitespace + string.punctuation
"""What stands around a number for ``inspect``."""
_SHORT = 1_000
"""Code points of a text for which a pattern to ignore must be fast; in longer ones it is first searched for in linear time."""


def _squad(value: str) -> str:
    """Lower, without ASCII punctuation, without articles, with single spaces: SQuAD's evaluation."""
    return " ".join(_ARTICLE.sub(" ", value.lower().translate(_NO_PUNCTUATION)).split())


def _inspect(value: str) -> str:
    """Word by word: casefold, numbers as floats, without ASCII punctuation, without articles: Inspect's ``f1``."""
    words = value.casefold().replace("-", " ").split(" ")
    return " ".join(_ARTICLE.sub(" ", " ".join(map(_inspect_word, words))).split())


def _inspect_word(word: str) -> str:
    bare = word if word.isalpha() else word.translate(_NO_PUNCTUATION)
    # a finite number has a digit; the exceptions of a word without one would cost more than all the rest
    for number in (word, word.strip(_ENDS), bare) if _DIGIT.search(bare) else ():
        try:
            value = float(number)
        except ValueError:
            continue
        if math.isfinite(value):
            return str(value)
    return bare


def _math(value: str) -> str:
    r"""LaTeX of an answer in one spelling: fractions, roots and decimals, without units, spaces, degrees and dollars."""
    for old, new in _SPELLINGS:
        value = value.replace(old, new)
    before, *unit = value.split(r"\text{ ")
    value = (before if len(unit) == 1 else value).replace(r"\%", "")
    value = value.replace(" .", " 0.").replace("{.", "{0.")
    value = f"0{value}" if value.startswith(".") else value
    name, *equal = value.split("=")
    value = equal[0] if len(equal) == 1 and len(name) <= _LONGEST_NAME else value
    value = _braced_fractions(_ROOT.sub(r"\\sqrt{\1}", value).replace(" ", ""))
    value = r"\frac{1}{2}" if value == "0.5" else value
    return _RATIO.sub(r"\\frac{\1}{\2}", value)


_SPELLINGS = (
    ("\n", ""),
    (r"\!", ""),
    ("\\\\", "\\"),
    ("tfrac", "frac"),
    ("dfrac", "frac"),
    (r"\left", ""),
    (r"\right", ""),
    (r"^{\circ}", ""),
    (r"^\circ", ""),
    (r"\$", ""),
)
_LONGEST_NAME = 2
_ROOT = re.compile(r"\\sqrt(?!\\sqrt)([^{])")
_WHOLE = "(0|-?[1-9][0-9]*)"
_RATIO = re.compile(rf"\A{_WHOLE}/{_WHOLE}\Z")
_FRACTION = r"\frac"


def _braced_fractions(value: str) -> str:
    first, *others = value.split(_FRACTION)
    if any(len(other) < 2 and not other.startswith("{") for other in others):  # noqa: PLR2004  (both parts of a fraction)
        return value
    return first + "".join(_FRACTION + (other if other.startswith("{") else _braced_parts(other)) for other in others)


def _braced_parts(fraction: str) -> str:
    above, below, rest = fraction[0], fraction[1], fraction[2:]
    return f"{{{above}}}{below if below == '{' else f'{{{below}}}'}{rest}"


def _whitespace(value: str) -> str:
    """Stripped, with single spaces."""
    return " ".join(value.split())


def _casefold(value: str) -> str:
    """In one case, by `str.casefold`."""
    return value.casefold()


def _nfc(value: str) -> str:
    """Characters composed: Unicode's NFC."""
    return unicodedata.normalize("NFC", value)


def _nfkc(value: str) -> str:
    """Characters composed, and compatible ones alike: Unicode's NFKC."""
    return unicodedata.normalize("NFKC", value)


NORMALIZERS: dict[str, Normalizer] = {
    "squad": _squad,
    "inspect": _inspect,
    "math": _math,
    "casefold": _casefold,
    "nfc": _nfc,
    "nfkc": _nfkc,
    "whitespace": _whitespace,
}
"""The normalizers without options, by name; ``lmEval`` has options."""

_LM_EVAL = "lmEval"


class _LmEval:
    """What lm-eval's ``exact_match`` ignores: patterns first, then case, ASCII punctuation, ASCII digits."""

    options: ClassVar = {
        "ignoreCase": "Lower, by `str.lower`.",
        "ignorePunctuation": "Delete ASCII punctuation.",
        "ignoreNumbers": "Delete ASCII digits.",
        "regexesToIgnore": "Delete the matches of these patterns, before the rest.",
    }

    def __init__(self, options: Mapping[str, Any]) -> None:
        given = _by_option(options)
        self.patterns = [_ignored(pattern) for pattern in given.pop("regexesToIgnore", [])]
        self.ignored = {name for name, wanted in given.items() if wanted}

    def __call__(self, value: str) -> str:
        for pattern in self.patterns:
            if len(value) <= _SHORT or search(pattern.pattern, value):
                value = pattern.sub("", value)
        value = value.lower() if "ignoreCase" in self.ignored else value
        value = value.translate(_NO_PUNCTUATION) if "ignorePunctuation" in self.ignored else value
        return value.translate(_NO_DIGITS) if "ignoreNumbers" in self.ignored else value


def _by_option(options: Mapping[str, Any]) -> dict[str, Any]:
    spellings = {snake_case(name): name for name in _LmEval.options}
    given: dict[str, Any] = {}
    for key, value in options.items():
        name = spellings.get(key, key)
        if name not in _LmEval.options:
            guess = did_you_mean(str(key), _LmEval.options)
            raise ValueError(
                f"{_LM_EVAL} has no option `{key}`. {guess or 'Known: ' + ', '.join(_LmEval.options) + '.'}"
            )
        if name in given:
            raise ValueError(f"{_LM_EVAL}.{name} is given twice, in two spellings")
        _check_option(name, value)
        given[name] = value
    return given


def _check_option(name: str, value: Any) -> None:
    if name != "regexesToIgnore":
        if not isinstance(value, bool):
            raise ValueError(f"{_LM_EVAL}.{name} is true or false, not {json.dumps(value, default=str)}")
    elif not isinstance(value, Sequence) or isinstance(value, str) or not all(isinstance(one, str) for one in value):
        raise ValueError(f"{_LM_EVAL}.{name} is a list of patterns")


def _ignored(pattern: str) -> re.Pattern[str]:
    try:
        compiled = compile_pattern(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{_LM_EVAL}.regexesToIgnore: {pattern!r}: {error}") from None
    if not quick(pattern, 2 * _SHORT):
        raise ValueError(
            f"{_LM_EVAL}.regexesToIgnore: {pattern!r} could take long: leave out nested repeats, and all but one `*` or `+`"
        )
    return compiled


def golds_with_words(golds: list[str]) -> list[str]:
    """Return the golds that have words for ``squad``; the first if none has, as all are ``""`` then: SQuAD's evaluation."""
    return [gold for gold in golds if NORMALIZERS["squad"](gold)] or golds[:1]


def normalizer(spec: str | Mapping[str, Any]) -> Normalizer:
    """Return the normalizer that a spec names."""
    if isinstance(spec, Mapping):
        if len(spec) == 1 and next(iter(spec)) in both_cases(_LM_EVAL):
            (options,) = spec.values()
            if isinstance(options, Mapping):
                return _LmEval(options)
        raise ValueError(f"write {{{_LM_EVAL}: {{ignoreCase: true}}}}, or a name: {', '.join(NORMALIZERS)}")
    if spec in both_cases(_LM_EVAL):
        raise ValueError(f"{_LM_EVAL} ignores nothing by itself: write {{{_LM_EVAL}: {{ignoreCase: true}}}}")
    if spec not in NORMALIZERS:
        names = (*NORMALIZERS, _LM_EVAL)
        raise ValueError(
            f'unknown normalizer "{spec}". {did_you_mean(spec, names) or "Known: " + ", ".join(names) + "."}'
        )
    return NORMALIZERS[spec]


def checked_normalizer(spec: str | dict[str, Any]) -> str | dict[str, Any]:
    """Return what names a normalizer."""
    normalizer(spec)
    return spec


def list_normalizers() -> dict[str, tuple[str, dict[str, str]]]:
    """Return what each normalizer does, and its options with their meanings, by name."""
    plain: dict[str, tuple[str, dict[str, str]]] = {
        name: (inspect.getdoc(function) or "", {}) for name, function in NORMALIZERS.items()
    }
    return plain | {_LM_EVAL: (inspect.getdoc(_LmEval) or "", dict(_LmEval.options))}


def normalizer_schemas() -> list[dict[str, Any]]:
    """Return the JSON Schemas of what names a normalizer."""
    kinds: dict[str, dict[str, Any]] = {name: {"type": "boolean"} for name in _LmEval.options}
    kinds["regexesToIgnore"] = {"type": "array", "items": {"type": "string"}}
    options = {
        spelling: {**kinds[name], "description": meaning}
        for name, meaning in _LmEval.options.items()
        for spelling in both_cases(name)
    }
    with_options = {"type": "object", "properties": options, "additionalProperties": False}
    named = {
        "type": "object",
        "properties": dict.fromkeys(both_cases(_LM_EVAL), with_options),
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
    }
    return [{"type": "string", "enum": [*NORMALIZERS]}, named]


def normalized_expr(texts: pl.Expr, spec: str | Mapping[str, Any]) -> pl.Expr:
    """Return ``normalizer(spec)`` as an elementwise expression over a String column."""
    return rowwise(texts, normalizer(spec), pl.String, distinct=True)


def normalized_lane(spec: str | Mapping[str, Any]) -> Lane:
    """Return the lane with the normalized text."""
    return Lane(f"normalized:{json.dumps(spec, sort_keys=True)}", lambda _: normalized_expr(text(), spec))
