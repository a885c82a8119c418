"""Graders of promptfoo against promptfoo 0.123.1 itself, on inputs that are drawn."""

import json
import math
import os
import random
import subprocess
from pathlib import Path

import pytest
from grader_inputs import CASES, changed, goldens

import assay

CACHE = Path(os.environ.get("ASSAY_BENCH_CACHE", f"{os.environ.get('TMPDIR', '/tmp')}/assay-bench"))  # noqa: S108
FOLDER = CACHE / "promptfoo-0.123"
PIECES = (
    *("{", "}", "[", "]", '"', "'", ":", "//", "# x", "1", "null", "NaN", "\u00a0", "\ufeff", "é", "😀", "{a: 1}"),
    *('{"a":1}', "{'a': 'b'}", "{a: [1,2}", "yes", "~", "1e3", "0x10", "{,}", "a: b", "&x", "*x", "|", ">", "?", "<<"),
)
RUNS = """
import fs from 'fs';
const promptfoo = await import('promptfoo');
const run = promptfoo.default.assertions.runAssertion;
const results = [];
for (const {assertion, output} of JSON.parse(fs.readFileSync(0, 'utf8'))) {
  const result = await run({assertion, test: {vars: {}}, providerResponse: {output}, prompt: ''});
  results.push(result.score);
}
fs.writeSync(1, JSON.stringify(results));
process.exit(0);
"""
ENTRIES = [
    entry
    for entry in goldens()["graders"]
    if entry["name"].startswith("promptfoo.") and entry["name"] != "promptfoo.tool-call-f1"  # which reads messages
]

pytestmark = pytest.mark.skipif(
    not (FOLDER / "node_modules" / "promptfoo").is_dir(), reason="needs promptfoo 0.123.1: make peers-test installs it"
)


def gold_of(row, entry, draw):
    """A gold that promptfoo takes as it stands: no template, and not empty."""
    gold = row[entry["gold"]]
    if isinstance(gold, list):
        return [one for one in gold if one] or ["q"]
    if isinstance(gold, str):
        gold = changed(gold, draw) if entry["pool"] != "regex" and draw.random() < 0.4 else gold
        return gold.replace("{{", "{") or "z"
    return gold


def drawn(entry, draw):
    pool = goldens()["pools"][entry["pool"]]
    for _ in range(CASES):
        row = draw.choice(pool)
        text = draw.choice((row, draw.choice(pool)))["completion"]
        for _ in range(draw.choice((0, 0, 1, 2, 4))):
            at = draw.randint(0, len(text))
            text = text[:at] + draw.choice(PIECES) + text[at + draw.randint(0, 2) :]
        row = {**row, "completion": text}
        yield row | ({} if entry["gold"] is None else {entry["gold"]: gold_of(row, entry, draw)})


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry['name']} {json.dumps(entry['options'])}"[:60])
def test_promptfoo_gives_the_same_score(entry, tmp_path):
    draw = random.Random(f"{entry['name']} {entry['options']}")
    rows = [*drawn(entry, draw)]
    assertion = {"type": entry["name"].removeprefix("promptfoo."), **entry["options"]}
    cases = [
        {
            "assertion": assertion | ({} if entry["gold"] is None else {"value": row[entry["gold"]]}),
            "output": row["completion"],
        }
        for row in rows
    ]
    program = FOLDER / "graders.mjs"
    program.write_text(RUNS)
    quiet = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_CONFIG_DIR": str(tmp_path), "LOG_LEVEL": "error"}
    done = subprocess.run(
        ["node", program],
        cwd=FOLDER,
        env={**os.environ, **quiet},
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=True,
    )
    check = {"id": "g", "type": "grader", "name": entry["name"], "options": entry["options"]}
    check |= {} if entry["gold"] is None else {"value": {"column": entry["gold"]}}
    found = assay.score(rows, {"id": "v", "checks": [check]})["check/v/g"].to_list()
    pairs = zip(rows, found, json.loads(done.stdout), strict=True)
    differ = [pair for pair in pairs if not math.isclose(pair[1], pair[2], rel_tol=1e-12, abs_tol=0.0)]
    readers = entry["name"] == "promptfoo.contains-json"  # of YAML: they differ on a few texts that are none
    assert len(differ) <= CASES // 100 if readers else differ == []
