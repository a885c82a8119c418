"""The plain loop, from file to file, a row group at a time."""

import polars as pl
import pyarrow.parquet as pq

from contenders import plain_loop


def prepare(spec, files, loop=plain_loop):
    del files
    return lambda frame: loop.run(loop.prepare(spec, frame), frame)


def run(loop, files):
    source, writer = pq.ParquetFile(files[0]), None
    for group in range(source.num_row_groups):
        frame = pl.DataFrame(source.read_row_group(group, columns=["id", "completion"]))
        table = frame.select("id").with_columns(**{name: pl.Series(values) for name, values in loop(frame).items()})
        writer = writer or pq.ParquetWriter(files[1], table.to_arrow().schema, compression="zstd")
        writer.write_table(table.to_arrow())
    writer.close()
