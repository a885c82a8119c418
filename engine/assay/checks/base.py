"""A check: a function from a frame of rollouts to a column of scores, written in Python and as an expression."""

import builtins
import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import polars as pl

from assay.calls.in_thread import each
from assay.calls.limits import NO_REWARD, Limits, is_score, own_failure, settled
from assay.calls.places import failure
from assay.errors import encodable, quoted
from assay.expressions.lane import Lane, exactly, row_of, rowwise, text
from assay.expressions.mixed import untyped
from assay.expressions.pairs import quoted_expr
from assay.steps.base import Step
from assay.steps.sources import Source
from assay.values.params import Params
from assay.values.references import Reference

__all__ = [
    "ANSWER_STEPS",
    "BELOW_1",
    "JSON_STEPS",
    "NO_SCORE",
    "Check",
    "Example",
    "GoldCompared",
    "GoldKind",
    "Outcome",
    "Params",
    "Row",
    "RunCheck",
    "is_ours",
    "is_score",
]

Row = Mapping[str, Any]
"""One rollout as ``row()`` gets it: ``completion`` is its text (str), other columns are as loaded."""

ANSWER_STEPS = ({"after": "####"}, "boxed", {"tag": "answer"})
"""Steps for answers in solutions; see ``GoldKind.steps``."""

JSON_STEPS = ("fence", {"tag": "answer"}, {"json": "last"})
"""Steps for JSON in texts."""

NO_SCORE = "ValueError: the score is not a number in [0, 1]"
"""Error and reason of a row on which a check returns NaN, null or a score out of range."""


BELOW_1 = "the reward is below 1"
"""Reason of a row without any other reason."""


@dataclass(frozen=True)
class Example:
    """An example, for the documentation and the conformance tests.

    Attributes:
        completion: The text.
        score: Its score.
        params: The check's params.
        metadata: The row's metadata, if the check reads it.
        expected_output_schema: The row's schema, if the check reads it.
        columns: The row's other columns that the check reads.
    """

    completion: str
    score: float
    params: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] | None = None
    expected_output_schema: Mapping[str, Any] | None = None
    columns: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Outcome:
    """The result of a check on one row: score, reason if it is below 1, error if scoring failed, and the extra column.

    Of a group, also the results of its checks, None for one that did not run.
    """

    score: float
    reason: str
    error: str | None = None
    extra: str | None = None
    parts: tuple["Outcome | None", ...] = ()

    @property
    def fields(self) -> dict[str, Any]:
        """Its fields for a column of structs."""
        return {"score": self.score, "reason": self.reason, "error": self.error, "extra": self.extra}


@dataclass(frozen=True)
class GoldKind:
    """How a type takes its golds.

    Attributes:
        whole: Whether a list is one gold, not several.
        is_json: Whether a gold is a JSON value: ``Params`` takes it as it stands in a spec, and as JSON text; rows' lists and
            objects come as text.
        worst: Whether the worst of several golds counts, not the best.
        measured: Whether a gold is a length, and a list stands for the number of its items.
        lazy: Whether ``expr_by`` may be null, where Python scores the row or finds that its gold cannot be used; then golds are
            not looked at before.
        same_params: Params that say what the check reads, by field: they are the same on every row.
        of_lists: Whether the check scores a list of texts: ``completion`` is a list, and ``lane.text()`` a List(String) column.
        is_joined: Whether, with some params, a text is compared with all golds of a row together. Then ``Params`` takes a list of
            texts, too, and ``answer_by`` golds as List(String), of at least one text.
        counting: With some params, a function that returns those of a row's golds that count, as text; None if all do.
        steps: With some params, the steps that may read a gold from a text that the type cannot use as it stands, the likeliest
            first.
    """

    whole: bool = False
    is_json: bool = False
    worst: bool = False
    measured: bool = False
    lazy: bool = False
    same_params: tuple[str, ...] = ()
    of_lists: bool = False
    is_joined: Callable[[Any], bool] = lambda _: False
    counting: Callable[[Any], Callable[[list[str]], list[str]] | None] = lambda _: None
    steps: Callable[[Any], tuple[Any, ...]] = lambda _: ()


_FORMER = {
    "whole_gold": "whole",
    "json_gold": "is_json",
    "every_gold": "worst",
    "measured_gold": "measured",
    "lazy_golds": "lazy",
    "reading": "same_params",
    "takes_list": "of_lists",
}
"""Attributes of classes that say the same as fields of ``GoldKind``."""


class Check:
    """Base class of all checks, built-in and custom.

    A subclass defines ``type``, ``Params``, the methods ``row`` (Python) and ``expr`` (columns), and ``examples``; the rest has
    defaults. ``row`` and ``expr`` must give the same float, bit for bit, on every text; test it with
    ``assay.testing.assert_check_conforms``. A check without ``expr`` runs ``row`` on every row, which is correct but slow.

    Attributes:
        type: The check's name in specs.
        aliases: Other names that specs may use.
        graded: Whether scores between 0 and 1 occur; then ``expr`` is Float64, else Boolean.
        bounded: Whether scores lie in [0, 1]; if False, any finite number is a score.
        reads: Columns that the check reads in addition to ``completion``.
        may_read: Columns that it reads if the rollouts have them.
        stays: Columns that it reads and that are nevertheless passed through to the output.
        examples: Cases that document and test the check.
        joint: Separator of a row's reasons for a check with several; ``""`` for a check with one.
        gold: The param that the text is compared with, if there is one. Specs may take it from a column, and give several: the best
            score counts.
        gold_kind: How the type takes its golds, and what else it compares.
        in_files: Params whose value may be the name of a ``.json`` file beside the spec.
        claim_words: Template of ``claim``: ``contains {check.shown}``.
        fault_words: Template of ``complaint``; one that ends in ``{check.shown}`` also gives the reasons for golds from columns.
        libraries: The distributions whose versions decide verdicts, each with the versions that have been tested; none if any will do.
        params: This check's params.
        limits: The run's limits for Python code; None for no limits.
    """

    type: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    graded: ClassVar[bool] = False
    bounded: ClassVar[bool] = True
    reads: ClassVar[tuple[str, ...]] = ()
    may_read: ClassVar[tuple[str, ...]] = ()
    stays: ClassVar[tuple[str, ...]] = ()
    examples: ClassVar[tuple[Example, ...]] = ()
    joint: ClassVar[str] = ""
    gold: ClassVar[str] = ""
    gold_kind: ClassVar[GoldKind] = GoldKind()
    in_files: ClassVar[tuple[str, ...]] = ()
    claim_words: ClassVar[str] = "meets {check.type}"
    fault_words: ClassVar[str] = "fails {check.type}"
    libraries: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    Params: ClassVar[builtins.type[Params]] = Params
    limits: Limits | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if said := {_FORMER[name]: value for name, value in vars(cls).items() if name in _FORMER}:
            cls.gold_kind = replace(cls.gold_kind, **said)

    def __init__(self, params: Any = None) -> None:
        self.params = self.Params() if params is None else params

    @classmethod
    def require(cls) -> None:
        """Check that the packages are installed that the type needs.

        Raises:
            ModuleNotFoundError: One is not; the message tells how to install it.
        """

    def within(self, limits: Limits) -> "Check":
        """Return a copy of this check with the limits of a run."""
        bounded = copy.copy(self)
        bounded.limits = limits
        return bounded

    # ── the score ───────────────────────────────────────────────────────────────────────────────────────────────────

    def row(self, row: Row) -> float:
        """Return the score of one row, in [0, 1]. An exception, here or in ``reason``, scores 0.0 and fills ``error``."""
        del row
        raise TypeError(f"{type(self).__name__} has no row(): every check needs its row-wise definition")

    def expr(self) -> pl.Expr:
        """Return ``row`` as an elementwise expression over ``expressions.lane.text()`` and the columns of ``lanes()``."""
        lane = self.answer_lane()
        assert lane is not None  # noqa: S101  (a check without one defines ``expr``)
        score = lane.col.struct.field("score")
        return score if self.graded or type(self).answer_lane is Check.answer_lane else score == 1.0

    def answer_lane(self) -> Lane | None:
        """Return the shared column with score, reason and error of each row, as a struct; None for a check that defines ``expr``."""
        if self.has_expr:
            return None
        names = ("completion", *self.reads)
        dtype = pl.Struct({"score": pl.Float64, "reason": pl.String, "error": pl.String, "extra": pl.String})

        def outcome(row: dict[str, Any]) -> dict[str, Any] | None:
            return None if row["completion"] is None else self.outcome(row).fields

        def build(schema: pl.Schema) -> pl.Expr:
            columns = [exactly(name) if name in schema else pl.lit(None).alias(name) for name in names[1:]]
            columns += [exactly(name) for name in self.may_read if name in schema]
            rows = row_of([text().alias(names[0]), *columns])
            return rowwise(rows, outcome, dtype, each=partial(_each, self.limits))

        return Lane(f"rows:{self._identity()}", build)

    @property
    def named_references(self) -> list[tuple[str, Reference]]:
        """The values that rows bring for its params, in order, each with the param's name in specs."""
        return []

    @property
    def references(self) -> list[Reference]:
        """The values that rows bring for its params, in order."""
        return [reference for _, reference in self.named_references]

    def missing(self, row: Row) -> str | None:
        """Return why a row has no gold that the check can use; None if it has one."""
        del row
        return None

    def missing_expr(self) -> pl.Expr | None:
        """Return ``missing`` as a String expression; None if every row has a gold."""
        return None

    @classmethod
    def row_params(cls, given: Mapping[str, Any]) -> Mapping[str, str]:
        """Return the params that rows bring where a spec does not give them, each with its column.

        Args:
            given: The params that the spec gives, by field.
        """
        del given
        return {}

    def source(self) -> Source | None:
        """Return what the check reads without ``on:``; None for the completion's text."""
        return None

    def steps(self) -> tuple[Step, ...]:
        """Return steps that the check takes before it scores, after those of ``on:``; where one finds nothing, it scores 0.0."""
        return ()

    # ── claims, reasons and errors ──────────────────────────────────────────────────────────────────────────────────

    def claim(self) -> str:
        """Return what holds when the check passes, as a clause without a subject: ``contains "refund"``."""
        return self.claim_words.format(check=self)

    def complaint(self) -> str:
        """Return the reason of a failing row, if it is the same for every row."""
        return self.fault_words.format(check=self)

    @property
    def shown(self) -> str:
        """The gold as ``claim_words`` and ``fault_words`` show it."""
        return quoted(getattr(self.params, self.gold))

    def reason(self, row: Row) -> str:
        """Return why one row scored below 1."""
        del row
        return self.complaint()

    def reason_expr(self) -> pl.Expr:
        """Return ``reason`` as an expression; only used where the score is below 1."""
        lane = self.answer_lane()
        return pl.lit(encodable(self.complaint())) if lane is None else lane.col.struct.field("reason")

    @property
    def one_complaint(self) -> bool:
        """Whether every failing row has the same reason."""
        cls = type(self)
        return self.answer_lane() is None and cls.reason is Check.reason and cls.reason_expr is Check.reason_expr

    def error(self, row: Row) -> str | None:
        """Return the error of a row whose ``row()`` does not raise; None if there is none."""
        del row
        return None

    def error_expr(self) -> pl.Expr | None:
        """Return the error of a row, raised or not, as a String expression; None if there never is one."""
        lane = self.answer_lane()
        return None if lane is None else lane.col.struct.field("error")

    # ── rows that cannot be scored, and results beside the score ────────────────────────────────────────────────────────

    def remark_expr(self) -> pl.Expr | None:
        """Return a remark on a row that does not affect its score, as a String expression that is null on most rows.

        The summary counts it, and shows it as "12 of 99 rows: …".
        """
        return None

    # ── how it runs ─────────────────────────────────────────────────────────────────────────────────────────────────

    def lanes(self) -> tuple[Lane, ...]:
        """Return the shared columns that ``expr`` and ``reason_expr`` read."""
        lane = self.answer_lane()
        return () if lane is None else (lane,)

    def explain(self) -> str:
        """Return which engine runs the check, and why."""
        return "columns" if self.has_expr else "Python, row by row: the check has no expr()"

    def outcome(self, row: Row) -> Outcome:
        """Return score, reason and error of one row, by ``row`` and the rules for exceptions and invalid scores."""
        row = {name: untyped(value) for name, value in row.items()}
        try:
            score, problem = settled(self.row(row))
            if problem is not None or (self.bounded and not is_score(score)):
                return Outcome(0.0, self.misfit, self.misfit)
            error = self.error(row)
            return Outcome(score, encodable(self.reason(row)) if score < 1 else "", error and encodable(error))
        except BaseException as exception:  # a broken check never ends a run
            if not own_failure(exception):
                raise
            message = failure(exception, self, self.type)
            return Outcome(0.0, message, message)

    @property
    def made_by(self) -> builtins.type:
        """The class whose code decides the verdicts."""
        return type(self)

    @property
    def misfit(self) -> str:
        """Error and reason of a row with an invalid score."""
        return NO_SCORE if self.bounded else NO_REWARD

    @property
    def is_builtin(self) -> bool:
        """Whether this is one of Assay's check types: the conformance tests hold its two faces equal."""
        return is_ours(type(self))

    @property
    def has_expr(self) -> bool:
        """Whether the check defines ``expr``, or a column of answers."""
        cls = type(self)
        return cls.expr is not Check.expr or cls.answer_lane is not Check.answer_lane

    def _identity(self) -> str:
        """Return a key that is unique per check; classes made by a factory share a name, but not their verdicts."""
        return f"{type(self).__qualname__}:{id(type(self))}:{self.params.model_dump()!r}"


class GoldCompared(Check):
    """Base class of our checks whose golds may come from a column, compared with texts column to column."""

    def expr_by(self, golds: pl.Expr) -> pl.Expr | None:
        """Return ``expr`` with each row's gold from a column: a column-to-column lane.

        Args:
            golds: The gold of each row as text: String, null where there is none. Each is one that ``Params`` accepts. If golds are
                whole, List(String), of at least one text.

        Returns:
            The expression, of the type of ``expr``; it must not read this check's own gold. None if there is none: each row's check
            then scores in Python.
        """
        del golds
        return None

    def explain_by(self) -> str:
        """Return which engine runs ``expr_by``."""
        return "columns: column to column"

    def answer_by(self, golds: pl.Expr) -> pl.Expr | None:
        """Return score, reason and error of each row, given its gold, as one struct; None if ``expr_by`` and ``reason_by`` do.

        Args:
            golds: As for ``expr_by``.

        Returns:
            A struct of ``score``, ``reason`` and ``error``, null where there is no gold; the reason is ``""`` where the score is 1.
        """
        del golds
        return None

    def lanes_by(self) -> tuple[Lane, ...]:
        """Return the shared columns that ``expr_by`` reads."""
        return ()

    def usable_by(self, golds: pl.Expr) -> pl.Expr | None:
        """Return the golds (String) that ``Params`` accepts, null for the others; None to ask ``Params`` about each of them."""
        del golds
        return None

    def reason_by(self, golds: pl.Expr) -> pl.Expr | None:
        """Return ``reason_expr`` with each row's gold from a column; None if Python writes each reason.

        Args:
            golds: As for ``expr_by``, null where no reason is needed.
        """
        words, gold, rest = self.fault_words.partition("{check.shown}")
        return quoted_expr(golds, words) if gold and not rest else None


class RunCheck(Check):
    """Base class of checks that ask what rows bring, verifier classes or rubrics: they may refuse rows, or look at several.

    Attributes:
        whole: Whether the check must see all rows of a run together; such a run has one part.
        extra: Output column (String) that the check adds beside its scores; ``{verifier}`` and ``{check}`` stand for ids. Of several
            checks with the same column, the first that has a value counts.
        nullable: Whether the score may be null: the check does not apply to the row, and contributes nothing to its score.
        spared: Columns of ``may_read`` that it does not read beside others: their names, and those others.
    """

    whole: ClassVar[bool] = False
    extra: ClassVar[str] = ""
    nullable: ClassVar[bool] = False
    spared: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def column_problems(self, schema: pl.Schema) -> list[tuple[str, str]]:
        """Return problems of the rollouts' columns, except missing ones of ``reads``: facts, each with a hint."""
        del schema
        return []

    def short_expr(self, score: pl.Expr, error: pl.Expr) -> pl.Expr:
        """Return an expression for whether a row gets a reason, given its score and its error."""
        del error
        return score < 1.0

    def column_notes(self, schema: pl.Schema) -> list[str]:
        """Return notes for the user on the columns that the check reads."""
        del schema
        return []

    def unscored(self, row: Row) -> str | None:
        """Return why a row with a completion cannot be scored at all; None if it can."""
        del row
        return None

    def unscored_expr(self) -> pl.Expr | None:
        """Return ``unscored`` as a String expression; None if every row can be scored."""
        return None

    def extra_expr(self) -> pl.Expr:
        """Return the value of the column ``extra`` as an expression."""
        lane = self.answer_lane()
        assert lane is not None  # noqa: S101  (as in ``expr``)
        return lane.col.struct.field("extra")

    def skipped_expr(self) -> pl.Expr | None:
        """Return whether the check does not apply to a row, as a Boolean expression; None if it applies to all of them."""
        return None

    def refused_expr(self) -> pl.Expr | None:
        """Return why the run must not start because of a row, as a String expression; None if no row prevents it."""
        return None

    def doubt_expr(self) -> pl.Expr | None:
        """Return a likely mistake in a row, reported before the run, as a String expression; None if there is none to find."""
        return None

    def refusal_lanes(self) -> tuple[Lane, ...]:
        """Return the lanes that ``refused_expr`` and ``doubt_expr`` read."""
        return ()

    def together(self, rows: Sequence[Row]) -> None:
        """Take all rows of a run before the first ``outcome``; for checks that share work between rows."""

    def close(self) -> None:
        """End helper processes; called at the end of a run."""


def is_ours(check: type[Check]) -> bool:
    """Return whether a class is one of Assay's check types."""
    return check.__module__.startswith(f"{__package__}.")


def _each(limits: Limits | None, function: Callable[[Any], Any], values: list[Any]) -> list[Any]:
    return each(function, values, limits, lambda error: Outcome(0.0, error, error).fields)
