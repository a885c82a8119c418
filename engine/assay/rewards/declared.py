"""What a reward function declares about itself, ``@assay.reward``, and how specs name it: ``module:name`` or ``file.py:name``.

A spec never causes an import. It may name a function if the user named its module or its file (``--import``), or if its author
declared it with ``@assay.reward`` in a module that is imported already.
"""

import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, overload

from assay.errors import did_you_mean
from assay.frozen import frozen

_NAME = "__assay_reward__"
_F = TypeVar("_F", bound=Callable[..., Any])
_PATH = re.compile(r"(?:[^\W\d]\w*(?:\.[^\W\d]\w*)*|(?:[\w.-]+/)*\w+\.py):[^\W\d]\w*")
_ALLOWED: set[str] = set()
_FILES: dict[Path, str] = {}
"""The modules of files that the user has named."""


@frozen
class Declared:
    """What ``@assay.reward`` declares."""

    batched: bool = False  # takes lists, of any rollouts, and returns a list
    metrics: tuple[str, ...] = ()  # in the mappings that it returns


@overload
def reward(func: _F) -> _F: ...


@overload
def reward(*, batched: bool = False, metrics: Sequence[str] = ()) -> Callable[[_F], _F]: ...


def reward(func: Any = None, *, batched: bool = False, metrics: Sequence[str] = ()) -> Any:
    """Declare how a reward function is called and what it returns; the function stays as it is.

        @assay.reward(metrics=["words"])
        def short(completion):
            words = len(completion.split())
            return {"score": float(words < 50), "reason": f"{words} words", "words": words}

    Args:
        func: The function.
        batched: It takes lists, as TRL calls it: ``prompts``, ``completions`` and columns by their names; and returns a list with a
            number, ``(number, reason)``, a mapping, or None (it does not apply) for each rollout. A batch has any rollouts, and no
            rollout's reward may depend on the others.
        metrics: Names of the metrics in its mappings; each becomes a member of weight 0, in ``score/<function>/<metric>``.

    Raises:
        TypeError: ``metrics`` is not a list of names, or the function takes no attributes.
        ValueError: A name cannot be that of a metric.
    """
    if isinstance(metrics, str):
        raise TypeError(f"metrics is a list of names: metrics=[{metrics!r}]")
    names = tuple(dict.fromkeys(metrics))
    for name in names:
        is_name = isinstance(name, str) and name and name.isprintable()
        if not is_name or "/" in name or name in ("score", "reason"):
            raise ValueError(f"{name!r} cannot be the name of a metric.")
    what = Declared(batched, names)
    return partial(_declare, what) if func is None else _declare(what, func)


def _declare(what: Declared, func: Any) -> Any:
    if not callable(func):
        raise TypeError(f"a reward function must be callable, got {type(func).__name__}: {func!r}")
    try:
        setattr(func, _NAME, what)
    except AttributeError:
        raise TypeError(f"{func!r} takes no attributes; wrap it in a function") from None
    return func


def declared(func: Any) -> Declared:
    """Return what a function declares; for a ``functools.partial``, what its function does."""
    return _declaration(func) or Declared()


def is_declared(func: Any) -> bool:
    """Return whether a function is declared with ``@assay.reward``."""
    return callable(func) and _declaration(func) is not None


def innermost(func: Any) -> Any:
    """Return the function of nested ``functools.partial``."""
    while isinstance(func, partial):
        func = func.func
    return func


def _declaration(func: Any) -> Declared | None:
    what = getattr(innermost(func), _NAME, None)
    return what if isinstance(what, Declared) else None


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
