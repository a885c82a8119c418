"""Check types over the names of the functions that are called: tool_f1, tool_trajectory."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from assay.checks.base import Example
from assay.checks.text.numbers import check_bounds
from assay.checks.tools.base import CallsCheck, CallsParams
from assay.checks.tools.equality import listed_names, name_text
from assay.checks.tools.golds import expected_names
from assay.steps.tool_calls.calls import Call

_CALL = '[{"name": "search", "arguments": {}}, {"name": "open", "arguments": {}}]'


class ToolF1Params(CallsParams):
    """The functions that are expected."""

    spellings: ClassVar[Mapping[str, str]] = {"names": "value"}

    value: Any = Field(description="Names of functions: a list, a text with commas between them, or a list of calls.")

    @field_validator("value")
    @classmethod
    def _usable(cls, value: Any) -> Any:
        expected_names(value)
        return value


class ToolF1(CallsCheck):
    """F1 of the set of functions that are called and the set of those that are expected; both empty is 1.0.

    Arguments, order and repetition do not count.
    """

    type = "tool_f1"
    names_only = True
    Params = ToolF1Params
    params: ToolF1Params
    examples = (
        Example(_CALL, 1.0, {"value": ["open", "search"]}),
        Example(_CALL, 2 / 3, {"value": "search"}),
        Example("[]", 0.0, {"value": ["search"]}),
        Example("[]", 1.0, {"value": []}),
    )

    def prepared(self, gold: Any) -> tuple[str, ...]:
        return expected_names(gold)

    def judge_calls(self, calls: list[Call], gold: tuple[str, ...]) -> tuple[float, str]:
        expected = dict.fromkeys(map(self.same_name, gold))
        called = dict.fromkeys(self.same_name(call["name"]) for call in calls if isinstance(call["name"], str))
        missing = [name for name in expected if name not in called]
        extra = [name for name in called if name not in expected]
        parts = [f"does not call {listed_names(missing)}"] if missing else []
        parts += [f"calls {listed_names(extra)}, which is not expected"] if extra else []
        if both := len(called) - len(extra):
            precision, recall = both / len(called), both / len(expected)
            return 2 * precision * recall / (precision + recall), "; ".join(parts)
        return float(not called and not expected), "; ".join(parts)

    def claim(self) -> str:
        return f"calls {listed_names([*self._own])}" if self._own else "makes no tool call"


class TrajectoryParams(CallsParams):
    """Which functions are called, in which order, and how often."""

    called: list[str] = Field(default=[], description="Functions that are called.")
    not_called: list[str] = Field(default=[], description="Functions that are not called.")
    sequence: Any = Field(
        default=None, description="Functions that are called in this order: a list of names or of calls."
    )
    mode: Literal["in_order", "exact"] = Field(
        default="in_order", description="Whether other calls may stand between those of `sequence`."
    )
    min: int | None = Field(default=None, ge=0, description="Fewest calls.")
    max: int | None = Field(default=None, ge=0, description="Most calls.", validate_default=True)
    of: str = Field(default="*", description="Pattern of the names that `min` and `max` count: `*`, `?`, `[a-z]`.")

    @field_validator("sequence")
    @classmethod
    def _usable(cls, value: Any) -> Any:
        if value is not None:
            expected_names(value)
        return value

    @field_validator("max")
    @classmethod
    def _has_condition(cls, most: int | None, info: Any) -> int | None:
        if not {"called", "not_called", "sequence", "min"} <= info.data.keys():
            return most  # one of them is not valid
        least = info.data["min"]
        others = info.data["called"] or info.data["not_called"] or info.data["sequence"] is not None
        if least is not None or most is not None:
            check_bounds(least, most)
        elif not others:
            raise ValueError("give `called`, `notCalled`, `sequence`, `min` or `max`")
        return most


class ToolTrajectory(CallsCheck):
    """The names of the calls, in order: some occur, some do not, some follow each other, and how many there are."""

    type = "tool_trajectory"
    names_only = True
    graded = False
    golds = replace(CallsCheck.golds, param="sequence")
    Params = TrajectoryParams
    params: TrajectoryParams
    examples = (
        Example(_CALL, 1.0, {"sequence": ["search", "open"]}),
        Example(_CALL, 0.0, {"sequence": ["open", "search"]}),
        Example(_CALL, 0.0, {"sequence": ["open"], "mode": "exact"}),
        Example(_CALL, 1.0, {"called": ["open"], "notCalled": ["delete"], "min": 1, "max": 1, "of": "s*"}),
    )

    def prepared(self, gold: Any) -> tuple[str, ...] | None:
        return None if gold is None else expected_names(gold)

    def judge_calls(self, calls: list[Call], gold: tuple[str, ...] | None) -> tuple[float, str]:
        names = [self.same_name(call["name"]) for call in calls]
        reason = self._unfit(names)
        if not reason and gold is not None:
            reason = self._out_of_order(names, [self.same_name(name) for name in gold])
        return float(not reason), reason

    def _unfit(self, names: Sequence[Any]) -> str:
        present = {name for name in names if isinstance(name, str)}
        if missing := [name for name in self.params.called if self.same_name(name) not in present]:
            return f"does not call {listed_names(missing)}"
        if unwanted := [name for name in self.params.not_called if self.same_name(name) in present]:
            return f"calls {listed_names(unwanted)}, which it must not"
        least, most, pattern = self.params.min, self.params.max, self.same_name(self.params.of)
        count = len(names)
        if pattern != "*" and (least, most) != (None, None):
            count = sum(isinstance(name, str) and fnmatchcase(name, pattern) for name in names)
        what = f"{count} call{'s' * (count != 1)}" + ("" if pattern == "*" else f" of {name_text(self.params.of)}")
        if least is not None and count < least:
            return f"{what}, at least {least} expected"
        return f"{what}, at most {most} expected" if most is not None and count > most else ""

    def _out_of_order(self, names: Sequence[Any], sequence: Sequence[str]) -> str:
        if self.params.mode == "exact":
            called = f"calls {listed_names([*names])}" if names else "no call"
            expected = f"exactly {listed_names([*sequence])}" if sequence else "none"
            return "" if [*names] == [*sequence] else f"{called}, expected {expected}"
        rest = iter(names)
        after = ""
        for name in sequence:
            if not any(name == other for other in rest):
                return f"does not call {name_text(name)}{after}"
            after = f" after {name_text(name)}"
        return ""

    def claim(self) -> str:
        params = self.params
        parts = [f"calls {listed_names(params.called)}"] if params.called else []
        parts += [f"does not call {listed_names(params.not_called)}"] if params.not_called else []
        parts += [f"calls {listed_names([*self._own])} in this order"] if self._own else []
        least, most = params.min, params.max
        counted = "" if params.of == "*" else f" of {name_text(params.of)}"
        parts += [f"makes at least {least} calls{counted}"] if least is not None else []
        parts += [f"makes at most {most} calls{counted}"] if most is not None else []
        return " and ".join(parts) or "makes no tool call"
