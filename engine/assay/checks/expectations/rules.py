"""A task's expectations: phrases that its answer must and must not mention, parsed from ``metadata`` and graded.

This is the definition in Python; ``expectation_columns`` does the same for a batch of rows.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from assay.errors import closest, did_you_mean, encodable
from assay.expressions.json import NOT_JSON, mended, parse
from assay.expressions.text import lower
from assay.system.cache import cached_within
from assay.thresholds import THRESHOLDS

METADATA = "metadata"
JOINT = "; "
"""Separator of the reasons of one row."""
SIDES = (("mustMention", "must_mention", False), ("mustNotMention", "must_not_mention", True))
_SPELLINGS = dict.fromkeys(spelling for side in SIDES for spelling in side[:2]).keys()
ANY_OF = ("anyOf", "any_of")
_FIELD = "expectations"
_SHOWN = 60
_NAMES_BYTES = 500_000
"""Size of the cache of remarks on field names, in bytes."""
_READINGS_BYTES = 64_000_000
"""Size of the cache of parsed JSON texts in bytes: some 40,000 texts."""


class Entry(NamedTuple):
    """One expectation.

    Attributes:
        where: The entry's path, such as ``mustMention[0]``.
        forbid: Whether the phrases must not occur.
        phrases: Alternatives; empty if the entry has no usable phrase.
        message: The author's text for the failure reason, if any.
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
        """The reason for the feedback if the entry fails."""
        default = (FORBID if self.forbid else MENTION) + ", ".join(self.phrases)
        return self.message or self.problem or default

    def fails(self, lowered: str) -> bool:
        """Return whether a lower-cased text fails the entry."""
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
    """The grade of one row.

    Attributes:
        score: Share of the entries that are met, in [0, 1].
        reason: Reasons of the failed entries, joined by ``"; "``.
        error: What could not be graded; None if everything could.
        remark: A note for the author of the task: there are no expectations, or a key is probably misspelt.
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
    except TypeError:  # not all items are strings
        return ()
    return tuple(phrases if plain else map(mended, phrases))


def _entries_of(metadata: Any) -> list[Entry]:
    """Return the entries of parsed metadata, mustMention before mustNotMention; a null field counts as absent.

    Raises:
        ValueError: The metadata or its expectations have an unsupported shape.
    """
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


@cached_within(_NAMES_BYTES, lambda _, name: 8 * len(name))
def unread_field(name: str) -> str | None:
    """Return a remark on a metadata field of a row without expectations, if it looks like a misspelling; else None."""
    if name == _FIELD or not closest(name, [_FIELD]):
        return None
    return encodable(f"`{METADATA}.{name}`. {did_you_mean(name, [_FIELD])}")


@cached_within(_NAMES_BYTES, lambda _, name: 8 * len(name))
def unread_side(name: str) -> str | None:
    """Return a remark on an unknown field of the expectations; None if the field is known."""
    if name in _SPELLINGS:
        return None
    return encodable(f"`{METADATA}.{_FIELD}.{name[:_SHOWN]}`. {did_you_mean(name, _SPELLINGS)}".rstrip())


def _slip_of(metadata: Any) -> str | None:
    """Return a remark on the first key of a row's metadata that is probably misspelt."""
    fields = metadata if isinstance(metadata, dict) else {}
    expectations = fields.get(_FIELD)
    remarks: Iterable[str | None] = ()
    if isinstance(expectations, dict):
        if expectations.keys() <= _SPELLINGS:
            return None
        remarks = (unread_side(name) for name, value in expectations.items() if value is not None)
    elif expectations is None:
        remarks = (unread_field(name) for name, value in fields.items() if value is not None)
    return next(filter(None, remarks), None)


class Reading(NamedTuple):
    """The parsed expectations of a row.

    Attributes:
        entries: mustMention before mustNotMention; empty if there are none, or a problem.
        problem: Why the metadata cannot be parsed; None if it can.
        slip: A remark on the first key that is probably misspelt.
    """

    entries: tuple[Entry, ...]
    problem: str | None
    slip: str | None


def read(metadata: Any) -> Reading:
    """Parse a row's metadata: a mapping, its JSON text, or None."""
    if isinstance(metadata, str):
        return _read_cached(metadata) if len(metadata) <= THRESHOLDS.known_metadata else _read(parse(metadata))
    return _read(metadata)


def _size_of_reading(reading: Reading, text: str) -> int:
    """Estimate the size of a reading in bytes: some 400 per entry, some 60 plus its characters per phrase."""
    phrases = sum(len(entry.phrases) for entry in reading.entries)
    return 400 * (1 + len(reading.entries)) + 60 * phrases + 8 * len(text)


# every batch, in every thread, repeats the same tasks
@cached_within(_READINGS_BYTES, _size_of_reading)
def _read_cached(text: str) -> Reading:
    return _read(parse(text))


def _read(metadata: Any) -> Reading:
    slip = _slip_of(metadata)
    try:
        return Reading(tuple(_entries_of(metadata)), None, slip)
    except ValueError as error:
        return Reading((), str(error), slip)


def _remark(slip: str | None, *, silent: bool) -> str | None:
    if silent:
        return SILENT if slip is None else f"{SILENT}; {UNREAD}{slip}"
    return None if slip is None else UNREAD + slip


def grade(metadata: Any, completion: str) -> Grade:
    """Grade a completion: ``(total - failures) / total`` over all entries, 1.0 if there are none."""
    entries, problem, slip = read(metadata)
    if problem is not None:
        error = f"ValueError: {problem}"
        return Grade(0.0, error, error)
    lowered = lower(completion)
    failed = [entry for entry in entries if entry.fails(lowered)]
    problems = [f"ValueError: {entry.problem}" for entry in entries if entry.problem]
    score = (len(entries) - len(failed)) / len(entries) if entries else 1.0
    remark = _remark(slip, silent=not entries)
    return Grade(score, JOINT.join(entry.reason for entry in failed), JOINT.join(problems) or None, remark)
