"""Register verifier functions.

    from assay.fns import register_fn

    @register_fn("startswith")
    def startswith(model_output: str, expected, params: dict) -> float:
        return 1.0 if model_output.startswith(str(expected)) else 0.0

A function takes the completion's text, the row's ``expected`` (a JSON value, None if missing) and its ``params``, and returns
the reward. It may have a Polars version, an expression that computes the same; where that returns null, the function runs.
"""

from assay.functions.registry import (
    FnExpr,  # noqa: F401  (the type of ``expr=``, for annotations)
    VerifierFn,
    contains,
    exact_match,
    get,
    list_fns,
    regex_match,
    register,
    register_fn,
    registered_as,  # noqa: F401  (of this module before it kept to its API)
    tool_calls_match,
)
from assay.functions.tool_calls import tool_call

__all__ = [  # noqa: RUF022  (in the order of the API that it keeps)
    "VerifierFn",
    "tool_calls_match",
    "exact_match",
    "contains",
    "regex_match",
    "get",
    "register",
    "register_fn",
    "list_fns",
]

_normalize_json = tool_call
