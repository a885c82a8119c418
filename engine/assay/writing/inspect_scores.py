"""Scores in the form that Inspect's ``precomputed_scores`` reads: a JSON line for each sample of a log."""

import json
from typing import IO

import polars as pl

from assay.errors import UsageError
from assay.writing.writers import JsonLines

_KEYS = ("id", "epoch")
_VALUES = ("reward", "feedback", "error")


class InspectScores(JsonLines):
    """A writer of ``id``, ``epoch``, ``value``, ``explanation`` and ``metadata``, which has the other results.

    NOTE: an unscored sample has the value NaN, which Inspect leaves out of its metrics. It is no JSON, but what Inspect writes and reads.

    Raises:
        UsageError: The rows have no ``id`` or ``epoch``, by which Inspect finds the samples.
    """

    def __init__(self, file: IO[bytes], schema: pl.Schema) -> None:
        if missing := [name for name in _KEYS if name not in schema]:
            fact = f"Scores of a log of Inspect need {' and '.join(f'`{name}`' for name in missing)}."
            raise UsageError(fact, "Keep them: --keep id,epoch; or write a table: --out NAME.parquet")
        super().__init__(file, schema)
        names = list(schema)
        self._results = names[names.index("reward") :]

    def write(self, batch: pl.DataFrame) -> None:
        """Write rows."""
        for row in batch.select(*_KEYS, *self._results).iter_rows(named=True):
            scored = row["reward"] is not None
            record = {
                **{name: row[name] for name in _KEYS},
                "value": row["reward"] if scored else float("nan"),
                "explanation": row["feedback"] if scored else row["error"],
                "metadata": {name: row[name] for name in self._results if name not in _VALUES},
            }
            self._file.write(json.dumps(record, default=str).encode() + b"\n")
