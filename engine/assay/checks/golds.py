"""A check with params that rows bring, or with several golds: the score of its best gold.

A gold that the check cannot use is dropped; a row without any other has none.
"""

import copy
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache, reduce
from typing import Any

import polars as pl

from assay.calls.in_thread import each
from assay.calls.limits import Limits, own_failure
from assay.checks.base import Check, GoldCompared, GoldKind, Outcome, Row, RunCheck, is_ours
from assay.checks.gold_faults import fault_of, field_at_fault, is_solution, missing, name_of, reading_steps, unusable
from assay.checks.pairs import PairCheck, in_columns
from assay.errors import encodable, said_by
from assay.expressions.distinct import distinct_rows
from assay.expressions.lane import (
    Lane,
    about,
    exactly,
    first_of_each,
    in_lists,
    in_place,
    layers,
    nulls,
    once,
    positions,
    row_of,
    rowwise,
    text,
)
from assay.names import TEXT
from assay.steps.base import Step
from assay.steps.chain import Chain
from assay.steps.sources import Source
from assay.values.references import OF_ROW, Reference, columns_of, gold_text, json_text, resolved

_ANSWER = pl.Struct({"score": pl.Float64, "reason": pl.String, "error": pl.String, "missing": pl.Boolean})

_Answer = tuple[float, str | None, str | None, bool]
"""The values of such a struct."""


class GoldCheck(RunCheck):
    """A check of some type whose params may be references, and whose gold may be a list.

    Args:
        check: The type.
        params: Its params by field; each a literal or a ``Reference``, the gold a list of them.
        gold_chain: Steps that each gold takes; where they find nothing, there is no gold.
    """

    graded = True

    def __init__(self, check: type[Check], params: Mapping[str, Any], gold_chain: Chain = Chain()) -> None:  # noqa: B008  (it is frozen)
        super().__init__()
        self.given = dict(params)
        self.gold_chain = gold_chain
        self.checks = check
        self.type = check.type  # type: ignore[misc]
        self.bounded = check.bounded  # type: ignore[misc]
        self.joint = check.joint  # type: ignore[misc]
        self.libraries = {**self._bare.libraries, **gold_chain.libraries}  # type: ignore[misc]
        self.reads = check.reads  # type: ignore[misc]
        self.stays = tuple(name for name in columns_of(self.references) if name not in check.reads)  # type: ignore[misc]
        self.may_read = (*check.may_read, *self.stays)  # type: ignore[misc]
        self._literals = self._literal_checks()

    @property
    def named_references(self) -> list[tuple[str, Reference]]:
        """The references in the params, in order, each with the param's name in specs."""
        named = ((self._in_specs(field), _listed(value)) for field, value in self.given.items())
        return [(name, item) for name, items in named for item in items if isinstance(item, Reference)]

    @property
    def gold_kind(self) -> GoldKind:  # type: ignore[override]
        return self.checks.gold_kind

    @property
    def compares(self) -> bool:
        """Whether the output is compared with a gold, not measured by it."""
        return bool(self.checks.gold) and not self.gold_kind.measured

    def _in_specs(self, field: str) -> str:
        """Return the name of a param in specs; ``""`` for that of a gold where the type has none."""
        return (self.checks.Params.model_fields[field].alias or field) if field else ""

    # ── the definition ──────────────────────────────────────────────────────────────────────────────────────────────

    def candidates(self, row: Row) -> list[Check]:
        """Return the check of each gold that a row brings, without those that cannot be used."""
        params: dict[str, Any] = {}
        for name, value in self.given.items():
            if name != self.checks.gold and isinstance(value, Reference):
                value = value.row(row)  # noqa: PLW2901  (the row's value stands for the reference)
                if value is None:
                    return []
            params[name] = value
        if self.checks.gold not in params:
            return self._usable([params])
        return self._usable(params | {self.checks.gold: gold} for gold in self._golds(row))

    def solution(self, row: Row) -> str | None:
        """Return a gold of a row that is a whole solution with its answer behind ``####``, though no step reads that; None if none is."""
        golds = () if self.gold_chain.steps or self.checks.gold not in self.given else self._present(row)
        texts = (value for given, value in golds if isinstance(given, Reference) and isinstance(value, str))
        return next((text for text in texts if is_solution(text)), None)

    def _golds(self, row: Row) -> list[Any]:
        """Return the golds of a row as the type takes them: texts, or lists of texts."""
        golds = self._stepped_golds(row)
        return [golds] if golds and self.gold_kind.is_joined(self._bare.params) else golds

    def _stepped_golds(self, row: Row) -> list[Any]:
        stepped = (self._stepped(value) for _, value in self._present(row))
        golds = [gold for gold in stepped if gold is not None]
        return (
            golds if self._counting is None or self.gold_kind.whole or self.gold_kind.is_json else self._counting(golds)
        )

    def _present(self, row: Row) -> list[tuple[Any, Any]]:
        """Return the golds of a row before their steps, without nulls, each with the literal or the reference it comes from."""
        given = self.given[self.checks.gold]
        if self.gold_kind.whole or self.gold_kind.is_json:
            value = [resolved(item, row) for item in given] if isinstance(given, list) else resolved(given, row)
            if not self.gold_kind.is_json:
                return [(given, whole) for whole in _wholes(value)]
            return [] if value is None else [(given, value)]
        values = ((item, resolved(item, row)) for item in _listed(given))
        return [(item, value) for item, found in values for value in self._items(found) if value is not None]

    def _items(self, value: Any) -> list[Any]:
        """Return the values that one value stands for, each a gold."""
        return [len(value)] if self.gold_kind.measured and isinstance(value, list) else _listed(value)

    def _stepped(self, value: Any) -> Any:
        """Return a gold after its steps, as the type takes it; None if they find nothing, or fail."""
        try:
            return self._run_steps(value)
        except BaseException as exception:  # a pattern's limit
            if not own_failure(exception):
                raise
            return None

    def _run_steps(self, value: Any) -> Any:
        if self.gold_kind.is_json:
            result = self.gold_chain.row(json_text(value))
            return None if result is None else json_text(result)
        if self.gold_kind.whole and isinstance(value, list):
            items = [self.gold_chain.row(gold_text(item)) for item in value if item is not None]
            return [gold_text(item) for item in items if item is not None] or None
        result = self.gold_chain.row(gold_text(value))
        return result if result is None or (self.gold_kind.whole and isinstance(result, list)) else gold_text(result)

    @cached_property
    def _bare(self) -> Check:
        """The check without what rows bring."""
        params = {name: value for name, value in self.given.items() if not isinstance(value, Reference)}
        gold: Any = [""] if self.gold_kind.whole else ""
        check = self.checks(self.checks.Params.model_construct(**{**params, self.checks.gold: gold}))
        check.limits = self.limits
        return check

    def _usable(self, variants: Iterable[Mapping[str, Any]]) -> list[Check]:
        """Return the checks of those params that the type takes."""
        checks = []
        for params in variants:
            try:
                checks.append(self._check_of(params))
            except Exception:  # noqa: BLE001, S112  (a pattern raises what re raises; a user's Params may raise anything)
                continue
        return checks

    def _check_of(self, params: Mapping[str, Any]) -> Check:
        check = self.checks(self.checks.Params.model_validate(params, context=OF_ROW))
        check.limits = self.limits
        return check

    def _with_gold(self, gold: Any) -> dict[str, Any]:
        return {**self.given, self.checks.gold: gold}

    def missing(self, row: Row) -> str | None:
        return None if self.candidates(row) else self.why_none(row)

    def why_none(self, row: Row) -> str:
        """Return why a row has no gold that the type can use: there is none, or what is wrong with the first."""
        return encodable(self._why_none(row))

    def _why_none(self, row: Row) -> str:
        field = self.checks.gold
        golds = self._present(row) if field in self.given else []
        absent = {
            value
            for name, given in self.given.items()
            for value in _listed(given)
            if isinstance(value, Reference) and (not golds if name == field else value.row(row) is None)
        }
        if absent or (field in self.given and not golds):
            return missing([reference for reference in self.references if reference in absent], self._in_specs(field))
        params = {name: resolved(value, row) for name, value in self.given.items() if name != field}
        return self._fault(params, *golds[0]) if golds else self._refusal(params)

    def _fault(self, params: Mapping[str, Any], given: Any, value: Any) -> str:
        """Return why the type cannot use a gold.

        Args:
            params: The other params.
            given: The literal or the reference that the gold comes from.
            value: The gold before its steps.
        """
        field = self.checks.gold
        text = _text(value)

        def reads(gold: Any) -> bool:
            return bool(self._usable([{**params, field: gold}]))

        try:
            gold = self._run_steps(value)
        except BaseException as exception:  # a pattern's limit
            if not own_failure(exception):
                raise
            return unusable(name_of(given, self._in_specs(field)), text, f": {said_by(exception)}")
        if gold is not None:
            return self._refusal(
                {**params, field: gold}, given, reading_steps(text, self.gold_kind.steps(self._bare.params), reads)
            )
        hint = reading_steps(
            text, self.gold_kind.steps(self._bare.params), reads
        ) or "it can be used without goldOn" * reads(text)
        return unusable(name_of(given, self._in_specs(field)), text, ", in which goldOn finds nothing", hint)

    def _refusal(self, params: Mapping[str, Any], given: Any = None, hint: str = "") -> str:
        """Return why the type does not take params.

        Args:
            params: The params of a row.
            given: The literal or the reference that the gold comes from, if there is one.
            hint: What would read the gold.
        """
        try:
            self._check_of(params)
        except Exception as error:  # noqa: BLE001  (as for ``_usable``)
            fields, refused, fault = self.checks.Params.model_fields, field_at_fault(error), fault_of(error)
            field = next((name for name in params if refused in (name, fields[name].alias)), self.checks.gold)
            if field in params and field == self.checks.gold:
                return unusable(name_of(given, self._in_specs(field)), _text(params[field]), fault, hint)
            if not isinstance(self.given.get(field), Reference):  # a literal beside a value of the row, or all params
                fault = f": {refused}{fault}" if refused else fault
                field = next(name for name, value in self.given.items() if isinstance(value, Reference))
            return unusable(name_of(self.given[field], self._in_specs(field)), _text(params[field]), fault)
        return "gold cannot be used"  # a type of the user's that has taken it now

    def outcome(self, row: Row) -> Outcome:
        outcomes = [check.outcome(row) for check in self.candidates(row)]
        return self._best(outcomes) if outcomes else Outcome(0.0, self.why_none(row))

    def _best(self, outcomes: Sequence[Outcome]) -> Outcome:
        """Return the outcome of the best gold, the first of equals; one that raises counts only if all do."""
        choose = min if self.gold_kind.worst else max
        best = choose(
            [outcome for outcome in outcomes if outcome.error is None] or outcomes[:1],
            key=lambda outcome: outcome.score,
        )
        return best if best.error is None or best.score == 1 else Outcome(0.0, best.error, best.error)

    # ── columns ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def missing_expr(self) -> pl.Expr | None:
        return self._why_lane().col if self.references else None

    def lanes(self) -> tuple[Lane, ...]:
        return (self.answer_lane(), self._why_lane()) if self.references else (self.answer_lane(),)

    def _why_lane(self) -> Lane:
        """Why a row has no gold that can be used: String, null where it has one."""
        lane = self.answer_lane()

        def whys(rows: pl.Series) -> pl.Series:
            if rows.null_count() == len(rows):
                return nulls(rows, pl.String)
            values, which = distinct_rows(rows.drop_nulls())
            texts = pl.Series([self.why_none(row) for row in values.to_list()], dtype=pl.String)
            return texts.gather(which).gather(positions(rows.is_not_null())).alias(rows.name)

        def build(schema: pl.Schema) -> pl.Expr:
            without = pl.when(lane.col.struct.field("missing")).then(self._brought_expr(schema))
            return without.map_batches(whys, pl.String, is_elementwise=True)

        return Lane(f"no {lane.name}", build, after=(lane,))

    def answer_lane(self) -> Lane:
        needs: tuple[Lane, ...] = ()
        if self._literals is not None and self._in_columns:
            needs = tuple(lane for check in self._literals for lane in check.lanes())
        elif self._literals is None and self._template is not None:
            needs = (self._gold_lane(), *self._template.lanes_by())
        by_definition = None if self._literals is not None and self._in_columns else self._python_expr
        return Lane(f"golds:{self._identity()}", self._answer_expr, after=needs, build_few=by_definition)

    def _identity(self) -> str:
        return f"{self.checks.__qualname__}:{id(self.checks)}:{sorted(self.given.items())!r}:{self.gold_chain.key}"

    def _literal_checks(self) -> list[Check] | None:
        """Return the check of each gold, if no row brings any.

        Raises:
            ValueError: There is no gold, or the type cannot use one.
        """
        gold = self.checks.gold
        if self.references or gold not in self.given:
            return None
        golds = self._golds({})
        if not golds:
            raise ValueError(f"params.{self._in_specs(gold)} has no gold")
        return [self._check_of(self._with_gold(value)) for value in golds]

    @property
    def _in_columns(self) -> bool:
        """Whether the type is one of ours with columns."""
        return is_ours(self.checks) and self._bare.has_expr

    @cached_property
    def _template(self) -> GoldCompared | None:
        """The check whose ``expr_by`` compares texts with golds, if only the gold is a matter of the row; None if rows take Python."""
        others = (value for name, value in self.given.items() if name != self.checks.gold)
        if not self._in_columns or any(isinstance(value, Reference) for value in others):
            return None
        gold = pl.lit([""] if self.gold_kind.whole else "")
        if self.gold_chain.gives_list or not isinstance(self._bare, GoldCompared) or self._bare.expr_by(gold) is None:
            return None
        return self._bare

    def _gold_lane(self) -> Lane:
        """The golds of each row that can be used: a text, or a list of texts; all null if rows take Python."""
        return Lane(f"gold:{self._identity()}", self._gold_expr)

    def _gold_expr(self, schema: pl.Schema) -> pl.Expr:
        golds, lists = self._gold_text_expr(schema), self._gold_lists_expr(schema)
        if self._template is None or not (self._has_one_gold(schema) or self._has_list(schema)):
            return pl.lit(None, dtype=pl.String)
        if self.gold_kind.whole and lists is not None:
            items = lists.list.eval(self._stepped_expr(pl.element())).list.drop_nulls()
            return pl.when(items.list.len() > 0).then(items)
        if self.gold_kind.is_joined(self._bare.params):
            return self._joined_expr(schema, golds, lists)
        if golds is not None:
            return self._usable_expr(self._stepped_expr(golds))
        if lists is None:
            return self._row_lists_expr(schema)
        golds = lists.list.eval(self._stepped_expr(pl.element())).list.drop_nulls()
        if (counting := self._counting) is not None:
            golds = rowwise(golds, counting, pl.List(pl.String))
        return golds.list.eval(self._usable_expr(pl.element())).list.drop_nulls()

    def _joined_expr(self, schema: pl.Schema, golds: pl.Expr | None, lists: pl.Expr | None) -> pl.Expr:
        """Return all golds of each row as one list; null where there is none."""
        if golds is not None:
            lists = pl.concat_list(self._stepped_expr(golds))
        else:
            lists = self._row_lists_expr(schema) if lists is None else lists.list.eval(self._stepped_expr(pl.element()))
        lists = lists.list.drop_nulls()
        return pl.when(lists.list.len() > 0).then(lists)

    @property
    def _counting(self) -> Callable[[list[str]], list[str]] | None:
        """What returns those golds of a row that count; None if all do."""
        return self.gold_kind.counting(self._bare.params)

    def _has_one_gold(self, schema: pl.Schema) -> bool:
        """Whether columns have the gold of each row, if it has one; golds that are joined are one."""
        if self.gold_kind.is_joined(self._bare.params):
            return True
        read = self._gold_lists_expr if self.gold_kind.whole else self._gold_text_expr
        return read(schema) is not None

    def _has_list(self, schema: pl.Schema) -> bool:
        """Whether rows may have several golds, of which columns find the best."""
        one_for_a_row = self.gold_kind.whole or self.gold_kind.measured or self.gold_kind.lazy
        return not (one_for_a_row or self._has_one_gold(schema))

    def _gold_text_expr(self, schema: pl.Schema) -> pl.Expr | None:
        """Return the gold of each row as text; None if a row may have several, or it takes Python to find it."""
        gold = self.given.get(self.checks.gold)
        if not isinstance(gold, Reference) or (self.gold_kind.is_json and not gold.is_text(schema)):
            return None
        lengths = gold.sizes_expr(schema) if self.gold_kind.measured else None
        return gold.gold_expr(schema) if lengths is None else lengths.cast(pl.String)

    def _gold_lists_expr(self, schema: pl.Schema) -> pl.Expr | None:
        """Return the golds of each row as a list of texts; None if it takes Python to find them."""
        gold = self.given.get(self.checks.gold)
        if not isinstance(gold, Reference) or self.gold_kind.is_json or self.gold_kind.measured:
            return None
        lists = gold.gold_lists_expr(schema)
        if lists is None and self.gold_kind.whole and (single := gold.gold_expr(schema)) is not None:
            return pl.when(single.is_not_null()).then(pl.concat_list(single))
        return lists

    def _stepped_expr(self, golds: pl.Expr) -> pl.Expr:
        """``_stepped`` as an expression over a String column."""
        return (
            once(golds, lambda texts: self.gold_chain.columns(texts)[0], pl.String) if self.gold_chain.steps else golds
        )

    def _usable_expr(self, golds: pl.Expr) -> pl.Expr:
        """Return the golds that the type can use; null for the others."""
        assert self._template is not None  # noqa: S101  (see _gold_expr)
        usable = golds if self.gold_kind.lazy else self._template.usable_by(golds)
        return once(golds, self._usable_golds, pl.String) if usable is None else usable

    def _usable_golds(self, golds: pl.Series) -> pl.Series:
        usable = [bool(self._usable([self._with_gold(gold)])) for gold in golds.to_list()]
        return pl.DataFrame().select_seq(pl.when(pl.Series(usable, dtype=pl.Boolean)).then(golds)).to_series()

    def _row_lists_expr(self, schema: pl.Schema) -> pl.Expr:
        """Return the golds of each row that the type can use, found in Python; rows with the same values share the work."""

        def row_lists(rows: pl.Series) -> pl.Series:
            values, which = distinct_rows(rows)
            lists = [self._stepped_golds(row) for row in values.to_list()]
            golds = pl.Series([gold for texts in lists for gold in texts], dtype=pl.String)
            return in_lists(golds, pl.Series(map(len, lists), dtype=pl.Int64)).gather(which).alias(rows.name)

        lists = self._brought_expr(schema).map_batches(row_lists, pl.List(pl.String), is_elementwise=True)
        return lists.list.eval(self._usable_expr(pl.element())).list.drop_nulls()

    def _brought_expr(self, schema: pl.Schema) -> pl.Expr:
        """Return a struct of the columns that the references read."""
        names = [name for name in columns_of(self.references) if name in schema]
        # without any, a column of as many rows
        return row_of(map(exactly, names) if names else [text().is_null().alias("")])

    def _answer_expr(self, schema: pl.Schema) -> pl.Expr:
        if self._literals is not None and self._in_columns:
            return self._literal_expr(self._literals)
        if self._template is not None and self._has_one_gold(schema):
            return self._column_expr(self._template)
        if self._template is not None and self._has_list(schema):
            columns = [text(), self._gold_lane().col]
            return pl.map_batches(columns, self._best_of_lists, return_dtype=_ANSWER, is_elementwise=True)
        return self._python_expr(schema)

    def _literal_expr(self, checks: Sequence[Check]) -> pl.Expr:
        """``outcome`` for golds that are the same on every row: the best of several checks."""
        choose = pl.min_horizontal if self.gold_kind.worst else pl.max_horizontal
        scores = [check.expr().cast(pl.Float64) for check in checks]
        errors = [check.error_expr() for check in checks]
        scores = [
            score if error is None else pl.when(error.is_null()).then(score)
            for score, error in zip(scores, errors, strict=True)
        ]
        best = choose(scores)
        raised = [error for error in errors if error is not None]
        error = pl.when(best.is_null()).then(pl.coalesce(raised)) if raised else pl.lit(None, dtype=pl.String)
        pairs = [(score == best, check.reason_expr()) for score, check in zip(scores, checks, strict=True)]
        reason = reduce(
            lambda rest, pair: pl.when(pair[0]).then(pair[1]).otherwise(rest), pairs[::-1], pl.lit(None, pl.String)
        )
        reason = pl.when(best == 1.0).then(pl.lit("")).otherwise(pl.coalesce(error, reason))
        score = pl.when(error.is_not_null()).then(0.0).otherwise(best)
        return pl.struct(score=score, reason=reason, error=error, missing=pl.lit(value=False)).cast(_ANSWER)

    def _column_expr(self, template: GoldCompared) -> pl.Expr:
        """``outcome`` for one gold from each row, column to column."""
        golds = self._gold_lane().col
        if (answer := template.answer_by(golds)) is not None:
            # added fields of a struct that is null as a whole, as there is no text, stay null
            without = pl.struct(score=None, reason=None, error=None, missing=pl.lit(value=True)).cast(_ANSWER)
            present = answer.struct.with_fields(missing=pl.lit(value=False)).cast(_ANSWER)
            return pl.when(golds.is_null()).then(without).otherwise(present)
        by = template.expr_by(golds)
        assert by is not None  # noqa: S101  (else there is no template)
        score = by.cast(pl.Float64)
        pairs = pl.struct(text().alias("completion"), golds.alias("gold"))
        reason = self._reason_expr(template, golds, text().is_not_null() & (score < 1.0))
        no_text = pl.lit(None, dtype=pl.String)
        answer = pl.struct(score=score, reason=reason, error=no_text, missing=golds.is_null()).cast(_ANSWER)
        if not self.gold_kind.lazy:
            return answer
        open_pairs = pl.when(golds.is_not_null() & score.is_null()).then(pairs)

        def answers(function: Callable[[Any], Any], rows: list[Any]) -> list[Any]:
            return [
                dict(zip(_ANSWER.to_schema(), answer, strict=True)) for answer in _each(self.limits, function, rows)
            ]

        def answer_of(row: Row) -> _Answer:
            return self._answered(self._usable([self._with_gold(row["gold"])]), row)

        by_python = rowwise(open_pairs, answer_of, _ANSWER, each=answers)
        return pl.when(by_python.is_not_null()).then(by_python).otherwise(answer)

    def _best_of_lists(self, columns: Sequence[pl.Series]) -> pl.Series:
        """``outcome`` for lists of golds: column to column for each pair of a text and a gold, then the best of each row."""
        texts, golds = columns
        assert self._template is not None  # noqa: S101  (see _answer_expr)
        sizes = golds.list.len().fill_null(0)
        rows = pl.DataFrame({TEXT: texts, "gold": golds, "size": sizes}).with_row_index("at")
        rows = rows.filter((sizes > 0) & texts.is_not_null())
        pairs = rows.select_seq(TEXT, "gold").explode("gold")
        with about(TEXT):
            for layer in layers(self._template.lanes_by(), pairs.schema):
                pairs = pairs.with_columns_seq(layer)
            if (answer := self._template.answer_by(pl.col("gold"))) is not None:
                answers = _best_answers(
                    pairs.select_seq(answer=answer).unnest("answer"), rows["size"], self.gold_kind.worst
                )
                answers = in_place(pl.concat([rows.select_seq("at"), answers], how="horizontal"), len(texts))
                return answers.with_columns_seq(missing=sizes == 0).to_struct(texts.name).cast(_ANSWER)
            by = self._template.expr_by(pl.col("gold"))
            assert by is not None  # noqa: S101  (as above)
            pairs = pairs.select_seq("gold", score=by.cast(pl.Float64))
            best = pairs[first_of_each(pairs["score"], rows["size"], lowest=self.gold_kind.worst)]
            reason = self._reason_expr(self._template, pl.col("gold"), pl.col("score") < 1.0)
            rows = pl.concat([rows.select_seq("at", TEXT), best], how="horizontal").select_seq(
                "at", "score", reason=reason
            )
        no_text = pl.lit(None, dtype=pl.String)
        answers = in_place(rows, len(texts)).with_columns_seq(error=no_text, missing=sizes == 0)
        return answers.to_struct(texts.name).cast(_ANSWER)

    def _reason_expr(self, template: GoldCompared, golds: pl.Expr, fails: pl.Expr) -> pl.Expr:
        """Return why rows fail, given their golds."""
        reason = template.reason_by(pl.when(fails).then(golds))
        pairs = pl.when(fails).then(pl.struct(text().alias("completion"), golds.alias("gold")))
        if reason is not None:
            return reason
        return rowwise(pairs, lambda row: self._check_of(self._with_gold(row["gold"])).reason(row), pl.String)

    def _python_expr(self, schema: pl.Schema) -> pl.Expr:
        read = self.checks if is_ours(self.checks) else self
        names = [name for name in (*read.reads, *read.may_read) if name in schema and name != "completion"]
        rows = row_of([text().alias("completion"), *(exactly(name) for name in dict.fromkeys(names))])
        columns = [rows, self._brought_expr(schema)]
        return pl.map_batches(columns, self._answers, return_dtype=_ANSWER, is_elementwise=True)

    def _answers(self, columns: Sequence[pl.Series]) -> pl.Series:
        """``outcome`` of each row in Python; rows that bring the same values share their checks, and with one text the answer."""
        rows, brought = columns
        distinct, which = distinct_rows(brought)
        values = distinct.to_list()
        checks_of = lru_cache(maxsize=None)(lambda number: self.candidates(values[number]))

        def answer(pair: tuple[Row, int]) -> _Answer:
            return self._answered(checks_of(pair[1]), pair[0])

        if not is_ours(self.checks) or self.gold_kind.of_lists or self.checks.reads or self.checks.may_read:
            answers = _each(self.limits, answer, [*zip(rows.to_list(), which.to_list(), strict=True)])
            return in_columns(answers, _ANSWER).alias(rows.name)
        places: dict[tuple[str | None, int], int] = {}
        pairs = zip(rows.struct.field("completion").to_list(), which.to_list(), strict=True)
        numbers = [places.setdefault(pair, len(places)) for pair in pairs]
        # such a type compares what it has read, and brings limits of its own where it needs them
        limits = None if issubclass(self.checks, PairCheck) else self.limits
        answers = _each(limits, answer, [({"completion": text}, number) for text, number in places])
        return in_columns(answers, _ANSWER).alias(rows.name).gather(pl.Series(numbers, dtype=pl.UInt32))

    def _answered(self, candidates: Sequence[Check], row: Row) -> _Answer:
        if not candidates or row["completion"] is None:
            return 0.0, None, None, not candidates
        best = self._best([check.outcome(row) for check in candidates])
        return best.score, best.reason, best.error, False

    # ── how it runs ─────────────────────────────────────────────────────────────────────────────────────────────────

    def within(self, limits: Limits) -> "Check":
        bounded = copy.copy(self)
        bounded.limits = limits
        for name in ("_bare", "_template"):  # they are to have the limits, too
            bounded.__dict__.pop(name, None)
        if self._literals is not None:
            bounded._literals = [check.within(limits) for check in self._literals]  # noqa: SLF001  (its copy)
        return bounded

    def source(self) -> Source | None:
        return self._bare.source()

    def steps(self) -> tuple[Step, ...]:
        return self._bare.steps()

    def claim(self) -> str:
        if self._literals is None:
            return f"meets {self.type} of {', '.join(map(str, self.references))}"
        return " or ".join(check.claim() for check in self._literals)

    def complaint(self) -> str:
        return f"fails {self.type}"

    def explain(self) -> str:
        if self._literals is not None and self._in_columns:
            return f"columns: the best of {len(self._literals)} golds"
        if self._template is not None:
            return f"{self._template.explain_by()}; of several golds, the best"
        return "Python, row by row: each row brings its params"

    @property
    def made_by(self) -> type:
        return self.checks

    @property
    def is_builtin(self) -> bool:
        return is_ours(self.checks)


def _best_answers(answers: pl.DataFrame, sizes: pl.Series, lowest: bool) -> pl.DataFrame:
    """Return the best answer of each run of rows; one with an error counts only if all have one."""
    last = pl.lit(math.inf if lowest else -math.inf)
    ranks = answers.select_seq(pl.when(pl.col("error").is_null()).then("score").otherwise(last)).to_series()
    return answers[first_of_each(ranks, sizes, lowest=lowest)]


def _wholes(value: Any) -> list[Any]:
    """Return the golds that a value stands for, of which each may be a list, without those that have nothing."""
    several = isinstance(value, list) and bool(value) and all(isinstance(item, list) for item in value)
    wholes = value if several else [value]
    return [whole for whole in wholes if any(item is not None for item in _listed(whole))]


def _text(value: Any) -> str:
    """Return a gold as messages show it."""
    return json_text(value) if isinstance(value, list | Mapping) else gold_text(value)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _each(limits: Limits | None, function: Any, values: list[Any]) -> list[Any]:
    return each(function, values, limits, lambda error: (0.0, error, error, False))
