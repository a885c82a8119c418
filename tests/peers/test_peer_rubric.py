"""Rubrics beside those of verifiers 0.1.6: one file of a user, run with either import, gives the same."""

import asyncio
import inspect
import logging
import math
import sys
import types
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import assay

pytestmark = pytest.mark.xdist_group("verifiers")  # it takes seconds to import

FILE = """
import asyncio
import fractions
import functools

import {module} as vf

parser = vf.XMLParser(["think", ("answer", "code")], answer_field="answer")


def correct(completion, answer, parser, **kwargs) -> float:
    return 1.0 if (parser.parse_answer(completion) or "") == answer else 0.0


def brief(completion) -> float:
    return 1.0 - len(completion[-1]["content"]) / 200


def easy(info, task="none", *, state):
    state["seen"] = state.get("seen", 0) + 1
    return 0.5 if task == "math" and info.get("level", 9) < 3 else 0


async def judged(prompt, completion, judge, example_id):
    await asyncio.sleep(0)
    return (await judge(prompt, completion)) + example_id / 8


def raises(completion):
    raise ValueError("no reward")


def later(answer, state):
    return asyncio.ensure_future(wait_for_it(answer, state["seen"]))


async def wait_for_it(answer, seen):
    await asyncio.sleep(0.001)
    return len(answer) * seen


def exact(answer):
    return fractions.Fraction(1, 4)


def nothing():
    return None


class Judged(vf.Rubric):
    def __init__(self, strictness=1, **kwargs):
        super().__init__(parser=parser, strictness=strictness, **kwargs)
        self.class_objects["judge"] = self.judge
        for func, weight in ((correct, 1.0), (self.mine, 0.25)):
            self.add_reward_func(func, weight=weight)

    async def judge(self, prompt, completion):
        return 0.5 if "4" in completion[-1]["content"] else 0.0

    def mine(self, answer):
        return len(answer) / self.strictness


class Doubled(vf.Rubric):
    async def score_rollout(self, *args, **kwargs):
        score = await super().score_rollout(*args, **kwargs)
        return type(score)(reward=2 * score.reward, metrics={{**score.metrics, "doubled": score.reward}})


class Strict(vf.Rubric):
    async def call_reward_func(self, func, *args, **kwargs):
        return float(await super().call_reward_func(func, *args, **kwargs) >= 0.5)


class Ranked(vf.Rubric):
    async def score_group(self, states, **kwargs):
        order = sorted(kwargs["completions"], key=str)
        for state, completion in zip(states, kwargs["completions"]):
            state["rank"] = order.index(completion)


def rank(state):
    return state["rank"]


async def judge(prompt, completion):
    return 0.125


functions = vf.Rubric(funcs=[correct, brief, easy, exact], weights=[1.0, 0.5, -0.25, 0.0], parser=parser)
formats = vf.Rubric([parser.get_format_reward_func(), brief])
broken = vf.Rubric(funcs=[raises, brief, nothing], weights=[1.0, 1.0, 3.0])
awaited = vf.Rubric(funcs=[easy, later, brief], parallelize_scoring=False)
plain = vf.Rubric()
plain.add_reward_func(brief)
plain.add_reward_func(correct, 0.5)
named = vf.Rubric([easy, easy, correct], [1.0, 2.0, 1.0])
judging = vf.Rubric([judged, easy], [2.0, 1.0], None, True)
judging.class_objects["judge"] = judge
subclass = Judged(strictness=4)
doubled = Doubled([brief, correct], [0.5, 1.0])
strict = Strict([brief, correct], [0.5, 1.0])
ranked = Ranked([rank, brief])
empty = vf.Rubric()
group = vf.RubricGroup([functions, plain])
nested = vf.RubricGroup([vf.RubricGroup([doubled, formats]), subclass, empty, broken])
"""
RUBRICS = [
    *("functions", "formats", "broken", "awaited", "plain", "named", "judging", "subclass", "doubled", "strict"),
    "ranked",
    *("empty", "group", "nested"),
]
ROWS = [
    ("What is 2+2?", "<think>sum</think>\n<answer>4</answer>", "4", "math", {"level": 1}),
    ("What is 2+3?", "<think>sum</think> <answer> 4 </answer>", "5", "math", {"level": 7}),
    ("Write 4", "<code>print(4)</code>", "print(4)", "code", {}),
    ("Say it", "it is 4", "", "default", {"level": 0}),
    ("Ünïcode?", "<answer>ΟΔΟΣ\u2028</answer>", "ΟΔΟΣ", "math", {"other": [1]}),
]


@pytest.fixture(scope="module")
def peer():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what it imports
        release = pytest.importorskip(
            "verifiers", reason="the release to compare with is not here: pip install 'assay-rollouts[bench]'"
        )
    logging.getLogger("verifiers").setLevel(logging.CRITICAL)
    return release


@pytest.fixture(scope="module")
def files(peer):
    """The user's file with either import: ours, theirs."""
    found = []
    for module in ("assay", "verifiers"):
        file = types.ModuleType(f"users_file_{module}")
        sys.modules[file.__name__] = file
        exec(FILE.format(module=module), vars(file))  # noqa: S102  (a file of a user)
        found.append(file)
    yield found
    for file in found:
        del sys.modules[file.__name__]


def columns(rows=ROWS):
    timing = {"generation_ms": 4.0, "scoring_ms": 0.0, "total_ms": 4.0}
    return {
        "prompts": [[{"role": "user", "content": row[0]}] for row in rows],
        "completions": [[{"role": "assistant", "content": row[1]}] for row in rows],
        "answers": [row[2] for row in rows],
        "states": [{"timing": dict(timing)} for _ in rows],
        "tasks": [row[3] for row in rows],
        "infos": [dict(row[4]) for row in rows],
    }


def scored(rubric, **changed):
    given = columns() | {"use_tqdm": False} | changed
    found = asyncio.run(rubric.score_rollouts(**given))
    return found.model_dump(), [_without_times(state) for state in given["states"]]


def _without_times(state):
    timing = state["timing"]
    assert timing.keys() == {"generation_ms", "scoring_ms", "total_ms"}
    assert (
        timing["total_ms"] >= 4.0 + timing["scoring_ms"] - 1e-9
    )  # of a group, all rubrics count, and the last is told
    return {name: value for name, value in state.items() if name not in ("timing", "error")}


CHANGES = ({}, {"example_ids": [3, 3, 1, 1, 0]}, {"max_concurrent": 2}, {"infos": [None] * 5}, {"surplus": 1})


@pytest.mark.parametrize("name", RUBRICS)
def test_score_rollouts_gives_the_same(files, name):
    for changed in CHANGES:
        ours, theirs = (scored(getattr(file, name), **changed) for file in files)
        assert ours == theirs
        assert [repr(one) for one in ours[0]["reward"]] == [repr(float(one)) for one in theirs[0]["reward"]]


@pytest.mark.parametrize("name", [name for name in RUBRICS if name != "ranked"])
def test_score_rollout_gives_the_same(files, name):
    given = columns()
    for at in range(len(ROWS)):
        found = []
        for file in files:
            state = columns()["states"][at]
            args = (given["prompts"][at], given["completions"][at], given["answers"][at], state)
            one = asyncio.run(getattr(file, name).score_rollout(*args, given["tasks"][at], given["infos"][at], at))
            found.append((one.model_dump(), _without_times(state)))
        assert found[0] == found[1]


def test_call_reward_func_gives_the_same(files):
    given = columns()
    for name in ("correct", "brief", "easy", "raises", "exact", "nothing"):
        ours, theirs = (
            asyncio.run(
                file.functions.call_reward_func(
                    getattr(file, name), given["prompts"][0], given["completions"][0], "4", {}, info={"level": 1}
                )
            )
            for file in files
        )
        assert ours == theirs


@pytest.mark.parametrize("name", RUBRICS)
def test_the_attributes_are_the_same(files, name):
    ours, theirs = (getattr(file, name) for file in files)
    assert ours.get_reward_func_names() == theirs.get_reward_func_names()
    assert ours.get_reward_weights() == theirs.get_reward_weights()
    assert [one.__name__ for one in ours.get_reward_funcs()] == [one.__name__ for one in theirs.get_reward_funcs()]
    assert {one for one in vars(theirs) if not one.startswith("_")} <= set(vars(ours))
    assert ours.parallelize_scoring == theirs.parallelize_scoring
    assert ours.class_objects.keys() == theirs.class_objects.keys()
    assert type(ours.parser).__name__ == type(theirs.parser).__name__
    assert ours.reward_weights == theirs.reward_weights
    assert isinstance(ours.logger, logging.Logger)


@pytest.mark.parametrize("cls", ["Rubric", "RubricGroup"])
def test_every_public_method_is_there_with_the_same_parameters(peer, cls):
    for name, method in inspect.getmembers(getattr(peer, cls), inspect.isfunction):
        if name.startswith("_") and name != "__init__":
            continue
        ours = getattr(getattr(assay, cls), name)
        assert inspect.iscoroutinefunction(ours) == inspect.iscoroutinefunction(method)
        if cls == "Rubric":
            assert [*inspect.signature(ours).parameters] == [*inspect.signature(method).parameters]


def test_without_rollouts_both_give_names(files):
    none = {name: [] for name in columns()}
    for name in ("functions", "doubled", "group"):
        ours, theirs = (scored(getattr(file, name), **none) for file in files)
        assert ours == theirs


def test_a_group_needs_a_rubric_and_takes_functions_into_its_first_in_both(peer):
    for module in (assay, peer):
        with pytest.raises(ValueError, match="at least one rubric"):
            module.RubricGroup([])
        group = module.RubricGroup([module.Rubric([len]), module.Rubric([abs])])
        group.add_reward_func(max, 0.5)
        assert group.rubrics[0].reward_funcs == [len, max]
        assert group.get_reward_weights() == [1.0, 0.5, 1.0]


NUMBER = st.one_of(
    st.sampled_from([0.0, -0.0, 0.5, 1.0, -2.0]), st.integers(-(2**20), 2**20).map(lambda one: one / 1024)
)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.tuples(NUMBER, NUMBER), max_size=4), min_size=1, max_size=3), st.booleans())
def test_sums_are_the_same_where_every_order_of_addition_is_exact(peer, rubrics, grouped):
    def made(module):
        ones = [
            module.Rubric(
                [_named(f"f{at}", number) for at, (number, _) in enumerate(one)], [weight for _, weight in one]
            )
            for one in rubrics
        ]
        return module.RubricGroup(ones) if grouped else ones[0]

    ours, theirs = (scored(made(module))[0] for module in (assay, peer))
    assert repr(ours) == repr(theirs).replace("'reward': [0, ", "'reward': [0.0, ")


def _named(name, number):
    def func(completion):
        return number

    func.__name__ = name
    return func


# ── where we differ on purpose ──────────────────────────────────────────────────────────────────────────────────────────


def one(completion):
    return 1.0


def nan(completion):
    return math.nan


def test_weights_that_do_not_fit_raise_where_the_other_leaves_functions_out(peer):
    assert scored(peer.Rubric([one, nan], [2.0]))[0]["reward"] == [2.0] * 5
    with pytest.raises(ValueError, match="reward functions: 2, weights: 1;"):
        assay.Rubric([one, nan], [2.0])


def test_what_is_not_finite_scores_0_and_is_an_error_where_the_other_passes_it_on(peer):
    assert all(math.isnan(reward) for reward in scored(peer.Rubric([one, nan]))[0]["reward"])
    state = {}
    assert asyncio.run(assay.Rubric([one, nan]).score_rollout("p", "c", "a", state)).reward == 1.0
    assert state["error"] == "nan: ValueError: the reward is not a finite number"


def test_an_exception_is_told_in_the_state_where_the_other_only_logs_it(files):
    states = []
    for file in files:
        given = columns()
        asyncio.run(file.broken.score_rollouts(**given, use_tqdm=False))
        states.append(given["states"][0])
    assert "raises: ValueError: no reward" in states[0]["error"]
    assert "error" not in states[1]


def test_lists_of_several_lengths_raise_where_the_other_leaves_rollouts_out(files):
    ours, theirs = files
    assert len(scored(theirs.functions, answers=["4"])[0]["reward"]) == 1
    with pytest.raises(ValueError, match="the lists have different lengths"):
        scored(ours.functions, answers=["4"])


def test_a_state_needs_no_timing_where_the_other_needs_it(files):
    ours, theirs = files
    with pytest.raises(KeyError):
        asyncio.run(theirs.plain.score_rollout("p", [{"content": "c"}], "a", {}))
    state = {}
    asyncio.run(ours.plain.score_rollout("p", [{"content": "c"}], "a", state))
    assert state["timing"]["total_ms"] == state["timing"]["scoring_ms"] > 0


def test_callable_objects_have_names_where_the_other_asks_for_one(peer):
    class Judge:
        def __call__(self, completion):
            return 0.5

    with pytest.raises(AttributeError):
        scored(peer.Rubric([Judge()]))
    assert scored(assay.Rubric([Judge()]))[0]["metrics"] == {"Judge": [0.5] * 5}


def test_functions_with_plural_arguments_see_an_example_where_the_other_cannot_call_them(peer):
    def longest(completions):
        return [float(one == max(completions, key=str)) for one in completions]

    assert scored(peer.Rubric([longest]))[0]["reward"] == [0.0] * 5
    assert scored(assay.Rubric([longest]), example_ids=[0, 0, 1, 1, 1])[0]["reward"] == [1.0, 0.0, 0.0, 1.0, 0.0]


def test_lists_are_copied_where_the_other_goes_on_with_them(peer):
    for module, left in ((peer, 2), (assay, 1)):
        funcs = [one]
        module.Rubric(funcs).add_reward_func(nan)
        assert len(funcs) == left
