"""Verifier functions: what a row names to have itself scored.

    from assay.fns import register_fn

    @register_fn("startswith")
    def startswith(model_output: str, expected, params: dict) -> float:
        return 1.0 if model_output.startswith(str(expected)) else 0.0

A function takes the completion's text, the row's ``expected`` (a JSON value, None when absent) and its ``params``, and returns
the reward. A function may bring a *twin*, the same as a Polars expression; what the twin leaves null the function answers.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import polars as pl

from assay.calls.limits import Limits
from assay.errors import UsageError, did_you_mean, said_by
from assay.expressions.lane import OTHER_ROWS, is_elementwise
from assay.expressions.regex.search import search
from assay.functions.pattern_twin import regex_match_expr
from assay.functions.text_twins import IGNORE_CASE, contains_expr, exact_match_expr
from assay.functions.tool_calls import TOLERANCE, tool_calls_differ, tool_calls_match_expr
from assay.system.code_hash import described

__all__ = [
    "FnExpr",
    "Function",
    "Reference",
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

VerifierFn = Callable[[str, Any, dict[str, Any]], float]
"""``(model_output, expected, params) -> reward``."""

FnExpr = Callable[[pl.Expr, pl.Expr, dict[str, Any]], pl.Expr]
"""A twin: ``(model_output, expected, params) -> reward``, the first two String columns, the reward Boolean or Float64.

It is elementwise. ``expected`` is null where the row has none; rows whose ``expected`` is no string are not asked of it. Null
means "ask the function".
"""


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def exact_match(model_output: str, expected: Any, params: dict[str, Any]) -> float:
    """1.0 when the output equals ``str(expected)``, both stripped; in lower case when ``params["ignore_case"]`` is truthy."""
    output, gold = _text(model_output).strip(), _text(expected).strip()
    if (params or {}).get(IGNORE_CASE):
        output, gold = output.lower(), gold.lower()
    return 1.0 if output == gold else 0.0


def contains(model_output: str, expected: Any, params: dict[str, Any]) -> float:
    """1.0 when ``str(expected)`` is not empty and occurs in the output; in lower case when ``params["ignore_case"]`` is truthy."""
    output, gold = _text(model_output), _text(expected)
    if (params or {}).get(IGNORE_CASE):
        output, gold = output.lower(), gold.lower()
    return 1.0 if gold and gold in output else 0.0


def regex_match(model_output: str, expected: Any, params: dict[str, Any], *, limits: Limits | None = None) -> float:
    """1.0 when ``str(expected)`` is a non-empty pattern that ``re.search`` finds; ``IGNORECASE`` when ``params["ignore_case"]``.

    Raises:
        re.error: The pattern is not valid.
        TimeoutError: Only backtracking can tell, and it takes longer than the limits of the run allow: 0.2 s by default.
        MemoryError: Or more than 1 GiB.
    """
    pattern = _text(expected)
    flags = re.IGNORECASE if (params or {}).get(IGNORE_CASE) else 0
    return 1.0 if pattern and search(pattern, _text(model_output), limits, flags=flags) else 0.0


def tool_calls_match(model_output: str, expected: Any, params: dict[str, Any]) -> float:
    """1.0 when the JSON object in the output is the wanted tool call.

    ``tool`` and ``action`` must be equal, ``ref`` and ``text`` where expected has them, and each axis of a ``coordinate`` within
    ``params["coordinate_tolerance"]`` (default 25). Either side may be fenced or have words around it.
    """
    return 1.0 if tool_calls_differ(_text(model_output), expected, params or {})[0] == "" else 0.0


# ── the registry ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Function:
    """A registered function.

    Attributes:
        name: What rows call it.
        fn: The definition.
        expr: Its twin; None: it runs once for each distinct (text, expected, params).
        params: The params that it reads; rows that differ in others run together. None: it may read any.
        builtin: Whether it is one of Assay's: it needs an ``expected``, and its twin takes every ``str(expected)``.
        takes_json: Whether its twin takes an object as JSON text instead.
        complaint: What a failing row is told, before the expected value in quotes.
        tells: For a function with reasons of its own: ``(text, expected, params)`` to a reason and an error.
        limited: Whether the function takes the ``limits`` of a run.
    """

    name: str
    fn: VerifierFn
    expr: FnExpr | None = None
    params: tuple[str, ...] | None = None
    builtin: bool = False
    takes_json: bool = False
    complaint: str = "expected "
    tells: Callable[[str, Any, Mapping[str, Any]], tuple[str, str | None]] | None = None
    limited: bool = False
    tried: dict[str, bool] = field(default_factory=dict, init=False, compare=False, repr=False)
    """Whether its twin is elementwise, by params; asked once."""

    def within(self, limits: Limits | None) -> "Function":
        """This function for one run."""
        if not self.limited:
            return self
        return replace(self, fn=partial(self.fn, limits=limits))  # type: ignore[call-arg]

    def twin_is_elementwise(self, twin: pl.Expr, params: Mapping[str, Any], names: tuple[str, str]) -> bool:
        """Whether its twin, made for some params, says of each row of two columns of text what it says of that row alone."""
        key = json.dumps(params, sort_keys=True)
        if key not in self.tried:
            if len(self.tried) >= _MOST_TRIED:
                self.tried.clear()
            self.tried[key] = is_elementwise(twin, names, tried=True)
        return self.tried[key]


_MOST_TRIED = 256

_BUILTIN = (
    Function("exact_match", exact_match, exact_match_expr, (IGNORE_CASE,), builtin=True),
    Function("contains", contains, contains_expr, (IGNORE_CASE,), builtin=True, complaint="does not contain "),
    Function(
        "regex_match",
        regex_match,
        regex_match_expr,
        (IGNORE_CASE,),
        builtin=True,
        complaint="does not match the pattern ",
        limited=True,
    ),
    Function(
        "tool_calls_match",
        tool_calls_match,
        tool_calls_match_expr,
        (TOLERANCE,),
        builtin=True,
        takes_json=True,
        tells=tool_calls_differ,
    ),
)
_REGISTRY: dict[str, Function] = {one.name: one for one in _BUILTIN}


def function(fn_name: str) -> Function | None:
    """The registered function of a name, with its twin; None when there is none."""
    return _REGISTRY.get(fn_name)


def registered_as(fn: object) -> str:
    """The name under which a function is registered; ``""`` for one that is not."""
    return next((name for name, one in _REGISTRY.items() if one.fn is fn), "")


def get(fn_name: str) -> VerifierFn:
    """The function of a name.

    Raises:
        ValueError: No function has that name; the message lists those there are.
    """
    found = _REGISTRY.get(fn_name)
    if found is None:
        known = ", ".join(list_fns())
        near = did_you_mean(str(fn_name), _REGISTRY)
        raise ValueError(
            f"No verifier function is called {fn_name!r}. {near + ' ' if near else ''}Registered: {known}."
        )
    return found.fn


def users_own() -> tuple[Function, ...]:
    """The functions that are not Assay's, by name."""
    return tuple(one for _, one in sorted(_REGISTRY.items()) if not one.builtin)


def adopt(functions: Iterable[Function]) -> None:
    """Register functions as they are registered in another process, in place of what an earlier run of this process had."""
    _REGISTRY.update({one.name: one for one in functions})


@dataclass(frozen=True)
class Reference:
    """What stands for a registered function on its way to another process.

    Attributes:
        name: Its name in the registry.
        code: Where it comes from, and the hash of its source.
        fn: The function, where it travels itself.
    """

    name: str
    code: dict[str, Any]
    fn: VerifierFn | None = None

    @classmethod
    def of(cls, name: str, *, travels: bool = False) -> "Reference":
        """The reference to a function that is registered here."""
        fn = get(name)
        return cls(name, described(fn), fn if travels else None)

    def resolve(self) -> VerifierFn:
        """The function, registered in this process.

        Raises:
            UsageError: It is not registered here and did not travel, or the name is that of another function.
        """
        if self.name not in _REGISTRY and self.fn is not None:
            _REGISTRY[self.name] = Function(self.name, self.fn)
        known = function(self.name)
        if known is None or (known.fn is not self.fn and described(known.fn) != self.code):
            here = "not registered" if known is None else "another function"
            raise UsageError(
                f"The verifier function {self.name!r} ({self.code['module']}.{self.code['qualname']}) is {here} in this process.",
                "Register it at the top of a module that both processes import.",
            )
        return known.fn


def list_fns() -> list[str]:
    """Names of all registered functions, in order of the alphabet."""
    return sorted(_REGISTRY)


def register(
    fn_name: str, fn: VerifierFn, *, expr: FnExpr | None = None, params: tuple[str, ...] | list[str] | None = None
) -> None:
    """Register a function; a name of yours that is registered again takes the new function.

    Args:
        fn_name: What rows will call it.
        fn: ``(model_output, expected, params) -> reward``, any finite number.
        expr: Its twin, the same with Polars expressions; ``assay.testing.assert_fn_conforms`` proves that the two agree.
        params: Names of the params it reads; rows that differ in other params only then run together.

    Raises:
        ValueError: The name is empty or one of the built-in functions.
        TypeError: The function or the twin cannot be called.
    """
    if not isinstance(fn_name, str) or not fn_name.strip() or not fn_name.isprintable():
        raise ValueError(f"{fn_name!r} cannot be the name of a verifier function: use printable characters.")
    if fn_name in _REGISTRY and _REGISTRY[fn_name].builtin:
        raise ValueError(f"{fn_name!r} is built in; register yours under another name.")
    for given in (fn, expr):
        if given is not None and not callable(given):
            raise TypeError(f"{fn_name}: {type(given).__name__} is not callable.")
    if isinstance(params, str):
        raise TypeError(f"{fn_name}: params is a list of names: params=[{params!r}]")
    if expr is not None:
        _check_twin(fn_name, expr)
    _REGISTRY[fn_name] = Function(fn_name, fn, expr, None if params is None else tuple(params))


def register_fn(
    fn_name: str, *, expr: FnExpr | None = None, params: tuple[str, ...] | list[str] | None = None
) -> Callable[[VerifierFn], VerifierFn]:
    """Decorator form of ``register``; the function stays as it was."""
    if not isinstance(fn_name, str):
        raise TypeError('register_fn takes a name: @register_fn("startswith")')
    return partial(_registered, fn_name, expr, params)


def _registered(
    fn_name: str, expr: FnExpr | None, params: tuple[str, ...] | list[str] | None, fn: VerifierFn
) -> VerifierFn:
    register(fn_name, fn, expr=expr, params=params)
    return fn


def _check_twin(fn_name: str, expr: FnExpr) -> None:
    """Find a twin of the wrong type when it is registered, not when a million rows wait for it."""
    schema = {"model_output": pl.String, "expected": pl.String}
    try:
        made = expr(pl.col("model_output"), pl.col("expected"), {})
    except Exception:  # noqa: BLE001  (it may need params to be built)
        return
    if not isinstance(made, pl.Expr):
        raise TypeError(f"{fn_name}: the twin returns {type(made).__name__}, not a Polars expression.")
    try:
        dtype = pl.LazyFrame(schema=schema).select(made.alias("reward")).collect_schema()["reward"]
    except pl.exceptions.PolarsError as wrong:
        raise TypeError(f"{fn_name}: the twin cannot run: {said_by(wrong)}") from None
    if not (dtype == pl.Boolean or dtype.is_numeric()):
        raise TypeError(f"{fn_name}: the twin gives {dtype}, not Boolean or Float64.")
    if not is_elementwise(made, schema, tried=False):
        raise TypeError(f"{fn_name}: the twin cannot be used, {OTHER_ROWS}.")
