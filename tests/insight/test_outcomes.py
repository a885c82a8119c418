"""What became of each row: the worked cases, results of every kind, and what counts them."""

import polars as pl
import pytest
from cases import each
from report_cases import EVIL
from worked_cases import to_try, worked

import assay


@pytest.mark.parametrize("case", to_try("datasets", "outcome", "score"))
def test_a_worked_case_from_rows_to_a_summary(case, tmp_path):
    frame = assay.score(case["rows"], case["spec"], outcome=True)
    assert [frame[name].to_list() for name in ("cut_off", "outcome")] == [case["cut_off"], case["outcome"]]
    plain = assay.score(case["rows"], case["spec"])
    assert plain.equals(frame.drop("cut_off", "outcome"))
    summary = assay.score_file(case["rows"], case["spec"], tmp_path / "out.parquet", outcome=True)
    for result in (plain, frame, plain.lazy(), tmp_path / "out.parquet"):
        assert assay.outcomes(result).to_list() == case["outcome"]
    counts = dict.fromkeys(("pass", "fail", "not_found", "truncated", "error", "unscored"), 0) | case["counts"]
    for counted in (summary, assay.summarize(frame), assay.summarize(tmp_path / "out.parquet")):
        assert counted.as_json()["outcomes"] == counts
        assert f"outcomes: pass {counts['pass']} · fail {counts['fail']} ·" in counted.document().markdown()
    assert "outcomes" not in assay.summarize(plain).as_json()


def test_the_worked_results_without_provenance():
    derived = worked("datasets", "outcome", "derived")
    assert assay.outcomes(pl.DataFrame(derived["rows"], infer_schema_length=None)).to_list() == derived["outcome"]


SPEC = {"id": "v", "checks": [{"id": "box", "type": "equals", "value": "4", "on": ["boxed"]}]}
ROWS = [
    {"completion": r"\boxed{4}"},
    {"completion": "4"},
    {"completion": "4", "finish_reason": "length"},
    {"completion": None},
]
FOUND = ["pass", "not_found", "truncated", "unscored"]


def test_columns_of_these_names_that_rollouts_bring_are_kept_and_are_no_outcomes(tmp_path):
    rows = [row | {"outcome": "pass", "cut_off": True} for row in ROWS]
    frame = assay.score(rows, SPEC, outcome=True)
    assert frame["outcome"].to_list() == FOUND
    assert frame["prior_outcome"].to_list() == ["pass"] * 4
    assert frame["prior_cut_off"].to_list() == [True] * 4
    assay.score_file(rows, SPEC, tmp_path / "out.parquet")
    assert assay.outcomes(tmp_path / "out.parquet").to_list() == FOUND


def test_columns_of_the_run_win(tmp_path):
    frame = assay.score(ROWS, SPEC, outcome=True)
    assert assay.outcomes(frame.drop("feedback", "finish_reason")).to_list() == FOUND
    assert assay.outcomes(frame.drop("outcome").with_columns(cut_off=False)).to_list() == ["pass", "not_found", "not_found", "unscored"]  # fmt: skip
    assay.score_file(ROWS, SPEC, tmp_path / "out.parquet", outcome=True, keep=[], details=False)
    assert assay.outcomes(tmp_path / "out.parquet").to_list() == FOUND
    assert assay.read_provenance(tmp_path / "out.parquet")["settings"]["outcome"] is True
    assay.score_file(ROWS, SPEC, tmp_path / "plain.parquet")
    assert "outcome" not in assay.read_provenance(tmp_path / "plain.parquet")["settings"]


def test_a_result_without_passed_has_no_outcomes():
    with pytest.raises(assay.InputError, match="no column `passed`"):
        assay.outcomes(pl.DataFrame({"reward": [1.0]}))


def test_they_are_not_compared_and_a_verification_makes_them_again(tmp_path):
    pl.DataFrame(ROWS).write_parquet(tmp_path / "in.parquet")
    for name, outcome in (("with", True), ("without", False)):
        out = tmp_path / f"{name}.parquet"
        assay.score_file(tmp_path / "in.parquet", SPEC, out, outcome=outcome, keep=["completion", "finish_reason"])
    with_them, without = tmp_path / "with.parquet", tmp_path / "without.parquet"
    assert assay.verify(with_them).intact
    assert assay.diff(with_them, without).changed == 0
    other = pl.read_parquet(with_them).with_columns(cut_off=None, outcome=pl.lit("fail"))
    assert assay.diff(pl.read_parquet(with_them), other.cast({"cut_off": pl.Boolean})).changed == 0
    assert without.stat().st_size < with_them.stat().st_size


@each("earlier", [True, False])
def test_a_run_that_reuses_scores_is_the_full_run(tmp_path, earlier):
    pl.DataFrame(ROWS).write_parquet(tmp_path / "in.parquet")
    first, full, reused = (tmp_path / f"{name}-{earlier}.parquet" for name in ("first", "full", "reused"))
    changed = {"id": "v", "passThreshold": 0, "checks": [*SPEC["checks"], {"type": "contains", "value": "4"}]}
    assay.score_file(tmp_path / "in.parquet", SPEC, first, outcome=earlier)
    made = [
        assay.score_file(tmp_path / "in.parquet", changed, out, outcome=True, reuse=reuse)
        for out, reuse in ((full, None), (reused, first))
    ]
    assert made[0].root == made[1].root
    assert any("1 of 2 checks reused" in note for note in made[1].notes)
    assert pl.read_parquet(reused)["outcome"].to_list() == ["pass"] * 3 + ["unscored"]


def test_other_weights_make_outcomes_anew(tmp_path):
    from assay.insight.whatifs import write_rewards

    spec = {"id": "v", "checks": [*SPEC["checks"], {"id": "four", "type": "contains", "value": "4"}]}
    pl.DataFrame(ROWS).write_parquet(tmp_path / "in.parquet")
    first, whatif, full = (tmp_path / f"{name}.parquet" for name in ("first", "whatif", "full"))
    assay.score_file(tmp_path / "in.parquet", spec, first, outcome=True)
    root = write_rewards(first, whatif, drop=["box"])
    edited = {"id": "v", "checks": [{**spec["checks"][0], "weight": 0}, spec["checks"][1]]}
    assert root == assay.score_file(tmp_path / "in.parquet", edited, full, outcome=True).root
    assert pl.read_parquet(first)["outcome"].to_list() == FOUND
    assert assay.outcomes(whatif).to_list() == ["pass"] * 3 + ["unscored"]


MODELS = [
    row | {"model": model, "task_id": f"q-{at}"} for model in ("oak", EVIL[0], None) for at, row in enumerate(ROWS)
]


def test_a_report_counts_the_outcomes_of_each_model():
    frame = assay.score(MODELS, SPEC, outcome=True)
    found = assay.report(frame)
    counts = {"pass": 1, "fail": 0, "not_found": 1, "truncated": 1, "error": 0, "unscored": 1}
    entries = [{"of": {"model": model}, "rows": 4, "outcomes": counts} for model in (EVIL[0], "oak", None)]
    assert found.as_json()["outcomes"] == {"columns": ["model"], "values": 3, "entries": entries}
    assert "| oak | 4 | 25.0 % | 0 % | 25.0 % | 25.0 % | 0 % | 25.0 % |" in found.markdown()
    page = found.html()
    assert page.count('<th scope="col" class="n">not_found</th>') == 1
    assert EVIL[0] not in page
    assert "| 12 | 25.0 % | 0 %" in assay.report(frame.drop("model")).markdown()
    plain = assay.report(assay.score(MODELS, SPEC))
    assert "outcomes" not in plain.as_json()
    assert "not_found</th>" not in plain.html()
    assert found.document().title == plain.document().title


def test_a_report_of_no_rows_has_no_outcomes_to_count():
    frame = assay.score(MODELS, SPEC, outcome=True).clear()
    assert assay.report(frame).as_json()["outcomes"]["entries"] == []
    assert assay.report(frame).html()
    assert assay.summarize(frame).as_json()["outcomes"] == dict.fromkeys(("pass", "fail", "not_found", "truncated", "error", "unscored"), 0)  # fmt: skip
    assert assay.outcomes(frame).to_list() == []
    assert set(assay.score_file([], SPEC, outcome=True).as_json()["outcomes"].values()) == {0}


@each(("dtype", "key"), [(pl.String, "where"), (pl.Categorical, "where"), (pl.Binary, "row")])
def test_a_finding_names_the_rows_that_ended_at_a_limit_in_sql_if_it_can(dtype, key):
    ends = pl.Series(["length" if at % 4 == 0 else "stop" for at in range(200)])
    rewards = [float(at % 2) for at in range(200)]
    frame = pl.DataFrame({"reward": rewards, "passed": [r == 1 for r in rewards], "check/v/a": rewards})
    frame = frame.with_columns(finish_reason=ends.cast(dtype))
    (finding,) = [one for one in assay.report(frame).as_json()["findings"] if one["kind"] == "truncated"]
    assert (finding["rows"], list(finding["filter"])) == (50, [key])
    assert [card.row for card in assay.show(frame, **finding["filter"], limit=50).cards] == list(range(0, 200, 4))
    assert assay.outcomes(frame).to_list().count("truncated") == 50
