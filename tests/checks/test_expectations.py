"""Expectations: the grading rules, and that the columns follow them whatever the shape of metadata."""

import json
import random

import polars as pl
import pytest
from cases import sized, some

from assay.checks import expectations
from assay.checks.expectations import EXPECTATIONS, grade, read
from assay.checks.plain_expectations import is_usual
from assay.expressions.shared_columns import layers
from assay.names import TEXT
from assay.testing import hostile_texts

TEXTS = ("I refund ß ας", "", None, "GIFT CARD i̇", "x", "a; b")

AS_TEXT = (
    *(
        None,
        "{}",
        "null",
        '{"expectations":null}',
        '{"expectations":[]}',
        '{"expectations":{}}',
        "bad",
        "[1]",
        "",
        "5",
        '"x"',
    ),
    *(
        '{"expectations":5}',
        '{"expectations":"x"}',
        '{"expectations":{"mustMention":3}}',
        '{"expectations":{"mustNotMention":{}}}',
        '{"expectation":[{"text":"x"}]}',
        '{"expectation":1,"expectations":null,"x":1}',
        '{"expectations":{"mustMentions":[],"must_not_mention":[{"text":"x"}],"\\ud800":1}}',
        '"{}"',
    ),
    '{"expectations":[{"anyOf":["Refund","x"]},{"text":"ß"},{}]}',
    '{"expectations":{"must_mention":[{"any_of":["a"]}],"mustMention":null}}',
    '{"expectations":{"mustMention":[{"anyOf":["\\ud800"],"message":"\\ud800"}]}}',
    '{"expectations":{"mustMention":[{"anyOf":["ΑΣ"],"message":"say"},null,{"anyOf":[],"text":""}]}}',
    json.dumps(
        {
            "expectations": {
                "mustMention": [{"text": "x"}, None, {"anyOf": [], "text": ""}],
                "mustNotMention": [
                    {"anyOf": ["gift card", "İ"]},
                    {"text": 5},
                    "str",
                    {"anyOf": "x"},
                    {"anyOf": ["a", 4]},
                    {"anyOf": [None, "q"]},
                    {"text": "x", "message": ""},
                ],
            }
        }
    ),
)

AS_STRUCT = (
    [
        {
            "expectations": {
                "mustMention": [{"anyOf": ["Refund", "x"], "text": None, "message": None}, None],
                "mustNotMention": [{"anyOf": ["İ"]}],
            }
        },
        {
            "expectations": {
                "mustMention": [{"anyOf": None, "text": "ß", "message": "m"}, {"anyOf": [], "message": ""}],
                "mustNotMention": None,
            }
        },
        {"expectations": {"mustMention": None, "mustNotMention": []}},
        {"expectations": None},
        None,
    ],
    [{"expectations": [{"anyOf": ["Refund", "x"]}, {"text": "ß"}]}, {"expectations": []}, None],
    [
        {
            "expectations": [
                {"anyOf": [1, 2], "text": "x"},
                {"anyOf": [], "text": "x"},
                {"anyOf": None, "text": "x"},
                {"anyOf": [None]},
            ]
        }
    ],
    [{"expectations": [{"anyOf": "x"}, {"anyOf": None, "text": "x"}]}],
    [{"expectations": ["a", "b"]}, None],
    [{"expectations": 5}, None],
    [{"expectations": None, "expectation": [{"text": "x"}], "expectation_s": None}, {"expectations": [{"text": "x"}]}],
    [
        {
            "expectations": {"mustMentions": [{"text": "x"}], "mustMention": [{"text": "x"}], "why": None},
            "Expectations": 1,
        }
    ],
    [{"expectations": 5, "expectation": 6}, {"expectations": None, "expectation": 6}],
    [{"x": 5}, None],
    [{"expectations": {}}],
    [{"expectations": {"mustMention": [{"text": 5, "message": 7}]}}],
    [
        {"expectations": {"mustMention": 5, "mustNotMention": [{"text": "x"}]}},
        {"expectations": {"mustMention": None, "mustNotMention": [{"text": "x"}]}},
    ],
    [
        {
            "expectations": {
                "must_mention": [{"any_of": ["x"]}, {"any_of": ["q"], "anyOf": ["x"]}, {"any_of": ["q"], "anyOf": []}],
                "mustMention": None,
            }
        },
        {"expectations": {"must_mention": [{"any_of": ["x"]}], "mustMention": [{"text": "zz"}]}},
    ],
)


def columns(frame, engine):
    lazy = frame.lazy().with_columns(pl.col("t").alias(TEXT))
    for layer in layers([EXPECTATIONS], frame.schema):
        lazy = lazy.with_columns(layer)
    return lazy.select(EXPECTATIONS.col).collect(engine=engine).to_series().to_list()


def assert_columns_grade_as_rows(frame):
    expected = [None if row["t"] is None else vars(grade(row["metadata"], row["t"])) for row in frame.to_dicts()]
    for engine in ("in-memory", "streaming"):
        assert columns(frame, engine) == expected
        for at in sized((0, 3, frame.height - 1), (3,)):
            assert columns(frame[at : at + 1], engine) == expected[at : at + 1]
            assert columns(frame[at : at + 2], engine) == expected[at : at + 2]
        assert columns(frame[:0], engine) == []
        assert columns(pl.concat([frame[2:], frame[:2]], rechunk=False), engine) == expected[2:] + expected[:2]


def test_json_text():
    rows = [(text, metadata) for text in TEXTS for metadata in AS_TEXT]
    assert_columns_grade_as_rows(pl.DataFrame(rows, schema={"t": pl.String, "metadata": pl.String}, orient="row"))


@pytest.mark.parametrize("metadata", some(AS_STRUCT), ids=lambda metadata: str(metadata)[:40])
def test_struct_columns(metadata):
    rows = [{"t": text, "metadata": one} for text in TEXTS for one in metadata]
    assert_columns_grade_as_rows(pl.DataFrame(rows, infer_schema_length=None, schema_overrides={"t": pl.String}))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("metadata", [AS_TEXT[:8], AS_STRUCT[0]], ids=["text", "struct"])
def test_a_few_rows(metadata):
    rows = [{"t": text, "metadata": one} for text in TEXTS for one in metadata]
    assert_columns_grade_as_rows(pl.DataFrame(rows, infer_schema_length=None, schema_overrides={"t": pl.String}))


TEXTS_OF = pl.List(pl.String)
BOTH = {
    "an empty list of nulls": ({"anyOf": pl.List(pl.Null), "any_of": TEXTS_OF}, {"anyOf": [], "any_of": ["x"]}),
    "an empty list of numbers": ({"anyOf": pl.List(pl.Int64), "any_of": pl.String}, {"anyOf": [], "any_of": "z"}),
    "numbers": ({"anyOf": pl.List(pl.Int64), "any_of": TEXTS_OF}, {"anyOf": [1], "any_of": ["x"]}),
    "a number": ({"anyOf": pl.Int64, "any_of": TEXTS_OF}, {"anyOf": 1, "any_of": ["x"]}),
    "text": ({"anyOf": TEXTS_OF, "any_of": pl.String}, {"anyOf": [None], "any_of": "z"}),
    "an object": ({"anyOf": pl.Struct({"a": pl.String}), "any_of": TEXTS_OF}, {"anyOf": {"a": None}, "any_of": ["x"]}),
    "nothing": ({"anyOf": pl.List(pl.List(pl.String)), "any_of": TEXTS_OF}, {"anyOf": None, "any_of": ["x"]}),
}


@pytest.mark.parametrize(("types", "values"), some(BOTH.values()), ids=BOTH)
@pytest.mark.parametrize("side", [side for side, *_ in expectations.SIDES])
def test_of_two_spellings_the_first_that_has_a_value_counts_whatever_its_type(types, values, side):
    entry = pl.Struct({**types, "text": pl.String})
    metadata = [{"expectations": {side: [values | {"text": "y"}, {"any_of": values["any_of"]}, {"text": "x"}]}}]
    dtype = pl.Struct({"expectations": pl.Struct({side: pl.List(entry)})})
    frame = pl.DataFrame({"t": ["x", "y", "z"], "metadata": pl.Series(metadata * 3, dtype=dtype)})
    assert_columns_grade_as_rows(pl.concat([frame] * 2))


@pytest.mark.parametrize(("side", "snake"), [side[:2] for side in expectations.SIDES])
def test_of_two_spellings_of_a_side_the_first_counts_though_the_other_is_no_list(side, snake):
    lists = pl.List(pl.Struct({"text": pl.String}))
    values = [(given, other) for given in ([{"text": "x"}], [], None) for other in ("z", None)]
    for types in ({side: lists, snake: pl.String}, {snake: lists, side: pl.String}):
        rows = [dict(zip(types, row, strict=True)) for row in values]
        dtype = pl.Struct({"expectations": pl.Struct(types)})
        metadata = pl.Series([{"expectations": row} for row in rows], dtype=dtype)
        assert_columns_grade_as_rows(pl.DataFrame({"t": ["x"] * len(rows), "metadata": metadata}))


WORD = pl.Categorical()
SOME = pl.Struct({"anyOf": pl.Array(WORD, 2), "text": pl.Enum(["ß", "x"]), "message": WORD})
SIDES = pl.Struct({"mustMention": pl.List(SOME), "mustNotMention": pl.Array(SOME, 1)})


@pytest.mark.parametrize(
    "expectations", [SIDES, pl.Array(SOME, 1), pl.Array(pl.Array(WORD, 1), 1), pl.List(WORD), WORD]
)
def test_dictionary_encoded_text_and_lists_of_a_fixed_length_are_text_and_lists(expectations):
    entry = {"anyOf": ["Refund", "İ"], "text": None, "message": "say it"}
    other = {"anyOf": [None, None], "text": "ß", "message": None}
    values = {
        SIDES: {"mustMention": [entry, other], "mustNotMention": [other]},
        pl.Array(SOME, 1): [entry],
        pl.Array(pl.Array(WORD, 1), 1): [["a"]],
        pl.List(WORD): ["a", None],
        WORD: "a",
    }
    metadata = [{"expectations": values[expectations]}, {"expectations": None}, None]
    rows = [{"t": text, "metadata": one} for text in TEXTS for one in metadata]
    schema = {"t": pl.String, "metadata": pl.Struct({"expectations": expectations})}
    assert_columns_grade_as_rows(pl.DataFrame(rows, schema=schema))


@pytest.mark.parametrize("as_text", [True, False])
def test_hostile_phrases_in_hostile_texts(as_text):
    phrases = list(hostile_texts(900, seed=11))
    rows = []
    for at, text in enumerate(hostile_texts(900, seed=12)):
        mention = [
            {"anyOf": phrases[at : at + 1 + at % 3], "message": None},
            {"anyOf": [text[at % 7 : at % 7 + 5]], "message": "m"},
        ]
        metadata = {
            "expectations": {"mustMention": mention, "mustNotMention": [{"anyOf": [phrases[-at], text[:2]]}] * (at % 2)}
        }
        rows.append({"t": text, "metadata": json.dumps(metadata) if as_text else metadata})
    assert_columns_grade_as_rows(pl.DataFrame(rows, infer_schema_length=None))


def _usual(phrases, rng):
    """Draw expectations that have no more than lists of phrases."""
    unset = {"message": None} if rng.random() < 0.3 else {}
    sides = {
        side: [{**unset, "anyOf": rng.sample(phrases, rng.randint(1, 3))} for _ in range(rng.randrange(3))] or None
        for side in ("mustMention", "mustNotMention")
        if rng.random() < 0.8
    }
    return {"expectations": sides or {"mustMention": []}}


def _mutated(text, rng):
    at, inserted = (
        rng.randrange(len(text) + 1),
        ["", '"', "\\", ":", "{", "[", ",", "\ue000", "\ue001", "\n", '\\"', ', "x"'],
    )
    return text[:at] + rng.choice(inserted) + text[at + rng.randrange(2) :]


def test_expectations_of_the_usual_form_are_read_in_columns():
    rng = random.Random(7)
    phrases = [
        *hostile_texts(300, seed=13),
        "expectations",
        "mustNotMention",
        ": [",
        ", ",
        '"',
        "\\",
        '\\"',
        "\ue000",
        "",
    ]
    drawn = [_usual(phrases, rng) for _ in range(600)]
    forms = [
        {"ensure_ascii": is_ascii, "separators": by} for is_ascii in (True, False) for by in ((",", ":"), (", ", ": "))
    ]
    written = [json.dumps(value, **forms[at % 4]) for at, value in enumerate(drawn)]
    written.append('{"expectations": {"mustMention": [{"anyOf": ["\\ud800", "\\ud83d\\ude00", "\\u0022, \\\\"]}]}}')
    damaged = [_mutated(text, rng) for text in written for _ in range(2)]
    assert is_usual(pl.Series(written)).mean() > 0.9
    texts = [text for _ in range(3) for text in hostile_texts(len(written), seed=14)]
    assert_columns_grade_as_rows(pl.DataFrame({"t": texts, "metadata": [*written, *damaged]}))
    assert_columns_grade_as_rows(pl.DataFrame({"t": texts[: len(drawn)], "metadata": drawn}))
    plain = pl.DataFrame(
        {"t": texts, "metadata": [json.dumps({"expectations": {"mustMention": [{"anyOf": [text]}]}}) for text in texts]}
    )
    assert_columns_grade_as_rows(plain)


def test_phrases_meet_the_texts_that_hold_them_in_lower_case_only():
    texts = ["\u212aELVIN", "\u0130STANBUL", "ÉTÉ ΟΔΟΣ", "ete odos", "KI", None]
    phrases = ["kelvin", "\u212a", "i", "İs", "été", "É", "οδος", "ΟΔΟΣ", "ELVIN", "ı", "ſ", "s"]
    asked = [[phrase] for phrase in phrases] + [phrases[at : at + 3] for at in range(len(phrases))]
    rows = [
        {"t": text, "metadata": {"expectations": [{"anyOf": anyof}]} if anyof else None}
        for text in texts
        for anyof in [*asked, []]
    ]
    assert_columns_grade_as_rows(pl.DataFrame(rows, schema_overrides={"t": pl.String}))


def test_a_json_text_is_read_once_unless_it_is_long():
    short, long = (json.dumps({"expectations": [{"text": "x" * size}]}) for size in (5, 5000))
    assert read(short) is read(short)
    assert read(long) == read(long)
    assert read(long) is not read(long)
    assert read(short) == read(json.loads(short))


def test_one_row_with_many_entries_does_not_slow_the_others_down():
    many = {"expectations": {"mustMention": [{"anyOf": [f"p{n}" for n in range(50)]}] * 400}}
    one = {"expectations": {"mustMention": [{"anyOf": ["x"]}]}}
    rows = [{"t": "x p49", "metadata": many if at == 500 else one} for at in range(2000)]
    assert_columns_grade_as_rows(pl.DataFrame(rows))


@pytest.mark.parametrize(
    ("metadata", "score", "reason", "error"),
    [
        (None, 1.0, "", None),
        ({"expectations": [{"anyOf": ["no", "way"]}, {"text": "REFUND"}]}, 0.5, "must mention one of: no, way", None),
        ({"expectations": {"mustNotMention": [{"text": "refund"}]}}, 0.0, "must not mention: refund", None),
        ({"expectations": {"mustNotMention": [{"text": "refund", "message": "hush"}]}}, 0.0, "hush", None),
        (
            {"expectations": [{"message": "say it"}, {"text": "refund"}, {"text": "your"}]},
            2 / 3,
            "say it",
            "ValueError: mustMention[0] has no usable phrase: give anyOf (a list of strings) or text",
        ),
        ("nope", 0.0, "ValueError: metadata is not a JSON object", "ValueError: metadata is not a JSON object"),
    ],
)
def test_what_a_grade_says(metadata, score, reason, error):
    found = grade(metadata, "Here is your refund.")
    assert (found.score, found.reason, found.error) == (score, reason, error)


@pytest.mark.parametrize(
    ("metadata", "remark"),
    [
        ({"expectations": [{"text": "x"}], "expectation": []}, None),
        (None, "no expectations, so the score is 1.0"),
        ('{"expectations": {}, "expectation": 1}', "no expectations, so the score is 1.0"),
        (
            {"expectation": []},
            "no expectations, so the score is 1.0; unknown key `metadata.expectation`. Did you mean `expectations`?",
        ),
        (
            '{"expectations": {"x": [{"text": "x"}], "must_mention": null}}',
            "no expectations, so the score is 1.0; unknown key `metadata.expectations.x`.",
        ),
        (
            {"expectations": {"mustMention": [{"text": "x"}], "mustMentions": [{"text": "y"}]}},
            "unknown key `metadata.expectations.mustMentions`. Did you mean `mustMention`?",
        ),
        ({"expectations": 5}, None),
        ("nope", None),
    ],
)
def test_what_the_author_of_a_task_should_know(metadata, remark):
    assert grade(metadata, "x").remark == remark


def test_places_are_named_by_their_list():
    both = read({"expectations": {"mustNotMention": [{"text": "b"}], "mustMention": [{"text": "a"}]}})
    assert [entry.where for entry in both.entries] == ["mustMention[0]", "mustNotMention[0]"]
