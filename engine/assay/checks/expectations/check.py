"""The check for phrases that a task expects or forbids."""

import polars as pl

from assay.checks.base import Check, Example, Row
from assay.checks.expectations.columns import EXPECTATIONS
from assay.checks.expectations.rules import JOINT, METADATA, grade
from assay.expressions.lane import Lane


class TaskExpectations(Check):
    """The share of the task's ``metadata.expectations`` that the output meets; 1.0 when there are none.

    ``mustMention`` entries fail when none of their phrases occurs, ``mustNotMention`` entries when any does
    (case-insensitive substrings). An entry without a usable phrase fails and fills ``error``.
    """

    type = "task_expectations"
    claim_words = "meets the task's expectations"
    graded = True
    reads = (METADATA,)
    joint = JOINT
    examples = (
        Example(
            "You get your Money Back.",
            1.0,
            metadata={"expectations": {"mustMention": [{"anyOf": ["refund", "money back"]}]}},
        ),
        Example(
            "Here is a gift card.",
            0.5,
            metadata={"expectations": {"mustMention": [{"text": "card"}], "mustNotMention": [{"text": "gift"}]}},
        ),
        Example("anything", 1.0),
        Example("anything", 0.0, metadata={"expectations": [{"anyOf": []}]}),
    )

    def row(self, row: Row) -> float:
        return grade(row[METADATA], row["completion"]).score

    def answer_lane(self) -> Lane:
        return EXPECTATIONS

    def reason(self, row: Row) -> str:
        return grade(row[METADATA], row["completion"]).reason

    def error(self, row: Row) -> str | None:
        return grade(row[METADATA], row["completion"]).error

    def remark_expr(self) -> pl.Expr:
        return EXPECTATIONS.col.struct.field("remark")

    def explain(self) -> str:
        return "columns: one column-to-column search over all phrases of a batch; Python parses each layout of JSON text once"
