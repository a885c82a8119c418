"""Groups of rollouts: what each group's rollouts come to together, each model's mean over tasks, and models compared in pairs.

A group is what one model did on one task (at one step). Groups of one task are not independent, so standard errors are clustered by
task: they say what holds for new tasks like these.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Literal, get_args

import polars as pl

from assay.errors import UsageError, counted, did_you_mean
from assay.expressions.lane import exactly
from assay.insight import stats
from assay.insight.results import ROW, Result, names_of, open_result, sort_key
from assay.insight.training.advantage import advantages as compute_advantages
from assay.insight.training.estimators import ESTIMATORS
from assay.insight.training.subsets import MOST_VOTES, extremes, majorities, passing
from assay.names import HIDDEN
from assay.thresholds import THRESHOLDS

_OWN_ADVANTAGES = ("grpo", "dr_grpo", "rloo")
Unscored = Literal["skip", "fail"]
Method = Literal["t", "bootstrap"]

_DEFAULT_K = (1, 4, 8)
_MOST_PAIRED = 50
"""Most models that are compared in pairs."""

_MOST_SUMMARISED = 2_000
"""Most values of ``by``: each has some twenty intervals."""

_GROUP, _TASK = HIDDEN + "group", HIDDEN + "cluster"
_RATES = ("pass@", "pass^", "g-pass@", "mg-pass@", "maj@", "flat", "all_")
_SHARES = ("flat", "all_zero", "all_one")

_FLOATS, _INTEGERS = ("value", "se", "low", "high", "naive_se", "design_effect"), ("groups", "tasks")
_SUMMARY: dict[str, Any] = {"metric": pl.String, **dict.fromkeys(_FLOATS, pl.Float64)}
_SUMMARY |= {**dict.fromkeys(_INTEGERS, pl.Int64), "few": pl.Boolean}

_TEST, _COUNTS = ("difference", "se", "t", "p", "low", "high"), ("wins", "ties", "losses")
_PAIRS: dict[str, Any] = {"a": pl.String, "b": pl.String, "tasks": pl.Int64, **dict.fromkeys(_TEST, pl.Float64)}
_PAIRS |= {**dict.fromkeys(_COUNTS, pl.Int64), "correlation": pl.Float64, "p_holm": pl.Float64}


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of rollouts.

    Attributes:
        table: One row for each group: its columns, ``rows``, ``scored``, ``passed``, ``mean``, ``std`` (ddof 1), ``min``, ``max``,
            ``flat`` (all rewards equal; null for one), and for each k ``pass@k``, ``pass^k``, ``g-pass@k``, ``best@k``, ``worst@k``, ``maj@k``,
            null for fewer rows; with advantages, the lists ``row`` and ``advantage``.
        summary: One row for each model (or value of ``by``) and ``metric``: the mean over its groups as ``value``, its ``se``
            clustered by task, the 95 % interval from ``low`` to ``high``, the ``groups`` and ``tasks`` it is over, and ``few`` for
            fewer than 30 tasks. ``flat``, ``all_zero`` and ``all_one`` are shares of the groups with at least two rows; ``row_mean``
            is the mean over rows, with its standard error if rows were independent (``naive_se``), and by how much clustering
            multiplies the variance (``design_effect``).
        pairs: One row for each two models ``a`` and ``b`` with tasks in common: the mean ``difference`` of their means on a task,
            b less a, its ``se``, ``t`` and two-sided ``p``, and Holm's ``p_holm``; tasks on which b ``wins``, ``ties`` and ``losses``.
        advantages: The advantage of each row of the result, null where it has none; None if not asked for.
        facts: Numbers of rows and groups, and the options.
        notes: What the user should know.
    """

    table: pl.DataFrame
    summary: pl.DataFrame
    pairs: pl.DataFrame
    advantages: pl.Series | None
    facts: dict[str, Any]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return JSON data: the summary by model, and the pairs; not the table."""
        by = list(self.facts["by"])
        models = [
            {"of": {name: part[name][0] for name in by}}
            | {"metrics": {row["metric"]: _metric(row) for row in part.iter_rows(named=True)}}
            for part in _parts(self.summary, by)
        ]
        pairs = [
            {name: value for name, value in row.items() if name not in ("low", "high")} | {"ci95": _interval(row)}
            for row in self.pairs.iter_rows(named=True)
        ]
        data = {"insight": 1, **self.facts, "summary": models, "pairs": pairs, "notes": list(self.notes)}
        return dict(json.loads(json.dumps(data, default=str, allow_nan=False)))


def _interval(row: dict[str, Any]) -> list[float] | None:
    return None if None in (row["low"], row["high"]) else [row["low"], row["high"]]


def _metric(row: dict[str, Any]) -> dict[str, Any]:
    names = ["value", "se", "groups", "tasks", "few"]
    names += ["naive_se", "design_effect"] if row["metric"] == "row_mean" else []
    return {name: row[name] for name in names} | {"ci95": _interval(row)}


@dataclass(frozen=True)
class _Options:
    """Options of ``groups``, checked, and the columns they mean in a result.

    Attributes:
        keys: The columns that name a group.
    """

    result: Result
    by: tuple[str, ...]
    tasks: tuple[str, ...]
    keys: tuple[str, ...]
    k: tuple[int, ...]
    is_default_k: bool
    thresholds: tuple[float, ...]
    vote: str | None
    unscored: Unscored
    advantages: str | None
    advantage_options: Mapping[str, Any]
    baseline: str | None
    eps: float
    ci: Method
    seed: int
    notes: list[str] = field(default_factory=list)

    @property
    def own_advantages(self) -> str | None:
        """The advantages, if they are no trainer's."""
        return self.advantages if self.advantages in _OWN_ADVANTAGES else None

    @property
    def has_passed(self) -> bool:
        return "passed" in self.result.schema


def groups(
    result: Any,
    *,
    by: Sequence[str] | str | None = None,
    k: Sequence[int] | int | None = None,
    thresholds: Sequence[float] | float = (),
    vote: str | None = None,
    unscored: Unscored = "skip",
    advantages: str | None = None,
    advantage_options: Mapping[str, Any] | None = None,
    length: str | None = None,
    baseline: str | None = None,
    eps: float = 1e-6,
    ci: Method = "t",
    seed: int = 0,
    task: Sequence[str] | str = (),
    group: Sequence[str] | str = (),
) -> Groups:
    """Look at the rollouts of each task together: pass@k and its kin, means over tasks with intervals, models in pairs, advantages.

    Args:
        result: A parquet file of ``assay score``, a folder of parts, or a Polars frame with ``reward`` and ``passed``.
        by: Columns whose values are summarised and compared; by default ``model``, if there is one; ``none`` for all groups together.
        k: Sizes of subsets; by default 1, 4 and 8, as far as groups have so many rows.
        thresholds: Shares of a subset that must pass, for G-Pass@k: columns ``g-pass@4_0.5``, and ``mg-pass@4``.
        vote: Column with each row's answer, for maj@k: the answer that most rows of a subset give, nulls abstaining.
        unscored: What rows without a reward count as: nothing (``skip``), or failures with reward 0 (``fail``).
        advantages: Also compute the advantage of each row in its group: ``grpo``, (r-m)/(s+eps); ``dr_grpo``, r-m; ``rloo``, r less
            the mean of the others. 0.0 in a group whose rewards are all equal, null for a single row. Or as a trainer computes them:
            the names of ``assay.advantages``, with the checks as rewards for those that normalize each (GDPO).
        length: Column with the tokens of each text, for trainers that normalize over tokens; by default each row counts as one.
        advantage_options: Options of the trainer's estimator by its own names, as ``options`` of ``assay.advantages``.
        baseline: Column with the reward of each task's greedy response, for ReMax.
        eps: What is added to the standard deviation by ``grpo``.
        ci: How intervals are made: with Student's ``t``, or by ``bootstrap`` over tasks.
        seed: Seed of the bootstrap.
        task: Columns that name the task; by default ``task_id`` or ``example_id``.
        group: Columns that name the group; by default those of the task, ``model`` and ``step``, as far as they exist.

    Returns:
        The groups, the summary and the pairs.

    Raises:
        InputError: The result cannot be read.
        UsageError: There is no column of tasks, no group has ``k`` rows, or an option cannot be used.

    Example:
        >>> import assay, polars as pl
        >>> rewards = pl.DataFrame({"task_id": ["a", "a", "b", "b"], "reward": [1.0, 0.0, 0.0, 0.0]})
        >>> rewards = rewards.with_columns(passed=pl.col("reward") == 1)
        >>> assay.groups(rewards, k=2).table.select("task_id", "pass@2").rows()
        [('a', 1.0), ('b', 0.0)]
    """
    given: dict[str, Any] = {"unscored": unscored, "advantages": advantages, "ci": ci, "baseline": baseline}
    given["advantage_options"] = dict(advantage_options or {})
    options = _options(open_result(result).with_length(length), by, k, thresholds, vote, task, group, eps, seed, given)
    table, left_out = _keys(options)
    measured, per_row = _measured(options, table)
    ks = _sizes(options, measured)
    table = _with_subsets(measured, ks, options.thresholds, passed=options.has_passed)
    summary, pairs = _summary(options, table), _pairs(options, table)
    if by is None and summary.select(options.by).n_unique() > 1:
        options.notes.insert(0, f"split by {', '.join(options.by)}; --by none takes all groups together")
    _note(options, table, ks, left_out)
    facts: dict[str, Any] = {"rows": int(table["rows"].sum()) + left_out, "scored": int(table["scored"].sum())}
    facts |= {"groups": table.height, "tasks": table[_TASK].n_unique(), "left_out": left_out}
    facts |= {"by": list(options.by), "task": list(options.tasks), "group": list(options.keys), "k": list(ks)}
    facts |= {"unscored": unscored, "ci": ci}
    if advantages in ESTIMATORS:
        per_row = _as_trainers_do(options, table)
    advantage = None if per_row is None else _by_row(options, per_row)
    if per_row is not None:
        lists = per_row.sort(ROW).group_by(_GROUP).agg(pl.col(ROW).alias("row"), pl.col("advantage"))
        table = table.join(lists, on=_GROUP, how="left", maintain_order="left")
    table = table.drop(name for name in table.columns if name.startswith(HIDDEN))
    table, summary, pairs = (frame.with_columns(_finite(pl.selectors.float())) for frame in (table, summary, pairs))
    return Groups(table, summary, pairs, advantage, facts, tuple(options.notes))


def _finite(numbers: pl.Expr) -> pl.Expr:
    """Return numbers, null where they are not finite."""
    return pl.when(numbers.is_finite()).then(numbers)


# ── options ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _check_choices(given: dict[str, Any]) -> None:
    advantages = (*_OWN_ADVANTAGES, *ESTIMATORS)
    for option, choices in (("unscored", get_args(Unscored)), ("advantages", advantages), ("ci", get_args(Method))):
        value = given[option]
        if value not in choices and not (value is None and option == "advantages"):
            hint = did_you_mean(str(value), choices) or f"Expected {', '.join(choices)}."
            raise UsageError(f"--{option} {value}: unknown.", hint)


def _subsets_of(k: Any, thresholds: Any) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return the sizes of subsets and the shares of them that must pass, checked."""
    sizes = tuple(dict.fromkeys((k,) if isinstance(k, int) else k or ()))
    if not all(isinstance(size, int) and size >= 1 for size in sizes):
        raise UsageError(f"--k {','.join(map(str, sizes))}: expected numbers of rows, at least 1.")
    shares = tuple(dict.fromkeys((thresholds,) if isinstance(thresholds, int | float) else thresholds))
    if not all(isinstance(share, int | float) and 0 <= share <= 1 for share in shares):
        raise UsageError(f"--thresholds {','.join(map(str, shares))}: expected shares from 0 to 1.")
    return sizes, shares


def _options(
    result: Result,
    by: Any,
    k: Any,
    thresholds: Any,
    vote: str | None,
    task: Any,
    group: Any,
    eps: float,
    seed: int,
    given: dict[str, Any],
) -> _Options:
    _check_choices(given)
    sizes, shares = _subsets_of(k, thresholds)
    if not (math.isfinite(eps) and eps >= 0):
        raise UsageError(f"--eps {eps}: expected a number, at least 0.")
    tasks = result.tasks(names_of(task))
    if not tasks:
        fact = f"{result.name}: no column names the task of a row, as `task_id` or `example_id` would."
        raise UsageError(fact, "Name one: --task COLUMN")
    names = () if by == "none" and "none" not in result.schema else names_of(by)
    chosen = result.keys(names, "--by") if by is not None else result.present(["model"])
    keys = tuple(dict.fromkeys((*result.groups(tasks, names_of(group)), *chosen)))
    if taken := {*keys} & {*_MEASURES, *_SUMMARY, "row", "advantage"}:
        fact = f"{result.name}: `{min(taken)}` names a group, but the table has a column of that name of its own."
        raise UsageError(fact, "Rename the column.")
    if given["advantage_options"] and given["advantages"] not in ESTIMATORS:
        raise UsageError(
            "--advantage-option: only for the advantages of a trainer.", "Name one: --advantages verl-grpo"
        )
    if given["baseline"] is not None:
        result.columns([given["baseline"]], "--baseline")
    if vote is not None:
        result.keys([vote], "--vote")
        if "passed" not in result.schema:
            raise UsageError(
                f"--vote {vote}: {result.name} has no column `passed`, which says what an answer is worth."
            )
    return _Options(
        result, chosen, tasks, keys, sizes or _DEFAULT_K, not sizes, shares, vote, eps=eps, seed=seed, **given
    )


def _note(options: _Options, table: pl.DataFrame, ks: Sequence[int], left_out: int) -> None:
    """Add the notes on rows and groups that some numbers leave out."""
    notes = options.notes
    unscored = int((table["rows"] - table["scored"]).sum())
    if not options.has_passed:
        notes.append("without a column `passed` there is no pass@k")
    if left_out:
        notes.append(f"{counted(left_out, 'row')} without a task: left out")
    if unscored:
        notes.append(f"{counted(unscored, 'row')} without a reward: left out; --unscored fail counts them as failures")
    if table["rows"].sum() and not table["scored"].sum():
        notes.append("no row has a reward")
    for size in ks if table["scored"].sum() else ():
        if number := int((table["scored"] < size).sum()):
            few = "no row" if size == 1 else f"fewer than {size:,} rows"
            fact = (
                f"{number:,} of {counted(table.height, 'group')} {'has' if number == 1 else 'have'} {few} with a reward"
            )
            notes.append(f"{fact}: left out of pass@{size} and its kind")
    if table["rows"].max() == 1 and "step" in options.keys:
        others = ",".join(name for name in options.keys if name != "step")
        notes.append(f"every group is one row, for `step` is part of a group; --group {others} joins the steps")


def _sizes(options: _Options, measured: pl.DataFrame) -> tuple[int, ...]:
    """Return the sizes of subsets; those by default as far as groups have so many rows.

    Raises:
        UsageError: One is larger than every group.
    """
    largest = int(measured["scored"].max() or 0)  # type: ignore[arg-type]
    if options.is_default_k:
        return tuple(size for size in options.k if size <= max(1, largest))
    above = [size for size in options.k if size > largest]
    if above and largest:
        fact = f"--k {above[0]}: no group has so many rows with a reward; the largest has {largest:,}."
        raise UsageError(fact, "Name smaller numbers, or what makes a group: --group COLUMN,…")
    return options.k


# ── groups ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _as_text(names: Sequence[str], schema: pl.Schema) -> list[pl.Expr]:
    """Return columns as they are sorted: names in UTF-8 order, also if they are numbers."""
    return [sort_key(exactly(name), schema[name]) for name in names]


def _keys(options: _Options) -> tuple[pl.DataFrame, int]:
    """Return the groups with their columns, numbers of rows and tasks, sorted; and how many rows have no task.

    Raises:
        UsageError: A group has rows of several tasks.
    """
    result, columns = options.result, list(map(exactly, options.keys))
    own = [name for name in options.tasks if name not in options.keys]
    ends = [
        end
        for name in own
        for end in (exactly(name).min().alias(f"{_TASK}/{name}"), exactly(name).max().alias(f"{_TASK}//{name}"))
    ]
    has_task = pl.all_horizontal(exactly(name).is_not_null() for name in options.tasks)
    table = result.collect(
        result.frame.with_columns(has_task.alias(_TASK))
        .group_by(_TASK, *columns)
        .agg(pl.len().cast(pl.Int64).alias("rows"), *ends)
    )
    left_out = int(table.filter(pl.col(_TASK).not_())["rows"].sum())
    table = table.filter(_TASK).drop(_TASK)
    for name in own:
        if (several := table.filter(pl.col(f"{_TASK}/{name}") != pl.col(f"{_TASK}//{name}"))).height:
            shown = ", ".join(f"{key} {several[key][0]}" for key in options.keys)
            fact = f"{result.name}: the group {shown} has rows of several tasks: {several[f'{_TASK}/{name}'][0]}, "
            raise UsageError(f"{fact}{several[f'{_TASK}//{name}'][0]}.", "Name what makes a task: --task COLUMN,…")
    tasks = [f"{_TASK}/{name}" if name in own else name for name in options.tasks]
    text, rest = _as_text(tasks, table.schema), [name for name in options.keys if name not in options.tasks]
    table = table.sort(*text, *_as_text(rest, table.schema))
    table = table.with_columns(pl.struct(map(exactly, tasks)).rle_id().alias(_TASK))
    # names as numbers sort as text, but in the table as numbers
    order = [exactly(name) for name in (*options.by, *(name for name in options.keys if name not in options.by))]
    table = table.sort(order, maintain_order=True).drop(name for name in table.columns if name.startswith(f"{_TASK}/"))
    return table.with_row_index(_GROUP), left_out


def _measured(options: _Options, table: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Add what each group's rewards come to, and those of all subsets; read as many groups at once as fit into memory.

    Returns:
        The groups, and the advantages by row if they are asked for.
    """
    parts, advantages = [], []
    for part in _blocks(table, THRESHOLDS.grouped_rows):
        rows = _rewards(options, part)
        for inner in _blocks(part, THRESHOLDS.grouped_rows >> 3):
            ends = (
                [int(rows[_GROUP].search_sorted(inner[_GROUP][at], side=side)) for at, side in _ENDS]
                if inner.height
                else (0, 0)
            )
            measures, per_row = _of_rewards(options, rows[ends[0] : ends[1]])
            parts.append(inner.join(measures, on=_GROUP, how="left", maintain_order="left"))
            advantages += [] if per_row is None else [per_row]
    measured = pl.concat(parts).with_columns(pl.col("scored", *["passed"] * options.has_passed).fill_null(0))
    return measured, pl.concat(advantages) if advantages else None


_ENDS: tuple[tuple[int, Any], ...] = ((0, "left"), (-1, "right"))


def _blocks(table: pl.DataFrame, rows: int) -> Iterator[pl.DataFrame]:
    """Yield groups in blocks of a number of rows, at least one group each; all of an empty table."""
    ends, first = table["rows"].cum_sum(), 0
    while first < table.height:
        most = (ends[first - 1] if first else 0) + rows
        last = max(first + 1, int(ends.search_sorted(most, side="right")))
        yield table[first:last]
        first = last
    if not table.height:
        yield table


def _rewards(options: _Options, groups: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of groups in order of the group and the reward; without the unscored ones, unless for advantages."""
    result, fail = options.result, options.unscored == "fail"
    reward, passed = pl.col("reward"), pl.col("passed")
    columns = [reward.fill_null(0.0) if fail else reward]
    columns += [passed.fill_null(value=False) if fail else passed] if options.has_passed else []
    columns += [] if options.vote is None else [exactly(options.vote).alias("vote")]
    columns += [pl.col(ROW)] if options.own_advantages else []
    rows = _in_groups(options, groups, result.numbered if options.own_advantages else result.frame, columns)
    rows = rows if options.own_advantages else rows.filter(pl.col("reward").is_not_null())
    # sorted, so that sums are the same each time
    return result.collect(rows).sort(_GROUP, "reward")


def _in_groups(
    options: _Options, groups: pl.DataFrame, frame: pl.LazyFrame, columns: Sequence[pl.Expr]
) -> pl.LazyFrame:
    """Return columns of the rows of a frame that are in groups, with the group's number."""
    keys = [f"{_GROUP}/{name}" for name in options.keys]
    named = [exactly(name).alias(key) for name, key in zip(options.keys, keys, strict=True)]
    return (
        frame.select(*named, *columns).join(groups.lazy().select(_GROUP, *named), on=keys, nulls_equal=True).drop(keys)
    )


def _of_rewards(options: _Options, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Return what the rewards of each group come to, and the advantages by row.

    Args:
        options: The options.
        rows: Rows in order of the group and the reward.
    """
    all_rows, rows = rows, rows.filter(pl.col("reward").is_not_null())
    reward, position = pl.col("reward"), rows[_GROUP].rle_id()
    passed = [pl.col("passed").sum().cast(pl.Int64)] if options.has_passed else []
    firsts = [pl.len().cast(pl.Int64).alias("scored"), *passed, reward.sum().alias("mean")]
    measures = rows.group_by(_GROUP, maintain_order=True).agg(
        *firsts, reward.first().alias("min"), reward.last().alias("max")
    )
    flat = pl.col("min") == pl.col("max")
    mean = pl.when(flat).then("min").otherwise(pl.col("mean") / pl.col("scored"))
    measures = measures.with_columns(mean.alias("mean"), flat=pl.when(pl.col("scored") > 1).then(flat))
    centred = rows["reward"] - measures["mean"].gather(position)
    squares = pl.DataFrame({_GROUP: rows[_GROUP], "squares": centred * centred})
    squares = squares.group_by(_GROUP, maintain_order=True).agg(pl.col("squares").sum())
    std = (squares["squares"] / (measures["scored"] - 1)).sqrt()
    std_or_zero = pl.when(pl.col("flat")).then(0.0).when(pl.col("scored") > 1).then(std)
    measures = measures.with_columns(std_or_zero.alias("std"))
    per_row = None
    if options.own_advantages is not None:
        columns = {name: measures[name].gather(position) for name in ("scored", "std", "flat")}
        frame = pl.DataFrame({_GROUP: rows[_GROUP], ROW: rows[ROW], "centred": centred, **columns})
        unscored = all_rows.filter(pl.col("reward").is_null()).select(_GROUP, ROW, advantage=pl.lit(None, pl.Float64))
        per_row = pl.concat([frame.select(_GROUP, ROW, _advantage(options).alias("advantage")), unscored])
    for size in options.k:
        measures = measures.with_columns(extremes(rows["reward"], position, measures, size))
    if options.vote is not None:
        _refuse_large(options, measures)
        votes = rows.select(_GROUP, "vote", "passed")
        measures = measures.with_columns(majorities(votes, _GROUP, measures, options.k))
    return measures, per_row


def _refuse_large(options: _Options, measures: pl.DataFrame) -> None:
    largest = int(measures["scored"].max() or 0)  # type: ignore[arg-type]
    if largest > MOST_VOTES:
        fact = f"--vote {options.vote}: a group has {largest:,} rows; majorities are counted in at most {MOST_VOTES}."
        raise UsageError(fact, "Name what makes a smaller group: --group COLUMN,…")


def _advantage(options: _Options) -> pl.Expr:
    """Return the advantage of a row: its reward less the mean (``centred``), scaled."""
    n = pl.col("scored")
    scaled = {
        "grpo": pl.col("centred") / (pl.col("std") + options.eps),
        "dr_grpo": pl.col("centred"),
        "rloo": pl.col("centred") * (n / (n - 1)),
    }
    return pl.when("flat").then(0.0).when(n > 1).then(_finite(scaled[options.own_advantages or ""]))


def _with_subsets(
    measured: pl.DataFrame, ks: Sequence[int], thresholds: Sequence[float], *, passed: bool
) -> pl.DataFrame:
    """Return the table in its order, with pass@k and pass^k looked up by the numbers of rows and of passing rows."""
    names = [name for name in measured.columns if "@" not in name and name not in _MEASURES]
    names += [name for name in _MEASURES if name in measured.columns]
    kinds = [kind for kind in ("best", "worst", "maj") if f"{kind}@{ks[0]}" in measured.columns]
    if passed:
        counts = measured.select("scored", "passed").unique(maintain_order=True)
        counts = counts.with_columns(passing(counts, ks, thresholds))
        measured = measured.join(counts, on=["scored", "passed"], how="left", maintain_order="left")
        names += counts.columns[2:]
    return measured.select(*map(exactly, names), *(exactly(f"{kind}@{size}") for kind in kinds for size in ks))


_MEASURES = ("rows", "scored", "passed", "mean", "std", "min", "max", "flat")


def _as_trainers_do(options: _Options, groups: pl.DataFrame) -> pl.DataFrame:
    """Return the advantages that a trainer computes, by row."""
    result, like = options.result, options.advantages or ""
    several = ESTIMATORS[like].with_options(options.advantage_options, like).several
    scores = [check.column for check in result.checks] if several else []
    numbers = [exactly(name).cast(pl.Float64) for name in scores or ["reward"]]
    is_scored = pl.col("reward").is_not_null()
    fail = options.unscored == "fail"
    numbers = [number.fill_null(0.0) if fail else pl.when(is_scored).then(number) for number in numbers]
    rewards = {f"{_GROUP}/{at}": number for at, number in enumerate(numbers)}
    length, baseline = result.length_column, options.baseline
    others = [exactly(name) for name in dict.fromkeys((length, baseline)) if name is not None]
    columns = [pl.col(ROW), *(number.alias(name) for name, number in rewards.items()), *others]
    rows = result.collect(_in_groups(options, groups, result.numbered, columns)).sort(ROW)
    chosen = options.advantage_options
    found = compute_advantages(
        rows, _GROUP, like=like, options=chosen, reward=[*rewards], length=length, baseline=baseline
    )
    options.notes.extend(note for note in found.notes if "without a reward" not in note)
    return found.frame.select(_GROUP, ROW, pl.col("advantage").cast(pl.Float64))


def _by_row(options: _Options, per_row: pl.DataFrame) -> pl.Series:
    """Return the advantage of each row of the result."""
    rows = pl.DataFrame({ROW: pl.int_range(options.result.rows, dtype=pl.UInt32, eager=True)})
    return rows.join(per_row, on=ROW, how="left", maintain_order="left")["advantage"]


# ── summary ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _parts(frame: pl.DataFrame, by: Sequence[str]) -> list[pl.DataFrame]:
    return frame.partition_by(by, maintain_order=True) if by and frame.height else [frame]


def _summary(options: _Options, table: pl.DataFrame) -> pl.DataFrame:
    """Return the means over the groups of each model."""
    several = pl.col("scored") > 1
    shares = [pl.col("flat").cast(pl.Float64).alias("flat")] + [
        pl.when(several).then((pl.col("flat") & (pl.col("min") == value)).cast(pl.Float64)).alias(name)
        for name, value in (("all_zero", 0.0), ("all_one", 1.0))
    ]
    frame = table.with_columns(shares)
    metrics = ["mean", *(name for name in table.columns if "@" in name or "^" in name), *_SHARES]
    metrics = [name for name in metrics if name not in options.keys]
    found: list[dict[str, Any]] = []
    if options.by and (values := frame.select(map(exactly, options.by)).n_unique()) > _MOST_SUMMARISED:
        fact = f"--by {','.join(options.by)}: {values:,} values; at most {_MOST_SUMMARISED:,} are summarised."
        raise UsageError(fact, "Name a column with fewer; the table has the numbers of each group.")
    for part in _parts(frame, options.by):
        part = part.sort(_TASK, maintain_order=True)  # noqa: PLW2901  (the same groups)
        of = {name: part[name][0] for name in options.by} if part.height else {}
        single = int(part["scored"].max() or 0) <= 1  # type: ignore[arg-type]
        found += [of | _mean(options, name, part[name], part[_TASK], single=single) for name in metrics]
        found.append(of | _row_mean(options, part))
    keys = {name: table.schema[name] for name in options.by}
    return pl.DataFrame(found, schema={**keys, **_SUMMARY})


def _mean(options: _Options, name: str, values: pl.Series, tasks: pl.Series, *, single: bool) -> dict[str, Any]:
    """Return the mean of a measure over groups, with its interval.

    Args:
        options: The options.
        name: Name of the measure.
        values: Its value in each group.
        tasks: The task of each group, in order.
        single: Whether no group has more than one row.
    """
    present = values.is_not_null()
    values, tasks = values.filter(present), tasks.filter(present)
    if not len(values):
        return _entry(name, None, None, (None, None), 0, 0)
    together = pl.DataFrame({"v": values, "task": tasks}).group_by("task", maintain_order=True)
    sums = together.agg(pl.col("v").sum(), pl.len().cast(pl.Int64).alias("n"))
    least, greatest = float(values.min()), float(values.max())  # type: ignore[arg-type]
    mean = least if least == greatest else float(sums["v"].sum()) / len(values)
    se = stats.clustered_se(sums["v"], sums["n"], mean)
    se = 0.0 if se is not None and least == greatest else se
    single = single and sums.height == len(values) and bool(values.is_in([0.0, 1.0]).all())
    ends = _ends(options, sums["v"], sums["n"], mean, se, single=single)
    if name.startswith(_RATES):
        ends = [None if end is None else min(1.0, max(0.0, end)) for end in ends]
    return _entry(name, mean, se, ends, len(values), sums.height)


def _ends(
    options: _Options, sums: pl.Series, counts: pl.Series, mean: float, se: float | None, *, single: bool
) -> Sequence[float | None]:
    """Return the ends of the interval of a mean; ``single`` for one row a task, whose values are 0 or 1."""
    tasks = len(sums)
    if tasks > 1 and options.ci == "bootstrap":
        return stats.bootstrap(sums, counts, seed=options.seed)
    return stats.wilson(int(sums.sum()), tasks) if tasks > 1 and single else stats.t_test(mean, se, tasks - 1)[-2:]


def _entry(
    name: str, value: float | None, se: float | None, ends: Sequence[float | None], groups: int, tasks: int
) -> dict[str, Any]:
    numbers = {"value": value, "se": se, "low": ends[0], "high": ends[1]}
    finite = {number: stats.finite(numbers[number]) for number in numbers}
    return {"metric": name, **finite, "groups": groups, "tasks": tasks, "few": 0 < tasks < stats.FEW_TASKS}


def _row_mean(options: _Options, part: pl.DataFrame) -> dict[str, Any]:
    """Return the mean over rows, with its standard error clustered by task and as if rows were independent."""
    part = part.filter(pl.col("scored") > 0)
    n = int(part["scored"].sum())
    if not n:
        return _entry("row_mean", None, None, (None, None), 0, 0)
    least, greatest = part["min"].min(), part["max"].max()
    sums = part.select(_TASK, "scored", v=pl.col("mean") * pl.col("scored")).group_by(_TASK, maintain_order=True).sum()
    mean = float(least) if least == greatest else float(sums["v"].sum()) / n  # type: ignore[arg-type]
    se = stats.clustered_se(sums["v"], sums["scored"], mean)
    within = (part["std"].fill_null(0.0) ** 2 * (part["scored"] - 1)).sum()
    squares = float(within) + float((part["scored"] * (part["mean"] - mean) ** 2).sum())
    naive = math.sqrt(squares / (n - 1) / n) if n > 1 else None
    if least == greatest:
        se, naive = (None if se is None else 0.0), (None if naive is None else 0.0)
    single = n == sums.height and bool(sums["v"].is_in([0.0, 1.0]).all())
    ends = _ends(options, sums["v"], sums["scored"], mean, se, single=single)
    effect = (se / naive) ** 2 if se is not None and naive else None
    more = {"naive_se": naive, "design_effect": effect}
    return _entry("row_mean", mean, se, ends, part.height, sums.height) | more


# ── pairs ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _pairs(options: _Options, table: pl.DataFrame) -> pl.DataFrame:
    """Compare each two models on the tasks they share."""
    means = [
        (_label(options, part), _task_means(part))
        for part in (_parts(table, options.by) if options.by and table.height else [])
    ]
    if len(means) > _MOST_PAIRED:
        options.notes.append(
            f"{counted(len(means), 'value')} of {', '.join(options.by)}: at most {_MOST_PAIRED} are compared in pairs"
        )
        means = []
    means.sort(key=lambda pair: pair[0].encode())
    found = list(_compared(means))
    for row, adjusted in zip(found, stats.holm([row["p"] for row in found]), strict=True):
        row["p_holm"] = adjusted
    return pl.DataFrame(found, schema=_PAIRS)


def _label(options: _Options, part: pl.DataFrame) -> str:
    return ", ".join("–" if part[name][0] is None else str(part[name][0]) for name in options.by)


def _task_means(part: pl.DataFrame) -> pl.DataFrame:
    part = part.select(_TASK, "mean").drop_nulls().sort(_TASK, maintain_order=True)
    return part.group_by(_TASK, maintain_order=True).agg(pl.col("mean").mean())


def _compared(means: Sequence[tuple[str, pl.DataFrame]]) -> Iterator[dict[str, Any]]:
    for (a, of_a), (b, of_b) in combinations(means, 2):
        both = of_a.join(of_b, on=_TASK, maintain_order="left")
        if not both.height:
            continue
        difference = both["mean_right"] - both["mean"]
        n, least, greatest = both.height, float(difference.min()), float(difference.max())  # type: ignore[arg-type]
        mean = least if least == greatest else float(difference.sum()) / n
        std = 0.0 if least == greatest else difference.std()
        test = stats.t_test(mean, float(std) / math.sqrt(n) if n > 1 else None, n - 1)  # type: ignore[arg-type]
        counts = {"wins": difference > 0, "ties": difference == 0, "losses": difference < 0}
        row = {"a": a, "b": b, "tasks": n, "difference": mean, "se": test.se, "t": test.t, "p": test.p}
        row |= {"p": 1.0} if least == greatest == 0 else {}
        row |= {name: int(is_so.sum()) for name, is_so in counts.items()}
        yield row | {
            "low": test.low,
            "high": test.high,
            "correlation": stats.correlation(both["mean"], both["mean_right"]),
        }
