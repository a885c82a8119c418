"""Worked cases of what ``assay.insight`` computes: they are not part of the project."""

from types import SimpleNamespace

import polars as pl
from worked_cases import worked

from assay.insight.diffing import comparing_again
from assay.writing.digests import ContentDigest

__all__ = ["content_of", "golden", "golden_rows", "rescored"]


def golden(name):
    """A worked case: its ``input``, what to ``expect``, and the ``tolerance``, 0 if it is exact; skips where there are none."""
    case = worked("insight", "cases", name)
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
