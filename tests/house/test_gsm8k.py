"""The documented example on the real rollouts, read from where the user keeps them."""

import subprocess
import sys

import polars as pl
import pytest
from cases import DATA, ROOT

from assay.compiling.verifiers import on_row
from assay.scoring.reference import score_rows

GSM8K = DATA / "gsm8k_rollouts.parquet"
EXAMPLE = ROOT / "specs" / "gsm8k" / "gsm8k.py"
MEANS = {"6b_finetuning": 0.217, "6b_verification": 0.390, "175b_finetuning": 0.347, "175b_verification": 0.563}

needs_gsm8k = pytest.mark.skipif(not GSM8K.exists(), reason=f"the real rollouts are not there: {GSM8K}")


def run(*args):
    return subprocess.run([sys.executable, "-W", "error", EXAMPLE, *args], capture_output=True, text=True, check=False)


@needs_gsm8k
def test_the_means_by_model(tmp_path):
    done = run(GSM8K, tmp_path / "rewards.parquet")
    assert done.returncode == 0, done.stderr
    printed = {model: float(mean) for model, mean, *_ in map(str.split, done.stdout.splitlines())}
    assert printed == MEANS
    rewards = pl.read_parquet(tmp_path / "rewards.parquet")
    assert rewards.height == 5276
    assert rewards["error"].null_count() == 5276
    means = dict(rewards.group_by("model").agg(pl.col("reward").mean().round(3)).iter_rows())
    assert means == MEANS


@needs_gsm8k
def test_the_row_loop_agrees(tmp_path):
    sys.path.insert(0, str(EXAMPLE.parent))
    try:
        from gsm8k import with_verifiers
    finally:
        sys.path.pop(0)
    frame = with_verifiers(pl.scan_parquet(GSM8K)).collect()
    run(GSM8K, tmp_path / "rewards.parquet")
    rewards = pl.read_parquet(tmp_path / "rewards.parquet")
    expected = score_rows(frame.to_dicts(), [on_row()])
    assert rewards.select("reward", "passed", "feedback", "error", "verifier_fn").to_dicts() == expected


def test_a_mistake_is_told_in_words():
    for args, said in (((), "usage:"), (("missing.parquet",), "error: missing.parquet: no such file")):
        done = run(*args)
        assert done.returncode == 1
        assert said in done.stderr
        assert "Traceback" not in done.stderr
