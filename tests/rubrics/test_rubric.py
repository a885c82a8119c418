"""Rubrics as programs use them: which arguments functions get, what comes of their answers, groups, and classes made of rubrics."""

import asyncio
import copy
import functools
import logging
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import assay
from assay import Rubric, RubricGroup, XMLParser

CHAT = [{"role": "assistant", "content": "<think>2 + 2</think>\n<answer>4</answer>"}]
ROLLOUT = {"prompt": "What is 2+2?", "completion": CHAT, "answer": "4", "task": "math", "info": {"n": 1}}
NO_REWARD = "ValueError: the reward is not a finite number"


def columns(count=1, **changed):
    """Arguments of ``score_rollouts``, each rollout with a state of its own."""
    rollout = ROLLOUT | changed
    names = {name: f"{name}s" for name in rollout}
    states = [{} for _ in range(count)]
    return {names[name]: [copy.deepcopy(value) for _ in range(count)] for name, value in rollout.items()} | {
        "states": states,
        "use_tqdm": False,
    }


def score(rubric, count=1, **changed):
    given = columns(count)
    return asyncio.run(rubric.score_rollouts(**given | changed)), given["states"]


def reward_of(func, **options):
    scores, (state,) = score(Rubric([func], **options))
    alone = {"timing": {"total_ms": 0.0}}
    assert asyncio.run(Rubric([func], **options).score_rollout(**ROLLOUT, state=alone)).reward == scores.reward[0]
    assert alone.get("error") == state.get("error")
    return scores.reward[0], state.get("error")


# ── which arguments a function gets ─────────────────────────────────────────────────────────────────────────────────────


class Judge:
    limit = 5

    def __call__(self, completion, answer):
        return float(completion == CHAT and answer == "4")

    def method(self, answer):
        return float(answer == "4")

    @classmethod
    def of_class(cls, info):
        return info["n"] / cls.limit

    @staticmethod
    def static(task):
        return float(task == "math")


def all_of_them(**kwargs):
    names = {"prompt", "completion", "answer", "state", "task", "info", "example_id", "parser"}
    return float(kwargs.keys() == names and kwargs["example_id"] in (0, None))


def named_and_the_rest(answer, n=7, **rest):
    return float(answer == "4" and n == 7 and "answer" not in rest and rest["info"] == {"n": 1})


def keywords_only(*, info, answer="none", other=3):
    return float((info["n"], answer, other) == (1, "4", 3))


def by_place_only(completion, answer, /):
    return float(completion == CHAT and answer == "4")


def out_of_order(answer, gap="gap", completion=None):
    return float((answer, gap, completion) == ("4", "gap", CHAT))


def parser_first(parser, completion, answer):
    return float(parser.parse_answer(completion) == CHAT[-1]["content"] and answer == "4")


def parser_last(completion, answer, parser):
    return parser_first(parser, completion, answer)


def parser_between(completion, parser, answer):
    return parser_first(parser, completion, answer)


def weighs(answer, by, prompt):
    return by * float(answer == "4" and prompt == ROLLOUT["prompt"])


def everything_by_place(prompt, completion, answer, state, task, info, example_id):
    return float((prompt, answer, task, info) == ("What is 2+2?", "4", "math", {"n": 1}) and isinstance(state, dict))


def star(*args):
    return float(args == ())


def nothing():
    return 0.25


FUNCTIONS = {
    "named by place": (everything_by_place, 1.0),
    "all of them": (all_of_them, 1.0),
    "some and the rest": (named_and_the_rest, 1.0),
    "keyword-only": (keywords_only, 1.0),
    "positional-only": (by_place_only, 1.0),
    "a default between": (out_of_order, 1.0),
    "the parser first": (parser_first, 1.0),
    "the parser last": (parser_last, 1.0),
    "the parser between": (parser_between, 1.0),
    "*args get nothing": (star, 1.0),
    "no arguments": (nothing, 0.25),
    "a callable object": (Judge(), 1.0),
    "a bound method": (Judge().method, 1.0),
    "a class method": (Judge.of_class, 0.2),
    "a static method": (Judge.static, 1.0),
    "a partial": (functools.partial(weighs, by=0.5), 0.5),
    "a partial with a place filled": (functools.partial(weighs, "4", 0.5), 0.5),
    "a partial of a partial": (functools.partial(functools.partial(weighs, by=2.0), by=0.25), 0.25),
    "a lambda": (lambda info: info["n"] / 4, 0.25),
    "of a parser": (XMLParser(["think", "answer"]).get_format_reward_func(), 1.0),
}


@pytest.mark.parametrize("func", [func for func, _ in FUNCTIONS.values()], ids=list(FUNCTIONS))
def test_a_function_gets_the_arguments_that_it_names(func):
    wanted = next(value for known, value in FUNCTIONS.values() if known is func)
    assert reward_of(func) == (wanted, None)


def test_functions_name_the_rubrics_own_objects():
    def judged(completion, judge_model, parser):
        return judge_model["score"] * float(isinstance(parser, XMLParser))

    rubric = Rubric([judged], parser=XMLParser(["answer"]))
    rubric.class_objects["judge_model"] = {"score": 0.5}
    assert score(rubric)[0].reward == [0.5]


@pytest.mark.parametrize("name", ["tasks", "states", "answers"])
def test_an_object_may_have_the_name_of_a_plural(name):
    space = {}
    exec(f"def known(completion, {name}): return float({name} == 'mine')", space)  # noqa: S102  (a name of a parameter)
    rubric = Rubric([space["known"]])
    rubric.class_objects[name] = "mine"
    assert not rubric.has_group_funcs
    assert score(rubric)[0].reward == [1.0]


def test_further_keywords_are_objects_of_one_call_and_stand_before_all_others():
    def reads(answer, cache, parser):
        cache.append(answer)
        return float(parser == "p")

    rubric = Rubric([reads])
    caches = [], []  # equal, and not the same
    for cache in caches:
        scores, _ = score(rubric, 2, cache=cache, parser="p", answer="mine")
        assert scores.reward == [1.0, 1.0]
    assert caches == (["mine", "mine"], ["mine", "mine"])


def test_objects_need_not_know_what_equals_them():
    rubric = Rubric([lambda table: float(table.sum())])
    for _ in range(2):
        assert score(rubric, table=np.arange(3))[0].reward == [3.0]


def test_functions_of_one_rollout_share_its_state_in_order():
    def leaves(state):
        state["steps"] = [*state.get("steps", ()), "left"]
        return 1.0

    def finds(state):
        return float(state["steps"] == ["left"])

    scores, states = score(Rubric([leaves, finds]), 3)
    assert scores.metrics == {"leaves": [1.0] * 3, "finds": [1.0] * 3}
    assert [state["steps"] for state in states] == [["left"]] * 3


def test_what_is_no_function_is_refused_with_what_to_do():
    with pytest.raises(TypeError, match="load a verifier before you add it to a rubric"):
        Rubric(["verifier.json"])
    with pytest.raises(TypeError, match=r"a reward function or a verifier, got <class 'float'>"):
        Rubric([float])
    with pytest.raises(TypeError, match="got 5"):
        Rubric().add_reward_func(5)


class Odd(BaseException):
    """What no ``except Exception`` catches."""


class Spelled:
    """A number of one's own."""

    def __repr__(self):
        return "Spelled()"

    def __index__(self):
        return 1

    def __float__(self):
        return 0.5


# ── what a function answers ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("value", "reward", "error"),
    [
        (1, 1.0, None),
        (True, 1.0, None),
        *((given, 0.0, NO_REWARD) for given in ("0.5", "much", b"1", bytearray(b"1"), np.str_("0.5"), np.array("1"))),
        *((given, 0.0, NO_REWARD) for given in (np.array([0.5]), Decimal("NaN"), Decimal("Infinity"))),
        *((given, 0.5, None) for given in (Decimal("0.5"), Fraction(1, 2), np.float16(0.5), np.array(0.5), Spelled())),
        (np.float32(0.5), 0.5, None),
        (np.bool_(True), 1.0, None),
        (np.array(1.5), 1.5, None),
        (-3.5, -3.5, None),
        (float("nan"), 0.0, NO_REWARD),
        (float("inf"), 0.0, NO_REWARD),
        ("-inf", 0.0, NO_REWARD),
        (np.float64("nan"), 0.0, NO_REWARD),
        (10**400, 0.0, "OverflowError: int too large to convert to float"),
        (None, 0.0, "TypeError: float() argument must be a string or a real number, not 'NoneType'"),
        ([1.0], 0.0, "TypeError: float() argument must be a string or a real number, not 'list'"),
        (KeyError("x"), 0.0, "KeyError: 'x'"),
        (ValueError("two\nlines"), 0.0, "ValueError: two lines"),
        (SystemExit(3), 0.0, "SystemExit: 3"),
        (GeneratorExit("x"), 0.0, "GeneratorExit: x"),
        (asyncio.CancelledError("x"), 0.0, "CancelledError: x"),
        (Odd("x"), 0.0, "Odd: x"),
        (pl.exceptions.PanicException("x"), 0.0, "PanicException: x"),
        (1j, 0.0, "TypeError: float() argument must be a string or a real number, not 'complex'"),
    ],
    ids=repr,
)
def test_an_answer_is_a_finite_number_and_no_text_that_spells_one(value, reward, error):
    def func(completion):
        if isinstance(value, BaseException):
            raise value
        return value

    async def later(completion):
        return func(completion)

    def func_of(completion):
        return later(completion)

    func_of.__name__ = later.__name__ = "func"
    for asked in (func, later, func_of):
        assert reward_of(asked) == (reward, error and f"func: {error}")


def test_an_error_is_logged_and_told_once(caplog):
    def broken(completion):
        raise ValueError("no\nway")

    state = {"error": "before"}
    rubric = Rubric([broken])

    async def twice():
        for _ in range(2):
            await rubric.score_rollout(**ROLLOUT, state=state)

    with caplog.at_level(logging.ERROR, logger="assay"):
        asyncio.run(twice())
        score(rubric, 3)
    assert state["error"] == "before\nbroken: ValueError: no way"
    assert len(caplog.records) == 3  # twice alone, once of 3
    assert {record.message.partition("\n")[0] for record in caplog.records} == {"broken: ValueError: no\\nway"}
    assert re.search(r"test_rubric\.py, line \d+: raise ValueError", caplog.records[-1].message)


async def some_turns():
    """Wait while others begin, by turns of the loop and not by a clock."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_what_a_plain_function_gives_to_be_awaited_waits_in_the_callers_loop_side_by_side():
    at_work = most = 0

    async def judge(completion):
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await some_turns()
        at_work -= 1
        return 0.5

    def task(completion):
        return asyncio.ensure_future(judge(completion))

    def plain(completion):
        return 1.0

    scores, states = score(Rubric([plain, task, plain]), 40)
    assert scores.reward == [2.5] * 40
    assert most == 40
    assert all(state["timing"]["scoring_ms"] > 0 for state in states)
    assert score(Rubric([task]), 40, max_concurrent=3)[0].reward == [0.5] * 40


@pytest.mark.parametrize("limit", [1, 3, -1])
def test_max_concurrent_bounds_the_rollouts_at_work(limit):
    at_work = most = 0

    async def judge(completion):
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await some_turns()
        at_work -= 1
        return 1.0

    assert score(Rubric([judge]), 12, max_concurrent=limit)[0].reward == [1.0] * 12
    assert most == (12 if limit < 0 else limit)


@pytest.mark.parametrize(("side_by_side", "order"), [(True, ["a", "b", "end"]), (False, ["a", "end", "b"])])
def test_asynchronous_functions_run_side_by_side_or_in_turn(side_by_side, order):
    async def first(state):
        state["seen"] = ["a"]
        await asyncio.sleep(0)
        state["seen"].append("end")
        return 1.0

    async def second(state):
        state["seen"].append("b")
        return 1.0

    rubric = Rubric([first, second], parallelize_scoring=side_by_side)
    assert score(rubric)[1][0]["seen"] == order
    assert score(RubricGroup([rubric]))[1][0]["seen"] == order
    kept = []

    async def keeps(state):
        kept.append(state["seen"])
        return 0.0

    rubric.add_reward_func(keeps)
    assay.score([{"completion": "a"}], RubricGroup([rubric]))
    assert kept == [order]


def test_methods_that_are_made_anew_at_every_call_are_looked_into_once():
    class Own(assay.Rubric):
        def one(self, completion):
            return 1.0

        def get_reward_funcs(self):
            return [self.one]

        def get_reward_weights(self):
            return [1.0]

    rubric = Own()
    for _ in range(5):
        asyncio.run(rubric.score_rollouts(["p"], ["c"], [""], [{}], ["t"], [{}]))
        asyncio.run(rubric.score_rollout("p", "c", "", {}))
    assert len(rubric._inspections) == 1
