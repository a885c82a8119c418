"""The code samples of the document that asked for rollout types, run as written but for the import name.

Its stubs ``def rollout(...)`` are not Python; what they promise is tested where it is kept.
"""

import asyncio
import inspect
import re
from typing import Any

import pydantic
import pytest

import assay
from assay import types

MODELS = '''\
from pydantic import BaseModel

class GenerateInputs(BaseModel):
    """Pydantic model for generation inputs."""

    prompt: list[Messages]
    answer: list[str] | None = None
    info: list[dict] | None = None
    task: list[str] | None = None
    completion: list[Messages] | None = None
    id: list[int] | None = None

class GenerateOutputs(BaseModel):
    """Pydantic model for generation outputs."""

    prompt: list[Messages]
    completion: list[Messages]
    answer: list[str]
    state: list[State]
    info: list[Info]
    task: list[str]
    id: list[int]
    reward: list[float]
    metrics: dict[str, list[float]] = Field(default_factory=dict)
    metadata: GenerateMetadata

class RolloutScore(BaseModel):
    """Pydantic model for rollout scores."""

    reward: float
    metrics: dict[str, float] = Field(default_factory=dict)


class RolloutScores(BaseModel):
    """Pydantic model for rubric outputs."""

    reward: list[float]
    metrics: dict[str, list[float]] = Field(default_factory=dict)


class ProcessedOutputs(BaseModel):
    """Pydantic model for processed outputs."""

    prompt_ids: list[list[int]]
    prompt_mask: list[list[int]]
    completion_ids: list[list[int]]
    completion_mask: list[list[int]]
    completion_logprobs: list[list[float]]
    rewards: list[float]
'''
STATE = """\
State = dict[str, Any]

# Common state fields during rollout:
{
    "prompt": list[ChatMessage],      # Original prompt messages
    "completion": list[ChatMessage],  # Model's response messages
    "answer": str,                    # Ground truth answer
    "task": str,                      # Task identifier (for EnvGroup)
    "info": dict[str, Any],          # Additional metadata from dataset
    "responses": list[Any],          # Raw LLM response objects
    "example_id": int,                # Row identifier from the dataset
    "timing": dict[str, float],       # Timing information for generation and scoring

    # Custom fields added by specific environments:
    "turn": int,                     # Current turn number (MultiTurnEnv)
    "tools_called": list[str],       # Tool invocations (ToolEnv)
    "game_state": Any,               # Game-specific state
}
"""
MESSAGES = """\
# Import from verifiers.types
from verifiers.types import ChatMessage, Messages

# Chat format (recommended)
# ChatMessage is a dict with these fields:
ChatMessage = {
    "role": str,                    # "system", "user", or "assistant"
    "content": str,                 # Message text
    "tool_calls": list[...],        # Optional tool calls
    "tool_call_id": str,            # Optional tool call ID
}

Messages = str | list[ChatMessage]  # Can be string (completion) or chat

# Example chat format:
messages = [
    {"role": "system", "content": "You are a helpful assistant."},
    {"role": "user", "content": "What is 2+2?"},
    {"role": "assistant", "content": "2+2 equals 4."}
]

# Completion format (legacy):
completion = "Q: What is 2+2?\\nA: 4"
"""
REWARD = '''\
from collections.abc import Awaitable, Callable

RewardFunc = Callable[..., float | Awaitable[float]]

def my_reward_func(
    completion: Messages,            # Model's response (chat or string)
    answer: str = "",                # Ground truth answer
    prompt: Messages | None = None,  # Original prompt
    state: State | None = None,      # Environment state
    parser: Parser | None = None,    # Parser instance (if rubric has one)
    **kwargs                         # Additional arguments
) -> float:
    """Return a float reward between 0.0 and 1.0."""
    return 1.0
'''
RESPONSE = '''\
def env_response(
    self,
    messages: list[ChatMessage],
    state: State,
    **kwargs
) -> tuple[Messages, State]:
    """
    Returns:
        - Response messages (list[ChatMessage] or str for completion mode)
        - Updated state
    """
    # Return a list of ChatMessage dicts (typical case)
    response = [{"role": "user", "content": "Environment feedback"}]

    # Update state as needed
    state["turn"] = state.get("turn", 0) + 1
    state["last_action"] = "provided feedback"

    return response, state
'''
SAMPLING = """\
SamplingArgs = dict[str, Any]

sampling_args = {
    # Basic sampling
    "temperature": 0.7,
    "top_p": 0.9,
    "top_k": 50,
    "max_tokens": 2048,

    # Advanced vLLM options
    "extra_body": {
        "logprobs": True,              # Return token logprobs
        "top_logprobs": 5,             # Top-k logprobs per token
        "skip_special_tokens": False,  # Include special tokens
        "guided_decoding": {           # Structured generation
            "regex": r"\\d{3}-\\d{3}-\\d{4}"  # Phone number format
        }
    }
}
"""
INFO = """\
Info = dict[str, Any]

# Dataset row with info dict:
{
    "prompt": "Solve this problem",
    "info": {
        "answer": "42",              # Required: ground truth
        "difficulty": "medium",      # Optional metadata
        "source": "textbook",
        "chapter": 3,
        "requires_tool": True
    }
}

# Access in reward functions:
def reward_func(completion, answer, info=None, **kwargs):
    difficulty = info.get("difficulty", "unknown") if info else "unknown"
    # Adjust scoring based on difficulty...
"""
PARSERS = '''\
# Parser return types can be anything
def parse(text: str) -> Any:
    """Can return str, dict, dataclass, etc."""

# parse_answer must return optional string
def parse_answer(completion: Messages) -> str | None:
    """Must return string answer or None"""
'''
CONTENT = '''\
def get_text_content(completion: Messages) -> str:
    """Extract text from either format."""
    if isinstance(completion, str):
        return completion
    else:
        # Chat format - get last assistant message
        return completion[-1]["content"]
'''
RESET = '''\
def reset_for_rollout(self, prompt: Messages, answer: str, info: Info | None) -> State:
    """Initialize state for new rollout."""
    state = {
        "prompt": prompt,
        "answer": answer,
        "info": info or {},
        "task": info.get("task", "default") if info else "default",
        "responses": [],
        # Add custom fields
        "turn": 0,
        "history": []
    }
    return state
'''
SAMPLES = [MODELS, STATE, MESSAGES, REWARD, RESPONSE, SAMPLING, INFO, PARSERS, CONTENT, RESET]
COMPLETIONS = ["4", [{"role": "user", "content": "What is 2+2?"}, {"role": "assistant", "content": "4"}]]


def run(code):
    """Execute a sample, its import under our name; what it does not import stands there as our types do."""
    code = code.replace("from verifiers.types import", "from assay.types import")
    space = {name: getattr(types, name) for name in types.__all__}
    space |= {"Any": Any, "Field": pydantic.Field, "Parser": assay.Parser, "__name__": "sample"}
    exec(code, space)  # noqa: S102  (the document's own code is what is tested)
    return space


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda text: text.split("\n")[0])
def test_every_sample_runs(sample):
    assert run(sample)


CHAT = [{"role": "assistant", "content": "4", "tool_calls": [{"id": "c1"}]}]
VALUES = {
    "prompt": ["What is 2+2?", CHAT],
    "completion": ["4", CHAT],
    "answer": ["4", "4"],
    "state": [{"turn": 1}, {}],
    "info": [{"n": 1}, {}],
    "task": ["math", "math"],
    "id": [0, 1],
    "metrics": {"f": [0.5, 1.0]},
    "metadata": types.GenerateMetadata(env_id="e"),
    **{name: [[1, 2]] for name in ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask")},
    "completion_logprobs": [[-0.5, -1.0]],
    "rewards": [1.0],
}


@pytest.mark.parametrize(
    "name", ["GenerateInputs", "GenerateOutputs", "RolloutScore", "RolloutScores", "ProcessedOutputs"]
)
def test_the_models_take_and_give_what_those_of_the_document_do(name):
    theirs, ours = run(MODELS)[name], getattr(types, name)
    assert [*ours.model_fields] == [*theirs.model_fields]
    assert {one for one, field in ours.model_fields.items() if field.is_required()} == {
        one for one, field in theirs.model_fields.items() if field.is_required()
    }
    values = VALUES | ({"reward": 1.0, "metrics": {"f": 0.5}} if name == "RolloutScore" else {"reward": [0.5, 1.0]})
    for given in (
        {one: values[one] for one in theirs.model_fields},
        {one: values[one] for one, field in theirs.model_fields.items() if field.is_required()},
    ):
        assert ours(**given).model_dump() == theirs(**given).model_dump()
    for one in given:
        with pytest.raises(pydantic.ValidationError):
            ours(**given | {one: object()})


def test_the_aliases_are_those_of_the_document():
    for name, sample in (("State", STATE), ("Info", INFO), ("SamplingArgs", SAMPLING)):
        assert run(sample)[name] == getattr(types, name)
    assert run(REWARD)["RewardFunc"] == types.RewardFunc
    assert types.Messages == str | list[types.ChatMessage]
    assert run(MESSAGES)["messages"][-1] == {"role": "assistant", "content": "2+2 equals 4."}


def test_the_reward_functions_are_functions_of_a_rubric():
    graded = run(
        INFO.replace("    # Adjust scoring based on difficulty...", '    return {"medium": 0.5}.get(difficulty, 0.0)')
    )
    rubric = assay.Rubric([run(REWARD)["my_reward_func"], graded["reward_func"]], [1.0, 0.5])
    infos = [{"difficulty": "medium"}, None]
    found = asyncio.run(
        rubric.score_rollouts(["p", "p"], COMPLETIONS, ["4", "4"], [{}, {}], ["default"] * 2, infos, use_tqdm=False)
    )
    assert found == types.RolloutScores(
        reward=[1.25, 1.0], metrics={"my_reward_func": [1.0, 1.0], "reward_func": [0.5, 0.0]}
    )
    rows = [{"completion": one, "answer": "4", "info": info} for one, info in zip(COMPLETIONS, infos, strict=True)]
    assert assay.score(rows, rubric)["reward"].to_list() == [1.25, 1.0]


def test_a_function_without_an_answer_is_an_error_told():
    state = {}
    rubric = assay.Rubric([run(INFO)["reward_func"]])
    assert asyncio.run(rubric.score_rollout("p", "4", "4", state)).reward == 0.0
    assert state["error"].startswith("reward_func: TypeError: float() argument must be")


def test_messages_of_the_document_are_read_as_its_own_function_reads_them():
    said = run(MESSAGES)
    for completion in (said["messages"], said["completion"], *COMPLETIONS):
        assert assay.get_text_content(completion) == run(CONTENT)["get_text_content"](completion)
        assert assay.Parser().parse_answer(completion) == assay.get_text_content(completion)


def test_states_of_the_document_are_states_of_a_rubric():
    state = run(RESET)["reset_for_rollout"](None, "p", "4", {"task": "math"})
    response, state = run(RESPONSE)["env_response"](None, [], state)
    assert response[0]["content"] == "Environment feedback"

    def turns(state):
        return float(state["turn"] == 1 and state["task"] == "math")

    assert asyncio.run(assay.Rubric([turns]).score_rollout("p", "4", "4", state)).reward == 1.0
    assert state["timing"]["scoring_ms"] > 0


def test_sampling_arguments_are_kept():
    args = run(SAMPLING)["sampling_args"]
    assert types.GenerateMetadata(sampling_args=args).sampling_args == args
    assert re.fullmatch(args["extra_body"]["guided_decoding"]["regex"], "555-123-4567")


def test_parsers_have_the_methods_of_the_document():
    stubs = run(PARSERS)
    for name in ("parse", "parse_answer"):
        assert [*inspect.signature(getattr(assay.Parser(), name)).parameters] == [
            *inspect.signature(stubs[name]).parameters
        ]
