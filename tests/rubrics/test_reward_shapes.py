"""The shapes of reward functions: columns by name, reasons, metrics, batches as TRL makes them, and rows they do not apply to."""

import asyncio
import json
import random
import subprocess
import sys

import polars as pl
import pytest
import shaped_rewards as shaped
from cases import sized
from waiting import PATIENCE

import assay
from assay.calls.limits import Graded, graded
from assay.compiling.verifiers import verifiers_of_run
from assay.rewards.reward_function import reward_function
from assay.scoring.reference import score_rows
from assay.testing import assert_plan_conforms, hostile_texts
from assay.thresholds import set_to


def rollouts(number, seed=0):
    rng = random.Random(seed)
    return [
        {
            "prompt": f"p{at % 5}",
            "completion": text,
            "answer": rng.choice(["a", "b", None]),
            "difficulty": rng.choice([1, 2, 0]),
            "model": rng.choice(["m", "n\n", ""]),
            "name": rng.choice(["x", "y"]),
            "tags": rng.choice([[], ["t"], None]),
            "extra": rng.choice([{"a": 1, "b": None}, {"a": 2, "b": [1]}]),
        }
        for at, text in enumerate(hostile_texts(number, seed))
    ]


def scored(rows, *funcs, weights=None, **options):
    return assay.score(rows, assay.Rubric([*funcs], weights), **options)


# ── both faces ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("rows_at_once", [3, 512])
@pytest.mark.parametrize("name", ["rows_only", "trl_only"])
def test_columns_say_what_the_row_loop_says(name, rows_at_once):
    with set_to(reward_rows=rows_at_once):
        assert_plan_conforms(verifiers_of_run(getattr(shaped, name)), rollouts(sized(3_000, 80), 3))


def test_columns_say_what_the_row_loop_says_of_rollouts_of_one_example():
    frame = assay.scan(rollouts(sized(3_000, 200), 4)).collect()
    specs = verifiers_of_run(shaped.rubric)
    scored_rows = assay.compile(shaped.rubric, frame, keep=[]).score(frame).to_dicts()
    assert list(map(repr, scored_rows)) == list(map(repr, score_rows(frame.to_dicts(), specs)))


def test_a_batch_changes_nothing():
    rows = rollouts(40, 5)
    whole = assay.score(rows, shaped.rows_only)
    for size in (1, 2, 39):
        with set_to(reward_rows=size, small_batch=0):
            assert assay.score(rows, shaped.rows_only).equals(whole)
    backwards = assay.score(rows[::-1], shaped.rows_only)
    assert backwards.reverse().equals(whole)
    assert (
        pl.concat([assay.score([row], shaped.rows_only) for row in rows], how="diagonal_relaxed")
        .select("reward", "error", "feedback")
        .equals(whole.select("reward", "error", "feedback"))
    )


def test_processes_and_threads_say_the_same():
    rows = rollouts(30, 6)
    wanted = assay.score(rows, shaped.rubric)
    for options in ({"workers": 2}, {"function_timeout": PATIENCE}):
        assert assay.score(rows, shaped.rubric, **options).equals(wanted)


def test_files_and_parts_say_the_same(tmp_path):
    rows = rollouts(70, 8)
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    wanted = assay.score(path, shaped.rows_only)
    assay.score_file(path, shaped.rows_only, tmp_path / "out.parquet")
    assert pl.read_parquet(tmp_path / "out.parquet").equals(wanted)
    assay.score_file(path, shaped.rows_only, f"{tmp_path}/parts/", part_bytes=4_000)
    parts = pl.concat([pl.read_parquet(part) for part in sorted(tmp_path.glob("parts/*.parquet"))])
    assert parts.equals(wanted)


# ── columns by name ─────────────────────────────────────────────────────────────────────────────────────────────────────

ROW = {"completion": "a", "prompt": "p", "answer": "b", "difficulty": 3, "model": "m", "id": 7, "extra": {"x": 1}}


def test_a_column_reaches_the_argument_of_its_name():
    def named(completion, difficulty, /, model, *, extra, missing="none"):
        return float((completion, difficulty, model, extra, missing) == ("a", 3, "m", {"x": 1}, "none"))

    frame = scored([ROW], named)
    assert frame["reward"].to_list() == [1.0]
    assert {"difficulty", "model", "extra"} <= {*frame.columns}  # they pass through


def test_kwargs_take_all_columns_and_arguments():
    seen = []

    def takes(completion, **kwargs):
        seen.append(kwargs)
        return 1.0

    def own(parser, difficulty, **kwargs):
        return float(parser == "mine" and difficulty == 3 and "difficulty" not in kwargs and "parser" not in kwargs)

    rubric = assay.Rubric([takes, own])
    rubric.class_objects["parser"] = "mine"
    assert assay.score([ROW | {"parser": "a column"}], rubric)["reward"].to_list() == [2.0]
    [kwargs] = seen
    assert {"prompt", "answer", "state", "task", "info", "example_id", "parser"} <= kwargs.keys()
    columns = {name: kwargs[name] for name in ROW if name != "completion"}
    assert columns == {name: value for name, value in ROW.items() if name != "completion"}
    assert kwargs["example_id"] == 7
    assert not [name for name in kwargs if name.startswith("__")]


def test_a_default_stands_for_a_column_that_is_not_there():
    def scaled(completion, scale=0.5):
        return scale

    assert scored([ROW], scaled)["reward"].to_list() == [0.5]
    assert scored([ROW | {"scale": 0.25}], scaled)["reward"].to_list() == [0.25]


def test_arguments_that_no_column_has_are_refused_before_row_one():
    calls = []

    def hard(completion, dificulty, rating):
        calls.append(completion)

    with pytest.raises(assay.ColumnsError) as caught:
        scored([ROW], hard)
    text = str(caught.value)
    assert "dificulty: read by function (hard/hard)" in text
    assert "rating: read by function (hard/hard)" in text
    assert "Did you mean `difficulty` for `dificulty`?" in text
    assert not calls

    def lists(completions, rating):
        return calls.append(completions)

    with pytest.raises(assay.ColumnsError, match=r"rating: read by function \(lists/lists\)"):
        scored([ROW], lists)
    assert not calls


def test_a_task_table_brings_the_columns_that_functions_name():
    def named(completion, rating):
        return rating

    rows, tasks = [{"task_id": "q", "completion": "a"}], [{"task_id": "q", "rating": 0.75, "other": 1}]
    assert scored(rows, named, tasks=tasks)["reward"].to_list() == [0.75]


# ── reasons and metrics ─────────────────────────────────────────────────────────────────────────────────────────────────

NO_NUMBER = "ValueError: the reward is not a finite number"


@pytest.mark.parametrize(
    ("given", "reward", "feedback", "error"),
    [
        ((0.5, "half"), 0.5, "f: half", None),
        ((1, "why not"), 1.0, "", None),
        ((0.5, None), 0.5, "f: the reward is below 1", None),
        ((0.5, ""), 0.5, "f: the reward is below 1", None),
        ((0.5, "two\nlines"), 0.5, "f: two lines", None),
        ({"score": 0.5}, 0.5, "f: the reward is below 1", None),
        ({"score": 0.5, "reason": "half"}, 0.5, "f: half", None),
        ({"score": True, "reason": "no"}, 1.0, "", None),
        ((float("nan"), "no"), 0.0, f"f: {NO_NUMBER}", f"f: {NO_NUMBER}"),
        (("0.5", "no"), 0.0, f"f: {NO_NUMBER}", f"f: {NO_NUMBER}"),
        (
            {"score": None},
            0.0,
            None,
            "f: TypeError: float() argument must be a string or a real number, not 'NoneType'",
        ),
        ({}, 0.0, None, "f: ValueError: the mapping has no `score`"),
        ((1.0, 2.0), 0.0, None, "f: TypeError: float() argument must be a string or a real number, not 'tuple'"),
        ((1.0, "a", "b"), 0.0, None, "f: TypeError: float() argument must be a string or a real number, not 'tuple'"),
        ([1.0, "a"], 0.0, None, "f: TypeError: float() argument must be a string or a real number, not 'list'"),
        (None, 0.0, None, "f: TypeError: float() argument must be a string or a real number, not 'NoneType'"),
    ],
    ids=str,
)
def test_a_reward_may_say_why(given, reward, feedback, error):
    def f(completion):
        return given

    row = scored([ROW], f).row(0, named=True)
    assert (row["reward"], row["error"]) == (reward, error)
    assert row["feedback"] == (f"{error}" if feedback is None else feedback)

    async def f(completion):
        return given

    assert scored([ROW], f).row(0, named=True) == row

    def f(completions, prompts):
        return [given]

    if given is not None:
        assert scored([ROW], f).select("reward", "feedback", "error").row(0) == (reward, row["feedback"], row["error"])


def test_a_penalty_and_a_metric_say_why_by_their_weights():
    def f(completion):
        return 0.5, "why"

    assert scored([ROW], f, weights=[-1.0])["feedback"].to_list() == ["f: why"]
    assert scored([ROW], f, weights=[0.0])["feedback"].to_list() == [""]


def test_declared_metrics_are_members_of_weight_0():
    @assay.reward(metrics=["words", "late"])
    def f(completion):
        return {"score": 0.5, "words": len(completion.split()), **({"late": "no number"} if completion == "a" else {})}

    rows = [{"completion": "a"}, {"completion": "a b c"}]
    frame = scored(rows, f, weights=[2.0])
    assert frame.select("reward", "score/f", "score/f/words", "score/f/late").rows() == [
        (1.0, 0.5, 1.0, None),
        (1.0, 0.5, 3.0, None),
    ]
    assert frame["score/f/late"].dtype == pl.Float64
    assert frame["error"].to_list() == [None, None]
    summary = assay.score_file(pl.DataFrame(rows), assay.Rubric([f]))
    assert [(check.id, check.mean) for check in summary.checks] == [("f", 0.5), ("f/words", 2.0), ("f/late", None)]


def test_entries_that_are_not_declared_do_not_vanish_without_a_word():
    def f(completion):
        return {"score": 1.0, "words": 3, "note": "text"}

    with pytest.warns(assay.AssayWarning) as warned:
        frame = scored([ROW] * 3, f)
    assert [str(warning.message) for warning in warned] == [
        f"f returns `{name}`, which is not a declared metric and is dropped: @assay.reward(metrics=['{name}'])"
        for name in ("words", "note")
    ]
    assert [name for name in frame.columns if "/" in name] == ["score/f"]


@pytest.mark.parametrize("name", ["", "a/b", "a\n", "score", "reason", 3])
def test_names_that_cannot_be_metrics(name):
    with pytest.raises(ValueError, match="cannot be the name of a metric"):
        assay.reward(metrics=[name])
    with pytest.raises(TypeError, match=r"metrics is a list of names: metrics=\['words'\]"):
        assay.reward(metrics="words")
    with pytest.raises(TypeError, match="wrap it in a function"):
        assay.reward(len)
    with pytest.raises(TypeError, match="must be callable"):
        assay.reward(3)


def test_hostile_values_of_a_mapping():
    class Odd(dict):
        def __contains__(self, name):
            raise KeyError("odd")

    assert graded(Odd()) == (0.0, "KeyError: 'odd'")
    long = graded((0.5, "x" * 20_000 + "\ud800"))[0]
    assert len(long.reason) == 10_000
    assert graded((0.5, "\ud800"))[0] == Graded(0.5, "\\ud800")
    assert graded({"score": 1, 3: 10**400, "x": [1]})[0].metrics == {"3": None, "x": None}


# ── TRL ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def kind(func, **objects):
    function = reward_function(func, objects)
    return "batch" if function.batched else "group" if function.group else "row"


SHAPES = {
    "row": [lambda completion, answer: 0, lambda completion, **kwargs: 0],
    "group": [
        *(lambda completions: 0, lambda completions, answers, states: 0, lambda completions, answers, parser: 0),
        *(lambda prompts, completions, scale=2.0: 0, lambda prompts, completions, **kwargs: 0),
    ],
    "batch": [
        *(lambda completions, answer, **kwargs: 0, lambda prompts, completions, solution: 0),
        *map(assay.reward(batched=True), (lambda completions, answers: 0, lambda **kwargs: 0)),
    ],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_which_functions_are_of_which_shape(shape):
    assert {kind(func, parser=1) for func in SHAPES[shape]} == {shape}


TRL_ROWS = [
    {"prompt": "p", "completion": "a", "answer": "a", "level": 1},
    {"prompt": "p", "completion": "b", "answer": "a", "level": 2},
    {"prompt": "q", "completion": "a", "answer": None, "level": 3},
]


def test_a_function_of_trl_s_shape():
    seen = []

    def accuracy(prompts, completions, **columns):
        assert {"prompt", "completion"}.isdisjoint(columns)
        seen.extend(zip(prompts, completions, columns["level"], strict=True))
        return [
            None if gold is None else float(text == gold)
            for text, gold in zip(completions, columns["answer"], strict=True)
        ]

    for mark in (lambda func: func, assay.reward(batched=True)):
        seen.clear()
        frame = scored(TRL_ROWS, mark(accuracy))
        assert frame["reward"].to_list() == [1.0, 0.0, None]
        assert frame["passed"].to_list() == [True, False, None]
        assert frame["error"].to_list() == [None, None, "no reward function applies to the row"]
        assert sorted(seen) == [("p", "a", 1), ("p", "b", 2), ("q", "a", 3)]


def test_a_function_that_does_not_apply_adds_nothing():
    def accuracy(completions, answer, **columns):
        return [None if gold is None else float(text == gold) for text, gold in zip(completions, answer, strict=True)]

    def length(completion):
        return 0.25

    frame = scored(TRL_ROWS, accuracy, length, weights=[2.0, 1.0])
    assert frame["reward"].to_list() == [2.25, 0.25, 0.25]
    assert frame["score/accuracy"].to_list() == [1.0, 0.0, None]
    assert frame["error"].to_list() == [None, None, None]
    assert frame["feedback"][2] == "length: the reward is below 1"
    verifier = assay.load_verifier({"id": "v", "checks": [{"type": "contains", "value": "a"}]})
    assert scored(TRL_ROWS, accuracy, verifier)["reward"].to_list() == [2.0, 0.0, 1.0]
    summary = assay.score_file(pl.DataFrame(TRL_ROWS), assay.Rubric([accuracy, length]))
    assert (summary.checks[0].id, summary.checks[0].mean) == ("accuracy", 0.5)
    assert summary.errors == 0


def test_completions_are_as_they_were_loaded():
    chat = [{"role": "assistant", "content": "a"}]
    seen = []

    def sees(prompts, completions, answer, **columns):
        seen.extend(completions)
        return [1.0] * len(prompts)

    scored([row | {"completion": chat} for row in TRL_ROWS], sees)
    assert seen == [chat] * 3


def test_a_rollout_that_fails_fails_alone():
    calls = []

    def strict(completions, answer):
        calls.append(len(completions))
        if None in answer:
            raise ValueError("no answer")
        return [float(text == gold) for text, gold in zip(completions, answer, strict=True)]

    frame = scored(TRL_ROWS, strict)
    assert frame["reward"].to_list() == [1.0, 0.0, 0.0]
    assert frame["error"].to_list() == [None, None, "strict: ValueError: no answer"]
    assert 1 in calls

    def short(completions, answer):
        return [1.0]

    assert scored(TRL_ROWS, short)["error"].to_list() == [None] * 3  # one by one, each has its reward
    assert scored(TRL_ROWS, assay.reward(batched=True)(lambda completions: 1.0))["error"].null_count() == 0


def test_a_batch_that_hangs_is_not_tried_again():
    calls = []

    def hangs(completions, answer):
        calls.append(len(completions))
        while True:
            pass

    frame = scored(TRL_ROWS, hangs, function_timeout=0.2)
    assert frame["error"].to_list() == ["hangs: TimeoutError: no answer within 0.2 s"] * 3
    assert sum(calls) == 3


def test_batches_have_a_limited_size():
    sizes = []

    def sees(completions, answer):
        sizes.append(len(completions))
        return [1.0] * len(completions)

    with set_to(reward_rows=4):
        scored(TRL_ROWS * 5, sees)
    assert sorted(sizes) == [3, 4, 4, 4]


def test_a_group_function_without_examples_is_told_what_to_do():
    def relative(completions, **kwargs):
        return [1.0] * len(completions)

    rows = [{"completion": "a"}]
    with pytest.raises(assay.ColumnsError, match=r"is @assay.reward\(batched=True\)"):
        scored(rows, relative)
    assert scored(rows, assay.reward(batched=True)(relative))["reward"].to_list() == [1.0]


def test_lists_as_a_trainer_passes_them():
    def accuracy(prompts, completions, answer, **columns):
        return [
            None if gold is None else (float(text == gold), "why")
            for text, gold in zip(completions, answer, strict=True)
        ]

    rubric = assay.Rubric([accuracy])
    lists = {"tasks": ["t"] * 3, "infos": [{}] * 3, "states": [{}, {}, {}], "use_tqdm": False}
    scores = asyncio.run(rubric.score_rollouts(["p"] * 3, ["a", "b", "c"], ["a", "a", None], **lists))
    assert (scores.reward, scores.metrics) == ([1.0, 0.0, 0.0], {"accuracy": [1.0, 0.0, 0.0]})
    one = asyncio.run(rubric.score_rollout("p", "a", "a", {}))
    assert (one.reward, one.metrics) == (1.0, {"accuracy": 1.0})
    assert asyncio.run(rubric.score_rollout("p", "a", None, {})).reward == 0.0


def test_the_command_line_explains_the_shapes(tmp_path):
    code = "from assay.cli.main import main; main()"
    words = ["explain", "--rubric", "shaped_rewards:rubric", "--json"]
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path)},
        check=True,
        cwd=tmp_path,
    )
    explained = {check["id"]: check["runs_as"] for one in json.loads(done.stdout) for check in one["checks"]}
    assert explained["trl"] == "Python, in batches"
    assert explained["relative"] == "Python, all rollouts of an example together"
    assert explained["wordy/words"] == "a metric of wordy"


def test_lists_have_the_metrics_that_are_declared():
    @assay.reward(metrics=["words"])
    def f(completion):
        return {"score": 0.5, "words": 3} if completion == "a" else 0.25

    lists = {"tasks": ["t"] * 2, "infos": [{}] * 2, "states": [{}, {}], "use_tqdm": False}
    scores = asyncio.run(assay.Rubric([f]).score_rollouts(["p"] * 2, ["a", "b"], ["a", "a"], **lists))
    assert scores.metrics == {"f/words": [3.0, 0.0], "f": [0.5, 0.25]}
