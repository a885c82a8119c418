"""Findings about checks: those that err, that never pass, that miss right answers, that teach nothing."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from assay.errors import counted
from assay.insight import stats
from assay.insight.findings import words
from assay.insight.findings.facts import Facts, Outlier, Tally
from assay.insight.findings.finding import Finding, Selection, is_not, line_of_template
from assay.insight.findings.limits import LIMITS, MOST_ROWS
from assay.insight.findings.words import name
from assay.steps.subject import NOTHING
from assay.writing.numbers import count, percent

NO_REASON = "no reason is given"
"""In place of a template, of rows without a reward and an error."""

_ELSEWHERE = "gold elsewhere"


def errors(facts: Facts) -> Iterator[Finding]:
    """Find errors beside a reward, by check and template."""
    tallies = {tally.check.name: tally for tally in facts.tallies}
    labelled = [f"{check}: {template}" for check, template in facts.errors]
    for (check, template), rows in facts.errors.items():
        tally = tallies[check]
        yield Finding(
            *("errors", tally, rows, facts.scored),
            effect=rows * tally.check.effect / facts.rows,
            cause=template,
            title=f"{name(check)} has an error in {counted(rows, 'row')}",
            sentences=[
                f"{words.share(rows, facts.scored, 'scored row')}: {words.cause(template)}.",
                words.stake(tally),
            ],
            selection=Selection(
                where=("reward IS NOT NULL", line_of_template("error", f"{check}: {template}", labelled))
            ),
        )


def unscored(facts: Facts) -> Iterator[Finding]:
    """Find rows without a reward, by template."""
    for template, rows in facts.unscored.items():
        yield Finding(
            *("unscored", None, rows, facts.rows),
            effect=rows / facts.rows,
            cause=template,
            title=f"{counted(rows, 'row')} {'has' if rows == 1 else 'have'} no reward",
            sentences=[f"{words.share(rows, facts.rows)}: {words.cause(template)}.", "Means and rates leave them out."],
            selection=Selection(unscored=True, where=_of_unscored(facts, template)),
        )


def _of_unscored(facts: Facts, template: str) -> tuple[str, ...]:
    if template != NO_REASON:
        return (line_of_template("error", template, facts.unscored, begin="(.*: )?"),)
    has_errors = facts.columns is not None and "error" in facts.columns.result.schema
    return ("COALESCE(error, '') = ''",) if has_errors else ()


def outlier(facts: Facts) -> Iterator[Finding]:
    """Find models on which a check passes far less often than on the others, or far more often."""
    for tally in facts.tallies:
        for one in facts.outliers.get(tally.place, ()):
            yield _outlier(facts, tally, one)


def _outlier(facts: Facts, tally: Tally, one: Outlier) -> Finding:
    rate, closest = one.rate, one.others[0]
    cause = facts.why(tally, rate.model) if one.is_lowest else None
    check = tally.check.name
    return Finding(
        *("outlier", tally, rate.failures if one.is_lowest else rate.passes, rate.rows),
        model=facts.models[rate.model],
        effect=rate.rows * abs(rate.share - closest.share) * tally.check.effect / facts.rows,
        cause=cause,
        numbers={"pass_rate": rate.share, "others": [other.share for other in one.others], "p": one.p}
        | _sampled(facts, tally, cause, rate.model),
        title=f"{words.shown(str(facts.models[rate.model]))} {words.frequency(rate.passes, rate.rows)} {name(check)}",
        sentences=[
            f"{words.passing(rate.passes, rate.rows)}; {words.span(one.others)}.",
            _why(facts, tally, cause, rate.model, rate.failures),
        ],
        selection=Selection(
            failed=(check,) if one.is_lowest else (),
            passed=() if one.is_lowest else (check,),
            model=facts.models[rate.model],
        ),
    )


def _why(facts: Facts, tally: Tally, cause: str | None, model: int | None, failures: int) -> str:
    """Return what explains failures, with an example."""
    of, readings = counted(failures, "failure"), facts.readings_of(tally, model)
    if cause == "not_found" and tally.nothing is not None:
        rows = tally.nothing if model is None else tally.nothing & (facts.model == model)
        return f"In {count(int(rows.sum()))} of {of} it finds nothing to compare."
    if cause == "near_miss" and readings is not None:
        relation, weights, example = _commonest(readings)
        return f"{words.rows_in(weights).capitalize()} of {of} {words.NEAR[relation]}: {example}."
    return ""


def _sampled(facts: Facts, tally: Tally, cause: str | None, model: int | None = None) -> dict[str, int]:
    readings = facts.readings_of(tally, model)
    return {} if cause != "near_miss" or readings is None else words.sampled(readings, readings.height)


def _commonest(readings: pl.DataFrame) -> tuple[str, pl.Series, str]:
    """Return the commonest relation of answers that are near to the gold, the weights of its rows, and an example."""
    parts = readings.drop_nulls("near").sort("row").partition_by("near", maintain_order=True)
    most = max(parts, key=lambda part: (part["weight"].sum(), -list(words.NEAR).index(part["near"][0])))
    return most["near"][0], most["weight"], words.quoted_reading(most["read"][0], most["expected"].list.first()[0])


def near_miss(facts: Facts) -> Iterator[Finding]:
    """Find checks that fail answers which are close to the gold."""
    limits = LIMITS["near_miss"]
    for tally in facts.tallies:
        if (readings := facts.readings_of(tally)) is None or not (near := readings.drop_nulls("near")).height:
            continue
        explained = facts.explained(tally, "near_miss")
        left, failures = _left(near, explained), tally.failures - facts.failures_of(tally, explained)
        rows = float(left["weight"].sum())
        if rows >= limits["rows"] and rows >= limits["share"] * failures:
            yield _near_miss(facts, tally, left, failures, readings.height)


def _near_miss(facts: Facts, tally: Tally, near: pl.DataFrame, failures: int, read: int) -> Finding:
    rows, model, (relation, weights, example) = float(near["weight"].sum()), facts.model_of(near), _commonest(near)
    is_mixed = len(weights) < near.height
    relations = near.group_by("near").agg(pl.col("weight").sum().round().cast(pl.Int64)).sort("near")
    what = f"{words.share(rows, failures, 'failure')}{words.of_model(model)}"
    what += f"; {words.rows_in(weights)} {words.NEAR[relation]}" if is_mixed else ""
    return Finding(
        *("near_miss", tally, round(rows), failures),
        model=model,
        effect=rows * tally.check.effect / facts.rows,
        cause=relation,
        numbers=dict(relations.iter_rows()) | words.sampled(near, read),
        title=f"{name(tally.check.name)} fails {counted(round(rows), 'answer')} that {words.CLOSE if is_mixed else words.NEAR[relation]}",
        sentences=[f"{what}: {example}.", words.stake(tally)],
        selection=Selection(row=tuple(near["row"].sort().head(MOST_ROWS))),
    )


def _left(rows: pl.DataFrame, models: list[int | None]) -> pl.DataFrame:
    """Leave out the rows of models whose failures another finding explains."""
    return rows.clear() if None in models else rows.filter(pl.col("model").is_in(models).not_().fill_null(value=True))


def not_found(facts: Facts) -> Iterator[Finding]:
    """Find checks whose steps find nothing: mostly, or though the gold is elsewhere in the text."""
    limits = LIMITS["not_found"]
    for tally in facts.tallies:
        if tally.nothing is None:
            continue
        explained = facts.explained(tally, "not_found")
        rows = _left(facts.rows_of(tally.nothing), explained)
        model = facts.model_of(rows)
        left = tally.rows - facts.failures_of(tally, explained)
        base = left if model is None else facts.rows_on(tally, model)
        elsewhere, p = _elsewhere(facts, tally, rows.height)
        is_much = rows.height >= max(limits["rows"], limits["share"] * base)
        if is_much and (elsewhere or rows.height >= limits["most"] * base):
            others = [is_not(facts.models[code]) for code in explained if code is not None]
            selection = Selection(
                (tally.check.name,), where=(line_of_template("feedback", f"{tally.check.name}: {NOTHING}"), *others)
            )
            yield _not_found(facts, tally, rows.height, base, model, elsewhere, p, selection)


def _elsewhere(facts: Facts, tally: Tally, rows: int) -> tuple[float, float | None]:
    """Return on how many rows the gold is in the text though nothing is read; 0 unless it is there more often than others'."""
    limits, readings = LIMITS["not_found"], facts.readings_of(tally)
    if readings is None:
        return 0.0, None
    read = _left(readings.filter("nothing").drop_nulls("here"), facts.explained(tally, "not_found"))
    own, other = (read.filter(pl.col(a) & pl.col(b).not_()).height for a, b in (("here", "there"), ("there", "here")))
    found, p = float(read.filter("here")["weight"].sum()), stats.mcnemar(own, other)
    is_much = found >= max(limits["rows"], limits["elsewhere"] * rows)
    return found if is_much and own > other and p < limits["p"] else 0.0, p


def _not_found(
    facts: Facts,
    tally: Tally,
    rows: int,
    base: int,
    model: Any,
    elsewhere: float,
    p: float | None,
    selection: Selection,
) -> Finding:
    check = tally.check.name
    of = f"{words.share(rows, base)}{'' if model is None else f' of {words.shown(str(model))}'}"
    return Finding(
        *("not_found", tally, rows, base),
        model=model,
        effect=rows * tally.check.effect / facts.rows,
        cause=_ELSEWHERE if elsewhere else None,
        numbers={"elsewhere": round(elsewhere), "p": p} if elsewhere else {},
        title=f"{name(tally.nothing_in or check)} finds nothing in {counted(rows, 'row')}",
        sentences=[
            f"That is {of} that {name(check)} reads.",
            f"In {count(elsewhere)} the gold is elsewhere in the text." if elsewhere else "",
            words.stake(tally),
        ],
        selection=selection,
    )


def dead(facts: Facts) -> Iterator[Finding]:
    """Find checks that practically never pass."""
    for tally in facts.tallies:
        if tally.is_dead:
            cause = facts.why(tally)
            why = _why(facts, tally, cause, None, tally.failures)
            yield Finding(
                *("dead", tally, tally.failures, tally.rows),
                effect=tally.check.effect,
                cause=cause,
                numbers={"pass_rate": tally.passes / tally.rows} | _sampled(facts, tally, cause),
                title=f"{name(tally.check.name)} {words.frequency(tally.passes, tally.rows)}",
                sentences=[f"{words.passing(tally.passes, tally.rows)}.", why, words.stake(tally)],
                selection=Selection((tally.check.name,)),
            )


def saturated(facts: Facts) -> Iterator[Finding]:
    """Find checks that practically never fail though they have a weight."""
    for tally in facts.tallies:
        check = tally.check
        has_weight = check.role in ("weight", "member") and check.weight != 0
        if has_weight and tally.is_saturated and not (check.required or check.forbids):
            yield Finding(
                *("saturated", tally, tally.failures, tally.rows),
                effect=check.effect,
                numbers={"pass_rate": tally.passes / tally.rows},
                title=f"{name(check.name)} hardly teaches anything",
                sentences=[
                    f"{words.passing(tally.passes, tally.rows)}.",
                    f"{percent(check.effect)} of the weight goes to it." if check.weight is not None else "",
                ],
                selection=Selection((check.name,)),
            )


def redundant(facts: Facts) -> Iterator[Finding]:
    """Find pairs of checks of which one would do."""
    tallies = {tally.check.name: tally for tally in facts.tallies if _separates(tally)}
    for pair in facts.pairs:
        names = [pair[side] for side in "ab" if pair[side] in tallies]
        if not pair["redundant"] or len(names) < 2 or _is_within(*(tallies[name] for name in names)):  # noqa: PLR2004
            continue
        first, second = sorted((tallies[name] for name in names), key=lambda tally: tally.place)
        both, alone = pair["n11"], pair["n10"] + pair["n01"]
        yield Finding(
            *("redundant", first, both, both + alone + pair["n00"]),
            effect=min(first.check.effect, second.check.effect),
            cause=second.check.name,
            numbers={"phi": pair["phi"], "jaccard": pair["jaccard"], "alone": alone},
            title=f"{name(first.check.name)} and {name(second.check.name)} fail together",
            sentences=[
                f"Both fail in {counted(both, 'row')}, {f'one alone in {count(alone)}' if alone else 'none alone'}: one would do."
            ],
            selection=Selection((first.check.name, second.check.name)),
        )


def _separates(tally: Tally) -> bool:
    return tally.check.role in ("weight", "member") and not (tally.is_dead or tally.is_saturated)


def _is_within(a: Tally, b: Tally) -> bool:
    """Return whether one of two checks is a group that the other is in: then they fail together by its rule."""
    ids = sorted((a.check.id, b.check.id), key=len)
    return a.check.verifier == b.check.verifier and ids[1].startswith(f"{ids[0]}.")
