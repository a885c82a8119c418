"""Rubrics as objects: weights, names, attributes, lists that do not fit, times."""

import asyncio
import copy
import pickle

import numpy as np
import pytest

import assay
from assay import Rubric, XMLParser
from assay.types import RolloutScore, RolloutScores

ROLLOUT = {"prompt": "What is 2+2?", "completion": "4", "answer": "4", "task": "math", "info": {"n": 1}}


def score(rubric, count=1, **changed):
    given = {f"{name}s": [copy.deepcopy(value) for _ in range(count)] for name, value in ROLLOUT.items()}
    given |= {"states": [{} for _ in range(count)], "use_tqdm": False} | changed
    return asyncio.run(rubric.score_rollouts(**given)), given["states"]


# ── weights and names ───────────────────────────────────────────────────────────────────────────────────────────────────


def half(completion):
    return 0.5


def one(completion):
    return 1.0


@pytest.mark.parametrize(
    ("weights", "reward"),
    [(None, 1.5), ([], 1.5), ([2, 0], 1.0), ([1.0, -2.0], -1.5), ([0.0, -0.0], 0.0), ((1, True), 1.5)],
)
def test_the_reward_is_the_weighted_sum(weights, reward):
    rubric = Rubric([half, one], weights)
    scores, _ = score(rubric)
    assert scores == RolloutScores(reward=[reward], metrics={"half": [0.5], "one": [1.0]})
    assert str(scores.reward[0]) == str(reward)
    assert assay.score([{"completion": "a"}], rubric)["reward"].to_list() == [reward]


@pytest.mark.parametrize("weight", [np.float64(0.5), np.float32(0.5), np.int64(2), np.float16(0.25)], ids=repr)
def test_weights_are_numbers_of_any_kind(weight):
    rubric = Rubric([half], [weight])
    assert score(rubric)[0].reward == [0.5 * float(weight)]
    assert assay.score([{"completion": "a"}], rubric)["reward"].to_list() == [0.5 * float(weight)]


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), 10**400, "1", None, 1j], ids=lambda one: f"{one!r:.9}")
def test_a_weight_that_no_sum_can_have_is_refused(weight):
    with pytest.raises(ValueError, match=r"the weight of half is .* expected a finite number"):
        Rubric([half], weights=[weight])
    with pytest.raises(ValueError, match="expected a finite number"):
        Rubric().add_reward_func(half, weight)
    rubric = Rubric([half])
    rubric.reward_weights[0] = weight
    with pytest.raises(assay.SpecError, match="the weight of half"):
        assay.score([{"completion": "a"}], rubric)


@pytest.mark.parametrize("weights", [[1.0], [1.0, 1.0, 1.0]])
def test_as_many_weights_as_functions(weights):
    with pytest.raises(ValueError, match=f"reward functions: 2, weights: {len(weights)};"):
        Rubric([half, one], weights)
    rubric = Rubric([half])
    rubric.reward_funcs.append(one)
    with pytest.raises(ValueError, match="reward functions: 2, weights: 1;"):
        score(rubric)


def test_of_functions_with_one_name_the_last_is_the_metric_and_each_has_a_column():
    rubric = Rubric([half, lambda completion: 0.25, lambda completion: 0.75])
    rubric.add_reward_func(half, 2.0)
    assert rubric.get_reward_func_names() == ["half", "<lambda>", "<lambda>", "half"]
    assert score(rubric)[0] == RolloutScores(reward=[2.5], metrics={"half": [0.5], "<lambda>": [0.75]})
    found = assay.score([{"completion": "a"}], rubric)
    assert found.columns[4:] == ["score/half", "score/<lambda>", "score/<lambda>-2", "score/half-2"]
    assert found.row(0)[4:] == (0.5, 0.25, 0.75, 0.5)


def test_a_sum_that_no_float_holds_is_infinite_here_and_an_error_in_columns():
    rubric = Rubric([lambda completion: 1e308, one], weights=[10.0, 1.0])
    assert score(rubric)[0].reward == [float("inf")]
    found = assay.score([{"completion": "a"}], rubric)
    assert found.select("reward", "passed", "error").row(0) == (None, None, "the weighted sum is not a finite number")


# ── a rubric as an object ───────────────────────────────────────────────────────────────────────────────────────────────


def test_its_attributes():
    parser = XMLParser(["answer"])
    rubric = Rubric([half], [0.5], parser, parallelize_scoring=False, judge="j")
    assert (rubric.get_reward_funcs(), rubric.get_reward_weights()) == ([half], [0.5])
    assert (rubric.parser, rubric.judge, rubric.class_objects) == (parser, "j", {"parser": parser})
    assert not rubric.parallelize_scoring
    assert not rubric.has_group_funcs
    assert type(Rubric().parser) is assay.Parser
    rubric.add_reward_func(one, weight=0.25)
    assert (rubric.reward_funcs, rubric.reward_weights) == ([half, one], [0.5, 0.25])


def test_the_lists_it_was_given_are_not_its_own():
    funcs, weights = [half], [1.0]
    Rubric(funcs, weights).add_reward_func(one)
    assert (funcs, weights) == ([half], [1.0])


def test_a_rubric_travels():
    rubric = Rubric([half, one], [0.5, 2.0], XMLParser(["answer"]))
    score(rubric)
    again = pickle.loads(pickle.dumps(rubric))  # noqa: S301  (bytes of our own)
    assert score(again)[0] == score(rubric)[0]
    assert score(copy.deepcopy(rubric))[0].reward == [2.25]


def test_a_rubric_without_functions_gives_nothing():
    scores, (state,) = score(Rubric())
    assert scores == RolloutScores(reward=[0.0])
    assert state["timing"]["total_ms"] == 0.0
    assert asyncio.run(Rubric().score_rollout(**ROLLOUT, state={})) == RolloutScore(reward=0.0)
    with pytest.raises(assay.SpecError, match="no reward functions"):
        assay.score([{"completion": "a"}], Rubric())


def test_lists_of_several_lengths_are_refused():
    with pytest.raises(ValueError, match="the lists have different lengths: prompt 2, completion 2, answer 1"):
        score(Rubric([half]), 2, answers=["4"])


def test_a_state_is_told_how_long_scoring_took():
    states = [{}, {"timing": {"total_ms": 5.0}}, {"timing": {"generation_ms": 1.0, "total_ms": 1.0, "scoring_ms": 9.0}}]
    score(Rubric([half]), 3, states=states)
    for state, before in zip(states, (0.0, 5.0, 1.0), strict=True):
        took = state["timing"]["scoring_ms"]
        assert 0 < took < 1000
        assert state["timing"]["total_ms"] == before + took


def test_no_infos_are_empty_ones():
    assert score(Rubric([lambda info: float(info == {})]), 2, infos=[None, {}])[0].reward == [1.0, 1.0]
