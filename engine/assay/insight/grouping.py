"""Groups of rollouts: what each group's rollouts come to together, each model's mean over tasks, and models compared in pairs.

A group is what one model did on one task (at one step). Groups of one task are not independent, so standard errors are clustered by
task: they say what holds for new tasks like these.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal, Unpack, get_args

import polars as pl

from assay.aggregating.outcomes import OUTCOMES
from assay.errors import UsageError, counted, did_you_mean
from assay.expressions.shared_columns import exactly
from assay.frozen import frozen
from assay.insight import stats
from assay.insight.documents import groups_document
from assay.insight.integrity.groups import (
    COLUMNS,
    answers_of,
    gathered,
    integrity_facts,
    integrity_of,
    numbered,
    other_keys,
    usual_size,
)
from assay.insight.integrity.near import MOST_CHARACTERS, MOST_PAIRS
from assay.insight.integrity.prompts import PROMPTS, gold_keys, prompt_keys, text_key
from assay.insight.originals import HOW, whole_rows
from assay.insight.probes import GOLDS
from assay.insight.results import ROW, Result, names_of, open_result, sort_key
from assay.insight.training.advantage import advantages as compute_advantages
from assay.insight.training.estimators import ESTIMATORS
from assay.insight.training.subsets import MOST_VOTES, extremes, majorities, passing
from assay.names import COMPLETION, HIDDEN
from assay.options import GroupsLimits, GroupsOptions, documented, settle
from assay.system.quantities import RowLimit
from assay.thresholds import THRESHOLDS
from assay.values.plain import json_data
from assay.writing.documents import Document
from assay.writing.notebooks import Displayed

Unscored = Literal["skip", "fail"]
Method = Literal["t", "bootstrap"]

_OWN_ADVANTAGES = ("grpo", "dr_grpo", "rloo")
_DEFAULT_K = (1, 4, 8)
_MOST_PAIRED = 50  # models that are compared in pairs
_MOST_DOUBTFUL = 10  # groups that do not hold together and are named
_MOST_SUMMARISED = 2_000  # values of ``by``: each has some twenty intervals

_GROUP, _TASK, _OUTCOME = HIDDEN + "group", HIDDEN + "cluster", HIDDEN + "outcome"
_MEASURES = ("rows", "scored", "passed", "mean", "std", "min", "max", "flat")
_RATES = ("pass@", "pass^", "g-pass@", "mg-pass@", "maj@", "flat", "all_", "not_found", "truncated")
_SHARES = ("not_found", "truncated")  # outcomes whose shares of the scored rows are told

_ANSWERS = ("answers", "effective_answers")
_UNASKED = {"near": 0.95, "size": None, "rollouts": None}
"""Options of integrity, as they are without it."""

_SUMMARY: dict[str, Any] = {"metric": pl.String}
_SUMMARY |= dict.fromkeys(("value", "se", "low", "high", "naive_se", "design_effect"), pl.Float64)
_SUMMARY |= {"groups": pl.Int64, "tasks": pl.Int64, "few": pl.Boolean}
_PAIRS: dict[str, Any] = {"a": pl.String, "b": pl.String, "tasks": pl.Int64}
_PAIRS |= dict.fromkeys(("difference", "se", "t", "p", "low", "high"), pl.Float64)
_PAIRS |= dict.fromkeys(("wins", "ties", "losses"), pl.Int64) | {"correlation": pl.Float64, "p_holm": pl.Float64}


@dataclass(frozen=True, eq=False, repr=False)
class Groups(Displayed):
    """Groups of rollouts.

    Attributes:
        table: One row for each group: its columns, ``rows``, ``scored``, ``passed``, ``mean``, ``std`` (ddof 1), ``min``, ``max``,
            ``flat`` (all rewards equal; null for one), with outcomes the rows of each (``pass``, ``fail``, ``not_found``, ``truncated``,
            ``error``, ``unscored``), and for each k ``pass@k``, ``pass^k``, ``g-pass@k``, ``best@k``, ``worst@k``, ``maj@k``,
            null for fewer rows; with advantages, the lists ``row`` and ``advantage``.
        summary: One row for each model (or value of ``by``) and ``metric``: the mean over its groups as ``value``, its ``se``
            clustered by task, the 95 % interval from ``low`` to ``high``, the ``groups`` and ``tasks`` it is over, and ``few`` for
            fewer than 30 tasks. ``flat``, ``all_zero`` and ``all_one`` are shares of the groups with at least two rows; ``row_mean``
            is the mean over rows, ``not_found`` and ``truncated`` are the shares of the scored rows with this outcome; ``row_mean`` comes
            with its standard error if rows were independent (``naive_se``), and by how much clustering
            multiplies the variance (``design_effect``).
        pairs: One row for each two models ``a`` and ``b`` with tasks in common: the mean ``difference`` of their means on a task,
            b less a, its ``se``, ``t`` and two-sided ``p``, and Holm's ``p_holm``; tasks on which b ``wins``, ``ties`` and ``losses``.
        advantages: The advantage of each row of the result, null where it has none; None if not asked for.
        integrity: With ``integrity``, one row for each group, in order of its columns and also if ``table`` splits it by ``by``: ``rows``, whether that is an ``odd_size``, how many distinct
            ``prompts`` and ``golds`` it has, whether a prompt is a ``shared_prompt``, that of another task; its ``texts``, how many are
            ``distinct`` and ``near_distinct``, and the share of its reward that rows with the text of an earlier row have,
            ``duplicate_reward``, or nearly its text, ``near_duplicate_reward``; with ``vote`` its distinct ``answers`` and how many
            equally frequent ones were as varied, ``effective_answers``. Null where it cannot be told.
        limits: What ``within`` allows, and whether it is exceeded.
        facts: Numbers of rows and groups, and the options.
        notes: What the user should know.
    """

    table: pl.DataFrame
    summary: pl.DataFrame
    pairs: pl.DataFrame
    advantages: pl.Series | None
    facts: dict[str, Any]
    notes: tuple[str, ...]
    integrity: pl.DataFrame | None = None
    limits: Sequence[Mapping[str, Any]] = ()

    @property
    def exceeds(self) -> bool:
        """Whether a limit is exceeded."""
        return any(limit["exceeded"] for limit in self.limits)

    def within(self, **limits: Unpack[GroupsLimits]) -> "Groups":
        """Return the groups with limits, each exceeded only by more than it.

        Args:
            limits: See ``assay.options.GroupsLimits``.

        Raises:
            UsageError: A limit is not a number or a percentage, or what it is about is not known.
        """
        settled, facts = settle(GroupsLimits, limits, "within"), self.facts.get("integrity", {})
        counts = {
            "max_duplicates": ("texts", facts.get("duplicates"), facts.get("texts")),
            "max_mixed": ("prompts or golds", self._mixed, facts.get("groups")),
        }
        limited = []
        for name, (noun, value, of) in counts.items():
            limit = RowLimit(option := f"--{name.replace('_', '-')}", settled[name])  # type: ignore[literal-required]
            if limit.given is None:
                continue
            if value is None:
                fact = f"{option} {limit.given}: the {noun} of the groups are not known."
                raise UsageError(fact, "\n".join(self.notes) if facts else "Ask for them: integrity=True")
            entry = {"limit": option, "allowed": limit.given, "value": value, "of": of}
            limited.append(entry | {"exceeded": limit.exceeded(value, of)})
        return replace(self, limits=limited)

    @property
    def _mixed(self) -> int | None:
        """How many groups have several prompts or golds; None where neither is known."""
        if self.integrity is None:
            return None
        is_mixed = self.integrity.select(pl.max_horizontal("prompts", "golds") > 1).to_series()
        return None if 0 < len(is_mixed) == is_mixed.null_count() else int(is_mixed.sum())

    @property
    def whole_table(self) -> pl.DataFrame:
        """The table, with what ``integrity`` says of each group."""
        if self.integrity is None:
            return self.table
        others = self.integrity.drop("rows")
        keys = [name for name in others.columns if name in self.table.columns]
        return self.table.join(others, on=keys, how="left", nulls_equal=True, maintain_order="left")

    @property
    def headline(self) -> str:
        """How many rows, groups and tasks there are."""
        return " · ".join(counted(self.facts[name], name.removesuffix("s")) for name in ("rows", "groups", "tasks"))

    def _document(self) -> Document:
        return groups_document(self.as_json())

    def as_json(self) -> dict[str, Any]:
        """Return JSON data: the summary by model, and the pairs; not the table."""
        by = list(self.facts["by"])
        models = []
        for part in _parts(self.summary, by):
            metrics = {}
            for row in part.iter_rows(named=True):
                names = ["value", "se", "groups", "tasks", "few"]
                names += ["naive_se", "design_effect"] if row["metric"] == "row_mean" else []
                metrics[row["metric"]] = {name: row[name] for name in names} | {"ci95": _interval(row)}
            models.append({"of": {name: part[name][0] for name in by}, "metrics": metrics})
        names = [name for name in _PAIRS if name not in ("low", "high")]
        pairs = [
            {name: row[name] for name in names} | {"ci95": _interval(row)} for row in self.pairs.iter_rows(named=True)
        ]
        data = {"insight": 1, **self.facts, "summary": models, "pairs": pairs, "notes": list(self.notes)}
        if self.integrity is not None:
            data |= {"doubtful": self._doubtful, "limits": list(self.limits)}
        return dict(json.loads(json.dumps(data, default=str, allow_nan=False)))

    @property
    def _doubtful(self) -> list[dict[str, Any]]:
        """Some groups that do not hold together, those with several prompts or golds first."""
        assert self.integrity is not None  # noqa: S101
        is_mixed = pl.max_horizontal("prompts", "golds") > 1
        kinds = [self.integrity.filter(is_so) for is_so in (is_mixed, pl.col("shared_prompt"), pl.col("odd_size"))]
        found = pl.concat(kinds).unique(maintain_order=True).head(_MOST_DOUBTFUL)
        return [json_data(group) for group in found.to_dicts()]


def _interval(row: dict[str, Any]) -> list[float] | None:
    return None if None in (row["low"], row["high"]) else [row["low"], row["high"]]


@frozen
class _GroupsQuery:
    """What ``groups`` is asked of a result, checked; ``keys`` are the columns that name a group."""

    result: Result
    by: tuple[str, ...]
    tasks: tuple[str, ...]
    keys: tuple[str, ...]
    k: tuple[int, ...]
    thresholds: tuple[float, ...]
    vote: str | None
    unscored: Unscored
    ci: Method
    seed: int
    outcome: bool
    advantages: str | None
    advantage_options: Mapping[str, Any]
    baseline: str | None
    eps: float
    integrity: bool
    near: float
    size: int | None
    rollouts: Any

    def __post_init__(self) -> None:
        advantages = (*_OWN_ADVANTAGES, *ESTIMATORS)
        for option, choices in (("unscored", get_args(Unscored)), ("advantages", advantages), ("ci", get_args(Method))):
            value = getattr(self, option)
            if value not in choices and not (value is None and option == "advantages"):
                hint = did_you_mean(str(value), choices) or f"Expected {', '.join(choices)}."
                raise UsageError(f"--{option} {value}: unknown.", hint)
        if not (math.isfinite(self.eps) and self.eps >= 0):
            raise UsageError(f"--eps {self.eps}: expected a number, at least 0.")
        if self.advantage_options and self.advantages not in ESTIMATORS:
            fact = "--advantage-option: only for the advantages of a trainer."
            raise UsageError(fact, "Name one: --advantages verl-grpo")
        if self.baseline is not None:
            self.result.columns([self.baseline], "--baseline")
        for option, unasked in _UNASKED.items():
            if not self.integrity and (value := getattr(self, option)) != unasked:
                raise UsageError(f"--{option} {value}: only with --integrity.")

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The outcomes that are counted."""
        return OUTCOMES if self.outcome else ()

    @property
    def has_passed(self) -> bool:
        return "passed" in self.result.schema


@documented(GroupsOptions)
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
    outcome: bool = False,
    integrity: bool = False,
    near: float = 0.95,
    size: int | None = None,
    rollouts: Any = None,
    task: Sequence[str] | str = (),
    group: Sequence[str] | str = (),
) -> Groups:
    """Look at the rollouts of each task together: pass@k and its kin, means over tasks with intervals, models in pairs, advantages.

    Args:
        result: A parquet file of ``assay score``, a folder of parts, or a Polars frame with ``reward`` and ``passed``.
        options: Those of ``assay.options.GroupsOptions``, as the signature lists them.

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
    given: dict[str, Any] = {"unscored": unscored, "ci": ci, "seed": seed, "eps": eps, "baseline": baseline}
    opened = open_result(result).with_length(length)
    given |= {"advantages": advantages, "advantage_options": dict(advantage_options or {})}
    given |= {"outcome": outcome or opened.has_outcome}
    given |= {"integrity": integrity, "near": near, "size": size, "rollouts": rollouts}
    asked = _asked(opened, by, k, thresholds, vote, task, group, **given)
    table, left_out = _keys(asked)
    table = _measured(asked, table)
    ks = _sizes(asked, table)
    table = _with_subsets(table, ks, asked.thresholds, passed=asked.has_passed, counts=asked.outcomes)
    summary, pairs, notes = _summary(asked, table), *_pairs(asked, table)
    notes += _notes(asked, table, ks, left_out)
    if by is None and summary.select(asked.by).n_unique() > 1:
        notes.insert(0, f"split by {', '.join(asked.by)}; --by none takes all groups together")
    facts: dict[str, Any] = {"rows": int(table["rows"].sum()) + left_out, "scored": int(table["scored"].sum())}
    facts |= {"groups": table.height, "tasks": table[_TASK].n_unique(), "left_out": left_out}
    facts |= {"by": list(asked.by), "task": list(asked.tasks), "group": list(asked.keys), "k": list(ks)}
    facts |= {"unscored": unscored, "ci": ci}
    facts |= {"outcomes": {name: int(table[name].sum()) for name in OUTCOMES}} if asked.outcome else {}
    of_groups = None
    if integrity:
        of_groups, facts["integrity"], more = _integrity(asked, table, names_of(group))
        notes += more
    advantage = None
    if advantages is not None:
        per_row, more = _as_trainers_do(asked, table) if advantages in ESTIMATORS else _own_advantages(asked, table)
        notes += more
        lists = per_row.sort(ROW).group_by(_GROUP).agg(pl.col(ROW).alias("row"), pl.col("advantage"))
        table = table.join(lists, on=_GROUP, how="left", maintain_order="left")
        rows = pl.DataFrame({ROW: pl.int_range(asked.result.rows, dtype=pl.UInt32, eager=True)})
        advantage = rows.join(per_row, on=ROW, how="left", maintain_order="left")["advantage"]
    table = table.drop(name for name in table.columns if name.startswith(HIDDEN))
    table, summary, pairs = (frame.with_columns(_finite(pl.selectors.float())) for frame in (table, summary, pairs))
    return Groups(table, summary, pairs, advantage, facts, tuple(notes), of_groups)


def _finite(numbers: pl.Expr) -> pl.Expr:
    return pl.when(numbers.is_finite()).then(numbers)


def _asked(
    result: Result, by: Any, k: Any, thresholds: Any, vote: str | None, task: Any, group: Any, **given: Any
) -> _GroupsQuery:
    sizes = tuple(dict.fromkeys((k,) if isinstance(k, int) else k or ()))
    if not all(isinstance(size, int) and size >= 1 for size in sizes):
        raise UsageError(f"--k {','.join(map(str, sizes))}: expected numbers of rows, at least 1.")
    shares = tuple(dict.fromkeys((thresholds,) if isinstance(thresholds, int | float) else thresholds))
    if not all(isinstance(share, int | float) and 0 <= share <= 1 for share in shares):
        raise UsageError(f"--thresholds {','.join(map(str, shares))}: expected shares from 0 to 1.")
    tasks = result.tasks(names_of(task))
    if not tasks:
        fact = f"{result.name}: no column names the task of a row, as `task_id` or `example_id` would."
        raise UsageError(fact, "Name one: --task COLUMN")
    names = names_of(by)
    names = () if names == ("none",) and "none" not in result.schema else names
    chosen = result.keys(names, "--by") if by is not None else result.present(["model"])
    keys = tuple(dict.fromkeys((*result.groups(tasks, names_of(group)), *chosen)))
    own = {*_MEASURES, *_SUMMARY, "row", "advantage"} | ({*COLUMNS, *_ANSWERS} if given["integrity"] else set())
    own |= {*OUTCOMES} if given["outcome"] else set()
    if taken := {*keys} & own:
        fact = f"{result.name}: `{min(taken)}` names a group, but the table has a column of that name of its own."
        raise UsageError(fact, "Rename the column.")
    if vote is not None:
        result.keys([vote], "--vote")
        if "passed" not in result.schema:
            lack = "has no column `passed`, which says what an answer is worth."
            raise UsageError(f"--vote {vote}: {result.name} {lack}")
    return _GroupsQuery(result, chosen, tasks, keys, sizes, shares, vote, **given)


def _notes(asked: _GroupsQuery, table: pl.DataFrame, ks: Sequence[int], left_out: int) -> Iterator[str]:
    unscored = int((table["rows"] - table["scored"]).sum())
    if not asked.has_passed:
        yield "without a column `passed` there is no pass@k"
    if left_out:
        yield f"{counted(left_out, 'row')} without a task: left out"
    if unscored:
        yield f"{counted(unscored, 'row')} without a reward: left out; --unscored fail counts them as failures"
    if table["rows"].sum() and not table["scored"].sum():
        yield "no row has a reward"
    for size in ks if table["scored"].sum() else ():
        if number := int((table["scored"] < size).sum()):
            few = "no row" if size == 1 else f"fewer than {size:,} rows"
            has = "has" if number == 1 else "have"
            fact = f"{number:,} of {counted(table.height, 'group')} {has} {few} with a reward"
            yield f"{fact}: left out of pass@{size} and its kind"
    if table["rows"].max() == 1 and "step" in asked.keys:
        others = ",".join(name for name in asked.keys if name != "step")
        yield f"every group is one row, for `step` is part of a group; --group {others} joins the steps"


def _sizes(asked: _GroupsQuery, table: pl.DataFrame) -> tuple[int, ...]:
    """Return the sizes of subsets; those by default as far as groups have so many rows."""
    largest = int(table["scored"].max() or 0)  # type: ignore[arg-type]
    if not asked.k:
        return tuple(size for size in _DEFAULT_K if size <= max(1, largest))
    above = [size for size in asked.k if size > largest]
    if above and largest:
        fact = f"--k {above[0]}: no group has so many rows with a reward; the largest has {largest:,}."
        raise UsageError(fact, "Name smaller numbers, or what makes a group: --group COLUMN,…")
    return asked.k


def _keys(asked: _GroupsQuery) -> tuple[pl.DataFrame, int]:
    """Return the groups with their columns, numbers of rows and tasks, sorted; and how many rows have no task."""
    result, ends = asked.result, list[pl.Expr]()
    own = [name for name in asked.tasks if name not in asked.keys]
    for name in own:
        ends += [exactly(name).min().alias(f"{_TASK}/{name}"), exactly(name).max().alias(f"{_TASK}//{name}")]
    has_task = pl.all_horizontal(exactly(name).is_not_null() for name in asked.tasks)
    frame = result.frame.with_columns(result.outcome.alias(_OUTCOME)) if asked.outcome else result.frame
    grouped = frame.group_by(has_task.alias(_TASK), *map(exactly, asked.keys))
    counts = [(pl.col(_OUTCOME) == name).sum().cast(pl.Int64).alias(name) for name in asked.outcomes]
    table = result.collect(grouped.agg(pl.len().cast(pl.Int64).alias("rows"), *counts, *ends))
    left_out = int(table.filter(pl.col(_TASK).not_())["rows"].sum())
    table = table.filter(_TASK).drop(_TASK)
    for name in own:
        if (several := table.filter(pl.col(f"{_TASK}/{name}") != pl.col(f"{_TASK}//{name}"))).height:
            shown = ", ".join(f"{key} {several[key][0]}" for key in asked.keys)
            both = f"{several[f'{_TASK}/{name}'][0]}, {several[f'{_TASK}//{name}'][0]}"
            fact = f"{result.name}: the group {shown} has rows of several tasks: {both}."
            raise UsageError(fact, "Name what makes a task: --task COLUMN,…")
    tasks = [f"{_TASK}/{name}" if name in own else name for name in asked.tasks]
    names = (*tasks, *(name for name in asked.keys if name not in asked.tasks))
    table = table.sort([sort_key(exactly(name), table.schema[name]) for name in names])
    table = table.with_columns(pl.struct(map(exactly, tasks)).rle_id().alias(_TASK))
    # names as numbers sort as text, but in the table as numbers
    table = table.sort([exactly(name) for name in dict.fromkeys((*asked.by, *asked.keys))], maintain_order=True)
    return table.drop(pl.selectors.starts_with(f"{_TASK}/")).with_row_index(_GROUP), left_out


def _rows(asked: _GroupsQuery, groups: pl.DataFrame, frame: pl.LazyFrame, columns: Sequence[pl.Expr]) -> pl.DataFrame:
    """Return columns of the rows of a frame that are in groups, with the group's number."""
    keys = [f"{_GROUP}/{name}" for name in asked.keys]
    named = [exactly(name).alias(key) for name, key in zip(asked.keys, keys, strict=True)]
    groups = groups.select(_GROUP, *named)
    rows = frame.select(*named, *columns).join(groups.lazy(), on=keys, nulls_equal=True)
    return asked.result.collect(rows.drop(keys))


def _or_failed(asked: _GroupsQuery, values: pl.Expr, failed: Any) -> pl.Expr:
    """Return values of rows, where rows without a reward count as failures with that value for these."""
    return values.fill_null(failed) if asked.unscored == "fail" else values


def _measured(asked: _GroupsQuery, table: pl.DataFrame) -> pl.DataFrame:
    """Add what each group's rewards come to, and those of all subsets; read as many groups at once as fit into memory."""
    parts = []
    columns = [_or_failed(asked, pl.col("reward"), 0.0)]
    columns += [_or_failed(asked, pl.col("passed"), failed=False)] if asked.has_passed else []
    columns += [] if asked.vote is None else [exactly(asked.vote).alias("vote")]
    for part in _blocks(table, THRESHOLDS.grouped_rows):
        # sorted, so that sums are the same each time
        rows = _rows(asked, part, asked.result.frame, columns).drop_nulls("reward").sort(_GROUP, "reward")
        for inner in _blocks(part, THRESHOLDS.grouped_rows >> 3):
            own = rows.filter(pl.col(_GROUP).is_between(inner[_GROUP].min(), inner[_GROUP].max()))
            parts.append(inner.join(_measures(asked, own), on=_GROUP, how="left", maintain_order="left"))
    return pl.concat(parts).with_columns(pl.col("scored", *["passed"] * asked.has_passed).fill_null(0))


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


def _measures(asked: _GroupsQuery, rows: pl.DataFrame) -> pl.DataFrame:
    reward, position = pl.col("reward"), rows[_GROUP].rle_id()
    passed = [pl.col("passed").sum().cast(pl.Int64)] if asked.has_passed else []
    firsts = [pl.len().cast(pl.Int64).alias("scored"), *passed, reward.sum().alias("mean")]
    ends = [reward.first().alias("min"), reward.last().alias("max")]
    measures = rows.group_by(_GROUP, maintain_order=True).agg(*firsts, *ends)
    flat = pl.col("min") == pl.col("max")
    mean = pl.when(flat).then("min").otherwise(pl.col("mean") / pl.col("scored"))
    measures = measures.with_columns(mean.alias("mean"), flat=pl.when(pl.col("scored") > 1).then(flat))
    centred = rows["reward"] - measures["mean"].gather(position)
    squares = pl.DataFrame({_GROUP: rows[_GROUP], "squares": centred * centred})
    squares = squares.group_by(_GROUP, maintain_order=True).agg(pl.col("squares").sum())
    std = (squares["squares"] / (measures["scored"] - 1)).sqrt()
    std_or_zero = pl.when(pl.col("flat")).then(0.0).when(pl.col("scored") > 1).then(std)
    measures = measures.with_columns(std_or_zero.alias("std"))
    for size in asked.k or _DEFAULT_K:
        measures = measures.with_columns(extremes(rows["reward"], position, measures, size))
    if asked.vote is not None:
        largest = int(measures["scored"].max() or 0)  # type: ignore[arg-type]
        if largest > MOST_VOTES:
            fact = f"--vote {asked.vote}: a group has {largest:,} rows; majorities are counted in at most {MOST_VOTES}."
            raise UsageError(fact, "Name what makes a smaller group: --group COLUMN,…")
        votes = rows.select(_GROUP, "vote", "passed")
        measures = measures.with_columns(majorities(votes, _GROUP, measures, asked.k or _DEFAULT_K))
    return measures


def _with_subsets(
    measured: pl.DataFrame, ks: Sequence[int], thresholds: Sequence[float], *, passed: bool, counts: Sequence[str]
) -> pl.DataFrame:
    """Return the table in its order, with pass@k and pass^k looked up by the numbers of rows and of passing rows."""
    names = [name for name in measured.columns if "@" not in name and name not in (*_MEASURES, *counts)]
    names += [*(name for name in _MEASURES if name in measured.columns), *counts]
    kinds = [kind for kind in ("best", "worst", "maj") if f"{kind}@{ks[0]}" in measured.columns]
    if passed:
        pairs = measured.select("scored", "passed").unique(maintain_order=True)
        pairs = pairs.with_columns(passing(pairs, ks, thresholds))
        measured = measured.join(pairs, on=["scored", "passed"], how="left", maintain_order="left")
        names += pairs.columns[2:]
    return measured.select(*map(exactly, names), *(exactly(f"{kind}@{size}") for kind in kinds for size in ks))


def _own_advantages(asked: _GroupsQuery, table: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Return the advantage of each row: its reward less the mean of its group, scaled; and no notes."""
    columns = [pl.col(ROW), _or_failed(asked, pl.col("reward"), 0.0)]
    rows = _rows(asked, table, asked.result.numbered, columns)
    measures = table.select("scored", "mean", "std", "flat")[rows[_GROUP]]
    n, centred = pl.col("scored"), pl.col("reward") - pl.col("mean")
    formulas = {"grpo": centred / (pl.col("std") + asked.eps), "dr_grpo": centred, "rloo": centred * (n / (n - 1))}
    scaled = _finite(formulas[asked.advantages or ""])
    scaled = pl.when("flat").then(0.0).when(n > 1).then(scaled)
    advantage = pl.when(pl.col("reward").is_not_null()).then(scaled)
    return pl.concat([rows, measures], how="horizontal").select(_GROUP, ROW, advantage=advantage), []


def _as_trainers_do(asked: _GroupsQuery, table: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    result, like, options, baseline = asked.result, asked.advantages or "", asked.advantage_options, asked.baseline
    several = ESTIMATORS[like].with_options(options, like).several
    scores = [check.column for check in result.checks] if several else []
    rewards = {}
    for index, name in enumerate(scores or ["reward"]):
        number = _or_failed(asked, exactly(name).cast(pl.Float64), 0.0)
        is_counted = pl.lit(asked.unscored == "fail") | pl.col("reward").is_not_null()
        rewards[f"{_GROUP}/{index}"] = pl.when(is_counted).then(number).alias(f"{_GROUP}/{index}")
    length = result.length_column
    others = [exactly(name) for name in dict.fromkeys((length, baseline)) if name is not None]
    rows = _rows(asked, table, result.numbered, [pl.col(ROW), *rewards.values(), *others]).sort(ROW)
    computed = compute_advantages(
        rows, _GROUP, like=like, options=options, reward=[*rewards], length=length, baseline=baseline
    )
    notes = [note for note in computed.notes if "without a reward" not in note]
    return computed.frame.select(_GROUP, ROW, pl.col("advantage").cast(pl.Float64)), notes


def _parts(frame: pl.DataFrame, by: Sequence[str]) -> list[pl.DataFrame]:
    return frame.partition_by(by, maintain_order=True) if by and frame.height else [frame]


def _summary(asked: _GroupsQuery, table: pl.DataFrame) -> pl.DataFrame:
    several = pl.col("scored") > 1
    shares = {"flat": pl.col("flat").cast(pl.Float64)}
    for name, value in (("all_zero", 0.0), ("all_one", 1.0)):
        is_all = pl.col("flat") & (pl.col("min") == value)
        shares[name] = pl.when(several).then(is_all.cast(pl.Float64))
    metrics = ["mean", *(name for name in table.columns if "@" in name or "^" in name), *shares]
    metrics = [name for name in metrics if name not in asked.keys]
    frame, entries = table.with_columns(**shares), []
    if asked.by and (values := frame.select(map(exactly, asked.by)).n_unique()) > _MOST_SUMMARISED:
        fact = f"--by {','.join(asked.by)}: {values:,} values; at most {_MOST_SUMMARISED:,} are summarised."
        raise UsageError(fact, "Name a column with fewer; the table has the numbers of each group.")
    for part in _parts(frame, asked.by):
        part = part.sort(_TASK, maintain_order=True)  # noqa: PLW2901  (the same groups)
        of = {name: part[name][0] for name in asked.by} if part.height else {}
        single = int(part["scored"].max() or 0) <= 1  # type: ignore[arg-type]
        for name in metrics:
            values_of = part.select(
                _TASK, v=exactly(name), low=exactly(name), high=exactly(name), n=pl.lit(1, pl.Int64)
            )
            entries.append(of | _mean(asked, name, values_of, single=single))
        entries += [of | _row_share(asked, part, name) for name in _SHARES if asked.outcome]
        entries.append(of | _row_mean(asked, part))
    return pl.DataFrame(entries, schema={**{name: table.schema[name] for name in asked.by}, **_SUMMARY})


def _mean(asked: _GroupsQuery, name: str, values: pl.DataFrame, *, single: bool) -> dict[str, Any]:
    """Return a mean over ``n`` values, summed as ``v`` between ``low`` and ``high`` in each group, with its interval by task.

    ``single`` says that no group has more than one row, so that values of 0 and 1 are independent draws.
    """
    values = values.drop_nulls("v")
    numbers = (pl.col("v", "n").sum(), pl.col("low").min(), pl.col("high").max())
    sums = values.group_by(_TASK, maintain_order=True).agg(numbers)
    seed = asked.seed if asked.ci == "bootstrap" else None
    mean, se, low, high = stats.clustered_mean(sums, is_single=single, is_rate=name.startswith(_RATES), seed=seed)
    entry = {"metric": name, "value": mean, "se": se, "low": low, "high": high, "groups": values.height}
    return entry | {"tasks": sums.height, "few": 0 < sums.height < stats.FEW_TASKS}


def _row_share(asked: _GroupsQuery, part: pl.DataFrame, outcome: str) -> dict[str, Any]:
    """Return the share of the scored rows that have an outcome, with its interval by task."""
    number, scored = pl.col(outcome), pl.col("scored")
    ends = {"low": (number == scored).cast(pl.Float64), "high": (number > 0).cast(pl.Float64)}
    values = part.filter(scored > 0).select(_TASK, v=number.cast(pl.Float64), **ends, n=scored)
    return _mean(asked, outcome, values, single=True)


def _row_mean(asked: _GroupsQuery, part: pl.DataFrame) -> dict[str, Any]:
    """Return the mean over rows, with its standard error clustered by task and as if rows were independent."""
    part = part.filter(pl.col("scored") > 0)
    values = part.select(_TASK, v=pl.col("mean") * pl.col("scored"), low="min", high="max", n="scored")
    entry = _mean(asked, "row_mean", values, single=True)
    n, mean, se = int(part["scored"].sum()), entry["value"], entry["se"]
    if mean is None:
        return entry
    within = (part["std"].fill_null(0.0) ** 2 * (part["scored"] - 1)).sum()
    squares = float(within) + float((part["scored"] * (part["mean"] - mean) ** 2).sum())
    naive = None if n == 1 else 0.0 if part["min"].min() == part["max"].max() else math.sqrt(squares / (n - 1) / n)
    return entry | {"naive_se": naive, "design_effect": (se / naive) ** 2 if se is not None and naive else None}


def _pairs(asked: _GroupsQuery, table: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Compare each two models on the tasks they share; return also a note where there are too many."""
    means, rows = [], []
    for part in _parts(table, asked.by) if asked.by and table.height else []:
        label = ", ".join("–" if part[name][0] is None else str(part[name][0]) for name in asked.by)
        tasks = part.select(_TASK, "mean").drop_nulls().sort(_TASK, maintain_order=True)
        means.append((label, tasks.group_by(_TASK, maintain_order=True).agg(pl.col("mean").mean())))
    if len(means) > _MOST_PAIRED:
        values = f"{counted(len(means), 'value')} of {', '.join(asked.by)}"
        return pl.DataFrame(schema=_PAIRS), [f"{values}: at most {_MOST_PAIRED} are compared in pairs"]
    means.sort(key=lambda pair: pair[0].encode())
    for (a, of_a), (b, of_b) in combinations(means, 2):
        both = of_a.join(of_b, on=_TASK, maintain_order="left")
        if not both.height:
            continue
        difference, n = both["mean_right"] - both["mean"], both.height
        least, greatest = float(difference.min()), float(difference.max())  # type: ignore[arg-type]
        mean = least if least == greatest else float(difference.sum()) / n
        std = 0.0 if least == greatest else float(difference.std())  # type: ignore[arg-type]
        test = stats.t_test(mean, std / math.sqrt(n) if n > 1 else None, n - 1)
        row = {"a": a, "b": b, "tasks": n, "difference": mean, **test._asdict()}
        row |= {"p": 1.0} if least == greatest == 0 else {}
        counts = {"wins": difference > 0, "ties": difference == 0, "losses": difference < 0}
        row |= {name: int(is_so.sum()) for name, is_so in counts.items()}
        rows.append(row | {"correlation": stats.correlation(both["mean"], both["mean_right"])})
    for row, adjusted in zip(rows, stats.holm([row["p"] for row in rows]), strict=True):
        row["p_holm"] = adjusted
    return pl.DataFrame([{name: row[name] for name in _PAIRS} for row in rows], schema=_PAIRS), []


def _integrity(
    asked: _GroupsQuery, table: pl.DataFrame, group_names: Sequence[str]
) -> tuple[pl.DataFrame, dict[str, Any], list[str]]:
    """Return whether each group holds together, what that comes to, and what is not known."""
    result = asked.result
    if (keys := result.groups(asked.tasks, group_names)) != asked.keys:
        asked = replace(asked, keys=keys, by=())
        table, _ = _keys(asked)
    table = table.drop(_GROUP).sort([exactly(name) for name in keys], maintain_order=True).with_row_index(_GROUP)
    wanted = [*(() if {*PROMPTS} & {*result.schema} else PROMPTS), *GOLDS, COMPLETION]
    whole, why = whole_rows(result, wanted, asked.rollouts)
    text = result.text_of(whole.schema[COMPLETION]) if COMPLETION in whole.schema else None
    columns = [*prompt_keys(whole.schema), *gold_keys(whole.schema, GOLDS)]
    if text is not None:
        chars = text.str.len_chars().clip(upper_bound=MOST_CHARACTERS)
        columns += [text_key(text).alias("text"), pl.when(text.is_not_null()).then(chars).alias("chars")]

    def read(*columns: pl.Expr, **options: Any) -> Iterator[pl.DataFrame]:
        return (batch.rename({ROW: "row"}) for batch in whole.batches(pl.col(ROW), *columns, **options))

    votes = [] if asked.vote is None else [exactly(asked.vote).alias("vote")]
    rows = _rows(asked, table, result.numbered, [pl.col(ROW), pl.col("reward"), *votes])
    group, reward = (
        pl.repeat(None, result.rows, dtype=rows.schema[name], eager=True).scatter(rows[ROW], rows[name])
        for name in (_GROUP, "reward")
    )
    groups = table.select(pl.col(_GROUP).alias("group"), pl.col(_TASK).alias("task"), "rows")
    groups = groups.with_columns(rest=numbered(table, other_keys(asked.keys, asked.tasks)))
    order = groups["group"].gather(stats.splitmix64(asked.seed, 0, table.height).arg_sort())
    found = gathered(read(*columns, check=True), group) if columns else {}
    size = usual_size(table["rows"]) if asked.size is None else asked.size

    def texts(rows: pl.Series) -> Iterator[pl.DataFrame]:
        assert text is not None  # noqa: S101  (only what has texts is compared)
        return read(text.str.head(MOST_CHARACTERS).alias("text"), rows=rows)

    frame = integrity_of(groups, found, reward, size, asked.near, order, texts)
    facts = integrity_facts(frame, size)
    frame = pl.concat([table.select(*map(exactly, asked.keys), "rows"), frame.drop("is_compared")], how="horizontal")
    if votes:
        answers = answers_of(rows.select(pl.col(_GROUP).alias("group"), "vote"))
        own = groups.select("group").join(answers, on="group", how="left", maintain_order="left").drop("group")
        frame = frame.hstack(own.with_columns(pl.col("answers").fill_null(0)))
    return frame.with_columns(_finite(pl.selectors.float())), facts, [*_unknown(found, why, facts)]


def _unknown(found: Mapping[str, Any], why: str, facts: Mapping[str, Any]) -> Iterator[str]:
    missing = [name for name in ("texts", "prompts", "golds") if name not in found]
    if facts["groups"] and missing:
        yield f"no {' or '.join(missing)} of the rollouts: {f'{why}; {HOW}' if why else 'no column has them'}"
    if facts["compared"] is not None and (others := facts["groups"] - facts["compared"]):
        fact = f"{MOST_PAIRS:,} pairs of texts are compared, of {counted(facts['compared'], 'group')} drawn by --seed"
        yield f"{fact}: what nearly equal texts there are in {counted(others, 'other')} is not known"
