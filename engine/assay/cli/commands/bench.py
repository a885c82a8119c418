"""``assay bench``: measure what verifiers cost."""

import json
from typing import Annotated, Any

import typer

from assay.cli.app import RubricName, command, import_checks, import_modules, import_rubric, takes, to_stderr
from assay.errors import AssayError, UsageError
from assay.options import BenchOptions, FileOptions
from assay.system.stdout import only_data, write_data

_HINT = "Test custom checks with assay.testing.assert_check_conforms. A check also differs if its score changes from call to call."
_EXAMPLES = """\b
Examples:
  assay bench verifier.yaml rollouts.parquet
  assay bench rollouts.parquet --spec format.yaml --spec answer.yaml
  assay bench rollouts.parquet --rubric my_rewards.py:rubric"""


@command(epilog=_EXAMPLES, modules=("assay.cli.terminal", "assay.insight.bench"))
@takes(BenchOptions)
@takes(FileOptions, "modules")
def bench(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="[SPEC] ROLLOUTS…",
            help="A verifier, unless an option names it or rows carry their own; rollouts as in score, - for JSONL on stdin.",
        ),
    ],
    *,
    spec: Annotated[
        list[str] | None,
        typer.Option("--spec", "-s", metavar="FILE", help="Verifier; may be repeated.", rich_help_panel="Verifiers"),
    ] = None,
    rubric: RubricName = None,
    as_data: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    **options: Any,
) -> None:
    """Measure verifiers: rows per second, compared to reading the column and to a loop over rows, and each check."""
    from assay.cli.terminal import print_bench, print_error
    from assay.insight.bench import bench as measure

    if rubric is not None and spec:
        raise UsageError("--rubric and --spec: use only one.")
    named = bool(spec) or rubric is not None or options["verifier_name"] is not None or len(files) == 1
    first, rollouts = (None, files) if named else (files[:1], files[1:])
    with only_data(), to_stderr().status("measuring"):
        import_modules(options.pop("modules"))
        options["checks"] = import_checks(options["checks"])
        verifiers = import_rubric(rubric) if rubric is not None else spec or first
        result = measure(rollouts, verifiers, **options)
    if as_data:
        write_data(json.dumps(result.as_json()) + "\n")
    else:
        print_bench(to_stderr(), result)
    if result.difference:
        error = AssayError(f"The columns and the loop over rows disagree: {result.difference}", _HINT)
        print_error(to_stderr(), error)
        raise typer.Exit(error.exit_code)
