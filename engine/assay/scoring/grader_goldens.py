"""Verdicts of the real functions on goldens, and what the graders give here."""

import gzip
import json
import math
import warnings
from functools import cache
from importlib.resources import files
from typing import Any

from assay.checks.graders.table import Grader
from assay.checks.libraries import PUNKT, versions
from assay.frozen import frozen
from assay.scoring.in_memory import score
from assay.spec.verifier import load_verifier

_ANTLR = "antlr4-python3-runtime"
_ROUNDED = {"promptfoo.bleu": 1e-12}
"""Graders whose last bits may differ, relative."""


@frozen
class Checked:
    """What came of the goldens of a grader.

    Attributes:
        name: The grader.
        differ: How many verdicts differ.
        cases: How many there are.
        problem: Why it did not run; ``""`` if it did.
    """

    name: str
    differ: int
    cases: int
    problem: str = ""


@cache
def _goldens() -> Any:
    data = files("assay.checks.graders").joinpath("goldens.json.gz").read_bytes()
    return json.loads(gzip.decompress(data))


def check_goldens(grader: Grader) -> Checked:
    """Run the goldens of a grader in this environment."""
    entries = [entry for entry in _goldens()["graders"] if entry["name"] == _of_goldens(grader)]
    differ = cases = 0
    for entry in entries:
        found, problem = _verdicts(grader, entry)
        if problem:
            return Checked(grader.name, 0, 0, problem)
        expected = _expected(grader, entry)
        cases += len(expected)
        differ += sum(not _same(grader.name, *pair) for pair in zip(found, expected, strict=True))
    return Checked(grader.name, differ, cases)


def _of_goldens(grader: Grader) -> str:
    """Return whose verdicts count: for one that is inverted and has none, those of the other."""
    known = {entry["name"] for entry in _goldens()["graders"]}
    return grader.name if grader.name in known or not grader.inverted else grader.name.replace(".not-", ".")


def _expected(grader: Grader, entry: dict[str, Any]) -> list[float | None]:
    expected = [*entry["expected"]]
    if "antlr" in entry:
        for at, verdict in entry["antlr"].get(versions([_ANTLR])[_ANTLR], {}).items():
            expected[int(at)] = verdict
    if grader.name != entry["name"]:
        expected = [1.0 - verdict for verdict in expected]
    return expected


def _verdicts(grader: Grader, entry: dict[str, Any]) -> tuple[list[float | None], str]:
    """Return the scores of a golden's rows, and why there are none."""
    check = {"id": "g", "type": "grader", "name": grader.name, "options": entry["options"]}
    check |= {} if entry["gold"] is None else {"value": {"column": entry["gold"]}}
    spec = {"id": "v", "combine": "sum", "range": None, "checks": [check]}
    if grader.name == "ifeval" and versions([PUNKT])[PUNKT] is None:
        return [], "nltk's data for sentences is not installed: python -m nltk.downloader punkt_tab"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verifier = load_verifier(spec)
        if broken := next((node.broken for node in verifier.nodes if node.broken), ""):
            return [], broken
        return score(_goldens()["pools"][entry["pool"]], verifier)["check/v/g"].to_list(), ""


def _same(name: str, found: float | None, expected: float | None) -> bool:
    if found is None or expected is None or name not in _ROUNDED:
        return found == expected
    return math.isclose(found, expected, rel_tol=_ROUNDED[name], abs_tol=0.0)
