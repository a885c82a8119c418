"""The cases of a check's golds, by its type."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from assay.checks.golds import GoldCheck
from assay.insight.evidence.reader import CheckReader, reader_of
from assay.insight.forging.made import Made, Wrap
from assay.insight.forging.numbers import decimal_of, number_cases
from assay.insight.forging.texts import choice_cases, list_cases, phrase_cases, phrase_of
from assay.insight.forging.values import call_cases, calls_of, json_cases
from assay.spec.check import CheckSpec

_Cases = Iterator[Made] | None


def forged_reader(spec: CheckSpec) -> CheckReader | None:
    """Return the reader of a check that cases are made for: its golds come from rows, and its type, no other tool's, has forms; else None."""
    reader = None if spec.broken else reader_of(spec)
    if reader is None or not (isinstance(reader.check, GoldCheck) and reader.check.brought.references):
        return None
    has_forms = not reader.is_grader and reader.type in _CASES
    return reader if has_forms and (reader.type != "similarity" or spec.threshold is not None) else None


def text_of(gold: Any) -> str:
    """Return a gold as text."""
    return gold if isinstance(gold, str) else json.dumps(gold, ensure_ascii=False, default=str)


def cases_of(reader: CheckReader, golds: Sequence[Any], wrap: Wrap) -> _Cases:
    """Return the cases of the first of a row's golds, without near misses that are forms of another; None if it has no cases."""
    flat = [item for gold in golds for item in (gold if isinstance(gold, list) and reader.type in _PHRASES else [gold])]
    if not flat or (reader.type == "contains_all" and len(flat) > 1):
        return None
    first, *others = (_CASES[reader.type](reader.bare.params, gold, wrap) for gold in flat)
    if first is None:
        return None
    right = [made.completion for cases in others if cases is not None for made in cases if made.kind == "form"]
    own, searches = phrase_of(str(flat[0])), reader.type in _SEARCHED
    phrases = {phrase_of(str(gold)) for gold in flat[1:]} - {own, ""} if searches else set()
    return (made for made in first if made.kind == "form" or not (made.completion in right or _has(made, phrases)))


def _has(made: Made, phrases: Collection[str]) -> bool:
    """Return whether another gold stands in a near miss."""
    text = phrase_of(str(made.completion))
    return any(phrase in text for phrase in phrases)


def _numbers(params: Any, gold: Any, wrap: Wrap) -> _Cases:
    decimal = decimal_of(gold)
    if decimal is None:
        return None
    tolerances = {"rel_tol": params.rel_tol, "abs_tol": params.abs_tol}
    return number_cases(decimal, wrap, is_latex=False, at=params.at, **tolerances)


def _math(_: Any, gold: Any, wrap: Wrap) -> _Cases:
    decimal = decimal_of(gold)
    return None if decimal is None else number_cases(decimal, wrap, is_latex=True)


def _phrases(params: Any, gold: Any, wrap: Wrap) -> _Cases:
    text = str(gold)
    return phrase_cases(text, wrap, is_cased=bool(getattr(params, "case_sensitive", True))) if text.strip() else None


def _choices(params: Any, gold: Any, wrap: Wrap) -> _Cases:
    letters, text = params.letters.upper(), str(gold).strip().upper()
    if text not in letters:
        at = int(text) - params.base if text.lstrip("-").isdigit() else -1
        text = letters[at] if 0 <= at < len(letters) else ""
    return choice_cases(text, letters, wrap) if len(text) == 1 else None


def _json(params: Any, gold: Any, wrap: Wrap) -> _Cases:
    value = parsed(gold)
    if value is None:
        return None
    cases = json_cases(value, wrap, subset=params.score == "subset", ordered=params.lists == "ordered")
    allowed = {"number_changed"} if params.rel_tol or params.abs_tol else set()
    allowed |= {"string_cut"} if params.strings is not None else set()
    return (made for made in cases if made.kind == "form" or not (made.form in allowed or params.ignore))


def _calls(params: Any, gold: Any, wrap: Wrap) -> _Cases:
    calls = calls_of(parsed(gold))
    if calls is None or params.arguments == "bfcl":
        return None
    options = {"how": params.arguments, "written": params.format, "free": (*params.ignore, *params.defaults)}
    return call_cases(calls, wrap, same=params.order == "same", **options)


def _lists(params: Any, gold: Any, wrap: Wrap) -> _Cases:
    items = gold if isinstance(gold, list) else str(gold).split(params.sep)
    how = "multiset" if params.as_ == "f1" else params.as_
    return list_cases([str(item).strip() for item in items], params.sep, how, wrap)


def is_texts(value: Any) -> bool:
    """Return whether a value is a list of texts."""
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def parsed(gold: Any) -> Any:
    """Return the value of a gold that may be JSON text; None for another text."""
    if not isinstance(gold, str):
        return gold
    try:
        return json.loads(gold)
    except (ValueError, RecursionError):
        return None


_SEARCHED = ("contains", "contains_any", "contains_all", "starts_with", "ends_with")
_PHRASES = ("equals", *_SEARCHED, "similarity")

_CASES: Mapping[str, Callable[[Any, Any, Wrap], _Cases]] = {
    "number": _numbers,
    "math": _math,
    **dict.fromkeys(_PHRASES, _phrases),
    "choice": _choices,
    "json_match": _json,
    "tool_calls": _calls,
    "list_equals": _lists,
}
