"""The check type tool_calls: the calls that a task expects."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import zip_longest
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import Field, ValidationInfo, field_validator

from assay.checks.base import Example
from assay.checks.tools.base import CallsCheck, CallsParams
from assay.checks.tools.bfcl import bfcl_difference
from assay.checks.tools.equality import ArgumentDifference, call_text, difference, listed_names, name_text, shown
from assay.checks.tools.golds import TOOLS, ExpectedCall, expected_calls, function_docs
from assay.expressions.json import NOT_JSON, loads
from assay.steps.tool_calls.calls import Call
from assay.values.references import OF_ROW

MAX_COMPARISONS = 1_000_000
"""Maximum pairs of a call and an expected call with its name."""

_NOTHING = frozenset[str]()
_Comparison = Literal["exact", "subset", "bfcl", "ignore"]


class ToolCallsParams(CallsParams):
    """The calls that are expected and how they are compared."""

    spellings: ClassVar[Mapping[str, str]] = {"calls": "value"}

    arguments: _Comparison = Field(
        default="exact",
        description="How arguments are compared: `exact`, `subset` (the call may have others), `bfcl` (each expected argument "
        "lists the values that are allowed), `ignore` (names only).",
    )
    value: Any = Field(
        description="The calls: a list of {name, arguments}, calls of a message, or BFCL's {name: {argument: [values]}}; an "
        "empty list expects no call."
    )
    order: Literal["any", "same"] = Field(default="any", description="Whether the order of calls counts.")
    score: Literal["all", "share"] = Field(
        default="all",
        description="`share`: the calls that match as a share of all or of the expected, whichever are more.",
    )
    ignore: list[str] = Field(
        default=[], description="Arguments that do not count, as `argument` or `function.argument`."
    )
    defaults: dict[str, Any] = Field(
        default={},
        description="Values of arguments that a call or the expected call leaves out, by `argument` or `function.argument`; for "
        "`exact` and `subset`.",
    )
    tools: Any = Field(
        default=None, description="For `bfcl`: the functions and their parameters; if not given, the column `tools`."
    )

    @field_validator("value")
    @classmethod
    def _usable(cls, value: Any, info: ValidationInfo) -> Any:
        # a malformed gold of BFCL's scores 0.0, as there
        if not (info.context == OF_ROW and info.data.get("arguments") == "bfcl" and loads(value) is not NOT_JSON):
            expected_calls(value)
        return value

    @field_validator("tools")
    @classmethod
    def _readable(cls, tools: Any) -> Any:
        if tools is not None:
            function_docs(tools)
        return tools

    @field_validator("defaults")
    @classmethod
    def _fitting(cls, defaults: dict[str, Any], info: Any) -> dict[str, Any]:
        how = info.data.get("arguments", "exact")
        if defaults and how not in ("exact", "subset"):
            raise ValueError(f"they belong to `arguments: exact` and `subset`, not to `{how}`")
        return defaults


_Whys = dict[int, ArgumentDifference | None]
"""Why calls do not match an expected call, by their places; None of a call whose arguments are no object."""


class _Matching(NamedTuple):
    """Which calls match which expected calls.

    Attributes:
        matched: How many match.
        missing: The first expected call that no call matches.
        nearest: Where the first call of its name stands that was free, and why it does not match.
        extra: The first call that matches nothing.
    """

    matched: int
    missing: ExpectedCall | None
    nearest: tuple[int, ArgumentDifference | None] | None
    extra: Call | None


class ToolCalls(CallsCheck):
    """The calls are the expected ones: as many, each expected call takes the first free call that matches it.

    A call whose arguments are no JSON object matches nothing. ``bfcl`` compares as the Berkeley Function-Calling Leaderboard
    (ast_checker.py) does: types by the function's parameters, strings without blanks and some punctuation.
    """

    type = "tool_calls"
    golds = replace(
        CallsCheck.golds,
        beside=TOOLS,
        from_rows=lambda given: {TOOLS: TOOLS} if given.get("arguments") == "bfcl" else {},
    )
    Params = ToolCallsParams
    params: ToolCallsParams
    examples = (
        Example(
            '[{"name": "weather", "arguments": {"city": "Oslo"}}]',
            1.0,
            {"value": [{"name": "weather", "arguments": {"city": "Oslo"}}]},
        ),
        Example(
            '[{"name": "weather", "arguments": {"city": "Bergen"}}]',
            0.0,
            {"value": [{"name": "weather", "arguments": {"city": "Oslo"}}]},
        ),
        Example(
            '[{"name": "time", "arguments": {}}, {"name": "weather", "arguments": {"city": "Oslo", "days": 2}}]',
            0.5,
            {"value": [{"weather": {"city": "Oslo"}}, {"date": {}}], "arguments": "subset", "score": "share"},
        ),
        Example(
            '[{"name": "weather", "arguments": {"city": "oslo", "days": 3}}]',
            1.0,
            {
                "value": [{"weather": {"city": ["Oslo", "Oslo, Norway"], "days": [3, ""]}}],
                "arguments": "bfcl",
                "tools": [
                    {
                        "name": "weather",
                        "parameters": {
                            "type": "dict",
                            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                            "required": ["city"],
                        },
                    }
                ],
            },
        ),
        Example("[]", 1.0, {"value": []}),
        Example('[{"name": "weather", "arguments": {}}]', 0.0, {"value": []}),
    )

    def prepared(self, gold: Any) -> tuple[ExpectedCall, ...]:
        return expected_calls(gold)

    def check_beside(self, other: str) -> "ToolCalls":
        check = ToolCalls(self.params.model_copy(update={TOOLS: other}))
        _ = check._docs  # it raises for functions that cannot be read
        return check

    def scores_faulty(self, gold: Any) -> bool:
        return self.params.arguments == "bfcl" and isinstance(gold, str) and loads(gold) is not NOT_JSON

    def judge_calls(self, calls: list[Call], gold: tuple[ExpectedCall, ...]) -> tuple[float, str]:
        if self.params.arguments == "bfcl":
            docs = self._docs
            unknown = [call.name for call in gold if call.name not in docs and self.same_name(call.name) not in docs]
            if unknown:
                raise ValueError(f"`tools` has no function {listed_names(unknown)}, which is expected")
        is_share, first, whys = self.params.score == "share", 0, None
        if len(calls) * len(gold) <= MAX_COMPARISONS:
            first, whys = self._in_order(calls, gold)
        elif len(calls) != len(gold) and not is_share:
            return 0.0, _numbers(calls, gold)
        if first == len(calls) == len(gold):
            return 1.0, ""
        matching = self._matching(calls, gold, first, whys)
        most = max(len(calls), len(gold))
        if matching.matched == most:
            return 1.0, ""
        return (matching.matched / most if is_share else 0.0), _reason(calls, gold, matching)

    def _in_order(self, calls: Sequence[Call], gold: Sequence[ExpectedCall]) -> tuple[int, _Whys]:
        """Return how many of the first calls match the expected call at their place, as nearly all right ones do, and why the next does not."""
        for at, (call, expected) in enumerate(zip(calls, gold)):  # noqa: B905  (up to the shorter)
            if call["name"] != expected.name and self.same_name(call["name"]) != self.same_name(expected.name):
                return at, {}
            fits, why = self._compare(call, expected)
            if not fits:
                return at, {at: why}
        return min(len(calls), len(gold)), {}

    @cached_property
    def _docs(self) -> Mapping[str, dict[str, Any]]:
        docs: dict[str, dict[str, Any]] = {}
        for name, schema in function_docs(self.params.tools).items():
            docs.setdefault(self.same_name(name), schema)
        return docs

    def _places(self, calls: Sequence[Call], gold: Sequence[ExpectedCall], first: int) -> list[list[int]]:
        """Return for each expected call, from the first on, the places of the calls that may match it."""
        names, called = [call.name for call in gold[first:]], [call["name"] for call in calls[first:]]
        if self.params.dots != "keep":
            names, called = [*map(self.same_name, names)], [*map(self.same_name, called)]
        if self.params.order == "same":
            pairs = zip_longest(names, called[: len(names)])
            return [[at] if own == name else [] for at, (name, own) in enumerate(pairs, first)]
        by_name: dict[str, list[int]] = {}
        for at, name in enumerate(called, first):
            if isinstance(name, str):
                by_name.setdefault(name, []).append(at)
        places = [by_name.get(name, []) for name in names]
        if len(calls) * len(gold) > MAX_COMPARISONS and sum(map(len, places)) > MAX_COMPARISONS:
            raise ValueError(f"{len(calls)} calls and {len(gold)} expected calls are too many to compare")
        return places

    def _matching(
        self, calls: Sequence[Call], gold: Sequence[ExpectedCall], first: int = 0, whys: _Whys | None = None
    ) -> _Matching:
        """Return which calls match; the first are known to match in order, and why some calls do not match the expected call after them."""
        if whys and first + 1 == len(calls) == len(gold):  # the last two, which do not match
            return _Matching(first, gold[first], (first, whys[first]), calls[first])
        rest = dict(enumerate(calls[first:], first))
        missing = nearest = None
        for places, expected in zip(self._places(calls, gold, first), gold[first:], strict=True):
            whys = whys or {}
            for at in places:
                if at in whys:
                    continue
                fits, whys[at] = self._compare(calls[at], expected)
                if fits:
                    places.remove(at)
                    del rest[at]
                    break
            else:
                if missing is None:
                    missing, nearest, differences = expected, places, whys
            whys = None
        matched, extra = len(calls) - len(rest), next(iter(rest.values()), None)
        if not nearest:  # those after it may have taken others
            return _Matching(matched, missing, None, extra)
        return _Matching(matched, missing, (nearest[0], differences[nearest[0]]), extra)

    def mismatch(self, calls: Sequence[Call], gold: Sequence[ExpectedCall]) -> tuple[int, list[str]] | None:
        """Return where the first free call stands that has the name of the first expected call which none matches, and what differs.

        These are the names of its arguments, none where they are no object; None is returned where there is no such call.
        """
        matching = self._matching(calls, gold)
        if matching.missing is None or matching.nearest is None:
            return None
        at, why = matching.nearest
        names = list[str]()
        while why is not None and why.argument not in names:
            names.append(why.argument)
            params = self.params.model_copy(update={"ignore": [*self.params.ignore, *names]})
            rest = ToolCalls(params)
            why = rest._compare(calls[at], matching.missing)[1]
        return at, names

    def _compare(self, call: Call, expected: ExpectedCall) -> tuple[bool, ArgumentDifference | None]:
        got, wanted = call["arguments"], expected.arguments
        if not isinstance(got, dict):
            return False, None
        params = self.params
        how = params.arguments
        if how == "ignore":
            return True, None
        name = self.same_name(expected.name)
        ignored = frozenset(self._of(name, dict.fromkeys(params.ignore))) if params.ignore else _NOTHING
        if how == "bfcl":
            why = bfcl_difference(got, wanted, self._docs[name], ignored)
            return why is None, why
        if params.defaults:
            defaults = self._of(name, params.defaults)
            got, wanted = {**defaults, **got}, {**defaults, **wanted}
        if ignored:
            got, wanted = (
                {key: value for key, value in arguments.items() if key not in ignored} for arguments in (got, wanted)
            )
        why = difference(got, wanted, subset=how == "subset")
        return why is None, why

    def _of(self, name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        owners = {key: key.rpartition(".") for key in fields}
        own = {argument: fields[key] for key, (owner, _, argument) in owners.items() if self.same_name(owner) == name}
        return {**fields, **own}

    def claim(self) -> str:
        names = [call.name for call in self._own]
        return f"calls {listed_names(names)}" if names else "makes no tool call"


def _numbers(calls: Sequence[Call], gold: Sequence[ExpectedCall]) -> str:
    return f"{len(calls)} call{'s' * (len(calls) != 1)}, expected {len(gold)}"


def _reason(calls: Sequence[Call], gold: Sequence[ExpectedCall], matching: _Matching) -> str:
    if not gold:
        return f"expected no call, got {call_text(calls[0]['name'], calls[0]['arguments'])}"
    if not calls:
        return f"no call, expected {call_text(*gold[0])}" + (f" and {len(gold) - 1} more" if len(gold) > 1 else "")
    before = f"{_numbers(calls, gold)}: " if len(calls) != len(gold) else ""
    if matching.missing is None:
        extra = matching.extra or calls[-1]
        return f"{before}{call_text(extra['name'], extra['arguments'])} is not expected"
    expected = matching.missing
    if matching.nearest is None:
        names = [call["name"] for call in calls]
        return f"{before}no call matches {call_text(*expected)}, got {listed_names(names)}"
    at, why = matching.nearest
    place = f"call {at + 1}, {name_text(expected.name)}" if len(calls) > 1 else name_text(expected.name)
    if why is None:
        return f"{before}{place}: its arguments are no JSON object: {shown(calls[at]['arguments'])}"
    return f"{before}{place}: {why}"
