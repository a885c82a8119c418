"""Where the values of a JSON text stand, and where a text stops being JSON."""

import json
import random

import pytest

from assay.expressions.json import MAX_DEPTH, NOT_JSON, loads
from assay.expressions.json_places import JsonStop, PlacedArray, PlacedObject, json_stop, placed_json

PIECES = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"a"',
    r'"b\n"',
    "1",
    "-2.5e3",
    "true",
    "NaN",
    "-Infinity",
    " ",
    "\n",
    "01",
    '"',
]
PIECES += ["\\", "tr", "1.", '{"a":', '"c":', r'"\u00e9"']


def plain(value, text):
    """The value of a placed one."""
    if isinstance(value, PlacedObject):
        return {key: plain(inner, text) for key, inner in value.items()}
    if isinstance(value, PlacedArray):
        return [plain(inner, text) for inner in value]
    return json.loads(text[value.start : value.end])


def test_it_reads_what_python_reads():
    rng = random.Random(1)
    for _ in range(20_000):
        text = "".join(rng.choices(PIECES, k=rng.randint(0, 9)))
        value = loads(text)
        if value is not NOT_JSON:
            assert repr(plain(placed_json(text), text)) == repr(value)
            assert json_stop(text) is None
        elif (at := json_stop(text)) is not None:
            assert loads(text[: at + 1]) is NOT_JSON
        else:
            with pytest.raises(JsonStop):
                placed_json(text)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ('{"a": 1,}', 8),
        ('{"a": tru}', 9),
        ('{"a": 01}', 7),
        ('{"a": 1} and', 9),
        ("Sure", 0),
        (r'"a\x"', 3),
        (r'"\u12g', 5),
        ('"a\nb"', 2),
        ("-x", 1),
        ("1.x", 2),
        ("[1 2]", 3),
        ("[1,]", 3),
        ('{"a" 1}', 5),
        ("-Infinitz", 8),
        ("\ufeff1", 0),
        ("[" * (MAX_DEPTH + 1), MAX_DEPTH),
        *((text, None) for text in ("", " ", '{"a": 1', "1e+", "-Infinit", '"a', "[1, 2] \n", '"\\', "[" * MAX_DEPTH)),
    ],
)
def test_a_text_stops_being_json_at_the_first_code_point_that_cannot_stand_there(text, at):
    assert json_stop(text) == at
