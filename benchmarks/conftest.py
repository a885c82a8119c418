"""After the benchmarks: one table on the terminal; what of it has goals goes into measured.md, for the pages, beside what earlier runs measured."""

import json
import platform
from pathlib import Path

import pytest

from harness.draws import SEED
from harness.table import as_text, commit, machine, merged, today

_LINES = []


def pytest_addoption(parser):
    parser.addoption("--results", default=Path(__file__).parent, type=Path, help="where measured.md and stages.md go")


def pytest_configure(config):
    """Refuse to compare with no run, and with one of another machine."""
    if not config.getoption("benchmark_compare", None):
        return
    folder = Path(config.getoption("benchmark_storage").removeprefix("file://"))
    runs = sorted(folder.glob("*/*.json"))
    if not runs:
        raise pytest.UsageError(f"{folder}: no run to compare with; make bench keeps one")
    node = json.loads(runs[-1].read_text("utf-8"))["machine_info"]["node"]
    if node != platform.node():
        raise pytest.UsageError(f"{runs[-1]}: a run of another machine, {node}; make bench keeps one of this machine")


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
        path = config.getoption("results") / "measured.md"
        kept = path.read_text("utf-8") if path.exists() else ""
        run, where = f"{today()}, {commit()}", f"{machine()}, drawn by seed {SEED}"
        path.write_text(merged(kept, shown, run, where), "utf-8")
