"""GSM8K: every row brings its own gold, as a pattern for its last line.

    python gsm8k.py PATH/gsm8k_rollouts.parquet [rewards.parquet]

The file has the columns ``completion``, ``answer`` (the gold, perhaps with thousands commas) and ``model``; the last line of a
completion reads ``A: <answer>``. The rewards have those columns but ``completion``, and ``reward``, ``feedback``, ``error``.
"""

import sys

import polars as pl

import assay


def with_verifiers(rollouts: pl.LazyFrame) -> pl.LazyFrame:
    """Rollouts with a verifier on each row: the last line is ``A:`` and the gold, with or without thousands commas."""
    digits = pl.col("answer").str.replace_all(",", "", literal=True)
    number = digits.str.replace_all(r"(\d)", r"$1,?").str.strip_suffix(",?")
    pattern = pl.concat_str(pl.lit(r"(?m)^A:\s*"), number, pl.lit(r"\s*\Z"))
    return rollouts.with_columns(
        verifier=pl.struct(kind=pl.lit("in_process"), fn_name=pl.lit("regex_match"), expected=pattern)
    )


def main() -> None:
    """Score the file and print the mean reward of each model."""
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: python gsm8k.py gsm8k_rollouts.parquet [rewards.parquet]")
    source, out = sys.argv[1], (sys.argv[2:] or [None])[0]
    try:
        rollouts = with_verifiers(assay.scan(source))
        if out is not None:
            assay.score_file(rollouts, None, out, keep=["task_id", "model", "answer"], overwrite=True)
        rewards = assay.score(rollouts, keep=["model"])
    except assay.AssayError as wrong:
        sys.exit(f"error: {wrong}")
    for model, mean, rows in rewards.group_by("model").agg(pl.mean("reward"), pl.len()).sort("model").iter_rows():
        print(f"{model:24}{mean:8.3f}{rows:8,} rows")


if __name__ == "__main__":
    main()
