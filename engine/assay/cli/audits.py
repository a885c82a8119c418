"""What ``assay audit``, ``assay tripwire`` and ``assay verify`` found, for people."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from assay.errors import counted
from assay.writing.documents import Document, Lines, Table
from assay.writing.numbers import decimal, percent

if TYPE_CHECKING:
    from assay.insight.auditing import Audit
    from assay.insight.sealing import Verification
    from assay.insight.wires import Alert

_STOPPING = 3
"""Checks that are named for a probe."""
_CELL = 80
"""Characters of a cell that are shown."""


# ── assay audit ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def audit_document(audit: "Audit") -> Document:
    """Return an audit as a document: what each probe earns and what stops it, what each check lets through, and the limits."""
    real = audit.real
    facts = (
        f"{counted(real['tasks'], 'task')} · {counted(real['rows'], 'real rollout')} · mean reward "
        f"{decimal(real['mean_reward'])} · pass rate {percent(real['pass_rate'])}"
    )
    numbers = dict.fromkeys(("tasks", "mean", "passes", "beats", "centile"), True)
    tables = [
        Table({kind: False, **numbers, "stopped by": False}, [_probe(probe) for probe in probes])
        for kind, probes in groupby(audit.probes, key=lambda probe: str(probe["class"]))
    ]
    rest = [
        *_checks(audit),
        *(f"note: {note}" for note in audit.notes),
        *(f"exceeded: {line}" for line in audit.exceeded),
    ]
    return Document("assay audit", [Lines([facts]), *tables, Lines(rest)])


def _probe(probe: Mapping[str, Any]) -> list[str]:
    names = probe["stopped_by"]
    more = [f"… {len(names) - _STOPPING} more"] if len(names) > _STOPPING else []
    errors = [f"({counted(probe['errors'], 'row')} with errors)"] if probe["errors"] else []
    shares = (percent(probe["pass_share"]), percent(probe["beats_real"]), decimal(probe["percentile"], ".1f"))
    stopping = " ".join([", ".join([*names[:_STOPPING], *more]), *errors]).strip()
    return [probe["id"], f"{probe['tasks']:,}", decimal(probe["mean_reward"]), *shares, stopping]


def _checks(audit: "Audit") -> list[str]:
    names = [check["check"] for check in audit.checks if check["free"]]
    through: dict[str, list[str]] = {}
    for item in audit.bypasses:
        tasks = f"{item['probe']} on {item['tasks']:,} of {counted(item['of'], 'task')}"
        through.setdefault(item["check"], []).append(tasks)
    return [
        f"free reward: {decimal(audit.free_reward)}, the greatest mean of the free probes",
        *([f"every free probe passes {', '.join(names)}"] if names else []),
        *(
            f"{probe['id']} earns more than the best real completion on {probe['gains']:,} of {counted(probe['tasks'], 'task')}"
            for probe in audit.probes
            if probe["class"] == "must not gain" and probe["gains"]
        ),
        *(f"{check} does not see its phrases in disguise: {', '.join(tasks)}" for check, tasks in through.items()),
    ]


# ── assay tripwire ──────────────────────────────────────────────────────────────────────────────────────────────────────


def alerts_document(alerts: "Sequence[Alert]", steps: int, by: str, notes: Sequence[str]) -> Document:
    """Return alerts as a document, a line each."""
    rows = [[str(alert.step), alert.wire, alert.check or "", alert.said] for alert in alerts]
    columns = {by: True, "wire": False, "check": False, "fact": False}
    lines = [f"{counted(steps, 'step')} · {counted(len(alerts), 'alert')}", *(f"note: {note}" for note in notes)]
    return Document("assay tripwire", [*([Table(columns, rows)] if rows else []), Lines(lines)])


# ── assay verify ────────────────────────────────────────────────────────────────────────────────────────────────────────


def verification_document(verification: "Verification") -> Document:
    """Return a verification as a document: what was looked at, what differs, and what a sample can miss."""
    head = [f"{counted(verification.rows, 'row')} · root {verification.root}", *_unlike(verification)]
    rows = [
        [f"{cell['row']:,}", *(_cut(cell[name]) for name in ("column", "stored", "rescored"))]
        for cell in verification.cells
    ]
    cells = Table({"row": True, "column": False, "stored": False, "rescored": False}, rows)
    notes = [f"note: {note}" for note in verification.notes]
    end = "intact" if verification.intact else "not what its footer says"
    return Document("assay verify", [Lines(head), *([cells] if rows else []), Lines([*notes, end])])


def _unlike(verification: "Verification") -> list[str]:
    names = verification.columns_differ
    columns = f"not as written: {', '.join(names)}" if names else "columns: as they were written"
    root = ["root: another than was demanded"] if verification.root_differs else []
    files = [f"{entry['name']}: the same by {entry['by']}" for entry in verification.inputs]
    others = [verifier["id"] for verifier in verification.verifiers if not verifier["same"]]
    same = ["verifiers: as the footer says"] if verification.verifiers and not others else []
    verifiers = [f"verifiers: not what the footer says: {', '.join(others)}"] if others else same
    return [columns, *root, *files, *verifiers, *_sample(verification)]


def _sample(verification: "Verification") -> list[str]:
    if verification.misses_up_to is None:
        return []
    differ = verification.cells_differ
    found = f"{counted(differ, 'cell')} differ{'s' * (differ == 1)}" if differ else "no cell differs"
    share = f"{verification.misses_up_to:.2%}".replace("%", " %")
    chance = f"; if up to {share} of the rows were altered, such a sample misses them with a chance of 5 %"
    chance = chance if verification.misses_up_to else ""
    return [f"scored again: {verification.sampled:,} of {counted(verification.rows, 'row')}, {found}{chance}"]


def _cut(value: Any) -> str:
    text = "null" if value is None else str(value)
    return text if len(text) <= _CELL else f"{text[:_CELL]}…"
