"""How often findings are false alarms on healthy rollouts, and how often they see a planted fault.

    python benchmarks/findings_power.py [HEALTHY] [PLANTED]

Rollouts are drawn by the generator beside the worked cases; each set is scored and reported as users do it.
"""

import json
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

import polars as pl

import assay

GOLDENS = Path(__file__).parents[2] / "shared" / "data" / "view_goldens.json"

UNIT, MARKER, CUT, COPIES = ({"plant": name} for name in ("suffix", "no_marker", "truncated", "copies"))
PLANTS = {
    "10 % of answers with a unit": ([UNIT | {"share": 0.1}], "near_miss"),
    "10 % of answers without the marker": ([MARKER | {"share": 0.1}], "not_found"),
    "all answers of a model with a unit": ([UNIT | {"model": "elm"}], "outlier"),
    "all answers of a model without the marker": ([MARKER | {"model": "fir"}], "outlier"),
    "5 % of texts cut off": ([CUT | {"share": 0.05}], "truncated"),
    "30 % of texts copied": ([COPIES | {"share": 0.3}], "duplicates"),
}


def kinds(make, seed, **settings):
    """The kinds of findings in a set of rollouts."""
    rows, spec = make(seed, **settings)
    with tempfile.TemporaryDirectory() as folder:
        rollouts, rewards = (Path(folder) / f"{name}.parquet" for name in ("rollouts", "rewards"))
        pl.DataFrame(rows, infer_schema_length=None).write_parquet(rollouts)
        assay.score_file(rollouts, {"id": "v", **spec}, rewards, keep=["+completion"])
        return [finding["kind"] for finding in assay.report(rewards, examples=0).findings]


def healthy(seed):
    """Settings of healthy rollouts: 160 to 1,152 rows."""
    rng = random.Random(seed)
    while True:
        models, k, steps = rng.randint(1, 5), rng.choice((1, 2, 4, 8)), rng.choice((0, 0, 8))
        tasks = rng.randint(8, 96)
        if 160 <= models * k * tasks * max(1, steps) <= 1_152:
            gold, base = rng.choice(("int", "name")), rng.uniform(-1.5, 1.2)
            return {"models": "abcde"[:models], "k": k, "tasks": tasks, "steps": steps, "gold": gold, "base": base}


def main(sets=2_000, planted=200):
    names = {}
    exec(json.loads(GOLDENS.read_text("utf-8"))["generator"], names)  # noqa: S102  (ours)
    alarms = Counter()
    for seed in range(sets):
        if found := kinds(names["make"], 10_000 + seed, **(settings := healthy(seed))):
            alarms[tuple(found)] += 1
            sys.stdout.write(f"{seed} {settings} {found}\n")
    sys.stdout.write(f"{alarms.total()} of {sets} healthy sets have a finding: {dict(alarms)}\n")
    for name, (plants, kind) in PLANTS.items():
        seen = sum(kind in kinds(names["make"], 50_000 + seed, plants=plants) for seed in range(planted))
        sys.stdout.write(f"{name}: {kind} in {seen / planted:.0%} of {planted}\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
