"""Environments in which a model and an environment take turns, and those in which the model answers once."""

import time
from abc import abstractmethod
from typing import Any

from assay.calls.coroutines import maybe_await
from assay.environments.client import OVERLONG
from assay.environments.environment import Environment
from assay.environments.streams import Fields
from assay.types import ChatMessage, Info, Messages, SamplingArgs, State

__all__ = ["MultiTurnEnv", "SingleTurnEnv"]


class MultiTurnEnv(Environment):
    """An environment that replies to the model, until one of them is done.

        class Guess(assay.MultiTurnEnv):
            async def env_response(self, messages, state, **kwargs):
                said = "higher" if int(messages[-1]["content"]) < state["info"]["number"] else "lower"
                return [{"role": "user", "content": said}], state

            async def is_completed(self, messages, state, **kwargs):
                return await super().is_completed(messages, state, **kwargs) or said_it(messages, state)

    What a subclass overrides may be a function or a coroutine: ``env_response``, ``is_completed``, ``setup_state``,
    ``reset_for_rollout``, ``get_context_messages``.

    Args:
        max_turns: Answers of the model after which a rollout ends; no limit when not positive.
        **kwargs: As for ``Environment``.
    """

    def __init__(self, max_turns: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.max_turns = max_turns

    async def setup_state(self, state: State, **kwargs: Any) -> State:
        """Add to the state, before the first turn, what the rollout needs."""
        del kwargs
        return state

    async def max_turns_reached(self, state: State) -> bool:
        """Whether the model has had its turns."""
        return 0 < self.max_turns <= int(state["turn"])

    async def prompt_too_long(self, state: State) -> bool:
        """Whether the conversation has outgrown the model."""
        return bool(state.get("prompt_too_long", False))

    async def is_completed(self, messages: Messages, state: State, **kwargs: Any) -> bool:
        """Whether the rollout is over; one that overrides it asks this, too, or ``max_turns_reached``."""
        del messages, kwargs
        return await self.max_turns_reached(state) or await self.prompt_too_long(state)

    @abstractmethod
    async def env_response(self, messages: Messages, state: State, **kwargs: Any) -> tuple[Messages, State]:
        """Reply to the model.

        Args:
            messages: Prompt and completion so far.
            state: What the rollout knows of itself.
            **kwargs: Further arguments of ``generate``.

        Returns:
            Messages to add (text, where texts are completed), and the state.
        """

    async def get_context_messages(self, state: State) -> Messages:
        """What the model is asked: prompt and completion so far."""
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
            completion: What is there of it already.
            answer: The gold.
            state: Its state, of ``init_state``; made from the rest without it. It holds what there is if the rollout fails.
            task: Its kind of task.
            info: What else is known of the example.
            example_id: The example.
            sampling_args: Arguments of the requests.
            **kwargs: Handed on to the methods that a subclass overrides.

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
        given, began = state, time.perf_counter()
        tools = info.get("oai_tools") or self.oai_tools
        try:
            state = _state(await maybe_await(self.setup_state(state, **kwargs)), "setup_state")
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
                self._answered(state, response)
                if await self._is_over(state, **kwargs):
                    break
                context = await maybe_await(self.get_context_messages(state))
                reply, after = await maybe_await(self.env_response(context, state, **kwargs))
                state = _state(after, "env_response")
                _replied(state, reply)
        finally:
            spent = (time.perf_counter() - began) * 1000
            timing = state.setdefault("timing", {})
            timing["generation_ms"] = timing["total_ms"] = spent
            if given is not state:
                given.update(state)
        return state["completion"], state

    async def _is_over(self, state: State, **kwargs: Any) -> bool:
        context = await maybe_await(self.get_context_messages(state))
        return bool(await maybe_await(self.is_completed(context, state, **kwargs)))

    def _answered(self, state: State, response: Any) -> None:
        """Take an answer of the model into the state."""
        kept = response.model_dump(mode="json", warnings=False) if hasattr(response, "model_dump") else response
        state["responses"].append(Fields(kept) if isinstance(kept, dict) else kept)
        state["turn"] += 1
        if self.message_type == "completion":
            state.setdefault("responses_start_idx", []).append(len(state["completion"]))
            state["completion"] += response.choices[0].text or ""
            return
        said = response.choices[0].message
        message: ChatMessage = {"role": "assistant", "content": said.content or ""}
        if calls := getattr(said, "tool_calls", None):
            message["tool_calls"] = [Fields(_fields(call)) for call in calls]
        state["completion"].append(message)


def _state(found: Any, name: str) -> State:
    if not isinstance(found, dict):
        raise TypeError(f"{name} returned {type(found).__name__} where the state belongs")
    return found


def _replied(state: State, reply: Any) -> None:
    """Take a reply of the environment into the state."""
    kind = str if isinstance(state["completion"], str) else list
    if not isinstance(reply, kind):
        raise TypeError(f"env_response returned {type(reply).__name__} where {kind.__name__} belongs")
    state["completion"] += reply


def _fields(call: Any) -> dict[str, Any]:
    """A tool call as the protocol has it."""
    return dict(call) if isinstance(call, dict) else dict(call.model_dump(exclude_unset=True, warnings=False))


class SingleTurnEnv(MultiTurnEnv):
    """An environment in which the model answers once."""

    async def is_completed(self, messages: Messages, state: State, **kwargs: Any) -> bool:
        """Whether the model has answered."""
        del messages, kwargs
        return bool(state["responses"])

    async def env_response(self, messages: Messages, state: State, **kwargs: Any) -> tuple[Messages, State]:
        """Nothing: one answer is all."""
        del messages, kwargs
        return [] if self.message_type == "chat" else "", state
