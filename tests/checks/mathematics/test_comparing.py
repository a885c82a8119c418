"""The processes that compare: limits of time and memory, deaths, threads, forks, and how they end."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from cases import some
from waiting import PATIENCE, until

import assay
from assay.checks.mathematics import client
from assay.checks.mathematics.client import Question, compare_all
from assay.checks.mathematics.server import Verdict

pytestmark = pytest.mark.xdist_group("math")  # one process of the suite starts the processes that compare

ENDLESS = "10^{10^{10}}"


def asked(*pairs, seconds=5.0, **options):
    return compare_all([Question(gold, answer, True, 6, seconds) for answer, gold in pairs], **options)


def verdicts(*pairs, **options):
    return [verdict for verdict, _ in asked(*pairs, **options)]


@pytest.fixture
def pool(monkeypatch):
    """Processes and answers of the test alone."""
    new = client._Pool()
    monkeypatch.setattr(client, "_POOL", [new])
    yield new
    new.close()


def workers_of(pid):
    """The workers of a process that compares."""
    return [int(path.name) for path in Path("/proc").glob("[0-9]*") if path.name != str(pid) and parent_of(path) == pid]


def parent_of(path):
    try:
        state, parent, *_ = (path / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if state == "Z" else int(parent)


@pytest.mark.parametrize("bomb", some(["9^9^9^9", "9^{9^{9^{9}}}", "100000!!", ENDLESS, "(10^9)!", "2^{2^{40}}+1"]))
def test_a_bomb_costs_its_own_pair(bomb):
    answers = asked(("1/2", "0.5"), (bomb, "3"), ("3", "1"), seconds=0.5)
    assert [answers[0][0], answers[2][0]] == [Verdict.EQUAL, Verdict.DIFFERENT]
    assert answers[1][0] in (Verdict.LATE, Verdict.DIFFERENT, Verdict.RAISED, Verdict.NO_ANSWER)


def test_what_takes_too_long_is_an_error_of_its_row():
    rows = [{"completion": text} for text in ("6/2", ENDLESS, "4", ENDLESS)]
    frame = assay.score(rows, {"checks": [{"type": "math", "value": "3", "timeout": 0.5}]})
    assert frame["reward"].to_list() == [1.0, 0.0, 0.0, 0.0]
    error = "math: TimeoutError: no answer within 0.5 s; as that is a limit of time, another run may end otherwise"
    assert frame["error"].to_list() == [None, error, None, error]


@pytest.mark.skipif(sys.platform != "linux", reason="limits are read from /proc")
def test_memory_has_a_limit():
    assert verdicts(("5/5", "1")) == [Verdict.EQUAL]
    (worker, *_) = workers_of(client._POOL[0]._process.process.pid)
    (limits,) = [line for line in Path(f"/proc/{worker}/limits").read_text().splitlines() if "address space" in line]
    assert limits.split()[3:5] == [str(1 << 30)] * 2
    assert Path(f"/proc/{worker}/oom_score_adj").read_text() == "1000\n"


@pytest.mark.parametrize(
    "text", some(["(" * 2000, "\\frac{" * 600, "\ud800", "^" * 4000, "{" * 2000 + "}" * 2000, "x_" * 900])
)
def test_hostile_texts_have_an_answer_in_time(text):
    (answer,) = asked((text, "1"), seconds=2.0)
    assert answer[0] in (Verdict.NO_ANSWER, Verdict.LATE, Verdict.RAISED, Verdict.DIFFERENT)


def test_equal_questions_are_asked_once(monkeypatch):
    sent = []
    ask = client._POOL[0].ask
    monkeypatch.setattr(client._POOL[0], "ask", lambda questions, stop: sent.extend(questions) or ask(questions, stop))
    for _ in range(2):
        assert verdicts(*[("3/7", "6/14"), ("4/7", "6/14")] * 4) == [Verdict.EQUAL, Verdict.DIFFERENT] * 4
    assert len(sent) == 2


def test_the_memo_has_bounds(monkeypatch):
    memo = client._Memo()
    questions = [Question("g" * 10, str(at), True, 6, 1.0) for at in range(9)]
    monkeypatch.setattr(client, "_MEMO_PAIRS", 5)
    for question in questions:
        memo.keep(question, (Verdict.EQUAL, ""))
    assert [memo.find(question) is not None for question in questions] == [False] * 4 + [True] * 5
    monkeypatch.setattr(client, "_MEMO_CHARACTERS", 22)
    assert memo.find(questions[4])
    memo.keep(questions[0], (Verdict.EQUAL, ""))
    assert [memo.find(question) is not None for question in questions] == [True] + [False] * 3 + [True] + [False] * 4


def test_threads_share_the_processes():
    results = {}

    def ask(name):
        pairs = [(f"{at}/8", f"{at * 2 + at % 2}/16") for at in range(name, 40 + name)]
        results[name] = verdicts(*pairs) == [
            Verdict.DIFFERENT if at % 2 else Verdict.EQUAL for at in range(name, 40 + name)
        ]

    threads = [threading.Thread(target=ask, args=(1000 * at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert results == dict.fromkeys((0, 1000, 2000, 3000), True)


def test_a_run_that_is_to_stop_stops_and_others_go_on(pool):
    stop, others = threading.Event(), []

    def stop_at_work():
        until(lambda: at_work(pool))
        stop.set()

    other = threading.Thread(target=lambda: others.extend(verdicts(*[(f"{at}/2", f"{at}") for at in range(1, 50)])))
    other.start()
    threading.Thread(target=stop_at_work).start()
    with pytest.raises(KeyboardInterrupt):
        asked((ENDLESS, "1"), (f"1+{ENDLESS}", "1"), seconds=600, stop=stop)
    other.join(PATIENCE)
    assert others == [Verdict.DIFFERENT] * 49
    assert verdicts(("2/2", "1")) == [Verdict.EQUAL]


@pytest.mark.skipif(sys.platform != "linux", reason="processes are read from /proc")
def test_processes_that_somebody_ends_are_replaced(pool):
    assert verdicts(("2/2", "1")) == [Verdict.EQUAL]
    (worker,) = workers_of(pool._process.process.pid)
    os.kill(worker, signal.SIGKILL)
    assert verdicts(("3/3", "1")) == [Verdict.EQUAL]
    os.kill(pool._process.process.pid, signal.SIGKILL)
    assert verdicts(("4/4", "1")) == [Verdict.EQUAL]


@pytest.mark.skipif(sys.platform != "linux", reason="processes are read from /proc")
def test_a_worker_that_somebody_ends_at_work_costs_its_pair(pool):
    answers = []
    thread = threading.Thread(target=lambda: answers.extend(asked((ENDLESS, "1"), ("1/1", "1"), seconds=100)))
    thread.start()
    os.kill(until(lambda: at_work(pool))[0], signal.SIGKILL)
    thread.join(PATIENCE)
    message = "math-verify ended the process that it ran in (signal 9)"
    assert answers == [(Verdict.GONE, message), (Verdict.EQUAL, "")]
    assert pool.memo.find(Question("1", ENDLESS, True, 6, 100)) is None


def at_work(pool):
    """The workers of a pool that have been at work for half a second of processor time."""
    return [pid for pid in (workers_of(pool._process.process.pid) if pool._process else ()) if ticks(pid) > 50]


def ticks(pid):
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])
    except OSError:
        return 0


@pytest.mark.parametrize("executable", [None, "", "/nowhere"])
def test_a_process_that_cannot_be_started_costs_the_rows_that_need_it(monkeypatch, pool, executable):
    monkeypatch.setattr(sys, "executable", executable)
    frame = assay.score([{"completion": text} for text in ("1", "2")], {"checks": [{"type": "math", "value": "2"}]})
    assert frame["reward"].to_list() == [0.0, 1.0]
    assert frame["error"][0].startswith("math: RuntimeError: the process that mathematics needs could not be started: ")


def test_an_installation_that_is_not_whole_is_an_error_with_the_command(monkeypatch, pool, tmp_path):
    (tmp_path / "math_verify.py").write_text("raise ImportError('no antlr')")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for _ in range(2):
        ((verdict, message),) = asked(("1/1", "1"))
        assert verdict is Verdict.GONE
        assert message == "math-verify cannot be used: ImportError: no antlr; try pip install 'assay[math]'"


def test_answers_of_other_versions_are_not_remembered(monkeypatch, pool, tmp_path):
    assert verdicts(("1/1", "1")) == [Verdict.EQUAL]
    pool._process.end()
    (tmp_path / "sympy-9.0.dist-info").mkdir()
    (tmp_path / "sympy-9.0.dist-info" / "METADATA").write_text("Name: sympy\nVersion: 9.0\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert verdicts(("2/2", "1")) == [Verdict.EQUAL]  # of a program that has other versions than the first
    known = [pool.memo.find(Question("1", text, True, 6, 5.0)) is not None for text in ("1/1", "2/2")]
    assert known == [False, True]


# ── how they end ────────────────────────────────────────────────────────────────────────────────────────────────────────

ORPHANS = """if True:
    import sys, threading, time
    from assay.checks.mathematics import client
    questions = [client.Question("1", f"{at}+10^{{10^{{10}}}}", True, 6, 100.0) for at in range(9)]
    threading.Thread(target=client.compare_all, args=(questions,), daemon=True).start()
    while not client._POOL[0]._process:
        time.sleep(0.01)
    print(client._POOL[0]._process.process.pid, flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="processes are read from /proc")
@pytest.mark.parametrize("by", some([signal.SIGINT, signal.SIGKILL]))
def test_processes_end_with_the_one_that_started_them(by):
    with subprocess.Popen(
        [sys.executable, "-c", ORPHANS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as parent:
        pid = int(parent.stdout.readline())
        until(lambda: workers_of(pid))
        pids = [pid, *workers_of(pid)]
        parent.send_signal(by)
        parent.wait(PATIENCE)
        assert "Fatal" not in parent.stderr.read()
    until(lambda: not any(parent_of(Path(f"/proc/{one}")) for one in pids))


FORKED = """if True:
    import os
    from assay.checks.mathematics import client
    question = lambda text: [client.Question("1", text, True, 6, 5.0)]
    assert client.compare_all(question("2/2")) == [(1, "")]
    before = client._POOL[0]._process.process.pid
    child = os.fork()
    if not child:
        assert client.compare_all(question("3/3")) == [(1, "")]
        after = client._POOL[0]._process.process.pid
        client._POOL[0].close()
        os._exit(3 if after == before else 0)
    print(os.waitpid(child, 0)[1], client.compare_all(question("4/4"))[0][0].name)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_has_processes_of_its_own():
    done = subprocess.run([sys.executable, "-W", "error", "-c", FORKED], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("0 EQUAL\n", "")


SPAWNED = """
import multiprocessing
import assay

def score(at):
    rows = [{"completion": f"{at}/3"}]
    return assay.score(rows, {"checks": [{"type": "math", "value": "2"}]})["reward"].to_list()

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(score, [6, 7]))
"""


def test_a_daemon_has_processes_too(tmp_path):
    (tmp_path / "program.py").write_text(SPAWNED)
    done = subprocess.run(
        [sys.executable, "program.py"], capture_output=True, text=True, check=False, cwd=tmp_path, timeout=PATIENCE
    )
    assert done.stdout == "[[1.0], [0.0]]\n", done.stderr
