"""Errors: a fact, a hint, an exit code; they survive the way home from another process."""

import pickle
import re

import polars as pl
import pytest
from cases import each

import assay
from assay import AssayWarning, UsageError, errors

ERRORS = [thing for thing in vars(errors).values() if isinstance(thing, type) and issubclass(thing, errors.AssayError)]


def test_the_tree_in_the_docstring_gives_the_real_exit_codes():
    drawn = dict(re.findall(r"(\w+) +exit (\d)", errors.__doc__))
    assert drawn == {error.__name__: str(error.exit_code) for error in ERRORS}


@each(
    ("error", "parent", "exit_code"),
    [
        (errors.AssayError, Exception, 1),
        (errors.SpecError, errors.AssayError, 2),
        (errors.InputError, errors.AssayError, 2),
        (errors.ColumnsError, errors.InputError, 2),
        (errors.UsageError, errors.AssayError, 2),
        (errors.OutputError, errors.AssayError, 1),
        (errors.TooManyErrors, errors.AssayError, 3),
        (errors.AssayWarning, UserWarning, None),
    ],
)
def test_every_error_has_its_place_and_its_exit_code(error, parent, exit_code):
    assert error.__bases__ == (parent,)
    assert getattr(error, "exit_code", None) == exit_code


@each("name", ["AssayWarning", *(error.__name__ for error in ERRORS)])
def test_every_error_is_public(name):
    assert getattr(assay, name) is getattr(errors, name)


@each("error", ERRORS)
def test_an_error_reads_as_a_fact_a_blank_line_and_a_hint(error):
    assert str(error("It is so.", "Do this.")) == "It is so.\n\nDo this."
    assert str(error("It is so.")) == "It is so."


@each("error", ERRORS)
def test_an_error_survives_pickling_whole(error):
    back = pickle.loads(pickle.dumps(error("It is so.", "Do this.")))  # noqa: S301
    assert (type(back), back.fact, back.hint) == (error, "It is so.", "Do this.")


def test_an_error_that_the_engine_makes_again_says_what_it_said():
    def refuse(_):
        raise assay.UsageError("A fact: it is so.", "A hint.")

    with pytest.raises(assay.UsageError) as refused:
        pl.LazyFrame({"a": [1]}).select(pl.col("a").map_batches(refuse, return_dtype=pl.Int64)).collect()
    assert (refused.value.fact, refused.value.hint) == ("A fact: it is so.", "A hint.")


def test_the_problems_of_a_spec_survive_pickling():
    wrong = errors.SpecError("Two problems.", problems=["$.a: one", "$.b: two"])
    assert pickle.loads(pickle.dumps(wrong)).problems == ("$.a: one", "$.b: two")  # noqa: S301


CHOICES = ("value", "caseSensitive", "weight", "passThreshold", "contains", "must_contain")


@each(
    ("word", "said"),
    [
        ("valu", "Did you mean `value`?"),
        ("weigth", "Did you mean `weight`?"),
        ("WEIGHT", "Did you mean `weight`?"),
        ("casesensitive", "Did you mean `caseSensitive`?"),
        ("case_sensitive", "Did you mean `caseSensitive`?"),
        ("threshold", "Did you mean `passThreshold`?"),
        ("contain", "Did you mean `contains`?"),
        ("must_contains", "Did you mean `must_contain`?"),
        ("zzz", ""),
        ("", ""),
    ],
)
def test_the_likely_word_is_guessed_and_none_where_nothing_is_close(word, said):
    assert errors.did_you_mean(word, CHOICES) == said


def test_nothing_is_guessed_where_there_is_no_choice():
    assert errors.did_you_mean("value", ()) == ""


@each(("number", "text"), [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (1_000, "1,000 rows"), (1_001, "1,001 rows")])
def test_a_number_agrees_with_its_noun(number, text):
    assert errors.counted(number, "row") == text


@each(
    ("message", "shown"),
    [
        ("Rename it with --map completion=response.", 'Rename it with mapping={"completion": "response"}.'),
        ("--map 'a=$.x[0]', or none", 'mapping={"a": "$.x[0]"}, or none'),
        ("--function-timeout -1: expected seconds.", "function_timeout=-1: expected seconds."),
        ("--where answer = 18: is no condition.", 'where="answer = 18": is no condition.'),
        ("--reuse writes one file.", "`reuse` writes one file."),
        ("--preset NAME, or --preset none to use their own", 'preset=NAME, or preset="none" to use their own'),
        ("see --max-bad-rows).\nNothing; --max-bad-rows 3 or 5%.", "see `max_bad_rows`).\nNothing; max_bad_rows=3 or 5%."),
        ("Give it with --spec.", "Give it with `verifiers`."),
        ("Name one: --rubric module:attribute", "Name one: verifiers=attribute"),
        ("--import MODULE, --checks MODULE:CLASS", "import MODULE, checks=[CLASS]"),
        ("replace it with --overwrite.", "replace it with `overwrite=True`."),
        ("Write it: assay score X --out Y; or with --out Y.parquet", 'Write it: assay score X --out Y; or with out="Y.parquet"'),
        ('unknown value "--map". `--spec` is no option', 'unknown value "--map". `--spec` is no option'),
    ],
)  # fmt: skip
def test_errors_and_warnings_have_the_flags_of_the_command_and_the_keywords_of_python(message, shown):
    assert str(UsageError(message)) == str(AssayWarning(message)) == shown
    assert UsageError(message).text == AssayWarning(message).text == message
