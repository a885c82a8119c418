"""Where the evidence for a verdict is, for every type of check and of step."""

import doctest
import json
import sys

import pytest
from cases import sized
from worked_cases import to_try

import assay
from assay.checks.graders.table import GRADERS
from assay.insight.evidence.spans import KINDS
from assay.spec.graders_listing import fragment_of, variants
from assay.testing import hostile_texts

CASES = to_try("view", "evidence")


def evidence(check, completion="", **columns):
    """The evidence of a check on a row."""
    return assay.evidence({"completion": completion, **columns}, {"checks": [check]})


def marked(check, completion="", **columns):
    """Its spans, each as the text there in the brackets of its kind."""
    seen = evidence(check, completion, **columns)
    (one,) = seen.checks
    text = seen.sources.get(one.source, seen.text)
    return [f"{kind}:{text[start:end]}" for start, end, kind in one.spans]


@pytest.mark.skipif(not CASES, reason="the goldens are not part of the project")
def test_the_goldens_hold():
    for case in CASES:
        (one,) = assay.evidence(case["row"], {"checks": [case["check"]]}).as_json()["checks"]
        spans = [[*span.values()] for span in one["spans"]]
        names = ("source", "passes", "read", "expected", "near")
        assert {name: one[name] for name in names} | {"spans": spans} == {
            name: case[name] for name in (*names, "spans")
        }


def mention(**sides):
    """The metadata of a task that expects phrases."""
    return {"metadata": {"expectations": sides}}


def instructions(*idents, **arguments):
    """The columns of a task with instructions of IFEval, all with the same arguments."""
    return {"instruction_id_list": [*idents], "kwargs": [arguments] * len(idents)}


CALL = '[{"name": "weather", "arguments": {"city": "Bergen", "days": 2, "unit": "C"}}]'
EXPECTED_CALL = [{"name": "weather", "arguments": {"city": "Oslo", "days": 3}}]
TITLE = {"type": "case", "is": "title"}


@pytest.mark.parametrize(
    ("check", "text", "marks"),
    [
        # read
        ({"type": "number", "value": 1}, "1", ["read:1"]),
        ({"type": "number_range", "min": 3}, "1 or 2", ["read:2"]),
        ({"type": "similarity", "value": "cat", "on": [{"after": ":"}]}, "it: car", ["read:car"]),
        (
            {"type": "similarity", "value": "cat", "threshold": 1, "on": [{"after": ":"}]},
            "cat: car",
            ["gold:cat", "read:car"],
        ),
        ({"type": "similarity", "value": "cat", "metric": "levenshtein_distance"}, "a cat or two", ["gold:cat"]),
        ({"type": "list_equals", "value": ["a"], "on": [{"after": ":"}]}, "it: a, b", ["read:a", "read:b"]),
        ({"type": "min_length", "value": 9, "on": ["boxed"]}, r"\boxed{a}", ["read:a"]),
        ({"type": "starts_with", "value": "no", "strip": False}, " so no", ["read: s", "gold:no"]),
        ({"type": "ends_with", "value": "sir"}, "yes, SIR ", ["matched:SIR"]),
        ({"type": "starts_with", "value": "yes", "negate": True}, "Yes.", ["offending:Yes"]),
        ({"type": "equals", "value": "x", "on": [{"map": {"a b": "b"}}]}, "a b", []),
        # steps
        ({"type": "contains", "value": "5", "on": [{"json": {"path": "a"}}]}, '{"a": 2.5}', ["read:2.5", "matched:5"]),
        ({"type": "contains", "value": "5", "on": [{"json": {"path": "a"}}]}, '{"a": 2.50}', ["read:2.50"]),
        (
            {"type": "contains", "value": "b", "on": [{"json": {"path": "a"}}]},
            '{"a": "a", "a": "b"}',
            ["read:b", "matched:b"],
        ),
        (
            {"type": "contains", "value": "a--c", "on": [{"replace": {"old": "b", "new": "--"}}]},
            "xabc",
            ["matched:abc"],
        ),
        ({"type": "contains", "value": "cat", "on": [{"normalize": "squad"}]}, "A cat", ["matched:A cat"]),
        ({"type": "contains", "value": "ss", "on": ["casefold"]}, "aßb", ["matched:ß"]),
        # searches
        ({"type": "contains", "value": "ß", "caseSensitive": True}, "straße", ["matched:ß"]),
        ({"type": "contains", "value": "i"}, "İ and i", ["matched:İ"]),
        ({"type": "contains", "value": "e\u0301"}, "Cafe\u0301 e\u0301", ["matched:e\u0301"]),
        ({"type": "contains", "value": ""}, "any", []),
        ({"type": "contains", "value": ["a", "b"]}, "b a b", ["matched:b", "matched:a"]),
        ({"type": "not_contains", "value": ["a", "b"], "word": True}, "a ab B", ["offending:a", "offending:B"]),
        ({"type": "not_contains", "value": "a", "negate": True}, "b a a", ["matched:a"]),
        ({"type": "contains_any", "values": ["a"], "negate": True}, "a A", ["offending:a", "offending:A"]),
        (
            {"type": "contains_all", "values": ["x", "y"], "on": [{"tag": "t"}]},
            "<t>x</t> y",
            ["read:x", "matched:x", "gold:y"],
        ),
        ({"type": "regex", "pattern": r"(?i)b+"}, "a BB b", ["matched:BB"]),
        ({"type": "regex", "pattern": r"(.)\1", "negate": True}, "aabccc", ["offending:aa", "offending:cc"]),
        ({"type": "regex", "pattern": "(?:refund){e<=1}", "flavor": "regex"}, "a refnd", ["matched:refnd"]),
        # too much
        ({"type": "max_length", "value": 2, "on": ["strip"]}, " abc ", ["read:abc", "excess:c"]),
        ({"type": "max_length", "value": 2, "negate": True}, "abc", []),
        ({"type": "length_penalty", "max": 3, "buffer": 1, "unit": "words"}, "a b  c d", ["excess:c d"]),
        ({"type": "length_penalty", "max": 3, "buffer": 1, "unit": {"column": "tokens"}}, "a b c d", []),
        ({"type": "count", "of": "chars", "max": 1.5}, "é😀", ["excess:😀"]),
        ({"type": "count", "of": "bytes", "max": 3}, "é😀a", ["excess:😀a"]),
        ({"type": "count", "of": "word_tokens", "exactly": 1}, "a, b. ", ["excess:b"]),
        ({"type": "count", "of": "sentences", "max": 1}, " One. Two!  Three ", ["excess:Two!  Three"]),
        ({"type": "count", "of": "paragraphs", "max": 1}, "a\n\nb\nc\n \nd", ["excess:b\nc\n \nd"]),
        ({"type": "count", "of": "lines", "max": -1}, "a", ["excess:a"]),
        ({"type": "count", "of": "lines", "max": 1, "negate": True}, "a\nb", []),
        ({"type": "count", "of": "numbered", "min": 2}, "1. a", ["matched:1. "]),
        ({"type": "count", "of": "items", "max": 1}, '[1, [2, 3], "x"]', ["excess:[2, 3]", 'excess:"x"']),
        ({"type": "count", "of": "items", "max": 1}, "none", []),
        ({"type": "count", "of": {"pattern": "b"}, "min": 1, "negate": True}, "ab", ["offending:b"]),
        ({"type": "count", "of": {"text": "A", "caseSensitive": True}, "min": 1}, "aA", ["matched:A"]),
        # JSON
        ({"type": "json_keys", "keys": ["a"]}, "{'a'}", ["offending:'"]),
        ({"type": "json_valid", "negate": True}, "{'a'}", []),
        ({"type": "json_valid", "on": [{"fence": "json"}]}, "```json\n[1,]\n```", ["read:[1,]\n", "offending:]"]),
        (
            {
                "type": "json_schema",
                "schema": {"properties": {"a": {"type": "string"}, "b": {"items": {"minimum": 3}}}},
            },
            '{"b": [4, 1], "a": 1}',
            ["offending:1", "offending:1"],
        ),
        ({"type": "json_schema", "schema": {"required": ["n"]}}, " {} ", ["offending:{}"]),
        (
            {"type": "json_match", "value": {"a": [1, 2], "b": {}}, "lists": "unordered"},
            '{"a": [2, 3, 2], "b": {}, "a2": []}',
            ["offending:3", "offending:2", "offending:[]"],
        ),
        ({"type": "json_match", "value": {"a": 1, "b": 2}, "score": "subset"}, '{"a": 3, "c": 4}', ["offending:3"]),
        ({"type": "json_match", "value": {"a": 1}, "ignore": ["b"]}, '{"a": 2, "b": 3}', ["offending:2"]),
        # calls
        ({"type": "tool_calls", "value": EXPECTED_CALL}, CALL, ['offending:"Bergen"', "offending:2", 'offending:"C"']),
        (
            {"type": "tool_calls", "value": EXPECTED_CALL, "arguments": "subset"},
            CALL,
            ['offending:"Bergen"', "offending:2"],
        ),
        (
            {"type": "tool_calls", "value": EXPECTED_CALL},
            f"<tool_call>{CALL[1:-1]}</tool_call>",
            ['offending:"Bergen"', "offending:2", 'offending:"C"'],
        ),
        ({"type": "tool_calls", "value": [{"date": {}}]}, CALL, []),
        ({"type": "tool_calls", "value": EXPECTED_CALL}, "[weather(city='Bergen')]", []),
        # words and letters
        ({"type": "repetition", "n": 2}, "İ a. İ A. b", ["offending:İ A."]),
        ({"type": "case", "is": "upper"}, "ÀßǅX", ["offending:ßǅ"]),
        (TITLE, "In the hOUSE", ["offending:t", "offending:hOUSE"]),
        ({"type": "case", "is": "lower", "negate": True}, "ab", []),
    ],
)
def test_marks(check, text, marks):
    assert marked(check, text) == marks


@pytest.mark.parametrize(
    ("check", "text", "columns", "marks"),
    [
        ({"type": "contains", "value": "a", "on": ["prompt"]}, "x", {"prompt": "b a"}, ["matched:a"]),
        (
            {"type": "equals", "value": "a", "on": [{"column": "metadata.note"}, "strip"]},
            "x",
            {"metadata": {"note": " b "}},
            ["read:b"],
        ),
        (
            {"type": "task_expectations"},
            "Sorry, REFUND",
            mention(mustMention=[{"anyOf": ["money", "refund"]}], mustNotMention=[{"anyOf": ["sorry", "r"]}]),
            ["offending:Sorry", "offending:r", "offending:r", "offending:R", "matched:REFUND"],
        ),
        ({"type": "ifeval"}, "a, cat, Cat", instructions("punctuation:no_comma"), ["offending:,", "offending:,"]),
        (
            {"type": "ifeval"},
            "a cat, Cat",
            instructions("keywords:existence", keywords=["cat", "dog"]),
            ["matched:cat"],
        ),
        (
            {"type": "ifeval"},
            "cats, Cat",
            instructions("keywords:forbidden_words", forbidden_words=["cat"]),
            ["offending:Cat"],
        ),
        ({"type": "ifeval"}, "x", instructions("keywords:existence", keywords=["("]), []),
        ({"type": "tool_calls", "value": []}, [{"role": "assistant", "content": CALL}], {}, []),
        ({"type": "contains", "value": "a", "on": ["toolCalls"]}, CALL, {}, []),
        ({"type": "equals", "value": {"column": "gold"}}, "a", {"gold": None}, []),
        ({"type": "equals", "value": "b", "when": {"column": "go", "equals": "1"}}, "b", {"go": "0"}, []),
        ({"type": "contains", "value": "a"}, None, {}, []),
        ({"type": "max_length", "value": {"column": "most"}}, "abc", {"most": 2}, ["excess:c"]),
        ({"type": "count", "of": "words", "max": {"column": "most"}}, "a b c", {"most": 1}, ["excess:b c"]),
        ({"type": "length_penalty", "max": {"column": "most"}, "buffer": 1}, "abc", {"most": 2}, ["excess:bc"]),
        ({"type": "regex", "pattern": {"column": "p"}}, "abc", {"p": ["b", "x"]}, ["matched:b"]),
        (
            {"type": "json_schema", "schema": {"column": "s"}},
            '{"a": 1}',
            {"s": {"properties": {"a": {"type": "string"}}}},
            ["offending:1"],
        ),
        (
            {"type": "tool_calls", "value": {"column": "calls"}},
            CALL,
            {"calls": [{"name": "weather", "arguments": {"city": "Bergen", "days": 2}}]},
            ['offending:"C"'],
        ),
    ],
)
def test_marks_of_rows_with_columns(check, text, columns, marks):
    assert marked(check, text, **columns) == marks


def test_leaves_of_groups_have_evidence_and_groups_have_none():
    group = {
        "id": "g",
        "type": "any_of",
        "checks": [{"id": "a", "type": "contains", "value": "x"}, {"type": "case", "is": "upper"}],
    }
    assert [(one.check, one.passes, one.spans) for one in evidence(group, "x").checks] == [
        ("g.a", True, ((0, 1, "matched"),)),
        ("g.case", False, ((0, 1, "offending"),)),
    ]


def test_what_did_not_run_reads_nothing():
    (one,) = evidence({"type": "equals", "value": "b"}, None).checks
    assert (one.score, one.passes, one.read, one.expected, one.spans) == (None, None, None, (), ())


def test_at_most_a_hundred_spans_in_order():
    (one,) = evidence({"type": "not_contains", "value": "a"}, "a" * 500).checks
    assert [span.start for span in one.spans] == [*range(100)]


def test_a_pattern_beyond_the_limits_of_a_run_has_no_spans():
    (one,) = evidence({"type": "regex", "pattern": r"(a|aa)+\1$"}, "a" * 60 + "b").checks
    assert (one.passes, one.spans) == (False, ())


EVERY_TYPE = [
    {"type": check.type, "params": dict(check.examples[0].params or {})} for check in assay.CHECKS if check.examples
]


@pytest.mark.parametrize("check", EVERY_TYPE, ids=lambda check: check["type"])
@pytest.mark.parametrize("on", [None, ["whitespace", "upper"], [{"json": "first"}]], ids=str)
def test_hostile_texts_run_through(check, on):
    if on and check["type"].startswith("tool"):
        on = [{"json": "first"}]
    columns = mention(mustMention=[{"text": "e"}]) | instructions("punctuation:no_comma")
    columns |= {"expected_output_schema": {"required": ["a"]}, "tools": []}
    for text in [*hostile_texts(sized(5, 2)), '{"a": "\\ud800"}', "\ud800", "x" * 3_000]:
        for negate in (False, True):
            seen = evidence(check | ({"on": on} if on else {}) | {"negate": negate}, text, **columns)
            for one in seen.checks:
                length = len(seen.sources.get(one.source, seen.text))
                assert all(0 <= start < end <= length and kind in KINDS for start, end, kind in one.spans)
                assert [*one.spans] == sorted(
                    {*one.spans}, key=lambda span: (span.start, span.end, KINDS.index(span.kind))
                )
            json.dumps(seen.as_json())


@pytest.mark.parametrize(
    ("row", "fact"),
    [
        ({"output": "a"}, "The row has no `completion`."),
        ({}, "The row has no `completion`."),
        ({"completion": 5}, "Row 0: a completion is a string or a list of chat messages, not int."),
        ({"completion": ["a"]}, "Row 0: a chat message is str, not a mapping with `role` and `content`."),
    ],
)
def test_a_row_without_a_completion_is_an_error_for_people(row, fact):
    with pytest.raises(assay.InputError) as refused:
        assay.evidence(row, {"checks": [{"type": "contains", "value": "a"}]})
    assert refused.value.fact == fact


@pytest.mark.parametrize("word", [False, True])
def test_a_phrase_is_marked_where_the_check_passes_and_only_there(word):
    for text in hostile_texts(sized(150, 50)):
        for phrase in ("a", "ß", "i\u0307", "S", " ", "\n"):
            check = {"type": "contains", "value": phrase, "word": word}
            (one,) = evidence(check, text).checks
            assert bool([span for span in one.spans if span.kind == "matched"]) is one.passes
            (one,) = evidence(check | {"negate": True}, text).checks
            assert bool(one.spans) is not one.passes


def test_the_example_of_the_documentation_holds():
    result = doctest.testmod(sys.modules[assay.evidence.__module__])
    assert (result.attempted > 0, result.failed) == (True, 0)


def test_a_grader_has_the_evidence_of_the_check_that_makes_it():
    columns = {"answer": "paris", "golds": ["Paris", "x"], "tools": [], "possible_answer": [{"f": {"a": [1]}}]}
    seen = set()
    for grader in GRADERS.values():
        for options in variants(grader):
            check = fragment_of(grader, options)
            if check is None or grader.name == "ifeval":
                continue
            gold = {} if grader.golds == "none" else {"value": {"column": "golds" if grader.whole_list else "answer"}}
            named = {"id": "c", "type": "grader", "name": grader.name, "options": options, **gold}
            for text in ("it is Paris: #### 12,000 Answer: B", "Paris.", "<think>\n</think>"):
                found = evidence(named, text, **columns).as_json()
                assert found == evidence({"id": "c", **check}, text, **columns).as_json(), (grader.name, options)
                seen |= {span["kind"] for span in found["checks"][0]["spans"]}
    assert seen == {"read", "matched", "gold", "offending"}


def test_a_grader_of_a_row_marks_at_most_what_its_steps_find():
    check = {"type": "grader", "name": "inspect.answer", "value": "Rome", "options": {"pattern": "line"}}
    assert marked(check, "Q. ANSWER: Paris") == []
    assert marked({**check, "on": [{"after": "Q."}]}, "Q. ANSWER: Paris") == ["read:ANSWER: Paris"]
