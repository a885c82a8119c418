"""The verifiers of a run: specs, a rubric, or the functions that its rows name; and the limits of users' Python."""

import contextlib
import math
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from assay.calls.in_thread import LOOP
from assay.calls.limits import Limits, TimeoutCounts
from assay.checks.base import Check, RowAwareCheck
from assay.checks.libraries import untested
from assay.errors import AssayWarning, SpecError, UsageError
from assay.functions.check import RowFunctionCheck
from assay.functions.registry import get
from assay.names import IN_PROCESS, ROW_VERIFIER, VERIFIER
from assay.options import CompileOptions, FunctionOptions, ScoreOptions, settle
from assay.spec.verifier import CheckSpec, VerifierSource, VerifierSpec, load_verifiers, refused


@runtime_checkable
class Rewarding(Protocol):
    """An object that scores as a sum of members: a rubric."""

    def members(self, limits: Limits, pass_threshold: float) -> tuple[VerifierSpec, ...]:
        """Return its members, each with its share."""
        ...


def on_row(verifier_name: str | None = None, *, pass_threshold: float = 1.0, ident: str = VERIFIER) -> VerifierSpec:
    """Return the verifier for rows that carry their own: it runs the function that each row names."""
    default = verifier_name or ""
    if default:
        try:
            get(default)
        except ValueError as error:
            raise SpecError(str(error)) from None
    params = {"verifier_name": default}
    check = CheckSpec("", IN_PROCESS, 1.0, required=False, negate=False, params=params, check=RowFunctionCheck(default))
    return VerifierSpec(ident, ident, pass_threshold, (check,), kind=IN_PROCESS)


@contextlib.contextmanager
def closing_checks(verifiers: Sequence[VerifierSpec]) -> Iterator[None]:
    """Close the checks of a run at its end, with everything they started outside of this process."""
    LOOP.make_way()  # for asynchronous functions
    try:
        yield
    finally:
        for spec in (spec for verifier in verifiers for spec in verifier.nodes):
            if isinstance(spec.check, RowAwareCheck):
                spec.check.close()


def limits_of_run(
    sources: object,
    options: FunctionOptions,
    *,
    tick: Callable[[int], None] | None = None,
    stop: threading.Event | None = None,
) -> Limits:
    """What a run allows users' Python, and patterns."""
    workers = options["workers"]
    if workers and (isinstance(sources, type) or not isinstance(sources, Rewarding)):
        raise UsageError(
            "--workers applies to the functions of a rubric, and there is none.", "Name one: --rubric module:attribute"
        )
    regex_timeout = options["regex_timeout"] or None
    return Limits(
        options["function_timeout"], options["max_concurrent"], workers, tick, stop, regex_timeout, TimeoutCounts()
    )


def verifiers_of_run(
    sources: Rewarding | VerifierSource | Iterable[VerifierSource] | None,
    options: CompileOptions | ScoreOptions | None = None,
    *,
    limits: Limits | None = None,
) -> tuple[VerifierSpec, ...]:
    """Return the verifiers of a run: the specs, the members of a rubric, or, without sources, the functions that the rows name.

    With specs and a default function, the functions that the rows name come last, as one verifier with the id ``row_verifier``.

    Raises:
        SpecError: A spec or a rubric cannot be used, or the default function is not registered.
        UsageError: A rubric, or specs alone, are combined with options for rows that carry their own verifier.
    """
    options = settle(ScoreOptions, {}, "") if options is None else options
    verifier_name, pass_threshold, strict = options["verifier_name"], options["pass_threshold"], options.get("strict")
    threshold = 1.0 if pass_threshold is None else pass_threshold
    if not math.isfinite(threshold):
        raise UsageError(f"--pass-threshold {threshold}: expected a finite number.")
    if sources is None:
        return _within([on_row(verifier_name, pass_threshold=threshold)], limits)
    if isinstance(sources, type):
        raise _no_instance(sources)
    if isinstance(sources, list | tuple) and any(isinstance(member, Rewarding) for member in sources):
        raise UsageError(
            "A rubric cannot be in a list of verifiers.",
            "Pass the rubric itself; verifiers can be its members: funcs=[…]",
        )
    if isinstance(sources, Rewarding):
        if verifier_name is not None:
            raise UsageError("--verifier-name applies to rows that carry their own verifier, not to a rubric.")
        members = sources.members(limits or Limits(), threshold)
        if strict and (problems := [problem for member in members for problem in member.unusable]):
            raise refused("the rubric", problems)
        return _within(members, limits)
    if verifier_name is None and pass_threshold is not None:
        raise UsageError(
            "--pass-threshold applies to rows that carry their own verifier, not to specs.",
            "Remove the specs or the option, or add --verifier-name. A spec has its own `passThreshold`.",
        )
    loaded = load_verifiers(sources, checks=options["checks"], strict=bool(strict))
    if verifier_name is not None:
        loaded = _beside(loaded, on_row(verifier_name, pass_threshold=threshold, ident=ROW_VERIFIER))
    return _within(loaded, limits)


def _no_instance(kind: type) -> UsageError:
    hint = "Give an instance: assay.Rubric(funcs=[…])"
    if issubclass(kind, Check):
        hint = f'Name it in a spec, {{"checks": [{{"type": "{kind.type}"}}]}}, and give it with checks=[…]'
    return UsageError(f"{kind.__name__} is a class.", hint)


def warn(verifiers: Sequence[VerifierSpec]) -> None:
    """Warn the caller about broken and skipped checks, and about libraries in versions that have not been tested, before the run."""
    for verifier in verifiers:
        for message in verifier.warnings:
            warnings.warn(message, AssayWarning, stacklevel=3)
    readers = (reader.check for verifier in verifiers for spec in verifier.nodes for reader in spec.readers)
    for kind, tested in {check.type: check.traits.libraries for check in readers if check is not None}.items():
        if others := untested(tested):
            message = f"{kind} libraries not tested: {', '.join(others)}; verdicts may differ from those of tested ones"
            warnings.warn(message, AssayWarning, stacklevel=3)


def _beside(specs: tuple[VerifierSpec, ...], rows: VerifierSpec) -> tuple[VerifierSpec, ...]:
    clash = next((spec for spec in specs if spec.id == rows.id), None)
    if clash is not None:
        fact = f'Two verifiers have the id "{rows.id}": {clash.source or "a mapping"} and the verifiers of the rows.'
        raise SpecError(fact, "Give the spec another `id`.")
    return (*specs, rows)


def _within(verifiers: Sequence[VerifierSpec], limits: Limits | None) -> tuple[VerifierSpec, ...]:
    if limits is None:
        return tuple(verifiers)
    several = len(verifiers) > 1

    def bounded(verifier: VerifierSpec, spec: CheckSpec) -> CheckSpec:
        return spec.within(replace(limits, check=f"{verifier.id}/" if several else ""))

    return tuple(
        replace(verifier, checks=tuple(bounded(verifier, spec) for spec in verifier.checks)) for verifier in verifiers
    )
