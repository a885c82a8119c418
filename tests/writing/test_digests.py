"""Digests of a result's content: the worked case, and that they depend on the content alone."""

import hashlib
import itertools
import random
import struct
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import polars as pl
import pytest
from insight_cases import content_of
from worked_cases import worked

import assay
from assay.system import memory
from assay.writing.digests import root_of

SPEC = {"checks": [{"type": "contains", "text": "refund"}]}

COLUMNS = {
    "text": pl.Series(["a", "", None, "é\0b", "😀"]),
    "bytes": pl.Series([b"", b"\xff\0", None, b"a", b"b"]),
    "flags": pl.Series([True, False, None, True, False]),
    "small": pl.Series([1, -1, None, 127, 0], dtype=pl.Int8),
    "floats": pl.Series([0.0, -0.0, None, float("nan"), 1e308]),
    "singles": pl.Series([0.5, -0.0, None, 1.0, 2.0], dtype=pl.Float32),
    "days": pl.Series([date(2026, 1, 1), None, date(1, 1, 1), date(1970, 1, 1), None]),
    "times": pl.Series([datetime(2026, 1, 1, tzinfo=UTC), None, *[datetime(1970, 1, 1, tzinfo=UTC)] * 3]),
    "clock": pl.Series([time(1, 2, 3), None, time(0), time(23, 59, 59), time(0, 0, 1)]),
    "spans": pl.Series([timedelta(seconds=-1), None, timedelta(0), timedelta(days=9), timedelta(1)]),
    "decimals": pl.Series([Decimal("1.50"), None, Decimal("-0.25"), Decimal("0.00"), Decimal("9.99")]),
    "words": pl.Series(["a", "b", None, "a", "b"], dtype=pl.Categorical),
    "kinds": pl.Series(["a", "b", None, "a", "b"], dtype=pl.Enum(["a", "b"])),
    "nothing": pl.Series([None] * 5),
    "lists": pl.Series([[1, None], [], None, [2], [3, 4, 5]]),
    "nested": pl.Series([[["a"], None], [[]], None, [], [["b", "c"]]]),
    "pairs": pl.Series([[1, 2], None, [3, None], [5, 6], [7, 8]], dtype=pl.Array(pl.Int64, 2)),
    "objects": pl.Series(
        [{"a": 1, "b": ["x"]}, None, {"a": None, "b": None}, {"a": 2, "b": []}, {"a": 3, "b": [None]}]
    ),
}


def column(name):
    frame = COLUMNS[name].alias("x").to_frame()
    return content_of([frame], frame.schema)["columns"][0]


def test_the_worked_case():
    case = worked("insight", "cases", "verify.digest")
    columns = [
        pl.Series(name, cells, dtype=getattr(pl, kind), strict=False) for name, kind, cells in case["input"]["columns"]
    ]
    frame, expected = pl.DataFrame(columns), case["expect"]
    assert content_of([frame], frame.schema) == {"rows": 4, "columns": expected["columns"], "root": expected["root"]}
    assert root_of(expected["columns"], 4) == expected["root"]
    zero = frame.select(pl.when(pl.col("reward") == 0.0).then(0.0).otherwise("reward").alias("reward"))
    assert content_of([zero], zero.schema)["columns"][0][2] == expected["without_minus_zero"]
    assert content_of([], zero.schema)["columns"][0][2] == expected["empty"]


@pytest.mark.parametrize("name", COLUMNS)
def test_the_content_is_that_of_the_cells_however_they_are_cut_and_read(tmp_path, name):
    frame = COLUMNS[name].alias("x").to_frame()
    whole = content_of([frame], frame.schema)
    cuts = (frame.iter_slices(1), [frame.head(2), frame.head(0), frame.tail(3)], [pl.concat([*frame.iter_slices(2)])])
    assert [content_of(parts, frame.schema) for parts in cuts] == [whole] * 3
    assay.score_file(frame.with_columns(completion=pl.lit("a refund")), SPEC, tmp_path / "out.parquet")
    content, back = (
        assay.read_provenance(tmp_path / "out.parquet")["content"],
        pl.read_parquet(tmp_path / "out.parquet"),
    )
    assert content_of(back.iter_slices(2), back.schema) == content
    assert (content["rows"], [name for name, _, _ in content["columns"]]) == (5, back.columns)
    assert content["columns"][0][2] == whole["columns"][0][2]


@pytest.mark.parametrize("most", [0, 1, 50, 400])
def test_texts_that_take_too_much_memory_together_are_hashed_in_pieces(monkeypatch, most):
    texts = ["", "é", "a" * 300, None, *["b" * 40] * 9]
    frame = pl.DataFrame({"text": texts, "^y$": texts[::-1], "lists": [[text, text] for text in texts]})
    whole = content_of([frame], frame.schema)
    monkeypatch.setattr(memory, "WRITTEN_OUT", most)
    pieces = [*memory.written_out(frame)]
    assert pl.concat(pieces).equals(frame)
    assert len(pieces) > 2
    assert all(piece.height == 1 or memory.bytes_of_texts(piece) <= most for piece in pieces)
    assert content_of([frame], frame.schema) == whole


def test_every_cell_shows():
    for name in sorted(COLUMNS.keys() - {"nothing"}):
        values, digests = COLUMNS[name], set()
        for at, other in itertools.product(range(5), repeat=2):
            changed = values.gather([other if row == at else row for row in range(5)]).alias("x").to_frame()
            digest = content_of([changed], changed.schema)["columns"][0][2]
            is_same = changed.to_series().to_list() == values.to_list() and name not in ("floats", "singles")
            assert not is_same or digest == column(name)[2]
            digests.add(digest)
        assert len(digests) > 10, name


def test_the_shape_of_lists_shows():
    shapes = ([[1, 2], [3]], [[1], [2, 3]], [[1, 2, 3], []], [[1, 2, 3], None], [[], [1, 2, 3]])
    frames = [pl.DataFrame({"x": pl.Series(lists, dtype=pl.List(pl.Int64))}) for lists in shapes]
    assert len({content_of([frame], frame.schema)["root"] for frame in frames}) == len(shapes)


def test_names_types_and_order_show():
    frame = pl.DataFrame({"a": [1, 2], "b": [1, 2]})
    others = [frame.rename({"b": "c"}), frame.select("b", "a"), frame.cast({"b": pl.Int32}), frame.reverse()]
    roots = {content_of([other], other.schema)["root"] for other in (frame, *others)}
    assert len(roots) == 1 + len(others)


def test_a_name_is_no_pattern():
    for name in ("^y$", "*", "", "^.*$"):
        frame = pl.DataFrame({name: [1, None], "y": [3, 4]})
        digests = {column: digest for column, _, digest in content_of([frame], frame.schema)["columns"]}
        assert digests[name] == content_of([frame.select(pl.nth(0))], {name: pl.Int64})["columns"][0][2]
        assert len({*digests.values()}) == 2


def test_the_content_is_that_of_the_result_however_it_is_read(tmp_path):
    rng = random.Random(3)
    rows = pl.DataFrame({"completion": ["a refund " * rng.randrange(9) for _ in range(3000)]})
    rows.write_parquet(tmp_path / "small.parquet", row_group_size=700)
    rows.write_parquet(tmp_path / "whole.parquet")
    rows.write_ndjson(tmp_path / "rows.jsonl")
    roots = {
        assay.score_file(tmp_path / name, SPEC, tmp_path / f"{name}.out.parquet").root
        for name in ("small.parquet", "whole.parquet", "rows.jsonl")
    }
    (root,) = roots
    back = pl.read_parquet(tmp_path / "small.parquet.out.parquet")
    assert root == content_of([back], back.schema)["root"]
    assert assay.score_file(rows, SPEC, tmp_path / "out.jsonl").root == assay.score_file(rows, SPEC).root == ""


def test_the_digest_of_many_chunks_is_that_of_the_documented_bytes():
    texts = [("é😀\0", "", "x" * 300, "ab")[row % 4] * (row % 5) for row in range(999)]
    numbers = [row * 7919 % 1000 / 7 for row in range(999)]
    columns = {
        "texts": (texts, pl.String, [len(text.encode()) for text in texts], "".join(texts).encode()),
        "bytes": (
            [text.encode() for text in texts],
            pl.Binary,
            [len(text.encode()) for text in texts],
            "".join(texts).encode(),
        ),
        "numbers": (numbers, pl.Float64, [], struct.pack("<999d", *numbers)),
        "single": (numbers, pl.Float32, [], struct.pack("<999f", *numbers)),
    }
    for name, (values, dtype, sizes, data) in columns.items():
        parts = (bytes([1]) * 999, struct.pack(f"<{len(sizes)}Q", *sizes), data)
        whole = b"\0".join((b"assay column 1", name.encode(), str(dtype).encode(), struct.pack("<Q", 999)))
        whole += b"".join(hashlib.sha256(part).digest() for part in parts)
        frame = pl.DataFrame({name: pl.Series(values, dtype=dtype)})
        chunked = pl.concat([*frame.iter_slices(100), frame.head(0)], rechunk=False)
        for frames in ([frame], [chunked], [frame[:3], frame[3:]]):
            [[_, _, digest]] = content_of(frames, frame.schema)["columns"]
            assert digest == hashlib.sha256(whole).hexdigest(), name
