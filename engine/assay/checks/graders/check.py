"""The check of a grader: a function of a row, or the checks and steps that make it."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from assay.calls.limits import Limits, is_score, to_reward
from assay.checks.base import NO_SCORE, Check, Columns, Outcome, Row, Traits
from assay.checks.gold_faults import missing, name_of
from assay.checks.golds import GoldCheck, texts_of_rows
from assay.checks.graders.base import GraderCheck, GraderParams
from assay.checks.graders.running import Question, Verdict, score_all, shown
from assay.checks.graders.table import GRADERS, Grader
from assay.checks.pairs import in_columns
from assay.errors import encodable, quoted
from assay.expressions.pairs import quoted_expr
from assay.expressions.shared_columns import (
    SharedColumn,
    columns_read,
    distinct_rows,
    encoded,
    exactly,
    once,
    row_of,
    text,
)
from assay.steps.base import Step
from assay.steps.chain import Chain
from assay.steps.sources import Source
from assay.steps.subject import Subject
from assay.values.references import Reference, as_list, columns_of, gold_text, resolved

_ANSWER = pl.Struct({"score": pl.Float64, "reason": pl.String, "error": pl.String, "missing": pl.String})


class RowGrader(GraderCheck):
    """A grader that is a function of a row: of a text, its golds, and options.

    Args:
        grader: The grader.
        value: What the golds are: literals, references, or lists of these.
        options: All options; those that rows bring are references.
        chain: Steps that each gold takes.
        subject: What the check reads; None for the completion's text.
    """

    def __init__(
        self,
        grader: Grader,
        value: Any,
        options: Mapping[str, Any],
        chain: Chain,
        subject: Subject | None,
    ) -> None:
        super().__init__(GraderParams(name=grader.name))
        self.value, self.options, self.chain, self.reads = value, dict(options), chain, subject
        named = [*(("value", item) for item in as_list(value)), *self.options.items()]
        references = tuple((name, item) for name, item in named if isinstance(item, Reference))
        columns = columns_of(reference for _, reference in references)
        self.traits = Traits(  # type: ignore[misc]
            bounded=not (grader.rounded or grader.unbounded(options)),
            may_read=columns,
            passed_through=columns,
            references=references,
            libraries={**grader.libraries_with(options), **chain.libraries},
        )

    def within(self, limits: Limits) -> "RowGrader":
        bounded = super().within(limits)
        assert isinstance(bounded, RowGrader)  # noqa: S101  (it is a copy)
        bounded.chain = self.chain.within(limits)
        bounded.reads = self.reads and self.reads.within(limits)
        return bounded

    # what a row brings

    def _brought(self, row: Row) -> tuple[list[Any], dict[str, Any], str | None]:
        """Return the golds and the options of a row, and why it cannot be scored with them."""
        options = {name: resolved(value, row) for name, value in self.options.items()}
        for name, value in options.items():
            reference = self.options[name]
            if not isinstance(reference, Reference):
                continue
            if value is None:
                return [], options, missing([reference], name)
            if problem := self.grader.options[name].problem(value):
                shown_value = quoted(value if isinstance(value, str) else json.dumps(value, default=str))
                return [], options, f"gold cannot be used: {reference} is {shown_value}, which {problem}"
        if self.grader.golds == "none":
            return [], options, None
        golds = self._golds(row)
        if golds:
            return golds, options, None
        references = [item for item in as_list(self.value) if isinstance(item, Reference)]
        return [], options, missing(references, "value")

    def _golds(self, row: Row) -> list[Any]:
        value = (
            [resolved(item, row) for item in self.value] if isinstance(self.value, list) else resolved(self.value, row)
        )
        if self.grader.golds == "spans":
            spans = as_list(value)
            lists = spans if any(isinstance(item, list) for item in spans) else [spans]
            return [texts for items in lists if (texts := self._texts(items))]
        items = [item for item in as_list(value) if item is not None]
        return items if self.grader.golds == "value" and not self.chain.steps else self._texts(items)

    def _texts(self, values: Any) -> list[str]:
        texts = (self.chain.row(gold_text(value)) for value in as_list(values) if value is not None)
        return [text for found in texts for text in as_list(found) if text is not None]

    # the row

    def missing(self, row: Row) -> str | None:
        golds, options, reason = self._brought(row)
        if reason is not None or self.grader.kind != "M":
            return None if reason is None else encodable(reason)
        value = self._read(row)
        (verdict,) = (
            score_all(self.grader, [Question(value, golds, options)], self._stop) if value is not None else (None,)
        )
        return self._unusable(verdict) if verdict is not None and verdict.score is None else None

    def _read(self, row: Row) -> str | None:
        value = row["completion"] if self.reads is None else self.reads.row(row).value
        return value if isinstance(value, str) else None

    def _unusable(self, verdict: Verdict) -> str:
        """Return why a gold cannot be used that the tool cannot read."""
        named = next((item for item in as_list(self.value) if isinstance(item, Reference)), None)
        return encodable(
            f"gold cannot be used: {name_of(named, 'value')} is {verdict.gold}, not parseable by {self.grader.name}"
        )

    def outcome(self, row: Row) -> Outcome:
        golds, options, reason = self._brought(row)
        if reason is not None:
            return Outcome(0.0, encodable(reason))
        (verdict,) = score_all(self.grader, [Question(row["completion"], golds, options)], self._stop)
        score, words, error, unusable = self._answer(verdict)
        return Outcome(score, unusable or words, error)

    def row(self, row: Row) -> float:
        return self.outcome(row).score

    def _answer(self, verdict: Verdict) -> tuple[float, str, str | None, str | None]:
        """Return score, reason, error, and why the gold cannot be used."""
        if verdict.score is None:
            return 0.0, "", None, self._unusable(verdict)
        if verdict.error is not None:
            error = encodable(verdict.error)
            return 0.0, error, error, None
        score, problem = to_reward(1.0 - verdict.score if self.grader.inverted else verdict.score)
        if problem is not None or (self.traits.bounded and not is_score(score)):
            return 0.0, NO_SCORE, NO_SCORE, None
        return score, self._words(score, verdict) if score < 1 else "", None, None

    def _words(self, score: float, verdict: Verdict) -> str:
        if self.grader.golds == "none":
            return f"{self.grader.name}: scores {score:.3g}"
        relation = "is" if self.grader.inverted else "is not"
        return encodable(f"{self.grader.name}: {quoted(verdict.extracted)} {relation} {verdict.gold}")

    @property
    def _stop(self) -> Any:
        return None if self.limits is None else self.limits.stop

    # columns

    def columns(self) -> Columns:
        references = [reference for _, reference in self.traits.references]
        given = repr(
            (self.grader.name, self.value, sorted(self.options.items(), key=lambda item: item[0]), self.chain.key)
        )

        def build(schema: pl.Schema) -> pl.Expr:
            names = [name for name in columns_of(references) if name in schema]
            brought = row_of(map(exactly, names) if names else [text().is_null().alias("")])
            return pl.map_batches([text(), brought], self._answers, return_dtype=_ANSWER, is_elementwise=True)

        def build_why(schema: pl.Schema) -> pl.Expr:
            names = [name for name in columns_of(references) if name in schema]
            if not names:
                why = self._why({})
                return lane.col.struct.field("missing") if why is None else pl.lit(why)
            whys = texts_of_rows(row_of(map(exactly, names)), self._why)
            return pl.coalesce(whys, lane.col.struct.field("missing"))

        lane = SharedColumn(f"grader:{given}", build)
        needs_golds = bool(references) or self.grader.kind == "M"
        why = SharedColumn(f"no gold of {lane.name}", build_why, after=(lane,)).col if needs_golds else None
        return Columns.of(lane.col, missing=why)

    def _why(self, row: Row | None) -> str | None:
        reason = self._brought(row or {})[2]
        return None if reason is None else encodable(reason)

    def _answers(self, columns: Sequence[pl.Series]) -> pl.Series:
        """Score each distinct pair of a text and what its row brings."""
        texts, which_text = encoded(columns[0])
        rows, which_row = distinct_rows(columns[1])
        values, brought = texts.to_list(), [self._brought(row or {}) for row in rows.to_list()]
        pairs = [*zip(which_text.to_list(), which_row.to_list(), strict=True)]
        asked = [(at, number) for at, number in dict.fromkeys(pairs) if at is not None and brought[number][2] is None]
        questions = [Question(values[at], brought[number][0], brought[number][1]) for at, number in asked]
        verdicts = score_all(self.grader, questions, self._stop) if questions else []
        answers = dict(zip(asked, map(self._answer, verdicts), strict=True))
        nothing = (None, None, None, None)
        return in_columns([answers.get(pair, nothing) for pair in pairs], _ANSWER).alias(columns[0].name)

    def claim(self) -> str:
        return _claim(self.grader.name, self.value)

    def explain(self) -> str:
        if self.grader.kind == "M":
            return "math-verify in other processes, once for each distinct text and gold"
        if self.grader.kind == "P":
            return f"{self.grader.tool.package} in other processes, once for each distinct text and gold"
        return "Python, once for each distinct text and what its row brings; long texts in a process of their own"


def _claim(name: str, value: Any) -> str:
    golds = [item for item in as_list(value) if item is not None]
    literals = [item for item in golds if not isinstance(item, Reference)]
    named = [str(item) for item in golds if isinstance(item, Reference)]
    compared = [*([shown(literals)] if literals else []), *named]
    return f"passes {name}" + (f" for {' or '.join(compared)}" if compared else "")


class Fragment:
    """What a check becomes as a fragment: its score may be inverted or all or nothing, and its reasons begin with the grader's name."""

    inverted: bool
    whole: bool

    @property
    def plain(self) -> Check:
        """The check that makes it, as a spec without graders has it."""
        raise NotImplementedError

    def _renamed(self, outcome: Outcome, reason: Callable[[], str]) -> Outcome:
        if outcome.error is not None:
            return outcome
        score = self._final(outcome.score)
        return replace(outcome, score=score, reason=reason() if score < 1 else "")

    def _final(self, score: float) -> float:
        score = float(score >= 1.0) if self.whole else score
        return 1.0 - score if self.inverted else score

    def _final_score(self, score: pl.Expr) -> pl.Expr:
        score = score.cast(pl.Float64)
        score = (score >= 1.0).cast(pl.Float64) if self.whole else score
        return 1.0 - score if self.inverted else score

    def _final_columns(self, columns: Columns, reason: pl.Expr) -> Columns:
        score = self._final_score(columns.score)
        if columns.error is not None:
            score = pl.when(columns.error.is_null()).then(score).otherwise(0.0)
            reason = pl.when(columns.error.is_null()).then(reason).otherwise(columns.error)
        return replace(columns, score=score, reason=reason)


class FragmentCheck(Fragment, GraderCheck):
    """A check without golds of rows, as a fragment of a grader."""

    def __init__(self, grader: Grader, check: Check, *, inverted: bool, whole: bool) -> None:
        super().__init__(GraderParams(name=grader.name))
        self.check, self.inverted, self.whole = check, inverted, whole
        self.traits = replace(check.traits, code=check.traits.code or type(check))  # type: ignore[misc]

    @property
    def plain(self) -> Check:
        return self.check

    def within(self, limits: Limits) -> "FragmentCheck":
        bounded = super().within(limits)
        assert isinstance(bounded, FragmentCheck)  # noqa: S101  (it is a copy)
        bounded.check = self.check.within(limits)
        return bounded

    def missing(self, row: Row) -> str | None:
        return self.check.missing(row)

    def outcome(self, row: Row) -> Outcome:
        outcome = self.check.outcome(row)
        return self._renamed(outcome, lambda: encodable(f"{self.grader.name}: {outcome.reason or self.check.claim()}"))

    def row(self, row: Row) -> float:
        return self.outcome(row).score

    def columns(self) -> Columns:
        columns = self.check.columns()
        own = columns.reasons
        own = pl.when(own == "").then(pl.lit(encodable(self.check.claim()))).otherwise(own) if self.inverted else own
        return self._final_columns(columns, pl.lit(f"{self.grader.name}: ") + own)

    def subject(self) -> tuple[Source | None, tuple[Step, ...]]:
        return None, ()

    def claim(self) -> str:
        return f"passes {self.grader.name}: {self.check.claim()}"

    def explain(self) -> str:
        return self.check.explain()


class FragmentGolds(Fragment, GoldCheck):
    """A check with golds, as a fragment of a grader."""

    def __init__(self, grader: Grader, check: GoldCheck, *, inverted: bool, whole: bool) -> None:
        super().__init__(check.brought.check, check.brought.given, check.brought.chain)
        self.type = GraderCheck.type  # type: ignore[misc]
        self.name, self.inverted, self.whole = grader.name, inverted, whole

    @property
    def grader(self) -> Grader:
        """The grader."""
        return GRADERS[self.name]

    @property
    def plain(self) -> Check:
        brought = self.brought
        plain = GoldCheck(brought.check, brought.given, brought.chain)
        return plain if brought.limits is None else plain.within(brought.limits)

    def outcome(self, row: Row) -> Outcome:
        return self._renamed(super().outcome(row), lambda: self._words(row["completion"], row))

    def _words(self, value: Any, row: Row) -> str:
        relation = "is" if self.inverted else "is not"
        return encodable(f"{self.grader.name}: {quoted(value)} {relation} {shown(self._shown_golds(row))}")

    def _shown_golds(self, row: Row) -> list[Any]:
        return [item for gold in self.brought.stepped(row) for item in as_list(gold)]

    def columns(self) -> Columns:
        with columns_read() as lanes:
            columns = super().columns()
        fails = pl.when(self._final_score(columns.score) < 1.0)
        key = f"{self.grader.name}:{self.inverted}{self.whole}:{sorted(self.brought.given.items())!r}:{self.brought.chain.key}"
        names = columns_of(self.brought.references)

        def build(schema: pl.Schema) -> pl.Expr:
            """Return the golds of failing rows as reasons show them."""
            present = [name for name in names if name in schema]
            if not present:
                return pl.lit(encodable(shown(self._shown_golds({}))))
            gold = self.brought.given.get(self.brought.param)
            single = gold.gold_expr(schema) if isinstance(gold, Reference) and self._shows_in_columns else None
            if single is not None:
                golds: pl.Expr = fails.then(single)
                if (chain := self.brought.chain).steps:
                    golds = once(golds, lambda texts: chain.columns(texts)[0], pl.String)
                return quoted_expr(golds)
            rows = fails.then(row_of(map(exactly, present)))
            return texts_of_rows(rows, lambda row: encodable(shown(self._shown_golds(row))))

        golds = SharedColumn(f"shown golds:{key}", build, after=tuple(lanes)).col
        relation = " is " if self.inverted else " is not "
        reason = quoted_expr(fails.then(text()), f"{self.grader.name}: ") + pl.lit(relation) + golds
        return self._final_columns(columns, reason)

    @property
    def _shows_in_columns(self) -> bool:
        return not (self.brought.chain.gives_list or self.golds.whole or self.golds.is_json)

    def subject(self) -> tuple[Source | None, tuple[Step, ...]]:
        return None, ()

    def claim(self) -> str:
        return _claim(self.name, self.brought.given.get(self.brought.param))
