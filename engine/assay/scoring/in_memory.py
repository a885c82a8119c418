"""Score rollouts in memory."""

import contextlib
import errno
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

import polars as pl
import polars.selectors as cs
from polars.exceptions import PanicException

from assay.checks.base import is_builtin
from assay.checks.gold_faults import READS_ANSWER
from assay.checks.golds import GoldCheck
from assay.compiling.columns import (
    check_one_verifier,
    counts_outcomes,
    exact_columns,
    named_columns,
    read_columns,
    reading_for,
    referred_columns,
)
from assay.compiling.plan import Plan
from assay.compiling.verifiers import Rewarding, closing_checks, limits_of_run, verifiers_of_run, warn
from assay.errors import AssayError, AssayWarning, FailedRunError, InputError, OutputError, UsageError
from assay.expressions.mixed import untyped
from assay.expressions.shared_columns import exactly
from assay.loading.formats.files import ENGINE_ERRORS, broken_file, first_line
from assay.loading.formats.reading import File
from assay.loading.formats.remote import RemoteFile, hidden_of
from assay.loading.rollouts import Rollouts, open_rollouts
from assay.loading.tasks import join_tasks, load_tasks, override_notes, read_whole
from assay.names import TASK_ID
from assay.options import ReadingOptions, ScoreOptions, documented, options_of, settle
from assay.scoring.summary import Summary
from assay.spec.verifier import VerifierSource, VerifierSpec
from assay.system.redaction import redacted
from assay.system.signals import interruptible
from assay.system.spool import spooling


@documented(ScoreOptions)
def score(
    rollouts: Any,
    verifiers: Rewarding | VerifierSource | Sequence[VerifierSource] | Plan | None = None,
    **options: Unpack[ScoreOptions],
) -> pl.DataFrame:
    """Score rollouts.

    Args:
        rollouts: Anything that ``assay.scan`` reads: a path, a Polars or Arrow table, a Hugging Face Dataset, a list of mappings.
        verifiers: One or more verifiers: objects of ``load_verifier``, paths, or mappings; or an ``assay.Rubric``. None if every
            row carries its own, in a column ``verifier`` or in ``fn_name``, ``expected`` and ``params``. Or a plan of
            ``assay.compile``, for loops that score many small batches of one schema; it accepts only the options for reading.
        options: How the rollouts are read and scored.

    Returns:
        One row for each rollout, in order: the columns passed through, then ``reward`` (Float64, null = unscored; in [0, 1] for
        native verifiers, the weighted sum for a rubric), ``passed``, ``feedback``, ``error``, ``score/<verifier>`` and ``check/<verifier>/<check>``;
        ``verifier_fn`` where the rows name functions, ``info/<verifier>`` (JSON text) for verifier classes.

    Raises:
        SpecError: A verifier cannot be used.
        InputError: Rollouts or tasks cannot be read, or a row names a function that is not registered.
        BadRowsError: There are more malformed lines than ``max_bad_rows`` allows.
        ColumnsError: Columns that the checks read are missing or have the wrong type.
        FailedRunError: With ``strict``: a check broke on every row, or every row has an error; without, this is a warning.

    Example:
        >>> import assay
        >>> spec = {"checks": [{"type": "contains", "value": "refund"}]}
        >>> assay.score([{"completion": "A refund is on its way."}], spec)["reward"].to_list()
        [1.0]
    """
    settled = settle(ScoreOptions, options, "score")
    if isinstance(verifiers, Plan):
        own = options_of(ReadingOptions)
        for name, (_, option) in options_of(ScoreOptions).items():
            value = options.get(name)
            if name not in own and value is not None and value != option.default:
                hint = "Give the verifier instead, or compile another plan."
                raise UsageError(f"{name}: a plan is scored as it was compiled.", hint)
        with interruptible(), spooling():
            source = open_rollouts(
                rollouts, reading_for({**settled, "outcome": verifiers.outcome}, verifiers.verifiers)
            )
            if not source.frame.collect_schema():  # an empty list has no columns, and no rows to score
                source = replace(source, frame=pl.LazyFrame(schema=dict(verifiers.schema)))
            return _scored(source, verifiers)
    with interruptible() as stop, spooling():
        limits = limits_of_run(verifiers, settled, stop=stop)
        loaded = verifiers_of_run(verifiers, settled, limits=limits)
        source = open_rollouts(rollouts, reading_for(settled, loaded))
        source, plan = prepare(source, loaded, settled)
        warn(loaded)
        scored = _scored(source, plan, plan.faults)
    summary = Summary.of_scored(plan, scored)
    report(summary.failures, settled, summary.doubts)
    return scored.select(cs.by_name(plan.columns))


def _scored(source: Rollouts, plan: Plan, watched: Sequence[str] = ()) -> pl.DataFrame:
    with engine_errors(source.files, plan):
        for message in plan.refuse(source.frame, rows=source.rows):
            warnings.warn(message, AssayWarning, stacklevel=3)
        with closing_checks(plan.verifiers):
            return plan.score(source.frame, rows=source.rows, watched=watched)


def prepare(source: Rollouts, verifiers: tuple[VerifierSpec, ...], options: ScoreOptions) -> tuple[Rollouts, Plan]:
    """Join the tasks and compile the plan, for scoring in memory and file to file."""
    keep, tasks, storage_options = options["keep"], options["tasks"], options["storage_options"]
    if not source.frame.collect_schema():  # an empty list has no columns, and no rows to score
        source = replace(source, frame=pl.LazyFrame(schema=dict.fromkeys(read_columns(verifiers), pl.String)))
    if tasks is not None:
        exact = exact_columns(verifiers)
        table, notes = load_tasks(tasks, storage_options, exact)
        present = {*source.frame.collect_schema(), *table.collect_schema()}
        columns = (*read_columns(verifiers, present), *named_columns(keep))
        check_one_verifier(verifiers, source.frame.collect_schema(), table.collect_schema())
        overrides = override_notes(source.frame, table, columns, exact)
        joined = [name for name in table.collect_schema() if name in (TASK_ID, *columns)]
        # read it once, because every part of a run joins it
        table = read_whole(table.select(map(exactly, joined)), tasks, storage_options).lazy()
        source = source.then(partial(join_tasks, tasks=table, wanted=columns, exact=exact), *notes, *overrides)
    with engine_errors(source.files, caught=(OSError,)):
        schema = tuple(source.frame.collect_schema().items())
    keep = None if keep is None else tuple(keep)
    plan = Plan(
        verifiers,
        schema,
        keep,
        options["details"],
        options["any_role"],
        options["lengths"],
        outcome=options["outcome"],
        counts_outcomes=counts_outcomes(options),
    )
    return replace(source, notes=(*source.notes, *plan.notes, *_gold_notes(source, verifiers))), plan


def _gold_notes(source: Rollouts, verifiers: Sequence[VerifierSpec]) -> list[str]:
    # of checks of ours whose golds, which rows bring and no step reads, are whole solutions with the answer behind ####, as in
    # GSM8K; nothing is looked at twice that may be costly: only files, and frames in memory
    checks = {
        f"{verifier.id}/{spec.id}": spec.check
        for verifier in verifiers
        for spec in verifier.nodes
        if isinstance(spec.check, GoldCheck) and spec.check.traits.references and is_builtin(spec.check)
        if not spec.check.brought.chain.steps
    }
    if not checks or not (source.files or source.rows is not None):
        return []
    schema = source.frame.collect_schema()
    names = [name for name in referred_columns(verifiers) if name in schema]
    try:
        first = source.frame.select(map(exactly, names)).head(_FIRST).collect() if names else pl.DataFrame()
        rows = [{name: untyped(value) for name, value in row.items()} for row in first.to_dicts()]
    except (*ENGINE_ERRORS, Exception):  # noqa: BLE001  (the run says what is wrong; Python has not every date)
        return []
    return [
        f"{name}: the gold is a whole solution; {READS_ANSWER}"
        for name, check in checks.items()
        if any(check.brought.solution(row) and check.brought.candidates(row) for row in rows)
    ]


def report(failures: Sequence[str], options: ScoreOptions, doubts: Sequence[str] = ()) -> None:
    """Warn the caller about a run whose rewards are not what the verifiers mean."""
    if options["lenient"]:
        return
    if options["strict"] and failures:
        fact = "\n".join(["The rewards are not what the verifiers mean:", *(f"  {failure}" for failure in failures)])
        raise FailedRunError(fact, "Correct the verifiers or the rows, or accept this with lenient=True.")
    for message in (*failures, *doubts):
        warnings.warn(message, AssayWarning, stacklevel=3)


def tell(messages: Sequence[str]) -> None:
    """Warn the caller about rows that probably contain a mistake."""
    for message in messages:
        warnings.warn(message, AssayWarning, stacklevel=3)


_FIRST = 20
"""Rows that are looked at for notes on golds."""

_NO_MEMORY = os.strerror(errno.ENOMEM)


def _engine_error(error: BaseException, files: Sequence[File], plan: Plan | None = None) -> AssayError:
    """Return an error for the user when the engine stops: it names the broken file, or the custom checks that may have failed."""
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and _NO_MEMORY in str(error)):
        fact = "There is not enough memory to continue; nothing was written."
        return OutputError(fact, "Lower the memory budget, for example --memory-limit 600MB.")
    custom = {
        f"{verifier.id}/{spec.id}" for verifier, spec, check in (plan.checks if plan else ()) if not is_builtin(check)
    }
    hint = (
        f"Custom checks: {', '.join(sorted(custom))}; test each with assay.testing.assert_check_conforms."
        if custom
        else ""
    )
    remote = [file for file in files if isinstance(file, RemoteFile)]
    if len(remote) == len(files) == 1:
        return remote[0].remote.input_error(error)
    fact = f"The engine stopped while reading or scoring: {first_line(error)}"
    if isinstance(error, OSError):  # reading the file again may not reproduce it
        fact = f"{', '.join(file.name for file in files[:3])}: {error.strerror or first_line(error)}."
        hint = ""
    broken = broken_file([file for file in files if file not in remote])
    if isinstance(error, PanicException) and not broken:
        raise error
    fact, hint = (broken.fact, broken.hint or hint) if broken else (fact, hint)
    return InputError(redacted(fact, hidden_of(files)) if remote else fact, hint)


@contextlib.contextmanager
def engine_errors(
    files: Sequence[File], plan: Plan | None = None, caught: tuple[type[BaseException], ...] = ENGINE_ERRORS
) -> Iterator[None]:
    """Raise errors for the user when the engine stops; without a cause for remote files, whose messages may hold secrets."""
    try:
        yield
    except BrokenPipeError:
        raise
    except caught as error:
        cause = None if any(isinstance(file, RemoteFile) for file in files) else error
        raise _engine_error(error, files, plan) from cause
