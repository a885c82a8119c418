"""The spec language to be measured: texts whose parts steps find, golds that rows bring, and a spec for each step and kind of reference."""

import json
import random
import re
import zlib
from pathlib import Path

import polars as pl

from harness.draws import SEED
from harness.generate import CACHE, kept
from harness.texts import texts

__all__ = ["NESTED", "REFERENCES", "SHAPES", "STEPS", "language_file", "spec_file"]

_GOLD_ROWS = 8
"""Rows with the same gold."""


def _reads(*steps: object) -> dict[str, object]:
    return {"checks": [{"type": "contains", "value": "7", "on": list(steps)}]}


STEPS = {
    "afterThink": _reads("afterThink"),
    "think": _reads("think"),
    "tag": _reads({"tag": "answer"}),
    "boxed": _reads("boxed"),
    "after": _reads({"after": "####"}),
    "after, to the end": _reads({"after": "</think>", "to": "end"}),
    "line": _reads({"line": "last"}),
    "fence": _reads("fence"),
    "json": _reads({"tag": "data"}, {"json": {"path": "value"}}),
    "regex": _reads({"regex": r"answer is \((\w)\)"}),
    "number": _reads("number"),
    "numbers": {"checks": [{"type": "list_equals", "value": ["7"], "as": "subset", "on": ["numbers"]}]},
    "choice": {"checks": [{"type": "choice", "value": "B", "on": ["afterThink"]}]},
    "split": {"checks": [{"type": "list_equals", "value": ["7"], "as": "subset", "on": [{"after": "####"}]}]},
    "lower": _reads("lower"),
    "upper": _reads("upper"),
    "strip": _reads("strip"),
    "remove": _reads({"remove": [r"\d+,"]}),
    "replace": _reads({"replace": {"old": ",", "new": ""}}),
    "map": _reads({"regex": r"answer is \((\w)\)"}, {"map": {"A": "7", "B": "8"}, "default": "9"}),
    "normalize": _reads({"tag": "answer"}, {"normalize": "squad"}),
    "firstOf": _reads({"firstOf": [[{"tag": "result"}], ["boxed"]]}),
}
"""A check for each step."""


def _compares(kind: str, **params: object) -> dict[str, object]:
    return {"checks": [{"type": kind, **params}]}


_ANSWER = {"column": "answer"}
_LAST = [{"after": "####"}]
REFERENCES = {
    "contains, a column": _compares("contains", value=_ANSWER),
    "contains as written, a column": _compares("contains", value=_ANSWER, caseSensitive=True),
    "starts_with, a column": _compares("starts_with", value=_ANSWER, on=[{"tag": "answer"}]),
    "equals, a column": _compares("equals", value={"column": "n"}, on=_LAST),
    "equals by squad, a column": _compares("equals", value=_ANSWER, on=[{"tag": "answer"}], normalize="squad"),
    "number, a column": _compares("number", value={"column": "n"}, on=_LAST),
    "choice, a column": _compares("choice", value={"column": "letter"}),
    "contains, a template": _compares("contains", value={"template": "#### {n}"}),
    "contains, JSON text": _compares("contains", value={"column": "metadata.gold"}),
    "contains, a list": _compares("contains", value={"column": "golds"}),
    "contains_any, a list": _compares("contains_any", values={"column": "golds"}),
    "contains_all, a list": _compares("contains_all", values={"column": "golds"}, score="share"),
    "list_equals, a list": _compares("list_equals", value={"column": "golds"}, on=[{"tag": "answer"}], **{"as": "set"}),
    "regex, a column": _compares("regex", pattern={"column": "pattern"}),
    "min_length, a column": _compares("min_length", value={"column": "n"}),
    "when, a column": {
        "checks": [{"type": "contains", "value": "refund", "when": {"column": "letter", "in": ["A", "B"]}}]
    },
}
"""A check for each kind of reference."""

SHAPES = {
    "repetition": _compares("repetition"),
    "length_penalty, words": _compares("length_penalty", max=250, buffer=100, unit="words"),
    "length_penalty, a column": _compares("length_penalty", max=80_000, buffer=40_000, unit={"column": "n"}),
}
"""A check for what trainers take off for loops and length."""

NESTED = {
    "combine": "mean",
    "checks": [
        {
            "type": "all_of",
            "checks": [
                {"type": "contains", "value": _ANSWER},
                {"type": "number", "value": {"column": "n"}, "on": _LAST},
                {
                    "type": "any_of",
                    "checks": [
                        {"type": "equals", "value": _ANSWER, "on": [{"tag": "answer"}]},
                        {"type": "equals", "value": {"column": "n"}, "on": ["boxed"]},
                        {"type": "choice", "value": {"column": "letter"}, "on": ["afterThink"]},
                    ],
                },
            ],
        },
        {
            "type": "at_least",
            "k": 2,
            "checks": [
                {"type": "starts_with", "value": "<think>"},
                {"type": "contains_any", "values": ["refund", "policy"]},
                {"type": "count", "of": "lines", "max": 40},
                {"type": "min_length", "value": 200},
            ],
        },
        {
            "type": "none_of",
            "checks": [
                {"type": "contains", "value": "as an AI"},
                {"type": "regex", "pattern": r"\bTODO\b"},
                {"type": "ends_with", "value": "?"},
            ],
        },
        {"type": "max_length", "value": 4000, "penalty": 0.2},
        {"type": "contains", "value": "</think>", "gate": True},
    ],
}
"""Twelve leaves within groups, a penalty and a gate."""


def spec_file(name: str, spec: dict[str, object]) -> Path:
    """Return the file of a spec; its id is its name."""
    path = CACHE / f"language-{re.sub(r'[^a-zA-Z]+', '-', name)}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"id": name, **spec}), "utf-8")
    return path


def language_file(rows: int) -> Path:
    """Return texts of about 1.4 kB with thoughts, tags, a box, a fence and a last line, and golds for eight rows each, shuffled."""
    edition = zlib.crc32(Path(__file__).read_bytes())
    return kept(f"language-{SEED}-{rows}-{edition:08x}", lambda path: _frame(rows).write_parquet(path))


def _frame(rows: int) -> pl.DataFrame:
    rng = random.Random(SEED)
    words = [f"{rng.choice('BCDFGKLMPRST')}{rng.choice('aeiou')}{at}" for at in range(4_000)]
    tasks = [
        {
            "answer": (gold := " ".join(rng.sample(words, rng.choice((1, 1, 2, 3))))),
            "n": rng.randrange(100, 100_000),
            "letter": rng.choice("ABCD"),
            "golds": [gold, rng.choice(words)],
            "metadata": json.dumps({"gold": gold, "task": at}),
            "pattern": rf"\b{re.escape(gold)}\b",
        }
        for at in range(-(-rows // _GOLD_ROWS))
    ]
    made = []
    for at, body in enumerate(texts("chat", rows, SEED)):
        task = tasks[at // _GOLD_ROWS]
        right = task if rng.random() < 0.5 else rng.choice(tasks)
        made.append({"completion": _text(body, right), **task})
    rng.shuffle(made)
    return pl.DataFrame(made)


def _text(body: str, right: dict[str, object]) -> str:
    half = len(body) // 2
    answer, n = right["answer"], right["n"]
    value = json.dumps({"value": n, "unit": "kg"})
    return (
        f"<think>\n{body[:half]}\n</think>\n{body[half:]}\n<answer> {answer} </answer>\n<data>{value}</data>\n```\n{n}\n```\n"
        f"So it is \\boxed{{{n}}}: the answer is ({right['letter']}).\n#### {n}"
    )
