"""Verifiers and a schema become a plan: named expressions, evaluated in one pass, that give every output column.

All problems with the columns are found here, before a row is read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any, Unpack

import polars as pl

from assay.aggregating.aggregate import (
    OVERFLOW,
    UNSCORED,
    check_column,
    check_exprs,
    detail_columns,
    error_column,
    extra_columns,
    hidden,
    lines_expr,
    may_err,
    mean_steps,
    one_line_expr,
    one_reason,
    reason_column,
    remark_column,
    reward_steps,
    run_passes_expr,
    score_column,
)
from assay.calls.limits import own_failure
from assay.checks import CHECKS
from assay.checks.base import Check
from assay.compiling.fitting import fitted
from assay.compiling.morsels import in_pieces
from assay.compiling.requirements import check_columns, consumed_columns, doubted_rows, needed_columns, refused_rows
from assay.compiling.verifiers import verifiers_of_run
from assay.errors import SpecError, UsageError, said_by
from assay.expressions.completion import completion_text_expr, content_warning
from assay.expressions.lane import OTHER_ROWS, exactly, is_elementwise, layers
from assay.functions.check import OnRow
from assay.functions.registry import function, list_fns
from assay.names import BAD, COMPLETION, HIDDEN, NATIVE, TASK_FOUND, TASK_ID, TEXT
from assay.options import CompileOptions, documented, settle
from assay.spec.verifier import CheckSpec, VerifierSource, VerifierSpec
from assay.system.processes import prepare_process
from assay.thresholds import THRESHOLDS
from assay.values.arguments import shown_expr
from assay.values.failures import no_rollout_expr

__all__ = ["NULL_COMPLETION", "Plan", "compile", "no_task"]

_ROW = HIDDEN + "row"
NULL_COMPLETION = "the completion is null"
_NO_TASK = ("task_id ", " is not in the task table")


def no_task(task_id: object) -> str:
    """Why a rollout without its task is unscored."""
    return f"{'null' if task_id is None else task_id}".join(_NO_TASK)


@dataclass(frozen=True)
class Plan:
    """Verifiers compiled for one schema. It pickles, hashes, and works in any process.

    Attributes:
        verifiers: What is scored, in order.
        schema: The columns of the rollouts and their types.
        keep: Input columns to pass through; None for all that no check reads.
        details: Whether the columns of verifiers and checks are part of the output.
    """

    verifiers: tuple[VerifierSpec, ...]
    schema: tuple[tuple[str, Any], ...]
    keep: tuple[str, ...] | None = None
    details: bool = True

    def __post_init__(self) -> None:
        check_columns(self.verifiers, pl.Schema(self.schema), self.keep)
        self._check_expressions()

    def __reduce__(self) -> tuple[object, ...]:
        return Plan, (self.verifiers, self.schema, self.keep, self.details)

    # ── what goes in and comes out ──────────────────────────────────────────────────────────────────────────────────

    @property
    def checks(self) -> list[tuple[VerifierSpec, CheckSpec, Check]]:
        """The checks that run, in order."""
        return [(v, spec, spec.check) for v in self.verifiers for spec in v.runnable if spec.check is not None]

    @cached_property
    def passed_through(self) -> dict[str, str]:
        """Input columns of the output: the name they have there, and the name they came with.

        A column that has the name of one of the results keeps its values as ``prior_<name>``.
        """
        names = [name for name, _ in self.schema if not name.startswith(HIDDEN)]
        consumed, results = consumed_columns(self.verifiers), {*self.results}
        kept = [name for name in names if name not in consumed] if self.keep is None else list(self.keep)
        taken = {*results, *kept}
        out: dict[str, str] = {}
        for name in kept:
            shown = name
            while shown in results or (shown != name and shown in taken):
                shown = f"prior_{shown}"
            out[shown] = name
            taken.add(shown)
        return out

    @cached_property
    def results(self) -> tuple[str, ...]:
        """Columns that the plan adds."""
        extras = [name for name in extra_columns(self.verifiers) if self.details or "/" not in name]
        details = detail_columns(self.verifiers) if self.details else []
        return ("reward", "passed", "feedback", "error", *extras, *details)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of the output, in order."""
        return (*self.passed_through, *self.results)

    @property
    def watched(self) -> tuple[str, ...]:
        """Hidden columns that a summary reads."""
        names = [hidden(name) for name in ("reward", "passed", "error")]
        for verifier, spec, check in self.checks:
            score = hidden(check_column(verifier, spec))
            names.append(score)
            names += () if one_reason(spec) is not None else (reason_column(verifier, spec),)
            names += (error_column(verifier, spec),) if may_err(check) else ()
            names += () if check.remark_expr() is None else (remark_column(verifier, spec),)
        return (*names, *(hidden(name) for name in extra_columns(self.verifiers)), UNSCORED)

    @property
    def piece(self) -> int:
        """Rows to go through the plan together: few for the memory, more where what rows have in common is worked out once."""
        shared = any(check.reads or type(check) not in CHECKS for _, _, check in self.checks)
        return max(1, THRESHOLDS.shared_piece if shared else THRESHOLDS.piece)

    # ── running ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def lazy(self, rollouts: pl.LazyFrame, *, watched: bool = False) -> pl.LazyFrame:
        """The output as a lazy frame: one row for each rollout, in order.

        Args:
            rollouts: A frame with this plan's schema.
            watched: Add the columns that a summary reads.

        Raises:
            UsageError: The engine cannot run in this process.
        """
        prepare_process()
        frame = rollouts
        for layer in self._layers:
            frame = frame.with_columns(layer)
        dtypes = dict(self.schema)
        kept = [shown_expr(exactly(name), dtypes[name]).alias(shown) for shown, name in self.passed_through.items()]
        results = [pl.col(hidden(name)).alias(name) for name in self.results]
        return frame.select(*kept, *results, *(self.watched if watched else ()))

    def refuse(self, rollouts: pl.LazyFrame, *, rows: int | None = None) -> list[str]:
        """Look for rows that a run refuses before it scores anything; only the columns that tell are read.

        Args:
            rollouts: The frame.
            rows: As in ``score``.

        Returns:
            What the owner of the run should know: fields that nothing reads.

        Raises:
            InputError: There are some: a verifier of another kind, or a function that nobody has registered.
        """
        schema = pl.Schema(self.schema)
        rollouts = fitted(rollouts, schema)
        doubts = [said] if (said := content_warning(COMPLETION, schema[COMPLETION])) else []
        for _, _, check in self.checks:
            why, doubt = check.refused_expr(), check.doubt_expr()
            if why is None and doubt is None:
                continue
            frame = rollouts.filter(pl.col(TASK_FOUND).is_not_null()) if TASK_FOUND in schema else rollouts
            frame = frame.with_row_index(_ROW)
            frame = frame.filter(bad.is_null()) if (bad := no_rollout_expr(schema)) is not None else frame
            for layer in layers(check.refusal_lanes(), schema):
                frame = frame.with_columns(layer)
            told = frame.select(one_line_expr(why).alias("why"), one_line_expr(doubt).alias("doubt"), pl.col(_ROW))
            told = told.filter(pl.col("why").is_not_null() | pl.col("doubt").is_not_null())
            grouped = told.group_by("why", "doubt").agg(pl.col(_ROW).min().alias("row"), pl.len().alias("rows"))
            found = grouped.sort("row").collect(engine="in-memory" if self._few(rows) else "streaming")
            by_why = found.filter(pl.col("why").is_not_null()).group_by("why", maintain_order=True)
            refused = by_why.agg(pl.col("row").min(), pl.col("rows").sum())
            if refused.height:
                raise refused_rows(refused.rows())
            doubts += doubted_rows(found.select("doubt", "row", "rows").rows())
        return doubts

    def score(self, rollouts: pl.DataFrame | pl.LazyFrame, *, rows: int | None = None) -> pl.DataFrame:
        """Score a frame that has this plan's schema, or one that can be brought to it without loss.

        A batch alone may have other types than beside others: golds that are all null or all integers, empty lists, structs
        without a field that others have. What it means is what it means there.

        Args:
            rollouts: The frame.
            rows: How many a lazy frame has, if that is known: few are scored with less ado.

        Returns:
            One row for each rollout, in order, with ``columns``.

        Raises:
            ColumnsError: A column of the schema is missing or has a type that means something else.
        """
        frame = fitted(rollouts.lazy(), dict(self.schema))
        if self._few(rollouts.height if isinstance(rollouts, pl.DataFrame) else rows):
            return self.lazy(frame).collect(engine="in-memory")
        with in_pieces(self.piece):
            return self.lazy(frame).collect()

    def _few(self, rows: int | None) -> bool:
        """Whether rows are too few for streaming, which costs more to set up.

        NOTE: without it, Python that asks the engine may be called again before it has answered; so nobody's but ours.
        """
        ours = all(type(check) in CHECKS or isinstance(check, OnRow) for _, _, check in self.checks)
        if rows is None or rows > THRESHOLDS.unstreamed_rows or not ours:
            return False
        return all(one.builtin for one in map(function, list_fns()) if one is not None)

    @cached_property
    def _layers(self) -> list[list[pl.Expr]]:
        schema = pl.Schema(self.schema)
        bad, text = no_rollout_expr(schema), completion_text_expr(COMPLETION, schema[COMPLETION])
        text = text if bad is None else pl.when(pl.col(BAD).is_null()).then(text)  # nobody is asked about such a row
        lanes = [lane for _, _, check in self.checks for lane in check.lanes()]
        pairs = [check_exprs(verifier, spec, check) for verifier, spec, check in self.checks]
        steps = [
            [] if bad is None else [one_line_expr(bad).alias(BAD)],
            [text.alias(TEXT)],
            *layers(lanes, schema),
            [self._unscored(schema).alias(UNSCORED)],
            [expr for first, _ in pairs for expr in first],
            [expr for _, second in pairs for expr in second],
            *_side_by_side([self._score(verifier) for verifier in self.verifiers]),
            *_side_by_side([reward_steps(self.verifiers)]),
            self._verdict(),
        ]
        return [step for step in steps if step]

    @staticmethod
    def _score(verifier: VerifierSpec) -> list[pl.Expr]:
        checks = [hidden(check_column(verifier, spec)) for spec in verifier.runnable]
        return mean_steps(checks, [spec.weight for spec in verifier.runnable], hidden(score_column(verifier)))

    def _verdict(self) -> list[pl.Expr]:
        scored = pl.col(UNSCORED).is_null()
        passed = run_passes_expr(self.verifiers)
        errors = lines_expr(self.verifiers, errors=True)
        overflow = pl.when(pl.col(hidden("reward")).is_null()).then(pl.lit(OVERFLOW))
        return [
            pl.when(scored).then(passed).alias(hidden("passed")),
            pl.when(scored).then(lines_expr(self.verifiers, errors=False)).alias(hidden("feedback")),
            pl.coalesce(UNSCORED, pl.when(errors != "").then(errors), overflow).alias(hidden("error")),
        ]

    def _unscored(self, schema: pl.Schema) -> pl.Expr:
        why: pl.Expr = pl.when(pl.col(TEXT).is_null()).then(pl.lit(NULL_COMPLETION))
        if TASK_FOUND in schema:
            ident = pl.col(TASK_ID).cast(pl.String).fill_null("null")
            said = pl.lit(_NO_TASK[0]) + ident + pl.lit(_NO_TASK[1])
            why = pl.when(pl.col(TASK_FOUND).is_null()).then(said).otherwise(why)
        own = (check.unscored_expr() for _, _, check in self.checks)
        bad = [] if no_rollout_expr(schema) is None else [pl.col(BAD)]
        return pl.coalesce(*bad, why, *(one_line_expr(said) for said in own if said is not None))

    # ── problems found before a row is read ─────────────────────────────────────────────────────────────────────────

    def _check_expressions(self) -> None:
        """Find a user's check whose expression cannot run, by its type alone."""
        schema = pl.Schema(self.schema)
        for verifier, spec, check in self.checks:
            if type(check) in CHECKS:
                continue
            frame = pl.LazyFrame(schema=schema).with_columns(
                completion_text_expr(COMPLETION, schema[COMPLETION]).alias(TEXT)
            )
            try:
                for layer in layers(check.lanes(), schema):
                    frame = frame.with_columns(layer)
                expr = check.expr()
                dtype = frame.select(score=expr).collect_schema()["score"]
                _check_words(complaint=check.complaint(), claim=check.claim())
                _check_alone(expr)
            except BaseException as wrong:  # a user's own class may raise anything
                if not own_failure(wrong) or isinstance(wrong, UsageError):  # the latter of this process
                    raise
                name, tried = check.made_by.__name__, "check" if verifier.kind == NATIVE else "verifier"
                said = f"{verifier.id}/{spec.id}: the expression of {name} cannot run: {said_by(wrong)}"
                raise SpecError(said, f"assay.testing.assert_{tried}_conforms compares it with the rows.") from None
            if not (dtype == pl.Boolean or ((check.graded or not check.has_expr) and dtype.is_numeric())):
                wanted = "Float64" if check.graded else "Boolean (set graded = True for partial credit)"
                raise SpecError(
                    f"{verifier.id}/{spec.id}: the expression of {type(check).__name__} is {dtype}, not {wanted}."
                )


def _check_alone(expr: pl.Expr) -> None:
    """Find an expression that says of a row what depends on others.

    Raises:
        TypeError: It is one.
    """
    prepare_process()  # it is tried on a few texts
    if not is_elementwise(expr, (TEXT,), tried=True):
        raise TypeError(OTHER_ROWS)


def _check_words(**words: object) -> None:
    """Find a check that says nothing, or no text.

    Raises:
        TypeError: It is one.
    """
    for method, given in words.items():
        if not isinstance(given, str):
            raise TypeError(f"{method}() returns {type(given).__name__}, not str")


def _side_by_side(steps: Sequence[Sequence[pl.Expr]]) -> list[list[pl.Expr]]:
    """Independent sequences of columns as layers: all first steps, then all second ones."""
    return [[step for step in layer if step is not None] for layer in zip_longest(*steps)]


@documented(CompileOptions)
def compile(  # noqa: A001  (the field's word; assay.compile reads as re.compile does)
    verifiers: VerifierSource | Sequence[VerifierSource] | None = None,
    schema: Mapping[str, Any] | pl.Schema | pl.DataFrame | pl.LazyFrame | None = None,
    **options: Unpack[CompileOptions],
) -> Plan:
    """Compile verifiers into a plan for rollouts of one schema.

    Args:
        verifiers: One verifier or several: objects, paths or mappings. None: the rows carry their own.
        schema: The rollouts' columns and types, or a frame that has them; by default every column the checks read, as text.
        options: How they are compiled.

    Returns:
        A plan, to be used with ``plan.score(frame)`` or ``plan.lazy(frame)``.

    Raises:
        SpecError: A verifier cannot be used.
        ColumnsError: Columns are missing or have a type that cannot be read.
    """
    settled = settle(CompileOptions, options, "compile")
    loaded = verifiers_of_run(verifiers, settled)
    if schema is None:
        schema = dict.fromkeys(needed_columns(loaded), pl.String)
    elif isinstance(schema, pl.DataFrame | pl.LazyFrame):
        schema = schema.collect_schema()
    keep = settled["keep"]
    return Plan(loaded, tuple(pl.Schema(schema).items()), None if keep is None else tuple(keep), settled["details"])
