"""Which columns a run needs, and the errors if the rollouts lack them."""

from collections.abc import Container, Mapping, Sequence

import polars as pl

from assay.checks.base import Check, RunCheck
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
"""Missing columns to keep that a message names."""
_HOW_TO_NAME = (
    "Register your own function first: --import MODULE, or assay.fns.register_fn.\n"
    "For rows that name no function, set a default: --verifier-name FN, or verifier_name=."
)
_LIKELY = ("response", "output", "generation", "completions", "responses", "model_output", "generated_text", "text")
"""Names that other tools give the completion."""


def needed_columns(verifiers: Sequence[VerifierSpec]) -> dict[str, list[str]]:
    """Return the columns that the checks require, each with those checks; every check reads the completion."""
    needed: dict[str, list[str]] = {COMPLETION: []}
    for verifier in verifiers:
        for spec in verifier.nodes:
            for name in spec.check.reads if spec.check else ():
                needed.setdefault(name, []).append(f"{spec.type} ({verifier.id}/{spec.id})")
    return needed


def read_columns(verifiers: Sequence[VerifierSpec], present: Container[str] = ()) -> list[str]:
    """Return the columns that the checks require, and the optional ones.

    Args:
        verifiers: The verifiers.
        present: Columns that there are; optional columns that checks do not read beside them are left out.
    """
    checks = [spec.check for verifier in verifiers for spec in verifier.nodes if spec.check]
    optional = (name for check in checks for name in check.may_read if not _is_spared(check, name, present))
    return list(dict.fromkeys([*needed_columns(verifiers), *optional]))


def _is_spared(check: Check, name: str, present: Container[str]) -> bool:
    return isinstance(check, RunCheck) and any(other in present for other in check.spared.get(name, ()))


def consumed_columns(verifiers: Sequence[VerifierSpec]) -> set[str]:
    """Return the columns that the checks read as text or structure, which do not pass through."""
    checks = [spec.check for verifier in verifiers for spec in verifier.nodes if spec.check]
    return {COMPLETION} | {
        name for check in checks for name in (*check.reads, *check.may_read) if name not in check.stays
    }


def check_columns(verifiers: Sequence[VerifierSpec], schema: pl.Schema, keep: Sequence[str] | None) -> None:
    """Check the columns before a row is read.

    Raises:
        ColumnsError: Columns are missing, have a type that no check can read, or are named by ``--keep`` but do not exist; the
            message lists all of them.
    """
    needed = needed_columns(verifiers)
    columns = not_hidden(schema)
    problems = _missing([name for name in needed if name not in schema], needed, columns)
    if COMPLETION in schema:
        try:
            completion_text_expr(COMPLETION, schema[COMPLETION])
        except ColumnsError as error:
            problems.append((error.fact, error.hint))
    for name in STRUCTURED:
        if name in needed and name in schema and not isinstance(schema[name], pl.Struct | pl.String | pl.Null):
            fact = f"`{name}` has type {schema[name]}; it must be a struct or JSON text."
            problems.append((fact, f"`{name}` is read by {', '.join(needed[name])}."))
    checks = [spec.check for verifier in verifiers for spec in verifier.nodes if spec.check]
    problems += [problem for check in checks for problem in check.column_problems(schema)]
    problems += _not_kept([*dict.fromkeys(keep or ())], columns)
    if problems:
        raise ColumnsError(
            "\n".join(fact for fact, _ in problems), "\n".join(dict.fromkeys(hint for _, hint in problems if hint))
        )


def _not_kept(keep: Sequence[str], columns: Sequence[str]) -> list[tuple[str, str]]:
    """Return a problem for each of the columns to keep that the rollouts lack: a guess for the first, a count of the last."""
    known = set(columns)
    lacking = [name for name in keep if name not in known]
    guessed = {name: did_you_mean(name, columns) or f"Columns: {listed(columns)}." for name in lacking[:_SHOWN]}
    problems = [(f"--keep: the rollouts have no column `{name}`.", guessed.get(name, "")) for name in lacking[:_NAMED]]
    more = len(lacking) - _NAMED
    return [*problems, (f"… and {more:,} other{'s' * (more > 1)}", "")] if more > 0 else problems


def _missing(
    missing: Sequence[str], needed: Mapping[str, Sequence[str]], columns: Sequence[str]
) -> list[tuple[str, str]]:
    if not missing:
        return []
    readers = "\n".join(f"  {name}: read by {', '.join(needed[name]) or 'every check'}" for name in missing)
    fact = f"The rollouts lack {len(missing)} column{'s' * (len(missing) > 1)}:\n{readers}"
    return [(f"{fact}\nColumns: {listed(columns)}.", _likely(missing, columns))]


def refused_rows(problems: Sequence[tuple[str, int, int]]) -> InputError:
    """Return the error for rows whose verifier cannot be used.

    Args:
        problems: Each problem, its first row (from 0), and the number of its rows.
    """
    lines = [f"  {line}" for line in _rows_named(problems, "problem")]
    rows = sum(rows for _, _, rows in problems)
    fact = (
        f"{rows:,} row{'s carry verifiers' if rows > 1 else ' carries a verifier'} that cannot be used:\n"
        + "\n".join(lines)
    )
    names = list_fns()
    guesses = (
        did_you_mean(problem.split('"')[1], names) if '"' in problem else "" for problem, _, _ in problems[:_SHOWN]
    )
    hints = [*dict.fromkeys(filter(None, guesses)), f"Registered functions: {', '.join(names)}."]
    return InputError(fact, "\n".join([*hints, _HOW_TO_NAME]))


def check_one_verifier(verifiers: Sequence[VerifierSpec], rollouts: pl.Schema, tasks: pl.Schema) -> None:
    """Reject rollouts and tasks that both name verifiers, in two forms of which only one would be read.

    Raises:
        ColumnsError: The rollouts have a ``verifier``, and the tasks have its parts.
    """
    parts = [name for name in (FN_NAME, EXPECTED) if name in tasks]
    if (
        any(verifier.kind == IN_PROCESS for verifier in verifiers)
        and VERIFIER in rollouts
        and VERIFIER not in tasks
        and parts
    ):
        fact = f"The rollouts have a column `{VERIFIER}`, and the task table has {' and '.join(f'`{name}`' for name in parts)}."
        raise ColumnsError(
            fact, "Only one of them can be used: drop or rename the other, or give the tasks a `verifier` column."
        )


def doubted_rows(doubts: Sequence[tuple[str, int, int]]) -> list[str]:
    """Return warnings about rows that can be scored but probably contain a mistake; arguments as in ``refused_rows``."""
    return _rows_named(doubts, "warning")


def _rows_named(problems: Sequence[tuple[str, int, int]], noun: str) -> list[str]:
    lines = [
        f"row {row}{f' and {rows - 1:,} more' if rows > 1 else ''}: {problem}"
        for problem, row, rows in problems[:_SHOWN]
    ]
    rest = len(problems) - _SHOWN
    return [*lines, f"… and {rest:,} other {noun}{'s' * (rest > 1)}"] if rest > 0 else lines


def _likely(missing: Sequence[str], columns: Sequence[str]) -> str:
    """Return hints for missing columns, one per line: the likely names."""
    by_lower = {column.lower(): column for column in columns}
    hints = []
    for name in missing:
        candidate = (
            next((by_lower[column] for column in _LIKELY if column in by_lower), None) if name == COMPLETION else None
        )
        guess = candidate or closest(name, columns)
        if guess:
            hints.append(f"Did you mean `{guess}` for `{name}`? Rename it with --map {name}={guess}.")
    if not hints:
        hints.append("Rename a column with --map NAME=COLUMN.")
    if any(name != COMPLETION for name in missing):
        hints.append("Join a task table with --tasks for columns that the rollouts lack.")
    return "\n".join(hints)
