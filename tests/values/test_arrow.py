"""Arrow data from elsewhere is checked in full: what would end the process is an error instead."""

import datetime as dt
import decimal
import os
import struct
import subprocess
import sys
import zoneinfo
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from cases import HELPERS
from pyarrow import ipc, parquet

import assay

SPEC = {"checks": [{"type": "contains", "value": "b"}]}
ROLES = pa.array(["assistant", "assistant"])


def strings(content, *offsets, dtype=None, code="i"):
    """An array whose offsets and bytes nobody has looked at."""
    buffers = [None, pa.py_buffer(struct.pack(f"<{len(offsets)}{code}", *offsets)), pa.py_buffer(content)]
    return pa.Array.from_buffers(dtype or pa.string(), len(offsets) - 1, buffers)


def messages(contents, *offsets):
    inner = pa.StructArray.from_arrays([ROLES, contents], ["role", "content"])
    offsets = pa.py_buffer(struct.pack("<3i", *offsets))
    return pa.Array.from_buffers(pa.list_(inner.type), 2, [None, offsets], children=[inner])


def view(length, prefix, buffer, offset):
    views = pa.py_buffer(struct.pack("<i4sii", length, prefix, buffer, offset))
    return pa.Array.from_buffers(pa.string_view(), 1, [None, views, pa.py_buffer(b"abcd")])


BAD_UTF8 = strings(b"\xff\xfeb", 0, 2, 3)
BAD = {
    "invalid UTF-8": {"completion": BAD_UTF8},
    "a character cut in two": {"completion": strings("é".encode(), 0, 1, 2)},
    "offset past the end": {"completion": strings(b"abc", 0, 10**6, 3)},
    "negative offset": {"completion": strings(b"abc", 0, -5, 3)},
    "large offset past the end": {"completion": strings(b"abc", 0, 2**40, 3, dtype=pa.large_string(), code="q")},
    "view past its buffer": {"completion": view(100, b"abcd", 0, 5000)},
    "view of no buffer": {"completion": view(100, b"abcd", 7, 0)},
    "invalid UTF-8 in a dictionary": {
        "completion": pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int32()), strings(b"\xff", 0, 1))
    },
    "index past the dictionary": {
        "completion": pa.DictionaryArray.from_arrays(pa.array([0, 99], pa.int32()), pa.array(["a"]), safe=False)
    },
    "invalid UTF-8 in a message": {"completion": messages(BAD_UTF8, 0, 1, 2)},
    "messages past the end": {"completion": messages(pa.array(["a", "b"]), 0, 999_999, 2)},
    "invalid UTF-8 in a column no check reads": {"completion": ["a", "b"], "other": BAD_UTF8},
}
"""Columns that pyarrow takes as they are, and that crash who trusts them."""


class Capsule:
    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def ipc_file(table):
    return _written("file.arrow", ipc.new_file, table)


def ipc_stream(table):
    return _written("stream.arrow", ipc.new_stream, table)


def _written(name, create, table):
    with create(name, table.schema) as writer:
        writer.write_table(table)
    return name


WAYS = {
    "table": lambda table: table,
    "batch": lambda table: table.to_batches()[0],
    "reader": pa.Table.to_reader,
    "capsule": Capsule,
    "stream": ipc_stream,
    "file": ipc_file,
}

CHILD = """
import assay, test_arrow
for name, columns in test_arrow.BAD.items():
    for way, make in test_arrow.WAYS.items():
        try:
            assay.score(make(test_arrow.pa.table(columns)), test_arrow.SPEC)
        except assay.InputError as refused:
            print(name, way, type(refused).__name__, sep=", ", flush=True)
"""


def test_data_that_breaks_the_rules_is_refused_and_never_crashes(tmp_path):
    path = os.pathsep.join([str(Path(assay.__file__).parents[1]), str(Path(__file__).parent), str(HELPERS)])
    env = {**os.environ, "PYTHONPATH": path}
    child = [sys.executable, "-c", CHILD]
    done = subprocess.run(child, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [f"{name}, {way}, InputError" for name in BAD for way in WAYS]
    assert (done.returncode, done.stderr) == (0, "")


def test_the_message_says_what_is_wrong_and_what_to_do():
    with pytest.raises(assay.InputError) as refused:
        assay.scan(pa.table(BAD["invalid UTF-8"]))
    assert str(refused.value) == (
        "The Arrow data is not valid: Column 0: In chunk 0: Invalid: Invalid UTF8 sequence at string index 0\n\n"
        "It would crash Polars; write it again from its source."
    )


@pytest.mark.parametrize("write", [ipc_file, ipc_stream, "parquet"], ids=["file", "stream", "parquet"])
def test_the_message_names_the_file(write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = pa.table(BAD["invalid UTF-8"])
    if write == "parquet":
        parquet.write_table(table, "rows.parquet")
    name = "rows.parquet" if write == "parquet" else write(table)
    with pytest.raises(assay.InputError, match=name):
        assay.score(name, SPEC)


def test_every_type_of_string_is_a_completion():
    for dtype in [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]:
        table = pa.table({"completion": pa.array(["ab", None, "a"]).cast(dtype)})
        assert assay.score(table, SPEC)["reward"].to_list() == [1.0, None, 0.0]


def test_every_type_of_list_of_messages_is_a_completion():
    for string in [pa.string(), pa.dictionary(pa.int8(), pa.string())]:
        for many in [pa.list_, pa.large_list]:
            said = [[{"role": "assistant", "content": "b"}, {"role": "user", "content": "a"}], [], None]
            dtype = many(pa.struct([("role", string), ("content", string)]))
            assert assay.score(pa.table({"completion": pa.array(said, dtype)}), SPEC)["reward"].to_list() == [
                1.0,
                None,
                None,
            ]


def test_a_slice_of_valid_data_is_read_from_its_offset():
    table = pa.table({"completion": ["x", "b", None, "ab", "y"]})[1:4]
    assert assay.score(table, SPEC)["reward"].to_list() == [1.0, None, 1.0]


def test_a_reader_that_fails_midway_is_an_input_error():
    def batches():
        yield pa.record_batch({"completion": ["b"]})
        raise OSError("the disk went away")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"completion": pa.string()}), batches())
    with pytest.raises(assay.InputError, match="the disk went away"):
        assay.scan(reader)


def test_names_that_the_engine_cannot_be_given_are_refused():
    for name in ("a\0b", "a\udcff"):
        field = pa.field(name.encode("utf-8", "surrogateescape"), pa.string())
        for schema in (pa.schema([field]), pa.schema([pa.field("completion", pa.struct([field]))])):
            with pytest.raises(assay.InputError, match="has a name that"):
                assay.scan(pa.RecordBatchReader.from_batches(schema, []))


def test_arrow_data_that_is_no_table_of_named_columns_is_refused():
    for source in [
        pl.Series("completion", ["b"]),
        pa.chunked_array([["b"]]),
        pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["completion", "completion"]),
    ]:
        with pytest.raises(assay.InputError):
            assay.scan(source)


MONEY = [decimal.Decimal("1.00"), None, decimal.Decimal("3.50")]
NARROW = pa.array(MONEY, pa.decimal32(9, 2))
WIDE = pa.array(MONEY, pa.decimal256(40, 2))
THREE = pa.array([0, 1, 2, 3], pa.int32())
CONVERTED = {
    "decimal256": (WIDE, MONEY),
    "list of decimal32": (pa.ListArray.from_arrays(THREE, NARROW), [[value] for value in MONEY]),
    "struct of decimal64": (
        pa.StructArray.from_arrays([pa.array(MONEY, pa.decimal64(9, 2))], ["f"]),
        [{"f": value} for value in MONEY],
    ),
    "list of decimal256": (pa.ListArray.from_arrays(THREE, WIDE), [[value] for value in MONEY]),
    "run-end encoded": (pc.run_end_encode(pa.array(["x", "x", None])), ["x", "x", None]),
    "list view": (pa.array([[1, 2], None, [3]], pa.list_view(pa.int64())), [[1, 2], None, [3]]),
    "fixed list of nothing": (pa.array([[], None, []], pa.list_(pa.int64(), 0)), [[], None, []]),
    "fixed list with a null": (pa.array([None, [1, 2], None], pa.list_(pa.int64(), 2)), [None, [1, 2], None]),
    "binary of nothing": (pa.array([b"", None, b""], pa.binary(0)), [b"", None, b""]),
    "date64": (pa.array([dt.date(2026, 1, 2)] * 3, pa.date64()), [dt.date(2026, 1, 2)] * 3),
    "bool8": (pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None, 0], pa.int8())), [True, None, False]),
    "a time zone without a name": (
        pa.array([0] * 3, pa.timestamp("us", "+05:30")),
        [dt.datetime(1970, 1, 1, tzinfo=zoneinfo.ZoneInfo("UTC"))] * 3,
    ),
}
UNION = pa.UnionArray.from_sparse(pa.array([0, 0, 0], pa.int8()), [pa.array(["a", "b", "c"])])
REFUSED = {
    "union": (UNION, "sparse_union<0: string=0>"),
    "struct of union": (pa.StructArray.from_arrays([UNION], ["f"]), "sparse_union<0: string=0>"),
    "interval": (pa.array([(1, 2, 3)] * 3, pa.month_day_nano_interval()), "month_day_nano_interval"),
    "mapping without keys": (
        pa.MapArray.from_arrays(pa.array([0] * 4, pa.int32()), pa.nulls(0), WIDE.slice(0, 0)),
        "map<null, decimal256(40, 2)",
    ),
    "long decimal256": (pa.array([decimal.Decimal(10**50)] * 3, pa.decimal256(60, 0)), "decimal256"),
}


def test_types_that_polars_lacks_are_converted_without_a_change_of_values(tmp_path, monkeypatch):
    for column, values in CONVERTED.values():
        for way in WAYS.values():
            monkeypatch.chdir(tmp_path)
            table = pa.table({"completion": ["b"] * 3, "other": column})
            assert assay.score(way(table), SPEC)["other"].to_list() == values
            parts = pa.concat_tables([table.slice(at, 1) for at in range(3)])
            assert assay.score(parts, SPEC)["other"].to_list() == values


def test_other_types_are_refused_by_the_name_of_the_column_read_or_not(tmp_path, monkeypatch):
    for column, dtype in REFUSED.values():
        for way in WAYS.values():
            monkeypatch.chdir(tmp_path)
            table = pa.table({"completion": ["b"] * 3, "other": column})
            with pytest.raises(assay.InputError, match=r"Polars cannot hold the column `other` of type ") as refused:
                assay.score(way(table), SPEC)
            assert dtype in refused.value.fact
            assert "leave it out" in refused.value.hint


def test_a_column_without_a_name_keeps_it():
    table = pa.table({"completion": ["b"], "": [1], "0": [2]})
    assert assay.scan(table).collect().columns == ["completion", "", "0"]


def test_parquet_with_types_that_polars_lacks_is_read_as_well(tmp_path):
    for column in [WIDE, pa.ListArray.from_arrays(THREE, WIDE), CONVERTED["a time zone without a name"][0]]:
        table = pa.table({"completion": ["b"] * 3, "other": column})
        parquet.write_table(table, tmp_path / "a.parquet", row_group_size=2)
        assert (
            assay.score(tmp_path / "a.parquet", SPEC)["other"].to_list()
            == assay.scan(table).collect()["other"].to_list()
        )
