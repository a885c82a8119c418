"""From the fields of a spec to a verifier class: its config validated, its problems at their places."""

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Protocol, Union, get_args, get_origin

from pydantic import AliasChoices, AliasPath, BaseModel, ValidationError

from assay.calls.limits import own_failure
from assay.classes.check import ByClass
from assay.classes.registry import get_verifier
from assay.errors import said_by
from assay.names import IN_PROCESS
from assay.system.documents import Place, named

__all__ = ["by_class"]


class Reader(Protocol):
    """What is needed of a ``SpecReader``."""

    problems: list[str]

    def problem(self, path: Place, said: str) -> None: ...
    def unknown(self, path: Place, allowed: tuple[str, ...]) -> None: ...
    def value(self, fields: Mapping[str, Any], path: Place, name: str, kind: type, default: Any) -> Any: ...


def by_class(reader: Reader, kind: str, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The fields of the one ``CheckSpec`` that a verifier class makes; none when there are problems.

    Args:
        reader: Takes note of the problems.
        kind: Name of the class.
        fields: The spec's fields.
    """
    given = reader.value(fields, (), "params", dict, {})
    if kind == IN_PROCESS:
        said = f"a verifier of kind {IN_PROCESS} rides on the rows: score them without a spec, or with --verifier-name"
        reader.problem(("kind",), said)
    if reader.problems:  # a plug-in is loaded only for a spec that can be used
        return []
    try:
        cls: Any = get_verifier(kind)
    except ValueError as wrong:
        reader.problem(("kind",), str(wrong))
        return []
    config = _config(reader, cls, given)
    if config is None:
        return []
    try:
        check = ByClass(kind, cls(**dict(config)))
    except BaseException as wrong:  # a user's own class may raise anything
        if not own_failure(wrong):
            raise
        reader.problem(("params",), f"{cls.__qualname__} cannot be made: {said_by(wrong)}")
        return []
    try:
        params = config.model_dump(mode="json")
    except BaseException as wrong:  # a default or a validator's value may be any object
        if not own_failure(wrong):
            raise
        reader.problem(("params",), f"{cls.Config.__qualname__} cannot be written as JSON: {said_by(wrong)}")
        return []
    plain = {"weight": 1.0, "required": False, "negate": False}
    return [{"id": kind, "type": kind, "params": params, "check": check, **plain}]


def _config(reader: Reader, cls: Any, given: Any) -> BaseModel | None:
    """The params as the class's config; None when there are problems."""
    try:
        config: BaseModel = cls.Config.model_validate(given)
    except ValidationError as wrong:
        for error in wrong.errors():
            _config_problem(reader, cls.Config, error)
        return None
    except BaseException as wrong:  # a validator may raise more than pydantic catches
        if not own_failure(wrong):
            raise
        reader.problem(("params",), f"{cls.Config.__qualname__} cannot read them: {said_by(wrong)}")
        return None
    return config


def _config_problem(reader: Reader, config: Any, error: Any) -> None:
    """One of pydantic's errors, at its place in the spec."""
    path = ("params", *error["loc"])
    if error["type"] == "extra_forbidden":
        model = _model_at(config, error["loc"][:-1])
        if model is None:
            reader.problem(path, f"unknown field `{path[-1]}`")
        else:
            reader.unknown(path, tuple(name for names in _names(model).values() for name in names))
    elif error["type"] == "missing":
        reader.problem(path, "is missing")
    else:
        said = error["msg"] or "is refused"  # a validator's own words may be none
        reader.problem(path, f"{named(error['input'])}: {said[0].lower()}{said[1:]}")


def _names(model: type[BaseModel]) -> dict[str, list[str]]:
    """The names that a spec may use for each field of a config: aliases, and field names where the config takes them."""
    rules = model.model_config
    by_name = bool(rules.get("populate_by_name") or rules.get("validate_by_name"))
    named_by: dict[str, list[str]] = {}
    for name, field in model.model_fields.items():
        alias = field.validation_alias if rules.get("validate_by_alias", True) else None
        choices = alias.choices if isinstance(alias, AliasChoices) else [] if alias is None else [alias]
        aliases = [str(one.path[0]) if isinstance(one, AliasPath) else one for one in choices]
        named_by[name] = aliases + ([name] if (by_name or not aliases) and name not in aliases else [])
    return named_by


def _model_at(config: type[BaseModel], loc: Place) -> type[BaseModel] | None:
    """The model that stands at a place of a config; None where the annotations leave a choice, or hold no model."""
    at: Any = config
    for step in loc:
        if _is_model(at):
            at = next((at.model_fields[name].annotation for name, names in _names(at).items() if step in names), None)
        else:  # an item of a list, or a value of a mapping
            inner = {list: 0, dict: 1}.get(get_origin(at))
            at = None if inner is None else get_args(at)[inner]
        some = [one for one in get_args(at) if one is not NoneType]
        at = some[0] if get_origin(at) in (Union, UnionType) and len(some) == 1 else at
    return at if _is_model(at) else None


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
