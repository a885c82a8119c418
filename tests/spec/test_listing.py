"""The listing of check types: made from the classes, as data and as the README's table."""

import json
from typing import ClassVar

import pytest
from pydantic import Field

from assay import CHECKS, Check, Params
from assay.spec.listing import as_json, as_markdown


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
    assert [check["type"] for check in as_json()] == [
        *("task_expectations", "contains", "not_contains", "contains_any", "contains_all", "starts_with", "ends_with"),
        *(
            "regex",
            "equals",
            "number",
            "number_range",
            "choice",
            "list_equals",
            "count",
            "case",
            "min_length",
            "max_length",
        ),
        *("json_valid", "json_keys", "expected_output_schema"),
    ]
    assert all(check["summary"].endswith(".") for check in as_json())
    assert all(param["description"] for check in as_json() for param in check["params"])


def test_a_check_is_listed_with_all_a_spec_may_say_of_it():
    assert listed("contains") == {
        "type": "contains",
        "aliases": ["must_contain"],
        "summary": "The output contains the phrase; an empty phrase is contained in everything.",
        "graded": False,
        "reads": ["completion"],
        "params": [
            {
                "name": "value",
                "also": ["text"],
                "type": "string",
                "required": True,
                "default": None,
                "description": "The phrase.",
            },
            {
                "name": "caseSensitive",
                "also": [],
                "type": "boolean",
                "required": False,
                "default": False,
                "description": "Compare as written; else `str.lower()` on both sides.",
            },
            {
                "name": "word",
                "also": [],
                "type": "boolean",
                "required": False,
                "default": False,
                "description": r"The phrase counts only where no `\w` of Python's stands beside it.",
            },
        ],
    }


@pytest.mark.parametrize(
    ("name", "aliases", "graded", "reads", "params"),
    [
        ("task_expectations", [], True, ["completion", "metadata"], []),
        ("not_contains", ["must_not_contain"], False, ["completion"], [("value", "string"), ("caseSensitive", "boolean"), ("word", "boolean")]),
        ("contains_all", [], True, ["completion"], [("values", "array"), ("caseSensitive", "boolean"), ("word", "boolean"), ("score", "string")]),
        ("number", ["numeric"], False, ["completion"], [("value", "number or string"), ("relTol", "number"), ("absTol", "number"), ("at", "string")]),
        ("count", [], False, ["completion"], [("of", "string or object"), *((bound, "number or null") for bound in ("min", "max", "exactly"))]),
        ("list_equals", [], True, ["completion"], [("sep", "string"), ("value", "array or string"), ("normalize", "string or object or null"), ("as", "string")]),
        ("regex", [], False, ["completion"], [("pattern", "string")]),
        ("equals", ["exact_match"], False, ["completion"], [("value", "string"), ("caseSensitive", "boolean"), ("normalize", "string or object or null"), ("strip", "boolean")]),
        ("max_length", [], False, ["completion"], [("value", "number")]),
        ("json_valid", [], False, ["completion"], []),
        ("json_keys", [], False, ["completion"], [("requiredKeys", "array")]),
        ("expected_output_schema", [], False, ["completion", "expected_output_schema"], []),
    ],
)  # fmt: skip
def test_aliases_params_and_columns_are_those_of_the_semantics(name, aliases, graded, reads, params):
    check = listed(name)
    assert (check["aliases"], check["graded"], check["reads"]) == (aliases, graded, reads)
    assert [(param["name"], param["type"]) for param in check["params"]] == params


@pytest.mark.parametrize("checks", [CHECKS, (Rhymes,)], ids=["ours", "ones own"])
def test_the_listing_is_plain_json(checks):
    assert json.loads(json.dumps(as_json(checks))) == as_json(checks)


def test_the_params_of_a_check_of_ones_own_are_listed_as_they_are():
    endings, sound, least = as_json([Rhymes])[0]["params"]
    assert (endings["name"], endings["also"], endings["type"], endings["default"]) == ("endings", ["ends"], "array", [])
    assert (sound["type"], sound["default"]) == ("string", "OUGH")
    assert (least["name"], least["also"], least["required"], least["default"]) == ("atLeast", [], False, None)
    assert "integer" in least["type"]


def test_the_table_has_a_row_for_each_check():
    lines = as_markdown().splitlines()
    assert lines[:2] == ["| type (alias) | params | scores |", "|---|---|---|"]
    assert len(lines) == 2 + len(CHECKS)
    assert all(line.count(" | ") == 2 and line.startswith("| `") and line.endswith(" |") for line in lines[2:])
    assert as_markdown().endswith(" |\n")


@pytest.mark.parametrize(
    "row",
    [
        "| `contains` (`must_contain`) | `value` or `text`, `caseSensitive = false`, `word = false` | The output contains the phrase; an empty phrase is contained in everything. |",
        "| `min_length` | `value` | The output has at least `value` characters. |",
        "| `json_keys` | `requiredKeys` or `keys` | The output is a JSON object that has every key; all or nothing. |",
        "| `regex` | `pattern` | `re.search` finds the pattern. The verdict is Python's for every pattern Python accepts. Most patterns are answered without backtracking. Where only backtracking can decide (back-references and the like), a match that takes more than 0.2 s of processor time (`--regex-timeout`) or 1 GiB scores 0.0 and fills `error`. |",
    ],
)
def test_a_row_of_the_table_reads_as_the_readme_needs_it(row):
    assert row in as_markdown().splitlines()


def test_a_default_is_shown_as_a_spec_would_write_it():
    assert "`sound = OUGH`" in as_markdown([Rhymes]).replace('"', "")
    assert "`atLeast = null`" in as_markdown([Rhymes])
