"""What users' code may answer and raise, wherever Assay calls it: one rule for all, and no row but its own pays for it."""

import asyncio
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from cases import crossed, sized
from waiting import PATIENCE

import assay
from assay.classes.registry import _REGISTRY as CLASSES
from assay.compiling.verifiers import verifiers_of_run
from assay.functions import registry
from assay.options import ScoreOptions, settle
from assay.scoring.reference import score_rows


class OddError(BaseException):
    """What no ``except Exception`` catches."""


NO_NUMBERS = [
    "0.5",
    b"1",
    bytearray(b"1"),
    memoryview(b"1"),
    np.str_("1"),
    np.array("1"),
    np.array([0.5]),
    None,
    [1.0],
    1j,
]
NO_NUMBERS += [float("nan"), Decimal("NaN"), Decimal("sNaN"), 10**400, object()]
NUMBERS = [0.5, Decimal("0.5"), Fraction(1, 2), np.float32(0.5), np.array(0.5)]
RAISED = [
    *(GeneratorExit, SystemExit, OddError, asyncio.CancelledError, StopIteration, pl.exceptions.PanicException),
    ValueError,
]


def give(value):
    if isinstance(value, type) and issubclass(value, BaseException):
        raise value("odd")
    return value


def answers(completion, given):
    """What a piece of users' code gives the row: what is tried, or half of it for the others."""
    return give(given) if completion == "odd" else 0.25


def function(given):
    return assay.Rubric([lambda completion: answers(completion, given)])


def later(given):
    async def func(completion):
        await asyncio.sleep(0)
        return answers(completion, given)

    return assay.Rubric([func])


def awaited(given):
    async def func(completion):
        return answers(completion, given)

    return assay.Rubric([lambda completion, **_: func(completion)])


def group(given):
    return assay.Rubric([lambda completions: [answers(one, given) for one in completions]])


def verifier_class(given):
    class Tried:
        name = "tried"

        class Config(assay.classes.registry.BaseModel):
            pass

        def verify(self, *, prompt, completion, target):
            return assay.VerificationResult(answers(completion, given))

    CLASSES["tried"] = Tried
    return {"kind": "tried"}


def registered(given):
    registry._REGISTRY.pop("tried", None)
    assay.fns.register("tried", lambda output, expected, params: answers(output, given))


def check(given):
    class Tried(assay.Check):
        type = "tried"
        graded = True

        def row(self, row):
            return answers(row["completion"], given)

    return Tried


KINDS = [function, later, awaited, group, verifier_class, registered, check]
ROWS = [{"completion": text, "example_id": at, "fn_name": "tried"} for at, text in enumerate(("fine", "odd", "fine"))]


@pytest.fixture(autouse=True)
def restored():
    classes, functions = dict(CLASSES), dict(registry._REGISTRY)
    yield
    for there, before in ((CLASSES, classes), (registry._REGISTRY, functions)):
        there.clear()
        there.update(before)


def judged(kind, given):
    """The rewards and errors of three rows, of which the second gets what is tried; by columns and by the definition."""
    made, options = kind(given), {}
    if kind is check:
        made, options = {"checks": [{"type": "tried"}]}, {"checks": [made]}
    found = assay.score(ROWS, made, **options)
    loaded = verifiers_of_run(made, settle(ScoreOptions, options, "score"))
    defined = score_rows(assay.scan(ROWS).collect().to_dicts(), loaded)
    for name in ("reward", "error", "feedback"):
        assert found[name].to_list() == [row[name] for row in defined]
    timed = assay.score(ROWS, made, function_timeout=PATIENCE, **options)
    assert timed.equals(found)
    return found["reward"].to_list(), found["error"].to_list()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("given", NUMBERS, ids=repr)
def test_any_number_is_a_reward(kind, given):
    assert judged(kind, given) == ([0.25, 0.5, 0.25], [None] * 3)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_number_is_an_error_of_its_row_and_text_is_none(kind):
    for given in sized(NO_NUMBERS, NO_NUMBERS[KINDS.index(kind) % 3 :: 3]):
        rewards, errors = judged(kind, given)
        assert rewards == [0.25, 0.0, 0.25], given
        assert [error is not None for error in errors] == [False, True, False], given


@pytest.mark.parametrize(("kind", "given"), crossed(KINDS, RAISED))
def test_whatever_is_raised_but_an_interrupt_costs_its_own_row_only(kind, given):
    rewards, errors = judged(kind, given)
    assert rewards == [0.25, 0.0, 0.25]
    assert errors[0] is errors[2] is None
    raised = "RuntimeError" if given is StopIteration and kind in (later, awaited) else given.__name__
    assert raised in errors[1]


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupt_ends_the_run(kind):
    with pytest.raises(KeyboardInterrupt):
        judged(kind, KeyboardInterrupt)


@pytest.mark.parametrize("given", [SystemExit, OddError, GeneratorExit])
@pytest.mark.parametrize("wait", [False, True])
@pytest.mark.parametrize("timeout", [None, PATIENCE])
def test_a_task_of_a_function_s_own_ends_no_loop(given, wait, timeout):
    async def raises():
        await asyncio.sleep(0)
        raise given("odd")

    async def func(completion):
        task = asyncio.ensure_future(raises())
        if wait:
            await task
        await asyncio.sleep(0.01)
        return 0.5

    for side_by_side in (True, False):
        rubric, state = assay.Rubric([func, lambda: 1.0], parallelize_scoring=side_by_side), {}
        if given is not SystemExit:  # which ends the loop of whoever runs one
            scores = asyncio.run(rubric.score_rollout("p", "a", "", state))
            assert scores.reward == (1.0 if wait else 1.5)
            assert ("error" in state) is wait
        assert assay.score([{"completion": "a"}] * 3, rubric)["reward"].to_list() == [1.0 if wait else 1.5] * 3
    rows = [{"completion": "a"}] * 3
    found = assay.score(rows, assay.Rubric([func]), function_timeout=timeout)
    assert found["reward"].to_list() == ([0.0] * 3 if wait else [0.5] * 3)
    assert assay.score(rows, later(1.0))["reward"].to_list() == [0.25] * 3
