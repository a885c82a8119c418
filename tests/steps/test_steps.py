"""Every step: its examples, its two implementations, and what a hostile text costs."""

import json
import random
import re

import polars as pl
import pytest
from cases import sized
from step_cases import TEXT, assert_steps_conform, by_rows, lazy, step_texts

from assay.expressions.json import MAX_DEPTH, nesting, values_within
from assay.spec.listing import steps_as_json
from assay.steps.chain import Chain
from assay.steps.reader import read_steps
from assay.steps.registry import STEP_TYPES, STEPS
from assay.thresholds import set_to
from assay.values.params import both_cases

BY_NAME = {step.name: step for step in STEP_TYPES}

CHAINS = {
    "afterThink": ["afterThink", {"strip_think": {"strict": True}}],
    "think": ["think"],
    "tag": [{"tag": "a"}, {"tag": "a", "at": "first"}, {"tag": "a.b"}, {"tag": "answer"}],
    "boxed": ["boxed", {"boxed": {"style": "hendrycks"}}],
    "after": [
        {"after": "aa"},
        {"after": "aa", "at": "first"},
        {"after": "A:", "to": "end"},
        {"after": "\n"},
        {"after": "ab" * 600},
    ],
    "fence": ["fence", {"fence": {"at": "first"}}, {"fence": "json"}, {"fence": "py", "at": "first"}],
    "json": ["json", {"json": {"path": "a.b"}}, {"json": "first"}, {"json": "last"}, {"json": "last", "path": "[0]"}],
    "line": [{"line": which} for which in ("first", "last", 2, -1, -2)],
    "regex": [
        *({"regex": pattern} for pattern in (r"\d+", r"(?i)a:\s*(\S+)", r"\b(\w+)\b", r"(?m)^(.+)$", r"(a|b)\1", "a*")),
        {"regex": r"(\d)(\w)?", "at": "last"},
        {"regex": r"(?P<x>é)|(b)|(a)", "group": "any"},
        {"regex": "(?P<x>a)b", "group": "x"},
        {"regex": r"(\S+)\s*$", "group": 0},
        {"regex": r"\s+$", "at": "last"},
        {"regex": r"(?P<x>(?:refund){e<=2})", "group": "x", "flavor": "regex"},
        {"regex": r"(?|(a)|(b))+|\X", "at": "last", "flavor": "regex"},
    ],
    "lower": ["lower"],
    "upper": ["upper"],
    "strip": ["strip"],
    "trim": [{"trim": "punctuation"}, "trim"],
    "tail": [{"tail": 5}, {"tail": 1}, {"tail": 300}],
    "remove": [
        {"remove": ["a+", r"\s"]},
        {"remove": r"\b"},
        {"remove": r"(?<=a)b"},
        {"remove": [r"(a)\1", "é"]},
        {"remove": [r"\L<some>", r"\p{Lu}"], "flavor": "regex", "lists": {"some": ["a", "ab", "é"]}},
    ],
    "replace": [
        {"replace": {"old": "aa", "new": "$0"}},
        {"replace": {"old": "é", "new": ""}},
        {"replace": {"old": "ab" * 600, "new": ""}},
    ],
    "map": [{"map": {"Yes": "1", "a": "x"}}, {"map": {"Yes": "1"}, "default": "é"}],
    "number": [{"number": {"at": at}} for at in ("first", "last")],
    "numbers": ["numbers"],
    "choice": ["choice", *({"choice": {"letters": letters}} for letters in ("AB", "ABCDEFGHIJ", "АБВé", "abkiſ1"))],
    "split": [{"split": "\n"}, "split", {"split": "ab"}],
    "normalize": [
        {"normalize": by} for by in ("squad", "hendrycks", {"minerva": "verl"}, {"lmEval": {"ignoreCase": True}})
    ],
    **{name: [name] for name in ("casefold", "nfc", "nfkc", "whitespace")},
    "firstOf": [
        {"firstOf": [["boxed"], [{"after": "answer is"}], [{"regex": r"\d+"}], ["fence", {"json": "last"}]]},
        {"firstOf": ["boxed", {"firstOf": [[{"tag": "a"}], ["think"]]}]},
    ],
}
"""What is compared besides the examples."""


def examples(step):
    """The examples as specs write them."""
    (listed,) = steps_as_json([step])
    return [(example["step"], example) for example in listed["examples"]]


def test_a_step_is_documented_by_its_class_and_its_examples_hold():
    for step in STEP_TYPES:
        assert (step.__doc__ or "").strip(), step
        assert all(field.description for field in step.Params.model_fields.values()), step
        assert step.examples
        for data, example in examples(step):
            chain = Chain(read_steps(data))
            assert chain.row(example["text"]) == example["result"], example
            assert all(step.explain() for step in chain.steps)


@pytest.mark.parametrize("name", BY_NAME)
def test_columns_give_what_rows_give(name):
    chains = [*CHAINS[name], *(data for data, _ in examples(BY_NAME[name]))]
    own = [example.text for example in BY_NAME[name].examples]
    cases = sized(20_000, 40) // len(chains)
    compared = [
        assert_steps_conform(data, [*own, *step_texts(cases, seed)], small=sized(4, 1))
        for seed, data in enumerate(chains)
    ]
    assert sum(compared) > len(chains) * cases


@pytest.mark.usefixtures("small")
def test_small_batches_give_the_same():
    for name in ("tag", "boxed", "upper", "replace", "regex", "remove", "number", "firstOf"):
        for data in CHAINS[name]:
            assert_steps_conform(data, step_texts(60, 3), small=2)


@pytest.mark.parametrize("rows", [0, 1, 10_000])
def test_the_number_of_texts_beyond_ascii_does_not_matter(rows):
    for pattern in (r"(\d)(\w)?", r"\b\w+\b", "[^a]b"):
        with set_to(beyond_rows=rows):
            assert_steps_conform({"regex": pattern, "at": "last"}, step_texts(100, 11), small=2)


# ── definitions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("lang", ["", "json", "py"])
@pytest.mark.parametrize("at", ["first", "last"])
def test_a_fence_is_what_its_pattern_finds(lang, at):
    pattern = re.compile(rf"(?ms)^[ \t]*```[ \t]*{lang}[^\n`]*\n(.*?)^[ \t]*```")
    (step,) = read_steps({"fence": {"at": at, **({"lang": lang} if lang else {})}})
    results, rng = set(), random.Random(21)
    for _ in range(3_000):
        text = "".join(rng.choices(FENCES, k=rng.randrange(12)))
        found = [match.group(1) for match in pattern.finditer(text)]
        assert step.row(text) == (found[0 if at == "first" else -1] if found else None)
        results.add(step.row(text))
    assert len(results) > 20


FENCES = (
    *("```", "```\n", "\n```", "```json\n", " \t```py\n", "````\n", "``` a`\n", "`", "\n"),
    *(" ", "\t", "x", "1\n", "\r\n", "json"),
)


def by_raw_decode(text):
    at = starts = 0
    while starts < 100 and (places := [at for at in (text.find("{", at), text.find("[", at)) if at >= 0]):
        starts, at = starts + 1, min(places)
        try:
            value, end = json.JSONDecoder().raw_decode(text, at)
        except ValueError:
            end = None
        if end is not None and nesting(text[at:end]) <= MAX_DEPTH:
            yield value
            at = end
        else:
            at += 1


def test_values_within_a_text_are_those_of_raw_decode():
    texts = [*step_texts(3_000, 22), "[x" * 98 + "[1]", "[x" * 99 + "[1]", "[x" * 100 + "[1]"]
    found = [[*values_within(text)] for text in texts]
    assert list(map(repr, found)) == [repr([*by_raw_decode(text)]) for text in texts]
    assert sum(map(len, found)) > 500


VALUES = (
    *('"x"', '""', '"\\ud800"', '"\\ud83d\\ude00 é\\n"', '"1"', '"1.0"', '"-0"', '"1e5"', '"[]"', '"{"', '"true"', '"null"', "null", "NaN"),
    *("0", "-0", "7", "-12", "007", "1.0", "1e5", "1E400", "-2.50", "1" * 18, "1" * 19, "1" * 25, "1" * 5_000, "true", "false"),
    *("[]", '["x"]', "{}", '{"b": "x"}', '{"b": "x", "b": 1.5}', '[{"b": "x"}]', '{"b": ["x"]}', "[" * 130 + "]" * 130),
)  # fmt: skip


@pytest.mark.parametrize("path", ["a", "a.b", "$.a", "é", "a[0]"])
@pytest.mark.parametrize("at", ["whole", "first", "last"])
def test_fields_of_json_are_those_of_python_whatever_they_are(path, at):
    forms = ('{"a": %s}', '{"a": 1, "a": %s}', '{"a": %s, "a": "y"}', ' \n{"z": "{", "a": %s}\t', 'so {"a": %s} it', '[{"a": %s}]', '{"a": %s}}', "%s")  # fmt: skip
    texts = [form % value for form in forms for value in VALUES]
    assert assert_steps_conform({"json": {"at": at, "path": path}}, [*texts, *texts[::3]], small=2)


def test_json_nested_too_deeply_is_no_value_whatever_the_stack():
    def deep(levels, text):
        return deep(levels - 1, text) if levels else [*values_within(text)]

    for text, number in (("[" * 500 + "]" * 500, 1), ("[" * 501 + "]" * 501, 2), ("[" * 5_000, 0)):
        for levels in (0, 900):
            # of one nested too deeply, that within it
            assert len(deep(levels, text)) == min(number, 1)


def test_a_box_is_closed_by_its_own_brace():
    (boxed,) = read_steps("boxed")
    assert boxed.row(r"\boxed{\text{a{b}c}} }") == r"\text{a{b}c}"
    assert boxed.row(r"\boxed{1} \boxed{2") is None


def test_a_chain_that_times_out_is_an_error_of_its_row():
    from assay.calls.limits import Limits

    chain = Chain(read_steps([{"regex": r"^(?:(a+))+\1$", "notFound": "keep"}, "upper"], Limits(regex_timeout=0.1)))
    texts = ["aa", "a" * 40 + "!", "b", None]
    error = "TimeoutError: no answer within 0.1 s; as that is a limit of time, another run may end otherwise"
    expected = [("A", None, None), (None, None, error), ("B", None, None), (None, None, None)]
    assert by_rows(chain, texts) == expected
    assert lazy(chain, pl.DataFrame({TEXT: texts})).collect().rows() == expected
    first = Chain(
        read_steps({"firstOf": [["boxed"], [{"regex": r"^(?:(a+))+\1$"}], ["lower"]]}, Limits(regex_timeout=0.1))
    )
    texts = ["\\boxed{4}", "a" * 40 + "!", "B"]
    expected = [("4", None, None), (None, None, error), ("b", None, None)]
    assert by_rows(first.within(Limits(regex_timeout=0.1)), texts) == expected
    assert lazy(first, pl.DataFrame({TEXT: texts})).collect().rows() == expected


# ── hostile texts: a method of quadratic time would take minutes ────────────────────────────────────────────────────────

LONG = 60_000
UNITS = (
    *("<think>", "</think>", "<a>", "</a>", "<a></a>", "```", "```\n", "```a\n", "``` "),
    *("\\boxed{", "{", "}", "[", "[]", "{}"),
    *("[1,", '{"a":', '"', "\\", "aa", "A: \n", " ", "\n", " \n", "é", "\u0301", '[{"a":1},', "[ ", "\u3000"),
)
TEXTS = [
    *((unit * (LONG // len(unit) + 1))[:LONG] for unit in UNITS),
    *("```" + " " * LONG + "`\n```", "```\n" + " " * LONG + "x", "<a>" + " " * LONG + "</a", "\\boxed{" + "{}" * LONG),
]


@pytest.mark.parametrize("name", [name for name in BY_NAME if name not in ("regex", "remove", "number", "choice")])
def test_hostile_texts_take_linear_time(name):
    chain = Chain(read_steps(CHAINS[name][0]))
    assert lazy(chain, pl.DataFrame({TEXT: TEXTS})).collect().rows() == by_rows(chain, TEXTS)


# ── the registry ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_names_are_unique_and_read_in_both_spellings():
    names = {name: step for step in STEP_TYPES for name in (step.name, *step.aliases)}
    assert {spelling: step for name, step in names.items() for spelling in both_cases(name)} == {**STEPS}
    names = [name for step in STEP_TYPES for name in (step.name, *step.aliases)]
    assert len(names) == len({*names})
    assert STEPS["after_think"] is STEPS["afterThink"] is STEPS["strip_think"]
    assert STEPS["first_of"] is STEPS["firstOf"]
    assert {*CHAINS} == {*BY_NAME}
