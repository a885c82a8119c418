"""The command that measures: ``assay bench``."""

import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from assay.cliapp import Modules, app, command, import_modules, read_mapping, to_stderr
from assay.errors import printable
from assay.stdout import only_data

if TYPE_CHECKING:
    from assay.bench import Bench

__all__ = ["bench"]

_FEW = 5_000
"""Rows below which a run costs more than its rows do."""


@app.command()
@command
def bench(
    spec: Annotated[str, typer.Argument(help="A verifier file.")],
    rollouts: Annotated[list[str], typer.Argument(help="Rollouts, as in score.")],
    *,
    tasks: Annotated[str | None, typer.Option(help="Task table of those rollouts.")] = None,
    mapping: Annotated[list[str] | None, typer.Option("--map", help="NAME=COLUMN, as in score.")] = None,
    rows: Annotated[int | None, typer.Option(min=1, help="Measure on the first rows only.")] = None,
    modules: Modules = None,
    as_data: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
) -> None:
    """Measure what a verifier costs: rows a second, beside reading the column and the loop over rows, and each check."""
    from assay.bench import bench as measured

    with only_data(), to_stderr().status("measuring"):
        import_modules(modules or [])
        found = measured(rollouts, spec, tasks=tasks, mapping=read_mapping(mapping or []), rows=rows)
    if as_data:
        typer.echo(json.dumps(found.as_json()))
    else:
        _print(to_stderr(), found)
    if found.difference:
        said = f"error: the columns and the loop over rows disagree: {printable(found.difference)}"
        to_stderr().print(Text(said, "bold red"), soft_wrap=True)
        raise typer.Exit(1)


def _print(console: Console, found: "Bench") -> None:
    loop = found.loop_seconds / found.loop_rows * 1e6
    for said in (
        f"{found.rows:,} rows · {found.rows_per_second:,.0f} rows/s · {found.mb_per_second:,.0f} MB/s of text",
        f"{found.times_floor:.2f} × reading the column ({found.floor_seconds:.3g} s)",
        f"{found.times_faster_than_loop:.1f} × as fast as the loop over rows ({loop:,.1f} µs a row, on {found.loop_rows:,} rows)",
    ):
        console.print(said, highlight=False, soft_wrap=True)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("check", "type", "ns/row", "runs as"):
        table.add_column(name, justify="right" if name == "ns/row" else "left", overflow="fold")
    for one in found.checks:
        cells = (one.id, one.type, f"{one.ns_per_row:,.0f}", one.runs_as)
        table.add_row(*(Text(printable(cell)) for cell in cells))
    console.print(table)
    if found.rows < _FEW:
        console.print(
            f"note: with {found.rows:,} rows these are mostly what any run costs; measure on more", highlight=False
        )
    console.print(
        f"Each check alone, on {found.alone_rows:,} rows in memory, less the {found.base_ns_per_row:,.0f} ns/row of a plan whose "
        "check does nothing; what several checks share is counted in each.",
        highlight=False,
        soft_wrap=True,
    )
