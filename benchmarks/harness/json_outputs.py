"""JSON outputs to be measured: objects of about 200 characters, some of them wrong, and golds for eight rows each."""

import json
import random
import zlib
from pathlib import Path

import polars as pl

from harness.draws import SEED
from harness.generate import CACHE, kept

__all__ = ["SCHEMA", "SPECS", "json_file", "json_spec"]

_GOLD_ROWS = 8
"""Rows with the same gold."""
_WRONG = 0.1
"""Share of the outputs with a wrong value, and of those that are prose."""

SCHEMA = {
    "type": "object",
    "required": ["urgency", "categories", "owner"],
    "additionalProperties": False,
    "properties": {
        "urgency": {"enum": ["low", "medium", "high"]},
        "categories": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "owner": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        },
        "note": {"type": "string", "maxLength": 400},
    },
}

SPECS = {
    "json_schema": {"checks": [{"type": "json_schema", "schema": SCHEMA}]},
    "json_schema, a column": {"checks": [{"type": "json_schema", "schema": {"column": "schema"}}]},
    "json_match": {"checks": [{"type": "json_match", "value": {"column": "gold"}, "score": "f1"}]},
}


def json_spec(name: str) -> Path:
    """Return the file of a spec; its id is its name."""
    path = CACHE / f"json-{name.replace(', ', '-').replace(' ', '-')}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"id": name, **SPECS[name]}), "utf-8")
    return path


def json_file(rows: int, repeats: int) -> Path:
    """Return outputs, each of which occurs a number of times, with a gold and one of sixteen schemas, shuffled."""
    edition = zlib.crc32(Path(__file__).read_bytes())
    return kept(f"json-{SEED}-{rows}-{repeats}-{edition:08x}", lambda path: _frame(rows, repeats).write_parquet(path))


def _frame(rows: int, repeats: int) -> pl.DataFrame:
    rng = random.Random(SEED)
    schemas = [json.dumps({**SCHEMA, "maxProperties": 4 + at}) for at in range(16)]
    drawn = []
    for at in range(rows // repeats):
        if at % _GOLD_ROWS == 0:
            gold = _output(rng, at)
        value = json.loads(json.dumps(gold))
        value["note"] = " ".join(rng.choices(("leak", "room", "pump", "called", "again"), k=rng.randrange(4, 20)))
        if rng.random() < _WRONG:
            value["owner"]["age"] = "old"
        prose = f"I would call this urgent: {value['note']}"
        text = prose if rng.random() < _WRONG else json.dumps(value)
        drawn += [{"completion": text, "gold": json.dumps(gold), "schema": schemas[at % 16]}] * repeats
    rng.shuffle(drawn)
    return pl.DataFrame(drawn)


def _output(rng: random.Random, at: int) -> dict[str, object]:
    return {
        "urgency": rng.choice(("low", "medium", "high")),
        "categories": rng.sample(("plumbing", "safety", "heat", "noise"), rng.randrange(1, 4)),
        "owner": {"name": f"tenant {at}", "age": rng.randrange(20, 90)},
        "note": "",
    }
