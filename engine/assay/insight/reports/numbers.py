"""The numbers of a report: what rewards and the scores of checks come to, pairs of checks."""

import math
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import polars as pl

from assay.aggregating.outcomes import OUTCOMES
from assay.expressions.shared_columns import exactly
from assay.frozen import frozen
from assay.insight import stats
from assay.insight.findings.columns import Grouped, Keys, ResultColumns, Sums, centred, mean_of, squares, sums_of
from assay.insight.findings.facts import Tally
from assay.insight.results import Result, sort_key
from assay.insight.stats import finite, ratio
from assay.names import OUTCOME

_BINS = 20
_MOST_VALUES, _WORST, _BEST, _MOST_POINTS, _MOST_CHECKS = 50, 20, 5, 200, 24


def histogram_of(rewards: pl.Series) -> dict[str, Any]:
    """Count rewards in 20 bins: of [0, 1] if all lie there, else from the least to the greatest; the last bin is closed."""
    values = rewards.drop_nulls()
    counts = [0] * _BINS
    places, low, high = bins_of(values)
    for place, rows in places.value_counts().iter_rows():
        counts[place] = rows
    ends = {"zeros": int((values == 0.0).sum()), "ones": int((values == 1.0).sum())}
    return {"bins": counts, "range": [low, high], **ends, "unscored": len(rewards) - len(values)}


def bins_of(rewards: pl.Series) -> tuple[pl.Series, float, float]:
    """Return the bin of each reward in a histogram, null where there is none, and the range of the bins."""
    least, greatest = rewards.min(), rewards.max()
    if least is None or not (least < 0 or greatest > 1):  # type: ignore[operator]
        least, greatest = 0.0, 1.0
    low, high = float(least), float(greatest)  # type: ignore[arg-type]
    scale = 1.0 if math.isfinite(high - low) else 0.5  # the difference of two large numbers is none
    width = high * scale - low * scale
    places = (rewards * scale - low * scale) / width * _BINS if width else rewards * 0.0
    return places.floor().clip(0, _BINS - 1).cast(pl.UInt8), low, high


def summary_of(columns: ResultColumns) -> dict[str, Any]:
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
        "groups": None if groups is None else groups.n_unique() - (groups.null_count() > 0),
    }
    return summary | _flat_groups(columns)


def _flat_groups(columns: ResultColumns) -> dict[str, Any]:
    if columns.group is None:
        return {"compared_groups": None, "flat": None, "all_zero": None, "all_one": None}
    compared, numbers = 0, dict.fromkeys(("flat", "all_zero", "all_one"), 0)
    for ends in columns.compared_groups():
        flat = ends.filter(pl.col("min") == pl.col("max"))["min"]
        compared += ends.height
        for name, number in zip(numbers, (len(flat), (flat == 0.0).sum(), (flat == 1.0).sum()), strict=True):
            numbers[name] += int(number)
    shares = {name: number / compared if compared else None for name, number in numbers.items()}
    return {"compared_groups": compared, **shares}


def _interval(columns: ResultColumns, values: pl.Series, *, is_rate: bool = False) -> dict[str, Any]:
    if columns.task is None:  # a row is a task of its own
        each = pl.DataFrame({"v": values.drop_nulls()}).with_columns(n=pl.lit(1, pl.Int64), low="v", high="v")
        return _interval_of(each, is_rate=is_rate)
    return _interval_of(_task_sums(pl.DataFrame({"task": columns.task.codes, "v": values})), is_rate=is_rate)


def _task_sums(frame: pl.DataFrame) -> pl.DataFrame:
    value = pl.col("v")
    return (
        frame.drop_nulls()
        .group_by("task", maintain_order=True)
        .agg(value.sum(), pl.len().cast(pl.Int64).alias("n"), value.min().alias("low"), value.max().alias("high"))
        .sort("task")
    )


_HIGH = 1 << 32
_FIRST, _SECOND = pl.col("pair") // _HIGH, pl.col("pair") % _HIGH


def _pairs(first: pl.Series, second: pl.Series) -> pl.Series:
    """Return pairs of codes as numbers: Polars groups by one column in less memory than by two."""
    return first.cast(pl.UInt64) * _HIGH + second.cast(pl.UInt64)


def _interval_of(sums: pl.DataFrame, *, is_rate: bool = False) -> dict[str, Any]:
    _, se, low, high = stats.clustered_mean(sums, is_rate=is_rate)
    interval = None if low is None or high is None else [low, high]
    return {"se": se, "ci95": interval, "clusters": sums.height, "few": 0 < sums.height < stats.FEW_TASKS}


def by_keys(columns: ResultColumns, keys: Keys, kind: str) -> dict[str, Any]:
    """Return what the rewards of each value come to."""
    optional = {"passed": columns.passed, "error": columns.failed, "length": columns.length}
    known = {"reward": columns.reward, **{name: series for name, series in optional.items() if series is not None}}
    size = _joined_steps(keys) if kind == "step" else 1
    rows = Grouped.by(keys.codes // size if size > 1 else keys.codes)
    reward = pl.col("reward")
    numbers = [pl.len().alias("rows"), reward.count().alias("scored"), reward.sum().alias("sum")]
    numbers += [reward.min().alias("min"), reward.max().alias("max")]
    sums = {"passed": pl.col("passed").sum(), "error": pl.col("error").sum(), "length": pl.col("length").mean()}
    numbers += [sums[name].alias(name) for name in sums if name in known]
    found = pl.concat(part.group_by("g", maintain_order=True).agg(numbers) for part in rows.parts(**known))
    found = found.rename({"g": "key"})
    flat = pl.col("min") == pl.col("max")
    mean = pl.when(flat).then("min").when(pl.col("scored") > 0).then(pl.col("sum") / pl.col("scored"))
    found = found.with_columns(mean.alias("mean"))
    total = found.height
    found = _kept(found, kind)
    intervals = {} if kind == "task" else _intervals(columns, rows, found["key"])
    entries = [_entry(row, keys, size, intervals) for row in found.iter_rows(named=True)]
    return {"columns": list(keys.names), "values": total, "entries": entries}


def outcomes_of(result: Result) -> dict[str, Any] | None:
    """Count the rows of each model by outcome; None for a result without the column."""
    if not result.has_outcome:
        return None
    names = result.present(["model"])
    counts = [(pl.col(OUTCOME) == name).sum().alias(f"n{at}") for at, name in enumerate(OUTCOMES)]
    model = exactly(names[0]) if names else pl.lit(None)
    grouped = result.frame.group_by(model.alias("model")).agg(pl.len().alias("rows"), *counts)
    table = result.collect(grouped).sort("rows", "model", descending=[True, False], nulls_last=True)
    shown = table.head(_MOST_VALUES)
    shown = shown.sort(sort_key(pl.col("model"), shown.schema["model"]), nulls_last=True)
    entries = [
        {"of": dict.fromkeys(names, model), "rows": rows, "outcomes": dict(zip(OUTCOMES, numbers, strict=True))}
        for model, rows, *numbers in shown.iter_rows()
    ]
    return {"columns": list(names), "values": table.height, "entries": entries}


def _joined_steps(steps: Keys) -> int:
    return max(1, math.ceil(steps.values.height / _MOST_POINTS))


def add_to_steps(
    entries: Sequence[dict[str, Any]], steps: Keys, columns: ResultColumns, checks: Sequence[Tally]
) -> None:
    """Add to the entries of steps the share of groups that are ``flat``, and the pass rates of the first 24 ``checks``."""
    codes = steps.codes // _joined_steps(steps)
    unknown: list[float | None] = [None] * len(entries)
    lines = [_means(codes, check.passing(columns.reward)) for check in checks[:_MOST_CHECKS]]
    lines += [unknown for _ in checks[_MOST_CHECKS:]]
    flat = unknown if columns.group is None else _flat_groups_of(codes, columns.group, columns.reward)
    for entry, share, *rates in zip(entries, flat, *lines, strict=True):
        entry |= {"flat": share, "checks": rates}


def _flat_groups_of(steps: pl.Series, groups: pl.Series, rewards: pl.Series) -> list[float | None]:
    reward, shares = pl.col("reward"), list[pl.DataFrame]()
    for part in Grouped.by(steps).parts(group=groups, reward=rewards):
        pairs = part.select(pair=_pairs(part["g"], part["group"]), reward="reward").drop_nulls("pair")
        ends = pairs.group_by("pair").agg(reward.count().alias("rows"), flat=reward.min() == reward.max())
        compared = ends.select(_FIRST.alias("step"), pl.when(pl.col("rows") > 1).then("flat").cast(pl.Float64))
        every = pl.DataFrame({"step": part["g"].unique()}).join(compared, on="step", how="left")
        shares.append(every.group_by("step").agg(pl.col("flat").mean()).sort("step"))
    return [share for part in shares for share in part["flat"]]


def _means(steps: pl.Series, values: pl.Series) -> list[float | None]:
    frame = pl.DataFrame({"step": steps, "value": values}).drop_nulls("step")
    return frame.group_by("step").agg(pl.col("value").mean()).sort("step")["value"].to_list()


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


def _intervals(columns: ResultColumns, rows: Grouped, kept: pl.Series) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for part in rows.parts(task=columns.clusters, v=columns.reward):
        own = part.filter(pl.col("g").is_in(kept.implode()))
        sums = _task_sums(own.select(task=_pairs(own["g"], own["task"]), v="v"))
        sums = sums.with_columns(key=pl.col("task") // _HIGH)
        found |= {one["key"][0]: _interval_of(one) for one in sums.partition_by("key", maintain_order=True)}
    return found


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


MOST_PAIRED = 400
"""Most checks that are compared in pairs: those that fail most."""

FEW_ROWS, FEW_GROUPS, MANY_ROWS = 20, 20, 100
_SATURATED, _SEPARATES, _AGAINST = (0.01, 0.99), 0.01, -0.2
_NOTHING_LEFT = 1e-12
"""Share of a reward's variance below which what a check leaves of it is rounding."""

MOST_PAIRS = 20
"""Pairs of checks that are shown."""

_SAME, _IMPLIED = 0.95, 0.99


def status_of(numbers: Mapping[str, Any]) -> str:
    """Return what to say of a check: the first that holds."""
    rows, pass_rate = numbers["rows"], numbers["pass_rate"]
    if rows < FEW_ROWS:
        return "few rows"
    if numbers["failures"] in (rows, 0):
        return "never passes" if numbers["failures"] else "never fails"
    if not _SATURATED[0] < pass_rate < _SATURATED[1]:
        return "saturated"
    separates, r = numbers["separates"], numbers["rest_correlation"]
    if separates is not None and numbers["groups"] >= FEW_GROUPS and separates < _SEPARATES:
        return "does not separate"
    return "against the rest" if rows >= MANY_ROWS and r is not None and r <= _AGAINST else "ok"


def numbers_of(scores: pl.Series, coefficient: float | None, columns: ResultColumns) -> dict[str, Any]:
    """Return the numbers of a check."""
    present = scores.drop_nulls()
    rows = len(present)
    failures = int((present != 1.0).sum())
    numbers: dict[str, Any] = {"rows": rows, "mean": mean_of(present), "failures": failures}
    numbers["pass_rate"] = (rows - failures) / rows if rows else None
    sums = _sums(scores, present, columns)
    own = sums.xx if sums.n == rows else squares(present)
    numbers["variance"] = finite(own / (rows - 1)) if rows > 1 else None
    numbers |= _beside_the_rest(sums, coefficient)
    return numbers | _within_groups(scores, own, coefficient, columns)


def _sums(scores: pl.Series, present: pl.Series, columns: ResultColumns) -> Sums:
    if columns.scored < columns.rows or len(present) < columns.rows:
        both = pl.DataFrame({"s": scores, "r": columns.reward}).drop_nulls()
        return sums_of(both["s"], both["r"])
    return sums_of(present, columns.reward)


def _correlation_with_rest(sums: Sums, coefficient: float | None) -> float | None:
    """Return that of scores, ``x``, with what the other checks add to rewards, ``y``."""
    if coefficient is None or sums.n < 3 or sums.xx <= 0:  # noqa: PLR2004
        return None
    rest = sums.yy - 2 * coefficient * sums.xy + coefficient * coefficient * sums.xx
    return ratio(sums.xy - coefficient * sums.xx, sums.xx, rest) if rest > _NOTHING_LEFT * sums.yy else None


def _beside_the_rest(sums: Sums, coefficient: float | None) -> dict[str, Any]:
    share = None if coefficient is None or sums.yy <= 0 else finite(coefficient * sums.xy / sums.yy)
    return {"share_of_reward_variance": share, "rest_correlation": _correlation_with_rest(sums, coefficient)}


def _within_groups(
    scores: pl.Series, total: float, coefficient: float | None, columns: ResultColumns
) -> dict[str, Any]:
    names = ("separates", "within_variance_share", "within_rest_correlation")
    if (grouped := columns.in_groups) is None:
        return {"groups": 0, **dict.fromkeys(names)}
    if grouped.order is not None:  # in another order, or fewer
        total = squares(grouped.of(scores).drop_nulls())
    own, several, differing, parts = 0.0, 0, 0, list[Sums]()
    for rows in grouped.parts(s=scores, r=columns.reward):
        scored = rows.drop_nulls("s")
        both = scored.drop_nulls("r")
        of_both = centred(both, "s", "r")
        parts.append(Sums.of(both.height, *of_both.values))
        of_scored = of_both if both.height == scored.height else centred(scored, "s")
        (within, *_), more, different = of_scored
        own += parts[-1].xx if of_scored is of_both else Sums.of(0, within, within).xx
        several, differing = several + more, differing + different
    return {
        "groups": several,
        "separates": differing / several if several else None,
        "within_variance_share": finite(own / total) if several and total > 0 else None,
        "within_rest_correlation": _correlation_with_rest(Sums.total(parts), coefficient),
    }


@frozen
class Failures:
    """The rows that fail a check, and those that it has scored, as the bits of integers."""

    name: str
    failing: int
    scored: int | None


def failures_of(name: str, scores: pl.Series) -> Failures:
    """Return which rows fail a check."""
    scored = _bits(scores.is_not_null()) if scores.null_count() else None
    return Failures(name, _bits((scores != 1.0).fill_null(value=False)), scored)


def _bits(values: pl.Series) -> int:
    array = values.rechunk().to_arrow()
    bits: int = int.from_bytes(memoryview(array.buffers()[1]), "little") >> array.offset
    return bits & ((1 << len(values)) - 1)


def pairs_of(checks: Sequence[Failures], rows: int) -> list[dict[str, Any]]:
    """Return the pairs of checks whose failures hang together most, by the absolute value of phi."""
    able = [(check, check.failing.bit_count()) for check in checks]
    able = [(check, failures) for check, failures in able if failures]
    if len(able) > MOST_PAIRED:
        least = sorted((failures for _, failures in able), reverse=True)[MOST_PAIRED - 1]
        able = [(check, failures) for check, failures in able if failures >= least][:MOST_PAIRED]
    found: list[tuple[float, int, str, str, float | None, _Counts]] = []
    for at, (a, fails_a) in enumerate(able):
        for b, fails_b in able[at + 1 :]:
            counts = _counts(a, fails_a, b, fails_b, rows)
            phi = _phi(*counts)
            if phi is not None or _is_redundant(phi, counts):
                found.append((-abs(phi or 0.0), len(found), a.name, b.name, phi, counts))
    found.sort(key=itemgetter(0, 1))
    return [_pair(a, b, phi, counts) for _, _, a, b, phi, counts in found]


_Counts = tuple[int, int, int, int]
"""Rows that fail both of two checks, only one of them, only the other, and neither."""


def _counts(a: Failures, fails_a: int, b: Failures, fails_b: int, rows: int) -> _Counts:
    both = (a.failing & b.failing).bit_count()
    only_a = (fails_a if b.scored is None else (a.failing & b.scored).bit_count()) - both
    only_b = (fails_b if a.scored is None else (b.failing & a.scored).bit_count()) - both
    scored = [check.scored for check in (a, b) if check.scored is not None]
    in_all = rows if not scored else (scored[0] & scored[-1]).bit_count()
    return both, only_a, only_b, in_all - both - only_a - only_b


def _phi(n11: int, n10: int, n01: int, n00: int) -> float | None:
    margins = (n11 + n10) * (n01 + n00) * (n11 + n01) * (n10 + n00)
    return (n11 * n00 - n10 * n01) / math.sqrt(margins) if margins else None


def _is_redundant(phi: float | None, counts: _Counts) -> bool:
    """Return whether two checks practically always fail together; where phi is undefined, by the rows that fail either."""
    n11, n10, n01, _ = counts
    either = n11 + n10 + n01
    is_alike = (phi is not None and phi >= _SAME) or (either > 0 and n11 / either >= _SAME)
    return is_alike and min(n11 + n10, n11 + n01) >= FEW_ROWS


def _pair(a: str, b: str, phi: float | None, counts: _Counts) -> dict[str, Any]:
    n11, n10, n01, n00 = counts
    fails_a, fails_b, either = n11 + n10, n11 + n01, n11 + n10 + n01
    jaccard = n11 / either if either else None
    implies = bool(fails_a) and n11 / fails_a >= _IMPLIED, bool(fails_b) and n11 / fails_b >= _IMPLIED
    return {
        "a": a,
        "b": b,
        "n11": n11,
        "n10": n10,
        "n01": n01,
        "n00": n00,
        "phi": phi,
        "jaccard": jaccard,
        "redundant": _is_redundant(phi, counts),
        "implied": any(implies),
        "a_implies_b": implies[0],
        "b_implies_a": implies[1],
    }
