"""OpenAI's evals itself, offline: an eval of its registry whose samples are scored in one pass."""

import json
import os
import sys

import pytest
import real_packages
from sums import SPEC, WRONG

import assay
from assay.adapters import evals as eval_of
from assay.errors import ColumnsError, InputError, UsageError

real_packages.needs("evals", "pip install 'assay-rollouts[evals]'")
os.environ.setdefault("OPENAI_API_KEY", "none")  # evals makes a client when it is imported

import evals.eval  # noqa: E402
from evals.base import RunSpec  # noqa: E402
from evals.record import DummyRecorder, LocalRecorder  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

SAMPLES = [
    *({"input": "4", "ideal": "4"}, {"input": [{"role": "user", "content": "5"}], "ideal": ["4"]}),
    *({"input": "5 or so", "ideal": ["4", "5"]}, {"input": "4"}, {"input": "", "ideal": "4"}),
]
REWARDS = [1.0, 0.25, 1.0, None, None]


class Echo:
    """Says what it is asked; nothing, if that is empty."""

    def __init__(self):
        self.prompts = []

    def __call__(self, prompt, **kwargs):
        self.prompts.append(prompt)
        text = prompt if isinstance(prompt, str) else prompt[-1]["content"]
        return Answer([text, "a second completion"] if text else [])


class Answer(list):
    """A result with completions."""

    def get_completions(self):
        return list(self)


@pytest.fixture
def run(tmp_path):
    """Runs an eval with samples: its report, and the events of its log."""

    def run(samples, spec=SPEC, model=None, **settings):
        (tmp_path / "data").mkdir(exist_ok=True)
        (tmp_path / "data" / "samples.jsonl").write_text("".join(json.dumps(sample) + "\n" for sample in samples))
        log = tmp_path / "log.jsonl"
        recorder = LocalRecorder(str(log), RunSpec(["echo"], "math.test", "math", "test", {}, ""))
        made = eval_of(spec, [model or Echo()], tmp_path, samples_jsonl="samples.jsonl", name="math.test", **settings)
        report = made.run(recorder)
        recorder.record_final_report(report)
        recorder.flush_events()
        lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
        return report, [line for line in lines if line.get("type") == "metrics"]

    return run


def test_all_samples_are_scored_in_one_pass_and_recorded(run, monkeypatch):
    sizes, score_rows = [], assay.Plan.score_rows
    monkeypatch.setattr(assay.Plan, "score_rows", lambda plan, rows: sizes.append(len(rows)) or score_rows(plan, rows))
    report, events = run(SAMPLES)
    assert sizes == [5]
    assert report == {"right": pytest.approx(2 / 3), "short": 1.0, "reward": 0.75, "pass_rate": 2 / 3, "unscored": 2}
    assert [event["sample_id"] for event in events] == [f"math.test.{at}" for at in range(5)]
    outcomes = [event["data"] for event in events]
    assert [outcome["reward"] for outcome in outcomes] == REWARDS
    assert [outcome["passed"] for outcome in outcomes] == [True, False, True, None, None]
    assert [outcome["sampled"] for outcome in outcomes] == ["4", "5", "5 or so", "4", None]
    assert (outcomes[1]["feedback"], outcomes[1]["error"]) == (WRONG, None)
    assert outcomes[1]["checks"] == {"right": 0.0, "short": 1.0}
    assert [outcome["error"] for outcome in outcomes[3:]] == ["gold is missing: answer", "the completion is null"]


def test_a_part_of_the_samples_keeps_its_ids(run, monkeypatch):
    monkeypatch.setattr(evals.eval, "_MAX_SAMPLES", 3)
    report, events = run(SAMPLES)
    places = [int(event["sample_id"].rsplit(".", 1)[1]) for event in events]
    assert len(places) == 3
    assert [event["data"]["reward"] for event in events] == [REWARDS[at] for at in places]
    assert report["unscored"] == sum(REWARDS[at] is None for at in places)


def test_a_run_without_samples_or_scores_has_no_means(run):
    nothing = {"right": None, "short": None, "reward": None, "pass_rate": None}
    assert run([]) == ({**nothing, "unscored": 0}, [])
    assert run([{"input": "4", "ideal": None}])[0] == {**nothing, "unscored": 1}
    with pytest.raises(ColumnsError, match="no `answer`"):
        run([{"input": "4"}])


def test_checks_read_the_gold_that_is_named_other_fields_and_the_prompt(run):
    checks = [{"id": "gold", "type": "contains", "value": {"column": "answer"}}]
    checks += [{"id": name, "type": "contains", "value": {"column": name}} for name in ("level", "prompt")]
    sample = {"input": "4 hard", "ideal": "no", "truth": 4, "level": "hard"}
    assert run([sample], {"checks": checks}, gold="truth")[0]["reward"] == 1.0


@pytest.mark.parametrize(
    ("samples", "settings", "error", "words"),
    [
        ([{"input": "4"}, {"ideal": "4"}], {}, InputError, r"Sample 2: expected an object with `input`"),
        ([["4"]], {}, InputError, r"Sample 1"),
        (SAMPLES, {"gold": "idaal"}, UsageError, r"gold='idaal': there is no such column"),
    ],
)
def test_samples_that_cannot_be_used_are_refused_before_the_model_is_asked(run, samples, settings, error, words):
    model = Echo()
    with pytest.raises(error, match=words):
        run(samples, model=model, **settings)
    assert model.prompts == []


def test_several_models_are_refused(tmp_path):
    with pytest.raises(UsageError, match="asks one completion function; 2 are given"):
        eval_of(SPEC, [Echo(), Echo()], tmp_path)


def test_a_dry_run_records_nothing_and_reports(tmp_path):
    samples = tmp_path / "samples.jsonl"
    samples.write_text(json.dumps(SAMPLES[1]))
    recorder = DummyRecorder(RunSpec(["echo"], "math.test", "math", "test", {}, ""), log=False)
    report = eval_of(SPEC, [Echo()], tmp_path, samples_jsonl=str(samples), name="math.test").run(recorder)
    assert report["reward"] == recorder.get_scores("reward")[0] == 0.25


def test_the_page_runs_as_it_stands_and_so_does_the_command(tmp_path):
    assert len(real_packages.glue_of("evals.md", "registry/evals/sums.yaml")) <= real_packages.MOST_GLUE
    real_packages.run_page("evals.md", tmp_path)
    command = ["dummy", "sums", "--registry_path", "registry", "--record_path", "dummy.jsonl"]
    real_packages.run([sys.executable, "-m", "evals.cli.oaieval", *command], tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "dummy.jsonl").read_text("utf-8").splitlines()]
    (report,) = (line["final_report"] for line in lines if "final_report" in line)
    assert report == {"right": 0.0, "short": 0.0, "reward": 0.0, "pass_rate": 0.0, "unscored": 1}
    feedback = {line["sample_id"]: line["data"]["feedback"] for line in lines if line.get("type") == "metrics"}
    assert feedback["sums.test.1"] == "right: found nothing: number\nshort: has more than 12 characters"
