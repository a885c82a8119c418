r"""``re.search`` with a pattern on every row: hundreds of thousands of patterns, few of them alike.

Compiling a pattern costs more than searching with it, so most rows should never need it compiled. A pattern that is a plain
sequence of characters, classes and anchors has a literal that every match holds; a text without that literal has no match, and
one column-to-column search says which. A pattern that is a literal, or one between ``\b``, needs no compiling at all: columns
take it apart, and look at the neighbours of the first place where its literal is. What is left is compiled once a pattern, and
goes to the linear engine where ``re`` might take long.
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
"""Code points of a pattern that is read for its literal: reading takes memory for each of them."""

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
"""What can be said of a pattern without compiling it.

``literal``: what every match holds, in lower case where case does not count; null when nothing is known. ``folds``: whether
case does not count. ``whole``: whether the literal is all there is to match, with a word boundary ``before`` and ``after`` it.
"""


def _anatomies(patterns: pl.Series, flags: int) -> pl.Series:
    """``_ANATOMY`` of patterns, most of them literals or words between boundaries."""
    frame = patterns.to_frame("pattern").with_columns(pl.col("pattern").str.extract_groups(_WORD).struct.unnest())
    folds = pl.lit(bool(flags & re.IGNORECASE)) | pl.col("inline").is_not_null()
    frame = frame.with_columns(pl.col("literal").str.replace_all(_ESCAPE, "$1"), folds=folds)
    literal, folds = pl.col("literal"), pl.col("folds")
    # beyond ASCII, what IGNORECASE takes for alike is more than what is alike in lower case
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
    """What every match of a pattern holds, read without compiling it.

    Args:
        pattern: A regular expression, without flags of its own.
        folds: Whether case does not count; the literal is in lower case then, and all ASCII.

    Returns:
        The longest such literal; None when nothing is known. A pattern that Python would refuse has none.
    """
    if len(pattern) > _LONGEST or not _SEQUENCE.fullmatch(pattern):
        return None
    runs = [""]
    for token in _TOKEN.finditer(pattern):
        char, often = token["char"], token["often"]
        if char is None or often in ("*", "?") or (folds and not char.isascii()):
            runs.append("")
        else:
            runs[-1] += char[-1]
            if often:
                runs.append("")
    literal = max(runs, key=len)
    return (literal.lower() if folds else literal) or None


def _is_word(text: str, at: int) -> bool:
    return 0 <= at < len(text) and (text[at].isalnum() or text[at] == "_")  # what re calls \w


def _between_boundaries(text: str, literal: str, *, before: bool, after: bool) -> bool | None:
    r"""Whether the literal occurs with ``\b`` on the sides asked for; None where it occurs too often to look at each."""
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


def _words_found(rows: pl.DataFrame) -> pl.Series:
    """``_between_boundaries`` of rows whose text, ``seen``, holds the ``literal``.

    Columns look at the first place; Python looks at the texts that hold the literal again, or have no ASCII beside it.
    """
    size, start = pl.col("literal").str.len_bytes(), pl.col("seen").str.find(pl.col("literal"), literal=True)
    rows = rows.with_columns(bytes=pl.col("seen").cast(pl.Binary), start=start.cast(pl.Int64), size=size)
    start, end = pl.col("start"), pl.col("start") + pl.col("size")
    left, first, last, right = (_is_word_at(rows, at) for at in (start - 1, start, end - 1, end))
    found = ((left != first) | ~rows["before"]) & ((last != right) | ~rows["after"])
    rows = rows.with_columns(found=pl.when(first.is_not_null()).then(found)).with_row_index("which")
    missed = rows.filter(~pl.col("found"))
    behind = missed.select(pl.col("bytes").bin.slice(start + 1).cast(pl.String)).to_series()
    again = contains_column(behind, missed["literal"])
    asked = pl.concat([missed.filter(again), rows.filter(pl.col("found").is_null())])
    told = [
        _between_boundaries(seen, literal, before=before, after=after)
        for seen, literal, before, after in zip(
            *(asked[name].to_list() for name in ("seen", "literal", "before", "after")), strict=True
        )
    ]
    return rows["found"].scatter(asked["which"], pl.Series(told, dtype=pl.Boolean))


def _is_word_at(rows: pl.DataFrame, at: pl.Expr) -> pl.Series:
    """``_is_word`` of one byte of each row; null where that takes more than a byte."""
    byte = pl.when(at >= 0).then(pl.col("bytes").bin.slice(at, 1)).bin.reinterpret(dtype=pl.UInt8)
    return _WORD_BYTES.gather(rows.select(byte.fill_null(0)).to_series())  # there is none beyond the text, and no word


def regex_match_expr(output: pl.Expr, expected: pl.Expr, params: Mapping[str, Any]) -> pl.Expr:
    """``fns.regex_match`` as an elementwise expression; null where the definition must answer."""
    run = partial(_search_batch, flags=re.IGNORECASE if params.get(IGNORE_CASE) else 0)
    return pl.map_batches([output, expected], run, return_dtype=pl.Boolean, is_elementwise=True)


def _search_batch(columns: Sequence[pl.Series], flags: int) -> pl.Series:
    text, pattern = columns
    known = once(pl.col("pattern"), partial(_anatomies, flags=flags), _ANATOMY)
    frame = pl.DataFrame({"text": text, "pattern": pattern}).with_row_index("at").with_columns(known.struct.unnest())
    # an ASCII literal meets only ASCII under IGNORECASE, but for these; NOTE: blank, for the engine works behind nulls too
    folded = pl.when("folds").then("text").otherwise(pl.lit(""))
    alike = folded.str.contains(ASCII_ALIKE)
    frame = frame.with_columns(
        seen=pl.when(pl.col("folds").not_()).then("text").when(alike.not_()).then(ascii_lower_expr(folded))
    )
    frame = frame.with_columns(contains_column(frame["seen"], frame["literal"]).alias("has"))
    bare = pl.col("whole") & (pl.col("before") | pl.col("after")).not_()
    settled = pl.when((pl.col("pattern") == "") | pl.col("has").not_()).then(pl.lit(value=False))
    found = frame.select(found=settled.when(pl.col("has") & bare).then(pl.lit(value=True))).to_series()
    open_ = frame.filter(found.is_null())
    is_word = (open_["whole"] & open_["has"]).fill_null(value=False)
    words, rest = open_.filter(is_word), open_.filter(~is_word)
    found = found.scatter(words["at"], _words_found(words))
    return _compiled(rest.select("at", "text", "pattern"), flags, found).alias(text.name)


def _compiled(rows: pl.DataFrame, flags: int, found: pl.Series) -> pl.Series:
    """What is found, with the rows answered with their patterns compiled, each pattern once."""
    for part in rows.partition_by("pattern", maintain_order=True):
        found = found.scatter(part["at"], _search_all(part["text"], part["pattern"][0], flags))
    return found


def _search_all(texts: pl.Series, pattern: str, flags: int) -> pl.Series:
    """One pattern. Null where only ``re`` can tell, for the definition has a limit, and where Python refuses the pattern."""
    if len(texts) >= THRESHOLDS.pattern_rows:
        with contextlib.suppress(Exception):  # the definition will say what is wrong, row by row
            way = route(pattern, flags)
            if way.linear:
                return linear_answers(texts, way)
    answers = search_here(pattern, texts.to_list(), flags=flags)
    known = [answer if isinstance(answer, bool) else None for answer in answers]
    return pl.Series(known, dtype=pl.Boolean)
