"""Assay scores millions of LLM rollouts in one pass.

    import assay

    verifier = assay.load_verifier("refund-quality.json")      # JSON, YAML, TOML or a dict
    rewards = assay.score("rollouts.parquet", verifier)        # a Polars frame, one row a rollout
    rewards = assay.score(rows, verifier, tasks="tasks.jsonl") # any table, tasks joined on task_id
    rewards = assay.score(rows)                                # every row names its function and brings its gold
    plan = assay.compile(verifier, rows.schema)                # compile once, score many batches
    rewards = plan.score(rows)
    table = assay.score_batch(table, verifier)                 # Arrow to Arrow, in a task of Ray, Daft or Spark
    assay.score_file("in.parquet", verifier, "out.parquet")    # file to file, whatever its size
    assay.read_provenance("out.parquet")                       # what made these rewards

    env = assay.SingleTurnEnv(dataset=rows, rubric=rubric)     # or MultiTurnEnv: rollouts over an OpenAI-compatible client
    outputs = env.evaluate_sync(client, "a-model")             # generated and scored

A check is a function from a frame of rollouts to one column of scores; a verifier is a weighted mean of checks.
"""

import importlib.util
from typing import TYPE_CHECKING, Any

from assay import processes as _processes  # noqa: F401  (it must see the forks of a process from the start)
from assay._version import __version__

if TYPE_CHECKING:
    from assay import fns, testing
    from assay.batch import batch_schema, score_batch
    from assay.checks import CHECKS, Check, Example, Params, Row
    from assay.environment import Environment
    from assay.errors import (
        AssayError,
        AssayWarning,
        BadRowsError,
        ColumnsError,
        InputError,
        OutputError,
        PartsError,
        SpecError,
        TooManyErrors,
        UsageError,
    )
    from assay.export import read_provenance
    from assay.extract import extract_boxed_answer, extract_hash_answer
    from assay.lanes.base import text
    from assay.multiturn import MultiTurnEnv, SingleTurnEnv
    from assay.parsers import Parser, ThinkParser, XMLParser, get_text_content
    from assay.plan import Plan, compile  # noqa: A004  (the field's word; assay.compile reads as re.compile does)
    from assay.rollouts import scan
    from assay.rubric import Rubric
    from assay.rubric_group import RubricGroup
    from assay.run import score_file
    from assay.schema import json_schema
    from assay.scoring import score
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

__all__ = [
    "CHECKS",
    "AssayError",
    "AssayWarning",
    "BadRowsError",
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
    "PartsError",
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
    "batch_schema",
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
    "score_batch",
    "score_file",
    "testing",
    "text",
]

_HOMES = {
    "batch": ("batch_schema", "score_batch"),
    "checks": ("CHECKS", "Check", "Example", "Params", "Row"),
    "environment": ("Environment",),
    "errors": (
        "AssayError",
        "AssayWarning",
        "BadRowsError",
        "ColumnsError",
        "InputError",
        "OutputError",
        "PartsError",
        "SpecError",
        "TooManyErrors",
        "UsageError",
    ),
    "export": ("read_provenance",),
    "extract": ("extract_boxed_answer", "extract_hash_answer"),
    "lanes.base": ("text",),
    "multiturn": ("MultiTurnEnv", "SingleTurnEnv"),
    "parsers": ("Parser", "ThinkParser", "XMLParser", "get_text_content"),
    "plan": ("Plan", "compile"),
    "rollouts": ("scan",),
    "rubric": ("Rubric",),
    "rubric_group": ("RubricGroup",),
    "run": ("score_file",),
    "schema": ("json_schema",),
    "scoring": ("score",),
    "spec": ("CheckSpec", "VerifierSpec", "load_verifier"),
    "summary": ("Summary",),
    "types": (
        "ChatMessage",
        "GenerateInputs",
        "GenerateMetadata",
        "GenerateOutputs",
        "Info",
        "Messages",
        "ProcessedOutputs",
        "RewardFunc",
        "RolloutScore",
        "RolloutScores",
        "SamplingArgs",
        "State",
    ),
    "verifiers": ("VerificationResult", "Verifier", "get_verifier", "list_verifiers", "register_verifier"),
}
"""Where the public names live. A module is imported when one of its names is first used: ``assay --help`` needs no engine.

NOTE: no name may be that of another module: importing that would put the module in its place.
"""


if not TYPE_CHECKING:  # or a type checker would take any name for one of ours

    def __getattr__(name: str) -> Any:
        """A public name, or a module of the package."""
        home = next((module for module, names in _HOMES.items() if name in names), None)
        if home is not None:
            return globals().setdefault(name, getattr(importlib.import_module(f"assay.{home}"), name))
        if name.isidentifier() and not name.startswith("_") and importlib.util.find_spec(f"assay.{name}"):
            return importlib.import_module(f"assay.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
