"""Files with something wrong in them, read in child processes with bounded time and memory.

A case is known by its number, its seed and its kind: the same file again, wherever it is made. A child does many cases, for to
start one costs more than a case does; what ends a child is laid at the door of the case that it was in, which a child of its
own then has to confirm.
"""

import contextlib
import io
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import mutations

MEMORY = 4 << 30
"""Bytes of address space that a child may have; the engine reserves much that it never uses."""

SECONDS = 20
"""Seconds, of the clock and of the processor, that a case may take."""

TOGETHER = 250
"""Cases of a child."""

OPTIONS = {f"rows.jsonl{packed}": [[], ["--max-bad-rows", "100%"]] for packed in ("", ".gz", ".zst")}
"""What is said on the command line besides: one of these."""


def case(seed, number, kinds):
    rng = random.Random(f"{seed}/{number}")
    kind = kinds[number % len(kinds)]
    content = mutations.mutated(kind, mutations.seeds()[kind], rng)
    options = rng.choice(OPTIONS.get(kind, [[]]))
    return kind, content, [*options, *rng.choice(([], [], [], ["parts"]))]


def rows_in(kind, path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    if kind.startswith(("spec", "tasks")):
        return len(mutations.ROWS)
    if kind == "rows.parquet":
        return pq.read_metadata(path).num_rows
    if kind.endswith(".arrow"):
        content = path.read_bytes()
        with (pa.ipc.open_file if content[:6] == b"ARROW1" else pa.ipc.open_stream)(content) as reader:
            return reader.read_all().num_rows
    if kind == "rows.jsonl":
        lines = path.read_bytes().split(b"\n")
        lines[0] = lines[0].removeprefix(b"\xef\xbb\xbf")
        return sum(bool(line.decode(errors="replace").strip()) for line in lines)
    return None


def rows_known(kind, path):
    import pyarrow as pa

    try:
        return rows_in(kind, path)
    except (pa.ArrowException, OSError, ValueError):
        return None


def words_of(kind, path, folder):
    source, spec = folder / "rows.jsonl", folder / "spec.json"
    if kind.startswith("spec"):
        return [source, "-s", path]
    if kind.startswith("tasks"):
        return [source, "-s", spec, "--tasks", path]
    return [path, "-s", spec]


def ended(app, kind, path, folder, options):
    import polars as pl

    parts = "parts" in options
    out = folder / "case" / ("out" if parts else "out.parquet")
    words = [*words_of(kind, path, folder), "--out", f"{out}/" if parts else out, "--json", "--regex-timeout", "0.05"]
    words += [one for one in options if one != "parts"] + ["--no-isolate"] * parts
    said, told = io.StringIO(), io.StringIO()
    code = 0
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(told):
        try:
            app(["score", *map(str, words)])
        except SystemExit as done:
            code = done.code
    told = told.getvalue()
    if [one for one in told if not (one.isprintable() or one == "\n")]:
        return f"{code}: what a terminal obeys: {told[-500:]}"
    if code in (2, 3):
        # wherever it broke off, there is nothing that looks like a result
        if not told.lstrip().rpartition("error: ")[2] or out.is_file():
            return f"{code}: {told[-500:]}"
        return code
    if code != 0:
        return f"{code}: {told[-500:]}"
    rows, there = json.loads(said.getvalue())["rows"], rows_known(kind, path)
    written = pl.read_parquet(out / "*.parquet" if parts else out).height
    return 0 if rows == written and there in (None, rows) else f"rows: {there} in, {rows} counted, {written} out"


def child(folder, seed, kinds, first, last):
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from assay.cli.main import app

    rows = "\n".join(map(json.dumps, mutations.ROWS))
    (folder / "rows.jsonl").write_text(rows)
    (folder / "spec.json").write_text(json.dumps(mutations.SPECS[0]))
    warnings.simplefilter("ignore", ResourceWarning)
    with (folder / "log").open("a") as log:
        for number in range(first, last):
            kind, content, options = case(seed, number, kinds)
            print("begin", number, file=log, flush=True)
            used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
            resource.setrlimit(resource.RLIMIT_CPU, (int(used) + SECONDS, -1))
            place = folder / "case"
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            (place / kind).write_bytes(content)
            try:
                how = ended(app, kind, place / kind, folder, options)
            except BaseException as wrong:  # noqa: BLE001  (whatever comes out of a run is what we look for)
                how = f"{type(wrong).__name__}: {wrong}"
            print("end", number, json.dumps(how), file=log, flush=True)


class Fuzz:
    """Cases by their numbers, and how they ended."""

    def __init__(self, folder, seed, kinds):
        self.folder, self.seed, self.kinds = folder, seed, kinds
        self.ends = {kind: Counter() for kind in kinds}
        self.found = []

    def ran(self, first, last):
        place = Path(tempfile.mkdtemp(dir=self.folder))
        words = ["-X", "faulthandler", __file__, place, self.seed, ",".join(self.kinds), first, last]
        env = {**os.environ, "POLARS_MAX_THREADS": "2", "NO_COLOR": "1", "COLUMNS": "200"}
        words = [sys.executable, *map(str, words)]
        with (place / "stderr").open("w") as errors, subprocess.Popen(words, env=env, stderr=errors) as run:
            log, beat = place / "log", time.monotonic()
            size = -1
            while run.poll() is None:
                now = log.stat().st_size if log.exists() else 0
                size, beat = (now, time.monotonic()) if now != size else (size, beat)
                if time.monotonic() - beat > 10 * SECONDS:  # of which it may use a tenth, and it has to start
                    run.kill()
                    break
                time.sleep(0.02)
        lines = [line.split(" ", 2) for line in log.read_text().splitlines()] if log.exists() else []
        ends = {int(words[1]): json.loads(words[2]) for words in lines if words[0] == "end"}
        begun = [int(words[1]) for words in lines if words[0] == "begin"]
        said = (place / "stderr").read_text(errors="replace")
        shutil.rmtree(place)
        if run.returncode == 0:
            return ends, None
        name = signal.Signals(-run.returncode).name if run.returncode < 0 else f"exit {run.returncode}"
        return ends, (begun[-1] if begun else first, f"{name}: {said[:1500]}")

    def run(self, first, last):
        while first < last:
            ends, broken = self.ran(first, min(first + TOGETHER, last))
            for number, how in ends.items():
                self.count(number, how)
            first = min(first + TOGETHER, last)
            if broken is not None:
                number, how = broken
                alone, again = self.ran(number, number + 1)
                self.count(number, again[1] if again else f"after others: {how}" if ends else alone[number])
                first = number + 1

    def count(self, number, how):
        kind = self.kinds[number % len(self.kinds)]
        self.ends[kind][how if isinstance(how, int) else "wrong"] += 1
        if not isinstance(how, int):
            self.found.append({"kind": kind, "case": f"{number} {self.seed} {','.join(self.kinds)}", "how": how})


def fuzz(cases, seed=0, kinds=()):
    with tempfile.TemporaryDirectory() as folder:
        one = Fuzz(folder, seed, list(kinds) or [*mutations.seeds()])
        one.run(0, cases)
    return {"ends": {kind: dict(ends) for kind, ends in one.ends.items()}, "found": one.found}


if __name__ == "__main__":
    child(Path(sys.argv[1]), sys.argv[2], sys.argv[3].split(","), int(sys.argv[4]), int(sys.argv[5]))
    sys.stdout.flush()
    os._exit(0)
