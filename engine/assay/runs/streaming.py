"""Stream rows through a plan, batch by batch, to a writer and a summary."""

from collections.abc import Callable

import polars as pl
import polars.selectors as cs

from assay.compiling.morsels import in_pieces
from assay.compiling.plan import Plan
from assay.loading.formats.files import Files
from assay.loading.formats.reading import batches
from assay.scoring.summary import Summary
from assay.thresholds import THRESHOLDS
from assay.writing.writers import Writer


def output_schema(plan: Plan, frame: pl.LazyFrame) -> pl.Schema:
    """Return the columns of a plan's result on a frame, with their types."""
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
    """Score a frame."""
    piece = read.at_once(plan.piece) if read else plan.piece
    together = read.at_once(THRESHOLDS.batch, anywhere=True) if read else THRESHOLDS.batch
    with in_pieces(piece):
        for batch in batches(plan.lazy(frame, watched=True), together):
            summary.add(plan, batch)
            if done is not None:
                done()
            if writer is not None:
                writer.write(batch.select(cs.by_name(plan.columns)))
