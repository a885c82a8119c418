r"""The shape of JSON texts: what remains without the strings and numbers among their values.

Texts that a program wrote with one layout have few shapes, so Python parses each shape instead of each text. JSON's grammar looks at
a string or a number only as a whole: where every string of a text is valid, the text is JSON exactly if its shape is, and both have
the same structure.
"""

from typing import NamedTuple

import polars as pl

from assay.expressions.json import loads, mended
from assay.expressions.shared_columns import in_lists, ranges, repeated

_HOLE, _NUMBER, _QUOTE, _BACKSLASH = "\ue000", "\ue001", "\ue002", "\ue003"
_ESCAPES = {"\\\\": _BACKSLASH, '\\"': _QUOTE}
"""Marks for the escapes that decide whether a quote ends a string, in the order in which they are replaced."""
_ESCAPED = rf"[\\{_QUOTE}{_BACKSLASH}]"
_MARKS = "[\ue000-\ue003]"
_UNSHAPED = 2 * _NUMBER
"""What no shape contains."""
_DIGITS = "[0-9]"
_NUMBERS = r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,18})?(?:[eE][+-]?[0-9]{1,3})?"
_ODD_NUMBER = rf"[0-9.eE+-]{_NUMBER}|{_NUMBER}[0-9.eE+{_NUMBER}-]"
"""A number that is too long for the pattern, or something that is not a number."""
_COLON = r"\A[ \t\n\r]*:"
_VALID = r"\A(?:[^\\\x00-\x1f]|\\(?:[/bfnrt]|u[0-9a-fA-F]{4}))*\z"
_ODD_CHARACTER = r"[\\\x00-\x1f]"


class Shapes(NamedTuple):
    """The shapes of JSON texts.

    Attributes:
        layout: The shape of each text, or a mark and the text itself where it has to be parsed itself.
        values: The strings among the values of all texts that have a shape, decoded, in order.
        start: Position of the first value of each text; 0 for a text without a shape.
    """

    layout: pl.Series
    values: pl.Series
    start: pl.Series


def shapes_of(texts: pl.Series) -> Shapes:
    """Separate JSON texts, or any other texts without nulls, from the strings and numbers among their values."""
    marked = pl.col("text")
    if texts.str.contains("\\", literal=True).any():
        for escape, mark in _ESCAPES.items():
            marked = marked.str.replace_all(escape, mark, literal=True)
    frame = texts.to_frame("text").select_seq(pieces=marked.str.split('"'), usable=~pl.col("text").str.contains(_MARKS))
    sizes = frame["pieces"].list.len()
    which = repeated(pl.int_range(len(texts), dtype=pl.UInt32, eager=True), sizes)
    piece = frame["pieces"].explode()
    # every second piece is within quotes; a key is followed by a colon
    inside = (ranges(sizes.cast(pl.Int64), sizes.cast(pl.Int64)) % 2) == 1
    odd = _where(piece, inside, _ODD_CHARACTER)
    invalid = odd.filter(~piece.gather(odd).str.contains(_VALID))
    colon = piece.str.starts_with(":")
    colon = colon.scatter(_where(piece, piece < "!", _COLON), values=True)
    is_value = inside & ~colon.shift(-1, fill_value=False)
    numbers = _where(piece, ~inside, _DIGITS)
    outside = piece.gather(numbers).str.replace_all(_NUMBERS, _NUMBER)
    shaped = piece.scatter(numbers, outside).zip_with(~is_value, pl.Series([_HOLE]))
    shape = in_lists(shaped, sizes).list.join('"')
    broken = pl.concat([which.gather(invalid), which.gather(numbers).filter(outside.str.contains(_ODD_NUMBER))])
    usable = frame["usable"] & (sizes % 2 == 1)
    usable = usable.scatter(broken, values=False)
    layout = shape.zip_with(usable, _UNSHAPED + texts)
    is_value &= usable.gather(which)
    owner, values = which.filter(is_value), piece.filter(is_value)
    start = owner.search_sorted(pl.int_range(len(texts), dtype=pl.UInt32, eager=True), side="left").cast(pl.Int64)
    return Shapes(layout, _decoded(values), start.zip_with(usable, pl.Series([0], dtype=pl.Int64)))


def _where(values: pl.Series, tried: pl.Series, pattern: str) -> pl.Series:
    """Return the positions of those values that match a pattern, of those that are tried."""
    at = tried.arg_true()
    return at.filter(values.gather(at).str.contains(pattern))


def filled(shape: str) -> str:
    """Return a JSON text of a shape, with its strings numbered: each is its position among the values of the text."""
    first, *rest = shape.split(_HOLE)
    text = (first + "".join(f"{at}{part}" for at, part in enumerate(rest))).replace(_NUMBER, " 0 ")
    for escape, mark in _ESCAPES.items():
        text = text.replace(mark, escape)
    return text


def text_without_shape(layout: str) -> str | None:
    """Return the text of a layout that is not a shape; None if it is one."""
    return layout.removeprefix(_UNSHAPED) if layout.startswith(_UNSHAPED) else None


def _decoded(values: pl.Series) -> pl.Series:
    """Decode strings in which marks stand for some escapes."""
    at = values.str.contains(_ESCAPED).arg_true()
    escaped = values.gather(at)
    for escape, mark in _ESCAPES.items():
        escaped = escaped.str.replace_all(mark, escape, literal=True)
    decoded = [mended(str(loads(f'"{value}"'))) for value in escaped.to_list()]
    return values.scatter(at, pl.Series(decoded, dtype=pl.String))
