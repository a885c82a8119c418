"""Specs made again from their canonical forms."""

import json
from pathlib import Path

import pytest

import assay
from assay import InputError
from assay.checks.registry import CHECKS
from assay.spec.canonical import forms_of, spec_of

SPECS = sorted(
    path for path in (Path(__file__).resolve().parents[2] / "specs").glob("*/*") if path.suffix in (".yaml", ".toml")
)
SPECS += [
    Path(__file__).resolve().parents[2] / "specs" / name
    for name in ("refund-quality/refund-quality.json", "tool-output/tool-output.json")
]


def test_the_examples_are_read_back():
    for path in SPECS:
        verifier = assay.load_verifier(path)
        form = json.loads(verifier.canonical)
        assert assay.load_verifier(spec_of(form)).sha256 == verifier.sha256


EXAMPLES = [(check.type, example.params or {}) for check in CHECKS for example in check.examples]


def test_checks_of_every_type_are_read_back():
    for kind, params in EXAMPLES:
        verifier = assay.load_verifier({"checks": [{"type": kind, **params}]}, strict=True)
        again = assay.load_verifier(spec_of(json.loads(verifier.canonical)), strict=True)
        assert again.sha256 == verifier.sha256


def test_a_strange_provenance_is_refused():
    for provenance in [
        {},
        {"verifiers": []},
        {"verifiers": 3},
        {"verifiers": [{}]},
        {"verifiers": [{"canonical": "["}]},
        {"verifiers": [{"canonical": "[]"}]},
        {"verifiers": [{"canonical": '{"checks": [1]}'}]},
        {"verifiers": [{"canonical": '{"checks": 5}'}]},
    ]:
        with pytest.raises(InputError, match=r"x\.parquet: "):
            forms_of(provenance, "x.parquet")
