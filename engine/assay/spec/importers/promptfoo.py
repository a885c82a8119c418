"""promptfoo's configuration files: the assertions of `defaultTest` and `tests` as a spec.

An assertion that every test has becomes a check. What differs from test to test becomes a column of a task table, which has a row for
each test: values of assertions, a mark of the tests that have an assertion, and the variables that assertions name.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from assay.frozen import frozen
from assay.spec.importers.imported import (
    Imported,
    NoCounterpartError,
    Notes,
    check_problem,
    check_threshold,
    is_number,
    named_check,
    numbered_ids,
)
from assay.spec.importers.promptfoo_assertions import DIFFERENCES, NOT, assertion_check, text_of
from assay.system.documents import Place, SpecDocument, named
from assay.values.references import is_reference

_KEYS = ("tests", "defaultTest", "assertionTemplates", "prompts", "providers", "targets", "scenarios")
_SET = "assert-set"
_FILE = "file://"
_GOLDS = ("value", "values", "pattern", "called", "notCalled", "sequence")
"""Params that a column may bring."""
_TASK = "task_id"


def is_promptfoo(data: Any) -> bool:
    """Return whether data is promptfoo's configuration, or a list of its tests."""
    if isinstance(data, list):
        return any(isinstance(test, dict) and ({"assert", "vars"} & test.keys()) for test in data)
    return isinstance(data, dict) and any(key in data for key in _KEYS)


def read_promptfoo(document: SpecDocument) -> Imported:
    """Return the spec and the task table of a configuration."""
    return _ConfigurationReader(document).read()


@frozen
class _Hole:
    """The place of a value of some type that each test brings."""

    kind: str


@dataclass
class _Slot:
    """An assertion that tests share, except for its values."""

    check: dict[str, Any]
    values: dict[int, list[Any]] = field(default_factory=dict)


class _ConfigurationReader:
    """Reads one configuration."""

    def __init__(self, document: SpecDocument) -> None:
        data = document.data
        self.notes = Notes(document)
        self.root: Place = () if isinstance(data, list) else ("tests",)
        self.config: Mapping[str, Any] = data if isinstance(data, dict) else {}
        self.tests = self._listed(data if isinstance(data, list) else self.config.get("tests"), self.root)
        self.default = self._object(self.config.get("defaultTest"), ("defaultTest",))
        self.threshold = self._common_threshold()
        self.graded = self.threshold is not None  # whether it decides, not the verdicts of assertions
        self.names: dict[str, None] = {}
        self.differing: set[str] = set()

    def read(self) -> Imported:
        if self.config.get("scenarios"):
            self.notes.leave_out(("scenarios",), "a scenario stands for several tests; write these tests")
        self._look_at_options(self.default, ("defaultTest",))
        for at, test in enumerate(self.tests):
            if isinstance(test, dict):
                self._look_at_options(test, (*self.root, at))
        own: Place = ("defaultTest", "assert")
        checks = [check for _, check in self._checks(self.default.get("assert"), own, self.graded)]
        slots = self._slots()
        marks = (f"assert_{number}" for number in count(1) if f"assert_{number}" not in self._variables())
        columns: dict[str, dict[int, Any]] = {}
        checks += [self._filled(slot, marks, columns) for slot in slots]
        numbered_ids(checks)
        spec: dict[str, Any] = {} if self.threshold is None else {"passThreshold": self.threshold}
        name = self.config.get("description")
        spec = ({"name": name} if isinstance(name, str) and name else {}) | spec | {"checks": checks}
        return Imported(spec, self._tasks(columns), self.notes.left_out, self.notes.differences)

    def _listed(self, value: Any, path: Place) -> list[Any]:
        if isinstance(value, list):
            return value
        if value is not None:
            other = (
                isinstance(value, str) and "the tests are in another file, which is not read: name that file instead"
            )
            self.notes.leave_out(path, other or f"expected a list, got {named(value)}")
        return []

    def _object(self, value: Any, path: Place) -> Mapping[str, Any]:
        if isinstance(value, dict):
            return value
        if value is not None:
            self.notes.leave_out(path, f"expected an object, got {named(value)}")
        return {}

    def _look_at_options(self, test: Mapping[str, Any], path: Place) -> None:
        options = test.get("options")
        for name in ("transform", "postprocess"):
            if isinstance(options, dict) and options.get(name):
                self.notes.leave_out((*path, "options", name), "it changes the output by code, before the assertions")
        if test.get("assertScoringFunction"):
            self.notes.leave_out((*path, "assertScoringFunction"), "it combines scores by code")

    def _common_threshold(self) -> float | None:
        default = self.default.get("threshold")
        given: list[tuple[Place, Any]] = [
            ((*self.root, at, "threshold"), test.get("threshold", default))
            for at, test in enumerate(self.tests)
            if isinstance(test, dict)
        ] or [(("defaultTest", "threshold"), default)]
        values = [value for _, value in given]
        first: Any = values[0]
        if (
            is_number(first)
            and 0 <= first <= 1
            and all(value == first and not isinstance(value, bool) for value in values)
        ):
            return float(first)
        for path, value in given:
            if value is not None:
                reason = f"it is {named(value)}: a spec has one threshold, between 0 and 1, for all tests"
                self.notes.leave_out(path, reason)
        return None

    def _variables(self) -> set[str]:
        tests = [self.default, *(test for test in self.tests if isinstance(test, dict))]
        return {str(name) for test in tests if isinstance(test.get("vars"), dict) for name in test["vars"]}

    def _checks(self, listed: Any, path: Place, graded: bool) -> Iterator[tuple[Place, dict[str, Any]]]:
        for at, given in enumerate(self._listed(listed, path)):
            place = (*path, at)
            try:
                check = self._check(self._resolved(given), place, graded)
                problem = "" if "checks" in check else check_problem(check)
            except NoCounterpartError as error:
                problem = str(error)
            if problem:
                self.notes.leave_out(place, problem)
            else:
                yield place, check

    def _resolved(self, given: Any) -> Mapping[str, Any]:
        if not isinstance(given, dict):
            raise NoCounterpartError(f"expected an object, got {named(given)}")
        reference = given.get("$ref")
        if reference is None:
            return given
        templates = self.config.get("assertionTemplates")
        name = reference.removeprefix("#/assertionTemplates/") if isinstance(reference, str) else ""
        template = templates.get(name) if isinstance(templates, dict) else None
        if not isinstance(template, dict):
            raise NoCounterpartError(f"`$ref`: {reference!r} is not in `assertionTemplates`")
        return {**template, **{key: value for key, value in given.items() if key != "$ref"}}

    def _check(self, given: Mapping[str, Any], path: Place, graded: bool) -> dict[str, Any]:
        if given.get("type") == _SET or given.get("type") == f"{NOT}{_SET}":
            check = self._set(given, path, graded)
        else:
            base, check = assertion_check(given, graded=graded, column_of=self._column)
            if base in DIFFERENCES and base not in self.differing:
                self.differing.add(base)  # once for each type
                self.notes.differ(path, f"`{base}`: {DIFFERENCES[base]}")
        check = named_check(given.get("metric"), check)
        weight = 0 if given.get("metricOnly") is True else given.get("weight")
        if weight is None or weight == 1:
            return check
        if not is_number(weight) or weight < 0:
            raise NoCounterpartError(f"`weight` is {named(weight)}, not a number of at least 0")
        return {**check, "weight": weight}

    def _set(self, given: Mapping[str, Any], path: Place, graded: bool) -> dict[str, Any]:
        threshold = given.get("threshold")
        has_threshold = is_number(threshold)
        if threshold is not None and not has_threshold:
            raise NoCounterpartError(f"`threshold` is {named(threshold)}, not a number")
        checks = [check for _, check in self._checks(given.get("assert"), (*path, "assert"), graded or has_threshold)]
        if not checks:
            raise NoCounterpartError("none of its assertions has a counterpart")
        group: dict[str, Any] = {"type": "mean", "checks": checks}
        if not graded:
            group["threshold"] = threshold if has_threshold else 1.0
            check_threshold(group["threshold"])
        return {**group, "negate": True} if str(given["type"]).startswith(NOT) else group

    def _column(self, path: str) -> str:
        root = path.partition(".")[0].partition("[")[0]
        if root not in self._variables():
            reason = "it is no variable of a test" + (": the environment is not read" if root == "env" else "")
            raise NoCounterpartError(f"`{{{{{path}}}}}`: {reason}")
        self.names[root] = None
        return path

    def _slots(self) -> list[_Slot]:
        slots: dict[tuple[str, int], _Slot] = {}
        for number, test in enumerate(self.tests):
            path = (*self.root, number)
            if not isinstance(test, dict):
                self.notes.leave_out(path, f"expected an object, got {named(test)}")
                continue
            seen: dict[str, int] = {}
            for _, check in self._checks(test.get("assert"), (*path, "assert"), self.graded):
                values: list[Any] = []

                def hole(name: str, value: Any, values: list[Any] = values) -> Any:
                    is_list = isinstance(value, list) and all(isinstance(item, str) for item in value)
                    as_json = name == "value" and isinstance(value, dict) and not is_reference(value)
                    if not (is_list or as_json or isinstance(value, str)):
                        return value
                    values.append(value)
                    return _Hole(type(value).__name__)

                holed = _exchanged(check, hole)
                shape = json.dumps(holed, sort_keys=True, default=str)
                seen[shape] = seen.get(shape, 0) + 1
                slot = slots.setdefault((shape, seen[shape]), _Slot(holed))
                slot.values[number] = values
        return [*slots.values()]

    def _filled(self, slot: _Slot, marks: Iterator[str], columns: dict[str, dict[int, Any]]) -> dict[str, Any]:
        by_test = [*slot.values.values()]
        in_all = len(by_test) == len(self.tests)
        fillings: list[Any] = []
        for at, first in enumerate(by_test[0]):
            if in_all and all(values[at] == first for values in by_test):
                fillings.append(first)
                continue
            column = next(marks)
            columns[column] = {number: _cell(values[at]) for number, values in slot.values.items()}
            fillings.append({"column": column})
        filling = iter(fillings)
        check = _exchanged(slot.check, lambda _, value: next(filling) if isinstance(value, _Hole) else value)
        if in_all:
            return check
        known = [given["column"] for given in fillings if is_reference(given)]
        mark = known[0] if known else next(marks)
        columns.setdefault(mark, dict.fromkeys(slot.values, True))
        return {**check, "when": {"column": mark, "exists": True}}

    def _tasks(self, columns: Mapping[str, Mapping[int, Any]]) -> list[dict[str, Any]]:
        if not (columns or self.names):
            return []
        defaults = self.default.get("vars")
        defaults = defaults if isinstance(defaults, dict) else {}
        rows = []
        for number, test in enumerate(self.tests or [{}]):
            own = test.get("vars") if isinstance(test, dict) else None
            given = {**defaults, **(own if isinstance(own, dict) else {})}
            row: dict[str, Any] = {_TASK: str(number)}
            for name in self.names:
                row[name] = self._variable(given.get(name), (*self.root, number, "vars", name))
            rows.append(row | {column: values.get(number) for column, values in columns.items()})
        return rows

    def _variable(self, value: Any, path: Place) -> Any:
        if isinstance(value, list):
            self.notes.leave_out(path, "a list stands for a test for each item; write these tests")
        elif isinstance(value, str) and value.startswith(_FILE):
            self.notes.leave_out(path, "its value is in another file, which is not read")
        elif isinstance(value, str) and "{{" in value:
            self.notes.leave_out(path, "its value has a template")
        else:
            return value if isinstance(value, dict) or value is None else text_of(value)
        return None


def _exchanged(check: Mapping[str, Any], exchange: Callable[[str, Any], Any]) -> dict[str, Any]:
    changed = dict(check)
    if "checks" in changed:
        return changed | {"checks": [_exchanged(part, exchange) for part in changed["checks"]]}
    return changed | {name: exchange(name, changed[name]) for name in _GOLDS if name in changed}


def _cell(value: Any) -> Any:
    """Return a value for a column: objects as JSON text, because a column of objects has the fields of all."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value
