"""The conformance helper finds checks whose faces differ; a user's own check is one class."""

from fractions import Fraction

import polars as pl
import pytest
from cases import each
from pydantic import Field

import assay
from assay import Check, Example, Params
from assay.checks.pairs import PairCheck
from assay.classes import registry as classes
from assay.compiling.plan import Plan
from assay.expressions.shared_columns import text
from assay.functions import registry
from assay.testing import assert_check_conforms, assert_fn_conforms, assert_verifier_conforms, hostile_texts


class WordsParams(Params):
    most: int = Field(ge=0, description="Words at most.")


class MaxWords(Check):
    """The output has at most so many words."""

    type = "max_words"
    Params = WordsParams
    examples = (Example("one two", 1.0, {"most": 2}), Example("one two three", 0.0, {"most": 2}))

    def row(self, row):
        return float(len(row["completion"].split(" ")) <= self.params.most)

    def expr(self):
        return text().str.split(" ").list.len() <= self.params.most

    def complaint(self):
        return f"has more than {self.params.most} words"


class RowOnly(Check):
    """Half a point for each of two letters; raises on a third."""

    type = "row_only"
    graded = True
    examples = (Example("a", 0.5), Example("ab", 1.0), Example("z", 0.0))

    def row(self, row):
        if "z" in row["completion"]:
            raise RuntimeError("no z, please")
        return 0.5 * ("a" in row["completion"]) + 0.5 * ("b" in row["completion"])

    def reason(self, row):
        return f"half of {row['completion']!r}"


class Trims(MaxWords):
    """Strips as the engine does, not as Python does."""

    type = "trims"
    examples = ()

    def row(self, row):
        return float(row["completion"].strip() == "")

    def expr(self):
        return text().str.strip_chars() == ""


class Lazy(MaxWords):
    """Its example is wrong."""

    type = "lazy"
    examples = (Example("one", 0.0, {"most": 2}),)


@each("check", [MaxWords, RowOnly])
def test_a_check_of_ones_own_conforms(check):
    assert assert_check_conforms(check, cases=500) > 500


def test_faces_that_differ_are_found_with_their_row():
    with pytest.raises(AssertionError, match=r"(?s)'check/verifier/trims': \(0.0, 1.0\).*of \{'completion': "):
        assert_check_conforms(Trims, params=[{"most": 1}], cases=3000)


def test_an_example_that_lies_is_found():
    with pytest.raises(AssertionError, match="lazy: Example"):
        assert_check_conforms(Lazy)


def test_a_check_of_ones_own_is_one_class_passed_to_load_verifier():
    spec = {"id": "mine", "checks": [{"type": "max_words", "most": 1}, {"type": "row_only", "weight": 3}]}
    out = assay.score(
        [{"completion": "a b"}, {"completion": "z"}, {"completion": None}], spec, checks=[MaxWords, RowOnly]
    )
    assert out["reward"].to_list() == [0.75, 0.25, None]
    assert out["feedback"].to_list() == [
        "max_words: has more than 1 words",
        "row_only: RuntimeError: no z, please",
        None,
    ]
    assert out["error"].to_list() == [None, "row_only: RuntimeError: no z, please", "the completion is null"]


class Wild(Check):
    """Scores that no check may give."""

    type = "wild"
    graded = True
    examples = ()

    def row(self, row):
        return {"nan": float("nan"), "two": 2, "none": None, "text": "1", "bool": True}[row["completion"]]

    def expr(self):
        value = (
            pl.when(text() == "nan").then(float("nan")).when(text() == "two").then(2.0).when(text() == "bool").then(1.0)
        )
        return value.otherwise(None)


def test_impossible_scores_are_errors_never_numbers():
    rows = [{"completion": one} for one in ("nan", "two", "none", "text", "bool")]
    verifier = assay.load_verifier({"checks": [{"type": "wild"}]}, checks=[Wild])
    assay.testing.assert_plan_conforms([verifier], rows)
    out = assay.score(rows, verifier)
    assert out["reward"].to_list() == [0.0, 0.0, 0.0, 0.0, 1.0]
    assert out["error"].to_list() == ["wild: ValueError: the score is not a number in [0, 1]"] * 4 + [None]


@each(("expression", "said"), [(text().str.len_chars(), "is UInt32, not Boolean"), (pl.col("nowhere"), "cannot run")])
def test_an_expression_that_cannot_run_is_refused_before_a_row_is_read(expression, said):
    class Odd(MaxWords):
        """An odd one."""

        type = "odd"

        def expr(self):
            return expression

    with pytest.raises(assay.SpecError, match=said):
        assay.score([{"completion": "a"}], {"checks": [{"type": "odd", "most": 1}]}, checks=[Odd])


def _row_only(letter):
    class Has(Check):
        """The output has a letter."""

        type = f"has_{letter}"

        def row(self, row):
            return float(letter in row["completion"])

    return Has


def test_classes_made_by_one_factory_keep_their_own_verdicts():
    made = [_row_only("a"), _row_only("b")]
    spec = assay.load_verifier({"checks": [{"type": one.type} for one in made]}, checks=made)
    found = assay.score([{"completion": "a"}, {"completion": "b"}], spec)
    assert found["check/verifier/has_a"].to_list() == [1.0, 0.0]
    assert found["check/verifier/has_b"].to_list() == [0.0, 1.0]


class Raises(Check):
    """Scores a half; each of its faces has a letter it cannot stand."""

    type = "raises"
    graded = True
    examples = (Example("x", 0.5),)

    def _stand(self, row, letter):
        if letter in row["completion"]:
            raise RuntimeError(f"no {letter}, please")

    def row(self, row):
        self._stand(row, "r")
        return 0.5

    def reason(self, row):
        self._stand(row, "s")
        return 5 if "5" in row["completion"] else "half"

    def error(self, row):
        self._stand(row, "e")
        return "odd" if "o" in row["completion"] else None


def test_whatever_face_raises_the_row_scores_zero_and_says_so():
    rows = [{"completion": one} for one in "xrseo5"]
    verifier = assay.load_verifier(
        {"checks": [{"type": "raises"}, {"type": "max_length", "value": 9}]}, checks=[Raises]
    )
    assert assert_check_conforms(Raises, rows=rows, cases=200) > 400
    out = assay.score(rows, verifier)
    assert out["check/verifier/raises"].to_list() == [0.5, 0.0, 0.0, 0.0, 0.5, 0.0]
    assert out["error"].to_list()[:5] == [
        None,
        *(f"raises: RuntimeError: no {letter}, please" for letter in "rse"),
        "raises: odd",
    ]
    assert out["error"][5].startswith("raises: AttributeError")
    assert out["feedback"].to_list()[:3] == [
        "raises: half",
        *(f"raises: RuntimeError: no {one}, please" for one in "rs"),
    ]


class Curt(MaxWords):
    """It has nothing to say."""

    type = "curt"

    def complaint(self):
        return ""


class CurtRow(RowOnly):
    """It has nothing to say, row by row."""

    type = "curt_row"

    def reason(self, row):
        return ""


@each("check", [Curt, CurtRow])
def test_a_check_without_words_leaves_no_line(check):
    assert_check_conforms(check, cases=200)


class OwnNumber(float):
    """Stands for the number types of other libraries."""


class Numbers(Check):
    """Scores of other types than float."""

    type = "numbers"
    graded = True

    def row(self, row):
        large = 10**400
        made = (Fraction(1, 3), OwnNumber(0.1), True, large, Fraction(large - 1, large), 0.5j, "1", Fraction(-1, 3))
        return made[int(row["completion"])]


def test_a_score_may_be_any_real_number():
    verifier = assay.load_verifier({"checks": [{"type": "numbers"}]}, checks=[Numbers])
    rows = [{"completion": str(one)} for one in range(8)]
    assay.testing.assert_plan_conforms([verifier], rows)
    out = assay.score(rows, verifier)
    assert out["reward"].to_list() == [1 / 3, 0.1, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    assert out["feedback"][4] == ""


def test_hostile_texts_come_by_their_seed():
    assert list(hostile_texts(50, seed=1)) == list(hostile_texts(50, seed=1))
    assert list(hostile_texts(50, seed=1)) != list(hostile_texts(50, seed=2))
    assert all(one.encode() is not None for one in hostile_texts(500))


def nothing(output, expected, params):
    return 1.0 if output == expected else 0.0


@pytest.mark.parametrize(
    ("twin", "said"),
    [
        (None, "^idle has no Polars version to compare$"),
        (
            lambda output, expected, params: output == params["gone"],
            "^the Polars version of idle never returns a value: KeyError: 'gone'$",
        ),
        (
            lambda output, expected, params: output.map_batches(lambda _: 1 / 0, return_dtype=pl.Float64),
            "^the Polars version of idle never returns a value: ZeroDivisionError: division by zero",
        ),
        (
            lambda output, expected, params: pl.lit(None, dtype=pl.Float64),
            "never returns a value: it is null on every row",
        ),
    ],
)
def test_a_function_whose_twin_proves_nothing_does_not_conform(twin, said, monkeypatch):
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
    assay.fns.register("idle", nothing, expr=twin)
    with pytest.raises(AssertionError, match=said):
        assert_fn_conforms("idle", cases=20)
    assay.fns.register(
        "idle", nothing, expr=lambda output, expected, params: pl.when(expected != "").then(output == expected)
    )
    assert assert_fn_conforms("idle", cases=20) == 21


def test_a_class_without_a_twin_proves_nothing(monkeypatch):
    monkeypatch.setattr(classes, "_REGISTRY", dict(classes._REGISTRY))
    one = type("One", (classes.FormatOnly,), {"name": "one", "verify_expr": None})
    assay.register_verifier("one")(one)
    with pytest.raises(AssertionError, match="one has no Polars version to compare: the class has no verify_expr"):
        assert_verifier_conforms("one", cases=20)


DIFFERS = {
    "one row": lambda frame: frame.height == 1,
    "two rows": lambda frame: frame.height == 2,
    "in chunks": lambda frame: frame.n_chunks() > 1,
}


@pytest.mark.parametrize("how", DIFFERS)
def test_a_plan_that_differs_for_few_rows_or_many_chunks_is_noticed(monkeypatch, how):
    scored = Plan.score

    def score(self, frame):
        result = scored(self, frame)
        return result.with_columns(reward=pl.lit(0.5)) if DIFFERS[how](frame) else result

    monkeypatch.setattr(Plan, "score", score)
    with pytest.raises(AssertionError, match=f"{how}, row 0"):
        assert_check_conforms(MaxWords, cases=20)


def test_a_pair_check_without_a_definition_cannot_be_made():
    class Compares(PairCheck):
        type = "compares"

    with pytest.raises(TypeError, match="judge"):
        Compares(Params())
