"""Assay scores millions of LLM rollouts in one pass.

    import assay

    verifier = assay.load_verifier("refund-quality.json")      # JSON, YAML, TOML or a dict
    rewards = assay.score("rollouts.parquet", verifier)        # a Polars frame, one row a rollout
    rewards = assay.score(rows, verifier, tasks="tasks.jsonl") # any table, tasks joined on task_id
    rewards = assay.score(rows)                                # every row names its function and brings its gold
    plan = assay.compile(verifier, rows.schema)                # compile once, score many batches
    rewards = plan.score(rows)
    assay.score_file("in.parquet", verifier, "out.parquet")    # file to file, whatever its size
    assay.read_provenance("out.parquet")                       # what made these rewards

    env = assay.SingleTurnEnv(dataset=rows, rubric=rubric)     # or MultiTurnEnv: rollouts over an OpenAI-compatible client
    outputs = env.evaluate_sync(client, "a-model")             # generated and scored

A check is a function from a frame of rollouts to one column of scores; a verifier is a weighted mean of checks.
"""

import importlib
from typing import TYPE_CHECKING, Any

from assay import fns, testing
from assay._version import __version__
from assay.checks import CHECKS, Check, Example, Params, Row
from assay.compile import Plan, compile  # noqa: A004  (the field's word; assay.compile reads as re.compile does)
from assay.errors import (
    AssayError,
    AssayWarning,
    ColumnsError,
    InputError,
    OutputError,
    SpecError,
    TooManyErrors,
    UsageError,
)
from assay.export import read_provenance
from assay.extract import extract_boxed_answer, extract_hash_answer
from assay.lanes.base import text
from assay.parsers import Parser, ThinkParser, XMLParser, get_text_content
from assay.rollouts import scan
from assay.rubric import Rubric
from assay.rubric_group import RubricGroup
from assay.run import score_file
from assay.schema import json_schema
from assay.score import score
from assay.spec import CheckSpec, VerifierSpec, load_verifier
from assay.summary import Summary
from assay.types import (
    ChatMessage,
    GenerateInputs,
    GenerateMetadata,
    GenerateOutputs,
    Info,
    Messages,
    ProcessedOutputs,
    RewardFunc,
    RolloutScore,
    RolloutScores,
    SamplingArgs,
    State,
)
from assay.verifiers import VerificationResult, Verifier, get_verifier, list_verifiers, register_verifier

if TYPE_CHECKING:
    from assay.environment import Environment
    from assay.multiturn import MultiTurnEnv, SingleTurnEnv

__all__ = [
    "CHECKS",
    "AssayError",
    "AssayWarning",
    "ChatMessage",
    "Check",
    "CheckSpec",
    "ColumnsError",
    "Environment",
    "Example",
    "GenerateInputs",
    "GenerateMetadata",
    "GenerateOutputs",
    "Info",
    "InputError",
    "Messages",
    "MultiTurnEnv",
    "OutputError",
    "Params",
    "Parser",
    "Plan",
    "ProcessedOutputs",
    "RewardFunc",
    "RolloutScore",
    "RolloutScores",
    "Row",
    "Rubric",
    "RubricGroup",
    "SamplingArgs",
    "SingleTurnEnv",
    "SpecError",
    "State",
    "Summary",
    "ThinkParser",
    "TooManyErrors",
    "UsageError",
    "VerificationResult",
    "Verifier",
    "VerifierSpec",
    "XMLParser",
    "__version__",
    "compile",
    "extract_boxed_answer",
    "extract_hash_answer",
    "fns",
    "get_text_content",
    "get_verifier",
    "json_schema",
    "list_verifiers",
    "load_verifier",
    "read_provenance",
    "register_verifier",
    "scan",
    "score",
    "score_file",
    "testing",
    "text",
]

_ON_USE = {"Environment": "environment", "MultiTurnEnv": "multiturn", "SingleTurnEnv": "multiturn"}
"""Names whose modules are imported when they are first used: who scores a file needs no event loops."""


if not TYPE_CHECKING:  # or a type checker would take any name for one of ours

    def __getattr__(name: str) -> Any:
        if name not in _ON_USE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"assay.{_ON_USE[name]}"), name)
