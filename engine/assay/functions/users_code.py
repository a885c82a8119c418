"""Which code of users checks run, with hashes."""

from collections.abc import Iterable
from typing import Any

from assay.checks.base import Check, deciding_code
from assay.functions.check import FunctionCheck
from assay.functions.registry import Function, function
from assay.system.code_hash import described


def code_of_checks(checks: Iterable[Check | None]) -> list[dict[str, Any]]:
    """Describe the code of those checks that are not built in."""
    known = ((check, getattr(deciding_code(check), "__module__", "")) for check in checks if check is not None)
    return [code_of(check) for check, module in known if not str(module).startswith("assay.")]


def code_of(check: Check) -> dict[str, Any]:
    """Describe the code of a check that is not built in, with its hash."""
    if isinstance(check, FunctionCheck) and check.scorer is not None:
        return {"name": check.default, **_hashes(check.scorer)}
    return described(deciding_code(check))


def code_named(name: str) -> dict[str, Any]:
    """Return the name of a function that a row names, and the hashes of a user's."""
    fn = function(name)
    return {"name": name} if fn is None or fn.builtin else {"name": name, **_hashes(fn)}


def _hashes(fn: Function) -> dict[str, Any]:
    return described(fn.fn) | ({} if fn.expr is None else {"twin": described(fn.expr)})
