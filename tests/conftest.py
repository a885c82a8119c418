"""What all tests have in common."""

import sys

import pytest
from cases import LONG, sized

_WRITES_BYTECODE = not sys.dont_write_bytecode
sys.dont_write_bytecode = (
    False  # while tests are collected: each of hundreds of processes would compile the package anew
)

from assay import testing  # noqa: E402
from assay.thresholds import THRESHOLDS  # noqa: E402

testing.ALONE = sized(1, 5)


@pytest.fixture(autouse=True)
def _columns_for_few_rows(request, monkeypatch):
    """Columns answer for a handful of rows too, so that tests compare them with the definition; ``small`` leaves it as it is."""
    if "small" not in request.fixturenames:
        monkeypatch.setattr(THRESHOLDS, "small_batch", 0)


@pytest.fixture
def small():
    """Batches that are answered as they are for users."""


def pytest_make_parametrize_id(val):
    """A long text is no name: one of 100 MB would be sent to every process of the suite."""
    return f"{val[:40]}…{len(val)}" if isinstance(val, str) and len(val) > 80 else None


def pytest_collection_finish():
    """From here on modules that tests write are compiled as the environment has it."""
    sys.dont_write_bytecode = not _WRITES_BYTECODE


def pytest_collection_modifyitems(config, items):
    """Tests marked ``long`` run in ``make test-all``: others show the same in less time."""
    if LONG:
        return
    left = [item for item in items if item.get_closest_marker("long")]
    if left and len(left) < len(items):
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]
