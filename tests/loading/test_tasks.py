"""Task tables: wherever they are, each rollout is scored by its own task, in order."""

import json

import polars as pl
import pytest

import assay
from assay.insight.probes import task_of
from assay.loading.tasks import load_tasks

SPEC = {"id": "v", "checks": [{"type": "task_expectations"}]}


def expects(phrase):
    return {"expectations": {"mustMention": [{"text": phrase}]}}


TASKS = [
    {"task_id": "a", "metadata": expects("alpha"), "level": 1},
    {"task_id": "b", "metadata": expects("beta"), "level": 2},
]
ROLLOUTS = [
    {"task_id": "b", "completion": "beta"},
    {"task_id": "a", "completion": "Alpha"},
    {"task_id": "zz", "completion": "alpha beta"},
    {"task_id": None, "completion": "alpha beta"},
    {"task_id": "a", "completion": "beta"},
]


def rewards(rollouts, tasks, **options):
    return assay.score(rollouts, SPEC, tasks=tasks, **options)["reward"].to_list()


def lines(tasks):
    return "".join(json.dumps(task) + "\n" for task in tasks)


def parquet(folder):
    pl.DataFrame(TASKS).write_parquet(folder / "tasks.parquet")
    return folder / "tasks.parquet"


def jsonl(folder):
    (folder / "tasks.jsonl").write_text(lines(TASKS))
    return folder / "tasks.jsonl"


def yaml_list(folder):
    (folder / "tasks.yaml").write_text(
        "- {task_id: a, metadata: {expectations: {mustMention: [{text: alpha}]}}, level: 1}\n"
        "- task_id: b\n  metadata:\n    expectations:\n      mustMention:\n        - text: beta\n  level: 2\n"
    )
    return str(folder / "tasks.yaml")


def yaml_tasks(folder):
    (folder / "tasks.yml").write_text("\ufeff" + json.dumps({"version": 1, "tasks": TASKS}), "utf-8")
    return folder / "tasks.yml"


def harbor(folder):
    (folder / "dataset.toml").write_text('name = "set"\n')
    (folder / "notes").mkdir()
    for folder_name, task in (("a", {k: v for k, v in TASKS[0].items() if k != "task_id"}), ("other", TASKS[1])):
        (folder / folder_name).mkdir()
        (folder / folder_name / "task.json").write_text(json.dumps(task))
    return folder


def as_text(_):
    return [{**task, "metadata": json.dumps(task["metadata"])} for task in TASKS]


SOURCES = [parquet, jsonl, yaml_list, yaml_tasks, harbor, as_text]
OBJECTS = {
    "struct": lambda _: pl.DataFrame(TASKS),
    "lazy": lambda _: pl.LazyFrame(TASKS),
    "arrow": lambda _: pl.DataFrame(TASKS).to_arrow(),
    "rows": lambda _: TASKS,
    "both kinds of text": lambda folder: [as_text(folder)[0], TASKS[1]],
}


def test_every_task_table_gives_the_same_rewards_in_the_order_of_the_rollouts(tmp_path):
    for make in [*SOURCES, *OBJECTS.values()]:
        tasks = make(tmp_path)
        scored = assay.score(ROLLOUTS, SPEC, tasks=tasks)
        assert scored.columns == [
            *("task_id", "reward", "passed", "feedback", "error", "score/v", "check/v/task_expectations")
        ]
        assert scored.select("task_id", "reward", "passed", "feedback", "error").rows() == [
            ("b", 1.0, True, "", None),
            ("a", 1.0, True, "", None),
            ("zz", None, None, None, "task_id zz is not in the task table"),
            (None, None, None, None, "task_id null is not in the task table"),
            ("a", 0.0, False, "task_expectations: must mention one of: alpha", None),
        ]
        assert scored["score/v"].to_list() == [1.0, 1.0, None, None, 0.0]
        assert load_tasks(tasks)[0].collect().select("task_id", "level").rows() == [("a", 1), ("b", 2)]


def test_many_rollouts_keep_their_order_in_memory_and_file_to_file(tmp_path):
    rollouts = pl.DataFrame({"at": range(20_000)}).with_columns(
        task_id=pl.col("at") * 7 % 1000, completion=pl.format("x{}", pl.col("at") % 3)
    )
    rollouts.write_parquet(tmp_path / "rollouts.parquet", row_group_size=500)
    tasks = [{"task_id": at, "metadata": expects(f"x{at % 2}")} for at in reversed(range(1000))]
    expected = [(at, float(at % 3 == at * 7 % 1000 % 2)) for at in range(20_000)]
    assert assay.score(rollouts, SPEC, tasks=tasks).select("at", "reward").rows() == expected
    assay.score_file(tmp_path / "rollouts.parquet", SPEC, tmp_path / "rewards.parquet", tasks=tasks)
    assert pl.read_parquet(tmp_path / "rewards.parquet").select("at", "reward").rows() == expected


def test_task_ids_are_compared_as_text():
    for ours, theirs in [(7, "7"), ("7", 7), (7, 7), ("007", "007"), ("é🎉", "é🎉"), ("", "")]:
        tasks = [{"task_id": theirs, "metadata": expects("beta")}]
        assert rewards([{"task_id": ours, "completion": "beta"}], tasks) == [1.0]


NO_TASK = pytest.mark.filterwarnings("ignore:no rollout finds its task:assay.AssayWarning")


@NO_TASK
@pytest.mark.parametrize(("ours", "theirs"), [("7", "07"), ("a", "A"), ("a", "a "), ("null", None), (None, None)])
def test_ids_that_differ_are_not_joined(ours, theirs):
    tasks = [{"task_id": theirs, "metadata": expects("beta")}, TASKS[1]]
    assert rewards([{"task_id": ours, "completion": "beta"}], tasks) == [None]


def test_what_a_task_says_replaces_what_the_rollout_says():
    rollout = {"task_id": "b", "completion": "beta", "metadata": expects("gamma"), "level": 9}
    scored = assay.score([rollout], SPEC, tasks=TASKS)
    assert scored.select("reward", "level").rows() == [(1.0, 9)]


def test_the_completion_is_always_the_rollout_s():
    tasks = [{**TASKS[0], "completion": "alpha, says the reference answer"}]
    assert rewards([{"task_id": "a", "completion": "no"}], tasks) == [0.0]


def test_the_messages_of_a_task_are_what_it_asks_and_not_a_completion(tmp_path):
    asked = [{"role": "user", "content": "Where is Bergen?"}]
    (tmp_path / "tasks.jsonl").write_text(lines([{"task_id": "a", "messages": asked, "answer": "Norway"}]))
    rollouts = [{"task_id": "a", "completion": "in Norway"}]
    spec = {
        "checks": [
            {"type": "contains", "value": {"column": "answer"}},
            {"type": "contains", "value": "Bergen", "on": [{"column": "messages"}]},
        ]
    }
    scored = assay.score(rollouts, spec, tasks=tmp_path / "tasks.jsonl", keep=["messages"])
    assert scored["reward"].to_list() == [1.0]
    assert json.loads(scored["messages"][0]) == asked
    assert not load_tasks(tmp_path / "tasks.jsonl")[1]
    assert task_of({"completion": "x", "messages": asked}).prompt == "Where is Bergen?"


def test_columns_of_the_tasks_reach_the_output_only_when_kept():
    assert "level" not in assay.score(ROLLOUTS, SPEC, tasks=TASKS).columns
    scored = assay.score(ROLLOUTS, SPEC, tasks=TASKS, keep=["level", "task_id"])
    assert scored.columns[:3] == ["level", "task_id", "reward"]
    assert scored["level"].to_list() == [2, 1, None, None, 1]


@NO_TASK
@pytest.mark.parametrize(
    ("completion", "tasks", "error"),
    [
        (None, TASKS, "the completion is null"),
        ("x", TASKS[1:], "task_id a is not in the task table"),
        (None, TASKS[1:], "task_id a is not in the task table"),
        ("x", pl.DataFrame(TASKS)[:0], "task_id a is not in the task table"),
        ("x", [{"task_id": "a", "metadata": None}], None),
    ],
)
def test_a_rollout_that_cannot_be_scored_says_why(completion, tasks, error):
    scored = assay.score(pl.DataFrame({"task_id": ["a"], "completion": [completion]}), SPEC, tasks=tasks)
    assert scored.select("reward", "error").rows() == [(1.0 if error is None else None, error)]


def test_tables_that_cannot_be_joined_are_refused():
    for rollouts, tasks, fact, hint in [
        (
            ROLLOUTS,
            [*TASKS, {"task_id": "b"}],
            'The task table has task_id "b" more than once.',
            "Each task needs its own id.",
        ),
        (
            ROLLOUTS,
            [{"task_id": 7}, {"task_id": "7"}],
            'The task table has task_id "7" more than once.',
            "Each task needs its own id.",
        ),
        (
            ROLLOUTS,
            [{"taskId": "a", "metadata": {}}],
            "The task table has no `task_id`. Columns: taskId, metadata.",
            "Did you mean `taskId`?",
        ),
        (
            [{"Task_ID": "a", "completion": "x"}],
            TASKS,
            "The rollouts have no `task_id` to join their tasks on. Columns: Task_ID, completion.",
            "Did you mean `Task_ID`?",
        ),
        (
            [{"completion": "x"}],
            TASKS,
            "The rollouts have no `task_id` to join their tasks on. Columns: completion.",
            "Rename a column with --map task_id=COLUMN.",
        ),
    ]:
        with pytest.raises(assay.InputError) as refused:
            assay.score(rollouts, SPEC, tasks=tasks)
        assert refused.value.text == f"{fact}\n\n{hint}"


def test_an_id_that_is_not_a_scalar_is_refused_by_its_column():
    for of in ["rollout", "task"]:
        for ident in [["a"], {"a": 1}]:
            rollouts = [{"task_id": ident if of == "rollout" else "a", "completion": "x"}]
            tasks = [{"task_id": ident if of == "task" else "a", "metadata": {}}]
            with pytest.raises(assay.ColumnsError, match="`task_id`"):
                assay.score(rollouts, SPEC, tasks=tasks)


def test_a_task_file_that_cannot_be_read_is_named(tmp_path):
    for name, content, said in [
        ("tasks.yaml", None, ": No such file or directory."),
        ("tasks.yaml", "", ": expected a list of tasks, or `tasks:` with a list."),
        ("tasks.yaml", "tasks: 5", ": expected a list of tasks, or `tasks:` with a list."),
        ("tasks.yaml", "- task_id: a\n- 5", ": "),
        ("tasks.yaml", "- &x {task_id: a}\n- *x", ":2: the alias *x is not allowed; write the value out."),
        ("tasks.yaml", "- task_id: a\n\tmetadata: {}", ":2: "),
        ("tasks.yaml", b"- {task_id: \xff}", ": "),
        ("tasks.csv", b"task_id,answer\na,\xff\n", ": invalid utf-8 sequence"),
        ("tasks.csv", b"task_id,answer\n\xff,b\n", ": invalid utf-8 sequence"),
        ("set/a/task.json", "{", ": not readable JSON: "),
        ("set/a/task.json", "[" * 100_000, ": not readable JSON: nested too deeply."),
        ("set/a/task.json", "9" * 5000, ": not readable JSON: a number with too many digits."),
        ("set/a/task.json", "[]", ": a task must be a JSON object, not list."),
    ]:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is not None:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        if path.suffix == ".json":
            (tmp_path / "set" / "dataset.toml").touch()
        with pytest.raises(assay.InputError) as refused:
            load_tasks(tmp_path / "set" if path.suffix == ".json" else path)
        assert refused.value.text.startswith(f"{path}{said}")


def test_a_harbor_folder_without_tasks_is_refused(tmp_path):
    (tmp_path / "dataset.toml").touch()
    with pytest.raises(assay.InputError) as refused:
        load_tasks(tmp_path)
    assert refused.value.text == f"{tmp_path}: has dataset.toml, but no */task.toml or */task.json."


def test_yaml_ids_stay_what_they_look_like(tmp_path):
    (tmp_path / "tasks.yaml").write_text("- task_id: no\n- task_id: 1:30\n- task_id: 0x1F\n- task_id: 7\n")
    assert load_tasks(tmp_path / "tasks.yaml")[0].collect()["task_id"].to_list() == ["no", "1:30", "0x1F", "7"]


def test_where_the_task_says_nothing_the_rollout_s_own_words_hold():
    own = '{"expectations": [{"text": "x"}]}'
    rollouts = [
        {"task_id": "a", "completion": "y", "metadata": own},
        {"task_id": "b", "completion": "y", "metadata": own},
    ]
    tasks = [{"task_id": "a", "metadata": None}, {"task_id": "b", "metadata": '{"expectations": [{"text": "y"}]}'}]
    out = assay.score(rollouts, {"checks": [{"type": "task_expectations"}]}, tasks=tasks)
    assert out["reward"].to_list() == [0.0, 1.0]


def test_a_run_says_when_tasks_and_rollouts_both_have_a_column():
    for own, said in [
        (None, []),
        ("{}", ["the task table's `metadata` is used; the rollouts' column is used only where the task has null"]),
        (
            pl.Series([{"a": 1}]),
            ["the task table's `metadata` is used; the rollouts' column is ignored, because its type differs"],
        ),
    ]:
        rollouts = pl.DataFrame({"task_id": ["a"], "completion": ["y"], "model": ["m"]})
        if own is not None:
            rollouts = rollouts.with_columns(metadata=own if isinstance(own, pl.Series) else pl.lit(own))
        tasks = [{"task_id": "a", "model": "n", "completion": "z", "metadata": '{"expectations": [{"text": "y"}]}'}]
        found = assay.score_file(rollouts, {"checks": [{"type": "task_expectations"}]}, tasks=tasks)
        assert (found.notes, found.mean_reward) == (said, 1.0)


def test_the_float_that_pandas_makes_of_an_integer_finds_its_task():
    rollouts = pl.DataFrame({"task_id": [1.0, 2.5, None], "completion": ["x"] * 3})
    out = assay.score(rollouts, {"checks": [{"type": "json_valid"}]}, tasks=[{"task_id": 1}])
    assert out["error"].to_list() == [
        None,
        "task_id 2.5 is not in the task table",
        "task_id null is not in the task table",
    ]


def test_the_row_loop_knows_a_missing_task_too():
    from assay.names import TASK_FOUND
    from assay.scoring.reference import score_row

    verifier = assay.load_verifier({"checks": [{"type": "json_valid"}]})
    row = {"task_id": "a", "completion": "1", TASK_FOUND: None}
    assert score_row(row, [verifier])["error"] == "task_id a is not in the task table"
    assert score_row({**row, TASK_FOUND: True}, [verifier])["reward"] == 1.0


def test_a_line_of_a_task_table_that_is_no_task_is_named(tmp_path):
    path = tmp_path / "tasks.jsonl"
    path.write_text(json.dumps(TASKS[0]) + "\nbroken\n")
    with pytest.raises(assay.InputError, match=r"tasks\.jsonl:2: not valid JSON") as refused:
        load_tasks(path)
    assert refused.value.hint == "Fix the task table: every line must be a task."


def test_what_is_odd_about_a_task_table_is_told_as_of_any_file(tmp_path):
    path = tmp_path / "tasks.jsonl"
    path.write_text(json.dumps(TASKS[0]) + "\n\n")
    assert load_tasks(path)[1] == (f"{path}:2: a line blank and skipped",)
