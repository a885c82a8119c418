"""The floor of JSON lines: Polars' scan, which trusts every line to be like the first ones."""

import polars as pl


def prepare(spec, files):
    del spec
    return pl.scan_ndjson(files[0]).select(pl.nth(1).count())


def run(prepared, files):
    del files
    print(prepared.collect(engine="streaming").item())  # noqa: T201  (the rows, for the process that waits)
