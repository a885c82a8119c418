"""What all tests have in common."""

import compileall
import gc
import os
import sys
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

_WRITES_BYTECODE = not sys.dont_write_bytecode
sys.dont_write_bytecode = (
    False  # while tests are collected: each process would compile the package, hypothesis and all tests anew
)

import pytest  # noqa: E402
from cases import LONG, sized  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402
from waiting import StoppedClock  # noqa: E402

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # nothing here multiplies matrices, and threads that wait spin
if not LONG and os.environ.get("PYTEST_XDIST_WORKER", "gw0") != "gw0":
    # frames of tests are small: there, threads of the engine spend a third of the time on waiting for each other;
    # the first of the processes has as many as a user has, and so have all in make test-all
    os.environ.setdefault("POLARS_MAX_THREADS", "1")

gc.disable()  # while tests are collected: whatever is made then stays
gc.set_threshold(50_000, 20, 20)  # what tests make is small, and mostly gone without a search for circles

import assay  # noqa: E402
from assay import testing  # noqa: E402
from assay.calls import in_thread, runner  # noqa: E402
from assay.classes import registry  # noqa: E402
from assay.spec import check_classes  # noqa: E402
from assay.thresholds import THRESHOLDS  # noqa: E402

compileall.compile_dir(Path(assay.__file__).parent, quiet=2)  # what is imported when it is used, too


@cache
def _entry_points(path, group):
    return entry_points(group=group)


for _module in (registry, check_classes):  # to read those of all packages takes 10 ms: once for each path
    _module.entry_points = lambda *, group: _entry_points((*sys.path,), group)
testing.ALONE = sized(1, 10)
settings.register_profile(
    "any speed", max_examples=sized(100, 25), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any speed")


@pytest.fixture(autouse=True)
def _columns_for_few_rows(request, monkeypatch):
    """Columns answer for a handful of rows too, so that tests compare them with the definition; ``small`` leaves it as it is."""
    if "small" not in request.fixturenames:
        monkeypatch.setattr(THRESHOLDS, "small_batch", 0)


@pytest.fixture
def small():
    """Batches that are answered as they are for users."""


@pytest.fixture
def clock(monkeypatch):
    """A clock for calls within this process: those that hang exceed every limit, and no others do."""
    stopped = StoppedClock()
    for module in (in_thread, runner):
        monkeypatch.setattr(module, "time", stopped)
    yield stopped
    stopped.end()


def pytest_make_parametrize_id(val):
    """A long text is no name: one of 100 MB would be sent to every process of the suite."""
    return f"{val[:40]}…{len(val)}" if isinstance(val, str) and len(val) > 80 else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Tests of a file run in one process, unless a group of theirs has its own: fixtures of the file and caches are made once."""
    from xdist.scheduler import LoadGroupScheduling

    class FileScheduling(LoadGroupScheduling):
        def _split_scope(self, nodeid):
            return super()._split_scope(nodeid).partition("::")[0]

    return FileScheduling(config, log) if config.option.dist == "loadgroup" else None


def pytest_collection_finish():
    """From here on modules that tests write are compiled as the environment has it, and garbage is looked for in what tests make."""
    sys.dont_write_bytecode = not _WRITES_BYTECODE
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config, items):
    """Tests marked ``long`` run in ``make test-all``: others show the same in less time."""
    if LONG:
        return
    left = [item for item in items if item.get_closest_marker("long")]
    if left and len(left) < len(items):
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not item.get_closest_marker("long")]
