"""The recipes of docs/engines.md do, as they stand there, what assay.score does."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from cases import ROOT

import assay

SPEC = {"id": "v", "checks": [{"type": "contains", "value": "refund"}, {"type": "max_length", "value": 12}]}
TEXT = (Path(ROOT) / "docs" / "engines.md").read_text("utf-8")
RECIPES = dict(re.findall(r"^## ([\w ]+)\n\n```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE))
ENGINES = {"Ray Data": ("ray", "ray[data]"), "Daft": ("daft", "daft"), "Spark": ("pyspark", "pyspark")}


def test_every_recipe_is_short():
    assert RECIPES.keys() == ENGINES.keys()
    assert all(sum(1 for line in code.splitlines() if line.strip()) <= 10 for code in RECIPES.values())


@pytest.mark.xdist_group("ray")  # or two clusters would ask for the same two cores
@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.long
def test_a_recipe_gives_the_rewards_of_score(name, tmp_path):
    module, package = ENGINES[name]
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"needs pip install '{package}'")
    completions = ["a refund", "no", None, "", "é refund, at length"] * 40
    rollouts = pl.DataFrame({"id": range(200), "completion": completions})
    rollouts.write_parquet(tmp_path / "rollouts.parquet")
    (tmp_path / "verifier.json").write_text(json.dumps(SPEC))
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "DAFT_ANALYTICS_ENABLED": "0", "DO_NOT_TRACK": "1"}
    quiet["RAY_ADDRESS"] = "local"  # a cluster of another test is not for this one
    own = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    own["PYSPARK_SUBMIT_ARGS"] = "--master local[1] pyspark-shell"
    done = subprocess.run(
        [sys.executable, "-c", RECIPES[name]],
        cwd=tmp_path,
        env={**os.environ, **quiet, **own},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    rewards = pl.read_parquet(tmp_path / "rewards" / "*.parquet").sort("id")
    assert rewards.equals(assay.score(rollouts, SPEC).select(rewards.columns))
    assert {"id", "reward", "passed", "feedback", "error", "check/v/contains"} <= set(rewards.columns)
