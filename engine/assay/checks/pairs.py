"""Checks that compare a text with a gold in Python, once for each distinct pair of them."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import polars as pl

from assay.calls.limits import is_score, is_user_error
from assay.checks.base import NO_SCORE, Columns, GoldCompared, GoldKind, Outcome, Row, identity
from assay.errors import describe_error, encodable
from assay.expressions.pairs import distinct_golds, once_pairs
from assay.expressions.shared_columns import SharedColumn, once, text
from assay.system.memory import uncollected

PAIR_ANSWER = pl.Struct({"score": pl.Float64, "reason": pl.String, "error": pl.String})
"""The answer for a pair: its score, the reason if it is below 1, and the error if there was one."""

Answer = tuple[float, str, str | None]
"""The values of such a struct."""

Answers = Sequence[Answer | tuple[None, None, None]]

NO_ANSWER = (None, None, None)
"""The answer of a type with lazy golds for a gold that it cannot use."""


class PairCheck(GoldCompared):
    """Base class of checks that compare a text with one gold; a subclass defines ``judge``.

    A subclass for which a package compares many pairs at once overrides ``judge_all``, too.
    """

    graded = True
    runs_as = "Python, once for each distinct text and gold"
    golds = GoldKind("value")
    reads_utf8: ClassVar[bool] = False
    """Whether ``judge_all`` takes the UTF-8 of texts: to decode them for a parser that encodes them takes half its time."""

    @abstractmethod
    def judge(self, value: str, gold: Any) -> tuple[float, str]:
        """Return the score of a text and the reason, which counts if the score is below 1: the definition."""

    def judge_all(self, values: Sequence[Any], golds: Sequence[Any]) -> Answers:
        """Return the answer for each pair of a text, or its UTF-8 if ``reads_utf8``, and a gold."""
        return [self.answered(self.judge, value, gold) for value, gold in zip(values, golds, strict=True)]

    @staticmethod
    def answered(judge: Callable[[Any, Any], tuple[float, str]], value: Any, gold: Any) -> Answer:
        """Return the answer of ``judge``, or of what it raises."""
        try:
            score, reason = judge(value, gold)
        except BaseException as exception:  # what a package raises never ends a run
            if not is_user_error(exception):
                raise
            return 0.0, describe_error(exception), describe_error(exception)
        if not (type(score) is float and 0.0 <= score <= 1.0) and not is_score(score):  # most are floats
            return 0.0, NO_SCORE, NO_SCORE
        return score, encodable(reason) if score < 1 else "", None

    @property
    def own_gold(self) -> Any:
        return getattr(self.params, self.golds.param) if self.golds.param else None

    def score(self, value: str, gold: Any) -> float:
        return self.judge(value, gold)[0]

    def reason(self, row: Row) -> str:
        return self.judge(row["completion"], self.own_gold)[1]

    def outcome(self, row: Row) -> Outcome:
        return Outcome(*self.answered(self.judge, row["completion"], self.own_gold))

    def pairs_expr(self, golds: pl.Expr) -> pl.Expr:
        """Return the answers for golds from a column."""
        return once_pairs(text(), golds, self._of_columns, PAIR_ANSWER)

    def compare(self, gold: Any) -> Columns:
        if isinstance(gold, pl.Expr):
            return Columns.of(self.pairs_expr(gold))
        lane = SharedColumn(f"pairs:{identity(self)}", lambda _: once(text(), self._of_texts, PAIR_ANSWER))
        return Columns.of(lane.col, graded=self.graded)

    def score_expr(self, gold: Any) -> pl.Expr:
        return self.compare(gold).score

    def _of_texts(self, texts: pl.Series) -> pl.Series:
        return self._of_pairs(self._read(texts), [self.own_gold] * len(texts))

    def _of_columns(self, texts: pl.Series, golds: pl.Series) -> pl.Series:
        distinct, which = distinct_golds(golds)
        shared = distinct.to_list()  # one object for each gold, whose hash is computed once
        return self._of_pairs(self._read(texts), [*map(shared.__getitem__, which.to_list())])

    def _read(self, texts: pl.Series) -> list[Any]:
        return (texts.cast(pl.Binary) if self.reads_utf8 else texts).to_list()

    def _of_pairs(self, values: list[Any], golds: list[Any]) -> pl.Series:
        with uncollected():
            return in_columns(self.judge_all(values, golds), PAIR_ANSWER)


def in_columns(rows: Sequence[Sequence[Any]], dtype: pl.Struct) -> pl.Series:
    """Return a column of structs with the values of each row, in a fifth of the time of ``DataFrame(rows, orient="row")``."""
    columns = zip(*rows, strict=True) if rows else [()] * len(dtype.fields)
    named = zip(dtype.fields, columns, strict=True)
    return pl.DataFrame([pl.Series(field.name, items, dtype=field.dtype) for field, items in named]).to_struct()
