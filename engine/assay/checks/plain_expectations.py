"""Expectations that JSON text writes in the usual form, as columns: the objects of both sides have no more than lists of phrases.

Such a text is cut at its quotes: what stands before a string says what the string is.
"""

import polars as pl

from assay.expressions.json import STRING, loads, mended
from assay.expressions.shared_columns import in_lists

_ESCAPES = {r"\\": "\ue000", r"\"": "\ue001"}
"""The escapes with which a string could seem to end earlier or later, and marks for them."""
_MARKS = f"[{''.join(_ESCAPES.values())}]"
_UNSET = '"(?:text|message)": ?null'
_ENTRY = rf'\{{(?:{_UNSET}, ?)*"anyOf": ?\[{STRING}(?:, ?{STRING})*\](?:, ?{_UNSET})*\}}'
_LIST = rf"(?:\[(?:{_ENTRY}(?:, ?{_ENTRY})*)?\]|null)"
_FORBIDDEN = rf'"mustNotMention": ?{_LIST}'
_USUAL = rf'\A\{{"expectations": ?\{{(?:"mustMention": ?{_LIST}(?:, ?{_FORBIDDEN})?|{_FORBIDDEN})\}}\}}\z'


def is_usual(texts: pl.Series) -> pl.Series:
    """Return whether each text has the usual form: an object of nothing but expectations."""
    return texts.str.contains(_USUAL) & ~texts.str.contains(_MARKS)


def usual_entries(texts: pl.Series) -> pl.DataFrame:
    """Return the entries of texts of the usual form: the index of the text, whether they forbid, and their phrases."""
    has_escapes = texts.str.contains("\\", literal=True).any()
    for escape, mark in _ESCAPES.items() if has_escapes else ():
        texts = texts.str.replace_all(escape, mark, literal=True)
    # with one more quote, as many pieces of a text are strings as stand before strings
    pieces = (texts + '"').str.split('"').explode(empty_as_null=False)
    before, string = pieces.gather_every(2).alias("before"), pieces.gather_every(2, 1).alias("string")
    first = (before == ": [") | (before == ":[")
    is_phrase = first | (before == ", ") | (before == ",")
    is_begin = (string == "expectations") & ~is_phrase
    forbid = pl.when((string == "mustNotMention") & ~is_phrase).then(True).when(is_begin).then(False)
    frame = pl.DataFrame().select_seq(at=is_begin.cast(pl.UInt32).cum_sum() - 1, forbid=forbid.forward_fill())
    starts = first.filter(is_phrase).arg_true()
    phrases = string.filter(is_phrase)
    sizes = pl.concat([starts, pl.Series([len(phrases)], dtype=starts.dtype)]).diff(null_behavior="drop")
    return frame.filter(first).with_columns_seq(
        in_lists(_decoded(phrases) if has_escapes else phrases, sizes).alias("phrases")
    )


def _decoded(strings: pl.Series) -> pl.Series:
    """Decode strings of JSON in which marks stand for some escapes."""
    at = strings.str.contains("[\\\\" + "".join(_ESCAPES.values()) + "]").arg_true()
    escaped = strings.gather(at)
    for escape, mark in _ESCAPES.items():
        escaped = escaped.str.replace_all(mark, escape, literal=True)
    decoded = [mended(str(loads(f'"{text}"'))) for text in escaped.to_list()]
    return strings.scatter(at, pl.Series(decoded, dtype=pl.String)) if decoded else strings
