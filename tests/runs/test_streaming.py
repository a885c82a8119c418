"""A stream that ends before its rows do is never taken for a whole one."""

import signal
import time

import polars as pl
import pytest
from polars.exceptions import PanicException

import assay
from assay.loading.formats import parquet
from assay.loading.formats.files import open_each
from assay.loading.formats.reading import Pace, Reading
from assay.runs import file_run
from assay.system.signals import interruptible, signalled
from assay.thresholds import set_to

SPEC = {"id": "v", "checks": [{"type": "contains", "value": "b"}]}


@pytest.fixture
def short(monkeypatch):
    whole = pl.LazyFrame.collect_batches
    monkeypatch.setattr(pl.LazyFrame, "collect_batches", lambda *args, **kwargs: [next(whole(*args, **kwargs)).head(1)])


def test_rows_that_do_not_come_are_an_error_and_no_interrupt(short, tmp_path):
    pl.DataFrame({"completion": ["a", "b"]}).write_parquet(tmp_path / "in.parquet")
    for out in ("out.parquet", "out/"):
        with pytest.raises(assay.AssayError, match="a thread of Polars failed"):
            assay.score_file(tmp_path / "in.parquet", SPEC, f"{tmp_path}/{out}", isolate=False)
    assert not [*tmp_path.rglob("out*.parquet"), *tmp_path.rglob("part*")]


def test_after_a_signal_they_are_an_interrupt_whoever_handles_it(short, monkeypatch):
    monkeypatch.setattr(file_run, "in_pieces", lambda _: interruptible())
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        with interruptible():
            assert not signalled()
            signal.raise_signal(signal.SIGUSR1)
            assert signalled()
            with pytest.raises(KeyboardInterrupt):
                [*file_run.batches(pl.LazyFrame({"completion": ["a", "b"]}))]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_file_that_the_engine_fails_on_is_named(monkeypatch, tmp_path):
    def fails(*_, **__):
        raise PanicException("assertion failed: offset + length <= self.length")

    pl.DataFrame({"completion": ["a", "b"]}).write_csv(tmp_path / "in.csv")
    monkeypatch.setattr(pl.LazyFrame, "collect", fails)
    with pytest.raises(assay.InputError, match=r"in\.csv: it is damaged, Polars fails on it"):
        assay.score(tmp_path / "in.csv", SPEC)
    monkeypatch.setattr(pl, "scan_csv", fails)
    with pytest.raises(assay.InputError, match=r"in\.csv: not a readable csv file: it is damaged"):
        open_each([tmp_path / "in.csv"], Reading())
    with pytest.raises(PanicException):  # with no file to blame it is ours
        assay.score([{"completion": "a"}], SPEC)


def _rows_ahead(monkeypatch, owner, source, path, **reading):
    """Score 30,000 rows with a slow function; return by how many those of a source are ahead of it, as each frame comes."""
    handed, scored, ahead = 0, 0, []
    frames = getattr(owner, source)

    def counted(*args):
        nonlocal handed
        for frame in frames(*args):
            handed += frame.height
            ahead.append(handed - scored)
            yield frame

    def slow(completion):
        nonlocal scored
        scored += 1
        return 1.0

    monkeypatch.setattr(owner, source, counted)
    assert assay.score_file(path, assay.Rubric([slow]), **reading).rows == 30_000
    assert handed == 30_000
    return ahead


def test_a_reader_of_row_groups_waits_for_the_rows_that_are_scored(tmp_path, monkeypatch):
    texts = [f"b{at}" for at in range(30_000)]
    pl.DataFrame({"completion": texts}).write_parquet(tmp_path / "in.parquet", row_group_size=1000)
    with set_to(piece=1_000):
        ahead = _rows_ahead(monkeypatch, parquet._Decoder, "frames", tmp_path / "in.parquet")
    assert max(ahead) <= 8_000


@pytest.mark.parametrize("by_pages", [False, True], ids=["by groups", "by pages"])
def test_a_row_group_is_handed_on_in_slices_while_its_rows_are_scored(tmp_path, monkeypatch, by_pages):
    """Or each thread makes columns, and Python's texts, of a whole row group."""
    texts = [f"b{at:05}" for at in range(30_000)]
    pl.DataFrame({"completion": texts}).write_parquet(tmp_path / "in.parquet", row_group_size=15_000)
    slice_rows = 500
    size = pl.Series(texts[:slice_rows]).estimated_size()
    monkeypatch.setattr(file_run, "share", lambda _: size)
    ahead = _rows_ahead(monkeypatch, Pace, "following", tmp_path / "in.parquet", verify_checksums=by_pages)
    # each thread scores a slice, one waits for a thread, and one is read
    assert max(ahead) <= (pl.thread_pool_size() + 2) * (slice_rows + 1)


@pytest.mark.parametrize(("seconds", "waits"), [(0.0, 1), (1.0, 12)], ids=["idle", "working"])
def test_a_reader_waits_while_the_process_works_and_goes_on_with_less(monkeypatch, seconds, waits):
    """No run may hang, and what Polars then holds unscored is little."""
    clock = []
    monkeypatch.setattr("assay.loading.formats.reading._PATIENCE", 0.01)
    monkeypatch.setattr(time, "process_time", lambda: clock.append(0) or seconds * len(clock))
    frame, pace = pl.DataFrame({"completion": ["b" * 100] * 64}), Pace()
    with pace.kept(int(frame.estimated_size()) // 4):
        first, *others = [part.height for part in pace.following(iter([frame]), "completion")]
    assert (first, first + sum(others)) == (17, 64)
    assert max(others) <= 5
    assert len(clock) == 1 + 2 * waits * (1 + len(others))


def test_outside_of_a_run_a_row_group_is_whole():
    frame = pl.DataFrame({"completion": ["b", "c"]})
    assert [part.height for part in Pace().following(iter([frame, frame]), "completion")] == [2, 2]


@pytest.mark.parametrize("texts", ["bb", "bc"], ids=["equal", "distinct"])
def test_all_rows_that_were_read_are_seen_to_be_scored(tmp_path, monkeypatch, texts):
    """Or the reader would wait for them: of a column that is one value for all rows, a function of columns gets one."""
    for at, text in enumerate(texts):
        (tmp_path / f"{at}.jsonl").write_text(f'{{"completion": "{text}"}}\n')
    left, begin = [], Pace._begin
    monkeypatch.setattr(Pace, "_begin", lambda pace, *run: left.append(pace._rows) or begin(pace, *run))
    monkeypatch.setattr("assay.loading.formats.reading._PATIENCE", 0.1)
    assert assay.score_file(sorted(tmp_path.iterdir()), SPEC, tmp_path / "out.parquet").rows == 2
    assert left == [0, 0]
