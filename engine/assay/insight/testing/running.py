"""Run the tests of specs: each rollout is scored as any other, and compared with what is expected of it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from assay.calls.limits import Limits
from assay.compiling.columns import reading_for
from assay.compiling.verifiers import closing_checks, limits_of_run, verifiers_of_run, warn
from assay.errors import SpecError, UsageError, counted, shown_path
from assay.insight.testing.document import tests_document
from assay.insight.testing.expectations import differing
from assay.insight.testing.junit import junit_xml
from assay.loading.rollouts import open_rollouts
from assay.options import CompileOptions, FunctionOptions, ScoreOptions, SpecTestOptions, documented, options_of, settle
from assay.scoring.in_memory import engine_errors, prepare, tell
from assay.spec.spec_tests import SpecTest
from assay.spec.verifier import VerifierSource, VerifierSpec, load_tests
from assay.system.signals import interruptible
from assay.system.spool import spooling
from assay.writing.documents import Document
from assay.writing.notebooks import Displayed


@dataclass(frozen=True, repr=False)
class SpecTests(Displayed):
    """How specs do in their tests.

    Attributes:
        tests: Each test with its ``spec``, ``name``, ``outcome`` (``passed`` or ``failed``), the ``reward`` and ``passed`` of its
            rollout, and what it ``got`` where something else was expected, in the form of the expectation; None if it got all that.
            Also ``expect``, ``feedback`` and ``error``.
        notes: What the user should know.
    """

    tests: tuple[dict[str, Any], ...]
    notes: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether a test fails."""
        return any(test["outcome"] == "failed" for test in self.tests)

    @property
    def headline(self) -> str:
        """How many tests pass and fail."""
        failed = sum(test["outcome"] == "failed" for test in self.tests)
        return f"{counted(len(self.tests), 'test')} · {failed} failed"

    def junit(self) -> str:
        """Return the tests as XML of JUnit: a suite for each spec, without times; what could not be scored is an error."""
        return junit_xml(self.tests)

    def _document(self) -> Document:
        return tests_document(self.as_json())

    def as_json(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        data = {"insight": 1, "tests": list(self.tests), "notes": list(self.notes)}
        return dict(json.loads(json.dumps(data, allow_nan=False)))


@documented(SpecTestOptions, ScoreOptions)
def run_tests(
    specs: VerifierSource | Sequence[VerifierSource],
    *,
    tests: str | Path | Sequence[Mapping[str, Any]] | None = None,
    **options: Unpack[ScoreOptions],
) -> SpecTests:
    """Run the tests of specs.

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
    with interruptible() as stop, spooling():
        limits = limits_of_run(specs, settled, stop=stop)
        loaded = _loaded(specs, settled, limits)
        warn(loaded)
        run, notes = list[dict[str, Any]](), list[str]()
        for verifier in loaded:
            cases = (*verifier.tests, *(() if tests is None else load_tests(tests, verifier)))
            notes += [] if cases else [f"{name_of(verifier)} has no tests"]
            run += [{"spec": name_of(verifier), **result} for result in _results(verifier, cases, own)]
    if not run:
        raise UsageError("There is no test.", "Write `tests:` in the spec, or name a file of them: --tests FILE")
    return SpecTests(tuple(run), tuple(notes))


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


def rows_of(tests: Sequence[SpecTest]) -> list[dict[str, Any]]:
    """Return the rollouts of tests, each with the columns of all: null where it lacks one."""
    columns = dict.fromkeys(name for test in tests for name in test.given)
    return [{**columns, **test.given} for test in tests]


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
