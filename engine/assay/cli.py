"""The command line: ``assay score | check | explain | checks | schema``.

Data goes to standard output only when asked for, progress and summaries to standard error. Exit codes: 0 ok, 1 internal or
the disk, 2 bad usage, spec or input, 3 too many errors, 130 interrupted.
"""

import contextlib
import functools
import importlib
import io
import json
import os
import shlex
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from assay._version import __version__
from assay.errors import AssayError, AssayWarning, SpecError, UsageError, printable, said_by
from assay.fns import list_fns
from assay.listing import as_json, as_markdown
from assay.rollouts import Rollouts, scan
from assay.run import score_file
from assay.schema import json_schema
from assay.score import prepare
from assay.spec import VerifierSpec, load_verifier, load_verifiers
from assay.terminal import print_error, print_explanation, print_listing, print_summary, print_warning
from assay.testing import assert_plan_conforms, hostile_texts
from assay.verifiers import list_verifiers

__all__ = ["app", "main"]

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Score millions of LLM rollouts in one pass.",
)

_Modules = Annotated[
    list[str] | None,
    typer.Option("--import", help="Python module that registers functions or verifier classes; may be repeated."),
]
_SAMPLES = 200
"""Rows of the dry run of ``assay check``."""


def _to_stderr() -> Console:
    return Console(stderr=True)


def _show(render: Callable[[Console], None]) -> None:
    """Print on standard output what a function renders; a closed pipe is for ``_command`` to see, not for rich."""
    terminal = sys.stdout.isatty()
    text = io.StringIO()
    render(Console(file=text, force_terminal=terminal, width=None if terminal else 160))
    typer.echo(text.getvalue(), nl=False, color=terminal)


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning before the run, as one line."""
    print_warning(_to_stderr(), str(message))


def _command(function: Callable[..., None]) -> Callable[..., None]:
    """Turn what may go wrong into a message and an exit code."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", AssayWarning)
                warnings.showwarning = _warn
                function(*args, **kwargs)
        except AssayError as wrong:
            print_error(_to_stderr(), wrong)
            raise typer.Exit(wrong.exit_code) from None
        except KeyboardInterrupt:
            _to_stderr().print("interrupted; nothing was written")
            raise typer.Exit(130) from None
        except BrokenPipeError:
            # whoever read the pipe has had enough; keep the interpreter from flushing into it again
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except (pl.exceptions.PanicException, MemoryError) as wrong:
            _to_stderr().print(f"internal error: {type(wrong).__name__}: {printable(str(wrong))}", markup=False)
            raise typer.Exit(1) from None

    return run


def _version(*, value: bool) -> None:
    if value:
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


@app.command()
@_command
def score(
    rollouts: Annotated[
        list[str], typer.Argument(help="Parquet, JSONL, Arrow or CSV: files, globs, a folder; - for JSONL on stdin.")
    ],
    *,
    spec: Annotated[
        list[str] | None,
        typer.Option(
            "--spec", "-s", help="A verifier (JSON, YAML, TOML); may be repeated. None: the rows carry their own."
        ),
    ] = None,
    verifier_name: Annotated[
        str | None, typer.Option("--verifier-name", help="The function of rows whose verifier names none.")
    ] = None,
    pass_threshold: Annotated[
        float | None, typer.Option(help="Reward from which on a row with its own verifier passes. [default: 1.0]")
    ] = None,
    modules: _Modules = None,
    tasks: Annotated[str | None, typer.Option(help="Task table joined on task_id: a file or a Harbor folder.")] = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", help=".parquet, .jsonl or .csv; - for JSONL on stdout.")
    ] = None,
    mapping: Annotated[
        list[str] | None, typer.Option("--map", help="NAME=COLUMN: read COLUMN as NAME; may be repeated.")
    ] = None,
    keep: Annotated[list[str] | None, typer.Option(help="Input columns to pass through, separated by commas.")] = None,
    details: Annotated[bool, typer.Option("--details/--no-details", help="Columns for verifiers and checks.")] = True,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse unknown check types and broken checks.")] = False,
    limit: Annotated[int | None, typer.Option(min=0, help="Score the first rows only.")] = None,
    max_errors: Annotated[str | None, typer.Option(help="Stop above so many rows with errors: N or P%.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing output.")] = False,
    raw_csv: Annotated[
        bool, typer.Option("--raw-csv", help="Do not defuse CSV cells that look like formulas.")
    ] = False,
    as_data: Annotated[
        bool, typer.Option("--json", help="Print the summary as JSON on stdout (stderr with --out -).")
    ] = False,
) -> None:
    """Score rollouts with one or more verifiers, or with the functions that their rows name."""
    _import(modules or [])
    with _progress() as progress:
        summary = score_file(
            rollouts,
            spec or None,
            out,
            tasks=tasks,
            verifier_name=verifier_name,
            pass_threshold=pass_threshold,
            mapping=_mapping(mapping or []),
            keep=None if keep is None else [name for group in keep for name in group.split(",") if name],
            details=details,
            strict=strict,
            limit=limit,
            max_errors=max_errors,
            overwrite=overwrite,
            raw_csv=raw_csv,
            command=shlex.join(["assay", *sys.argv[1:]]),
            progress=progress,
        )
    if as_data:
        typer.echo(json.dumps(summary.as_json()), err=out == "-")
    else:
        print_summary(_to_stderr(), summary)


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[int, int | None], None] | None]:
    """A progress bar, where standard error is a terminal."""
    console = _to_stderr()
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("scoring"), BarColumn(), TextColumn("{task.completed:,.0f} rows"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("scoring", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _import(modules: list[str]) -> None:
    """Import what the caller names on the command line, and nothing that a spec or a row names."""
    if modules:
        sys.path.insert(0, str(Path.cwd()))  # as `python -m` does
    for name in modules:
        try:
            importlib.import_module(name)
        except (Exception, SystemExit) as wrong:  # noqa: BLE001  (a module may raise anything)
            raise UsageError(f"--import {name}: {said_by(wrong)}") from None


def _mapping(given: list[str]) -> dict[str, str]:
    found = {}
    for one in given:
        name, equals, column = one.partition("=")
        if not (name and equals and column):
            raise UsageError(f"--map {one}: expected NAME=COLUMN.", "For example --map completion=response")
        found[name] = column
    return found


@app.command()
@_command
def check(
    specs: Annotated[list[str], typer.Argument(help="VerifierSpec files.")],
    *,
    rollouts: Annotated[
        str | None, typer.Option(help="Rollouts to try the verifiers on, besides the built-in texts.")
    ] = None,
    tasks: Annotated[str | None, typer.Option(help="Task table of those rollouts.")] = None,
    mapping: Annotated[list[str] | None, typer.Option("--map", help="NAME=COLUMN, as in score.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Unknown check types are errors too.")] = False,
    modules: _Modules = None,
) -> None:
    """Validate verifiers, list every problem, and try them on sample rows."""
    _import(modules or [])
    console = _to_stderr()
    refused = False
    for path in specs:
        try:
            verifier = _checked(path, strict=strict)
        except SpecError as wrong:
            print_error(console, wrong)
            refused = True
            continue
        for one in verifier.checks:
            if one.note:
                print_warning(console, f"{path}: {one.id}: {one.note}")
        said = _dry_run(verifier, rollouts, tasks, _mapping(mapping or []))
        console.print(f"ok: {printable(path)}: {said}", markup=False, highlight=False, soft_wrap=True)
    if refused:
        raise typer.Exit(2)


def _checked(path: str, *, strict: bool) -> VerifierSpec:
    """Load a verifier that can be used in full; what is wrong with it is listed once, broken checks and unknown types included."""
    try:
        verifier = load_verifier(path, strict=strict)
    except SpecError:
        return load_verifier(path, strict=True)
    return load_verifier(path, strict=True) if any(one.broken for one in verifier.checks) else verifier


def _dry_run(verifier: VerifierSpec, rollouts: str | None, tasks: str | None, mapping: dict[str, str]) -> str:
    """Score sample rows both ways."""
    nothing = {"metadata": None, "expected_output_schema": None}
    rows: list[dict[str, Any]] = [{"completion": text, **nothing} for text in hostile_texts(_SAMPLES)]
    assert_plan_conforms([verifier], rows)
    said = f"{len(verifier.runnable)} checks, {len(rows)} sample texts scored the same by columns and by rows"
    if rollouts is None:
        return said
    source, plan = prepare(Rollouts(scan(rollouts, mapping=mapping).head(_SAMPLES), ()), (verifier,), tasks=tasks)
    rewards = plan.score(source.frame)["reward"]
    scored = len(rewards) - rewards.null_count()
    shown = f"{rewards.sum() / scored:.4f}" if scored else "–"
    return f"{said}; the first {len(rewards)} of {printable(rollouts)} have a mean reward of {shown}"


@app.command()
@_command
def explain(
    specs: Annotated[list[str], typer.Argument(help="VerifierSpec files.")],
    *,
    as_data: Annotated[bool, typer.Option("--json", help="Print JSON, with the canonical form.")] = False,
    modules: _Modules = None,
) -> None:
    """Show what each check compiles to, which engine answers and why."""
    _import(modules or [])
    loaded = load_verifiers([Path(one) for one in specs])
    if as_data:
        typer.echo(json.dumps([_explained(verifier) for verifier in loaded]))
        return
    for verifier in loaded:
        _show(functools.partial(print_explanation, verifier=verifier))


def _explained(verifier: VerifierSpec) -> dict[str, Any]:
    checks = [
        {"id": one.id, "type": one.type, "runs_as": one.check.explain() if one.check else one.note}
        for one in verifier.checks
    ]
    return {"id": verifier.id, "sha256": verifier.sha256, "canonical": json.loads(verifier.canonical), "checks": checks}


@app.command()
@_command
def checks(
    *,
    as_data: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table of the README.")] = False,
    modules: _Modules = None,
) -> None:
    """List the check types with their params, the functions that rows may name, and the verifier classes."""
    _import(modules or [])
    if markdown:
        typer.echo(as_markdown(), nl=False)
    elif as_data:
        typer.echo(json.dumps(as_json()))
    else:
        named = {
            "functions that rows may name (verifier.fn_name)": list_fns(),
            "verifier classes (kind)": list_verifiers(),
        }
        _show(functools.partial(print_listing, listing=as_json(), named=named))


@app.command()
@_command
def schema(*, modules: _Modules = None) -> None:
    """Print the JSON Schema (draft-07) of a verifier file."""
    _import(modules or [])
    typer.echo(json.dumps(json_schema(), indent=2))


def main() -> None:
    """Entry point of the ``assay`` command."""
    code = 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that drafts are removed on the way out
    try:
        app()
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else int(done.code is not None)
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    # NOTE: a run that was stopped leaves engine threads that may still call Python; an orderly end would abort under them.
    os._exit(code)
