"""Score rollouts in memory. The same plan scores files (``run``)."""

import errno
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

import polars as pl
from polars.exceptions import PanicException

from assay.calls.limits import MAX_CONCURRENT, REGEX_TIMEOUT
from assay.checks import CHECKS
from assay.checks.base import Check
from assay.compiling.plan import Plan
from assay.compiling.requirements import check_one_verifier, read_columns
from assay.compiling.verifiers import Rewarding, closing_checks, limits_of_run, verifiers_of_run
from assay.errors import AssayError, AssayWarning, InputError, OutputError, UsageError
from assay.expressions.lane import exactly
from assay.loading.formats.files import ENGINE_ERRORS, broken_file, first_line
from assay.loading.formats.reading import File, ReadingOptions, name_of, reading_of
from assay.loading.formats.remote import RemoteFile, hidden_of
from assay.loading.rollouts import Rollouts, open_rollouts
from assay.loading.tasks import join_tasks, load_tasks, override_notes, read_whole
from assay.names import TASK_ID
from assay.spec.verifier import VerifierSource, VerifierSpec
from assay.system.redaction import redacted
from assay.system.signals import interruptible
from assay.system.spool import while_set_down

__all__ = ["cause", "engine_error", "prepare", "score", "tell", "warn"]


def score(
    rollouts: Any,
    verifiers: Rewarding | VerifierSource | Sequence[VerifierSource] | Plan | None = None,
    *,
    tasks: Any = None,
    verifier_name: str | None = None,
    pass_threshold: float | None = None,
    keep: Sequence[str] | None = None,
    details: bool = True,
    strict: bool = False,
    checks: Sequence[type[Check]] = (),
    function_timeout: float | None = None,
    max_concurrent: int = MAX_CONCURRENT,
    workers: int = 0,
    regex_timeout: float = REGEX_TIMEOUT,
    **reading: Unpack[ReadingOptions],
) -> pl.DataFrame:
    """Score rollouts.

    Args:
        rollouts: Anything ``assay.scan`` reads: a path, a Polars or Arrow table, a Hugging Face Dataset, a list of mappings.
        verifiers: One verifier or several: objects of ``load_verifier``, paths, or mappings; or an ``assay.Rubric``. None: every
            row carries its own, in a column ``verifier`` or in ``fn_name``, ``expected`` and ``params``. Or a plan of
            ``assay.compile``, for loops that score many small batches of one schema, with no more options than how to read.
        tasks: A task table joined on ``task_id``: a path (parquet, JSONL, YAML, Harbor folder) or anything ``scan`` reads.
        verifier_name: The function of rows that name none.
        pass_threshold: The reward from which on such a row, or one that a rubric scores, passes; by default 1.0.
        keep: Input columns to pass through; by default all that no check reads.
        details: Whether the output has ``score/…`` and ``check/…`` columns.
        strict: Refuse unknown check types and broken checks.
        checks: Check types of your own.
        function_timeout: Seconds that one call of Python may take, of a rubric's function, of one that rows name, of a verifier
            class or a check without an ``expr``; then it scores 0.0 with an ``error``.
        max_concurrent: Rollouts that asynchronous functions of a rubric work on at once; at most 0 for all.
        workers: Processes for the functions of a rubric; 0 for this one. A function that hangs there is killed, whatever it does.
        regex_timeout: Seconds for one match of a pattern that only backtracking can tell; past them it scores 0.0 with an ``error``.
            0 for no limit. ``assay explain`` says which patterns those are.
        reading: ``mapping``, where columns come from, ``{"completion": "response"}`` or ``{"completion": "$.output.text"}``;
            ``preset``, how records of a known format become rollouts; and the others of ``assay.loading.formats.reading.ReadingOptions``.

    Returns:
        One row for each rollout, in order: the columns passed through, then ``reward`` (Float64, null = unscored; in [0, 1] for
        native verifiers, the weighted sum for a rubric), ``passed``, ``feedback``, ``error``, ``score/<verifier>`` and ``check/<verifier>/<check>``;
        ``verifier_fn`` where the rows name functions, ``info/<verifier>`` (JSON text) for verifier classes.

    Raises:
        SpecError: A verifier cannot be used.
        InputError: Rollouts or tasks cannot be read, or a row names a function that is not registered.
        BadRowsError: More lines than ``max_bad_rows`` are no rollouts.
        ColumnsError: Columns that the checks read are missing or of the wrong type.

    Example:
        >>> import assay
        >>> spec = {"checks": [{"type": "contains", "value": "refund"}]}
        >>> assay.score([{"completion": "A refund is on its way."}], spec)["reward"].to_list()
        [1.0]
    """
    read = reading_of(**reading)
    if isinstance(verifiers, Plan):
        options = {"tasks": tasks, "verifier_name": verifier_name, "pass_threshold": pass_threshold, "keep": keep}
        options |= {"details": None if details else False, "strict": strict or None, "checks": checks or None}
        options |= {"function_timeout": function_timeout, "workers": workers or None}
        options |= {"max_concurrent": None if max_concurrent == MAX_CONCURRENT else max_concurrent}
        options |= {"regex_timeout": None if regex_timeout == REGEX_TIMEOUT else regex_timeout}
        return _by_plan(partial(open_rollouts, rollouts, read), verifiers, options)
    with interruptible() as stop, while_set_down():
        limits = limits_of_run(
            verifiers, function_timeout, max_concurrent, workers, regex_timeout=regex_timeout, stop=stop
        )
        loaded = verifiers_of_run(verifiers, verifier_name, pass_threshold, checks=checks, strict=strict, limits=limits)
        source = open_rollouts(rollouts, read, read_columns(loaded))
        store = read.storage_options
        source, plan = prepare(source, loaded, tasks=tasks, keep=keep, details=details, storage_options=store)
        warn(loaded)
        return _scored(source, plan)


def _by_plan(opened: Callable[[], Rollouts], plan: Plan, options: Mapping[str, Any]) -> pl.DataFrame:
    if given := [name for name, value in options.items() if value is not None]:
        raise UsageError(
            f"{given[0]}: a plan is scored as it was compiled.", "Give the verifier instead, or compile another plan."
        )
    with interruptible(), while_set_down():
        source = opened()
        if not source.frame.collect_schema():  # an empty list has no columns, and no rows to score
            source = replace(source, frame=pl.LazyFrame(schema=dict(plan.schema)))
        return _scored(source, plan)


def _scored(source: Rollouts, plan: Plan) -> pl.DataFrame:
    try:
        for said in plan.refuse(source.frame, rows=source.rows):
            warnings.warn(said, AssayWarning, stacklevel=3)
        with closing_checks(plan.verifiers):
            return plan.score(source.frame, rows=source.rows)
    except ENGINE_ERRORS as wrong:
        raise engine_error(wrong, source.files, plan) from cause(wrong, source.files)


def prepare(
    source: Rollouts,
    verifiers: tuple[VerifierSpec, ...],
    *,
    tasks: Any = None,
    keep: Sequence[str] | None = None,
    details: bool = True,
    storage_options: Mapping[str, str] | None = None,
) -> tuple[Rollouts, Plan]:
    """Join the tasks and compile the plan: what scoring in memory and file to file have in common."""
    keep = [keep] if isinstance(keep, str) else keep
    if not source.frame.collect_schema():  # an empty list has no columns, and no rows to score
        source = replace(source, frame=pl.LazyFrame(schema=dict.fromkeys(read_columns(verifiers), pl.String)))
    if tasks is not None:
        (table, told), wanted = load_tasks(tasks, storage_options), (*read_columns(verifiers), *(keep or ()))
        check_one_verifier(verifiers, source.frame.collect_schema(), table.collect_schema())
        said = override_notes(source.frame, table, wanted)
        there = [name for name in table.collect_schema() if name in (TASK_ID, *wanted)]
        # read once, for every part of a run joins it
        table = read_whole(table.select(map(exactly, there)), tasks, storage_options).lazy()
        source = source.then(partial(join_tasks, tasks=table, wanted=wanted), *told, *said)
    try:
        schema = tuple(source.frame.collect_schema().items())
    except OSError as wrong:
        raise engine_error(wrong, source.files) from cause(wrong, source.files)
    return source, Plan(verifiers, schema, None if keep is None else tuple(keep), details)


def tell(doubts: Sequence[str]) -> None:
    """Tell the caller what the rows may not have meant."""
    for said in doubts:
        warnings.warn(said, AssayWarning, stacklevel=3)


def warn(verifiers: Sequence[VerifierSpec]) -> None:
    """Tell the caller about broken and skipped checks before the run."""
    for verifier in verifiers:
        for said in verifier.warnings:
            warnings.warn(said, AssayWarning, stacklevel=3)


_NO_MEMORY = os.strerror(errno.ENOMEM)


def engine_error(wrong: BaseException, files: Sequence[File], plan: Plan | None = None) -> AssayError:
    """What to tell a person when the engine stops while reading or scoring: the file that broke, or the checks that may have.

    Raises:
        PanicException: The engine failed, and no file is to blame.
    """
    if isinstance(wrong, MemoryError) or (isinstance(wrong, OSError) and _NO_MEMORY in str(wrong)):
        said = "There was not enough memory to go on; nothing was written."
        return OutputError(said, "Make do with less: --memory-limit 600MB.")
    own = {
        f"{verifier.id}/{spec.id}"
        for verifier, spec, check in (plan.checks if plan else ())
        if type(check) not in CHECKS
    }
    hint = (
        f"Checks of your own: {', '.join(sorted(own))}; try each with assay.testing.assert_check_conforms."
        if own
        else ""
    )
    remote = [file for file in files if isinstance(file, RemoteFile)]
    if len(remote) == len(files) == 1:
        return remote[0].remote.input_error(wrong)
    fact = f"The engine stopped while reading or scoring: {first_line(wrong)}"
    if isinstance(wrong, OSError):  # it may not happen again when we look for it
        fact = f"{', '.join(map(name_of, files[:3]))}: {wrong.strerror or first_line(wrong)}."
        hint = ""
    broken = broken_file([file for file in files if file not in remote])
    if isinstance(wrong, PanicException) and not broken:
        raise wrong
    fact, hint = (broken.fact, broken.hint or hint) if broken else (fact, hint)
    return InputError(redacted(fact, hidden_of(files)) if remote else fact, hint)


def cause(wrong: BaseException, files: Sequence[File]) -> BaseException | None:
    """What to raise an engine's error from: a traceback shows it, and what a store said may hold secrets."""
    return None if any(isinstance(file, RemoteFile) for file in files) else wrong
