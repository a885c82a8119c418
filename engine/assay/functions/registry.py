"""Verifier functions: a row names the function that scores it.

    from assay.fns import register_fn

    @register_fn("startswith")
    def startswith(model_output: str, expected, params: dict) -> float:
        return 1.0 if model_output.startswith(str(expected)) else 0.0

A function takes the completion's text, the row's ``expected`` (a JSON value, None when absent) and its ``params``, and returns
the reward. A function may have a *twin*, the same as a Polars expression; where the twin returns null, the function runs.
"""

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import wraps
from typing import Any

import polars as pl

from assay.calls.limits import Limits
from assay.calls.places import defined_at
from assay.errors import UsageError, describe_error, did_you_mean
from assay.expressions.pairs import contain_expr, equal_expr
from assay.expressions.shared_columns import OTHER_ROWS, is_elementwise
from assay.frozen import frozen
from assay.functions.request import golds_of, is_listed
from assay.functions.tool_calls import TOLERANCE, tool_calls_differ, tool_calls_match_expr
from assay.system.code_hash import described

VerifierFn = Callable[[str, Any, dict[str, Any]], float]
"""``(model_output, expected, params) -> reward``."""

FnExpr = Callable[[pl.Expr, pl.Expr, dict[str, Any]], pl.Expr]
"""A twin: ``(model_output, expected, params) -> reward``, the first two String columns, the reward Boolean or Float64.

It must be elementwise. It runs where ``expected`` is a string or missing (null); where it returns null, the function runs.
"""

Call = tuple[str, Any, dict[str, Any]]
"""The arguments of a function."""

IGNORE_CASE = "ignore_case"


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _any_gold(compare: VerifierFn) -> VerifierFn:
    """Compare with each gold of a list, until one matches; an error counts if all golds raise."""

    @wraps(compare)
    def compare_each(model_output: str, expected: Any, params: dict[str, Any]) -> float:
        if not is_listed(expected):
            return compare(model_output, expected, params)
        golds = golds_of(expected) or [None]
        errors: list[Exception] = []
        for gold in golds:
            try:
                if compare(model_output, gold, params):
                    return 1.0
            except Exception as error:  # noqa: BLE001  (the first is raised below, unless a gold can be compared)
                errors.append(error)
        if len(errors) == len(golds):
            raise errors[0]
        return 0.0

    return compare_each


@_any_gold
def exact_match(model_output: str, expected: Any, params: dict[str, Any]) -> float:
    """1.0 if the output equals ``str(expected)``, both stripped; in lower case if ``params["ignore_case"]`` is truthy.

    A list or an array is a list of golds, one of which must match; so for the other built-in functions.
    """
    output, gold = _text(model_output).strip(), _text(expected).strip()
    if (params or {}).get(IGNORE_CASE):
        output, gold = output.lower(), gold.lower()
    return 1.0 if output == gold else 0.0


@_any_gold
def contains(model_output: str, expected: Any, params: dict[str, Any]) -> float:
    """1.0 if ``str(expected)`` is not empty and occurs in the output; in lower case if ``params["ignore_case"]`` is truthy."""
    output, gold = _text(model_output), _text(expected)
    if (params or {}).get(IGNORE_CASE):
        output, gold = output.lower(), gold.lower()
    return 1.0 if gold and gold in output else 0.0


@_any_gold
def regex_match(model_output: str, expected: Any, params: dict[str, Any]) -> float:
    """1.0 if ``str(expected)`` is a non-empty pattern that ``re.search`` finds; ``IGNORECASE`` if ``params["ignore_case"]``.

    Raises:
        re.error: The pattern is not valid.
        TimeoutError: The pattern needs backtracking, which takes longer than the run allows: 0.2 s by default.
        MemoryError: Backtracking takes more than 1 GiB.
    """
    (reward,) = regex_matches([(model_output, expected, params)])
    if isinstance(reward, Exception):
        raise reward
    return reward


def regex_matches(calls: Sequence[Call], limits: Limits | None = None) -> list[float | Exception]:
    """``regex_match`` for many rows without lists of golds, which share the processes that backtracking needs."""
    from assay.expressions.regex.pattern_column import search_uncompiled
    from assay.expressions.regex.search import Question, search_each

    results: list[float | Exception] = [0.0] * len(calls)
    questions: dict[int, Question] = {}
    for number, (model_output, expected, params) in enumerate(calls):
        flags = re.IGNORECASE if (params or {}).get(IGNORE_CASE) else 0
        try:
            question = Question(_text(expected), _text(model_output), flags)
        except (ValueError, RecursionError) as error:  # str() of a number with too many digits, or of a deep list
            results[number] = error
            continue
        is_match = search_uncompiled(question.pattern, question.text, flags) if question.pattern else False
        if is_match is None:
            questions[number] = question
        else:
            results[number] = float(is_match)
    for number, answer in zip(questions, search_each([*questions.values()], limits), strict=True):
        results[number] = answer if isinstance(answer, Exception) else float(answer)
    return results


@_any_gold
def tool_calls_match(model_output: str, expected: Any, params: dict[str, Any]) -> float:
    """1.0 if the JSON object in the output is the expected tool call.

    ``tool`` and ``action`` must be equal, also ``ref`` and ``text`` if ``expected`` has them, and each axis of ``coordinate`` must
    be within ``params["coordinate_tolerance"]`` (default 25). Either side may be fenced or surrounded by text.
    """
    return 1.0 if tool_calls_differ(_text(model_output), expected, params or {})[0] == "" else 0.0


def exact_match_expr(output: pl.Expr, expected: pl.Expr, params: Mapping[str, Any]) -> pl.Expr:
    """``exact_match`` as an elementwise expression."""
    return equal_expr(output, expected, lowered=bool(params.get(IGNORE_CASE)))


def contains_expr(output: pl.Expr, expected: pl.Expr, params: Mapping[str, Any]) -> pl.Expr:
    """``contains`` as an elementwise expression."""
    return contain_expr(output, expected, lowered=bool(params.get(IGNORE_CASE))) & (expected != "")


def regex_match_expr(output: pl.Expr, expected: pl.Expr, params: Mapping[str, Any]) -> pl.Expr:
    """``regex_match`` as an elementwise expression; null where the function must run."""
    from assay.expressions.regex.pattern_column import search_patterns_expr

    return search_patterns_expr(output, expected, re.IGNORECASE if params.get(IGNORE_CASE) else 0)


@frozen
class Function:
    """A registered function."""

    name: str
    fn: VerifierFn
    expr: FnExpr | None = None
    params: tuple[str, ...] | None = None
    builtin: bool = False
    takes_json: bool = False
    complaint: str = "expected "
    explain: Callable[[str, Any, Mapping[str, Any]], tuple[str, str | None]] | None = None
    many: Callable[[Sequence[Call], Limits | None], list[float | Exception]] | None = None
    tried: dict[str, bool] = field(default_factory=dict, init=False, compare=False, repr=False)
    """Whether its twin is elementwise, by params; tried once for each."""

    def twin_is_elementwise(self, twin: pl.Expr, params: Mapping[str, Any], names: tuple[str, str]) -> bool:
        """Whether its twin, built for some params, gives each row of two text columns the same answer as that row alone."""
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
        many=regex_matches,
    ),
    Function(
        "tool_calls_match",
        tool_calls_match,
        tool_calls_match_expr,
        (TOLERANCE,),
        builtin=True,
        takes_json=True,
        explain=tool_calls_differ,
    ),
)
_REGISTRY: dict[str, Function] = {builtin.name: builtin for builtin in _BUILTIN}


def function(fn_name: str) -> Function | None:
    """Return the function registered under a name, with its twin; None if there is none."""
    return _REGISTRY.get(fn_name)


def registered_as(fn: object) -> str:
    """Return the name under which a function is registered, or ``""``."""
    return next((name for name, entry in _REGISTRY.items() if entry.fn is fn), "")


def get(fn_name: str) -> VerifierFn:
    """Return the function registered under a name.

    Raises:
        ValueError: No function has that name; the message lists the names that exist.
    """
    entry = _REGISTRY.get(fn_name)
    if entry is None:
        names = ", ".join(list_fns())
        guess = did_you_mean(str(fn_name), _REGISTRY)
        raise ValueError(
            f"No verifier function is called {fn_name!r}. {guess + ' ' if guess else ''}Registered: {names}."
        )
    return entry.fn


def user_functions() -> tuple[Function, ...]:
    """Return the functions that users registered, sorted by name."""
    return tuple(entry for _, entry in sorted(_REGISTRY.items()) if not entry.builtin)


def adopt(functions: Iterable[Function]) -> None:
    """Register functions as they are registered in another process, in place of what an earlier run of this process had."""
    _REGISTRY.update({entry.name: entry for entry in functions})


@frozen
class FunctionReference:
    """What stands for a registered function on its way to another process."""

    name: str
    code: dict[str, Any]
    fn: VerifierFn | None = None

    @classmethod
    def of(cls, name: str, *, travels: bool = False) -> "FunctionReference":
        """The reference to a function that is registered here."""
        fn = get(name)
        return cls(name, described(fn), fn if travels else None)

    def resolve(self) -> VerifierFn:
        """The function, registered in this process."""
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
    """Return the names of all registered functions, sorted."""
    return sorted(_REGISTRY)


def register(
    fn_name: str, fn: VerifierFn, *, expr: FnExpr | None = None, params: tuple[str, ...] | list[str] | None = None
) -> None:
    """Register a function; registering a name again replaces your function.

    Args:
        fn_name: The name that rows use.
        fn: ``(model_output, expected, params) -> reward``, any finite number.
        expr: Its twin, the same with Polars expressions; ``assay.testing.assert_fn_conforms`` checks that the two agree.
        params: Names of the params that it reads; rows that differ only in other params then run together.

    Raises:
        ValueError: The name is empty or belongs to a built-in function.
        TypeError: The function or the twin is not callable, or the function does not take these arguments.
    """
    if not isinstance(fn_name, str) or not fn_name.strip() or not fn_name.isprintable():
        raise ValueError(f"{fn_name!r} cannot be the name of a verifier function: use printable characters.")
    if fn_name in _REGISTRY and _REGISTRY[fn_name].builtin:
        raise ValueError(f"{fn_name!r} is built in; register yours under another name.")
    for candidate in (fn, expr):
        if candidate is not None and not callable(candidate):
            raise TypeError(f"{fn_name}: {type(candidate).__name__} is not callable.")
    _check_signature(fn_name, fn)
    if isinstance(params, str):
        raise TypeError(f"{fn_name}: params is a list of names: params=[{params!r}]")
    if expr is not None:
        _check_twin(fn_name, expr)
    _REGISTRY[fn_name] = Function(fn_name, fn, expr, None if params is None else tuple(params))


def register_fn(
    fn_name: str, *, expr: FnExpr | None = None, params: tuple[str, ...] | list[str] | None = None
) -> Callable[[VerifierFn], VerifierFn]:
    """Register the decorated function and return it unchanged; see ``register``."""
    if not isinstance(fn_name, str):
        raise TypeError('register_fn takes a name: @register_fn("startswith")')

    def registered(fn: VerifierFn) -> VerifierFn:
        register(fn_name, fn, expr=expr, params=params)
        return fn

    return registered


def _check_signature(fn_name: str, fn: VerifierFn) -> None:
    try:
        signature = inspect.signature(fn)
    except ValueError:  # written in C, without a description of its parameters
        return
    try:
        signature.bind("", None, {})
    except TypeError:
        place = defined_at(fn)
        raise TypeError(
            f"{fn_name}: a verifier function is called with (model_output, expected, params); "
            f"this one takes {signature}{f' ({place})' if place else ''}."
        ) from None


def _check_twin(fn_name: str, expr: FnExpr) -> None:
    schema = {"model_output": pl.String, "expected": pl.String}
    try:
        twin = expr(pl.col("model_output"), pl.col("expected"), {})
    except Exception:  # noqa: BLE001  (it may need params)
        return
    if not isinstance(twin, pl.Expr):
        raise TypeError(f"{fn_name}: the twin returns {type(twin).__name__}, not a Polars expression.")
    try:
        dtype = pl.LazyFrame(schema=schema).select_seq(twin.alias("reward")).collect_schema()["reward"]
    except pl.exceptions.PolarsError as exception:
        raise TypeError(f"{fn_name}: the twin cannot run: {describe_error(exception)}") from None
    if not (dtype == pl.Boolean or dtype.is_numeric()):
        raise TypeError(f"{fn_name}: the twin gives {dtype}, not Boolean or Float64.")
    if not is_elementwise(twin, schema, tried=False):
        raise TypeError(f"{fn_name}: the twin cannot be used, {OTHER_ROWS}.")
