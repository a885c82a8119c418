"""`flavor: regex`: patterns mean what the package `regex` says, wherever a spec may have one, within the limits of patterns."""

import json
import subprocess
import sys

import jsonschema
import polars as pl
import pytest
import regex
from cases import sized, some
from patterns import TEXTS

import assay
from assay import load_verifier, read_provenance
from assay.calls.limits import Limits
from assay.expressions.regex.flavors import named_lists, nearest_texts
from assay.expressions.regex.search import Question, check_pattern, search_all
from assay.expressions.regex.spans import ANY, Extraction, Matches, Removal, groups_of, results
from assay.insight.explanation import explanation
from assay.scoring.reference import score_rows
from assay.spec.json_schema import json_schema
from assay.testing import assert_plan_conforms, hostile_texts

SAMPLE = [
    *TEXTS,
    *hostile_texts(sized(2_000, 100), seed=29),
    *(
        "refund",
        "a refnd now",
        "rfnd",
        "ReFuNd",
        "Сделано",
        "сдеlано",
        "👩‍👧 👍🏽",
        "((a))",
        "Ann and Bob",
        "aaab",
        "x" * 99,
    ),
]
LISTS = {"names": ["Ann", "Bob", "a", "é"]}
PATTERNS = (
    *(r"(?:refund){e<=1}", r"(?i)(?:refund){s<=2,i<=1}", r"(?b)(?:refund){1<=e<=3}", r"(?:cat|dog){2i+2d+1s<=4}"),
    *(r"\p{Script=Cyrillic}", r"\p{Lu}\P{Ll}", r"[[:alpha:]]+$", r"\X", r"(?:\X){3}", r"^\X$", r"\m\w+\M", r"\R"),
    *(r"a++b", r"(?>a+)b", r"\((?:[^()]|(?R))*\)", r"(?|(a)|(b))\1", r"(?<=a+)b", r"(?r)a.", r"(?P<x>a)(?&x)", r"\K"),
    *(r"\L<names>", r"^\L<names>$", r"(?i)\L<names>", r"\d", r"\w$", r"(?m)^a", r"é|\u0301", "", r"(a)(b)?"),
)
ANY_LIST = named_lists("regex", LISTS)


def compiled(pattern):
    return regex.compile(pattern, flags=regex.VERSION0, ignore_unused=True, **LISTS)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_matches_are_those_of_the_package(pattern):
    by = compiled(pattern)
    check_pattern(pattern, ANY_LIST)
    assert search_all(pattern, SAMPLE, lists=ANY_LIST) == [by.search(text) is not None for text in SAMPLE]
    assert groups_of(pattern, ANY_LIST) == (by.groups, dict(by.groupindex))
    assert results(Removal(pattern, lists=ANY_LIST), SAMPLE) == [by.sub("", text) for text in SAMPLE]
    assert results(Matches(pattern, lists=ANY_LIST), SAMPLE) == [str(len(by.findall(text))) for text in SAMPLE]
    for last in (False, True):
        matches = [([*by.finditer(text)] or [None])[-last] for text in SAMPLE]
        for group in {0, min(by.groups, 1)}:
            expected = [match and match[group] for match in matches]
            assert results(Extraction(pattern, group, last=last, lists=ANY_LIST), SAMPLE) == expected
        expected = [match and next(filter(None, match.groups() or [match[0]]), None) for match in matches]
        assert results(Extraction(pattern, ANY, last=last, lists=ANY_LIST), SAMPLE) == expected


def rows_of(texts):
    patterns = [r"(?:refund){e<=1}", r"\p{Script=Cyrillic}", "(", "a++", None, "", r"\d"]
    return [
        {"completion": text, "gold": patterns[at % 7], "several": [patterns[at % 7], "x"], "lists": {"n": [text[:1]]}}
        for at, text in enumerate(texts)
    ]


def regex_check(pattern, **fields):
    return {"type": "regex", "flavor": "regex", "pattern": pattern, **fields}


EVERYWHERE = {
    "literal": regex_check("(?:refund){e<=1}"),
    "negated": regex_check(r"\p{Script=Cyrillic}", negate=True),
    "list": regex_check(r"\L<names>", lists=LISTS),
    "any of": regex_check([r"(?:refund){e<=1}", r"\X{9}"]),
    "gold": regex_check({"column": "gold"}),
    "golds": regex_check({"column": "several"}),
    "lists of the row": regex_check(r"\L<n>\L<n>", lists={"column": "lists"}),
    "steps of a gold": {
        "type": "equals",
        "value": {"column": "gold"},
        "goldOn": [{"remove": [r"\p{Script=Cyrillic}", r"\L<o>"], "flavor": "regex", "lists": {"o": ["("]}}],
    },
    "step": {"type": "min_length", "value": 2, "on": [{"regex": r"(?:refund){e<=2}|\X", "flavor": "regex"}]},
    "first of": {"type": "min_length", "value": 2, "on": [{"firstOf": [[{"regex": r"\X+", "flavor": "regex"}]]}]},
    "count": {"type": "count", "of": {"pattern": r"\X", "flavor": "regex"}, "min": 3},
    "when": {
        "type": "min_length",
        "value": 3,
        "when": {"column": "completion", "matches": r"^\L<a>|\p{L}", "flavor": "regex", "lists": {"a": ["1"]}},
    },
    "when not": {
        "type": "min_length",
        "value": 3,
        "when": {"column": "gold", "matches": r"\p{P}", "flavor": "regex", "not": True},
    },
    "when a check": {"type": "min_length", "value": 3, "when": {"check": regex_check(r"\X\X")}},
}
"""A check for each place where a spec may have a pattern of the package."""
SCHEMA = jsonschema.Draft7Validator(json_schema())


@pytest.mark.parametrize("check", some(EVERYWHERE.values()))
def test_columns_give_what_rows_give_and_the_footer_the_version_of_the_package(check, tmp_path):
    assert assert_plan_conforms([load_verifier({"checks": [check]}, strict=True)], rows_of(SAMPLE[-60:])) > 60

    pl.DataFrame(rows_of(["a"])).write_parquet(tmp_path / "in.parquet")
    assay.score_file(
        tmp_path / "in.parquet", {"checks": [check, {"type": "regex", "pattern": "a"}]}, tmp_path / "out.parquet"
    )
    assert read_provenance(tmp_path / "out.parquet")["libraries"] == {"regex": regex.__version__}


def test_a_file_beside_the_program_is_not_the_package(tmp_path):
    (tmp_path / "regex.py").write_text("raise SystemExit('not the package')")
    program = "import assay; print(*assay.score([{'completion': 'ж'}], {'checks': [%r]})['reward'])"
    done = subprocess.run(
        [sys.executable, "-c", program % regex_check(r"\p{Cyrillic}")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "1.0\n"


def test_the_package_is_not_imported_here():
    program = "import sys, assay; r = assay.score([{'completion': 'a'}], {'checks': [%r]}); print('regex' in sys.modules, *r['reward'])"
    done = subprocess.run(
        [sys.executable, "-c", program % regex_check("(?:b){e<=1}")], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False 1.0\n"


# ── what cannot be used ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("check", "place", "problem"),
    [
        (regex_check("(a"), "$.checks[0]", "PatternError: missing )"),
        (regex_check(r"\p{Foo}"), "$.checks[0]", "PatternError: unknown property"),
        (regex_check(r"\L<names>"), "$.checks[0]", "PatternError: undefined named list"),
        (regex_check("a", lists={"a b": []}), "$.checks[0]", "`a b` cannot be the name of a list"),
        (regex_check("a", lists={"flags": []}), "$.checks[0]", "`flags` cannot be the name of a list"),
        (regex_check("a", lists={"a": "b"}), "$.checks[0]", "params.lists.a is a string ('b'), not a list"),
        (regex_check("a", flavor="pcre"), "$.checks[0]", "params.flavor"),
        (regex_check("a", flavor={"column": "x"}), "$.checks[0].flavor", "is the same on every row"),
        ({"type": "regex", "pattern": "a", "lists": LISTS}, "$.checks[0]", "`lists` needs `flavor: regex`"),
        ({"type": "regex", "pattern": r"\p{L}"}, "$.checks[0]", r"PatternError: bad escape \p"),
        ({"type": "count", "of": {"pattern": "(", "flavor": "regex"}, "min": 1}, "$.checks[0]", "missing )"),
        (
            {"type": "count", "of": {"pattern": "a", "flavor": "perl"}, "min": 1},
            "$.checks[0]",
            "`flavor` is re or regex",
        ),
        ({"type": "count", "of": {"text": "a", "flavor": "regex"}, "min": 1}, "$.checks[0]", "unknown field `flavor`"),
        (
            {"type": "json_valid", "on": [{"regex": "(", "flavor": "regex"}]},
            "$.checks[0].on[0].regex",
            "PatternError: missing )",
        ),
        ({"type": "json_valid", "on": [{"remove": "a", "flavor": "x"}]}, "$.checks[0].on[0].flavor", "`re` or `regex`"),
        (
            {"type": "json_valid", "on": [{"regex": "(a)", "group": 2, "flavor": "regex"}]},
            "$.checks[0].on[0].regex",
            "the pattern has 1 groups, not 2",
        ),
        (
            {"type": "json_valid", "when": {"column": "a", "matches": "(", "flavor": "regex"}},
            "$.checks[0].when.matches",
            "PatternError: missing )",
        ),
        (
            {"type": "json_valid", "when": {"column": "a", "equals": "(", "flavor": "regex"}},
            "$.checks[0].when.flavor",
            "`flavor` goes with `matches`",
        ),
        (
            {"type": "json_valid", "when": {"column": "a", "matches": "a", "lists": {"a": ["b"]}}},
            "$.checks[0].when.lists",
            "`lists` needs `flavor: regex`",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_place(check, place, problem):
    with pytest.raises(assay.SpecError) as caught:
        load_verifier({"checks": [check]}, strict=True)
    assert f"{place}: " in str(caught.value)
    assert problem in str(caught.value)


def test_the_json_schema_accepts_it_and_explain_names_the_engine():
    for name, check in EVERYWHERE.items():
        assert SCHEMA.is_valid({"checks": [check]}), name
        if name not in ("any of", "lists of the row"):
            explained = json.dumps(explanation(load_verifier({"checks": [check]})))
            assert "the package regex in a separate process" in explained, name


@pytest.mark.parametrize(
    "check",
    [
        regex_check("a", flavor="pcre"),
        {"type": "count", "of": {"pattern": "a", "flavor": "pcre"}, "min": 1},
        {"type": "json_valid", "on": [{"regex": "a", "flavor": "pcre"}]},
        {"type": "json_valid", "when": {"column": "a", "matches": "a", "flavor": "pcre"}},
        {"type": "json_valid", "when": {"column": "a", "equals": "a", "flavor": "regex"}},
    ],
)
def test_the_json_schema_refuses_other_flavors(check):
    assert not SCHEMA.is_valid({"checks": [check]})


SLOW = "(?:a|a)*$"
LATE = {"completion": "a" * 60 + "bbbb"}


def test_a_late_match_is_an_error_of_its_row():
    spec = load_verifier({"checks": [{"id": "slow", **regex_check(SLOW)}]})
    (row,) = assay.score([LATE], spec, regex_timeout=0.05).to_dicts()
    assert row["reward"] == 0.0
    assert row["error"].startswith("slow: TimeoutError: no answer within 0.05 s")


def test_no_limit_is_no_limit():
    assert search_all("(?:ab){e<=1}$", ["xa" * 50], Limits(regex_timeout=None), lists="{}") == [True]


def test_a_pattern_that_takes_too_long_to_compile_is_an_error():
    with pytest.raises((TimeoutError, MemoryError)):
        check_pattern("(?:(?:(?:(?:a{9}b){99}){99}){99}){99}" * 9, "{}")


# ── the nearest text ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("pattern", "text", "nearest"),
    [
        ("(?:refund){e<=1}", "get a refnud now", "refnud"),
        ("(?i)(?:refund){e<2}", "get a REFNUD now", "REFNUD"),
        ("(?:refund){s<=1}", "get a refxyd now", "refxyd"),
        ("(?:refund){1<=e<=1}", "get a rfnnd now", "rfnnd"),
        ("(?:refund){e<=1}", "nothing of it", None),
        (r"(?:\d{4}){s<=1} (?:euro){e<=1}", "12xx euro", "12xx euro"),
        (r"(?:\d{4}){s<=1} (?:euro){e<=1}", "1234 uero", "1234 uero"),
        ("refund", "refnd", None),
        (r"\{e<=1\}", "{e<=2}", None),
        ("(?:a){e<=1}b", "", None),
    ],
)
def test_the_reason_of_a_fuzzy_pattern_names_the_text_that_has_one_error_more(pattern, text, nearest):
    assert nearest_texts([Question(pattern, text, lists="{}")]) == [nearest]
    (row,) = score_rows([{"completion": text}], [load_verifier({"checks": [regex_check(pattern)]})])
    assert ("; the nearest text is " in row["feedback"]) is (nearest is not None)
    assert nearest is None or row["feedback"].endswith(f'; the nearest text is "{nearest}"')


def test_a_late_search_for_the_nearest_text_names_none():
    question = Question("(?:a|a)*(?:zz){e<=1}$", LATE["completion"], lists="{}")
    assert nearest_texts([question], Limits(regex_timeout=0.01)) == [None]
