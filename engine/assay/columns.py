"""Which columns a run needs, and what to say when the rollouts do not have them."""

from collections.abc import Sequence

import polars as pl

from assay.errors import ColumnsError, closest, did_you_mean
from assay.lanes.base import HIDDEN
from assay.lanes.messages import completion_text_expr
from assay.rows import STRUCTURED
from assay.spec import Verifier

__all__ = ["COMPLETION", "check_columns", "needed_columns"]

COMPLETION = "completion"

_LIKELY = ("response", "output", "generation", "completions", "responses", "model_output", "generated_text", "text")
"""What other tools call the completion."""


def needed_columns(verifiers: Sequence[Verifier]) -> dict[str, list[str]]:
    """Columns that the checks read, each with the checks that name it; every check reads the completion."""
    needed: dict[str, list[str]] = {COMPLETION: []}
    for verifier in verifiers:
        for spec in verifier.runnable:
            for name in spec.check.reads if spec.check else ():
                needed.setdefault(name, []).append(f"{spec.type} ({verifier.id}/{spec.id})")
    return needed


def check_columns(verifiers: Sequence[Verifier], schema: pl.Schema, keep: Sequence[str] | None) -> None:
    """Find every problem with the columns before a row is read.

    Raises:
        ColumnsError: Columns are missing, have a type that no check can read, or are to be kept and are not there.
    """
    needed = needed_columns(verifiers)
    there = [name for name in schema if not name.startswith(HIDDEN)]
    missing = [name for name in needed if name not in schema]
    if missing:
        listed = "\n".join(f"  {name}: read by {', '.join(needed[name]) or 'every check'}" for name in missing)
        fact = f"The rollouts lack {len(missing)} column{'s' * (len(missing) > 1)}:\n{listed}"
        raise ColumnsError(f"{fact}\nThere are: {', '.join(there) or 'none'}.", _likely(missing, there))
    completion_text_expr(COMPLETION, schema[COMPLETION])
    for name in STRUCTURED:
        if name in needed and not isinstance(schema[name], pl.Struct | pl.String | pl.Null):
            fact = f"`{name}` has type {schema[name]}; it must be a struct or JSON text."
            raise ColumnsError(fact, f"Read by {', '.join(needed[name])}.")
    for name in keep or ():
        if name not in there:
            hint = did_you_mean(name, there) or f"There are: {', '.join(there)}."
            raise ColumnsError(f"--keep names `{name}`, which the rollouts lack.", hint)


def _likely(missing: Sequence[str], there: Sequence[str]) -> str:
    """What to do about missing columns: the likely names, one a line."""
    by_lower = {one.lower(): one for one in there}
    said = []
    for name in missing:
        known = next((by_lower[one] for one in _LIKELY if one in by_lower), None) if name == COMPLETION else None
        guess = known or closest(name, there)
        if guess:
            said.append(f"Did you mean `{guess}` for `{name}`? Rename it with --map {name}={guess}.")
    if not said:
        said.append("Rename a column with --map NAME=COLUMN.")
    if any(name != COMPLETION for name in missing):
        said.append("Join a task table with --tasks for what the rollouts do not carry.")
    return "\n".join(said)
