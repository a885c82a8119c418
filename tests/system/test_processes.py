"""Processes that were forked, and those whose standard streams are closed: nothing hangs, nothing goes where it should not."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import polars as pl
import pytest
from cases import ROOT, crossed, some
from waiting import PATIENCE

import assay
from assay.system import processes

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

SPEC = {"checks": [{"type": "contains", "value": "b"}]}
GUIDE = (Path(ROOT) / "docs" / "processes.md").read_text("utf-8")
PROGRAMS = dict(re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?^```python\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE))
PACKAGES = {"PyTorch": "torch", "datasets.map": "datasets", "Ray, Spark, Dask": "ray"}

FORKS = """
import json, os, sys, time
SPEC, ROWS = json.loads(sys.argv[1]), [{"completion": "b"}] * 3
PATIENCE, before, *entries = float(sys.argv[2]), *sys.argv[3:]
def rubric():
    import assay
    return assay.Rubric(funcs=[lambda completion: 1.0, assay.load_verifier(SPEC)])
def told(entry):
    try:
        import assay
        assay.system.processes._PATIENCE = PATIENCE
        exec(entry)
        return "it works"
    except assay.AssayError as error:
        return f"{type(error).__name__}: {error}"
exec(before)
children = {}
for entry in entries:
    readable, writable = os.pipe()
    if not (child := os.fork()):
        os.write(writable, told(entry).encode())
        os._exit(0)
    os.close(writable)
    children[child] = readable
ends = time.monotonic() + 200
said = []
for child, readable in children.items():
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < ends:
        time.sleep(0.02)
    if ended == (0, 0):
        os.kill(child, 9)
    said.append(os.read(readable, 4096).decode() or f"it hangs, or ended with {ended[1]}")
exec(before)  # the parent goes on
os.write(1, json.dumps(said).encode())
os._exit(0)
"""


def forked(tmp_path, before, entries, patience=PATIENCE):
    pl.DataFrame({"completion": ["b"]}).write_parquet(tmp_path / "r.parquet")
    (tmp_path / "v.json").write_text(json.dumps(SPEC))
    command = [sys.executable, "-W", "ignore", "-c", FORKS, json.dumps(SPEC), str(patience), before, *entries]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=True)
    return json.loads(done.stdout)


SCORES = "import assay; assay.score(ROWS, SPEC)"
SCANS = 'import assay; assay.scan("r.parquet").collect()'
COMPILES = 'import assay, polars; assay.compile(SPEC, polars.Schema({"completion": polars.String}))'
GENERATES = """
rows = [dict(prompt='p', completion='b', answer='')]
assay.SingleTurnEnv(dataset=rows, rubric=rubric()).generate_sync(rows, use_tqdm=False)
"""
ENTRIES = (
    SCORES,
    SCANS,
    'assay.score_file("r.parquet", SPEC, "o.parquet")',
    'import pyarrow; assay.score_batch(pyarrow.table({"completion": ["b"]}), SPEC)',
    COMPILES + ".score(polars.DataFrame(ROWS))",
    'from assay.insight.bench import bench; bench("r.parquet", "v.json")',
    "assay.score(ROWS, rubric())",
    'import asyncio; asyncio.run(rubric().score_rollouts(["p"], ["b"], [""], [{}], [""], [{}], use_tqdm=False))',
    GENERATES,
    # a fork of a fork is no better off
    "child = os.fork()\nif child: os.waitpid(child, 0); os._exit(0)\n" + SCORES,
)
REFUSED = re.compile(
    r"UsageError: Process \d+ was forked from (process \d+|another process) in which Polars had run\..*spawn or forkserver",
    re.DOTALL,
)


def test_every_entry_refuses_a_fork_of_a_process_that_scored(tmp_path):
    for entry, said in zip(ENTRIES, forked(tmp_path, SCORES, ENTRIES, 0.1), strict=True):
        assert REFUSED.match(said), (entry, said)


@pytest.mark.parametrize(
    "before",
    some(
        [
            "import assay, polars; polars.DataFrame({'a': [1]}).filter(polars.col('a') > 0)",
            "import assay, polars; polars.scan_parquet('r.parquet').collect_schema()",
            "import polars; polars.DataFrame({'a': [1]}).filter(polars.col('a') > 0)",
        ]
    ),
    ids=["polars", "a file looked at", "before assay was imported"],
)
def test_so_does_a_fork_of_a_process_in_which_polars_ran(tmp_path, before):
    (said,) = forked(tmp_path, before, [SCANS], 0.1)
    assert REFUSED.match(said), said


@pytest.mark.parametrize(
    "before", ["import assay, polars; assay.load_verifier(SPEC)", COMPILES], ids=["loaded", "compiled"]
)
def test_a_fork_of_a_process_in_which_nothing_ran_scores(tmp_path, before):
    assert forked(tmp_path, before, [SCORES, SCANS]) == ["it works"] * 2


def test_what_asks_no_engine_works_in_any_fork(tmp_path):
    assert forked(tmp_path, SCORES, ["assay.load_verifier(SPEC)", COMPILES]) == ["it works"] * 2


def test_a_fork_in_a_run_removes_nothing_of_it_and_hears_no_signals_for_it(tmp_path):
    (tmp_path / "own.py").write_text(
        textwrap.dedent("""
            import os, signal, time
            import assay

            def forks(completion):
                ended = os.fork()
                if ended == 0:
                    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
                    os.write(int(os.environ["READY"]), b".")
                    while True:  # a signal that comes just before a long sleep would not end it
                        time.sleep(0.01)
                        signal.raise_signal(0)  # from Python 3.13 on, what a thread has forked looks for signals here only
                os.read(int(os.environ["READY_IN"]), 1)
                os.kill(ended, signal.SIGTERM)
                orderly = os.fork()
                if orderly == 0:
                    import atexit
                    atexit._run_exitfuncs()
                    os._exit(0)
                return float(os.waitpid(ended, 0)[1] == 0 and os.waitpid(orderly, 0)[1] == 0)

            rubric = assay.Rubric(funcs=[forks])
        """)
    )
    (tmp_path / "r.jsonl").write_text('{"completion": "b"}\n' * 8)
    readable, writable = os.pipe()
    environment = os.environ | {"READY": str(writable), "READY_IN": str(readable)}
    command = [sys.executable, "-m", "assay", "score", "-", "--rubric", "own:rubric", "-o", "o.parquet"]
    with (tmp_path / "r.jsonl").open() as rows:
        done = subprocess.run(
            command,
            check=False,
            cwd=tmp_path,
            env=environment,
            stdin=rows,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            pass_fds=(readable, writable),
        )
    os.close(readable)
    os.close(writable)
    assert done.returncode == 0, done.stderr
    assert pl.read_parquet(tmp_path / "o.parquet")["reward"].to_list() == [1.0] * 8


CLOSED = ["2>&-", "<&- >&- 2>&-"]


@pytest.mark.parametrize(("closed", "out"), crossed(CLOSED, ["o.parquet", "o/"]))
def test_a_run_with_closed_streams_ends_and_writes_what_it_should(tmp_path, closed, out):
    pl.DataFrame({"completion": [f"b {row}" for row in range(2_000)]}).write_parquet(
        tmp_path / "r.parquet", row_group_size=500
    )
    (tmp_path / "v.json").write_text(json.dumps(SPEC))
    environment = os.environ | {"POLARS_VERBOSE": "1"}
    command = f"exec {sys.executable} -m assay score r.parquet -s v.json -o {out} {closed}"
    done = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0
    written = tmp_path / out / "*.parquet" if out.endswith("/") else tmp_path / out
    assert pl.read_parquet(written)["reward"].sum() == 2_000


LIBRARY = """
import os, sys
import assay
for number in {closed}:
    os.close(number)
before = set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else set()
seen = []
def reward(completion):
    seen.append([os.path.realpath(f"/proc/self/fd/{{number}}") for number in {closed}])
    return 1.0
rewards = assay.score([{{"completion": "b"}}], assay.Rubric(funcs=[reward]))["reward"].to_list()
assay.score_file([{{"completion": "b"}}], {spec!r}, "o.parquet")
os.write({told}, repr((rewards, seen)).encode())
os._exit(0)
"""


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
@pytest.mark.parametrize("closed", [pytest.param((2,), marks=pytest.mark.long), (0, 1, 2)])
def test_nothing_of_a_library_takes_the_numbers_of_closed_streams(tmp_path, closed):
    readable, writable = os.pipe()
    program = LIBRARY.format(closed=closed, spec=SPEC, told=writable)
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, timeout=PATIENCE, pass_fds=(writable,), check=True)
    os.close(writable)
    assert os.read(readable, 4096).decode() == repr(([1.0], [["/dev/null"] * len(closed)]))
    os.close(readable)


def test_streams_that_are_open_stay_as_they_are():
    before = [os.fstat(number) for number in (0, 1, 2)]
    processes.open_standard_streams()
    assert [os.fstat(number).st_ino for number in (0, 1, 2)] == [stat.st_ino for stat in before]


@pytest.mark.xdist_group("ray")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long) if PACKAGES.get(name) else name for name in PROGRAMS]
)
def test_a_program_of_the_guide_runs(tmp_path, name):
    package = PACKAGES.get(name)
    if package and importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {package}")
    (tmp_path / "program.py").write_text(PROGRAMS[name])
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ADDRESS": "local", "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "program.py"],
        check=False,
        cwd=tmp_path,
        env=os.environ | quiet,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    first, *others = (line for line in done.stdout.splitlines() if line.startswith(("[", "1.0")))
    assert first in ("[1.0]", "[1.0, 0.0]", "1.0")
    assert others
    assert set(others) <= {"[[1.0], [0.0]]", "[1.0, 0.0]"}


def test_the_guide_has_a_program_for_each():
    assert PROGRAMS.keys() == {"multiprocessing and concurrent.futures", *PACKAGES}


def test_the_refusal_says_where_to_read_more(monkeypatch):
    monkeypatch.setattr(processes._State, "lost", True)
    monkeypatch.setattr(processes._State, "ready", 0)
    with pytest.raises(assay.UsageError, match=r"docs/processes\.md"):
        processes.prepare_process()
