"""Reward functions as checks: Python, row by row, all functions of a rubric together."""

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
"""Distinct errors logged for each function; the error column has all of them."""

_STRICT = ("prompt", "answer")
"""Arguments that must be columns if a function has no default for them; the other arguments have fallback values."""

_logger = logging.getLogger("assay.rewards")

Results = tuple[list[list[float]], list[dict[int, str]]]
"""For each function: its rewards, and its errors by row."""

Host = Callable[[Work, Limits], None]
"""Makes the calls, in this process or in worker processes."""


class Rewards:
    """The functions of a rubric, run together: first rollout by rollout, then the group functions, example by example.

    A group function takes all rollouts of an example at once. The rubrics of a ``RubricGroup`` run one after another, as in its
    ``score_rollouts``: a rubric sees what earlier ones wrote into the states.

    Args:
        functions: The functions, in order.
        limits: Limits of the run.
        side_by_side: Run the asynchronous functions of one rollout concurrently.
        host: Makes the calls.
        rubrics: The rubric of each function; by default, all belong to the same one.
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
        self._lock = threading.RLock()  # reentrant: a function that calls Polars may trigger another batch
        self._logged: list[set[str]] = [set() for _ in self.functions]
        self.rubrics = tuple(rubrics)
        self.grouped = any(function.group for function in self.functions)
        self._can_split = host is run and not (self.grouped or any(function.is_async for function in self.functions))
        names = {name for function in self.functions for name in function.arguments}
        self.arguments = tuple(name for name in ARGUMENTS if name in names)
        reads = names | (set(ARGUMENTS) if "state" in names else set())
        reads |= {"example_id", "prompt"} if self.grouped else set()
        self.columns = tuple(column for name in ARGUMENTS if name in reads for column in COLUMN_OF[name])

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.functions, self.limits, self.side_by_side, self._host, self.rubrics)

    def close(self) -> None:
        """Stop the worker processes of the host, if any."""
        if (close := getattr(self._host, "close", None)) is not None:
            close()

    # ── the definition ──────────────────────────────────────────────────────────────────────────────────────────────

    def score(self, columns: Mapping[str, Sequence[Any]], rows: int, read: Container[str] = ()) -> Results:
        """Score rollouts.

        Args:
            columns: Their columns as loaded; no completion is null.
            rows: How many rollouts there are.
            read: Columns whose values need no conversion.

        Returns:
            For each function: its rewards, and its errors by row.
        """
        values = arguments(columns, self.arguments, rows, read)
        absent = tuple(name for name in _STRICT if name not in columns)
        steps = self.steps(values, examples(columns, rows) if self.grouped else [], rows, absent=absent)
        while True:
            try:
                self._host(next(steps), self.limits)
            except StopIteration as end:
                results: Results = end.value
                break
        return results

    def steps(
        self,
        values: Mapping[str, Sequence[Any]],
        keys: Sequence[Any],
        rows: int,
        seconds: list[float] | None = None,
        absent: tuple[str, ...] = (),
    ) -> Generator[Work, None, Results]:
        """Yield the work piece by piece; the caller does each piece before it asks for the next.

        Args:
            values: A column for each of ``arguments``.
            keys: The example of each rollout, or None if it is unknown; used by group functions only.
            rows: How many rollouts there are.
            seconds: Receives the seconds each rollout took.
            absent: Arguments that the rollouts do not have; functions use their defaults.
        """
        names = tuple(values)
        rows_of_values = list(zip(*values.values(), strict=True)) if values else [()] * rows
        scores: list[list[float]] = [[] for _ in self.functions]
        errors: list[dict[int, str]] = [{} for _ in self.functions]
        tick = self.limits.tick
        for places in self._turns():
            per_rollout = [at for at in places if not self.functions[at].group]
            if per_rollout:
                work = Work(
                    [self.functions[at] for at in per_rollout], names, rows_of_values, self.side_by_side, absent
                )
                work.seconds, work.tick, work.stop = seconds, tick, self.limits.stop
                yield work
                tick = None  # a rollout is counted once
                for number, at in enumerate(per_rollout):
                    scores[at], errors[at] = work.scores[number], work.errors[number]
            if len(per_rollout) < len(places):
                per_example = [at for at in places if self.functions[at].group]
                yield from self._score_groups(per_example, names, rows_of_values, keys, scores, errors, absent)
        self._log(errors)
        return scores, errors

    def _turns(self) -> list[list[int]]:
        """Return the positions of the functions that run together, one list for each turn."""
        places = range(len(self.functions))
        # without group functions, rollouts are scored one at a time, so the order of rubrics holds within each rollout
        if not (self.grouped and self.rubrics):
            return [[*places]]
        return [[*turn] for _, turn in groupby(places, key=self.rubrics.__getitem__)]

    def _score_groups(
        self,
        places: Sequence[int],
        names: Sequence[str],
        values: Sequence[Sequence[Any]],
        keys: Sequence[Any],
        scores: list[list[float]],
        errors: list[dict[int, str]],
        absent: tuple[str, ...],
    ) -> Generator[Work, None, None]:
        """Run the group functions: one call for each example."""
        members: dict[Any, list[int]] = {}
        for row, key in enumerate(keys):
            if key is not None:
                members.setdefault(key, []).append(row)
        groups = list(members.values())
        columns = [[[values[row][at] for row in group] for at in range(len(names))] for group in groups]
        work = Work([self.functions[at] for at in places], names, columns, self.side_by_side, absent, read=_settle_list)
        yield work
        for number, at in enumerate(places):
            scores[at] = [0.0] * len(values)
            errors[at] = {row: NO_EXAMPLE for row, key in enumerate(keys) if key is None}
            for group_number, group in enumerate(groups):
                failure = work.errors[number].get(group_number)
                rewards = work.scores[number][group_number]
                if failure is None and len(rewards) != len(group):
                    failure = f"ValueError: {len(rewards)} rewards for {len(group)} rollouts"
                for place, row in enumerate(group):
                    score, error = (0.0, failure) if failure is not None else rewards[place]
                    scores[at][row] = score
                    if error is not None:
                        errors[at][row] = error

    def _log(self, errors: Sequence[Mapping[int, str]]) -> None:
        for function, row_errors, logged in zip(self.functions, errors, self._logged, strict=True):
            for message in row_errors.values():
                if len(logged) >= _LOGGED:
                    break
                if message not in logged:
                    logged.add(message)
                    _logger.error("%s: %s", function.name, printable(message))

    # ── columns ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def lane(self) -> Lane:
        """Return a struct column: the reward and the error of each function, by its position."""
        return Lane(f"rewards:{id(self)}", self._expr)

    def _expr(self, schema: pl.Schema) -> pl.Expr:
        names = [name for name in self.columns if name in schema]
        fields = {f"{at}/{part}": kind for at in range(len(self.functions)) for part, kind in _PARTS.items()}

        completion = text() if TASK_FOUND not in schema else pl.when(pl.col(TASK_FOUND).is_not_null()).then(text())
        columns = [completion, *(exactly(name) for name in names)]
        # NOTE: a group function needs the whole column, whatever the batch size
        run_batch = partial(self._batch, names)
        return pl.map_batches(columns, run_batch, return_dtype=pl.Struct(fields), is_elementwise=not self.grouped)

    def _batch(self, names: Sequence[str], columns: Sequence[pl.Series]) -> pl.Series:
        most = max(1, THRESHOLDS.reward_rows)
        if len(columns[0]) > most and self._can_split:
            starts = range(0, len(columns[0]), most)
            return pl.concat([self._batch(names, [column[at : at + most] for column in columns]) for at in starts])
        with self._lock:  # Polars calls from several threads; functions may expect one
            present = columns[0].is_not_null()
            has_null = not present.all()
            inputs = [column.filter(present) for column in columns[1:]] if has_null else columns[1:]
            rows = int(present.sum())
            read = {name for name, column in zip(names, inputs, strict=True) if is_read(column)}
            values = {name: python_values(column) for name, column in zip(names, inputs, strict=True)}
            scores, errors = self.score(values, rows, read)
            fields: dict[str, pl.Series] = {}
            for at, (rewards, row_errors) in enumerate(zip(scores, errors, strict=True)):
                fields[f"{at}/score"] = pl.Series(rewards, dtype=pl.Float64)
                messages = [row_errors.get(row) for row in range(rows)] if row_errors else [None] * rows
                fields[f"{at}/error"] = pl.Series(messages, dtype=pl.String)
            answers = pl.DataFrame(fields).to_struct(columns[0].name)
            return answers.gather(positions(present)).alias(columns[0].name) if has_null else answers


_PARTS = {"score": pl.Float64, "error": pl.String}


def _rebuild(
    functions: Sequence[RewardFunction], limits: Limits, side_by_side: bool, host: Host, rubrics: Sequence[Any]
) -> Rewards:
    return Rewards(functions, limits, side_by_side=side_by_side, host=host, rubrics=rubrics)


def _settle_list(result: Any) -> tuple[Any, str | None]:
    """Return the list of rewards that a group function returned, each one settled, and the error."""
    try:
        # convert to numbers here, where the call is made: other values may not be picklable
        return [settled(reward) for reward in listed(result)], None
    except BaseException as error:  # the list may be an iterator of the user's
        if not own_failure(error):
            raise
        return [], said_by(error)


def examples(columns: Mapping[str, Sequence[Any]], rows: int) -> list[Any]:
    """Return the example of each rollout: its ``example_id``, else its prompt; None if unknown."""
    ids = next((columns[name] for name in COLUMN_OF["example_id"] if name in columns), None)
    return [_key(value) for value in (columns.get("prompt", [None] * rows) if ids is None else ids)]


def _key(value: Any) -> Any:
    return json.dumps(value, default=str, sort_keys=True) if isinstance(value, list | dict) else value


class Reward(RunCheck):
    """The reward of one function.

    Args:
        rewards: The functions of the rubric, which run together.
        at: The position of this function among them.
        weight: Its weight in the rubric; a negative weight makes it a penalty, 0 a metric.
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
        """Return the function."""
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
            for row, results in zip(rows, _score_rows(rows, self.rewards), strict=True):
                row[MEMO][id(self.rewards)] = results

    def outcome(self, row: Row) -> Outcome:
        results = row[MEMO][id(self.rewards)] if MEMO in row else _score_rows([row], self.rewards)[0]
        return verdict(results[self.at], self.weight)

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


def _score_rows(rows: Sequence[Row], rewards: Rewards) -> list[list[tuple[float, str | None]]]:
    """Score rows for the row loop; results by row, then by function."""
    names = [name for name in rewards.columns if any(name in row for row in rows)]
    columns = {name: [deepcopy(row.get(RAW if name == "completion" else name)) for row in rows] for name in names}
    scores, errors = rewards.score(columns, len(rows))
    return [
        [(scores[at][row], errors[at].get(row)) for at in range(len(rewards.functions))] for row in range(len(rows))
    ]
