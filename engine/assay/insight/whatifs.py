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

from assay.aggregating.aggregate import RESULTS, reward_steps, run_passes_expr, verifier_steps
from assay.aggregating.columns import UNSCORED, check_column, error_column, hidden, score_column
from assay.aggregating.combining import OVERFLOW
from assay.aggregating.outcomes import outcome_of_row_expr
from assay.aggregating.pipeline import NO_CHECK, group_exprs, is_nullable, none_applies_expr
from assay.checks.base import Check, Traits
from assay.checks.groups import GROUPS, LengthScaled
from assay.checks.registry import BUILTIN
from assay.errors import AssayError, InputError, UsageError, counted, printable
from assay.expressions.shared_columns import exactly
from assay.insight.diffing import Diff, changes, charts_of
from assay.insight.documents import whatif_document
from assay.insight.pairing import AFTER, BEFORE, Pairing, changed
from assay.insight.results import ROW, Result, as_data, names_of, open_result
from assay.insight.stats import finite, fixed_mean, fixed_sums
from assay.loading.formats.reading import batches
from assay.names import CUT_OFF, FUNCTION, HIDDEN, IN_PROCESS, NATIVE
from assay.options import DiffLimits, WhatIfOptions, documented
from assay.scoring.in_memory import engine_errors
from assay.scoring.score_columns import ScoreColumn
from assay.spec.canonical import spec_of
from assay.spec.check import CheckSpec
from assay.spec.verifier import Share, VerifierSpec, verifier_in_footer
from assay.system.signals import interruptible
from assay.system.spool import spool_file, spooling
from assay.thresholds import THRESHOLDS
from assay.writing.documents import Document
from assay.writing.notebooks import Displayed
from assay.writing.numbers import number, percent
from assay.writing.writers import open_writer

# fields of canonical forms that decide the reward, given the scores
_OF_THE_VERIFIER = ("id", "name", "passThreshold", "combine", "range")
_OF_A_CHECK = ("id", "weight", "gate", "penalty", "required")
_NOT_OF_THE_NEW = ("content", "shards", "columns", "manifest", "run")
_FACTORS = (0.0, 0.5, 2.0)
_ROUNDING = 1e-12
_SAMPLE, _SLICES = 1_000_000, 16
_MOST_MODELS = 50
_THEN, _NOW = HIDDEN + "then/", HIDDEN + "now/"
_OTHERWISE = {
    "reward": "The file was altered, or is of a rubric of rubrics: score the rollouts again.",
    "passed": "The file was altered, or its rubric has another threshold: name the new one with --threshold",
}


@dataclass(frozen=True, eq=False, repr=False)
class WhatIf(Displayed):
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

    @property
    def headline(self) -> str:
        """Mean reward and pass rate, now and then."""
        return " · ".join(
            f"{name} mean reward {number(side['mean_reward'])}, pass rate {percent(side['pass_rate'])}"
            for name, side in (("now", self.before), ("then", self.after))
        )

    def _document(self) -> Document:
        return whatif_document(self.as_json())

    def _charts(self) -> list[str]:
        return charts_of(self.diff)

    def as_json(self) -> dict[str, Any]:
        """Return JSON data."""
        own = {name: value for name, value in vars(self).items() if name != "diff"}
        return as_data({**own, "diff": self.diff.as_json()})


@documented(WhatIfOptions)
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
        options: Those of ``assay.options.WhatIfOptions``, as the signature lists them.

    Returns:
        What would change.

    Raises:
        InputError: The result has no check columns, or does not say what made it.
        UsageError: There is no such check, or it has no weight.
        SpecError: A weight cannot be used.
    """
    change = _changed(result, weights, required, drop, pass_threshold)
    stored, made = change.result, _new_rows(change)
    with spooling():
        path = spool_file(stored.name, ".arrow")
        new = [pl.col(_NOW + name) for name in ("reward", "passed")]
        differences = [expr.alias(_THEN + name) for name, expr in _differences(change).items()]
        # made once: each number below is one more scan
        stored.collect(made.select(*new, *differences).sink_ipc(path, lazy=True))
        spooled = pl.scan_ipc(path)
        _refuse_other(change, spooled.select(pl.col(_THEN + name).alias(name) for name in _differences(change)))
        rows = pl.concat([stored.frame, spooled.select(new)], how="horizontal")
        sides = [exactly(name).alias(BEFORE + name) for name in stored.schema]
        sides += [pl.col(_NOW + name).alias(AFTER + name) for name in ("reward", "passed")]
        frame = rows.select(sides).with_row_index(ROW)
        pairing = Pairing(stored, _new_result(change, made), frame, stored.rows)
        diff = changes(pairing, names_of(by), names_of(task), examples)
        parts = _parts(change.after)
        is_linear = all(verifier.is_plain for verifier in change.after)
        notes = ["the reward is not linear in the weights (gates, penalties, conditions, limits): no slopes"]
        notes = [] if is_linear else notes
        patterns, is_sample = _patterns(change)
        notes += ["the pass rates by factor are of a sample of 1,000,000 rows"] if is_sample else []
        sensitivity = _sensitivity(change, parts, patterns, is_linear=is_linear)
        ranking = None
        if rank is not None:
            stored.keys([rank], "--rank")
            ranking, note = _ranking(stored, parts if is_linear else [], rank, rows)
            notes += [note] if note else []
        before = _totals(change.before, stored, rows, "")
        after = _totals(change.after, stored, rows, _NOW)
    return WhatIf(before, after, diff, sensitivity, ranking, (*notes, *diff.notes))


class _Stored(Check):
    """A check of which only the column of scores is known: every row has one, in [0, 1]."""

    type = "stored scores"


class _StoredAtTimes(_Stored):
    """The same of a check that gives some rows none, or one beyond [0, 1]."""

    type = "stored scores at times"
    traits = Traits(bounded=False, nullable=True)


class _Change(NamedTuple):
    """A result, the verifiers that made it, and the changed ones with their canonical forms.

    ``known_threshold`` says whether the file tells with which reward a row passes.
    """

    result: Result
    before: tuple[VerifierSpec, ...]
    after: tuple[VerifierSpec, ...]
    forms: tuple[dict[str, Any], ...]
    known_threshold: bool


class _Edit(NamedTuple):
    weight: float | None = None
    required: bool | None = None
    name: str = ""


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
    forms, entries = result.forms, result.verifiers
    if any(form["kind"] == IN_PROCESS for form in forms):
        raise InputError(f"{result.name}: its rows name their functions, which have no weights.")
    ran = [{str(check["id"]): dict(check) for check in entry.get("checks") or ()} for entry in entries]
    shares = [None if entry.get("weight") is None else float(entry["weight"]) for entry in entries]
    is_rubric = any(share is not None for share in shares)
    edits = _edits(result, forms, weights or {}, required or {}, names_of(drop))
    new_forms, new_shares = [], list(shares)
    for at, form in enumerate(forms):
        own = {ident: edit for (verifier, ident), edit in edits.items() if verifier == form.get("id")}
        if form.get("kind") != NATIVE and (edit := own.get(str(form.get("id")))) is not None:
            if shares[at] is None:
                fact = f"{form.get('id')}: has no weight; it is a verifier, and the reward is the mean of verifiers."
                raise UsageError(fact)
            if edit.required:
                raise UsageError(f"{form.get('id')}: a member of a rubric cannot be required.")
            new_shares[at] = shares[at] if edit.weight is None else edit.weight
        new_forms.append(_edited(form, own, None if is_rubric else pass_threshold, ran[at]))
    threshold = 1.0 if pass_threshold is None or not is_rubric else pass_threshold
    before = tuple(_verifier(*fields, 1.0, result) for fields in zip(forms, shares, ran, strict=True))
    after = tuple(_verifier(*fields, threshold, result) for fields in zip(new_forms, new_shares, ran, strict=True))
    if missing := sorted({part.column for part in _parts(before)} - {*result.schema}):
        raise InputError(f"{result.name}: has no column `{missing[0]}`.", "Score the rollouts without --no-details.")
    change = _Change(result, before, after, tuple(new_forms), not (is_rubric and pass_threshold is not None))
    _refuse_missing_scores(change)
    return change


def _edits(
    result: Result,
    forms: Sequence[Mapping[str, Any]],
    weights: Mapping[str, float],
    required: Mapping[str, bool],
    drop: Sequence[str],
) -> dict[tuple[str, str], _Edit]:
    for name, weight in weights.items():
        if not (isinstance(weight, int | float) and math.isfinite(weight)):
            raise UsageError(f"--set {name}={weight}: expected a number.")
    changed_fields: list[tuple[str, dict[str, Any]]] = [
        *((name, {"weight": weight + 0.0}) for name, weight in weights.items()),  # -0.0 is 0.0
        *((name, {"required": value}) for name, value in required.items()),
        *((name, {"weight": 0.0, "required": False}) for name in drop),
    ]
    pairs = [(str(form.get("id")), str(check.get("id"))) for form in forms for check in form.get("checks", ())]
    skipped = {name for verifier, check in pairs for name in (check, f"{verifier}/{check}")}
    skipped -= {name for check in result.checks for name in (check.name, check.id)}
    edits: dict[tuple[str, str], _Edit] = {}
    for name, fields in changed_fields:
        if name in skipped:
            fact = f"{name}: did not run, for its type is unknown, so that its scores are not stored."
            hint = "Score the rollouts again with the changed spec and its class: --checks module:Class"
            raise UsageError(fact, hint)
        check = result.check(name)
        if check.group:
            fact = f"{check.name}: is in the group `{check.group}`, whose score is stored."
            raise UsageError(fact, f"Change `{check.group}`, or score the rollouts again.")
        known = edits.get((check.verifier, check.id), _Edit(name=check.name))
        edits[check.verifier, check.id] = known._replace(**fields)
    return edits


def _edited(
    form: Mapping[str, Any], edits: Mapping[str, _Edit], threshold: float | None, ran: Collection[str]
) -> dict[str, Any]:
    """Return a canonical form with other weights."""
    ident, checks = printable(str(form.get("id"))), []
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
        raise UsageError(f"{ident}: no check has a weight left.", "Leave a weight above 0.")
    if threshold is not None and threshold < 0 and form.get("kind") != NATIVE:
        raise UsageError(f"--threshold {threshold:g}: no reward of {ident} is below 0.")
    own = {"checks": checks} if "checks" in form else {}
    return {**form, **own} | ({} if threshold is None else {"passThreshold": threshold + 0.0})


def _verifier(
    form: Mapping[str, Any], share: float | None, ran: Collection[str], threshold: float, result: Result
) -> VerifierSpec:
    ident, kind = str(form.get("id")), str(form.get("kind"))
    own = None if share is None else Share(share, (), threshold)
    if kind != NATIVE:
        check = _StoredAtTimes() if kind == FUNCTION else _Stored()
        spec = CheckSpec(ident, kind, 1.0, required=False, negate=False, params=form.get("params"), check=check)
        limit = form.get("passThreshold")
        limit = float(limit) if isinstance(limit, int | float) else 1.0
        return VerifierSpec(ident, ident, limit, (spec,), kind=kind, share=own)
    checks = []
    for check in spec_of(form)["checks"]:
        if check["id"] in ran:
            is_steady = _is_steady(check, f"check/{ident}/{check['id']}", result)
            fields = {name: check[name] for name in _OF_A_CHECK if name in check}
            checks.append(fields | {"type": (_Stored if is_steady else _StoredAtTimes).type})
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


def _refuse_missing_scores(change: _Change) -> None:
    """Refuse to count a check that did not count on rows to which no check applied: its scores there are not stored."""
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


class _Counted(NamedTuple):
    """A stored score that counts: of a check, or of a verifier without checks (``spec`` is None).

    The weights of the checks of a verifier, known by its index, are shares of their sum; its score counts ``share`` in the reward.
    """

    name: str
    column: str
    verifier: int
    spec: CheckSpec | None
    weight: float
    share: float


def _parts(verifiers: Sequence[VerifierSpec]) -> list[_Counted]:
    parts = []
    for at, verifier in enumerate(verifiers):
        share = 1 / len(verifiers) if verifier.share is None else verifier.share.weight
        if verifier.kind != NATIVE:
            weight = 1.0 if verifier.share is None else share
            parts.append(_Counted(verifier.id, score_column(verifier), at, None, weight, share))
            continue
        owner = f"{verifier.id}/" if len(verifiers) > 1 else ""
        parts += [
            _Counted(owner + spec.id, check_column(verifier, spec), at, spec, spec.weight, share)
            for spec in verifier.runnable
        ]
    return parts


def _with_scores(frame: pl.LazyFrame, parts: Sequence[_Counted]) -> pl.LazyFrame:
    """Add the scores that rewards are made of, and whether a row can be scored."""
    names = [hidden(part.column) for part in parts]
    scores = [exactly(part.column).cast(pl.Float64).alias(hidden(part.column)) for part in parts]
    unscored = pl.all_horizontal(pl.col(name).is_null() for name in names) & pl.col("reward").is_null()
    return frame.with_columns(scores).with_columns(pl.when(unscored).then(pl.lit("unscored")).alias(UNSCORED))


def _rewarded(frame: pl.LazyFrame, verifiers: Sequence[VerifierSpec], prefix: str) -> pl.LazyFrame:
    """Add ``reward``, ``passed`` and the scores of verifiers, under a prefix; a row to which no check applies loses its scores."""

    def has_score(verifier: VerifierSpec, spec: CheckSpec) -> pl.Expr | None:
        """Return whether a check applied to a row that was scored; None if it did to every one."""
        return pl.col(hidden(check_column(verifier, spec))).is_not_null() if is_nullable(spec.check) else None

    without = [none_applies_expr(verifier, has_score) for verifier in verifiers]
    messages = [pl.when(none).then(pl.lit(NO_CHECK)) for none in without if none is not None]
    if messages:
        scores = [hidden(part.column) for part in _parts(verifiers)]
        frame = frame.with_columns(pl.coalesce(UNSCORED, *messages).alias(UNSCORED))
        frame = frame.with_columns(pl.when(pl.col(UNSCORED).is_null()).then(pl.col(name)) for name in scores)
    made = [verifier_steps(verifier) for verifier in verifiers if verifier.kind == NATIVE]
    for at in range(max(map(len, made), default=0)):
        frame = frame.with_columns(steps[at] for steps in made if at < len(steps))
    for step in reward_steps(verifiers):
        frame = frame.with_columns(step)
    passed = pl.when(pl.col(UNSCORED).is_null()).then(run_passes_expr(verifiers))
    columns = [pl.col(hidden("reward")).alias(f"{prefix}reward"), passed.alias(f"{prefix}passed")]
    columns += [pl.col(hidden(score_column(one))).alias(prefix + score_column(one)) for one in verifiers]
    return frame.with_columns(columns)


def _new_rows(change: _Change) -> pl.LazyFrame:
    """Return the rows with the rewards as they are made again (``_THEN``) and the new ones (``_NOW``)."""
    frame = _with_scores(change.result.frame, _parts(change.before))
    return _rewarded(_rewarded(frame, change.before, _THEN), change.after, _NOW)


def _differences(change: _Change) -> dict[str, pl.Expr]:
    """Return whether the rewards, and who passes, are made from the scores as the footer says."""
    differs = {"reward": changed("reward", f"{_THEN}reward")}
    if change.known_threshold and "passed" in change.result.schema:
        other = pl.col("passed").ne_missing(pl.col(f"{_THEN}passed"))
        differs["passed"] = other & pl.col("reward").is_not_null()
    return differs


def _refuse_other(change: _Change, differences: pl.LazyFrame) -> None:
    """Refuse a result whose rewards are not made from its scores."""
    row = change.result.collect(differences.select(pl.all().sum())).to_dicts()[0]
    for name, different in row.items():
        if different:
            rows = counted(different, "row")
            fact = f"{change.result.name}: on {rows}, `{name}` is not what its scores and weights make."
            raise InputError(fact, _OTHERWISE[name])


def _new_result(change: _Change, rows: pl.LazyFrame) -> Result:
    made = ("reward", "passed", *map(score_column, change.after))
    of_scored = {"feedback", *(f"info/{verifier.id}" for verifier in change.after)}
    for check in change.result.checks:
        of_scored |= {check.column, f"info/{check.verifier}/{check.id}"}
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
        elif name in of_scored:
            column = pl.when(scored).then(column)
        columns.append(column)
    new = replace(change.result, frame=rows.select(columns))
    if not new.has_outcome:
        return new
    columns_read = {name: pl.col(name) for name in (*RESULTS, CUT_OFF) if name in new.schema}
    return replace(new, frame=new.frame.with_columns(outcome_of_row_expr(columns_read, new.labels)))


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
    """Write the result that ``assay score`` would write with other weights, and return the root of its content.

    Refused where the weight of a rubric's function changes its sign, for its feedback depends on that.
    """
    change = _changed(result, weights, required, drop, pass_threshold)
    for old, new in zip(change.before, change.after, strict=True):
        if old.kind == FUNCTION and old.share is not None and new.share is not None:
            then, now = old.share.weight, new.share.weight
            if (then > 0) - (then < 0) != (now > 0) - (now < 0):
                fact = f"{old.id}: its weight goes from {then:g} to {now:g}, and its feedback depends on the sign."
                raise UsageError(fact, "Leave out --out, or score the rollouts again.")
    rows = _new_rows(change)
    _refuse_other(change, rows.select(expr.alias(name) for name, expr in _differences(change).items()))
    frame, root = _new_result(change, rows).frame, ""
    with (
        engine_errors(change.result.files),
        interruptible(),
        open_writer(out, frame.collect_schema()) as writer,
    ):
        if writer is not None:
            for batch in batches(frame, THRESHOLDS.batch):
                writer.write(batch)
            root = writer.close(_provenance(change, command))
    return root


def rewards_with(result: Result, weights: Mapping[str, float], rows: pl.LazyFrame | None = None) -> pl.Series:
    """Return the rewards with other weights; of all rows, or of some, given as a frame of the result's columns."""
    change = _changed(result if rows is None else replace(result, frame=rows), weights, None, (), None)
    made = _new_rows(change)
    _refuse_other(change, made.select(expr.alias(name) for name, expr in _differences(change).items()))
    return change.result.collect(made.select(f"{_NOW}reward"))[f"{_NOW}reward"]


def losses(result: Result) -> dict[str, float]:
    """Return by how much the mean reward would rise if every row passed a check that runs on it, by the name of the check.

    Left out are checks whose scores do not tell, such as those of a group that counts lengths; all of them where the rewards are not
    made of the scores as the footer says.
    """
    try:
        change = _changed(result, None, None, (), None)
        groups = [_groups_of(form) for form in change.forms]
    except AssayError:
        return {}
    members = [check.column for check in result.checks if check.group]
    rows = _patterns(change, members)[0].lazy().with_columns(pl.lit(None, dtype=pl.String).alias(UNSCORED))
    mean, found = _mean_reward(rows, change.before), dict[str, float]()
    for check in result.checks:
        around = [(one, spec) for one in groups if one for spec in one.nodes if _holds(one, spec, check)]
        if check.group and check.group not in {spec.id for _, spec in around}:
            continue
        score = pl.col(hidden(check.column))
        passing = rows.with_columns(pl.when(score.is_not_null()).then(1.0).alias(hidden(check.column)))
        for verifier, spec in reversed(around):
            passing = _regrouped(passing, verifier, spec)
        if mean is not None and (other := _mean_reward(passing, change.before)) is not None:
            found[check.name] = other - mean
    return found


def _holds(verifier: VerifierSpec, spec: CheckSpec, check: ScoreColumn) -> bool:
    return verifier.id == check.verifier and bool(spec.parts) and check.id.startswith(f"{spec.id}.")


def _mean_reward(patterns: pl.LazyFrame, verifiers: Sequence[VerifierSpec]) -> float | None:
    reward, rows = pl.col(f"{_NOW}reward"), pl.col(ROW)
    made = _rewarded(patterns, verifiers, _NOW).filter(reward.is_not_null())
    mean = made.select((reward * rows).sum() / rows.sum()).collect().item()
    return None if mean is None else finite(mean)


_REGROUPED = {group.type for group in GROUPS} - {LengthScaled.type}
"""Groups whose score is made of those of their checks alone."""


def _groups_of(form: Mapping[str, Any]) -> VerifierSpec | None:
    """Return the groups of a verifier over stored scores; None if it has none."""

    def stored(check: Mapping[str, Any]) -> dict[str, Any]:
        if "checks" not in check or check["type"] not in _REGROUPED:
            return {"id": check["id"], "weight": check.get("weight", 1.0), "type": _StoredAtTimes.type}
        names = ("id", "type", "weight", "params", "negate", "threshold")
        own = {name: check[name] for name in names if name in check}
        return own | {"checks": [*map(stored, check["checks"])]}

    checks = [stored(check) | {"weight": 1.0} for check in spec_of(form)["checks"] if "checks" in check]
    return verifier_in_footer({"id": form["id"], "checks": checks}, checks=(_StoredAtTimes,)) if checks else None


def _regrouped(rows: pl.LazyFrame, verifier: VerifierSpec, spec: CheckSpec) -> pl.LazyFrame:
    """Make the score of a group anew from those of its checks, none of which has an error."""
    assert spec.group is not None  # noqa: S101  (only groups come here)
    no_error = pl.lit(None, dtype=pl.String)
    rows = rows.with_columns(no_error.alias(error_column(verifier, part)) for part in spec.runnable)
    for layer in group_exprs(verifier, spec, spec.group):
        rows = rows.with_columns(layer)
    return rows


def _provenance(change: _Change, command: str) -> dict[str, Any]:
    """Return the provenance of the new result: that of the stored one with the changed verifiers."""
    old, verifiers = change.result.provenance, []
    for entry, verifier, form in zip(change.result.verifiers, change.after, change.forms, strict=True):
        new = dict(entry) | ({} if verifier.share is None else {"weight": verifier.share.weight})
        if verifier.kind == NATIVE:
            ran = {check["id"]: dict(check) for check in entry.get("checks") or ()}
            new["checks"] = [ran[spec.id] | {"weight": spec.weight} for spec in verifier.runnable]
        canonical = json.dumps(form, sort_keys=True, separators=(",", ":"))
        verifiers.append(new | {"canonical": canonical, "sha256": hashlib.sha256(canonical.encode()).hexdigest()})
    root = (old.get("content") or {}).get("root")
    kept = {name: value for name, value in old.items() if name not in _NOT_OF_THE_NEW}
    return {**kept, "verifiers": verifiers, "command": command, "rows": change.result.rows, "derived_from": root}


def _totals(verifiers: Sequence[VerifierSpec], result: Result, rows: pl.LazyFrame, prefix: str) -> dict[str, Any]:
    bits = 61 - result.rows.bit_length()
    reward = pl.col(f"{prefix}reward")
    exprs = [reward.count().alias("scored"), *fixed_sums(reward, "reward", bits)]
    exprs += [pl.col(f"{prefix}passed").sum().alias("passed")] if prefix or "passed" in result.schema else []
    row = result.collect(rows.select(exprs)).to_dicts()[0]
    scored, weights, required = row["scored"], dict[str, float](), list[str]()
    for verifier in verifiers:
        owner = f"{verifier.id}/" if len(verifiers) > 1 else ""
        if verifier.kind == NATIVE:
            weights |= {owner + spec.id: spec.weight for spec in verifier.checks}
            required += [owner + spec.id for spec in verifier.checks if spec.required]
        elif verifier.share is not None:
            weights[verifier.id] = verifier.share.weight
    shares = [verifier.share.pass_threshold for verifier in verifiers if verifier.share is not None]
    thresholds = {verifier.id: verifier.pass_threshold for verifier in verifiers}
    distinct = {*(shares[:1] or thresholds.values())}
    return {
        "rows": result.rows,
        "scored": scored,
        "mean_reward": fixed_mean(row, "reward", bits, scored),
        "pass_rate": row["passed"] / scored if scored and "passed" in row else None,
        "weights": weights,
        "required": required,
        "pass_threshold": distinct.pop() if len(distinct) == 1 else thresholds,
    }


def _coefficients(parts: Sequence[_Counted]) -> list[float]:
    totals: dict[int, float] = {}
    for part in parts:
        totals[part.verifier] = totals.get(part.verifier, 0.0) + part.weight
    shares = [part.weight / totals[part.verifier] if totals[part.verifier] else 0.0 for part in parts]
    return [part.share if part.spec is None else part.share * share for part, share in zip(parts, shares, strict=True)]


def _patterns(change: _Change, columns: Sequence[str] = ()) -> tuple[pl.DataFrame, bool]:
    """Return the distinct combinations of scores and how many scored rows have each, and whether they are of a sample.

    ``columns`` are more scores to tell apart: those of the checks in groups.
    """
    result, parts, is_sample = change.result, _parts(change.before), False
    more = [exactly(column).cast(pl.Float64).alias(hidden(column)) for column in columns]
    names = [*(hidden(part.column) for part in parts), *map(hidden, columns)]

    def scored(rows: pl.LazyFrame) -> pl.LazyFrame:
        return _with_scores(rows, parts).with_columns(more).filter(pl.col("reward").is_not_null()).select(names)

    frame = scored(result.frame)
    if result.rows > _SAMPLE:
        starts = (result.rows * at // _SLICES for at in range(_SLICES))
        slices = [scored(result.frame.slice(start, _SAMPLE // _SLICES)) for start in starts]
        sample = pl.concat([result.collect(part) for part in slices])
        if is_sample := sample.n_unique() > sample.height // 2:
            frame = sample.lazy()
    counts = result.collect(frame.group_by(names).len(name=ROW)) if names else pl.DataFrame()
    return counts.sort(names, nulls_last=True).rechunk(), is_sample


def _sensitivity(
    change: _Change, parts: Sequence[_Counted], patterns: pl.DataFrame, *, is_linear: bool
) -> list[dict[str, Any]]:
    means: dict[str, float | None] = {}
    for part in parts:
        both = patterns.select(s=hidden(part.column), n=pl.col(ROW).cast(pl.Float64)).drop_nulls()
        total = float(both["n"].sum())
        means[part.column] = float((both["s"] * both["n"]).sum()) / total if total else None
    slopes = _slopes(parts, means) if is_linear else {}
    entries = []
    for part in parts:
        if part.spec is not None or change.after[part.verifier].share is not None:
            rates = {f"{factor:g}": _pass_rate(change, part, factor, patterns) for factor in _FACTORS}
            numbers = slopes.get(part.column, dict.fromkeys(("slope", "elasticity", "mean_without")))
            entry = {"check": part.name, "weight": part.weight, "mean": means[part.column]}
            entries.append({**entry, **numbers, "pass_rate": rates})
    return entries


def _slopes(parts: Sequence[_Counted], means: Mapping[str, float | None]) -> dict[str, dict[str, float | None]]:
    known = [(part, mean) for part in parts if (mean := means[part.column]) is not None]
    if len(known) < len(parts):
        return {}
    reward = math.fsum(a * mean for a, (_, mean) in zip(_coefficients(parts), known, strict=True))
    slopes: dict[str, dict[str, float | None]] = {}
    for part, mean in known:
        without: float | None = reward - part.share * mean
        slope: float | None = mean
        if part.spec is not None:
            block = [(other, value) for other, value in known if other.verifier == part.verifier]
            others = [(other.weight, value) for other, value in block if other is not part]
            total, rest = math.fsum(other.weight for other, _ in block), math.fsum(weight for weight, _ in others)
            own = math.fsum(other.weight * value for other, value in block) / total if total else 0.0
            without = math.fsum(weight * value for weight, value in others)
            without = reward + part.share * (without / rest - own) if rest else None
            slope = part.share * (mean - own) / total if total else None
        elasticity = part.weight * slope / reward if slope is not None and reward else None
        slopes[part.column] = {"slope": slope, "elasticity": elasticity, "mean_without": without}
    return slopes


def _pass_rate(change: _Change, part: _Counted, factor: float, patterns: pl.DataFrame) -> float | None:
    """Return the share of scored rows that pass with a multiple of a weight; None where no check or no row is left."""
    verifiers = list(change.after)
    verifier = verifiers[part.verifier]
    if part.spec is None:
        assert verifier.share is not None  # noqa: S101  (others are left out)
        new = replace(verifier, share=replace(verifier.share, weight=part.weight * factor))
    else:
        scaled = replace(part.spec, weight=part.weight * factor)
        new = replace(verifier, checks=tuple(scaled if spec is part.spec else spec for spec in verifier.checks))
        if not new.counted:
            return None
    verifiers[part.verifier] = new
    frame = patterns.lazy().with_columns(pl.lit(None, dtype=pl.String).alias(UNSCORED))
    made = _rewarded(frame, verifiers, _NOW).filter(pl.col(f"{_NOW}reward").is_not_null())
    passing, scored = made.select(pl.col(ROW).filter(f"{_NOW}passed").sum(), scored=pl.col(ROW).sum()).collect().row(0)
    return passing / scored if scored else None


def _ranking(
    result: Result, parts: Sequence[_Counted], rank: str, rows: pl.LazyFrame
) -> tuple[dict[str, Any] | None, str]:
    """Return the ranking and a note; no parts if the reward is not linear in them."""
    if not parts or any(part.weight < 0 or part.share < 0 for part in parts):
        return None, "models are not ranked: the reward is not a weighted mean of the checks"
    bits, exprs = 61 - result.rows.bit_length(), [pl.len().alias("rows")]
    for part in parts:
        score = exactly(part.column).cast(pl.Float64)
        exprs += [score.null_count().alias(f"{part.column}/null"), *fixed_sums(score, part.column, bits)]
    scored = rows.filter(pl.col("reward").is_not_null() & exactly(rank).is_not_null())
    table = result.collect(scored.group_by(exactly(rank).cast(pl.String).alias(HIDDEN + "model")).agg(exprs))
    if any(table[f"{part.column}/null"].sum() for part in parts):
        return None, "models are not ranked: a check does not apply to all rows"
    means = {
        row[HIDDEN + "model"]: [fixed_mean(row, part.column, bits, row["rows"]) or 0.0 for part in parts]
        for row in table.iter_rows(named=True)
    }
    coefficients = _coefficients(parts)
    total = math.fsum(coefficients)
    # the shares that move against each other: those of each verifier, or of a rubric's members all together
    together = not all(part.spec for part in parts) or len({part.share for part in parts}) > 1
    blocks: dict[int, list[tuple[int, float]]] = {}
    for at, (part, coefficient) in enumerate(zip(parts, coefficients, strict=True)):
        block = blocks.setdefault(0 if together else part.verifier, [])
        block.append((at, coefficient / total if total else 0.0))
    note = f"{len(means):,} values of `{rank}`: what reverses them is told of the first {_MOST_MODELS}"
    ranking = ranked(means, [*blocks.values()], [part.name for part in parts])
    return ranking, note if len(means) > _MOST_MODELS else ""


def ranked(
    means: Mapping[str, Sequence[float]], blocks: Sequence[Sequence[tuple[int, float]]], names: Sequence[str]
) -> dict[str, Any]:
    """Return how models rank by their mean scores, and what reverses two of them.

    ``blocks`` has the checks of each verifier and their shares of the reward; all shares add up to 1.
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
