"""Forge answers from golds: forms of the gold that a check has to take, and near misses that it has to refuse.

Where ``audit`` asks what a verifier pays for nothing, this asks what each check makes of a gold. A case is made only if a reading that
is not the check's proves what it is.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Unpack

import polars as pl

from assay.aggregating.columns import check_column
from assay.compiling.columns import read_columns, reading_for
from assay.compiling.plan import Plan
from assay.compiling.verifiers import Rewarding, closing_checks, limits_of_run, verifiers_of_run, warn
from assay.errors import InputError, UsageError, counted, did_you_mean, listed
from assay.expressions.completion import completion_text
from assay.expressions.json import mended
from assay.frozen import frozen
from assay.insight import stats
from assay.insight.auditing import SAMPLED_ID, SAMPLED_ROW, SAMPLED_TASK, joined_tasks, sampled_tasks
from assay.insight.documents import forge_document
from assay.insight.evidence.reader import CheckReader
from assay.insight.forging.cases import forged_reader, is_texts, parsed
from assay.insight.forging.made import Kind, Made
from assay.insight.forging.making import Making
from assay.insight.probes import PROBES, Probe, checks_named, phrases_of, probes_of, task_of
from assay.insight.results import as_data, names_of
from assay.loading.presets.preset import NONE
from assay.loading.rollouts import Rollouts, open_rollouts
from assay.names import COMPLETION, HIDDEN, NATIVE, TASK_ID
from assay.options import ForgeOptions, ScoreOptions, documented, settle
from assay.scoring.in_memory import engine_errors
from assay.spec.verifier import CheckSpec, VerifierSource, VerifierSpec
from assay.system.quantities import RowLimit
from assay.system.signals import interruptible
from assay.system.spool import spooling
from assay.values.references import columns_of
from assay.writing.documents import Document
from assay.writing.notebooks import Displayed

_OF_AUDIT = ("other_gold", "empty", "prompt_echo", "repeat_prompt")
"""Probes of ``audit`` that are shown for each check."""
_EVERY_ROW = HIDDEN + "forge/row"


@dataclass(frozen=True, repr=False)
class Forge(Displayed):
    """What checks make of golds.

    Attributes:
        golds: The number of golds, of rows.
        cases: Each case: ``check``, ``form``, ``class`` (``form`` or ``near``), ``row`` of the gold, ``completion``, ``expected`` (``pass``
            or ``fail``) and ``score``, None where the row is unscored.
        rates: For each check, class and form, in how many cases ``of`` all it is ``wrong``: a form scores below 1.0, a near miss scores
            1.0; and Wilson's 95 % interval, ``low`` and ``high``.
        smallest: Of each wrong rate, the case with the shortest gold, then the first row; with the ``gold``.
        unread: Golds that a check refuses as they stand, which are left out elsewhere: ``check``, ``row``, ``completion``, ``score``.
        probes: For each check, on how many rows ``of`` those tried texts of ``audit`` pass: ``check``, ``probe``, ``passes``, ``of``.
        limits: The limits given, and in ``exceeded`` what is said of those that are exceeded.
        notes: What the user should know.
        tests: ``smallest`` as ``tests:`` of the spec, with what should be; none for several verifiers.
    """

    golds: int
    cases: tuple[dict[str, Any], ...]
    rates: tuple[dict[str, Any], ...]
    smallest: tuple[dict[str, Any], ...]
    unread: tuple[dict[str, Any], ...]
    probes: tuple[dict[str, Any], ...]
    limits: dict[str, Any]
    notes: tuple[str, ...]
    tests: tuple[dict[str, Any], ...]

    @property
    def exceeded(self) -> tuple[str, ...]:
        """Return what is said of the limits that are exceeded."""
        return tuple(self.limits["exceeded"])

    @property
    def headline(self) -> str:
        """How many forms are refused, and how many near misses are accepted."""
        sums = {kind: _sums(self.rates, kind) for kind in ("form", "near")}
        (refused, forms), (accepted, near) = sums.values()
        return (
            f"{counted(self.golds, 'gold')} · {refused:,} of {counted(forms, 'form')} refused · "
            f"{accepted:,} of {near:,} near misses accepted"
        )

    def _document(self) -> Document:
        return forge_document({**self.as_json(), "headline": self.headline})

    def as_json(self) -> dict[str, Any]:
        """Return JSON data, without the cases, of which ``smallest`` has the telling ones."""
        own = ("golds", "rates", "smallest", "unread", "probes", "limits", "notes")
        return as_data({name: getattr(self, name) for name in own})


def _sums(rates: Sequence[Mapping[str, Any]], kind: str) -> tuple[int, int]:
    own = [rate for rate in rates if rate["class"] == kind]
    return sum(rate["wrong"] for rate in own), sum(rate["of"] for rate in own)


@documented(ForgeOptions, ScoreOptions)
def forge(
    verifiers: Rewarding | VerifierSource | Sequence[VerifierSource],
    golds: Any = None,
    *,
    rollouts: Any = None,
    sample: int = 200,
    skip: Sequence[str] | str = (),
    max_refused: int | str | None = None,
    max_accepted: int | str | None = None,
    **options: Unpack[ScoreOptions],
) -> Forge:
    r"""Make answers of golds that have to pass or to fail, and score each check on them.

    Args:
        verifiers: As for ``assay.score``.
        golds: Rows with the columns that checks take their golds from: a file, a frame or mappings. The first row of each task counts;
            without a column of tasks, each row.
        rollouts: Rollouts in place of golds, as for ``assay.score``; checks whose steps no text is known for are tried on a passing one.
        options: Those of ``assay.options.ForgeOptions``, and how the rows are read and scored.

    Raises:
        SpecError: A verifier cannot be used.
        InputError: The golds cannot be read, there are none, or no check has a gold that cases can be made of.
        UsageError: An option cannot be used.

    Example:
        >>> import assay
        >>> spec = {"checks": [{"id": "right", "type": "number", "value": {"column": "answer"}}]}
        >>> found = assay.forge(spec, [{"answer": "1200"}])
        >>> [case["completion"] for case in found.smallest if case["form"] in ("latex_thousands", "several_last")]
        ['1{,}200', '1201 or 1200']
    """
    if (golds is None) == (rollouts is None):
        raise UsageError("forge takes golds or rollouts.", "For example: assay forge spec.yaml --golds golds.jsonl")
    settled = settle(ScoreOptions, options, "forge")
    limits = RowLimit("--max-refused", max_refused), RowLimit("--max-accepted", max_accepted)
    skipped = {*names_of(skip)}
    forms = dict.fromkeys((*PROBES["form"], *PROBES["near"]))
    for name in sorted(skipped - forms.keys()):
        raise UsageError(f"--skip {name}: no such form.", did_you_mean(name, forms) or f"Forms: {listed([*forms])}")
    with interruptible() as stop, spooling():
        run = limits_of_run(verifiers, settled, stop=stop)
        loaded = verifiers_of_run(verifiers, settled, limits=run)
        reading = reading_for(settled, loaded)
        source = open_rollouts(golds, replace(reading, preset=NONE)) if rollouts is None else None
        source = joined_tasks(open_rollouts(rollouts, reading) if source is None else source, loaded, settled)
        warn(loaded)
        with engine_errors(source.files), closing_checks(loaded):
            rows, tasks = _rows(source, sample)
            rows, notes = _with_lists(rows, loaded) if rollouts is None else (rows, [])
            forging = _Forging(loaded, rows, tasks, skipped, any_role=settled["any_role"])
            found = forging.found()
    return _gated(found, limits, (*source.notes, *notes))


def _rows(source: Rollouts, sample: int) -> tuple[pl.DataFrame, int]:
    """Return the rows of sampled tasks and how many tasks there are; without a column of tasks, each row is a task."""
    if {TASK_ID, "example_id"} & {*source.frame.collect_schema()}:
        return sampled_tasks(source, (), sample)
    # NOTE: a scan of a file of lines that is asked for no column but the numbers of rows gives no rows
    frame = source.frame.collect(engine="streaming").with_row_index(_EVERY_ROW)
    if frame.is_empty():
        raise InputError("The golds have no row.")
    rows, tasks = sampled_tasks(replace(source, frame=frame.lazy()), (_EVERY_ROW,), sample)
    return rows.drop(_EVERY_ROW), tasks


def _with_lists(rows: pl.DataFrame, verifiers: Sequence[VerifierSpec]) -> tuple[pl.DataFrame, list[str]]:
    """Return golds with lists in place of their JSON text, where ``list_equals`` takes them; that check would split the text."""
    nodes = [node for verifier in verifiers for node in verifier.nodes if node.type == "list_equals"]
    columns = dict.fromkeys(name for node in nodes for reference in node.references for name in reference.columns)
    notes = []
    for name in columns:
        if rows.schema.get(name) != pl.String:
            continue
        values = [None if text is None else parsed(text) for text in rows[name]]
        if any(values) and all(value is None or is_texts(value) for value in values):
            rows = rows.with_columns(pl.Series(name, values, dtype=pl.List(pl.String)))
            notes.append(
                f"{name}: lists in JSON text are taken as lists; where rows have them as text, list_equals splits it"
            )
    return rows, notes


def _gated(found: Forge, limits: tuple[RowLimit, RowLimit], notes: tuple[str, ...]) -> Forge:
    exceeded = []
    for kind, limit, words in zip(
        ("form", "near"), limits, ("forms are refused", "near misses are accepted"), strict=True
    ):
        wrong, of = _sums(found.rates, kind)
        if limit.exceeded(wrong, of):
            option = "--max-refused" if kind == "form" else "--max-accepted"
            exceeded.append(f"{option} {limit.given}: {wrong:,} of {of:,} {words}")
    given = {"max_refused": limits[0].given, "max_accepted": limits[1].given, "exceeded": exceeded}
    return replace(found, limits=given, notes=(*notes, *found.notes))


@frozen
class _Case:
    """A case of a check, on a place of the sampled golds."""

    place: int
    gold: str
    made: Made
    score: float | None = None

    @property
    def is_wrong(self) -> bool:
        return self.score is not None and (self.score < 1.0) is (self.made.kind == "form")


class _Forging:
    """Makes the cases of checks, and scores each check on its own."""

    def __init__(
        self,
        verifiers: tuple[VerifierSpec, ...],
        rows: pl.DataFrame,
        tasks: int,
        skip: Collection[str],
        *,
        any_role: bool,
    ) -> None:
        firsts = rows.with_row_index(_EVERY_ROW).group_by(SAMPLED_TASK, maintain_order=True).first().sort(SAMPLED_TASK)
        self.verifiers, self.skip, self.any_role = verifiers, skip, any_role
        self.rollouts, self.numbers = rows, firsts[SAMPLED_ROW].to_list()
        self.inputs = firsts.drop(SAMPLED_ROW, SAMPLED_TASK, SAMPLED_ID, _EVERY_ROW)
        if COMPLETION not in self.inputs.columns:
            self.inputs = self.inputs.with_columns(pl.lit("").alias(COMPLETION))
        self.golds = [*self.inputs.iter_rows(named=True)]
        self.notes = (
            [] if tasks == len(self.golds) else [f"{len(self.golds):,} of {counted(tasks, 'task')}, evenly spaced"]
        )

    def found(self) -> Forge:
        """Return what all checks make of their golds."""
        cases, rates, smallest, unread, probes, tests = (list[dict[str, Any]]() for _ in range(6))
        for name, verifier, spec in checks_named(self.verifiers):
            if verifier.kind != NATIVE or (reader := forged_reader(spec)) is None:
                continue
            making = Making(reader, self.golds, partial(self._passing, spec), self.skip)
            own = self._scored(spec, [_Case(*case) for case in making.cases()])
            self.notes += making.notes(name)
            plain = [case for case in own if case.made.form == "plain" and case.made.kind == "form" and case.is_wrong]
            unread += [{"check": name, **self._shown(case), "score": case.score} for case in plain]
            left_out = {case.place for case in plain}
            own = [case for case in own if case.place not in left_out]
            cases += [{"check": name, **self._described(case)} for case in own]
            rates += _rates(name, own)
            for case in _smallest(own):
                smallest.append({"check": name, **self._described(case), "gold": case.gold})
                tests.append(self._test(verifier, reader, case))
            probes += self._probes(name, spec) if own or plain else []
        if not (cases or unread):
            raise self._nothing()
        return Forge(
            len(self.golds),
            tuple(cases),
            tuple(rates),
            tuple(smallest),
            tuple(unread),
            tuple(probes),
            {},
            tuple(self.notes),
            tuple(tests) if len(self.verifiers) == 1 else (),
        )

    def _nothing(self) -> InputError:
        present = [name for name in self.inputs.columns if name != COMPLETION]
        for name, _, spec in checks_named(self.verifiers):
            for column in columns_of(spec.references):
                if column not in present:
                    hint = did_you_mean(column, present) or f"Columns: {listed(present)}."
                    return InputError(f"The golds have no column `{column}`, which {name} reads.", hint)
        hint = "Cases are made for checks whose golds come from rows, such as value: {column: answer}."
        return InputError("No check has a gold that cases can be made of.", "\n".join([*self.notes[:5], hint]))

    def _shown(self, case: _Case) -> dict[str, Any]:
        return {"row": self.numbers[case.place], "completion": case.made.completion}

    def _described(self, case: _Case) -> dict[str, Any]:
        expected = "pass" if case.made.kind == "form" else "fail"
        kind = {"form": case.made.form, "class": case.made.kind}
        return {**kind, **self._shown(case), "expected": expected, "score": case.score}

    def _passing(self, spec: CheckSpec) -> dict[int, list[str]]:
        """Return the texts of the rollouts of each task that pass a check."""
        if COMPLETION not in self.rollouts.columns:
            return {}
        inputs = self.rollouts.drop(SAMPLED_ROW, SAMPLED_TASK, SAMPLED_ID)
        scores = self._scores(spec, inputs)
        texts: dict[int, list[str]] = {}
        for task, value, score in zip(self.rollouts[SAMPLED_TASK], inputs[COMPLETION], scores, strict=True):
            text = completion_text(value, any_role=self.any_role) if score == 1.0 else None
            if text is not None:
                texts.setdefault(task, []).append(text)
        return texts

    def _scores(self, spec: CheckSpec, rows: pl.DataFrame) -> list[float | None]:
        """Return the scores of a check alone, before ``negate``."""
        alone = replace(spec, negate=False, when=None, above=(), role="weight", weight=1.0, required=False)
        verifier = VerifierSpec("forge", "forge", 1.0, (alone,))
        scored = Plan((verifier,), tuple(rows.schema.items()), (), any_role=self.any_role).score(rows)
        return scored[check_column(verifier, alone)].to_list()

    def _scored(self, spec: CheckSpec, cases: Sequence[_Case]) -> list[_Case]:
        scores: dict[int, float | None] = {}
        for is_text in (True, False):  # a column holds texts or messages
            places = [at for at, case in enumerate(cases) if isinstance(case.made.completion, str) is is_text]
            if places:
                texts = [cases[at].made.completion for at in places]
                found = self._of(spec, [cases[at].place for at in places], texts)
                scores.update(zip(places, found, strict=True))
        return [replace(case, score=scores[at]) for at, case in enumerate(cases)]

    def _of(self, spec: CheckSpec, places: Sequence[int], completions: Sequence[Any]) -> list[float | None]:
        values = [mended(value) if isinstance(value, str) else value for value in completions]
        column = pl.Series(COMPLETION, values)
        return self._scores(spec, self.inputs[pl.Series(places, dtype=pl.UInt32)].with_columns(column))

    @cached_property
    def _of_audit(self) -> list[Probe]:
        return [*probes_of([*map(task_of, self.golds)], phrases_of(self.verifiers), _OF_AUDIT)]

    def _probes(self, name: str, spec: CheckSpec) -> Iterator[dict[str, Any]]:
        tried = self._of_audit
        scores = self._of(spec, [probe.task for probe in tried], [probe.text for probe in tried])
        for ident in _OF_AUDIT:
            own = [score for probe, score in zip(tried, scores, strict=True) if probe.id == ident and score is not None]
            if own:
                yield {"check": name, "probe": ident, "passes": sum(score == 1.0 for score in own), "of": len(own)}

    def _test(self, verifier: VerifierSpec, reader: CheckReader, case: _Case) -> dict[str, Any]:
        """Return a case as a test of the spec, with the score that the check should have."""
        row, spec = self.golds[case.place], reader.spec
        given = {name: row.get(name) for name in read_columns((verifier,)) if name != COMPLETION}
        passes = (case.made.kind == "form") is not spec.negate
        is_graded = reader.bare.graded and spec.threshold is None
        low = {"min": 1e-6} if spec.negate else {"max": 1 - 1e-6}
        wrong = low if is_graded and case.made.kind == "near" else float(passes)
        return {
            "name": f"{spec.id}: {case.made.kind} {case.made.form}, row {self.numbers[case.place]}",
            "given": {COMPLETION: case.made.completion, **json.loads(json.dumps(given, default=str))},
            "expect": {"checks": {spec.id: wrong}},
        }


def _rates(name: str, cases: Sequence[_Case]) -> Iterator[dict[str, Any]]:
    counts: dict[tuple[str, str], list[int]] = {}
    for case in cases:
        if case.score is not None:
            count = counts.setdefault((case.made.kind, case.made.form), [0, 0])
            count[0] += case.is_wrong
            count[1] += 1
    for kind in ("form", "near"):
        for (other, form), (wrong, of) in counts.items():
            if other == kind:
                low, high = stats.wilson(wrong, of)
                yield {"check": name, "class": kind, "form": form, "wrong": wrong, "of": of, "low": low, "high": high}


def _smallest(cases: Sequence[_Case]) -> list[_Case]:
    """Return of each form with wrong cases that of the shortest gold, then of the first row."""
    found: dict[tuple[Kind, str], _Case] = {}
    for case in sorted((case for case in cases if case.is_wrong), key=lambda case: (len(case.gold), case.place)):
        found.setdefault((case.made.kind, case.made.form), case)
    order = {(case.made.kind, case.made.form): at for at, case in reversed([*enumerate(cases)])}
    return [found[key] for key in sorted(found, key=lambda key: (key[0], order[key]))]
