"""The Python assertion of promptfoo, by configuration alone.

    assert:
      - {type: python, value: file://glue.py, config: {spec: spec.yaml}}

where ``glue.py`` imports ``get_assert``. promptfoo starts a process for an assertion, which takes seconds: to score its results
instead, ``promptfoo eval -o results.jsonl`` and ``assay score results.jsonl``. Read from promptfoo 0.121.20.
"""

import json
from collections.abc import Mapping
from typing import Any

from assay.adapters.verdicts import check_columns, verdict_of, with_gold
from assay.errors import UsageError
from assay.names import COMPLETION
from assay.scoring.batching import plan_of

__all__ = ["get_assert"]


def get_assert(output: Any, context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the verdict on an output, in the shape of promptfoo's ``GradingResult``.

    The variables of the test are columns. An output that cannot be scored fails with the score 0, and the reason is the error:
    promptfoo knows nothing between.

    Args:
        output: The output; what is not text is read as JSON.
        context: ``vars``, ``prompt``, and ``config`` of the assertion: ``spec``, the path of a spec or its content, and ``gold``, the
            variable that checks read as ``answer`` if it has another name; ``strict``, as of ``assay.compile``.

    Returns:
        ``pass``, ``score``, ``reason``, and the score of each check in ``namedScores``.

    Raises:
        UsageError: The configuration names no spec.
        SpecError: The verifier cannot be used.
    """
    config = context.get("config") or {}
    if "spec" not in config:
        raise UsageError("The assertion names no spec.", "Give one: config: {spec: spec.yaml}")
    plan = plan_of(config["spec"], strict=config.get("strict", True))
    text = output if output is None or isinstance(output, str) else json.dumps(output, default=str)
    variables = context.get("vars") or {}
    row = {"prompt": context.get("prompt"), **variables, "vars": variables, COMPLETION: text}
    result = plan.score_rows([with_gold(row, config.get("gold", "answer"))]).row(0, named=True)
    verdict = verdict_of(result, check_columns(plan))
    return {
        "pass": bool(verdict["passed"]),
        "score": verdict["reward"] or 0.0,
        "reason": verdict["feedback"] or ("all checks pass" if verdict["passed"] else ""),
        "namedScores": verdict["checks"],
    }
