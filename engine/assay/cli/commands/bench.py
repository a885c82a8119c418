"""``assay bench``: what a verifier costs."""

import json
from typing import Annotated, Any

import typer

from assay.cli.app import command, import_modules, takes, to_stderr
from assay.errors import AssayError
from assay.options import BenchOptions, FileOptions
from assay.system.stdout import only_data, write_data

__all__ = ["bench"]

_HINT = "A check of your own? assay.testing.assert_check_conforms tells more. One whose score changes from call to call differs, too."


@command()
@takes(BenchOptions)
@takes(FileOptions, "modules")
def bench(
    spec: Annotated[str, typer.Argument(help="A verifier file.")],
    rollouts: Annotated[list[str], typer.Argument(help="Rollouts, as in score.")],
    *,
    as_data: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    **options: Any,
) -> None:
    """Measure what a verifier costs: rows a second, beside reading the column and the loop over rows, and each check."""
    from assay.cli.terminal import print_bench, print_error
    from assay.insight.bench import bench as measured

    with only_data(), to_stderr().status("measuring"):
        import_modules(options.pop("modules"))
        found = measured(rollouts, spec, **options)
    if as_data:
        write_data(json.dumps(found.as_json()) + "\n")
    else:
        print_bench(to_stderr(), found)
    if found.difference:
        wrong = AssayError(f"The columns and the loop over rows disagree: {found.difference}", _HINT)
        print_error(to_stderr(), wrong)
        raise typer.Exit(wrong.exit_code)
