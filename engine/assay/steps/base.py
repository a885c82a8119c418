"""A step: from a text to a part of it, or to another form of it, written in Python and as an expression."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from assay.calls.limits import Limits
from assay.expressions.shared_columns import rowwise
from assay.frozen import frozen
from assay.steps.places import PlacedText
from assay.values.params import Params


@frozen
class StepExample:
    """A text and what the step makes of it, None if it finds nothing; for the documentation and the conformance tests."""

    text: str
    result: str | list[str] | None
    params: Mapping[str, Any] | None = None


Placed = PlacedText | list[PlacedText]
"""What a step makes of a text with places."""


class Step(ABC):
    """Base class of steps: ``row`` and ``expr`` give the same result on every text; steps with the same ``key`` are equal.

    Attributes:
        shorthand: The param that the value beside the name gives: ``{tag: answer}``; ``""`` if there is none.
        takes_mapping: Whether a mapping beside the name is the value of ``shorthand``, not an object of params.
        gives_list: Whether the result is a list of texts.
        limits: The run's limits for patterns; None for no limits.
        keeps: Whether the chain hands on this step's input where it finds nothing: ``notFound: keep``.
    """

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    shorthand: ClassVar[str] = ""
    takes_mapping: ClassVar[bool] = False
    gives_list: ClassVar[bool] = False
    examples: ClassVar[tuple[StepExample, ...]] = ()
    Params: ClassVar[type[Params]] = Params
    runs_as: ClassVar[str] = ""
    limits: Limits | None = None
    keeps: bool = False

    def __init__(self, params: Any = None) -> None:
        self.params = self.Params() if params is None else params

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Step) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def within(self, limits: Limits | None) -> "Step":
        """Return a copy of this step with the limits of a run."""
        bounded = copy.copy(self)
        bounded.limits = limits
        return bounded

    @property
    def key(self) -> str:
        """What tells it from other steps: equal keys, equal results."""
        kept = ":keep" if self.keeps else ""
        return f"{type(self).__module__}.{type(self).__qualname__}:{self.params.model_dump()!r}{kept}"

    @property
    def errors(self) -> bool:
        """Whether ``row`` may raise; then ``expr`` is a struct of ``value`` and ``error``, an error where ``row`` raises."""
        return False

    @property
    def libraries(self) -> Mapping[str, tuple[str, ...]]:
        """The libraries whose versions decide results, as ``Traits.libraries``."""
        return {}

    @property
    def dtype(self) -> pl.DataType:
        return pl.List(pl.String()) if self.gives_list else pl.String()

    @abstractmethod
    def row(self, text: str) -> str | list[str] | None:
        """Return what the step makes of one text; None if it finds nothing."""

    def begins(self, text: str) -> int | None:
        """Return from where on what ``row`` finds first occurs in its place; None if that is no part of the text."""
        del text
        return None

    def placed(self, given: PlacedText) -> "Placed | None":
        """Return ``row`` of a text whose characters have places: a part of it, or a block."""
        result = self.row(given.text)
        if result is None:
            return None
        if isinstance(result, list):
            return [*map(given.as_block, result)]
        begin = self.begins(given.text)
        if begin is None:
            return given.as_block(result)
        start = given.text.index(result, begin)
        return given.cut(start, start + len(result))

    def expr(self, texts: pl.Expr) -> pl.Expr:
        """Return ``row`` as an elementwise expression over a String column; null where there is no text, or nothing is found."""
        return rowwise(texts, self.row, self.dtype)

    def outline(self) -> Any:
        """Return plain data from which ``reader.read_steps`` makes an equal step: the name, or a mapping with the params."""
        params = self.params.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        rest = params | ({"notFound": "keep"} if self.keeps else {})
        alias = self.Params.model_fields[self.shorthand].alias if self.shorthand else None
        value = rest.pop(alias or self.shorthand, None)
        if value is not None:
            return {self.name: value, **rest}
        return {self.name: rest} if rest else self.name

    def explain(self) -> str:
        """Return which engine runs the step, and why."""
        return self.runs_as or ("columns" if type(self).expr is not Step.expr else "Python, row by row")
