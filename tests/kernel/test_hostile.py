"""Hostile texts, drawn by a seed: the kernel, the columns and the row loop say the same of each.

``ASSAY_FUZZ_KERNEL=1000000`` draws a million.
"""

import os
import random

import polars as pl
import pytest
from cases import sized
from fuzz_thresholds import PATTERNS, WORDS, completions, differences
from patterns import accepted

import assay
from assay import load_verifier
from assay.checks.base import facts_of
from assay.kernel.library import VARIABLE, answers, kernel_state
from assay.scoring.reference import score_rows

SEED = os.environ.get("ASSAY_FUZZ_SEED", "0")
TEXTS = int(os.environ.get("ASSAY_FUZZ_KERNEL", sized("20000", "4000")))
BATCH = 2000

PHRASES = (*WORDS, "The", "ki", "i", "ix", "naïve", "中", "a b c", "\n", "refund policy", "é")
ASKED = (
    *filter(accepted, PATTERNS),
    *(
        r"\b\d+(?:\.\d+)?\b",
        r"(?i)\bin (?:conclusion|summary)\b",
        r"\bTODO\b",
        r"(?m)^[-*] ",
        r"[^\s]  +[^\s]|中$",
        r"\s$",
    ),
    *(
        r"\b\w{6,}\b",
        r"(?i)(?:maybe|perhaps|might)\b",
        r"(?s)\A[^z].*z",
        r"é{2}",
        r"[A-Z][a-z]+ [A-Z]",
        r"\w+@\w+\.\w+",
    ),
    *(r"[\[{].{3,9}[\]}]", r"\S{20,}", r"[؀-ۿ]", r"(?a)\W\w", r"(?i)[^a-k]k", r"\A\s*[{\[]", r"\d{3}", "“.*”|‘.*’"),
)


def draw_check(rng):
    case = {"caseSensitive": rng.random() < 0.3, "word": rng.random() < 0.3}
    kind = rng.choice(("phrase", "phrases", "edge", "regex", "regex", "length", "json_valid", "json_keys"))
    if kind == "phrase":
        return {"type": rng.choice(("contains", "not_contains")), "value": rng.choice(PHRASES), **case}
    if kind == "phrases":
        several = rng.sample(PHRASES, rng.randint(1, 4))
        return {"type": rng.choice(("contains_any", "contains_all")), "values": several, **case}
    if kind == "edge":
        return {"type": rng.choice(("starts_with", "ends_with")), "value": rng.choice(PHRASES)}
    if kind == "regex":
        return {"type": "regex", "pattern": rng.choice(ASKED)}
    if kind == "length":
        return {"type": rng.choice(("min_length", "max_length")), "value": rng.choice((0, 1, 3, 20, 60))}
    return {"type": kind} | ({"keys": rng.sample(("a", "b", "city", "ä", "\u212a"), 2)} if kind == "json_keys" else {})


def draw_texts(rng, count):
    texts = completions(rng, count)
    for at in rng.sample(range(count), count // 4):  # longer than a vector, and dense in what asks
        texts[at] = rng.choice(("", " ", "İ", "\u212a", "k")).join(
            text or "" for text in rng.choices(texts, k=rng.randint(2, 9))
        )
    return texts


@pytest.mark.skipif("no kernel" in kernel_state(), reason=kernel_state())
def test_the_kernel_the_columns_and_the_row_loop_agree_on_hostile_texts(monkeypatch):
    in_kernel = 0
    for number in range(TEXTS // BATCH):
        rng = random.Random(f"{SEED}/{number}")
        verifier = load_verifier({"checks": [{"id": f"c{at}", **draw_check(rng)} for at in range(6)]})
        rows = pl.DataFrame({"completion": pl.Series(draw_texts(rng, BATCH), dtype=pl.String)})
        expected = score_rows(rows.to_dicts(), [verifier])
        for setting in "01":
            monkeypatch.setenv(VARIABLE, setting)
            assert differences(assay.compile(verifier, rows).score(rows), expected) == [], (SEED, number, setting)
        in_kernel += sum(answers(facts_of(spec.check)) for spec in verifier.checks)
    assert in_kernel > TEXTS // BATCH * 3
