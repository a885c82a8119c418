"""Tool calls: every form in messages and in text is read as one, and nothing that a model writes takes long or fails."""

import json
import random
import re
import sys
import threading

import polars as pl
import pytest
from cases import sized
from hostile import hostile_pieces

from assay import load_verifier, score
from assay.expressions.json import MAX_DEPTH
from assay.steps.sources import CallSource, Source, calls_of_structs, has_plain_calls
from assay.steps.tool_calls.calls import calls_of_messages, calls_text, parsed_calls, read_calls
from assay.steps.tool_calls.python import MAX_CHARS, calls_in_python
from assay.steps.tool_calls.text import calls_in_text, calls_text_in
from assay.testing import assert_plan_conforms
from assay.values.arguments import RAW

CITY = {"city": "Oslo"}
CALL = {"name": "weather", "arguments": CITY}
MESSAGES = {
    "OpenAI": {
        "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
        ]
    },
    "OpenAI, parsed": {"tool_calls": [{"function": {"name": "weather", "arguments": CITY}}]},
    "OpenAI, a text": {"tool_calls": json.dumps([{"function": {"name": "weather", "arguments": CITY}}])},
    "OpenAI, texts": {"tool_calls": [json.dumps({"function": CALL})]},
    "OpenAI, old": {"function_call": {"name": "weather", "arguments": '{"city": "Oslo"}'}},
    "LangChain": {"tool_calls": [{"name": "weather", "args": CITY, "id": "1", "type": "tool_call"}]},
    "LangChain, twice": {
        "tool_calls": [{"name": "weather", "args": CITY}],
        "content": [{"type": "tool_use", "name": "weather", "input": CITY}],
    },
    "Anthropic": {
        "content": [{"type": "text", "text": "I look."}, {"type": "tool_use", "name": "weather", "input": CITY}]
    },
    "Gemini": {"parts": [{"text": "I look."}, {"functionCall": {"name": "weather", "args": CITY}}]},
    "Gemini, Python": {"parts": [{"function_call": {"name": "weather", "args": CITY}}]},
    "Responses": {
        "content": [{"type": "function_call", "call_id": "1", "name": "weather", "arguments": '{"city": "Oslo"}'}]
    },
}


def test_every_form_of_message_is_read():
    for form, message in MESSAGES.items():
        assert parsed_calls(calls_of_messages([{"role": "assistant", **message}])) == [CALL], form
        assert calls_of_messages([{"role": "user", **message}, {"role": "tool", **message}]) == []


def test_items_of_the_responses_api_are_calls_themselves():
    items = [
        {"type": "reasoning", "summary": []},
        {
            "type": "function_call",
            "call_id": "1",
            "name": "weather",
            "arguments": '{"city": "Oslo"}',
            "status": "completed",
        },
        {"type": "function_call_output", "call_id": "1", "output": "4 °C"},
    ]
    assert parsed_calls(calls_of_messages(items)) == [CALL]


REQUESTS = [
    ({"name": "f"}, [{"name": "f", "arguments": {}}]),
    ({"name": "f", "arguments": None}, [{"name": "f", "arguments": {}}]),
    ({"name": "f", "arguments": "{city: Oslo"}, [{"name": "f", "arguments": "{city: Oslo"}]),
    ({"name": "f", "arguments": ""}, [{"name": "f", "arguments": ""}]),
    ({"name": "f", "arguments": "[1]"}, [{"name": "f", "arguments": [1]}]),
    ({"name": 5, "arguments": {}}, [{"name": 5, "arguments": {}}]),
    *((request, []) for request in ({"name": ""}, {"arguments": {}}, None, "f", [])),
]


def test_calls_that_are_not_in_order():
    for request, expected in REQUESTS:
        calls = calls_of_messages([{"role": "assistant", "tool_calls": [{"function": request}]}])
        assert parsed_calls(calls) == read_calls(calls_text(calls)) == expected


TEXTS = [
    ('{"name": "weather", "arguments": {"city": "Oslo"}}', {"any", "json"}),
    ('[{"name": "weather", "arguments": "{\\"city\\": \\"Oslo\\"}"}]', {"any", "json"}),
    ('{"type": "function", "function": {"name": "weather", "parameters": {"city": "Oslo"}}}', {"any", "json"}),
    ('I look.\n{"name": "weather", "parameters": {"city": "Oslo"}}\nDone.', {"any", "json"}),
    ('{"tool_calls": [{"function": {"name": "weather", "arguments": {"city": "Oslo"}}}]}', {"any", "json"}),
    (
        '[{"role": "user", "content": "?"}, {"role": "assistant", "function_call": {"name": "weather", "args": {"city": "Oslo"}}}]',
        {"any", "json"},
    ),
    ('I look.\n<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>', {"any", "json", "tags"}),
    ("[weather(city='Oslo')]", {"any", "python"}),
    ('{"name": "Alice", "age": 30}', set()),
    ('It is {"name": "weather"}.', set()),
    ("print('Oslo')", set()),
    ("[1, 2]", set()),
    ("", set()),
]


@pytest.mark.parametrize("form", ["any", "json", "tags", "python"])
def test_every_form_of_text_is_read(form):
    for text, forms in TEXTS:
        assert parsed_calls(calls_in_text(text, form)) == ([CALL] if form in forms else []), text


def test_several_calls_in_tags():
    one, other = json.dumps(CALL), json.dumps({"name": "time", "arguments": {}})
    text = f"<tool_call>{one}</tool_call> and <tool_call>[{other}, {one}]</tool_call><tool_call>{one}"
    assert [call["name"] for call in calls_in_text(text)] == ["weather", "time", "weather"]


def test_a_tag_that_cannot_be_read_is_a_call_without_a_name():
    assert calls_in_text("<tool_call>weather(Oslo)</tool_call>") == [{"name": None, "arguments": "weather(Oslo)"}]
    assert calls_in_text("<tool_call></tool_call>") == [{"name": None, "arguments": ""}]


TAGS = [
    json.dumps(CALL),
    '{"arguments": {"x": 1e999, "y": [NaN]}, "name": "f", "name": "g"}',
    '{"name": "f", "arguments": "{}"}',
    '{"name": "f", "arguments": null}',
    '{"name": "", "arguments": {}}',
    '{"name": 5, "arguments": {}}',
    '{"name": "f"}',
    '{"name": "f", "arguments": {}, "role": "user"}',
    '{"name": "\\ud800", "arguments": {"x": "\\ude00"}}',
    f'{{"name": "f", "arguments": {"[" * (MAX_DEPTH - 2)}{"]" * (MAX_DEPTH - 2)}}}',
    # no JSON, though a list of all of them may be
    *('{"name": "f", "arguments": {"x": "', '"}}, {"name": "g", "arguments": {}}'),
    *('{"name": "f", "arguments": {"x": 1', '"y": 2}}', f"{json.dumps(CALL)}, {json.dumps(CALL)}", "[1", "2]", ""),
]


def test_the_text_of_calls_in_tags_is_that_of_the_calls():
    rng = random.Random(5)
    for form in ("any", "tags"):
        for _ in range(sized(20_000, 2_000)):
            usual, all_kinds = [TAGS[0]] * rng.randrange(4), rng.choices(TAGS, k=rng.randrange(4))
            pieces = [*usual, *all_kinds] if rng.random() < 0.5 else [*all_kinds, *usual]
            text = " ".join(f"<tool_call>\n{piece} </tool_call>" for piece in pieces)
            written = calls_text_in(text, form), calls_text(calls_in_text(text, form))
            first, second = (json.dumps(read_calls(calls), sort_keys=True) for calls in written)
            assert first == second
    assert (
        calls_text_in(f"<tool_call>{TAGS[0]}</tool_call><tool_call>{TAGS[1]}</tool_call>") == f"[{TAGS[0]},{TAGS[1]}]"
    )


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("[f()]", {}),
        ("[ f ( a = 1 , ) ]", {"a": 1}),
        ("[f(a=(1, 2), b={'x': [None, True]}, c=-1.5e3)]", {"a": [1, 2], "b": {"x": [None, True]}, "c": -1500.0}),
        (
            r"[f(a='\d\477\n', b=r'\d', c='''x'y''', d='p' 'q')]",
            {"a": "\\d\u013f\n", "b": "\\d", "c": "x'y", "d": "pq"},
        ),
        ("[f(1)]", None),
        ("[f(a=x)]", None),
        ("[f(a={1, 2})]", None),
        ("[f(a=g())]", None),
    ],
)
def test_python(text, arguments):
    (call,) = calls_in_python(text)
    assert call["name"] == "f"
    assert call["arguments"] == arguments if arguments is not None else isinstance(call["arguments"], str)


NO_CALLS = (
    *(
        "f(a=1)",
        "[f(a=1)",
        "[f(a=1), 2]",
        "[f(**{'a': 1})]",
        "[f(a=1)(b=2)]",
        "[f(a=1)[0]]",
        "[f(a=1+2)]",
        "[f(a=b'x')]",
    ),
    *("[f(a=lambda: 1)]", "[f(a=not 1)]", "[f(a=[x for x in 'y'])]", "[f(a=f'{x}')]", "[f(a=1) if x else g()]"),
    *("[(f)(a=1)]", "[f(a=1); g()]", "[f(a='x)]", "[await f()]", "[f(a=1j)]", "[f(a=0777)]", "[f(a=...)]", "[]"),
)


def test_what_is_no_list_of_python_calls():
    assert not [text for text in NO_CALLS if calls_in_python(text)]


def test_names_with_dots():
    assert [call["name"] for call in calls_in_python("[math.sqrt(x=4), a.b.c()]")] == ["math.sqrt", "a.b.c"]


N = MAX_CHARS - 100
BOMBS = {
    "parentheses": "[" + "(" * N + ")" * N + "]",
    "brackets in an argument": "[f(a=" + "[" * (N // 2) + "]" * (N // 2) + ")]",
    "signs": "[f(a=" + "-" * N + "1)]",
    "attributes": "[f" + ".a" * (N // 2) + "()]",
    "calls of calls": "[f" + "()" * (N // 2) + "]",
    "lambdas": "[f(a=" + "lambda:" * (N // 7) + "1)]",
    "sums": "[f(a=" + "1+" * (N // 2) + "1)]",
    "subscripts": "[f" + "[0]" * (N // 3) + "()]",
    "conditions": "[f(a=" + "1 if 1 else " * (N // 12) + "1)]",
    "strings in strings": "[f(a=" + "f'{" * (N // 3) + ")]",
    "digits": "[f(a=" + "9" * N + ")]",
    "too long": "[" + "f(a=1)," * N + "]",
}


def test_what_python_itself_would_take_long_or_crash_for_is_no_call():
    assert not [name for name, bomb in BOMBS.items() if calls_in_text(bomb, "python")]


HOSTILE = {
    "5 MB of prose": "word { ( [ " * 500_000,
    "tags that open": "<tool_call>" * 450_000,
    "broken calls": '{"name": \n' * 500_000,
    "lists that open": '"name"' + "[" * 5_000_000,
    "one call of 5 MB": json.dumps({"name": "f", "arguments": {"text": "x" * 5_000_000}}),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_large_texts_take_bounded_time(case):
    calls = calls_in_text(HOSTILE[case])
    assert len(calls) == (case == "one call of 5 MB")


def test_a_hundred_thousand_calls_are_all_read():
    count = sized(100_000, 10_000)
    for text in (json.dumps([CALL] * count), f"{json.dumps(CALL)}\n" * count):
        calls = calls_in_text(text)
        assert len(calls) == count
        assert read_calls(calls_text(calls)) == calls


def nested(depth):
    return json.loads("[" * depth + "]" * depth)


@pytest.mark.parametrize(("depth", "kept"), [(MAX_DEPTH - 3, True), (MAX_DEPTH - 2, False), (900, False)])
def test_nested_arguments_are_kept_or_no_object_and_other_calls_stay(depth, kept):
    deep = {"name": "f", "arguments": {"a": nested(depth)}}
    (first, second) = read_calls(calls_text([deep, CALL]))
    assert second == CALL
    assert first == deep if kept else isinstance(first["arguments"], str)


def test_a_deep_stack_changes_no_call():
    calls = [{"name": "f", "arguments": {"a": nested(400)}}]
    found = []

    def descend(levels):
        return found.append(read_calls(calls_text(calls))) if levels == 0 else descend(levels - 1)

    thread = threading.Thread(target=descend, args=(sys.getrecursionlimit() - 200,))
    thread.start()
    thread.join()
    assert found == [calls]


def test_hostile_texts_have_no_call_and_raise_nothing():
    for text in hostile_pieces(sized(20_000, 500), seed=5):
        for form in ("any", "json", "tags", "python"):
            assert isinstance(calls_in_text(text, form), list)


# ── as a source ─────────────────────────────────────────────────────────────────────────────────────────────────────────

TURNS = [
    {"role": "user", "content": "?"},
    {"role": "assistant", "content": "", **MESSAGES["OpenAI"]},
    {"role": "tool", "content": "4 °C"},
    {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "time", "arguments": "{}"}}]},
]


def names(completion, **options):
    return re.findall(r'"name": "(\w+)"', CallSource(**options).row({RAW: completion}))


def test_all_messages_or_the_last():
    assert names(TURNS) == ["weather", "time"]
    assert names(TURNS, scope="last") == ["time"]
    answer = [*TURNS, {"role": "assistant", "content": "[late(a=1)]"}]
    assert names(answer) == ["weather", "time"]  # messages with calls of their own
    assert names(answer, scope="last") == ["late"]


def test_texts_of_messages_are_read_where_no_message_has_calls():
    tagged = '<tool_call>{"name": "a", "arguments": {}}</tool_call>'
    said = [
        {"role": "assistant", "content": tagged},
        {"role": "user", "content": tagged},
        {"role": "assistant", "content": "[b()]"},
    ]
    assert names(said) == ["a", "b"]
    assert names(said, form="python") == ["b"]
    assert names(said, scope="last") == ["b"]


def test_a_row_without_calls():
    assert CallSource().row({RAW: "no"}) == CallSource().row({RAW: [{"role": "assistant", "content": "no"}]}) == "[]"
    assert Source("toolCalls").row({RAW: "no"}) is None


def test_calls_of_messages_in_the_types_of_tables():
    checks = [{"type": "tool_f1", "value": ["weather"]}, {"type": "contains", "value": "Oslo", "on": "toolCalls"}]
    verifier = load_verifier({"checks": checks})
    messages = [[{"role": "assistant", "content": "", **message}] for message in MESSAGES.values()]
    rows = [{"completion": completion} for completion in (*messages, "[weather(city='Oslo')]", "no", None, TURNS)]
    assert_plan_conforms([verifier], rows)
    for row in rows:
        assert_plan_conforms([verifier], [row])
    alone = score([{"completion": completion} for completion in messages], verifier)
    assert alone["reward"].to_list() == [1.0] * len(MESSAGES)


FUNCTION = pl.Struct({"name": pl.String, "arguments": pl.String})
PLAIN = pl.List(
    pl.Struct(
        {
            "role": pl.String,
            "content": pl.String,
            "tool_calls": pl.List(pl.Struct({"id": pl.String, "function": FUNCTION})),
            "reasoning": pl.String,
        }
    )
)
GIVEN = (
    *("{}", '{"a": 1}', ' {"a": [1, {"b": null}]} ', '{"a": "é\\ud83d"}', '"{\\"a\\": 1}"'),
    *("[1]", "3", "{", "", None, "NaN"),
    *('{"a": 1, "a": 2}', '{"a": ' + "[" * 600 + "]" * 600 + "}", '{"a": ' + "9" * 5000 + "}", '{"\x00": "\\u0000"}'),
)


def plain_rows(rng, count):
    """Conversations in the form of most tables, with everything that may be null."""
    requests = [None, {"name": None, "arguments": "{}"}, {"name": "", "arguments": "{}"}]
    requests += [{"name": name, "arguments": given} for name in ("f", 'g"\n\u202e', "é") for given in GIVEN]
    for _ in range(count):
        yield rng.choice(
            (
                None,
                [],
                *(
                    [
                        rng.choice((None, *[{"role": role, "content": text, "tool_calls": calls}] * 6))
                        for role in rng.choices(("assistant", "assistant", "model", "user", "tool", None), k=size)
                        for text in (rng.choice((None, "", "no", "[h(a=1)]", '{"name": "h"}')),)
                        for calls in (
                            rng.choice((None, [], [None], [{"function": one} for one in rng.sample(requests, 2)])),
                        )
                    ]
                    for size in (1, 2, 4)
                ),
            )
        )


@pytest.mark.parametrize("scope", ["all", "last"])
def test_plain_calls_are_the_same_in_columns(scope):
    completions = [*plain_rows(random.Random(scope), sized(20_000, 600))]
    series = pl.Series("completion", completions, dtype=PLAIN)
    assert has_plain_calls(PLAIN)
    source = CallSource(scope=scope)
    frame = series.to_frame()
    columns = frame.select(source.expr(frame.schema).alias("calls"))["calls"].to_list()
    rows = [None if completion is None else source.row({RAW: completion}) for completion in series.to_list()]
    assert [text is None for text in columns] == [text is None for text in rows]
    assert [*map(repr, map(read_calls, filter(None, columns)))] == [*map(repr, map(read_calls, filter(None, rows)))]
    assert 0 < calls_of_structs(series, last=scope == "last").null_count() < len(series)
    part = frame.slice(3, 40)
    assert part.select(source.expr(part.schema).alias("calls"))["calls"].to_list() == columns[3:43]
    empty = frame.clear()
    assert empty.select(source.expr(empty.schema).alias("calls")).height == 0


OTHER_FIELDS = (
    {"exact": pl.String},
    {"function_call": FUNCTION},
    {"parts": pl.List(pl.String)},
    {"content": pl.List(pl.Struct({"type": pl.String}))},
    {"tool_calls": pl.List(pl.String)},
    {"tool_calls": pl.List(pl.Struct({"function": pl.Struct({"name": pl.String, "arguments": FUNCTION})}))},
    {"tool_calls": pl.List(pl.Struct({"function": FUNCTION, "name": pl.String}))},
)


def test_other_forms_are_not_plain():
    fields = dict(PLAIN.inner.to_schema())
    assert not [changed for changed in OTHER_FIELDS if has_plain_calls(pl.List(pl.Struct(fields | changed)))]


def test_null_fields_of_structs_are_absent():
    function = pl.Struct({"name": pl.String, "arguments": pl.Struct({"city": pl.String, "days": pl.Int64})})
    dtype = pl.List(
        pl.Struct({"role": pl.String, "content": pl.String, "tool_calls": pl.List(pl.Struct({"function": function}))})
    )
    calls = [
        [{"function": {"name": "weather", "arguments": arguments}}] for arguments in ({"city": "Oslo"}, {"days": 2}, {})
    ]
    completions = [[{"role": "assistant", "tool_calls": call}] for call in (*calls, None)]
    frame = pl.DataFrame({"completion": completions}, schema={"completion": dtype})
    gold = [[{"name": "weather", "arguments": {"city": "Oslo"}}]]
    golds = pl.DataFrame({"gold": gold * 4}, schema={"gold": pl.List(function)})
    verifier = load_verifier({"checks": [{"type": "tool_calls", "value": {"column": "gold"}}]})
    result = score(frame.hstack(golds), verifier)
    assert result["reward"].to_list() == [1.0, 0.0, 0.0, 0.0]
    assert result["feedback"].to_list()[1:] == [
        'tool_calls: weather: city is missing, expected "Oslo"',
        'tool_calls: weather: city is missing, expected "Oslo"',
        'tool_calls: no call, expected weather {"city": "Oslo"}',
    ]
