"""Two sets of verifiers on the same rollouts in one pass, into a temporary file."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from assay.compiling.columns import reading_for
from assay.compiling.plan import Plan
from assay.compiling.sides import beside
from assay.compiling.verifiers import closing_checks, limits_of_run, verifiers_of_run, warn
from assay.expressions.shared_columns import exactly
from assay.frozen import frozen
from assay.loading.formats.reading import batches
from assay.loading.rollouts import Rollouts, open_rollouts, unchanged
from assay.names import HIDDEN
from assay.options import ScoreOptions, settle
from assay.runs.file_run import paced
from assay.scoring.in_memory import engine_errors, prepare, tell
from assay.system.signals import interruptible
from assay.system.spool import spool_file
from assay.writing.provenance import provenance_of, task_files_of
from assay.writing.writers import open_writer


@frozen(eq=False)
class Scored:
    """What a set of verifiers makes of rollouts."""

    frame: pl.LazyFrame
    provenance: Mapping[str, Any]
    source: Rollouts


def score_side_by_side(rollouts: Any, sides: Sequence[Any], options: Mapping[str, Any]) -> list[Scored]:
    """Score rollouts with each of several sets of verifiers, reading them once."""
    settled = settle(ScoreOptions, options, "diff")
    with interruptible() as stop:
        loaded = [verifiers_of_run(side, settled, limits=limits_of_run(side, settled, stop=stop)) for side in sides]
        every = tuple(dict.fromkeys(verifier for verifiers in loaded for verifier in verifiers))
        opened = open_rollouts(rollouts, reading_for(settled, every))
        prepared = [prepare(opened, verifiers, settled) for verifiers in loaded]
        # the tasks that a side joins have the columns that its own checks read; one table has those of all
        source = prepared[0][0]
        if settled["tasks"] is not None:
            apart = tuple(replace(verifier, id=f"{number}/{verifier.id}") for number, verifier in enumerate(every))
            source, _ = prepare(opened, apart, settled)
        schema = tuple(source.frame.collect_schema().items())
        plans = [Plan(plan.verifiers, schema, plan.keep, plan.details, plan.any_role) for _, plan in prepared]
        warn(every)
        path = spool_file("rewards", ".parquet")
        kept = _write(source, plans, path)
    tasks, both = task_files_of(settled["tasks"]), [exactly(name) for name in kept]
    settings = {"any_role": settled["any_role"]}  # it says which text a row has
    return [
        Scored(
            pl.scan_parquet(path).select(
                [*both, *(exactly(_prefix(number) + name).alias(name) for name in plan.results)]
            ),
            provenance_of(plan.verifiers, (), source.inputs, tasks) | {"settings": settings},
            source,
        )
        for number, plan in enumerate(plans)
    ]


def _prefix(side: int) -> str:
    return f"{HIDDEN}side-{side}/"


def _write(source: Rollouts, plans: Sequence[Plan], path: Path) -> list[str]:
    kept = [item for item in plans[0].passed_through.items() if all(item in p.passed_through.items() for p in plans)]
    frame = beside(plans, source.frame, [*map(_prefix, range(len(plans)))])
    results = (_prefix(at) + name for at, plan in enumerate(plans) for name in plan.results)
    frame = frame.select(*(exactly(column).alias(name) for name, column in kept), *map(exactly, results))
    with engine_errors(source.files, plans[0]):
        for plan in plans:
            tell(plan.refuse(source.frame))
        verifiers = [verifier for plan in plans for verifier in plan.verifiers]
        piece = min(plan.piece for plan in plans)
        with (
            closing_checks(verifiers),
            paced(piece, source.read, [name for _, name in kept]) as together,
            open_writer(path, frame.collect_schema(), alone=False) as writer,
        ):
            assert writer is not None  # noqa: S101  (there is a path)
            for batch in batches(frame, together):
                writer.write(batch)
            unchanged(source.inputs)
            writer.close({})
    return [name for name, _ in kept]
