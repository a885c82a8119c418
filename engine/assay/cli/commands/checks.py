"""``assay checks``: list the check types, functions and verifier classes."""

import functools
import json
from typing import Annotated, Any

import typer

from assay.cli.app import checks_named, command, import_modules, show, takes
from assay.options import FileOptions
from assay.system.stdout import write_data

__all__ = ["checks"]


@command()
@takes(FileOptions, "modules", "checks")
def checks(
    *,
    as_data: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table of docs/specs.md.")] = False,
    **options: Any,
) -> None:
    """List the check types with their params, the functions that rows may name, and the verifier classes."""
    from assay.checks import CHECKS
    from assay.classes.registry import list_verifiers
    from assay.cli.terminal import print_listing
    from assay.functions.registry import list_fns
    from assay.spec.listing import as_json, as_markdown

    import_modules(options["modules"])
    types = (*CHECKS, *checks_named(options["checks"]))
    if markdown:
        write_data(as_markdown())
    elif as_data:
        write_data(json.dumps(as_json(types)) + "\n")
    else:
        named = {
            "functions that rows may name (verifier.fn_name)": list_fns(),
            "verifier classes (kind)": list_verifiers(),
        }
        show(functools.partial(print_listing, listing=as_json(types), named=named))
