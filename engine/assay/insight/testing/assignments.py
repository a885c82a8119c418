"""What a verifier makes of all scores that its checks may have: which rewards there are, and whether two verifiers ever differ."""

import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Any

from assay.aggregating.aggregate import passes, verifier_score
from assay.aggregating.combining import combined
from assay.checks.base import Check, Outcome
from assay.checks.groups import CountingGroup, Included, LengthScaled, Maximum, Minimum, Product
from assay.checks.registry import BUILTIN
from assay.spec.check import CheckSpec
from assay.spec.verifier import VerifierSpec

_MOST = 4096
"""Most assignments that are tried."""

_MOST_CHECKS = 12
"""Most checks of which all rewards are computed."""

_WHOLE = {"score": ("all", "equal", "subset"), "as": ("list", "set", "multiset", "subset")}
"""Modes of graded check types in which they score 0 or 1."""


def attainable_rewards(verifier: VerifierSpec) -> list[float] | None:
    """Return the rewards that checks which score 0 or 1 can give, in order; None if one of them is graded, or there are more than 12."""
    checks = verifier.runnable
    if len(checks) > _MOST_CHECKS or not all(map(_is_two_valued, checks)):
        return None
    rows = itertools.product((0.0, 1.0), repeat=len(checks))
    rewards = {verifier_score(verifier, [Outcome(score, "") for score in row]) for row in rows}
    return sorted(reward for reward in rewards if reward is not None)


def _is_two_valued(spec: CheckSpec) -> bool:
    if spec.threshold is not None or isinstance(spec.check, CountingGroup):
        return True
    if isinstance(spec.check, Minimum | Maximum | Product):
        return all(map(_is_two_valued, spec.runnable))
    return spec.group is None and not _is_graded(spec)


def _is_graded(leaf: CheckSpec) -> bool:
    # NOTE: what wraps a check for golds from rows is graded, whatever it wraps
    kind = BUILTIN.get(leaf.check.type, type(leaf.check)) if leaf.check is not None else None
    if kind is None or not kind.graded:
        return False
    params = effective_params(kind, leaf.params)
    return not any(params.get(name) in modes for name, modes in _WHOLE.items())


def effective_params(kind: type[Check] | None, params: Any) -> dict[str, Any]:
    """Return the params of a check in canonical form with the defaults of its type, which that form may leave out."""
    defaults = {}
    for name, field in kind.Params.model_fields.items() if kind is not None else ():
        if not field.is_required():
            defaults[field.alias or name] = field.get_default(call_default_factory=True)
    return defaults | (dict(params) if isinstance(params, Mapping) else {})


class Assignments:
    """All assignments of scores to the leaves of a verifier: 0 and 1, and a half where a check is graded."""

    def __init__(self, verifier: VerifierSpec) -> None:
        leaves = [node for node in verifier.nodes if not node.parts]
        values = [(0.0, 1.0, 0.5) if _is_graded(leaf) else (0.0, 1.0) for leaf in leaves]
        size = 1
        for choice in values:
            size *= len(choice)
        self._leaves = [leaf.id for leaf in leaves]
        by_length = any(isinstance(node.check, LengthScaled) for node in verifier.nodes)
        self.known = size <= _MOST and not by_length
        self._rows = [*itertools.product(*values)] if self.known else []
        random.Random(0).shuffle(self._rows)  # noqa: S311  (most that differ do so in one of the first)
        self._verdicts: list[Any] = []
        self._verifier = verifier

    def are_same(self, other: VerifierSpec) -> bool:
        """Return whether another verifier has the same reward and passes alike, whatever the leaves score; False if that is not known."""
        if not self.known:
            return False
        for at, row in enumerate(self._rows):
            scores = dict(zip(self._leaves, row, strict=True))
            if at == len(self._verdicts):
                self._verdicts.append(_verdict(self._verifier, scores))
            if self._verdicts[at] != _verdict(other, scores):
                return False
        return True


def _verdict(verifier: VerifierSpec, scores: Mapping[str, float]) -> tuple[float | None, bool | None]:
    outcomes: Sequence[Outcome] = [Outcome(_score(spec, scores), "") for spec in verifier.runnable]
    reward = verifier_score(verifier, outcomes)
    return reward, passes(verifier, reward, outcomes)


def _score(spec: CheckSpec, scores: Mapping[str, float]) -> float:
    group = spec.group
    if group is None:
        score = scores[spec.id]
    else:
        parts = [_score(part, scores) for part in spec.runnable]
        if isinstance(group, Included):
            score = combined(spec.runnable, parts, group.combine, group.range, is_plain=spec.is_plain) or 0.0
        else:
            score = group.score({}, parts, [part.weight for part in spec.runnable])
    if spec.threshold is not None:
        score = float(score >= spec.threshold)
    return 1.0 - score if spec.negate else score
