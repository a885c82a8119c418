"""How many words, sentences, lines and the like a text has, in Python and as expressions."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import polars as pl

from assay.expressions.json import loads
from assay.expressions.shared_columns import in_lists, in_rows_of, nulls, rowwise
from assay.expressions.text import WHITESPACE, as_class, in_slices, is_ascii, strip_expr, stripped
from assay.frozen import frozen
from assay.system.arrow import pa

Kind = Callable[[pl.Series], pl.Series]
"""Takes bytes (UInt8) and returns which are of a kind."""


def not_blank(codes: pl.Series) -> pl.Series:
    """Return which bytes are none of the ASCII characters that ``str.split`` splits at."""
    return ~(_between(codes, "\t", "\r") | _between(codes, "\x1c", " "))


def word_like(codes: pl.Series) -> pl.Series:
    r"""Return which bytes are ASCII characters that ``\w`` matches."""
    letters = _between(codes | ord(" "), "a", "z")  # capitals differ in one bit
    return letters | _between(codes, "0", "9") | (codes == ord("_"))


def _between(codes: pl.Series, first: str, last: str) -> pl.Series:
    return codes - ord(first) <= ord(last) - ord(first)  # bytes below wrap around


def runs(texts: pl.Series, kind: Kind) -> pl.Series:
    """Return the number of runs of bytes of a kind in each text, as UInt32; null stays null."""
    if not texts.null_count():
        return in_slices(partial(_count, kind), [texts])
    if texts.null_count() == len(texts):
        return nulls(texts, pl.UInt32)
    # NOTE: a null has bytes, too, where Polars masks what a branch of ``when`` does not need
    counts = in_slices(partial(_count, kind), [texts.drop_nulls()])
    return in_rows_of(texts, counts)


def _count(kind: Kind, columns: Sequence[pl.Series]) -> pl.Series:
    (texts,) = columns
    sizes = texts.str.len_bytes().cast(pl.Int64)
    inside = kind(_bytes_of(texts))
    firsts = (sizes.cum_sum() - sizes).filter(sizes > 0)
    begins = (inside & ~inside.shift(1, fill_value=False)).scatter(firsts, inside.gather(firsts))
    return in_lists(begins, sizes).list.sum().cast(pl.UInt32).alias(texts.name)


def _bytes_of(texts: pl.Series) -> pl.Series:
    data = texts.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest()).buffers()[2]
    size = 0 if data is None else data.size
    return pl.Series(pa.Array.from_buffers(pa.uint8(), size, [None, data]), dtype=pl.UInt8)


Rule = Callable[[str], int | None]
Columns = Callable[[pl.Expr], pl.Expr]


@frozen
class Count:
    """A way to count.

    Attributes:
        noun: What is counted.
        row: The number in a text; None if it cannot be counted.
        expr: The same as an elementwise Int64 expression over a String column.
        places: Where each of them starts and ends, in order.
        is_all: Whether a text is made of them, so that those beyond a limit are the rest of it.
    """

    noun: str
    row: Rule
    expr: Columns
    places: Callable[[str], Iterable[tuple[int, int]]] = lambda _: ()
    is_all: bool = False


_SPACE = as_class(WHITESPACE)
_NO_SPACE = f"[^{_SPACE[1:]}"
_BLANKS_BEYOND_ASCII = as_class("".join(code for code in WHITESPACE if not code.isascii()))
_CLOSERS = "[\"'”’)\\]*_]*"
_SENTENCE = rf"[.!?]+{_CLOSERS}(?:\s+|\Z)|[。！？]+"
_SENTENCE_END = re.compile(_SENTENCE)
_LINEAR_SENTENCE = rf"[.!?]+{_CLOSERS}(?:{_SPACE}+|\z)|[。！？]+"
_ENDS_SENTENCE = rf"(?:[.!?]+{_CLOSERS}|[。！？]+)\z"
_PARAGRAPHS = re.compile(r"\n[ \t]*\n")


def bytes_of(text: str) -> int:
    """Return the number of UTF-8 bytes."""
    return len(text.encode("utf-8", "surrogatepass"))


def _character_places(text: str) -> Iterator[tuple[int, int]]:
    return zip(range(len(text)), range(1, len(text) + 1), strict=True)


def _words(texts: pl.Series) -> pl.Series:
    counts = runs(texts, not_blank)
    at = is_ascii(texts).not_().arg_true()
    others = texts.gather(at)
    spread = others.str.contains(_BLANKS_BEYOND_ASCII)
    return counts.scatter(at.filter(spread), others.filter(spread).str.count_matches(f"{_NO_SPACE}+"))


def _sentences(text: str) -> int:
    bare = text.strip()
    ends = [match.end() for match in _SENTENCE_END.finditer(bare)]
    return len(ends) + (len(bare) > (ends[-1] if ends else 0))


def _sentences_expr(texts: pl.Expr) -> pl.Expr:
    bare = strip_expr(texts)
    remains = (bare != "") & ~bare.str.contains(_ENDS_SENTENCE)
    return bare.str.count_matches(_LINEAR_SENTENCE) + remains.cast(pl.UInt32)


def _sentence_places(text: str) -> Iterator[tuple[int, int]]:
    bare = text.strip()
    before = text.find(bare)
    at = 0
    for end in [*(match.end() for match in _SENTENCE_END.finditer(bare)), len(bare)]:
        if at < end:
            yield before + at, before + end
        at = end


def _places(pattern: str) -> Callable[[str], Iterator[tuple[int, int]]]:
    compiled = re.compile(pattern)
    return lambda text: (match.span() for match in compiled.finditer(text))


def _filled_places(gap: "re.Pattern[str]") -> Callable[[str], Iterator[tuple[int, int]]]:
    def places(text: str) -> Iterator[tuple[int, int]]:
        at = 0
        for start, end in [*(match.span() for match in gap.finditer(text)), (len(text), len(text))]:
            if text[at:start].strip():
                yield at, start
            at = end

    return places


def _filled(pieces: list[str]) -> int:
    return sum(bool(piece.strip()) for piece in pieces)


def _filled_expr(gap: str) -> Columns:
    """Return what counts the pieces between gaps that are not blank: the gaps within a stripped text, with the space behind them, and 1."""

    def count(texts: pl.Series) -> pl.Series:
        bare = stripped(texts)
        return bare.str.count_matches(f"{gap}{_SPACE}*") + (bare != "").cast(pl.UInt32)

    return lambda texts: texts.map_batches(count, return_dtype=pl.UInt32, is_elementwise=True)


def _items(text: str) -> int | None:
    value = loads(text)
    return len(value) if isinstance(value, list | dict) else None


def _items_expr(texts: pl.Expr) -> pl.Expr:
    likely = texts.str.contains(r"\A[ \t\n\r]*[\[{]")
    return rowwise(pl.when(likely).then(texts), _items, pl.Int64, distinct=True)


def _pattern(noun: str, pattern: str) -> Count:
    compiled = re.compile(pattern)
    return Count(
        noun,
        lambda text: len(compiled.findall(text)),
        lambda texts: texts.str.count_matches(pattern),
        _places(pattern),
    )


def _ascii_count(noun: str, pattern: str, of_ascii: Columns, *, is_all: bool = False) -> Count:
    compiled = re.compile(pattern)

    def count(text: str) -> int:
        return len(compiled.findall(text))

    def expr(texts: pl.Expr) -> pl.Expr:
        plain = is_ascii(texts)
        others = rowwise(pl.when(~plain).then(texts), count, pl.Int64)
        return pl.when(plain).then(of_ascii(texts).cast(pl.Int64)).otherwise(others)

    return Count(noun, count, expr, _places(pattern), is_all)


COUNTS: dict[str, Count] = {
    "chars": Count("characters", len, lambda texts: texts.str.len_chars(), _character_places, is_all=True),
    "bytes": Count(
        "bytes",
        bytes_of,
        lambda texts: texts.str.len_bytes(),
        lambda text: (place for place in _character_places(text) for _ in range(bytes_of(text[slice(*place)]))),
        is_all=True,
    ),
    "words": Count(
        "words",
        lambda text: len(text.split()),
        lambda texts: texts.map_batches(_words, return_dtype=pl.UInt32, is_elementwise=True),
        _places(r"\S+"),
        is_all=True,
    ),
    "word_tokens": _ascii_count(
        "word tokens",
        r"\w+",
        lambda texts: texts.map_batches(partial(runs, kind=word_like), return_dtype=pl.UInt32, is_elementwise=True),
        is_all=True,
    ),
    "sentences": Count("sentences", _sentences, _sentences_expr, _sentence_places, is_all=True),
    "lines": Count(
        "lines",
        lambda text: _filled(text.split("\n")),
        _filled_expr(r"\n"),
        _filled_places(re.compile("\n")),
        is_all=True,
    ),
    "paragraphs": Count(
        "paragraphs",
        lambda text: _filled(_PARAGRAPHS.split(text)),
        _filled_expr(_PARAGRAPHS.pattern),
        _filled_places(_PARAGRAPHS),
        is_all=True,
    ),
    "bullets": _pattern("bullets", r"(?m)^[ \t]*[-*+][ \t]"),
    "numbered": _ascii_count(
        "numbered lines",
        r"(?m)^[ \t]*\d+[.)][ \t]",
        lambda texts: texts.str.count_matches(r"(?m)^[ \t]*[0-9]+[.)][ \t]"),
    ),
    "headings": _pattern("headings", r"(?m)^#{1,6}[ \t]"),
    "items": Count("items", _items, _items_expr),
}
"""The ways to count, by name."""


def occurrences(phrase: str) -> Rule:
    """Return the rule that counts a phrase: ``str.count``."""
    return lambda text: text.count(phrase)


def occurrences_expr(texts: pl.Expr, phrase: str) -> pl.Expr:
    """Return ``str.count`` as an elementwise expression; the phrase has no lone surrogate."""
    if not phrase:
        return texts.str.len_chars() + 1
    return texts.str.count_matches(phrase, literal=True)
