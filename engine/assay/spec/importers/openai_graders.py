"""OpenAI's graders, of fine-tuning and of evals, to specs."""

import ast
import math
import warnings
from collections.abc import Collection, Mapping
from typing import Any

from assay.checks.graders.table import GRADERS
from assay.spec.importers.imported import (
    Imported,
    NoCounterpartError,
    Notes,
    check_problem,
    check_threshold,
    is_number,
    named_check,
    numbered_ids,
    pieces_of,
    reference_to,
)
from assay.system.documents import Place, SpecDocument, named
from assay.values.references import as_list

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


_STRING_CHECK = GRADERS["openai.string_check"]
_METRICS = {
    "fuzzy_match": "ratio",
    **{name: name for name in ("bleu", "gleu", *(f"rouge_{n}" for n in (1, 2, 3, 4, 5, "l")))},
}
_NO_METRIC = {"cosine": "it compares embeddings of a model", "meteor": "it needs WordNet"}
_NONE = {
    "label_model": "it asks a model",
    "score_model": "it asks a model",
    "python": "it runs code of yours: a reward function can (docs/rubrics.md)",
    "endpoint": "it calls a server",
}
_TYPES = ("string_check", "text_similarity", "multi", *_NONE)
_ALL_OR_NOTHING = (
    "`pass_threshold` makes the score 0 or 1 before the formula; OpenAI documents it for graders that stand alone"
)
_OUTPUT = {"output_text": [], "output_tools": ["toolCalls"]}


def is_openai(data: Any) -> bool:
    """Return whether data is a grader, a list of graders, or an object that has one."""
    if isinstance(data, list):
        return bool(data) and all(isinstance(grader, dict) and grader.get("type") in _TYPES for grader in data)
    return isinstance(data, dict) and (
        data.get("type") in _TYPES or isinstance(data.get("testing_criteria"), list) or _nested(data) is not None
    )


def _nested(data: Mapping[str, Any]) -> tuple[Place, Any] | None:
    for path in (("grader",), ("reinforcement", "grader"), ("method", "reinforcement", "grader")):
        value: Any = data
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, dict):
            return path, value
    return None


def read_openai(document: SpecDocument) -> Imported:
    """Return the spec of graders."""
    data, notes = document.data, Notes(document)
    path: Place = ()
    name = data.get("name") if isinstance(data, dict) else None
    if isinstance(data, dict) and isinstance(data.get("testing_criteria"), list):
        path, data = ("testing_criteria",), data["testing_criteria"]
    elif isinstance(data, dict) and data.get("type") not in _TYPES and (nested := _nested(data)) is not None:
        path, data = nested
    if isinstance(data, dict) and data.get("type") == "multi":
        spec = _multi(data, path, notes)
    else:
        spec = {"checks": []}
        for at, grader in enumerate(as_list(data)):
            try:
                spec["checks"].append(_check(grader))
            except NoCounterpartError as error:
                notes.leave_out((*path, at) if isinstance(data, list) else path, str(error))
    numbered_ids(spec["checks"])
    named_spec = {"name": name} if isinstance(name, str) and name else {}
    return Imported(named_spec | spec, [], notes.left_out, notes.differences)


def _check(grader: Any, *, summed: bool = False, name: Any = None, weight: float | None = None) -> dict[str, Any]:
    if not isinstance(grader, dict):
        raise NoCounterpartError(f"expected an object, got {named(grader)}")
    kind = grader.get("type")
    if kind == "multi":
        raise NoCounterpartError("`multi` stands within other graders")
    if kind == "string_check":
        operation, known = grader.get("operation"), _STRING_CHECK.options["operation"].choices
        if operation not in known:
            raise NoCounterpartError(f"`operation` is {named(operation)}, not one of {', '.join(known)}")
        way: dict[str, Any] = {"type": "grader", "name": _STRING_CHECK.name, "options": {"operation": operation}}
        around: dict[str, Any] = {}
    elif kind == "text_similarity":
        way, around = {"type": "similarity", "metric": _metric(grader)}, _passing(grader)
    else:
        unknown = f"`type` is {named(kind)}, not a grader: {', '.join(_TYPES)}"
        raise NoCounterpartError(_NONE.get(kind, unknown) if isinstance(kind, str) else unknown)
    value = reference_to(_text(grader, "reference"), _column)
    check = {"type": way["type"], "value": value, **_source(grader), **way, **around}
    check = named_check(grader.get("name") if name is None else name, check)
    check |= {} if weight is None else {"weight": weight}
    if problem := check_problem(check, summed=summed):
        raise NoCounterpartError(problem)
    return check


def _metric(grader: Mapping[str, Any]) -> str:
    metric = grader.get("evaluation_metric")
    if not isinstance(metric, str) or metric not in _METRICS:
        reason = _NO_METRIC.get(metric, f"known: {', '.join(_METRICS)}") if isinstance(metric, str) else "not a metric"
        raise NoCounterpartError(f"`evaluation_metric` is {named(metric)}: {reason}")
    return _METRICS[metric]


def _passing(grader: Mapping[str, Any]) -> dict[str, Any]:
    threshold = grader.get("pass_threshold")
    if threshold is None:
        return {}
    if not is_number(threshold):
        raise NoCounterpartError(f"`pass_threshold` is {named(threshold)}, not a number")
    check_threshold(threshold, "pass_threshold")
    return {"threshold": threshold}


def _text(grader: Mapping[str, Any], name: str) -> str:
    value = grader.get(name)
    if not isinstance(value, str):
        raise NoCounterpartError(f"`{name}` is {named(value)}, not a text")
    return value


def _column(path: str) -> str:
    root, _, rest = path.partition(".")
    if root != "item" or not rest:
        raise NoCounterpartError(f"`{{{{{path}}}}}` is not a field of `item`")
    return rest


def _source(grader: Mapping[str, Any]) -> dict[str, Any]:
    pieces = pieces_of(_text(grader, "input"))
    if len(pieces) != 3 or pieces[0].strip() or pieces[2].strip():  # noqa: PLR2004  (one template alone)
        raise NoCounterpartError("`input` is more than one value: a check reads one")
    root, _, rest = pieces[1].partition(".")
    if root == "item" and rest:
        return {"on": [{"column": rest}]}
    if root == "sample" and rest in _OUTPUT:
        return {"on": _OUTPUT[rest]} if _OUTPUT[rest] else {}
    if root == "sample" and rest.startswith("output_json."):
        return {"on": [{"json": {"path": rest.removeprefix("output_json.")}}]}
    raise NoCounterpartError(f"`input` is `{{{{{pieces[1]}}}}}`; known: sample.output_text, sample.output_json, item")


def _multi(grader: Mapping[str, Any], path: Place, notes: Notes) -> dict[str, Any]:
    graders = grader.get("graders")
    listed = as_list(graders)
    members: dict[str, tuple[str | int, Any]] = {
        str(member.get("name")) if isinstance(member, dict) else str(at): (at, member)
        for at, member in enumerate(listed)
    }
    if isinstance(graders, dict):
        members = {str(name): (name, member) for name, member in graders.items()}
    try:
        combine, weights = combination(grader.get("calculate_output"), [*members])
    except NoCounterpartError as error:
        notes.leave_out((*path, "calculate_output"), str(error))
        return {"checks": []}
    checks = []
    for name, (step, member) in members.items():
        try:
            weight = weights[name] if combine == "sum" else None
            checks.append(_check(member, summed=combine == "sum", name=name, weight=weight))
            if member.get("pass_threshold") is not None:
                notes.differ((*path, "graders", step), _ALL_OR_NOTHING)
        except NoCounterpartError as error:
            notes.leave_out((*path, "graders", step), str(error))
    if combine != "sum":
        return {"combine": combine, "checks": checks}
    best = 0.0
    for check in checks:
        best += max(check["weight"], 0.0)
    spec: dict[str, Any] = {"combine": "sum", "checks": checks}
    if best > 1 or any(check["weight"] < 0 for check in checks):
        spec = {"range": None, **spec}
    if best != 1 and math.isfinite(best) and best > 0:
        spec = {"passThreshold": best, **spec}
    return spec
