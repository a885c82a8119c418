"""A row's verdict depends on that row alone, and on nothing silently lost on the way to it."""

import json
import warnings
from decimal import Decimal

import polars as pl
import pytest
from cases import sized

import assay
from assay.compiling.verifiers import verifiers_of_run
from assay.functions import registry as fns
from assay.scoring.reference import score_rows
from assay.testing import assert_plan_conforms
from assay.values.rows import from_rows

LONELY = [
    *({"completion": "42", "expected": 42}, {"completion": "1.5", "expected": 1.5}),
    *({"completion": "1.0", "expected": 1.0}, {"completion": "True", "expected": True}),
    *({"completion": "a", "expected": "a"}, {"completion": "{'a': 1}", "expected": {"a": 1}}),
    *({"completion": "1", "expected": [2, 1]}, {"completion": "1.5", "expected": Decimal("1.5")}),
    {"completion": "2.25", "expected": Decimal("2.25")},
    {"completion": "A", "expected": "a", "params": {"ignore_case": "yes"}},
    {"completion": "a", "expected": "a", "params": {"ignore_case": 0, "n": 2}},
    {"completion": "a", "expected": "a", "params": {"n": 2.5, "ignore_case": []}},
]


@pytest.fixture
def registry(monkeypatch):
    monkeypatch.setattr(fns, "_REGISTRY", dict(fns._REGISTRY))


@pytest.mark.parametrize("by", [1, 4, 7])
def test_no_row_changes_what_another_one_expects(by, tmp_path):
    for first, row in enumerate(LONELY):
        rows = [row, LONELY[(first + by) % len(LONELY)]]
        assert assay.score(rows, verifier_name="exact_match")["reward"].to_list() == [1.0, 1.0], rows
        if all(not isinstance(row["expected"], Decimal) for row in rows):
            path = tmp_path / "rows.jsonl"
            path.write_text("\n".join(map(json.dumps, rows)))
            assert assay.score(path, verifier_name="exact_match")["reward"].to_list() == [1.0, 1.0], rows


def test_falsy_params_stay_falsy_beside_strings(tmp_path):
    rows = [
        {"completion": "A", "expected": "a", "params": {"ignore_case": value}} for value in (False, "yes", 0, None, 1)
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    for source in (rows, path):
        assert assay.score(source, verifier_name="exact_match")["reward"].to_list() == [0.0, 1.0, 0.0, 0.0, 1.0]


@pytest.mark.usefixtures("registry")
def test_params_reach_a_function_as_they_were_written(tmp_path):
    fns.register("nth", lambda output, expected, params: float(output[params["n"]] == expected))
    rows = [{"completion": "abc", "fn_name": "nth", "expected": "c", "params": {"n": n}} for n in (2, 2.5)]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    for source in (rows, path):
        scored = assay.score(source)
        assert scored["reward"].to_list() == [1.0, 0.0]
        assert scored["error"].to_list()[0] is None


@pytest.mark.parametrize("said", ["NaN", "Infinity", "-Infinity"])
def test_golds_that_are_no_numbers_are_compared_in_jsonl(tmp_path, said):
    path = tmp_path / "rows.jsonl"
    lines = [f'{{"completion": "{float(said)}", "fn_name": "exact_match", "expected": {said}}}']
    path.write_text("\n".join([*lines, lines[0].replace('"fn_name"', '"x": {"y": 1}, "fn_name"')]))
    assert assay.score(path)["reward"].to_list() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("verifier", "output"),
    [
        ('{"fn_name":"exact_match","\\u0065xpected":"{\\"a\\":1}"}', '{"a":1}'),
        ('{"fn_name":"exact_match","expected":{"a":-0}}', "{'a': 0}"),
        ('{"fn_name":"exact_match","expected":{"a":1.10}}', "{'a': 1.1}"),
        ('{"fn_name":"exact_match","expected":12345678901234567890}', "12345678901234567890"),
    ],
)
def test_json_text_means_what_python_reads(verifier, output):
    assert assay.score(pl.DataFrame({"completion": [output], "verifier": [verifier]}))["reward"].item() == 1.0


def test_a_plan_knows_functions_that_are_registered_after_it(registry):
    del registry
    frame = pl.DataFrame({"completion": ["a"], "fn_name": ["late"], "expected": ["a"]})
    plan = assay.compile(None, frame)
    assert plan.score(frame)["error"].item() == 'unknown verifier function "late"'
    fns.register("late", lambda *_: 1.0)
    assert plan.score(frame)["reward"].item() == 1.0


@pytest.mark.usefixtures("registry")
def test_a_users_check_and_class_see_values_and_not_how_they_travel():
    class Gold(assay.Check):
        """The row's gold is a dict."""

        type = "gold"
        reads = ("expected",)

        def row(self, row):
            return float(row["expected"] == {"a": 1})

    rows = [{"completion": "x", "expected": {"a": 1}}, {"completion": "x", "expected": "s"}]
    verifier = assay.load_verifier({"checks": [{"type": "gold"}]}, checks=[Gold])
    assert assay.score(rows, verifier)["reward"].to_list() == [1.0, 0.0]
    assert_plan_conforms([verifier], rows)


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("made", [lambda: pl.lit("1.0"), lambda: 0, lambda: pl.struct(score=pl.lit(1.0))])
def test_a_twin_of_the_wrong_type_is_not_believed(made):
    def twin(output, expected, params):
        return made() if params["x"] else output == expected

    fns.register("mine", lambda *_: 0.25, expr=twin)
    rows = [{"completion": "a", "verifier": {"fn_name": "mine", "expected": "a", "params": {"x": 1}}}]
    rows.append({"completion": "b", "verifier": {"fn_name": "exact_match", "expected": "b"}})
    with pytest.warns(assay.AssayWarning, match="the twin of mine cannot run"):
        assert assay.score(rows)["reward"].to_list() == [0.25, 1.0]


def test_names_of_params_are_a_list():
    with pytest.raises(TypeError, match=r"params=\['ignore_case'\]"):
        fns.register("mine", lambda *_: 1.0, params="ignore_case")


@pytest.mark.parametrize("row", [{"fn_name": "contains", "expected": 10**5000}, {"verifier": {"expected": 10**5000}}])
def test_a_number_past_the_interpreters_limit_is_told(row):
    with pytest.raises(assay.InputError, match="cannot be written as JSON"):
        assay.score([{"completion": "a", **row}], verifier_name="contains")


def test_a_pandas_frame_with_golds_of_several_types():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"completion": ["42", "a"], "expected": [42, "a"]})
    assert assay.score(frame, verifier_name="exact_match")["reward"].to_list() == [1.0, 1.0]


def test_fields_that_nothing_reads_are_told_before_the_run():
    typos = [
        {"expected": "a", "param": {"ignore_case": True}},
        {"fnname": "contains", "expected": "A"},
        {"expected": "A"},
    ]
    frames = [
        from_rows([{"completion": "A", "verifier": one} for one in typos]),
        pl.DataFrame({"completion": ["A"], "verifier": [{"expected": "a", "param": 1}]}),
        pl.DataFrame(
            {"completion": ["A"] * 50, "verifier": [json.dumps({"expected": str(n), "param": 1}) for n in range(50)]}
        ),
    ]
    said = [
        ["row 0: verifier.param is read by nothing. Did you mean `params`?", "row 1: verifier.fnname is read by nothing. Did you mean `fn_name`?"],
        ["row 0: verifier.param is read by nothing. Did you mean `params`?"],
        ["row 0 and 49 more: verifier.param is read by nothing. Did you mean `params`?"],
    ]  # fmt: skip
    for frame, wanted in zip(frames, said, strict=True):
        with pytest.warns(assay.AssayWarning) as caught:
            assay.score(frame, verifier_name="exact_match")
        assert [str(one.message) for one in caught] == wanted


def test_rows_and_tasks_that_name_their_verifiers_in_two_ways_are_refused():
    rows = [{"completion": "x", "task_id": "1", "verifier": {"fn_name": "contains", "expected": "x"}}]
    with pytest.raises(
        assay.ColumnsError, match="The rollouts have a column `verifier`, and the task table has `expected`"
    ):
        assay.score(rows, tasks=[{"task_id": "1", "expected": "GOLD"}])


def test_threads_that_compile_patterns_leave_the_processs_warnings_alone():
    rows = [
        {"completion": f"z{n} q", "verifier": {"fn_name": "regex_match", "expected": f"z(?:{n}|y) [q{n}]"}}
        for n in range(1_000)
    ]
    before = warnings.filters[:]
    for _ in range(sized(3, 1)):
        assay.score(rows)
    assert warnings.filters == before


def test_one_row_with_a_long_gold_is_scored_as_two_are():
    # of one row the engine would make a regular expression of the gold, and search with it for a minute
    length = sized(25_000, 12_000)
    text, gold = "a" * 2 * length, "a" * length
    for fn, expected, reward in (
        ("contains", gold, 1.0),
        ("regex_match", rf"\b{gold}\b", 0.0),
        ("contains", gold + "b", 0.0),
    ):
        for rows in (1, 2):
            row = {
                "completion": text,
                "verifier": {"fn_name": fn, "expected": expected, "params": {"ignore_case": rows == 2}},
            }
            assert assay.score([row] * rows)["reward"].to_list() == [reward] * rows
    spec = {"checks": [{"type": "contains", "value": gold + "b"}]}
    assert assay.score([{"completion": text}], spec)["reward"].item() == 0.0


GOLDS_WITH_NULLS = [
    *({"tool": "click", "text": None}, {"tool": "click", "text": None, "ref": {"a": [None, {"b": None}]}}),
    *([None, 1], "text", 1, None),
]


@pytest.mark.parametrize("fn", ["tool_calls_match", "exact_match", "contains", "seen"])
@pytest.mark.parametrize("rows", [1, 6])
def test_a_flat_gold_of_several_types_keeps_its_nulls_for_the_definition_too(fn, rows, registered_seen):
    texts = [json.dumps(gold) for gold in GOLDS_WITH_NULLS[:2]] + [str(gold) for gold in GOLDS_WITH_NULLS]
    table = [
        {"completion": text, "fn_name": fn, "expected": gold} for text in texts for gold in GOLDS_WITH_NULLS
    ] * rows
    member = [{"completion": row["completion"], "answer": row["expected"]} for row in table]
    for given, judge in ((table, None), (member, assay.Rubric([assay.fns.get(fn)]))):
        frame = assay.scan(given).collect()
        found = assay.score(given, judge)
        defined = score_rows(frame.to_dicts(), verifiers_of_run(judge))
        for name in ("reward", "feedback", "error"):
            assert found[name].to_list() == [row[name] for row in defined]
    as_text = [
        {"completion": row["completion"], "verifier": {"fn_name": fn, "expected": row["expected"]}} for row in table
    ]
    assert assay.score(as_text)["reward"].to_list() == assay.score(table)["reward"].to_list()


@pytest.fixture
def registered_seen():
    assay.fns.register("seen", lambda output, expected, params: float(output == json.dumps(expected)))
    yield
    del fns._REGISTRY["seen"]


def test_a_null_field_of_a_struct_is_absent_for_both():
    gold = [{"tool": "click", "text": None}, {"tool": "click", "text": "hi"}]
    frame = pl.DataFrame({"completion": ['{"tool": "click", "text": "hi"}'] * 2, "expected": gold})
    frame = frame.with_columns(fn_name=pl.lit("tool_calls_match"))
    assert assay.score(frame)["reward"].to_list() == [1.0, 1.0]
    assert [row["reward"] for row in score_rows(frame.to_dicts(), verifiers_of_run(None))] == [1.0, 1.0]
