"""A registered function as a member of a rubric: one function, one set of params, the rows' expected values."""

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from assay.checks.base import Row
from assay.expressions.lane import Lane
from assay.functions.check import GOLDS, OnRow
from assay.functions.request import RowVerifier, read_verifier
from assay.functions.request_columns import named_verifier
from assay.names import EXPECTED

__all__ = ["Named"]

_READ = (EXPECTED, "answer")
"""Columns for the expected value; the first that the rollouts have is used."""


class Named(OnRow):
    """The reward of a registered function, called with the row's ``expected``, else its ``answer``.

    Args:
        fn: Its name in the registry.
        params: Its params.
    """

    extra = ""
    may_read: ClassVar[tuple[str, ...]] = _READ
    stays = _READ

    def __init__(self, fn: str, params: Mapping[str, Any] | None = None) -> None:
        super().__init__(fn)
        # NOTE: one class serves every function, so `type`, a class attribute elsewhere, is set on the instance
        self.type = fn  # type: ignore[misc]
        self.fn_params = dict(params or {})

    def verifier(self, row: Row) -> RowVerifier:
        gold = next((row[name] for name in _READ if name in row), None)
        return read_verifier({EXPECTED: gold, "params": self.fn_params}, self.default)

    def column_problems(self, schema: pl.Schema) -> list[tuple[str, str]]:
        if any(name in schema for name in _READ):
            return []
        candidate = next((name for name in GOLDS if name in schema), "COLUMN")
        fact = f"`{self.default}` compares with `{_READ[0]}` or `{_READ[1]}`, and the rollouts have neither."
        return [(fact, f"Rename one with --map {_READ[1]}={candidate}, or join a task table with --tasks.")]

    def _asked_lane(self) -> Lane:
        return named_verifier(self.default, self.fn_params, _READ)
