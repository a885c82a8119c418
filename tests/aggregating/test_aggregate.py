"""From check scores to verdicts: the rules of SEMANTICS, and exactness whatever the weights and the batch."""

import random
from functools import reduce
from operator import add

import polars as pl
import pytest
from cases import sized

import assay
from assay.aggregating.combining import mean, mean_steps
from assay.aggregating.pipeline import one_line
from assay.thresholds import EVER, set_to


def score(completion, *checks, **verifier):
    return assay.score([{"completion": completion}], {"id": "v", "checks": list(checks), **verifier}).row(0, named=True)


HOLDS = {"type": "contains", "value": "yes"}
FAILS = {"type": "contains", "value": "no"}


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_the_weighted_mean_is_the_left_fold_bit_for_bit(engine):
    rng = random.Random(5)
    for height in [1, 2, 5, 300] * sized(40, 4):
        numbers = range(rng.choice((*range(1, 9), 64, 65, 200)))
        weights = [rng.choice((rng.random(), 10 ** rng.uniform(-300, 300), 0.1, 0.7, 1.1, 3, 0)) for _ in numbers]
        if not sum(weights):
            continue
        rows = [[rng.choice((0.0, 1.0, 1.0, rng.random(), 1 / 3)) for _ in weights] for _ in range(height)]
        names = [f"c{at}" for at in numbers]
        frame = pl.LazyFrame(rows, schema=dict.fromkeys(names, pl.Float64), orient="row")
        for step in mean_steps(names, weights, "mean"):
            frame = frame.with_columns(step)
        found = frame.select("mean").collect(engine=engine).to_series().to_list()
        folds = [reduce(add, (w * s for w, s in zip(weights, row, strict=True))) for row in rows]
        assert found == [fold / reduce(add, weights) for fold in folds] == [mean(row, weights) for row in rows]


def test_all_perfect_is_exactly_one_for_any_weights():
    rng = random.Random(1)
    for _ in range(500):
        weights = [10 ** rng.uniform(-12, 12) for _ in range(rng.randrange(1, 12))]
        assert mean([1.0] * len(weights), weights) == 1.0
    checks = [{**HOLDS, "id": f"c{at}", "weight": 10 ** rng.uniform(-9, 9)} for at in range(11)]
    out = assay.score([{"completion": "yes"}] * 3, {"checks": checks})
    assert out["reward"].to_list() == [1.0] * 3
    assert score("yes", *checks)["reward"] == 1.0


def test_the_plan_of_many_checks_is_never_deep():
    checks = [{"type": "contains", "value": f"w{at}", "id": f"c{at}"} for at in range(400)]
    plan = assay.compile([{"id": f"v{n}", "checks": checks[n:]} for n in (0, 300)])
    summed = [expr for layer in plan.layers for expr in layer if "score/v" in expr.meta.output_name()]
    assert len(summed) == 7 + 2
    assert max(str(expr).count(" + ") for expr in summed) < 200
    text = "w3 w33 w310"
    out = plan.score(pl.DataFrame({"completion": [text]}))
    assert out["score/v0"].item() == sum(f"w{at}" in text for at in range(400)) / 400
    assert out["score/v300"].item() == 1 / 100


def test_weights_thresholds_required_and_negate():
    out = score("yes", HOLDS, {**FAILS, "id": "x", "weight": 0})
    assert (out["reward"], out["feedback"]) == (1.0, 'x: does not contain "no"')
    assert score("yes", {**HOLDS, "weight": 3}, {**FAILS, "id": "x"})["reward"] == 0.75
    for threshold, passed in ((0, True), (0.5, True), (0.500001, False), (1, False), (None, False)):
        assert score("yes", HOLDS, FAILS, passThreshold=threshold)["passed"] is passed
    out = score("yes", HOLDS, {**FAILS, "required": True}, passThreshold=0)
    assert (out["reward"], out["passed"]) == (0.5, False)
    for text, value, passed in (("yes", 0.0, False), ("x", 1.0, True)):
        out = score(text, {**HOLDS, "negate": True, "required": True})
        assert (out["reward"], out["passed"]) == (value, passed)


def test_negate_turns_partial_credit_over():
    row = {"completion": "a", "metadata": '{"expectations": [{"text": "a"}, {"text": "b"}, {"text": "c"}]}'}
    out = assay.score([row], {"checks": [{"type": "task_expectations", "negate": True}]})
    assert out["reward"].item() == 1 - 1 / 3
    assert out["feedback"].item() == "task_expectations: must not hold: meets the task's expectations"


@pytest.mark.parametrize("negate", [False, True])
def test_a_broken_check_scores_zero_either_way_and_says_so(negate):
    with pytest.warns(assay.AssayWarning, match="v/regex: broken: PatternError"):
        out = score("yes", HOLDS, {"type": "regex", "pattern": "(", "negate": negate})
    said = "regex: PatternError: missing ), unterminated subpattern at position 0"
    assert (out["reward"], out["feedback"], out["error"]) == (0.5, said, said)


@pytest.mark.parametrize("negate", [False, True])
def test_a_row_without_its_structure_is_an_error_either_way(negate):
    rows = [{"completion": '{"a":1}', "expected_output_schema": None}]
    out = assay.score(rows, {"checks": [{"type": "expected_output_schema", "negate": negate}]})
    assert out["reward"].item() == 0.0
    assert out["error"].item() == "expected_output_schema: ValueError: no expected_output_schema on this row"


def test_an_unknown_type_is_left_out_of_the_weights_and_noted_on_every_row():
    with pytest.warns(assay.AssayWarning, match='skipped, unknown check type "containz". Did you mean `contains`'):
        out = score("yes", {"type": "containz", "weight": 9}, HOLDS)
    assert (out["reward"], out["passed"], out["error"]) == (1.0, True, None)
    assert out["feedback"] == 'containz: skipped, unknown check type "containz". Did you mean `contains`?'


def test_feedback_is_in_spec_order_and_a_null_completion_is_unscored():
    assert score("yes", HOLDS)["feedback"] == ""
    out = score("maybe", FAILS, {**HOLDS, "id": "second"})
    assert out["feedback"] == 'contains: does not contain "no"\nsecond: does not contain "yes"'
    names = ("reward", "passed", "feedback", "score/v", "check/v/contains")
    assert score(None, HOLDS) == dict.fromkeys(names) | {"error": "the completion is null"}


def test_several_verifiers_are_a_plain_mean_and_all_must_pass():
    one = {"id": "one", "checks": [HOLDS]}
    two = {"id": "two", "checks": [HOLDS, {**FAILS, "id": "x"}]}
    three = {"id": "three", "checks": [FAILS], "passThreshold": 0}
    out = assay.score([{"completion": "yes"}], [one, two, three]).row(0, named=True)
    assert out["reward"] == (1.0 + 0.5 + 0.0) / 3
    assert out["passed"] is False
    assert out["feedback"] == 'two/x: does not contain "no"\nthree/contains: does not contain "no"'
    assert [out[f"score/{name}"] for name in ("one", "two", "three")] == [1.0, 0.5, 0.0]


def test_a_reason_with_line_breaks_stays_one_line():
    assert one_line("a\r\nb\nc") == "a b c"
    row = {"completion": "", "metadata": '{"expectations": [{"text": "a", "message": "say\\n\\nit"}]}'}
    out = assay.score([row], {"checks": [{"type": "task_expectations"}]})
    assert out["feedback"].item() == "task_expectations: say it"


def test_words_are_the_same_for_few_rows_and_for_many():
    message = '{"expectations": [{"text": "a", "message": "say\\r\\nit"}]}'
    texts = ["yes", "no", "", "a\nb", "yes a", None, "```json\n1```", '{"é": 1}']
    rows = [{"completion": text, "metadata": metadata} for text in texts for metadata in (message, None, "{}", "[")]
    kinds = ["json_valid", {"type": "json_keys", "requiredKeys": ["é\n"]}, "task_expectations"]
    checks = [HOLDS, FAILS, *({"type": kind} if isinstance(kind, str) else kind for kind in kinds)]
    spec = {"checks": [{**check, "id": f"c{at}", "negate": at % 3 == 1} for at, check in enumerate(2 * checks)]}
    results = []
    for few in (0, EVER):
        with set_to(small_batch=few):
            results.append(assay.score(rows, spec))
    assert results[0].equals(results[1])
    assert "say it" in results[0]["feedback"].str.join().item()
