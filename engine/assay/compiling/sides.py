"""Several plans on the same rows: what one of them has computed, those after it take from there."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from assay.aggregating.columns import hidden
from assay.aggregating.pipeline import applies_expr, check_exprs, unscored_exprs
from assay.checks.base import deciding_code
from assay.compiling.columns import as_given, merged, opened
from assay.compiling.plan import Plan
from assay.expressions.shared_columns import exactly
from assay.names import NATIVE
from assay.spec.canonical import fingerprint
from assay.spec.verifier import CheckSpec, VerifierSpec
from assay.system.processes import prepare_process

_Key = tuple[object, ...]


def beside(plans: Sequence[Plan], rollouts: pl.LazyFrame, prefixes: Sequence[str]) -> pl.LazyFrame:
    """Return rollouts with the results of several plans added; checks that are equal are evaluated once."""
    prepare_process()
    converted = merged(plan.conversions for plan in plans)
    names, frame = rollouts.collect_schema().names(), opened(rollouts, converted)
    for at, (plan, prefix) in enumerate(zip(plans, prefixes, strict=True)):
        known = _known(plan, plans[at - 1]) if at else {}
        for layer in plan.layers:
            if exprs := [*_unknown(layer, known)]:
                frame = frame.with_columns(exprs)
        frame = frame.with_columns(pl.col(hidden(name)).alias(prefix + name) for name in plan.results)
    added = [prefix + name for plan, prefix in zip(plans, prefixes, strict=True) for name in plan.results]
    return frame.select(*(as_given(name, converted) for name in names), *map(exactly, added))


def _unknown(layer: Sequence[pl.Expr], known: Mapping[str, str]) -> Iterator[pl.Expr]:
    """Yield what is still to be computed of a layer; a known column of another name is copied.

    NOTE: in the same layer, for it may overwrite the column that is copied.
    """
    for expr in layer:
        name = expr.meta.output_name()
        if name not in known:
            yield expr
        elif known[name] != name:
            yield pl.col(known[name]).alias(name)


def _known(plan: Plan, earlier: Plan) -> dict[str, str]:
    names = {expr.meta.output_name() for layer in earlier.shared_layers for expr in layer}
    known = {name: name for name in names}
    unscored = _unscored_by(plan)
    if unscored is None or unscored != _unscored_by(earlier):
        return known
    by_key = {leaf_key(verifier, spec, form): (verifier, spec) for verifier, spec, form in _alone(earlier)}
    for verifier, spec, form in _alone(plan):
        there = by_key.get(leaf_key(verifier, spec, form))
        if there is not None:
            known |= dict(zip(_columns(verifier, spec), _columns(*there), strict=True))
    return known


def _columns(verifier: VerifierSpec, spec: CheckSpec) -> list[str]:
    assert spec.check is not None  # noqa: S101  (``nodes`` have one)
    return [expr.meta.output_name() for layer in check_exprs(verifier, spec, spec.check) for expr in layer]


def _unscored_by(plan: Plan) -> set[_Key] | None:
    # where two plans have the same such checks, a row that one of them scores is scored by the other
    if any(applies_expr(verifier, spec) is not None for verifier in plan.verifiers for spec in verifier.nodes):
        return None
    keys = {leaf_key(verifier, spec, form) for verifier, spec, form in _alone(plan) if unscored_exprs(verifier, spec)}
    return {*keys, *((path,) for path in plan.paths_to_bytes)}


def _alone(plan: Plan) -> Iterator[tuple[VerifierSpec, CheckSpec, Mapping[str, Any]]]:
    for verifier in plan.verifiers:
        yield from leaves_of(verifier)


def leaves_of(verifier: VerifierSpec) -> Iterator[tuple[VerifierSpec, CheckSpec, Mapping[str, Any]]]:
    """Yield the single checks of a verifier that run, each with the verifier and its canonical form."""
    forms = json.loads(verifier.canonical).get("checks", ()) if verifier.kind == NATIVE else ({},)
    for spec, form in zip(verifier.checks, forms, strict=True):
        yield from ((verifier, *pair) for pair in _with_form(spec, form))


def _with_form(spec: CheckSpec, form: Mapping[str, Any]) -> Iterator[tuple[CheckSpec, Mapping[str, Any]]]:
    for part, form_of_part in zip(spec.parts, form.get("checks", ()), strict=True):
        yield from _with_form(part, form_of_part)
    if not spec.parts and spec.check is not None:
        yield spec, form


def leaf_key(verifier: VerifierSpec, spec: CheckSpec, form: Mapping[str, Any]) -> _Key:
    """Return what tells a check from others: equal keys, equal scores."""
    assert spec.check is not None  # noqa: S101  (as above)
    if verifier.kind != NATIVE:
        return (verifier.canonical, id(spec.check))
    return (fingerprint(form), spec.threshold, deciding_code(spec.check))
