"""Check types with golds: scores by a column of golds, lists, and verdicts that are not ours."""

import json
import random
import re
from itertools import product

import polars as pl
import pytest
from cases import DATA, LONG, sized
from hostile import hostile_pieces

from assay import CHECKS, load_verifier, score
from assay.checks.base import Check, GoldCompared, GoldKind
from assay.expressions.shared_columns import columns_read, layers, reading_column
from assay.scoring.reference import score_rows
from assay.testing import assert_plan_conforms
from assay.thresholds import set_to
from assay.values.params import Params

BY_TYPE = {check.type: check for check in CHECKS}


def check_of(name, **params):
    cls = BY_TYPE[name]
    return load_verifier({"checks": [{"type": name, "params": params}]}).checks[0].check if cls else None


def scores(check, texts):
    """Scores by columns."""
    dtype = pl.List(pl.String) if check.golds.of_lists and isinstance(texts[0], list) else pl.String
    frame = pl.DataFrame({"text": pl.Series(texts, dtype=dtype)})
    with reading_column("text"), columns_read() as lanes:
        expr = check.expr()
        for layer in layers(lanes, frame.schema):
            frame = frame.with_columns(layer)
        return frame.select(score=expr.cast(pl.Float64))["score"].to_list()


BY_GOLD = [
    *product(("contains", "not_contains"), ({}, {"caseSensitive": True})),
    *product(("starts_with", "ends_with"), ({}, {"caseSensitive": True}, {"strip": False})),
    *product(
        ("equals",), ({}, {"caseSensitive": True}, {"strip": False}, {"normalize": "squad"}, {"normalize": "math"})
    ),
    ("equals", {"strip": False, "caseSensitive": True, "normalize": "nfkc"}),
    *product(("number",), ({}, {"relTol": 0.1}, {"relTol": 0.1, "absTol": 3})),
    *product(("choice",), ({}, {"letters": "abkiſ1", "base": 1})),
]


def test_words_have_no_column_of_golds():
    assert check_of("contains", value="a", word=True).compare(pl.col("gold")) is None


@pytest.mark.parametrize("kind", ["list", "set", "multiset", "subset", "f1"])
@pytest.mark.parametrize("golds", [["a", "b"], ["a", "a", "b"], [], ["the", "k"], ["a", "b", "c", "a"]], ids=str)
def test_lists_score_by_columns_as_they_do_by_row(kind, golds):
    check = check_of("list_equals", value=golds, normalize="squad" if len(golds) % 2 else None, **{"as": kind})
    rng = random.Random(11)
    lists = [
        rng.choices(["a", " b ", "c", "", "K", "The k", "\x1c"], k=rng.choice((0, 1, 2, 3, 4, 5))) for _ in range(200)
    ]
    texts = [",".join(items) for items in lists]
    expected = [check.row({"completion": items}) for items in lists]
    assert expected == [check.row({"completion": text}) for text in texts]
    with set_to(small_batch=0):
        assert scores(check, lists) == scores(check, texts) == expected
        assert scores(check, [[*golds]]) == [1.0]
        assert scores(check, [["x"], None]) == [check.row({"completion": ["x"]}), None]
    assert scores(check, lists) == expected
    assert golds != ["a", "b"] or len(set(expected)) > 1


SENSES = {
    "list": {"a, b": 0.0, "a, b, b": 1.0},
    "set": {"b, a": 1.0, "a": 0.0},
    "multiset": {"b, a, b": 1.0, "a, b": 0.0},
    "subset": {"c, b, b, a": 1.0, "c, b, a": 0.0},
    "f1": {"a, b, c": 4 / 6, "": 0.0},
}


def test_the_senses_of_equal_lists():
    for kind, expected in SENSES.items():
        check = check_of("list_equals", value=["a", "b", "b"], **{"as": kind})
        assert {text: check.row({"completion": text}) for text in expected} == expected, kind


SPEC = {
    "checks": [
        {"type": "number", "value": 42, "absTol": 1, "id": "n"},
        {"type": "number_range", "min": 0, "max": 5, "id": "r"},
        {"type": "choice", "value": "b", "id": "c"},
        {"type": "contains_all", "values": ["x", 'a "b"'], "id": "all"},
        {"type": "contains_any", "values": list("tuvwxyz"), "id": "any"},
        {"type": "count", "of": "words", "min": 5, "max": 9, "id": "w"},
        {"type": "count", "of": "items", "min": 1, "id": "i"},
        {"type": "list_equals", "value": ["red", "green"], "as": "set", "id": "l"},
        {"type": "case", "is": "upper", "id": "case"},
        {"type": "starts_with", "value": "yes", "id": "s"},
        {"type": "contains", "value": "cat", "word": True, "id": "word"},
    ]
}


def test_feedback_says_what_was_found_and_expected():
    verifier = load_verifier(SPEC)
    (result,) = score_rows([{"completion": "9 dogs"}], [verifier])
    assert result["feedback"].split("\n") == [
        'n: the number is "9", expected 42 (absTol 1)',
        'r: the number is "9", expected at least 0 and at most 5',
        "c: found nothing: choice",
        'all: does not contain "x", \'a "b"\'',
        'any: contains none of "t", "u", "v", "w", "x" and 2 more',
        "w: number of words: 2, expected at least 5 and at most 9",
        "i: the output is not a JSON list or object",
        'l: does not have the items "red, green" (set)',
        "case: is not in upper case",
        's: does not begin with "yes"',
        'word: does not contain the word "cat"',
    ]
    rows = [{"completion": text} for text in (*hostile_pieces(sized(20_000, 300), seed=12), "9 dogs", None, "[1]")]
    assert_plan_conforms([verifier], rows)


def test_specs_without_the_later_params_keep_their_canonical_form():
    old = {"contains": {"value": "a", "caseSensitive": False}, "equals": {"value": "a", "caseSensitive": False}}
    old["not_contains"] = old["contains"]
    for name, params in old.items():
        plain, same = (load_verifier({"checks": [{"type": name, "value": "a", **more}]}) for more in ({}, LATER[name]))
        assert plain.checks[0].params == same.checks[0].params == params
    assert (
        load_verifier({"checks": [{"type": "contains", "value": "a", "word": True}]}).checks[0].params["word"] is True
    )


LATER = {"contains": {"word": False}, "not_contains": {"word": False}, "equals": {"strip": True, "normalize": None}}


UNUSABLE = [
    ({"type": "number", "value": "many"}, 'ValueError: params.value: "many" is not a number'),
    ({"type": "number", "value": 10**400}, "ValueError: params.value: it is not finite"),
    ({"type": "number_range"}, "ValueError: params.max: give `min`, `max` or both"),
    (
        {"type": "number_range", "min": 2, "max": 1},
        "ValueError: params.max: it is below min (2): nothing could pass",
    ),
    (
        {"type": "choice", "value": "E"},
        'ValueError: params.value: "E" is none of the choices ABCD, nor the number of one, from 0',
    ),
    (
        {"type": "equals", "value": "a", "normalize": "squda"},
        'ValueError: params.normalize: unknown normalizer "squda". Did you mean `squad`?',
    ),
    (
        {"type": "count", "of": "wrds", "min": 1},
        'ValueError: params.of: it cannot count "wrds". Did you mean `words`?',
    ),
    ({"type": "count", "of": "words"}, "ValueError: params.exactly: give `min`, `max` or `exactly`"),
    (
        {"type": "count", "of": {"txt": "a"}, "min": 1},
        "ValueError: params.of: write {text: phrase} or {pattern: P}",
    ),
    (
        {"type": "count", "of": {"text": "a", "case": 1}, "min": 1},
        "ValueError: params.of: unknown field `case`. Known: text, caseSensitive, case_sensitive.",
    ),
    (
        {"type": "count", "of": {"pattern": "("}, "min": 1},
        "ValueError: params.of: '(': missing ), unterminated subpattern at position 0",
    ),
]


def test_a_value_that_a_check_cannot_use_is_named():
    for check, problem in UNUSABLE:
        (result,) = score_rows([{"completion": "a"}], [load_verifier({"checks": [check]})])
        assert result["error"].endswith(problem), check


def cases(name):
    path = DATA / "checks" / name
    if not path.exists():
        pytest.skip(f"the verdicts are not there: {path}")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_squad():
    """Exact match by SQuAD's official script, for lists of golds; the best one counts."""
    rows = [{name: row[name] for name in ("completion", "answers", "em")} for row in cases("squad.jsonl")]
    verifier = load_verifier({"checks": [{"type": "equals", "value": {"column": "answers"}, "normalize": "squad"}]})
    assert_plan_conforms([verifier], rows)
    assert score(rows, verifier)["reward"].to_list() == [float(row["em"]) for row in rows]


def test_golds_without_words_count_only_where_all_are():
    check = check_of("equals", value="", normalize="squad")
    counting = check.golds.counting(check.params)
    assert counting(["The", "cat", "!"]) == ["cat"]
    assert counting(["The", "!"]) == ["The"]
    assert counting([]) == []
    assert check.golds.counting(check_of("equals", value="").params) is None


def test_golds_without_words_do_not_count_in_columns_either():
    verifier = load_verifier({"checks": [{"type": "equals", "value": {"column": "golds"}, "normalize": "squad"}]})
    golds = [["a", "Paris"], ["a", "the"], ["!", "Paris", None], [], None, ["Paris", "an"]]
    rows = [{"completion": text, "golds": list_} for list_ in golds for text in ("the", "Paris", "x")]
    assert_plan_conforms([verifier], rows)
    scores = score(rows, verifier)["reward"].to_list()
    assert scores == [0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, *[None] * 6, 0.0, 1.0, 0.0]
    single = load_verifier({"checks": [{"type": "equals", "value": {"column": "gold"}, "normalize": "squad"}]})
    assert_plan_conforms([single], [{"completion": "x", "gold": gold} for gold in ("a", "Paris", "", None)])


PROMPTFOO = {
    "icontains-any": lambda value: ("contains_any", {"values": value}),
    "icontains-all": lambda value: ("contains_all", {"values": value}),
    "contains-any": lambda value: ("contains_any", {"values": value, "caseSensitive": True}),
    "contains-all": lambda value: ("contains_all", {"values": value, "caseSensitive": True}),
    "starts-with": lambda value: ("starts_with", {"value": value, "strip": False, "caseSensitive": True}),
    "word-count": lambda value: (
        "count",
        {"of": "words", **(value if isinstance(value, dict) else {"exactly": value})},
    ),
}


@pytest.mark.parametrize("kind", PROMPTFOO)
def test_promptfoo(kind):
    rows = [row for row in cases("promptfoo_cases.jsonl") if row["type"] == kind]
    for row in rows:
        name, params = PROMPTFOO[kind](row["value"])
        check = check_of(name, **params)
        assert check.row({"completion": row["output"]}) == float(row["pass"]), row
        assert scores(check, [row["output"], "x"])[0] == float(row["pass"]), row
    assert len(rows) > 20
    assert {row["pass"] for row in rows} == {True, False}


COUNTED = (r"\w\b", r"a*", r"a$|\n", r"(?i)k", r"(a|b)\1", r"\d+", r"(?m)^\s*$", r"[^\W\d_]+", r"(?<=a)b", r"")


def test_the_matches_of_a_pattern_are_counted_as_findall_finds_them():
    texts = [*hostile_pieces(sized(20_000, 100), seed=13), "aab\n", ""]
    rows = [{"completion": text} for text in [*texts, None]]
    for pattern in COUNTED:
        check = check_of("count", of={"pattern": pattern}, min=1)
        assert [check.counted.row(text) for text in texts] == [len(re.findall(pattern, text)) for text in texts]
        specs = [
            {"type": "count", "of": {"pattern": pattern}, "min": low, "id": f"at least {low}"} for low in (1, 2, 5)
        ]
        with set_to(small_batch=0):
            assert_plan_conforms([load_verifier({"checks": specs})], rows)


def test_a_count_that_takes_too_long_is_an_error():
    verifier = load_verifier({"checks": [{"type": "count", "of": {"pattern": r"(?:(a|b|ab)*)*\1c"}, "min": 0}]})
    (result,) = score_rows([{"completion": "ab" * 40 + "d"}], [verifier])
    assert result["reward"] == 0.0
    assert "TimeoutError" in result["error"]


# ── golds, lists of golds and reasons by columns ────────────────────────────────────────────────────────────────────────

PHRASES = ("a", "refund", "", "ΟΔΟΣ", "Σ", "k", "İ", '"q"', "it's", None, "é\n", "3", "1,200", "B", "x" * 80)
LISTED = [
    *product(("contains_any", "contains_all"), ({}, {"caseSensitive": True}, {"word": True})),
    *(("contains_all", {"score": "share"}), ("list_equals", {"as": "f1"}), *BY_GOLD),
]


def rows_with(texts, rng):
    """Rows with lists of golds, and one gold as text, as a number and in JSON text, in the types of a table."""
    for text in texts:
        golds = rng.choice((None, [], [None], rng.choices(PHRASES, k=rng.choice((1, 2, 7))), [text[:2]]))
        one = rng.choice((*PHRASES, text[:3]))
        found = json.dumps({"gold": rng.choice((one, golds, [golds], 3, None))})
        yield {
            "completion": rng.choice((None, text, text, text + " refund 3 (B)")),
            "golds": golds,
            "one": one,
            "n": rng.choice((None, 0, 3, 12, -1)),
            "metadata": rng.choice((None, found, found, "no")),
        }


@pytest.mark.parametrize(
    ("name", "params"), LISTED if LONG else {name: (name, params) for name, params in LISTED}.values()
)
def test_rows_bring_lists_of_golds(name, params):
    rng = random.Random(f"{name}{params}")
    rows = [*rows_with(hostile_pieces(sized(2_000, 40), seed=rng.randrange(1 << 30)), rng)]
    gold = BY_TYPE[name].golds.param
    kept = {"missingGold": "fail", **params}
    specs = [{"type": name, gold: {"column": path}, **kept} for path in ("one", "golds", "metadata.gold")]
    specs += [{"type": name, gold: {"column": "golds"}, "goldOn": ["strip", {"remove": ["a"]}], **kept}]
    specs += [{"type": name, gold: [{"column": "one"}, {"column": "golds"}, "a"], **kept}]
    # by columns, by rows
    for small in (0, 256) if LONG else rng.choices((0, 256), (2, 1)):
        with set_to(small_batch=small):
            checks = [{**spec, "id": f"c{at}"} for at, spec in enumerate(specs)]
            assert_plan_conforms([load_verifier({"checks": checks})], rows)


@pytest.mark.parametrize(
    "spec",
    [
        {"type": "min_length", "value": {"column": "n"}},
        {"type": "count", "of": "words", "max": {"column": "n"}},
        {"type": "number_range", "min": {"column": "n"}},
        {"type": "max_length", "value": 5, "goldOn": ["strip"]},
        {"type": "regex", "pattern": {"column": "metadata.gold"}},
        {"type": "contains", "word": True, "value": {"column": "one"}},
        {"type": "equals", "value": {"column": "absent.gold"}},
    ],
    ids=json.dumps,
)
def test_rows_bring_params_that_take_python(spec):
    rng = random.Random(json.dumps(spec))
    rows = [
        {**row, "absent": None}
        for row in rows_with(hostile_pieces(sized(2_000, 100), seed=rng.randrange(1 << 30)), rng)
    ]
    for missing in ("fail", "unscored"):
        verifier = load_verifier({"checks": [{**spec, "missingGold": missing}]})
        assert not verifier.warnings
        assert_plan_conforms([verifier], rows)


def test_rows_that_share_a_column_of_the_check_do_not_share_the_checks_of_others():
    rows = [{"completion": "abcd", "n": at % 3, "m": 3 + at % 2} for at in range(12)]
    spec = {"type": "count", "of": "chars", "min": {"column": "n"}, "max": {"column": "m"}}
    assert score(rows, {"checks": [spec]})["reward"].to_list() == [float(row["m"] > 3) for row in rows]


def test_a_reason_lists_the_first_phrases_of_a_row():
    rows = [{"completion": "none", "golds": [*"vwxyzq", 'a"b']}, {"completion": "v", "golds": ["v", "w"]}]
    spec = {"type": "contains_any", "values": {"column": "golds"}}
    assert score(rows, {"checks": [spec]})["feedback"].to_list() == [
        'contains_any: contains none of "v", "w", "x", "y", "z" and 2 more',
        "",
    ]
    spec = {"type": "contains_all", "values": {"column": "golds"}}
    assert score(rows, {"checks": [spec]})["feedback"].to_list() == [
        """contains_all: does not contain "v", "w", "x", "y", "z", "q", 'a"b'""",
        'contains_all: does not contain "w"',
    ]


@pytest.mark.parametrize(
    "check",
    [
        {"type": "equals", "value": {"column": "gold"}},
        {"type": "equals", "value": [{"column": "gold"}, "x"]},
        {"type": "equals", "value": {"template": "{gold}"}},
        {"type": "similarity", "value": {"column": "gold"}},
        {"type": "contains", "value": "null", "on": {"column": "gold"}},
        {"type": "min_length", "value": 12, "on": {"template": "{gold} {gold.list}"}},
        {"type": "json_match", "value": {"column": "gold"}},
        {"type": "json_match", "value": [{"column": "gold"}]},
        {"type": "json_schema", "schema": [{"column": "gold"}]},
        {"type": "tool_f1", "value": [{"column": "gold"}, "f"]},
    ],
    ids=str,
)
def test_null_fields_of_structs_are_absent_wherever_a_spec_refers_to_them(check):
    golds = [{"a": 1}, {"b": "x"}, {"list": [{"a": 1}, {"b": "y"}, None]}, {"inner": {"a": 1}}, {"inner": {"b": 2}}]
    texts = [*map(str, golds), *map(json.dumps, golds), *(json.dumps([gold]) for gold in golds)]
    rows = [{"completion": text, "gold": golds[number % len(golds)]} for number, text in enumerate(texts)]
    spec = {"checks": [check | {"missingGold": "fail"}]}
    for small in (0, 256):
        with set_to(small_batch=small):
            typed = score(pl.DataFrame(rows, infer_schema_length=None), spec, keep=(), lenient=True)
            assert typed.rows() == score(rows, spec, keep=(), lenient=True).rows()


def test_nulls_in_json_text_within_a_struct_stay():
    frame = pl.DataFrame({"completion": ['{"a": null}', "{}"], "gold": [{"text": '{"of": {"a": null}}'}] * 2})
    spec = {"checks": [{"type": "json_match", "value": {"column": "gold.text.of"}}]}
    assert score(frame, spec)["reward"].to_list() == [1.0, 0.0]


def test_a_class_may_say_how_it_takes_golds_in_the_former_words():
    class Whole(Check):
        type = "whole"
        whole_gold, takes_list, reading = True, True, ("at",)

    class Worst(Whole):
        type = "worst"
        every_gold = True

    assert Whole.golds == GoldKind(whole=True, of_lists=True, same_params=("at",))
    assert Worst.golds == GoldKind(whole=True, of_lists=True, same_params=("at",), worst=True)
    assert Check.golds == GoldKind()


def test_a_type_with_golds_needs_no_expression():
    class WordsParams(Params):
        value: str

    class SameWords(GoldCompared):
        type = "same_words"
        words = ("has the words {value}", "does not have the words {value}")
        golds = GoldKind("value")
        Params = WordsParams

        def score(self, value, gold):
            return float(sorted(value.split()) == sorted(gold.split()))

        def score_expr(self, gold):
            return None

    checks = [{"type": "same_words", "value": {"column": "gold"}}, {"type": "same_words", "id": "own", "value": "b"}]
    rows = [
        {"completion": "b a", "gold": "a b"},
        {"completion": "b", "gold": ["x", "b"]},
        {"completion": "", "gold": "z"},
    ]
    spec = load_verifier({"checks": checks}, checks=[SameWords])
    results = score(rows, spec)
    assert results["feedback"].to_list() == [
        'own: does not have the words "b"',
        "",
        'same_words: does not have the words "z"\nown: does not have the words "b"',
    ]
    assert results.drop("gold").to_dicts() == score_rows(rows, [spec])


BOUNDS = {
    "whole": (None, 0, 1, 2, 3, -1, 10**6, 2**53, 2**53 + 1, -(2**60)),
    "float": (None, 0.0, -0.0, 1.0, 2.5, 0.1, 1e16, 1e-7, 3e15, -3.0, 2.0**53, float("inf"), float("nan")),
    "other": ("2", "three", None),
    "flag": (True, None),
    "items": ([1], [1, 2, 3], None),
}
BOUNDED = (
    {"type": "min_length", "value": {"column": "whole"}},
    {"type": "max_length", "value": {"column": "float"}, "negate": True},
    {"type": "min_length", "value": {"column": "flag"}},
    {"type": "min_length", "value": {"column": "items"}},
    {"type": "number_range", "min": {"column": "whole"}, "max": {"column": "float"}},
    {"type": "number_range", "min": -3, "max": {"column": "whole"}, "missingGold": "fail"},
    {"type": "number_range", "min": {"column": "whole"}, "max": 2.0**60},
    {"type": "number_range", "min": {"column": "other"}},
    {"type": "count", "of": "words", "min": {"column": "whole"}, "max": {"column": "float"}},
    {"type": "count", "of": "items", "exactly": {"column": "float"}},
    {"type": "count", "of": {"text": "a\ud800"}, "max": {"column": "whole"}, "on": "boxed"},
    {"type": "count", "of": {"pattern": "a"}, "min": {"template": "{whole}"}},
    {"type": "count", "of": {"pattern": "a"}, "min": {"column": "whole"}},
)


@pytest.mark.parametrize(
    "spec", BOUNDED, ids=lambda spec: " ".join(map(str, spec.values())).encode("unicode_escape").decode()
)
def test_bounds_of_rows_are_compared_as_python_compares_them(spec):
    rng = random.Random(34)
    texts = ("", "a", "12", "1.5 and -7", "[1, 2]", "aaa bb", "İ ſ", r"\boxed{a}", "9007199254740993", "x " * 20, None)
    verifier = load_verifier({"checks": [spec]})
    for small, rows in sized([*product((0, 256), (1, 2, 3, 40))], [(0, 1), (0, 40), (256, 2)]):
        drawn = [
            {"completion": rng.choice(texts), **{name: rng.choice(bounds) for name, bounds in BOUNDS.items()}}
            for _ in range(rows)
        ]
        with set_to(small_batch=small):
            assert_plan_conforms([verifier], drawn)


@pytest.mark.parametrize("check", ["regex", "json_schema"])
def test_a_gold_that_cannot_be_used_is_told_where_the_text_has_nothing_to_read(check):
    value = {"regex": {"pattern": {"column": "gold"}}, "json_schema": {"schema": {"column": "gold"}}}[check]
    verifier = load_verifier({"checks": [{"type": check, **value, "on": "boxed"}]})
    rows = [{"completion": text, "gold": gold} for text in ("none", r"\boxed{1}") for gold in ("(", "{}", "true", None)]
    with set_to(small_batch=0):
        assert_plan_conforms([verifier], rows)
    assert score(rows, verifier)["error"][0].startswith('gold cannot be used: gold is "("')
