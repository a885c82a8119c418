"""Gather single calls into batches: a batch of a thousand rows costs little more than one row.

Trainers and evaluators call for one rollout at a time, from coroutines or from threads. Their rows wait here for the calls that come
at the same time, and are scored together in one thread.
"""

import asyncio
import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any, TypeGuard
from weakref import WeakKeyDictionary

import polars as pl

from assay.checks.graders.table import GRADERS
from assay.compiling.columns import assumed_columns
from assay.compiling.plan import Plan, compile  # noqa: A004  (the field's word)
from assay.compiling.verifiers import Rewarding, verifiers_of_run
from assay.errors import UsageError
from assay.frozen import frozen
from assay.options import PlanOptions, settle
from assay.spec.graders_listing import spec_of_name
from assay.spec.named import is_path, is_registered
from assay.spec.verifier import VerifierSource, VerifierSpec
from assay.system.processes import prepare_process

Verifiers = Plan | Rewarding | VerifierSource | Sequence[VerifierSource] | None
Row = Mapping[str, Any]
Outcome = dict[str, Any] | BaseException
"""The results of a row, or what scoring it raised."""

_PROMPT = "prompt"
"""The column by which examples are told apart."""

_IDLE = 5.0
"""Seconds without calls after which the thread ends; the next call starts another."""


@frozen
class _Call:
    """Rows to score, and who waits for them."""

    rows: Sequence[Row]
    answer: Callable[[list[Outcome]], None]
    waits: bool = False


def plan_of(
    verifiers: Verifiers, *, strict: bool = True, any_role: bool = False, checks: Sequence[type[Any]] = ()
) -> Plan:
    """Return a plan for rows of plain values: its results only, without columns that pass through.

    The name of a grader stands for a verifier that is this grader, with the gold in the column ``answer``.
    """
    if isinstance(verifiers, Plan):
        return replace(verifiers, keep=())
    if is_grader(verifiers):
        verifiers = spec_of_name(verifiers)
    loaded = verifiers_of_run(verifiers, settle(PlanOptions, {"strict": strict, "checks": checks}, "plan_of"))
    schema = assumed_columns(loaded) | ({_PROMPT: pl.String} if _whole(loaded) else {})
    return compile(loaded, schema, keep=(), any_role=any_role, strict=strict)


def is_grader(verifiers: object) -> TypeGuard[str]:
    """Return whether a verifier is named by a grader, and neither by a file nor in a registry."""
    if not isinstance(verifiers, str) or verifiers not in GRADERS:
        return False
    return not is_path(verifiers) and not is_registered(verifiers)


def _whole(verifiers: Sequence[VerifierSpec]) -> list[str]:
    nodes = [spec for verifier in verifiers for spec in verifier.nodes]
    return [spec.id for spec in nodes if spec.check is not None and spec.check.traits.sees_all]


class Batcher:
    """Score single rows in batches that gather themselves; the results are those of one call for each row.

    Calls from coroutines are gathered by turns of their event loop: rows of tasks that run together are one batch, and what arrives
    while a batch is scored is the next one. Calls from threads wait a few milliseconds for others.

    Args:
        verifiers: One or more verifiers: objects, paths or mappings; a rubric; or a plan, whose ``score_rows`` is used. None if
            the rows name functions.
        window: How long the call of a thread waits for others, in seconds.
        most: Maximum rows of a batch.
        eager: Whether calls of coroutines are scored at the end of their turn. Otherwise they wait as those of threads do, which
            saves work where calls come one by one, as from a network.
        strict: Refuse unknown check types and broken checks, and a first batch in which no row has a column that a check reads.

    Raises:
        SpecError: A verifier cannot be used.
        UsageError: A reward function sees all rollouts of an example, which single rows do not show.

    Example:
        >>> import assay
        >>> batcher = assay.Batcher({"checks": [{"type": "contains", "value": "refund"}]})
        >>> batcher.score_sync({"completion": "A refund is on its way."})["reward"]
        1.0
    """

    def __init__(
        self, verifiers: Verifiers, *, window: float = 0.002, most: int = 4096, eager: bool = True, strict: bool = True
    ) -> None:
        self.plan = plan_of(verifiers, strict=strict)
        self.window = window
        self.most = most
        self.eager = eager
        if whole := _whole(self.plan.verifiers):
            raise UsageError(
                f"{', '.join(whole)}: sees all rollouts of an example; single rows cannot be scored.",
                "Score whole batches: plan.score_rows(rows).",
            )
        self._start()

    def __reduce__(self) -> tuple[object, ...]:
        return partial(Batcher, self.plan, window=self.window, most=self.most, eager=self.eager), ()

    def _start(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        # NOTE: no SimpleQueue: of CPython 3.11, it may wait forever where it is to wait for microseconds
        self._calls: queue.Queue[_Call] = queue.Queue()
        self._is_running = False
        self._turns: WeakKeyDictionary[Any, list[tuple[Row, asyncio.Future[Any]]]] = WeakKeyDictionary()

    async def score(self, row: Row) -> dict[str, Any]:
        """Score a row, together with the other rows of this turn of the event loop.

        Args:
            row: Columns and values, as ``plan.score_rows`` takes them.

        Returns:
            The result columns: ``reward`` (None = unscored), ``passed``, ``feedback``, ``error``, ``score/…`` and ``check/…``.

        Raises:
            InputError: The row cannot be read; the others of its batch are scored.
        """
        self._check_process()
        loop = asyncio.get_running_loop()
        turn = self._turns.setdefault(loop, [])
        if not turn:
            loop.call_soon(self._end_turn, loop)
        future = loop.create_future()
        turn.append((row, future))
        result: dict[str, Any] = await future
        return result

    async def outcomes(self, rows: Sequence[Row]) -> list[Outcome]:
        """Score rows, together with those of other calls; an exception stands in the place of its row."""
        self._check_process()
        if not rows:
            return []
        future: asyncio.Future[list[Outcome]] = asyncio.get_running_loop().create_future()
        self._submit_from(future.get_loop(), rows, lambda outcomes: _settle(future, outcomes))
        return await future

    def score_sync(self, row: Row) -> dict[str, Any]:
        """Score a row, together with the rows of other threads; as ``score``.

        Raises:
            InputError: The row cannot be read.
        """
        (outcome,) = self.outcomes_sync([row])
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def outcomes_sync(self, rows: Sequence[Row]) -> list[Outcome]:
        """Score rows, together with those of other threads; an exception stands in the place of its row."""
        self._check_process()
        future: Future[list[Outcome]] = Future()
        if rows:
            self._submit(_Call(rows, future.set_result, waits=True))
        return future.result() if rows else []

    def _check_process(self) -> None:
        if self._process != os.getpid():  # a fork has no threads, and perhaps a lock that nobody releases
            self._start()
        prepare_process()

    def _end_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        waiting = [(row, future) for row, future in self._turns.pop(loop, []) if not future.done()]

        def answer(outcomes: Sequence[Outcome]) -> None:
            for (_, future), outcome in zip(waiting, outcomes, strict=True):
                _settle(future, outcome)

        if waiting:
            self._submit_from(loop, [row for row, _ in waiting], answer)

    def _submit_from(
        self, loop: asyncio.AbstractEventLoop, rows: Sequence[Row], answer: Callable[[list[Outcome]], None]
    ) -> None:
        def answer_in_loop(outcomes: list[Outcome]) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits
                loop.call_soon_threadsafe(answer, outcomes)

        try:
            self._submit(_Call(rows, answer_in_loop, waits=not self.eager))
        except RuntimeError as error:  # no thread can be started
            answer([error] * len(rows))

    def _submit(self, call: _Call) -> None:
        with self._lock:
            if not self._is_running:  # first, because the system may refuse a thread
                threading.Thread(target=self._run, name="assay-batches", daemon=True).start()
                self._is_running = True
            self._calls.put(call)

    def _run(self) -> None:
        while True:
            try:
                calls = [*self._gathered()]
            except queue.Empty:
                with self._lock:
                    if self._calls.empty():
                        self._is_running = False
                        return
                continue
            outcomes = iter(_outcomes(self.plan, [row for call in calls for row in call.rows]))
            for call in calls:
                call.answer([next(outcomes) for _ in call.rows])

    def _gathered(self) -> Iterator[_Call]:
        call = self._calls.get(timeout=_IDLE)
        rows, end = len(call.rows), time.monotonic() + self.window
        yield call
        while rows < self.most:
            rest = end - time.monotonic() if call.waits else 0.0
            try:
                call = self._calls.get(timeout=rest) if rest > 0 else self._calls.get_nowait()
            except queue.Empty:
                return
            rows += len(call.rows)
            yield call


def _outcomes(plan: Plan, rows: Sequence[Row]) -> list[Outcome]:
    try:
        return list(plan.score_rows(rows).to_dicts())
    except BaseException as error:  # noqa: BLE001  (all of them are for the callers: Polars' panics, too)
        if len(rows) == 1:
            return [error]
    middle = len(rows) // 2
    return [*_outcomes(plan, rows[:middle]), *_outcomes(plan, rows[middle:])]


def _settle(future: Any, outcome: Any) -> None:
    if future.done():  # it was cancelled
        return
    if isinstance(outcome, BaseException):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
