"""Parquet: both readers give the same rows, whatever the row groups, pieces and limits; what is broken is named."""

import datetime as dt
import decimal
import os
import resource
from dataclasses import replace

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import crossed
from polars.testing import assert_frame_equal

import assay
from assay.compiling.plan import in_pieces
from assay.loading.formats import parquet
from assay.loading.formats.parquet import _refuse_false_footer, begin, open_parquet
from assay.loading.formats.parquet_pages import are_checked, find_fault, largest_page, largest_value
from assay.loading.formats.reading import Reading
from assay.options import ReadingOptions, settle
from assay.thresholds import set_to

SPEC = {"id": "v", "checks": [{"type": "contains", "value": "b"}, {"type": "min_length", "value": 3}]}
ROWS = 700
HOSTILE = ["", "b", None, "é\x00\U0001f600", "a\u2028b", "x" * 5000, "\ufeff", "b" * 13]
MOMENT = dt.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=dt.UTC)
COLUMNS = {
    "text": pa.array([HOSTILE[at % len(HOSTILE)] for at in range(ROWS)]),
    "large": pa.array([HOSTILE[at % 5] for at in range(ROWS)], pa.large_string()),
    "bytes": pa.array([None if at % 7 == 0 else bytes([at % 256, 255]) for at in range(ROWS)]),
    "number": pa.array([None if at % 3 == 0 else at for at in range(ROWS)], pa.int16()),
    "unsigned": pa.array(range(ROWS), pa.uint64()),
    "real": pa.array([(0.1 * at, float("nan"), -0.0, None)[at % 4] for at in range(ROWS)]),
    "single": pa.array([0.1 * at for at in range(ROWS)], pa.float32()),
    "flag": pa.array([(True, None, False)[at % 3] for at in range(ROWS)]),
    "day": pa.array([dt.date(1969, 12, 31) + dt.timedelta(at) for at in range(ROWS)]),
    "moment": pa.array([MOMENT] * ROWS, pa.timestamp("us", "Europe/Paris")),
    "nanos": pa.array(range(ROWS), pa.timestamp("ns")),
    "seconds": pa.array(range(ROWS), pa.timestamp("s")),
    "money": pa.array([decimal.Decimal(at) / 100 for at in range(ROWS)], pa.decimal128(20, 4)),
    "nothing": pa.nulls(ROWS),
    "list": pa.array([(None, [], ["a", None], ["b"] * 9)[at % 4] for at in range(ROWS)]),
    "chat": pa.array(
        [
            (None, [], [{"role": "user", "content": "é"}, None, {"role": None, "content": f"{at}"}])[at % 3]
            for at in range(ROWS)
        ]
    ),
    "struct": pa.array([(None, {"a": at, "b": None}, {"a": None, "b": {"c": ["x"]}})[at % 3] for at in range(ROWS)]),
    # what the buffered reader would give another type
    "category": pa.array([f"{at % 3}" for at in range(ROWS)]).dictionary_encode(),
    "time": pa.array(range(ROWS), pa.time64("us")),
    "duration": pa.array(range(ROWS), pa.duration("us")),
    "array": pa.array([[at, at] for at in range(ROWS)], pa.list_(pa.int32(), 2)),
    "map": pa.array([[("a", at)] for at in range(ROWS)], pa.map_(pa.string(), pa.int64())),
    "half": pa.array([1.5] * ROWS, pa.float16()),
    "wide": pa.array([decimal.Decimal(at) for at in range(ROWS)], pa.decimal256(38, 2)),
}
PLAIN = list(COLUMNS)[: list(COLUMNS).index("category")]


def written(path, columns=None, rows=None, **options):
    table = columns if isinstance(columns, pa.Table) else pa.table(columns or {name: COLUMNS[name] for name in PLAIN})
    pq.write_table(table, path, row_group_size=rows, **options)
    return path


def buffered(path, **reading):
    file = open_parquet(path, Reading(**reading))
    object.__setattr__(file, "_buffered", lambda _: True)
    return file


def said(source, **reads):
    with pytest.raises(assay.InputError) as refused:
        assay.score_file(source, SPEC, **reads)
    return refused.value.text


def test_a_column_is_the_same_from_both_readers_or_left_to_the_engine(tmp_path):
    for name, values in COLUMNS.items():
        path = written(tmp_path / "a.parquet", {name: values}, 100)
        file = buffered(path)
        assert file.plain == (name in PLAIN)
        assert_frame_equal(file.scan().collect(), pl.read_parquet(path), check_exact=True)


@pytest.mark.parametrize(("rows", "piece"), crossed([1, 7, 100, ROWS], [1, 64, 100_000]))
def test_rows_are_the_same_whatever_the_groups_and_the_pieces(tmp_path, rows, piece):
    path = written(tmp_path / "a.parquet", rows=rows, compression="zstd")
    with in_pieces(piece):
        assert_frame_equal(buffered(path).scan().collect(engine="streaming"), pl.read_parquet(path), check_exact=True)


def test_any_units_any_columns_any_number_of_rows(tmp_path):
    path = written(tmp_path / "a.parquet", rows=100)
    whole, file = pl.read_parquet(path), buffered(path)
    assert_frame_equal(file.scan(2, 5).collect(), whole[200:500])
    assert_frame_equal(file.scan(6, 7).select("number", "text").collect(), whole[600:].select("number", "text"))
    assert_frame_equal(file.scan(1).head(150).collect(), whole[100:250])
    assert_frame_equal(file.scan().filter(pl.col("number") > 600).collect(), whole.filter(pl.col("number") > 600))
    assert file.scan().head(0).collect().shape == (0, whole.width)
    assert file.scan(3, 3).collect().height == 0
    assert file.scan().select(pl.len()).collect().item() == ROWS


def test_files_of_no_rows_and_with_empty_groups(tmp_path):
    empty = pa.table({name: COLUMNS[name] for name in PLAIN}).slice(0, 0)
    none = written(tmp_path / "none.parquet", empty)
    with pq.ParquetWriter(tmp_path / "some.parquet", empty.schema) as writer:
        for rows in (0, 3, 0, 5, 0):
            writer.write_table(pa.table({name: COLUMNS[name] for name in PLAIN}).slice(0, rows))
    for path in (none, tmp_path / "some.parquet"):
        assert_frame_equal(buffered(path).scan().collect(), pl.read_parquet(path))


def test_a_name_with_a_dot_is_no_path(tmp_path):
    columns = {"a": pa.array([{"b": 1}]), "a.b": pa.array([2])}
    file = open_parquet(written(tmp_path / "a.parquet", columns), Reading())
    assert not file.plain
    assert file.scan().select("a.b").collect().item() == 2
    alone = buffered(written(tmp_path / "b.parquet", {"a.b": pa.array([2]), "c": pa.array([3])}))
    assert alone.plain
    assert alone.scan().select("a.b").collect().item() == 2


def test_the_reader_follows_the_size_of_the_groups_and_the_limit(tmp_path):
    texts = pa.table({"completion": [f"{at} " + "b" * 1000 for at in range(5000)]})
    path = written(tmp_path / "a.parquet", texts, compression="none", use_dictionary=False)
    small = written(tmp_path / "b.parquet", texts, 100)
    [unit] = open_parquet(path, Reading()).units

    def is_buffered(path, *units, **reading):
        file = open_parquet(path, Reading(**reading))
        return file._buffered(units or file.units)

    assert not is_buffered(path)
    assert is_buffered(path, replace(unit, size=10**9))
    assert not is_buffered(path, replace(unit, size=10**9), memory_limit=10**11)
    assert not is_buffered(small)
    assert is_buffered(written(tmp_path / "c.parquet", texts.append_column("list", [[["a"]] * 5000]), 100))
    assert [frame.height for frame in open_parquet(small, Reading()).read(3, None, ["completion"], 7)] == [4700]
    with set_to(piece=250):
        heights = [frame.height for frame in open_parquet(small, Reading()).read(3, None, ["completion"], 7)]
    assert heights == [200] * 23 + [100]
    assert is_buffered(path, verify_checksums=True)
    assert is_buffered(path, utf8="replace")


def test_scores_do_not_depend_on_the_limit_or_the_groups(tmp_path):
    columns = {"completion": COLUMNS["text"], "list": COLUMNS["list"], "id": pa.array(range(ROWS))}
    out = []
    for rows, reads in (
        (ROWS, {}),
        (1, {"memory_limit": "512MiB"}),
        (64, {"memory_limit": "64GB"}),
        (64, {"utf8": "replace"}),
    ):
        path = written(tmp_path / "a.parquet", columns, rows)
        assay.score_file(path, SPEC, tmp_path / "out.parquet", overwrite=True, **reads)
        out.append(pl.read_parquet(tmp_path / "out.parquet"))
    for other in out[1:]:
        assert_frame_equal(other, out[0], check_exact=True)


def not_utf8(path, rows=None, nested=False):
    raw = pa.array([b"a b", b"\xff\xfe b", None, b"caf\xe9 b"] * 100)
    text = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
    if nested:
        text = pa.ListArray.from_arrays(range(len(raw) + 1), pa.StructArray.from_arrays([text], ["content"]))
    return written(path, pa.table({"id": range(400), "completion": text}), rows)


def test_text_that_is_no_utf8_is_refused_with_its_place(tmp_path):
    for rows in [None, 2]:
        path = not_utf8(tmp_path / "a.parquet", rows)
        assert f"{path}: column `completion`, row group 0: text that is not UTF-8; --utf8 replace" in said(path)


def test_text_that_is_no_utf8_is_read_as_python_replaces_it(tmp_path):
    for nested in [False, True]:
        path = not_utf8(tmp_path / "a.parquet", nested=nested)
        found = open_parquet(path, Reading(utf8="replace")).scan().collect()["completion"]
        texts = [one[0]["content"] for one in found.to_list()] if nested else found.to_list()
        assert texts == ["a b", "\ufffd\ufffd b", None, "caf\ufffd b"] * 100
        assert assay.score_file(path, SPEC, utf8="replace").rows == 400


def test_a_file_that_is_no_parquet_is_refused_with_what_it_seems_to_be(tmp_path):
    for content, seems in [
        (b"", "the file is empty."),
        (b"<!doctype html><html>sign in", "it seems to be an HTML or XML page."),
        (b'{"completion": "b"}\n', "it seems to be JSON."),
        (b"version https://git-lfs.github.com/spec/v1\n", "it seems to be a Git LFS pointer."),
        (b"PAR1" + b"\x15\x04" * 50, "it is cut short: its footer is missing."),
        (b"\x00" * 100, "it does not begin like one."),
        (b"PAR1", ""),
        (b"PAR1" + b"\x00" * 20 + b"\xff\xff\xff\x7fPAR1", ""),
    ]:
        path = tmp_path / "a.parquet"
        path.write_bytes(content)
        assert said(path).startswith(f"{path}: not a readable parquet file: {seems}")


def test_bad_files_are_left_out_on_demand_and_named(tmp_path):
    good = written(tmp_path / "a.parquet", {"completion": pa.array(["b"])})
    (tmp_path / "b.parquet").write_bytes(good.read_bytes()[:-5])
    assert "b.parquet: not a readable parquet file: it is cut short" in said(tmp_path)
    out = tmp_path / "out" / "o.parquet"
    out.parent.mkdir()
    summary = assay.score_file(tmp_path, SPEC, out, skip_bad_files=True)
    assert summary.rows == 1
    assert any("skipped:" in note and "b.parquet" in note for note in summary.notes)
    first, second = assay.read_provenance(out)["inputs"]
    assert "skipped" not in first
    assert "it is cut short" in second["skipped"]
    good.unlink()
    assert "b.parquet: not a readable parquet file" in said(tmp_path, skip_bad_files=True)


def flipped(path, column, where=None):
    """One bit in the middle of a column's last page is another."""
    chunk = pq.read_metadata(path).row_group(1).column(column)
    content = bytearray(path.read_bytes())
    content[chunk.data_page_offset + chunk.total_compressed_size * 3 // 4] ^= 4
    path.write_bytes(bytes(content))
    return path


def test_a_flipped_bit_is_found_by_the_checksum_of_its_page(tmp_path):
    for also in [{}, {"kind": pa.array(["x"] * 400).dictionary_encode()}]:
        columns = {"id": pa.array(range(400)), "completion": pa.array([f"{at} b" * 20 for at in range(400)]), **also}
        options = {"compression": "none", "use_dictionary": list(also), "write_page_checksum": True}
        path = written(tmp_path / "a.parquet", columns, 200, **options)
        assert assay.score_file(path, SPEC, verify_checksums=True).notes == []
        flipped(path, 1)
        assert assay.score_file(path, SPEC).rows == 400  # nothing else tells
        assert said(path, verify_checksums=True).startswith(f"{path}: column `completion`, row group 1: ")
        assert find_fault(path) == ""


def test_a_file_without_checksums_is_scored_with_a_note(tmp_path):
    path = written(tmp_path / "a.parquet", {"completion": pa.array(["b"])})
    assert not are_checked(path)
    notes = assay.score_file(path, SPEC, verify_checksums=True).notes
    assert notes == [f"{path}: its pages have no checksums to verify"]
    assert are_checked(written(tmp_path / "b.parquet", write_page_checksum=True))


@pytest.fixture(scope="module")
def bomb(tmp_path_factory):
    """70 MiB of one letter in some kilobytes, in one page."""
    text = pa.array(["b" * (1 << 20)] * 70)
    path = tmp_path_factory.mktemp("bomb") / "a.parquet"
    return written(path, {"completion": text}, compression="zstd", use_dictionary=False, data_page_size=1 << 30)


def test_a_file_that_grows_beyond_its_ratio_is_refused_before_it_is_read(bomb):
    told = said(bomb)
    assert "times as many; --max-ratio allows 200." in told
    assert "Write --max-ratio" in told
    assert assay.score_file(bomb, SPEC, max_ratio=1e6).rows == 70


def test_texts_that_repeat_are_no_bomb_where_they_come_in_pieces(tmp_path):
    for rows in [1, 7, 70]:
        path = tmp_path / "a.parquet"
        text = {"completion": pa.array(["b" * (1 << 20)] * 70)}
        written(path, text, rows, compression="zstd", use_dictionary=False, write_batch_size=1)
        assert path.stat().st_size < 1 << 19
        assert assay.score_file(path, SPEC).rows == 70
        assert "--max-uncompressed allows 1,048,576." in said(path, max_uncompressed="1MB")
        assert "--max-uncompressed allows 1,048,576." in said([path, bomb_beside(tmp_path)], max_uncompressed="1MB")


def bomb_beside(folder):
    path = folder / "beside.parquet"
    return written(path, {"completion": pa.array(["b"])})


@pytest.mark.parametrize("others", [[], ["noise"]], ids=["alone", "in a file that is large"])
def test_of_a_bomb_the_columns_that_are_read_count(tmp_path, bomb, others):
    table = pq.read_table(bomb).append_column("text", pa.array(["b"] * 70))
    for name in others:
        table = table.append_column(name, pa.array([os.urandom(1 << 14) for _ in range(70)]))
    path = written(tmp_path / "a.parquet", table, use_dictionary=False, compression="zstd", data_page_size=1 << 30)
    for source in (path, [path, written(tmp_path / "b.parquet", table.slice(0, 1))]):
        assert "times as many; --max-ratio allows 200." in said(source, keep=[])
        assert assay.score_file(source, SPEC, mapping={"completion": "text"}, keep=[]).rows >= 70
        scanned = assay.scan(source).select("text").collect()
        assert scanned["text"].to_list() == ["b"] * scanned.height


def test_a_bomb_that_the_engine_alone_can_read_is_refused_by_its_row_groups(tmp_path):
    table = pa.table({"completion": ["b" * (1 << 20)] * 70, "half": pa.array([1.5] * 70, pa.float16())})
    options = {"compression": "zstd", "use_dictionary": False, "write_batch_size": 1}
    assert "--max-ratio allows 200." in said(written(tmp_path / "a.parquet", table, 70, **options))
    assert assay.score_file(written(tmp_path / "b.parquet", table, 7, **options), SPEC).rows == 70


def test_pages_whose_headers_cannot_be_read_are_as_large_as_their_column(tmp_path, bomb):
    table = pa.table({"completion": ["b" * (1 << 20)] * 70})
    options = {"compression": "zstd", "use_dictionary": False, "write_batch_size": 1}
    path = written(tmp_path / "a.parquet", table, **options)
    assert largest_page(path, ["completion"]) < 1 << 21
    assert largest_page(bomb, ["completion"]) > 70 << 20
    assert largest_page(bomb, ["another"]) == 0
    data = bytearray(path.read_bytes())
    for damage in (b"\x00" * 16, b"\x19\xff" * 8, b"\x15\x01\x15\x01\x15\x01\x00", b"\xfc" * 64):
        path.write_bytes(data[:4] + damage + data[4 + len(damage) :])
        assert (
            largest_page(path, ["completion"]) == pq.read_metadata(path).row_group(0).column(0).total_uncompressed_size
        )


def test_a_file_with_more_bytes_than_allowed_is_refused(bomb):
    assert "--max-uncompressed allows 1,048,576." in said(bomb, max_uncompressed="1MB", max_ratio=1e6)


def test_values_that_are_said_once_count_as_often_as_they_are_read(tmp_path):
    text = pa.array(["b" * (1 << 18)] * 400)
    path = written(tmp_path / "a.parquet", {"completion": text}, compression="zstd")  # the footer knows of one value
    assert "--max-ratio allows 200" in said(path)
    assert "--max-uncompressed allows" in said(path, max_ratio=1e6, max_uncompressed="50MB")
    assert assay.score_file(path, SPEC, max_ratio=1e6).rows == 400
    written(path, {"completion": text}, 10, compression="zstd")
    assert "--max-uncompressed allows" in said(path, max_uncompressed="50MB")
    assert assay.score_file(path, SPEC).rows == 400


def test_a_value_that_stands_there_once_is_not_decoded_more_often_than_memory_allows(tmp_path):
    path = tmp_path / "a.parquet"
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), pa.array(["b" * (16 << 20)]))
    written(path, {"completion": text}, compression="zstd", store_schema=False)  # 16 GiB
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "expand to 16,777,216,000 when read" in said(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2 << 20  # kB


def test_how_long_a_value_of_a_dictionary_may_be_is_looked_at_where_it_matters(tmp_path):
    texts = [f"{at:04}" * 250 for at in range(600)]
    nested = pa.array([{"t": text} for text in texts])
    path = written(tmp_path / "a.parquet", {"text": texts, "nested": nested, "number": range(600)}, 300)
    footer = pq.read_metadata(path)
    assert largest_value(path, footer, [0, 1], ["text", "number"], 1 << 18) == 1000
    assert largest_value(path, footer, [1], ["nested"], 1 << 18) == 300 * 1004  # all that is in the page
    assert largest_value(path, footer, [1], ["text", "nested", "number"], 1 << 20) == 0


def test_a_small_file_is_no_bomb(tmp_path):
    path = written(tmp_path / "a.parquet", {"completion": pa.array(["b" * (1 << 20)] * 20)})
    assert assay.score_file(path, SPEC).rows == 20


@pytest.fixture
def decoded(tmp_path, monkeypatch):
    """A file of five row groups, and a function that gives the groups and columns that were decoded since it was last called."""
    columns = {"id": pa.array(range(5_000)), "completion": pa.array([f"b{at}" for at in range(5_000)])}
    seen, decode = [], parquet._Decoder._decode
    monkeypatch.setattr(parquet._Decoder, "_decode", lambda *given: seen.append(given[1:]) or decode(*given))
    monkeypatch.setattr(pl, "thread_pool_size", lambda: 2)
    with set_to(piece=1_000):
        yield written(tmp_path / "a.parquet", columns, 1_000), lambda: [seen.pop() for _ in range(len(seen))]
    parquet._BEGUN.clear()


@pytest.mark.parametrize("names", [["completion"], ["id", "completion"], ["completion", "id"], ["id"], []])
def test_completions_that_were_begun_are_not_decoded_again(decoded, names):
    path, done = decoded
    file = open_parquet(path, Reading())
    whole = pl.concat(file.read(0, None, names, 100))
    assert sorted(group for group, _ in done()) == [*range(5)]
    begin(path)
    frames = [*file.read(0, None, names, 100)]
    assert_frame_equal(pl.concat(frames).select(whole.columns), whole)
    assert [frame.height for frame in frames] == [1_000] * 5
    again = sorted(group for group, columns in done() if "completion" in columns)
    assert again == ([*range(5)] if "completion" in names else [*range(3)])
    assert not parquet._BEGUN


def test_groups_are_put_together_in_time_that_grows_with_their_number(tmp_path):
    file = open_parquet(written(tmp_path / "a.parquet", {"completion": ["b"]}), Reading())
    many = replace(file, units=file.units * 4_096)
    looked_at = 0

    def counted(units, of=parquet._rows_of):
        nonlocal looked_at
        looked_at += len(units)
        return of(units)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "_rows_of", counted)
        assert [len(part) for part in parquet._Decoder(many)._parts] == [4_096]
    assert looked_at < 4 * 4_096


def test_what_was_begun_of_a_file_that_changed_is_not_used(decoded):
    path, _ = decoded
    begin(path)
    written(path, {"completion": pa.array(["c"] * 2_000)}, 1_000)
    frames = [*open_parquet(path, Reading()).read(0, None, ["completion"], 100)]
    assert pl.concat(frames)["completion"].to_list() == ["c"] * 2_000


def test_nothing_is_begun_of_a_file_that_cannot_be_read_or_has_no_completions(decoded):
    path, done = decoded
    begin(path.with_name("absent.parquet"))
    begin(written(path.with_name("other.parquet"), {"response": pa.array(["b"] * 2_000)}, 1_000))
    path.write_bytes(path.read_bytes()[:-9])
    begin(path)
    assert not parquet._BEGUN
    assert not done()


@pytest.mark.parametrize("change", ["grown", "replaced", "gone"])
def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, change):
    path = written(tmp_path / "a.parquet", {"completion": pa.array(["b"] * 100)})

    def meddle(*_):
        if change == "grown":
            with path.open("ab") as file:
                file.write(b"x")
        elif change == "replaced":
            os.utime(path, ns=(1, 1))
        else:
            path.unlink(missing_ok=True)

    out = tmp_path / "out.parquet"
    with pytest.raises(assay.InputError, match=r"a\.parquet: .*while it was read"):
        assay.score_file(path, SPEC, out, progress=meddle)
    assert not out.exists()


def test_types_that_drift_between_files(tmp_path):
    one = written(tmp_path / "a.parquet", {"completion": pa.array(["b"]), "x": pa.array([1], pa.int32())})
    two = written(tmp_path / "b.parquet", {"completion": pa.array(["b"]), "x": pa.array([1.5]), "y": pa.array(["z"])})
    assay.score_file([one, two], SPEC, tmp_path / "out.parquet")
    found = pl.read_parquet(tmp_path / "out.parquet", columns=["x", "y"])
    assert found.rows() == [(1.0, None), (1.5, "z")]
    three = written(tmp_path / "c.parquet", {"completion": pa.array(["b"]), "x": pa.array(["1"])})
    assert said([one, three]).startswith(f"`x` is Int32 in {one} and String in {three}.")


def test_values_that_cannot_be_used(tmp_path):
    for reads, message in [
        ({"memory_limit": "10MB"}, "--memory-limit 10,485,760: below the minimum of 536,870,912 bytes"),
        ({"memory_limit": "plenty"}, "--memory-limit plenty: expected a size."),
        ({"max_uncompressed": "-1"}, "--max-uncompressed -1: expected a size."),
        ({"max_ratio": 0}, "--max-ratio 0: a ratio is at least 1."),
        ({"max_ratio": float("nan")}, "--max-ratio nan: a ratio is at least 1."),
        ({"utf8": "ignore"}, "--utf8 ignore: expected replace or strict."),
    ]:
        path = written(tmp_path / "a.parquet", {"completion": pa.array(["b"])})
        with pytest.raises(assay.UsageError) as refused:
            assay.score_file(path, SPEC, **reads)
        assert refused.value.text.startswith(message)


def test_sizes():
    for given, size in [
        ("1GB", 1 << 30),
        ("1.5 GiB", 3 << 29),
        ("512mib", 1 << 29),
        ("1000", 1000),
        (7, 7),
        ("2kb", 2048),
        ("3T", 3 << 40),
        (None, None),
    ]:
        assert settle(ReadingOptions, {"max_uncompressed": given}, "scan")["max_uncompressed"] == size


@pytest.mark.parametrize("part", ["data_page_offset", "total_compressed_size", "num_rows"])
def test_a_footer_that_speaks_of_what_is_not_there_is_refused(tmp_path, part):
    class Lying:
        """What stands in a footer, but for one number."""

        def __init__(self, true):
            self.true = true

        def __getattr__(self, name):
            return (-1 if part == "num_rows" else 1 << 40) if name == part else getattr(self.true, name)

        def column(self, at):
            return Lying(self.true.column(at))

    path = tmp_path / "in.parquet"
    pl.DataFrame({"completion": ["a"]}).write_parquet(path)
    group = pq.read_metadata(path).row_group(0)
    with pytest.raises(
        assay.InputError,
        match="column `completion`, row group 0: the footer refers to bytes that the file does not have",
    ):
        _refuse_false_footer(path, [Lying(group)])
    _refuse_false_footer(path, [group])


def test_rows_that_a_column_lacks_are_an_error_and_no_shorter_result(tmp_path, monkeypatch):
    path, whole = tmp_path / "in.parquet", pq.ParquetFile.iter_batches
    pl.DataFrame({"completion": ["a"] * 100}).write_parquet(path, row_group_size=10)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda *args, **kwargs: [next(whole(*args, **kwargs)).slice(1)])
    with pytest.raises(assay.InputError, match=r"in\.parquet: a column ends early: .* of 100 rows can be read"):
        assay.score_file(path, SPEC, tmp_path / "out.parquet", verify_checksums=True)
    assert not (tmp_path / "out.parquet").exists()
