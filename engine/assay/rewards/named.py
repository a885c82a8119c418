"""Reward functions that specs may name: ``module:name`` or ``file.py:name``.

A spec never causes an import. It may name a function if the user named its module or its file (``--import``), or if its author
declared it with ``@assay.reward`` in a module that is imported already.
"""

import re
import sys
from pathlib import Path
from typing import Any

from assay.errors import did_you_mean
from assay.rewards.declared import innermost, is_declared

_PATH = re.compile(r"(?:[^\W\d]\w*(?:\.[^\W\d]\w*)*|(?:[\w.-]+/)*\w+\.py):[^\W\d]\w*")
_ALLOWED: set[str] = set()
_FILES: dict[Path, str] = {}
"""The modules of files that the user has named."""


def is_path(name: str) -> bool:
    """Return whether a check's type has the form ``module:name`` or ``file.py:name``."""
    return _PATH.fullmatch(name) is not None


def allow(module: str, file: Path | None = None) -> None:
    """Let specs name the functions of a module, which the user has named; by its file, if that is what the user has named."""
    _ALLOWED.add(module)
    if file is not None:
        _FILES[file] = module


def reward_named(path: str) -> Any:
    """Return the function that a spec names, ``module:name`` or ``file.py:name``; the message of a ValueError says what to do."""
    module, _, name = path.partition(":")
    module = _module_of(module) if module.endswith(".py") else module
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
        home = getattr(innermost(func), "__module__", None)
        raise ValueError(f"{module} only imports `{name}`: name it where it is defined, {home}:{name}")
    return func


def _module_of(file: str) -> str:
    parts = tuple(part for part in file.split("/") if part != ".")
    modules = {module for path, module in _FILES.items() if path.parts[-len(parts) :] == parts}
    if len(modules) != 1:
        several = "several files of that name were imported" if modules else f"{file} was not imported for it"
        raise ValueError(f"a spec imports nothing, and {several}. If it is yours, name it: --import {file}")
    return modules.pop()


def _is_own(func: Any, module: str) -> bool:
    return callable(func) and getattr(innermost(func), "__module__", None) == module
