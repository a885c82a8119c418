"""Findings: worked cases, and what each kind needs."""

import json
from functools import cache

import polars as pl
import pytest
from cases import crossed
from worked_cases import to_try, worked

import assay
from assay.insight.findings.facts import Facts, Tally
from assay.insight.findings.find import KINDS
from assay.insight.findings.found import OF_COUNTS, found_in_summary
from assay.insight.findings.limits import LEVELS, MOST_FINDINGS
from assay.insight.results import open_result, result_of
from assay.scoring.score_columns import ScoreColumn
from assay.testing import hostile_texts


@cache
def make():
    names = {}
    exec(worked("view", "generator"), names)  # noqa: S102  (ours, beside the worked cases)
    return names["make"]


CASES = {case["name"]: case for case in to_try("view", "findings")}


@pytest.mark.skipif(not CASES, reason="the worked cases are not there")
@pytest.mark.parametrize("name", CASES)
def test_worked_cases(name, tmp_path):
    case = CASES[name]
    rows, spec = make()(**case["make"])
    rewards = scored(tmp_path, rows, spec)
    found = assay.report(rewards).findings
    keys = ("kind", "check", "model", "rows", "cause")
    assert [{key: finding[key] for key in keys} for finding in found] == [
        {key: finding[key] for key in keys} for finding in case["findings"]
    ]
    for finding, expected in zip(found, case["findings"], strict=True):
        assert finding["effect"] == pytest.approx(expected["effect"], abs=1e-6)
        assert len(finding["text"]) <= 240
        shown = assay.show(rewards, **finding["filter"]).matching
        assert shown == (min(finding["rows"], 50) if "row" in finding["filter"] else finding["rows"])


def scored(folder, rows, spec):
    pl.DataFrame(rows, infer_schema_length=None).write_parquet(folder / "rollouts.parquet")
    out = folder / "rewards.parquet"
    assay.score_file(folder / "rollouts.parquet", {"id": "v", **spec}, out, keep=["+completion"])
    return out


def found_in(folder, rows, *checks):
    return [
        (f["kind"], f["check"], f["rows"], f["cause"])
        for f in assay.report(scored(folder, rows, {"checks": checks})).findings
    ]


RIGHT = {"id": "right", "type": "equals", "value": {"column": "answer"}, "on": [{"after": "A:"}]}


def test_every_kind_has_a_level():
    assert list(KINDS) == list(LEVELS)


def answers(rows, text):
    texts = (text(at) for at in range(rows))
    rest = [f"{'.' * (at * 37 % 60)}\n{text}" if text else text for at, text in enumerate(texts)]
    return [{"task_id": f"t{at}", "answer": str(at), "completion": text} for at, text in enumerate(rest)]


@pytest.mark.parametrize(("near", "expected"), [(3, []), (6, [("near_miss", "right", 6, "begins")])])
def test_near_misses_are_a_share_of_the_failures(near, expected, tmp_path):
    rows = answers(100, lambda at: f"A: {at} apples" if at < near else f"A: {at if at % 2 else 5000 - at}")
    assert found_in(tmp_path, rows, RIGHT) == expected


def test_few_rows_tell_of_errors_and_unscored_rows_only(tmp_path):
    rows = answers(12, lambda at: None if at < 2 else "A: no")
    assert found_in(tmp_path, rows, RIGHT) == [("unscored", None, 2, "the completion is null")]


def test_what_a_group_forbids_need_not_be_there(tmp_path):
    rows = answers(200, lambda at: f"A: {at}" if at % 2 else "A: none")
    group = {"id": "clean", "type": "none_of", "checks": [{"id": "rude", "type": "contains", "value": "damn"}]}
    assert found_in(tmp_path, rows, RIGHT, group) == []


def test_a_negated_member_that_never_passes_is_dead(tmp_path):
    rows = answers(200, lambda at: f"A: {at}" if at % 2 else "A: none")
    group = {"id": "both", "type": "all_of", "checks": [{**RIGHT, "on": "completion"}]}
    group["checks"].append({"id": "unmarked", "type": "contains", "value": "A:", "negate": True})
    kinds = {(kind, check) for kind, check, *_ in found_in(tmp_path, rows, RIGHT, group)}
    assert ("dead", "both.unmarked") in kinds


def test_a_group_and_its_only_check_that_fails_are_not_redundant(tmp_path):
    rows = answers(200, lambda at: f"A: {at}" if at % 2 else "A: none")
    group = {
        "id": "both",
        "type": "all_of",
        "checks": [{"id": "even", "type": "contains", "value": "none"}, {**RIGHT, "negate": True, "id": "wrong"}],
    }
    kinds = {(kind, check) for kind, check, *_ in found_in(tmp_path, rows, RIGHT, group)}
    assert ("redundant", "both") not in kinds


def test_without_a_provenance_there_is_no_talk_of_weights():
    rows = [
        {"task_id": f"t{at}", "reward": float(at % 2), "passed": True, "check/v/a": float(at % 2), "check/v/b": 1.0}
        for at in range(100)
    ]
    (finding,) = assay.report(pl.DataFrame(rows)).findings
    assert (finding["kind"], finding["check"], finding["text"]) == (
        "saturated",
        "b",
        "100 % of 100 rows pass.",
    )


def test_there_are_at_most_fifty(tmp_path):
    checks = [{"id": f"c{at}", "type": "contains", "value": f"never {at}"} for at in range(60)]
    rewards = scored(tmp_path, answers(100, str), {"checks": checks})
    report = assay.report(rewards, findings=3)
    assert len(report.findings) == MOST_FINDINGS
    assert report.markdown().count("## ▲") == 3


def test_names_and_texts_from_data_are_cut_and_escaped(tmp_path):
    evil = "\x1b[31m`'" + "x" * 500
    rows = [
        {
            "task_id": f"t{at}",
            "model": model,
            "answer": "1",
            "completion": f"{at}\nA: 1 {evil}" if model == evil else "A: 1" if at % 2 else "A: 2",
        }
        for at in range(40)
        for model in (evil, "elm")
    ]
    finding = assay.report(scored(tmp_path, rows, {"checks": [RIGHT]})).findings[0]
    assert (finding["kind"], finding["model"], finding["cause"]) == ("outlier", evil, "near_miss")
    assert "\x1b" not in finding["title"] + finding["text"]
    assert len(finding["title"]) < 100
    assert assay.show(tmp_path / "rewards.parquet", **finding["filter"]).matching == finding["rows"]


def test_a_summary_tells_what_its_counts_say(tmp_path):
    rows = answers(200, lambda at: None if at < 5 else f"A: {at if at % 2 else 9000 - at}")
    tagged = {"id": "tagged", "type": "contains", "value": "<answer>", "weight": 2}
    pl.DataFrame(rows).write_parquet(tmp_path / "rollouts.parquet")
    for out in (tmp_path / "rewards.parquet", None):
        summary = assay.score_file(tmp_path / "rollouts.parquet", {"id": "v", "checks": [RIGHT, tagged]}, out)
        titles = [finding.title for finding in found_in_summary(summary)]
        assert titles == [*(["`tagged` never passes"] if out else []), "5 rows have no reward"]


def test_counts_tell_only_some_kinds():
    usual, always = (ScoreColumn(name, f"check/v/{name}", "v", name, weight=1.0) for name in ("usual", "always"))
    tallies = [Tally(usual, 0, 900, 400, 50), Tally(always, 1, 900, 0), Tally(usual, 2, 900, 900)]
    facts = Facts(1_000, 900, tallies, {("usual", ""): 50}, {"the completion is null": 100})
    assert {kind for kind, findings in KINDS.items() if [*findings(facts)]} == {*OF_COUNTS}


STRANGE = {
    "lists of golds": {"answer": pl.concat_list("answer", "answer")},
    "other golds": {"answer": pl.struct("answer", "task_id")},
    "texts that are null": {"completion": pl.lit(None, pl.String)},
    "models of numbers": {"model": pl.int_range(pl.len()) % 3 * 1.5},
    "models of dates": {"model": pl.lit("2026-01-01").str.to_date()},
    "models of truth": {"model": pl.int_range(pl.len()) % 2 == 0},
    "no models": {"model": pl.lit(None, pl.String)},
    "steps of words": {"step": pl.lit("first")},
    "no steps": {"step": pl.lit(None, pl.Int64)},
    "no rewards": {"reward": pl.lit(None, pl.Float64)},
    "other ends": {"finish_reason": pl.lit(5), "truncated": pl.struct("step")},
}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    texts = [
        {"task_id": f"t{at // 4}", "model": f"m{at % 3}", "step": at % 7, "answer": text, "completion": f"A: {text}"}
        for at, text in enumerate(hostile_texts(300))
    ]
    number = {"id": "n: %'", "type": "number", "value": {"column": "answer"}, "missingGold": "fail"}
    checks = [RIGHT, number, {"type": "contains_any", "values": {"column": "answer"}}]
    return open_result(scored(tmp_path_factory.mktemp("hostile"), texts, {"checks": checks}))


@pytest.mark.parametrize(
    ("known", "rows", "name"),
    [*((True, 300, name) for name in STRANGE), *crossed([(True, 1), (True, 0), (False, 300)], STRANGE)],
)
def test_strange_results_have_findings_too(name, known, rows, hostile):
    frame = hostile.frame.with_columns(**STRANGE[name]).head(rows)
    strange = result_of("it", frame, hostile.provenance if known else {})
    report = assay.report(strange, examples=0)
    assert json.loads(json.dumps(report.as_json(), allow_nan=False))["findings"] == report.findings
    assert all(len(finding["text"]) <= 240 for finding in report.findings)
    for finding in {finding["kind"]: finding for finding in report.findings}.values():
        assay.show(strange, limit=1, **finding["filter"])


def test_rows_of_conditions_are_those_of_the_findings(tmp_path):
    rows = answers(400, lambda at: "" if at % 20 == 1 else f"A: {at}" if at % 3 else f"it is {at}")
    for at, row in enumerate(rows):
        row |= {"model": ("o'x (from y)", "elm")[at % 2], "stop_reason": " LENGTH" if at % 10 == 3 else "stop"}
        row |= {"answer": None if at % 40 == 7 else row["answer"]}
    checks = [RIGHT, {**RIGHT, "id": "not-right", "on": [{"after": "it"}]}, {**RIGHT, "id": "x: right", "on": "boxed"}]
    rewards = scored(tmp_path, rows, {"checks": [*checks, {**RIGHT, "id": "sure", "missingGold": "fail"}]})
    found = assay.report(rewards).findings
    assert {finding["kind"] for finding in found} >= {"unscored", "not_found", "dead", "truncated", "duplicates"}
    for finding in found:
        matching = assay.show(rewards, limit=1, **finding["filter"]).matching
        is_by_number = finding["kind"] in ("near_miss", "flat")
        assert ("row" in finding["filter"]) == is_by_number
        assert is_by_number or matching == finding["rows"], finding


@pytest.mark.parametrize("column", ["feedback", "error"])
@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (pl.lit(None), 0),
        (pl.lit(5), 60),
        (pl.lit("a: found nothing: x").cast(pl.Categorical), 60),
        (pl.concat_list(pl.lit("a: no")), 0),
        (pl.struct("task_id"), 0),
        (pl.lit(b"a: no"), 0),
    ],
)
def test_lines_of_other_programs_need_not_be_texts(column, words, lines):
    rows = [{"task_id": f"t{at}", "reward": None if at % 7 else 1.0, "check/v/a": at % 2} for at in range(60)]
    frame = pl.DataFrame(rows).with_columns(words.alias(column))
    for finding in assay.report(frame).findings:
        assert assay.show(frame, limit=1, **finding["filter"]).matching == finding["rows"]
    (card,) = assay.show(frame, row=[1]).cards
    verdicts = "".join(verdict.feedback + verdict.error for verdict in card.checks)
    assert bool(verdicts + "".join(card.feedback + card.error)) == (lines > 0)


def test_of_a_model_with_few_rows_the_base_are_its_rows(tmp_path):
    rows = answers(300, lambda at: "no" if at % 20 == 0 else f"A: {at if at % 2 else 9000 + at}")
    for at, row in enumerate(rows):
        row["model"] = "small" if at % 20 == 0 else "large"
    found = assay.report(scored(tmp_path, rows, {"checks": [RIGHT]})).findings
    assert [(f["kind"], f["model"], f["rows"], f["of"]) for f in found] == [("not_found", "small", 15, 15)]


def test_checks_that_fail_everywhere_are_redundant_unless_dead(tmp_path):
    rows = answers(60, str)
    never = [{"id": name, "type": "contains", "value": name} for name in ("kill", "damn")]
    assert found_in(tmp_path, rows, *never) == [("redundant", "kill", 60, "damn")]
