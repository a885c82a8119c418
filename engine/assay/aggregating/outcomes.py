"""What became of a rollout: how it ended, as its columns say, and what explains its reward; each rule as a row function beside its expression."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import polars as pl

from assay.aggregating.aggregate import longest_label
from assay.expressions.mixed import JSON, TYPED
from assay.expressions.readable import readable, readable_value
from assay.expressions.shared_columns import exactly, rowwise
from assay.expressions.text import strip_expr
from assay.names import CUT_OFF, HIDDEN, OUTCOME
from assay.steps.subject import NOTHING

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

OutcomeName = Literal["pass", "fail", "not_found", "truncated", "error", "unscored"]

OUTCOMES: tuple[OutcomeName, ...] = ("pass", "fail", "not_found", "truncated", "error", "unscored")
"""All outcomes, in the order in which people read them."""


def is_cut_off(row: Mapping[str, Any]) -> bool | None:
    """Return whether a rollout ended at a limit; None if no column says how it ended.

    It did if a flag (``is_truncated``, ``truncated``) is true, 1, ``"1"`` or ``"true"``, or if the ``finish_reason``,
    ``stop_reason`` or ``stop_condition`` is one of limits.
    """
    known = {name: value for name in SIGNS if (value := row.get(_given(name, row))) is not None}
    return any(_tells(name, value) for name, value in known.items()) if known else None


def _tells(name: str, value: Any) -> bool:
    value = readable_value(value)
    if not isinstance(value, str):
        return name in _FLAGS and not isinstance(value, Collection) and bool(value == 1)
    if name in _FLAGS:
        return value in ("1", "true")
    return value in _CONDITIONS_OF_LIMITS if name == _CONDITION else value.strip().lower() in _REASONS_OF_LIMITS


def _json_tells(name: str, text: str) -> bool:
    return _tells(name, json.loads(text))


def cut_off_expr(schema: Mapping[str, Any], column: Callable[[str], pl.Expr] = exactly) -> pl.Expr | None:
    """``is_cut_off`` as a Boolean expression, given what returns a column as it was; None if there is no such column."""
    names = {name: given for name in SIGNS if (given := _given(name, schema)) in schema}
    if not names:
        return None
    known, signs = zip(*(_sign(name, column(given), schema[given]) for name, given in names.items()), strict=True)
    return pl.when(pl.any_horizontal(known)).then(pl.any_horizontal(sign.fill_null(value=False) for sign in signs))


def _given(name: str, names: Collection[str]) -> str:
    """Return the column of a sign: the hidden one, which a preset gives to a run that only counts outcomes, or that of its name."""
    return hidden if (hidden := HIDDEN + name) in names else name


def _sign(name: str, value: pl.Expr, dtype: Any) -> tuple[pl.Expr, pl.Expr]:
    """Return whether a column has a value, and whether that is one of a limit."""
    if dtype == TYPED:
        text = value.struct.field(JSON)
        return text.is_not_null(), rowwise(text, partial(_json_tells, name), pl.Boolean)
    known = value.is_not_null()
    value, dtype = readable(value, dtype, as_text=True)
    if isinstance(dtype, pl.Categorical | pl.Enum):
        value, dtype = value.cast(pl.String), pl.String()
    if name in _FLAGS:
        flags = {pl.String: value.is_in(["1", "true"]), pl.Boolean: value}
        return known, flags.get(dtype.base_type(), value == 1 if dtype.is_numeric() else pl.lit(value=False))
    if dtype != pl.String:
        return known, pl.lit(value=False)
    if name == _CONDITION:
        return known, value.is_in(_CONDITIONS_OF_LIMITS)
    return known, strip_expr(value).str.to_lowercase().is_in(_REASONS_OF_LIMITS)


def cut_off_sql(schema: Mapping[str, Any]) -> str:
    """Return the condition in SQL that a rollout ended at a limit; ``""`` if a column has a type in which SQL sees no texts."""
    present = {name: schema[name] for name in SIGNS if name in schema}
    if any(dtype in (pl.Binary, TYPED) or isinstance(dtype, pl.BaseExtension) for dtype in present.values()):
        return ""
    return " OR ".join(filter(None, (_sql(name, dtype) for name, dtype in present.items())))


def _sql(name: str, dtype: Any) -> str:
    if name in _FLAGS and (dtype == pl.Boolean or dtype.is_numeric()):
        return name if dtype == pl.Boolean else f"{name} = 1"
    value = f"CAST({name} AS STRING)" if isinstance(dtype, pl.Categorical | pl.Enum) else name
    if dtype != pl.String and value == name:
        return ""
    if name in _FLAGS:
        return f"{value} IN ('1', 'true')"
    if name == _CONDITION:
        return f"{value} IN {_CONDITIONS_OF_LIMITS}"
    return f"LOWER(TRIM({value})) IN {_REASONS_OF_LIMITS}"


def finds_nothing(feedback: str, labels: Collection[str], of: Collection[str] | None = None) -> bool:
    """Return whether a line of feedback says, behind its label, that a check found nothing to compare; ``of`` names those that count."""
    counted = labels if of is None else of
    found = ((line, longest_label(line, labels)) for line in feedback.split("\n"))
    return any(label in counted and line.startswith(NOTHING, len(label)) for line, label in found if label is not None)


def finds_nothing_expr(feedback: pl.Expr, labels: Iterable[str], of: Collection[str] | None = None) -> pl.Expr:
    """``finds_nothing`` as a Boolean expression; null without feedback."""
    labels = {label for label in labels if "\n" not in label}
    counted = labels if of is None else labels & {*of}
    begins = tuple(f"{label}{NOTHING}" for label in sorted(counted))
    if any(label.startswith(begins) for label in labels):  # one may begin what is behind another
        found = partial(finds_nothing, labels=frozenset(labels), of=frozenset(counted))
        return rowwise(feedback, found, pl.Boolean)
    if not begins:
        return pl.lit(value=False)
    return (pl.lit("\n") + feedback).str.contains_any([f"\n{words}" for words in begins])


def outcome_of_row(result: Mapping[str, Any], labels: Collection[str]) -> OutcomeName:
    """Return the outcome of a row, given its results and what lines of its feedback begin with: the first that holds."""
    if result["reward"] is None:
        return "unscored"
    if result["passed"]:
        return "pass"
    if result["error"] is not None:
        return "error"
    if result[CUT_OFF]:
        return "truncated"
    return "not_found" if finds_nothing(result["feedback"] or "", labels) else "fail"


def outcome_of_row_expr(columns: Mapping[str, pl.Expr], labels: Iterable[str]) -> pl.Expr:
    """``outcome_of_row`` as a String expression over columns by the names that it reads; those that are missing hold nowhere."""
    none = pl.lit(None, dtype=pl.Boolean)
    rules: Sequence[tuple[OutcomeName, pl.Expr]] = (
        ("unscored", columns["reward"].is_null()),
        ("pass", columns["passed"]),
        ("error", columns["error"].is_not_null() if "error" in columns else none),
        ("truncated", columns.get(CUT_OFF, none)),
        ("not_found", finds_nothing_expr(columns["feedback"], labels) if "feedback" in columns else none),
    )
    words: Any = pl
    for outcome, holds in rules:
        words = words.when(holds).then(pl.lit(outcome))
    return words.otherwise(pl.lit("fail")).alias(OUTCOME)  # type: ignore[no-any-return]
