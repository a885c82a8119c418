"""The registry of verifier functions, and the four of Assay's own, as its documents describe them."""

import copy
import pickle
import re
from functools import partial

import polars as pl
import pytest

import assay
from assay.functions import registry as fns


@pytest.fixture
def registry(monkeypatch):
    """What a test registers is gone after it."""
    monkeypatch.setattr(fns, "_REGISTRY", dict(fns._REGISTRY))


CLICK = {"tool": "click", "action": "left", "coordinate": [100, 200]}
CASES = {
    "exact_match": [
        (" 42\n", "42", {}, 1.0),
        ("42", 42, {}, 1.0),
        ("0", 0, {}, 1.0),
        ("\x1c42\x85", "42", {}, 1.0),
        ("Paris", "paris", {}, 0.0),
        ("Paris", "paris", {"ignore_case": True}, 1.0),
        ("Paris", "paris", {"ignore_case": 1}, 1.0),
        ("Paris", "paris", {"ignore_case": 0}, 0.0),
        ("STRASSE", "straße", {"ignore_case": True}, 0.0),
        ("True", True, {}, 1.0),
        ("", None, {}, 1.0),
        ("None", None, {}, 0.0),
        ("{'a': 1}", {"a": 1}, {}, 1.0),
    ],
    "contains": [
        ("it is 42.", 42, {}, 1.0),
        ("it is 42.", "", {}, 0.0),
        ("it is 42.", None, {}, 0.0),
        ("None", None, {}, 0.0),
        ("<Answer>4</answer>", "<answer>4", {}, 0.0),
        ("<Answer>4</answer>", "<answer>4", {"ignore_case": True}, 1.0),
        ("ΟΔΟΣ", "ος", {"ignore_case": True}, 1.0),
        ("a", " ", {}, 0.0),
        (" ", " ", {}, 1.0),
    ],
    "regex_match": [
        ("Order 4412", r"\d{4}", {}, 1.0),
        ("order", "Order", {}, 0.0),
        ("order", "Order", {"ignore_case": True}, 1.0),
        ("order", "", {}, 0.0),
        ("order", None, {}, 0.0),
        ("5", 5, {}, 1.0),
        ("abab", r"(ab)\1", {}, 1.0),
        ("done\n", "done$", {}, 1.0),
    ],
    "tool_calls_match": [
        ('{"tool": "click", "action": "left", "coordinate": [100, 200]}', CLICK, {}, 1.0),
        ('```json\n{"tool": "click", "action": "left", "coordinate": [125, 175]}\n```', CLICK, {}, 1.0),
        ('```\n{"tool": "click", "action": "left", "coordinate": [126, 200]}\n```', CLICK, {}, 0.0),
        ('I will {"tool": "click", "action": "left", "coordinate": [100, 200]} now', CLICK, {}, 1.0),
        ('{"tool": "click", "action": "left", "coordinate": [100, 230]}', CLICK, {"coordinate_tolerance": 30}, 1.0),
        ('{"tool": "click", "action": "left", "coordinate": [100, 230]}', CLICK, {"coordinate_tolerance": "30"}, 1.0),
        ('{"tool": "click", "action": "left", "coordinate": [100, 201]}', CLICK, {"coordinate_tolerance": 0}, 0.0),
        ('{"tool": "click", "action": "left", "coordinate": [100, 200, 1]}', CLICK, {}, 0.0),
        ('{"tool": "click", "action": "left", "coordinate": ["100", "200"]}', CLICK, {}, 0.0),
        ('{"tool": "click", "action": "left"}', CLICK, {}, 0.0),
        ('{"tool": "click", "action": "right", "coordinate": [100, 200]}', CLICK, {}, 0.0),
        ('{"tool": "click", "coordinate": [1e400, 200]}', {"tool": "click", "coordinate": [1, 200]}, {}, 0.0),
        ("nothing", CLICK, {}, 0.0),
        ('["click"]', CLICK, {}, 0.0),
        ('{"tool": "type", "text": "hi", "more": 1}', '{"tool": "type", "text": "hi"}', {}, 1.0),
        ('{"tool": "type", "text": "ho"}', '{"tool": "type", "text": "hi"}', {}, 0.0),
        ('{"tool": "type", "text": "ho"}', '{"tool": "type"}', {}, 1.0),
        ('{"tool": "type", "action": null}', '{"tool": "type"}', {}, 1.0),
        ('{"tool": "type"}', '{"tool": "type", "ref": null}', {}, 1.0),
        ('{"tool": "type", "ref": "no"}', '{"tool": "type", "ref": "ok"}', {}, 0.0),
        ('{"tool": "key"}', '{"tool": "type"}', {}, 0.0),
        ('{"tool": 1}', {"tool": 1.0}, {}, 1.0),
        ('{"tool": true}', {"tool": 1}, {}, 1.0),
        ('{"tool": "1"}', {"tool": 1}, {}, 0.0),
        ('{"tool": "a", "tool": "b"}', {"tool": "b"}, {}, 1.0),
        ('{"tool": "a"}', "no object", {}, 0.0),
        ('{"tool": "a"}', None, {}, 0.0),
        ("{}", {}, {}, 1.0),
    ],
}


@pytest.mark.parametrize("name", CASES)
def test_a_function_of_ours(name):
    for output, expected, params, reward in CASES[name]:
        assert fns.get(name)(output, expected, params) == reward, (output, expected, params)


def test_a_pattern_that_python_refuses_raises():
    with pytest.raises(re.error):
        fns.regex_match("a", "(", {})


def test_an_unknown_name_lists_those_there_are():
    with pytest.raises(ValueError, match="exact_match, regex_match") as caught:
        fns.get("exactmatch")
    assert "Did you mean `exact_match`?" in str(caught.value)


@pytest.mark.usefixtures("registry")
def test_a_name_of_ones_own_may_be_registered_again_and_a_built_in_one_may_not():
    fns.register("mine", lambda *_: 0.0)
    fns.register("mine", lambda *_: 1.0)
    assert fns.get("mine")("", None, {}) == 1.0
    with pytest.raises(ValueError, match="'contains' is built in"):
        fns.register("contains", lambda *_: 1.0)


@pytest.mark.parametrize(
    ("args", "error", "said"),
    [
        (("", print), ValueError, "cannot be the name"),
        (("a\nb", print), ValueError, "cannot be the name"),
        ((5, print), ValueError, "cannot be the name"),
        (("x", 5), TypeError, "int is not callable"),
    ],
)
def test_misuse_is_found_at_registration(args, error, said):
    with pytest.raises(error, match=said):
        fns.register(*args)


def test_a_decorator_without_a_name_says_how():
    with pytest.raises(TypeError, match=r"@register_fn\(\"startswith\"\)"):

        @fns.register_fn
        def startswith(model_output, expected, params):
            return 1.0


@pytest.mark.parametrize(
    ("expr", "said"),
    [
        (5, "int is not callable"),
        (lambda output, expected, params: 5, "returns int, not a Polars expression"),
        (lambda output, expected, params: output + expected, "gives String, not Boolean or Float64"),
        (lambda output, expected, params: pl.col("completion") == expected, "the twin cannot run"),
        (lambda output, expected, params: output.is_duplicated(), "depends on other rows"),
        (lambda output, expected, params: pl.len(), "depends on other rows"),
    ],
)
def test_a_twin_of_the_wrong_type_is_found_at_registration(expr, said):
    with pytest.raises(TypeError, match=said):
        fns.register("twin", lambda *_: 1.0, expr=expr)
    assert "twin" not in fns.list_fns()


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize(
    "twin",
    [
        lambda output, expected, params: output.rank() + 1,
        lambda output, expected, params: pl.when(output.is_duplicated()).then(1.0).otherwise(0.0),
        lambda output, expected, params: pl.struct(output.str.len_chars().sum()).struct.field("text"),
        lambda output, expected, params: output.map_batches(lambda texts: pl.Series(range(len(texts))), pl.Int64),
    ],
)
def test_a_twin_that_sees_other_rows_is_not_asked(twin):
    fns.register("seeing", lambda *_: 0.25, expr=lambda *given: twin(*given) if given[2] else given[0] == given[1])
    rows = [{"completion": str(row % 3), "fn_name": "seeing", "expected": "x", "params": {"n": 1}} for row in range(6)]
    with pytest.warns(assay.AssayWarning, match="TypeError: what it says of a row depends on other rows"):
        assert assay.score(rows)["reward"].to_list() == [0.25] * 6


# ── in another process ──────────────────────────────────────────────────────────────────────────────────────────────────


def starts(model_output, expected, params):
    return float(model_output.startswith(expected))


def ends(model_output, expected, params):
    return float(model_output.endswith(expected))


ROLLOUTS = [{"completion": "ab", "answer": "a"}, {"completion": "ba", "answer": "a"}]


def test_a_rubric_takes_the_names_of_its_functions_along(registry, monkeypatch):
    fns.register("starts", starts)
    rubric = assay.Rubric([starts, partial(starts, params={"n": 1}), fns.contains])
    data, here = pickle.dumps(rubric), assay.score(ROLLOUTS, rubric)
    monkeypatch.setattr(fns, "_REGISTRY", {one.name: one for one in fns._BUILTIN})  # as in a new process
    assert assay.score(ROLLOUTS, pickle.loads(data)).equals(here)  # noqa: S301  (bytes of our own)
    assert here["reward"].to_list() == [3.0, 1.0]
    assert assay.score(ROLLOUTS, copy.copy(rubric)).equals(here)


def test_a_rubric_does_not_take_another_function_of_the_name(registry):
    fns.register("starts", starts)
    data = pickle.dumps(assay.Rubric([starts]))
    fns.register("starts", ends)
    with pytest.raises(
        assay.UsageError, match=r"'starts' \(.*test_functions\.starts\) is another function in this process"
    ):
        pickle.loads(data)  # noqa: S301  (bytes of our own)


def test_a_process_that_serves_two_runs_has_the_functions_of_the_second(registry):
    for fn in (starts, ends):
        fns.adopt([fns.Function("edge", fn)])
        assert fns.get("edge") is fn
