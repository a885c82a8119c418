"""``assay checks``: list check types, groups, scorers, steps, normalizers, functions and verifier classes."""

import functools
import json
import shlex
from typing import Annotated, Any

import typer

from assay.cli.app import checks_named, command, import_modules, show, takes
from assay.errors import UsageError
from assay.options import FileOptions
from assay.system.stdout import write_data


@command()
@takes(FileOptions, "modules", "checks")
def checks(
    name: Annotated[str | None, typer.Argument(help="Only this one, with examples.")] = None,
    *,
    as_data: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the tables of docs/specs.md and docs/steps.md.")
    ] = False,
    **options: Any,
) -> None:
    """List check types, groups, scorers, steps and normalizers with their params, the functions that rows may name, and verifier classes."""
    from assay.checks.registry import CHECKS
    from assay.classes.registry import list_verifiers
    from assay.cli.terminal import print_entries, print_listing
    from assay.functions.registry import list_fns
    from assay.spec.listing import entries_named, listing, listing_as_markdown

    import_modules(options["modules"])
    types = (*CHECKS, *checks_named(options["checks"]))
    if name is not None:
        if markdown:
            raise UsageError("--markdown prints whole tables.", f"Leave it out: assay checks {shlex.quote(name)}")
        entries = entries_named(name, listing(types))
        if as_data:
            write_data(json.dumps(entries) + "\n")
        else:
            show(functools.partial(print_entries, entries=entries, checks=types))
    elif markdown:
        write_data(listing_as_markdown(types))
    elif as_data:
        write_data(json.dumps(listing(types)) + "\n")
    else:
        named = {
            "functions that rows may name (verifier.fn_name)": list_fns(),
            "verifier classes (kind)": list_verifiers(),
        }
        show(functools.partial(print_listing, listing=listing(types), named=named))
