r"""Normalizers: what ``normalize:`` does to a text and its gold before they are compared.

Most run in Python, once per distinct text: a chain of Polars' replacements takes as long and is not exact.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import polars as pl

from assay.errors import did_you_mean
from assay.expressions.regex.compiled import compile_pattern, quick
from assay.expressions.regex.search import search
from assay.expressions.shared_columns import SharedColumn, rowwise, text
from assay.expressions.text import composed_expr, recased_expr, single_spaced_expr
from assay.frozen import frozen
from assay.values.normal_forms import (
    MINERVA,
    NO_DIGITS,
    NO_PUNCTUATION,
    drop,
    hendrycks,
    inspect,
    latex,
    lighteval,
    squad,
)
from assay.values.params import both_cases, snake_case

Normalizer = Callable[[str], str]

_SHORT = 1_000
"""Code points of a text for which a pattern to ignore must be fast; in longer ones it is first searched for in linear time."""
_MEANINGS = {
    "squad": "Lower, without ASCII punctuation, without articles, with single spaces: SQuAD's evaluation.",
    "inspect": "Word by word: casefold, numbers as floats, without ASCII punctuation, without articles: Inspect's ``f1``.",
    "drop": "Word by word: lower, numbers as floats, without ASCII punctuation, without articles: DROP's evaluation.",
    "lighteval": "Word by word: lower, without ASCII punctuation, then numbers as floats, without articles: lighteval's HELM.",
    "math": "LaTeX of an answer in one spelling: fractions, roots and decimals, without units, spaces, degrees and dollars.",
    "hendrycks": r"As `math`, but as it is with several `\text{ `, or with nothing behind a `\sqrt` or `\frac`: Hendrycks' MATH.",
    "casefold": "In one case, by `str.casefold`.",
    "nfc": "Characters composed: Unicode's NFC.",
    "nfkc": "Characters composed, and compatible ones alike: Unicode's NFKC.",
    "whitespace": "Stripped, with single spaces.",
}
_MINERVA = "minerva"
_LM_EVAL = "lmEval"
_OPTIONS = {
    "ignoreCase": "Lower, by `str.lower`.",
    "ignorePunctuation": "Delete ASCII punctuation.",
    "ignoreNumbers": "Delete ASCII digits.",
    "regexesToIgnore": "Delete the matches of these patterns, before the rest.",
}
_PATTERNS = "regexesToIgnore"


NORMALIZERS: dict[str, Normalizer] = {
    "squad": squad,
    "inspect": inspect,
    "drop": drop,
    "lighteval": lighteval,
    "math": latex,
    "hendrycks": hendrycks,
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


@frozen
class _LmEval:
    patterns: tuple[re.Pattern[str], ...]
    ignored: frozenset[str]

    def __call__(self, value: str) -> str:
        for pattern in self.patterns:
            if len(value) <= _SHORT or search(pattern.pattern, value):
                value = pattern.sub("", value)
            value = value.rstrip("\0")
        value = value.lower() if "ignoreCase" in self.ignored else value
        value = value.translate(NO_PUNCTUATION) if "ignorePunctuation" in self.ignored else value
        value = value.translate(NO_DIGITS) if "ignoreNumbers" in self.ignored else value
        return value.rstrip("\0")  # numpy's texts end before their last NULs


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
    return [gold for gold in golds if squad(gold)] or golds[:1]


def normalizer(spec: str | Mapping[str, Any]) -> Normalizer:
    """Return the normalizer that a spec names: a name, ``{"lmEval": options}``, or ``{"minerva": style}``."""
    if isinstance(spec, Mapping):
        if [*spec] == [_MINERVA]:
            style = spec[_MINERVA]
            if not isinstance(style, str) or style not in MINERVA:
                guess = did_you_mean(str(style), MINERVA)
                raise ValueError(
                    f"{_MINERVA} is {' or '.join(MINERVA)}, not {json.dumps(style, default=str)}. {guess}".strip()
                )
            return MINERVA[style]
        options = next(iter(spec.values())) if len(spec) == 1 and next(iter(spec)) in both_cases(_LM_EVAL) else None
        if isinstance(options, Mapping):
            return _lm_eval(options)
        raise ValueError(f"write {{{_LM_EVAL}: {{ignoreCase: true}}}}, or a name: {', '.join(NORMALIZERS)}")
    if spec == _MINERVA:
        raise ValueError(f"{_MINERVA} has two styles: write {{{_MINERVA}: verl}} or {{{_MINERVA}: lmEval}}")
    if spec in both_cases(_LM_EVAL):
        raise ValueError(f"{_LM_EVAL} ignores nothing by itself: write {{{_LM_EVAL}: {{ignoreCase: true}}}}")
    if spec not in NORMALIZERS:
        names = (*NORMALIZERS, _MINERVA, _LM_EVAL)
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
    styles = {"verl": "As verl's `math_dapo`.", "lmEval": "As lm-eval's `minerva_math`."}
    listed: dict[str, tuple[str, dict[str, str]]] = {name: (meaning, {}) for name, meaning in _MEANINGS.items()}
    minerva = "A quantitative answer without units, text and boxes: Minerva's, in one of two styles."
    return listed | {_MINERVA: (minerva, styles), _LM_EVAL: (ignored, dict(_OPTIONS))}


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
    minerva = {
        "type": "object",
        "properties": {_MINERVA: {"enum": [*MINERVA]}},
        "required": [_MINERVA],
        "additionalProperties": False,
    }
    return [{"type": "string", "enum": [*NORMALIZERS]}, named, minerva]


BY_COLUMNS: Mapping[str, Callable[[pl.Expr], pl.Expr]] = {
    "casefold": partial(recased_expr, form=str.casefold),
    "nfc": partial(composed_expr, form="NFC"),
    "nfkc": partial(composed_expr, form="NFKC"),
    "whitespace": single_spaced_expr,
}
"""The normalizers that are expressions; Python runs the others, once for each distinct text."""


def normalized_expr(texts: pl.Expr, spec: str | Mapping[str, Any]) -> pl.Expr:
    """Return ``normalizer(spec)`` as an elementwise expression over a String column."""
    if isinstance(spec, str) and spec in BY_COLUMNS:
        return BY_COLUMNS[spec](texts)
    return rowwise(texts, normalizer(spec), pl.String, distinct=True)


def normalized_lane(spec: str | Mapping[str, Any]) -> SharedColumn:
    """Return the lane with the normalized text."""
    return SharedColumn(f"normalized:{json.dumps(spec, sort_keys=True)}", lambda _: normalized_expr(text(), spec))
