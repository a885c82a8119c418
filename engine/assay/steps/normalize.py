"""The step that writes a text in a normal form."""

from typing import Any

import polars as pl
from pydantic import Field, field_validator

from assay.steps.base import Step, StepExample
from assay.values.normalizers import NORMALIZERS, normalized_expr, normalizer, normalizer_schemas
from assay.values.params import Params

__all__ = ["Normalize", "checked_normalizer"]


def checked_normalizer(spec: str | dict[str, Any]) -> str | dict[str, Any]:
    """Return what names a normalizer.

    Raises:
        ValueError: It names none.
    """
    normalizer(spec)
    return spec


class NormalizeParams(Params):
    """The normal form."""

    by: str | dict[str, Any] = Field(
        description=f"{', '.join(NORMALIZERS)}, or `{{lmEval: {{ignoreCase: true}}}}`.",
        json_schema_extra={"anyOf": [*normalizer_schemas()]},
    )

    _normalizer = field_validator("by")(checked_normalizer)


class Normalize(Step):
    """The text as `normalize` of a check writes it: the words of SQuAD, the LaTeX of an answer and others."""

    name = "normalize"
    shorthand = "by"
    takes_mapping = True
    Params = NormalizeParams
    params: NormalizeParams
    examples = (
        StepExample("The Norse-men!", "norsemen", {"by": "squad"}),
        StepExample(r"\dfrac12", r"\frac{1}{2}", {"by": "math"}),
        StepExample("A-b", "ab", {"by": {"lmEval": {"ignoreCase": True, "ignorePunctuation": True}}}),
    )

    def row(self, text: str) -> str:
        return normalizer(self.params.by)(text)

    def expr(self, texts: pl.Expr) -> pl.Expr:
        return normalized_expr(texts, self.params.by)

    def explain(self) -> str:
        return "Python, once for each distinct text"

    def describe(self) -> str:
        name = self.params.by if isinstance(self.params.by, str) else "lmEval"
        return f"normalized by {name}"
