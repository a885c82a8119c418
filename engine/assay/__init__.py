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

from assay._version import __version__
from assay.system import processes as _processes  # noqa: F401  (it must see the forks of a process from the start)

if TYPE_CHECKING:
    from assay import fns, testing
    from assay.checks import CHECKS, Check, Example, Params, Row
    from assay.classes.registry import VerificationResult, Verifier, get_verifier, list_verifiers, register_verifier
    from assay.compiling.plan import Plan, compile  # noqa: A004  (the field's word; assay.compile reads as re.compile does)
    from assay.environments.environment import Environment
    from assay.environments.multiturn import MultiTurnEnv, SingleTurnEnv
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
    from assay.expressions.lane import text
    from assay.loading.rollouts import scan
    from assay.rubrics.extract import extract_boxed_answer, extract_hash_answer
    from assay.rubrics.group import RubricGroup
    from assay.rubrics.parsers import Parser, ThinkParser, XMLParser, get_text_content
    from assay.rubrics.rubric import Rubric
    from assay.runs.score_file import score_file
    from assay.scoring.arrow_batches import batch_schema, score_batch
    from assay.scoring.in_memory import score
    from assay.scoring.summary import Summary
    from assay.spec.json_schema import json_schema
    from assay.spec.verifier import CheckSpec, VerifierSpec, load_verifier
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
    from assay.writing.writers import read_provenance

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
    "scoring.arrow_batches": ("batch_schema", "score_batch"),
    "checks": ("CHECKS", "Check", "Example", "Params", "Row"),
    "environments.environment": ("Environment",),
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
    "writing.writers": ("read_provenance",),
    "rubrics.extract": ("extract_boxed_answer", "extract_hash_answer"),
    "expressions.lane": ("text",),
    "environments.multiturn": ("MultiTurnEnv", "SingleTurnEnv"),
    "rubrics.parsers": ("Parser", "ThinkParser", "XMLParser", "get_text_content"),
    "compiling.plan": ("Plan", "compile"),
    "loading.rollouts": ("scan",),
    "rubrics.rubric": ("Rubric",),
    "rubrics.group": ("RubricGroup",),
    "runs.score_file": ("score_file",),
    "spec.json_schema": ("json_schema",),
    "scoring.in_memory": ("score",),
    "spec.verifier": ("CheckSpec", "VerifierSpec", "load_verifier"),
    "scoring.summary": ("Summary",),
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
    "classes.registry": ("VerificationResult", "Verifier", "get_verifier", "list_verifiers", "register_verifier"),
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
