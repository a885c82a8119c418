"""Which rows are left out of a training set, and why: of the rules in their order, the first that holds of a row."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from assay.insight.exporting.rows import Rows
from assay.insight.exporting.settings import Settings
from assay.insight.exporting.targets import FORMS
from assay.insight.integrity.groups import has_several
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
    """A reason, the rows of which it holds, and its detail, which is made for the rows that are written."""

    reason: str
    holds: pl.Expr
    detail: pl.Expr = _NOTHING


def exclude(frame: pl.DataFrame, rules: Sequence[Rule]) -> pl.DataFrame:
    """Give the rows that are left the reason of the first rule that holds."""
    codes = [pl.when(LEFT & rule.holds).then(pl.lit(_CODES[rule.reason], pl.UInt8)) for rule in rules]
    return frame.with_columns(pl.coalesce(*codes, pl.col("reason")).alias("reason"))


def left(frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Return columns of the rows that are left."""
    return frame.select(*columns, "reason").filter(LEFT).drop("reason")


def beside(frame: pl.DataFrame, table: pl.DataFrame, on: str) -> pl.DataFrame:
    """Return a frame with the columns of a table that has one row for a value of ``on``.

    NOTE: a join of all columns copies all of them.
    """
    added = frame.select(on).join(table, on=on, how="left", maintain_order="left").drop(on)
    return frame.hstack(added)


def first_rules(rows: Rows, settings: Settings) -> pl.DataFrame:
    """Apply what comes before the recipe. ``n`` and ``c`` of a row are the scored rows of its group, and how many of them pass."""
    reads_text = settings["recipe"] != "prompts"
    frame = rows.frame.with_row_index("at").with_columns(reason=pl.lit(0, pl.UInt8))
    frame = exclude(frame, _of_scores(rows, settings))
    counted = left(frame, "group", "passed").group_by("group").agg(n=pl.len(), c=pl.col("passed").sum())
    kept = frame.select("group", "prompt", "gold", "where").filter("where").group_by("group")
    mixed = kept.agg(has_several(name).alias(f"{name}s") for name in ("prompt", "gold"))
    frame = beside(beside(frame, counted, "group"), mixed, "group").drop("where", "gold")
    frame = exclude(frame, _of_forms(settings, reads_text=reads_text))
    if reads_text:
        frame = _without_duplicates(rows, frame).drop("text", "truncated")
    return exclude(frame.drop("prompt"), _of_groups(settings))


def details(rows: Rows, settings: Settings) -> dict[int, pl.Expr]:
    """Return the details of excluded rows, by the number of their reason."""
    forms = _of_forms(settings, reads_text=settings["recipe"] != "prompts")
    rules = (*_of_scores(rows, settings), *forms, *_of_copies(rows), *_of_groups(settings))
    return {_CODES[rule.reason]: rule.detail for rule in rules if rule.detail is not _NOTHING}


def _of_scores(rows: Rows, settings: Settings) -> list[Rule]:
    error = pl.lit(rows.errors).gather(pl.col("error")) if len(rows.errors) else _NOTHING
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
    # a recipe has these reasons for other groups, too
    share = pl.when(beyond).then(pl.concat_str(c, pl.lit(" of "), n))
    return [
        Rule("few rollouts", n < settings["min_rollouts"], n.cast(pl.String)),
        Rule("never passes", beyond & (c == 0), share),
        Rule("always passes", beyond & (c == n), share),
        Rule("pass rate", beyond, share),
    ]


def _of_copies(rows: Rows) -> list[Rule]:
    result, row = rows.place(pl.col("first"))
    name = pl.concat_str(pl.lit("row "), row)
    if len(rows.sources) > 1:
        name = pl.concat_str(pl.lit("result "), result, pl.lit(", "), name)
    return [
        Rule("contradictory", pl.col("states") > 1, name),
        Rule("duplicate", pl.col("first") < pl.col("at"), name),
    ]


def _without_duplicates(rows: Rows, frame: pl.DataFrame) -> pl.DataFrame:
    """Leave out rows whose text, as an answer to the same prompt, others have, too."""
    key = (pl.col("text") + pl.col("prompt").cast(pl.UInt64) * _SPREAD).alias("key")
    keys = left(frame, "text", "prompt").select(key).to_series().sort()
    repeated = keys.filter(keys == keys.shift()).unique()
    if repeated.is_empty():
        return frame
    alike = frame.select("at", "prompt", "passed", "reason", key).filter(LEFT, pl.col("key").is_in(repeated.implode()))
    result, row = rows.place(pl.col("at"))
    alike = alike.select("at", "prompt", "passed", result=result, row=row)
    digests = pl.concat(_digests(rows, alike, at) for at in alike["result"].unique())
    alike = alike.join(digests, on=("result", "row"))
    same = alike.group_by("prompt", "digest").agg(
        pl.col("at"),
        pl.col("at").min().alias("first"),
        pl.len().alias("copies"),
        pl.col("passed").n_unique().alias("states"),
    )
    same = same.filter(pl.col("copies") > 1).explode("at").select("at", "first", "states")
    return exclude(beside(frame, same, "at"), _of_copies(rows)).drop("states")


def _digests(rows: Rows, alike: pl.DataFrame, result: int) -> pl.DataFrame:
    """Return digests of the texts of rows, which are equal where the texts are."""
    source, wanted = rows.sources[result], alike.filter(pl.col("result") == result).select(pl.col("row").alias(ROW))
    parts = [pl.DataFrame(schema={"row": pl.UInt32, "digest": pl.Binary})]
    for batch in source.whole.batches(pl.col(ROW), source.text.alias(TEXT)):
        own = batch.join(wanted, on=ROW, how="semi", maintain_order="left")
        digests = [hashlib.sha256(text.encode()).digest() for text in own[TEXT]]
        parts.append(pl.DataFrame({"row": own[ROW], "digest": pl.Series(digests, dtype=pl.Binary)}))
    return pl.concat(parts).with_columns(result=pl.lit(result, alike["result"].dtype))
