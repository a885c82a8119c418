"""Reward functions for ``verifiers``, and so for prime-rl.

Read from verifiers 0.4.0 (``v1/task.py``, ``v1/utils/decorators.py``, ``v1/trace.py``) and 0.1.14 (``rubrics/rubric.py``). Both call a
function with the arguments that it names, so one function serves both.
"""

import json
import logging
from collections.abc import Callable, Sequence
from typing import Any

from assay.adapters.verdicts import Unscored, check_columns, number_of, verdict_of, with_gold
from assay.names import COMPLETION
from assay.scoring.batching import Batcher, Verifiers
from assay.values.plain import plain

__all__ = ["reward"]

_logger = logging.getLogger(__name__)


def reward(
    spec: Verifiers, *, gold: str = "answer", unscored: Unscored = "raise", name: str | None = None, strict: bool = True
) -> Callable[..., Any]:
    """Return a reward function.

    With verifiers 0.4 it is ``async reward(task, trace)``, for ``rewards={"x": {"fn": "file.py:f"}}``; traces that are scored at the
    same time are one batch. The fields of the task are columns. Each check is a metric, ``<name>/<check>``, and ``trace.info[name]``
    has ``passed``, ``feedback`` and ``error``.

    With 0.1 it is a function of a group, for ``Rubric(funcs=[f])``: it takes ``completions``, ``answers`` and ``states``. The inputs of a
    state and its ``info`` are columns; ``state[name]`` has the checks, feedback and error. The functions in its attribute ``metrics``
    show the checks to ``rubric.add_metric``.

    Args:
        spec: Verifiers, a rubric, a plan, or the name of a grader.
        gold: The field with the gold; checks read it as ``answer``.
        unscored: The reward of a rollout that cannot be scored. By default that is an error: 0.4 marks the trace, which prime-rl leaves
            out. 0.1 would make it the zero of the whole group, so there it is 0.0 for this rollout alone, and logged.
        name: The name in metrics and states; by default the verifier's id.
        strict: As of ``assay.compile``.

    Raises:
        SpecError: A verifier cannot be used.
    """
    batcher = Batcher(spec, strict=strict)
    checks = check_columns(batcher.plan)
    name = name or batcher.plan.verifiers[0].id

    async def of_trace(task: Any, trace: Any) -> float:
        result = await batcher.score(with_gold(_row_of_trace(task, trace), gold))
        verdict = verdict_of(result, checks)
        trace.record_metrics({f"{name}/{check}": score for check, score in verdict["checks"].items()})
        trace.info[name] = {field: verdict[field] for field in ("passed", "feedback", "error")}
        return number_of(result, unscored)

    async def of_group(completions: Sequence[Any], answers: Sequence[Any], states: Sequence[Any]) -> list[float]:
        rows = [with_gold(_row_of_state(*each), gold) for each in zip(completions, answers, states, strict=True)]
        results = batcher.plan.score_rows(rows).to_dicts()
        for state, result in zip(states, results, strict=True):
            state[name] = {field: value for field, value in verdict_of(result, checks).items() if field != "reward"}
            if result["reward"] is None:
                _logger.error("A rollout cannot be scored: %s", result["error"])
        number = 0.0 if unscored == "raise" else unscored
        return [number_of(result, number) for result in results]

    async def assay_reward(
        task: Any = None, trace: Any = None, completions: Any = None, answers: Any = None, states: Any = None
    ) -> Any:
        return await (of_trace(task, trace) if trace is not None else of_group(completions, answers, states))

    assay_reward.__name__ = name
    assay_reward.metrics = [_metric(name, check) for check, _ in checks.values()]  # type: ignore[attr-defined]
    return assay_reward


def _metric(name: str, check: str) -> Callable[..., float]:

    def metric(state: Any) -> float:
        return float(state[name]["checks"].get(check, 0.0))

    metric.__name__ = f"{name}/{check}"
    return metric


def _row_of_trace(task: Any, trace: Any) -> dict[str, Any]:
    calls = any(getattr(message, "tool_calls", None) for message in trace.assistant_messages)
    silent = not trace.assistant_messages and trace.root_reply is None
    completion = None if silent else _chat(trace.messages) if calls else trace.last_reply
    return {**plain(task), "prompt": task.prompt_text, COMPLETION: completion}


def _row_of_state(completion: Any, answer: Any, state: Any) -> dict[str, Any]:
    given, info = (plain(state.get(name)) or {} for name in ("input", "info"))
    info = info if isinstance(info, dict) else {}
    chat = completion if completion is None or isinstance(completion, str) else _chat(completion)
    prompt = state.get("prompt")
    if not isinstance(prompt, str | None):  # of messages, the text of the last
        prompt = (_chat(prompt) or [{"content": ""}])[-1]["content"]
    return {**given, **info, "answer": answer, "prompt": prompt, COMPLETION: chat}


def _chat(messages: Sequence[Any]) -> list[dict[str, Any]]:
    """Return messages as OpenAI has them: those of verifiers have their tool calls without a ``function`` around them."""
    chat = []
    for message in map(plain, messages):
        content = {"role": message.get("role"), "content": message.get("content") or ""}
        calls = [plain(json.loads(call) if isinstance(call, str) else call) for call in message.get("tool_calls") or ()]
        shown = [
            call if "function" in call else {"function": {name: call.get(name) for name in ("name", "arguments")}}
            for call in calls
        ]
        chat.append(content | ({"tool_calls": shown} if shown else {}))
    return chat
