"""Environments in which model and environment take turns: one turn, many, or until the model calls no tool."""

import inspect
import json
import re
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import ConfigDict, create_model

from assay.calls.coroutines import maybe_await
from assay.environments.client import OVERLONG, AttributeDict
from assay.environments.environment import Environment
from assay.errors import UsageError
from assay.types import ChatMessage, Info, Messages, SamplingArgs, State

_ARGUMENT = re.compile(r"\s+(\w+)(?: \([^)]*\))?: (.+)")
_SECTION = re.compile(r"(Args|Arguments|Parameters|Returns|Raises|Yields|Examples?):\s*")


class MultiTurnEnv(Environment):
    """An environment that replies to the model until the rollout is completed.

        class Guess(assay.MultiTurnEnv):
            async def env_response(self, messages, state, **kwargs):
                hint = "higher" if int(messages[-1]["content"]) < state["info"]["number"] else "lower"
                return [{"role": "user", "content": hint}], state

            async def is_completed(self, messages, state, **kwargs):
                return await super().is_completed(messages, state, **kwargs) or is_guessed(messages, state)

    These methods may be overridden by functions or coroutine functions: ``env_response``, ``is_completed``, ``setup_state``,
    ``reset_for_rollout``, ``get_context_messages``.

    Args:
        max_turns: Answers of the model after which a rollout ends; no limit if not positive.
        **kwargs: As for ``Environment``.
    """

    def __init__(self, max_turns: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_turns = max_turns

    async def setup_state(self, state: State, **kwargs: Any) -> State:
        """Prepare the state before the first turn."""
        del kwargs
        return state

    async def max_turns_reached(self, state: State) -> bool:
        """Return whether the model has used all its turns."""
        return 0 < self.max_turns <= int(state["turn"])

    async def prompt_too_long(self, state: State) -> bool:
        """Return whether the conversation is too long for the model."""
        return bool(state.get("prompt_too_long", False))

    async def is_completed(self, messages: Messages, state: State, **kwargs: Any) -> bool:
        """Return whether the rollout is over; an override should also call this method, or ``max_turns_reached``."""
        del messages, kwargs
        return await self.max_turns_reached(state) or await self.prompt_too_long(state)

    @abstractmethod
    async def env_response(self, messages: Messages, state: State, **kwargs: Any) -> tuple[Messages, State]:
        """Reply to the model.

        Args:
            messages: Prompt and completion so far.
            state: The state of the rollout.
            **kwargs: Further arguments of ``generate``.

        Returns:
            Messages to add (text for text completion), and the state.
        """

    async def get_context_messages(self, state: State) -> Messages:
        """Return the messages to send to the model: prompt and completion so far."""
        context: Messages = state["prompt"] + state["completion"]
        return context

    async def rollout(
        self,
        client: Any,
        model: str,
        prompt: Messages,
        completion: Messages | None = None,
        answer: str = "",
        state: State | None = None,
        task: str = "default",
        info: Info | None = None,
        example_id: int = 0,
        sampling_args: SamplingArgs | None = None,
        **kwargs: Any,
    ) -> tuple[Messages, State]:
        """Generate one rollout, turn by turn.

        Args:
            client: An OpenAI-compatible client.
            model: Name of the model.
            prompt: Messages, or text to complete.
            completion: The completion so far.
            answer: The gold.
            state: Its state, from ``init_state`` by default. If the rollout fails, it holds the conversation so far.
            task: Its kind of task.
            info: Further data of the example.
            example_id: The example.
            sampling_args: Arguments of the requests.
            **kwargs: Passed on to the methods that a subclass overrides.

        Returns:
            The completion and the last state.
        """
        info = info or {}
        if not state:
            completion = completion or await maybe_await(self.init_completion())
            state = await maybe_await(
                self.init_state(
                    prompt=prompt, completion=completion, answer=answer, task=task, info=info, example_id=example_id
                )
            )
        initial, started = state, time.perf_counter()
        tools = info.get("oai_tools") or self.oai_tools
        try:
            state = _check_state(await maybe_await(self.setup_state(state, **kwargs)), "setup_state")
            while not await self._is_over(state, **kwargs):
                context = await maybe_await(self.get_context_messages(state))
                response = await self.get_model_response(
                    client,
                    model,
                    context,
                    oai_tools=tools,
                    sampling_args=sampling_args,
                    message_type=self.message_type,
                    initial_prompt=not state["responses"],
                    **kwargs,
                )
                if response.id == OVERLONG:
                    state["prompt_too_long"] = True
                    break
                self._add_response(state, response)
                if await self._is_over(state, **kwargs):
                    break
                context = await maybe_await(self.get_context_messages(state))
                reply, new_state = await maybe_await(self.env_response(context, state, **kwargs))
                state = _check_state(new_state, "env_response")
                kind = str if isinstance(state["completion"], str) else list
                if not isinstance(reply, kind):
                    raise TypeError(f"env_response returned {type(reply).__name__} where {kind.__name__} belongs")
                state["completion"] += reply
        finally:
            elapsed_ms = (time.perf_counter() - started) * 1000
            timing = state.setdefault("timing", {})
            timing["generation_ms"] = timing["total_ms"] = elapsed_ms
            if initial is not state:
                initial.update(state)
        return state["completion"], state

    async def _is_over(self, state: State, **kwargs: Any) -> bool:
        context = await maybe_await(self.get_context_messages(state))
        return bool(await maybe_await(self.is_completed(context, state, **kwargs)))

    def _add_response(self, state: State, response: Any) -> None:
        dumped = response.model_dump(mode="json", warnings=False) if hasattr(response, "model_dump") else response
        state["responses"].append(AttributeDict(dumped) if isinstance(dumped, dict) else dumped)
        state["turn"] += 1
        if self.message_type == "completion":
            state.setdefault("responses_start_idx", []).append(len(state["completion"]))
            state["completion"] += response.choices[0].text or ""
            return
        answer = response.choices[0].message
        message: ChatMessage = {"role": "assistant", "content": answer.content or ""}
        if calls := getattr(answer, "tool_calls", None):
            message["tool_calls"] = [
                AttributeDict(call if isinstance(call, dict) else call.model_dump(exclude_unset=True, warnings=False))
                for call in calls
            ]
        state["completion"].append(message)


def _check_state(value: Any, name: str) -> State:
    if not isinstance(value, dict):
        raise TypeError(f"{name} returned {type(value).__name__} where the state belongs")
    return value


class SingleTurnEnv(MultiTurnEnv):
    """An environment in which the model answers once."""

    async def is_completed(self, messages: Messages, state: State, **kwargs: Any) -> bool:
        """Return whether the model has answered."""
        del messages, kwargs
        return bool(state["responses"])

    async def env_response(self, messages: Messages, state: State, **kwargs: Any) -> tuple[Messages, State]:
        """Return an empty reply, as the model answers only once."""
        del messages, kwargs
        return [] if self.message_type == "chat" else "", state


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
            try:
                replies.append(await self.call_tool(name, self._arguments(call["function"]), call_id))
            except ValueError as error:
                replies.append({"role": "tool", "content": self.error_formatter(error), "tool_call_id": call_id})
        return replies, state

    def _arguments(self, call: dict[str, Any]) -> dict[str, Any]:
        if call["name"] not in self.tool_map:
            raise ValueError(f"There is no tool {call['name']!r}. Tools: {', '.join(self.tool_map)}.")
        arguments = json.loads(call["arguments"] or "{}")
        if not isinstance(arguments, dict):
            raise ValueError(f"The arguments are no JSON object: {call['arguments']}")
        return arguments
