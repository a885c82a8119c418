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
from contenders import fn_loop, plain_loop


def ways(spec, batch):
    """Return what scores a batch, by name; it is ready for batches like this one."""
    verifier = None if spec == "-" else assay.load_verifier(spec)
    plan = assay.compile(verifier, batch)
    return {
        "plan.score": plan.score,
        "assay.score with the plan": lambda frame: assay.score(frame, plan),
        "assay.score, compiled each time": lambda frame: assay.score(frame, verifier),
        "a plain loop": _loop(spec, batch),
    }


def _loop(spec, batch):
    if spec == "-":  # rows bring their golds
        return lambda frame: fn_loop.run(fn_loop.prepare(spec, frame), frame)
    *compiled, _ = plain_loop.prepare(spec, batch)
    return lambda frame: plain_loop.run((*compiled, frame["completion"].to_list()), frame)


def main(name, spec, rollouts, rows):
    first, *others = pl.read_parquet(rollouts).iter_slices(int(rows))
    way = ways(spec, first)[name]
    begun = _milliseconds(way, first)
    cpu = time.process_time()
    new = [_milliseconds(way, batch) for batch in others]
    cpu = (time.process_time() - cpu) / len(others) * 1000
    again = [_milliseconds(way, others[-1]) for _ in others]
    print(json.dumps({"first": begun, "new": median(new), "cpu": cpu, "warm": min(again)}))  # noqa: T201  (for the process that waits)


def _milliseconds(way, batch):
    started = time.perf_counter()
    way(batch)
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    main(*sys.argv[1:])
