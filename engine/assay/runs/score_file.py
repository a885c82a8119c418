"""Score from file to file: stream batches through one plan to a summary and an atomic writer."""

import contextlib
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from assay.checks.base import RunCheck
from assay.compiling.plan import Plan
from assay.compiling.requirements import read_columns
from assay.compiling.verifiers import Rewarding, closing_checks, limits_of_run, verifiers_of_run
from assay.errors import UsageError, counted, did_you_mean, path_text, shown_path
from assay.functions.check import OnRow
from assay.functions.registry import user_functions
from assay.loading.bad_rows import check_bad_rows_file, write_bad_rows
from assay.loading.formats.files import ENGINE_ERRORS
from assay.loading.formats.reading import reading_of
from assay.loading.formats.remote import is_url
from assay.loading.presets.preset import as_data
from assay.loading.rollouts import Rollouts, open_rollouts, unchanged
from assay.loading.tasks import content_of_tasks
from assay.options import FileOptions, deciding, documented, settle
from assay.runs.child_process import in_child_process
from assay.runs.error_limit import ErrorLimit
from assay.runs.folder import Engine, in_this_process, is_folder, score_folder
from assay.runs.manifest import Manifest
from assay.runs.on_ray import on_ray
from assay.runs.shards import Job, cut
from assay.runs.streaming import output_schema, stream
from assay.scoring.in_memory import cause, engine_error, prepare, tell, warn
from assay.scoring.summary import Summary
from assay.spec.verifier import VerifierSource
from assay.system.atomic_file import check_target
from assay.system.progress import Ticks
from assay.system.redaction import redacted
from assay.system.signals import interruptible
from assay.system.special_files import is_stream, path_of
from assay.system.spool import spooling
from assay.writing.provenance import provenance_of, task_files_of
from assay.writing.writers import ENDINGS, STDOUT, open_writer

__all__ = ["score_file"]


@documented(FileOptions)
def score_file(
    rollouts: Any,
    verifiers: Rewarding | VerifierSource | Sequence[VerifierSource] | None = None,
    out: str | Path | None = None,
    **options: Unpack[FileOptions],
) -> Summary:
    """Score rollouts and write the rewards batch by batch; memory use does not grow with the number of rows.

    Into a folder, the rewards are written in parts, each complete or absent. The same call continues an interrupted run, and
    refuses a folder that holds a different run.

    Args:
        rollouts: Anything that ``assay.scan`` reads; for a folder, files only.
        verifiers: As for ``assay.score``, except a plan.
        out: A ``.parquet``, ``.jsonl`` or ``.csv`` path, a folder (an existing one, or a path that ends in a slash) for parts in
            parquet, ``-`` for JSON lines on standard output, or None for a summary only.
        options: How the rollouts are read and scored, and how the result is written.

    Returns:
        The summary of the run.

    Raises:
        SpecError: A verifier cannot be used.
        InputError: Rollouts or tasks cannot be read.
        UsageError: An option or the output path cannot be used.
        OutputError: The result could not be written.
        BadRowsError: There are more malformed lines than ``max_bad_rows`` allows; nothing is written.
        TooManyErrors: There are more scoring errors than ``max_errors`` allows; nothing is written, or no further parts.
        PartsError: Parts of a folder could not be scored; the others are complete.
    """
    if isinstance(verifiers, Plan):
        raise UsageError(
            "score_file does not take a plan.", "Pass the verifier, or score in memory: assay.score, plan.score."
        )
    settled = settle(FileOptions, options, "score_file")
    error_limit = ErrorLimit(settled["max_errors"], in_parts=is_folder(out))
    run = _Run(out, settled, error_limit, Ticks(settled["progress"]))
    reading = reading_of(settled)
    _refuse_engine(settled, out)
    tick = run.progress.add if settled["progress"] else None
    with interruptible() as stop, spooling():
        limits = limits_of_run(verifiers, settled, tick=tick, stop=stop)
        loaded = verifiers_of_run(verifiers, settled, limits=limits)
        run.check()
        opened = open_rollouts(rollouts, reading, read_columns(loaded))
        source, plan = prepare(opened, loaded, settled)
        run.check_apart(source)
        warn(loaded)
        if is_folder(out):
            return _to_folder(source, plan, run)
        with closing_checks(loaded):
            return _to_file(source, plan, run)


@dataclass(frozen=True)
class _Run:
    """Output, options, error limit and progress of a run."""

    out: str | Path | None
    options: FileOptions
    error_limit: ErrorLimit
    progress: Ticks

    def check(self) -> None:
        """Check the output path before anything is read."""
        if self.out == "":  # Path("") is the current folder
            raise UsageError("--out: is empty.", "Name a file, or FOLDER/ for parts.")
        if is_url(self.out):
            fact = f"{redacted(str(self.out))}: rewards can only be written to a local path."
            raise UsageError(fact, "Write them to a local path, then copy them to the store.")
        if self.out is None or str(self.out) == STDOUT or is_folder(self.out):
            return
        path = Path(self.out)
        if path.suffix.lower() not in ENDINGS:
            endings = f"{', '.join(ENDINGS)}, / for a folder of parts, or - for standard output"
            raise UsageError(f"{shown_path(self.out)}: the ending must be {endings}.")
        check_target(path, overwrite=self.options["overwrite"], how="--overwrite")

    def check_apart(self, source: Rollouts) -> None:
        """Refuse to overwrite an input."""
        if self.out is None or str(self.out) == STDOUT:
            return
        target = os.path.realpath(self.out)
        for file in (*(str(file.path) for file in source.files), *task_files_of(self.options["tasks"])):
            real = os.path.realpath(file)
            if real == target:
                raise UsageError(f"{shown_path(self.out)}: is one of the inputs.", "Name another file for the rewards.")
            if is_folder(self.out) and os.path.dirname(real) == target:  # noqa: PTH120  (of the link's target)
                raise UsageError(
                    f"{shown_path(self.out)}: holds {shown_path(file)}, one of the inputs.", "Name another folder."
                )

        if source.bad:  # a continued run into a folder replaces its list
            check_bad_rows_file(self.out, overwrite=self.options["overwrite"] or is_folder(self.out))

    def begin(self, source: Rollouts, plan: Plan) -> Summary:
        """Return an empty summary, and set the total of the progress."""
        total, limit = source.rows, self.options["limit"]
        self.progress.total = total if total is None or limit is None else min(total, limit)
        summary = Summary.of(plan)
        summary.told += source.notes
        summary.out = None if self.out is None else path_text(self.out)
        summary.bad_rows = len(source.bad)
        return summary

    def end(self, source: Rollouts, summary: Summary) -> Summary:
        """Write the list of malformed rows, and add a note to the summary."""
        bad_rows = write_bad_rows(source.bad, self.out)
        if source.bad:
            note = f"{counted(len(source.bad), 'bad row')} {'is' if len(source.bad) == 1 else 'are'} unscored"
            summary.told.append(note if bad_rows is None else f"{note}, and listed in {path_text(bad_rows)}")
        return summary


def _to_file(source: Rollouts, plan: Plan, run: _Run) -> Summary:
    frame = source.frame if run.options["limit"] is None else source.frame.head(run.options["limit"])
    summary = run.begin(source, plan)

    def check_and_report() -> None:
        run.error_limit.check(summary)
        run.progress.reach(summary.rows)

    started = time.perf_counter()
    try:
        tell(plan.refuse(frame))
        with open_writer(run.out, output_schema(plan, frame), raw_csv=run.options["raw_csv"]) as writer:
            run.check()  # again, now locked: another run may have just written the file
            stream(plan, frame, writer, summary, check_and_report, source.read)
            run.error_limit.check(summary, final=True)
            unchanged(source.inputs)
            if writer is not None:
                writer.close(_provenance(source, plan, run, summary))
    except BrokenPipeError:
        raise
    except (MemoryError, *ENGINE_ERRORS) as error:
        raise engine_error(error, source.files, plan) from cause(error, source.files)
    summary.seconds = time.perf_counter() - started
    return run.end(source, summary)


def _provenance(source: Rollouts, plan: Plan, run: _Run, summary: Summary) -> dict[str, Any]:
    inputs = list(source.inputs)
    if len(inputs) == 1 and run.options["limit"] is None:  # with several inputs, the rows of each are not always known
        inputs = [replace(inputs[0], rows=summary.rows)]
    functions = [check.id for check in summary.checks]
    provenance = provenance_of(plan.verifiers, functions, inputs, task_files_of(run.options["tasks"]))
    return {**provenance, "command": run.options["command"], "rows": summary.rows}


def _to_folder(source: Rollouts, plan: Plan, run: _Run) -> Summary:
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
    shards = tuple(cut(source.read, int(options["part_bytes"])))
    functions = user_functions()
    names = [function.name for function in functions]
    provenance = provenance_of(plan.verifiers, names, source.inputs, task_files_of(run.options["tasks"]))
    if (task_table := content_of_tasks(source.steps)) is not None:
        provenance["task_table"] = task_table
    columns = {name: str(dtype) for name, dtype in output_schema(plan, source.frame).items()}
    manifest = Manifest(provenance, _identity(options), columns, shards, run.options["command"])
    paths = tuple(sys.path)
    job = Job(
        source.read,
        source.steps,
        plan,
        folder,
        manifest.run,
        source.inputs,
        functions if any(isinstance(check, OnRow) for _, _, check in plan.checks) else (),
        paths=paths,
        modules=tuple(options["modules"]),
    )
    summary, check_errors = run.begin(source, plan), run.error_limit.check
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


def _identity(options: FileOptions) -> dict[str, Any]:
    """Return the options that are part of the run's identity, as JSON data."""
    names = deciding(FileOptions)
    identity: dict[str, Any] = {name: value for name, value in options.items() if name in names}
    preset = options["preset"]
    return identity | {"mapping": dict(options["mapping"] or {}), "preset": None if preset is None else as_data(preset)}


_ENGINES = ("local", "ray")


def _refuse_engine(options: FileOptions, out: str | Path | None) -> None:
    engine, address = options["engine"], options["ray_address"]
    if engine not in _ENGINES:
        hint = did_you_mean(engine, _ENGINES) or f"Expected {' or '.join(_ENGINES)}."
        raise UsageError(f"--engine {engine}: unknown engine.", hint)
    if engine == "ray" and not is_folder(out):
        raise UsageError("--engine ray writes a folder of parts.", "Name one: --out NAME/")
    if engine != "ray" and address is not None:
        raise UsageError(f"--ray-address {address}: requires --engine ray.")


def _engine(options: FileOptions) -> contextlib.AbstractContextManager[Engine]:
    if options["engine"] == "ray":
        return on_ray(options["ray_address"])
    return contextlib.nullcontext(in_child_process if options["isolate"] else in_this_process)


_ONE_FILE = "Name a file for the rewards: --out NAME.parquet"
