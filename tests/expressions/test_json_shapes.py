"""Shapes of JSON texts: with its strings put back, a shape is the text; what is no JSON has no shape, or one that is none either."""

import json
import random

import polars as pl
import pytest

from assay.expressions.json import NOT_JSON, loads, mended, parse
from assay.expressions.json_shapes import filled, shapes_of, text_without_shape
from assay.testing import hostile_texts

TEXTS = [
    "",
    "{}",
    "5",
    '"x"',
    '"',
    '""',
    '{"a":"b"}',
    '{"a" \n:\t"b", "a":["c", "d"]}',
    '{"a":"\\"b\\\\","\\u0061":"\\u00e9\\ud83d\\ude00\\ud800"}',
    '{"a\\":":"b:\\"", ":":":"}',
    '{"a":1,"b":-0.5e+3,"c":[01]}',
    '{"a":1.5.2}',
    '{"a":1 2}',
    '{"a":' + "1" * 30 + "}",
    '{"a":' + "1" * 5_000 + "}",
    '{"a":NaN,"b":-Infinity,"c":true1}',
    '{"a":"b\nc"}',
    '{"a":"b\\qc", "d":"e"}',
    '{"a":"b\\u12"}',
    '{"a":"b}',
    '{"a":"b""c"}',
    '{"a":\ue000}',
    '{"a":"\ue000\ue001"}',
    '{"a":\ue001}',
    "\ue001\ue001{}",
    '\\"a',
    '{"a": \\"b"}',
    '{"a":"\\\\"}',
    '{"a":"\\\\\\""}',
    "[" * 600 + '"x"' + "]" * 600,
    '[[["[[[{{{",1],"]"]]',
]


def _with_strings(value, strings):
    """Put strings in the places that have their numbers."""
    if isinstance(value, str):
        return strings[int(value)]
    if isinstance(value, list):
        return [_with_strings(inner, strings) for inner in value]
    return {key: _with_strings(inner, strings) for key, inner in value.items()} if isinstance(value, dict) else value


def _mended(value):
    if isinstance(value, list):
        return [*map(_mended, value)]
    if isinstance(value, dict):
        return {key: _mended(inner) for key, inner in value.items()}
    return mended(value) if isinstance(value, str) else value


def _read(texts):
    shapes = shapes_of(pl.Series(texts, dtype=pl.String))
    for layout, start in zip(shapes.layout, shapes.start, strict=True):
        text = text_without_shape(layout)
        value = parse(filled(layout) if text is None else text)
        yield _mended(value) if text is not None or value is NOT_JSON else _with_strings(value, shapes.values[start:])


@pytest.mark.parametrize("batch", [1, 2, 1000])
def test_a_shape_with_its_strings_is_the_text(batch):
    for start in range(0, len(TEXTS), batch):
        some = TEXTS[start : start + batch]
        assert [*_read(some)] == [_mended(parse(text)) for text in some]


def _mutated(text, rng):
    at = rng.randrange(len(text) + 1)
    return (
        text[:at]
        + rng.choice(["", '"', "\\", ":", "{", "1", ",", "\ue000", "\n", '\\"', "e"])
        + text[at + rng.randrange(2) :]
    )


def test_damaged_json():
    rng = random.Random(5)
    phrases = [*hostile_texts(300, seed=2)]
    texts = [
        json.dumps(
            {rng.choice(phrases): rng.sample(phrases, 2), "n": [1, -2.5, {"m": rng.choice(phrases)}]},
            ensure_ascii=at % 2 == 0,
        )
        for at in range(300)
    ]
    texts = [mended(text) for text in texts]
    texts += [_mutated(text, rng) for text in texts for _ in range(3)]
    assert [*_read(texts)] == [_mended(parse(text)) for text in texts]


def test_texts_of_one_layout_have_one_shape():
    texts = [json.dumps({"id": at, "a": [f'"{at}\\', "é" * at], "b": at / 4}) for at in range(50)]
    shapes = shapes_of(pl.Series(texts))
    assert shapes.layout.n_unique() == 1
    assert shapes.values.to_list() == [value for text in texts for value in loads(text)["a"]]
