"""Tripwires: facts about the rewards of each training step that somebody should look at, with numbers.

A wire fires once at its onset, and again only after a step below its limit. The state is a few numbers for each check: it does not
grow with rows or steps, and it pickles.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import polars as pl

from assay.errors import UsageError, counted, did_you_mean, listed
from assay.expressions.shared_columns import exactly
from assay.frozen import frozen
from assay.insight import stats
from assay.insight.integrity.groups import has_several
from assay.insight.integrity.prompts import gold_keys, prompt_keys, text_key
from assay.insight.probes import GOLDS
from assay.insight.results import Result, open_result
from assay.names import HIDDEN, OUTCOME
from assay.options import TripwireOptions, documented
from assay.system.documents import read_document
from assay.writing.numbers import change, number, percent

WIRES: Mapping[str, Mapping[str, float]] = {
    "all_zero": {"share": 0.98, "rows": 32},
    "all_one": {"share": 0.98, "rows": 32},
    "flat": {"share": 0.8, "groups": 8},
    "errors": {"share": 0.01, "rows": 32},
    "unscored": {"share": 0.01, "rows": 32},
    "not_found": {"share": 0.2, "rows": 32},
    "truncated": {"share": 0.2, "rows": 32},
    "mixed": {"groups": 0},
    "duplicates": {"share": 0.5, "texts": 32},
    "length": {"correlation": 0.5, "rows": 64},
    "drift": {"change": 0.05, "sd": 4, "steps": 10},
    "jump": {"change": 0.1, "z": 5},
    "stuck": {"steps": 3, "rows": 32},
}
"""The default limits of each wire; a single number sets the first."""

_MORE_THAN = ("errors", "unscored", "not_found", "truncated")
"""Wires whose share may be reached, and not exceeded."""

_CERTAIN_ROWS = 32
"""Rows of both steps from which a jump between rates without any deviation counts."""

_STEP, _TASK = HIDDEN + "step", HIDDEN + "cluster"


@dataclass(frozen=True)
class Alert:
    """A fact about a step that crosses a limit.

    Attributes:
        wire: Which fact, as in ``WIRES``.
        step: The step.
        check: Name of the check; None if it is about the rewards.
        value: The number that crosses the limit.
        limit: The limit.
        rows: The rows that the value is of; groups for ``flat``.
        said: The fact in words.
    """

    wire: str
    step: Any
    check: str | None
    value: float
    limit: float
    rows: int
    said: str

    def as_json(self) -> dict[str, Any]:
        """Return the fields as plain data for JSON."""
        data, step = asdict(self), self.step
        known = math.isfinite(step) if isinstance(step, float) else isinstance(step, int | str | None)
        return data if known else data | {"step": str(step)}


@frozen
class PassCounts:
    """How often a check passes in a step; sums over the rows of each task, for the standard error.

    Attributes:
        rows: Rows with a score.
        passed: Rows that pass.
        tasks: Tasks with such rows.
        task_rows: Rows of these tasks.
        task_passed: Passing rows of these tasks.
        passed_squared: Sum over tasks of the square of the rows that pass.
        product: Sum over tasks of passing rows times rows.
        rows_squared: Sum over tasks of the square of the rows.
    """

    rows: int = 0
    passed: int = 0
    tasks: int = 0
    task_rows: int = 0
    task_passed: int = 0
    passed_squared: int = 0
    product: int = 0
    rows_squared: int = 0

    @property
    def share(self) -> float:
        """The pass rate."""
        return self.passed / self.rows

    @property
    def se(self) -> float | None:
        """Standard error of the pass rate, clustered by task; None for one task with several rows."""
        if self.tasks == self.task_rows:  # as independent as rows can be
            return math.sqrt(self.share * (1 - self.share) / self.rows)
        if self.tasks < 2:  # noqa: PLR2004
            return None
        # Σ(passed − m·rows)² over the tasks, times rows², in integers: it is exact
        n, k = self.task_rows, self.task_passed
        total = n * n * self.passed_squared - 2 * n * k * self.product + k * k * self.rows_squared
        return math.sqrt(self.tasks / (self.tasks - 1) * total) / n / n


@frozen
class StepCounts:
    """What is known of a step; two parts of a step add up.

    Attributes:
        rows: Rows.
        scored: Rows with a reward.
        errors: Rows with a reward and an error.
        zeros: Rows whose reward is 0.0.
        ones: Rows whose reward is 1.0.
        total: Sum of the rewards.
        groups: Groups of at least two scored rows.
        flat: Those in which all rewards are equal.
        pairs: Rows with a length and a reward.
        known: Scored rows with an outcome; none where the result has no column of them.
        not_found: Of these, those of which a check found nothing to compare.
        truncated: Of these, those that were cut off.
        compared: Groups whose prompts or golds are kept.
        mixed: Of these, those with several prompts or golds.
        texts: Texts in groups, if they are kept.
        duplicates: Of these, those that an earlier row of the group has.
        products: Of these, the sums of the centred products, within groups: length², reward², both.
        checks: How often each check passes.
    """

    rows: int = 0
    scored: int = 0
    errors: int = 0
    zeros: int = 0
    ones: int = 0
    total: float = 0.0
    groups: int = 0
    flat: int = 0
    pairs: int = 0
    known: int = 0
    not_found: int = 0
    truncated: int = 0
    compared: int = 0
    mixed: int = 0
    texts: int = 0
    duplicates: int = 0
    products: tuple[float, float, float] = (0.0, 0.0, 0.0)
    checks: Mapping[str, PassCounts] = field(default_factory=dict)

    def __add__(self, other: "StepCounts") -> "StepCounts":
        names = [item.name for item in fields(self) if item.name not in ("products", "checks")]
        sums = {name: getattr(self, name) + getattr(other, name) for name in names}
        products = tuple(a + b for a, b in zip(self.products, other.products, strict=True))
        rates = {
            name: _sum(self.checks.get(name, PassCounts()), other.checks.get(name, PassCounts()))
            for name in dict.fromkeys((*self.checks, *other.checks))
        }
        return StepCounts(**sums, products=(products[0], products[1], products[2]), checks=rates)

    @property
    def mean(self) -> float | None:
        """The mean reward; None where no row is scored, or the sum is larger than a float."""
        return stats.finite(self.total / self.scored) if self.scored else None

    @property
    def correlation(self) -> float | None:
        """Correlation of length and reward within groups; None where either is the same in each group."""
        xx, yy, xy = self.products
        return stats.ratio(xy, xx, yy)


def _sum(a: PassCounts, b: PassCounts) -> PassCounts:
    return PassCounts(*(getattr(a, item.name) + getattr(b, item.name) for item in fields(PassCounts)))


@dataclass
class _Memory:
    """What is kept of the steps before the current one."""

    means: tuple[float, ...] = ()
    rates: dict[str, PassCounts] = field(default_factory=dict)
    runs: dict[str, int] = field(default_factory=dict)
    firing: frozenset[tuple[str, str | None]] = frozenset()


@frozen
class _Reading:
    """What a wire reads off a step: the value, the limit that it crosses or not, and the fact in words."""

    wire: str
    check: str | None
    value: float
    limit: float
    crosses: bool
    rows: int
    said: str


@documented(TripwireOptions)
class Tripwires:
    """Watch the rewards of a training run, step by step.

    Args:
        options: Those of ``assay.options.TripwireOptions``, as the signature lists them.

    Raises:
        UsageError: There is no such wire or limit.

    Example:
        >>> import assay
        >>> wires = assay.Tripwires()
        >>> [alert.said for alert in wires.update([0.0] * 64, step=7)]
        ['64 of 64 scored rows have reward 0.0 (100 %)']
        >>> wires.update([0.0] * 64, step=8)
        []
    """

    def __init__(
        self, limits: Mapping[str, Any] | str | Path | None = None, *, by: str = "step", length: str | None = None
    ) -> None:
        given = read_document(Path(limits)).data if isinstance(limits, str | Path) else limits
        self.limits = _limits(given)
        self.by = by
        self.length = length
        self.steps = 0
        self.notes: tuple[str, ...] = ()
        self.step: Any = None
        self._current = StepCounts()
        self._memory = _Memory()
        self._fired: set[tuple[str, str | None]] = set()

    def update(self, rewards: Any, step: Any = None) -> list[Alert]:
        """Count rewards, and return the alerts that they set off, step by step.

        Args:
            rewards: A frame of ``assay.score``, a result of ``assay score``, or the rewards alone. Rollouts of a task belong together.
            step: Their step; by default each row's, by the column ``by``, or the next one without such a column. What has the step of
                the call before is part of that step.

        Raises:
            UsageError: The step is before the last one.
            InputError: The rewards cannot be read, or there are none.
        """
        if isinstance(rewards, pl.Series) or (isinstance(rewards, Sequence) and not isinstance(rewards, str)):
            rewards = pl.DataFrame({"reward": pl.Series(rewards, dtype=pl.Float64, strict=False)})
        result = open_result(rewards).with_length(self.length)
        by = self.by if step is None and self.by in result.schema else None
        if by is not None and any(result.schema[name].is_nested() for name in result.keys([by], "--by")):
            raise UsageError(f"--by {by}: a step is one value, not {result.schema[by]}.", "Name another column.")
        found = [*_steps_of(result, by)]
        if by is None:
            found = [(self._next() if step is None else step, found[0][1] if found else StepCounts())]
        without = sum(part.rows for of, part in found if of is None)
        notes = (*result.notes, *([f"{counted(without, 'row')} without a {self.by}"] if without else []))
        self.notes = tuple(dict.fromkeys((*self.notes, *notes)))
        return [alert for of, part in found if of is not None for alert in self.add(of, part)]

    def merge(self, other: "Tripwires") -> list[Alert]:
        """Add the current step of another process that watches other rollouts, and return the alerts that it sets off.

        Raises:
            UsageError: Its step is before the current one here.
        """
        return [] if other.step is None else self.add(other.step, other._current)  # noqa: SLF001  (of its own kind)

    def _next(self) -> Any:
        return self.step + 1 if isinstance(self.step, int) else self.steps

    def add(self, step: Any, part: StepCounts) -> list[Alert]:
        """Add what is counted of a step, and return the alerts that it sets off; a later step ends the one before.

        Raises:
            UsageError: The step is before the last one.
        """
        if self.step is not None and _is_before(step, self.step):
            raise UsageError(
                f"Step {step} comes after step {self.step}.", "Steps go up; begin anew with another Tripwires()."
            )
        if self.step is None or step != self.step:
            self._end()
            self.step, self.steps = step, self.steps + 1
        self._current += part
        crossing = [reading for reading in self._readings() if reading.crosses]
        news = [item for item in crossing if (item.wire, item.check) not in self._memory.firing | self._fired]
        self._fired |= {(item.wire, item.check) for item in news}
        return [Alert(item.wire, step, item.check, item.value, item.limit, item.rows, item.said) for item in news]

    def _end(self) -> None:
        if self.step is None:
            return
        memory, current = self._memory, self._current
        readings = {(item.wire, item.check): item.crosses for item in self._readings()}
        firing = {key for key in memory.firing | self._fired if readings.get(key, True)}
        runs = memory.runs | {name: self._run(name, rate) for name, rate in self._large(current).items()}
        means = memory.means
        if current.mean is not None and len(means) < self.limits.get("drift", WIRES["drift"])["steps"]:
            means = (*means, current.mean)
        seen = {name: rate for name, rate in current.checks.items() if rate.rows}
        self._memory = _Memory(means, memory.rates | seen, runs, frozenset(firing))
        self._current, self._fired = StepCounts(), set()

    def _readings(self) -> Iterator[_Reading]:
        step = self._current
        for wire, count, rows, unit in (
            ("all_zero", step.zeros, step.scored, "scored rows have reward 0.0"),
            ("all_one", step.ones, step.scored, "scored rows have reward 1.0"),
            ("flat", step.flat, step.groups, "groups are flat: all rewards in them are equal"),
            ("errors", step.errors, step.rows, "rows have an error beside their reward"),
            ("unscored", step.rows - step.scored, step.rows, "rows are unscored"),
            ("not_found", step.not_found, step.known, "scored rows fail because a check found nothing"),
            ("truncated", step.truncated, step.known, "scored rows fail and were cut off"),
            ("duplicates", step.duplicates, step.texts, "texts are those of an earlier row in their group"),
        ):
            yield from self._share(wire, count, rows, unit)
        yield from self._mixed()
        yield from self._length()
        yield from self._drift()
        for name, rate in step.checks.items():
            if rate.rows:
                yield from self._jump(name, rate)
        yield from self._stuck()

    def _share(self, wire: str, count: int, rows: int, unit: str) -> Iterator[_Reading]:
        limits = self.limits.get(wire)
        if limits is None or not rows or rows < list(limits.values())[-1]:
            return
        value = count / rows
        crosses = value > limits["share"] if wire in _MORE_THAN else value >= limits["share"]
        said = f"{count:,} of {rows:,} {unit} ({percent(value)})"
        yield _Reading(wire, None, value, limits["share"], crosses, rows, said)

    def _mixed(self) -> Iterator[_Reading]:
        limits, step = self.limits.get("mixed"), self._current
        if limits is None or not step.compared:
            return
        said = f"{step.mixed:,} of {counted(step.compared, 'group')} {'has' if step.mixed == 1 else 'have'} several prompts or golds"
        limit = limits["groups"]
        yield _Reading("mixed", None, float(step.mixed), limit, step.mixed > limit, step.compared, said)

    def _length(self) -> Iterator[_Reading]:
        limits, value, rows = self.limits.get("length"), self._current.correlation, self._current.pairs
        if limits is None or value is None or rows < limits["rows"]:
            return
        said = correlation_of_length(value, within=True)
        limit = limits["correlation"]
        yield _Reading("length", None, value, limit, abs(value) >= limit, rows, said)

    def _drift(self) -> Iterator[_Reading]:
        limits, means, mean = self.limits.get("drift"), self._memory.means, self._current.mean
        baseline = stats.mean(means)
        if limits is None or mean is None or baseline is None or len(means) < limits["steps"]:
            return
        deviation = math.hypot(*(value - baseline for value in means))  # squares alone may be larger than a float
        sd = deviation / math.sqrt(len(means) - 1) if len(means) > 1 else 0.0
        limit, value = max(limits["change"], limits["sd"] * sd), mean - baseline
        if not math.isfinite(value):
            return
        said = (
            f"the mean reward is {number(mean)}; in the first {counted(len(means), 'step')} it was {number(baseline)}"
        )
        yield _Reading("drift", None, value, limit, abs(value) > limit, self._current.scored, said)

    def _jump(self, name: str, rate: PassCounts) -> Iterator[_Reading]:
        limits, before = self.limits.get("jump"), self._memory.rates.get(name)
        if limits is None or before is None or rate.se is None or before.se is None:
            return
        value, se = rate.share - before.share, math.hypot(rate.se, before.se)
        crosses = abs(value) / se >= limits["z"] if se else min(rate.rows, before.rows) >= _CERTAIN_ROWS
        z = f", z {change(value / se)}" if se else ""
        said = f"passes on {percent(rate.share)} of rows, {percent(before.share)} the step before{z}"
        limit = limits["change"]
        crosses = crosses and abs(value) >= limit - 1e-12  # 0.4 − 0.3 is less than 0.1
        yield _Reading("jump", name, value, limit, crosses, rate.rows, said)

    def _stuck(self) -> Iterator[_Reading]:
        limits = self.limits.get("stuck")
        for name, rate in self._large(self._current).items():
            if limits is None:
                return
            run = self._run(name, rate)
            said = f"passes on {percent(rate.share)} of rows, {counted(run, 'step')} in a row always or never"
            yield _Reading("stuck", name, float(run), limits["steps"], run >= limits["steps"], rate.rows, said)

    def _large(self, step: StepCounts) -> dict[str, PassCounts]:
        rows = self.limits.get("stuck", WIRES["stuck"])["rows"]
        return {name: rate for name, rate in step.checks.items() if rate.rows and rate.rows >= rows}

    def _run(self, name: str, rate: PassCounts) -> int:
        if 0 < rate.passed < rate.rows:
            return 0
        known = self._memory.runs.get(name, -1)
        return known + 1 if known >= 0 else -1


def correlation_of_length(value: float, *, within: bool) -> str:
    """Return how length and reward hang together, as a clause; ``within`` groups, or over all rows."""
    return f"length and reward have correlation {change(value)}{' within groups' if within else ''}"


def _is_before(step: Any, last: Any) -> bool:
    try:
        return bool(step < last)
    except TypeError:
        raise UsageError(f"Step {step} cannot be compared with step {last}.", "Give all steps as numbers.") from None


def _limits(given: Any) -> dict[str, dict[str, float]]:
    if given is not None and not isinstance(given, Mapping):
        raise UsageError("Limits are a mapping from wires to numbers.", f"Wires: {listed(list(WIRES))}")
    limits = {wire: dict(defaults) for wire, defaults in WIRES.items()}
    for wire, value in (given or {}).items():
        if wire not in WIRES:
            raise UsageError(f"limits: there is no wire `{wire}`.", did_you_mean(str(wire), WIRES) or _wires())
        if value is False or value is None:
            del limits[wire]
            continue
        own = value if isinstance(value, Mapping) else {next(iter(WIRES[wire])): value}
        for name, limit in own.items():
            if name not in WIRES[wire]:
                hint = did_you_mean(str(name), WIRES[wire]) or f"Limits of {wire}: {listed(list(WIRES[wire]))}"
                raise UsageError(f"limits: `{wire}` has no `{name}`.", hint)
            if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 <= limit < math.inf:
                raise UsageError(
                    f"limits: {wire}.{name} is {limit!r}; expected a number from 0, or false for `{wire}`."
                )
            limits[wire][name] = limit
    return limits


def _wires() -> str:
    return f"Wires: {listed(list(WIRES))}"


def _steps_of(result: Result, by: str | None) -> Iterator[tuple[Any, StepCounts]]:
    tasks = tuple(name for name in result.tasks() if name != by)
    groups = [name for name in result.groups(tasks) if name not in (by, "step")]
    keys = [exactly(name).alias(f"{HIDDEN}key{at}") for at, name in enumerate(groups)]
    step = (pl.lit(0) if by is None else exactly(by)).alias(_STEP)
    is_task = pl.all_horizontal(exactly(name).is_not_null() for name in tasks) if tasks else pl.lit(value=False)
    scores = [
        pl.when(pl.col(check.column).is_not_null()).then(pl.col(check.column).cast(pl.Float64) == 1.0).alias(f"c{at}")
        for at, check in enumerate(result.checks)
    ]
    failed = exactly("error").is_not_null() if "error" in result.schema else pl.lit(value=False)
    length = [] if result.length is None else [result.length.cast(pl.Float64).alias("x")]
    outcome = [pl.col(OUTCOME).alias("outcome")] if result.has_outcome else []
    outcomes = {name: (pl.col("outcome") == name).sum() for name in ("not_found", "truncated")} if outcome else {}
    outcomes |= {"known": (pl.col("outcome") != "unscored").sum()} if outcome else {}
    kept = [key for key in (*prompt_keys(result.schema), *gold_keys(result.schema, GOLDS)) if tasks]
    several = [has_several(key.meta.output_name()) for key in kept if key.meta.output_name() != "joined"]
    texts = [] if result.text is None or not tasks else [text_key(result.text).alias("text")]
    keyed = result.frame.select(
        step,
        *keys,
        is_task.alias(_TASK),
        pl.col("reward").alias("y"),
        failed.alias("failed"),
        *scores,
        *length,
        *outcome,
        *kept,
        *texts,
    )
    names = [_STEP, *(f"{HIDDEN}key{at}" for at in range(len(keys))), _TASK]
    y = pl.col("y")
    sums = result.collect(
        keyed.group_by(names).agg(
            pl.len().cast(pl.Int64).alias("rows"),
            y.count().cast(pl.Int64).alias("scored"),
            (pl.col("failed") & y.is_not_null()).sum().cast(pl.Int64).alias("errors"),
            (y == 0.0).sum().cast(pl.Int64).alias("zeros"),
            (y == 1.0).sum().cast(pl.Int64).alias("ones"),
            y.sum().alias("total"),
            *(
                (outcomes.get(name, pl.lit(0))).cast(pl.Int64).alias(name)
                for name in ("known", "not_found", "truncated")
            ),
            pl.any_horizontal(several or [pl.lit(None, pl.Boolean)]).alias("mixed"),
            y.min().alias("low"),
            y.max().alias("high"),
            *(pl.col(f"c{at}").count().cast(pl.Int64).alias(f"n{at}") for at in range(len(scores))),
            *(pl.col(f"c{at}").sum().cast(pl.Int64).alias(f"k{at}") for at in range(len(scores))),
        )
    )
    products = _products(result, keyed, names, grouped=bool(tasks)) if length else {}
    copies = _copies(result, keyed, names) if texts else {}
    for step, counts in _rolled(result, sums.sort(names, nulls_last=True), len(tasks), products):
        yield step, replace(counts, **copies.get(step, {}))


def _rolled(
    result: Result, sums: pl.DataFrame, tasks: int, products: Mapping[Any, tuple[int, tuple[float, float, float]]]
) -> Iterator[tuple[Any, StepCounts]]:
    for [step], of_step in sums.group_by([_STEP], maintain_order=True):
        several = of_step.filter(pl.col(_TASK) & (pl.col("scored") > 1))
        names = ("rows", "scored", "errors", "zeros", "ones", "total", "known", "not_found", "truncated")
        counts = of_step.select(names).sum().row(0, named=True)
        flat = int((several["low"] == several["high"]).sum())
        mixed = of_step.filter(_TASK)["mixed"].drop_nulls()  # unknown without prompts and golds
        counts |= {"groups": several.height, "flat": flat, "compared": len(mixed), "mixed": int(mixed.sum())}
        pairs, moments = products.get(step, (0, (0.0, 0.0, 0.0)))
        checks = _rates(result, of_step, tasks)
        yield step, StepCounts(**counts, pairs=pairs, products=moments, checks=checks)


def _rates(result: Result, groups: pl.DataFrame, tasks: int) -> dict[str, PassCounts]:
    columns = [f"{letter}{at}" for at in range(len(result.checks)) for letter in "nk"]
    known = groups.filter(pl.col(_TASK)).group_by([f"{HIDDEN}key{at}" for at in range(tasks)] or [_TASK])
    clusters = known.agg(pl.col(columns).sum()) if tasks else groups.clear()
    rates = {}
    for at, check in enumerate(result.checks):
        rows, passed = int(groups[f"n{at}"].sum()), int(groups[f"k{at}"].sum())
        n, k = (clusters.filter(pl.col(f"n{at}") > 0)[f"{letter}{at}"] for letter in "nk")
        if tasks and len(n):
            inner = (int(n.sum()), int(k.sum()), int((k * k).sum()), int((k * n).sum()), int((n * n).sum()))
            rates[check.name] = PassCounts(rows, passed, len(n), *inner)
        else:
            rates[check.name] = PassCounts(rows, passed, rows, rows, passed, passed, passed, rows)
    return rates


def _copies(result: Result, rows: pl.LazyFrame, names: Sequence[str]) -> dict[Any, dict[str, Any]]:
    """Count the texts in groups, and those that an earlier row of the group has, by step."""
    texts = rows.filter(_TASK).drop_nulls("text").group_by(*names, "text").agg(pl.len().cast(pl.Int64).alias("n"))
    n = pl.col("n")
    table = result.collect(texts.group_by(_STEP).agg(n.sum().alias("texts"), (n - 1).sum().alias("duplicates")))
    return {step: {"texts": texts, "duplicates": copies} for step, texts, copies in table.iter_rows()}


def _products(
    result: Result, rows: pl.LazyFrame, names: Sequence[str], *, grouped: bool
) -> dict[Any, tuple[int, tuple[float, float, float]]]:
    pairs = rows.filter(pl.col("x").is_not_null() & pl.col("y").is_not_null() & (pl.col(_TASK) if grouped else True))
    flat = pl.col("y").min() == pl.col("y").max()
    known = result.collect(
        pairs.group_by(names).agg(pl.col("x").mean().alias("mx"), pl.col("y").mean().alias("my"), flat.alias("flat"))
    )
    x = pl.col("x") - pl.col("mx")
    y = pl.when("flat").then(0.0).otherwise(pl.col("y") - pl.col("my"))  # the mean of three 0.1 is not 0.1
    centred = pairs.join(known.lazy(), on=names, nulls_equal=True).select(_STEP, xx=x * x, yy=y * y, xy=x * y)
    table = result.collect(centred.group_by(_STEP).agg(pl.len(), pl.col("xx", "yy", "xy").sum()))
    return {row[0]: (row[1], (row[2], row[3], row[4])) for row in table.iter_rows()}
