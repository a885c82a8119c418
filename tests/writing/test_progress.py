"""How far a run is: in words that agree with their numbers, on a terminal and elsewhere."""

import gzip
import io
import re

import pytest
from rich.console import Console

from assay.loading.formats.reading import Reading, listening, looked_through
from assay.loading.rollouts import open_rollouts
from assay.writing import progress as module
from assay.writing.progress import Meter


class Clock:
    """A clock that stands still until it is set."""

    now = 0.0

    def __call__(self):
        return self.now


def said(*reports, clock=None):
    """The words of the last of some reports: seconds, rows done, all rows."""
    clock = clock or Clock()
    meter = Meter(clock)
    for clock.now, done, total in reports:
        words = meter.words(done, total)
    return words


@pytest.mark.parametrize(
    ("reports", "words"),
    [
        ([(0, 0, 10_000_000), (4, 3_248_000, 10_000_000)], "3.2/10 M rows · 812,000 rows/s · 8 s left"),
        ([(0, 0, 12_345_678)], "0.0/12.3 M rows"),
        ([(0, 0, 1), (1, 1, 1)], "1/1 row · 1 rows/s · 0 s left"),
        ([(0, 5, 4_000)], "5/4,000 rows"),
        ([(0, 0, None), (2, 2_500, None)], "2,500 rows · 1,250 rows/s"),
        ([(0, 1, None)], "1 row"),
        ([(0, 900, 1_800), (10, 1_000, 1_800)], "1,000/1,800 rows · 10 rows/s · 1 min 20 s left"),  # 900 were there
        # fast for a minute, then slow: the last 30 seconds count
        ([(0, 0, 7_000), (60, 6_000, 7_000), (61, 6_001, 7_000), (91, 6_031, 7_000)], "6,031/7,000 rows · 1 rows/s · 16 min 9 s left"),
    ],
)  # fmt: skip
def test_rows_speed_and_the_time_left(reports, words):
    assert said(*reports) == words


@pytest.mark.parametrize(
    ("reports", "words"),
    [
        ([(0, 0, 4_000_000_000), (2, 500_000_000, 4_000_000_000)], "500 MB of 4.0 GB · 250 MB/s · 14 s left"),
        ([(0, 0, None), (4, 1_200, None)], "1.2 kB · 300 B/s"),
    ],
)
def test_bytes_are_counted_while_rows_are_unknown(reports, words):
    clock = Clock()
    meter = Meter(clock, in_bytes=True)
    for clock.now, done, total in reports:
        said_last = meter.words(done, total)
    assert said_last == words


@pytest.mark.parametrize(("packed", "total"), [(False, 2_780), (True, None)])
def test_files_of_lines_tell_how_far_they_have_been_looked_through(packed, total, tmp_path):
    line, paths = b'{"completion": "x"}\n', [tmp_path / f"{name}.jsonl" for name in "ab"]
    for path, lines in zip(paths, (100, 39), strict=True):
        path.write_bytes(gzip.compress(line * lines) if packed and lines == 39 else line * lines)
    heard = []
    with listening(lambda done, of: heard.append((done, of))):
        assert open_rollouts(paths, Reading()).rows == 139
    assert heard == [(2_000, total), (2_780, total)]


def test_elsewhere_there_is_a_line_every_thirty_seconds():
    clock, text = Clock(), io.StringIO()
    report = module._lines("scoring", Console(file=text, width=40), Meter(clock), clock)
    for clock.now in range(0, 100, 5):
        report(clock.now * 1_000, 200_000)
    assert text.getvalue().splitlines() == [
        "scoring 30,000/200,000 rows · 1,000 rows/s · 2 min 50 s left",
        "scoring 60,000/200,000 rows · 1,000 rows/s · 2 min 20 s left",
        "scoring 90,000/200,000 rows · 1,000 rows/s · 1 min 50 s left",
    ]


@pytest.mark.parametrize(("show", "piped", "reports"), [(True, True, True), (True, False, False), (False, True, False)])
def test_who_is_told_where_there_is_no_terminal(show, piped, reports):
    with module.progress("scoring", show=show, piped=piped) as report:
        assert (report is not None) == reports


@pytest.mark.parametrize(("rows", "text"), [(0, "0 rows"), (1, "1 row"), (1_000, "1,000 rows")])
def test_a_terminal_has_a_bar(monkeypatch, rows, text):
    output = io.StringIO()
    monkeypatch.setattr(module, "open_console", lambda **_: Console(file=output, force_terminal=True, width=120))
    with module.progress("scoring") as report:
        report(rows, None)
    assert "scoring" in output.getvalue()
    assert f" {text}" in output.getvalue()


def test_a_bar_shows_files_that_are_looked_through(monkeypatch):
    output = io.StringIO()
    monkeypatch.setattr(module, "open_console", lambda **_: Console(file=output, force_terminal=True, width=120))
    with module.progress("scoring"):
        looked_through(500, 1_000)
    assert re.search("reading .*━.* 500 B of 1.0 kB", output.getvalue())
