"""Rows of plain Python become columns without loss, whatever a column mixes."""

import json
from contextlib import suppress
from datetime import date

import polars as pl
import pytest

import assay
from assay.values.arguments import messages, shown_expr

SPEC = {"checks": [{"type": "contains", "value": "b"}]}


def column(values):
    return assay.scan([{"completion": "a", "x": value} for value in values]).collect()["x"]


def completions(values):
    frame = assay.scan([{"completion": value} for value in values]).collect()
    return frame.select(shown_expr(pl.col("completion"), frame.schema["completion"])).to_series().to_list()


def test_a_column_keeps_its_type_and_a_mixed_one_becomes_json_text():
    for values, dtype, expected in [
        ([1, None, 2], pl.Int64, [1, None, 2]),
        ([None] * 2000 + ["late"], pl.String, [None] * 2000 + ["late"]),
        ([True, False], pl.Boolean, [True, False]),
        ([(1, 2), [3], ()], pl.List(pl.Int64), [[1, 2], [3], []]),
        ([1, "x", None, True], pl.String, ["1", "x", None, "true"]),
        ([1, 2**64 + 1, 2**200], pl.String, ["1", str(2**64 + 1), str(2**200)]),
        ([2**53 + 1, "0.50"], pl.String, ["9007199254740993", "0.50"]),
        ([1, [1, 2.5], {"k": None}, ("é", "\n")], pl.String, ["1", "[1, 2.5]", '{"k": null}', '["\\u00e9", "\\n"]']),
        ([[1, "b"]], pl.String, ['[1, "b"]']),
        ([[1], ["b"]], pl.String, ["[1]", '["b"]']),
        ([[[1]], [1]], pl.String, ["[[1]]", "[1]"]),
        ([{"k": 1}, {"k": "s"}], pl.String, ['{"k": 1}', '{"k": "s"}']),
        ([date(2024, 1, 2), 1], pl.String, ['"2024-01-02"', "1"]),
    ]:
        found = column(values)
        assert found.dtype == dtype
        assert found.to_list() == expected


def test_a_key_of_a_later_mapping_is_not_lost():
    for values, structs, texts in [
        ([{"k": 1}, {"l": "s"}], [{"k": 1, "l": None}, {"k": None, "l": "s"}], ['{"k": 1}', '{"l": "s"}']),
        ([[{"k": 1}, {"l": 2}]], [[{"k": 1, "l": None}, {"k": None, "l": 2}]], ['[{"k": 1}, {"l": 2}]']),
    ]:
        assert column(values).to_list() in (structs, texts)


def test_what_no_column_can_hold_becomes_text():
    for values in [[{1}], [object()], [1, object()]]:
        assert column(values).dtype == pl.String


def test_a_key_that_a_row_lacks_is_null_there():
    rows = [{"a": 1}, {"completion": "b", 2: "c"}, {}]
    assert assay.scan(rows).collect().rows(named=True) == [
        {"a": 1, "completion": None, "2": None},
        {"a": None, "completion": "b", "2": "c"},
        {"a": None, "completion": None, "2": None},
    ]


def test_a_lone_surrogate_in_a_completion_becomes_the_replacement_character():
    for value, expected in [
        ("a\ud800b", "a\ufffdb"),
        ("\udfff\ud83d", "\ufffd\ufffd"),
        ("a\x00b\ue000", "a\x00b\ue000"),
        ([{"role": "assistant", "content": "\ud800"}], [{"role": "assistant", "content": "\ufffd"}]),
        (
            [{"role": "assistant", "content": [{"text": "\ud800"}, {"text": "b"}]}],
            [{"role": "assistant", "content": "\ufffdb"}],
        ),
    ]:
        assert completions([value]) == [expected]


def test_a_lone_surrogate_in_any_other_column_becomes_the_replacement_character():
    for values, expected in [
        (["\ud800", 1], ["\ufffd", "1"]),
        ([{"k": ["\ud800"]}], [{"k": ["\ufffd"]}]),
        ([{"\ud800": 1}], [{"\ufffd": 1}]),
        ([("\ud800",)], [["\ufffd"]]),
    ]:
        assert column(values).to_list() == expected


def test_a_lone_surrogate_in_the_name_of_a_column_becomes_the_replacement_character():
    columns = None
    with suppress(RecursionError):  # pytest takes minutes to show a traceback that deep
        columns = assay.scan([{"completion": "a", "\ud800": 1}]).collect().columns
    assert columns == ["completion", "\ufffd"]


B = [{"role": "assistant", "content": "b"}]


def test_messages_keep_role_and_text_and_a_string_beside_them_is_a_message_of_the_assistant():
    for values, expected in [
        (["b", None, ""], ["b", None, ""]),
        (["b", [{"role": "user", "content": "a"}], None, []], [B, [{"role": "user", "content": "a"}], None, []]),
        ([[{"role": "assistant", "content": "a"}], "b"], [[{"role": "assistant", "content": "a"}], B]),
        (["[]", []], [[{"role": "assistant", "content": "[]"}], []]),
        (
            [[{"role": "user", "content": "a"}], [{"role": "assistant", "content": [{"text": "b"}, {"url": 1}, "c"]}]],
            [[{"role": "user", "content": "a"}], [{"role": "assistant", "content": "bc"}]],
        ),
        ([[{"content": 5}, {"content": None}], None, []], [[{"role": None, "content": ""}] * 2, None, []]),
        ([({"role": "assistant", "content": "b", "tool_calls": [1, "x"]},)], [[{"role": "assistant", "content": "b"}]]),
    ]:
        assert completions(values) == expected


def test_what_role_and_text_do_not_say_of_a_message_stands_beside_them():
    for message in [
        {"role": "assistant", "content": "b", "tool_calls": [1, "x", {"a": None}]},
        {"role": "assistant", "content": None},
        {"role": "assistant"},
        {"content": 5},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "u"}}]},
        {"role": "tool", "content": "a", "tool_call_id": "1"},
    ]:
        plain = {"role": "user", "content": "a"}
        frame = assay.scan([{"completion": [plain, message]}, {"completion": [plain]}]).collect()
        assert [messages(value) for value in frame["completion"].to_list()] == [[plain, message], [plain]]


def test_a_message_nested_without_end_is_refused():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(assay.InputError, match="nested"):
        assay.scan([{"completion": [{"role": "assistant", "content": deep}]}])


def test_a_completion_scores_the_same_whatever_the_row_beside_it():
    for value, reward in [
        ([{"role": "assistant", "content": "b"}, None], 1.0),
        ([None], None),
        ([{"role": "user", "content": "b"}], None),
        ([{"role": "assistant", "content": ({"text": "b"},)}], 1.0),
        (({"role": "assistant", "content": ("a", "b")},), 1.0),
    ]:
        for other in [None, "b", [{"role": "assistant", "content": "b"}]]:
            rewards = assay.score([{"completion": value}, {"completion": other}], SPEC)["reward"].to_list()
            assert rewards == [reward, None if other is None else 1.0]


def test_a_completion_that_is_neither_text_nor_messages_is_refused_whatever_the_row_beside_it():
    for value in [7, {"text": "b"}, b"b", ["b"]]:
        for other in [None, "b", [{"role": "assistant", "content": "b"}]]:
            with pytest.raises(assay.InputError):
                assay.score([{"completion": other}, {"completion": value}], SPEC)


def test_structure_travels_as_json_text():
    for metadata, expected in [
        ({"k": [1, "x"]}, '{"k": [1, "x"]}'),
        ('{"k":  1}', '{"k":  1}'),
        ([1], "[1]"),
        (None, None),
    ]:
        for other in [None, "text", {"k": {}}, [None]]:
            rows = [{"completion": "a", "metadata": metadata}, {"completion": "a", "metadata": other}]
            assert assay.scan(rows).collect()["metadata"].to_list()[0] == expected


def test_a_row_that_is_no_mapping_is_refused():
    for rows, message in [
        ([{"completion": "a"}, ["b"]], "Row 1 is list; a row is a mapping of columns to values."),
        ([None], "Row 0 is NoneType; a row is a mapping of columns to values."),
        (
            [{"completion": ["b"]}],
            (
                "Row 0: a chat message is str, not a mapping with `role` and `content`.\n\n"
                'For a row for each element: mapping={"completion": "$.completion[]"}'
            ),
        ),
    ]:
        with pytest.raises(assay.InputError) as refused:
            assay.scan(rows)
        assert str(refused.value) == message


GOOD = {"expectations": [{"text": "a"}]}
MENTION = {"expectations": {"mustMention": [{"text": "zz"}]}}
NEEDS_A = {"required": ["a"]}
STRUCTURE = {
    "expectations as list and as mapping": ([(GOOD, NEEDS_A), (MENTION, NEEDS_A)], [1.0, 0.5]),
    "anyOf as text and as list": (
        [({"expectations": [{"anyOf": "a"}]}, NEEDS_A), ({"expectations": [{"anyOf": ["a"]}]}, NEEDS_A)],
        [0.5, 1.0],
    ),
    "text as number and as text": ([({"expectations": [{"text": 1}]}, NEEDS_A), (GOOD, NEEDS_A)], [0.5, 1.0]),
    "metadata as list, text and mapping": (
        [([1], NEEDS_A), (json.dumps(MENTION), NEEDS_A), (GOOD, NEEDS_A), (None, NEEDS_A)],
        [0.5, 0.5, 1.0, 1.0],
    ),
    "required as text, numbers and list": (
        [(GOOD, {"required": "a"}), (GOOD, {"required": [1]}), (GOOD, NEEDS_A), (GOOD, {"required": []})],
        [0.5, 0.5, 1.0, 1.0],
    ),
    "additionalProperties as boolean and as schema": (
        [(GOOD, {**NEEDS_A, "additionalProperties": more}) for more in (False, {"type": "string"})],
        [1.0, 1.0],
    ),
    "properties with defaults of several types": (
        [(GOOD, {"properties": {"a": {"default": value}}}) for value in (1, "x", [1], {"k": 1}, None)],
        [1.0] * 5,
    ),
    "keys whose value is null": ([(GOOD, {"a": None}), (GOOD, {"a": None, "b": "string"})], [1.0, 0.5]),
    "schema as list and as mapping": ([(GOOD, [1]), (GOOD, {}), (GOOD, NEEDS_A)], [0.5, 0.5, 1.0]),
}


@pytest.mark.parametrize(("pairs", "rewards"), STRUCTURE.values(), ids=STRUCTURE)
def test_structure_scores_the_same_from_python_and_from_jsonl_alone_and_among_others(tmp_path, pairs, rewards):
    spec = {"checks": [{"type": "task_expectations"}, {"type": "expected_output_schema"}]}
    rows = [{"completion": '{"a": 1}', "metadata": one, "expected_output_schema": two} for one, two in pairs]
    lines = [json.dumps(row) + "\n" for row in rows]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(lines))
    assert assay.score(rows, spec)["reward"].to_list() == rewards
    assert assay.score(path, spec)["reward"].to_list() == rewards
    for line, reward in zip(lines, rewards, strict=True):
        path.write_text(line)
        assert assay.score(path, spec)["reward"].to_list() == [reward]


SELF = {}
SELF["me"] = [SELF]
DEEP = []
for _ in range(2000):
    DEEP = [DEEP]


def test_a_value_without_end_is_refused_with_its_place():
    for name in ["x", "metadata", "expected_output_schema"]:
        for value in [SELF, DEEP]:
            with pytest.raises(assay.InputError) as refused:
                assay.scan([{"completion": "a"}, {name: value}])
            assert str(refused.value) == f"Row 1: `{name}` is nested deeper than 500 levels, or contains itself."


def test_a_key_that_no_object_can_have_is_refused_with_its_place():
    for name in ["x", "metadata"]:
        for value, message in [
            ({"k": [{(1, 2): 3}]}, "has a key of type tuple, (1, 2); a key is a string"),
            ({b"k": 3}, "has a key of type bytes, b'k'; a key is a string"),
            ({1: "a", "1": "b"}, "has two keys that read `1`"),
            ([{None: "a", "null": "b"}], "has two keys that read `null`"),
        ]:
            with pytest.raises(assay.InputError) as refused:
                assay.scan({"completion": ["a", "a"], name: [None, value]})
            assert str(refused.value) == f"Row 1: `{name}` {message}."


def test_other_keys_are_what_json_makes_of_them():
    for name in ["x", "metadata"]:
        rows = [{"completion": "a", name: {1: "a", None: 1, 0.5: 3}}]
        assert assay.scan(rows).collect()[name].to_list() == ['{"1": "a", "null": 1, "0.5": 3}']


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(assay.InputError, match="Two columns have names that read `1`"):
        assay.scan({"completion": ["a"], 1: [1], "1": [2]})


def test_the_caller_is_told_of_messages_without_any_content_and_what_they_have():
    for rows in [
        [[{"from": "gpt", "value": "b"}]],
        [[{"from": "gpt", "value": "b"}], "b"],
        [[], [None], [{"from": "gpt", "value": "b"}]],
        [[{"from": "gpt", "content": 5}]],
    ]:
        with pytest.warns(
            assay.AssayWarning, match="has a readable `content`, so their text is empty; their fields: from, "
        ):
            found = assay.score([{"completion": value} for value in rows], SPEC, any_role=True)
        assert found["reward"].to_list() == [float(value == "b") for value in rows]


def test_a_message_with_tool_calls_only_says_nothing():
    calls = [{"role": "assistant", "tool_calls": [{"id": "1"}]}]
    rows = [{"completion": calls}, {"completion": [{"role": "assistant", "content": None}]}]
    assert assay.score(rows, SPEC)["reward"].to_list() == [0.0, 0.0]


def test_a_column_that_becomes_the_completion_is_read_as_one():
    rows = [{"resp": [{"role": "assistant", "content": [{"text": "b"}]}]}, {"resp": "b"}, {"resp": "a"}]
    assert assay.score(rows, SPEC, mapping={"completion": "resp"})["reward"].to_list() == [1.0, 1.0, 0.0]
