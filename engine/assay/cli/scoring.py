"""Commands that score: files, the samples that ship with Assay, a benchmark, a server."""

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.app import AsData, RubricName, command, command_line, option, say, to_stderr
from assay.cli.modules import import_checks, import_modules, import_rubric
from assay.errors import AssayError, FailedRunError, InputError, UsageError, path_text, shown_path
from assay.options import STRICT_HELP, BenchOptions, FileOptions, names
from assay.system.stdout import only_data, write_data

if TYPE_CHECKING:
    from assay.scoring.summary import Summary


def _begin_reading(
    rollouts: Sequence[str], out: str | None, limit: int | None, memory_limit: object, **_: object
) -> None:
    reads_here = out is None or out.endswith(".parquet")  # into a folder, another process reads
    if (
        len(rollouts) == 1
        and rollouts[0].endswith(".parquet")
        and reads_here
        and limit is None
        and memory_limit is None
    ):
        from assay.loading.formats.parquet import begin

        begin(Path(rollouts[0]))


@command(
    {FileOptions: ()},
    modules=("assay.cli.terminal", "assay.runs.score_file"),
    meanwhile=_begin_reading,
    epilog="""\b
Examples:
  assay score rollouts.jsonl --spec verifier.yaml --out rewards.parquet
  assay score 'runs/*.parquet' --rubric my_rewards:rubric --out rewards/ --function-timeout 5""",
)
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
        option(
            "Verifier: a file (JSON, YAML, TOML), or a registered name (ID, ID@N); may be repeated. Without one, rows carry their own.",
            "FILE",
            *("--spec", "-s"),
            rich_help_panel="Verifiers",
        ),
    ] = None,
    rubric: RubricName = None,
    out: Annotated[
        str | None,
        option(
            "Output: .parquet, .jsonl or .csv; FOLDER/ for parts; - for JSONL on stdout.",
            "PATH",
            *("--out", "-o"),
            rich_help_panel="Output",
        ),
    ] = None,
    by: Annotated[
        str | None,
        option(
            "Also print the mean reward and the pass rate for each value of these columns, with 95 % intervals over tasks.",
            "NAME,…",
            rich_help_panel="Output",
        ),
    ] = None,
    as_data: Annotated[
        bool,
        option("Print the summary as JSON on stdout (stderr with --out -).", None, "--json", rich_help_panel="Output"),
    ] = False,
    quiet: Annotated[
        bool, option("Show no progress and no findings.", None, "--quiet", "-q", rich_help_panel="Output")
    ] = False,
    **options: Any,
) -> None:
    """Score rollouts with verifiers, with a rubric, or with functions that rows name."""
    from assay.cli.terminal import print_document
    from assay.runs.file_run import is_folder
    from assay.runs.score_file import score_file
    from assay.writing.documents import Document, Lines
    from assay.writing.progress import progress

    if rubric is not None and spec:
        raise UsageError(
            "--rubric and --spec: use only one.",
            "To combine them, make the verifier a member: Rubric(funcs=[…, verifier])",
        )
    if options["workers"] is None and rubric is not None and options["function_timeout"] is not None:
        options["workers"] = 1  # only a process can be killed wherever a function hangs
    columns = names(by or ())
    if columns and out is not None and not is_folder(out) and not out.lower().endswith(".parquet"):
        raise UsageError(
            f"--by {by}: reads the rewards again, which are not parquet.", "Name --out NAME.parquet, or none."
        )
    lenient = options.pop("lenient")
    with (
        only_data(),
        _rewards(columns, out, options) as written,
        progress("scoring", show=not quiet, piped=True) as tell,
    ):
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
    if as_data:
        print_document(to_stderr(), Document("assay score", [Lines(summary.troubles)]))
        as_text = json.dumps(summary.as_json())
        typer.echo(as_text, err=True) if out == "-" else write_data(f"{as_text}\n")
    else:
        print_document(to_stderr(), summary.document())
        _tell_findings(summary, quiet=quiet)
    failed = bool(summary.problems) and not lenient
    if failed:
        say("exit code 3 because of the problems above; --lenient accepts them")
    elif summary.unmet:
        say("exit code 3 because of the limits above")
    if summary.unmet or failed:
        raise typer.Exit(FailedRunError.exit_code)


def _tell_findings(summary: "Summary", *, quiet: bool) -> None:
    """Print what the counts say needs a look first."""
    from assay.insight.findings.limits import may_tell

    if quiet or not may_tell(summary):
        return
    from assay.insight.findings.found import found_in_summary

    for finding in found_in_summary(summary)[:_FINDINGS]:
        say(f"▲ {finding.title}")


_FINDINGS = 2


@contextlib.contextmanager
def _rewards(names: Sequence[str], out: str | None, options: dict[str, Any]) -> Iterator[str | None]:
    if not names or out is not None:
        yield out
        return
    from assay.system.spool import spool_path, spooling

    keep = options["keep"] or []
    options["keep"] = [*keep, *(f"+{name}" for name in names if name not in keep)] if "*" not in keep else keep
    with spooling():
        yield str(spool_path("rewards", ".parquet"))


def _add_groups(summary: "Summary", written: str | None, columns: Sequence[str]) -> None:
    from assay.cli.terminal import print_document
    from assay.insight.summarizing import by_group

    try:
        summary.by = by_group(written, columns)
    except UsageError:
        print_document(to_stderr(), summary.document())
        raise


_PACKAGE = Path(__file__).resolve().parents[1]
_SAMPLES = (_PACKAGE / "samples", _PACKAGE.parents[1] / "specs" / "refund-quality")
"""Folders of the samples, in an installed package and in a checkout."""

_NEXT = """\
next:
  {assay} view {out}    # in the browser: what needs a look, and every row; Ctrl-C ends it
  {assay} init verifier.yaml    # write your own verifier
  {assay} score {samples}/rollouts.jsonl --spec verifier.yaml
  {assay} report {out} --out {page}{overwrite}    # the same page as a file"""


@command(modules=("assay.cli.terminal", "assay.runs.score_file"))
def demo(
    *,
    out: Annotated[str, option("Output file.", "PATH", "--out", "-o")] = "rewards.parquet",
    overwrite: Annotated[bool, option("Replace an existing result.", None, "--overwrite")] = False,
) -> None:
    """Score the sample rollouts that ship with Assay, and show what to try next."""
    from assay.cli.terminal import print_document
    from assay.runs.score_file import score_file

    samples = next((folder for folder in _SAMPLES if folder.is_dir()), None)
    if samples is None:
        raise InputError("This installation has no samples.", "Install Assay from its wheel.")
    samples = _as_typed(samples)
    rollouts, spec, tasks = samples / "rollouts.jsonl", samples / "refund-quality.json", samples / "tasks.jsonl"
    say(path_text(f"$ assay score {samples}/rollouts.jsonl --tasks {tasks} --spec {spec} --out {out}"))
    summary = score_file(rollouts, spec, out, tasks=tasks, overwrite=overwrite, command=command_line())
    print_document(to_stderr(), summary.document())
    assay = "assay" if shutil.which("assay") else _as_typed(Path(sys.argv[0]))
    paths = {"out": out, "page": Path(out).with_suffix(".html"), "samples": samples}
    again = " --overwrite" if overwrite else ""
    say(path_text(_NEXT.format(assay=assay, overwrite=again, **paths)))


def _as_typed(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


@command(
    {FileOptions: ("modules",), BenchOptions: ()},
    modules=("assay.cli.views", "assay.insight.bench"),
    epilog="""\b
Examples:
  assay bench verifier.yaml rollouts.parquet
  assay bench rollouts.parquet --spec format.yaml --spec answer.yaml
  assay bench rollouts.parquet --rubric my_rewards.py:rubric""",
)
def bench(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="[SPEC] ROLLOUTS",
            help="A verifier, unless an option names it or rows carry their own; rollouts as in score, - for JSONL on stdin.",
        ),
    ],
    *,
    spec: Annotated[
        list[str] | None,
        option("Verifier; may be repeated.", "FILE", "--spec", "-s", rich_help_panel="Verifiers"),
    ] = None,
    rubric: RubricName = None,
    as_data: AsData = False,
    **options: Any,
) -> None:
    """Measure verifiers: rows per second, compared to reading the column and to a loop over rows, and each check."""
    from assay.cli.terminal import print_document, print_error
    from assay.cli.views import bench_document
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
        print_document(to_stderr(), bench_document(result))
    if result.difference:
        hint = "Test custom checks with assay.testing.assert_check_conforms. A check also differs if its score changes from call to call."
        error = AssayError(f"The columns and the loop over rows disagree: {result.difference}", hint)
        print_error(to_stderr(), error)
        raise typer.Exit(error.exit_code)


_THREADS = "POLARS_MAX_THREADS"
"""Variable with the number of Polars' threads: for batches of tens of rows, to share the work takes longer than the work."""
_TOKEN = "ASSAY_TOKEN"  # noqa: S105  (the name of a variable)


@command({FileOptions: ("any_role", "modules", "checks")})
def serve(
    specs: Annotated[list[str], typer.Argument(help="Verifiers: files, or registered names.")],
    *,
    port: Annotated[int, option("Port to listen on; 0 for a free one.", min=0, max=65535)] = 8000,
    host: Annotated[str, option("Address to listen on; beyond this machine only with a token.")] = "127.0.0.1",
    token_file: Annotated[
        str | None,
        option(f"File with the token that requests must bring; by default ${_TOKEN}, if it is set.", "FILE"),
    ] = None,
    unscored: Annotated[float, option("Reward of an unscored query in /get_reward, which takes numbers only.")] = 0.0,
    max_body: Annotated[int, option("Maximum size of a request.", "MB", min=1)] = 32,
    max_values: Annotated[
        int,
        option("Maximum JSON values in a request; a larger one may have one for every 32 bytes.", "N", min=1),
    ] = 100_000,
    max_waiting: Annotated[
        int, option("Maximum rows that wait to be scored; a request beyond gets 503.", "ROWS", min=1)
    ] = 20_000,
    strict: Annotated[bool, option(STRICT_HELP)] = True,
    **options: Any,
) -> None:
    """Serve rewards over HTTP: POST rows to /reward, or OpenRLHF's queries to /get_reward; /health and /metrics."""
    os.environ.setdefault(_THREADS, "1")  # before Polars is imported
    from assay.adapters import reward_server
    from assay.scoring.batching import plan_of

    import_modules(options.pop("modules"))
    token = _token(token_file)
    checks = import_checks(options.pop("checks"))
    plan = plan_of(specs, checks=checks, strict=strict, **options)
    limits = reward_server.ServerLimits(body=max_body * 1_000_000, values=max_values, rows=max_waiting)
    app = reward_server.reward_app(plan, token=token, unscored=unscored, limits=limits)

    def tell(address: str) -> None:
        say(f"serving {', '.join(map(shown_path, specs))} on {address}")

    reward_server.serve(app, host=host, port=port, token=token, tell=tell)


def _token(path: str | None) -> str | None:
    if path is None:
        return os.environ.get(_TOKEN) or None
    try:
        token = Path(path).read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        raise UsageError(f"--token-file {path}: {getattr(error, 'strerror', None) or error}.") from None
    if not token:
        raise UsageError(f"--token-file {path}: the file is empty.")
    return token
