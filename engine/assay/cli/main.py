"""The command line: ``assay score | check | explain | checks | schema | presets | bench``.

Data goes to standard output only when asked for, progress and summaries to standard error. Exit codes: 0 ok, 1 internal or
the disk, 2 bad usage, spec or input, 3 too many errors or bad rows, 130 interrupted.
"""

import contextlib
import json
import os
import shlex
import signal
import sys
import threading
from typing import Annotated

import typer

from assay._version import __version__
from assay.calls.limits import MAX_CONCURRENT, REGEX_TIMEOUT
from assay.cli import bench as clibench
from assay.cli import presets as clipresets
from assay.cli import specs as clispecs
from assay.cli.app import (
    Mapped,
    Modules,
    PresetName,
    RubricName,
    app,
    command,
    import_modules,
    import_rubric,
    read_mapping,
    read_storage_options,
    to_stderr,
)
from assay.errors import UsageError, path_text, printable
from assay.system.processes import open_standard_streams
from assay.system.quantities import read_size
from assay.system.redaction import redacted_command
from assay.system.signals import IMPATIENCE, KEPT, LEFTOVERS, Impatience
from assay.system.stdout import only_data, open_streams, write_data

__all__ = ["app", "clibench", "clipresets", "clispecs", "main"]


def _version(*, value: bool) -> None:
    if value:
        import polars as pl

        typer.echo(f"assay {__version__} (polars {pl.__version__})")
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=lambda value: _version(value=value), is_eager=True, help="Print the versions."
        ),
    ] = False,
) -> None:
    del version


_Timeout = Annotated[
    float | None,
    typer.Option(
        help="Seconds that a call of Python may take: of a rubric's function, of one that rows name, of a class."
    ),
]
_Threshold = Annotated[
    float | None,
    typer.Option(help="Reward from which on a row with its own verifier, or of a rubric, passes. [default: 1.0]"),
]
_Workers = Annotated[
    int | None,
    typer.Option(help="Processes for the functions of the rubric. [default: 0, this one; 1 with --function-timeout]"),
]
_Match = Annotated[
    float, typer.Option(help="Seconds for one match of a pattern that only backtracking can tell; 0 for no limit.")
]
_Specs = Annotated[
    list[str] | None,
    typer.Option(
        "--spec", "-s", help="A verifier (JSON, YAML, TOML); may be repeated. None: the rows carry their own."
    ),
]
_FnName = Annotated[str | None, typer.Option("--verifier-name", help="The function of rows whose verifier names none.")]
_BadRows = Annotated[
    str | None,
    typer.Option(help="Leave so many lines unscored that are no JSON objects: N or P%. [default: 0]"),
]
_Out = Annotated[
    str | None,
    typer.Option("--out", "-o", help=".parquet, .jsonl or .csv; FOLDER/ for parts; - for JSONL on stdout."),
]

_RawCsv = Annotated[bool, typer.Option("--raw-csv", help="Do not defuse CSV cells that look like formulas.")]
_AsData = Annotated[bool, typer.Option("--json", help="Print the summary as JSON on stdout (stderr with --out -).")]
_Isolate = Annotated[
    bool, typer.Option("--isolate/--no-isolate", help="Score the parts of FOLDER/ in a process of their own.")
]
_Memory = Annotated[
    str | None, typer.Option(help="Memory to work in, such as 2GB. [default: 640 MB and 128 MB a core]")
]
_Utf8 = Annotated[str, typer.Option(help="Bytes that are no UTF-8: replace or strict.", metavar="replace|strict")]
_Ratio = Annotated[float, typer.Option(help="Refuse a file that becomes so many times larger when read.")]
_Most = Annotated[str | None, typer.Option(help="Refuse a file of more bytes when read, such as 100GB.")]
_Verify = Annotated[bool, typer.Option("--verify-checksums", help="Compare pages of parquet with their checksums.")]
_Skip = Annotated[bool, typer.Option("--skip-bad-files", help="Leave out files that cannot be opened.")]
_AtOnce = Annotated[
    int, typer.Option(help="Rows that asynchronous functions of the rubric work on at once; 0 for all.")
]
_EngineName = Annotated[str, typer.Option("--engine", help="Where the parts of FOLDER/ are scored: local or ray.")]
_Address = Annotated[
    str | None, typer.Option(help="HOST:PORT of a Ray cluster. [default: $RAY_ADDRESS, else a Ray of this machine]")
]
_Storage = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="Of the store that URLs name; may be repeated. Other users see it: a secret is better kept in the environment.",
    ),
]


@app.command()
@command
def score(
    rollouts: Annotated[
        list[str],
        typer.Argument(help="Parquet, JSONL, Arrow or CSV: files, globs, a folder, URLs; - for JSONL on stdin."),
    ],
    *,
    spec: _Specs = None,
    rubric: RubricName = None,
    verifier_name: _FnName = None,
    pass_threshold: _Threshold = None,
    modules: Modules = None,
    tasks: Annotated[str | None, typer.Option(help="Task table joined on task_id: a file or a Harbor folder.")] = None,
    out: _Out = None,
    mapping: Mapped = None,
    preset: PresetName = None,
    keep: Annotated[list[str] | None, typer.Option(help="Input columns to pass through, separated by commas.")] = None,
    details: Annotated[bool, typer.Option("--details/--no-details", help="Columns for verifiers and checks.")] = True,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse unknown check types and broken checks.")] = False,
    limit: Annotated[int | None, typer.Option(min=0, help="Score the first rows only.")] = None,
    max_errors: Annotated[str | None, typer.Option(help="Stop above so many rows with errors: N or P%.")] = None,
    max_bad_rows: _BadRows = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing output.")] = False,
    part_size: Annotated[str, typer.Option(help="Input, uncompressed, for one part of FOLDER/.")] = "256MB",
    isolate: _Isolate = True,
    engine: _EngineName = "local",
    ray_address: _Address = None,
    raw_csv: _RawCsv = False,
    function_timeout: _Timeout = None,
    workers: _Workers = None,
    max_concurrent: _AtOnce = MAX_CONCURRENT,
    regex_timeout: _Match = REGEX_TIMEOUT,
    storage_option: _Storage = None,
    memory_limit: _Memory = None,
    utf8: _Utf8 = "",
    max_ratio: _Ratio = 200,
    max_uncompressed: _Most = None,
    verify_checksums: _Verify = False,
    skip_bad_files: _Skip = False,
    as_data: _AsData = False,
) -> None:
    """Score rollouts with one or more verifiers, with a rubric, or with the functions that their rows name."""
    from assay.cli.terminal import print_summary
    from assay.runs.score_file import score_file
    from assay.system.progress import progress

    if rubric is not None and spec:
        raise UsageError(
            "--rubric and --spec: one of them judges a run.", "Make the verifier a member: Rubric(funcs=[…, verifier])"
        )
    with only_data(), progress("scoring") as tell:
        import_modules(modules or [])
        summary = score_file(
            rollouts,
            spec or None if rubric is None else import_rubric(rubric),
            out,
            tasks=tasks,
            verifier_name=verifier_name,
            pass_threshold=pass_threshold,
            mapping=read_mapping(mapping or []),
            preset=preset,
            keep=None if keep is None else [name for group in keep for name in group.split(",") if name],
            details=details,
            strict=strict,
            limit=limit,
            max_errors=max_errors,
            max_bad_rows=max_bad_rows,
            overwrite=overwrite,
            raw_csv=raw_csv,
            function_timeout=function_timeout,
            max_concurrent=max_concurrent,
            # a process can be killed, whatever a function hangs in
            workers=int(function_timeout is not None and rubric is not None) if workers is None else workers,
            regex_timeout=regex_timeout,
            memory_limit=memory_limit,
            utf8=utf8,
            max_ratio=max_ratio,
            max_uncompressed=max_uncompressed,
            verify_checksums=verify_checksums,
            skip_bad_files=skip_bad_files,
            part_bytes=read_size("--part-size", part_size),
            isolate=isolate,
            modules=modules or (),
            engine=engine,
            ray_address=ray_address,
            storage_options=read_storage_options(storage_option or []),
            command=path_text(shlex.join(["assay", *redacted_command(sys.argv[1:])])),
            progress=tell,
        )
    if as_data and out != "-":
        write_data(json.dumps(summary.as_json()) + "\n")
    elif as_data:
        typer.echo(json.dumps(summary.as_json()), err=True)
    else:
        print_summary(to_stderr(), summary)


def _waits() -> None:
    said = "waiting for a function that does not return; Ctrl-C again ends at once"
    to_stderr().print(said, markup=False, highlight=False)


def _gives_up(number: int) -> None:
    """End without an end: the main thread waits for a function that does not return."""
    _leave_nothing()
    with contextlib.suppress(OSError, ValueError, AttributeError):
        said = KEPT[-1]() if KEPT else "interrupted; nothing was written"
        to_stderr().print(printable(said), markup=False, highlight=False, soft_wrap=True)
    os._exit(130 if number == signal.SIGINT else 143)


def _leave_nothing() -> None:
    for remove in LEFTOVERS:
        remove()


def main() -> None:
    """Entry point of the ``assay`` command."""
    code = 0
    open_standard_streams()
    open_streams()
    IMPATIENCE.append(Impatience(_waits, _gives_up))
    terminated = threading.Event()

    def terminate(*_: object) -> None:
        terminated.set()
        sys.exit(143)  # so that drafts are removed on the way out

    signal.signal(signal.SIGTERM, terminate)
    try:
        app()
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else int(done.code is not None)
    except OSError as error:  # the help and the version are printed by the library that reads the command line
        to_stderr().print(f"error: standard output: {error.strerror or error}.", markup=False, highlight=False)
        code = 1
    if code and terminated.is_set():  # the engine may tell of it as of an interrupt
        code = 143
    with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or never open
        sys.stdout.flush()
        sys.stderr.flush()
    _leave_nothing()
    # NOTE: a run that was stopped leaves engine threads that may still call Python; an orderly end would abort under them.
    os._exit(code)
