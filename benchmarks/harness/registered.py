"""Everything that is registered, to be measured: each check type, step and function, with batches of texts by seed.

A check and a step have the params of their first example; every fourth text is an example's.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from assay.checks.registry import CHECKS
from assay.compiling.plan import Plan
from assay.compiling.verifiers import on_row
from assay.expressions.shared_columns import layers
from assay.functions.registry import list_fns
from assay.names import COMPLETION, TEXT
from assay.scoring.reference import score_rows
from assay.spec.listing import steps_as_json
from assay.spec.verifier import load_verifier
from assay.steps.chain import Chain
from assay.steps.reader import read_steps
from assay.steps.registry import STEP_TYPES
from harness.draws import SEED, FunctionDraw, function_draws
from harness.generate import functions_file
from harness.texts import texts

__all__ = ["Case", "cases"]

_KINDS = ("chat", "json", "think")
_EXAMPLES = 4
"""Every how many texts one is an example's."""
_BATCHES = 8
"""Batches of a function's rows that are drawn together; the ninth is the first again."""


@dataclass(frozen=True)
class Case:
    """A check type, step or function.

    Attributes:
        name: What it is, and its name.
        batch: Returns a frame of some rows by number; the frames of two numbers have no drawn text in common.
        prepare: Returns what computes the columns of a frame, by columns, with nothing kept from earlier frames.
        by_rows: Returns the same columns, row by row.
    """

    name: str
    batch: Callable[[int, int], pl.DataFrame]
    prepare: Callable[[pl.DataFrame], Callable[[], pl.DataFrame]]
    by_rows: Callable[[pl.DataFrame], Sequence[Mapping[str, Any]]]


def cases() -> Iterator[Case]:
    """Yield a case for each check type, step and function that is registered."""
    for check in CHECKS:
        yield _check_case(check)
    for step in STEP_TYPES:
        yield _step_case(step)
    for name in list_fns():
        yield _function_case(name)


def _drawn(rows: int, number: int, examples: Sequence[str]) -> list[str]:
    """Return the texts of a batch."""
    kinds = [texts(kind, rows, SEED + number) for kind in _KINDS]
    return [examples[at % len(examples)] if at % _EXAMPLES == 0 else next(kinds[at % len(kinds)]) for at in range(rows)]


def _scored(verifier: Any) -> tuple[Callable, Callable]:
    """Return ``prepare`` and ``by_rows`` of a verifier."""

    def prepare(frame: pl.DataFrame) -> Callable[[], pl.DataFrame]:
        plan = Plan((verifier,), tuple(frame.schema.items()))
        return lambda: plan.score(frame)

    return prepare, lambda frame: score_rows(frame.to_dicts(), [verifier])


def _check_case(check: Any) -> Case:
    first = check.examples[0]
    given = {
        "metadata": first.metadata,
        "expected_output_schema": first.expected_output_schema,
        **(first.columns or {}),
    }
    columns = {name: json.dumps(value) for name, value in given.items() if value is not None}
    alike = [example.completion for example in check.examples if (example.params or {}) == (first.params or {})]

    def batch(rows: int, number: int) -> pl.DataFrame:
        frame = pl.DataFrame({COMPLETION: _drawn(rows, number, alike)})
        return frame.with_columns(pl.lit(value).alias(name) for name, value in columns.items())

    verifier = load_verifier({"checks": [{"type": check.type, **(first.params or {})}]}, strict=True)
    return Case(f"check {check.type}", batch, *_scored(verifier))


def _step_case(step: Any) -> Case:
    (listed,) = steps_as_json([step])
    chain = Chain(read_steps(listed["examples"][0]["step"]))
    own = [example.text for example in step.examples]

    def prepare(frame: pl.DataFrame) -> Callable[[], pl.DataFrame]:
        lane, result = chain.lane(), frame.lazy()
        for expressions in layers([lane], frame.schema):
            result = result.with_columns(expressions)
        return result.select(value=lane.col).collect

    return Case(
        f"step {step.name}",
        lambda rows, number: pl.DataFrame({TEXT: _drawn(rows, number, own)}),
        prepare,
        lambda frame: [{"value": chain.row(text)} for text in frame[TEXT]],
    )


def _function_case(name: str) -> Case:
    plain = FunctionDraw(0, name, {}, "think", "phrase", 8, is_text=True)
    draw = next((drawn for drawn in function_draws() if drawn.function == name), plain)

    def batch(rows: int, number: int) -> pl.DataFrame:
        frame = pl.read_parquet(functions_file(draw, _BATCHES * rows))
        return frame.slice(number % _BATCHES * rows, rows)

    return Case(f"function {name}", batch, *_scored(on_row()))
