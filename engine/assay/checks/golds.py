"""A check with params that rows bring, or with several golds: the score of its best gold.

A gold that the check cannot use is dropped; a row without any other has none.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial, reduce
from typing import Any

import polars as pl

from assay.calls.in_thread import each
from assay.calls.limits import Limits, is_user_error
from assay.checks.base import Check, Columns, GoldCompared, GoldKind, Outcome, Row, Traits, has_expr, is_ours
from assay.checks.bounds import Bound, BoundedCheck
from assay.checks.gold_faults import fault_of, field_at_fault, is_solution, missing, name_of, reading_steps, unusable
from assay.checks.pairs import PairCheck, in_columns
from assay.errors import describe_error, encodable
from assay.expressions.shared_columns import (
    SharedColumn,
    columns_read,
    distinct_rows,
    exactly,
    first_of_each,
    in_lists,
    in_place,
    in_rows_of,
    layers,
    nulls,
    once,
    reading_column,
    row_of,
    rowwise,
    text,
)
from assay.frozen import frozen
from assay.names import TEXT
from assay.steps.base import Step
from assay.steps.chain import Chain
from assay.steps.sources import Source
from assay.values.references import OF_ROW, Reference, as_list, columns_of, gold_text, json_text, resolved

_ANSWER = pl.Struct({"score": pl.Float64, "reason": pl.String, "error": pl.String, "missing": pl.Boolean})

_EXACT = 2**53
"""Whole numbers below it are exact as floats."""

_Answer = tuple[float, str | None, str | None, bool]
"""The values of such a struct."""


@frozen(eq=False)
class RowGolds:
    """The golds of rows, with the other params that they bring: the definition.

    Attributes:
        check: The type of the check.
        given: Its params by field; each a literal or a ``Reference``, the gold a list of them.
        chain: Steps that each gold takes; where they find nothing, there is no gold.
        limits: The run's limits.
    """

    check: type[Check]
    given: Mapping[str, Any]
    chain: Chain
    limits: Limits | None = None

    @property
    def kind(self) -> GoldKind:
        return self.check.golds

    @property
    def param(self) -> str:
        return self.kind.param

    @property
    def named_references(self) -> list[tuple[str, Reference]]:
        """The references in the params, in order, each with the param's name in specs."""
        named = ((self._in_specs(field), as_list(value)) for field, value in self.given.items())
        return [(name, item) for name, items in named for item in items if isinstance(item, Reference)]

    @property
    def references(self) -> list[Reference]:
        return [reference for _, reference in self.named_references]

    @property
    def compares(self) -> bool:
        """Whether the output is compared with a gold, not measured by it."""
        return bool(self.param) and not self.kind.measured

    @property
    def beside(self) -> Reference | None:
        """The reference of ``kind.beside``."""
        other = self.given.get(self.kind.beside)
        return other if isinstance(other, Reference) else None

    def _in_specs(self, field: str) -> str:
        """Return the name of a param in specs; ``""`` for that of a gold where the type has none."""
        return (self.check.Params.model_fields[field].alias or field) if field else ""

    @cached_property
    def bare(self) -> Check:
        """The check without what rows bring."""
        params = {name: value for name, value in self.given.items() if not isinstance(value, Reference)}
        gold: Any = [""] if self.kind.whole else ""
        return self._limited(self.check(self.check.Params.model_construct(**{**params, self.param: gold})))

    def _limited(self, check: Check) -> Check:
        check.limits = self.limits
        return check

    @cached_property
    def is_joined(self) -> bool:
        return self.kind.is_joined(self.bare.params)

    @cached_property
    def counting(self) -> Callable[[list[str]], list[str]] | None:
        """What returns those golds of a row that count; None if all do."""
        return self.kind.counting(self.bare.params)

    @cached_property
    def literals(self) -> list[Check] | None:
        """The check of each gold, if no row brings any."""
        if self.references or self.param not in self.given:
            return None
        golds = self._of_row({})
        if not golds:
            raise ValueError(f"params.{self._in_specs(self.param)} has no gold")
        return [self.check_of(self.with_gold(value)) for value in golds]

    def candidates(self, row: Row) -> list[Check]:
        """Return the check of each gold that a row brings, without those that cannot be used."""
        params: dict[str, Any] = {}
        for name, value in self.given.items():
            params[name] = value.row(row) if name != self.param and isinstance(value, Reference) else value
            if params[name] is None and isinstance(value, Reference):
                return []
        if self.param not in params:
            return self.usable([params])
        return self.usable(params | {self.param: gold} for gold in self._of_row(row))

    def solution(self, row: Row) -> str | None:
        """Return a gold of a row that is a whole solution with its answer behind ``####``, though no step reads that; None if none is."""
        golds = () if self.chain.steps or self.param not in self.given else self._present(row)
        texts = (value for given, value in golds if isinstance(given, Reference) and isinstance(value, str))
        return next((text for text in texts if is_solution(text)), None)

    def _of_row(self, row: Row) -> list[Any]:
        """Return the golds of a row as the type takes them: texts, or lists of texts."""
        golds = self.stepped(row)
        return [golds] if golds and self.is_joined else golds

    def stepped(self, row: Row) -> list[Any]:
        """Return the golds of a row after their steps, without those where they find nothing, or fail."""
        golds = []
        for _, value in self._present(row):
            try:
                gold = self._step(value)
            except BaseException as exception:  # a pattern's limit
                if not is_user_error(exception):
                    raise
                continue
            golds += [] if gold is None else [gold]
        return golds if self.kind.whole or self.kind.is_json or self.counting is None else self.counting(golds)

    def _present(self, row: Row) -> list[tuple[Any, Any]]:
        """Return the golds of a row before their steps, without nulls, each with the literal or the reference it comes from."""
        given = self.given[self.param]
        if self.kind.whole or self.kind.is_json:
            value = [resolved(item, row) for item in given] if isinstance(given, list) else resolved(given, row)
            if self.kind.is_json:
                return [] if value is None else [(given, value)]
            several = isinstance(value, list) and bool(value) and all(isinstance(item, list) for item in value)
            wholes = value if several else [value]
            return [(given, whole) for whole in wholes if any(item is not None for item in as_list(whole))]
        values = ((item, resolved(item, row)) for item in as_list(given))
        if self.kind.measured:
            values = ((item, len(value) if isinstance(value, list) else value) for item, value in values)
        return [(item, value) for item, among in values for value in as_list(among) if value is not None]

    def _step(self, value: Any) -> Any:
        """Return a gold after its steps, as the type takes it; None if they find nothing."""
        if self.kind.whole and isinstance(value, list):
            items = [self.chain.row(gold_text(item)) for item in value if item is not None]
            return [gold_text(item) for item in items if item is not None] or None
        written = json_text if self.kind.is_json else gold_text
        result = self.chain.row(written(value))
        return result if result is None or (self.kind.whole and isinstance(result, list)) else written(result)

    def usable(self, variants: Iterable[Mapping[str, Any]]) -> list[Check]:
        """Return the checks of those params that the type takes."""
        checks = []
        for params in variants:
            try:
                checks.append(self.check_of(params))
            except Exception:  # noqa: BLE001, S112  (a pattern raises what re raises; a user's Params may raise anything)
                continue
        return checks

    def check_of(self, params: Mapping[str, Any]) -> Check:
        return self._limited(self.check(self.check.Params.model_validate(params, context=OF_ROW)))

    def with_gold(self, gold: Any) -> dict[str, Any]:
        if self.beside is not None and isinstance(gold, dict):
            return {**self.given, self.param: gold["gold"], self.kind.beside: gold["beside"]}
        return {**self.given, self.param: gold}

    # why a row has none

    def why_none(self, row: Row) -> str:
        """Return why a row has no gold that the type can use: there is none, or what is wrong with the first."""
        golds = self._present(row) if self.param in self.given else []
        absent = {
            value
            for name, given in self.given.items()
            for value in as_list(given)
            if isinstance(value, Reference) and (not golds if name == self.param else value.row(row) is None)
        }
        if absent or (self.param in self.given and not golds):
            references = [reference for reference in self.references if reference in absent]
            return encodable(missing(references, self._in_specs(self.param)))
        params = {name: resolved(value, row) for name, value in self.given.items() if name != self.param}
        return encodable(self._fault(params, *golds[0]) if golds else self._refusal(params))

    def _fault(self, params: Mapping[str, Any], given: Any, value: Any) -> str:
        """Return why the type cannot use a gold."""
        shown, name = _text(value), name_of(given, self._in_specs(self.param))

        def reads(gold: Any) -> bool:
            return bool(self.usable([{**params, self.param: gold}]))

        try:
            gold = self._step(value)
        except BaseException as exception:  # a pattern's limit
            if not is_user_error(exception):
                raise
            return unusable(name, shown, f": {describe_error(exception)}")
        hint = reading_steps(shown, self.kind.steps(self.bare.params), reads)
        if gold is not None:
            return self._refusal({**params, self.param: gold}, given, hint)
        hint = hint or "it can be used without goldOn" * reads(shown)
        return unusable(name, shown, ", in which goldOn finds nothing", hint)

    def _refusal(self, params: Mapping[str, Any], given: Any = None, hint: str = "") -> str:
        """Return why the type does not take params."""
        try:
            self.check_of(params)
        except Exception as error:  # noqa: BLE001  (as for ``usable``)
            fields, refused, fault = self.check.Params.model_fields, field_at_fault(error), fault_of(error)
            field = next((name for name in params if refused in (name, fields[name].alias)), self.param)
            if field in params and field == self.param:
                return unusable(name_of(given, self._in_specs(field)), _text(params[field]), fault, hint)
            if not isinstance(self.given.get(field), Reference):  # a literal beside a value of the row, or all params
                fault = f": {refused}{fault}" if refused else fault
                field = next(name for name, value in self.given.items() if isinstance(value, Reference))
            return unusable(name_of(self.given[field], self._in_specs(field)), _text(params[field]), fault)
        return "gold cannot be used"  # a type of the user's that has taken it now


class GoldCheck(Check):
    """A check of some type whose params may be references, and whose gold may be a list; see ``RowGolds``."""

    graded = True

    def __init__(self, check: type[Check], params: Mapping[str, Any], gold_chain: Chain | None = None) -> None:
        super().__init__()
        self.brought = RowGolds(check, dict(params), gold_chain or Chain())
        self.type = check.type  # type: ignore[misc]
        traits, references = check.traits, tuple(self.brought.named_references)
        columns = columns_of(reference for _, reference in references)
        passed_through = tuple(name for name in columns if name not in traits.reads)
        self.traits = Traits(  # type: ignore[misc]
            bounded=traits.bounded,
            separator=traits.separator,
            libraries={**self.brought.bare.traits.libraries, **self.brought.chain.libraries},
            reads=traits.reads,
            may_read=(*traits.may_read, *passed_through),
            passed_through=passed_through,
            references=references,
            code=check,
        )
        _ = self.brought.literals  # it raises for golds that cannot be used

    @property
    def golds(self) -> GoldKind:  # type: ignore[override]
        return self.brought.kind

    def within(self, limits: Limits) -> "GoldCheck":
        bounded = super().within(limits)
        assert isinstance(bounded, GoldCheck)  # noqa: S101  (it is a copy)
        bounded.brought = replace(self.brought, limits=limits)
        return bounded

    def missing(self, row: Row) -> str | None:
        return None if self.brought.candidates(row) else self.brought.why_none(row)

    def outcome(self, row: Row) -> Outcome:
        outcomes = [check.outcome(row) for check in self.brought.candidates(row)]
        return _best(outcomes, self.golds) if outcomes else Outcome(0.0, self.brought.why_none(row))

    def columns(self) -> Columns:
        return _GoldColumns(self.brought).columns()

    def subject(self) -> tuple[Source | None, tuple[Step, ...]]:
        return self.brought.bare.subject()

    def claim(self) -> str:
        if self.brought.literals is None:
            return f"meets {self.type} of {', '.join(map(str, self.brought.references))}"
        return " or ".join(check.claim() for check in self.brought.literals)

    def explain(self) -> str:
        return _GoldColumns(self.brought).explain()


def _best(outcomes: Sequence[Outcome], kind: GoldKind) -> Outcome:
    """Return the outcome of the best gold, the first of equals; one that raises counts only if all do."""
    choose = min if kind.worst else max
    best = choose(
        [outcome for outcome in outcomes if outcome.error is None] or outcomes[:1], key=lambda outcome: outcome.score
    )
    return best if best.error is None or best.score == 1 else Outcome(0.0, best.error, best.error)


class _GoldColumns:
    """``GoldCheck.outcome`` as columns: for golds that are the same on every row, for golds of rows, or by Python."""

    def __init__(self, brought: RowGolds) -> None:
        self.brought, self.kind, self.chain, self.limits = brought, brought.kind, brought.chain, brought.limits
        self.key = (
            f"{brought.check.__qualname__}:{id(brought.check)}:{sorted(brought.given.items())!r}:{self.chain.key}"
        )
        in_columns = is_ours(brought.check) and has_expr(brought.bare)
        self.literals = brought.literals if in_columns else None
        by_columns = (brought.param, self.kind.beside)
        others = (value for name, value in brought.given.items() if name not in by_columns)
        if not in_columns or self.chain.gives_list or any(isinstance(value, Reference) for value in others):
            in_columns = False
        template = brought.bare if in_columns and brought.literals is None else None
        gold = pl.lit([""] if self.kind.whole else "")
        compares = isinstance(template, GoldCompared) and template.compare(gold) is not None
        self.template = template if isinstance(template, GoldCompared) and compares else None
        """The check that compares texts with golds, if only the gold is a matter of the row; None if rows take Python."""

    def columns(self) -> Columns:
        if (bounded := self._bounded()) is not None:
            return bounded
        with columns_read() as needs:
            literal = None if self.literals is None else self._of_literals(self.literals)
            golds = (
                None
                if literal is not None or self.template is None
                else SharedColumn(f"gold:{self.key}", self._golds).col
            )

        def build(schema: pl.Schema) -> pl.Expr:
            if literal is not None or golds is None or not self._in_columns(schema):
                return self._by_python(schema) if literal is None else literal
            return pl.map_batches([text(), golds], self._answers, return_dtype=_ANSWER, is_elementwise=True)

        few = None if literal is not None else self._by_python
        lane = SharedColumn(f"golds:{self.key}", build, after=tuple(needs), build_few=few)
        missing = self._why(lane).col if self.brought.references else None
        return Columns.of(lane.col, missing=missing, is_outcome=True)

    # bounds

    def _bounded(self) -> Columns | None:
        """Return the outcomes of a check of a number whose bounds rows bring; None of another."""
        given, check = self.brought.given, self.brought.check
        if not (is_ours(check) and issubclass(check, BoundedCheck) and self.brought.references):
            return None
        own = {name: given[name] for name in check.asks if given.get(name) is not None}
        brought = {name: bound for name, bound in own.items() if isinstance(bound, Reference)}
        literals = {name: bound for name, bound in own.items() if name not in brought}
        sample = next(iter(literals.values()), 0)
        usable = self.brought.usable([{**given, **dict.fromkeys(brought, sample)}])
        if (
            len(brought) < len(self.brought.references)
            or not usable
            or any(abs(n) >= _EXACT for n in literals.values())
        ):
            return None
        (template,) = usable
        assert isinstance(template, BoundedCheck)  # noqa: S101  (it is of that class)
        values = SharedColumn(f"bounds:{self.key}", partial(_bounds, brought))
        with columns_read() as needs:
            bounds = {
                name: Bound(values.col.struct.field(name), pl.lit(""))
                if name in brought
                else Bound(pl.lit(float(bound)), pl.lit(str(bound)))
                for name, bound in own.items()
            }
            columns = template.compare_bounds(bounds)
        if columns is None:
            return None
        fits = pl.all_horizontal(
            *((bounds[name].value.abs() < _EXACT) & bounds[name].value.is_not_nan() for name in brought),
            template.takes(bounds),
            text().is_not_null(),
        ).fill_null(value=False)
        scores = SharedColumn(f"bounded:{self.key}", lambda _: columns.score.cast(pl.Float64), after=tuple(needs))
        score, nothing = scores.col, pl.lit(None, dtype=pl.String)

        def build(schema: pl.Schema) -> pl.Expr:
            if any(bound.number_expr(schema) is None for bound in brought.values()):
                return self._by_python(schema)
            shown = dict(bounds)
            for name, bound in brought.items():  # words for the rows that fail only
                words = bound.number_text_expr(schema, template.written, score < 1.0)
                shown[name] = bounds[name]._replace(text=words)
            of_failing = template.compare_bounds(shown)
            assert of_failing is not None  # noqa: S101  (as before)
            reason = of_failing.reasons
            answers = pl.struct(score=score, reason=reason, error=nothing, missing=pl.lit(value=False))
            parts = [fits, answers, *self._for_python(schema)]
            return pl.map_batches(parts, self._bounded_or_by_python, return_dtype=_ANSWER, is_elementwise=True)

        lane = SharedColumn(f"golds:{self.key}", build, after=(scores, *needs), build_few=self._by_python)
        return Columns.of(lane.col, missing=self._why(lane).col, is_outcome=True)

    def _bounded_or_by_python(self, columns: Sequence[pl.Series]) -> pl.Series:
        fits, answers, rows, brought = columns
        if fits.all():
            return answers.cast(_ANSWER)
        at = (~fits).arg_true()
        others = self._answers_by_python([rows.gather(at), brought.gather(at)]).struct.unnest()
        fields = answers.cast(_ANSWER).struct.unnest()
        return pl.DataFrame([fields[name].scatter(at, others[name]) for name in fields.columns]).to_struct(answers.name)

    def explain(self) -> str:
        if self._bounded() is not None:
            return "columns: column to column"
        if self.literals is not None:
            return f"columns: the best of {len(self.literals)} golds"
        if self.template is not None:
            return f"{self.template.explain_golds()}; of several golds, the best"
        return "Python, row by row: each row brings its params"

    def _of_literals(self, checks: Sequence[Check]) -> pl.Expr:
        """Return the answers for golds that are the same on every row: the best of several checks."""
        choose = pl.min_horizontal if self.kind.worst else pl.max_horizontal
        each = [check.columns() for check in checks]
        scores = [
            score if columns.error is None else pl.when(columns.error.is_null()).then(score)
            for columns in each
            for score in (columns.score.cast(pl.Float64),)
        ]
        best = choose(scores)
        errors = [columns.error for columns in each if columns.error is not None]
        error = pl.when(best.is_null()).then(pl.coalesce(errors)) if errors else pl.lit(None, dtype=pl.String)
        pairs = [(score == best, columns.reasons) for score, columns in zip(scores, each, strict=True)]
        reason = reduce(
            lambda rest, pair: pl.when(pair[0]).then(pair[1]).otherwise(rest), pairs[::-1], pl.lit(None, pl.String)
        )
        reason = pl.when(best == 1.0).then(pl.lit("")).otherwise(pl.coalesce(error, reason))
        score = pl.when(error.is_not_null()).then(0.0).otherwise(best)
        return pl.struct(score=score, reason=reason, error=error, missing=pl.lit(value=False)).cast(_ANSWER)

    # the golds of rows

    def _single(self, schema: pl.Schema) -> pl.Expr | None:
        """Return the gold of each row as text, before its steps; None if a row may have several, or it takes Python to find it."""
        gold = self.brought.given.get(self.brought.param)
        if not isinstance(gold, Reference) or (self.kind.is_json and not gold.is_text(schema)):
            return None
        lengths = gold.sizes_expr(schema) if self.kind.measured else None
        return gold.gold_expr(schema) if lengths is None else lengths.cast(pl.String)

    def _lists(self, schema: pl.Schema) -> pl.Expr | None:
        """Return the golds of each row as a list of texts, before their steps; None if it takes Python to find them."""
        gold = self.brought.given.get(self.brought.param)
        if not isinstance(gold, Reference) or self.kind.is_json or self.kind.measured:
            return None
        lists = gold.gold_lists_expr(schema)
        if lists is None and self.kind.whole and (single := gold.gold_expr(schema)) is not None:
            return pl.when(single.is_not_null()).then(pl.concat_list(single))
        return lists

    def _has_one(self, schema: pl.Schema) -> bool:
        """Whether columns have the gold of each row, if it has one; golds that are joined are one."""
        read, beside = self._lists if self.kind.whole else self._single, self.brought.beside
        if beside is not None and not beside.is_text(schema):
            return False
        return self.brought.is_joined or read(schema) is not None

    def _in_columns(self, schema: pl.Schema) -> bool:
        """Whether columns have the golds of each row, or find the best of several."""
        return self._has_one(schema) or not (self.kind.whole or self.kind.measured or self.kind.lazy)

    def _golds(self, schema: pl.Schema) -> pl.Expr:
        """Return the golds of each row that can be used: a text, or a list of texts; all null if rows take Python."""
        if not self._in_columns(schema):
            return pl.lit(None, dtype=pl.String)
        single, lists = self._single(schema), self._lists(schema)
        in_list = self.brought.is_joined or self.kind.whole
        if single is not None and (self.kind.of_lists or not in_list):
            golds = self._usable(self._stepped(single))
            beside = None if self.brought.beside is None else self.brought.beside.gold_expr(schema)
            if beside is None:
                return golds
            return pl.when(golds.is_not_null() & beside.is_not_null()).then(pl.struct(gold=golds, beside=beside))
        if single is not None and not self.kind.whole:
            lists = _without_nulls(pl.concat_list(self._stepped(single)))
        elif lists is None:
            lists = self._lists_by_python(schema)
        else:
            lists = _without_nulls(lists.list.eval(self._stepped(pl.element())))
            if self.brought.counting is not None and not in_list:
                lists = rowwise(lists, self.brought.counting, pl.List(pl.String))
        return lists if in_list else _without_nulls(lists.list.eval(self._usable(pl.element())))

    def _stepped(self, golds: pl.Expr) -> pl.Expr:
        return once(golds, lambda texts: self.chain.columns(texts)[0], pl.String) if self.chain.steps else golds

    def _usable(self, golds: pl.Expr) -> pl.Expr:
        """Return the golds that the type can use; null for the others."""
        if self.kind.lazy or self.template is None:
            return golds
        gold = pl.col("gold")
        usable = self.template.usable(gold)
        if usable is gold:
            return golds
        if usable is None:
            return once(golds, self._usable_golds, pl.String)

        def in_columns(golds: pl.Series) -> pl.Series:
            return golds.to_frame("gold").select_seq(usable).to_series().alias(golds.name)

        # as a column, because Polars runs Python anew wherever an expression has its result
        return golds.map_batches(in_columns, pl.String, is_elementwise=True)

    def _usable_golds(self, golds: pl.Series) -> pl.Series:
        usable = [bool(self.brought.usable([self.brought.with_gold(gold)])) for gold in golds.to_list()]
        return pl.DataFrame().select_seq(pl.when(pl.Series(usable, dtype=pl.Boolean)).then(golds)).to_series()

    def _lists_by_python(self, schema: pl.Schema) -> pl.Expr:
        """Return the golds of each row after their steps, found in Python; rows with the same values share the work."""

        def row_lists(values: list[Any]) -> pl.Series:
            lists = [self.brought.stepped(row or {}) for row in values]  # null for rows that do not need them
            golds = pl.Series([gold for texts in lists for gold in texts], dtype=pl.String)
            return in_lists(golds, pl.Series(map(len, lists), dtype=pl.Int64))

        rows = self._rows(schema)
        return _without_nulls(rows.map_batches(_of_distinct(row_lists), pl.List(pl.String), is_elementwise=True))

    def _rows(self, schema: pl.Schema) -> pl.Expr:
        """Return a struct of the columns that the references read."""
        names = [name for name in columns_of(self.brought.references) if name in schema]
        # without any, a column of as many rows
        return row_of(map(exactly, names) if names else [text().is_null().alias("")])

    def _why(self, answers: SharedColumn) -> SharedColumn:
        """Return the lane of why a row has no gold that can be used: String, null where it has one."""

        def build(schema: pl.Schema) -> pl.Expr:
            without = pl.when(answers.col.struct.field("missing")).then(self._rows(schema))
            return texts_of_rows(without, self.brought.why_none)

        return SharedColumn(f"no {answers.name}", build, after=(answers,))

    # the answers

    def _answers(self, columns: Sequence[pl.Series]) -> pl.Series:
        """Compare each text with its golds, column to column, and take the best of each row."""
        texts, golds = columns
        several = isinstance(golds.dtype, pl.List) and not (self.kind.whole or self.brought.is_joined)
        pairs = pl.DataFrame([texts.alias(TEXT), golds.alias("gold")])
        if not (several or texts.null_count() or golds.null_count()):
            return self._of_best(pairs, None).to_struct(texts.name).cast(_ANSWER)
        sizes = golds.list.len().fill_null(0) if several else golds.is_not_null().cast(pl.UInt32)
        both = (sizes > 0) & texts.is_not_null()
        pairs = pairs.filter(both).explode("gold") if several else pairs.filter(both)
        answers = self._of_best(pairs, sizes.filter(both) if several else None)
        answers = in_place(answers.with_columns_seq(both.arg_true().alias("at")), len(texts))
        without = sizes == 0
        unread = (texts.is_null() & (sizes > 0)).arg_true()
        if self.kind.lazy and len(unread):
            without = without.scatter(unread, self._usable_golds(golds.gather(unread)).is_null())
        return answers.with_columns_seq(pl.col("missing").fill_null(without)).to_struct(texts.name).cast(_ANSWER)

    def _of_best(self, pairs: pl.DataFrame, sizes: pl.Series | None) -> pl.DataFrame:
        """Return the answers of pairs of a text and its gold; with the numbers of golds of each text, those of its best."""
        assert self.template is not None  # noqa: S101  (else rows take Python)
        with reading_column(TEXT):
            if isinstance(self.template, PairCheck):
                return self._of_pairs(self.template, pairs, sizes)
            return self._compared(self.template, pairs, sizes)

    def _of_pairs(self, template: PairCheck, pairs: pl.DataFrame, sizes: pl.Series | None) -> pl.DataFrame:
        """Return the answers of a type that compares pairs in Python; one with an error counts only if all have one."""
        answers = pairs.select_seq(answer=template.pairs_expr(pl.col("gold"))).unnest("answer")
        answers = answers.with_columns_seq(pl.col("score").fill_null(0.0), missing=pl.col("score").is_null())
        if sizes is None:
            return answers
        last = pl.lit(math.inf if self.kind.worst else -math.inf)
        ranks = answers.select_seq(pl.when(pl.col("error").is_null()).then("score").otherwise(last)).to_series()
        return answers[first_of_each(ranks, sizes, lowest=self.kind.worst)]

    def _compared(self, template: GoldCompared, pairs: pl.DataFrame, sizes: pl.Series | None) -> pl.DataFrame:
        """Return the answers of a type in columns, which has no errors: reasons are written for the best of each row if it fails."""
        with columns_read() as lanes:
            columns = template.compare(pl.col("gold"))
        assert columns is not None  # noqa: S101  (else it is no template)
        for layer in layers(lanes, pairs.schema) if lanes else ():
            pairs = pairs.with_columns_seq(layer)
        pairs = pairs.with_columns_seq(score=columns.score.cast(pl.Float64))
        if sizes is not None:
            pairs = pairs[first_of_each(pairs["score"], sizes, lowest=self.kind.worst)]
        fails = pl.when(pl.col("score") < 1.0)
        of_failing = template.compare(fails.then("gold"))
        reason = None if of_failing is None or isinstance(of_failing.reason, str) else of_failing.reason
        if reason is None:
            both = pl.struct(pl.col(TEXT).alias("completion"), "gold")
            reason = rowwise(fails.then(both), lambda row: self._check(row["gold"]).reason(row), pl.String)
        no_text = pl.lit(None, dtype=pl.String)
        answers = pairs.select_seq("score", reason=reason, error=no_text, missing=pl.lit(value=False))
        if not (self.kind.lazy and pairs["score"].null_count()):
            return answers
        undecided = pairs["score"].is_null().arg_true()
        texts = pairs[undecided].select_seq(pl.col(TEXT).alias("completion"), "gold").to_dicts()
        by_python = in_columns(_each(self.limits, self._of_gold, texts), _ANSWER).struct.unnest()
        return pl.DataFrame([answers[name].scatter(undecided, by_python[name]) for name in _ANSWER.to_schema()])

    def _check(self, gold: Any) -> Check:
        return self.brought.check_of(self.brought.with_gold(gold))

    def _of_gold(self, row: Row) -> _Answer:
        return self._answered(self.brought.usable([self.brought.with_gold(row["gold"])]), row)

    # by Python

    def _by_python(self, schema: pl.Schema) -> pl.Expr:
        parts = self._for_python(schema)
        return pl.map_batches(parts, self._answers_by_python, return_dtype=_ANSWER, is_elementwise=True)

    def _for_python(self, schema: pl.Schema) -> list[pl.Expr]:
        """Return each row as the type reads it, and what it brings."""
        traits = self.brought.check.traits
        names = dict.fromkeys((*traits.reads, *traits.may_read))
        if not is_ours(self.brought.check):
            names |= dict.fromkeys(columns_of(self.brought.references))
        others = (exactly(name) for name in names if name in schema and name != "completion")
        return [row_of([text().alias("completion"), *others]), self._rows(schema)]

    def _answers_by_python(self, columns: Sequence[pl.Series]) -> pl.Series:
        """Return the answer of each row; rows that bring the same values share their checks, and with one text the answer."""
        rows, brought = columns
        distinct, which = distinct_rows(brought)
        values = distinct.to_list()
        checks_of = lru_cache(maxsize=None)(lambda number: self.brought.candidates(values[number]))

        def answer(pair: tuple[Row, int]) -> _Answer:
            return self._answered(checks_of(pair[1]), pair[0])

        check = self.brought.check
        if not is_ours(check) or self.kind.of_lists or check.traits.reads or check.traits.may_read:
            answers = _each(self.limits, answer, [*zip(rows.to_list(), which.to_list(), strict=True)])
            return in_columns(answers, _ANSWER).alias(rows.name)
        places: dict[tuple[str | None, int], int] = {}
        pairs = zip(rows.struct.field("completion").to_list(), which.to_list(), strict=True)
        numbers = [places.setdefault(pair, len(places)) for pair in pairs]
        # such a type compares what it has read, and brings limits of its own where it needs them
        limits = None if issubclass(check, PairCheck) else self.limits
        answers = _each(limits, answer, [({"completion": text}, number) for text, number in places])
        return in_columns(answers, _ANSWER).alias(rows.name).gather(pl.Series(numbers, dtype=pl.UInt32))

    def _answered(self, candidates: Sequence[Check], row: Row) -> _Answer:
        if not candidates or row["completion"] is None:
            return 0.0, None, None, not candidates
        best = _best([check.outcome(row) for check in candidates], self.kind)
        return best.score, best.reason, best.error, False


def _bounds(brought: Mapping[str, Reference], schema: pl.Schema) -> pl.Expr:
    """Return the bounds of each row; all null if Python has to read them."""
    numbers = ((name, bound.number_expr(schema)) for name, bound in brought.items())
    nothing = pl.lit(None, dtype=pl.Float64)
    return pl.struct([(nothing if number is None else number).alias(name) for name, number in numbers])


def _without_nulls(lists: pl.Expr) -> pl.Expr:
    """Return the texts of each list without nulls; null for a list without any text."""
    texts = pl.col("texts")

    def run(lists: pl.Series) -> pl.Series:
        # to look for nulls takes a hundredth of the time of dropping them
        has_nulls = lists.explode(empty_as_null=False, keep_nulls=False).null_count()
        kept = texts.list.drop_nulls() if has_nulls else texts
        frame = lists.to_frame("texts").select_seq(kept)
        return frame.select_seq(pl.when(texts.list.len() > 0).then(texts)).to_series().alias(lists.name)

    return lists.map_batches(run, pl.List(pl.String), is_elementwise=True)


def _of_distinct(function: Callable[[list[Any]], pl.Series]) -> Callable[[pl.Series], pl.Series]:
    """Return a function that gives each row its result, of one that takes the distinct values of a column."""

    def results(rows: pl.Series) -> pl.Series:
        values, which = distinct_rows(rows)
        return function(values.to_list()).gather(which).alias(rows.name)

    return results


def texts_of_rows(rows: pl.Expr, function: Callable[[Row], str | None]) -> pl.Expr:
    """Return a text for each row of a struct, of a function that is called once for each distinct row; null where the row is null."""

    def texts(rows: pl.Series) -> pl.Series:
        if rows.null_count() == len(rows):
            return nulls(rows, pl.String)
        distinct = _of_distinct(lambda values: pl.Series(map(function, values), dtype=pl.String))
        return in_rows_of(rows, distinct(rows.drop_nulls()))

    return rows.map_batches(texts, pl.String, is_elementwise=True)


def _text(value: Any) -> str:
    """Return a gold as messages show it."""
    return json_text(value) if isinstance(value, list | Mapping) else gold_text(value)


def _each(limits: Limits | None, function: Any, values: list[Any]) -> list[Any]:
    return each(function, values, limits, lambda error: (0.0, error, error, False))
