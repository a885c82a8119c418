"""A registered function as a member of a rubric: one function, one set of params, the rows' expected values."""

from collections.abc import Mapping
from typing import Any, ClassVar

import polars as pl

from assay.checks.base import Row
from assay.expressions.lane import Lane
from assay.functions.check import GOLDS, OnRow
from assay.functions.golds import GOLD_COLUMNS, gold_column, gold_note
from assay.functions.request import RowVerifier, read_verifier
from assay.functions.request_columns import named_verifier
from assay.names import EXPECTED


class Named(OnRow):
    """The reward of a registered function, called with the row's ``expected``, else its ``answer``, else its ``target``.

    Args:
        fn: Its name in the registry.
        params: Its params.
    """

    extra = ""
    may_read: ClassVar[tuple[str, ...]] = GOLD_COLUMNS
    stays = GOLD_COLUMNS
    spared: ClassVar[dict[str, tuple[str, ...]]] = {"target": (EXPECTED, "answer")}

    def __init__(self, fn: str, params: Mapping[str, Any] | None = None) -> None:
        super().__init__(fn)
        # NOTE: one class serves every function, so `type`, a class attribute elsewhere, is set on the instance
        self.type = fn  # type: ignore[misc]
        self.fn_params = dict(params or {})

    def verifier(self, row: Row) -> RowVerifier:
        gold = gold_column(row)
        return read_verifier({EXPECTED: None if gold is None else row[gold], "params": self.fn_params}, self.default)

    def column_problems(self, schema: pl.Schema) -> list[tuple[str, str]]:
        if gold_column(schema) is not None:
            return []
        candidate = next((name for name in GOLDS if name in schema), "COLUMN")
        fact = (
            f"`{self.default}` compares with `expected`, else `answer` or `target`, and the rollouts have none of them."
        )
        return [(fact, f"Rename one with --map answer={candidate}, or join a task table with --tasks.")]

    def column_notes(self, schema: pl.Schema) -> list[str]:
        return gold_note(schema)

    def _asked_lane(self) -> Lane:
        return named_verifier(self.default, self.fn_params)
