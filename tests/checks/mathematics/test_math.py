"""Mathematical equality: the definition, golds, what it says to a model, and the verdicts of math-verify's own cases."""

import json
import re
import subprocess
import sys

import polars as pl
import pytest
from cases import DATA
from typer.testing import CliRunner

import assay
from assay.checks.mathematics.equality import MAX_CHARACTERS, Math
from assay.cli.main import app
from assay.scoring.reference import score_rows
from assay.testing import assert_plan_conforms

pytestmark = pytest.mark.xdist_group("math")  # one process of the suite starts the processes that compare

CASES = DATA / "checks" / "math_verify_cases.jsonl"
GSM8K = DATA / "gsm8k_rollouts.parquet"
MATH = {"type": "math", "value": {"column": "gold"}}
USUAL = ["afterThink", {"firstOf": [["boxed"], [{"after": "answer is"}], ["number"]]}]


def check(value, **params):
    return Math(Math.Params.model_validate({"value": value, **params}))


def scored(rows, **fields):
    """The rewards, feedback and errors of rows, which the row loop gives, too."""
    verifier = assay.load_verifier({"checks": [{"type": "math", **fields}]}, strict=True)
    assert_plan_conforms([verifier], rows)
    frame = assay.score(rows, verifier)
    return frame.select("reward", "feedback", "error").rows()


EQUALITIES = [
    (r"\frac{1}{2}", "0.5", {}, 1.0),
    ("1/2", r"\dfrac12", {}, 1.0),
    ("1/3", "0.5", {}, 0.0),
    ("0.333333", "1/3", {}, 1.0),
    ("0.33", "1/3", {}, 0.0),
    ("0.33", "1/3", {"precision": 2}, 1.0),
    (r"2\sqrt{2}", r"\sqrt{8}", {}, 1.0),
    ("(x+1)^2", "x^2+2x+1", {}, 1.0),
    ("50\\%", "0.5", {}, 1.0),
    ("y^2", "x^2", {}, 0.0),
    ("y^2", "x^2", {"strict": False}, 1.0),
    (r"\{1,2\}", r"\{2,1\}", {}, 1.0),
    ("10, 4", "4, 10", {}, 1.0),
    ("(1,2)", "(2,1)", {}, 0.0),
    ("1 1/2", "1.5", {}, 0.0),
    ("x^2", "\n x^2 ", {}, 1.0),
    ("", "", {}, 1.0),
    ("", "1", {}, 0.0),
    (" \x1c ", "1", {}, 0.0),
    ("7", 7, {}, 1.0),
    ("0.50", 0.5, {}, 1.0),
]


def test_the_definition():
    for answer, gold, params, score in EQUALITIES:
        math = check(gold, **params)
        assert math.judge_all([answer], [gold])[0][0] == score, (answer, gold)
        assert math.judge(answer, gold)[0] == score, (answer, gold)


def test_a_long_answer_is_not_read_unless_it_is_the_gold():
    longest = "+".join(["1"] * (MAX_CHARACTERS // 2)) + "0"
    assert len(longest) == MAX_CHARACTERS
    math = check("1")
    assert "more than" not in math.reason({"completion": f" {longest} "})
    assert math.reason({"completion": f"{longest}0"}) == 'the answer has more than 4,096 characters, expected "1" alone'
    assert check(f"{longest}0").row({"completion": f"{longest}0"}) == 1.0


def test_feedback_tells_what_to_change():
    for answer, gold, reason in [
        ("1/3", "0.5", '"1/3" is not mathematically equal to "0.5"'),
        (r"\frac{1", "0.5", r'"\frac{1" cannot be read as mathematics, expected "0.5"'),
        ("5", "}{", '"5" is not "}{", which cannot be read as mathematics'),
        ("", "0.5", 'the answer is empty, expected "0.5"'),
    ]:
        assert scored([{"completion": answer}], value=gold) == [(0.0, f"math: {reason}", None)]


def test_an_exception_of_math_verify_is_an_error_not_a_0():
    ((reward, feedback, error),) = scored([{"completion": "The solution is $x != 5$"}], value=r"$x \neq 5$")
    assert (reward, feedback) == (0.0, error)
    assert error.startswith("math: RuntimeError: math-verify raised KeyError: ")


def test_golds_of_rows_and_several_golds():
    rows = [
        {"completion": r"so \boxed{\tfrac{2}{4}}", "answer": "0.5", "other": ["3", r"\frac12"]},
        {"completion": "<think>7</think> The answer is 1{,}000", "answer": "1000", "other": ["7"]},
        {"completion": "It is 12.", "answer": "1", "other": ["2", "24/2"]},
        {"completion": "none", "answer": "1", "other": ["2"]},
        {"completion": "12", "answer": None, "other": []},
    ]
    one = scored(rows, value={"column": "answer"}, on=USUAL)
    assert [row[0] for row in one] == [1.0, 1.0, 0.0, 0.0, None]
    assert one[2][1] == 'math: "12" is not mathematically equal to "1"'
    assert one[3][1] == "math: found nothing: firstOf"
    assert one[4][2] == "gold is missing: answer"
    several = scored(rows, value={"column": "other"}, on=USUAL)
    assert [row[0] for row in several] == [1.0, 0.0, 1.0, 0.0, None]
    literals = scored(rows, value=["1/2", "1000"], on=USUAL)
    assert [row[0] for row in literals] == [1.0, 1.0, 0.0, 0.0, 0.0]
    stepped = scored(rows, value={"template": "{answer} apples"}, on=USUAL, goldOn=["number"])
    assert [row[0] for row in stepped] == [1.0, 1.0, 0.0, 0.0, None]


def test_it_is_a_check_like_others():
    rows = [{"completion": text} for text in ("0.5", "1/3", r"\frac{1}{2}", None)]
    assert [row[0] for row in scored(rows, value="1/2", negate=True)] == [0.0, 1.0, 0.0, None]
    group = {"type": "any_of", "checks": [{"type": "math", "value": "1/2"}, {"type": "contains", "value": "3"}]}
    assert_plan_conforms([assay.load_verifier({"checks": [group]})], rows)
    assert assay.score(rows, {"checks": [group]})["reward"].to_list() == [1.0, 1.0, 1.0, None]


def test_params_that_cannot_be_used():
    for params, problem in [
        ({}, "params.value is missing"),
        ({"value": "1", "timeout": 0}, "params.timeout"),
        ({"value": "1", "timeout": float("inf")}, "params.timeout"),
        ({"value": "1", "precision": -1}, "params.precision"),
        ({"value": True}, "params.value is a boolean (True), not a string"),
    ]:
        (warning,) = assay.load_verifier({"checks": [{"type": "math", **params}]}).warnings
        assert problem in warning


MISSING = "math-verify, which compares mathematics, is not installed: pip install 'assay-rollouts[math]'"


def test_without_math_verify_the_check_is_broken_and_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "math_verify", None)
    for value in ("5", ["5", "6"], {"column": "gold"}):
        spec = {"checks": [{"type": "math", "value": value}]}
        (warning,) = assay.load_verifier(spec).warnings
        assert warning == f"verifier/math: broken: ModuleNotFoundError: {MISSING}; it scores 0.0 on every row"
        with pytest.raises(assay.SpecError, match="is not installed: pip install"):
            assay.load_verifier(spec, strict=True)


def test_without_math_verify_a_command_fails(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "math_verify", None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rollouts.jsonl").write_text('{"completion": "5", "gold": "5"}\n')
    (tmp_path / "v.json").write_text('{"checks": [{"type": "math", "value": {"column": "gold"}}]}')
    done = CliRunner().invoke(app, ["score", "rollouts.jsonl", "-s", "v.json"])
    assert done.exit_code == 3
    assert MISSING in done.stderr.replace("\n", " ")


def test_a_run_without_need_imports_and_starts_nothing():
    code = """if True:
        import sys, warnings
        import assay
        from assay.checks.mathematics import client
        client.POOL.answers = None  # to start it would raise
        rows = [{"completion": text, "gold": gold} for text, gold in (("5", " 5 "), ("", "5"), ("5" * 5000, "5"))]
        scored = assay.score(rows * 300, {"checks": [{"type": "math", "value": {"column": "gold"}}]})
        print(scored["reward"].to_list()[:3], {"sympy", "math_verify", "antlr4"} & set(sys.modules))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[1.0, 0.0, 0.0] set()\n"


DOLLARS = {"regex": r"\$+\s*([^$]+?)\s*\$+"}
POINT = [{"replace": {"old": ",", "new": "."}}]
BY_STEPS = {
    2: ([{"remove": [" "]}], ["strip"]),  # `1 000`: as LaTeX, which is tried first, a product
    5: (POINT, POINT),  # `1000,99`
    6: (POINT, POINT),
    27: ([DOLLARS], [DOLLARS]),  # sentences with mathematics in them: math-verify takes it out before it reads it
    28: ([DOLLARS], [DOLLARS]),
    32: ([{"regex": r"\\\(([^\n]+?)\\\)"}], [DOLLARS]),  # they want `\(…\)` on one line
    34: ([DOLLARS], [DOLLARS]),
    95: ([DOLLARS], [DOLLARS]),
    123: ([DOLLARS], [DOLLARS]),
    154: (["number"], ["boxed"]),  # whole solutions, with more than 4,096 characters
    172: ([{"after": "answer is"}, DOLLARS], [DOLLARS]),
    183: ([{"regex": r"(?s)\\\[([^\[]+?)\\\]\s*\Z"}], ["boxed"]),
    241: (["boxed"], [DOLLARS]),
}
"""Cases, by line, with another verdict on the whole texts; with these steps for output and gold it is theirs."""
NEVER = {
    186: "`allow_set_relation_comp`: an inequality for an interval",
    218: "their gold is a box that does not close",
    264: r"they hold 1 - 1/\mathrm{e} and 1 + 1/\mathrm{e} to be equal",
}
"""Cases that no spec gives their verdict."""


@pytest.mark.long
@pytest.mark.skipif(not CASES.exists(), reason=f"the verdicts are not there: {CASES}")
def test_the_cases_of_math_verify():
    cases = [json.loads(line) for line in CASES.read_text("utf-8").splitlines()]
    assert len(cases) == 269
    rewards = {}
    for strict, precision in {(case["strict"], case["precision"]) for case in cases}:
        params = {"strict": strict, "precision": precision}
        places = [at for at, case in enumerate(cases) if params.items() <= case.items()]
        rows = [{"completion": cases[at]["pred"], "gold": cases[at]["gold"]} for at in places]
        rewards |= dict(zip(places, assay.score(rows, {"checks": [MATH | params]})["reward"], strict=True))
    differ = {at for at, case in enumerate(cases) if (rewards[at] == 1.0) != case["verdict"]}
    assert differ == {*BY_STEPS, *NEVER}
    for at, (on, gold_on) in BY_STEPS.items():
        row = {"completion": cases[at]["pred"], "gold": cases[at]["gold"]}
        (reward,) = assay.score([row], {"checks": [MATH | {"on": on, "goldOn": gold_on}]})["reward"]
        assert (reward == 1.0) == cases[at]["verdict"], at


@pytest.mark.long
@pytest.mark.skipif(not CASES.exists(), reason=f"the verdicts are not there: {CASES}")
def test_math_verifys_own_search_has_its_own_verdicts():
    cases = [json.loads(line) for line in CASES.read_text("utf-8").splitlines()]
    kinds = {("latex",): "latex", ("expr",): "expr", ("latex", "expr"): "any"}

    def params_of(case):
        how = kinds[tuple(sorted(case["match_types"], reverse=True))]
        relations = case["allow_set_relation_comp"]
        return {name: case[name] for name in ("strict", "precision")} | {"parse": how, "setRelations": relations}

    groups = {}
    for case in cases:
        groups.setdefault(json.dumps(params_of(case)), []).append(case)
    for params, group in groups.items():
        rows = [{"completion": case["pred"], "gold": case["gold"]} for case in group]
        rewards = assay.score(rows, {"checks": [MATH | json.loads(params)]})["reward"]
        assert [reward == 1.0 for reward in rewards] == [case["verdict"] for case in group]


@pytest.mark.skipif(not GSM8K.exists(), reason=f"the real rollouts are not there: {GSM8K}")
def test_numbers_that_are_equal_are_mathematically_equal():
    """On whole numbers, with commas and units, of real rollouts."""
    frame = pl.read_parquet(GSM8K).filter(pl.col("task_id").hash(7) % 16 == 0)
    on = [{"after": "A:"}]
    gold = {"column": "answer"}
    math, number = (
        assay.score(frame, {"checks": [{"type": type_, "value": gold, "on": on}]})["reward"].to_list()
        for type_ in ("math", "number")
    )
    assert len(math) > 200
    differ = [
        (text.rpartition("A:")[2].strip(), answer, one, other)
        for text, answer, one, other in zip(frame["completion"], frame["answer"], math, number, strict=True)
        if one != other
    ]
    assert not [entry for entry in differ if re.fullmatch(r"-?[0-9,]+", entry[0])]


def test_rows_and_columns_are_equal_with_many_rows():
    golds = ["1/2", r"\sqrt{2}", "x+1", "(1,2)"]
    texts = ["0.5", r"2^{1/2}", "1+x", "[1,2]", "", "\ud800".encode("utf-8", "replace").decode(), "a b"]
    rows = [{"completion": text, "gold": gold} for gold in golds for text in texts] * 20
    verifier = assay.load_verifier({"checks": [{"type": "math", "value": {"column": "gold"}}]})
    assert (
        score_rows(rows[:28], [verifier])
        == assay.score(rows, verifier)
        .head(28)
        .select("reward", "passed", "feedback", "error", "score/verifier", "check/verifier/math")
        .to_dicts()
    )
