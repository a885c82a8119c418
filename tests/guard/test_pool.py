"""The one pool of limited processes: what ends costs its item only, and nothing is left over."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from waiting import PATIENCE, until

from assay.guard import pool as pool_module
from assay.guard.pool import Died, Late, Pool, PoolError, Raised, Reply, Request

PROGRAM = str(Path(__file__).with_name("program.py"))
LIMIT = 0.05


@pytest.fixture
def start():
    pools = []

    def start(**options):
        pools.append(Pool(PROGRAM, **{"interruptible": True, "prepare_seconds": LIMIT} | options))
        return pools[-1]

    yield start
    for pool in pools:
        pool.close()


def requests(context, *items):
    return [Request(context, item) for item in items]


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def workers_of(pool):
    (parent,) = pool.processes
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def test_replies_are_what_the_program_returns(start):
    items = [None, True, 1.5, "\ud800", b"\0", (1, ["a"]), {"a": 2}, "x" * 3_000_000]
    assert start().ask(requests("same", *items), None) == [Reply(item) for item in items]


def test_an_exception_is_an_answer(start):
    asked = [*requests("fail", "a"), *requests("refused", 1, 2), *requests("same", 3)]
    refused = Raised("ValueError", "no such context")
    assert start().ask(asked, LIMIT) == [Raised("KeyError", "'a'"), refused, refused, Reply(3)]


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("interruptible", [True, False])
@pytest.mark.parametrize("context", ["late", "unheard"])
def test_what_takes_too_long_costs_itself_only(start, most, interruptible, context):
    pool = start(most=lambda: most, interruptible=interruptible)
    items = ["late" if index in (40, 41, 90) else index for index in range(100)]
    answers = pool.ask(requests(context, *items), LIMIT)
    assert [index for index, answer in enumerate(answers) if answer == Late()] == [40, 41, 90]
    assert sum(isinstance(answer, Reply) for answer in answers) == 97


def test_a_late_item_leaves_an_interruptible_worker_to_the_next(start):
    pool = start(most=lambda: 1)
    (before,) = pool.ask(requests("pid", 0), None)
    assert pool.ask(requests("late", "late", "a"), LIMIT) == [Late(), Reply("a")]
    assert pool.ask(requests("pid", 0), None) == [before]


@pytest.mark.parametrize("items", [["die"], [*range(30), "die", *range(9), "die"]])
def test_what_ends_a_worker_costs_itself_only(start, items):
    wanted = [Died(3, begun=True) if item == "die" else Reply(item) for item in items]
    assert start().ask(requests("die", *items), None) == wanted


def test_a_context_that_takes_too_long_or_ends_workers_is_prepared_no_more(start):
    asked = [*requests("endless", 1, 2), *requests("deadly", 3, 4), *requests("same", 5)]
    died = Died(4)
    assert start().ask(asked, None) == [Late(preparing=True)] * 2 + [died] * 2 + [Reply(5)]


def test_memory_has_a_limit(start):
    pool = start(memory=200_000_000, renewed=True)
    (first,), (second,) = (pool.ask(requests("grow", size), None) for size in (0, 1 << 30))
    assert second == Raised("MemoryError", "it needs more than 0 GiB")
    assert pool.ask(requests("grow", 0), None) != [first], "who had too little memory makes place for another"
    score = Path(f"/proc/{workers_of(pool)[0]}/oom_score_adj")
    assert not score.exists() or score.read_text() == "1000\n"


def test_the_rest_of_a_request_that_takes_long_is_given_back(start, monkeypatch):
    monkeypatch.setattr(pool_module, "_GROWTH", 1_000)
    monkeypatch.setattr(pool_module, "_BATCH_SECONDS", 1_000.0)
    pool = start(most=lambda: 2)
    answers = pool.ask(requests("sleep", 0.0, *[0.03] * 12), None)
    assert len({answer.value for answer in answers}) == 2


@pytest.mark.parametrize("most", [1, 3])
def test_as_many_workers_as_allowed_are_at_work_at_once_and_stay(start, most):
    pool = start(most=lambda: most)
    answers = pool.ask(requests("sleep", *[0.02] * 20), None)
    assert len({answer.value for answer in answers}) == most == len(workers_of(pool))
    pool.ask(requests("sleep", *[0.02] * 20), None)
    assert len(workers_of(pool)) == most


def test_many_threads_have_a_worker_each(start):
    pool, answers = start(), []
    threads = [
        threading.Thread(target=lambda: answers.append(pool.ask(requests("same", *range(500)), None))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert answers == [[Reply(index) for index in range(500)]] * 4


def test_a_wall_clock_ends_the_part_that_is_late_and_no_other(start):
    pool = start(clock="wall", interruptible=False)
    assert pool.ask(requests("parts", [0.06] * 4, [0.0, 60.0]), LIMIT) == [Reply("done"), Late(part=1)]


def test_what_a_program_tells_meanwhile_is_heard_in_order(start):
    notes = [[1, "a" * 1_000_000], [None], [b"", 2.5]]
    heard = []
    assert start(most=lambda: 1).ask(requests("tell", *notes), None, heard=heard.append) == [
        Reply(2),
        Reply(1),
        Reply(2),
    ]
    assert heard == [note for told in notes for note in told]


ORDERLY = """
import pathlib, time

def prepare(context, cell):
    def work(seconds):
        cell.tell("begun")
        time.sleep(seconds)
    return work

def leave():
    time.sleep(0.02)
    pathlib.Path(__file__).with_name("left").touch()
"""


@pytest.mark.parametrize("seconds", [0, 60], ids=["idle", "at work"])
def test_a_program_that_leaves_in_order_has_time_to(tmp_path, seconds):
    (tmp_path / "program.py").write_text(ORDERLY)
    pool, stop = Pool(str(tmp_path / "program.py"), patience=PATIENCE), threading.Event()
    try:
        pool.ask(requests("", seconds), None, stop, lambda _: seconds and stop.set())
    except KeyboardInterrupt:
        assert seconds
    pool.close()
    assert (tmp_path / "left").exists()


@pytest.mark.parametrize("texts", [0, 5])
def test_a_run_that_is_to_stop_stops_at_work_and_with_texts_unsent(start, texts, monkeypatch):
    monkeypatch.setattr(pool_module, "_BATCH_CHARACTERS", 1 << 30)
    pool, stop = start(most=lambda: 1), threading.Event()
    pool.ask(requests("late", *range(9)), None)
    answers = pool.answers(requests("late", "first", "late", *["x" * 300_000] * texts), None, stop)
    assert next(answers) == (0, Reply("first"))
    threading.Timer(0.02, stop.set).start()
    with pytest.raises(KeyboardInterrupt):
        next(answers)
    until(lambda: not workers_of(pool))
    assert pool.ask(requests("same", 1), None) == [Reply(1)]


def test_requests_are_taken_when_a_worker_is_free(start):
    taken = []

    def lazily():
        for index in range(5):
            taken.append(index)
            yield Request("same", index)

    answers = start(most=lambda: 1).answers(lazily(), None)
    next(answers)
    assert len(taken) < 4
    assert len([*answers]) == 4


def test_processes_that_somebody_ends_are_replaced(start):
    pool = start(most=lambda: 1)
    for _ in range(2):
        assert pool.ask(requests("same", 1), None) == [Reply(1)]
        os.kill(workers_of(pool)[0], signal.SIGKILL)
    assert pool.ask(requests("same", 1), None) == [Reply(1)]
    (worker,) = workers_of(pool)
    os.kill(pool.processes[0], signal.SIGKILL)
    assert pool.ask(requests("same", 1), None) == [Reply(1)]
    until(lambda: not alive(worker))


@pytest.mark.parametrize("executable", [None, "", "/nowhere"])
def test_a_pool_that_cannot_be_started_says_so(start, monkeypatch, executable):
    monkeypatch.setattr(sys, "executable", executable)
    with pytest.raises(PoolError):
        start().ask(requests("same", 1), None)


def test_a_program_that_cannot_be_imported_is_no_pool(tmp_path):
    (tmp_path / "program.py").write_text("import nowhere_to_be_found")
    pool = Pool(str(tmp_path / "program.py"))
    for _ in range(2):
        with pytest.raises(PoolError, match="ModuleNotFoundError: No module named 'nowhere_to_be_found'") as refused:
            pool.ask(requests("same", 1), None)
        assert refused.value.lasts


def test_an_isolated_program_sees_no_settings_of_python(start, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    pool = start()
    assert "PYTHONPATH" not in pool.ask(requests("environment", 0), None)[0].value
    assert pool.greeting == ["greeting", pool.processes[0]]


def test_a_closed_pool_has_no_processes_and_may_be_used_again(start):
    pool = start()
    pool.ask(requests("same", 1), None)
    processes = [*pool.processes, *workers_of(pool)]
    pool.close()
    until(lambda: not any(map(alive, processes)))
    assert pool.ask(requests("same", 2), None) == [Reply(2)]


ORPHANS = """
import sys, threading, time
from assay.guard.pool import Pool, Request
pool = Pool(sys.argv[1])
asking = lambda: pool.ask([Request("unheard", "late")] * 9, None)
threading.Thread(target=asking, daemon=True).start()
while not pool._alive:
    time.sleep(0.01)
print(*pool.processes, flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="processes are read from /proc")
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGKILL])
def test_processes_end_with_the_one_that_started_them(by):
    command = [sys.executable, "-c", ORPHANS, PROGRAM]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as client:
        parent = int(client.stdout.readline())
        children = Path(f"/proc/{parent}/task/{parent}/children")
        pids = [parent, *map(int, until(lambda: children.read_text().split()))]
        client.send_signal(by)
        client.wait(PATIENCE)
        assert "Fatal" not in client.stderr.read()
    until(lambda: not any(map(alive, pids)))


FORKED = """
import os, sys
from assay.guard.pool import Pool, Reply, Request
pool = Pool(sys.argv[1])
question = [Request("same", 1)]
assert pool.ask(question, None) == [Reply(1)]
before = pool.processes
pool._lock.acquire()  # as a thread may hold it
child = os.fork()
if not child:
    assert pool.ask(question, None) == [Reply(1)]
    after = pool.processes
    pool.close()
    os._exit(3 if after == before else 0)
pool._lock.release()
print(os.waitpid(child, 0)[1], pool.ask(question, None)[0].value, pool.processes == before)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_has_processes_of_its_own():
    command = [sys.executable, "-W", "error", "-c", FORKED, PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.stdout, done.stderr) == ("0 1 True\n", "")
