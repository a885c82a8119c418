"""``assay score``: score rollouts."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from assay.cli.app import (
    RubricName,
    command,
    command_line,
    import_checks,
    import_modules,
    import_rubric,
    takes,
    to_stderr,
)
from assay.cli.arguments import names
from assay.errors import FailedRunError, UsageError
from assay.options import FileOptions
from assay.system.spool import spool_path, spooling
from assay.system.stdout import only_data, write_data

_EXAMPLES = """\b
Examples:
  assay score rollouts.jsonl --spec verifier.yaml --out rewards.parquet
  assay score 'runs/*.parquet' --rubric my_rewards:rubric --out rewards/ --function-timeout 5"""


@contextlib.contextmanager
def _rewards(names: Sequence[str], out: str | None, options: dict[str, Any]) -> Iterator[str | None]:
    """Yield where to write the rewards: a temporary file if they are read again and not kept; with the columns that are named."""
    if not names or out is not None:
        yield out
        return
    keep = options["keep"] or []
    options["keep"] = [*keep, *(f"+{name}" for name in names if name not in keep)] if "*" not in keep else keep
    with spooling():
        yield str(spool_path("rewards", ".parquet"))


def _add_groups(summary: Any, written: str | None, columns: Sequence[str]) -> None:
    """Add the means by group to a summary; if a column is not there, show what was scored before that is said."""
    from assay.cli.terminal import print_summary
    from assay.insight.summarizing import by_group

    try:
        summary.by = by_group(written, columns)
    except UsageError:
        print_summary(to_stderr(), summary)
        raise


@command(epilog=_EXAMPLES, modules=("assay.cli.terminal", "assay.runs.score_file"))
@takes(FileOptions)
def score(
    rollouts: Annotated[
        list[str],
        typer.Argument(
            help="Parquet, JSONL, JSON, Arrow, CSV or Excel: files, globs, a folder, URLs; - for JSONL on stdin."
        ),
    ],
    *,
    spec: Annotated[
        list[str] | None,
        typer.Option(
            "--spec",
            "-s",
            metavar="FILE",
            help="Verifier (JSON, YAML, TOML); may be repeated. Without one, rows carry their own.",
            rich_help_panel="Verifiers",
        ),
    ] = None,
    rubric: RubricName = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="PATH",
            help="Output: .parquet, .jsonl or .csv; FOLDER/ for parts; - for JSONL on stdout.",
            rich_help_panel="Output",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            help="Also print the mean reward and the pass rate for each value of these columns, with 95 % intervals over tasks.",
            metavar="NAME,…",
            rich_help_panel="Output",
        ),
    ] = None,
    as_data: Annotated[
        bool,
        typer.Option(
            "--json", help="Print the summary as JSON on stdout (stderr with --out -).", rich_help_panel="Output"
        ),
    ] = False,
    **options: Any,
) -> None:
    """Score rollouts with verifiers, with a rubric, or with functions that rows name."""
    from assay.cli.terminal import print_problems, print_summary
    from assay.runs.file_run import is_folder
    from assay.runs.score_file import score_file
    from assay.system.progress import progress

    if rubric is not None and spec:
        raise UsageError(
            "--rubric and --spec: use only one.",
            "To combine them, make the verifier a member: Rubric(funcs=[…, verifier])",
        )
    if options["workers"] is None and rubric is not None and options["function_timeout"] is not None:
        options["workers"] = 1  # only a process can be killed wherever a function hangs
    columns = names(by)
    if columns and out is not None and not is_folder(out) and not out.lower().endswith(".parquet"):
        raise UsageError(
            f"--by {by}: reads the rewards again, which are not parquet.", "Name --out NAME.parquet, or none."
        )
    lenient = options.pop("lenient")
    with only_data(), _rewards(columns, out, options) as written, progress("scoring") as tell:
        options["modules"] = import_modules(options["modules"])
        options["checks"] = import_checks(options["checks"])
        summary = score_file(
            rollouts,
            spec or None if rubric is None else import_rubric(rubric),
            written,
            command=command_line(),
            progress=tell,
            lenient=True,  # the summary and the exit code tell what a warning would
            **options,
        )
        if columns:
            _add_groups(summary, written, columns)
        if written != out:
            summary.out, summary.root = None, ""
    console = to_stderr()
    if as_data:
        print_problems(console, summary)
        as_text = json.dumps(summary.as_json())
        typer.echo(as_text, err=True) if out == "-" else write_data(f"{as_text}\n")
    else:
        print_summary(console, summary)
    if summary.problems and not lenient:
        hint = "exit code 3 because of the problems above; --lenient accepts them"
        console.print(hint, markup=False, highlight=False, soft_wrap=True)
    elif summary.unmet:
        console.print("exit code 3 because of the minimums above", markup=False, highlight=False, soft_wrap=True)
    if summary.unmet or (summary.problems and not lenient):
        raise typer.Exit(FailedRunError.exit_code)
