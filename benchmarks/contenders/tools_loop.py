"""Tool calls by hand: a plain loop over messages or tagged text, a checker of BFCL's rules for flat arguments, and jsonschema_rs; scores
without reasons. What tasks bring is parsed once for each text.
"""

import json
import re
from functools import cache
from pathlib import Path

_TAG = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_IGNORED = re.compile(r"[ \,\.\/\-\_\*\^]")
_TYPES = {"string": str, "integer": int, "float": float, "boolean": bool, "dict": dict, "array": list}
_NAMES = {"dict": "object", "float": "number"}


def prepare(spec, frame):
    name = json.loads(Path(spec).read_text("utf-8"))["id"]
    del frame
    return SCORES[name]


def run(score, frame):
    return {"reward": [score(row) for row in frame.to_dicts()]}


_parsed = cache(json.loads)


def _calls(row):
    """Return the calls of messages; arguments that are not JSON are text, and equal none that is expected, as the checks define it."""
    requests = [call["function"] for message in row["completion"] for call in message["tool_calls"] or ()]
    return [(request["name"], _read(request["arguments"])) for request in requests]


def _tagged(row):
    """Return the calls in tags; what cannot be read is a call without a name, as the checks define it, not the end of the loop."""
    values = map(_read, _TAG.findall(row["said"]))
    return [
        (call.get("name"), call.get("arguments", {})) if isinstance(call, dict) else (None, call) for call in values
    ]


def _read(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


def _std(value):
    return _IGNORED.sub("", value).lower().replace("'", '"') if isinstance(value, str) else value


def _object_fits(value, allowed):
    if any(
        key not in allowed or _std(one) not in [_std(other) for other in allowed[key]] for key, one in value.items()
    ):
        return False
    return all(key in value or "" in values for key, values in allowed.items())


def _fits(arguments, allowed, schema):
    if not isinstance(arguments, dict) or any(name not in arguments for name in schema["required"]):
        return False
    for name, given in arguments.items():
        if name not in schema["properties"] or name not in allowed:
            return False
        doc = schema["properties"][name]
        kind = _TYPES[doc["type"]]
        value = float(given) if kind is float and type(given) is int else given
        if type(value) is not kind:
            return False
        if kind is dict:
            matches = any(_object_fits(value, other) for other in allowed[name] if other != "")
        elif kind is list:
            inner = _TYPES[doc["items"]["type"]]
            matches = all(type(item) is inner for item in value)
            matches = matches and [_std(item) for item in value] in [
                [_std(item) for item in one] for one in allowed[name]
            ]
        else:
            matches = _std(value) in [_std(other) for other in allowed[name]]
        if not matches:
            return False
    return all(name in arguments or "" in values for name, values in allowed.items())


def _bfcl(row, calls):
    gold, docs = _parsed(row["gold"]), {doc["name"]: doc["parameters"] for doc in _parsed(row["tools"])}
    if len(calls) != len(gold):
        return 0.0
    used = set()
    for expected in gold:
        ((name, allowed),) = expected.items()
        for at, (called, arguments) in enumerate(calls):
            if at not in used and called == name and _fits(arguments, allowed, docs[name]):
                used.add(at)
                break
        else:
            return 0.0
    return 1.0


def _expected(row):
    return [(call["name"], call["arguments"]) for call in _parsed(row["expected"])]


def _share(calls, gold):
    rest = [*calls]
    for call in gold:
        if call in rest:
            rest.remove(call)
    return (len(calls) - len(rest)) / max(len(calls), len(gold))


def _f1(calls, gold):
    called, expected = {name for name, _ in calls}, {name for name, _ in gold}
    both = len(called & expected)
    precision, recall = (both / len(called), both / len(expected)) if both else (0.0, 0.0)
    return 2 * precision * recall / (precision + recall) if both else float(not (called or expected))


def _in_order(calls, gold):
    names = iter([name for name, _ in calls])
    return float(all(name in names for name, _ in gold))


def _three(calls, gold):
    return (_share(calls, gold) + _f1(calls, gold) + float(1 <= len(calls) <= 3)) / 3.0


def _beside_expected(score):
    return lambda row: score(_calls(row), _expected(row))


@cache
def _validators(text):
    import jsonschema_rs

    def plain(schema):
        if isinstance(schema, dict):
            return {key: _NAMES.get(one, one) if key == "type" else plain(one) for key, one in schema.items()}
        return schema

    return {doc["name"]: jsonschema_rs.validator_for(plain(doc["parameters"]), offline=True) for doc in _parsed(text)}


def _valid(row):
    validators = _validators(row["tools"])
    return float(
        all(
            name in validators and isinstance(arguments, dict) and validators[name].is_valid(arguments)
            for name, arguments in _calls(row)
        )
    )


SCORES = {
    "bfcl": lambda row: _bfcl(row, _calls(row)),
    "bfcl, text": lambda row: _bfcl(row, _tagged(row)),
    "three checks": _beside_expected(_three),
    "exact": _beside_expected(lambda calls, gold: float(_share(calls, gold) == 1)),
    "share": _beside_expected(_share),
    "f1": _beside_expected(_f1),
    "one call": lambda row: float(len(_calls(row)) == 1),
    "sequence": _beside_expected(_in_order),
    "tool_valid": _valid,
}
"""A score for each spec, by its name."""
