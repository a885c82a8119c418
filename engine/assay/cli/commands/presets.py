"""``assay presets``: list the formats of other tools that Assay recognises."""

import functools
import json
import sys
from typing import Annotated

import typer

from assay.cli.app import command, show
from assay.errors import UsageError
from assay.system.stdout import write_data


@command()
def presets(
    names: Annotated[
        list[str] | None, typer.Argument(help="Presets to show: names or .json files. By default all.")
    ] = None,
    *,
    as_data: Annotated[bool, typer.Option("--json", help="Print JSON, as in a preset's file.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table of docs/inputs.md.")] = False,
    as_schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of a preset's file.")] = False,
) -> None:
    """List the formats of other tools that are read without options: how each is recognised, and which columns it gives."""
    from assay.cli.terminal import print_presets
    from assay.loading.presets.preset import as_markdown, load_preset, schema
    from assay.loading.presets.preset import presets as built_in

    if as_data + markdown + as_schema > 1:
        raise UsageError("--json, --markdown and --schema: use only one.")
    if as_schema:
        write_data(json.dumps(schema(), indent=2) + "\n")
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
        show(functools.partial(print_presets, presets=shown))
