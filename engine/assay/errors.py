"""Every error Assay raises on purpose: a fact, a blank line, a hint.

AssayError                 exit 1   (never raised itself)
├── SpecError              exit 2   a verifier file or dict that cannot be used; carries every problem found
├── InputError             exit 2   rollouts or tasks that cannot be read
│   └── ColumnsError       exit 2   columns that are missing or have the wrong type; carries every problem found
├── UsageError             exit 2   an option or an output path that cannot be used
├── OutputError            exit 1   the result could not be written (disk full, read-only …)
├── PartsError             exit 1   some parts of a run could not be scored; the others are there
├── BadRowsError           exit 3   more lines that are no rollouts than allowed
└── TooManyErrors          exit 3   more rows with scoring errors than allowed

AssayWarning               a run goes on, but its owner should know (a broken check, a skipped one)
"""

import os
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

__all__ = [
    "AssayError",
    "AssayWarning",
    "BadRowsError",
    "ColumnsError",
    "InputError",
    "OutputError",
    "PartsError",
    "SpecError",
    "TooManyErrors",
    "UsageError",
    "closest",
    "counted",
    "did_you_mean",
    "encodable",
    "listed",
    "path_text",
    "printable",
    "quoted",
    "said_by",
    "shown_path",
]

SHOWN = 60
"""Characters of a value from data that reasons show."""
_LISTED = 100
LONGEST_MESSAGE = 10_000
"""Characters of an exception's message that ``error`` keeps."""

_BY_ENGINE = "\n\nThis error occurred in the following expression:\n"
"""How the engine goes on where it tells an exception that was raised by Python that it called."""


class Abandoned(BaseException):
    """Raised in a thread whose call took too long."""


class AssayWarning(UserWarning):
    """The run goes on, but its owner should know."""


class AssayError(Exception):
    """Base of all errors meant for a person.

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
        return f"{self.fact}\n\n{self.hint}" if self.hint else self.fact


class SpecError(AssayError):
    """A verifier that cannot be used; ``problems`` lists all of them."""

    exit_code = 2

    def __init__(self, fact: str, hint: str = "", problems: Sequence[str] = ()) -> None:
        super().__init__(fact, hint)
        self.problems = tuple(problems) or (fact,)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.fact, self.hint, self.problems)


class InputError(AssayError):
    """Rollouts or tasks that cannot be read."""

    exit_code = 2


class ColumnsError(InputError):
    """Columns that are missing, all of them named, or of a type no check can read."""


class UsageError(AssayError):
    """An option or a path that cannot be used as given."""

    exit_code = 2


class OutputError(AssayError):
    """The result could not be written; what was there before is untouched."""


class PartsError(AssayError):
    """Some parts of a run could not be scored; the others are there."""


class BadRowsError(AssayError):
    """More lines that are no rollouts than the run allows."""

    exit_code = 3


class TooManyErrors(AssayError):  # noqa: N818  (reads as the sentence it is: "raise TooManyErrors")
    """More rows with scoring errors than the run allows."""

    exit_code = 3


def printable(value: str, *, lines: bool = False) -> str:
    """Text with control, bidirectional and other unprintable characters as escapes.

    Args:
        value: Anything, from data or a path.
        lines: Keep line breaks.
    """
    if value.isprintable():
        return value
    return "".join(
        code if code.isprintable() or (lines and code == "\n") else code.encode("unicode_escape").decode()
        for code in value
    )


def shown_path(path: str | bytes | os.PathLike[str]) -> str:
    """A path as messages show it: ``path_text`` on one line, with nothing that a terminal would obey."""
    return printable(path_text(path))


def path_text(path: str | bytes | os.PathLike[str]) -> str:
    """A path as text: the characters that its bytes are in UTF-8, whatever the locale; other bytes as escapes."""
    try:
        return os.fsencode(path).decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # it is text already that the locale cannot say, or a name that no system has
        return encodable(str(path))


def quoted(value: str) -> str:
    """A value as reasons show it: in quotes, escaped onto one line, cut to 60 characters."""
    short = value if len(value) <= SHOWN else value[: SHOWN - 1] + "…"
    escaped = printable(short)
    return f"'{escaped}'" if '"' in escaped and "'" not in escaped else f'"{escaped}"'


def encodable(said: str) -> str:
    """Words that UTF-8 can hold: a lone surrogate becomes its escape."""
    return said.encode("utf-8", "backslashreplace").decode()


RAISED = (Exception, SystemExit)
"""What somebody else's code may raise without ending a run: all but an interrupt."""


def said_by(exception: BaseException) -> str:
    """An exception as ``error`` and ``feedback`` show it: ``<ExceptionType>: <message>``, cut to 10,000 characters."""
    name = "PatternError" if type(exception).__name__ == "error" else type(exception).__name__  # re.error before 3.13
    try:
        message = str(exception)
    except BaseException as wrong:  # its own words may raise, too, and whatever they like
        if isinstance(wrong, KeyboardInterrupt | Abandoned):
            raise
        return f"{name}: its message cannot be shown"
    if len(message) > LONGEST_MESSAGE:  # every row may have it, and every row keeps it
        message = f"{message[: LONGEST_MESSAGE - 1]}…"
    return encodable(f"{name}: {message}")


def listed(names: Sequence[str]) -> str:
    """Names as messages list them: the first 100, and how many more there are; ``none`` where there is none."""
    more = f" … and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return f"{', '.join(names[:_LISTED])}{more}" or "none"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 row``, ``1,000 rows``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def closest(word: str, choices: Iterable[str], cutoff: float = 0.6) -> str:
    """The choice most like a word, ``""`` when none is near; ``cutoff`` is the least likeness, in [0, 1]."""
    by_lower = {choice.lower(): choice for choice in choices}
    close = get_close_matches(word.lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[close[0]] if close else ""


def did_you_mean(word: str, choices: Iterable[str], cutoff: float = 0.6) -> str:
    """A question naming the closest choice, or ``""`` when nothing is close.

    Args:
        word: What was written.
        choices: What could have been meant.
        cutoff: The least likeness that counts, in [0, 1].

    Returns:
        ``"Did you mean `value`?"`` or an empty string.
    """
    near = closest(word, choices, cutoff)
    return f"Did you mean `{near}`?" if near else ""
