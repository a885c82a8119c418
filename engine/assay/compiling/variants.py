"""Many variants of a verifier on the same rollouts: equal checks are evaluated once, and each variant puts their scores together."""

import json
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl

from assay.aggregating.aggregate import passes_expr, verifier_steps
from assay.aggregating.columns import UNSCORED, check_column, error_column, hidden, score_column, when_column
from assay.aggregating.pipeline import (
    above_expr,
    applies_expr,
    check_exprs,
    condition_layer,
    group_exprs,
    may_err,
    none_applies_expr,
    unscored_exprs,
)
from assay.checks.groups import LengthScaled
from assay.compiling.columns import opened
from assay.compiling.plan import Plan
from assay.compiling.sides import leaf_key, leaves_of
from assay.names import LENGTH, TEXT
from assay.spec.check import CheckSpec
from assay.spec.verifier import VerifierSpec

_SHARED_PARTS = pl.QueryOptFlags.none().update(comm_subexpr_elim=True)
"""All that pays on few rows: the parts of a sum stand in it several times."""


class Variants:
    """Native verifiers for rollouts of one schema.

    Args:
        verifiers: The variants; their ids may be the same.
        schema: The columns of the rollouts.
        any_role: As for a plan.
    """

    def __init__(self, verifiers: Sequence[VerifierSpec], schema: Any, *, any_role: bool = False) -> None:
        self.verifiers = tuple(verifiers)
        leaves: dict[Any, CheckSpec] = {}
        conditions: dict[str, CheckSpec] = {}
        self._leaf_of: list[dict[str, str]] = []
        self._condition_of: list[dict[str, str]] = []
        for verifier in self.verifiers:
            of_leaves, of_conditions = dict[str, str](), dict[str, str]()
            for owner, spec, form in leaves_of(verifier):
                alone = {name: value for name, value in form.items() if name != "when"}
                key = leaf_key(owner, spec, alone)
                if key not in leaves:
                    plain: dict[str, Any] = {
                        "weight": 1.0,
                        "role": "weight",
                        "required": False,
                        "when": None,
                        "above": (),
                    }
                    leaves[key] = replace(spec, id=f"{len(leaves)}", **plain)
                of_leaves[spec.id] = leaves[key].id
            for node in verifier.nodes:
                if node.when is not None:
                    form_of_when = json.dumps(node.outline["when"], sort_keys=True, default=str)
                    leaf = next(iter(leaves.values()))
                    conditions.setdefault(form_of_when, replace(leaf, id=f"{len(conditions)}", when=node.when))
                    of_conditions[node.id] = conditions[form_of_when].id
            self._leaf_of.append(of_leaves)
            self._condition_of.append(of_conditions)
        self._leaves = VerifierSpec("leaves", "leaves", 1.0, tuple(leaves.values()))
        self._conditions = VerifierSpec("conditions", "conditions", 1.0, tuple(conditions.values()))
        both = (self._leaves, self._conditions) if conditions else (self._leaves,)
        self._plan = Plan(both, tuple(schema.items()), (), any_role=any_role)
        # a length is no score, which a table of scores could have
        self._apart = {
            at: Plan((verifier,), tuple(schema.items()), (), any_role=any_role)
            for at, verifier in enumerate(self.verifiers)
            if any(isinstance(node.check, LengthScaled) for node in verifier.nodes)
        }

    def table(self, rollouts: pl.LazyFrame) -> pl.LazyFrame:
        """Return what all checks of all variants make of rollouts, for ``verdicts``, and the ``length`` of each text."""
        frame = opened(rollouts, self._plan.conversions)
        specs = [(spec, spec.check) for spec in self._leaves.checks if spec.check is not None]
        scored = [check_exprs(self._leaves, spec, check)[0] for spec, check in specs]
        kept = {hidden(check_column(self._leaves, spec)) for spec, _ in specs}
        kept |= {error_column(self._leaves, spec) for spec, _ in specs if may_err(spec)}
        layers = [
            *self._plan.shared_layers,
            condition_layer(self._conditions, self._plan.read_schema),
            self._plan.not_scored_layer,
            [expr for exprs in scored for expr in exprs if expr.meta.output_name() in kept],
        ]
        for layer in layers:
            if layer:
                frame = frame.with_columns(layer)
        columns = [pl.col(UNSCORED), pl.col(TEXT).str.len_chars().alias(LENGTH)]
        for spec, _ in specs:
            columns.append(pl.col(hidden(check_column(self._leaves, spec))).alias(f"score/{spec.id}"))
            if may_err(spec):
                columns.append(pl.col(error_column(self._leaves, spec)).alias(f"error/{spec.id}"))
            if missing := unscored_exprs(self._leaves, spec):
                columns.append(pl.any_horizontal(one.is_not_null() for one in missing).alias(f"missing/{spec.id}"))
            if (applies := applies_expr(self._leaves, spec)) is not None:
                columns.append(applies.alias(f"applies/{spec.id}"))
        columns += [
            pl.col(when_column(self._conditions, spec.id)).alias(f"when/{spec.id}") for spec in self._conditions.checks
        ]
        apart = [plan.lazy(rollouts).select(pl.all().name.prefix(f"{at}/")) for at, plan in self._apart.items()]
        table = frame.select(columns)
        return pl.concat([table, *apart], how="horizontal") if apart else table

    def verdicts(
        self, table: pl.DataFrame, numbers: Iterable[int], checks: Collection[str] = ()
    ) -> Iterator[tuple[int, pl.DataFrame]]:
        """Yield ``reward`` and ``passed`` of variants, with the number of each, in any order; a row that one does not score has neither.

        Args:
            table: Rows of ``table``.
            numbers: Which variants.
            checks: Ids of checks whose scores are wanted, too; a variant may lack some.
        """
        alike: dict[Any, list[tuple[int, pl.DataFrame]]] = {}
        for number in numbers:
            if number in self._apart:
                verifier = self.verifiers[number]
                names = ("reward", "passed", *_wanted(verifier, checks))
                yield number, table.select(pl.col(f"{number}/{name}").alias(name) for name in names)
            else:
                own = table.select(self._own(number, table.columns))
                alike.setdefault((_structure(self.verifiers[number]), *own.columns), []).append((number, own))
        most = max(1, _MOST_ROWS // max(1, table.height))
        for group in alike.values():
            for at in range(0, len(group), most):
                some = group[at : at + most]
                whole = _verdicts(self.verifiers[some[0][0]], pl.concat([own for _, own in some]), checks)
                yield from (
                    (number, whole[place * table.height :][: table.height]) for place, (number, _) in enumerate(some)
                )

    def _own(self, number: int, known: Container[str]) -> Iterator[pl.Expr]:
        """Yield the columns of a table that a variant reads, by the ids of its checks."""
        verifier = self.verifiers[number]
        yield pl.col(UNSCORED)
        for ident, condition in self._condition_of[number].items():
            yield pl.col(f"when/{condition}").alias(when_column(verifier, ident))
        for ident, leaf in self._leaf_of[number].items():
            for kind in ("score", "error", "missing", "applies"):
                if (column := f"{kind}/{leaf}") in known:
                    yield pl.col(column).alias(f"{kind}/{ident}")


_MOST_ROWS = 100_000
"""Most rows of variants that are put together at a time."""


def _structure(verifier: VerifierSpec) -> str:
    """Return how a verifier puts the scores of its checks together, without what these look for."""
    form = json.loads(verifier.canonical)
    return json.dumps(form | {"checks": [*map(_without_what_is_sought, form["checks"])]})


def _without_what_is_sought(check: dict[str, Any]) -> dict[str, Any]:
    if "checks" in check:
        return check | {"checks": [*map(_without_what_is_sought, check["checks"])]}
    return {
        name: value for name, value in check.items() if name not in ("params", "on", "goldOn", "notFound", "threshold")
    }


def _wanted(verifier: VerifierSpec, checks: Collection[str]) -> list[str]:
    return [check_column(verifier, spec) for spec in verifier.nodes if spec.id in checks]


def _verdicts(verifier: VerifierSpec, rows: pl.DataFrame, checks: Collection[str]) -> pl.DataFrame:
    """Return the verdicts of a variant on rows that have its columns."""
    known, frame = rows.columns, rows.lazy()
    unscored = [pl.col(UNSCORED).is_not_null(), *_unscored(verifier, known)]
    columns = []
    for spec in (spec for spec in verifier.nodes if not spec.parts):
        runs = _runs(verifier, spec) & pl.col(UNSCORED).is_null()
        columns.append(pl.when(runs).then(pl.col(f"score/{spec.id}")).alias(hidden(check_column(verifier, spec))))
        if f"error/{spec.id}" in known:
            columns.append(pl.when(runs).then(pl.col(f"error/{spec.id}")).alias(error_column(verifier, spec)))
    frame = frame.with_columns(pl.when(pl.any_horizontal(unscored)).then(pl.lit("")).alias(UNSCORED))
    frame = frame.with_columns(columns)
    groups = sorted((spec for spec in verifier.nodes if spec.group is not None), key=lambda spec: spec.depth)
    steps = [layer for spec in groups if spec.group is not None for layer in group_exprs(verifier, spec, spec.group)]
    for layer in [*steps, *([step] for step in verifier_steps(verifier))]:
        frame = frame.with_columns(layer)
    is_scored = pl.col(UNSCORED).is_null()
    reward = pl.col(hidden(score_column(verifier)))
    frame = frame.select(
        pl.when(is_scored).then(reward).alias("reward"),
        pl.when(is_scored & reward.is_not_null()).then(passes_expr(verifier)).alias("passed"),
        *(pl.when(is_scored).then(pl.col(hidden(name))).alias(name) for name in _wanted(verifier, checks)),
    )
    return frame.collect(optimizations=_SHARED_PARTS)


def _unscored(verifier: VerifierSpec, known: Container[str]) -> Iterator[pl.Expr]:
    """Yield why a row is unscored by what its checks find, as Boolean expressions over the columns that are known."""
    for spec in verifier.nodes:
        if not spec.parts and (missing := f"missing/{spec.id}") in known:
            yield pl.col(missing) & _runs(verifier, spec)

    def single(spec: CheckSpec) -> pl.Expr | None:
        return pl.col(column) if (column := f"applies/{spec.id}") in known else None

    if (without := none_applies_expr(verifier, partial(applies_expr, single=single))) is not None:
        yield without


def _runs(verifier: VerifierSpec, spec: CheckSpec) -> pl.Expr:
    """Return whether the conditions of a check and of the groups around it hold."""
    holds = above_expr(verifier, spec)
    return pl.lit(value=True) if holds is None else holds
