"""Two rewards of the same rollouts: what changed, by how much, in which checks, on which rows; and what that says of new tasks.

On these rollouts, a diff is a fact. The tests say what to expect of new tasks like these. Sums are of integers, in fixed point, so that
the order in which the engine adds does not show.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any, Unpack

import polars as pl

from assay.errors import AssayError, UsageError, counted
from assay.expressions.shared_columns import exactly
from assay.insight.charts import svg
from assay.insight.charts.chart import drawn_alone
from assay.insight.documents import diff_document
from assay.insight.originals import NO_TEXTS, beside_rollouts, originals
from assay.insight.pairing import AFTER, BEFORE, Pairing, changed, paired
from assay.insight.results import ROW, STATES, Result, as_data, names_of, open_result, result_of, sort_key
from assay.insight.stats import FEW_TASKS, finite, fixed_mean, fixed_sums, mcnemar, normal_p, t_test
from assay.names import COMPLETION, HIDDEN, TEXT
from assay.options import DiffLimits, DiffOptions, ScoreOptions, documented, options_of, settle
from assay.runs.file_run import settings_in
from assay.runs.side_by_side import score_side_by_side
from assay.spec.canonical import verifiers_of
from assay.system.quantities import RowLimit
from assay.system.spool import spooling
from assay.writing.documents import Document
from assay.writing.notebooks import Displayed
from assay.writing.numbers import count
from assay.writing.recorded_files import recorded_files

_QUANTILES = (0, 1, 5, 25, 50, 75, 95, 99, 100)
_BINS = 40
_MOST_GROUPS = 20
_MOST_SIGNATURES = 100
_FEW_FETCHED = 32
_LISTED = 50
"""How many rows are named of a signature, and of a bin of the histogram."""

_CHECKS_A_WORD = 32

_TRANSITIONS = tuple(f"{before}->{after}" for before in STATES for after in STATES)
_LOST, _GAINED = "pass->fail", "fail->pass"
_DELTA, _BECAME, _SIZE, _KIND, _TASK = (HIDDEN + name for name in ("delta", "became", "size", "kind", "task/"))


@dataclass(frozen=True, eq=False, repr=False)
class Diff(Displayed):
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
        delta_rows: For each bin of the histogram, the first 50 of its rows in the second result.
        checks: For each check that both sides have: rows that ``changed``, ``pass_to_fail``, ``fail_to_pass``, ``mean_delta``.
        only_before: Checks that only the first side has.
        only_after: Checks that only the second side has.
        by: For each column and value: ``rows``, ``regressions``, ``fail_to_pass``, ``mean_delta``; the largest first.
        flip_test: Whether passing got more or less frequent, for new tasks: exact McNemar, or by tasks where one has several rows.
        reward_test: The same for the reward: Student's t over the means of tasks.
        signatures: The sets of checks that changed where a row flipped, commonest first, with the first 50 ``rows_after``: numbers of
            rows in the second result.
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
    delta_rows: list[list[int]]
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
        limited: list[tuple[str, Any, Any, bool]] = []
        for name, rows in counts.items():
            limit = RowLimit(option := f"--{name.replace('_', '-')}", settled[name])  # type: ignore[literal-required]
            if limit.given is not None and rows is None:
                raise UsageError(f"{option} {limit.given}: the results have no column `passed`.")
            if limit.given is not None and rows is not None:
                limited.append((option, limit.given, rows, limit.exceeded(rows, self.rows)))
        if (most := settled["max_delta"]) is not None:
            mean = self.delta["mean"]
            limited.append(("--max-delta", most, mean, mean is not None and abs(mean) > most))
        names = ("limit", "allowed", "value", "exceeded")
        return replace(self, limits=[dict(zip(names, entry, strict=True)) for entry in limited])

    @property
    def headline(self) -> str:
        """How many rows flipped, and how many rewards changed."""
        return " · ".join(
            [
                counted(self.rows, "row"),
                *([] if self.flips is None else [counted(self.flips, "flip")]),
                f"{counted(self.changed, 'reward')} changed",
            ]
        )

    def _document(self) -> Document:
        return diff_document(self.as_json())

    def _charts(self) -> list[str]:
        return charts_of(self)

    def as_json(self) -> dict[str, Any]:
        """Return JSON data."""
        return as_data(vars(self))


def charts_of(diff: Diff) -> list[str]:
    """Return the histogram of the differences that are not 0, for notebooks; nothing if there are none."""
    histogram = diff.delta["histogram"]
    if not sum(histogram["bins"]):
        return []
    title, ends = "Differences of rewards", (histogram["low"], histogram["high"])
    words = f"{count(diff.delta['equal'])} rows without one are left out."
    drawn = svg.histogram("assay-delta", title, words, histogram["bins"], ends, "reward after − before")
    return [drawn_alone(title, 380, 190, [str(drawn)]).svg]


@documented(DiffOptions)
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
    """Compare the rewards of the same rollouts by two verifiers: two results, or with ``rollouts`` two sets of verifiers, scored in one pass.

    With ``rollouts``, other keywords are options of ``assay.score``.

    Args:
        before: A parquet file of ``assay score``, a folder of parts, or a Polars frame; with ``rollouts``, one or more verifiers.
        after: The same.
        options: Those of ``assay.options.DiffOptions``, as the signature lists them.

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
    with comparing(
        before,
        after,
        rollouts=rollouts,
        tasks=tasks,
        on=on,
        by=by,
        examples=examples,
        allow_missing=allow_missing,
        task=task,
        **options,
    ) as (found, _):
        return found


@contextmanager
def comparing(
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
) -> Iterator[tuple[Diff, Result]]:
    """Yield what ``diff`` returns, and the second result; of rollouts that are scored, it is there within the context only."""
    keys, columns, clusters = names_of(on), names_of(by), names_of(task)
    if rollouts is None:
        if tasks is not None or options:
            named = sorted({*options, *({"tasks"} if tasks is not None else ())})
            raise UsageError(f"{', '.join(named)}: results are not scored again.", "Name the rollouts.")
        pairing = paired(open_result(before), open_result(after), keys, allow_missing)
        yield _with_texts(changes(pairing, columns, clusters, examples), pairing.before, pairing.after), pairing.after
        return
    with spooling():
        sides = score_side_by_side(rollouts, (before, after), {"tasks": tasks, **options})
        ours, theirs = (
            result_of(name, side.frame, side.provenance) for name, side in zip(("before", "after"), sides, strict=True)
        )
        pairing = paired(ours, theirs, keys, are_same=not keys)
        whole = [beside_rollouts(result, sides[0].source) for result in (ours, theirs)]
        yield _with_texts(changes(pairing, columns, clusters, examples), *whole), whole[1]


@contextmanager
def comparing_again(
    result: Any,
    *,
    rollouts: Any = None,
    tasks: Any = None,
    by: Sequence[str] | str = ("model",),
    examples: int = 10,
    task: Sequence[str] | str = (),
    **options: Any,
) -> Iterator[tuple[Diff, Result]]:
    """Compare a result with what this version of Assay makes of the same rollouts, by the verifiers in its footer.

    Rollouts and tasks are by default the files that the footer names; the rest is as for ``comparing``.
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
        frame, source = side.frame, side.source
        if limit is not None:
            frame, source = frame.head(limit), replace(source, frame=source.frame.head(limit))
        after = result_of("rescored", frame, side.provenance)
        pairing = paired(before, after)
        whole = [beside_rollouts(result, source) for result in (before, after)]
        yield _with_texts(changes(pairing, names_of(by), names_of(task), examples), *whole), whole[1]


def changes(pairing: Pairing, by: Sequence[str], task: Sequence[str], examples: int) -> Diff:
    """Return what changed between two results; examples without their texts."""
    before = pairing.before
    columns = before.keys(by, "--by") if by != ("model",) else before.present(by)
    tasks = before.tasks(task)
    has_passed = all("passed" in side.schema for side in (before, pairing.after))
    before = replace(before, files=(*before.files, *pairing.after.files))  # an error names the file
    bits = 62 - pairing.rows.bit_length()
    delta = exactly(f"{AFTER}reward") - exactly(f"{BEFORE}reward")
    delta = pl.when(delta.is_finite()).then(delta + 0.0)  # the difference of two large numbers is none
    became = _state(BEFORE) * len(STATES) + _state(AFTER) if has_passed else pl.lit(None, dtype=pl.UInt8)
    frame = pairing.frame.with_columns(delta.alias(_DELTA), became.alias(_BECAME))
    measures = [
        pl.len().cast(pl.Int64).alias("rows"),
        _number(_LOST).alias("lost"),
        _number(_GAINED).alias("gained"),
        pl.col(_DELTA).count().cast(pl.Int64).alias("both"),
        *fixed_sums(pl.col(_DELTA), "delta", bits),
    ]
    known = frame.filter(pl.col(_DELTA).is_not_null())
    of_tasks = frame.group_by(exactly(BEFORE + name).alias(_TASK + name) for name in tasks) if tasks else None
    queries = [
        _counts(pairing, frame, bits),
        known.group_by(_DELTA).len(name="rows"),
        # without tasks, each row is one, and rows that are alike are counted together
        (of_tasks or known.group_by(_DELTA)).agg(measures),
        *(frame.group_by(exactly(BEFORE + name).alias("value")).agg(measures) for name in columns),
    ]
    # one after the other, for memory: together, the rows that one query has not taken yet wait for another
    counts, deltas, by_task, *by_values = map(before.collect, queries)
    row = counts.to_dicts()[0]
    if different := [name for name in pairing.same if row[f"differs/{name}"]]:
        raise pairing.refuse(different)
    matrix = {name: int(row[f"matrix/{index}"]) for index, name in enumerate(_TRANSITIONS)} if has_passed else None
    flipped = before.collect(_flipped(pairing, frame if has_passed else frame.limit(0)))
    signatures, shown = _signatures(pairing, flipped, examples)
    distribution = _distribution(deltas)
    named = by_task.filter(pl.all_horizontal(pl.lit(value=True), pl.selectors.starts_with(_TASK).is_not_null()))
    return Diff(
        rows=pairing.rows,
        both_scored=int(row["both"]),
        matrix=matrix,
        flips=None if matrix is None else sum(matrix.values()) - sum(matrix[f"{state}->{state}"] for state in STATES),
        regressions=None if matrix is None else matrix[_LOST],
        changed=int(row["changed"]),
        delta=distribution,
        delta_rows=_rows_of_bins(pairing, known, distribution["histogram"]["high"]),
        checks=[_check(row, index, name, bits) for index, (name, _, _) in enumerate(pairing.checks)],
        only_before=list(pairing.only_before),
        only_after=list(pairing.only_after),
        by=[entry for name, table in zip(columns, by_values, strict=True) for entry in _values(name, table, bits)],
        flip_test=None if matrix is None else _flip_test(matrix, named, has_tasks=bool(tasks)),
        reward_test=_reward_test(named, bits, has_tasks=bool(tasks)),
        signatures=signatures,
        examples=_rows(pairing, shown, tasks),
        notes=tuple(
            _notes(pairing, int(by_task["rows"].sum()) - int(named["rows"].sum()), tasks, has_passed=has_passed)
        ),
    )


def _state(side: str) -> pl.Expr:
    passed = pl.when(exactly(f"{side}passed")).then(0).otherwise(1)
    return pl.when(exactly(f"{side}reward").is_null()).then(2).otherwise(passed).cast(pl.UInt8)


def _number(transition: str) -> pl.Expr:
    return (pl.col(_BECAME) == _TRANSITIONS.index(transition)).sum().cast(pl.Int64)


def _counts(pairing: Pairing, frame: pl.LazyFrame, bits: int) -> pl.LazyFrame:
    rewards = f"{BEFORE}reward", f"{AFTER}reward"
    both = pl.all_horizontal(exactly(name).is_not_null() for name in rewards)
    exprs = [both.sum().alias("both"), changed(*rewards).sum().alias("changed")]
    exprs += [_number(name).alias(f"matrix/{index}") for index, name in enumerate(_TRANSITIONS)]
    exprs += [differs.sum().alias(f"differs/{name}") for name, differs in pairing.differs.items()]
    for index, (one, other) in enumerate(_scores(pairing)):
        exprs += [
            one.ne_missing(other).sum().alias(f"check/{index}/changed"),
            ((one == 1.0) & (other != 1.0)).sum().alias(f"check/{index}/lost"),
            ((one != 1.0) & (other == 1.0)).sum().alias(f"check/{index}/gained"),
            (other - one).count().alias(f"check/{index}/rows"),
            *fixed_sums(other - one, f"check/{index}", bits),
        ]
    return frame.select(exprs)


def _scores(pairing: Pairing) -> list[tuple[pl.Expr, pl.Expr]]:
    names = [(BEFORE + one.column, AFTER + other.column) for _, one, other in pairing.checks]
    return [(exactly(one).cast(pl.Float64), exactly(other).cast(pl.Float64)) for one, other in names]


def _check(row: Mapping[str, Any], index: int, name: str, bits: int) -> dict[str, Any]:
    rows, changed_rows, lost, gained = (
        int(row[f"check/{index}/{key}"]) for key in ("rows", "changed", "lost", "gained")
    )
    mean = fixed_mean(row, f"check/{index}", bits, rows)
    counts = {"rows": rows, "changed": changed_rows, "pass_to_fail": lost, "fail_to_pass": gained}
    return {"check": name, **counts, "mean_delta": mean}


def _distribution(deltas: pl.DataFrame) -> dict[str, Any]:
    deltas = deltas.sort(_DELTA).rechunk()
    values, rows = deltas[_DELTA], deltas["rows"].cast(pl.Int64)
    total, mean, std, mean_abs = int(rows.sum()), None, None, None
    quantiles: list[float | None] = [None] * len(_QUANTILES)
    if total:
        mean = float(values[0]) if values.min() == values.max() else float((values * rows).sum()) / total
        mean_abs = float((values.abs() * rows).sum()) / total
        std = math.sqrt(float(((values - mean) ** 2 * rows).sum()) / (total - 1)) if total > 1 else None
        ends = rows.cum_sum()
        for index, percent in enumerate(_QUANTILES):  # by linear interpolation
            place, rest = divmod((total - 1) * percent, 100)
            places = (int(ends.search_sorted(end, side="right")) for end in (place, min(place + 1, total - 1)))
            low, high = (float(values[place]) for place in places)
            quantiles[index] = low if low == high or not rest else finite(low + (high - low) * (rest / 100))
    return {
        "mean": finite(mean),
        "std": finite(std),
        "mean_abs": finite(mean_abs),
        "equal": int(rows.filter(values == 0).sum()),
        "up": int(rows.filter(values > 0).sum()),
        "down": int(rows.filter(values < 0).sum()),
        "quantiles": dict(zip(map(str, _QUANTILES), quantiles, strict=True)),
        "histogram": _histogram(values, rows),
    }


def _histogram(values: pl.Series, rows: pl.Series) -> dict[str, Any]:
    """Return the differences that are not 0 in 40 bins from the negative of the largest to the largest."""
    most, bins = float(values.abs().max() or 0.0), [0] * _BINS  # type: ignore[arg-type]
    if most > 0:
        table = pl.DataFrame({_DELTA: values, "rows": rows}).filter(pl.col(_DELTA) != 0)
        for place, number in table.group_by(_bin(most)).agg(pl.col("rows").sum()).rows():
            bins[place] = number
    return {"low": 0.0 - most, "high": most, "bins": bins}


def _bin(most: float) -> pl.Expr:
    """Return the bin of a difference."""
    # Polars multiplies by the reciprocal, which of the smallest numbers is infinite
    scale = 0.5 if math.isinf(2 * most) else 2.0**1000 if most < 2.0**-1000 else 1.0
    place = (pl.col(_DELTA) * scale + most * scale) / (2 * (most * scale)) * _BINS
    return place.floor().clip(0, _BINS - 1).cast(pl.UInt8).alias("bin")


def _rows_of_bins(pairing: Pairing, known: pl.LazyFrame, most: float) -> list[list[int]]:
    """Return the first rows of the second result in each bin."""
    rows: list[list[int]] = [[] for _ in range(_BINS)]
    if most > 0:
        changed_rows = pairing.row_of_after(known.filter(pl.col(_DELTA) != 0)).select(_bin(most), "row_after")
        first = changed_rows.group_by("bin").agg(pl.col("row_after").bottom_k(_LISTED))
        for place, numbers in pairing.before.collect(first).rows():
            rows[place] = sorted(numbers)
    return rows


def _means(table: pl.DataFrame, bits: int) -> pl.DataFrame:
    """Add the mean difference of each row's rows, ``mean_delta``."""
    total = pl.col("delta/whole").cast(pl.Float64) + pl.col("delta/rest").cast(pl.Float64) / 2.0**bits
    return table.with_columns(pl.when(pl.col("both") > 0).then(total / pl.col("both")).alias("mean_delta"))


def _values(name: str, table: pl.DataFrame, bits: int) -> list[dict[str, Any]]:
    """Return the values of a column with the largest differences."""
    text = sort_key(pl.col("value"), table.schema["value"]).alias("text")
    table = _means(table, bits).with_columns(text, pl.col("mean_delta").abs().fill_null(-1.0).alias(_SIZE))
    table = table.sort(_SIZE, "text", descending=[True, False], nulls_last=True).head(_MOST_GROUPS)
    found = []
    for row in table.iter_rows(named=True):
        value = row["value"]
        try:
            json.dumps(value, default=str, allow_nan=False)
        except ValueError:  # a number that JSON has not
            value = str(value)
        entry = {"column": name, "value": value, "rows": row["rows"], "regressions": row["lost"]}
        found.append(entry | {"fail_to_pass": row["gained"], "mean_delta": row["mean_delta"]})
    return found


def _flip_test(matrix: Mapping[str, int], tasks: pl.DataFrame, *, has_tasks: bool) -> dict[str, Any]:
    lost, gained = matrix[_LOST], matrix[_GAINED]
    if has_tasks:
        lost, gained = int(tasks["lost"].sum()), int(tasks["gained"].sum())
    numbers = {"pass_to_fail": lost, "fail_to_pass": gained}
    if not has_tasks or (tasks["rows"].max() or 0) < 2:  # type: ignore[operator]  # noqa: PLR2004
        return {"test": "mcnemar", **numbers, "z": None, "p": mcnemar(lost, gained)}
    gains = tasks["gained"] - tasks["lost"]
    squares = int((gains**2).sum())
    z = int(gains.sum()) / math.sqrt(squares) if squares else None
    return {"test": "clustered by task", **numbers, "z": z, "p": 1.0 if z is None else normal_p(z)}


def _reward_test(tasks: pl.DataFrame, bits: int, *, has_tasks: bool) -> dict[str, Any]:
    rows = pl.lit(1, dtype=pl.Int64) if has_tasks else pl.col("both")
    table = _means(tasks.filter(pl.col("both") > 0), bits).select("mean_delta", rows.alias("n")).sort("mean_delta")
    means, n = table.rechunk()
    count, mean, se = int(n.sum()), None, None
    if count:
        mean, se = float(means[0]), 0.0 if count > 1 else None
        if means.min() != means.max():
            mean = float((means * n).sum()) / count
            se = math.sqrt(float(((means - mean) ** 2 * n).sum()) / (count - 1) / count)
    test = t_test(mean or 0.0, se, count - 1)
    numbers = {"mean": mean, "se": test.se, "t": test.t, "p": test.p}
    ci95 = None if test.low is None or test.high is None else [test.low, test.high]
    return {"test": "t", "tasks": count, **numbers, "ci95": ci95, "few": count < FEW_TASKS}


def _notes(pairing: Pairing, without_task: int, tasks: Sequence[str], *, has_passed: bool) -> Iterator[str]:
    for side in dict.fromkeys((pairing.before, pairing.after)):
        yield from (f"{side.name}: {note}" for note in side.notes if "provenance" not in note)
    if not has_passed:
        yield "without a column `passed` on both sides there are no flips"
    if not tasks:
        yield "no column names the task of a row: the tests take rows as independent"
    elif without_task:
        yield f"{counted(without_task, 'row')} without a task: left out of the tests"
    if pairing.dropped:
        yield f"{counted(pairing.dropped, 'row')} on one side only: left out"


def _flipped(pairing: Pairing, frame: pl.LazyFrame) -> pl.LazyFrame:
    """Return the rows that flipped, each with what changed in it.

    For each check two bits say that its score rose (1), that it fell (2), or that it has one on one side only (3).
    """
    codes: list[pl.Expr] = []
    for one, other in _scores(pairing):
        code = pl.when(other > one).then(1).when(other < one).then(2).when(one.is_null() != other.is_null()).then(3)
        codes.append(code.otherwise(0).cast(pl.UInt64) * pl.lit(1 << 2 * (len(codes) % _CHECKS_A_WORD), pl.UInt64))
    unscored = STATES.index("unscored")
    now, then = pl.col(_BECAME) % len(STATES), pl.col(_BECAME) // len(STATES)
    kind = pl.when(then == unscored).then(1).when(now == unscored).then(2).otherwise(0).cast(pl.UInt8)
    words = [reduce(add, codes[start : start + _CHECKS_A_WORD]) for start in range(0, len(codes), _CHECKS_A_WORD)]
    words = [pl.when(kind == 0).then(word).otherwise(0).alias(f"{_KIND}/{at}") for at, word in enumerate(words)]
    size = pl.col(_DELTA).abs().fill_null(0.0).alias(_SIZE)
    return pairing.row_of_after(frame.filter(now != then)).select(ROW, "row_after", size, kind.alias(_KIND), *words)


def _signatures(pairing: Pairing, flipped: pl.DataFrame, examples: int) -> tuple[list[dict[str, Any]], pl.DataFrame]:
    """Return the signatures, commonest first, and the rows to show: of each in turn the one with the largest difference."""
    keys = [name for name in flipped.columns if name.startswith(_KIND)]
    numbers = [pl.len().alias("rows"), pl.col(ROW).min().alias("first"), pl.col("row_after").bottom_k(_LISTED)]
    order = flipped.group_by(keys).agg(numbers)
    order = order.sort("rows", "first", descending=[True, False]).head(max(_MOST_SIGNATURES, examples))
    named, shown = [], [flipped.clear().with_row_index("turn").with_columns(at=pl.lit(0, pl.UInt32))]
    for at, entry in enumerate(order.iter_rows(named=True)):
        signature = _signature(pairing, entry)
        named.append({"signature": signature, "rows": entry["rows"], "rows_after": sorted(entry["row_after"])})
        if at < examples:
            # NOTE: to sort all rows that flipped would take longer than the rest of a diff, where a threshold moves
            rows = flipped.filter(pl.all_horizontal(pl.col(name) == entry[name] for name in keys))
            rows = rows.top_k(examples, by=[_SIZE, ROW], reverse=[False, True])
            rows = rows.sort(_SIZE, ROW, descending=[True, False]).with_row_index("turn")
            shown.append(rows.with_columns(at=pl.lit(at, pl.UInt32)))
    ranked = pl.concat(shown).sort("turn", "at").head(examples)
    signatures = pl.Series("signature", [named[at]["signature"] for at in ranked["at"]], dtype=pl.List(pl.String))
    return named[:_MOST_SIGNATURES], ranked.select(ROW, "row_after", signatures)


def _signature(pairing: Pairing, row: Mapping[str, Any]) -> list[str]:
    if row[_KIND]:
        return ["became scored" if row[_KIND] == 1 else "became unscored"]
    marks = []
    for index, (name, _, _) in enumerate(pairing.checks):
        word, place = divmod(index, _CHECKS_A_WORD)
        code = row[f"{_KIND}/{word}"] >> 2 * place & 3
        marks += [f"{' +-~'[code]}{name}"] if code else []
    return marks or ["weights or threshold only"]


def _rows(pairing: Pairing, shown: pl.DataFrame, tasks: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows to show: their keys, and what each side says of them."""
    names = pairing.on or tuple(dict.fromkeys(("rollout_id", *pairing.before.groups(tasks), "sample_idx")))
    keys = [name for name in names if name in pairing.before.passed_through]
    sides = []
    for result, column in ((pairing.before, ROW), (pairing.after, "row_after")):
        wanted = [name for name in ("reward", "passed", "feedback", "error", *keys) if name in result.schema]
        sides.append(_picked(result.frame.select(map(exactly, wanted)), shown[column].to_list(), result))
    return [
        {
            "row": row,
            "row_after": row_after,
            "key": {name: before[name] for name in keys},
            "signature": signature,
            "before": {key: before.get(key) for key in ("reward", "passed", "error")},
            "after": {key: after.get(key) for key in ("reward", "passed", "error")},
            "feedback_before": before.get("feedback"),
            "feedback_after": after.get("feedback"),
            "text": None,
            "text_after": None,
        }
        for (row, row_after, signature), before, after in zip(shown.rows(), *sides, strict=True)
    ]


def _picked(frame: pl.LazyFrame, rows: Sequence[int], result: Result) -> list[dict[str, Any]]:
    if len(rows) <= _FEW_FETCHED and result.files:  # parquet goes straight to a row
        return [result.collect(frame.slice(row, 1)).to_dicts()[0] for row in rows]
    numbered = frame.with_row_index(ROW).filter(pl.col(ROW).is_in(list(rows)))
    by_row = {row.pop(ROW): row for row in result.collect(numbered).to_dicts()}
    return [by_row[row] for row in rows]


def _with_texts(diff: Diff, before: Result, after: Result) -> Diff:
    """Return a diff with the texts that each side scored."""
    if not diff.examples:
        return diff
    ours, theirs = ([example[key] for example in diff.examples] for key in ("row", "row_after"))
    (texts, notes), (texts_after, others) = _texts(before, ours), _texts(after, theirs)
    sides = zip(diff.examples, texts, texts_after, strict=True)
    examples = [{**row, "text": text, "text_after": text_after} for row, text, text_after in sides]
    return replace(diff, examples=examples, notes=tuple(dict.fromkeys((*diff.notes, *notes, *others))))


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
