"""All options of functions and commands: type, help, default, parser, and whether they are part of a run's identity.

A ``TypedDict`` holds the options of a function. Type checkers and editors read its keywords, ``settle`` fills in the defaults
and parses the values, and the command line offers the same options under the same names.
"""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Annotated, Any, Literal, NamedTuple, TypedDict, TypeVar, cast, get_args, get_origin, get_type_hints

from assay.errors import UsageError, did_you_mean
from assay.system.quantities import RowLimit, read_share, read_size

MAX_CONCURRENT = 64
REGEX_TIMEOUT = 0.2
MAX_RATIO = 200.0
PART_BYTES = 256 << 20

PANELS = ("Input", "Verifiers", "Output", "Strictness", "Python functions", "Scale", "Limits: exit with 3 if exceeded")
"""Groups of options, in the order in which the help lists them."""

INPUT, VERIFIERS, OUTPUT, STRICTNESS, FUNCTIONS, SCALE, LIMITS = PANELS

_T = TypeVar("_T")


STRICT_HELP = "Refuse unknown check types and broken checks."


class Option(NamedTuple):
    """One option.

    Attributes:
        help: Description, for ``--help`` and ``help()``.
        panel: Group in which the command line lists the option.
        default: Default value.
        cli: Type on the command line, if different; ``False`` if the option exists in Python only.
        cli_default: Default on the command line, if different.
        shown_default: Default in words, if the value does not speak for itself.
        flag: Flag, if it is not the name with dashes: ``--map``, or ``--details/--no-details``.
        metavar: Placeholder of the value in the help.
        read: Convert the command line's value to the function's, if they differ.
        parse: Validate and convert a value; takes the flag, for messages, and the value.
        decides: Whether the option is part of a run's identity.
        python: Description for ``help()``, if the keyword takes a different value than the command line.
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


def _number(expected: str, fits: Callable[[Any], bool], kind: Any = (int, float)) -> Callable[[str, Any], Any]:
    def parse(flag: str, value: Any) -> Any:
        if not (isinstance(value, kind) and math.isfinite(value) and fits(value)):
            raise UsageError(f"{flag} {value}: expected a number{expected}.")
        return value

    return parse


_SECONDS = _number(" of seconds above 0", lambda value: value > 0)
_SECONDS_OR_NONE = _number(" of seconds; 0 for no limit", lambda value: value >= 0)
_PROCESSES = _number(" of processes; 0 to use none", lambda value: value >= 0, int)
_ROWS_AT_ONCE = _number(" of rows; 0 for all", lambda _: True, int)
_ROWS = _number(" of rows, at least 0", lambda value: value >= 0)
_SOME_ROWS = _number(" of rows, at least 1", lambda value: value >= 1)
_FINITE = _number("", lambda _: True)


_AT_LEAST_0 = _number(", at least 0", lambda value: value >= 0)


def _one_of(*words: str) -> Callable[[str, Any], Any]:
    def parse(flag: str, value: Any) -> Any:
        if value not in words:
            raise UsageError(f"{flag} {value}: expected {' or '.join(filter(None, words))}.")
        return value

    return parse


def _ratio(flag: str, value: Any) -> Any:
    if not value >= 1:
        raise UsageError(f"{flag} {value:g}: a ratio is at least 1.")
    return value


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
    if not all(name and equals and value for name, equals, value in pairs):  # values may be secret: do not show them
        raise UsageError("--storage-option: expected KEY=VALUE.", "For example --storage-option aws_region=eu-west-1")
    return {name: value for name, _, value in pairs}


_SHARE = partial(Option, cli=str | None, parse=lambda flag, value: RowLimit(flag, value).given, metavar="N|P%")
_SIZE = partial(Option, cli=str | None, parse=read_size, metavar="SIZE")
_LIMIT = partial(Option, panel=FUNCTIONS, decides=True, metavar="SECONDS")


class _TaskOptions(TypedDict, total=False):
    tasks: Annotated[
        Any, Option("Task table to join on task_id: a file, a Harbor folder, or a URL.", cli=str | None, metavar="PATH")
    ]


class ReadingOptions(TypedDict, total=False):
    """Options for reading rollouts."""

    mapping: Annotated[
        Mapping[str, str] | None,
        Option(
            "Read COLUMN as NAME; NAME=$.A.B[0] reads the value at a path. May be repeated.",
            default={},
            cli=list[str] | None,
            flag="--map",
            metavar="NAME=COLUMN",
            read=_read_mapping,
            python='Source of columns, {"completion": "response"}: the name that Assay reads, and the column in the source or a '
            "path such as $.response.choices[0].text.",
            decides=True,
        ),
    ]
    preset: Annotated[
        Any,
        Option(
            "Format of the records: a name listed by `assay presets`, a .json file, or none.",
            cli=str | None,
            shown_default="detected",
            decides=True,
            metavar="NAME",
        ),
    ]
    storage_options: Annotated[
        Mapping[str, str] | None,
        Option(
            "Option for the object store of a URL, as in Polars; may be repeated. Other users of the machine can see it: "
            "keep secrets in the environment.",
            cli=list[str] | None,
            flag="--storage-option",
            metavar="KEY=VALUE",
            read=_read_storage_options,
            python="Options for the object store of URLs, as in Polars (aws_endpoint_url, max_retries, …); other settings come "
            "from the environment. Values are never shown.",
        ),
    ]
    memory_limit: Annotated[
        int | str | None,
        _SIZE(
            "Memory budget, such as 2GB; a single row or page of a file may need more.",
            shown_default="640MB plus 128MB per core",
        ),
    ]
    utf8: Annotated[
        Literal["", "replace", "strict"],
        Option(
            "Replace invalid UTF-8 with U+FFFD, or refuse it. By default, refuse it in parquet and replace it in JSONL.",
            default="",
            cli=str,
            metavar="replace|strict",
            parse=_one_of("", "replace", "strict"),
            decides=True,
        ),
    ]
    max_bad_rows: Annotated[
        int | str | None,
        _SHARE(
            "Allow up to N (or P%) malformed lines of JSONL; they stay in place, unscored.",
            STRICTNESS,
            shown_default="0",
        ),
    ]
    max_ratio: Annotated[
        float,
        Option(
            "Refuse a file that expands to more than N times its size, and to more than 64MB, when it is read.",
            STRICTNESS,
            default=MAX_RATIO,
            parse=_ratio,
            metavar="N",
        ),
    ]
    max_uncompressed: Annotated[
        int | str | None,
        _SIZE("Refuse a file that expands to more than this when it is read, such as 100GB.", STRICTNESS),
    ]
    verify_checksums: Annotated[bool, Option("Verify the page checksums of parquet files.", STRICTNESS, default=False)]
    skip_bad_files: Annotated[
        bool,
        Option(
            "Skip files that cannot be opened; a note and the provenance list them.",
            STRICTNESS,
            default=False,
            decides=True,
        ),
    ]


class _TextOptions(TypedDict, total=False):
    any_role: Annotated[
        bool,
        Option(
            "Score the last message of a conversation that has no assistant message; without this, such a conversation is unscored.",
            default=False,
            decides=True,
        ),
    ]


class _TableOptions(_TextOptions, total=False):
    keep: Annotated[
        Sequence[str] | str | None,
        Option(
            "Input columns to keep, separated by commas; '*' for all, +NAME for the default and this one.",
            OUTPUT,
            cli=list[str] | None,
            shown_default="all that no check reads",
            read=lambda groups: [name for group in groups for name in group.split(",") if name],
            python='Input columns to keep; ``"*"`` for all, ``"+name"`` for the default and this one.',
            parse=lambda _, value: [value] if isinstance(value, str) else list(value),
            metavar="NAME,…",
        ),
    ]
    details: Annotated[
        bool, Option("Add a column for each verifier and check.", OUTPUT, default=True, flag="--details/--no-details")
    ]
    lengths: Annotated[
        bool, Option("Add the column length: the code points of each scored text.", OUTPUT, default=False)
    ]


class _Strictness(TypedDict, total=False):
    strict: Annotated[
        bool,
        Option(
            STRICT_HELP,
            STRICTNESS,
            default=True,
            cli=False,
            python="Refuse unknown check types, broken checks, and a first batch in which no row has a column that a check reads. "
            "If False, warn of such checks, and read such columns as null.",
        ),
    ]


class BatchOptions(_TableOptions, _Strictness, total=False):
    """Options for scoring one batch of Arrow."""


class _VerifierOptions(TypedDict, total=False):
    verifier_name: Annotated[
        str | None,
        Option(
            "Default function, for rows whose verifier does not name one; with specs, rows are scored by both.",
            VERIFIERS,
            decides=True,
            metavar="NAME",
        ),
    ]
    pass_threshold: Annotated[
        float | None,
        Option(
            "Minimum reward to pass, for rows that carry their own verifier or are scored by a rubric.",
            VERIFIERS,
            shown_default="1.0",
            decides=True,
            metavar="REWARD",
        ),
    ]
    checks: Annotated[
        Sequence[type[Any]],
        Option(
            "Check class for the types of specs: module:class, imported from the current folder or the path. May be repeated.",
            VERIFIERS,
            default=(),
            cli=list[str] | None,
            metavar="MODULE:CLASS",
            python="Custom check types: subclasses of assay.Check.",
        ),
    ]


class CompileOptions(_VerifierOptions, _TableOptions, total=False):
    """Options for compiling verifiers."""


class PlanOptions(CompileOptions, _Strictness, total=False):
    """Options for compiling verifiers to a plan."""


class FunctionOptions(TypedDict, total=False):
    """Limits for user code and for patterns."""

    function_timeout: Annotated[
        float | None,
        _LIMIT(
            "Time limit in seconds for one call of a reward function, verifier function, verifier class or check; a call "
            "that exceeds it scores 0.0 with an error.",
            parse=_SECONDS,
        ),
    ]
    workers: Annotated[
        int,
        Option(
            "Worker processes for the functions of a rubric; 0 runs them in this process. A worker that hangs is killed.",
            FUNCTIONS,
            default=0,
            cli=int | None,
            shown_default="0; 1 with --function-timeout",
            parse=_PROCESSES,
            metavar="N",
        ),
    ]
    max_concurrent: Annotated[
        int,
        Option(
            "Rollouts that asynchronous reward functions process at once; 0 for all.",
            FUNCTIONS,
            default=MAX_CONCURRENT,
            parse=_ROWS_AT_ONCE,
            none_is_default=False,
            metavar="N",
        ),
    ]
    regex_timeout: Annotated[
        float,
        _LIMIT(
            "Limit in seconds of processor time for one match of a pattern that needs backtracking; 0 for no limit. `assay explain` "
            "shows which patterns do.",
            default=REGEX_TIMEOUT,
            parse=_SECONDS_OR_NONE,
            none_is_default=False,
        ),
    ]


class ScoreOptions(_TaskOptions, ReadingOptions, CompileOptions, FunctionOptions, total=False):
    """Options for scoring rollouts in memory."""

    strict: Annotated[
        bool,
        Option(
            STRICT_HELP,
            STRICTNESS,
            default=False,
            python="Refuse unknown check types and broken checks before scoring; afterwards, raise FailedRunError where there would "
            "be a warning that a check broke on every row or that every row has an error.",
        ),
    ]
    lenient: Annotated[
        bool,
        Option(
            "Exit with 0, not 3, if a check did not run or broke on every row, or if every row has an error.",
            STRICTNESS,
            default=False,
            python="Do not warn, or raise, after scoring if a check broke on every row, every row has an error, or a minimum was not "
            "reached.",
        ),
    ]


class BenchOptions(_TaskOptions, ReadingOptions, _TextOptions, _VerifierOptions, FunctionOptions, total=False):
    """Options for measuring verifiers."""

    rows: Annotated[int | None, Option("Measure on the first N rows only.", metavar="N", parse=_SOME_ROWS)]


class DiffLimits(TypedDict, total=False):
    """Limits on what two rewards of the same rollouts differ in; a limit is exceeded by more than it."""

    max_flips: Annotated[int | str | None, _SHARE("Rows whose state may differ.", LIMITS)]
    max_regressions: Annotated[int | str | None, _SHARE("Rows that may fail after passing.", LIMITS)]
    max_changed: Annotated[int | str | None, _SHARE("Rows whose reward may differ.", LIMITS)]
    max_delta: Annotated[
        float | None,
        Option(
            "How far the mean reward may move, up or down.",
            LIMITS,
            parse=lambda flag, value: _AT_LEAST_0(flag, _FINITE(flag, value)),
            metavar="X",
        ),
    ]


class FileOptions(ScoreOptions, total=False):
    """Options for scoring rollouts from file to file."""

    limit: Annotated[int | None, Option("Score the first N rows only.", metavar="N", parse=_ROWS)]
    max_errors: Annotated[int | str | None, _SHARE("Fail if more than N (or P%) rows have scoring errors.", STRICTNESS)]
    min_pass_rate: Annotated[
        float | str | None,
        Option(
            "Exit with 3, after writing the result, if less than P% of the rows pass.",
            STRICTNESS,
            cli=str | None,
            parse=read_share,
            metavar="P%",
            python='Raise FailedRunError, after the result is written, if a smaller share of the rows passes: ``0.8`` or ``"80%"``.',
        ),
    ]
    min_pass_rate_of: Annotated[
        Literal["all", "scored"],
        Option(
            "Rows of which --min-pass-rate is the share: all, so that unscored ones do not pass, or those with a reward.",
            STRICTNESS,
            default="all",
            cli=str,
            parse=_one_of("all", "scored"),
            metavar="all|scored",
            python="Rows of which ``min_pass_rate`` is the share: all, so that unscored ones do not pass, or those with a reward.",
        ),
    ]
    min_reward: Annotated[
        float | None,
        Option(
            "Exit with 3, after writing the result, if the mean reward is less than X.",
            STRICTNESS,
            parse=_FINITE,
            metavar="X",
            python="Raise FailedRunError, after the result is written, if the mean reward is less.",
        ),
    ]
    overwrite: Annotated[bool, Option("Replace an existing result; start over in a folder.", OUTPUT, default=False)]
    seal: Annotated[
        bool,
        Option(
            "Also record the SHA-256 of each input and task file in the footer, for assay verify and --reuse.",
            OUTPUT,
            default=False,
        ),
    ]
    reuse: Annotated[
        Any,
        Option(
            "Take the scores of checks that have not changed from this earlier result of the same rollouts.",
            SCALE,
            cli=str | None,
            metavar="EARLIER",
        ),
    ]
    reuse_code: Annotated[
        bool,
        Option(
            "With --reuse, also take those of your own check classes if the hash of their code is the same.",
            SCALE,
            default=False,
        ),
    ]
    raw_csv: Annotated[bool, Option("Do not escape CSV cells that look like formulas.", OUTPUT, default=False)]
    part_bytes: Annotated[
        int | str,
        Option(
            "Uncompressed input per part of FOLDER/.",
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
            "Score the parts of FOLDER/ in a separate process: a crash costs one part, not the run.",
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
            "Python module, or file.py, to import, which registers functions, check types or verifier classes. May be repeated.",
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
        Option("HOST:PORT of a Ray cluster.", SCALE, shown_default="$RAY_ADDRESS, or a local Ray", metavar="HOST:PORT"),
    ]
    command: Annotated[
        str, Option("Command that the provenance records.", OUTPUT, default="assay.score_file", cli=False)
    ]
    progress: Annotated[
        Any, Option("Callback for each batch: the rows done, and all rows, or None if unknown.", OUTPUT, cli=False)
    ]


@cache
def options_of(kind: Any) -> dict[str, tuple[Any, Option]]:
    """Return the options of a function by name, each with its type and its ``Option``."""
    options = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if get_origin(hint) is Annotated:
            annotated, *metadata = get_args(hint)
            options[name] = annotated, next(item for item in metadata if isinstance(item, Option))
    return options


def flag_of(name: str, option: Option) -> str:
    """Return the command-line flag of an option, for messages."""
    return option.flag.partition("/")[0] or f"--{name.replace('_', '-')}"


def settle(kind: Callable[..., _T], keywords: Mapping[str, Any], function: str) -> _T:
    """Return all options of a function: the caller's values, parsed, and the defaults of the others."""
    options = options_of(kind)
    for name in keywords.keys() - options.keys():
        hint = did_you_mean(name, options)
        raise TypeError(f"{function}() got an unexpected keyword argument '{name}'.{f' {hint}' if hint else ''}")
    settled = {
        name: option.default
        if name not in keywords or (keywords[name] is None and option.none_is_default)
        else option.parse(flag_of(name, option), keywords[name])
        for name, (_, option) in options.items()
    }
    return cast("_T", settled)


def deciding(kind: Any) -> list[str]:
    """Return the names of the options that are part of a run's identity."""
    return [name for name, (_, option) in options_of(kind).items() if option.decides]


def signature_with(
    function: Callable[..., Any], keywords: Sequence[inspect.Parameter], *, open_ended: bool = False
) -> inspect.Signature:
    """Return a function's signature with keywords in place of its ``**options``."""
    signature = inspect.signature(function)
    parameters = [*signature.parameters.values()]
    own = [parameter for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD]
    rest = parameters[len(own) :] if open_ended else []  # Python allows it in the last place only
    return signature.replace(parameters=[*own, *keywords, *rest])


_F = TypeVar("_F", bound=Callable[..., Any])


def documented(kind: Any) -> Callable[[_F], _F]:
    """Show the options of a function in its signature and in its docstring, in place of the line ``options:``."""

    def show(function: _F) -> _F:
        options = options_of(kind)
        keywords = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=hint)
            for name, (hint, option) in options.items()
        ]
        function.__signature__ = signature_with(function, keywords)  # type: ignore[attr-defined]
        lines = (function.__doc__ or "").splitlines()  # python -OO removes docstrings
        start = next((number for number, line in enumerate(lines) if line.strip().startswith("options:")), None)
        if start is not None:
            lines[start : start + 1] = [
                f"        {name}: {option.python or option.help}" for name, (_, option) in options.items()
            ]
            function.__doc__ = "\n".join(lines)
        return function

    return show
