"""What findings are made of: how often checks pass, by model, why they fail, and what rows say."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from assay.frozen import frozen
from assay.insight import stats
from assay.insight.findings.limits import FEW_ROWS, LIMITS, OF_ONE_MODEL
from assay.scoring.score_columns import ScoreColumn

if TYPE_CHECKING:  # what the counts of a run say needs no result
    from assay.insight.findings.columns import Keys, ResultColumns

_ROUNDING = 1e-9


@frozen(eq=False)
class Tally:
    """How often a check passes, over the rows with a score.

    Attributes:
        check: The check.
        place: Its place in the spec.
        rows: Rows with a score.
        failures: Those of them that fail.
        errors: Those of them with an error of the check.
        failing: Which rows fail; None where only counts are known.
        present: Which rows have a score; None if all have.
        nothing: Which rows fail because it finds nothing to compare; None if there are none.
        nothing_in: What finds nothing, such as a step.
    """

    check: ScoreColumn
    place: int
    rows: int
    failures: int
    errors: int = 0
    failing: pl.Series | None = None
    present: pl.Series | None = None
    nothing: pl.Series | None = None
    nothing_in: str = ""

    @property
    def passes(self) -> int:
        """Rows that pass."""
        return self.rows - self.failures

    def passing(self, reward: pl.Series) -> pl.Series:
        """Return 1.0 for rows that pass, 0.0 for those that fail, null for those without a score."""
        present = reward.is_not_null() if self.present is None else self.present
        return (
            pl.DataFrame({"fails": self.failing, "here": present})
            .select(pl.when("here").then(1.0 - pl.col("fails")))
            .to_series()
        )

    @property
    def is_dead(self) -> bool:
        """Whether it certainly passes too rarely; in a group of what must not hold, that is as it should be."""
        return not self.check.is_forbidden and _is_rare(self.passes, self.rows, LIMITS["dead"])

    @property
    def is_saturated(self) -> bool:
        """Whether it certainly fails too rarely to teach anything."""
        return _is_rare(self.failures, self.rows, LIMITS["saturated"])

    @property
    def is_broken(self) -> bool:
        """Whether it has an error wherever it ran."""
        return 0 < self.rows <= self.errors


def _is_rare(count: int, rows: int, limits: Mapping[str, float]) -> bool:
    is_rare = rows > 0 and count <= limits["share"] * rows + _ROUNDING
    return is_rare and stats.binomial_p(count, rows, limits["expected"]) < limits["p"]


@frozen
class Rate:
    """How often a check passes on the rows of a model, which is known by its number."""

    model: int
    rows: int
    failures: int

    @property
    def passes(self) -> int:
        """Rows that pass."""
        return self.rows - self.failures

    @property
    def share(self) -> float:
        """The pass rate."""
        return self.passes / self.rows

    @property
    def log_odds(self) -> float:
        """Log odds to pass, finite also for none and all."""
        return math.log((self.passes + 0.5) / (self.failures + 0.5))


@frozen
class Outlier:
    """A model on which a check passes far less often than on the others, or far more often.

    Attributes:
        rate: How often it passes on the model.
        others: How often on the others, the closest first.
        is_lowest: Whether it passes less often.
        p: Of the test that its tasks are not just harder or easier.
    """

    rate: Rate
    others: tuple[Rate, ...]
    is_lowest: bool
    p: float


class GroupFacts(NamedTuple):
    """Groups, by number, as far as the result keeps their prompts and golds.

    Attributes:
        groups: How many there are.
        size: How many rows are usual.
        mixed: Those with several prompts or golds.
        shared: Those with a prompt of another task.
        odd: Those with an unusual number of rows.
    """

    groups: int
    size: int
    mixed: pl.Series
    shared: pl.Series
    odd: pl.Series


@frozen(eq=False)
class Facts:
    """What the numbers of a run tell; with ``columns``, what its rows tell, too.

    Attributes:
        rows: All rows.
        scored: Rows with a reward.
        tallies: The checks, in the order of the spec.
        errors: Rows with a reward and an error, by check and template.
        unscored: Rows without a reward, by template.
        columns: The columns of the result in memory.
        readings: What checks read on failing rows: ``texts.READINGS``.
        duplicates: Rows whose text is a duplicate, with the kind: ``texts.DUPLICATES``.
        in_groups: Rows in groups of at least two whose long texts are compared.
        searched: Rows that were searched for duplicates.
        groups: Which groups do not hold together; None without groups.
        cut_off: Which rows ended at a limit; None if no column says so.
        pairs: Pairs of checks that fail together.
        step: The steps; None if there is no column with numbers.
    """

    rows: int
    scored: int
    tallies: Sequence[Tally] = ()
    errors: Mapping[tuple[str, str], int] = field(default_factory=dict)
    unscored: Mapping[str, int] = field(default_factory=dict)
    columns: "ResultColumns | None" = None
    readings: pl.DataFrame | None = None
    duplicates: pl.DataFrame | None = None
    in_groups: float = 0.0
    searched: int = 0
    groups: GroupFacts | None = None
    cut_off: pl.Series | None = None
    pairs: Sequence[Mapping[str, Any]] = ()
    step: "Keys | None" = None

    @cached_property
    def models(self) -> list[Any]:
        """The values of the column ``model``, by number; none without such a column."""
        known = self.columns is not None and self.columns.result.present(("model",))
        return self.columns.keys("model").values.to_series().to_list() if self.columns and known else []

    @cached_property
    def model(self) -> pl.Series:
        """The number of each row's model; null for all without models."""
        if self.models and self.columns:
            return self.columns.keys("model").codes.alias("model")
        return pl.Series("model", [None], dtype=pl.UInt32).new_from_index(0, self.rows)

    @cached_property
    def _by_model(self) -> pl.DataFrame:
        columns = {"model": self.model, "scored": self.columns.reward.is_not_null() if self.columns else None}
        counts = [pl.col("scored").sum()]
        for tally in self.tallies:
            columns |= {f"f{tally.place}": tally.failing}
            counts.append(pl.col(f"f{tally.place}").sum())
            present = "scored"
            if tally.present is not None:
                present = f"p{tally.place}"
                columns |= {present: tally.present}
            counts.append(pl.col(present).sum().alias(f"n{tally.place}"))
        found = pl.DataFrame(columns).group_by("model").agg(counts)
        known = [code for code, value in enumerate(self.models) if value is not None]
        return found.filter(pl.col("scored") >= FEW_ROWS, pl.col("model").is_in(known)).sort("model")

    def rows_on(self, tally: Tally, model: Any) -> int:
        """Return how many rows of a model a check has scored."""
        present = self.columns.reward.is_not_null() if self.columns and tally.present is None else tally.present
        return int((present & (self.model == self.models.index(model))).sum())

    def rates(self, tally: Tally) -> list[Rate]:
        """Return how often a check passes on each model that has enough rows."""
        if not self.models:
            return []
        table = self._by_model.select("model", f"n{tally.place}", f"f{tally.place}")
        return [Rate(*row) for row in table.iter_rows() if row[1] >= FEW_ROWS]

    @cached_property
    def outliers(self) -> dict[int, list[Outlier]]:
        """The outliers of each check, by its place."""
        usual = (one for one in self.tallies if not (one.is_dead or one.is_saturated or one.is_broken))
        return {tally.place: [*self._outliers(tally)] for tally in usual if tally.failing is not None}

    def _outliers(self, tally: Tally) -> Iterator[Outlier]:
        limits, rates = LIMITS["outlier"], sorted(self.rates(tally), key=lambda rate: rate.log_odds)
        least = limits["p"] / max(1, len(self._by_model) * len(self.tallies)) if rates else 0.0
        ends = [(rates, True), (rates[::-1], False)]
        for (own, *others), is_lowest in ends[: max(0, len(rates) - 1)]:  # of two, the lowest only
            if abs(own.log_odds - others[0].log_odds) >= limits["odds"]:
                p = self._outlier_p(tally, own, others)
                if p < least:
                    yield Outlier(own, tuple(others), is_lowest, p)

    def _outlier_p(self, tally: Tally, own: Rate, others: Sequence[Rate]) -> float:
        """Return the p of a sign test over the tasks that models share; of Fisher's over rows where there are few."""
        less, more = self._signs(tally, own.model, [rate.model for rate in others])
        if less + more >= LIMITS["outlier"]["tasks"]:
            return stats.mcnemar(less, more)
        passes, failures = (sum(getattr(rate, side) for rate in others) for side in ("passes", "failures"))
        return stats.fisher(own.passes, own.failures, passes, failures)

    def _signs(self, tally: Tally, own: int, others: Sequence[int]) -> tuple[int, int]:
        """Return in how many tasks a model fails a check less often than all rows of others, and in how many more often."""
        if self.columns is None or self.columns.task is None:
            return 0, 0
        frame = pl.DataFrame({"task": self.columns.task.codes, "model": self.model, "fails": tally.failing})
        frame = frame if tally.present is None else frame.filter(tally.present)
        sides = (pl.col("fails").filter(pl.col("model").is_in(codes)).mean() for codes in ([own], others))
        rates = (
            frame.drop_nulls("task")
            .group_by("task")
            .agg(rate.alias(name) for rate, name in zip(sides, "ab", strict=True))
        )
        return rates.select((pl.col("a") < pl.col("b")).sum(), more=(pl.col("a") > pl.col("b")).sum()).row(0)

    def readings_of(self, tally: Tally, model: int | None = None) -> pl.DataFrame | None:
        """Return what a check read on failing rows, of a model; None where no texts were read."""
        if self.readings is None:
            return None
        found = self.readings.filter(check=tally.place)
        return found if model is None else found.filter(model=model)

    def near(self, tally: Tally, model: int | None = None) -> float:
        """Return on how many rows what a check read is close to the gold."""
        found = self.readings_of(tally, model)
        return 0.0 if found is None else float(found.filter(pl.col("near").is_not_null())["weight"].sum())

    def why(self, tally: Tally, model: int | None = None) -> str | None:
        """Return what explains the failures of a check, on all rows or those of a model: ``not_found``, ``near_miss``."""
        if tally.failing is None:
            return None
        of_model = pl.repeat(True, self.rows, eager=True) if model is None else self.model == model
        failures, nothing = (
            0 if rows is None else int((rows & of_model).sum()) for rows in (tally.failing, tally.nothing)
        )
        near = self.near(tally, model)
        if nothing and nothing >= LIMITS["not_found"]["why"] * failures and nothing >= near:
            return "not_found"
        is_near = near >= LIMITS["near_miss"]["rows"] and near >= LIMITS["near_miss"]["why"] * failures
        return "near_miss" if is_near else None

    def explained(self, tally: Tally, kind: str) -> list[int | None]:
        """Return the models whose failures a finding explains already; ``[None]`` if it explains those of all rows."""
        if tally.is_dead:
            return [None] if self.why(tally) == kind else []
        lowest = [one.rate.model for one in self.outliers.get(tally.place, ()) if one.is_lowest]
        return [model for model in lowest if self.why(tally, model) == kind]

    def failures_of(self, tally: Tally, models: Sequence[int | None]) -> int:
        """Return how many rows of some models fail a check; of all, if None is one of them."""
        if None in models or tally.failing is None:
            return tally.failures
        return int((tally.failing & self.model.is_in(models)).sum())

    def rows_of(self, where: pl.Series) -> pl.DataFrame:
        """Return the rows for which something holds, with their models."""
        row = where.arg_true()
        return pl.DataFrame({"row": row, "model": self.model.gather(row)}).with_columns(weight=pl.lit(1.0))

    def model_of(self, rows: pl.DataFrame) -> Any:
        """Return the model that has almost all of some rows, by their weights; None if it is not one of several."""
        if sum(model is not None for model in self.models) < 2 or not rows.height:  # noqa: PLR2004
            return None
        weights = rows.group_by("model").agg(pl.col("weight").sum()).sort("weight", "model", descending=[True, False])
        model, weight = weights.row(0)
        return None if model is None or weight < OF_ONE_MODEL * sum(weights["weight"]) else self.models[model]
