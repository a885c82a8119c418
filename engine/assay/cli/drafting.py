"""A first verifier for rollouts, from their columns and from what steps find in their first rows."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from assay.compiling.columns import reading_for
from assay.errors import UsageError, listed
from assay.expressions.mixed import untyped
from assay.expressions.shared_columns import not_hidden
from assay.frozen import frozen
from assay.loading.rollouts import open_rollouts
from assay.names import COMPLETION
from assay.options import ReadingOptions, settle
from assay.scoring.in_memory import score
from assay.spec.reader import as_flow

_ROWS = 200
_COMPLETIONS = ("response", "output", "generation", "model_output", "generated_text", "text", "prediction", "messages")
_GOLDS = (
    "answer",
    "expected",
    "target",
    "ground_truth",
    "gold",
    "label",
    "solution",
    "reference",
    "expected_answer",
    "answers",
    "golds",
)
_NOT_EMPTY = {"id": "not-empty", "type": "min_length", "value": 1, "on": "strip"}
_MOST = 0.5
"""Share of the rows in which a step has to find something."""
_LONGEST = 4_000
"""Longest row that is written as a test, in characters."""
_NUMBER = re.compile(r"[-+]?[$€£¥]?\d[\d,]*(?:\.\d+)?%?")
_STEPS: Sequence[Sequence[Any]] = (
    [{"tag": "answer"}],
    ["boxed"],
    [{"after": "####"}],
    [{"after": "Answer:"}],
    [{"after": "A:"}],
    [{"after": "answer is"}],
)


@frozen
class Draft:
    """A verifier to begin with."""

    text: str
    mapping: Mapping[str, str]
    has_tests: bool


def draft(source: Any, ident: str) -> Draft:
    """Return a verifier for rollouts: their gold, behind the steps that find something in most of the first rows."""
    frame = _first_rows(source, {})
    mapping: dict[str, str] = {}
    if COMPLETION not in frame.columns:
        mapping = {COMPLETION: _completion(frame)}
        frame = _first_rows(source, mapping)
    gold = next((name for name in _GOLDS if name in frame.columns and _texts(frame[name])), None)
    golds = [] if gold is None else _texts(frame[gold])
    checks = [_NOT_EMPTY] if gold is None else _gold_checks(frame, gold, golds)
    tests = _tests(frame, checks, gold)
    lines = [
        "# What the reward of these rollouts may be: look at it, then change it. `assay checks` lists the check types.",
        f"id: {json.dumps(ident)}",
        "checks:",
        *(f"  - {as_flow(check)}" for check in checks),
        *(["# What it makes of two rows, for `assay test`: change what you would not say yourself."] if tests else []),
        *(["tests:"] if tests else []),
        *(f"  - {as_flow(test)}" for test in tests),
    ]
    return Draft("\n".join(lines) + "\n", mapping, bool(tests))


def _first_rows(source: Any, mapping: Mapping[str, str]) -> pl.DataFrame:
    opened = open_rollouts(source, reading_for(settle(ReadingOptions, {"mapping": mapping}, "draft"), ()))
    return opened.frame.head(_ROWS).collect()


def _completion(frame: pl.DataFrame) -> str:
    names = [name for name in not_hidden(frame.columns) if _texts(frame[name])]
    by_name = {name.lower(): name for name in names}
    for name in _COMPLETIONS:
        if name in by_name:
            return by_name[name]
    others = [name for name in names if frame[name].dtype == pl.String and name not in (*_GOLDS, "prompt", "task_id")]
    if not others:
        hint = f"Columns: {listed(not_hidden(frame.columns))}."
        raise UsageError("No column can be the completion.", hint)
    return max(others, key=lambda name: sum(map(len, _texts(frame[name]))))


def _texts(column: pl.Series) -> list[str]:
    values = column.to_list()
    if isinstance(column.dtype, pl.List):
        values = [inner for value in values for inner in value or ()]
    return [str(value) for value in values if value is not None and str(value).strip()]


def _gold_checks(frame: pl.DataFrame, gold: str, golds: Sequence[str]) -> list[dict[str, Any]]:
    marked = sum("####" in text for text in golds) > _MOST * len(golds)
    ends = [text.rpartition("####")[2].strip() if marked else text.strip() for text in golds]
    shared = {"goldOn": [{"after": "####"}]} if marked else {}
    value = {"column": gold}
    if all(_NUMBER.fullmatch(end) for end in ends):
        kind = "number"
    elif all(re.fullmatch(r"[A-Ea-e]", end) for end in ends):
        return [{"id": "answer", "type": "choice", "value": value, **shared}]
    else:
        kind = "equals"
    candidates: list[dict[str, Any]] = [
        {"id": "answer", "type": kind, "value": value, **({"on": [*steps]} if steps else {}), **shared}
        for steps in (*_STEPS, ())
    ]
    shares = [(_share_found(frame, check["on"]), check) for check in candidates if check.get("on")]
    best = [check for share, check in shares if share > _MOST]
    if best:
        return best[:1]
    if kind == "number":
        return [candidates[-1]]
    return [{"id": "answer", "type": "contains", "value": value, **shared}]


def _tests(frame: pl.DataFrame, checks: Sequence[Mapping[str, Any]], gold: str | None) -> list[dict[str, Any]]:
    """Return two rows as tests, the shortest that passes and the shortest that fails; others where there is only one kind."""
    columns = [name for name in (COMPLETION, gold) if name is not None]
    rows = [{name: untyped(value) for name, value in row.items()} for row in frame.select(columns).to_dicts()]
    texts = {as_flow(row): row for row in rows if row[COMPLETION] is not None}
    rows = [texts[text] for text in sorted(texts, key=len) if len(text) <= _LONGEST]
    rows += [{**row, COMPLETION: ""} for row in rows[:1] if row[COMPLETION] != ""]
    verdicts = score(rows, {"id": "probe", "checks": [*checks]}, lenient=True)["passed"].to_list() if rows else []
    kinds = [verdicts.index(verdict) for verdict in (True, False) if verdict in verdicts]
    others = [at for at in range(len(rows)) if at not in kinds]
    words = {True: "pass", False: "fail", None: "unscored"}
    return [{"given": rows[at], "expect": words[verdicts[at]]} for at in [*kinds, *others][:2]]


def _share_found(frame: pl.DataFrame, steps: Sequence[Any]) -> float:
    probe = {"id": "probe", "checks": [{"type": "min_length", "value": 1, "on": [*steps]}]}
    rewards = score(frame, probe, lenient=True)["reward"]
    return rewards.to_list().count(1.0) / max(1, len(rewards))
