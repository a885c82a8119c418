"""Graders of promptfoo against promptfoo 0.123.1 itself, on inputs that are drawn."""

import json
import math
import random

import pytest
from grader_inputs import CASES, changed, goldens
from real_promptfoo import asserted, needs_promptfoo

import assay

PIECES = (
    *("{", "}", "[", "]", '"', "'", ":", "//", "# x", "1", "null", "NaN", "\u00a0", "\ufeff", "é", "😀", "{a: 1}"),
    *('{"a":1}', "{'a': 'b'}", "{a: [1,2}", "yes", "~", "1e3", "0x10", "{,}", "a: b", "&x", "*x", "|", ">", "?", "<<"),
)
NAMES = ("search", "Search", "reply", "a", "b", "search ", "é")
ENTRIES = [entry for entry in goldens()["graders"] if entry["name"].startswith("promptfoo.")]

pytestmark = [needs_promptfoo, pytest.mark.xdist_group("promptfoo")]


def gold_of(row, entry, draw):
    """A gold that promptfoo takes as it stands: no template, and not empty."""
    gold = row[entry["gold"]]
    if entry["pool"] == "calls":
        return draw.choices(NAMES, k=draw.randint(1, 4))
    if isinstance(gold, list):
        return [one for one in gold if one] or ["q"]
    if isinstance(gold, str):
        gold = changed(gold, draw) if entry["pool"] != "regex" and draw.random() < 0.4 else gold
        return gold.replace("{{", "{") or "z"
    return gold


def output_of(pool, draw):
    """A text with other pieces, or a message with calls."""
    if isinstance(pool[0]["completion"], list):
        calls = [{"function": {"name": draw.choice(NAMES), "arguments": "{}"}} for _ in range(draw.randint(0, 5))]
        return [{"role": "assistant", "content": "", "tool_calls": calls}]
    text = draw.choice(pool)["completion"]
    for _ in range(draw.choice((0, 0, 1, 2, 4))):
        at = draw.randint(0, len(text))
        text = text[:at] + draw.choice(PIECES) + text[at + draw.randint(0, 2) :]
    return text


def drawn(entry):
    draw, pool = random.Random(f"{entry['name']} {entry['options']}"), goldens()["pools"][entry["pool"]]
    for _ in range(CASES):
        row = {**draw.choice(pool), "completion": output_of(pool, draw)}
        yield row | ({} if entry["gold"] is None else {entry["gold"]: gold_of(row, entry, draw)})


def case(entry, row):
    assertion = {"type": entry["name"].removeprefix("promptfoo."), **entry["options"]}
    assertion |= {} if entry["gold"] is None else {"value": row[entry["gold"]]}
    text = row["completion"]
    return {"assertion": assertion, "providerResponse": {"output": text if isinstance(text, str) else text[0]}}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """The rows of each grader, with what promptfoo answers."""
    rows = {str(entry): [*drawn(entry)] for entry in ENTRIES}
    cases = {str(entry): [case(entry, row) for row in rows[str(entry)]] for entry in ENTRIES}
    found = asserted(cases, tmp_path_factory.mktemp("promptfoo"))
    return {name: (rows[name], found[name]) for name in rows}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry['name']} {json.dumps(entry['options'])}"[:60])
def test_promptfoo_gives_the_same_score(entry, answers):
    rows, answered = answers[str(entry)]
    scores = [answer["score"] for answer in answered]
    check = {"id": "g", "type": "grader", "name": entry["name"], "options": entry["options"]}
    check |= {} if entry["gold"] is None else {"value": {"column": entry["gold"]}}
    found = assay.score(rows, {"id": "v", "checks": [check]})["check/v/g"].to_list()
    near = 1e-12 if entry["name"] == "promptfoo.bleu" else 0.0
    pairs = zip(rows, found, scores, strict=True)
    differ = [pair for pair in pairs if not math.isclose(pair[1], pair[2], rel_tol=near, abs_tol=0.0)]
    assert differ == []
