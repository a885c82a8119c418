"""``assay.suspects``: the worked cases, a definition in plain Python on drawn rows, and what has no suspects."""

import json
import math
import random
from collections import Counter, defaultdict

import polars as pl
import pytest
from cases import DATA
from typer.testing import CliRunner
from worked_cases import worked

import assay
from assay import InputError, UsageError
from assay.cli.main import app
from assay.insight.evidence.answers import answers_of
from assay.insight.evidence.reader import reader_of
from assay.names import TEXT

ROLLOUTS = DATA / "gsm8k_rollouts.parquet"
NUMBER = {"checks": [{"id": "right", "type": "number", "value": {"column": "answer"}}]}
KEPT = ["task_id", "model", "completion"]


def plain(rows):  # noqa: C901  (one definition on one page)
    """Return what the definition says, a task after the other; rows are (task, model, answer, passes), the listing as tuples."""
    tasks = defaultdict(list)
    for number, (task, model, answer, passes) in enumerate(rows):
        tasks[task].append((number, model, answer, passes))
    one_model = len({model for _, model, _, _ in rows}) < 2
    right, of, same, any_two, shares = Counter(), Counter(), 0.0, 0.0, {}
    for task, own in tasks.items():
        golds = {answer for _, _, answer, passes in own if passes and answer is not None}
        sizes = Counter(model for _, model, _, _ in own)
        gold, wrong = Counter(), defaultdict(Counter)
        for _, model, answer, passes in own:
            if passes or answer in golds:
                gold[model] += 1 / sizes[model]
            elif answer is not None:
                wrong[model][answer] += 1 / sizes[model]
        shares[task] = golds, gold, wrong
        of.update([*sizes])
        right.update(gold)
        if any(passes for *_, passes in own):
            voters = [*wrong.values()]
            if one_model:
                voters = [{a: 1.0} for _, _, a, passes in own if not passes and a is not None and a not in golds]
            for at, one in enumerate(voters):
                for other in voters[at + 1 :]:
                    same += sum(share * other.get(answer, 0) for answer, share in one.items())
                    any_two += sum(one.values()) * sum(other.values())
    chance = (same + 1) / (any_two + 2)
    odds = {model: (right[model] + 1) / (of[model] + 2) for model in of}
    weights = {model: max(0.0, math.log(share / ((1 - share) * chance))) for model, share in odds.items()}
    listing = []
    for task, (golds, gold, wrong) in shares.items():
        places = defaultdict(list)
        for number, _, answer, passes in tasks[task]:
            if not passes and answer is not None and answer not in golds:
                places[answer].append(number)
        scores = {a: sum(w * (wrong[m][a] - gold[m]) for m, w in weights.items()) for a in places}
        passes = sum(passed for *_, passed in tasks[task])
        found = [(score, len(places[a]), -places[a][0], a) for a, score in scores.items() if score > 1e-9]
        listing += [(task, *max(found, key=lambda one: (round(one[0], 9), *one[1:3])), passes)] if found else []
    listing.sort(key=lambda one: (-round(one[1], 9), -one[2], -one[3]))
    return [(task, answer, rows, passes, -row) for task, _, rows, row, answer, passes in listing], weights, chance


def listed(suspects):
    return [tuple(task[name] for name in ("task_id", "answer", "rows", "passes", "row")) for task in suspects.tasks]


def frame_of(rows):
    frame = pl.DataFrame(rows, schema=["task_id", "model", "said", "passed"], orient="row")
    return frame.with_columns(reward=pl.col("passed").cast(pl.Float64))


@pytest.mark.parametrize("models", [["a"], ["a", "b"], ["a", "b", "c", "é", None]], ids=len)
@pytest.mark.parametrize("seed", range(6))
def test_is_the_definition_on_drawn_rows(models, seed):
    draw = random.Random(f"{seed} {models}")
    names = [f"t{at}" for at in range(draw.choice([1, 4, 30]))]
    rows = []
    for _ in range(draw.choice([3, 40, 200])):
        task, answer = draw.choice(names), draw.choice([None, *"wxyz"])
        rows.append((task, draw.choice(models), answer, answer == "w" or (answer == "x" and draw.random() < 0.2)))
    rows += [(names[0], models[0], "y", False)] * 2
    listing, weights, chance = plain([(task, model or "–", answer, passes) for task, model, answer, passes in rows])
    found = assay.suspects(frame_of(rows), "said", limit=1000)
    assert listed(found) == listing
    assert found.found == len(listing)
    assert found.chance == pytest.approx(chance)
    assert [*found.weights.values()] == pytest.approx([weights[model] for model in sorted(weights)])
    assert ("there is one model" in " ".join(found.notes)) is (len(models) == 1)
    assert found.as_json() == assay.suspects(frame_of(rows).sample(fraction=1, seed=seed), "said").as_json() | {
        "tasks": found.as_json()["tasks"]
    }


@pytest.mark.parametrize("case", range(2))
def test_worked_cases(tmp_path, case):
    expected = worked("verifiers", "d", case)
    rollouts = pl.read_parquet(ROLLOUTS)
    planted = pl.col("task_id").replace_strict(expected["planted"], default=None, return_dtype=pl.Float64)
    gold = pl.coalesce(planted.cast(pl.String), "answer")
    assay.score_file(rollouts.with_columns(answer=gold), NUMBER, tmp_path / "r.parquet", keep=KEPT)
    found = assay.suspects(tmp_path / "r.parquet", "right")
    assert found.chance == pytest.approx(expected["chance"])
    assert found.weights == pytest.approx(expected["weights"])
    assert [task["task_id"] for task in found.tasks] == [task for task, *_ in expected["top"]]
    for task, (_, score, answer, rows, passes) in zip(found.tasks, expected["top"], strict=True):
        assert (task["score"], task["answer"]) == pytest.approx((score, answer))
        assert (task["rows"], task["passes"]) == (rows, passes)
    assert sum(task["task_id"] in expected["planted"] for task in found.tasks) / 50 == expected["precision_at_50"]


@pytest.mark.parametrize(
    ("check", "answers"),
    [
        ({"type": "number", "value": 1}, {"a 2 b": 2.0, "2.0": 2.0, "none": None}),
        ({"type": "equals", "value": "x"}, {" Oslo": "oslo", "OSLO": "oslo"}),
        ({"type": "equals", "value": "x", "caseSensitive": True, "on": [{"tag": "a"}]}, {"<a>Oslo</a>": "Oslo", "b": None}),
        ({"type": "choice", "value": "A"}, {"Answer: (B)": "B", "The answer is B.": "B"}),
        ({"type": "list_equals", "value": ["x"], "as": "set"}, {"b, a, b": "a, b"}),
        ({"type": "list_equals", "value": ["x"]}, {"b,a": "b, a"}),
        ({"type": "json_match", "value": {}}, {'{"b": 1.0, "a": [2]}': '{"a": [2], "b": 1}', "no": None}),
        ({"type": "math", "value": "1", "on": ["boxed"]}, {"\\boxed{ x }": "x"}),
    ],
    ids=lambda value: value.get("type", ""),
)  # fmt: skip
def test_answers_are_what_the_check_compares(check, answers):
    reader = reader_of(assay.load_verifier({"checks": [check]}).checks[0])
    assert answers_of(reader, pl.DataFrame({TEXT: [*answers]})).to_list() == [*answers.values()]


def test_reads_answers_from_the_inputs(tmp_path):
    rows = [
        {"task_id": task, "model": model, "completion": "7", "answer": "8" if task in "ab" else "7"}
        for task in "abcde"
        for model in "xy"
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    assay.score_file(tmp_path / "rows.jsonl", NUMBER, tmp_path / "r.parquet", keep=["task_id", "model"])
    assert [task["answer"] for task in assay.suspects(tmp_path / "r.parquet", "right").tasks] == [7.0, 7.0]
    (tmp_path / "rows.jsonl").rename(tmp_path / "moved.jsonl")
    with pytest.raises(InputError, match="the texts that it reads cannot be had") as caught:
        assay.suspects(tmp_path / "r.parquet", "right")
    assert caught.value.hint == "Name the files that were scored with --rollouts, or a column with the answers."
    moved = assay.suspects(tmp_path / "r.parquet", "right", rollouts=tmp_path / "moved.jsonl")
    assert [task["answer"] for task in moved.tasks] == [7.0, 7.0]
    command = [
        "suspects",
        str(tmp_path / "r.parquet"),
        "--answer",
        "right",
        "--rollouts",
        str(tmp_path / "moved.jsonl"),
    ]
    assert "2 of 5 tasks" in CliRunner().invoke(app, command).stderr
    (tmp_path / "moved.jsonl").write_text(json.dumps(rows[0]) + "\n", "utf-8")
    with pytest.raises(InputError, match="The rollouts have 1 row, the result has 10"):
        assay.suspects(tmp_path / "r.parquet", "right", rollouts=tmp_path / "moved.jsonl")


ROWS = [("t", "a", "x", True), ("t", "b", "y", False), ("u", "a", "y", False)]


@pytest.mark.parametrize(
    ("frame", "answer", "error", "message"),
    [
        (frame_of(ROWS), "siad", UsageError, r"no such column or check\.\n\nDid you mean `said`\?"),
        (frame_of(ROWS).drop("task_id"), "said", InputError, "no column `task_id`"),
        (frame_of(ROWS).drop("passed"), "said", InputError, "no column `passed`"),
        (frame_of(ROWS[1:]), "said", InputError, "no task has two rows"),
        (frame_of(ROWS).with_columns(task_id=None), "said", InputError, "no task has two rows"),
        (frame_of(ROWS).with_columns(said=pl.concat_list("said")), "said", UsageError, "expected texts, numbers"),
    ],
)
def test_says_what_is_wrong(frame, answer, error, message):
    with pytest.raises(error, match=message):
        assay.suspects(frame, answer)


def test_refuses_a_check_that_reads_no_answer(tmp_path):
    spec = {"checks": [{"id": "c", "type": "contains", "value": "x"}]}
    assay.score_file(
        [{"task_id": 1, "completion": "y"}] * 2, spec, tmp_path / "r.parquet", keep=["task_id", "completion"]
    )
    with pytest.raises(UsageError, match="does not read an answer"):
        assay.suspects(tmp_path / "r.parquet", "c")


@pytest.mark.parametrize(
    "values", [[None] * 3, [True, False, True], [1.5, float("nan"), float("inf")], [b"x", b"y", None]]
)
def test_answers_of_any_type(values):
    frame = frame_of(ROWS).with_columns(said=pl.Series(values))
    json.dumps(assay.suspects(frame, "said").as_json(), allow_nan=False)


def test_names_the_column_of_golds_as_a_mistake():
    frame = frame_of(ROWS).with_columns(gold=pl.lit("x"))
    assert "not that of the golds" in " ".join(assay.suspects(frame, "gold").notes)


def test_prints_the_command_that_shows_a_row(tmp_path):
    path = tmp_path / "a b.parquet"
    rows = [{"task_id": "\x1b[31mt", "completion": "7", "answer": "8"}] * 2
    rows += [{"task_id": task, "completion": "7", "answer": "7"} for task in "abc"]
    assay.score_file(rows, NUMBER, path, keep=["task_id", "completion"])
    shown = CliRunner().invoke(app, ["suspects", str(path), "--answer", "right"])
    assert shown.exit_code == 0
    assert f'assay show "{path}" --row 0' in shown.stderr
    assert "\x1b[31m" not in shown.stderr
    data = json.loads(CliRunner().invoke(app, ["suspects", str(path), "--answer", "right", "--json"]).stdout)
    assert {name: data["tasks"][0][name] for name in ("task_id", "answer", "row")} == {
        "task_id": "\x1b[31mt",
        "answer": 7.0,
        "row": 0,
    }
