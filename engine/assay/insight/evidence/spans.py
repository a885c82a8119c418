"""Where in a text the evidence of a check is: what it read or searched for, the golds it missed, and what should not be there."""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import Any

from assay.checks.base import Check
from assay.checks.expectations import METADATA
from assay.checks.expectations import read as read_expectations
from assay.checks.instructions.instructions import read_task
from assay.checks.json.match import JsonMatch
from assay.checks.json.schemas import compiled, json_value
from assay.checks.tools.tool_calls import ToolCalls
from assay.expressions.counts import COUNTS
from assay.expressions.json import NOT_JSON, placed_within
from assay.expressions.json_places import PlacedArray, PlacedObject, PlacedScalar, PlacedValue, json_stop, placed_json
from assay.expressions.mixed import untyped
from assay.expressions.regex.flavors import named_lists
from assay.expressions.regex.spans import ExtractionPlace, MatchPlaces
from assay.expressions.text import word_places
from assay.frozen import frozen
from assay.insight.evidence.reader import CheckReader
from assay.steps.places import Place, PlacedText, places_of
from assay.steps.regex import operate
from assay.steps.tool_calls.calls import ARGUMENTS, parsed_calls
from assay.steps.tool_calls.text import calls_in_text
from assay.values.paths import ABSENT, Path, find
from assay.values.references import json_text

READ, MATCHED, GOLD, EXCESS, OFFENDING = KINDS = ("read", "matched", "gold", "excess", "offending")
MOST = 100
"""Spans of a check that are kept."""
_VIOLATIONS = 3

Mark = tuple[str, Place | None]
"""A kind and a place in the source; None for one that has none."""


@frozen
class Scene:
    """A check on a row, with what it reads.

    Attributes:
        value: The text after the steps.
        fails: Whether the check fails.
    """

    reader: CheckReader
    row: Mapping[str, Any]
    value: PlacedText
    fails: bool

    @cached_property
    def check(self) -> Check:
        """The check of the first gold, with the params that the row brings."""
        return next(iter(self.reader.checks(self.row)), self.reader.bare)

    @property
    def params(self) -> Any:
        """Its params."""
        return self.check.params

    @property
    def is_negated(self) -> bool:
        """Whether what the check searches for must not be there."""
        return self.reader.negates is not (self.reader.type == "not_contains")

    @cached_property
    def compared(self) -> PlacedText:
        """The value as it is searched: in lower case, where case does not matter."""
        return self.value if self.reader.is_cased else self.value.recased(str.lower)

    def searched(self, text: PlacedText, places: Iterable[Place]) -> Iterator[Mark]:
        """Yield the first place that a search finds, or all of them if there must be none."""
        kind, most = (OFFENDING, None) if self.is_negated else (MATCHED, 1)
        yield from ((kind, text.span(*place)) for place in islice(places, most))


def marks_of(scene: Scene) -> Iterator[Mark]:
    """Yield what the type of a check says of a row, beside what it read."""
    yield from _MARKS.get(scene.reader.type, _nothing)(scene)


def _nothing(_: Scene) -> Iterator[Mark]:
    return iter(())


def _phrases(scene: Scene) -> Iterator[Mark]:
    for gold in scene.reader.phrases(scene.row):
        text, phrase = scene.compared, gold if scene.reader.is_cased else gold.lower()
        places = word_places(text.text, phrase) if scene.params.word else places_of(text.text, phrase)
        yield from scene.searched(text, places)


def _edges(scene: Scene) -> Iterator[Mark]:
    text = scene.compared.stripped() if scene.params.strip else scene.compared
    for gold in scene.reader.expected(scene.row):
        phrase = scene.reader.bare.compared(gold)  # type: ignore[attr-defined]
        at_end = scene.reader.type == "ends_with"
        if text.text.endswith(phrase) if at_end else text.text.startswith(phrase):
            start = len(text.text) - len(phrase) if at_end else 0
            yield from scene.searched(text, [(start, start + len(phrase))])


def _pattern(scene: Scene) -> Iterator[Mark]:
    lists, limits = scene.params.named_lists, scene.check.limits
    for pattern in map(str, scene.reader.golds(scene.row)):
        if scene.is_negated:
            places = operate(MatchPlaces(pattern, lists=lists), scene.value.text, limits)
        else:
            place = operate(ExtractionPlace(pattern, lists=lists), scene.value.text, limits)
            places = [] if place is None else [place]
        yield from scene.searched(scene.value, places)


# ── too much ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _beyond(scene: Scene, unit: str, limit: float) -> Iterator[Mark]:
    """Yield one span from the first item beyond a limit to the end of the last."""
    places = islice(COUNTS[unit].places(scene.value.text), max(math.floor(limit), 0), None)
    if (first := next(places, None)) is not None:
        last = next(iter(deque(places, maxlen=1)), first)
        yield EXCESS, scene.value.span(first[0], last[1])


def _length(scene: Scene) -> Iterator[Mark]:
    return iter(()) if scene.reader.negates else _beyond(scene, "chars", scene.params.value)


def _length_penalty(scene: Scene) -> Iterator[Mark]:
    unit = scene.params.unit  # a length that the row brings is in no text
    if unit in ("chars", "words") and not scene.reader.negates:
        yield from _beyond(scene, unit, float(scene.params.max) - float(scene.params.buffer))


def _count(scene: Scene) -> Iterator[Mark]:
    of, negated = scene.params.of, scene.reader.negates
    bounds = [bound for bound in (scene.params.max, scene.params.exactly) if bound is not None]
    limit = max(math.floor(min(bounds)), 0) if bounds and not negated else None
    if isinstance(of, str) and COUNTS[of].is_all:
        yield from () if limit is None else _beyond(scene, of, limit)
        return
    text, places = _counted(scene, of)
    for number, place in enumerate(places):
        if limit is not None and number >= limit:
            yield EXCESS, text.span(*place)
        elif of != "items" and (scene.fails or not negated):
            yield OFFENDING if negated else MATCHED, text.span(*place)


def _counted(scene: Scene, of: Any) -> tuple[PlacedText, Iterable[Place]]:
    value = scene.value
    if of == "items":
        tree = _tree(value.text)
        items: Iterable[PlacedValue] = () if isinstance(tree, PlacedScalar | None) else _items(tree)
        return value, [(item.start, item.end) for item in items]
    if isinstance(of, str):
        return value, COUNTS[of].places(value.text)
    if "pattern" in of:
        operation = MatchPlaces(of["pattern"], lists=named_lists(of.get("flavor", "re"), of.get("lists")))
        return value, operate(operation, value.text, scene.check.limits)
    if of.get("caseSensitive", of.get("case_sensitive", False)):
        return value, places_of(value.text, of["text"])
    lowered = value.recased(str.lower)
    return lowered, places_of(lowered.text, of["text"].lower())


# ── JSON ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _tree(text: str) -> PlacedValue | None:
    """Return the JSON value of a whole text; None if it is not JSON."""
    return None if json_value(text) is NOT_JSON else placed_json(text)


def _items(value: PlacedValue) -> Iterable[PlacedValue]:
    return value.values() if isinstance(value, PlacedObject) else value if isinstance(value, PlacedArray) else ()


def _offending(scene: Scene, values: Iterable[PlacedValue]) -> Iterator[Mark]:
    return ((OFFENDING, scene.value.span(value.start, value.end)) for value in values)


def _json(scene: Scene) -> Iterator[Mark]:
    if not scene.fails or scene.reader.negates:
        return
    tree = _tree(scene.value.text)
    if tree is not None:
        inside = {"json_schema": _violations, "json_match": _unmatched}.get(scene.reader.type)
        yield from () if inside is None else _offending(scene, inside(scene, tree))
    elif (at := json_stop(scene.value.text)) is not None:
        yield OFFENDING, scene.value.span(at, at + 1)


def _violations(scene: Scene, tree: PlacedValue) -> Iterator[PlacedValue]:
    text = scene.value.text
    for gold in scene.reader.golds(scene.row)[:1]:
        schema = compiled(json_text(gold), scene.params.validate_formats)
        for path in schema.places(json_value(text), text)[:_VIOLATIONS]:
            value = find(tree, Path(tuple(path)))
            yield from () if value is ABSENT else (value,)


def _unmatched(scene: Scene, tree: PlacedValue) -> Iterator[PlacedValue]:
    """Yield the leaves without a partner; of equal ones at a path, the last."""
    check, text = scene.check, scene.value.text
    assert isinstance(check, JsonMatch)  # noqa: S101  (only its type asks)
    ordered = check.params.lists == "ordered"
    for gold in scene.reader.golds(scene.row)[:1]:
        leaves: dict[Any, list[PlacedValue]] = {}
        for path, leaf in _leaves(tree, ordered=ordered):
            leaves.setdefault(path, []).append(leaf)
        wanted = {path for path, _ in _leaves(placed_json(json_text(gold)), ordered=ordered)}
        for path, _, own in check.comparison(json_value(text), json_text(gold), shown=MOST).differences:
            if own is ABSENT or (check.params.score == "subset" and path not in wanted):
                continue
            at_path = leaves.get(path, [])
            same = (leaf for leaf in reversed(at_path) if _is_value(text[leaf.start : leaf.end], own))
            if (last := next(same, None)) is not None:
                at_path.remove(last)
                yield last


def _is_value(text: str, value: Any) -> bool:
    return repr(json_value(text)) == repr(value)


def _leaves(tree: PlacedValue, *, ordered: bool) -> Iterator[tuple[tuple[Any, ...], PlacedValue]]:
    """Yield scalars and empty containers, each with its path, in which elements of an unordered list have no number."""
    pending: list[tuple[tuple[Any, ...], PlacedValue]] = [((), tree)]
    while pending:
        path, value = pending.pop()
        if isinstance(value, PlacedScalar) or not value:
            yield path, value
            continue
        steps: Iterable[Any] = value if isinstance(value, PlacedObject) else range(len(value))
        inside = [((*path, step if ordered or isinstance(step, str) else None), value[step]) for step in steps]
        pending += reversed(inside)


def _calls(scene: Scene) -> Iterator[Mark]:
    """Yield the arguments that differ in the first free call with the name of the first expected one that none matches."""
    check, text = scene.check, scene.value.text
    if not isinstance(check, ToolCalls) or not scene.fails or scene.reader.negates:
        return
    calls, arguments = parsed_calls(calls_in_text(text, check.params.format)), _arguments(text)
    mismatch = check.mismatch(calls, check.prepared(check.own_gold))
    if mismatch is not None and len(arguments) == len(calls):
        at, names = mismatch
        owner = arguments[at]
        inside = owner if isinstance(owner, PlacedObject) else PlacedObject()
        yield from _offending(scene, [inside[name] for name in names if name in inside] if names else [owner])


def _arguments(text: str) -> list[PlacedValue]:
    """Return the arguments of each call that stands in a text as JSON: of each object with a name."""
    found: list[PlacedValue] = []
    pending = [placed_json(text, start) for _, start in placed_within(text)][::-1]
    while pending:
        value = pending.pop()
        if isinstance(value, PlacedObject) and isinstance(value.get("name"), PlacedScalar):
            found.append(next((value[name] for name in ARGUMENTS if name in value), value))
        else:
            pending += reversed([*_items(value)])
    return found


# ── words and letters ───────────────────────────────────────────────────────────────────────────────────────────────────


def _repetition(scene: Scene) -> Iterator[Mark]:
    """Yield the sequences of words that occurred before, joined where they touch."""
    lowered, n = scene.value.recased(str.lower), scene.params.n
    words = [*COUNTS["words"].places(lowered.text)]
    texts = [lowered.text[start:end] for start, end in words]
    known: set[tuple[str, ...]] = set()
    joined: list[Place] = []
    for at in range(len(words) - n + 1 if not scene.reader.negates else 0):
        ngram = tuple(texts[at : at + n])
        if ngram in known:
            start, end = words[at][0], words[at + n - 1][1]
            if joined and start <= joined[-1][1]:
                joined[-1] = joined[-1][0], end
            else:
                joined.append((start, end))
        known.add(ngram)
    yield from ((OFFENDING, lowered.span(*place)) for place in joined)


def _case(scene: Scene) -> Iterator[Mark]:
    if scene.reader.negates:
        return
    is_wrong, before, start = _WRONG[scene.params.is_], "", -1
    for at, character in enumerate(f"{scene.value.text} "):
        wrong = is_wrong(character, before)
        if wrong and start < 0:
            start = at
        elif not wrong and start >= 0:
            yield OFFENDING, scene.value.span(start, at)
            start = -1
        before = character


def _is_cased(character: str) -> bool:
    return character.islower() or character.isupper() or character.istitle()


_WRONG: Mapping[str, Callable[[str, str], bool]] = {
    "upper": lambda character, _: character.islower() or (character.istitle() and not character.isupper()),
    "lower": lambda character, _: character.isupper() or character.istitle(),
    "title": lambda character, before: character.islower() if not _is_cased(before) else _is_capital(character),
}
"""Whether a character is in the wrong case, given the one before it."""


def _is_capital(character: str) -> bool:
    return character.isupper() or character.istitle()


# ── what rows bring ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _expectations(scene: Scene) -> Iterator[Mark]:
    lowered = scene.value.recased(str.lower)
    for entry in read_expectations(untyped(scene.row.get(METADATA))).entries:
        places = ([*places_of(lowered.text, phrase.lower())] for phrase in entry.phrases)
        if entry.forbid:
            yield from ((OFFENDING, lowered.span(*place)) for each in places for place in each)
        elif first := next(filter(None, places), None):
            yield MATCHED, lowered.span(*first[0])


def _instructions(scene: Scene) -> Iterator[Mark]:
    text, limits = scene.value.text, scene.check.limits

    def matches(pattern: str) -> list[Place]:
        found: list[Place] = operate(MatchPlaces(f"(?i){pattern}"), text, limits)
        return found

    for ident, _, arguments in read_task({**scene.row}, limits).instructions:
        places: list[Place] = []
        if ident == "keywords:existence":
            places = [place for keyword in arguments["keywords"] for place in matches(keyword.source)[:1]]
        elif ident == "keywords:frequency":
            places = matches(arguments["keyword"].source.strip())
        elif ident == "keywords:forbidden_words":
            places = [place for word in arguments["forbidden_words"] for place in matches(rf"\b{word.source}\b")]
        elif ident == "punctuation:no_comma":
            places = [*places_of(text, ",")]
        kind = OFFENDING if ident in ("keywords:forbidden_words", "punctuation:no_comma") else MATCHED
        yield from ((kind, scene.value.span(*place)) for place in places)


_MARKS: Mapping[str, Callable[[Scene], Iterator[Mark]]] = {
    **dict.fromkeys(("contains", "not_contains", "contains_any", "contains_all"), _phrases),
    **dict.fromkeys(("starts_with", "ends_with"), _edges),
    "regex": _pattern,
    "max_length": _length,
    "length_penalty": _length_penalty,
    "count": _count,
    **dict.fromkeys(("json_valid", "json_keys", "json_schema", "json_match", "expected_output_schema"), _json),
    "tool_calls": _calls,
    "repetition": _repetition,
    "case": _case,
    "task_expectations": _expectations,
    "ifeval": _instructions,
}
