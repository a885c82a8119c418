"""The plain loop over JSON lines, from file to file."""

import json
from pathlib import Path

import polars as pl

from contenders.file_loop import prepare

__all__ = ["prepare", "run"]

ROWS = 50_000


def run(loop, files):
    parts = []
    with Path(files[0]).open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    for start in range(0, len(rows), ROWS):
        texts = [
            row["messages"][-1]["content"] if "messages" in row else row["completion"]
            for row in rows[start : start + ROWS]
        ]
        parts.append(pl.DataFrame(loop(pl.DataFrame({"completion": texts}))))
    pl.concat(parts).write_parquet(files[1], compression="zstd")
