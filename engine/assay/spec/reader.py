"""Read the parts of a verifier from a document, collecting every problem with its place."""

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from assay.checks.base import Check
from assay.checks.broken import Broken
from assay.errors import closest, did_you_mean, printable, quoted, said_by
from assay.names import NATIVE, VERIFIER
from assay.spec.by_class import by_class
from assay.system.documents import Document, Place, named
from assay.values.params import canonical
from assay.values.params import spellings as params_spellings

__all__ = ["CHECK_FIELDS", "VERIFIER_FIELDS", "SpecReader", "spellings"]

VERIFIER_FIELDS = ("id", "name", "kind", "passThreshold", "checks")
CLASS_FIELDS = ("id", "name", "kind", "passThreshold", "params")
CHECK_FIELDS = ("id", "type", "weight", "required", "negate", "params")
_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")
_CHOICES_OF_TYPE = ("int", "float", "str", "dict[str,any]", "list[str]")
"""What pydantic adds to the place of a value that may be of several types."""
_PLACE_KEY = re.compile(r"[A-Za-z_$][\w$]*")


def _snake(name: str) -> str:
    return _HUMP.sub(lambda match: "_" + match.group(1).lower(), name)


def spellings(check: type[Check]) -> dict[str, str]:
    """Map every name that specs may use for a param to its field."""
    return params_spellings(check.Params)


def place(path: Place) -> str:
    """Format a place for messages: ``$.checks[0].params.value``."""
    written = "$"
    for step in path:
        if isinstance(step, int):
            written += f"[{step}]"
        else:
            written += f".{step}" if _PLACE_KEY.fullmatch(step) else f"[{step!r}]"
    return written


class SpecReader:
    """Reads one document.

    Args:
        document: The data and its lines.
        types: Check types by every name that specs may use.
        strict: Whether unknown types and broken checks are problems.
    """

    def __init__(self, document: Document, types: Mapping[str, type[Check]], *, strict: bool) -> None:
        self.document = document
        self.types = types
        self.strict = strict
        self.problems: list[str] = []
        self.spelled: dict[Place, Place] = {}
        self.root: Place = ()

    def problem(self, path: Place, message: str) -> None:
        """Record a problem at a place, spelled as in the document."""
        path = (*self.root, *self.spelled.get(path, path))
        line = self.document.lines.get(path)
        self.problems.append(printable(f"{place(path)}{f' (line {line})' if line else ''}: {message}"))

    def read(self, default_id: str) -> dict[str, Any]:
        """Return the fields of a ``VerifierSpec``; look at ``problems`` before using them."""
        data = self.document.data
        if isinstance(data, dict) and [*data] == [VERIFIER]:  # the form used in task rows and configurations
            self.root, data = (VERIFIER,), data[VERIFIER]
        kind = data.get("kind", NATIVE) if isinstance(data, dict) else NATIVE
        native = kind in (None, NATIVE)
        fields = self.fields(data, (), VERIFIER_FIELDS if native else CLASS_FIELDS, ignored=("$schema",))
        if fields is None:
            return {"checks": []}
        ident = self.ident(fields, (), default_id)
        threshold = self.number(fields, ("passThreshold",), 1.0)
        if native and threshold > 1:
            self.problem(("passThreshold",), f"{threshold} is above 1, the highest score: nothing could pass")
        kind = self.value(fields, (), "kind", str, NATIVE)
        return {
            "id": ident,
            "name": self.value(fields, (), "name", str, ident),
            "kind": kind,
            "pass_threshold": threshold,
            "checks": self.checks(fields) if native else by_class(self, kind, fields),
        }

    # ── fields ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def fields(
        self,
        data: Any,
        path: Place,
        allowed: tuple[str, ...],
        ignored: tuple[str, ...] = (),
    ) -> dict[str, Any] | None:
        """Return the known fields in canonical spelling; unknown ones are problems."""
        if not isinstance(data, dict):
            self.problem(path, f"expected an object, got {named(data)}")
            return None
        by_snake = {_snake(name): name for name in allowed}
        fields: dict[str, Any] = {}
        for key, value in data.items():
            name = by_snake.get(key) or (key if key in allowed else None)
            if name is None and key not in ignored:
                self.unknown((*path, key), allowed)
            elif name in fields:
                self.problem((*path, key), f"`{name}` is given twice, in two spellings")
            elif name is not None:
                fields[name] = value
                self.spelled[*path, name] = (*path, key)
        return fields

    def unknown(self, path: Place, allowed: tuple[str, ...]) -> None:
        """Record an unknown field, with the likely one."""
        guess = did_you_mean(str(path[-1]), allowed)
        choices = f"Known: {', '.join(allowed)}." if allowed else "None are allowed here."
        self.problem(path, f"unknown field `{path[-1]}`. {guess or choices}")

    def value(self, fields: Mapping[str, Any], path: Place, name: str, kind: type, default: Any) -> Any:
        """Return a field of a plain type; absent and null mean the default."""
        value = fields.get(name)
        if value is None:
            return default
        if not isinstance(value, kind):
            expected = {str: "a string", bool: "true or false", list: "a list", dict: "an object"}[kind]
            hint = " Write it in quotes: a bare value is read as a number or true/false." if kind is str else ""
            self.problem((*path, name), f"expected {expected}, got {named(value)}.{hint}")
            return default
        return value

    def number(self, fields: Mapping[str, Any], path: Place, default: float) -> float:
        """Return a field that must be a finite number, at least 0."""
        value = fields.get(str(path[-1]))
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.problem(path, f"expected a number, got {named(value)}")
            return default
        try:
            value = float(value)
        except OverflowError:
            value = math.inf
        if not math.isfinite(value) or value < 0:
            self.problem(path, f"expected a finite number, at least 0, got {value}")
            return default
        return value + 0.0  # -0.0 is 0.0

    def ident(self, fields: Mapping[str, Any], path: Place, default: str) -> str:
        """Return an id: a non-empty string without ``/`` and control characters, because it becomes part of column names."""
        ident: str = self.value(fields, path, "id", str, default)
        if not ident or "/" in ident or not ident.isprintable():
            self.problem((*path, "id"), f"{ident!r} cannot be an id: use printable characters, none of them /")
        return ident

    # ── checks ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def checks(self, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the checks in order, with ids for those that have none."""
        problems_before = len(self.problems)
        listed = self.value(fields, (), "checks", list, [])
        checks = [check for at, data in enumerate(listed) if (check := self.check(data, ("checks", at))) is not None]
        self.name_checks(checks)
        is_clean = len(self.problems) == problems_before
        runnable = [check for check in checks if check["check"] is not None]
        if is_clean and not listed:
            self.problem(("checks",) if "checks" in fields else (), "a verifier needs `checks`, a list of at least one")
        elif is_clean and not runnable:
            notes = "".join(f"; {check['note']}" for check in checks)
            self.problem(("checks",), f"no check that can run{notes}")
        elif is_clean and not 0 < sum(check["weight"] for check in runnable) < math.inf:
            self.problem(("checks",), "the weights of the checks that run add up to 0 or to infinity")
        for check in checks:
            del check["path"]
        return checks

    def name_checks(self, checks: list[dict[str, Any]]) -> None:
        """Reject duplicate ids; name checks without an id by their type, then ``type-2`` and so on."""
        places: dict[str, Place] = {}
        for check in checks:
            if check["id"] is None:
                continue
            if check["id"] in places:
                first = place(places[check["id"]])
                self.problem((*check["path"], "id"), f'the id "{check["id"]}" is already used by {first}')
            places.setdefault(check["id"], check["path"])
        numbers: dict[str, Iterator[int]] = {}
        for check in checks:
            if check["id"] is None:
                name = check["type"]
                names = (name if n == 1 else f"{name}-{n}" for n in numbers.setdefault(name, itertools.count(1)))
                ident = next(candidate for candidate in names if candidate not in places)
                check["id"] = ident
                places[ident] = check["path"]

    def check(self, data: Any, path: Place) -> dict[str, Any] | None:
        """Return the fields of one ``CheckSpec``, or None if the data has no usable type."""
        if not isinstance(data, dict):
            self.problem(path, f"expected an object, got {named(data)}")
            return None
        name = data.get("type")
        if not isinstance(name, str):
            if name is not None:
                self.problem((*path, "type"), f"expected a string, got {named(name)}")
                return None
            slip = closest("type", [key for key in data if key not in CHECK_FIELDS])
            guess = f": `{slip}` is unknown. Did you mean `type`?" if slip else ""
            self.problem((*path, slip) if slip else path, f"every check needs a `type`{guess}")
            return None
        check_type = self.types.get(name)
        is_flat = data.get("params") is None
        allowed = CHECK_FIELDS + (tuple(spellings(check_type)) if check_type and is_flat else ())
        if check_type is None:  # the params of an unknown type are unknown, too
            allowed = (*CHECK_FIELDS, *(data if is_flat else ()))
        fields = self.fields(data, path, tuple(dict.fromkeys(allowed)))
        if fields is None:
            return None
        params = (
            {key: value for key, value in fields.items() if key not in CHECK_FIELDS} if is_flat else fields["params"]
        )
        ident = self.ident(fields, path, name) if fields.get("id") is not None else None
        if ident is None and (not name or "/" in name or not name.isprintable()):
            self.problem((*path, "type"), f"{name!r} cannot be an id; give the check an `id`")
        common = {
            "id": ident,
            "type": name,
            "weight": self.number(fields, (*path, "weight"), 1.0),
            "required": self.value(fields, path, "required", bool, default=False),
            "negate": self.value(fields, path, "negate", bool, default=False),
            "path": path,
        }
        if check_type is None:
            return common | {
                "params": params if isinstance(params, dict) else {},
                "check": None,
                "note": self.skip(name, path),
            }
        return common | self.params(check_type, params, path if is_flat else (*path, "params"))

    def skip(self, name: str, path: Place) -> str:
        """Return the note on a check of unknown type, which is skipped."""
        note = f"skipped, unknown check type {quoted(name)}"
        guess = did_you_mean(name, self.types)
        if self.strict:
            self.problem(
                (*path, "type"), f'unknown check type "{name}". {guess or "Known: " + ", ".join(self.types) + "."}'
            )
        return f"{note}. {guess}" if guess else note

    def params(self, check_type: type[Check], values: Any, path: Place) -> dict[str, Any]:
        """Build the check with its params, or a broken check; unknown params are problems."""
        if not isinstance(values, dict):
            return self.broken(f"TypeError: params is {named(values)}, not an object", values, path)
        names = spellings(check_type)
        by_field: dict[str, Any] = {}
        for key, value in values.items():
            if key not in names:
                self.unknown((*path, key), tuple(names))
            elif names[key] in by_field:
                self.problem((*path, key), f"`{names[key]}` is given twice, in two spellings")
            else:
                by_field[names[key]] = value
        try:
            params = check_type.Params.model_validate(by_field)
            return {"params": canonical(params), "check": check_type(params)}
        except ValidationError as exception:
            return self.broken(
                "; ".join(dict.fromkeys(_params_error(error, check_type) for error in exception.errors())), values, path
            )
        except Exception as exception:  # noqa: BLE001  (a user's check class may raise anything)
            return self.broken(said_by(exception), values, path)

    def broken(self, problem: str, params: Any, path: Place) -> dict[str, Any]:
        """Build a check that reports its problem on every row."""
        if self.strict:
            self.problem(path, f"the check cannot run: {problem}")
        return {"params": params, "check": Broken(problem)}


def _params_error(error: Any, check: type[Check]) -> str:
    """Format one of pydantic's errors as ``<ExceptionType>: <message>``, with params in camelCase."""
    fields = check.Params.model_fields
    name, *steps = (step for step in error["loc"] if step not in _CHOICES_OF_TYPE)
    where = f"params.{(fields[name].alias if name in fields else None) or name}"
    where += "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    kind, value = error["type"], error["input"]
    if kind == "missing":
        return f"ValueError: {where} is missing"
    raised = error.get("ctx", {}).get("error")
    if isinstance(raised, BaseException):
        return f"{type(raised).__name__}: {where}: {raised}"
    if kind.endswith("_type"):
        expected = {
            "string": "a string",
            "bool": "true or false",
            "list": "a list",
            "int": "a number",
            "float": "a number",
        }
        return f"TypeError: {where} is {named(value)}, not {expected.get(kind.removesuffix('_type'), kind)}"
    return f"ValueError: {where} is {named(value)}: {error['msg'][0].lower()}{error['msg'][1:]}"
