"""``assay check``: validate verifiers."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.app import command, import_checks, import_modules, takes, to_stderr
from assay.errors import SpecError, counted, shown_path
from assay.options import FileOptions, ScoreOptions, settle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.checks.base import Check
    from assay.spec.verifier import VerifierSpec

__all__ = ["check"]

_SAMPLES = 200
"""Rows of the dry run of ``assay check``."""


@command(modules=("assay.cli.terminal", "assay.testing"))
@takes(FileOptions, "tasks", "mapping", "preset", "any_role", "strict", "modules", "checks")
def check(
    specs: Annotated[list[str], typer.Argument(help="Verifier files.")],
    *,
    rollouts: Annotated[
        str | None, typer.Option(help="Rollouts to try the verifiers on, besides the built-in sample texts.")
    ] = None,
    **options: Any,
) -> None:
    """Validate verifiers: list all problems, and try them on sample rows."""
    from assay.cli.terminal import print_error, print_warning

    import_modules(options.pop("modules"))
    strict, checks = options.pop("strict"), import_checks(options.pop("checks"))
    console = to_stderr()
    refused = False
    for path in specs:
        try:
            verifier = _checked(path, checks, strict=strict)
        except SpecError as error:
            print_error(console, error)
            refused = True
            continue
        for spec in verifier.checks:
            if spec.note:
                print_warning(console, f"{shown_path(path)}: {spec.id}: {spec.note}")
        result = _dry_run(verifier, rollouts, options)
        console.print(f"ok: {shown_path(path)}: {result}", markup=False, highlight=False, soft_wrap=True)
    if refused:
        raise typer.Exit(2)


def _checked(path: str, checks: "Sequence[type[Check]]", *, strict: bool) -> "VerifierSpec":
    """Load a verifier without broken checks; list all problems in one error, including those that a run only warns about."""
    from assay.spec.verifier import load_verifier

    try:
        verifier = load_verifier(path, checks=checks, strict=strict)
    except SpecError:
        return load_verifier(path, checks=checks, strict=True)
    return load_verifier(path, checks=checks, strict=True) if any(spec.broken for spec in verifier.checks) else verifier


def _dry_run(verifier: "VerifierSpec", rollouts: str | None, options: dict[str, Any]) -> str:
    """Score sample texts by columns and row by row, and rollouts; return the result as a sentence."""
    from assay.loading.formats.files import ENGINE_ERRORS
    from assay.loading.formats.reading import reading_of
    from assay.loading.rollouts import open_rollouts
    from assay.scoring.in_memory import engine_error, prepare
    from assay.testing import assert_plan_conforms, hostile_texts

    empty = {"metadata": None, "expected_output_schema": None}
    rows: list[dict[str, Any]] = [{"completion": text, **empty} for text in hostile_texts(_SAMPLES)]
    assert_plan_conforms([verifier], rows)
    checks, samples = counted(len(verifier.runnable), "check"), counted(len(rows), "sample text")
    result = f"{checks}, {samples} scored the same by columns and by rows"
    if rollouts is None:
        return result
    settled = settle(ScoreOptions, options, "check")
    opened = open_rollouts(rollouts, reading_of(settled))
    source, plan = prepare(replace(opened, frame=opened.frame.head(_SAMPLES)), (verifier,), settled)
    try:
        rewards = plan.score(source.frame)["reward"]
    except ENGINE_ERRORS as error:
        raise engine_error(error, opened.files, plan) from error
    scored = len(rewards) - rewards.null_count()
    mean = f"{rewards.sum() / scored:.4f}" if scored else "–"
    return f"{result}; mean reward {mean} on {counted(len(rewards), 'row')} of {shown_path(rollouts)}"
