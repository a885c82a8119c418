"""A finding: what of a result needs a look, with numbers, a cause, and the rows to read."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any
from urllib.parse import quote

from assay.frozen import frozen
from assay.insight.findings.facts import Tally
from assay.insight.findings.limits import LEVELS

_MOST_TEXT = 240
_LAST = 1 << 31
_LONGEST = 500
"""Characters of a template that a condition has."""


@frozen
class Selection:
    """Rows of a result: on which checks fail and pass, of a model, unscored, for which conditions in SQL hold; or by number."""

    failed: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    unscored: bool = False
    row: tuple[int, ...] = ()
    model: Any = None

    @property
    def filter(self) -> dict[str, Any]:
        """Arguments of ``assay.show``."""
        where = ["reward IS NULL"] if self.unscored else []
        where += [] if self.model is None else [f"{_model(self.model)} = {sql(self.model)}"]
        given = {"failed": self.failed, "passed": self.passed, "where": (*where, *self.where), "row": self.row}
        return {name: list(values) for name, values in given.items() if values}

    @property
    def link(self) -> str:
        """The address of the rows in the page."""
        pairs = [(name, value) for name in ("failed", "passed", "where") for value in getattr(self, name)]
        pairs += [("state", "unscored")] if self.unscored else []
        pairs += [] if self.model is None else [("model", str(self.model))]
        parts = [f"{name}={quote(value, safe='')}" for name, value in pairs]
        return "#" + "&".join(parts + ([f"rows={','.join(map(str, self.row))}"] if self.row else []))


def sql(value: Any) -> str:
    """Return a value as SQL has it."""
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"


def line_of_template(column: str, template: str, others: Iterable[str] = (), *, begin: str = "") -> str:
    """Return the condition in SQL that a line of a column is of a template; where others go on from it, that it ends there."""
    words = re.sub(r"[\\^\[]", r"\\\g<0>", template[:_LONGEST]).replace("\n", r"\n")
    words = re.sub(r"[.*+?(){|$]", r"[\g<0>]", words).replace("…", ".*")  # reads better than backslashes in a shell
    end = "$" if any(other != template and other.startswith(template) for other in others) else ""
    return f"{column} REGEXP {sql(f'(?m)^{begin}{words}{end}')}"


def is_not(model: Any) -> str:
    """Return the condition in SQL that a row is of another model."""
    return f"({_model(model)} <> {sql(model)} OR model IS NULL)"


def _model(value: Any) -> str:
    return "model" if isinstance(value, int | str) else "CAST(model AS STRING)"


@frozen(eq=False)
class Finding:
    """A fact that needs a look.

    Attributes:
        kind: One of ``LEVELS``.
        tally: The check; None if it is about rewards or texts.
        rows: How many rows it is about.
        of: Of how many.
        effect: How much reward is at stake, as far as that can be said.
        title: The fact in a clause.
        sentences: Numbers and cause; those of the text that fit.
        selection: The rows to read.
        model: The model whose rows these are; None if they are of several.
        cause: What explains it.
        numbers: Further numbers, by name.
    """

    kind: str
    tally: Tally | None
    rows: int
    of: int
    effect: float
    title: str
    sentences: Sequence[str]
    selection: Selection
    model: Any = None
    cause: str | None = None
    numbers: Mapping[str, Any] = field(default_factory=dict)

    @property
    def order(self) -> tuple[Any, ...]:
        """What findings are sorted by: the weightiest first."""
        place = _LAST if self.tally is None else self.tally.place
        names = [("" if name is None else str(name)).encode() for name in (self.model, self.cause)]
        return LEVELS[self.kind], -self.effect, list(LEVELS).index(self.kind), place, *names

    @property
    def text(self) -> str:
        """The sentences that fit, the first ones first."""
        text = ""
        for sentence in filter(None, self.sentences):
            longer = f"{text} {sentence}".lstrip()
            text = longer if len(longer) <= _MOST_TEXT else text
        return text

    def as_json(self) -> dict[str, Any]:
        """Return JSON data."""
        return {
            "kind": self.kind,
            "level": LEVELS[self.kind],
            "check": None if self.tally is None else self.tally.check.name,
            "model": None if self.model is None else str(self.model),
            **{name: getattr(self, name) for name in ("rows", "of", "effect", "cause", "numbers", "title", "text")},
            "filter": self.selection.filter,
            "link": self.selection.link,
        }
