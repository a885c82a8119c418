r"""``re.search`` with a pattern on every row: hundreds of thousands of patterns, few of them equal.

Compiling a pattern costs more than searching with it, so most rows should avoid compiling. A pattern that is a plain sequence of
characters, classes and anchors contains a literal that every match contains; a text without that literal has no match, which one
column-to-column search finds out. A pattern that is a literal, or a literal between ``\b``, needs no compiling: expressions parse
it and look at the neighbours of the literal's first occurrence. The remaining patterns are compiled once each, and run on the
linear engine where ``re`` might take long.
"""

import contextlib
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import polars as pl

from assay.expressions.lane import once, rowwise
from assay.expressions.regex.search import linear_answers, route, search_here
from assay.expressions.text import ASCII_ALIKE, ascii_lower_expr, contains_column, is_ascii
from assay.functions.text_twins import IGNORE_CASE
from assay.thresholds import THRESHOLDS

__all__ = ["needed_literal", "regex_match_expr"]

_LONGEST = 100_000
"""Longest pattern, in code points, that is parsed for its literal; parsing takes memory for each of them."""

_PLAIN = r"(?:[A-Za-z0-9 _,;:=<>@!%&#~'\"`/-]|[^\x00-\x7F])"
_ESCAPED = r"\\[ .^$*+?{}\[\]()|\\,;:=<>@!%&#~'\"/-]"
_CLASS = r"(?:\.|\\[dDsSwW])"
_ANCHOR = r"(?:\\[bBAZ]|\^|\$)"
_SEQUENCE = re.compile(rf"(?:(?:{_PLAIN}|{_ESCAPED}|{_CLASS})[*+?]?|{_ANCHOR})*")
_TOKEN = re.compile(rf"(?P<char>{_PLAIN}|{_ESCAPED})(?P<often>[*+?]?)|{_CLASS}[*+?]?|{_ANCHOR}")
_WORD = rf"\A(?P<inline>\(\?i\))?(?P<before>\\b)?(?P<literal>(?:{_PLAIN}|{_ESCAPED})+)(?P<after>\\b)?\z"
_ESCAPE = r"\\(.)"
_INLINE = "(?i)"

_ANATOMY = pl.Struct({"literal": pl.String, **dict.fromkeys(("folds", "whole", "before", "after"), pl.Boolean)})
"""What is known of a pattern without compiling it.

``literal``: text that every match contains, in lower case if case is ignored; null if unknown. ``folds``: whether case is
ignored. ``whole``: whether the pattern is just the literal, with a word boundary ``before`` and ``after`` it.
"""


def _anatomies(patterns: pl.Series, flags: int) -> pl.Series:
    """Return the ``_ANATOMY`` of each pattern; most are literals or words between boundaries."""
    frame = patterns.to_frame("pattern").with_columns(pl.col("pattern").str.extract_groups(_WORD).struct.unnest())
    folds = pl.lit(bool(flags & re.IGNORECASE)) | pl.col("inline").is_not_null()
    frame = frame.with_columns(pl.col("literal").str.replace_all(_ESCAPE, "$1"), folds=folds)
    literal, folds = pl.col("literal"), pl.col("folds")
    # beyond ASCII, IGNORECASE matches more than what is equal in lower case
    frame = frame.with_columns(whole=literal.is_not_null() & (is_ascii(literal) | folds.not_()))
    whole = pl.col("whole")
    word = pl.struct(
        literal=pl.when(folds).then(literal.str.to_lowercase()).otherwise(literal),
        folds=folds,
        whole=whole,
        before=pl.col("before").is_not_null(),
        after=pl.col("after").is_not_null(),
    )
    other = rowwise(pl.when(whole.not_()).then("pattern"), partial(_other_anatomy, flags=flags), _ANATOMY)
    return frame.select(pl.when(whole).then(word).otherwise(other)).to_series()


def _other_anatomy(pattern: str, flags: int) -> dict[str, Any]:
    folds = bool(flags & re.IGNORECASE) or pattern.startswith(_INLINE)
    literal = needed_literal(pattern.removeprefix(_INLINE), folds=folds)
    return {"literal": literal, "folds": folds, "whole": False, "before": False, "after": False}


def needed_literal(pattern: str, *, folds: bool) -> str | None:
    """Return a literal that every match of a pattern contains, without compiling the pattern.

    Args:
        pattern: A regular expression without inline flags.
        folds: Whether case is ignored; the literal is then lower-case ASCII.

    Returns:
        The longest such literal; None if unknown. An invalid pattern has none.
    """
    if len(pattern) > _LONGEST or not _SEQUENCE.fullmatch(pattern):
        return None
    runs = [""]
    for token in _TOKEN.finditer(pattern):
        char, quantifier = token["char"], token["often"]
        if char is None or quantifier in ("*", "?") or (folds and not char.isascii()):
            runs.append("")
        else:
            runs[-1] += char[-1]
            if quantifier:
                runs.append("")
    literal = max(runs, key=len)
    return (literal.lower() if folds else literal) or None


def _is_word(text: str, at: int) -> bool:
    return 0 <= at < len(text) and (text[at].isalnum() or text[at] == "_")  # as \w in re


def _between_boundaries(text: str, literal: str, *, before: bool, after: bool) -> bool | None:
    r"""Whether the literal occurs with ``\b`` on the given sides; None if it occurs too often to look at each occurrence."""
    at = -1
    for _ in range(THRESHOLDS.literal_places):
        at = text.find(literal, at + 1)
        if at < 0:
            return False
        end = at + len(literal)
        if (not before or _is_word(text, at - 1) != _is_word(text, at)) and (
            not after or _is_word(text, end - 1) != _is_word(text, end)
        ):
            return True
    return None


_WORD_BYTES = pl.Series([chr(byte).isalnum() or chr(byte) == "_" if byte < 128 else None for byte in range(256)])  # noqa: PLR2004


def _search_words(rows: pl.DataFrame) -> pl.Series:
    """``_between_boundaries`` for rows whose ``haystack`` contains the ``literal``.

    Expressions look at the first occurrence; Python looks at texts that contain the literal again or have non-ASCII beside it.
    """
    size, start = pl.col("literal").str.len_bytes(), pl.col("haystack").str.find(pl.col("literal"), literal=True)
    rows = rows.with_columns(bytes=pl.col("haystack").cast(pl.Binary), start=start.cast(pl.Int64), size=size)
    start, end = pl.col("start"), pl.col("start") + pl.col("size")
    left, first, last, right = (_is_word_at(rows, at) for at in (start - 1, start, end - 1, end))
    result = ((left != first) | ~rows["before"]) & ((last != right) | ~rows["after"])
    rows = rows.with_columns(found=pl.when(first.is_not_null()).then(result)).with_row_index("which")
    missed = rows.filter(~pl.col("found"))
    behind = missed.select(pl.col("bytes").bin.slice(start + 1).cast(pl.String)).to_series()
    again = contains_column(behind, missed["literal"])
    unsure = pl.concat([missed.filter(again), rows.filter(pl.col("found").is_null())])
    answers = [
        _between_boundaries(haystack, literal, before=before, after=after)
        for haystack, literal, before, after in zip(
            *(unsure[name].to_list() for name in ("haystack", "literal", "before", "after")), strict=True
        )
    ]
    return rows["found"].scatter(unsure["which"], pl.Series(answers, dtype=pl.Boolean))


def _is_word_at(rows: pl.DataFrame, at: pl.Expr) -> pl.Series:
    """``_is_word`` for one byte of each row; null if the character has several bytes."""
    byte = pl.when(at >= 0).then(pl.col("bytes").bin.slice(at, 1)).bin.reinterpret(dtype=pl.UInt8)
    return _WORD_BYTES.gather(rows.select(byte.fill_null(0)).to_series())  # beyond the text: no byte, not a word


def regex_match_expr(output: pl.Expr, expected: pl.Expr, params: Mapping[str, Any]) -> pl.Expr:
    """``fns.regex_match`` as an elementwise expression; null where the function must run."""
    run = partial(_search_batch, flags=re.IGNORECASE if params.get(IGNORE_CASE) else 0)
    return pl.map_batches([output, expected], run, return_dtype=pl.Boolean, is_elementwise=True)


def _search_batch(columns: Sequence[pl.Series], flags: int) -> pl.Series:
    text, pattern = columns
    anatomies = once(pl.col("pattern"), partial(_anatomies, flags=flags), _ANATOMY)
    frame = (
        pl.DataFrame({"text": text, "pattern": pattern}).with_row_index("at").with_columns(anatomies.struct.unnest())
    )
    # under IGNORECASE an ASCII literal matches only ASCII, except these characters; NOTE: blank out the other texts, because
    # Polars computes null values too
    folded = pl.when("folds").then("text").otherwise(pl.lit(""))
    alike = folded.str.contains(ASCII_ALIKE)
    frame = frame.with_columns(
        haystack=pl.when(pl.col("folds").not_()).then("text").when(alike.not_()).then(ascii_lower_expr(folded))
    )
    frame = frame.with_columns(contains_column(frame["haystack"], frame["literal"]).alias("has"))
    bare = pl.col("whole") & (pl.col("before") | pl.col("after")).not_()
    settled = pl.when((pl.col("pattern") == "") | pl.col("has").not_()).then(pl.lit(value=False))
    answers = frame.select(found=settled.when(pl.col("has") & bare).then(pl.lit(value=True))).to_series()
    unanswered = frame.filter(answers.is_null())
    is_word = (unanswered["whole"] & unanswered["has"]).fill_null(value=False)
    words, rest = unanswered.filter(is_word), unanswered.filter(~is_word)
    answers = answers.scatter(words["at"], _search_words(words))
    return _search_compiled(rest.select("at", "text", "pattern"), flags, answers).alias(text.name)


def _search_compiled(rows: pl.DataFrame, flags: int, answers: pl.Series) -> pl.Series:
    """Fill in the answers of the rows by compiling each pattern once."""
    for part in rows.partition_by("pattern", maintain_order=True):
        answers = answers.scatter(part["at"], _search_all(part["text"], part["pattern"][0], flags))
    return answers


def _search_all(texts: pl.Series, pattern: str, flags: int) -> pl.Series:
    """Search with one pattern. Null where only ``re`` can answer, because only the definition has a limit, and if it is invalid."""
    if len(texts) >= THRESHOLDS.pattern_rows:
        with contextlib.suppress(Exception):  # the definition reports the error on each row
            chosen = route(pattern, flags)
            if chosen.in_columns:
                return linear_answers(texts, chosen)
    answers = search_here(pattern, texts.to_list(), flags=flags)
    booleans = [answer if isinstance(answer, bool) else None for answer in answers]
    return pl.Series(booleans, dtype=pl.Boolean)
