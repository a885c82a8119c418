"""``assay explain``: what checks compile to."""

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.app import RubricName, command, import_modules, import_rubric, show, takes
from assay.errors import UsageError
from assay.options import FileOptions
from assay.system.stdout import only_data, write_data

if TYPE_CHECKING:
    from assay.spec.verifier import VerifierSpec

__all__ = ["explain"]


@command()
@takes(FileOptions, "modules")
def explain(
    specs: Annotated[list[str] | None, typer.Argument(help="Verifier files.")] = None,
    *,
    rubric: RubricName = None,
    as_data: Annotated[bool, typer.Option("--json", help="Print JSON, with the canonical form.")] = False,
    **options: Any,
) -> None:
    """Show what each check compiles to, or each member of a rubric, which engine answers and why."""
    from assay.cli.terminal import print_explanation
    from assay.compiling.verifiers import verifiers_of_run

    with only_data():
        import_modules(options["modules"])
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
