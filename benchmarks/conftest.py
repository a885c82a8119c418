"""After the benchmarks: one table on the terminal; in results.md, for the pages, the part of it that has goals."""

from pathlib import Path

import pytest

from harness.draws import SEED
from harness.table import as_markdown, as_text

_LINES = []


def pytest_addoption(parser):
    parser.addoption("--results", default=Path(__file__).parent, type=Path, help="where results.md and stages.md go")


@pytest.fixture(scope="session")
def results(request):
    """The folder of what `make readme` writes into the pages."""
    return request.config.getoption("results")


@pytest.fixture(scope="session")
def table():
    """The lines of the table, to add to."""
    return _LINES


def pytest_collection_modifyitems(items):
    first = ("bench_ten", "bench_draws", "bench_functions")  # the first lines of the table
    items.sort(key=lambda item: first.index(item.path.stem) if item.path.stem in first else len(first))


def pytest_terminal_summary(terminalreporter, config):
    if not _LINES:
        return
    for printed in as_text(_LINES):
        terminalreporter.write_line(printed)
    aimed = {line.measured for line in _LINES if line.goal}
    shown = [line for line in _LINES if line.measured in aimed]
    if shown:
        path = config.getoption("results") / "results.md"
        path.write_text(as_markdown(shown, f"drawn by seed {SEED}"), "utf-8")
