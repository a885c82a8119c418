"""What a row or a spec says of the functions that may be called: their names and the schemas of their arguments."""

from collections.abc import Iterator, Mapping
from typing import Any

from assay.checks.tools.golds import CACHE_BYTES, bytes_of
from assay.expressions.json import NOT_JSON, loads
from assay.system.cache import cached_within
from assay.system.documents import named

TOOLS = "tools"
"""Column with the functions of each row."""

_SCHEMAS = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema")
_GROUPS = ("functionDeclarations", "function_declarations", "functions", "tools")
_NO_DOCS = f"no functions to compare with: give `tools`, or each row a column `{TOOLS}`"


def function_docs(tools: Any) -> Mapping[str, dict[str, Any]]:
    """Return the schema of the arguments of each function by name; of several with one name, the first."""
    if tools is None:
        raise ValueError(_NO_DOCS)
    return _docs_of_text(tools) if isinstance(tools, str) else _docs(tools)


@cached_within(CACHE_BYTES, bytes_of)
def _docs_of_text(text: str) -> Mapping[str, dict[str, Any]]:
    return _docs(loads(text))


def _docs(tools: Any) -> dict[str, dict[str, Any]]:
    if tools is NOT_JSON:
        raise ValueError("the functions are not JSON")
    docs: dict[str, dict[str, Any]] = {}
    for function in _functions(tools):
        docs.setdefault(function["name"], _schema(function))
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


def _schema(function: Mapping[str, Any]) -> dict[str, Any]:
    schema: Any = next((function[name] for name in _SCHEMAS if function.get(name) is not None), {})
    schema = loads(schema) if isinstance(schema, str) else schema
    if not isinstance(schema, dict):
        raise ValueError(f"the parameters of {function['name']!r} are {named(schema)}, not an object")
    return schema
