"""A check with a gold for each row, and the loop by hand: ``python -m contenders.golds NAME``, each on rows never seen before.

A line of JSON has the processor time of the plan, of the loop, and of the loop with reasons, in nanoseconds a row. What is imported at
the first use is there: the plan has scored other rows.
"""

import gc
import json
import sys
import time

import polars as pl

from assay import load_verifier
from assay.compiling.plan import Plan
from harness.golds import CASES

_FIRST = 600


def main(name):
    case = CASES[name]
    verifier = load_verifier({"checks": [case.check]})
    earlier, rollouts = (pl.DataFrame(case.rollouts(seed)) for seed in (1, 2))
    _score(verifier, earlier.head(_FIRST))
    ours, rewards = _timed(_score, verifier, rollouts)
    loop, scores = _timed(_loop, case, rollouts)
    assert rewards == scores, f"{name}: {sum(map(float.__ne__, rewards, scores))} rows differ"
    assert len({*scores}) > 1, name
    with_reasons, _ = _timed(_loop_with_reasons, case, rollouts)
    print(json.dumps([took / case.rows * 1e9 for took in (ours, loop, with_reasons)]))  # noqa: T201  (for the process that waits)


def _timed(function, *inputs):
    gc.collect()
    started = time.process_time()
    result = function(*inputs)
    return time.process_time() - started, result


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
