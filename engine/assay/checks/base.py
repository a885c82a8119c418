"""A check: a function from a frame of rollouts to a column of scores, written in Python and as an expression."""

import builtins
import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import polars as pl

from assay.calls.in_thread import each
from assay.calls.limits import NO_REWARD, Limits, is_score, is_user_error, to_reward
from assay.calls.places import failure
from assay.errors import encodable, quoted
from assay.expressions.mixed import untyped
from assay.expressions.pairs import quoted_expr
from assay.expressions.shared_columns import SharedColumn, columns_read, exactly, row_of, rowwise, text
from assay.frozen import frozen
from assay.kernel.facts import Fact
from assay.steps.base import Step
from assay.steps.sources import Source
from assay.values.params import Params
from assay.values.references import Reference

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

_ANSWER = pl.Struct({"score": pl.Float64, "reason": pl.String, "error": pl.String, "extra": pl.String})


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


@frozen
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


@frozen
class Columns:
    """The outcomes of a check as elementwise expressions over ``text()`` and lanes; None for what no row ever has.

    Attributes:
        score: Boolean, or Float64 if ``graded``.
        reason: Why rows score below 1: one text for all of them, or String.
        error: What went wrong on a row.
        extra: The value of the column ``Traits.extra``.
        remark: A remark that does not affect the score; the summary counts it, and shows it as "12 of 99 rows: …".
        missing: Why a row has no gold that the check can use.
        unscored: Why a row with a completion cannot be scored at all.
        skipped: Whether the check does not apply to a row: Boolean.
        short: Returns whether a row gets a reason, given its score and its error.
        is_outcome: Whether they are the fields of ``Check.outcome``, of which an invalid score is an error already.
    """

    score: pl.Expr
    reason: pl.Expr | str
    error: pl.Expr | None = None
    extra: pl.Expr | None = None
    remark: pl.Expr | None = None
    missing: pl.Expr | None = None
    unscored: pl.Expr | None = None
    skipped: pl.Expr | None = None
    short: Callable[[pl.Expr, pl.Expr], pl.Expr] = lambda score, _: score < 1.0
    is_outcome: bool = False

    @classmethod
    def of(cls, answers: pl.Expr, *, graded: bool = True, **others: Any) -> "Columns":
        """Return the fields ``score``, ``reason`` and ``error`` of a column of structs, and others."""
        score = answers.struct.field("score")
        reason, error = answers.struct.field("reason"), answers.struct.field("error")
        return cls(score if graded else score == 1.0, reason, error, **others)

    @property
    def reasons(self) -> pl.Expr:
        """The reasons as a String expression."""
        return pl.lit(encodable(self.reason)) if isinstance(self.reason, str) else self.reason


@frozen
class GoldKind:
    """How a type takes its golds.

    Attributes:
        param: The param that the text is compared with; ``""`` if there is none. Specs may take it from a column, and give several:
            the best score counts.
        whole: Whether a list is one gold, not several.
        is_json: Whether a gold is a JSON value: ``Params`` takes it as it stands in a spec, and as JSON text; rows' lists and
            objects come as text.
        worst: Whether the worst of several golds counts, not the best.
        measured: Whether a gold is a length, and a list stands for the number of its items.
        lazy: Whether ``compare`` may be null, where Python scores the row or finds that its gold cannot be used; then golds are
            not looked at before.
        same_params: Params that say what the check reads, by field: they are the same on every row.
        beside: A param of which rows may bring texts, too, to a type with lazy golds: ``compare`` then gets them as structs of
            ``gold`` and ``beside``.
        of_lists: Whether the check scores a list of texts: ``completion`` is a list, and ``lane.text()`` a List(String) column.
        is_joined: Whether, with some params, a text is compared with all golds of a row together. Then ``Params`` takes a list of
            texts, too, and ``compare`` golds as List(String), of at least one text.
        counting: With some params, a function that returns those of a row's golds that count, as text; None if all do.
        steps: With some params, the steps that may read a gold from a text that the type cannot use as it stands, the likeliest
            first.
        from_rows: With some params, by field, those that rows bring where a spec does not give them, each with its column.
    """

    param: str = ""
    whole: bool = False
    is_json: bool = False
    worst: bool = False
    measured: bool = False
    lazy: bool = False
    same_params: tuple[str, ...] = ()
    beside: str = ""
    of_lists: bool = False
    is_joined: Callable[[Any], bool] = lambda _: False
    counting: Callable[[Any], Callable[[list[str]], list[str]] | None] = lambda _: None
    steps: Callable[[Any], tuple[Any, ...]] = lambda _: ()
    from_rows: Callable[[Mapping[str, Any]], Mapping[str, str]] = lambda _: {}


def _nothing_to_require() -> None: ...


@frozen
class Traits:
    """What few checks say of themselves.

    Attributes:
        aliases: Other names that specs may use.
        bounded: Whether scores lie in [0, 1]; if False, any finite number is a score.
        reads: Columns that the check reads in addition to ``completion``.
        may_read: Columns that it reads if the rollouts have them.
        passed_through: Columns that it reads and that are in the output nevertheless.
        ignored_if: Columns of ``may_read`` that it does not read beside others: their names, and those others.
        references: The values that rows bring for its params, in order, each with the param's name in specs.
        separator: Separator of a row's reasons for a check with several; ``""`` for a check with one.
        in_files: Params whose value may be the name of a ``.json`` file beside the spec.
        libraries: The distributions whose versions decide verdicts, each with the versions that have been tested; none if any will do.
        require: Raises ModuleNotFoundError, which tells how to install it, if a package is missing that the type needs.
        code: The class or function that decides the verdicts; None for the check's own class.
        stands_in: Whether it stands for any check, also of a user's.
        reads_all: Whether it reads every column of the rollouts.
        sees_all: Whether the check must see all rows of a run together; such a run has one part.
        extra: Output column (String) that the check adds beside its scores; ``{verifier}`` and ``{check}`` stand for ids. Of several
            checks with the same column, the first that has a value counts.
        nullable: Whether the score may be null: the check does not apply to the row, and contributes nothing to its score.
    """

    aliases: tuple[str, ...] = ()
    bounded: bool = True
    reads: tuple[str, ...] = ()
    may_read: tuple[str, ...] = ()
    passed_through: tuple[str, ...] = ()
    ignored_if: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    references: tuple[tuple[str, Reference], ...] = ()
    separator: str = ""
    in_files: tuple[str, ...] = ()
    libraries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    require: Callable[[], None] = _nothing_to_require  # no lambda: checks are pickled
    code: Any = None
    stands_in: bool = False
    sees_all: bool = False
    reads_all: bool = False
    extra: str = ""
    nullable: bool = False

    @property
    def invalid_score_message(self) -> str:
        """Error and reason of a row with an invalid score."""
        return NO_SCORE if self.bounded else NO_REWARD


_FORMER = {"gold": "param", "whole_gold": "whole", "json_gold": "is_json", "every_gold": "worst"}
_FORMER |= {"measured_gold": "measured", "lazy_golds": "lazy", "reading": "same_params", "takes_list": "of_lists"}
_FORMER |= {"joint": "separator", "stays": "passed_through"}
_FIELDS_OF = {field.name: kind for kind in (GoldKind, Traits) for field in fields(kind)}


class Check:
    """Base class of all checks, built-in and custom.

    A subclass defines ``type``, ``Params``, the methods ``row`` (Python) and ``expr`` (columns), and ``examples``; the rest has
    defaults. ``row`` and ``expr`` must give the same float, bit for bit, on every text; test it with
    ``assay.testing.assert_check_conforms``. A check without ``expr`` runs ``row`` on every row, which is correct but slow.

    A type whose reasons differ by row defines ``reason``, and ``reason_expr`` where columns write them faster; one with errors that
    ``row`` does not raise, ``error`` and ``error_expr``; one with remarks, ``remark_expr``: String expressions, null where there is
    none. A field of ``Traits`` or ``GoldKind`` may be set as an attribute of the class: ``reads = ("metadata",)``.

    Attributes:
        type: The check's name in specs.
        Params: The class of its params.
        params: This check's params.
        examples: Cases that document and test the check.
        graded: Whether scores between 0 and 1 occur; then ``expr`` is Float64, else Boolean.
        golds: How the type takes its golds, and what else it compares.
        traits: What few checks say of themselves.
        words: Templates of ``claim`` and ``complaint``; ``{value}`` is the gold in quotes, ``{check}`` the check. One that ends in
            ``{value}`` also gives the reasons for golds from columns.
        runs_as: Which engine runs the check, and why.
        limits: The run's limits for Python code; None for no limits.
    """

    type: ClassVar[str]
    Params: ClassVar[builtins.type[Params]] = Params
    examples: ClassVar[tuple[Example, ...]] = ()
    graded: ClassVar[bool] = False
    golds: ClassVar[GoldKind] = GoldKind()
    traits: ClassVar[Traits] = Traits()
    words: ClassVar[tuple[str, str]] = ("meets {check.type}", "fails {check.type}")
    runs_as: ClassVar[str] = ""
    limits: Limits | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for attribute, kind in (("golds", GoldKind), ("traits", Traits)):
            own = {_FORMER.get(name, name): value for name, value in vars(cls).items()}
            given = {name: value for name, value in own.items() if _FIELDS_OF.get(name) is kind}
            if given:
                setattr(cls, attribute, replace(getattr(cls, attribute), **given))

    def __init__(self, params: Any = None) -> None:
        self.params = self.Params() if params is None else params

    def within(self, limits: Limits) -> "Check":
        """Return a copy of this check with the limits of a run."""
        bounded = copy.copy(self)
        bounded.limits = limits
        return bounded

    def row(self, row: Row) -> float:
        """Return the score of one row, in [0, 1]. An exception, here or in ``reason``, scores 0.0 and fills ``error``."""
        del row
        raise TypeError(f"{type(self).__name__} has no row(): every check needs its row-wise definition")

    def expr(self) -> pl.Expr:
        """Return ``row`` as an elementwise expression over ``text()`` and columns."""
        return self.columns().score

    def reason(self, row: Row) -> str:
        """Return why one row scored below 1."""
        del row
        return self.complaint()

    def outcome(self, row: Row) -> Outcome:
        """Return score, reason and error of one row, by ``row`` and the rules for exceptions and invalid scores."""
        row = {name: untyped(value) for name, value in row.items()}
        try:
            score, problem = to_reward(self.row(row))
            if problem is not None or (self.traits.bounded and not is_score(score)):
                message = self.traits.invalid_score_message
                return Outcome(0.0, message, message)
            error = self.error(row) if hasattr(self, "error") else None
            return Outcome(score, encodable(self.reason(row)) if score < 1 else "", error and encodable(error))
        except BaseException as exception:  # a broken check never ends a run
            if not is_user_error(exception):
                raise
            message = failure(exception, self, self.type)
            return Outcome(0.0, message, message)

    def columns(self) -> Columns:
        """Return ``outcome`` as expressions; by default from ``expr``, or by Python row by row."""
        if not has_expr(self):
            return Columns.of(outcomes_lane(self).col)
        with columns_read() as lanes:
            score = self.expr()
        faces = (name for name in ("reason", "error", "remark") if hasattr(self, f"{name}_expr"))
        own = {name: getattr(self, f"{name}_expr")() for name in faces}
        if "reason" not in own and type(self).reason is Check.reason:
            own["reason"] = self.complaint()
        elif "reason" not in own:
            own["reason"] = outcomes_lane(self, score.cast(pl.Float64) < 1.0, lanes).col.struct.field("reason")
        return Columns(score, **own)

    def missing(self, row: Row) -> str | None:
        """Return why a row has no gold that the check can use; None if it has one."""
        del row
        return None

    def subject(self) -> tuple[Source | None, tuple[Step, ...]]:
        """Return what the check reads without ``on:``, None for the completion's text, and the steps that it takes after those of ``on:``.

        Where a step finds nothing, the row scores 0.0.
        """
        return None, ()

    def claim(self) -> str:
        """Return what holds when the check passes, as a clause without a subject: ``contains "refund"``."""
        return self.words[0].format(check=self, value=_Shown(self))

    def complaint(self) -> str:
        """Return the reason of a failing row, if it is the same for every row."""
        return self.words[1].format(check=self, value=_Shown(self))

    def explain(self) -> str:
        """Return which engine runs the check, and why."""
        default = "columns" if has_expr(self) else "Python, row by row: the check has no expr()"
        return self.runs_as or default


class _Shown:
    """The gold of a check, in quotes: it is read only where a template asks for it."""

    def __init__(self, check: Check) -> None:
        self._check = check

    def __format__(self, _: str) -> str:
        return quoted(getattr(self._check.params, self._check.golds.param))


class RowAwareCheck(Check):
    """Base class of checks that ask what rows bring, verifier classes or rubrics: they may refuse rows, or look at several."""

    def column_problems(self, schema: pl.Schema) -> list[tuple[str, str]]:
        """Return problems of the rollouts' columns, except missing ones of ``reads``: facts, each with a hint."""
        del schema
        return []

    def column_notes(self, schema: pl.Schema) -> list[str]:
        """Return notes for the user on the columns that the check reads."""
        del schema
        return []

    def unscored(self, row: Row) -> str | None:
        """Return why a row with a completion cannot be scored at all; None if it can."""
        del row
        return None

    def refusals(self) -> tuple[pl.Expr, pl.Expr] | None:
        """Return why the run must not start because of a row, and a likely mistake in it, as String; None if there is neither."""
        return None

    def prefetch(self, rows: Sequence[Row]) -> None:
        """Take all rows of a run before the first ``outcome``; for checks that share work between rows."""

    def close(self) -> None:
        """End helper processes; called at the end of a run."""


class FactCheck(Check, ABC):
    """Base class of our checks whose score and reason follow from yes/no questions about the text: the kernel answers them."""

    @abstractmethod
    def facts(self) -> tuple[Fact, ...]:
        """Return the questions; none if there are no such questions with these params."""

    def from_facts(self, bits: Sequence[pl.Expr]) -> Columns:
        """Return ``outcome`` as expressions, given the answers to ``facts`` as Booleans; by default, the first is the score."""
        return Columns(bits[0], self.complaint())


class GoldCompared(Check, ABC):
    """Base class of our checks that compare a text with a gold: one of the spec's, or each row's own from a column."""

    @property
    def own_gold(self) -> Any:
        """The gold of the spec."""
        return getattr(self.params, self.golds.param)

    @abstractmethod
    def score(self, value: str, gold: Any) -> float:
        """Return the score of a text, given a gold: the definition."""

    @abstractmethod
    def score_expr(self, gold: Any) -> pl.Expr | None:
        """Return ``score`` as an expression.

        Args:
            gold: The gold of the spec. Or an expression, with the gold of each row as text: String, null where there is none; each is
                one that ``Params`` accepts. If golds are whole, List(String), of at least one text.

        Returns:
            The expression; None if there is none: Python then scores each row, which ``runs_as`` should say.
        """

    def compare(self, gold: Any) -> Columns | None:
        """Return the outcomes, given a gold as ``score_expr`` takes it.

        With golds from a column, which may be null where no reason is needed, the reason is ``""`` if Python has to write it.
        """
        score = self.score_expr(gold)
        if score is None or not isinstance(gold, pl.Expr):
            return None if score is None else Columns(score, self.complaint())
        before, value, rest = self.words[1].partition("{value}")
        return Columns(score, quoted_expr(gold, before.format(check=self)) if value and not rest else "")

    def usable(self, golds: pl.Expr) -> pl.Expr | None:
        """Return the golds (String) that ``Params`` accepts, null for the others; None to ask ``Params`` about each of them."""
        del golds
        return None

    def explain_golds(self) -> str:
        """Return which engine compares with golds from columns."""
        return "columns: column to column"

    def row(self, row: Row) -> float:
        return self.score(row["completion"], self.own_gold)

    def columns(self) -> Columns:
        return self.compare(self.own_gold) or Columns.of(outcomes_lane(self).col, graded=self.graded)


def identity(check: Check) -> str:
    """Return a key that is unique per check; classes made by a factory share a name, but not their verdicts."""
    return f"{type(check).__qualname__}:{id(type(check))}:{check.params.model_dump()!r}"


def outcomes_lane(
    check: Check, where: pl.Expr | None = None, after: Sequence[SharedColumn] = (), key: str = ""
) -> SharedColumn:
    """Return the shared column with the ``outcome`` of each row, by Python.

    Args:
        check: The check.
        where: Rows that need it; None for all.
        after: The lanes that ``where`` reads.
        key: What tells the check from others; by default its ``identity``.
    """
    traits, limits = check.traits, check.limits

    def outcome(row: dict[str, Any]) -> dict[str, Any] | None:
        return None if row["completion"] is None else check.outcome(row).fields

    def each_row(function: Callable[[Any], Any], rows: list[Any]) -> list[Any]:
        return each(function, rows, limits, lambda error: Outcome(0.0, error, error).fields)

    def build(schema: pl.Schema) -> pl.Expr:
        columns = [exactly(name) if name in schema else pl.lit(None).alias(name) for name in traits.reads]
        columns += [exactly(name) for name in traits.may_read if name in schema]
        rows = row_of([text().alias("completion"), *columns])
        return rowwise(rows if where is None else pl.when(where).then(rows), outcome, _ANSWER, each=each_row)

    return SharedColumn(f"{'rows' if where is None else 'reasons'}:{key or identity(check)}", build, after=tuple(after))


def has_expr(check: Check) -> bool:
    """Return whether a check has columns: its own ``expr``, or ``columns``."""
    cls = type(check)
    return cls.expr is not Check.expr or cls.columns is not Check.columns


def is_ours(check: Any) -> bool:
    """Return whether a class is one of Assay's check types."""
    return str(getattr(check, "__module__", "")).startswith(f"{__package__}.")


def deciding_code(check: Check) -> Any:
    """Return the class or function that decides the verdicts of a check."""
    return check.traits.code or getattr(check, "registered_code", None) or type(check)


def facts_of(check: Check) -> tuple[Fact, ...]:
    """Return the questions about the text that decide a check; none if it is not one of Assay's, or decided by more."""
    return check.facts() if isinstance(check, FactCheck) and is_builtin(check) else ()


def is_builtin(check: Check) -> bool:
    """Return whether a check is of one of Assay's types: the conformance tests hold its two faces equal."""
    return is_ours(deciding_code(check)) and not check.traits.stands_in
