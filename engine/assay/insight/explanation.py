"""What a verifier's checks compile to, and what rollouts have of what they read: values, usable golds, parts that its steps find."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from assay.checks.gold_faults import READS_ANSWER
from assay.checks.golds import GoldCheck
from assay.compiling.columns import assumed_columns
from assay.compiling.plan import Plan
from assay.errors import counted, did_you_mean, listed, quoted
from assay.expressions.completion import completion_text
from assay.expressions.json import NOT_JSON, loads
from assay.expressions.mixed import untyped
from assay.frozen import frozen
from assay.kernel.library import is_on
from assay.names import COMPLETION, NATIVE
from assay.spec.check import CheckSpec, runs_as
from assay.spec.verifier import VerifierSpec
from assay.steps.chain import Chain
from assay.steps.subject import NOTHING
from assay.values.arguments import MEMO, RAW
from assay.values.paths import Path, kind_of, merged, outline
from assay.values.references import Reference


def explanation(verifier: VerifierSpec) -> list[dict[str, Any]]:
    """Return what each check runs as, in spec order; a group before its checks."""
    return [entry for check in verifier.checks for entry in _entries(check, 0)]


def results_of(verifier: VerifierSpec) -> str:
    """Return whether the results of rows come from a table, or why they do not; ``""`` without the kernel, where none do."""
    if not is_on() or verifier.kind != NATIVE:
        return ""
    if _has_table(verifier, verifier.checks):
        return "from a table, by the answers to all questions about the text"
    apart = [spec.id for spec in verifier.checks if spec.check is not None and not _has_table(verifier, (spec,))]
    verb = "asks" if len(apart) == 1 else "ask"
    return f"from columns: {f'{listed(apart)} {verb} more than the kernel answers' if apart else 'too many facts'}"


def _has_table(verifier: VerifierSpec, checks: tuple[CheckSpec, ...]) -> bool:
    alone = (replace(verifier, checks=checks),)
    return Plan(alone, tuple(assumed_columns(alone).items())).table is not None


def _entries(spec: CheckSpec, depth: int) -> list[dict[str, Any]]:
    reading = [] if spec.subject is None else _steps(spec.subject.chain)
    if spec.subject is not None and (source := spec.subject.source) is not None:
        what = source.name if source.reference is None else source.reference.outline()
        reading.insert(0, _part(what, source.explain()))
    references = [(name, reference) for name, reference in spec.named_references if name not in ("on", "when")]
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
        "on": reading,
        "golds": [{"param": name, **_part(reference.outline(), reference.explain())} for name, reference in references],
        "gold_on": _steps(spec.check.brought.chain) if isinstance(spec.check, GoldCheck) else [],
        "when": [] if spec.when is None else [_part(spec.when.outline, spec.when.explain())],
    }
    return [entry, *(inner for part in spec.parts for inner in _entries(part, depth + 1))]


def _part(what: Any, how: str) -> dict[str, Any]:
    return {"what": what, "runs_as": how}


def _steps(chain: Chain) -> list[dict[str, Any]]:
    return [_part(step.outline(), step.explain()) for step in chain.steps]


def as_written(value: Any) -> str:
    """Return plain data as a spec writes it on one line: ``{column: answer}``."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {as_written(inner)}' for name, inner in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(as_written, value))}]"
    is_plain = isinstance(value, str) and value.replace("_", "").replace(".", "").isalnum() and not value[0].isdigit()
    return value if is_plain else json.dumps(value, ensure_ascii=False, default=str)


_SHOWN = 3
"""Values that a finding names."""


@frozen
class Finding:
    """What rows have of what a check reads."""

    place: str
    fact: str
    is_doubtful: bool = False
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.fact}{f'. {self.hint}' if self.hint else ''}"


def findings(verifier: VerifierSpec, rows: Iterable[Mapping[str, Any]], *, any_role: bool = False) -> list[Finding]:
    """Return what rows have of the values, the golds and the parts of the output that a verifier's checks read."""
    prepared = [
        {**row, COMPLETION: completion_text(row[COMPLETION], any_role=any_role), RAW: row[COMPLETION], MEMO: {}}
        for row in rows
    ]
    specs = [reader for node in verifier.nodes for reader in node.readers]
    found = (finding for spec in specs for finding in _of_check(f"{verifier.id}/{spec.id}", spec, prepared))
    return list(dict.fromkeys(found))


def _of_check(name: str, spec: CheckSpec, rows: Sequence[Mapping[str, Any]]) -> list[Finding]:
    found = [_of_reference(f"{name}, {field}", reference, rows) for field, reference in spec.named_references]
    if isinstance(spec.check, GoldCheck):
        found += _of_golds(f"{name}, {spec.check.golds.param or 'params'}", spec.check, rows)
    if spec.subject is not None:
        found += _of_steps(f"{name}, on", spec, rows)
    if spec.when is not None and spec.when.check is None:
        holds = sum(map(spec.when.row, rows))
        found.append(Finding(f"{name}, when", f"holds in {_share(holds, rows)}", is_doubtful=bool(rows) and not holds))
    return found


def _share(number: int, rows: Sequence[Any]) -> str:
    return f"{number:,} of {counted(len(rows), 'row')}"


def _of_reference(place: str, reference: Reference, rows: Sequence[Mapping[str, Any]]) -> Finding:
    present = sum(_is_present(reference.row(row)) for row in rows)
    fact = f"`{reference}` has a value in {_share(present, rows)}"
    return Finding(
        place,
        fact,
        is_doubtful=bool(rows) and not present,
        hint="" if present else _guess(reference, rows),
    )


def _is_present(value: Any) -> bool:
    return any(map(_is_present, value)) if isinstance(value, list) else value is not None


def _guess(reference: Reference, rows: Sequence[Mapping[str, Any]]) -> str:
    for path in reference.paths:
        outlined = merged([outline({path.column: _decoded(row.get(path.column))}) for row in rows])
        for size in range(1, len(path.steps)):
            step, inside = path.steps[size], _inside(outlined, Path(path.steps[:size]))
            if isinstance(step, str) and isinstance(inside, dict) and step not in inside:
                return (
                    did_you_mean(step, inside) or f"`{Path(path.steps[:size])}` has {', '.join(inside) or 'no fields'}"
                )
    return ""


def _inside(outlined: Any, path: Path) -> Any:
    if kind_of(outlined, path) is None:
        return None
    for step in path.steps:
        outlined = outlined[step] if isinstance(step, str) else outlined[0]
    return outlined


def _decoded(value: Any) -> Any:
    value = untyped(value)
    decoded = loads(value) if isinstance(value, str) else NOT_JSON
    return value if decoded is NOT_JSON else decoded


def _of_golds(place: str, check: GoldCheck, rows: Sequence[Mapping[str, Any]]) -> list[Finding]:
    with_values = [row for row in rows if all(map(_is_present, _values(check, row)))]
    if not check.traits.references:
        return []
    if solutions := [
        text for row in with_values if check.brought.candidates(row) and (text := check.brought.solution(row))
    ]:
        fact = f"whole solutions in {_share(len(solutions), rows)}, such as {quoted(solutions[0])}"
        return [Finding(place, fact, is_doubtful=len(solutions) == len(with_values), hint=READS_ANSWER)]
    unusable = [row for row in with_values if not check.brought.candidates(row)]
    if not unusable:
        return []
    values = dict.fromkeys(_shown(value) for row in unusable for value in _values(check, row))
    fact = f"`{check.type}` cannot use the values of {_share(len(unusable), rows)}, such as "
    fact += ", ".join(map(quoted, [*values][:_SHOWN]))
    return [Finding(place, fact, is_doubtful=len(unusable) == len(with_values))]


def _values(check: GoldCheck, row: Mapping[str, Any]) -> list[Any]:
    return [reference.row(row) for _, reference in check.traits.references]


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _of_steps(place: str, spec: CheckSpec, rows: Sequence[Mapping[str, Any]]) -> list[Finding]:
    assert spec.subject is not None  # noqa: S101  (the caller has looked)
    texts = [row for row in rows if row[COMPLETION] is not None]
    without_value = NOTHING + str(spec.subject.source)  # told of the reference
    readings = [reading for row in texts if (reading := spec.subject.row(row)).nothing != without_value]
    problems = Counter(
        reading.error or (f"`{reading.nothing.removeprefix(NOTHING)}` finds nothing" if reading.nothing else "")
        for reading in readings
    )
    return [
        Finding(place, f"{problem} in {_share(number, texts)}", is_doubtful=number == len(texts))
        for problem, number in problems.most_common()
        if problem
    ]
