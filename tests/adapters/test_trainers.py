"""Adapters for trainers, called as the trainers call them; tests/peers runs the trainers themselves."""

import asyncio
import inspect
import math
import pickle
import random
import sys
import types

import numpy as np
import polars as pl
import pytest
from cases import sized
from sums import SPEC

import assay
from assay.adapters import verl
from assay.adapters.openrlhf_rewards import Reasons, _kept_end, response_of
from assay.errors import AssayWarning, ColumnsError, FailedRunError, SpecError, UsageError


def chat(text):
    return [{"role": "assistant", "content": text}]


class Logs:
    def __init__(self):
        self.extra, self.metrics = {}, {}

    def arguments(self):
        return {"log_extra": self.extra.__setitem__, "log_metric": self.metrics.__setitem__, "trainer_state": object()}


# ── TRL ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_trl_gets_none_for_unscored_completions_and_their_reasons():
    reward, logs = assay.adapters.trl(SPEC), Logs()
    completions = [chat("4"), chat("5"), "4 " * 20, None]
    rewards = reward(
        prompts=["2 + 2?"] * 4, completions=completions, completion_ids=[[1]] * 4, answer=[4] * 4, **logs.arguments()
    )
    assert rewards == [1.0, 0.25, 0.75, None]
    assert logs.extra["math_feedback"] == ["", 'right: does not contain "4"', "short: has more than 10 characters", ""]
    assert logs.extra["math_error"] == ["", "", "", "the completion is null"]
    assert logs.metrics == {"math/right": 2 / 3, "math/short": 2 / 3, "math/unscored": 0.25}
    assert reward.__name__ == "math"


def test_trl_reads_golds_from_the_column_that_is_named():
    reward = assay.adapters.trl(SPEC, gold="solution", name="mine")
    assert reward(prompts=["?"], completions=["4"], solution=[np.array([3, 4])], expected=["no"]) == [1.0]
    assert reward.__name__ == "mine"
    with pytest.raises(UsageError, match="gold='solution': there is no such column"):
        reward(prompts=["?"], completions=["4"], answer=["4"])


def test_functions_of_single_checks_share_one_pass(monkeypatch):
    passes, score_rows = [], assay.Plan.score_rows
    monkeypatch.setattr(assay.Plan, "score_rows", lambda plan, rows: passes.append(1) or score_rows(plan, rows))
    right, short = assay.adapters.trl(SPEC, per_check=True)
    assert [(each.__name__, each.weight) for each in (right, short)] == [("math/right", 3.0), ("math/short", 1.0)]
    completions = ["4", "5 " * 10]
    assert right(prompts=["?"] * 2, completions=completions, answer=[4, 4]) == [1.0, 0.0]
    assert short(prompts=["?"] * 2, completions=completions, answer=[4, 4]) == [1.0, 0.0]
    assert len(passes) == 1
    completions[1] = "4"  # the same list, in the next step
    assert right(prompts=["?"] * 2, completions=completions, answer=[4, 4]) == [1.0, 1.0]
    assert short(prompts=["?"] * 2, completions=list(completions), answer=[4, 4]) == [1.0, 1.0]
    assert len(passes) == 3


@pytest.mark.parametrize("per_check", [False, True])
def test_functions_of_trl_pickle(per_check):
    functions = pickle.loads(pickle.dumps(assay.adapters.trl(SPEC, per_check=per_check)))  # noqa: S301  (made here)
    for function in functions if per_check else [functions]:
        assert function(prompts=["?"], completions=["4"], answer=["4"]) == [1.0]


def test_a_rubric_of_functions_that_see_groups_scores_the_groups_of_a_batch():
    def best(completions):
        return [float(len(text) == max(map(len, completions))) for text in completions]

    reward = assay.adapters.trl(assay.Rubric([best]))
    assert reward(prompts=["a", "a", "b"], completions=["4", "44", "4"]) == [0.0, 1.0, 1.0]


def test_completions_may_be_positional_as_ms_swift_gives_them():
    assert assay.adapters.trl(SPEC)(["4", "5"], prompts=["?"] * 2, answer=["4", "4"]) == [1.0, 0.25]
    assert assay.adapters.trl(SPEC)(["4"], ["?"], answer=["4"]) == [1.0]


def test_a_length_in_tokens_is_the_number_of_trls_completion_ids():
    spec = {"checks": [{"type": "length_penalty", "max": 4, "buffer": 2, "unit": {"column": "completion_ids"}}]}
    ids = [[500, 700], [5, 7, 9], [1] * 4, list(range(9)), np.array([1, 2, 3]), [], None]
    rewards = assay.adapters.trl(spec)(["a"] * len(ids), completion_ids=ids)
    assert rewards == [1.0, 0.5, 0.0, 0.0, 0.5, 1.0, None]


def test_a_column_of_golds_that_is_absent_raises_with_those_there_are():
    with pytest.raises(ColumnsError, match=r"(?s)no `answer`.*Columns: solution, completion"):
        assay.adapters.trl(SPEC)(["4"], solution=["4"])
    with pytest.warns(AssayWarning, match="gold is missing"):
        assert assay.adapters.trl(SPEC, strict=False)(["4"], solution=["4"]) == [None]


def at(step):
    return {"trainer_state": types.SimpleNamespace(global_step=step), "answer": ["4", "4"]}


STAGES = {0: {"short": 0}, 10: {"short": 9}, 20: {"checks": [{"type": "contains", "value": "is"}]}}


@pytest.mark.parametrize("curriculum", [STAGES, lambda step: STAGES[step // 10 * 10]], ids=["mapping", "function"])
def test_what_counts_depends_on_the_step(curriculum):
    reward = assay.adapters.trl(SPEC, curriculum=curriculum)
    completions = ["It is 4, I think.", "5"]
    steps = {step: reward(list(completions), **at(step)) for step in (0, 9, 10, 21, 5)}
    assert steps == {0: [1.0, 0.0], 9: [1.0, 0.0], 10: [0.25, 0.75], 21: [1.0, 0.0], 5: [1.0, 0.0]}


def test_before_the_first_stage_the_spec_counts_and_a_curriculum_pickles():
    reward = assay.adapters.trl(SPEC, curriculum={10: {"right": 0}})
    pickled = pickle.loads(pickle.dumps(reward))  # noqa: S301  (made here)
    for function in (reward, pickled):
        assert function(["4", "5"], **at(9)) == [1.0, 0.25]
        assert function(["4", "5"], **at(10)) == [1.0, 1.0]


def test_weights_of_a_rubric_depend_on_the_step():
    def long(completion):
        return float(len(completion) > 1)

    def right(completion, answer):
        return float(answer in completion)

    rubric = assay.Rubric([long, right], weights=[2, 0.5])
    assert [each.weight for each in assay.adapters.trl(rubric, per_check=True)] == [2.0, 0.5]
    reward = assay.adapters.trl(rubric, curriculum=lambda step: {"long": step})
    assert [reward(["44", "4"], **at(step)) for step in (0, 3)] == [[0.5, 0.5], [3.5, 0.5]]


@pytest.mark.parametrize(
    ("stages", "problem"),
    [
        ({0: {"shrt": 1}}, "Did you mean `short`"),
        ({0: {"short": math.nan}}, "the weight of 'short' is nan"),
        ({0: {"short": -1}}, "the weight of 'short' is -1"),
        ({5: {"short": 0, "right": 0}}, "step 5: all weights of math are 0"),
        ({"ten": {"short": 1}}, "'ten' is no step"),
        ({0: {"checks": [{"type": "contians", "value": "a"}]}}, "contians"),
    ],
)
def test_a_mistake_in_a_curriculum_shows_before_the_first_rollout(stages, problem):
    with pytest.raises((UsageError, SpecError), match=problem):
        assay.adapters.trl(SPEC, curriculum=stages)


def test_a_curriculum_needs_a_step_and_all_columns_of_its_stages():
    with pytest.raises(UsageError, match="no trainer_state"):
        assay.adapters.trl(SPEC, curriculum=STAGES)(["4"], answer=["4"])
    with pytest.raises(UsageError, match="weighed by TRL"):
        assay.adapters.trl(SPEC, curriculum=STAGES, per_check=True)
    later = {50: {"checks": [{"type": "contains", "value": {"column": "other"}}]}}
    with pytest.raises(ColumnsError, match="no `other`"):
        assay.adapters.trl(SPEC, curriculum=later)(["4", "4"], **at(0))


@pytest.mark.parametrize("like", ["verl", "skyrl", "openrlhf", "nemo-rl", "prime-rl"])
def test_groups_without_a_signal_do_not_train(like):
    reward, logs = assay.adapters.trl(SPEC, keep_groups=like), Logs()
    chats = [[{"role": "user", "content": text}] for text in ("a", "a", "b", "b", "a", "a")]
    completions = ["4", "5", "4", "4", "4", "5" * 20]
    rewards = reward(completions, prompts=chats, answer=["4"] * 6, **logs.arguments())
    assert rewards == [1.0, 0.25, None, None, 1.0, 0.0]
    assert logs.metrics["math/groups_kept"] == 2 / 3
    assert logs.metrics["math/right"] == 4 / 6
    functions = pickle.loads(pickle.dumps(assay.adapters.trl(SPEC, keep_groups=like, per_check=True)))  # noqa: S301
    right, short = (function(completions, prompts=chats, answer=["4"] * 6) for function in functions)
    assert (right, short) == ([1.0, 0.0, None, None, 1.0, 0.0], [1.0, 1.0, None, None, 1.0, 0.0])


def test_a_function_may_decide_which_groups_train():
    batches = []

    def hardest(frame):
        batches.append(frame)
        return frame.filter(pl.col("reward").mean().over("group") < 0.5)

    reward = assay.adapters.trl(SPEC, keep_groups=hardest)
    assert reward(["4", "5", "5"], prompts=["a", "a", "b"], answer=["4"] * 3) == [None, None, 0.25]
    assert batches[0].select("group", "prompt").rows() == [(0, "a"), (0, "a"), (1, "b")]
    with pytest.raises(UsageError, match="Did you mean `skyrl`"):
        assay.adapters.trl(SPEC, keep_groups="skyr")
    with pytest.raises(UsageError, match="gives no prompts"):
        reward(["4"], answer=["4"])


# ── verl ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def of_verl(**changes):
    sample = {
        "data_source": "gsm8k",
        "solution_str": "4",
        "ground_truth": "4",
        "extra_info": {"index": 1},
        "spec": SPEC,
    }
    return sample | changes


def test_verl_gets_the_same_keys_for_every_sample():
    async def run():
        calls = [
            verl.compute_score(**of_verl()),
            verl.compute_score(**of_verl(solution_str="5", extra_info={"level": np.array([1])})),
            verl.compute_score(**of_verl(ground_truth=None, unscored=-1.0)),
        ]
        return await asyncio.gather(*calls)

    right, wrong, unscored = asyncio.run(run())
    assert right == {
        "score": 1.0,
        "acc": 1.0,
        "pred": "4",
        "passed": 1.0,
        "unscored": 0.0,
        "feedback": "",
        "error": "",
        "score/math": 1.0,
        "check/math/right": 1.0,
        "check/math/short": 1.0,
    }
    assert (wrong["score"], wrong["feedback"]) == (0.25, 'right: does not contain "4"')
    assert (unscored["score"], unscored["unscored"], unscored["error"]) == (-1.0, 1.0, "gold is missing: answer")
    assert unscored["check/math/right"] == 0.0
    assert [*right] == [*wrong] == [*unscored]
    assert [type(value) for value in right.values()] == [type(value) for value in unscored.values()]


def test_verl_stops_at_an_unscored_sample_unless_a_number_is_given(tmp_path):
    with pytest.raises(FailedRunError, match="cannot be scored: gold is missing"):
        asyncio.run(verl.compute_score(**of_verl(ground_truth=None)))
    with pytest.raises(UsageError, match="expected a number"):
        verl.score(**of_verl(unscored="zero"))
    path = tmp_path / "spec.yaml"
    path.write_text("checks: [{type: contains, value: {column: extra_info.word}}]", "utf-8")
    assert verl.score(**of_verl(spec=str(path), extra_info={"word": "4", "other": {"a": 1}})) == 1.0


WITH_CONDITION = {
    "id": "math",
    "checks": [
        {"id": "right", "type": "number", "value": {"column": "answer"}, "on": ["afterThink"]},
        {"id": "kind", "type": "contains", "value": "y", "when": {"column": "kind", "equals": "k"}},
    ],
}


@pytest.mark.parametrize("not_run", [0.0, -1.0, 1])
def test_a_check_that_did_not_run_has_a_number_in_verl(not_run):
    result = verl.compute_score_sync(**of_verl(spec=WITH_CONDITION, extra_info={"kind": "other"}, not_run=not_run))
    assert result["check/math/kind"] == not_run
    assert not any(isinstance(value, float) and math.isnan(value) for value in result.values())
    ran = verl.compute_score_sync(**of_verl(spec=WITH_CONDITION, extra_info={"kind": "k"}, not_run=not_run))
    assert (ran["check/math/kind"], ran["acc"], ran["score"]) == (0.0, 0.0, 0.5)


@pytest.mark.parametrize(
    ("checks", "pred"),
    [
        (WITH_CONDITION["checks"], "72"),
        (
            [{"type": "regex", "pattern": "a", "on": ["think"]}, {"type": "contains", "value": {"column": "answer"}}],
            None,
        ),
        ([{"type": "max_length", "value": 90}, {"type": "min_length", "value": 1, "on": [{"line": "last"}]}], "so 72"),
        ([{"type": "contains", "value": "72"}], None),
        ([{"type": "exact_match", "value": {"column": "answer"}, "on": ["boxed"]}], ""),
        ([{"type": "all_of", "checks": [{"type": "number", "value": {"column": "answer"}}]}], "72"),
        (
            [
                {
                    "type": "length_penalty",
                    "max": 3,
                    "buffer": 1,
                    "unit": {"column": "tokens"},
                    "on": [{"line": "first"}],
                },
                {"type": "equals", "value": {"column": "ground_truth"}, "on": [{"line": "last"}, "number"]},
            ],
            "72",
        ),
    ],
)
def test_verls_pred_is_what_is_compared_with_the_gold(checks, pred):
    text = " <think>71</think> It is\nso 72"
    sample = of_verl(
        spec={"checks": checks}, solution_str=text, ground_truth="72", extra_info={"tokens": [1], "kind": 1}
    )
    assert verl.compute_score_sync(**sample)["pred"] == (text.strip() if pred is None else pred)


def test_verls_functions_agree():
    samples = [
        of_verl(solution_str=text, ground_truth=gold, unscored=-1.0) for text in ("4", "5") for gold in ("4", None)
    ]

    async def gathered(function):
        return await asyncio.gather(*(function(**sample) for sample in samples))

    results = asyncio.run(gathered(verl.compute_score))
    made = verl.reward(SPEC, unscored=-1.0)
    assert inspect.iscoroutinefunction(made)
    given = [{name: value for name, value in sample.items() if name != "spec"} for sample in samples]
    assert results == [asyncio.run(made(**sample)) for sample in given]
    at_once = pickle.loads(pickle.dumps(verl.reward(SPEC, sync=True, unscored=-1.0)))  # noqa: S301  (made here)
    assert not inspect.iscoroutinefunction(at_once)
    assert results == [at_once(**sample) for sample in given]
    assert results == [verl.compute_score_sync(**sample) for sample in samples]
    columns = {f"{name}s": [sample[name] for sample in samples] for name in given[0] if name != "unscored"}
    assert results == verl.compute_scores(**columns, spec=SPEC, unscored=-1.0)
    assert [result["score"] for result in results] == [verl.score(**sample) for sample in samples]


def test_a_spec_of_a_file_of_verl_is_read_with_the_file(tmp_path):
    with pytest.raises(SpecError, match="contians"):
        verl.reward({"checks": [{"type": "contians", "value": "a"}]})
    with pytest.raises(UsageError, match="unscored='zero'"):
        verl.reward(SPEC, unscored="zero")
    with pytest.raises(UsageError, match="not_run='nan'"):
        verl.reward(SPEC, not_run="nan")
    path = tmp_path / "spec.yaml"
    path.write_text("checks: [{type: contains, value: a}]", "utf-8")
    function = verl.reward(str(path), sync=True)
    by_name = getattr(verl, str(path))
    assert hasattr(verl, str(path))
    path.unlink()
    assert function("words", "a", None)["score"] == 1.0
    assert asyncio.run(by_name("words", "a", None, unscored=0.0))["score"] == 1.0


def test_a_spec_that_verl_names_is_read_when_the_name_is_looked_up(tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text("checks: [{type: contians, value: a}]", "utf-8")
    for name, message in ((str(path), "contians"), (str(tmp_path / "other.yaml"), "other.yaml")):
        with pytest.raises(SpecError, match=message):
            getattr(verl, name)
    with pytest.raises(AttributeError, match="no attribute 'compute_scroe'"):
        verl.compute_scroe  # noqa: B018  (looked up, as verl does)


def test_verl_may_know_what_json_does_not():
    spec = {"checks": [{"type": "contains", "value": {"column": "extra_info.word"}}]}
    info = {"word": "4", ("a", "tuple"): 1, np.int64(3): b"4"}
    assert verl.score(**of_verl(spec=spec, extra_info=info)) == 1.0
    info = {"word": "4"}
    info["self"] = info
    assert verl.score(**of_verl(spec=spec, extra_info=info, unscored=-1.0)) == -1.0
    with pytest.raises(FailedRunError, match="cannot be scored: `extra_info` is nested"):
        verl.score(**of_verl(spec=spec, extra_info=info))


# ── OpenRLHF ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("query", "prompt", "response"),
    [
        ("2 + 2? 4<eos>", "2 + 2?", " 4"),
        ("<s>2 + 2? 4</s></s>", "2 + 2?", " 4"),
        (
            "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n4<|im_end|>\n",
            "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n",
            "4",
        ),
        ("<|begin|><|begin|>user: q</s>a <|x|> b<|eot_id|><|end_of_text|>", "user: q</s>", "a <|x|> b"),
        ("the end of it? 4", "a long beginning, and the end of it?", " 4"),
        ("something else", "2 + 2?", None),
        ("the prompt is quoted later: 2 + 2? 4", "2 + 2?", None),
        ("2 + 2?", "2 + 2?", ""),
    ],
)
def test_the_response_is_what_follows_the_prompt(query, prompt, response):
    assert response_of(query, prompt) == response


@pytest.mark.parametrize(
    ("query", "prompt", "response"),
    [
        ("p" + "<s>" * 100_000 + "x", "p", "x"),
        ("p" + "x<s> " * 100_000 + "x", "p", "x<s> " * 100_000 + "x"),
        ("a" * 100_000, "a" * 100_000 + "b", None),
        ("a" * 100_000, "b" + "a" * 99_999, "a"),
    ],
)
def test_long_texts_that_repeat_themselves_take_linear_time(query, prompt, response):
    assert response_of(query, prompt) == response


class Counted(str):
    """A text that counts how many of its characters are asked for."""

    __slots__ = ("asked",)

    def __init__(self, _):
        self.asked = 0

    def __getitem__(self, key):
        self.asked += len(self) if isinstance(key, slice) else 1
        return super().__getitem__(key)


@pytest.mark.parametrize("unit", ["a", "ab", "abcdefgh", "aaaaaaab"])
def test_the_end_of_a_prompt_is_looked_for_once(unit):
    """Where both repeat themselves, every place of the prompt may be the one at which the query begins."""
    size = 40_000
    repeated = unit * (size // len(unit))
    query, prompt = Counted(repeated[: size // 2] + "?" + repeated), Counted(repeated)
    assert _kept_end(prompt, query) == size // 2
    assert query.asked + prompt.asked < 50 * size


def test_the_end_of_a_prompt_with_which_a_query_begins_is_the_longest():
    draw = random.Random(28)
    for _ in range(sized(20_000, 2_000)):
        letters = draw.choice(("a", "ab", "aab", "abc"))
        prompt = "".join(draw.choices(letters, k=draw.randrange(150)))
        query = prompt[draw.randrange(len(prompt) + 1) :] + "".join(draw.choices(letters, k=draw.randrange(30)))
        lengths = [length for length in range(8, len(prompt) + 1) if query.startswith(prompt[-length:])]
        assert _kept_end(prompt, query) == max(lengths, default=None)


def test_openrlhf_may_send_no_labels_and_no_text():
    """What is raised here it swallows."""
    reward = assay.adapters.openrlhf(SPEC, unscored=-1.0)
    assert reward(["it is 4", None], None, None)["rewards"] == [-1.0, -1.0]
    assert reward([None, "4"], [None, None], ["4", "4"])["rewards"] == [-1.0, 1.0]
    assert reward(["", "2 + 2? 4"], ["2 + 2?"] * 2, ["4", "4"])["rewards"] == [-1.0, 1.0]


def test_openrlhf_gets_numbers_and_counts_what_has_no_reward(caplog):
    reward = assay.adapters.openrlhf(SPEC, unscored=-1.0)
    assert reward(["2 + 2? 4<eos>"], ["2 + 2?"], ["4"]) == {
        "rewards": 1.0,
        "scores": 1.0,
        "extra_logs": {
            "unscored": 0.0,
            "exceptions": 0.0,
            "score/math": 1.0,
            "check/math/right": 1.0,
            "check/math/short": 1.0,
        },
    }
    several = reward(["a 4", "b"], ["a", "c"], ["4", None])
    assert several["rewards"] == [1.0, -1.0]
    assert several["extra_logs"]["unscored"] == [0.0, 1.0]
    assert caplog.messages == ["A query is unscored: the completion is null"]
    named = assay.adapters.openrlhf(assay.compile(None, {"completion": str, "fn_name": str}), gold="fn_name")
    result = named(["a 4"], ["a"], ["no_such_function"])
    assert (result["rewards"], result["extra_logs"]["exceptions"]) == (0.0, 1.0)
    assert "A query has no reward: InputError" in caplog.text


def test_reasons_of_queries_without_a_reward_are_logged_with_their_numbers(caplog):
    reward = assay.adapters.openrlhf(SPEC)
    for _ in range(10):
        reward(["a 4"] * 10, ["b"] * 10, ["4"] * 10)
        reward(["a 4"] * 10, ["a"] * 10, [None] * 10)
    null, gold = (f"A query is unscored: {why}" for why in ("the completion is null", "gold is missing: answer"))
    said = [f"{reason}{more}" for reason in (null, gold) for more in ("", " (10 so far)")]
    assert caplog.messages == [*said, f"{null} (100 so far)", f"{gold} (100 so far)"]
    reasons = pickle.loads(pickle.dumps(Reasons()))  # noqa: S301  (made here)
    reasons.log([ValueError(f"{number}") for number in range(1_005)])
    assert len(caplog.messages) == 6 + 1_000 + 1
    assert caplog.messages[-1] == "A query has no reward: other reasons"


# ── SkyRL, NeMo-RL, NeMo-Gym ────────────────────────────────────────────────────────────────────────────────────────────


def test_an_absent_package_is_named_with_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "skyrl_gym", None)
    with pytest.raises(UsageError, match=r"pip install 'assay-rollouts\[skyrl\]'"):
        assay.adapters.skyrl(SPEC)
    monkeypatch.setitem(sys.modules, "nemo_rl", None)
    with pytest.raises(UsageError, match="NeMo-RL is not installed"):
        assay.adapters.nemo_rl(SPEC)


def test_nemo_rl_gets_a_tensor_for_a_batch(monkeypatch):
    interfaces = types.ModuleType("nemo_rl.environments.interfaces")
    interfaces.EnvironmentInterface = object
    interfaces.EnvironmentReturn = types.SimpleNamespace
    torch = types.SimpleNamespace(
        float32="float32", tensor=lambda values, dtype: values, ones_like=lambda values: [1.0] * len(values)
    )
    modules = {"nemo_rl": types.ModuleType("nemo_rl"), "nemo_rl.environments": types.ModuleType("environments")}
    for name, module in {**modules, "nemo_rl.environments.interfaces": interfaces, "torch": torch}.items():
        monkeypatch.setitem(sys.modules, name, module)
    environment = assay.adapters.nemo_rl(SPEC, unscored=0.0)({})
    log = [
        {"role": "user", "content": "2 + 2?", "token_ids": object()},
        {"role": "assistant", "content": "4", "token_ids": object()},
    ]
    returned = environment.step([log, log, log], [{"ground_truth": "4"}, {"expected_answer": "5"}, None])
    assert returned.rewards == [1.0, 0.25, 0.0]
    assert returned.terminateds == [1.0] * 3
    assert returned.observations[1] == {"role": "environment", "content": 'right: does not contain "5"'}
    assert environment.global_post_process_and_metrics("batch") == ("batch", {})


def test_nemo_gym_gets_the_request_back_with_its_reward():
    class Server:
        verify = assay.adapters.nemo_gym(SPEC)

    def body(text, **fields):
        output = [
            {"type": "reasoning", "summary": []},
            {"type": "message", "content": [{"type": "output_text", "text": text}]},
        ]
        return {"responses_create_params": {"input": []}, "response": {"output": output}, **fields}

    async def run():
        return await asyncio.gather(
            Server().verify(body("4", expected_answer="4")), Server().verify(body("5", expected_answer="4"))
        )

    right, wrong = asyncio.run(run())
    assert (right["reward"], wrong["reward"]) == (1.0, 0.25)
    assert wrong["reward_components"] == {"check/math/right": 0.0, "check/math/short": 1.0}
    assert wrong["expected_answer"] == "4"
    with pytest.raises(FailedRunError):
        asyncio.run(Server().verify({"response": {"output": []}}))


@pytest.mark.parametrize("name", ["verl", "promptfoo", "verifiers"])
def test_what_is_a_module_is_called_one(name, monkeypatch):
    monkeypatch.delattr(assay.adapters, name, raising=False)  # of an earlier import
    hint = f"module 'assay.adapters' has no attribute '{name}'; it is a module: import assay.adapters.{name}"
    with pytest.raises(AttributeError, match=f"^{hint}$"):
        getattr(assay.adapters, name)
