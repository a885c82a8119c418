"""How much work a JSON Schema may cause: an upper bound, found without evaluating it.

Schemas come from specs and rows, texts from models, and both may be malicious. ``$ref`` lets a small schema ask for 2ⁿ evaluations, or
for a stack that ends the process. So a schema is seen as a graph: some keywords evaluate other schemas on the same value (``allOf``,
``$ref``), others on the values inside it (``properties``, ``items``). The bound follows from the number of paths through that graph
and from the size and depth of the text.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple
from urllib.parse import unquote

from assay.expressions.json import nesting
from assay.expressions.regex.compiled import quick
from assay.frozen import frozen

_HERE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies", "propertyNames")
"""Keywords with schemas for the same value, or for its keys."""
_INSIDE = (
    *("properties", "patternProperties", "additionalProperties", "unevaluatedProperties"),
    *("items", "prefixItems", "additionalItems", "contains", "unevaluatedItems"),
)
"""Keywords with schemas for the values inside it."""
_NAMED = ("properties", "patternProperties", "dependentSchemas", "dependencies")
"""Keywords whose schemas have names."""
_UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_RENAMING = ("$id", "id", "$anchor", "$dynamicAnchor")
"""Keywords that change what a reference refers to."""

_MAX_SCHEMAS = 20_000
"""Maximum schemas within a schema that is compiled in this process: compiling takes more than linear time."""
_MAX_CHAIN = 200
"""Maximum schemas that lead from one to the next while it is compiled, for the sake of the stack."""
_MAX_PATTERNS = 50_000
"""Maximum size of all patterns that are compiled in this process, counted repeats written out: a quarter of a second."""
_STACK = 2_000
"""Maximum schemas within schemas while a text is evaluated in this process; from ten times as many on, a stack of 2 MiB overflows."""
STEPS = 50_000_000
"""Maximum steps in this process, of 25 ns or so."""
_SUMMED = ("steps", "letters", "branches")
_DEEP = 64
"""Levels from which on the number of evaluations is too large anyway."""
_OPTION = 5
"""Steps to compare a value with an option of ``enum``."""
_PATTERN_STEP = 12
"""Characters of a pattern that one step takes per character of a text."""

_BOOLEAN: dict[str, Any] = {}
"""Stands for the schemas ``true`` and ``false``."""
_UNKNOWN = object()
"""Stands for a schema that only the validator finds."""
_ODD = re.compile(r"\(\?[=!<]|\\[1-9k]")
"""What the linear engine does not know: such a pattern may backtrack."""
_REPEAT = re.compile(r"\{(\d+)(?:,(\d*))?\}")
PLAIN_STEPS = 4
"""Maximum steps of a plain schema for each character of its text, on one value."""
_LONG_NUMBER = re.compile(r"\d{19}")
"""Such numbers are not hashed."""


class _Work(NamedTuple):
    """What one evaluation of a schema may take at most.

    Attributes:
        steps: Steps for each value.
        letters: Steps by patterns for each character.
        chain: Schemas that lead from one to the next.
        branches: Evaluations of a value inside.
    """

    steps: float = 0
    letters: float = 0
    chain: float = 0
    branches: float = 0

    def on(self, text: str) -> float:
        """Return the steps for a text."""
        values = 1 + text.count(",") + text.count(":") + text.count("[") + text.count("{")
        return self.steps * values + self.letters * len(text)

    def on_any(self, length: int) -> float:
        """Return the steps for any text of a length, at most: most texts need not be looked at."""
        return self.steps * (1 + length) + self.letters * length


_NOTHING = _Work()


@frozen
class SchemaCost:
    """What bounds the work that a schema causes.

    Attributes:
        compiles: Whether it is known to compile quickly.
        paths: For all schemas, over all paths that lead to them; None if the schema refers to itself.
        here: For the schemas for the same value: what it takes for each value, if it is evaluated once.
        odd_patterns: Patterns that may backtrack.
        unique: Whether values have to differ.
        choices: Whether there are alternatives, each of which has violations of its own.
        size: Approximate bytes of the compiled schema.
    """

    compiles: bool
    paths: _Work | None = None
    here: _Work = _NOTHING
    odd_patterns: tuple[str, ...] = ()
    unique: bool = False
    choices: bool = False
    size: int = 0

    def is_small(self, text: str, most: int = STEPS) -> bool:
        """Return whether it is certain that evaluating a text takes few steps and little of the stack."""
        if not self.compiles:
            return False
        is_plain = not (self.unique or self.odd_patterns or self.paths is None)
        if is_plain and self.paths.chain <= _STACK and self.paths.on_any(len(text)) <= most:  # type: ignore[union-attr]
            return True
        distinct = text.count(",") ** 2 if self.unique and _LONG_NUMBER.search(text) else 0
        work, chain = (math.inf, 0.0) if self.paths is None else (self.paths.on(text), self.paths.chain)
        if work + distinct > most:  # the other bound takes the depth of the text
            depth = nesting(text) + 1 if self.here.branches > 1 or self.paths is None else 1
            chain = self.here.chain * depth if self.paths is None else chain
            work = min(work, self.here.on(text) * max(self.here.branches, 1.0) ** min(depth, _DEEP))
        if work + distinct > most or chain > _STACK:
            return False
        return all(quick(pattern, len(text)) for pattern in self.odd_patterns)


def is_plain(text: str) -> bool:
    """Return whether it is certain by the JSON text of a schema that it compiles quickly, and that ``cost_of_text`` bounds its work."""
    # none has references, patterns, what is evaluated twice, or escapes, which may hide these names
    return (
        text.isascii()
        and "\\" not in text
        and ("$" not in text or text.count('"$') == text.count('"$schema"'))
        and '"pattern' not in text
        and '"unevaluated' not in text
        and '"uniqueItems"' not in text
        and text.count("{") <= _MAX_CHAIN
    )


def cost_of_text(text: str) -> SchemaCost:
    """Return a higher bound for the JSON text of a plain schema, in far less time than ``cost_of``."""
    # a step for each schema, key and item of a list; for each character within the options of `enum`, which ``json.dumps`` writes
    # with spaces and all digits, four
    steps = PLAIN_STEPS * len(text) if '"enum"' in text else sum(map(text.count, "{:,["))
    return SchemaCost(compiles=True, paths=_Work(steps=steps, chain=text.count("{")))


def cost_of(schema: Any) -> SchemaCost:
    """Return what bounds the work that a schema causes."""
    # a reference may refer to anything where a keyword renames schemas
    root = None if _has_renamed(schema) else schema
    nodes = _schemas(schema, root)
    if nodes is None:
        return SchemaCost(compiles=False)
    numbers = {id(node): number for number, node in enumerate(nodes)}

    def numbered(schemas: Iterable[Any]) -> list[int]:
        return [numbers[id(inner)] for inner in schemas if isinstance(inner, dict)]

    # to find out what is unevaluated, what has been evaluated is evaluated again
    times = [2 if any(name in node for name in _UNEVALUATED) else 1 for node in nodes]
    same = [again * numbered(_same(node, root)) for again, node in zip(times, nodes, strict=True)]
    inside = [numbered(_within(node, _INSIDE)) for node in nodes]
    patterns = [pattern for node in nodes for pattern in _patterns(node)]
    weight = sum(map(_written_out, patterns))
    here = _most(nodes, same)
    if weight > _MAX_PATTERNS or here is None:  # or it refers to itself for the same value
        return SchemaCost(compiles=False)
    return SchemaCost(
        compiles=True,
        paths=_most(nodes, [[*here_, *inner] for here_, inner in zip(same, inside, strict=True)]),
        here=here,
        odd_patterns=tuple(dict.fromkeys(pattern for pattern in patterns if _ODD.search(pattern))),
        unique=any(node.get("uniqueItems") is True for node in nodes),
        choices=any("anyOf" in node or "oneOf" in node for node in nodes),
        size=1_000 * len(nodes) + 100 * int(weight),
    )


def _schemas(schema: Any, root: Any) -> list[dict[str, Any]] | None:
    nodes: dict[int, dict[str, Any]] = {}
    pending = [(schema, 0)]
    while pending:
        node, depth = pending.pop()
        if not isinstance(node, dict) or id(node) in nodes:
            continue
        nodes[id(node)] = node
        inner = [*_same(node, root), *_within(node, _INSIDE)]
        if depth > _MAX_CHAIN or len(nodes) > _MAX_SCHEMAS or any(item is _UNKNOWN for item in inner):
            return None
        pending += [(item, depth + 1) for item in inner]
    return [*nodes.values()]


def _same(schema: Mapping[str, Any], root: Any) -> Iterator[Any]:
    yield from _within(schema, _HERE)
    yield from (_target(root, schema[name]) for name in _REFERENCES if name in schema)


def _most(nodes: Sequence[Mapping[str, Any]], followers: Sequence[Sequence[int]]) -> _Work | None:
    try:
        order = [*TopologicalSorter(dict(enumerate(followers))).static_order()]
    except CycleError:
        return None
    works = [_NOTHING] * len(nodes)
    for number in order:
        after = [works[follower] for follower in followers[number]]
        own = _own_work(nodes[number])
        steps, letters, branches = (sum(getattr(work, name) for work in after) for name in _SUMMED)
        chain = max((work.chain for work in after), default=0)
        works[number] = _Work(own.steps + steps, own.letters + letters, 1 + chain, own.branches + branches)
    return _Work(*map(max, zip(*works, strict=True))) if works else _NOTHING


def _has_renamed(schema: Any) -> bool:
    """Return whether a keyword changes what references refer to."""
    pending = [schema]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            names = _RENAMING[2:] if item is schema else _RENAMING
            if any(isinstance(item.get(name), str) for name in names):
                return True
            pending += item.values()
        elif isinstance(item, list):
            pending += item
    return False


def _within(schema: Mapping[str, Any], names: tuple[str, ...]) -> Iterator[Any]:
    for name in names:
        value = schema.get(name)
        if name in _NAMED and isinstance(value, dict):
            yield from value.values()
        elif isinstance(value, list):
            yield from value
        elif value is not None:
            yield value


def _target(root: Any, reference: Any) -> Any:
    if not isinstance(reference, str) or not reference.startswith("#"):
        return _UNKNOWN
    value = root
    for step in unquote(reference[1:]).split("/")[1:] if reference != "#" else ():
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list):
            value = value[int(name)] if name.isdecimal() and int(name) < len(value) else None
    is_pointer = reference == "#" or reference.startswith("#/")
    if not is_pointer or not isinstance(value, bool | dict):
        return _UNKNOWN
    return _BOOLEAN if isinstance(value, bool) else value


def _patterns(schema: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(schema.get("pattern"), str):
        yield schema["pattern"]
    if isinstance(schema.get("patternProperties"), dict):
        yield from schema["patternProperties"]


def _written_out(pattern: str) -> float:
    size = float(len(pattern))
    for match in _REPEAT.finditer(pattern):
        size *= max(int(match[2] or match[1]) if len(match[2] or match[1]) < 9 else 1e9, 1)  # noqa: PLR2004  (a number of any length)
    return size


def _own_work(schema: Mapping[str, Any]) -> _Work:
    lists = (schema.get(name) for name in ("required", "type", "dependentRequired"))
    steps = 1 + len(schema) + sum(len(value) for value in lists if isinstance(value, list | dict))
    options = schema.get("enum")
    steps += _OPTION * len(json.dumps(options)) // 8 if isinstance(options, list) else 0
    letters = sum(1 + _written_out(pattern) / _PATTERN_STEP for pattern in _patterns(schema))
    # schemas of its own that it evaluates on one value inside, at most
    named = schema.get("patternProperties")
    by_name = "properties" in schema or "additionalProperties" in schema
    of_object = (len(named) if isinstance(named, dict) else 0) + by_name + ("unevaluatedProperties" in schema)
    by_place = any(name in schema for name in ("items", "prefixItems", "additionalItems"))
    return _Work(steps, letters, 1, max(of_object, by_place + ("contains" in schema) + ("unevaluatedItems" in schema)))
