"""What a verifier compiles to: for each check, its steps, golds and condition, which engine runs it, and why."""

import json
from typing import Any

from assay.checks.golds import GoldCheck
from assay.spec.check import CheckSpec, runs_as
from assay.spec.verifier import VerifierSpec
from assay.steps.chain import Chain
from assay.steps.sources import Source


def explanation(verifier: VerifierSpec) -> list[dict[str, Any]]:
    """Return what each check runs as, in spec order; a group before its checks."""
    return [entry for check in verifier.checks for entry in _entries(check, 0)]


def _entries(spec: CheckSpec, depth: int) -> list[dict[str, Any]]:
    entry = {
        "id": spec.id,
        "type": spec.type,
        "name": spec.name,
        "description": spec.description,
        "depth": depth,
        "role": spec.role,
        "weight": spec.weight,
        "required": spec.required,
        "negate": spec.negate,
        "threshold": spec.threshold,
        "runs_as": runs_as(spec),
        "on": _reading(spec),
        "golds": _golds(spec),
        "gold_on": _steps(spec.check.brought.chain) if isinstance(spec.check, GoldCheck) else [],
        "when": _condition(spec),
    }
    return [entry, *(inner for part in spec.parts for inner in _entries(part, depth + 1))]


def _part(what: Any, how: str) -> dict[str, Any]:
    return {"what": what, "runs_as": how}


def _reading(spec: CheckSpec) -> list[dict[str, Any]]:
    if spec.subject is None:
        return []
    source = spec.subject.source
    return [*([] if source is None else [_source(source)]), *_steps(spec.subject.chain)]


def _source(source: Source) -> dict[str, Any]:
    what = source.name if source.reference is None else source.reference.outline()
    return _part(what, source.explain())


def _steps(chain: Chain) -> list[dict[str, Any]]:
    return [_part(step.outline(), step.explain()) for step in chain.steps]


def _golds(spec: CheckSpec) -> list[dict[str, Any]]:
    references = [(name, reference) for name, reference in spec.named_references if name not in ("on", "when")]
    return [{"param": name, **_part(reference.outline(), reference.explain())} for name, reference in references]


def _condition(spec: CheckSpec) -> list[dict[str, Any]]:
    return [] if spec.when is None else [_part(spec.when.outline, spec.when.explain())]


def as_written(value: Any) -> str:
    """Return plain data as a spec writes it on one line: ``{column: answer}``."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {as_written(inner)}' for name, inner in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(as_written, value))}]"
    is_plain = isinstance(value, str) and value.replace("_", "").replace(".", "").isalnum() and not value[0].isdigit()
    return value if is_plain else json.dumps(value, ensure_ascii=False, default=str)
