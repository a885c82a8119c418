"""Which texts are read, and what they add."""

import polars as pl
import pytest

import assay
from assay.insight import stats
from assay.insight.findings import texts
from assay.insight.findings.facts import Tally
from assay.insight.findings.texts import sample_of
from assay.scoring.score_columns import ScoreColumn

RIGHT = {"id": "right", "type": "equals", "value": {"column": "answer"}, "on": [{"after": "A:"}]}


def test_of_each_check_and_model_the_rows_of_the_least_draws_stand_for_all(monkeypatch):
    monkeypatch.setattr(texts, "_OF_A_STRATUM", 10)
    failing = pl.Series([at % 3 > 0 for at in range(300)])
    model = pl.Series([at % 2 for at in range(300)], dtype=pl.UInt32)
    draws = stats.splitmix64(0, 0, 300)
    tally = Tally(ScoreColumn("a", "check/v/a", "v", "a"), 4, 300, 200, failing=failing)
    found = sample_of([tally], model, draws, 20_000)
    for code in (0, 1):
        rows = [at for at in range(300) if at % 3 and at % 2 == code]
        least = sorted(rows, key=lambda row: draws[row])[:10]
        own = found.filter(model=code)
        assert sorted(own["row"]) == sorted(least)
        assert own["weight"].to_list() == [10.0] * 10
    assert set(found["check"]) == {4}


def rollouts(folder, rows):
    """Rollouts whose answers all have a unit, in texts of many lengths."""
    path = folder / "rollouts.parquet"
    pl.DataFrame(
        [{"task_id": f"t{at}", "answer": str(at), "completion": f"A: {at} apples"} for at in range(rows)]
    ).write_parquet(path)
    return path


@pytest.mark.parametrize("keep", [[], ["+completion"]])
def test_texts_are_read_from_the_result_or_from_its_inputs(keep, tmp_path):
    assay.score_file(rollouts(tmp_path, 100), {"checks": [RIGHT]}, tmp_path / "rewards.parquet", keep=keep)
    (finding,) = assay.report(tmp_path / "rewards.parquet").findings
    assert (finding["kind"], finding["cause"]) == ("dead", "near_miss")
    assert 'read "0 apples", expected "0"' in finding["text"]


def test_without_texts_causes_are_missing_and_a_note_says_why(tmp_path):
    path = rollouts(tmp_path, 100)
    assay.score_file(path, {"checks": [RIGHT]}, tmp_path / "rewards.parquet")
    quiet = assay.report(tmp_path / "rewards.parquet", text=False)
    path.unlink()
    report = assay.report(tmp_path / "rewards.parquet")
    for found in (quiet, report):
        assert [(finding["kind"], finding["cause"]) for finding in found.findings] == [("dead", None)]
    assert sum(note.startswith("no texts: ") for note in report.notes) == 1
    assert not any(note.startswith("no texts: ") for note in quiet.notes)


def test_counts_of_a_sample_are_scaled_and_say_so(tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "_OF_A_STRATUM", 20)
    assay.score_file(rollouts(tmp_path, 200), {"checks": [RIGHT]}, tmp_path / "rewards.parquet", keep=["+completion"])
    (finding,) = assay.report(tmp_path / "rewards.parquet").findings
    assert (finding["rows"], finding["cause"], finding["numbers"]["sampled"]) == (200, "near_miss", 20)
    assert "About 200 of 200 failures" in finding["text"]


@pytest.mark.parametrize("keep", [[], ["+completion"]])
def test_of_long_texts_fewer_are_read_and_a_note_says_so(keep, tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "_OF_A_STRATUM", 100)
    monkeypatch.setattr(texts, "_MOST_BYTES", 500)
    assay.score_file(rollouts(tmp_path, 200), {"checks": [RIGHT]}, tmp_path / "rewards.parquet", keep=keep)
    report = assay.report(tmp_path / "rewards.parquet", examples=0)
    (finding,) = report.findings
    assert (finding["rows"], finding["cause"]) == (200, "near_miss")
    assert 30 < finding["numbers"]["sampled"] < 50
    assert any(note.startswith("texts are long: findings are made from those of ") for note in report.notes)


@pytest.mark.parametrize(
    ("text", "looks"),
    [
        ("{at}", [range(50)]),
        ("{at}" * 500, [range(0, 200, 4)]),
        ("word " * 500, [range(50), range(0, 200, 4)]),  # the file has it once
    ],
    ids=["short", "long", "long and equal"],
)
def test_whether_texts_are_long_is_asked_of_the_file_first(text, looks, tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "_OF_A_STRATUM", 100)
    monkeypatch.setattr(texts, "_IN_ALL", 200)
    monkeypatch.setattr(texts, "_MOST_BYTES", 200 * 200)
    rows = [{"answer": "5", "completion": text.format(at=100 + at)} for at in range(200)]
    pl.DataFrame(rows).write_parquet(tmp_path / "rollouts.parquet")
    assay.score_file(tmp_path / "rollouts.parquet", {"checks": [RIGHT]}, tmp_path / "rewards.parquet", keep=[])
    asked = []
    read = texts.originals
    monkeypatch.setattr(texts, "originals", lambda result, rows, *more: asked.append(rows) or read(result, rows, *more))
    notes = assay.report(tmp_path / "rewards.parquet").notes
    assert asked[:-1] == looks  # then the sample
    assert any(note.startswith("texts are long") for note in notes) == (text != "{at}")


def test_duplicates_of_a_sample_of_whole_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "_IN_ALL", 40)
    text = "a text that is said again and again, longer than fifty code points"
    rows = [{"task_id": f"t{at // 4}", "completion": f"{text} {at // 4}"} for at in range(400)]
    frame = pl.DataFrame(rows)
    frame.write_parquet(tmp_path / "rollouts.parquet")
    spec = {"checks": [{"type": "regex", "pattern": "[13579]$"}]}
    assay.score_file(tmp_path / "rollouts.parquet", spec, tmp_path / "rewards.parquet", keep=["+completion"])
    found = {finding["cause"]: finding for finding in assay.report(tmp_path / "rewards.parquet").findings}
    assert found["copies"]["rows"] == 300
    assert found["copies"]["numbers"]["sampled"] == 40


def test_reasons_have_the_commonest_that_was_read_and_expected(tmp_path):
    answers = ["no", "no", "no", "5 kg", "5 kg", "4", "3", ""]
    rows = [{"task_id": f"t{at}", "answer": "5", "completion": f"A: {answer}"} for at, answer in enumerate(answers * 5)]
    pl.DataFrame(rows).write_parquet(tmp_path / "rollouts.parquet")
    assay.score_file(tmp_path / "rollouts.parquet", {"checks": [RIGHT]}, tmp_path / "rewards.parquet")
    (reason,) = assay.report(tmp_path / "rewards.parquet").checks[0]["reasons"]
    assert reason["template"] == "does not equal …"
    assert reason["examples"] == [
        {"read": "no", "expected": ["5"], "near": None, "rows": 15},
        {"read": "5 kg", "expected": ["5"], "near": "begins", "rows": 10},
        {"read": "4", "expected": ["5"], "near": None, "rows": 5},
    ]
    assert assay.report(tmp_path / "rewards.parquet", text=False).checks[0]["reasons"][0]["examples"] == []
