"""What each threshold and each second implementation is worth: `make bench ablation`.

Warm calls of plans on workloads drawn by seed, with one thing switched off and with nothing switched off, in alternation. A factor is the
time without it over the time with it; a second implementation below 2 does not pay. Rewards are equal before anything is timed.

Usage: python benchmarks/ablation.py [WORD…]; words choose the switches whose names have one of them.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from unittest import mock

import polars as pl

import assay
from assay.compiling.plan import Plan
from assay.compiling.verifiers import on_row
from assay.functions import registry, request
from assay.thresholds import EVER, NAMES, set_to
from harness.draws import FUNCTIONS, function_draws, spec_draws
from harness.generate import drawn_file, functions_file
from harness.json_outputs import SPECS as JSON_SPECS
from harness.json_outputs import json_file
from harness.patterns import PATTERNS, pattern_texts
from harness.process import SPEC

ROWS = 20_000
SMALL = 64
TURNS = 2
SHOWN = 3
"""Workloads that are printed for each switch, those with the greatest factors; and the one with the least."""
PAYS = 2.0
NOISE = 1.1
"""Factors below are not told from 1."""
SIZES = {"piece", "shared_piece", "slice", "batch", "reward_rows", "first_chunk", "chunk", "grouped_rows", "terms"}
"""Thresholds that cut the same work into parts: there is no other implementation below them."""


@dataclass(frozen=True)
class Workload:
    """What is scored: `prepare()` returns a function that scores it and returns the rewards; `calls` make one measurement."""

    name: str
    prepare: Callable[[], Callable[[], pl.Series]]
    calls: int = 1

    def seconds(self, score: Callable[[], pl.Series]) -> float:
        started = time.perf_counter()
        for _ in range(self.calls):
            score()
        return time.perf_counter() - started

    def factor(self, switched: Callable[[], AbstractContextManager[object]]) -> float:
        """Return the time with a switch over the time without it, each the least of some turns."""
        score = self.prepare()
        rewards = score()
        with switched():
            score_without = self.prepare()
            assert score_without().equals(rewards), self.name
        times = [], []
        for _ in range(TURNS):
            times[0].append(self.seconds(score))
            with switched():
                times[1].append(self.seconds(score_without))
        return min(times[1]) / min(times[0])


# ── workloads ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _scored(verifier: object, rollouts: pl.DataFrame) -> Callable[[], pl.Series]:
    spec = on_row() if verifier is None else assay.load_verifier(verifier)
    plan = Plan((spec,), tuple(rollouts.schema.items()))
    return lambda: plan.score(rollouts)["reward"]


def _from_file(path: Path, verifier: object) -> Callable[[], pl.Series]:
    def score() -> pl.Series:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "rewards.parquet")
            assay.score_file(path, verifier, out)
            return pl.read_parquet(out, columns=["reward"])["reward"]

    return score


def workloads(folder: Path) -> Iterator[Workload]:
    """Yield what is scored: drawn specs, functions, patterns, JSON, small batches, and files."""
    for draw in spec_draws()[:6]:
        rollouts = pl.read_parquet(drawn_file(draw), n_rows=ROWS)
        yield Workload(draw.name, partial(_scored, {"id": "drawn", "checks": [*draw.checks]}, rollouts))
    for draw in function_draws()[: 2 * len(FUNCTIONS)]:
        rollouts = pl.read_parquet(functions_file(draw, ROWS))
        expectations = {"checks": [{"type": "task_expectations"}]} if draw.function == "task_expectations" else None
        yield Workload(draw.name, partial(_scored, expectations, rollouts))
    patterns = {"checks": [{"type": "regex", "pattern": one.pattern} for one in PATTERNS]}
    for rows, size in ((SMALL, 1_500), (2_000, 1_500)):
        rollouts = pl.DataFrame({"completion": pattern_texts(size, rows, 0)})
        yield Workload(f"all patterns, {rows:,} rows", partial(_scored, patterns, rollouts))
    for name, spec in JSON_SPECS.items():
        rollouts = pl.read_parquet(json_file(ROWS, 8), n_rows=ROWS)
        yield Workload(f"{name}, {ROWS:,} rows", partial(_scored, spec, rollouts))
    first = spec_draws()[0]
    texts = pl.read_parquet(drawn_file(first), n_rows=10 * ROWS)
    yield Workload(f"ten checks, {SMALL} rows", partial(_scored, SPEC, texts.head(SMALL)), calls=20)
    yield Workload("ten checks, 1 row", partial(_scored, SPEC, texts.head(1)), calls=100)
    for groups in (1_000, 10 * ROWS):
        path = folder / f"{groups}.parquet"
        texts.write_parquet(path, row_group_size=groups)
        yield Workload(f"ten checks, parquet, groups of {groups:,}", partial(_from_file, path, SPEC))
    path = folder / "rows.jsonl"
    texts.write_ndjson(path)
    yield Workload("ten checks, JSONL", partial(_from_file, path, SPEC))


# ── switches ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def _without_twin(name: str) -> Iterator[None]:
    twin = registry.function(name)
    with mock.patch.dict(vars(registry)["_REGISTRY"], {name: replace(twin, expr=None)}):
        yield


def _no_templates(texts: pl.Series, default: str) -> pl.Series:
    del default
    return pl.repeat(None, len(texts), dtype=request.ROW_VERIFIER, eager=True)


def _switches() -> Iterator[tuple[str, Callable[[], AbstractContextManager[object]]]]:
    """Yield what can be switched off, and how."""
    for name in registry.list_fns():
        if registry.function(name).expr is not None:
            yield f"the twin of {name}", partial(_without_twin, name)
    yield "templates of requests", lambda: mock.patch.object(request, "_read_templates", _no_templates)
    for name in NAMES:
        if name not in SIZES:
            yield f"{name} = 0", partial(set_to, **{name: 0})
        yield f"{name} = ever", partial(set_to, **{name: EVER})


def main() -> None:
    words = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        scored = [*workloads(Path(folder))]
        for name, switched in _switches():
            if words and not any(word in name for word in words):
                continue
            factors = sorted(((workload.factor(switched), workload.name) for workload in scored), reverse=True)
            most = factors[0][0]
            verdict = "" if most >= PAYS else " · does not pay" if most < NOISE else " · below 2"
            lines = (f"    {factor:8.2f}  {workload}\n" for factor, workload in (*factors[:SHOWN], factors[-1]))
            sys.stdout.write(f"{name}{verdict}\n{''.join(lines)}")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
