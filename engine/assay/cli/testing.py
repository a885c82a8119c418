"""The command that runs the tests of specs."""

from pathlib import Path
from typing import Annotated, Any

import typer

from assay.cli.app import AsData, Overwrite, check_new, command, option, write_file
from assay.cli.modules import import_checks, import_modules
from assay.cli.results import deliver
from assay.options import FileOptions, SpecTestOptions
from assay.system.stdout import only_data


@command(
    {
        SpecTestOptions: (),
        FileOptions: ("tasks", "mapping", "preset", "modules", "checks", "regex_timeout", "function_timeout"),
    },
    modules=("assay.insight.testing.running",),
    epilog="""\b
Examples:
  assay test quiz.yaml
  assay test specs/*.yaml --junit tests.xml
  assay test quiz.yaml --mutants --min-score 80%""",
)
def run(
    specs: Annotated[list[str], typer.Argument(help="Verifiers: files, or registered names.")],
    *,
    junit: Annotated[str | None, option("Also write XML of JUnit, a suite for each spec.", "OUT.xml")] = None,
    overwrite: Overwrite = False,
    as_data: AsData = False,
    **options: Any,
) -> None:
    """Run the tests of specs: rollouts with what is expected of them. Exits with 3 if one fails, or if they notice too few mutants."""
    from assay.insight.testing.running import run_tests

    with only_data():
        import_modules(options.pop("modules"))
        options["checks"] = import_checks(options.pop("checks"))
        if junit is not None:
            check_new(Path(junit), overwrite=overwrite)
        found = run_tests(specs, **options)
    if junit is not None:
        write_file(Path(junit), found.junit())
    deliver(found.as_json(), found.document(), out=None, as_data=as_data, failed=found.failed)
