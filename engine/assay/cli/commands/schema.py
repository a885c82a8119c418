"""``assay schema``: print the JSON Schema of a verifier file."""

import json
from typing import Any

from assay.cli.app import checks_named, command, import_modules, takes
from assay.options import FileOptions
from assay.system.stdout import write_data


@command()
@takes(FileOptions, "modules", "checks")
def schema(**options: Any) -> None:
    """Print the JSON Schema (draft-07) of a verifier file."""
    from assay.spec.json_schema import json_schema

    import_modules(options["modules"])
    checks = checks_named(options["checks"])
    write_data(json.dumps(json_schema(checks), indent=2) + "\n")
