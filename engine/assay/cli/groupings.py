"""Print what ``assay groups`` computes."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl
from rich.console import Console

from assay.cli.tables import print_notes, print_table
from assay.errors import counted
from assay.writing.numbers import interval, number, p_value

if TYPE_CHECKING:
    from assay.insight.grouping import Groups

_PAIRS_SHOWN = 20
_MODELS_SHOWN = 20


def print_groups(console: Console, groups: "Groups") -> None:
    """Print the summary of groups, a line for each model, and the pairs."""
    facts = groups.facts
    numbers = (counted(facts[name], name.removesuffix("s")) for name in ("rows", "groups", "tasks"))
    console.print(" · ".join(numbers), highlight=False)
    by, models = list(facts["by"]), groups.as_json()["summary"]
    few, left_out, models = _few(models), len(models) - _MODELS_SHOWN, models[:_MODELS_SHOWN]
    names = [name for name in (models[0]["metrics"] if models else ()) if name not in _REPEATED]
    passing = [name for name in names if name.startswith("pass")]
    shares = [name for name in names if name.startswith(("flat", "all_"))]
    extremes = [name for name in names if "@" in name and name not in passing]
    keys, means = dict.fromkeys(by, False), {"groups": True, "mean": True, "95 %": True}
    rest = [passing[at : at + _WIDE] for at in range(_FIRST, len(passing), _WIDE)]
    rest += [extremes[at : at + _WIDE] for at in range(0, len(extremes), _WIDE)]
    print_table(
        console,
        keys | means | dict.fromkeys(passing[:_FIRST], True),
        ([*_values(model, by), *_mean(model), *_cells(model, passing[:_FIRST])] for model in models),
    )
    for part in rest:
        console.print()
        print_table(
            console,
            keys | dict.fromkeys(part, True),
            ([*_values(model, by), *_cells(model, part)] for model in models),
        )
    if not any(model["metrics"]["flat"]["groups"] for model in models):
        shares = []  # groups of one row
    console.print()
    print_table(
        console,
        keys | dict.fromkeys([*shares, "row mean", "design effect"], True),
        ([*_values(model, by), *_cells(model, shares), *_row_mean(model)] for model in models),
    )
    if left_out > 0:
        line = f"… and {left_out:,} more of {', '.join(by)} in --json"
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    if groups.pairs.height:
        _print_pairs(console, groups.pairs)
    print_notes(console, [*few, *groups.notes])


_FIRST, _WIDE = 5, 8
"""Most metrics beside the mean, and in a table of their own."""

_REPEATED = ("pass^1", "best@1", "worst@1", "maj@1")
"""Metrics of one row that are another one, too."""


def _values(model: Mapping[str, Any], by: Sequence[str]) -> list[str]:
    return ["–" if model["of"][name] is None else str(model["of"][name]) for name in by]


def _mean(model: Mapping[str, Any]) -> list[str]:
    mean = model["metrics"]["mean"]
    return [f"{mean['groups']:,}", number(mean["value"]), interval(mean["ci95"], ".3f")]


def _cells(model: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    return [number(model["metrics"][name]["value"]) for name in names]


def _row_mean(model: Mapping[str, Any]) -> list[str]:
    row_mean = model["metrics"]["row_mean"]
    return [number(row_mean["value"]), number(row_mean["design_effect"], ".2f")]


def _few(models: Sequence[Mapping[str, Any]]) -> list[str]:
    few = [model["metrics"]["mean"]["tasks"] for model in models if model["metrics"]["mean"]["few"]]
    return [f"few tasks ({min(few)}): an interval over fewer than 30 is only roughly one of 95 %"] if few else []


def _print_pairs(console: Console, pairs: pl.DataFrame) -> None:
    columns = {"pair": False, "tasks": True, "difference": True, "95 %": True, "p": True, "Holm": True}
    columns |= {"won:tied:lost": True, "r": True}
    first = pairs.sort("p", nulls_last=True, maintain_order=True).head(_PAIRS_SHOWN)
    rows = (
        (
            *(f"{row['b']} − {row['a']}", f"{row['tasks']:,}", number(row["difference"], "+.4f")),
            *(
                interval((row["low"], row["high"]), ".3f"),
                p_value(row["p"]),
                p_value(row["p_holm"]),
            ),
            *(f"{row['wins']:,}:{row['ties']:,}:{row['losses']:,}", number(row["correlation"], ".2f")),
        )
        for row in first.iter_rows(named=True)
    )
    console.print()
    print_table(console, columns, rows)
    if (more := pairs.height - first.height) > 0:
        console.print(f"… and {counted(more, 'pair')} more in --json", highlight=False)
