"""The row function, for packages that call a function a sample; tests/peers runs them."""

import asyncio
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
from sums import SPEC, WRONG

import assay
from assay.errors import FailedRunError


def test_a_row_function_has_the_reward_and_the_checks():
    score = assay.adapters.row(SPEC)
    assert score("4", answer=4) == {
        "reward": 1.0,
        "passed": True,
        "feedback": "",
        "error": None,
        "checks": {"right": 1.0, "short": 1.0},
    }
    wrong = score([{"role": "assistant", "content": "5"}], answer="4", prompt="2 + 2?")
    assert (wrong["reward"], wrong["feedback"], wrong["checks"]) == (0.25, WRONG, {"right": 0.0, "short": 1.0})
    with pytest.raises(assay.ColumnsError, match="no `answer`"):
        assay.adapters.row(SPEC)("4")
    with pytest.raises(assay.SpecError, match="contians"):
        assay.adapters.row({"checks": [{"type": "contians", "value": "4"}]})


def test_a_row_function_says_why_there_is_no_reward():
    unscored = assay.adapters.row(SPEC)(None, answer="4")
    assert (unscored["reward"], unscored["passed"], unscored["checks"]) == (None, None, {})
    assert unscored["feedback"] == unscored["error"] == "the completion is null"
    assert assay.adapters.row(SPEC, unscored=-1.0)(None, answer="4")["reward"] == -1.0
    with pytest.raises(FailedRunError, match="the completion is null"):
        assay.adapters.row(SPEC, unscored="raise")(None, answer="4")


def test_calls_of_a_row_function_that_come_together_are_one_batch(monkeypatch):
    sizes, score_rows = [], assay.Plan.score_rows
    monkeypatch.setattr(assay.Plan, "score_rows", lambda plan, rows: sizes.append(len(rows)) or score_rows(plan, rows))
    score = assay.adapters.row(SPEC)

    async def together():
        return await asyncio.gather(*(score.acall(str(at), answer="4") for at in range(50)))

    assert [result["passed"] for result in asyncio.run(together())] == ["4" in str(at) for at in range(50)]
    assert sizes == [50]
    with ThreadPoolExecutor(8) as threads:
        results = [*threads.map(lambda at: score(str(at), answer="4"), range(50))]
    assert [result["passed"] for result in results] == ["4" in str(at) for at in range(50)]


def test_a_row_function_pickles():
    score = assay.adapters.row(SPEC, unscored=0.0)
    score("4", answer="4")
    assert pickle.loads(pickle.dumps(score))(None, answer="4")["reward"] == 0.0  # noqa: S301  (made here)
