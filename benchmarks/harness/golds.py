"""Check types, steps and bounds with a gold for each row, beside the loop that one writes by hand for them.

A loop compiles its patterns once, lowers a text once and parses what it has to; `score` is the loop without reasons, `reason` writes the
line of a row that fails.
"""
# ruff: noqa: ARG005  (all columns are drawn alike)

import json
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from contenders.language_loop import boxed, tag
from contenders.spec import parsed
from harness import generate
from harness.texts import texts

__all__ = ["CASES", "GoldCase"]

ROWS = min(generate.ROWS, 25_000)
GOLD = {"column": "gold"}
_WORDS = [
    "refund",
    "policy",
    "order",
    "customer",
    "account",
    "invoice",
    "shipping",
    "delivery",
    "item",
    "price",
    "total",
    "answer",
    "model",
    "café",
    "naïve",
]
_NUMBER = re.compile(r"(?<![0-9A-Za-z_)])[-+]?\$?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?")
_LETTER = re.compile(r"(?<!\w)([A-D])(?!\w)")
_SAID = re.compile(r"(?i)the answer is (\S+)")


@dataclass(frozen=True)
class GoldCase:
    """A check, the rollouts that it scores, and the loop.

    Attributes:
        check: The check as a spec has it.
        kind: The kind of text; see ``texts_of``.
        columns: What draws the columns that the check reads, given a text, its number and a generator.
        score: The score of a row, given its text and the columns.
        reason: Why a row fails.
        rows: How many rows are scored.
    """

    check: dict[str, Any]
    kind: str
    columns: dict[str, Callable[[str, int, random.Random], Any]]
    score: Callable[..., float]
    reason: Callable[..., str]
    rows: int = ROWS

    def rollouts(self, seed: int) -> dict[str, list[Any]]:
        rng = random.Random(seed)
        drawn = texts_of(self.kind, self.rows, seed)
        drawn_columns = {
            name: [draw(text, at, rng) for at, text in enumerate(drawn)] for name, draw in self.columns.items()
        }
        return {"completion": drawn, **drawn_columns}


def texts_of(kind: str, count: int, seed: int) -> list[str]:
    """Return texts: a few words, a list, a solution, or one of the kinds of ``texts``, of 1.3 kB."""
    rng = random.Random(seed)
    if kind == "short":
        return [
            f"{rng.choice(('', ' '))}{' '.join(rng.sample(_WORDS, 3)).title()} {rng.randrange(10**6)}\n"
            for _ in range(count)
        ]
    if kind == "list":
        return [", ".join([*rng.sample(_WORDS, rng.randrange(2, 6)), f"n{rng.randrange(10**6)}"]) for _ in range(count)]
    if kind == "solution":
        return [_solution(rng) for _ in range(count)]
    return list(texts(kind, count, seed))


def _solution(rng: random.Random) -> str:
    value = rng.randrange(100_000)
    said = (
        rf"So it is \boxed{{{value}}}.",
        f"#### {value}",
        f"The answer is ${value:,}.",
        f"The answer is {rng.choice('ABCD')}",
    )
    step = f"First we take {rng.randrange(99)} + {rng.randrange(99)} of each {rng.choice(_WORDS)}, and then we see. "
    return step * rng.randrange(1, 6) + rng.choice(said)


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


def _items(text: str) -> list[str]:
    return [item for part in text.split(",") if (item := part.strip())]


def _share_f1(text: str, gold: list[str]) -> float:
    items = _items(text)
    return 2 * (Counter(items) & Counter(gold)).total() / (len(items) + len(gold))


def _last(pattern: re.Pattern[str]) -> Callable[[str], str | None]:
    def find(text: str) -> str | None:
        found = pattern.findall(text)
        return found[-1].strip() if found else None

    return find


def _last_line(text: str) -> str | None:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), None)


def _after(text: str) -> str | None:
    _, mark, rest = text.rpartition("####")
    return rest.strip() if mark else None


_SCHEMA = {
    "type": "object",
    "required": ["answer", "score"],
    "properties": {"answer": {"type": "string"}, "score": {"type": "integer"}, "tags": {"type": "array"}},
}
_JSON_SCHEMA = {"schema": lambda text, at, rng: json.dumps({**_SCHEMA, "maxProperties": 5 + at})}


def _validator(schema: str) -> Any:
    import jsonschema_rs

    return jsonschema_rs.validator_for(json.loads(schema), offline=True)


def _fits(text: str, schema: str) -> float:
    """Compile the schema whatever the text is, as the check does: a row whose schema is not valid has no gold, and an error."""
    validator, value = _validator(schema), parsed(text)
    return float(value is not ... and validator.is_valid(value))


def _violations(text: str, schema: str) -> str:
    value = parsed(text)
    return "" if value is ... else "; ".join(one.message for one in _validator(schema).iter_errors(value))


def _equals_json(text: str, gold: str) -> float:
    value = parsed(text)
    return float(value is not ... and value == json.loads(gold))


def _json_gold(text: str, at: int, rng: random.Random) -> str:
    value = parsed(text)
    return json.dumps({"score": at} if value is ... or rng.random() < 0.5 else value)


def _similar(text: str, gold: str) -> float:
    from rapidfuzz.distance import Indel

    return Indel.normalized_similarity(text, gold)


# ── cases ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _of_gold(
    kind: str, columns: Any, score: Callable[..., float], reason: Callable[..., str], **check: Any
) -> GoldCase:
    return GoldCase({"value": GOLD, **check}, kind, columns, score, reason)


def _step_case(step: Any, kind: str, find: Callable[[str], str | None]) -> GoldCase:
    def gold(text: str, rng: random.Random) -> str:
        return find(text) or f"none {rng.random()}"

    def score(text: str, gold: str) -> float:
        found = find(text)
        return float(found is not None and found.strip() == gold.strip())

    def reason(_: str, gold: str) -> str:
        return f"does not equal {_quoted(gold)}"

    return _of_gold(kind, _half(gold), score, reason, type="equals", caseSensitive=True, on=[step])


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


def _list_case(how: str, score: Callable[..., float]) -> GoldCase:
    check = {"type": "list_equals", "as": how}
    return _of_gold(
        "list", _ITEMS, score, lambda _, gold: f"does not have the items {', '.join(gold)} ({how})", **check
    )


def _number_reason(text: str, *expected: Any) -> str:
    return f"the number is {last_number(text)}, expected {expected}"


_OTHERS = {
    "number": _of_gold("solution", _VALUE, _is_number, _number_reason, type="number"),
    "number, a few words": _of_gold("short", _VALUE, _is_number, _number_reason, type="number"),
    "number_range, bounds from columns": GoldCase(
        {"type": "number_range", "min": {"column": "low"}, "max": {"column": "high"}},
        "solution",
        _BOUNDS,
        _in_range,
        _number_reason,
    ),
    "count of words, bounds from columns": GoldCase(
        {"type": "count", "of": "words", "min": {"column": "low"}, "max": {"column": "high"}},
        "think",
        _COUNTS,
        lambda text, low, high: float(low <= len(text.split()) <= high),
        lambda text, *bounds: f"number of words: {len(text.split())}, expected {bounds}",
    ),
    "choice": _of_gold("solution", _LETTERS, _is_choice, lambda text, gold: f"the choice is not {gold}", type="choice"),
    "regex": GoldCase(
        {"type": "regex", "pattern": GOLD},
        "think",
        _PATTERN,
        lambda text, gold: float(re.search(gold, text) is not None),
        lambda _, gold: f"does not match the pattern {_quoted(gold)}",
        rows=min(ROWS, 2_500),
    ),
    "list_equals": _list_case("list", lambda text, gold: float(_items(text) == gold)),
    "list_equals, set": _list_case("set", lambda text, gold: float({*_items(text)} == {*gold})),
    "list_equals, multiset": _list_case("multiset", lambda text, gold: float(Counter(_items(text)) == Counter(gold))),
    "list_equals, f1": _list_case("f1", _share_f1),
    "similarity": _of_gold(
        "short",
        _WHOLE,
        _similar,
        lambda text, gold: f"similarity {_similar(text, gold):.2f} to {gold!r}",
        type="similarity",
    ),
    "json_schema": GoldCase(
        {"type": "json_schema", "schema": {"column": "schema"}},
        "json",
        _JSON_SCHEMA,
        _fits,
        _violations,
        rows=min(ROWS, 10_000),
    ),
    "json_match": _of_gold("json", {"gold": _json_gold}, _equals_json, lambda *_: "differs", type="json_match"),
}
_STEPS = {
    "boxed": ("boxed", "solution", boxed),
    "line": ({"line": "last"}, "chat", _last_line),
    "tag": ({"tag": "answer"}, "think", tag),
    "after": ({"after": "####"}, "solution", _after),
    "regex": ({"regex": r"(?i)the answer is (\S+)"}, "solution", _last(_SAID)),
    "number": ("number", "solution", last_number),
    "lower": ("lower", "think", str.lower),
    "upper": ("upper", "think", str.upper),
    "casefold": ("casefold", "think", str.casefold),
    "strip": ("strip", "think", str.strip),
    "whitespace": ("whitespace", "think", lambda text: " ".join(text.split())),
    "tail": ({"tail": 100}, "think", lambda text: text[-100:]),
}

CASES: dict[str, GoldCase] = {
    **{f"{name}, a few words": case for name, case in _phrase_cases("short").items()},
    **{f"{name}, 1.3 kB": case for name, case in _phrase_cases("think").items()},
    **_OTHERS,
    **{f"step {name}": _step_case(*step) for name, step in _STEPS.items()},
}
"""All cases by name."""
