"""Names of the columns of results, public and hidden."""

from collections.abc import Sequence
from functools import partial

import polars as pl

from assay.names import HIDDEN, IN_PROCESS, NATIVE
from assay.spec.verifier import CheckSpec, VerifierSpec

UNSCORED = HIDDEN + "unscored"
"""Why a row cannot be scored; null if it can."""


def hidden(name: str) -> str:
    """Return a result's name inside a plan; the input may have a column with the public name."""
    return HIDDEN + name


def check_column(verifier: VerifierSpec, check: CheckSpec) -> str:
    """Return the output column of a check's score."""
    return f"check/{verifier.id}/{check.id}"


def score_column(verifier: VerifierSpec) -> str:
    """Return the output column of a verifier's score."""
    return f"score/{verifier.id}"


def extra_column(verifier: VerifierSpec, check: CheckSpec) -> str:
    """Return the output column that a check adds beside its score, or ``""``."""
    return check.check.traits.extra.format(verifier=verifier.id, check=check.id) if check.check is not None else ""


def _own(kind: str, verifier: VerifierSpec, check: CheckSpec) -> str:
    return hidden(f"{kind}/{verifier.id}/{check.id}")


# hidden columns: the reason where the score is below 1, the error and the remark where there are any, and what a check adds itself,
# for several checks may have the same output column
reason_column, error_column, remark_column, own_extra_column = (
    partial(_own, kind) for kind in ("reason", "error", "remark", "extra")
)


def when_column(verifier: VerifierSpec, ident: str) -> str:
    """Return the hidden column of the condition of a check, by its id: Boolean without nulls."""
    return hidden(f"when/{verifier.id}/{ident}")


def extra_columns(verifiers: Sequence[VerifierSpec]) -> list[str]:
    """Return the columns that checks add beside their scores."""
    names = (extra_column(verifier, spec) for verifier in verifiers for spec in verifier.nodes)
    return [*dict.fromkeys(name for name in names if name)]


def extra_layer(verifiers: Sequence[VerifierSpec]) -> list[pl.Expr]:
    """Return the columns that checks add, each from the checks that have it."""
    return [
        pl.coalesce(
            own_extra_column(verifier, spec)
            for verifier in verifiers
            for spec in verifier.nodes
            if extra_column(verifier, spec) == name
        ).alias(hidden(name))
        for name in extra_columns(verifiers)
    ]


def detail_columns(verifiers: Sequence[VerifierSpec]) -> list[str]:
    """Return the columns of verifiers, then of checks; a verifier that is one function or class has no check columns.

    The verifiers of the rows have a column of their own only beside others; else it would repeat the reward.
    """
    scores = [score_column(verifier) for verifier in verifiers if verifier.kind != IN_PROCESS or len(verifiers) > 1]
    native = [verifier for verifier in verifiers if verifier.kind == NATIVE]
    return scores + [check_column(verifier, spec) for verifier in native for spec in verifier.nodes]
