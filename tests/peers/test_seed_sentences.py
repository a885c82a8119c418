"""The sentences of the four documents that asked for Assay, by their own words, each with a proof that it holds.

A proof runs without the documents. Where they are at hand, every quotation is looked for in them, but for blanks and line breaks;
they came without indentation, and the code in them has ours. Code runs as it was written, but for the name of the package.
Sentences that cannot hold as written are in ``OTHERWISE``, with the reason.
"""

import asyncio
import inspect
import json
import socket
import sys
import typing
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import polars as pl
import pydantic
import pytest
import yaml
from cases import ROOT
from loopback import Loopback, client_of, own_client_of, say
from typer.testing import CliRunner

import assay
from assay import protocols, types
from assay.classes import registry as verifiers
from assay.cli.main import app
from assay.functions import registry as functions
from assay.names import PROVENANCE_KEY
from assay.verifiers import InProcessVerifier, fns

SEEDS = ROOT.parent / "shared" / "seeds"
NATIVE, ON_ROW, API, ROLLOUTS = ("native-verifiers", "verifiers-on-the-row", "verifier-functions-api", "rollout-types")

# ── code of the documents ───────────────────────────────────────────────────────────────────────────────────────────────

REFUND = """\
{  "id": "refund-policy-quality",  "name": "Refund policy quality",  "kind": "native",  "passThreshold": 1.0,  "checks": [
    {      "id": "policy-expectations",      "type": "task_expectations",      "weight": 1,      "params": {}    }  ]}"""
METADATA = """\
{  "expectations": {    "mustMention": [      { "anyOf": ["refund", "money back"],
        "message": "the answer should offer a refund" }    ],    "mustNotMention": [      { "anyOf": ["gift card"],
        "message": "do not push a gift card instead of a refund" }    ]  }}"""
FACILITY = """\
{  "id": "facility-extraction-quality",  "name": "Facility extraction quality",  "kind": "native",  "checks": [
    { "id": "field-labels",  "type": "task_expectations", "weight": 4, "params": {} },
    { "id": "valid-json",    "type": "json_valid",        "weight": 2, "params": {} },
    { "id": "required-keys", "type": "json_keys",         "weight": 1,
      "params": { "requiredKeys": ["urgency", "sentiment", "categories"] } }  ]}"""
FUNCTION = """\
from evsys_sdk.verifiers.fns import register_fn

@register_fn("startswith")
def startswith(model_output: str, expected, params: dict) -> float:
    a = model_output or ""
    b = str(expected or "")
    if params.get("ignore_case"):
        a, b = a.lower(), b.lower()
    return 1.0 if b and a.startswith(b) else 0.0
"""
ROW = """\
- task_id: q0
  instruction: "What is 2 + 2? Put the answer in <answer></answer>."
  verifier:
    kind: in_process                # which verifier CLASS (RL supports only this today)
    fn_name: contains               # which scoring FUNCTION in the verifier-fn registry
    expected: "<answer>4</answer>"  # the gold value, carried per-row
    params: { ignore_case: true }
"""
GOLD = """\
verifier:
  kind: in_process
  fn_name: exact_match
  expected: "42"
  params: {ignore_case: true}
"""
NAMED = 'verifier: {kind: in_process, fn_name: startswith, expected: "Answer:", params: {ignore_case: true}}'
FORMAT = """\
verifier:
  kind: format_only
  params:
    has_think_reward: 0.5
    has_answer_reward: 0.5
"""
CLASS = """\
from typing import Any, ClassVar
from pydantic import BaseModel, ConfigDict
from evsys_sdk.protocols import VerificationResult
from evsys_sdk.registry import register_verifier

class LengthConfig(BaseModel):
    model_config = ConfigDict(extra="forbid")
    target_len: int = 100  # ideal completion length in chars
    tolerance: int = 20

@register_verifier("length_band")  # registry key == YAML kind
class LengthBandVerifier:
    name: ClassVar[str] = "length_band"
    Config: ClassVar[type] = LengthConfig

    def __init__(self, *, target_len: int = 100, tolerance: int = 20) -> None:
        self.target_len = target_len
        self.tolerance = tolerance

    # Keyword-only args, exactly as the protocol declares.
    def verify(
        self, *, prompt: str, completion: str, target: dict[str, Any]
    ) -> VerificationResult:
        off = abs(len(completion) - self.target_len)
        reward = 1.0 if off <= self.tolerance else 0.0
        return VerificationResult(reward=reward, info={"chars_off": off})
"""
BAND = """\
verifier:
  kind: length_band
  params: {target_len: 120, tolerance: 30}
"""
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
PLUGIN = """\
[project.entry-points."evsys_sdk.verifiers"]
length_band = "my_pkg.verifiers:LengthBandVerifier"
"""
EXPORTS = "['VerifierFn', 'tool_calls_match', 'exact_match', 'contains', 'regex_match', 'get', 'register', 'register_fn', 'list_fns']"

BUILT_IN = ["tool_calls_match", "exact_match", "contains", "regex_match"]

# ── the table ───────────────────────────────────────────────────────────────────────────────────────────────────────────

PROMISES: list[tuple[str, str, Callable[[], None] | str]] = []
"""The document, words of it, and their proof: a function, or a test that shows them anyway."""


def promised(document, *words):
    """Enter the decorated function, or a test, as the proof of words."""

    def enter(proof):
        PROMISES.extend((document, quotation, proof) for quotation in words)
        return proof

    return enter


OTHERWISE = [
    (
        NATIVE,
        "Point optimize create/run at the spec file and it is created (or reused) automatically",
        "GEPA has its own command; Assay's take a file or a registered id, and only `assay verifiers create` registers",
    ),
    (
        NATIVE,
        "A verifier turns an agent output into a score between 0 and 1.",
        "so it is by default; `range: null`, sums and functions may leave it, as a later definition asks",
    ),
    (
        API,
        "find first JSON object, parse",
        "the object is what stands between the first brace and the last: a text with two objects has none",
    ),
    (API, "the remote (Supabase) never stores verifier code", "there is no remote; results store names and hashes"),
    (ON_ROW, "The remote backend never stores verifier code", "as above"),
    (ON_ROW, "evsys_sdk.", "the modules are those of assay, under the same paths"),
    (ON_ROW, "Use a verifier-fn for sub-millisecond per-task checks", "no test depends on time: `make bench` measures"),
    (
        ROLLOUTS,
        "All reward functions must follow this signature",
        "they may: a function gets the arguments that it names, whichever they are",
    ),
]
"""Sentences that do not hold as written: the document, words of it, and what holds instead."""


def plain(text):
    """A text without blanks: the documents lost some of theirs."""
    return "".join(text.split())


# ── what proofs share ───────────────────────────────────────────────────────────────────────────────────────────────────


def spec_of(kind, params=None, **fields):
    return {"id": "v", "checks": [{"type": kind, "params": params or {}, **fields}]}


def scored(spec, *texts, **columns):
    return assay.score([{"completion": text, **columns} for text in texts], spec)


def rewards(spec, *texts, **columns):
    return scored(spec, *texts, **columns)["reward"].to_list()


def by_row(text, verifier, **options):
    """The reward of one row that brings its verifier."""
    return assay.score([{"completion": text, "verifier": verifier}], **options)["reward"].item()


def run(code):
    """Execute code of the documents, with our name for the package; what it does not import stands there as our types do."""
    code = code.replace("from evsys_sdk.", "from assay.").replace("from verifiers.types", "from assay.types")
    space = {name: getattr(types, name) for name in types.__all__}
    space |= {"Any": Any, "Field": pydantic.Field, "Parser": assay.Parser, "__name__": "sample"}
    exec(code, space)  # noqa: S102  (the documents' own code is what is tested)
    return space


def command(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.stdout


# ── native verifiers ────────────────────────────────────────────────────────────────────────────────────────────────────

LABELS = {
    "expectations": {
        "mustMention": [{"text": text} for text in ("high", "negative", "plumbing", "urgency", "office", "leak")]
    }
}
CLEAN = '{"urgency": "high", "sentiment": "negative", "categories": ["plumbing", "office", "leak"]}'

CHECKS = [
    (
        "Output satisfies the per-task mustMention / mustNotMention expectations. Graded (partial credit).",
        ["task_expectations"],
        {},
        {"a refund": 1.0, "a refund or a gift card": 0.5, "a gift card": 0.0},
    ),
    (
        "containsvalue, caseSensitive?Output contains the substring (case-insensitive by default). Alias: must_contain.",
        ["contains", "must_contain"],
        {"value": "Refund"},
        {"no REFUNDS": 1.0, "re fund": 0.0},
    ),
    (
        "not_containsvalue, caseSensitive?Output does not contain the substring. Alias: must_not_contain.",
        ["not_contains", "must_not_contain"],
        {"value": "Refund", "caseSensitive": True},
        {"no Refunds": 0.0, "no refunds": 1.0},
    ),
    ("regexpatternOutput matches the regular expression.", ["regex"], {"pattern": r"^\d+$"}, {"42": 1.0, "4 2": 0.0}),
    (
        "equalsvalue, caseSensitive?Trimmed output equals the value. Alias: exact_match.",
        ["equals", "exact_match"],
        {"value": "Yes"},
        {" yes\n": 1.0, "yes.": 0.0},
    ),
    (
        "min_lengthvalueOutput is at least value characters long.",
        ["min_length"],
        {"value": 3},
        {"é🎉a": 1.0, "ab": 0.0},
    ),
    (
        "max_lengthvalueOutput is at most value characters long.",
        ["max_length"],
        {"value": 3},
        {"é🎉a": 1.0, "abcd": 0.0},
    ),
    (
        "json_validOutput parses as JSON (strict json.loads).",
        ["json_valid"],
        {},
        {"[1, NaN]": 1.0, "```json\n1\n```": 0.0, "{'a': 1}": 0.0},
    ),
    (
        "json_keysrequiredKeysOutput is a JSON object containing every required key.",
        ["json_keys"],
        {"requiredKeys": ["a", "b"]},
        {'{"a": 1, "b": null, "c": 2}': 1.0, '{"a": 1}': 0.0, '["a", "b"]': 0.0},
    ),
    (
        "expected_output_schemaOutput is a JSON object with the required keys from the task's expected output schema.",
        ["expected_output_schema"],
        {},
        {'{"a": 1, "c": 2}': 1.0, '{"b": 1}': 0.0, "a": 0.0},
    ),
]


def check_types(names, params, verdicts):
    def proof():
        row = {"metadata": json.loads(METADATA), "expectedOutputSchema": {"required": ["a"]}}
        for name in names:
            assert rewards(spec_of(name, params), *verdicts, **row) == [*verdicts.values()]

    proof.__name__ = names[0]
    return proof


for _words, *_case in CHECKS:
    promised(NATIVE, _words)(check_types(*_case))


@promised(NATIVE, "Scoring is deterministic and local")
def without_a_network():
    def refuse(*_):
        raise AssertionError

    texts = [f"answer {number % 7}" for number in range(100)]
    spec = {"id": "v", "checks": [{"type": "similarity", "value": "answer 3"}, {"type": "regex", "pattern": "[35]"}]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        assert scored(spec, *texts).equals(scored(spec, *texts))


@promised(
    NATIVE,
    "every failed check produces a concrete reason that becomes the feedback GEPA reflects on",
    "the failure reasons from every sub-perfect check are concatenated into the feedback it reads",
    "Each entry's message is the failure reason handed to GEPA",
    "GEPA optimizes against the continuous score",
    "a concrete message per miss",
)
def feedback():
    spec = {"id": "v", "checks": [*json.loads(REFUND)["checks"], {"type": "max_length", "value": 12, "weight": 3}]}
    evaluate = assay.adapters.gepa_batch(spec, lambda candidate, _: candidate)
    ((score, reflected),) = evaluate([("buy a gift card", {"metadata": json.loads(METADATA)})])
    ((better, _),) = evaluate([("a gift card", {"metadata": json.loads(METADATA)})])
    assert (score, better) == (0.0, 0.75)
    first, second = reflected["Feedback"].split("\n")
    assert first == (
        "policy-expectations: the answer should offer a refund; do not push a gift card instead of a refund"
    )
    assert second.startswith("max_length: ")


@promised(
    NATIVE,
    "A native verifier is a JSON file with an ordered list of checks.",
    "Each check has a type, an optional weight (default 1), and params",
    "The native verifier supports these check types for local, deterministic scoring",
    REFUND,
    METADATA,
)
def a_file():
    Path("refund-quality.json").write_text(REFUND)
    columns = scored("refund-quality.json", "a refund", metadata=json.loads(METADATA))
    assert columns.row(0, named=True) == {
        "reward": 1.0,
        "passed": True,
        "feedback": "",
        "error": None,
        "score/refund-policy-quality": 1.0,
        "check/refund-policy-quality/policy-expectations": 1.0,
    }
    ordered = {"checks": [{"type": "contains", "value": letter, "id": letter} for letter in "cab"]}
    assert [line[0] for line in scored(ordered, "")["feedback"].item().split("\n")] == ["c", "a", "b"]
    assert [check.weight for check in assay.load_verifier("refund-quality.json").checks] == [1.0]


@promised(
    NATIVE,
    "every check returns 0, 1, or a fraction (partial credit)",
    "The verifier score is the weighted mean of its checks",
    "so a check with weight: 4 counts four times as much as a weight: 1 check",
)
def weights():
    spec = {"checks": [{"type": "contains", "value": "a", "weight": 4}, {"type": "contains", "value": "b"}]}
    assert rewards(spec, "ab", "a", "b", "") == [1.0, 0.8, 0.2, 0.0]
    half = {"checks": [{"type": "task_expectations", "weight": 4}, {"type": "contains", "value": "b"}]}
    expectations = {"expectations": [{"text": "x"}, {"text": "y"}]}
    assert rewards(half, "x b", metadata=expectations) == [(4 * 0.5 + 1) / 5]


@promised(NATIVE, "the final score is the plain mean of each verifier's score")
def several_verifiers():
    specs = [spec_of("contains", {"value": letter}) | {"id": letter} for letter in "abc"]
    heavy = specs[0] | {"checks": [specs[0]["checks"][0] | {"weight": 9}]}
    assert rewards([heavy, *specs[1:]], "a", "ab") == [1 / 3, 2 / 3]


@promised(
    NATIVE,
    "passThreshold (default 1.0) sets the score at or above which the output counts as passed",
    'Marking a check "required": true makes any failure of it critical',
    "the output cannot pass regardless of the numeric score",
)
def passing():
    checks = [{"type": "contains", "value": "a", "weight": 3}, {"type": "contains", "value": "b"}]

    def passed(checks, **fields):
        return scored({"checks": checks, **fields}, "ab", "a")["passed"].to_list()

    assert passed(checks) == [True, False]
    assert passed(checks, passThreshold=0.75) == [True, True]
    required = [checks[0], checks[1] | {"required": True}]
    assert passed(required, passThreshold=0.75) == [True, False]
    assert rewards({"checks": required}, "a") == rewards({"checks": checks}, "a") == [0.75]


@promised(
    NATIVE,
    "An unknown check type is skipped (it does not fail the output) and noted in the feedback.",
    "A check that raises is treated as a failure with the exception in the reason, so one broken check can never crash the run.",
)
def broken_checks():
    good = {"type": "contains", "value": "a"}
    with pytest.warns(assay.AssayWarning, match="shiny"):
        row = scored({"checks": [good, {"type": "shiny"}]}, "a").row(0, named=True)
    assert (row["reward"], row["passed"], "shiny" in row["feedback"]) == (1.0, True, True)
    with pytest.warns(assay.AssayWarning, match="regex"):
        row = scored({"checks": [good, {"type": "regex", "pattern": "("}]}, "a").row(0, named=True)
    assert (row["reward"], row["passed"]) == (0.5, False)
    assert "missing ), unterminated subpattern" in row["feedback"]
    assert "missing ), unterminated subpattern" in row["error"]


@promised(
    NATIVE,
    "It reads expectations from each task's metadata and grades the output phrase by phrase",
    "Each entry uses anyOf (a list of acceptable phrases) or a single text phrase.",
    "Matching is case-insensitive substring matching.",
    "The score is (total − failures) / total across all mustMention and mustNotMention entries",
    "so missing one of four expectations scores 0.75",
)
def expectations():
    entries = {
        "mustMention": [{"anyOf": ["refund", "money back"]}, {"text": "sorry"}],
        "mustNotMention": [{"text": "gift"}],
    }
    entries["mustNotMention"].append({"anyOf": ["voucher", "points"]})
    texts = ["SORRY, Money BACK", "moneybacksorry refunds", "sorry", "sorry, a gift", "points", "a gift of points"]
    spec = spec_of("task_expectations")
    assert rewards(spec, *texts, metadata={"expectations": entries}) == [1.0, 1.0, 0.75, 0.5, 0.25, 0.0]
    own = [{"completion": "a", "metadata": {"expectations": [{"text": text}]}} for text in "ab"]
    assert assay.score(own, spec)["reward"].to_list() == [1.0, 0.0]


@promised(
    NATIVE,
    FACILITY,
    "the field-label check carries weight: 4, valid-JSON weight: 2, and required-keys weight: 1",
    "The structured-extraction verifier combines three checks at different weights",
    "That spread is what lets the live candidate scores separate",
    "A clean, correct answer scores 1.0; a partially-right one lands around 0.7–0.8; freeform prose that is not JSON scores near 0.1.",
)
def structured_extraction():
    partly = CLEAN.replace("leak", "desk").replace("office", "desk").replace("negative", "angry")
    clean, part, prose = rewards(json.loads(FACILITY), CLEAN, partly, "There is a leak.", metadata=LABELS)
    assert (clean, round(part, 2), round(prose, 2)) == (1.0, 0.71, 0.1)


@promised(
    NATIVE,
    "rollout verifiers create ./verifiers/refund-quality.json",
    "reference an existing verifier by id afterwards",
    "rollout optimize run --verifier refund-policy-quality",
    "created inline when you reference the file",
    "--verifier ./verifiers/refund-quality.json",
)
def registered_specs():
    Path("verifiers").mkdir()
    Path("verifiers/refund-quality.json").write_text(REFUND)
    rows = [{"completion": "a refund", "metadata": json.loads(METADATA)}]
    Path("rows.jsonl").write_text(json.dumps(rows[0]))
    command("verifiers", "create", "./verifiers/refund-quality.json")
    command("verifiers", "create", "./verifiers/refund-quality.json")
    assert command("verifiers", "list").count("refund-policy-quality@") == 1
    for spec in ("refund-policy-quality", "./verifiers/refund-quality.json"):
        assert json.loads(command("score", "rows.jsonl", "--spec", spec, "--json"))["mean_reward"] == 1.0
        assert assay.score(rows, spec)["reward"].to_list() == [1.0]


# ── verifiers on the row, and their functions ───────────────────────────────────────────────────────────────────────────


@promised(
    ON_ROW,
    ROW,
    "A verifier turns a model's completion into a reward.",
    "the verifier rides on the data, and the registry holds the function it names",
    "so each task brings its own check and its own expected answer",
    "At score time the SDK resolves fn_name → a function in the verifier-fn registry and calls it with this row's expected/params.",
    "The data selects the verifier (kind + fn_name) and supplies the per-task gold",
)
def a_task_brings_its_verifier():
    Path("tasks.yaml").write_text(
        ROW + ROW.replace("q0", "q1").replace("contains  ", "exact_match").replace("true", "false")
    )
    rollouts = [
        {"task_id": task, "completion": text} for task in ("q0", "q1") for text in ("so <Answer>4</answer>", "4")
    ]
    rollouts.append({"task_id": "q1", "completion": "<answer>4</answer> "})
    columns = assay.score(rollouts, tasks="tasks.yaml")
    assert columns["reward"].to_list() == [1.0, 0.0, 0.0, 0.0, 1.0]
    assert columns["verifier_fn"].to_list() == ["contains"] * 2 + ["exact_match"] * 3


@promised(
    ON_ROW,
    GOLD,
    "Strips whitespace from both sides",
    "lower-cases both; returns 1.0 on exact string equality else 0.0.",
)
@promised(API, "Strict text equality (after whitespace strip + optional case-fold).")
def exact_match():
    verifier = yaml.safe_load(GOLD)["verifier"]
    assert [by_row(text, verifier) for text in (" 42\n", "4 2", "42.0")] == [1.0, 0.0, 0.0]
    for params, reward in (({}, 0.0), ({"ignore_case": 1}, 1.0), ({"ignore_case": ""}, 0.0)):
        verifier = InProcessVerifier("exact_match", " YES", params)
        assert by_row("yes ", verifier) == fns.exact_match("yes ", " YES", params) == reward


OF_OURS = "functions/test_functions.py::test_a_function_of_ours"
promised(
    ON_ROW,
    "Returns 1.0 if str(expected) is a non-empty substring of model_output (case-folded when",
    "Treats expected as a regex; returns 1.0 if re.search finds it in model_output (with re.IGNORECASE when",
    "Parses both model_output and expected as JSON dicts (stripping code fences).",
    "Returns 1.0 only if tool and action match; any ref/text present in expected must match; and a coordinate must be within",
    "(default 25) on both axes. Otherwise 0.0.",
)(OF_OURS)
promised(
    API,
    "1.0 if expected is a substring of model_output.",
    "1.0 if regex expected matches model_output.",
    "1.0 if the model's emitted tool call matches expected; else 0.0.",
    "Both must parse as JSON dicts; tool + action must match; optional ref/text must match if present in expected; coordinate must",
    "be within params['coordinate_tolerance'] (default 25).",
)(OF_OURS)


@promised(
    ON_ROW,
    FUNCTION,
    NAMED,
    "Register your own once with @register_fn, reference it by name from any row.",
    "Register a function with the @register_fn decorator (or register(name, fn))",
    "or set verifier_name: startswith on the RL algorithm so every row defaults to it",
)
@promised(API, "register_fn(fn_name) -> Callable[[VerifierFn], VerifierFn]Decorator form of register.")
def a_function_of_yours():
    startswith = run(FUNCTION)["startswith"]
    rows = [{"completion": text, **yaml.safe_load(NAMED)} for text in ("answer: 4", "four")]
    assert assay.score(rows)["reward"].to_list() == [1.0, 0.0]
    fns.register("begins", startswith)
    rows = [{"completion": "Answer: 4", "expected": "Answer:"}]
    for name in ("startswith", "begins"):
        assert fns.get(name) is startswith
        assert assay.score(rows, verifier_name=name)["reward"].item() == 1.0


promised(ON_ROW, "kind must be in_process today")(
    "functions/test_request.py::test_other_kinds_and_unknown_names_are_refused_before_scoring"
)
promised(
    ON_ROW, "only a default fn_name - used when a row leaves fn_name blank, so you don't repeat it on every task."
)("functions/test_request.py::test_blank_names_mean_the_default")


@promised(
    ON_ROW,
    "At score time the runner looks up fn_name via fns.get(fn_name) and calls the function.",
    "Every verifier-fn shares this exact signature:",
    "def fn(model_output: str, expected: Any, params: dict) -> float: ...",
    "model_output: str - the model's completion text.",
    "expected: Any - the gold value from the task's expected field (string, dict, etc., depending on the fn).",
    "params: dict - the task's params block, a plain dict of options.",
    "returns float - the reward, typically 1.0 (pass) or 0.0 (fail).",
)
@promised(
    API,
    "Resolve with get(fn_name); extend with register(fn_name, fn)",
    "get(fn_name) -> VerifierFn",
    "register(fn_name, fn) -> None",
)
def what_a_function_gets():
    calls = []

    def spy(model_output, expected, params):
        calls.append((model_output, expected, params))
        return 0.5

    assert fns.register("spy", spy) is None
    assert fns.get("spy") is spy
    chat = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "4"}]
    golds = ["4", {"a": [1, None]}, [1, 2], None, 4.5]
    for expected in golds:
        verifier = {"fn_name": "spy", "expected": expected, "params": {"n": 1}}
        columns = assay.score([{"completion": chat, "verifier": verifier}])
        assert columns.select("reward", "passed").row(0) == (0.5, False)
    assert [gold for _, gold, _ in calls] == golds
    assert all((text, type(params), params) == ("4", dict, {"n": 1}) for text, _, params in calls)
    for name in (*BUILT_IN, "spy"):
        assert [*inspect.signature(fns.get(name)).parameters] == ["model_output", "expected", "params"]
    with pytest.raises(ValueError, match=r"No verifier function is called 'spi'\. Did you mean `spy`"):
        fns.get("spi")


@promised(ON_ROW, "VerifierFn = Callable[[str, Any, dict], float]")
@promised(
    API,
    f"attribute__all__= {EXPORTS}",
    "attributeVerifierFn= Callable[[str, Any, dict], float]",
    "list_fns() -> list[str]",
    *(f"{name}(model_output, expected, params) -> float" for name in BUILT_IN),
)
def exports():
    for module in (fns, assay.fns):
        assert repr(module.__all__) == EXPORTS
        assert all(hasattr(module, name) for name in module.__all__)
    (arguments, result) = typing.get_args(fns.VerifierFn)
    assert [typing.get_origin(kind) or kind for kind in (*arguments, result)] == [str, Any, dict, float]
    for name in BUILT_IN:
        assert fns.get(name) is getattr(fns, name)
        assert typing.get_type_hints(fns.get(name))["return"] is float
    assert fns.list_fns() == sorted(BUILT_IN)


@promised(API, "_normalize_json(s) -> dict | NoneBest-effort: strip code fences")
def normalize_json():
    for text in (
        '{"a": {"b": 1}}',
        '```json\n{"a": {"b": 1}}\n```',
        '```\n{"a": {"b": 1}}```',
        ' I call {"a": {"b": 1}} now.',
    ):
        assert fns._normalize_json(text) == {"a": {"b": 1}}
    for text in ("", "no", "[1]", "{", "{a: 1}", "```json\n```", '{"a": 1} {"b": 2}', None):
        assert fns._normalize_json(text) is None


@promised(
    API,
    'InProcessVerifier(fn_name="tool_calls_match", expected=..., params=...) stores only a reference',
    "This is the single source of truth for in-process verifier logic",
    "there is exactly ONE registry",
    "the actual function lives here, in the SDK",
    "only the fn_name + per-task expected/params",
)
@promised(
    ON_ROW,
    "that's InProcessVerifier, which just dispatches to your fn_name.",
    "the SDK is the single source of truth for the function",
    "This is the single source of truth for cheap Python verification logic.",
)
def in_process_verifier():
    verifier = InProcessVerifier(fn_name="later", expected={"a": 1}, params={"n": 2})
    assert (assay.InProcessVerifier, verifier.kind) == (InProcessVerifier, "in_process")
    assert json.loads(json.dumps(verifier)) == {
        "kind": "in_process",
        "fn_name": "later",
        "expected": {"a": 1},
        "params": {"n": 2},
    }
    with pytest.raises(ValueError, match="later"):
        verifier.verify(prompt="", completion="x", target={})
    for reward in (0.25, 0.75):
        assay.fns.register("later", lambda text, expected, params, reward=reward: reward * expected["a"] * params["n"])
        result = verifier.verify(prompt="", completion="x", target={})
        assert result == assay.VerificationResult(2 * reward)
        assert by_row("x", verifier) == 2 * reward
    assert functions.function("later").fn is fns.get("later") is assay.fns.get("later")


@promised(API, "the named function resolves against this SDK version - record the SDK version on the experiment/run")
def versions():
    verifier = InProcessVerifier("contains", "a")
    assay.score_file([{"completion": "a", "verifier": verifier}], None, "out.parquet")
    footer = json.loads(pl.read_parquet_metadata("out.parquet")[PROVENANCE_KEY])
    assert footer["assay_version"] == assay.__version__


# ── verifier classes ────────────────────────────────────────────────────────────────────────────────────────────────────


@promised(
    ON_ROW,
    "as class Verifier(Protocol), alongside the result dataclass",
    "class VerificationResult: reward: float info: dict[str, Any] = field(default_factory=dict)",
    "A verifier class declares two class vars and one method:",
    "name: ClassVar[str] - registry key / YAML kind.",
    "def verify(self, *, prompt: str, completion: str, target: dict[str, Any]) -> VerificationResult - all three arguments are keyword-only.",
)
def the_protocol():
    assert protocols.Verifier.__bases__ == (typing.Protocol,)
    assert set(inspect.get_annotations(protocols.Verifier)) == {"name", "Config"}
    parameters = [*inspect.signature(protocols.Verifier.verify).parameters.values()][1:]
    assert [parameter.name for parameter in parameters] == ["prompt", "completion", "target"]
    assert {parameter.kind for parameter in parameters} == {inspect.Parameter.KEYWORD_ONLY}
    first, second = protocols.VerificationResult(0.5), protocols.VerificationResult(reward=0.5, info={})
    assert first == second
    assert first.info is not second.info
    run(CLASS)
    assert isinstance(assay.get_verifier("length_band")(), protocols.Verifier)


@promised(
    ON_ROW,
    CLASS,
    BAND,
    'Config: ClassVar[type] - Pydantic model (extra="forbid") for the verifier\'s params; params: from YAML is validated against it.',
    "It returns a VerificationResult whose reward is a float and whose info is a free-form dict of diagnostics",
    "(surfaced for debugging, not used for training)",
    "Use a Verifier class when the reward logic is config-level and shared across tasks, or needs richer params via Config.",
)
def a_class_of_yours():
    run(CLASS)
    Path("band.yaml").write_text(BAND)
    assert "length_band" in assay.list_verifiers()
    columns = scored("band.yaml", *("x" * length for length in (89, 90, 150, 151)))
    assert columns["reward"].to_list() == [0.0, 1.0, 1.0, 0.0]
    assert [json.loads(info)["chars_off"] for info in columns["info/band"]] == [31, 30, 30, 31]
    Path("band.yaml").write_text(BAND.replace("tolerance: 30", "tolerence: 30"))
    with pytest.raises(assay.SpecError, match="tolerence"):
        scored("band.yaml", "x")


promised(
    ON_ROW,
    "prompt is the input text the model saw; completion is the model's generated text; target is a dict of gold/reference data",
    "(answer keys, expected fields, etc.)",
)("classes/test_verifiers.py::test_a_class_gets_prompt_and_target")


@promised(
    ON_ROW,
    FORMAT,
    "verify checks whether completion contains both <think>/</think> (adds has_think_reward, default 0.5) and",
    "<answer>/</answer> (adds has_answer_reward, default 0.5).",
    'Returns the summed reward and info={"has_think": ..., "has_answer": ...}.',
)
def format_only():
    Path("format.yaml").write_text(FORMAT)
    texts = ["<think>a</think>", "<answer>4</answer></think><think>", "<think></answer>"]
    for spec, name in (("format.yaml", "format"), ({"kind": "format_only"}, "verifier")):
        columns = scored(spec, *texts)
        assert columns["reward"].to_list() == [0.5, 1.0, 0.0]
        assert columns[f"info/{name}"][0] == '{"has_think":true,"has_answer":false}'


@promised(
    ON_ROW,
    PLUGIN,
    "A Verifier class can be registered from an external package via the entry-point group",
    "they are not loaded through entry points.",
)
def plugins():
    space = run(CLASS)
    del verifiers._REGISTRY["length_band"]
    module = type(inspect)("my_pkg_verifiers")
    module.LengthBandVerifier = space["LengthBandVerifier"]

    def installed(group):
        return (
            [EntryPoint("length_band", "my_pkg_verifiers:LengthBandVerifier", group)]
            if group == "evsys_sdk.verifiers"
            else []
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "my_pkg_verifiers", module)
        patch.setattr(verifiers, "entry_points", installed)
        assert rewards(yaml.safe_load(BAND), "x" * 90, "x" * 89) == [1.0, 0.0]
        assert "length_band" in assay.list_verifiers()
        assert "length_band" not in fns.list_fns()


# ── rollout types ───────────────────────────────────────────────────────────────────────────────────────────────────────

CHAT = [{"role": "assistant", "content": "4", "tool_calls": [{"id": "c1"}]}]
COMPLETIONS = ["4", [{"role": "user", "content": "What is 2+2?"}, {"role": "assistant", "content": "4"}]]
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


@promised(ROLLOUTS, MODELS, "Verifiers uses Pydantic models for structured data")
def the_models():
    for name in ("GenerateInputs", "GenerateOutputs", "RolloutScore", "RolloutScores", "ProcessedOutputs"):
        theirs, ours = run(MODELS)[name], getattr(types, name)
        required = [field for field, info in theirs.model_fields.items() if info.is_required()]
        assert [*ours.model_fields] == [*theirs.model_fields]
        assert [field for field, info in ours.model_fields.items() if info.is_required()] == required
        values = VALUES | ({"reward": 1.0, "metrics": {"f": 0.5}} if name == "RolloutScore" else {"reward": [0.5, 1.0]})
        for fields in (theirs.model_fields, required):
            given = {field: values[field] for field in fields}
            assert ours(**given).model_dump() == theirs(**given).model_dump()
            for field in given:
                with pytest.raises(pydantic.ValidationError):
                    ours(**given | {field: object()})


@promised(
    ROLLOUTS,
    SAMPLING,
    "State = dict[str, Any]",
    "Info = dict[str, Any]",
    "RewardFunc = Callable[..., float | Awaitable[float]]",
)
def the_aliases():
    for name, sample in (("State", STATE), ("Info", INFO), ("SamplingArgs", SAMPLING), ("RewardFunc", REWARD)):
        assert run(sample)[name] == getattr(types, name)
    assert types.Messages == str | list[types.ChatMessage]


@promised(ROLLOUTS, REWARD, INFO, "The info field in datasets can contain arbitrary metadata")
def reward_functions():
    graded = run(
        INFO.replace("    # Adjust scoring based on difficulty...", '    return {"medium": 0.5}.get(difficulty, 0.0)')
    )
    rubric = assay.Rubric([run(REWARD)["my_reward_func"], graded["reward_func"]], [1.0, 0.5])
    infos = [{"difficulty": "medium", "source": ["a", {"b": None}]}, None]
    scores = asyncio.run(
        rubric.score_rollouts(["p", "p"], COMPLETIONS, ["4", "4"], [{}, {}], ["default"] * 2, infos, use_tqdm=False)
    )
    metrics = {"my_reward_func": [1.0, 1.0], "reward_func": [0.5, 0.0]}
    assert scores == types.RolloutScores(reward=[1.25, 1.0], metrics=metrics)
    rows = [{"completion": text, "answer": "4", "info": info} for text, info in zip(COMPLETIONS, infos, strict=True)]
    assert assay.score(rows, rubric)["reward"].to_list() == [1.25, 1.0]
    state = {}
    assert asyncio.run(assay.Rubric([run(INFO)["reward_func"]]).score_rollout("p", "4", "4", state)).reward == 0.0
    assert state["error"].startswith("reward_func: TypeError: float() argument must be")


@promised(ROLLOUTS, '"answer": "42",              # Required: ground truth')
def golds_of_info():
    def right(completion, answer):
        return float(completion[-1]["content"] == answer)

    row = {"prompt": "Solve this problem", "info": {"answer": "42", "chapter": 3}}
    env = assay.SingleTurnEnv(dataset=[row], rubric=assay.Rubric([right]))
    with Loopback(lambda _: say("42")) as server:
        assert env.evaluate_sync(client_of(server), "m").reward == [1.0]


@promised(ROLLOUTS, MESSAGES, CONTENT, "Messages = str | list[ChatMessage] # Can be string (completion) or chat")
def messages():
    sample = run(MESSAGES)
    for completion in (sample["messages"], sample["completion"], *COMPLETIONS):
        assert assay.get_text_content(completion) == run(CONTENT)["get_text_content"](completion)
        assert assay.Parser().parse_answer(completion) == assay.get_text_content(completion)


@promised(ROLLOUTS, PARSERS)
def parsers():
    stubs = run(PARSERS)
    for name in ("parse", "parse_answer"):
        assert [*inspect.signature(getattr(assay.Parser(), name)).parameters] == [
            *inspect.signature(stubs[name]).parameters
        ]
    fields = assay.XMLParser(["answer"]).parse("<answer>4</answer>")
    assert (fields.answer, assay.XMLParser(["answer"]).parse_answer("4")) == ("4", None)


LOGPROBS = {"content": [{"token": "4", "logprob": -0.5, "bytes": None, "top_logprobs": []}], "token_ids": [19]}


def environment(**options):
    """An environment with the functions of the document."""

    def turns(state):
        return float(state["turn"] == 3 and state["task"] == "math")  # its own count, and that of the sample

    def is_completed(self, messages, state, **kwargs):
        return len(state["responses"]) == 2

    samples = {"env_response": RESPONSE, "reset_for_rollout": RESET}
    methods = {name: run(code)[name] for name, code in samples.items()}
    kind = type("Sample", (assay.MultiTurnEnv,), {**methods, "is_completed": is_completed})
    rows = [
        {"prompt": [{"role": "user", "content": "2 + 2?"}], "answer": "4", "info": {"task": "math"}, "task": "math"}
    ]
    return kind(dataset=rows, rubric=assay.Rubric([turns]), env_id="sums", env_args={"n": 1}, **options)


@promised(ROLLOUTS, STATE, "(for EnvGroup)", "(MultiTurnEnv)", "(ToolEnv)")
def states():
    def look(where: str) -> str:
        """Look."""
        return where

    def call(request):
        number = {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"where": "up"}'}}
        return say("", fields={"tool_calls": [number]}) if request.number == 0 else say("4")

    group = assay.EnvGroup([assay.ToolEnv([look], dataset=[{"question": "2 + 2?", "answer": "4"}])], ["tools"])
    with Loopback(call) as server:
        (state,) = group.generate_sync(group.get_dataset(), client_of(server), "m").state
    assert {"prompt", "completion", "info", "responses", "timing"} <= {*state}
    assert [state[name] for name in ("answer", "task", "example_id", "turn", "tools_called")] == [
        *("4", "tools", 0, 2, ["look"]),
    ]
    assert all(isinstance(milliseconds, float) for milliseconds in state["timing"].values())


@promised(
    ROLLOUTS,
    RESPONSE,
    RESET,
    "The State object tracks rollout information throughout an interaction",
    "The responses field contains raw API response objects with:",
    "choices[0].logprobs.content: Token-level log probabilities",
    "choices[0].logprobs.token_ids: Token IDs",
    "choices[0].finish_reason: Why generation stopped",
    "usage: Token usage statistics",
    'async def rollout(...) -> tuple[Messages, State]: """Returns (completion, final_state)"""',
)
def a_rollout():
    env = environment()
    (row,) = env.get_dataset()

    async def rollout(server):
        async with own_client_of(server) as client:
            return await env.rollout(client, "m", row["prompt"], answer="4", task="math", info=row["info"])

    with Loopback(lambda _: say("4", choice={"logprobs": LOGPROBS, "finish_reason": "length"})) as server:
        completion, state = asyncio.run(rollout(server))
    assert [message["content"] for message in completion] == ["4", "Environment feedback", "4"]
    assert completion == state["completion"]
    fields = ("prompt", "answer", "task", "info", "last_action")
    assert [state[name] for name in fields] == [row["prompt"], "4", "math", {"task": "math"}, "provided feedback"]
    response = state["responses"][0]
    choice = response.choices[0]
    assert (choice.logprobs.content[0].logprob, choice.logprobs.token_ids, choice.finish_reason) == (
        -0.5,
        [19],
        "length",
    )
    assert response.usage.completion_tokens == 1


@promised(
    ROLLOUTS,
    'async def evaluate(...) -> GenerateOutputs: """Async interface that returns GenerateOutputs."""',
    'def evaluate_sync(...) -> GenerateOutputs: """Blocking helper that wraps the async evaluate coroutine."""',
    'async def generate(...) -> GenerateOutputs: """Async interface that returns GenerateOutputs containing rollout data"""',
    'def generate_sync(...) -> GenerateOutputs: """Blocking helper for integrate-with-sync-code scenarios"""',
    "vLLM-specific generation parameters:",
    "GenerateOutputs.metadata captures run-level context (environment + arguments, model + sampling configuration, summary statistics,",
    "and the resolved save path) so downstream tooling can reproduce or resume evaluations without guessing defaults.",
)
def runs():
    arguments = run(SAMPLING)["sampling_args"]
    env = environment(sampling_args=arguments)
    with Loopback(lambda _: say("4")) as server:

        async def both():
            async with own_client_of(server) as client:
                return [await env.evaluate(client, "m"), await env.generate(env.get_dataset(), client, "m")]

        outputs = [
            *asyncio.run(both()),
            env.evaluate_sync(client_of(server), "m"),
            env.generate_sync(env.get_dataset(), client_of(server), "m", results_path="saved"),
        ]
        requests = len(server.requests)
        again = env.generate_sync(env.get_dataset(), client_of(server), "m", results_path="saved")
        assert len(server.requests) == requests
    assert [type(run) for run in outputs] == [types.GenerateOutputs] * 4
    assert [run.answer for run in outputs] == [["4"]] * 4
    metadata = outputs[-1].metadata
    assert again.reward == outputs[-1].reward == [1.0]
    assert (metadata.env_id, metadata.env_args, metadata.model) == ("sums", {"n": 1}, "m")
    assert (metadata.num_examples, metadata.rollouts_per_example, metadata.avg_reward) == (1, 1, outputs[-1].reward[0])
    assert metadata.path_to_save.resolve() == Path("saved").resolve()
    assert metadata.sampling_args == arguments
    body = server.requests[0].body
    assert {name: body[name] for name in ("top_p", "top_k", "top_logprobs")} == {
        "top_p": 0.9,
        "top_k": 50,
        "top_logprobs": 5,
    }
    assert body["guided_decoding"] == arguments["extra_body"]["guided_decoding"]


# ── the tests ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.skipif(not SEEDS.exists(), reason=f"the documents are not there: {SEEDS}")
def test_the_words_are_those_of_the_documents():
    texts = {name: plain((SEEDS / f"{name}.txt").read_text("utf-8")) for name in (NATIVE, ON_ROW, API, ROLLOUTS)}
    assert [words for document, words, _ in (*PROMISES, *OTHERWISE) if plain(words) not in texts[document]] == []


def test_the_tests_that_show_what_is_promised_are_there():
    named = {proof for *_, proof in PROMISES if isinstance(proof, str)}
    for path, _, name in (proof.partition("::") for proof in named):
        assert f"def {name}(" in (ROOT / "tests" / path).read_text("utf-8")


PROOFS = dict.fromkeys(proof for *_, proof in PROMISES if callable(proof))


@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.__name__)
def test_the_promise_is_kept(proof, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for registry, own in ((functions, BUILT_IN), (verifiers, ["format_only"])):
        monkeypatch.setattr(registry, "_REGISTRY", {name: registry._REGISTRY[name] for name in own})
    proof()
