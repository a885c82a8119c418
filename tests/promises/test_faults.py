"""The tables of docs/faults.md: every case is there and names its tests, which exist, and the cases that no other module tests."""

import ast
import json
import os
import re
import tomllib
from functools import cache
from pathlib import Path

import polars as pl
import pytest
from cases import ROOT, each

import assay
from assay.checks.registry import CHECKS

SPEC = {"id": "v", "checks": [{"type": "contains", "value": "refund"}]}
CASES = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in re.findall(r"^\| \d+ \|.*\|$", (ROOT / "docs" / "faults.md").read_text("utf-8"), re.MULTILINE)
]
TESTS = tomllib.loads((ROOT / "tests" / "faults.toml").read_text("utf-8"))
NO_SUCH_THING = {"22"}
"""Cases that concern something that Assay does not have."""


def test_every_case_is_there():
    assert sorted((case[0] for case in CASES), key=int) == [str(number) for number in range(1, 60)]
    assert {len(case) for case in CASES} == {4}
    assert list(TESTS) == [str(number) for number in range(1, 60)]
    assert {number for number, tests in TESTS.items() if not tests} == NO_SUCH_THING


@cache
def functions_of(module):
    tree = ast.parse(next((ROOT / "tests").rglob(module)).read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@each("number", TESTS)
def test_every_test_of_a_case_exists(number):
    for test in TESTS[number]:
        module, _, name = test.partition("::")
        assert name in functions_of(module), test


def test_rows_of_one_id_are_rows_of_their_own(tmp_path):
    rows = pl.DataFrame({"row_id": ["a", "a", None], "completion": ["a refund", "no", "a refund"]})
    rows.write_ndjson(tmp_path / "in.jsonl")
    assay.score_file(tmp_path / "in.jsonl", SPEC, tmp_path / "out.parquet")
    found = pl.read_parquet(tmp_path / "out.parquet")
    assert found.select("row_id", "reward").rows() == [("a", 1.0), ("a", 0.0), (None, 1.0)]


@each("check", CHECKS, ids=lambda check: check.type)
def test_no_text_is_unscored_and_an_empty_one_is_a_text(check):
    example = check.examples[0]
    spec = {"checks": [{"type": check.type, "params": dict(example.params or {})}]}
    others = {"metadata": example.metadata, "expected_output_schema": example.expected_output_schema}
    others |= dict(example.columns or {})
    found = assay.score([{**others, "completion": text} for text in (None, "", " \n\x1c")], spec)
    assert [one is None for one in found["reward"]] == [True, False, False]
    assert found["error"][0] == "the completion is null"


def test_an_input_of_two_names_keeps_its_content_under_the_other(tmp_path):
    pl.DataFrame({"completion": ["a refund"]}).write_parquet(tmp_path / "in.parquet")
    before = (tmp_path / "in.parquet").read_bytes()
    os.link(tmp_path / "in.parquet", tmp_path / "out.parquet")
    assay.score_file(tmp_path / "in.parquet", SPEC, tmp_path / "out.parquet", overwrite=True)
    assert (tmp_path / "in.parquet").read_bytes() == before
    assert pl.read_parquet(tmp_path / "out.parquet")["reward"].to_list() == [1.0]


def test_nothing_in_a_spec_is_expanded(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET", "x")
    values = ["$SECRET", "${SECRET}", "~", "%SECRET%", "file:///etc/passwd", "@/etc/passwd", "{{ SECRET }}", "$(id)"]
    spec = {"id": "v", "checks": [{"type": "contains", "value": value, "caseSensitive": True} for value in values]}
    path = Path(tmp_path, "v.json")
    path.write_text(json.dumps(spec))
    with pytest.warns(assay.AssayWarning, match=r"`(\$\{SECRET\}|\{\{ SECRET \}\})` is plain text here"):
        rewards = assay.score([{"completion": " ".join(values)}, {"completion": "x root:"}], path)["reward"]
    assert rewards.to_list() == [1.0, 0.0]


@pytest.mark.parametrize("rows", [[], [None, None]], ids=["no rows", "nothing to score"])
@pytest.mark.parametrize("out", ["out.parquet", "out.jsonl", "out.csv", "out/"])
def test_nothing_to_score_is_a_whole_result_without_numbers(tmp_path, rows, out):
    pl.DataFrame({"id": [0] * len(rows), "completion": rows}, schema_overrides={"completion": pl.String}).write_parquet(
        tmp_path / "in.parquet"
    )
    summary = assay.score_file(tmp_path / "in.parquet", SPEC, f"{tmp_path}/{out}")
    assert (summary.rows, summary.mean_reward, summary.pass_rate) == (len(rows), None, None)
    assert "NaN" not in json.dumps(summary.as_json())
    if out.endswith(("parquet", "/")):
        found = pl.read_parquet(tmp_path / "out/*.parquet" if out == "out/" else tmp_path / out)
        assert found.columns == ["id", "reward", "passed", "feedback", "error", "score/v", "check/v/contains"]
        assert found["reward"].to_list() == rows


def test_columns_of_our_own_are_offered_to_nobody(tmp_path):
    (tmp_path / "in.jsonl").write_text('{"text": "a refund"}\n{')
    for mapping in ({"completion": "reply"}, {"completion": "$.reply"}, None):
        with pytest.raises(assay.ColumnsError) as refused:
            assay.score(tmp_path / "in.jsonl", SPEC, mapping=mapping, max_bad_rows=1)
        assert "Columns: text." in refused.value.text
    with pytest.raises(assay.ColumnsError, match=r"Columns: text\."):
        assay.score(tmp_path / "in.jsonl", SPEC, tasks=[{"task_id": "a"}], max_bad_rows=1)
    (tmp_path / "bad.jsonl").write_text("{")
    with pytest.raises(assay.AssayError, match=r"max_bad_rows=1 or 100%"):
        assay.score(tmp_path / "bad.jsonl", SPEC)
