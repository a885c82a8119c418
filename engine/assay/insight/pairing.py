"""Two results of the same rollouts as one frame: row by row, or joined on keys; what is not the same is refused."""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

import polars as pl

from assay.errors import InputError, UsageError, counted, listed, printable, quoted
from assay.expressions.shared_columns import exactly
from assay.frozen import frozen
from assay.insight.results import ROW, Result
from assay.names import COMPLETION, HIDDEN
from assay.scoring.score_columns import ScoreColumn
from assay.system.quantities import RowLimit

BEFORE, AFTER = HIDDEN + "before/", HIDDEN + "after/"
"""What the columns of each side begin with in the frame of a pairing."""

_OTHER_ROW = AFTER + ROW
_NAMING = ("rollout_id", "task_id", "example_id", "model", "step", "sample_idx")
_LONG = 60


@frozen(eq=False)
class Pairing:
    """Two results side by side, lazily: ``frame`` has ``ROW``, and the columns of each as ``BEFORE`` and ``AFTER`` and the name.

    Attributes:
        checks: The checks that both have, with their name and both columns.
        same: Columns of rollouts that must be equal, row by row.
        on: The keys that they are joined on; none if they are compared row by row.
        dropped: Rows of either that the other lacks.
    """

    before: Result
    after: Result
    frame: pl.LazyFrame
    rows: int
    checks: Sequence[tuple[str, ScoreColumn, ScoreColumn]] = ()
    only_before: Sequence[str] = ()
    only_after: Sequence[str] = ()
    same: Sequence[str] = ()
    on: tuple[str, ...] = ()
    dropped: int = 0

    @property
    def differs(self) -> dict[str, pl.Expr]:
        """Whether a column of the rollouts differs on a row, by its name."""
        differs = {}
        for name in self.same:
            sides = exactly(BEFORE + name), exactly(AFTER + name)
            is_same = self.before.schema[name] == self.after.schema[name]
            one, other = sides if is_same else (side.cast(pl.String) for side in sides)
            differs[name] = one.ne_missing(other)
        return differs

    def refuse(self, names: Sequence[str]) -> InputError:
        """Return the error for rollouts of which these columns are not the same, with the first row that differs."""
        differs = {name: self.differs[name] for name in names}
        sides = [exactly(side + name) for name in names for side in (BEFORE, AFTER)]
        first = self.frame.filter(reduce(or_, differs.values())).sort(ROW).head(1)
        first = first.select(ROW, *sides, *(expr.alias(name) for name, expr in differs.items()))
        row = self.before.collect(first).to_dicts()[0]
        name = next(name for name in names if row[name])
        there, here = (printable(_shown(row[side + name])) for side in (BEFORE, AFTER))
        fact = f"The rollouts are not the same: row {row[ROW]:,}: {printable(name)} is {there} there, {here} here."
        if self.on:
            return InputError(fact, "A diff compares two rewards of the same rollouts.")
        keys = [key for key in _NAMING if key in self.same]
        keys = keys[:1] if keys[:1] == ["rollout_id"] else keys
        hint = f"If only their order differs, name the columns that identify a rollout: --on {','.join(keys) or 'A,B'}"
        return InputError(fact, hint)

    def row_of_after(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """Add the row number in the second result, ``row_after``, to a frame of this pairing."""
        return frame.with_columns((pl.col(_OTHER_ROW) if self.on else pl.col(ROW)).alias("row_after"))


def _shown(value: Any) -> str:
    if not isinstance(value, str):
        return "null" if value is None else str(value)
    return value if value.isprintable() and value not in ("", "null") and len(value) < _LONG else quoted(value)


def changed(before: str, after: str) -> pl.Expr:
    """Return whether two columns of floats have not the same bits."""
    one, other = exactly(before), exactly(after)
    signs = (one == 0.0) & (other == 0.0) & ((1.0 / one) != (1.0 / other))
    return one.ne_missing(other) | signs.fill_null(value=False)


def paired(
    before: Result, after: Result, on: Sequence[str] = (), missing: int | str | None = None, *, are_same: bool = False
) -> Pairing:
    """Put two results side by side; an ``InputError`` if nothing says that the rollouts are the same, or a key does not tell rows.

    ``missing`` is how many rows either may lack, with ``on``; ``are_same`` that both are of the same rollouts, in the same order.
    """
    keys = tuple(dict.fromkeys(on))
    for result in (before, after):
        result.keys(keys, "--on")
    same = [name for name in before.passed_through if name in after.passed_through and not are_same]
    for name in (*same, *keys):
        one, other = before.schema[name], after.schema[name]
        if one != other and (one.is_nested() or other.is_nested()):
            fact = f"The rollouts are not the same: {printable(name)} has type {one} there, {other} here."
            raise InputError(fact, "A diff compares two rewards of the same rollouts.")
    if missing is not None and not keys:
        raise UsageError("--allow-missing: rows can only be missing where they are joined.", "Name the keys: --on A,B")
    sides = [
        result.frame.select(exactly(name).alias(prefix + name) for name in result.schema)
        for result, prefix in ((before, BEFORE), (after, AFTER))
    ]
    rows, dropped = before.rows, 0
    if keys:
        same = [name for name in same if name == COMPLETION and name not in keys]
        frame, rows, dropped = _joined(before, after, sides, keys, RowLimit("--allow-missing", missing))
    else:
        hashes = [[file.get("sha256") for file in one.provenance.get("inputs") or ()] for one in (before, after)]
        is_sealed = bool(hashes[0]) and None not in hashes[0] and hashes[0] == hashes[1]
        if not (same or are_same or is_sealed):
            lack = "have no column of the rollouts in common: nothing says that they are the same."
            hint = "Keep a column that tells a rollout (--keep), such as task_id."
            columns = listed(list(before.schema))
            raise InputError(f"{before.name} and {after.name} {lack}", f"{hint} Columns: {columns}")
        if rows != after.rows:
            fact = f"{before.name} has {counted(rows, 'row')}, {after.name} {after.rows:,}"
            hint = "Join them on the columns that identify a rollout: --on A,B --allow-missing L"
            raise InputError(f"{fact}: the rollouts are not the same.", hint)
        frame = pl.concat(sides, how="horizontal").with_row_index(ROW)
    alone = all(len({check.verifier for check in result.checks}) == 1 for result in (before, after))
    ours, theirs = (
        {("" if alone else check.verifier, check.id): check for check in result.checks} for result in (before, after)
    )
    both = [(check.name, ours[key], check) for key, check in theirs.items() if key in ours]
    only_before = [check.name for key, check in ours.items() if key not in theirs]
    only_after = [check.name for key, check in theirs.items() if key not in ours]
    return Pairing(before, after, frame, rows, both, only_before, only_after, same, keys, dropped)


def _joined(
    before: Result, after: Result, sides: Sequence[pl.LazyFrame], keys: Sequence[str], missing: RowLimit
) -> tuple[pl.LazyFrame, int, int]:
    option, counts = f"--on {','.join(keys)}", []
    for result in (before, after):
        columns = result.frame.select(map(exactly, keys))
        number = int(result.collect(columns.select(pl.any_horizontal(pl.all().is_null()).sum())).item())
        if number:
            fact = f"{result.name}: {option}: {counted(number, 'row')} without a key."
            raise InputError(fact, "Name columns without nulls.")
        twice = columns.group_by(list(keys)).len(name=ROW).filter(pl.col(ROW) > 1).sort(list(keys)).head(1)
        for *key, rows in result.collect(twice).rows():
            shown = ", ".join(f"{name} {_shown(value)}" for name, value in zip(keys, key, strict=True))
            fact = f"{result.name}: {option}: {printable(shown)} occurs {rows:,} times."
            raise InputError(fact, "Name columns that together identify a rollout.")
        counts.append(result.rows)
    ours, theirs = ([exactly(prefix + key) for key in keys] for prefix in (BEFORE, AFTER))
    if any(before.schema[key] != after.schema[key] for key in keys):
        ours, theirs = ([key.cast(pl.String) for key in side] for side in (ours, theirs))
    left, right = sides[0].with_row_index(ROW), sides[1].with_row_index(_OTHER_ROW)
    joined = left.join(right, left_on=ours, right_on=theirs, how="inner", coalesce=False)
    rows = int(before.collect(joined.select(pl.len())).item())
    dropped = sum(counts) - 2 * rows
    if dropped and (missing.given is None or missing.exceeded(dropped, max(counts))):
        only = f"{counts[0] - rows:,} only in {before.name}, {counts[1] - rows:,} only in {after.name}"
        fact = f"{option}: {counted(dropped, 'row')} on one side only: {only}."
        raise InputError(fact, f"Leave them out with --allow-missing {dropped}")
    return joined, rows, dropped
