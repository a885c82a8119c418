"""The evidence for what the checks of a verifier say about a row: what each reads, what it expects, and where that is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from assay.calls.limits import is_user_error
from assay.checks.base import Outcome
from assay.errors import ColumnsError, counted, listed
from assay.insight.evidence.documents import evidence_document
from assay.insight.evidence.reader import EDGES, CheckReader, reader_of
from assay.insight.evidence.spans import GOLD, KINDS, MATCHED, MOST, READ, Mark, Scene, marks_of
from assay.names import COMPLETION
from assay.scoring.reference import row_outcomes
from assay.spec.check import CheckSpec
from assay.spec.verifier import VerifierSource, load_verifiers
from assay.steps.base import Placed
from assay.steps.places import Place, PlacedText
from assay.steps.sources import TOOL_CALLS, CallSource
from assay.values.arguments import RAW
from assay.values.rows import from_columns
from assay.writing.documents import Document
from assay.writing.notebooks import Displayed

_PICKS = ("number", "number_range", "choice")
"""Types that pick a part of the text, which is marked even if it is all of it."""


class Span(NamedTuple):
    """A place in a text, in code points, and what is there: one of ``KINDS``."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class CheckEvidence:
    """What a check reads on a row, and where the evidence for its verdict is.

    Attributes:
        check: Its id; of a check in a group, ``group.check``.
        source: The text that it reads before its steps: ``completion``, or the name or path of another.
        score: Its score; None where it did not run.
        passes: Whether the score is 1.0; None where it did not run.
        read: The text that it compares; None if it searches, or finds nothing.
        expected: The texts of its golds.
        near: How ``read`` relates to a gold of a check that fails: ``form``, ``wrapped``, ``number``, ``rounded``, ``begins``,
            ``ends``, ``contains``, ``part``, or None.
        spans: Places in the source, in order: what was ``read``, ``matched``, a ``gold`` elsewhere, ``excess``, or ``offending``.
    """

    check: str
    source: str = COMPLETION
    score: float | None = None
    passes: bool | None = None
    read: str | None = None
    expected: tuple[str, ...] = ()
    near: str | None = None
    spans: tuple[Span, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return JSON data."""
        spans = [span._asdict() for span in self.spans]
        return {**vars(self), "expected": list(self.expected), "spans": spans}


@dataclass(frozen=True, repr=False)
class Evidence(Displayed):
    """The evidence for the verdicts of all checks on a row.

    Attributes:
        text: The text of the completion; None if there is none.
        checks: What each check reads, in order; the checks of a group, not the group.
        sources: The other texts that checks read, by their names.
    """

    text: str | None
    checks: tuple[CheckEvidence, ...]
    sources: Mapping[str, str]

    @property
    def headline(self) -> str:
        """How many of the checks that ran pass."""
        ran = [check.passes for check in self.checks if check.passes is not None]
        return f"{sum(ran)} of {counted(len(ran), 'check')} passed"

    def _document(self) -> Document:
        return evidence_document(self.headline, self.as_json())

    def as_json(self) -> dict[str, Any]:
        """Return JSON data."""
        return {"text": self.text, "checks": [check.as_json() for check in self.checks], "sources": dict(self.sources)}


def evidence(row: Mapping[str, Any], spec: VerifierSource, *, any_role: bool = False) -> Evidence:
    """Score one rollout, and say what each check read in it and where.

    Args:
        row: The rollout, with the columns that the checks read.
        spec: The verifier, as ``assay.load_verifier`` takes it.
        any_role: Whether the last message of a conversation counts that has none of the assistant.

    Returns:
        The evidence of each check. There are no spans where a check did not run or failed to, nor in calls of tools in messages.

    Raises:
        InputError: The row has no completion, or it is neither a text nor messages.
        SpecError: The spec cannot be used.

    Example:
        >>> import assay
        >>> check = {"type": "equals", "value": "18", "on": [{"after": "A:"}]}
        >>> (found,) = assay.evidence({"completion": "A: 18 dollars."}, {"checks": [check]}).checks
        >>> found.read, found.expected, found.near, found.spans
        ('18 dollars.', ('18',), 'begins', (Span(start=3, end=14, kind='read'),))
    """
    verifiers = load_verifiers(spec)
    if COMPLETION not in row:
        raise ColumnsError("The row has no `completion`.", f"It has {listed(list(row))}." if row else "")
    from_columns({COMPLETION: [row[COMPLETION]]})  # it raises for what is no completion
    read, outcomes = row_outcomes(row, verifiers, any_role=any_role)
    checks, sources = [], dict[str, str]()
    for at, verifier in enumerate(verifiers):
        of_checks = outcomes[at] if outcomes else [None] * len(verifier.checks)
        for reader, outcome in _leaves(verifier.checks, of_checks):
            score, has_error = (None, False) if outcome is None else (outcome.score, outcome.error is not None)
            checks.append(evidence_of(reader, read, score, has_error=has_error))
            sources |= source_of(reader, read)
    return Evidence(read[COMPLETION], tuple(checks), sources)


def _leaves(
    specs: Sequence[CheckSpec], outcomes: Sequence[Outcome | None]
) -> Iterator[tuple[CheckReader, Outcome | None]]:
    for spec, outcome in zip(specs, outcomes, strict=True):
        reader = reader_of(spec)
        if reader is not None:
            yield reader, outcome
        else:
            parts = outcome.parts if outcome is not None and outcome.parts else [None] * len(spec.parts)
            yield from _leaves(spec.parts, parts)


def source_of(reader: CheckReader, row: Mapping[str, Any]) -> dict[str, str]:
    """Return the text that a check reads before its steps by its name; nothing for the completion and for calls of tools."""
    text = None if reader.source in (COMPLETION, TOOL_CALLS) else reader.text(row)
    return {} if text is None else {reader.source: text}


def evidence_of(
    reader: CheckReader, row: Mapping[str, Any], score: float | None, *, has_error: bool = False
) -> CheckEvidence:
    """Return the evidence of a check on a row with the text of its completion, given its score."""
    known = CheckEvidence(reader.spec.id, reader.source, score)
    # the calls that a check reads of a completion that is text stand in it
    is_text = isinstance(reader.subject_source, CallSource) and isinstance(row.get(RAW), str)
    known = replace(known, source=COMPLETION) if is_text else known
    if score is None:
        return known
    passes = score == 1.0
    reading = reader.read(row, passes=passes)
    known = replace(known, passes=passes, read=reading.read, expected=reading.expected, near=reading.near)
    text = row[COMPLETION] if is_text else None if known.source == TOOL_CALLS else reader.text(row)
    return known if has_error or text is None else replace(known, spans=_spans(reader, row, text, fails=not passes))


def _spans(reader: CheckReader, row: Mapping[str, Any], text: str, *, fails: bool) -> tuple[Span, ...]:
    source = PlacedText.of(text)
    try:
        marks = [*_marks(reader, row, source, fails=fails)]
    except BaseException as exception:  # a pattern's limit
        if not is_user_error(exception):
            raise
        return ()
    spans = {Span(*place, kind) for kind, place in marks if place is not None and place[0] < place[1]}
    return tuple(sorted(spans, key=lambda span: (span.start, span.end, KINDS.index(span.kind))))[:MOST]


def _marks(reader: CheckReader, row: Mapping[str, Any], source: PlacedText, *, fails: bool) -> Iterator[Mark]:
    value = reader.placed(source)
    marks: list[Mark] = [(READ, place) for place in _read(reader, row, source, value)]
    if isinstance(value, PlacedText):
        marks += marks_of(Scene(reader, row, value, fails))
    yield from marks
    if fails and reader.marks_golds:
        taken = [place for kind, place in marks if kind in (READ, MATCHED) and place is not None]
        searched = source if reader.is_cased else source.recased(str.lower)
        golds = (place for gold in reader.expected(row) for place in reader.gold_places(source.text, gold))
        for start, end in (searched.hull(*place) for place in golds):
            if not any(start < other_end and other < end for other, other_end in taken):
                yield GOLD, (start, end)


def _read(reader: CheckReader, row: Mapping[str, Any], source: PlacedText, value: Placed | None) -> Iterator[Place]:
    if isinstance(value, PlacedText) and reader.type in EDGES and not reader.held(value.text, reader.expected(row)):
        yield value.hull(*reader.edge(value.text, reader.expected(row)))
        return
    values = [] if value is None else value if isinstance(value, list) else [value]
    places = (item.hull() for item in values)
    yield from (place for place in places if reader.type in _PICKS or place != source.hull())
