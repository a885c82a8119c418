"""What stands in ``checks:`` besides check types and groups: functions, classes, the row's own verifier, other specs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from assay.checks.base import Check
from assay.checks.groups import Included
from assay.errors import did_you_mean, listed, quoted
from assay.functions.check import Registered, RowVerifierCheck, RowVerifierParams
from assay.functions.registry import function, list_fns
from assay.names import IN_PROCESS, NATIVE, ROW_VERIFIER
from assay.rewards.check import RewardCheck
from assay.rewards.named import is_path, reward_named
from assay.rewards.reward_function import reward_function
from assay.spec.by_class import by_class
from assay.spec.check import Reader
from assay.spec.pipeline import likely_slip, outline_of, resolvable
from assay.system.documents import Place

Read = Callable[[Reader, str, Mapping[str, Any], Place], dict[str, Any] | None]
"""Takes the reader, the check's type, its fields and its place; returns fields of a ``CheckSpec``, or None if there are problems."""

SCORERS: tuple[type[Check], ...] = (Registered, RowVerifierCheck, Included)
"""Classes of checks that have a type of their own, and that are read here."""


@dataclass(frozen=True)
class Scorer:
    """How a check that is no check type is read."""

    fields: tuple[str, ...]
    read: Read


def scorer_of(data: Mapping[str, Any], types: Mapping[str, Any]) -> tuple[str, Scorer] | None:
    """Return the name of what a check runs, and how it is read; None if it is a check type, a group, or unknown."""
    kind, name = data.get("kind"), data.get("type")
    if isinstance(kind, str) and name is None:
        return kind, Scorer(("kind",), _class)
    if not isinstance(name, str):
        return None
    if name in types:
        return next(((name, scorer) for check, scorer in _BY_TYPE.items() if types[name] is check), None)
    if function(name) is not None:
        return name, Scorer(("expected",), _function)
    return (name, Scorer((), _reward)) if is_path(name) else None


def _named_function(reader: Reader, type_name: str, fields: Mapping[str, Any], path: Place) -> dict[str, Any] | None:
    del type_name
    name = reader.value(fields, path, "name", str, "")
    if not name:
        reader.problem(path, "`function` needs `name`, the name of a registered function")
        return None
    if function(name) is None:
        guess = did_you_mean(name, list_fns()) or f"Registered: {listed(list_fns())}."
        how = "Register your own first: --import MODULE, or assay.fns.register_fn."
        reader.problem((*path, "name"), f"no verifier function is called {quoted(name)}. {guess} {how}")
        return None
    return _function(reader, name, fields, path)


def _function(reader: Reader, name: str, fields: Mapping[str, Any], path: Place) -> dict[str, Any] | None:
    params = _params(reader, fields, path)
    resolved = {key: resolvable(reader, value, (*path, "params", key)) for key, value in params.items()}
    golds: list[Any] | None = None
    outline: dict[str, Any] = {"name": name}
    if fields.get("expected") is not None:
        expected = resolvable(reader, fields["expected"], (*path, "expected"))
        golds = expected if isinstance(expected, list) else [expected]
        outline["expected"] = [*map(outline_of, golds)] if isinstance(expected, list) else outline_of(expected)
        if not any(gold is not None for gold in golds):
            reader.problem((*path, "expected"), "the list has no expected value")
            return None
    if resolved:
        outline["params"] = {key: _outlined(value) for key, value in resolved.items()}
    note = likely_slip([fields.get("expected"), params])
    return {"name": name, "params": outline, "check": Registered(name, golds, resolved), "note": note}


def _params(reader: Reader, fields: Mapping[str, Any], path: Place) -> dict[str, Any]:
    params: dict[str, Any] = reader.value(fields, path, "params", dict, {})
    return params


def _outlined(value: Any) -> Any:
    return [*map(outline_of, value)] if isinstance(value, list) else outline_of(value)


def _row_verifier(reader: Reader, name: str, fields: Mapping[str, Any], path: Place) -> dict[str, Any] | None:
    given = {**_params(reader, fields, path), **{key: fields[key] for key in ("verifierName",) if key in fields}}
    known = reader.fields(given, path, ("verifierName",)) or {}
    default = reader.value(known, path, "verifierName", str, "")
    if default and function(default) is None:
        guess = did_you_mean(default, list_fns()) or f"Registered: {listed(list_fns())}."
        reader.problem((*path, "verifierName"), f"no verifier function is called {quoted(default)}. {guess}")
        return None
    check = RowVerifierCheck(RowVerifierParams(verifier_name=default))
    return {"name": name, "params": {"verifierName": default}, "check": check}


def _class(reader: Reader, kind: str, fields: Mapping[str, Any], path: Place) -> dict[str, Any] | None:
    if kind in (NATIVE, IN_PROCESS):
        of_row = f"`type: {ROW_VERIFIER}` runs the verifiers of the rows"
        message = of_row if kind == IN_PROCESS else "a check has a `type`; `kind` names a verifier class"
        reader.problem((*path, "kind"), message)
        return None
    read = by_class(reader, kind, fields, path)
    if not read:
        return None
    check = read[0]["check"]
    check.extra = "info/{verifier}/{check}"
    return {"name": kind, "params": read[0]["params"], "check": check, "outline": {"kind": kind}}


def _reward(reader: Reader, name: str, fields: Mapping[str, Any], path: Place) -> dict[str, Any] | None:
    if fields.get("params"):
        reader.problem((*path, "params"), "a reward function has no params: it takes columns by their names")
    try:
        func = reward_named(name)
        inspected = reward_function(func, name=name)
    except (TypeError, ValueError) as error:
        reader.problem((*path, "type"), str(error))
        return None
    if inspected.group:
        reader.problem(
            (*path, "type"), f"{name} sees all rollouts of an example, which only a rubric gives it: --rubric"
        )
        return None
    return {"name": name.partition(":")[2], "params": {}, "check": RewardCheck(name, inspected)}


def _spec(reader: Reader, name: str, fields: Mapping[str, Any], path: Place) -> dict[str, Any] | None:
    for field in ("on", "extract", "notFound", "missingGold"):
        if fields.get(field) is not None:
            reader.problem((*path, field), f"`{field}` belongs to the checks of the other spec")
    given = {**_params(reader, fields, path), **({"path": fields["path"]} if "path" in fields else {})}
    file = (reader.fields(given, path, ("path",)) or {}).get("path")
    if not isinstance(file, str) or not file:
        reader.problem(path, f"`{name}` needs `path`, the file of the other spec")
        return None
    return reader.included(file, (*path, "path"))


_BY_TYPE: dict[Any, Scorer] = {
    Registered: Scorer(("name", "expected"), _named_function),
    RowVerifierCheck: Scorer(("verifierName",), _row_verifier),
    Included: Scorer(("path",), _spec),
}
