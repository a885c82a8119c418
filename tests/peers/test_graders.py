"""Graders against the real functions, on inputs that are drawn: recombined and changed texts and golds of the goldens."""

import gzip
import importlib.util
import json
import math
import random
from functools import cache
from importlib.resources import files

import pytest
from real_graders import REAL

import assay
from assay.checks.graders.table import GRADERS

CASES = 300
PIECES = (
    *(
        " ",
        "\n",
        ".",
        "!",
        ",",
        "$",
        "**",
        "(",
        ")",
        "-",
        "\u00a0",
        "İ",
        "ß",
        "ﬁ",
        "é",
        "½",
        "3²",
        "十二",
        "１２",
        "٣",
        "1,000",
        "1e3",
    ),
    *(
        "nan",
        "inf",
        "the ",
        "An ",
        "\\text{ cm}",
        "\\frac12",
        "\\sqrt",
        "\\boxed{4}",
        "\\boxed 4$",
        "Answer: ",
        "ANSWER: A\n",
        "#### 7",
    ),
    *(
        "<answer>",
        "</answer>",
        "</think>",
        "A",
        "(B)",
        "x/y",
        "3/4",
        "=",
        "0.5",
        "\\%",
        "\0",
        "\t",
        "’",
        "“",
        "\x1c",
        "\u2028",
    ),
)


@cache
def goldens():
    return json.loads(gzip.decompress(files("assay.checks.graders").joinpath("goldens.json.gz").read_bytes()))


def changed(text, draw):
    """A text with a few changes."""
    for _ in range(draw.choice((0, 0, 1, 1, 2, 4))):
        at = draw.randint(0, len(text))
        kind = draw.randrange(5)
        if kind == 0:
            text = text[:at] + draw.choice(PIECES) + text[at:]
        elif kind == 1:
            text = text[:at] + text[min(at + draw.randint(1, 5), len(text)) :]
        elif kind == 2:
            text = draw.choice((str.upper, str.lower, str.strip, str.title))(text)
        elif kind == 3:
            text = text[at:] + draw.choice(PIECES)
        else:
            text = draw.choice(PIECES) + text
    return text


def gold_changed(gold, draw):
    if isinstance(gold, list):
        return [gold_changed(one, draw) for one in gold]
    return changed(gold, draw) if isinstance(gold, str) and draw.random() < 0.4 else gold


def drawn(entry, draw):
    """Fresh rows for a golden's grader."""
    pool = goldens()["pools"][entry["pool"]]
    for _ in range(CASES):
        row, other = draw.choice(pool), draw.choice(pool)
        row = {**row, "completion": changed(draw.choice((row, other))["completion"], draw)}
        if entry["gold"] is not None:
            gold = gold_changed(row[entry["gold"]], draw)
            row[entry["gold"]] = gold
            if draw.random() < 0.3:
                first = gold[0] if isinstance(gold, list) else gold
                first = " ".join(first) if isinstance(first, list) else first
                row["completion"] = changed(str(first), draw)
        yield row


def expected(real, entry, row):
    options = {
        name: row[value["column"]] if isinstance(value, dict) and "column" in value else value
        for name, value in entry["options"].items()
    }
    gold = None if entry["gold"] is None else row[entry["gold"]]
    try:
        return real(row["completion"], gold, options)
    except Exception as error:  # noqa: BLE001  (as the tool raises)
        return f"{type(error).__name__}: {error}"


def named(entry):
    return f"{entry['name']} {json.dumps(entry['options'])}"


ENTRIES = [entry for entry in goldens()["graders"] if entry["name"] in REAL]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: named(entry)[:60])
@pytest.mark.filterwarnings("ignore")
def test_the_real_function_gives_the_same(entry):
    module, real = REAL[entry["name"]]
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    draw = random.Random(f"{named(entry)} {entry['pool']} {entry['gold']}")
    rows = [*drawn(entry, draw)]
    check = {"id": "g", "type": "grader", "name": entry["name"], "options": entry["options"]}
    check |= {} if entry["gold"] is None else {"value": {"column": entry["gold"]}}
    verifier = assay.load_verifier({"id": "v", "combine": "sum", "range": None, "checks": [check]})
    if broken := next((spec.broken for spec in verifier.nodes if spec.broken), ""):
        pytest.skip(broken)
    found = assay.score(rows, verifier)
    differ = []
    for row, score, error in zip(rows, found["check/v/g"], found["error"], strict=True):
        wanted = expected(real, entry, row)
        same = score == 0.0 and error is not None if isinstance(wanted, str) else _same(entry["name"], score, wanted)
        if not same:
            differ.append((row, score, error, wanted))
    assert differ == []


def _same(name, found, wanted):
    if name == "promptfoo.bleu" and found is not None:
        return math.isclose(found, wanted, rel_tol=1e-12, abs_tol=0.0)
    return found == wanted


def test_every_grader_with_a_package_is_compared():
    tools = {name.partition(".")[0] for name in REAL}
    assert {name for name in GRADERS if name.partition(".")[0] in tools} == {*REAL}
