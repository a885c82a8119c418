"""Single calls in batches: the results of one call for each row, whoever calls at the same time."""

import asyncio
import contextlib
import multiprocessing
import pickle
import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from cases import each
from waiting import PATIENCE, until

import assay
from assay.compiling.plan import Plan
from assay.errors import InputError, UsageError
from assay.scoring.batching import plan_of

SPEC = {"id": "v", "checks": [{"type": "contains", "value": {"column": "answer"}}, {"type": "max_length", "value": 30}]}


def chat(text):
    return [{"role": "assistant", "content": text}]


ROWS = [
    {
        "completion": (f"it is {at}", chat(f"it is {at}"), None, 4, "x" * 40)[at % 5],
        "answer": (at, str(at), [at, 7], None)[at % 4],
    }
    for at in range(60)
]


@pytest.fixture
def batches(monkeypatch):
    sizes, score_rows = [], Plan.score_rows

    def noted(plan, rows):
        sizes.append(len(rows))
        return score_rows(plan, rows)

    monkeypatch.setattr(Plan, "score_rows", noted)
    return sizes


def alone():
    plan = plan_of(SPEC)
    return [plan.score_rows([row]).row(0, named=True) for row in ROWS]


def test_waiting_for_other_calls_ends():
    ends = threading.Event()

    def wait():
        for _ in range(10_000):
            with contextlib.suppress(queue.Empty):
                kind().get(timeout=1e-6)
        ends.set()

    def spin():
        while not ends.is_set():
            time.sleep(0)

    kind = type(assay.Batcher(SPEC)._calls)
    threads = [threading.Thread(target=target, daemon=True) for target in (wait, spin, spin, spin)]
    for thread in threads:
        thread.start()
    try:
        assert ends.wait(PATIENCE)
    finally:
        ends.set()


async def together(batcher, rows):
    return await asyncio.gather(*map(batcher.score, rows), return_exceptions=True)


def test_calls_of_one_turn_are_one_batch_and_get_what_they_would_alone(batches):
    batcher = assay.Batcher(SPEC)
    results = asyncio.run(together(batcher, ROWS))
    assert batches == [len(ROWS)]
    assert results == alone()
    assert asyncio.run(together(batcher, ROWS)) == results  # another loop


def test_calls_of_threads_are_gathered(batches):
    batcher = assay.Batcher(SPEC, window=PATIENCE, most=len(ROWS))
    with ThreadPoolExecutor(len(ROWS)) as threads:
        results = [*threads.map(batcher.score_sync, ROWS)]
    assert batches == [len(ROWS)]
    assert results == alone()


def test_a_call_that_no_other_joins_is_scored_when_its_window_ends():
    assert assay.Batcher(SPEC, window=0.01).score_sync(ROWS[0]) == alone()[0]


def test_a_batch_has_at_most_as_many_rows(batches):
    batcher = assay.Batcher(SPEC, window=0.2, most=8)
    with ThreadPoolExecutor(24) as threads:
        [*threads.map(batcher.score_sync, ROWS[:24])]
    assert max(batches) <= 8


def test_an_exception_reaches_its_caller_and_nobody_else():
    rows = [{"completion": "4", "fn_name": "exact_match", "answer": "4"} for _ in range(9)]
    rows[5] = {"completion": "4", "fn_name": "no_such_function"}
    results = asyncio.run(together(assay.Batcher(None), rows))
    assert isinstance(results.pop(5), InputError)
    assert [result["reward"] for result in results] == [1.0] * 8


def test_a_row_that_is_none_is_refused_alone():
    results = asyncio.run(together(assay.Batcher(SPEC), [ROWS[0], "it is 0"]))
    assert results[0]["reward"] == 1.0
    assert isinstance(results[1], InputError)


def test_panics_of_the_engine_reach_the_callers(monkeypatch):
    class Panic(BaseException):
        pass

    def panic(plan, rows):
        raise Panic

    batcher = assay.Batcher(SPEC)
    monkeypatch.setattr(Plan, "score_rows", panic)
    with pytest.raises(Panic):
        batcher.score_sync(ROWS[0])
    monkeypatch.undo()
    assert batcher.score_sync(ROWS[0])["reward"] == 1.0


def test_no_call_waits_where_no_thread_can_be_started(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    async def run():
        batcher = assay.Batcher(SPEC)
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            with pytest.raises(RuntimeError, match="can't start new thread"):
                await asyncio.wait_for(batcher.score(ROWS[0]), PATIENCE)
        return await batcher.score(ROWS[0])

    assert asyncio.run(run())["reward"] == 1.0


@each("turns", [0, 1, 2])
def test_a_cancelled_call_loses_no_other(turns):
    async def run():
        batcher = assay.Batcher(SPEC)
        tasks = [asyncio.create_task(batcher.score(row)) for row in ROWS]
        for _ in range(turns):
            await asyncio.sleep(0)
        for task in tasks[::3]:
            task.cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    results, expected = asyncio.run(run()), alone()
    assert all(isinstance(result, asyncio.CancelledError) for result in results[::3])
    assert [result for at, result in enumerate(results) if at % 3] == [row for at, row in enumerate(expected) if at % 3]


def test_a_loop_that_ends_early_harms_no_other():
    batcher = assay.Batcher(SPEC)

    async def abandoned():
        task = asyncio.create_task(batcher.score(ROWS[0]))
        await asyncio.sleep(0)
        task.cancel()

    for _ in range(5):
        asyncio.run(abandoned())
    assert asyncio.run(together(batcher, ROWS)) == alone()


def test_loops_and_threads_may_share_a_batcher():
    batcher, expected = assay.Batcher(SPEC), alone()
    with ThreadPoolExecutor(6) as threads:
        loops = [threads.submit(asyncio.run, together(batcher, ROWS)) for _ in range(3)]
        single = [threads.submit(lambda: [*map(batcher.score_sync, ROWS[:20])]) for _ in range(3)]
        assert all(loop.result() == expected for loop in loops)
        assert all(each.result() == expected[:20] for each in single)


def test_the_thread_ends_when_nobody_calls_and_starts_again(monkeypatch):
    monkeypatch.setattr("assay.scoring.batching._IDLE", 0.01)
    batcher = assay.Batcher(SPEC)
    for row, expected in zip(ROWS[:3], alone(), strict=False):
        assert batcher.score_sync(row) == expected
        until(lambda: not batcher._is_running)


def test_a_batcher_travels_to_spawned_processes():
    batcher = assay.Batcher(SPEC)
    assert batcher.score_sync(ROWS[0])["reward"] == 1.0
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(batcher.score_sync, (ROWS[0],))["reward"] == 1.0
    assert pickle.loads(pickle.dumps(batcher)).plan == batcher.plan  # noqa: S301  (made here)


def test_functions_that_see_all_rollouts_of_an_example_are_refused():
    def spread(completions):
        return [float(len(completions))] * len(completions)

    with pytest.raises(UsageError, match="spread: sees all rollouts"):
        assay.Batcher(assay.Rubric([spread]))


def test_a_rubric_scores_single_rows():
    def exact(completion, answer):
        return float(completion == answer)

    batcher = assay.Batcher(assay.Rubric([exact]))
    assert [batcher.score_sync({"completion": "4", "answer": gold})["reward"] for gold in ("4", "5")] == [1.0, 0.0]


def test_rows_of_one_call_from_a_coroutine_have_the_results_of_single_calls():
    batcher = assay.Batcher(SPEC)

    async def run():
        return await asyncio.gather(batcher.outcomes(ROWS[:3]), batcher.outcomes([]), batcher.outcomes(ROWS[3:]))

    first, none, rest = asyncio.run(run())
    assert [*first, *rest] == [batcher.score_sync(row) for row in ROWS]
    assert none == []


@each("gold", ["expected", "answer", "target"])
@each(
    "check",
    [
        {"type": "row_verifier", "verifierName": "exact_match"},
        {"type": "function", "name": "exact_match"},
        {"type": "all_of", "checks": [{"type": "function", "name": "exact_match"}]},
        {"type": "contains", "value": "a", "when": {"check": {"type": "function", "name": "exact_match"}}},
    ],
    ids=["the row's", "a function", "in a group", "a condition"],
)
def test_the_first_batch_shows_where_functions_find_their_golds(check, gold):
    spec = {"checks": [check, {"type": "contains", "value": "a"}]}
    rows = [{"completion": "a", gold: ["b", "a"]}, {"completion": "b", gold: "a"}]
    expected = assay.score(rows, spec)["reward"].to_list()
    assert plan_of(spec).score_rows(rows)["reward"].to_list() == expected == [1.0, 0.0]
    with pytest.raises(assay.ColumnsError, match="`exact_match` compares with `expected`, else `answer` or `target`"):
        plan_of(spec).score_rows([{"completion": "a", "solution": "a"}])


def test_the_first_batch_shows_whether_rows_name_functions():
    spec = {"checks": [{"type": "row_verifier"}]}
    row = {"fn_name": "contains", "expected": "a"}
    for rows in ([{"completion": "ab", "verifier": row}], [{"completion": "ab", **row}]):
        for plan in (plan_of(spec), assay.compile(spec), assay.compile()):
            assert plan.score_rows(rows)["reward"].item() == 1.0
    with pytest.raises(assay.ColumnsError, match="The rollouts carry no verifier"):
        plan_of(spec).score_rows([{"completion": "ab"}])
