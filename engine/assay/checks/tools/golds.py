"""The calls that a task expects, in the forms in which data sets write them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from assay.errors import quoted
from assay.expressions.json import NOT_JSON, loads
from assay.steps.tool_calls.calls import Call, calls_of, parsed_calls, requested_call
from assay.system.cache import cached_within
from assay.system.documents import named

CACHE_BYTES = 32_000_000
"""Size of each cache of what was read from texts."""


def bytes_of(_: object, text: str) -> int:
    """Estimate the size of a text and of what was read from it."""
    return 20 * len(text)


_PLAIN = {"name", "arguments"}
_WRAPPERS = frozenset(("name", "function", "functionCall", "function_call"))
"""Keys of objects with a call in them."""


class ExpectedCall(NamedTuple):
    """A call that is expected."""

    name: str
    arguments: dict[str, Any]


def expected_calls(gold: Any) -> tuple[ExpectedCall, ...]:
    """Return the calls of a gold."""
    return _calls_of_text(gold) if isinstance(gold, str) else _calls(gold)


@cached_within(CACHE_BYTES, bytes_of)
def _calls_of_text(text: str) -> tuple[ExpectedCall, ...]:
    return _calls(loads(text))


def _calls(gold: Any) -> tuple[ExpectedCall, ...]:
    if gold is NOT_JSON:
        raise ValueError("the expected calls are not JSON")
    return tuple(map(_call, gold if isinstance(gold, list) else [gold]))


def _call(item: Any) -> ExpectedCall:
    if isinstance(item, str) and item.startswith("{"):
        item = loads(item)
    plain = _plain_call(item) if type(item) is dict else None
    if plain is not None:
        return plain
    if not isinstance(item, Mapping):
        raise ValueError(f"a call is an object with a name and arguments, not {named(item)}")
    calls = calls_of(item) or requested_call(item) or _by_name(item)
    if len(calls) != 1:
        raise ValueError("a call is {name, arguments} or {name: arguments}")
    (call,) = parsed_calls(calls)
    name, arguments = call["name"], call["arguments"]
    if not isinstance(name, str):
        raise ValueError(f"the name of a call is a string, not {named(name)}")
    if not isinstance(arguments, dict):
        raise ValueError(f"the arguments of {quoted(name)} are {named(arguments)}, not an object")
    return ExpectedCall(name, arguments)


def _plain_call(item: dict[str, Any]) -> ExpectedCall | None:
    if item.keys() == _PLAIN:
        name, arguments = item["name"], item["arguments"]
    elif len(item) == 1:
        name, arguments = next(iter(item.items()))
    else:
        return None
    usual = type(name) is str and name not in _WRAPPERS and type(arguments) is dict
    return ExpectedCall(name, arguments) if usual and name else None


def _by_name(item: Mapping[str, Any]) -> list[Call]:
    calls = [{"name": name, "arguments": arguments} for name, arguments in item.items()]
    return calls if len(calls) == 1 and isinstance(calls[0]["arguments"], Mapping) else []


def expected_names(gold: Any) -> tuple[str, ...]:
    """Return the names of functions that a gold lists."""
    return _names_of_text(gold) if isinstance(gold, str) else _names(gold)


@cached_within(CACHE_BYTES, bytes_of)
def _names_of_text(text: str) -> tuple[str, ...]:
    if not text.lstrip().startswith(("[", "{")):
        return tuple(name.strip() for name in text.split(",") if name.strip())
    value = loads(text)
    if value is NOT_JSON:
        raise ValueError("the expected names are neither JSON nor names with commas between them")
    return _names(value)


def _names(value: Any) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    return tuple(item if isinstance(item, str) else _call(item).name for item in items)
