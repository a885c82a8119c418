"""A step: from a text to a part of it, or to another form of it, written in Python and as an expression."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from assay.calls.limits import Limits
from assay.expressions.lane import rowwise
from assay.values.params import Params

__all__ = ["Step", "StepExample"]


@dataclass(frozen=True)
class StepExample:
    """An example, for the documentation and the conformance tests.

    Attributes:
        text: The text.
        result: What the step makes of it; None if it finds nothing.
        params: The step's params.
    """

    text: str
    result: str | list[str] | None
    params: Mapping[str, Any] | None = None


class Step:
    """Base class of steps.

    ``row`` and ``expr`` must give the same result on every text.

    Attributes:
        name: The step's name in specs.
        aliases: Other names that specs may use.
        shorthand: The param that the value beside the name gives: ``{tag: answer}``; ``""`` if there is none.
        gives_list: Whether the result is a list of texts.
        examples: Cases that document and test the step.
        params: This step's params.
        limits: The run's limits for patterns; None for no limits.
    """

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    shorthand: ClassVar[str] = ""
    gives_list: ClassVar[bool] = False
    examples: ClassVar[tuple[StepExample, ...]] = ()
    Params: ClassVar[type[Params]] = Params
    limits: Limits | None = None

    def __init__(self, params: Any = None) -> None:
        self.params = self.Params() if params is None else params

    @property
    def key(self) -> str:
        """What tells it from other steps: equal keys, equal results."""
        return f"{type(self).__module__}.{type(self).__qualname__}:{self.params.model_dump()!r}"

    @property
    def has_expr(self) -> bool:
        """Whether the step defines ``expr``."""
        return type(self).expr is not Step.expr

    def row(self, text: str) -> str | list[str] | None:
        """Return what the step makes of one text; None if it finds nothing."""
        raise NotImplementedError

    def expr(self, texts: pl.Expr) -> pl.Expr:
        """Return ``row`` as an elementwise expression.

        Args:
            texts: A String column; null stays null.

        Returns:
            String, or List(String) if the step gives lists; null where it finds nothing.
        """
        return rowwise(texts, self.row, pl.List(pl.String) if self.gives_list else pl.String)

    def explain(self) -> str:
        """Return which engine runs the step, and why."""
        return "columns" if self.has_expr else "Python, row by row"
