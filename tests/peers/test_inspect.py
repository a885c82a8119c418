"""Inspect itself, offline: logs scored by a scorer and by the command line, and a task that runs to its end."""

import functools
import gc
import json
import math
import random
import sys
from importlib.metadata import entry_points
from itertools import pairwise

import polars as pl
import pytest
import real_packages
from cases import sized
from hostile import hostile_pieces
from real_packages import Later
from sums import SPEC
from typer.testing import CliRunner

import assay
from assay.adapters import inspect
from assay.cli.main import app
from assay.errors import InputError
from assay.values.normalizers import normalizer

real_packages.needs("inspect_ai", "pip install 'assay-rollouts[inspect]'")

inspect_ai = Later("inspect_ai")
logs = Later("inspect_ai.log")
models = Later("inspect_ai.model")
scorers = Later("inspect_ai.scorer")
classification = Later("inspect_ai.scorer._classification")

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True, scope="module")
def _no_leftovers():
    """What Inspect leaves open is found here, where its warnings are ignored."""
    yield
    gc.collect()


def sample(ident, target, text, epoch=1, **more):
    output = models.ModelOutput() if text is None else models.ModelOutput.from_content("mockllm/model", text)
    messages = [models.ChatMessageUser(content="2 + 2?"), *([] if text is None else [output.message])]
    return logs.EvalSample(
        id=ident, epoch=epoch, input="2 + 2?", target=target, messages=messages, output=output, **more
    )


def log_of(samples):
    spec = logs.EvalSpec(
        created="2026-11-23T00:00:00+00:00",
        task="sums",
        model="mockllm/model",
        dataset=logs.EvalDataset(),
        config=logs.EvalConfig(),
    )
    return logs.EvalLog(status="success", eval=spec, samples=samples)


@functools.cache
def samples_of_sums():
    return [
        sample("a", "4", "It is 4."),
        sample("a", "4", "It is 5.", epoch=2),
        sample(7, ["5", "4"], "4 " * 10, metadata={"level": 2, "tags": ["x"]}),
        sample("none", "4", None),
        sample("no gold", "", "4"),
    ]


REWARDS = [1.0, 0.25, 0.75, None, None]


def test_a_log_says_with_outcomes_why_its_samples_ended(tmp_path):
    samples = [sample("a", "4", "It is 5."), sample("b", "4", "It is 4."), sample("c", "4", None)]
    for one, reason in zip(samples, ("max_tokens", "stop"), strict=False):
        one.output.choices[0].stop_reason = reason
    path = tmp_path / "log.eval"
    logs.write_eval_log(log_of(samples), str(path))
    frame, plain = assay.score(path, SPEC, outcome=True), assay.score(path, SPEC)
    assert frame["stop_reason"].to_list() == ["max_tokens", "stop", None]
    assert frame["outcome"].to_list() == ["truncated", "pass", "unscored"]
    assert plain.equals(frame.drop("stop_reason", "cut_off", "outcome"))
    assert assay.score_file(path, SPEC, max_truncated=1).outcomes["truncated"] == 1


def test_a_log_is_scored_by_the_scorer():
    scored = inspect_ai.score(log_of(samples_of_sums()), inspect(SPEC), display="none")
    scores = [each.scores["math"] for each in scored.samples]
    assert [None if math.isnan(each.value) else each.value for each in scores] == REWARDS
    assert scores[1].explanation == 'right: does not contain "4"'
    assert scores[1].metadata == {"passed": False, "checks": {"right": 0.0, "short": 1.0}}
    assert [each.reason for each in scores] == [None, None, None, "no_response", "scoring_failed"]
    assert [each.explanation for each in scores[3:]] == ["the completion is null", "gold is missing: answer"]
    (results,) = scored.results.scores
    assert results.metrics["mean"].value == pytest.approx(((1.0 + 0.25) / 2 + 0.75) / 2)
    assert results.unscored_samples == 2


def test_each_check_has_metrics_on_demand():
    spec = {
        **SPEC,
        "checks": [*SPEC["checks"], {"id": "rare", "type": "contains", "value": "4", "when": {"column": "level"}}],
    }
    scored = inspect_ai.score(log_of(samples_of_sums()), inspect(spec, per_check=True), display="none")
    values = [each.scores["math"].value for each in scored.samples]
    assert values[1] == {"right": 0.0, "short": 1.0, "rare": pytest.approx(math.nan, nan_ok=True), "reward": 0.25}
    metrics = {each.name: each.metrics["mean"].value for each in scored.results.scores}
    assert metrics == {"right": 0.75, "short": 0.5, "rare": 1.0, "reward": pytest.approx((0.625 + 0.8) / 2)}
    assert [each.unscored_samples for each in scored.results.scores] == [2, 2, 3, 2]


TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput
from inspect_ai.solver import solver
from assay.adapters import inspect

scorers = [inspect("v.json", name="sums"), inspect("v.json", per_check=True)]

@solver
def four():
    async def solve(state, generate):
        state.output = ModelOutput.from_content("mockllm/model", "4")
        return state
    return solve

@task
def addition():
    return Task(dataset=[Sample(input="2 + 2?", target="4"), Sample(input="2 + 3?", target="5")], solver=four(), scorer=scorers)
"""


COMMANDS = """
import glob, json, os, sys
from inspect_ai._cli.main import main
from assay.adapters import inspect

for arguments in map(json.loads, sys.argv[1:]):
    if (child := os.fork()) == 0:
        sys.argv[1:] = [path for argument in arguments for path in glob.glob(argument) or [argument]]
        main()
    assert os.waitpid(child, 0)[1] == 0, arguments
"""
"""Commands of Inspect, each in a process of its own; it is imported once, as is Assay, which takes longer than they do."""


def test_inspect_score_finds_the_scorer(tmp_path):
    (tmp_path / "v.json").write_text(json.dumps(SPEC))
    (tmp_path / "task.py").write_text(TASK)
    evaluate = ["eval", "task.py", "--model", "mockllm/model", "--log-dir", "logs"]
    expected = {"sums": 0.625, "right": 0.5, "short": 1.0, "reward": 0.625}
    by_name = {"": expected, "sums": {"sums": 0.625}}
    if any(point.name == "assay" for point in entry_points(group="inspect_ai")):  # Assay is installed, not only found
        by_name |= {"assay/reward": {"reward": 0.625}, "assay/checks": {"right": 0.5, "short": 1.0, "reward": 0.625}}
    commands = []
    for at, name in enumerate(by_name):
        scorer = ["--scorer", name] if name else []
        arguments = ["-S", "file=v.json"] if name.startswith("assay/") else []
        commands += [
            ["score", "logs/*.eval", "--action", "overwrite", "--output-file", f"{at}.eval", *scorer, *arguments]
        ]
    real_packages.run([sys.executable, "-c", COMMANDS, *map(json.dumps, [evaluate, *commands])], tmp_path)
    for at, metrics in enumerate(by_name.values()):
        scores = logs.read_eval_log(str(tmp_path / f"{at}.eval")).results.scores
        assert {each.name: each.metrics["mean"].value for each in scores} == metrics


@pytest.mark.parametrize("name", ["sums.eval", "sums.json"])
def test_a_log_is_scored_by_the_command_line_as_by_the_scorer(tmp_path, name):
    logs.write_eval_log(log_of(samples_of_sums()), str(tmp_path / name))
    out, table = tmp_path / "scores.jsonl", tmp_path / "scores.parquet"
    assay.score_file(tmp_path / name, SPEC, out)
    scored = inspect_ai.score(
        logs.read_eval_log(str(tmp_path / name)),
        [
            inspect(SPEC),
            scorers.precomputed_scores(str(out), on_missing="error", metrics=[scorers.mean(), scorers.stderr()]),
        ],
        display="none",
    )
    own, read = scored.results.scores
    assert own.metrics["mean"].value == read.metrics["mean"].value
    assert own.unscored_samples == read.unscored_samples == 2
    for each in scored.samples:
        first, second = each.scores.values()
        assert first.value == second.value or math.isnan(first.value + second.value)
        assert first.explanation == second.explanation
    assay.score_file(tmp_path / name, SPEC, table)
    rows = pl.read_parquet(table)
    rewards = {(str(each.id), each.epoch): reward for each, reward in zip(samples_of_sums(), REWARDS, strict=True)}
    assert {(ident, epoch): reward for ident, epoch, reward in rows.select("id", "epoch", "reward").rows()} == rewards
    assert rows.filter(pl.col("id") == "7")["level"].to_list() == [2]


def test_samples_that_ended_in_an_error_are_unscored(tmp_path):
    error = inspect_ai._util.error.EvalError(message="the model is busy", traceback="", traceback_ansi="")
    logs.write_eval_log(
        log_of([sample("a", "4", "4"), sample("b", "4", "4", error=error)]), str(tmp_path / "sums.eval")
    )
    rows = assay.score(str(tmp_path / "sums.eval"), SPEC)
    assert rows["reward"].to_list() == [1.0, None]
    assert rows["prior_error"].to_list() == [None, "the model is busy"]


def test_tool_calls_are_read_from_the_messages(tmp_path):
    call = inspect_ai.tool.ToolCall(id="1", function="get_weather", arguments={"city": "Oslo"})
    asked = sample("a", "", "One moment.")
    asked.messages[-1] = models.ChatMessageAssistant(content="One moment.", tool_calls=[call])
    spec = {
        "id": "v",
        "checks": [{"type": "tool_calls", "value": [{"name": "get_weather", "arguments": {"city": "Oslo"}}]}],
    }
    log = log_of([asked, sample("b", "", "It rains.")])
    scored = inspect_ai.score(log, inspect(spec), display="none")
    assert [each.scores["v"].value for each in scored.samples] == [1.0, 0.0]
    logs.write_eval_log(log, str(tmp_path / "tools.eval"))
    assert assay.score(str(tmp_path / "tools.eval"), spec)["reward"].to_list() == [1.0, 0.0]


def test_a_task_runs_to_its_end(tmp_path):
    @inspect_ai.solver.solver
    def adds():
        async def solve(state, generate):
            state.output = models.ModelOutput.from_content("mockllm/model", str(eval(state.input_text)))  # noqa: S307
            return state

        return solve

    dataset = [inspect_ai.dataset.Sample(input=f"{at} + {at}", target=str(2 * at + at % 2)) for at in range(20)]
    task = inspect_ai.Task(dataset=dataset, solver=adds(), scorer=inspect(SPEC, name="sums"), name="sums")
    (log,) = inspect_ai.eval(task, model="mockllm/model", log_dir=str(tmp_path), display="none")
    assert log.status == "success"
    assert log.results.scores[0].name == "sums"
    values = [each.scores["sums"].value for each in log.samples]
    assert values == [1.0 if at % 2 == 0 else 0.25 for at in range(20)]
    assert assay.score(log.location, SPEC)["reward"].to_list() == values


def test_what_is_no_log_is_refused_in_words(tmp_path):
    for name, content in {"text.eval": b"It is 4.", "zip.eval": b"PK\x03\x04" + bytes(50)}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=f"{name}: not a readable log of Inspect"):
            assay.scan(tmp_path / name)
    logs.write_eval_log(log_of([]), str(tmp_path / "empty.eval"))
    with pytest.raises(InputError, match="the log has no samples"):
        assay.scan(tmp_path / "empty.eval")


def test_scores_need_the_names_of_the_samples(tmp_path, monkeypatch):
    logs.write_eval_log(log_of(samples_of_sums()[:1]), str(tmp_path / "sums.eval"))
    (tmp_path / "v.json").write_text(json.dumps(SPEC))
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["score", "sums.eval", "-s", "v.json", "-o", "scores.jsonl", "--keep", "level"])
    assert (done.exit_code, "--keep" in done.stderr, type(done.exception)) == (2, True, SystemExit)


def test_the_page_runs_as_it_stands(tmp_path):
    assert len(real_packages.glue_of("inspect.md")) <= real_packages.MOST_GLUE
    real_packages.run_page("inspect.md", tmp_path)


def test_its_normaliser_and_its_f1():
    rng = random.Random(36)
    pieces = [
        *hostile_pieces(sized(20_000, 500), seed=36),
        *"$,.5-_(%٣a²½−",
        "\n",
        "1e3",
        "inf",
        "1,000",
        "the",
        "3.",
        "1e999",
    ]
    texts = [
        "".join(rng.choice(pieces) + rng.choice(("", " ", "-")) for _ in range(rng.randrange(6))) for _ in range(5_000)
    ]
    assert [*map(normalizer("inspect"), texts)] == [*map(classification._normalize, texts)]
    spec = {"type": "similarity", "metric": "token_f1", "normalize": "inspect", "value": {"column": "gold"}}
    rows = [{"completion": text, "gold": rng.choice((text[:9], other))} for text, other in pairwise(texts)]
    expected = [round(classification.compute_f1(row["completion"], row["gold"]), 2) for row in rows]
    assert assay.score(rows, {"checks": [spec]})["check/verifier/similarity"].to_list() == expected
