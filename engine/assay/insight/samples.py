"""Sample rows that have what a verifier refers to, for trying it without rollouts."""

import random
from collections.abc import Sequence
from typing import Any, get_args, get_origin

from assay.checks.base import Check, is_builtin
from assay.checks.golds import GoldCheck
from assay.functions.check import FunctionCheck, RowVerifierCheck
from assay.names import COMPLETION, EXPECTED, FN_NAME, PARAMS, VERIFIER
from assay.spec.check import CheckSpec
from assay.spec.verifier import VerifierSpec
from assay.testing import hostile_texts
from assay.values.column import STRUCTURED
from assay.values.paths import Path
from assay.values.references import Reference, as_list

_TEXTS = ("42", "A", "refund", "yes, a refund", "#### 1,200", "", "a, b", '{"a": 1}')
_NUMBERS = (0, 1, 2, 5, 42)
_PATTERNS = (r"\d+", "(?i)refund", "a")


def sample_rows(verifier: VerifierSpec, count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Return rows with hostile texts and with values, some of them null, at all paths that a verifier refers to.

    Half of the texts are around the words that users' check types look for: those in their code and in their examples.
    """
    rng = random.Random(seed)  # noqa: S311  (reproducible, not secret)
    pools, words = _pools(verifier), list[str]()
    own = [spec.check for spec in verifier.nodes if spec.check is not None and not is_builtin(spec.check)]
    words += [example.completion for check in own for example in check.examples if example.completion]
    for check in own:
        code = getattr(check.row, "__code__", None)
        constants = code.co_consts if code else ()
        words += [value for value in constants if isinstance(value, str) and value != check.row.__doc__]
    texts = [
        text
        for word in dict.fromkeys(word for word in words if word.isprintable())
        for text in (word, word.upper(), word.title(), f"a {word} b", f"a{word}b", f"{word} {word}")
    ]
    rows = []
    for text in [*texts[: count // 2], *hostile_texts(count, seed)][:count]:
        row: dict[str, Any] = {"metadata": None, "expected_output_schema": None}
        for path in sorted(pools, key=lambda path: len(path.steps), reverse=True):
            pool = pools[path]
            like_text = text if isinstance(pool[0], str) and pool is not _PATTERNS else pool[0]
            _put(row, path.steps, rng.choice((None, like_text, *pool)))
        rows.append(row | {COMPLETION: text})
    return rows


def _put(row: dict[str, Any], steps: tuple[Any, ...], value: Any) -> None:
    """Put a value at a path, through objects and lists made for it; a value that is there stays."""
    inside: Any = row
    for step, following in zip(steps, (*steps[1:], None), strict=True):
        new = value if following is None else [] if isinstance(following, int) else {}
        if isinstance(inside, list) and isinstance(step, int):
            at = step if step >= 0 else -step - 1
            inside.extend([None] * (at + 1 - len(inside)))
            inside[at] = new if inside[at] is None else inside[at]
            inside = inside[at]
        elif isinstance(inside, dict):
            inside[step] = new if inside.get(step) is None else inside[step]
            inside = inside[step]


def _pools(verifier: VerifierSpec) -> dict[Path, Sequence[Any]]:
    pools: dict[Path, Sequence[Any]] = {}
    for node in verifier.nodes:
        for spec in node.readers:
            for field, reference in spec.named_references:
                for path in reference.paths:
                    pools.setdefault(path, _pool(spec, field, reference))
            for name, pool in _columns(spec.check).items():
                pools.setdefault(Path((name,)), pool)
    return {path: pool for path, pool in pools.items() if path.column != COMPLETION}


def _columns(check: Check | None) -> dict[str, Sequence[Any]]:
    if isinstance(check, RowVerifierCheck):
        return {VERIFIER: [{FN_NAME: "exact_match", EXPECTED: expected, PARAMS: {}} for expected in _TEXTS]}
    if isinstance(check, FunctionCheck):
        return {EXPECTED: _TEXTS} if check.expected is None else {}
    return {} if check is None else {name: _TEXTS for name in check.traits.reads if name not in STRUCTURED}


def _pool(spec: CheckSpec, field: str, reference: Reference) -> Sequence[Any]:
    if reference.is_list:
        return ('["a", "42"]', "[]")
    if field == "when":  # values for which the condition holds
        operand = None if spec.when is None else spec.when.operand
        operands = as_list(operand)
        kind = type(operands[0])
        return [value for value in operands if isinstance(value, str | int | float) and type(value) is kind] or _TEXTS
    if reference.is_template or field == "on":
        return _TEXTS
    if field == "unit":
        return _NUMBERS
    return _pool_of_param(spec.check, field) if isinstance(spec.check, GoldCheck) else _TEXTS


def _pool_of_param(check: GoldCheck, field: str) -> Sequence[Any]:
    if field == "pattern":
        return _PATTERNS
    # the plain types that the param takes
    fields = check.brought.check.Params.model_fields
    annotation = next(info.annotation for name, info in fields.items() if (info.alias or name) == field)
    choices = [annotation] if get_origin(annotation) is list else get_args(annotation) or [annotation]
    kinds = {get_origin(choice) or choice for choice in choices}
    if list in kinds:
        return (["a", "42"], ["refund"], [])
    return _TEXTS if str in kinds else (True, False) if kinds == {bool} else _NUMBERS
