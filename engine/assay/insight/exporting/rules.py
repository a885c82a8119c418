"""Which rows are left out of a training set, and why: of the rules in their order, the first that holds of a row."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from assay.insight.exporting.rows import Rows
from assay.insight.exporting.settings import Settings
from assay.insight.exporting.targets import FORMS
from assay.insight.results import ROW
from assay.names import TEXT

REASONS = (
    *("", "where", "unscored", "error", "no task", "no prompt", "no text", "form", "truncated", "length"),
    *("mixed group", "contradictory", "duplicate", "few rollouts", "never passes", "always passes", "pass rate"),
    *("does not pass", "low reward", "same answer", "not best", "enough"),
    *("margin", "length match", "length balance", "not chosen"),
)
"""The reasons in order of the rules; ``reason`` of a frame is the place in it, 0 for rows that are left."""

_CODES = {reason: code for code, reason in enumerate(REASONS)}
_SPREAD = 0x9E3779B97F4A7C15
"""An odd number: its multiples, modulo 2⁶⁴, all differ."""

_NOTHING = pl.lit(None, pl.String)
LEFT = pl.col("reason") == 0


class Rule(NamedTuple):
    """A reason, the rows of which it holds, and its detail."""

    reason: str
    holds: pl.Expr
    detail: pl.Expr = _NOTHING


def exclude(frame: pl.DataFrame, rules: Sequence[Rule]) -> pl.DataFrame:
    """Give the rows that are left the reason of the first rule that holds."""
    holds = [LEFT & rule.holds.fill_null(value=False) for rule in rules]
    codes = [pl.when(own).then(pl.lit(_CODES[rule.reason], pl.UInt8)) for own, rule in zip(holds, rules, strict=True)]
    frame = frame.with_columns(pl.coalesce(*codes, pl.col("reason")).alias("reason"), new=pl.any_horizontal(holds))
    detailed = [rule for rule in rules if rule.detail is not _NOTHING]
    told = frame.filter("new", pl.col("reason").is_in([_CODES[rule.reason] for rule in detailed]))
    if told.height:  # texts are made for these rows only
        words = [pl.when(pl.col("reason") == _CODES[rule.reason]).then(rule.detail) for rule in detailed]
        texts = told.select(pl.coalesce(words)).to_series()
        frame = frame.with_columns(frame["detail"].scatter(told["at"], texts))
    return frame.drop("new")


def first_rules(rows: Rows, settings: Settings) -> pl.DataFrame:
    """Apply what comes before the recipe. ``n`` and ``c`` of a row are the scored rows of its group, and how many of them pass."""
    reads_text = settings["recipe"] != "prompts"
    frame = rows.frame.with_row_index("at").with_columns(reason=pl.lit(0, pl.UInt8), detail=_NOTHING)
    frame = exclude(frame, _of_scores(rows, settings))
    counted = frame.filter(LEFT).group_by("group").agg(n=pl.len(), c=pl.col("passed").sum())
    kept = (
        frame.filter("where")
        .group_by("group")
        .agg(
            *(
                pl.col(name).min().ne(pl.col(name).max()).fill_null(value=False).alias(f"{name}s")
                for name in ("prompt", "gold")
            )
        )
    )
    frame = frame.join(counted, on="group", how="left", maintain_order="left")
    frame = frame.join(kept, on="group", how="left", maintain_order="left")
    frame = exclude(frame, _of_forms(settings, reads_text=reads_text)).drop("prompts", "golds")
    if reads_text:
        frame = _without_duplicates(rows, frame)
    return exclude(frame, _of_groups(settings))


def _of_scores(rows: Rows, settings: Settings) -> list[Rule]:
    texts = pl.Series([*rows.errors.numbers], dtype=pl.String)
    error = pl.lit(texts).gather(pl.col("error")) if len(texts) else _NOTHING
    return [
        Rule("where", pl.col("where").not_()),
        Rule("unscored", pl.col("reward").is_null(), error),
        Rule("error", pl.col("error").is_not_null() & pl.lit(settings["errors"] == "exclude"), error),
        Rule("no task", pl.col("task").is_null()),
    ]


def _of_forms(settings: Settings, *, reads_text: bool) -> list[Rule]:
    form = pl.col("form").replace_strict(dict(enumerate(FORMS)), return_dtype=pl.String)
    is_mixed = pl.col("prompts") | pl.col("golds")
    rules = [
        Rule("no prompt", pl.col("prompt").is_null()),
        Rule("no text", pl.col("text").is_null()),
        Rule("form", pl.col("form") > 0, form),
        Rule("truncated", pl.col("truncated") & pl.lit(settings.get("truncated") == "exclude")),
        Rule("length", _is_of_length(settings).not_() | pl.col("length").is_null(), pl.col("length").cast(pl.String)),
        Rule(
            "mixed group",
            is_mixed & pl.lit(settings["mixed"] == "exclude"),
            pl.when("prompts").then(pl.lit("prompts")).otherwise(pl.lit("golds")),
        ),
    ]
    return rules if reads_text else [rule for rule in rules if rule.reason in ("no prompt", "form", "mixed group")]


def _is_of_length(settings: Settings) -> pl.Expr:
    least, most = settings.get("min_length"), settings.get("max_length")
    is_of = pl.col("length") >= 1
    is_of = is_of if least is None else is_of & (pl.col("length") >= least)
    return is_of if most is None else is_of & (pl.col("length") <= most)


def _of_groups(settings: Settings) -> list[Rule]:
    n, c = pl.col("n"), pl.col("c")
    low, high = settings["pass_rate"]
    beyond = (c / n < low) | (c / n > high)
    share = pl.format("{} of {}", c, n)
    return [
        Rule("few rollouts", n < settings["min_rollouts"], n.cast(pl.String)),
        Rule("never passes", beyond & (c == 0), share),
        Rule("always passes", beyond & (c == n), share),
        Rule("pass rate", beyond, share),
    ]


def _without_duplicates(rows: Rows, frame: pl.DataFrame) -> pl.DataFrame:
    """Leave out rows whose text, as an answer to the same prompt, others have, too."""
    alike = frame.filter(LEFT).select("at", "result", "row", "prompt", "text", "passed")
    alike = alike.filter((pl.col("text") + pl.col("prompt").cast(pl.UInt64) * _SPREAD).is_duplicated())
    if alike.is_empty():
        return frame
    digests = pl.concat(_digests(rows, alike, at) for at in alike["result"].unique())
    alike = alike.join(digests, on=("result", "row"))
    same = alike.group_by("prompt", "digest").agg(
        pl.col("at"),
        pl.col("at").min().alias("first"),
        pl.len().alias("copies"),
        pl.col("passed").n_unique().alias("states"),
    )
    same = same.filter(pl.col("copies") > 1).explode("at").select("at", "first", "states")
    first = frame.select(pl.col("at").alias("first"), "result", "row")
    row = pl.format("row {}", "row")
    named = first.select("first", name=pl.format("result {}, {}", "result", row) if len(rows.sources) > 1 else row)
    same = same.join(named, on="first", how="left")
    frame = frame.join(same, on="at", how="left", maintain_order="left")
    rules = [
        Rule("contradictory", pl.col("states") > 1, pl.col("name")),
        Rule("duplicate", pl.col("first") < pl.col("at"), pl.col("name")),
    ]
    return exclude(frame, rules).drop("first", "states", "name")


def _digests(rows: Rows, alike: pl.DataFrame, result: int) -> pl.DataFrame:
    """Return digests of the texts of rows, which are equal where the texts are."""
    source, wanted = rows.sources[result], alike.filter(pl.col("result") == result).select(pl.col("row").alias(ROW))
    parts = [pl.DataFrame(schema={"row": pl.UInt32, "digest": pl.Binary})]
    for batch in source.whole.batches(pl.col(ROW), source.text.alias(TEXT)):
        own = batch.join(wanted, on=ROW, how="semi", maintain_order="left")
        digests = [hashlib.sha256(text.encode()).digest() for text in own[TEXT]]
        parts.append(pl.DataFrame({"row": own[ROW], "digest": pl.Series(digests, dtype=pl.Binary)}))
    return pl.concat(parts).with_columns(result=pl.lit(result, pl.UInt16))
