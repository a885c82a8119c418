"""The size of the engine's pieces is set for as long as something is scored, and put back."""

import os

import polars as pl
import pytest

import assay
from assay.compiling.plan import in_pieces

SETTING = "POLARS_IDEAL_MORSEL_SIZE"


@pytest.fixture(autouse=True)
def _unset(monkeypatch):
    monkeypatch.delenv(SETTING, raising=False)


def test_the_first_of_several_runs_decides_and_the_last_puts_things_back():
    first, second = in_pieces(100), in_pieces(7)
    first.__enter__()
    second.__enter__()
    assert os.environ[SETTING] == "100"
    first.__exit__(None, None, None)
    assert os.environ[SETTING] == "100"
    second.__exit__(None, None, None)
    assert SETTING not in os.environ


def test_a_setting_of_the_users_stays(monkeypatch):
    monkeypatch.setenv(SETTING, "5")
    with in_pieces(100):
        assert os.environ[SETTING] == "5"
    assert os.environ[SETTING] == "5"


def test_a_run_that_fails_puts_it_back(monkeypatch):
    def breaks(*_, **__):
        assert os.environ[SETTING]
        raise MemoryError

    plan = assay.compile({"checks": [{"type": "json_valid"}]}, {"completion": pl.String})
    monkeypatch.setattr(pl.LazyFrame, "collect", breaks)
    with pytest.raises(MemoryError):
        plan.score(pl.DataFrame({"completion": ["a"] * 70_000}))
    assert SETTING not in os.environ
