"""No text takes more than linear time: four times the text takes about four times as long, sixteen times would be quadratic.

Every check type, every function that rows name and every parser meets every text of one pool, in both faces. Sizes are compared with
each other, by processor time, never with a clock. A new check type is covered as soon as it is listed, with the params of its examples.
"""

import json
import re
from functools import partial

import polars as pl
import pytest
from cases import LONG
from growth import TRIES, is_linear

import assay
from assay.checks.base import Check, Example
from assay.checks.registry import CHECKS
from assay.compiling.plan import Plan
from assay.compiling.verifiers import on_row
from assay.functions.registry import function, list_fns
from assay.rubrics import parsers
from assay.scoring.reference import score_rows
from assay.spec.verifier import load_verifier
from assay.values.rows import from_rows

LARGE = 32_000
"""Code points of the shorter texts: there, CPython's search and our limits have chosen the methods of the longer ones, too."""
SIZE = LARGE if LONG else 10_000
"""The same for checks, which do so much more for a text than to search it that fewer are enough."""

UNITS = (
    "<think>", "</think>", "<answer>", "</answer> ", "<think></think>", "<answer></answer> ", "<axb>", "</", "```",
    "```json\n", '```\n{"a":1}\n', "{", "}", "[", "]", "{}", "[]", '{"a":', '{"a":1},', "[[],", '"', "\\", '\\"',
    '\\\\"', "\\u0000", '"\\u0000', "\\ud800", "9", "-", "1e", "0.", "1e9,", "NaN", "null ", ":", " ", "\n", "\t ",
    "\r\n", "\x1c", "\u3000", "\xa0\n", "\u2028", "\x00", "\ufeff", "a", "ab", "aB", "a\n", "a b ", "ß", "İ", "ſ",
    "K", "Σ", "ΑΣ", "e\u0301", "\u0301", "\u0345", "👩‍👩‍👧", "\U0001d7d8", "\\boxed{", "\\boxed{}", "####", "tool",
    '"tool":', '{"tool":"a"} ', '{"action":1', "<tool_call>", '{"name":"search"}\n', "refund", "refun", "REFUN",
    "abab", "aab ", "http://", "#4412",
)  # fmt: skip
FRAMED = (
    ("{", '"a":1,', "}"), ('{"a":', "[", "1"), ('"', "a", '"'), ('"', "\\u0041", '"'), ("[", "1,", "1]"),
    ("", "a", "b"), ("x", " ", "x"), ("", " ", "{"), ("", "\n", "x"), ('{"a":1}', " ", "x"),
    ("```json\n", "{", "\n```"), ("<think>", "a", "<"), ("<answer>", " ", "x"), ("<answer>", " ", "</answer"),
    ('{"k', "a", '":1}'), ('{"a":', "9", "}"), ('{"a":"', "\\\\", '"}'), ("[", "{},", "{}]"),
    ("[", '{"a":1},', "{}]"), ('{"tool":"', "a", '"}'), ('{"tool":"a","coordinate":[', "1,", "1]}"),
    ("[f(", "a=1,", ")]"), ("[", "f(x),", "]"), ("[f(a=", "-", "1)]"), ("[f(a=", "[", "1)]"),
    ('[f(a="', "\\d", '")]'), ("[", '{"name":"search"},', "{}]"),
    ('[{"name":"search","arguments":{"a":', "[", "]}}]"), ("x", "<tool_call>{</tool_call>", ""), ("{", " ", '"a":1}'),
    ('{"a"', " ", ":1}"), ("\\boxed{", "{", "}"), ("\\boxed{", "{}", "}"), ("-", "9", "."),
)  # fmt: skip


def repeated(unit, size, before="", after=""):
    return before + (unit * (size // len(unit) + 1))[:size] + after


TEXTS = {
    **{f"{unit!r} × n": partial(repeated, unit) for unit in UNITS},
    **{f"{a!r}, {unit!r} × n, {z!r}": partial(repeated, unit, before=a, after=z) for a, unit, z in FRAMED},
    "nested lists": lambda size: "[" * (size // 2) + "]" * (size // 2),
    "lists nested as far as they may": lambda size: ("[" * 499 + "]" * 499 + ",") * (size // 1000),
    "nested objects": lambda size: '{"a":' * (size // 6) + "1" + "}" * (size // 6),
    "many keys": lambda size: json.dumps({f"k{at}": at for at in range(size // 16)}),
    "equal keys": lambda size: "{" + ",".join(['"k":{}'] * (size // 7)) + "}",
    "small objects": lambda size: json.dumps([{"a": at} for at in range(size // 10)]),
    "many words": lambda size: " ".join(f"w{at}" for at in range(size // 6)),
    "many phrases": lambda size: json.dumps({"expected": [{"mustContain": [f"w{at}"]} for at in range(size // 40)]}),
}

PARAMS = {
    "contains": [{"value": "a" * 60 + "b"}, {"value": "a" * 60 + "b", "caseSensitive": True}, {"value": "ß" * 40}],
    "equals": [{"value": "a" * 300}, {"value": " İ "}],
    "regex": [
        {"pattern": pattern}
        for pattern in (r"(?i)\brefund\b", r"\w+\s+\w+x", r"<think>.*?</think>", r"^\s*$", r"(a|ab)*c", r"(?s)\{.*\}")
    ],
    "json_schema": [
        {"schema": {"anyOf": [{"items": {"$ref": "#"}, "uniqueItems": True}, {"additionalProperties": {"$ref": "#"}}]}},
        {"schema": {"items": {"type": "string"}, "additionalProperties": {"type": "string", "pattern": "^(a+)+$"}}},
    ],
    "json_match": [
        {"value": [{"a": 1}, {}], "lists": "unordered", "score": "f1", "absTol": 0.5, "ignore": ["[].b"]},
        {"value": "[" * 400 + "1" + "]" * 400, "score": "share", "strings": "squad"},
    ],
    "json_keys": [{"keys": [f"k{at}" for at in range(100)]}, {"keys": ["a", "ß"]}],
}
"""Params that are worse than those of the examples."""

GOLDS = ("a" * 60 + "b", "(?i)refund", '{"tool": "a", "action": "b", "ref": "x", "coordinate": [1, 2]}')


def checks():
    for check in CHECKS:
        assert check.examples, f"{check.type} has no example to take params from"
        for params in [*(example.params or {} for example in check.examples), *PARAMS.get(check.type, ())]:
            verifier = load_verifier({"checks": [{"type": check.type, "params": dict(params)}]})
            rest = next((_rest(example) for example in check.examples if example.params == params), {})
            yield f"{check.type} {params or ''}"[:60], verifier, partial(_as_completion, rest=_filled(check, rest))
        for column in check.traits.reads:
            yield f"{check.type}, {column}", verifier, partial(_as_column, column)


def _rest(example):
    own = {"metadata": example.metadata, "expected_output_schema": example.expected_output_schema}
    return own | dict(example.columns or {})


def _filled(check, rest):
    found = {}
    for column in check.traits.reads:
        values = [rest.get(column), *(_rest(example).get(column) for example in check.examples)]
        found[column] = next((value for value in values if value is not None), None)
    return found


def _as_completion(text, rest):
    return {"completion": text, **rest}


def _as_column(column, text):
    return {"completion": '{"a": 1}', column: text}


def functions():
    for name in list_fns():
        if not function(name).builtin:
            continue
        for gold in GOLDS:
            yield f"{name} {gold[:12]}", on_row(), partial(_named, name, gold, {})
        yield f"{name}, ignoring case", on_row(), partial(_named, name, "refund", {"ignore_case": True})
        if name != "regex_match":  # what a pattern takes is limited by itself: tests/expressions/regex
            yield f"{name}, expected", on_row(), partial(_expecting, name)
    yield "verifier", on_row("contains"), lambda text: {"completion": "a", "verifier": text}
    yield "params", on_row("contains"), lambda text: {"completion": "a", "expected": "a", "params": text}


def _named(name, gold, params, text):
    return {"completion": text, "fn_name": name, "expected": gold, "params": params}


def _expecting(name, text):
    return {"completion": text[: len(text) // 2] + "x", "fn_name": name, "expected": text}


def by_rows(verifier, row_of, texts):
    rows = [row_of(text) for text in texts]
    return lambda: score_rows(rows, [verifier])


def by_columns(verifier, row_of, texts):
    frame = from_rows([row_of(text) for text in texts])
    plan = Plan((verifier,), tuple(frame.schema.items()))
    return lambda: plan.score(frame)


def are_linear(work_of, texts, size, tries=TRIES):
    return is_linear(lambda length: work_of([text(length) for text in texts]), size, tries)


def slow_texts(work_of, names=tuple(TEXTS), size=SIZE, tries=TRIES):
    return [name for name in names if not are_linear(work_of, [TEXTS[name]], size, tries)]


DRAWN = (*checks(), *functions())
ROWS = [pytest.param(verifier, row_of, number, id=name) for number, (name, verifier, row_of) in enumerate(DRAWN)]
COLUMNS = [
    pytest.param(verifier, row_of, number, id=name)
    for number, (name, verifier, row_of) in enumerate({case[0]: case for case in DRAWN}.values())
]


@pytest.mark.parametrize(("verifier", "row_of", "number"), ROWS if LONG else ROWS[::5])
def test_no_text_takes_a_row_more_than_linear_time(verifier, row_of, number):
    names = (*TEXTS,) if LONG else (*TEXTS,)[number % 8 :: 8]
    assert slow_texts(partial(by_rows, verifier, row_of), names) == []


@pytest.mark.parametrize(("verifier", "row_of", "number"), COLUMNS if LONG else COLUMNS[::11])
def test_no_text_takes_columns_more_than_linear_time(verifier, row_of, number):
    names = (*TEXTS,) if LONG else (*TEXTS,)[number % 2 :: 2]
    work_of = partial(by_columns, verifier, row_of)
    if LONG or not are_linear(work_of, [TEXTS[name] for name in names], SIZE):
        assert slow_texts(work_of, names) == []


PARSERS = {
    "Parser": assay.Parser,
    "ThinkParser": assay.ThinkParser,
    "XMLParser": lambda: assay.XMLParser(["think", ("answer", "code"), "a.b"]),
}


def test_every_parser_is_measured():
    classes = [getattr(parsers, name) for name in parsers.__all__]
    assert {one.__name__ for one in classes if isinstance(one, type) and issubclass(one, assay.Parser)} == {*PARSERS}


@pytest.mark.parametrize("name", PARSERS)
@pytest.mark.parametrize("method", ["parse", "parse_answer", "get_format_reward_func"])
def test_no_text_takes_a_parser_more_than_linear_time(name, method):
    run = getattr(PARSERS[name](), method)
    run = run() if method == "get_format_reward_func" else run
    assert slow_texts(lambda texts: lambda: [run(text) for text in texts * 2], size=LARGE) == []


@pytest.mark.parametrize("name", ["extract_boxed_answer", "extract_hash_answer"])
def test_no_text_takes_an_extractor_more_than_linear_time(name):
    run = getattr(parsers, name)
    assert slow_texts(lambda texts: lambda: [run(text) for text in texts * 2], size=LARGE) == []


class Thinks(Check):
    """A check with a pattern that backtracks, as one may be written."""

    type = "thinks"
    examples = (Example("<think>a</think>", 1.0),)
    pattern = re.compile(r"<think>(?:.|\n)*?</think>")

    def row(self, row):
        return float(self.pattern.search(row["completion"]) is not None)

    def expr(self):
        return pl.col("__assay/text").map_elements(lambda text: self.row({"completion": text}) > 0, pl.Boolean)


def test_quadratic_time_is_noticed():
    verifier = load_verifier({"checks": [{"type": "thinks"}]}, checks=[Thinks])
    row_of = partial(_as_completion, rest={})
    bad = "'<think>' × n"
    others = ["'a' × n", "many words", "'{' × n"]
    rows = partial(by_rows, verifier, row_of)
    assert any(slow_texts(rows, [bad, *others], 800, tries=2) == [bad] for _ in range(3))

    def frames(texts):
        return from_rows([row_of(text) for text in texts])

    plan = Plan((verifier,), tuple(frames(["a"]).schema.items()))
    plan.score(frames(["a"]))  # what a plan does once is no part of how it grows
    texts = [TEXTS[name] for name in (bad, *others)]
    assert not all(
        are_linear(lambda texts: partial(plan.score, frames(texts)), texts, 1_400, tries=1) for _ in range(3)
    )
