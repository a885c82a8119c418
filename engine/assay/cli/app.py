"""What the commands have in common: the app, messages and exit codes, modules to import, columns to rename."""

import functools
import importlib
import inspect
import io
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from assay.errors import AssayError, AssayWarning, UsageError, did_you_mean, printable, said_by, shown_path
from assay.options import PANELS, Option, flag_of, options_of
from assay.system.stdout import open_console, write_data

if TYPE_CHECKING:
    from rich.console import Console

    from assay.rubrics.rubric import Rubric

__all__ = ["RubricName", "app", "command", "import_modules", "import_rubric", "show", "takes", "to_stderr"]

_SECTIONS = ("Arguments", *PANELS, "Options")
_FIRST = ("score", "demo", "init", "check", "explain")
"""Commands that the help lists first."""


def _write_options(command: typer.core.TyperCommand, ctx: Any, formatter: Any) -> None:
    """The arguments and options of a command, in groups."""
    panels: dict[str, list[tuple[str, str]]] = {}
    for param in command.get_params(ctx):
        record = param.get_help_record(ctx)
        if record is not None:
            panel = "Arguments" if param.param_type_name == "argument" else getattr(param, "rich_help_panel", None)
            panels.setdefault(panel or "Options", []).append(record)
    for panel in sorted(panels, key=[*_SECTIONS, *panels].index):
        with formatter.section(panel):
            formatter.write_dl(panels[panel])


class _Command(typer.core.TyperCommand):
    """A command whose options are listed in groups."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_options(self, ctx, formatter)


class _Commands(typer.core.TyperGroup):
    """Commands listed with their whole summaries, the most important ones first."""

    def list_commands(self, ctx: Any) -> list[str]:
        names = super().list_commands(ctx)
        return sorted(names, key=[*_FIRST, *sorted(names)].index)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(1000)) for name, command in commands if command])


app = typer.Typer(
    cls=_Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"max_content_width": 140},
    help="Score millions of LLM rollouts in one pass.",
)

RubricName = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:NAME",
        help="Rubric to score with: module:attribute, imported from the current folder or the path.",
        rich_help_panel="Verifiers",
    ),
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
    from assay.cli.terminal import print_warning

    print_warning(to_stderr(), str(message))


def _guarded(function: Callable[..., None]) -> Callable[..., None]:
    """Turn what may go wrong into a message and an exit code."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", AssayWarning)
                warnings.showwarning = _warn
                function(*args, **kwargs)
        except AssayError as wrong:
            from assay.cli.terminal import print_error

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
            from assay.cli.terminal import print_error

            print_error(to_stderr(), _of_the_system(wrong))
            raise typer.Exit(1) from None
        except _internal() as wrong:
            to_stderr().print(f"internal error: {type(wrong).__name__}: {printable(str(wrong))}", markup=False)
            raise typer.Exit(1) from None

    return run


def command(*, epilog: str | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as a command of its name; its docstring is its help.

    Args:
        epilog: Text after the options.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        run = _guarded(function)
        signature = inspect.signature(run)
        named = [item for item in signature.parameters.values() if item.kind is not item.VAR_KEYWORD]
        run.__signature__ = signature.replace(parameters=named)  # type: ignore[attr-defined]
        run.__annotations__ = {item.name: item.annotation for item in named}
        return app.command(cls=_Command, epilog=epilog)(run)

    return register


def _parameter(name: str, hint: Any, option: Option) -> inspect.Parameter:
    """An option of a function as a parameter of a command."""
    default = option.default if option.cli is None else option.cli_default
    has_default = default not in (None, "", (), False) and not option.shown_default
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


def takes(kind: type, *names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a function, which it gets as keywords, read into what the function takes.

    Args:
        kind: The function's options.
        names: Those that the command has; by default all that the command line can give.
    """
    options = {
        name: (hint, option)
        for name, (hint, option) in options_of(kind).items()
        if option.cli is not False and (not names or name in names)
    }

    def give(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> None:
            for name, (_, option) in options.items():
                kwargs[name] = option.read(kwargs[name]) if option.read and kwargs[name] is not None else kwargs[name]
            function(*args, **kwargs)

        signature = inspect.signature(function)
        own = [item for item in signature.parameters.values() if item.kind is not item.VAR_KEYWORD]
        rest = [item for item in signature.parameters.values() if item.kind is item.VAR_KEYWORD]
        added = [_parameter(name, hint, option) for name, (hint, option) in options.items()]
        run.__signature__ = signature.replace(parameters=[*own, *added, *rest])  # type: ignore[attr-defined]
        return run

    return give


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


def import_modules(modules: Sequence[str] | None) -> None:
    """Import what the caller names on the command line, and nothing that a spec or a row names."""
    if modules:
        sys.path.insert(0, str(Path.cwd()))  # as `python -m` does
    for name in modules or ():
        _imported(name, f"--import {name}")


def import_rubric(named: str) -> "Rubric":
    """The rubric of a name that the caller gives on the command line.

    Args:
        named: ``module:attribute``; the module is looked for in the current folder, too.

    Raises:
        UsageError: There is no such module or attribute, or it is no rubric.
    """
    from assay.rubrics.rubric import Rubric

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
        from assay.calls.limits import own_failure

        if not own_failure(wrong):
            raise
        raise UsageError(f"{option}: {said_by(wrong)}") from None
