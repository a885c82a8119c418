"""What a verifier costs: beside reading the column, beside the loop over rows, and check by check.

A run is timed from the file, without writing. A check is timed alone, on rows in memory, less what a plan costs whose check does
nothing; what several checks share, such as the lower-cased text, is part of each of them.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Unpack

import polars as pl

from assay.checks.base import Check, Row
from assay.compiling.morsels import in_pieces
from assay.compiling.plan import Plan
from assay.compiling.requirements import read_columns
from assay.compiling.verifiers import closing_checks, limits_of_run, verifiers_of_run
from assay.errors import InputError
from assay.expressions.completion import completion_text_expr
from assay.loading.formats.engine_source import batches
from assay.loading.formats.files import ENGINE_ERRORS
from assay.loading.formats.reading import reading_of
from assay.loading.rollouts import Rollouts, open_rollouts
from assay.names import COMPLETION
from assay.options import BenchOptions, ScoreOptions, documented, settle
from assay.scoring.in_memory import cause, engine_error, prepare, tell, warn
from assay.scoring.reference import score_rows
from assay.scoring.summary import Summary
from assay.spec.verifier import VerifierSource, load_verifier
from assay.system.signals import interruptible
from assay.system.spool import spooling

__all__ = ["Bench", "CheckCost", "bench"]

_TURNS = 3
_SPENT = 20.0
"""Seconds after which a file is not scored once more."""

_ALONE = (50_000, 128 << 20, 2.0)
"""Rows, bytes of text and seconds of the whole plan that checks are timed on alone, at most."""
_LOOPED = (2_000, 8 << 20, 0.2)
"""The same for the loop over rows."""


class _Nothing(Check):
    """A check that does nothing: what is left is what every plan costs."""

    type = "nothing"

    def row(self, row: Row) -> float:
        del row
        return 1.0

    def expr(self) -> pl.Expr:
        return pl.lit(value=True)


@dataclass(frozen=True)
class CheckCost:
    """What one check costs.

    Attributes:
        id: Its id.
        type: Its type.
        ns_per_row: Nanoseconds of wall time a row, alone, less what a plan costs whose check does nothing.
        runs_as: Which engine answers, and why.
    """

    id: str
    type: str
    ns_per_row: float
    runs_as: str


@dataclass(frozen=True)
class Bench:
    """What a verifier costs on some rollouts; the best of several turns each.

    Attributes:
        rows: Rows scored.
        bytes: Bytes of their text.
        seconds: To read and score them.
        floor_seconds: To read the column of completions, and nothing else.
        loop_rows: Rows of the loop over ``row()``.
        loop_seconds: Its time, for texts that are in memory.
        alone_rows: Rows that checks were timed on alone.
        base_ns_per_row: What a plan costs whose check does nothing.
        checks: The checks, the slowest first.
        difference: Where the loop and the plan disagree, or ``""``.
        notes: How the rollouts were read.
    """

    rows: int
    bytes: int
    seconds: float
    floor_seconds: float
    loop_rows: int
    loop_seconds: float
    alone_rows: int
    base_ns_per_row: float
    checks: tuple[CheckCost, ...]
    difference: str = ""
    notes: tuple[str, ...] = ()

    @property
    def rows_per_second(self) -> float:
        """Rows scored a second."""
        return self.rows / self.seconds

    @property
    def mb_per_second(self) -> float:
        """Megabytes of text a second."""
        return self.bytes / self.seconds / 1e6

    @property
    def times_floor(self) -> float:
        """How many times as long as reading the column scoring takes."""
        return self.seconds / self.floor_seconds

    @property
    def times_faster_than_loop(self) -> float:
        """How many times as long the loop takes for a row."""
        return (self.loop_seconds / self.loop_rows) / (self.seconds / self.rows)

    def as_json(self) -> dict[str, Any]:
        """Plain data for machines."""
        names = ("rows_per_second", "mb_per_second", "times_floor", "times_faster_than_loop")
        return asdict(self) | {name: getattr(self, name) for name in names}


@documented(BenchOptions)
def bench(
    rollouts: Any,
    verifier: VerifierSource,
    **options: Unpack[BenchOptions],
) -> Bench:
    """Measure what a verifier costs.

    Args:
        rollouts: Anything ``assay.scan`` reads.
        verifier: A verifier.
        options: Which rollouts, and how they are read.

    Raises:
        SpecError: The verifier cannot be used.
        InputError: Rollouts or tasks cannot be read, or there are no rows.
    """
    rows = settle(BenchOptions, options, "bench")["rows"]
    settled = settle(ScoreOptions, {name: value for name, value in options.items() if name != "rows"}, "bench")
    with interruptible() as stop, spooling():
        loaded = verifiers_of_run(verifier, settled, limits=limits_of_run(verifier, settled, stop=stop))
        opened = open_rollouts(rollouts, reading_of(settled), read_columns(loaded))
        opened = replace(opened, frame=opened.frame if rows is None else opened.frame.head(rows))
        source, plan = prepare(opened, loaded, settled)
        warn(loaded)
        try:
            tell(plan.refuse(source.frame))
            with closing_checks(loaded):
                return replace(_measured(plan, opened, source.frame), notes=source.notes)
        except ENGINE_ERRORS as wrong:
            raise engine_error(wrong, source.files, plan) from cause(wrong, source.files)


def _measured(plan: Plan, opened: Rollouts, frame: pl.LazyFrame) -> Bench:
    text = completion_text_expr(COMPLETION, opened.frame.collect_schema()[COMPLETION])
    column = opened.frame.select(rows=pl.len(), bytes=text.str.len_bytes().sum())
    rows, size = map(int, _collect(column).row(0))
    if not rows:
        raise InputError("There are no rollouts to measure.")
    # the two take turns, so that what else the machine does hits both
    floor, seconds = _best([partial(_collect, column), partial(_score, plan, frame)])

    def fitting(most: tuple[int, int, float]) -> int:
        """Rows that take no more time and memory than they should."""
        return max(1, min(rows, most[0], int(most[1] * rows / max(size, 1)), int(most[2] * rows / seconds)))

    some = _collect(frame.head(fitting(_ALONE)))
    few = some[: fitting(_LOOPED)]
    dicts = few.to_dicts()
    difference = _difference(score_rows(dicts, plan.verifiers), plan.score(few))
    [looped] = _best([partial(score_rows, dicts, plan.verifiers)])
    base, costs = _alone(plan, some)
    return Bench(rows, size, seconds, floor, few.height, looped, some.height, base, costs, difference)


def _collect(frame: pl.LazyFrame) -> pl.DataFrame:
    return frame.collect(engine="streaming")


def _score(plan: Plan, frame: pl.LazyFrame) -> None:
    """What ``assay score`` does, without writing."""
    summary = Summary.of(plan)
    with in_pieces(plan.piece):
        for batch in batches(plan.lazy(frame, watched=True)):
            summary.add(plan, batch)


def _best(runs: list[Callable[[], object]]) -> list[float]:
    """The best time of each, in seconds, of some turns."""
    best = [float("inf")] * len(runs)
    began = time.perf_counter()
    for turn in range(_TURNS):
        if turn and time.perf_counter() - began > _SPENT:
            break
        for at, run in enumerate(runs):
            started = time.perf_counter()
            run()
            best[at] = min(best[at], time.perf_counter() - started)
    return best


def _alone(plan: Plan, rows: pl.DataFrame) -> tuple[float, tuple[CheckCost, ...]]:
    """What every plan costs, and each check beyond that, in nanoseconds a row."""
    nothing = load_verifier({"checks": [{"type": _Nothing.type}]}, checks=[_Nothing])
    lone = [replace(verifier, checks=(replace(spec, weight=1.0),)) for verifier, spec, _ in plan.checks]
    frames = [Plan((one,), plan.schema, keep=()).lazy(rows.lazy()) for one in (nothing, *lone)]
    with in_pieces(plan.piece):
        base, *times = (took / rows.height * 1e9 for took in _best([partial(_collect, one) for one in frames]))
    costs = [
        CheckCost(spec.id, spec.type, max(took - base, 0.0), check.explain())
        for (_, spec, check), took in zip(plan.checks, times, strict=True)
    ]
    return base, tuple(sorted(costs, key=lambda one: -one.ns_per_row))


def _difference(looped: list[dict[str, Any]], scored: pl.DataFrame) -> str:
    """The first value that the loop and the plan disagree on; as words, which tell 0.0 from -0.0."""
    for at, (by_rows, by_columns) in enumerate(zip(looped, scored.to_dicts(), strict=True)):
        for name, value in by_rows.items():
            if repr(value) != repr(by_columns[name]):
                return f"row {at}: {name} is {by_columns[name]!r} by columns, {value!r} by rows"
    return ""
