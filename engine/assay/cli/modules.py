"""Modules, rubrics and check classes of the user, which only the command line names; never a spec or a row."""

import importlib
import inspect
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import AssayError, AssayWarning, UsageError, describe_error, did_you_mean, shown_path

if TYPE_CHECKING:
    from assay.checks.base import Check
    from assay.rubrics.rubric import Rubric


def import_modules(modules: Sequence[str] | None) -> list[str]:
    """Import modules, which may be in the current folder, and files that end in ``.py``; return the names of the modules."""
    return [_module(name, f"--import {name}").__name__ for name in modules or ()]


def import_rubric(path: str) -> "Rubric":
    """Import ``module:attribute`` or ``file.py:attribute``: a rubric, an environment with one, or a reward function."""
    from assay.rubrics.rubric import Rubric

    value = _attribute(path, "--rubric", "my_rewards.py:reward")
    rubric = getattr(value, "rubric", value)  # of an environment
    if inspect.isfunction(rubric):
        return Rubric([rubric])
    if not isinstance(rubric, Rubric):
        from assay.calls.places import defined_at

        place = defined_at(rubric)
        raise UsageError(
            f"--rubric {path}: is {type(rubric).__name__}, not an assay.Rubric.{f'{chr(10)}  {place}' if place else ''}",
            "Name a rubric or a reward function that is defined at the top level of the module.",
        )
    file, _, attribute = path.rpartition(":")
    rubric.origin = f"{Path(file).stem if file.endswith('.py') else file}:{attribute}"
    return rubric


def import_checks(paths: Sequence[str] | None) -> "list[type[Check]]":
    """Import check classes, ``module:class``; the modules may be in the current folder."""
    if not paths:
        return []
    from assay.spec.check_classes import check_class

    return [check_class(_attribute(path, "--checks", "my_checks:Polite"), f"--checks {path}") for path in paths]


def checks_named(paths: Sequence[str] | None) -> "list[type[Check]]":
    """Return the check classes that the command line names, and those of installed packages; warn of those that cannot be used."""
    from assay.spec.check_classes import plugin_checks

    plugins, problems = plugin_checks()
    for problem in problems:
        warnings.warn(problem, AssayWarning, stacklevel=2)
    return list(dict.fromkeys([*import_checks(paths), *plugins]))


def _attribute(path: str, option: str, example: str) -> Any:
    module, colon, attribute = path.rpartition(":")
    if not (module and colon and attribute):
        raise UsageError(f"{option} {path}: expected module:attribute.", f"For example {option} {example}")
    value = _module(module, f"{option} {path}")
    for name in attribute.split("."):
        if not hasattr(value, name):
            hint = did_you_mean(name, [public for public in vars(value) if not public.startswith("_")])
            file = getattr(value, "__file__", None)
            raise UsageError(
                f"{option} {path}: {module}{f' ({shown_path(file)})' if file else ''} has no `{name}`.", hint
            )
        value = getattr(value, name)
    return value


def _module(name: str, option: str) -> Any:
    from assay.rewards.declared import allow

    if not name.endswith(".py"):
        sys.path.insert(0, str(Path.cwd()))  # as `python -m` does
        module = _imported(name, option)
        allow(name)
        return module
    file = Path(name).resolve()
    if not file.is_file():
        raise UsageError(f"{option}: {shown_path(name)}: no such file.")
    if not file.stem.isidentifier():
        raise UsageError(f"{option}: {file.stem} cannot be the name of a module.", "Rename the file.")
    sys.path.insert(0, str(file.parent))
    importlib.invalidate_caches()
    module = _imported(file.stem, option)
    if Path(getattr(module, "__file__", None) or "").resolve() != file:
        raise UsageError(f"{option}: another module is called {file.stem}.", "Rename the file.")
    allow(file.stem, file)
    return module


def _imported(name: str, option: str) -> Any:
    try:
        return importlib.import_module(name)
    except BaseException as error:  # a module may raise anything
        from assay.calls.limits import is_user_error
        from assay.calls.places import raised_at

        if not is_user_error(error):
            raise
        fact, hint = (error.fact, error.hint) if isinstance(error, AssayError) else (describe_error(error), "")
        place = raised_at(error)
        raise UsageError(f"{option}: {fact}{f'{chr(10)}  {place}' if place else ''}", hint) from None
