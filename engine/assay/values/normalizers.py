r"""Normalizers: what ``normalize:`` does to a text and its gold before they are compared.

They run in Python, once per distinct text: a chain of Polars' replacements takes as long and is not exact.
"""

import json
import math
import re
import string
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl

from assay.errors import did_you_mean
from assay.expressions.regex.compiled import compile_pattern, quick
from assay.expressions.regex.search import search
from assay.expressions.shared_columns import SharedColumn, rowwise, text
from assay.values.params import both_cases, snake_case

Normalizer = Callable[[str], str]

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_NO_DIGITS = str.maketrans("", "", string.digits)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_DIGIT = re.compile(r"\d")
_ENDS = string.whitespace + string.punctuation
"""What stands around a number for ``inspect``."""
_SHORT = 1_000
"""Code points of a text for which a pattern to ignore must be fast; in longer ones it is first searched for in linear time."""
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
_MEANINGS = {
    "squad": "Lower, without ASCII punctuation, without articles, with single spaces: SQuAD's evaluation.",
    "inspect": "Word by word: casefold, numbers as floats, without ASCII punctuation, without articles: Inspect's ``f1``.",
    "math": "LaTeX of an answer in one spelling: fractions, roots and decimals, without units, spaces, degrees and dollars.",
    "casefold": "In one case, by `str.casefold`.",
    "nfc": "Characters composed: Unicode's NFC.",
    "nfkc": "Characters composed, and compatible ones alike: Unicode's NFKC.",
    "whitespace": "Stripped, with single spaces.",
}
_LM_EVAL = "lmEval"
_OPTIONS = {
    "ignoreCase": "Lower, by `str.lower`.",
    "ignorePunctuation": "Delete ASCII punctuation.",
    "ignoreNumbers": "Delete ASCII digits.",
    "regexesToIgnore": "Delete the matches of these patterns, before the rest.",
}
_PATTERNS = "regexesToIgnore"


def _without_articles(value: str) -> str:
    return " ".join(_ARTICLE.sub(" ", value).split())


def _squad(value: str) -> str:
    return _without_articles(value.lower().translate(_NO_PUNCTUATION))


def _inspect(value: str) -> str:
    return _without_articles(" ".join(map(_inspect_word, value.casefold().replace("-", " ").split(" "))))


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


def _braced_fractions(value: str) -> str:
    r"""Write ``\frac12`` as ``\frac{1}{2}``; leave a text with a fraction that ends early."""
    written, *fractions = value.split(_FRACTION)
    for fraction in fractions:
        if fraction.startswith("{"):
            written += _FRACTION + fraction
        elif len(fraction) < 2:  # noqa: PLR2004  (both parts of a fraction)
            return value
        else:
            below = "{" if fraction[1] == "{" else f"{{{fraction[1]}}}"
            written += f"{_FRACTION}{{{fraction[0]}}}{below}{fraction[2:]}"
    return written


NORMALIZERS: dict[str, Normalizer] = {
    "squad": _squad,
    "inspect": _inspect,
    "math": _math,
    "casefold": str.casefold,
    "nfc": partial(unicodedata.normalize, "NFC"),
    "nfkc": partial(unicodedata.normalize, "NFKC"),
    "whitespace": lambda value: " ".join(value.split()),
}
"""The normalizers without options, by name; ``lmEval`` has options."""


def _lm_eval(options: Mapping[str, Any]) -> Normalizer:
    spellings = {snake_case(name): name for name in _OPTIONS}
    given: dict[str, Any] = {}
    for key, value in options.items():
        name = spellings.get(key, key)
        if name not in _OPTIONS:
            guess = did_you_mean(str(key), _OPTIONS)
            raise ValueError(f"{_LM_EVAL} has no option `{key}`. {guess or 'Known: ' + ', '.join(_OPTIONS) + '.'}")
        if name in given:
            raise ValueError(f"{_LM_EVAL}.{name} is given twice, in two spellings")
        if name != _PATTERNS and not isinstance(value, bool):
            raise ValueError(f"{_LM_EVAL}.{name} is true or false, not {json.dumps(value, default=str)}")
        if name == _PATTERNS and not (
            isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(item, str) for item in value)
        ):
            raise ValueError(f"{_LM_EVAL}.{name} is a list of patterns")
        given[name] = value
    return _LmEval(tuple(map(_ignored, given.pop(_PATTERNS, ()))), frozenset(name for name in given if given[name]))


@dataclass(frozen=True)
class _LmEval:
    patterns: tuple[re.Pattern[str], ...]
    ignored: frozenset[str]

    def __call__(self, value: str) -> str:
        for pattern in self.patterns:
            if len(value) <= _SHORT or search(pattern.pattern, value):
                value = pattern.sub("", value)
        value = value.lower() if "ignoreCase" in self.ignored else value
        value = value.translate(_NO_PUNCTUATION) if "ignorePunctuation" in self.ignored else value
        return value.translate(_NO_DIGITS) if "ignoreNumbers" in self.ignored else value


def _ignored(pattern: str) -> re.Pattern[str]:
    try:
        compiled = compile_pattern(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{_LM_EVAL}.{_PATTERNS}: {pattern!r}: {error}") from None
    if not quick(pattern, 2 * _SHORT):  # a replacement in this process cannot be stopped
        raise ValueError(
            f"{_LM_EVAL}.{_PATTERNS}: {pattern!r} could take long: leave out nested repeats, and all but one `*` or `+`"
        )
    return compiled


def golds_with_words(golds: list[str]) -> list[str]:
    """Return the golds that have words for ``squad``; the first if none has, as all are ``""`` then: SQuAD's evaluation."""
    return [gold for gold in golds if _squad(gold)] or golds[:1]


def normalizer(spec: str | Mapping[str, Any]) -> Normalizer:
    """Return the normalizer that a spec names: a name, or ``{"lmEval": options}``."""
    if isinstance(spec, Mapping):
        options = next(iter(spec.values())) if len(spec) == 1 and next(iter(spec)) in both_cases(_LM_EVAL) else None
        if isinstance(options, Mapping):
            return _lm_eval(options)
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
    ignored = "What lm-eval's ``exact_match`` ignores: patterns first, then case, ASCII punctuation, ASCII digits."
    return {name: (meaning, {}) for name, meaning in _MEANINGS.items()} | {_LM_EVAL: (ignored, dict(_OPTIONS))}


def normalizer_schemas() -> list[dict[str, Any]]:
    """Return the JSON Schemas of what names a normalizer."""
    kinds: dict[str, dict[str, Any]] = {name: {"type": "boolean"} for name in _OPTIONS}
    kinds[_PATTERNS] = {"type": "array", "items": {"type": "string"}}
    options = {
        spelling: {**kinds[name], "description": meaning}
        for name, meaning in _OPTIONS.items()
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


def normalized_lane(spec: str | Mapping[str, Any]) -> SharedColumn:
    """Return the lane with the normalized text."""
    return SharedColumn(f"normalized:{json.dumps(spec, sort_keys=True)}", lambda _: normalized_expr(text(), spec))
