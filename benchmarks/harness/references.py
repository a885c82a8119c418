"""Texts to be compared with references, of which eight rows each share one."""

import zlib
from pathlib import Path

import polars as pl

from harness.draws import SEED
from harness.generate import kept
from harness.texts import texts

__all__ = ["references_file"]

_SHARED = 8


def references_file(rows: int) -> Path:
    """Return chat answers of about 1.3 kB, no two alike, and references of the same kind."""
    edition = zlib.crc32(Path(__file__).read_bytes())
    return kept(f"references-{SEED}-{rows}-{edition:08x}", lambda path: _frame(rows).write_parquet(path))


def _frame(rows: int) -> pl.DataFrame:
    golds = [*texts("chat", -(-rows // _SHARED), SEED + 1)]
    made = [
        {"completion": text, "reference": golds[at // _SHARED]} for at, text in enumerate(texts("chat", rows, SEED))
    ]
    return pl.DataFrame(made)
