"""An environment whose replies are the results of the tools that the model calls."""

import inspect
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import ConfigDict, create_model

from assay.calls.coroutines import maybe_await
from assay.environments.multiturn import MultiTurnEnv
from assay.errors import UsageError
from assay.types import ChatMessage, Messages, State

_ARGUMENT = re.compile(r"\s+(\w+)(?: \([^)]*\))?: (.+)")
_SECTION = re.compile(r"(Args|Arguments|Parameters|Returns|Raises|Yields|Examples?):\s*")


def _name(tool: Callable[..., Any]) -> str:
    return str(getattr(tool, "__name__", type(tool).__name__))


def tool_schema(tool: Callable[..., Any]) -> dict[str, Any]:
    """Return a function as a tool of an OpenAI-compatible request; its docstring describes it and, under ``Args:``, its parameters."""
    lines = (inspect.getdoc(tool) or "").splitlines()
    sections = [at for at, line in enumerate(lines) if _SECTION.fullmatch(line)]
    described = {match[1]: match[2] for line in lines if (match := _ARGUMENT.match(line))}
    fields = {}
    for name, parameter in inspect.signature(tool, eval_str=True).parameters.items():
        annotation = Any if parameter.annotation is parameter.empty else parameter.annotation
        fields[name] = (annotation, ... if parameter.default is parameter.empty else parameter.default)
    model = create_model(_name(tool), __config__=ConfigDict(extra="forbid"), **fields)  # type: ignore[call-overload]
    parameters: dict[str, Any] = model.model_json_schema()
    for name in described.keys() & parameters.get("properties", {}).keys():
        parameters["properties"][name]["description"] = described[name]
    description = "\n".join(lines[: sections[0]] if sections else lines).strip()
    function = {"name": _name(tool), "description": description, "parameters": parameters}
    is_strict = len(parameters.get("required", ())) == len(fields)  # strict tools have no optional parameters
    return {"type": "function", "function": function | ({"strict": True} if is_strict else {})}


class ToolEnv(MultiTurnEnv):
    """An environment in which the model calls functions, until it answers without a call.

    ``state["tools_called"]`` has the names of the tools in the order of the calls. A tool that does not exist or raises, and arguments
    that are no JSON object, are told to the model by ``error_formatter``.

    Args:
        tools: Functions, also asynchronous ones.
        max_turns: Answers of the model after which a rollout ends; no limit if not positive.
        error_formatter: Returns what the model is told of an exception.
        **kwargs: As for ``Environment``.

    Raises:
        UsageError: ``message_type="completion"``, in which there are no calls.
    """

    def __init__(
        self,
        tools: Sequence[Callable[..., Any]] | None = None,
        max_turns: int = 10,
        error_formatter: Callable[[Exception], str] = str,
        **kwargs: Any,
    ) -> None:
        if kwargs.get("message_type", "chat") != "chat":
            raise UsageError("Tools are called in messages.", 'Use message_type="chat".')
        self.tools: list[Callable[..., Any]] = []
        self.tool_map: dict[str, Callable[..., Any]] = {}
        self.error_formatter = error_formatter
        super().__init__(oai_tools=[], max_turns=max_turns, **kwargs)
        for tool in tools or ():
            self.add_tool(tool)

    def add_tool(self, tool: Callable[..., Any]) -> None:
        """Offer another tool to the model."""
        self.tools.append(tool)
        self.tool_map[_name(tool)] = tool
        self.oai_tools = [*(self.oai_tools or ()), tool_schema(tool)]

    def remove_tool(self, tool: Callable[..., Any]) -> None:
        """Offer a tool no longer."""
        self.tools.remove(tool)
        del self.tool_map[_name(tool)]
        self.oai_tools = [schema for schema in self.oai_tools or () if schema["function"]["name"] != _name(tool)]

    async def is_completed(self, messages: Messages, state: State, **kwargs: Any) -> bool:
        """Return whether the model has answered without a call, or used all its turns."""
        if await super().is_completed(messages, state, **kwargs):
            return True
        last: Any = messages[-1] if messages else {}
        return last.get("role") == "assistant" and not last.get("tool_calls")

    async def call_tool(
        self, tool_name: str, tool_args: dict[str, Any], tool_call_id: str, **kwargs: Any
    ) -> ChatMessage:
        """Call a tool, and return its result as a message."""
        del kwargs
        try:
            content = str(await maybe_await(self.tool_map[tool_name](**tool_args)))
        except Exception as error:  # noqa: BLE001  (the model is told)
            content = self.error_formatter(error)
        return {"role": "tool", "content": content, "tool_call_id": tool_call_id}

    async def env_response(self, messages: Messages, state: State, **kwargs: Any) -> tuple[Messages, State]:
        """Call the tools of the last message."""
        del kwargs
        last: Any = messages[-1]
        replies: list[ChatMessage] = []
        for call in last["tool_calls"]:
            name, call_id = call["function"]["name"], call.get("id") or ""
            state.setdefault("tools_called", []).append(name)
            if name not in self.tool_map:
                error: Exception = ValueError(f"There is no tool {name!r}. Tools: {', '.join(self.tool_map)}.")
            else:
                try:
                    replies.append(await self.call_tool(name, _arguments(call["function"]["arguments"]), call_id))
                    continue
                except ValueError as not_json:
                    error = not_json
            replies.append({"role": "tool", "content": self.error_formatter(error), "tool_call_id": call_id})
        return replies, state


def _arguments(text: str) -> dict[str, Any]:
    arguments = json.loads(text or "{}")
    if not isinstance(arguments, dict):
        raise ValueError(f"The arguments are no JSON object: {text}")
    return arguments
