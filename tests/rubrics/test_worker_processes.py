"""Reward functions in processes of their own say what they say here, and can be killed."""

import multiprocessing
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import desk_rewards as desk
import polars as pl
import pytest
from cases import sized
from waiting import PATIENCE

import assay
from assay.calls.limits import Limits
from assay.rubrics import worker_processes as workers

ROWS = [
    {
        "completion": "x" * (number % 5) + str(number % 10),
        "prompt": "p",
        "example_id": number // 4,
        "info": {"n": number},
    }
    for number in range(120)
]
ALL = (desk.length, desk.judge, desk.fails, desk.leaves_a_note, desk.reads_the_note, desk.best_of_example)


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.long), 2])
def test_processes_say_what_this_process_says(workers):
    rubric = assay.Rubric(funcs=ALL, weights=[1, 0.5, -1, 0, 1, 2])
    assert assay.score(ROWS, rubric, workers=workers).equals(assay.score(ROWS, rubric))


def test_an_exception_in_a_process_is_logged_with_its_line(caplog):
    rows = [{"completion": "x", "info": {"n": 1}}] * 3
    with caplog.at_level("ERROR", logger="assay"):
        assay.score(rows, assay.Rubric(funcs=[desk.fails]), workers=1)
    (record,) = caplog.records
    assert 'desk_rewards.py, line 22: return info["missing"]' in record.message


LOST = {
    desk.sleeps: ("TimeoutError: no answer within 0.3 s", "7"),
    desk.backtracks: ("TimeoutError: no answer within 0.3 s", "7"),
    desk.dies: ("RuntimeError: its process died, exit code 3", "3"),
}


def test_a_call_that_hangs_or_dies_costs_itself_only():
    rows = ROWS[: sized(25, 12)]
    found = assay.score(rows, assay.Rubric(funcs=[desk.length, *LOST]), function_timeout=0.3, workers=1)
    errors = [
        [f"{func.__name__}: {said}" for func, (said, end) in LOST.items() if row["completion"].endswith(end)]
        for row in rows
    ]
    assert found["error"].to_list() == ["\n".join(each) or None for each in errors]
    for func, (_, end) in LOST.items():
        scores = [0.0 if row["completion"].endswith(end) else 1.0 for row in rows]
        assert found[f"score/{func.__name__}"].to_list() == scores
    assert found["score/length"].to_list() == [len(row["completion"]) for row in rows]


def test_functions_that_cannot_travel_are_refused_with_what_to_do():
    with pytest.raises(assay.UsageError, match="cannot be sent to another process") as refused:
        assay.score(ROWS, assay.Rubric(funcs=[desk.nested()]), workers=1)
    assert "top of a module" in refused.value.hint


def test_a_rubric_with_a_name_is_imported_where_its_functions_cannot_travel(monkeypatch):
    monkeypatch.setattr(desk.rubric, "origin", "desk_rewards:rubric")
    assert assay.score(ROWS, desk.rubric, workers=1).equals(assay.score(ROWS, desk.rubric))


def test_an_environment_with_a_name_is_imported_for_its_rubric(monkeypatch):
    monkeypatch.setattr(desk, "env", SimpleNamespace(rubric=desk.rubric), raising=False)
    assert workers.load_functions("import", "desk_rewards:env")[0].name == desk.rubric.functions()[0].name


def test_without_a_bound_a_process_awaits_all_its_rollouts_at_once():
    host = workers.Workers([], 2)
    work = SimpleNamespace(is_async=True, rows=[()] * 101)
    assert host._smallest_piece(work, Limits(max_concurrent=0)) == 51
    assert host._smallest_piece(work, Limits(max_concurrent=7)) == 7


def test_a_rubric_that_the_process_cannot_import_is_told(monkeypatch):
    monkeypatch.setattr(desk.rubric, "origin", "nowhere_to_be_found:rubric")
    with pytest.raises(assay.UsageError, match="No module named 'nowhere_to_be_found'"):
        assay.score(ROWS, desk.rubric, workers=1)


def test_a_program_without_a_file_uses_functions_of_modules_and_is_told_of_its_own():
    code = (
        "import assay, desk_rewards\n"
        "def own(completion): return 1.0\n"
        "print(assay.score([{'completion': 'abc'}], assay.Rubric([desk_rewards.length]), workers=1)['reward'].item())\n"
        "try: assay.score([{'completion': 'abc'}], assay.Rubric([own]), workers=1)\n"
        "except assay.UsageError as error: print(repr(error.fact), repr(error.hint))\n"
        "print(__file__)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(desk.__file__).parent)}
    done = subprocess.run(
        [sys.executable, "-"], input=code, env=env, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert done.stderr == ""
    reward, error, file = done.stdout.splitlines()
    assert (reward, file) == ("3.0", "<stdin>")
    assert re.fullmatch(
        r".*cannot be loaded in a worker process: .*'own'.* 'Define them at the top of a module .*'", error
    )


def test_a_daemon_is_told_that_it_may_start_no_processes(monkeypatch):
    monkeypatch.setattr(multiprocessing, "current_process", lambda: SimpleNamespace(daemon=True))
    with pytest.raises(assay.UsageError, match="this process is a daemon") as refused:
        assay.score(ROWS, assay.Rubric([desk.length]), workers=1)
    assert "ProcessPoolExecutor" in refused.value.hint


def test_processes_end_with_the_run():
    (verifier,) = assay.Rubric(funcs=[desk.length]).members(Limits(workers=2))
    check = verifier.checks[0].check
    assert check.rewards.score({"completion": ["a", "bc"]}, 2) == ([[1.0, 2.0]], [{}], [{}])
    assert check.rewards._host.pool.processes
    check.close()
    assert not check.rewards._host.pool.processes


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"function_timeout": 0}, "function_timeout=0"),
        ({"function_timeout": float("nan")}, "function_timeout=nan"),
        ({"workers": -1}, "workers=-1"),
    ],
)
def test_limits_that_cannot_be_kept_are_refused(options, said):
    with pytest.raises(assay.UsageError, match=said):
        assay.score(ROWS, assay.Rubric(funcs=[desk.length]), **options)


def test_processes_without_a_rubric_are_refused():
    with pytest.raises(assay.UsageError, match="applies to the functions of a rubric"):
        assay.score(ROWS, {"checks": [{"type": "json_valid"}]}, workers=1)


def test_a_plan_with_a_rubric_travels():
    rubric = assay.Rubric(funcs=[desk.length, desk.judge], weights=[1.0, 2.0])
    frame = assay.scan(ROWS).collect()
    plan = assay.compile(rubric, frame)
    assert pickle.loads(pickle.dumps(plan)).score(frame).equals(plan.score(frame))  # noqa: S301


HARM = {
    "forks": (1.0, None),
    "stops_the_loop": (1.0, None),
    "locks": (2.0, None),
    "fails_without_words": (0.0, "fails_without_words: SpeechlessError: its message cannot be shown"),
    "fails_with_many_words": (0.0, f"fails_with_many_words: ValueError: {'x' * 9_999}…"),
}


@pytest.mark.parametrize("count", [pytest.param(0, marks=pytest.mark.long), 1])
def test_what_functions_do_to_their_process_is_no_harm_to_a_run(count, tmp_path):
    code = (
        "import assay, desk_rewards, sys\n"
        "if __name__ == '__main__':\n"
        "    rows = [{'completion': str(row), 'example_id': row // 2} for row in range(12)]\n"
        f"    for name in {[*HARM]}:\n"
        "        rubric = assay.Rubric(funcs=[getattr(desk_rewards, name)])\n"
        f"        assay.score(rows, rubric, workers={count}).write_parquet(f'{{name}}.parquet')\n"
    )
    (tmp_path / "program.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(desk.__file__).parent)},
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    for name, (score, said) in HARM.items():
        out = pl.read_parquet(tmp_path / f"{name}.parquet")
        assert out[f"score/{name}"].to_list() == [score] * 12
        assert out["error"].to_list() == [said] * 12


def test_an_interrupt_that_a_function_raises_ends_the_run_as_in_this_process(capfd):
    for count in (0, 1):
        with pytest.raises(KeyboardInterrupt):
            assay.score(ROWS[:9], assay.Rubric(funcs=[desk.interrupts]), workers=count)
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.long
def test_a_process_that_loses_its_pipe_is_told_without_a_traceback(capfd):
    with pytest.raises(assay.UsageError, match="keep dying"):
        assay.score(ROWS[:9], assay.Rubric(funcs=[desk.closes_every_file]), workers=1)
    assert "Traceback" not in capfd.readouterr().err
