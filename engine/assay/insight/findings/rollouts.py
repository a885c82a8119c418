"""Findings about rollouts and rewards: cut off, all alike, copied, paid by length, falling over the steps."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from assay.errors import counted
from assay.insight import stats
from assay.insight.findings import words
from assay.insight.findings.columns import Keys, ResultColumns, Sums, centred
from assay.insight.findings.facts import Facts, Tally
from assay.insight.findings.finding import Finding, Selection
from assay.insight.findings.limits import LIMITS, MOST_ROWS
from assay.insight.findings.words import name
from assay.insight.wires import correlation_of_length
from assay.names import COMPLETION
from assay.writing.numbers import change, count, number, percent

_SCORED = Selection(where=("reward IS NOT NULL",))
_PAID_FOR = {"longer": {"min_length"}, "shorter": {"max_length", "length_penalty", "length_scaled"}}
"""Types that pay a length because the spec wants that."""

_ROUNDING = 1e-12


def truncated(facts: Facts) -> Iterator[Finding]:
    """Find rollouts that ended at a limit."""
    if facts.columns is None or facts.cut_off is None:
        return
    limits, rows = LIMITS["truncated"], facts.rows_of(facts.cut_off)
    if max(limits["rows"], limits["share"] * facts.rows) <= rows.height < facts.rows:
        means = [facts.columns.reward.filter(part).mean() or 0.0 for part in (facts.cut_off, facts.cut_off.not_())]
        gap = float(means[0]) - float(means[1])  # type: ignore[arg-type]
        where = facts.columns.result.cut_off_sql
        yield Finding(
            *("truncated", None, rows.height, facts.rows),
            model=facts.model_of(rows),
            effect=rows.height / facts.rows * abs(gap),
            numbers={"gap": gap},
            title=f"{counted(rows.height, 'row')} {'is' if rows.height == 1 else 'are'} cut off",
            sentences=[
                f"{words.share(rows.height, facts.rows)} ended at a limit{words.of_model(facts.model_of(rows))}.",
                f"Their mean reward differs by {change(gap)} from that of the others.",
            ],
            selection=Selection(where=(where,)) if where else _first(rows),
        )


def _sd(columns: ResultColumns) -> float:
    """Return the standard deviation of the rewards."""
    return math.sqrt(columns.reward_squares / (columns.scored - 1)) if columns.scored > 1 else 0.0


def flat(facts: Facts) -> Iterator[Finding]:
    """Find groups whose rewards are all equal, unless a gate fails everywhere."""
    has_dead_gate = any(tally.is_dead and tally.check.role == "gate" for tally in facts.tallies)
    if facts.columns is None or facts.columns.group is None or has_dead_gate:
        return
    limits, height, alike, rows, first = LIMITS["flat"], 0, 0, 0, list[pl.Series]()
    for groups in facts.columns.compared_groups():
        equal = groups.filter(pl.col("min") == pl.col("max"))
        height, alike, rows = height + groups.height, alike + equal.height, rows + int(equal["n"].sum())
        first += [equal["g"].head(MOST_ROWS - sum(map(len, first)))]
    if height < limits["groups"] or alike < limits["share"] * height:
        return
    is_first = facts.columns.group.is_in(pl.concat(first).implode()) & facts.columns.reward.is_not_null()
    yield Finding(
        *("flat", None, rows, facts.rows),
        effect=rows / facts.rows * _sd(facts.columns),
        numbers={"flat": alike, "groups": height},
        title=f"The rewards of {percent(alike / height)} of the groups are all equal",
        sentences=[
            f"{count(alike)} of {counted(height, 'group')}.",
            "Training that compares the rollouts of a group learns nothing from them.",
        ],
        selection=Selection(row=tuple(is_first.arg_true().head(MOST_ROWS))),
    )


_DUPLICATES = {
    "blank": ("blank", "have no text"),
    "repeated": ("the same in several tasks", "have a text that occurs in three tasks or more"),
    "copies": ("copies of another in the group", "with long texts in groups have that of an earlier one"),
}
"""Each cause with its title and sentence."""


def duplicates(facts: Facts) -> Iterator[Finding]:
    """Find texts that are blank, the same in several tasks, or copies within a group."""
    if facts.duplicates is None:
        return
    limits = LIMITS["duplicates"]
    least = {"blank": limits["share"] * facts.rows, "copies": limits["copies"] * facts.in_groups}
    for cause, (title, sentence) in _DUPLICATES.items():
        found = facts.duplicates.filter(cause=cause)
        rows = round(found["weight"].sum())
        if rows and rows >= max(limits["rows"], least.get(cause, 0.0)):
            of, model = round(facts.in_groups) if cause == "copies" else facts.rows, facts.model_of(found)
            yield Finding(
                *("duplicates", None, rows, of),
                model=model,
                effect=rows / facts.rows,
                cause=cause,
                numbers=words.sampled(found, facts.searched),
                title=f"{counted(rows, 'text')} {'is' if rows == 1 else 'are'} {title}",
                sentences=[f"{words.share(rows, of)} {sentence}{words.of_model(model)}."],
                selection=_of_duplicates(facts, cause, found),
            )


def _of_duplicates(facts: Facts, cause: str, rows: pl.DataFrame) -> Selection:
    is_kept = facts.columns is not None and facts.columns.result.schema.get(COMPLETION) == pl.String
    if cause == "blank" and is_kept:
        return Selection(where=(f"TRIM({COMPLETION}) = ''",))
    return _first(rows)


def _first(rows: pl.DataFrame) -> Selection:
    return Selection(row=tuple(rows["row"].sort().head(MOST_ROWS)))


def length(facts: Facts) -> Iterator[Finding]:
    """Find rewards that hang together with the length of the text, unless a check pays for it."""
    if (columns := facts.columns) is None or columns.length is None:
        return
    limits, length = LIMITS["length"], columns.length.cast(pl.Float64)
    rows = int((length.is_not_null() & columns.reward.is_not_null()).sum())
    several, within = _within(columns, length)
    is_within = several >= limits["groups"]
    r = within if is_within else stats.correlation(length, columns.reward)
    if rows < limits["rows"] or r is None or abs(r) < limits["correlation"]:
        return
    cause = "longer" if r > 0 else "shorter"
    if _PAID_FOR[cause].isdisjoint(tally.check.type for tally in facts.tallies):
        yield Finding(
            *("length", None, facts.scored, facts.rows),
            effect=abs(r) * _sd(columns),
            cause=cause,
            numbers={"correlation": r, "within_groups": is_within},
            title=f"{cause.capitalize()} texts earn more",
            sentences=[correlation_of_length(r, within=is_within).capitalize() + f", over {counted(rows, 'row')}."],
            selection=_SCORED,
        )


def _within(columns: ResultColumns, length: pl.Series) -> tuple[int, float | None]:
    """Return how many groups have two rows, and the correlation of lengths and rewards less the means of their groups."""
    several, parts = 0, list[Sums]()
    for part in () if columns.in_groups is None else columns.in_groups.parts(x=length, y=columns.reward):
        both = part.drop_nulls()
        found = centred(both, "x", "y")
        several += found.several
        parts.append(Sums.of(both.height, *found.values))
    sums = Sums.total(parts)
    return several, stats.ratio(sums.xy, sums.xx, sums.yy)


class _Fall(NamedTuple):
    """The means of the steps, by how much the line through them falls from the first to the last, and the p of that."""

    means: list[float]
    change: float
    p: float

    def is_large(self, least: float, p: float) -> bool:
        return self.change >= least - _ROUNDING and self.p < p


def _fall(step: Keys, values: pl.Series) -> _Fall | None:
    value, without = pl.col("v"), step.values.to_series().null_count()  # the last number is that of no step
    frame = pl.DataFrame({"step": step.codes, "v": values}).drop_nulls()
    frame = frame.filter(pl.col("step") < step.values.height - without)
    mean = pl.when(value.min() == value.max()).then(value.min()).otherwise(value.mean())
    means = frame.group_by("step").agg(mean).sort("step")["v"].to_list()
    if len(means) < LIMITS["drift"]["steps"] or not all(map(math.isfinite, means)):
        return None
    test = stats.trend(means)
    return _Fall(means, -test.mean, 1.0 if test.p is None else test.p)


def drift(facts: Facts) -> Iterator[Finding]:
    """Find rewards, or pass rates of checks, that fall over the steps; the check that explains the reward is its cause."""
    if facts.columns is None or facts.step is None:
        return
    limits, reward, step = LIMITS["drift"], facts.columns.reward, facts.step
    falls = [(tally, fall) for tally in facts.tallies if (fall := _fall(step, tally.passing(reward))) is not None]
    whole, cause = _fall(step, reward), None
    if whole is not None and whole.is_large(limits["reward"], limits["p"]):
        cause = max(
            (pair for pair in falls if pair[1].change > 0),
            key=lambda pair: pair[1].change * pair[0].check.effect,
            default=(None,),
        )[0]
        yield _drift(None, whole, whole.change, facts.scored, cause)
    for tally, fall in falls:
        if tally is not cause and fall.is_large(limits["pass_rate"], limits["p"] / len(facts.tallies)):
            yield _drift(tally, fall, fall.change * tally.check.effect, tally.rows, None)


def _drift(tally: Tally | None, fall: _Fall, effect: float, rows: int, cause: Tally | None) -> Finding:
    what, form = ("The mean reward", number) if tally is None else (name(tally.check.name), percent)
    first, last = form(fall.means[0]), form(fall.means[-1])
    return Finding(
        *("drift", tally, rows, rows),
        effect=effect,
        cause=None if cause is None else cause.check.name,
        numbers={"fall": fall.change, "p": fall.p, "steps": len(fall.means)},
        title=f"{what} falls over {counted(len(fall.means), 'step')}",
        sentences=[
            f"From {first} in the first step to {last} in the last; the line through all falls by {form(fall.change)}.",
            "" if cause is None else f"{name(cause.check.name)} falls most.",
        ],
        selection=_SCORED,
    )
