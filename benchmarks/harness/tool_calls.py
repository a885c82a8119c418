"""Rollouts with tool calls to be measured: messages and text, eight for each task, with BFCL's golds and functions; and specs for them."""

import json
import random
import zlib
from pathlib import Path

import polars as pl

from harness.draws import SEED
from harness.generate import kept

__all__ = ["SPECS", "tools_file", "tools_frame"]

_TASK_ROWS = 8
_GOLD = {"value": {"column": "gold"}, "arguments": "bfcl"}
SPECS = {
    "bfcl": {"checks": [{"type": "tool_calls", **_GOLD}]},
    "bfcl, text": {"checks": [{"type": "tool_calls", **_GOLD, "on": [{"column": "said"}], "format": "tags"}]},
    "three checks": {
        "checks": [
            {"type": "tool_calls", "value": {"column": "expected"}, "score": "share"},
            {"type": "tool_f1", "value": {"column": "expected"}},
            {"type": "tool_trajectory", "min": 1, "max": 3},
        ]
    },
    "tool_valid": {"checks": [{"type": "tool_valid"}]},
}
_CITIES = ("Oslo", "Bergen", "New York", "São Paulo", "Zürich", "Accra", "Hanoi", "La Paz")
_FUNCTION = pl.Struct({"name": pl.String, "arguments": pl.String})
_CALL = pl.Struct({"id": pl.String, "type": pl.String, "function": _FUNCTION})
_SCHEMA = {
    "completion": pl.List(pl.Struct({"role": pl.String, "content": pl.String, "tool_calls": pl.List(_CALL)})),
    "said": pl.String,
    "gold": pl.String,
    "expected": pl.String,
    "tools": pl.String,
}


def tools_file(rows: int) -> Path:
    """Return rollouts, eight for each task, shuffled: about half are right, and the wrong ones of a task are often alike."""
    edition = zlib.crc32(Path(__file__).read_bytes())
    return kept(
        f"tools-{SEED}-{rows}-{edition:08x}", lambda path: tools_frame(rows, SEED, _TASK_ROWS).write_parquet(path)
    )


def tools_frame(rows: int, seed: int, task_rows: int = 1) -> pl.DataFrame:
    """Return the same as a frame, with a number of rows for each task."""
    rng = random.Random(seed)
    made = [row for at in range(-(-rows // task_rows)) for row in _task(rng, at, task_rows)][:rows]
    rng.shuffle(made)
    return pl.DataFrame(made, schema=_SCHEMA)


def _task(rng: random.Random, at: int, rows: int) -> list[dict[str, object]]:
    calls = [_call(rng) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
    variants = [calls, calls, calls, *(_slip(rng, calls) for _ in range(3))]
    given = {
        "gold": json.dumps([{call["name"]: _allowed(call["arguments"])} for call in calls]),
        "expected": json.dumps(calls),
        "tools": json.dumps(_TOOLS),
    }
    prompt = {"role": "user", "content": f"Task {at}: what would you call for this question of a traveller?"}
    return [{**_written(rng.choice(variants), prompt), **given} for _ in range(rows)]


def _call(rng: random.Random) -> dict[str, object]:
    name = rng.choice([*_ARGUMENTS])
    return {"name": name, "arguments": {key: draw(rng) for key, draw in _ARGUMENTS[name].items()}}


_ARGUMENTS = {
    "travel.weather": {"city": lambda rng: rng.choice(_CITIES), "days": lambda rng: rng.randrange(1, 15)},
    "travel.convert": {
        "amount": lambda rng: rng.randrange(1, 100_000) / 4,
        "target": lambda rng: rng.choice(("EUR", "NOK")),
    },
    "travel.route": {
        "stops": lambda rng: rng.sample(_CITIES, 3),
        "by_train": lambda rng: rng.random() < 0.5,
        "options": lambda rng: {"seat": rng.choice(("aisle", "window")), "bags": rng.randrange(3)},
    },
}
_KINDS = {str: "string", int: "integer", float: "float", bool: "boolean", dict: "dict", list: "array"}


def _doc(name: str) -> dict[str, object]:
    rng = random.Random(name)
    kinds = {
        key: {"type": _KINDS[type(draw(rng))], "description": f"The {key}."} for key, draw in _ARGUMENTS[name].items()
    }
    for kind in kinds.values():
        if kind["type"] == "array":
            kind["items"] = {"type": "string"}
    return {"name": name, "parameters": {"type": "dict", "properties": kinds, "required": [*kinds]}}


_TOOLS = [_doc(name) for name in _ARGUMENTS]


def _allowed(arguments: dict[str, object]) -> dict[str, list[object]]:
    return {
        key: [{inner: [one] for inner, one in value.items()} if isinstance(value, dict) else value]
        for key, value in arguments.items()
    }


def _slip(rng: random.Random, calls: list[dict[str, object]]) -> list[dict[str, object]]:
    other = _call(rng)
    kind = rng.randrange(5)
    if kind == 0:
        return calls[1:]
    if kind == 1:
        return [*calls, other]
    if kind == 2:
        return [{**calls[0], "arguments": {**calls[0]["arguments"], "city": "Rome"}}, *calls[1:]]
    if kind == 3:
        first, *rest = calls[0]["arguments"]
        return [
            {**calls[0], "arguments": {first: None, **{key: calls[0]["arguments"][key] for key in rest}}},
            *calls[1:],
        ]
    return [other, *calls[1:]]


def _written(calls: list[dict[str, object]], prompt: dict[str, str]) -> dict[str, object]:
    requests = [
        {
            "id": f"call_{at}",
            "type": "function",
            "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])},
        }
        for at, call in enumerate(calls)
    ]
    said = "I look that up.\n" + "\n".join(f"<tool_call>\n{json.dumps(call)}\n</tool_call>" for call in calls)
    return {"completion": [prompt, {"role": "assistant", "content": None, "tool_calls": requests}], "said": said}
