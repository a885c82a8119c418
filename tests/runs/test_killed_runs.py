"""What a run leaves that is killed or whose terminal is closed: no process that goes on or has words, and no temporary files."""

import contextlib
import glob
import json
import os
import pty
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import polars as pl
import pytest

import assay

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes end with their parent")

FUNCTIONS = """
import pathlib, re, time, assay

def begin():
    pathlib.Path("begun").touch()

def waits(completion):
    begin()
    time.sleep(3600)

def spins(completion):
    begin()
    while True:
        pass

def matches(completion):
    begin()
    re.search("(a|a)*b", "a" * 90)

for name in ("waits", "spins", "matches"):
    globals()[f"{name}_rubric"] = assay.Rubric(funcs=[globals()[name]])
"""
ENDLESS = ["waits", "spins", "matches"]


@pytest.fixture
def there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"completion": ["a", "b", "c"] * 20}).write_parquet("rollouts.parquet", row_group_size=1)
    Path("v.json").write_text(json.dumps({"checks": [{"type": "contains", "value": "a"}]}))
    Path("endless.py").write_text(FUNCTIONS)
    Path("tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setenv("PYTHONPATH", str(Path(assay.__file__).parents[1]))
    return tmp_path


def command(*words, **options):
    return subprocess.Popen([sys.executable, "-m", "assay", *words], stderr=subprocess.PIPE, text=True, **options)


def wait_for(condition, running):
    while not condition():
        assert running.poll() is None, running.stderr.read()
        time.sleep(0.005)


OUT = {"a process for each part": ["--out", "out/"], "workers": ["--workers", "1", "--out", "out.parquet"]}


@pytest.mark.parametrize("how", OUT)
@pytest.mark.parametrize(
    "endless", [pytest.param(name, marks=[] if name == "matches" else pytest.mark.long) for name in ENDLESS]
)
def test_a_function_that_never_returns_ends_with_a_run_that_is_killed(there, endless, how):
    words = ["score", "rollouts.parquet", "--rubric", f"endless:{endless}_rubric", *OUT[how]]
    with command(*words) as running:
        wait_for(Path("begun").exists, running)
        running.kill()
        _, words = running.communicate(timeout=120)  # to its end, which comes when the last process is gone
    assert words == ""
    done = assay.score_file("rollouts.parquet", "v.json", OUT[how][-1], overwrite=True)
    assert done.rows == 60
    assert not [path for path in there.rglob(".*") if path.name.endswith((".tmp", ".lock"))]


def test_an_interrupt_of_workers_says_what_became_of_the_result(there):
    words = ["score", "rollouts.parquet", "--rubric", "endless:spins_rubric", *OUT["workers"]]
    with command(*words) as running:
        wait_for(Path("begun").exists, running)
        running.send_signal(signal.SIGTERM)
        _, words = running.communicate(timeout=120)
    assert (running.returncode, words) == (143, "interrupted; nothing was written\n")
    assert not [*there.glob("out*"), *there.glob(".out*")]


def piped(*words, **options):
    return command("score", "-", "--spec", "v.json", *words, stdin=subprocess.PIPE, **options)


def spooled():
    return len(glob.glob("tmp/*/*.jsonl"))  # noqa: PTH207  (it does not mind folders that are renamed meanwhile)


def fed(out="out.parquet", **options):
    before = spooled()
    running = piped("--out", out, **options)
    running.stdin.write('{"completion": "a"}\n')
    running.stdin.flush()
    wait_for(lambda: spooled() > before, running)
    return running


def test_the_next_run_removes_the_temporary_files_of_one_that_was_killed(there):
    with fed() as killed, fed(out="other.parquet") as other:
        killed.kill()
        killed.communicate()
        assert len(list(Path("tmp").iterdir())) == 2
        with piped("--out", "next.parquet") as following:
            _, words = following.communicate('{"completion": "a"}\n')
            assert following.returncode == 0, words
        assert len(list(Path("tmp").iterdir())) == 1  # the other run goes on with its own
        _, words = other.communicate("")
        assert other.returncode == 0, words
    assert list(Path("tmp").iterdir()) == []


def test_what_is_not_of_a_run_that_was_killed_stays(there):
    for name in ("assay-0123456789abcdef", "assay-new-0123456789abcdef", "assay-mine", "other"):
        Path("tmp", name).mkdir()
        Path("tmp", name, "file").touch()
    Path("tmp/assay-mine/lock").touch()
    Path("tmp/assay-fedcba9876543210").symlink_to("assay-mine")
    with piped("--out", "next.parquet") as running:
        running.communicate('{"completion": "a"}\n')
    assert running.returncode == 0
    assert len([path for path in Path("tmp").rglob("*") if path.name == "file"]) == 4


def test_a_run_whose_terminal_is_closed_leaves_nothing(there):
    with fed() as running:
        running.send_signal(signal.SIGHUP)
        assert running.wait(120) == 128 + signal.SIGHUP
        running.stdin.close()
    assert list(Path("tmp").iterdir()) == []
    assert not [*there.glob("out*"), *there.glob(".out*")]


def test_a_run_that_ignores_the_end_of_its_terminal_goes_on(there):
    with fed(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as running:
        running.send_signal(signal.SIGHUP)
        _, words = running.communicate("")
    assert running.returncode == 0, words
    assert pl.read_parquet("out.parquet").height == 1


def test_the_end_of_a_terminal_ends_all_processes_of_a_run(there):
    words = ["score", "rollouts.parquet", "--rubric", "endless:waits_rubric", "--out", "out/"]
    pid, terminal = pty.fork()
    if not pid:
        os.execv(sys.executable, [sys.executable, "-m", "assay", *words])  # noqa: S606
    try:
        while not Path("begun").exists():
            assert os.waitpid(pid, os.WNOHANG) == (0, 0)
            time.sleep(0.005)
        children = children_of(pid)
        assert children
    finally:
        os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 128 + signal.SIGHUP
    assert not any(Path(f"/proc/{child}").exists() for child in children)
    assert not list(Path("out").glob("*lock"))


def children_of(pid):
    return [child for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]


def test_a_server_whose_terminal_is_closed_ends_without_a_word(there):
    with command("serve", "v.json", "--port", "0") as server:
        address = server.stderr.readline().split()[-1]
        while True:
            with contextlib.suppress(urllib.error.URLError), urllib.request.urlopen(f"{address}/health", timeout=60):  # noqa: S310  (of the server above)
                break
        server.send_signal(signal.SIGHUP)
        assert server.stderr.read() == ""
    assert server.returncode == 128 + signal.SIGTERM
