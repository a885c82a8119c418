"""The rollouts of a parquet file in JSON lines: completions, or chats of two messages."""

import os
from pathlib import Path

import polars as pl

from harness.generate import CACHE

__all__ = ["FORMS", "in_lines"]

_CHAT = pl.concat_list(
    pl.struct(role=pl.lit("user"), content=pl.lit("Answer.")), pl.struct(role=pl.lit("assistant"), content="completion")
)
FORMS = {"completions": pl.col("completion"), "chats": _CHAT.alias("messages")}


def in_lines(rollouts: Path, form: str, rows: int) -> Path:
    """Return a file of JSON lines with the first rows, made where it is not there."""
    path = CACHE / f"{rollouts.stem}-{rows}-{form}.jsonl"
    if not path.exists():
        draft = path.with_suffix(f".{os.getpid()}")
        pl.read_parquet(rollouts, n_rows=rows).select("id", FORMS[form]).write_ndjson(draft)
        draft.replace(path)
    return path
