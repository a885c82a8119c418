"""Graders give the verdicts of the real functions, in columns, row by row, and one row at a time."""

import json
import math

import pytest
from cases import DATA, LONG
from grader_inputs import goldens

import assay
from assay.checks.graders.table import GRADERS
from assay.checks.libraries import PUNKT, versions
from assay.scoring.reference import score_rows
from assay.spec.verifier import load_verifier

GOLDENS = DATA / "graders_goldens.json"
pytestmark = pytest.mark.xdist_group("math")  # one process of the suite starts the processes that compare

TOOLS = (
    *("inspect", "lm_eval", "trl", "open_r1", "verl", "openai_evals", "openai", "promptfoo", "lighteval", "helm"),
    *("simple_evals", "squad", "rouge_score", "sacrebleu", "bfcl", "ifeval"),
)


def entries(tool):
    return [entry for entry in goldens()["graders"] if entry["name"].partition(".")[0] == tool]


def verifier_of(entry):
    check = {"id": "g", "type": "grader", "name": entry["name"], "options": entry["options"]}
    check |= {} if entry["gold"] is None else {"value": {"column": entry["gold"]}}
    return load_verifier({"id": "v", "combine": "sum", "range": None, "checks": [check]})


def expected(entry):
    verdicts = [*entry["expected"]]
    here = versions(["antlr4-python3-runtime"])["antlr4-python3-runtime"]
    for at, verdict in entry.get("antlr", {}).get(here, {}).items():
        verdicts[int(at)] = verdict
    return verdicts


def same(name, found, verdict):
    if name == "promptfoo.bleu":
        return math.isclose(found, verdict, rel_tol=1e-12, abs_tol=0.0)
    return found == verdict


def missing(entry, verifier):
    """Why the goldens of a grader cannot run here."""
    if entry["name"] == "ifeval" and versions([PUNKT])[PUNKT] is None:
        return "nltk's data for sentences is not installed"
    return next((spec.broken for spec in verifier.nodes if spec.broken), "")


def test_every_grader_has_goldens_and_every_golden_a_grader():
    named = {entry["name"] for entry in goldens()["graders"]}
    assert named == {name for name in GRADERS if name in named or not GRADERS[name].inverted}
    assert {name.partition(".")[0] for name in GRADERS} == {*TOOLS}


@pytest.mark.skipif(not GOLDENS.exists(), reason=f"verdicts of the real functions are not there: {GOLDENS}")
def test_the_packaged_goldens_are_those_of_the_real_functions():
    assert goldens() == json.loads(GOLDENS.read_text("utf-8"))


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.filterwarnings("ignore")
def test_the_verdicts_are_those_of_the_real_function(tool):
    problems = []
    for entry in entries(tool):
        verifier, kind = verifier_of(entry), GRADERS[entry["name"]].kind
        some = slice(
            None, None, 4 if kind == "P" and not LONG else 1
        )  # the package itself answers, in milliseconds a row
        rows = goldens()["pools"][entry["pool"]][some]
        if problem := missing(entry, verifier):
            problems.append(f"{entry['name']}: {problem}")
            continue
        found = assay.score(rows, verifier)
        verdicts = found["check/v/g"].to_list()
        differ = [
            (entry["name"], entry["options"], row, verdict, wanted)
            for row, verdict, wanted in zip(rows, verdicts, expected(entry)[some], strict=True)
            if not same(entry["name"], verdict, wanted)
        ]
        assert differ == []
        names = ("check/v/g", "feedback", "error")
        step = 1 if LONG else 72 if kind == "M" else 24
        rows = rows[::step]
        by_rows = [tuple(result[name] for name in names) for result in score_rows(rows, [verifier])]
        assert by_rows == found.gather_every(step).select(names).rows(), entry["name"]
        assert [assay.score([row], verifier).select(names).row(0) for row in rows[:3]] == by_rows[:3], entry["name"]
    if len(problems) == len(entries(tool)):
        pytest.skip("; ".join(problems))
