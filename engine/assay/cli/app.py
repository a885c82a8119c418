"""The command ``assay``: each of its commands is imported, and its options are built, when it is named."""

import contextlib
import functools
import gc
import importlib
import inspect
import io
import os
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core
import typer.main

from assay._version import __version__
from assay.errors import AssayError, AssayWarning, path_text, printable, shown_path
from assay.frozen import frozen
from assay.options import OWN, PANELS, Option, flag_of, options_of, signature_with
from assay.system.processes import sleeping_threads
from assay.system.redaction import redacted_command
from assay.system.signals import Stopped
from assay.system.stdout import open_console, write_data

if TYPE_CHECKING:
    from rich.console import Console

    from assay.writing.documents import Document

_COMMANDS = {
    "score": "scoring:score",
    "demo": "scoring:demo",
    "init": "specs:init",
    "check": "specs:check",
    "test": "testing:run",
    "explain": "specs:explain",
    "audit": "results:audit",
    "bench": "scoring:bench",
    "calibrate": "results:calibrate",
    "checks": "listings:checks",
    "diff": "results:diff",
    "export": "exporting:export",
    "forge": "results:forge",
    "graders": "listings:graders",
    "groups": "results:groups",
    "import": "specs:import_",
    "presets": "listings:presets",
    "report": "results:report",
    "schema": "listings:schema",
    "serve": "scoring:serve",
    "show": "results:show",
    "suspects": "results:suspects",
    "tripwire": "results:tripwire",
    "verifiers": "specs:verifiers",
    "verify": "results:verify",
    "view": "results:view",
    "whatif": "results:whatif",
}
"""The commands in the order of the help: the most important first. To add one, write a function and add a line here."""

_LOG_WIDTH = 160
"""Columns where there is no terminal."""

_SECTIONS = ("Arguments", *PANELS, OWN)
_LAST = {"out", "kind", "overwrite", "as_data", "warn_only"}
"""Options of output: the help of a command lists them behind those of its function that are in the same group."""


@frozen
class Command:
    """A function that is a command; its docstring is the help.

    Attributes:
        modules: Modules that it needs.
        meanwhile: Begins, given the arguments, what can be done while they are imported.
    """

    function: Callable[..., None]
    options: Mapping[type, Sequence[str]]
    modules: Sequence[str]
    epilog: str | None
    meanwhile: Callable[..., None] | None

    @property
    def summary(self) -> str:
        """The first sentence of the help."""
        return re.split(r"(?<=\.)\s", self.function.__doc__ or "", maxsplit=1)[0]

    def built(self, name: str) -> Any:
        """Return the command as click runs it."""
        function, modules = self.function, self.modules
        options = {
            option_name: pair
            for kind, names in self.options.items()
            for option_name, pair in options_of(kind).items()
            if pair[1].cli is not False and (not names or option_name in names)
        }

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> None:
            with _reported_errors():
                if self.meanwhile is not None:
                    self.meanwhile(**kwargs)
                _import_all(modules)
                for option_name, (_, option) in options.items():
                    if option.read and kwargs[option_name] is not None:
                        kwargs[option_name] = option.read(kwargs[option_name])
                function(*args, **kwargs)

        signature = signature_with(function, [_parameter(name, *pair) for name, pair in options.items()])
        if any(option.panel == OWN for _, option in options.values()):
            ordered = sorted(signature.parameters.values(), key=lambda parameter: parameter.name in _LAST)
            signature = signature.replace(parameters=ordered)
        run.__signature__ = signature  # type: ignore[attr-defined]
        run.__annotations__ = {name: parameter.annotation for name, parameter in signature.parameters.items()}
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
        alone.command(name, cls=_ClickCommand, epilog=self.epilog)(run)
        return typer.main.get_command(alone)


def command(
    options: Mapping[type, Sequence[str]] | None = None,
    *,
    modules: Sequence[str] = (),
    epilog: str | None = None,
    meanwhile: Callable[..., None] | None = None,
) -> Callable[[Callable[..., None]], Command]:
    """Make a function a command; the arguments are those of ``Command``."""
    return lambda function: Command(function, options or {}, modules, epilog, meanwhile)


def argument_of(param: Any) -> str:
    """Return a positional argument as the usage of its command shows it: ``RESULT``, ``[SPECS…]``."""
    shown = (param.metavar or param.name.upper()) + ("…" if param.nargs == -1 else "")
    return shown if param.required else f"[{shown}]"


class _ClickCommand(typer.core.TyperCommand):
    """A command whose help lists the options in groups, and names arguments without their Python types."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        arguments = [param for param in self.get_params(ctx) if param.param_type_name == "argument"]
        return [*map(argument_of, arguments), "[OPTIONS]"]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for param in self.params:
            param.process_value = functools.partial(_processed, param, param.process_value)  # type: ignore[method-assign]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        panels: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and param.param_type_name == "argument":
                panels.setdefault("Arguments", []).append((argument_of(param), record[1]))
            elif record is not None:
                panels.setdefault(getattr(param, "rich_help_panel", None) or OWN, []).append(record)
        for panel in sorted(panels, key=[*_SECTIONS, *panels].index):
            with formatter.section(panel):
                formatter.write_dl(panels[panel])


def _processed(param: Any, process: Callable[[Any, Any], Any], context: Any, value: Any) -> Any:
    """Return the value of a parameter; one that is not given needs no reader of its type, which takes as long to make as a module."""
    if value is None and not param.required and param.callback is None:
        return () if param.multiple or param.nargs == -1 else None
    return process(context, value)


class _Table(Mapping[str, Any]):
    """The commands as click runs them, each imported when it is looked up."""

    def __getitem__(self, name: str) -> Any:
        return _imported(_COMMANDS[name]).built(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


class _Group(typer.core.TyperGroup):
    """A group whose help lists the most important commands first, with complete summaries."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = _Table()  # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:
        del ctx
        return [*_COMMANDS]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, _imported(place).summary) for name, place in _COMMANDS.items()])


def _imported(place: str) -> Command:
    module, _, attribute = place.partition(":")
    command: Command = getattr(importlib.import_module(f"assay.cli.{module}"), attribute)
    return command


app = typer.Typer(
    cls=_Group,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"max_content_width": 140},
    help="Score millions of LLM rollouts in one pass.",
)


def _print_version(*, value: bool) -> None:
    if value:
        import polars as pl

        from assay.kernel.library import kernel_state

        with _reported_errors():
            kernel = kernel_state()
        typer.echo(f"assay {__version__} (polars {pl.__version__}, {kernel})")
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=lambda value: _print_version(value=value), is_eager=True, help="Print the versions."
        ),
    ] = False,
) -> None:
    del version


# Options are declared here and where they are used; those that functions have, too, are in ``assay.options``.


def option(text: str, metavar: str | None = None, *flags: str, **more: Any) -> Any:
    """Return an option's declaration: its help, the placeholder of its value, and flags where they are not the name."""
    return typer.Option(*flags, help=text, metavar=metavar, **more)


def _parameter(name: str, hint: Any, option: Option) -> inspect.Parameter:
    default = option.default if option.cli is None else option.cli_default
    has_default = default is not False and default not in (None, "", ()) and not option.shown_default
    shown = f" [default: {option.shown_default}]" if option.shown_default else ""
    declared = typer.Option(
        option.flag or flag_of(name, option),
        help=option.help + shown,
        metavar=option.metavar or None,
        show_default=has_default,
        rich_help_panel=option.panel,
    )
    annotation = Annotated[hint if option.cli is None else option.cli, declared]  # type: ignore[valid-type]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


RubricName = Annotated[
    str | None,
    option(
        "Rubric to score with: module:attribute, imported from the current folder or the path.",
        "MODULE:NAME",
        rich_help_panel="Verifiers",
    ),
]
AsData = Annotated[bool, option("Print JSON on stdout.", None, "--json")]
Overwrite = Annotated[bool, option("Replace an existing file.", None, "--overwrite")]


def to_stderr() -> "Console":
    """Return a console on standard error; a log has wider tables than the 80 columns that nobody asked for."""
    console = open_console(stderr=True)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _LOG_WIDTH
    return console


def say(*lines: str) -> None:
    """Print lines on standard error, as they are."""
    console = to_stderr()
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def show(render: "Callable[[Console], None]", *, width: int | None = _LOG_WIDTH) -> None:
    """Print what a function renders on standard output; rich would hide a closed pipe from the command.

    Args:
        render: Prints on a console.
        width: Columns where standard output is no terminal; None for those that the environment says.
    """
    terminal = sys.stdout is not None and sys.stdout.isatty()
    text = io.StringIO()
    render(open_console(file=text, force_terminal=terminal, width=None if terminal else width))
    write_data(text.getvalue())


def show_document(document: "Document") -> None:
    """Print a document on standard output, with all rows of its tables."""
    from assay.cli.terminal import print_document

    show(functools.partial(print_document, document=document, rows=None))


def check_new(path: Path, *, overwrite: bool) -> None:
    """Check that a file can be written, and that it does not exist unless it may be replaced."""
    from assay.system.atomic_file import check_target

    check_target(path, overwrite=overwrite, how="--overwrite")


def write_file(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    from assay.system.atomic_file import new_file

    with new_file(path) as (file, reported_errors), reported_errors():
        file.write(text.encode("utf-8", "backslashreplace"))


def command_line() -> str:
    """Return the command as the provenance records it: quoted, without secrets."""
    return path_text(shlex.join(["assay", *redacted_command(sys.argv[1:])]))


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    from assay.cli.terminal import print_warning

    print_warning(to_stderr(), message.text if isinstance(message, AssayWarning) else str(message))


@contextlib.contextmanager
def _reported_errors() -> Iterator[None]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", AssayWarning)
            warnings.showwarning = _warn
            yield
    except AssayError as error:
        raise _ended(error) from None
    except KeyboardInterrupt as interrupt:
        # Polars puts words of its own into an interrupt that a function raises
        say(printable(str(interrupt) if isinstance(interrupt, Stopped) else "interrupted; nothing was written"))
        raise typer.Exit(130) from None
    except BrokenPipeError:
        # the reader closed the pipe; keep the interpreter from flushing into it again
        if sys.stdout is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except OSError as error:
        raise _ended(_system_error(error)) from None
    except _internal_errors() as error:
        to_stderr().print(f"internal error: {type(error).__name__}: {printable(str(error))}", markup=False)
        raise typer.Exit(1) from None


def _ended(error: AssayError) -> typer.Exit:
    from assay.cli.terminal import print_error

    print_error(to_stderr(), error)
    return typer.Exit(error.exit_code)


def _system_error(error: OSError) -> AssayError:
    try:
        Path.cwd()
    except OSError:
        return AssayError("The current folder no longer exists.", "Change to another folder.")
    path = f"{shown_path(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
    return AssayError(f"{path}{error.strerror or error}.")


def _internal_errors() -> tuple[type[BaseException], ...]:
    from polars.exceptions import PanicException  # slow

    return PanicException, MemoryError


def _import_all(modules: Sequence[str]) -> None:
    with sleeping_threads():
        for module in modules:
            importlib.import_module(module)
    if not gc.isenabled():
        gc.freeze()  # no looking for garbage among what the imports made
        gc.enable()
