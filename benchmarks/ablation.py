"""What each threshold and each second implementation is worth: `make bench ablation`.

Warm calls of plans on workloads drawn by seed, with one thing switched off and with nothing switched off, in alternation. A factor is the
time without it over the time with it; a second implementation below 2 does not pay. Rewards are equal before anything is timed.

Usage: python benchmarks/ablation.py [WORD…]; words choose the switches whose names have one of them.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from unittest import mock

import polars as pl

import assay
from assay.compiling.plan import Plan
from assay.compiling.verifiers import on_row
from assay.functions import registry
from assay.thresholds import EVER, Thresholds, set_to
from harness.draws import FUNCTIONS, function_draws, spec_draws
from harness.generate import drawn_file, functions_file
from harness.json_outputs import SPECS as JSON_SPECS
from harness.json_outputs import json_file
from harness.patterns import PATTERNS, pattern_texts
from harness.process import SPEC

ROWS = 20_000
SMALL = 64
TURNS = 2
PAYS = 2.0
NOISE = 1.1
"""Factors below are not told from 1."""


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
    with mock.patch.dict(registry._REGISTRY, {name: replace(twin, expr=None)}):  # noqa: SLF001  (what is switched off is private)
        yield


def _switches() -> Mapping[str, Callable[[], AbstractContextManager[object]]]:
    """Return what can be switched off, by name."""
    twins = {
        f"the twin of {name}": partial(_without_twin, name)
        for name in registry.list_fns()
        if registry.function(name).expr
    }
    names = [field.name for field in fields(Thresholds)]
    least = {f"{name} = 0": partial(set_to, **{name: 0}) for name in names}
    most = {f"{name} = ever": partial(set_to, **{name: EVER}) for name in names}
    return {
        **twins,
        **{name: switch for pair in zip(least.items(), most.items(), strict=True) for name, switch in pair},
    }


def main() -> None:
    words = sys.argv[1:]
    switches = {name: one for name, one in _switches().items() if not words or any(word in name for word in words)}
    with tempfile.TemporaryDirectory() as folder:
        every = [*workloads(Path(folder))]
        for name, switched in switches.items():
            factors = {}
            for workload in every:
                factors[workload.name] = workload.factor(switched)
            top = sorted(factors.items(), key=lambda item: -item[1])[:3]
            low = min(factors.items(), key=lambda item: item[1])
            verdict = "" if top[0][1] >= PAYS else "  does not pay" if top[0][1] < NOISE else "  below 2"
            sys.stdout.write(f"{name}{verdict}\n")
            for workload, factor in [*top, low]:
                sys.stdout.write(f"    {factor:8.2f}  {workload}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
