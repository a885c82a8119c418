"""Rows through a plan, batch by batch, into a writer and a summary."""

from collections.abc import Callable, Iterator

import polars as pl
import polars.selectors as cs
from polars.exceptions import ComputeError

from assay.export import Writer
from assay.files import Files
from assay.interrupts import signalled
from assay.lanes.base import HIDDEN
from assay.pieces import in_pieces
from assay.plan import Plan
from assay.summary import Summary
from assay.thresholds import THRESHOLDS

__all__ = ["batches", "output_schema", "stream"]

_END = HIDDEN + "end"


def output_schema(plan: Plan, frame: pl.LazyFrame) -> pl.Schema:
    """Columns that a plan makes of a frame, with their types."""
    scored = plan.lazy(frame).collect_schema()
    return pl.Schema({name: scored[name] for name in plan.columns})


def stream(
    plan: Plan,
    frame: pl.LazyFrame,
    writer: Writer | None,
    summary: Summary,
    done: Callable[[], None] | None = None,
    read: Files | None = None,
) -> None:
    """Score a frame.

    Args:
        plan: How.
        frame: What.
        writer: Takes the rows; None for a summary only.
        summary: Counts them.
        done: Called after each batch is counted, and before it is written.
        read: The files that the rows come from, which know how many of them may be in memory at once.
    """
    piece = read.at_once(plan.piece) if read else plan.piece
    together = read.at_once(THRESHOLDS.batch, anywhere=True) if read else THRESHOLDS.batch
    with in_pieces(piece):
        for batch in batches(plan.lazy(frame, watched=True), together):
            summary.add(plan, batch)
            if done is not None:
                done()
            if writer is not None:
                writer.write(batch.select(cs.by_name(plan.columns)))


def batches(scored: pl.LazyFrame, together: int | None = None) -> Iterator[pl.DataFrame]:
    """What the engine gives, in order, gathered into batches that are worth the Python around each.

    Raises:
        KeyboardInterrupt: The engine ended the stream before its end, for a signal came.
        ComputeError: It did, and none came.
    """
    # NOTE: at an interrupt the engine ends a stream as if there were no more rows, whoever handles the signal, and even where
    # nobody does, and so it does where one of its threads fails; so the end is a row of its own
    last = pl.LazyFrame([{_END: True}], schema={**scored.collect_schema(), _END: pl.Boolean})
    stream = pl.concat([scored.with_columns(pl.lit(value=False).alias(_END)), last])
    ended = False
    for batch in stream.collect_batches(engine="streaming", chunk_size=together or THRESHOLDS.batch):
        ended = bool(batch[_END].any())
        rows = batch.drop(_END)
        yield rows.head(-1) if ended else rows
    if not ended and signalled():
        raise KeyboardInterrupt
    if not ended:
        raise ComputeError("a thread of the engine failed; standard error says where")
