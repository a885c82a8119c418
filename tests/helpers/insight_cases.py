"""Worked cases of what ``assay.insight`` computes: they are not part of the project."""

import json
from functools import cache
from types import SimpleNamespace

import polars as pl
import pytest
from cases import DATA

from assay.insight.diffing import comparing_again
from assay.writing.digests import ContentDigest

__all__ = ["content_of", "golden", "golden_rows", "rescored"]

GOLDENS = DATA / "insight_goldens.json"


@cache
def _cases():
    return json.loads(GOLDENS.read_text("utf-8"))["cases"]


def golden(name):
    """A worked case: its ``input``, what to ``expect``, and the ``tolerance``, 0 if it is exact; skips where there are none."""
    if not GOLDENS.exists():
        pytest.skip(f"the worked cases are not there: {GOLDENS}")
    case = _cases()[name]
    tolerance = 0 if case["tolerance"] == "exact" else case["tolerance"]
    return SimpleNamespace(input=case["input"], expect=case["expect"], tolerance=tolerance)


def golden_rows():
    """The 48 rollouts of two models that several cases are about: ``reward``, ``passed``, ``vote`` and three scores."""
    return pl.DataFrame(golden("whatif.rewards").input["rows"])


def content_of(frames, schema):
    """The content of a result, given its rows in order."""
    digest = ContentDigest(schema)
    for frame in frames:
        digest.add(frame)
    return digest.content()


def rescored(result, **options):
    """What differs between a result and what is made of its rollouts again."""
    with comparing_again(result, **options) as (found, _):
        return found
