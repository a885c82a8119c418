"""The checks that reward functions make: Python, row by row, all functions of a rubric together."""

import json
import logging
import threading
from collections.abc import Callable, Container, Generator, Mapping, Sequence
from copy import deepcopy
from functools import partial
from itertools import groupby
from typing import Any

import polars as pl

from assay.calls.in_thread import run
from assay.calls.limits import Limits, listed, own_failure, settled
from assay.calls.runner import Work
from assay.checks.base import Outcome, Row, RunCheck
from assay.errors import printable, said_by
from assay.expressions.lane import Lane, exactly, positions, text
from assay.names import TASK_FOUND
from assay.rubrics.reward_function import RewardFunction, shortfall, verdict
from assay.thresholds import THRESHOLDS
from assay.values.arguments import ARGUMENTS, COLUMN_OF, MEMO, RAW, arguments, is_read, python_values

__all__ = ["Host", "Reward", "Rewards", "examples"]

NO_EXAMPLE = "ValueError: example_id is null, so the rollouts of the example are not known"
_LOGGED = 10
"""Distinct errors of one function that are logged; the error column has all of them."""

_STRICT = ("prompt", "answer")
"""Arguments that a table must have for functions without a default for them; for the others there is something to say."""

_logger = logging.getLogger("assay.rewards")

Found = tuple[list[list[float]], list[dict[int, str]]]
"""By function: the rewards, and the errors by row."""

Host = Callable[[Work, Limits], None]
"""Where calls are made: in this process, or in others."""


class Rewards:
    """The functions of a rubric, which run together: rollout by rollout, then those that see all rollouts of an example.

    Rubrics that add up run one after another, as their ``score_rollouts`` do: what one leaves in a state the next one finds.

    Args:
        functions: The functions, in order.
        limits: What the run allows them.
        side_by_side: Whether asynchronous functions of one rollout run together.
        host: Makes the calls.
        rubrics: Which rubric each function is of; by default they are all of one.
    """

    def __init__(
        self,
        functions: Sequence[RewardFunction],
        limits: Limits | None = None,
        *,
        side_by_side: bool = True,
        host: Host = run,
        rubrics: Sequence[Any] = (),
    ) -> None:
        self.functions = tuple(functions)
        self.limits = limits or Limits()
        self.side_by_side = side_by_side
        self._host = host
        self._lock = threading.RLock()  # a function that asks the engine may be interrupted by another batch
        self._logged: list[set[str]] = [set() for _ in self.functions]
        self.rubrics = tuple(rubrics)
        self.grouped = any(one.group for one in self.functions)
        self._alone = host is run and not (self.grouped or any(one.is_async for one in self.functions))
        wanted = {name for one in self.functions for name in one.wants}
        self.wanted = tuple(name for name in ARGUMENTS if name in wanted)
        reads = wanted | (set(ARGUMENTS) if "state" in wanted else set())
        reads |= {"example_id", "prompt"} if self.grouped else set()
        self.columns = tuple(column for name in ARGUMENTS if name in reads for column in COLUMN_OF[name])

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (self.functions, self.limits, self.side_by_side, self._host, self.rubrics)

    def close(self) -> None:
        """End the processes of the host."""
        if (close := getattr(self._host, "close", None)) is not None:
            close()

    # ── the definition ──────────────────────────────────────────────────────────────────────────────────────────────

    def over(self, columns: Mapping[str, Sequence[Any]], rows: int, read: Container[str] = ()) -> Found:
        """Score rollouts.

        Args:
            columns: Their columns as loaded; every completion is there.
            rows: How many there are.
            read: Columns whose values are arguments as they are.

        Returns:
            By function: the rewards, and the errors by row.
        """
        given = arguments(columns, self.wanted, rows, read)
        absent = tuple(name for name in _STRICT if name not in columns)
        steps = self.steps(given, examples(columns, rows) if self.grouped else [], rows, absent=absent)
        while True:
            try:
                self._host(next(steps), self.limits)
            except StopIteration as done:
                found: Found = done.value
                break
        return found

    def steps(
        self,
        given: Mapping[str, Sequence[Any]],
        keys: Sequence[Any],
        rows: int,
        seconds: list[float] | None = None,
        absent: tuple[str, ...] = (),
    ) -> Generator[Work, None, Found]:
        """The work there is, to be done by whoever asks for it, piece by piece.

        Args:
            given: A column for each of ``wanted``.
            keys: The example of each rollout, where a function sees all rollouts of one; None for one that is not known.
            rows: How many rollouts there are.
            seconds: Told how long each took.
            absent: Arguments that the rollouts do not have, for which functions use their defaults.
        """
        names = tuple(given)
        values = list(zip(*given.values(), strict=True)) if given else [()] * rows
        scores: list[list[float]] = [[] for _ in self.functions]
        errors: list[dict[int, str]] = [{} for _ in self.functions]
        tick = self.limits.tick
        for places in self._turns():
            alone = [at for at in places if not self.functions[at].group]
            if alone:
                work = Work([self.functions[at] for at in alone], names, values, self.side_by_side, absent)
                work.seconds, work.tick, work.stop = seconds, tick, self.limits.stop
                yield work
                tick = None  # a rollout is counted once
                for number, at in enumerate(alone):
                    scores[at], errors[at] = work.scores[number], work.errors[number]
            if len(alone) < len(places):
                together = [at for at in places if self.functions[at].group]
                yield from self._together(together, names, values, keys, scores, errors, absent)
        self._log(errors)
        return scores, errors

    def _turns(self) -> list[list[int]]:
        """Places of functions that run together, one turn after another."""
        places = range(len(self.functions))
        if not (
            self.grouped and self.rubrics
        ):  # a rollout at a time, the rubrics of a rollout are one after another anyway
            return [[*places]]
        return [[*turn] for _, turn in groupby(places, key=self.rubrics.__getitem__)]

    def _together(
        self,
        places: Sequence[int],
        names: Sequence[str],
        values: Sequence[Sequence[Any]],
        keys: Sequence[Any],
        scores: list[list[float]],
        errors: list[dict[int, str]],
        absent: tuple[str, ...],
    ) -> Generator[Work, None, None]:
        """Functions that see all rollouts of an example: one call for each example."""
        members: dict[Any, list[int]] = {}
        for row, key in enumerate(keys):
            if key is not None:
                members.setdefault(key, []).append(row)
        groups = list(members.values())
        columns = [[[values[row][at] for row in group] for at in range(len(names))] for group in groups]
        work = Work([self.functions[at] for at in places], names, columns, self.side_by_side, absent, read=_listed)
        yield work
        for number, at in enumerate(places):
            scores[at] = [0.0] * len(values)
            errors[at] = {row: NO_EXAMPLE for row, key in enumerate(keys) if key is None}
            for one, group in enumerate(groups):
                said = work.errors[number].get(one)
                rewards = work.scores[number][one]
                if said is None and len(rewards) != len(group):
                    said = f"ValueError: {len(rewards)} rewards for {len(group)} rollouts"
                for place, row in enumerate(group):
                    score, error = (0.0, said) if said is not None else rewards[place]
                    scores[at][row] = score
                    if error is not None:
                        errors[at][row] = error

    def _log(self, errors: Sequence[Mapping[int, str]]) -> None:
        for one, found, logged in zip(self.functions, errors, self._logged, strict=True):
            for said in found.values():
                if len(logged) >= _LOGGED:
                    break
                if said not in logged:
                    logged.add(said)
                    _logger.error("%s: %s", one.name, printable(said))

    # ── columns ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def lane(self) -> Lane:
        """A struct column: for each function its reward and its error, by its place."""
        return Lane(f"rewards:{id(self)}", self._expr)

    def _expr(self, schema: pl.Schema) -> pl.Expr:
        names = [name for name in self.columns if name in schema]
        fields = {f"{at}/{part}": kind for at in range(len(self.functions)) for part, kind in _PARTS.items()}

        asked = text() if TASK_FOUND not in schema else pl.when(pl.col(TASK_FOUND).is_not_null()).then(text())
        columns = [asked, *(exactly(name) for name in names)]
        # NOTE: a function that sees all rollouts of an example needs the whole column, whatever the size of batches
        run_batch = partial(self._batch, names)
        return pl.map_batches(columns, run_batch, return_dtype=pl.Struct(fields), is_elementwise=not self.grouped)

    def _batch(self, names: Sequence[str], columns: Sequence[pl.Series]) -> pl.Series:
        at_once = max(1, THRESHOLDS.reward_rows)
        if len(columns[0]) > at_once and self._alone:
            starts = range(0, len(columns[0]), at_once)
            return pl.concat([self._batch(names, [one[at : at + at_once] for one in columns]) for at in starts])
        with self._lock:  # the engine asks from several threads; functions may expect one
            asked = columns[0].is_not_null()
            some = not asked.all()
            there = [one.filter(asked) for one in columns[1:]] if some else columns[1:]
            rows = int(asked.sum())
            read = {name for name, one in zip(names, there, strict=True) if is_read(one)}
            values = {name: python_values(one) for name, one in zip(names, there, strict=True)}
            scores, errors = self.over(values, rows, read)
            found: dict[str, pl.Series] = {}
            for at, (rewards, said) in enumerate(zip(scores, errors, strict=True)):
                found[f"{at}/score"] = pl.Series(rewards, dtype=pl.Float64)
                told = [said.get(row) for row in range(rows)] if said else [None] * rows
                found[f"{at}/error"] = pl.Series(told, dtype=pl.String)
            answers = pl.DataFrame(found).to_struct(columns[0].name)
            return answers.gather(positions(asked)).alias(columns[0].name) if some else answers


_PARTS = {"score": pl.Float64, "error": pl.String}


def _again(
    functions: Sequence[RewardFunction], limits: Limits, side_by_side: bool, host: Host, rubrics: Sequence[Any]
) -> Rewards:
    return Rewards(functions, limits, side_by_side=side_by_side, host=host, rubrics=rubrics)


def _listed(given: Any) -> tuple[Any, str | None]:
    """What a function that sees all rollouts of an example gave: a list, each reward of it settled."""
    try:
        # each as a number here, where the call is made: what they are else may not travel to another process
        return [settled(reward) for reward in listed(given)], None
    except BaseException as wrong:  # an iterator may be anybody's
        if not own_failure(wrong):
            raise
        return [], said_by(wrong)


def examples(columns: Mapping[str, Sequence[Any]], rows: int) -> list[Any]:
    """Which example each rollout is of: its ``example_id``, else its prompt; None where it is not known."""
    ids = next((columns[name] for name in COLUMN_OF["example_id"] if name in columns), None)
    return [_key(one) for one in (columns.get("prompt", [None] * rows) if ids is None else ids)]


def _key(value: Any) -> Any:
    return json.dumps(value, default=str, sort_keys=True) if isinstance(value, list | dict) else value


class Reward(RunCheck):
    """The reward of one function.

    Args:
        rewards: The functions that it runs with.
        at: Its place among them.
        weight: Its weight in the rubric; below 0 it is a penalty, 0 makes it a metric.
    """

    type = "function"
    graded = True
    bounded = False
    stays = ("answer", "task", "example_id", "id")

    def __init__(self, rewards: Rewards, at: int, weight: float) -> None:
        super().__init__()
        self.rewards = rewards
        self.at = at
        self.weight = weight
        self.reads = tuple(name for name in self.function.required if name in _STRICT)  # type: ignore[misc]
        self.may_read = rewards.columns  # type: ignore[misc]

    @property
    def function(self) -> RewardFunction:
        """The function."""
        return self.rewards.functions[self.at]

    @property
    def whole(self) -> bool:  # type: ignore[override]
        return self.function.group

    @property
    def made_by(self) -> Any:
        return self.function.func

    def column_problems(self, schema: pl.Schema) -> list[tuple[str, str]]:
        if not self.function.group or any(name in schema for name in (*COLUMN_OF["example_id"], "prompt")):
            return []
        fact = f"`{self.function.name}` sees all rollouts of an example, and the rollouts have no `example_id`."
        return [(fact, "Rename the column that says which rollouts belong together: --map example_id=COLUMN.")]

    def close(self) -> None:
        self.rewards.close()

    def together(self, rows: Sequence[Row]) -> None:
        if any(id(self.rewards) not in row[MEMO] for row in rows):
            for row, found in zip(rows, _of_rows(rows, self.rewards), strict=True):
                row[MEMO][id(self.rewards)] = found

    def outcome(self, row: Row) -> Outcome:
        found = row[MEMO][id(self.rewards)] if MEMO in row else _of_rows([row], self.rewards)[0]
        return verdict(found[self.at], self.weight)

    def short_expr(self, score: pl.Expr, error: pl.Expr) -> pl.Expr:
        short = score < 1.0 if self.weight > 0 else (score > 0.0) & (self.weight < 0)
        return short | error.is_not_null()

    def expr(self) -> pl.Expr:
        return self.rewards.lane().col.struct.field(f"{self.at}/score")

    def error_expr(self) -> pl.Expr:
        return self.rewards.lane().col.struct.field(f"{self.at}/error")

    def reason_expr(self) -> pl.Expr:
        return pl.coalesce(self.error_expr(), pl.lit(shortfall(self.weight)))

    def lanes(self) -> tuple[Lane, ...]:
        return (self.rewards.lane(),)

    def explain(self) -> str:
        together = "all rollouts of an example together" if self.function.group else "row by row"
        return f"Python, {together}{', asynchronous' if self.function.is_async else ''}"


def _of_rows(rows: Sequence[Row], rewards: Rewards) -> list[list[tuple[float, str | None]]]:
    """What functions say of rows, by row and then by function: how the row loop asks them."""
    there = [name for name in rewards.columns if any(name in row for row in rows)]
    columns = {name: [deepcopy(row.get(RAW if name == "completion" else name)) for row in rows] for name in there}
    scores, errors = rewards.over(columns, len(rows))
    return [
        [(scores[at][row], errors[at].get(row)) for at in range(len(rewards.functions))] for row in range(len(rows))
    ]
