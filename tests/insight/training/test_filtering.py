"""Dynamic sampling: which groups trainers keep."""

import ast

import polars as pl
import pytest
from worked_cases import worked

import assay
from assay.errors import UsageError


def kept(rewards, like):
    frame = pl.DataFrame({"task_id": ["a"] * len(rewards), "reward": pl.Series(rewards, dtype=pl.Float64)})
    return assay.keep_groups(frame, "task_id", like=like).facts["kept"] == 1


def test_the_groups_that_the_packages_keep():
    cases = [case for case in worked("advantage", "goldens") if "filter" in case.get("kind", "")]
    assert [case["package"] for case in cases] == ["openrlhf", "skyrl", "skyrl", "verl"]
    for case in cases:
        if case["package"] == "skyrl":
            frame = pl.DataFrame({"task_id": case["inputs"]["uids"], "reward": case["inputs"]["rewards"]})
            found = assay.keep_groups(frame.with_row_index(), "task_id", like="skyrl").frame
            assert found["index"].to_list() == case["output"]
            continue
        # verl's are of groups that are evicted
        evicted = case["package"] == "verl"
        for rewards, value in case["output"].items():
            assert kept(ast.literal_eval(rewards), case["package"]) is (value is not evicted), rewards


RULES = [
    ([1.0, 0.0], "verl skyrl openrlhf nemo-rl prime-rl"),
    ([1.0, 1.0], ""),
    ([0.5, 0.5], "openrlhf"),
    ([0.1, 0.1, 0.1], "verl openrlhf"),
    ([0.0], "verl skyrl"),
    ([0.3], "verl skyrl openrlhf"),
    ([2.0, 0.0], "verl skyrl nemo-rl prime-rl"),
    ([1.0, None, 0.0], "verl skyrl openrlhf nemo-rl prime-rl"),
    ([None, None], ""),
    # equal in float32, in which NeMo-RL and prime-rl compute
    ([0.3, 0.30000000000000004], "verl skyrl openrlhf"),
]


def test_each_rule():
    likes = ("verl", "skyrl", "openrlhf", "nemo-rl", "prime-rl")
    for rewards, keepers in RULES:
        assert [like for like in likes if kept(rewards, like)] == keepers.split(), rewards


def test_rows_keep_their_order_and_what_is_left_out_is_counted():
    rows = {"task_id": ["b", "a", None, "b", "a", "c"], "reward": [1.0, 1.0, 0.0, None, 0.0, None]}
    found = assay.keep_groups(pl.LazyFrame(rows), ["task_id"], like="verl")
    assert found.frame.rows() == [("b", 1.0), ("a", 1.0), ("b", None), ("a", 0.0)]
    facts = {"like": "verl", "rows": 6, "left_out": 1, "unscored": 2, "groups": 3, "kept": 2, "dropped": 1}
    notes = ["1 row without a group: left out", "2 rows without a reward: left out of the decision"]
    assert found.as_json() == {"insight": 1, **facts, "notes": notes}
    empty = assay.keep_groups(pl.DataFrame(rows).clear(), "task_id", like="verl")
    assert (empty.frame.height, empty.facts["groups"], empty.notes) == (0, 0, ())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"like": "verll"}, "Did you mean `verl`?"),
        ({"like": "trl"}, "like trl: unknown."),
        ({"by": "task"}, "by task: the frame has no such column."),
        ({"reward": "task_id"}, "reward task_id: expected numbers, not String."),
    ],
)
def test_what_is_refused(options, message):
    frame = pl.DataFrame({"task_id": ["a"], "reward": [1.0]})
    with pytest.raises(UsageError) as raised:
        assay.keep_groups(frame, **({"by": "task_id", "like": "verl"} | options))
    assert message in str(raised.value)
