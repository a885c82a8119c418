"""JSON by hand: a loop over rows with ``jsonschema_rs``, or values flattened and counted; scores without reasons."""

import json
from collections import Counter
from pathlib import Path


def prepare(spec, frame):
    import jsonschema_rs

    data = json.loads(Path(spec).read_text("utf-8"))
    rows = frame.to_dicts()
    if data["id"] == "json_match":
        return f1, rows
    schema = data["checks"][0]["schema"]
    one = None if "column" in schema else jsonschema_rs.validator_for(schema, offline=True)
    known = (
        {} if one else {text: jsonschema_rs.validator_for(json.loads(text)) for text in {row["schema"] for row in rows}}
    )
    return (lambda row: valid(row, one or known[row["schema"]])), rows


def run(prepared, frame):
    del frame
    score, rows = prepared
    return {"reward": [float(score(row)) for row in rows]}


def valid(row, validator):
    try:
        value = json.loads(row["completion"])
    except ValueError:
        return 0.0
    return validator.is_valid(value)


def f1(row):
    """Return F1 of the leaves of a JSON text and those of its gold."""
    try:
        value = json.loads(row["completion"])
    except ValueError:
        return 0.0
    leaves, golds = Counter(_leaves(value, ())), Counter(_leaves(json.loads(row["gold"]), ()))
    return 2 * (leaves & golds).total() / (leaves.total() + golds.total())


def _leaves(value, path):
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    elif isinstance(value, list) and value:
        for at, inner in enumerate(value):
            yield from _leaves(inner, (*path, at))
    else:
        yield path, json.dumps(value)
