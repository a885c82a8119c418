"""No verdict depends on which implementation answers, on how many rows stand beside a row, or on their types."""

import ast
import os
from collections import defaultdict
from pathlib import Path

import pytest
from cases import sized
from fuzz_thresholds import KINDS, SCORING, SIDES, case, fuzz

import assay
from assay.thresholds import EVER, NAMES, THRESHOLDS, set_to

CASES = int(os.environ.get("ASSAY_FUZZ_THRESHOLDS", sized("16", "8")))
"""How many cases; ASSAY_FUZZ_THRESHOLDS=2000 for a thorough look."""

SEED = os.environ.get("ASSAY_FUZZ_SEED", "0")


@pytest.mark.usefixtures("small")
def test_every_verdict_is_that_of_the_row_loop_on_both_sides_of_every_threshold():
    tried = set()
    found = fuzz(range(CASES), SEED, tried)
    assert found["found"] == []
    kinds = {kind.__name__ for kind in KINDS}
    assert {*found["compared"]} == {*kinds, "cases"}
    sides = defaultdict(set)
    for name, side in tried:
        sides[name].add(side)
    assert sides == {name: {*SIDES} for name in SCORING}


def test_a_case_is_the_same_wherever_it_is_made():
    for number in range(len(KINDS)):
        (kind, frame, verifiers, rng), (again, other, others, draws) = case("5", number), case("5", number)
        assert kind is again
        assert frame.equals(other)
        assert len(verifiers) == len(others)
        assert rng.random() == draws.random()


def test_thresholds_are_read_when_they_are_used():
    engine = Path(assay.__file__).parent
    for path in engine.rglob("*.py"):
        source = path.read_text("utf-8")
        if "THRESHOLDS." not in source:
            continue
        tree = ast.parse(source)
        at_load = [node for node in tree.body if not isinstance(node, ast.FunctionDef | ast.ClassDef)]
        read = [node for top in at_load for node in ast.walk(top) if isinstance(node, ast.Attribute)]
        assert not [node for node in read if ast.unparse(node).startswith("THRESHOLDS.")], path


def _values():
    return {name: getattr(THRESHOLDS, name) for name in NAMES}


def test_every_threshold_is_read_by_something():
    sources = [path.read_text("utf-8") for path in Path(assay.__file__).parent.rglob("*.py")]
    unread = [name for name in NAMES if not any(f"THRESHOLDS.{name}" in text for text in sources)]
    assert unread == []


def test_thresholds_come_back():
    before = _values()
    with set_to(small_batch=EVER, piece=1):
        assert _values() == before | {"small_batch": EVER, "piece": 1}
    assert _values() == before
    with pytest.raises(AttributeError, match="unknown thresholds: small"), set_to(small=1):
        pass
