"""Training sets of drawn results with drawn settings, against the definition row by row; and what holds of all of them."""

import json
import random
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import naive_export
import polars as pl
import pytest
from cases import sized
from hypothesis import given, settings
from hypothesis import strategies as st

import assay
from assay.insight.exporting.settings import settled
from assay.testing import hostile_texts

WORDS = ("sum", "half", "梨", "the", "again", "so", "🙂", "é", "take\n", "\t")
HOSTILE = tuple(hostile_texts(40))
PROMPTS = ("How many?", " How  many?\n", "Which one?", "<|im_start|>user", "", " \n\x1f", None, *HOSTILE[:5])
ERRORS = ("number: TimeoutError: too slow", "", 'a"b', None, None, None, None, None, None)
WHERE = {"model = 'elm'": lambda row: row["model"] == "elm", "reward > 0.2": lambda row: (row["reward"] or 0) > 0.2}


def text(draw):
    if draw.random() < 0.15:
        return draw.choice((*HOSTILE, "", " \n", None))
    return " ".join(draw.choices(WORDS, k=draw.randint(1, draw.choice([1, 8]))))


def messages(draw, value):
    if value is None:
        return draw.choice([None, []])
    system, tool = ([{"role": role, "content": "Be brief."}] for role in ("system", "tool"))
    before = tool if draw.random() < 0.03 else []
    before = system if sum(map(ord, value)) % 2 else before
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}] if draw.random() < 0.04 else []
    after = [{"role": "assistant", "content": "Yes"}] if draw.random() < 0.04 else []
    return [*before, *turns, {"role": "user", "content": None if draw.random() < 0.03 else value}, *after]


def answered(draw, value):
    if value is None:
        return None
    message = {"role": "assistant", "content": value, "reasoning": None, "tool_calls": None}
    message["reasoning"] = draw.choice([None, None, "", "because"]) if draw.random() < 0.2 else None
    message["tool_calls"] = draw.choice([None, [], [{"name": "find"}]]) if draw.random() < 0.2 else None
    others = [
        {"role": draw.choice(["user", "tool", "assistant"]), "content": "x", "reasoning": None, "tool_calls": None}
    ]
    return [*(others if draw.random() < 0.03 else []), message, *(others if draw.random() < 0.03 else [])]


def rows_of(draw, *, chat, policies):
    tasks = [f"q-{number}" for number in range(draw.randint(1, 6))]
    prompts = {task: draw.choice(PROMPTS[:3]) if draw.random() < 0.5 else f"Question {task}" for task in tasks}
    rows = []
    for _ in range(draw.choice([0, 1, 2, 10, 60, 90])):
        task = draw.choice(tasks)
        prompt = draw.choice(PROMPTS) if draw.random() < 0.02 else prompts[task]
        reward = None if draw.random() < 0.05 else draw.choice([0.0, 0.25, 0.5, 0.8, 1.0])
        completion = text(draw)
        rows.append(
            {
                "task_id": None if draw.random() < 0.05 else task,
                "model": draw.choice(policies),
                "step": draw.choice([1, 1, 2]) if len(policies) > 1 else 1,
                "prompt": messages(draw, prompt) if chat else prompt,
                "answer": "other" if draw.random() < 0.005 else draw.choice([f"gold of {task}", None]),
                "completion": answered(draw, completion) if chat else completion,
                "finish_reason": draw.choice(["stop", "stop", None, " LENGTH", "max_tokens"])
                if draw.random() < 0.2
                else None,
                "said": draw.choice(["1", "2", "3", None]),
                "reward": reward,
                "passed": None if reward is None else reward >= 0.5,
                "error": draw.choice(ERRORS) if draw.random() < 0.2 else None,
            }
        )
    return rows


MESSAGE = {"role": pl.String, "content": pl.String}
CALLS = pl.List(pl.Struct({"name": pl.String}))


def frame_of(rows, *, chat):
    schema = dict.fromkeys(("task_id", "model", "answer", "finish_reason", "said", "error"), pl.String)
    schema |= {"step": pl.Int64, "reward": pl.Float64, "passed": pl.Boolean}
    schema["prompt"] = pl.List(pl.Struct(MESSAGE)) if chat else pl.String
    answer = pl.List(pl.Struct({**MESSAGE, "reasoning": pl.String, "tool_calls": CALLS}))
    schema["completion"] = answer if chat else pl.String
    return pl.DataFrame(rows, schema=schema)


OPTIONS = {
    "sft": {
        "passing": [True, False], "min_reward": [None, 0.5], "best": [1, 2, 4, "all"], "by": ["reward", "length", "row"],
        "answer": [None, None, "said"],
    },
    "dpo": {
        "margin": [0, 0.25, 0.3, 0.6], "pairs": [1, 2, 3, "all"], "length_ratio": [1, 1.5, 2.5, None], "balance": [False, True],
    },
    "kto": {"per_label": [1, 2, 4, "all"]},
    "prompts": {"order": ["row", "easy", "hard"]},
}  # fmt: skip
SHARED = {
    "errors": ["exclude", "keep"], "truncated": ["exclude", "keep"], "mixed": ["exclude", "keep"], "reasoning": ["exclude", "drop"],
    "min_length": [None, 5], "max_length": [None, 25], "pass_rate": [[0, 1], [0.2, 0.8], [0.5, 1]], "min_rollouts": [1, 3],
    "validation": [0, 0.3, 0.7], "seed": [0, 7],
}  # fmt: skip


def drawn(seed):
    draw = random.Random(seed)
    recipe, chat = draw.choice([*OPTIONS]), draw.random() < 0.4
    policies = ["elm"] if recipe == "prompts" else ["elm", "oak"]
    results = [rows_of(draw, chat=chat, policies=policies) for _ in range(draw.choice([1, 1, 1, 2]))]
    settings = {name: draw.choice(values) for name, values in OPTIONS[recipe].items() if draw.random() < 0.7}
    settings |= {name: draw.choice(values) for name, values in SHARED.items() if draw.random() < 0.25}
    if recipe == "prompts":
        settings = {
            name: value
            for name, value in settings.items()
            if name not in ("truncated", "reasoning", "min_length", "max_length")
        }
    if not chat and draw.random() < 0.2:
        settings["format"] = "text"
    where = draw.choice([None, None, None, None, None, *WHERE])
    group = draw.choice([None, None, ["task_id"], ["model"]])
    if group == ["model"] or draw.random() < 0.3:
        settings["mixed"] = "keep"
    return recipe, results, settings, where, group, chat


def exported(case, **options):
    recipe, results, settings, where, group, chat = case
    frames = [frame_of(rows, chat=chat) for rows in results]
    return assay.export(frames, recipe, where=where or (), group=group or (), min_examples=0, **settings, **options)


@pytest.mark.parametrize("seed", range(sized(500, 30)))
def test_an_export_is_what_the_rows_say_one_by_one(seed):
    case = recipe, results, settings, where, group, _ = drawn(seed)
    made = exported(case)
    naive = naive_export.Export(results, recipe, settings, WHERE.get(where, lambda _: True), group)
    assert made.excluded.drop("assay_root").to_dicts() == naive.excluded()
    for split in ("train", "validation"):
        frame = getattr(made, split)
        assert frame.drop("assay_root").to_dicts() == [*naive.written(split)]
        assert made.card["examples"][split] == len(naive.side(split))
        assert made.card["units"][split] == naive.units(split)
    assert sum(made.card["pass_rates"].values()) == len(naive.pass_rates)
    assert [made.card["pass_rates"][name] for name in ("0", "1")] == [naive.pass_rates.count(rate) for rate in (0, 1)]


def joined(prompts):
    return {json.dumps([" ".join(str(message["content"]).split()) for message in prompt]) for prompt in prompts}


ONE_OF = {
    "task_id": ("a", "b", "c", "d", None),
    "prompt": ("How many?", " How  many?\n", "Which one?", "And now?", "", None),
    "answer": ("4", "5", None),
    "completion": ("4", "5", "It is 4.", "It is 5, I think.", " ", None),
    "finish_reason": ("stop", "length", None),
    "reward": (0.0, 0.25, 1.0, None),
    "error": (None, None, None, "number: too slow"),
}
RESULTS = st.lists(
    st.lists(st.fixed_dictionaries({name: st.sampled_from(values) for name, values in ONE_OF.items()}), max_size=30),
    min_size=1,
    max_size=2,
)


@st.composite
def cases(draw):
    """Results of few tasks, prompts and texts, a recipe and settings, as ``exported`` takes them."""
    recipe = draw(st.sampled_from([*OPTIONS]))
    results = draw(RESULTS)
    for row in chain(*results):
        row |= {"model": "elm", "step": 1, "said": row["answer"]}
        row["passed"] = None if row["reward"] is None else row["reward"] > 0.5
    known = settled(recipe, {})
    options = {name: st.sampled_from(values) for name, values in (OPTIONS[recipe] | SHARED).items() if name in known}
    settings = draw(st.fixed_dictionaries({}, optional=options))
    return (
        recipe,
        results,
        settings,
        draw(st.sampled_from([None, *WHERE])),
        draw(st.sampled_from([None, ["task_id"]])),
        False,
    )


@given(cases())
@settings(max_examples=sized(400, 25))
def test_what_holds_of_every_export(case):
    made = exported(case)
    rows = sum(map(len, case[1]))
    assert made.card["rows"] == rows == made.card["used"] + made.excluded.height
    assert made.card["used"] + sum(made.card["excluded"].values()) == rows
    assert not {*made.train["assay_task"]} & {*made.validation["assay_task"]}
    assert not joined(made.train["prompt"]) & joined(made.validation["prompt"])
    for frame in (made.train, made.validation):
        for name in ("assay_reward", "assay_rejected_reward"):
            assert name not in frame.columns or not frame[name].null_count()


@given(cases())
@settings(max_examples=sized(40, 3))
def test_the_same_input_gives_the_same_bytes(case):
    files = []
    for _ in range(2):
        with TemporaryDirectory() as folder:
            exported(case, out=f"{folder}/set/")
            files.append({path.name: path.read_bytes() for path in Path(folder, "set").iterdir()})
    assert files[0] == files[1]


def test_a_side_does_not_change_with_rows_settings_or_other_tasks():
    rows = [
        {
            "task_id": f"q-{at // 4}",
            "prompt": f"Question {at // 4}",
            "completion": str(at),
            "reward": at % 2 / 1,
            "passed": at % 2 == 1,
        }
        for at in range(400)
    ]
    whole = assay.export(pl.DataFrame(rows), "sft", validation=0.4)
    part = assay.export(pl.DataFrame(rows[100:300]), "kto", validation=0.4, per_label=1)
    assert {*part.validation["assay_task"]} < {*whole.validation["assay_task"]}
    assert {*part.train["assay_task"]} < {*whole.train["assay_task"]}
