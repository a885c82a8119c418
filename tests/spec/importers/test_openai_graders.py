"""OpenAI's graders as specs."""

import assay
from assay.spec.importers.imported import NoCounterpartError
from assay.spec.importers.openai_graders import combination, is_openai, read_openai
from assay.system.documents import SpecDocument

RIGHT = {
    "type": "string_check",
    "name": "right",
    "input": "{{sample.output_text}}",
    "reference": "{{ item.answer }}",
    "operation": "eq",
}
BRIEF = {**RIGHT, "name": "brief", "operation": "ilike", "reference": "!"}


def read(data):
    return read_openai(SpecDocument(data))


def rewards(spec, *rows):
    return assay.score([dict(row) for row in rows], spec)["reward"].to_list()


def test_a_string_check():
    for operation, scores in [
        ("eq", [1.0, 0.0, 0.0]),
        ("ne", [0.0, 1.0, 1.0]),
        ("like", [1.0, 0.0, 1.0]),
        ("ilike", [1.0, 1.0, 1.0]),
    ]:
        check = {"type": "grader", "name": "openai.string_check", "options": {"operation": operation}}
        imported = read({**RIGHT, "operation": operation})
        assert imported.left_out == []
        assert imported.spec == {"name": "right", "checks": [{"id": "right", "value": {"column": "answer"}, **check}]}
        outputs = ({"completion": text, "answer": "Paris"} for text in ("Paris", "PARIS", "Paris!"))
        assert rewards(imported.spec, *outputs) == scores


def test_what_a_grader_reads():
    for grader, on in [
        ({"input": "{{ sample.output_json.a.b }}"}, [{"json": {"path": "a.b"}}]),
        ({"input": "{{ sample.output_tools }}"}, ["toolCalls"]),
        ({"input": "{{item.note}}"}, [{"column": "note"}]),
    ]:
        assert read({**RIGHT, **grader}).spec["checks"][0]["on"] == on


def test_a_reference_may_be_a_template():
    imported = read({**RIGHT, "reference": "It is {{item.answer}}, {sure}."})
    assert imported.spec["checks"][0]["value"] == {"template": "It is {answer}, {{sure}}."}
    assert rewards(imported.spec, {"completion": "It is 4, {sure}.", "answer": "4"}) == [1.0]


def test_text_similarity():
    for metric, ours in [
        ("fuzzy_match", "ratio"),
        ("bleu", "bleu"),
        ("gleu", "gleu"),
        ("rouge_1", "rouge_1"),
        ("rouge_l", "rouge_l"),
    ]:
        grader = {**RIGHT, "type": "text_similarity", "evaluation_metric": metric, "pass_threshold": 0.8}
        (check,) = read(grader).spec["checks"]
        assert (check["metric"], check["threshold"]) == (ours, 0.8)
        assert rewards({"checks": [check]}, {"completion": "a b c d", "answer": "a b c d"}) == [1.0]


def test_a_weighted_sum_of_graders():
    grader = {"type": "multi", "graders": {"a": RIGHT, "b": BRIEF}, "calculate_output": "0.75 * a + b / 4"}
    imported = read(grader)
    assert imported.spec["combine"] == "sum"
    assert [(check["id"], check["weight"]) for check in imported.spec["checks"]] == [("a", 0.75), ("b", 0.25)]
    outputs = ({"completion": text, "answer": "x"} for text in ("x", "!"))
    assert rewards(imported.spec, *outputs) == [0.75, 0.25]


def test_a_threshold_within_a_formula_may_differ():
    similar = {**RIGHT, "type": "text_similarity", "evaluation_metric": "bleu"}
    for threshold, differences in ((None, 0), (0.8, 1)):
        graders = {"a": RIGHT, "b": {**similar, "pass_threshold": threshold}}
        imported = read({"type": "multi", "graders": graders, "calculate_output": "(a + b) / 2"})
        assert len(imported.spec["checks"]) == 2
        assert [line[:13] for line in imported.differences] == ["$.graders.b: "] * differences


def test_a_sum_beyond_1_has_no_limits_and_passes_at_its_best():
    graders = [RIGHT, BRIEF]
    imported = read({"type": "multi", "graders": graders, "calculate_output": "2 * (right - 0.5 * brief)"})
    assert (imported.spec["range"], imported.spec["passThreshold"]) == (None, 2.0)
    outputs = ({"completion": text, "answer": "x"} for text in ("x", "!"))
    result = assay.score([*outputs], imported.spec)
    assert (result["reward"].to_list(), result["passed"].to_list()) == ([2.0, -1.0], [True, False])


def test_the_least_score_of_graders():
    imported = read({"type": "multi", "graders": {"a": RIGHT, "b": BRIEF}, "calculate_output": "min(a, b)"})
    outputs = ({"completion": text, "answer": "x!"} for text in ("x!", "!"))
    assert rewards(imported.spec, *outputs) == [1.0, 0.0]


def test_criteria_of_an_evaluation_all_have_to_pass():
    label = {"type": "label_model", "name": "tone"}
    imported = read({"name": "eval", "testing_criteria": [RIGHT, label, RIGHT]})
    assert imported.spec["name"] == "eval"
    assert [check["id"] for check in imported.spec["checks"]] == ["right", "right-2"]
    assert imported.left_out == ["$.testing_criteria[1]: it asks a model"]


def test_the_grader_of_a_fine_tuning_job_is_found():
    for wrapped in ({"grader": RIGHT}, {"method": {"reinforcement": {"grader": RIGHT}}}):
        assert read(wrapped).spec["checks"][0]["id"] == "right"


def test_what_has_no_counterpart_is_named():
    for grader, words in [
        ({"type": "score_model"}, "$: it asks a model"),
        ({"type": "python", "source": "import os"}, "$: it runs code of yours"),
        ({**RIGHT, "operation": "regex"}, "`operation` is a string ('regex'), not one of eq, ne, like, ilike"),
        ({**RIGHT, "operation": []}, "`operation` is a list"),
        ({**RIGHT, "input": None}, "`input` is null, not a text"),
        ({**RIGHT, "input": "A: {{sample.output_text}}"}, "`input` is more than one value"),
        ({**RIGHT, "input": "{{ sample.choices }}"}, "`input` is `{{sample.choices}}`; known: "),
        ({**RIGHT, "reference": "{{ sample.output_text }}"}, "is not a field of `item`"),
        ({**RIGHT, "reference": "{{ item.answer | lower }}"}, "more than the name of a value"),
        ({**RIGHT, "type": "text_similarity"}, "`evaluation_metric` is null: not a metric"),
        ({**RIGHT, "type": "text_similarity", "evaluation_metric": "cosine"}, "it compares embeddings"),
        ({**RIGHT, "type": "text_similarity", "evaluation_metric": "meteor"}, "it needs WordNet"),
        (
            {**RIGHT, "type": "text_similarity", "evaluation_metric": "bleu", "pass_threshold": "x"},
            "`pass_threshold` is a string ('x')",
        ),
        (
            {"type": "multi", "graders": {"a": RIGHT}, "calculate_output": "a * a"},
            "$.calculate_output: 'a * a' is more",
        ),
        ({"type": "multi", "graders": 5, "calculate_output": "a"}, "$.calculate_output"),
        ({"type": "multi"}, "$.calculate_output: `calculate_output` is not a formula"),
        (
            {"type": "multi", "graders": {"a": {"type": "multi"}}, "calculate_output": "a"},
            "$.graders.a: `multi` stands within other graders",
        ),
        ({"type": "multi", "graders": {"a": 5}, "calculate_output": "a"}, "$.graders.a: expected an object"),
        (
            {"type": "multi", "graders": {"a": {"type": []}}, "calculate_output": "a"},
            "$.graders.a: `type` is a list, not a grader",
        ),
    ]:
        imported = read(grader)
        assert imported.spec["checks"] == []
        assert any(words in line for line in imported.left_out), imported.left_out


NAMES = ("a", "b")


def test_weighted_sums():
    for formula, weights in [
        ("a + b", (1.0, 1.0)),
        (" 0.5*a+b*0.25 ", (0.5, 0.25)),
        ("(a + 3 * b) / 4", (0.25, 0.75)),
        ("-(a - b)", (-1.0, 1.0)),
        ("a + a + 0", (2.0, 0.0)),
        ("+b", (0.0, 1.0)),
    ]:
        assert combination(formula, NAMES) == ("sum", dict(zip(NAMES, weights, strict=True)))


def test_other_formulas_have_no_counterpart():
    for formula in [
        *(
            "",
            "a +",
            "a + 1",
            "c",
            "a * b",
            "a / b",
            "a / 0",
            "a ** 2",
            "max(a)",
            "max(a, 2)",
            "min(a, b, key=a)",
            None,
            5,
        ),
        *(
            "a if b else a",
            "__import__('os').system('ls')",
            "[a for a in b]",
            "a.b",
            "a[0]",
            "'a'",
            "True * a",
            "1j * a",
        ),
        *(
            "9**9**9**9 * a",
            "1e999 * a - a",
            "(" * 500 + "a" + ")" * 500,
            "-" * 9_000 + "a",
            "a" * 20_000,
            "a\x00",
            "0x1for b",
        ),
        "+".join(["a"] * 4_000),
    ]:
        try:
            combine, weights = combination(formula, NAMES)
        except NoCounterpartError:
            return
        assert (combine, weights) in (("sum", {"a": total, "b": 0.0}) for total in (1.0, 4_000.0))


def test_a_weight_that_is_no_number_is_left_out():
    imported = read({"type": "multi", "graders": {"a": RIGHT, "b": BRIEF}, "calculate_output": "1e308 * 10 * a + b"})
    assert imported.spec["checks"] == []
    assert "numbers that are too large" in imported.left_out[0]


def test_only_graders_are_taken_for_some():
    assert is_openai(RIGHT)
    assert is_openai([RIGHT, BRIEF])
    assert not any(map(is_openai, ({}, [], None, "multi", [RIGHT, {}], {"type": "contains"}, {"grader": "x"})))
