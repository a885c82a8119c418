"""Two results of the same rollouts as one frame: row by row, or joined on keys; what is not the same is refused."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

import polars as pl

from assay.errors import InputError, UsageError, counted, listed, printable, quoted
from assay.expressions.lane import exactly
from assay.insight.results import ROW, Result, ScoreColumn
from assay.names import COMPLETION, HIDDEN
from assay.system.quantities import RowLimit

BEFORE, AFTER = HIDDEN + "before/", HIDDEN + "after/"
"""What the columns of each side begin with in the frame of a pairing."""

_OTHER_ROW = AFTER + ROW


@dataclass(frozen=True, eq=False)
class Pairing:
    """Two results side by side.

    Attributes:
        before: The first.
        after: The second.
        frame: The rows of both: ``ROW``, and their columns as ``BEFORE`` and ``AFTER`` and the name; lazily.
        checks: The checks that both have, with their name and both columns.
        only_before: Names of the checks that only the first has.
        only_after: Names of those that only the second has.
        same: Columns of rollouts that must be equal, row by row.
        on: The keys that they are joined on; none if they are compared row by row.
        rows: Number of rows.
        dropped: Rows of either that the other lacks.
    """

    before: Result
    after: Result
    frame: pl.LazyFrame
    checks: tuple[tuple[str, ScoreColumn, ScoreColumn], ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    same: tuple[str, ...]
    on: tuple[str, ...]
    rows: int
    dropped: int = 0

    @property
    def differs(self) -> dict[str, pl.Expr]:
        """Whether a column of the rollouts differs on a row, by its name."""
        types = ((name, self.before.schema[name], self.after.schema[name]) for name in self.same)
        return {name: _differs(name, is_same=one == other) for name, one, other in types}

    def refuse(self, names: Sequence[str]) -> InputError:
        """Return the error for rollouts that are not the same, with the first row that differs.

        Args:
            names: The columns that differ.
        """
        differs = {name: self.differs[name] for name in names}
        sides = [side + name for name in names for side in (BEFORE, AFTER)]
        differing = self.frame.filter(reduce(or_, differs.values()))
        first = differing.select(ROW, *map(exactly, sides), *(expr.alias(name) for name, expr in differs.items()))
        row = self.before.collect(first.sort(ROW).head(1)).to_dicts()[0]
        name = next(name for name in names if row[name])
        there, here = (printable(_shown(row[side + name])) for side in (BEFORE, AFTER))
        fact = f"The rollouts are not the same: row {row[ROW]:,}: {printable(name)} is {there} there, {here} here."
        if self.on:
            return InputError(fact, "A diff compares two rewards of the same rollouts.")
        return InputError(
            fact, f"If only their order differs, name the columns that tell a rollout: --on {_keys(self)}"
        )

    def row_of_after(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """Add the row number in the second result, ``row_after``, to a frame of this pairing."""
        return frame.with_columns((pl.col(_OTHER_ROW) if self.on else pl.col(ROW)).alias("row_after"))


def _keys(pairing: Pairing) -> str:
    names = ("rollout_id", "task_id", "example_id", "model", "step", "sample_idx")
    found = [name for name in names if name in pairing.same]
    return "rollout_id" if "rollout_id" in found else ",".join(found) or "A,B"


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else "null" if value is None else str(value)
    plain = isinstance(value, str) and text.isprintable() and text not in ("", "null") and len(text) < 60  # noqa: PLR2004
    return text if plain or not isinstance(value, str) else quoted(text)


def changed(before: str, after: str) -> pl.Expr:
    """Return whether two columns of floats have not the same bits."""
    one, other = exactly(before), exactly(after)
    signs = (one == 0.0) & (other == 0.0) & ((1.0 / one) != (1.0 / other))
    return one.ne_missing(other) | signs.fill_null(value=False)


def _differs(name: str, *, is_same: bool) -> pl.Expr:
    sides = (exactly(BEFORE + name), exactly(AFTER + name))
    one, other = sides if is_same else (side.cast(pl.String) for side in sides)
    return one.ne_missing(other)


def paired(
    before: Result,
    after: Result,
    on: Sequence[str] = (),
    missing: int | str | None = None,
    *,
    are_same: bool = False,
) -> Pairing:
    """Put two results side by side.

    Args:
        before: The first.
        after: The second.
        on: Columns that tell a rollout; none to compare row by row.
        missing: How many rows either may lack, with ``on``.
        are_same: Whether both are known to be of the same rollouts, in the same order.

    Raises:
        InputError: The number of rows differs, nothing says that the rollouts are the same, or a key is null, occurs twice or is
            missing on a side.
        UsageError: A key is not a column.
    """
    keys = _unique(on)
    for result in (before, after):
        result.keys(keys, "--on")
    common = tuple(name for name in before.passed_through if name in after.passed_through and not are_same)
    _comparable(before, after, (*common, *keys))
    checks, only_before, only_after = _checks(before, after)
    if missing is not None and not keys:
        raise UsageError("--allow-missing: rows can only be missing where they are joined.", "Name the keys: --on A,B")
    if keys:
        same = tuple(name for name in common if name == COMPLETION and name not in keys)
        frame, rows, dropped = _joined(before, after, keys, RowLimit("--allow-missing", missing))
    else:
        same, dropped = common, 0
        if not (common or are_same or _is_sealed_alike(before, after)):
            fact = f"{before.name} and {after.name} have no column of the rollouts in common: nothing says that they are the same."
            hint = (
                f"Keep a column that tells a rollout (--keep), such as task_id. Columns: {listed(list(before.schema))}"
            )
            raise InputError(fact, hint)
        frame, rows = _side_by_side(before, after)
    return Pairing(before, after, frame, checks, only_before, only_after, same, keys, rows, dropped)


def _unique(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _comparable(before: Result, after: Result, names: Sequence[str]) -> None:
    for name in names:
        one, other = before.schema[name], after.schema[name]
        if one != other and (one.is_nested() or other.is_nested()):
            fact = f"The rollouts are not the same: {printable(name)} has type {one} there, {other} here."
            raise InputError(fact, "A diff compares two rewards of the same rollouts.")


def _checks(
    before: Result, after: Result
) -> tuple[tuple[tuple[str, ScoreColumn, ScoreColumn], ...], tuple[str, ...], tuple[str, ...]]:
    alone = all(len({check.verifier for check in result.checks}) == 1 for result in (before, after))

    def by_key(result: Result) -> dict[tuple[str, str], ScoreColumn]:
        return {("" if alone else check.verifier, check.id): check for check in result.checks}

    ours, theirs = by_key(before), by_key(after)
    both = tuple((check.name, ours[key], check) for key, check in theirs.items() if key in ours)
    gone = tuple(check.name for key, check in ours.items() if key not in theirs)
    return both, gone, tuple(check.name for key, check in theirs.items() if key not in ours)


def _sides(before: Result, after: Result) -> Iterator[pl.LazyFrame]:
    for result, prefix in ((before, BEFORE), (after, AFTER)):
        yield result.frame.select(exactly(name).alias(prefix + name) for name in result.schema)


def _side_by_side(before: Result, after: Result) -> tuple[pl.LazyFrame, int]:
    rows, other = before.rows, after.rows
    if rows != other:
        fact = f"{before.name} has {counted(rows, 'row')}, {after.name} {other:,}: the rollouts are not the same."
        raise InputError(fact, "Join them on the columns that tell a rollout: --on A,B --allow-missing L")
    return pl.concat([*_sides(before, after)], how="horizontal").with_row_index(ROW), rows


def _is_sealed_alike(before: Result, after: Result) -> bool:
    """Whether both say the same hashes of their inputs."""
    ours, theirs = (
        [file.get("sha256") for file in result.provenance.get("inputs") or ()] for result in (before, after)
    )
    return bool(ours) and None not in ours and ours == theirs


def _joined(before: Result, after: Result, keys: Sequence[str], missing: RowLimit) -> tuple[pl.LazyFrame, int, int]:
    counts = []
    for result in (before, after):
        columns = result.frame.select(map(exactly, keys))
        nulls = pl.any_horizontal(exactly(key).is_null() for key in keys)
        number = int(result.collect(columns.select(nulls.sum())).item())
        if number:
            fact = f"{result.name}: --on {','.join(keys)}: {counted(number, 'row')} without a key."
            raise InputError(fact, "Name columns without nulls.")
        twice = columns.group_by(list(keys)).len(name=ROW).filter(pl.col(ROW) > 1).sort(list(keys)).head(1)
        for *key, rows in result.collect(twice).rows():
            shown = ", ".join(f"{name} {_shown(value)}" for name, value in zip(keys, key, strict=True))
            fact = f"{result.name}: --on {','.join(keys)}: {printable(shown)} occurs {rows:,} times."
            raise InputError(fact, "Name columns that together tell a rollout.")
        counts.append(result.rows)
    left, right = _sides(before, after)
    left, right = left.with_row_index(ROW), right.with_row_index(_OTHER_ROW)
    pairs = [(exactly(BEFORE + key), exactly(AFTER + key)) for key in keys]
    if any(before.schema[key] != after.schema[key] for key in keys):
        pairs = [(one.cast(pl.String), other.cast(pl.String)) for one, other in pairs]
    ours, theirs = [one for one, _ in pairs], [other for _, other in pairs]
    joined = left.join(right, left_on=ours, right_on=theirs, how="inner", coalesce=False)
    rows = int(before.collect(joined.select(pl.len())).item())
    dropped, larger = sum(counts) - 2 * rows, max(counts)
    if dropped and (missing.given is None or missing.exceeded(dropped, larger)):
        only = f"{counts[0] - rows:,} only in {before.name}, {counts[1] - rows:,} only in {after.name}"
        fact = f"--on {','.join(keys)}: {counted(dropped, 'row')} on one side only: {only}."
        raise InputError(fact, f"Leave them out with --allow-missing {dropped}")
    return joined, rows, dropped
