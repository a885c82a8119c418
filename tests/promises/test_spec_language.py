"""Random specs of the whole language: the same by columns and by rows, in memory and from files, in one piece and in parts."""

import contextlib
import json

import polars as pl
import pytest
from cases import each, sized
from fuzz_specs import PACKAGES, drawn, drawn_for_packages

import assay
from assay.errors import SpecError
from assay.spec.verifier import load_verifier
from assay.testing import assert_plan_conforms

pytestmark = pytest.mark.filterwarnings("ignore::assay.errors.AssayWarning")  # of skipped and broken checks

SPECS = sized(5_000, 12)
PACKAGED = sized(600, 6)
BATCHES = 6


def _usable(seeds, draw=drawn):
    for seed in seeds:
        spec, rows = draw(seed)
        with contextlib.suppress(SpecError):  # such as weights that add up to 0
            yield seed, load_verifier(spec), rows


@each("batch", range(BATCHES))
def test_columns_give_what_rows_give(batch):
    compared = sum(
        assert_plan_conforms([verifier], rows) for _, verifier, rows in _usable(range(batch, SPECS, BATCHES))
    )
    assert compared > 10 * SPECS // BATCHES


@each("batch", range(BATCHES))
def test_columns_give_what_rows_give_by_optional_packages(batch):
    for package in PACKAGES.values():
        pytest.importorskip(package)
    cases = [*_usable(range(batch, PACKAGED, BATCHES), drawn_for_packages)]
    compared = sum(assert_plan_conforms([verifier], rows) for _, verifier, rows in cases)
    assert compared > 2 * len(cases)
    assert {node.type for _, verifier, _ in cases for node in verifier.nodes} & {*PACKAGES}


def _results(frame):
    return frame.select("reward", "passed", "feedback", "error", pl.selectors.matches("^(score|check)/"))


@pytest.mark.parametrize("seed", range(sized(400, 2)))
def test_files_give_what_memory_gives(seed, tmp_path):
    cases = list(_usable([seed]))
    if not cases:
        pytest.skip("the spec of this seed is refused")
    ((_, verifier, rows),) = cases
    expected = _results(assay.score(rows, verifier))
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    pl.DataFrame(rows, infer_schema_length=None).write_parquet(tmp_path / "rows.parquet", row_group_size=7)
    for source in ("rows.jsonl", "rows.parquet"):
        assay.score_file(tmp_path / source, verifier, tmp_path / f"{source}.out.parquet", lenient=True)
        assert _results(pl.read_parquet(tmp_path / f"{source}.out.parquet")).equals(expected), source
    assay.score_file(
        tmp_path / "rows.parquet", verifier, f"{tmp_path / 'parts'}/", part_bytes=2_000, isolate=False, lenient=True
    )
    assert _results(pl.read_parquet(tmp_path / "parts" / "*.parquet")).equals(expected)
