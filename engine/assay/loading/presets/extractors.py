"""Conversions that a path cannot express: named functions from a value in a file to the value of a column.

Each is plain Python, and its expression calls the same function on every value: files that need them are nested, and Python parses
those anyway.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from assay.expressions.lane import rowwise

_HUGE = 1e150
"""Limit for scores and weights, so that no product overflows."""


@dataclass(frozen=True)
class Extractor:
    """A named function.

    Attributes:
        dtype: Maps the type of the values to the type of the results; None if such values have no result.
    """

    function: Callable[[Any], Any]
    dtype: Callable[[Any], Any]
    summary: str

    def expr(self, values: pl.Expr, dtype: Any) -> tuple[pl.Expr, Any]:
        """Return the function as an expression, and the type of its results."""
        result = self.dtype(dtype)
        if result is None:
            return pl.lit(None), pl.Null()
        return rowwise(values, self.function, result), result


def _one_message(message: Any) -> Any:
    return [message] if isinstance(message, Mapping) else None


def _one_message_type(dtype: Any) -> Any:
    return pl.List(dtype) if isinstance(dtype, pl.Struct) else None


_ROLES = {"human": "user", "gpt": "assistant", "function_call": "assistant", "observation": "tool"}
"""Roles by the names that ShareGPT has for them; others have the same name."""


def _turns(turns: Any) -> Any:
    """Return the turns of a conversation as chat messages; None if it is none."""
    if not isinstance(turns, list | tuple) or not all(isinstance(turn, Mapping) for turn in turns):
        return None
    names = ((turn.get("from"), turn.get("value")) for turn in turns)
    return [
        {
            "role": _ROLES.get(name, name) if isinstance(name, str) else None,
            "content": value if isinstance(value, str) else None,
        }
        for name, value in names
    ]


def _turns_type(dtype: Any) -> Any:
    message = pl.Struct({"role": pl.String, "content": pl.String})
    return pl.List(message) if isinstance(dtype, pl.List) and isinstance(dtype.inner, pl.Struct) else None


def _generated(nodes: Any) -> Any:
    """Return the messages of the last branch, from the first sampled one to the last sampled one of the assistant."""
    branch = _last_branch(nodes)
    sampled = [at for at, node in enumerate(branch) if node.get("sampled") and isinstance(node.get("message"), Mapping)]
    ends = [at for at in sampled if branch[at]["message"].get("role") == "assistant"]
    if not ends:
        return None
    return [node["message"] for node in branch[sampled[0] : ends[-1] + 1] if isinstance(node.get("message"), Mapping)]


def _last_branch(nodes: Any) -> list[Mapping[str, Any]]:
    """Return the nodes from the root to the node that was written last; a parent precedes its children."""
    branch: list[Mapping[str, Any]] = []
    at: Any = len(nodes) - 1 if isinstance(nodes, list | tuple) else -1
    while type(at) is int and 0 <= at < len(nodes) and isinstance(nodes[at], Mapping):
        branch.append(nodes[at])
        parent = nodes[at].get("parent")
        at = parent if type(parent) is int and parent < at else -1
    return branch[::-1]


def _generated_type(dtype: Any) -> Any:
    node = dtype.inner if isinstance(dtype, pl.List) else None
    message = dict(node.to_schema()).get("message") if isinstance(node, pl.Struct) else None
    return pl.List(message) if isinstance(message, pl.Struct) else None


def _broken_off(trace: Any) -> str | None:
    """Return the errors of a trace that was not completed; the errors of a completed trace come from its scoring."""
    errors = trace.get("errors") if isinstance(trace, Mapping) and trace.get("is_completed") is not True else None
    if not isinstance(errors, list | tuple):
        return None
    messages = [": ".join(_texts(error)) if isinstance(error, Mapping) else str(error) for error in errors if error]
    return "; ".join(filter(None, messages)) or None


def _texts(error: Mapping[str, Any]) -> list[str]:
    return [value for name in ("type", "message") if isinstance(value := error.get(name), str)]


def _weighted_sum(rewards: Any) -> float | None:
    entries = (
        [entry for entry in rewards.values() if isinstance(entry, Mapping)] if isinstance(rewards, Mapping) else []
    )
    terms = [float(entry["score"]) * _weight(entry) for entry in entries if _is_number(entry.get("score"))]
    return math.fsum(terms) if terms else None


def _weight(entry: Mapping[str, Any]) -> float:
    weight = entry.get("weight")
    return float(weight) if weight is not None and _is_number(weight) else 1.0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) < _HUGE


def _text_or_json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _sample_of_uid(uid: Any) -> str | None:
    return uid.rsplit("_", 2)[0] if isinstance(uid, str) else None


EXTRACTORS = {
    "one_message": Extractor(_one_message, _one_message_type, "a chat message as a conversation of one"),
    "turns": Extractor(_turns, _turns_type, "turns with `from` and `value` as chat messages"),
    "generated": Extractor(
        _generated,
        _generated_type,
        "the last branch of a tree of messages, from the first sampled one to the last sampled one of the assistant",
    ),
    "broken_off": Extractor(
        _broken_off,
        lambda dtype: pl.String() if isinstance(dtype, pl.Struct) else None,
        "the errors of a trace that was not completed",
    ),
    "weighted_sum": Extractor(
        _weighted_sum,
        lambda dtype: pl.Float64() if isinstance(dtype, pl.Struct) else None,
        "Σ score·weight over {name: {score, weight}}",
    ),
    "text_or_json": Extractor(_text_or_json, lambda _: pl.String(), "text as it is, other values as JSON"),
    "sample_of_uid": Extractor(
        _sample_of_uid,
        lambda dtype: pl.String() if dtype == pl.String else None,
        "SAMPLE of SAMPLE_ROLLOUT_OUTPUT",
    ),
}
"""All extractors by name."""
