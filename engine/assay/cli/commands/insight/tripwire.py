"""``assay tripwire``: facts about the rewards of training steps that somebody should look at."""

from typing import Annotated

import typer

from assay.cli.app import command, to_stderr
from assay.cli.arguments import AsData, LengthColumn, Overwrite, ResultPath
from assay.errors import FailedRunError, InputError, did_you_mean, listed

_EXAMPLES = """\b
Examples:
  assay tripwire rewards.parquet
  assay tripwire rewards.parquet --limits limits.yaml --warn-only"""


@command(epilog=_EXAMPLES, modules=("assay.cli.audits", "assay.insight.wires"))
def tripwire(
    result: ResultPath,
    *,
    by: Annotated[str, typer.Option(help="Column with the training step.", metavar="COLUMN")] = "step",
    length: LengthColumn = None,
    limits: Annotated[
        str | None,
        typer.Option(help="YAML, JSON or TOML: for each wire a number, several by name, or false.", metavar="FILE"),
    ] = None,
    warn_only: Annotated[bool, typer.Option("--warn-only", help="End with exit code 0 in spite of alerts.")] = False,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="PATH", help="Also write the alerts: .html, .md or .json.")
    ] = None,
    overwrite: Overwrite = False,
    as_data: AsData = False,
) -> None:
    """Look for steps at which rewards need a look: all 0 or 1, flat groups, errors, length, drift, jumps, stuck checks."""
    from assay.cli.audits import alerts_document
    from assay.cli.documents import check_out, deliver
    from assay.insight.results import open_result
    from assay.insight.wires import Tripwires

    path = check_out(out, overwrite=overwrite)
    wires = Tripwires(limits, by=by, length=length)
    opened = open_result(result)
    if by not in opened.schema:
        hint = did_you_mean(by, opened.schema) or f"Columns: {listed(list(opened.schema))}"
        raise InputError(f"{result}: no column `{by}` with the step of each row.", hint)
    alerts = wires.update(opened)
    data = {
        "insight": 1,
        "by": by,
        "steps": wires.steps,
        "alerts": [alert.as_json() for alert in alerts],
        "limits": wires.limits,
        "notes": list(wires.notes),
    }
    document = alerts_document(alerts, wires.steps, by, wires.notes)
    deliver(to_stderr(), data, document, out=path, as_data=as_data)
    if alerts and not warn_only:
        raise typer.Exit(FailedRunError.exit_code)
