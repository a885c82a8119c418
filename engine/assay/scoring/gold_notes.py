"""A look at the first rows: golds with which a check can do something, but hardly what was meant."""

from collections.abc import Iterator, Sequence

import polars as pl

from assay.checks.base import is_ours
from assay.checks.gold_faults import READS_ANSWER
from assay.checks.golds import GoldCheck
from assay.compiling.requirements import referred_columns
from assay.expressions.lane import exactly
from assay.expressions.mixed import untyped
from assay.loading.formats.files import ENGINE_ERRORS
from assay.loading.rollouts import Rollouts
from assay.spec.verifier import VerifierSpec

_FIRST = 20
"""Rows that are looked at."""


def gold_notes(source: Rollouts, verifiers: Sequence[VerifierSpec]) -> tuple[str, ...]:
    """Return a note for each check whose golds are whole solutions with the answer behind ``####``, as in GSM8K."""
    checks = dict(_checks(verifiers))
    if not checks or not (source.files or source.rows is not None):
        return ()
    schema = source.frame.collect_schema()
    names = [name for name in referred_columns(verifiers) if name in schema]
    try:
        first = source.frame.select(map(exactly, names)).head(_FIRST).collect() if names else pl.DataFrame()
        rows = [{name: untyped(value) for name, value in row.items()} for row in first.to_dicts()]
    except (*ENGINE_ERRORS, Exception):  # noqa: BLE001  (the run says what is wrong; Python has not every date)
        return ()
    solutions = (
        name for name, check in checks.items() if any(check.solution(row) and check.candidates(row) for row in rows)
    )
    return tuple(f"{name}: the gold is a whole solution; {READS_ANSWER}" for name in solutions)


def _checks(verifiers: Sequence[VerifierSpec]) -> Iterator[tuple[str, GoldCheck]]:
    for verifier in verifiers:
        for spec in verifier.nodes:
            check = spec.check
            if (
                isinstance(check, GoldCheck)
                and check.references
                and not check.gold_chain.steps
                and is_ours(check.checks)
            ):
                yield f"{verifier.id}/{spec.id}", check
