"""What the findings of a result are made of, and what finds each kind."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from assay.aggregating.outcomes import finds_nothing_expr
from assay.aggregating.templates import template_expr
from assay.insight.findings import checks, groups, rollouts
from assay.insight.findings.columns import Keys, ResultColumns
from assay.insight.findings.facts import Facts, Tally
from assay.insight.findings.found import OF_FEW, Kind
from assay.insight.findings.limits import LIMITS
from assay.insight.results import Result
from assay.scoring.score_columns import ScoreColumn
from assay.steps.subject import NOTHING

if TYPE_CHECKING:
    from assay.insight.findings.texts import Texts

KINDS: Mapping[str, Kind] = {
    **OF_FEW,
    "outlier": checks.outlier,
    "near_miss": checks.near_miss,
    "not_found": checks.not_found,
    "dead": checks.dead,
    "truncated": rollouts.truncated,
    "flat": rollouts.flat,
    "duplicates": rollouts.duplicates,
    "mixed": groups.mixed,
    "shared_prompt": groups.shared_prompt,
    "odd_size": groups.odd_size,
    "length": rollouts.length,
    "drift": rollouts.drift,
    "saturated": checks.saturated,
    "redundant": checks.redundant,
}
"""What finds each kind."""


def tally_of(place: int, check: ScoreColumn, scores: pl.Series, columns: ResultColumns) -> Tally:
    """Count the rows that fail a check, given its scores."""
    failing = (scores != 1.0).fill_null(value=False)
    rows = len(scores) - scores.null_count()
    present = scores.is_not_null()
    is_usual = rows == columns.scored and bool((present == columns.reward.is_not_null()).all())
    return Tally(check, place, rows, int(failing.sum()), failing=failing, present=None if is_usual else present)


def facts_of(
    columns: ResultColumns,
    tallies: Sequence[Tally],
    feedback: pl.DataFrame,
    pairs: Sequence[Mapping[str, Any]],
    step: Keys | None,
    rollouts: Any,
    *,
    text: bool,
    shown: Sequence[int] = (),
) -> "tuple[Facts, Texts]":
    """Gather what findings are made of, with ``text`` from the texts, too, and these, with those of the rows that are ``shown``.

    Args:
        columns: The columns of the result.
        tallies: Its checks.
        feedback: The lines of its feedback, as ``Result.lines`` has them.
        pairs: Pairs of checks that fail together.
        step: Its steps.
        rollouts: The rollouts that were scored, for the texts.
        text: Whether to read texts.
    """
    from assay.insight.findings.texts import Texts, texts_of  # slow: it imports all graders

    result = columns.result
    errors, unscored = _errors(result), _unscored(result, columns.rows - columns.scored)
    tallies = _with_errors(_with_nothing(result, tallies, feedback), errors)
    facts = Facts(columns.rows, columns.scored, tallies, errors, unscored, columns, pairs=pairs, step=step)
    texts = texts_of(columns, tallies, facts.model, rollouts, shown) if text else Texts()
    is_cut = result.cut_off()
    ended = (
        None
        if is_cut is None
        else result.collect(result.frame.select(is_cut.fill_null(value=False).alias("cut"))).to_series()
    )
    of_texts = {name: getattr(texts, name) for name in ("readings", "duplicates", "in_groups", "searched")}
    return replace(facts, cut_off=ended, groups=groups.groups_of(columns), **of_texts), texts


def _errors(result: Result) -> dict[tuple[str, str], int]:
    """Count the rows with a reward and an error, by check and template."""
    lines = result.lines("error", pl.col("reward").is_not_null()).drop_nulls("check")
    known = lines.filter(pl.col("check").is_in([check.name for check in result.checks]))
    return {(check, template): rows for check, template, rows in _by_template(known, "check").iter_rows()}


def _unscored(result: Result, rows: int) -> dict[str, int]:
    """Count the rows without a reward, by the template of their error."""
    lines = (
        result.lines("error", pl.col("reward").is_null()).unique("row", keep="first", maintain_order=True)
        if rows
        else None
    )
    counts = {} if lines is None else dict(_by_template(lines).iter_rows())
    without = rows - sum(counts.values())
    return counts | ({checks.NO_REASON: without} if without > 0 else {})


def _by_template(lines: pl.DataFrame, *keys: str) -> pl.DataFrame:
    template = template_expr(pl.col("text")).alias("template")
    return lines.group_by(*keys, template, maintain_order=True).agg(pl.col("rows").sum())


def _with_errors(tallies: Iterable[Tally], errors: Mapping[tuple[str, str], int]) -> list[Tally]:
    counts: dict[str, int] = {}
    for (check, _), rows in errors.items():
        counts[check] = counts.get(check, 0) + rows
    return [replace(tally, errors=counts.get(tally.check.name, 0)) for tally in tallies]


def _with_nothing(result: Result, tallies: Sequence[Tally], feedback: pl.DataFrame) -> list[Tally]:
    """Add which rows fail a check because it finds nothing."""
    nothing = feedback.filter(pl.col("text").str.starts_with(NOTHING))
    words = pl.col("text").str.slice(len(NOTHING))
    counts = nothing.group_by("check").agg(pl.col("rows").sum(), words.sort_by("rows", descending=True).first())
    often = {check: text for check, rows, text in counts.iter_rows() if rows >= LIMITS["not_found"]["rows"]}
    begins = {
        tally.place: finds_nothing_expr(pl.col("feedback"), result.labels, [f"{tally.check.name}: "]).fill_null(
            value=False
        )
        for tally in tallies
        if tally.check.name in often
    }
    if not begins:
        return [*tallies]
    found = result.collect(result.frame.select(line.alias(str(place)) for place, line in begins.items()))
    return [
        replace(tally, nothing=found[str(tally.place)] & tally.failing, nothing_in=often[tally.check.name])
        if tally.place in begins
        else tally
        for tally in tallies
    ]
