"""Two plans on the same rows: each has the results that it has alone, and checks that are equal run once."""

import random
from copy import deepcopy

import polars as pl
import pytest
from cases import sized
from fuzz_specs import draw_rows, draw_spec
from polars.testing import assert_frame_equal

import assay
from assay.compiling.sides import _known, beside
from assay.expressions.shared_columns import text
from assay.spec.canonical import fingerprint

TEXTS = ["A refund is on its way.", "No.", '{"answer": 1}', None, "refund " * 40]
TEN = [
    {"id": "a", "type": "contains", "value": "refund"},
    {"id": "b", "type": "contains_any", "values": ["No", "Never"], "negate": True},
    {"id": "c", "type": "regex", "pattern": r"(?i)\brefund\b.*way"},
    {"id": "d", "type": "min_length", "value": 5},
    {"id": "e", "type": "max_length", "value": 100},
    {"id": "f", "type": "json_valid"},
    {"id": "g", "type": "json_keys", "keys": ["answer"]},
    {"id": "h", "type": "similarity", "value": "A refund is on its way", "threshold": 0.5},
    {"id": "i", "type": "equals", "value": {"column": "gold"}},
    {"id": "j", "type": "contains", "value": "on", "on": [{"regex": r"\w+"}]},
]


def compiled(*specs, rows):
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return frame, [assay.compile(spec, frame) for spec in specs]


def run_times(plan, earlier):
    """The hidden columns that a plan computes after another one."""
    known = _known(plan, earlier)
    return [expr.meta.output_name() for layer in plan.layers for expr in layer if expr.meta.output_name() not in known]


def sides_of(plans, frame):
    both = beside(plans, frame.lazy(), ["0/", "1/"]).collect()
    return [
        both.select(pl.col(at + name).alias(name) for name in plan.results)
        for plan, at in zip(plans, ("0/", "1/"), strict=True)
    ]


def edited(rng, spec):
    """A spec with other weights, ids, order, thresholds and negations, and some other checks."""
    spec = deepcopy(spec)
    rng.shuffle(spec["checks"])
    for at, check in enumerate(spec["checks"]):
        if (what := rng.randrange(6)) == 0:
            check["id"] = f"other-{at}"
        elif what == 1 and "weight" in check:
            check["weight"] += 1
        elif what == 2:
            check["negate"] = not check.get("negate", False)
        elif what == 3:
            spec["checks"][at] = rng.choice(draw_spec(rng)["checks"]) | {"id": f"new-{at}"}
    return spec


def test_each_plan_has_the_results_that_it_has_alone():
    rng, shared, tried = random.Random(18), 0, 0
    for _ in range(sized(100, 12)):
        spec = draw_spec(rng)
        rows = draw_rows(rng, 12)
        try:
            frame, plans = compiled(spec, edited(rng, spec), rows=rows)
        except assay.AssayError:  # the edit makes no spec: a condition names a check that is gone
            continue
        tried += 1
        for plan, side in zip(plans, sides_of(plans, frame), strict=True):
            assert_frame_equal(side, plan.score(frame).select(side.columns), check_exact=True)
        shared += any(name.startswith("__assay/check/") for name in _known(*plans[::-1]))
    assert tried > sized(100, 12) / 2
    assert shared > tried / 10


def test_equal_checks_are_evaluated_once_whatever_their_ids_and_weights():
    other = [{**check, "id": f"{check['id']}-2", "weight": 3, "required": True} for check in TEN[::-1]]
    rows = [{"completion": line, "gold": "No."} for line in TEXTS]
    frame, plans = compiled({"id": "v", "checks": TEN}, {"id": "v", "checks": other}, rows=rows)
    ran = run_times(plans[1], plans[0])
    assert not [name for name in ran if "check/" in name or "reason/" in name or "error/" in name]
    assert {name.removeprefix("__assay/").split("/")[0] for name in ran} == {
        *("unscored", "score", "reward", "passed", "feedback", "error")
    }
    first, second = sides_of(plans, frame)
    for check in TEN:
        assert first[f"check/v/{check['id']}"].equals(second[f"check/v/{check['id']}-2"])


@pytest.mark.parametrize(
    "change",
    [
        {"value": "refunds"},
        {"negate": True},
        {"threshold": 0.5},
        {"on": [{"regex": "refund"}]},
        {"type": "not_contains"},
    ],
)
def test_a_check_that_differs_runs_again(change):
    checks = [{"id": "a", "type": "contains", "value": "refund"}, {"id": "b", "type": "json_valid"}]
    sides = [{"id": "v", "checks": checks}, {"id": "v", "checks": [checks[0] | change, checks[1]]}]
    frame, plans = compiled(*sides, rows=[{"completion": line} for line in TEXTS])
    ran = run_times(plans[1], plans[0])
    assert "__assay/check/v/a" in ran
    assert "__assay/check/v/b" not in ran
    for plan, side in zip(plans, sides_of(plans, frame), strict=True):
        assert side.equals(plan.score(frame).select(side.columns))


def test_checks_that_swap_their_ids_swap_their_columns():
    checks = [{"id": "a", "type": "contains", "value": "refund"}, {"id": "b", "type": "min_length", "value": 5}]
    swapped = [checks[0] | {"id": "b"}, checks[1] | {"id": "a"}]
    frame, plans = compiled({"checks": checks}, {"checks": swapped}, rows=[{"completion": line} for line in TEXTS])
    first, second = sides_of(plans, frame)
    assert first["check/verifier/a"].equals(second["check/verifier/b"])
    assert first["check/verifier/b"].equals(second["check/verifier/a"])
    assert second["feedback"].equals(plans[1].score(frame)["feedback"])


def test_where_other_rows_are_unscored_no_check_is_taken_over():
    gold = {"id": "i", "type": "equals", "value": {"column": "gold"}}
    rows = [{"completion": line, "gold": at % 2 * "No." or None} for at, line in enumerate(TEXTS)]
    frame, plans = compiled({"checks": TEN[:1]}, {"checks": [*TEN[:1], gold]}, rows=rows)
    assert "__assay/check/verifier/a" in run_times(plans[1], plans[0])
    for plan, side in zip(plans, sides_of(plans, frame), strict=True):
        assert side.equals(plan.score(frame).select(side.columns))


def test_code_of_a_user_runs_as_often_as_for_one_of_them():
    seen = []

    def longer(texts):
        seen.extend(texts)
        return texts.str.len_chars() > 6

    class Counting(assay.Check):
        type = "counting"

        def row(self, row):
            return len(row.text) > 6

        def expr(self):
            return text().map_batches(longer, pl.Boolean, is_elementwise=True)

    spec = {"checks": [{"id": "c", "type": "counting"}]}
    frame = pl.DataFrame({"completion": [f"text {at}" for at in range(50)]})
    plans = [assay.compile(spec, frame, checks=[Counting]) for _ in range(2)]
    seen.clear()
    beside(plans[:1], frame.lazy(), ["0/"]).collect()
    alone = sorted(seen)
    assert set(alone) == set(frame["completion"])
    seen.clear()
    first, second = sides_of(plans, frame)
    assert sorted(seen) == alone
    assert first.equals(second)


def test_a_fingerprint_is_what_decides_the_scores():
    form = {"id": "a", "type": "contains", "weight": 1.0, "required": False, "negate": False, "params": {"value": "x"}}
    assert fingerprint(form) == fingerprint({**form, "id": "b", "weight": 2.0, "required": True, "gate": True})
    assert fingerprint(form) != fingerprint({**form, "negate": True})
    assert fingerprint({"type": "t", "params": {}, "negate": False}) == (
        "7a92671e8b6e2f4100a47697de98b6c9da5b311409c34af8bdde293f3e79473b"
    )
