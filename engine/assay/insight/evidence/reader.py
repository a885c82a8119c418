"""What a check reads on a row and what it expects there, without scoring the row."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from assay.calls.limits import Limits
from assay.checks.base import Check, is_builtin
from assay.checks.golds import GoldCheck
from assay.checks.graders.base import GraderCheck
from assay.checks.graders.check import Fragment
from assay.checks.registry import BUILTIN
from assay.checks.similarity.metrics import DISTANCE
from assay.checks.tools.base import ReadCalls
from assay.errors import SpecError
from assay.frozen import frozen
from assay.insight.evidence.relations import near, occurrences
from assay.names import COMPLETION, NATIVE
from assay.spec.canonical import spec_of
from assay.spec.check import CheckSpec
from assay.spec.verifier import verifier_in_footer
from assay.steps.base import Placed
from assay.steps.chain import Chain
from assay.steps.places import PlacedText
from assay.steps.sources import Source
from assay.steps.subject import SubjectText
from assay.values.references import gold_text

EDGES = ("starts_with", "ends_with")
_COMPARED = ("equals", "number", "number_range", "choice", "list_equals", "similarity", "math", *EDGES)
"""Types that compare what they read."""
_SEARCHED = ("contains", "contains_any", "contains_all")
_NEAR = ("equals", "number", "math")


@frozen
class CheckReading:
    """What a check reads on a row.

    Attributes:
        read: The text that it compares; None if it searches, or has nothing to read.
        found_nothing: Whether the source has no text, or the steps find nothing in it.
        expected: The texts of its golds.
        near: How ``read`` relates to one of them, where the check fails: see ``relations``.
    """

    read: str | None = None
    found_nothing: bool = False
    expected: tuple[str, ...] = ()
    near: str | None = None


class CheckReader:
    """Reads as a check does; ``spec`` is a single check that runs."""

    def __init__(self, spec: CheckSpec) -> None:
        check = spec.check
        assert check is not None  # noqa: S101  (``reader_of`` sees to it)
        self.is_grader = isinstance(check, GraderCheck | Fragment)
        self.negates = spec.negate is not (isinstance(check, Fragment) and check.inverted)
        if isinstance(check, Fragment):  # a grader reads as the check that makes it
            check = check.plain
        self.spec, self.check = spec, check
        self.type = check.type if is_builtin(check) else ""
        """Its type; ``""`` where that is no type of Assay, of which nothing is known but what it reads."""
        self.bare: Check = check.brought.bare if isinstance(check, GoldCheck) else check
        """The check with its params, those that rows bring left out."""

    @property
    def subject_source(self) -> Source | None:
        """What brings the text that it reads; None for the completion."""
        return None if self.spec.subject is None else self.spec.subject.source

    @property
    def source(self) -> str:
        """The name of the text that it reads."""
        return str(self.subject_source) if self.subject_source else COMPLETION

    @property
    def marks_golds(self) -> bool:
        """Whether a gold somewhere in the text says something of a check that fails."""
        is_graded = self.spec.threshold is None and getattr(self.bare.params, "metric", DISTANCE) != DISTANCE
        return not (self.negates or is_graded or self.type == "choice")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads beside the text of the completion."""
        traits, references = self.check.traits, self.spec.references
        columns = (column for reference in references for column in reference.columns)
        return tuple(dict.fromkeys((*traits.reads, *traits.may_read, *columns)))

    @property
    def is_cased(self) -> bool:
        """Whether case matters where it compares."""
        return bool(getattr(self.bare.params, "case_sensitive", True))

    @property
    def _strips(self) -> bool:
        return bool(getattr(self.bare.params, "strip", False))

    def text(self, row: Mapping[str, Any]) -> str | None:
        """Return the text that it reads, before its steps."""
        return self.subject_source.row(row) if self.subject_source else row[COMPLETION]

    def value(self, row: Mapping[str, Any]) -> SubjectText:
        """Return what its steps make of that text."""
        return SubjectText(row[COMPLETION]) if self.spec.subject is None else self.spec.subject.row(row)

    def placed(self, text: PlacedText) -> Placed | None:
        """Return that, with places in the text."""
        steps = () if self.spec.subject is None else self.spec.subject.chain.steps
        return Chain(tuple(step for step in steps if not isinstance(step, ReadCalls))).placed(text)

    def golds(self, row: Mapping[str, Any]) -> list[Any]:
        """Return its golds as the type takes them; none if the type has none."""
        param = self.bare.golds.param
        if isinstance(self.check, GoldCheck) and param in self.check.brought.given:
            return self.check.brought.stepped(row)
        return [getattr(self.bare.params, param)] if param else []

    def checks(self, row: Mapping[str, Any]) -> list[Check]:
        """Return the check of each of its golds that can be used."""
        return self.check.brought.candidates(row) if isinstance(self.check, GoldCheck) else [self.check]

    def expected(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the texts of its golds."""
        return self.phrases(row) if self.has_golds else ()

    @property
    def has_golds(self) -> bool:
        """Whether it compares what it reads with golds, or searches for them."""
        return self.type in (*_COMPARED, *_SEARCHED) and bool(self.bare.golds.param)

    @property
    def may_be_near(self) -> bool:
        """Whether ``near`` says how what it reads and a gold are related, where it fails."""
        return self.type in _NEAR and not self.negates

    def phrases(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the texts of its golds, also of what should not be there."""
        return tuple(text for gold in self.golds(row) for text in self._texts(gold))

    def _texts(self, gold: Any) -> list[str]:
        if self.type == "list_equals" and isinstance(gold, str):
            (split,) = self.bare.subject()[1]
            return [*(split.row(gold) or ())]
        return [*map(gold_text, gold)] if isinstance(gold, list) else [gold_text(gold)]

    def read(self, row: Mapping[str, Any], *, passes: bool = False) -> CheckReading:
        """Return what it reads on a row with the text of its completion."""
        subject, expected = self.value(row), self.expected(row)
        read = self.compared(subject.value, expected)
        is_near = read is not None and not passes and self.may_be_near
        return CheckReading(read, bool(subject.nothing), expected, near(read or "", *expected) if is_near else None)

    def compared(self, value: Any, expected: Sequence[str]) -> str | None:
        """Return the text that it compares, given what its steps make."""
        if value is None or self.type not in _COMPARED:
            return None
        if self.type in EDGES:
            start, end = self.edge(value, expected)
            return str(value[start:end])
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    def held(self, value: str, golds: Sequence[str]) -> list[str]:
        """Return the golds that a text begins or ends with."""
        return [gold for gold in golds if self.bare.score(value, gold)]  # type: ignore[attr-defined]

    def edge(self, value: str, expected: Sequence[str]) -> tuple[int, int]:
        """Return the part of a text that ``starts_with`` or ``ends_with`` compares: as long as the gold that holds, else the longest."""
        inner, *golds = (text.strip() if self._strips else text for text in (value, *expected))
        size = min(max(map(len, self.held(value, golds) or golds), default=0), len(inner))
        start = value.find(inner)
        end = start + len(inner)
        return (end - size, end) if self.type == "ends_with" else (start, start + size)

    def gold_places(self, text: str, gold: str) -> Iterator[tuple[int, int]]:
        """Yield where a gold stands in a text by itself; in lower case, where case does not matter, in ``text.lower()``."""
        gold = gold.strip() if self._strips else gold
        return occurrences(text, gold) if self.is_cased else occurrences(text.lower(), gold.lower())

    def occurs(self, row: Mapping[str, Any], gold: str) -> bool:
        """Return whether a gold stands somewhere in the text that it reads, before the steps."""
        text = self.text(row)
        return text is not None and any(True for _ in self.gold_places(text, gold))


def reader_of(spec: CheckSpec) -> CheckReader | None:
    """Return what reads as a check does; None for a group, and for a check of unknown type, which does not run."""
    return None if spec.check is None or spec.parts else CheckReader(spec)


def readers_of(forms: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], CheckReader]:
    """Return what reads as the checks of a result do, by the ids of verifier and check.

    Args:
        forms: The canonical forms of its verifiers: ``Result.forms``. Only checks of Assay's own types are read from them, without
            their conditions; nothing is imported.
    """
    readers = {}
    for form in forms:
        for check in _leaves(form.get("checks", ())) if form["kind"] == NATIVE else ():
            if (reader := _stored_reader(check)) is not None:
                readers[form["id"], check["id"]] = reader
    return readers


def _leaves(checks: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for check in checks:
        yield from _leaves(check["checks"]) if check.get("checks") else (check,)


def _stored_reader(form: Mapping[str, Any]) -> CheckReader | None:
    if form["type"] not in (*BUILTIN, GraderCheck.type):
        return None
    plain = {name: value for name, value in form.items() if name != "when"} | {"id": "check"}
    try:
        (spec,) = verifier_in_footer(spec_of({"checks": [plain]})).checks
    except SpecError:
        return None
    return reader_of(spec.within(Limits()))
