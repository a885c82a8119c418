"""Classes that are frozen to the type checker are what ``dataclass(frozen=True)`` makes of them, except that they may be assigned to."""

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

import assay
from assay.frozen import frozen


def _facts(decorate):
    @decorate
    class Point:
        x: int
        notes: list[str] = field(default_factory=list, compare=False, repr=False)

    @decorate
    class Named(Point):
        name: str = ""

    @decorate
    class Own:  # noqa: PLW1641  (the decorator adds the hash)
        x: int

        def __eq__(self, other):
            return True

        def __repr__(self):
            return "own"

    named = [Named(1), Named(1, name="b"), replace(Named(1), name="b")]
    objects = [Point(1), Point(1, ["a"]), Point(2), *named, Own(1), Own(2), 1]
    equal = [[a == b for b in objects] for a in objects]
    hashable = [value for value in objects if type(value).__hash__]
    hashes = [[type(a) is type(b) and hash(a) == hash(b) for b in hashable] for a in hashable]
    return equal, hashes, [repr(value).split(" object at ")[0] for value in objects]


@pytest.mark.parametrize("options", [{}, {"eq": False}, {"repr": False}])
def test_a_frozen_class_is_like_a_frozen_dataclass(options):
    assert _facts(frozen(**options)) == _facts(dataclass(frozen=True, **options))


def test_only_what_users_hold_is_frozen_by_dataclass():
    sources = [path.read_text("utf-8") for path in Path(assay.__file__).parent.rglob("*.py")]
    by_dataclass = {name for text in sources for name in re.findall(r"@dataclass\(frozen=True.*\nclass (\w+)", text)}
    assert by_dataclass
    assert by_dataclass <= {*assay.__all__}
