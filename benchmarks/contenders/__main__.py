"""A contender in a process of its own: ``python -m contenders NAME SPEC ROLLOUTS OUT [ROWS TURNS]``.

Without ROWS the contender works from file to file, once. With ROWS it works in memory: the first run goes to OUT as parquet, then
TURNS more are timed, and the seconds of the best one are printed.
"""

import gc
import importlib
import sys
import time


def main(name, spec, rollouts, out, rows=None, turns="3"):
    contender = importlib.import_module(f"contenders.{name}")
    if rows is None:
        contender.run(contender.prepare(spec, (rollouts, out)), (rollouts, out))
        return
    import polars as pl

    import assay

    frame = pl.scan_parquet(rollouts).head(int(rows)).collect()
    prepared = contender.prepare([assay.load_verifier(spec)], frame)
    pl.DataFrame(contender.run(prepared, frame)).write_parquet(out)
    best = float("inf")
    for _ in range(int(turns)):
        gc.collect()
        started = time.perf_counter()
        contender.run(prepared, frame)
        best = min(best, time.perf_counter() - started)
    print(best)  # noqa: T201  (for the process that waits)


if __name__ == "__main__":
    main(*sys.argv[1:])
