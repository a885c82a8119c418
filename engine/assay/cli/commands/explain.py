"""``assay explain``: show what checks compile to."""

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.app import RubricName, command, import_checks, import_modules, import_rubric, show, takes
from assay.errors import UsageError
from assay.options import CompileOptions, FileOptions, settle
from assay.system.stdout import only_data, write_data

if TYPE_CHECKING:
    from assay.spec.verifier import VerifierSpec


@command(modules=("assay.cli.terminal", "assay.compiling.verifiers"))
@takes(FileOptions, "modules", "checks")
def explain(
    specs: Annotated[list[str] | None, typer.Argument(help="Verifier files.")] = None,
    *,
    rubric: RubricName = None,
    as_data: Annotated[bool, typer.Option("--json", help="Print JSON, with the canonical form.")] = False,
    **options: Any,
) -> None:
    """Show what each check with its steps and golds, or each member of a rubric, compiles to: which engine runs it, and why."""
    from assay.cli.terminal import print_explanation
    from assay.compiling.verifiers import verifiers_of_run

    with only_data():
        import_modules(options["modules"])
        settled = settle(CompileOptions, {"checks": import_checks(options["checks"])}, "explain")
        imported = None if rubric is None else import_rubric(rubric)
    if (imported is None) == (not specs):
        raise UsageError("Name verifier files, or a rubric with --rubric module:attribute.")
    loaded = verifiers_of_run(imported or [Path(spec) for spec in specs or ()], settled)
    if as_data:
        write_data(json.dumps([_explained(verifier) for verifier in loaded]) + "\n")
        return
    for verifier in loaded:
        show(functools.partial(print_explanation, verifier=verifier))


def _explained(verifier: "VerifierSpec") -> dict[str, Any]:
    from assay.insight.explanation import explanation

    checks = [_without_defaults(entry) for entry in explanation(verifier)]
    data = {"id": verifier.id, "sha256": verifier.sha256, "canonical": json.loads(verifier.canonical), "checks": checks}
    return data if verifier.share is None else data | {"weight": verifier.share.weight}


_DEFAULTS: dict[str, Any] = {"role": "weight", "weight": 1.0, "depth": 0, "required": False, "negate": False}


def _without_defaults(entry: dict[str, Any]) -> dict[str, Any]:
    """Leave out what a spec leaves out, and what a check has none of."""
    return {name: value for name, value in entry.items() if value not in (None, [], "", _DEFAULTS.get(name))}
