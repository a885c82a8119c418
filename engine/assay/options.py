"""Every option of every function and command, once: its type, help, default and parser, and whether it decides the results.

A ``TypedDict`` holds the options of a function: type checkers and editors know its keywords, ``settle`` fills in the defaults
and parses what people write, and the command line offers the same options under the same names.
"""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, TypedDict, TypeVar, cast, get_args, get_origin, get_type_hints

from assay.errors import UsageError, did_you_mean
from assay.system.quantities import RowLimit, read_size

__all__ = [
    "PANELS",
    "BatchOptions",
    "BenchOptions",
    "CompileOptions",
    "FileOptions",
    "FunctionOptions",
    "Option",
    "ReadingOptions",
    "ScoreOptions",
    "deciding",
    "documented",
    "flag_of",
    "options_of",
    "settle",
]

MAX_CONCURRENT = 64
REGEX_TIMEOUT = 0.2
MAX_RATIO = 200.0
PART_BYTES = 256 << 20

PANELS = ("Input", "Verifiers", "Output", "Strictness", "Python functions", "Scale")
"""Groups of options, in the order of the help."""

INPUT, VERIFIERS, OUTPUT, STRICTNESS, FUNCTIONS, SCALE = PANELS

_T = TypeVar("_T")


class Option(NamedTuple):
    """One option.

    Attributes:
        help: What it does, for ``--help`` and for ``help()``.
        panel: The group in which the command line lists it.
        default: Its value where nobody gives one.
        cli: Its type on the command line, where that differs; ``False`` for an option of Python only.
        cli_default: Its default on the command line, where that differs.
        shown_default: The default in words, where the value does not say it.
        flag: Its flag, where that is not its name with dashes: ``--map``, or ``--details/--no-details``.
        metavar: What its value is called in the help.
        read: From the command line's value to the one that the function takes, where they differ.
        parse: From the flag and the value that somebody gave to the value that is used.
        decides: Whether it is part of what makes a run the same run.
        python: What it does, for ``help()``, where a keyword takes something else than the command line.
        none_is_default: Whether None stands for the default; False where it could be meant as "no limit".
    """

    help: str
    panel: str = INPUT
    default: Any = None
    cli: Any = None
    cli_default: Any = None
    shown_default: str = ""
    flag: str = ""
    metavar: str = ""
    read: Callable[[Any], Any] | None = None
    parse: Callable[[str, Any], Any] = lambda flag, value: value  # noqa: ARG005
    decides: bool = False
    python: str = ""
    none_is_default: bool = True


def _seconds(flag: str, value: Any) -> Any:
    if not (isinstance(value, int | float) and math.isfinite(value) and value > 0):
        raise UsageError(f"{flag} {value}: expected a number of seconds above 0.")
    return value


def _seconds_or_none(flag: str, value: Any) -> Any:
    if not (isinstance(value, int | float) and math.isfinite(value) and value >= 0):
        raise UsageError(f"{flag} {value}: expected a number of seconds; 0 for no limit.")
    return value


def _processes(flag: str, value: Any) -> Any:
    if not isinstance(value, int) or value < 0:
        raise UsageError(f"{flag} {value}: expected a number of processes; 0 to use none.")
    return value


def _rows_at_once(flag: str, value: Any) -> Any:
    if not isinstance(value, int):
        raise UsageError(f"{flag} {value}: expected a number of rows; 0 for all.")
    return value


def _rows(flag: str, value: Any) -> Any:
    if value < 0:
        raise UsageError(f"{flag} {value}: expected a number of rows, at least 0.")
    return value


def _some_rows(flag: str, value: Any) -> Any:
    if value < 1:
        raise UsageError(f"{flag} {value}: expected a number of rows, at least 1.")
    return value


def _rows_or_share(flag: str, value: Any) -> Any:
    return RowLimit(flag, value).given


def _utf8(flag: str, value: Any) -> Any:
    if value not in ("", "replace", "strict"):
        raise UsageError(f"{flag} {value}: expected replace or strict.")
    return value


def _ratio(flag: str, value: Any) -> Any:
    if not value >= 1:
        raise UsageError(f"{flag} {value:g}: a ratio is at least 1.")
    return value


def _names(flag: str, value: Any) -> Any:
    del flag
    return [value] if isinstance(value, str) else list(value)


def _read_mapping(values: list[str]) -> dict[str, str]:
    mapping = {}
    for value in values:
        name, equals, column = value.partition("=")
        if not (name and equals and column):
            raise UsageError(f"--map {value}: expected NAME=COLUMN.", "For example --map completion=response")
        mapping[name] = column
    return mapping


def _read_storage_options(values: list[str]) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    if not all(name and equals and value for name, equals, value in pairs):  # values may be secret, and are not shown
        raise UsageError("--storage-option: expected KEY=VALUE.", "For example --storage-option aws_region=eu-west-1")
    return {name: value for name, _, value in pairs}


def _read_names(values: list[str]) -> list[str]:
    return [name for group in values for name in group.split(",") if name]


class _TaskOptions(TypedDict, total=False):
    tasks: Annotated[
        Any,
        Option("Task table to join on task_id: a file, a Harbor folder, or a URL.", cli=str | None, metavar="PATH"),
    ]


class ReadingOptions(TypedDict, total=False):
    """How rollouts are read."""

    mapping: Annotated[
        Mapping[str, str] | None,
        Option(
            "Read COLUMN as NAME; NAME=$.A.B[0] reads the value at a path. May be repeated.",
            default={},
            cli=list[str] | None,
            flag="--map",
            metavar="NAME=COLUMN",
            read=_read_mapping,
            python='Where columns come from, {"completion": "response"}: the name that Assay reads, and the name in the source, '
            "or a path such as $.response.choices[0].text.",
            decides=True,
        ),
    ]
    preset: Annotated[
        Any,
        Option(
            "How records become rollouts: a name that `assay presets` lists, a .json file, or none.",
            cli=str | None,
            shown_default="recognised",
            decides=True,
            metavar="NAME",
        ),
    ]
    storage_options: Annotated[
        Mapping[str, str] | None,
        Option(
            "Option of the store that a URL names, as Polars has it; may be repeated. Other users of the machine see it: "
            "keep secrets in the environment.",
            cli=list[str] | None,
            flag="--storage-option",
            metavar="KEY=VALUE",
            read=_read_storage_options,
            python="Options of the store that URLs name, as Polars has them (aws_endpoint_url, max_retries, …); the rest comes "
            "from the environment. Values are never shown.",
        ),
    ]
    memory_limit: Annotated[
        int | str | None,
        Option(
            "Memory to work in, such as 2GB; single rows and pages of a file may need more.",
            cli=str | None,
            shown_default="640MB, plus 128MB a core",
            parse=read_size,
            metavar="SIZE",
        ),
    ]
    utf8: Annotated[
        Literal["", "replace", "strict"],
        Option(
            "Invalid UTF-8: replace it with U+FFFD, or refuse it. By default parquet is strict, and JSONL replaces.",
            default="",
            cli=str,
            metavar="replace|strict",
            parse=_utf8,
            decides=True,
        ),
    ]
    max_bad_rows: Annotated[
        int | str | None,
        Option(
            "Allow up to N (or P%) malformed lines of JSONL; they stay in place, unscored.",
            STRICTNESS,
            cli=str | None,
            shown_default="0",
            parse=_rows_or_share,
            metavar="N|P%",
        ),
    ]
    max_ratio: Annotated[
        float,
        Option(
            "Refuse a file that becomes more than N times larger when it is read, and more than 64MB.",
            STRICTNESS,
            default=MAX_RATIO,
            parse=_ratio,
            metavar="N",
        ),
    ]
    max_uncompressed: Annotated[
        int | str | None,
        Option(
            "Refuse a file of more bytes than this when it is read, such as 100GB.",
            STRICTNESS,
            cli=str | None,
            parse=read_size,
            metavar="SIZE",
        ),
    ]
    verify_checksums: Annotated[
        bool, Option("Verify the checksums of the pages of parquet files.", STRICTNESS, default=False)
    ]
    skip_bad_files: Annotated[
        bool,
        Option(
            "Skip files that cannot be opened; a note and the provenance name them.",
            STRICTNESS,
            default=False,
            decides=True,
        ),
    ]


class _TableOptions(TypedDict, total=False):
    keep: Annotated[
        Sequence[str] | str | None,
        Option(
            "Input columns to keep, separated by commas.",
            OUTPUT,
            cli=list[str] | None,
            shown_default="all that no check reads",
            read=_read_names,
            python="Input columns to keep.",
            parse=_names,
            metavar="NAME,…",
        ),
    ]
    details: Annotated[
        bool,
        Option("Add a column for each verifier and check.", OUTPUT, default=True, flag="--details/--no-details"),
    ]


class BatchOptions(_TableOptions, total=False):
    """How one batch of Arrow is scored."""


class _VerifierOptions(TypedDict, total=False):
    verifier_name: Annotated[
        str | None, Option("Function for rows whose verifier names none.", VERIFIERS, decides=True, metavar="NAME")
    ]
    pass_threshold: Annotated[
        float | None,
        Option(
            "Reward from which a row passes, if it brings its own verifier or a rubric scores it.",
            VERIFIERS,
            shown_default="1.0",
            decides=True,
            metavar="REWARD",
        ),
    ]
    checks: Annotated[Sequence[type[Any]], Option("Check types of your own.", VERIFIERS, default=(), cli=False)]


class CompileOptions(_VerifierOptions, _TableOptions, total=False):
    """How verifiers are compiled to a plan."""


class FunctionOptions(TypedDict, total=False):
    """Limits of users' Python, and of patterns."""

    function_timeout: Annotated[
        float | None,
        Option(
            "Seconds that one call of a reward function, verifier function, verifier class or check may take; then it "
            "scores 0.0 with an error.",
            FUNCTIONS,
            parse=_seconds,
            decides=True,
            metavar="SECONDS",
        ),
    ]
    workers: Annotated[
        int,
        Option(
            "Processes for the functions of a rubric; 0 for this one. A function that hangs there is killed.",
            FUNCTIONS,
            default=0,
            cli=int | None,
            shown_default="0; 1 with --function-timeout",
            parse=_processes,
            metavar="N",
        ),
    ]
    max_concurrent: Annotated[
        int,
        Option(
            "Rollouts that asynchronous reward functions work on at once; 0 for all.",
            FUNCTIONS,
            default=MAX_CONCURRENT,
            parse=_rows_at_once,
            none_is_default=False,
            metavar="N",
        ),
    ]
    regex_timeout: Annotated[
        float,
        Option(
            "Seconds for one match of a pattern that only backtracking can answer; 0 for no limit. `assay explain` says "
            "which patterns those are.",
            FUNCTIONS,
            default=REGEX_TIMEOUT,
            parse=_seconds_or_none,
            none_is_default=False,
            decides=True,
            metavar="SECONDS",
        ),
    ]


class ScoreOptions(_TaskOptions, ReadingOptions, CompileOptions, FunctionOptions, total=False):
    """How rollouts are scored in memory."""

    strict: Annotated[bool, Option("Refuse unknown check types and broken checks.", STRICTNESS, default=False)]


class BenchOptions(_TaskOptions, ReadingOptions, total=False):
    """What a verifier is measured on."""

    rows: Annotated[int | None, Option("Measure on the first N rows only.", metavar="N", parse=_some_rows)]


class FileOptions(ScoreOptions, total=False):
    """How rollouts are scored from file to file."""

    limit: Annotated[int | None, Option("Score the first N rows only.", metavar="N", parse=_rows)]
    max_errors: Annotated[
        int | str | None,
        Option(
            "Fail if more than N (or P%) rows have scoring errors.",
            STRICTNESS,
            cli=str | None,
            parse=_rows_or_share,
            metavar="N|P%",
        ),
    ]
    overwrite: Annotated[bool, Option("Replace an existing result; start over in a folder.", OUTPUT, default=False)]
    raw_csv: Annotated[bool, Option("Leave CSV cells that look like formulas unescaped.", OUTPUT, default=False)]
    part_bytes: Annotated[
        int | str,
        Option(
            "Input for one part of FOLDER/, uncompressed.",
            SCALE,
            default=PART_BYTES,
            cli=str,
            cli_default="256MB",
            flag="--part-size",
            parse=read_size,
            decides=True,
            metavar="SIZE",
        ),
    ]
    isolate: Annotated[
        bool,
        Option(
            "Score the parts of FOLDER/ in a process of their own: what ends it costs one part, not the run.",
            SCALE,
            default=False,
            cli_default=True,
            cli=bool,
            flag="--isolate/--no-isolate",
        ),
    ]
    modules: Annotated[
        Sequence[str],
        Option(
            "Python module to import: it registers functions, check types or verifier classes. May be repeated.",
            FUNCTIONS,
            default=(),
            cli=list[str] | None,
            flag="--import",
            metavar="MODULE",
        ),
    ]
    engine: Annotated[
        str, Option("Where the parts of FOLDER/ are scored: local or ray.", SCALE, default="local", metavar="local|ray")
    ]
    ray_address: Annotated[
        str | None,
        Option(
            "HOST:PORT of a Ray cluster.",
            SCALE,
            shown_default="$RAY_ADDRESS, else a Ray of this machine",
            metavar="HOST:PORT",
        ),
    ]
    command: Annotated[
        str, Option("What the provenance names as the command.", OUTPUT, default="assay.score_file", cli=False)
    ]
    progress: Annotated[
        Any, Option("Called with the rows done and the rows in all, after each batch.", OUTPUT, cli=False)
    ]


@cache
def options_of(kind: Any) -> dict[str, tuple[Any, Option]]:
    """The options of a function: by name, their type and what is known of them."""
    options = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if get_origin(hint) is Annotated:
            annotated = get_args(hint)
            options[name] = annotated[0], next(extra for extra in annotated[1:] if isinstance(extra, Option))
    return options


def flag_of(name: str, option: Option) -> str:
    """The flag of an option on the command line, as messages name it."""
    return option.flag.partition("/")[0] or f"--{name.replace('_', '-')}"


def settle(kind: Callable[..., _T], given: Mapping[str, Any], function: str) -> _T:
    """All options of a function: those that were given, parsed, and the defaults of the others.

    Args:
        kind: The function's options.
        given: Keywords; for most of them None stands for the default.
        function: The function's name, for the message.

    Raises:
        TypeError: A keyword is none of the function's.
        UsageError: A value cannot be used.
    """
    options = options_of(kind)
    for name in given.keys() - options.keys():
        hint = did_you_mean(name, options)
        raise TypeError(f"{function}() got an unexpected keyword argument '{name}'.{f' {hint}' if hint else ''}")
    settled = {
        name: option.default
        if name not in given or (given[name] is None and option.none_is_default)
        else option.parse(flag_of(name, option), given[name])
        for name, (_, option) in options.items()
    }
    return cast("_T", settled)


def deciding(kind: Any) -> list[str]:
    """The options that make a run the same run."""
    return [name for name, (_, option) in options_of(kind).items() if option.decides]


_F = TypeVar("_F", bound=Callable[..., Any])


def documented(kind: Any) -> Callable[[_F], _F]:
    """Show the options of a function in its signature and its docstring, where that has a line ``options:``."""

    def show(function: _F) -> _F:
        options = options_of(kind)
        signature = inspect.signature(function)
        positional = [item for item in signature.parameters.values() if item.kind is not item.VAR_KEYWORD]
        keywords = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=hint)
            for name, (hint, option) in options.items()
        ]
        function.__signature__ = signature.replace(parameters=positional + keywords)  # type: ignore[attr-defined]
        lines = (function.__doc__ or "").splitlines()  # there is none under python -OO
        at = next((number for number, line in enumerate(lines) if line.strip().startswith("options:")), None)
        if at is not None:
            lines[at : at + 1] = [
                f"        {name}: {option.python or option.help}" for name, (_, option) in options.items()
            ]
            function.__doc__ = "\n".join(lines)
        return function

    return show
