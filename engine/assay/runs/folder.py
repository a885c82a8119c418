"""Score files into a folder: one part per shard, complete or absent, so that an interrupted run can continue."""

import contextlib
import json
import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

from assay.compiling.plan import Plan
from assay.errors import OutputError, PartsError, UsageError, counted, shown_path
from assay.functions.check import RowFunctionCheck
from assay.functions.registry import user_functions
from assay.loading.rollouts import Rollouts
from assay.loading.tasks import content_of_tasks
from assay.names import MANIFEST
from assay.runs.child_process import in_child_process
from assay.runs.file_run import FileRun, output_schema
from assay.runs.manifest import Manifest, read_manifest
from assay.runs.on_ray import on_ray
from assay.runs.shards import COUNTS, Engine, Job, Shard, cut, finished_counts, read_counts, score_shard
from assay.scoring.in_memory import tell
from assay.scoring.summary import Summary
from assay.system.atomic_file import refused_by_disk, write_file
from assay.system.locks import locked
from assay.system.signals import EXIT_MESSAGES, Stopped
from assay.system.special_files import is_stream, path_of
from assay.writing.footers import SUMMARY
from assay.writing.provenance import provenance_of, task_files_of

_LOCK = "_lock"
_LOG_INTERVAL = 10.0
"""Seconds between two log lines."""

_logger = logging.getLogger("assay.folder")

_OURS = (MANIFEST, SUMMARY, COUNTS)
_DRAFTS = (f".{MANIFEST}.*.tmp", f".{SUMMARY}.*.tmp", ".part-*.parquet.*.tmp", f"{COUNTS}/.*.json.*.tmp")
_VARYING = ("seconds", "rows_per_second", "out", "notes")
"""Entries of a summary that differ between identical runs."""


def into_folder(source: Rollouts, plan: Plan, run: FileRun) -> Summary:
    """Score files into a folder of parts."""
    folder, options = Path(str(run.out)), run.options
    _refuse_what_needs_one_file(source, plan, run)
    tell(plan.refuse(source.frame))
    earlier = read_manifest(folder) if folder.is_dir() and not options["overwrite"] else None
    grown: tuple[int, ...] = ()
    if earlier is not None:
        then = [entry["name"] for entry in earlier.provenance.get("inputs", ())]
        now = [file.name for file in source.inputs]
        # inputs may be added at the end, if all that the run had are there and none was skipped
        is_more = now[: len(then)] == then != now and not any(file.skipped for file in source.inputs)
        grown = (*earlier.grown, len(then)) if is_more else earlier.grown
    functions = user_functions()
    names = [function.name for function in functions]
    tasks = task_files_of(options["tasks"])
    provenance = provenance_of(plan.verifiers, names, source.inputs, tasks, seal=options["seal"])
    if (task_table := content_of_tasks(source.steps)) is not None:
        provenance["task_table"] = task_table
    columns = {name: str(dtype) for name, dtype in output_schema(plan, source.frame).items()}
    assert source.read is not None  # noqa: S101  (what is not in files is refused above)
    shards = tuple(cut(source.read, int(options["part_bytes"]), grown))
    manifest = Manifest(provenance, run.settings, columns, shards, options["command"], grown)
    job = Job(
        source.read,
        source.steps,
        plan,
        folder,
        manifest.run,
        source.inputs,
        functions if any(isinstance(check, RowFunctionCheck) for check in plan.readers) else (),
        paths=tuple(sys.path),
        modules=tuple(options["modules"]),
        settings=run.settings,
    )
    summary = run.begin(source, plan)
    if earlier is not None and grown != earlier.grown:
        added = counted(len(source.inputs) - grown[-1], "file")
        summary.told.append(f"{added} added to the run in {shown_path(folder)}/")
    here = in_child_process if options["isolate"] else in_this_process
    with on_ray(options["ray_address"]) if options["engine"] == "ray" else contextlib.nullcontext(here) as engine:
        summary = _score_folder(job, manifest, engine, summary, run)
    run.check_errors(summary, final=True)
    return run.end(source, summary)


def _refuse_what_needs_one_file(source: Rollouts, plan: Plan, run: FileRun) -> None:
    fact = ""
    if source.read is None or any(file.name == "-" or is_stream(path_of(file.name)) for file in source.inputs):
        fact = "a run in parts reads files."
    elif run.options["limit"] is not None:
        fact = "a run in parts reads whole files, not --limit."
    for verifier, spec, check in plan.checks:
        if check.traits.sees_all:
            seen = f"{verifier.id}/{spec.id} sees all rollouts of an example, which may be in several parts."
            fact = fact or seen
    if fact:
        raise UsageError(
            f"{shown_path(Path(str(run.out)))}/: {fact}", "Name a file for the rewards: --out NAME.parquet"
        )


def in_this_process(
    job: Job, shards: Sequence[Shard], tell: Callable[[int], None]
) -> Iterator[tuple[Shard, Summary | str]]:
    """Score shards in this process; an ``Engine``."""
    for shard in shards:
        yield shard, score_shard(job, shard, tell)


def _score_folder(job: Job, manifest: Manifest, engine: Engine, summary: Summary, run: FileRun) -> Summary:
    folder, started, total = job.folder, time.perf_counter(), deepcopy(summary)
    with _locked(folder):
        _begin(folder, manifest, overwrite=run.options["overwrite"])
        missing: list[Shard] = []
        for shard in manifest.shards:
            counts = finished_counts(folder, manifest.run, shard)
            if counts is not None and not (job.plan.finds_outcomes and counts.rows > counts.outcomes.total()):
                summary.merge(counts)
                continue
            missing.append(shard)
            with refused_by_disk(f"{shown_path(folder)}/"):
                (folder / shard.name).unlink(missing_ok=True)  # from another run, or damaged
        parts = counted(len(manifest.shards), "part")
        if complete := len(manifest.shards) - len(missing):
            summary.told.append(f"{complete:,} of {parts} {'was' if complete == 1 else 'were'} complete already")
        earlier = summary.rows
        run.check_errors(summary)  # earlier parts may exceed the limit of errors
        if failed := _score(job, missing, engine, summary, run):
            lines = [f"  {shard.name}: {reason}" for shard, reason in failed[:5]]
            lines += [f"  … and {len(failed) - 5:,} more"] if len(failed) > 5 else []  # noqa: PLR2004
            raise PartsError(
                "\n".join([f"{len(failed):,} of {parts} could not be scored:", *lines]),
                f"The other parts are in {shown_path(folder)}/. The same command tries these again.",
            )
        for shard in manifest.shards:  # in order, because sums of floats depend on it
            total.merge(read_counts(folder, shard))
        if not job.plan.finds_outcomes:  # of some parts only, maybe
            total.outcomes.clear()
        _finish(folder, manifest, total)
    return replace(total, told=summary.told, earlier=earlier, seconds=time.perf_counter() - started)


def _score(
    job: Job, missing: Sequence[Shard], engine: Engine, summary: Summary, run: FileRun
) -> list[tuple[Shard, str]]:
    failed: list[tuple[Shard, str]] = []
    left, logged = len(missing), time.monotonic()

    def message() -> str:
        parts = f"{counted(left, 'part')} {'is' if left == 1 else 'are'} missing in {shown_path(job.folder)}"
        return f"interrupted; {parts}. The same command continues from there"

    EXIT_MESSAGES.append(message)
    try:
        for shard, result in engine(job, missing, lambda rows: run.progress.reach(summary.rows + rows)):
            if isinstance(result, str):
                failed.append((shard, result))
                continue
            left -= 1
            summary.merge(result)
            run.progress.reach(summary.rows)
            if time.monotonic() - logged > _LOG_INTERVAL:
                logged = time.monotonic()
                rows, parts = counted(summary.rows, "row"), counted(left, "part")
                _logger.info("%s: %s so far, %s to go", job.folder, rows, parts)
            run.check_errors(summary)
    except KeyboardInterrupt:
        raise Stopped(message()) from None
    except SystemExit:  # at SIGTERM
        _logger.warning("%s", message())
        raise
    finally:
        EXIT_MESSAGES.remove(message)
    return failed


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    if not folder.parent.is_dir():
        raise UsageError(f"{shown_path(folder)}/: there is no folder {shown_path(folder.parent)}.")
    try:
        folder.mkdir(exist_ok=True)
    except FileExistsError:
        kind = "a file" if folder.exists() else "a broken link"
        raise UsageError(f"{shown_path(folder)}/: is {kind}.", "Name another folder.") from None
    except OSError as error:
        raise OutputError(f"{shown_path(folder)}/: {error.strerror}.") from error
    with locked(folder / _LOCK, f"{shown_path(folder)}/", "Wait for it to end, or name another folder."):
        yield


def _begin(folder: Path, manifest: Manifest, *, overwrite: bool) -> None:
    existing = read_manifest(folder) if not overwrite else None
    if existing is not None:
        manifest.refuse_other(existing, folder)
        if manifest.grown != existing.grown:
            manifest.write(folder)
    else:
        _refuse_other_files(folder)
        with refused_by_disk(f"{shown_path(folder)}/"):
            (folder / SUMMARY).unlink(missing_ok=True)
        manifest.write(folder)  # before anything else is removed, so that a run that stops here can continue
    with refused_by_disk(f"{shown_path(folder)}/"):
        _remove_drafts(folder)
        names = {shard.name for shard in manifest.shards} | {shard.counts for shard in manifest.shards}
        for path in (*filter(_is_part, list(folder.iterdir())), *folder.glob(f"{COUNTS}/*.json")):
            if path.name not in names:
                path.unlink()


def _refuse_other_files(folder: Path) -> None:
    drafts = {path for pattern in _DRAFTS for path in folder.glob(pattern)}
    has_manifest = (folder / MANIFEST).exists()  # without one, files that look like parts are not of a run
    foreign = sorted(
        path.name
        for path in folder.iterdir()
        if path.name != _LOCK and path not in drafts and not (has_manifest and (path.name in _OURS or _is_part(path)))
    )
    if foreign:
        shown = ", ".join(map(shown_path, foreign[:3])) + (", …" if len(foreign) > 3 else "")  # noqa: PLR2004
        fact = f"{shown_path(folder)}/: holds files that are not part of a run: {shown}."
        raise UsageError(fact, "Name an empty or a new folder.")


def _remove_drafts(folder: Path) -> None:
    # of processes that were killed; one of an earlier run that still writes cannot finish
    for pattern in _DRAFTS:
        for draft in folder.glob(pattern):
            with contextlib.suppress(OSError):
                draft.unlink()


def _is_part(path: Path) -> bool:
    return path.name.startswith("part-") and path.suffix == ".parquet"


def _finish(folder: Path, manifest: Manifest, summary: Summary) -> None:
    for shard in manifest.shards:
        if not (folder / shard.name).is_file():  # the summary would count its rows
            fact = f"{shown_path(folder / shard.name)}: was removed after it was written."
            raise OutputError(fact, "The same command writes it again.")
    if not (folder / MANIFEST).is_file():
        manifest.write(folder)
    _remove_drafts(folder)
    data = {name: value for name, value in summary.as_json().items() if name not in _VARYING}
    write_file(folder / SUMMARY, json.dumps(data, indent=1) + "\n")
