"""JSON Schema by hand: a loop over rows with the package ``jsonschema``; scores without reasons."""

import json
from pathlib import Path

import jsonschema


def prepare(spec, frame):
    schema = json.loads(Path(spec).read_text("utf-8"))["checks"][0]["schema"]
    rows = frame.to_dicts()
    texts = {row["schema"] for row in rows} if "column" in schema else set()
    known = {text: jsonschema.Draft202012Validator(json.loads(text)) for text in texts}
    one = None if known else jsonschema.Draft202012Validator(schema)
    return (lambda row: _valid(row, one or known[row["schema"]])), rows


def run(prepared, frame):
    del frame
    score, rows = prepared
    return {"reward": [float(score(row)) for row in rows]}


def _valid(row, validator):
    try:
        value = json.loads(row["completion"])
    except ValueError:
        return 0.0
    return validator.is_valid(value)
