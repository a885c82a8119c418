"""Verifiers on the row, by columns: the shapes of text on which the fast ways could part from the definition."""

import json
from dataclasses import replace

import polars as pl
import pytest
from cases import sized

import assay
from assay.compiling.verifiers import on_row
from assay.functions import registry as fns
from assay.testing import assert_fn_conforms, assert_plan_conforms
from assay.thresholds import THRESHOLDS

_CALL = {"tool": "click", "action": "left", "coordinate": [100, 200]}
_OUTPUTS = [
    json.dumps(_CALL),
    json.dumps(_CALL, separators=(",", ":")),
    f"```json\n{json.dumps(_CALL, indent=1)}\n```",
    '"tool": "x" {"tool": "click", "action": "left", "coordinate": [100, 200]}',
    '{"tool": "drag", "tool": "click", "action": "left", "coordinate": [100, 200]}',
    '{"t\\u006fol": "click", "action": "left", "coordinate": [100, 200]}',
    '{"tool": "cl\\u0069ck", "action": "left", "coordinate": [100, 200]}',
    '{"tool": "click", "action": "left", "coordinate": "[100,200]"}',
    '{"tool": "click", "action": "left", "coordinate": ["100", "200"]}',
    '{"tool": "click", "action": "left", "coordinate": [1e2, 200.0], "x": NaN}',
    '{"tool": "click", "action": "left", "coordinate": [126, 200]}',
    '{"tool": "click", "action": "left", "args": {"coordinate": [100, 200]}}',
    '{"x": "tool", "tool": "click", "action": "left", "y": ", \\"tool\\": \\"b\\"", "coordinate": [true, 200]}',
    '{"tool": "click",}',
    "no call",
]
_GOLDS = [
    _CALL,
    {**_CALL, "text": None},
    {**_CALL, "coordinate": [100.0, 200]},
    {"tool": 1},
    {"tool": "a}b", "ref": '"'},
    {},
    *_OUTPUTS[-8:],
]


def test_calls_as_they_are_written():
    said = ('"a"', '"tool"', "null", '"a\\u0062"')
    golds = [f'{{"tool": {tool}, "{name}": {value}, "n": 1}}' for tool in said[:3] for name in ("text", "coordinate")
             for value in ('"b"', "[1, 2]")] + ["{}", '{"tool": "a"}', '{"ref": "r", "tool": "a"}', 'a { "tool" : "a"\n} b']  # fmt: skip
    texts = [gold.replace("}", more) for gold in golds
             for more in ("}", "2}", ', "x": "\\"}', ', "x": "tool"}', ', "tool": "c"}', ', "text": null}')]  # fmt: skip
    texts += [text.replace("{", first, 1) for text in texts
              for first in ('{"action": "d", ', '{"x": "é\\"tool", ', "é {")]  # fmt: skip
    assert_fn_conforms(
        "tool_calls_match", golds=golds, texts=texts, params=[{}, {"coordinate_tolerance": -1}], cases=sized(2_000, 100)
    )


def test_tool_calls():
    params = [{}, {"coordinate_tolerance": 0}, {"coordinate_tolerance": None}]
    assert_fn_conforms("tool_calls_match", golds=_GOLDS, texts=_OUTPUTS, params=params, cases=sized(2_000, 100))


@pytest.mark.parametrize(
    "verifier",
    [
        '{"fn_name": "exact_match", "expected": "%s", "params": {}}',
        '{"expected":\t"%s" , "params":{"ignore_case":true},"fn_name":"exact_match"}',
        '{"fn_name": "exact_match", "expected": "%s", "expected": "b"}',
        '{"fn_name": "exact_match", "expected": "b", "expected": "%s"}',
        '{"note": {"expected": "%s"}, "fn_name": "exact_match", "expected": "b"}',
        '{"note": "\\"expected\\":", "fn_name": "exact_match", "expected": "%s"}',
        '{"note": "\ue000gold\ue000", "fn_name": "exact_match", "expected": "%s"}',
        '{"kind": "other", "fn_name": "exact_match", "expected": "%s"}',
        '{"fn_name": "exact_match", "expected": "%s"',
        '{"fn_name": "exact_match", "expected": "%s", "params": {"n": 1, "ignore_case": true, "kind": ""}, "note": 1}',
        '{"fn_name": "exact_match", "expected": "%s", "params": {"n": 1, "ignore_case": true, "n": 2}}',
        '{"fn_name": "exact_match", "expected": "%s", "params": {"\\u006e": 1}, "note": "ignore_case"}',
    ],
)
def test_verifiers_that_differ_in_their_gold_only(verifier):
    golds = ("a", "A", "b", "", " a\t", "\\u0061", '\\"', "\\ud800", "\ue000gold\ue000", "a}", '", "x": "')
    escaped = ("\\\\n", "\\n", '\\\\\\"\\/', "\\\\u0061", "\\x", "\\", "a\nb", "\\\\", "\\u00e9\\\\")
    texts = ("a", " A\n", "b", "\x85", "\\n", '\\"/', "\\u0061", "\\", "é\\")
    rows = [{"completion": text, "verifier": verifier % gold} for gold in golds + escaped for text in texts]
    rows += [{"completion": "1", "verifier": verifier % at} for at in range(50)]  # so that a template is worth reading
    assert_plan_conforms([on_row()], [*rows, {"completion": "a", "verifier": None}])


_PARAMS = [
    *('{"n": %d, "ignore_case": true}', '{"ignore_case":false,"n":%d}', '{"n": {"ignore_case": 1, "m": %d}}'),
    *('{"n": "ignore_case", "m": %d}', '{"n": "ignore_case", "ignore_case": %d}', '{"ignore_case": [%d]}'),
    *('{"ignore_case": 0.0, "n": %d}', '{"\\u0069gnore_case": %d}', '{"ignore_case": "", "ignore_case": %d}'),
    '{"é": %d, "ignore_case": -0}',
]


@pytest.mark.parametrize("how", ["text", "columns", "twin"])
def test_every_row_has_params_of_its_own(monkeypatch, how):
    monkeypatch.setattr(fns, "_REGISTRY", dict(fns._REGISTRY))
    told = lambda output, expected, params: float(bool(params.get("é")) + 2 * bool(params.get("ignore_case")))  # noqa: E731
    twin = lambda output, expected, params: pl.when(output != "").then(told("", "", params))  # noqa: E731
    fns.register("told", told, expr=twin, params=["é", "ignore_case"])
    name = "told" if how == "twin" else "exact_match"
    rows = [
        {"completion": "A", "fn_name": name, "expected": "a", "params": one % at} for at in range(9) for one in _PARAMS
    ]
    if how == "text":
        text = '{"fn_name": "%s", "expected": "a", "params": %s}'
        rows = [{"completion": "A", "verifier": text % (name, row["params"])} for row in rows]
    assert_plan_conforms([on_row()], rows)


def test_a_gold_that_is_an_object_stays_text():
    texts = [
        *('{"a": 1.50}', '{"a": {"b": 1}}', '{"a": "}"}', '{"a": 1, "a": 2}', "{}", '{"a": [1, 2]}', '{"a" 1}'),
        "[1]",
    ]
    rows = [
        {"completion": text, "verifier": f'{{"fn_name": "{fn}", "expected": {text}, "params": {{}}}}'}
        for fn in ("exact_match", "tool_calls_match")
        for text in texts
    ]
    assert_plan_conforms([on_row()], rows)


@pytest.mark.parametrize("fn_name", ["exact_match", "contains", "regex_match"])
def test_text(fn_name):
    texts = ["a", " a", "a\x1f", "\u2028a\xa0" + " " * 99, "\u212a", "\u0130", "i\u0307", "ΟΔΟΣ", "ὀδος", "", " \n"]
    assert_fn_conforms(fn_name, texts=texts, golds=[*texts, "k", None, 0], cases=sized(2_000, 100))


FEW = [
    {"completion": " A", "verifier": '{"fn_name": "exact_match", "expected": "a", "params": {"ignore_case": true}}'},
    {"completion": "b", "verifier": '{"fn_name": "contains", "expected": 4, "nothing": 1}'},
    {"completion": "b", "verifier": '{"fn_name": "regex_match", "expected": "("}'},
    {"completion": json.dumps(_CALL), "verifier": json.dumps({"fn_name": "tool_calls_match", "expected": _CALL})},
    {"completion": "{}", "verifier": json.dumps({"fn_name": "tool_calls_match", "expected": _CALL})},
    {"completion": "b", "verifier": '{"fn_name": "contains"}'},
    {"completion": "b", "verifier": '{"fn_name": "contains", "expected": "b", "params": 1}'},
    {"completion": "b", "verifier": '{"fn_name": "mine", "expected": {"a": 1}}'},
    {"completion": "c", "verifier": '{"fn_name": "mine"}'},
    {"completion": None, "verifier": '{"fn_name": "mine"}'},
    *({"completion": "b", "verifier": '{"fn_name": "nobody"}'}, {"completion": "b", "verifier": None}),
    {"completion": "b", "verifier": "["},
]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("twin", [None, lambda output, expected, params: output == "b"])
def test_a_few_rows_are_answered_as_many_are(monkeypatch, twin):
    monkeypatch.setattr(fns, "_REGISTRY", dict(fns._REGISTRY))
    fns.register("mine", lambda output, expected, params: float(output == "b"), expr=twin)
    assert_plan_conforms([on_row()], FEW)
    frame = assay.scan(FEW).collect()
    plan = assay.compile(None, frame.schema)
    few = plan.score(frame)
    monkeypatch.setattr(THRESHOLDS, "small_batch", 0)
    assert few.equals(plan.score(frame))
    assert few["error"].null_count() < len(FEW)


@pytest.mark.usefixtures("small")
def test_a_few_rows_ask_no_twin_of_ours(monkeypatch):
    def never(*_):
        raise AssertionError("asked")

    monkeypatch.setattr(fns, "_REGISTRY", {name: replace(one, expr=never) for name, one in fns._REGISTRY.items()})
    frame = pl.DataFrame(FEW[:2] + FEW[3:5])
    assert assay.compile(None, frame).score(frame)["reward"].to_list() == [1.0, 0.0, 1.0, 0.0]
