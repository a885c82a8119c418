"""Users' check classes: by ``module:class``, and from packages that offer them through the entry-point group ``assay.checks``.

A plug-in's name is the ``type`` of its class; it is loaded only when a spec uses that type.
"""

import sys
from collections.abc import Collection, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from assay.calls.limits import is_user_error
from assay.checks.base import Check
from assay.errors import SpecError, describe_error

GROUP = "assay.checks"
"""Entry-point group of plug-ins."""


def check_class(value: Any, place: str) -> type[Check]:
    """Return a value as a check class."""
    if not (isinstance(value, type) and issubclass(value, Check)):
        kind = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
        raise SpecError(f"{place}: is {kind}, not a subclass of assay.Check.", "Derive it: class Mine(assay.Check)")
    if not isinstance(getattr(value, "type", None), str):
        raise SpecError(
            f"{place}: {value.__name__} has no `type`, the name for use in specs.", 'Add one: type = "mine"'
        )
    return value


def types_named(data: Any) -> Iterator[str]:
    """Yield every ``type`` that a document names, at any depth."""
    if isinstance(data, Mapping):
        if isinstance(name := data.get("type"), str):
            yield name
        for value in data.values():
            yield from types_named(value)
    elif isinstance(data, list):
        for value in data:
            yield from types_named(value)


def plugins_of(data: Any, known: Mapping[str, type[Check]], *, load: bool = True) -> dict[str, type[Check]]:
    """Return the plug-ins for the types that a document names and that are not known, by every name of theirs."""
    names = dict.fromkeys(name for name in types_named(data) if name not in known)
    points = [point for point in entry_points(group=GROUP) if load or point.module in sys.modules] if names else []
    loaded = [_only(name, [point for point in points if point.name == name]) for name in names]
    return {
        name: check for check in loaded if check for name in (check.type, *check.traits.aliases) if name not in known
    }


def plugins_to_import(data: Any, known: Collection[str]) -> dict[str, str]:
    """Return the modules of plug-ins that a document names and that are not imported, by the type."""
    names = {*types_named(data)} - {*known}
    points = entry_points(group=GROUP) if names else ()
    return {point.name: point.module for point in points if point.name in names and point.module not in sys.modules}


def plugin_checks() -> tuple[list[type[Check]], list[str]]:
    """Load all plug-ins, for listings."""
    points = list(entry_points(group=GROUP))
    checks, problems = [], []
    for name in sorted({point.name for point in points}):
        try:
            checks.append(_only(name, [point for point in points if point.name == name]))
        except SpecError as error:
            problems.append(error.fact)
    return [check for check in checks if check is not None], problems


def _only(name: str, points: list[EntryPoint]) -> type[Check] | None:
    if len(points) > 1:
        raise SpecError(f'Several plug-ins provide the check type "{name}": {"; ".join(map(_shown, points))}.')
    return _load(points[0]) if points else None


def _load(point: EntryPoint) -> type[Check]:
    try:
        loaded = point.load()
    except BaseException as error:  # a module may raise anything
        if not is_user_error(error):
            raise
        raise SpecError(f"The plug-in {_shown(point)} cannot be loaded: {describe_error(error)}") from error
    check = check_class(loaded, f"The plug-in {_shown(point)}")
    if check.type != point.name:
        fact = f'The plug-in {_shown(point)}: the type of {check.__name__} is "{check.type}".'
        raise SpecError(fact, f"Name the entry point `{check.type}`.")
    return check


def _shown(point: EntryPoint) -> str:
    dist = f" of {point.dist.name} {point.dist.version}" if point.dist is not None else ""
    return f"{point.name} = {point.value}{dist}"
