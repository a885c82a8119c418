"""Compile verifiers and a schema into a plan: named expressions for every output column, evaluated in one pass.

All problems with the columns are reported here, before a row is read.
"""

import contextlib
import os
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache, partial
from itertools import zip_longest
from typing import Any, Unpack

import polars as pl
import polars.selectors as cs
from polars.exceptions import ColumnNotFoundError

from assay.aggregating.aggregate import RESULTS, labels_of, reward_steps, verdict_exprs, verifier_steps
from assay.aggregating.columns import (
    UNSCORED,
    check_column,
    detail_columns,
    error_column,
    extra_columns,
    extra_layer,
    hidden,
    reason_column,
    remark_column,
)
from assay.aggregating.outcomes import SIGNS, cut_off_expr, outcome_of_row_expr
from assay.aggregating.pipeline import (
    NO_CHECK,
    applies_expr,
    check_exprs,
    columns_of,
    condition_layer,
    counts_expr,
    group_exprs,
    lanes_of,
    may_err,
    none_applies_expr,
    one_line_expr,
    one_reason,
    unscored_exprs,
)
from assay.calls.limits import is_user_error
from assay.calls.places import raised_at
from assay.checks.base import Check, RowAwareCheck, deciding_code, has_expr, is_builtin
from assay.compiling.batches import Attention, PlainRows, fitted
from assay.compiling.columns import (
    Conversions,
    as_given,
    assumed_columns,
    check_columns,
    consumed_columns,
    conversions,
    exact_columns,
    kept_columns,
    opened,
    read_columns,
    read_paths,
    refused_rows,
    rows_named,
    unreadable_exprs,
)
from assay.compiling.result_table import ResultTable, few_rows, split_at_words
from assay.compiling.verifiers import verifiers_of_run, warn
from assay.errors import AssayWarning, ColumnsError, SpecError, UsageError, counted, describe_error
from assay.expressions.completion import completion_text_expr, content_warning, no_text_expr
from assay.expressions.mixed import JSON, TYPED, plain_text
from assay.expressions.readable import has_type
from assay.expressions.shared_columns import (
    OTHER_ROWS,
    SharedColumn,
    columns_read,
    is_elementwise,
    layers,
    reading_column,
    rowwise,
)
from assay.functions.check import RowFunctionCheck
from assay.functions.registry import function, list_fns
from assay.kernel.library import with_words
from assay.names import (
    BAD,
    COMPLETION,
    CUT_OFF,
    GOLD_COLUMNS,
    HIDDEN,
    LENGTH,
    NATIVE,
    OUTCOME,
    TASK_FOUND,
    TASK_ID,
    TEXT,
)
from assay.options import PlanOptions, documented, settle
from assay.spec.verifier import CheckSpec, VerifierSource, VerifierSpec
from assay.system.processes import prepare_process
from assay.thresholds import THRESHOLDS
from assay.values.arguments import shown_expr
from assay.values.failures import no_rollout_expr
from assay.values.paths import Path
from assay.writing.documents import Document, Lines, Table
from assay.writing.notebooks import Displayed
from assay.writing.numbers import plain

_SETTING = "POLARS_IDEAL_MORSEL_SIZE"
_LOCK = threading.Lock()
_RUNS: set[object] = set()
"""Runs for which this module changed the setting."""


@contextlib.contextmanager
def in_pieces(rows: int) -> Iterator[None]:
    """Make Polars process about ``rows`` rows at a time, and not whole row groups: too few pieces for all cores."""
    run = (
        object()
    )  # the setting is global: the first of concurrent runs sets it, the last restores it; a user's is kept
    with _LOCK:
        if _RUNS or _SETTING not in os.environ:
            pl.Config.set_streaming_chunk_size(int(os.environ.get(_SETTING, rows)))
            _RUNS.add(run)
    try:
        yield
    finally:
        with _LOCK:
            if run in _RUNS:
                _RUNS.remove(run)
                if not _RUNS:
                    pl.Config.set_streaming_chunk_size(None)


_ROW = HIDDEN + "row"
_MAX_SCHEMAS = 32
"""Schemas of plain rows for which a plan is kept."""

_NO_TASK = ("task_id ", " is not in the task table")


def no_task(task_id: object) -> str:
    """Return the error of a rollout whose task is missing."""
    return f"{'null' if task_id is None else task_id}".join(_NO_TASK)


def no_task_expr(column: str) -> pl.Expr:
    """Return whether the reason in a column is that of ``no_task``."""
    reason = pl.col(column)
    return reason.str.starts_with(_NO_TASK[0]) & reason.str.ends_with(_NO_TASK[1])


@dataclass(frozen=True, repr=False)
class Plan(Displayed):
    """Verifiers compiled for one schema. It pickles, hashes, and works in any process.

    Attributes:
        verifiers: The verifiers, in order.
        schema: The columns of the rollouts and their types.
        keep: Input columns to pass through, as ``kept_columns`` reads them; None for all that no check reads.
        details: Whether the output has the columns of verifiers and checks.
        any_role: Whether the last message counts in a conversation without an assistant message, which is unscored otherwise.
        lengths: Whether the output has the length of each scored text.
        evaluated: The verifiers with checks in place of those whose outcomes an earlier run has found; none for the verifiers
            themselves.
        few: Whether it is for batches of a few rows: by the definition where that is faster.
        strict: Whether ``score_rows`` refuses a first batch in which no row has a column that a check reads.
        outcome: Whether the output has ``cut_off`` and ``outcome``.
        counts_outcomes: Whether the summary counts outcomes, though the output may have no such columns.
    """

    verifiers: tuple[VerifierSpec, ...]
    schema: tuple[tuple[str, Any], ...]
    keep: tuple[str, ...] | None = None
    details: bool = True
    any_role: bool = False
    lengths: bool = False
    evaluated: tuple[VerifierSpec, ...] = ()
    few: bool = False
    strict: bool = False
    outcome: bool = False
    counts_outcomes: bool = False

    def __post_init__(self) -> None:
        check_columns(self.verifiers, self.read_schema, self.keep)
        self._check_expressions()

    def __reduce__(self) -> tuple[object, ...]:
        return Plan, tuple(getattr(self, field.name) for field in fields(self))

    @property
    def headline(self) -> str:
        """How many checks there are, and which columns they read."""
        checks = counted(sum(len(verifier.checks) for verifier in self.verifiers), "check")
        return f"{checks} · {', '.join(read_columns(self.verifiers))}"

    def _document(self) -> Document:
        rows = [
            [verifier.id, spec.id, spec.type, spec.role if spec.role == "gate" else f"{spec.role} {plain(spec.weight)}"]
            for verifier in self.verifiers
            for spec in verifier.nodes
        ]
        columns = dict.fromkeys(("verifier", "check", "type", "role"), False)
        lines = [self.headline, *(f"note: {note}" for note in self.notes)]
        return Document("assay compile", [Lines(lines), Table(columns, rows)])

    @property
    def checks(self) -> list[tuple[VerifierSpec, CheckSpec, Check]]:
        """All checks that run, with groups and the checks in them, in order, each with its verifier."""
        return [(v, spec, spec.check) for v in self._evaluated for spec in v.nodes if spec.check is not None]

    @property
    def _evaluated(self) -> tuple[VerifierSpec, ...]:
        return self.evaluated or self.verifiers

    @property
    def readers(self) -> list[Check]:
        """All checks that run, with those that decide when others do."""
        return [reader.check for _, spec, _ in self.checks for reader in spec.readers if reader.check is not None]

    @property
    def _row_aware_checks(self) -> list[RowAwareCheck]:
        return [check for _, _, check in self.checks if isinstance(check, RowAwareCheck)]

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user on the columns that the checks read."""
        schema = self.read_schema
        return tuple(dict.fromkeys(note for check in self._row_aware_checks for note in check.column_notes(schema)))

    @cached_property
    def _exact(self) -> tuple[str, ...]:
        return (*exact_columns(self.verifiers), *(SIGNS if self.outcome else ()))

    @cached_property
    def passed_through(self) -> dict[str, str]:
        """Input columns in the output: their output name, mapped to their input name.

        A column with the name of a result is kept as ``prior_<name>``.
        """
        names = [name for name, _ in self.schema if not name.startswith(HIDDEN)]
        consumed, results = consumed_columns(self.verifiers), {*self.results}
        kept = kept_columns(self.keep, names, consumed)
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
        own = [*([LENGTH] if self.lengths else []), *([CUT_OFF, OUTCOME] if self.outcome else [])]
        return (*RESULTS, *own, *extras, *details)

    @property
    def finds_outcomes(self) -> bool:
        """Whether rows have outcomes, to be written or counted."""
        return self.outcome or self.counts_outcomes

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of the output, in order."""
        return (*self.passed_through, *self.results)

    @property
    def watched(self) -> tuple[str, ...]:
        """Hidden columns that the summary reads."""
        names = [hidden(name) for name in ("reward", "passed", "error")]
        for verifier, spec, _ in self.checks:
            score = hidden(check_column(verifier, spec))
            names.append(score)
            names += () if one_reason(spec) is not None else (reason_column(verifier, spec),)
            names += (error_column(verifier, spec),) if may_err(spec) else ()
            names += () if columns_of(spec).remark is None else (remark_column(verifier, spec),)
        names += (hidden(OUTCOME),) if self.finds_outcomes else ()
        return (*names, *(hidden(name) for name in extra_columns(self.verifiers)), UNSCORED)

    @property
    def faults(self) -> tuple[str, ...]:
        """Hidden columns that tell which checks have errors: the scores and errors of all checks that may have any."""
        names = [
            name
            for verifier, spec, _ in self.checks
            if may_err(spec)
            for name in (hidden(check_column(verifier, spec)), error_column(verifier, spec))
        ]
        return (*names, *(hidden(name) for name in extra_columns(self.verifiers)))

    @cached_property
    def counts(self) -> list[tuple[pl.Expr, str | None]]:
        """What the summary counts of each of ``checks`` in every batch, and the reason of its failures if all have the same."""
        return [(counts_expr(verifier, spec), one_reason(spec)) for verifier, spec, _ in self.checks]

    @property
    def piece(self) -> int:
        """Rows to process together: few to save memory, more if checks compute once what several rows share."""
        shared = any(check.traits.reads or not is_builtin(check) for _, _, check in self.checks)
        return max(1, THRESHOLDS.shared_piece if shared else THRESHOLDS.piece)

    def lazy(self, rollouts: pl.LazyFrame, *, watched: bool | Sequence[str | pl.Expr] = False) -> pl.LazyFrame:
        """Return the output as a lazy frame: one row for each rollout, in order.

        Args:
            rollouts: A frame with this plan's schema.
            watched: Add the hidden columns that the summary reads, or the named ones, or what is made of them.

        Raises:
            UsageError: Polars cannot run in this process.
        """
        prepare_process()
        frame = opened(rollouts, self.conversions)
        table = self._open_table
        # a pool of one thread only hands columns over, and does not reuse the memory of the thread that calls it
        add = pl.LazyFrame.with_columns if pl.thread_pool_size() > 1 else pl.LazyFrame.with_columns_seq
        for layer in self.layers if table is None else [*table.layers, *self._layers_of_rows]:
            frame = add(frame, layer)
        dtypes = dict(self.schema)
        kept = [self._shown(name, dtypes[name]).alias(output) for output, name in self.passed_through.items()]
        results = [pl.col(hidden(name)).alias(name) for name in self.results]
        added = watched if not isinstance(watched, bool) else self.watched if watched else ()
        return frame.select(*kept, *results, *added)

    def _shown(self, name: str, dtype: pl.DataType) -> pl.Expr:
        values = as_given(name, self.conversions)
        is_sign = self.outcome and dtype == TYPED and name in SIGNS
        if is_sign and name not in exact_columns(
            self.verifiers
        ):  # exact only to see how rollouts ended: the text that it has in other runs
            return rowwise(values.struct.field(JSON), plain_text, pl.String)
        return shown_expr(values, dtype)

    def refuse(self, rollouts: pl.LazyFrame, *, rows: int | None = None) -> list[str]:
        """Look for rows that stop a run before it scores anything; reads only the columns of verifiers.

        Args:
            rollouts: The frame.
            rows: As in ``score``.

        Returns:
            Warnings: fields that nothing reads.

        Raises:
            InputError: Rows have a verifier of another kind, or name an unregistered function.
        """
        schema = self.read_schema
        rollouts = opened(fitted(rollouts, dict(self.schema), self._exact), self.conversions)
        warnings = [warning] if (warning := content_warning(COMPLETION, schema[COMPLETION])) else []
        for check in self._row_aware_checks:
            with columns_read() as lanes:
                refusals = check.refusals()
            if refusals is None:
                continue
            reason, doubt = refusals
            frame = rollouts.filter(pl.col(TASK_FOUND).is_not_null()) if TASK_FOUND in schema else rollouts
            frame = frame.with_row_index(_ROW)
            frame = frame.filter(bad.is_null()) if (bad := no_rollout_expr(schema)) is not None else frame
            for layer in layers(lanes, schema):
                frame = frame.with_columns(layer)
            remarks = frame.select(
                one_line_expr(reason).alias("why"), one_line_expr(doubt).alias("doubt"), pl.col(_ROW)
            )
            remarks = remarks.filter(pl.col("why").is_not_null() | pl.col("doubt").is_not_null())
            grouped = remarks.group_by("why", "doubt").agg(pl.col(_ROW).min().alias("row"), pl.len().alias("rows"))
            groups = few_rows(grouped) if self._is_few(rows) else grouped.collect(engine="streaming")
            if groups.is_empty():
                continue
            groups = groups.sort("row")
            by_reason = groups.filter(pl.col("why").is_not_null()).group_by("why", maintain_order=True)
            refused = by_reason.agg(pl.col("row").min(), pl.col("rows").sum())
            if refused.height:
                raise refused_rows(refused.rows())
            warnings += rows_named(groups.select("doubt", "row", "rows").rows(), "warning")
        return warnings

    def score(
        self, rollouts: pl.DataFrame | pl.LazyFrame, *, rows: int | None = None, watched: Sequence[str | pl.Expr] = ()
    ) -> pl.DataFrame:
        """Score a frame that has this plan's schema, or can be converted to it without loss.

        The types of a single batch may differ from those of the whole data: expected values that are all null or all integers,
        empty lists, structs that lack a field. They are converted without a change of meaning.

        Args:
            rollouts: The frame.
            rows: Number of rows of a lazy frame, if known: a few rows are scored without streaming.
            watched: As in ``lazy``.

        Returns:
            One row for each rollout, in order, with ``columns``.

        Raises:
            ColumnsError: A column of the schema is missing, or its type would change the meaning of its values.
        """
        frame = fitted(rollouts.lazy(), dict(self.schema), self._exact)
        number = rollouts.height if isinstance(rollouts, pl.DataFrame) else rows
        if number is not None and self._is_few(number):
            plan = self._for_small if number <= THRESHOLDS.small_batch else self
            return few_rows(plan.lazy(frame, watched=watched))
        with in_pieces(self.piece if number is None else self._piece_of(number)):
            return self.lazy(frame, watched=watched).collect()

    def score_rows(self, rows: Any) -> pl.DataFrame:
        """Score rows of plain Python values, as trainers and evaluators have them.

        Keys that some rows lack are null, and so are columns that later batches lack; the first batch of a strict plan must have all
        that checks read. A batch without a reward, or without a gold that a check can use, is warned of. A completion may be text or messages. Golds may be
        lists or arrays (NumPy, PyTorch), which are lists of golds. No type is an error: where a value cannot be read at all, its row is unscored.

        Args:
            rows: Mappings of columns to values, or one mapping of columns to lists or arrays. Only columns of the plan's schema
                and others that its checks may read are looked at.

        Returns:
            One row for each rollout, in order, as ``assay.score`` returns them.

        Raises:
            InputError: A row is not a mapping, columns have different lengths, or a row names a function that is not registered.
            ColumnsError: No row of the first batch has a column that a check reads.
        """
        prepare_process()
        schema = dict(self.schema)
        more = (*read_columns(self.verifiers), *(SIGNS if self.finds_outcomes else ()))
        names = [*schema, *(name for name in dict.fromkeys(more) if name not in schema)]
        plain = PlainRows(rows, names, self._exact)
        if plain.height:
            self._attention.look(plain.given)
        frame, plan = self._suited(plain, schema)
        for message in plan.refuse(frame, rows=plain.height):
            warnings.warn(message, AssayWarning, stacklevel=2)
        scored = plan.score(frame, rows=plain.height, watched=self._attention.watched)
        self._attention.warn(scored)
        return scored.select(cs.by_name(plan.columns))

    @cached_property
    def _attention(self) -> Attention:
        return Attention(self.verifiers, strict=self.strict)

    def _suited(self, plain: PlainRows, schema: dict[str, Any]) -> tuple[pl.LazyFrame, "Plan"]:
        natural, golds = plain.natural(schema), {*GOLD_COLUMNS, *self._exact}
        try:
            # NOTE: a gold keeps its type: the text "True" is not the JSON of True
            types = schema | dict(natural.schema)
            # NOTE: nor are messages fitted to text, for that would be refused, in words that take longer than the fitting
            is_chat = isinstance(types[COMPLETION], pl.List) and schema.get(COMPLETION) == pl.String
            kept = {*golds, COMPLETION} if is_chat else golds
            wider = types | {name: dtype for name, dtype in schema.items() if name not in kept}
            try:
                return fitted(natural.lazy(), wider, golds), self._for_schema(tuple(wider.items()))
            except ColumnsError:
                return natural.lazy(), self._for_schema(tuple(types.items()))
        except (ColumnsError, SpecError):
            # a value of another column may be the reason, and says nothing about golds
            with contextlib.suppress(ColumnsError, SpecError):
                forced = plain.forced(schema, golds)
                return forced.lazy(), self._for_schema(tuple(forced.schema.items()))
            forced = plain.forced(schema, ())
            return forced.lazy(), self._for_schema(tuple(forced.schema.items()))

    @cached_property
    def _for_schema(self) -> Callable[[tuple[tuple[str, Any], ...]], "Plan"]:
        return lru_cache(_MAX_SCHEMAS)(lambda schema: self if schema == self.schema else replace(self, schema=schema))

    @cached_property
    def _for_few(self) -> "Plan":
        return replace(self, few=True)

    @property
    def _for_small(self) -> "Plan":
        """The plan for a small batch. A table pays from the second one on: to make it takes longer than to score the first."""
        is_first = "_for_few" not in vars(self)
        return self._for_few if is_first or self._open_table is None else self

    def _piece_of(self, rows: int) -> int:
        """Rows to process together of a known number: a piece for each core, at least."""
        return max(1, THRESHOLDS.unstreamed_rows, min(self.piece, -(-rows // pl.thread_pool_size())))

    def _is_few(self, rows: int | None) -> bool:
        """Whether the rows are one piece: streaming costs more to set up, and its threads do not reuse each other's memory.

        NOTE: without streaming, Python code that runs Polars may be re-entered before it returns; so only for built-in code.
        """
        all_builtin = all(is_builtin(check) or isinstance(check, RowFunctionCheck) for check in self.readers)
        if rows is None or rows > self._piece_of(rows) or not all_builtin:
            return False
        return all(entry.builtin for entry in map(function, list_fns()) if entry is not None)

    @cached_property
    def conversions(self) -> Conversions:
        """The columns that are converted before checks read them."""
        return conversions(self.verifiers, pl.Schema(self.schema))

    @cached_property
    def paths_to_bytes(self) -> tuple[Path, ...]:
        """The paths that checks read in columns of values of several kinds that may hold bytes."""
        nested = {
            name for name, dtype in self.schema if dtype == TYPED or (dtype.is_nested() and has_type(dtype, pl.Binary))
        }
        return tuple(path for path in read_paths(self.verifiers) if path.column in nested)

    @cached_property
    def read_schema(self) -> pl.Schema:
        """The columns and their types as checks read them."""
        return pl.Schema(dict(self.schema) | {name: dtype for name, (_, dtype) in self.conversions.items()})

    @cached_property
    def layers(self) -> list[list[pl.Expr]]:
        """Named hidden columns up to those of ``results``, in layers of which each reads those before it."""
        layers = [*self.shared_layers, self.not_scored_layer, *self._layers_of_checks, *self._layers_of_rows]
        return [layer for layer in layers if layer]

    @cached_property
    def table(self) -> ResultTable | None:
        """The table of the results of checks; None if these do not follow from one column of words."""
        split = split_at_words(self.shared_layers)
        if split is None:
            return None
        before, words, after = split
        of_rows = {expr.meta.output_name() for layer in self._layers_of_rows for expr in layer}
        names = dict.fromkeys([*map(hidden, self.results), *self.watched])
        try:
            return ResultTable(
                [*before, self.not_scored_layer],
                words,
                [*after, *self._layers_of_checks],
                [name for name in names if name not in of_rows],
            )
        except ColumnNotFoundError:
            return None

    @property
    def _open_table(self) -> ResultTable | None:
        return self.table if not self.few and self.table is not None and self.table.is_open else None

    @property
    def not_scored_layer(self) -> list[pl.Expr]:
        """``UNSCORED``: why a row cannot be scored, whatever checks need."""
        reasons = self.not_scored
        return [(pl.coalesce(reasons) if len(reasons) > 1 else reasons[0]).alias(UNSCORED)]

    @cached_property
    def _layers_of_checks(self) -> list[list[pl.Expr]]:
        schema = self.read_schema
        single = [check_exprs(verifier, spec, check) for verifier, spec, check in self.checks if not spec.parts]
        steps = [
            [expr for verifier in self._evaluated for expr in condition_layer(verifier, schema)],
            self._also_unscored,
            [expr for first, _ in single for expr in first],
            [*(expr for _, second in single for expr in second), *extra_layer(self._evaluated)],
            *self._group_layers,
            *_side_by_side([verifier_steps(verifier) for verifier in self._evaluated]),
            *_side_by_side([reward_steps(self._evaluated)]),
            verdict_exprs(self._evaluated),
        ]
        return [step for step in steps if step]

    @cached_property
    def shared_layers(self) -> list[list[pl.Expr]]:
        """The first of ``layers``: columns whose names say what they are, in whatever plan.

        The completion's text; the lanes about it, with what the steps make of it; then the lanes about that.
        """
        schema = self.read_schema
        bad = no_rollout_expr(schema)
        text = completion_text_expr(COMPLETION, schema[COMPLETION], any_role=self.any_role)
        text = text if bad is None else pl.when(pl.col(BAD).is_null()).then(text)  # no check sees such a row
        by_subject: dict[str, list[SharedColumn]] = {TEXT: []}
        for _, spec, _ in self.checks:
            for subject, lane in lanes_of(spec):
                by_subject.setdefault(subject, []).append(lane)
        about_subjects = []
        for subject, lanes in by_subject.items():
            with reading_column(subject):
                about_subjects.append(layers(with_words(lanes), schema, few=self.few))
        by_completion, *others = about_subjects
        first = [[] if bad is None else [one_line_expr(bad).alias(BAD)], [text.alias(TEXT)]]
        return [*first, *by_completion, *_merged(others)]

    @cached_property
    def _layers_of_rows(self) -> list[list[pl.Expr]]:
        """What rows have beside the results of checks: how long they are, how they ended, what became of them."""
        length = [pl.col(TEXT).str.len_chars().cast(pl.UInt32).alias(hidden(LENGTH))] if self.lengths else []
        if not self.finds_outcomes:
            return [length] if length else []
        ended = cut_off_expr(dict(self.schema), partial(as_given, converted=self.conversions))
        ended = pl.lit(None, dtype=pl.Boolean) if ended is None else ended
        columns = {name: pl.col(hidden(name)) for name in (*RESULTS, CUT_OFF)}
        made = outcome_of_row_expr(columns, labels_of(self.verifiers))
        return [[*length, ended.alias(hidden(CUT_OFF))], [made.alias(hidden(OUTCOME))]]

    @property
    def _group_layers(self) -> list[list[pl.Expr]]:
        by_depth: dict[int, list[list[list[pl.Expr]]]] = {}
        for verifier, spec, _ in self.checks:
            if spec.group is not None:
                by_depth.setdefault(spec.depth, []).append(group_exprs(verifier, spec, spec.group))
        return [layer for depth in sorted(by_depth) for layer in _merged(by_depth[depth])]

    @property
    def not_scored(self) -> list[pl.Expr]:
        """Why a row cannot be scored, whatever its golds: String expressions, of which the first that is not null counts."""
        schema = self.read_schema
        reason: pl.Expr = pl.when(pl.col(TEXT).is_null()).then(no_text_expr(COMPLETION))
        if TASK_FOUND in schema:
            ident = pl.col(TASK_ID).cast(pl.String).fill_null("null")
            message = pl.lit(_NO_TASK[0]) + ident + pl.lit(_NO_TASK[1])
            reason = pl.when(pl.col(TASK_FOUND).is_null()).then(message).otherwise(reason)
        bad = [] if no_rollout_expr(schema) is None else [pl.col(BAD)]
        paths = read_paths(self.verifiers)
        bad += unreadable_exprs(self.conversions, pl.Schema(self.schema), paths, any_role=self.any_role)
        return [*bad, reason]

    @property
    def _also_unscored(self) -> list[pl.Expr]:
        """Why else a row cannot be scored, by what its checks need; none if they need nothing."""
        pairs = [(verifier, spec) for verifier in self._evaluated for spec in verifier.nodes]
        messages = [message for verifier, spec in pairs for message in unscored_exprs(verifier, spec)]
        without = [none_applies_expr(verifier, applies_expr) for verifier in self._evaluated]
        messages += [pl.when(none).then(pl.lit(NO_CHECK)) for none in without if none is not None]
        return [pl.coalesce(UNSCORED, *map(one_line_expr, messages)).alias(UNSCORED)] if messages else []

    def _check_expressions(self) -> None:
        schema = self.read_schema
        for verifier, spec, check in self.checks:
            if is_builtin(check) or spec.parts:
                continue
            try:
                dtype = _score_type(check, schema)
            except BaseException as exception:  # a user's class may raise anything
                if not is_user_error(exception) or isinstance(exception, UsageError):  # which concerns this process
                    raise
                name = getattr(deciding_code(check), "__name__", check.type)
                noun = "check" if verifier.kind == NATIVE else "verifier"
                message = f"{verifier.id}/{spec.id}: the expression of {name} cannot run: {describe_error(exception)}"
                place = raised_at(exception)
                message += f"\n  {place}" if place else ""
                raise SpecError(message, f"assay.testing.assert_{noun}_conforms compares it with the rows.") from None
            if not (dtype == pl.Boolean or ((check.graded or not has_expr(check)) and dtype.is_numeric())):
                expected = "Float64" if check.graded else "Boolean (set graded = True for partial credit)"
                raise SpecError(
                    f"{verifier.id}/{spec.id}: the expression of {type(check).__name__} is {dtype}, not {expected}."
                )


def _score_type(check: Check, schema: pl.Schema) -> Any:
    text = completion_text_expr(COMPLETION, schema[COMPLETION]).alias(TEXT)
    frame = pl.LazyFrame(schema=schema).with_columns(text)
    with columns_read() as lanes:
        score = check.columns().score
    for layer in layers(lanes, schema):
        frame = frame.with_columns(layer)
    dtype = frame.select(score=score).collect_schema()["score"]
    for method, words in {"complaint": check.complaint(), "claim": check.claim()}.items():
        if not isinstance(words, str):
            raise TypeError(f"{method}() returns {type(words).__name__}, not str")
    prepare_process()  # the expression is tried on a few texts
    if not is_elementwise(score, (TEXT,), tried=True):
        raise TypeError(OTHER_ROWS)
    return dtype


def _side_by_side(steps: Sequence[Sequence[pl.Expr]]) -> list[list[pl.Expr]]:
    return [[step for step in layer if step is not None] for layer in zip_longest(*steps)]


def _merged(independent: Sequence[list[list[pl.Expr]]]) -> list[list[pl.Expr]]:
    return [[expr for layer in side for expr in layer] for side in zip_longest(*independent, fillvalue=[])]


@documented(PlanOptions)
def compile(  # noqa: A001  (assay.compile, as re.compile)
    verifiers: VerifierSource | Sequence[VerifierSource] | None = None,
    schema: Mapping[str, Any] | pl.Schema | pl.DataFrame | pl.LazyFrame | None = None,
    **options: Unpack[PlanOptions],
) -> Plan:
    """Compile verifiers into a plan for rollouts of one schema.

    Args:
        verifiers: One verifier or several: objects, paths or mappings. None: the rows carry their own.
        schema: The rollouts' columns and types, or a frame that has them; by default every column the checks read, as text.
        options: How they are compiled.

    Returns:
        A plan; use ``plan.score(frame)`` or ``plan.lazy(frame)``.

    Raises:
        SpecError: A verifier cannot be used, or, unless ``strict`` is False, has checks that are broken or of an unknown type.
        ColumnsError: Columns are missing or have a type that cannot be read.
    """
    settled = settle(PlanOptions, options, "compile")
    loaded = verifiers_of_run(verifiers, settled)
    warn(loaded)
    if schema is None:
        schema = assumed_columns(loaded)
    elif isinstance(schema, pl.DataFrame | pl.LazyFrame):
        schema = schema.collect_schema()
    keep = None if settled["keep"] is None else tuple(settled["keep"])
    columns = tuple(pl.Schema(schema).items())
    return Plan(
        loaded,
        columns,
        keep,
        settled["details"],
        settled["any_role"],
        settled["lengths"],
        strict=settled["strict"],
        outcome=settled["outcome"],
    )
