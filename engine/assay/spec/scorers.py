"""What stands in checks: besides check types and groups."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

from pydantic import AliasChoices, AliasPath, BaseModel, ValidationError

from assay.calls.limits import is_user_error
from assay.checks.base import Check
from assay.checks.graders.base import OWN_FIELDS, GraderCheck
from assay.checks.groups import Included
from assay.errors import describe_error, did_you_mean, listed, quoted
from assay.functions.check import FunctionCheck, RowVerifierCheck, RowVerifierParams
from assay.functions.registry import function, list_fns
from assay.names import IN_PROCESS, NATIVE, ROW_VERIFIER
from assay.spec.fields import FieldReader
from assay.spec.pipeline import likely_slip, outline_of, resolvable
from assay.system.documents import Place, named
from assay.values.references import as_list


def by_class(reader: FieldReader, kind: str, fields: Mapping[str, Any], path: Place = ()) -> list[dict[str, Any]]:
    """Return the fields of the single ``CheckSpec`` of a verifier class; an empty list if there are problems."""
    from assay.classes.check import ByClass
    from assay.classes.registry import get_verifier

    params_given = reader.value(fields, path, "params", dict, {})
    if kind == IN_PROCESS:
        message = f"rows carry verifiers of kind {IN_PROCESS}: score them without a spec, or with --verifier-name"
        reader.problem((*path, "kind"), message)
    if reader.problems:  # load a plug-in only for a spec that can be used
        return []
    try:
        cls: Any = get_verifier(kind, load=reader.load_plugins)
    except ValueError as exception:
        reader.problem((*path, "kind"), str(exception))
        return []
    doing = f"{cls.Config.__qualname__} cannot read the params"
    try:
        config: BaseModel = cls.Config.model_validate(params_given)
        doing = f"{cls.__qualname__} cannot be created"
        check = ByClass(kind, cls(**dict(config)))
        doing = f"{cls.Config.__qualname__} cannot be written as JSON"
        params = config.model_dump(mode="json")
    except BaseException as exception:  # a user's class, its validators and defaults may raise anything
        if isinstance(exception, ValidationError) and doing.endswith("the params"):
            for error in exception.errors():
                _config_problem(reader, cls.Config, error, path)
            return []
        if not is_user_error(exception):
            raise
        reader.problem((*path, "params"), f"{doing}: {describe_error(exception)}")
        return []
    plain = {"weight": 1.0, "required": False, "negate": False}
    return [{"id": kind, "type": kind, "params": params, "check": check, "parts": [], **plain}]


def _config_problem(reader: FieldReader, config: Any, error: Any, place: Place) -> None:
    path = (*place, "params", *error["loc"])
    if error["type"] == "missing":
        reader.problem(path, "is missing")
    elif error["type"] != "extra_forbidden":
        message = error["msg"] or "is not valid"  # a validator's message may be empty
        reader.problem(path, f"{named(error['input'])}: {message[0].lower()}{message[1:]}")
    elif (model := _model_at(config, error["loc"][:-1])) is None:
        reader.problem(path, f"unknown field `{path[-1]}`")
    else:
        reader.unknown(path, tuple(name for names in _names(model).values() for name in names))


def _names(model: type[BaseModel]) -> dict[str, list[str]]:
    settings = model.model_config
    by_name = bool(settings.get("populate_by_name") or settings.get("validate_by_name"))
    names: dict[str, list[str]] = {}
    for name, field in model.model_fields.items():
        alias = field.validation_alias if settings.get("validate_by_alias", True) else None
        choices = alias.choices if isinstance(alias, AliasChoices) else [] if alias is None else [alias]
        aliases = [str(choice.path[0]) if isinstance(choice, AliasPath) else choice for choice in choices]
        names[name] = aliases + ([name] if (by_name or not aliases) and name not in aliases else [])
    return names


def _model_at(config: type[BaseModel], loc: Place) -> type[BaseModel] | None:
    annotation: Any = config
    for step in loc:
        if _is_model(annotation):
            annotation = next(
                (
                    annotation.model_fields[name].annotation
                    for name, names in _names(annotation).items()
                    if step in names
                ),
                None,
            )
        else:  # an item of a list, or a value of a mapping
            inner = {list: 0, dict: 1}.get(get_origin(annotation))
            annotation = None if inner is None else get_args(annotation)[inner]
        types = [kind for kind in get_args(annotation) if kind is not NoneType]
        annotation = types[0] if get_origin(annotation) in (Union, UnionType) and len(types) == 1 else annotation
    return annotation if _is_model(annotation) else None


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


Read = Callable[[FieldReader, str, Mapping[str, Any], Place], dict[str, Any] | None]
"""Takes the reader, the check's type, its fields and its place; returns fields of a ``CheckSpec``, or None if there are problems."""

SCORERS: tuple[type[Check], ...] = (GraderCheck, FunctionCheck, RowVerifierCheck, Included)
"""Classes of checks that have a type of their own, and that are read here."""


class ScorerReader(NamedTuple):
    """How a check that is no check type is read: what it runs, its own fields, who reads them, and whether ``goldOn`` goes with it."""

    name: str
    fields: tuple[str, ...]
    read: Read
    takes_golds: bool = False


def scorer_of(data: Mapping[str, Any], types: Mapping[str, Any]) -> ScorerReader | None:
    """Return how a check is read that runs no check type; None if it is a check type, a group, or unknown."""
    kind, name = data.get("kind"), data.get("type")
    if isinstance(kind, str) and name is None:
        return ScorerReader(kind, ("kind",), _class)
    if not isinstance(name, str):
        return None
    if name in types:
        return ScorerReader(name, *_BY_TYPE[types[name]]) if types[name] in _BY_TYPE else None
    if function(name) is not None:
        return ScorerReader(name, ("expected",), _function)
    from assay.rewards.declared import is_path

    return ScorerReader(name, (), _reward) if is_path(name) else None


def _grader(reader: FieldReader, type_name: str, fields: Mapping[str, Any], path: Place) -> dict[str, Any] | None:
    from assay.spec.graders import read_grader  # which imports all graders

    return read_grader(reader, type_name, fields, path)


def _named_function(
    reader: FieldReader, type_name: str, fields: Mapping[str, Any], path: Place
) -> dict[str, Any] | None:
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


def _function(reader: FieldReader, name: str, fields: Mapping[str, Any], path: Place) -> dict[str, Any] | None:
    params = reader.value(fields, path, "params", dict, {})
    resolved = {key: resolvable(reader, value, (*path, "params", key)) for key, value in params.items()}
    golds: list[Any] | None = None
    outline: dict[str, Any] = {"name": name}
    if fields.get("expected") is not None:
        expected = resolvable(reader, fields["expected"], (*path, "expected"))
        golds = as_list(expected)
        outline["expected"] = outline_of(expected)
        if not any(gold is not None for gold in golds):
            reader.problem((*path, "expected"), "the list has no expected value")
            return None
    if resolved:
        outline["params"] = {key: outline_of(value) for key, value in resolved.items()}
    note = likely_slip([fields.get("expected"), params])
    return {"name": name, "params": outline, "check": FunctionCheck(name, golds, resolved), "note": note}


def _row_verifier(reader: FieldReader, name: str, fields: Mapping[str, Any], path: Place) -> dict[str, Any] | None:
    given = {
        **reader.value(fields, path, "params", dict, {}),
        **{key: fields[key] for key in ("verifierName",) if key in fields},
    }
    known = reader.fields(given, path, ("verifierName",)) or {}
    default = reader.value(known, path, "verifierName", str, "")
    if default and function(default) is None:
        guess = did_you_mean(default, list_fns()) or f"Registered: {listed(list_fns())}."
        reader.problem((*path, "verifierName"), f"no verifier function is called {quoted(default)}. {guess}")
        return None
    check = RowVerifierCheck(RowVerifierParams(verifier_name=default))
    return {"name": name, "params": {"verifierName": default}, "check": check}


def _class(reader: FieldReader, kind: str, fields: Mapping[str, Any], path: Place) -> dict[str, Any] | None:
    if kind in (NATIVE, IN_PROCESS):
        of_row = f"`type: {ROW_VERIFIER}` runs the verifiers of the rows"
        message = of_row if kind == IN_PROCESS else "a check has a `type`; `kind` names a verifier class"
        reader.problem((*path, "kind"), message)
        return None
    read = by_class(reader, kind, fields, path)
    if not read:
        return None
    check = read[0]["check"]
    check.traits = replace(check.traits, extra="info/{verifier}/{check}")
    return {"name": kind, "params": read[0]["params"], "check": check, "outline": {"kind": kind}}


def _reward(reader: FieldReader, name: str, fields: Mapping[str, Any], path: Place) -> dict[str, Any] | None:
    from assay.rewards.check import RewardCheck
    from assay.rewards.declared import reward_named
    from assay.rewards.reward_function import reward_function

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


def _spec(reader: FieldReader, name: str, fields: Mapping[str, Any], path: Place) -> dict[str, Any] | None:
    for field in ("on", "extract", "notFound", "missingGold"):
        if fields.get(field) is not None:
            reader.problem((*path, field), f"`{field}` belongs to the checks of the other spec")
    if fields.get("checks") is not None:
        return reader.written_out(fields.get("params"), fields["checks"], path)
    given = {**reader.value(fields, path, "params", dict, {}), **({"path": fields["path"]} if "path" in fields else {})}
    file = (reader.fields(given, path, ("path",)) or {}).get("path")
    if not isinstance(file, str) or not file:
        reader.problem(path, f"`{name}` needs `path`, the file of the other spec")
        return None
    return reader.included(file, (*path, "path"))


_BY_TYPE: dict[Any, tuple[Any, ...]] = {
    GraderCheck: (OWN_FIELDS, _grader, True),
    FunctionCheck: (("name", "expected"), _named_function),
    RowVerifierCheck: (("verifierName",), _row_verifier),
    Included: (("path",), _spec),
}
