"""The commands that look at verifiers: ``assay check | explain | checks | schema``."""

import functools
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.app import (
    Mapped,
    Modules,
    PresetName,
    RubricName,
    app,
    command,
    import_modules,
    import_rubric,
    read_mapping,
    show,
    to_stderr,
)
from assay.errors import SpecError, UsageError, shown_path
from assay.system.stdout import only_data, write_data

if TYPE_CHECKING:
    from assay.spec.verifier import VerifierSpec

__all__ = ["check", "checks", "explain", "schema"]

_SAMPLES = 200
"""Rows of the dry run of ``assay check``."""


@app.command()
@command
def check(
    specs: Annotated[list[str], typer.Argument(help="Verifier files.")],
    *,
    rollouts: Annotated[
        str | None, typer.Option(help="Rollouts to try the verifiers on, besides the built-in texts.")
    ] = None,
    tasks: Annotated[str | None, typer.Option(help="Task table of those rollouts.")] = None,
    mapping: Mapped = None,
    preset: PresetName = None,
    strict: Annotated[bool, typer.Option("--strict", help="Unknown check types are errors too.")] = False,
    modules: Modules = None,
) -> None:
    """Validate verifiers, list every problem, and try them on sample rows."""
    from assay.cli.terminal import print_error, print_warning

    import_modules(modules or [])
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
        said = _dry_run(verifier, rollouts, tasks, read_mapping(mapping or []), preset)
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


def _dry_run(
    verifier: "VerifierSpec", rollouts: str | None, tasks: str | None, mapping: dict[str, str], preset: str | None
) -> str:
    """Score sample rows both ways."""
    from assay.loading.formats.files import ENGINE_ERRORS
    from assay.loading.formats.reading import Reading
    from assay.loading.rollouts import open_rollouts
    from assay.scoring.in_memory import engine_error, prepare
    from assay.testing import assert_plan_conforms, hostile_texts

    nothing = {"metadata": None, "expected_output_schema": None}
    rows: list[dict[str, Any]] = [{"completion": text, **nothing} for text in hostile_texts(_SAMPLES)]
    assert_plan_conforms([verifier], rows)
    said = f"{len(verifier.runnable)} checks, {len(rows)} sample texts scored the same by columns and by rows"
    if rollouts is None:
        return said
    opened = open_rollouts(rollouts, Reading(mapping, preset))
    source, plan = prepare(replace(opened, frame=opened.frame.head(_SAMPLES)), (verifier,), tasks=tasks)
    try:
        rewards = plan.score(source.frame)["reward"]
    except ENGINE_ERRORS as wrong:
        raise engine_error(wrong, opened.files, plan) from wrong
    scored = len(rewards) - rewards.null_count()
    shown = f"{rewards.sum() / scored:.4f}" if scored else "–"
    return f"{said}; the first {len(rewards)} of {shown_path(rollouts)} have a mean reward of {shown}"


@app.command()
@command
def explain(
    specs: Annotated[list[str] | None, typer.Argument(help="Verifier files.")] = None,
    *,
    rubric: RubricName = None,
    as_data: Annotated[bool, typer.Option("--json", help="Print JSON, with the canonical form.")] = False,
    modules: Modules = None,
) -> None:
    """Show what each check compiles to, or each member of a rubric, which engine answers and why."""
    from assay.cli.terminal import print_explanation
    from assay.compiling.verifiers import verifiers_of_run

    with only_data():
        import_modules(modules or [])
        judge = None if rubric is None else import_rubric(rubric)
    if (judge is None) == (not specs):
        raise UsageError("Name verifier files, or a rubric with --rubric module:attribute.")
    loaded = verifiers_of_run(judge or [Path(one) for one in specs or ()])
    if as_data:
        write_data(json.dumps([_explained(verifier) for verifier in loaded]) + "\n")
        return
    for verifier in loaded:
        show(functools.partial(print_explanation, verifier=verifier))


def _explained(verifier: "VerifierSpec") -> dict[str, Any]:
    checks = [
        {"id": one.id, "type": one.type, "runs_as": one.check.explain() if one.check else one.note}
        for one in verifier.checks
    ]
    said = {"id": verifier.id, "sha256": verifier.sha256, "canonical": json.loads(verifier.canonical), "checks": checks}
    return said if verifier.share is None else said | {"weight": verifier.share.weight}


@app.command()
@command
def checks(
    *,
    as_data: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table of the README.")] = False,
    modules: Modules = None,
) -> None:
    """List the check types with their params, the functions that rows may name, and the verifier classes."""
    from assay.classes.registry import list_verifiers
    from assay.cli.terminal import print_listing
    from assay.functions.registry import list_fns
    from assay.spec.listing import as_json, as_markdown

    import_modules(modules or [])
    if markdown:
        write_data(as_markdown())
    elif as_data:
        write_data(json.dumps(as_json()) + "\n")
    else:
        named = {
            "functions that rows may name (verifier.fn_name)": list_fns(),
            "verifier classes (kind)": list_verifiers(),
        }
        show(functools.partial(print_listing, listing=as_json(), named=named))


@app.command()
@command
def schema(*, modules: Modules = None) -> None:
    """Print the JSON Schema (draft-07) of a verifier file."""
    from assay.spec.json_schema import json_schema

    import_modules(modules or [])
    write_data(json.dumps(json_schema(), indent=2) + "\n")
