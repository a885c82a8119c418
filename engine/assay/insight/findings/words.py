"""The words of findings: short, with names in backticks, so that they read well in a terminal and on a page."""

import json
from collections.abc import Sequence
from typing import Any

import polars as pl

from assay.errors import clipped, counted, printable
from assay.insight.findings.facts import Rate, Tally
from assay.writing.numbers import count, percent

NEAR = {
    "form": "are the gold in other letters or blanks",
    "wrapped": "are the gold with marks around it",
    "number": "are the number of the gold in another form",
    "rounded": "are the gold, rounded",
    "begins": "begin with the gold",
    "ends": "end with the gold",
    "contains": "contain the gold",
    "part": "are a part of the gold",
}
"""What answers do that are near to the gold."""

CLOSE = "are close to the gold"
"""What they do where they are near in several ways."""

_NAME, _QUOTED, _CAUSE = 40, 32, 80


def shown(text: str, most: int = _NAME) -> str:
    """Return a text from data on one line, cut."""
    return printable(clipped(text, most))


def name(text: str) -> str:
    """Return a name that stands in a spec."""
    return f"`{shown(text)}`"


def cause(text: str) -> str:
    """Return a template of reasons or errors."""
    return shown(text, _CAUSE)


def of_model(model: Any) -> str:
    """Return whose rows nearly all are; ``""`` if they are of several models."""
    return "" if model is None else f", nearly all of {shown(str(model))}"


def frequency(passes: int, rows: int) -> str:
    """Return how often something passes."""
    if not passes or passes == rows:
        return "always passes" if passes else "never passes"
    return "nearly always passes" if 2 * passes > rows else "rarely passes"


def passing(passes: int, rows: int) -> str:
    """Return which share of the rows passes."""
    return f"{percent(passes / rows)} of {counted(rows, 'row')} pass"


def span(rates: Sequence[Rate]) -> str:
    """Return the pass rates of other models: the least and the greatest."""
    least, greatest = (percent(end(rate.share for rate in rates)) for end in (min, max))
    others = "the other model" if len(rates) == 1 else "the other models"
    return f"{others} {least}" if least == greatest else f"{others} {least} to {greatest}"


def share(rows: float, of: int, noun: str = "row") -> str:
    """Return which share of the rows something is."""
    return f"{percent(rows / of)} of {counted(of, noun)}"


def quoted_reading(read: str | None, expected: str | None) -> str:
    """Return what was read and expected on a row."""
    return ", ".join(
        f"{verb} {printable(json.dumps(clipped(text, _QUOTED), ensure_ascii=False))}"
        for verb, text in (("read", read), ("expected", expected))
        if text is not None
    )


def rows_in(weights: pl.Series) -> str:
    """Return how many rows those stand for that were read."""
    return f"{'about ' if (weights > 1).any() else ''}{count(round(weights.sum()))}"


def sampled(rows: pl.DataFrame, read: int) -> dict[str, int]:
    """Return how many rows were read, where some stand for others, too."""
    return {"sampled": read} if (rows["weight"] > 1).any() else {}


def stake(tally: Tally) -> str:
    """Return what a check is worth; ``""`` if that is unknown."""
    role, effect = tally.check.role, percent(tally.check.effect)
    if tally.check.weight is None:
        return ""
    if role == "gate":
        return "It is a gate: a row that fails gets no reward."
    return f"It takes off {effect}." if role == "penalty" else f"It has {effect} of the weight."
