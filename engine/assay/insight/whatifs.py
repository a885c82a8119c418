"""Other weights, thresholds and required checks: rewards from the scores that a result holds, without its rollouts.

With nothing changed, every bit is that of the file, or the result is refused. How models rank is linear in the shares of the weights,
so that a shift which reverses two of them is found by solving, not by trying.
"""

import hashlib
import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import polars as pl

from assay.aggregating.aggregate import OVERFLOW, reward_steps, run_passes_expr, verifier_steps
from assay.aggregating.columns import UNSCORED, check_column, hidden, score_column
from assay.aggregating.pipeline import NO_CHECK, is_nullable, none_applies_expr
from assay.checks.base import Check, RunCheck
from assay.checks.registry import BUILTIN
from assay.errors import InputError, UsageError, counted, printable
from assay.expressions.lane import exactly
from assay.insight.diffing import Diff, changes
from assay.insight.pairing import AFTER, BEFORE, Pairing, changed
from assay.insight.results import ROW, Result, as_data, names_of, open_result
from assay.loading.formats.engine_source import batches
from assay.loading.formats.files import ENGINE_ERRORS
from assay.names import FUNCTION, HIDDEN, IN_PROCESS, NATIVE
from assay.options import DiffLimits
from assay.scoring.in_memory import engine_error
from assay.spec.canonical import spec_of
from assay.spec.check import CheckSpec
from assay.spec.verifier import Share, VerifierSpec, verifier_in_footer
from assay.system.signals import interruptible
from assay.system.spool import spool_file, spooling
from assay.thresholds import THRESHOLDS
from assay.writing.writers import open_writer

_OF_THE_VERIFIER = ("id", "name", "passThreshold", "combine", "range")
_OF_A_CHECK = ("id", "weight", "gate", "penalty", "required")
"""Fields of canonical forms that decide the reward, given the scores."""
_FACTORS = (0.0, 0.5, 2.0)
_ROUNDING = 1e-12
_SAMPLE, _SLICES = 1_000_000, 16
_MOST_MODELS = 50
_THEN, _NOW = HIDDEN + "then/", HIDDEN + "now/"


@dataclass(frozen=True, eq=False)
class WhatIf:
    """Rewards with other weights.

    Attributes:
        before: Of the stored rewards: ``rows``, ``scored``, ``mean_reward``, ``pass_rate``, ``weights``, ``required``,
            ``pass_threshold``.
        after: The same of the new ones.
        diff: What changes.
        sensitivity: For each check, with the new weights: its ``weight`` and ``mean``; by how much the mean reward rises for each point
            of weight (``slope``), the same in relation to both (``elasticity``), the mean reward ``mean_without`` it, and the
            ``pass_rate`` with 0, half and twice its weight. None where the reward is not linear in the weights.
        ranking: With ``rank``: how the models rank, and what reverses two of them: ``order``, ``tie_share`` (a single share of the
            weight at which two tie), ``least_mass`` (the least weight to move), ``pareto`` (the cheapest moves of one share).
            Else None.
        notes: What the user should know.
    """

    before: dict[str, Any]
    after: dict[str, Any]
    diff: Diff
    sensitivity: list[dict[str, Any]]
    ranking: dict[str, Any] | None
    notes: tuple[str, ...]

    def within(self, **limits: Unpack[DiffLimits]) -> "WhatIf":
        """Return the same with limits, as ``Diff.within``."""
        return replace(self, diff=self.diff.within(**limits))

    def as_json(self) -> dict[str, Any]:
        """Return JSON data."""
        own = {name: value for name, value in vars(self).items() if name != "diff"}
        return as_data({**own, "diff": self.diff.as_json()})


def whatif(
    result: Any,
    *,
    weights: Mapping[str, float] | None = None,
    required: Mapping[str, bool] | None = None,
    drop: Sequence[str] | str = (),
    pass_threshold: float | None = None,
    rank: str | None = None,
    by: Sequence[str] | str = ("model",),
    examples: int = 10,
    task: Sequence[str] | str = (),
) -> WhatIf:
    """Compute rewards with other weights, thresholds and required checks, from the scores that a result holds.

    Args:
        result: A parquet file of ``assay score``, or a folder of parts, with its check columns.
        weights: New weights by check; of a rubric, by member.
        required: Which checks a row has to pass, by check.
        drop: Checks to leave out: of weight 0, and not required.
        pass_threshold: Lowest reward, of each verifier or of the rubric, with which a row passes.
        rank: Column of the models to rank.
        by: As for ``diff``.
        examples: As for ``diff``.
        task: As for ``diff``.

    Returns:
        What would change.

    Raises:
        InputError: The result has no check columns, or does not say what made it.
        UsageError: There is no such check, or it has no weight.
        SpecError: A weight cannot be used.
    """
    change = _changed(result, weights, required, drop, pass_threshold)
    with spooling():
        return _looked_at(change, rank, names_of(by), names_of(task), examples)


# ── the change ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Stored(Check):
    """A check of which only the column of scores is known: every row has one, in [0, 1]."""

    type = "stored scores"


class _StoredAtTimes(_Stored, RunCheck):
    """The same of a check that gives some rows none, or one beyond [0, 1]."""

    type = "stored scores at times"
    bounded = False
    nullable = True


class _Change(NamedTuple):
    """A result, the verifiers that made it, and the changed ones with their canonical forms.

    Attributes:
        known_threshold: Whether the file says with which reward a row passes.
    """

    result: Result
    before: tuple[VerifierSpec, ...]
    after: tuple[VerifierSpec, ...]
    forms: tuple[dict[str, Any], ...]
    known_threshold: bool


def _changed(
    source: Any,
    weights: Mapping[str, float] | None,
    required: Mapping[str, bool] | None,
    drop: Sequence[str] | str,
    pass_threshold: float | None,
) -> _Change:
    if pass_threshold is not None and not math.isfinite(pass_threshold):
        raise UsageError(f"--threshold {pass_threshold}: expected a finite number.")
    result = open_result(source)
    if not result.checks:
        fact = f"{result.name}: has no columns of checks, from which other rewards could be made."
        raise InputError(fact, "Score the rollouts without --no-details, into parquet.")
    forms = result.forms
    if any(form["kind"] == IN_PROCESS for form in forms):
        raise InputError(f"{result.name}: its rows name their functions, which have no weights.")
    entries, ran = result.verifiers, [*map(_ran, result.verifiers)]
    is_rubric = any(entry.get("weight") is not None for entry in entries)
    shares = [float(entry["weight"]) if entry.get("weight") is not None else None for entry in entries]
    edits = _edits(result, _skipped(result, forms), weights or {}, required or {}, names_of(drop))
    new_forms, new_shares = [], list(shares)
    for at, form in enumerate(forms):
        own = {ident: edit for (verifier, ident), edit in edits.items() if verifier == form.get("id")}
        if form.get("kind") != NATIVE and (edit := own.get(str(form.get("id")))) is not None:
            new_shares[at] = _share(edit, shares[at], str(form.get("id")))
        new_forms.append(_edited(form, own, None if is_rubric else pass_threshold, ran[at]))
    threshold = 1.0 if pass_threshold is None or not is_rubric else pass_threshold
    sides = ((forms, shares, 1.0), (new_forms, new_shares, threshold))
    before, after = (
        tuple(_verifier(*fields, limit, result) for fields in zip(side_forms, side_shares, ran, strict=True))
        for side_forms, side_shares, limit in sides
    )
    if missing := sorted({*_leaves(before).values()} - {*result.schema}):
        raise InputError(f"{result.name}: has no column `{missing[0]}`.", "Score the rollouts without --no-details.")
    known = not (is_rubric and pass_threshold is not None)
    change = _Change(result, before, after, tuple(new_forms), known)
    _refuse_missing_scores(change)
    return change


def _ran(entry: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what the provenance says of the checks of a verifier that ran, by id: all except those of unknown type."""
    checks = entry.get("checks")
    listed = [dict(check) for check in checks if isinstance(check, Mapping)] if isinstance(checks, list) else []
    return {str(check.get("id")): check for check in listed}


class _Edit(NamedTuple):
    weight: float | None = None
    required: bool | None = None
    name: str = ""


def _edits(
    result: Result,
    skipped: Collection[str],
    weights: Mapping[str, float],
    required: Mapping[str, bool],
    drop: Sequence[str],
) -> dict[tuple[str, str], _Edit]:
    """Return the changes by verifier and check.

    Raises:
        UsageError: There is no such check, it did not run, it is in a group, or a weight is not a number.
    """
    edits: dict[tuple[str, str], _Edit] = {}

    def edit(name: str, **values: Any) -> None:
        if name in skipped:
            fact = f"{name}: did not run, for its type is unknown, so that its scores are not stored."
            raise UsageError(
                fact, "Score the rollouts again with the changed spec and its class: --checks module:Class"
            )
        check = result.check(name)
        if check.group:
            fact = f"{check.name}: is in the group `{check.group}`, whose score is stored."
            raise UsageError(fact, f"Change `{check.group}`, or score the rollouts again.")
        known = edits.get((check.verifier, check.id), _Edit(name=check.name))
        edits[check.verifier, check.id] = known._replace(**values)

    for name, weight in weights.items():
        if not (isinstance(weight, int | float) and math.isfinite(weight)):
            raise UsageError(f"--set {name}={weight}: expected a number.")
        edit(name, weight=weight + 0.0)  # -0.0 is 0.0
    for name, value in required.items():
        edit(name, required=value)
    for name in drop:
        edit(name, weight=0.0, required=False)
    return edits


def _skipped(result: Result, forms: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return what people call the checks that did not run."""
    ran = {name for check in result.checks for name in (check.name, check.id)}
    pairs = [(str(form.get("id")), str(check.get("id"))) for form in forms for check in form.get("checks", ())]
    return {name for verifier, check in pairs for name in (check, f"{verifier}/{check}")} - ran


def _refuse_missing_scores(change: _Change) -> None:
    """Refuse to count a check that did not count where that needs scores that are not stored: on rows to which no check applied.

    Raises:
        UsageError: There are such rows.
    """
    names = []
    for old, new, form in zip(change.before, change.after, change.forms, strict=True):
        counted_then = {spec.id for spec in old.counted}
        then = [check for check in form.get("checks", ()) if check.get("id") in counted_then]
        if not any(map(_applies_to_all, then)):  # else the rows are those of another verifier
            names += [spec.id for spec in new.counted if spec.id not in counted_then]
    if not names:
        return
    without = pl.col("reward").is_null() & (pl.col("error").cast(pl.String) == NO_CHECK)
    rows = change.result.numbered.filter(without).select(pl.col(ROW).min(), pl.len().alias("rows"))
    first, number = change.result.collect(rows).row(0)
    if number:
        others = f" and {number - 1:,} more" if number > 1 else ""
        fact = (
            f"{change.result.name}: no check applied to row {first}{others}, so that the score of `{names[0]}` there, "
            "which would count now, is not stored."
        )
        raise UsageError(fact, "Score the rollouts again with the changed spec: assay score ROLLOUTS --spec SPEC")


def _share(edit: _Edit, share: float | None, ident: str) -> float:
    if share is None:
        raise UsageError(f"{ident}: has no weight; it is a verifier, and the reward is the mean of verifiers.")
    if edit.required:
        raise UsageError(f"{ident}: a member of a rubric cannot be required.")
    return share if edit.weight is None else edit.weight


def _edited(
    form: Mapping[str, Any], edits: Mapping[str, _Edit], threshold: float | None, ran: Collection[str]
) -> dict[str, Any]:
    """Return a canonical form with other weights."""
    checks = []
    for check in form.get("checks", ()):
        edit, new = edits.get(str(check.get("id")), _Edit()), dict(check)
        if edit.weight is not None:
            if "gate" in check and edit.weight != 0:
                raise UsageError(f"{edit.name}: is a gate, which has no weight.", "Drop it, or change the spec.")
            if edit.weight < 0 and (form.get("combine") != "sum" or "penalty" in check):
                raise UsageError(f"--set {edit.name}={edit.weight:g}: the weight of a check is not negative.")
            new = {name: value for name, value in new.items() if name != "gate"} | {"weight": edit.weight}
            new |= {"penalty": edit.weight} if "penalty" in check else {}
        new |= {"required": edit.required} if edit.required is not None else {}
        checks.append(new)
    counting = [check for check in checks if check.get("weight") or {"gate", "penalty"} & {*check}]
    if edits and checks and not any(check.get("id") in ran for check in counting):
        raise UsageError(f"{printable(str(form.get('id')))}: no check has a weight left.", "Leave a weight above 0.")
    if threshold is not None and threshold < 0 and form.get("kind") != NATIVE:
        raise UsageError(f"--threshold {threshold:g}: no reward of {printable(str(form.get('id')))} is below 0.")
    own = {"checks": checks} if "checks" in form else {}
    return {**form, **own} | ({} if threshold is None else {"passThreshold": threshold + 0.0})


def _verifier(
    form: Mapping[str, Any], share: float | None, ran: Collection[str], threshold: float, result: Result
) -> VerifierSpec:
    """Return a verifier of which only the scores are known.

    Raises:
        SpecError: Its weights or thresholds cannot be used.
    """
    ident, kind = str(form.get("id")), str(form.get("kind"))
    own = None if share is None else Share(share, (), threshold)
    if kind != NATIVE:
        check = _StoredAtTimes() if kind == FUNCTION else _Stored()
        spec = CheckSpec(ident, kind, 1.0, required=False, negate=False, params=form.get("params"), check=check)
        limit = form.get("passThreshold")
        limit = float(limit) if isinstance(limit, int | float) else 1.0
        return VerifierSpec(ident, ident, limit, (spec,), kind=kind, share=own)
    checks = [
        {name: check[name] for name in _OF_A_CHECK if name in check}
        | {"type": (_Stored if _is_steady(check, f"check/{ident}/{check.get('id')}", result) else _StoredAtTimes).type}
        for check in spec_of(form)["checks"]
        if check["id"] in ran
    ]
    fields = {name: form[name] for name in _OF_THE_VERIFIER if name in form}
    loaded = verifier_in_footer({**fields, "checks": checks}, checks=(_Stored, _StoredAtTimes))
    return replace(loaded, share=own)


def _applies_to_all(check: Mapping[str, Any]) -> bool:
    """Return whether a check is known to give every row that can be scored a score in [0, 1]."""
    return "when" not in check and str(check.get("type")) in BUILTIN


def _is_steady(check: Mapping[str, Any], column: str, result: Result) -> bool:
    """Return whether a check gave every row that was scored a score in [0, 1]; of types that are not built in, the scores tell."""
    if _applies_to_all(check):
        return True
    if {"when", "checks"} & {*check} or column not in result.schema:
        return False
    odd = exactly(column).cast(pl.Float64).is_between(0.0, 1.0).not_().fill_null(pl.col("reward").is_not_null())
    return not result.collect(result.frame.select(odd.any())).item()


# ── rewards ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _leaves(verifiers: Sequence[VerifierSpec]) -> dict[str, str]:
    """Return the stored columns that rewards are made of, by the column that stands for them."""
    pairs = [(verifier, spec) for verifier in verifiers if verifier.kind == NATIVE for spec in verifier.runnable]
    columns = [check_column(verifier, spec) for verifier, spec in pairs]
    columns += [score_column(verifier) for verifier in verifiers if verifier.kind != NATIVE]
    return {hidden(column): column for column in columns}


def _stored(frame: pl.LazyFrame, leaves: Mapping[str, str]) -> pl.LazyFrame:
    """Return the rows with the scores that rewards are made of, and whether a row can be scored."""
    scores = [exactly(column).cast(pl.Float64).alias(name) for name, column in leaves.items()]
    unscored = pl.all_horizontal(pl.col(name).is_null() for name in leaves) & pl.col("reward").is_null()
    return frame.with_columns(scores).with_columns(pl.when(unscored).then(pl.lit("unscored")).alias(UNSCORED))


def _rewarded(frame: pl.LazyFrame, verifiers: Sequence[VerifierSpec], prefix: str) -> pl.LazyFrame:
    """Add ``reward``, ``passed`` and the scores of verifiers, under a prefix; a row to which no check applies loses its scores."""
    without = [none_applies_expr(verifier, _has_score) for verifier in verifiers]
    messages = [pl.when(none).then(pl.lit(NO_CHECK)) for none in without if none is not None]
    if messages:
        frame = frame.with_columns(pl.coalesce(UNSCORED, *messages).alias(UNSCORED))
        frame = frame.with_columns(
            pl.when(pl.col(UNSCORED).is_null()).then(pl.col(name)) for name in _leaves(verifiers)
        )
    made = [verifier_steps(verifier) for verifier in verifiers if verifier.kind == NATIVE]
    for at in range(max(map(len, made), default=0)):
        frame = frame.with_columns(steps[at] for steps in made if at < len(steps))
    for step in reward_steps(verifiers):
        frame = frame.with_columns(step)
    passed = pl.when(pl.col(UNSCORED).is_null()).then(run_passes_expr(verifiers))
    columns = [pl.col(hidden("reward")).alias(f"{prefix}reward"), passed.alias(f"{prefix}passed")]
    columns += [pl.col(hidden(score_column(one))).alias(prefix + score_column(one)) for one in verifiers]
    return frame.with_columns(columns)


def _has_score(verifier: VerifierSpec, spec: CheckSpec) -> pl.Expr | None:
    """Return whether a check applied to a row that was scored; None if it did to every one."""
    return pl.col(hidden(check_column(verifier, spec))).is_not_null() if is_nullable(spec.check) else None


def _new_rows(change: _Change) -> pl.LazyFrame:
    """Return the rows with the rewards as they are made again (``_THEN``) and the new ones (``_NOW``)."""
    frame = _stored(change.result.frame, _leaves(change.before))
    return _rewarded(_rewarded(frame, change.before, _THEN), change.after, _NOW)


def _differences(change: _Change) -> list[pl.Expr]:
    """Return whether the rewards, and who passes, are made from the scores as the footer says."""
    differs = [changed("reward", f"{_THEN}reward").alias("reward")]
    if change.known_threshold and "passed" in change.result.schema:
        passed = pl.col("passed").ne_missing(pl.col(f"{_THEN}passed")) & pl.col("reward").is_not_null()
        differs.append(passed.alias("passed"))
    return differs


def _refuse_other(change: _Change, differences: pl.LazyFrame) -> None:
    """Refuse a result whose rewards are not made from its scores.

    Raises:
        InputError: Bits differ.
    """
    row = change.result.collect(differences.select(pl.all().sum())).to_dicts()[0]
    for name, number in row.items():
        if number:
            fact = (
                f"{change.result.name}: on {counted(number, 'row')}, `{name}` is not what its scores and weights make."
            )
            raise InputError(fact, _OTHERWISE[name])


_OTHERWISE = {
    "reward": "The file was altered, or is of a rubric of rubrics: score the rollouts again.",
    "passed": "The file was altered, or its rubric has another threshold: name the new one with --threshold",
}


def _new_result(change: _Change, rows: pl.LazyFrame) -> Result:
    """Return the result as it would be."""
    made = ("reward", "passed", *map(score_column, change.after))
    of_verifiers = [f"info/{verifier.id}" for verifier in change.after]
    of_checks = [name for check in change.result.checks for name in (check.column, f"info/{check.verifier}/{check.id}")]
    scored = pl.col(UNSCORED).is_null()
    columns = []
    for name, dtype in change.result.schema.items():
        column = exactly(name)
        if name in made:
            column = pl.col(_NOW + name).cast(dtype).alias(name)
        elif name == "error":
            overflow = pl.when(scored & pl.col(f"{_NOW}reward").is_null()).then(pl.lit(OVERFLOW))
            none_applies = pl.when(pl.col(UNSCORED) == NO_CHECK).then(pl.lit(NO_CHECK))
            others = pl.when(column != OVERFLOW).then(column)
            column = pl.coalesce(none_applies, others, overflow).cast(dtype).alias(name)
        elif name in ("feedback", *of_checks, *of_verifiers):
            column = pl.when(scored).then(column)
        columns.append(column)
    return replace(change.result, frame=rows.select(columns))


def _refuse_other_feedback(change: _Change) -> None:
    """Refuse to write other weights of functions where they decide which rows get feedback.

    Raises:
        UsageError: The weight of a function changes its sign.
    """
    for old, new in zip(change.before, change.after, strict=True):
        if old.kind != FUNCTION or old.share is None or new.share is None:
            continue
        signs = [(share.weight > 0) - (share.weight < 0) for share in (old.share, new.share)]
        if signs[0] != signs[1]:
            fact = f"{old.id}: its weight goes from {old.share.weight:g} to {new.share.weight:g}, and its feedback depends on the sign."
            raise UsageError(fact, "Leave out --out, or score the rollouts again.")


def write_rewards(
    result: Any,
    out: str | Path,
    *,
    weights: Mapping[str, float] | None = None,
    required: Mapping[str, bool] | None = None,
    drop: Sequence[str] | str = (),
    pass_threshold: float | None = None,
    command: str = "assay.whatif",
) -> str:
    """Write the result that ``assay score`` would write with other weights.

    Args:
        result: As for ``whatif``.
        out: A ``.parquet`` path.
        weights: As for ``whatif``.
        required: As for ``whatif``.
        drop: As for ``whatif``.
        pass_threshold: As for ``whatif``.
        command: Command that the provenance records.

    Returns:
        The root of its content.

    Raises:
        UsageError: As for ``whatif``; or the weight of a rubric's function changes its sign, on which its feedback depends.
    """
    change = _changed(result, weights, required, drop, pass_threshold)
    _refuse_other_feedback(change)
    rows = _new_rows(change)
    _refuse_other(change, rows.select(_differences(change)))
    frame = _new_result(change, rows).frame
    root = ""
    try:
        with interruptible(), open_writer(out, frame.collect_schema()) as writer:
            if writer is not None:
                for batch in batches(frame, THRESHOLDS.batch):
                    writer.write(batch)
                root = writer.close(_provenance(change, command))
    except ENGINE_ERRORS as error:
        raise engine_error(error, change.result.files) from error
    return root


def _provenance(change: _Change, command: str) -> dict[str, Any]:
    """Return the provenance of the new result: that of the stored one with the changed verifiers."""
    old = change.result.provenance
    verifiers = []
    for entry, verifier, form in zip(change.result.verifiers, change.after, change.forms, strict=True):
        new = dict(entry) | ({} if verifier.share is None else {"weight": verifier.share.weight})
        if verifier.kind == NATIVE:
            ran = _ran(entry)
            new["checks"] = [ran[spec.id] | {"weight": spec.weight} for spec in verifier.runnable]
        canonical = json.dumps(form, sort_keys=True, separators=(",", ":"))
        verifiers.append(new | {"canonical": canonical, "sha256": hashlib.sha256(canonical.encode()).hexdigest()})
    content = old.get("content")
    root = content.get("root") if isinstance(content, dict) else None
    kept = {
        name: value for name, value in old.items() if name not in ("content", "shards", "columns", "manifest", "run")
    }
    return {**kept, "verifiers": verifiers, "command": command, "rows": change.result.rows, "derived_from": root}


# ── what changes ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _looked_at(change: _Change, rank: str | None, by: Sequence[str], task: Sequence[str], examples: int) -> WhatIf:
    result, made = change.result, _new_rows(change)
    after = _new_result(change, made)
    new = [pl.col(_NOW + name) for name in ("reward", "passed")]
    path = spool_file(result.name, ".arrow")
    differences = [expr.alias(_THEN + expr.meta.output_name()) for expr in _differences(change)]
    # made once: each number below is one more scan
    result.collect(made.select(*new, *differences).sink_ipc(path, lazy=True))
    spooled = pl.scan_ipc(path)
    _refuse_other(change, spooled.select(pl.col(f"^{_THEN}.*$").name.map(lambda name: name.removeprefix(_THEN))))
    rows = pl.concat([result.frame, spooled.select(new)], how="horizontal")
    sides = [exactly(name).alias(BEFORE + name) for name in result.schema]
    others = [expr.alias(AFTER + name) for expr, name in zip(new, ("reward", "passed"), strict=True)]
    frame = rows.select(*sides, *others).with_row_index(ROW)
    diff = changes(Pairing(result, after, frame, (), (), (), (), (), result.rows), by, task, examples)
    terms, notes = _terms(change.after), []
    if terms is None:
        notes.append("the reward is not linear in the weights (gates, penalties, conditions, limits): no slopes")
    patterns, sampled = _patterns(change)
    notes += ["the pass rates by factor are of a sample of 1,000,000 rows"] if sampled else []
    sensitivity = _sensitivity(change, terms, patterns)
    ranking = None
    if rank is not None:
        ranking, more = _ranking(change, terms, rank, rows)
        notes += more
    totals = [_totals(change.before, diff, "before", rows, result), _totals(change.after, diff, "after", rows, result)]
    return WhatIf(totals[0], totals[1], diff, sensitivity, ranking, (*notes, *diff.notes))


def _totals(
    verifiers: Sequence[VerifierSpec], diff: Diff, side: str, rows: pl.LazyFrame, result: Result
) -> dict[str, Any]:
    """Return the numbers of one side."""
    prefix = "" if side == "before" else _NOW
    bits = 61 - diff.rows.bit_length()
    reward, passed = (
        pl.col(f"{prefix}reward"),
        pl.col(f"{prefix}passed") if prefix or "passed" in result.schema else None,
    )
    whole = reward.floor()
    exprs = [reward.count().alias("scored"), whole.cast(pl.Int64, strict=False).sum().alias("whole")]
    exprs.append(((reward - whole) * 2.0**bits).cast(pl.Int64, strict=False).sum().alias("rest"))
    exprs += [] if passed is None else [passed.sum().alias("passed")]
    row = result.collect(rows.select(exprs)).to_dicts()[0]
    scored = row["scored"]
    weights, required = {}, []
    several = len(verifiers) > 1
    for verifier in verifiers:
        for spec in verifier.checks if verifier.kind == NATIVE else ():
            name = f"{verifier.id}/{spec.id}" if several else spec.id
            weights[name] = spec.weight
            required += [name] if spec.required else []
        if verifier.kind != NATIVE and verifier.share is not None:
            weights[verifier.id] = verifier.share.weight
    shares = [verifier.share for verifier in verifiers if verifier.share is not None]
    thresholds = {verifier.id: verifier.pass_threshold for verifier in verifiers}
    one = shares[0].pass_threshold if shares else next(iter(thresholds.values()))
    same = shares or len({*thresholds.values()}) == 1
    return {
        "rows": diff.rows,
        "scored": scored,
        "mean_reward": ((row["whole"] << bits) + row["rest"]) / (scored << bits) if scored else None,
        "pass_rate": row["passed"] / scored if scored and "passed" in row else None,
        "weights": weights,
        "required": required,
        "pass_threshold": one if same else thresholds,
    }


# ── sensitivity ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Term(NamedTuple):
    """A check that the reward is linear in.

    Attributes:
        name: What people call it.
        column: The stored column.
        block: Index of its verifier, whose weights add up to its share; of a rubric's member, its own.
        weight: Its weight.
        share: What the verifier's score counts in the reward.
        sums_up: Whether weights are shares of their sum, as in a mean.
    """

    name: str
    column: str
    block: int
    weight: float
    share: float
    sums_up: bool


def _terms(verifiers: Sequence[VerifierSpec]) -> list[_Term] | None:
    """Return what the reward is a linear combination of; None if it is not one."""
    if not all(verifier.is_plain for verifier in verifiers):
        return None
    terms, several = [], len(verifiers) > 1
    for at, verifier in enumerate(verifiers):
        share = 1 / len(verifiers) if verifier.share is None else verifier.share.weight
        if verifier.kind != NATIVE:
            weight = share if verifier.share is not None else 1.0
            terms.append(_Term(verifier.id, score_column(verifier), at, weight, share, sums_up=False))
            continue
        for spec in verifier.runnable:
            name = f"{verifier.id}/{spec.id}" if several else spec.id
            terms.append(_Term(name, check_column(verifier, spec), at, spec.weight, share, sums_up=True))
    return terms


def _coefficients(terms: Sequence[_Term]) -> list[float]:
    """Return what a point of each score adds to the reward."""
    totals: dict[int, float] = {}
    for term in terms:
        totals[term.block] = totals.get(term.block, 0.0) + term.weight
    return [
        (term.share * term.weight / totals[term.block] if totals[term.block] else 0.0) if term.sums_up else term.share
        for term in terms
    ]


def _patterns(change: _Change) -> tuple[pl.DataFrame, bool]:
    """Return the distinct combinations of scores and how many scored rows have each, and whether they are of a sample."""
    result, leaves = change.result, _leaves(change.before)
    names = list(leaves)
    frame = _stored(result.frame, leaves).filter(pl.col("reward").is_not_null()).select(names)
    sampled = False
    if result.rows > _SAMPLE:
        each = _SAMPLE // _SLICES
        starts = (result.rows * at // _SLICES for at in range(_SLICES))
        parts = [result.frame.slice(start, each) for start in starts]
        scored = (_stored(part, leaves).filter(pl.col("reward").is_not_null()).select(names) for part in parts)
        sample = pl.concat([result.collect(part) for part in scored])
        if sampled := sample.n_unique() > sample.height // 2:
            frame = sample.lazy()
    counts = result.collect(frame.group_by(names).len(name=ROW)) if names else pl.DataFrame()
    order = counts.sort(names, nulls_last=True).rechunk()
    return order, sampled


def _sensitivity(change: _Change, terms: Sequence[_Term] | None, patterns: pl.DataFrame) -> list[dict[str, Any]]:
    rows, means = patterns[ROW].cast(pl.Float64), {}
    for name, column in _leaves(change.before).items():
        both = pl.DataFrame({"s": patterns[name], "n": rows}).drop_nulls()
        total = float(both["n"].sum())
        means[column] = float((both["s"] * both["n"]).sum()) / total if total else None
    slopes = {} if terms is None else _slopes(terms, means)
    entries = []
    for at, verifier in enumerate(change.after):
        several = len(change.after) > 1
        if verifier.kind != NATIVE and verifier.share is None:
            continue
        specs = verifier.runnable if verifier.kind == NATIVE else (None,)
        for spec in specs:
            column = score_column(verifier) if spec is None else check_column(verifier, spec)
            plain = verifier.id if spec is None else spec.id
            name = f"{verifier.id}/{plain}" if several and spec is not None else plain
            weight = spec.weight if spec is not None else verifier.share.weight if verifier.share is not None else 1.0
            rates = {f"{factor:g}": _pass_rate(change, at, spec, factor, patterns) for factor in _FACTORS}
            numbers = slopes.get(column, dict.fromkeys(("slope", "elasticity", "mean_without")))
            entries.append({"check": name, "weight": weight, "mean": means[column], **numbers, "pass_rate": rates})
    return entries


def _slopes(terms: Sequence[_Term], means: Mapping[str, float | None]) -> dict[str, dict[str, float | None]]:
    known = [(term, mean) for term in terms if (mean := means[term.column]) is not None]
    if len(known) < len(terms):
        return {}
    blocks: dict[int, list[tuple[_Term, float]]] = {}
    for term, mean in known:
        blocks.setdefault(term.block, []).append((term, mean))
    reward = math.fsum(a * mean for a, (_, mean) in zip(_coefficients(terms), known, strict=True))
    slopes: dict[str, dict[str, float | None]] = {}
    for term, mean in known:
        block = blocks[term.block]
        total = math.fsum(one.weight for one, _ in block)
        without: float | None = reward - term.share * mean
        slope: float | None = mean
        if term.sums_up:
            own = math.fsum(one.weight * value for one, value in block) / total if total else 0.0
            rest = math.fsum(one.weight for one, _ in block if one is not term)
            others = math.fsum(one.weight * value for one, value in block if one is not term)
            slope = term.share * (mean - own) / total if total else None
            without = reward + term.share * (others / rest - own) if rest else None
        elasticity = term.weight * slope / reward if slope is not None and reward else None
        slopes[term.column] = {"slope": slope, "elasticity": elasticity, "mean_without": without}
    return slopes


def _pass_rate(change: _Change, at: int, spec: CheckSpec | None, factor: float, patterns: pl.DataFrame) -> float | None:
    """Return the share of scored rows that pass with a multiple of a weight; None where no check or no row is left."""
    verifier = change.after[at]
    if spec is None:
        assert verifier.share is not None  # noqa: S101  (others are left out)
        new = replace(verifier, share=replace(verifier.share, weight=verifier.share.weight * factor))
    else:
        scaled = tuple(replace(one, weight=one.weight * factor) if one is spec else one for one in verifier.checks)
        new = replace(verifier, checks=scaled)
        if not new.counted:
            return None
    verifiers = (*change.after[:at], new, *change.after[at + 1 :])
    frame = patterns.lazy().with_columns(pl.lit(None, dtype=pl.String).alias(UNSCORED))
    made = _rewarded(frame, verifiers, _NOW)
    made = made.filter(pl.col(f"{_NOW}reward").is_not_null())
    passing, scored = made.select(pl.col(ROW).filter(f"{_NOW}passed").sum(), scored=pl.col(ROW).sum()).collect().row(0)
    return passing / scored if scored else None


# ── ranking ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _ranking(
    change: _Change, terms: Sequence[_Term] | None, rank: str, rows: pl.LazyFrame
) -> tuple[dict[str, Any] | None, list[str]]:
    result = change.result
    result.keys([rank], "--rank")
    if terms is None or any(term.weight < 0 or term.share < 0 for term in terms):
        return None, ["models are not ranked: the reward is not a weighted mean of the checks"]
    bits = 61 - result.rows.bit_length()
    exprs = [pl.len().alias("rows")]
    for at, term in enumerate(terms):
        score = exactly(term.column).cast(pl.Float64)
        whole = score.floor() if not term.sums_up else pl.lit(0.0)  # the scores of a mean are in [0, 1]
        exprs.append(score.null_count().alias(f"null/{at}"))
        exprs.append(((score - whole) * 2.0**bits).cast(pl.Int64, strict=False).sum().alias(f"rest/{at}"))
        exprs += [] if term.sums_up else [whole.cast(pl.Int64, strict=False).sum().alias(f"whole/{at}")]
    scored = rows.filter(pl.col("reward").is_not_null() & exactly(rank).is_not_null())
    table = result.collect(scored.group_by(exactly(rank).cast(pl.String).alias(HIDDEN + "model")).agg(exprs))
    if any(table[f"null/{at}"].sum() for at, _ in enumerate(terms)):
        return None, ["models are not ranked: a check does not apply to all rows"]
    means = {
        row[HIDDEN + "model"]: [
            ((row.get(f"whole/{at}", 0) << bits) + row[f"rest/{at}"]) / (row["rows"] << bits)
            for at, _ in enumerate(terms)
        ]
        for row in table.iter_rows(named=True)
    }
    notes = []
    found = ranked(means, _blocks(terms), [term.name for term in terms])
    if len(means) > _MOST_MODELS:
        notes.append(f"{len(means):,} values of `{rank}`: what reverses them is told of the first {_MOST_MODELS}")
    return found, notes


def _blocks(terms: Sequence[_Term]) -> list[list[tuple[int, float]]]:
    """Return the shares that move against each other: those of each verifier, or of a rubric's members all together."""
    coefficients = _coefficients(terms)
    together = not all(term.sums_up for term in terms) or len({term.share for term in terms}) > 1
    blocks: dict[int, list[tuple[int, float]]] = {}
    for at, (term, coefficient) in enumerate(zip(terms, coefficients, strict=True)):
        blocks.setdefault(0 if together else term.block, []).append((at, coefficient))
    total = math.fsum(coefficients)
    return [[(at, share / total if total else 0.0) for at, share in block] for block in blocks.values()]


def ranked(
    means: Mapping[str, Sequence[float]], blocks: Sequence[Sequence[tuple[int, float]]], names: Sequence[str]
) -> dict[str, Any]:
    """Return how models rank, and what reverses two of them.

    Args:
        means: The mean scores of each model.
        blocks: Of each verifier, its checks and their shares of the reward; all shares add up to 1.
        names: Names of the checks.
    """
    shares = {at: share for block in blocks for at, share in block}
    totals = {model: math.fsum(share * scores[at] for at, share in shares.items()) for model, scores in means.items()}
    order = sorted(means, key=lambda model: (-totals[model], model.encode()))
    pairs = list(combinations(order[:_MOST_MODELS], 2))
    ties, masses, moves = [], [], []
    for above, below in pairs:
        gaps = {at: means[above][at] - means[below][at] for at in shares}
        masses.append({"above": above, "below": below, "mass": _least_mass(gaps, blocks)})
        for at, share, tie, cost in _single_moves(gaps, blocks):
            entry = {"check": names[at], "share": share, "tie": tie, "cost": cost}
            ties.append({"above": above, "below": below, **entry})
            if _ROUNDING < tie < 1 - _ROUNDING:  # beyond the ends there is nothing: a tie there reverses no pair
                moves.append((at, tie >= share, cost, entry, (above, below)))
    return {
        "order": [{"model": model, "mean": totals[model]} for model in order],
        "tie_share": ties,
        "least_mass": masses,
        "pareto": _front(moves),
    }


def _single_moves(
    gaps: Mapping[int, float], blocks: Sequence[Sequence[tuple[int, float]]]
) -> Iterator[tuple[int, float, float, float]]:
    """Yield each check whose share alone can make two models tie: the check, its share of the verifier, the tie, the distance."""
    whole = math.fsum(share * gaps[at] for block in blocks for at, share in block)
    for block in blocks:
        size = math.fsum(share for _, share in block)
        inside = math.fsum(share * gaps[at] for at, share in block)
        for at, given in block:
            share = given / size if size else 0.0
            if not size or share >= 1:
                continue
            others = (inside / size - share * gaps[at]) / (1 - share)
            constant = (whole - inside) / size  # what the other verifiers say
            if gaps[at] == others:
                continue
            tie = -(others + constant) / (gaps[at] - others)
            if 0 <= tie <= 1:
                yield at, share, tie + 0.0, abs(tie - share)


def _least_mass(gaps: Mapping[int, float], blocks: Sequence[Sequence[tuple[int, float]]]) -> float | None:
    """Return the least share of the weights to move until two models tie; None if no weights make them."""
    left = math.fsum(share * gaps[at] for block in blocks for at, share in block)
    if left <= 0:
        return 0.0
    gains = []
    for block in blocks:
        least = min(gaps[at] for at, _ in block)
        gains += [(gaps[at] - least, share) for at, share in block if gaps[at] > least]
    if min(gaps.values()) >= 0:
        return None
    mass = 0.0
    for gain, share in sorted(gains, key=lambda pair: -pair[0]):
        step = min(share, left / gain)
        mass, left = mass + step, left - step * gain
        if step < share or left <= 0:
            return mass
    return mass if left <= _ROUNDING else None


def _front(moves: Sequence[tuple[int, bool, float, dict[str, Any], tuple[str, str]]]) -> list[dict[str, Any]]:
    """Return the moves of one share that reverse more pairs than any cheaper one."""
    reached: dict[tuple[int, bool], int] = {}
    candidates = []
    for at, up, cost, entry, _ in sorted(moves, key=lambda move: move[2]):
        reached[at, up] = reached.get((at, up), 0) + 1
        move = {"check": entry["check"], "share": entry["share"], "to": entry["tie"], "cost": cost}
        candidates.append({**move, "reversed": reached[at, up]})
    front: list[dict[str, Any]] = []
    for move in sorted(candidates, key=lambda move: (move["cost"], -move["reversed"], move["check"].encode())):
        if not front or move["reversed"] > front[-1]["reversed"]:
            front.append(move)
    return front
