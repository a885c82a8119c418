"""What the commands have in common: the app, messages and exit codes, modules to import, columns to rename."""

import functools
import importlib
import io
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.errors import AssayError, AssayWarning, UsageError, did_you_mean, printable, said_by, shown_path
from assay.stdout import open_console, write_data

if TYPE_CHECKING:
    from rich.console import Console

    from assay.rubric import Rubric

__all__ = [
    "Mapped",
    "Modules",
    "PresetName",
    "RubricName",
    "app",
    "command",
    "import_modules",
    "import_rubric",
    "read_mapping",
    "read_storage_options",
    "show",
    "to_stderr",
]

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Score millions of LLM rollouts in one pass.",
)

Modules = Annotated[
    list[str] | None,
    typer.Option("--import", help="Python module that registers functions or verifier classes; may be repeated."),
]

Mapped = Annotated[
    list[str] | None,
    typer.Option(
        "--map", help="NAME=COLUMN: read COLUMN as NAME; NAME=$.A.B[0] for what stands at a path. May be repeated."
    ),
]

PresetName = Annotated[
    str | None,
    typer.Option(
        "--preset",
        help="How the files are read: a name of `assay presets`, a .json file, or none. [default: recognised]",
    ),
]

RubricName = Annotated[
    str | None,
    typer.Option(help="module:attribute of an assay.Rubric, imported from the current folder or the path."),
]


def to_stderr() -> "Console":
    """A console on standard error."""
    return open_console(stderr=True)


def show(render: "Callable[[Console], None]") -> None:
    """Print on standard output what a function renders; a closed pipe is for ``command`` to see, not for rich."""
    terminal = sys.stdout is not None and sys.stdout.isatty()
    text = io.StringIO()
    render(open_console(file=text, force_terminal=terminal, width=None if terminal else 160))
    write_data(text.getvalue())


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning before the run, as one line."""
    from assay.terminal import print_warning

    print_warning(to_stderr(), str(message))


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Turn what may go wrong into a message and an exit code."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", AssayWarning)
                warnings.showwarning = _warn
                function(*args, **kwargs)
        except AssayError as wrong:
            from assay.terminal import print_error

            print_error(to_stderr(), wrong)
            raise typer.Exit(wrong.exit_code) from None
        except KeyboardInterrupt as stopped:
            said = str(stopped) or "interrupted; nothing was written"
            to_stderr().print(printable(said), markup=False, highlight=False, soft_wrap=True)
            raise typer.Exit(130) from None
        except BrokenPipeError:
            # whoever read the pipe has had enough; keep the interpreter from flushing into it again
            if sys.stdout is not None:
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except OSError as wrong:
            from assay.terminal import print_error

            print_error(to_stderr(), _of_the_system(wrong))
            raise typer.Exit(1) from None
        except _internal() as wrong:
            to_stderr().print(f"internal error: {type(wrong).__name__}: {printable(str(wrong))}", markup=False)
            raise typer.Exit(1) from None

    return run


def _of_the_system(error: OSError) -> AssayError:
    """What the system refused where nothing else was expected to be refused."""
    try:
        Path.cwd()
    except OSError:
        return AssayError("The current folder is gone.", "Change to one that is there.")
    named = f"{shown_path(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
    return AssayError(f"{named}{error.strerror or error}.")


def _internal() -> tuple[type[BaseException], ...]:
    """What is nobody's mistake but ours; asked for when something was raised, for it takes the engine."""
    from polars.exceptions import PanicException

    return PanicException, MemoryError


def import_modules(modules: list[str]) -> None:
    """Import what the caller names on the command line, and nothing that a spec or a row names."""
    if modules:
        sys.path.insert(0, str(Path.cwd()))  # as `python -m` does
    for name in modules:
        _imported(name, f"--import {name}")


def import_rubric(named: str) -> "Rubric":
    """The rubric of a name that the caller gives on the command line.

    Args:
        named: ``module:attribute``; the module is looked for in the current folder, too.

    Raises:
        UsageError: There is no such module or attribute, or it is no rubric.
    """
    from assay.rubric import Rubric

    module, colon, attribute = named.partition(":")
    if not (module and colon and attribute):
        raise UsageError(f"--rubric {named}: expected module:attribute.", "For example --rubric my_rewards:rubric")
    sys.path.insert(0, str(Path.cwd()))
    found = _imported(module, f"--rubric {named}")
    for name in attribute.split("."):
        if not hasattr(found, name):
            near = did_you_mean(name, [one for one in vars(found) if not one.startswith("_")])
            raise UsageError(f"--rubric {named}: {module} has no `{name}`.", near)
        found = getattr(found, name)
    found = getattr(found, "rubric", found)  # an environment has one
    if not isinstance(found, Rubric):
        raise UsageError(
            f"--rubric {named}: is {type(found).__name__}, not an assay.Rubric.",
            "Name the rubric itself, made at the top of the module.",
        )
    found.origin = named
    return found


def _imported(name: str, option: str) -> Any:
    try:
        return importlib.import_module(name)
    except BaseException as wrong:  # a module may raise anything
        from assay.limits import own_failure

        if not own_failure(wrong):
            raise
        raise UsageError(f"{option}: {said_by(wrong)}") from None


def read_mapping(given: list[str]) -> dict[str, str]:
    """``NAME=COLUMN`` and ``NAME=$.PATH`` options as a mapping.

    Raises:
        UsageError: One is not of that form.
    """
    found = {}
    for one in given:
        name, equals, column = one.partition("=")
        if not (name and equals and column):
            raise UsageError(f"--map {one}: expected NAME=COLUMN.", "For example --map completion=response")
        found[name] = column
    return found


def read_storage_options(given: list[str]) -> dict[str, str]:
    """``KEY=VALUE`` options as a mapping.

    Raises:
        UsageError: One is not of that form; its value is not shown, for it may be secret.
    """
    pairs = [one.partition("=") for one in given]
    if not all(name and equals and value for name, equals, value in pairs):
        raise UsageError("--storage-option: expected KEY=VALUE.", "For example --storage-option aws_region=eu-west-1")
    return {name: value for name, _, value in pairs}
