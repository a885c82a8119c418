"""Score files into a folder: cut them into shards, describe the run, and choose the engine."""

import contextlib
import sys
from pathlib import Path

from assay.checks.base import RunCheck
from assay.compiling.plan import Plan
from assay.errors import UsageError, counted, shown_path
from assay.functions.check import OnRow
from assay.functions.registry import user_functions
from assay.loading.rollouts import Rollouts
from assay.loading.tasks import content_of_tasks
from assay.options import FileOptions
from assay.runs.child_process import in_child_process
from assay.runs.file_run import FileRun
from assay.runs.folder import Engine, in_this_process, score_folder
from assay.runs.manifest import Manifest, read_manifest
from assay.runs.on_ray import on_ray
from assay.runs.shards import Job, cut
from assay.runs.streaming import output_schema
from assay.scoring.in_memory import tell
from assay.scoring.summary import Summary
from assay.system.special_files import is_stream, path_of
from assay.writing.provenance import provenance_of, task_files_of


def into_folder(source: Rollouts, plan: Plan, run: FileRun) -> Summary:
    """Score files into a folder of parts."""
    folder, options = Path(str(run.out)), run.options
    is_pipe = any(file.name == "-" or is_stream(path_of(file.name)) for file in source.inputs)
    if source.read is None or is_pipe or run.options["limit"] is not None:
        expected = "files" if source.read is None or is_pipe else "whole files, not --limit"
        raise UsageError(f"{shown_path(folder)}/: a run in parts reads {expected}.", _ONE_FILE)
    for verifier, spec, check in plan.checks:
        if isinstance(check, RunCheck) and check.whole:
            fact = f"{verifier.id}/{spec.id} sees all rollouts of an example, which may be in several parts."
            raise UsageError(f"{shown_path(folder)}/: {fact}", _ONE_FILE)
    tell(plan.refuse(source.frame))
    earlier = read_manifest(folder) if folder.is_dir() and not options["overwrite"] else None
    grown = () if earlier is None else _grown(earlier, source)
    shards = tuple(cut(source.read, int(options["part_bytes"]), grown))
    functions = user_functions()
    names = [function.name for function in functions]
    tasks, seal = task_files_of(options["tasks"]), options["seal"]
    provenance = provenance_of(plan.verifiers, names, source.inputs, tasks, seal=seal)
    if (task_table := content_of_tasks(source.steps)) is not None:
        provenance["task_table"] = task_table
    columns = {name: str(dtype) for name, dtype in output_schema(plan, source.frame).items()}
    manifest = Manifest(provenance, run.settings, columns, shards, run.options["command"], grown)
    paths = tuple(sys.path)
    job = Job(
        source.read,
        source.steps,
        plan,
        folder,
        manifest.run,
        source.inputs,
        functions if any(isinstance(check, OnRow) for check in plan.readers) else (),
        paths=paths,
        modules=tuple(options["modules"]),
        settings=run.settings,
    )
    summary, check_errors = run.begin(source, plan), run.error_limit.check
    if earlier is not None and grown != earlier.grown:
        summary.told.append(
            f"{counted(len(source.inputs) - grown[-1], 'file')} added to the run in {shown_path(folder)}/"
        )
    with _engine(options) as engine:
        summary = score_folder(
            job,
            manifest,
            engine,
            summary,
            overwrite=run.options["overwrite"],
            check=check_errors,
            progress=run.progress,
        )
    check_errors(summary, final=True)
    return run.end(source, summary)


def _grown(earlier: Manifest, source: Rollouts) -> tuple[int, ...]:
    then = [entry["name"] for entry in earlier.provenance.get("inputs", ())]
    now = [file.name for file in source.inputs]
    is_more = len(now) > len(then) and now[: len(then)] == then and not any(file.skipped for file in source.inputs)
    return (*earlier.grown, len(then)) if is_more else earlier.grown


def _engine(options: FileOptions) -> contextlib.AbstractContextManager[Engine]:
    if options["engine"] == "ray":
        return on_ray(options["ray_address"])
    return contextlib.nullcontext(in_child_process if options["isolate"] else in_this_process)


_ONE_FILE = "Name a file for the rewards: --out NAME.parquet"
