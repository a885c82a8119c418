"""What became of a rollout beside its reward, from columns that it brings."""

import polars as pl

from assay.expressions.shared_columns import exactly

_FLAGS = ("is_truncated", "truncated")
_REASONS = ("finish_reason", "stop_reason")
_REASONS_OF_LIMITS = ("length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded")
_CONDITION = "stop_condition"
_CONDITIONS_OF_LIMITS = (
    *("max_turns", "max_input_tokens", "max_output_tokens", "max_total_tokens"),
    "compaction_failed",
)
CUT_OFF = "cut_off"


def cut_off(schema: pl.Schema) -> pl.Expr | None:
    """Return whether a rollout ended at a limit, as a Boolean expression; None if no column says so.

    Its own column ``cut_off`` wins. Else it is true if a flag (``is_truncated``, ``truncated``) is true or 1, or if the
    ``finish_reason``, ``stop_reason`` or ``stop_condition`` is one of limits; null where none of them has a value.
    """
    if schema.get(CUT_OFF) == pl.Boolean:
        return pl.col(CUT_OFF)
    signs = [sign for name in (*_FLAGS, *_REASONS, _CONDITION) if (sign := _sign(name, schema.get(name))) is not None]
    if not signs:
        return None
    is_known = pl.any_horizontal(sign.is_not_null() for sign in signs)
    return pl.when(is_known).then(pl.any_horizontal(sign.fill_null(value=False) for sign in signs))


def _sign(name: str, dtype: pl.DataType | None) -> pl.Expr | None:
    value = exactly(name)
    if isinstance(dtype, pl.Categorical | pl.Enum):
        dtype, value = pl.String(), value.cast(pl.String)
    if name in _FLAGS:
        if dtype == pl.String:
            return value.is_in(["1", "true"])
        return value == 1 if dtype is not None and dtype.is_numeric() else value if dtype == pl.Boolean else None
    if dtype != pl.String:
        return None
    if name == _CONDITION:
        return value.is_in(_CONDITIONS_OF_LIMITS)
    return value.str.strip_chars().str.to_lowercase().is_in(_REASONS_OF_LIMITS)
