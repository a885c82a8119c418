"""Build a verifier class from a spec: validate its config and report problems with their places."""

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import AliasChoices, AliasPath, BaseModel, ValidationError

from assay.calls.limits import own_failure
from assay.classes.check import ByClass
from assay.classes.registry import get_verifier
from assay.errors import said_by
from assay.names import IN_PROCESS
from assay.spec.check import Reader
from assay.system.documents import Place, named


def by_class(reader: Reader, kind: str, fields: Mapping[str, Any], path: Place = ()) -> list[dict[str, Any]]:
    """Return the fields of the single ``CheckSpec`` of a verifier class; an empty list if there are problems."""
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
    config = _config(reader, cls, params_given, path)
    if config is None:
        return []
    try:
        check = ByClass(kind, cls(**dict(config)))
    except BaseException as exception:  # a user's class may raise anything
        if not own_failure(exception):
            raise
        reader.problem((*path, "params"), f"{cls.__qualname__} cannot be created: {said_by(exception)}")
        return []
    try:
        params = config.model_dump(mode="json")
    except BaseException as exception:  # a default or a validator's value may be any object
        if not own_failure(exception):
            raise
        reader.problem((*path, "params"), f"{cls.Config.__qualname__} cannot be written as JSON: {said_by(exception)}")
        return []
    plain = {"weight": 1.0, "required": False, "negate": False}
    return [{"id": kind, "type": kind, "params": params, "check": check, "parts": [], **plain}]


def _config(reader: Reader, cls: Any, params: Any, path: Place) -> BaseModel | None:
    """Validate the params as the class's config; None if there are problems."""
    try:
        config: BaseModel = cls.Config.model_validate(params)
    except ValidationError as exception:
        for error in exception.errors():
            _config_problem(reader, cls.Config, error, path)
        return None
    except BaseException as exception:  # a validator may raise more than pydantic catches
        if not own_failure(exception):
            raise
        reader.problem((*path, "params"), f"{cls.Config.__qualname__} cannot read the params: {said_by(exception)}")
        return None
    return config


def _config_problem(reader: Reader, config: Any, error: Any, place: Place) -> None:
    path = (*place, "params", *error["loc"])
    if error["type"] == "extra_forbidden":
        model = _model_at(config, error["loc"][:-1])
        if model is None:
            reader.problem(path, f"unknown field `{path[-1]}`")
        else:
            reader.unknown(path, tuple(name for names in _names(model).values() for name in names))
    elif error["type"] == "missing":
        reader.problem(path, "is missing")
    else:
        message = error["msg"] or "is not valid"  # a validator's message may be empty
        reader.problem(path, f"{named(error['input'])}: {message[0].lower()}{message[1:]}")


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
    """Return the model at a place of a config; None if the annotations allow several types or contain no model."""
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
