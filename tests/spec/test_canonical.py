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


PARTS = [
    "checks:\n- {type: contains, value: a}\n",
    (
        "combine: min\nrange: null\nchecks:\n- {type: contains, value: a, gate: true}\n- {type: contains, value: b, required: true}\n"
        "- {id: g, type: any_of, checks: [{type: contains, value: c}, {type: number, value: {column: answer}}]}\n"
    ),
    "combine: sum\nrange: [-1, 0.5]\npassThreshold: 0\nchecks:\n- {type: contains, value: a, weight: -1}\n- {type: contains, value: b}\n",
    "checks:\n- {type: spec, path: deeper.yaml, penalty: 0.5}\n- {type: json_valid}\n",
]


@pytest.mark.parametrize("part", PARTS)
def test_a_result_of_a_spec_that_includes_another_is_verified(part, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("deeper.yaml").write_text(PARTS[1])
    Path("part.yaml").write_text(part)
    Path("whole.yaml").write_text(
        "checks:\n- {type: spec, path: part.yaml, threshold: 0.5, weight: 2}\n- {type: max_length, value: 9}\n"
    )
    Path("rollouts.jsonl").write_text('{"completion": "a b", "answer": "1"}\n{"completion": "no", "answer": "2"}\n')
    assay.score_file("rollouts.jsonl", "whole.yaml", "rewards.parquet")
    found = assay.verify("rewards.parquet", sample="all")
    assert (found.intact, found.sampled) == (True, 2)
    with pytest.raises(assay.SpecError, match="unknown field `checks`"):  # only a footer has it written out
        assay.load_verifier(spec_of(json.loads(assay.load_verifier("whole.yaml").canonical)))


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
