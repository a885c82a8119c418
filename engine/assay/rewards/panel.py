"""Reward functions as checks: Python, row by row, all functions of a rubric together."""

import json
import logging
import threading
import warnings
from collections.abc import Callable, Container, Generator, Iterable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from itertools import groupby
from typing import Any, ClassVar, NamedTuple

import polars as pl

from assay.calls.graded import Graded, graded
from assay.calls.in_thread import run
from assay.calls.limits import Limits, listed, own_failure, settled, timed_out
from assay.calls.places import failure, place_of
from assay.calls.runner import Work
from assay.checks.base import Outcome, Row, RunCheck
from assay.errors import AssayWarning, printable
from assay.expressions.lane import Lane, exactly, is_about_completion, positions, text
from assay.names import COMPLETION, HIDDEN, TASK_FOUND
from assay.rewards.reward_function import RewardFunction, shortfall, verdict
from assay.thresholds import THRESHOLDS
from assay.values.arguments import (
    ARGUMENTS,
    COLUMN,
    COLUMN_OF,
    MEMO,
    RAW,
    arguments,
    column_arguments,
    is_read,
    python_values,
)

NO_EXAMPLE = "ValueError: example_id is null, so the rollouts of the example are not known"
_LOGGED = 10
"""Distinct errors logged for each function; the error column has all of them."""

_STRICT = ("prompt", "answer")
"""Arguments that must be columns if a function has no default for them; the other arguments have fallback values."""

_logger = logging.getLogger("assay.rewards")

NOT_APPLICABLE = "no reward function applies to the row"
"""Why a row is unscored for which all functions return None."""


class Results(NamedTuple):
    """The outcomes of calls.

    Attributes:
        scores: For each function, its rewards; None where it does not apply.
        errors: For each function, its errors by row.
        remarks: For each function, what it returned beside its rewards, by row.
    """

    scores: list[list[float | None]]
    errors: list[dict[int, str]]
    remarks: list[dict[int, Graded]]

    def of_row(self, row: int) -> list[tuple[float | None, str | None, Graded | None]]:
        """Return the reward, the error and the remark of each function for one row."""
        parts = zip(self.scores, self.errors, self.remarks, strict=True)
        return [(scores[row], errors.get(row), remarks.get(row)) for scores, errors, remarks in parts]


Host = Callable[[Work, Limits], None]
"""Makes the calls, in this process or in worker processes."""


class Rewards:
    """The functions of a rubric, run together: first rollout by rollout, then in batches, then example by example.

    A group function takes all rollouts of an example at once, a batched one any rollouts. The rubrics of a ``RubricGroup`` run one after another, as in its
    ``score_rollouts``: a rubric sees what earlier ones wrote into the states.

    Args:
        functions: The functions, in order.
        limits: Limits of the run.
        side_by_side: Run the asynchronous functions of one rollout concurrently.
        host: Makes the calls.
        rubrics: The rubric of each function; by default, all belong to the same one.
        alone: Whether no other member gives a reward.
    """

    def __init__(
        self,
        functions: Sequence[RewardFunction],
        limits: Limits | None = None,
        *,
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
        return _rebuild, (self.functions, self.limits, self.side_by_side, self._host, self.rubrics, self.alone)

    def read_from(self, columns: Iterable[str]) -> list[str]:
        """Return the columns that the functions take, of those that there are."""
        return [name for name in columns if name in self.columns or (self.takes_all and not name.startswith(HIDDEN))]

    def _by_name(self, columns: Iterable[str]) -> list[str]:
        """Return the columns that the functions take by their own names."""
        if not self.takes_all:
            return [name for name in columns if name in self.others]
        return [name for name in columns if self._takes_lists or name in self.others or name not in ARGUMENTS]

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
            The outcomes.
        """
        values = arguments(columns, self.arguments, rows, read)
        values |= column_arguments(columns, self._by_name(columns), read)
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
        scores: list[list[Any]] = [[] for _ in self.functions]
        errors: list[dict[int, str]] = [{} for _ in self.functions]
        calls = _Calls(self, names, rows_of_values, absent, scores, errors)
        tick = self.limits.tick
        for places in self._turns():
            per_rollout = [at for at in places if not self.functions[at].takes_lists]
            if per_rollout:
                work = Work(
                    [self.functions[at] for at in per_rollout], names, rows_of_values, self.side_by_side, absent
                )
                work.seconds, work.tick, work.stop = seconds, tick, self.limits.stop
                yield work
                tick = None  # a rollout is counted once
                for number, at in enumerate(per_rollout):
                    scores[at], errors[at] = work.scores[number], work.errors[number]
            yield from calls.in_batches([at for at in places if self.functions[at].batched])
            yield from calls.by_example([at for at in places if self.functions[at].group], keys)
        self._log(errors)
        remarks = [_remarks(values) for values in scores]
        self._warn(remarks)
        plain = [_numbers(values) if found else values for values, found in zip(scores, remarks, strict=True)]
        return Results(plain, errors, remarks)

    def _turns(self) -> list[list[int]]:
        """Return the positions of the functions that run together, one list for each turn."""
        places = range(len(self.functions))
        # without functions of lists, rollouts are scored one at a time, so the order of rubrics holds within each rollout
        if not (any(function.takes_lists for function in self.functions) and self.rubrics):
            return [[*places]]
        return [[*turn] for _, turn in groupby(places, key=self.rubrics.__getitem__)]

    def _log(self, errors: Sequence[Mapping[int, str]]) -> None:
        for function, row_errors, logged in zip(self.functions, errors, self._logged, strict=True):
            for message in row_errors.values():
                if len(logged) >= _LOGGED:
                    break
                if message not in logged:
                    logged.add(message)
                    place = place_of(message)
                    _logger.error("%s: %s%s", function.name, printable(message), f"\n  {place}" if place else "")

    def _warn(self, remarks: Sequence[Mapping[int, Graded]]) -> None:
        """Warn once about each entry of a mapping that is not a declared metric."""
        for function, by_row, dropped in zip(self.functions, remarks, self._dropped, strict=True):
            for name in dict.fromkeys(name for remark in by_row.values() for name in remark.metrics):
                if name not in function.metrics and name not in dropped and len(dropped) < _LOGGED:
                    dropped.add(name)
                    message = f"{function.name} returns `{name}`, which is not a declared metric and is dropped: "
                    warnings.warn(f"{message}@assay.reward(metrics=[{name!r}])", AssayWarning, stacklevel=2)

    # ── columns ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def lane(self) -> Lane:
        """Return a struct column: the reward and the error of each function, by its position."""
        return Lane(f"rewards:{id(self)}", self._expr)

    def _expr(self, schema: pl.Schema) -> pl.Expr:
        names = self.read_from(schema)
        fields = {
            f"{at}/{part}": kind
            for at, function in enumerate(self.functions)
            for part, kind in _parts(function).items()
        }

        completion = text() if TASK_FOUND not in schema else pl.when(pl.col(TASK_FOUND).is_not_null()).then(text())
        columns = [completion, *(_argument_expr(name) for name in names)]
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
            fields: dict[str, pl.Series] = {}
            for at, parts in enumerate(zip(self.functions, *self.score(values, rows, read), strict=True)):
                fields |= {f"{at}/{name}": part for name, part in _series(*parts, rows).items()}
            answers = pl.DataFrame(fields).to_struct(columns[0].name)
            return answers.gather(positions(present)).alias(columns[0].name) if has_null else answers


class _Calls:
    """The calls of functions that take lists.

    Args:
        rewards: The functions.
        names: Names of the arguments.
        values: The arguments of each rollout.
        absent: Arguments that the rollouts do not have.
        scores: Receives the rewards, by function and row.
        errors: Receives the errors, by function and row.
    """

    def __init__(
        self,
        rewards: Rewards,
        names: Sequence[str],
        values: Sequence[Sequence[Any]],
        absent: tuple[str, ...],
        scores: list[list[Any]],
        errors: list[dict[int, str]],
    ) -> None:
        self._rewards, self._names, self._values, self._absent = rewards, names, values, absent
        self._scores, self._errors = scores, errors

    def by_example(self, places: Sequence[int], keys: Sequence[Any]) -> Generator[Work, None, None]:
        """Run functions that see all rollouts of an example: one call for each example."""
        if not places:
            return
        members: dict[Any, list[int]] = {}
        for row, key in enumerate(keys):
            if key is not None:
                members.setdefault(key, []).append(row)
        for at in places:
            self._scores[at] = [0.0] * len(self._values)
            self._errors[at] = {row: NO_EXAMPLE for row, key in enumerate(keys) if key is None}
        yield from self._lists(places, list(members.values()))

    def in_batches(self, places: Sequence[int]) -> Generator[Work, None, None]:
        """Run functions that take any rollouts at once.

        NOTE: the rollouts of a batch whose call fails are tried one by one, so that one rollout's failure is not that of others;
        except after a timeout, which each of them may take anew.
        """
        if not places:
            return
        rows, most = len(self._values), max(1, THRESHOLDS.reward_rows)
        for at in places:
            self._scores[at] = [0.0] * rows
        batches = [[*range(start, min(start + most, rows))] for start in range(0, rows, most)]
        failed = yield from self._lists(places, batches)
        for at, groups in failed.items():
            again = [[row] for group in groups if len(group) > 1 for row in group]
            for (row,) in again:
                self._errors[at].pop(row, None)
            yield from self._lists([at], again)

    def _lists(
        self, places: Sequence[int], groups: Sequence[Sequence[int]]
    ) -> Generator[Work, None, dict[int, list[Sequence[int]]]]:
        """Call functions on groups of rows; return the groups whose call failed, except by a timeout, by function."""
        values, functions = self._values, [self._rewards.functions[at] for at in places]
        columns = [[[values[row][at] for row in group] for at in range(len(self._names))] for group in groups]
        side_by_side, limits = self._rewards.side_by_side, self._rewards.limits
        work = Work(functions, self._names, columns, side_by_side, self._absent, read=_settle_list)
        work.stop = limits.stop
        yield work
        late = None if limits.timeout is None else timed_out(limits.timeout)[1]
        failed: dict[int, list[Sequence[int]]] = {}
        for number, (at, function) in enumerate(zip(places, functions, strict=True)):
            for group_number, group in enumerate(groups):
                failure = work.errors[number].get(group_number)
                rewards = work.scores[number][group_number]
                if failure is None and len(rewards) != len(group):
                    failure = f"ValueError: {len(rewards)} rewards for {len(group)} rollouts"
                if failure is not None and failure != late:
                    failed.setdefault(at, []).append(group)
                for place, row in enumerate(group):
                    score, error = (0.0, failure) if failure is not None else rewards[place]
                    if score is None and not function.skips:
                        score, error = settled(None)
                    self._scores[at][row] = score
                    if error is not None:
                        self._errors[at][row] = error
        return failed


def _argument_expr(name: str) -> pl.Expr:
    """Return a column that functions take: the completion as it was loaded, unless they are about something else."""
    is_loaded = name != COMPLETION or is_about_completion()
    return exactly(name).alias("argument") if is_loaded else text().alias(name)


def _remarks(values: Sequence[Any]) -> dict[int, Graded]:
    """Return what was returned beside rewards, by row."""
    if Graded not in {*map(type, values)}:
        return {}
    return {row: value for row, value in enumerate(values) if type(value) is Graded}


def _numbers(values: Sequence[Any]) -> list[float | None]:
    return [value.score if type(value) is Graded else value for value in values]


def _parts(function: RewardFunction) -> dict[str, Any]:
    """Return the fields of a function in the lane, and their types."""
    metrics = {f"metric/{name}": pl.Float64 for name in function.metrics}
    return {"score": pl.Float64, "error": pl.String, "reason": pl.String, **metrics}


def _series(
    function: RewardFunction,
    scores: Sequence[float | None],
    errors: Mapping[int, str],
    remarks: Mapping[int, Graded],
    rows: int,
) -> dict[str, pl.Series]:
    """Return the values of ``_parts``."""
    messages = [errors.get(row) for row in range(rows)] if errors else [None] * rows
    reasons: list[str | None] = [None] * rows
    metrics: dict[str, list[float | None]] = {name: [None] * rows for name in function.metrics}
    for row, remark in remarks.items():
        reasons[row] = remark.reason or None
        for name, values in metrics.items():
            values[row] = remark.metrics.get(name)
    columns = [scores, messages, reasons, *metrics.values()]
    return {
        name: pl.Series(values, dtype=dtype)
        for (name, dtype), values in zip(_parts(function).items(), columns, strict=True)
    }


def _rebuild(
    functions: Sequence[RewardFunction],
    limits: Limits,
    side_by_side: bool,
    host: Host,
    rubrics: Sequence[Any],
    alone: bool,
) -> Rewards:
    return Rewards(functions, limits, side_by_side=side_by_side, host=host, rubrics=rubrics, alone=alone)


def _settle_list(result: Any) -> tuple[Any, str | None]:
    """Return the list of rewards that a group function returned, each one settled, and the error."""
    try:
        # convert to numbers here, where the call is made: other values may not be picklable
        return [(None, None) if reward is None else graded(reward) for reward in listed(result)], None
    except BaseException as error:  # the list may be an iterator of the user's
        if not own_failure(error):
            raise
        return [], failure(error)


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
    stays: ClassVar[tuple[str, ...]] = ("answer", "task", "example_id", "id")

    def __init__(self, rewards: Rewards, at: int, weight: float) -> None:
        super().__init__()
        self.rewards = rewards
        self.at = at
        self.weight = weight
        required = (name for name in self.function.required if name in _STRICT or name.startswith(COLUMN))
        self.reads = tuple(name.removeprefix(COLUMN) for name in required)  # type: ignore[misc]
        self.may_read = rewards.columns  # type: ignore[misc]
        self.stays = (*Reward.stays, *rewards.others)  # type: ignore[misc]
        self.nullable = self.function.skips  # type: ignore[misc]

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
        hint = "Rename the column that says which rollouts belong together: --map example_id=COLUMN."
        return [(fact, f"{hint} A function that scores each rollout by itself is @assay.reward(batched=True).")]

    def close(self) -> None:
        self.rewards.close()

    def together(self, rows: Sequence[Row]) -> None:
        if any(id(self.rewards) not in row[MEMO] for row in rows):
            for row, results in zip(rows, _score_rows(rows, self.rewards), strict=True):
                row[MEMO][id(self.rewards)] = results

    def _results(self, row: Row) -> list[tuple[float | None, str | None, Graded | None]]:
        results: list[tuple[float | None, str | None, Graded | None]] = (
            row[MEMO][id(self.rewards)] if MEMO in row else _score_rows([row], self.rewards)[0]
        )
        return results

    def outcome(self, row: Row) -> Outcome:
        score, error, remark = self._results(row)[self.at]
        return verdict(score, error, "" if remark is None else remark.reason, self.weight)

    def unscored(self, row: Row) -> str | None:
        if not self._decides:
            return None
        return NOT_APPLICABLE if all(score is None for score, _, _ in self._results(row)) else None

    def unscored_expr(self) -> pl.Expr | None:
        if not self._decides:
            return None
        fields = self.rewards.lane().col.struct
        scores = [fields.field(f"{at}/score").is_null() for at in range(len(self.rewards.functions))]
        return pl.when(pl.all_horizontal(scores)).then(pl.lit(NOT_APPLICABLE))

    @property
    def _decides(self) -> bool:
        """Whether this is the check that finds rows to which no function applies."""
        return self.rewards.skips and self.at == 0

    def short_expr(self, score: pl.Expr, error: pl.Expr) -> pl.Expr:
        short = score < 1.0 if self.weight > 0 else (score > 0.0) & (self.weight < 0)
        return short | error.is_not_null()

    def expr(self) -> pl.Expr:
        return self.rewards.lane().col.struct.field(f"{self.at}/score")

    def error_expr(self) -> pl.Expr:
        return self.rewards.lane().col.struct.field(f"{self.at}/error")

    def reason_expr(self) -> pl.Expr:
        reason = self.rewards.lane().col.struct.field(f"{self.at}/reason")
        return pl.coalesce(self.error_expr(), reason, pl.lit(shortfall(self.weight)))

    def lanes(self) -> tuple[Lane, ...]:
        return (self.rewards.lane(),)

    def explain(self) -> str:
        function = self.function
        how = (
            "all rollouts of an example together"
            if function.group
            else "in batches"
            if function.batched
            else "row by row"
        )
        return f"Python, {how}{', asynchronous' if self.function.is_async else ''}"


class Metric(Reward):
    """A declared metric of a function, as a member of weight 0; null where the function does not return it.

    Args:
        rewards: The functions of the rubric, which run together.
        at: The position of the function among them.
        metric: Its name.
    """

    def __init__(self, rewards: Rewards, at: int, metric: str) -> None:
        super().__init__(rewards, at, 0.0)
        self.metric = metric
        self.reads = ()  # type: ignore[misc]
        self.nullable = True  # type: ignore[misc]

    def column_problems(self, schema: pl.Schema) -> list[tuple[str, str]]:
        del schema
        return []

    def outcome(self, row: Row) -> Outcome:
        remark = self._results(row)[self.at][2]
        value = None if remark is None else remark.metrics.get(self.metric)
        return verdict(value, None, "", self.weight)

    def expr(self) -> pl.Expr:
        return self.rewards.lane().col.struct.field(f"{self.at}/metric/{self.metric}")

    def error_expr(self) -> pl.Expr:
        return pl.lit(None, dtype=pl.String)

    def explain(self) -> str:
        return f"a metric of {self.function.name}"

    @property
    def _decides(self) -> bool:
        return False


def _score_rows(rows: Sequence[Row], rewards: Rewards) -> list[list[tuple[float | None, str | None, Graded | None]]]:
    """Score rows for the row loop; results by row, then by function."""
    names = rewards.read_from(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [deepcopy(row.get(RAW if name == "completion" else name)) for row in rows] for name in names}
    results = rewards.score(columns, len(rows))
    return [results.of_row(row) for row in range(len(rows))]
