"""``assay.calibrate``: the worked cases, strata, labels, rows to label next, another judge, suggestions, and what is refused."""

import json
import math

import polars as pl
import pytest
from typer.testing import CliRunner
from worked_cases import worked

import assay
from assay import InputError, UsageError
from assay.cli.main import app
from assay.insight.calibration.estimates import METRICS, Cell, allocate, estimate, merged

RUNNER = CliRunner()


@pytest.fixture(scope="module")
def goldens():
    return worked("verifiers", "c")


def test_intervals_are_the_worked_ones(goldens):
    for case in goldens["intervals"]:
        cells = [
            Cell(case["N_pass"], True, case["n_pass"], case["y_pass"]),
            Cell(case["N_fail"], False, case["n_fail"], case["y_fail"]),
        ]
        for metric in METRICS:
            expected = case["metrics"][metric]
            assert estimate(metric, cells) == pytest.approx(tuple(expected), abs=1e-9), (case, metric)


def test_rows_to_label_next_are_the_worked_ones(goldens):
    for case in goldens["allocations"]:
        cells = [Cell(rows, passes, labels, right) for rows, passes, right, labels in case["cells"]]
        order = allocate(case["for"], cells, case["next"])
        assert [order.count(at) for at in range(2)] == case["allocation"]


def test_thresholds_are_the_worked_ones(goldens):
    for case in goldens["thresholds"]:
        rows = pl.DataFrame({"reward": case["rewards"]})
        rows = rows.with_columns(passed=pl.col("reward") >= case["pass_threshold"])
        labels = [{"row": row, "label": value} for row, value in enumerate(case["labels"])]
        found = assay.calibrate(rows, labels, suggest=True, pass_threshold=case["pass_threshold"])
        first, best = found.suggestions[0], case["best"]
        assert (first["change"], first["to"], first["flips"]) == ("passThreshold", best["threshold"], best["flips"])
        assert (first["before"], first["after"]) == pytest.approx((best["f1_before"], best["f1_after"]))
        f1 = next(one for one in found.metrics if one["metric"] == "f1")
        assert f1["estimate"] == pytest.approx(best["f1_before"])


@pytest.mark.parametrize(
    ("cells", "groups"),
    [
        ([Cell(5, True, 0, 0), Cell(9, True, 1, 1), Cell(8, True, 2, 1)], [[2], [1, 0]]),
        ([Cell(5, True, 0, 0), Cell(9, False, 0, 0), Cell(10, False, 0, 0)], [[0], [2, 1]]),
        ([], []),
    ],
)
def test_cells_without_labels_join_the_largest_of_their_verdict(cells, groups):
    assert merged(cells) == groups


def test_what_needs_labels_that_are_not_there_is_null():
    cells = [Cell(10, True, 5, 4), Cell(10, False, 0, 0)]
    known = {metric for metric in METRICS if estimate(metric, cells).estimate is not None}
    assert known == {"precision"}
    assert estimate("recall", [Cell(10, True, 5, 0), Cell(10, False, 5, 0)]) == (None, None, None)


def test_a_cell_with_a_label_on_each_row_comes_after_the_others():
    assert allocate("f1", [Cell(2, True, 2, 1), Cell(3, False, 1, 0)], 9) == [1, 1]


SPEC = {
    "passThreshold": 0.5,
    "checks": [
        {"id": "yes", "type": "contains", "value": "y", "weight": 1},
        {"id": "zed", "type": "contains", "value": "z", "weight": 1},
    ],
}
TEXTS = ["yz", "y", "z", "-", "y", "y", "-", "z", "yz", "-"] * 4
TRUTH = ["y" in text for text in TEXTS]


@pytest.fixture
def result(tmp_path):
    rows = [{"task_id": f"t{at}", "completion": text, "judge": "y" in text} for at, text in enumerate(TEXTS)]
    path = tmp_path / "r.parquet"
    assay.score_file(rows, SPEC, path, keep=["task_id", "completion", "judge"])
    return path


def labels(rows=None, value=lambda truth: truth):
    return [{"row": row, "label": value(TRUTH[row])} for row in (range(len(TEXTS)) if rows is None else rows)]


def values(found, of="reward"):
    return {one["metric"]: (one["estimate"], one["low"], one["high"]) for one in found.metrics if one["of"] == of}


def test_all_labels_leave_no_doubt(result):
    found = assay.calibrate(result, labels())
    # 28 rows pass, of which 20 are right; all of the 12 others are wrong
    exact = {"precision": 5 / 7, "recall": 1, "f1": 5 / 6, "base_rate": 0.5, "accuracy": 0.8, "kappa": 0.6}
    for metric, value in exact.items():
        assert values(found)[metric] == pytest.approx((value,) * 3), metric
    assert values(found, "yes")["f1"] == pytest.approx((1, 1, 1))
    strata = {one["stratum"]: (one["rows"], one["labels"], one["right"]) for one in found.strata}
    assert strata == {
        "pass: zed": (12, 12, 12),
        "pass: yes": (8, 8, 0),
        "pass": (8, 8, 8),
        "fail: yes, zed": (12, 12, 0),
    }


def test_labels_of_a_check_judge_that_check_alone(result):
    rows = [row | {"label/zed": "z" in TEXTS[row["row"]]} for row in labels()]
    found = assay.calibrate(result, rows)
    assert values(found, "zed")["f1"][0] == 1
    assert values(found, "reward")["f1"][0] == pytest.approx(5 / 6)
    only = assay.calibrate(result, [{"row": 0, "label/zed": True}])
    assert {one["of"] for one in only.metrics} == {"reward", "zed"}
    assert values(only)["f1"] == (None, None, None)


@pytest.mark.parametrize(
    ("truth", "falsehood"), [(True, False), (1, 0), ("1", "0"), ("Yes", "no"), (" pass", "FAIL "), (1.0, 0.0)]
)
def test_words_of_labels(result, truth, falsehood):
    rows = labels(value=lambda value: truth if value else falsehood)
    rows += [{"row": 0, "label": None}]  # skipped: row 0 is not there twice
    assert assay.calibrate(result, rows).metrics == assay.calibrate(result, labels()).metrics


def test_columns_tell_rows(result, tmp_path):
    path = tmp_path / "labels.csv"
    pl.DataFrame({"task_id": ["t3", "t0"], "label": ["0", "1"]}).write_csv(path)
    by_number = assay.calibrate(result, labels([0, 3]))
    assert assay.calibrate(result, path, on="task_id").metrics == by_number.metrics


def test_rows_without_a_reward_are_left_out(result):
    rows = pl.read_parquet(result).with_columns(
        reward=pl.when(pl.int_range(pl.len()) > 0).then("reward"),
        passed=pl.when(pl.int_range(pl.len()) > 0).then("passed"),
    )
    found = assay.calibrate(rows, labels([0, 1, 3]), next=len(TEXTS))
    assert (found.rows, found.labels) == (len(TEXTS) - 1, 2)
    assert {row["row"] for row in found.next} == {*range(len(TEXTS))} - {0, 1, 3}
    assert "1 row without a reward: left out" in found.notes


def test_next_draws_within_strata(result):
    known = assay.calibrate(result, None, next=8)
    assert [row["stratum"] for row in known.next[:4]] == [
        "pass: zed",
        "pass",
        "pass: yes",
        "fail: yes, zed",
    ]  # commonest, then first
    longer = assay.calibrate(result, labels([known.next[0]["row"]]), next=100)
    assert len({row["row"] for row in longer.next}) == len(longer.next) == len(TEXTS) - 1
    assert known.next[0]["row"] not in {row["row"] for row in longer.next}
    other = assay.calibrate(result, None, next=8, seed=1)
    assert other.next != known.next == assay.calibrate(result, None, next=8).next
    row = known.next[0]
    assert row["task_id"] == f"t{row['row']}"


def test_another_judge_narrows_where_it_agrees():
    n = 1000
    truth = [at % 7 < 3 for at in range(n)]
    judge = [value if at % 11 else not value for at, value in enumerate(truth)]
    rows = pl.DataFrame({"reward": [float(at % 2) for at in range(n)], "judge": judge})
    rows = rows.with_columns(passed=pl.col("reward") == 1)
    known = [{"row": row, "label": truth[row]} for row in range(0, n, 9)]
    without, helped = (assay.calibrate(rows, known, predictor=name) for name in (None, "judge"))
    own = {one["row"]: one["label"] for one in known}
    for passes in (True, False):
        assert sum((row % 2 == 1) is passes for row in own) >= 30
    for metric in ("precision", "base_rate", "accuracy"):
        (_, low, high), (estimated, better_low, better_high) = values(without)[metric], values(helped)[metric]
        assert better_high - better_low < 0.7 * (high - low)
        assert better_low <= estimated <= better_high
    # the share of a cell, by the definition
    cell = [row for row in own if row % 2]
    y, f = [float(own[row]) for row in cell], [float(judge[row]) for row in cell]
    mean_y, mean_f = sum(y) / len(y), sum(f) / len(f)
    factor = sum((a - mean_y) * (b - mean_f) for a, b in zip(y, f, strict=True)) / sum((b - mean_f) ** 2 for b in f)
    everywhere = sum(judge[row] for row in range(1, n, 2)) / (n // 2)
    assert values(helped)["precision"][0] == pytest.approx(mean_y + factor * (everywhere - mean_f))
    assert assay.calibrate(rows, known[:50], predictor="judge").metrics == assay.calibrate(rows, known[:50]).metrics


def test_suggests_the_weight_that_labels_ask_for(result):
    found = assay.calibrate(result, labels(), suggest=True)
    weight = found.suggestions[-1]
    assert (weight["change"], weight["to"], weight["after"], weight["held_out"]) == ("yes", 2, 1, 1)
    # the same by `whatif`
    tried = assay.whatif(result, weights={"yes": weight["to"]}, pass_threshold=weight["pass_threshold"])
    assert tried.diff.as_json()["flips"] == weight["flips"] == 8
    precise = assay.calibrate(result, labels(), suggest=True, min_precision=0.99).suggestions
    assert all(one["after"] == 1 for one in precise[1:])
    assert precise[0]["change"] == "passThreshold"
    assert precise[0]["to"] == 1


def test_what_is_not_better_on_other_labels_is_said(result):
    found = assay.calibrate(result, labels([0, 2, 3]), suggest=True)
    assert all(one["held_out"] is not None or "not better" in " ".join(found.notes) for one in found.suggestions)
    nothing = assay.calibrate(result, None, suggest=True)
    assert "nothing is suggested without a label" in nothing.notes


@pytest.mark.parametrize(
    ("rows", "options", "error", "message"),
    [
        ([{"row": 40, "label": 1}], {}, InputError, 'no row "40"; its rows are 0 to 39'),
        ([{"row": "x", "label": 1}], {}, InputError, 'no row "x"'),
        ([{"row": 1, "label": 1}] * 2, {}, InputError, "row 1 has two labels"),
        ([{"row": 1, "label": "maybe"}], {}, InputError, 'say neither, such as "maybe"'),
        ([{"row": 1, "lable": 1}], {}, UsageError, "Did you mean `lable`"),
        ([{"row": 1, "label/yse": 1}], {}, UsageError, "Did you mean `yes`"),
        ([{"task_id": "t1", "label": 1}], {}, UsageError, 'on="task_id"'),
        ([{"task_id": "u", "label": 1}], {"on": "task_id"}, InputError, 'no row of .* has task_id "u"'),
        ([{"judge": "true", "label": 1}], {"on": "judge"}, InputError, '20 rows of .* have judge "true"'),
        ([{"row": [1], "label": 1}], {}, InputError, "`row` is List"),
        ([{"row": 1, "label": [1]}], {}, InputError, "`label` is List"),
        (5, {}, UsageError, "a list of mappings, not int"),
        ([{"row": 1, "label": 1}], {"metric": "f2"}, UsageError, 'metric="f2": expected'),
        ([{"row": 1, "label": 1}], {"predictor": "task_id"}, UsageError, 'predictor="task_id": expected numbers'),
        ([{"row": 1, "label": 1}], {"predictor": "jugde"}, UsageError, "Did you mean `judge`"),
        ([{"row": 1, "label": 1}], {"min_precision": 2}, UsageError, "from 0 to 1"),
    ],
)  # fmt: skip
def test_says_what_is_wrong(result, rows, options, error, message):
    with pytest.raises(error, match=message):
        assay.calibrate(result, rows, **options)


def test_a_frame_needs_verdicts_and_a_threshold_to_suggest():
    rows = pl.DataFrame({"reward": [1.0, 0.0]})
    with pytest.raises(InputError, match="no column `passed`"):
        assay.calibrate(rows, None, next=1)
    with pytest.raises(UsageError, match="pass_threshold=X"):
        assay.calibrate(rows.with_columns(passed=True), None, suggest=True)


def test_from_rows_to_label_to_metrics_on_the_command_line(result, tmp_path):
    name, out = str(result), str(tmp_path / "next.csv")
    assert RUNNER.invoke(app, ["calibrate", name]).exit_code == 2
    first = RUNNER.invoke(app, ["calibrate", name, "--next", "6", "--out", out])
    assert first.exit_code == 0
    assert f"assay show {name} --row " in first.stderr
    table = pl.read_csv(out)
    assert table.columns == ["row", "stratum", "task_id", "label"]
    assert table["label"].null_count() == 6
    empty = RUNNER.invoke(app, ["calibrate", name, "--labels", out, "--json"])
    assert json.loads(empty.stdout)["labels"] == 0
    table.with_columns(label=pl.Series([str(TRUTH[row]).lower() for row in table["row"]])).write_csv(out)
    found = json.loads(RUNNER.invoke(app, ["calibrate", name, "--labels", out, "--json"]).stdout)
    assert found["labels"] == 6
    assert found == assay.calibrate(result, out).as_json()
    assert all(math.isfinite(one["estimate"]) for one in found["metrics"] if one["of"] == "reward")


def test_keys_without_a_form_in_json_are_null():
    rows = pl.DataFrame({"reward": [1.0, 0.0], "passed": [True, False], "step": [math.nan, 2.0]})
    listed = assay.calibrate(rows, [], next=2, on="step").as_json()["next"]
    assert {row["row"]: row["step"] for row in listed} == {0: None, 1: 2.0}


def test_cells_that_a_spreadsheet_would_run_are_escaped(tmp_path):
    rows = [{"task_id": "=1+1", "completion": text} for text in ("y", "-")]
    assay.score_file(rows, SPEC, tmp_path / "r.parquet", keep=["task_id", "completion"])
    out = tmp_path / "next.csv"
    RUNNER.invoke(app, ["calibrate", str(tmp_path / "r.parquet"), "--next", "2", "--out", str(out)])
    assert "'=1+1" in out.read_text("utf-8")
