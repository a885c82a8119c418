"""JSON that says Python's values exactly, and what is told of those that it cannot say."""

import dataclasses
import enum
import json
import math
import subprocess
import sys
from collections import OrderedDict, defaultdict, deque, namedtuple
from datetime import UTC, datetime
from pathlib import PureWindowsPath
from types import MappingProxyType

import numpy as np
import pydantic
import pytest
from cases import sized
from hypothesis import given, settings

from assay.values import tagged_json as exact
from values import VALUES, alike


def there_and_back(value):
    losses = exact.Losses()
    text = exact.write(value, "x", losses)
    text.encode()
    return exact.read(text), losses.places


@settings(max_examples=sized(400, 100), deadline=None)
@given(VALUES)
def test_values_come_back_as_they_were(value):
    found, lost = there_and_back(value)
    assert alike(found, value)
    assert not lost


def test_text_stays_readable():
    assert exact.write({"é": "日本"}, "x", exact.Losses()) == '{"é": "日本"}'


def test_what_json_cannot_say_is_tagged():
    for value, text in [
        ((1, 2), '{"$assay": "tuple", "value": [1, 2]}'),
        ({1: "a"}, '{"$assay": "dict", "value": [[1, "a"]]}'),
        ({"$assay": 1}, '{"$assay": "dict", "value": [["$assay", 1]]}'),
        ({"b", "a"}, '{"$assay": "set", "value": ["a", "b"]}'),
        (b"\xff", '{"$assay": "bytes", "value": "/w=="}'),
        (16**4000, '{"$assay": "int", "value": "0x1' + "0" * 4000 + '"}'),
        ("\ud83d" + "\ude00", '{"$assay": "text", "value": ["\\ud83d", "\\ude00"]}'),
        ([math.nan, -math.inf], "[NaN, -Infinity]"),
    ]:
        assert exact.write(value, "x", exact.Losses()) == text
        assert alike(exact.read(text), value)


class Colour(enum.Enum):
    RED = "red"


class Word(enum.StrEnum):
    YES = "yes"


class Point(pydantic.BaseModel):
    x: int
    at: datetime


Pair = namedtuple("Pair", "a b")  # noqa: PYI024


def test_what_is_equal_comes_back_equal():
    for value in [
        *(OrderedDict(a=1), defaultdict(list, a=[1]), MappingProxyType({"a": 1}), Pair(1, 2), Word.YES, [Word.YES]),
        *(np.float64(0.5), np.int64(3), np.bool_(True), np.str_("a"), np.float32(0.5)),
        bytearray(b"a"),
    ]:
        found, lost = there_and_back(value)
        assert found == value
        assert not lost


def test_models_come_back_as_dicts():
    point = Point(x=1, at=datetime(2026, 1, 31, tzinfo=UTC))
    assert there_and_back([point]) == ([{"x": 1, "at": "2026-01-31T00:00:00Z"}], [])


@dataclasses.dataclass
class Board:
    cells: list
    size: tuple


class Untouchable:
    def __repr__(self):
        raise RuntimeError("no")

    __str__ = __eq__ = __hash__ = __getattr__ = lambda *_: 1 / 0


class Frozen(pydantic.BaseModel, frozen=True):
    x: int


def test_other_objects_come_back_changed_and_that_is_told():
    for value, found, places in [
        ({"b": Board([1], (1, 2))}, {"b": {"cells": [1], "size": (1, 2)}}, ["x.b (Board)"]),
        ([0, np.arange(3)], [0, [0, 1, 2]], ["x[1] (ndarray)"]),
        (Colour.RED, "red", ["x (Colour)"]),
        ({"e": ValueError("no")}, {"e": "ValueError: no"}, ["x.e (ValueError)"]),
        (deque([1]), "deque([1])", ["x (deque)"]),
        (PureWindowsPath("a"), "PureWindowsPath('a')", ["x (PureWindowsPath)"]),
        ({"a": 1, "u": Untouchable()}, {"a": 1, "u": "<Untouchable>"}, ["x.u (Untouchable)"]),
        ({Colour.RED: 1}, {"red": 1}, ["x.Colour.RED (Colour)"]),
        ({Frozen(x=1): 1}, {"Frozen(x=1)": 1}, ["x.x=1 (Frozen)"]),
        ({Frozen(x=1)}, {"Frozen(x=1)"}, ["x{…} (Frozen)"]),
        (Point, repr(Point), ["x (ModelMetaclass)"]),
    ]:
        assert there_and_back(value) == (found, places)


def test_the_text_of_an_object_has_no_address():
    assert there_and_back(there_and_back)[0] == "<function there_and_back>"
    assert there_and_back(object())[0] == "<object object>"


def test_a_value_in_itself_ends():
    loop = {"a": 1}
    loop["self"] = [loop]
    assert there_and_back(loop) == ({"a": 1, "self": ["{'a': 1, 'self': [{...}]}"]}, ["x.self[0] (dict)"])


def test_any_depth_can_be_saved():
    for leaf in [0, (0,)]:
        for depth in [90, 300, 5000, 200_000]:
            deep = leaf
            for _ in range(depth):
                deep = [deep]
            found, lost = there_and_back(deep)
            assert bool(lost) or found == deep
            assert not lost or depth > 90
            while isinstance(deep, list):  # a list this deep is taken apart by hand
                deep = deep[0]


def test_a_full_stack_costs_the_value_not_the_run():
    def deeper(left):
        return there_and_back([(1,)]) if left == 0 else deeper(left - 1)

    results = []
    for left in range(0, sys.getrecursionlimit(), 5):
        try:
            results.append(deeper(left))
        except RecursionError:
            break
    assert results[0] == ([(1,)], [])
    assert len(results) > 50


def test_losses_in_words():
    losses = exact.Losses()
    assert not str(losses)
    losses.add("row 0.state.x\n", 1j)
    assert str(losses).startswith("1 value is saved as text, a list or a dict, and comes back as such: ")
    assert str(losses).endswith(": row 0.state.x\\n (complex).")
    for at in range(2000):
        losses.add(f"row {at}" + "x" * 10_000, at)
    assert "2,001 values are saved" in str(losses)
    assert str(losses).endswith("; and 1,996 more.")
    assert len(str(losses)) < 1500


def test_tags_of_others_are_left_alone():
    for text in [
        '{"$assay": "tuple"}',
        '{"$assay": "nothing of ours", "value": 1}',
        '{"$assay": ["tuple"], "value": 1}',
        '{"$assay": "tuple", "value": 1, "more": 2}',
    ]:
        assert exact.read(text) == json.loads(text)


def test_what_is_none_of_it_is_refused():
    for text in [
        "",
        "{",
        *(f'{{"$assay": "{tag}", "value": {{}}}}' for tag in ("int", "date", "bytes", "decimal", "uuid", "path")),
    ]:
        with pytest.raises(ValueError, match=r"\w"):
            exact.read(text)


def test_a_set_is_written_the_same_in_every_process():
    code = "from assay.values import tagged_json as exact; print(exact.write({'a', 'b', 'c', (1, 'd')}, '', exact.Losses()))"
    seen = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1


def test_long_integers_are_tagged_where_they_could_be_written_too():
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        text = exact.write({"n": [10**4400]}, "x", exact.Losses())
    finally:
        sys.set_int_max_str_digits(limit)
    assert exact.read(text) == {"n": [10**4400]}
