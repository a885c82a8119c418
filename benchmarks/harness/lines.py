"""The rollouts of a parquet file in JSON lines: completions, or chats of two messages."""

from pathlib import Path

import polars as pl

from harness.generate import kept

__all__ = ["FORMS", "in_lines"]

_CHAT = pl.concat_list(
    pl.struct(role=pl.lit("user"), content=pl.lit("Answer.")), pl.struct(role=pl.lit("assistant"), content="completion")
)
FORMS = {"completions": pl.col("completion"), "chats": _CHAT.alias("messages")}


def in_lines(rollouts: Path, form: str, rows: int) -> Path:
    """Return a file of JSON lines with the first rows, made where it is not there."""
    frame = pl.scan_parquet(rollouts, n_rows=rows).select("id", FORMS[form])
    return kept(f"{rollouts.stem}-{rows}-{form}", lambda path: frame.collect().write_ndjson(path), "jsonl")
