"""Expectations of a task: phrases its answer must and must not mention, read from ``metadata`` and graded.

The definition; ``expectation_columns`` is the same for a batch of rows.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from assay.errors import closest, did_you_mean, encodable
from assay.expressions.json import NOT_JSON, mended, parse
from assay.expressions.text import lower
from assay.system.cache import cached_within
from assay.thresholds import THRESHOLDS

__all__ = [
    "ANY_OF",
    "FORBID",
    "JOINT",
    "MENTION",
    "METADATA",
    "NO_EXPECTATIONS",
    "NO_PHRASE",
    "SIDES",
    "SILENT",
    "UNREAD",
    "Entry",
    "Grade",
    "Reading",
    "grade",
    "read",
    "read_expectations",
    "unread_field",
    "unread_side",
]

METADATA = "metadata"
JOINT = "; "
"""Between the reasons of one row."""
SIDES = (("mustMention", "must_mention", False), ("mustNotMention", "must_not_mention", True))
_SPELLINGS = dict.fromkeys(spelling for side in SIDES for spelling in side[:2]).keys()
ANY_OF = ("anyOf", "any_of")
_FIELD = "expectations"
_SHOWN = 60
_NAMES = 500_000
"""Bytes of names of fields of which is kept what to say."""
_KNOWN = 64_000_000
"""Bytes of what JSON texts expect that are kept, some 40,000 texts."""


class Entry(NamedTuple):
    """One expectation.

    Attributes:
        where: Its place, such as ``mustMention[0]``.
        forbid: Whether the phrases must not occur.
        phrases: Any one of them counts; empty when the entry gives none that can be used.
        message: The failure reason its author wrote, if any.
    """

    where: str
    forbid: bool
    phrases: tuple[str, ...]
    message: str | None

    @property
    def problem(self) -> str:
        """Why the entry cannot be graded, or ``""``."""
        return "" if self.phrases else f"{self.where}{NO_PHRASE}"

    @property
    def reason(self) -> str:
        """What to say when it fails."""
        default = (FORBID if self.forbid else MENTION) + ", ".join(self.phrases)
        return self.message or self.problem or default

    def fails(self, lowered: str) -> bool:
        """Whether a lower-cased text fails it."""
        return not self.phrases or any(lower(phrase) in lowered for phrase in self.phrases) == self.forbid


NO_PHRASE = " has no usable phrase: give anyOf (a list of strings) or text"
MENTION = "must mention one of: "
FORBID = "must not mention: "
_NO_METADATA = "metadata is not a JSON object"
NO_EXPECTATIONS = "metadata.expectations is neither an object nor a list"
SILENT = "no expectations, so the score is 1.0"
UNREAD = "unknown key "


@dataclass(frozen=True)
class Grade:
    """What the expectations say of one row.

    Attributes:
        score: Share of the entries that are met, in [0, 1].
        reason: Reasons of the failed entries, joined by ``"; "``.
        error: What could not be graded; None when nothing.
        remark: What the author of the task should know, though nothing is wrong: nothing was asked, or a key is misspelt.
    """

    score: float
    reason: str
    error: str | None
    remark: str | None = None


def _first(mapping: dict[str, Any], name: str, other: str) -> Any:
    value = mapping.get(name)
    return mapping.get(other) if value is None else value


def _read_entry(value: Any, where: str, *, forbid: bool) -> Entry:
    fields = value if isinstance(value, dict) else {}
    any_of, message = _first(fields, *ANY_OF), fields.get("message")
    phrases = [phrase for phrase in any_of if phrase is not None] if isinstance(any_of, list) else []
    if not phrases and isinstance(any_of, list | None):
        phrases = [fields.get("text")]
    return Entry(where, forbid, _usable(phrases), mended(message) if isinstance(message, str) else None)


def _usable(phrases: list[Any]) -> tuple[str, ...]:
    try:
        plain = "".join(phrases).isascii()
    except TypeError:  # not all of them are strings
        return ()
    return tuple(phrases if plain else map(mended, phrases))


def read_expectations(metadata: Any) -> list[Entry]:
    """Read a row's expectations; null and absent fields count alike, camelCase and snake_case are both read.

    Args:
        metadata: A mapping, its JSON text, or None.

    Returns:
        The entries, mustMention before mustNotMention; empty when there are none.

    Raises:
        ValueError: The metadata or its expectations have a shape that cannot be read.
    """
    return _entries_of(parse(metadata) if isinstance(metadata, str) else metadata)


def _entries_of(metadata: Any) -> list[Entry]:
    if metadata is NOT_JSON or not isinstance(metadata, dict | None):
        raise ValueError(_NO_METADATA)
    expectations = (metadata or {}).get(_FIELD)
    if isinstance(expectations, list):
        expectations = {"mustMention": expectations}
    if not isinstance(expectations, dict | None):
        raise ValueError(NO_EXPECTATIONS)
    entries: list[Entry] = []
    for name, snake, forbid in SIDES:
        listed = _first(expectations or {}, name, snake)
        if not isinstance(listed, list | None):
            raise ValueError(f"metadata.expectations.{name} is not a list")
        entries += [_read_entry(value, f"{name}[{at}]", forbid=forbid) for at, value in enumerate(listed or [])]
    return entries


@cached_within(_NAMES, lambda _, name: 8 * len(name))
def unread_field(name: str) -> str | None:
    """What to say of a field of the metadata of a row without expectations: None unless it looks like theirs."""
    if name == _FIELD or not closest(name, [_FIELD]):
        return None
    return encodable(f"`{METADATA}.{name}`. {did_you_mean(name, [_FIELD])}")


@cached_within(_NAMES, lambda _, name: 8 * len(name))
def unread_side(name: str) -> str | None:
    """What to say of a field of the expectations: None when it is read."""
    if name in _SPELLINGS:
        return None
    return encodable(f"`{METADATA}.{_FIELD}.{name[:_SHOWN]}`. {did_you_mean(name, _SPELLINGS)}".rstrip())


def _slip_of(metadata: Any) -> str | None:
    """The first key of a row's metadata that its author may have meant for one that is read."""
    fields = metadata if isinstance(metadata, dict) else {}
    expectations = fields.get(_FIELD)
    said: Iterable[str | None] = ()
    if isinstance(expectations, dict):
        if expectations.keys() <= _SPELLINGS:
            return None
        said = (unread_side(name) for name, value in expectations.items() if value is not None)
    elif expectations is None:
        said = (unread_field(name) for name, value in fields.items() if value is not None)
    return next(filter(None, said), None)


class Reading(NamedTuple):
    """What a row's metadata expects.

    Attributes:
        entries: As ``read_expectations``; none when something is wrong.
        wrong: Why the metadata cannot be read; None when it can.
        slip: The first key that its author may have meant for one that is read.
    """

    entries: tuple[Entry, ...]
    wrong: str | None
    slip: str | None


def read(metadata: Any) -> Reading:
    """What a row's metadata expects: a mapping, its JSON text, or None."""
    if isinstance(metadata, str):
        return _read_known(metadata) if len(metadata) <= THRESHOLDS.known_metadata else _read(parse(metadata))
    return _read(metadata)


def _size_of_reading(reading: Reading, text: str) -> int:
    """About how many bytes a reading takes: an entry some 400, a phrase some 60 and what it holds."""
    phrases = sum(len(entry.phrases) for entry in reading.entries)
    return 400 * (1 + len(reading.entries)) + 60 * phrases + 8 * len(text)


# tasks come back in every batch, and in every thread's
@cached_within(_KNOWN, _size_of_reading)
def _read_known(text: str) -> Reading:
    return _read(parse(text))


def _read(metadata: Any) -> Reading:
    slip = _slip_of(metadata)
    try:
        return Reading(tuple(_entries_of(metadata)), None, slip)
    except ValueError as wrong:
        return Reading((), str(wrong), slip)


def _remark(slip: str | None, *, silent: bool) -> str | None:
    if silent:
        return SILENT if slip is None else f"{SILENT}; {UNREAD}{slip}"
    return None if slip is None else UNREAD + slip


def grade(metadata: Any, completion: str) -> Grade:
    """The definition: ``(total - failures) / total`` over all entries, 1.0 when there are none."""
    entries, wrong, slip = read(metadata)
    if wrong is not None:
        said = f"ValueError: {wrong}"
        return Grade(0.0, said, said)
    lowered = lower(completion)
    failed = [entry for entry in entries if entry.fails(lowered)]
    problems = [f"ValueError: {entry.problem}" for entry in entries if entry.problem]
    score = (len(entries) - len(failed)) / len(entries) if entries else 1.0
    remark = _remark(slip, silent=not entries)
    return Grade(score, JOINT.join(entry.reason for entry in failed), JOINT.join(problems) or None, remark)
