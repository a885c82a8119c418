"""``assay diff``: what it prints, files it writes, exit codes."""

import json
import re
from pathlib import Path

import polars as pl
import pytest
from insight_cases import golden
from typer.testing import CliRunner

import assay
from assay.cli.main import app

SPEC = {
    "id": "v",
    "checks": [{"id": "a", "type": "contains", "value": "a"}, {"id": "b", "type": "contains", "value": "b"}],
}
HOSTILE = "<script>alert(1)</script> | \x1b[31m \u202e ```"


@pytest.fixture(autouse=True)
def desk(tmp_path, monkeypatch):
    """A folder with two results of 48 rows of which four flip, and others that cannot be compared with them."""
    monkeypatch.chdir(tmp_path)
    rows = [
        {"task_id": f"t{at // 8}", "model": "elm", "completion": "ab" if at % 3 else f"a {HOSTILE}"} for at in range(48)
    ]
    frame = pl.DataFrame(rows)
    frame.write_parquet("rollouts.parquet")
    Path("old.json").write_text(json.dumps(SPEC))
    Path("new.json").write_text(json.dumps({**SPEC, "passThreshold": 0.5}))
    assay.score_file("rollouts.parquet", "old.json", "before.parquet")
    before = pl.read_parquet("before.parquet")
    flipped = pl.Series([at in (10, 20, 31, 45) for at in range(48)])
    passed = before["passed"] ^ flipped
    after = before.with_columns(passed=passed, reward=pl.when(passed).then(1.0).otherwise(0.5))
    after.write_parquet("after.parquet")
    after.head(47).write_parquet("fewer.parquet")
    after.with_columns(task_id=pl.Series(["t9", *after["task_id"][1:]])).write_parquet("others.parquet")
    after.drop("task_id", "model").write_parquet("bare.parquet")


def run(*args):
    return CliRunner().invoke(app, ["diff", *args])


CASES = {
    "diff: no limit given, flips found": ["before.parquet", "after.parquet"],
    "diff: flips == --max-flips 4": ["before.parquet", "after.parquet", "--max-flips", "4"],
    "diff: flips > --max-flips 3": ["before.parquet", "after.parquet", "--max-flips", "3"],
    "diff: 4 of 48 rows > --max-flips 8%": ["before.parquet", "after.parquet", "--max-flips", "8%"],
    "diff: other number of rows": ["before.parquet", "fewer.parquet"],
    "diff: a passed-through column differs in a row": ["before.parquet", "others.parquet"],
    "diff: key given by --on occurs twice": ["before.parquet", "after.parquet", "--on", "task_id"],
    "diff: no column both passed through, not sealed": ["before.parquet", "bare.parquet"],
}


@pytest.mark.parametrize("name", CASES)
def test_exit_codes(name):
    expected = golden("cli.exit_codes").expect[name]
    result = run(*CASES[name])
    assert result.exit_code == expected, result.stderr
    assert result.stdout == ""


def test_all_exit_codes_of_the_command_are_tested():
    assert {name for name in golden("cli.exit_codes").expect if name.startswith("diff: ")} == {*CASES}


def test_json_and_files():
    result = run("before.parquet", "after.parquet", "--json", "--examples", "2")
    data = json.loads(result.stdout)
    assert (data["insight"], data["rows"], data["flips"], data["regressions"]) == (1, 48, 4, 3)
    names = ("both_scored", "matrix", "delta", "checks", "by", "flip_test", "reward_test", "signatures", "limits")
    assert not {*names} - {*data}
    assert len(data["examples"]) == 2
    example = {"row", "key", "before", "after", "feedback_before", "feedback_after", "text"}
    assert not example - {*data["examples"][0]}
    for name in ("diff.json", "diff.md", "diff.html"):
        assert run("before.parquet", "after.parquet", "--out", name).exit_code == 0
        again = run("before.parquet", "after.parquet", "--out", name)
        assert again.exit_code == 2
        assert "--overwrite" in again.stderr
    page, markdown = Path("diff.html").read_text("utf-8"), Path("diff.md").read_text("utf-8")
    assert json.loads(Path("diff.json").read_text("utf-8"))["flips"] == 4
    assert "before.parquet → after.parquet" in page
    assert "&lt;script&gt;alert(1)" in page
    assert "default-src &#39;none&#39;" in page
    assert not {"\x1b", "\u202e"} & {*page, *markdown}
    assert "````text" in markdown
    assert "| before \\\\ after | pass | fail | unscored |" in markdown
    assert run("before.parquet", "after.parquet", "--out", "diff.txt").exit_code == 2


def test_what_it_prints():
    result = run("before.parquet", "after.parquet", "--max-flips", "3", "--by", "task_id", "--max-delta", "0.0001")
    assert result.exit_code == 3
    assert "48 rows · 48 scored on both sides · 4 flips, 3 regressions · 4 rewards changed" in result.stderr
    assert "exceeded: 4 of 48 rows; --max-flips allows 3" in result.stderr
    assert "exceeded: the mean reward moved by" in result.stderr
    assert "row 10 · task_id t1 · model elm · 1 ✓ -> 0.500 ✗" in result.stderr
    assert not {"\x1b", "\u202e"} & {*result.stderr}


def test_one_pass_and_rescore():
    result = run("rollouts.parquet", "--before", "old.json", "--after", "new.json", "--max-changed", "0")
    assert result.exit_code == 0
    assert "16 flips, 0 regressions · 0 rewards changed" in result.stderr
    assert "weights or threshold only" in result.stderr
    result = run("before.parquet", "--rescore", "--max-changed", "0", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["changed"] == 0
    Path("rollouts.parquet").rename("moved.parquet")
    assert run("before.parquet", "--rescore").exit_code == 2
    assert run("before.parquet", "--rescore", "--rollouts", "moved.parquet").exit_code == 0


PAGES = {
    "results": (["before.parquet", "before.parquet"], "before.parquet → before.parquet"),
    "specs": (["rollouts.parquet", "--before", "old.json", "--after", "new.json"], "old.json → new.json"),
    "lines": (["rollouts.jsonl", "--before", "old.json", "--after", "new.json"], "old.json → new.json"),
    "scored again": (["before.parquet", "--rescore"], "before.parquet → before.parquet, scored again"),
}


@pytest.mark.parametrize("name", PAGES)
def test_the_page_of_a_diff_is_the_viewer(name):
    args, title = PAGES[name]
    pl.read_parquet("rollouts.parquet").write_ndjson("rollouts.jsonl")
    result = run(*args, "--out", "page.html", "--max-size", "200kB")
    assert result.exit_code == 0, result.stderr
    page = Path("page.html").read_text("utf-8")
    assert 50_000 < len(page.encode()) <= 200_000
    assert f"<h1>{title}</h1>" in page
    assert 'id="view=compare"' in page
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert data["rows"]["total"] == 48
    for card in data["cards"].values():
        assert card["text"] == ("ab" if card["row"] % 3 else f"a {HOSTILE}")
        assert card["checks"][0]["evidence"]["spans"] == [{"start": 0, "end": 1, "kind": "matched"}]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["before.parquet"], "Two results are compared, and there is 1"),
        (["before.parquet", "after.parquet", "bare.parquet"], "there are 3"),
        (["rollouts.parquet", "--before", "old.json"], "--after: is missing"),
        (["before.parquet", "after.parquet", "--rescore"], "--rescore takes one result"),
        (["before.parquet", "after.parquet", "--rollouts", "rollouts.parquet"], "--rollouts applies to --rescore"),
        (["before.parquet", "after.parquet", "--any-role"], "--any-role: results are not scored again"),
        (["before.parquet", "after.parquet", "--max-flips", "many"], "--max-flips many"),
        (["before.parquet", "after.parquet", "--by", "mdel"], "Did you mean `model`"),
        (["before.parquet", "none.parquet"], "no such file"),
        (["after.parquet", "--rescore"], "does not say which verifiers made it"),
    ],
)
def test_misuse(args, message):
    result = run(*args)
    assert result.exit_code == 2
    assert message in result.stderr
