"""``assay bench``: measure what a verifier costs."""

import json
from typing import Annotated, Any

import typer

from assay.cli.app import command, import_checks, import_modules, takes, to_stderr
from assay.errors import AssayError
from assay.options import BenchOptions, FileOptions
from assay.system.stdout import only_data, write_data

_HINT = "Test custom checks with assay.testing.assert_check_conforms. A check also differs if its score changes from call to call."


@command(modules=("assay.cli.terminal", "assay.insight.bench"))
@takes(BenchOptions)
@takes(FileOptions, "modules", "checks")
def bench(
    spec: Annotated[str, typer.Argument(help="A verifier file.")],
    rollouts: Annotated[list[str], typer.Argument(help="Rollouts, as in score.")],
    *,
    as_data: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    **options: Any,
) -> None:
    """Measure a verifier: rows per second, compared to reading the column and to a loop over rows, and each check."""
    from assay.cli.terminal import print_bench, print_error
    from assay.insight.bench import bench as measure
    from assay.spec.verifier import load_verifier

    with only_data(), to_stderr().status("measuring"):
        import_modules(options.pop("modules"))
        verifier = load_verifier(spec, checks=import_checks(options.pop("checks")))
        result = measure(rollouts, verifier, **options)
    if as_data:
        write_data(json.dumps(result.as_json()) + "\n")
    else:
        print_bench(to_stderr(), result)
    if result.difference:
        error = AssayError(f"The columns and the loop over rows disagree: {result.difference}", _HINT)
        print_error(to_stderr(), error)
        raise typer.Exit(error.exit_code)
