"""Dataclasses that are cheap to define."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform, overload

_Class = TypeVar("_Class", bound=type)


@overload
def frozen(cls: _Class) -> _Class: ...
@overload
def frozen(cls: None = None, *, eq: bool = True, repr: bool = True) -> Callable[[_Class], _Class]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: Any = None, *, eq: bool = True, repr: bool = True) -> Any:  # noqa: A002  (as dataclass calls it)
    """Make a class a dataclass that is hashable, and frozen to the type checker.

    ``dataclass(frozen=True)`` compiles the source text of six functions for each class: for eighty classes a sixth of a start. Here it
    is one, and equality, hash and representation are closures. The classes that users hold are frozen by ``dataclass``.
    """
    if cls is None:
        return partial(frozen, eq=eq, repr=repr)
    dataclass(eq=False, repr=False)(cls)
    methods: dict[str, Callable[..., Any]] = {}
    if eq:
        values = attrgetter("__class__", *(field.name for field in fields(cls) if field.compare))
        methods["__hash__"] = lambda self: hash(values(self))
        methods["__eq__"] = lambda self, other: (
            values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented
        )
    if repr:
        names = [field.name for field in fields(cls) if field.repr]
        methods["__repr__"] = lambda self: (
            f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"
        )
    for name, method in methods.items():
        if vars(cls).get(name) is None:  # a class that has its own equality has None for a hash
            setattr(cls, name, method)
    return cls
