"""Which columns a run needs, and what to say when the rollouts do not have them."""

from collections.abc import Mapping, Sequence

import polars as pl

from assay.errors import ColumnsError, InputError, closest, did_you_mean, listed
from assay.expressions.completion import completion_text_expr
from assay.expressions.lane import not_hidden
from assay.functions.registry import list_fns
from assay.names import COMPLETION, EXPECTED, FN_NAME, IN_PROCESS, VERIFIER
from assay.spec.verifier import VerifierSpec
from assay.values.column import STRUCTURED

__all__ = [
    "check_columns",
    "check_one_verifier",
    "consumed_columns",
    "doubted_rows",
    "needed_columns",
    "read_columns",
    "refused_rows",
]

_SHOWN = 5
_NAMED = 100
"""Columns that are to be kept and are not there: a guess takes a look at every column, and a line is short."""
_HOW_TO_NAME = (
    "Register yours first: --import MODULE, or assay.fns.register_fn.\n"
    "Name the function of rows that name none: --verifier-name FN, or verifier_name=."
)
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


def read_columns(verifiers: Sequence[VerifierSpec]) -> list[str]:
    """Columns that the checks read, and those they read where the rollouts have them."""
    may = (name for v in verifiers for spec in v.runnable if spec.check for name in spec.check.may_read)
    return list(dict.fromkeys([*needed_columns(verifiers), *may]))


def consumed_columns(verifiers: Sequence[VerifierSpec]) -> set[str]:
    """Columns that the checks read as text or structure, and that do not pass through."""
    checks = [spec.check for verifier in verifiers for spec in verifier.runnable if spec.check]
    return {COMPLETION} | {name for one in checks for name in (*one.reads, *one.may_read) if name not in one.stays}


def check_columns(verifiers: Sequence[VerifierSpec], schema: pl.Schema, keep: Sequence[str] | None) -> None:
    """Find every problem with the columns before a row is read.

    Raises:
        ColumnsError: Columns are missing, have a type that no check can read, or are to be kept and are not there.
    """
    needed = needed_columns(verifiers)
    there = not_hidden(schema)
    problems = _missing([name for name in needed if name not in schema], needed, there)
    if COMPLETION in schema:
        try:
            completion_text_expr(COMPLETION, schema[COMPLETION])
        except ColumnsError as wrong:
            problems.append((wrong.fact, wrong.hint))
    for name in STRUCTURED:
        if name in needed and name in schema and not isinstance(schema[name], pl.Struct | pl.String | pl.Null):
            fact = f"`{name}` has type {schema[name]}; it must be a struct or JSON text."
            problems.append((fact, f"`{name}` is read by {', '.join(needed[name])}."))
    checks = [spec.check for verifier in verifiers for spec in verifier.runnable if spec.check]
    problems += [problem for check in checks for problem in check.column_problems(schema)]
    problems += _not_kept([*dict.fromkeys(keep or ())], there)
    if problems:
        raise ColumnsError(
            "\n".join(fact for fact, _ in problems), "\n".join(dict.fromkeys(hint for _, hint in problems if hint))
        )


def _not_kept(keep: Sequence[str], there: Sequence[str]) -> list[tuple[str, str]]:
    """Columns that are to be kept and are not there: a guess for each of the first, and how many more there are."""
    known = set(there)
    lacking = [name for name in keep if name not in known]
    guessed = {name: did_you_mean(name, there) or f"There are: {listed(there)}." for name in lacking[:_SHOWN]}
    problems = [
        (f"--keep names `{name}`, which the rollouts lack.", guessed.get(name, "")) for name in lacking[:_NAMED]
    ]
    more = len(lacking) - _NAMED
    return [*problems, (f"… and {more:,} other{'s' * (more > 1)}", "")] if more > 0 else problems


def _missing(
    missing: Sequence[str], needed: Mapping[str, Sequence[str]], there: Sequence[str]
) -> list[tuple[str, str]]:
    if not missing:
        return []
    readers = "\n".join(f"  {name}: read by {', '.join(needed[name]) or 'every check'}" for name in missing)
    fact = f"The rollouts lack {len(missing)} column{'s' * (len(missing) > 1)}:\n{readers}"
    return [(f"{fact}\nThere are: {listed(there)}.", _likely(missing, there))]


def refused_rows(found: Sequence[tuple[str, int, int]]) -> InputError:
    """What to say of rows whose verifier cannot be used.

    Args:
        found: Why, the first such row (from 0), and how many there are.
    """
    lines = [f"  {line}" for line in _rows_named(found, "problems")]
    rows = sum(rows for _, _, rows in found)
    fact = (
        f"{rows:,} row{'s carry verifiers' if rows > 1 else ' carries a verifier'} that cannot be used:\n"
        + "\n".join(lines)
    )
    known = list_fns()
    guesses = (did_you_mean(why.split('"')[1], known) if '"' in why else "" for why, _, _ in found[:_SHOWN])
    hints = [*dict.fromkeys(filter(None, guesses)), f"Registered functions: {', '.join(known)}."]
    return InputError(fact, "\n".join([*hints, _HOW_TO_NAME]))


def check_one_verifier(verifiers: Sequence[VerifierSpec], rollouts: pl.Schema, tasks: pl.Schema) -> None:
    """Find rows and tasks that name their verifiers in two ways, of which only one would be read.

    Raises:
        ColumnsError: The rollouts have a ``verifier``, and the tasks the parts of one.
    """
    parts = [name for name in (FN_NAME, EXPECTED) if name in tasks]
    if any(one.kind == IN_PROCESS for one in verifiers) and VERIFIER in rollouts and VERIFIER not in tasks and parts:
        fact = f"The rollouts have a column `{VERIFIER}`, and the task table has {' and '.join(f'`{name}`' for name in parts)}."
        raise ColumnsError(
            fact, "Only one can hold: drop or rename the other, or give the tasks a `verifier` of their own."
        )


def doubted_rows(found: Sequence[tuple[str, int, int]]) -> list[str]:
    """What to say of rows that can be scored and may not say what their author meant; arguments as in ``refused_rows``."""
    return _rows_named(found, "doubts")


def _rows_named(found: Sequence[tuple[str, int, int]], of_what: str) -> list[str]:
    said = [f"row {row}{f' and {rows - 1:,} more' if rows > 1 else ''}: {why}" for why, row, rows in found[:_SHOWN]]
    return [*said, f"… and {len(found) - _SHOWN:,} other {of_what}"] if len(found) > _SHOWN else said


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
