"""Parsers: what counts of what a model wrote, the same as in the release that they stand in for, and in linear time."""

import inspect
import json
import logging
import pickle
import re
import sys
import warnings
from functools import partial

import pytest
from cases import sized
from growth import is_linear
from hypothesis import given, settings
from hypothesis import strategies as st

from assay import Parser, ThinkParser, XMLParser, extract_boxed_answer, extract_hash_answer, get_text_content
from assay.rubrics import parsers

CHAT = [
    {"role": "system", "content": "You are a helpful assistant."},
    {"role": "user", "content": "What is 2+2?"},
    {"role": "assistant", "content": "2+2 equals 4."},
]
COMPLETION = "Q: What is 2+2?\nA: 4"


def said(*contents):
    return [{"role": "assistant", "content": content} for content in contents]


def shout(text):
    return text.upper()


def pickled(thing):
    return pickle.loads(pickle.dumps(thing))  # noqa: S301  (bytes of our own)


@pytest.mark.parametrize(
    ("completion", "text"),
    [
        (COMPLETION, COMPLETION),
        (CHAT, "2+2 equals 4."),
        ([*CHAT, {"role": "tool", "content": "5"}], "2+2 equals 4."),
        (CHAT[:2], "What is 2+2?"),
        (said([{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}]), "ab"),
        (said(None), ""),
        ([], ""),
        ("", ""),
        (None, ""),
    ],
)
def test_the_text_of_a_completion(completion, text):
    assert get_text_content(completion) == text


def test_a_parser_takes_text_as_it_is_and_the_last_message_of_the_assistant():
    assert Parser().parse(COMPLETION) == COMPLETION
    assert Parser().parse_answer(COMPLETION) == COMPLETION
    assert Parser().parse_answer([*said("first"), *CHAT, CHAT[1]]) == "2+2 equals 4."
    assert Parser(shout).parse_answer(said("four")) == "FOUR"
    assert Parser(extract_fn=json.loads).parse('{"a": 1}') == {"a": 1}
    assert Parser().get_format_reward_func()(completion=CHAT) == 1.0


def test_messages_by_role():
    tool = {"role": "tool", "content": "4", "tool_call_id": "c1"}
    chat = [*CHAT, tool, {"content": "no role"}, {}, None]
    found = Parser()
    assert found.get_system_messages(chat) == [CHAT[0]]
    assert found.get_user_messages(chat) == [CHAT[1]]
    assert found.get_assistant_messages(chat) == [CHAT[2]]
    assert found.get_tool_messages(chat) == [tool]
    assert (found.get_assistant_messages("hello"), found.get_assistant_messages("")) == (said("hello"), [])
    assert found.get_user_messages("hello") == []


ALL = [Parser(), ThinkParser(), XMLParser(["answer"])]


@pytest.mark.parametrize("parser", ALL)
@pytest.mark.parametrize("completion", [[], CHAT[:2], [{"content": "no role"}], [{}], None], ids=str)
def test_a_conversation_without_the_assistant_has_no_answer_and_no_format(parser, completion):
    assert parser.parse_answer(completion) is None
    assert parser.get_format_reward_func()(completion) == (1.0 if type(parser) is Parser else 0.0)


def test_content_that_is_no_text_is_read_as_python_writes_it():
    assert Parser().parse_answer(said(None)) == "None"
    assert Parser().parse_answer(said(["<a>"])) == "['<a>']"
    assert Parser().parse_answer([{"role": "assistant"}]) == ""
    assert XMLParser(["a"], "a").parse_answer(said(["<a>", 1, "</a>"])) == "', 1, '"
    assert XMLParser(["a"], "a").parse_answer([*said("<a>1</a>"), {"role": "assistant"}]) == "1"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>2+2</think> 4 ", "4"),
        ("<think>a</think>b<think>c</think>\n4", "4"),
        ("no thought 4", ""),
        ("<think>never ended 4", ""),
        ("4</think>", ""),
        ("ended, never begun</think>4", "4"),
    ],
)
def test_the_answer_follows_the_last_thought(text, answer):
    assert ThinkParser().parse(text) == answer
    assert ThinkParser().parse_answer(said(text)) == answer
    assert ThinkParser(extract_fn=repr).parse(text) == repr(answer)


@pytest.mark.parametrize(
    ("contents", "reward"),
    [
        (["<think>a</think>b"], 1.0),
        ([" <think>a</think> "], 1.0),
        (["<think>a</think>"], 0.0),
        (["so <think>a</think>b"], 0.0),
        (["<think>a</think>b<think>c</think>d"], 0.0),
        (["<think>a</think>b", "c"], 0.5),
        ([None, "<think>a</think>b", 7, [{"type": "text", "text": "<think>a</think>b"}]], 0.5),
    ],
)
def test_format_of_thoughts(contents, reward):
    assert ThinkParser().get_format_reward_func()(said(*contents)) == reward
    assert ThinkParser().get_format_reward_func()("<think>a</think>b") == 1.0


def test_the_text_between_tags():
    parsed = XMLParser(["reasoning", ("code", "answer")]).parse("<reasoning>\n so \n</reasoning><answer> 4 </answer>")
    assert vars(parsed) == {"reasoning": "so", "code": None, "answer": "4"}
    assert list(vars(parsed)) == ["reasoning", "code", "answer"]


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("", None, None),
        ("<a>", None, None),
        ("</a><a>", None, None),
        ("<a></a>", "", ""),
        ("<a> \n </a>", "", ""),
        ("<a>1</a><a>2</a>", "1", "2"),
        ("<a>1</a><a>2", "1", "1"),
        ("<a>1<a>2</a>3</a>", "1<a>2", "1<a>2"),
        ("<a>\x1c\x85\u3000 1\ufeff</a>", "1\ufeff", "1\ufeff"),
        ("<a>\ud800</a>", "\ud800", "\ud800"),
    ],
)
def test_the_first_and_the_last_text_between_tags(text, first, last):
    parser = XMLParser(["a"])
    assert parser.parse(text).a == parser.parse(text, strip=False).a == first
    assert parser.parse(text, last=True).a == last


def test_the_answer_is_the_last_of_a_text_and_the_first_of_the_last_message_that_has_one():
    parser = XMLParser(["think", ("answer", "code")])
    assert parser.parse_answer("<answer>1</answer><answer>2</answer>") == "2"
    assert parser.parse_answer(said("<answer>0</answer>", "<answer>1</answer><answer>2</answer>", "none")) == "1"
    assert parser.parse_answer(said("<code>1</code>")) is None
    assert XMLParser(["a", "b"], answer_field="b").parse_answer("<b>1</b>") == "1"
    assert XMLParser(["a"], answer_field="b").parse_answer("<a>1</a><b>2</b>") is None


@pytest.mark.parametrize(
    ("name", "text", "last", "found"),
    [
        (r"a\d", "<a1>x</a2>", False, "x"),
        ("(a|b)", "<b>x</b>", False, "b"),
        ("(a)?b", "<b>x</b>", False, None),
        ("a.", "<a1> x </a2><a3> y </a4>", True, "y"),
        ("a.", "", True, None),
        ("f(x", "<f(x> 1 </f(x>", False, "1"),
        ("a b-c:d&~#", "<a b-c:d&~#>1</a b-c:d&~#>", False, "1"),
    ],
)
def test_a_name_may_be_a_pattern_and_one_that_is_none_means_itself(name, text, last, found):
    assert vars(XMLParser([name]).parse(text, last=last)) == {name: found}


def test_the_format_as_a_model_sees_it():
    parser = XMLParser(["reasoning", ("code", "answer")])
    assert parser.get_fields() == ["reasoning", "code"]
    assert parser.get_format_str() == ("<reasoning>\n...\n</reasoning>\n<[ code | answer ]>\n...\n</[ code | answer ]>")
    assert parser.format(reasoning="so", answer=4) == "<reasoning>\nso\n</reasoning>\n<code>\n4\n</code>"
    assert parser.format(reasoning="so", answer=4, code=5).endswith("<code>\n5\n</code>")
    assert XMLParser(["self"]).format(self=1) == "<self>\n1\n</self>"
    for given_ in ({"reasoning": "so"}, {"reasoning": None, "code": 1}, {"reasoning": 1, "code": None, "answer": 2}):
        with pytest.raises(ValueError, match=r"Missing value for field `(reasoning|code)`"):
            parser.format(**given_)


@pytest.mark.parametrize(
    ("fields", "kind", "words"),
    [
        (["a", "a"], ValueError, "Two fields are named `a`"),
        (["a", ("a", "b")], ValueError, "Two fields are named `a`"),
        ([()], ValueError, "at least one name"),
        ([("a", 1)], TypeError, "must be strings"),
        ([["a"]], TypeError, "not list"),
    ],
)
def test_fields_that_cannot_be(fields, kind, words):
    with pytest.raises(kind, match=words):
        XMLParser(fields)


@pytest.mark.parametrize(
    ("content", "reward"),
    [
        ("<a>1</a><b>2</b>", 0.4 + 0.2 + 0.2 + 0.2),
        ("<a>1</a><c>2</c>", 0.4 + 0.2 + 0.2 + 0.2),
        ("<a>1</a>", 0.2 + 0.2 + 0.2),
        ("<a>1</a><b>", 0.4 + 0.2 + 0.2),
        ("so <b>2</b>", 0.2 + 0.2 + 0.2),
        ("nothing", 0.2),
        ("<a>", 0.2 + 0.2),
    ],
)
def test_format_of_tags(content, reward):
    format_reward = XMLParser(["a", ("b", "c")]).get_format_reward_func()
    assert format_reward(said(content)) == pytest.approx(reward)
    assert format_reward(said(content, content)) == format_reward(said(content)) == format_reward(content)
    assert format_reward("") == XMLParser([]).get_format_reward_func()(said(content)) == 0.0


def test_a_subclass_parses_its_own_way():
    class Last(XMLParser):
        def parse(self, text, strip=True, last=False):
            return super().parse(text if strip else "", strip, not last)

    parser = Last(["a"], "a")
    assert parser.parse_answer(said("<a>1</a><a>2</a>")) == "2"
    assert parser.get_format_reward_func()(said("<a>1</a>")) == pytest.approx(0.8)


@pytest.mark.parametrize("parser", [Parser(shout), ThinkParser(shout), XMLParser(["a", ("b+", "c")], "c", shout)])
def test_parsers_and_their_functions_travel(parser):
    text = "<think>a</think><c>b</c>"
    twin = pickled(parser)
    assert twin.parse(text) == parser.parse(text)
    assert twin.extract_fn is shout
    assert twin.logger is parser.logger
    function = parser.get_format_reward_func()
    assert pickled(function)(said(text)) == function(said(text), answer="what a rubric knows")


@pytest.mark.parametrize("parser", ALL)
def test_format_functions_are_functions_to_a_rubric(parser):
    function = parser.get_format_reward_func()
    assert function.__name__ == "format_reward_func"
    assert next(iter(inspect.signature(function).parameters)) == "completion"
    assert not inspect.iscoroutinefunction(function)
    function.__name__ = "format"  # two of them in one rubric need two names
    assert parser.get_format_reward_func().__name__ == "format_reward_func"


def test_thoughts_are_warned_of_once(caplog):
    parsers._warn_of_thoughts.cache_clear()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            ThinkParser()
            XMLParser(["think", "answer"])
            XMLParser(["answer"])
    assert [record.name for record in caplog.records] == ["assay.parsers.ThinkParser", "assay.parsers.XMLParser"]


PIECES = ["<a>", "</a>", "<b>", "</b>", *"</>ab1 \n\x1c\x85\u2003\ufeff\ud800"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=24).map("".join)
NAMES = [
    *("a", "b", "", "a b", "/a", "<a>", "a.", "[ab]", "(a|b)", "(?:a|b)", r"\w", "a|b", "a+", "a?", "(a)?b", "^a"),
    "a$",
]
NAMES.append("a{1}")


def by_pattern(name, text, strip, last):
    """The definition: the pattern as it was always written."""
    matches = list(re.finditer(rf"<{name}>\s*(.*?)\s*</{name}>", text, re.DOTALL))
    found = (matches[-1 if last else 0].group(1)) if matches else None
    return found.strip() if strip and found is not None else found


@settings(max_examples=sized(600, 150), deadline=None)
@given(name=st.sampled_from(NAMES), text=TEXTS, strip=st.booleans(), last=st.booleans())
def test_parsing_is_what_the_pattern_says(name, text, strip, last):
    assert getattr(XMLParser([name]).parse(text, strip, last), name) == by_pattern(name, text, strip, last)


def test_every_space_of_a_pattern_is_one_that_is_stripped():
    every = [chr(code) for code in range(sys.maxunicode + 1)]
    assert [code for code in every if re.match(r"\s", code)] == [code for code in every if not code.strip()]


@pytest.mark.parametrize(
    "text_of",
    [
        lambda size: "<think>" * (size // 7),
        lambda size: "<think>" + " " * size,
        lambda size: ("<think>" + " " * 93) * (size // 100),
        lambda size: "<think>" + " \n" * (size // 2) + "</think",
        lambda size: "<think>" + "</think" * (size // 7),
        lambda size: "<think></think>" * (size // 15) + "<think>" + " " * (size // 30),
        lambda size: "<" * size,
    ],
    ids=["tags", "spaces", "tags and spaces", "lines", "closing tags that do not", "pairs", "brackets"],
)
def test_hostile_text_costs_no_more_than_other_text(text_of):
    xml, think = XMLParser(["think", "answer"]), ThinkParser()

    def parse(text):
        for parser in (xml, think):
            parser.parse_answer(text)
            parser.parse_answer(said(text))
            parser.get_format_reward_func()(said(text))
        xml.parse(text, last=True)

    assert is_linear(lambda size: partial(parse, text_of(size)), 2_000)


@pytest.fixture(scope="module")
def peer():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pytest.importorskip(
            "verifiers", reason="the release to compare with is not here: pip install 'assay-rollouts[bench]'"
        )
    logging.getLogger("verifiers").setLevel(logging.ERROR)
    return found


RAISED = object()


def outcome(function, *args, **kwargs):
    try:
        found = function(*args, **kwargs)
    except Exception:  # noqa: BLE001  (whatever it raises, we may decide)
        return RAISED
    return vars(found) if hasattr(found, "__dict__") else found


CONTENTS = st.one_of(
    TEXTS,
    TEXTS.map(lambda text: f"<think>{text}</think>{text}"),
    st.none(),
    st.integers(),
    st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS}), max_size=2),
)
ROLES = st.sampled_from(["assistant", "assistant", "assistant", "user", "system", "tool", "Assistant", None])
MESSAGES = st.one_of(
    st.fixed_dictionaries({"role": ROLES, "content": CONTENTS}),
    st.fixed_dictionaries({}, optional={"role": ROLES, "content": CONTENTS, "tool_calls": st.just([])}),
)
COMPLETIONS = st.one_of(CONTENTS, st.lists(MESSAGES, max_size=4))
NAME = st.sampled_from([*NAMES, "answer", "think", "f(x", "__doc__", "x"])
FIELDS = st.lists(st.one_of(NAME, st.lists(NAME, max_size=3).map(tuple), st.just(7)), max_size=3)


@pytest.mark.xdist_group("verifiers")
@settings(max_examples=sized(300, 100), deadline=None)
@given(
    fields=FIELDS,
    answer=st.sampled_from(["a", "b", "answer", "a.", "__class__"]),
    completion=COMPLETIONS,
    text=CONTENTS,
    strip=st.booleans(),
    last=st.booleans(),
    values=st.dictionaries(NAME, st.one_of(st.none(), TEXTS), max_size=4),
)
def test_the_same_as_the_release_wherever_that_one_answers(peer, fields, answer, completion, text, strip, last, values):
    def compared(ours, theirs):
        by_role = (f"get_{role}_messages" for role in ("assistant", "system", "user", "tool"))
        calls = [
            *(partial(lambda name, parser: getattr(parser, name)(completion), name) for name in by_role),
            lambda parser: parser.parse(text),
            lambda parser: parser.parse_answer(completion),
            lambda parser: parser.get_format_reward_func()(completion),
            lambda parser: parser.parse(text, strip=strip, last=last),
            lambda parser: parser.parse(text, strip, last),
            lambda parser: parser.get_format_str(),
            lambda parser: parser.get_fields(),
            lambda parser: parser.format(**values),
        ]
        for number, call in enumerate(calls):
            wanted = outcome(call, theirs)
            if wanted is not RAISED:
                found = outcome(call, ours)
                assert found == wanted, number
                assert type(found) is type(wanted)

    compared(Parser(), peer.Parser())
    compared(Parser(repr), peer.Parser(repr))
    compared(ThinkParser(extract_fn=repr), peer.ThinkParser(extract_fn=repr))
    try:
        theirs = peer.XMLParser(fields, answer_field=answer)
    except (TypeError, ValueError) as wrong:
        with pytest.raises(type(wrong)):
            XMLParser(fields, answer_field=answer)
    else:
        compared(XMLParser(fields, answer_field=answer), theirs)


BOXES = st.lists(st.sampled_from(["\\boxed{", "{", "}", "####", "#", "a", " ", "\n", "\\frac{1}{2}"]), max_size=12)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("so \\boxed{4}.", "4"),
        ("\\boxed{3}, no: \\boxed{\\frac{1}{2}}", "\\frac{1}{2}"),
        ("\\boxed{}", ""),
        ("\\boxed{4", "\\boxed{4"),
        ("\\boxed{3} \\boxed{4", "\\boxed{3} \\boxed{4"),
        ("4", "4"),
        ("", ""),
    ],
)
def test_the_last_box(text, answer):
    assert extract_boxed_answer(text) == answer
    assert ThinkParser(extract_fn=extract_boxed_answer).parse(f"<think>\\boxed{{1}}</think>{text}") == answer.strip()


@pytest.mark.parametrize(
    ("text", "answer"), [("2 + 2\n#### 4\n", "4"), ("#### 1 #### 2", "1"), ("####", ""), ("### 4", "### 4"), ("", "")]
)
def test_behind_the_first_hashes(text, answer):
    assert extract_hash_answer(text) == answer


@pytest.mark.xdist_group("verifiers")
@settings(max_examples=sized(500, 100), deadline=None)
@given(pieces=BOXES)
def test_what_extracts_is_the_same_as_in_the_release(peer, pieces):
    text = "".join(pieces)
    assert extract_boxed_answer(text) == peer.extract_boxed_answer(text)
    assert extract_hash_answer(text) == peer.extract_hash_answer(text)
