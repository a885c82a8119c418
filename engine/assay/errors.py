"""All errors that Assay raises on purpose: a fact, a blank line, a hint.

They are written in the words of the command line, with its flags; ``str()`` of an error or a warning has the keywords of Python.

AssayError                 exit 1   (base class, never raised itself)
├── SpecError              exit 2   a verifier file or dict that cannot be used; carries all problems
├── InputError             exit 2   rollouts or tasks that cannot be read
│   └── ColumnsError       exit 2   columns that are missing or have the wrong type; carries all problems
├── UsageError             exit 2   an option or an output path that cannot be used
├── OutputError            exit 1   the result could not be written (disk full, read-only …)
├── PartsError             exit 1   some parts of a run could not be scored; the others are complete
├── BadRowsError           exit 3   more malformed lines than allowed
├── TooManyErrors          exit 3   more rows with scoring errors than allowed
└── FailedRunError         exit 3   a check broke or did not run, every row has an error, or a minimum is missed; the result is written

AssayWarning               the run goes on, but the user should know (a broken check, a skipped check)
"""

import contextlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from assay._version import DISTRIBUTION

SHOWN = 60
"""Characters of a value from data that reasons show."""
_LISTED = 100


"""Maximum length of a value from the data in a reason, in characters."""
LONGEST_MESSAGE = 10_000
"""Maximum length of an exception's message in ``error``, in characters."""

_BY_ENGINE = "\n\nThis error occurred in the following expression:\n"
"""How the engine goes on where it tells an exception that was raised by Python that it called."""


class Abandoned(BaseException):
    """Raised in a thread whose call has exceeded its time limit."""


_OPTION = r"""\bassay[ ][a-z]+[ ](?:(?![;.][ ])[^\n])*  # a command stays what it is
    |(?<![\w\-"'`./])--(?P<name>[a-z][a-z0-9]*(?:-[a-z0-9]+)*)
    (?:[ ](?P<value>(?P<quote>['"]).*?(?P=quote)|[^\s,;)]*[A-Z\d=/%$:_+][^\s,;)]*?(?=[.:]?(?:[\s,;)]|\Z))|replace|strict|none|ray)(?!\w))?"""
_SUBJECT = r"--(?P<name>[a-z][a-z0-9-]*) (?P<value>(?:(?! --|: )[^\n])+)(?=: )"
"""An option with any value as the first words of an error, which tells what is wrong with it."""

SWITCHES = (
    *(
        "any_role",
        "any_version",
        "details",
        "integrity",
        "isolate",
        "lengths",
        "lenient",
        "outcome",
        "mutants",
        "overwrite",
        "raw_csv",
        "reuse_code",
        "suggest",
        "seal",
    ),
    *("skip_bad_files", "strict", "verify_checksums"),
)
"""Options that take no value on the command line."""

_MAPPINGS = ("mapping", "storage_options", "weights")

KEYWORDS = {
    "advantage-option": "advantage_options",
    "for": "metric",
    "map": "mapping",
    "part-size": "part_bytes",
    "probe": "probes",
    "rubric": "verifiers",
    "set": "weights",
    "spec": "verifiers",
    "storage-option": "storage_options",
    "threshold": "pass_threshold",
    "with": "predictor",
}
"""Keywords of options that have another name in Python."""


def in_python(message: str) -> str:
    """Return a message with the keywords of functions in place of the flags of commands: ``mapping={"a": "b"}`` for ``--map a=b``."""
    subject = re.match(_SUBJECT, message)
    start = "" if subject is None else _keyword(subject)
    return start + re.sub(_OPTION, _keyword, message[0 if subject is None else subject.end() :], flags=re.VERBOSE)


def _keyword(option: re.Match[str]) -> str:
    name, value = option["name"], option["value"]
    if name is None:
        return option[0]
    if name == "import":
        return f"import {value or ''}".rstrip()
    name = KEYWORDS.get(name, name.replace("-", "_"))
    if name in SWITCHES or name.startswith("no_"):
        return f"`{name.removeprefix('no_')}={not name.startswith('no_')}`" + (f" {value}" if value else "")
    return f"{name}={_argument(name, value)}" if value else f"`{name}`"


def _argument(name: str, value: str) -> str:
    value = value[1:-1] if value[0] == value[-1] and value[0] in "'\"" else value
    if name in _MAPPINGS and "=" in value:
        key, _, inner = value.partition("=")
        return f"{{{json.dumps(key, ensure_ascii=False)}: {json.dumps(inner, ensure_ascii=False)}}}"
    if name in ("checks", "verifiers") and ":" in value:
        attribute = value.partition(":")[2]
        return f"[{attribute}]" if name == "checks" else attribute
    is_plain = re.fullmatch(r"-?(?:\d+(?:\.\d+)?|inf|nan)|None|True|False|[A-Z]+(?:,…)?", value)
    return value if is_plain else json.dumps(value, ensure_ascii=False)


class AssayWarning(UserWarning):
    """The run goes on, but the user should know."""

    def __str__(self) -> str:
        return in_python(self.text)

    @property
    def text(self) -> str:
        """The message in the words of the command line."""
        return super().__str__()


class AssayError(Exception):
    """Base class of all errors for users.

    Args:
        fact: What is wrong and where.
        hint: What to do about it.
    """

    exit_code = 1

    def __init__(self, fact: str, hint: str = "") -> None:
        fact, by_engine, _ = fact.partition(_BY_ENGINE)
        if by_engine:  # made again by the engine, from the text of the error that was raised in it
            fact, _, hint = fact.partition("\n\n")
        super().__init__(fact, hint)
        self.fact = fact
        self.hint = hint

    def __str__(self) -> str:
        return in_python(self.text)

    @property
    def text(self) -> str:
        """The message in the words of the command line."""
        return f"{self.fact}\n\n{self.hint}" if self.hint else self.fact


class SpecError(AssayError):
    """A verifier cannot be used; ``problems`` lists all problems."""

    exit_code = 2

    def __init__(self, fact: str, hint: str = "", problems: Sequence[str] = ()) -> None:
        super().__init__(fact, hint)
        self.problems = tuple(problems) or (fact,)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.fact, self.hint, self.problems)


class InputError(AssayError):
    """Rollouts or tasks cannot be read."""

    exit_code = 2


class ColumnsError(InputError):
    """Columns are missing (all are listed) or have a type that no check can read."""


class UsageError(AssayError):
    """An option or a path cannot be used."""

    exit_code = 2


class OutputError(AssayError):
    """The result could not be written; an existing file is unchanged."""


class PartsError(AssayError):
    """Some parts of a run could not be scored; the others are complete."""


class BadRowsError(AssayError):
    """There are more malformed lines than the run allows."""

    exit_code = 3


class TooManyErrors(AssayError):  # noqa: N818  (reads as the sentence it is: "raise TooManyErrors")
    """There are more rows with scoring errors than the run allows."""

    exit_code = 3


class FailedRunError(AssayError):
    """A check broke on every row, every row has an error, or a minimum was not reached; a result in a file is written."""

    exit_code = 3


def printable(value: str, *, lines: bool = False) -> str:
    """Escape control, bidirectional and other unprintable characters."""
    if value.isprintable():
        return value
    kept = "\n" if lines else ""
    for char in {*value}:  # few of them, and replacements are printable
        if not (char.isprintable() or char == kept):
            value = value.replace(char, char.encode("unicode_escape").decode())
    return value


def shown_path(path: str | bytes | os.PathLike[str]) -> str:
    """Return a path for messages: ``path_text`` on one line, without terminal control characters."""
    return printable(path_text(path))


def path_text(path: str | bytes | os.PathLike[str]) -> str:
    """Decode a path as UTF-8, whatever the locale; escape bytes that are not UTF-8."""
    try:
        return os.fsencode(path).decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # text that the locale cannot encode, or an impossible file name
        return encodable(str(path))


def clipped(text: str, most: int = SHOWN) -> str:
    """Return a text of at most ``most`` code points: of a longer one the beginning, and an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def quoted(value: str) -> str:
    """Return a value for reasons: in quotes, escaped onto one line, cut to 60 characters."""
    escaped = printable(clipped(value))
    return f"'{escaped}'" if '"' in escaped and "'" not in escaped else f'"{escaped}"'


def encodable(text: str) -> str:
    """Escape lone surrogates, which UTF-8 cannot encode."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


RAISED = (Exception, SystemExit)
"""Exceptions that user code may raise without ending a run: all except an interrupt."""


def describe_error(exception: BaseException) -> str:
    """Return an exception for ``error`` and ``feedback``: ``<ExceptionType>: <message>``, cut to 10,000 characters."""
    name = "PatternError" if type(exception).__name__ == "error" else type(exception).__name__  # re.error before 3.13
    try:
        message = str(exception)
    except BaseException as error:  # a user's __str__ may raise anything
        if isinstance(error, KeyboardInterrupt | Abandoned):
            raise
        return f"{name}: its message cannot be shown"
    return encodable(f"{name}: {clipped(message, LONGEST_MESSAGE)}")  # every row may carry a copy


def listed(names: Sequence[str]) -> str:
    """Names as messages list them, printable: the first 100, and how many more there are; ``none`` where there is none."""
    more = f" … and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return f"{', '.join(map(printable, names[:_LISTED]))}{more}" or "none"


def top(counts: Counter[str], number: int) -> list[tuple[str, int]]:
    """Return the most frequent items; equal counts in alphabetical order, so that repeated runs agree."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:number]


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 row``, ``2 rows``, ``1,000 rows``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def closest(word: str, choices: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the choice most similar to a word, ``""`` if none is; ``cutoff`` is the minimum similarity, in [0, 1]."""
    by_lower = {choice.lower(): choice for choice in choices}
    matches = get_close_matches(word.lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[matches[0]] if matches else ""


def did_you_mean(word: str, choices: Iterable[str], cutoff: float = 0.6) -> str:
    """Return a question that names the closest choice, or ``""``."""
    match = closest(word, choices, cutoff)
    return f"Did you mean `{printable(match)}`?" if match else ""


def likely_ending(path: str | Path, endings: Sequence[str]) -> str:
    """Return a question that names an output with the ending it probably should have, or ``""``."""
    path = Path(path)
    ending = closest(path.suffix, endings, 0.5) if path.suffix else endings[0]
    return f"Did you mean {shown_path(path.with_suffix(ending))}?" if ending and path.name else ""


def install(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


@contextlib.contextmanager
def package(name: str, extra: str) -> Iterator[None]:
    """Turn a failing import of an optional package into an error with the command that installs it."""
    try:
        yield
    except ImportError:
        raise UsageError(f"{name} is not installed.", f"Install it: {install(extra)}") from None
