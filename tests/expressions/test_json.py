"""JSON: the columns accept exactly what CPython's json.loads accepts, at any stack depth and digit limit."""

import json
import math
import random
import struct
import sys
from decimal import Decimal, localcontext
from functools import partial

import polars as pl
import pytest
from cases import sized
from growth import is_linear

from assay.expressions import json as jsontext
from assay.expressions.json import JSON_VALID, MAX_DEPTH, is_json, keys_lane, missing_keys, missing_keys_expr
from assay.expressions.shared_columns import layers
from assay.names import TEXT
from assay.testing import hostile_texts

KEYS = (
    ["a"],
    ["a", "b"],
    ["a b"],
    [],
    ["é"],
    ["a.b"],
    ["$"],
    ["A"],
    list("abcde"),
    ["b", "a"],
    ["a", "a"],
    ["true", "null"],
)

ACCEPTED = (
    *(
        "1",
        " 1\n",
        "-0",
        "1.5e3",
        "1E5",
        "0.0e+1",
        "1e999",
        "-1e999",
        "NaN",
        "Infinity",
        "-Infinity",
        "null",
        "true",
        '"x"',
        '""',
    ),
    *(
        '"\\ud800"',
        '"\\/"',
        '"\x7f\u2028"',
        '{"a":1,"a":null}',
        '{"a":null,"a":1}',
        '{"\\u0061":1}',
        "[]",
        "[[1],[2]]",
        '{"é":1}',
        '{"a.b":1}',
    ),
    *(
        "9" * 4300,
        "-" + "9" * 4300,
        "9" * 309 + ".5",
        "9" * 5000 + "e1",
        "[" * 500 + "]" * 500,
        '["' + "[" * 900 + '"]',
        '{"$":1}',
    ),
    *(
        '{"a":{"a":' * 100 + "1" + "}}" * 100,
        '{"a":NaN}',
        '{"a":1e999,"b":2}',
        '\r\n\t {"a":false} ',
        '["\\\\"]',
        '["a\\"["]',
    ),
)
REFUSED = (
    *(
        "",
        " ",
        "01",
        "+1",
        "1.",
        ".5",
        "1e",
        "-",
        "--1",
        "0x1",
        "1_000",
        "nul",
        "nullx",
        "True",
        "'a'",
        "[1,]",
        "{,}",
        '{"a":1,}',
    ),
    *(
        '{"a":1',
        '{"a":1}x',
        "[1] [2]",
        "[1],[2",
        "{'a':1}",
        '"a\nb"',
        '"\\x"',
        '"\\u12"',
        '"\t"',
        "\ufeff{}",
        "\ufeff1",
        "\x0b1",
        "\u20031",
    ),
    *(
        '{"a":1}\u00a0',
        "-Inf",
        "-NaN",
        "+Infinity",
        "١",
        "[١]",
        "1٣",
        "9" * 4301,
        "-" + "9" * 4301,
        '{"a":' + "9" * 4301 + "}",
    ),
    *(
        "[" * 501 + "]" * 501,
        "[" * 100_000,
        "[" * 100_000 + "]" * 100_000,
        '```json\n{"a":1}\n```',
        '{"a":undefined}',
        "// c\n1",
        '"\x00"',
    ),
)


def columns(texts, engine="in-memory"):
    frame = pl.LazyFrame({TEXT: texts}, schema={TEXT: pl.String})
    keys = {f"keys{at}": keys_lane(keys) for at, keys in enumerate(KEYS)}
    found = []
    for lanes in (
        [JSON_VALID],
        [JSON_VALID, *keys.values()],
    ):  # validity alone, and where looking for keys has shown it
        read = frame
        for layer in layers(lanes, frame.collect_schema()):
            read = read.with_columns(layer)
        named = {name: lane.col for name, lane in keys.items() if lane in lanes}
        found.append(read.select(JSON_VALID.col.alias("valid"), **named).collect(engine=engine))
    assert found[0]["valid"].equals(found[1]["valid"])
    return found[1].to_dicts()


def rows(texts):
    found = []
    for text in texts:
        keys = {f"keys{at}": missing_keys(text, keys) or None for at, keys in enumerate(KEYS)}
        found.append({"valid": is_json(text), **keys})
    return found


def test_what_cpython_accepts_is_valid_and_nothing_else():
    for text in ACCEPTED:
        json.loads(text)
    assert [text for text in (*ACCEPTED, *REFUSED) if is_json(text)] == [*ACCEPTED]
    for text in (*ACCEPTED, *REFUSED):
        assert columns([text]) == rows([text]), text


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_rows_do_not_see_each_other(engine):
    texts = ["[1],[2", "3]", *ACCEPTED, *REFUSED, '{"a":1', "}", '"', '"']
    for order in (texts, texts[::-1], texts + texts):
        assert columns(order, engine) == rows(order)


def mutated(rng):
    """JSON documents with a character changed, dropped, doubled or inserted."""
    value = json.dumps(
        rng.choice(([1, 2.5, None], {"a": 1, "b": [True]}, {"a": {"b": 'x\\"y'}}, "é\u2028", [[]], {"a b": None})),
        ensure_ascii=rng.random() < 0.5,
        indent=rng.choice((None, None, 2)),
    )
    for _ in range(rng.choice((0, 1, 1, 2))):
        at = rng.randrange(len(value) + 1)
        value = (
            value[:at]
            + rng.choice(("", '"', "\\", ",", "}", "0", "\n", "\x00", "N", "e", "{", "\u00a0"))
            + value[at + rng.choice((0, 1)) :]
        )
    return value


def test_mutated_documents_agree_with_cpython():
    rng = random.Random(3)
    texts = [mutated(rng) for _ in range(sized(6000, 1500))] + list(hostile_texts(sized(3000, 800), seed=2))
    found = columns(texts)
    assert found == rows(texts)
    for text, row in zip(texts, found, strict=True):
        if len(text) < 400:  # below our limit on depth
            assert row["valid"] == loads(text), repr(text)


def loads(text):
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def digits(rng):
    """Numbers that are hard to round: halfway between two floats, long, or at the ends of the range."""
    low = struct.unpack("d", struct.pack("Q", rng.getrandbits(52) | rng.randrange(2046) << 52))[0]
    halfway = (Decimal(low) + Decimal(math.nextafter(low, math.inf))) / 2
    cut = str(halfway)[: rng.randrange(20, 60)]
    exponent = f"{rng.getrandbits(rng.randrange(1, 200))}.{rng.getrandbits(70)}e{rng.randrange(-400, 400)}"
    return rng.choice((format(halfway, "e"), cut if cut[-1].isdigit() else "-0.0", exponent, repr(-low)))


def test_values_are_those_of_cpython():
    rng = random.Random(4)
    with localcontext(prec=1_200):
        numbers = [digits(rng) for _ in range(sized(20_000, 2_000))]
    texts = [text for text in ACCEPTED if not text.startswith("[[")]
    for text in [*texts, *filter(loads, (mutated(rng) for _ in range(sized(6_000, 1_500)))), *numbers]:
        assert repr(jsontext.loads(text)) == repr(json.loads(text)), text


def test_a_caller_deep_in_its_own_stack_gets_the_same_verdict():
    deepest = "[" * 500 + "]" * 500

    def at_depth(depth):
        return is_json(deepest) if depth == 0 else at_depth(depth - 1)

    assert at_depth(sys.getrecursionlimit() - 150)


def test_the_digit_limit_of_this_process_does_not_matter():
    before = sys.get_int_max_str_digits()
    try:
        sys.set_int_max_str_digits(700)
        assert is_json("9" * 4300)
        sys.set_int_max_str_digits(0)
        assert not is_json("9" * 4301)
    finally:
        sys.set_int_max_str_digits(before)


@pytest.mark.parametrize(
    ("text", "keys", "said"),
    [
        ('{"a": null}', ["a"], ""),
        ('{"a": 1}', ["a", "b", "c"], "missing keys: b, c"),
        ('[{"a": 1}]', ["a"], "the output is not a JSON object"),
        ("a", ["a"], "the output is not a JSON object"),
        ("{}", [], ""),
        ('{"b": {"a": 1}}', ["a"], "missing keys: a"),
    ],
)
def test_missing_keys_says_what_is_missing(text, keys, said):
    assert missing_keys(text, keys) == said


@pytest.mark.parametrize("piece", ['\\"', '"', "\\", "[", '["', "[\\", '{"a":', '[]"\\', '{"\\"', '[\\"'])
def test_a_looping_model_costs_linear_time(piece):
    brackets = "[" + "[]," * MAX_DEPTH  # so many that their depth is asked about

    def text_of(size):
        return brackets + '"' + piece * (size // len(piece))

    assert not is_json(text_of(100_000))
    assert is_linear(lambda size: partial(is_json, text_of(size)), 10_000)


def test_many_keys_cost_one_reading_of_the_text(monkeypatch):
    asked = []
    monkeypatch.setattr(jsontext, "missing_keys", lambda value, keys: asked.append(value) or "")
    for keys, rows in ((list("abcdefghijklmnop"), 0), (list("abcdefghijklmnopq"), 3)):
        asked.clear()
        objects = pl.DataFrame({"object": [json.dumps(dict.fromkeys(keys, 1))] * 3 + [None]})
        found = objects.select(missing_keys_expr(keys, pl.col("object"))).to_series().to_list()
        assert found == [None, None, None, "the output is not a JSON object"]
        assert len(asked) == rows
