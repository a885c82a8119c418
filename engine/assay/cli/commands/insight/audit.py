"""``assay audit``: score texts that deserve no reward."""

from typing import Annotated, Any

import typer

from assay.cli.app import command, import_checks, import_modules, takes, to_stderr
from assay.cli.arguments import AsData, Overwrite, TaskNames, names
from assay.errors import FailedRunError
from assay.options import FileOptions
from assay.system.stdout import only_data

_EXAMPLES = """\b
Examples:
  assay audit verifier.yaml rollouts.jsonl
  assay audit verifier.yaml rollouts.jsonl --max-passing 0 --max-free 0.2 --min-control 90%"""

_READING = (
    *("tasks", "mapping", "preset", "storage_options", "memory_limit", "utf8", "max_bad_rows", "max_ratio"),
    *("max_uncompressed", "verify_checksums", "skip_bad_files", "any_role", "verifier_name", "pass_threshold"),
)
_RUNNING = ("checks", "modules", "function_timeout", "regex_timeout", "max_concurrent")


@command(epilog=_EXAMPLES, modules=("assay.cli.audits", "assay.insight.auditing"))
@takes(FileOptions, *_READING, *_RUNNING)
def audit(
    spec: Annotated[str, typer.Argument(help="A verifier file; - for the functions that rows name.")],
    rollouts: Annotated[list[str], typer.Argument(help="Rollouts, as in score.")],
    *,
    sample: Annotated[int, typer.Option(help="Probe at most N tasks, evenly spaced.", metavar="N")] = 1000,
    probe: Annotated[
        str | None,
        typer.Option(help="JSONL with more probes: probe, class, completion, maybe task_id.", metavar="FILE"),
    ] = None,
    task: TaskNames = None,
    max_passing: Annotated[
        str | None,
        typer.Option(help="Exit with 3 if a hack passes on more than N (or P%) of its tasks.", metavar="N|P%"),
    ] = None,
    max_free: Annotated[
        float | None, typer.Option(help="Exit with 3 if a free probe earns more than X on average.", metavar="X")
    ] = None,
    min_control: Annotated[
        str | None, typer.Option(help="Exit with 3 if a control passes on less than P% of its tasks.", metavar="P%")
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="PATH", help="Also write the audit: .html, .md or .json.")
    ] = None,
    overwrite: Overwrite = False,
    as_data: AsData = False,
    **options: Any,
) -> None:
    """Question a verifier: what empty, copied, disguised and swapped texts earn on each task, and which check stops them."""
    from assay.cli.audits import audit_document
    from assay.cli.documents import check_out, deliver
    from assay.insight.auditing import audit as question

    path = check_out(out, overwrite=overwrite)
    with only_data(), to_stderr().status("auditing"):
        import_modules(options.pop("modules"))
        options["checks"] = import_checks(options["checks"])
        result = question(
            None if spec == "-" else spec,
            rollouts,
            sample=sample,
            probes=probe or (),
            task=names(task),
            max_passing=max_passing,
            max_free=max_free,
            min_control=min_control,
            **options,
        )
    deliver(to_stderr(), result.as_json(), audit_document(result), out=path, as_data=as_data)
    if result.exceeded:
        raise typer.Exit(FailedRunError.exit_code)
