"""Assertions of promptfoo to checks."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from assay.spec.importers.imported import NoCounterpartError, check_threshold, is_number, pieces_of, reference_to
from assay.system.documents import named

_SPACES = r"\t\n\x0b\x0c\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_SETS = {"d": "0-9", "w": "A-Za-z0-9_", "s": _SPACES}
_MEANS_THE_SAME = frozenset("fnrtv")
_ESCAPE = (
    r"\\c(?P<control>[A-Za-z])|(?P<pair>\\u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2})"
    r"|(?P<code>\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2})|\\(?P<digits>[1-9]\d?)|\\(?P<escaped>.)"
)
_TOKEN = re.compile(
    r"(?P<foreign>\(\?[aiLmsux-]+\)|\(\?P)|\\k<(?P<back>\w+)>|\(\?<(?P<group>[A-Za-z_]\w*)>|(?P<braces>\{,\d*\})"
    rf"|(?P<opening>\[\]|\[\^\]|\[\^?)|{_ESCAPE}|(?P<plain>.)",
    re.DOTALL | re.ASCII,
)
_CLASS_TOKEN = re.compile(rf"(?P<closing>\])|{_ESCAPE}|(?P<plain>.)", re.DOTALL | re.ASCII)
_WHOLE = {"[]": "(?!)", "[^]": r"[\s\S]", ".": r"[^\n\r\u2028\u2029]", "$": r"\Z", r"\b": r"(?a:\b)", r"\B": r"(?a:\B)"}


def python_pattern(pattern: str) -> str:
    """Return a pattern with which ``re.search`` finds what JavaScript's ``RegExp.test`` does."""
    translated, end, in_class = "", 0, False
    while match := (_CLASS_TOKEN if in_class else _TOKEN).match(pattern, end):
        translated += (_in_class if in_class else _outside)(match)
        in_class = match.lastgroup != "closing" if in_class else match[0] in ("[", "[^")
        end = match.end()
    try:
        re.compile(translated)
    except (re.error, OverflowError, RecursionError) as error:
        raise NoCounterpartError(f"Python has no such pattern: {error}") from None
    return translated


def _in_class(match: re.Match[str]) -> str:
    kind, escaped = match.lastgroup, match["escaped"]
    if kind in ("closing", "plain"):
        return re.escape(match[0]) if match[0] in "[&|~" else match[0]
    if kind == "digits":
        raise NoCounterpartError(f"{match[0]} in a class is an octal number")
    if escaped in _SETS:
        return _SETS[escaped]
    return {"b": r"\x08"}.get(escaped or "", match[0] if escaped in ("D", "W", "S") else _character(match))


def _outside(match: re.Match[str]) -> str:
    kind, escaped = str(match.lastgroup), match["escaped"] or ""
    if kind == "foreign":
        raise NoCounterpartError(f"{match[0]} is not of JavaScript's patterns, where the assertion always fails")
    if escaped.lower() in _SETS:
        return f"[{'^' * escaped.isupper()}{_SETS[escaped.lower()]}]"
    if match[0] in _WHOLE:
        return _WHOLE[match[0]]
    forms = {"group": f"(?P<{match['group']}>", "back": f"(?P={match['back']})", "digits": f"(?:{match[0]})"}
    forms |= {"braces": re.escape(match[0]), "plain": match[0], "opening": match[0]}
    return forms[kind] if kind in forms else _character(match)


def _character(match: re.Match[str]) -> str:
    if match["control"]:
        return re.escape(chr(ord(match["control"]) % 32))
    if match["pair"]:
        return match[0].encode("ascii").decode("unicode_escape").encode("utf-16", "surrogatepass").decode("utf-16")
    escaped = match["escaped"]
    if escaped is None or escaped in _MEANS_THE_SAME:
        return match[0]
    return r"\x00" if escaped == "0" else re.escape(escaped)


NOT = "not-"


@dataclass(frozen=True)
class Assertion:
    """An assertion, without ``not-``.

    Attributes:
        value: Its value; None if it has none.
        threshold: Its threshold; None if it has none.
        inverse: Whether it is negated.
        graded: Whether its score counts, not its verdict.
    """

    type: str
    value: Any
    threshold: float | None
    fields: Mapping[str, Any]
    inverse: bool
    graded: bool
    column_of: Callable[[str], str]

    def text(self) -> Any:
        """Return the value as a text or a reference."""
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

    def either(self) -> Any:
        """Return the value as a text, a reference, or a list of these."""
        return self.texts() if isinstance(self.value, list) else self.text()

    def data(self) -> Any:
        """Return the value as JSON data without templates."""
        for text in _texts_in(self.value):
            if len(pieces_of(text)) > 1:
                raise NoCounterpartError("a template stands within an object")
        return self.value

    def pattern(self) -> Any:
        """Return the value as a pattern or a reference to one."""
        if not isinstance(self.value, str) or not self.value:
            raise NoCounterpartError(f"`value` is {named(self.value)}, not a pattern")
        pieces = pieces_of(self.value)
        if len(pieces) == 1:
            return python_pattern(self.value)
        if len(pieces) == 3 and not pieces[0] and not pieces[2]:  # noqa: PLR2004  (one template alone)
            return self._reference(self.value)
        raise NoCounterpartError("a template is part of a pattern")

    def limit(self, default: float | None = None) -> float:
        """Return the threshold."""
        limit = default if self.threshold is None else self.threshold
        if limit is None:
            raise NoCounterpartError("it has no `threshold`")
        return limit

    def reaching(self, check: Mapping[str, Any], default: float) -> dict[str, Any]:
        """Return a graded check, which passes from the threshold on if its verdict counts."""
        if self.graded:
            return dict(check)
        threshold = self.limit(default)
        check_threshold(threshold)
        return {**check, "threshold": threshold}

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


def comma_separated(text: str) -> list[str]:
    """Return the items of a text, separated by commas; an item may stand in double quotes."""
    items, at = [], 0
    while at < len(text):
        if text[at].isspace() or text[at] == ",":
            at += 1
        elif text[at] == '"':
            item, at = _quoted_item(text, at + 1)
            items.append(item)
            rest = text[at:].partition(",")[0]
            if rest.strip():
                raise NoCounterpartError(f"{rest.strip()[:40]!r} follows a quoted item")
        else:
            end = text.find(",", at)
            end = len(text) if end < 0 else end
            items.append(text[at:end].strip())
            at = end
    return items


def _quoted_item(text: str, at: int) -> tuple[str, int]:
    item = ""
    while at < len(text):
        if text[at : at + 2] in ('\\"', "\\\\", '""'):
            item += text[at + 1]
            at += 2
        elif text[at] == '"':
            return item, at + 1
        else:
            item += text[at]
            at += 1
    raise NoCounterpartError("a quote is not closed")


def _texts_in(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [text for item in value.values() for text in _texts_in(item)]
    if isinstance(value, list):
        return [text for item in value for text in _texts_in(item)]
    return [value] if isinstance(value, str) else []


def _not_empty(assertion: Assertion) -> None:
    if assertion.value == "":
        raise NoCounterpartError("`value` is empty, which promptfoo refuses")


def _contains(assertion: Assertion) -> dict[str, Any]:
    _not_empty(assertion)
    return {"type": "contains", "value": assertion.text(), "caseSensitive": not assertion.type.startswith("i")}


def _contains_several(assertion: Assertion) -> dict[str, Any]:
    kind = f"contains_{assertion.type.rpartition('-')[2]}"
    return {"type": kind, "values": assertion.texts(), "caseSensitive": not assertion.type.startswith("i")}


def _edge(assertion: Assertion) -> dict[str, Any]:
    _not_empty(assertion)
    kind = assertion.type.replace("-", "_")
    return {"type": kind, "value": assertion.text(), "strip": False, "caseSensitive": True}


def _equals(assertion: Assertion) -> dict[str, Any]:
    if isinstance(assertion.value, list | dict):
        return {"type": "json_match", "value": assertion.data()}
    form = {None: None, False: None, True: "nfc", "NFC": "nfc", "NFKC": "nfkc"}
    asked = assertion.fields.get("normalizeUnicode")
    if isinstance(asked, list | dict) or asked not in form:
        raise NoCounterpartError(f"`normalizeUnicode` is {named(asked)}")
    normalized = {"normalize": form[asked]} if form[asked] else {}
    return {"type": "equals", "value": assertion.text(), "strip": False, "caseSensitive": True, **normalized}


def _regex(assertion: Assertion) -> dict[str, Any]:
    return {"type": "regex", "pattern": assertion.pattern()}


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
    return {"type": "count", "of": "words" if assertion.type == "word-count" else "chars", **bounds}


def _schema(assertion: Assertion) -> Any:
    schema = assertion.data()
    if isinstance(schema, str) and schema:
        if schema.startswith("file://"):
            raise NoCounterpartError("the schema is in another file, which is not read")
        schema = _parsed(schema)
    if schema in (None, ""):
        return None
    if not isinstance(schema, dict | bool):
        raise NoCounterpartError(f"`value` is {named(schema)}, not a JSON Schema")
    draft = {} if isinstance(schema, bool) or "$schema" in schema else {"$schema": _DRAFT}
    return schema if isinstance(schema, bool) else {**draft, **schema}


_DRAFT = "http://json-schema.org/draft-07/schema#"
"""The draft by which promptfoo reads a schema that names none."""


def _parsed(text: str) -> Any:
    from assay.errors import SpecError
    from assay.system.documents import parse_text

    try:
        return parse_text(text, ".yaml", "the schema").data
    except SpecError as error:
        raise NoCounterpartError(error.fact) from None


def _json(assertion: Assertion) -> dict[str, Any]:
    schema = _schema(assertion)
    return {"type": "json_valid"} if schema is None else _conforming(schema)


def _conforming(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "schema": schema, "validateFormats": True}


def _json_within(assertion: Assertion) -> dict[str, Any]:
    schema = _schema(assertion)
    around = {"notFound": "pass"} if assertion.inverse else {}
    check = {"type": "json_valid"} if schema is None else _conforming(schema)
    return {**check, "on": [{"json": {"at": "first"}}], **around}


def _similarity(metric: str, default: float) -> Callable[[Assertion], dict[str, Any]]:
    def check(assertion: Assertion) -> dict[str, Any]:
        similarity = {"type": "similarity", "metric": metric, "value": assertion.either()}
        return assertion.reaching(similarity, default)

    return check


def _distance(assertion: Assertion) -> dict[str, Any]:
    distance = math.floor(assertion.limit(5) or 5)  # in promptfoo, 0 is no threshold
    return {"type": "similarity", "metric": "levenshtein_distance", "value": assertion.text(), "maxDistance": distance}


def _at_most(column: str) -> Callable[[Assertion], dict[str, Any]]:
    def check(assertion: Assertion) -> dict[str, Any]:
        return {"type": "number_range", "max": assertion.limit(), "on": [{"column": column}]}

    return check


def _finish_reason(assertion: Assertion) -> dict[str, Any]:
    return {"type": "equals", "value": assertion.text(), "on": [{"column": "finish_reason"}]}


def _tool_names(assertion: Assertion) -> list[str]:
    value = assertion.data()
    names = value.split(",") if isinstance(value, str) else value
    listed = [text_of(name).strip() for name in names] if isinstance(names, list) else []
    if not any(listed):
        raise NoCounterpartError(f"`value` is {named(value)}, not names of tools")
    return [name for name in listed if name]


def _tool_f1(assertion: Assertion) -> dict[str, Any]:
    return assertion.reaching({"type": "tool_f1", "value": _tool_names(assertion)}, 1.0)


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


RULES: dict[str, Callable[[Assertion], dict[str, Any]]] = {
    **dict.fromkeys(("contains", "icontains"), _contains),
    **dict.fromkeys(("contains-any", "contains-all", "icontains-any", "icontains-all"), _contains_several),
    **dict.fromkeys(("starts-with", "ends-with"), _edge),
    "equals": _equals,
    "regex": _regex,
    **dict.fromkeys(("word-count", "character-count"), _counted),
    "is-json": _json,
    "contains-json": _json_within,
    **{f"rouge-{kind}": _similarity(f"rouge_{'1' if kind == 'n' else kind}", 0.75) for kind in "nl"},
    "bleu": _similarity("bleu", 0.5),
    "gleu": _similarity("gleu", 0.5),
    "levenshtein": _distance,
    "cost": _at_most("cost"),
    "latency": _at_most("latency_ms"),
    "finish-reason": _finish_reason,
    "tool-call-f1": _tool_f1,
    "trajectory:tool-used": _tool_used,
    "trajectory:tool-sequence": _tool_sequence,
    **dict.fromkeys(
        ("is-valid-openai-tools-call", "is-valid-openai-function-call", "is-valid-function-call"), _tools_valid
    ),
}
"""How each type becomes a check."""

_INVERTED = ("trajectory:tool-used",)
"""Types whose check is the opposite already where their value is a list of names."""

DIFFERENCES = {
    "contains-json": "the first JSON object or list of the output counts, strictly read; promptfoo tries all, and repairs them",
    "is-json": "NaN and Infinity are JSON here",
    "levenshtein": "characters are code points; promptfoo counts UTF-16 units",
    "rouge-n": "words are those of rouge_score; promptfoo splits as the Treebank does, so scores near the threshold may differ",
    "rouge-l": "words are those of rouge_score; promptfoo splits as the Treebank does, so scores near the threshold may differ",
    "cost": "it reads the column `cost`",
    "latency": "it reads the column `latency_ms`",
    "finish-reason": "it reads the column `finish_reason`",
    **dict.fromkeys(
        ("trajectory:tool-used", "trajectory:tool-sequence"),
        "it reads the calls in the messages; promptfoo reads its traces",
    ),
    **dict.fromkeys(
        ("is-valid-openai-tools-call", "is-valid-openai-function-call", "is-valid-function-call"),
        "it reads the column `tools`",
    ),
}
"""What may differ from promptfoo, by type."""

_CODE = "it runs code of yours: a reward function can (docs/rubrics.md)"
_MODEL = "it asks a model"
_NONE = {
    **dict.fromkeys(("javascript", "python", "ruby", "webhook"), _CODE),
    **dict.fromkeys(
        (
            *("llm-rubric", "agent-rubric", "search-rubric", "research-rubric", "video-rubric", "g-eval", "factuality"),
            *("model-graded-closedqa", "model-graded-factuality", "answer-relevance", "context-faithfulness"),
            *("context-recall", "context-relevance", "conversation-relevance", "classifier", "moderation", "pi"),
            *(
                "similar",
                "similar:cosine",
                "similar:dot",
                "similar:euclidean",
                "select-best",
                "trajectory:goal-success",
            ),
            *(
                "perplexity",
                "perplexity-score",
                "guardrails",
                "max-score",
                "noise-sensitivity",
                "citation-faithfulness",
            ),
        ),
        _MODEL,
    ),
    "is-refusal": "its list of phrases is promptfoo's; use `contains_any` with the phrases of your models",
    "meteor": "it needs WordNet",
    **dict.fromkeys(
        ("is-sql", "contains-sql", "is-xml", "contains-xml", "is-html", "contains-html"), "nothing parses it here"
    ),
    "trajectory:tool-args-match": "`tool_calls` compares all calls of a row; write its gold",
    **dict.fromkeys(
        ("trajectory:step-count", "trace-span-count", "trace-span-duration", "trace-error-spans", "skill-used"),
        "it reads promptfoo's traces",
    ),
}
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
