"""Run the tests of specs: each rollout is scored as any other, and compared with what is expected of it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack

from assay.calls.limits import Limits
from assay.compiling.columns import reading_for
from assay.compiling.verifiers import closing_checks, limits_of_run, verifiers_of_run, warn
from assay.errors import SpecError, UsageError, counted, shown_path
from assay.insight.results import as_data
from assay.insight.testing.document import tests_document
from assay.insight.testing.expectations import differing
from assay.insight.testing.junit import junit_xml
from assay.insight.testing.mutants import (
    find_rows,
    has_mutants,
    mutants_of,
    rows_of,
    score_of,
    try_tests,
)
from assay.loading.rollouts import open_rollouts
from assay.options import CompileOptions, FunctionOptions, ScoreOptions, SpecTestOptions, documented, options_of, settle
from assay.scoring.in_memory import engine_errors, prepare, tell
from assay.spec.spec_tests import SpecTest
from assay.spec.verifier import VerifierSource, VerifierSpec, load_tests
from assay.system.quantities import read_share
from assay.system.signals import interruptible
from assay.system.spool import spooling
from assay.writing.documents import Document
from assay.writing.notebooks import Displayed
from assay.writing.numbers import percent


@dataclass(frozen=True, repr=False)
class SpecTests(Displayed):
    """How specs do in their tests.

    Attributes:
        tests: Each test with its ``spec``, ``name``, ``outcome`` (``passed`` or ``failed``), the ``reward`` and ``passed`` of its
            rollout, and what it ``got`` where something else was expected, in the form of the expectation; None if it got all that.
            Also ``expect``, ``feedback`` and ``error``.
        mutants: Each changed verifier with its ``spec``, the ``check`` ("" for the verifier), the ``operator`` and the ``change``; its
            ``outcome``: ``killed`` (``killed_by`` the tests that pass on the spec and fail here), ``seen`` (the rollouts tell it from
            the spec), ``survives`` (a text near those of the tests does), ``undecided``; how many ``rows`` of the rollouts tell it, and the
            ``first_row``. Of those that are seen or survive, the shortest ``text`` that tells it, the reward of the spec ``before`` and
            of the mutant ``after``, and a ``case`` that expects the present verdict, yours to confirm.
        limits: The limits given, and in ``exceeded`` what is said of those that are not reached.
        notes: What the user should know.
    """

    tests: tuple[dict[str, Any], ...]
    mutants: tuple[dict[str, Any], ...] = ()
    limits: dict[str, Any] = field(default_factory=lambda: {"exceeded": []})
    notes: tuple[str, ...] = ()

    @property
    def score(self) -> float | None:
        """The share of mutants that tests kill, of those that are killed, seen or survive; None if there is none."""
        return score_of(self.mutants)

    @property
    def failed(self) -> bool:
        """Whether a test fails, or a limit is not reached."""
        return any(test["outcome"] == "failed" for test in self.tests) or bool(self.limits["exceeded"])

    @property
    def headline(self) -> str:
        """How many tests pass and fail."""
        failed = sum(test["outcome"] == "failed" for test in self.tests)
        score = [] if self.score is None else [f"{percent(self.score)} of mutants killed"]
        return " · ".join([counted(len(self.tests), "test"), f"{failed} failed", *score])

    def junit(self) -> str:
        """Return the tests as XML of JUnit: a suite for each spec, without times; what could not be scored is an error."""
        return junit_xml(self.tests)

    def _document(self) -> Document:
        return tests_document(self.as_json())

    def as_json(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return as_data({name: getattr(self, name) for name in ("tests", "mutants", "score", "limits", "notes")})


@documented(SpecTestOptions, ScoreOptions)
def run_tests(
    specs: VerifierSource | Sequence[VerifierSource],
    *,
    tests: str | Path | Sequence[Mapping[str, Any]] | None = None,
    mutants: bool = False,
    rollouts: Any = None,
    min_score: str | None = None,
    **options: Unpack[ScoreOptions],
) -> SpecTests:
    """Run the tests of specs, and see which changes of the specs they notice.

    Args:
        specs: One or more verifiers: objects of ``load_verifier``, paths, or mappings.
        options: Those of ``assay.options.SpecTestOptions``, and how rollouts are scored.

    Raises:
        SpecError: A verifier or a test cannot be used.
        UsageError: An option cannot be used, or there is no test.

    Example:
        >>> import assay
        >>> test = {"given": {"completion": "A refund is on its way."}, "expect": "pass"}
        >>> spec = {"checks": [{"type": "contains", "value": "refund"}], "tests": [test]}
        >>> assay.run_tests(spec).failed
        False
    """
    settled = settle(ScoreOptions, options, "run_tests")
    scoring = {**options_of(CompileOptions), **options_of(FunctionOptions)}
    own = settle(ScoreOptions, {name: value for name, value in options.items() if name in scoring}, "run_tests")
    if rollouts is not None and not (mutants or min_score is not None):
        raise UsageError("rollouts: tests bring their own.", "They show which mutants differ on them: --mutants")
    least = None if min_score is None else read_share("--min-score", min_score)
    with interruptible() as stop, spooling():
        limits = limits_of_run(specs, settled, stop=stop)
        loaded = _loaded(specs, settled, limits)
        warn(loaded)
        run, made, exceeded, notes = list[dict[str, Any]](), list[dict[str, Any]](), list[str](), list[str]()
        for verifier in loaded:
            cases = (*verifier.tests, *(() if tests is None else load_tests(tests, verifier)))
            name = name_of(verifier)
            notes += [] if cases else [f"{name} has no tests"]
            results = [*_results(verifier, cases, own)]
            run += [{"spec": name, **result} for result in results]
            if mutants or min_score is not None:
                passing = {result["name"] for result in results if result["outcome"] == "passed"}
                found, more = _mutants(verifier, cases, passing, rollouts, (settled, own), limits)
                made += [{"spec": name, **mutant} for mutant in found]
                notes += [f"{name}: {note}" for note in more]
                score = score_of(found)
                if least is not None and (score is None or score < least):
                    exceeded.append(f"{name}: {percent(score)} of mutants killed; --min-score asks for {min_score}")
    if not run:
        raise UsageError("There is no test.", "Write `tests:` in the spec, or name a file of them: --tests FILE")
    return SpecTests(tuple(run), tuple(made), {"min_score": min_score, "exceeded": exceeded}, tuple(notes))


def _mutants(
    verifier: VerifierSpec,
    cases: Sequence[SpecTest],
    passing: Collection[str],
    rollouts: Any,
    options: tuple[ScoreOptions, ScoreOptions],
    limits: Limits,
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the mutants of a verifier as data, and notes; the options are those of rollouts, and those of tests."""
    if not has_mutants(verifier):
        return [], [f"it is Python ({verifier.kind}), which has no mutants"]
    settled, own = options
    mutants, are_more = mutants_of(verifier, own, limits)
    notes = [f"{len(mutants)} mutants, in turns from each check; there are more"] if are_more else []
    if failing := len(cases) - len(passing):
        notes.append(f"{counted(failing, 'test')} that fail{'s' * (failing == 1)} kill{'s' * (failing == 1)} no mutant")
    with closing_checks([verifier, *(mutant.verifier for mutant in mutants)]):
        if rollouts is not None:
            find_rows(verifier, mutants, rollouts, settled)
        if cases:
            try_tests(verifier, mutants, cases, passing, own)
    return [mutant.as_json() for mutant in mutants], notes


def _loaded(specs: Any, options: ScoreOptions, limits: Limits) -> list[VerifierSpec]:
    """Return the verifiers, each by itself, for two of them may have one id; the problems of all are told together."""
    sources = [specs] if isinstance(specs, str | Path | Mapping | VerifierSpec) else [*specs]
    loaded, errors = list[VerifierSpec](), list[SpecError]()
    for source in sources:
        try:
            loaded += verifiers_of_run(source, options, limits=limits)
        except SpecError as error:
            errors.append(error)
    if errors:
        problems = [problem for error in errors for problem in error.problems]
        raise SpecError("\n\n".join(error.fact for error in errors), errors[0].hint, problems)
    return loaded


def name_of(verifier: VerifierSpec) -> str:
    """Return what people call a spec: its path, else its id."""
    return shown_path(verifier.source) if verifier.source else verifier.id


def _results(verifier: VerifierSpec, tests: Sequence[SpecTest], options: ScoreOptions) -> Iterable[dict[str, Any]]:
    if not tests:
        return
    # alone, whatever other specs there are, and with all that a test may ask for
    settled = {**options, "keep": (), "details": True}
    source, plan = prepare(open_rollouts(rows_of(tests), reading_for(settled, (verifier,))), (verifier,), settled)  # type: ignore[arg-type]
    with engine_errors(source.files, plan), closing_checks(plan.verifiers):
        tell(plan.refuse(source.frame, rows=source.rows))
        scored = plan.score(source.frame, rows=source.rows)
    for test, result in zip(tests, scored.iter_rows(named=True), strict=True):
        got = differing(test.expect, result, verifier)
        yield {
            "name": test.name,
            "outcome": "failed" if got else "passed",
            **{name: result[name] for name in ("reward", "passed")},
            "got": got or None,
            "expect": dict(test.expect),
            **{name: result[name] for name in ("feedback", "error")},
        }
