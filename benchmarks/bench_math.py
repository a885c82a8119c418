"""Mathematical equality: the check `math` beside a loop over math-verify, on pairs drawn by seed.

Cold includes the start of Python's libraries, and of the processes that compare; warm are other pairs in the same process. Then groups as
trainers have them: eight answers to a prompt, of which three differ.
"""

import json
import os
import random
import subprocess
import sys

from harness.math_pairs import math_pairs
from harness.table import at_least, line, per_row

PAIRS, PROMPTS = 150, 30
TURNS = 2

LOOP = """if True:
    import json, sys, time
    started = time.perf_counter(), time.process_time()
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify
    from sympy.core import random
    CONFIG = [LatexExtractionConfig(boxed_match_priority=0), ExprExtractionConfig()]

    def read(text):
        return parse("\\\\boxed{%s}" % text, CONFIG, parsing_timeout=None, raise_on_error=True)

    def score(answer, gold):
        random.seed(0)
        if answer.strip() == gold.strip():
            return 1.0
        return float(verify(read(gold.strip()), read(answer.strip()), timeout_seconds=None, raise_on_error=True))

    import logging
    logging.disable(logging.CRITICAL)
    def measured(pairs):
        return [score(answer, gold) for answer, gold in pairs]
    def used():
        return time.process_time()
"""
OURS = """if True:
    import json, os, sys, time
    from pathlib import Path
    started = time.perf_counter(), time.process_time()
    import assay
    from assay.checks.mathematics import client

    def measured(pairs):
        rows = [{"completion": answer, "gold": gold} for answer, gold in pairs]
        return assay.score(rows, {"checks": [{"type": "math", "value": {"column": "gold"}}]})[["reward", "error"]].rows()

    def used():
        session = client.POOL.processes[0]
        stats = [path.read_text().rpartition(")")[2].split() for path in Path("/proc").glob("[0-9]*/stat")]
        ticks = sum(int(stat[11]) + int(stat[12]) for stat in stats if int(stat[3]) == session)
        return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")
"""
MEASURE = """if True:
    results = []
    for pairs in json.load(sys.stdin):
        begun = started or (time.perf_counter(), used())
        scores = measured(pairs)
        results.append([time.perf_counter() - begun[0], used() - begun[1], scores])
        started = None
    json.dump(results, sys.stdout)
"""


def grouped(seed):
    """Eight answers to each prompt, of which three differ."""
    draw = random.Random(seed)
    groups = []
    for _ in range(PROMPTS):
        (answer, gold), *others = math_pairs(draw.random(), 3)
        texts = [answer, *(other for other, _ in others)]
        groups += [(draw.choice(texts), gold) for _ in range(8)]
    return groups


def ran(program, batches):
    done = subprocess.run(  # noqa: S603  (this interpreter, with the programs above)
        [sys.executable, "-c", program + "\n" + MEASURE],
        input=json.dumps(batches),
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONHASHSEED": "0"},  # sympy's results may depend on the order of sets
    )
    return json.loads(done.stdout)


def test_math(table):
    from assay.guard.pool import cores

    batches = [math_pairs(1, PAIRS), math_pairs(2, PAIRS), grouped(3)]
    turns = [(ran(OURS, batches), ran(LOOP, batches)) for _ in range(TURNS)]
    for ours, loop in turns:
        for pairs, (*_, answers), (*_, wanted) in zip(batches, ours, loop, strict=True):
            differ = [entry for entry in zip(pairs, answers, wanted, strict=True) if entry[1] != [entry[2], None]]
            assert differ == []
    states = (("cold", "drawn pairs"), ("warm", "drawn pairs"), ("warm", "8 answers a prompt, 3 of them different"))
    for at, (state, what) in enumerate(states):
        rows = len(batches[at])
        (seconds, cpu), (loop_seconds, loop_cpu) = (
            [min(turn[side][at][figure] for turn in turns) for figure in (0, 1)] for side in (0, 1)
        )
        times = loop_seconds / seconds
        wanted = at_least(times, 0.9 * cores() if at else 1, " × assay")
        measured = f"math, {rows:,} {what}"
        table.append(line(measured, "assay, math", per_row(seconds, rows), per_row(cpu, rows), state=state))
        figures = per_row(loop_seconds, rows), per_row(loop_cpu, rows)
        table.append(
            line(
                measured,
                "a loop over math-verify",
                *figures,
                ratio=(times, "assay"),
                cpu_ratio=(loop_cpu / cpu, "assay"),
                state=state,
                goal=wanted,
            )
        )
