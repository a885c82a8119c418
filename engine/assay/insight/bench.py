"""Measure what verifiers cost: compared with reading the column, compared with a loop over rows, and per check.

A run is timed from the file, without writing. A check is timed alone, on rows in memory, minus the cost of a plan whose check
does nothing. Work that several checks share, such as lower-casing the text, counts for each of them.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Unpack, cast

import polars as pl

from assay.checks.base import Check, Row
from assay.compiling.columns import reading_for
from assay.compiling.plan import Plan, in_pieces
from assay.compiling.verifiers import Rewarding, closing_checks, limits_of_run, verifiers_of_run, warn
from assay.errors import InputError
from assay.expressions.completion import completion_text_expr
from assay.frozen import frozen
from assay.loading.formats.reading import batches
from assay.loading.rollouts import Rollouts, open_rollouts
from assay.names import COMPLETION
from assay.options import BenchOptions, ScoreOptions, documented, settle
from assay.scoring.in_memory import engine_errors, prepare, tell
from assay.scoring.reference import score_rows
from assay.scoring.summary import Summary
from assay.spec.check import runs_as
from assay.spec.verifier import CheckSpec, VerifierSource, VerifierSpec, load_verifier
from assay.system.signals import interruptible
from assay.system.spool import spooling

_TURNS = 3
_MAX_SECONDS = 20.0
"""Seconds after which no further turn starts."""

_CHECK_LIMITS = (50_000, 128 << 20, 2.0)
"""Most rows, bytes of text and seconds of the whole plan on which single checks are timed."""
_LOOP_LIMITS = (2_000, 8 << 20, 0.2)
"""The same limits for the loop over rows."""


class _IdleCheck(Check):
    """A check that does nothing, to measure the base cost of a plan."""

    type = "nothing"

    def row(self, row: Row) -> float:
        del row
        return 1.0

    def expr(self) -> pl.Expr:
        return pl.lit(value=True)


@frozen
class CheckCost:
    """The cost of one check."""

    id: str
    type: str
    ns_per_row: float
    runs_as: str


@frozen
class Bench:
    """The cost of verifiers on some rollouts; each time is the best of several turns.

    Attributes:
        rows: Rows scored.
        bytes: Bytes of their text.
        seconds: Seconds to read and score them.
        floor_seconds: Seconds to read only the column of completions.
        loop_rows: Rows scored by the loop over ``row()``.
        loop_seconds: Seconds of that loop, with texts in memory.
        alone_rows: Rows on which single checks were timed.
        base_ns_per_row: Base cost of a plan, measured with a check that does nothing.
        checks: The checks, slowest first.
        difference: The first difference between the loop and the plan, or ``""``.
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
        """Return the rows scored per second."""
        return self.rows / self.seconds

    @property
    def mb_per_second(self) -> float:
        """Return the megabytes of text scored per second."""
        return self.bytes / self.seconds / 1e6

    @property
    def times_floor(self) -> float:
        """Return the time of scoring as a multiple of the time of reading the column."""
        return self.seconds / self.floor_seconds

    @property
    def times_faster_than_loop(self) -> float:
        """Return the time per row of the loop as a multiple of that of scoring."""
        return (self.loop_seconds / self.loop_rows) / (self.seconds / self.rows)

    def as_json(self) -> dict[str, Any]:
        """Return the fields and properties as plain data for JSON."""
        names = ("rows_per_second", "mb_per_second", "times_floor", "times_faster_than_loop")
        return asdict(self) | {name: getattr(self, name) for name in names}


@documented(BenchOptions)
def bench(
    rollouts: Any,
    verifiers: Rewarding | VerifierSource | Sequence[VerifierSource] | None = None,
    **options: Unpack[BenchOptions],
) -> Bench:
    """Measure what verifiers cost.

    Args:
        rollouts: Anything ``assay.scan`` reads.
        verifiers: As for ``assay.score``, except a plan: one or more verifiers, a rubric, or None for functions that the rows name.
        options: Which rollouts to use, and how to read them.

    Raises:
        SpecError: A verifier cannot be used.
        InputError: Rollouts or tasks cannot be read, or there are no rows.
    """
    own = settle(BenchOptions, options, "bench")
    rows, settled = own["rows"], cast("ScoreOptions", {**settle(ScoreOptions, {}, "bench"), **own})
    with interruptible() as stop, spooling():
        loaded = verifiers_of_run(verifiers, settled, limits=limits_of_run(verifiers, settled, stop=stop))
        selected = open_rollouts(rollouts, reading_for(settled, loaded))
        selected = replace(selected, frame=selected.frame if rows is None else selected.frame.head(rows))
        source, plan = prepare(selected, loaded, settled)
        warn(loaded)
        with engine_errors(source.files, plan):
            tell(plan.refuse(source.frame))
            with closing_checks(loaded):
                return replace(_measure(plan, selected, source.frame), notes=source.notes)


def _measure(plan: Plan, rollouts: Rollouts, frame: pl.LazyFrame) -> Bench:
    text = completion_text_expr(COMPLETION, rollouts.frame.collect_schema()[COMPLETION], any_role=plan.any_role)
    column = rollouts.frame.select(rows=pl.len(), bytes=text.str.len_bytes().sum())
    rows, size = map(int, _collect(column).row(0))
    if not rows:
        raise InputError("There are no rollouts to measure.")
    # the two take turns, so that other load on the machine affects both
    floor, seconds = _best([partial(_collect, column), partial(_score, plan, frame)])

    def rows_within(limits: tuple[int, int, float]) -> int:
        return max(1, min(rows, limits[0], int(limits[1] * rows / max(size, 1)), int(limits[2] * rows / seconds)))

    sample = _collect(frame.head(rows_within(_CHECK_LIMITS)))
    loop_sample = sample[: rows_within(_LOOP_LIMITS)]
    dicts = loop_sample.to_dicts()
    loop = partial(score_rows, dicts, plan.verifiers, any_role=plan.any_role)
    difference = _difference(loop(), plan.score(loop_sample))
    [loop_seconds] = _best([loop])
    base, costs = _check_costs(plan, sample)
    return Bench(rows, size, seconds, floor, loop_sample.height, loop_seconds, sample.height, base, costs, difference)


def _collect(frame: pl.LazyFrame) -> pl.DataFrame:
    return frame.collect(engine="streaming")


def _score(plan: Plan, frame: pl.LazyFrame) -> None:
    summary = Summary.of(plan)
    with in_pieces(plan.piece):
        for batch in batches(plan.lazy(frame, watched=True)):
            summary.add(plan, batch)


def _best(runs: list[Callable[[], object]]) -> list[float]:
    best = [float("inf")] * len(runs)
    start = time.perf_counter()
    for turn in range(_TURNS):
        if turn and time.perf_counter() - start > _MAX_SECONDS:
            break
        for place, action in enumerate(runs):
            started = time.perf_counter()
            action()
            best[place] = min(best[place], time.perf_counter() - started)
    return best


def _check_costs(plan: Plan, rows: pl.DataFrame) -> tuple[float, tuple[CheckCost, ...]]:
    nothing = load_verifier({"checks": [{"type": _IdleCheck.type}]}, checks=[_IdleCheck])
    single = [replace(verifier, checks=(replace(spec, weight=1.0),)) for verifier, spec, _ in plan.checks]
    plans = [Plan((verifier,), plan.schema, keep=(), any_role=plan.any_role) for verifier in (nothing, *single)]
    frames = [alone.lazy(rows.lazy()) for alone in plans]
    with in_pieces(plan.piece):
        seconds = _best([partial(_collect, frame) for frame in frames])
    base, *times = (best / rows.height * 1e9 for best in seconds)
    several = len(plan.verifiers) > 1
    costs = [
        CheckCost(_name(verifier, spec) if several else spec.id, spec.type, max(nanoseconds - base, 0.0), runs_as(spec))
        for (verifier, spec, _), nanoseconds in zip(plan.checks, times, strict=True)
    ]
    return base, tuple(sorted(costs, key=lambda cost: -cost.ns_per_row))


def _name(verifier: VerifierSpec, spec: CheckSpec) -> str:
    return verifier.id if spec.id in ("", verifier.id) else f"{verifier.id}/{spec.id}"


def _difference(loop_rows: list[dict[str, Any]], scored: pl.DataFrame) -> str:
    for at, (by_rows, by_columns) in enumerate(zip(loop_rows, scored.to_dicts(), strict=True)):
        for name, value in by_rows.items():
            if repr(value) != repr(by_columns[name]):
                return f"row {at}: {name} is {by_columns[name]!r} by columns, {value!r} by rows"
    return ""
