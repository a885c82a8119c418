"""Parts that all commands share: the app, options, messages and exit codes, and imports of user modules."""

import contextlib
import functools
import gc
import importlib
import inspect
import io
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from assay.errors import AssayError, AssayWarning, UsageError, did_you_mean, path_text, printable, said_by, shown_path
from assay.options import PANELS, Option, flag_of, options_of, signature_with
from assay.system.redaction import redacted_command
from assay.system.signals import Stopped
from assay.system.stdout import open_console, write_data

if TYPE_CHECKING:
    from rich.console import Console

    from assay.checks.base import Check
    from assay.rubrics.rubric import Rubric

_SECTIONS = ("Arguments", *PANELS, "Options")
_FIRST = ("score", "demo", "init", "check", "explain")
"""The commands that the help lists first."""


class _Command(typer.core.TyperCommand):
    """A command whose help lists the options in groups."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        panels: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                panel = "Arguments" if param.param_type_name == "argument" else getattr(param, "rich_help_panel", None)
                panels.setdefault(panel or "Options", []).append(record)
        for panel in sorted(panels, key=[*_SECTIONS, *panels].index):
            with formatter.section(panel):
                formatter.write_dl(panels[panel])


class _Commands(typer.core.TyperGroup):
    """A group whose help lists the most important commands first, with complete summaries."""

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
    """Return a console on standard error."""
    return open_console(stderr=True)


def show(render: "Callable[[Console], None]", *, width: int | None = 160) -> None:
    """Print what a function renders on standard output; rich would hide a closed pipe from ``command``.

    Args:
        render: Prints on a console.
        width: Columns where standard output is no terminal; None for those that the environment says.
    """
    terminal = sys.stdout is not None and sys.stdout.isatty()
    text = io.StringIO()
    render(open_console(file=text, force_terminal=terminal, width=None if terminal else width))
    write_data(text.getvalue())


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning on one line."""
    from assay.cli.terminal import print_warning

    print_warning(to_stderr(), message.text if isinstance(message, AssayWarning) else str(message))


def _guarded(function: Callable[..., None], modules: Sequence[str]) -> Callable[..., None]:
    """Import the modules of a command, then turn its errors into a message and an exit code."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", AssayWarning)
                warnings.showwarning = _warn
                _import_all(modules)
                function(*args, **kwargs)
        except AssayError as error:
            from assay.cli.terminal import print_error

            print_error(to_stderr(), error)
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt as interrupt:
            # Polars puts words of its own into an interrupt that a function raises
            message = str(interrupt) if isinstance(interrupt, Stopped) else "interrupted; nothing was written"
            to_stderr().print(printable(message), markup=False, highlight=False, soft_wrap=True)
            raise typer.Exit(130) from None
        except BrokenPipeError:
            # the reader closed the pipe; keep the interpreter from flushing into it again
            if sys.stdout is not None:
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except OSError as error:
            from assay.cli.terminal import print_error

            print_error(to_stderr(), _system_error(error))
            raise typer.Exit(1) from None
        except _internal_errors() as error:
            to_stderr().print(f"internal error: {type(error).__name__}: {printable(str(error))}", markup=False)
            raise typer.Exit(1) from None

    return run


def _import_all(modules: Sequence[str]) -> None:
    """Import modules, then look for garbage again, which ``main`` has put off; never among what the imports made."""
    with _blas_threads_asleep():
        for module in modules:
            importlib.import_module(module)
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


@contextlib.contextmanager
def _blas_threads_asleep() -> Iterator[None]:
    """Let the threads of OpenBLAS sleep while there is nothing to do, if it is imported now and the user does not object.

    By default each spins for some 30 ms when numpy, which pyarrow imports, is loaded: a tenth of a short run.
    """
    if _BLAS_TIMEOUT in os.environ:
        yield
        return
    os.environ[_BLAS_TIMEOUT] = "4"  # 2 ** 4 cycles, the minimum
    try:
        yield
    finally:
        del os.environ[_BLAS_TIMEOUT]  # child processes decide for themselves


_BLAS_TIMEOUT = "OPENBLAS_THREAD_TIMEOUT"


def command(
    *, name: str | None = None, epilog: str | None = None, modules: Sequence[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as a command; its docstring is the help.

    Args:
        name: Name of the command; by default the function's.
        epilog: Text to show after the options.
        modules: Slow modules that the command imports: they are imported first, without garbage collections.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        run = _guarded(function, modules)
        signature = signature_with(run, ())
        run.__signature__ = signature  # type: ignore[attr-defined]
        run.__annotations__ = {name: parameter.annotation for name, parameter in signature.parameters.items()}
        return app.command(name, cls=_Command, epilog=epilog)(run)

    return register


def _parameter(name: str, hint: Any, option: Option) -> inspect.Parameter:
    """Return an option of a function as a parameter of a command."""
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
    """Add options of a function to a command, which receives them as keywords, converted to the function's values.

    Args:
        kind: The function's options.
        names: Options to add; by default all that exist on the command line.
    """
    options = {
        name: (hint, option)
        for name, (hint, option) in options_of(kind).items()
        if option.cli is not False and (not names or name in names)
    }

    def add(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> None:
            for name, (_, option) in options.items():
                kwargs[name] = option.read(kwargs[name]) if option.read and kwargs[name] is not None else kwargs[name]
            function(*args, **kwargs)

        added = [_parameter(name, hint, option) for name, (hint, option) in options.items()]
        run.__signature__ = signature_with(function, added, open_ended=True)  # type: ignore[attr-defined]
        return run

    return add


def _system_error(error: OSError) -> AssayError:
    """Return the message for an error of the operating system that nothing else handles."""
    try:
        Path.cwd()
    except OSError:
        return AssayError("The current folder no longer exists.", "Change to another folder.")
    path = f"{shown_path(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
    return AssayError(f"{path}{error.strerror or error}.")


def _internal_errors() -> tuple[type[BaseException], ...]:
    """Return the exceptions that mean a bug; a function, because it imports Polars, which is slow."""
    from polars.exceptions import PanicException

    return PanicException, MemoryError


def command_line() -> str:
    """Return the command as the provenance records it: quoted, without secrets."""
    return path_text(shlex.join(["assay", *redacted_command(sys.argv[1:])]))


def import_modules(modules: Sequence[str] | None) -> list[str]:
    """Import the modules that the command line names; never modules that a spec or a row names.

    Args:
        modules: Names of modules, which may be in the current folder, and paths of files that end in ``.py``.

    Returns:
        The names of the modules.

    Raises:
        UsageError: One cannot be imported.
    """
    return [_module(name, f"--import {name}").__name__ for name in modules or ()]


def import_rubric(path: str) -> "Rubric":
    """Import the rubric that the command line names.

    Args:
        path: ``module:attribute`` or ``file.py:attribute``; the attribute is a rubric, an environment with one, or a reward function.

    Raises:
        UsageError: The module or the attribute does not exist, or is none of these.
    """
    from assay.rubrics.rubric import Rubric

    value = _attribute(path, "--rubric", "my_rewards.py:reward")
    rubric = getattr(value, "rubric", value)  # of an environment
    if inspect.isfunction(rubric):
        return Rubric([rubric])
    if not isinstance(rubric, Rubric):
        from assay.calls.places import defined_at

        place = defined_at(rubric)
        raise UsageError(
            f"--rubric {path}: is {type(rubric).__name__}, not an assay.Rubric.{f'{chr(10)}  {place}' if place else ''}",
            "Name a rubric or a reward function that is defined at the top level of the module.",
        )
    file, _, attribute = path.rpartition(":")
    rubric.origin = f"{Path(file).stem if file.endswith('.py') else file}:{attribute}"
    return rubric


def import_checks(paths: Sequence[str] | None) -> "list[type[Check]]":
    """Import the check classes that the command line names.

    Args:
        paths: ``module:class``; the modules may be in the current folder.

    Raises:
        UsageError: A module or a class does not exist.
        SpecError: One is not a check class.
    """
    from assay.spec.check_classes import check_class

    return [check_class(_attribute(path, "--checks", "my_checks:Polite"), f"--checks {path}") for path in paths or ()]


def checks_named(paths: Sequence[str] | None) -> "list[type[Check]]":
    """Return the check classes that the command line names, and those of installed packages; warn of those that cannot be used."""
    from assay.spec.check_classes import plugin_checks

    plugins, problems = plugin_checks()
    for problem in problems:
        warnings.warn(problem, AssayWarning, stacklevel=2)
    return list(dict.fromkeys([*import_checks(paths), *plugins]))


def _attribute(path: str, option: str, example: str) -> Any:
    """Import ``module:attribute`` or ``file.py:attribute``."""
    module, colon, attribute = path.rpartition(":")
    if not (module and colon and attribute):
        raise UsageError(f"{option} {path}: expected module:attribute.", f"For example {option} {example}")
    value = _module(module, f"{option} {path}")
    for name in attribute.split("."):
        if not hasattr(value, name):
            hint = did_you_mean(name, [public for public in vars(value) if not public.startswith("_")])
            file = getattr(value, "__file__", None)
            raise UsageError(
                f"{option} {path}: {module}{f' ({shown_path(file)})' if file else ''} has no `{name}`.", hint
            )
        value = getattr(value, name)
    return value


def _module(name: str, option: str) -> Any:
    """Import a module that the command line names, by its name or by its file, and let specs name its functions."""
    from assay.rewards.declared import allow

    if not name.endswith(".py"):
        sys.path.insert(0, str(Path.cwd()))  # as `python -m` does
        module = _imported(name, option)
        allow(name)
        return module
    file = Path(name).resolve()
    if not file.is_file():
        raise UsageError(f"{option}: {shown_path(name)}: no such file.")
    if not file.stem.isidentifier():
        raise UsageError(f"{option}: {file.stem} cannot be the name of a module.", "Rename the file.")
    sys.path.insert(0, str(file.parent))
    importlib.invalidate_caches()
    module = _imported(file.stem, option)
    if Path(getattr(module, "__file__", None) or "").resolve() != file:
        raise UsageError(f"{option}: another module is called {file.stem}.", "Rename the file.")
    allow(file.stem, file)
    return module


def _imported(name: str, option: str) -> Any:
    try:
        return importlib.import_module(name)
    except BaseException as error:  # a module may raise anything
        from assay.calls.limits import own_failure
        from assay.calls.places import raised_at

        if not own_failure(error):
            raise
        fact, hint = (error.fact, error.hint) if isinstance(error, AssayError) else (said_by(error), "")
        place = raised_at(error)
        raise UsageError(f"{option}: {fact}{f'{chr(10)}  {place}' if place else ''}", hint) from None
