"""The worked cases of training sets, in memory and in files."""

import json
from functools import cache

import polars as pl
import pyarrow.parquet as pq
import pytest
from cases import each, sized
from worked_cases import to_try, worked

import assay


@cache
def tables(name):
    return [pl.DataFrame(table, infer_schema_length=None) for table in worked("datasets", "export", "tables", name)]


CASES = to_try("datasets", "export", "cases")
REFUSED = to_try("datasets", "export", "refused")


def exported(case, out=None, results=None, **options):
    given = case["settings"] | case.get("options", {}) | options
    return assay.export(tables(case["results"]) if results is None else results, case["recipe"], out, **given)


def without_roots(rows):
    return [{name: value for name, value in row.items() if name != "assay_root"} for row in rows]


def compare(made, expected):
    for name in ("train", "validation", "excluded"):
        assert without_roots(getattr(made, name).to_dicts()) == without_roots(expected[name])
    card = {name: made.card[name] for name in expected["card"]}
    assert card == expected["card"]
    assert [*card["excluded"]] == [*expected["card"]["excluded"]]


@each("case", CASES)
def test_a_worked_case_in_memory(case):
    compare(exported(case, min_examples=0), case["expected"])


@each("case", CASES[:: sized(1, 4)])
def test_a_worked_case_in_a_folder(case, tmp_path):
    made = exported(case, tmp_path / "set", min_examples=0, overwrite=True)
    compare(made, case["expected"])
    assert pl.read_parquet(tmp_path / "set" / "excluded.parquet").equals(made.excluded)
    train = tmp_path / "set" / "train.parquet"
    if train.exists() and case["expected"]["types"]:
        types = {field.name: str(field.type) for field in pq.read_schema(train)}
        assert types == case["expected"]["types"]


@each("case", REFUSED)
def test_a_refused_case(case):
    with pytest.raises(assay.AssayError) as refused:
        exported(case)
    assert refused.value.exit_code == 2


def test_results_bring_what_they_lack_from_what_they_were_made_of(tmp_path):
    traced = worked("datasets", "traced")
    rollouts, result = tmp_path / "rollouts.jsonl", tmp_path / "rewards.parquet"
    pl.DataFrame(traced["rollouts"]).write_ndjson(rollouts)
    assay.score_file(rollouts, traced["spec"], result)
    for run in traced["runs"]:
        made = exported(run, tmp_path / "set.parquet", str(result), overwrite=True)
        compare(made, run["expected"])
        root = assay.read_provenance(result)["content"]["root"]
        assert set(made.train["assay_root"]) == {root} == {made.card["results"][0]["root"]}
        assert json.loads(pq.read_metadata(tmp_path / "set.parquet").metadata[b"assay_export"]) == made.card
