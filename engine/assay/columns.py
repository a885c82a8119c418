"""Which columns a run needs, and what to say when the rollouts do not have them."""

from collections.abc import Sequence

import polars as pl

from assay.cells import STRUCTURED
from assay.errors import ColumnsError, closest, did_you_mean
from assay.lanes.base import HIDDEN
from assay.lanes.messages import completion_text_expr
from assay.spec import VerifierSpec

__all__ = ["COMPLETION", "check_columns", "needed_columns"]

COMPLETION = "completion"

_LIKELY = ("response", "output", "generation", "completions", "responses", "model_output", "generated_text", "text")
"""What other tools call the completion."""


def needed_columns(verifiers: Sequence[VerifierSpec]) -> dict[str, list[str]]:
    """Columns that the checks read, each with the checks that name it; every check reads the completion."""
    needed: dict[str, list[str]] = {COMPLETION: []}
    for verifier in verifiers:
        for spec in verifier.runnable:
            for name in spec.check.reads if spec.check else ():
                needed.setdefault(name, []).append(f"{spec.type} ({verifier.id}/{spec.id})")
    return needed


def check_columns(verifiers: Sequence[VerifierSpec], schema: pl.Schema, keep: Sequence[str] | None) -> None:
    """Find every problem with the columns before a row is read.

    Raises:
        ColumnsError: Columns are missing, have a type that no check can read, or are to be kept and are not there.
    """
    needed = needed_columns(verifiers)
    there = [name for name in schema if not name.startswith(HIDDEN)]
    missing = [name for name in needed if name not in schema]
    facts, hints = [], []
    if missing:
        listed = "\n".join(f"  {name}: read by {', '.join(needed[name]) or 'every check'}" for name in missing)
        facts.append(f"The rollouts lack {len(missing)} column{'s' * (len(missing) > 1)}:\n{listed}")
        facts.append(f"There are: {', '.join(there) or 'none'}.")
        hints.append(_likely(missing, there))
    if COMPLETION in schema:
        try:
            completion_text_expr(COMPLETION, schema[COMPLETION])
        except ColumnsError as wrong:
            facts.append(wrong.fact)
            hints.append(wrong.hint)
    for name in STRUCTURED:
        if name in needed and name in schema and not isinstance(schema[name], pl.Struct | pl.String | pl.Null):
            facts.append(f"`{name}` has type {schema[name]}; it must be a struct or JSON text.")
            hints.append(f"`{name}` is read by {', '.join(needed[name])}.")
    for name in keep or ():
        if name not in there:
            facts.append(f"--keep names `{name}`, which the rollouts lack.")
            hints.append(did_you_mean(name, there) or f"There are: {', '.join(there)}.")
    if facts:
        raise ColumnsError("\n".join(facts), "\n".join(hints))


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
