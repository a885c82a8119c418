"""Two rewards of the same rollouts: what changed, by how much, in which checks, on which rows; and what that says of new tasks.

On these rollouts, a diff is a fact. The tests say what to expect of new tasks like these. Sums are of integers, in fixed point, so that
the order in which the engine adds does not show.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any, Unpack

import polars as pl

from assay.errors import AssayError, UsageError, counted
from assay.expressions.completion import completion_text_expr
from assay.expressions.lane import exactly
from assay.insight.originals import NO_TEXTS, originals
from assay.insight.pairing import AFTER, BEFORE, Pairing, changed, paired
from assay.insight.results import ROW, STATES, Result, as_data, names_of, open_result, result_of, sort_key
from assay.insight.stats import FEW_TASKS, finite, mcnemar, normal_p, t_test
from assay.names import COMPLETION, HIDDEN, TEXT
from assay.options import DiffLimits, ScoreOptions, options_of, settle
from assay.runs.recorded import settings_in
from assay.runs.side_by_side import score_side_by_side
from assay.spec.canonical import verifiers_of
from assay.system.quantities import RowLimit
from assay.system.spool import spooling
from assay.writing.recorded_files import recorded_files

_QUANTILES = (0, 1, 5, 25, 50, 75, 95, 99, 100)
_BINS = 40
_MOST_GROUPS = 20
_MOST_SIGNATURES = 100
_FEW_FETCHED = 32
_CHECKS_A_WORD = 32

_TRANSITIONS = tuple(f"{before}->{after}" for before in STATES for after in STATES)
_LOST, _GAINED = _TRANSITIONS.index("pass->fail"), _TRANSITIONS.index("fail->pass")
_FLIPS = tuple(at for at, _ in enumerate(_TRANSITIONS) if at // len(STATES) != at % len(STATES))

_DELTA, _BECAME, _SIZE, _KIND = HIDDEN + "delta", HIDDEN + "became", HIDDEN + "size", HIDDEN + "kind"
_SCORED_NOW, _UNSCORED_NOW = "became scored", "became unscored"
_NO_CHECK = "weights or threshold only"


@dataclass(frozen=True, eq=False)
class Diff:
    """What changed between two rewards of the same rollouts.

    Attributes:
        rows: Rows compared.
        both_scored: Rows with a reward on both sides.
        matrix: Rows by what became of them, ``pass->fail`` and so on for all nine pairs of pass, fail and unscored; None without a
            column ``passed``, as ``flips``, ``regressions`` and ``flip_test``.
        flips: Rows whose state differs.
        regressions: Rows that passed and fail.
        changed: Rows whose reward has not the same bits.
        delta: The reward after, less that before, where both are: ``mean``, ``std``, ``mean_abs``, rows ``equal``, ``up`` and ``down``,
            ``quantiles`` by percentage, and a ``histogram`` of those that are not 0.
        checks: For each check that both sides have: rows that ``changed``, ``pass_to_fail``, ``fail_to_pass``, ``mean_delta``.
        only_before: Checks that only the first side has.
        only_after: Checks that only the second side has.
        by: For each column and value: ``rows``, ``regressions``, ``fail_to_pass``, ``mean_delta``; the largest first.
        flip_test: Whether passing got more or less frequent, for new tasks: exact McNemar, or by tasks where one has several rows.
        reward_test: The same for the reward: Student's t over the means of tasks.
        signatures: The sets of checks that changed where a row flipped, commonest first.
        examples: Rows that flipped, of as many signatures as possible.
        limits: What was allowed, what there is, and whether it exceeds that.
        notes: What the user should know.
    """

    rows: int
    both_scored: int
    matrix: dict[str, int] | None
    flips: int | None
    regressions: int | None
    changed: int
    delta: dict[str, Any]
    checks: list[dict[str, Any]]
    only_before: list[str]
    only_after: list[str]
    by: list[dict[str, Any]]
    flip_test: dict[str, Any] | None
    reward_test: dict[str, Any]
    signatures: list[dict[str, Any]]
    examples: list[dict[str, Any]]
    limits: list[dict[str, Any]] = field(default_factory=list)
    notes: tuple[str, ...] = ()

    @property
    def exceeds(self) -> bool:
        """Whether a limit is exceeded."""
        return any(limit["exceeded"] for limit in self.limits)

    def within(self, **limits: Unpack[DiffLimits]) -> "Diff":
        """Return the diff with limits, each exceeded only by more than it.

        Args:
            limits: See ``assay.options.DiffLimits``.

        Raises:
            UsageError: A limit is not a number of rows, a percentage or a number, or the results do not say what passes.
        """
        settled = settle(DiffLimits, limits, "within")
        counts = {"max_flips": self.flips, "max_regressions": self.regressions, "max_changed": self.changed}
        exceeded = []
        for name, rows in counts.items():
            limit = RowLimit(option := f"--{name.replace('_', '-')}", settled[name])  # type: ignore[literal-required]
            if limit.given is not None and rows is None:
                raise UsageError(f"{option} {limit.given}: the results have no column `passed`.")
            if limit.given is not None and rows is not None:
                exceeded.append(_limit(option, limit.given, rows, exceeded=limit.exceeded(rows, self.rows)))
        if (most := settled["max_delta"]) is not None:
            mean = self.delta["mean"]
            exceeded.append(_limit("--max-delta", most, mean, exceeded=mean is not None and abs(mean) > most))
        return replace(self, limits=exceeded)

    def as_json(self) -> dict[str, Any]:
        """Return JSON data."""
        return as_data(vars(self))


def _limit(option: str, allowed: Any, value: Any, *, exceeded: bool) -> dict[str, Any]:
    return {"limit": option, "allowed": allowed, "value": value, "exceeded": exceeded}


def diff(
    before: Any,
    after: Any,
    *,
    rollouts: Any = None,
    tasks: Any = None,
    on: Sequence[str] | str | None = None,
    by: Sequence[str] | str = ("model",),
    examples: int = 10,
    allow_missing: int | str | None = None,
    task: Sequence[str] | str = (),
    **options: Any,
) -> Diff:
    """Compare two rewards of the same rollouts: two results, or with ``rollouts`` two sets of verifiers, scored in one pass.

    Args:
        before: A parquet file of ``assay score``, a folder of parts, or a Polars frame; with ``rollouts``, one or more verifiers.
        after: The same.
        rollouts: Rollouts to score with both.
        tasks: Their task table.
        on: Columns that tell a rollout, to join the results on; by default, they are compared row by row.
        by: Columns whose values are told apart, each by itself, as far as they exist.
        examples: How many rows that flipped to show.
        allow_missing: With ``on``: how many rows, or which percentage, may be on one side only.
        task: Columns that name the task; by default ``task_id`` or ``example_id``.
        options: With ``rollouts``: options of ``assay.score``.

    Returns:
        What changed.

    Raises:
        InputError: The results cannot be read, or are not of the same rollouts.
        SpecError: A verifier cannot be used.
        UsageError: An option cannot be used.

    Example:
        >>> import assay, polars as pl
        >>> before = pl.DataFrame({"task_id": ["a", "b"], "reward": [1.0, 0.0], "passed": [True, False]})
        >>> after = before.with_columns(reward=pl.Series([1.0, 1.0]), passed=True)
        >>> found = assay.diff(before, after)
        >>> found.flips, found.delta["mean"]
        (1, 0.5)
    """
    if examples < 0:
        raise UsageError(f"--examples {examples}: expected a number of rows, at least 0.")
    keys, columns, clusters = names_of(on), names_of(by), names_of(task)
    if rollouts is None:
        if tasks is not None or options:
            named = sorted({*options, *({"tasks"} if tasks is not None else ())})
            raise UsageError(f"{', '.join(named)}: results are not scored again.", "Name the rollouts.")
        pairing = paired(open_result(before), open_result(after), keys, allow_missing)
        return _with_texts(changes(pairing, columns, clusters, examples), pairing)
    with spooling():
        sides = score_side_by_side(rollouts, (before, after), {"tasks": tasks, **options})
        results = [
            result_of(name, side.frame, side.provenance) for name, side in zip(("before", "after"), sides, strict=True)
        ]
        pairing = paired(results[0], results[1], keys, are_same=not keys)
        return _with_texts(changes(pairing, columns, clusters, examples), pairing, sides[0].source.frame)


def rescored(
    result: Any,
    *,
    rollouts: Any = None,
    tasks: Any = None,
    by: Sequence[str] | str = ("model",),
    examples: int = 10,
    task: Sequence[str] | str = (),
    **options: Any,
) -> Diff:
    """Compare a result with what this version of Assay makes of the same rollouts, by the verifiers in its footer.

    Args:
        result: A parquet file of ``assay score``, or a folder of parts.
        rollouts: Its rollouts; by default the inputs that its footer names.
        tasks: Their task table; by default the one that its footer names.
        by: As for ``diff``.
        examples: As for ``diff``.
        task: As for ``diff``.
        options: Options of ``assay.score``.

    Raises:
        InputError: The result does not say what made it, or its inputs have changed.
        SpecError: Its verifiers cannot be made again.
    """
    before = open_result(result)
    if before.damage is not None:
        raise before.damage
    verifiers = verifiers_of(before.provenance, before.name, options.get("checks") or ())
    settings = settings_in(before.provenance, before.name)
    recorded = {name: value for name, value in settings.items() if name in options_of(ScoreOptions)}
    if recorded.get("keep") is not None:
        recorded["keep"] = "*"  # rollouts that have lost a column that was kept can still be scored
    inputs = recorded_files(before.provenance, "inputs", before.folder, before.name) if rollouts is None else rollouts
    if tasks is None and rollouts is None and before.provenance.get("tasks"):
        tasks = recorded_files(before.provenance, "tasks", before.folder, before.name)
    with spooling():
        (side,) = score_side_by_side(inputs, (list(verifiers),), {**recorded, "tasks": tasks, **options})
        limit = settings.get("limit")
        after = result_of("rescored", side.frame if limit is None else side.frame.head(limit), side.provenance)
        pairing = paired(before, after)
        return _with_texts(changes(pairing, names_of(by), names_of(task), examples), pairing, side.source.frame)


# ── sums ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _parts(values: pl.Expr, name: str, bits: int) -> list[pl.Expr]:
    """Return the sum of values in fixed point: of their whole parts, and of the rest in units of ``2 ** -bits``."""
    whole = values.floor()
    rest = ((values - whole) * 2.0**bits).cast(pl.Int64, strict=False)
    return [whole.cast(pl.Int64, strict=False).sum().alias(f"{name}/whole"), rest.sum().alias(f"{name}/rest")]


def _mean(row: Mapping[str, Any], name: str, bits: int, count: int) -> float | None:
    """Return the mean of values of which ``_parts`` are the sum."""
    return ((row[f"{name}/whole"] << bits) + row[f"{name}/rest"]) / (count << bits) if count else None


def _mean_expr(name: str, bits: int, count: str) -> pl.Expr:
    total = pl.col(f"{name}/whole").cast(pl.Float64) + pl.col(f"{name}/rest").cast(pl.Float64) / 2.0**bits
    return pl.when(pl.col(count) > 0).then(total / pl.col(count))


# ── what changed ────────────────────────────────────────────────────────────────────────────────────────────────────────


def changes(pairing: Pairing, by: Sequence[str], task: Sequence[str], examples: int) -> Diff:
    """Return what changed between two results; examples without their texts.

    Raises:
        InputError: The rollouts are not the same.
        UsageError: A column does not exist.
    """
    before = pairing.before
    columns = before.keys(by, "--by") if by != ("model",) else before.present(by)
    tasks = before.tasks(task)
    has_passed = all("passed" in side.schema for side in (before, pairing.after))
    before = replace(before, files=(*before.files, *pairing.after.files))  # an error names the file
    frame, bits = _prepared(pairing, has_passed=has_passed), 62 - pairing.rows.bit_length()
    queries = [
        _counts(pairing, frame, bits),
        frame.filter(pl.col(_DELTA).is_not_null()).group_by(_DELTA).len(name="rows"),
        _by_task(frame, tasks, bits),
        *(_by_value(frame, name, bits) for name in columns),
    ]
    # one after the other, for memory: together, the rows that one query has not taken yet wait for another
    counts, deltas, by_task, *by_values = map(before.collect, queries)
    row = counts.to_dicts()[0]
    if different := [name for name in pairing.same if row[f"differs/{name}"]]:
        raise pairing.refuse(different)
    matrix = {name: int(row[f"matrix/{at}"]) for at, name in enumerate(_TRANSITIONS)} if has_passed else None
    row |= _beyond(pairing, frame, row, bits)
    flipped = before.collect(_flipped(pairing, frame if has_passed else frame.limit(0)))
    signatures, shown = _signatures(pairing, flipped, examples)
    flip_test = None if matrix is None else _flip_test(matrix, by_task, has_tasks=bool(tasks))
    return Diff(
        rows=pairing.rows,
        both_scored=int(row["both"]),
        matrix=matrix,
        flips=None if matrix is None else sum(matrix[_TRANSITIONS[at]] for at in _FLIPS),
        regressions=None if matrix is None else matrix["pass->fail"],
        changed=int(row["changed"]),
        delta=_distribution(deltas),
        checks=[_check(row, at, name, bits) for at, (name, _, _) in enumerate(pairing.checks)],
        only_before=list(pairing.only_before),
        only_after=list(pairing.only_after),
        by=[entry for name, values in zip(columns, by_values, strict=True) for entry in _values(name, values, bits)],
        flip_test=flip_test,
        reward_test=_reward_test(by_task, bits, has_tasks=bool(tasks)),
        signatures=signatures,
        examples=_rows(pairing, shown, tasks),
        notes=tuple(_notes(pairing, tasks, by_task, has_passed=has_passed)),
    )


def _state(side: str) -> pl.Expr:
    passed = pl.when(exactly(f"{side}passed")).then(0).otherwise(1)
    return pl.when(exactly(f"{side}reward").is_null()).then(2).otherwise(passed).cast(pl.UInt8)


def _prepared(pairing: Pairing, *, has_passed: bool) -> pl.LazyFrame:
    """Return the rows with the difference of the rewards and what became of each."""
    delta = exactly(f"{AFTER}reward") - exactly(f"{BEFORE}reward")
    became = _state(BEFORE) * 3 + _state(AFTER) if has_passed else pl.lit(None, dtype=pl.UInt8)
    known = pl.when(delta.is_finite()).then(delta + 0.0)  # the difference of two large numbers is none
    return pairing.frame.with_columns(known.alias(_DELTA), became.alias(_BECAME))


def _became(transition: int) -> pl.Expr:
    return (pl.col(_BECAME) == transition).sum()


def _counts(pairing: Pairing, frame: pl.LazyFrame, bits: int) -> pl.LazyFrame:
    """Return the numbers of all rows, in one row."""
    both = exactly(f"{BEFORE}reward").is_not_null() & exactly(f"{AFTER}reward").is_not_null()
    exprs = [both.sum().alias("both"), changed(f"{BEFORE}reward", f"{AFTER}reward").sum().alias("changed")]
    exprs += [_became(at).alias(f"matrix/{at}") for at, _ in enumerate(_TRANSITIONS)]
    exprs += [differs.sum().alias(f"differs/{name}") for name, differs in pairing.differs.items()]
    for at, (one, other) in enumerate(_score_columns(pairing)):
        delta = other - one
        exprs += [
            one.ne_missing(other).sum().alias(f"check/{at}/changed"),
            ((one == 1.0) & (other != 1.0)).sum().alias(f"check/{at}/lost"),
            ((one != 1.0) & (other == 1.0)).sum().alias(f"check/{at}/gained"),
            delta.count().alias(f"check/{at}/rows"),
            delta.min().alias(f"check/{at}/min"),
            delta.max().alias(f"check/{at}/max"),
            (delta * 2.0**bits).cast(pl.Int64, strict=False).sum().alias(f"check/{at}"),
        ]
    return frame.select(exprs)


def _score_columns(pairing: Pairing) -> Iterator[tuple[pl.Expr, pl.Expr]]:
    for _, one, other in pairing.checks:
        types = pairing.before.schema[one.column], pairing.after.schema[other.column]
        columns = exactly(BEFORE + one.column), exactly(AFTER + other.column)
        ours, theirs = (
            column if dtype == pl.Float64 else column.cast(pl.Float64)
            for column, dtype in zip(columns, types, strict=True)
        )
        yield ours, theirs


def _beyond(pairing: Pairing, frame: pl.LazyFrame, row: Mapping[str, Any], bits: int) -> dict[str, Any]:
    """Return the sums of the checks whose scores differ by more than 1, which the quick sum does not hold."""
    ends = [[row[f"check/{at}/{end}"] for end in ("min", "max")] for at, _ in enumerate(pairing.checks)]
    large = [at for at, pair in enumerate(ends) if None not in pair and not all(-1.0 <= end <= 1.0 for end in pair)]
    if not large:
        return {}
    columns = list(_score_columns(pairing))
    sums = [part for at in large for part in _parts(columns[at][1] - columns[at][0], f"check/{at}", bits)]
    return pairing.before.collect(frame.select(sums)).to_dicts()[0]


def _check(row: Mapping[str, Any], at: int, name: str, bits: int) -> dict[str, Any]:
    rows = int(row[f"check/{at}/rows"])
    numbers = {"changed": "changed", "pass_to_fail": "lost", "fail_to_pass": "gained"}
    counts = {key: int(row[f"check/{at}/{value}"]) for key, value in numbers.items()}
    if f"check/{at}/whole" in row:
        mean = _mean(row, f"check/{at}", bits, rows)
    else:
        mean = row[f"check/{at}"] / (rows << bits) if rows else None
    return {"check": name, "rows": rows, **counts, "mean_delta": mean}


def _distribution(deltas: pl.DataFrame) -> dict[str, Any]:
    """Return the distribution of the differences, given how many rows have each."""
    deltas = deltas.sort(_DELTA).rechunk()
    values, rows = deltas[_DELTA], deltas["rows"].cast(pl.Int64)
    total = int(rows.sum())
    mean = float((values * rows).sum()) / total if total else None
    if total and values.min() == values.max():
        mean = float(values[0])
    std = None if mean is None or total < 2 else math.sqrt(float(((values - mean) ** 2 * rows).sum()) / (total - 1))  # noqa: PLR2004
    counts = {name: int(rows.filter(where).sum()) for name, where in _directions(values)}
    quantiles = dict(zip(map(str, _QUANTILES), _quantiles(values, rows.cum_sum(), total), strict=True))
    mean_abs = float((values.abs() * rows).sum()) / total if total else None
    numbers = {name: finite(value) for name, value in (("mean", mean), ("std", std), ("mean_abs", mean_abs))}
    return {**numbers, **counts, "quantiles": quantiles, "histogram": _histogram(values, rows)}


def _directions(values: pl.Series) -> Iterator[tuple[str, pl.Series]]:
    yield from (("equal", values == 0), ("up", values > 0), ("down", values < 0))


def _quantiles(values: pl.Series, ends: pl.Series, total: int) -> list[float | None]:
    """Return quantiles of sorted values, each of which ``ends`` at a number of rows; by linear interpolation."""
    found: list[float | None] = []
    for percent in _QUANTILES if total else ():
        place, rest = divmod((total - 1) * percent, 100)
        low, high = (
            float(values[int(ends.search_sorted(at, side="right"))]) for at in (place, min(place + 1, total - 1))
        )
        found.append(low if low == high or not rest else finite(low + (high - low) * (rest / 100)))
    return found or [None] * len(_QUANTILES)


def _histogram(values: pl.Series, rows: pl.Series) -> dict[str, Any]:
    """Return the differences that are not 0 in 40 bins from the negative of the largest to the largest."""
    most = max((abs(float(end)) for end in (values.min(), values.max()) if end is not None), default=0.0)  # type: ignore[arg-type]
    bins = [0] * _BINS
    if most > 0:
        # Polars multiplies by the reciprocal, which of the smallest numbers is infinite
        scale = 0.5 if math.isinf(2 * most) else 2.0**1000 if most < 2.0**-1000 else 1.0
        places = (
            ((values * scale + most * scale) / (2 * (most * scale)) * _BINS).floor().clip(0, _BINS - 1).cast(pl.Int64)
        )
        table = pl.DataFrame({"bin": places, "rows": rows, "value": values}).filter(pl.col("value") != 0)
        for place, number in table.group_by("bin").agg(pl.col("rows").sum()).rows():
            bins[place] = number
    return {"low": 0.0 - most, "high": most, "bins": bins}


# ── by value, by task ───────────────────────────────────────────────────────────────────────────────────────────────────


def _by_value(frame: pl.LazyFrame, name: str, bits: int) -> pl.LazyFrame:
    return frame.group_by(exactly(BEFORE + name).alias("value")).agg(
        pl.len().alias("rows"),
        _became(_LOST).alias("regressions"),
        _became(_GAINED).alias("fail_to_pass"),
        pl.col(_DELTA).count().alias("both"),
        *_parts(pl.col(_DELTA), "delta", bits),
    )


def _values(name: str, table: pl.DataFrame, bits: int) -> list[dict[str, Any]]:
    table = table.with_columns(_mean_expr("delta", bits, "both").alias("mean_delta"))
    text = sort_key(pl.col("value"), table.schema["value"]).alias("text")
    table = table.with_columns(text, pl.col("mean_delta").abs().fill_null(-1.0).alias(_SIZE))
    table = table.sort(_SIZE, "text", descending=[True, False], nulls_last=True).head(_MOST_GROUPS)
    columns = ("value", "rows", "regressions", "fail_to_pass", "mean_delta")
    rows = table.select(columns).iter_rows(named=True)
    return [{"column": name, **row, "value": _finite(row["value"])} for row in rows]


def _finite(value: Any) -> Any:
    """Return a value; its text if it has a number that JSON has not."""
    try:
        json.dumps(value, default=str, allow_nan=False)
    except ValueError:
        return str(value)
    return value


def _by_task(frame: pl.LazyFrame, tasks: Sequence[str], bits: int) -> pl.LazyFrame:
    """Return the numbers of each task; without tasks, each row is one, and rows that are alike are counted together."""
    keys = [exactly(BEFORE + name) for name in tasks]
    measures = [
        pl.len().cast(pl.Int64).alias("rows"),
        _became(_LOST).cast(pl.Int64).alias("lost"),
        _became(_GAINED).cast(pl.Int64).alias("gained"),
        pl.col(_DELTA).count().cast(pl.Int64).alias("both"),
        *_parts(pl.col(_DELTA), "delta", bits),
    ]
    if keys:
        named = [key.alias(f"{HIDDEN}task/{at}") for at, key in enumerate(keys)]
        return frame.group_by(named).agg(measures)
    return frame.filter(pl.col(_DELTA).is_not_null()).group_by(_DELTA).agg(measures)


def _known(by_task: pl.DataFrame) -> pl.DataFrame:
    """Return the tasks whose id is not null."""
    keys = [name for name in by_task.columns if name.startswith(f"{HIDDEN}task/")]
    return by_task.filter(pl.all_horizontal(pl.col(key).is_not_null() for key in keys)) if keys else by_task


def _flip_test(matrix: Mapping[str, int], by_task: pl.DataFrame, *, has_tasks: bool) -> dict[str, Any]:
    tasks = _known(by_task)
    lost, gained = matrix["pass->fail"], matrix["fail->pass"]
    if not has_tasks or (tasks["rows"].max() or 0) < 2:  # type: ignore[operator]  # noqa: PLR2004
        if has_tasks:
            lost, gained = int(tasks["lost"].sum()), int(tasks["gained"].sum())
        numbers = {"pass_to_fail": lost, "fail_to_pass": gained, "z": None, "p": mcnemar(lost, gained)}
        return {"test": "mcnemar", **numbers}
    gains = tasks["gained"] - tasks["lost"]
    squares, total = int((gains**2).sum()), int(gains.sum())
    z = total / math.sqrt(squares) if squares else None
    numbers = {"pass_to_fail": int(tasks["lost"].sum()), "fail_to_pass": int(tasks["gained"].sum())}
    return {"test": "clustered by task", **numbers, "z": z, "p": 1.0 if z is None else normal_p(z)}


def _reward_test(by_task: pl.DataFrame, bits: int, *, has_tasks: bool) -> dict[str, Any]:
    tasks = _known(by_task).filter(pl.col("both") > 0).with_columns(_mean_expr("delta", bits, "both").alias("mean"))
    rows = pl.lit(1, dtype=pl.Int64) if has_tasks else pl.col("both")
    table = tasks.select(pl.col("mean"), rows.alias("n")).sort("mean").rechunk()
    means, n = table["mean"], table["n"]
    count = int(n.sum())
    empty: dict[str, Any] = {"test": "t", "tasks": count, "mean": None, "se": None, "t": None, "p": None}
    if not count:
        return {**empty, "ci95": None, "few": True}
    mean, se = float(means[0]), 0.0 if count > 1 else None
    if means.min() != means.max():
        mean = float((means * n).sum()) / count
        se = math.sqrt(float(((means - mean) ** 2 * n).sum()) / (count - 1) / count)
    test = t_test(mean, se, count - 1)
    ci95 = None if test.low is None or test.high is None else [test.low, test.high]
    return {**empty, "mean": mean, "se": test.se, "t": test.t, "p": test.p, "ci95": ci95, "few": count < FEW_TASKS}


def _notes(pairing: Pairing, tasks: Sequence[str], by_task: pl.DataFrame, *, has_passed: bool) -> Iterator[str]:
    for side in dict.fromkeys((pairing.before, pairing.after)):
        yield from (f"{side.name}: {note}" for note in side.notes if "provenance" not in note)
    if not has_passed:
        yield "without a column `passed` on both sides there are no flips"
    if not tasks:
        yield "no column names the task of a row: the tests take rows as independent"
    elif left_out := int(by_task["rows"].sum()) - int(_known(by_task)["rows"].sum()):
        yield f"{counted(left_out, 'row')} without a task: left out of the tests"
    if pairing.dropped:
        yield f"{counted(pairing.dropped, 'row')} on one side only: left out"


# ── examples ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _words(pairing: Pairing) -> list[pl.Expr]:
    """Return which checks changed, as bits: for each, 1 if its score rose, 2 if it fell, 3 if it has one on one side only."""
    codes = []
    for one, other in _score_columns(pairing):
        code = pl.when(other > one).then(1).when(other < one).then(2).when(one.is_null() != other.is_null()).then(3)
        codes.append(code.otherwise(0).cast(pl.UInt64))
    parts = [codes[at : at + _CHECKS_A_WORD] for at in range(0, len(codes), _CHECKS_A_WORD)]
    return [
        reduce(add, (code * pl.lit(1 << 2 * bit, dtype=pl.UInt64) for bit, code in enumerate(part))) for part in parts
    ]


def _flipped(pairing: Pairing, frame: pl.LazyFrame) -> pl.LazyFrame:
    """Return the rows that flipped, each with what changed in it."""
    unscored = STATES.index("unscored")
    now, then = pl.col(_BECAME) % len(STATES), pl.col(_BECAME) // len(STATES)
    kind = pl.when(then == unscored).then(1).when(now == unscored).then(2).otherwise(0).cast(pl.UInt8)
    words = [
        pl.when(kind == 0).then(word).otherwise(0).alias(f"{_KIND}/{at}") for at, word in enumerate(_words(pairing))
    ]
    frame = pairing.row_of_after(frame.filter(now != then))
    size = pl.col(_DELTA).abs().fill_null(0.0).alias(_SIZE)
    return frame.select(pl.col(ROW), pl.col("row_after"), size, kind.alias(_KIND), *words)


def _signatures(pairing: Pairing, flipped: pl.DataFrame, examples: int) -> tuple[list[dict[str, Any]], pl.DataFrame]:
    """Return the signatures, commonest first, and the rows to show: of each in turn the one with the largest difference."""
    keys = [name for name in flipped.columns if name.startswith(_KIND)]
    order = flipped.group_by(keys).agg(pl.len().alias("rows"), pl.col(ROW).min().alias("first"))
    order = order.sort("rows", "first", descending=[True, False]).with_row_index("at")
    named = [_signature(pairing, row) for row in order.head(max(_MOST_SIGNATURES, examples)).iter_rows(named=True)]
    found = [{"signature": name, "rows": rows} for name, rows in zip(named, order["rows"], strict=False)]
    common = order.head(examples).select(keys).to_dicts()
    largest = [_largest(flipped, signature, examples, at) for at, signature in enumerate(common)]
    ranked = pl.concat([_largest(flipped, {}, 0), *largest]).sort("turn", "at").head(examples)
    shown = ranked.select(ROW, "row_after", "at").with_columns(
        signature=pl.Series([named[at] for at in ranked["at"]], dtype=pl.List(pl.String))
    )
    return found[:_MOST_SIGNATURES], shown


def _largest(flipped: pl.DataFrame, signature: Mapping[str, int], most: int, at: int = 0) -> pl.DataFrame:
    """Return the rows of a signature with the largest differences, each with its ``turn`` and the number ``at`` of the signature.

    NOTE: to sort all rows that flipped would take longer than the rest of a diff, where a threshold moves.
    """
    rows = flipped.filter(
        pl.all_horizontal(pl.lit(value=True), *(pl.col(name) == key for name, key in signature.items()))
    )
    rows = rows.top_k(most, by=[_SIZE, ROW], reverse=[False, True]).sort(_SIZE, ROW, descending=[True, False])
    return rows.with_row_index("turn").with_columns(pl.lit(at, dtype=pl.UInt32).alias("at"))


def _signature(pairing: Pairing, row: Mapping[str, Any]) -> list[str]:
    if row[_KIND]:
        return [_SCORED_NOW if row[_KIND] == 1 else _UNSCORED_NOW]
    marks = []
    for at, (name, _, _) in enumerate(pairing.checks):
        word, bit = divmod(at, _CHECKS_A_WORD)
        code = row[f"{_KIND}/{word}"] >> 2 * bit & 3
        marks += [f"{' +-~'[code]}{name}"] if code else []
    return marks or [_NO_CHECK]


def _rows(pairing: Pairing, shown: pl.DataFrame, tasks: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows to show: their keys, and what each side says of them."""
    names = pairing.on or tuple(dict.fromkeys(("rollout_id", *pairing.before.groups(tasks), "sample_idx")))
    keys = [name for name in names if name in pairing.before.passed_through]
    sides = [
        _fetched(side, shown[column].to_list(), ("reward", "passed", "feedback", "error", *keys))
        for side, column in ((pairing.before, ROW), (pairing.after, "row_after"))
    ]
    return [
        {
            "row": row,
            "row_after": row_after,
            "key": {name: before[name] for name in keys},
            "signature": signature,
            **{
                name: {key: side.get(key) for key in ("reward", "passed", "error")}
                for name, side in (("before", before), ("after", after))
            },
            "feedback_before": before.get("feedback"),
            "feedback_after": after.get("feedback"),
            "text": None,
            "text_after": None,
        }
        for (row, row_after, _, signature), before, after in zip(shown.rows(), *sides, strict=True)
    ]


def _fetched(result: Result, rows: Sequence[int], columns: Iterable[str]) -> list[dict[str, Any]]:
    """Return some columns of some rows, as far as they exist."""
    names = [name for name in columns if name in result.schema]
    return _picked(result.frame.select(map(exactly, names)), rows, result)


def _picked(frame: pl.LazyFrame, rows: Sequence[int], result: Result) -> list[dict[str, Any]]:
    if len(rows) <= _FEW_FETCHED and result.files:  # parquet goes straight to a row
        return [result.collect(frame.slice(row, 1)).to_dicts()[0] for row in rows]
    numbered = frame.with_row_index(ROW).filter(pl.col(ROW).is_in(list(rows)))
    by_row = {row.pop(ROW): row for row in result.collect(numbered).to_dicts()}
    return [by_row[row] for row in rows]


def _with_texts(diff: Diff, pairing: Pairing, rollouts: pl.LazyFrame | None = None) -> Diff:
    """Return a diff with the texts that each side scored.

    Args:
        diff: The diff.
        pairing: Its two results.
        rollouts: What both sides scored; by default what each result keeps, or says that it was made from.
    """
    if not diff.examples:
        return diff
    ours, theirs = ([example[key] for example in diff.examples] for key in ("row", "row_after"))
    if rollouts is not None:
        dtype = rollouts.collect_schema()[COMPLETION]
        texts = rollouts.select(completion_text_expr(COMPLETION, dtype).alias(TEXT))
        before = after = [row[TEXT] for row in _picked(texts, ours, pairing.before)]
        notes = list[str]()
    else:
        (before, notes), (after, others) = _texts(pairing.before, ours), _texts(pairing.after, theirs)
        notes = list(dict.fromkeys([*notes, *others]))
    sides = zip(diff.examples, before, after, strict=True)
    examples = [{**row, "text": text, "text_after": text_after} for row, text, text_after in sides]
    return replace(diff, examples=examples, notes=(*diff.notes, *notes))


def _texts(result: Result, rows: Sequence[int]) -> tuple[list[str | None], list[str]]:
    """Return the texts that rows of a result were made from, and a note if they cannot be had."""
    if COMPLETION not in result.schema and not result.provenance:
        return [None for _ in rows], []
    try:
        found, why = originals(result, rows)
    except AssayError as error:
        found, why = NO_TEXTS, error.fact
    by_row = dict(zip(found[ROW], found[TEXT], strict=True))
    return [by_row.get(row) for row in rows], [f"{result.name}: no texts: {why}"] if why else []
