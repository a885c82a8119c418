"""Python of users that takes too long costs itself only, wherever it stands: in a row's function, a class, a check."""

from typing import ClassVar

import pytest
from cases import each
from pydantic import BaseModel, ConfigDict

import assay
from assay.classes import registry as verifiers
from assay.functions import registry as fns
from assay.scoring.reference import score_rows

ROWS = [{"completion": f"{number}", "expected": "1", "fn_name": "sleepy"} for number in range(12)]
SAID = "TimeoutError: no answer within 0.2 s"
LATE = [number == 7 for number in range(12)]


def nap(text):
    if text == "7":
        HANG[-1]()
    return 1.0


HANG = []
"""How a call hangs: by the clock of the test."""


@pytest.fixture(autouse=True)
def registries(monkeypatch, clock):
    HANG[:] = [clock.hang]
    monkeypatch.setattr(fns, "_REGISTRY", dict(fns._REGISTRY))
    monkeypatch.setattr(verifiers, "_REGISTRY", dict(verifiers._REGISTRY))


class Sleepy(assay.Check):
    type = "sleepy"

    def row(self, row):
        return nap(row["completion"])


class SleepyClass:
    name: ClassVar[str] = "sleepy_class"

    class Config(BaseModel):
        model_config = ConfigDict(extra="forbid")

    def verify(self, *, prompt, completion, target):
        return assay.VerificationResult(nap(completion), {"seen": completion})


def judged(kind):
    if kind == "function":
        fns.register("sleepy", lambda output, expected, params: nap(output))
        return {}
    if kind == "class":
        assay.register_verifier("sleepy_class")(SleepyClass)
        return {"verifiers": {"kind": "sleepy_class"}}
    return {"verifiers": {"checks": [{"type": "sleepy"}]}, "checks": [Sleepy]}


@each("kind", ["function", "class", "check"])
def test_a_call_that_takes_too_long_scores_0_and_says_so(kind):
    found = assay.score(ROWS, **judged(kind), function_timeout=0.2)
    assert found["reward"].to_list() == [0.0 if late else 1.0 for late in LATE]
    assert [error is not None and error.endswith(SAID) for error in found["error"]] == LATE


@each("kind", ["function", "class", "check"])
def test_limits_that_nobody_reaches_change_nothing(kind):
    rows = [row for row in ROWS if row["completion"] != "7"]
    given = judged(kind)
    assert assay.score(rows, **given, function_timeout=5.0).equals(assay.score(rows, **given))


def test_verifiers_that_were_loaded_before_keep_no_limits_of_a_run():
    verifier = assay.load_verifier({"checks": [{"type": "sleepy"}]}, checks=[Sleepy])
    assay.score(ROWS[:3], verifier, function_timeout=0.2)
    assert verifier.checks[0].check.limits is None
    assert score_rows(ROWS[:3], [verifier])[0]["reward"] == 1.0


@each("kind", ["class", "check", "function"])
def test_members_of_a_rubric_are_bounded_as_they_are_alone(kind):
    given = judged(kind)
    if kind == "function":
        members = [fns.get("sleepy")]
    else:
        members = [assay.load_verifier(given["verifiers"], checks=given.get("checks", ()))]
    found = assay.score(ROWS, assay.Rubric(members), function_timeout=0.2)
    assert found["reward"].to_list() == [0.0 if late else 1.0 for late in LATE]
    assert [error is not None and error.endswith(SAID) for error in found["error"]] == LATE
