"""Commands that list what specs and rollouts may have: check types, presets, the schema."""

import json
import shlex
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.app import command, option, show_document
from assay.cli.modules import checks_named, import_modules
from assay.errors import UsageError, printable
from assay.options import FileOptions
from assay.system.stdout import write_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.checks.graders.table import Grader


@command({FileOptions: ("modules", "checks")})
def checks(
    name: Annotated[str | None, typer.Argument(help="Only this one, with examples.")] = None,
    *,
    as_data: Annotated[bool, option("Print JSON.", None, "--json")] = False,
    markdown: Annotated[bool, option("Print Markdown tables.", None, "--markdown")] = False,
    **options: Any,
) -> None:
    """List check types, groups, scorers, steps and normalizers with their params, the functions that rows may name, and verifier classes."""
    from assay.checks.registry import CHECKS
    from assay.classes.registry import list_verifiers
    from assay.cli.views import listing_document
    from assay.functions.registry import list_fns
    from assay.spec.listing import entries_named, examples_of, listing, listing_as_markdown

    import_modules(options["modules"])
    types = (*CHECKS, *checks_named(options["checks"]))
    if name is not None:
        if markdown:
            raise UsageError("--markdown prints whole tables.", f"Leave it out: assay checks {shlex.quote(name)}")
        entries = entries_named(name, listing(types))
        if as_data:
            write_data(json.dumps(entries) + "\n")
        else:
            show_document(listing_document(entries, examples=lambda entry: examples_of(entry, types)))
    elif markdown:
        write_data(listing_as_markdown(types))
    elif as_data:
        write_data(json.dumps(listing(types)) + "\n")
    else:
        named = {
            "functions that rows may name (verifier.fn_name)": list_fns(),
            "verifier classes (kind)": list_verifiers(),
        }
        show_document(listing_document(listing(types), named))


@command()
def presets(
    names: Annotated[
        list[str] | None, typer.Argument(help="Presets to show: names or .json files. By default all.")
    ] = None,
    *,
    as_data: Annotated[bool, option("Print JSON, as in a preset's file.", None, "--json")] = False,
    markdown: Annotated[bool, option("Print a Markdown table.", None, "--markdown")] = False,
    as_schema: Annotated[bool, option("Print the JSON Schema of a preset's file.", None, "--schema")] = False,
) -> None:
    """List the formats of other tools that are read without options: how each is recognised, and which columns it gives."""
    from assay.cli.views import presets_document
    from assay.loading.presets.preset import as_markdown, load_preset
    from assay.loading.presets.preset import presets as built_in
    from assay.loading.presets.preset import schema as schema_of_presets

    if as_data + markdown + as_schema > 1:
        raise UsageError("--json, --markdown and --schema: use only one.")
    if as_schema:
        write_data(json.dumps(schema_of_presets(), indent=2) + "\n")
        return
    shown = [load_preset(name) for name in names] if names else list(built_in())
    if as_data:
        dumped = [preset.model_dump(mode="json", exclude_defaults=True) for preset in shown]
        ascii_only = sys.stdout is None or sys.stdout.encoding.lower() != "utf-8"
        data = dumped[0] if names and len(dumped) == 1 else dumped
        write_data(json.dumps(data, indent=2, ensure_ascii=ascii_only) + "\n")
    elif markdown:
        write_data(as_markdown(shown))
    else:
        show_document(presets_document(shown))


@command()
def graders(
    name: Annotated[str | None, typer.Argument(help="Only this one, or those of a tool.")] = None,
    *,
    expand: Annotated[
        bool, option("Print the checks and steps that make it, as a spec writes them.", None, "--expand")
    ] = False,
    check: Annotated[
        bool, option("Run it on texts with verdicts of the real function, and tell how many differ.", None, "--check")
    ] = False,
    as_data: Annotated[bool, option("Print JSON.", None, "--json")] = False,
) -> None:
    """List the scoring functions of other tools that checks of type `grader` have, each with its version and options.

    With --check, exit with 3 if a verdict differs, or if the grader that is named cannot run.
    """
    from assay.cli.views import graders_document
    from assay.spec.graders_listing import graders as listed
    from assay.spec.graders_listing import graders_named

    if expand + check + as_data > 1:
        raise UsageError("--expand, --check and --json: use only one.")
    named = graders_named(name)
    if expand:
        write_data(_expansions(named))
    elif check:
        _check_graders(named, is_one=name is not None and len(named) == 1)
    elif as_data:
        write_data(json.dumps(listed(name)) + "\n")
    else:
        show_document(graders_document(listed(name), is_one=len(named) == 1))


def _expansions(named: "Sequence[Grader]") -> str:
    from assay.spec.graders_listing import fragment_of, variants
    from assay.spec.importers.files import yaml_text

    texts = []
    for grader in named:
        for options in variants(grader):
            shown = "".join(f", {key}: {json.dumps(value, ensure_ascii=False)}" for key, value in options.items())
            check = fragment_of(grader, options)
            how = f"a function of a row ({grader.place})" if "R" in grader.kind else "other processes"
            texts.append(f"# {grader.name}{shown}{'' if check else f': {how}'}\n")
            texts += [yaml_text([check])] if check else []
    return "".join(texts)


def _check_graders(named: "Sequence[Grader]", *, is_one: bool) -> None:
    from assay.scoring.grader_goldens import check_goldens

    failed = False
    for grader in named:
        checked = check_goldens(grader)
        if checked.problem:
            failed |= is_one
            write_data(f"{checked.name}: not run: {printable(checked.problem)}\n")
        else:
            failed |= checked.differ > 0
            write_data(f"{checked.name}: {checked.differ:,} of {checked.cases:,} differ\n")
    if failed:
        raise typer.Exit(3)


@command({FileOptions: ("modules", "checks")})
def schema(**options: Any) -> None:
    """Print the JSON Schema (draft-07) of a verifier file."""
    from assay.spec.json_schema import schema_text

    import_modules(options["modules"])
    write_data(schema_text(checks_named(options["checks"])))
