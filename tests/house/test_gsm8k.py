"""The spec for GSM8K on the real rollouts, read from where the user keeps them."""

import polars as pl
import pytest
from cases import DATA, ROOT
from typer.testing import CliRunner

import assay
from assay.cli.main import app
from assay.scoring.reference import score_rows

GSM8K = DATA / "gsm8k_rollouts.parquet"
SPEC = ROOT / "specs" / "gsm8k" / "gsm8k.yaml"
MEANS = {"6b_finetuning": 0.217, "6b_verification": 0.390, "175b_finetuning": 0.347, "175b_verification": 0.563}

needs_gsm8k = pytest.mark.skipif(not GSM8K.exists(), reason=f"the real rollouts are not there: {GSM8K}")


def test_the_spec_is_short_and_needs_no_python():
    checks = SPEC.read_text("utf-8").partition("\ntests:")[0]
    assert len(checks.splitlines()) <= 8
    assert [path.name for path in SPEC.parent.iterdir()] == ["gsm8k.yaml"]
    assert assay.load_verifier(SPEC, strict=True).id == "gsm8k"


@needs_gsm8k
def test_the_means_by_model(tmp_path):
    done = CliRunner().invoke(
        app, ["score", str(GSM8K), "--spec", str(SPEC), "--out", str(tmp_path / "rewards.parquet")]
    )
    assert done.exit_code == 0, done.output
    assert "5,276 rows · mean reward 0.379" in done.output
    rewards = pl.read_parquet(tmp_path / "rewards.parquet")
    assert rewards.height == 5276
    assert rewards["error"].null_count() == 5276
    means = dict(rewards.group_by("model").agg(pl.col("reward").mean().round(3)).iter_rows())
    assert means == MEANS


@needs_gsm8k
def test_the_row_loop_agrees():
    frame = pl.read_parquet(GSM8K)
    rewards = assay.score(frame, SPEC)
    assert (
        score_rows(frame.to_dicts(), [assay.load_verifier(SPEC)])
        == rewards.select("reward", "passed", "feedback", "error", "score/gsm8k", "check/gsm8k/number").to_dicts()
    )


@needs_gsm8k
def test_the_verdicts_are_those_of_the_texts():
    """The texts behind ``A:`` and the golds, compared without thousands commas, as in a few lines of Python."""
    frame = pl.read_parquet(GSM8K)
    labels = [
        text.rpartition("A:")[2].strip().replace(",", "") == gold.replace(",", "")
        for text, gold in zip(frame["completion"], frame["answer"], strict=True)
    ]
    assert (assay.score(frame, SPEC)["reward"] == 1.0).to_list() == labels


def test_a_file_without_golds_is_refused_with_the_likely_column(tmp_path):
    frame = pl.DataFrame({"completion": ["A: 4"], "answers": ["4"]})
    frame.write_parquet(tmp_path / "rollouts.parquet")
    done = CliRunner().invoke(app, ["score", str(tmp_path / "rollouts.parquet"), "--spec", str(SPEC)])
    assert done.exit_code == 2
    assert "has no `answer`" in done.output
    assert "Did you mean `answers`?" in done.output
    assert "Traceback" not in done.output
