"""Outcomes of drawn results against their definition in plain Python; ``ASSAY_FUZZ_OUTCOMES`` is how many."""

import json
import os
import random
import warnings

import polars as pl
from cases import sized
from naive_outcomes import SIGNS, drawn_rows, drawn_spec, naive_cut_off, naive_outcome

import assay
from assay.scoring.reference import score_rows

DRAWN = int(os.environ.get("ASSAY_FUZZ_OUTCOMES", sized("12", "6")))


def labels_of(specs):
    """What the lines of a run begin with: ids of checks, behind that of their verifier if there are several."""
    labels = []
    for spec in specs:
        owner = f"{spec['id']}/" if len(specs) > 1 else ""
        for check in spec["checks"]:
            inner = [f"{check['id']}.{part['id']}" for part in check.get("checks", ())]
            labels += [owner + ident for ident in (check["id"], *inner)]
    return labels


def compare(seed, folder):
    draw = random.Random(seed)
    specs = [drawn_spec(draw, f"v{at}" if draw.random() < 0.8 else f"v{at}: w") for at in range(draw.choice([1, 1, 2]))]
    rows, labels = drawn_rows(draw, draw.choice([1, 3, 30])), labels_of(specs)
    verifiers = [assay.load_verifier(spec) for spec in specs]
    result = assay.score(rows, specs)
    by_definition = score_rows([{"answer": None} | row for row in rows], verifiers, outcome=True)
    cut = [naive_cut_off(row) for row in rows]
    stored = [row | scored for row, scored in zip(rows, result.to_dicts(), strict=True)]
    # how a rollout ended is what its own row says, and not the text of a column of several types
    expected = [naive_outcome(scored | row, labels) for row, scored in zip(rows, stored, strict=True)]
    assert [row["outcome"] for row in by_definition] == expected, seed
    assert [row["cut_off"] for row in by_definition] == cut, seed
    frame = assay.score(rows, specs, outcome=True)
    assert frame["cut_off"].to_list() == cut, seed
    assert frame["outcome"].to_list() == expected, seed
    types = [{type(row[name]) for row in rows if row.get(name) is not None} for name in SIGNS]
    are_like_text = not any(
        float in kinds and len(kinds) > 1 for kinds in types
    )  # 1 and 1.0 have one type of numbers elsewhere
    if are_like_text:
        assert frame.drop("cut_off", "outcome").equals(result), seed
    assert assay.outcomes(frame.drop("outcome")).to_list() == expected, seed
    # of a result without the columns, from what it has
    from_stored = [naive_outcome(row, labels) for row in result.to_dicts()]
    assert assay.outcomes(result).to_list() == from_stored, seed
    source, out = folder / f"{seed}.jsonl", folder / f"{seed}.parquet"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    summary = assay.score_file(source, specs, out, outcome=True, lenient=True)
    assert pl.read_parquet(out)["outcome"].to_list() == expected, seed
    plain, gated = (
        assay.score_file(source, specs, f"{out}.{name}.parquet", lenient=True, **more)
        for name, more in (("plain", {}), ("gated", {"max_truncated": "100%"}))
    )
    assert plain.root == gated.root, seed
    if are_like_text:
        assert gated.outcomes == summary.outcomes, seed
    assert {name: number for name, number in summary.as_json()["outcomes"].items() if number} == {
        name: expected.count(name) for name in dict.fromkeys(sorted(expected))
    }, seed


def test_drawn_results_have_the_outcomes_of_the_definition(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", assay.AssayWarning)
        for seed in range(DRAWN):
            compare(seed, tmp_path)
