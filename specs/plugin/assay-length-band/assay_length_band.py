"""A verifier class in a package of its own: 1.0 for an output of about the right length."""

from typing import Any, ClassVar

import polars as pl
from pydantic import BaseModel, ConfigDict, Field

from assay import VerificationResult


class LengthConfig(BaseModel):
    """What the band is."""

    model_config = ConfigDict(extra="forbid")

    target_len: int = Field(100, ge=0, description="Ideal length of the output in characters.")
    tolerance: int = Field(20, ge=0, description="Characters that it may be off.")


class LengthBandVerifier:
    """1.0 when the length of the output is within the tolerance of the target, else 0.0."""

    name: ClassVar[str] = "length_band"
    Config: ClassVar[type] = LengthConfig

    def __init__(self, *, target_len: int = 100, tolerance: int = 20) -> None:
        self.target_len = target_len
        self.tolerance = tolerance

    def verify(self, *, prompt: str, completion: str, target: dict[str, Any]) -> VerificationResult:
        """The definition."""
        del prompt, target
        off = abs(len(completion) - self.target_len)
        return VerificationResult(reward=1.0 if off <= self.tolerance else 0.0, info={"chars_off": off})

    def verify_expr(self, *, prompt: pl.Expr, completion: pl.Expr) -> pl.Expr:
        """The same for columns."""
        del prompt
        off = (completion.str.len_chars().cast(pl.Int64) - self.target_len).abs()
        return pl.struct(reward=off <= self.tolerance, info=pl.struct(chars_off=off))
