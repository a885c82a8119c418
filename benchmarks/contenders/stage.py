"""A run that is cut off after a stage: ``python -m contenders.stage STAGE SPEC ROLLOUTS OUT``; each does what those before it do.

Results of the engine are added up within the stream, so that nothing is kept and nothing but the stage is paid for.
"""

import sys

import polars as pl
import polars.selectors as cs

import assay
from assay.compiling.plan import in_pieces
from assay.runs import score_file as _  # noqa: F401  (what a run imports)


def start(spec, rollouts, out):
    """Import, read the spec and the schema, compile."""
    del out
    frame = assay.scan(rollouts)
    return assay.compile(assay.load_verifier(spec), frame.collect_schema()), frame


def decode(spec, rollouts, out):
    """Read the texts as a run reads them."""
    plan, frame = start(spec, rollouts, out)
    with in_pieces(plan.piece):
        frame.select(pl.col("completion").str.len_bytes().sum()).collect(engine="streaming")


def _scored(spec, rollouts, out, columns):
    plan, frame = start(spec, rollouts, out)
    sizes = (columns - cs.string()).sum(), (columns & cs.string()).str.len_bytes().sum()
    with in_pieces(plan.piece):
        plan.lazy(frame).select(*sizes).collect(engine="streaming")


def checks(spec, rollouts, out):
    """Score each check, and the reward."""
    _scored(spec, rollouts, out, cs.float())


def reasons(spec, rollouts, out):
    """Say why a check failed."""
    _scored(spec, rollouts, out, cs.float() | cs.by_name("feedback", "error"))


def summary(spec, rollouts, out):
    """Hand the results on batch by batch, and count them."""
    del out
    assay.score_file(rollouts, spec, None)


def write(spec, rollouts, out):
    """Write the rewards."""
    assay.score_file(rollouts, spec, out, overwrite=True)


STAGES = {stage.__name__: stage for stage in (start, decode, checks, reasons, summary, write)}

if __name__ == "__main__":
    STAGES[sys.argv[1]](*sys.argv[2:])
