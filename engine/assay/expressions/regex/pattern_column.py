r"""``re.search`` with a pattern on every row: hundreds of thousands of patterns, few of them equal.

Compiling a pattern costs more than searching with it, so most rows should avoid compiling. A pattern that is a plain sequence of
characters, classes and anchors contains a literal that every match contains; a text without that literal has no match, which one
column-to-column search finds out. A pattern that is a literal, or a literal between ``\b``, needs no compiling: expressions parse
it and look at the neighbours of the literal's first occurrence. Patterns that differ only in their literals share a few compiled ones
(``templates``). The remaining patterns are compiled once each, and run on the linear engine where ``re`` might take long.
"""

import contextlib
import re
from collections.abc import Sequence
from functools import partial

import polars as pl

from assay.expressions.regex.search import linear_answers, route, search_here
from assay.expressions.regex.templates import search_templates
from assay.expressions.regex.trees.charsets import is_word_character
from assay.expressions.shared_columns import once
from assay.expressions.text import ASCII_ALIKE, ascii_lower, contains_column, in_slices, is_ascii
from assay.thresholds import THRESHOLDS

_LONGEST = 100_000
"""Longest pattern, in code points, that is parsed for its literal; parsing takes memory for each of them."""

_PLAIN = r"(?:[A-Za-z0-9 _,;:=<>@!%&#~'\"`/-]|[^\x00-\x7F])"
_ESCAPED = r"\\[ .^$*+?{}\[\]()|\\,;:=<>@!%&#~'\"/-]"
_CLASS = r"(?:\.|\\[dDsSwW])"
_ANCHOR = r"(?:\\[bBAZ]|\^|\$)"
_SEQUENCE = re.compile(rf"(?:(?:{_PLAIN}|{_ESCAPED}|{_CLASS})[*+?]?|{_ANCHOR})*")
_TOKEN = re.compile(rf"(?P<char>{_PLAIN}|{_ESCAPED})(?P<often>[*+?]?)|{_CLASS}[*+?]?|{_ANCHOR}")
_WORD = rf"\A(?P<inline>\(\?i\))?(?P<before>\\b)?(?P<literal>(?:{_PLAIN}|{_ESCAPED})+)(?P<after>\\b)?\z"
_WORD_PATTERN = re.compile(_WORD.replace(r"\A", "").replace(r"\z", ""))
_ESCAPE = r"\\(.)"
_INLINE = "(?i)"

_WORD_PARTS = pl.Struct({"literal": pl.String, **dict.fromkeys(("folds", "before", "after"), pl.Boolean)})
"""A pattern that is just a literal, in lower case if case is ignored, with a word boundary ``before`` and ``after`` it."""


def _words(patterns: pl.Series, flags: int) -> pl.Series:
    """Return the ``_WORD_PARTS`` of each pattern; null for other patterns."""
    frame = patterns.to_frame("pattern").select_seq(pl.col("pattern").str.extract_groups(_WORD).struct.unnest())
    folds = pl.lit(bool(flags & re.IGNORECASE)) | pl.col("inline").is_not_null()
    frame = frame.with_columns_seq(pl.col("literal").str.replace_all(_ESCAPE, "$1"), folds=folds)
    literal, folds = pl.col("literal"), pl.col("folds")
    word = pl.struct(
        literal=pl.when(folds).then(literal.str.to_lowercase()).otherwise(literal),
        folds=folds,
        before=pl.col("before").is_not_null(),
        after=pl.col("after").is_not_null(),
    )
    # beyond ASCII, IGNORECASE matches more than what is equal in lower case
    return frame.select_seq(pl.when(literal.is_not_null() & (is_ascii(literal) | folds.not_())).then(word)).to_series()


def needed_literal(pattern: str, *, folds: bool) -> str | None:
    """Return a literal that every match of a pattern contains, without compiling the pattern."""
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
    return 0 <= at < len(text) and is_word_character(text[at])


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


def search_uncompiled(pattern: str, text: str, flags: int) -> bool | None:
    """Return whether ``re.search`` finds a pattern, where that is certain without compiling it; else None."""
    folds = bool(flags & re.IGNORECASE) or pattern.startswith(_INLINE)
    if folds and not text.isascii():
        return None
    haystack = text.lower() if folds else text
    word = _WORD_PATTERN.fullmatch(pattern) if len(pattern) <= _LONGEST else None
    if word is None or (folds and not word["literal"].isascii()):
        needed = needed_literal(pattern.removeprefix(_INLINE), folds=folds)
        return None if needed is None or needed in haystack else False
    literal = re.sub(_ESCAPE, r"\1", word["literal"], flags=re.DOTALL)
    before, after = word["before"] is not None, word["after"] is not None
    return _between_boundaries(haystack, literal.lower() if folds else literal, before=before, after=after)


_WORD_BYTES = pl.Series([is_word_character(chr(byte)) if byte < 128 else None for byte in range(256)])  # noqa: PLR2004


def _search_bounded(rows: pl.DataFrame) -> pl.Series:
    """``_between_boundaries`` for rows whose ``haystack`` contains the ``literal``."""
    size, start = pl.col("literal").str.len_bytes(), pl.col("haystack").str.find(pl.col("literal"), literal=True)
    rows = rows.with_columns_seq(bytes=pl.col("haystack").cast(pl.Binary), start=start.cast(pl.Int64), size=size)
    start, end = pl.col("start"), pl.col("start") + pl.col("size")
    left, first, last, right = (_is_word_at(rows, at) for at in (start - 1, start, end - 1, end))
    result = ((left != first) | ~rows["before"]) & ((last != right) | ~rows["after"])
    rows = rows.with_columns_seq(found=pl.when(first.is_not_null()).then(result)).with_row_index("which")
    missed = rows.filter(~pl.col("found"))
    behind = missed.select_seq(pl.col("bytes").bin.slice(start + 1).cast(pl.String)).to_series()
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
    return _WORD_BYTES.gather(rows.select_seq(byte.fill_null(0)).to_series())  # beyond the text: no byte, not a word


def search_patterns_expr(texts: pl.Expr, patterns: pl.Expr, flags: int = 0) -> pl.Expr:
    """Search each text with the pattern of its row; an empty pattern finds nothing."""
    run = partial(_search_batch, flags=flags)
    return pl.map_batches([texts, patterns], run, return_dtype=pl.Boolean, is_elementwise=True)


def _search_batch(columns: Sequence[pl.Series], flags: int) -> pl.Series:
    text, pattern = columns
    words = once(pl.col("pattern"), partial(_words, flags=flags), _WORD_PARTS)
    frame = pl.DataFrame({"text": text, "pattern": pattern}).with_row_index("at").with_columns_seq(word=words)
    answers = frame.select_seq(pl.when(pl.col("pattern") == "").then(pl.lit(value=False))).to_series()
    rows = frame.filter(pl.col("word").is_not_null() & answers.is_null())
    folds = rows["word"].struct.field("folds").any()  # only lowering makes new texts
    matches = in_slices(_search_words, [rows["text"], rows["word"]], None if folds else rows.height)
    answers = answers.scatter(rows["at"], matches)
    rest = frame.filter(answers.is_null() & pl.col("text").is_not_null() & pl.col("pattern").is_not_null())
    often = (
        rest["word"].is_not_null() | rest.select_seq(pl.len().over("pattern") >= THRESHOLDS.pattern_rows).to_series()
    )
    answers = _search_compiled(rest.filter(often).select_seq("at", "text", "pattern"), flags, answers)
    rest = rest.filter(~often).select_seq("at", "text", "pattern")
    answers = answers.scatter(rest["at"], search_templates(rest["text"], rest["pattern"], flags))
    rest = rest.filter(answers.gather(rest["at"]).is_null())
    possible = in_slices(partial(_may_match, flags=flags), [rest["text"], rest["pattern"]])
    answers = answers.scatter(rest["at"].filter(~possible), values=False)
    return _search_compiled(rest.filter(possible), flags, answers).alias(text.name)


def _search_words(columns: Sequence[pl.Series]) -> pl.Series:
    """Search with ``_WORD_PARTS``."""
    rows = pl.DataFrame({"text": columns[0], "word": columns[1]}).unnest("word")
    rows = _folded(rows).with_row_index("row")
    has = contains_column(rows["haystack"], rows["literal"])
    edge = has & (rows["before"] | rows["after"])
    bounded = rows.filter(edge)
    return has.scatter(bounded["row"], _search_bounded(bounded.drop("row")))


def _may_match(columns: Sequence[pl.Series], flags: int) -> pl.Series:
    """Return whether the texts contain the literal that every match of their patterns contains."""
    rows = pl.DataFrame({"text": columns[0], "pattern": columns[1]})
    folds = pl.lit(bool(flags & re.IGNORECASE)) | pl.col("pattern").str.starts_with(_INLINE)
    rows = rows.with_columns_seq(folds=folds)
    literals = once(pl.col("needed"), _needed_literals, pl.String)
    needed = pl.when("folds").then(pl.lit(_INLINE)).otherwise(pl.lit("")) + pl.col("pattern").str.strip_prefix(_INLINE)
    rows = _folded(rows.with_columns_seq(needed=needed).with_columns_seq(literal=literals))
    return contains_column(rows["haystack"], rows["literal"]).fill_null(value=True)


def _needed_literals(patterns: pl.Series) -> pl.Series:
    texts = patterns.to_list()
    needed = [needed_literal(text.removeprefix(_INLINE), folds=text.startswith(_INLINE)) for text in texts]
    return pl.Series(needed, dtype=pl.String)


def _folded(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the ``haystack`` in which to search for literals: the text, its ASCII letters in lower case if case is ignored."""
    if not rows["folds"].any():
        return rows.with_columns_seq(haystack="text")
    folds = rows["folds"] & rows["text"].is_not_null()
    at = folds.arg_true()
    texts = rows["text"].gather(at)
    alike = texts.str.contains(ASCII_ALIKE)
    lowered = ascii_lower(texts).zip_with(~alike, pl.Series([None], dtype=pl.String))
    return rows.with_columns_seq(haystack=rows["text"].scatter(at, lowered))


def _search_compiled(rows: pl.DataFrame, flags: int, answers: pl.Series) -> pl.Series:
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
