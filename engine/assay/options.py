"""All options of functions and commands: type, help, default, parser, and whether they are part of a run's identity.

A ``TypedDict`` holds the options of a function. Type checkers and editors read its keywords, ``settle`` fills in the defaults
and parses the values, and the command line offers the same options under the same names. A function whose signature lists
them itself leaves its docstring and the parsing to ``documented``.
"""

import functools
import inspect
import json
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Annotated, Any, Literal, NamedTuple, TypedDict, TypeVar, cast, get_args, get_origin, get_type_hints

from assay.errors import UsageError, did_you_mean
from assay.system.quantities import RowLimit, read_share, read_size

MAX_CONCURRENT = 64
REGEX_TIMEOUT = 0.2
MAX_RATIO = 200.0
PART_BYTES = 256 << 20
PAGE_BYTES = 2 << 20

PANELS = ("Input", "Verifiers", "Output", "Strictness", "Python functions", "Scale", "Limits: exit with 3 if exceeded")
"""Groups of options, in the order in which the help lists them."""

INPUT, VERIFIERS, OUTPUT, STRICTNESS, FUNCTIONS, SCALE, LIMITS = PANELS
OWN = "Options"
"""The group of what only a few commands have; it is the last."""

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

    @property
    def description(self) -> str:
        """The description for ``help()``."""
        return self.python or self.help + (f" By default {self.shown_default}." if self.shown_default else "")


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
_TASKS = _number(" of tasks, at least 1", lambda value: value >= 1)
_SOME_ROWS = _number(" of rows, at least 1", lambda value: value >= 1)
_FINITE = _number("", lambda _: True)


_AT_LEAST_0 = _number(", at least 0", lambda value: value >= 0)


def _one_of(*words: str) -> Callable[[str, Any], Any]:
    def parse(flag: str, value: Any) -> Any:
        if value not in words:
            raise UsageError(f"{flag} {value}: expected {' or '.join(filter(None, words))}.")
        return value

    return parse


def names(values: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names that an option lists, separated by commas."""
    return tuple(
        name for value in ([values] if isinstance(values, str) else values) for name in value.split(",") if name
    )


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


def _listed(flag: str, kind: Any, expected: str, example: str) -> Callable[[str], list[Any]]:
    def read(value: str) -> list[Any]:
        try:
            return [kind(item) for item in value.split(",")]
        except ValueError:
            raise UsageError(f"{flag} {value}: expected {expected}.", f"For example {flag} {example}") from None

    return read


def _read_advantage_options(values: list[str]) -> dict[str, Any]:
    options = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not (name and equals):
            fact = f"--advantage-option {text}: expected NAME=VALUE."
            raise UsageError(fact, "For example --advantage-option norm_adv_by_std_in_grpo=false")
        try:
            options[name] = json.loads(value)
        except ValueError:  # a word, as of scale_rewards
            options[name] = value
    return options


_SHARE = partial(Option, cli=str | None, parse=lambda flag, value: RowLimit(flag, value).given, metavar="N|P%")
_SIZE = partial(Option, cli=str | None, parse=read_size, metavar="SIZE")
_LIMIT = partial(Option, panel=FUNCTIONS, decides=True, metavar="SECONDS")


def _one_is_listed(_: str, value: Any) -> Any:
    """One text stands for a list of it, not for a list of its letters."""
    return [value] if isinstance(value, str) else value


_NAMES = partial(Option, panel=OWN, cli=str | None, read=names, parse=_one_is_listed, metavar="NAME,…")
_OWN = partial(Option, panel=OWN)
_REPEATED = partial(Option, panel=OWN, default=(), cli=list[str] | None, parse=_one_is_listed)


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
    outcome: Annotated[
        bool,
        Option(
            "Add the columns cut_off, whether the rollout ended at a limit, and outcome: pass, fail, not_found, truncated, error or "
            "unscored.",
            OUTPUT,
            default=False,
        ),
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
    max_not_found: Annotated[
        int | str | None,
        _SHARE(
            "Exit with 3, after writing the result, if in more than N (or P%) of the scored rows a check found nothing to compare.",
            STRICTNESS,
            python='Raise FailedRunError, after the result is written, if more scored rows, or a larger share such as ``"5%"``, have '
            "the outcome not_found.",
        ),
    ]
    max_truncated: Annotated[
        int | str | None,
        _SHARE(
            "Exit with 3, after writing the result, if more than N (or P%) of the scored rows are truncated: they fail, and ended at a limit.",
            STRICTNESS,
            python='Raise FailedRunError, after the result is written, if more scored rows, or a larger share such as ``"5%"``, have '
            "the outcome truncated.",
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


Rollouts = Annotated[
    Any,
    _REPEATED(
        "The rollouts that were scored, for the texts.",
        default=None,
        shown_default="the result's `completion`, else the inputs that it names, if unchanged",
        metavar="PATH",
    ),
]
ByNames = Annotated[
    Sequence[str] | str, _NAMES("Columns whose values to tell apart.", default=("model",), shown_default="model")
]
TaskNames = Annotated[
    Sequence[str] | str,
    _NAMES("Columns that name the task.", default=(), shown_default="task_id, else example_id"),
]
GroupNames = Annotated[
    Sequence[str] | str,
    _NAMES(
        "Columns that name the group.",
        default=(),
        shown_default="those of the task, model, step, as far as they exist",
    ),
]
LengthColumn = Annotated[
    str | None,
    _OWN("Column with the length of each text, such as tokens.", shown_default="code points", metavar="COLUMN"),
]


class ReportOptions(TypedDict, total=False):
    """Options of a report on a result."""

    rollouts: Rollouts
    by: Annotated[
        Sequence[str] | str | None, _NAMES("Columns to show rewards by.", shown_default="model, the task, step")
    ]
    examples: Annotated[int, _OWN("Most examples of each kind.", default=10, parse=_ROWS, metavar="N")]
    findings: Annotated[int, _OWN("Most findings to show.", default=8, parse=_AT_LEAST_0, metavar="N")]
    text: Annotated[
        bool,
        _OWN(
            "Leave out the texts that were scored.",
            default=True,
            cli=bool,
            cli_default=False,
            flag="--no-text",
            read=operator.not_,
            python="Whether examples show the texts that were scored.",
        ),
    ]
    length: LengthColumn
    task: TaskNames
    group: GroupNames


class PageOptions(TypedDict, total=False):
    """Options of a report as a page."""

    max_size: Annotated[
        int | str,
        Option(
            "Most bytes of a page, which has as many rows as fit.",
            OWN,
            default=PAGE_BYTES,
            cli=str,
            cli_default="2MB",
            parse=read_size,
            metavar="SIZE",
        ),
    ]


class ShowOptions(TypedDict, total=False):
    """Options of rows to look at."""

    failed: Annotated[
        Sequence[str],
        _REPEATED(
            "Rows on which this check fails. May be repeated.",
            metavar="CHECK",
            python="Names of checks: rows on which all of these fail.",
        ),
    ]
    passed: Annotated[
        Sequence[str],
        _REPEATED(
            "Rows on which this check passes. May be repeated.",
            metavar="CHECK",
            python="Names of checks: rows on which all of these pass.",
        ),
    ]
    where: Annotated[
        Sequence[str],
        _REPEATED(
            "Rows for which this SQL expression over the columns holds. May be repeated.",
            metavar="SQL",
            python="SQL expressions of Polars over the columns: rows for which all hold.",
        ),
    ]
    sort: Annotated[
        Sequence[str],
        _NAMES(
            "Columns to sort by; -NAME for the largest first.",
            default=(),
            cli=list[str] | None,
            python="Columns to sort by; ``-NAME`` for the largest first. Nulls come last, ties in order of the rows.",
        ),
    ]
    limit: Annotated[int, _OWN("Rows to show.", default=10, parse=_SOME_ROWS, metavar="N")]
    random: Annotated[int | None, _OWN("Choose the rows at random; the same seed chooses the same.", metavar="SEED")]
    row: Annotated[
        Sequence[int],
        _REPEATED(
            "Number of a row, from 0. May be repeated.",
            cli=list[int] | None,
            metavar="N",
            python="Numbers of rows, from 0: these only.",
        ),
    ]
    columns: Annotated[
        Sequence[str],
        _NAMES(
            "Columns to show of each row.",
            default=(),
            cli=list[str] | None,
            shown_default="those of the task, model, step, as far as they exist",
        ),
    ]
    rollouts: Rollouts


class ExportOptions(TypedDict, total=False):
    """Options of a training set."""

    where: Annotated[
        Sequence[str] | str,
        _REPEATED(
            "Use only rows for which this SQL expression over the columns holds. May be repeated.",
            metavar="SQL",
            python="SQL expressions of Polars over the columns: only rows for which all hold are used.",
        ),
    ]
    task: TaskNames
    group: Annotated[
        Sequence[str] | str,
        _NAMES(
            "Columns that name the group.",
            default=(),
            shown_default="the task; for dpo also the result, model and step",
        ),
    ]
    length: LengthColumn
    rollouts: Rollouts
    tasks: Annotated[
        Any,
        _OWN(
            "Task table with the prompts, to join on task_id: a file, a Harbor folder, or a URL.",
            cli=str | None,
            metavar="PATH",
        ),
    ]
    prompt: Annotated[
        str | None,
        _OWN(
            "Column with the prompts.",
            shown_default="prompt of --tasks, else prompt, else instruction",
            metavar="COLUMN",
        ),
    ]
    keep: Annotated[Sequence[str] | str, _NAMES("Columns that the examples get, too.", default=())]
    min_examples: Annotated[
        int,
        _OWN(
            "Exit with 3 if there are fewer examples.",
            default=1,
            parse=_number(" of examples, at least 0", lambda value: value >= 0, int),
            metavar="N",
            python="Warn if there are fewer examples.",
        ),
    ]
    overwrite: Annotated[bool, _OWN("Replace existing files.", default=False)]


class SuspectsOptions(TypedDict, total=False):
    """Options of the golds to read first."""

    limit: Annotated[int, _OWN("Golds to list.", default=50, parse=_SOME_ROWS, metavar="N")]
    rollouts: Rollouts


class CalibrateOptions(TypedDict, total=False):
    """Options of what labels say of verdicts."""

    on: Annotated[
        Sequence[str] | str | None,
        _NAMES(
            "Columns that identify a row.",
            shown_default="row, its number",
            python="Columns of the labels that identify a row; by default ``row``, its number.",
        ),
    ]
    next: Annotated[
        int,
        _OWN(
            "List N rows to label next.",
            default=0,
            parse=_number(" of rows, at least 0", lambda value: value >= 0, int),
            metavar="N",
        ),
    ]
    metric: Annotated[
        str,
        _OWN(
            "Metric whose interval the rows to label next narrow most.",
            default="f1",
            flag="--for",
            metavar="precision|recall|f1|kappa|base_rate|accuracy",
            parse=_one_of("precision", "recall", "f1", "kappa", "base_rate", "accuracy"),
        ),
    ]
    predictor: Annotated[
        str | None,
        _OWN(
            "Column of another judge, which narrows the intervals where it agrees with the labels.",
            flag="--with",
            metavar="COLUMN",
        ),
    ]
    suggest: Annotated[
        bool, _OWN("Look for a threshold and a weight that agree better with the labels.", default=False)
    ]
    min_precision: Annotated[float | None, _OWN("With --suggest: least precision.", metavar="X", parse=_FINITE)]
    pass_threshold: Annotated[
        float | None,
        _OWN("Reward that passes.", shown_default="that of the spec", metavar="REWARD", parse=_FINITE),
    ]
    seed: Annotated[int, _OWN("Seed of the draws.", default=0, metavar="N")]


class GroupsOptions(TypedDict, total=False):
    """Options of the rollouts of each task together."""

    by: Annotated[
        Sequence[str] | str | None,
        _NAMES(
            "Columns whose values are summarised and compared; none for all groups together.", shown_default="model"
        ),
    ]
    k: Annotated[
        Sequence[int] | int | None,
        _OWN(
            "Sizes of subsets, as in pass@k.",
            cli=str | None,
            shown_default="1,4,8 as far as there are rows",
            metavar="N,…",
            read=_listed("--k", int, "numbers of rows", "1,4,8"),
        ),
    ]
    thresholds: Annotated[
        Sequence[float] | float,
        _OWN(
            "Also compute G-Pass@k: shares of k rows that must pass, such as 0.5,0.75.",
            default=(),
            cli=str | None,
            metavar="X,…",
            read=_listed("--thresholds", float, "shares from 0 to 1", "0.5,0.75"),
            python="Shares of a subset that must pass, for G-Pass@k: columns ``g-pass@4_0.5``, and ``mg-pass@4``.",
        ),
    ]
    vote: Annotated[
        str | None,
        _OWN(
            "Column with the answer of each row, for maj@k.",
            metavar="COLUMN",
            python="Column with each row's answer, for maj@k: the answer that most rows of a subset give, nulls abstaining.",
        ),
    ]
    unscored: Annotated[
        Literal["skip", "fail"],
        _OWN(
            "Rows without a reward: skip them, or count them as failures.",
            default="skip",
            cli=str,
            cli_default="skip",
            metavar="skip|fail",
            python="What rows without a reward count as: nothing (``skip``), or failures with reward 0 (``fail``).",
        ),
    ]
    advantages: Annotated[
        str | None,
        _OWN(
            "Also compute the advantage of each row in its group: grpo, dr_grpo, rloo, or as a trainer does: trl-grpo, "
            "verl-rloo, … (see docs/advantages.md).",
            metavar="NAME",
            python="Also compute the advantage of each row in its group: ``grpo``, (r-m)/(s+eps); ``dr_grpo``, r-m; ``rloo``, r less "
            "the mean of the others. 0.0 in a group whose rewards are all equal, null for a single row. Or as a trainer computes "
            "them: the names of ``assay.advantages``, with the checks as rewards for those that normalize each (GDPO).",
        ),
    ]
    advantage_options: Annotated[
        Mapping[str, Any] | None,
        _OWN(
            "An option of the trainer, by its own name: norm_adv_by_std_in_grpo=false. Repeatable.",
            cli=list[str] | None,
            flag="--advantage-option",
            metavar="NAME=VALUE",
            read=_read_advantage_options,
            python="Options of the trainer's estimator by its own names, as ``options`` of ``assay.advantages``.",
        ),
    ]
    length: LengthColumn
    baseline: Annotated[str | None, _OWN("Column with the reward of a greedy response, for ReMax.", metavar="COLUMN")]
    eps: Annotated[float, _OWN("Added to the standard deviation of grpo.", default=1e-6, metavar="X")]
    ci: Annotated[
        Literal["t", "bootstrap"],
        _OWN(
            "Intervals: by Student's t, or by 2,000 resamples of the tasks.",
            default="t",
            cli=str,
            cli_default="t",
            metavar="t|bootstrap",
        ),
    ]
    seed: Annotated[
        int, _OWN("Seed of the resamples, and of the groups whose texts are compared.", default=0, metavar="N")
    ]
    outcome: Annotated[
        bool,
        _OWN(
            "Also count outcomes: pass, fail, not_found, truncated, error, unscored. A result with the column has them in any case.",
            default=False,
        ),
    ]
    integrity: Annotated[
        bool,
        _OWN(
            "Also check whether groups hold together: odd sizes, mixed prompts and golds, equal and nearly equal texts.",
            default=False,
        ),
    ]
    near: Annotated[
        float,
        _OWN(
            "With --integrity: the least similarity of texts that are nearly the same, from 0 to 1.",
            default=0.95,
            parse=_number(" from 0 to 1", lambda value: 0 <= value <= 1),
            metavar="X",
            python="With ``integrity``: the least similarity of texts that are nearly the same, from 0 to 1.",
        ),
    ]
    size: Annotated[
        int | None,
        _OWN(
            "With --integrity: the usual number of rows of a group.",
            shown_default="the commonest",
            parse=_number(" of rows, at least 1", lambda value: value >= 1, int),
            metavar="N",
            python="With ``integrity``: the usual number of rows of a group; by default the commonest.",
        ),
    ]
    rollouts: Rollouts
    task: TaskNames
    group: GroupNames


class GroupsLimits(TypedDict, total=False):
    """Limits on groups that do not hold together; a limit is exceeded by more than it."""

    max_duplicates: Annotated[
        int | str | None, _SHARE("Texts that may be those of an earlier row in their group.", LIMITS)
    ]
    max_mixed: Annotated[int | str | None, _SHARE("Groups that may have several prompts or golds.", LIMITS)]


class TripwireOptions(TypedDict, total=False):
    """Options of alerts."""

    by: Annotated[str, _OWN("Column with the training step.", default="step", metavar="COLUMN")]
    length: LengthColumn
    limits: Annotated[
        Any,
        _OWN(
            "YAML, JSON or TOML: for each wire a number, several by name, or false.",
            cli=str | None,
            metavar="FILE",
            python="Limits that differ from ``WIRES``: a mapping, or the path of a YAML, JSON or TOML file with one. For each wire a "
            "number, a mapping of several, or false to switch it off.",
        ),
    ]


class VerifyOptions(TypedDict, total=False):
    """Options of the check of a result against its footer."""

    rollouts: Annotated[
        Any,
        _REPEATED(
            "The rollouts, if they are elsewhere now; may be repeated, in the order of the run.",
            default=None,
            metavar="PATH",
            python="The files that were scored, if they are elsewhere now; in the order of the run.",
        ),
    ]
    tasks: Annotated[Any, _OWN("The task table, if it is elsewhere now.", cli=str | None, metavar="PATH")]
    sample: Annotated[
        int | str,
        _OWN(
            "Rows to score again: a number, a percentage, or all.",
            default=10_000,
            cli=str,
            cli_default="10000",
            metavar="N|P%|all",
            python='How many rows to score again: a number, a percentage such as ``"5%"``, or ``"all"``.',
        ),
    ]
    seed: Annotated[int, _OWN("Seed of the sample.", default=0, metavar="N")]
    root: Annotated[
        str | None,
        _OWN(
            "The root that the content has to have, as assay score printed it.",
            metavar="HEX",
            python="The root that the content has to have: 64 hexadecimal digits, or at least the first 16.",
        ),
    ]
    any_version: Annotated[
        bool,
        _OWN("Go on if other versions of Assay or of its libraries made the result.", default=False),
    ]
    checks: Annotated[
        Sequence[type[Any]],
        _REPEATED(
            "Check class that the result was made with; may be repeated.",
            metavar="MODULE:CLASS",
            python="Your own check types that it was made with.",
        ),
    ]


class WhatIfOptions(TypedDict, total=False):
    """Options of other weights and thresholds."""

    weights: Annotated[
        Mapping[str, float] | None,
        _OWN(
            "Weight of a check or of a rubric's member; NAME.required=true or false. May be repeated.",
            cli=list[str] | None,
            flag="--set",
            metavar="NAME=WEIGHT",
            python="New weights by check; of a rubric, by member.",
        ),
    ]
    required: Annotated[Mapping[str, bool] | None, _OWN("Which checks a row has to pass, by check.", cli=False)]
    drop: Annotated[
        Sequence[str] | str,
        _REPEATED(
            "Leave a check out; may be repeated.",
            metavar="NAME",
            python="Checks to leave out: of weight 0, and not required.",
        ),
    ]
    pass_threshold: Annotated[
        float | None,
        _OWN("Minimum reward to pass, of each verifier or of the rubric.", flag="--threshold", metavar="REWARD"),
    ]
    rank: Annotated[str | None, _OWN("Column of the models: how they rank, and what reverses two.", metavar="NAME")]
    by: ByNames
    task: TaskNames
    examples: Annotated[
        int, _OWN("Rows that flip to show.", default=10, cli=int, cli_default=3, parse=_ROWS, metavar="N")
    ]


class DiffOptions(TypedDict, total=False):
    """Options of two rewards of the same rollouts."""

    rollouts: Annotated[Any, _OWN("Rollouts to score with both.", cli=False)]
    tasks: Annotated[Any, _OWN("Their task table.", cli=False)]
    on: Annotated[
        Sequence[str] | str | None,
        _NAMES(
            "Columns that identify a rollout.",
            shown_default="the order of the rows",
            python="Columns that identify a rollout, to join the results on; by default, they are compared row by row.",
        ),
    ]
    allow_missing: Annotated[
        int | str | None,
        _SHARE(
            "With --on: leave out up to N (or P%) rows on one side only.",
            OWN,
            python="With ``on``: how many rows, or which percentage, may be on one side only.",
        ),
    ]
    by: ByNames
    task: TaskNames
    examples: Annotated[int, _OWN("Rows that flipped to show.", default=10, parse=_ROWS, metavar="N")]


class AuditOptions(TypedDict, total=False):
    """Options of the probes of a verifier."""

    sample: Annotated[int, _OWN("Probe at most N tasks, evenly spaced.", default=1000, parse=_TASKS, metavar="N")]
    probes: Annotated[
        Any,
        _OWN(
            "JSONL with more probes: probe, class, completion, maybe task_id.",
            default=(),
            cli=str | None,
            flag="--probe",
            metavar="FILE",
            python="More probes: a JSONL file, or mappings, with ``probe``, ``class`` (free, hack, must not gain, control), "
            "``completion`` and maybe ``task_id``.",
        ),
    ]
    task: TaskNames
    max_passing: Annotated[
        int | str | None,
        _OWN(
            "Exit with 3 if a hack passes on more than N (or P%) of its tasks.",
            cli=str | None,
            metavar="N|P%",
            python='Most tasks, or share of tasks such as ``"5%"``, on which a hack may pass.',
        ),
    ]
    max_free: Annotated[
        float | None,
        _OWN(
            "Exit with 3 if a free probe earns more than X on average.",
            metavar="X",
            python="Greatest mean reward that a free probe may earn.",
        ),
    ]
    min_control: Annotated[
        str | None,
        _OWN(
            "Exit with 3 if a control passes on less than P% of its tasks.",
            metavar="P%",
            python='Smallest share of tasks on which a control has to pass, such as ``"90%"``.',
        ),
    ]


class SpecTestOptions(TypedDict, total=False):
    """Options of the tests of specs."""

    tests: Annotated[
        Any,
        _OWN(
            "Further tests: YAML or JSON, below tests: or a list alone.",
            cli=str | None,
            metavar="FILE",
            python="Further tests of each spec: a file, or mappings with ``given``, ``expect`` and maybe ``name``.",
        ),
    ]
    rollouts: Annotated[
        Any,
        _OWN(
            "Rollouts on which mutants may show, as in score; may be repeated.",
            default=None,
            cli=list[str] | None,
            metavar="FILE",
            python="Rollouts on which mutants may show, as for ``assay.score``.",
        ),
    ]
    mutants: Annotated[
        bool, _OWN("Change the specs in one place at a time, and see whether a test notices.", default=False)
    ]
    min_score: Annotated[
        str | None,
        _OWN(
            "Exit with 3 if the tests kill less than P% of the mutants of a spec.",
            metavar="P%",
            python='Smallest share of mutants that the tests of a spec have to kill, such as ``"80%"``.',
        ),
    ]


class ForgeOptions(TypedDict, total=False):
    """Options of the cases that are made of golds."""

    sample: Annotated[int, _OWN("Take at most N golds, evenly spaced.", default=200, parse=_TASKS, metavar="N")]
    skip: Annotated[
        Sequence[str] | str,
        _NAMES(
            "Forms and near misses that are not made, such as bold: what a check should take is yours to say.",
            default=(),
            metavar="FORM,…",
        ),
    ]
    max_refused: Annotated[
        int | str | None,
        _OWN(
            "Exit with 3 if more than N (or P%) of the forms are refused.",
            cli=str | None,
            metavar="N|P%",
            python='Most forms, or share of them such as ``"5%"``, that may be refused.',
        ),
    ]
    max_accepted: Annotated[
        int | str | None,
        _OWN(
            "Exit with 3 if more than N (or P%) of the near misses are accepted.",
            cli=str | None,
            metavar="N|P%",
            python='Most near misses, or share of them such as ``"5%"``, that may be accepted.',
        ),
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


def _settled(name: str, option: Option, keywords: Mapping[str, Any]) -> Any:
    value = keywords.get(name)
    if name not in keywords or (value is None and option.none_is_default):
        return option.default
    return option.parse(flag_of(name, option), value)


def settle(kind: Callable[..., _T], keywords: Mapping[str, Any], function: str) -> _T:
    """Return all options of a function: the caller's values, parsed, and the defaults of the others."""
    options = options_of(kind)
    for name in keywords.keys() - options.keys():
        hint = did_you_mean(name, options)
        raise TypeError(f"{function}() got an unexpected keyword argument '{name}'.{f' {hint}' if hint else ''}")
    settled = {name: _settled(name, option, keywords) for name, (_, option) in options.items()}
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


def documented(*kinds: Any) -> Callable[[_F], _F]:
    """Show the options of a function in its docstring, in place of the line ``options:``, and in its signature.

    Keywords that the signature lists are parsed before each call; the others stand in place of ``**options``, which the function
    settles.
    """
    options = {name: pair for kind in kinds for name, pair in options_of(kind).items()}

    def show(function: _F) -> _F:
        own = options.keys() & inspect.signature(function).parameters
        others = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=hint)
            for name, (hint, option) in options.items()
            if name not in own
        ]
        if others:
            function.__signature__ = signature_with(function, others)  # type: ignore[attr-defined]
        lines = (function.__doc__ or "").splitlines()  # python -OO removes docstrings
        start = next((number for number, line in enumerate(lines) if line.strip().startswith("options:")), None)
        if start is not None:
            indent = lines[start].partition("options:")[0]
            lines[start : start + 1] = [
                f"{indent}{name}: {option.description}" for name, (_, option) in options.items()
            ]
            function.__doc__ = "\n".join(lines)
        if not own or isinstance(function, type):
            return function

        @functools.wraps(function)
        def checked(*args: Any, **keywords: Any) -> Any:
            parsed = {name: _settled(name, options[name][1], keywords) for name in keywords.keys() & own}
            return function(*args, **keywords | parsed)

        return cast("_F", checked)

    return show
