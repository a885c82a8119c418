"""What became of a rollout beside its reward, from columns that it brings."""

import polars as pl

_FLAGS = ("is_truncated", "truncated")
_REASONS = ("finish_reason", "stop_reason")
_REASONS_OF_LIMITS = ("length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded")
_CONDITION = "stop_condition"
_CONDITIONS_OF_LIMITS = (
    *("max_turns", "max_input_tokens", "max_output_tokens", "max_total_tokens"),
    "compaction_failed",
)
SIGNS = (*_FLAGS, *_REASONS, _CONDITION)
"""Columns that say how a rollout ended."""
CUT_OFF = "cut_off"


def cut_off(schema: pl.Schema) -> pl.Expr | None:
    """Return whether a rollout ended at a limit, as a Boolean expression; None if no column says so.

    Its own column ``cut_off`` wins. Else it is true if a flag (``is_truncated``, ``truncated``) is true or 1, or if the
    ``finish_reason``, ``stop_reason`` or ``stop_condition`` is one of limits; null where none of them has a value.
    """
    signs = [pl.sql_expr(sign) for sign in _signs(schema)]
    if not signs:
        return None
    is_known = pl.any_horizontal(sign.is_not_null() for sign in signs)
    return pl.when(is_known).then(pl.any_horizontal(sign.fill_null(value=False) for sign in signs))


def cut_off_sql(schema: pl.Schema) -> str:
    """Return the condition in SQL that a rollout ended at a limit; ``""`` if no column says so."""
    return " OR ".join(_signs(schema))


def _signs(schema: pl.Schema) -> list[str]:
    if schema.get(CUT_OFF) == pl.Boolean:
        return [CUT_OFF]
    signs = (_sign(name, schema.get(name)) for name in SIGNS)
    return [sign for sign in signs if sign]


def _sign(name: str, dtype: pl.DataType | None) -> str:
    if name in _FLAGS and (dtype == pl.Boolean or (dtype is not None and dtype.is_numeric())):
        return name if dtype == pl.Boolean else f"{name} = 1"
    value = f"CAST({name} AS STRING)" if isinstance(dtype, pl.Categorical | pl.Enum) else name
    if dtype != pl.String and value == name:
        return ""
    if name in _FLAGS:
        return f"{value} IN ('1', 'true')"
    if name == _CONDITION:
        return f"{value} IN {_CONDITIONS_OF_LIMITS}"
    return f"LOWER(TRIM({value})) IN {_REASONS_OF_LIMITS}"
