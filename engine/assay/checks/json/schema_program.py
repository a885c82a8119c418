"""What a worker does with a JSON Schema and values; it runs without Assay."""

import json
import resource
import sys
from collections.abc import Callable
from typing import Any

import jsonschema_rs

_STACK = 256 << 20


def prepare(context: tuple[str, bool, str], _cell: Any) -> Callable[[tuple[str, Any]], list[Any]]:
    """Compile a schema, with whether formats count and the mask for values in messages; return what does a task with a value."""
    schema, formats, mask = context
    sys.setrecursionlimit(20_000)
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    resource.setrlimit(resource.RLIMIT_STACK, (_STACK if hard == resource.RLIM_INFINITY else min(_STACK, hard), hard))
    # a limit on time, not on backtracking, which `not` would turn into a verdict
    patterns = jsonschema_rs.FancyRegexOptions(backtrack_limit=10**15)
    try:
        validator = jsonschema_rs.validator_for(
            json.loads(schema), offline=True, validate_formats=formats, mask=mask, pattern_options=patterns
        )
    except Exception as error:  # noqa: BLE001  (whatever the package raises)
        problem = ["schema", getattr(error, "message", None) or str(error), list(getattr(error, "instance_path", ()))]
        return lambda _: problem

    def evaluate(item: tuple[str, Any]) -> list[Any]:
        task, value = item
        try:
            if task == "valid":
                return ["valid" if validator.is_valid(value) else "invalid"]
            if task == "reason":
                validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            return ["violation", error.message, list(error.instance_path)]
        except Exception as error:  # noqa: BLE001
            return ["raised", str(error)]
        return ["valid"]

    return evaluate
