"""A run in parts: which units of which file each part is of, and how one is scored."""

import importlib
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from assay._version import __version__
from assay.compiling.plan import Plan
from assay.compiling.verifiers import closing_checks
from assay.errors import InputError, said_by, shown_path
from assay.functions.registry import Function, Reference, adopt
from assay.loading.formats.files import ENGINE_ERRORS, Cut, Files
from assay.loading.formats.reading import File, Unit, rows_in_all
from assay.loading.rollouts import InputFile, Step, part_of, unchanged
from assay.runs.streaming import output_schema, stream
from assay.scoring.in_memory import cause, engine_error
from assay.scoring.summary import Summary
from assay.system.atomic_file import new_file, refused_by_disk
from assay.writing.writers import open_writer, read_provenance

__all__ = [
    "COUNTS",
    "Job",
    "Shard",
    "counted_in",
    "culprit",
    "cut",
    "done_already",
    "score_shard",
    "try_shard",
]


COUNTS = "_counts"
"""Folder, beside the parts, of what was counted in each."""


@dataclass(frozen=True)
class Shard:
    """What one part is made of.

    Attributes:
        number: Its place among all, from 0.
        cut: The units it reads.
        rows: How many, where that is known before it is read.
    """

    number: int
    cut: Cut
    rows: int | None = None

    @property
    def name(self) -> str:
        """Name of its part."""
        return f"part-{self.number:06}.parquet"

    @property
    def counts(self) -> str:
        """Name of what was counted in it."""
        return f"{self.number:06}.json"


@dataclass(frozen=True)
class Job:
    """What all shards of a run share. It pickles: a shard can be scored in any process that sees the files.

    Attributes:
        files: The inputs.
        steps: What makes rollouts of what is read.
        plan: How they are scored.
        folder: Where the parts go.
        run: Hash of the manifest, which every part names.
        inputs: The inputs as the run found them.
        functions: Functions of the user that rows may name.
        references: Those that modules register, where the functions themselves cannot travel.
        paths: Folders that modules are imported from.
        modules: Modules that register checks, functions and classes.
    """

    files: Files
    steps: tuple[Step, ...]
    plan: Plan
    folder: Path
    run: str
    inputs: tuple[InputFile, ...]
    functions: tuple[Function, ...] = ()
    references: tuple[Reference, ...] = ()
    paths: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()

    def frame(self, cut: Cut) -> pl.LazyFrame:
        """The rollouts of some units."""
        return part_of(self.files, self.steps, cut)

    def settle_in(self) -> None:
        """Make a process know what the one knew that began the run.

        Raises:
            UsageError: It cannot know one of the functions.
        """
        sys.path[:0] = [path for path in self.paths if path not in sys.path]
        for module in self.modules:
            importlib.import_module(module)
        adopt(self.functions)
        for reference in self.references:
            reference.resolve()


def cut(files: Files, size: int) -> list[Shard]:
    """Cut files into shards: whole units of one file, or whole files, in order, until they have the size.

    Args:
        files: The files.
        size: Bytes of input for one part; a unit that has more is a shard of its own.
    """
    cuts: list[Cut] = []
    held, open_ = 0, False  # bytes of the last cut, and whether another whole file may be added to it
    for number, file in enumerate(files.files):
        whole = _size(file)
        if open_ and whole is not None and held + whole <= size:
            cuts[-1] = replace(cuts[-1], last=len(file.units), final=number)
            held += whole
            continue
        cuts += _cut_one(number, file.units, size)
        held, open_ = whole or 0, whole is not None and whole <= size
    return [Shard(at, one, _rows(files, one)) for at, one in enumerate(cuts)]


def _size(file: File) -> int | None:
    """Bytes of a file when read; None where one of its units does not tell."""
    return sum(unit.size for unit in file.units) if all(unit.size for unit in file.units) else None


def _cut_one(number: int, units: Sequence[Unit], size: int) -> list[Cut]:
    cuts: list[Cut] = []
    first, held = 0, 0
    for at, unit in enumerate(units):
        if at > first and held + unit.size > size:
            cuts.append(Cut(number, first, at))
            first, held = at, 0
        held += unit.size
    return [*cuts, Cut(number, first, len(units))]


def _rows(files: Files, cut: Cut) -> int | None:
    return rows_in_all(unit.rows for _, unit in _units(files, cut))


def _units(files: Files, cut: Cut) -> list[tuple[Cut, Unit]]:
    """The units of a cut, each with the cut that it alone would be."""
    found: list[tuple[Cut, Unit]] = []
    for number in cut.files:
        units = files.files[number].units
        first, last = cut.units(number, len(units))
        found += [(Cut(number, at, at + 1), units[at]) for at in range(first, last)]
    return found


def score_shard(job: Job, shard: Shard, tell: Callable[[int], None] | None = None) -> Summary:
    """Score one shard and write its part, whole or not at all.

    Args:
        job: What all shards share.
        shard: Which one.
        tell: Called with the rows done so far.

    Returns:
        The part in numbers.

    Raises:
        InputError: The input cannot be read, or is not what it was.
        OutputError: The part could not be written.
    """
    frame, files = job.frame(shard.cut), [job.files.files[number] for number in shard.cut.files]
    summary = Summary.of(job.plan)
    try:
        schema = output_schema(job.plan, frame)
        with open_writer(job.folder / shard.name, schema, alone=False) as writer, closing_checks(job.plan.verifiers):
            counted = None if tell is None else lambda: tell(summary.rows)
            stream(job.plan, frame, writer, summary, counted, job.files)
            unchanged(job.inputs[number] for number in shard.cut.files)
            counts = job.folder / COUNTS
            with refused_by_disk(str(counts))():
                counts.mkdir(exist_ok=True)
            _put_down(counts / shard.counts, summary.dump())  # first: a part that is there is finished
            if writer is not None:
                writer.close(_provenance(job, shard, summary))
    except (MemoryError, *ENGINE_ERRORS) as wrong:
        raise engine_error(wrong, files, job.plan) from cause(wrong, files)
    return summary


def try_shard(job: Job, shard: Shard) -> None:
    """Score one shard and write nothing: to find what ends a process."""
    with closing_checks(job.plan.verifiers):
        stream(job.plan, job.frame(shard.cut), None, Summary.of(job.plan))


def culprit(job: Job, shard: Shard, dies: Callable[[Shard], bool]) -> str:
    """Which unit of a shard ends a process that scores it, for a message; found by halves.

    Args:
        job: What all shards share.
        shard: The one that does.
        dies: Whether a process dies that tries some of its units.
    """
    units = [cut for cut, _ in _units(job.files, shard.cut)]
    while len(units) > 1:
        half, rest = units[: len(units) // 2], units[len(units) // 2 :]
        final = None if half[0].file == half[-1].file else half[-1].file
        units = half if dies(Shard(shard.number, replace(half[0], last=half[-1].last, final=final))) else rest
    if not units:
        return f", in {job.inputs[shard.cut.file].name}"
    file = units[0].file
    there = len(job.files.files[file].units)
    return f", at unit {units[0].first} of {there} (row group, or lines) of {job.inputs[file].name}"


def _put_down(path: Path, plain: dict[str, Any]) -> None:
    with new_file(path, alone=False) as (file, told), told():
        file.write(json.dumps(plain, sort_keys=True).encode())


def _provenance(job: Job, shard: Shard, summary: Summary) -> dict[str, Any]:
    """The same wherever and however often the shard is scored: the manifest says the rest."""
    one = shard.cut
    through = {} if one.final is None else {"last_input": job.inputs[one.final].name}
    return {
        "assay_version": __version__,
        "polars_version": pl.__version__,
        "run": job.run,
        "part": shard.number,
        "input": job.inputs[one.file].name,
        **through,
        "units": [one.first, one.last],
        "rows": summary.rows,
    }


def done_already(folder: Path, run: str, shard: Shard) -> Summary | None:
    """What was counted in a part that is there; None where it is to be scored.

    Args:
        folder: Where the parts are.
        run: Hash of the manifest.
        shard: Which one.
    """
    part = folder / shard.name
    if not part.is_file():
        return None
    try:
        made = read_provenance(part)
        summary = counted_in(folder, shard)
    except (InputError, ValueError):
        return None
    same = (made.get("run"), made.get("part"), made.get("rows")) == (run, shard.number, summary.rows)
    return summary if same else None


def counted_in(folder: Path, shard: Shard) -> Summary:
    """What was counted in a part.

    Args:
        folder: Where the parts are.
        shard: Which one.

    Raises:
        InputError: It cannot be read.
    """
    path = folder / COUNTS / shard.counts
    try:
        return Summary.load(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError, KeyError) as wrong:
        raise InputError(f"{shown_path(path)}: not readable: {said_by(wrong)}") from None
