"""Print alerts of tripwires and what an audit found; control characters from data are escaped."""

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from assay.errors import counted, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.insight.wires import Alert

__all__ = ["print_alerts", "print_notes"]


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
        table.add_column(printable(name), justify=justify, overflow="fold")
    return table


def _row(table: Table, *cells: Any) -> None:
    table.add_row(*(Text(printable(str(cell))) for cell in cells))
