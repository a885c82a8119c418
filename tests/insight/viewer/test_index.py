"""The index of a result: it keeps, sorts and counts what ``show`` and a report do."""

import random

import polars as pl
import pytest
from hostile import hostile_pieces
from report_cases import hostile

import assay
from assay.errors import UsageError
from assay.insight.reports.index import Index, RowFilters
from assay.insight.reports.showing import chosen_rows
from assay.insight.results import open_result
from assay.insight.stats import splitmix64

TEXTS = list(hostile_pieces(200))
MODELS, STEPS = ("ash", "oak", None, "a'b"), (3, 10, None, 2)


def frame_of(rows, seed=0):
    draw = random.Random(seed)
    scores = {f"check/v/{name}": [draw.choice([0.0, 0.5, 1.0, 1.0, None]) for _ in range(rows)] for name in "abc"}
    reward = [draw.choice([None, 0.0, 0.25, 0.3, 1.0]) for _ in range(rows)]
    return pl.DataFrame(
        {
            "task_id": [f"t{draw.randrange(9)}" if at % 11 else None for at in range(rows)],
            "model": [draw.choice(MODELS) for _ in range(rows)],
            "step": [draw.choice(STEPS) for _ in range(rows)],
            "reward": reward,
            "passed": [None if value is None else value == 1.0 for value in reward],
            "length": [draw.randrange(5) for _ in range(rows)],
            **scores,
        },
        schema_overrides={"step": pl.Int64},
    )


@pytest.fixture(scope="module")
def index():
    return Index(open_result(frame_of(600))).scan()


SAME = [
    ({}, {}),
    ({"failed": ["a"]}, {"failed": ["a"]}),
    ({"failed": ["a", "b"], "passed": ["c"]}, {"failed": ["a", "b"], "passed": ["c"]}),
    ({"model": ["a'b"]}, {"where": ["model = 'a''b'"]}),
    ({"model": ["ash", "null"]}, {"where": ["model = 'ash' or model is null"]}),
    ({"model": ["nobody"]}, {"where": ["model = 'nobody'"]}),
    ({"step": ["3", "10.0"]}, {"where": ["step = 3 or step = 10"]}),
    ({"step": ["null"], "failed": ["b"]}, {"where": ["step is null"], "failed": ["b"]}),
    ({"task": ["t3"]}, {"where": ["task_id = 't3'"]}),
    ({"state": ["pass"]}, {"where": ["passed"]}),
    ({"state": ["unscored", "fail"]}, {"where": ["reward is null or not passed"]}),
    ({"bin": [0, 19]}, {"where": ["reward = 0 or reward = 1"]}),
    ({"bin": [5, 6]}, {"where": ["reward = 0.25 or reward = 0.3"]}),
    ({"rows": [5, 3, 599, 10_000]}, {"row": [3, 5, 599]}),
]


@pytest.mark.parametrize(("filters", "shown"), SAME)
def test_filters_keep_the_rows_that_show_keeps(index, filters, shown):
    matching, rows = chosen_rows(index.result, [], limit=1_000, **shown)
    kept = index.mask(RowFilters(**filters))
    assert not kept.null_count()
    assert kept.arg_true().to_list() == rows
    assert len(rows) == matching


@pytest.mark.parametrize(
    "sort", [["reward"], ["-reward"], ["model", "-step"], ["-task_id"], ["length"], ["-check/v/a"], ["row"]]
)
def test_orders_are_those_of_show(index, sort):
    names = ["reward" if name == "row" else name for name in sort]
    wanted = list(range(600)) if sort == ["row"] else chosen_rows(index.result, [], sort=names, limit=1_000)[1]
    assert index.order(sort).to_list() == wanted
    some = pl.Series([7, 2, 500, 41], dtype=pl.UInt32).sort()
    assert index.order(sort, some).to_list() == [row for row in wanted if row in {2, 7, 41, 500}]


def test_checks_are_sorted_by_whether_they_pass(index):
    passes = index.frame.select(index.passes("a")).to_series()
    assert passes.gather(index.order(["-a"])).drop_nulls().to_list() == sorted(passes.drop_nulls(), reverse=True)


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        ({"failed": ["x"]}, "no check is called `x`"),
        ({"step": ["x"]}, "step x: expected a number"),
        ({"state": ["passes"]}, "state passes: unknown"),
    ],
)
def test_what_cannot_be_kept_is_an_error(index, filters, said):
    with pytest.raises(UsageError, match=said):
        index.mask(RowFilters(**filters))
    with pytest.raises(UsageError, match="no such column"):
        index.order(["-nothing"])


def test_heat_counts_what_a_report_counts(index):
    heat, report = index.heat(), assay.report(index.result).as_json()
    assert heat["checks"] == ["a", "b", "c"]
    assert heat["models"] == ["a'b", "ash", "oak", None]
    assert sum(heat["rows"]) == 600
    of_model = {entry["of"]["model"]: entry for entry in report["by"]["model"]["entries"]}
    for model, reward, rows in zip(heat["models"], heat["reward"], heat["rows"], strict=True):
        assert (rows, pytest.approx(reward)) == (of_model[model]["rows"], of_model[model]["mean"])
    for at, check in enumerate(report["checks"]):
        cells = [line[at] for line in heat["cells"]]
        assert sum(cell["rows"] for cell in cells) == check["rows"]
        assert sum(cell["rows"] - cell["passes"] for cell in cells) == check["failures"]


def test_drawn_rows_begin_with_one_of_each_model_and_set_of_failing_checks(index):
    drawn = index.drawn(600)
    assert sorted(drawn) == list(range(600))
    frame = index.frame.with_row_index("row")
    draws = splitmix64(0, 0, 600).to_list()
    kinds = [(row["model"], row["state"], *(row[f"check/{at}"] for at in range(3))) for row in frame.to_dicts()]
    fails = [kind[1] == "fail" or False in kind[2:] for kind in kinds]
    sizes = {kind: kinds.count(kind) for kind in kinds}
    turns = {row: sum(draws[other] < draws[row] for other in range(600) if kinds[other] == kinds[row]) for row in drawn}
    places = [(turns[row], not fails[row], -sizes[kinds[row]]) for row in drawn]
    assert places == sorted(places)
    assert index.drawn(10) == drawn[:10]


def test_other_rows_of_a_task_are_the_nearest(index):
    tasks = index.frame["task"].cast(pl.String).to_list()
    row, without = tasks.index("t4", 200), tasks.index(None)
    others = [other for other in range(600) if tasks[other] == "t4" and other != row]
    found = index.same_tasks([row, without], 5)
    assert found[without] == []
    assert [other["row"] for other in found[row]] == sorted(sorted(others, key=lambda other: abs(other - row))[:5])
    assert found[row][0].keys() == {"row", "key", "reward", "state"}
    assert found[row][0]["key"].keys() == {"model", "step"}


def test_rows_are_there_while_it_reads(index):
    seen = []
    reading = Index(open_result(pl.concat([frame_of(45_000)] * 10)))
    assert reading.mask(RowFilters(failed=["a"])).to_list() == []
    reading.scan(lambda rows: seen.append((rows, reading.frame.height, len(reading.order(["reward"])))))
    assert seen[-1] == (450_000,) * 3
    assert len({rows for rows, _, _ in seen}) > 1
    assert all(rows == there == ordered for rows, there, ordered in seen)


@pytest.mark.parametrize(
    "frame",
    [
        pl.DataFrame({"reward": [0.5, None]}),
        pl.DataFrame(schema={"reward": pl.Float64, "check/v/a": pl.Float64, "model": pl.String}),
        pl.DataFrame({"reward": [1], "check/v/a": [True], "model": [7], "step": ["x"], "task_id": [{"a": [1]}]}),
        pl.DataFrame({"reward": [float("nan"), 2.0, -1.0], "check/v/a": [float("inf"), float("nan"), 1.0]}),
        pl.DataFrame({"reward": [0.0] * len(TEXTS), "model": TEXTS, "task_id": TEXTS, "check/v/a": [0.0] * len(TEXTS)}),
        hostile(60, 40, 10),
    ],
    ids=["no columns", "no rows", "other types", "no numbers", "hostile texts", "hostile names"],
)
def test_any_result_has_an_index(frame):
    index = Index(open_result(frame)).scan()
    assert index.mask(RowFilters()).to_list() == [True] * frame.height
    assert sorted(index.order(["-reward"])) == sorted(index.drawn(1_000)) == list(range(frame.height))
    assert sum(index.heat()["rows"]) == frame.height or len(index.heat()["models"]) == 50
    for row in range(min(3, frame.height)):
        assert index.same_tasks([row], 2)
    for key in index.keys:
        for value in index.frame[key].cast(pl.String):
            if value is not None:
                assert index.mask(RowFilters(**{key: [value]})).any()
