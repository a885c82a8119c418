"""Register verifier functions.

    from assay.fns import register_fn

    @register_fn("startswith")
    def startswith(model_output: str, expected, params: dict) -> float:
        return 1.0 if model_output.startswith(str(expected)) else 0.0

A function takes the completion's text, the row's ``expected`` (a JSON value, None if missing) and its ``params``, and returns
the reward. It may have a Polars version, an expression that computes the same; where that returns null, the function runs.
"""

from assay.functions.registry import (
    FnExpr,
    Function,
    VerifierFn,
    contains,
    exact_match,
    function,
    get,
    list_fns,
    regex_match,
    register,
    register_fn,
    registered_as,
    tool_calls_match,
)

__all__ = [
    "FnExpr",
    "Function",
    "VerifierFn",
    "contains",
    "exact_match",
    "function",
    "get",
    "list_fns",
    "regex_match",
    "register",
    "register_fn",
    "registered_as",
    "tool_calls_match",
]
