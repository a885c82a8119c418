"""``assay check``: whether verifiers can be used."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.app import command, import_modules, takes, to_stderr
from assay.errors import SpecError, shown_path
from assay.options import FileOptions, ScoreOptions, settle

if TYPE_CHECKING:
    from assay.spec.verifier import VerifierSpec

__all__ = ["check"]

_SAMPLES = 200
"""Rows of the dry run of ``assay check``."""


@command()
@takes(FileOptions, "tasks", "mapping", "preset", "strict", "modules")
def check(
    specs: Annotated[list[str], typer.Argument(help="Verifier files.")],
    *,
    rollouts: Annotated[
        str | None, typer.Option(help="Rollouts to try the verifiers on, besides the built-in texts.")
    ] = None,
    **options: Any,
) -> None:
    """Validate verifiers: list every problem, and try them on sample rows."""
    from assay.cli.terminal import print_error, print_warning

    import_modules(options.pop("modules"))
    strict = options.pop("strict")
    console = to_stderr()
    refused = False
    for path in specs:
        try:
            verifier = _checked(path, strict=strict)
        except SpecError as wrong:
            print_error(console, wrong)
            refused = True
            continue
        for one in verifier.checks:
            if one.note:
                print_warning(console, f"{shown_path(path)}: {one.id}: {one.note}")
        said = _dry_run(verifier, rollouts, options)
        console.print(f"ok: {shown_path(path)}: {said}", markup=False, highlight=False, soft_wrap=True)
    if refused:
        raise typer.Exit(2)


def _checked(path: str, *, strict: bool) -> "VerifierSpec":
    """Load a verifier that can be used in full; what is wrong with it is listed once, broken checks and unknown types included."""
    from assay.spec.verifier import load_verifier

    try:
        verifier = load_verifier(path, strict=strict)
    except SpecError:
        return load_verifier(path, strict=True)
    return load_verifier(path, strict=True) if any(one.broken for one in verifier.checks) else verifier


def _dry_run(verifier: "VerifierSpec", rollouts: str | None, options: dict[str, Any]) -> str:
    """Score sample rows both ways."""
    from assay.loading.formats.files import ENGINE_ERRORS
    from assay.loading.formats.reading import reading_of
    from assay.loading.rollouts import open_rollouts
    from assay.scoring.in_memory import engine_error, prepare
    from assay.testing import assert_plan_conforms, hostile_texts

    nothing = {"metadata": None, "expected_output_schema": None}
    rows: list[dict[str, Any]] = [{"completion": text, **nothing} for text in hostile_texts(_SAMPLES)]
    assert_plan_conforms([verifier], rows)
    said = f"{len(verifier.runnable)} checks, {len(rows)} sample texts scored the same by columns and by rows"
    if rollouts is None:
        return said
    settled = settle(ScoreOptions, options, "check")
    opened = open_rollouts(rollouts, reading_of(settled))
    source, plan = prepare(replace(opened, frame=opened.frame.head(_SAMPLES)), (verifier,), settled)
    try:
        rewards = plan.score(source.frame)["reward"]
    except ENGINE_ERRORS as wrong:
        raise engine_error(wrong, opened.files, plan) from wrong
    scored = len(rewards) - rewards.null_count()
    shown = f"{rewards.sum() / scored:.4f}" if scored else "–"
    return f"{said}; the first {len(rewards)} of {shown_path(rollouts)} have a mean reward of {shown}"
