"""Score file to file: batches stream through one plan, a summary and an atomic writer."""

import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs
from polars.exceptions import PolarsError

from assay._version import __version__
from assay.checks.base import Check
from assay.columns import read_columns
from assay.errors import TooManyErrors, UsageError
from assay.export import ENDINGS, STDOUT, check_target, open_writer
from assay.fns import Function, function
from assay.interrupts import interruptible
from assay.judges import Rewarding, judged_by, limits_of_run, verifiers_of_run
from assay.lanes.base import HIDDEN
from assay.lanes.onrow import IN_PROCESS
from assay.limits import MAX_CONCURRENT, REGEX_TIMEOUT
from assay.pieces import in_pieces
from assay.plan import Plan
from assay.progress import Progress, Ticks
from assay.rollouts import InputFile, Rollouts, open_rollouts
from assay.scoring import engine_error, prepare, tell, warn
from assay.sources import described
from assay.spec import VerifierSource, VerifierSpec
from assay.summary import Summary

__all__ = ["batches", "score_file"]

_END = HIDDEN + "end"
_BATCH = 65_536
"""Rows that are counted and written together."""


def score_file(
    rollouts: Any,
    verifiers: Rewarding | VerifierSource | Sequence[VerifierSource] | None = None,
    out: str | Path | None = None,
    *,
    tasks: Any = None,
    verifier_name: str | None = None,
    pass_threshold: float | None = None,
    mapping: Mapping[str, str] | None = None,
    keep: Sequence[str] | None = None,
    details: bool = True,
    strict: bool = False,
    checks: Sequence[type[Check]] = (),
    limit: int | None = None,
    overwrite: bool = False,
    max_errors: int | str | None = None,
    raw_csv: bool = False,
    function_timeout: float | None = None,
    max_concurrent: int = MAX_CONCURRENT,
    workers: int = 0,
    regex_timeout: float = REGEX_TIMEOUT,
    command: str = "assay.score_file",
    progress: Progress | None = None,
) -> Summary:
    """Score rollouts and write the rewards, batch by batch: memory does not grow with the rows of a file.

    What comes from a pipe or an Arrow stream, and JSONL from a URL, is the exception: it is held as a whole.

    Args: those of ``assay.score``, and
        out: A ``.parquet``, ``.jsonl`` or ``.csv`` path, ``-`` for JSON lines on standard output, or None for a summary only.
        limit: Score the first rows only.
        overwrite: Replace an existing file.
        max_errors: Stop when more rows than this have a scoring error: a number, or a share such as ``"5%"``.
        raw_csv: Leave CSV cells that a spreadsheet would run as they are.
        command: What the provenance says made the file.
        progress: Called after each batch, and as the functions of a rubric go on.

    Returns:
        The run in numbers.

    Raises:
        SpecError: A verifier cannot be used.
        InputError: Rollouts or tasks cannot be read.
        UsageError: An option or the output path cannot be used.
        OutputError: The result could not be written.
        TooManyErrors: More scoring errors than ``max_errors``; nothing is written.
    """
    if isinstance(verifiers, Plan):
        raise UsageError("A plan scores what is in memory: assay.score, plan.score.", "Give score_file the verifier.")
    ticked = Ticks(progress)
    with interruptible() as stop:
        limits = limits_of_run(
            verifiers,
            function_timeout,
            max_concurrent,
            workers,
            regex_timeout=regex_timeout,
            tick=ticked.add if progress else None,
            stop=stop,
        )
        loaded = verifiers_of_run(verifiers, verifier_name, pass_threshold, checks=checks, strict=strict, limits=limits)
        allowed = _Allowed(max_errors)
        if limit is not None and limit < 0:
            raise UsageError(f"--limit {limit}: a number of rows is at least 0.")
        _check_path(out, overwrite=overwrite)
        source, plan = prepare(
            open_rollouts(rollouts, mapping, read_columns(loaded)), loaded, tasks=tasks, keep=keep, details=details
        )
        task_files = _task_files(tasks)
        _check_apart(out, [*(file.path for file in source.files), *task_files])
        warn(loaded)
        frame = source.frame if limit is None else source.frame.head(limit)
        run = _Run(source, task_files, limit, allowed, raw_csv, command, ticked)
        ticked.total = run.total
        with judged_by(loaded):
            summary = _stream(plan, frame, out, run)
    summary.out = None if out is None else str(out)
    return summary


@dataclass(frozen=True)
class _Run:
    """What a run needs besides its plan and its rows."""

    source: Rollouts
    tasks: tuple[Path, ...]
    limit: int | None
    allowed: "_Allowed"
    raw_csv: bool
    command: str
    progress: Ticks

    @property
    def total(self) -> int | None:
        """Rows in all, where the inputs tell."""
        known = self.source.rows
        return known if known is None or self.limit is None else min(known, self.limit)


def _stream(plan: Plan, frame: pl.LazyFrame, out: str | Path | None, run: _Run) -> Summary:
    summary = Summary.of(plan)
    summary.told += run.source.notes
    scored = plan.lazy(frame, watched=True)
    started = time.perf_counter()
    try:
        tell(plan.refuse(frame))
        schema = pl.Schema({name: dtype for name, dtype in scored.collect_schema().items() if name in plan.columns})
        with open_writer(out, schema, raw_csv=run.raw_csv) as writer, in_pieces(plan.piece):
            for batch in batches(scored):
                summary.add(plan, batch)
                run.allowed.check(summary)
                if writer is not None:
                    writer.write(batch.select(cs.by_name(plan.columns)))
                run.progress.reach(summary.rows)
            run.allowed.check(summary, final=True)
            if writer is not None:
                writer.close(_provenance(plan, run, summary))
    except PolarsError as wrong:
        raise engine_error(wrong, run.source, plan) from wrong
    summary.seconds = time.perf_counter() - started
    return summary


def batches(scored: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """What the engine gives, in order, gathered into batches that are worth the Python around each.

    Raises:
        KeyboardInterrupt: The engine ended the stream before its end.
    """
    # NOTE: at an interrupt the engine ends a stream as if there were no more rows, whoever handles the signal, and even where
    # nobody does; so the end is a row of its own
    last = pl.LazyFrame([{_END: True}], schema={**scored.collect_schema(), _END: pl.Boolean})
    stream = pl.concat([scored.with_columns(pl.lit(value=False).alias(_END)), last])
    ended = False
    for batch in stream.collect_batches(engine="streaming", chunk_size=_BATCH):
        ended = bool(batch[_END].any())
        rows = batch.drop(_END)
        yield rows.head(-1) if ended else rows
    if not ended:
        raise KeyboardInterrupt


def _provenance(plan: Plan, run: _Run, summary: Summary) -> dict[str, Any]:
    verifiers = [
        {
            "id": verifier.id,
            "source": verifier.source,
            "sha256": verifier.sha256,
            "canonical": verifier.canonical,
            "kind": verifier.kind,
            **({} if verifier.share is None else {"weight": verifier.share.weight}),
            "checks": [
                {"id": spec.id, "type": spec.type, "weight": spec.weight} for spec in verifier.runnable if spec.id
            ],
            "code": _code(verifier, summary),
        }
        for verifier in plan.verifiers
    ]
    return {
        "assay_version": __version__,
        "polars_version": pl.__version__,
        "command": run.command,
        "rows": summary.rows,
        "inputs": [asdict(one) for one in _counted(run, summary.rows)],
        "tasks": [{"name": str(path), "size": path.stat().st_size if path.is_file() else None} for path in run.tasks],
        "verifiers": verifiers,
    }


def _code(verifier: VerifierSpec, summary: Summary) -> list[dict[str, Any]]:
    """The functions and classes that gave verdicts: names of Assay's own, names and hashes of users'."""
    if verifier.kind == IN_PROCESS:
        used = [(check.id, function(check.id)) for check in summary.checks]
        return [{"name": name} if one is None or one.builtin else {"name": name, **_hashes(one)} for name, one in used]
    made = (spec.check.made_by for spec in verifier.runnable if spec.check is not None)
    return [described(cls) for cls in made if not cls.__module__.startswith("assay.")]


def _hashes(one: Function) -> dict[str, Any]:
    return described(one.fn) | ({} if one.expr is None else {"twin": described(one.expr)})


def _counted(run: _Run, rows: int) -> list[InputFile]:
    """The inputs with their rows; of several, only parquet tells before it is read."""
    inputs = list(run.source.inputs)
    return [replace(inputs[0], rows=rows)] if len(inputs) == 1 and run.limit is None else inputs


class _Allowed:
    """How many rows may have a scoring error: a number, or a share of all rows."""

    _FORM = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*")

    def __init__(self, given: int | str | None) -> None:
        match = None if given is None else self._FORM.fullmatch(str(given))
        if given is not None and (match is None or (not match.group(2) and "." in match.group(1))):
            raise UsageError(
                f"--max-errors {given}: expected a number of rows or a share.",
                "Write --max-errors 100 or --max-errors 5%.",
            )
        self.share = float(match.group(1)) / 100 if match and match.group(2) else None
        self.rows = int(match.group(1)) if match and not match.group(2) else None
        self.given = given

    def check(self, summary: Summary, *, final: bool = False) -> None:
        """Stop the run when there are more; a share is only known at the end."""
        over = self.rows is not None and summary.errors > self.rows
        if final and self.share is not None and summary.errors > self.share * summary.rows:
            over = True
        if not over:
            return
        worst = sorted((check for check in summary.checks if check.errors), key=lambda check: -check.errors)
        causes = [f"  {check.id}: {check.errors:,} rows" for check in worst[:5]]
        causes += [f"  unscored: {why}: {rows:,} rows" for why, rows in summary.unscored.most_common(3)]
        raise TooManyErrors(
            f"{summary.errors:,} of {summary.rows:,} rows have a scoring error; --max-errors allows {self.given}.\n"
            + "\n".join(causes),
            "Nothing was written. Mend the verifier or the rows, or allow more.",
        )


def _check_path(out: str | Path | None, *, overwrite: bool) -> None:
    if out is None or str(out) == STDOUT:
        return
    path = Path(out)
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(f"{out}: the ending says how to write; known: {', '.join(ENDINGS)}, or - for standard output.")
    check_target(path, overwrite=overwrite, how="--overwrite")


def _task_files(tasks: Any) -> tuple[Path, ...]:
    """The files of a task table that was given as paths."""
    given = [tasks] if isinstance(tasks, str | Path) else tasks
    if not isinstance(given, list | tuple) or not all(isinstance(one, str | Path) for one in given):
        return ()
    return tuple(Path(one) for one in given)


def _check_apart(out: str | Path | None, files: Sequence[Path]) -> None:
    """The result must not replace what it is made of."""
    if out is None or str(out) == STDOUT:
        return
    target = os.path.realpath(out)
    for file in files:
        if os.path.realpath(file) == target:
            raise UsageError(f"{out}: is one of the inputs.", "Name another file for the rewards.")
