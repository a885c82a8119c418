r"""``re.search`` with a pattern on every row: hundreds of thousands of patterns, few of them alike.

Compiling a pattern costs more than searching with it, so most rows should never need it compiled. A pattern that is a plain
sequence of characters, classes and anchors has a literal that every match holds; a text without that literal has no match, and
one column-to-column search says which. A pattern that is a literal, or one between ``\b``, needs no compiling at all. What is
left is compiled once a pattern, and goes to the linear engine where ``re`` might take long.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl

from assay.lanes.base import nothing, rowwise
from assay.lanes.fncolumns import IGNORE_CASE
from assay.lanes.pattern import compile_pattern, linear_answers, quick, route
from assay.lanes.words import ASCII_ALIKE, ascii_lower_expr, contains_column

__all__ = ["Anatomy", "anatomy", "regex_match_expr"]

_TRIES = 16
"""Places of a literal that are looked at one by one."""
_MANY = 256
"""Rows of one pattern from which on the linear engine earns what it costs to compile."""

_PLAIN = r"[A-Za-z0-9 _,;:=<>@!%&#~'\"/-]"
_ESCAPED = r"\\[ .^$*+?{}\[\]()|\\,;:=<>@!%&#~'\"/-]"
_CLASS = r"(?:\.|\\[dDsSwW])"
_ANCHOR = r"(?:\\[bBAZ]|\^|\$)"
_SEQUENCE = re.compile(rf"(?:\(\?i\))?(?:(?:{_PLAIN}|{_ESCAPED}|{_CLASS})[*+?]?|{_ANCHOR})*", re.ASCII)
_TOKEN = re.compile(rf"(?P<char>{_PLAIN}|{_ESCAPED})(?P<often>[*+?]?)|{_CLASS}[*+?]?|{_ANCHOR}")
_WORD = re.compile(rf"(?P<before>\\b)?(?P<literal>(?:{_PLAIN}|{_ESCAPED})+)(?P<after>\\b)?")
_ESCAPE = re.compile(r"\\(.)")
_INLINE = "(?i)"


@dataclass(frozen=True)
class Anatomy:
    """What can be said of a pattern without compiling it.

    Attributes:
        literal: What every match holds, in lower case where case does not count; None when nothing is known.
        folds: Whether case does not count.
        whole: Whether the literal, between the boundaries, is all there is to match.
        before: Whether a word boundary must stand before the literal.
        after: Whether one must stand after it.
    """

    literal: str | None = None
    folds: bool = False
    whole: bool = False
    before: bool = False
    after: bool = False


def anatomy(pattern: str, flags: int = 0) -> Anatomy:
    """Take a pattern apart; a pattern that Python would refuse is never taken apart.

    Args:
        pattern: A regular expression.
        flags: ``re.IGNORECASE`` or 0.
    """
    if not _SEQUENCE.fullmatch(pattern):
        return Anatomy()
    folds = bool(flags & re.IGNORECASE) or pattern.startswith(_INLINE)
    body = pattern.removeprefix(_INLINE)
    if (word := _WORD.fullmatch(body)) is not None:
        literal = _ESCAPE.sub(r"\1", word["literal"])
        return Anatomy(literal.lower() if folds else literal, folds, True, bool(word["before"]), bool(word["after"]))
    runs = [""]
    for token in _TOKEN.finditer(body):
        char, often = token["char"], token["often"]
        if char is None or often in ("*", "?"):
            runs.append("")
        else:
            runs[-1] += char[-1]
            if often:
                runs.append("")
    literal = max(runs, key=len)
    return Anatomy((literal.lower() if folds else literal) or None, folds)


def _is_word(text: str, at: int) -> bool:
    return 0 <= at < len(text) and (text[at].isalnum() or text[at] == "_")  # what re calls \w


def _between_boundaries(text: str, literal: str, *, before: bool, after: bool) -> bool | None:
    r"""Whether the literal occurs with ``\b`` on the sides asked for; None where it occurs too often to look at each."""
    at = -1
    for _ in range(_TRIES):
        at = text.find(literal, at + 1)
        if at < 0:
            return False
        end = at + len(literal)
        if (not before or _is_word(text, at - 1) != _is_word(text, at)) and (
            not after or _is_word(text, end - 1) != _is_word(text, end)
        ):
            return True
    return None


def regex_match_expr(output: pl.Expr, expected: pl.Expr, params: Mapping[str, Any]) -> pl.Expr:
    """``fns.regex_match`` as an elementwise expression; null where the definition must answer."""
    run = partial(_search_batch, flags=re.IGNORECASE if params.get(IGNORE_CASE) else 0)
    return pl.map_batches([output, expected], run, return_dtype=pl.Boolean, is_elementwise=True)


_ANATOMY = pl.Struct({"literal": pl.String, **dict.fromkeys(("folds", "whole", "before", "after"), pl.Boolean)})


def _search_batch(columns: Sequence[pl.Series], flags: int) -> pl.Series:
    text, pattern = columns
    known = rowwise(pl.col("pattern"), lambda one: vars(anatomy(one, flags)), _ANATOMY, distinct=True)
    frame = pl.DataFrame({"text": text, "pattern": pattern}).with_columns(known.struct.unnest())
    # an ASCII literal meets only ASCII under IGNORECASE, but for these; NOTE: blank, for the engine works behind nulls too
    folded = pl.when("folds").then("text").otherwise(pl.lit(""))
    alike = folded.str.contains(ASCII_ALIKE)
    frame = frame.with_columns(
        seen=pl.when(pl.col("folds").not_()).then("text").when(alike.not_()).then(ascii_lower_expr(folded))
    )
    frame = frame.with_columns(contains_column(frame["seen"], frame["literal"]).alias("has"))
    bare = pl.col("whole") & (pl.col("before") | pl.col("after")).not_()
    settled = pl.when((pl.col("pattern") == "") | pl.col("has").not_()).then(pl.lit(value=False))
    frame = frame.with_row_index("at").with_columns(found=settled.when(pl.col("has") & bare).then(pl.lit(value=True)))
    open_ = frame.filter(pl.col("found").is_null())
    if not open_.height:
        return frame["found"].alias(text.name)
    words = open_.filter(pl.col("whole") & pl.col("has"))
    by_word = [
        _between_boundaries(seen, literal, before=before, after=after)
        for seen, literal, before, after in words.select("seen", "literal", "before", "after").iter_rows()
    ]
    rest = open_.filter((pl.col("whole") & pl.col("has")).fill_null(value=False).not_())
    found = [
        frame.filter(pl.col("found").is_not_null()).select("at", "found"),
        words.select("at").with_columns(found=pl.Series(by_word, dtype=pl.Boolean)),
        *_compiled(rest.select("at", "text", "pattern"), flags),
    ]
    return pl.concat(found).sort("at")["found"].alias(text.name)


def _compiled(rows: pl.DataFrame, flags: int) -> list[pl.DataFrame]:
    """Rows answered with their patterns compiled, each pattern once."""
    rows = rows.sort("pattern", maintain_order=True)
    found: list[pl.Series] = []
    start = 0
    for size, pattern in rows.select(pl.col("pattern").rle().struct.unnest()).iter_rows():
        found.append(_search_all(rows["text"].slice(start, size), pattern, flags))
        start += size
    return [rows.select("at").with_columns(found=pl.concat(found))] if found else []


def _search_all(texts: pl.Series, pattern: str, flags: int) -> pl.Series:
    """One pattern. Null where it backtracks, for the definition has a limit, and where Python refuses the pattern."""
    easy = quick(pattern, texts.str.len_bytes().max() or 0)  # type: ignore[arg-type]
    try:
        if not easy or len(texts) >= _MANY:
            way = route(pattern, flags)
            if way.linear or not easy:
                return linear_answers(texts, way)
        compiled = compile_pattern(pattern, flags)
        return pl.Series([compiled.search(text) is not None for text in texts.to_list()], dtype=pl.Boolean)
    except Exception:  # noqa: BLE001  (the definition will say what is wrong, row by row)
        return nothing(texts, pl.Boolean)
