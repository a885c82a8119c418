"""From a completion to its text: the definition and the expression agree, and say what the semantics say."""

import pickle
from itertools import product

import polars as pl
import pytest

import assay
from assay.expressions.completion import completion_text, completion_text_expr
from assay.scoring.reference import score_rows

WORDS = pl.Enum(["assistant", "user", "tool", "a", "b"])


def said(*messages):
    return [{"role": role, "content": content} for role, content in messages]


def chat(content, role=pl.String):
    return pl.List(pl.Struct({"role": role, "content": content}))


def texts(frame, engine="in-memory", *, any_role=True):
    expr = completion_text_expr("completion", frame.schema["completion"], any_role=any_role)
    return frame.lazy().select(expr).collect(engine=engine).to_series().to_list()


PART = pl.Struct({"type": pl.String, "text": pl.String})
TEXT, IMAGE = {"type": "text", "text": "b"}, {"type": "image_url", "text": None}

CASES = {
    "strings": (pl.String, ["a", "", None, " \x00é🎉"], ["a", "", None, " \x00é🎉"]),
    "all null": (pl.Null, [None, None], [None, None]),
    "categorical strings": (pl.Categorical, ["a", None], ["a", None]),
    "no message at all": (chat(pl.String), [[], [None], None], ["", "", None]),
    "no message in any row": (pl.List(pl.Null), [[], [None], None], ["", "", None]),
    "last assistant in the middle": (
        chat(pl.String),
        [said(("assistant", "x"), ("assistant", "a"), ("tool", "b")), said(("user", "b"), ("assistant", "a"))],
        ["a", "a"],
    ),
    "no assistant": (chat(pl.String), [said(("user", "a"), ("tool", "b")), said((None, "a"))], ["b", "a"]),
    "role in other letters": (chat(pl.String), [said(("Assistant", "a"), ("user", "b"))], ["b"]),
    "content null": (chat(pl.String), [said(("assistant", "a"), ("assistant", None)), said(("user", None))], ["", ""]),
    "null message last": (
        chat(pl.String),
        [[*said(("assistant", "a")), None], [*said(("user", "a")), None]],
        ["a", ""],
    ),
    "parts": (
        chat(pl.List(PART)),
        [said(("assistant", parts)) for parts in ([TEXT, IMAGE, TEXT], [IMAGE], [None, TEXT], [], None)],
        ["bb", "", "b", "", ""],
    ),
    "parts that are strings": (chat(pl.List(pl.String)), [said(("assistant", ["a", None, "b"]))], ["ab"]),
    "parts without text": (chat(pl.List(pl.Struct({"type": pl.String}))), [said(("user", [{"type": "image"}]))], [""]),
    "text of a part is a number": (chat(pl.List(pl.Struct({"text": pl.Int64}))), [said(("user", [{"text": 1}]))], [""]),
    "no role": (pl.List(pl.Struct({"content": pl.String})), [[{"content": "a"}, {"content": "b"}], []], ["b", ""]),
    "role is a number": (chat(pl.String, pl.Int64), [said((1, "a"), (2, "b"))], ["b"]),
    "role is categorical": (chat(pl.String, pl.Categorical), [said(("assistant", "a"), ("tool", "b"))], ["a"]),
    "role is an enum": (chat(pl.String, WORDS), [said(("assistant", "a"), ("tool", "b"))], ["a"]),
    "content is categorical": (chat(pl.Categorical), [said(("assistant", "a"), ("tool", "b"))], ["a"]),
    "parts are categorical": (chat(pl.List(pl.Categorical)), [said(("assistant", ["a", "b"]))], ["ab"]),
    "content always null": (chat(pl.Null), [said(("assistant", None)), None], ["", None]),
    "parts of a fixed number": (chat(pl.Array(pl.String, 2)), [said(("assistant", ["a", "b"]))], ["ab"]),
}


WITHOUT_ANY_ROLE = {
    "no message at all": [None, None, None],
    "no message in any row": [None, None, None],
    "no assistant": [None, None],
    "role in other letters": [None],
    "content null": ["", None],
    "null message last": ["a", None],
    "parts without text": [None],
    "text of a part is a number": [None],
    "no role": [None, None],
    "role is a number": [None],
}
"""The cases in which a conversation has no assistant message, with the texts of their completions."""


@pytest.mark.parametrize("name", CASES)
def test_both_faces_give_the_text(name):
    for any_role in (False, True):
        assert_texts(name, any_role=any_role)


def assert_texts(name, *, any_role):
    dtype, values, expected = CASES[name]
    expected = expected if any_role else WITHOUT_ANY_ROLE.get(name, expected)
    frame = pl.DataFrame({"completion": pl.Series(values, dtype=dtype)})
    assert [completion_text(value, any_role=any_role) for value in frame["completion"].to_list()] == expected
    assert texts(frame, any_role=any_role) == expected
    assert [texts(frame[at : at + 1], any_role=any_role)[0] for at in range(frame.height)] == expected
    assert [texts(frame[at : at + 2], any_role=any_role)[0] for at in range(frame.height)] == expected
    chunked = pl.concat([frame[:1], frame[1:], frame], rechunk=False)
    assert texts(chunked, "streaming", any_role=any_role) == expected * 2


@pytest.mark.parametrize("any_role", [False, True])
@pytest.mark.parametrize("content", [pl.String, pl.List(PART)], ids=str)
def test_both_faces_agree_on_every_short_conversation(content, any_role):
    words = ["a", None] if content == pl.String else [[TEXT, IMAGE], [], None]
    messages = [None, *said(*product(["assistant", "user", None], words))]
    every = [list(some) for length in range(4) for some in product(messages, repeat=length)]
    frame = pl.DataFrame({"completion": pl.Series(every, dtype=chat(content))})
    expected = [completion_text(messages, any_role=any_role) for messages in every]
    assert texts(frame, any_role=any_role) == texts(frame, "streaming", any_role=any_role) == expected


@pytest.mark.parametrize("any_role", [False, True])
@pytest.mark.parametrize("role", [pl.String, pl.Int64, None], ids=str)
def test_a_conversation_without_an_assistant_is_unscored_by_rows_and_by_columns(role, any_role):
    message = pl.Struct({"content": pl.String} | ({} if role is None else {"role": role}))
    values = [None, [], [None], [{"content": "b"}], [{"content": None, "role": None}]]
    values += [said(("assistant", "b")), said(("user", "b"))] if role == pl.String else []
    frame = pl.DataFrame({"completion": pl.Series(values, dtype=pl.List(message))})
    verifier = assay.load_verifier({"checks": [{"type": "contains", "value": "b"}]})
    plan = assay.compile(verifier, frame, any_role=any_role)
    scored = plan.score(frame)
    by_rows = score_rows(frame.to_dicts(), [verifier], any_role=any_role)
    assert [row["reward"] for row in by_rows] == scored["reward"].to_list()
    assert [row["error"] for row in by_rows] == scored["error"].to_list()
    reason = "the conversation has no assistant message (--any-role: the last message counts)"
    fine = values[5:6] if not any_role else values[1:]
    expected = [None if value in fine else "the completion is null" if value is None else reason for value in values]
    assert scored["error"].to_list() == expected
    travelled = pickle.loads(pickle.dumps(plan))  # noqa: S301  (our own)
    assert travelled == plan
    assert travelled.score(frame).equals(scored)
    assert plan != assay.compile(verifier, frame, any_role=not any_role)


def test_a_null_completion_is_unscored_and_a_silent_one_is_empty():
    frame = pl.DataFrame({"completion": pl.Series([None, said(("assistant", None))], dtype=chat(pl.String))})
    scored = assay.score(frame, {"checks": [{"type": "equals", "value": ""}]})
    assert scored["reward"].to_list() == [None, 1.0]
    assert scored["error"].to_list() == ["the completion is null", None]


@pytest.mark.parametrize(
    ("dtype", "shown"),
    [
        (pl.Int64, "Int64"),
        (pl.Boolean, "Boolean"),
        (pl.Date, "Date"),
        (pl.List(pl.String), "List(String)"),
        (pl.List(chat(pl.String)), "List(List(Struct({'role': String, 'content': String})))"),
        (pl.Struct({"content": pl.String}), "Struct({'content': String})"),
    ],
    ids=str,
)
def test_a_column_of_another_type_is_refused_with_what_a_completion_is(dtype, shown):
    with pytest.raises(assay.ColumnsError) as refused:
        assay.score(pl.DataFrame(schema={"completion": dtype}), {"checks": [{"type": "json_valid"}]})
    assert refused.value.fact == f"`completion` has type {shown}; a completion is a string or a list of chat messages."
    assert refused.value.hint == (
        "For a row for each element: --map 'completion=$.completion[]'"
        if shown.startswith(("List(String)", "List(List("))
        else "Each message is a struct with `role` and `content`; rename another column with --map completion=NAME."
    )


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ({"from": pl.String, "value": pl.String}, "from: String, value: String"),
        ({"role": pl.String}, "role: String"),
        ({"content": pl.Int64}, "content: Int64"),
        ({"content": pl.Boolean}, "content: Boolean"),
        ({"content": pl.Struct({"text": pl.String})}, "content: Struct({'text': String})"),
        ({"content": pl.List(pl.Int64)}, "content: List(Int64)"),
        ({}, "none"),
    ],
    ids=str,
)
def test_messages_without_a_content_to_read_say_nothing_and_the_caller_is_told(message, shown):
    spec = {"checks": [{"type": "equals", "value": ""}]}
    values = [[], None, [None], [dict.fromkeys(message)]]
    frame = pl.DataFrame({"completion": pl.Series(values, dtype=pl.List(pl.Struct(message)))})
    with pytest.warns(assay.AssayWarning) as told:
        scored = assay.score(frame, spec, any_role=True)
    assert scored["reward"].to_list() == [1.0, None, 1.0, 1.0]
    fact = f"The messages of `completion` have no readable `content`, so every text is empty; their fields: {shown}."
    hint = "Write each message as `role` and `content`: text, or a list of parts with `text`."
    assert [str(one.message) for one in told if not str(one.message).startswith("unscored: ")] == [f"{fact} {hint}"]


SILENT = [
    {"role": "assistant"},
    {"role": "assistant", "tool_calls": [{"id": "1"}]},
    {"role": "assistant", "content": 5},
    {"role": "assistant", "content": None},
    {"from": "gpt", "value": "b"},
]


@pytest.mark.parametrize("message", SILENT, ids=str)
@pytest.mark.filterwarnings("ignore:No message of `completion`")
def test_what_a_message_says_does_not_depend_on_the_messages_beside_it(message):
    spec = {"checks": [{"type": "equals", "value": ""}, {"type": "contains", "value": "b"}]}
    others = ([], [None], "b", said(("assistant", "b")), said(("assistant", [{"type": "text", "text": "b"}])))
    rows = [[{"completion": [message]}], *([{"completion": [message]}, {"completion": other}] for other in others)]
    assert [assay.score(some, spec, any_role=True)["reward"][0] for some in rows] == [0.5] * len(rows)
    expected = 0.5 if "role" in message else None
    assert [assay.score(some, spec)["reward"][0] for some in rows] == [expected] * len(rows)
