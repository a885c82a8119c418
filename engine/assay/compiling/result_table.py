"""The result table: texts of which the kernel answers all facts alike have the same results, so that one row of them is scored.

The columns that a plan makes of the facts run on distinct words; the other rows take the results of their word.
"""

from collections.abc import Iterable, Sequence

import polars as pl

from assay.aggregating.columns import UNSCORED, hidden
from assay.kernel.library import WORDS
from assay.names import HIDDEN
from assay.thresholds import THRESHOLDS

Layers = Sequence[Sequence[pl.Expr]]
"""Named columns, in layers of which each reads those before it."""

_RESULTS = HIDDEN + "results"
_KNOWN = HIDDEN + "known"
_FIRST_BATCHES = 4
"""Batches that may be full of new words."""

_COLUMNS_ONLY = pl.QueryOptFlags.none().update(projection_pushdown=True)


def few_rows(frame: pl.LazyFrame) -> pl.DataFrame:
    """Compute a few rows in memory, reading the columns that they need.

    NOTE: to optimize the query beyond that would take longer than what it saves.
    """
    return frame.collect(engine="in-memory", optimizations=_COLUMNS_ONLY)


class ResultTable:
    """The results of all words that a plan has seen.

    NOTE: batches of several threads add to it without a lock, which one of them could hold while it waits for the engine. What is
    lost so is scored again.

    Args:
        before: The layers up to that of the words, and that of ``UNSCORED``, which says why a row cannot be scored.
        words: The column of the words, null where there is no text.
        made_of_words: The layers that read the words, and ``UNSCORED``.
        names: The columns of these that the plan goes on with.

    Raises:
        ColumnNotFoundError: The layers read something else.
    """

    def __init__(self, before: Layers, words: str, made_of_words: Layers, names: Iterable[str]) -> None:
        self._words, self._made_of_words, self._names = words, made_of_words, [*names]
        self._known = self._scored(pl.DataFrame(schema={words: pl.UInt64}))
        self._batches = self._rows = self._new = 0
        self._has_stopped = False
        self.layers = [*before, *self._layers_of_results()]

    @property
    def is_open(self) -> bool:
        """Whether words recur, as far as is known."""
        return not self._has_stopped and THRESHOLDS.table_words > 0

    def _layers_of_results(self) -> Layers:
        words = pl.when(pl.col(UNSCORED).is_null()).then(pl.col(self._words))
        results = words.map_batches(self._results, return_dtype=pl.Struct(self._known.schema), is_elementwise=True)
        fields = {name: pl.col(_RESULTS).struct.field(name) for name in self._names}
        # of a row that cannot be scored, there is nothing but why
        fields |= {name: pl.coalesce(UNSCORED, fields[name]) for name in (hidden("error"), UNSCORED)}
        return [[results.alias(_RESULTS)], [field.alias(name) for name, field in fields.items()]]

    def _results(self, words: pl.Series) -> pl.Series:
        rows, known = words.alias(self._words).to_frame(), self._known
        if not self.is_open:
            return self._scored(rows).to_struct()
        results = self._found(rows, known)
        new = results[_KNOWN].null_count() - words.null_count()
        if new:
            distinct = results.filter(pl.col(_KNOWN).is_null()).select(self._words).drop_nulls().unique()
            new = distinct.height
            known = self._known = pl.concat([known, self._scored(distinct)], rechunk=True)
            results = self._found(rows, known)
        self._count(len(words), new)
        return results.to_struct()

    def _found(self, rows: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
        return rows.join(known, on=self._words, how="left", maintain_order="left")

    def _scored(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Score rows by their words, without the table."""
        unscored = pl.when(pl.col(self._words).is_null()).then(pl.lit(""))
        frame = rows.lazy().with_columns_seq(pl.lit(value=True).alias(_KNOWN), unscored.alias(UNSCORED))
        for layer in self._made_of_words:
            frame = frame.with_columns_seq(layer)
        return few_rows(frame.select(self._words, _KNOWN, *self._names))

    def _count(self, rows: int, new: int) -> None:
        """Stop where words are too many, or do not recur."""
        self._rows, self._new = self._rows + rows, self._new + new
        if self._rows >= THRESHOLDS.small_batch:  # smaller ones count together
            self._batches += 1
            do_not_recur = self._new * THRESHOLDS.rows_a_word > self._rows
            self._has_stopped |= do_not_recur and self._batches > _FIRST_BATCHES
            self._rows = self._new = 0
        self._has_stopped |= self._known.height > THRESHOLDS.table_words


def split_at_words(layers: Layers) -> tuple[Layers, str, Layers] | None:
    """Return the layers up to the column of words, its name, and the other layers; None if there are several, or none."""
    each = [(at, expr.meta.output_name()) for at, layer in enumerate(layers) for expr in layer]
    words = [(at + 1, name) for at, name in each if name.startswith(HIDDEN + WORDS)]
    if len(words) != 1:
        return None
    ((end, name),) = words
    return [layer for layer in layers[:end] if layer], name, layers[end:]
