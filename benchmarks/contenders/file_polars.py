"""The ten checks as one writes them in Polars by hand, with a line of feedback for each that fails."""

import polars as pl


def prepare(spec, files):
    del spec
    text = pl.col("completion")
    lower = text.str.to_lowercase()
    checks = {
        "contains": (lower.str.contains("the", literal=True), 'does not contain "the"'),
        "however": (lower.str.contains("however", literal=True), 'does not contain "However"'),
        "not_contains": (~lower.str.contains("as an ai", literal=True), 'contains "as an AI"'),
        "no-sorry": (~text.str.contains("I'm sorry", literal=True), 'contains "I\'m sorry"'),
        "number": (text.str.contains(r"\b\d+(?:\.\d+)?\b"), "there is no number"),
        "bullets": (text.str.contains(r"(?m)^\s*(?:[-*]|\d+\.)\s"), "there are no bullets"),
        "min_length": (text.str.len_chars() >= 200, "has fewer than 200 characters"),
        "max_length": (text.str.len_chars() <= 4000, "has more than 4000 characters"),
        "json_valid": (text.str.json_path_match("$").is_not_null(), "is not JSON"),
        "json_keys": (
            text.str.json_path_match("$.answer").is_not_null() & text.str.json_path_match("$.score").is_not_null(),
            "lacks a key",
        ),
    }
    scored = pl.scan_parquet(files[0]).with_columns(
        met.cast(pl.Float64).alias(f"check/ten/{name}") for name, (met, _) in checks.items()
    )
    names = [f"check/ten/{name}" for name in checks]
    said = [
        pl.when(pl.col(f"check/ten/{name}") < 1).then(pl.lit(f"{name}: {reason}\n")).otherwise(pl.lit(""))
        for name, (_, reason) in checks.items()
    ]
    reward = pl.sum_horizontal(names) / len(names)
    return scored.select(
        "id",
        reward.alias("reward"),
        (reward >= 1).alias("passed"),
        pl.concat_str(said).str.strip_chars_end("\n").alias("feedback"),
        *names,
    )


def run(prepared, files):
    prepared.sink_parquet(files[1])
