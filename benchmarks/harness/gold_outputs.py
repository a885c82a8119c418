"""Check types of how an output is formed, beside the loop by hand: counts and lengths, JSON, tool calls, instructions, language, mathematics."""
# ruff: noqa: ARG005  (all columns are drawn alike)

import json
import random
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from rapidfuzz import distance, fuzz

from contenders.instructions_loop import share, task_of
from contenders.json_loop import f1
from contenders.language_loop import distinct, drop, hendrycks, inspect, lighteval, overlong, squad
from contenders.spec import parsed
from contenders.tools_loop import SCORES
from harness.gold_case import ROWS, Draw, GoldCase, drawn
from harness.instructions import instructions
from harness.math_pairs import math_pairs
from harness.tool_calls import tools_frame

__all__ = ["OUTPUTS"]

_GOLD = {"column": "gold"}


def _failed(*_: Any) -> str:
    return "is not met"


# ── counts and lengths ──────────────────────────────────────────────────────────────────────────────────────────────────

_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"[.!?]+[\"'”’)\]*_]*(?:\s+|\Z)|[。！？]+")
_BLANK_LINES = re.compile(r"\n[ \t]*\n")
_BULLET = re.compile(r"^[ \t]*[-*+][ \t]", re.MULTILINE)
_NUMBERED = re.compile(r"^[ \t]*\d+[.)][ \t]", re.MULTILINE)
_HEADING = re.compile(r"^#{1,6}[ \t]", re.MULTILINE)
_ENDING = re.compile(r"\b\w+ing\b")


def _sentences(text: str) -> int:
    *_, rest = pieces = _SENTENCE.split(text.strip())
    return len(pieces) - (not rest)


def _pieces(pieces: list[str]) -> int:
    return sum(1 for piece in pieces if piece.strip())


def _members(text: str) -> int:
    value = parsed(text)
    return len(value) if isinstance(value, list | dict) else -1


_COUNTS: dict[str, tuple[Any, str, int, Callable[[str], int]]] = {
    "chars": ("chars", "chat", 1_300, len),
    "bytes": ("bytes", "chat", 1_300, lambda text: len(text.encode())),
    "words": ("words", "chat", 200, lambda text: len(text.split())),
    "word tokens": ("word_tokens", "chat", 200, lambda text: len(_WORD.findall(text))),
    "sentences": ("sentences", "chat", 15, _sentences),
    "lines": ("lines", "chat", 8, lambda text: _pieces(text.split("\n"))),
    "paragraphs": ("paragraphs", "chat", 5, lambda text: _pieces(_BLANK_LINES.split(text))),
    "bullets": ("bullets", "chat", 2, lambda text: len(_BULLET.findall(text))),
    "numbered": ("numbered", "chat", 2, lambda text: len(_NUMBERED.findall(text))),
    "headings": ("headings", "chat", 1, lambda text: len(_HEADING.findall(text))),
    "items": ("items", "json", 7, _members),
    "a phrase": ({"text": "the"}, "chat", 15, lambda text: text.lower().count("the")),
    "a pattern": ({"pattern": r"\b\w+ing\b"}, "chat", 2, lambda text: len(_ENDING.findall(text))),
}


def _count_case(of: Any, kind: str, least: int, count: Callable[[str], int]) -> GoldCase:
    return GoldCase(
        {"type": "count", "of": of, "min": least},
        drawn(kind, {}),
        lambda text: float(count(text) >= least),
        lambda text: f"number of {of}: {count(text)}, expected at least {least}",
    )


def _cased(kind: str, form: Callable[[str], str]) -> Draw:
    """Texts of which every other one is in a case throughout."""

    def draw(count: int, seed: int) -> dict[str, list[str]]:
        rng, texts = random.Random(seed), drawn(kind, {})(count, seed)["completion"]
        return {"completion": [form(text) if rng.random() < 0.5 else text for text in texts]}

    return draw


def _case_case(name: str, holds: Callable[[str], bool], form: Callable[[str], str]) -> GoldCase:
    check = {"type": "case", "is": name}
    return GoldCase(check, _cased("chat", form), lambda text: float(holds(text)), _failed)


_LENGTHS = {"gold": lambda text, at, rng: rng.randrange(3_000) + at / 1e6}
_SHAPES = {
    **{f"count of {name}": _count_case(*case) for name, case in _COUNTS.items()},
    "case, upper": _case_case("upper", str.isupper, str.upper),
    "case, lower": _case_case("lower", str.islower, str.lower),
    "case, title": _case_case("title", str.istitle, str.title),
    "length_penalty": GoldCase(
        {"type": "length_penalty", "max": 2_000, "buffer": 1_000},
        drawn("chat", {}),
        lambda text: overlong(len(text), 2_000, 1_000),
        lambda text: f"number of characters: {len(text)}, expected at most 1000",
    ),
    "length_penalty, words": GoldCase(
        {"type": "length_penalty", "max": 300, "buffer": 200, "unit": "words"},
        drawn("chat", {}),
        lambda text: overlong(len(text.split()), 300, 200),
        lambda text: f"number of words: {len(text.split())}, expected at most 100",
    ),
    "length_penalty, a column": GoldCase(
        {"type": "length_penalty", "max": 2_000, "buffer": 1_000, "unit": _GOLD},
        drawn("chat", _LENGTHS),
        lambda _, length: overlong(length, 2_000, 1_000),
        lambda _, length: f"length: {length}, expected at most 1000",
    ),
    "repetition": GoldCase(
        {"type": "repetition", "n": 3},
        drawn("chat", {}),
        lambda text: distinct(text, 3),
        lambda text: f"{1 - distinct(text, 3):.1%} of the sequences of 3 words repeat an earlier one",
    ),
}

# ── texts ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _either(text: str, at: int, rng: random.Random) -> str:
    return text.replace(" ", "  ") if rng.random() < 0.5 else f"the other {at}"


def _normalized(name: str, form: Callable[[str], str]) -> GoldCase:
    return GoldCase(
        {"type": "equals", "value": _GOLD, "normalize": name, "caseSensitive": True},
        drawn("short", {"gold": _either}),
        lambda text, gold: float(form(text).strip() == form(gold).strip()),
        lambda _, gold: f"does not equal {gold!r}",
    )


def _near(text: str, at: int, rng: random.Random) -> str:
    words = text.split()
    rng.shuffle(words)
    return " ".join(words[:2] + [f"other {at}"] * (rng.random() < 0.5))


def _similar(metric: str, score: Callable[[str, str], float]) -> GoldCase:
    return GoldCase(
        {"type": "similarity", "metric": metric, "value": _GOLD},
        drawn("short", {"gold": _near}),
        score,
        lambda text, gold: f"similarity {score(text, gold):.2f} to {gold!r}",
    )


def _edits(name: str) -> Callable[[str, str], float]:
    return getattr(distance, name).normalized_similarity


def _tokens(name: str) -> Callable[[str, str], float]:
    scorer = getattr(fuzz, name)
    return lambda text, gold: scorer(text, gold) / 100.0


def _detected(text: str) -> str | None:
    import langdetect

    langdetect.DetectorFactory.seed = 0
    try:
        return langdetect.detect(text)
    except langdetect.LangDetectException:
        return None


def _expectations(text: str, at: int, rng: random.Random) -> str:
    words = text.split()

    def phrase() -> str:
        start = rng.randrange(len(words))
        return " ".join(words[start : start + 3])

    mention = [{"anyOf": [phrase(), f"other {at}"]}, {"anyOf": [f"none {at}" if rng.random() < 0.5 else phrase()]}]
    avoid = [{"anyOf": [f"never {at}" if rng.random() < 0.5 else phrase()]}]
    return json.dumps({"expectations": {"mustMention": mention, "mustNotMention": avoid}}, ensure_ascii=False)


def _met(text: str, metadata: str) -> float:
    expected, low = json.loads(metadata)["expectations"], text.lower()
    met = [any(phrase.lower() in low for phrase in entry["anyOf"]) for entry in expected["mustMention"]]
    met += [not any(phrase.lower() in low for phrase in entry["anyOf"]) for entry in expected["mustNotMention"]]
    return sum(met) / len(met)


def _followed(text: str, _: str, idents: list[str], kwargs: list[Any]) -> float:
    return share(text, task_of(idents, kwargs), loose=False)


_TEXTS = {
    **{f"equals, {form.__name__}": _normalized(form.__name__, form) for form in (squad, inspect, drop, lighteval)},
    "equals, latex": _normalized("math", hendrycks),
    "equals, hendrycks": _normalized("hendrycks", hendrycks),
    "similarity, levenshtein": _similar("levenshtein", _edits("Levenshtein")),
    "similarity, osa": _similar("osa", _edits("OSA")),
    "similarity, lcs": _similar("lcs", _edits("LCSseq")),
    "similarity, jaro_winkler": _similar("jaro_winkler", distance.JaroWinkler.similarity),
    "similarity, token_sort": _similar("token_sort", _tokens("token_sort_ratio")),
    "similarity, token_set": _similar("token_set", _tokens("token_set_ratio")),
    "language": GoldCase(
        {"type": "language", "is": "ru"},
        drawn("scripts", {}),
        lambda text: float(_detected(text) in (None, "ru")),
        lambda text: f"the language is {_detected(text)}, ru wanted",
        rows=min(ROWS, 1_000),
    ),
    "task_expectations": GoldCase(
        {"type": "task_expectations"}, drawn("chat", {"metadata": _expectations}), _met, _failed
    ),
    "ifeval": GoldCase({"type": "ifeval"}, instructions, _followed, _failed),
}

# ── JSON ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


_KEYS = ["answer", "score"]


def _has(text: str, keys: list[str]) -> float:
    value = parsed(text)
    return float(isinstance(value, dict) and all(key in value for key in keys))


def _without(text: str, keys: list[str]) -> str:
    value = parsed(text)
    return (
        f"missing keys: {[key for key in keys if key not in value]}" if isinstance(value, dict) else "not a JSON object"
    )


def _schema(_: str, at: int, rng: random.Random) -> str:
    return json.dumps({"required": _KEYS + [f"key {at}"] * (rng.random() < 0.5), "title": f"Task {at}"})


def _json_gold(text: str, at: int, rng: random.Random) -> str:
    value = parsed(text)
    return json.dumps({"score": at} if value is ... else {**value, "score": rng.choice((at, value.get("score")))})


_JSON = {
    "json_valid": GoldCase(
        {"type": "json_valid"}, drawn("json", {}), lambda text: float(parsed(text) is not ...), _failed
    ),
    "json_keys": GoldCase(
        {"type": "json_keys", "requiredKeys": _KEYS},
        drawn("json", {}),
        lambda text: _has(text, _KEYS),
        lambda text: _without(text, _KEYS),
    ),
    "expected_output_schema": GoldCase(
        {"type": "expected_output_schema"},
        drawn("json", {"expected_output_schema": _schema}),
        lambda text, schema: _has(text, json.loads(schema)["required"]),
        lambda text, schema: _without(text, json.loads(schema)["required"]),
    ),
    "json_match, f1": GoldCase(
        {"type": "json_match", "value": _GOLD, "score": "f1"},
        drawn("json", {"gold": _json_gold}),
        lambda text, gold: f1({"completion": text, "gold": gold}),
        _failed,
    ),
}

# ── tool calls ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _tools_case(name: str, columns: tuple[str, ...], **check: Any) -> GoldCase:
    return GoldCase(
        check,
        lambda count, seed: tools_frame(count, seed).select(columns).rename({columns[0]: "completion"}),
        lambda *row: SCORES[name](dict(zip(columns, row, strict=True))),
        _failed,
    )


_BFCL = {"type": "tool_calls", "value": _GOLD, "arguments": "bfcl"}
_EXPECTED = {"column": "expected"}
_BESIDE = ("completion", "expected")
_TOOLS = {
    "tool_calls": _tools_case("exact", _BESIDE, type="tool_calls", value=_EXPECTED),
    "tool_calls, share": _tools_case("share", _BESIDE, type="tool_calls", value=_EXPECTED, score="share"),
    "tool_calls, bfcl": _tools_case("bfcl", ("completion", "gold", "tools"), **_BFCL),
    "tool_calls, bfcl, text": _tools_case("bfcl, text", ("said", "gold", "tools"), **_BFCL, format="tags"),
    "tool_f1": _tools_case("f1", _BESIDE, type="tool_f1", value=_EXPECTED),
    "tool_trajectory": _tools_case("one call", ("completion",), type="tool_trajectory", min=1, max=1),
    "tool_trajectory, a sequence": _tools_case("sequence", _BESIDE, type="tool_trajectory", sequence=_EXPECTED),
    "tool_valid": _tools_case("tool_valid", ("completion", "tools"), type="tool_valid"),
}

# ── mathematics ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@cache
def _math_verify() -> Any:
    import math_verify

    return math_verify, [math_verify.LatexExtractionConfig(boxed_match_priority=0), math_verify.ExprExtractionConfig()]


def _math(text: str, gold: str) -> float:
    package, config = _math_verify()
    if text.strip() == gold.strip():
        return 1.0
    answer, wanted = (package.parse(f"\\boxed{{{part.strip()}}}", config) for part in (text, gold))
    return float(package.verify(wanted, answer))


def _pairs(count: int, seed: int) -> dict[str, list[str]]:
    answers, golds = zip(*math_pairs(seed, count), strict=True)
    return {"completion": [*answers], "gold": [*golds]}


_MATHEMATICS = {
    "math": GoldCase(
        {"type": "math", "value": _GOLD},
        _pairs,
        _math,
        lambda text, gold: f"{text!r} is not mathematically equal to {gold!r}",
        rows=min(ROWS, 300),
    )
}

OUTPUTS: dict[str, GoldCase] = {**_SHAPES, **_TEXTS, **_JSON, **_TOOLS, **_MATHEMATICS}
"""The cases by name."""
