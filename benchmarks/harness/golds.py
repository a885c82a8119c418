"""Check types, steps and bounds with a gold for each row, beside the loop that one writes by hand for them.

A loop compiles its patterns once, lowers a text once and parses what it has to; `score` is the loop without reasons, `reason` writes the
line of a row that fails.
"""
# ruff: noqa: ARG005  (all columns are drawn alike)

import json
import random
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable
from typing import Any

import jsonschema_rs
from rapidfuzz.distance import Indel

from contenders.language_loop import after_think, boxed, choice, fence, squad, tag, think
from contenders.spec import parsed
from harness.gold_case import ROWS, GoldCase, drawn
from harness.gold_outputs import OUTPUTS

__all__ = ["CASES"]

GOLD = {"column": "gold"}
_NUMBER = re.compile(r"(?<![0-9A-Za-z_)])[-+]?\$?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?")
_LETTER = re.compile(r"(?<!\w)([A-D])(?!\w)")
_SAID = re.compile(r"(?i)the answer is (\S+)")
_REMOVED = re.compile(r"\d+,")
_OPENED = re.compile(r"[{\[]")
_ENDS = string.whitespace + string.punctuation
_MAPPED = {"A": "one", "B": "two"}


# ── golds ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _half(part: Callable[[str, random.Random], Any]) -> dict[str, Callable[[str, int, random.Random], Any]]:
    """Golds that are right on about every other row."""
    return {
        "gold": lambda text, at, rng: part(text, rng) if rng.random() < 0.5 else f"other {at} of {rng.randrange(10**6)}"
    }


def _either_case(text: str, rng: random.Random) -> str:
    return text.upper() if rng.random() < 0.3 else text


def _piece(text: str, rng: random.Random) -> str:
    size = rng.randrange(8, 30)
    start = rng.randrange(max(1, len(text) - size))
    return _either_case(text[start : start + size], rng)


_WHOLE = _half(lambda text, rng: _either_case(text.strip(), rng))
_PIECE = _half(_piece)
_PIECES = {"gold": lambda text, at, rng: [_piece(text, rng) if rng.random() < 0.8 else f"none {at}" for _ in range(3)]}
_BEGIN = _half(lambda text, rng: _either_case(text.strip()[: rng.randrange(10, 30)], rng))
_END = _half(lambda text, rng: _either_case(text.strip()[-rng.randrange(10, 30) :], rng))
_PATTERN = _half(lambda text, rng: rf"\b{re.escape(text.split()[rng.randrange(3)])}\b")
_VALUE = {"gold": lambda text, at, rng: (last_number(text) or "1") if rng.random() < 0.5 else str(at + 0.5)}
_ITEMS = {"gold": lambda text, _, rng: [item.strip() for item in text.split(",")][rng.randrange(2) :]}
_NUMBERS = {"gold": lambda text, _, rng: _NUMBER.findall(text)[rng.randrange(2) :]}
_SENTENCES = {"gold": lambda text, _, rng: _items(text, ".")[rng.randrange(2) :]}
_LETTERS = {"gold": lambda text, at, rng: rng.choice("ABCD")}
_SIZES = {"gold": lambda text, at, rng: rng.randrange(2 * len(text) + 1)}
_BOUNDS = {
    "low": lambda text, at, rng: rng.randrange(50_000) + at / 1e6,
    "high": lambda text, at, rng: 60_000 + rng.randrange(50_000) + at / 1e6,
}
_COUNTS = {"low": lambda text, at, rng: rng.randrange(100), "high": lambda text, at, rng: 100 + rng.randrange(100)}


# ── loops ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _quoted(text: str) -> str:
    return f'"{text}"'


def last_number(text: str) -> str | None:
    numbers = _NUMBER.findall(text)
    return numbers[-1] if numbers else None


def _value(number: str) -> float:
    return float(number.replace(",", "").replace("$", ""))


def _is_number(text: str, gold: str) -> float:
    number = last_number(text)
    return float(number is not None and _value(number) == _value(gold))


def _in_range(text: str, low: float, high: float) -> float:
    number = last_number(text)
    return float(number is not None and low <= _value(number) <= high)


def _has_all(text: str, gold: list[str]) -> float:
    lower = text.lower()
    return float(all(phrase.lower() in lower for phrase in gold))


def _has_any(text: str, gold: list[str]) -> float:
    lower = text.lower()
    return float(any(phrase.lower() in lower for phrase in gold))


def _missing(text: str, gold: list[str]) -> str:
    lower = text.lower()
    return f"does not contain {', '.join(_quoted(phrase) for phrase in gold if phrase.lower() not in lower)}"


def _is_choice(text: str, gold: str) -> float:
    letters = _LETTER.findall(text)
    return float(bool(letters) and letters[-1] == gold)


def _items(text: str, sep: str = ",") -> list[str]:
    return [item for part in text.split(sep) if (item := part.strip())]


def _share_f1(text: str, gold: list[str]) -> float:
    items = _items(text)
    return 2 * (Counter(items) & Counter(gold)).total() / (len(items) + len(gold))


def _said(text: str) -> str | None:
    found = _SAID.search(text)
    return found[1] if found else None


def _last_line(text: str) -> str | None:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), None)


def _after(text: str) -> str | None:
    """Read up to the end of the line, as the step does."""
    _, mark, rest = text.rpartition("####")
    return rest.partition("\n")[0].strip() if mark else None


def _answer(text: str) -> str | None:
    value = parsed(text)
    return value.get("answer") if isinstance(value, dict) else None


def _first_answer(text: str) -> str | None:
    for opened in _OPENED.finditer(text):
        try:
            value, _ = _DECODER.raw_decode(text, opened.start())
        except ValueError:
            continue
        return value.get("answer") if isinstance(value, dict) else None
    return None


_DECODER = json.JSONDecoder()
_SCHEMA = {
    "type": "object",
    "required": ["answer", "score"],
    "properties": {"answer": {"type": "string"}, "score": {"type": "integer"}, "tags": {"type": "array"}},
}
_JSON_SCHEMA = {"schema": lambda text, at, rng: json.dumps({**_SCHEMA, "maxProperties": 5 + at})}


def _validator(schema: str) -> Any:
    return jsonschema_rs.validator_for(json.loads(schema), offline=True)


def _fits(text: str, schema: str) -> float:
    """Compile the schema whatever the text is, as the check does: a row whose schema is not valid has no gold, and an error."""
    validator, value = _validator(schema), parsed(text)
    return float(value is not ... and validator.is_valid(value))


def _violations(text: str, schema: str) -> str:
    value = parsed(text)
    return "" if value is ... else "; ".join(one.message for one in _validator(schema).iter_errors(value))


def _alike(value: Any, gold: Any) -> bool:
    """Compare JSON values as the check does: true is not 1, though Python says so."""
    if isinstance(value, dict) and isinstance(gold, dict):
        return value.keys() == gold.keys() and all(_alike(inner, gold[key]) for key, inner in value.items())
    if isinstance(value, list) and isinstance(gold, list):
        return len(value) == len(gold) and all(map(_alike, value, gold))
    return bool(value == gold) and isinstance(value, bool) == isinstance(gold, bool)


def _equals_json(text: str, gold: str) -> float:
    value, wanted = parsed(text), json.loads(gold)
    return float(value is not ... and _alike(value, wanted))


def _json_gold(text: str, at: int, rng: random.Random) -> str:
    value = parsed(text)
    return json.dumps({"score": at} if value is ... or rng.random() < 0.5 else value)


# ── cases ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _of_gold(
    kind: str, columns: Any, score: Callable[..., float], reason: Callable[..., str], **check: Any
) -> GoldCase:
    return GoldCase({"value": GOLD, **check}, drawn(kind, columns), score, reason)


def _step_case(steps: Any, kind: str, find: Callable[[str], str | None]) -> GoldCase:
    def gold(text: str, rng: random.Random) -> str:
        return find(text) or f"none {rng.random()}"

    def score(text: str, gold: str) -> float:
        found = find(text)
        return float(found is not None and found.strip() == gold.strip())

    def reason(_: str, gold: str) -> str:
        return f"does not equal {_quoted(gold)}"

    return _of_gold(kind, _half(gold), score, reason, type="equals", caseSensitive=True, on=steps)


def _phrase_cases(kind: str) -> dict[str, GoldCase]:
    def case(columns: Any, says: str, score: Callable[..., float], **check: Any) -> GoldCase:
        return _of_gold(kind, columns, score, lambda _, gold: f"{says} {gold!r}", **check)

    return {
        "equals": case(
            _WHOLE,
            "does not equal",
            lambda text, gold: float(text.strip().lower() == gold.strip().lower()),
            type="equals",
        ),
        "equals, as written": case(
            _WHOLE,
            "does not equal",
            lambda text, gold: float(text.strip() == gold.strip()),
            type="equals",
            caseSensitive=True,
        ),
        "contains": case(
            _PIECE, "does not contain", lambda text, gold: float(gold.lower() in text.lower()), type="contains"
        ),
        "contains, as written": case(
            _PIECE, "does not contain", lambda text, gold: float(gold in text), type="contains", caseSensitive=True
        ),
        "not_contains": case(
            _PIECE, "contains", lambda text, gold: float(gold.lower() not in text.lower()), type="not_contains"
        ),
        "contains_any": case(_PIECES, "contains none of", _has_any, type="contains_any"),
        "contains_all": _of_gold(kind, _PIECES, _has_all, _missing, type="contains_all"),
        "starts_with": case(
            _BEGIN,
            "does not start with",
            lambda text, gold: float(text.strip().lower().startswith(gold.strip().lower())),
            type="starts_with",
        ),
        "ends_with": case(
            _END,
            "does not end with",
            lambda text, gold: float(text.strip().lower().endswith(gold.strip().lower())),
            type="ends_with",
        ),
        "min_length": case(
            _SIZES, "has fewer characters than", lambda text, gold: float(len(text) >= gold), type="min_length"
        ),
        "max_length": case(
            _SIZES, "has more characters than", lambda text, gold: float(len(text) <= gold), type="max_length"
        ),
    }


def _list_case(
    how: str, score: Callable[..., float], golds: Any = _ITEMS, kind: str = "list", **check: Any
) -> GoldCase:
    def reason(_: str, gold: list[str]) -> str:
        return f"does not have the items {', '.join(gold)} ({how})"

    return _of_gold(kind, golds, score, reason, type="list_equals", **{"as": how}, **check)


def _number_reason(text: str, *expected: Any) -> str:
    return f"the number is {last_number(text)}, expected {expected}"


_OTHERS = {
    "number": _of_gold("solution", _VALUE, _is_number, _number_reason, type="number"),
    "number, a few words": _of_gold("short", _VALUE, _is_number, _number_reason, type="number"),
    "number_range, bounds from columns": GoldCase(
        {"type": "number_range", "min": {"column": "low"}, "max": {"column": "high"}},
        drawn("solution", _BOUNDS),
        _in_range,
        _number_reason,
    ),
    "count of words, bounds from columns": GoldCase(
        {"type": "count", "of": "words", "min": {"column": "low"}, "max": {"column": "high"}},
        drawn("think", _COUNTS),
        lambda text, low, high: float(low <= len(text.split()) <= high),
        lambda text, *bounds: f"number of words: {len(text.split())}, expected {bounds}",
    ),
    "choice": _of_gold("solution", _LETTERS, _is_choice, lambda text, gold: f"the choice is not {gold}", type="choice"),
    "regex": GoldCase(
        {"type": "regex", "pattern": GOLD},
        drawn("think", _PATTERN),
        lambda text, gold: float(re.search(gold, text) is not None),
        lambda _, gold: f"does not match the pattern {_quoted(gold)}",
        rows=min(ROWS, 2_500),
    ),
    "list_equals": _list_case("list", lambda text, gold: float(_items(text) == gold)),
    "list_equals, set": _list_case("set", lambda text, gold: float({*_items(text)} == {*gold})),
    "list_equals, multiset": _list_case("multiset", lambda text, gold: float(Counter(_items(text)) == Counter(gold))),
    "list_equals, f1": _list_case("f1", _share_f1),
    "step numbers": _list_case(
        "list", lambda text, gold: float(_NUMBER.findall(text) == gold), _NUMBERS, "solution", on=["numbers"]
    ),
    "step split": _list_case(
        "list", lambda text, gold: float(_items(text, ".") == gold), _SENTENCES, "solution", on=[{"split": "."}]
    ),
    "similarity": _of_gold(
        "short",
        _WHOLE,
        Indel.normalized_similarity,
        lambda text, gold: f"similarity {Indel.normalized_similarity(text, gold):.2f} to {gold!r}",
        type="similarity",
    ),
    "json_schema": GoldCase(
        {"type": "json_schema", "schema": {"column": "schema"}},
        drawn("json", _JSON_SCHEMA),
        _fits,
        _violations,
        rows=min(ROWS, 10_000),
    ),
    "json_match": _of_gold("json", {"gold": _json_gold}, _equals_json, lambda *_: "differs", type="json_match"),
}
_STEPS = {
    "afterThink": (["afterThink"], "think", after_think),
    "think": (["think"], "think", think),
    "boxed": (["boxed"], "solution", boxed),
    "line": ([{"line": "last"}], "chat", _last_line),
    "tag": ([{"tag": "answer"}], "think", tag),
    "after": ([{"after": "####"}], "solution", _after),
    "regex": ([{"regex": r"(?i)the answer is (\S+)"}], "solution", _said),
    "number": (["number"], "solution", last_number),
    "choice": (["choice"], "solution", choice),
    "fence": (["fence"], "chat", fence),
    "json": ([{"json": {"path": "answer"}}], "json", _answer),
    "json, the first within a text": ([{"json": {"at": "first", "path": "answer"}}], "json", _first_answer),
    "lower": (["lower"], "think", str.lower),
    "upper": (["upper"], "think", str.upper),
    "casefold": (["casefold"], "think", str.casefold),
    "strip": (["strip"], "think", str.strip),
    "trim": ([{"trim": "punctuation"}], "think", lambda text: text.strip(_ENDS)),
    "whitespace": (["whitespace"], "think", lambda text: " ".join(text.split())),
    "tail": ([{"tail": 100}], "think", lambda text: text[-100:]),
    "remove": ([{"remove": [r"\d+,"]}], "think", lambda text: _REMOVED.sub("", text)),
    "replace": ([{"replace": {"old": ",", "new": ""}}], "think", lambda text: text.replace(",", "")),
    "map, of a regex": (
        [{"regex": r"(?i)the answer is (\S+)"}, {"map": _MAPPED, "default": "none"}],
        "solution",
        lambda text: None if (found := _said(text)) is None else _MAPPED.get(found, "none"),
    ),
    "normalize squad": ([{"normalize": "squad"}], "think", squad),
    "nfc": (["nfc"], "scripts", lambda text: unicodedata.normalize("NFC", text)),
    "nfkc": (["nfkc"], "scripts", lambda text: unicodedata.normalize("NFKC", text)),
    "firstOf": ([{"firstOf": [["boxed"], [{"tag": "answer"}]]}], "think", lambda text: boxed(text) or tag(text)),
}

CASES: dict[str, GoldCase] = {
    **{f"{name}, a few words": case for name, case in _phrase_cases("short").items()},
    **{f"{name}, 1.3 kB": case for name, case in _phrase_cases("think").items()},
    **_OTHERS,
    **OUTPUTS,
    **{f"step {name}": _step_case(*step) for name, step in _STEPS.items()},
}
"""All cases by name."""
