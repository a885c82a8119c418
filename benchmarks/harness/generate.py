"""Files to measure on, made once and kept: drawn texts, golds, conversations, and the real texts where they are at hand."""

import json
import os
import random
import re
import tempfile
import zlib
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import islice
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from harness.draws import SEED, FunctionDraw, SpecDraw
from harness.texts import texts

__all__ = [
    "ABSENT",
    "CACHE",
    "GROUP",
    "ROWS",
    "conversations_file",
    "drawn_file",
    "functions_file",
    "kept",
    "real_functions_file",
    "real_rollouts",
]

CACHE = Path(os.environ.get("ASSAY_BENCH_CACHE") or Path(tempfile.gettempdir()) / "assay-bench")
"""The folder of these files, of results, and of what npm installs."""

ROWS = int(os.environ.get("ASSAY_BENCH_ROWS") or 500_000)
"""Rows of the usual file; others have a multiple or a part of it."""

GROUP = 50_000
"""Rows in a row group. Fewer and larger groups make the scan of the column serial, and a run looks faster beside it."""

_REAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "alpaca_rollouts.parquet"
ABSENT = "the real texts are not here: ../shared/data/alpaca_rollouts.parquet"

_SCHEMA = pa.schema({"id": pa.int64(), "completion": pa.large_string()})
_TOOLS = ("click", "type", "scroll", "drag", "wait", "open_url", "press_key")
_EDITION = zlib.crc32(b"".join(Path(__file__).with_name(f"{name}.py").read_bytes() for name in ("generate", "texts")))
"""Changes with the code that makes the files, so that no file outlives it."""


def kept(name: str, make: Callable[[Path], object], ending: str = "parquet") -> Path:
    """Return a file of the cache by its name, made where it is not there."""
    path = CACHE / f"{name}-{_EDITION:08x}.{ending}"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}")
        make(draft)
        draft.replace(path)
    return path


# ── specs ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def drawn_file(draw: SpecDraw, rows: int = ROWS) -> Path:
    """Return the texts of a draw; with expectations for each eight rows where the spec reads them."""
    name = f"texts-{draw.kind}-{SEED}-{rows}"
    base = kept(name, lambda path: _columns(list(texts(draw.kind, rows, SEED))).write_parquet(path))
    form = ("-json" if draw.number % 2 else "-struct") if draw.reads_tasks else ""

    def make(path: Path) -> None:
        frame = pl.read_parquet(base)
        if form:
            tasks = _tasks(frame["completion"].head(max(rows // 8, 1)).to_list(), random.Random(SEED))
            frame = frame.with_columns(_metadata(tasks, rows, is_text=form == "-json"))
        frame.write_parquet(path, row_group_size=GROUP)

    return kept(f"{name}-{GROUP}{form}", make)


def _columns(completions: list[str]) -> pl.DataFrame:
    return pl.DataFrame({"id": range(len(completions)), "completion": completions})


def _tasks(sources: list[str], rng: random.Random) -> list[dict[str, object]]:
    """Make expectations from phrases of texts: two things to mention and one not to."""
    tasks: list[dict[str, object]] = []
    for at, text in enumerate(sources):
        other = sources[-at]
        mention = [{"anyOf": [_phrase(text, rng), _phrase(other, rng)]}, {"anyOf": [_phrase(text, rng)]}]
        avoid = [{"anyOf": [_phrase(rng.choice((text, other)), rng)]}]
        tasks.append({"expectations": {"mustMention": mention, "mustNotMention": avoid}})
    return tasks


def _metadata(tasks: list[dict[str, object]], rows: int, *, is_text: bool) -> pl.Series:
    values = [json.dumps(task, ensure_ascii=False) for task in tasks] if is_text else tasks
    return pl.Series("metadata", [values[at % len(values)] for at in range(rows)])


def _phrase(text: str, rng: random.Random, words: int = 3) -> str:
    every = text.split() or ["nothing"]
    start = rng.randrange(len(every))
    return " ".join(every[start : start + words])


# ── functions ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def functions_file(draw: FunctionDraw, rows: int) -> Path:
    """Return rows that name the function of a draw and bring their golds, in any order; about half of them meet their own."""
    name = f"function-{draw.number}-{SEED}-{rows}"
    return kept(name, lambda path: _function_rows(draw, list(texts(draw.kind, rows, SEED))).write_parquet(path))


def real_functions_file(draw: FunctionDraw, rows: int) -> Path | None:
    """Return the same from real texts. None where they are absent."""
    name = f"function-{draw.function}{''.join(draw.params)}-{draw.is_text}-{rows}"
    if not _REAL.exists():
        return None
    return kept(name, lambda path: _function_rows(draw, _real_texts(0, rows)).write_parquet(path))


def _function_rows(draw: FunctionDraw, completions: list[str]) -> pl.DataFrame:
    rng, rows = random.Random(draw.number), len(completions)
    golds = max(rows // draw.distinct if draw.distinct else 50, 1)
    if draw.function == "task_expectations":
        tasks = _tasks(list(islice(completions, golds)), rng)
        return pl.DataFrame([pl.Series("completion", completions), _metadata(tasks, rows, is_text=draw.is_text)])[
            rng.sample(range(rows), rows)
        ]
    size = {"word": 1, "passage": 30}.get(draw.gold, 3)
    phrases = [_phrase(text, rng, size) for text in completions[:golds]]
    if draw.gold == "word":  # a word of the texts would occur in most of them
        phrases = [f"{phrase}{rng.randrange(1_000)}" for phrase in phrases]
    brought, needed = _golds(draw, phrases, rng)
    asked = [
        {"fn_name": draw.function, "expected": gold} | ({"params": draw.params} if draw.params else {})
        for gold in brought
    ]
    verifiers = [json.dumps(verifier, ensure_ascii=False) for verifier in asked] if draw.is_text else asked
    made = []
    for at, text in enumerate(completions):
        meets = needed[at % golds if rng.random() < 0.5 else rng.randrange(golds)]
        if draw.function == "tool_calls_match":
            call = json.dumps({**meets, "thought": " ".join(text.split()[:20])}, ensure_ascii=False)
            made.append(f"```json\n{call}\n```" if at % 3 else call)
        elif draw.function == "exact_match":
            made.append(f" {meets.upper() if draw.params else meets}\n" if at % 3 else text)
        else:
            half = len(text) // 2
            made.append(f"{text[:half]} {meets} {text[half:]}")
    frame = pl.DataFrame({"completion": made, "verifier": [verifiers[at % golds] for at in range(rows)]})
    return frame[rng.sample(range(rows), rows)]


def _golds(draw: FunctionDraw, phrases: list[str], rng: random.Random) -> tuple[list, list]:
    """Return what rows bring, and for each what a completion needs to have."""
    if draw.function == "tool_calls_match":
        calls = [_call(rng, phrase, always_where=not draw.is_text) for phrase in phrases]
        return calls, calls
    if draw.function != "regex_match":
        return phrases, phrases
    before, after, around = {
        "phrase between word boundaries": (r"\b", r"\b", "{}"),
        "phrase in tags": (r"<answer>\s*", r"\s*</answer>", "<answer> {} </answer>"),
        "phrase after a colon": (r"(?:answer|result)\s*[:=]\s*", r"\b", "answer: {}"),
        "two words in a line": (r"(?m)^.*\b", r"\b.*\d+.*$", "\n{} 7\n"),
    }[draw.gold]
    return [f"{before}{re.escape(phrase)}{after}" for phrase in phrases], [around.format(phrase) for phrase in phrases]


def _call(rng: random.Random, phrase: str, *, always_where: bool) -> dict[str, object]:
    call: dict[str, object] = {"tool": rng.choice(_TOOLS), "action": rng.choice(("left", "right", phrase))}
    if always_where or rng.random() < 0.5:
        return call | {"coordinate": [rng.randrange(2000), rng.randrange(1000)]}
    return call | {"text": phrase}


# ── conversations ───────────────────────────────────────────────────────────────────────────────────────────────────────


def conversations_file(rows: int) -> Path:
    """Return chats with answers of 100 to 1,500 characters: nine in ten as XML, two in three right; four for each example."""
    return kept(
        f"conversations-{SEED}-{rows}", lambda path: _conversations(texts("chat", rows, SEED)).write_parquet(path)
    )


def _conversations(thoughts: Iterable[str]) -> pl.DataFrame:
    rng = random.Random(SEED)
    rows = []
    for at, thought in enumerate(thoughts):
        gold = rng.randrange(100)
        answer = gold if rng.random() < 2 / 3 else rng.randrange(100)
        thinking = thought[: rng.randrange(50, 1450)]
        text = f"<think>\n{thinking}\n</think>\n<answer>\n{answer}\n</answer>"
        content = text if rng.random() < 0.9 else f"{thinking} The answer is {answer}, of course."
        question = {"role": "user", "content": f"What is {gold - 1} + 1? Think first, then answer."}
        rows.append(
            {
                "prompt": [question],
                "completion": [{"role": "assistant", "content": content}],
                "answer": str(gold),
                "task": "sums",
                "info": {"level": at % 4},
                "example_id": at // 4,
            }
        )
    return pl.DataFrame(rows)


# ── real texts ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=1)
def _real_completions() -> list[str]:
    return pl.read_parquet(_REAL, columns=["completion"])["completion"].drop_nulls().to_list()


def _real_texts(first: int, last: int) -> list[str]:
    completions = _real_completions()
    return [f"{at} {completions[at % len(completions)]}" for at in range(first, last)]


def real_rollouts(rows: int, copies: int = 1, group: int = GROUP) -> Path | None:
    """Return real texts of about 1.6 kB, each repeated so many times, one in five in a JSON object. None where they are absent."""

    def text(number: str, body: str) -> str:
        whole = " ".join([number, *[body] * copies])
        if int(number) % 5:
            return whole
        return json.dumps({"answer": whole, "score": int(number), "tags": ["a", "b"]}, ensure_ascii=False)

    def make(path: Path) -> None:
        with pq.ParquetWriter(path, _SCHEMA, compression="zstd") as writer:
            for first in range(0, rows, group):
                last = min(first + group, rows)
                completions = [text(*numbered.split(" ", 1)) for numbered in _real_texts(first, last)]
                table = pa.table({"id": range(first, last), "completion": completions}, schema=_SCHEMA)
                writer.write_table(table, row_group_size=group)

    return kept(f"rollouts-{rows}-{copies}-{group}", make) if _REAL.exists() else None
