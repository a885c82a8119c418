"""``assay import``: turn files of other tools into specs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.app import command, to_stderr
from assay.errors import UsageError, counted, likely_ending, printable, shown_path
from assay.system.stdout import write_data

if TYPE_CHECKING:
    from assay.spec.importers.imported import Imported


@command(name="import")
def import_(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A promptfoo configuration, or OpenAI graders; YAML or JSON. No other file is read."
        ),
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="SPEC",
            help="Verifier to write, ending in .yaml; what differs between tests goes into SPEC.tasks.jsonl beside it, for --tasks. "
            "[default: the verifier on stdout]",
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")] = False,
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Exit with 0, not 3, if something has no counterpart.")
    ] = False,
) -> None:
    """Turn a promptfoo configuration or OpenAI graders into a verifier, and name what has no counterpart."""
    from assay.cli.terminal import print_warning
    from assay.spec.importers.files import import_file, yaml_text

    imported = import_file(path)
    text = f"# From {printable(path.name)}, by assay import.\n{yaml_text(imported.spec)}"
    if out is not None:
        written = _write(out, text, imported, overwrite=overwrite)
    elif imported.tasks:
        fact = f"{shown_path(path)}: what differs between its tests goes into a table beside the verifier."
        raise UsageError(fact, "Name a file for the verifier: --out verifier.yaml")
    else:
        write_data(text)
        written = ""
    console = to_stderr()
    for line in imported.left_out:
        print_warning(console, f"left out: {line}")
    for line in imported.differences:
        print_warning(console, f"may differ: {line}")
    if written:
        console.print(written, markup=False, highlight=False, soft_wrap=True)
    if imported.left_out and not lenient:
        raise typer.Exit(3)


def _write(out: Path, text: str, imported: "Imported", *, overwrite: bool) -> str:
    """Write the verifier and the task table; return what was written and what to do next."""
    from assay.spec.importers.files import tasks_text
    from assay.system.atomic_file import check_target, new_file

    if out.suffix.lower() not in (".yaml", ".yml"):
        hint = likely_ending(out, (".yaml", ".yml")) or "Use a name that ends in .yaml"
        raise UsageError(f"{shown_path(out)}: the verifier is written as YAML.", hint)
    files = {out: text}
    if imported.tasks:
        files[out.with_suffix(".tasks.jsonl")] = tasks_text(imported)
    for target in files:
        check_target(target, overwrite=overwrite, how="--overwrite")
    for target, content in files.items():
        with new_file(target) as (file, guard), guard():
            file.write(content.encode())
    names = " and ".join(map(shown_path, files))
    tasks = f" --tasks {shown_path([*files][1])}" if imported.tasks else ""
    of = f", for {counted(len(imported.tasks), 'test')}" if imported.tasks else ""
    return f"wrote {names}{of}\nnext:\n  assay score ROLLOUTS --spec {shown_path(out)}{tasks} --out rewards.parquet"
