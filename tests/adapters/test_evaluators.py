"""Adapters for optimisers and evaluators, called as these call them; tests/peers runs the packages themselves."""

import asyncio
import contextlib
import math
import subprocess
import sys
import types

import pytest
from sums import SPEC, WRONG

import assay
from assay.adapters import verifiers
from assay.adapters.promptfoo import get_assert
from assay.errors import FailedRunError, UsageError


@pytest.fixture
def package(monkeypatch):
    """Puts a module of stand-ins in the place of one of a package, and of the packages around it."""

    def put(name, **names):
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            module = types.ModuleType(".".join(parts[:end]))
            module.__path__ = []
            monkeypatch.setitem(sys.modules, module.__name__, module)
        vars(module).update(names)

    return put


def absent(monkeypatch, name):
    for module in [name, *(module for module in sys.modules if module.startswith(f"{name}."))]:
        monkeypatch.setitem(sys.modules, module, None)


def test_an_adapter_is_imported_when_it_is_used_and_no_package_with_it():
    packages = "gepa dspy inspect_ai verifiers lm_eval lighteval evaluate evals torch trl verl ray openrlhf skyrl_gym"
    code = (
        "import sys, assay.adapters as a; [getattr(a, name) for name in a.__all__]; import assay.adapters.verl;"
        f"print(sorted({{*'{packages} starlette'.split()}} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
    assert set(assay.adapters.__all__) <= set(dir(assay.adapters))


# ── GEPA ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_gepa_gets_numbers_words_and_objectives(package):
    package("gepa.adapters.default_adapter.default_adapter", EvaluationResult=lambda *values: values)
    evaluator = assay.adapters.gepa(SPEC)
    data = {"input": "2 + 2?", "answer": "4", "additional_context": {}}
    assert evaluator(data, "4") == (1.0, "", {"right": 1.0, "short": 1.0})
    assert evaluator(data, "5") == (0.25, WRONG, {"right": 0.0, "short": 1.0})
    assert evaluator({"input": "2 + 2?", "additional_context": {"answer": 4}}, "4")[0] == 1.0


def test_gepa_has_a_number_and_the_reason_where_there_is_no_reward(package):
    package("gepa.adapters.default_adapter.default_adapter", EvaluationResult=lambda *values: values)
    unscored = (-1.0, "gold is missing: answer", {"right": -1.0, "short": -1.0})
    assert assay.adapters.gepa(SPEC, unscored=-1.0)({"input": "2 + 2?", "answer": None}, "4") == unscored
    with pytest.raises(assay.ColumnsError, match="no `answer`"):
        assay.adapters.gepa(SPEC)({"input": "2 + 2?"}, "4")


def test_the_batch_of_gepa_is_one_pass(monkeypatch):
    sizes, score_rows = [], assay.Plan.score_rows
    monkeypatch.setattr(assay.Plan, "score_rows", lambda plan, rows: sizes.append(len(rows)) or score_rows(plan, rows))
    evaluate = assay.adapters.gepa_batch(SPEC, lambda candidate, example: candidate.format(**example))
    example = {"question": "2 + 2?", "answer": "4"}
    results = evaluate([("It is {answer}", example), ("Who knows", example)])
    assert sizes == [2]
    assert results == [
        (1.0, {"Input": "2 + 2?", "Output": "It is 4", "Feedback": "", "scores": {"right": 1.0, "short": 1.0}}),
        (0.25, {"Input": "2 + 2?", "Output": "Who knows", "Feedback": WRONG, "scores": {"right": 0.0, "short": 1.0}}),
    ]


def test_a_program_that_raises_leaves_the_others_alone():
    async def run(candidate, example):
        return str(1 / example)

    results = assay.adapters.gepa_batch({"checks": [{"type": "contains", "value": "0.5"}]}, run)([("", 0), ("", 2)])
    assert results[0][0] == 0.0
    assert results[0][1]["Feedback"] == results[0][1]["Output"] == "ZeroDivisionError: division by zero"
    assert results[1][0] == 1.0


def test_the_adapter_of_gepa_shows_inputs_without_golds(package):
    package("gepa.core.adapter", EvaluationBatch=types.SimpleNamespace)
    adapter = assay.adapters.gepa_adapter(SPEC, lambda candidate, example: candidate["system"])
    batch = adapter.evaluate([{"input": "2 + 2?", "answer": "4"}, {"a": 2, "answer": "5"}], {"system": "4"}, True)
    assert (batch.scores, batch.outputs) == ([1.0, 0.25], ["4", "4"])
    assert batch.objective_scores == [{"right": 1.0, "short": 1.0}, {"right": 0.0, "short": 1.0}]
    records = adapter.make_reflective_dataset({"system": "4"}, batch, ["system", "tool"])
    assert records["system"] == records["tool"]
    assert records["system"] == [
        {"Inputs": "2 + 2?", "Generated Outputs": "4", "Feedback": ""},
        {"Inputs": {"a": 2}, "Generated Outputs": "4", "Feedback": 'right: does not contain "5"'},
    ]
    assert adapter.evaluate([], {"system": "4"}).scores == []
    assert adapter.evaluate([{"answer": "4"}], {"system": "4"}).trajectories is None


# ── DSPy ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def metric(package):
    package("dspy", Prediction=types.SimpleNamespace)
    return assay.adapters.dspy(SPEC, field="sum", unscored=-1.0)


def test_dspy_gets_score_feedback_and_objectives(metric):
    right, wrong = metric({"answer": "4"}, {"sum": 4}), metric({"answer": "4"}, {"sum": "5"}, None, "self", [])
    assert (right.score, right.feedback, right.objective_scores) == (1.0, "", {"right": 1.0, "short": 1.0})
    assert (wrong.score, wrong.feedback, wrong.objective_scores) == (0.25, WRONG, {"right": 0.0, "short": 1.0})
    unscored = metric({"answer": "4"}, {"sum": None})
    assert (unscored.score, unscored.feedback) == (-1.0, "the completion is null")


def test_dspy_learns_from_traces_that_pass(metric):
    assert [metric({"answer": gold}, {"sum": "4"}, trace=[]) for gold in ("4", "5", None)] == [True, False, False]


def test_the_last_field_of_a_prediction_is_its_completion(package):
    package("dspy", Prediction=types.SimpleNamespace)
    assert assay.adapters.dspy(SPEC)({"answer": "4"}, {"reasoning": "no", "sum": "4"}).score == 1.0
    with pytest.raises(UsageError, match=r"no field `summ`\.\s+Did you mean `sum`"):
        assay.adapters.dspy(SPEC, field="summ")({"answer": "4"}, {"sum": "4"})


# ── Inspect ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Score(types.SimpleNamespace):
    """What an adapter needs of Inspect's class."""

    @classmethod
    def unscored(cls, **fields):
        return cls(value=None, metadata=None, **fields)


class Target(list):
    """What an adapter needs of Inspect's class."""

    @property
    def text(self):
        return "".join(self)


def message(role, text):
    return types.SimpleNamespace(role=role, text=text, content=text)


def state(text, **metadata):
    output = types.SimpleNamespace(completion=text or "", choices=[] if text is None else [text])
    given = [message("system", "Add."), message("user", "2 + 2?")]
    return types.SimpleNamespace(input=given, messages=given, output=output, metadata=metadata, target=[""])


@pytest.fixture
def inspect_scorer(package):
    def scorer(metrics, name):
        return lambda factory: lambda: setattr(scored := factory(), "told", (name, metrics)) or scored

    package("inspect_ai.scorer", Score=Score, scorer=scorer, mean=lambda: "mean", stderr=lambda: "stderr")
    return assay.adapters.inspect(SPEC)


def test_a_sample_of_inspect_has_a_value_and_an_explanation_or_a_reason(inspect_scorer):
    async def scores():
        calls = [("4", ["4"]), ("5", ["4"]), ("5", ["4", "5"]), (None, ["4"]), ("4", [""])]
        return await asyncio.gather(*(inspect_scorer(state(text), Target(golds)) for text, golds in calls))

    right, wrong, other, silent, blind = asyncio.run(scores())
    assert inspect_scorer.told == ("math", ["mean", "stderr"])
    assert (right.value, wrong.value, other.value, silent.value, blind.value) == (1.0, 0.25, 1.0, None, None)
    assert (wrong.answer, wrong.explanation, wrong.metadata["checks"]) == ("5", WRONG, {"right": 0.0, "short": 1.0})
    assert (silent.reason, silent.explanation) == ("no_response", "the completion is null")
    assert (blind.reason, blind.explanation) == ("scoring_failed", "gold is missing: answer")


def test_an_exception_leaves_a_sample_of_inspect_unscored(inspect_scorer, monkeypatch):
    monkeypatch.setattr(assay.Plan, "score_rows", lambda plan, rows: 1 / 0)
    score = asyncio.run(inspect_scorer(state("4"), Target(["4"])))
    assert (score.reason, score.explanation) == ("scoring_failed", "ZeroDivisionError: division by zero")


# ── verifiers ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Fields(types.SimpleNamespace):
    """A model of a package, as far as adapters look at it."""

    def model_dump(self):
        return {name: value for name, value in vars(self).items() if name != "prompt_text"}


class Trace(types.SimpleNamespace):
    """What an adapter needs of a trace."""

    def record_metrics(self, values):
        self.metrics.update(values)


def trace_of(text, **more):
    messages = [] if text is None else [Fields(role="assistant", content=text, tool_calls=None, **more)]
    return Trace(assistant_messages=messages, messages=messages, last_reply=text, root_reply=None, metrics={}, info={})


def test_traces_of_verifiers_get_a_reward_metrics_and_feedback_or_an_error():
    reward, traces = verifiers.reward(SPEC), [trace_of(text) for text in ("4", "5", None)]
    task = Fields(answer="4", prompt_text="2 + 2?")

    async def scored():
        return await asyncio.gather(*(reward(task=task, trace=each) for each in traces), return_exceptions=True)

    *rewards, error = asyncio.run(scored())
    assert rewards == [1.0, 0.25]
    assert isinstance(error, FailedRunError)
    assert traces[1].metrics == {"math/right": 0.0, "math/short": 1.0}
    assert traces[1].info == {"math": {"passed": False, "feedback": WRONG, "error": None}}
    assert traces[2].info["math"]["error"] == "the completion is null"
    other = verifiers.reward(SPEC, gold="truth", unscored=0.5)
    assert asyncio.run(other(task=Fields(truth="5", prompt_text=""), trace=traces[1])) == 1.0
    assert asyncio.run(other(task=Fields(truth=None, prompt_text=""), trace=traces[1])) == 0.5


def test_a_group_of_verifiers_is_one_batch_whose_metrics_are_functions(caplog):
    reward = verifiers.reward(SPEC)
    call = {"id": "1", "name": "add", "arguments": "{}"}
    completions = [[{"role": "assistant", "content": "4", "tool_calls": [call]}], "5", None]
    states = [
        {"input": {"answer": "no"}, "info": {"level": 1}, "prompt": [{"role": "user", "content": "2 + 2?"}]},
        {},
        {},
    ]
    rewards = asyncio.run(reward(completions=completions, answers=["4", "4", "4"], states=states))
    assert rewards == [1.0, 0.25, 0.0]
    assert "the completion is null" in caplog.text
    assert states[1]["math"]["feedback"] == WRONG
    assert {metric.__name__: metric(states[1]) for metric in reward.metrics} == {"math/right": 0.0, "math/short": 1.0}
    assert [metric(states[2]) for metric in reward.metrics] == [0.0, 0.0]


# ── promptfoo ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_assertion_of_promptfoo_has_a_score_a_reason_and_the_checks():
    context = {"vars": {"truth": "4"}, "prompt": "2 + 2?", "config": {"spec": SPEC, "gold": "truth"}}
    checks = {"right": 1.0, "short": 1.0}
    assert get_assert("4", context) == {"pass": True, "score": 1.0, "reason": "all checks pass", "namedScores": checks}
    wrong = {"pass": False, "score": 0.25, "reason": WRONG, "namedScores": {"right": 0.0, "short": 1.0}}
    assert get_assert("5", context) == wrong
    assert get_assert({"a": 4}, context)["pass"]
    unscored = get_assert(None, context)
    assert unscored == {"pass": False, "score": 0.0, "reason": "the completion is null", "namedScores": {}}
    with pytest.raises(UsageError, match="names no spec"):
        get_assert("4", {"vars": {}})


# ── lm-eval ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_filter_of_lm_eval_scores_a_task_in_one_pass(monkeypatch):
    sizes, score_rows = [], assay.Plan.score_rows
    monkeypatch.setattr(assay.Plan, "score_rows", lambda plan, rows: sizes.append(len(rows)) or score_rows(plan, rows))
    rewards = assay.adapters.lm_eval(SPEC, gold="target")
    docs = [{"target": 4, "question": "2 + 2?"}, {"target": "5"}, {"target": None}]
    filtered = rewards([["4", "5"], ["4"], ["4"]], docs)
    assert sizes == [4]
    assert filtered[0][1] == {
        "reward": 0.25,
        "passed": False,
        "feedback": WRONG,
        "checks": {"right": 0.0, "short": 1.0},
    }
    metrics = [rewards.process_results(doc, [results]) for doc, results in zip(docs, filtered, strict=True)]
    assert metrics[0] == {"reward": 0.625, "passed": 0.5, "right": 0.5, "short": 1.0}
    assert metrics[1]["reward"] == 0.25
    assert all(math.isnan(value) for value in metrics[2].values())


def test_a_filter_of_lm_eval_may_stand_after_and_before_others():
    rewards = assay.adapters.lm_eval(SPEC)
    docs = [{"answer": "4"}, {"answer": "5"}]
    after_majority_vote = (responses for responses in (["4"], ["4"]))
    filtered = rewards(after_majority_vote, docs)
    assert [[outcome["reward"] for outcome in outcomes] for outcomes in filtered] == [[1.0], [0.25]]
    after_take_first = map(lambda responses: responses[0], [["4", "5"], ["14"]])  # noqa: C417  (as lm-eval has it)
    assert [outcomes[0]["reward"] for outcomes in rewards(after_take_first, docs)] == [1.0, 0.25]
    before_take_first = [outcomes[0] for outcomes in filtered]
    assert rewards.process_results(docs[1], [before_take_first[1]])["reward"] == 0.25


# ── OpenAI evals ────────────────────────────────────────────────────────────────────────────────────────────────────


class Recorder:
    """What an adapter needs of a recorder."""

    def __init__(self):
        self.ids, self.events = [], {}

    @contextlib.contextmanager
    def as_default_recorder(self, sample_id):
        self.ids.append(sample_id)
        yield
        self.ids.pop()

    def current_sample_id(self):
        return self.ids[-1]

    def record_metrics(self, **metrics):
        self.events[self.ids[-1]] = metrics


class Eval:
    """What an adapter needs of the class of evals."""

    def __init__(self, completion_fns, eval_registry_path, samples=()):
        self.completion_fn, self.samples = completion_fns[0], samples

    def get_samples(self):
        return self.samples

    def eval_all_samples(self, recorder, samples):
        answered = []
        for at, sample in enumerate(samples):
            with recorder.as_default_recorder(f"sums.{at}"):
                answered.append(self.eval_sample(sample, None))
        return answered


def test_an_eval_asks_for_all_samples_and_scores_them_in_one_pass(package, monkeypatch):
    sizes, score_rows = [], assay.Plan.score_rows
    monkeypatch.setattr(assay.Plan, "score_rows", lambda plan, rows: sizes.append(len(rows)) or score_rows(plan, rows))
    recorder = Recorder()
    package("evals.record", default_recorder=lambda: recorder)
    package("evals", Eval=Eval)
    answers = {"2 + 2?": ["4", "5"], "2 + 3?": ["4"], "Who?": []}
    samples = [{"input": prompt, "ideal": gold} for prompt, gold in zip(answers, ("4", ["4", "5"], "4"), strict=True)]
    samples.append({"input": "2 + 3?", "ideal": 5})

    def model(prompt):
        return types.SimpleNamespace(get_completions=lambda: answers[prompt])

    report = assay.adapters.evals(SPEC, [model], ".", samples=samples).run(recorder)
    assert sizes == [4]
    assert report == {
        "right": pytest.approx(2 / 3),
        "short": 1.0,
        "reward": 0.75,
        "pass_rate": pytest.approx(2 / 3),
        "unscored": 1,
    }
    assert [event["reward"] for event in recorder.events.values()] == [1.0, 1.0, None, 0.25]
    wrong = {"reward": 0.25, "passed": False, "feedback": 'right: does not contain "5"', "error": None}
    assert recorder.events["sums.3"] == {"sampled": "4", **wrong, "checks": {"right": 0.0, "short": 1.0}}
    assert recorder.events["sums.2"]["error"] == "the completion is null"


@pytest.mark.parametrize(
    ("name", "package_name", "arguments"),
    [
        ("gepa", "gepa", ()),
        ("gepa_adapter", "gepa", (str,)),
        ("dspy", "dspy", ()),
        ("inspect", "inspect_ai", ()),
        ("lighteval", "lighteval", ()),
        ("evaluate", "evaluate", ()),
        ("evals", "evals", ([str], ".")),
    ],
)
def test_an_absent_package_is_named_with_the_line_that_installs_it(name, package_name, arguments, monkeypatch):
    absent(monkeypatch, package_name)
    with pytest.raises(UsageError, match=r"pip install 'assay-rollouts\["):
        getattr(assay.adapters, name)(SPEC, *arguments)
