"""Which rows each recipe takes of those that the first rules leave, and why it does not take the others."""

import polars as pl

from assay.errors import UsageError
from assay.insight.exporting.rules import Rule, beside, exclude, left
from assay.insight.exporting.settings import Settings

_MOST_PAIRED = 1024
"""Rows of a group that are compared with each other."""

_PAIRS_AT_ONCE = 1 << 19
_PAIRS = {"at": pl.UInt32, "other": pl.UInt32, "ratio": pl.Float64, "length": pl.Int64, "other_length": pl.Int64}


def select(frame: pl.DataFrame, settings: Settings) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the rows with the reasons of the recipe, and the examples in their order: ``at``, and of pairs ``other``."""
    return {"sft": _best, "kto": _labelled, "dpo": _paired, "prompts": _asked}[settings["recipe"]](frame, settings)


def _within(number: int | str, rank: pl.Expr) -> pl.Expr:
    return pl.lit(value=True) if number == "all" else rank <= number


def _best(frame: pl.DataFrame, settings: Settings) -> tuple[pl.DataFrame, pl.DataFrame]:
    least = settings["min_reward"]
    frame = exclude(
        frame,
        [
            Rule("does not pass", pl.col("passed").not_() & pl.lit(settings["passing"])),
            Rule("low reward", pl.lit(value=False) if least is None else pl.col("reward") < least),
        ],
    )
    order = {"reward": [-pl.col("reward")], "length": [pl.col("length"), -pl.col("reward")], "row": []}[settings["by"]]
    answer = ("answer",) if settings["answer"] else ()
    ranked = left(frame, "at", "group", "reward", "length", *answer).sort(*order, "at").drop("reward", "length")
    is_new, repeats = pl.lit(value=True), pl.lit(value=False)
    if answer:
        is_new = pl.col("answer").is_null() | (pl.int_range(pl.len()).over("group", "answer") == 0)
        repeats = pl.col("new").not_() & pl.col("taken").first().over("group", "answer")
    ranked = ranked.with_columns(new=is_new).with_columns(rank=pl.col("new").cum_sum().over("group"))
    ranked = ranked.with_columns(taken=pl.col("new") & _within(settings["best"], pl.col("rank")))
    ranked = ranked.select("at", "taken", repeats=repeats)
    rules = [Rule("same answer", pl.col("repeats")), Rule("not best", pl.col("taken").not_())]
    frame = exclude(beside(frame, ranked, "at"), rules).drop("repeats", "taken")
    return frame, left(frame, "at")


def _labelled(frame: pl.DataFrame, settings: Settings) -> tuple[pl.DataFrame, pl.DataFrame]:
    ranked = left(frame, "at", "group", "passed")
    ranked = ranked.select("at", rank=pl.int_range(1, pl.len() + 1).over("group", "passed"))
    rules = [Rule("enough", _within(settings["per_label"], pl.col("rank")).not_())]
    frame = exclude(beside(frame, ranked, "at"), rules).drop("rank")
    return frame, left(frame, "at")


def _asked(frame: pl.DataFrame, settings: Settings) -> tuple[pl.DataFrame, pl.DataFrame]:
    examples = left(frame, "at", "group", "n", "c").group_by("group").agg(pl.col("at").min(), pl.col("n", "c").first())
    rate = pl.col("c") / pl.col("n")
    order = {"row": [], "easy": [-rate], "hard": [rate]}[settings["order"]]
    return frame, examples.sort(*order, "at").select("at", "n", "c")


def _paired(frame: pl.DataFrame, settings: Settings) -> tuple[pl.DataFrame, pl.DataFrame]:
    groups = left(frame, "group", "passed").group_by("group")
    states = groups.agg(p=pl.col("passed").sum(), f=pl.col("passed").not_().sum())
    rules = [Rule("never passes", pl.col("p") == 0), Rule("always passes", pl.col("f") == 0)]
    frame = exclude(beside(frame, states, "group"), rules).drop("p", "f")
    states = states.filter((pl.col("p") > 0) & (pl.col("f") > 0)).sort("group")
    if not states.filter(pl.col("p") + pl.col("f") > _MOST_PAIRED).is_empty():
        fact = f"A group has more than {_MOST_PAIRED:,} rows to make pairs of."
        raise UsageError(fact, "Name what makes a group: --group COLUMN,…; or take fewer rows: --where SQL.")
    pairs, reaching, matching = _pairs(frame, states, settings)
    unbalanced = pairs.select("at", "other")
    if settings["balance"]:
        pairs = _balanced(pairs)
    flags = {
        "reaching": reaching,
        "matching": matching,
        "chosen": pl.concat([unbalanced["at"], unbalanced["other"]]),
        "used": pl.concat([pairs["at"], pairs["other"]]),
    }
    nowhere = pl.repeat(value=False, n=frame.height, eager=True)
    frame = frame.with_columns(nowhere.clone().scatter(rows, values=True).alias(name) for name, rows in flags.items())
    rules = [
        Rule("margin", pl.col("reaching").not_()),
        Rule("length match", pl.col("matching").not_()),
        Rule("not chosen", pl.col("chosen").not_()),
        Rule("length balance", pl.col("used").not_()),
    ]
    return exclude(frame, rules).drop(*flags), pairs.sort("at", "other")


def _pairs(frame: pl.DataFrame, states: pl.DataFrame, settings: Settings) -> tuple[pl.DataFrame, pl.Series, pl.Series]:
    """Return the pairs that are taken, the rows that reach the margin with another, and those that also match its length."""
    part = (pl.col("p").cast(pl.Int64) * pl.col("f")).cum_sum() // _PAIRS_AT_ONCE
    parts = states.select(part=part, rows=pl.col("p") + pl.col("f")).group_by("part", maintain_order=True).sum()["rows"]
    taken, reaching, matching = (
        [pl.DataFrame(schema=_PAIRS)],
        [pl.Series(dtype=pl.UInt32)],
        [pl.Series(dtype=pl.UInt32)],
    )
    rows = left(frame, "at", "group", "passed", "reward", "length").sort("group")
    for end, size in zip(parts.cum_sum(), parts, strict=True):
        some = rows.slice(end - size, size)
        others = some.filter(pl.col("passed").not_()).select("group", pl.all().exclude("group").name.prefix("other_"))
        pairs = some.filter("passed").join(others, on="group").rename({"other_at": "other"})
        gap = (pl.col("reward") - pl.col("other_reward")).alias("gap")
        pairs = pairs.with_columns(gap).filter((pl.col("gap") > 0) & (pl.col("gap") >= settings["margin"]))
        reaching += [pairs["at"].unique(), pairs["other"].unique()]
        longer, shorter = (pick("length", "other_length") for pick in (pl.max_horizontal, pl.min_horizontal))
        pairs = pairs.with_columns(ratio=longer / shorter)
        if settings["length_ratio"] is not None:
            pairs = pairs.filter(pl.col("ratio") <= settings["length_ratio"])
        matching += [pairs["at"].unique(), pairs["other"].unique()]
        pairs = pairs.sort("group", "ratio", -pl.col("gap"), "at", "other")
        if settings["pairs"] != "all":
            pairs = pairs[_greedy(pairs, settings["pairs"])]
        taken.append(pairs.select(pl.col(name).cast(dtype) for name, dtype in _PAIRS.items()))
    return pl.concat(taken), pl.concat(reaching), pl.concat(matching)


def _greedy(pairs: pl.DataFrame, most: int) -> list[int]:
    """Return the places of the first pairs of each group, up to ``most``, no row twice."""
    places, used = list[int](), set[int]()
    group, number = None, 0
    for place, (own, chosen, rejected) in enumerate(pairs.select("group", "at", "other").iter_rows()):
        if own != group:
            group, number = own, 0
            used.clear()
        if number < most and chosen not in used and rejected not in used:
            places.append(place)
            used |= {chosen, rejected}
            number += 1
    return places


def _balanced(pairs: pl.DataFrame) -> pl.DataFrame:
    """Return as many pairs whose chosen text is longer as those in which it is shorter."""
    pairs = pairs.sort("ratio", "at", "other").with_columns(side=(pl.col("length") - pl.col("other_length")).sign())
    rank = pl.int_range(1, pl.len() + 1).over("side")
    least = min((pairs["side"] == side).sum() for side in (1, -1))
    return pairs.filter((pl.col("side") == 0) | (rank <= least)).drop("side")
