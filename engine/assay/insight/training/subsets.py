"""Means over all subsets of ``k`` of a group's ``n`` rollouts, exact: no draws; by numbers, and for all groups of a frame."""

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import polars as pl

MOST_VOTES = 256
"""Most rows of a group whose majorities are counted: the work grows with the cube of the number."""

_Poly = list[list[int]]
"""Coefficients of y and, within, of x: how many subsets have so many leaders, and so many rows."""


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """Return the share of subsets with a passing row, ``1 - C(n-c, k) / C(n, k)``; None if there are no subsets.

    From Chen et al., Evaluating Large Language Models Trained on Code, 2021.
    """
    total = math.comb(n, k)
    return (total - math.comb(n - c, k)) / total if total else None


def pass_hat_k(n: int, c: int, k: int) -> float | None:
    """Return the share of subsets of passing rows only, ``C(c, k) / C(n, k)``; None if there are no subsets.

    From Yao et al., τ-bench, 2024.
    """
    total = math.comb(n, k)
    return math.comb(c, k) / total if total else None


def g_pass_at_k(n: int, c: int, k: int, threshold: float) -> float | None:
    """Return the share of subsets of which at least that share passes, and at least one row; None if there are no subsets.

    From Liu et al., Are Your LLMs Capable of Stable Reasoning?, 2024, as lighteval counts.
    """
    total, least = math.comb(n, k), max(1, math.ceil(k * threshold))
    ways = sum(math.comb(c, i) * math.comb(n - c, k - i) for i in range(least, min(c, k) + 1))
    return ways / total if total else None


def mg_pass_at_k(n: int, c: int, k: int) -> float | None:
    """Return twice the mean of G-Pass@k over the thresholds above one half, in steps of a row: mG-Pass@k; None if there are no subsets."""
    total = math.comb(n, k)
    numbers = range(k // 2 + 1, min(c, k) + 1)
    # each number of passing rows, as often as there are thresholds up to it
    steps = sum((i - math.ceil(k / 2)) * math.comb(c, i) * math.comb(n - c, k - i) for i in numbers)
    return 2 * steps / (k * total) if total else None


def best_weights(n: int, k: int) -> list[float]:
    """Return for each rank, ascending, the share of subsets whose greatest row has it: ``C(i-1, k-1) / C(n, k)``."""
    weights = [0.0] * n
    weight = k / n
    for i in range(n, k - 1, -1):
        weights[i - 1] = weight
        weight *= (i - k) / max(1, i - 1)
    return weights


@lru_cache(maxsize=100_000)
def leader_shares(counts: Sequence[int], n: int, k: int) -> dict[int, float]:
    """Return the average share of the lead in the subsets by an answer's number of votes; those with the most share it equally.

    ``counts`` says how many rows vote for each answer, sorted; the other rows abstain.
    """
    kinds = Counter(counts)
    scale = math.lcm(*range(1, k + 1))
    shares = dict.fromkeys(kinds, 0)
    for lead in range(1, min(k, max(kinds, default=0)) + 1):
        room = k - lead
        below = n - sum(votes * number for votes, number in kinds.items() if votes >= lead)
        begin = [[math.comb(below, rows) for rows in range(room + 1)]]
        rivals = {votes: number for votes, number in kinds.items() if votes >= lead}
        for votes in rivals:
            product: _Poly = begin
            for other, number in rivals.items():
                for _ in range(number - (other == votes)):
                    product = _with_rival(product, other, lead)
            ways = sum(row[room] * (scale // (ties + 1)) for ties, row in enumerate(product))
            shares[votes] += math.comb(votes, lead) * ways
    total = scale * math.comb(n, k)
    return {votes: share / total for votes, share in shares.items()}


def _with_rival(product: _Poly, votes: int, lead: int) -> _Poly:
    """Multiply by what an answer adds: fewer rows than the leader, or as many, which is a tie."""
    room = len(product[0])
    fewer = [math.comb(votes, rows) for rows in range(min(lead, room))]
    ties = math.comb(votes, lead)
    most = (room - 1) // lead + 1
    result = [[0] * room for _ in range(min(len(product) + 1, most))]
    for y, row in enumerate(product):
        for x, ways in enumerate(row):
            if not ways:
                continue
            for rows, choices in enumerate(fewer[: room - x]):
                result[y][x + rows] += ways * choices
            if y + 1 < len(result) and x + lead < room:
                result[y + 1][x + lead] += ways * ties
    return result


def passing(counts: pl.DataFrame, ks: Sequence[int], thresholds: Sequence[float] = ()) -> list[pl.Series]:
    """Return pass@k and pass^k, given the numbers of rows (``scored``) and of passing rows (``passed``).

    With thresholds also ``g-pass@k_threshold`` of each and ``mg-pass@k``.
    """
    pairs = list(counts.select("scored", "passed").iter_rows())
    kinds: list[tuple[str, str, Any]] = [("pass@", "", pass_at_k), ("pass^", "", pass_hat_k)]
    kinds += [("g-pass@", f"_{float(share)}", partial(g_pass_at_k, threshold=share)) for share in thresholds]
    kinds += [("mg-pass@", "", mg_pass_at_k)] if thresholds else []
    return [
        pl.Series(f"{name}{k}{end}", [function(n, c, k) for n, c in pairs], dtype=pl.Float64)
        for name, end, function in kinds
        for k in ks
    ]


def extremes(rewards: pl.Series, position: pl.Series, groups: pl.DataFrame, k: int) -> list[pl.Series]:
    """Return best@k and worst@k: the mean greatest and the mean least reward of the subsets of each group.

    The rewards come in order of the group and ascending, each with the ``position`` of its group in ``groups``.
    """
    if k == 1:
        return [groups["mean"].alias(f"{name}@1") for name in ("best", "worst")]
    sizes = groups["scored"].unique().sort()
    sizes = sizes.filter(sizes >= k)
    offsets = pl.DataFrame({"scored": sizes, "offset": sizes.cum_sum() - sizes})
    offset = groups.select("scored").join(offsets, on="scored", how="left", maintain_order="left")["offset"]
    shift = offset - (groups["scored"].cum_sum() - groups["scored"])
    place = pl.int_range(len(rewards), eager=True) + shift.gather(position)
    columns = []
    for name, step in (("best", 1), ("worst", -1)):
        weights = pl.Series([weight for n in sizes for weight in best_weights(n, k)[::step]], dtype=pl.Float64)
        terms = pl.DataFrame({"group": position, "term": rewards * weights.gather(place)})
        sums = terms.group_by("group", maintain_order=True).agg(pl.col("term").sum())["term"]
        value = pl.when(pl.col("flat")).then("min").otherwise(sums)
        columns.append(groups.select(pl.when(offset.is_not_null()).then(value).alias(f"{name}@{k}")).to_series())
    return columns


def majorities(votes: pl.DataFrame, group: str, groups: pl.DataFrame, ks: Sequence[int]) -> list[pl.Series]:
    """Return maj@k: the mean worth, in the subsets of each group, of the answer with the most votes; 0.0 where none votes.

    A vote that is null abstains; what an answer is worth is the share of the group's rows with it that ``passed``.
    """
    tallies = votes.filter(pl.col("vote").is_not_null()).group_by(group, "vote")
    answers = tallies.agg(pl.len().alias("votes"), pl.col("passed").mean().alias("worth")).sort(group, "votes", "worth")
    shapes = answers.group_by(group, maintain_order=True).agg(pl.col("votes").alias("shape"))
    shapes = groups.select(group, "scored").join(shapes, on=group)
    names = [f"maj@{k}" for k in ks]
    shares = []
    for n, shape in shapes.select("scored", "shape").unique(maintain_order=True).iter_rows():
        by_size = [leader_shares(tuple(shape), n, k) if k <= n else {} for k in ks]
        for count in dict.fromkeys(shape):
            leads = dict(zip(names, (leads.get(count) for leads in by_size), strict=True))
            shares.append({"scored": n, "shape": shape, "votes": count, **leads})
    schema: dict[str, Any] = {"scored": pl.Int64, "shape": shapes.schema["shape"], "votes": pl.UInt32}
    table = pl.DataFrame(shares, schema=schema | dict.fromkeys(names, pl.Float64))
    led = answers.join(shapes, on=group).join(table, on=["scored", "shape", "votes"]).sort(group, "votes", "worth")
    sums = led.group_by(group, maintain_order=True).agg((pl.col(name) * pl.col("worth")).sum() for name in names)
    together = groups.select(group, "scored").join(sums, on=group, how="left", maintain_order="left")
    enough = [pl.when(pl.col("scored") >= k).then(pl.col(f"maj@{k}").fill_null(0.0)) for k in ks]
    return together.select(enough).get_columns()
