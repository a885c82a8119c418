"""What several test modules share: data that is not part of the project, and verifiers over it."""

import functools
import inspect
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HELPERS = Path(__file__).parent
SPECS = sorted(
    path
    for path in (ROOT / "specs").glob("*/*")
    if path.suffix in {".json", ".yaml", ".toml"} and (path.parent / "rollouts.jsonl").exists()
)
"""The examples with rollouts of their own."""
ON_ROW = ROOT / "specs" / "desk-agent"
QUIZ = ROOT / "specs" / "quiz" / "quiz.yaml"
QUIZ_ROLLOUTS = ROOT / "specs" / "answer-format" / "rollouts.jsonl"
"""The quiz brings answers for rollouts of another example."""
DATA = ROOT.parent / "shared" / "data"
ALPACA = DATA / "alpaca_rollouts.parquet"

LONG = "ASSAY_LONG" in os.environ
"""Whether the tests run at their full sizes: ``make test-all``."""


def sized(full, short):
    """How many cases a test draws: enough to hold what was found in the full number, which takes too long for every run."""
    return full if LONG else short


def each(names, cases, **_):
    """Run a test on cases that are too cheap to be items of their own; what fails has a note that names its case."""
    names = [names] if isinstance(names, str) and "," not in names else names
    names = names.replace(" ", "").split(",") if isinstance(names, str) else names

    cases = [*cases]

    def decorate(test):
        signature = inspect.signature(test)
        fixtures = [parameter for name, parameter in signature.parameters.items() if name not in names]

        @functools.wraps(test)
        def run(**given):
            for case in cases:
                values = (case,) if len(names) == 1 else case
                try:
                    test(**given, **dict(zip(names, values, strict=True)))
                except BaseException as error:
                    error.add_note(f"case: {dict(zip(names, values, strict=True))!r}"[:2000])
                    raise

        run.__signature__ = signature.replace(parameters=fixtures)
        return run

    return decorate


needs_alpaca = pytest.mark.skipif(not ALPACA.exists(), reason=f"the real rollouts are not there: {ALPACA}")


def some(values):
    """Parameters of a test that is dear for each: every third one, the rest marked ``long``."""
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.long) if at % 3 else value
        for at, value in enumerate(values)
    ]


def crossed(first, second):
    """Two parameters of a test: each value of either at least once, the other pairs marked ``long``."""
    first, second = [*first], [*second]
    pairs = {(at % len(first), at % len(second)) for at in range(max(len(first), len(second)))}
    return [
        pytest.param(
            *(one if isinstance(one, tuple) else (one,)), other, marks=() if (row, at) in pairs else pytest.mark.long
        )
        for row, one in enumerate(first)
        for at, other in enumerate(second)
    ]
