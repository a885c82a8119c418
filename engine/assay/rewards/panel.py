"""Run the reward functions of a rubric together: rollout by rollout, in batches, or example by example."""

import json
import logging
import threading
import warnings
from collections.abc import Callable, Container, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

import polars as pl

from assay.calls.in_thread import run
from assay.calls.limits import Graded, Limits, graded, is_user_error, listed, timed_out, to_reward
from assay.calls.places import failure, place_of
from assay.calls.runner import Work
from assay.errors import AssayWarning, printable
from assay.expressions.shared_columns import SharedColumn, exactly, positions, reads_completion, text
from assay.names import COMPLETION, HIDDEN, TASK_FOUND
from assay.rewards.reward_function import RewardFunction
from assay.thresholds import THRESHOLDS
from assay.values.arguments import ARGUMENTS, COLUMN_OF, arguments, column_arguments, is_read, python_values

NO_EXAMPLE = "ValueError: example_id is null, so the rollouts of the example are not known"
_LOGGED = 10
"""Distinct errors logged for each function; the error column has all of them."""

STRICT = ("prompt", "answer")
"""Arguments that must be columns if a function has no default for them; the other arguments have fallback values."""

_logger = logging.getLogger("assay.rewards")


class Results(NamedTuple):
    """The outcomes of calls."""

    scores: list[list[float | None]]
    errors: list[dict[int, str]]
    remarks: list[dict[int, Graded]]


Host = Callable[[Work, Limits], None]
"""Makes the calls, in this process or in worker processes."""


class RewardBatch:
    """The functions of a rubric, run together: first rollout by rollout, then in batches, then example by example."""

    def __init__(
        self,
        functions: Sequence[RewardFunction],
        limits: Limits | None = None,
        side_by_side: bool = True,
        host: Host = run,
        rubrics: Sequence[Any] = (),
        alone: bool = True,
    ) -> None:
        self.functions = tuple(functions)
        self.limits = limits or Limits()
        self.side_by_side = side_by_side
        self._host = host
        self._lock = threading.RLock()  # reentrant: a function that calls Polars may trigger another batch
        self._logged: list[set[str]] = [set() for _ in self.functions]
        self._dropped: list[set[str]] = [set() for _ in self.functions]
        self.rubrics = tuple(rubrics)
        self.alone = alone
        self.skips = alone and all(function.skips for function in self.functions)
        self.grouped = any(function.group for function in self.functions)
        self._can_split = host is run and not (self.grouped or any(function.is_async for function in self.functions))
        names = {name for function in self.functions for name in function.arguments}
        self.arguments = tuple(name for name in ARGUMENTS if name in names)
        reads = names | (set(ARGUMENTS) if "state" in names else set())
        reads |= {"example_id", "prompt"} if self.grouped else set()
        own = [column for name in ARGUMENTS if name in reads for column in COLUMN_OF[name]]
        self.others = tuple(dict.fromkeys(name for function in self.functions for name in function.columns))
        self.columns = tuple(dict.fromkeys([*own, *self.others]))
        self.takes_all = any(function.takes_all for function in self.functions)
        self._takes_lists = any(function.takes_all and function.takes_lists for function in self.functions)

    def __reduce__(self) -> tuple[object, ...]:
        return RewardBatch, (self.functions, self.limits, self.side_by_side, self._host, self.rubrics, self.alone)

    def read_from(self, columns: Iterable[str]) -> list[str]:
        """Return the columns that the functions take, of those that there are."""
        return [name for name in columns if name in self.columns or (self.takes_all and not name.startswith(HIDDEN))]

    def _by_name(self, columns: Iterable[str]) -> list[str]:
        if not self.takes_all:
            return [name for name in columns if name in self.others]
        return [name for name in columns if self._takes_lists or name in self.others or name not in ARGUMENTS]

    def close(self) -> None:
        """Stop the worker processes of the host, if any."""
        if (close := getattr(self._host, "close", None)) is not None:
            close()

    def score(self, columns: Mapping[str, Sequence[Any]], rows: int, read: Container[str] = ()) -> Results:
        """Score rollouts, given their columns as loaded, without null completions; values of the columns ``read`` need no conversion."""
        values = arguments(columns, self.arguments, rows, read)
        values |= column_arguments(columns, self._by_name(columns), read)
        absent = tuple(name for name in STRICT if name not in columns)
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
        """Yield the work piece by piece; the caller does each piece before it asks for the next."""
        rows_of_values = list(zip(*values.values(), strict=True)) if values else [()] * rows
        scoring = _Scoring(self, tuple(values), rows_of_values, absent)
        tick = self.limits.tick
        for turn in self._turns():
            per_rollout = [number for number in turn if not self.functions[number].takes_lists]
            if per_rollout:
                work = scoring.work(per_rollout, rows_of_values, graded)
                work.seconds, work.tick, tick = seconds, tick, None  # a rollout is counted once
                yield work
                for number, scores, errors in zip(per_rollout, work.scores, work.errors, strict=True):
                    scoring.scores[number], scoring.errors[number] = scores, errors
            yield from scoring.in_batches([number for number in turn if self.functions[number].batched])
            yield from scoring.by_example([number for number in turn if self.functions[number].group], keys)
        remarks = [
            {row: value for row, value in enumerate(scores) if type(value) is Graded}
            if Graded in {*map(type, scores)}
            else {}
            for scores in scoring.scores
        ]
        self._report(scoring.errors, remarks)
        plain = [
            [value.score if type(value) is Graded else value for value in scores] if by_row else scores
            for scores, by_row in zip(scoring.scores, remarks, strict=True)
        ]
        return Results(plain, scoring.errors, remarks)

    def _turns(self) -> list[list[int]]:
        places = range(len(self.functions))
        # without functions of lists, rollouts are scored one at a time, so the order of rubrics holds within each rollout
        if not (any(function.takes_lists for function in self.functions) and self.rubrics):
            return [[*places]]
        return [[*turn] for _, turn in groupby(places, key=self.rubrics.__getitem__)]

    def _report(self, errors: Sequence[Mapping[int, str]], remarks: Sequence[Mapping[int, Graded]]) -> None:
        for function, messages, logged in zip(self.functions, errors, self._logged, strict=True):
            for message in dict.fromkeys(messages.values()):
                if message not in logged and len(logged) < _LOGGED:
                    logged.add(message)
                    place = place_of(message)
                    _logger.error("%s: %s%s", function.name, printable(message), f"\n  {place}" if place else "")
        for function, by_row, dropped in zip(self.functions, remarks, self._dropped, strict=True):
            for name in dict.fromkeys(name for remark in by_row.values() for name in remark.metrics):
                if name not in function.metrics and name not in dropped and len(dropped) < _LOGGED:
                    dropped.add(name)
                    message = f"{function.name} returns `{name}`, which is not a declared metric and is dropped: "
                    warnings.warn(f"{message}@assay.reward(metrics=[{name!r}])", AssayWarning, stacklevel=2)

    def lane(self) -> SharedColumn:
        """Return a struct column: the reward and the error of each function, by its position."""
        return SharedColumn(f"rewards:{id(self)}", self._expr)

    def _expr(self, schema: pl.Schema) -> pl.Expr:
        names = self.read_from(schema)
        fields = {
            f"{number}/{name}": pl.Float64 if name == "score" or name.startswith("metric/") else pl.String
            for number, function in enumerate(self.functions)
            for name in _parts(function)
        }
        completion = text() if TASK_FOUND not in schema else pl.when(pl.col(TASK_FOUND).is_not_null()).then(text())
        # the completion as it was loaded, unless the functions are about something else
        loaded = {name for name in names if name != COMPLETION or reads_completion()}
        arguments = (exactly(name).alias("argument") if name in loaded else text().alias(name) for name in names)
        columns = [completion, *arguments]
        # NOTE: a group function needs the whole column, whatever the batch size
        run_batch = partial(self._batch, names)
        return pl.map_batches(columns, run_batch, return_dtype=pl.Struct(fields), is_elementwise=not self.grouped)

    def _batch(self, names: Sequence[str], columns: Sequence[pl.Series]) -> pl.Series:
        most = max(1, THRESHOLDS.reward_rows)
        if len(columns[0]) > most and self._can_split:
            starts = range(0, len(columns[0]), most)
            return pl.concat(
                [self._batch(names, [column[start : start + most] for column in columns]) for start in starts]
            )
        with self._lock:  # Polars calls from several threads; functions may expect one
            present = columns[0].is_not_null()
            has_null = not present.all()
            inputs = [column.filter(present) for column in columns[1:]] if has_null else columns[1:]
            rows = int(present.sum())
            read = {name for name, column in zip(names, inputs, strict=True) if is_read(column)}
            values = {name: python_values(column) for name, column in zip(names, inputs, strict=True)}
            fields: dict[str, pl.Series] = {}
            for number, parts in enumerate(zip(self.functions, *self.score(values, rows, read), strict=True)):
                fields |= {f"{number}/{name}": part for name, part in _series(*parts, rows).items()}
            answers = pl.DataFrame(fields).to_struct(columns[0].name)
            return answers.gather(positions(present)).alias(columns[0].name) if has_null else answers


@dataclass
class _Scoring:
    rewards: RewardBatch
    names: Sequence[str]
    values: Sequence[Sequence[Any]]
    absent: tuple[str, ...]

    def __post_init__(self) -> None:
        self.scores: list[list[Any]] = [[] for _ in self.rewards.functions]
        self.errors: list[dict[int, str]] = [{} for _ in self.rewards.functions]

    def work(self, numbers: Sequence[int], rows: Sequence[Sequence[Any]], read: Callable[[Any], Any]) -> Work:
        functions = [self.rewards.functions[number] for number in numbers]
        return Work(
            [function.caller(self.names, self.absent) for function in functions],
            rows,
            any(function.is_async for function in functions),
            self.rewards.side_by_side,
            read,
            ([function.name for function in functions], self.names, self.absent),
            stop=self.rewards.limits.stop,
        )

    def by_example(self, numbers: Sequence[int], keys: Sequence[Any]) -> Generator[Work, None, None]:
        if not numbers:
            return
        members: dict[Any, list[int]] = {}
        for row, key in enumerate(keys):
            if key is not None:
                members.setdefault(key, []).append(row)
        for number in numbers:
            self.scores[number] = [0.0] * len(self.values)
            self.errors[number] = {row: NO_EXAMPLE for row, key in enumerate(keys) if key is None}
        yield from self._lists(numbers, list(members.values()))

    def in_batches(self, numbers: Sequence[int]) -> Generator[Work, None, None]:
        """Run functions that take any rollouts at once.

        NOTE: the rollouts of a batch whose call fails are tried one by one, so that one rollout's failure is not that of others;
        except after a timeout, which each of them may take anew.
        """
        if not numbers:
            return
        rows, most = len(self.values), max(1, THRESHOLDS.reward_rows)
        for number in numbers:
            self.scores[number] = [0.0] * rows
        batches = [[*range(start, min(start + most, rows))] for start in range(0, rows, most)]
        failed = yield from self._lists(numbers, batches)
        for number, groups in failed.items():
            again = [[row] for group in groups if len(group) > 1 for row in group]
            for (row,) in again:
                self.errors[number].pop(row, None)
            yield from self._lists([number], again)

    def _lists(
        self, numbers: Sequence[int], groups: Sequence[Sequence[int]]
    ) -> Generator[Work, None, dict[int, list[Sequence[int]]]]:
        rows = [[[self.values[row][place] for row in group] for place in range(len(self.names))] for group in groups]
        work = self.work(numbers, rows, _settle_list)
        yield work
        timeout = self.rewards.limits.timeout
        late = None if timeout is None else timed_out(timeout)[1]
        failed: dict[int, list[Sequence[int]]] = {}
        for number, lists, errors in zip(numbers, work.scores, work.errors, strict=True):
            for place, (group, rewards) in enumerate(zip(groups, lists, strict=True)):
                failure = errors.get(place)
                if failure is None and len(rewards) != len(group):
                    failure = f"ValueError: {len(rewards)} rewards for {len(group)} rollouts"
                if failure is not None and failure != late:
                    failed.setdefault(number, []).append(group)
                outcomes = rewards if failure is None else [(0.0, failure)] * len(group)
                for row, outcome in zip(group, outcomes, strict=True):
                    is_reward = outcome[0] is not None or self.rewards.functions[number].skips
                    self.scores[number][row], error = outcome if is_reward else to_reward(None)
                    if error is not None:
                        self.errors[number][row] = error
        return failed


def _parts(function: RewardFunction) -> list[str]:
    return ["score", "error", "reason", *(f"metric/{name}" for name in function.metrics)]


def _series(
    function: RewardFunction,
    scores: Sequence[float | None],
    errors: Mapping[int, str],
    remarks: Mapping[int, Graded],
    rows: int,
) -> dict[str, pl.Series]:
    messages = [errors.get(row) for row in range(rows)] if errors else [None] * rows
    reasons: list[str | None] = [None] * rows
    metrics: dict[str, list[float | None]] = {name: [None] * rows for name in function.metrics}
    for row, remark in remarks.items():
        reasons[row] = remark.reason or None
        for name, values in metrics.items():
            values[row] = remark.metrics.get(name)
    texts = {"error": messages, "reason": reasons}
    numbers = {"score": scores, **{f"metric/{name}": values for name, values in metrics.items()}}
    columns = {name: pl.Series(values, dtype=pl.String) for name, values in texts.items()}
    columns |= {name: pl.Series(values, dtype=pl.Float64) for name, values in numbers.items()}
    return {name: columns[name] for name in _parts(function)}


def _settle_list(result: Any) -> tuple[Any, str | None]:
    try:
        # convert to numbers here, where the call is made: other values may not be picklable
        return [(None, None) if reward is None else graded(reward) for reward in listed(result)], None
    except BaseException as error:  # the list may be an iterator of the user's
        if not is_user_error(error):
            raise
        return [], failure(error)


def examples(columns: Mapping[str, Sequence[Any]], rows: int) -> list[Any]:
    """Return the example of each rollout: its ``example_id``, else its prompt; None if unknown."""
    ids = next((columns[name] for name in COLUMN_OF["example_id"] if name in columns), None)
    values = columns.get("prompt", [None] * rows) if ids is None else ids
    is_nested = [isinstance(value, list | dict) for value in values]
    return [
        json.dumps(value, default=str, sort_keys=True) if nested else value
        for value, nested in zip(values, is_nested, strict=True)
    ]
