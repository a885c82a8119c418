"""The check type of similarity: how much a text is like its gold, by one of many metrics."""

import json
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar, Literal

import polars as pl
from pydantic import Field, ValidationInfo, field_validator

from assay.checks.base import Example, GoldKind, Traits
from assay.checks.pairs import PAIR_ANSWER, Answers, PairCheck
from assay.checks.similarity.metrics import (
    DISTANCE,
    MAX_CELLS,
    PARTIAL_METRICS,
    WORD_METRICS,
    problem_of,
    similarities,
    similarity,
    within,
)
from assay.checks.similarity.overlap import Bag
from assay.errors import clipped, encodable, printable, quoted
from assay.expressions.pairs import once_pairs, quoted_rows
from assay.expressions.shared_columns import is_small, nulls, text
from assay.expressions.text import lower, lower_expr
from assay.values.normalizers import (
    NORMALIZERS,
    checked_normalizer,
    golds_with_words,
    normalized_expr,
    normalizer,
    normalizer_schemas,
)
from assay.values.params import Params

_LISTED = 5
"""Maximum words that a reason lists."""
_KEPT_GOLDS = 64
"""Golds whose words are kept for other texts …"""
_KEPT_CHARS = 20_000
"""… and their maximum length: together at most some hundred megabytes."""
_SQUAD = "squad"
_BLEU = "bleu"
_INSPECT_DIGITS = 2

_BEFORE = [f"similarity {hundredths / 100:.2f} to " for hundredths in range(100)]
"""How reasons begin, by the score in hundredths; no score below 1 is shown as 1."""


def _hundredths(scores: pl.Series) -> pl.Series:
    number = (pl.col("score") * 100 + 0.5).floor().cast(pl.Int64).clip(0, len(_BEFORE) - 1)
    return scores.to_frame("score").select_seq(number).to_series()


Metric = Literal[
    "ratio",
    "indel",
    "levenshtein",
    "osa",
    "lcs",
    "jaro_winkler",
    "token_sort",
    "token_set",
    "partial",
    "partial_token_set",
    "weighted",
    "levenshtein_distance",
    "word_levenshtein",
    "token_f1",
    "set_f1",
    "rouge_1",
    "rouge_2",
    "rouge_3",
    "rouge_4",
    "rouge_5",
    "rouge_l",
    "bleu",
    "gleu",
]


class SimilarityParams(Params):
    """A metric and the text to be like."""

    spellings: ClassVar = {"text": "value"}

    metric: Metric = Field(
        default="ratio",
        description="By characters: `ratio` (`indel`), `levenshtein`, `osa`, `lcs`, `jaro_winkler`, `token_sort`, `token_set`, "
        "`partial`, `partial_token_set`, `weighted`, `levenshtein_distance`; by words: `word_levenshtein`, `token_f1`, `set_f1`, `rouge_1` … "
        "`rouge_5`, `rouge_l`, `bleu`, `gleu`.",
    )
    value: str | list[str] = Field(
        description="The text; of several, the most similar one counts, and `bleu` takes all together."
    )
    case_sensitive: bool = Field(
        default=True,
        description="Compare as written; else `str.lower()` on both sides. Metrics by words always compare in lower case.",
    )
    normalize: str | dict[str, Any] | None = Field(
        default=None,
        description=f"Change both sides first: {', '.join(NORMALIZERS)}, or `{{lmEval: {{ignoreCase: true}}}}`; `token_f1` takes "
        "`squad` unless told otherwise, and rounds to two digits with `inspect`.",
        json_schema_extra={"anyOf": [*normalizer_schemas(), {"type": "null"}]},
    )
    max_distance: int = Field(default=5, ge=0, description="Edits that `levenshtein_distance` allows.")
    max_chars: int = Field(
        default=500,
        ge=0,
        description="Characters of the shorter text up to which `partial`, `partial_token_set` and `weighted` compare; beyond, "
        "the check reports an error, because they take long.",
    )

    _normalizer = field_validator("normalize")(lambda spec: spec if spec is None else checked_normalizer(spec))

    @field_validator("value")
    @classmethod
    def _is_single(cls, value: str | list[str], info: ValidationInfo) -> str | list[str]:
        if isinstance(value, list) and not (value and info.data.get("metric", "bleu") == "bleu"):
            raise ValueError("one text is compared at a time, except by bleu")
        return value

    @field_validator("max_distance", "max_chars")
    @classmethod
    def _has_effect(cls, value: int, info: ValidationInfo) -> int:
        metrics = (DISTANCE,) if info.field_name == "max_distance" else PARTIAL_METRICS
        is_default = value == cls.model_fields[str(info.field_name)].default  # as the canonical form has it
        if not is_default and info.data.get("metric", DISTANCE) not in metrics and "metric" in info.data:
            raise ValueError(f"only for the metric {' or '.join(metrics)}")
        return value


class Similarity(PairCheck):
    """How similar the output is to the value, from 0 to 1, by rapidfuzz or by counting words; ``metric`` names the measure.

    Two empty texts are alike. ``levenshtein_distance`` asks whether at most ``maxDistance`` edits make one the other.
    """

    type = "similarity"
    golds = GoldKind(
        "value",
        is_joined=lambda params: params.metric == _BLEU,
        counting=lambda params: (
            golds_with_words if params.metric == "token_f1" and params.normalize in (None, _SQUAD) else None
        ),
    )
    traits = Traits(libraries={"rapidfuzz": ()})
    Params = SimilarityParams
    params: SimilarityParams
    examples = (
        Example("refund", 1.0, {"value": "refund"}),
        Example("abc", 0.0, {"value": "xyz"}),
        Example("kitten", 4 / 7, {"value": "sitting", "metric": "levenshtein"}),
        Example("REFUND", 1.0, {"value": "refund", "metric": "lcs", "caseSensitive": False}),
        Example("ab", 0.5, {"value": "ba", "metric": "osa"}),
        Example("b a", 1.0, {"value": "a b", "metric": "token_sort"}),
        Example("a b b", 1.0, {"value": "b a", "metric": "token_set"}),
        Example("the refund was sent", 1.0, {"value": "refund", "metric": "partial"}),
        Example("sitting", 1.0, {"value": "kitten", "metric": "levenshtein_distance", "maxDistance": 3}),
        Example("sitting", 0.0, {"value": "kitten", "metric": "levenshtein_distance", "maxDistance": 2}),
        Example("The cat", 0.5, {"value": "the dog", "metric": "word_levenshtein"}),
        Example("The Normans!", 2 / 3, {"value": "Normans, dukes", "metric": "token_f1"}),
        Example("the cat ran off", 0.5, {"value": "a cat sat off", "metric": "set_f1"}),
        Example("the cat sat", 0.5, {"value": "the cat ran", "metric": "rouge_2"}),
        Example("the cat the mat", 0.5, {"value": "the mat the cat", "metric": "rouge_l"}),
        Example("the cat sat on the mat", 1.0, {"value": ["The cat sat on the mat", "A cat"], "metric": "bleu"}),
        Example("a b", 0.5, {"value": "a b.  a", "metric": "gleu"}),
    )

    def usable(self, golds: pl.Expr) -> pl.Expr:
        return golds

    @property
    def _normalizing(self) -> str | dict[str, Any] | None:
        if self.params.metric == "token_f1" and self.params.normalize is None:
            return _SQUAD
        return self.params.normalize

    def compared(self, value: str) -> str:
        """Return what is compared of a text or a gold."""
        if self._normalizing is not None:
            value = normalizer(self._normalizing)(value)
        return value if self.params.case_sensitive else lower(value)

    @property
    def _compared_expr(self) -> pl.Expr:
        """``compared`` of the column ``text``."""
        texts = pl.col("text")
        texts = texts if self._normalizing is None else normalized_expr(texts, self._normalizing)
        return texts if self.params.case_sensitive else lower_expr(texts)

    def judge(self, value: str, gold: str | list[str]) -> tuple[float, str]:
        golds = [gold] if isinstance(gold, str) else gold
        if self.params.metric in WORD_METRICS:
            return self._judge_words(self._bag(value), golds, [*map(self._bag, golds)])
        pair = self.compared(value), self.compared(golds[0])
        if (problem := self._problem(*pair)) is not None:
            raise ValueError(problem)
        metric = self.params.metric
        score = within(*pair, self.params.max_distance) if metric == DISTANCE else similarity(metric, *pair)
        return score, self._before(score) + quoted(golds[0])

    def _problem(self, value: str, gold: str) -> str | None:
        limits = {"max_distance": self.params.max_distance, "max_chars": self.params.max_chars}
        return problem_of(self.params.metric, value, gold, **limits)

    def _before(self, score: float) -> str:
        if self.params.metric == DISTANCE:
            return f"more than {self.params.max_distance} edits from "
        return _BEFORE[min(math.floor(score * 100 + 0.5), len(_BEFORE) - 1)]

    def _bag(self, value: str) -> Bag:
        split, _ = WORD_METRICS[self.params.metric]
        return Bag(split(self.compared(value)))

    def _judge_words(self, words: Bag, golds: Sequence[str], bags: Sequence[Bag]) -> tuple[float, str]:
        _, scored = WORD_METRICS[self.params.metric]
        score = scored(words, bags if self.params.metric == _BLEU else bags[0])
        if self.params.metric == "token_f1" and self.params.normalize == "inspect":
            score = round(score, _INSPECT_DIGITS)
        if score >= 1:
            return score, ""
        present = {*words.words}
        missing = [[word for word in bag.numbers() if word not in present] for bag in bags]
        gold, few = min(zip(golds, missing, strict=True), key=lambda pair: len(pair[1]))
        shown = [printable(clipped(word)) for word in few[:_LISTED]]
        more = f" … and {len(few) - _LISTED:,} more" if len(few) > _LISTED else ""
        return score, self._before(score) + quoted(gold) + (f"; missing: {', '.join(shown)}{more}" if few else "")

    def judge_all(self, values: Sequence[str], golds: Sequence[Any]) -> Answers:
        if self.params.metric not in WORD_METRICS:
            return super().judge_all(values, golds)
        bag_of = lru_cache(1)(self._bag)  # the golds of a text follow each other …
        gold_bag = lru_cache(_KEPT_GOLDS)(self._bag)  # … and so do the texts of a task

        def judge(value: str, gold: str | list[str]) -> tuple[float, str]:
            texts = [gold] if isinstance(gold, str) else gold
            bags = [gold_bag(one) if len(one) <= _KEPT_CHARS else self._bag(one) for one in texts]
            return self._judge_words(bag_of(value), texts, bags)

        return [self.answered(judge, value, gold) for value, gold in zip(values, golds, strict=True)]

    def _of_texts(self, texts: pl.Series) -> pl.Series:
        gold = self.own_gold
        if self._is_alone(texts) or encodable(gold) != gold:  # a column cannot hold it
            return super()._of_texts(texts)
        return self._by_characters(texts, pl.Series([gold]))

    def _of_columns(self, texts: pl.Series, golds: pl.Series) -> pl.Series:
        return super()._of_columns(texts, golds) if self._is_alone(texts) else self._by_characters(texts, golds)

    def _is_alone(self, texts: pl.Series) -> bool:
        """Return whether each pair is judged by itself."""
        return self.params.metric in WORD_METRICS or is_small(texts)

    def _by_characters(self, texts: pl.Series, golds: pl.Series) -> pl.Series:
        """Return the answers of texts, each with its gold; all with the same if there is one."""
        metric = self.params.metric
        pair = [column.to_frame("text").select_seq(self._compared_expr).to_series() for column in (texts, golds)]
        sizes = [column.str.len_bytes() for column in pair]
        values, others = (column.to_list() for column in pair)
        others *= len(values) // len(others)
        too_long = []
        if metric in PARTIAL_METRICS or math.prod(size.max() for size in sizes) > MAX_CELLS:  # type: ignore[misc]
            pairs = enumerate(zip(values, others, strict=True))
            too_long = [at for at, pair in pairs if self._problem(*pair) is not None]
            for at in too_long:  # rapidfuzz is not asked about them
                values[at] = others[at] = ""
        scores = similarities(metric, values, others, self.params.max_distance)
        are_empty = sizes[0] + sizes[1] == 0
        if are_empty.any():
            scores = scores.set(are_empty, 1.0)
        before = self._before(0.0) if metric == DISTANCE else pl.Series(_BEFORE)[_hundredths(scores)]
        fails = pl.when(scores < 1)
        if len(golds) == 1:
            words: Any = before + quoted_rows(golds)
            reasons = pl.DataFrame().select_seq(fails.then(pl.lit(words))).to_series()
        else:
            reasons = quoted_rows(golds.to_frame("gold").select_seq(fails.then("gold")).to_series(), before)
        columns = [scores.alias("score"), reasons.alias("reason"), nulls(scores, pl.String).alias("error")]
        if too_long:
            given = golds.to_list() * (len(texts) // len(golds))
            answers = self._of_pairs(texts.gather(too_long).to_list(), [given[at] for at in too_long])
            columns = [column.scatter(too_long, answers.struct.field(column.name)) for column in columns]
        return pl.DataFrame(columns).to_struct()

    def pairs_expr(self, golds: pl.Expr) -> pl.Expr:
        if self.params.metric != _BLEU:
            return super().pairs_expr(golds)

        def as_json(lists: pl.Series) -> pl.Series:
            texts = [None if texts is None else json.dumps(texts) for texts in lists.to_list()]
            return pl.Series(lists.name, texts, dtype=pl.String)

        def joined(texts: pl.Series, lists: pl.Series) -> pl.Series:
            return self._of_pairs(texts.to_list(), [*map(json.loads, lists.to_list())])

        return once_pairs(text(), golds.map_batches(as_json, pl.String, is_elementwise=True), joined, PAIR_ANSWER)

    def explain(self) -> str:
        if self.params.metric in WORD_METRICS:
            return "Python, once for each distinct text and gold: words are counted"
        return "rapidfuzz on all cores, once for each distinct text and gold"

    def claim(self) -> str:
        golds = [self.params.value] if isinstance(self.params.value, str) else self.params.value
        likes = " or ".join(map(quoted, golds))
        if self.params.metric == DISTANCE:
            return f"is within {self.params.max_distance} edits of {likes}"
        return f"is like {likes} ({self.params.metric})"

    def complaint(self) -> str:
        return f"not {self.claim()}"
