"""Score from file to file: stream batches through one plan to a summary and an atomic writer."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from assay.compiling.columns import reading_for
from assay.compiling.plan import Plan
from assay.compiling.verifiers import Rewarding, closing_checks, limits_of_run, verifiers_of_run, warn
from assay.errors import FailedRunError, UsageError, did_you_mean
from assay.loading.formats.documents import form_of
from assay.loading.formats.files import ENGINE_ERRORS
from assay.loading.rollouts import Rollouts, open_rollouts, unchanged
from assay.options import FileOptions, documented, settle
from assay.runs.file_run import FileRun, is_folder, output_schema, stream
from assay.scoring.in_memory import engine_errors, prepare, report, tell
from assay.scoring.summary import Gate, Summary, outcome_gate, pass_rate_gate, reward_gate
from assay.spec.verifier import VerifierSource
from assay.system.quantities import read_share
from assay.system.signals import interruptible
from assay.system.special_files import path_of
from assay.system.spool import spooling
from assay.writing.provenance import provenance_of, sealed, task_files_of
from assay.writing.writers import InspectScores, Opener, open_writer


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
        FailedRunError: The run did not reach ``min_pass_rate`` or ``min_reward``, or exceeded ``max_not_found`` or
            ``max_truncated``. Or with ``strict``: a check broke on every row, or every row has an error; without, this is a
            warning. The result is written.
    """
    if isinstance(verifiers, Plan):
        raise UsageError(
            "score_file does not take a plan.", "Pass the verifier, or score in memory: assay.score, plan.score."
        )
    settled = settle(FileOptions, options, "score_file")
    run = FileRun(out, settled)
    _refuse_engine(settled, out)
    tick = run.progress.add if settled["progress"] else None
    with interruptible() as stop, spooling():
        limits = limits_of_run(verifiers, settled, tick=tick, stop=stop)
        loaded = verifiers_of_run(verifiers, settled, limits=limits)
        run.check()
        earlier: tuple[str, ...] = ()
        if out and is_folder(out) and not settled["overwrite"]:
            from assay.runs.manifest import recorded_inputs

            earlier = recorded_inputs(Path(out))
        opened = open_rollouts(rollouts, replace(reading_for(settled, loaded), first=earlier))
        source, plan = prepare(opened, loaded, settled)
        source = sealed(source) if settled["seal"] else source
        run.check_apart(source)
        warn(loaded)
        taken: Mapping[str, Any] = {}
        if settled["reuse"] is not None:
            from assay.runs.reuse import reusing  # few runs need it

            source, plan, taken = reusing(source, plan, run)
        if is_folder(out):
            from assay.runs.folder import into_folder  # imports the engines, which a single file does not need

            summary = into_folder(source, plan, run)
        else:
            with closing_checks(loaded):
                summary = _to_file(source, plan, run, taken)
    summary.errors_allowed = settled["max_errors"] is not None
    summary.gates += _gates(summary, settled)
    report(summary.failures, settled, summary.doubts)
    if summary.unmet and not settled["lenient"]:
        written = "Nothing was written" if out is None else "The result is written"
        raise FailedRunError("\n".join(summary.unmet), f"{written}.")
    return summary


def _gates(summary: Summary, options: FileOptions) -> Iterator[Gate]:
    if options["min_pass_rate"] is not None:
        least = read_share("--min-pass-rate", options["min_pass_rate"])
        counts_all = options["min_pass_rate_of"] == "all"  # noqa: S105  (a share, not a password)
        unscored = summary.rows - summary.scored if counts_all else 0
        yield pass_rate_gate(least, summary.passed, summary.scored, unscored)
    if options["min_reward"] is not None:
        yield reward_gate(options["min_reward"], summary.mean_reward)
    for outcome, most in {"not_found": options["max_not_found"], "truncated": options["max_truncated"]}.items():
        if most is not None:
            yield outcome_gate(outcome, most, summary.outcomes[outcome], summary.scored)


def _to_file(source: Rollouts, plan: Plan, run: FileRun, taken: Mapping[str, Any]) -> Summary:
    frame = source.frame if run.options["limit"] is None else source.frame.head(run.options["limit"])
    summary = run.begin(source, plan)

    def check_and_report() -> None:
        run.check_errors(summary)
        run.progress.reach(summary.rows)

    lines: Opener | None = None
    if all(form_of(path_of(file.name)) == ".eval" for file in source.inputs):
        lines = InspectScores  # as the tool reads them whose logs the rollouts are
    started = time.perf_counter()
    with engine_errors(source.files, plan, (MemoryError, *ENGINE_ERRORS)):
        tell(plan.refuse(frame))
        schema = output_schema(plan, frame)
        with open_writer(run.out, schema, raw_csv=run.options["raw_csv"], lines=lines) as writer:
            run.check()  # again, now locked: another run may have just written the file
            stream(plan, frame, writer, summary, check_and_report, source.read)
            run.check_errors(summary, final=True)
            unchanged(source.inputs)
            if writer is not None:
                inputs = list(source.inputs)
                if (
                    len(inputs) == 1 and run.options["limit"] is None
                ):  # of several, the rows of each are not always known
                    inputs = [replace(inputs[0], rows=summary.rows)]
                functions, tasks = [check.id for check in summary.checks], task_files_of(run.options["tasks"])
                made_by = provenance_of(plan.verifiers, functions, inputs, tasks, seal=run.options["seal"])
                made_by |= run.task_table(source, made_by)
                made_by |= {"settings": run.settings, "command": run.options["command"], "rows": summary.rows}
                summary.root = writer.close({**made_by, **taken})
                summary.verifiers, summary.columns = made_by["verifiers"], list(schema)
    summary.seconds = time.perf_counter() - started
    return run.end(source, summary)


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
