"""JSON Schema by hand: a loop over rows with the package ``jsonschema``; scores without reasons."""

import json
from pathlib import Path

import jsonschema

from contenders.json_loop import run, valid

__all__ = ["prepare", "run"]


def prepare(spec, frame):
    schema = json.loads(Path(spec).read_text("utf-8"))["checks"][0]["schema"]
    rows = frame.to_dicts()
    texts = {row["schema"] for row in rows} if "column" in schema else set()
    known = {text: jsonschema.Draft202012Validator(json.loads(text)) for text in texts}
    one = None if known else jsonschema.Draft202012Validator(schema)
    return (lambda row: valid(row, one or known[row["schema"]])), rows
