"""What the scores of a check come to: in all rows, beside the rest of the reward, and within groups; and pairs of checks.

Sums of squares take two passes, means first; what has one value only is found by its extremes, not by a deviation of 0.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from assay.insight.reports.columns import Columns, centred, deviations, mean_of, product
from assay.insight.stats import finite, ratio

MOST_PAIRED = 400
"""Most checks that are compared in pairs: those that fail most."""

FEW_ROWS, FEW_GROUPS, MANY_ROWS = 20, 20, 100
_SATURATED, _SEPARATES, _AGAINST = (0.01, 0.99), 0.01, -0.2
_NOTHING_LEFT = 1e-12
"""Share of a reward's variance below which what a check leaves of it is rounding."""

_SAME, _IMPLIED, _MOST_PAIRS = 0.95, 0.99, 20


def status_of(numbers: Mapping[str, Any]) -> str:
    """Return what to say of a check: the first that holds."""
    rows, pass_rate = numbers["rows"], numbers["pass_rate"]
    if rows < FEW_ROWS:
        return "few rows"
    if numbers["failures"] in (rows, 0):
        return "never passes" if numbers["failures"] else "never fails"
    if not _SATURATED[0] < pass_rate < _SATURATED[1]:
        return "saturated"
    separates, r = numbers["separates"], numbers["rest_correlation"]
    if separates is not None and numbers["groups"] >= FEW_GROUPS and separates < _SEPARATES:
        return "does not separate"
    return "against the rest" if rows >= MANY_ROWS and r is not None and r <= _AGAINST else "ok"


def numbers_of(scores: pl.Series, coefficient: float | None, columns: Columns) -> dict[str, Any]:
    """Return the numbers of a check."""
    present = scores.drop_nulls()
    rows = len(present)
    failures = int((present != 1.0).sum())
    numbers: dict[str, Any] = {"rows": rows, "mean": mean_of(present), "failures": failures}
    numbers["pass_rate"] = (rows - failures) / rows if rows else None
    sums = _sums(scores, present, columns)
    squares = sums.ss if sums.n == rows else _squares(present)
    numbers["variance"] = finite(squares / (rows - 1)) if rows > 1 else None
    numbers |= _beside_the_rest(sums, coefficient)
    return numbers | _within_groups(scores, squares, coefficient, columns)


def _squares(values: pl.Series) -> float:
    own = deviations(values)
    return product(own, own)


def _sums(scores: pl.Series, present: pl.Series, columns: Columns) -> "_Sums":
    if columns.scored < columns.rows or len(present) < columns.rows:
        both = pl.DataFrame({"s": scores, "r": columns.reward}).drop_nulls()
        s, r = deviations(both["s"]), deviations(both["r"])
        return _Sums(both.height, product(s, s), product(s, r), product(r, r))
    s = deviations(present)
    r, of_rewards = columns.reward_deviations
    return _Sums(len(present), product(s, s), product(s, r), of_rewards)


@dataclass(frozen=True)
class _Sums:
    """Sums of centred products of scores ``s`` and rewards ``r``."""

    n: int
    ss: float
    sr: float
    rr: float


def _correlation_with_rest(sums: _Sums, coefficient: float | None) -> float | None:
    if coefficient is None or sums.n < 3 or sums.ss <= 0:  # noqa: PLR2004
        return None
    rest = sums.rr - 2 * coefficient * sums.sr + coefficient * coefficient * sums.ss
    return ratio(sums.sr - coefficient * sums.ss, sums.ss, rest) if rest > _NOTHING_LEFT * sums.rr else None


def _beside_the_rest(sums: _Sums, coefficient: float | None) -> dict[str, Any]:
    share = None if coefficient is None or sums.rr <= 0 else finite(coefficient * sums.sr / sums.rr)
    return {"share_of_reward_variance": share, "rest_correlation": _correlation_with_rest(sums, coefficient)}


def _within_groups(scores: pl.Series, squares: float, coefficient: float | None, columns: Columns) -> dict[str, Any]:
    names = ("separates", "within_variance_share", "within_rest_correlation")
    if columns.in_groups is None:
        return {"groups": 0, **dict.fromkeys(names)}
    grouped = columns.in_groups
    s, group, position, reward = grouped.of(scores), grouped.group, grouped.position, grouped.reward
    r = grouped.centred_reward
    if s.null_count():
        here = s.is_not_null()
        s, group, reward, r = s.filter(here), group.filter(here), reward.filter(here), None
        position = group.rle_id()
    within, several, differing = centred(group, s, position)
    total, own = squares, product(within, within)
    if s is not scores:  # in another order, or fewer
        total = _squares(s)
    if r is None:
        here = reward.is_not_null()
        reward, group = reward.filter(here), group.filter(here)
        position = group.rle_id()
        within = centred(group, s.filter(here), position)[0]
        r = centred(group, reward, position)[0]
        own_here, of_rewards = product(within, within), product(r, r)
    else:
        own_here, of_rewards = own, grouped.reward_squares
    sums = _Sums(len(r), own_here, product(within, r), of_rewards)
    return {
        "groups": several,
        "separates": differing / several if several else None,
        "within_variance_share": finite(own / total) if several and total > 0 else None,
        "within_rest_correlation": _correlation_with_rest(sums, coefficient),
    }


@dataclass(frozen=True)
class Failures:
    """The rows that fail a check, and those that it has scored, as the bits of integers."""

    name: str
    failing: int
    scored: int | None


def failures_of(name: str, scores: pl.Series) -> Failures:
    """Return which rows fail a check."""
    scored = _bits(scores.is_not_null()) if scores.null_count() else None
    return Failures(name, _bits((scores != 1.0).fill_null(value=False)), scored)


def _bits(values: pl.Series) -> int:
    array = values.rechunk().to_arrow()
    bits: int = int.from_bytes(memoryview(array.buffers()[1]), "little") >> array.offset
    return bits & ((1 << len(values)) - 1)


def pairs_of(checks: Sequence[Failures], rows: int) -> list[dict[str, Any]]:
    """Return the pairs of checks whose failures hang together most, by the absolute value of phi."""
    able = [(check, check.failing.bit_count()) for check in checks]
    able = [(check, failures) for check, failures in able if failures]
    if len(able) > MOST_PAIRED:
        least = sorted((failures for _, failures in able), reverse=True)[MOST_PAIRED - 1]
        able = [(check, failures) for check, failures in able if failures >= least][:MOST_PAIRED]
    found: list[tuple[float, int, str, str, float, tuple[int, int, int, int]]] = []
    for at, (a, fails_a) in enumerate(able):
        for b, fails_b in able[at + 1 :]:
            counts = _counts(a, fails_a, b, fails_b, rows)
            if (phi := _phi(*counts)) is not None:
                found.append((-abs(phi), len(found), a.name, b.name, phi, counts))
    found.sort()
    return [_pair(a, b, phi, counts) for _, _, a, b, phi, counts in found[:_MOST_PAIRS]]


def _counts(a: Failures, fails_a: int, b: Failures, fails_b: int, rows: int) -> tuple[int, int, int, int]:
    both = (a.failing & b.failing).bit_count()
    only_a = (fails_a if b.scored is None else (a.failing & b.scored).bit_count()) - both
    only_b = (fails_b if a.scored is None else (b.failing & a.scored).bit_count()) - both
    scored = [check.scored for check in (a, b) if check.scored is not None]
    in_all = rows if not scored else (scored[0] & scored[-1]).bit_count()
    return both, only_a, only_b, in_all - both - only_a - only_b


def _phi(n11: int, n10: int, n01: int, n00: int) -> float | None:
    margins = (n11 + n10) * (n01 + n00) * (n11 + n01) * (n10 + n00)
    return (n11 * n00 - n10 * n01) / math.sqrt(margins) if margins else None


def _pair(a: str, b: str, phi: float, counts: tuple[int, int, int, int]) -> dict[str, Any]:
    n11, n10, n01, n00 = counts
    fails_a, fails_b, either = n11 + n10, n11 + n01, n11 + n10 + n01
    jaccard = n11 / either if either else None
    implies = bool(fails_a) and n11 / fails_a >= _IMPLIED, bool(fails_b) and n11 / fails_b >= _IMPLIED
    alike = phi >= _SAME or (jaccard is not None and jaccard >= _SAME)
    return {
        "a": a,
        "b": b,
        "n11": n11,
        "n10": n10,
        "n01": n01,
        "n00": n00,
        "phi": phi,
        "jaccard": jaccard,
        "redundant": alike and min(fails_a, fails_b) >= FEW_ROWS,
        "implied": any(implies),
        "a_implies_b": implies[0],
        "b_implies_a": implies[1],
    }
