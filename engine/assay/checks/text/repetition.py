"""The check for n-grams that the output repeats: repetition."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from itertools import islice
from operator import indexOf
from typing import Any, TypeVar

import polars as pl
from pydantic import Field

from assay.checks.base import Example, GoldKind
from assay.checks.pairs import PairCheck
from assay.errors import quoted
from assay.expressions.shared_columns import in_lists, in_place, is_small
from assay.expressions.text import lower_expr, single_spaced_expr
from assay.thresholds import THRESHOLDS
from assay.values.params import Params

_Counted = TypeVar("_Counted")
_FACTOR = 0x9E3779B97F4A7C15
"""An odd factor with which the hash of a sequence depends on the order of its words."""


class RepetitionParams(Params):
    """How long the repeated sequences are."""

    n: int = Field(default=3, ge=1, description="Words of a sequence, at least 1.")


def _numbers(items: Iterable[Hashable]) -> list[int]:
    """Return the same number for equal items, different ones for others."""
    known: dict[Hashable, int] = {}
    return [known.setdefault(item, len(known)) for item in items]


def _numbered(words: Sequence[str], n: int) -> list[int]:
    """Return a number for each sequence of ``n`` words; two are equal if their words are.

    Each pass makes the sequences up to twice as long, so that long ones take little memory.
    """
    numbers, size = _numbers(words), 1
    while size < n:
        step = min(size, n - size)
        numbers = _numbers(zip(numbers, numbers[step:], strict=False))
        size += step
    return numbers


def _ngrams(words: Sequence[str], n: int) -> Iterable[Hashable]:
    """Return an item for each sequence of ``n`` words; two are equal if their words are."""
    if n <= THRESHOLDS.ngram_words:
        return zip(*(words[start:] for start in range(n)), strict=False)
    return _numbered(words, n)


def _most_common(counts: "Counter[_Counted]") -> tuple[_Counted, int]:
    """Return the first of the items with the greatest count, and that count."""
    values = [*counts.values()]
    most = max(values)  # without a key, which would be called for each item
    return next(islice(counts, values.index(most), None)), most


def _may_repeat(texts: pl.Series, n: int) -> pl.Series:
    """Return whether a sequence of ``n`` words may stand twice in each text; false only where none does.

    Equal sequences have equal hashes. Others may, too, and so may the sequences that begin in a text and end in the next one.
    """
    words = texts.to_frame("text").select_seq(single_spaced_expr(lower_expr(pl.col("text"))).str.split(" ")).to_series()
    hashes, size = words.explode(empty_as_null=False).hash(), 1
    n = min(n, len(hashes))
    while size < n:
        step = min(size, n - size)
        hashes = hashes * _FACTOR + hashes.shift(-step, fill_value=0)
        size += step
    sequences = in_lists(hashes, words.list.len()).list
    return sequences.n_unique() < sequences.len()


class Repetition(PairCheck):
    """The share of distinct sequences among all sequences of `n` words, in lower case: 1.0 if none stands there twice.

    The N-gram repetition penalty of "Demystifying Long Chain-of-Thought Reasoning in LLMs" (arXiv:2502.03373, appendix C.2), which is
    `repetition_penalty` in open-r1's rewards.py: `penalty: p` takes `p * (1 - share)` off the score. An output of fewer than `n` words
    scores 1.0. Words stand between blanks, so a text of a script without blanks has one.
    """

    type = "repetition"
    runs_as = "columns: hashes of the sequences; Python for texts in which one stands twice"
    golds = GoldKind()
    words = ("repeats no {check.params.n} words", "")
    Params = RepetitionParams
    params: RepetitionParams
    examples = (
        Example("one two three four", 1.0),
        Example("so it is so It is so", 0.6),
        Example("No, no, no, no", 0.5, {"n": 1}),
        Example("la la la", 0.5, {"n": 2}),
        Example("too short", 1.0),
        Example("a b c d e f g h " * 2 + "a b c d", 0.5, {"n": 5}),
    )

    def judge(self, value: str, gold: Any) -> tuple[float, str]:
        del gold
        n = self.params.n
        words = value.lower().split()
        total = len(words) - n + 1
        counts = Counter(_ngrams(words, n))
        if len(counts) >= total:
            return 1.0, ""
        ngram, most = _most_common(counts)
        start = indexOf(_ngrams(words, n), ngram)
        shown = quoted(" ".join(words[start : start + n]))
        of = f"{total - len(counts)} of {total} sequences of {n} {'word' if n == 1 else 'words'} repeat an earlier one"
        return len(counts) / total, f"{of}; {shown} occurs {most} times"

    def _of_texts(self, texts: pl.Series) -> pl.Series:
        if is_small(texts):
            return super()._of_texts(texts)
        # the words of a text take several times its memory
        parts = texts.str.len_bytes().cast(pl.Int64).cum_sum() // max(1, THRESHOLDS.slice * THRESHOLDS.slice_text)
        sizes = parts.rle().struct.field("len")
        slices = zip(sizes.cum_sum() - sizes, sizes, strict=True)
        at = pl.concat([_may_repeat(texts.slice(*part), self.params.n) for part in slices]).arg_true()
        answers = super()._of_texts(texts.gather(at)).struct.unnest()
        rows = in_place(answers.with_columns_seq(at.alias("at")), len(texts))
        return rows.with_columns_seq(pl.col("score").fill_null(1.0), pl.col("reason").fill_null("")).to_struct()
