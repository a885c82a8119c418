"""Print alerts of tripwires and what an audit found; control characters from data are escaped."""

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from assay.errors import counted, printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.insight.auditing import Audit
    from assay.insight.wires import Alert

__all__ = ["print_alerts", "print_audit", "print_notes"]

_STOPPING = 3
"""Checks that are named for a probe."""


def print_notes(console: Console, notes: "Sequence[str]") -> None:
    """Print what the user should know."""
    for note in notes:
        console.print(Text.assemble(("note: ", "yellow"), printable(note)), soft_wrap=True)


def print_alerts(console: Console, alerts: "Sequence[Alert]", steps: int, by: str) -> None:
    """Print the alerts of a result, a line each."""
    if alerts:
        table = _table((by, "right"), ("wire", "left"), ("check", "left"), ("fact", "left"))
        for alert in alerts:
            _row(table, alert.step, alert.wire, alert.check or "", alert.said)
        console.print(table)
    console.print(f"{counted(steps, 'step')} · {counted(len(alerts), 'alert')}", highlight=False)


def _table(*columns: "tuple[str, Any]") -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, justify in columns:
        table.add_column(
            printable(name), justify=justify, overflow="fold", min_width=len(name) if justify == "right" else 10
        )
    return table


def _row(table: Table, *cells: Any) -> None:
    table.add_row(*(Text(printable(str(cell))) for cell in cells))


def print_audit(console: Console, audit: "Audit") -> None:
    """Print what each probe earns and what stops it, what each check lets through, and the limits that are exceeded."""
    real = audit.real
    console.print(
        f"{counted(real['tasks'], 'task')} · {counted(real['rows'], 'real rollout')} · mean reward "
        f"{_number(real['mean_reward'])} · pass rate {_percent(real['pass_rate'])}",
        highlight=False,
    )
    right = [(name, "right") for name in ("tasks", "mean", "passes", "beats", "centile")]
    table = _table(("probe", "left"), *right, ("stopped by", "left"))
    kind = ""
    for probe in audit.probes:
        if probe["class"] != kind:
            kind = probe["class"]
            table.add_row(Text(kind, "bold"))
        shares = (_percent(probe["pass_share"]), _percent(probe["beats_real"]), _number(probe["percentile"], ".1f"))
        _row(table, f"  {probe['id']}", f"{probe['tasks']:,}", _number(probe["mean_reward"]), *shares, _stopping(probe))
    console.print(table)
    _print_checks(console, audit)
    for line in audit.exceeded:
        console.print(Text.assemble(("limit exceeded: ", "bold red"), printable(line)), soft_wrap=True)


def _stopping(probe: "Mapping[str, Any]") -> str:
    names = probe["stopped_by"]
    more = [f"… {len(names) - _STOPPING} more"] if len(names) > _STOPPING else []
    errors = [f"({counted(probe['errors'], 'row')} with errors)"] if probe["errors"] else []
    return " ".join([", ".join([*names[:_STOPPING], *more]), *errors]).strip()


def _print_checks(console: Console, audit: "Audit") -> None:
    free = _number(audit.free_reward)
    lines = [f"free reward: {free}, the greatest mean of the free probes"]
    names = [check["check"] for check in audit.checks if check["free"]]
    lines += [f"every free probe passes {', '.join(names)}"] if names else []
    lines += [
        f"{item['check']} does not see its phrases as {item['probe']}: {item['tasks']} of {counted(item['of'], 'task')}"
        for item in audit.bypasses
    ]
    for line in lines:
        console.print(Text(printable(line)), soft_wrap=True)


def _number(value: float | None, form: str = ".4f") -> str:
    return "–" if value is None else format(value, form)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}".replace("%", " %")
