"""The step that tries several chains."""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl
from pydantic import ConfigDict, Field, WithJsonSchema

from assay.calls.limits import Limits
from assay.expressions.shared_columns import nulls
from assay.steps.base import Placed, Step, StepExample
from assay.steps.chain import Chain
from assay.steps.places import PlacedText
from assay.values.params import Params


class FirstOfParams(Params):
    """Chains of steps."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    chains: tuple[Annotated[Chain, WithJsonSchema({"type": "array"})], ...] = Field(
        min_length=1, description="Chains of steps, each a list."
    )


class FirstOf(Step):
    """What the first of several chains finds: `{firstOf: [[boxed], [{after: "answer is"}]]}`.

    Later chains are not run where an earlier one has found something, or failed.
    """

    name = "firstOf"
    shorthand = "chains"
    Params = FirstOfParams
    params: FirstOfParams
    examples = (
        StepExample(r"\boxed{4}", "4", {"chains": [["boxed"], [{"after": "A:"}]]}),
        StepExample("A: 4", "4", {"chains": [["boxed"], [{"after": "A:"}]]}),
        StepExample("4", None, {"chains": [["boxed"], [{"after": "A:"}]]}),
    )

    @property
    def key(self) -> str:
        return f"{self.name}:{[chain.key for chain in self.params.chains]}{':keep' * self.keeps}"

    @property
    def errors(self) -> bool:
        return any(step.errors for chain in self.params.chains for step in chain.steps)

    @property
    def libraries(self) -> Mapping[str, tuple[str, ...]]:
        return {name: tested for chain in self.params.chains for name, tested in chain.libraries.items()}

    def within(self, limits: Limits | None) -> "Step":
        bounded = super().within(limits)
        bounded.params = FirstOfParams(chains=tuple(chain.within(limits) for chain in self.params.chains))
        return bounded

    def row(self, text: str) -> str | list[str] | None:
        results = (chain.row(text) for chain in self.params.chains)
        return next((result for result in results if result is not None), None)

    def placed(self, given: PlacedText) -> Placed | None:
        results = (chain.placed(given) for chain in self.params.chains)
        return next((result for result in results if result is not None), None)

    def expr(self, texts: pl.Expr) -> pl.Expr:
        dtype = pl.Struct({"value": pl.String, "error": pl.String}) if self.errors else pl.String()
        return texts.map_batches(self._column, return_dtype=dtype, is_elementwise=True)

    def _column(self, texts: pl.Series) -> pl.Series:
        values, errors = nulls(texts, pl.String), nulls(texts, pl.String)
        open_rows = texts.is_not_null()
        for chain in self.params.chains:
            at = open_rows.arg_true()
            if not len(at):
                break
            found, failed = chain.columns(texts.gather(at))
            values = values.scatter(at, found)
            open_rows = open_rows.scatter(at, found.is_null())
            if failed is not None:
                errors = errors.scatter(at, failed)
                open_rows = open_rows & errors.is_null()
        if not self.errors:
            return values
        return pl.DataFrame({"value": values, "error": errors}).to_struct(texts.name)

    def outline(self) -> Any:
        kept = {"notFound": "keep"} if self.keeps else {}
        return {self.name: [chain.outline() for chain in self.params.chains], **kept}

    def explain(self) -> str:
        chains = ([f"{step.name}: {step.explain()}" for step in chain.steps] for chain in self.params.chains)
        return "; else ".join(map(", then ".join, chains))
