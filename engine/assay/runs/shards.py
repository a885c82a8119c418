"""The parts of a run: cut the input into shards, and score a shard."""

import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PanicException
from pydantic import ConfigDict, Field

from assay._version import __version__
from assay.compiling.plan import Plan
from assay.compiling.verifiers import closing_checks
from assay.errors import AssayError, InputError, describe_error, shown_path
from assay.frozen import frozen
from assay.functions.registry import Function, FunctionReference, adopt
from assay.loading.formats.files import ENGINE_ERRORS, Cut, Files
from assay.loading.formats.reading import Unit, rows_in_all
from assay.loading.rollouts import InputFile, Step, part_of, unchanged
from assay.runs.file_run import output_schema, stream
from assay.scoring.in_memory import engine_errors
from assay.scoring.summary import Summary
from assay.spec.stored_json import Count, StoredError, StoredObject, parse_stored
from assay.system.atomic_file import refused_by_disk, write_file
from assay.system.signals import CLEANUPS
from assay.writing.footers import read_provenance, text_beside
from assay.writing.writers import open_writer

COUNTS = "_counts"
"""Folder beside the parts with the counts of each."""


class _CheckCounts(StoredObject):
    """The numbers of one check in a part."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=True)  # a sum may overflow

    id: str
    type: str
    weight: float | None
    rows: Count
    failures: Count
    errors: Count
    total: float
    reasons: dict[str, Count]
    remarks: dict[str, Count]
    broken: str


class _Counts(StoredObject):
    """What ``Summary.dump`` returns; a sum of rewards may be beyond every float."""

    model_config = ConfigDict(allow_inf_nan=True)

    rows: Count
    scored: Count
    passed: Count
    errors: Count
    total: float
    no_task: Count = 0
    unscored: dict[str, Count]
    outcomes: dict[str, Count] = Field(default_factory=dict)
    checks: list[_CheckCounts]


@frozen
class Shard:
    """The input of one part."""

    number: int
    cut: Cut
    rows: int | None = None

    @property
    def name(self) -> str:
        """File name of the part."""
        return f"part-{self.number:06}.parquet"

    @property
    def counts(self) -> str:
        """File name of its counts."""
        return f"{self.number:06}.json"


@frozen
class Job:
    """What all shards of a run have in common. It can be pickled, so any process that sees the files can score a shard."""

    files: Files
    steps: tuple[Step, ...]
    plan: Plan
    folder: Path
    run: str
    inputs: tuple[InputFile, ...]
    functions: tuple[Function, ...] = ()
    references: tuple[FunctionReference, ...] = ()
    paths: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def frame(self, cut: Cut) -> pl.LazyFrame:
        """Return the rollouts of some units."""
        return part_of(self.files, self.steps, cut)

    def set_up(self) -> None:
        """Register in this process what the process that started the run has registered."""
        sys.path[:0] = [path for path in self.paths if path not in sys.path]
        for module in self.modules:
            importlib.import_module(module)
        adopt(self.functions)
        for reference in self.references:
            reference.resolve()


Engine = Callable[[Job, Sequence[Shard], Callable[[int], None]], Iterator[tuple[Shard, Summary | str]]]
"""Scores shards, and calls a function with the rows done in those that are not yielded yet; yields each when it is done, in any order,
with its summary or with what ended its process, and where."""


def cut(files: Files, size: int, begins: Sequence[int] = ()) -> list[Shard]:
    """Cut files into shards of about one size: consecutive units of one file, or consecutive whole files."""
    cuts: list[Cut] = []
    total, extensible = 0, False  # bytes of the last cut, and whether another whole file may be added to it
    for number, file in enumerate(files.files):
        sizes = [unit.size for unit in file.units]  # 0 where it is not known
        file_size = sum(sizes) if all(sizes) else None
        if extensible and number not in begins and file_size is not None and total + file_size <= size:
            cuts[-1] = replace(cuts[-1], last=len(sizes), final=number)
            total += file_size
            continue
        first, in_cut = 0, 0
        for index, unit_size in enumerate(sizes):
            if index > first and in_cut + unit_size > size:
                cuts.append(Cut(number, first, index))
                first, in_cut = index, 0
            in_cut += unit_size
        cuts.append(Cut(number, first, len(sizes)))
        total, extensible = file_size or 0, file_size is not None and file_size <= size
    return [
        Shard(number, cut, rows_in_all(unit.rows for _, unit in _units(files, cut))) for number, cut in enumerate(cuts)
    ]


def _units(files: Files, cut: Cut) -> list[tuple[Cut, Unit]]:
    pairs: list[tuple[Cut, Unit]] = []
    for number in cut.files:
        units = files.files[number].units
        first, last = cut.units(number, len(units))
        pairs += [(Cut(number, index, index + 1), units[index]) for index in range(first, last)]
    return pairs


def score_shard(job: Job, shard: Shard, tell: Callable[[int], None] | None = None) -> Summary:
    """Score one shard and write its part, completely or not at all."""
    frame, files = job.frame(shard.cut), [job.files.files[number] for number in shard.cut.files]
    summary = Summary.of(job.plan)
    with engine_errors(files, job.plan, (MemoryError, *ENGINE_ERRORS)):
        schema = output_schema(job.plan, frame)
        with open_writer(job.folder / shard.name, schema, alone=False) as writer, closing_checks(job.plan.verifiers):
            done = None if tell is None else lambda: tell(summary.rows)
            stream(job.plan, frame, writer, summary, done, job.files)
            unchanged(job.inputs[number] for number in shard.cut.files)
            counts = job.folder / COUNTS
            with refused_by_disk(str(counts)):
                counts.mkdir(exist_ok=True)
            # before the part: a part that exists is complete
            write_file(counts / shard.counts, json.dumps(summary.dump(), sort_keys=True))
            if writer is not None:
                # identical wherever the shard is scored; the manifest holds the rest
                final = {} if shard.cut.final is None else {"last_input": job.inputs[shard.cut.final].name}
                identity = {"run": job.run, "part": shard.number, "input": job.inputs[shard.cut.file].name, **final}
                written = {"units": [shard.cut.first, shard.cut.last], "settings": job.settings, "rows": summary.rows}
                writer.close({"assay_version": __version__, "polars_version": pl.__version__, **identity, **written})
    return summary


def try_shard(job: Job, shard: Shard) -> None:
    """Score one shard without writing it, to find what ends a process."""
    with closing_checks(job.plan.verifiers):
        stream(job.plan, job.frame(shard.cut), None, Summary.of(job.plan))


def result_of(work: Callable[[Job, Shard], Summary | None], job: Job, shard: Shard) -> Summary | AssayError | None:
    """Return what some work on a shard returns, or its error as a value, for the process that asked."""
    try:
        return work(job, shard)
    except AssayError as error:
        return error
    except PanicException:  # the process may be damaged: end it, as a crash would
        for remove in CLEANUPS:
            remove()
        os._exit(1)
    except Exception as error:  # noqa: BLE001  (the process that asked reports it)
        return AssayError(f"{shard.name}: {describe_error(error)}")


def culprit(job: Job, shard: Shard, dies: Callable[[Shard], bool]) -> str:
    """Name the unit of a shard that ends a process, for a message; a binary search finds it."""
    units = [cut for cut, _ in _units(job.files, shard.cut)]
    while len(units) > 1:
        half, rest = units[: len(units) // 2], units[len(units) // 2 :]
        final = None if half[0].file == half[-1].file else half[-1].file
        units = half if dies(Shard(shard.number, replace(half[0], last=half[-1].last, final=final))) else rest
    if not units:
        return f", in {job.inputs[shard.cut.file].name}"
    file = units[0].file
    total = len(job.files.files[file].units)
    return f", at unit {units[0].first} of {total} (row group, or lines) of {job.inputs[file].name}"


def finished_counts(folder: Path, run: str, shard: Shard) -> Summary | None:
    """Return the counts of a part that is complete; None if it must be scored."""
    part = folder / shard.name
    if not part.is_file():
        return None
    try:
        provenance = read_provenance(part)
        summary = read_counts(folder, shard)
    except InputError:
        return None
    identity = (provenance.get("run"), provenance.get("part"), provenance.get("rows"))
    return summary if identity == (run, shard.number, summary.rows) else None


def read_counts(folder: Path, shard: Shard) -> Summary:
    """Read the counts of a part."""
    path = folder / COUNTS / shard.counts
    try:
        return Summary.load(parse_stored(text_beside(path) or b"", _Counts, free=True))
    except StoredError as error:
        raise InputError(f"{shown_path(path)}: not readable: {describe_error(error)}") from None
