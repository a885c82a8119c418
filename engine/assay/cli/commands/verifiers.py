"""``assay verifiers``: register specs under their ids, and list and show them."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from assay.cli.app import command, import_checks, import_modules, takes, to_stderr
from assay.errors import UsageError, printable, shown_path
from assay.options import FileOptions
from assay.system.stdout import write_data


class Action(StrEnum):
    """What to do."""

    create = "create"
    list = "list"
    show = "show"


@command(modules=("assay.writing.registry",))
@takes(FileOptions, "modules", "checks")
def verifiers(
    action: Annotated[Action, typer.Argument(help="Register spec files, list what is registered, or show specs.")],
    names: Annotated[list[str] | None, typer.Argument(help="For create, spec files; for show, ids, or ID@N.")] = None,
    *,
    registry: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Folder of the registry. [default: the nearest verifiers/ with an assay.lock, else ./verifiers]",
        ),
    ] = None,
    as_data: Annotated[bool, typer.Option("--json", help="Print JSON, for list.")] = False,
    **options: Any,
) -> None:
    """Register specs under their ids: --spec takes a registered id in place of a file.

    A changed spec is a new version; --spec ID takes the latest, ID@N that one. The lock says what each version means: a copy that was
    changed is refused.
    """
    from assay.writing.registry import Registry

    import_modules(options["modules"])
    known = Registry(registry)
    if (action is Action.list) == bool(names):
        raise UsageError(f"assay verifiers {action}: {'takes no names' if names else 'name at least one'}.")
    if action is Action.list:
        entries = known.list()
        data = [
            {"id": spec.id, "version": spec.version, "file": str(spec.path), "sha256": spec.sha256} for spec in entries
        ]
        lines = [f"{spec.name}  {spec.sha256[:12]}  {shown_path(spec.path)}\n" for spec in entries]
        write_data(json.dumps(data) + "\n" if as_data else "".join(lines))
        return
    checks = import_checks(options["checks"])
    for name in names or ():
        if action is Action.create:
            created = known.create(name, checks=checks)
            to_stderr().print(
                printable(f"{created}: {known.path(created)}"), markup=False, highlight=False, soft_wrap=True
            )
        else:
            known.load(name, checks=checks)
            write_data(Path(known.path(name)).read_text("utf-8"))
