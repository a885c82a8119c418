"""Graders against the real functions, on inputs that are drawn: recombined and changed texts and golds of the goldens."""

import json
import random
import unicodedata

import pytest
from grader_inputs import CASES, calls_changed, changed, goldens
from real_graders import NO_FUNCTION, REAL, ROW

import assay
from assay.checks.graders.table import GRADERS
from assay.checks.libraries import versions

pytestmark = pytest.mark.xdist_group("math")  # one process of the suite starts the processes that compare


def gold_changed(gold, draw):
    if isinstance(gold, list):
        return [gold_changed(one, draw) for one in gold]
    return changed(gold, draw) if isinstance(gold, str) and draw.random() < 0.4 else gold


def drawn(entry, draw):
    """Fresh rows for a golden's grader."""
    pool = goldens()["pools"][entry["pool"]]
    for _ in range(CASES):
        row, other = draw.choice(pool), draw.choice(pool)
        if entry["pool"] == "bfcl":
            yield {**row, "completion": calls_changed(row["completion"], draw)}
            continue
        row = {**row, "completion": changed(draw.choice((row, other))["completion"], draw)}
        if entry["gold"] is not None:
            gold = gold_changed(row[entry["gold"]], draw)
            row[entry["gold"]] = gold
            if draw.random() < 0.3:
                first = gold[0] if isinstance(gold, list) else gold
                first = " ".join(first) if isinstance(first, list) else first
                row["completion"] = changed(str(first), draw)
        if "min_len" in row:
            length = len(row["completion"])
            row |= {"min_len": min(row["min_len"], length), "max_len": max(row["max_len"], length)}
        yield row


def expected(real, entry, row):
    options = {
        name: row[value["column"]] if isinstance(value, dict) and "column" in value else value
        for name, value in entry["options"].items()
    }
    options |= {name: row[name] for name in ROW.get(entry["name"], ())}
    gold = None if entry["gold"] is None else row[entry["gold"]]
    try:
        return real(row["completion"], gold, options)
    except ImportError:
        raise
    except Exception as error:  # noqa: BLE001  (as the tool raises)
        return f"{type(error).__name__}: {error}"


def named(entry):
    return f"{entry['name']} {json.dumps(entry['options'])}"


def nltk_decides(row):
    """Whether words are counted in a text with combining marks: from nltk 3.10 on, they do not end a word."""
    counted = "length_constraints:number_words" in row.get("instruction_id_list", ())
    return counted and any(unicodedata.category(character).startswith("M") for character in row["completion"])


ENTRIES = [entry for entry in goldens()["graders"] if entry["name"] in REAL]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: named(entry)[:60])
@pytest.mark.filterwarnings("ignore")
def test_the_real_function_gives_the_same(entry):
    distribution, real = REAL[entry["name"]]
    if versions([distribution])[distribution] is None:
        pytest.skip(f"{distribution} is not installed")
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
        same = score == 0.0 and error is not None if isinstance(wanted, str) else score == wanted
        if not same and not nltk_decides(row):
            differ.append((row, score, error, wanted))
    assert differ == []


def test_every_grader_is_compared_where_its_function_is():
    assert {*REAL, *NO_FUNCTION} == {name for name in GRADERS if not name.startswith("promptfoo.")}
