"""Python's ``str.lower``, ``str.strip`` and ``in`` as expressions.

*Lower*: if the only capitals of a text are ASCII letters, lowering changes single bytes, and Arrow does it. In texts with few
characters beyond ASCII, those that occur are replaced one by one. Other texts are lowered by Python, whose version of Unicode differs
from Polars', and which lowers a final ``Σ`` by its neighbours. The set of other capitals is computed from Python's own tables, once per
process.
*Contains*: Polars searches; Python searches for phrases that are too long for Polars or contain a lone surrogate.
*Contains or equals, lower-cased*: a short ASCII phrase becomes a pattern with both cases of each letter and the other code points
with the same lower case; no text is lowered for it.
*Strip*: CPython strips 29 code points; Polars strips exactly the given set.
"""

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial, reduce
from typing import Literal, TypeVar

import polars as pl

from assay.errors import encodable
from assay.expressions.shared_columns import SharedColumn, among, in_rows_of, is_small, nulls, rowwise, text
from assay.system.arrow import pa, pc
from assay.thresholds import THRESHOLDS

WHITESPACE = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""The characters that ``str.strip()`` removes: ``c.isspace()`` on every supported CPython."""

ASCII_ALIKE = "[\u0130\u0131\u017f\u212a]"
"""The code points beyond ASCII that ``str.lower`` or IGNORECASE maps to an ASCII letter: İ, ı, ſ and the Kelvin sign."""

Texts = TypeVar("Texts", pl.Expr, pl.Series)
"""A String column, or an expression for one."""

_LOWERED = {"k": "kK\u212a"}
"""ASCII letters that are the lower case of more than their own capital."""

_ASCII = 0x7F
"""The last code point of ASCII."""

SIGMA = "Σ"
"""The only capital whose lower case depends on its neighbours."""

_BY_CONTEXT = frozenset("\u03c3\u03c2\u0307")
"""Code points that others become in lower case by their neighbours, or as one of two."""


@lru_cache(maxsize=3)
def SCALARS(end: int = 0x110000) -> str:  # noqa: N802  (a constant, too large to build at import)
    """Return every Unicode scalar value below ``end`` in order, as one string; by default all 1,112,064 code points."""
    low, each = bytes(range(256)), [bytes([byte]) * 256 for byte in range(256)]
    codes = bytearray(4 * end)  # in UTF-32, a byte of all numbers at a time: twenty times faster than chr() for each
    codes[::4], codes[1::4] = low * (end // 256), (b"".join(each) * (end // 65_536 + 1))[:end]
    codes[2::4] = b"".join(each[plane] * 256 for plane in range(end // 65_536 + 1))[:end]
    del codes[4 * 0xD800 : 4 * 0xE000]
    return codes.decode("utf-32-le")


def as_class(codes: str) -> str:
    """Return a character class for the linear engine that matches exactly these code points."""
    ranges: list[list[int]] = []
    for code in sorted(map(ord, set(codes))):
        if ranges and code == ranges[-1][1] + 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "[" + "".join(f"\\x{{{first:X}}}-\\x{{{last:X}}}" for first, last in ranges) + "]"


def begins_with(values: pl.Expr, characters: str) -> pl.Expr:
    """Return whether each text begins with one of some characters: by comparisons, ten times faster than a search."""
    ranges: list[list[int]] = []
    for code in sorted(map(ord, set(characters))):
        if ranges and code == ranges[-1][1]:
            ranges[-1][1] = code + 1
        else:
            ranges.append([code, code + 1])
    return pl.any_horizontal((values >= chr(first)) & (values < chr(after)) for first, after in ranges)


@lru_cache(maxsize=4)
def _changed_by(form: Callable[[str], str]) -> str:
    """Return the code points beyond ASCII that a form of ``str`` changes."""
    scalars = SCALARS()[128:]
    blocks = (scalars[at : at + 256] for at in range(0, len(scalars), 256))
    return "".join(code for block in blocks if form(block) != block for code in block if form(code) != code)


@lru_cache(maxsize=4)
def _class_changed_by(form: Callable[[str], str]) -> str:
    return as_class(_changed_by(form))


@lru_cache(maxsize=3)
def case_patterns(case: str) -> tuple[str, str]:
    """Return for the linear engine what a text in ``upper``, ``lower`` or ``title`` case must not match, and what it must."""
    scalars = SCALARS()
    blocks = (scalars[at : at + 256] for at in range(0, len(scalars), 256))
    # in a block without case, nothing keeps either letter from being all that counts
    cased = "".join(block for block in blocks if not (f"A{block}".isupper() and f"a{block}".islower()))
    lower, upper = ("".join(filter(holds, cased)) for holds in (str.islower, str.isupper))
    title = "".join(code for code in cased if code.istitle() and not code.isupper())
    if case != "title":
        own, other = (upper, lower) if case == "upper" else (lower, upper)
        return as_class(other + title), as_class(own)
    first, later, any_case = as_class(upper + title), as_class(lower), as_class(lower + upper + title)
    return rf"(?:\A|[^{any_case[1:]}){later}|{any_case}{first}", any_case


def _lowered_to(code: str) -> str:
    return code + "".join(capital for capital in _changed_by(str.lower) if capital.lower() == code)


def ascii_lower(series: pl.Series) -> pl.Series:
    """Lower the ASCII letters of a String column only."""
    lowered = pc.ascii_lower(series.to_arrow(compat_level=pl.CompatLevel.oldest()))
    return pl.Series(series.name, lowered, dtype=pl.String)


def lower(value: str) -> str:
    """Lower a text by Python's ``str.lower`` (full Unicode lower case, not casefold)."""
    return value.lower()


def is_ascii(values: Texts) -> Texts:
    """Return whether each text is ASCII; null for null."""
    return values.str.len_bytes() == values.str.len_chars()


def beyond_ascii(values: pl.Expr) -> pl.Expr:
    """Return the texts that contain a code point beyond ASCII, and ``""`` for the others."""
    # NOTE: not null, because Polars also searches the values behind nulls
    return pl.when(is_ascii(values).not_()).then(values).otherwise(pl.lit(""))


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def word_places(value: str, phrase: str) -> Iterator[tuple[int, int]]:
    """Yield where a phrase stands in a text with no word character beside it, from the left, none overlapping."""
    at = value.find(phrase)
    while at >= 0:
        end = at + len(phrase)
        is_alone = not (_is_word(value[at - 1 : at]) or _is_word(value[end : end + 1]))
        if is_alone:
            yield at, end
        at = value.find(phrase, max(end, at + 1) if is_alone else at + 1)


def recased_expr(values: pl.Expr, form: Callable[[str], str]) -> pl.Expr:
    """Return ``str.lower``, ``str.upper`` or ``str.casefold`` as an elementwise expression over a String column."""
    recase = partial(by_slices, column=partial(recased, form=form))
    return values.map_batches(recase, return_dtype=pl.String, is_elementwise=True)


def lower_expr(values: pl.Expr) -> pl.Expr:
    """Return ``str.lower`` as an elementwise expression over a String column."""
    return recased_expr(values, str.lower)


def lower_rows(values: pl.Series, fully: pl.Series | None = None) -> pl.Series:
    """Lower texts by ``str.lower``; if only some rows are lowered ``fully``, the ASCII letters of the others."""
    return recased(values, str.lower, fully)


def recased(values: pl.Series, form: Callable[[str], str], fully: pl.Series | None = None) -> pl.Series:
    """Return ``form`` of texts; if only some rows take it ``fully``, that of the ASCII letters of the others."""
    of_ascii = pc.ascii_upper if form is str.upper else pc.ascii_lower
    array = of_ascii(values.to_arrow(compat_level=pl.CompatLevel.oldest()))
    results = pl.Series(values.name, array, dtype=pl.String)
    buffer = array.buffers()[2]
    if buffer is None:
        return results
    codes = pl.Series(pa.Array.from_buffers(pa.uint8(), buffer.size, [None, buffer]))
    others = codes.filter(codes > _ASCII).to_arrow()  # UTF-8 without its ASCII is UTF-8
    is_sparse, changed = len(others) * THRESHOLDS.sparse <= len(codes), dict[str, str]()
    if is_sparse:
        characters = sorted({*others.buffers()[1].slice(others.offset, len(others)).to_pybytes().decode()})
        changed = {character: form(character) for character in characters if form(character) != character}
        if not changed:
            return results
    beyond = ~is_ascii(values) if fully is None else ~is_ascii(values) & fully
    # rows are filtered, not masked, because Polars also searches the values behind nulls
    at = beyond.arg_true()
    at = at.filter(values[at].str.contains(as_class("".join(changed)) if is_sparse else _class_changed_by(form)))
    if is_sparse and len(at):
        results = results.scatter(at, results[at].str.replace_many(changed))
        by_context = form is str.lower and SIGMA in changed
        at = at.filter(values[at].str.contains(SIGMA, literal=True)) if by_context else at.clear()
    exact = pl.Series(list(map(form, values[at].to_list())), dtype=pl.String)
    return results.scatter(at, exact) if len(at) else results


def composed_expr(values: pl.Expr, form: Literal["NFC", "NFKC"]) -> pl.Expr:
    """Return ``unicodedata.normalize`` as an elementwise expression over a String column: ASCII stays as it is."""
    return values.map_batches(partial(_composed, form=form), return_dtype=pl.String, is_elementwise=True)


def _compatible(value: str) -> str:
    return unicodedata.normalize("NFKC", value)


def _composed(values: pl.Series, form: Literal["NFC", "NFKC"]) -> pl.Series:
    at = (~is_ascii(values)).arg_true()
    if form == "NFKC" and len(at) > THRESHOLDS.small_batch:
        # CPython takes thirty times as long for a text that it changes, and the form of a text is that of its characters' forms
        changed = at.filter(values.gather(at).str.contains(_class_changed_by(_compatible)))
        if len(changed):
            forms = {code: _compatible(code) for code in _changed_by(_compatible)}
            values = values.scatter(changed, values.gather(changed).str.replace_many(forms))
    others = values.gather(at).to_list()
    # of a text that it does not change, CPython returns the text itself
    composed = [None if (new := unicodedata.normalize(form, text)) is text else new for text in others]
    results = pl.Series(composed, dtype=pl.String)
    at = at.filter(results.is_not_null())
    return values.scatter(at, results.drop_nulls()) if len(at) else values


def ascii_lower_expr(values: pl.Expr) -> pl.Expr:
    """Return an elementwise expression that lowers the ASCII letters of a String column only."""
    return values.map_batches(ascii_lower, return_dtype=pl.String, is_elementwise=True)


def strip_expr(values: pl.Expr) -> pl.Expr:
    """Return ``str.strip`` as an elementwise expression over a String column."""
    return values.str.strip_chars(WHITESPACE)


def single_spaced_expr(values: pl.Expr) -> pl.Expr:
    """Return ``" ".join(value.split())`` as an elementwise expression over a String column."""
    blank, other = as_class(WHITESPACE), as_class(WHITESPACE.replace(" ", ""))
    return strip_expr(values).str.replace_all(f"{blank}{{2,}}|{other}", " ")


def contains_expr(values: pl.Expr, phrase: str) -> pl.Expr:
    """Return ``phrase in value`` as an elementwise expression over a String column."""
    size = len(phrase.encode("utf-8", "surrogatepass"))
    if size <= THRESHOLDS.phrase_bytes and encodable(phrase) == phrase:
        return values.str.contains(pl.lit(phrase), literal=True)
    candidates = pl.when(values.str.len_bytes() >= size).then(values)
    contains = rowwise(candidates, lambda value: phrase in value, pl.Boolean)
    return pl.when(values.is_not_null()).then(contains.fill_null(value=False))


def contains_column(values: pl.Series, phrases: pl.Series) -> pl.Series:
    """Return ``phrase in value`` row by row; null where either is null."""
    # NOTE: for a single row Polars builds a regular expression, which takes quadratic time and rejects long phrases
    if len(values) <= THRESHOLDS.lone_searches:
        pairs = zip(values.to_list(), phrases.to_list(), strict=True)
        results = [None if value is None or phrase is None else phrase in value for value, phrase in pairs]
        return pl.Series(values.name, results, dtype=pl.Boolean)
    return values.str.contains(pl.lit(phrases), literal=True)


_ARE_ASCII = is_ascii(pl.all())


def contains_lowered(values: pl.Series, phrases: pl.Series) -> pl.Series:
    """Return ``phrase.lower() in value.lower()`` row by row; null where either is null."""
    return in_slices(_contains_lowered, [values, phrases])


def _contains_lowered(columns: Sequence[pl.Series]) -> pl.Series:
    values, phrases = columns
    contained = contains_column(ascii_lower(values), ascii_lower(phrases))
    are_simple = pl.DataFrame([values.alias("text"), phrases.alias("phrase")]).select_seq(_ARE_ASCII)
    is_simple, is_simple_text = are_simple["phrase"], are_simple["text"]
    at = (~(is_simple & (contained | is_simple_text))).arg_true()
    values, phrases, contained_here, is_simple = values[at], phrases[at], contained[at], is_simple[at]
    # an ASCII phrase that is not found may still be in the lower case of a text with such letters; another one that is found is there,
    # unless a capital sigma becomes another letter at the end of a word
    by_text, by_phrase = values.str.contains(ASCII_ALIKE), ~contained_here | phrases.str.contains(SIGMA, literal=True)
    at = at.filter(by_text.zip_with(is_simple, by_phrase))
    exact = (lower_rows(column[at]) for column in columns)
    return contained.scatter(at, contains_column(*exact)) if len(at) else contained


def in_slices(
    function: Callable[[Sequence[pl.Series]], pl.Series], columns: Sequence[pl.Series], rows: int | None = None
) -> pl.Series:
    """Run a function that makes new texts on a few rows at a time."""
    count, least = len(columns[0]), max(1, rows or THRESHOLDS.slice)
    size = max(least, count * least * THRESHOLDS.slice_text // max(int(columns[0].estimated_size()), 1))
    if count <= size:
        return function(columns)
    starts = range(0, count, size)
    return pl.concat([function([column.slice(start, size) for column in columns]) for start in starts])


def equals_expr(values: pl.Expr, phrase: str) -> pl.Expr:
    """Return ``value == phrase`` as an elementwise expression over a String column."""
    # a literal with a lone surrogate would become a different text
    return values == pl.lit(phrase) if encodable(phrase) == phrase else contains_expr(values, phrase)


def lowered_pattern(phrase: str, *, last: str = "") -> str | None:
    """Return a pattern for the linear engine that matches where the lowered text contains ``phrase``."""
    if len(phrase) > THRESHOLDS.folded_phrase or not _BY_CONTEXT.isdisjoint(phrase) or encodable(phrase) != phrase:
        return None
    codes = [_LOWERED.get(code, code + code.upper()) if code.isascii() else _lowered_to(code) for code in phrase]
    if phrase.endswith("i"):
        codes[-1] += last
    return "".join(map(as_class, codes))


def written_pattern(phrase: str) -> str | None:
    """Return a pattern for the linear engine that matches a phrase as written; None if it is long or the engine cannot."""
    fits = len(phrase) <= THRESHOLDS.folded_phrase and encodable(phrase) == phrase
    return "".join(map(as_class, phrase)) if fits else None


def stripped_pattern(phrase: str, *, lowered: bool) -> str | None:
    """Return a pattern that matches the texts that equal a phrase after stripping and, if ``lowered``, lowering."""
    pattern = lowered_pattern(phrase) if lowered else written_pattern(phrase)
    space = as_class(WHITESPACE)
    return None if pattern is None else rf"\A{space}*{pattern}{space}*\z"


CHARACTERS = SharedColumn("characters", lambda _: text().str.len_chars().cast(pl.Int64))
"""Number of code points in the completion's text."""

BEYOND_ASCII = SharedColumn("beyond-ascii", lambda _: text().str.len_bytes() != CHARACTERS.col, after=(CHARACTERS,))
"""Whether the completion's text contains a code point beyond ASCII."""

LOWER = SharedColumn("lower", lambda _: lower_expr(text()))
"""The completion's text in lower case."""

ASCII_LOWER = SharedColumn("ascii-lower", lambda _: ascii_lower_expr(text()), after=(BEYOND_ASCII,))
"""The completion's text with its ASCII letters in lower case; what reads it also needs to know which texts have others."""


def phrase_lane(phrase: str) -> SharedColumn | None:
    """Return a Boolean lane for whether the lowered text contains a phrase."""
    pattern = lowered_pattern(phrase, last="\u0130")
    if pattern is None:
        return None
    if not phrase.isascii():
        return SharedColumn(f"phrase:{phrase}", lambda _: text().str.contains(pattern))
    build = partial(pl.map_batches, function=partial(_contains_phrase, phrase, pattern), return_dtype=pl.Boolean)
    return SharedColumn(
        f"phrase:{phrase}",
        lambda _: text().str.contains(pattern),
        basis=ASCII_LOWER,
        build_from=lambda _: build([ASCII_LOWER.col, BEYOND_ASCII.col, text()], is_elementwise=True),
    )


def _contains_phrase(phrase: str, pattern: str, columns: Sequence[pl.Series]) -> pl.Series:
    lowered, is_beyond, values = columns
    contained = lowered.str.contains(phrase, literal=True)
    if "k" not in phrase and not phrase.endswith("i"):  # no letter beyond ASCII has a lower case in it
        return contained
    return among(contained, is_beyond & ~contained, values, lambda texts: texts.str.contains(pattern))


def by_columns(
    values: pl.Expr,
    row: Callable[[str], object],
    column: Callable[[pl.Series], pl.Series],
    dtype: pl.DataType | type[pl.DataType] = pl.String,
) -> pl.Expr:
    """Run a function of columns on the non-null texts of large batches, and its Python definition on small ones."""

    def answers(texts: pl.Series) -> pl.Series:
        if is_small(texts):
            return pl.Series(texts.name, list(map(row, texts.to_list())), dtype=dtype)
        return column(texts.alias("text"))

    def run(series: pl.Series) -> pl.Series:
        missing = series.null_count()
        if missing == len(series):
            return nulls(series, dtype)
        return in_rows_of(series, answers(series.drop_nulls() if missing else series))

    return values.map_batches(run, return_dtype=dtype, is_elementwise=True)


def by_slices(texts: pl.Series, column: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Run a function of columns that copies whole texts on some of them at a time. See ``in_slices``."""
    return in_slices(lambda columns: column(columns[0]), [texts]).rechunk()


def is_plain(mark: str) -> bool:
    """Return whether the engines search for a mark as Python does: it is short, and without lone surrogates."""
    return len(mark.encode("utf-8", "surrogatepass")) <= THRESHOLDS.phrase_bytes and encodable(mark) == mark


def before(texts: pl.Series, mark: str) -> pl.Series:
    """Return what stands before the first mark in each text; null without one."""
    text = pl.col(texts.name)
    part = text.cast(pl.Binary).bin.head(text.str.find(mark, literal=True))
    return texts.to_frame().select_seq(part.cast(pl.String)).to_series()


def behind(texts: pl.Series, mark: str, *, last: bool) -> pl.Series:
    """Return what stands behind the first or the last mark in each text; null without one."""
    text = pl.col(texts.name)
    at = text.str.find_many([mark], overlapping=True).list.last() if last else text.str.find(mark, literal=True)
    part = text.cast(pl.Binary).bin.slice(at + len(mark.encode()))
    return texts.to_frame().select_seq(part.cast(pl.String)).to_series()


def first_of(*columns: pl.Series) -> pl.Series:
    """Return the first value of each row that is not null."""
    # NOTE: Polars' coalesce and fill_null copy all texts
    return reduce(lambda first, other: first.zip_with(first.is_not_null(), other), columns)


def stripped(texts: pl.Series) -> pl.Series:
    """Return ``str.strip`` of each text; a long one is copied only if it may have white space around it."""
    if texts.estimated_size() <= len(texts) * THRESHOLDS.copied_text:
        return texts.str.strip_chars(WHITESPACE)
    may_be_padded = _may_begin_blank(texts) | _may_begin_blank(texts.str.tail(1))
    return among(texts, may_be_padded, texts, lambda texts: texts.str.strip_chars(WHITESPACE))


def _may_begin_blank(texts: pl.Series) -> pl.Series:
    """Return whether each text is empty or begins within three ranges that have all white space, and few letters."""
    return (texts < "!") | ((texts > "~") & (texts < "\xa1")) | ((texts > "\u167f") & (texts < "\u3001"))
