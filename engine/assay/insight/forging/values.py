"""JSON values and tool calls as completions write them, and what is nearly these; read by ``json`` and ``ast``."""

import ast
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from assay.insight.forging.made import Made, Wrap


def _dumps(value: Any, **options: Any) -> str:
    return json.dumps(value, **{"ensure_ascii": False, **options})


def is_same(one: Any, other: Any, *, ordered: bool = True) -> bool:
    """Return whether two JSON values are the same by value and type: true is not 1, and 1 is 1.0."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_same(one[name], other[name], ordered=ordered) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        if not ordered:
            one, other = (sorted(items, key=lambda item: _dumps(item, sort_keys=True)) for items in (one, other))
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(is_same(*pair, ordered=ordered) for pair in pairs)
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    numbers = isinstance(one, int | float) and isinstance(other, int | float)
    return bool(one == other) if numbers or type(one) is type(other) else False


def json_cases(gold: Any, wrap: Wrap, *, subset: bool, ordered: bool) -> Iterator[Made]:
    """Yield a JSON value as texts write it, and what is nearly it.

    Args:
        gold: The value.
        wrap: Puts it into the text that the check reads.
        subset: Whether a value may have more than the gold.
        ordered: Whether the places of a list's elements count.
    """
    forms = {
        "plain": _dumps(gold, separators=(",", ":")),
        "reversed_keys": _dumps(_mapped(gold, lambda value: dict(reversed(value.items())), dict)),
        "indented": _dumps(gold, indent=2),
        "tabs": _dumps(gold, indent="\t"),
        "escaped": _dumps(gold, ensure_ascii=True),
        "floats": _dumps(_mapped(gold, _as_float, int)),
        "padded": f" \n{_dumps(gold)}\n ",
    }
    for form, text in forms.items():
        if is_same(json.loads(text), gold):
            yield Made(form, "form", wrap(text))
    for form, value in _changed(gold):
        if not (is_same(value, gold, ordered=ordered) or (subset and form == "extra_key")):
            yield Made(form, "near", wrap(_dumps(value)))
    if isinstance(gold, dict | list):
        yield Made("truncated", "near", wrap(_dumps(gold)[:-1]))


def _as_float(value: int) -> int | float:
    return float(value) if abs(value) < 1 << 53 else value


def _mapped(value: Any, change: Callable[[Any], Any], kind: type) -> Any:
    """Return a value in which each part of a type is changed."""
    if isinstance(value, dict):
        value = {name: _mapped(item, change, kind) for name, item in value.items()}
    elif isinstance(value, list):
        value = [_mapped(item, change, kind) for item in value]
    return change(value) if type(value) is kind else value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each part of a value with what holds it, from the outside."""
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    pairs = [(value, place) for place, _ in items]
    for holder, place in pairs:
        yield holder, place
        yield from _places(holder[place])


def _first(gold: Any, fits: Callable[[Any], bool], change: Callable[[Any], Any]) -> Any:
    """Return a value whose first part that fits is changed; None if there is none."""
    holder = [deepcopy(gold)]
    for held, place in _places(holder):
        if fits(held[place]):
            held[place] = change(held[place])
            return holder
    return None


def _changed(gold: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(gold, dict):
        names = [*gold]
        yield "missing_key", {name: gold[name] for name in names[1:]}
        yield "extra_key", gold if "extra" in gold else {**gold, "extra": "x"}
        yield "renamed_key", {f"{name}_" if name == names[0] else name: value for name, value in gold.items()}
        if len(names) > 1:
            yield "swapped_values", {**gold, names[0]: gold[names[1]], names[1]: gold[names[0]]}

    for form, fits, change in _PARTS:
        if (holder := _first(gold, fits, change)) is not None:
            yield form, holder[0]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


_PARTS: Sequence[tuple[str, Callable[[Any], bool], Callable[[Any], Any]]] = (
    ("number_changed", _is_number, lambda value: value + 1),
    ("number_as_string", _is_number, _dumps),
    ("string_cut", _is_text, lambda value: value[:-1]),
    ("string_nulled", _is_text, lambda _: None),
    ("boolean_flipped", _is_bool, lambda value: not value),
    ("boolean_as_number", _is_bool, int),
    ("list_reversed", _is_list, lambda value: value[::-1]),
    ("list_cut", _is_list, lambda value: value[:-1]),
)
"""Parts of a value of which the first is changed."""


def calls_of(gold: Any) -> list[dict[str, Any]] | None:
    """Return the calls that a gold expects, each with ``name`` and ``arguments``; None where it has another form."""
    calls = []
    for item in gold if isinstance(gold, list) else ():
        call = item.get("function", item) if isinstance(item, Mapping) else {}
        arguments = call.get("arguments", {})
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except ValueError:
                return None
        if not (isinstance(call.get("name"), str) and isinstance(arguments, Mapping)):
            return None
        calls.append({"name": call["name"], "arguments": dict(arguments)})
    return calls or None


_NO_CALL = "I need no tool for that."


def call_cases(
    calls: list[dict[str, Any]],
    wrap: Wrap,
    *,
    same: bool,
    how: str,
    written: str,
    free: Sequence[str],
) -> Iterator[Made]:
    """Yield calls as messages and texts have them, and what is nearly these.

    Args:
        calls: The calls.
        wrap: Puts calls in a text into what the check reads.
        same: Whether their order counts.
        how: How arguments are compared: ``exact``, ``subset`` or ``ignore``.
        written: In which form calls stand in texts: ``any``, ``json``, ``tags`` or ``python``.
        free: Arguments that may differ, as ``argument`` or ``function.argument``.
    """
    turned = [{**call, "arguments": dict(reversed(call["arguments"].items()))} for call in calls]
    yield Made("plain", "form", _messages(calls))
    yield Made("reversed_arguments", "form", _messages(turned))
    yield Made("indented", "form", _messages(calls, indent=2))
    for form, (write, read) in _WRITTEN.items():
        text = write(calls)
        if written in ("any", form) and text is not None and is_same(read(text), calls):
            yield Made(form, "form", wrap(text))
    if len(calls) > 1 and not same:
        yield Made("reversed_calls", "form", _messages(calls[::-1]))
    for form, changed in _changed_calls(calls, how, free):
        if not _same_calls(changed, calls, same=same):
            yield Made(form, "near", _messages(changed) if changed else wrap(_NO_CALL))


def _same_calls(one: Sequence[Any], other: Sequence[Any], *, same: bool) -> bool:
    return is_same([*one], [*other]) or (not same and Counter(map(_key, one)) == Counter(map(_key, other)))


def _key(call: Any) -> str:
    return _dumps(call, sort_keys=True)


def _changed_calls(
    calls: list[dict[str, Any]], how: str, free: Sequence[str]
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    (first, *rest), arguments = calls, calls[0]["arguments"]
    yield "other_name", [{**first, "name": f"{first['name']}_v2"}, *rest]
    if how == "exact":
        yield "extra_argument", [{**first, "arguments": {**arguments, "extra": 1}}, *rest]
    yield "missing_call", rest
    yield "repeated_call", [*calls, first]
    counting = [name for name in arguments if not {name, f"{first['name']}.{name}"} & {*free}]
    if counting and how != "ignore":
        name = counting[0]
        others = {key: value for key, value in arguments.items() if key != name}
        yield "missing_argument", [{**first, "arguments": others}, *rest]
        yield "changed_argument", [{**first, "arguments": {**arguments, name: _other(arguments[name])}}, *rest]
    if len(calls) > 1:
        yield "reversed_calls", calls[::-1]


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return f"{value}x" if isinstance(value, str) else "x"


def _messages(calls: Sequence[Mapping[str, Any]], **options: Any) -> list[dict[str, Any]]:
    written = [
        {"type": "function", "function": {"name": call["name"], "arguments": _dumps(call["arguments"], **options)}}
        for call in calls
    ]
    return [{"role": "assistant", "content": "", "tool_calls": written}]


def _tags(calls: Sequence[Any]) -> str:
    return "\n".join(f"<tool_call>\n{_dumps(call)}\n</tool_call>" for call in calls)


def _from_tags(text: str) -> Any:
    parts = text.removeprefix("<tool_call>\n").removesuffix("\n</tool_call>").split("\n</tool_call>\n<tool_call>\n")
    return [json.loads(part) for part in parts]


def _python(calls: Sequence[Mapping[str, Any]]) -> str | None:
    if not all(name.isidentifier() for call in calls for name in call["arguments"]):
        return None
    if not all(part.isidentifier() for call in calls for part in call["name"].split(".")):
        return None
    written = (
        f"{call['name']}({', '.join(f'{name}={value!r}' for name, value in call['arguments'].items())})"
        for call in calls
    )
    return f"[{', '.join(written)}]"


def _from_python(text: str) -> Any:
    try:
        tree = ast.parse(text, mode="eval").body
        return [
            {
                "name": ast.unparse(call.func),
                "arguments": {str(word.arg): ast.literal_eval(word.value) for word in call.keywords},
            }
            for call in getattr(tree, "elts", ())
            if isinstance(call, ast.Call)
        ]
    except (SyntaxError, ValueError):  # a keyword of Python as the name of an argument
        return None


_WRITTEN: Mapping[str, tuple[Callable[[Any], str | None], Callable[[str], Any]]] = {
    "tags": (_tags, _from_tags),
    "json": (_dumps, json.loads),
    "python": (_python, _from_python),
}
