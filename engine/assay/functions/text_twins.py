"""The built-in text functions as expressions: compare the completion with a column of expected values."""

import re
from collections.abc import Mapping
from typing import Any

import polars as pl

from assay.expressions.pairs import contain_expr, equal_expr
from assay.expressions.regex.pattern_column import search_patterns_expr

IGNORE_CASE = "ignore_case"


def exact_match_expr(output: pl.Expr, expected: pl.Expr, params: Mapping[str, Any]) -> pl.Expr:
    """``fns.exact_match`` as an elementwise expression."""
    return equal_expr(output, expected, lowered=bool(params.get(IGNORE_CASE)))


def contains_expr(output: pl.Expr, expected: pl.Expr, params: Mapping[str, Any]) -> pl.Expr:
    """``fns.contains`` as an elementwise expression."""
    return contain_expr(output, expected, lowered=bool(params.get(IGNORE_CASE))) & (expected != "")


def regex_match_expr(output: pl.Expr, expected: pl.Expr, params: Mapping[str, Any]) -> pl.Expr:
    """``fns.regex_match`` as an elementwise expression; null where the function must run."""
    return search_patterns_expr(output, expected, re.IGNORECASE if params.get(IGNORE_CASE) else 0)
