"""The files of training sets, what is refused, and results that lack what an example needs."""

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from cases import each
from typer.testing import CliRunner

import assay
from assay.cli.main import app
from assay.errors import AssayWarning, InputError, UsageError

SPEC = {"id": "v", "checks": [{"type": "contains", "value": "4"}]}
TEXTS = ("It is 4.", "It is 5.", "4", "no", "44", "45")
ROWS = [
    {"task_id": f"q-{at // 3}", "prompt": f"Question {at // 3}", "completion": text, "source": "sums"}
    for at, text in enumerate(TEXTS)
]


def frame(**columns):
    one = {"task_id": ["a"], "prompt": ["p"], "completion": ["4"], "reward": [1.0], "passed": [True]}
    return pl.DataFrame(one | {name: [value] for name, value in columns.items()})


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


@pytest.fixture
def result(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assay.score_file(write(tmp_path / "rollouts.jsonl", ROWS), SPEC, tmp_path / "rewards.parquet")
    return "rewards.parquet"


def names(folder="."):
    return sorted(path.name for path in Path(folder).iterdir())


# a process of its own: load_dataset clears the environment and restores it, while threads of Polars may read it
LOAD = """
import sys, json, datasets
for folder in sys.argv[1:]:
    loaded = datasets.load_dataset(folder, cache_dir="cache")
    sizes = {split: rows.num_rows for split, rows in loaded.items()}
    print(json.dumps([sizes, datasets.concatenate_datasets([*loaded.values()]).num_rows]))
"""


def test_datasets_sees_the_splits_only(result):
    options = {"validation": 0.5, "length_ratio": None}
    cards = {f"set{seed}/": assay.export(result, "dpo", f"set{seed}/", seed=seed, **options).card for seed in range(6)}
    command = [sys.executable, "-c", LOAD, *cards]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    loaded = [json.loads(line) for line in lines]
    wanted = [{split: size for split, size in card["examples"].items() if size} for card in cards.values()]
    assert loaded == [[sizes, 2] for sizes in wanted]
    assert {len(sizes) for sizes, _ in loaded} == {1, 2}


def test_a_file_has_its_company_beside_it(result):
    made = assay.export(result, "sft", "set.jsonl", validation=0.5, keep="source")
    own = {
        "set.jsonl",
        "set.validation.jsonl",
        *(f"set.jsonl.{end}" for end in ("card.json", "card.md", "excluded.parquet")),
    }
    assert {name for name in names() if name.startswith("set")} == own
    lines = [json.loads(line) for line in Path("set.jsonl").read_text("utf-8").splitlines()]
    assert lines == made.train.to_dicts()
    assert {line["source"] for line in lines} <= {"sums"}


def test_what_an_earlier_export_left_goes_with_it_and_nothing_else(result):
    assay.export(result, "sft", "set/", target="llamafactory", validation=0.5)
    Path("set/notes.jsonl").write_text("mine", "utf-8")
    with pytest.raises(UsageError, match="already exists"):
        assay.export(result, "sft", "set/")
    assay.export(result, "sft", "set/", target="nemo-rl", overwrite=True)
    assert names("set") == ["README.md", "card.json", "excluded.parquet", "notes.jsonl", "train.jsonl"]


def test_too_few_examples_leave_no_splits(result):
    with pytest.warns(AssayWarning, match="at least 9"):
        made = assay.export(result, "sft", "set/", min_examples=9)
    assert names("set") == ["README.md", "card.json", "excluded.parquet"]
    assert made.train.is_empty()
    assert not Path("set/README.md").read_text("utf-8").startswith("---")


def test_pairs_of_several_models_are_offered():
    rows = pl.concat([frame(model="a"), frame(model="b", completion="5", reward=0.0, passed=False)])
    with pytest.warns(AssayWarning, match="give 1 pair"):
        assay.export(rows, "dpo")
    assert assay.export(rows, "dpo", group="task_id").card["used"] == 2


def test_pairs_without_a_column_of_tasks_are_of_one_prompt_and_one_model():
    rows = [
        frame(prompt=prompt, model="a", completion=text, reward=reward, passed=reward > 0)
        for prompt, text, reward in [("p", "4", 1.0), ("q", "5", 0.0), ("q", "4", 1.0)]
    ]
    rows.append(frame(prompt="p", model="b", completion="5", reward=0.0, passed=False))
    made = assay.export(pl.concat(rows).drop("task_id"), "dpo")
    assert made.train.select("assay_row", "assay_rejected_row").rows() == [(2, 1)]
    assert made.excluded.select("assay_row", "reason").rows() == [(0, "always passes"), (3, "never passes")]


def test_a_table_of_tasks_has_the_prompts(result, tmp_path):
    messages = [{"role": "system", "content": "Add."}, {"role": "user", "content": "2 + 2"}]
    tasks = write(
        tmp_path / "tasks.jsonl", [{"task_id": f"q-{at}", "prompt": messages, "answer": at} for at in range(2)]
    )
    made = assay.export(result, "prompts", tasks=tasks, min_rollouts=1, pass_rate=[0, 1])
    assert made.train["prompt"].to_list() == [messages, messages]
    assert made.train["answer"].to_list() == ["0", "1"]
    assert assay.export(result, tasks=tasks).train["prompt"][0].to_list() == messages


@each(
    "rows, message",
    [
        ([{**row, "source": "others"} for row in ROWS], "row 0: source is sums there, others here"),
        (ROWS[:4], "The rollouts have 4 rows, the result has 6"),
        (ROWS * 2, "The rollouts have 12 rows, the result has 6"),
    ],
)
def test_other_rollouts_are_refused(result, tmp_path, rows, message):
    with pytest.raises(InputError, match=message):
        assay.export(result, rollouts=write(tmp_path / "others.jsonl", rows))


def test_results_of_other_verifiers_are_not_one_scale(result):
    other = {"id": "v", "checks": [{"type": "contains", "value": "5"}]}
    assay.score_file("rollouts.jsonl", other, "others.parquet")
    with pytest.raises(UsageError, match="not on one scale"):
        assay.export([result, "others.parquet"])
    assert assay.export([result, result]).card["excluded"]["duplicate"] == 6


def test_rendered_prompts_of_verl_need_a_word(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"input": "user\nHow many?\nassistant\n", "output": "4", "gts": "4", "score": 1.0, "step": 1}]
    assay.score_file(write(tmp_path / "1.jsonl", rows), SPEC, "rewards.parquet")
    with pytest.raises(InputError, match="rendered"):
        assay.export("rewards.parquet", task="step")
    assert assay.export("rewards.parquet", task="step", format="text").card["used"] == 1


def message(**fields):
    return [{"role": "assistant", "content": "4", **fields}]


@each(
    "columns, settings, detail",
    [
        ({"prompt": ["a"]}, {}, "the prompt is not plain messages"),
        ({"prompt": 3}, {}, "the prompt is not plain messages"),
        ({"prompt": "[INST] a"}, {}, "the prompt is a rendered template"),
        ({"prompt": [{"role": "user", "content": "a"}]}, {"format": "text"}, "the prompt is messages"),
        (
            {"completion": message(content=[{"type": "text", "text": "4"}])},
            {},
            "the completion is not one text message",
        ),
        ({"completion": message() * 2}, {}, "the completion is not one text message"),
        ({"completion": message(reasoning_content="because")}, {}, "the completion has more than text"),
        ({"completion": message(flag=False)}, {"reasoning": "drop"}, "the completion has more than text"),
        ({"completion": message(call={"name": None, "of": {"a": None}})}, {}, None),
        ({"completion": message(reasoning="because")}, {"reasoning": "drop"}, None),
        ({"completion": message(calls=[], name="")}, {}, None),
    ],
)
def test_forms(columns, settings, detail):
    made = assay.export(frame(**columns), min_examples=0, **settings)
    assert made.excluded["detail"].to_list() == ([] if detail is None else [detail])


@each(
    "recipe, options, fact",
    [
        ("dop", {}, "Did you mean `dpo`"),
        ("sft", {"bset": 1}, "Did you mean `best`"),
        ("sft", {"margin": 1}, "It is a setting of dpo"),
        ("sft", {"best": 0}, "at least 1"),
        ("sft", {"best": True}, "at least 1"),
        ("sft", {"seed": 0.5}, "whole number"),
        ("sft", {"pass_rate": [0.9, 0.1]}, "two shares"),
        ("sft", {"target": "tlr"}, "Did you mean `trl`"),
        ("sft", {"keep": "prompt"}, "column of that name"),
        ("sft", {"keep": "nope"}, "no such column"),
        ("sft", {"answer": "nope"}, "no such column"),
        ("sft", {"length": "prompt"}, "whole numbers"),
        ("sft", {"where": "nope > 1"}, "no column is called"),
        ("sft", {"out": "set.csv"}, "expected a name"),
        ("sft", {"out": "set.jsonl", "target": "verl"}, "does not read"),
        ("sft", {"out": "no/where/"}, "there is no folder"),
        ({"best": 1}, {}, "is missing"),
        (3, {}, "A recipe is a name"),
    ],
)
def test_mistakes_are_named(recipe, options, fact, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=fact):
        assay.export(frame(), recipe, **options)
    assert not names()


@each("recipe", ["sft", "dpo", "kto", "prompts"])
def test_a_result_without_rows(recipe, tmp_path):
    made = assay.export(frame().clear(), recipe, f"{tmp_path}/set/", min_examples=0, overwrite=True, validation=0.5)
    assert made.train.is_empty()
    assert made.card["rows"] == made.excluded.height == 0


def test_a_settings_file_and_what_wins(tmp_path):
    (tmp_path / "strict.yaml").write_text("recipe: sft\nbest: 1\nby: length\n", "utf-8")
    card = assay.export(frame(), tmp_path / "strict.yaml", best=2).card
    assert (card["recipe"]["best"], card["recipe"]["by"], card["recipe"]["target"]) == (2, "length", "trl")


@each(
    "given, name, value",
    [
        ("validation=.5", "validation", 0.5),
        ("pass_rate=.2,0.8", "pass_rate", [0.2, 0.8]),
        ("pass_rate=[0.2, 0.8]", "pass_rate", [0.2, 0.8]),
        ("min_reward=none", "min_reward", None),
        ("best=all", "best", "all"),
        ("passing=False", "passing", False),
    ],
)
def test_settings_of_a_command_line(given, name, value, result, tmp_path):
    made = CliRunner().invoke(
        app, ["export", result, "--recipe", "sft", "--out", "set/", "--overwrite", "--set", given, "--json"]
    )
    assert json.loads(made.stdout)["recipe"][name] == value


def test_a_settings_file_may_say_none(tmp_path):
    (tmp_path / "any.yaml").write_text("recipe: dpo\nlength_ratio: none\n", "utf-8")
    assert assay.export(frame(), tmp_path / "any.yaml", min_examples=0).card["recipe"]["length_ratio"] is None


def test_names_that_are_patterns_and_prompts_that_are_instructions():
    odd = frame(**{"^x.*$": "1", "*": "2"}).rename({"prompt": "instruction"})
    made = assay.export(odd, keep=["*", "^x.*$"])
    assert made.train.select("*").to_dicts()[0]["^x.*$"] == "1"
    assert made.train["prompt"].to_list() == [[{"role": "user", "content": "p"}]]


@each("where, kept", [("1 = 1", 3), ("1 = 0", 0), ("reward >= avg(reward)", 1), (["reward > 0.1", "reward < 1"], 1)])
def test_rows_that_are_asked_for(where, kept):
    rows = pl.concat([frame(reward=reward, completion=str(reward)) for reward in (0.0, 0.25, 1.0)])
    made = assay.export(rows, where=where, min_examples=0)
    assert made.card["used"] == kept
    assert set(made.excluded["reason"]) <= {"where"}


def test_windows_of_rows_are_as_one(result, monkeypatch):
    monkeypatch.setattr("assay.insight.originals._WINDOW", 2)
    made = assay.export(result, "sft", "set.parquet", passing=False, best="all")
    assert made.train["assay_row"].to_list() == [0, 1, 2, 3, 4, 5]
    texts = [message[0]["content"] for message in made.train["completion"]]
    assert texts == list(TEXTS)
    pl.DataFrame(ROWS).write_parquet("rollouts.parquet")
    assert assay.export(result, rollouts="rollouts.parquet", passing=False, best="all").train.equals(made.train)
    for others in (ROWS[:4], ROWS * 2):
        pl.DataFrame(others).write_parquet("rollouts.parquet")
        with pytest.raises(InputError, match=f"The rollouts have {len(others)} rows"):
            assay.export(result, rollouts="rollouts.parquet")


@pytest.mark.parametrize(
    ("longer", "shorter", "equal", "noted"),
    [(12, 8, 0, False), (13, 7, 0, True), (7, 13, 0, True), (0, 0, 22, False), (6, 0, 22, True), (0, 0, 19, False)],
)
def test_a_note_says_that_chosen_texts_tend_to_be_longer_or_shorter(longer, shorter, equal, noted):
    texts = [("long one", "no")] * longer + [("ok", "long bad")] * shorter + [("ok", "no")] * equal
    rows = [
        {"task_id": str(at), "prompt": f"q{at}", "completion": text, "reward": reward, "passed": reward == 1.0}
        for at, pair in enumerate(texts)
        for text, reward in zip(pair, (1.0, 0.0), strict=True)
    ]
    card = assay.export(pl.DataFrame(rows), "dpo", length_ratio=None).card
    assert card["length"] == {"chosen_longer": longer, "chosen_shorter": shorter, "equal": equal}
    assert any("may learn length" in note for note in card["notes"]) == noted
