"""Parts of a report that are about rewards: the summary, the histogram, rewards by model, task and step, and drift."""

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from assay.insight import stats
from assay.insight.reports.columns import Columns, Keys, mean_of

_BINS = 20
_MOST_VALUES, _WORST, _BEST, _MOST_POINTS = 50, 20, 5, 200
_LEAST_STEPS = 6


def histogram_of(rewards: pl.Series) -> dict[str, Any]:
    """Count rewards in 20 bins: of [0, 1] if all lie there, else from the least to the greatest; the last bin is closed."""
    values = rewards.drop_nulls()
    counts, low, high = [0] * _BINS, 0.0, 1.0
    if len(values):
        least, greatest = float(values.min()), float(values.max())  # type: ignore[arg-type]
        if least < 0 or greatest > 1:
            low, high = least, greatest
        scale = 1.0 if math.isfinite(high - low) else 0.5  # the difference of two large numbers is none
        width = high * scale - low * scale
        place = (values * scale - low * scale) / width * _BINS if width else values * 0.0
        found = place.floor().clip(0, _BINS - 1).cast(pl.UInt8).value_counts()
        counts = [0] * _BINS
        for place_of_bin, rows in found.iter_rows():
            counts[place_of_bin] = rows
    ends = {"zeros": int((values == 0.0).sum()), "ones": int((values == 1.0).sum())}
    return {"bins": counts, "range": [low, high], **ends, "unscored": len(rewards) - len(values)}


def summary_of(columns: Columns) -> dict[str, Any]:
    """Return what the rewards of all rows come to."""
    rows, scored = columns.rows, columns.scored
    passed = None if columns.passed is None else int(columns.passed.sum())
    mean = mean_of(columns.reward.drop_nulls())
    summary: dict[str, Any] = {"rows": rows, "scored": scored, "unscored": rows - scored}
    summary |= {"errors": None if columns.failed is None else int(columns.failed.sum())}
    summary |= {"mean": mean, **_interval(columns, columns.reward), "passed": passed}
    summary |= {"pass_rate": passed / scored if passed is not None and scored else None}
    of_passes = None if columns.passed is None else _interval(columns, columns.passed.cast(pl.Float64), is_rate=True)
    summary |= {"pass_rate_ci95": of_passes and of_passes["ci95"]}
    length = columns.length
    summary |= {"length": None if length is None else mean_of(length.drop_nulls().cast(pl.Float64))}
    tasks, groups = columns.task, columns.group
    summary |= {
        "tasks": None if tasks is None else tasks.codes.n_unique() - (tasks.codes.null_count() > 0),
        "without_task": None if tasks is None else tasks.codes.null_count(),
        "groups": None if groups is None else groups.codes.n_unique() - (groups.codes.null_count() > 0),
    }
    return summary | _flat_groups(columns)


def _flat_groups(columns: Columns) -> dict[str, Any]:
    if columns.in_groups is None:
        return {"compared_groups": None, "flat": None, "all_zero": None, "all_one": None}
    grouped, reward = columns.in_groups, pl.col("r")
    ends = (
        pl.DataFrame({"g": grouped.group, "r": grouped.reward})
        .drop_nulls()
        .group_by("g", maintain_order=True)
        .agg(pl.len().alias("n"), reward.min().alias("min"), reward.max().alias("max"))
        .filter(pl.col("n") > 1)
    )
    flat = ends.filter(pl.col("min") == pl.col("max"))["min"]
    numbers = {"flat": len(flat), "all_zero": int((flat == 0.0).sum()), "all_one": int((flat == 1.0).sum())}
    shares = {name: number / ends.height if ends.height else None for name, number in numbers.items()}
    return {"compared_groups": ends.height, **shares}


def _interval(columns: Columns, values: pl.Series, *, is_rate: bool = False) -> dict[str, Any]:
    return _interval_of(_sums(pl.DataFrame({"task": columns.clusters, "v": values})), is_rate=is_rate)


def _sums(frame: pl.DataFrame, *keys: str) -> pl.DataFrame:
    value = pl.col("v")
    return (
        frame.drop_nulls()
        .group_by(*keys, "task", maintain_order=True)
        .agg(
            value.sum().alias("sum"),
            pl.len().cast(pl.Int64).alias("n"),
            value.min().alias("min"),
            value.max().alias("max"),
        )
        .sort(*keys, "task")
    )


def _interval_of(sums: pl.DataFrame, *, is_rate: bool = False) -> dict[str, Any]:
    tasks, rows = sums.height, int(sums["n"].sum() or 0)
    ends: Sequence[float | None] = (None, None)
    se = None
    if tasks > 1:
        least, greatest = float(sums["min"].min()), float(sums["max"].max())  # type: ignore[arg-type]
        mean = least if least == greatest else float(sums["sum"].sum()) / rows
        se = 0.0 if least == greatest else stats.finite(stats.clustered_se(sums["sum"], sums["n"], mean))
        binary = rows == tasks and bool(sums["sum"].is_in([0.0, 1.0]).all())
        ends = stats.wilson(int(sums["sum"].sum()), tasks) if binary else stats.t_test(mean, se, tasks - 1)[-2:]
        ends = [end if end is None or not is_rate else min(1.0, max(0.0, end)) for end in ends]
    interval = None if ends[0] is None or ends[1] is None else [*ends]
    return {"se": se, "ci95": interval, "clusters": tasks, "few": 0 < tasks < stats.FEW_TASKS}


def by_keys(columns: Columns, keys: Keys, kind: str) -> dict[str, Any]:
    """Return what the rewards of each value come to."""
    frame = {"key": keys.codes, "reward": columns.reward}
    optional = {"passed": columns.passed, "error": columns.failed, "length": columns.length}
    frame |= {name: series for name, series in optional.items() if series is not None}
    table = pl.DataFrame(frame).filter(pl.col("key").is_not_null())
    size = max(1, math.ceil(keys.values.height / _MOST_POINTS)) if kind == "step" else 1
    table = table.with_columns(pl.col("key") // size) if size > 1 else table
    reward = pl.col("reward")
    numbers = [pl.len().alias("rows"), reward.count().alias("scored"), reward.sum().alias("sum")]
    numbers += [reward.min().alias("min"), reward.max().alias("max")]
    sums = {"passed": pl.col("passed").sum(), "error": pl.col("error").sum(), "length": pl.col("length").mean()}
    numbers += [sums[name].alias(name) for name in sums if name in frame]
    found = table.sort("key", maintain_order=True).group_by("key", maintain_order=True).agg(numbers)
    flat = pl.col("min") == pl.col("max")
    mean = pl.when(flat).then("min").when(pl.col("scored") > 0).then(pl.col("sum") / pl.col("scored"))
    found = found.with_columns(mean.alias("mean"))
    total = found.height
    found = _kept(found, kind)
    intervals = {} if kind == "task" else _intervals(columns, keys, size, found["key"])
    entries = [_entry(row, keys, size, intervals) for row in found.iter_rows(named=True)]
    return {"columns": list(keys.names), "values": total, "entries": entries}


def _kept(found: pl.DataFrame, kind: str) -> pl.DataFrame:
    if kind == "task":
        scored = found.filter(pl.col("mean").is_not_null()).sort("mean", "key")
        if scored.height <= _WORST + _BEST:
            return scored
        best = scored.sort("mean", "key", descending=[True, False]).head(_BEST).reverse()
        return pl.concat([scored.head(_WORST), best])
    if kind == "step" or found.height <= _MOST_VALUES:
        return found
    return found.sort("rows", "key", descending=[True, False]).head(_MOST_VALUES).sort("key")


def _intervals(columns: Columns, keys: Keys, size: int, kept: pl.Series) -> dict[int, dict[str, Any]]:
    codes = keys.codes // size if size > 1 else keys.codes
    frame = pl.DataFrame({"key": codes, "task": columns.clusters, "v": columns.reward})
    sums = _sums(frame.filter(pl.col("key").is_in(kept.implode())), "key")
    return {part["key"][0]: _interval_of(part) for part in sums.partition_by("key", maintain_order=True)}


def _entry(row: dict[str, Any], keys: Keys, size: int, intervals: dict[int, dict[str, Any]]) -> dict[str, Any]:
    first = row["key"] * size
    last = min(first + size, keys.values.height) - 1
    entry: dict[str, Any] = {"of": dict(zip(keys.names, map(_plain, keys.values.row(first)), strict=True))}
    entry |= {"to": dict(zip(keys.names, map(_plain, keys.values.row(last)), strict=True))} if last > first else {}
    interval = intervals.get(row["key"], {"ci95": None, "few": None})
    entry |= {"rows": row["rows"], "scored": row["scored"], "mean": stats.finite(row["mean"])}
    entry |= {"ci95": interval["ci95"], "few": interval["few"]}
    passed = row.get("passed")
    entry |= {"pass_rate": passed / row["scored"] if passed is not None and row["scored"] else None}
    return entry | {"errors": row.get("error"), "length": row.get("length")}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return stats.finite(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def drift_of(columns: Columns, step: Keys) -> dict[str, Any] | None:
    """Compare the mean reward of the last third of the steps with that of the first; None for fewer than six steps."""
    frame = pl.DataFrame({"key": step.codes, "r": columns.reward}).drop_nulls().sort("key", maintain_order=True)
    if len(step.values) and (nulls := step.values.to_series().null_count()):
        frame = frame.filter(pl.col("key") < step.values.height - nulls)
    reward = pl.col("r")
    means = frame.group_by("key", maintain_order=True).agg(
        pl.when(reward.min() == reward.max()).then(reward.min()).otherwise(reward.sum() / pl.len()).alias("mean")
    )["mean"]
    if (steps := len(means)) < _LEAST_STEPS:
        return None
    third = steps // 3
    first, last = means.head(third), means.tail(third)
    (mean, variance), (other, other_variance) = _moments(last), _moments(first)
    test = stats.welch(mean, variance, third, other, other_variance, third)
    interval = None if test.low is None or test.high is None else [test.low, test.high]
    numbers = {"steps": steps, "compared": third, "first": other, "last": mean, "difference": test.mean}
    return numbers | {"se": test.se, "t": test.t, "p": test.p, "ci95": interval}


def _moments(values: pl.Series) -> tuple[float, float]:
    mean = mean_of(values) or 0.0
    if values.min() == values.max():
        return mean, 0.0
    centred = values - mean
    return mean, float((centred * centred).sum()) / (len(values) - 1)
