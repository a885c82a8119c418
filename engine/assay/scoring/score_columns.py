"""The columns of scores in a result, one for each check, and what its footer says of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from assay.frozen import frozen
from assay.names import FUNCTION, NATIVE
from assay.spec.check import titled

CHECK, SCORE = "check/", "score/"
"""What the names of the columns begin with: of a check, and of a verifier."""


@frozen
class ScoreColumn:
    """A check of a result: the column of a check, or that of a rubric's member or a verifier class, which have no checks.

    Attributes:
        name: What people call it, and what its lines of feedback begin with: ``<check>``, or ``<verifier>/<check>``.
        id: Its id; that of the verifier where it has no checks.
        weight: Its weight in the spec, or that of a rubric's member, or the points of a penalty; None if unknown.
        coefficient: What one point of its score adds to the reward; 0.0 inside a group, None where unknown or not linear.
        role: What its score does: ``weight``, ``gate``, ``penalty``, or ``member`` of a group.
        forbids: Whether it passes where something is absent: negated, ``not_contains`` or ``none_of``, or in such a group.
        is_forbidden: Whether it is in a group that passes where it fails: negated, or ``none_of``.
        effect: How much of the reward is at stake: its share of the weights, 1 for a gate, the points of a penalty, in a group that of
            the group; equal shares where the weights are unknown.
        group: Id of the group it is in.
        title: What its spec calls it for people.
    """

    name: str
    column: str
    verifier: str
    id: str
    type: str = ""
    weight: float | None = None
    required: bool = False
    coefficient: float | None = None
    group: str = ""
    title: str = ""
    role: str = "weight"
    forbids: bool = False
    is_forbidden: bool = False
    effect: float = 0.0


def recorded_columns(verifiers: Sequence[Mapping[str, Any]], forms: Sequence[Mapping[str, Any]]) -> list[ScoreColumn]:
    """Return the columns that a provenance tells, given its entries of the verifiers and their canonical forms."""
    share, several = 1 / max(1, len(verifiers)), len(verifiers) > 1
    pairs = zip(verifiers, forms, strict=True)
    return [column for verifier, form in pairs for column in _columns(verifier, form, share, several=several)]


def _columns(
    verifier: Mapping[str, Any], form: Mapping[str, Any], share: float, *, several: bool
) -> Iterator[ScoreColumn]:
    """Yield what the provenance says of a verifier: its checks, a group before its own; else the verifier itself."""
    ident, kind, weight = verifier["id"], verifier["kind"], verifier.get("weight")
    share = share if weight is None else weight
    weights = {check["id"]: float(check["weight"]) for check in verifier.get("checks", ())}
    if kind != NATIVE:
        own = next(iter(weights), "")
        name = own if kind == FUNCTION or not several else f"{ident}/{own}" if own else ident
        weight = 1.0 if weight is None else weight
        column = ScoreColumn(name or ident, SCORE + ident, ident, ident, kind, weight, coefficient=share)
        yield replace(column, effect=abs(share))
        return
    is_linear = not {"combine", "range"} & {*form}
    top = form.get("checks", ())
    is_linear &= not any({"gate", "penalty", "when", "checks"} & {*check} for check in top)
    total = sum(abs(weights.get(check["id"], 0.0)) for check in top if _role(check) == "weight")
    nested = [("", 0.0, False, check) for check in top]
    while nested:
        group, effect, forbids, check = nested.pop(0)
        own, role = check["id"], "member" if group else _role(check)
        weight = weights.get(own, float(check.get("weight", 0.0)))
        if not group:
            effect = share * {"gate": 1.0, "penalty": weight}.get(role, abs(weight) / total if total else 0.0)
        is_forbidden, forbids = forbids, forbids or check.get("negate") is True or check["type"] in _FORBID
        nested[:0] = [(own, effect, forbids, part) for part in check.get("checks", ())]
        yield ScoreColumn(
            f"{ident}/{own}" if several else own,
            f"{CHECK}{ident}/{own}",
            ident,
            own,
            check["type"],
            weight,
            required=check.get("required", False),
            coefficient=0.0 if group else share * weight / total if is_linear and total else None,
            group=group,
            title=titled(str(check.get("name", "")), str(check.get("description", ""))),
            role=role,
            forbids=forbids,
            is_forbidden=is_forbidden,
            effect=effect,
        )


_FORBID = ("not_contains", "none_of")


def _role(check: Mapping[str, Any]) -> str:
    return next((role for role in ("gate", "penalty") if role in check), "weight")
