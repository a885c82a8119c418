"""What a group is made of: how many prompts, golds and texts, which prompts other tasks share, and what repeated texts are paid."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from assay.expressions.shared_columns import exactly
from assay.insight.integrity.near import Read, first_texts, joined_rows, pairs_of
from assay.names import HIDDEN

COLUMNS: Mapping[str, Any] = {
    "odd_size": pl.Boolean,
    "prompts": pl.Int64,
    "golds": pl.Int64,
    "shared_prompt": pl.Boolean,
    "texts": pl.Int64,
    "distinct": pl.Int64,
    "near_distinct": pl.Int64,
    "duplicate_reward": pl.Float64,
    "near_duplicate_reward": pl.Float64,
}
"""What is told of each group; columns of what cannot be had are null."""

_PARTS = {
    "prompts": ("group", "prompt", "joined"),
    "golds": ("group", "gold"),
    "texts": ("row", "group", "text", "chars"),
}


def usual_size(rows: pl.Series) -> int | None:
    """Return the commonest number of rows of a group, of several the greatest; None without groups."""
    sizes = rows.value_counts().sort("count", rows.name, descending=True)
    return int(sizes[rows.name][0]) if sizes.height else None


def has_several(name: str) -> pl.Expr:
    """Return whether a column has several values, nulls left out."""
    return pl.col(name).min().ne(pl.col(name).max()).fill_null(value=False)


def distinct_values(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """Count the distinct values of a column in each ``group``, nulls left out; groups without a value are not listed."""
    return rows.select("group", name).drop_nulls().unique().group_by("group").agg(pl.len().cast(pl.Int64).alias(name))


def sharing(rows: pl.DataFrame) -> pl.Series:
    """Return the groups of which a prompt, ``joined``, is in a group of another ``task`` with the same other keys, ``rest``."""
    prompts = rows.drop_nulls("joined")
    tasks = prompts.group_by("joined", "rest").agg(is_shared=pl.col("task").min() != pl.col("task").max())
    return prompts.join(tasks.filter("is_shared"), on=["joined", "rest"], how="semi")["group"].unique()


def other_keys(keys: Sequence[str], tasks: Sequence[str]) -> list[str]:
    """Return the columns that tell groups of a task apart, such as ``model``; none where other columns than a task's name a group."""
    return [name for name in keys if name not in tasks] if {*tasks} & {*keys} else []


def numbered(frame: pl.DataFrame, names: Sequence[str]) -> pl.Series:
    """Return a number for each row of a frame, equal where some columns are; 0 without columns."""
    if not names:
        return pl.repeat(0, frame.height, dtype=pl.UInt32, eager=True)
    values, number = frame.select(map(exactly, names)), HIDDEN + "number"
    distinct = values.unique(maintain_order=True).with_row_index(number)
    return values.join(distinct, on=[*names], how="left", nulls_equal=True, maintain_order="left")[number]


def is_repeated(*keys: str) -> pl.Expr:
    """Return whether an earlier row has the same values in some columns."""
    return pl.int_range(pl.len()).over(keys) > 0


def shares_of_reward(rows: pl.DataFrame, flags: Sequence[str]) -> pl.DataFrame:
    """Return the share of each group's ``reward`` that rows with a flag have; null unless the group has more than 0."""
    reward = pl.col("reward")
    sums = rows.sort("group", maintain_order=True).group_by("group", maintain_order=True)
    found = sums.agg(reward.sum(), *(reward.filter(pl.col(flag)).sum().alias(flag) for flag in flags))
    shares = (pl.when(reward > 0).then(pl.col(flag) / reward).alias(flag) for flag in flags)
    return found.select("group", *shares)


def answers_of(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the distinct answers of each group, by ``vote``, and how many equally frequent ones were as varied: (Σn)²/Σn²."""
    counts = rows.drop_nulls("vote").group_by("group", "vote").agg(pl.len().cast(pl.Int64).alias("n"))
    n = pl.col("n")
    return counts.group_by("group").agg(
        pl.len().cast(pl.Int64).alias("answers"), effective_answers=n.sum() ** 2 / (n**2).sum()
    )


def gathered(batches: Iterable[pl.DataFrame], group: pl.Series) -> dict[str, pl.DataFrame]:
    """Return the numbers that stand for prompts, golds and texts in groups, as far as rows have them.

    Args:
        batches: Rows by number, ``row``, with some of ``prompt``, ``joined``, ``gold``, ``text`` and its ``chars``.
        group: The group of each row; null for none.
    """
    found: dict[str, list[pl.DataFrame]] = {}
    for batch in batches:
        rows = batch.with_columns(group=group.gather(batch["row"])).drop_nulls("group")
        for name, columns in _PARTS.items():
            if {*columns} <= {*rows.columns}:
                own = rows.select(columns).drop_nulls()
                found.setdefault(name, []).append(own if name == "texts" else own.unique())
    return {name: pl.concat(parts) for name, parts in found.items()}


def integrity_of(
    groups: pl.DataFrame,
    found: Mapping[str, pl.DataFrame],
    reward: pl.Series,
    size: int | None,
    near: float,
    order: pl.Series,
    read: Read,
) -> pl.DataFrame:
    """Return ``COLUMNS`` of groups, and ``is_compared``, whether their texts were compared.

    Args:
        groups: ``group``, from 0, its ``task``, other keys, ``rest``, and number of ``rows``.
        found: What ``gathered`` returns.
        reward: The reward of each row of the result.
        size: The usual number of rows of a group; None without groups.
        near: The least similarity of texts that are nearly the same.
        order: The groups in the order in which their texts are compared.
        read: Return the texts of rows, ``row`` and ``text``, in batches in their order.
    """
    table = groups.select("group", odd_size=pl.col("rows") != pl.lit(size, pl.Int64), is_compared=pl.lit(value=False))
    for name, column in (("prompts", "prompt"), ("golds", "gold")):
        if name in found:
            counts = distinct_values(found[name], column).rename({column: name})
            table = table.join(counts, on="group", how="left", maintain_order="left").with_columns(
                pl.col(name).fill_null(0)
            )
    if "prompts" in found:
        shared = sharing(found["prompts"].join(groups.select("group", "task", "rest"), on="group"))
        table = table.with_columns(shared_prompt=pl.col("group").is_in(shared.implode()))
    if "texts" in found:
        table = _with_texts(table, found["texts"], reward, near, order, read)
    known = [pl.col(name) if name in table.columns else pl.lit(None).alias(name) for name in (*COLUMNS, "is_compared")]
    return table.select(known).cast(COLUMNS)  # type: ignore[arg-type]


def _with_texts(
    table: pl.DataFrame, texts: pl.DataFrame, reward: pl.Series, near: float, order: pl.Series, read: Read
) -> pl.DataFrame:
    texts = texts.with_columns(is_copy=is_repeated("group", "text"), reward=reward.gather(texts["row"]).fill_null(0.0))
    first = first_texts(texts.filter(pl.col("is_copy").not_()))
    pairs, compared = pairs_of(first, order, near)
    joined = joined_rows(pairs, first, near, read)
    texts = texts.with_columns(is_near=pl.col("is_copy") | pl.col("row").is_in(joined.implode()))
    counts = texts.group_by("group").agg(pl.len().alias("texts"), pl.col("is_copy", "is_near").sum())
    left = pl.col("texts")
    counts = counts.select("group", left, distinct=left - pl.col("is_copy"), near_distinct=left - pl.col("is_near"))
    shares = shares_of_reward(texts, ("is_copy", "is_near")).rename(
        {"is_copy": "duplicate_reward", "is_near": "near_duplicate_reward"}
    )
    table = table.with_columns(is_compared=pl.col("group").is_in(compared.implode()))
    for own in (counts, shares):
        table = table.join(own, on="group", how="left", maintain_order="left")
    table = table.with_columns(pl.col("texts", "distinct", "near_distinct").fill_null(0))
    near_columns = pl.col("near_distinct", "near_duplicate_reward")
    return table.with_columns(pl.when("is_compared").then(near_columns))


def integrity_facts(table: pl.DataFrame, size: int | None) -> dict[str, Any]:
    """Return what ``integrity_of`` comes to; null where it is not known."""

    def total(values: pl.Expr) -> int | None:
        known = table.select(values).to_series().drop_nulls()
        return int(known.sum()) if len(known) or not table.height else None

    copies, compared = pl.col("texts") - pl.col("distinct"), pl.col("is_compared")
    has_texts = not table.height or table["texts"].null_count() < table.height
    return {
        "groups": table.height,
        "usual_size": size,
        "odd_size": int(table["odd_size"].sum()),
        "mixed_prompts": total(pl.col("prompts") > 1),
        "mixed_golds": total(pl.col("golds") > 1),
        "shared_prompt": total(pl.col("shared_prompt")),
        "texts": total(pl.col("texts")),
        "duplicates": total(copies),
        "near_duplicates": total(pl.col("texts") - pl.col("near_distinct")),
        "compared": total(compared) if has_texts else None,
    }
