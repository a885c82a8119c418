"""Assertions of promptfoo to checks, type by type: those of promptfoo 0.123, with their defaults."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from assay.checks.graders.table import GRADERS
from assay.errors import SpecError
from assay.frozen import frozen
from assay.spec.importers.imported import NoCounterpartError, check_threshold, is_number, pieces_of, reference_to
from assay.system.documents import named, parse_text

NOT = "not-"
_UNICODE = {None: None, False: None, True: "nfc", "NFC": "nfc", "NFKC": "nfkc"}
"""The normal forms that ``normalizeUnicode`` asks for."""


@frozen
class Assertion:
    """An assertion, without ``not-``; what a check cannot say raises ``NoCounterpartError``."""

    type: str
    value: Any
    threshold: float | None
    fields: Mapping[str, Any]
    inverse: bool
    graded: bool
    column_of: Callable[[str], str]

    def text(self, *, filled: bool = False) -> Any:
        """Return the value as a text or a reference."""
        if filled and self.value == "":
            raise NoCounterpartError("`value` is empty, which promptfoo refuses")
        return self._reference(self.value)

    def texts(self) -> Any:
        """Return the value as a list of texts and references."""
        if isinstance(self.value, str) and len(pieces_of(self.value)) > 1:
            raise NoCounterpartError(
                "a template stands in a text that is split at commas after it is filled: write a list"
            )
        value = comma_separated(self.value) if isinstance(self.value, str) else self.value
        if not isinstance(value, list) or not value:
            raise NoCounterpartError(f"`value` is {named(self.value)}, not a list of texts")
        return [self._reference(item) for item in value]

    def data(self) -> Any:
        """Return the value as JSON data without templates."""
        pending = [self.value]
        while pending:
            value = pending.pop()
            if isinstance(value, str) and len(pieces_of(value)) > 1:
                raise NoCounterpartError("a template stands within an object")
            pending += value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
        return self.value

    def pattern(self) -> Any:
        """Return the value as a pattern of JavaScript or a reference to one."""
        if not isinstance(self.value, str) or not self.value:
            raise NoCounterpartError(f"`value` is {named(self.value)}, not a pattern")
        pieces = pieces_of(self.value)
        if len(pieces) == 1:
            return self.value
        if len(pieces) == 3 and not pieces[0] and not pieces[2]:  # noqa: PLR2004  (one template alone)
            return self._reference(self.value)
        raise NoCounterpartError("a template is part of a pattern")

    @property
    def limit(self) -> float:
        """The threshold, without which there is no check."""
        if self.threshold is None:
            raise NoCounterpartError("it has no `threshold`")
        return self.threshold

    def reaching(self, check: Mapping[str, Any], default: float) -> dict[str, Any]:
        """Return a graded check, which passes from the threshold on if its verdict counts."""
        if self.graded:
            return dict(check)
        threshold = default if self.threshold is None else self.threshold
        check_threshold(threshold)
        return {**check, "threshold": threshold}

    def similar(self, check: Mapping[str, Any], default: float) -> dict[str, Any]:
        """Return a graded check of one text or several."""
        value = self.texts() if isinstance(self.value, list) else self.text()
        return self.reaching({**check, "value": value}, default)

    def by_name(self, gold: Any = None, /, **options: Any) -> dict[str, Any]:
        """Return the grader of the assertion, with its gold, and options where they are given and other than the defaults."""
        grader = GRADERS[f"promptfoo.{self.type}"]
        given = {key: value for key, value in options.items() if value not in (None, grader.options[key].default)}
        check = {"type": "grader", "name": grader.name}
        return check | ({} if gold is None else {"value": gold}) | ({"options": given} if given else {})

    def schema(self) -> dict[str, Any] | None:
        """Return the schema that the assertion gives; None if it gives none."""
        schema = self.data()
        if isinstance(schema, str) and schema:
            if schema.startswith("file://"):
                raise NoCounterpartError("the schema is in another file, which is not read")
            try:
                schema = parse_text(schema, ".yaml", "the schema").data
            except SpecError as error:
                raise NoCounterpartError(error.fact) from None
        if schema in (None, "", False):
            return None
        if not isinstance(schema, dict):
            raise NoCounterpartError(f"`value` is {named(schema)}, not a JSON Schema")
        return schema

    def _reference(self, value: Any) -> Any:
        if isinstance(value, list | dict) or value is None:
            raise NoCounterpartError(f"`value` is {named(value)}, not a text")
        if isinstance(value, str) and value.startswith("file://"):
            raise NoCounterpartError("`value` is another file, which is not read")
        return reference_to(text_of(value), self.column_of)


def text_of(value: Any) -> str:
    """Return the text of a value as JavaScript writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:  # noqa: PLR2004  (JavaScript's)
        return str(int(value))
    return value if isinstance(value, str) else str(value)


_ITEM = re.compile(r'[\s,]*+(?:"((?:\\["\\]|""|[^"])*+)("?)([^,]*)|([^,]+))')


def comma_separated(text: str) -> list[str]:
    """Return the items of a text, separated by commas; an item may stand in double quotes."""
    items, end = [], 0
    while (match := _ITEM.match(text, end)) and match.end() > end:
        quoted, closing, rest, plain = match.groups()
        end = match.end()
        if plain is not None:
            items.append(plain.strip())
            continue
        if not closing:
            raise NoCounterpartError("a quote is not closed")
        if rest.strip():
            raise NoCounterpartError(f"{rest.strip()[:40]!r} follows a quoted item")
        items.append(re.sub(r'\\(["\\])|"(")', r"\1\2", quoted))
    return items


def _equals(assertion: Assertion) -> dict[str, Any]:
    if isinstance(assertion.value, list | dict):
        return {"type": "json_match", "value": assertion.data()}
    asked = assertion.fields.get("normalizeUnicode")
    if isinstance(asked, list | dict) or asked not in _UNICODE:
        raise NoCounterpartError(f"`normalizeUnicode` is {named(asked)}")
    if _UNICODE[asked] is None:
        return assertion.by_name(assertion.text())
    as_written = {"strip": False, "caseSensitive": True}
    return {"type": "equals", "value": assertion.text(), **as_written, "normalize": _UNICODE[asked]}


def _counted(assertion: Assertion) -> dict[str, Any]:
    value = assertion.value
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise NoCounterpartError(f"`value` is {named(value)}, not a number") from None
    bounds = value if isinstance(value, dict) else {"exactly": value}
    bounds = {name: bound for name, bound in bounds.items() if bound is not None}
    if not bounds or not all(is_number(bound) and name in ("min", "max", "exactly") for name, bound in bounds.items()):
        raise NoCounterpartError(f"`value` is {named(value)}, not a number or {{min, max}}")
    return assertion.by_name(bounds.get("exactly", bounds))


def _tool_names(assertion: Assertion) -> list[str]:
    value = assertion.data()
    names = value.split(",") if isinstance(value, str) else value
    listed = [text_of(name).strip() for name in names] if isinstance(names, list) else []
    if not any(listed):
        raise NoCounterpartError(f"`value` is {named(value)}, not names of tools")
    return [name for name in listed if name]


def _tool_used(assertion: Assertion) -> dict[str, Any]:
    value = assertion.data()
    if not isinstance(value, dict):
        names = _tool_names(assertion) if isinstance(value, list) else [text_of(value)]
        return {"type": "tool_trajectory", "notCalled" if assertion.inverse else "called": names}
    name = value.get("pattern") or value.get("name")
    if not isinstance(name, str) or not name:
        raise NoCounterpartError("`value` has no name and no pattern of a tool")
    limits = {"min": value.get("min", 1), "max": value.get("max")}
    return {"type": "tool_trajectory", "of": name, **{key: limit for key, limit in limits.items() if limit is not None}}


def _tool_sequence(assertion: Assertion) -> dict[str, Any]:
    value = assertion.data()
    steps = value.get("steps") if isinstance(value, dict) else value
    listed = steps if isinstance(steps, list) else []
    names = [step.get("pattern") or step.get("name") if isinstance(step, dict) else step for step in listed]
    if not names or not all(isinstance(name, str) and name for name in names):
        raise NoCounterpartError("`value` has no steps, or steps without a name")
    mode = value.get("mode") or "in_order" if isinstance(value, dict) else "in_order"
    return {"type": "tool_trajectory", "sequence": names, "mode": mode}


def _tools_valid(assertion: Assertion) -> dict[str, Any]:
    if assertion.value is not None:
        raise NoCounterpartError("the tools stand in the assertion; `tool_valid` reads the row's `tools`")
    return {"type": "tool_valid"}


_PHRASES = ("contains", "icontains", "starts-with")
_LISTS = ("contains-any", "icontains-any", "contains-all", "icontains-all")
_CALLS_VALID = ("is-valid-openai-tools-call", "is-valid-openai-function-call", "is-valid-function-call")

RULES: dict[str, Callable[[Assertion], dict[str, Any]]] = {
    **dict.fromkeys(_PHRASES, lambda given: given.by_name(given.text(filled=True))),
    **dict.fromkeys(_LISTS, lambda given: given.by_name(given.texts())),
    "ends-with": lambda given: {
        "type": "ends_with",
        "value": given.text(filled=True),
        "strip": False,
        "caseSensitive": True,
    },
    "equals": _equals,
    "regex": lambda given: given.by_name(given.pattern()),
    "word-count": _counted,
    **dict.fromkeys(("is-json", "contains-json"), lambda given: given.by_name(value=given.schema())),
    "rouge-n": lambda given: given.similar({"type": "similarity", "metric": "rouge_1"}, 0.75),
    "rouge-l": lambda given: given.similar({"type": "similarity", "metric": "rouge_l"}, 0.75),
    **dict.fromkeys(("bleu", "gleu"), lambda given: given.similar(given.by_name(), 0.5)),
    "levenshtein": lambda given: given.by_name(given.text(), threshold=given.threshold or None),  # 0 is none
    "cost": lambda given: {"type": "number_range", "max": given.limit, "on": [{"column": "cost"}]},
    "latency": lambda given: {"type": "number_range", "max": given.limit, "on": [{"column": "latency_ms"}]},
    "finish-reason": lambda given: {"type": "equals", "value": given.text(), "on": [{"column": "finish_reason"}]},
    "tool-call-f1": lambda given: given.reaching(given.by_name(_tool_names(given)), 1.0),
    "trajectory:tool-used": _tool_used,
    "trajectory:tool-sequence": _tool_sequence,
    **dict.fromkeys(_CALLS_VALID, _tools_valid),
}
"""How each type becomes a check."""

_INVERTED = ("trajectory:tool-used",)
"""Types whose check is the opposite already where their value is a list of names."""

_ROUGE = (
    "words are those of rouge_score; promptfoo splits as the Treebank does, so scores near the threshold may differ"
)

DIFFERENCES = {
    **dict.fromkeys(("rouge-n", "rouge-l"), _ROUGE),
    "cost": "it reads the column `cost`",
    "latency": "it reads the column `latency_ms`",
    "finish-reason": "it reads the column `finish_reason`",
    **dict.fromkeys(
        ("trajectory:tool-used", "trajectory:tool-sequence"),
        "it reads the calls in the messages; promptfoo reads its traces",
    ),
    **dict.fromkeys(_CALLS_VALID, "it reads the column `tools`, and passes where nothing is called"),
}
"""What may differ from promptfoo, by type."""

_REASONS = {
    "it runs code of yours: a reward function can (docs/rubrics.md)": "javascript python ruby webhook",
    "it asks a model": (
        "llm-rubric agent-rubric search-rubric research-rubric video-rubric g-eval factuality model-graded-closedqa "
        "model-graded-factuality answer-relevance context-faithfulness context-recall context-relevance "
        "conversation-relevance classifier moderation pi similar similar:cosine similar:dot similar:euclidean select-best "
        "trajectory:goal-success perplexity perplexity-score guardrails max-score noise-sensitivity citation-faithfulness"
    ),
    "its list of phrases is promptfoo's; use `contains_any` with the phrases of your models": "is-refusal",
    "it needs WordNet": "meteor",
    "nothing parses it here": "is-sql contains-sql is-xml contains-xml is-html contains-html",
    "`tool_calls` compares all calls of a row; write its gold": "trajectory:tool-args-match",
    "it reads promptfoo's traces": (
        "trajectory:step-count trace-span-count trace-span-duration trace-error-spans skill-used"
    ),
}
_NONE = {kind: reason for reason, kinds in _REASONS.items() for kind in kinds.split()}
"""Why types have no counterpart."""


def assertion_check(
    assertion: Mapping[str, Any], *, graded: bool, column_of: Callable[[str], str]
) -> tuple[str, dict[str, Any]]:
    """Return the type of an assertion, without ``not-``, and its check."""
    kind = assertion.get("type")
    if not isinstance(kind, str):
        raise NoCounterpartError(f"`type` is {named(kind)}, not the name of an assertion")
    inverse, base = kind.startswith(NOT), kind.removeprefix(NOT)
    rule = RULES.get(base)
    if rule is None:
        raise NoCounterpartError(f"`{base}`: {_NONE.get(base, 'no check does this')}")
    for name in ("transform", "config"):
        if name in assertion:
            raise NoCounterpartError(f"`{name}` changes what is compared, by code")
    threshold = assertion.get("threshold")
    if threshold is not None and not is_number(threshold):
        raise NoCounterpartError(f"`threshold` is {named(threshold)}, not a number")
    check = rule(Assertion(base, assertion.get("value"), threshold, assertion, inverse, graded, column_of))
    negated = inverse and not (base in _INVERTED and "notCalled" in check)
    return base, {**check, "negate": True} if negated else check
