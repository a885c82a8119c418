"""Batches of a trainer in one process: ``python -m contenders.batches WAY SPEC ROLLOUTS ROWS``, each batch never seen before.

A line of JSON has the milliseconds of the first call, the median of the calls that follow with a new batch each, the CPU time of
these, and the best of as many calls with the last batch.
"""

import json
import sys
import time
from statistics import median

import polars as pl

import assay

WAYS = {
    "plan.score": lambda frame, plan, _: plan.score(frame),
    "assay.score with the plan": lambda frame, plan, _: assay.score(frame, plan),
    "assay.score, compiled each time": lambda frame, _, verifier: assay.score(frame, verifier),
}


def main(way, spec, rollouts, rows):
    frame, verifier = pl.read_parquet(rollouts), None if spec == "-" else assay.load_verifier(spec)
    batches = list(frame.iter_slices(int(rows)))
    plan = assay.compile(verifier, batches[0])
    first, *others = batches
    begun = _milliseconds(way, first, plan, verifier)
    cpu = time.process_time()
    new = [_milliseconds(way, batch, plan, verifier) for batch in others]
    cpu = (time.process_time() - cpu) / len(others) * 1000
    again = [_milliseconds(way, others[-1], plan, verifier) for _ in others]
    print(json.dumps({"first": begun, "new": median(new), "cpu": cpu, "warm": min(again)}))  # noqa: T201  (for the process that waits)


def _milliseconds(way, batch, plan, verifier):
    started = time.perf_counter()
    WAYS[way](batch, plan, verifier)
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    main(*sys.argv[1:])
