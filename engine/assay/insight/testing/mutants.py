"""Mutants: changed verifiers, and whether the tests of a spec notice them."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import polars as pl

from assay.calls.limits import Limits
from assay.checks.base import is_builtin
from assay.compiling.columns import read_columns, reading_for
from assay.compiling.variants import Variants
from assay.compiling.verifiers import verifiers_of_run
from assay.errors import SpecError
from assay.expressions.mixed import untyped
from assay.expressions.shared_columns import exactly
from assay.insight.testing.assignments import Assignments
from assay.insight.testing.expectations import differing
from assay.insight.testing.operators import Change, changes_of
from assay.insight.testing.witnesses import witnesses_of
from assay.loading.formats.reading import batches
from assay.loading.rollouts import open_rollouts
from assay.names import COMPLETION, HIDDEN, LENGTH, NATIVE
from assay.options import ScoreOptions
from assay.scoring.in_memory import engine_errors, prepare
from assay.scoring.reference import score_row
from assay.spec.canonical import spec_of
from assay.spec.spec_tests import SpecTest
from assay.spec.verifier import VerifierSpec, verifier_in_footer

MOST = 500
"""Most mutants of a spec."""

_ROW = HIDDEN + "row"


@dataclass
class Mutant:
    """A changed verifier, and what is known of it.

    Attributes:
        killed_by: The tests that pass on the spec and fail here.
        rows: Rollouts that it scores otherwise, and the ``first`` of them.
        shown: The rollout with the shortest text of those that it scores otherwise, and the reward and verdict of the spec and of the
            mutant on it.
    """

    change: Change
    verifier: VerifierSpec
    killed_by: tuple[str, ...] = ()
    rows: int = 0
    first: int | None = None
    shown: tuple[Mapping[str, Any], tuple[Any, Any], tuple[Any, Any]] | None = None

    @property
    def outcome(self) -> str:
        """What is known of it, in a word."""
        if self.killed_by:
            return "killed"
        return "seen" if self.rows else "survives" if self.shown else "undecided"

    def as_json(self) -> dict[str, Any]:
        """Return plain data; where it shows, a test that would kill it, as the spec is now."""
        data: dict[str, Any] = {
            "check": self.change.check,
            "operator": self.change.operator,
            "change": self.change.change,
            "outcome": self.outcome,
            "killed_by": list(self.killed_by),
            "rows": self.rows,
            "first_row": self.first,
        }
        if self.shown is None or self.killed_by:
            return data | {"text": None, "before": None, "after": None, "case": None}
        row, before, after = self.shown
        verdict = {True: "pass", False: "fail", None: "unscored"}
        expect = verdict[before[1]] if before[1] is not after[1] else before[0]
        text = row.get(COMPLETION)
        text = text if isinstance(text, str | None) else json.dumps(text, ensure_ascii=False, default=str)
        case = {"given": json.loads(json.dumps(row, default=str)), "expect": expect}
        return data | {"text": text, "before": before[0], "after": after[0], "case": case}


def mutants_of(verifier: VerifierSpec, options: ScoreOptions, limits: Limits) -> tuple[list[Mutant], bool]:
    """Return the mutants of a verifier that are not equivalent to it, up to 500, and whether there may be more.

    One is equivalent if another one, or the verifier itself, has its canonical form; or if it puts the same scores together so that
    reward and verdict are the same for all scores that the checks may have.
    """
    form = spec_of(json.loads(verifier.canonical))
    readers = [reader.check for node in verifier.nodes for reader in node.readers if reader.check is not None]
    classes = dict.fromkeys([*options["checks"], *(type(check) for check in readers if not is_builtin(check))])
    own = tuple(
        kind for kind in classes if any(node.type in (kind.type, *kind.traits.aliases) for node in verifier.nodes)
    )
    known, assignments = {verifier.canonical}, Assignments(verifier)
    changes, mutants = [*changes_of(verifier, form)], dict[int, Mutant]()
    for at in range(len(changes)) if len(changes) <= MOST else _in_turns(changes):
        if len(mutants) == MOST:
            break
        change = changes[at]
        try:
            changed = verifier_in_footer(change.edited(), checks=own)
        except SpecError:
            continue  # no verifier at all
        if len(changed.unusable) > len(verifier.unusable) or changed.canonical in known:
            continue
        known.add(changed.canonical)
        if not (change.is_structural and assignments.are_same(changed)):
            (bounded,) = verifiers_of_run(changed, options, limits=limits)
            mutants[at] = Mutant(change, bounded)
    return [mutants[at] for at in sorted(mutants)], len(mutants) == MOST < len(changes)


def _in_turns(changes: Sequence[Change]) -> Iterator[int]:
    """Yield the places of changes, one of each check in turn."""
    by_check: dict[str, list[int]] = {}
    for at, change in enumerate(changes):
        by_check.setdefault(change.check, []).append(at)
    return (at for turn in zip_longest(*by_check.values()) for at in turn if at is not None)


def find_rows(verifier: VerifierSpec, mutants: Sequence[Mutant], rollouts: Any, options: ScoreOptions) -> None:
    """Find the rollouts that each mutant scores otherwise, reading them once."""
    opened = open_rollouts(rollouts, reading_for(options, (verifier,)))
    source, _ = prepare(opened, (verifier,), options)
    schema = source.frame.collect_schema()
    shortest: dict[int, tuple[int, Any]] = {}
    with engine_errors(source.files):
        variants, start = _variants(verifier, mutants, source.frame, options), 0
        for batch in batches(variants.table(source.frame), _BATCH):
            kinds = _kinds(batch)
            measures = kinds.select(_KINDS)
            ((_, before),) = variants.verdicts(kinds, [0])
            for number, after in variants.verdicts(kinds, range(1, len(mutants) + 1)):
                mutant, rows = mutants[number - 1], _differing(measures, before, after)
                if rows.height:
                    mutant.first = start + int(rows["first"].min()) if mutant.first is None else mutant.first  # type: ignore[arg-type]
                    mutant.rows += int(rows["rows"].sum())
                    row = rows.row(rows["shortest"].arg_min() or 0, named=True)
                    length, place = divmod(row["shortest"], _PLACES)
                    candidate = (length, (start + place, *_verdicts(row)))
                    shortest[number] = min(shortest.get(number, candidate), candidate, key=lambda pair: pair[0])
            start += batch.height
        names = [name for name in read_columns((verifier,), {*schema}) if name in schema]
        wanted = sorted({shown[0] for _, shown in shortest.values()})
        numbered = source.frame.select(map(exactly, names)).with_row_index(_ROW)
        chosen = numbered.filter(pl.col(_ROW).is_in(wanted)).collect()
    by_row = {row.pop(_ROW): {name: untyped(value) for name, value in row.items()} for row in chosen.to_dicts()}
    for number, (_, (row, own, other)) in shortest.items():
        mutants[number - 1].shown = (by_row[row], own, other)


_BATCH = 250_000
"""Rows that are compared together: each variant costs some milliseconds a time."""

_PLACES = 1 << 32
"""More than the rows of a batch."""


_KINDS = ("rows", "first", "shortest")


def _kinds(table: pl.DataFrame) -> pl.DataFrame:
    """Return the kinds of rows of a table of scores, equal in all but length: how many ``rows``, the ``first`` and the ``shortest``."""
    places = pl.col(LENGTH).fill_null(0).cast(pl.UInt64) * _PLACES + pl.col(_ROW)
    numbered = table.with_row_index(_ROW).with_columns(places.alias("shortest"))
    measures = (pl.len().alias("rows"), pl.col(_ROW).min().alias("first"), pl.col("shortest").min())
    return numbered.group_by(name for name in table.columns if name != LENGTH).agg(measures)


def rows_of(tests: Sequence[SpecTest]) -> list[dict[str, Any]]:
    """Return the rollouts of tests, each with the columns of all: null where it lacks one."""
    columns = dict.fromkeys(name for test in tests for name in test.given)
    return [{**columns, **test.given} for test in tests]


def try_tests(
    verifier: VerifierSpec,
    mutants: Sequence[Mutant],
    tests: Sequence[SpecTest],
    passing: Collection[str],
    options: ScoreOptions,
) -> None:
    """Find the tests that fail on each mutant, and for a mutant that nothing shows, a text near those of the tests that does.

    Args:
        verifier: The verifier that the mutants are made of.
        mutants: All its mutants, after ``find_rows``.
        tests: Its tests.
        passing: The names of the tests that pass; only these can fail on a mutant.
        options: How tests are scored.
    """
    rows = rows_of(tests)
    witnesses = [*rows, *witnesses_of(verifier, rows)]
    source = open_rollouts(witnesses, reading_for(options, (verifier,)))
    asked = {ident for test in tests for ident in test.expect.get("checks", ())}
    with engine_errors(source.files):
        variants = _variants(verifier, mutants, source.frame, options)
        table = variants.table(source.frame).collect()
        ((_, before),) = variants.verdicts(table, [0])
        lengths = table.select(pl.col(LENGTH).fill_null(0)).with_row_index(_ROW)
        for number, after in variants.verdicts(table, range(1, len(mutants) + 1), asked):
            mutant = mutants[number - 1]
            results = zip(tests, after.head(len(tests)).iter_rows(named=True), rows, strict=True)
            mutant.killed_by = tuple(
                test.name
                for test, result, row in results
                if test.name in passing and _fails(test, result, row, mutant.verifier, options)
            )
            if mutant.outcome == "undecided" and (found := _differing(lengths, before, after)).height:
                shortest = found.row(found[LENGTH].arg_min() or 0, named=True)
                mutant.shown = (witnesses[shortest[_ROW]], *_verdicts(shortest))


def _fails(
    test: SpecTest, result: Mapping[str, Any], row: Mapping[str, Any], verifier: VerifierSpec, options: ScoreOptions
) -> bool:
    scores = {name: test.expect[name] for name in ("reward", "passed", "checks") if name in test.expect}
    if differing(scores, result, verifier):
        return True
    if len(scores) == len(test.expect):
        return False
    # what a check says takes longer than what it scores, so only for tests that ask for it
    whole = score_row(row, [verifier], any_role=options["any_role"])
    return bool(differing(test.expect, whole, verifier))


def _variants(
    verifier: VerifierSpec, mutants: Sequence[Mutant], frame: pl.LazyFrame, options: ScoreOptions
) -> Variants:
    changed = (mutant.verifier for mutant in mutants)
    return Variants([verifier, *changed], frame.collect_schema(), any_role=options["any_role"])


def _differing(rows: pl.DataFrame, before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """Return the rows on which two verdicts differ, with both."""
    differs = before["reward"].ne_missing(after["reward"]) | before["passed"].ne_missing(after["passed"])
    sides = before.select("reward", "passed"), after.select(after="reward", after_passed="passed")
    return pl.concat([rows, *sides], how="horizontal").filter(differs)


def _verdicts(row: Mapping[str, Any]) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    return (row["reward"], row["passed"]), (row["after"], row["after_passed"])


def has_mutants(verifier: VerifierSpec) -> bool:
    """Return whether a verifier is a spec that can be changed: not a verifier class, which is Python."""
    return verifier.kind == NATIVE


def score_of(mutants: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the share of mutants that tests kill, of those that are known to differ; None if there is none."""
    counts = [sum(mutant["outcome"] == outcome for mutant in mutants) for outcome in ("killed", "seen", "survives")]
    return counts[0] / sum(counts) if sum(counts) else None
