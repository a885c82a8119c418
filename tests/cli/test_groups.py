"""``assay groups``: what it prints and writes, and its exit codes."""

import json

import polars as pl
import pytest
from insight_cases import golden, golden_rows
from typer.testing import CliRunner

import assay
from assay.cli.main import app

HOSTILE = "\x1b[31m[bold]red[/bold]\u202e\n"


def run(*arguments, code=0):
    done = CliRunner().invoke(app, ["groups", *map(str, arguments)], env={"COLUMNS": "160"})
    assert done.exit_code == code, done.output
    return done


@pytest.fixture
def rewards(tmp_path):
    rows = [
        {
            "task_id": f"t{at // 8}",
            "model": model,
            "reward": (at * 5 % 7) / 6,
            "passed": at * 5 % 7 == 6,
            "answer": str(at % 3),
        }
        for model in ("elm", "ash")
        for at in range(3 if model == "elm" else 0, 40)
    ]
    path = tmp_path / "rewards.parquet"
    pl.DataFrame(rows).write_parquet(path)
    return path


def test_it_prints_the_models_and_their_pairs(rewards):
    said = run(rewards, "--k", "1,2", "--vote", "answer").stderr
    lines = [line for line in said.splitlines() if line]
    assert lines[0] == "77 rows · 10 groups · 5 tasks"
    assert lines[1].split() == ["model", "groups", "mean", "95", "%", "pass@1", "pass@2", "pass^2"]
    assert [line.split()[0] for line in lines[2:4]] == ["ash", "elm"]
    assert "best@2  worst@2  maj@1" not in said
    assert "best@2  worst@2  maj@2" in said
    assert "elm − ash" in said
    assert "few tasks (5)" in said


def test_long_tables_are_cut_and_say_how_models_are_taken_together(tmp_path):
    path = tmp_path / "rewards.parquet"
    rows = [
        {"task_id": f"t{at % 2}", "model": f"m{at // 4:02}", "reward": at % 3 / 2, "passed": at % 3 == 2}
        for at in range(280)
    ]
    pl.DataFrame(rows).write_parquet(path)
    shown = run(path).stderr
    assert "note: split by model; --by none takes all groups together" in shown
    assert "… and 50 more of model in --json" in shown
    assert max(map(shown.count, ("m19 ", "m20 ", "m69 "))) == shown.count("m19 ") > 0
    assert shown.count("m20 ") == 0
    together = run(path, "--by", "none").stderr
    assert "split by" not in together
    assert "m00" not in together
    assert assay.groups(path, by="none").as_json() == assay.groups(path, by=()).as_json()
    pl.read_parquet(path).rename({"model": "none"}).write_parquet(tmp_path / "one.parquet")
    assert assay.groups(tmp_path / "one.parquet", by="none").facts["by"] == ["none"]


def test_the_json_is_that_of_the_python_twin_and_the_same_each_time(rewards):
    first, second = (run(rewards, "--json", "--ci", "bootstrap", "--seed", "3") for _ in range(2))
    assert first.stdout == second.stdout
    data = json.loads(first.stdout)
    assert data == assay.groups(rewards, ci="bootstrap", seed=3).as_json()
    assert data["insight"] == 1
    assert [model["of"] for model in data["summary"]] == [{"model": "ash"}, {"model": "elm"}]
    assert data["pairs"][0]["ci95"][0] < data["pairs"][0]["difference"] < data["pairs"][0]["ci95"][1]


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "csv"])
def test_it_writes_the_table(rewards, tmp_path, ending):
    out = tmp_path / f"groups.{ending}"
    run(rewards, "--k", "2", "--advantages", "rloo", "--out", out)
    table = assay.groups(rewards, k=2, advantages="rloo").table
    readers = {"parquet": pl.read_parquet, "jsonl": pl.read_ndjson, "csv": pl.read_csv}
    written = readers[ending](out)
    assert written.columns == table.columns
    assert written["best@2"].to_list() == table["best@2"].to_list()
    if ending == "parquet":
        assert written.explode("row", "advantage").height == 77
    run(rewards, "--out", out, code=2)
    run(rewards, "--out", out, "--overwrite")


def test_the_exit_codes_of_the_worked_cases(tmp_path):
    codes = golden("cli.exit_codes").expect
    path = tmp_path / "rewards.parquet"
    golden_rows().write_parquet(path)
    run(path, "--k", "8", code=codes["groups: k larger than every group"])
    golden_rows().drop("task_id").write_parquet(path)
    run(path, code=codes["groups: no task column"])


def test_it_takes_what_trainers_and_evaluators_compute(rewards, tmp_path):
    out = tmp_path / "groups.parquet"
    run(rewards, "--k", "2", "--thresholds", "0.5,1", "--advantages", "verl-rloo", "--out", out)
    table = assay.groups(rewards, k=2, thresholds=[0.5, 1], advantages="verl-rloo").table
    assert pl.read_parquet(out).equals(table)
    assert {"g-pass@2_0.5", "g-pass@2_1.0", "mg-pass@2", "advantage"} <= {*table.columns}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--k", "two"], "--k two: expected numbers of rows."),
        (["--k", ""], "expected numbers of rows."),
        (["--by", "mdl"], "--by mdl:"),
        (["--task", "task_di"], "Did you mean `task_id`?"),
        (["--group", "model"], "has rows of several tasks"),
        (["--advantages", "ppo"], "--advantages ppo: unknown."),
        (["--advantages", "trl-grp"], "Did you mean `trl-grpo`?"),
        (["--advantages", "verl-remax"], "like verl-remax: needs the reward of another rollout."),
        (["--baseline", "greedy"], "--baseline greedy:"),
        (["--thresholds", "2"], "--thresholds 2.0: expected shares from 0 to 1."),
        (["--thresholds", "half"], "--thresholds half: expected shares from 0 to 1."),
        (["--length", "tokens"], "--length tokens:"),
        (["--out", "groups.html"], "--out groups.html: expected a name that ends in .parquet, .jsonl, .csv."),
        (["--out", "groups.parq"], "Did you mean groups.parquet?"),
        (["--out", "none/groups.csv"], "there is no folder"),
        (["--eps", "nan"], "--eps nan"),
    ],
)
def test_what_is_refused(rewards, arguments, message):
    assert message in run(rewards, *arguments, code=2).stderr


def test_no_such_result(tmp_path):
    assert "no such file" in run(tmp_path / "rewards.parquet", code=2).stderr
    assert "a result is a parquet file" in run(tmp_path / "rewards.jsonl", code=2).stderr


def test_names_from_data_cannot_drive_the_terminal(tmp_path):
    path = tmp_path / "rewards.parquet"
    rows = [{"task_id": HOSTILE, "model": f"{HOSTILE}{at}", "reward": at / 2} for at in range(2)]
    pl.DataFrame([*rows, {"task_id": "b", "model": None, "reward": None}]).write_parquet(path)
    said = run(path).stderr
    assert "\x1b" not in said
    assert "\u202e" not in said
    assert "[bold]red[/bold]" in said
    json.loads(run(path, "--json").stdout)


def test_a_folder_of_parts(tmp_path):
    rows = [{"task_id": f"t{at // 4}", "completion": "yes" if at % 3 else "no"} for at in range(40)]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    verifier = {"checks": [{"type": "contains", "value": "yes"}]}
    assay.score_file(tmp_path / "rows.jsonl", verifier, f"{tmp_path}/rewards/")
    data = json.loads(run(f"{tmp_path}/rewards/", "--json").stdout)
    (model,) = data["summary"]
    assert model["metrics"]["pass@1"]["value"] == pytest.approx(0.65)
    assert data["k"] == [1, 4]


def test_it_takes_options_of_a_trainer(rewards, tmp_path):
    out = tmp_path / "groups.parquet"
    chosen = ("--advantage-option", "normalize_rewards=false", "--advantage-option", "use_leave_one_out_baseline=false")
    run(rewards, "--advantages", "nemo-rl-grpo", *chosen, "--out", out)
    options = {"normalize_rewards": False, "use_leave_one_out_baseline": False}
    table = assay.groups(rewards, advantages="nemo-rl-grpo", advantage_options=options).table
    assert pl.read_parquet(out).equals(table)
    run(rewards, "--advantages", "trl-grpo", "--advantage-option", "scale_rewards=batch")
    assert "expected NAME=VALUE" in run(rewards, "--advantages", "trl-grpo", "--advantage-option", "a", code=2).stderr
    assert "only for the advantages" in run(rewards, "--advantage-option", "a=1", code=2).stderr


def test_advantages_that_are_written_nowhere_are_told(rewards, tmp_path):
    note = "note: --out NAME.parquet writes the advantages"
    assert note in run(rewards, "--advantages", "rloo").stderr
    assert note not in run(rewards, "--advantages", "rloo", "--out", tmp_path / "groups.parquet").stderr
    assert note not in run(rewards).stderr


@pytest.fixture
def doubtful(tmp_path):
    """Groups of four, but for one of three; one with two prompts, two that share one; two copies."""
    rows = [
        {
            "task_id": f"t{at // 4}",
            "prompt": f"Question {at // 4}",
            "completion": f"answer {at}",
            "reward": at % 2,
            "step": 1,
        }
        for at in range(31)
    ]
    rows[0]["prompt"], rows[1]["completion"], rows[2]["completion"] = "Another one?", "answer 0", "answer 0"
    for row in rows[4:8]:
        row["prompt"] = "Question\n2"
    path = tmp_path / "doubtful.parquet"
    pl.DataFrame(rows).with_columns(passed=pl.col("reward") == 1).write_parquet(path)
    return path


def test_groups_that_do_not_hold_together_are_named(doubtful, tmp_path):
    said = run(doubtful, "--integrity", "--out", tmp_path / "groups.parquet").stderr
    lines = [line.split() for line in said.splitlines()]
    assert ["size", "other", "than", "4", "1", "8", "groups"] in lines
    assert ["several", "prompts", "1", "8", "groups"] in lines
    assert ["several", "golds", "–"] in lines
    assert ["the", "prompt", "of", "another", "task", "2", "8", "groups"] in lines
    assert ["text", "of", "an", "earlier", "row", "in", "the", "group", "2", "31", "texts"] in lines
    at = lines.index(["task_id", "step", "rows", "prompts", "golds", "shared", "prompt"])
    assert lines[at + 1 : at + 5] == [
        ["t0", "1", "4", "2", "–"],
        ["t1", "1", "4", "1", "–", "yes"],
        ["t2", "1", "4", "1", "–", "yes"],
        ["t7", "1", "3", "1", "–"],
    ]
    assert "no golds of the rollouts: the result does not say what it was made from" in said
    found = assay.groups(doubtful, integrity=True)
    written = pl.read_parquet(tmp_path / "groups.parquet")
    assert written.columns == [*found.table.columns, *found.integrity.columns[3:]]
    assert written["distinct"].to_list() == [2, *[4] * 6, 3]
    data = json.loads(run(doubtful, "--integrity", "--json").stdout)
    assert data == found.as_json()
    assert "integrity" not in assay.groups(doubtful).as_json()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--max-mixed", "1"], 0, None),
        (["--max-mixed", "0"], 3, "exceeded: 1 of 8; --max-mixed allows 0"),
        (["--max-mixed", "12.5%"], 0, None),
        (["--max-mixed", "12%"], 3, "exceeded: 1 of 8; --max-mixed allows 12%"),
        (["--max-duplicates", "2"], 0, None),
        (["--max-duplicates", "1", "--max-mixed", "1"], 3, "exceeded: 2 of 31; --max-duplicates allows 1"),
    ],
)
def test_gates_are_exceeded_by_more_than_they_allow(doubtful, arguments, code, said):
    shown = run(doubtful, *arguments, code=code).stderr
    assert "several prompts" in shown
    assert (said or "exceeded") in shown if said else "exceeded" not in shown


def test_a_gate_needs_what_it_is_about(rewards, doubtful, tmp_path):
    shown = run(rewards, "--max-duplicates", "0", code=2).stderr
    assert "--max-duplicates 0: the texts of the groups are not known." in shown
    assert "name the files that were scored with --rollouts" in shown
    pl.read_parquet(doubtful).drop("prompt").write_parquet(tmp_path / "other.parquet")
    assert (
        "prompts or golds of the groups are not known"
        in run(tmp_path / "other.parquet", "--max-mixed", "0", code=2).stderr
    )
    pl.read_parquet(doubtful).clear().write_parquet(tmp_path / "empty.parquet")
    run(tmp_path / "empty.parquet", "--max-mixed", "0", "--max-duplicates", "0%")
    for arguments, message in (
        (["--near", "0.9"], "--near 0.9: only with --integrity."),
        (["--integrity", "--near", "2"], "--near 2.0: expected a number from 0 to 1."),
        (["--integrity", "--size", "0"], "--size 0: expected a number of rows, at least 1."),
        (["--max-mixed", "few"], "--max-mixed few: expected a number of rows or a percentage."),
    ):
        assert message in run(doubtful, *arguments, code=2).stderr


def test_texts_come_from_the_rollouts_that_were_scored(tmp_path):
    rows = [
        {"task_id": f"t{at // 4}", "prompt": "?", "answer": "1", "completion": "12"[at % 2] * 60} for at in range(16)
    ]
    path, other = tmp_path / "rows.jsonl", tmp_path / "moved.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assay.score_file(
        path, {"checks": [{"type": "number", "value": {"column": "answer"}}]}, tmp_path / "rewards.parquet"
    )
    facts = {"texts": 16, "duplicates": 8, "near_duplicates": 8, "mixed_golds": 0, "shared_prompt": 4}
    found = assay.groups(tmp_path / "rewards.parquet", integrity=True)
    assert {name: found.facts["integrity"][name] for name in facts} == facts
    path.rename(other)
    lost = assay.groups(tmp_path / "rewards.parquet", integrity=True)
    assert lost.facts["integrity"]["texts"] is lost.facts["integrity"]["compared"] is None
    assert any(note.startswith("no texts of the rollouts: ") for note in lost.notes)
    run(tmp_path / "rewards.parquet", "--max-duplicates", "7", "--rollouts", other, code=3)
    other.write_text(other.read_text().replace("t0", "t9"))
    assert (
        "was not made from these rollouts"
        in run(tmp_path / "rewards.parquet", "--integrity", "--rollouts", other, code=2).stderr
    )
