"""Arrow IPC files and streams: batch by batch, and nothing that they say is believed before it is looked at."""

import polars as pl
import pyarrow as pa
import pytest
from cases import some

import assay
from assay.loading.formats.ipc import open_ipc
from assay.loading.formats.reading import Reading

SPEC = {"id": "v", "checks": [{"type": "contains", "value": "b"}]}
TABLE = pa.table(
    {
        "id": range(20),
        "completion": [None, "", "ab", "日本"] * 5,
        "model": pa.array(["m", "n"] * 10).dictionary_encode(),
        "info": [{"a": [1, None]}, None] * 10,
    }
)


def written(path, new, rows=7, **options):
    with new(str(path), TABLE.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(TABLE, max_chunksize=rows)
    return path


def test_rows_are_those_of_the_table(tmp_path):
    for compression in [None, "zstd", "lz4"]:
        for new in [pa.ipc.new_file, pa.ipc.new_stream]:
            path = written(tmp_path / "rows.arrow", new, compression=compression)
            whole = pl.DataFrame(pl.from_arrow(TABLE))
            file = open_ipc(path, Reading())
            assert file.schema == whole.schema
            assert file.scan().collect().equals(whole)
            assert file.scan().select("completion").head(8).collect().equals(whole.select("completion").head(8))
            assert file.scan().filter(pl.col("id") % 3 == 0).collect().equals(whole.filter(pl.col("id") % 3 == 0))
            assert file.scan().tail(3).collect().equals(whole.tail(3))


def test_units_of_a_file_are_its_batches_and_a_stream_is_one(tmp_path):
    file = open_ipc(written(tmp_path / "rows.arrow", pa.ipc.new_file), Reading())
    assert len(file.units) == 3
    parts = [file.scan(at, at + 1).collect() for at in range(3)]
    assert [part.height for part in parts] == [7, 7, 6]
    assert pl.concat(parts).equals(file.scan().collect())
    stream = open_ipc(written(tmp_path / "stream.arrow", pa.ipc.new_stream), Reading())
    assert [stream.scan(*cut).collect().height for cut in ((0, 1), (1, 1))] == [20, 0]


@pytest.mark.parametrize("rows", [0, 1])
def test_a_file_without_rows_or_batches_has_its_columns(tmp_path, rows):
    with pa.ipc.new_file(str(tmp_path / "none.arrow"), TABLE.schema) as writer:
        if rows:
            writer.write_table(TABLE.slice(0, 0))
    found = assay.score(tmp_path / "none.arrow", SPEC)
    assert (found.height, found.columns[:3]) == (0, ["id", "model", "info"])
    assert assay.score_file(tmp_path / "none.arrow", SPEC, f"{tmp_path}/out/").rows == 0


def test_a_damaged_batch_is_an_error_that_names_the_file(tmp_path):
    path = written(tmp_path / "rows.arrow", pa.ipc.new_file, compression="zstd")
    content = bytearray(path.read_bytes())
    at = content.index(b"\x28\xb5\x2f\xfd")  # where a buffer begins
    content[at : at + 8] = b"\xff" * 8
    path.write_bytes(content)
    for score in (assay.score, lambda *args: assay.score_file(*args, tmp_path / "out.parquet")):
        with pytest.raises(assay.InputError, match=r"rows\.arrow: is damaged: "):
            score(path, SPEC)
    assert not (tmp_path / "out.parquet").exists()


def test_a_file_that_grows_beyond_its_ratio_is_refused_as_it_is_read(tmp_path):
    path, large = tmp_path / "in.arrow", pa.table({"completion": ["b" * (1 << 20)] * 100})
    with pa.ipc.new_stream(str(path), large.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(large, max_chunksize=10)
    with pytest.raises(assay.InputError, match=r"when read, .* times as many; `max_ratio` allows 200"):
        assay.score_file(path, SPEC)
    assert assay.score_file(path, SPEC, max_ratio=1e6).rows == 100


TEXTS = pa.array([f"{at:04}" * 500 for at in range(400)]).dictionary_encode()
PLACES = pa.array(range(401), pa.int32())
NESTED = {
    "a column": TEXTS,
    "a struct": pa.StructArray.from_arrays([TEXTS], ["text"]),
    "a list": pa.ListArray.from_arrays(PLACES, TEXTS),
    "a large list of structs": pa.LargeListArray.from_arrays(
        PLACES.cast(pa.int64()), pa.StructArray.from_arrays([TEXTS], ["text"])
    ),
}


@pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
@pytest.mark.parametrize("place", some(NESTED))
def test_a_dictionary_counts_once_however_many_batches_there_are(tmp_path, place, new):
    table, path = pa.table({"completion": ["b"] * 400, "text": NESTED[place]}), tmp_path / "in.arrow"
    with new(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=1)  # 320 MB, if each batch had a dictionary of its own
    assert assay.score_file(path, SPEC, max_ratio=2, max_uncompressed="2MB").rows == 400
    with pytest.raises(assay.InputError, match="`max_uncompressed` allows 524,288"):
        assay.score_file(path, SPEC, max_uncompressed="512kB")


def test_a_dictionary_that_grows_counts_what_is_new_of_it(tmp_path):
    for deltas in [True, False]:
        words, path = [f"{at:04}" * 500 for at in range(400)], tmp_path / "in.arrow"
        schema = pa.schema([("completion", pa.dictionary(pa.int32(), pa.string()))])
        options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=deltas)
        with pa.ipc.new_stream(str(path), schema, options=options) as writer:
            for at in range(1, 401):
                column = pa.DictionaryArray.from_arrays(pa.array([at - 1], pa.int32()), pa.array(words[:at]))
                writer.write_batch(pa.record_batch([column], schema=schema))
        assert assay.score_file(path, SPEC, max_ratio=2, max_uncompressed="2MB").rows == 400


def test_a_dictionary_in_place_of_another_counts(tmp_path):
    path, schema = tmp_path / "in.arrow", pa.schema([("completion", pa.dictionary(pa.int32(), pa.string()))])
    with pa.ipc.new_stream(str(path), schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        for at in range(80):
            column = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), pa.array([f"{at}" + "b" * (1 << 20)]))
            writer.write_batch(pa.record_batch([column], schema=schema))
    with pytest.raises(assay.InputError, match="`max_ratio` allows 200"):
        assay.score_file(path, SPEC)


def test_a_batch_that_lies_of_its_lengths_is_looked_at_before_it_is_counted(tmp_path):
    offsets = pa.array([0, 2, 1 << 30, 3], pa.int32()).buffers()[1]
    lying = pa.StringArray.from_buffers(3, offsets, pa.py_buffer(b"abc"))
    messages = pa.StructArray.from_arrays([pa.array(["assistant"] * 3), lying], names=["role", "content"])
    table = pa.table({"completion": pa.ListArray.from_arrays([0, 1, 2, 3], messages)})
    for new in (pa.ipc.new_file, pa.ipc.new_stream):
        with new(str(tmp_path / "in.arrow"), table.schema) as writer:
            writer.write_table(table)
        with pytest.raises(assay.InputError, match=r"in\.arrow: The Arrow data is not valid"):
            assay.score_file(tmp_path / "in.arrow", SPEC)
