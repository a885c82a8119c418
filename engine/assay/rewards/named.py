"""Reward functions that specs may name: ``module:name``.

A spec never causes an import. It may name a function if the user named its module (``--import``), or if its author declared it with
``@assay.reward`` in a module that is imported already.
"""

import re
import sys
from collections.abc import Iterable
from functools import partial
from typing import Any

from assay.errors import did_you_mean
from assay.rewards.declared import is_declared

__all__ = ["allow", "is_path", "reward_named"]

_PATH = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*")
_ALLOWED: set[str] = set()


def is_path(name: str) -> bool:
    """Return whether a check's type has the form ``module:name``."""
    return _PATH.fullmatch(name) is not None


def allow(modules: Iterable[str]) -> None:
    """Let specs name the functions of modules, which the user has named."""
    _ALLOWED.update(modules)


def reward_named(path: str) -> Any:
    """Return the function that a spec names.

    Args:
        path: ``module:name``.

    Raises:
        ValueError: There is none, or a spec must not name it; the message says what to do.
    """
    module, _, name = path.partition(":")
    # NOTE: not getattr, because a module's own __getattr__ may import others
    functions = getattr(sys.modules.get(module), "__dict__", {})
    func: Any = functions.get(name)
    if module not in _ALLOWED and not is_declared(func):
        how = f"If it is yours, name it: --import {module}. In Python, import it and declare the function with @assay.reward."
        raise ValueError(f"a spec imports nothing, and the module {module} was not imported for it. {how}")
    if func is None or name.startswith("_"):
        public = [key for key, value in functions.items() if _is_own(value, module) and not key.startswith("_")]
        raise ValueError(f"{module} has no reward function `{name}`. {did_you_mean(name, public)}".strip())
    if not callable(func) or isinstance(func, type):
        kind = "a class" if isinstance(func, type) else type(func).__name__
        raise ValueError(f"{path} is {kind}, not a function")
    if not (_is_own(func, module) or is_declared(func)):
        home = getattr(_innermost(func), "__module__", None)
        raise ValueError(f"{module} only imports `{name}`: name it where it is defined, {home}:{name}")
    return func


def _is_own(func: Any, module: str) -> bool:
    """Return whether a function is defined in a module, so that what the module imports is not offered to specs."""
    return callable(func) and getattr(_innermost(func), "__module__", None) == module


def _innermost(func: Any) -> Any:
    while isinstance(func, partial):
        func = func.func
    return func
