"""``assay verify``: whether a result is what its footer says."""

from typing import Annotated, Any

import typer

from assay.cli.app import command, import_checks, import_modules, to_stderr
from assay.errors import FailedRunError

_EXAMPLES = """\b
Examples:
  assay verify rewards.parquet
  assay verify rewards.parquet --sample all --root 9f0c… --rollouts moved.parquet"""


@command(epilog=_EXAMPLES, modules=("assay.cli.audits", "assay.insight.sealing"))
def verify(
    result: Annotated[
        str, typer.Argument(help="Rewards that assay score wrote: a parquet file, or a folder of parts.")
    ],
    *,
    rollouts: Annotated[
        list[str] | None,
        typer.Option(
            help="The rollouts, if they are elsewhere now; may be repeated, in the order of the run.", metavar="PATH"
        ),
    ] = None,
    tasks: Annotated[str | None, typer.Option(help="The task table, if it is elsewhere now.", metavar="PATH")] = None,
    sample: Annotated[
        str, typer.Option(help="Rows to score again: a number, a percentage, or all.", metavar="N|P%|all")
    ] = "10000",
    seed: Annotated[int, typer.Option(help="Seed of the sample.", metavar="N")] = 0,
    root: Annotated[
        str | None,
        typer.Option(help="The root that the content has to have, as assay score printed it.", metavar="HEX"),
    ] = None,
    any_version: Annotated[
        bool,
        typer.Option("--any-version", help="Go on if other versions of Assay or of its libraries made the result."),
    ] = False,
    modules: Annotated[
        list[str] | None,
        typer.Option("--import", help="Python module with the code that scored; may be repeated.", metavar="MODULE"),
    ] = None,
    checks: Annotated[
        list[str] | None,
        typer.Option(help="Check class that the result was made with; may be repeated.", metavar="MODULE:CLASS"),
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="PATH", help="Also write the findings: .html, .md or .json.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    as_data: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
) -> None:
    """Check a result against its footer: digests, inputs, verifiers, and rows that are scored again. Exits with 3 if anything differs."""
    from assay.cli.audits import verification_document
    from assay.cli.documents import check_out, deliver
    from assay.insight import sealing
    from assay.system.stdout import only_data

    path = check_out(out, overwrite=overwrite)
    options: dict[str, Any] = {"tasks": tasks, "sample": sample, "seed": seed, "root": root, "any_version": any_version}
    with only_data(), to_stderr().status("verifying"):
        import_modules(modules)
        found = sealing.verify(result, rollouts=rollouts or None, checks=import_checks(checks), **options)
    deliver(to_stderr(), found.as_json(), verification_document(found), out=path, as_data=as_data)
    if not found.intact:
        raise typer.Exit(FailedRunError.exit_code)
