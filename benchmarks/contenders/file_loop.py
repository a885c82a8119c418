"""The plain loop with reasons, from file to file."""

import polars as pl

from contenders import plain_loop_reasons


def prepare(spec, files):
    frame = pl.read_parquet(files[0], columns=["id", "completion"])
    return frame, plain_loop_reasons.prepare(spec, frame)


def run(prepared, files):
    frame, loop = prepared
    verdicts = plain_loop_reasons.run(loop, frame)
    frame.select("id").with_columns(**{name: pl.Series(values) for name, values in verdicts.items()}).write_parquet(
        files[1]
    )
