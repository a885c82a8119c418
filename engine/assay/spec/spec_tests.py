"""The tests of a spec: rollouts, each with what the spec is expected to make of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from assay.errors import closest, did_you_mean, quoted
from assay.frozen import frozen
from assay.names import COMPLETION, OUTPUT_SCHEMA, OUTPUT_SCHEMA_CAMEL
from assay.spec.check import CheckSpec
from assay.spec.fields import FieldReader, is_number
from assay.spec.fields import place as place_of
from assay.system.documents import Place, named

TESTS = "tests"
OUTCOMES = ("pass", "fail", "unscored")
"""Expectations in a word."""

TEST_FIELDS = {
    "name": "Unique in the spec; by default test-1, test-2 and so on.",
    "given": "A rollout: `completion` and the columns that the checks read; null where it lacks one that others have.",
    "expect": "`pass`, `fail`, `unscored`, a reward, or an object of what is expected.",
}
EXPECTED_FIELDS = {
    "reward": "The reward, null for none, or `{min: …, max: …}`.",
    "passed": "Whether it passes; null if it is unscored.",
    "checks": "Scores by the ids of checks; null for one that does not run.",
    "reason": "For checks by their ids, a part of the feedback; null for none.",
    "error": "A part of the error; null for none.",
}
_BOUNDS = ("min", "max")


@frozen
class SpecTest:
    """A test of a spec.

    Attributes:
        name: Unique among the tests of its spec.
        given: The rollout.
        expect: What is expected by field: ``reward``, ``passed``, ``checks``, ``reason``, ``error``; what is not named is not compared.
    """

    name: str
    given: Mapping[str, Any]
    expect: Mapping[str, Any]


def read_tests(
    reader: FieldReader,
    data: Any,
    specs: Sequence[CheckSpec] | None,
    path: Place = (TESTS,),
    before: Sequence[SpecTest] = (),
) -> list[SpecTest]:
    """Return the tests of a verifier with these checks; what is wrong with them is a problem of the reader.

    Args:
        reader: Reads the document.
        data: The list of tests.
        specs: The checks of the verifier; None if they have problems themselves.
        path: Place of the list in the document.
        before: Tests that the verifier has already; tests without a name are numbered behind them.
    """
    if data is None:
        return []
    if not isinstance(data, list):
        reader.problem(path, f"expected a list of tests, got {named(data)}")
        return []
    nodes = [node for spec in specs or () for node in spec.nodes()]
    names = None if specs is None else [node.id for node in nodes if node.id]
    problems, tests, places = len(reader.problems), list[SpecTest](), dict[str, Place]()
    taken = {test.name for test in before}
    for at, item in enumerate(data):
        place, number = (*path, at), at + 1 + len(before)
        if (test := _test(reader, item, place, f"test-{number}", names)) is None:
            continue
        if test.name in places or test.name in taken:
            other = place_of(places[test.name]) if test.name in places else "a test of the spec"
            reader.problem((*place, "name"), f"the name {quoted(test.name)} is already used by {other}")
        places.setdefault(test.name, place)
        tests.append(test)
    if specs is not None and len(reader.problems) == problems and tests:
        for problem in _lacking(nodes, [*before, *tests]):
            reader.problem(path, problem)
    return tests


def _test(reader: FieldReader, item: Any, place: Place, name: str, checks: Sequence[str] | None) -> SpecTest | None:
    fields = reader.fields(item, place, (*TEST_FIELDS,))
    if fields is None:
        return None
    if len(fields) == len(item):  # else one is probably misspelt
        for field in (field for field in ("given", "expect") if field not in fields):
            reader.problem(place, f"a test needs `{field}`: {TEST_FIELDS[field]}")
    given = fields.get("given", {})
    if not isinstance(given, dict):
        reader.problem((*place, "given"), f"expected a rollout, an object, got {named(given)}")
    expect = _expectation(reader, fields["expect"], (*place, "expect"), checks) if "expect" in fields else {}
    return SpecTest(reader.value(fields, place, "name", str, "") or name, given, expect)


def _expectation(reader: FieldReader, data: Any, place: Place, checks: Sequence[str] | None) -> dict[str, Any]:
    if isinstance(data, str) and data in OUTCOMES:
        return {"reward": None} if data == "unscored" else {"passed": data == "pass"}
    if is_number(data):
        return {"reward": float(data)}
    if not isinstance(data, dict):
        guess = did_you_mean(data, OUTCOMES) if isinstance(data, str) else ""
        got = "nothing" if data is None else named(data)
        what = f"expected {', '.join(OUTCOMES)}, a reward or an object of {', '.join(EXPECTED_FIELDS)}"
        reader.problem(place, f"{what}, got {got}{'. ' if guess else ''}{guess}")
        return {}
    before = len(reader.problems)
    fields = reader.fields(data, place, (*EXPECTED_FIELDS,)) or {}
    read: dict[str, Callable[[Any, Place], Any]] = {
        "reward": partial(_number, reader),
        "passed": partial(_verdict, reader),
        "checks": partial(_by_check, reader, checks, partial(_number, reader)),
        "reason": partial(_by_check, reader, checks, partial(_text, reader)),
        "error": partial(_text, reader),
    }
    expect = {name: read[name](value, (*place, name)) for name, value in fields.items()}
    expect = {name: value for name, value in expect.items() if value != {}}
    if not expect and len(reader.problems) == before:
        reader.problem(place, f"is empty, so that nothing is compared: name {', '.join(EXPECTED_FIELDS)}")
    return expect


def _by_check(
    reader: FieldReader, checks: Sequence[str] | None, read: Callable[[Any, Place], Any], data: Any, place: Place
) -> dict[str, Any]:
    if not isinstance(data, dict | None):
        reader.problem(place, f"expected an object by the ids of checks, got {named(data)}")
        return {}
    for ident in data or ():
        if checks is not None and ident not in checks:
            guess = did_you_mean(str(ident), checks) or f"Known: {', '.join(checks)}."
            reader.problem((*place, ident), f"the spec has no check {quoted(str(ident))}. {guess}")
    return {ident: read(value, (*place, ident)) for ident, value in (data or {}).items()}


def _verdict(reader: FieldReader, value: Any, place: Place) -> Any:
    if not isinstance(value, bool | None):
        reader.problem(place, f"expected true, false or null, got {named(value)}")
    return value


def _number(reader: FieldReader, value: Any, place: Place) -> Any:
    if value is None:
        return None
    if isinstance(value, dict):
        bounds = reader.fields(value, place, _BOUNDS) or {}
        for name, bound in bounds.items():
            if not is_number(bound):
                reader.problem((*place, name), f"expected a number, got {named(bound)}")
        if not bounds and not value:
            reader.problem(place, "is empty: name `min`, `max` or both")
        elif all(is_number(bounds.get(name)) for name in _BOUNDS) and bounds["min"] > bounds["max"]:
            reader.problem(place, f"`min` {bounds['min']:g} is above `max` {bounds['max']:g}")
        return bounds
    if not is_number(value):
        reader.problem(place, f"expected a number, null or {{min: …, max: …}}, got {named(value)}")
        return None
    return float(value)


def _text(reader: FieldReader, value: Any, place: Place) -> Any:
    if value is not None and not (isinstance(value, str) and value):
        reader.problem(place, f"expected a part of the text, or null for none, got {named(value)}")
    return value


def _lacking(nodes: Sequence[CheckSpec], tests: Sequence[SpecTest]) -> Iterator[str]:
    """Yield what is wrong with the columns of cases: those that the checks read and no case has."""
    known = dict.fromkeys(name for test in tests for name in test.given)
    spelled = {OUTPUT_SCHEMA: OUTPUT_SCHEMA_CAMEL}
    readers: dict[str, list[str]] = {} if COMPLETION in known else {COMPLETION: []}
    for reader in (reader for node in nodes for reader in node.readers):
        own = reader.check.traits.reads if reader.check is not None else ()
        referred = (name for reference in reader.references for name in reference.columns)
        for name in dict.fromkeys((*own, *referred)):
            if name not in known and spelled.get(name, name) not in known:
                readers.setdefault(name, []).append(reader.id)
    for name, idents in readers.items():
        slip = closest(name, known)
        by = ", ".join(dict.fromkeys(filter(None, idents))) or "every check"
        guess = f" Is `{slip}` meant to be it?" if slip else ""
        yield f"no test has the column {quoted(name)}, which is read by {by}.{guess}"
