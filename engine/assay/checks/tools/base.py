"""What the checks of tool calls share: they read the calls of a row, or those that the text of ``on:`` writes."""

from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import Any, ClassVar, Literal

import polars as pl
from pydantic import Field

from assay.checks.base import JSON_STEPS, GoldKind
from assay.checks.pairs import NO_ANSWER, Answers, PairCheck
from assay.expressions.shared_columns import rowwise
from assay.steps.base import Step
from assay.steps.sources import CallSource, Scope, Source
from assay.steps.tool_calls.calls import Call, read_calls
from assay.steps.tool_calls.text import FORMAT, Format, calls_text_in
from assay.values.params import Params


class CallsParams(Params):
    """Where calls stand."""

    format: Format = Field(default="any", description=FORMAT)
    scope: Scope = Field(default="all", description="Whether all messages of the assistant count or the last.")
    dots: Literal["keep", "underscore"] = Field(
        default="keep", description="Whether dots in names count as underscores, which some APIs write for them."
    )


class ReadCallsParams(Params):
    """How calls stand in a text."""

    form: Format = "any"


class ReadCalls(Step):
    """The calls that a text writes, as JSON; a text without any gives an empty list."""

    name = "calls"
    Params = ReadCallsParams
    params: ReadCallsParams

    def row(self, text: str) -> str:
        return calls_text_in(text, self.params.form)

    def expr(self, texts: pl.Expr) -> pl.Expr:
        return rowwise(texts, self.row, pl.String, distinct=True)


class CallsCheck(PairCheck):
    """Base class of checks of tool calls; a subclass defines ``judge_calls``, and ``prepared`` where its gold takes work."""

    golds = GoldKind(
        "value",
        is_json=True,
        lazy=True,
        same_params=("format", "scope"),
        steps=lambda _: ({"tag": "tool_call"}, *JSON_STEPS),
    )
    names_only: ClassVar[bool] = False
    params: CallsParams

    def judge_calls(self, calls: list[Call], gold: Any) -> tuple[float, str]:
        """Return the score of calls and the reason, which counts if the score is below 1: the definition."""
        del calls, gold
        raise TypeError(f"{type(self).__name__} has no judge_calls(): every such check needs its definition")

    def prepared(self, gold: Any) -> Any:
        """Return a gold as ``judge_calls`` takes it."""
        return gold

    def judge(self, value: str, gold: Any) -> tuple[float, str]:
        return self.judge_prepared(value, self._ready(gold))

    def judge_all(self, values: Sequence[str], golds: Sequence[Any]) -> Answers:
        prepared = dict[int, tuple[CallsCheck, Any] | None]()  # by identity: each distinct gold is one object
        beside, answers = cache(self.check_beside), list[Any]()
        for value, gold in zip(values, golds, strict=True):
            if id(gold) not in prepared:
                prepared[id(gold)] = self._prepared(gold, beside)
            ready = prepared[id(gold)]
            answers.append(NO_ANSWER if ready is None else self.answered(ready[0].judge_prepared, value, ready[1]))
        return answers

    def judge_prepared(self, value: str, ready: Any) -> tuple[float, str]:
        """Judge the calls of a text by a gold that is prepared, or by the error of one that cannot be."""
        if isinstance(ready, Exception):
            raise ready
        return self.judge_calls(read_calls(value, parse=not self.names_only), ready)

    def _prepared(self, gold: Any, beside: "Callable[[str], CallsCheck]") -> "tuple[CallsCheck, Any] | None":
        """Return the check and the prepared gold, or its error; None for a gold of a row that ``Params`` does not take."""
        check: CallsCheck = self
        try:
            if isinstance(gold, dict) and gold is not self.own_gold:
                check, gold = beside(gold["beside"]), gold["gold"]
            return check, self._ready(gold)
        except Exception as error:  # noqa: BLE001  (as for ``RowGolds.usable``)
            return (check, error) if check.scores_faulty(gold) else None

    def check_beside(self, other: str) -> "CallsCheck":
        """Return this check with the value of a row for ``golds.beside``."""
        raise NotImplementedError(other)

    def scores_faulty(self, gold: Any) -> bool:
        """Return whether ``Params`` takes a gold that cannot be prepared."""
        del gold
        return False

    def _ready(self, gold: Any) -> Any:
        return self._own if gold is self.own_gold else self.prepared(gold)

    @cached_property
    def _own(self) -> Any:
        return self.prepared(self.own_gold)

    def subject(self) -> tuple[Source, tuple[Step, ...]]:
        source = CallSource(form=self.params.format, scope=self.params.scope)
        return source, (ReadCalls(ReadCallsParams(form=self.params.format)),)

    def same_name(self, name: Any) -> Any:
        """Return a name as it is compared."""
        return name.replace(".", "_") if self.params.dots == "underscore" and isinstance(name, str) else name

    def explain(self) -> str:
        return "Python, once for each distinct list of calls and gold"
