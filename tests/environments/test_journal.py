"""Runs that are stopped and go on: what a folder holds, what is refused, what is lost."""

import asyncio
import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from cases import HELPERS
from loopback import Loopback, client_of, echo, refuse
from real_packages import Later
from waiting import PATIENCE, until

import assay
from assay.types import GenerateMetadata, GenerateOutputs

openai = Later("openai")
ROWS = [{"question": f"say {number}", "answer": f"say {number}", "info": {"n": number}} for number in range(12)]


def right(completion, answer):
    return float(completion[-1]["content"] == answer)


def among(completions):
    return [float(len(completions))] * len(completions)


class Talks(assay.MultiTurnEnv):
    """Leaves in its state what JSON has no form for."""

    async def setup_state(self, state, **kwargs):
        state["info"]["seen"] = True
        return {**state, "pair": (1, float("nan")), "marks": {3: {"a"}}}

    async def env_response(self, messages, state, **kwargs):
        call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        return [{"role": "user", "content": "and?", "tool_calls": [call]}], state


def env(kind=Talks, **options):
    own = {"dataset": ROWS, "rubric": assay.Rubric([right]), "max_turns": 2, "retry_delay": 0.001, "max_retries": 0}
    return kind(**own | options)


def played(server, folder, environment=None, inputs=None, **options):
    environment = environment or env()
    asked = client_of(server)
    inputs = environment.get_dataset() if inputs is None else inputs
    return environment.generate_sync(
        inputs, asked, **{"model": "m", "results_path": folder, "max_concurrent": 2} | options
    )


def lasting(outputs):
    """What does not change from run to run: all but the times, and numbers of requests."""

    def without(state):
        responses = [one | {"id": "", "usage": None} for one in state["responses"]]
        return {**state, "timing": None, "responses": responses}

    found = outputs.model_dump() | {"state": [without(state) for state in outputs.state]}
    for name in ("date", "time_ms", "path_to_save"):
        del found["metadata"][name]
    return repr(found)  # NaN is not equal to itself, and is the same text


def lines(folder):
    return (folder / "rollouts.jsonl").read_text().splitlines()


def test_a_folder_holds_journal_results_and_metadata(tmp_path):
    with Loopback() as server:
        outputs = played(server, tmp_path / "deep" / "run", save_every=5)
        folder = tmp_path / "deep" / "run"
        assert sorted(path.name for path in folder.iterdir()) == ["metadata.json", "results.parquet", "rollouts.jsonl"]
        assert lasting(GenerateOutputs.from_parquet(folder / "results.parquet")) == lasting(outputs)
        metadata = GenerateMetadata(**json.loads((folder / "metadata.json").read_text()))
        assert metadata == outputs.metadata
        assert metadata.path_to_save == folder
        assert len(lines(folder)) == 1 + len(ROWS)
        asked = len(server.requests)
        again = played(server, folder)
        assert len(server.requests) == asked, "everything is there"
    assert lasting(again) == lasting(outputs)
    assert again.metadata.date == outputs.metadata.date
    assert [state["timing"] for state in again.state] == [state["timing"] for state in outputs.state]
    assert again.state[0]["responses"][0].choices[0].message.content == "say 0"
    assert again.completion[0][1]["tool_calls"][0].function.name == "f"
    assert again.completion[0] is again.state[0]["completion"] or again.completion[0] == again.state[0]["completion"]


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Loopback() as server:
        played(server, None, save_every=1)
    assert not list(tmp_path.iterdir())


@contextlib.contextmanager
def gated(answered):
    """A server that answers some requests, and the others when its gate is opened."""
    gate = threading.Event()

    def script(request):
        if request.number >= answered:
            gate.wait(PATIENCE)
        return echo(request)

    with Loopback(script) as server:
        try:
            yield server, gate
        finally:
            gate.set()


def all_wait(server, answered, folder):
    """Whether two rollouts wait at the gate, and those that ended before are in the journal."""
    waiting = len(server.requests) == answered + 2
    return waiting and (folder / "rollouts.jsonl").exists() and len(lines(folder)) >= answered // 2


@pytest.mark.parametrize("together", [False, True])
def test_a_run_that_is_cancelled_goes_on(tmp_path, caplog, together):
    environment = env(rubric=assay.Rubric([right, among] if together else [right]))

    async def stopped(server):
        asked = openai.AsyncOpenAI(base_url=server.url, api_key="none")
        async with asked:
            task = asyncio.create_task(
                environment.generate(environment.get_dataset(), asked, "m", max_concurrent=2, results_path=tmp_path)
            )
            while not all_wait(server, 12, tmp_path):  # noqa: ASYNC110
                await asyncio.sleep(0.002)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with gated(12) as (server, gate):
        asyncio.run(stopped(server))
        gate.set()
        finished = len(lines(tmp_path)) - 1
        assert 5 <= finished < len(ROWS)
        assert not (tmp_path / "results.parquet").exists()
        assert f"stopped; {finished} of 12 rollouts are kept" in caplog.text
        assert "to resume, repeat the call with the same results_path" in caplog.text
        before = len(server.requests)
        outputs = played(server, tmp_path, environment)
        assert len(server.requests) - before == 2 * (len(ROWS) - finished)
        assert lasting(outputs) == lasting(played(server, tmp_path / "whole", environment))
    assert outputs.reward == [float(one["answer"] == "and?") + 12 * 0 + (1.0 if together else 0.0) for one in ROWS]


CHILD = """
import sys
sys.path[:0] = {path!r}
from test_journal import *

def run():
    env().generate_sync(env().get_dataset(), openai.AsyncOpenAI(base_url={url!r}, api_key="k"), "m", max_concurrent=2, results_path={folder!r})

async def notebook():
    run()

asyncio.run(notebook()) if {within} else run()
"""


@pytest.mark.parametrize(
    ("how", "within"),
    [(signal.SIGKILL, False), pytest.param(signal.SIGINT, False, marks=pytest.mark.long), (signal.SIGINT, True)],
)
def test_a_process_that_is_ended_loses_what_is_in_flight(tmp_path, how, within):
    code = {"within": within, "path": [str(HELPERS), os.path.dirname(__file__)], "folder": str(tmp_path)}  # noqa: PTH120
    with gated(8) as (server, gate):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD.format(url=server.url, **code)], stderr=subprocess.PIPE, text=True
        )
        until(lambda: all_wait(server, 8, tmp_path))
        child.send_signal(how)
        said = child.communicate(timeout=PATIENCE)[1]
        gate.set()
        assert child.returncode != 0
        if how == signal.SIGINT:
            assert "to resume, repeat the call" in said
        with (tmp_path / "rollouts.jsonl").open("a") as file:
            file.write('{"rollout": 11, "completion": [{"role": "assist')  # as a machine that fails leaves it
        finished = len(lines(tmp_path)) - 2
        before = len(server.requests)
        outputs = played(server, tmp_path)
        assert len(server.requests) - before == 2 * (len(ROWS) - finished)
        assert lasting(outputs) == lasting(played(server, tmp_path / "whole"))
        assert all(json.loads(line) for line in lines(tmp_path))


def test_rollouts_that_failed_are_tried_again(tmp_path):
    with Loopback(lambda request: refuse(500) if request.last == "say 3" else echo(request)) as server:
        outputs = played(server, tmp_path)
        assert [number for number, reward in enumerate(outputs.reward) if reward is None] == [3]
        assert "InternalServerError" in json.loads(next(line for line in lines(tmp_path) if '"error"' in line))["error"]
        saved = GenerateOutputs.from_parquet(tmp_path / "results.parquet")
        assert saved.reward[3] is None
        assert saved.metrics["right"][3] is None
    with Loopback() as server:
        outputs = played(server, tmp_path)
        assert len(server.requests) == 2
        assert None not in outputs.reward
        assert "error" not in outputs.state[3]
        assert lasting(outputs) == lasting(played(server, tmp_path / "whole"))


def test_scoring_is_done_again_and_generation_is_not(tmp_path):
    with Loopback() as server:
        assert played(server, tmp_path, score_rollouts=False).reward == [None] * 12
        asked = len(server.requests)
        assert played(server, tmp_path).reward == [0.0] * 12
        assert played(server, tmp_path, score_rollouts=False).reward == [None] * 12
        assert len(server.requests) == asked


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model": "other"}, r'model: "m" before, "other" now'),
        ({"sampling_args": {"top_p": 0.5}}, r"sampling args"),
        ({"environment": env(env_id="other")}, r'env id: "Talks" before, "other" now'),
        ({"environment": env(max_turns=3)}, r"max turns: 2 before, 3 now"),
        ({"environment": env(rubric=assay.Rubric([right], weights=[2.0]))}, r"rubric"),
        ({"environment": env(oai_tools=[{"type": "function", "function": {"name": "f"}}])}, r"oai tools: null before"),
        ({"inputs": [*ROWS[1:], ROWS[0]]}, r"the inputs differ"),
        ({"inputs": ROWS[:3]}, r"rollouts: 12 before, 3 now"),
    ],
)
def test_another_run_is_refused_and_told_in_what_it_differs(tmp_path_factory, change, said):
    folder = tmp_path_factory.getbasetemp() / "other-runs"
    with Loopback() as server:
        played(server, folder)
        before = lines(folder)
        with pytest.raises(assay.UsageError, match=said):
            played(server, folder, **change)
        assert lines(folder) == before


def test_two_runs_at_one_folder(tmp_path):
    held, refused = threading.Event(), threading.Event()

    def script(request):
        held.set()
        refused.wait(PATIENCE)
        return echo(request)

    with Loopback(script) as server:
        first = threading.Thread(target=played, args=(server, tmp_path), kwargs={"inputs": ROWS[:1]})
        first.start()
        assert held.wait(PATIENCE)
        try:
            with pytest.raises(assay.UsageError, match=rf"another run is writing there \(process {os.getpid()} on "):
                played(server, tmp_path, inputs=ROWS[:1])
        finally:
            refused.set()
        first.join()
        (tmp_path / ".lock").write_text("process 1 on a machine that is gone")
        assert played(server, tmp_path, inputs=ROWS[:1]).reward == [0.0]


@pytest.mark.parametrize("content", ["hello", "hello\n", '{"a": 1}\n', "[1]\n"])
def test_a_file_that_is_no_journal_is_left_alone(tmp_path, content):
    (tmp_path / "rollouts.jsonl").write_text(content)
    with Loopback() as server, pytest.raises(assay.InputError, match="is not a journal"):
        played(server, tmp_path)
    assert (tmp_path / "rollouts.jsonl").read_text() == content


def test_results_of_something_else_are_left_alone(tmp_path):
    (tmp_path / "results.parquet").write_text("mine")
    (tmp_path / "file").write_text("mine")
    with Loopback() as server:
        with pytest.raises(assay.UsageError, match=r"exists without a rollouts\.jsonl"):
            played(server, tmp_path)
        with pytest.raises(assay.UsageError, match="is a file"):
            played(server, tmp_path / "file")
    assert (tmp_path / "results.parquet").read_text() == "mine"


def test_a_journal_of_which_only_the_first_half_line_is_there_begins_again(tmp_path):
    (tmp_path / "rollouts.jsonl").write_text('{"journal": 1, "env')
    with Loopback() as server:
        assert played(server, tmp_path, inputs=ROWS[:2]).reward == [0.0, 0.0]
    assert len(lines(tmp_path)) == 3


def test_a_line_that_is_no_rollout_is_a_rollout_to_run_again(tmp_path):
    spoilt = [
        lambda line, _: b"\x00" * len(line),
        lambda *_: b'{"rollout": 99, "state": {}}',
        lambda *_: b"[]",
        *(
            lambda _, number, fields=fields: b'{"rollout": %d, "state": %s}' % (number, fields)
            for fields in (b"null", b"{}", b'{}, "as_given": 5')
        ),
    ]
    with Loopback() as server:
        outputs = played(server, tmp_path)
        head, *whole = (tmp_path / "rollouts.jsonl").read_bytes().splitlines()
        for place, spoil in enumerate(spoilt):
            whole[place] = spoil(whole[place], json.loads(whole[place])["rollout"])
        (tmp_path / "rollouts.jsonl").write_bytes(b"\n".join([head, *whole, b""]))
        before = len(server.requests)
        assert lasting(played(server, tmp_path)) == lasting(outputs)
        assert len(server.requests) - before == 2 * len(spoilt)


def test_what_cannot_be_saved_as_it_is_is_told_and_kept_in_memory(tmp_path, caplog):
    class Board:
        pass

    class Plays(Talks):
        async def setup_state(self, state, **kwargs):
            return {**state, "board": Board()}

    with Loopback() as server:
        outputs = played(server, tmp_path, env(Plays), inputs=ROWS[:1])
    assert isinstance(outputs.state[0]["board"], Board)
    assert any("board" in record.getMessage() for record in caplog.records if record.levelno == logging.WARNING)


def test_a_state_that_the_journal_could_not_keep_is_not_scored_from_there(tmp_path):
    class Board:
        def __init__(self, points):
            self.points = points

    class Plays(Talks):
        async def setup_state(self, state, **kwargs):
            return {**state, "board": Board(state["info"]["n"])}

    def points(state):
        return float(state["board"].points)

    with Loopback() as server:
        for interleave in (False, True):
            for _ in range(2):
                environment = env(Plays, rubric=assay.Rubric([points]))
                folder = tmp_path / str(interleave)
                outputs = played(server, folder, environment, interleave_scoring=interleave)
                assert outputs.reward == [float(number) for number in range(12)]
    assert len(lines(tmp_path / "True")) == 13, "what has its reward need not be run again"


def test_what_a_reward_function_failed_on_is_scored_again(tmp_path):
    down = [True]

    def judge(completion, answer):
        if down[0] and answer == "say 3":
            raise ConnectionError("the judge is down")
        return 1.0

    environment = env(rubric=assay.Rubric([judge]))
    with Loopback() as server:
        outputs = played(server, tmp_path, environment)
        assert outputs.reward == [float(number != 3) for number in range(12)]
        assert outputs.state[3]["error"] == "judge: ConnectionError: the judge is down"
        down[0], before = False, len(server.requests)
        outputs = played(server, tmp_path, environment)
        assert outputs.reward == [1.0] * 12
        assert "error" not in outputs.state[3]
        assert len(server.requests) == before, "it was generated already"


def test_a_function_that_changes_the_info_changes_that_of_its_rollout_only():
    def takes(info):
        return float(info.pop("n"))

    row = {"prompt": "p", "completion": "c", "info": {"n": 2}}
    outputs = env(dataset=[], rubric=assay.Rubric([takes])).generate_sync([row] * 3)
    assert outputs.reward == [2.0] * 3
    assert row["info"] == {"n": 2}


def test_completions_that_are_there_are_saved_too(tmp_path):
    rows = [{**row, "completion": [{"role": "assistant", "content": row["answer"]}]} for row in ROWS]
    for _ in range(2):
        outputs = env().generate_sync(rows, results_path=tmp_path)
        assert outputs.reward == [1.0] * 12
        assert GenerateOutputs.from_parquet(tmp_path / "results.parquet").completion == outputs.completion
    assert len(lines(tmp_path)) == 1


def test_reward_functions_that_changed_are_told(tmp_path, caplog):
    def rubric(given):
        scope = {}
        exec(f"def f(completion):\n    return {given} if len(completion) in {{1, 3}} else 0.0", scope)  # noqa: S102
        return assay.Rubric([scope["f"]])

    with Loopback() as server:
        for given, told in ((1.0, False), (1.0, False), (2.0, True)):
            played(server, tmp_path, env(rubric=rubric(given)))
            assert ("reward functions have changed" in caplog.text) == told


def test_an_error_of_scoring_is_gone_when_the_rollout_is_scored(tmp_path):
    class Judge(assay.Rubric):
        there = False

        async def score_rollout(self, *given, **options):
            if not self.there:
                raise ConnectionError("no judge")
            return await super().score_rollout(*given, **options)

    rubric = Judge([right])
    with Loopback() as server:
        assert played(server, tmp_path, env(rubric=rubric)).state[0]["error"] == "ConnectionError: no judge"
        rubric.there = True
        again = played(server, tmp_path, env(rubric=rubric))
    assert None not in again.reward
    assert not any("error" in state for state in again.state)


def test_a_full_disk_is_told_and_what_is_there_is_kept(tmp_path):
    script = """
import resource, signal, sys
import assay, test_journal
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
try:
    test_journal.played(type("Server", (), {"url": sys.argv[1]}), test_journal.Path(sys.argv[2]))
except assay.OutputError as wrong:
    print(wrong)
"""
    with Loopback() as server:
        command = [sys.executable, "-c", script, server.url, str(tmp_path), "5000"]
        ended = subprocess.run(
            command,
            capture_output=True,
            text=True,
            cwd=Path(__file__).parent,
            env=os.environ | {"PYTHONPATH": str(HELPERS)},
            check=False,
        )
        assert "rollouts.jsonl: File too large." in ended.stdout, ended.stderr
        kept = len(lines(tmp_path)) - 2
        assert kept > 0
        assert lasting(played(server, tmp_path)) == lasting(played(server, tmp_path / "whole"))
