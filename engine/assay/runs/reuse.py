"""Scores of an earlier result in place of checks that have not changed, so that only the others run.

A check is taken from there whole or not at all: where its scores could be other ones now, it runs again. What is there of a check is its
column of scores, and its lines in the feedback.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from assay.aggregating.aggregate import label_of
from assay.aggregating.pipeline import NO_CHECK, columns_of, one_reason, unscored_exprs
from assay.checks.base import RowAwareCheck, deciding_code, is_ours
from assay.checks.graders.provenance import changed_graders
from assay.checks.libraries import changed_versions
from assay.checks.stand_ins import EARLIER, Stored
from assay.compiling.plan import Plan, no_task_expr
from assay.errors import AssayError, InputError, UsageError, counted, printable, shown_path
from assay.expressions.completion import NO_ASSISTANT, NULL_COMPLETION
from assay.expressions.shared_columns import exactly
from assay.frozen import frozen
from assay.functions.users_code import code_of
from assay.loading.rollouts import Rollouts
from assay.names import IN_PROCESS, NATIVE
from assay.runs.file_run import FileRun, is_folder
from assay.runs.manifest import differing_items, short_json
from assay.spec.canonical import fingerprint, forms_of, spec_of
from assay.spec.check import CheckSpec
from assay.spec.verifier import verifier_in_footer
from assay.writing.footers import read_provenance, result_files, scan_files
from assay.writing.provenance import is_sealed, provenance_of, task_files_of
from assay.writing.seals import seal_of

_NOT_OF_THE_SCORES = ("part_bytes", "outcome")
_FEEDBACK = "feedback"


class _EarlierCheck(NamedTuple):
    """A check of the earlier result."""

    verifier: str
    form: Mapping[str, Any]
    label: str

    @property
    def name(self) -> str:
        return f"check/{self.verifier}/{self.form.get('id')}"


def reusing(source: Rollouts, plan: Plan, run: FileRun) -> tuple[Rollouts, Plan, dict[str, Any]]:
    """Replace the checks of a plan whose scores an earlier result has.

    Return the rollouts with the columns of that result beside them, the plan that reads them, and what the footer says of it.
    """
    given = run.options["reuse"]
    if not isinstance(given, str | Path):
        raise UsageError(f"reuse: expected the path of a result, not {type(given).__name__}.")
    if is_folder(run.out):
        raise UsageError("--reuse writes one file.", "Name one: --out NAME.parquet")
    earlier = _Earlier.open(Path(given))
    notes = _same_rollouts(earlier, source, run)
    reason = _of_another_run(earlier.provenance, run)
    columns = {} if reason else _reusable(earlier, plan, run)
    pairs = [(verifier, spec) for verifier in plan.verifiers for spec in verifier.checks if spec.check is not None]
    taken = {key: column for key, column in columns.items() if isinstance(column, _EarlierCheck)}
    why = {key: reason or columns.get(key, "") for key in ((verifier.id, spec.id) for verifier, spec in pairs)}
    notes += _notes(earlier, plan, why, taken)
    if not taken:
        return replace(source, notes=(*source.notes, *notes)), plan, {}
    evaluated = tuple(
        replace(verifier, checks=tuple(_stored(spec, taken.get((verifier.id, spec.id))) for spec in verifier.checks))
        for verifier in plan.verifiers
    )
    stored = [spec.check for verifier in evaluated for spec in verifier.checks if isinstance(spec.check, Stored)]
    read = [check.column.removeprefix(EARLIER) for check in stored]
    read += [_FEEDBACK] if any(check.constant_reason is None for check in stored) else []
    step = partial(_beside, files=earlier.files, names=tuple(dict.fromkeys(read)), limit=run.options["limit"])
    source = source.then(step, *notes)
    schema = tuple(source.frame.collect_schema().items())
    several = len(plan.verifiers) > 1
    names = [
        label_of(verifier.id, verifier.kind, spec.id, several=several).removesuffix(": ")
        for verifier, spec in pairs
        if (verifier.id, spec.id) in taken
    ]
    plan = replace(plan, schema=schema, evaluated=evaluated)
    return source, plan, {"reused": {"root": earlier.root, "checks": names}}


def _notes(
    earlier: "_Earlier", plan: Plan, why: Mapping[tuple[str, str], Any], taken: Mapping[tuple[str, str], _EarlierCheck]
) -> list[str]:
    several = len(plan.verifiers) > 1
    reasons: dict[str, list[str]] = {}
    for (verifier, check), reason in why.items():
        if (verifier, check) not in taken:
            reasons.setdefault(str(reason), []).append(
                f"{verifier}/{check}" if several and check else check or verifier
            )
    share = f"{len(taken):,} of {counted(len(why), 'check')}"
    head = f"{share} reused from {earlier.name}" if taken else f"nothing is reused from {earlier.name}: a full run"
    return [head, *(f"{', '.join(names)}: runs again: {reason}" for reason, names in reasons.items())]


@frozen
class _Earlier:
    """An earlier result, intact."""

    name: str
    files: tuple[Path, ...]
    provenance: Mapping[str, Any]
    root: str

    @classmethod
    def open(cls, path: Path) -> "_Earlier":
        files, name = result_files(path), shown_path(path)
        provenance = read_provenance(path)
        forms_of(provenance, name)
        settings = provenance.get("settings")
        if not isinstance(settings, Mapping):
            raise InputError(f"{name}: its footer does not say with which options it was made.", _AGAIN)
        seal = seal_of(path, files)
        if seal.differ:
            fact = f"{name}: is not as it was written: {printable(', '.join(seal.differ[:5]))}."
            raise InputError(fact, _AGAIN)
        earlier = cls(name, tuple(files), provenance, seal.root)
        if not earlier.columns or any(column.name not in earlier.schema for column in earlier.columns):
            raise InputError(f"{name}: has no columns of checks, which could be reused.", "Score without --no-details.")
        return earlier

    @cached_property
    def forms(self) -> list[dict[str, Any]]:
        return forms_of(self.provenance, self.name)

    @cached_property
    def frame(self) -> pl.LazyFrame:
        return scan_files(self.files)

    @cached_property
    def schema(self) -> pl.Schema:
        return self.frame.collect_schema()

    @cached_property
    def columns(self) -> list[_EarlierCheck]:
        several = len(self.forms) > 1
        return [
            _EarlierCheck(ident, form, label_of(ident, NATIVE, str(form.get("id")), several=several))
            for verifier in self.forms
            if verifier.get("kind") == NATIVE and (ident := str(verifier.get("id")))
            for form in verifier.get("checks", ())
            if form.get("id") in _that_ran(self.provenance, ident)
        ]

    @cached_property
    def labels(self) -> Counter[str]:
        several, labels = len(self.forms) > 1, Counter[str]()
        for form in self.forms:
            ident, kind = str(form.get("id")), str(form.get("kind"))
            checks = _idents(form.get("checks", ())) if kind == NATIVE else _that_ran(self.provenance, ident)
            labels.update(label_of(ident, kind, check, several=several) for check in checks)
        return labels

    def is_ambiguous(self, label: str) -> bool:
        others = (other for other in self.labels if other != label)
        return (
            "\n" in label or self.labels[label] > 1 or any(a.startswith(label) or label.startswith(a) for a in others)
        )

    @cached_property
    def flawed(self) -> set[str]:
        error, rows = pl.col("error").cast(pl.String), self.frame
        asked = {column.label: error.str.contains(f"(?m)^{pl.escape_regex(column.label)}") for column in self.columns}
        unscored = pl.all_horizontal(exactly(column.name).is_null() for column in self.columns)
        without_text = error.is_in([NULL_COMPLETION, NO_ASSISTANT]) | no_task_expr("error")
        asked[""] = unscored & pl.col("reward").is_null() & without_text.fill_null(value=False).not_()
        asked[NO_CHECK] = asked[""] & (error == NO_CHECK)
        answers = rows.select(expr.any().alias(f"{at}") for at, expr in enumerate(asked.values()))
        row = answers.collect(engine="streaming").row(0)
        return {label for label, is_there in zip(asked, row, strict=True) if is_there}


_AGAIN = "Score the rollouts again, without --reuse."


def _idents(forms: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for form in forms:
        yield str(form.get("id"))
        yield from _idents(form.get("checks", ()))


def _that_ran(provenance: Mapping[str, Any], verifier: str) -> list[str]:
    entries = (entry for entry in provenance["verifiers"] if str(entry.get("id")) == verifier)
    return [str(check.get("id")) for entry in entries for check in entry.get("checks", ())]


def _same_rollouts(earlier: _Earlier, source: Rollouts, run: FileRun) -> list[str]:
    then, tasks = earlier.provenance, task_files_of(run.options["tasks"])
    now = json.loads(json.dumps(provenance_of((), (), source.inputs, tasks, seal=run.options["seal"])))
    by_hash = is_sealed(then) and is_sealed(now)
    differences = []
    for key, noun in (("inputs", "input"), ("tasks", "task file")):
        before, after = (
            [
                {"name": f"{number}", "sha256": entry.get("sha256")}
                if by_hash
                else {name: value for name, value in entry.items() if name not in ("rows", "sha256")}
                for number, entry in enumerate(side.get(key) or [], 1)
            ]
            for side in (then, now)
        )
        differences += differing_items(noun, before, after) if before != after else []
    if differences:
        listed = "\n".join(f"  {difference}" for difference in differences[:10])
        fact = f"{earlier.name}: is a result of other rollouts:\n{listed}"
        raise InputError(fact, "Score without --reuse. Files that were moved are known by their hashes: --seal")
    known = by_hash or all(entry["modified"] is not None for entry in now["inputs"] if not entry.get("skipped"))
    table = run.task_table(source, now).get("task_table")
    has_files = bool(now["tasks"]) and table is None
    if not known or not (has_files or then.get("task_table") == table):
        fact = f"{earlier.name}: nothing says that the rollouts and their tasks are the same."
        raise InputError(fact, "Write them to files, and score these with --seal.")
    return (
        []
        if by_hash
        else [f"the rollouts are those of {earlier.name} by name, size and time; --seal compares their bytes"]
    )


def _of_another_run(then: Mapping[str, Any], run: FileRun) -> str:
    now = {**provenance_of((), (), (), ()), "settings": json.loads(json.dumps(run.settings))}
    for key, noun in (("assay_version", "Assay"), ("polars_version", "Polars")):
        if then.get(key) != now[key]:
            return f"made with {noun} {then.get(key)}, this is {now[key]}"
    before, after = ({k: v for k, v in side["settings"].items() if k not in _NOT_OF_THE_SCORES} for side in (then, now))
    name = next((name for name in {**before, **after} if before.get(name) != after.get(name)), "")
    if name:
        return f"made with another {name}: {short_json(before.get(name))} then, {short_json(after.get(name))} now"
    rows_name = any(entry.get("kind") == IN_PROCESS for entry in then["verifiers"])
    return "made with functions that rows name, whose feedback cannot be told from that of checks" if rows_name else ""


def _reusable(earlier: _Earlier, plan: Plan, run: FileRun) -> dict[tuple[str, str], _EarlierCheck | str]:
    by_fingerprint: dict[str, list[_EarlierCheck]] = {}
    for column in earlier.columns:
        by_fingerprint.setdefault(fingerprint(column.form), []).append(column)
    forms = {
        (verifier.id, spec.id): form
        for verifier in plan.verifiers
        if verifier.kind == NATIVE
        for spec, form in zip(verifier.checks, json.loads(verifier.canonical)["checks"], strict=True)
    }
    if NO_CHECK in earlier.flawed or _may_score_more(earlier, {*map(fingerprint, forms.values())}, run):
        return dict.fromkeys(forms, "rows that were unscored may be scored now")
    result: dict[tuple[str, str], _EarlierCheck | str] = {}
    for verifier in plan.verifiers:
        for spec in verifier.checks if verifier.kind == NATIVE else ():
            form = forms[verifier.id, spec.id]
            candidates = by_fingerprint.get(fingerprint(form), [])
            reason = _own_reason(spec, earlier, run)
            graders = [reader.grader for reader in spec.readers if reader.grader]
            changed = [*changed_versions(earlier.provenance.get("libraries"), spec.libraries).values()]
            changed += changed_graders(earlier.provenance.get("graders"), graders)
            if not reason and changed:
                reason = f"made with {' and '.join(changed)}"
            result[verifier.id, spec.id] = reason or _choice(candidates, spec, form, earlier)
        if verifier.kind != NATIVE:
            result |= {(verifier.id, spec.id): "it is Python, not a spec" for spec in verifier.checks}
    return result


def _own_reason(spec: CheckSpec, earlier: _Earlier, run: FileRun) -> str:
    check = spec.check
    if check is None or spec.group is not None:
        return "it is a group"
    if spec.when is not None and (spec.when.check is not None or spec.when.test == "matches"):
        return "a check or a pattern decides when it runs"
    if isinstance(check, RowAwareCheck):
        return "it asks what rows bring"
    if not is_ours(deciding_code(check)):
        codes = [code for entry in earlier.provenance["verifiers"] for code in entry.get("code") or ()]
        code = code_of(check)
        if not (run.options["reuse_code"] and code.get("sha256") is not None and code in codes):
            return "it is not built in"
    if "" in earlier.flawed and spec.missing_gold == "unscored" and columns_of(spec).missing is not None:
        return "rows lack what it compares with"
    return ""


def _choice(
    candidates: Sequence[_EarlierCheck], spec: CheckSpec, form: Mapping[str, Any], earlier: _Earlier
) -> _EarlierCheck | str:
    """Return the first column that has the scores of a check, or why none has.

    NOTE: no threshold touches the outcome of a row that has no gold, or where steps find nothing; one in (0, 1] keeps it by itself.
    """
    reason = "it is new or changed"
    for column in candidates:
        then, now = column.form.get("threshold"), form.get("threshold")
        if column.label in earlier.flawed:
            reason = "it had errors"
        elif earlier.is_ambiguous(column.label):
            reason = "its feedback cannot be told from that of another check"
        elif then != now and not (then is None and now is not None and 0 < now <= 1 and not spec.negate):
            reason = "it has another threshold"
        else:
            return column
    return reason


def _may_score_more(earlier: _Earlier, kept: set[str], run: FileRun) -> bool:
    if "" not in earlier.flawed:
        return False
    gone = [form for verifier in earlier.forms for form in verifier.get("checks", ()) if fingerprint(form) not in kept]
    if any(entry.get("kind") != NATIVE for entry in earlier.forms):
        return True
    try:
        verifiers = [verifier_in_footer(spec_of({"checks": [form]}), checks=run.options["checks"]) for form in gone]
    except AssayError:
        return True
    specs = [spec for verifier in verifiers for check in verifier.checks for spec in check.nodes()]
    unscored = (unscored_exprs(verifier, spec) for verifier in verifiers for spec in verifier.nodes)
    return any(spec.check is None for spec in specs) or any(unscored)


def _stored(spec: CheckSpec, column: _EarlierCheck | None) -> CheckSpec:
    if column is None or spec.check is None:
        return spec
    check = Stored(spec.check, column.name, column.label, one_reason(spec))
    threshold = None if column.form.get("threshold") is not None else spec.threshold
    return replace(spec, check=check, negate=False, threshold=threshold, subject=None)


def _beside(rollouts: pl.LazyFrame, files: Sequence[Path], names: Sequence[str], limit: int | None) -> pl.LazyFrame:
    rollouts = rollouts if limit is None else rollouts.head(limit)
    earlier = scan_files(files).select(exactly(name).alias(EARLIER + name) for name in names)
    return pl.concat([rollouts, earlier], how="horizontal")
