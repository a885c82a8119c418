"""Rubrics as columns: what the row loop says, whatever the rows, the batches and the engine; calls that take too long."""

import asyncio
import json
import math
import pickle
import threading
from itertools import product

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from waiting import PATIENCE

import assay
from assay import Rubric, RubricGroup
from assay.aggregating import aggregate
from assay.calls.limits import Limits
from assay.compiling.plan import Plan
from assay.compiling.verifiers import verifiers_of_run
from assay.scoring.reference import score_rows
from assay.testing import assert_plan_conforms, hostile_texts
from assay.values.arguments import python_values

CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2}'}}
CHATS = [
    [{"role": "assistant", "content": "it is 4"}],
    [
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "content": "4", "tool_call_id": "c1"},
    ],
    [{"role": "assistant", "content": [{"type": "text", "text": "it "}, {"type": "text", "text": "is 4"}]}],
    [],
    None,
    [{"role": "user", "content": "?"}, {"role": "assistant", "content": ""}],
]


def length(completion):
    return len(completion) / 7


def seen(prompt=None, completion=None, answer=None, task=None, info=None, example_id=None, **rest):
    """A number made of all that a function sees."""
    said = json.dumps([prompt, completion, answer, task, info, example_id, rest["state"]["turn"]], sort_keys=True)
    return sum(map(ord, said)) / 997


def broken(completion, info):
    if len(completion) % 3 == 1:
        raise KeyError(f"no\r\n{completion[:1]}\ud800")
    return float("nan") if len(completion) % 3 == 2 else 1.0


def leaves(state):
    state["left"] = len(state["completion"])
    return 0.0


def finds(state):
    return state["left"]


async def later(answer=None):
    await asyncio.sleep(0)
    return len(str(answer))


def awaited(answer=None):
    return later(answer)


def longest(completions):
    most = max(len(one) for one in completions)
    return [float(len(one) == most) for one in completions]


NATIVE = assay.load_verifier(
    {
        "id": "style",
        "checks": [
            {"type": "contains", "value": "4", "weight": 0.3},
            {"type": "max_length", "value": 40},
            {"type": "not_contains", "value": "refund", "required": True},
        ],
    }
)
FUNCTIONS = Rubric([length, seen, broken, leaves, finds], [0.1, 0.7, 1.0, 0.0, -0.3])
ASYNC = Rubric([length, later, awaited, broken], [0.1, 1.0, 3.0, 0.2])
MIXED = Rubric([NATIVE, broken, assay.fns.contains, assay.get_verifier("format_only")()], [0.5, 1.0, 0.3, -0.2])
TOGETHER = Rubric([length, longest, NATIVE], [0.1, 1.0, 1.0])
RUBRICS = {
    "functions": FUNCTIONS,
    "asynchronous": ASYNC,
    "mixed": MIXED,
    "groups": RubricGroup([FUNCTIONS, RubricGroup([ASYNC, MIXED])]),
}


def conforms(rubric, rows):
    return assert_plan_conforms(rubric.members(Limits()), rows)


@pytest.mark.parametrize("rubric", RUBRICS.values(), ids=RUBRICS)
def test_hostile_texts(rubric):
    texts = [*hostile_texts(300, seed=5), None]
    rows = [
        {
            "completion": text,
            "prompt": text,
            "answer": text and text[:3],
            "info": {"n": at},
            "example_id": at,
            "task": None,
        }
        for at, text in enumerate(texts)
    ]
    assert conforms(rubric, rows)


@pytest.mark.parametrize("rubric", RUBRICS.values(), ids=RUBRICS)
def test_chats_with_tool_calls(rubric):
    rows = [{"completion": chat, "prompt": chat or "p", "answer": "4", "info": {}} for chat in CHATS * 2]
    assert conforms(rubric, rows)


@pytest.mark.parametrize(
    "more",
    [
        *({}, {"id": 1}, {"info": '{"n": [1, null]}', "state": '{"turn": 3, "left": 1}'}),
        {"info": {"n": None, "m": {"a": None, "b": [1]}}, "state": {"turn": 2}},
        {"info": "no object", "state": "no object", "task": "math"},
        {"info": None, "state": None, "example_id": None},
    ],
    ids=str,
)
def test_columns_that_are_missing_or_of_several_types(more):
    rows = [{"completion": text, **more} for text in ("four", "is 4", "")]
    assert conforms(FUNCTIONS, rows)
    assert conforms(ASYNC, [*rows, {"completion": None, **more}])


def test_rollouts_of_an_example_whatever_the_batches_and_the_engine():
    frame = pl.DataFrame({"completion": ["a", "aaa", None, "aa", "4"] * 300, "example_id": [1, 2, 2, 1, None] * 300})
    members = TOGETHER.members(Limits())
    plan = Plan(members, tuple(frame.schema.items()), keep=())
    expected = score_rows(frame.to_dicts(), members)
    chunked = pl.concat([frame[:1], frame[1:7], frame[7:]], rechunk=False)
    assert plan.score(frame).to_dicts() == expected
    assert plan.lazy(chunked.lazy()).collect(engine="streaming").to_dicts() == expected
    assert (
        expected[4]["error"] == "longest: ValueError: example_id is null, so the rollouts of the example are not known"
    )


def test_no_ids_and_no_prompts_is_told_before_a_row_is_read():
    with pytest.raises(assay.ColumnsError, match="`longest` sees all rollouts of an example"):
        assay.score([{"completion": "a"}], TOGETHER)


@pytest.mark.parametrize("rows", [1, 2, 511, 512, 513, 1500])
def test_any_number_of_rows(rows):
    frame = pl.DataFrame(
        {"completion": ["x" * (at % 7) for at in range(rows)], "info": [{"n": at} for at in range(rows)]}
    )
    found = assay.score(frame, FUNCTIONS, keep=[])
    assert found.to_dicts() == score_rows(frame.to_dicts(), FUNCTIONS.members(Limits()))


def test_a_pickled_plan_gives_the_same():
    frame = pl.DataFrame({"completion": ["a", "is 4", None], "answer": ["4", "4", "4"], "info": ["{}", "{}", "{}"]})
    for rubric in RUBRICS.values():
        plan = Plan(rubric.members(Limits()), tuple(frame.schema.items()))
        again = pickle.loads(pickle.dumps(plan))  # noqa: S301  (bytes of our own)
        assert again.score(frame).equals(plan.score(frame))


def test_tasks_bring_answers_and_a_rollout_without_one_is_not_asked():
    asked = []

    def correct(completion, answer):
        asked.append(completion)
        return float(completion == answer)

    tasks = [{"task_id": "a", "answer": "4"}, {"task_id": "b", "answer": "5"}]
    rows = [{"task_id": ident, "completion": "4"} for ident in ("a", "b", "gone")]
    found = assay.score(rows, Rubric([correct, NATIVE]), tasks=tasks)
    assert found["reward"].to_list() == [2.0, 1.0, None]
    assert found["error"].to_list() == [None, None, "task_id gone is not in the task table"]
    assert asked == ["4", "4"]


def test_the_native_part_says_what_a_native_run_says():
    texts = [*hostile_texts(500, seed=9), None]
    three = [
        assay.load_verifier({"id": kind, "checks": [{"type": kind, "params": params}]})
        for kind, params in (("contains", {"value": "4"}), ("max_length", {"value": 20}), ("regex", {"pattern": r"\d"}))
    ]
    alone = assay.score(pl.DataFrame({"completion": texts}), three)
    beside = assay.score(pl.DataFrame({"completion": texts}), Rubric([*three, length], [1.0, 0.5, -1.0, 2.0]))
    native = [name for name in alone.columns if name.startswith(("score/", "check/"))]
    assert len(native) == 6
    assert beside.select(native).equals(alone.select(native))


def test_no_rollout_can_change_another():
    shared = {"n": [1]}
    chat = [{"role": "assistant", "content": "a"}]

    def spoils(completion, info, state):
        found = len(info.get("n", ())) + len(completion) + len(completion[0]["content"]) + len(state["responses"])
        info["n"].append(2)
        completion[0]["content"] += "b"
        completion.append({})
        state["responses"].append(1)
        return found

    rows = [{"completion": chat, "info": shared}] * 5
    assert assay.score(rows, Rubric([spoils]))["reward"].to_list() == [3.0] * 5
    assert [row["reward"] for row in score_rows(rows, Rubric([spoils]).members(Limits()))] == [3.0] * 5
    assert (shared, len(chat)) == ({"n": [1]}, 1)


def test_functions_run_one_at_a_time_and_may_ask_the_engine():
    at_work = []

    def asks(completion):
        at_work.append(threading.get_ident())
        assert len(at_work) == 1
        frame = pl.DataFrame({"a": range(50), "b": [completion] * 50})
        found = frame.lazy().group_by("b").agg(pl.col("a").sum()).collect()["a"].item()
        at_work.pop()
        return found

    frame = pl.concat([pl.DataFrame({"completion": [str(at)] * 10}) for at in range(40)], rechunk=False)
    assert set(assay.score(frame, Rubric([asks]))["reward"]) == {1225.0}


TEXTS = st.one_of(st.none(), st.text(max_size=3))
MESSAGE = st.fixed_dictionaries(
    {
        "role": TEXTS,
        "content": TEXTS,
        "tool_calls": st.none() | st.lists(st.none() | st.fixed_dictionaries({"id": TEXTS})),
    }
)
CALLS = pl.List(pl.Struct({"id": pl.String}))
CHAT = pl.List(pl.Struct({"role": pl.String, "content": pl.String, "tool_calls": CALLS}))


@settings(deadline=None)
@given(st.lists(st.none() | st.lists(st.none() | MESSAGE, max_size=3), max_size=5))
def test_values_of_a_column_are_those_that_the_engine_gives(values):
    column = pl.Series("c", values, dtype=CHAT)
    assert python_values(column) == column.to_list() == values
    chunked = pl.concat([column, column[1:], column[:0]], rechunk=False)
    assert python_values(chunked) == chunked.to_list()
    assert python_values(pl.Series([[{}], []], dtype=pl.List(pl.Struct({})))) == [[{}], []]


# ── the sum ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

NUMBERS = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e308, -1e308, 1e-308, 5e-324, 0.1, 0.2, 0.3, 2.0**53, 1.0 / 3]),
    st.floats(allow_nan=False, allow_infinity=False),
)
TREE = st.recursive(
    st.lists(st.tuples(NUMBERS, NUMBERS), max_size=4),
    lambda inner: st.lists(inner, min_size=1, max_size=3),
    max_leaves=4,
)


def giving(number):
    return lambda completion: number


def rubric_of(tree):
    if tree and isinstance(tree[0], list):
        return RubricGroup([rubric_of(one) for one in tree])
    if tree == []:
        return Rubric()
    return Rubric([giving(number) for number, _ in tree], [weight for _, weight in tree])


def added(tree):
    """From left to right, a rubric of a group first."""
    total = 0.0
    for one in tree:
        total += added(one) if isinstance(one, list) else one[0] * one[1]
    return total


@settings(max_examples=60, deadline=None)
@given(TREE)
def test_the_sum_is_the_same_to_the_last_bit_wherever_it_is_asked_for(tree):
    rubric = rubric_of(tree)
    many = asyncio.run(rubric.score_rollouts(["p"], ["c"], ["a"], [{}], ["t"], [{}], use_tqdm=False)).reward
    one = asyncio.run(rubric.score_rollout("p", "c", "a", {})).reward
    wanted = added(tree)
    assert repr(many) == repr([one]) == repr([wanted])
    assert repr(one) != "-0.0"
    if rubric.get_reward_funcs():
        members = rubric.members(Limits())
        numbers = [member.checks[0].check.function.func("c") for member in members]
        total = aggregate.reward(members, numbers)
        assert repr(total) == repr(wanted if math.isfinite(wanted) else None)
        assert repr(assay.score([{"completion": "c"}], rubric)["reward"].to_list()) == repr([total])


# ── calls that take too long ────────────────────────────────────────────────────────────────────────────────────────────


def hanging(clock):
    """Functions that hang on one text, each in its own way."""

    def sleeps(completion):
        if completion == "slow":
            clock.hang()
        return 1.0

    def spins(completion):
        if completion == "slow":
            clock.spin()
        return 1.0

    async def sleeps_async(completion):
        if completion == "slow":
            await asyncio.sleep(PATIENCE)
        return 1.0

    def sleeps_awaited(completion):
        return sleeps_async(completion)

    async def blocks(completion):
        return sleeps(completion)

    async def spins_async(completion):
        await asyncio.sleep(0)
        return spins(completion)

    return locals()


@pytest.mark.parametrize("name", ["sleeps", "spins", "sleeps_async", "sleeps_awaited", "blocks", "spins_async"])
def test_a_call_that_takes_too_long_costs_itself_only(name, clock):
    rows, func = [{"completion": text} for text in ("a", "slow", "b", "slow", "")], hanging(clock)[name]
    found = assay.score(rows, Rubric([length, func, giving(0.25)], [0.0, 1.0, 1.0]), function_timeout=0.25)
    said = f"{func.__name__}: TimeoutError: no answer within 0.25 s"
    assert found["reward"].to_list() == [1.25, 0.25, 1.25, 0.25, 1.25]
    assert found["error"].to_list() == [None, said, None, said, None]
    assert found["score/length"].to_list() == [len(row["completion"]) / 7 for row in rows]


@pytest.mark.parametrize("rubric", RUBRICS.values(), ids=RUBRICS)
def test_a_limit_that_nobody_reaches_changes_nothing(rubric):
    rows = [{"completion": text, "answer": "4", "info": {}, "prompt": "p"} for text in ("a", "is 4", "", None)] * 20
    assert assay.score(rows, rubric, function_timeout=PATIENCE).equals(assay.score(rows, rubric))


def test_what_is_awaited_is_awaited_side_by_side_within_the_limit():
    async def judge(completion):
        waiting.append(completion)
        if len(waiting) == 10:
            many_wait.set()
        await asyncio.wait_for(many_wait.wait(), PATIENCE)
        return 1.0

    def asks(completion):
        return judge(completion)

    rows = [{"completion": "a"}] * 60
    for timeout in (None, PATIENCE):
        waiting, many_wait = [], asyncio.Event()
        found = assay.score(rows, Rubric([asks]), function_timeout=timeout)
        assert found["reward"].sum() == 60


@pytest.mark.parametrize("weight", [1.0, 0.0, -0.5])
def test_feedback_tells_of_an_error_whatever_the_weight(weight):
    def breaks(completion):
        raise ValueError("no")

    rows, rubric = [{"completion": "a"}], Rubric([breaks], [weight])
    found = assay.score(rows, rubric)
    assert found["feedback"][0] == "breaks: ValueError: no"
    assert found["feedback"][0] == score_rows(rows, rubric.members(Limits()))[0]["feedback"]


def test_an_answer_of_jsonl_is_what_it_is_alone_whatever_the_others_are(tmp_path):
    rows = [{"completion": "1", "answer": 1}, {"completion": "2.5", "answer": 2.5}, {"completion": "", "answer": None}]
    rubric = Rubric([lambda completion, answer: float(str(answer) == completion)])
    for count in (1, 2, 3):
        path = tmp_path / f"{count}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows[:count]))
        assert assay.score(path, rubric)["reward"].to_list() == [1.0, 1.0, 0.0][:count]


# ── bits ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def penalty(completion):
    return -1.0 * completion.count("!")  # -0.0 where there is none


def nought(completion):
    return -0.0


async def nought_later(completion):
    return -0.0


def noughts(completions):
    return [-0.0] * len(completions)


@pytest.mark.parametrize(
    ("funcs", "weights"),
    [
        ([penalty], [1.0]),
        ([penalty], [-0.5]),
        ([penalty, nought], [0.5, 0.25]),
        ([penalty, nought_later, noughts], [1.0, 0.0, -0.0]),
        ([nought, lambda: 1.0, lambda: -1.0], [3.0, 1.0, 1.0]),
        ([nought, assay.load_verifier({"id": "v", "checks": [{"type": "contains", "value": "x"}]})], [1.0, -1.0]),
    ],
)
def test_a_sum_is_never_minus_nought_and_what_a_function_gave_stays_as_it_is(funcs, weights):
    apart = [Rubric([func], [weight]) for func, weight in zip(funcs, weights, strict=True)]
    rubrics = (Rubric(funcs, weights), RubricGroup(apart), RubricGroup([RubricGroup(apart), Rubric([nought])]))
    for rubric, rows in product(rubrics, (1, 300)):
        table = [{"completion": "fine!" if at % 2 else "fine", "example_id": at} for at in range(rows)]
        found = assay.score(table, rubric)
        defined = score_rows(assay.scan(table).collect().to_dicts(), verifiers_of_run(rubric))
        names = [name for name in found.columns if name.startswith("score/")]
        assert len(names) == len(rubric.get_reward_funcs())
        for name in ("reward", *names):
            assert bits(found[name]) == bits([row[name] for row in defined])
        assert "-0.0" not in bits(found["reward"])
        assert bits(found["score/nought" if "score/nought" in names else names[0]])[0] == "-0.0"
        lists = {
            "prompts": ["p"] * rows,
            "completions": [row["completion"] for row in table],
            "answers": [""] * rows,
            "states": [{} for _ in table],
            "tasks": [""] * rows,
            "infos": [{}] * rows,
            "example_ids": list(range(rows)),
        }
        scores = asyncio.run(rubric.score_rollouts(**lists, use_tqdm=False))
        assert bits(scores.reward) == bits(found["reward"])
        alone = asyncio.run(rubric.score_rollout("p", "fine", "", {}))
        assert repr(alone.reward) == repr(scores.reward[0])
        assert {name: repr(value) for name, value in alone.metrics.items()} == {
            name: repr(values[0]) for name, values in scores.metrics.items()
        }


def bits(values):
    return [repr(value) for value in values]
