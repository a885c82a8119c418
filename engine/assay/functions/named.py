"""The check that a registered function makes as a member of a rubric: one function, one set of params, the rows' golds."""

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from assay.checks.base import Row
from assay.expressions.lane import Lane
from assay.functions.check import GOLDS, OnRow
from assay.functions.request import Asked, read_verifier
from assay.functions.request_columns import named_verifier
from assay.names import EXPECTED

__all__ = ["Named"]

_READ = (EXPECTED, "answer")
"""Where the gold stands: the first column that is there."""


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
        # NOTE: one class stands for every function, so what other checks say of their class this one says of itself
        self.type = fn  # type: ignore[misc]
        self.given = dict(params or {})

    def asked(self, row: Row) -> Asked:
        gold = next((row[name] for name in _READ if name in row), None)
        return read_verifier({EXPECTED: gold, "params": self.given}, self.default)

    def column_problems(self, schema: pl.Schema) -> list[tuple[str, str]]:
        if any(name in schema for name in _READ):
            return []
        likely = next((name for name in GOLDS if name in schema), "COLUMN")
        fact = f"`{self.default}` compares with `{_READ[0]}` or `{_READ[1]}`, and the rollouts have neither."
        return [(fact, f"Rename one with --map {_READ[1]}={likely}, or join a task table with --tasks.")]

    def _asked_lane(self) -> Lane:
        return named_verifier(self.default, self.given, _READ)
