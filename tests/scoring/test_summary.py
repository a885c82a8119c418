"""A run in numbers: they are those of the output, whatever the batches."""

import json
import random
from collections import Counter

import polars as pl
import pytest
from cases import SPECS, each

import assay
from assay.scoring.summary import CheckSummary, Summary, _count, top
from assay.thresholds import EVER, set_to

SPEC = {
    "id": "v",
    "passThreshold": 0.75,
    "checks": [{"type": "contains", "value": "refund", "weight": 3}, {"id": "short", "type": "max_length", "value": 8}],
}
COMPLETIONS = ["a refund", "a refund for you", "no", "no", "sorry, no refunds", "sorry, no", None, None]


def test_the_numbers_are_those_a_person_would_count():
    found = assay.score_file({"completion": COMPLETIONS}, SPEC).as_json()
    assert found.pop("seconds") > 0
    assert found.pop("rows_per_second") > 0
    for check in found["checks"]:
        assert len(check.pop("reasons")) == 1
    assert found == {
        "rows": 8,
        "scored": 6,
        "problems": [],
        "mean_reward": (1.0 + 0.75 + 0.25 + 0.25 + 0.75 + 0.0) / 6,
        "pass_rate": 0.5,
        "errors": 2,
        "bad_rows": 0,
        "root": "",
        "out": None,
        "unscored": [{"reason": "the completion is null", "rows": 2}],
        "warnings": ["unscored: 2 of 8 rows (25.0 %); most often: the completion is null (2 rows)"],
        "notes": [],
        "broken": [],
        "checks": [
            {"id": "contains", "type": "contains", "weight": 3.0, "mean": 0.5, "failures": 3, "errors": 0},
            {"id": "short", "type": "max_length", "weight": 1.0, "mean": 0.5, "failures": 3, "errors": 0},
        ],
    }


@pytest.mark.parametrize("spec", SPECS, ids=lambda path: path.stem)
def test_the_numbers_of_an_example_are_those_of_its_output(tmp_path, spec):
    tasks = next(iter(spec.parent.glob("tasks.*")), None)
    found = assay.score_file(spec.parent / "rollouts.jsonl", spec, tmp_path / "out.parquet", tasks=tasks)
    out = pl.read_parquet(tmp_path / "out.parquet")
    assert found.rows == out.height
    assert found.scored == out["reward"].count()
    assert found.passed == out["passed"].sum()
    assert found.errors == out["error"].count()
    assert found.mean_reward == pytest.approx(out["reward"].mean(), rel=1e-12)
    assert found.pass_rate == pytest.approx(out["passed"].mean(), rel=1e-12)
    assert len(found.checks) >= 2
    for check in found.checks:
        scores = out[f"check/{spec.stem}/{check.id}"].drop_nulls()
        assert check.mean == pytest.approx(scores.mean(), rel=1e-12)
        assert check.failures == sum(score < 1 for score in scores)
        assert check.rows == len(scores)
        lines = [line for said in out["feedback"].drop_nulls() for line in said.split("\n")]
        assert check.failures == sum(line.startswith(f"{check.id}: ") for line in lines)


@pytest.mark.parametrize("rows_a_group", [1, 3, 1000])
def test_batches_do_not_change_the_numbers(tmp_path, rows_a_group):
    spec = {"id": "v", "checks": [SPEC["checks"][0] | {"weight": 0.1}, SPEC["checks"][1] | {"weight": 0.2}]}
    pl.DataFrame({"completion": COMPLETIONS * 9}).write_parquet(tmp_path / "in.parquet", row_group_size=rows_a_group)
    found = assay.score_file(tmp_path / "in.parquet", spec).as_json()
    whole = assay.score_file({"completion": COMPLETIONS * 9}, spec).as_json()
    times = {"seconds": 0, "rows_per_second": 0}
    assert found | times == whole | times | {"mean_reward": pytest.approx(whole["mean_reward"], rel=1e-12)}


def test_reasons_of_one_row_are_counted_one_by_one():
    wanted = {"mustMention": [{"anyOf": ["refund", "money"]}, {"text": "sorry"}], "mustNotMention": [{"text": "card"}]}
    rows = [("sorry", wanted), ("a gift card", wanted), ("refund, sorry", wanted), ("anything", {})]
    rows = [{"completion": text, "metadata": {"expectations": said}} for text, said in rows]
    [check] = assay.score_file(rows, {"checks": [{"type": "task_expectations"}]}).checks
    assert (check.rows, check.failures) == (4, 2)
    assert check.reasons == {
        "must mention one of: refund, money": 2,
        "must mention one of: sorry": 1,
        "must not mention: card": 1,
    }


@each("as_text", [True, False])
def test_rows_without_expectations_are_counted_and_a_misspelt_key_is_named(as_text):
    asked = {"expectations": {"mustMention": [{"text": "refund"}]}}
    slip = {"expectations": {"mustMentions": [{"text": "refund"}]}}
    metadata = [asked, None, {"expectations": {}}, slip, slip, asked]
    rows = [{"completion": "x", "metadata": one} for one in metadata] + [{"completion": None, "metadata": None}]
    frame = rows if as_text else pl.DataFrame(rows, infer_schema_length=None)
    found = assay.score_file(frame, {"checks": [{"type": "task_expectations"}, {"type": "max_length", "value": 9}]})
    silent = "task_expectations: 2 of 6 rows: no expectations, so the score is 1.0"
    assert found.as_json()["notes"] == [
        silent,
        f"{silent}; unknown key `metadata.expectations.mustMentions`. Did you mean `mustMention`?",
    ]
    assert assay.score_file([rows[0]], {"checks": [{"type": "task_expectations"}]}).notes == []
    single = assay.score_file([rows[1]], {"checks": [{"type": "task_expectations"}]})
    assert single.notes == ["task_expectations: 1 of 1 row: no expectations, so the score is 1.0"]


def test_several_verifiers_prefix_their_checks_and_notes_name_what_the_owner_should_know():
    broken = {"id": "b", "checks": [{"type": "regex", "pattern": "("}, {"type": "vibes"}]}
    with pytest.warns(assay.AssayWarning):
        found = assay.score_file([{"completion": "x", "reward": 1}, {"completion": None, "reward": 0}], [SPEC, broken])
    assert [(check.id, check.mean, check.errors) for check in found.checks] == [
        ("v/contains", 0.0, 0),
        ("v/short", 1.0, 0),
        ("b/regex", 0.0, 1),
    ]
    assert found.errors == 2
    assert [note.split(":")[0] for note in found.broken] == ["b/regex"]
    assert [note.split(":")[0] for note in found.notes] == [
        "b/vibes",
        "the input's column `reward` is kept as `prior_reward`",
    ]


@each(("completions", "unscored"), [([], []), ([None], [("the completion is null", 1)])])
def test_without_a_scored_row_there_is_no_mean(completions, unscored):
    found = assay.score_file(pl.DataFrame({"completion": completions}, {"completion": str}), SPEC)
    assert (found.rows, found.scored, found.passed, found.errors) == (len(completions), 0, 0, len(completions))
    assert list(found.unscored.items()) == unscored
    assert (found.mean_reward, found.pass_rate) == (None, None)
    assert [(check.mean, check.failures) for check in found.checks] == [(None, 0), (None, 0)]
    assert json.loads(json.dumps(found.as_json(), allow_nan=False)) == found.as_json()


def test_a_limit_and_an_output_are_part_of_the_numbers(tmp_path):
    found = assay.score_file({"completion": COMPLETIONS}, SPEC, tmp_path / "out.jsonl", limit=3)
    assert (found.rows, found.out) == (3, str(tmp_path / "out.jsonl"))
    assert found.rows_per_second == pytest.approx(3 / found.seconds)


def test_the_most_frequent_come_first_and_equals_in_order_of_the_alphabet():
    counts = Counter({"d": 1, "b": 2, "c": 1, "a": 2, "e": 9})
    assert top(counts, 4) == [("e", 9), ("a", 2), ("b", 2), ("c", 1)]
    many = CheckSummary("c", "contains", 1.0, reasons=Counter(dict.fromkeys("hgfedcbai", 1)))
    assert [one["template"] for one in many.as_json()["reasons"]] == [*"abcde"]
    assert many.as_json()["more_reasons"] == 4


def test_reasons_are_counted_by_template_however_many_there_are(monkeypatch):
    monkeypatch.setattr("assay.scoring.summary._REASONS_KEPT", 3)
    spec = {"id": "v", "checks": [{"type": "number", "value": 7}]}
    texts = [str(at % 10) for at in range(100)] + ["none"]
    check = assay.score_file({"completion": texts}, spec).checks[0]
    assert len(check.reasons) <= 5
    [first, second] = check.as_json()["reasons"]
    assert (first["template"], first["rows"]) == ("the number is …, expected …", 90)
    assert {example["rows"] for example in first["examples"]} == {10}
    assert (second["rows"], second["examples"]) == (1, [])


@pytest.mark.parametrize("seed", range(5))
def test_many_reasons_are_counted_as_few_are(monkeypatch, seed):
    monkeypatch.setattr("assay.scoring.summary._REASONS_KEPT", 20)
    rng = random.Random(seed)
    words = [
        *("a", 'is "b"', "c is 1", "", "é", "has 2 and 3"),
        *(f'"{at}" is {at % 7} {"xyz"[at % 3]}' for at in range(30)),
    ]
    columns, by_python = Counter(), Counter()
    for rows in (1, 7, 40, 200, 200, 5):
        drawn = pl.Series(
            [rng.choice([*words, None, f"new {rng.choice('pqrstuvw')}{rng.randrange(99)}"]) for _ in range(rows)]
        )
        for counts, least in ((columns, 0), (by_python, EVER)):
            with set_to(counted_reasons=least):
                _count(counts, drawn)
    assert len(columns) > 20
    assert columns == by_python


def test_rewards_whose_sum_no_float_holds_have_no_mean_and_end_no_run(tmp_path):
    huge = assay.Rubric([lambda completion: {"a": 1e308, "b": -1e308}[completion]])
    for name, texts in (("over", "aaaa"), ("both", "aabb"), ("under", "bbbb")):
        source = tmp_path / f"{name}.parquet"
        pl.DataFrame({"completion": [*texts]}).write_parquet(source, row_group_size=2)
        found = assay.score_file(source, huge, f"{tmp_path}/{name}/", isolate=False, part_bytes=1)
        assert (found.rows, found.scored, found.mean_reward) == (4, 4, None)
        assert json.loads(json.dumps(found.as_json(), allow_nan=False)) == found.as_json()


def test_an_empty_summary_divides_by_nothing():
    empty = Summary([], [])
    assert (empty.mean_reward, empty.pass_rate, empty.rows_per_second) == (None, None, None)
