"""A check with a gold for each row, and the loop by hand: ``python -m contenders.golds NAME``, each on rows never seen before.

A line of JSON has the processor time of the plan, of the loop, and of the loop with reasons, in nanoseconds a row, that of the
processes that they start included. What is imported at the first use is there: the plan and the loop have scored other rows.
"""

import gc
import json
import os
import resource
import sys
import time
from collections import defaultdict
from pathlib import Path

import polars as pl

from assay import load_verifier
from assay.compiling.plan import Plan
from harness.golds import CASES

_FIRST = 600


def main(name):
    case = CASES[name]
    verifier = load_verifier({"checks": [case.check]})
    earlier, rollouts = (pl.DataFrame(case.draw(case.rows, seed)) for seed in (1, 2))
    _score(verifier, earlier.head(_FIRST))
    _loop(case, earlier.head(1))
    ours, rewards = _timed(_score, verifier, rollouts)
    loop, scores = _timed(_loop, case, rollouts)
    assert rewards == scores, f"{name}: {sum(map(float.__ne__, rewards, scores))} rows differ"
    assert len({*scores}) > 1, name
    with_reasons, _ = _timed(_loop_with_reasons, case, rollouts)
    print(json.dumps([took / case.rows * 1e9 for took in (ours, loop, with_reasons)]))  # noqa: T201  (for the process that waits)


def _timed(function, *inputs):
    gc.collect()
    others, started = _used_by_others(), time.process_time()
    result = function(*inputs)
    took = time.process_time() - started  # before the processes are read: there may be hundreds
    return took + _used_by_others() - others, result


def _used_by_others():
    """The processor time of all processes that this one started."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = children.ru_utime + children.ru_stime
    ticks, by_parent = {}, defaultdict(list)
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            _, parent, *fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        by_parent[int(parent)].append(int(path.parent.name))
        ticks[int(path.parent.name)] = sum(map(int, fields[9:13]))  # with those of its children that ended
    running = by_parent[os.getpid()]
    for process in running:
        running += by_parent[process]
    return ended + sum(ticks[process] for process in running) / os.sysconf("SC_CLK_TCK")


def _score(verifier, rollouts):
    return Plan((verifier,), tuple(rollouts.schema.items())).score(rollouts)["reward"].to_list()


def _rows(rollouts):
    return zip(*(column.to_list() for column in rollouts), strict=True)


def _loop(case, rollouts):
    return [case.score(*row) for row in _rows(rollouts)]


def _loop_with_reasons(case, rollouts):
    scores, reasons = [], []
    for row in _rows(rollouts):
        score = case.score(*row)
        scores.append(score)
        reasons.append("" if score == 1 else case.reason(*row))
    return scores, reasons


if __name__ == "__main__":
    main(*sys.argv[1:])
