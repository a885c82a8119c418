"""Functions that see all rollouts of an example, rubrics that add up, and rubrics that score in a way of their own."""

import asyncio

import pytest

import assay
from assay import Rubric, RubricGroup
from assay.calls.limits import Limits
from assay.scoring.reference import score_rows
from assay.types import RolloutScore, RolloutScores


def columns(completions, **changed):
    rows = len(completions)
    given = {
        "prompts": [f"p{at % 2}" for at in range(rows)],
        "completions": completions,
        "answers": ["4"] * rows,
        "states": [{} for _ in completions],
        "tasks": ["math"] * rows,
        "infos": [{"n": at} for at in range(rows)],
        "use_tqdm": False,
    }
    return given | changed


def score(rubric, completions, **changed):
    given = columns(completions, **changed)
    return asyncio.run(rubric.score_rollouts(**given)), [state.get("error") for state in given["states"]]


def length(completion):
    return float(len(completion))


def longest(completions):
    return [float(one == max(completions, key=len)) for one in completions]


async def longest_later(completions):
    await asyncio.sleep(0)
    return longest(completions)


def longest_awaited(completions):
    return longest_later(completions)


def raising(wrong):
    def func(completions):
        raise wrong

    func.__name__ = "<lambda>"
    return func


# ── all rollouts of an example ──────────────────────────────────────────────────────────────────────────────────────────

TEXTS = ["a", "aa", "aaa", "aaaa", "b"]


@pytest.mark.parametrize(
    ("ids", "wanted"),
    [
        ([7, 7, 8, 8, 8], [0, 1, 0, 1, 0]),
        (None, [0, 0, 1, 1, 0]),  # by prompt: p0 p1 p0 p1 p0
        ([1, 2, 3, 4, 5], [1, 1, 1, 1, 1]),
        (["x", "y", "x", "y", "y"], [0, 0, 1, 1, 0]),
        ([[1], [2], [1], [2], [2]], [0, 0, 1, 1, 0]),
    ],
)
def test_rollouts_of_one_example_have_one_id_else_one_prompt(ids, wanted):
    rows = [{"completion": text, "prompt": f"p{at % 2}"} for at, text in enumerate(TEXTS)]
    if ids is not None:
        rows = [row | {"example_id": ident} for row, ident in zip(rows, ids, strict=True)]
    for func in (longest, longest_later, longest_awaited):
        rubric = Rubric([length, func], [0.0, 1.0])
        assert rubric.has_group_funcs
        scores, errors = score(rubric, TEXTS, example_ids=ids)
        assert scores.reward == wanted
        assert scores.metrics == {"length": [1.0, 2.0, 3.0, 4.0, 1.0], func.__name__: wanted}
        assert errors == [None] * 5
        assert assay.score(rows, rubric)["reward"].to_list() == wanted


def test_prompts_are_the_same_when_their_messages_are():
    prompts = [[{"role": "user", "content": said}] for said in ("one", "two", "one")]
    prompts[2][0] = {"content": "one", "role": "user"}
    assert score(Rubric([longest]), ["a", "b", "aa"], prompts=prompts)[0].reward == [0.0, 1.0, 1.0]


def test_a_function_names_any_plurals():
    seen = []

    def sees(prompts, completions, answers, states, tasks, infos, example_ids, parser):
        seen.append((prompts, completions, answers, tasks, infos, example_ids))
        states[0]["first"] = True
        return [0.5] * len(states)

    def rest(**kwargs):
        return float(kwargs.keys() >= {"completion", "state"} and "completions" not in kwargs)

    rubric = Rubric([rest, sees])
    assert score(rubric, ["a", "b", "c"])[0].reward == [1.5] * 3
    assert seen == [
        (["p0", "p0"], ["a", "c"], ["4", "4"], ["math"] * 2, [{"n": 0}, {"n": 2}], [0, 2]),
        (["p1"], ["b"], ["4"], ["math"], [{"n": 1}], [1]),
    ]


@pytest.mark.parametrize(
    ("func", "said"),
    [
        (lambda completions: [1.0], "ValueError: 1 rewards for 2 rollouts"),
        (lambda completions: [1.0] * 3, "ValueError: 3 rewards for 2 rollouts"),
        (lambda completions: [], "ValueError: 0 rewards for 2 rollouts"),
        (lambda completions: 1.0, "TypeError: 'float' object is not iterable"),
        (lambda completions: None, "TypeError: 'NoneType' object is not iterable"),
        (lambda completions: 1 / 0, "ZeroDivisionError: division by zero"),
        *(
            (
                lambda completions, given=given: given,
                f"TypeError: the rewards of several rollouts are a list, not {name}",
            )
            for given, name in (("11", "str"), (b"11", "bytes"), ({1: 1, 2: 1}, "dict"), ({0, 1}, "set"))
        ),
        (raising(GeneratorExit("x")), "GeneratorExit: x"),
        (raising(SystemExit(1)), "SystemExit: 1"),
    ],
)
def test_an_answer_that_is_no_reward_for_each_is_an_error_of_each(func, said):
    scores, errors = score(Rubric([length, func]), ["a", "b"], example_ids=[1, 1])
    assert scores.reward == [1.0, 1.0]
    assert errors == [f"<lambda>: {said}"] * 2


def test_an_answer_for_one_rollout_that_cannot_be_read_is_its_own():
    scores, errors = score(Rubric([lambda completions: [1, "x", float("nan"), 2]]), ["a"] * 4, example_ids=[1] * 4)
    assert scores.reward == [1.0, 0.0, 0.0, 2.0]
    assert [error and error.partition(": ")[2] for error in errors] == [
        *(None, "ValueError: the reward is not a finite number", "ValueError: the reward is not a finite number"),
        None,
    ]


@pytest.mark.parametrize(
    ("func", "reward", "error"),
    [
        (longest, 1.0, None),
        (longest_later, 1.0, None),
        (lambda completions: [], 0.0, "<lambda>: ValueError: 0 rewards for 1 rollouts"),
        (lambda completions: [1.0, 1.0], 0.0, "<lambda>: ValueError: 2 rewards for 1 rollouts"),
    ],
)
def test_one_rollout_alone_is_all_there_is_of_its_example(func, reward, error):
    state = {}
    found = asyncio.run(Rubric([func]).score_rollout("p", "a", "4", state))
    assert (found.reward, state.get("error")) == (reward, error)


# ── rubrics that add up ─────────────────────────────────────────────────────────────────────────────────────────────────


def half(completion):
    return 0.5


def test_rewards_add_up_and_so_do_metrics_of_one_name():
    inner = RubricGroup([Rubric([half], [4.0]), Rubric()])
    group = RubricGroup([Rubric([half, length], [1.0, 0.0]), inner, Rubric([longest])])
    assert group.get_reward_func_names() == ["half", "length", "half", "longest"]
    assert group.get_reward_weights() == [1.0, 0.0, 4.0, 1.0]
    assert group.get_reward_funcs() == [half, length, half, longest]
    assert group.has_group_funcs
    wanted = RolloutScores(reward=[2.5, 3.5], metrics={"half": [1.0, 1.0], "length": [1.0, 2.0], "longest": [0.0, 1.0]})
    assert score(group, ["a", "aa"], example_ids=[1, 1])[0] == wanted
    alone = asyncio.run(group.score_rollout("p", "a", "4", {}))
    assert alone == RolloutScore(reward=3.5, metrics={"half": 1.0, "length": 1.0, "longest": 1.0})
    rows = [{"completion": text, "example_id": 1} for text in ("a", "aa")]
    found = assay.score(rows, group)
    assert found["reward"].to_list() == wanted.reward
    assert [name for name in found.columns if name.startswith("score/")] == [
        *("score/half", "score/length", "score/half-2", "score/longest")
    ]


def test_one_rubric_may_be_in_a_group_twice():
    rubric = Rubric([half])
    assert score(RubricGroup([rubric, rubric]), ["a"])[0] == RolloutScores(reward=[1.0], metrics={"half": [1.0]})
    assert assay.score([{"completion": "a"}], RubricGroup([rubric, rubric]))["reward"].to_list() == [1.0]


def test_each_rubric_of_a_group_has_its_own_objects():
    def reads(completion, parser):
        return parser.parse_answer(completion)

    ones = [Rubric([reads], parser=assay.Parser(lambda text, by=by: len(text) * by)) for by in (1, 10)]
    assert score(RubricGroup(ones), ["aa"])[0].reward == [22.0]
    assert assay.score([{"completion": "aa"}], RubricGroup(ones))["reward"].to_list() == [22.0]


def test_a_function_that_joins_a_group_joins_its_first_rubric(caplog):
    first = Rubric([half])
    group = RubricGroup([first, Rubric([half])])
    group.add_reward_func(length, 2.0)
    assert first.reward_funcs == [half, length]
    assert group.get_reward_weights() == [1.0, 2.0, 1.0]
    assert "to the first rubric" in caplog.text


def counts(state):
    state["n"] = state.get("n", 0) + 1
    return 0.0


def counted(completions, states):
    return [state.get("n", 0) for state in states]


@pytest.mark.parametrize("nested", [False, True])
def test_rubrics_of_a_group_run_one_after_another_as_columns_too(nested):
    rubrics = [Rubric([counted, counts]), Rubric([counts, counted]), Rubric([counted], [10.0])]
    group = RubricGroup([RubricGroup(rubrics[:2]), rubrics[2]] if nested else rubrics)
    scores, _ = score(group, ["a", "b"], example_ids=[1, 1])
    assert scores.reward == [23.0, 23.0]
    rows = [{"completion": text, "example_id": 1} for text in "ab"]
    assert assay.score(rows, group)["reward"].to_list() == [23.0, 23.0]
    defined = score_rows(assay.scan(rows).collect().to_dicts(), group.members(Limits()))
    assert [row["reward"] for row in defined] == [23.0, 23.0]


def test_a_group_has_a_rubric():
    for kind in (AssertionError, ValueError):
        with pytest.raises(kind, match="RubricGroup must have at least one rubric"):
            RubricGroup([])
    emptied = RubricGroup([Rubric()])
    emptied.rubrics.clear()
    with pytest.raises(AssertionError, match="RubricGroup must have at least one rubric"):
        emptied.add_reward_func(length)


@pytest.mark.parametrize(
    "rubric", [Rubric([half, length]), RubricGroup([Rubric([half]), Rubric([length])])], ids=["one", "group"]
)
def test_without_rollouts_states_are_not_looked_at(rubric):
    state = {"timing": {"total_ms": 0.0}}
    scores, _ = score(rubric, [], states=[state])
    assert scores == RolloutScores(reward=[], metrics={"half": [], "length": []})
    assert state == {"timing": {"total_ms": 0.0}}
    with pytest.raises(ValueError, match="the lists have different lengths"):
        score(rubric, ["a"], states=[{}, {}])


# ── classes made of rubrics ─────────────────────────────────────────────────────────────────────────────────────────────


class Doubled(Rubric):
    async def score_rollout(self, *args, **kwargs):
        found = await super().score_rollout(*args, **kwargs)
        return RolloutScore(reward=2 * found.reward, metrics=found.metrics | {"own": 7.0})


class Capped(Rubric):
    async def call_reward_func(self, func, *args, **kwargs):
        return min(await super().call_reward_func(func, *args, **kwargs), 1.5)


class Bounded(Rubric):
    async def run_score_rollout(self, sem, *args, **kwargs):
        async with sem:
            return await self.score_rollout(*args, **kwargs)


class Whole(Rubric):
    async def score_rollouts(self, prompts, *args, **kwargs):
        return RolloutScores(reward=[9.0] * len(prompts))


class Compares(Rubric):
    async def score_group(self, states, completions, **kwargs):
        for state, completion in zip(states, completions, strict=True):
            state["rank"] = sorted(completions, key=len).index(completion)


def rank(state):
    return state["rank"]


@pytest.mark.parametrize(
    ("cls", "wanted"),
    [
        (Doubled, RolloutScores(reward=[2.0, 4.0], metrics={"length": [1.0, 2.0], "own": [7.0, 7.0]})),
        (Capped, RolloutScores(reward=[1.0, 1.5], metrics={"length": [1.0, 1.5]})),
        (Bounded, RolloutScores(reward=[1.0, 2.0], metrics={"length": [1.0, 2.0]})),
        (Whole, RolloutScores(reward=[9.0, 9.0])),
    ],
)
def test_a_class_may_score_in_its_own_way_but_not_as_columns(cls, wanted):
    rubric = cls([length])
    for limit in (-1, 1):
        assert score(rubric, ["a", "aa"], max_concurrent=limit)[0] == wanted
    doubled = score(RubricGroup([rubric, rubric]), ["a", "aa"])[0].reward
    assert doubled == [2 * reward for reward in wanted.reward]
    for one in (rubric, RubricGroup([rubric])):
        with pytest.raises(assay.UsageError, match=f"{cls.__name__} overrides ") as refused:
            assay.score([{"completion": "a"}], one)
        assert "Await its score_rollouts" in refused.value.hint


@pytest.mark.parametrize("cls", [Doubled, Capped, Whole])
def test_such_a_class_without_rollouts_gives_names(cls):
    assert score(cls([length]), [])[0].reward == []


def test_a_class_may_compare_all_rollouts_before_they_are_scored():
    assert score(Compares([rank]), ["aaa", "a", "aa"])[0].reward == [2.0, 0.0, 1.0]
    with pytest.raises(assay.UsageError, match="score_group"):
        assay.score([{"completion": "a"}], Compares([rank]))


def test_a_class_may_know_its_functions_only_after_it_is_made():
    class Late(Rubric):
        def __init__(self):
            super().__init__()
            self.inner = Rubric([half, self.of_its_own], [1.0, 2.0])

        def of_its_own(self, completion):
            return float(len(completion))

        def get_reward_funcs(self):
            return self.inner.get_reward_funcs()

        def get_reward_weights(self):
            return self.inner.get_reward_weights()

    assert score(Late(), ["aa"])[0] == RolloutScores(reward=[4.5], metrics={"half": [0.5], "of_its_own": [2.0]})
    assert assay.score([{"completion": "aa"}], Late())["reward"].to_list() == [4.5]


def test_a_class_with_functions_of_its_own():
    class Judged(Rubric):
        def __init__(self, parser=None):
            super().__init__(parser=parser)
            self.class_objects = {"parser": self.parser, "judge": self.judge}
            self.add_reward_func(self.correct, 0.5)

        async def judge(self, completion, answer):
            await asyncio.sleep(0)
            return "yes" if answer in completion else "no"

        async def correct(self, completion, answer, judge, **kwargs):
            return float(await judge(completion, answer) == "yes")

    assert score(Judged(), ["4", "5"])[0].reward == [0.5, 0.0]
    assert assay.score([{"completion": "4", "answer": "4"}], Judged())["reward"].to_list() == [0.5]


# ── verifiers beside functions ──────────────────────────────────────────────────────────────────────────────────────────


def test_verifiers_are_members_of_what_programs_hold():
    style = assay.load_verifier({"id": "style", "checks": [{"type": "contains", "value": "4"}, {"type": "json_valid"}]})
    tasks = assay.load_verifier({"id": "tasks", "checks": [{"type": "task_expectations"}]})
    funcs = [length, style, tasks, assay.fns.exact_match, assay.get_verifier("format_only")()]
    rubric = Rubric(funcs, [0.0, 1.0, 1.0, 2.0, 1.0])
    assert rubric.get_reward_func_names() == ["length", "style", "tasks", "exact_match", "format_only"]
    chat = [{"role": "assistant", "content": "it is 4"}]
    infos = [{"expectations": {"mustMention": [{"text": "it"}]}}, {}, {}]
    completions = [chat, "4", None]
    given = columns(completions, infos=infos)
    scores = asyncio.run(rubric.score_rollouts(**given))
    assert scores.reward == [1.5, 4.0, 0.0]
    assert [state.get("error") for state in given["states"]][:2] == [None, None]
    assert "the completion is null" in given["states"][2]["error"]
    alone = [
        asyncio.run(rubric.score_rollout("p", one, "4", {}, info=info)).reward
        for one, info in zip(completions, infos, strict=True)
    ]
    assert alone == scores.reward
    rows = [{"completion": one, "answer": "4", "metadata": info} for one, info in zip(completions, infos, strict=True)]
    assert assay.score(rows, rubric)["reward"].to_list() == [1.5, 4.0, None]


def test_a_rollout_that_one_member_cannot_score_is_still_one_of_its_example():
    def many(completions):
        return [float(len(completions))] * len(completions)

    rows = [{"completion": "a", "answer": answer, "example_id": 0} for answer in ("a", None, "b")]
    rubric = assay.Rubric([assay.fns.exact_match, many])
    wanted = [3.0, None, 3.0]
    assert assay.score(rows, rubric)["score/many"].to_list() == wanted
    assert [one["score/many"] for one in score_rows(rows, rubric.members(Limits()))] == wanted
