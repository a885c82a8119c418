"""Rollouts to measure on: made by a seed, of the length and the mixture that real ones have."""

import json
import os
import random
import re
import tempfile
from functools import lru_cache
from pathlib import Path

import polars as pl

_WORDS = [
    "the",
    "a",
    "of",
    "to",
    "and",
    "in",
    "is",
    "for",
    "that",
    "with",
    "you",
    "your",
    "refund",
    "policy",
    "order",
    "customer",
    "we",
    "can",
    "will",
    "please",
    "shipping",
    "answer",
    "because",
    "however",
    "therefore",
    "model",
    "system",
    "result",
    "number",
    "table",
    "café",
    "naïve",
    "résumé",
    "–",
    "“quoted”",
    "42",
    "3.14",
    "1,000",
    "https://example.org",
]


def rollouts(count: int, seed: int = 0, words: int = 250) -> pl.DataFrame:
    """Texts of about 1.5 kB, one in five a JSON object, a third with letters beyond ASCII, with expectations of 25 % distinct tasks."""
    rng = random.Random(seed)
    ascii_words = [word for word in _WORDS if word.isascii()]
    tasks = [[{"anyOf": rng.sample(_WORDS, 2)} for _ in range(2)] for _ in range(max(count // 4, 1))]
    rows = []
    for at in range(count):
        pool = _WORDS if at % 3 == 0 else ascii_words
        text = f"{at} " + " ".join(rng.choices(pool, k=rng.randrange(words // 2, words * 3 // 2)))
        if at % 5 == 0:
            text = json.dumps({"answer": text, "score": at, "tags": ["a", "b"]}, ensure_ascii=False)
        metadata = {"expectations": {"mustMention": tasks[at % len(tasks)]}}
        rows.append({"id": at, "completion": text, "metadata": metadata})
    return pl.DataFrame(rows)


def conversations(count: int, seed: int = 0) -> pl.DataFrame:
    """Chats with answers of 100 to 1,500 characters: nine in ten as XML, two in three right, a third beyond ASCII; four an example."""
    rng = random.Random(seed)
    ascii_words = [word for word in _WORDS if word.isascii()]
    rows = []
    for at in range(count):
        gold = rng.randrange(100)
        answer = gold if rng.random() < 2 / 3 else rng.randrange(100)
        size = rng.randrange(100, 1500)
        thought = " ".join(rng.choices(ascii_words if at % 3 else _WORDS, k=size // 4))[: size - 58]
        text = f"<think>\n{thought}\n</think>\n<answer>\n{answer}\n</answer>"
        said = text if rng.random() < 0.9 else f"{thought} The answer is {answer}, of course."
        question = {"role": "user", "content": f"What is {gold - 1} + 1? Think first, then answer."}
        rows.append(
            {
                "prompt": [question],
                "completion": [{"role": "assistant", "content": said}],
                "answer": str(gold),
                "task": "sums",
                "info": {"level": at % 4},
                "example_id": at // 4,
            }
        )
    return pl.DataFrame(rows)


_REAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "alpaca_rollouts.parquet"
ABSENT = "the real texts are not here: ../shared/data/alpaca_rollouts.parquet"
CACHE = Path(os.environ.get("ASSAY_BENCH_CACHE") or Path(tempfile.gettempdir()) / "assay-bench")
"""Where files that are made once are kept, and what npm installs."""
ROWS = int(os.environ.get("ASSAY_BENCH_ROWS") or 500_000)
"""Rows of the largest files; at least 10,000."""
_TOOLS = ("click", "type", "scroll", "drag", "wait", "open_url", "press_key")


@lru_cache(maxsize=1)
def _texts(count: int) -> list[str] | None:
    if not _REAL.exists():
        return None
    texts = pl.read_parquet(_REAL, columns=["completion"])["completion"].drop_nulls().to_list()
    return [f"{at} {texts[at % len(texts)]}" for at in range(count)]


def _phrase(text: str, rng: random.Random) -> str:
    words = text.split()
    start = rng.randrange(len(words))
    return " ".join(words[start : start + 3])


def _call(rng: random.Random, phrase: str) -> dict[str, object]:
    call: dict[str, object] = {"tool": rng.choice(_TOOLS), "action": rng.choice(("left", "right", phrase))}
    where = {"coordinate": [rng.randrange(2000), rng.randrange(1000)]} if rng.random() < 0.5 else {"text": phrase}
    return call | where


def rows_with_verifiers(fn_name: str, params: dict[str, object], count: int, golds: int) -> pl.DataFrame | None:
    """Real texts, each with a verifier as JSON text; half of the golds are the row's own. None where the texts are absent."""
    texts = _texts(count)
    if texts is None:
        return None
    rng = random.Random(0)
    phrases = [_phrase(texts[at], rng) for at in range(golds)]
    calls = [_call(rng, phrase) for phrase in phrases]
    completions, expected = [], []
    for at in range(count):
        mine = at % golds if at % 2 else rng.randrange(golds)
        text, gold = texts[at], phrases[at % golds]
        if fn_name == "exact_match":
            text = f" {phrases[mine]}\n" if at % 3 else text
        elif fn_name == "contains":
            text = text if at % 2 else f"{text[: len(text) // 2]}{gold}{text[len(text) // 2 :]}"
        elif fn_name == "regex_match":
            text = text if at % 2 else f"{text[: len(text) // 2]} {gold} {text[len(text) // 2 :]}"
            gold = rf"\b{re.escape(gold)}\b"
        else:
            gold = calls[at % golds]
            text = json.dumps({**calls[mine], "thought": " ".join(text.split()[:20])})
            text = f"```json\n{text}\n```" if at % 3 else text
        completions.append(text)
        expected.append(json.dumps({"fn_name": fn_name, "expected": gold, "params": params}))
    order = rng.sample(range(count), count)
    frame = pl.DataFrame({"completion": completions, "verifier": expected})
    return frame[order]


def rows_with_expectations(count: int, tasks: int, *, as_text: bool) -> pl.DataFrame | None:
    """Real texts, each with the metadata of one of so many tasks: two things to mention and one not to. None where the texts are absent."""
    texts = _texts(count)
    if texts is None:
        return None
    rng = random.Random(0)
    metadata = []
    for at in range(tasks):
        wanted = [{"anyOf": [_phrase(texts[at], rng), _phrase(texts[-at], rng)]}, {"anyOf": [_phrase(texts[at], rng)]}]
        metadata.append(
            {"expectations": {"mustMention": wanted, "mustNotMention": [{"anyOf": [_phrase(texts[at], rng)]}]}}
        )
    said = [json.dumps(one, ensure_ascii=False) for one in metadata] if as_text else metadata
    frame = pl.DataFrame({"completion": texts, "metadata": [said[at % tasks] for at in range(count)]})
    return frame[rng.sample(range(count), count)]


def real_rollouts(count: int, copies: int = 1) -> Path | None:
    """A parquet file of real texts of about 1.5 kB, each said so many times, one in five in a JSON object. None where they are absent."""
    path = CACHE / f"rollouts-{count}-{copies}.parquet"
    if path.exists():
        return path
    if not _REAL.exists():
        return None
    texts = pl.read_parquet(_REAL, columns=["completion"])["completion"].drop_nulls().to_list()
    completions = []
    for at in range(count):
        text = " ".join([f"{at}", *[texts[at % len(texts)]] * copies])
        if at % 5 == 0:
            text = json.dumps({"answer": text, "score": at, "tags": ["a", "b"]}, ensure_ascii=False)
        completions.append(text)
    CACHE.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}")
    pl.DataFrame({"id": range(count), "completion": completions}).write_parquet(draft)
    return draft.replace(path)
