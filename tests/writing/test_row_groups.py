"""Row groups that Polars wrote one by one are a file that every reader accepts, and holds what was written."""

import io
import struct
from itertools import pairwise

import polars as pl
import pyarrow.parquet as pq
import pytest
from insight_cases import content_of

import assay
from assay.loading.formats.parquet_footer import PLAIN, read_struct
from assay.thresholds import EVER, set_to
from assay.writing.row_groups import RowGroups

ROWS = 3000
TEXTS = ["", "é\0b", "😀" * 40, 'a"\n', "x" * 3000, None, "same"]
FLOATS = [0.0, -0.0, None, float("nan"), float("inf"), 1e308, 5e-324]
NAN32 = struct.unpack("<f", b"\x01\x00\xa0\x7f")[0]


def frame():
    columns = [
        pl.Series("text", [TEXTS[row * row % 7] for row in range(ROWS)]),
        pl.Series("unique.name", [f"{row} {'y' * (row % 90)}" for row in range(ROWS)]),
        pl.Series("", [None] * ROWS, dtype=pl.String),
        pl.Series("^y$", [(True, None, False)[row % 3] for row in range(ROWS)]),
        pl.Series("double", [FLOATS[row % 7] for row in range(ROWS)]),
        pl.Series("single", [0.5, -0.0, None, NAN32] * (ROWS // 4), dtype=pl.Float32),
    ]
    for dtype in (kind for kind in PLAIN if kind.is_integer() and kind not in (pl.Int128, pl.UInt128)):
        low, high = pl.select(low=dtype.min(), high=dtype.max()).row(0)
        columns.append(pl.Series(str(dtype), [low, high, None, 1] * (ROWS // 4), dtype=dtype))
    return pl.DataFrame(columns)


def written(frames, empty, metadata):
    file = io.BytesIO()
    groups = RowGroups(file)
    for one in frames:
        groups.write(one)
    groups.close(empty, metadata)
    return file.getvalue()


@pytest.mark.parametrize("rows", [1, 7, 1000, ROWS])
def test_every_reader_reads_what_was_written(rows):
    whole = frame()
    few = whole.head(40 * rows)
    content = written(few.iter_slices(rows), whole.clear(), {"assay": "é", "more": ""})
    back = pl.read_parquet(content)
    assert back.equals(few)
    assert back["single"].reinterpret(signed=False).equals(few["single"].reinterpret(signed=False))
    file = pq.ParquetFile(io.BytesIO(content), page_checksum_verification=True)
    assert pl.from_arrow(file.read()).equals(few)
    assert [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)] == [
        one.height for one in few.iter_slices(rows)
    ]
    assert pl.from_arrow(file.read_row_group(file.num_row_groups - 1)).equals(few.tail(rows))
    assert file.metadata.metadata[b"assay"].decode() == pl.read_parquet_metadata(content)["assay"] == "é"
    for text in ("same", "1 y", "no such"):  # by the statistics of row groups
        for name in ("text", "unique.name"):
            found = pl.scan_parquet(content).filter(pl.col(name) == text).collect()
            assert found.equals(few.filter(pl.col(name) == text))


def test_a_file_without_rows():
    empty = frame().clear()
    content = written([], empty, {"assay": "x"})
    assert pl.read_parquet(content).equals(empty)
    assert pq.read_metadata(io.BytesIO(content)).num_rows == 0


def test_the_footer_has_only_fields_that_need_no_other_place():
    """A field that a later Polars adds may be a place, too: of a filter, or of an index of pages."""
    whole = frame()
    content = written(whole.iter_slices(1000), whole.clear(), {})
    size = int.from_bytes(content[-8:-4], "little")
    footer = read_struct(content[-8 - size : -8])
    places = []
    for group in footer[4]:
        assert group.keys() == {1, 2, 3, 5, 6}
        for chunk in group[1]:
            facts = chunk[3]
            assert (chunk.keys(), facts.keys() - {11}) == ({2, 3}, {1, 2, 3, 4, 5, 6, 7, 9, 12})
            places.append((min(facts[9], facts.get(11, facts[9])), facts[7]))
        assert sum(chunk[3][7] for chunk in group[1]) == group[6]
    assert places[0][0] == 4
    assert all(start + length == behind for (start, length), (behind, _) in pairwise(places))
    assert sum(places[-1]) == len(content) - 8 - size


def test_a_result_is_the_same_however_many_rows_are_held(tmp_path):
    spec = {"checks": [{"type": "contains", "text": "same"}]}
    rows = frame().with_columns(pl.col("text").alias("completion"))
    rows.write_parquet(tmp_path / "in.parquet")
    roots = set()
    for held, batch in ((0, 10), (1, 100), (100, 30), (EVER, 100)):
        with set_to(held_rows=held, batch=batch, piece=batch):
            summary = assay.score_file(
                tmp_path / "in.parquet", spec, tmp_path / "out.parquet", overwrite=True, limit=300
            )
        back = pl.read_parquet(tmp_path / "out.parquet")
        roots |= {summary.root, content_of([back], back.schema)["root"]}
    assert len(roots) == 1
