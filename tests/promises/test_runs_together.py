"""Runs that share an event loop, runs that are stopped, and functions that raise what is no ``Exception``."""

import asyncio
import contextlib
import fcntl
import os
import signal
import threading

import pytest
from cases import each
from waiting import PATIENCE

import assay
from assay.system.locks import locked

ROWS = [{"completion": str(number)} for number in range(60)]


async def waits(completion):
    await asyncio.sleep(0.02)
    return 1.0


@pytest.mark.parametrize("timeout", [None, 1e6])  # longer than a call that hangs takes by the stopped clock
def test_a_call_that_hangs_costs_no_other_run_anything(timeout, clock):
    found = {}

    async def blocks(completion):
        if completion == "3":
            clock.hang()
        return 1.0

    def score():
        found[0] = assay.score(ROWS, assay.Rubric([waits]), function_timeout=timeout, max_concurrent=2)

    other = threading.Thread(target=score)
    other.start()
    mine = assay.score(ROWS, assay.Rubric([blocks]), function_timeout=0.2)
    clock.end()
    other.join()
    assert mine["reward"].sum() == len(ROWS) - 1
    assert found[0]["reward"].to_list() == [1.0] * len(ROWS)
    assert found[0]["error"].null_count() == len(ROWS)


@each("timeout", [None, PATIENCE])
def test_after_a_run_that_was_stopped_others_go_on(timeout):
    async def stops(completion):
        if completion == "3":
            os.kill(os.getpid(), signal.SIGINT)
        return await waits(completion)

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            assay.score(ROWS * 100, assay.Rubric([stops]), function_timeout=timeout, max_concurrent=1)
    assert assay.score(ROWS[:2], assay.Rubric([waits]), function_timeout=timeout)["reward"].to_list() == [1.0, 1.0]


class Panic(BaseException):
    pass


def raises(wrong, *, asynchronous):
    def func(completion):
        if completion == "1":
            raise wrong
        return 1.0

    async def later(completion):
        return func(completion)

    return later if asynchronous else func


@each("timeout", [None, PATIENCE])
@each("asynchronous", [False, True])
@each("wrong", [Panic("no"), asyncio.CancelledError("no"), SystemExit("no")])
def test_whatever_a_function_raises_costs_one_call(wrong, asynchronous, timeout):
    rubric = assay.Rubric([raises(wrong, asynchronous=asynchronous)])
    scored = assay.score(ROWS[:3], rubric, function_timeout=timeout)
    assert scored["reward"].to_list() == [1.0, 0.0, 1.0]
    assert scored["error"][1].endswith(f"{type(wrong).__name__}: no")


@each("timeout", [None, PATIENCE])
@each("asynchronous", [False, True])
def test_an_interrupt_of_a_function_ends_its_run_only(asynchronous, timeout):
    with pytest.raises(KeyboardInterrupt):
        assay.score(
            ROWS, assay.Rubric([raises(KeyboardInterrupt(), asynchronous=asynchronous)]), function_timeout=timeout
        )
    assert assay.score(ROWS[:1], assay.Rubric([waits]), function_timeout=timeout)["reward"].to_list() == [1.0]


def test_an_asynchronous_function_may_score():
    async def asks(completion):
        return assay.score(ROWS[:2], assay.Rubric([waits]))["reward"].sum()

    for timeout in (None, PATIENCE):
        assert assay.score(ROWS[:3], assay.Rubric([asks]), function_timeout=timeout)["reward"].to_list() == [2.0] * 3


@pytest.mark.parametrize("name", ["open", "truncate", "write", "fstat"])
def test_an_interrupt_while_a_lock_is_taken_leaves_no_file(tmp_path, monkeypatch, name):
    function = getattr(os, name)

    def interrupted(*args):
        function(*args)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(os, name, interrupted)
    with pytest.raises(KeyboardInterrupt), locked(tmp_path / ".lock", "a run", ""):
        pytest.fail("the lock was taken")
    assert not list(tmp_path.iterdir())


def test_a_system_that_gives_no_more_threads_is_told_of_and_signals_are_heard_as_before(monkeypatch):
    def refuse(_):
        raise RuntimeError("can't start new thread")

    before = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(before)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(assay.AssayError, match="The system refuses another thread: can't start new thread"):
            assay.score(ROWS, assay.Rubric([waits]))
    after = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(after)
    assert after == before


def test_a_lock_that_cannot_be_opened_is_named(tmp_path):
    (tmp_path / ".out.parquet.lock").mkdir()
    with pytest.raises(assay.OutputError) as caught:
        assay.score_file(ROWS, assay.Rubric([waits]), tmp_path / "out.parquet")
    assert caught.value.fact == f"{tmp_path}/out.parquet: {tmp_path}/.out.parquet.lock: Is a directory."


def test_a_lock_that_another_program_holds_is_shown_in_a_line(tmp_path):
    lock = tmp_path / ".lock"
    lock.write_bytes(b"backup \xff\n" + b"x" * 100_000)
    with lock.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(assay.UsageError) as caught, locked(lock, "here", ""):
            pass
    assert caught.value.fact == "here: another run is writing there (backup \ufffd)."


def test_a_result_that_another_run_has_written_meanwhile_is_not_replaced(tmp_path, monkeypatch):
    target = tmp_path / "out.jsonl"

    @contextlib.contextmanager
    def late(*args):
        with locked(*args):
            target.write_text("theirs")
            yield

    monkeypatch.setattr("assay.system.atomic_file.locked", late)
    with pytest.raises(assay.UsageError, match=r"out\.jsonl: already exists\."):
        assay.score_file(ROWS, assay.Rubric([waits]), target)
    assert target.read_text() == "theirs"
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]
