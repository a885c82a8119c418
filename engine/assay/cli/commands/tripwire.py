"""``assay tripwire``: facts about the rewards of training steps that somebody should look at."""

import json
from typing import Annotated

import typer

from assay.cli.app import command, to_stderr
from assay.errors import FailedRunError, InputError, did_you_mean, listed
from assay.system.stdout import write_data

__all__ = ["tripwire"]

_EXAMPLES = """\b
Examples:
  assay tripwire rewards.parquet
  assay tripwire rewards.parquet --limits limits.yaml --warn-only"""


@command(epilog=_EXAMPLES, modules=("assay.cli.audits", "assay.insight.wires"))
def tripwire(
    result: Annotated[
        str, typer.Argument(help="Rewards that assay score wrote: a parquet file, or a folder of parts.")
    ],
    *,
    by: Annotated[str, typer.Option(help="Column with the training step.", metavar="COLUMN")] = "step",
    limits: Annotated[
        str | None,
        typer.Option(help="YAML, JSON or TOML: for each wire a number, several by name, or false.", metavar="FILE"),
    ] = None,
    warn_only: Annotated[bool, typer.Option("--warn-only", help="End with exit code 0 in spite of alerts.")] = False,
    as_data: Annotated[bool, typer.Option("--json", help="Print the alerts as JSON on stdout.")] = False,
) -> None:
    """Look for steps at which rewards need a look: all 0 or 1, flat groups, errors, length, drift, jumps, stuck checks."""
    from assay.cli.audits import print_alerts, print_notes
    from assay.insight.results import open_result
    from assay.insight.wires import Tripwires

    wires = Tripwires(limits, by=by)
    opened = open_result(result)
    if by not in opened.schema:
        hint = did_you_mean(by, opened.schema) or f"Columns: {listed(list(opened.schema))}"
        raise InputError(f"{result}: no column `{by}` with the step of each row.", hint)
    alerts = wires.update(opened)
    if as_data:
        data = {
            "insight": 1,
            "by": by,
            "steps": wires.steps,
            "alerts": [alert.as_json() for alert in alerts],
            "limits": wires.limits,
            "notes": list(wires.notes),
        }
        write_data(json.dumps(data, ensure_ascii=False, allow_nan=False) + "\n")
    else:
        print_alerts(to_stderr(), alerts, wires.steps, by)
        print_notes(to_stderr(), wires.notes)
    if alerts and not warn_only:
        raise typer.Exit(FailedRunError.exit_code)
