"""Mistakes in a spec or in its columns are told with the first batch, wherever rewards are used."""

import warnings

import pytest

import assay

TYPO = {
    "id": "a",
    "checks": [{"type": "contians", "value": "refund", "weight": 3}, {"type": "not_contains", "value": "as an AI"}],
}
BROKEN = {"id": "b", "checks": [{"type": "regex", "pattern": "(abc"}]}
GOLD = {"id": "c", "checks": [{"id": "right", "type": "number", "value": {"column": "answer"}}]}
WHEN = {
    "id": "d",
    "checks": [
        {"type": "contains", "value": "x"},
        {"type": "number", "value": {"column": "answer"}, "when": {"column": "kind", "equals": "number"}},
    ],
}


def compiled(spec, **options):
    return assay.compile(spec, **options).score_rows


def batcher(spec, **options):
    return assay.Batcher(spec, **options).outcomes_sync


def trl(spec, **options):
    reward = assay.adapters.trl(spec, **options)
    return lambda rows: reward(
        **{f"{name}s" if name == "completion" else name: [row[name] for row in rows] for name in rows[0]}
    )


def gepa_batch(spec, **options):
    evaluator = assay.adapters.gepa_batch(spec, lambda _, row: row["completion"], **options)
    return lambda rows: evaluator([("", row) for row in rows])


def lm_eval(spec, **options):
    responses = assay.adapters.lm_eval(spec, **options)
    return lambda rows: responses([[row["completion"]] for row in rows], rows)


@pytest.fixture(params=[compiled, batcher, trl, gepa_batch, lm_eval])
def way(request):
    return request.param


@pytest.mark.parametrize("spec", [TYPO, BROKEN], ids=["misspelt type", "broken pattern"])
def test_a_check_that_cannot_run_is_refused_unless_one_may_do_without(way, spec):
    with pytest.raises(assay.SpecError, match=r"contians|PatternError"):
        way(spec)
    with pytest.warns(assay.AssayWarning, match=r"contians|PatternError"):
        way(spec, strict=False)


def raised(call):
    """Return what a call raises, or what stands in the place of its results."""
    try:
        outcomes = call()
    except assay.AssayError as error:
        return error
    return outcomes[0]


@pytest.mark.parametrize(("spec", "row", "name"), [(GOLD, {"anser": 4}, "answer"), (WHEN, {"answer": 4}, "kind")])
def test_a_column_that_no_row_of_the_first_batch_has_is_an_error_with_a_guess(way, spec, row, name):
    rows = [{"completion": "x 4"} | row] * 2
    error = raised(lambda: way(spec)(rows))
    assert isinstance(error, assay.ColumnsError)
    assert f"`{name}`" in error.fact
    assert "--map" not in str(error)
    assert name != "answer" or "anser" in str(error)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not isinstance(raised(lambda: way(spec, strict=False)(rows)), BaseException)


def test_later_batches_may_lack_a_column_and_the_first_needs_it_in_one_row():
    plan = assay.compile(GOLD)
    assert plan.score_rows([{"completion": "4"}, {"completion": "4", "answer": 4}])["reward"].to_list() == [None, 1.0]
    with pytest.warns(
        assay.AssayWarning, match="no row of a batch has a gold that c/right can use: gold is missing: answer"
    ):
        assert plan.score_rows([{"completion": "4"}])["reward"].to_list() == [None]


def messages_of(plan, rows):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        plan.score_rows(rows)
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("missing", ["unscored", "fail", "pass"])
def test_golds_that_a_check_cannot_use_in_a_whole_batch_are_told_once_with_an_example(missing):
    check = GOLD["checks"][0] | {"missingGold": missing, "when": {"column": "kind", "equals": "number"}}
    plan = assay.compile({"id": "c", "checks": [check, {"type": "contains", "value": "4"}]})
    other = {"completion": "4", "answer": "four", "kind": "text"}
    told = messages_of(plan, [other, other | {"kind": "number"}])
    assert told == [
        'no row of a batch has a gold that c/right can use: gold cannot be used: answer is "four", not a number'
    ]
    assert messages_of(plan, [other | {"kind": "number"}, other]) == []
    assert messages_of(assay.compile(plan.verifiers), [other, other | {"kind": "number", "answer": 4}]) == []
    assert messages_of(assay.compile(plan.verifiers), [other]) == []


def test_a_batch_without_a_reward_is_told_with_its_commonest_reason_once():
    plan = assay.compile(GOLD)
    rows = [{"completion": completion, "answer": 4} for completion in (None, None, [])]
    (told,) = messages_of(plan, rows)
    assert told == "every row of a batch is unscored: the completion is null"
    assert messages_of(plan, rows) == []
    assert messages_of(plan, [*rows, {"completion": "4", "answer": 4}]) == []
    assert messages_of(plan, []) == []
