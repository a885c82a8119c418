"""What a task says of calls, in the forms in which data sets write it: the calls, their names, and the functions there are."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any, NamedTuple, TypeVar

from assay.errors import quoted
from assay.expressions.json import NOT_JSON, loads
from assay.steps.tool_calls.calls import calls_of, parsed_calls, requested_call
from assay.system.cache import cached_within
from assay.system.documents import named
from assay.values.references import as_list

TOOLS = "tools"
"""Column with the functions of each row."""

Result = TypeVar("Result")
CACHE_BYTES = 32_000_000
"""Size of each cache of what was read from texts."""
_SCHEMAS = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema")
_GROUPS = ("functionDeclarations", "function_declarations", "functions", "tools")
_FIELDS_OF_MESSAGES = frozenset(("tool_calls", "function_call", "functionCall", "content", "parts", "type", "name"))
"""Fields of an object that are looked at for calls; no other is read."""
_NO_DOCS = f"no functions to compare with: give `tools`, or each row a column `{TOOLS}`"


class ExpectedCall(NamedTuple):
    """A call that is expected."""

    name: str
    arguments: dict[str, Any]


def bytes_of(_: object, text: str) -> int:
    """Return the approximate size of what a text was read to."""
    return 10 * len(text)


def _read_once(read: Callable[[Any], Result]) -> Callable[[Any], Result]:
    kept = cached_within(CACHE_BYTES, bytes_of)(read)
    return wraps(read)(lambda gold: kept(gold) if isinstance(gold, str) else read(gold))


def expected_calls(gold: Any) -> tuple[ExpectedCall, ...]:
    """Return the calls of a gold."""
    gold = loads(gold) if isinstance(gold, str) else gold
    if gold is NOT_JSON:
        raise ValueError("the expected calls are not JSON")
    return tuple(map(_call, as_list(gold)))


def _call(item: Any) -> ExpectedCall:
    if (usual := _usual_call(item)) is not None:
        return usual
    if isinstance(item, str) and item.startswith("{") and (read := loads(item)) is not NOT_JSON:
        item = read
    if not isinstance(item, Mapping):
        raise ValueError(f"a call is an object with a name and arguments, not {named(item)}")
    calls = calls_of(item) or requested_call(item)
    if not calls and len(item) == 1:  # with its name as only key
        calls = [{"name": name, "arguments": given} for name, given in item.items() if isinstance(given, Mapping)]
    if len(calls) != 1:
        raise ValueError("a call is {name, arguments} or {name: arguments}")
    (call,) = parsed_calls(calls)
    name, arguments = call["name"], call["arguments"]
    if not isinstance(name, str):
        raise ValueError(f"the name of a call is a string, not {named(name)}")
    if not isinstance(arguments, dict):
        raise ValueError(f"the arguments of {quoted(name)} are {named(arguments)}, not an object")
    return ExpectedCall(name, arguments)


def _usual_call(item: Any) -> ExpectedCall | None:
    """Return a call in one of the two forms that almost all have; None for any other."""
    if not isinstance(item, dict):
        return None
    is_named = len(item) == len(ExpectedCall._fields) and item.get("name")
    name, arguments = (item.get("name"), item.get("arguments")) if is_named else next(iter(item.items()), (None, None))
    is_usual = is_named or (len(item) == 1 and name not in _FIELDS_OF_MESSAGES)
    return ExpectedCall(name, arguments) if is_usual and isinstance(name, str) and isinstance(arguments, dict) else None


@_read_once
def expected_names(gold: Any) -> tuple[str, ...]:
    """Return the names of functions that a gold lists."""
    if isinstance(gold, str):
        if not gold.lstrip().startswith(("[", "{")):
            return _stripped(gold.split(","))
        gold = loads(gold)
        if gold is NOT_JSON:
            raise ValueError("the expected names are neither JSON nor names with commas between them")
    items = as_list(gold)
    return _stripped(item if isinstance(item, str) else _call(item).name for item in items)


def _stripped(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, names)))


@_read_once
def function_docs(tools: Any) -> Mapping[str, dict[str, Any]]:
    """Return the schema of the arguments of each function by name; of several with one name, the first."""
    if tools is None:
        raise ValueError(_NO_DOCS)
    tools = loads(tools) if isinstance(tools, str) else tools
    if tools is NOT_JSON:
        raise ValueError("the functions are not JSON")
    docs: dict[str, dict[str, Any]] = {}
    for function in _functions(tools):
        schema: Any = next((function[name] for name in _SCHEMAS if function.get(name) is not None), {})
        schema = loads(schema) if isinstance(schema, str) else schema
        if not isinstance(schema, dict):
            raise ValueError(f"the parameters of {function['name']!r} are {named(schema)}, not an object")
        docs.setdefault(function["name"], schema)
    return docs


def _functions(value: Any) -> Iterator[Mapping[str, Any]]:
    queue = [value]
    while queue:
        item = queue.pop()
        item = loads(item) if isinstance(item, str) else item
        if isinstance(item, list):
            queue += item[::-1]
            continue
        if item is NOT_JSON:
            raise ValueError("a function is text that is not JSON")
        if not isinstance(item, Mapping):
            raise ValueError(f"a function is an object with a name, not {named(item)}")
        function = item["function"] if isinstance(item.get("function"), Mapping) else item
        group = next((name for name in _GROUPS if isinstance(item.get(name), list)), "")
        if group and "name" not in item:
            queue.append(item[group])
        elif not isinstance(function.get("name"), str):
            raise ValueError("a function has no name")
        else:
            yield function
