"""The summary of a result that is there already, its means by group, and what became of each row."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import polars as pl

from assay.checks.registry import CHECKS
from assay.expressions.shared_columns import exactly
from assay.insight import stats
from assay.insight.results import Result, open_result
from assay.names import FUNCTION, HIDDEN
from assay.scoring.summary import CheckSummary, Summary

MOST_VALUES = 2_000  # of a column whose means a summary holds: those with the least mean

_TASK = HIDDEN + "task/"


def summarize(result: Any, *, by: Sequence[str] | str = ()) -> Summary:
    """Return the numbers of a result: what ``assay.score_file`` returns for the run that made it.

    Args:
        result: A frame of ``assay.score``, a parquet file of ``assay score``, or a folder of parts.
        by: Columns for whose values ``Summary.by`` has the mean, the pass rate, and their intervals.

    Returns:
        The summary. A frame does not say which weights and types its checks have: they are None and ``""``.

    Raises:
        InputError: The result cannot be read.
        UsageError: A column does not exist.

    Example:
        >>> import assay
        >>> frame = assay.score([{"completion": "no"}], {"checks": [{"type": "contains", "value": "refund"}]})
        >>> assay.summarize(frame)
        <Summary: 1 row · mean reward 0 · pass rate 0 %>
    """
    opened = open_result(result)
    names = opened.keys([by] if isinstance(by, str) else by, "--by")
    summary = _numbers(opened)
    _count_lines(opened, summary)
    if opened.has_outcome:
        summary.count_outcomes(outcomes(opened))
    summary.out = None if opened.name == "the frame" else opened.name
    summary.root = str((opened.provenance.get("content") or {}).get("root") or "")
    summary.by = by_group(opened, names)
    return summary


def outcomes(result: Any) -> pl.Series:
    r"""Return the outcome of each row of a result, also of one that was scored without ``outcome``.

    It is the first that holds: ``unscored``, no reward; ``pass``; ``error``, scoring it met one; ``truncated``, the rollout ended at a
    limit, as its columns say (``finish_reason`` and others); ``not_found``, a check found nothing to compare, such as an answer in a
    box; ``fail``. So ``pass`` and ``unscored`` are exactly the rows that passed and that have no reward.

    Args:
        result: A parquet file of ``assay score``, a folder of parts, or a Polars frame with ``reward`` and ``passed``.

    Returns:
        A Series of String named ``outcome``, a value for each row, in order; the column of the result if it was scored with ``outcome``.

    Raises:
        InputError: The result cannot be read, or has no ``reward`` or no ``passed``.

    Example:
        >>> import assay
        >>> spec = {"checks": [{"type": "equals", "value": "4", "on": ["boxed"]}]}
        >>> rows = [{"completion": "4"}, {"completion": "4", "finish_reason": "length"}, {"completion": r"\boxed{5}"}]
        >>> assay.outcomes(assay.score(rows, spec)).to_list()
        ['not_found', 'truncated', 'fail']
    """
    opened = open_result(result)
    return opened.collect(opened.frame.select(opened.outcome)).to_series()


def _numbers(result: Result) -> Summary:
    reward = pl.col("reward")
    passed = pl.col("passed").sum() if "passed" in result.schema else pl.lit(0)
    errors = pl.col("error").count() if "error" in result.schema else pl.lit(0)
    counts = [pl.len().alias("rows"), reward.count().alias("scored"), reward.sum().alias("total")]
    counts += [passed.alias("passed"), errors.alias("errors")]
    for check in result.checks:
        score = exactly(check.column).cast(pl.Float64)
        falls_short = score < 1
        if check.type == FUNCTION and check.weight is not None and check.weight <= 0:  # of a rubric
            falls_short = (score > 0) & (check.weight < 0)
        numbers = pl.struct(rows=score.count(), failures=falls_short.sum(), total=score.sum())
        counts.append(numbers.alias(check.column))
    row = result.collect(result.frame.select(counts)).to_dicts()[0]
    summary = Summary([], list(result.notes), total=float(row["total"]))
    for check in result.checks:
        entry = CheckSummary(check.name, check.type, check.weight)
        entry.rows, entry.failures, entry.total = row[check.column].values()
        summary.checks.append(entry)
    summary.rows, summary.scored, summary.passed, summary.errors = (
        int(row[name] or 0) for name in ("rows", "scored", "passed", "errors")
    )
    return summary


def _count_lines(result: Result, summary: Summary) -> None:
    entries = {check.id: check for check in summary.checks}
    joints = {check.type: check.traits.separator for check in CHECKS}
    for check, text, rows, _ in result.lines("feedback").rows():
        if (entry := entries.get(check)) is not None:
            joint = joints.get(entry.type)
            for reason in text.split(joint) if joint else [text]:
                entry.reasons[reason] += rows
    for check, _, rows, _ in result.lines("error").rows():
        if (entry := entries.get(check)) is not None:
            entry.errors += rows
    if "error" in result.schema and summary.scored < summary.rows:
        unscored = result.frame.filter(pl.col("reward").is_null()).group_by(pl.col("error").cast(pl.String)).len()
        reasons = {reason or "no reason given": rows for reason, rows in result.collect(unscored).rows()}
        summary.unscored = Counter(reasons)


def by_group(result: Any, by: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Return, for the values of each column, the mean reward and the pass rate over groups, with intervals clustered by task.

    Each column has a list of its values in order, each with ``value``, ``rows``, ``scored``, ``groups``, ``tasks``, ``few``,
    ``mean_reward``, ``mean_reward_ci95``, ``pass_rate``, ``pass_rate_ci95``; of a column with many values those with the least mean.
    """
    opened = open_result(result)
    return {name: _of_column(opened, name) for name in opened.keys(by, "--by")}


def _of_column(result: Result, name: str) -> list[dict[str, Any]]:
    tasks = result.tasks()
    keys = [key for key in dict.fromkeys((*result.groups(tasks), *tasks)) if key != name]
    reward = pl.col("reward")
    passed = pl.col("passed").sum().cast(pl.Int64) if "passed" in result.schema else pl.lit(None, pl.Int64)
    counts = [pl.len().cast(pl.Int64).alias("rows"), reward.count().cast(pl.Int64).alias("scored")]
    groups = result.frame.group_by(exactly(name).alias("value"), *map(exactly, keys))
    table = result.collect(groups.agg(*counts, reward.sum().alias("total"), passed.alias("passed")))
    cluster = [exactly("value") if task == name else exactly(task) for task in tasks]
    has_task = pl.all_horizontal(part.is_not_null() for part in cluster) if cluster else pl.lit(value=False)
    task = (pl.struct(cluster) if cluster else pl.lit(None)).alias(_TASK)
    table = table.with_columns(task, has_task.alias("has_task"))
    means = table.group_by("value").agg((pl.col("total") / pl.col("scored")).mean().fill_nan(None).alias("mean"))
    if means.height > MOST_VALUES:
        least = means.sort("mean", "value", nulls_last=True).head(MOST_VALUES)
        table = table.join(least.select("value"), on="value", nulls_equal=True)
    entries = [_of_value(part) for part in table.partition_by("value", maintain_order=False)]
    return sorted(entries, key=lambda entry: (entry["value"] is None, str(entry["value"])))


def _of_value(groups: pl.DataFrame) -> dict[str, Any]:
    value = groups["value"][0]
    value = value if isinstance(value, str | int | float | None) else str(value)
    numbers = {"value": value, "rows": int(groups["rows"].sum()), "scored": int(groups["scored"].sum())}
    groups = groups.filter(pl.col("scored") > 0)
    with_task = groups.filter("has_task")
    tasks = with_task.select(pl.col(_TASK).n_unique()).item() if with_task.height else 0
    of = with_task if with_task.height else groups  # without tasks: the mean over groups, and no interval
    entry = numbers | {"groups": of.height, "tasks": tasks, "few": 0 < tasks < stats.FEW_TASKS}
    for name, column in (("mean_reward", "total"), ("pass_rate", "passed")):
        share = pl.col(column) / pl.col("scored")
        values = of.select(_TASK, "scored", v=share, low=share, high=share, n=pl.lit(1, pl.Int64)).drop_nulls("v")
        entry[name] = stats.mean(values["v"])
        sums = values.group_by(_TASK).agg(pl.col("v", "n").sum(), pl.col("low").min(), pl.col("high").max())
        is_single = values["scored"].max() == 1
        _, _, low, high = stats.clustered_mean(sums, is_single=is_single, is_rate=column == "passed")
        is_known = tasks > 1 and entry[name] is not None and low is not None and high is not None
        entry[f"{name}_ci95"] = [low, high] if is_known else None
    return entry
