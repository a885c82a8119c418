"""What a page in a file leaves out of its overview, so that it is not larger than it may be."""

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from assay.errors import counted, listed
from assay.insight.reports.page import as_page, costliest
from assay.insight.reports.rows import Data

_T = TypeVar("_T")

_ENTRIES = (1_000, 300, 100, 30, 10, 3, 0)
"""How many entries of each list an overview may keep: the first of these that leaves room for rows."""

_NOTES = 20


def fitted(data: Data, max_size: int) -> tuple[Data, list[int], int]:
    """Return a page whose overview takes at most half of what there is room for, the places of its checks, and its bytes."""
    bare = _size_of(_with_entries(data, 0)[0])
    for most in _ENTRIES:
        less, checks = _with_entries(data, most)
        size = _size_of(less)
        if 2 * (size - bare) <= max_size - bare:
            break
    return less, checks, size


def _size_of(data: Data) -> int:
    return len(as_page(data).encode())


def _with_entries(data: Data, most: int) -> tuple[Data, list[int]]:
    """Return a page with at most so many entries in each list: the costliest checks, the models of most rows, the first of others."""
    overview, compare = dict(data["overview"]), data["compare"]
    left_out = Counter[str]()

    def first(values: Sequence[_T], noun: str) -> list[_T]:
        left_out[noun] += len(values[most:])
        return list(values[:most])

    def at(places: Sequence[int], values: Sequence[_T], noun: str = "") -> list[_T]:
        left_out[noun] += len(values) - len(places)
        return [values[place] for place in places]

    checks, heat = costliest(overview["checks"], most), overview["heat"]
    models = sorted(first(sorted(range(len(heat["rows"])), key=heat["rows"].__getitem__, reverse=True), "model"))
    heat = {name: at(models, heat[name]) for name in ("models", "cells", "reward", "rows")}
    overview["heat"] = heat | {"cells": [at(checks, cells) for cells in heat["cells"]]}
    overview["checks"] = [
        check | {"reasons": first(check["reasons"], "reason")} for check in at(checks, overview["checks"], "check")
    ]
    overview["by"] = {
        name: values | {"entries": first(values["entries"], f"{name} in a table")}
        for name, values in overview["by"].items()
        if name != "step"
    }
    if most and (steps := data["overview"]["by"].get("step")):  # up to 200, and a line has all of its points
        entries = [
            entry | {"checks": at(checks, entry["checks"])} if "checks" in entry else entry
            for entry in steps["entries"]
        ]
        overview["by"]["step"] = steps | {"entries": entries}
    overview["findings"] = first(overview["findings"], "finding")
    overview["pairs"] = first(overview["pairs"], "pair of checks")
    overview["notes"] = overview["notes"][:_NOTES]
    if compare:
        nouns = {"checks": "check", "signatures": "kind of flip", "examples": "example"}
        compare = compare | {name: first(compare[name], noun) for name, noun in nouns.items()}
        compare |= {name: first(compare[name], "check") for name in ("only_before", "only_after")}
    del left_out[""]
    lack = [counted(number, noun) for noun, number in left_out.items() if number]
    note = [f"left out, for the page's size: {listed(lack)}; the JSON data has all"] if lack else []
    return data | {"overview": overview, "compare": compare, "notes": [*data["notes"], *note]}, checks
