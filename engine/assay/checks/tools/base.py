"""What the checks of tool calls share: they read the calls of a row, or those that the text of ``on:`` writes."""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal

import polars as pl
from pydantic import Field

from assay.checks.base import JSON_STEPS, GoldKind
from assay.checks.pairs import Answer, PairCheck
from assay.expressions.shared_columns import rowwise
from assay.steps.base import Step
from assay.steps.sources import CallSource, Scope, Source
from assay.steps.tool_calls.calls import Call, calls_text, read_calls
from assay.steps.tool_calls.text import FORMAT, Format, calls_in_text
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
        return calls_text(calls_in_text(text, self.params.form))

    def expr(self, texts: pl.Expr) -> pl.Expr:
        return rowwise(texts, self.row, pl.String, distinct=True)


class CallsCheck(PairCheck):
    """Base class of checks of tool calls; a subclass defines ``judge_calls``, and ``prepared`` where its gold takes work."""

    golds = GoldKind(
        "value", is_json=True, same_params=("format", "scope"), steps=lambda _: ({"tag": "tool_call"}, *JSON_STEPS)
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
        ready = self._own if gold is self.own_gold else self.prepared(gold)
        return self.judge_calls(read_calls(value, parse=not self.names_only), ready)

    def judge_all(self, values: Sequence[str], golds: Sequence[Any]) -> list[Answer]:
        prepared = lru_cache(maxsize=None)(self.prepared)  # what it raises is raised again for each row

        def judge(value: str, gold: Any) -> tuple[float, str]:
            ready = prepared(gold) if isinstance(gold, str) else self._own
            return self.judge_calls(read_calls(value, parse=not self.names_only), ready)

        return [self.answered(judge, value, gold) for value, gold in zip(values, golds, strict=True)]

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
