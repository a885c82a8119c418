"""The API reference shows functions as ``help()`` does: with their options, which are described once and added as the package is imported."""

import importlib
import inspect
import re
from typing import Any

import griffe

__all__ = ["Options"]


class Options(griffe.Extension):
    """Give functions that have a signature of their own its parameters and their docstring as it is when they are imported."""

    def on_function_instance(self, *, func: griffe.Function, **_: Any) -> None:
        """Read a function from the source."""
        try:
            place = importlib.import_module(func.module.path)
            for name in func.path.removeprefix(f"{func.module.path}.").split("."):
                place = getattr(place, name)
        except (ImportError, AttributeError):
            return
        if not hasattr(place, "__signature__") or func.docstring is None:
            return
        func.docstring.value = inspect.getdoc(place) or ""
        func.parameters = griffe.Parameters(*map(_parameter, inspect.signature(place).parameters.values()))


def _parameter(given: inspect.Parameter) -> griffe.Parameter:
    absent = inspect.Parameter.empty
    return griffe.Parameter(
        given.name,
        annotation=None if given.annotation is absent else _short(inspect.formatannotation(given.annotation)),
        kind=griffe.ParameterKind(given.kind.description),
        default=None if given.default is absent else repr(given.default),
    )


def _short(annotation: str) -> str:
    """A type without the modules that its names are from."""
    return re.sub(r"\b(?:\w+\.)+(?=[A-Z])", "", annotation)
