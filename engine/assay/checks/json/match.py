"""The check of a JSON value: json_match."""

import json
from collections.abc import Sequence
from functools import cached_property
from itertools import starmap
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from assay.checks.base import JSON_STEPS, Example, GoldKind
from assay.checks.json.keys import not_json
from assay.checks.json.leaves import Comparison, Rules, Steps, compared, is_same, without
from assay.checks.json.schemas import decoded, json_value, place_of, shown_value
from assay.checks.pairs import NO_ANSWER, Answers, PairCheck
from assay.expressions.json import NOT_JSON
from assay.system.cache import cached_within
from assay.values.normalizers import NORMALIZERS, checked_normalizer, normalizer, normalizer_schemas
from assay.values.params import Params, UnfitValueError
from assay.values.paths import ABSENT, Path, parse_many
from assay.values.references import json_text

_SHOWN = 3
"""Maximum leaves that a reason names."""
_SAME = (1.0, "", None)
"""The answer for a text that is its gold."""
_GOLD_BYTES = 32_000_000
"""Maximum size of the golds that are kept."""


class MatchParams(Params):
    """A JSON value, and how to compare it."""

    spellings: ClassVar = {"text": "value"}

    value: Any = Field(description="The JSON value; a string is JSON text.")
    score: Literal["equal", "subset", "share", "f1"] = Field(
        default="equal",
        description="`equal`: the same leaves; `subset`: every leaf of the value; `share`: how many of these, as a share; `f1`: 2·common/"
        "(leaves of both).",
    )
    lists: Literal["ordered", "unordered"] = Field(
        default="ordered", description="Whether the places of a list's elements count."
    )
    strings: str | dict[str, Any] | None = Field(
        default=None,
        description=f"Change both strings first: {', '.join(NORMALIZERS)}, or `{{lmEval: {{ignoreCase: true}}}}`.",
        json_schema_extra={"anyOf": [*normalizer_schemas(), {"type": "null"}]},
    )
    rel_tol: float | int = Field(
        default=0,
        ge=0,
        le=1,
        allow_inf_nan=False,
        description="Greatest difference of numbers as a share of the larger one.",
    )
    abs_tol: float | int = Field(
        default=0, ge=0, le=1e300, allow_inf_nan=False, description="Greatest difference of numbers."
    )
    ignore: list[str] = Field(default=[], description="Paths that are not compared: `id`, `items[].price`, `[0].a`.")

    @field_validator("value")
    @classmethod
    def _is_json(cls, value: Any) -> Any:
        if isinstance(value, str):
            if json_value(value) is NOT_JSON:
                raise UnfitValueError(value, "not JSON: a string is JSON text; write '\"text\"' for a string")
            return value
        try:
            text = json.dumps(value, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"the value is not JSON: {error}") from error
        if json_value(text) is NOT_JSON:
            raise ValueError("the value is not JSON")
        return value

    @field_validator("strings")
    @classmethod
    def _is_a_normalizer(cls, value: Any) -> Any:
        return None if value is None else checked_normalizer(value)

    @field_validator("ignore")
    @classmethod
    def _are_paths(cls, paths: list[str]) -> list[str]:
        for path in paths:
            parse_many(path)
        return paths


class JsonMatch(PairCheck):
    """The output is the JSON value, leaf by leaf: with ``share`` and ``f1``, as far as it is.

    Leaves are strings, numbers, true, false, null, and empty objects and lists, each with its path. Numbers match by ``math.isclose``,
    so that 1 is 1.0; true is not 1. With ``lists: unordered``, the elements of a list have the same path, and leaves with the same path
    are matched one to one. Text is read as ``json_valid`` reads it; a lone surrogate becomes U+FFFD.
    """

    type = "json_match"
    runs_as = "Python, once for each distinct text and value"
    golds = GoldKind("value", is_json=True, lazy=True, steps=lambda _: JSON_STEPS)
    reads_utf8 = True
    Params = MatchParams
    params: MatchParams
    examples = (
        Example('{"b": [1.0, 2], "a": "x"}', 1.0, {"value": {"a": "x", "b": [1, 2]}}),
        Example('{"a": "x", "c": 1}', 0.0, {"value": {"a": "x"}}),
        Example('{"a": "x", "c": 1}', 1.0, {"value": {"a": "x"}, "score": "subset"}),
        Example('{"a": "x", "b": 3}', 0.5, {"value": {"a": "x", "b": 2}, "score": "share"}),
        Example('{"a": "x", "b": 3}', 0.5, {"value": {"a": "x", "b": 2}, "score": "f1"}),
        Example('[{"n": 2}, {"n": 1}]', 1.0, {"value": [{"n": 1}, {"n": 2}], "lists": "unordered"}),
        Example(
            '{"city": "OSLO", "km": 9.99}',
            1.0,
            {"value": {"city": "Oslo", "km": 10}, "strings": "casefold", "relTol": 0.01},
        ),
        Example('{"id": 7, "n": 1}', 1.0, {"value": {"id": 1, "n": 1}, "ignore": ["id"]}),
        Example("1", 0.0, {"value": True}),
        Example("n = 1", 0.0, {"value": 1}),
    )

    def judge(self, value: str, gold: str) -> tuple[float, str]:
        return self._judge(value, _expected(gold, self._ignored))

    def judge_all(self, values: Sequence[bytes], golds: Sequence[str]) -> Answers:
        """Return the answer for each pair; a gold is parsed once if the texts that are compared with it follow each other."""
        answers, last, same, expected = list[Any](), None, b"", NOT_JSON
        answered, judge, ignored = self.answered, self._judge, self._ignored
        for value, gold in zip(values, golds, strict=True):
            if gold is not last:
                last, same, expected = gold, gold.encode(), without(json_value(gold), ignored)
            if expected is NOT_JSON:
                answers.append(NO_ANSWER)
            else:  # to compare texts takes no time, and saves to parse the output
                answers.append(_SAME if value == same else answered(judge, value, expected))
        return answers

    def _judge(self, value: str | bytes, expected: Any) -> tuple[float, str]:
        parsed = json_value(value)
        if parsed is NOT_JSON:
            return 0.0, not_json(decoded(value))
        parsed = without(parsed, self._ignored)
        if is_same(parsed, expected):
            return 1.0, ""
        how = self.params.score
        counts, extra = how != "equal", how in ("equal", "f1")
        result = compared(parsed, expected, self._rules, shown=_SHOWN + 1, extra=extra, counts=counts)
        if how == "f1":
            score = 2 * result.matches / (result.golds + result.values)
        else:
            score = result.matches / result.golds if counts else float(not result.differences)
            score = score if how == "share" else float(score == 1.0)
        if score == 1.0:
            return score, ""
        more = "; and more" if len(result.differences) > _SHOWN else ""
        return score, "; ".join(starmap(_fault, result.differences[:_SHOWN])) + more

    def comparison(self, value: Any, gold: str, *, shown: int) -> Comparison:
        """Compare a value, which may be changed, with the JSON text of a gold."""
        return compared(without(value, self._ignored), _expected(gold, self._ignored), self._rules, shown=shown)

    @cached_property
    def own_gold(self) -> str:
        return json_text(self.params.value)

    @cached_property
    def _rules(self) -> Rules:
        params = self.params
        normalize = None if params.strings is None else normalizer(params.strings)
        return Rules(params.lists == "ordered", normalize, params.rel_tol, params.abs_tol)

    @cached_property
    def _ignored(self) -> tuple[Path, ...]:
        return tuple(map(parse_many, self.params.ignore))

    def claim(self) -> str:
        return f"matches {shown_value(json_value(self.own_gold))} ({self.params.score})"


@cached_within(_GOLD_BYTES, lambda _, text, __: 20 * len(text))
def _expected(gold: str, ignored: tuple[Path, ...]) -> Any:
    """Return the value of a gold without what is ignored; it must not be changed."""
    return without(json_value(gold), ignored)


def _fault(steps: Steps, gold: Any, value: Any) -> str:
    place = place_of(steps) or "the output"
    if gold is ABSENT:
        return f"{place} is not expected"
    shown = shown_value(gold)
    return f"{place} is missing: {shown}" if value is ABSENT else f"{place} is {shown_value(value)}, not {shown}"
