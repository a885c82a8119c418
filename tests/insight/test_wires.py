"""Tripwires: each wire at its limit, onsets, parts of a step, and the state."""

import copy
import dataclasses
import math
import pickle

import polars as pl
import pytest
from insight_cases import golden

import assay
from assay import InputError, Tripwires, UsageError
from assay.insight.wires import WIRES, StepCounts


def scores(passed, rows, **columns):
    """A step of rows of which some pass its check; each row a task of its own."""
    values = [1.0] * passed + [0.0] * (rows - passed)
    return pl.DataFrame({"reward": [0.5] * rows, "check/v/polite": values, **columns})


def fired(alerts, wire):
    return [alert for alert in alerts if alert.wire == wire]


def test_shares_fire_at_their_limits():
    case = golden("tripwire.shares")
    wires = Tripwires()
    found = []
    for at, step in enumerate(case.input["steps"]):
        scored = step["rows"] - step["unscored"]
        numbers = {name: step[name] for name in ("rows", "errors", "zeros", "ones", "groups", "flat")}
        alerts = wires.add(at, StepCounts(**numbers, scored=scored, total=float(step["ones"])))
        found.append(sorted(alert.wire for alert in alerts))
    assert found == case.expect["fired"]


@pytest.mark.parametrize(
    ("wire", "count", "fires"),
    [("errors", 1, False), ("errors", 2, True), ("unscored", 1, False), ("unscored", 2, True), ("zeros", 98, True)],
)
def test_a_share_fires_above_its_limit_or_at_it(wire, count, fires):
    counts = StepCounts(rows=100, scored=100 - count if wire == "unscored" else 100)
    counts = dataclasses.replace(counts, **({wire: count} if wire != "unscored" else {}))
    assert bool(Tripwires().add(1, counts)) is fires


def test_groups_and_errors_of_a_frame_are_counted():
    rows = [{"task_id": f"t-{at // 4}", "model": "elm", "reward": 0.1, "error": None} for at in range(32)]
    rows += [{"task_id": f"t-{at}", "model": "ash", "reward": 0.1, "error": "late"} for at in range(2)]
    rows += [{"task_id": None, "model": "ash", "reward": None, "error": "the completion is null"}] * 2
    rows[31]["reward"] = 0.2
    alerts = {alert.wire: alert for alert in Tripwires().update(pl.DataFrame(rows, infer_schema_length=None))}
    assert set(alerts) == {"flat", "errors", "unscored"}
    assert alerts["flat"].said == "7 of 8 groups are flat: all rewards in them are equal (87.5 %)"
    assert alerts["errors"].said == "2 of 36 rows have an error beside their reward (5.6 %)"
    assert alerts["unscored"].said == "2 of 36 rows are unscored (5.6 %)"


@pytest.mark.parametrize("step", [math.nan, math.inf, -math.inf])
def test_a_step_that_is_no_number_is_its_text_in_json(step):
    [alert] = Tripwires().update(pl.DataFrame({"reward": [0.0] * 32, "step": step}))
    assert alert.as_json()["step"] == str(step)


@pytest.mark.parametrize("task", ["task_id", "example_id"])
def test_the_column_that_names_tasks_may_be_that_of_the_steps(task):
    rows = pl.concat([scores(passed, 64, **{task: [step] * 64}) for step, passed in enumerate((20, 60))])
    [jump] = fired(Tripwires(by=task).update(rows), "jump")
    assert (jump.step, jump.rows) == (1, 64)


def test_rewards_whose_sum_is_larger_than_a_float_have_no_mean():
    wires, columns = Tripwires(), {"task_id": ["a"] * 64, "length": [*range(64)]}
    for step in range(24):
        rewards = [1e308] * 64 if step % 2 else [-1e308, 1e200] * 32
        alerts = wires.update(pl.DataFrame({"reward": rewards, **columns}), step=step)
        assert fired(alerts, "drift") == fired(alerts, "length") == []


def test_a_check_is_stuck_after_three_steps_at_one_end():
    case = golden("tripwire.stuck")
    wires, rows = Tripwires({"jump": False}), case.input["rows"]
    alerts = [wires.update(scores(round(rate * rows), rows)) for rate in case.input["pass_rate"]]
    assert [at for at, found in enumerate(alerts) if fired(found, "stuck")] == case.expect["alerts_at"]
    [alert] = fired(alerts[3], "stuck")
    assert (alert.step, alert.check, alert.value, alert.limit, alert.rows) == (3, "polite", 3.0, 3, 40)


def test_a_check_is_not_stuck_that_was_never_between_nor_by_small_steps():
    wires = Tripwires()
    assert not any(fired(wires.update(scores(40, 40)), "stuck") for _ in range(6))
    wires = Tripwires({"jump": False})
    wires.update(scores(20, 40))
    small = [scores(31, 31), scores(40, 40), scores(15, 31), scores(40, 40), scores(40, 40)]
    assert [bool(fired(wires.update(frame), "stuck")) for frame in small] == [False, False, False, False, True]


def test_a_jump_needs_size_and_z():
    wires = Tripwires()
    rates = (500, 590, 700, 100, 120)
    alerts = [fired(wires.update(scores(passed, 1000)), "jump") for passed in rates]
    # the last fall is no onset: the step before has fired
    assert [[round(alert.value, 3) for alert in found] for found in alerts] == [[], [], [0.11], [], []]
    assert alerts[2][0].said == "passes on 70.0 % of rows, 59.0 % the step before, z +5.175"
    again = [fired(wires.update(scores(passed, 1000)), "jump") for passed in (900, 900, 100)]
    assert [len(found) for found in again] == [1, 0, 1]


def test_rows_of_one_task_count_together():
    tasks = [f"t-{at // 10}" for at in range(400)]
    before, after = scores(200, 400, task_id=tasks), scores(260, 400, task_id=tasks)
    assert not fired(_updated(before, after), "jump")  # 40 tasks, each all or nothing: the same 0.15 means less
    spread = [scores(count, 400, task_id=[f"t-{at % 40}" for at in range(400)]) for count in (200, 260)]
    [alert] = fired(_updated(*spread), "jump")
    assert alert.check == "polite"
    one_task = [scores(count, 400, task_id=["t"] * 400) for count in (0, 400)]
    assert not fired(_updated(*one_task), "jump")


def _updated(*frames):
    wires = Tripwires()
    return [alert for frame in frames for alert in wires.update(frame)]


def test_rates_without_any_deviation_jump_if_there_are_rows():
    assert fired(_updated(scores(0, 32), scores(32, 32)), "jump")
    assert not fired(_updated(scores(0, 31), scores(31, 31)), "jump")


def test_drift_is_from_the_mean_of_the_first_steps():
    wires = Tripwires()
    means = [0.5, 0.52] * 5 + [0.55, 0.6, 0.55, 0.4]
    alerts = [wires.update([mean] * 40, step=at) for at, mean in enumerate(means)]
    assert [at for at, found in enumerate(alerts) if fired(found, "drift")] == [11, 13]
    [alert] = fired(alerts[11], "drift")
    assert alert.said == "the mean reward is 0.600; in the first 10 steps it was 0.510"
    assert alert.value == pytest.approx(0.09)
    assert alert.limit == 0.05
    noisy = Tripwires()
    means = [0.3, 0.7] * 5 + [1.0]  # sd 0.21
    assert not [alert for mean in means for alert in fired(noisy.update([mean] * 20), "drift")]


def test_lengths_may_be_tokens():
    frame = pl.DataFrame(
        {"reward": [at % 8 / 8 for at in range(64)], "tokens": [at % 8 for at in range(64)], "length": 3}
    )
    assert [alert.wire for alert in Tripwires(length="tokens").update(frame, step=1)] == ["length"]
    assert Tripwires().update(frame, step=1) == []
    with pytest.raises(UsageError, match='length="token": the frame has no such column'):
        Tripwires(length="token").update(frame)


def test_length_counts_within_groups():
    rows = 80
    frame = pl.DataFrame(
        {
            "task_id": [f"t-{at // 8}" for at in range(rows)],
            "length": [100 * (at // 8) + at % 8 for at in range(rows)],
            "reward": [(at % 8) / 8 for at in range(rows)],
        }
    )
    [alert] = fired(Tripwires().update(frame), "length")
    assert (round(alert.value, 6), alert.rows, alert.limit) == (1.0, 80, 0.5)
    assert not fired(Tripwires().update(frame.head(63)), "length")
    between = frame.with_columns(reward=pl.col("length") / 1000 // 0.1 / 10)  # the same in each group
    assert not fired(Tripwires().update(between), "length")
    assert fired(Tripwires().update(between.drop("task_id")), "length")


def test_onset_only_and_again_after_a_step_below():
    wires = Tripwires()
    frames = [[0.0] * 50, [0.0] * 50, [0.0] * 20, [0.0] * 50, [0.5] * 50, [0.0] * 50]
    assert [len(fired(wires.update(frame), "all_zero")) for frame in frames] == [1, 0, 0, 0, 0, 1]


def test_steps_of_a_column_and_of_calls_are_the_same():
    frames = [scores(passed, 40, step=[at] * 40) for at, passed in enumerate((20, 40, 40, 40, 10, 0, 0, 0))]
    whole = Tripwires().update(pl.concat(frames).sample(fraction=1.0, shuffle=True, seed=1))
    wires = Tripwires()
    assert [alert for frame in frames for alert in wires.update(frame)] == whole
    wires = Tripwires()
    numbered = [alert for at, frame in enumerate(frames) for alert in wires.update(frame.drop("step"), step=at)]
    assert numbered == whole
    assert {alert.wire for alert in whole} == {"stuck", "jump"}


def test_a_step_in_parts_is_one_step():
    frame = pl.DataFrame({"reward": [0.0] * 98 + [0.5] * 2, "task_id": [f"t-{at // 2}" for at in range(100)]})
    parts = [frame[:60], frame[60:]]
    wires = Tripwires()
    alerts = [alert for part in parts for alert in wires.update(part, step=3)]
    assert {alert.wire for alert in alerts} >= {"all_zero"}
    assert wires.steps == 1
    others = [Tripwires() for _ in parts]
    for other, part in zip(others, parts, strict=True):
        other.update(part, step=3)
    here = Tripwires()
    merged = [alert for other in others for alert in here.merge(other)]
    assert [(alert.wire, alert.value) for alert in merged] == [(alert.wire, alert.value) for alert in alerts]
    assert here.merge(Tripwires()) == []


def test_the_state_is_small_and_pickles():
    wires, sizes = Tripwires(), []
    for at in range(40):
        wires.update(scores(20 + at % 3, 40), step=at)
        sizes.append(len(pickle.dumps(wires)))
    assert max(sizes[15:]) <= sizes[15] + 16  # the numbers' own digits
    copied = pickle.loads(pickle.dumps(wires))  # noqa: S301  (our own)
    frame = scores(0, 40)
    assert copied.update(frame, step=40) == copy.deepcopy(wires).update(frame, step=40) == wires.update(frame, step=40)


def test_hostile_values_are_counted_not_judged():
    rows = pl.DataFrame({"reward": [float("nan"), float("inf"), None, 0.5] * 20, "step": [None, 1, 1, 1] * 20})
    wires = Tripwires()
    [alert] = wires.update(rows)
    assert (alert.wire, alert.rows, alert.step) == ("unscored", 60, 1)
    assert wires.notes[-1] == "20 rows without a step"
    assert Tripwires().update(pl.DataFrame({"reward": []}, schema={"reward": pl.Float64})) == []
    assert Tripwires().update([None] * 40)[0].wire == "unscored"
    with pytest.raises(InputError, match="no column `reward`"):
        Tripwires().update(pl.DataFrame({"score": [1.0]}))


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"flatt": 1}, "no wire `flatt`"),
        ({"flat": {"shares": 1}}, "`flat` has no `shares`"),
        ({"flat": "much"}, "flat.share is 'much'"),
        ({"flat": True}, "flat.share is True"),
        ({"flat": float("nan")}, "flat.share is nan"),
        ([1], "a mapping"),
    ],
)
def test_limits_that_do_not_exist_are_refused(limits, message):
    with pytest.raises(UsageError, match=message):
        Tripwires(limits)


def test_limits_of_a_file(tmp_path):
    path = tmp_path / "limits.yaml"
    path.write_text("all_zero: 0.5\nflat: {share: 1, groups: 3}\nerrors: false\n")
    wires = Tripwires(path)
    assert wires.limits["all_zero"] == {"share": 0.5, "rows": 32}
    assert wires.limits["flat"] == {"share": 1, "groups": 3}
    assert set(wires.limits) == set(WIRES) - {"errors"}
    assert [alert.wire for alert in wires.update([0.0] * 20 + [1.0] * 20)] == ["all_zero"]


def test_steps_go_up():
    wires = Tripwires()
    wires.update([0.5], step=3)
    with pytest.raises(UsageError, match="Step 2 comes after step 3"):
        wires.update([0.5], step=2)
    with pytest.raises(UsageError, match="cannot be compared"):
        wires.update([0.5], step="four")


def test_scored_rollouts_say_which_check(tmp_path):
    rows = [{"completion": "please" if at % 2 else "no", "task_id": f"t-{at}", "step": 1} for at in range(100)]
    rows += [{"completion": "please", "task_id": f"t-{at}", "step": 2} for at in range(100)]
    spec = {"id": "tone", "checks": [{"id": "polite", "type": "contains", "value": "please"}]}
    assay.score_file(pl.DataFrame(rows), spec, tmp_path / "r.parquet")
    alerts = Tripwires().update(tmp_path / "r.parquet")
    assert [(alert.wire, alert.step, alert.check) for alert in alerts] == [("all_one", 2, None), ("jump", 2, "polite")]
    assert alerts[1].as_json() == {
        "wire": "jump",
        "step": 2,
        "check": "polite",
        "value": 0.5,
        "limit": 0.1,
        "rows": 100,
        "said": "passes on 100 % of rows, 50.0 % the step before, z +10",
    }


def with_outcomes(rows, **counts):
    """A step of scored rows with outcomes."""
    words = [word for word, number in counts.items() for _ in range(number)]
    words += ["pass"] * (rows - len(words))
    frame = pl.DataFrame({"outcome": words, "passed": [word == "pass" for word in words]})
    reward = pl.when(pl.col("outcome") != "unscored").then(pl.col("passed").cast(pl.Float64))
    return frame.select(reward.alias("reward"), "passed", cut_off=pl.col("outcome") == "truncated", outcome="outcome")


@pytest.mark.parametrize(
    ("rows", "counts", "expected"),
    [
        (40, {"not_found": 8}, {}),
        (
            40,
            {"not_found": 9, "fail": 20},
            {"not_found": "9 of 40 scored rows fail because a check found nothing (22.5 %)"},
        ),
        (31, {"not_found": 30}, {}),
        (42, {"truncated": 9, "unscored": 2}, {"truncated": "9 of 40 scored rows fail and were cut off (22.5 %)"}),
        (33, {"truncated": 20, "unscored": 2}, {}),
    ],
)
def test_outcomes_set_off_alerts_with_the_column_only(rows, counts, expected):
    frame = with_outcomes(rows, **counts)
    limits = {"unscored": False}
    alerts = {alert.wire: alert.said for alert in Tripwires(limits).update(frame, step=1)}
    assert alerts == expected
    assert Tripwires(limits).update(frame.drop("outcome"), step=1) == []
    parts = Tripwires({**limits, "not_found": 0.5, "truncated": False})
    assert [alert.wire for at in (0, rows // 2) for alert in parts.update(frame[at : at + rows // 2], step=1)] == []


def of_groups(copies, texts, **columns):
    """A step of groups of eight rows, in which some texts are those of an earlier row."""
    rows = [
        {
            "task_id": f"t{at // 8}",
            "prompt": f"Question {at // 8}",
            "answer": "1",
            "completion": f"text {at}",
            "reward": at % 2,
        }
        for at in range(texts)
    ]
    for at in [at for at in range(texts) if at % 8][:copies]:
        rows[at]["completion"] = rows[at - at % 8]["completion"]
    return pl.DataFrame(rows).with_columns(**columns)


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (of_groups(15, 32), []),
        (of_groups(16, 32), [("duplicates", 0.5, 0.5, 32)]),
        (of_groups(20, 31), []),
        (of_groups(16, 32, task_id=pl.lit(None, pl.String)), []),
        (of_groups(16, 32, completion=pl.lit(None, pl.String)), []),
        (of_groups(0, 16, prompt=pl.lit("?")), []),
        (of_groups(0, 16, prompt=pl.when(pl.col("reward") == 1).then(pl.lit(" \n")).otherwise("prompt")), []),
        (of_groups(0, 16, prompt=pl.format("{} {}", "prompt", pl.col("completion") == "text 9")), [("mixed", 1, 0, 2)]),
        (of_groups(0, 16, answer=pl.col("reward")), [("mixed", 2, 0, 2)]),
        (of_groups(0, 16, answer=pl.col("reward"), model=pl.col("reward")), []),
    ],
)
def test_groups_that_do_not_hold_together_set_off_alerts(frame, expected):
    found = [alert for alert in Tripwires().update(frame) if alert.wire in ("mixed", "duplicates")]
    assert [(alert.wire, alert.value, alert.limit, alert.rows) for alert in found] == expected
    halves = Tripwires()
    parts = [halves.update(part, step=1) for part in (frame.head(16), frame.slice(16))]
    assert [alert.wire for part in parts for alert in part if alert.wire in ("mixed", "duplicates")] == [
        wire for wire, *_ in expected
    ]
    assert not fired(Tripwires({"mixed": 2, "duplicates": 0.6}).update(frame), "mixed")
