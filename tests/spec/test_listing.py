"""The listing of check types: made from the classes, as data and as the README's table."""

import json
from typing import ClassVar

from pydantic import Field

from assay import CHECKS, Check, Params
from assay.checks.groups import GROUPS
from assay.spec.listing import as_json, as_markdown, listing, listing_as_markdown
from assay.steps.registry import STEP_TYPES
from assay.values.normalizers import NORMALIZERS, normalizer


class RhymesParams(Params):
    spellings: ClassVar = {"ends": "endings"}

    endings: list[str] = Field(default_factory=list, description="Endings that rhyme.")
    sound: str = "OUGH"
    at_least: int | None = None


class Rhymes(Check):
    """The lines rhyme."""

    type = "rhymes"
    Params = RhymesParams


def listed(name):
    return next(check for check in as_json() if check["type"] == name)


def test_every_check_type_is_listed_in_order_with_words_for_it():
    assert " ".join(check["type"] for check in as_json()) == (
        "task_expectations contains not_contains contains_any contains_all starts_with ends_with regex equals number number_range "
        "choice list_equals math similarity count case min_length max_length length_penalty repetition language ifeval json_valid "
        "json_keys json_schema json_match expected_output_schema tool_calls tool_trajectory tool_f1 tool_valid"
    )
    assert all(check["summary"].endswith(".") for check in as_json())
    assert all(param["description"] for check in as_json() for param in check["params"])


def test_a_check_is_listed_with_all_a_spec_may_say_of_it():
    own = {name: value for name, value in listed("contains").items() if name != "params"}
    assert own == {
        "type": "contains",
        "aliases": ["must_contain"],
        "summary": "The output contains the phrase; an empty phrase is contained in everything.",
        "graded": False,
        "reads": ["completion"],
    }
    assert [[*param.values()] for param in listed("contains")["params"]] == [
        ["value", ["text"], "string", True, None, "The phrase."],
        ["caseSensitive", [], "boolean", False, False, "Compare as written; else `str.lower()` on both sides."],
        ["word", [], "boolean", False, False, r"The phrase counts only where no `\w` of Python's stands beside it."],
    ]
    assert [*listed("contains")["params"][0]] == ["name", "also", "type", "required", "default", "description"]


def test_aliases_params_and_columns_are_those_of_the_semantics():
    for name, aliases, graded, reads, params in [
        ("task_expectations", [], True, ["completion", "metadata"], []),
        ("not_contains", ["must_not_contain"], False, ["completion"], [("value", "string"), ("caseSensitive", "boolean"), ("word", "boolean")]),
        ("contains_all", [], True, ["completion"], [("values", "array or string"), ("caseSensitive", "boolean"), ("word", "boolean"), ("score", "string")]),
        ("number", ["numeric"], False, ["completion"], [("value", "number or string"), ("relTol", "number"), ("absTol", "number"), ("at", "string")]),
        ("count", [], False, ["completion"], [("of", "string or object"), *((bound, "number or null") for bound in ("min", "max", "exactly"))]),
        ("list_equals", [], True, ["completion"], [("value", "array or string"), ("sep", "string"), ("normalize", "string or object or null"), ("as", "string")]),
        ("regex", [], False, ["completion"], [("pattern", "string"), ("flavor", "string"), ("lists", "object")]),
        ("equals", ["exact_match"], False, ["completion"], [("value", "string"), ("caseSensitive", "boolean"), ("normalize", "string or object or null"), ("strip", "boolean")]),
        ("max_length", [], False, ["completion"], [("value", "number")]),
        ("json_valid", [], False, ["completion"], []),
        ("json_keys", [], False, ["completion"], [("requiredKeys", "array")]),
        ("expected_output_schema", [], False, ["completion", "expected_output_schema"], []),
    ]:  # fmt: skip
        check = listed(name)
        assert (check["aliases"], check["graded"], check["reads"]) == (aliases, graded, reads)
        assert [(param["name"], param["type"]) for param in check["params"]] == params


def test_the_params_of_a_check_of_ones_own_are_listed_as_they_are():
    assert json.loads(json.dumps(as_json([Rhymes]))) == as_json([Rhymes])
    endings, sound, least = as_json([Rhymes])[0]["params"]
    assert (endings["name"], endings["also"], endings["type"], endings["default"]) == ("endings", ["ends"], "array", [])
    assert (sound["type"], sound["default"]) == ("string", "OUGH")
    assert (least["name"], least["also"], least["required"], least["default"]) == ("atLeast", [], False, None)
    assert "integer" in least["type"]
    assert "`sound = OUGH`" in as_markdown("check", [Rhymes]).replace('"', "")
    assert "`atLeast = null`" in as_markdown("check", [Rhymes])


def test_the_table_has_a_row_for_each_check():
    lines = as_markdown("check").splitlines()
    assert lines[:2] == ["| type (alias) | params | scores |", "|---|---|---|"]
    assert len(lines) == 2 + len(CHECKS)
    assert all(line.count(" | ") == 2 and line.startswith("| `") and line.endswith(" |") for line in lines[2:])
    assert as_markdown("check").endswith(" |\n")


def test_a_row_of_the_table_reads_as_the_readme_needs_it():
    assert {
        "| `contains` (`must_contain`) | `value` or `text`, `caseSensitive = false`, `word = false` | The output contains the phrase; an empty phrase is contained in everything. |",
        "| `min_length` | `value` | The output has at least `value` characters. |",
        "| `json_keys` | `requiredKeys` or `keys` | The output is a JSON object that has every key; all or nothing. |",
        '| `regex` | `pattern`, `flavor = "re"`, `lists = {}` | `re.search` finds the pattern. The verdict is Python\'s for every pattern Python accepts. Most patterns are answered without backtracking. Where only backtracking can decide (back-references and the like), a match that takes more than 0.2 s of processor time (`--regex-timeout`) or 1 GiB scores 0.0 and fills `error`. With `flavor: regex` it is `regex.search` of that package, in a process with these limits: fuzzy `(?:refund){e<=1}`, `\\p{Script=Cyrillic}`, `\\X`, recursion, and `\\L<names>` for one of `lists: {names: […]}`. |',
    } <= {*as_markdown("check").splitlines()}


def test_the_listing_has_all_that_a_spec_can_name():
    by_kind = {
        kind: [entry for entry in listing() if entry["kind"] == kind]
        for kind in ("check", "group", "scorer", "step", "normalizer")
    }
    names = {kind: [entry["type"] for entry in entries] for kind, entries in by_kind.items()}
    assert names["check"] == [check.type for check in CHECKS]
    assert names["group"] == [group.type for group in GROUPS]
    assert names["scorer"] == ["grader", "function", "row_verifier", "spec"]
    assert names["step"] == [step.name for step in STEP_TYPES]
    assert names["normalizer"] == [*NORMALIZERS, "minerva", "lmEval"]
    assert sum(map(len, by_kind.values())) == len(listing())
    assert all(entry["summary"].endswith(".") for entry in listing())
    assert all(param["description"] for entry in listing() for param in entry["params"])
    assert json.loads(json.dumps(listing())) == listing()


def test_an_option_of_a_normalizer_is_one_that_it_takes():
    (options,) = (entry["params"] for entry in listing() if entry["type"] == "lmEval")
    assert [option["name"] for option in options] == [
        "ignoreCase",
        "ignorePunctuation",
        "ignoreNumbers",
        "regexesToIgnore",
    ]
    assert normalizer({"lmEval": {option["name"]: option["default"] for option in options}})("A, 1") == "A, 1"


def test_the_markdown_has_a_table_for_each_kind():
    page = listing_as_markdown()
    titles = [line.removeprefix("## ") for line in page.splitlines() if line.startswith("#")]
    assert titles == ["Check types", "Groups", "Scorers", "Steps", "Normalizers"]
    assert as_markdown("group") in page
    assert "| `at_least` | `k` | 1.0 if at least `k` checks pass. |\n" in page
    assert as_markdown("normalizer") in page
    assert sum(line.startswith("| `") for line in page.splitlines()) == len(listing())
