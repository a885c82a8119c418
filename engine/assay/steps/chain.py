"""A chain of steps: from a text to what a check reads, row by row and as lanes that checks share."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import polars as pl

from assay.calls.limits import Limits
from assay.expressions.shared_columns import SharedColumn, layers, reading_column, text
from assay.frozen import frozen
from assay.names import TEXT
from assay.steps.base import Placed, Step
from assay.steps.places import PlacedText


@frozen
class Chain:
    """Steps, one after the other; the first that finds nothing ends the chain. Only the last may give a list."""

    steps: tuple[Step, ...] = ()

    @property
    def key(self) -> str:
        """What tells it from other chains: equal keys, equal results."""
        return " → ".join(step.key for step in self.steps)

    @property
    def gives_list(self) -> bool:
        return bool(self.steps) and self.steps[-1].gives_list

    @property
    def libraries(self) -> dict[str, tuple[str, ...]]:
        return {name: tested for step in self.steps for name, tested in step.libraries.items()}

    def within(self, limits: Limits | None) -> "Chain":
        """Return a copy with the limits of a run."""
        return Chain(tuple(step.within(limits) for step in self.steps))

    def outline(self) -> list[Any]:
        """Return plain data from which ``reader.read_steps`` makes equal steps."""
        return [step.outline() for step in self.steps]

    def row(self, text: str) -> str | list[str] | None:
        """Return the result for a text; None if a step finds nothing. It raises what a step raises."""
        return self.run(text)[0]

    def run(self, text: str) -> tuple[str | list[str] | None, str | None]:
        """Return the result for a text, and the name of the step that finds nothing; None if none does."""
        return self._run(text, lambda step, value: step.row(value))

    def placed(self, text: PlacedText) -> Placed | None:
        """Return ``row`` of a text whose characters have places."""
        placed: Placed | None = self._run(text, lambda step, value: step.placed(value))[0]
        return placed

    def _run(self, value: Any, result_of: Callable[[Step, Any], Any]) -> tuple[Any, str | None]:
        for step in self.steps:
            result = result_of(step, value)
            if result is not None:
                value = result
            elif not step.keeps:
                return None, step.name
            elif step.gives_list:
                value = [value]
        return value, None

    # The same as columns. ``source`` is a lane of texts to begin with; by default the text that the check is about.

    def lanes(self, source: SharedColumn | None = None) -> tuple[SharedColumn, ...]:
        """Return a lane for each step: the result up to that step, null where a step has found nothing or failed."""
        lanes: list[SharedColumn] = []
        for step in self.steps:
            lanes.append(step_lane(lanes[-1] if lanes else source, step))
        return tuple(lanes)

    def lane(self, source: SharedColumn | None = None) -> SharedColumn | None:
        """Return the lane of the result; ``source`` if there are no steps."""
        return (source, *self.lanes(source))[-1]

    def missing_expr(self, source: SharedColumn | None = None, label: str = "") -> pl.Expr:
        """Return a label and the name of the step that finds nothing; null where the text is null or a step fails, too."""
        missing: pl.Expr = pl.lit(None, dtype=pl.String)
        inputs = [text() if source is None else source.col, *(lane.col for lane in self.lanes(source))]
        for step, (before, after) in reversed([*zip(self.steps, pairwise(inputs), strict=True)]):
            missing = pl.when(before.is_not_null() & after.is_null()).then(pl.lit(label + step.name)).otherwise(missing)
        error = self.error_expr(source)
        return missing if error is None else pl.when(error.is_null()).then(missing)

    def error_expr(self, source: SharedColumn | None = None) -> pl.Expr | None:
        """Return the error of the step that fails, as a String expression; None if no step ever fails."""
        previous = (source, *self.lanes(source))
        failing = [(before, step) for before, step in zip(previous, self.steps, strict=False) if step.errors]
        return pl.coalesce(_result_lane(*one).col.struct.field("error") for one in failing) if failing else None

    def columns(self, texts: pl.Series) -> tuple[pl.Series, pl.Series | None]:
        """Return the results for a column of texts, and the errors; None if no step ever fails."""
        frame = texts.to_frame(TEXT)
        with reading_column(TEXT):
            lane, error = self.lane(), self.error_expr()
            for expressions in layers([lane] if lane else [], frame.schema):
                frame = frame.with_columns_seq(expressions)
            results = frame.select_seq(
                (lane.col if lane else text()).alias("value"), (pl.lit(None) if error is None else error).alias("error")
            )
        return results["value"], None if error is None else results["error"]


def step_lane(previous: SharedColumn | None, step: Step) -> SharedColumn:
    """Return the lane of a step's result, given the lane of its texts; None for the text that the check is about."""
    source = _result_lane(previous, step)
    if not (step.keeps or step.errors):
        return source

    def build(_: pl.Schema) -> pl.Expr:
        result = source.col.struct.field("value") if step.errors else source.col
        if not step.keeps:
            return result
        given = text() if previous is None else previous.col
        nothing = result.is_null() & given.is_not_null()
        if step.errors:
            nothing &= source.col.struct.field("error").is_null()
        return pl.when(nothing).then(pl.concat_list(given) if step.gives_list else given).otherwise(result)

    return SharedColumn(f"{source.name} value", build, after=(source, *((previous,) if previous else ())))


def _result_lane(previous: SharedColumn | None, step: Step) -> SharedColumn:
    """Return the lane of what a step's ``expr`` gives."""
    return SharedColumn(
        f"{previous.name if previous else 'text'} → {step.key}",
        lambda _: step.expr(text() if previous is None else previous.col),
        after=(previous,) if previous else (),
    )
