"""What a hostile reader found: coroutines that will not end, signals, defaults, texts that look like messages, mistakes."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from cases import HELPERS, ROOT
from waiting import PATIENCE, is_pending, until

import assay
from assay.calls.limits import Limits
from assay.rewards.reward_function import reward_function
from assay.scoring.reference import score_rows

ENV = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "engine"), str(HELPERS)])}


async def clings(completion):
    """Retries, whatever happens: a bare except takes the cancellation, too."""
    while completion == "7":
        with contextlib.suppress(BaseException):
            await asyncio.sleep(30)
    return 1.0


@pytest.mark.usefixtures("clock")
def test_a_coroutine_that_swallows_its_cancellation_is_left_behind():
    rows = [{"completion": str(number)} for number in range(12)]
    found = assay.score(rows, assay.Rubric([clings]), function_timeout=0.3, max_concurrent=3)
    assert found["reward"].to_list() == [float(number != 7) for number in range(12)]
    assert found["error"][7] == "clings: TimeoutError: no answer within 0.3 s"


def test_timeouts_of_a_function_of_its_own_are_its_own():
    async def impatient(completion):
        async with asyncio.timeout(0.01):
            await asyncio.sleep(PATIENCE)

    found = assay.score([{"completion": "a"}], assay.Rubric([impatient]), function_timeout=PATIENCE)
    assert found["error"].item() == "impatient: TimeoutError: "


@pytest.mark.parametrize(
    ("signals", "code"), [([signal.SIGINT] * 2, 130), pytest.param([signal.SIGTERM], 143, marks=pytest.mark.long)]
)
def test_a_function_that_never_returns_does_not_keep_a_program_from_ending(tmp_path, signals, code):
    (tmp_path / "stuck.py").write_text(
        "import assay, pathlib, time\n"
        "def f(completion):\n    pathlib.Path('begun').touch()\n    time.sleep(1000)\n"
        "rubric = assay.Rubric(funcs=[f])\n"
    )
    (tmp_path / "in.jsonl").write_text('{"completion": "a"}\n')
    command = [sys.executable, "-m", "assay", "score", "in.jsonl", "--rubric", "stuck:rubric", "-o", "out.parquet"]
    with subprocess.Popen(command, cwd=tmp_path, env=ENV, stderr=subprocess.PIPE, text=True) as process:
        until((tmp_path / "begun").exists)
        for number in signals:
            process.send_signal(number)
            until(lambda number=number: not is_pending(process.pid, number))  # two that wait together are one
        _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert "interrupted; nothing was written" in told
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix in (".parquet", ".tmp")) == []


def test_a_handler_of_the_users_decides_what_a_signal_means():
    seen = []
    before = signal.signal(signal.SIGTERM, lambda *_: seen.append("told"))
    try:

        def sends(completion):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.05)
            return 1.0

        found = assay.score([{"completion": "a"}, {"completion": "b"}], assay.Rubric([sends]))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert found["reward"].to_list() == [1.0, 1.0]
    assert seen


def by_default(completion, answer="4", prompt=None):
    return float(completion == answer and prompt is None)


def by_name(completion, *, prompt="p", answer="4"):
    return float((prompt, answer) == ("p", "4"))


def takes_all(completion, **kwargs):
    return float(kwargs["answer"] is None)


def middle(answer="4", *, completion):
    return float(completion == answer)


@pytest.mark.parametrize("workers", [0, 1])
def test_defaults_stand_for_columns_that_are_not_there(workers):
    rubric = assay.Rubric([by_default, by_name, takes_all, middle])
    rows = [{"completion": "4"}, {"completion": "4"}]
    found = assay.score(rows, rubric, workers=workers)
    assert found["reward"].to_list() == [4.0, 4.0]
    assert found.select("reward", "error").to_dicts() == [
        {"reward": row["reward"], "error": row["error"]} for row in score_rows(rows, rubric.members(Limits()))
    ]


def test_what_functions_name_with_a_default_is_given_where_it_is_there():
    rows = [{"completion": "5", "answer": "5"}, {"completion": "5", "answer": None}]
    assert assay.score(rows, assay.Rubric([by_default]))["reward"].to_list() == [1.0, 0.0]
    assert reward_function(by_default).optional == ("answer", "prompt")


def test_a_completion_that_looks_like_messages_is_what_the_model_wrote(tmp_path):
    wrote = '[{"role": "user", "content": "hi"}]'

    def is_text(completion):
        return float(completion == wrote)

    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps({"completion": wrote}) + "\n")
    for rollouts in ([{"completion": wrote}], path):
        assert assay.score(rollouts, assay.Rubric([is_text]))["reward"].item() == 1.0


@pytest.mark.parametrize("info", [None, "null", "{}", {}])
def test_no_info_is_an_empty_one(info):
    def is_empty(info):
        return float(info == {})

    assert assay.score([{"completion": "a", "info": info}], assay.Rubric([is_empty]))["reward"].item() == 1.0


@pytest.mark.parametrize(
    ("judge", "options", "said"),
    [
        ([assay.Rubric([clings])], {}, "cannot be in a list of verifiers"),
        (assay.Rubric, {}, "Rubric is a class"),
        (assay.Rubric([clings]), {"function_timeout": "5"}, 'function_timeout="?5'),
        (assay.Rubric([clings]), {"workers": "5"}, 'workers="?5'),
        (assay.Rubric([clings]), {"max_concurrent": 2.5}, "max_concurrent=2.5"),
    ],
)
def test_mistakes_are_told(judge, options, said):
    with pytest.raises(assay.UsageError, match=said):
        assay.score([{"completion": "a"}], judge, **options)


def test_names_of_functions_are_fit_for_columns():
    def odd(completion):
        return 0.0

    odd.__name__ = "two\nlines \ud800"
    found = assay.score([{"completion": "a"}], assay.Rubric([odd]))
    (name,) = [column for column in found.columns if column.startswith("score/")]
    assert name.isprintable()
    assert found["feedback"].item().count("\n") == 0
