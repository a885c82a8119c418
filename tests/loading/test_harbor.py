"""Task folders of Harbor: read as tasks, and never run."""

import json

import pytest

import assay
from assay.loading.tasks import load_tasks

TOML = """\
schema_version = "1.1"
artifacts = []

[task]
name = "org/sum"

[metadata]
difficulty = "easy"
tags = ["a", "b"]
made = 2026-01-02
answer = 42
task_id = "not this"
expectations = {mustMention = [{text = "forty-two"}]}

[verifier]
timeout_sec = 120.0
env = {KEY = "value"}

[environment]
cpus = 1
"""
IN_PROCESS = """\
[verifier]
kind = "in_process"
fn_name = "contains"
expected = "<answer>4</answer>"
timeout_sec = 3
params = {ignore_case = true}
"""
ANSWER = {"checks": [{"type": "number", "value": {"column": "answer"}}]}


@pytest.fixture
def folder(tmp_path):
    for name, toml in (("sum", TOML), ("tagged", IN_PROCESS)):
        task = tmp_path / "set" / name
        (task / "tests").mkdir(parents=True)
        (task / "tests" / "test.sh").write_text(f"touch {tmp_path}/run")
        (task / "task.toml").write_text(toml)
        (task / "instruction.md").write_text(f"\ufeffDo {name}.\n", "utf-8")
    (tmp_path / "set" / "README.md").touch()
    return tmp_path / "set"


def test_a_task_is_its_instruction_its_metadata_and_a_verifier_of_ours(folder):
    frame, notes = load_tasks(folder)
    first, second = frame.collect().rows(named=True)
    assert first["task_id"] == "sum"
    assert first["prompt"] == "Do sum.\n"
    assert (first["difficulty"], first["tags"], first["answer"], first["verifier"]) == ("easy", ["a", "b"], 42, None)
    metadata = json.loads(first["metadata"])
    assert [*metadata] == ["difficulty", "tags", "made", "answer", "task_id", "expectations"]
    assert metadata["made"] == "2026-01-02"
    assert json.loads(second["verifier"]) == {
        "kind": "in_process",
        "fn_name": "contains",
        "expected": "<answer>4</answer>",
        "params": {"ignore_case": True},
    }
    assert notes == (
        "the tests/ of 1 task (sum) are not run, and [verifier] of task.toml names no fn_name: only a spec scores them",
    )


def test_rollouts_are_scored_by_their_folders_and_no_file_of_them_is_run(folder):
    rows = [{"task_id": "tagged", "completion": f"so <ANSWER>{n}</ANSWER>"} for n in (4, 5)]
    scored = assay.score(rows, tasks=folder)
    assert scored.select("reward", "verifier_fn").rows() == [(1.0, "contains"), (0.0, "contains")]
    rows = [{"task_id": "sum", "completion": text} for text in ("it is 42", "it is 41", "forty-two: 42")]
    scored = assay.score(rows, ANSWER, tasks=folder, keep=["difficulty", "prompt"])
    assert scored["reward"].to_list() == [1.0, 0.0, 1.0]
    assert scored.select("difficulty", "prompt").row(0) == ("easy", "Do sum.\n")
    mentions = {"checks": [{"type": "task_expectations"}]}
    assert assay.score(rows, mentions, tasks=str(folder))["reward"].to_list() == [0.0, 0.0, 1.0]
    assert not (folder.parent / "run").exists()


def test_a_folder_may_be_a_task(folder, monkeypatch):
    assert load_tasks(folder / "sum")[0].collect()["task_id"].to_list() == ["sum"]
    monkeypatch.chdir(folder / "sum")
    assert load_tasks(".")[0].collect()["task_id"].to_list() == ["sum"]


def test_a_dataset_may_have_tasks_of_both_kinds(folder):
    (folder / "dataset.toml").touch()
    (folder / "other").mkdir()
    (folder / "other" / "task.json").write_text('{"answer": 7}')
    assert load_tasks(folder)[0].collect().select("task_id", "answer").rows() == [
        ("other", 7),
        ("sum", 42),
        ("tagged", None),
    ]


def test_a_task_without_an_instruction_has_the_prompts_of_its_rollouts(folder):
    (folder / "sum" / "instruction.md").unlink()
    frame, notes = load_tasks(folder)
    assert frame.collect()["prompt"].to_list() == [None, "Do tagged.\n"]
    assert notes[0] == "no instruction.md in 1 task (sum): there, the prompt is that of the rollouts"


@pytest.mark.parametrize(
    ("kind", "message"),
    [("pytest", None), ("format_only", 'verifier kind "format_only" is not in_process')],
    ids=["of others", "of ours"],
)
def test_a_kind_is_used_only_if_it_is_ours(folder, kind, message):
    (folder / "tagged" / "task.toml").write_text(f'[verifier]\nkind = "{kind}"\n')
    rows = [{"task_id": "tagged", "completion": "4", "answer": 4}]
    if message is None:
        assert "verifier" not in load_tasks(folder)[0].collect_schema()
        assert assay.score(rows, tasks=folder, verifier_name="contains")["reward"].to_list() == [1.0]
    else:
        with pytest.raises(assay.InputError) as refused:
            assay.score(rows, tasks=folder)
        assert message in refused.value.text


def test_a_misspelt_field_beside_the_function_is_told(folder):
    (folder / "tagged" / "task.toml").write_text('[verifier]\nfn_name = "contains"\nexpected = "4"\nparam = {}\n')
    with pytest.warns(assay.AssayWarning, match="verifier.param is read by nothing. Did you mean `params`"):
        assay.score([{"task_id": "tagged", "completion": "4"}], tasks=folder)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("task.toml", b"[metadata]\nanswer =\n", ":2: not valid TOML: Invalid value (column 9)."),
        ("task.toml", b"a = '\xff'", ": not UTF-8 (byte 5)."),
        ("task.toml", b"metadata = 3", ": `metadata` must be a table, [metadata], not a number (3)."),
        ("task.toml", b"verifier = 'x'", ": `verifier` must be a table, [verifier], not a string ('x')."),
        ("instruction.md", b"\xff", ": not UTF-8 (byte 0)."),
        ("instruction.md", None, ": is a folder."),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_its_line(folder, name, content, message):
    path = folder / "sum" / name
    path.unlink()
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(assay.InputError) as refused:
        load_tasks(folder)
    assert refused.value.text == f"{path}{message}"
