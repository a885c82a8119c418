"""Metrics of verdicts, estimated from labels of a few rows of each cell, with 95 % intervals for these rows; and which cell to label next.

Each metric is a ratio of linear functions of the cells' shares of right rows. Its interval has the values θ for which
``numerator − θ·denominator``, which is linear too, may be 0: the limits of a sum of independent shares, made of the limits of each
(MOVER, Zou and Donner 2008), inverted. The limits of a share are Wilson's, with the correction at its ends by Brown, Cai and DasGupta
(2001), and of a number of labels that grows as fewer rows are left without.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

METRICS = ("precision", "recall", "f1", "kappa", "base_rate", "accuracy")

_Z = NormalDist().inv_cdf(0.975)
_NEAR_AN_END = (0.0, 0.051293294387550, 0.355361510698662, 0.817691447163953)
"""Lower limits at 95 % of a Poisson mean of which 1, 2 or 3 were counted."""
_HALVINGS = 60


class Cell(NamedTuple):
    """Rows of one stratum and one verdict, some of which have labels.

    Attributes:
        rows: How many there are, at least 1.
        passes: The verdict in question.
        labels: How many have a label.
        right: How many labels say that the row is right.
        share: The estimated share of right rows, if it is not ``right / labels``.
        gain: How many labels a label is worth, where another judge explains part of what differs.
    """

    rows: int
    passes: bool
    labels: int
    right: int
    share: float | None = None
    gain: float = 1.0

    @property
    def estimate(self) -> float:
        """The estimated share of right rows."""
        return self.right / self.labels if self.share is None else self.share

    def limits(self) -> tuple[float, float]:
        """Return the 95 % limits of the share of right rows, among the rows of the cell."""
        p, y, wrong = self.estimate, self.right, self.labels - self.right
        if self.labels == self.rows:
            return p, p
        m = self.gain * self.labels * (self.rows - 1) / (self.rows - self.labels)
        middle, half = p + _Z**2 / (2 * m), _Z * math.sqrt(p * (1 - p) / m + _Z**2 / (4 * m * m))
        low, high = ((middle + end) / (1 + _Z**2 / m) for end in (-half, half))
        if y < len(_NEAR_AN_END):
            low = min(p, _NEAR_AN_END[y] / m)
        if wrong < len(_NEAR_AN_END):
            high = max(p, 1 - _NEAR_AN_END[wrong] / m)
        return low, high


class Estimate(NamedTuple):
    """A metric with its 95 % interval; None where it is not defined."""

    estimate: float | None
    low: float | None
    high: float | None


class _Ratio(NamedTuple):
    """A ratio of linear functions of the shares of cells: the constants, and the factors of each cell."""

    over: float
    under: float
    factors: Sequence[tuple[float, float]]

    def at(self, theta: float) -> tuple[float, list[float]]:
        """Return the constant and the factors of ``numerator − theta·denominator``."""
        return self.over - theta * self.under, [over - theta * under for over, under in self.factors]

    def value(self, shares: Sequence[float]) -> float | None:
        """Return the ratio; None where its denominator is 0."""
        over, under = (
            constant + math.fsum(factor[side] * share for factor, share in zip(self.factors, shares, strict=True))
            for side, constant in enumerate((self.over, self.under))
        )
        return over / under if under else None


def _ratio(metric: str, cells: Sequence[Cell]) -> _Ratio:
    """Return a metric of A, the right rows that pass, and B, the right rows."""
    passing = sum(cell.rows for cell in cells if cell.passes)
    failing = sum(cell.rows for cell in cells if not cell.passes)
    n = passing + failing
    # the constants of numerator and denominator, and for each their factors of A and of B
    over, of_a, of_b, under, under_a, under_b = {
        "precision": (0, 1, 0, passing, 0, 0),
        "recall": (0, 1, 0, 0, 0, 1),
        "f1": (0, 2, 0, passing, 0, 1),
        "kappa": (0, 2 * n, -2 * passing, passing * n, 0, failing - passing),
        "base_rate": (0, 0, 1, n, 0, 0),
        "accuracy": (failing, 2, -1, n, 0, 0),
    }[metric]
    factors = [
        (cell.rows * (of_a * cell.passes + of_b), cell.rows * (under_a * cell.passes + under_b)) for cell in cells
    ]
    return _Ratio(over, under, factors)


def estimate(metric: str, cells: Sequence[Cell]) -> Estimate:
    """Return a metric with its interval; None where its denominator is 0, or a cell whose labels it takes has none."""
    ratio = _ratio(metric, cells)
    if any(not cell.labels and any(factors) for cell, factors in zip(cells, ratio.factors, strict=True)):
        return Estimate(None, None, None)
    shares = [cell.estimate if cell.labels else 0.0 for cell in cells]
    if (theta := ratio.value(shares)) is None:
        return Estimate(None, None, None)
    limits = [cell.limits() if cell.labels else (0.0, 0.0) for cell in cells]

    def is_inside(value: float) -> bool:
        constant, factors = ratio.at(value)
        total, below, above = constant, 0.0, 0.0
        for factor, share, (low, high) in zip(factors, shares, limits, strict=True):
            total += factor * share
            down, up = (share - low, high - share) if factor > 0 else (high - share, share - low)
            below, above = below + (factor * down) ** 2, above + (factor * up) ** 2
        return total - math.sqrt(below) <= 0 <= total + math.sqrt(above)

    def end(outside: float) -> float:
        if is_inside(outside):
            return outside
        inside = theta
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if is_inside(middle) else (inside, middle)
        return inside

    return Estimate(theta, end(-1.0 if metric == "kappa" else 0.0), end(1.0))


def allocate(metric: str, cells: Sequence[Cell], labels: int) -> list[int]:
    """Return the cells of the rows to label next, in order, so that the interval of a metric narrows most with each.

    Cells without a label come first. There are fewer than ``labels`` where no more rows are left.
    """
    ratio = _ratio(metric, cells)
    shares = [(cell.right + 0.5) / (cell.labels + 1) for cell in cells]
    _, factors = ratio.at(ratio.value(shares) or 0.0)
    weights = [factor**2 * share * (1 - share) for factor, share in zip(factors, shares, strict=True)]
    counts, order = [cell.labels for cell in cells], list[int]()

    def gain(at: int) -> float:
        n = counts[at]
        return weights[at] * (1 / n - 1 / (n + 1)) if n else math.inf

    while len(order) < labels and (left := [at for at, cell in enumerate(cells) if counts[at] < cell.rows]):
        order.append(max(left, key=gain))  # the first of several
        counts[order[-1]] += 1
    return order


def merged(cells: Sequence[Cell]) -> list[list[int]]:
    """Return which cells are one: those without labels join the largest of their verdict that has some, which is the first of them."""
    groups = []
    for passes in (True, False):
        own = [at for at, cell in enumerate(cells) if cell.passes is passes]
        without = [at for at in own if not cells[at].labels]
        largest = max(own, key=lambda at: (cells[at].labels > 0, cells[at].rows), default=0)
        groups += [[at] for at in own if cells[at].labels and at != largest]
        groups += [[largest, *(at for at in without if at != largest)]] if own else []
    return groups
