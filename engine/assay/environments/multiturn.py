"""Environments in which model and environment take turns, and environments in which the model answers once."""

import time
from abc import abstractmethod
from typing import Any

from assay.calls.coroutines import maybe_await
from assay.environments.client import OVERLONG
from assay.environments.environment import Environment
from assay.environments.streams import Fields
from assay.types import ChatMessage, Info, Messages, SamplingArgs, State


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
                _add_reply(state, reply)
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
        state["responses"].append(Fields(dumped) if isinstance(dumped, dict) else dumped)
        state["turn"] += 1
        if self.message_type == "completion":
            state.setdefault("responses_start_idx", []).append(len(state["completion"]))
            state["completion"] += response.choices[0].text or ""
            return
        answer = response.choices[0].message
        message: ChatMessage = {"role": "assistant", "content": answer.content or ""}
        if calls := getattr(answer, "tool_calls", None):
            message["tool_calls"] = [Fields(_call_fields(call)) for call in calls]
        state["completion"].append(message)


def _check_state(value: Any, name: str) -> State:
    if not isinstance(value, dict):
        raise TypeError(f"{name} returned {type(value).__name__} where the state belongs")
    return value


def _add_reply(state: State, reply: Any) -> None:
    kind = str if isinstance(state["completion"], str) else list
    if not isinstance(reply, kind):
        raise TypeError(f"env_response returned {type(reply).__name__} where {kind.__name__} belongs")
    state["completion"] += reply


def _call_fields(call: Any) -> dict[str, Any]:
    return dict(call) if isinstance(call, dict) else dict(call.model_dump(exclude_unset=True, warnings=False))


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
