"""Formulas over the scores of graders: weighted sums, the least and the greatest."""

import ast
import math
import warnings
from collections.abc import Collection
from typing import Any

from assay.spec.importers.imported import NoCounterpartError

_LONGEST = 10_000
_WORDS = ("min", "max")


def combination(formula: Any, names: Collection[str]) -> tuple[str, dict[str, float]]:
    """Return how a formula combines scores, ``sum``, ``min`` or ``max``, and the weight of each score in it."""
    if not isinstance(formula, str) or len(formula) > _LONGEST:
        raise NoCounterpartError("`calculate_output` is not a formula")
    try:
        with warnings.catch_warnings(action="ignore"):  # of the parser, about texts that are no formulas
            tree = ast.parse(formula.strip(), mode="eval").body
        word = tree.func.id if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) else ""
        if isinstance(tree, ast.Call) and word in _WORDS and tree.args and not tree.keywords:
            members = [arg.id if isinstance(arg, ast.Name) else "" for arg in tree.args]
            if set(members) == set(names):
                return word, dict.fromkeys(names, 1.0)
        constant, weights = _linear(tree, names)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError, ZeroDivisionError):
        raise NoCounterpartError(f"{formula[:80]!r} is not a formula") from None
    if not all(map(math.isfinite, (constant, *weights.values()))):
        raise NoCounterpartError(f"{formula[:80]!r} has numbers that are too large")
    if constant:
        raise NoCounterpartError(f"{formula[:80]!r} adds {constant:g} to the scores")
    return "sum", {name: weights.get(name, 0.0) for name in names}


def _linear(tree: ast.AST, names: Collection[str]) -> tuple[float, dict[str, float]]:
    if isinstance(tree, ast.Constant) and isinstance(tree.value, int | float) and not isinstance(tree.value, bool):
        return float(tree.value), {}
    if isinstance(tree, ast.Name) and tree.id in names:
        return 0.0, {tree.id: 1.0}
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub | ast.UAdd):
        return _scaled(_linear(tree.operand, names), -1.0 if isinstance(tree.op, ast.USub) else 1.0)
    if isinstance(tree, ast.BinOp):
        left, right = _linear(tree.left, names), _linear(tree.right, names)
        if isinstance(tree.op, ast.Add | ast.Sub):
            sign = -1.0 if isinstance(tree.op, ast.Sub) else 1.0
            constant, weights = _scaled(right, sign)
            both = {name: left[1].get(name, 0.0) + weights.get(name, 0.0) for name in {**left[1], **weights}}
            return left[0] + constant, both
        if isinstance(tree.op, ast.Mult) and not (left[1] and right[1]):
            return _scaled(left, right[0]) if left[1] else _scaled(right, left[0])
        if isinstance(tree.op, ast.Div) and not right[1]:
            return left[0] / right[0], {name: weight / right[0] for name, weight in left[1].items()}
    raise NoCounterpartError(
        f"{ast.unparse(tree)[:80]!r} is more than a weighted sum; write a rubric (docs/rubrics.md)"
    )


def _scaled(sum_: tuple[float, dict[str, float]], factor: float) -> tuple[float, dict[str, float]]:
    return sum_[0] * factor, {name: weight * factor for name, weight in sum_[1].items()}
