"""Checks that ask whether a number of the text lies within bounds: of the spec, or each row's own from columns."""

import operator
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import polars as pl

from assay.checks.base import Check, Columns


class Bound(NamedTuple):
    """A bound of each row: its value, Float64, and its text for reasons."""

    value: pl.Expr
    text: pl.Expr


class BoundedCheck(Check, ABC):
    """Base class of our checks of a number.

    Attributes:
        asks: The params that are bounds, each with what it asks for in words.
    """

    asks: ClassVar[Mapping[str, str]]

    @property
    def bounds(self) -> tuple[tuple[str, float], ...]:
        """Words for each bound, and the bound."""
        bounds = ((words, getattr(self.params, name)) for name, words in self.asks.items())
        return tuple((words, bound) for words, bound in bounds if bound is not None)

    @property
    def shown(self) -> str:
        """The bounds for reasons."""
        return " and ".join(f"{words} {bound}" for words, bound in self.bounds)

    @abstractmethod
    def compare_bounds(self, bounds: Mapping[str, Bound]) -> Columns | None:
        """Return the outcomes for bounds in place of these params; None if Python has to score each row."""

    def takes(self, bounds: Mapping[str, Bound]) -> pl.Expr:
        """Return whether ``Params`` takes the bounds of a row, which are finite numbers."""
        del bounds
        return pl.lit(value=True)

    def written(self, bound: float) -> str:
        """Return a bound as reasons show it."""
        return str(bound)

    def holds(self, number: pl.Expr, bounds: Mapping[str, Bound]) -> pl.Expr:
        """Return whether a number lies within bounds; false for null."""
        each = (HOLDS[self.asks[name]](number.cast(pl.Float64), bound.value) for name, bound in bounds.items())
        return pl.all_horizontal(each).fill_null(value=False)

    def shown_bounds(self, bounds: Mapping[str, Bound]) -> pl.Expr:
        """Return the bounds for reasons."""
        each = (pl.concat_str(pl.lit(f"{self.asks[name]} "), bound.text) for name, bound in bounds.items())
        return pl.concat_str(each, separator=" and ")


HOLDS = {"at least": operator.ge, "at most": operator.le, "exactly": operator.eq}
"""How a number, or a column of numbers, compares with a bound."""
