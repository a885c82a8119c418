"""A contender in a process of its own: ``python -m contenders NAME SPEC ROLLOUTS OUT [ROWS WARM]``.

Without ROWS the contender works from file to file, once. With ROWS it works in memory: the first call is timed and its verdicts go to
OUT as parquet, then WARM more calls are timed; a line of JSON has the wall time and CPU time of the first call, and the best wall
time of the others.
"""

import gc
import importlib
import json
import sys
import time


def main(name, spec, rollouts, out, rows=None, warm="0"):
    contender = importlib.import_module(f"contenders.{name}")
    if rows is None:
        contender.run(contender.prepare(spec, (rollouts, out)), (rollouts, out))
        return
    import polars as pl

    frame = pl.read_parquet(rollouts, n_rows=int(rows))
    prepared = contender.prepare(spec, frame)
    verdicts, *first = _timed(contender, prepared, frame)
    pl.DataFrame(verdicts).write_parquet(out)
    del verdicts
    again = [_timed(contender, prepared, frame)[1] for _ in range(int(warm))]
    print(json.dumps({"seconds": first[0], "cpu": first[1], "warm": min(again, default=None)}))  # noqa: T201  (for the process that waits)


def _timed(contender, prepared, frame):
    gc.collect()
    cpu, started = time.process_time(), time.perf_counter()
    verdicts = contender.run(prepared, frame)
    return verdicts, time.perf_counter() - started, time.process_time() - cpu


if __name__ == "__main__":
    main(*sys.argv[1:])
