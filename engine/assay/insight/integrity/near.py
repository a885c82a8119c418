"""Texts of a group that are nearly the same: which pairs are compared, and which texts join an earlier one."""

import math
from collections.abc import Callable, Iterable, Iterator

import polars as pl

MOST_CHARACTERS, MOST_TEXTS = 4_096, 64
"""Code points of a text, and distinct texts of a group, that are compared."""

MOST_PAIRS = 2_000_000
"""Pairs of texts that are compared: about 6 s for texts of 400 code points, 30 s for those of 1,600."""

_PAIRS_AT_ONCE = 1 << 21
_OPEN = 1 << 28
"""Code points of texts that wait for the others of their group; beyond, they are read in several passes."""

Read = Callable[[pl.Series], Iterable[pl.DataFrame]]


def first_texts(texts: pl.DataFrame) -> pl.DataFrame:
    """Return the texts of each group that are compared, of its distinct ones in order of their rows."""
    return texts.filter(pl.int_range(pl.len()).over("group") < MOST_TEXTS)


def pairs_of(texts: pl.DataFrame, order: pl.Series, near: float) -> tuple[pl.DataFrame, pl.Series]:
    """Return the pairs of texts to compare, rows ``a`` and ``b`` of a ``group``, and the groups that are compared.

    Left out are pairs whose lengths, ``chars``, allow no similarity of ``near``; and once there are too many, all further groups.

    Args:
        texts: Distinct texts: ``group``, ``row``, ``chars``.
        order: The groups in the order in which they are compared.
        near: The least similarity.
    """
    sizes = pl.DataFrame({"group": order}).join(
        texts.group_by("group").len("n"), on="group", how="left", maintain_order="left"
    )
    n = pl.col("n").fill_null(0).cast(pl.Int64)
    part = (n * (n - 1) // 2).cum_sum() // _PAIRS_AT_ONCE
    found = [pl.DataFrame(schema=dict.fromkeys(("group", "a", "b"), pl.UInt32))]
    left, compared = MOST_PAIRS, 0
    for groups in sizes.select("group", part=part).partition_by("part", maintain_order=True, include_key=False):
        pairs = _similar_lengths(texts.join(groups, on="group", how="semi", maintain_order="left"), near)
        counts = groups.join(pairs.group_by("group").len("n"), on="group", how="left", maintain_order="left")
        used = counts["n"].fill_null(0).cast(pl.Int64).cum_sum()
        fits = int((used <= left).sum())
        chosen = groups.head(fits)
        found.append(pairs.join(chosen, on="group", how="semi"))
        compared += fits
        if fits < groups.height:
            break
        left -= used[-1]
    return pl.concat(found), order.head(compared)


def _similar_lengths(texts: pl.DataFrame, near: float) -> pl.DataFrame:
    a, b = (texts.select("group", pl.col("row").alias(side), pl.col("chars").alias(f"n{side}")) for side in "ab")
    na, nb = pl.col("na").cast(pl.Int64), pl.col("nb").cast(pl.Int64)
    at_most = 1 - (na - nb).abs() / (na + nb)  # distinct texts are not both empty
    return a.join(b, on="group").filter(pl.col("a") < pl.col("b"), at_most >= near).select("group", "a", "b")


def joined_rows(pairs: pl.DataFrame, texts: pl.DataFrame, near: float, read: Read) -> pl.Series:
    """Return the rows whose text is nearly that of an earlier one in its group, maybe by way of others.

    Args:
        pairs: As of ``pairs_of``.
        texts: As there.
        near: The least similarity.
        read: Return the texts of rows, ``row`` and ``text``, in batches in their order.
    """
    needed = texts.select("group", "row", "chars").join(
        pl.concat([pairs["a"], pairs["b"]]).unique().alias("row").to_frame(), on="row", how="semi"
    )
    last = needed.group_by("group").agg(first=pl.col("row").min(), last=pl.col("row").max())
    needed, pairs = (
        needed.join(last, on="group").sort("row"),
        pairs.join(last, on="group").sort("last", "group", "a", "b"),
    )
    joined: list[int] = []
    for part in _passes(needed):
        own = pairs.join(part, on="group", how="semi", maintain_order="left") if part.height < needed.height else pairs
        joined += _joined_in(own, part, near, read)
    return pl.Series(joined, dtype=pl.UInt32)


def _passes(needed: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield texts in parts of whole groups, so many at once as may wait for others of their group while they are read."""
    size = pl.col("chars").cast(pl.Int64)
    opened = needed.select("row", size)
    closed = needed.select(pl.col("last").alias("row"), -size)
    waiting = pl.concat([opened, closed]).group_by("row").sum().sort("row")["chars"].cum_sum()
    passes = math.ceil(int(waiting.max() or 0) / _OPEN)  # type: ignore[arg-type]
    if passes <= 1:
        yield needed
        return
    groups = needed.group_by("group").agg(size.sum(), pl.col("first").first()).sort("first", "group")
    groups = groups.select("group", part=pl.col("chars").cum_sum() // (groups["chars"].sum() // passes + 1))
    yield from needed.join(groups, on="group", maintain_order="left").partition_by(
        "part", maintain_order=True, include_key=False
    )


def _joined_in(pairs: pl.DataFrame, needed: pl.DataFrame, near: float, read: Read) -> Iterator[int]:
    """Yield ``joined_rows`` of one pass: a group is compared when its last text is read, and its texts are dropped."""
    waiting, done = pl.DataFrame(schema={"row": pl.UInt32, "last": pl.UInt32, "text": pl.String}), 0
    for batch in read(needed["row"]):
        own = batch.join(needed.select("row", "last"), on="row", maintain_order="left")
        waiting = pl.concat([waiting, own.select(waiting.columns)])
        row: int = batch["row"][-1]
        if (end := pairs["last"].search_sorted(row, side="right")) > done:
            is_whole = pl.col("last") <= row
            texts = dict(waiting.filter(is_whole).select("row", "text").iter_rows())
            yield from _joined(pairs.slice(done, end - done).select("a", "b"), texts, near)
            waiting, done = waiting.filter(is_whole.not_()), end


def _joined(pairs: pl.DataFrame, texts: dict[int, str], near: float) -> Iterator[int]:
    from rapidfuzz import distance

    above: dict[int, int] = {}
    # NOTE: a similarity that is just the cutoff of rapidfuzz, or little more, is told as 0.0
    cutoff = max(0.0, near - 1e-4)
    for a, b in pairs.iter_rows():
        one, other = _top(above, a), _top(above, b)
        if one != other and distance.Indel.normalized_similarity(texts[a], texts[b], score_cutoff=cutoff) >= near:
            above[max(one, other)] = min(one, other)
    yield from above


def _top(above: dict[int, int], row: int) -> int:
    while (higher := above.get(row, row)) != row:
        row = higher
    return row
